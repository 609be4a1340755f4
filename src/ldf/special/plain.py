"""The plain likelihoods: what the compound distributions become at infinite concentration.

They are the observed column of the table alone (see `compound`), and keep their digits likewise.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.special.arrays import Array, floats
from ldf.special.stirling import log_gamma, log_rising
from ldf.special.table import cell_of_counts, difference_of_products, log_total_factorial


def log_binomial(successes: Any, failures: Any) -> Array:
    """log (k + m choose k)."""
    _, (k, m) = floats(successes, failures)
    return log_rising(m + 1, k) - log_gamma(k + 1)


def _poisson_mass(y: Array, mean: Array) -> Array:
    xp, (y, mean) = floats(y, mean)
    with np.errstate(all="ignore"):
        cell, half = cell_of_counts(xp, y, y - mean, mean)
        return xp.where((mean == 0) & (y > 0), -np.inf, -cell - 0.5 * xp.log(half))


_po = jax.custom_jvp(_poisson_mass)


@_po.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    y, mean = primals
    # Where nothing can and did happen, 0/0 is the limit of a positive mean.
    slope = jnp.where((mean == 0) & (y == 0), -1.0, (y - mean) / mean)
    return _po(y, mean), slope * tangents[1]


def poisson_log_pmf(count: Any, mean: Any) -> Array:
    """log Po(y; mean). Derivatives are taken by the mean."""
    xp, arguments = floats(count, mean)
    return _poisson_mass(*arguments) if xp is np else _po(*arguments)


def _binomial_mass(k: Array, m: Array, p: Array) -> Array:
    xp, (k, m, p) = floats(k, m, p)
    k, m, p = xp.broadcast_arrays(k, m, p)
    n = k + m
    with np.errstate(all="ignore"):
        excess = difference_of_products(k, 1 - p, m, p)
        cell_k, half_k = cell_of_counts(xp, k, excess, n * p)
        cell_m, half_m = cell_of_counts(xp, m, -excess, n * (1 - p))
        mass = log_total_factorial(xp, n) - cell_k - cell_m - 0.5 * xp.log(half_k * half_m)
        never = ((p == 0) & (k > 0)) | ((p == 1) & (m > 0))
        return xp.where(n == 0, 0.0, xp.where(never, -np.inf, mass))


_bi = jax.custom_jvp(_binomial_mass)


@_bi.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    k, m, p = primals
    slope = difference_of_products(*jnp.broadcast_arrays(k, 1 - p, m, p)) / (p * (1 - p))
    # Where a rate that rounds to an end agrees with the data, 0/0 is the limit from inside.
    slope = jnp.where((p == 1) & (m == 0), k, jnp.where((p == 0) & (k == 0), -m, slope))
    return _bi(*primals), slope * tangents[2]


def binomial_log_pmf(successes: Any, failures: Any, rate: Any) -> Array:
    """log Bin(k; k + m, rate). Derivatives are taken by the rate."""
    xp, arguments = floats(successes, failures, rate)
    return _binomial_mass(*arguments) if xp is np else _bi(*arguments)
