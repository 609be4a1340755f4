"""The table behind the compound distributions: its cells, its rows and their derivatives.

Each row holds a pseudo-count a and an observed count k. See `compound` for why there is a table.
"""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import jax
import numpy as np
import scipy  # special is loaded when it is asked for

from ldf.special.arrays import Array, floats, is_single
from ldf.special.stirling import HALF_LOG_2PI, binet_above, polynomial, precision_of

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
    (ah, al), (bh, bl), (ch, cl), (dh, dl) = (halves(x) for x in (a, b, c, d))
    return (ah * bh - ch * dh) + ((ah * bl - ch * dl) + (al * bh - cl * dh)) + (al * bl - cl * dl)


def halves(x: Array) -> tuple[Array, Array]:
    p = precision_of(x)
    mask = np.array(p.mask, p.bits)
    if isinstance(x, jax.Array):
        bits = jax.lax.bitcast_convert_type(x, p.bits)
        high = jax.lax.bitcast_convert_type(bits & mask, x.dtype)
    else:
        high = (np.asarray(x).view(p.bits) & mask).view(x.dtype)
    return high, x - high


def atanh_or_log(xp: Any, v: Array, otherwise: Array) -> tuple[Array, Array, Array]:
    """Whether v = (O − E)/(O + E) is small; 2 atanh(v)/2v − 1 if it is; log(otherwise) if not."""
    near = abs(v) < 0.1
    square = xp.where(near, v * v, 0.0)
    odd = tuple(1 / (2 * j + 3) for j in range(precision_of(v).atanh_terms))
    return near, square * polynomial(odd, square), xp.log(xp.where(near, 1.0, otherwise))


def cell_of_pseudo(
    xp: Any, observed: Array, excess: Array, row: Array, share: Any
) -> tuple[Array, Array]:
    """O log(O/E) − (O − E), and log(O/E), for O > 0, E = row · share and an accurate excess O − E.

    The ratio is taken by the row first: for rows that hold nothing else it is then the same to the
    last bit, and sums over such rows stay exact.
    """
    v = excess / (observed + row * share)
    near, tail, log = atanh_or_log(xp, v, observed / row / share)
    log_ratio = xp.where(near, 2 * v * (1 + tail), log)
    return xp.where(near, v * (excess + 2 * observed * tail), observed * log - excess), log_ratio


def cell_of_counts(xp: Any, k: Array, excess: Array, expected: Array) -> tuple[Array, Array]:
    """k log(k/E) − (k − E) + [log k! − k log k + k], less ½ log of the second thing returned.

    For few observations k log k is left out of both, which also makes k = 0 exact.
    """
    p = precision_of(k)
    few = k < p.floor
    v = excess / (k + expected)
    near, tail, log = atanh_or_log(xp, xp.where(few, 1.0, v), xp.where(few, expected, k / expected))
    many_k = xp.where(few, 1.0 * p.floor, k)
    many = xp.where(near, v * (excess + 2 * k * tail), k * log - excess) + binet_above(many_k)
    k_log = xp.where(k > 0, k * xp.where(k > 0, log, 0.0), 0.0)
    rare = expected - k_log + log_factorial_of_few(xp, xp.where(few, k, 0.0))
    return xp.where(few, rare, many), xp.where(few, 1.0, 2 * np.pi * k)


def log_factorial_of_few(xp: Any, k: Array) -> Array:
    if is_single(k.dtype):
        return k * (k - 1) * polynomial(_LOG_GAMMA_1P, k)
    return scipy.special.gammaln(1 + k) if xp is np else jax.lax.lgamma(1 + k)


def log_total_factorial(xp: Any, n: Array) -> Array:
    """log n! − n log n + n."""
    p = precision_of(n)
    few = n < p.floor
    log = xp.log(xp.where(n > 0, n, 1.0))
    rare = n - n * log + log_factorial_of_few(xp, xp.where(few, n, 0.0))
    return xp.where(few, rare, 0.5 * log + HALF_LOG_2PI + binet_above(xp.where(few, p.floor, n)))


