"""Sets of items: what matters among a unit's items is learned, their order is not looked at.

Each item becomes an embedding. Some heads each weigh the items by what these say, and take the
weighted mean of the embeddings (attention pooling); how many items there are is told beside it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ldf.mappings.base import Weights
from ldf.mappings.network import Network
from ldf.mappings.reader import HEAD, Reader, at_least_one, dense
from ldf.special import Array

FAR = -1e9  # below any score: an item that is not there


class Attention(Reader):
    """Embeddings of so many numbers, weighed by so many heads."""

    reads: ClassVar[str] = "items"

    embedding: int = 12
    heads: int = 2
    head: Network = HEAD
    shape: tuple[int, ...] = ()  # items, values and whether the item is there

    def __check_init__(self) -> None:
        at_least_one("embedding", self.embedding)
        at_least_one("heads", self.heads)

    @property
    def largest(self) -> int:
        return self.embedding * max(self.embedding, self.heads, self.shape[-1] - 1)

    def reading(self, rng: np.random.Generator) -> tuple[Weights, int]:
        sizes = (self.shape[-1] - 1, self.embedding, self.embedding)
        weights = [dense(rng, a, b) for a, b in pairwise(sizes)]
        return [*weights, dense(rng, self.embedding, self.heads)], self.heads * self.embedding + 1

    def features(self, weights: Weights, x: Array) -> Array:
        *layers, weigh = weights
        items, there = x[:, :-1], x[:, -1:] > 0.5
        for layer in layers:
            items = jax.nn.silu(items @ layer["matrix"] + layer["bias"])
        score = jnp.where(there, items @ weigh["matrix"] + weigh["bias"], FAR)
        share = there * jnp.exp(score - jax.lax.stop_gradient(score.max(0)))
        share = share / jnp.maximum(share.sum(0), 1e-9)  # of no items, nothing
        return jnp.append((share.T @ items).ravel(), jnp.log1p(there.sum().astype(x.dtype)))
