"""The mixture of mappings of Section 6 when its mappings are known: what is left to infer.

    β ~ Dir(α)    z_i | β ~ Cat(β)    θ_i | z_i = k ~ π(λ0 + T_x(x_i; φ_k))    y_i | θ_i ~ f

β are the `weights`, z the `assignment`, α the `pseudo_counts` of the weights. Given z all of a
unit's θ is closed-form, so everything here follows from two arrays of components × units: the
natural parameters λ0 + T_x, and the log-predictives log p(y_i | x_i, z_i = k).

>>> import ldf
>>> family = ldf.Binomial()
>>> natural = family.natural(np.array([[2.0, 1.0], [8.0, 9.0]]), np.array([[8.0, 9.0], [2.0, 1.0]]))
>>> problem = MixtureProblem.of(family, natural, {"successes": [7, 0], "trials": [10, 0]})
>>> np.exp(problem.log_predictive).round(3)
array([[0.01 , 1.   ],
       [0.149, 1.   ]])
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.distributions import Mixture, mixture
from ldf.families.base import Family
from ldf.special import Array
from ldf.statistic import Statistic

BLOCK = 1 << 20  # numbers drawn at once


class MixtureProblem(eqx.Module):
    """K components that answer for N units, and the units' primary data. `of` makes one."""

    family: Family
    natural: Statistic  # λ0 + T_x(x_i; φ_k): K × N, or K × 1 where all units share it
    statistic: Statistic  # T_y of each unit: zero where there are no primary data
    log_predictive: Array  # log p(y_i | x_i, z_i = k): K × N; zero where there are none
    log_base: Array  # log h(y_i): N; zero where there are none
    log_partition: Array  # log Z of the natural parameters
    pseudo_counts: Array  # α

    @classmethod
    def of(
        cls,
        family: Family,
        natural: Any,
        y: dict[str, Any],
        pseudo_counts: Any = 1.0,
        seen: Any = None,
    ) -> MixtureProblem:
        """From the natural parameters of K × N, and columns of primary data of N units. Units that
        are not `seen` have none, whatever their row says."""
        shape = family.own(natural).shape
        if len(shape) != 2:
            problem = f"has {len(shape)} axes of units"
            raise check.DataError("natural", None, None, problem, "give components × units")
        columns = {name: np.asarray(value) for name, value in y.items()}
        lengths = {name: len(value) for name, value in columns.items() if value.ndim}
        units = max([shape[1], *lengths.values()])
        for name, length in lengths.items():
            if length != units:
                text = f"has {length} rows but there are {units} units"
                raise check.DataError(name, None, None, text, "give one row a unit")
        if shape[1] not in (1, units):
            text = f"has {shape[1]} units but the primary data have {units}"
            raise check.DataError("natural", None, None, text, "give as many, or one for all")
        alpha = check.positive("pseudo_counts", pseudo_counts)
        check.fits("pseudo_counts", alpha, shape[:1])
        there = np.ones(units, bool) if seen is None else np.asarray(seen)
        if there.dtype != bool or there.shape != (units,):
            remedy = "give True or False for each unit"
            raise check.DataError("seen", None, None, f"is not for {units} units", remedy)
        log_partition = np.asarray(family.log_partition(natural))
        proper = np.isfinite(log_partition).all(0)
        check.exists("mixture", proper, "a component's prior is improper", "give a proper one")
        statistic, log_predictive, log_base = _of_data(family, natural, columns, there)
        return cls(
            family,
            natural,
            statistic,
            log_predictive,
            log_base,
            log_partition,
            np.broadcast_to(np.asarray(alpha, float), shape[:1]),
        )

    @property
    def components(self) -> int:
        return self.log_predictive.shape[0]

    @property
    def units(self) -> int:
        return self.log_predictive.shape[1]

    def natural_of(self, assignment: Array) -> Statistic:
        """λ0 + T_x of the assigned components: assignments × units."""
        own = np.arange(self.units) % self.natural.shape[1]  # zero where all units share it
        return self.natural[assignment, own]

    def responsibilities(self, weights: np.ndarray) -> np.ndarray:
        """p(z_i = k | x, y, β): K × N. Of draws × K, the mean over draws, which is Rao and
        Blackwell's estimate of p(z_i = k | x, y)."""
        likely = self.likely()
        weights = np.asarray(weights).reshape(-1, self.components)
        total = np.zeros_like(likely)
        for block in _blocks(weights, self.units):
            total += block.T @ (1 / (block @ likely))
        return likely * total / len(weights)

    def posterior(self, responsibilities: np.ndarray) -> Mixture:
        """p(θ_i | x, y) of each unit: its components' posteriors, by their responsibilities."""
        after = self.natural.spread((self.components, self.units)) + self.statistic
        share = responsibilities / responsibilities.sum(0)
        return mixture(share, self.family.posterior(after))

    def likely(self) -> np.ndarray:
        """p(y_i | x_i, z_i = k) as shares of the most likely component's."""
        return np.exp(self.log_predictive - self.log_predictive.max(0))

    def draw_assignment(self, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """z | β, y with θ integrated out: one for each of the draws of β, draws × units."""
        likely, found = self.likely(), []
        for block in _blocks(weights, self.units):
            level = rng.random((len(block), self.units)) * (block @ likely)
            below, which = np.zeros_like(level), np.zeros(level.shape, np.int32)
            for k in range(self.components - 1):
                below += block[:, k, None] * likely[k]
                which += level >= below
            found.append(which)
        return np.concatenate(found)

    def draw_theta(self, assignment: np.ndarray, seed: np.random.SeedSequence) -> Any:
        """θ | z, y, for each of the draws of z: draws × units."""
        blocks = _blocks(assignment, self.units)
        found = []
        for block, one in zip(blocks, seed.generate_state(len(blocks), np.uint64), strict=True):
            known = self.family.posterior(self.natural_of(block) + self.statistic)
            found.append(jax.tree.map(lambda value: np.asarray(value)[0], known.sample(1, one)))
        return jax.tree.map(lambda *parts: np.concatenate(parts), *found)


def _of_data(
    family: Family, natural: Any, columns: dict[str, np.ndarray], seen: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray]:
    """T_y, the log-predictive by each component and log h(y); nothing where nothing was seen."""
    units = (natural.shape[0], len(seen))
    if not seen.any():
        nothing = natural[:1].spread((1, len(seen)))[0].zero()
        return nothing, np.zeros(units), np.zeros(len(seen))
    rows = np.where(seen, np.arange(len(seen)), np.argmax(seen))  # any that can be read
    y = {name: value[rows] if value.ndim else value for name, value in columns.items()}
    statistic = family.statistic(**y).spread(seen.shape).where(seen)
    log_predictive = np.asarray(family.log_predictive(natural, **y))
    log_base = np.broadcast_to(family.log_base(**y), seen.shape)
    return (
        statistic,
        np.where(seen, np.broadcast_to(log_predictive, units), 0.0),
        np.where(seen, log_base, 0.0),
    )


def _blocks(draws: np.ndarray, units: int) -> list[np.ndarray]:
    """Draws, so many at a time that what each says of all units can be held."""
    return np.array_split(draws, max(1, len(draws) * units // BLOCK))


def on_device(tree: Any) -> Any:
    """The same in JAX arrays, of float64 under `jax.enable_x64`."""
    convert = lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf  # noqa: E731
    return jax.tree.map(convert, tree)
