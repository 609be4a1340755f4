"""The narrowest single interval of a mixture, also where leaving out some of it would be narrower.

The distribution function in a few places bounds the width of every interval: only where a narrower
one than the best so far may begin or end is looked at more closely. Of numbers on a line, Newton's
method then improves the local minima of the width. Of whole numbers, the bounds alone decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.distributions.mixture_search import by_tables, quantile
from ldf.distributions.mixture_units import EPS, Units, columns
from ldf.distributions.search import Scale

SCAN = 12  # places of the first look, besides the ends
RIVAL = 1.1  # a local minimum this much wider than the narrowest may turn out narrower
RESOLUTIONS = (0.1, 0.02, 0.004, 0.0008)  # of places, by the interval's width, one after the other
STEPS = 8
HAIR = 1e-12  # of mass: where the distribution function is level, the nearer place


@np.errstate(all="ignore")
def narrowest_interval(of: Units, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """The distribution function in a few places says about where the local minima of the width
    are, by its lower end; Newton's method improves them, and the narrowest is taken. Units where
    that fails are looked at more closely. From and to an end of the support are two more ways."""
    lower, upper = np.full((2, len(of)), np.nan)
    left, (x, below) = np.arange(len(of)), _first_look(of, *of.support)
    edges = [
        _Edge.of(of, edge, q)
        for edge, q in zip(of.support, (mass - HAIR, 1 - mass + HAIR), strict=True)
        if np.isfinite(edge)
    ]
    # Much may be within a hair of an infinite density, where halving would take long to arrive.
    seen = [np.where(np.isnan(edge.inner), x[:, 0], edge.inner) for edge in edges]
    x = np.stack([*x.T, *seen], 1)
    below = np.stack([*below.T, *(of.cdf(place) for place in seen)], 1)
    x, below = np.sort(x, 1), np.sort(below, 1)
    for resolution in RESOLUTIONS:
        if not len(left):
            break
        last = resolution == RESOLUTIONS[-1]
        at = of[left]
        x, below = _closer(at, x, below, mass, lambda width, r=resolution: r * width, unit=0)
        low, high, done = _candidates(at, mass, x, below, [edge[left] for edge in edges], last)
        lower[left], upper[left] = low, high
        left, x, below = left[~done], x[~done], below[~done]
    lost = np.nonzero(np.isnan(lower))[0]
    for ends, q in ((lower, (1 - mass) / 2), (upper, (1 + mass) / 2)):
        ends[lost] = quantile(of[lost], np.full(len(lost), q))
    return lower, upper


def narrowest_values(of: Units, mass: float) -> np.ndarray:
    """First and last of the fewest neighbouring values that hold the mass."""
    if by_tables(of.components):
        return of.components.by_table(of.weights, lambda table, _: table.narrowest(mass))
    top = np.broadcast_to(of.components.top, of.weights.shape).max(0)
    x, below = _closer(of, *_first_look(of, -1.0, top, 1), mass, np.ones_like, unit=1)
    at = _reached(below, below + mass * (1 - 8 * EPS))
    last = np.take_along_axis(x, np.minimum(at, x.shape[1] - 1), 1)
    with np.errstate(invalid="ignore"):
        width = np.where(at < x.shape[1], last - x, np.inf)
    held = np.take_along_axis(below, np.minimum(at, x.shape[1] - 1), 1) - below
    narrow = width == width.min(1, keepdims=True)
    best = np.where(narrow, held, -1.0).argmax(1)[:, None]
    return np.concatenate([np.take_along_axis(part, best, 1) for part in (x + 1, last)], 1)


def _first_look(of: Units, start: Any, end: Any, unit: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Places and their distribution function, the ends of what is possible among them."""
    x = np.clip(of.knots(SCAN), np.reshape(start, (-1, 1)), np.reshape(end, (-1, 1)))
    x = np.round(x) + 0.0 if unit else x
    below = np.maximum.accumulate(columns(of.cdf, x), 1)
    x = np.insert(np.insert(x, 0, start, 1), SCAN + 1, end, 1)
    return x, np.insert(np.insert(below, 0, 0.0, 1), SCAN + 1, 1.0, 1)


