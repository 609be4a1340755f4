"""Mappings that are linear in what they learn: features of x that are chosen, and weights on them.

    outputs = bias + x · slope + features(x) · matrix

The features are splines, waves or kernels; beside them a linear path says what a regression would,
so that they only have to correct it, and so that far from all rows the linear path is left. What is
learned has one best answer under a penalty: Newton's method finds it. Which penalty suits hangs on
the rows, by a factor of a thousand; so several are tried.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.mappings.base import Mapping, Weights
from ldf.special import Array

PENALTIES = (5.0, 1.5, 0.5, 0.15, 0.05, 0.015, 0.005, 0.0015, 0.0005)


class Basis(Mapping):
    """What is common to them."""

    @abstractmethod
    def size(self, inputs: int) -> int:
        """How many features there are of so many columns."""

    @abstractmethod
    def chosen(self, rng: np.random.Generator, inputs: int) -> dict[str, Any]:
        """What the features hang on beside x, before any row is known."""

    @abstractmethod
    def features(self, weights: Weights, x: Array) -> Array:
        """Of one row."""

    @property
    def way(self) -> str:
        return "newton"

    @property
    def penalty(self) -> tuple[float, ...]:
        return PENALTIES

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        # In the order in which a flat array of them has them.
        return {
            "bias": np.zeros(outputs),
            "fixed": self.chosen(rng, inputs),
            "matrix": np.zeros((self.size(inputs), outputs)),
            "slope": np.zeros((inputs, outputs)),
        }

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        weights = weights | {"fixed": jax.lax.stop_gradient(weights["fixed"])}
        told = self.features(weights, x) @ weights["matrix"]
        return told + x @ weights["slope"] + weights["bias"]

    def lines(self, weights: Weights, x: Array) -> Array:
        """What is linear in what is learned, of one row: every output."""
        return self.apply(weights, x)

    def from_lines(self, lines: Array) -> Array:
        """The outputs."""
        return lines

    def design(self, weights: Weights, x: Array) -> Array:
        """All that a line is a sum of, of one row: one, the features, and x."""
        one = jnp.ones(1, x.dtype)
        return jnp.concatenate([one, self.features(weights, x), x])

    def learned(self, inputs: int, outputs: int) -> np.ndarray:
        """Which weights of a line's parts there are, parts × lines: all."""
        return np.ones((1 + self.size(inputs) + inputs, outputs), bool)
