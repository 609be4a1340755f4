"""Distribution functions of counts at rates that are products of Betas, and of mixtures of them.

Of few trials, all masses are summed factor after factor. Of many, P(fewer than k) is an integral of
moments for any k, whole or not (see `one_line`). It is a polynomial of the log odds of k on each of
some panels, which are halved until the polynomial is right: then distribution functions, quantiles
and intervals of many units need no more integrals. Tables of the last calls are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from ldf import check
from ldf.distributions import one_line
from ldf.distributions.beta_binomial import (
    LARGEST,
    Counts,
    blocks_of_like_size,
    mass_table,
)
from ldf.distributions.contour import invert_counts
from ldf.distributions.one_line import Law

FEW = 128  # trials: of as many or fewer, all counts are computed
SINGLE_COUNTS = 1024  # trials: of as many or fewer, intervals are the best of all
TERMS = 16  # of a polynomial
RIGHT = 3e-8  # what its last terms may be
HALVINGS = 30
# Of the first panels, by standard deviations from the mean.
EDGES = np.array([-7.0, -3.8, -1.8, 0.0, 1.8, 3.8, 7.0])
NOTHING = 1e-11  # mass beyond them that is none
PLACES = 48  # of a panel, at which intervals may begin or end
KEPT = 20_000_000  # numbers in the tables of the last calls
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Asked:
    """A table, and the units that are asked about."""

    table: Table
    at: np.ndarray

    def cdf(self, k: np.ndarray) -> np.ndarray:
        return self.table.cdf(self.at, k)

    def quantile(self, q: np.ndarray) -> np.ndarray:
        return self.table.quantile(self.at, q * (1 - 8 * EPS))

    def narrowest(self, mass: float) -> np.ndarray:
        units, which = np.unique(self.at, return_inverse=True)
        return self.table.narrowest(units, mass)[which.reshape(-1)]


class Table:
    """Of units. What it holds is made when it is first asked for."""

    def __init__(self, law: Law) -> None:
        self.law = law

    def __getitem__(self, units: np.ndarray) -> Asked:
        return Asked(self, units)

    def narrowest(self, units: np.ndarray, mass: float) -> np.ndarray:
        """First and last of about the fewest neighbouring counts."""
        n = self.law.n[units]
        few, many = np.flatnonzero(n <= SINGLE_COUNTS), np.flatnonzero(n > SINGLE_COUNTS)
        ends = np.empty((len(units), 2))
        for block in blocks_of_like_size(n[few]):
            rows = few[block]
            k = np.arange(n[rows].max(initial=0) + 1)
            unit = np.repeat(units[rows], len(k))
            up_to = self.cdf(unit, np.tile(k, len(rows))).reshape(len(rows), len(k))
            ends[rows] = Counts(np.maximum.accumulate(up_to, 1)).narrowest(mass)
        ends[many] = self._between_edges(units[many], mass * (1 - 8 * EPS))
        return ends

    def cdf(self, unit: np.ndarray, k: np.ndarray) -> np.ndarray:
        n = self.law.n[unit]
        found = np.where(k >= n, 1.0, 0.0)
        inside = (k >= 0) & (k < n)
        few = np.flatnonzero(inside & (n <= FEW))
        found[few] = self._counts[unit[few], k[few].astype(np.int64)]
        many = np.flatnonzero(inside & (n > FEW))
        found[many] = self._panels.cdf(unit[many], _log_odds(k[many] + 1, n[many]))
        return np.clip(found, 0.0, 1.0)

    def quantile(self, unit: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The smallest count at which the mass up to it is at least so much, by halving."""
        high = self.law.n[unit].copy()
        low = np.full(len(high), -1.0)
        left = np.flatnonzero(high - low > 1)
        while len(left):
            middle = np.floor((low[left] + high[left]) / 2)
            reached = self.cdf(unit[left], middle) >= level[left]
            low[left] = np.where(reached, low[left], middle)
            high[left] = np.where(reached, middle, high[left])
            left = left[high[left] - low[left] > 1]
        return high

    def _between_edges(self, units: np.ndarray, mass: float) -> np.ndarray:
        """Sets of counts that begin or end at one of many edges are compared, and the other end is
        found exactly."""
        if not len(units):
            return np.empty((0, 2))
        row, x, level = self._panels.edges(units, self.law.n)
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        apart = 4.0 * row  # all units as one rising list

        def where(wanted: np.ndarray) -> np.ndarray:
            """By lines between edges; NaN where there is no such level."""
            at = np.searchsorted(level + apart, wanted + apart)
            inside = (wanted >= 0) & (wanted <= 1)
            at = np.clip(at, 1, len(x) - 1)
            at = np.where(row[at - 1] == row, at, at + 1)
            low, high = level[at - 1], level[np.minimum(at, len(x) - 1)]
            right = x[np.minimum(at, len(x) - 1)]
            share = np.where(high > low, (wanted - low) / np.where(high > low, high - low, 1), 1.0)
            return np.where(inside, x[at - 1] + share * (right - x[at - 1]), np.nan)

        def best(width: np.ndarray) -> np.ndarray:
            """The place of each unit's least width."""
            width = np.where(np.isnan(width), np.inf, width)
            least = np.minimum.reduceat(width, starts)
            size = np.diff(starts, append=len(width))
            among = np.where(width == np.repeat(least, size), np.arange(len(width)), len(width))
            return np.minimum.reduceat(among, starts)

        start, end = best(where(level + mass) - x), best(x - where(level - mass))
        first, last = x[start] + 1, self.quantile(units, level[start] + mass)
        # Without what is up to the start, enough must be left.
        other_first, other_last = self.quantile(units, level[end] - mass), x[end]
        better = other_last - other_first < last - first
        return np.stack(
            [np.where(better, other_first, first), np.where(better, other_last, last)], -1
        )

    @cached_property
    def _counts(self) -> np.ndarray:
        """Of few trials: the mass up to each count, a row a unit."""
        law = self.law
        few = np.flatnonzero(law.n <= FEW)
        table = np.ones((len(law.n), int(law.n[few].max(initial=0)) + 1))
        for n in np.unique(law.n[few]):
            rows = few[law.n[few] == n]
            mass = sum(
                law.weights[rows, k, None] * thinned(law.c[rows, k], law.d[rows, k], int(n))
                for k in range(law.weights.shape[1])
            )
            table[rows, : int(n) + 1] = np.cumsum(mass, axis=1)
        return table

    @cached_property
    def _panels(self) -> Panels:
        return panels(self.law)


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


