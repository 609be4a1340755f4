"""Family and mapping together: what is learned, and what it says of each row.

The natural parameter of row i is λ0 + T_x(x_i; φ). It gives the posterior π(natural + T_y), and the
predictive p(y_i | x_i; φ) by which φ is learned.

A mapping starts from the `Ground`: its outputs are counted from what is known of all units before
any auxiliary data, in units of how much units differ. So a network need not learn first that people
are counted by the hundred thousand.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf.families.base import Family
from ldf.mappings import Mapping, Weights, scramble
from ldf.special import Array
from ldf.statistic import Statistic


class Ground(NamedTuple):
    """What is known of all units alike, before auxiliary data: not learned with φ."""

    prior: Statistic  # λ0
    centre: Array  # of the mapping's outputs
    scale: Array


class Copies(NamedTuple):
    """Rows as if they had some of their sources only, in the order of rows."""

    row: np.ndarray
    there: np.ndarray  # which sources they have: copies × sources
    share: np.ndarray  # of what the row counts


class Model(eqx.Module):
    """One mapping into one family.

    With `certain` the auxiliary data are taken to give θ itself: a regression without dispersion,
    the limit of infinitely many pseudo-observations, scored by the plain likelihood.
    """

    family: Family
    mapping: Mapping
    certain: bool = False

    @property
    def leaves_out(self) -> bool:
        """Whether learning leaves something out at random beside units."""
        return False

    @property
    def named(self) -> str:
        """What maps."""
        return type(self.mapping).__name__

    @property
    def way(self) -> str:
        """How it is learned."""
        return self.mapping.way

    @property
    def outputs(self) -> int:
        return self.family.outputs(self.mapping.formulation)

    @property
    def meets(self) -> np.ndarray:
        """Which outputs' second derivatives are not zero: outputs × outputs."""
        return self.family.natural.meets(self.outputs, self.mapping.formulation)

    def init(self, rng: np.random.Generator, inputs: int, width: int | None = None) -> Weights:
        """Random weights for so many columns."""
        return self.mapping.init(rng, inputs, self.outputs, width)

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        """The weights that learning from these rows begins with."""
        return self.mapping.prepared(weights, x, rng)

    def ground(self, prior: Statistic | None = None) -> Ground:
        """A ground that shifts and scales nothing."""
        nothing = np.zeros(self.outputs)
        none = self.family.from_unconstrained(nothing, self.mapping.formulation).zero()
        return Ground(none if prior is None else prior, nothing, nothing + 1)

    def usual(self, ground: Ground) -> Any:
        """What is known of all units: where a mapping's outputs begin."""
        return self.family.from_unconstrained(ground.centre, self.mapping.formulation)

    def alone(self, ground: Ground) -> Any:
        """What is known of a row without auxiliary data."""
        return ground.prior

    def there(self, x: np.ndarray) -> np.ndarray:
        """Which of several sources each row has: rows × sources; of one table, rows × none."""
        return np.zeros((len(x), 0), bool)

    def lacking(self, x: np.ndarray, there: np.ndarray) -> np.ndarray:
        """The rows, with no more sources than these."""
        return x

    def copies(self, x: np.ndarray) -> Copies:
        """Each row by itself; of several sources, by every subset of those it has."""
        return Copies(np.arange(len(x)), self.there(x), np.ones(len(x)))

    def bare(self, x: np.ndarray) -> np.ndarray:
        """Which rows lack every one of several sources."""
        there = self.there(x)
        return np.full(len(x), there.shape[1] > 0) & ~there.any(1)

    def pseudo_observations(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Any:
        """T_x of each row of x. With noise, a whole number, some of the mapping is dropped."""
        return self.from_outputs(self.mapped(weights, x, dropout, noise), ground)

    def mapped(
        self,
        weights: Weights,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Array:
        """What the mapping gives for each row."""
        if noise is None:
            return jax.vmap(lambda row: self.mapping.apply(weights, row))(x)
        noises = scramble(noise + jnp.arange(len(x), dtype=jnp.uint32))
        apply = partial(self.mapping.apply, weights)
        return jax.vmap(lambda row, own: apply(row, dropout, own))(x, noises)

    def from_outputs(self, outputs: Array, ground: Ground) -> Any:
        """T_x of each row, of what the mapping gives for it."""
        outputs = ground.centre + ground.scale * outputs
        return self.family.from_unconstrained(outputs, self.mapping.formulation)

    def log_predictive(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: dict[str, Array],
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Array:
        """log p(y_i | x_i) of each row."""
        pseudo = self.pseudo_observations(weights, ground, x, dropout, noise)
        return self.log_predictive_given(pseudo, ground, y)

    def lessons(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: dict[str, Array],
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> list[tuple[Array, Any]]:
        """What rows teach: log-predictives, and how much each counts, for all or by row."""
        return [(self.log_predictive(weights, ground, x, y, dropout, noise), 1.0)]

    def learned_well(
        self, weights: Weights, ground: Ground, x: Array, y: dict[str, Array]
    ) -> Array:
        """What learning is stopped by: the mean of all that a row would teach, however much it
        counts."""
        lessons = [(told, jnp.asarray(of) > 0) for told, of in self.lessons(weights, ground, x, y)]
        whole = sum(jnp.where(counts, told, 0.0) for told, counts in lessons)
        return whole / sum(jnp.where(counts, 1.0, 0.0) for _, counts in lessons)

    def log_predictive_given(self, pseudo: Any, ground: Ground, y: dict[str, Array]) -> Array:
        """log p(y_i) of each row, given T_x."""
        if self.certain:
            return self.family.log_likelihood(self.family.latent(pseudo).mean(), **y)
        return self.family.log_predictive(ground.prior + pseudo, **y)
