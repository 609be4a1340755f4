"""Series: convolutions that look back, each layer twice as far as the one before.

A layer sees `window` steps of what is below it, 1, 2, 4, … steps apart, and never a later one. The
features are those of the last step, the mean over all steps, and how many there are. Steps that are
not there stand before the first, and stay zero: so a series says the same however many of them are
put before it.
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


class TemporalConvolution(Reader):
    """Layers with so many `channels`."""

    reads: ClassVar[str] = "series"

    channels: tuple[int, ...] = (12, 12, 12)
    window: int = 3
    head: Network = HEAD
    shape: tuple[int, ...] = ()  # steps, values and whether the step is there

    def __check_init__(self) -> None:
        at_least_one("channels", *self.channels)
        at_least_one("window", self.window)

    @property
    def largest(self) -> int:
        return self.window * max((a * b for a, b in self._pairs()), default=0)

    def _pairs(self) -> list[tuple[int, int]]:
        return list(pairwise((self.shape[-1], *self.channels)))

    def reading(self, rng: np.random.Generator) -> tuple[Weights, int]:
        layers = [dense(rng, self.window * a, b) for a, b in self._pairs()]
        return layers, 2 * (self.shape[-1], *self.channels)[-1] + 1

    def features(self, weights: Weights, x: Array) -> Array:
        there = x[:, -1:]
        hidden = x * there
        for number, layer in enumerate(weights):
            # Shifted copies side by side and one product are a convolution, as for images.
            back = [_shifted(hidden, 2**number * k) for k in range(self.window)]
            seen = jnp.concatenate(back, -1) @ layer["matrix"] + layer["bias"]
            hidden = jax.nn.silu(seen) * there
        number = there.sum()
        mean = hidden.sum(0) / jnp.maximum(number, 1)
        return jnp.concatenate([hidden[-1], mean, jnp.log1p(number)[None]])


def _shifted(steps: Array, by: int) -> Array:
    """Each step as it was so many steps before; zero before the first."""
    return jnp.pad(steps, ((by, 0), (0, 0)))[: len(steps)]
