"""Series: a recurrent network that goes through the steps in order.

It begins with nothing and takes in one step after the other; what it then holds are the features.
A step that is not there changes nothing. The cells are Equinox's.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Weights
from ldf.mappings.network import Network
from ldf.mappings.reader import HEAD, Reader, at_least_one
from ldf.special import Array

CELLS: dict[str, Any] = {"lstm": eqx.nn.LSTMCell, "gru": eqx.nn.GRUCell}


class Recurrent(Reader):
    """An LSTM or a GRU that holds so many numbers."""

    reads: ClassVar[str] = "series"

    cell: str = "lstm"
    hidden: int = 12
    head: Network = HEAD
    shape: tuple[int, ...] = ()  # steps, values and whether the step is there

    def __check_init__(self) -> None:
        check.one_of("cell", self.cell, tuple(CELLS))
        at_least_one("hidden", self.hidden)

    @property
    def largest(self) -> int:
        return 3 * self.hidden * max(self.hidden, self.shape[-1] - 1)

    def _form(self) -> Any:
        """The cell without its numbers."""
        make = partial(CELLS[self.cell], self.shape[-1] - 1, self.hidden)
        return eqx.filter_eval_shape(lambda: make(key=jax.random.key(0)))

    def reading(self, rng: np.random.Generator) -> tuple[Weights, int]:
        bound = 1 / np.sqrt(self.hidden)
        leaves = jax.tree.leaves(self._form())
        weights = [rng.uniform(-bound, bound, leaf.shape) for leaf in leaves]
        if self.cell == "lstm":  # it begins by forgetting little: gates are in, forget, cell, out
            weights[-1][self.hidden : 2 * self.hidden] += 1
        return weights, self.hidden

    def features(self, weights: Weights, x: Array) -> Array:
        cell = jax.tree.unflatten(jax.tree.structure(self._form()), weights)
        nothing = jnp.zeros(self.hidden, x.dtype)
        held = (nothing, nothing) if self.cell == "lstm" else nothing

        def take(held: Any, step: Array) -> tuple[Any, None]:
            after = cell(step[:-1], held)
            return jax.tree.map(lambda a, b: jnp.where(step[-1] > 0.5, a, b), after, held), None

        held, _ = jax.lax.scan(take, held, x)
        return held[0] if self.cell == "lstm" else held
