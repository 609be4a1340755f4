"""Quantiles and modes of mixtures, which have no closed form.

A quantile is between the least and the greatest of the components' own, and there is one root. The
mode is the highest of several hills: the distribution is looked at in a few places, and the two
highest hills are climbed. Of whole numbers, both are found by halving. The beta-binomial's
distribution function is a table of masses: such are mixed as tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ldf.distributions.base import Tabled
from ldf.distributions.beta_binomial import SINGLE_COUNTS, BetaBinomial, by_table
from ldf.distributions.mixture_units import EPS, Units, columns, location
from ldf.distributions.search import Scale
from ldf.special import namespace

TALLEST = 8  # components whose own modes are looked at


def quantile(of: Units, q: np.ndarray) -> np.ndarray:
    """Where the distribution function of each unit reaches q."""
    low, high = of.ends(of.components.quantile(q))
    scale = Scale(of.support)
    found = low.copy()
    rows = np.nonzero((low < high) & (q > 0) & (q < 1))[0]
    if len(rows):
        units, wanted = of[rows], _logit(q[rows])
        # The odds of being below, against the place on an endless scale, are nearly a line.
        place = root(
            lambda some, s: _logit(units[some].cdf(scale.value(s))) - wanted[some],
            scale.place(low[rows]),
            scale.place(high[rows]),
        )
        found[rows] = np.clip(scale.value(place), low[rows], high[rows])
    start, end = of.support
    return np.where(q == 0, start, np.where(q == 1, end, found))


def integer_quantile(of: Units, q: np.ndarray) -> np.ndarray:
    """The smallest value at which the distribution function reaches q, by halving."""
    if by_tables(of.components):
        return of.components.by_table(of.weights, lambda table, at: table.quantile(q[at]))
    enough = q * (1 - 8 * EPS)
    low, high = of.ends(of.components.quantile(q))
    low = low - 1  # is not enough
    left = np.nonzero(high - low > 1)[0]
    while len(left):
        middle = np.floor((low[left] + high[left]) / 2)
        reached = of[left].cdf(middle) >= enough[left]
        low[left] = np.where(reached, low[left], middle)
        high[left] = np.where(reached, middle, high[left])
        left = left[high[left] - low[left] > 1]
    return high


def by_tables(components: Any) -> bool:
    """Whether such components are mixed as tables."""
    return isinstance(components, Tabled) and components.mixes


def has_cells(mixture: Any) -> bool:
    """Whether the tables of intervals serve the cdf as well: of beta-binomials, if units have so
    many trials that these are cells."""
    components = mixture.components
    if components.shape[0] == 1 or not by_tables(components):
        return False
    if namespace(*jax.tree.leaves((mixture.weights, components))) is not np:
        return False
    dense = isinstance(components, BetaBinomial)
    return not dense or bool(np.max(components.top, initial=0) > SINGLE_COUNTS)


def cdf_by_table(of: Units, value: np.ndarray) -> np.ndarray:
    """Of beta-binomials: few trials by components, many by the cells of the mixture."""
    dense = isinstance(of.components, BetaBinomial)
    few = dense & (of.components.top.max(0) <= SINGLE_COUNTS)
    many, k = of[~few], np.floor(value[~few])
    found = np.empty(len(value))
    found[few] = of[few].cdf(value[few])
    found[~few] = many.components.by_table(many.weights, lambda table, at: table.cdf(k[at]))
    return found


def mode(of: Units, peak: Callable[[Units], np.ndarray]) -> np.ndarray:
    """Where all components agree, there; else by a search for the peak."""
    low, high = of.ends(of.modes())
    apart = ~(low == high)
    found = np.where(apart, np.nan, low)
    if apart.any():
        found[apart] = peak(of[apart])
    return found


def peak(of: Units) -> np.ndarray:
    start, end = of.support
    modes = of.modes()
    centre = location(of.components)[0]
    inner = np.where((modes > start) & (modes < end), modes, centre)
    with np.errstate(all="ignore"):
        own = of.log_weights() + of.components.log_prob(inner)
    tall = np.argsort(np.where(np.isfinite(own), -own, np.inf), 0)[:TALLEST]
    outer = [inner.min(0)[:, None], inner.max(0)[:, None]]
    x = np.concatenate([np.take_along_axis(inner, tall, 0).T, of.knots(12), *outer], 1)
    x = np.sort(x, 1)
    return _against_the_ends(of, *_climb(of, x, columns(of.log_prob, x)))


def _climb(of: Units, x: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From the two highest of several places to the tops of their hills; NaN for a tie."""
    units = np.arange(len(x))
    tops = []
    peaks = heights.copy()
    for _ in range(2):
        at = np.where(np.isfinite(peaks), peaks, -1e300).argmax(1)
        here, height = x[units, at], heights[units, at]
        low = np.where(x < here[:, None], x, -np.inf).max(1)
        high = np.where(x > here[:, None], x, np.inf).min(1)
        up = of.density(here)[1] > 0
        low = np.where(up | np.isinf(low), here, low)
        high = np.where(up & np.isfinite(high), high, here)
        place = root(lambda rows, s: of[rows].density(s)[1], low, high)
        top = of.log_prob(place)
        tops.append((np.where(top >= height, place, here), np.maximum(top, height)))
        # The same hill again, down to where the density rises: not to be climbed twice.
        peaks = np.where(_same_hill(heights, at), -np.inf, peaks)
    (one, high_one), (two, high_two) = tops
    same = np.abs(one - two) <= 1e-6 * (np.abs(one) + np.abs(x[:, -1] - x[:, 0]))
    tie = (np.abs(high_one - high_two) <= 1e-10 * (1 + np.abs(high_one))) & ~same
    best = np.where(high_two > high_one, two, one)
    return np.where(tie, np.nan, best), np.maximum(high_one, high_two)


