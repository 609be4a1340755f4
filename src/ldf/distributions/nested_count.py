"""How many of n trials are of one class, when class after class is known by a Beta.

The rate is a product of Betas. Distribution functions are tabulated: see `nested_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ldf.distributions.base import Tabled, check_q, on_host
from ldf.distributions.beta_product import BetaProduct
from ldf.distributions.contour import invert_counts
from ldf.distributions.nested_table import Asked, table_of
from ldf.special import Array, Draws, floats, namespace

LOOKS = 17  # for the mode, at once

Ask = Callable[[Asked, np.ndarray], np.ndarray]  # (table, its rows) → their answers


class NestedCount(Tabled):
    """Of one class among further trials, at a rate that is a product of Betas: factors on the last
    axis. A factor without failures is sure to be one."""

    successes: Array
    failures: Array
    trials: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.successes)[:-1], np.shape(self.trials))

    @property
    def top(self) -> Array:
        """The largest possible value."""
        return np.broadcast_to(np.asarray(self.trials, float), self.shape)

    def __getitem__(self, rows: Any) -> NestedCount:
        xp = namespace(self.successes, self.trials)
        many = np.shape(self.successes)[-1]
        c, d = (
            xp.broadcast_to(p, (*self.shape, many))[rows] for p in (self.successes, self.failures)
        )
        return NestedCount(c, d, xp.broadcast_to(self.trials, self.shape)[rows])

    @property
    def _rate(self) -> BetaProduct:
        return BetaProduct(self.successes, self.failures)

    def mean(self) -> Array:
        _, (n,) = floats(self.trials)
        return n * self._rate.mean()

    def variance(self) -> Array:
        """That of counts at a known rate, and n² times that of the rate."""
        _, (n,) = floats(self.trials)
        mean, spread = self._rate.mean(), self._rate.variance()
        return n * (mean * (1 - mean) - spread) + n * n * spread

    # --- answers ---

    def _flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        many = np.shape(self.successes)[-1]
        c, d = (
            np.broadcast_to(np.asarray(p, float), (*self.shape, many)).reshape(-1, many)
            for p in (self.successes, self.failures)
        )
        return c, d, self.top.reshape(-1)

    def _spread(self, shape: tuple[int, ...]) -> NestedCount:
        """The same units, once for each of several values."""
        wide = np.broadcast_shapes(self.shape, shape)
        return NestedCount(self.successes, self.failures, np.broadcast_to(self.trials, wide))

    @on_host
    def cdf(self, value: Any) -> Array:
        of = self._spread(np.shape(value))
        k = np.floor(np.broadcast_to(np.asarray(value, float), of.shape).reshape(-1))
        return of._by_table(lambda table, rows: table.cdf(k[rows]))

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        of = self._spread(np.shape(q))
        level = np.broadcast_to(np.asarray(q, float), of.shape).reshape(-1)
        return of._by_table(lambda table, rows: table.quantile(level[rows]))

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        ends = self._by_table(lambda table, _: table.narrowest(mass))
        return ends[..., 0], ends[..., 1]

    def _by_table(self, ask: Ask) -> np.ndarray:
        found = self.by_table(np.ones((1, int(np.prod(self.shape)))), ask)
        return found.reshape(self.shape + found.shape[1:])

    @property
    def mixes(self) -> bool:
        """If components have the same trials."""
        return bool((self.top == self.top[:1]).all())

    def by_table(self, weights: np.ndarray, ask: Ask) -> np.ndarray:
        c, d, n = self._flat()
        size, many = weights.shape[0], c.shape[-1]
        c, d = (np.moveaxis(part.reshape(*weights.shape, many), 0, 1) for part in (c, d))
        # The same unit may be asked about several values: it is in the table once.
        units = np.column_stack(
            [weights.T, *(p.reshape(len(p), size * many) for p in (c, d)), n[: len(c)]]
        )
        units, which = np.unique(units, axis=0, return_inverse=True)
        weights, c, d, n = np.split(units, np.cumsum([size, size * many, size * many]), 1)
        shape = (len(units), size, many)
        table = table_of(weights, c.reshape(shape), d.reshape(shape), n[:, 0])
        which = which.reshape(-1)
        return ask(table[which], np.arange(len(which)))

    @on_host
    def log_prob(self, value: Any) -> Array:
        shape = np.broadcast_shapes(self.shape, np.shape(value))
        many = np.shape(self.successes)[-1]
        c, d = (
            np.broadcast_to(np.asarray(p, float), (*shape, many)).reshape(-1, many)
            for p in (self.successes, self.failures)
        )
        k, n = (np.broadcast_to(p, shape).reshape(-1) for p in (value, self.top))
        found = np.where((k == 0) & (n == 0), 0.0, -np.inf)
        with np.errstate(all="ignore"):
            at = np.flatnonzero((k >= 1) & (k <= n) & (k == np.floor(k)))
            inverted = invert_counts(c[at], d[at], k[at], n[at], mass=True)
            found[at] = inverted.log_density - np.log(k[at])
            at = np.flatnonzero((k == 0) & (n > 0))
            inverted = invert_counts(c[at], d[at], np.ones(len(at)), n[at])
            found[at] = np.where(inverted.upper, np.log(inverted.below()), inverted.log_tail)
        return found.reshape(shape)

    def mode(self) -> Array:
        """The likeliest count, by ever closer looks; NaN if both ends are as likely."""
        c, d, n = self._flat()
        of, units = NestedCount(c, d, n), np.arange(len(n))
        inner = of.quantile(np.linspace(0.02, 0.98, LOOKS)[:, None])
        x = np.sort(np.concatenate([np.zeros((1, len(n))), inner, n[None]]), 0)
        ends = of.log_prob(np.zeros(len(n))), of.log_prob(n)
        while True:
            mass = np.stack([of.log_prob(places) for places in x])
            best = mass.argmax(0)
            tie = (n > 1) & (np.abs(ends[0] - ends[1]) < 1e-12) & (mass.max(0) <= np.maximum(*ends))
            low, high = (
                x[np.maximum(best - 1, 0), units],
                x[np.minimum(best + 1, len(x) - 1), units],
            )
            if (high - low <= 2).all():
                return np.where(tie, np.nan, x[best, units]).reshape(self.shape)
            x = np.round(low + (high - low) * np.linspace(0, 1, LOOKS)[:, None])

    def sample(self, draws: int, seed: Any) -> Array:
        xp, (c, d, n) = floats(self.successes, self.failures, self.trials)
        c, d = (xp.broadcast_to(p, (*self.shape, p.shape[-1])) for p in (c, d))
        source = Draws(draws, seed, c)
        odds = source.log_gamma(d) - source.log_gamma(c)
        rate = xp.exp(-xp.logaddexp(0.0, odds).sum(-1))
        return source.binomial(xp.broadcast_to(n, rate.shape), rate)
