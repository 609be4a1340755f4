"""A conjugate mapping T_x(x; φ): from auxiliary data to pseudo-observations.

A mapping is a description; its weights φ are a separate pytree, so that many fits of one mapping
are one pytree with a leading axis. It acts on one row, and callers `vmap`. What it gives are
unconstrained outputs: the family's `from_unconstrained` makes a valid statistic of them. In the
formulation by rate the first output is the (log-like) count, and the others are the rate's.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax

from ldf.special import Array

Weights = Any  # a pytree of arrays


class Mapping(eqx.Module):
    """What turns a row of auxiliary data into the outputs of a family's `from_unconstrained`."""

    @property
    @abstractmethod
    def formulation(self) -> str:
        """What the outputs are: "rate" (count and rate) or "counts"."""

    @abstractmethod
    def init(self, key: jax.Array, inputs: int, outputs: int) -> Weights:
        """Random weights for so many inputs and outputs."""

    @abstractmethod
    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, key: jax.Array | None = None
    ) -> Array:
        """The outputs for one row. With a key, units are dropped with probability `dropout`."""


def count_weights(weights: Weights) -> int:
    """How many numbers are learned."""
    return sum(leaf.size for leaf in jax.tree.leaves(weights))


def squared(weights: Weights) -> Array:
    """The sum of squares that an L2 penalty multiplies: of matrices, not of biases."""
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(weights) if leaf.ndim > 1)
