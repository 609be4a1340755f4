"""Gibbs sampling of (β, z, θ), as in Section 6.

    θ_i | z_i, x_i, y_i  ~  π(λ0 + T_x(x_i; φ_z) + T_y(y_i))
    z_i | β, θ_i, x_i    ~  Cat(∝ β_k π(θ_i; λ0 + T_x(x_i; φ_k)))
    β | z                ~  Dir(α + how many units each component has)

All units and chains take each step together. As θ_i says nearly which component it came from, z
moves slowly; what is collapsed moves faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ldf.families.base import inner
from ldf.infer.mixture import MixtureProblem
from ldf.special import Array, Draws


class State(NamedTuple):
    """Where the chains are."""

    log_weights: Array  # chains × K
    assignment: Array  # chains × units; −1 where no component could have given θ
    theta: Any  # chains × units


def draw_theta(problem: MixtureProblem, assignment: Array, key: Array) -> Any:
    """Eq. 61."""
    natural = problem.natural_of(assignment) + problem.statistic
    return jax.tree.map(lambda value: value[0], problem.family.posterior(natural).sample(1, key))


def draw_assignment(problem: MixtureProblem, log_weights: Array, theta: Any, key: Array) -> Array:
    """By the log densities of θ, up to what all components share: ⟨λ, statistic of θ⟩ − log Z(λ).
    Only the first changes from sweep to sweep."""
    of_theta = problem.family.latent.sufficient(theta)
    log_density = inner(problem.natural[:, None], of_theta) - problem.log_partition[:, None]
    return pick(log_weights.T[..., None] + log_density, key)


def draw_weights(problem: Any, assignment: Array, key: Array) -> Array:
    """The logarithms of β. Of the problem, only pseudo-counts and the number of components."""
    counts = problem.pseudo_counts + counted(assignment, problem.components)
    log_gamma = Draws(1, key, counts).log_gamma(counts)[0]
    return jax.nn.log_softmax(log_gamma)


class Conditionals(NamedTuple):
    """How each variable is drawn given all others."""

    theta: Callable[..., Any] = draw_theta  # (problem, assignment, key)
    assignment: Callable[..., Array] = draw_assignment  # (problem, log_weights, theta, key)
    weights: Callable[..., Array] = draw_weights  # (problem, assignment, key)


FULL = Conditionals()


def sweep(problem: MixtureProblem, state: State, key: Array, draw: Conditionals = FULL) -> State:
    """Every variable once."""
    first, second, third = jax.random.split(key, 3)
    theta = draw.theta(problem, state.assignment, first)
    assignment = draw.assignment(problem, state.log_weights, theta, second)
    return State(draw.weights(problem, assignment, third), assignment, theta)


def pick(log_mass: Array, key: Array) -> Array:
    """One component by its mass, components on the first axis; −1 where no mass is a number."""
    mass = jnp.exp(log_mass - log_mass.max(0))
    up_to = jnp.cumsum(mass, 0)
    level = jax.random.uniform(key, mass.shape[1:], mass.dtype) * up_to[-1]
    which = (level >= up_to[:-1]).sum(0, dtype=jnp.int32)
    return jnp.where(jnp.isfinite(up_to[-1]), which, -1)


def counted(assignment: Array, components: int) -> Array:
    """How many units each component has: chains × K."""
    return (assignment[..., None] == jnp.arange(components)).sum(-2).astype(float)
