"""The linear mapping: the GLM of the paper's Section 4, and with it the regression baselines.

With a count that varies by row it is a regression of both rate and count. With a constant count it
is the over-dispersed regression (beta-binomial, gamma-Poisson, Dirichlet-multinomial) that shares
one number of pseudo-observations among all rows. With a constant rate too it is an intercept alone.

What "one number" is differs for a gamma-Poisson regression, Ga(a_i, b_i) with a_i = μ_i b_i. In
Section 4 all rows share the pseudo-exposure b (NB1: the variance of y is n μ (1 + n / b)). In
Appendix D and in textbooks they share the shape a = 1/δ, so that b_i = 1/(δ μ_i) (NB2: the variance
is n μ (1 + δ n μ)): that is `shape`, for statistics whose rate is t / n by logarithms.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Mapping, Weights
from ldf.special import Array


class Linear(Mapping):
    """Outputs linear in x; the count, or the rate, may be the same for all rows."""

    constant_count: bool = False
    constant_rate: bool = False
    by: str = "log"
    shape: bool = False  # whether the first output is the logarithm of t instead of n

    def __check_init__(self) -> None:
        if self.shape and self.by != "log":
            remedy = 'use by="log"'
            raise check.DataError("by", None, self.by, "has no logarithm of a shape", remedy)

    @property
    def formulation(self) -> str:
        return self.by

    @property
    def way(self) -> str:
        return "newton"

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        sloped = outputs - self.constant_count - (outputs - 1) * self.constant_rate
        return {"slope": np.zeros((inputs, sloped)), "bias": np.zeros(outputs)}

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        return self.from_lines(self.lines(weights, x))

    def lines(self, weights: Weights, x: Array) -> Array:
        """What is linear in x, of one row."""
        count, rate = int(self.constant_count), int(self.constant_rate)
        rates = len(weights["bias"]) - 1
        sloped = jnp.pad(x @ weights["slope"], (count, rate * rates))
        return sloped + weights["bias"]

    def from_lines(self, lines: Array) -> Array:
        """The outputs: log n = log t − log rate."""
        return lines.at[0].add(-lines[1]) if self.shape else lines

    def design(self, weights: Weights, x: Array) -> Array:
        """All that a line is a sum of, of one row."""
        return jnp.concatenate([jnp.ones(1, x.dtype), x])

    def learned(self, inputs: int, outputs: int) -> np.ndarray:
        """Which weights of a line's parts there are, parts × lines."""
        line = np.arange(outputs)
        sloped = (line >= self.constant_count) & ((line == 0) | (not self.constant_rate))
        return np.concatenate([np.ones((1, outputs), bool), np.tile(sloped, (inputs, 1))])
