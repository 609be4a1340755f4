"""Collapsed Gibbs: θ integrated out, and β too.

Without θ, assignments follow the predictives, which overlap more than the densities of θ do:

    z_i | β, y_i     ~  Cat(∝ β_k p(y_i | x_i, z_i = k))

Without β as well, each unit follows the others, one unit after the other (a Pólya urn):

    z_i | z_−i, y_i  ~  Cat(∝ (α_k + how many others are with k) p(y_i | x_i, z_i = k))

What was integrated out is drawn exactly afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ldf.infer.gibbs import Conditionals, counted, pick
from ldf.special import Array


class Given(NamedTuple):
    """All that matters of a problem: one program serves all families and natural parameters."""

    log_predictive: Array  # K × units
    pseudo_counts: Array

    @property
    def components(self) -> int:
        return self.log_predictive.shape[0]


class State(NamedTuple):
    """Where the chains are."""

    log_weights: Array  # chains × K
    assignment: Array  # chains × units


def draw_assignment(given: Given, log_weights: Array, _: None, key: Array) -> Array:
    """z | β, y."""
    return pick(log_weights.T[..., None] + given.log_predictive[:, None], key)


THETA_COLLAPSED = Conditionals(assignment=draw_assignment)


def sweep(given: Given, state: State, key: Array, draw: Conditionals = THETA_COLLAPSED) -> State:
    """z and β once each, θ integrated out."""
    first, second = jax.random.split(key)
    assignment = draw.assignment(given, state.log_weights, None, first)
    return State(draw.weights(given, assignment, second), assignment)


def urn_sweep(
    given: Given, state: State, key: Array, draw: Conditionals = THETA_COLLAPSED
) -> State:
    """Every unit's z once, given those of all other units; then β, which is not used again."""
    first, second = jax.random.split(key)
    likely = jnp.exp(given.log_predictive - given.log_predictive.max(0)).T
    levels = jax.random.uniform(first, state.assignment.T.shape, likely.dtype)
    components = jnp.arange(given.components)

    def move(counts: Array, unit: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        own, mass, level = unit
        others = counts - (own[:, None] == components)
        up_to = jnp.cumsum(others * mass, -1)
        new = (level[:, None] * up_to[:, -1:] >= up_to[:, :-1]).sum(-1, dtype=jnp.int32)
        return others + (new[:, None] == components), new

    start = given.pseudo_counts + counted(state.assignment, given.components)
    _, moved = jax.lax.scan(move, start, (state.assignment.T, likely, levels))
    return State(draw.weights(given, moved.T, second), moved.T)
