"""A mixture of conjugate mappings: a unit's auxiliary data speak through one of K (Section 6).

    β ~ Dir(α)    z_i ~ Cat(β)    θ_i | x_i, z_i ~ π(λ0 + T_x(x_i; φ_{z_i}))    y_i ~ f(θ_i)

Given z_i all is as with one mapping. Summed over it, posterior and predictive are mixtures, and

    p(y_i | x_i) = Σ_k β_k p_k(y_i | x_i)

With a gate the weights depend on x: β_k(x) = softmax of linear functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings import Mapping, Trees, Weights, as_mapping, scramble
from ldf.model import Ground, Model
from ldf.special import Array

LEARN = ("marginal", "em", "full em", "monte-carlo")


@dataclass(frozen=True)
class Component:
    """One mapping of a mixture; what is None is as for the whole."""

    mapping: Mapping | None = None
    width: int | None = None
    preprocess: str | None = None

    def __post_init__(self) -> None:
        if self.mapping is not None:
            object.__setattr__(self, "mapping", as_mapping(self.mapping))


@dataclass(frozen=True)
class Mixture:
    """K mappings, of which one holds for each unit.

    components      how many, or one `Component` each
    concentration   α, the same for all: pseudo-units that each begins with
    gate            whether the weights depend on the auxiliary data
    learn           "marginal" climbs the exact marginal Σ_k β_k p_k; "em" holds responsibilities
                    for an epoch, as in Section 6; "full em" for as many epochs as a chunk has, as
                    in Appendix B; "monte-carlo" climbs the joint marginal over draws of β
    draws           of β, for "monte-carlo"
    """

    components: int | tuple[Component, ...] = 3
    concentration: float = 1.0
    gate: bool = False
    learn: str = "marginal"
    draws: int = 256

    def __post_init__(self) -> None:
        check.one_of("learn", self.learn, LEARN)
        if self.number < 1:
            raise check.DataError(
                "components", None, self.number, "is less than one", "give one or more"
            )
        check.positive("concentration", self.concentration)
        if self.gate and self.learn == "monte-carlo":
            remedy = 'use "marginal" or "em", or no gate'
            raise check.DataError("gate", None, True, "leaves no β to draw", remedy)

    @property
    def number(self) -> int:
        return self.components if isinstance(self.components, int) else len(self.components)

    @property
    def each(self) -> tuple[Component, ...]:
        if isinstance(self.components, int):
            return (Component(),) * self.components
        return self.components


class MixedModel(Model):
    """K mappings into one family. `blocks` says which block of columns each of them sees, where
    columns are preprocessed in several ways."""

    mixture: Mixture = Mixture()
    blocks: tuple[int, ...] = ()  # empty: there is only one

    def __check_init__(self) -> None:
        if self.certain:
            remedy = "leave out the mixture or the certainty"
            raise check.DataError("certain", None, True, "is not for mixtures", remedy)
        if any(isinstance(mapping, Trees) for mapping in self.mappings):
            remedy = "give networks or linear mappings as components"
            raise check.DataError("mapping", None, None, "of trees is not for mixtures", remedy)
        if any(mapping.formulation != self.mapping.formulation for mapping in self.mappings):
            remedy = "give all components the same `by`"
            raise check.DataError("by", None, None, "differs between components", remedy)

    @property
    def number(self) -> int:
        return self.mixture.number

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        return tuple(component.mapping or self.mapping for component in self.mixture.each)

    def init(self, rng: np.random.Generator, inputs: int, width: int | None = None) -> Weights:
        own = inputs // (max(self.blocks, default=0) + 1)
        each = [
            mapping.init(rng, own, self.outputs, width if c.width is None else c.width)
            for mapping, c in zip(self.mappings, self.mixture.each, strict=True)
        ]
        gate: dict[str, Any] = {"bias": np.zeros(self.number)}
        if self.mixture.gate:
            gate["slope"] = np.zeros((inputs, self.number))
        return {"each": each, "gate": gate}

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        views = np.split(x, max(self.blocks, default=0) + 1, axis=1)
        blocks = self.blocks or (0,) * self.number
        each = [
            mapping.prepared(own, views[block], rng)
            for mapping, own, block in zip(self.mappings, weights["each"], blocks, strict=True)
        ]
        return weights | {"each": each}

    def log_shares(self, weights: Weights, x: Array) -> Array:
        """log p(z_i = k | x_i): K × rows."""
        gate = weights["gate"]
        logits = x @ gate["slope"] if "slope" in gate else jnp.zeros((len(x), self.number), x.dtype)
        return jax.nn.log_softmax(logits + gate["bias"], -1).T

    def pseudo_observations(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Any:
        """T_x of each row by each mapping: K × rows."""
        each, blocks = weights["each"], self.blocks or (0,) * self.number
        width = x.shape[-1] // (max(blocks) + 1)
        views = [x[:, block * width : (block + 1) * width] for block in blocks]
        noises = [None if noise is None else _other(noise, k) for k in range(self.number)]
        models = [Model(self.family, mapping) for mapping in self.mappings]

        def one(model: Model, own: Any, view: Any, mine: Any) -> Any:
            dropped = () if mine is None else (dropout, mine)
            return model.pseudo_observations(own, ground, view, *dropped)

        # Alike mappings are one program; one mapping alone is the plain model's, to the bit.
        alike = len(set(self.mappings)) == 1 and len(set(blocks)) == 1
        if alike and self.number > 1:
            stacked = _stack(each)
            own = None if noise is None else _stack(noises)
            axes = (0, None if own is None else 0)
            return jax.vmap(lambda w, n: one(models[0], w, views[0], n), axes)(stacked, own)
        return _stack([one(*of) for of in zip(models, each, views, noises, strict=True)])

    def log_each(
        self, weights: Weights, ground: Ground, x: Array, y: dict[str, Array], *dropped: Any
    ) -> Array:
        """log p_k(y_i | x_i): K × rows."""
        pseudo = self.pseudo_observations(weights, ground, x, *dropped)

        def one(own: Any) -> Array:
            return self.family.log_predictive(ground.prior + own, **y)

        if self.number == 1:
            return one(jax.tree.map(lambda leaf: leaf[0], pseudo))[None]
        return jax.vmap(one)(pseudo)

    def log_joint(
        self, weights: Weights, ground: Ground, x: Array, y: dict[str, Array], *dropped: Any
    ) -> Array:
        """log β_k p_k(y_i | x_i): K × rows."""
        return self.log_shares(weights, x) + self.log_each(weights, ground, x, y, *dropped)

    def log_predictive(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: dict[str, Array],
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Array:
        """log Σ_k β_k p_k(y_i | x_i)."""
        joint = self.log_joint(weights, ground, x, y, dropout, noise)
        return joint[0] if self.number == 1 else jax.nn.logsumexp(joint, 0)


def _stack(trees: Any) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _other(noise: Array, k: int) -> Array:
    """Another whole number for each component; the first keeps its own."""
    return noise if k == 0 else scramble(noise + jnp.uint32(k * 0x9E3779B9 & 0xFFFFFFFF))
