"""Boosted regression trees: every output is a sum of many small trees.

Trees find steps and interactions that a network of the same data needs many weights for, such as a
count that depends on the weekday and on the holiday. They say nothing beyond the range of what they
have seen, where a network goes on; an ensemble can have both.

A tree of depth d is kept as a full one, in arrays: node j asks whether its column is below its
threshold and goes on to node 2j + 1 (it is) or 2j + 2 (it is not). A branch that ends early asks a
question that all rows answer alike.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Mapping, Weights
from ldf.special import Array

# A tree that says nothing: its nodes send all rows to a leaf that adds zero.
NOTHING = {"column": np.int32(0), "threshold": np.float32(np.inf), "leaf": np.float32(0)}
DEEPEST = 12  # 4,096 leaves


class Trees(Mapping):
    """Sums of trees of so great a depth, at most so many an output."""

    depth: int = 4
    most: int = 1000
    by: str = "log"

    def __check_init__(self) -> None:
        if not 1 <= self.depth <= DEEPEST:
            remedy = f"give a whole number from 1 to {DEEPEST}"
            raise check.DataError("depth", None, self.depth, "is no depth of a full tree", remedy)
        if self.most < 1:
            raise check.DataError("most", None, self.most, "is less than one", "give one or more")

    @property
    def formulation(self) -> str:
        return self.by

    @property
    def way(self) -> str:
        return "boosting"

    @property
    def learning_rate(self) -> float:
        return 0.05

    @property
    def penalty(self) -> float:
        return 1e-2

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        """As many trees as the width says (by default none), which say nothing."""
        number, leaves = width or 0, 2**self.depth
        nodes = {"column": leaves - 1, "threshold": leaves - 1, "leaf": leaves}
        return {
            name: np.full((number, outputs, nodes[name]), nothing)
            for name, nothing in NOTHING.items()
        }

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        # Thresholds were found among numbers of single precision.
        seen = jnp.asarray(x, jnp.float32)
        outputs = jnp.arange(weights["leaf"].shape[-2])

        def add(total: Array, tree: Weights) -> tuple[Array, None]:
            node = jnp.zeros_like(outputs)
            for _ in range(self.depth):
                column = tree["column"][outputs, node].astype(jnp.int32)
                above = seen[column] >= tree["threshold"][outputs, node]
                node = 2 * node + 1 + above
            leaf = node - (2**self.depth - 1)
            return total + tree["leaf"][outputs, leaf], None

        nothing = jnp.zeros(len(outputs), jnp.result_type(weights["leaf"], x))
        return jax.lax.scan(add, nothing, weights)[0]


def together(forests: list[Weights]) -> Weights:
    """Forests of one mapping as one pytree with a leading axis: all with as many trees, some of
    which say nothing."""
    most = max(len(forest["leaf"]) for forest in forests)

    def filled(name: str, forest: Weights) -> np.ndarray:
        trees = forest[name]
        rest = np.full((most - len(trees), *trees.shape[1:]), NOTHING[name], trees.dtype)
        return np.concatenate([trees, rest])

    return {name: np.stack([filled(name, one) for one in forests]) for name in NOTHING}
