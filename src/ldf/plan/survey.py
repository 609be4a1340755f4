"""A plan for the units of a frame: what was asked, checked; and what comes of it, in a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ldf import check, notebook
from ldf.plan.allocate import Offer, allocate
from ldf.plan.answers import Belief
from ldf.plan.targets import Exceeds, Target, named_target
from ldf.results import Units


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """How many observations to make of each unit, and what they are expected to gain."""

    units: Units
    target: Target
    observations: np.ndarray
    cost: np.ndarray
    gain: np.ndarray  # expected, times the unit's weight
    before: np.ndarray  # what is lost by not knowing θ now: its variance, entropy, or risk
    weight: np.ndarray
    budget: float

    def __len__(self) -> int:
        return len(self.units)

    @property
    def spent(self) -> float:
        return float(self.cost.sum())

    @property
    def total(self) -> float:
        """What all observations together are expected to gain."""
        return float(self.gain.sum())

    @property
    def after(self) -> np.ndarray:
        """What is expected to be lost after them."""
        with np.errstate(invalid="ignore"):
            fall = np.where(self.gain > 0, self.gain / self.weight, 0.0)
        return self.before - fall

    def to_frame(self) -> Any:
        """One row a unit: observations, what they cost, the expected gain (times the weight), and
        the mse, entropy or risk before and as expected after."""
        table = {
            "unit": self.units.label,
            "observations": self.observations,
            "cost": self.cost,
            "gain": self.gain,
            f"{self.target.word}_before": self.before,
            f"{self.target.word}_after": self.after,
        }
        return self.units.frame(table)

    def __repr__(self) -> str:
        visited = int((self.observations > 0).sum())
        summed = "summed over units" if (self.weight == 1).all() else "summed by weight"
        before = float((self.weight * self.before).sum())
        return (
            f"plan: {self.observations.sum():,.10g} observations at {visited:,} of {len(self):,} "
            f"units for {self.spent:,.6g} of a budget of {self.budget:,.6g}; the "
            f"{self.target.sentence}, {summed}, is expected to fall by {self.total:.4g} "
            f"from {before:.4g} to {before - self.total:.4g}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: where most is gained."""
        first = np.argsort(-self.gain, kind="stable")[: notebook.SHOWN]
        table = {
            "unit": self.units.label[first],
            "observations": self.observations[first],
            "cost": self.cost[first],
            "gain": self.gain[first],
        }
        return notebook.table(repr(self), table, "The units where most is gained.")


def make(
    of: Belief,
    units: Units,
    budget: Any,
    cost: Any = 1.0,
    target: Any = "mse",
    *,
    visit: Any = 0.0,
    minimum: Any = None,
    most: Any = None,
    step: Any = 1.0,
    weights: Any = None,
) -> Plan:
    """Spend a budget. Costs and numbers are one for all units, a column, or one a unit."""
    goal, money, portion = _goal(target, of), _money(budget), _portion(step, of)
    price, coming = _above_zero(units, "cost", cost), _amounts(units, "visit", visit)
    weight = np.ones(len(units)) if weights is None else units.weights(weights)
    least = np.full(len(units), portion)
    if minimum is not None:
        least = _above_zero(units, "minimum", minimum)
        _refuse_parts(units, "minimum", minimum, least, of)
    can_pay = least + portion * np.floor((money - coming - price * least) / price / portion + 1e-9)
    limit = can_pay
    if most is not None:
        there = _amounts(units, "most", most)
        _refuse_parts(units, "most", most, there, of)
        remedy = "lower the minimum, or give the unit a most of zero to leave it out"
        fewer = (there < least) & (there > 0)
        if minimum is None:
            least = np.where(fewer, there, least)  # less than a portion is there
        else:
            _refuse(units, "minimum", minimum, least, fewer, "is more than there are", remedy)
        limit = np.where(there > 0, np.minimum(there, can_pay), 0.0)
    offer = Offer(price, coming, least, limit, portion)
    if not (limit >= least).any():
        raise _nothing(units, money, coming + price * least, most)
    ask = partial(_weighed, goal, of, weight)
    amount = allocate(offer, money, ask, weight * goal.most(of))
    there = np.flatnonzero(amount > 0)
    gain = np.zeros(len(units))
    gain[there] = ask(there, amount[there])
    amount = np.round(amount).astype(int) if of.kind.whole else amount
    paid = np.where(amount > 0, coming + price * amount, 0.0)
    return Plan(units, goal, amount, paid, gain, goal.now(of), weight, money)