# --- polynomials --------------------------------------------------------------------------------


def _log_odds(k: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.log(k) - np.log(n + 1 - k)


class Panels(NamedTuple):
    """P(fewer than k) by Chebyshev polynomials of the log odds of k, in order of units and places.
    Before a unit's first panel it is zero, after its last it is one."""

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    terms: np.ndarray

    def cdf(self, row: np.ndarray, t: np.ndarray) -> np.ndarray:
        # All rows as one rising list: log odds are between ±40.
        order = 100.0 * self.row + self.start
        at = np.searchsorted(order, 100.0 * row + t, side="right") - 1
        at = np.clip(at, np.searchsorted(self.row, row), None)  # before its first panel
        start, end = self.start[at], self.end[at]
        x = np.clip((2 * t - start - end) / (end - start), -1.0, 1.0)
        found = _chebyshev(self.terms[at], x[:, None])[:, 0]
        return np.where(t < start, 0.0, np.where(t > end, 1.0, found))

    def edges(self, units: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts with the mass up to them, in order: from −1 to n of each of the units, which are
        numbered from 0 on."""
        place = np.full(len(n), -1)
        place[units] = np.arange(len(units))
        some = np.flatnonzero(place[self.row] >= 0)
        row, start, end = self.row[some], self.start[some, None], self.end[some, None]
        top = n[row][:, None]
        t = start + (end - start) * np.linspace(0, 1, PLACES)
        k = np.clip(np.round((top + 1) / (1 + np.exp(-t))), 1.0, top)
        t = _log_odds(k, top)
        level = _chebyshev(self.terms[some], (2 * t - start - end) / (end - start))
        known = (t >= start) & (t <= end)  # rounded, it may be in the next panel
        own = np.broadcast_to(place[row][:, None], t.shape)[known]
        ends = np.arange(len(units))
        row = np.concatenate([own, ends, ends])
        x = np.concatenate([k[known] - 1, np.full(len(units), -1.0), n[units]])
        level = np.concatenate([level[known], np.zeros(len(units)), np.ones(len(units))])
        order = np.lexsort((x, row))
        row, x, level = row[order], x[order], np.clip(level[order], 0.0, 1.0)
        return row, x, np.maximum.accumulate(level + 4.0 * row) - 4.0 * row


ANGLES = np.pi * (np.arange(TERMS) + 0.5) / TERMS
NODES = np.cos(ANGLES)
TO_TERMS = np.cos(ANGLES[:, None] * np.arange(TERMS)) * np.where(np.arange(TERMS) > 0, 2, 1) / TERMS


def _chebyshev(terms: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Σ c_j T_j(x) at rows × places, by Clenshaw's recurrence."""
    one, two = np.zeros_like(x), np.zeros_like(x)
    for j in range(TERMS - 1, 0, -1):
        one, two = 2 * x * one - two + terms[:, j, None], one
    return x * one - two + terms[:, :1]


@np.errstate(all="ignore")
def panels(law: Law) -> Panels:
    """Of the units of many trials."""
    many = np.flatnonzero(law.n > FEW)
    mean, sd = _moments(law.rows(many))
    top = law.n[many][:, None]
    inner = np.clip(mean[:, None] + sd[:, None] * EDGES + 1, 1.0, top)
    edges = _log_odds(np.concatenate([np.ones_like(top), inner, top], 1), top)
    # Where nothing is beyond the outermost of them, nothing is looked at.
    first, last = (below(law.rows(many), edges[:, [side]])[:, 0] for side in (1, -2))
    edges[:, 0] = np.where(first < NOTHING, edges[:, 1], edges[:, 0])
    edges[:, -1] = np.where(last > 1 - NOTHING, edges[:, -2], edges[:, -1])
    row = np.repeat(many, edges.shape[1] - 1)
    start, end = edges[:, :-1].reshape(-1), edges[:, 1:].reshape(-1)
    row, start, end = (part[start < end] for part in (row, start, end))
    done = []
    for turn in range(HALVINGS):
        places = (start + end)[:, None] / 2 + (end - start)[:, None] / 2 * NODES
        terms = below(law.rows(row), places) @ TO_TERMS
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


def _moments(law: Law) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of counts."""
    rate = (law.c / (law.c + law.d)).prod(-1)
    excess = np.expm1(np.log1p(law.d / law.c / (law.c + law.d + 1)).sum(-1))
    mean = (law.weights * rate).sum(1)
    spread = (law.weights * (rate**2 * excess + (rate - mean[:, None]) ** 2)).sum(1)
    n = law.n
    return n * mean, np.sqrt(n * (mean * (1 - mean) - spread) + n * n * spread)


def below(law: Law, t: np.ndarray) -> np.ndarray:
    """P(fewer than k) at log odds: rows × places."""
    top = law.n[:, None]
    k = np.clip((top + 1) / (1 + np.exp(-t)), 1.0, top)
    found = one_line.below(law, k)
    lost = np.flatnonzero(np.isnan(found).any(1))
    if len(lost):
        law, k, places = law.rows(lost), k[lost], k.shape[1]
        total, n = np.zeros(k.shape), np.repeat(law.n, places)
        for j in range(law.weights.shape[1]):
            c, d = (np.repeat(part[:, j], places, 0) for part in (law.c, law.d))
            own = invert_counts(c, d, k.reshape(-1), n).below().reshape(k.shape)
            total += np.where(law.weights[:, j] > 0, law.weights[:, j], 0.0)[:, None] * own
        found[lost] = total
    return found


# --- tables of the last calls -------------------------------------------------------------------

_kept: OrderedDict[bytes, Table] = OrderedDict()
_lock = threading.Lock()


def table_of(weights: np.ndarray, c: np.ndarray, d: np.ndarray, n: np.ndarray) -> Table:
    """Of units × components × factors: that of an earlier call with the same numbers, or a new
    one."""
    if n.max(initial=0) > LARGEST:
        row = int(np.argmax(n)) if len(n) > 1 else None
        remedy = f"distribution functions are tabulated up to {LARGEST:,} trials"
        raise check.DataError("trials", row, n.max(), "is too many to tabulate", remedy)
    key = blake2b(repr(c.shape).encode())
    for part in (weights, c, d, n):
        key.update(np.ascontiguousarray(part).tobytes())
    name = key.digest()
    with _lock:
        found = _kept.pop(name, None) or Table(Law.of(weights, c, d, n))
        _kept[name] = found
        # A row of many trials has about two hundred numbers.
        while len(_kept) > 1 and sum(200 * len(table.law.n) for table in _kept.values()) > KEPT:
            _kept.popitem(last=False)
    return found
