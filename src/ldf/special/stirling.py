"""The Binet function: what Stirling's formula leaves out, and its derivatives.

    log Γ(z) = (z − ½) log z − z + ½ log 2π + binet(z)

`binet` falls like 1/(12 z). Written through it, log-partitions, entropies and divergences lose
their huge terms (z log z − z) on paper instead of in floating point: that is what keeps them right
at concentrations where sums of log-gammas have no digit left.

Large arguments are a polynomial in 1/z; smaller ones are first moved up by the recurrence
Γ(z + 1) = z Γ(z). float32 reaches its precision from z = 1 on, float64 from z = 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy  # special is loaded when it is asked for

from ldf.special.arrays import Array, floats, is_single

HALF_LOG_2PI = 0.9189385332046727


@dataclass(frozen=True)
class Precision:
    """What a floating type needs: from where on, and with which polynomials."""

    floor: int  # the smallest argument of the polynomials
    binet: tuple[tuple[float, ...], ...]  # of binet, binet', binet'': Σ c_j t^j, t = 1/z
    squared: bool  # whether the polynomials run in t² rather than t
    atanh_terms: int  # terms of Σ v^2j / (2j + 1) for |v| < 0.1
    mask: int  # keeps the upper half of the significand
    bits: str


# float32: least-squares fits on 0 < t <= 1 (off by 6e-9, 2e-8 and 5e-8).
SINGLE = Precision(
    floor=1,
    binet=(
        (
            *(8.333334e-2, -3.463133e-7, -2.7698993e-3, -6.918567e-5),
            *(1.0946412e-3, -6.996833e-4, 1.8632102e-4, -1.3715224e-5),
        ),
        (
            *(-8.333334e-2, 1.917667e-6, 8.287648e-3, 4.2374755e-4),
            *(-5.935221e-3, 4.9373237e-3, -1.8866664e-3, 2.8892772e-4),
        ),
        (
            *(1.666667e-1, -6.706998e-6, -3.3143636e-2, -2.0697219e-3, 3.5007663e-2),
            *(-3.239644e-2, 1.149843e-2, 2.4972606e-4, -8.719759e-4),
        ),
    ),
    squared=False,
    atanh_terms=4,
    mask=0xFFFFF000,
    bits="uint32",
)

# float64: Stirling's series, B_2n / (2n (2n − 1)) z^(1 − 2n); its ninth term is below 1e-16 at 8.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
DOUBLE = Precision(
    floor=8,
    binet=(
        _STIRLING,
        tuple(-(2 * n + 1) * c for n, c in enumerate(_STIRLING)),
        tuple((2 * n + 1) * (2 * n + 2) * c for n, c in enumerate(_STIRLING)),
    ),
    squared=True,
    atanh_terms=8,
    mask=0xFFFFFFFFF8000000,
    bits="uint64",
)


def precision_of(value: Array) -> Precision:
    return SINGLE if is_single(value.dtype) else DOUBLE


def polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Σ c_j x^j by Horner, in the precision of x."""
    result = x * 0 + coefficients[-1]
    for c in coefficients[-2::-1]:
        result = result * x + c
    return result


def binet_above(z: Array, order: int = 0) -> Array:
    """The Binet function's derivative of that order, for z at or above the precision's floor."""
    p = precision_of(z)
    t = 1 / z
    return t ** (order + 1) * polynomial(p.binet[order], t * t if p.squared else t)


