"""Products of independent Betas, and counts among trials at such a rate, by their moments.

With θ = Π_j u_j and u_j ~ Be(c_j, d_j) all moments are known, those of complex powers too:

    E[θ^s]  =  Π_j  Γ(c_j + s) Γ(c_j + d_j) / (Γ(c_j) Γ(c_j + d_j + s)).

The distribution function is an integral of these (Mellin's inversion) along a line in the complex
plane, to the right of zero for what is above x, to its left for what is below:

    P(θ > x)  =  1/2πi ∫ E[(θ/x)^s] ds/s,      density of log θ  =  1/2πi ∫ E[(θ/x)^s] ds.

Counts among n trials are no harder: that k or more of n trials succeed at rate θ means that θ is
above the k-th smallest of n uniform numbers, V ~ Be(k, n − k + 1). Then the moments are those of
θ/V, x is one, and the second integral is k P(k).

The line goes through the saddle point of the integrand, where that does not oscillate. Equal steps
of u make s = σ + b (i sinh u − bend (cosh u − 1)) dense there and far apart in long tails; the sum
over a dozen of them is right to 1e-8 at least. Bent as the steepest descent is, the line lets
(1/x)^s die out. Large logarithms are subtracted on paper: log Γ(c + s) is taken from its tangent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # special is loaded when it is asked for

from ldf.special import HALF_LOG_2PI, binet

STEP = 0.3  # of u
ALIKE = 1e-6  # two sums, by their size: about the square is left of their mean's error
REFINED = 5  # times at most
NODES = 5  # at once
MOST = 100  # times
NEGLIGIBLE = 1e-15  # by the sum so far
MOST_BENT = 0.7  # to 35°
NEAR = 20.0  # poles, that the line is not bent away from
FAR = 4.0  # the square of the lowest place, by its width
LEAST, FARTHEST, HALVINGS = -45.0, 45.0, 14  # logarithms of where that is looked for
SMALL = 50.0  # up to which log Γ itself has digits enough
CLOSE = 12.0  # up to which Stirling's series is not right
ROWS = 1024  # at once


class Inverted(NamedTuple):
    """Of each row: one tail, its logarithm, and the density of log θ."""

    upper: np.ndarray  # whether the tail is above x
    log_tail: np.ndarray
    log_density: np.ndarray
    rise: np.ndarray  # of the log density, by −log x

    def below(self) -> np.ndarray:
        tail = np.minimum(np.exp(self.log_tail), 1.0)
        return np.where(self.upper, 1 - tail, tail)

    def above(self) -> np.ndarray:
        tail = np.minimum(np.exp(self.log_tail), 1.0)
        return np.where(self.upper, tail, 1 - tail)


class Moments(NamedTuple):
    """log E[(θ/x)^s] of rows: of products of factors Be(c, d), the last of which divides if the
    rows are of counts."""

    c: np.ndarray  # rows × factors
    d: np.ndarray  # zero where a row has no such factor
    sign: np.ndarray  # of each factor: +1, or −1 if it divides
    log_rest: np.ndarray  # −log x, and Σ ± log c/(c + d)
    binets: np.ndarray  # of c and of c + d

    @classmethod
    def of(cls, c: np.ndarray, d: np.ndarray, sign: np.ndarray, log_x: np.ndarray) -> Moments:
        log_rest = -log_x - (sign * np.log1p(d / c)).sum(1)
        return cls(c, d, sign, log_rest, np.stack([binet(c), binet(c + d)], -1))

    def rows(self, at: np.ndarray) -> Moments:
        return Moments(self.c[at], self.d[at], self.sign, self.log_rest[at], self.binets[at])

    def log(self, s: np.ndarray) -> np.ndarray:
        """At rows × places."""
        found = s * self.log_rest[:, None]
        for j, sign in enumerate(self.sign):
            at = np.flatnonzero(self.d[:, j] > 0)
            at = slice(None) if len(at) == len(self.d) else at
            c, d, power = self.c[at, j, None], self.d[at, j, None], sign * s[at]
            one, two = (self.binets[at, j, i, None] for i in (0, 1))
            found[at] += above_tangent(c, power, one) - above_tangent(c + d, power, two)
        return found

    def slope(self, s: np.ndarray) -> np.ndarray:
        """Of the logarithm at real places, one a row."""
        at, psi = self.c + self.sign * s[:, None], scipy.special.psi
        each = psi(at) - psi(at + self.d) + np.log1p(self.d / self.c)
        return np.where(self.d > 0, self.sign * each, 0.0).sum(1) + self.log_rest

    def curves(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Its next two derivatives, nearly."""
        at = self.c + self.sign * s[:, None]
        (second, third), (less, least) = polygamma(at), polygamma(at + self.d)
        second, third = second - less, self.sign * (third - least)
        return second.sum(1, where=self.d > 0), third.sum(1, where=self.d > 0)


