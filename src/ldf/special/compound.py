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

from functools import reduce
from operator import add, mul
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ldf.special.arrays import Array, floats, is_single
from ldf.special.stirling import (
    HALF_LOG_2PI,
    binet_above,
    log_gamma,
    log_rising,
    polynomial,
    precision_of,
)

# float32: log Γ(1 + x) / (x (x − 1)) on 0 <= x <= 1, off by 6e-8.
_LOG_GAMMA_1P = (
    *(5.772157e-1, -2.4524903e-1, 1.553683e-1, -1.1441614e-1, 8.806621e-2),
    *(-6.3255176e-2, 3.6373813e-2, -1.3767536e-2, 2.448257e-3),
)


# --- cells of the table -------------------------------------------------------------------------


def difference_of_products(a: Array, b: Array, c: Array, d: Array) -> Array:
    """ab − cd, right to about one and a half times the working precision.

    Split into halves, the partial products are exact, and the two largest are subtracted first.
    (The rounding errors of whole products would do too, but a compiler is free to fuse a multiply
    with a subtract, and would then count the error twice.)
    """
    (ah, al), (bh, bl), (ch, cl), (dh, dl) = (_halves(x) for x in (a, b, c, d))
    return (ah * bh - ch * dh) + ((ah * bl - ch * dl) + (al * bh - cl * dh)) + (al * bl - cl * dl)


def _halves(x: Array) -> tuple[Array, Array]:
    p = precision_of(x)
    mask = np.array(p.mask, p.bits)
    if isinstance(x, jax.Array):
        bits = jax.lax.bitcast_convert_type(x, p.bits)
        high = jax.lax.bitcast_convert_type(bits & mask, x.dtype)
    else:
        high = (np.asarray(x).view(p.bits) & mask).view(x.dtype)
    return high, x - high


def _log_ratio(xp: Any, v: Array, otherwise: Array) -> tuple[Array, Array, Array]:
    """Whether v = (O − E)/(O + E) is small; 2 atanh(v)/2v − 1 if it is; log(otherwise) if not."""
    near = abs(v) < 0.1
    square = xp.where(near, v * v, 0.0)
    odd = tuple(1 / (2 * j + 3) for j in range(precision_of(v).atanh_terms))
    return near, square * polynomial(odd, square), xp.log(xp.where(near, 1.0, otherwise))


def _pseudo_cell(
    xp: Any, observed: Array, excess: Array, row: Array, share: Any
) -> tuple[Array, Array]:
    """O log(O/E) − (O − E), and log(O/E), for O > 0, E = row · share and an accurate excess O − E.

    The ratio is taken by the row first: for rows that hold nothing else it is then the same to the
    last bit, and sums over such rows stay exact.
    """
    v = excess / (observed + row * share)
    near, tail, log = _log_ratio(xp, v, observed / row / share)
    log_ratio = xp.where(near, 2 * v * (1 + tail), log)
    return xp.where(near, v * (excess + 2 * observed * tail), observed * log - excess), log_ratio


def _count_cell(xp: Any, k: Array, excess: Array, expected: Array) -> tuple[Array, Array]:
    """k log(k/E) − (k − E) + [log k! − k log k + k], less ½ log of the second thing returned.

    For few observations k log k is left out of both, which also makes k = 0 exact.
    """
    p = precision_of(k)
    few = k < p.floor
    v = excess / (k + expected)
    near, tail, log = _log_ratio(xp, xp.where(few, 1.0, v), xp.where(few, expected, k / expected))
    many_k = xp.where(few, 1.0 * p.floor, k)
    many = xp.where(near, v * (excess + 2 * k * tail), k * log - excess) + binet_above(many_k)
    k_log = xp.where(k > 0, k * xp.where(k > 0, log, 0.0), 0.0)
    rare = expected - k_log + _log_factorial_of_few(xp, xp.where(few, k, 0.0))
    return xp.where(few, rare, many), xp.where(few, 1.0, 2 * np.pi * k)


