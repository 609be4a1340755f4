"""Counts among trials at a rate that is a mixture of products of Betas: many of them at once.

As in `contour`, P(fewer than k) is an integral along a line in the complex plane,

    E[θ^s] · Γ(k − s) Γ(n + 1) / (Γ(k) Γ(n + 1 − s)) · 1/s,

but here one line serves all components, whose moments E[θ^s] are added up first, and many k, which
change one factor only. So it need not go through any saddle point: it is near where that would be
if the middle of the places were asked for and all were normal. Distribution functions are right to
about 1e-9. Where sums do not settle (components far apart), the answer is NaN: ask `contour`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldf.distributions.contour import Line, Moments, above_tangent, polygamma
from ldf.special import binet, digamma

STEP = 0.3  # of u
ALIKE = 1e-5  # two sums: about the square is left of their mean's error
REFINED = 4  # times at most
NODES = 8  # at once
MOST = 25  # times
NEGLIGIBLE = 1e-12
HUGE = 1e5  # beyond, too many digits cancel
FARTHEST = 2.5  # by the standard deviation: from zero to the line
ROWS = 512  # at once: as many as a processor keeps near


class Law(NamedTuple):
    """Of counts: for each row, a mixture of products of Betas."""

    weights: np.ndarray  # rows × components
    c: np.ndarray  # rows × components × factors
    d: np.ndarray  # zero where there is no such factor
    n: np.ndarray  # trials
    pole: np.ndarray  # moments exist down to less than this
    cumulants: np.ndarray  # rows × 3, of log θ

    @classmethod
    def of(cls, weights: np.ndarray, c: np.ndarray, d: np.ndarray, n: np.ndarray) -> Law:
        there = (d > 0) & (weights > 0)[..., None]
        pole = np.where(there, c, np.inf).min((1, 2))
        low, high = (_of_log_gamma(part) for part in (c, c + d))
        own = np.where(there, low - high, 0.0).sum(-1)  # cumulants × rows × components
        mean = (weights * own[0]).sum(1)
        off = own[0] - mean[:, None]
        second = (weights * (own[1] + off**2)).sum(1)
        third = (weights * (own[2] + 3 * off * own[1] + off**3)).sum(1)
        return cls(weights, c, d, n, pole, np.stack([mean, second, third], 1))

    def rows(self, at: np.ndarray | slice) -> Law:
        return Law(*(part[at] for part in self))


def _of_log_gamma(x: np.ndarray) -> np.ndarray:
    """The first three derivatives of log Γ, on a first axis."""
    return np.stack([digamma(x), *polygamma(x)])


@np.errstate(all="ignore")
def below(of: Law, k: np.ndarray) -> np.ndarray:
    """P(fewer than k), which need not be whole, from above 0 to n: rows × places."""
    found = np.empty(k.shape)
    for start in range(0, len(k), ROWS):
        at = slice(start, start + ROWS)
        found[at] = _integrate(_Places.of(of.rows(at), k[at]))
    return found


class _Places(NamedTuple):
    """Rows and their places, with what is the same for all nodes."""

    weights: np.ndarray
    theta: Moments  # of all components, row after row
    line: Line
    n: np.ndarray  # and one more
    k: np.ndarray
    binets: np.ndarray  # of the last two
    log_rest: np.ndarray  # −log k/(n + 1)

    @classmethod
    def of(cls, of: Law, k: np.ndarray) -> _Places:
        factors, n = of.c.shape[-1], of.n[:, None] + 1
        c, d = (part.reshape(-1, factors) for part in (of.c, of.d))
        theta = Moments.of(c, d, np.ones(factors), np.zeros(len(c)))
        binets = binet(np.concatenate([n, k], 1))
        return cls(of.weights, theta, _line(of, k), n, k, binets, -np.log(k / n))

    def rows(self, at: np.ndarray) -> _Places:
        if len(at) == len(self.k):
            return self
        size = self.weights.shape[1]
        theta = self.theta.rows((size * at[:, None] + np.arange(size)).reshape(-1))
        rest = (part[at] for part in self[3:])
        return _Places(self.weights[at], theta, self.line.rows(at), *rest)

    def at(self, u: np.ndarray) -> np.ndarray:
        """What is to be summed: rows × places × nodes."""
        s, speed = self.line.at(u)
        rows, size = self.weights.shape
        each = _exp(self.theta.log(np.repeat(s, size, 0))).reshape(rows, size, -1)
        there = (self.weights > 0)[..., None]
        moments = np.where(there, self.weights[..., None] * each, 0.0).sum(1)
        # Γ of n + 1 and of k may be out of range, but not their ratio.
        shared = above_tangent(self.n, -s, self.binets[:, :1])[:, None]
        wide = np.repeat(s, self.k.shape[1], 0)
        own = above_tangent(self.k.reshape(-1, 1), -wide, self.binets[:, 1:].reshape(-1, 1))
        own += wide * self.log_rest.reshape(-1, 1)
        return (moments * (speed / s))[:, None] * _exp(own.reshape(*self.k.shape, -1) - shared)


def _exp(z: np.ndarray) -> np.ndarray:
    found = np.empty(z.shape, complex)
    size, angle = np.exp(np.real(z)), np.imag(z)
    found.real, found.imag = size * np.cos(angle), size * np.sin(angle)
    return found


def _line(of: Law, k: np.ndarray) -> Line:
    """Where M(s)/s were lowest if log θ − log V were normal, on the side of the smaller tail."""
    middle, least = k[:, k.shape[1] // 2], k.min(1)
    place, last = _of_log_gamma(middle), _of_log_gamma(of.n + 1)
    signs = np.array([-1.0, 1.0, -1.0])
    mean, variance, third = of.cumulants.T + signs[:, None] * (place - last)
    right = mean < 0
    pole = np.where(right, least, of.pole)
    lowest = (np.abs(mean) + np.sqrt(mean**2 + 4 * variance)) / (2 * variance)
    s = np.minimum(np.minimum(lowest, FARTHEST / np.sqrt(variance)), pole / 2)
    scale = 1 / np.sqrt(variance + 1 / s**2 + 1 / (pole - s) ** 2)
    # Short of the lowest place moments grow towards zero: the line is not bent there.
    inwards = (s < lowest) & (right == (third < 0))
    twist = np.where(inwards, 0.0, third / variance)
    return Line.bent(np.where(right, s, -s), scale, twist, (of.pole, least))


def _integrate(of: _Places) -> np.ndarray:
    sums, peak = _summed(of, 0.0, STEP)
    left, step = np.arange(len(sums)), STEP
    for _ in range(REFINED):
        # Places in between: where both sums are alike, their mean is off by the square of that.
        between, _ = _summed(of.rows(left), step / 2, step)
        apart = np.abs(between - sums[left]).max(1) > ALIKE
        sums[left] = (sums[left] + between) / 2
        left, step = left[apart], step / 2
        if not len(left):
            break
    sums[left] = np.nan
    sums[peak > HUGE] = np.nan
    # To the right of zero it is what is above.
    return np.where(of.line.centre[:, None] > 0, 1 - sums / np.pi, -sums / np.pi)


def _summed(of: _Places, start: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """From a place on, with the largest term of each row; what is on the other side of the real
    line is the same."""
    sums, peak, left = np.zeros(of.k.shape), np.zeros(len(of.k)), np.arange(len(of.k))
    for turn in range(MOST):
        value = of.rows(left).at(start + step * (NODES * turn + np.arange(NODES)))
        size = np.abs(value).max(1)
        peak[left] = np.fmax(peak[left], size.max(1))
        if turn == 0 and start == 0:
            value[..., 0] /= 2
        sums[left] += step * np.real(value).sum(-1)
        left = left[~(size[:, -1] <= NEGLIGIBLE)]
        if not len(left):
            break
    sums[left] = np.nan
    return sums, peak
