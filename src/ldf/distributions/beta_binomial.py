"""Successes among further trials, when the rate has a Beta.

Its distribution function has no closed form: the mass of all counts is tabulated by the ratio of
neighbouring ones, for units of like size together. Of many trials, counts are taken together in
`cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Tabled, check_q, on_host
from ldf.distributions.beta import check_rate_known, logistic
from ldf.distributions.cells import Cells, cells_of
from ldf.special import Array, Draws, beta_binomial_log_pmf, floats, namespace
from ldf.statistic import Trials

Ask = Callable[["Counts | Cells", np.ndarray], np.ndarray]  # (table, its rows) → their answers


class BetaBinomial(Tabled):
    """Successes among further trials."""

    natural: Trials
    trials: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.trials))

    @property
    def top(self) -> Array:
        """The largest possible value."""
        return np.broadcast_to(np.asarray(self.trials, float), self.shape)

    def __getitem__(self, rows: Any) -> BetaBinomial:
        trials = namespace(self.trials).broadcast_to(self.trials, self.shape)
        return BetaBinomial(self.natural.spread(self.shape)[rows], trials[rows])

    def _parameters(self) -> tuple[Any, Array, Array, Array]:
        xp, (a, b, n) = floats(self.natural.successes, self.natural.failures, self.trials)
        check_rate_known(a + b, n)
        return xp, *xp.broadcast_arrays(a, b, n)

    def mean(self) -> Array:
        xp, a, b, n = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(n == 0, 0.0, n * (a / (a + b)))

    def variance(self) -> Array:
        xp, a, b, n = self._parameters()
        total = a + b
        with np.errstate(all="ignore"):
            spread = n * (a / total) * (b / total) * ((total + n) / (total + 1))
            return xp.where(n == 0, 0.0, spread)

    def mode(self) -> Array:
        xp, a, b, n = self._parameters()
        with np.errstate(all="ignore"):
            inner = xp.floor((n + 1) * (a - 1) / (a + b - 2))
        inner = xp.clip(inner, 0.0, n)
        ends = xp.where(a < b, 0.0, xp.where(a > b, n, np.nan))
        one_end = xp.where(a <= 1, 0.0, n)
        mode = xp.where((a > 1) & (b > 1), inner, xp.where((a <= 1) & (b <= 1), ends, one_end))
        return xp.where(n == 0, 0.0, mode)

    def log_prob(self, successes: Any) -> Array:
        xp, a, b, n = self._parameters()
        _, (k, _) = floats(check.numbers("successes", successes), a)
        inside = (k >= 0) & (k <= n) & (k == xp.floor(k))
        k = xp.where(inside, k, 0.0)
        return xp.where(inside, beta_binomial_log_pmf(k, n - k, a, b), -np.inf)

    @on_host
    def cdf(self, successes: Any) -> Array:
        k = check.numbers("successes", successes, infinite=True)
        if np.broadcast_shapes(self.shape, k.shape) != self.shape:
            return self._spread(k.shape).cdf(k)
        k = np.floor(np.broadcast_to(k, self.shape).reshape(-1))
        return self._by_table(lambda table, rows: table.cdf(k[rows]))

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        q = np.asarray(q, dtype=float)
        if np.broadcast_shapes(self.shape, q.shape) != self.shape:
            return self._spread(q.shape).quantile(q)
        levels = np.broadcast_to(q, self.shape).reshape(-1)
        return self._by_table(lambda table, rows: table.quantile(levels[rows]))

    def _spread(self, shape: tuple[int, ...]) -> BetaBinomial:
        """The same units, once for each of several values."""
        wide = np.broadcast_shapes(self.shape, shape)
        return BetaBinomial(self.natural.spread(wide), np.broadcast_to(self.trials, wide))

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        ends = self._by_table(lambda table, _: table.narrowest(mass))
        return ends[..., 0], ends[..., 1]

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b, n = self._parameters()
        source = Draws(draws, seed, a)
        rate = logistic(xp, source.log_gamma(a) - source.log_gamma(b))
        return source.binomial(xp.broadcast_to(n, rate.shape), rate)

    def by_table(self, weights: np.ndarray, ask: Ask) -> np.ndarray:
        return by_table(self, weights, ask)

    def _by_table(self, ask: Ask) -> np.ndarray:
        found = by_table(self, np.ones((1, int(np.prod(self.shape)))), ask)
        return found.reshape(self.shape + found.shape[1:])


BLOCK = 4_000_000  # table cells held at once
SINGLE_COUNTS = 8192  # of more trials, there are cells
LARGEST = 2**53  # trials: beyond, floats are not whole numbers


def by_table(of: BetaBinomial, weights: np.ndarray, ask: Ask) -> np.ndarray:
    """Tabulate the mass of all counts, units of like size together, or of cells of them, and ask
    the tables something. Of components × units with such weights, the masses are mixed."""
    _, *parameters = of._parameters()
    a, b, n = (np.asarray(p, dtype=np.float64).reshape(weights.shape) for p in parameters)
    top = n.max(0)
    if top.max(initial=0) > LARGEST:
        row = int(np.argmax(top)) if len(top) > 1 else None
        remedy = f"distribution functions are tabulated up to {LARGEST:,} trials"
        raise check.DataError("trials", row, top.max(), "is too many to tabulate", remedy)
    few, many = np.flatnonzero(top <= SINGLE_COUNTS), np.flatnonzero(top > SINGLE_COUNTS)
    asked, found = [], []
    for block in blocks_of_like_size(top[few]):
        rows = few[block]
        mass = np.zeros((len(rows), int(n[:, rows].max(initial=0)) + 1))
        for k in range(len(weights)):
            table = mass_table(a[k, rows], b[k, rows], n[k, rows])
            mass[:, : table.shape[1]] += weights[k, rows][:, None] * table
        asked.append(rows)
        found.append(ask(Counts(np.cumsum(mass, 1)), rows))
    # The same unit may be asked about several values: it has its cells once.
    units = np.concatenate([a, b, n, weights])[:, many]
    units, which = np.unique(units, axis=1, return_inverse=True)
    which = which.reshape(-1)
    step = max(1, BLOCK // (1000 + 100 * len(weights)))  # a unit has about so many cells
    for start in range(0, units.shape[1], step):
        block = units[:, start : start + step]
        here = np.flatnonzero((which >= start) & (which < start + step))
        table = cells_of(*np.split(block, 4))[which[here] - start]
        asked.append(many[here])
        found.append(ask(table, many[here]))
    return np.concatenate(found)[np.argsort(np.concatenate(asked))]


@dataclass(frozen=True, eq=False)
class Counts:
    """The mass up to each count, a row a unit."""

    up_to: np.ndarray

    def cdf(self, k: np.ndarray) -> np.ndarray:
        index = np.clip(k, 0, self.up_to.shape[1] - 1).astype(np.int64)
        found = np.take_along_axis(self.up_to, index[:, None], 1)[:, 0]
        return np.where(k < 0, 0.0, np.minimum(found, 1.0))

    def quantile(self, q: np.ndarray) -> np.ndarray:
        return first_count(self.up_to, q)

    def mode(self) -> np.ndarray:
        return highest_count(self.up_to)

    def narrowest(self, mass: float) -> np.ndarray:
        return narrowest_window(self.up_to, mass)


def blocks_of_like_size(n: np.ndarray) -> Iterator[np.ndarray]:
    """Rows in blocks of similar size, none much larger than BLOCK cells; of none, an empty one."""
    if not len(n):
        yield np.zeros(0, np.int64)
    order = np.argsort(-n, kind="stable")  # the first row of a block is its widest
    start = 0
    while start < len(order):
        stop = start + max(1, int(BLOCK // (n[order[start]] + 1)))
        yield order[start:stop]
        start = stop


def mass_table(a: np.ndarray, b: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The mass of 0 … n, a row a unit, by the ratio of neighbouring masses."""
    a, b, n = a[:, None], b[:, None], n[:, None]
    k = np.arange(n.max(initial=0))
    with np.errstate(all="ignore"):
        left = np.maximum(n - k, 0)
        steps = np.log(left) - np.log1p(k) + np.log(a + k) - np.log(b + np.maximum(left - 1, 0))
        logs = np.concatenate(
            [np.zeros_like(a), np.cumsum(np.where(left > 0, steps, -np.inf), 1)], 1
        )
        logs = np.where(np.arange(logs.shape[1]) <= n, logs, -np.inf)
        peak = logs.max(1, keepdims=True)
        # A rate that is surely one (b = 0) has all its mass at n.
        sure = np.where(np.arange(logs.shape[1]) == n, 0.0, -np.inf)
        logs = np.where(
            np.isposinf(peak) | np.isnan(peak), sure, logs - np.where(np.isinf(peak), 0, peak)
        )
    mass = np.exp(logs)
    return mass / mass.sum(1, keepdims=True)


