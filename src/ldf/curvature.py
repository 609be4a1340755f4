"""Second derivatives of each row's worth by the outputs of its mapping, along as few directions as
they need.

Outputs that do not meet, such as those of different splits of nested classes, are moved together:
what the slope in one then does is owed to the one that it meets.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ldf.special import Array


class Curvature(NamedTuple):
    turned: Array  # how slopes turn along each direction: directions × rows × outputs
    number: np.ndarray  # of the direction that moves an output
    meets: np.ndarray  # outputs × outputs

    @classmethod
    def at(cls, outputs: Array, slope: Callable[[Array], Array], meets: np.ndarray) -> Curvature:
        """At these outputs, rows × outputs, of slopes by them."""
        number = numbered(meets)
        some = jnp.asarray(number == np.unique(number)[:, None], outputs.dtype)

        def turn(along: Array) -> Array:
            return jax.jvp(slope, (outputs,), (jnp.broadcast_to(along, outputs.shape),))[1]

        return cls(jax.vmap(turn)(some), number, meets)

    def of(self, one: int, other: int) -> Array:
        """By two outputs that meet, of each row."""
        if not _is_told(self.meets, self.number)[one, other]:
            one, other = other, one
        return self.turned[self.number[one], :, other]

    @property
    def diagonal(self) -> Array:
        """By each output alone, rows × outputs."""
        each = range(len(self.number))
        return jnp.stack([self.of(output, output) for output in each], -1)


def numbered(meets: np.ndarray) -> np.ndarray:
    """The number of the direction that moves an output, such that of any two that meet one is told
    by the direction of the other."""
    found: list[int] = []
    for size in range(1, len(meets) + 1):
        met = meets[:size, :size]
        for number in count():
            told = _is_told(met, np.array([*found, number]))
            if (told | told.T | ~met).all():
                found.append(number)
                break
    return np.array(found)


def _is_told(meets: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Whether along the direction of the first no other output turns the slope in the second."""
    together = number[:, None] == number
    return together.astype(int) @ meets == 1