def deviance(observed: Any, excess: Any, expected: Any) -> Array:
    """O log(O/E) − (O − E) for O, E > 0 and an excess O − E that the caller knows accurately."""
    xp, (observed, excess, expected) = floats(observed, excess, expected)
    with np.errstate(all="ignore"):
        return cell_of_pseudo(xp, observed, excess, expected, 1.0)[0]


# --- rows of the table --------------------------------------------------------------------------


def moves_up(xp: Any, a: Array) -> Array:
    floor = precision_of(a).floor
    return xp.where(a < floor, 1.0 * floor, 0.0).astype(a.dtype)


def row_mass(
    xp: Any, a: Array, k: Array, excess: Array, pseudo: Array, observed: Array, lifts: list[Array]
) -> Array:
    """One row's part of the log-mass. `pseudo` and `observed` are the columns' shares of all, and
    `lifts` what the rest of the formula gains when a is moved up by one, two, …"""
    moves = moves_up(xp, a)
    up = a + moves
    both = up + k
    pseudo_cell, _ = cell_of_pseudo(xp, up, excess, both, pseudo)
    count_cell, half = cell_of_counts(xp, k, -excess, both * observed)
    steps = [(a + j) / (a + k + j) * lift for j, lift in enumerate(lifts)]
    steps[0] = xp.where(k == 0, 1.0, a / (a + k)) * lifts[0]
    moved = xp.where(moves > 0, reduce(mul, steps), 1.0)
    logs = xp.log(moved) + 0.5 * xp.log(up / both / half)
    return logs + binet_above(both) - binet_above(up) - pseudo_cell - count_cell


def row_slopes(
    xp: Any, a: Array, k: Array, excess: Array, pseudo: Array
) -> tuple[Array, Array, Array]:
    """By a: ψ(a+k) − ψ(a) + log pseudo; a times that plus the excess; how far a was moved up."""
    moves = moves_up(xp, a)
    up = a + moves
    both = up + k
    cell, log_ratio = cell_of_pseudo(xp, up, excess, both, pseudo)
    remainder = digamma_rise(up, k)
    steps = [k / ((a + j) * (a + k + j)) for j in range(precision_of(a).floor)]
    scaled = [xp.where(k == 0, 0.0, k / (a + k)), *(a * step for step in steps[1:])]
    some = moves > 0
    slope = remainder - log_ratio + xp.where(some & (k > 0), reduce(add, steps), 0.0)
    along = a * remainder - cell + moves * log_ratio + xp.where(some, reduce(add, scaled), 0.0)
    return slope, along, moves


def digamma_rise(z: Array, n: Array) -> Array:
    """ψ(z + n) − ψ(z) less log((z + n)/z), with no cancellation of its leading term."""
    return binet_above(z + n, 1) - binet_above(z, 1) + 0.5 * n / (z * (z + n))


def trigamma_drop(xp: Any, z: Array, n: Array) -> Array:
    """ψ′(z) − ψ′(z + n), with no cancellation of its leading term."""
    moves = moves_up(xp, z)
    up = z + moves
    both = up + n
    above = n / (up * both) * (1 + 0.5 * (1 / up + 1 / both))
    steps = [
        n * (2 * z + 2 * j + n) / ((z + j) * (z + j + n)) ** 2 for j in range(precision_of(z).floor)
    ]
    moved = xp.where(moves > 0, reduce(add, steps), 0.0)
    return xp.where(n == 0, 0.0, above + moved + binet_above(up, 2) - binet_above(both, 2))


def lifts_of(total: Array, n: Array, floor: int) -> list[Array]:
    return [(total + j + n) / (total + j) for j in range(floor)]


def total_slope(xp: Any, total: Array, n: Array, moves: Array, most: int) -> Array:
    """ψ(A) − ψ(A+n) + log((A+n)/A) after A was moved up by `moves`, at most `most`."""
    up = total + moves
    steps = [xp.where(moves > j, n / ((total + j) * (total + j + n)), 0.0) for j in range(most)]
    return -digamma_rise(up, n) - reduce(add, steps)
