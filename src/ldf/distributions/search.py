"""Narrowest intervals and quantiles of whole numbers, for all units at once.

The narrowest interval of a given mass has equal density at both ends. From the equal-tailed
interval, Newton's method solves for both ends together, on a scale where the support has no edge;
rows where it stalls are bisected. Rows whose density has no inner peak touch an end of the support.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ldf.distributions.base import Continuous, Integer

NEWTON_STEPS = 25
BISECTIONS = 100


class Scale:
    """A scale on which the support is the whole line: identity, log or logit."""

    def __init__(self, support: tuple[float, float]) -> None:
        self.lower, self.upper = support

    def place(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            if self.upper == 1:
                return np.clip(np.log(x) - np.log1p(-x), -745.0, 40.0)
            return np.maximum(np.log(x), -745.0) if self.lower == 0 else x

    def value(self, place: np.ndarray) -> np.ndarray:
        if self.upper == 1:
            return np.exp(-np.logaddexp(0.0, -place))
        return np.exp(place) if self.lower == 0 else place

    def speed(self, x: np.ndarray) -> np.ndarray:
        """dx by d(place)."""
        if self.upper == 1:
            return x * (1 - x)
        return x if self.lower == 0 else np.ones_like(x)

    def move(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        if self.upper == 1:
            odds = x * np.exp(step)
            return odds / (odds + (1 - x))
        return x * np.exp(step) if self.lower == 0 else x + step


def narrowest_interval(of: Continuous, mass: float) -> tuple[np.ndarray, np.ndarray]:
    if of.shape == ():
        lower, upper = _narrowest(of[None], mass)
        return lower[0], upper[0]
    return _narrowest(of, mass)


@np.errstate(all="ignore")
def _narrowest(of: Continuous, mass: float) -> tuple[np.ndarray, np.ndarray]:
    start, end = of.support
    tail = (1 - mass) / 2
    lower, upper = np.array(of.quantile(tail)), np.array(of.quantile(1 - tail))
    mode = np.asarray(of.mode())
    # No inner peak: the interval begins or ends where the support does, whichever is narrower.
    edge = ~((mode > start) & (mode < end))
    if edge.any():
        at = of[edge]
        first, last = np.asarray(at.quantile(mass)), np.asarray(at.quantile(1 - mass))
        from_start = first - start <= end - last
        lower[edge] = np.where(from_start, start, last)
        upper[edge] = np.where(from_start, first, end)
    left = np.nonzero(~edge)
    return _newton(of, mass, mode, lower, upper, left)


def _newton(
    of: Continuous,
    mass: float,
    mode: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    left: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray]:
    scale = Scale(of.support)
    for _ in range(NEWTON_STEPS):
        if not len(left[0]):
            return lower, upper
        at = of[left]
        low, high, peak = lower[left], upper[left], mode[left]
        log_low, log_high = at.log_prob(low), at.log_prob(high)
        missing = mass - (at.cdf(high) - at.cdf(low))
        uneven = log_low - log_high
        speed_low, speed_high = scale.speed(low), scale.speed(high)
        mass_low, mass_high = np.exp(log_low) * speed_low, np.exp(log_high) * speed_high
        rise_low, rise_high = at.slope(low) * speed_low, at.slope(high) * speed_high
        # −f(l) dl + f(u) du = missing mass;  −s(l) dl + s(u) du = log f(l) − log f(u)
        determinant = mass_high * rise_low - mass_low * rise_high
        step_low = (missing * rise_high - uneven * mass_high) / determinant
        step_high = (missing * rise_low - uneven * mass_low) / determinant
        new_low, new_high = scale.move(low, step_low), scale.move(high, step_high)
        # A step past the peak would leave the branch: go half way to it instead.
        new_low = np.where(new_low < peak, new_low, (low + peak) / 2)
        new_high = np.where(new_high > peak, new_high, (high + peak) / 2)
        flat = (rise_low == 0) & (rise_high == 0)  # every interval is as narrow: keep the first
        new_low, new_high = np.where(flat, low, new_low), np.where(flat, high, new_high)
        good = np.isfinite(new_low) & np.isfinite(new_high)
        lower[left] = np.where(good, new_low, low)
        upper[left] = np.where(good, new_high, high)
        # Newton doubles its digits: a step of 1e-6 of the width leaves an error of its square.
        small = 1e-6 * (high - low) + 4 * np.finfo(float).eps * np.abs(high)
        done = good & (np.abs(new_low - low) <= small) & (np.abs(new_high - high) <= small)
        left = tuple(axis[~done] for axis in left)
        left = _pinned(of, mass, lower, upper, left)
    return _bisect(of, mass, lower, upper, left)


def _pinned(
    of: Continuous,
    mass: float,
    lower: np.ndarray,
    upper: np.ndarray,
    left: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, ...]:
    """Rows with an end as near to that of the support as floats come: there it stays."""
    at_start = (lower[left] < 1e-290) & (of.support[0] == 0)
    at_end = (upper[left] > 1 - 1e-15) & (of.support[1] == 1)
    first = tuple(axis[at_start] for axis in left)
    last = tuple(axis[at_end & ~at_start] for axis in left)
    lower[first], upper[first] = 0.0, of[first].quantile(mass)
    lower[last], upper[last] = of[last].quantile(1 - mass), 1.0
    return tuple(axis[~(at_start | at_end)] for axis in left)


def _bisect(
    of: Continuous,
    mass: float,
    lower: np.ndarray,
    upper: np.ndarray,
    left: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """By the mass below the interval: too little of it, and the lower end is the less dense."""
    rows = len(left[0])
    if rows:
        at = of[left]
        below, above = np.zeros(rows), np.full(rows, 1 - mass)
        for _ in range(BISECTIONS):
            middle = (below + above) / 2
            low, high = at.quantile(middle), at.quantile(middle + mass)
            less = at.log_prob(low) < at.log_prob(high)
            below, above = np.where(less, middle, below), np.where(less, above, middle)
        lower[left], upper[left] = at.quantile(below), at.quantile(below + mass)
    return lower, upper


# --- whole numbers ------------------------------------------------------------------------------


def integer_quantile(of: Integer, q: Any) -> np.ndarray:
    """The smallest k with cdf(k) >= q, by doubling and halving."""
    q = np.asarray(q, dtype=float)
    shape = np.broadcast_shapes(of.shape, q.shape)
    top = np.broadcast_to(np.asarray(of.top, dtype=float), shape)
    enough = q * (1 - 8 * np.finfo(float).eps)  # a cdf is right to its last digits only
    low = np.full(shape, -1.0)  # cdf(low) < q
    high = np.minimum(np.broadcast_to(np.asarray(of.mode(), dtype=float) + 1, shape), top)
    for _ in range(1100):
        short = (of.cdf(high) < enough) & (high < top)
        if not short.any():
            break
        low = np.where(short, high, low)
        high = np.where(short, np.minimum(high * 2 + 1, top), high)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        reached = of.cdf(middle) >= enough
        move = high - low > 1
        high = np.where(move & reached, middle, high)
        low = np.where(move & ~reached, middle, low)
    return high


def narrowest_set(of: Integer, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """The fewest neighbouring values that hold the mass: the densest window of each size is where
    its two ends balance, and the size is halved until one fewer would not do."""
    below = np.asarray(of.quantile((1 - mass) / 2))
    wide = np.asarray(of.quantile(1 - (1 - mass) / 2)) - below  # last − first, surely enough
    narrow = np.full(of.shape, -1.0)  # surely not enough
    enough = mass * (1 - 8 * np.finfo(float).eps)
    first = below
    while (wide - narrow > 1).any():
        size = np.floor((wide + narrow) / 2)
        at = _densest(of, size)
        holds = of.cdf(at + size) - of.cdf(at - 1) >= enough
        move = wide - narrow > 1
        first = np.where(move & holds, at, first)
        wide = np.where(move & holds, size, wide)
        narrow = np.where(move & ~holds, size, narrow)
    return first, first + wide


def _densest(of: Integer, size: np.ndarray) -> np.ndarray:
    """Where a window of size + 1 values holds most, for a mass with one peak."""
    mode = np.asarray(of.mode(), dtype=float)
    low = np.maximum(mode - size, 0.0)
    high = np.minimum(mode, np.asarray(of.top, dtype=float) - size)
    while (high > low).any():
        middle = np.floor((low + high) / 2)
        # The window gains by one step up if what it takes in is more likely than what it lets go.
        gains = of.log_prob(middle + size + 1) > of.log_prob(middle)
        move = high > low
        low = np.where(move & gains, middle + 1, low)
        high = np.where(move & ~gains, middle, high)
    return low