def _same_hill(heights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The places from which it only goes up to the one at `at`."""
    rows, size = heights.shape
    index = np.arange(size)
    with np.errstate(invalid="ignore"):
        step = np.diff(heights, axis=1)
    # Left of the top no step up to it may fall, right of it none may rise.
    left = np.where(index[:-1] < at[:, None], step >= 0, True)
    right = np.where(index[:-1] >= at[:, None], step <= 0, True)
    ones = np.ones((rows, 1), bool)
    from_left = np.concatenate([np.cumprod(left[:, ::-1], 1)[:, ::-1].astype(bool), ones], 1)
    from_right = np.concatenate([ones, np.cumprod(right, 1).astype(bool)], 1)
    return np.where(index <= at[:, None], from_left, from_right)


def _against_the_ends(of: Units, mode: np.ndarray, height: np.ndarray) -> np.ndarray:
    """The density may be higher, or without bound, where the support ends."""
    ends = [end for end in of.support if np.isfinite(end)]
    logs = [of.log_prob(np.full(len(mode), end)) for end in ends]
    top = np.max([height, *logs], 0)
    higher = [(log == top) & (log > height) for log in logs]
    for end, is_higher in zip(ends, higher, strict=True):
        mode = np.where(is_higher, end, mode)
    return np.where(np.sum(higher, 0) > 1, np.nan, mode)


def integer_peak(of: Units) -> np.ndarray:
    """Masses rise up to the first of the modes and fall from the last on."""
    if isinstance(of.components, BetaBinomial):
        return by_table(of.components, of.weights, lambda table, _: table.mode())
    modes = of.modes()
    low, high = of.ends(modes)
    own = np.where(of.weights > 0, of.components.log_prob(modes), -np.inf)
    x = np.take_along_axis(modes, np.argsort(-own, 0)[:TALLEST], 0).T
    while True:
        grid = np.round(low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 17))
        x = np.sort(np.concatenate([x, grid], 1), 1)
        heights = columns(of.log_prob, x)
        best = np.argmax(heights, 1)[:, None]
        here = np.take_along_axis(x, best, 1)
        if (high - low <= 16).all():
            break
        low = np.where(x < here, x, low[:, None]).max(1)
        high = np.where(x > here, x, high[:, None]).min(1)
        x = here
    top = np.take_along_axis(heights, best, 1)
    tie = ((heights >= top - 1e-12) & (np.abs(x - here) > 1)).any(1)
    return np.where(tie, np.nan, here[:, 0])


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-300, 1 - EPS / 2)
    return np.log(p) - np.log1p(-p)


@np.errstate(all="ignore")
def root(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Where a function of (rows, place) crosses zero between low and high, by Chandrupatla's
    method: parabolas through the last three places where they are to be trusted, else halves.
    Where it has one sign only, the end that is nearer to zero."""
    rows = np.arange(len(low))
    a, b = np.array(high, float), np.array(low, float)  # b is the last place, a across the root
    at_a, at_b = function(rows, a), function(rows, b)
    c, at_c = a.copy(), at_a.copy()
    best = np.where(np.abs(at_a) < np.abs(at_b), a, b)
    slack = 1e-13 * np.abs(a - b)
    left = rows[(np.sign(at_a) * np.sign(at_b) < 0)]
    t = np.full(len(low), 0.5)
    for _ in range(100):
        if not len(left):
            break
        i = left
        x = a[i] + t[i] * (b[i] - a[i])
        y = function(i, x)
        same = np.sign(y) == np.sign(at_a[i])
        c[i], at_c[i] = np.where(same, a[i], b[i]), np.where(same, at_a[i], at_b[i])
        b[i], at_b[i] = np.where(same, b[i], a[i]), np.where(same, at_b[i], at_a[i])
        a[i], at_a[i] = x, y
        best[i] = np.where(np.abs(at_a[i]) < np.abs(at_b[i]), a[i], b[i])
        gap = np.abs(b[i] - a[i])
        small = (2 * EPS * np.abs(best[i]) + slack[i]) / gap
        # Inverse quadratic interpolation, if it is monotone between the three places.
        xi = (a[i] - b[i]) / (c[i] - b[i])
        phi = (at_a[i] - at_b[i]) / (at_c[i] - at_b[i])
        curved = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        first = at_a[i] / (at_b[i] - at_a[i]) * at_c[i] / (at_b[i] - at_c[i])
        second = (c[i] - a[i]) / (b[i] - a[i])
        second = second * at_a[i] / (at_c[i] - at_a[i]) * at_b[i] / (at_c[i] - at_b[i])
        step = np.where(curved & np.isfinite(first + second), first + second, 0.5)
        t[i] = np.clip(step, small, 1 - small)
        left = i[(small < 0.5) & (y != 0) & np.isfinite(y)]
    return best
