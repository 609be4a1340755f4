"""A dense network: shared layers, then a branch for the count and a branch for the rate.

The paper's electrification network is `Network(shared=(12,), branch=(3,), by="rate")`: 4 inputs,
146 weights. Appendix D's is
`Network(shared=(10, 10), branch=(), activations=("tanh", "relu"), by="counts")`.

Networks of several widths train in one program: a narrow one is a wide one whose spare units start
with all their weights at zero. Such a unit gives zero, whatever its activation makes of zero, and
so gets a gradient of zero and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Mapping, Weights, scramble
from ldf.special import Array

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
}
RISEN = (jax.nn.softplus,)  # those that make something of zero

MANY = 64  # columns, from which on each says less (decision 30)


class Network(Mapping):
    """Dense layers with biases.

    `activations` is one for all layers, or one a layer (shared layers first, then the branches').
    `linear_path` adds to the rate a linear function of x beside the network: the regression that
    the network then only has to correct. `by` is the formulation.
    """

    shared: tuple[int, ...] = (12,)
    branch: tuple[int, ...] = (3,)
    activations: tuple[str, ...] = ("tanh",)
    linear_path: bool = False
    by: str = "log"

    def __check_init__(self) -> None:
        for name in self.activations:
            check.one_of("activations", name, tuple(ACTIVATIONS))
        layers = len(self.shared) + len(self.branch)
        if len(self.activations) not in (1, layers):
            remedy = f"name one for all, or one for each of {layers} hidden layers"
            given = len(self.activations)
            raise check.DataError("activations", None, given, "does not fit", remedy)

    @property
    def formulation(self) -> str:
        return self.by

    @property
    def widest(self) -> int:
        return max(self.shared, default=0)

    def _activation(self, layer: int) -> Callable[[Array], Array]:
        return ACTIVATIONS[self.activations[layer if len(self.activations) > 1 else 0]]

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        shared = (inputs, *self.shared)
        # By rate the count has a branch of its own; by counts all outputs are one branch.
        sizes = [outputs] if self.by == "counts" else [1, outputs - 1]
        branches = [(shared[-1], *self.branch, size) for size in sizes]
        chains = [list(pairwise(chain)) for chain in (shared, *branches)]
        width = self.widest if width is None else width
        layers = []
        for number, chain in enumerate(chains):
            layers.append([])
            for depth, (a, b) in enumerate(chain):
                narrow_in = bool(self.shared) and (depth > 0 if number == 0 else depth == 0)
                live_in = min(a, width) if narrow_in else a
                live_out = min(b, width) if number == 0 else b
                layers[-1].append(_layer(rng.standard_normal((a, b)), live_in, live_out))
        weights: dict[str, Any] = {"shared": layers[0], "branches": layers[1:]}
        if self.linear_path:
            rates = outputs if self.by == "counts" else outputs - 1
            weights["linear"] = np.zeros((inputs, rates))
        return weights

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        # Adam moves every weight as far as any other, and so an output by as much as there are
        # columns: many would be learned by heart before the rows that are watched can tell.
        hidden = x = x * min(1.0, MANY / max(x.shape[-1], 1)) ** 1.5
        for i, layer in enumerate(weights["shared"]):
            hidden = self._shared(i, layer, hidden)
            if noise is not None:
                hidden = _drop(scramble(noise + i), hidden, dropout)
        outputs = []
        for layers in weights["branches"]:
            inner = hidden
            for i, layer in enumerate(layers[:-1]):
                activation = self._activation(len(self.shared) + i)
                inner = activation(inner @ layer["matrix"] + layer["bias"])
            outputs.append(inner @ layers[-1]["matrix"] + layers[-1]["bias"])
        if self.linear_path:
            outputs[-1] = outputs[-1] + x @ weights["linear"]
        return jnp.concatenate(outputs, -1)

    def _shared(self, number: int, layer: Weights, x: Array) -> Array:
        """What a shared layer gives, some of whose units may be spare."""
        activation = self._activation(number)
        hidden = activation(x @ layer["matrix"] + layer["bias"])
        if activation not in RISEN:
            return hidden
        spare = (layer["matrix"] == 0).all(0) & (layer["bias"] == 0)
        return jnp.where(spare, 0.0, hidden)


def _layer(matrix: np.ndarray, live_in: int, live_out: int) -> dict[str, np.ndarray]:
    """A layer's first weights, where so many of its inputs and outputs are alive."""
    a, b = matrix.shape
    live = (np.arange(a)[:, None] < live_in) & (np.arange(b) < live_out)
    # Glorot: the variance of a layer's outputs is that of its inputs.
    scale = np.sqrt(2 / max(live_in + live_out, 1))
    return {"matrix": np.where(live, scale * matrix, 0.0), "bias": np.zeros(b)}


def _drop(noise: Array, hidden: Array, dropout: Array | float) -> Array:
    units = jnp.arange(hidden.shape[-1], dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)
    uniform = scramble(noise + units) * (1 / 2**32)
    return jnp.where(uniform >= dropout, hidden / (1 - dropout), 0.0)
