"""The linear mapping: the GLM of the paper's Section 4, and with it the regression baselines.

With a count that varies by row it is a regression of both rate and count. With a constant count it
is the over-dispersed regression (beta-binomial, gamma-Poisson, Dirichlet-multinomial) that shares
one number of pseudo-observations among all rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ldf.mappings.base import Mapping, Weights
from ldf.special import Array


class Linear(Mapping):
    """Outputs linear in x; with `constant_count` the count is one number for all rows."""

    constant_count: bool = False
    by: str = "rate"

    @property
    def formulation(self) -> str:
        return self.by

    def init(self, key: jax.Array, inputs: int, outputs: int) -> Weights:
        sloped = outputs - 1 if self.constant_count else outputs
        return {
            "slope": 0.01 * jax.random.normal(key, (inputs, sloped)),
            "bias": jnp.zeros(outputs),
        }

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, key: jax.Array | None = None
    ) -> Array:
        sloped = x @ weights["slope"]
        if self.constant_count:
            sloped = jnp.concatenate([jnp.zeros_like(sloped[..., :1]), sloped], -1)
        return sloped + weights["bias"]