def polygamma(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two derivatives of digamma, nearly."""
    t, own = 1 / (x + 1), 1 / x
    second = own * own + t * (1 + t * (0.5 + t / 6))
    return second, -2 * own**3 - t * t * (1 + t * (1 + t / 2))


def above_tangent(c: np.ndarray, s: np.ndarray, binet_of_c: np.ndarray) -> np.ndarray:
    """log Γ(c + s) − log Γ(c) − s log c."""
    found = np.empty(np.broadcast_shapes(c.shape, s.shape), s.dtype)
    small = c[:, 0] < SMALL
    if small.any():
        a, p = c[small], s[small]
        found[small] = scipy.special.loggamma(a + p) - scipy.special.gammaln(a) - p * np.log(a)
    if not small.all():
        a, p = c[~small], s[~small]
        z = a + p
        found[~small] = (z - 0.5) * _log1p(p / a) - p + (_binet(z) - binet_of_c[~small])
    return found


def _log1p(z: np.ndarray) -> np.ndarray:
    if not np.iscomplexobj(z):
        return np.log1p(z)
    x, y = np.real(z), np.imag(z)
    return 0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x)


def _binet(z: np.ndarray) -> np.ndarray:
    """`binet` of complex numbers."""
    t = 1 / z
    w = t * t
    found = t * (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w / 1680)))
    small = np.abs(z) < CLOSE
    if small.any():  # to a pole
        z = z[small]
        stirling = (z - 0.5) * np.log(z) - z + HALF_LOG_2PI
        found[small] = scipy.special.loggamma(z) - stirling
    return found


def invert(c: np.ndarray, d: np.ndarray, log_x: np.ndarray) -> Inverted:
    """At x, of products of Betas: rows × factors, of which some may be missing (d = 0)."""
    return _by_blocks(Moments.of(c, d, np.ones(c.shape[1]), log_x), (-1, 0, 1))


def invert_counts(
    c: np.ndarray, d: np.ndarray, k: np.ndarray, n: np.ndarray, mass: bool = False
) -> Inverted:
    """That k or more of n trials succeed, or fewer; k need not be whole, from above 0 to n. What
    is instead of a density is k times the mass, if it is asked for."""
    factors, c, d = c.shape[1], np.column_stack([c, k]), np.column_stack([d, n + 1 - k])
    sign = np.append(np.ones(factors), -1.0)
    of = Moments.of(c, d, sign, np.zeros(len(c)))
    found = Inverted(np.ones(len(c), bool), *np.full((3, len(c)), np.nan))
    inner = np.flatnonzero(k < n)
    inverted = _by_blocks(of.rows(inner), (-1, 0) if mass else (-1,))
    for whole, part in zip(found, inverted, strict=True):
        whole[inner] = part
    # That all of them succeed is a moment.
    last = np.flatnonzero(k == n)
    every = Moments.of(c[last, :-1], d[last, :-1], sign[:-1], np.zeros(len(last)))
    found.log_tail[last] = every.log(n[last, None])[:, 0]
    found.log_density[last] = np.log(n[last]) + found.log_tail[last]
    return found


@np.errstate(all="ignore")
def _by_blocks(of: Moments, powers: tuple[int, ...]) -> Inverted:
    blocks = (np.arange(i, min(i + ROWS, len(of.c))) for i in range(0, len(of.c), ROWS))
    found = [_integrate(of.rows(at), powers) for at in blocks]
    if not found:
        return Inverted(np.zeros(0, bool), *np.zeros((3, 0)))
    return Inverted(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class Line(NamedTuple):
    """s by u, of each row."""

    centre: np.ndarray
    scale: np.ndarray
    bend: np.ndarray

    def rows(self, at: np.ndarray) -> Line:
        return Line(*(part[at] for part in self))

    @classmethod
    def bent(cls, centre: np.ndarray, scale: np.ndarray, twist: np.ndarray, ends: Any) -> Line:
        """As the steepest descent is, by the third derivative of log M (over the second), but by
        less than 45°: a narrow factor's moments grow behind that. So do those of a factor with
        poles near zero on the other side. Poles to the left and to the right are so far away."""
        bend = np.clip(-scale * twist / 3, -MOST_BENT, MOST_BENT)
        near = np.where(bend > 0, ends[1], ends[0]) < NEAR
        return cls(centre, scale, np.where(near, 0.0, bend))

    def at(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s, and ds by i du."""
        centre, scale, bend = (part[:, None] for part in self)
        s = centre + scale * (1j * np.sinh(u) - bend * (np.cosh(u) - 1))
        return s, scale * (np.cosh(u) + 1j * bend * np.sinh(u))


def _line(of: Moments) -> Line:
    """Through where M(s)/s is lowest on the real line, on one side of zero."""
    # The left side, if M alone is lowest far to the left: the tail below is then small.
    nothing, first = np.zeros(len(of.c)), np.ones(len(of.c))
    far = _lowest(of, -first, nothing)
    left = (far < 0) & (far * far * of.curves(far)[0] > FAR)
    side = np.where(left, -first, first)
    s = _lowest(of, side, first)
    curve, twist = of.curves(s)
    # A pole may be weak, and not be felt before one is close to it: no wider than that is far.
    scale = 1 / np.sqrt(curve + 1 / (s * s) + 1 / (_end(of, side) - np.abs(s)) ** 2)
    return Line.bent(s, scale, twist / curve, (_end(of, -first), _end(of, first)))


def _lowest(of: Moments, side: np.ndarray, pole: np.ndarray) -> np.ndarray:
    """Of M(s)/|s|^pole, by halving."""
    end = _end(of, side)
    low, high = np.full(len(side), LEAST), np.full(len(side), FARTHEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        s = side * _away(middle, end)
        rises = side * (of.slope(s) - pole / s) > 0
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    return side * _away((low + high) / 2, end)


def _end(of: Moments, side: np.ndarray) -> np.ndarray:
    """Moments exist up to the pole next to zero."""
    return np.where((of.d > 0) & (of.sign * side[:, None] < 0), of.c, np.inf).min(1)


def _away(y: np.ndarray, end: np.ndarray) -> np.ndarray:
    """e^y, but short of an end."""
    grown = np.exp(y)
    return np.where(np.isinf(end), grown, end * (grown / (1 + grown)))


def _integrate(of: Moments, powers: tuple[int, ...]) -> Inverted:
    line = _line(of)
    top = of.log(line.centre[:, None])[:, 0]
    sums = _summed(of, line, top, powers, 0.0, STEP)
    left, step = np.arange(len(top)), STEP
    for _ in range(REFINED):
        # Places in between: where both sums are alike, their mean is off by the square of that.
        between = _summed(of.rows(left), line.rows(left), top[left], powers, step / 2, step)
        apart = np.abs(between - sums[:, left]) > ALIKE * np.abs(sums[:, left])
        sums[:, left] = (sums[:, left] + between) / 2
        left, step = left[apart[:2].any(0)], step / 2
        if not len(left):
            break
    tail, density, moved = [*(sums / np.pi), *[np.full(len(top), np.nan)] * (3 - len(powers))]
    upper = line.centre > 0
    log_tail = top + np.log(np.maximum(np.where(upper, tail, -tail), 0.0))
    return Inverted(upper, log_tail, top + np.log(np.maximum(density, 0.0)), moved / density)


def _summed(
    of: Moments, line: Line, top: np.ndarray, powers: tuple[int, ...], start: float, step: float
) -> np.ndarray:
    """Of M times powers of s, from a place on: what is on the other side of the real line is the
    same but for its sign there."""
    sums, left = np.zeros((len(powers), len(top))), np.arange(len(top))
    for turn in range(MOST):
        u = start + step * (NODES * turn + np.arange(NODES))
        s, speed = line.rows(left).at(u)
        value = np.exp(of.rows(left).log(s) - top[left, None]) * (speed * step)
        if turn == 0 and start == 0:
            value[:, 0] /= 2
        parts = np.stack([value * s**power for power in powers])
        sums[:, left] += parts.real.sum(-1)
        dies = np.abs(parts[:, :, -1]) <= NEGLIGIBLE * np.abs(sums[:, left])
        left = left[~dies.all(0)]
        if not len(left):
            break
    return sums