def first_count(cumulative: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The smallest count at which as much is reached."""
    return (cumulative < q[:, None] * (1 - 8 * np.finfo(float).eps)).sum(1).astype(float)


def highest_count(cumulative: np.ndarray) -> np.ndarray:
    """The likeliest count; NaN if another that is no neighbour is as likely."""
    mass = np.diff(cumulative, axis=1, prepend=0)
    best = mass.argmax(1)[:, None]
    ties = mass >= np.take_along_axis(mass, best, 1) * (1 - 1e-12)
    apart = (ties & (np.abs(np.arange(mass.shape[1]) - best) > 1)).any(1)
    return np.where(apart, np.nan, best[:, 0])


def narrowest_window(cumulative: np.ndarray, mass: float) -> np.ndarray:
    """First and last of the fewest neighbouring counts that hold the mass."""
    rows, width = cumulative.shape
    before = np.concatenate([np.zeros((rows, 1)), cumulative], 1)
    enough = mass * (1 - 8 * np.finfo(float).eps)
    few, many = np.zeros(rows, np.int64), np.full(rows, width)  # too few, surely enough
    first = np.zeros(rows, np.int64)
    columns = np.arange(width)
    while (many - few > 1).any():
        size = (few + many) // 2
        ends = np.minimum(columns[None, :] + size[:, None], width)
        held = np.take_along_axis(before, ends, 1) - before[:, :-1]
        best = held.argmax(1)
        holds = np.take_along_axis(held, best[:, None], 1)[:, 0] >= enough
        first = np.where(holds, best, first)
        many, few = np.where(holds, size, many), np.where(holds, few, size)
    return np.stack([first, first + many - 1], -1).astype(float)
