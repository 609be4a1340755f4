"""What auxiliary data are worth in each unit: how many pseudo-observations, against their rate.

Of trials, n against μ = t/n; of arrivals, the pseudo-occurrences a against the rate a/b. A
regression that gives all units the same number is a line (Sections 5 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.check import DataError
from ldf.plot.colours import colouring
from ldf.plot.figure import SMALL, bare, given_axis
from ldf.plot.roles import ROLES, names_of
from ldf.plot.table import Table
from ldf.statistic import Arrivals, Statistic, Trials

MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # of assignments
SAME = 1e-6  # relative differences below it are none
FEW = 20  # numbers that a baseline gives to many units: a line each


@dataclass(frozen=True, eq=False)
class Worth(Table):
    """One row a unit and model."""

    model: np.ndarray  # "ldf" or "compound"
    rate: np.ndarray  # μ, or a/b
    amount: np.ndarray  # n, or a
    assignment: np.ndarray  # which mapping of a mixture holds; "" where there is one only

    @classmethod
    def of(
        cls,
        pseudo: Statistic,
        baseline: Statistic | None = None,
        *,
        assignment: Any = None,
        per: float = 1.0,
    ) -> Worth:
        """From T_x of each unit, and that of the compound regression. `assignment` is each unit's
        mapping in a mixture; `per` the exposure that a rate is shown for."""
        rate, amount = _coordinates(pseudo, per)
        group = np.full(len(rate), "") if assignment is None else np.asarray(assignment).astype(str)
        if group.shape != rate.shape:
            problem = f"has shape {group.shape} but there are {len(rate)} units"
            raise DataError("assignment", None, None, problem, "give one a unit")
        parts = [(np.full(len(rate), "ldf"), rate, amount, group)]
        if baseline is not None:
            theirs, number = _coordinates(baseline, per)
            words = np.full(len(theirs), "compound"), np.full(len(theirs), "")
            parts.append((words[0], theirs, number, words[1]))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _coordinates(pseudo: Statistic, per: float) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(pseudo, Trials):
        t, n = (np.atleast_1d(np.asarray(of, float)) for of in (pseudo.t, pseudo.n))
        return t / n, n
    if isinstance(pseudo, Arrivals):
        a, b = (np.atleast_1d(np.asarray(of, float)) for of in np.broadcast_arrays(*_pair(pseudo)))
        return per * a / b, a
    raise TypeError(f"{type(pseudo).__name__} has no rate: give trials or arrivals")


def _pair(pseudo: Arrivals) -> tuple[Any, ...]:
    return pseudo.coordinates()


def worth(
    table: Worth,
    *,
    names: dict[str, str] | None = None,
    rate: str = "rate μ(x)",
    amount: str = "pseudo-observations n(x)",
    log: bool = False,
    axis: Any = None,
) -> Any:
    """Draw the number of pseudo-observations against their rate, a point a unit.

    A baseline that gives all units the same number, or those of each fold one, is a dashed line a
    number, as long as its rates reach; otherwise it has points of its own. Points of different
    assignments differ in colour and marker, and then the baseline's are black crosses. Returns the
    figure.
    """
    axis = given_axis(axis, (5.6, 3.8))
    words = names_of(names)
    mine = table.model == "ldf"
    groups = sorted(set(table.assignment[mine]))
    colours = colouring(table.assignment[mine], order=groups).palette if groups != [""] else None
    style: dict[str, Any] = {"s": 14, "alpha": 0.65, "linewidth": 0}
    for i, group in enumerate(groups):
        some = mine & (table.assignment == group)
        look = {"color": ROLES["ldf"].colour if colours is None else colours(i)}
        label = f"{words['ldf']}: {group}" if group else words["ldf"]
        text = f"{label} ({some.sum():,})"
        marker = MARKERS[i]
        axis.scatter(
            table.rate[some], table.amount[some], marker=marker, label=text, **style, **look
        )
    theirs = table.amount[~mine]
    if theirs.size:
        number = _numbers(theirs)
        if number.max() < min(FEW, theirs.size / 2):
            _lines(axis, table.rate[~mine], theirs, number, words["compound"])
        else:
            look = {"color": ROLES["compound"].colour, "marker": ROLES["compound"].marker}
            if colours is not None:  # among them is the role's own
                look = {"color": "black", "marker": "x", "linewidth": 0.5}
            label = f"{words['compound']} ({theirs.size:,})"
            axis.scatter(table.rate[~mine], theirs, label=label, zorder=0, **style | look)
    if log:
        axis.set(xscale="log", yscale="log")
        for of in (axis.xaxis, axis.yaxis):
            of.set_major_formatter("{x:g}")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(rate)
    axis.set_ylabel(amount)
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 2}
    axis.legend(frameon=False, fontsize=SMALL, columnspacing=1.2, handlelength=1.8, **place)
    bare(axis)
    return axis.figure


def _numbers(amount: np.ndarray) -> np.ndarray:
    """Which of the numbers that there are each amount is, from the lowest on."""
    order = np.argsort(amount)
    steps = np.diff(amount[order]) > SAME * amount[order][1:]
    which = np.empty(len(amount), int)
    which[order] = np.concatenate([[0], np.cumsum(steps)])
    return which


def _lines(axis: Any, rate: np.ndarray, amount: np.ndarray, number: np.ndarray, word: str) -> None:
    """A dashed line for each number, from the lowest to the highest rate of the units it is of."""
    several = int(number.max()) + 1
    low, high = amount.min(), amount.max()
    label = f"{word}: {low:.3g} everywhere"
    if several > 1:
        label = f"{word}: {low:.2g} to {high:.2g}"
    style = {"color": "black", "linestyle": "--", "linewidth": 1.4 if several == 1 else 0.7}
    for one in range(several):
        some = number == one
        ends = [rate[some].min(), rate[some].max()]
        axis.plot(ends, [amount[some].mean()] * 2, label=label if one == 0 else "_", **style)