def _binet(z: Any, order: int) -> Array:
    xp, (z,) = floats(z)
    p = precision_of(z)
    low = z < p.floor
    up = xp.where(low, z + p.floor, z)
    at = binet_above(up, order)
    with np.errstate(all="ignore"):
        z = xp.where(low, z, 1.0)  # the other branch must stay finite: its gradient is taken too
        steps = [z + j for j in range(p.floor)]
        if order == 0:
            product = steps[0]
            for step in steps[1:]:
                product = product * step
            moved = (
                z * xp.log1p(p.floor / z)
                + (p.floor - 0.5) * xp.log(z + p.floor)
                + 0.5 * xp.log(z)
                - p.floor
                - xp.log(product)
            )
        elif order == 1:  # binet' = ψ − log + 1/2z, and ψ(z) = ψ(z + 1) − 1/z
            moved = (
                xp.log1p(p.floor / z)
                - 0.5 / (z + p.floor)
                + 0.5 / z
                - sum(1 / step for step in steps)
            )
        else:  # binet'' = ψ′ − 1/z − 1/2z²
            moved = (
                1 / (z + p.floor)
                + 0.5 / (z + p.floor) ** 2
                - 1 / z
                - 0.5 / z**2
                + sum(1 / step**2 for step in steps)
            )
        return xp.where(low, at + moved, at)


_binet_jax = jax.custom_jvp(lambda z: _binet(z, 0))
_binet1_jax = jax.custom_jvp(lambda z: _binet(z, 1))
_binet_jax.defjvp(lambda z, dz: (_binet_jax(*z), _binet1_jax(*z) * dz[0]))
_binet1_jax.defjvp(lambda z, dz: (_binet1_jax(*z), _binet(z[0], 2) * dz[0]))


def binet(z: Any) -> Array:
    """log Γ(z) − [(z − ½) log z − z + ½ log 2π] for z > 0.

    >>> float(binet(10.0))  # close to 1/120
    0.00833056343336287
    """
    return _binet_jax(z) if isinstance(z, jax.Array) else _binet(z, 0)


def binet_prime(z: Any) -> Array:
    """Its derivative, ψ(z) − log z + 1/(2z)."""
    return _binet1_jax(z) if isinstance(z, jax.Array) else _binet(z, 1)


def binet_second(z: Any) -> Array:
    """Its second derivative, ψ′(z) − 1/z − 1/(2z²)."""
    return _binet(z, 2)


def digamma(z: Any) -> Array:
    """ψ(z) for z > 0."""
    xp, (z,) = floats(z)
    return xp.log(z) - 0.5 / z + binet_prime(z)


def log_gamma(z: Any) -> Array:
    """log Γ(z) for z > 0."""
    xp, (z,) = floats(z)
    if xp is np:
        return scipy.special.gammaln(z)
    return jax.scipy.special.gammaln(z)


def log_rising(x: Any, by: Any) -> Array:
    """log Γ(x + by) − log Γ(x), without the cancellation of two large log-gammas."""
    xp, (x, by) = floats(x, by)
    return (x - 0.5) * xp.log1p(by / x) + by * (xp.log(x + by) - 1) + (binet(x + by) - binet(x))


def digamma_remainder(z: Any) -> Array:
    """ψ(z) − log z."""
    _, (z,) = floats(z)
    return binet_prime(z) - 0.5 / z


def log_gamma_divergence(y: Any, x: Any) -> Array:
    """What log Γ(y) lies above its tangent at x, less the same of z log z − z (a `deviance`)."""
    xp, (y, x) = floats(y, x)
    linear = (y - x) * (0.5 / x - binet_prime(x))
    return linear - 0.5 * xp.log(y / x) + (binet(y) - binet(x))


def multivariate_log_gamma(z: Any, dimension: int) -> Array:
    """log Γ_D(z) = D(D − 1)/4 · log π + Σ_j log Γ(z − j/2), j = 0 … D − 1."""
    _, (z,) = floats(z)
    constant = dimension * (dimension - 1) / 4 * float(np.log(np.pi))
    return constant + sum(log_gamma(z - j / 2) for j in range(dimension))


def multivariate_digamma(z: Any, dimension: int) -> Array:
    """Its derivative, Σ_j ψ(z − j/2)."""
    _, (z,) = floats(z)
    total = digamma(z)
    for j in range(1, dimension):
        total = total + digamma(z - j / 2)
    return total
