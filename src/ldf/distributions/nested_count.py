"""How many of n trials are of one class, when class after class is known by a Beta.

The rate is a product of Betas. Of few trials, all masses are summed factor after factor. Of many,
P(k or more) is an integral of moments for any k, whole or not (see `contour`). It is a polynomial
of the log odds of k on each of some panels, which are halved until the polynomial is right: then
intervals and quantiles of many units need no more integrals. Tables of the last calls are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.distributions import mixture_interval
from ldf.distributions.base import Univariate, check_q, on_host
from ldf.distributions.beta_binomial import mass_table
from ldf.distributions.beta_product import BetaProduct
from ldf.distributions.contour import invert_counts
from ldf.distributions.mixture_units import Units
from ldf.special import Array, Draws, floats, namespace

LOOKS = 17  # for the mode, at once
FEW = 128  # trials: of as many or fewer, all counts are computed
TERMS = 16  # of a polynomial
RIGHT = 3e-8  # what its last terms may be
HALVINGS = 30
EDGES = (
    -7.0,
    -3.8,
    -1.8,
    0.0,
    1.8,
    3.8,
    7.0,
)  # of the first panels, by standard deviations from the mean
NOTHING = 1e-11  # mass beyond them that is none
LARGEST = 2**53  # trials: beyond, floats are not whole numbers
KEPT = 20_000_000  # numbers in the tables of the last calls
EPS = float(np.finfo(float).eps)


class NestedCount(Univariate):
    """Of one class among further trials, at a rate that is a product of Betas: factors on the last
    axis. A factor without failures is sure to be one."""

    successes: Array
    failures: Array
    trials: Array
    table: Any = eqx.field(static=True, default=None)  # where there is one at hand
    row: Any = None  # of each unit in it

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
        row = None if self.row is None else self.row[rows]
        return NestedCount(c, d, xp.broadcast_to(self.trials, self.shape)[rows], self.table, row)

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

    # --- tables ---

    def _flat(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        many = np.shape(self.successes)[-1]
        c, d = (
            np.broadcast_to(np.asarray(p, float), (*self.shape, many)).reshape(-1, many)
            for p in (self.successes, self.failures)
        )
        return c, d, self.top.reshape(-1)

    def tabulated(self) -> NestedCount:
        """With a table at hand, also for some of the units."""
        leaves = (self.successes, self.failures, self.trials)
        if self.row is not None or namespace(*jax.tree.leaves(leaves)) is not np:
            return self
        row = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        return NestedCount(*leaves, _table_of(*self._flat()), row)

    def _cdf(self, k: np.ndarray) -> np.ndarray:
        """Of values for each unit, which may have others in front."""
        of = self.tabulated()
        row, k = np.broadcast_arrays(of.row, np.floor(k))
        return of.table.cdf(row.reshape(-1), k.reshape(-1)).reshape(k.shape)

    # --- answers ---

    @on_host
    def cdf(self, value: Any) -> Array:
        return self._cdf(np.asarray(value, float))

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        of, q = self.tabulated(), np.asarray(q, float)
        shape = np.broadcast_shapes(self.shape, q.shape)
        row, level = (np.broadcast_to(p, shape).reshape(-1) for p in (of.row, q))
        high = np.broadcast_to(self.top, shape).reshape(-1).copy()
        low, enough = np.full(len(high), -1.0), level * (1 - 8 * EPS)
        left = np.flatnonzero(high - low > 1)
        while len(left):
            middle = np.floor((low[left] + high[left]) / 2)
            reached = of.table.cdf(row[left], middle) >= enough[left]
            low[left] = np.where(reached, low[left], middle)
            high[left] = np.where(reached, middle, high[left])
            left = left[high[left] - low[left] > 1]
        return high.reshape(shape)

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

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        of = self.tabulated()
        size = int(np.prod(self.shape))
        rows = np.unravel_index(np.arange(size), self.shape) if self.shape else (None,)
        units = Units(np.ones((1, size)), of[rows][None])
        ends = mixture_interval.narrowest_values(units, mass)
        return ends[:, 0].reshape(self.shape), ends[:, 1].reshape(self.shape)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, (c, d, n) = floats(self.successes, self.failures, self.trials)
        c, d = (xp.broadcast_to(p, (*self.shape, p.shape[-1])) for p in (c, d))
        source = Draws(draws, seed, c)
        odds = source.log_gamma(d) - source.log_gamma(c)
        rate = xp.exp(-xp.logaddexp(0.0, odds).sum(-1))
        return source.binomial(xp.broadcast_to(n, rate.shape), rate)


# --- tables -------------------------------------------------------------------------------------


class Table:
    """The distribution functions of rows: made when they are first asked for."""

    def __init__(self, c: np.ndarray, d: np.ndarray, n: np.ndarray) -> None:
        if n.max(initial=0) > LARGEST:
            row = int(np.argmax(n)) if len(n) > 1 else None
            remedy = f"distribution functions are tabulated up to {LARGEST:,} trials"
            raise check.DataError("trials", row, n.max(), "is too many to tabulate", remedy)
        self.c, self.d, self.n = c, d, n

    def cdf(self, row: np.ndarray, k: np.ndarray) -> np.ndarray:
        n = self.n[row]
        found = np.where(k >= n, 1.0, 0.0)
        inside = (k >= 0) & (k < n)
        few = np.flatnonzero(inside & (n <= FEW))
        found[few] = self._counts[row[few], k[few].astype(np.int64)]
        many = np.flatnonzero(inside & (n > FEW))
        found[many] = self._panels.cdf(row[many], _log_odds(k[many] + 1, n[many]))
        return np.clip(found, 0.0, 1.0)

    @cached_property
    def _counts(self) -> np.ndarray:
        """Of few trials: the mass up to each count, a row a unit."""
        few = np.flatnonzero(self.n <= FEW)
        table = np.ones((len(self.n), int(self.n[few].max(initial=0)) + 1))
        for n in np.unique(self.n[few]):
            rows = few[self.n[few] == n]
            table[rows, : int(n) + 1] = np.cumsum(
                thinned(self.c[rows], self.d[rows], int(n)), axis=1
            )
        return table

    @cached_property
    def _panels(self) -> Panels:
        return panels(self.c, self.d, self.n)


def thinned(c: np.ndarray, d: np.ndarray, n: int) -> np.ndarray:
    """The mass of 0 … n, a row a unit: factor after factor keeps a beta-binomial of those left."""
    left = np.zeros((len(c), n + 1))
    left[:, n] = 1.0
    for j in range(c.shape[1]):
        at = np.flatnonzero(d[:, j] > 0)
        kept = np.zeros((len(at), n + 1))
        for m in range(n + 1):
            each = mass_table(c[at, j], d[at, j], np.full(len(at), float(m)))
            kept[:, : m + 1] += left[at, m, None] * each
        left[at] = kept
    return left


def _log_odds(k: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.log(k) - np.log(n + 1 - k)


class Panels(NamedTuple):
    """P(fewer than k) by Chebyshev polynomials of the log odds of k, in order of rows and places.
    Before a row's first panel it is zero, after its last it is one."""

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    terms: np.ndarray

    def cdf(self, row: np.ndarray, t: np.ndarray) -> np.ndarray:
        # All rows as one rising list: log odds are between ±40.
        order = 100.0 * self.row + self.start
        at = np.searchsorted(order, 100.0 * row + t, side="right") - 1
        at = np.maximum(at, 0)
        at = np.where(self.row[at] < row, np.minimum(at + 1, len(order) - 1), at)
        start, end = self.start[at], self.end[at]
        x = np.clip((2 * t - start - end) / (end - start), -1.0, 1.0)
        found = _chebyshev(self.terms[at], x)
        return np.where(t < start, 0.0, np.where(t > end, 1.0, found))


