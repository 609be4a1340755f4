"""Units in groups: districts, districts within regions.

A group differs from the others in what is known of its units before their data. By `on="prior"`
that is the paper's λ_i(γ): pseudo-observations at the group's own rate, and as many as suit it,

    natural_i = λ_g + T_x,      λ_g = e^(s_g) · λ0 at its rate moved by e_g

where e_g (on the logit of trials, the logarithm of a rate or share, or a mean itself) and the log
strength s_g are partially pooled:

    e_g = mean + spread · z_g,  z_g ~ N(0, 1)        s_g likewise

By `on="rate"` the group's term moves the rate of λ0 + T_x instead, whose number of
pseudo-observations stays. What auxiliary data say of a unit is then corrected for its group,
where λ_g beside strong auxiliary data would be outvoted. With `strength=True` a factor common to
all units is learned for that number too: once groups explain some of what T_x could not, the rest
of each unit is known better.

Groups may be nested, from coarse to fine: then the terms of all levels add, each level with a
spread of its own.

Hyperpriors, weakly informative: mean ~ N(0, scale²) and each spread the size of a N(0, scale²). The
scale is 1 on logits and logarithms, where 1 is a factor of 2.7; of a mean give the spread of units
you would not be surprised by. Those of the log strength are N(0, 1.5²) and the size of a N(0, 1).
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

STRENGTH_SD = 1.5  # of the population's log strength
ONS = ("prior", "rate")


class Pool(eqx.Module):
    """A number (or vector) for each group, partially pooled: mean + Σ_level spread · z."""

    sizes: tuple[int, ...] = eqx.field(static=True)  # groups at each level
    shape: tuple[int, ...] = eqx.field(static=True)  # of one group's number
    mean_sd: float
    spread_sd: float

    def sample(self, key: Array) -> Gamma:
        first, second, *rest = jax.random.split(key, 2 + len(self.sizes))
        return {
            "mean": self.mean_sd * jax.random.normal(first, self.shape),
            "log_spread": sample_log_half_normal(second, (len(self.sizes),), self.spread_sd),
            "z": [
                jax.random.normal(k, (size, *self.shape))
                for k, size in zip(rest, self.sizes, strict=True)
            ],
        }

    def log_prior(self, gamma: Gamma) -> Array:
        return (
            normal(gamma["mean"], self.mean_sd)
            + half_normal(gamma["log_spread"], self.spread_sd)
            + sum(normal(z) for z in gamma["z"])
        )

    def values(self, gamma: Gamma, index: np.ndarray) -> Array:
        """The number at each column of `index`: levels × places."""
        spread = jnp.exp(gamma["log_spread"])
        terms = [s * z[at] for s, z, at in zip(spread, gamma["z"], index, strict=True)]
        return gamma["mean"] + sum(terms)


class Hierarchy(Structure):
    """Partial pooling by group.

    Hierarchy(state, prior)                      one group a unit
    Hierarchy([region, district], prior)         districts within regions
    Hierarchy(state, prior, on="rate")           a term on the rate of λ0 + T_x
    """

    prior: Any  # λ0, one for all units
    groups: tuple[tuple[Any, ...], ...] = eqx.field(static=True)  # at each level; from the coarsest
    index: np.ndarray  # levels × units
    on: str = eqx.field(static=True)
    rate: Pool
    strength: Pool | None

    def __init__(
        self,
        groups: Any,
        prior: Any,
        *,
        on: str = "prior",
        strength: bool = False,
        scale: float = 1.0,
    ) -> None:
        check.one_of("on", on, ONS)
        levels = _levels(groups)
        self.prior, self.on = check_prior(prior), on
        self.groups = tuple(tuple(dict.fromkeys(level)) for level in levels)
        self.index = _index(self.groups, levels)
        sizes, scale = tuple(len(level) for level in self.groups), check_scale(scale)
        self.rate = Pool(sizes, term_shape(prior), scale, scale)
        if on == "prior":
            self.strength = Pool(sizes, (), STRENGTH_SD, 1.0)
        else:  # a factor for all units alike has no groups
            self.strength = Pool((), (), STRENGTH_SD, 1.0) if strength else None

    def at(self, groups: Any) -> Hierarchy:
        """The same groups and γ, for other units."""
        return eqx.tree_at(lambda of: of.index, self, _index(self.groups, _levels(groups)))

    def sample_prior(self, key: Array) -> Gamma:
        first, second = jax.random.split(key)
        gamma = {"rate": self.rate.sample(first)}
        return (
            gamma if self.strength is None else gamma | {"strength": self.strength.sample(second)}
        )

    def log_prior(self, gamma: Gamma) -> Array:
        of_rate = self.rate.log_prior(gamma["rate"])
        return of_rate + (
            0 if self.strength is None else self.strength.log_prior(gamma["strength"])
        )

    def natural(self, gamma: Gamma, pseudo: Any) -> Any:
        check_units(pseudo, self.index.shape[1])
        term = self.rate.values(gamma["rate"], self.index)
        if self.strength is None:
            return tilt(self.prior + pseudo, term)
        by_unit = self.index if self.on == "prior" else self.index[:0]
        factor = jnp.exp(self.strength.values(gamma["strength"], by_unit))
        if self.on == "prior":
            return tilt(self.prior, term) * factor + pseudo
        return tilt(self.prior + pseudo, term) * factor

    def quantities(self, gamma: Gamma) -> dict[str, Array]:
        """The population's mean and each level's spread; `group` is the term of each of the finest
        groups, and `group strength` its log strength."""
        rate, finest = gamma["rate"], self.groups[-1]
        index = _index(self.groups, [[g[: i + 1] for g in finest] for i in range(len(self.groups))])
        found = {
            "mean": rate["mean"],
            "spread": jnp.exp(rate["log_spread"]),
            "group": self.rate.values(rate, index),
        }
        if self.strength is not None:
            found["log strength"] = gamma["strength"]["mean"]
        if self.strength is not None and self.on == "prior":
            found["strength spread"] = jnp.exp(gamma["strength"]["log_spread"])
            found["group strength"] = self.strength.values(gamma["strength"], index)
        return found


def _levels(groups: Any) -> list[list[tuple[Any, ...]]]:
    """For each level, the name of each unit's group: its label after those of the coarser ones."""
    nested = isinstance(groups, list | tuple) and len(groups) > 0 and _is_column(groups[0])
    columns = [_labels(column) for column in (groups if nested else [groups])]
    if len({len(column) for column in columns}) > 1:
        sizes = " and ".join(str(len(column)) for column in columns)
        problem = f"has levels of {sizes} units"
        raise check.DataError("groups", None, None, problem, "give every level a group a unit")
    return [list(zip(*columns[: i + 1], strict=True)) for i in range(len(columns))]


