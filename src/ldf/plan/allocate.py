"""Spending a budget on surveys of units, where each further observation is worth another gain.

Gains grow with the number of observations, mostly ever more slowly, but a first one may gain
nothing (it cannot turn a decision) and a visit may have a price of its own. So what is bought is
a step along the concave hull of a unit's gains by cost, which may be several observations at once,
and steps are bought by gain per cost until the budget is spent. Where gains are concave, and all
observations cost the same, no plan gains more; otherwise it falls short by less than the one step
that was too dear, and what it leaves over goes to whatever can still be bought.

Gains are asked for at levels: each number of observations while they are few, then ever wider
apart; and only where they can still matter at the price the budget is spent at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

EVERY = 16  # levels until which each number of observations is one
WIDER = 4  # beyond, a level is larger by a quarter
ROUND = 8  # levels asked for at once
LEAST = 1e-9  # of the largest gain: less is what arithmetic leaves


class Offer(NamedTuple):
    """What can be bought at each of M units."""

    cost: np.ndarray  # of one observation
    visit: np.ndarray  # of coming at all
    minimum: np.ndarray  # observations, if any
    most: np.ndarray  # that can be had, and paid; less than the minimum: none
    step: float  # observations come in portions of this size


class Levels(NamedTuple):
    """Numbers of observations, M units × R levels."""

    amount: np.ndarray
    cost: np.ndarray  # ∞ where there is no such level
    gain: np.ndarray  # −∞ where it was not asked for


Gain = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (units, amounts) → what they gain


def allocate(offer: Offer, budget: float, gain: Gain, most: np.ndarray) -> np.ndarray:
    """How many observations of each unit. No unit gains more than `most`."""
    levels = _levels(offer)
    asked = np.zeros(len(offer.cost), int)
    wanted = np.full(len(asked), ROUND)
    while True:
        _ask(levels, gain, asked, wanted)
        asked = np.maximum(asked, np.minimum(wanted, levels.gain.shape[1]))
        steps = _steps(levels)
        wanted = np.where(_may_gain(levels, steps, budget, asked, most), asked + ROUND, asked)
        if (wanted == asked).all():
            break
    chosen = _bought(levels, steps, budget, np.full(len(asked), -1))
    alone = np.where(levels.cost <= budget, levels.gain, -np.inf)
    if alone.size and np.isfinite(alone.max()):  # one dear unit may gain more than many cheap ones
        first = np.full(len(asked), -1)
        unit, level = np.unravel_index(alone.argmax(), alone.shape)
        first[unit] = level
        other = _bought(levels, steps, budget, first)
        if _total(levels, other) > _total(levels, chosen):
            chosen = other
    return _with_the_rest(offer, levels, chosen, budget)


def _levels(offer: Offer) -> Levels:
    """The numbers of observations there are prices for; all units have the same, from their minimum
    on, and the last is the most they have."""
    room = np.where(offer.most >= offer.minimum, (offer.most - offer.minimum) / offer.step, -1)
    highest = int(np.ceil(room.max(initial=-1) - 1e-9))
    numbers = list(range(min(highest, EVERY) + 1))
    while numbers and numbers[-1] < highest:
        numbers.append(min(highest, numbers[-1] + max(1, numbers[-1] // WIDER)))
    each = np.array(numbers, float)[None, :]
    amount = np.minimum(offer.minimum[:, None] + offer.step * each, offer.most[:, None])
    # The most a unit has is one of its levels, and stands there once.
    there = (room[:, None] >= 0) & (np.diff(amount, axis=1, prepend=-1) > 0)
    cost = offer.visit[:, None] + offer.cost[:, None] * amount
    return Levels(amount, np.where(there, cost, np.inf), np.full(amount.shape, -np.inf))


def _ask(levels: Levels, gain: Gain, asked: np.ndarray, wanted: np.ndarray) -> None:
    at = np.arange(levels.gain.shape[1])[None, :]
    new = (at >= asked[:, None]) & (at < wanted[:, None]) & np.isfinite(levels.cost)
    units, _ = np.nonzero(new)
    if len(units):
        levels.gain[new] = gain(units, levels.amount[new])


class Steps(NamedTuple):
    """Steps along all units' hulls, the best first."""

    unit: np.ndarray
    level: np.ndarray  # where it leads
    cost: np.ndarray
    slope: np.ndarray  # gain per cost


