"""Mappings that read what is no table: images, series, sets of items.

Such a source comes as numbers in a row like any other, `shape` says what they are. A reader turns
them into features, and its `head`, a network, turns features into outputs. All is learned together.
Should anything stand in the row after the source, the head sees it as it is; which other sources
are there does not (decision 36).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Mapping, Weights
from ldf.mappings.network import Network
from ldf.special import Array

HEAD = Network(shared=(16,), branch=(8,), activations=("silu",), linear_path=True)


class Reader(Mapping):
    """Features of one source, and a network of them."""

    reads: ClassVar[str]  # the kind of source

    if TYPE_CHECKING:  # fields of each: declared here they would come first in all of them
        head: Network
        shape: tuple[int, ...]  # of the source; filled in from the data

    @abstractmethod
    def reading(self, rng: np.random.Generator) -> tuple[Weights, int]:
        """Random weights of what reads, and how many features it finds."""

    @abstractmethod
    def features(self, weights: Weights, x: Array) -> Array:
        """Of one unit's source, which has the shape."""

    @property
    @abstractmethod
    def largest(self) -> int:
        """How many numbers the largest array of its own weights has."""

    @property
    def formulation(self) -> str:
        return self.head.by

    def shaped(self, shape: tuple[int, ...]) -> Self:
        """For a source of this shape."""
        return replace(cast("Any", self), shape=shape)

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        reading, found = self.reading(rng)
        more = inputs - math.prod(self.shape)
        return {"reading": reading, "head": self.head.init(rng, found + more, outputs)}

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        size = math.prod(self.shape)
        found = self.features(weights["reading"], x[:size].reshape(self.shape))
        return self.head.apply(weights["head"], jnp.append(found, x[size:]), dropout, noise)


def at_least_one(name: str, *numbers: int) -> None:
    for number in numbers:
        if number < 1:
            raise check.DataError(name, None, number, "is less than one", "give one or more")


def dense(rng: np.random.Generator, inputs: int, *shape: int) -> dict[str, np.ndarray]:
    """A layer's first weights: the variance of its outputs is that of its inputs."""
    scale = np.sqrt(2 / (inputs + shape[-1]))
    return {"matrix": scale * rng.standard_normal((inputs, *shape)), "bias": np.zeros(shape)}