def expected_gain(of: Belief, units: Units, observations: Any, target: Any = "entropy") -> Any:
    """What so many further observations are expected to gain, of each unit on its own: a frame."""
    goal = _goal(target, of)
    amount = _amounts(units, "observations", observations)
    _refuse_parts(units, "observations", observations, amount, of)
    some, gain, before = np.flatnonzero(amount > 0), np.zeros(len(units)), goal.now(of)
    gain[some] = goal.gain(of, some, amount[some])
    table = {
        "unit": units.label,
        "observations": amount,
        "gain": gain,
        f"{goal.word}_before": before,
        f"{goal.word}_after": before - gain,
    }
    return units.frame(table)


def _weighed(
    goal: Target, of: Belief, weight: np.ndarray, rows: np.ndarray, amount: np.ndarray
) -> np.ndarray:
    return weight[rows] * goal.gain(of, rows, amount)


# --- what was asked -----------------------------------------------------------------------------


def _goal(target: Any, of: Belief) -> Target:
    goal = named_target(target)
    low, high = of.latent().support
    if isinstance(goal, Exceeds) and not low < goal.threshold < high:
        problem = f"is no question: θ lies between {check.shown(low)} and {check.shown(high)}"
        raise check.DataError("target", None, goal.threshold, problem, "ask for a value between")
    return goal


def _money(budget: Any) -> float:
    check.single("budget", budget)
    return float(check.nonnegative("budget", budget, "a budget is zero or more"))


def _portion(step: Any, of: Belief) -> float:
    check.single("step", step)
    portion = float(check.positive("step", step))
    if of.kind.whole and portion != round(portion):
        remedy = "observations come one by one: give a whole number"
        raise check.DataError("step", None, step, "is not a whole number", remedy)
    return portion


def _amounts(units: Units, name: str, values: Any) -> np.ndarray:
    """Numbers from zero on."""
    found = units.numbers(name, values)
    remedy = "give a number that is zero or more"
    _refuse(units, name, values, found, found < 0, "is negative", remedy)
    return found


def _above_zero(units: Units, name: str, values: Any) -> np.ndarray:
    found = _amounts(units, name, values)
    _refuse(units, name, values, found, found == 0, "is zero", "give a number above zero")
    return found


def _refuse_parts(units: Units, name: str, given: Any, found: np.ndarray, of: Belief) -> None:
    if of.kind.whole:
        wrong, remedy = found != np.round(found), "observations come one by one: round it"
        _refuse(units, name, given, found, wrong, "is not a whole number", remedy)


def _refuse(
    units: Units, name: str, given: Any, found: np.ndarray, wrong: Any, problem: str, remedy: str
) -> None:
    """Of one number for all, no row is named."""
    if np.any(wrong):
        at = int(np.argmax(wrong))
        alone = not isinstance(given, str) and np.ndim(given) == 0
        column, row = given if isinstance(given, str) else name, units.label[at]
        raise check.DataError(column, None if alone else row, found[at], problem, remedy)


def _nothing(units: Units, budget: float, least: np.ndarray, most: Any) -> check.DataError:
    if most is not None and not (units.numbers("most", most) > 0).any():
        return check.DataError("most", None, None, "is zero for all units", "let some have any")
    problem = f"pays for no unit: the cheapest costs {check.shown(float(least.min()))}"
    return check.DataError("budget", None, budget, problem, "give more, or a smaller minimum")