def _log_factorial_of_few(xp: Any, k: Array) -> Array:
    if is_single(k.dtype):
        return k * (k - 1) * polynomial(_LOG_GAMMA_1P, k)
    return scipy.special.gammaln(1 + k) if xp is np else jax.lax.lgamma(1 + k)


def _log_total_factorial(xp: Any, n: Array) -> Array:
    """log n! − n log n + n."""
    p = precision_of(n)
    few = n < p.floor
    log = xp.log(xp.where(n > 0, n, 1.0))
    rare = n - n * log + _log_factorial_of_few(xp, xp.where(few, n, 0.0))
    return xp.where(few, rare, 0.5 * log + HALF_LOG_2PI + binet_above(xp.where(few, p.floor, n)))


def deviance(observed: Any, excess: Any, expected: Any) -> Array:
    """O log(O/E) − (O − E) for O, E > 0 and an excess O − E that the caller knows accurately."""
    xp, (observed, excess, expected) = floats(observed, excess, expected)
    with np.errstate(all="ignore"):
        return _pseudo_cell(xp, observed, excess, expected, 1.0)[0]


# --- rows of the table --------------------------------------------------------------------------


def _moves(xp: Any, a: Array) -> Array:
    floor = precision_of(a).floor
    return xp.where(a < floor, 1.0 * floor, 0.0).astype(a.dtype)


def _row_mass(
    xp: Any, a: Array, k: Array, excess: Array, pseudo: Array, observed: Array, lifts: list[Array]
) -> Array:
    """One row's part of the log-mass. `pseudo` and `observed` are the columns' shares of all, and
    `lifts` what the rest of the formula gains when a is moved up by one, two, …"""
    moves = _moves(xp, a)
    up = a + moves
    both = up + k
    pseudo_cell, _ = _pseudo_cell(xp, up, excess, both, pseudo)
    count_cell, half = _count_cell(xp, k, -excess, both * observed)
    steps = [(a + j) / (a + k + j) * lift for j, lift in enumerate(lifts)]
    steps[0] = xp.where(k == 0, 1.0, a / (a + k)) * lifts[0]
    moved = xp.where(moves > 0, reduce(mul, steps), 1.0)
    logs = xp.log(moved) + 0.5 * xp.log(up / both / half)
    return logs + binet_above(both) - binet_above(up) - pseudo_cell - count_cell


def _row_slopes(
    xp: Any, a: Array, k: Array, excess: Array, pseudo: Array
) -> tuple[Array, Array, Array]:
    """By a: ψ(a+k) − ψ(a) + log pseudo; a times that plus the excess; how far a was moved up."""
    moves = _moves(xp, a)
    up = a + moves
    both = up + k
    cell, log_ratio = _pseudo_cell(xp, up, excess, both, pseudo)
    remainder = _digamma_rise(up, k)
    steps = [k / ((a + j) * (a + k + j)) for j in range(precision_of(a).floor)]
    scaled = [xp.where(k == 0, 0.0, k / (a + k)), *(a * step for step in steps[1:])]
    some = moves > 0
    slope = remainder - log_ratio + xp.where(some & (k > 0), reduce(add, steps), 0.0)
    along = a * remainder - cell + moves * log_ratio + xp.where(some, reduce(add, scaled), 0.0)
    return slope, along, moves


def _digamma_rise(z: Array, n: Array) -> Array:
    """ψ(z + n) − ψ(z) less log((z + n)/z), with no cancellation of its leading term."""
    return binet_above(z + n, 1) - binet_above(z, 1) + 0.5 * n / (z * (z + n))


def _trigamma_drop(xp: Any, z: Array, n: Array) -> Array:
    """ψ′(z) − ψ′(z + n), with no cancellation of its leading term."""
    moves = _moves(xp, z)
    up = z + moves
    both = up + n
    above = n / (up * both) * (1 + 0.5 * (1 / up + 1 / both))
    steps = [
        n * (2 * z + 2 * j + n) / ((z + j) * (z + j + n)) ** 2 for j in range(precision_of(z).floor)
    ]
    moved = xp.where(moves > 0, reduce(add, steps), 0.0)
    return xp.where(n == 0, 0.0, above + moved + binet_above(up, 2) - binet_above(both, 2))


