"""Images: a small convolutional network.

Each layer looks at squares of pixels, the same everywhere, and halves the image. At the end the
mean over places says how much of a pattern there is, and the largest whether it is anywhere: so a
settlement is the same settlement wherever in the image it lies.

Squares side by side and one product are a convolution. XLA's own took five times as long inside
the trainer's loop on a CPU, where each fit has kernels of its own; and halving by a layer's stride,
not by pooling after it, is several times as quick for as many weights.
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


class Convolution(Reader):
    """Layers with so many `channels`, each looking at squares of `window` × `window`."""

    reads: ClassVar[str] = "image"

    channels: tuple[int, ...] = (8, 16)
    window: int = 4
    head: Network = HEAD
    shape: tuple[int, ...] = ()  # height, width, channels

    def __check_init__(self) -> None:
        at_least_one("channels", *self.channels)
        at_least_one("window", self.window)

    @property
    def largest(self) -> int:
        return self.window**2 * max((a * b for a, b in self._pairs()), default=0)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(pairwise((self.shape[-1], *self.channels)))

    def reading(self, rng: np.random.Generator) -> tuple[Weights, int]:
        layers = [dense(rng, self.window**2 * a, b) for a, b in self._pairs()]
        return layers, 2 * (self.shape[-1], *self.channels)[-1]

    def features(self, weights: Weights, x: Array) -> Array:
        hidden = x
        for layer in weights:
            seen = _squares(hidden, self.window) @ layer["matrix"] + layer["bias"]
            hidden = jax.nn.silu(seen)
        return jnp.concatenate([hidden.mean((0, 1)), hidden.max((0, 1))])


def _squares(image: Array, window: int) -> Array:
    """The pixels of a square around every other place, side by side; zero beyond the edges."""
    height, width, _ = image.shape
    pads = [_beyond(height, window), _beyond(width, window), (0, 0)]
    wide = jnp.pad(image, pads)
    shifts = [(i, j) for i in range(window) for j in range(window)]
    each = [wide[i : i + height : 2, j : j + width : 2] for i, j in shifts]
    return jnp.concatenate(each, -1)


def _beyond(size: int, window: int) -> tuple[int, int]:
    """How many zeros stand before and after, so that half of the places (rounded up) have a whole
    square around them."""
    more = max(2 * (-(-size // 2) - 1) + window - size, 0)
    return more // 2, more - more // 2