def _candidates(
    of: Units, mass: float, x: np.ndarray, below: np.ndarray, edges: list[_Edge], last: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The narrowest interval by what is known, and whether it surely is."""
    start, end = of.support
    fine, level = _refined(*_bounded(x, below))
    upper = _inverse(fine, level, level + mass)
    width = np.where(level + mass <= level[:, -1:], upper - fine, np.inf)
    narrowest = width.min(1)
    after = np.pad(width, ((0, 0), (1, 1)), constant_values=np.inf)[:, 2:]
    before = np.pad(width, ((0, 0), (1, 1)), constant_values=np.inf)[:, :-2]
    dip = (width <= before) & (width < after) & (width <= RIVAL * narrowest[:, None])
    dip[np.arange(len(x)), width.argmin(1)] = True
    rows, places = np.nonzero(dip & (fine > start) & (upper < end) & np.isfinite(width))
    # Beyond the last that can hold the mass comes the end of the support, which is seen to.
    must = np.isfinite(after[rows, places]) | np.isinf(end)
    seeds = [(rows, fine[rows, places], upper[rows, places], must)]
    whole = []
    for edge in edges:
        other = _inverse(fine, level, np.full((len(x), 1), edge.q))[:, 0]
        other = np.where(np.isnan(edge.inner), other, edge.inner)
        near = np.nonzero(np.abs(other - edge.at) <= RIVAL * narrowest)[0]
        at, at_edge, inner = of[near], edge.height[near], other[near]
        exact = np.isfinite(edge.inner[near])
        if last:
            inner[~exact] = _from_the_edge(at[~exact], edge.at, edge.q)
            exact[:] = True
        at_inner = at.log_prob(inner)
        low, high = np.minimum(inner, edge.at), np.maximum(inner, edge.at)
        found = (near, low, high, exact, (at_edge >= at_inner) | last)
        whole.append(tuple(part[exact] for part in found))
        # A density that rises from the edge has a minimum nearby; one that is infinite only
        # there may have.
        must, may = at_edge < at_inner, np.isposinf(at_edge)
        for share, some in ((0.02, must | may), (0.005, may), (0.001, may)):
            gap = share * (high - low)[some]
            shift = (gap, 0.0) if edge.at == start else (0.0, -gap)
            seeds.append((near[some], low[some] + shift[0], high[some] + shift[1], must[some]))
    rows, low, high, must = (np.concatenate(parts) for parts in zip(*seeds, strict=True))
    reach = np.maximum(_gaps(x, rows, low), _gaps(x, rows, high))
    reach = np.maximum(2 * reach, 0.05 * (high - low))
    low, high, good = _newton(of[rows], mass, low, high, reach)
    if last:  # as near as it came: the mass at least is exact, if there is as much
        at = of[rows]
        bad = np.nonzero(~good & must & (at.cdf(low) + mass <= 1))[0]
        high[bad] = _at_least(at[bad], at[bad].cdf(low[bad]) + mass)
        good[bad] = True
    found = [(rows, low, high, good, good), *whole]
    rows, low, high, holds, sure = (np.concatenate(parts) for parts in zip(*found, strict=True))
    # The narrowest of each unit; it is sure if what did not come out is no rival to it.
    order = np.lexsort((np.where(holds, high - low, np.inf), rows))
    units, first = np.unique(rows[order], return_index=True)
    best = order[first]
    lower, upper = np.full((2, len(x)), np.nan)
    lower[units], upper[units] = low[best], high[best]
    done = np.zeros(len(x), bool)
    done[units] = sure[best]
    seen = slice(len(good))
    rival = ~good & must & ~((high - low)[seen] > RIVAL * (upper - lower)[rows[seen]])
    done[rows[seen][rival]] = False
    return lower, upper, done | last


@dataclass
class _Edge:
    """An end of the support, and the intervals that begin or end there."""

    at: float
    q: float  # at the intervals' other end
    height: np.ndarray  # the log density here
    inner: np.ndarray  # the other end; NaN where the density begins from nothing here, as no
    # interval from there is the narrowest

    @classmethod
    def of(cls, of: Units, edge: float, q: float) -> _Edge:
        height, inner = of.log_prob(np.full(len(of), edge)), np.full(len(of), np.nan)
        high = np.nonzero(height > -np.inf)[0]
        inner[high] = _from_the_edge(of[high], edge, q)
        return cls(edge, q, height, inner)

    def __getitem__(self, rows: np.ndarray) -> _Edge:
        return _Edge(self.at, self.q, self.height[rows], self.inner[rows])


def _from_the_edge(of: Units, edge: float, q: float) -> np.ndarray:
    """The other end of an interval from an end of the support."""
    if edge == of.support[0]:
        return _at_least(of, np.full(len(of), q))
    inner = quantile(of, np.full(len(of), q))
    close = np.nonzero(edge - inner < 1e-6)[0]  # the next float may hold too little
    short = of[close].exceeds(inner[close]) < 1 - q
    inner[close] = np.where(short, np.nextafter(inner[close], 0.0), inner[close])
    return inner


def _at_least(of: Units, q: np.ndarray) -> np.ndarray:
    """Quantiles that hold as much, also where much is between the last floats before 1."""
    x = quantile(of, q)
    close = np.nonzero(of.support[1] - x < 1e-6)[0]
    short = of[close].cdf(x[close]) < q[close]
    x[close] = np.where(short, np.nextafter(x[close], np.inf), x[close])
    return x


def _bounded(x: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With the outermost finite places in place of infinite ones."""
    finite, found = np.isfinite(x), []
    for value in (x, below):
        known = np.where(finite, value, np.nan)
        least, most = np.nanmin(known, 1, keepdims=True), np.nanmax(known, 1, keepdims=True)
        found.append(np.where(finite, value, np.where(x < 0, least, most)))
    return found[0], found[1]


def _refined(x: np.ndarray, y: np.ndarray, parts: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """A monotone cubic through the points, with so many parts between two."""
    gap, rise = np.diff(x, axis=1), np.diff(y, axis=1)
    rate = np.where(gap > 0, rise / gap, 0.0)
    # The harmonic mean of neighbouring rates never overshoots.
    w1, w2 = 2 * gap[:, 1:] + gap[:, :-1], gap[:, 1:] + 2 * gap[:, :-1]
    inner = (w1 + w2) / (w1 / rate[:, :-1] + w2 / rate[:, 1:])
    inner = np.where((rate[:, :-1] > 0) & (rate[:, 1:] > 0), inner, 0.0)
    slope = np.concatenate([rate[:, :1], inner, rate[:, -1:]], 1)
    t = (np.arange(parts) / parts)[None, None, :]
    g, r, left, right = gap[..., None], rise[..., None], slope[:, :-1, None], slope[:, 1:, None]
    bend = g * t * (1 - t) * (left * (1 - t) - right * t)
    level = (y[:, :-1, None] + r * t**2 * (3 - 2 * t) + bend).reshape(len(x), -1)
    fine = (x[:, :-1, None] + g * t).reshape(len(x), -1)
    fine, level = np.concatenate([fine, x[:, -1:]], 1), np.concatenate([level, y[:, -1:]], 1)
    return fine, np.maximum.accumulate(level, 1)


def _reached(level: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The first index at which each row, which rises from 0 to 1, has the wanted levels."""
    rows, size = level.shape
    shift = 4.0 * np.arange(rows)[:, None]  # all rows as one rising list
    flat = np.searchsorted((level + shift).reshape(-1), (wanted + shift).reshape(-1))
    return flat.reshape(wanted.shape) - size * np.arange(rows)[:, None]


def _inverse(x: np.ndarray, level: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where the rows of a rising table have the wanted levels, by lines between its points."""
    at = np.clip(_reached(level, wanted), 1, x.shape[1] - 1)
    low, high = (np.take_along_axis(level, i, 1) for i in (at - 1, at))
    left, right = (np.take_along_axis(x, i, 1) for i in (at - 1, at))
    share = np.where(high > low, (wanted - low) / np.where(high > low, high - low, 1.0), 1.0)
    return left + np.clip(share, 0.0, 1.0) * (right - left)


def _gaps(x: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How far apart the places are between which this one is."""
    index = np.clip((x[rows] <= at[:, None]).sum(1), 1, x.shape[1] - 1)
    return x[rows, index] - x[rows, index - 1]


def _newton(
    of: Units, mass: float, low: np.ndarray, high: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both ends together, towards equal densities and the mass between, on a scale where the
    support has no edge. Where it does not come out, the ends as they were; and where it did."""
    scale, size = Scale(of.support), len(low)
    new = np.stack([low, high])
    good, left = np.zeros(size, bool), np.arange(size)
    for _ in range(STEPS):
        if not len(left):
            break
        at, (lo, hi) = of[left], new[:, left]
        (log_low, rise_low), (log_high, rise_high) = at.density(lo), at.density(hi)
        missing = mass - (at.cdf(hi) - at.cdf(lo))
        uneven = log_low - log_high
        speed_low, speed_high = scale.speed(lo), scale.speed(hi)
        f_low, f_high = np.exp(log_low) * speed_low, np.exp(log_high) * speed_high
        rise_low, rise_high = rise_low * speed_low, rise_high * speed_high
        # −f(l) dl + f(u) du = missing mass;  −s(l) dl + s(u) du = log f(l) − log f(u)
        determinant = f_high * rise_low - f_low * rise_high
        step_low = (missing * rise_high - uneven * f_high) / determinant
        step_high = (missing * rise_low - uneven * f_low) / determinant
        new_low, new_high = scale.move(lo, step_low), scale.move(hi, step_high)
        # Not far from where the minimum was seen. It is one only where the density rises more at
        # the lower end than at the upper.
        far = np.maximum(np.abs(new_low - low[left]), np.abs(new_high - high[left]))
        usable = (determinant > 0) & (far <= reach[left]) & (new_low < new_high)
        # Newton squares its error: so small a step leaves none that could be seen.
        step = np.maximum(np.abs(new_low - lo), np.abs(new_high - hi))
        done = usable & (np.abs(missing) <= 1e-7) & (step <= 1e-5 * (hi - lo) + EPS * np.abs(hi))
        done &= np.abs(step_low) + np.abs(step_high) <= 1e-4 * (hi - lo if scale.lower < 0 else 1)
        new[:, left] = np.where(usable, [new_low, new_high], [lo, hi])
        good[left] = done
        left = left[usable & ~done]
    low, high = np.where(good, new, [low, high])
    # Next to an infinite density the mass may differ between two floats.
    good &= of.cdf(high) - of.cdf(low) >= mass - 1e-6
    return low, high, good


def _closer(
    of: Units,
    x: np.ndarray,
    below: np.ndarray,
    mass: float,
    finest: Callable[[np.ndarray], np.ndarray],
    unit: int,
) -> tuple[np.ndarray, np.ndarray]:
    """More places, by bounds. With the distribution function known in some, an interval that begins
    between two of them has a least possible width. Only gaps that may hold an end of one narrower
    than the best so far are halved, until they are as small as the finest. Whole numbers are a unit
    apart: an interval holds those above one place, up to another."""
    left = np.arange(len(x))
    kept_x, kept = x, below
    while len(left):
        wanted = _open_gaps(x, below, mass, finest, unit)
        still = wanted.any(1)
        left, x, below, wanted = (part[still] for part in (left, x, below, wanted))
        if not len(left):
            break
        # Half way into each gap that matters, by a factor if it is wide; beyond the last place,
        # twice as far.
        rows, gaps = np.nonzero(wanted)
        near, far = x[rows, gaps], x[rows, gaps + 1]
        bounded = np.where(np.isfinite(x), x, np.nan)
        least, most = np.nanmin(bounded, 1)[rows], np.nanmax(bounded, 1)[rows]
        with np.errstate(invalid="ignore"):
            by_factor = np.sqrt(near) * np.sqrt(far)
        middle = np.where((near > 0) & (far > 8 * near), by_factor, near / 2 + far / 2)
        new = np.where(np.isfinite(near), middle, 2 * least - most)
        new = np.where(np.isfinite(far), new, 2 * most - least)
        new = np.floor(new) if unit else new
        value = of[left[rows]].cdf(new)
        count = wanted.sum(1)
        column = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        wider = (len(x), int(count.max()))  # rows with fewer repeat their first place
        more_x, more = (
            np.broadcast_to(x[:, :1], wider).copy(),
            np.broadcast_to(below[:, :1], wider).copy(),
        )
        more_x[rows, column], more[rows, column] = new, value
        x, below = np.concatenate([more_x, x], 1), np.concatenate([more, below], 1)
        order = np.argsort(x, 1, kind="stable")
        x, below = (np.take_along_axis(part, order, 1) for part in (x, below))
        below = np.maximum.accumulate(below, 1)
        extra = x.shape[1] - kept_x.shape[1]
        if extra > 0:
            repeat = ((0, 0), (extra, 0))
            kept_x, kept = np.pad(kept_x, repeat, "edge"), np.pad(kept, repeat, "edge")
        kept_x[left], kept[left] = x, below
    return kept_x, kept


def _open_gaps(
    x: np.ndarray,
    below: np.ndarray,
    mass: float,
    finest: Callable[[np.ndarray], np.ndarray],
    unit: int,
) -> np.ndarray:
    """The gaps that may hold an end of an interval narrower than the best so far."""
    size = x.shape[1]
    at = _reached(below, below + mass * (1 - 8 * EPS))
    reached = at < size
    at = np.clip(at, 1, size - 1)
    last, before = (np.take_along_axis(x, i, 1) for i in (at, at - 1))
    with np.errstate(invalid="ignore"):
        best = np.where(reached, last - x, np.inf).min(1, keepdims=True)
        gap = np.diff(x, axis=1)
        following = np.concatenate([x[:, 1:], x[:, -1:]], 1)
        least = before + unit - np.maximum(following - unit, x)
        # Of as many values, those that hold the most are wanted.
        open_ = reached & ((least <= best) if unit else (least < best))
        open_[:, :-1] &= gap > 0  # a place that is there twice is asked once
        # Nothing is finer than floats are.
        smallest = 4 * EPS * np.minimum(np.abs(x[:, 1:]), np.abs(x[:, :-1])) + 1e-300
        coarse = gap > np.maximum(finest(best), smallest)
        coarse = np.where(np.isfinite(best), coarse, np.isinf(gap))
    ends = np.zeros_like(coarse)
    rows, starts = np.nonzero(open_)
    ends[rows, at[rows, starts] - 1] = True
    return (open_[:, :-1] | ends) & coarse