# --- beta-binomial ------------------------------------------------------------------------------


def _beta_binomial_table(xp: Any, k: Array, m: Array, a: Array, b: Array) -> tuple[Any, ...]:
    up_a, up_b = a + _moves(xp, a), b + _moves(xp, b)
    total, n = up_a + up_b, k + m
    excess = difference_of_products(*xp.broadcast_arrays(up_a, m, up_b, k)) / (total + n)
    return total, n, excess, total / (total + n), n / (total + n)


def _beta_binomial_mass(k: Array, m: Array, a: Array, b: Array) -> Array:
    xp, (k, m, a, b) = floats(k, m, a, b)
    floor = precision_of(a).floor
    with np.errstate(all="ignore"):
        total, n, excess, pseudo, observed = _beta_binomial_table(xp, k, m, a, b)
        first = a + b
        then = first + _moves(xp, a)
        mass = (
            _row_mass(xp, a, k, excess, pseudo, observed, _lifts(first, n, floor))
            + _row_mass(xp, b, m, -excess, pseudo, observed, _lifts(then, n, floor))
            - 0.5 * xp.log(pseudo)
            + (binet_above(total) - binet_above(total + n))
            + _log_total_factorial(xp, n)
        )
        return xp.where(n == 0, 0.0, mass)


def _lifts(total: Array, n: Array, floor: int) -> list[Array]:
    return [(total + j + n) / (total + j) for j in range(floor)]


def _total_slope(xp: Any, total: Array, n: Array, moves: Array, most: int) -> Array:
    """ψ(A) − ψ(A+n) + log((A+n)/A) after A was moved up by `moves`, at most `most`."""
    up = total + moves
    steps = [xp.where(moves > j, n / ((total + j) * (total + j + n)), 0.0) for j in range(most)]
    return -_digamma_rise(up, n) - reduce(add, steps)


