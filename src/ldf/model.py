"""Family and mapping together: what is learned, and what it says of each row.

The natural parameter of row i is λ0 + T_x(x_i; φ). It gives the posterior π(natural + T_y), and the
predictive p(y_i | x_i; φ) by which φ is learned.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax

from ldf.families.base import Family
from ldf.mappings import Mapping, Weights
from ldf.special import Array
from ldf.statistic import Statistic


class Model(eqx.Module):
    """One mapping into one family."""

    family: Family
    mapping: Mapping

    def pseudo_observations(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, key: jax.Array | None = None
    ) -> Any:
        """T_x of each row of x."""
        if key is None:
            outputs = jax.vmap(lambda row: self.mapping.apply(weights, row))(x)
        else:
            keys = jax.random.split(key, len(x))
            outputs = jax.vmap(lambda row, k: self.mapping.apply(weights, row, dropout, k))(x, keys)
        return self.family.from_unconstrained(outputs, self.mapping.formulation)

    def log_predictive(
        self,
        weights: Weights,
        prior: Statistic,
        x: Array,
        y: dict[str, Array],
        dropout: Array | float = 0.0,
        key: jax.Array | None = None,
    ) -> Array:
        """log p(y_i | x_i) of each row."""
        natural = prior + self.pseudo_observations(weights, x, dropout, key)
        return self.family.log_predictive(natural, **y)