def _steps(levels: Levels) -> Steps:
    units = np.arange(len(levels.gain))
    gain, cost = np.zeros(len(units)), np.zeros(len(units))
    at = np.full(len(units), -1)
    least = LEAST * max(levels.gain.max(initial=0), 0)
    found = []
    while len(units):
        more, further = levels.gain[units] - gain[:, None], levels.cost[units] - cost[:, None]
        ahead = np.arange(more.shape[1])[None, :] > at[:, None]
        with np.errstate(invalid="ignore"):
            slope = np.where(ahead & (more > least), more / further, 0.0)
        to = slope.argmax(1)
        rows = np.arange(len(units))
        best = slope[rows, to]
        up = best > 0
        rows, units, to = rows[up], units[up], to[up]
        found.append((units, to, further[rows, to], best[up]))
        at, gain, cost = to, levels.gain[units, to], levels.cost[units, to]
    parts = [np.concatenate(part) for part in zip(*found, strict=True)] if found else [[]] * 4
    unit, level, cost, slope = (np.asarray(part) for part in parts)
    order = np.argsort(-slope, kind="stable")  # a unit's own steps are in this order already
    return Steps(unit[order].astype(int), level[order].astype(int), cost[order], slope[order])


def _may_gain(
    levels: Levels, steps: Steps, budget: float, asked: np.ndarray, most: np.ndarray
) -> np.ndarray:
    """Units for which a level not asked for may be worth the price."""
    up_to = np.cumsum(steps.cost)
    over = np.flatnonzero(up_to > budget)
    price = steps.slope[over[0]] if len(over) else 0.0
    level = np.full(len(asked), -1)
    dear = steps.slope >= price
    np.maximum.at(level, steps.unit[dear], steps.level[dear])
    units, there = np.arange(len(asked)), level >= 0
    gain = np.where(there, levels.gain[units, level], 0.0)
    cost = np.where(there, levels.cost[units, level], 0.0)
    size = levels.gain.shape[1]
    if not size:
        return np.zeros(len(asked), bool)
    further = np.where(asked < size, levels.cost[units, np.minimum(asked, size - 1)], np.inf)
    there = np.isfinite(further)
    worth = np.zeros(len(asked), bool)
    worth[there] = (most - gain)[there] > price * (further - cost)[there]
    # Of what has no most, information, gains are concave: only who is at the top may want more.
    return worth & (np.isfinite(most) | (level == asked - 1))


def _total(levels: Levels, chosen: np.ndarray) -> float:
    there = chosen >= 0
    return float(levels.gain[np.flatnonzero(there), chosen[there]].sum())


def _bought(levels: Levels, steps: Steps, budget: float, chosen: np.ndarray) -> np.ndarray:
    """Steps from the best on, as long as there is money; then any level that can still be paid."""
    chosen, there = chosen.copy(), chosen >= 0
    left = budget - levels.cost[np.flatnonzero(there), chosen[there]].sum()
    stuck = there.copy()
    slack = 1e-12 * budget
    for unit, level, cost in zip(*(part.tolist() for part in steps[:3]), strict=True):
        if not stuck[unit]:
            if cost <= left + slack:
                chosen[unit], left = level, left - cost
            else:
                stuck[unit] = True
    units = np.arange(len(chosen))
    while True:
        there = chosen >= 0
        gain = np.where(there, levels.gain[units, chosen], 0.0)
        cost = np.where(there, levels.cost[units, chosen], 0.0)
        with np.errstate(invalid="ignore"):
            more, further = levels.gain - gain[:, None], levels.cost - cost[:, None]
            slope = np.where((further > 0) & (further <= left + slack), more / further, 0.0)
        if not slope.size or slope.max() <= 0:
            return chosen
        unit, level = np.unravel_index(slope.argmax(), slope.shape)
        left -= further[unit, level]
        chosen[unit] = level


def _with_the_rest(offer: Offer, levels: Levels, chosen: np.ndarray, budget: float) -> np.ndarray:
    """Observations, with what was left over spent between levels, where a unit has some already:
    first where the way to the next level gains most per cost."""
    units, there = np.arange(len(chosen)), chosen >= 0
    amount = np.where(there, levels.amount[units, chosen], 0.0)
    left = budget - np.where(there, levels.cost[units, chosen], 0.0).sum()
    then = np.minimum(chosen + 1, levels.gain.shape[1] - 1)
    with np.errstate(invalid="ignore"):
        more = levels.gain[units, then] - levels.gain[units, chosen]
        slope = more / (levels.cost[units, then] - levels.cost[units, chosen])
    for unit in np.argsort(-np.where(there & (slope > 0), slope, 0.0), kind="stable"):
        if not there[unit] or not slope[unit] > 0:
            break
        gap = levels.amount[unit, then[unit]] - amount[unit]
        portions = np.floor(min(left / offer.cost[unit], gap) / offer.step + 1e-9)
        if portions > 0:
            amount[unit] += portions * offer.step
            left -= portions * offer.step * offer.cost[unit]
    return amount