def _beta_binomial_slopes(k: Array, m: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """a ∂a + b ∂b, and ∂a − ∂b."""
    xp, (k, m, a, b) = floats(k, m, a, b)
    _, n, excess, pseudo, _ = _beta_binomial_table(xp, k, m, a, b)
    slope_a, along_a, moves_a = _row_slopes(xp, a, k, excess, pseudo)
    slope_b, along_b, moves_b = _row_slopes(xp, b, m, -excess, pseudo)
    total = a + b
    common = _total_slope(xp, total, n, moves_a + moves_b, 2 * precision_of(a).floor)
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
    drop_a, drop_b = _trigamma_drop(jnp, a, k), _trigamma_drop(jnp, b, m)
    drop = total * _trigamma_drop(jnp, total, k + m)
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


def _sum_and_lost(xp: Any, x: Array) -> tuple[Array, Array]:
    """The sum over the last axis, and what its rounding lost."""
    total, lost = x[..., 0], xp.zeros_like(x[..., 0])
    for j in range(1, x.shape[-1]):
        before, total = total, total + x[..., j]
        from_j = total - before
        lost = lost + ((before - (total - from_j)) + (x[..., j] - from_j))
    return total, lost


def _dirichlet_table(xp: Any, k: Array, a: Array) -> tuple[Any, ...]:
    moves = _moves(xp, a)
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
        lifts = _lifts(before, n[..., None], precision_of(a).floor)
        mass = (
            _row_mass(xp, a, k, excess, pseudo, observed, lifts).sum(-1)
            - 0.5 * xp.log(pseudo[..., 0])
            + (binet_above(total) - binet_above(total + n))
            + _log_total_factorial(xp, n)
        )
        return xp.where(n == 0, 0.0, mass)


def _dirichlet_slopes(k: Array, a: Array) -> tuple[Array, Array]:
    """Σ a_j ∂_j, and ∂_j less what all classes have in common."""
    xp, (k, a) = floats(k, a)
    moves, _, n, excess, pseudo, _ = _dirichlet_table(xp, k, a)
    slope, along, _ = _row_slopes(xp, a, k, excess, pseudo)
    total = a.sum(-1)
    most = a.shape[-1] * precision_of(a).floor
    return along.sum(-1) + total * _total_slope(xp, total, n, moves.sum(-1), most), slope


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
    drop = _trigamma_drop(jnp, a, k)
    by_a = slope + ((along - (a * slope).sum(-1)) / total)[..., None]
    shared = total * _trigamma_drop(jnp, total, n)
    d_along = ((by_a - a * drop + shared[..., None]) * da).sum(-1)
    return (along, slope), (d_along, -drop * da)


def dirichlet_multinomial_log_pmf(counts: Any, a: Any) -> Array:
    """log DirMult(k; a), classes along the last axis. Derivatives are taken by a."""
    xp, (counts, a) = floats(counts, a)
    counts, a = xp.broadcast_arrays(counts, a)
    return _dirichlet_mass(counts, a) if xp is np else _dm(counts, a)


# --- gamma-Poisson ------------------------------------------------------------------------------


def _gamma_poisson_table(xp: Any, y: Array, n: Array, a: Array, b: Array) -> tuple[Any, ...]:
    up = a + _moves(xp, a)
    excess = difference_of_products(*xp.broadcast_arrays(up, n, y, b)) / (b + n)
    return excess, b / (b + n), n / (b + n)


def _gamma_poisson_mass(y: Array, n: Array, a: Array, b: Array) -> Array:
    xp, (y, n, a, b) = floats(y, n, a, b)
    with np.errstate(all="ignore"):
        excess, pseudo, observed = _gamma_poisson_table(xp, y, n, a, b)
        lifts = [(b + n) / b] * precision_of(a).floor
        mass = _row_mass(xp, a, y, excess, pseudo, observed, lifts)
        return xp.where(n == 0, xp.where(y == 0, 0.0 * n, -np.inf), mass)


def _gamma_poisson_slopes(y: Array, n: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """a ∂a + b ∂b, and ∂a."""
    xp, (y, n, a, b) = floats(y, n, a, b)
    excess, pseudo, observed = _gamma_poisson_table(xp, y, n, a, b)
    slope, along, moves = _row_slopes(xp, a, y, excess, pseudo)
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
    drop, by_ab = _trigamma_drop(jnp, a, y), n / (b * (b + n))
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


# --- the limit of infinite concentration --------------------------------------------------------


def log_binomial(successes: Any, failures: Any) -> Array:
    """log (k + m choose k)."""
    _, (k, m) = floats(successes, failures)
    return log_rising(m + 1, k) - log_gamma(k + 1)


def _poisson_mass(y: Array, mean: Array) -> Array:
    xp, (y, mean) = floats(y, mean)
    with np.errstate(all="ignore"):
        cell, half = _count_cell(xp, y, y - mean, mean)
        return xp.where((mean == 0) & (y > 0), -np.inf, -cell - 0.5 * xp.log(half))


_po = jax.custom_jvp(_poisson_mass)


@_po.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    y, mean = primals
    return _po(y, mean), (y - mean) / mean * tangents[1]


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
        cell_k, half_k = _count_cell(xp, k, excess, n * p)
        cell_m, half_m = _count_cell(xp, m, -excess, n * (1 - p))
        mass = _log_total_factorial(xp, n) - cell_k - cell_m - 0.5 * xp.log(half_k * half_m)
        never = ((p == 0) & (k > 0)) | ((p == 1) & (m > 0))
        return xp.where(n == 0, 0.0, xp.where(never, -np.inf, mass))


_bi = jax.custom_jvp(_binomial_mass)


@_bi.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    k, m, p = primals
    slope = difference_of_products(*jnp.broadcast_arrays(k, 1 - p, m, p)) / (p * (1 - p))
    return _bi(*primals), slope * tangents[2]


def binomial_log_pmf(successes: Any, failures: Any, rate: Any) -> Array:
    """log Bin(k; k + m, rate). Derivatives are taken by the rate."""
    xp, arguments = floats(successes, failures, rate)
    return _binomial_mass(*arguments) if xp is np else _bi(*arguments)
