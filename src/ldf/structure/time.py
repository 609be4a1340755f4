"""Change over time: a first-order random walk on the rate.

The rate of λ0 + T_x (its logit, logarithm, or a mean itself) moves by the term of the unit's time,

    term = level + walk,      walk(t) − walk(t′) ~ N(0, spread² · (t − t′)), t the next after t′

where the walk has mean zero over the times there are, so that `level` is its average. `spread` is
the standard deviation of a step in one unit of time; times need not be evenly spaced, and several
units may share one.

Hyperpriors, weakly informative: level ~ N(0, scale²), spread is the size of a N(0, scale²) in one
unit of time. The scale is 1 on logits and logarithms; of a mean give the change you would not be
surprised by. A time without primary data is filled in from those around it; beyond the last, the
walk goes on.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.special import Array
from ldf.structure.base import (
    Gamma,
    Structure,
    check_prior,
    check_scale,
    check_units,
    half_normal,
    normal,
    sample_log_half_normal,
    term_shape,
    tilt,
)


class Time(Structure):
    """A random walk on the rate: `Time(year, prior)`."""

    prior: Any  # λ0, one for all units
    times: np.ndarray  # those there are, in order
    index: np.ndarray  # of each unit: its time's number
    scale: float
    shape: tuple[int, ...] = eqx.field(static=True)  # of one time's term

    def __init__(self, time: Any, prior: Any, *, scale: float = 1.0) -> None:
        when = _times(time)
        self.prior, self.shape, self.scale = (
            check_prior(prior),
            term_shape(prior),
            check_scale(scale),
        )
        self.times, self.index = np.unique(when, return_inverse=True)

    def at(self, time: Any) -> Time:
        """The same times and γ, for other units."""
        when = _times(time)
        remedy = "build the structure with all times, those without primary data too"
        check.refuse("time", when, ~np.isin(when, self.times), "is not a known time", remedy)
        return eqx.tree_at(lambda of: of.index, self, np.searchsorted(self.times, when))

    def sample_prior(self, key: Array) -> Gamma:
        first, second, third = jax.random.split(key, 3)
        return {
            "level": self.scale * jax.random.normal(first, self.shape),
            "log_spread": sample_log_half_normal(second, (), self.scale),
            "step": jax.random.normal(third, (len(self.times) - 1, *self.shape)),
        }

    def log_prior(self, gamma: Gamma) -> Array:
        of_level = normal(gamma["level"], self.scale)
        return of_level + half_normal(gamma["log_spread"], self.scale) + normal(gamma["step"])

    def terms(self, gamma: Gamma) -> Array:
        """Of each time."""
        root = jnp.sqrt(jnp.diff(self.times)).reshape(-1, *(1 for _ in self.shape))
        steps = jnp.exp(gamma["log_spread"]) * root * gamma["step"]
        walk = jnp.concatenate([jnp.zeros((1, *self.shape)), jnp.cumsum(steps, 0)])
        return gamma["level"] + walk - walk.mean(0)

    def natural(self, gamma: Gamma, pseudo: Any) -> Any:
        check_units(pseudo, len(self.index))
        return tilt(self.prior + pseudo, self.terms(gamma)[self.index])

    def quantities(self, gamma: Gamma) -> dict[str, Array]:
        return {
            "level": gamma["level"],
            "spread": jnp.exp(gamma["log_spread"]),
            "time": self.terms(gamma),
        }


def _times(values: Any) -> np.ndarray:
    """A number for each unit."""
    when = np.asarray(check.numbers("time", values, missing="give every unit its time"))
    if when.ndim != 1 or not when.size:
        problem = "is not one number a unit"
        raise check.DataError("time", None, None, problem, "give a column of times, as numbers")
    return when
