"""Beta-binomials of many trials, and mixtures of them, by the mass of cells of neighbouring counts.

A cell is what lies above one edge, up to the next. Cells are single counts at both ends, where the
mass may be steep, grow in proportion from there on, and are narrow where a component has its mass.
The sum of a cubic over w neighbouring counts is w times its mean at two places,

    Σ_k p(k)  =  w/2 · [p(c − s) + p(c + s)],    s² = (w² − 1)/12,

with c in the middle. It is exact for one and two counts, whatever p is. Part of a cell is summed
by the same rule, so that answers are exact counts rather than edges.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from ldf.special import beta_binomial_log_pmf, binet, difference_of_products
from ldf.special.stirling import DOUBLE, polynomial

SINGLE = 32  # single counts at each end
GROWTH = 1.1  # of cells, from one to the next
REACH = 10.0  # standard deviations about the mean that have cells of their own
CENTRE = 2.0  # up to about so many, they are nearly of one size
ACCURATE = 1e9  # trials up to which ratios of masses are right to 1e-6
BLOCK = 1 << 14  # masses computed at once: as many as a processor keeps near
KEPT = 20_000_000  # numbers in the tables of the last calls
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Cells:
    """Of units with their cells; the answers are of the units `at`."""

    law: tuple[np.ndarray, ...]  # a, b, n, weight by the sum of `_mass`: components × units
    edges: np.ndarray  # units × (cells + 1)
    up_to: np.ndarray  # the mass up to each
    at: np.ndarray

    def __getitem__(self, units: np.ndarray) -> Cells:
        return replace(self, at=self.at[units])

    def cdf(self, k: np.ndarray) -> np.ndarray:
        top = self.edges[self.at, -1]
        k = np.clip(k, -1.0, top)
        cell = _first(self.edges, self.at, k)
        return np.where(k == top, 1.0, self._within(self.at, cell, k))

    def quantile(self, q: np.ndarray) -> np.ndarray:
        return self._place(self.at, q * (1 - 8 * EPS))

    def mode(self) -> np.ndarray:
        """Of the two highest cells that are no neighbours; NaN if they turn out equally high."""
        units = np.arange(len(self.edges))
        width = np.diff(self.edges, axis=1)
        with np.errstate(invalid="ignore"):
            height = np.where(width > 0, np.diff(self.up_to, axis=1) / width, -1.0)
        tops = []
        for _ in range(2):
            best = height.argmax(1)
            start, end = self.edges[units, best], self.edges[units, best + 1]
            # A cell and what is as wide on both sides of it.
            low, high = start + 1 - 2 * (end - start), end + 2 * (end - start)
            tops.append(self._top(units, np.maximum(low, 0.0), high))
            near = (self.edges[:, 1:] >= low[:, None]) & (self.edges[:, :-1] < high[:, None])
            height = np.where(near, -1.0, height)
        (one, high_one), (two, high_two) = tops
        equal = np.abs(high_one - high_two) <= 1e-12 * high_one
        tie = equal & (np.abs(one - two) > 1)
        return np.where(tie, np.nan, np.where(high_two > high_one, two, one))[self.at]

    def narrowest(self, mass: float) -> np.ndarray:
        """First and last of about the fewest neighbouring counts: such sets as begin or end at an
        edge are compared, and the other end is found exactly."""
        mass = mass * (1 - 8 * EPS)
        units = np.arange(len(self.edges))
        by_start, by_end = (np.empty(len(units), np.int64) for _ in range(2))
        for row, (x, level) in enumerate(zip(self.edges, self.up_to, strict=True)):
            end = np.where(level + mass <= 1, np.interp(level + mass, level, x), np.inf)
            start = np.where(level >= mass, np.interp(level - mass, level, x), -np.inf)
            by_start[row], by_end[row] = (end - x).argmin(), (x - start).argmin()
        first = self.edges[units, by_start] + 1
        last = self._place(units, self.up_to[units, by_start] + mass)
        # Without what is up to the start, enough must be left.
        other_last = self.edges[units, by_end]
        other_first = self._place(units, self.up_to[units, by_end] - mass)
        better = other_last - other_first < last - first
        ends = np.where(better, other_first, first), np.where(better, other_last, last)
        return np.stack(ends, -1)[self.at]

    def _within(self, units: np.ndarray, cell: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The mass up to k, which is in a cell: after its start, up to its end, edge `cell`."""
        start = np.maximum(cell - 1, 0)
        law = tuple(part[:, units, None] for part in self.law)
        more = _sum(law, self.edges[units, start][:, None], k[:, None])[:, 0]
        return np.minimum(self.up_to[units, start] + more, self.up_to[units, cell])

    def _place(self, units: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The smallest count at which the mass up to it is at least so much: within its cell by
        straight lines, and by halving every third time."""
        cell = np.minimum(_first(self.up_to, units, level), self.edges.shape[1] - 1)
        start = np.maximum(cell - 1, 0)
        low, high = self.edges[units, start], np.maximum(self.edges[units, cell], 0.0)
        below, above = self.up_to[units, start], self.up_to[units, cell]
        left, turn = np.flatnonzero(high - low > 1), 0
        while len(left):
            turn += 1
            i = left
            with np.errstate(all="ignore"):
                share = (level[i] - below[i]) / (above[i] - below[i])
            share = np.where(np.isfinite(share) & (turn % 3 > 0), share, 0.5)
            x = np.clip(np.ceil(low[i] + share * (high[i] - low[i])), low[i] + 1, high[i] - 1)
            mass = self._within(units[i], cell[i], x)
            reached = mass >= level[i]
            low[i], below[i] = np.where(reached, low[i], x), np.where(reached, below[i], mass)
            high[i], above[i] = np.where(reached, x, high[i]), np.where(reached, mass, above[i])
            left = i[high[i] - low[i] > 1]
        return high

    def _top(
        self, units: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The likeliest count between two, and its mass, by ever closer looks."""
        low, high = low.copy(), np.minimum(high, self.edges[units, -1])
        law = tuple(part[:, :, None] for part in self.law)
        while True:
            x = np.round(low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 17))
            mass = _sum(law, x - 1, x)
            best = mass.argmax(1)
            if (high - low <= 16).all():
                return x[units, best], mass[units, best]
            low = x[units, np.maximum(best - 1, 0)]
            high = x[units, np.minimum(best + 1, 16)]


