"""A conjugate mapping T_x(x; φ): from auxiliary data to pseudo-observations.

A mapping is a description; its weights φ are a separate pytree, so that many fits of one mapping
are one pytree with a leading axis. It acts on one row, and callers `vmap`. What it gives are
unconstrained outputs: the family's `from_unconstrained` makes a valid statistic of them. In the
formulations by rate the first output is the (log-like) count, and the others are the rate's.

Some of φ may be chosen rather than learned: knots, frequencies, inducing points. They are weights
like the others, so that they are stacked, saved and loaded with them, but they lie in a dictionary
under the name "fixed": nothing climbs them, and no penalty counts them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf.special import Array

Weights = Any  # a pytree of arrays


class Mapping(eqx.Module):
    """What turns a row of auxiliary data into the outputs of a family's `from_unconstrained`."""

    @property
    @abstractmethod
    def formulation(self) -> str:
        """What the outputs are: "log" or "rate" (count and rate), or "counts"."""

    @abstractmethod
    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        """Random weights for so many inputs and outputs, of a mapping so wide (if it can vary)."""

    @abstractmethod
    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        """The outputs for one row. With noise, a whole number drawn for this row and step, units
        are dropped with probability `dropout`."""

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        """The weights that learning begins with, once the rows that it learns from are known: of
        some mappings they say where knots or inducing points are. Of most they say nothing."""
        return weights

    @property
    def way(self) -> str:
        """How it is learned: by "gradients", to the last digit by "newton" (if the outputs are
        linear in all weights that are not fixed), or by "boosting". Several sources
        of which some have trees are learned by "backfitting"."""
        return "gradients"

    @property
    def learning_rate(self) -> float:
        """That suits it, where none is given."""
        return 0.01

    @property
    def penalty(self) -> float | tuple[float, ...]:
        """That suits it, where none is given; or several, from the strongest, to find it among."""
        return 1e-3

    @property
    def widest(self) -> int:
        """How wide the mapping can be; a fit may use less of it."""
        return 0


def scramble(number: Array) -> Array:
    """Another whole number that looks unrelated: what MurmurHash3 ends with. Millions of numbers a
    second need no better randomness to decide which units are dropped, and jax.random's would take
    longer than the network."""
    number = jnp.asarray(number).astype(jnp.uint32)
    number = (number ^ (number >> 16)) * jnp.uint32(0x85EBCA6B)
    number = (number ^ (number >> 13)) * jnp.uint32(0xC2B2AE35)
    return number ^ (number >> 16)


FIXED = "fixed"  # the name under which weights lie that are chosen, not learned


def is_fixed(path: tuple[Any, ...]) -> bool:
    return any(isinstance(key, jax.tree_util.DictKey) and key.key == FIXED for key in path)


def split(weights: Weights) -> tuple[Weights, Weights]:
    """What is learned and what is fixed: two trees that `equinox.combine` makes one again."""
    learned = jax.tree_util.tree_map_with_path(lambda path, _: not is_fixed(path), weights)
    return eqx.partition(weights, learned)


def count_weights(weights: Weights) -> int:
    """How many numbers are learned."""
    return sum(leaf.size for leaf in jax.tree.leaves(split(weights)[0]))


def squared(weights: Weights) -> Array:
    """The sum of squares that an L2 penalty multiplies: of matrices, not of biases."""
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(split(weights)[0]) if leaf.ndim > 1)
