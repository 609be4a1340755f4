"""Gibbs for a γ that can be drawn given θ (Section 3.2).

    θ_i | γ, x, y ~ π(natural_i(γ, T_x) + T_y(y_i))        all units at once (Eq. 39)
    γ | θ, x      ~ p(γ | θ, x)                            by the structure's `sample_given`

The second is Eq. 40 with its x kept: the partition functions of π depend on γ and on T_x together.
All chains run side by side in one compiled program.

    draws = gamma_gibbs.sample(structure, family, pseudo, y, seen, seed=0)

Where θ can be summed out of γ's density, `nuts.sample` needs fewer draws: θ and γ hold each other
back here. This is for a γ that has no gradient, or whose conditional is much cheaper.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ldf.families.base import Family
from ldf.infer.gamma_draws import Draws, double, of_units
from ldf.special import Array, check_draws
from ldf.structure import Conditional


def sample(
    structure: Conditional,
    family: Family,
    pseudo: Any,
    y: dict[str, Any],
    seen: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    *,
    seed: int,
) -> Draws:
    """Draws of γ given the primary data `y` of the units that are `seen` (all, if it is not said).
    `pseudo` is T_x of each unit, without λ0; chains start at draws of the prior."""
    if not isinstance(structure, Conditional):
        raise TypeError(
            f"{type(structure).__name__} does not say how γ is drawn given θ: "
            "use nuts.sample, or give it sample_given as a Conditional"
        )
    check_draws(draws, seed)
    pseudo, primary, _ = of_units(family, pseudo, y, seen)
    with jax.enable_x64(True):
        aux, data = double((pseudo, primary))

        def one_chain(key: Array) -> Any:
            first, second = jax.random.split(key)
            keys = jax.random.split(second, warmup + draws)
            start = structure.sample_prior(first)

            def step(gamma: Any, key: Array) -> tuple[Any, Any]:
                gamma, _ = sweep(structure, family, aux, data, gamma, key)
                return gamma, gamma

            found = jax.lax.scan(step, start, keys)[1]
            return jax.tree.map(lambda leaf: leaf[warmup:], found)

        run = jax.jit(jax.vmap(one_chain))
        gamma = jax.tree.map(np.asarray, run(jax.random.split(jax.random.key(seed), chains)))
    return Draws(structure, family, pseudo, primary, gamma, np.zeros((chains, draws), bool))


def sweep(
    structure: Conditional, family: Family, pseudo: Any, primary: Any, gamma: Any, key: Array
) -> tuple[Any, Array]:
    """θ given γ, then γ given θ: the new γ, and θ."""
    first, second = jax.random.split(key)
    after = structure.natural(gamma, pseudo) + primary
    theta = family.posterior(after).sample(1, first)[0]
    return structure.sample_given(second, gamma, theta, pseudo), theta
