"""The root of a small matrix, and what is solved by it, in plain steps.

LAPACK, by JAX, shares the matrices of a batch out to the threads that run the program, and waits
for them. Two lanes of the trainer that do so at once wait for each other for ever. These few steps
need nobody else.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ldf.special import Array


def root_of(matrix: Array) -> Array:
    """L of L Lᵀ: Cholesky's, a column a step."""
    rows = jnp.arange(len(matrix))

    def step(rest: Array, j: Array) -> tuple[Array, Array]:
        column = jnp.where(rows >= j, rest[:, j] / jnp.sqrt(rest[j, j]), 0.0)
        return rest - jnp.outer(column, column), column

    return jax.lax.scan(step, matrix, rows)[1].T


def solved(root: Array, right: Array) -> Array:
    """L⁻¹ of a vector."""

    def step(rest: Array, j: Array) -> tuple[Array, Array]:
        found = rest[j] / root[j, j]
        return rest - root[:, j] * found, found

    return jax.lax.scan(step, right, jnp.arange(len(root)))[1]


def solved_across(root: Array, right: Array) -> Array:
    """L⁻ᵀ of the columns of a matrix."""

    def step(rest: Array, j: Array) -> tuple[Array, Array]:
        found = rest[j] / root[j, j]
        return rest - jnp.outer(root[j], found), found

    return jax.lax.scan(step, right, jnp.arange(len(root)), reverse=True)[1]
