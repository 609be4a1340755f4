"""A mapping of one's own: an Equinox module, or a function and its weights.

    ldf.Own(lambda inputs, outputs, key: eqx.nn.MLP(inputs, outputs, 16, 2, key=key))
    ldf.Own(make, function)    weights = make(inputs, outputs, key); outputs = function(weights, x)

What `make` gives is called with a row (P,) of preprocessed columns and returns `outputs` numbers,
or `function` does that with it. It may be any tree of arrays. Those of floats are learned, by
gradients; matrices among them are penalised.

Fits differ by their key: members, parts and restarts begin at draws of their own. A module that is
there already, `ldf.Own(module)`, is where all of them begin: they then differ by their rows alone.

A file holds the weights and not the mapping, since loading runs no code from a file: give the same
mapping again, `ldf.load(path, mapping=…)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Mapping, Weights
from ldf.special import Array

Given = Mapping | Callable[..., Any]  # what may stand for a mapping


@dataclass(frozen=True, eq=False)
class Same:
    """A constructor that gives what is there already; two are the same if that is."""

    module: Any

    def __call__(self, inputs: int, outputs: int, key: Any) -> Any:
        return self.module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.module is self.module

    def __hash__(self) -> int:
        return id(self.module)


def _constructor(given: Any) -> Any:
    return Same(given) if isinstance(given, eqx.Module) else given


class Own(Mapping):
    """What `make(inputs, outputs, key)` makes, called by `function(made, x)` or by itself."""

    make: Callable[..., Any] = eqx.field(static=True, converter=_constructor)
    function: Callable[..., Any] | None = eqx.field(static=True, default=None)
    by: str = "log"

    def __check_init__(self) -> None:
        for name, given in (("make", self.make), ("function", self.function)):
            if not callable(given) and not (given is None and name == "function"):
                remedy = "give a constructor, make(inputs, outputs, key), or an Equinox module"
                raise check.DataError(name, None, given, "cannot be called", remedy)

    @property
    def formulation(self) -> str:
        return self.by

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        key = jax.random.key(int(rng.integers(2**31)))
        try:
            made = self.make(inputs, outputs, key)
        except TypeError as error:
            remedy = "give a constructor that takes (inputs, outputs, key), or an Equinox module"
            problem = f"was not made ({error})"
            raise check.DataError("mapping", None, None, problem, remedy) from error
        leaves, _ = jax.tree_util.tree_flatten_with_path(made)
        learned = {_name(path): np.asarray(leaf) for path, leaf in leaves if _is_learned(leaf)}
        # How many outputs there are is seen by the shape, whenever `make` is asked again.
        weights = {"fixed": {"outputs": np.zeros(outputs)}, "learned": learned}
        self._refuse_misfit(weights, inputs, outputs)
        return weights

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        outputs = weights["fixed"]["outputs"].shape[-1]
        made = self.make(x.shape[-1], outputs, jax.random.key(0))
        leaves, structure = jax.tree_util.tree_flatten_with_path(made)
        learned = weights["learned"]
        own = [learned[_name(path)] if _is_learned(leaf) else leaf for path, leaf in leaves]
        whole = jax.tree_util.tree_unflatten(structure, own)
        return jnp.asarray(whole(x) if self.function is None else self.function(whole, x))

    def _refuse_misfit(self, weights: Weights, inputs: int, outputs: int) -> None:
        """Unless a row becomes as many numbers as there are outputs."""
        row = jax.ShapeDtypeStruct((inputs,), jnp.float32)
        try:
            found = jax.eval_shape(self.apply, weights, row).shape
        except (TypeError, ValueError) as error:
            problem = f"cannot take a row of {inputs} numbers, which columns are once encoded"
            remedy = f"let it take as many and give {outputs} ({type(error).__name__}: {error})"
            raise check.DataError("mapping", None, None, problem, remedy.rstrip(".")) from error
        if found != (outputs,):
            problem = f"gives numbers of shape {found} for a row of {inputs}"
            remedy = f"let it give {outputs}: that is what the family is made of by {self.by!r}"
            raise check.DataError("mapping", None, None, problem, remedy)


def _name(path: tuple[Any, ...]) -> str:
    """Of an array, by where it is: .layers[0].weight"""
    return jax.tree_util.keystr(path).replace("'", "")


def _is_learned(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


def as_mapping(given: Given) -> Mapping:
    """A mapping as it is; a module or a constructor of one as a mapping of one's own."""
    return given if isinstance(given, Mapping) else Own(given)