def _is_column(values: Any) -> bool:
    return np.ndim(values) > 0 and not isinstance(values, str)


def _labels(column: Any) -> list[Any]:
    """A label for each unit: none may be missing."""
    found = column.tolist() if hasattr(column, "tolist") else list(column)
    for row, label in enumerate(found):
        if label is None or label != label:
            raise check.DataError("groups", row, None, "is missing", "give every unit its group")
    if not found:
        raise check.DataError("groups", None, None, "has no units", "give every unit its group")
    return found


def _index(groups: tuple[tuple[Any, ...], ...], levels: list[list[tuple[Any, ...]]]) -> np.ndarray:
    """Where each unit's group is among those of its level: levels × units."""
    if len(levels) != len(groups):
        problem = f"has {len(levels)} levels but the hierarchy has {len(groups)}"
        raise check.DataError("groups", None, None, problem, "give a column a level")
    found = []
    for known, names in zip(groups, levels, strict=True):
        position = {name: i for i, name in enumerate(known)}
        for row, name in enumerate(names):
            if name not in position:
                label = name[0] if len(name) == 1 else name
                remedy = "build the hierarchy with all groups, those without primary data too"
                raise check.DataError("groups", row, label, "is not a known group", remedy)
        found.append([position[name] for name in names])
    return np.array(found)
