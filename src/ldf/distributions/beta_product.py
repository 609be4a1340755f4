"""A product of independent Betas: the probability of one class, when class after class is known by
a Beta. Answers are integrals of its moments: see `contour`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # special is loaded when it is asked for

from ldf.distributions import mixture_interval
from ldf.distributions.base import Continuous, call_on_host, check_q, on_host
from ldf.distributions.beta import Beta
from ldf.distributions.contour import Inverted, invert
from ldf.distributions.mixture_search import root
from ldf.distributions.mixture_units import Units
from ldf.distributions.search import Scale
from ldf.special import Array, Draws, floats
from ldf.statistic import Trials

LOWEST, HIGHEST = -700.0, 37.0  # log odds that are looked at
TAIL = 27.0  # nats, of which nothing is left for the entropy
STEPS, MOST, AGREE = 64, 8192, 1e-7  # of its integral
CLOSE = 1e6  # odds, by the largest factor's observations, from which on a density is a power


class BetaProduct(Continuous):
    """Π_j u_j with u_j ~ Be(successes_j, failures_j), factors on the last axis. A factor without
    failures is sure to be one."""

    successes: Array
    failures: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.successes)[:-1]

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def __getitem__(self, rows: Any) -> BetaProduct:
        return BetaProduct(self.successes[rows], self.failures[rows])

    def mean(self) -> Array:
        _, (c, d) = floats(self.successes, self.failures)
        return (c / (c + d)).prod(-1)

    def variance(self) -> Array:
        """mean² times what E[u²]/E[u]², over all factors, is above one."""
        xp, (c, d) = floats(self.successes, self.failures)
        return self.mean() ** 2 * xp.expm1(xp.log1p(d / c / (c + d + 1)).sum(-1))

    # --- rows of numbers ---

    def _flat(self, value: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Factors and value, for each unit and value."""
        shape = np.broadcast_shapes(self.shape, np.shape(value))
        many = self.successes.shape[-1]
        c, d = (
            np.broadcast_to(np.asarray(part, float), (*shape, many)).reshape(-1, many)
            for part in (self.successes, self.failures)
        )
        return c, d, np.broadcast_to(np.asarray(value, float), shape).reshape(-1)

    def _inverted(self, value: Any, ask: Any, alone: Any) -> np.ndarray:
        """At values inside of the support: by the integrals, or by the Beta if there is but one
        factor. Elsewhere NaN."""
        c, d, x = self._flat(value)
        found, inside = np.full(len(x), np.nan), (x > 0) & (x < 1)
        single = (d > 0).sum(-1) == 1
        at = np.flatnonzero(inside & single)
        which = (d[at] > 0).argmax(-1)
        beta = Beta(Trials(c[at, which], d[at, which]))
        found[at] = alone(beta, x[at])
        at = np.flatnonzero(inside & ~single)
        with np.errstate(all="ignore"):
            found[at] = ask(invert(c[at], d[at], np.log(x[at])), x[at])
        return found.reshape(np.broadcast_shapes(self.shape, np.shape(value)))

    # --- answers ---

    @on_host
    def cdf(self, value: Any) -> Array:
        found = self._inverted(value, lambda at, x: at.below(), lambda beta, x: beta.cdf(x))
        return np.where(value <= 0, 0.0, np.where(value >= 1, 1.0, found))

    @on_host
    def exceeds(self, value: Any) -> Array:
        found = self._inverted(value, lambda at, x: at.above(), lambda beta, x: beta.exceeds(x))
        return np.where(value <= 0, 1.0, np.where(value >= 1, 0.0, found))

    @on_host
    def log_prob(self, value: Any) -> Array:
        def ask(at: Inverted, x: np.ndarray) -> np.ndarray:
            return at.log_density - np.log(x)

        found = self._inverted(value, ask, lambda beta, x: beta.log_prob(x))
        at_start, at_end = self._at_ends()
        found = np.where(value == 0, at_start, np.where(value == 1, at_end, found))
        return np.where((value < 0) | (value > 1), -np.inf, found)

    def slope(self, value: Array) -> Array:
        def ask(at: Inverted, x: np.ndarray) -> np.ndarray:
            return -(1 + at.rise) / x

        return self._inverted(value, ask, lambda beta, x: beta.slope(x))

    def _powers(self) -> tuple[np.ndarray, np.ndarray]:
        """The density is like θ^(a − 1) near zero, if no other factor is as low, and like
        (1 − θ)^(b − 1) near one."""
        c, d = np.asarray(self.successes, float), np.asarray(self.failures, float)
        return np.where(d > 0, c, np.inf).min(-1), d.sum(-1)

    def _at_ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The log density at zero and at one."""
        c, d = np.asarray(self.successes, float), np.asarray(self.failures, float)
        first, last = self._powers()
        lowest = (c == first[..., None]) & (d > 0)
        with np.errstate(all="ignore"):
            # Of the lowest factor, a = 1, and E[1/u] of the others; two such are infinite.
            others = np.where(lowest, d, np.where(d > 0, (c + d - 1) / (c - 1), 1.0))
            flat = np.where(lowest.sum(-1) > 1, np.inf, np.log(others).sum(-1))
            # Π Γ(c + d)/Γ(c), by what is left of their moments: Γ(c + s)/Γ(c + d + s) → s^−d.
            ones = _log_gamma_ratio(c, d).sum(-1)
        at_start = np.where(first < 1, np.inf, np.where(first > 1, -np.inf, flat))
        return at_start, np.where(last < 1, np.inf, np.where(last > 1, -np.inf, ones))

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        c, d, level = self._flat(q)
        rows = np.flatnonzero((level > 0) & (level < 1))
        some, level, found = BetaProduct(c[rows], d[rows]), level[rows], level.copy()
        wanted = np.log(level) - np.log1p(-level)

        def above(at: np.ndarray, x: np.ndarray) -> np.ndarray:
            """By the odds of being below, which are nearly a line."""
            odds = np.maximum([some[at].cdf(x), some[at].exceeds(x)], 1e-300)
            return np.log(odds[0] / odds[1]) - wanted[at]

        found[rows] = some._crossing(above)
        return found.reshape(np.broadcast_shapes(self.shape, np.shape(q)))

    @np.errstate(all="ignore")
    def _crossing(self, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Where a function of (units, x) becomes positive, on a scale without ends: looked for from
        the mean outwards, and then between."""
        scale, mean = Scale(self.support), self.mean()
        centre, reach = scale.place(mean), self.sd() / (mean * (1 - mean))
        ends = []
        for side, most in ((-1, LOWEST), (1, HIGHEST)):
            end, left, away = centre.copy(), np.arange(len(mean)), 2.0
            while len(left):
                end[left] = np.clip((centre + side * away * reach)[left], LOWEST, HIGHEST)
                left = left[(side * function(left, scale.value(end[left])) < 0)]
                left, away = left[end[left] != most], 2 * away
            ends.append(end)
        return scale.value(root(lambda at, place: function(at, scale.value(place)), *ends))

    def mode(self) -> Array:
        """Where the density is highest: at an end where it is infinite, else where it stops to
        rise."""
        c, d, _ = self._flat(0.0)
        flat = BetaProduct(c, d)
        first, last = flat._powers()
        infinite = np.isposinf(flat._at_ends())
        both = np.where(first < last, 0.0, np.where(last < first, 1.0, np.nan))
        found = np.where(infinite.all(0), both, np.where(infinite[1], 1.0, 0.0))
        rows = np.flatnonzero(~infinite.any(0))
        some, speed = flat[rows], Scale(self.support).speed
        found[rows] = some._crossing(lambda at, x: np.arctan(-some[at].slope(x) * speed(x)))
        return found.reshape(self.shape)

    def entropy(self) -> Array:
        """In nats, to about 1e-6: a sum over equal steps on a scale without ends, dense in the
        middle, of which there are twice as many until nothing changes."""
        return call_on_host(lambda of: of._entropy(), 1, self.shape, self)

    @np.errstate(all="ignore")
    def _entropy(self) -> np.ndarray:
        c, d, _ = self._flat(0.0)
        flat, (first, last) = BetaProduct(c, d), (p.reshape(-1) for p in self._powers())
        place = Scale(self.support).place
        low, centre, high = (place(flat.quantile(q)) for q in (0.05, 0.5, 0.95))
        spread = (high - low) / 3
        # As far as a normal would reach, and as far as the powers at the ends would.
        below, above = low - 6 * spread - TAIL / first, high + 6 * spread + TAIL / last
        # Close to one the density is a power, and floats have too few digits of −log θ.
        close = np.log(CLOSE * (c + d).max(1))
        beyond, above = above > close, np.minimum(above, close)
        start, end = (np.arcsinh((side - centre) / spread) for side in (below, above))

        def total(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
            """Entropy and mass, of places by their share of the way."""
            w = start[rows, None] + (end - start)[rows, None] * shares
            t = centre[rows, None] + spread[rows, None] * np.sinh(w)
            log_x, log_rest = -np.logaddexp(0, -t), -np.logaddexp(0, t)
            many = len(shares)
            at = invert(np.repeat(c[rows], many, 0), np.repeat(d[rows], many, 0), log_x.reshape(-1))
            logs = at.log_density.reshape(log_x.shape)
            mass = np.exp(logs + log_rest) * spread[rows, None] * np.cosh(w)
            each = np.stack([np.where(mass > 0, -mass * (logs - log_x), 0.0), mass])
            return np.nansum(each, -1) * (end - start)[rows] / many

        end_mass, end_entropy = self._beyond(c, d, -np.logaddexp(0, -above), last)
        left, number = np.arange(len(c)), STEPS
        found = total(left, (np.arange(number) + 0.5) / number)
        while len(left) and number < MOST:
            number *= 2
            after = total(left, (np.arange(number) + 0.5) / number)
            whole = after[1] + np.where(beyond, end_mass, 0.0)[left]
            apart = np.abs([after[0] - found[0, left], whole - 1]).max(0) > AGREE
            found[:, left], left = after, left[apart]
        return (found[0] + np.where(beyond, end_entropy, 0.0)).reshape(self.shape)

    @staticmethod
    def _beyond(
        c: np.ndarray, d: np.ndarray, log_x: np.ndarray, last: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What mass and entropy are above x, where the density f is like (1 − θ)^(b − 1): with
        p = P(above x) it is −p (log f(x) − 1 + 1/b)."""
        at = invert(c, d, log_x)
        mass = at.above()
        return mass, np.where(mass > 0, -mass * (at.log_density - log_x - 1 + 1 / last), 0.0)

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """There may be a peak inside and one at an end: looked for as in mixtures."""
        lower, upper = mixture_interval.narrowest_interval(self._units(), mass)
        return lower.reshape(self.shape), upper.reshape(self.shape)

    def _units(self) -> Units:
        c, d, _ = self._flat(0.0)
        return Units(np.ones((1, len(c))), BetaProduct(c[None], d[None]))

    def sample(self, draws: int, seed: Any) -> Array:
        xp, (c, d) = floats(self.successes, self.failures)
        source = Draws(draws, seed, c)
        with np.errstate(over="ignore"):
            odds = source.log_gamma(d) - source.log_gamma(c)
            return xp.exp(-xp.logaddexp(0.0, odds).sum(-1))


def _log_gamma_ratio(c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """log Γ(c + d)/Γ(c)."""
    return scipy.special.gammaln(c + d) - scipy.special.gammaln(c)
