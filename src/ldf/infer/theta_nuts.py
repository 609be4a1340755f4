"""θ itself by NumPyro's NUTS, where primary data have no conjugate prior and θ is a vector.

    p(θ_i | x_i, y_i)  ∝  π(θ_i; λ0 + T_x) p(y_i | θ_i)

Any family will do that has a `log_likelihood`: one of your own, above all. Of one number quadrature
is exact and faster; importance sampling from the prior is faster too while the data say little, and
`effective_draws` tells. Where they say much, its draws miss the posterior, and these find it.

    family = ldf.ImportanceSampled(ldf.Multinomial(classes=3), log_likelihood)
    draws = theta_nuts.sample(family, prior + pseudo, y, seed=0)
    draws.status; draws.posterior().mean()

Units are independent given λ, so each has chains of its own, all in one compiled program. They move
in coordinates without bounds, such as log odds, in which the density of a conjugate prior is
exp⟨λ, statistic of θ⟩ and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ldf.distributions.weighted import WeightedDraws
from ldf.families.base import Family, inner
from ldf.infer.gamma_draws import Sampled, check_seen, columns_of, double
from ldf.infer.nuts import TARGET, chain
from ldf.special import Array, check_draws
from ldf.statistic import Arrivals, ClassCounts, Potential, Trials, VectorPotential
from ldf.structure.base import check_units


class Space(NamedTuple):
    """From coordinates without bounds to θ, and back."""

    theta: Callable[[Array], Array]
    back: Callable[[Array], Array]


def _same(value: Array) -> Array:
    return value


SPACES: dict[type, Space] = {
    Trials: Space(jax.nn.sigmoid, jax.scipy.special.logit),
    ClassCounts: Space(
        lambda u: jax.nn.softmax(jnp.append(u, 0.0)), lambda t: jnp.log(t[:-1]) - jnp.log(t[-1])
    ),
    Arrivals: Space(jnp.exp, jnp.log),
    Potential: Space(_same, _same),
    VectorPotential: Space(_same, _same),
}


@dataclass(frozen=True, eq=False)
class ThetaDraws(Sampled):
    """Draws of each unit's θ given its primary data."""

    theta: np.ndarray  # chains × draws × units × the axes of θ
    diverging: np.ndarray  # chains × draws × units

    @property
    def what(self) -> str:
        return "θ"

    @cached_property
    def quantities(self) -> dict[str, np.ndarray]:
        return {"theta": self.theta}

    def posterior(self) -> WeightedDraws:
        """Of each unit's θ: all draws, which count the same."""
        flat = self.theta.reshape(-1, *self.theta.shape[2:])
        size = (len(flat), self.theta.shape[2])
        return WeightedDraws(flat, np.full(size, 1 / size[0]))

    def to_arviz(self) -> Any:
        """The draws as ArviZ data. Needs `pip install 'ldf[arviz]'`."""
        return self._to_arviz(self.quantities)


def sample(
    family: Family,
    natural: Any,
    y: dict[str, Any],
    seen: Any = None,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    *,
    seed: int,
    target: float = TARGET,
) -> ThetaDraws:
    """Draws of θ given the primary data `y` of the units that are `seen` (all, if it is not said).
    `natural` is λ0 + T_x of each unit, or one for all; chains start at draws of π(λ0 + T_x)."""
    check_draws(draws, seed)
    seen = check_seen(y, seen)
    check_units(family.own(natural), len(seen))
    if family.natural not in SPACES:
        raise TypeError(
            f"θ of {type(family).__name__} is not one number or vector: write a NumPyro model of it"
        )
    space = SPACES[family.natural]
    rows = np.where(seen, np.arange(len(seen)), np.argmax(seen))  # any that can be read
    columns = columns_of(y, rows)
    family.statistic(**columns)  # refuses what is wrong

    def one(key: Array, own: Any, y: Any, seen: Array) -> Any:
        def potential(u: Array) -> Array:
            theta = space.theta(u)
            of_data = jnp.where(seen, family.log_likelihood(theta, **y), 0.0)
            total = inner(own, family.latent.sufficient(theta)) + of_data
            return jnp.where(jnp.isnan(total), jnp.inf, -total)

        def start(key: Array) -> Array:
            return space.back(family.posterior(own).sample(1, key)[0])

        u, diverging = chain(start, potential, key, draws, warmup, target)
        return jax.vmap(space.theta)(u), diverging

    with jax.enable_x64(True):
        given = (*double((natural.spread(seen.shape), columns)), jnp.asarray(seen))
        keys = jax.random.split(jax.random.key(seed), (chains, len(seen)))
        of_units = jax.vmap(one)
        run = jax.jit(lambda keys, *given: jax.vmap(lambda key: of_units(key, *given))(keys))
        found = jax.tree.map(np.asarray, run(keys, *given))
    return ThetaDraws(*(np.moveaxis(part, 2, 1) for part in found))
