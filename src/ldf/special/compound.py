"""Log-masses of the compound distributions, exact from concentration 1e-8 to 1e15.

The beta-binomial of k successes and m failures is, with s(a, k) = log Γ(a+k)/(Γ(a) k!),

    s(a, k) + s(b, m) − s(a+b, k+m)

and each s is huge where their sum is small. So its leading terms are taken together. By Stirling,
they are minus half the G statistic of the 2 × 2 table of pseudo- and real observations

                    pseudo   observed
        successes      a        k
        failures       b        m

that is −Σ [O log(O/E) − (O − E)] over the four cells, where E is what a cell would hold if both
columns had the same rate. Every O − E is ± D with D = (am − bk)/(a + b + k + m), so one difference
of products, taken with the lower halves of the significands kept, carries all the cancellation,
and what is summed is never negative. The rest are half-logarithms and Binet's function.

A Dirichlet-multinomial is the same table with more rows; a gamma-Poisson is one row of it, the
other being infinite. Arguments too small for Stirling are first moved up by Γ(z + 1) = z Γ(z).

Derivatives are taken in the same way: by a, the leading term gives −log(a/E), no matter how large
the cells are. They are composed along the concentration and across it, which are the directions a
model learns in: a ∂a + b ∂b is again a sum of cells in which ± D has dropped out.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.special.arrays import Array, floats
from ldf.special.stirling import binet_above, precision_of
from ldf.special.table import (
    difference_of_products,
    lifts_of,
    log_total_factorial,
    moves_up,
    row_mass,
    row_slopes,
    total_slope,
    trigamma_drop,
)

# --- beta-binomial ------------------------------------------------------------------------------


def _beta_binomial_table(xp: Any, k: Array, m: Array, a: Array, b: Array) -> tuple[Any, ...]:
    up_a, up_b = a + moves_up(xp, a), b + moves_up(xp, b)
    total, n = up_a + up_b, k + m
    excess = difference_of_products(*xp.broadcast_arrays(up_a, m, up_b, k)) / (total + n)
    return total, n, excess, total / (total + n), n / (total + n)


def _beta_binomial_mass(k: Array, m: Array, a: Array, b: Array) -> Array:
    xp, (k, m, a, b) = floats(k, m, a, b)
    floor = precision_of(a).floor
    with np.errstate(all="ignore"):
        total, n, excess, pseudo, observed = _beta_binomial_table(xp, k, m, a, b)
        first = a + b
        then = first + moves_up(xp, a)
        mass = (
            row_mass(xp, a, k, excess, pseudo, observed, lifts_of(first, n, floor))
            + row_mass(xp, b, m, -excess, pseudo, observed, lifts_of(then, n, floor))
            - 0.5 * xp.log(pseudo)
            + (binet_above(total) - binet_above(total + n))
            + log_total_factorial(xp, n)
        )
        return xp.where(n == 0, 0.0, mass)


def _beta_binomial_slopes(k: Array, m: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """a ∂a + b ∂b, and ∂a − ∂b."""
    xp, (k, m, a, b) = floats(k, m, a, b)
    _, n, excess, pseudo, _ = _beta_binomial_table(xp, k, m, a, b)
    slope_a, along_a, moves_a = row_slopes(xp, a, k, excess, pseudo)
    slope_b, along_b, moves_b = row_slopes(xp, b, m, -excess, pseudo)
    total = a + b
    common = total_slope(xp, total, n, moves_a + moves_b, 2 * precision_of(a).floor)
    return along_a + along_b + total * common, slope_a - slope_b


_bb = jax.custom_jvp(_beta_binomial_mass)
_bb_slopes = jax.custom_jvp(_beta_binomial_slopes)


@_bb.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, _, a, b = primals
    _, _, da, db = tangents
    along, across = _bb_slopes(*primals)
    grown = (da + db) / (a + b)
    # What is left of da once both have grown alike: exactly zero along the concentration.
    left = jnp.where(a < b, da - a * grown, b * grown - db)
    return _bb(*primals), along * grown + across * left


@_bb_slopes.defjvp
def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
    k, m, a, b = primals
    _, _, da, db = tangents
    along, across = _bb_slopes(*primals)
    total = a + b
    by_a, by_b = (along + across * b) / total, (along - across * a) / total
    drop_a, drop_b = trigamma_drop(jnp, a, k), trigamma_drop(jnp, b, m)
    drop = total * trigamma_drop(jnp, total, k + m)
    d_along = (by_a + drop - a * drop_a) * da + (by_b + drop - b * drop_b) * db
    return (along, across), (d_along, drop_b * db - drop_a * da)


def beta_binomial_log_pmf(successes: Any, failures: Any, a: Any, b: Any) -> Array:
    """log BeBi(k; k + m, a, b), the mass of k successes and m failures under θ ~ Be(a, b).

    Derivatives are taken by a and b; counts are data.

    >>> float(beta_binomial_log_pmf(3, 7, 0.3e15, 0.7e15))  # the binomial, log 0.2668…
    -1.3211510263...
    """
    xp, arguments = floats(successes, failures, a, b)
    return _beta_binomial_mass(*arguments) if xp is np else _bb(*arguments)


# --- Dirichlet-multinomial ----------------------------------------------------------------------


def _dirichlet_table(xp: Any, k: Array, a: Array) -> tuple[Any, ...]:
    moves = moves_up(xp, a)
    up = a + moves
    total, total_lost = _sum_and_lost(xp, up)
    n, n_lost = _sum_and_lost(xp, k)
    excess = difference_of_products(*xp.broadcast_arrays(up, n[..., None], k, total[..., None]))
    excess = excess + (up * n_lost[..., None] - k * total_lost[..., None])
    scale = (total + n)[..., None]
    return moves, total, n, excess / scale, total[..., None] / scale, n[..., None] / scale


def _dirichlet_mass(k: Array, a: Array) -> Array:
    xp, (k, a) = floats(k, a)
    k, a = xp.broadcast_arrays(k, a)
    with np.errstate(all="ignore"):
        moves, total, n, excess, pseudo, observed = _dirichlet_table(xp, k, a)
        # Classes are moved up one after the other; each finds the total the former ones left.
        before = a.sum(-1)[..., None] + (xp.cumsum(moves, -1) - moves)
        lifts = lifts_of(before, n[..., None], precision_of(a).floor)
        mass = (
            row_mass(xp, a, k, excess, pseudo, observed, lifts).sum(-1)
            - 0.5 * xp.log(pseudo[..., 0])
            + (binet_above(total) - binet_above(total + n))
            + log_total_factorial(xp, n)
        )
        return xp.where(n == 0, 0.0, mass)


def _dirichlet_slopes(k: Array, a: Array) -> tuple[Array, Array]:
    """Σ a_j ∂_j, and ∂_j less what all classes have in common."""
    xp, (k, a) = floats(k, a)
    moves, _, n, excess, pseudo, _ = _dirichlet_table(xp, k, a)
    slope, along, _ = row_slopes(xp, a, k, excess, pseudo)
    total = a.sum(-1)
    most = a.shape[-1] * precision_of(a).floor
    return along.sum(-1) + total * total_slope(xp, total, n, moves.sum(-1), most), slope


_dm = jax.custom_jvp(_dirichlet_mass)
_dm_slopes = jax.custom_jvp(_dirichlet_slopes)


@_dm.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, a = primals
    _, da = tangents
    along, slope = _dm_slopes(*primals)
    grown = da.sum(-1) / a.sum(-1)
    # What is left of da sums to zero, so slopes may be taken from their mean: fewer digits go.
    centred = slope - ((a * slope).sum(-1) / a.sum(-1))[..., None]
    return _dm(*primals), along * grown + (centred * (da - a * grown[..., None])).sum(-1)


@_dm_slopes.defjvp
def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
    k, a = primals
    _, da = tangents
    along, slope = _dm_slopes(*primals)
    total, n = a.sum(-1), k.sum(-1)
    drop = trigamma_drop(jnp, a, k)
    by_a = slope + ((along - (a * slope).sum(-1)) / total)[..., None]
    shared = total * trigamma_drop(jnp, total, n)
    d_along = ((by_a - a * drop + shared[..., None]) * da).sum(-1)
    return (along, slope), (d_along, -drop * da)


def dirichlet_multinomial_log_pmf(counts: Any, a: Any) -> Array:
    """log DirMult(k; a), classes along the last axis. Derivatives are taken by a."""
    xp, (counts, a) = floats(counts, a)
    counts, a = xp.broadcast_arrays(counts, a)
    return _dirichlet_mass(counts, a) if xp is np else _dm(counts, a)


def _sum_and_lost(xp: Any, x: Array) -> tuple[Array, Array]:
    """The sum over the last axis, and what its rounding lost."""
    total, lost = x[..., 0], xp.zeros_like(x[..., 0])
    for j in range(1, x.shape[-1]):
        before, total = total, total + x[..., j]
        from_j = total - before
        lost = lost + ((before - (total - from_j)) + (x[..., j] - from_j))
    return total, lost


# --- gamma-Poisson ------------------------------------------------------------------------------


def _gamma_poisson_table(xp: Any, y: Array, n: Array, a: Array, b: Array) -> tuple[Any, ...]:
    up = a + moves_up(xp, a)
    excess = difference_of_products(*xp.broadcast_arrays(up, n, y, b)) / (b + n)
    return excess, b / (b + n), n / (b + n)


def _gamma_poisson_mass(y: Array, n: Array, a: Array, b: Array) -> Array:
    xp, (y, n, a, b) = floats(y, n, a, b)
    with np.errstate(all="ignore"):
        excess, pseudo, observed = _gamma_poisson_table(xp, y, n, a, b)
        lifts = [(b + n) / b] * precision_of(a).floor
        mass = row_mass(xp, a, y, excess, pseudo, observed, lifts)
        return xp.where(n == 0, xp.where(y == 0, 0.0 * n, -np.inf), mass)


def _gamma_poisson_slopes(y: Array, n: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """a ∂a + b ∂b, and ∂a."""
    xp, (y, n, a, b) = floats(y, n, a, b)
    excess, pseudo, observed = _gamma_poisson_table(xp, y, n, a, b)
    slope, along, moves = row_slopes(xp, a, y, excess, pseudo)
    return along - moves * observed, slope


_gp = jax.custom_jvp(_gamma_poisson_mass)
_gp_slopes = jax.custom_jvp(_gamma_poisson_slopes)


@_gp.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, _, a, b = primals
    _, _, da, db = tangents
    along, by_a = _gp_slopes(*primals)
    grown = db / b
    return _gp(*primals), along * grown + by_a * (da - a * grown)


@_gp_slopes.defjvp
def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
    y, n, a, b = primals
    _, _, da, db = tangents
    along, by_a = _gp_slopes(*primals)
    drop, by_ab = trigamma_drop(jnp, a, y), n / (b * (b + n))
    by_bb = (y - a * (2 * b + n) * n / (b * b)) / (b + n) ** 2  # of (an − yb)/(b(b + n))
    by_b = (along - a * by_a) / b
    d_along = (by_a - a * drop + b * by_ab) * da + (by_b + a * by_ab + b * by_bb) * db
    return (along, by_a), (d_along, by_ab * db - drop * da)


def gamma_poisson_log_pmf(count: Any, exposure: Any, a: Any, b: Any) -> Array:
    """log GaPo(y; a, b/n): y arrivals in exposure n under θ ~ Ga(shape a, rate b).

    Derivatives are taken by a and b.
    """
    xp, arguments = floats(count, exposure, a, b)
    return _gamma_poisson_mass(*arguments) if xp is np else _gp(*arguments)