ANGLES = np.pi * (np.arange(TERMS) + 0.5) / TERMS
PLACES = np.cos(ANGLES)
TO_TERMS = np.cos(ANGLES[:, None] * np.arange(TERMS)) * np.where(np.arange(TERMS) > 0, 2, 1) / TERMS


def _chebyshev(terms: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Σ c_j T_j(x), by Clenshaw's recurrence."""
    one, two = np.zeros_like(x), np.zeros_like(x)
    for j in range(TERMS - 1, 0, -1):
        one, two = 2 * x * one - two + terms[:, j], one
    return x * one - two + terms[:, 0]


@np.errstate(all="ignore")
def panels(c: np.ndarray, d: np.ndarray, n: np.ndarray) -> Panels:
    """Of the rows of many trials."""
    many = np.flatnonzero(n > FEW)
    of = NestedCount(c[many], d[many], n[many])
    mean, sd = of.mean()[:, None], np.sqrt(of.variance())[:, None]
    top = n[many][:, None]
    inner = np.clip(mean + sd * np.array(EDGES) + 1, 1.0, top)
    edges = _log_odds(np.concatenate([np.ones_like(top), inner, top], 1), top)

    def below(row: np.ndarray, t: np.ndarray) -> np.ndarray:
        top = n[row][:, None]
        k = np.clip((top + 1) / (1 + np.exp(-t)), 1.0, top).reshape(-1)
        row = np.repeat(row, t.shape[1])
        return invert_counts(c[row], d[row], k, n[row]).below().reshape(t.shape)

    # Where nothing is beyond the outermost of them, nothing is looked at.
    first, last = below(many, edges[:, [1, -2]]).T
    edges[:, 0] = np.where(first < NOTHING, edges[:, 1], edges[:, 0])
    edges[:, -1] = np.where(last > 1 - NOTHING, edges[:, -2], edges[:, -1])
    row = np.repeat(many, edges.shape[1] - 1)
    start, end = edges[:, :-1].reshape(-1), edges[:, 1:].reshape(-1)
    row, start, end = (part[start < end] for part in (row, start, end))
    done = []
    for turn in range(HALVINGS):
        places = (start + end)[:, None] / 2 + (end - start)[:, None] / 2 * PLACES
        terms = below(row, places) @ TO_TERMS
        good = (np.abs(terms[:, -2:]).max(1) <= RIGHT) | (turn == HALVINGS - 1)
        done.append([part[good] for part in (row, start, end, terms)])
        row, start, end = (np.repeat(part[~good], 2) for part in (row, start, end))
        if not len(row):
            break
        middle = (start[::2] + end[::2]) / 2
        end[::2], start[1::2] = middle, middle
    row, start, end, terms = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.lexsort((start, row))
    return Panels(row[order], start[order], end[order], terms[order])


_kept: OrderedDict[bytes, Table] = OrderedDict()
_lock = threading.Lock()


def _table_of(c: np.ndarray, d: np.ndarray, n: np.ndarray) -> Table:
    """That of an earlier call with the same numbers, or a new one."""
    key = blake2b(repr(c.shape).encode())
    for part in (c, d, n):
        key.update(np.ascontiguousarray(part).tobytes())
    name = key.digest()
    with _lock:
        found = _kept.pop(name, None) or Table(c, d, n)
        _kept[name] = found
        # A row of many trials has about a hundred numbers.
        while len(_kept) > 1 and sum(100 * len(table.n) for table in _kept.values()) > KEPT:
            _kept.popitem(last=False)
    return found
