"""Units in the order of their posterior means, each with its interval.

A few stand under one another by name. Many stand side by side, a line each: what is seen then is
how far the means differ from each other, beside how uncertain each one is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.distributions.base import check_mass
from ldf.plot.figure import INK, SMALL, bare, given_axis
from ldf.plot.roles import ROLES
from ldf.plot.table import Table, labels

NAMED = 60  # units that have their names beside them, at most
WIDE = 6.4


@dataclass(frozen=True, eq=False)
class Ranked(Table):
    """One row a unit, the highest first."""

    unit: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    mass: float

    def to_dict(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ("unit", "mean", "lower", "upper")}

    @classmethod
    def of(cls, rate: Any, unit: Any = None, *, mass: float = 0.9) -> Ranked:
        """From the posterior of each unit's θ, and the units' names."""
        check_mass(mass)
        mean = np.atleast_1d(np.asarray(rate.mean(), float))
        if mean.ndim > 1:
            raise ValueError("θ has several components: choose one by .component(…)")
        low, high = (np.atleast_1d(np.asarray(end, float)) for end in rate.interval(mass))
        names = labels(unit, len(mean))
        order = np.argsort(-mean, kind="stable")
        return cls(names[order], mean[order], low[order], high[order], mass)


def ranked(
    table: Ranked, *, quantity: str = "θ", per: float = 1.0, log: bool = False, axis: Any = None
) -> Any:
    """Draw units by rank, with their means and intervals.

    `per` is what a rate is shown for, such as 100,000 person-years. Returns the figure.
    """
    number = len(table.unit)
    if number == 0:
        raise ValueError("there is no unit to draw")
    few = number <= NAMED
    axis = given_axis(axis, (WIDE, 0.4 + 0.19 * number) if few else (WIDE, 3.6))
    low, mean, high = (per * end for end in (table.lower, table.mean, table.upper))
    colour, place = ROLES["ldf"].colour, np.arange(number)
    said = f"mean and {table.mass:.0%} interval"
    if few:
        axis.hlines(-place, low, high, color=colour, alpha=0.55, linewidth=2.2)
        axis.plot(mean, -place, "o", color=INK, markersize=3, label=said)
        axis.set_yticks(-place, [str(name) for name in table.unit], fontsize=SMALL)
        axis.tick_params(axis="y", length=0)
        axis.set(xlabel=f"{quantity}: {said}", ylim=(-number + 0.4, 0.6))
        axis.set_xscale("log" if log else "linear")
        bare(axis, "top", "left", "right")
        return axis.figure
    axis.vlines(place + 1, low, high, color=colour, alpha=0.35, linewidth=200 / number)
    axis.plot(place + 1, mean, color=INK, linewidth=1.2)
    axis.set(
        xlabel=f"rank of {number:,} units, the highest first",
        ylabel=f"{quantity}: {said}",
        xlim=(0, number + 1),
    )
    axis.set_yscale("log" if log else "linear")
    bare(axis)
    return axis.figure
