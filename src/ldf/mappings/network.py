"""A dense network: shared layers, then a branch for the count and a branch for the rate.

The paper's electrification network is `Network(shared=(12,), branch=(3,))`: 4 inputs, 146 weights.
Appendix D's is `Network(shared=(10, 10), branch=(), activations=("tanh", "relu"), by="counts")`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from ldf import check
from ldf.mappings.base import Mapping, Weights
from ldf.special import Array

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
}


class Network(Mapping):
    """Dense layers with biases.

    `activations` is one for all layers, or one a layer (shared layers first, then the branches').
    `linear_path` adds a linear map of x beside the network. `by` is the formulation.
    """

    shared: tuple[int, ...] = (12,)
    branch: tuple[int, ...] = (3,)
    activations: tuple[str, ...] = ("tanh",)
    linear_path: bool = False
    by: str = "rate"

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

    def _activation(self, layer: int) -> Callable[[Array], Array]:
        return ACTIVATIONS[self.activations[layer if len(self.activations) > 1 else 0]]

    def init(self, key: jax.Array, inputs: int, outputs: int) -> Weights:
        shared = (inputs, *self.shared)
        # By rate the count has a branch of its own; by counts all outputs are one branch.
        sizes = [1, outputs - 1] if self.by == "rate" else [outputs]
        branches = [(shared[-1], *self.branch, size) for size in sizes]
        chains = [list(pairwise(chain)) for chain in (shared, *branches)]
        # One draw for all layers: it compiles once.
        total = sum(a * b for chain in chains for a, b in chain)
        noise = jax.random.normal(key, (total,))
        layers, used = [], 0
        for chain in chains:
            layers.append([])
            for a, b in chain:
                matrix = noise[used : used + a * b].reshape(a, b)
                used += a * b
                # Glorot: the variance of a layer's outputs is that of its inputs.
                scaled = (2 / (a + b)) ** 0.5 * matrix
                layers[-1].append({"matrix": scaled, "bias": jnp.zeros(b)})
        weights: dict[str, Any] = {"shared": layers[0], "branches": layers[1:]}
        if self.linear_path:
            weights["linear"] = jnp.zeros((inputs, outputs))
        return weights

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, key: jax.Array | None = None
    ) -> Array:
        hidden = x
        for i, layer in enumerate(weights["shared"]):
            hidden = self._activation(i)(hidden @ layer["matrix"] + layer["bias"])
            if key is not None:
                hidden = _drop(jax.random.fold_in(key, i), hidden, dropout)
        outputs = []
        for layers in weights["branches"]:
            inner = hidden
            for i, layer in enumerate(layers[:-1]):
                activation = self._activation(len(self.shared) + i)
                inner = activation(inner @ layer["matrix"] + layer["bias"])
            outputs.append(inner @ layers[-1]["matrix"] + layers[-1]["bias"])
        result = jnp.concatenate(outputs, -1)
        return result + x @ weights["linear"] if self.linear_path else result


def _drop(key: jax.Array, hidden: Array, dropout: Array | float) -> Array:
    kept = jax.random.bernoulli(key, 1 - dropout, hidden.shape)
    return jnp.where(kept, hidden / (1 - dropout), 0.0)