# --- tables of the last calls -------------------------------------------------------------------

_kept: OrderedDict[bytes, Cells] = OrderedDict()
_lock = threading.Lock()


def cells_of(a: np.ndarray, b: np.ndarray, n: np.ndarray, weights: np.ndarray) -> Cells:
    """Of components × units: those of an earlier call with the same numbers, or new ones."""
    law = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in (a, b, n, weights))
    key = blake2b(repr(law[0].shape).encode())
    for part in law:
        key.update(part.tobytes())
    name = key.digest()
    with _lock:
        if name in _kept:
            _kept.move_to_end(name)
            return _kept[name]
    found = _tabulate(*law)
    with _lock:
        _kept[name] = found
        while sum(table.edges.size + table.up_to.size for table in _kept.values()) > KEPT:
            _kept.popitem(last=False)
    return found


def _tabulate(a: np.ndarray, b: np.ndarray, n: np.ndarray, weights: np.ndarray) -> Cells:
    edges = edges_of(a, b, n)
    units, size = edges.shape
    mass = np.zeros((units, size - 1))
    scale = np.empty_like(weights)
    step = max(1, BLOCK // size)
    for k in range(len(weights)):
        for start in range(0, units, step):
            rows = slice(start, start + step)
            law = tuple(part[k : k + 1, rows, None] for part in (a, b, n, np.ones_like(n)))
            own = _sum(law, edges[rows, :-1], edges[rows, 1:])
            scale[k, rows] = weights[k, rows] / own.sum(1)
            mass[rows] += scale[k, rows, None] * own
    up_to = np.concatenate([np.zeros((units, 1)), np.cumsum(mass, 1)], 1)
    return Cells((a, b, n, scale), edges, up_to / up_to[:, -1:], np.arange(units))


def edges_of(a: np.ndarray, b: np.ndarray, n: np.ndarray) -> np.ndarray:
    """From −1 to n, in order: units × edges. Where two are the same, the cell is empty."""
    half = n.max(initial=1) / 2
    number = max(int(np.log(half / SINGLE) / np.log(GROWTH)) + 2, 1)
    grown = np.round(SINGLE * GROWTH ** np.arange(number))
    away = np.concatenate([np.arange(SINGLE), grown])  # counts between an edge and its end
    tops = n[:1] if (n == n[0]).all() else n
    from_ends = [np.minimum(away, np.floor(top[:, None] / 2)) for top in tops]
    below = [part - 1 for part in from_ends]
    above = [top[:, None] - part for top, part in zip(tops, from_ends, strict=True)]
    many = max(64, min(256, 1024 // len(n)))
    far = np.arcsinh(REACH / CENTRE)
    z = CENTRE * np.sinh(np.linspace(-far, far, many))
    total = a + b
    mean = n * (a / total)
    sd = np.sqrt(mean * (b / total) * ((total + n) / (total + 1)))
    middle = np.floor(mean[..., None] + sd[..., None] * z)
    middle = np.clip(middle, -1.0, n[..., None])
    return np.sort(np.concatenate([*below, *above, *middle], 1), 1)


def _first(table: np.ndarray, rows: np.ndarray, value: np.ndarray) -> np.ndarray:
    """In which column a row of the table first reaches a value, by halving; else their number."""
    low, high = np.zeros(len(rows), np.int64), np.full(len(rows), table.shape[1])
    while (low < high).any():
        middle = (low + high) // 2
        short = table[rows, np.minimum(middle, table.shape[1] - 1)] < value
        short &= low < high
        low, high = (
            np.where(short, middle + 1, low),
            np.where(short, high, np.minimum(middle, high)),
        )
    return low


# --- masses -------------------------------------------------------------------------------------


def _sum(law: tuple[np.ndarray, ...], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The weighted mass of the counts above low, up to high: of units × cells, by a law of
    components × units × 1."""
    width = high - low
    centre = (low + high + 1) / 2
    apart = np.sqrt(np.maximum(width**2 - 1, 0.0) / 12)
    total = np.zeros(np.shape(width))
    for a, b, n, weight in zip(*law, strict=True):
        inside = (low < n) & (width > 0)
        places = (np.clip(centre + sign * apart, 0.0, n) for sign in (-1, 1))
        mass = sum(_mass(a, b, n, k) for k in places)
        total += np.where(inside, weight * width / 2 * mass, 0.0)
    return total


@np.errstate(all="ignore")
def _mass(a: np.ndarray, b: np.ndarray, n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Of a count, which need not be whole, up to a factor of its unit."""
    log_mass, large = _log_ratio(a, b, n, k), n > ACCURATE
    if large.any():
        log_mass = np.where(large, beta_binomial_log_pmf(k, n - k, a, b), log_mass)
    mass = np.exp(log_mass)
    if (a > 0).all() and (b > 0).all():
        return mass
    # A rate that is surely zero or one.
    return np.where(a == 0, k == 0, np.where(b == 0, k == n, mass))


def _log_ratio(a: np.ndarray, b: np.ndarray, n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """log p(k)/p(c), with c near the mean: what log Γ grows by from c on, less its tangent, for
    each of the four that depend on k; and the tangents together, which nearly cancel."""
    c = np.round(n * (a / (a + b)))
    m, d = n - c, k - c
    odds = difference_of_products(a - 1, m + 1, b - 1, c + 1) / ((c + 1) * (b + m))
    return (
        d * np.log1p(odds)
        + _above_tangent(a + c, a + k, d)
        - _above_tangent(c + 1, k + 1, d)
        + _above_tangent(b + m, b + (n - k), -d)
        - _above_tangent(m + 1, n - k + 1, -d)
    )


def _above_tangent(x: np.ndarray, y: np.ndarray, d: np.ndarray) -> np.ndarray:
    """log Γ(y) − log Γ(x) − d log x, where y is x + d."""
    return (y - 0.5) * np.log1p(d / x) - d + (_binet(y) - _binet(x))


def _binet(z: np.ndarray) -> np.ndarray:
    """`binet` to 1e-11, faster where few arguments are small."""
    t = 1 / z
    found = t * polynomial(DOUBLE.binet[0][:4], t * t)
    small = z < DOUBLE.floor
    if small.any():
        found[small] = binet(z[small])
    return found
