"""γ by NumPyro's NUTS, with θ summed out; then θ exactly.

Given γ the units are independent and each has a closed form, so that

    log p(γ | x, y) = log p(γ) + Σ_i log p(y_i | natural_i(γ, T_x)) + constant

is all that a sampler of γ needs: as many dimensions as γ has, however many units there are. With
each draw of γ, θ_i ~ π(natural_i(γ, T_x) + T_y(y_i)): a mixture over draws, no approximation beside
their number. A unit without primary data has T_y = 0 and learns through γ alone.

    structure = Hierarchy(state, prior, on="rate")
    draws = nuts.sample(structure, family, pseudo, y, seen, seed=0)
    draws.status; draws.posterior().mean(); draws.log_predictive(y_to_come)

In a NumPyro model of your own, units are a site of one line; θ is drawn afterwards:

    nuts.units("homicides", family, natural, y)
    theta = nuts.theta("homicides", family, mcmc.get_samples(), y, seed=0)

NumPyro is imported only when it is used: `pip install 'ldf[numpyro]'`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.families.base import Family
from ldf.infer.gamma_draws import Draws, check_seen, columns_of, double, of_units, statistic_of
from ldf.special import Array, check_draws
from ldf.structure import Structure

TARGET = 0.9  # acceptance
STARTS = 20  # draws of the prior that a chain may start from


def _numpyro() -> Any:
    try:
        import numpyro
        import numpyro.infer
    except ImportError:
        raise ImportError("NumPyro is not installed: pip install 'ldf[numpyro]'") from None
    return numpyro


def log_density(
    structure: Structure, family: Family, gamma: Any, pseudo: Any, y: dict[str, Any], rows: Any
) -> Array:
    """log p(γ, y | x) with θ summed out. `y` are the primary data of the units in `rows` alone."""
    each = family.log_predictive(structure.natural(gamma, pseudo)[rows], **y)
    # A γ beyond what floats hold is impossible. Infinitely likely, it would never be left again.
    return structure.log_prior(gamma) + jnp.where(jnp.isfinite(each), each, -jnp.inf).sum()


def sample(
    structure: Structure,
    family: Family,
    pseudo: Any,
    y: dict[str, Any],
    seen: Any = None,
    draws: int = 1000,
    warmup: int = 1000,
    chains: int = 4,
    *,
    seed: int,
    target: float = TARGET,
) -> Draws:
    """Draws of γ given the primary data `y` of the units that are `seen` (all, if it is not said).

    `pseudo` is T_x of each unit, without λ0. Each chain starts at a draw of the prior; `target` is
    the acceptance that the step size is tuned to.
    """
    check_draws(draws, seed)
    pseudo, primary, seen = of_units(family, pseudo, y, seen)
    rows = np.flatnonzero(seen)
    with jax.enable_x64(True):
        aux, data = double((pseudo, columns_of(y, rows)))

        def potential(gamma: Any) -> Array:
            return -log_density(structure, family, gamma, aux, data, rows)

        def one(key: Array) -> Any:
            return chain(structure.sample_prior, potential, key, draws, warmup, target)

        keys = jax.random.split(jax.random.key(seed), chains)
        gamma, diverging = jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys))
    return Draws(structure, family, pseudo, primary, gamma, diverging)


def chain(
    start: Callable[[Array], Any],
    potential: Callable[[Any], Array],
    key: Array,
    draws: int,
    warmup: int,
    target: float = TARGET,
    depth: int = 10,
) -> tuple[Any, Array]:
    """One chain of NUTS, as a function that may be compiled and mapped over keys or data: all draws
    and whether each diverged. `potential` is minus the log density; `depth` bounds the trees.

    It begins at the first that is possible of some draws by `start`, which takes a key.
    """
    begin, step = _numpyro().infer.hmc.hmc(potential, algo="NUTS")
    first, second = jax.random.split(key)
    some = jax.vmap(start)(jax.random.split(first, STARTS))
    possible = jnp.argmax(jnp.isfinite(jax.vmap(potential)(some)))
    how = {"target_accept_prob": target, "max_tree_depth": depth}
    first_of = jax.tree.map(lambda leaf: leaf[possible], some)
    state = begin(first_of, warmup, rng_key=second, **how)

    def move(state: Any, _: None) -> tuple[Any, Any]:
        state = step(state)
        return state, (state.z, state.diverging)

    # One loop: two would compile the sampler twice.
    found = jax.lax.scan(move, state, length=warmup + draws)[1]
    return jax.tree.map(lambda leaf: leaf[warmup:], found)


# --- in a NumPyro model of your own --------------------------------------------------------------


def units(
    name: str, family: Family, natural: Any, y: dict[str, Any] | None = None, seen: Any = None
) -> None:
    """A site of a NumPyro model: units whose θ_i ~ π(natural_i) is summed out, with their primary
    data `y` where they are `seen`. Without y nothing is conditioned on."""
    numpyro = _numpyro()
    names = (field.name for field in fields(family.natural))
    for part, value in zip(names, family.own(natural).coordinates(), strict=True):
        numpyro.deterministic(f"{name}_{part}", value)
    if y is not None:
        rows = np.flatnonzero(check_seen(y, seen))
        each = family.log_predictive(natural[rows], **columns_of(y, rows))
        numpyro.factor(name, each.sum())


def theta(
    name: str,
    family: Family,
    samples: dict[str, Any],
    y: dict[str, Any] | None = None,
    seen: Any = None,
    *,
    seed: int,
) -> np.ndarray:
    """θ of the units of that site, draws × units: one with each of the model's draws, and given the
    same primary data as there."""
    parts = [np.asarray(samples[f"{name}_{field.name}"], float) for field in fields(family.natural)]
    natural = family.natural(*parts)
    if y is not None:
        natural = natural + statistic_of(family, y, check_seen(y, seen))[None]
    return np.asarray(family.posterior(natural).sample(1, seed))[0]
