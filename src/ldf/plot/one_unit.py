"""Single units from data to answer: features against the population, posterior, predictive.

The paper's figure "Features and inferences" (Section 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check
from ldf.check import DataError
from ldf.plot.figure import INK, SMALL, bare, pyplot
from ldf.plot.ridges import along, draw_unit, drawn_roles, marked, span
from ldf.plot.roles import legend
from ldf.plot.slots import Profiles
from ldf.plot.table import Table, labels

BAR = "#7a7a7a"
MIDDLE = (0.05, 0.95)  # of the population, shaded behind a bar
FAR = 4.0  # standard deviations: longer bars are cut, and say so


@dataclass(frozen=True, eq=False)
class Features(Table):
    """One row a unit and feature."""

    unit: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    standardised: np.ndarray  # by the mean and the standard deviation of the population
    lower: np.ndarray  # 5 % of the population are below, standardised
    upper: np.ndarray  # 5 % are above

    @classmethod
    def of(
        cls,
        features: Any,
        names: Sequence[str],
        rows: Any,
        *,
        unit: Any = None,
        sensitive: Sequence[str] = (),
    ) -> Features:
        """Of some `rows` of a population's features, units × features. `unit` are the names of
        these rows; features in `sensitive` go by their number."""
        x = np.asarray(check.numbers("features", features, absent=True), float)
        if x.ndim != 2 or x.shape[1] != len(names):
            problem = f"has shape {x.shape} for {len(names)} names"
            raise DataError("features", None, None, problem, "give units × features")
        shown = [f"feature #{j + 1}" if n in sensitive else n for j, n in enumerate(names)]
        some = np.atleast_1d(np.arange(len(x))[rows])
        spread = np.nanstd(x, 0)
        z = (x - np.nanmean(x, 0)) / np.where(spread > 0, spread, 1.0)
        low, high = np.nanquantile(z, MIDDLE, axis=0)
        each = len(names)
        return cls(
            np.repeat(labels(unit, len(some)), each),
            np.tile(shown, len(some)),
            x[some].ravel(),
            z[some].ravel(),
            np.tile(low, len(some)),
            np.tile(high, len(some)),
        )

    @property
    def units(self) -> list[Any]:
        return list(dict.fromkeys(self.unit.tolist()))


def features(table: Features, unit: Any = None, *, axis: Any = None) -> Any:
    """Draw one unit's features as bars, in standard deviations from the population's mean; the
    shade behind holds nine tenths of the population. Values stand beside. Returns the figure."""
    which = table.units[0] if unit is None else unit
    some = table.unit == which
    number = int(some.sum())
    if axis is None:
        _, axis = pyplot().subplots(figsize=(4.4, 0.34 * number + 1.0), layout="constrained")
    at = -np.arange(number)
    low, high = table.lower[some], table.upper[some]
    axis.barh(at, high - low, left=low, height=0.82, color="#e9e9e9", zorder=0, label="population")
    z = table.standardised[some]
    axis.barh(at, np.clip(z, -FAR, FAR), height=0.46, color=BAR, label="unit")
    axis.axvline(0, color=INK, linewidth=0.9)
    for place, length, value in zip(at, z, table.value[some], strict=True):
        beyond = " →" if abs(length) > FAR else ""
        edge = float(np.clip(length, -FAR, FAR))
        side = 1 if not length < 0 else -1
        text = "missing" if np.isnan(value) else f"{value:.3g}{beyond}"
        style = {"ha": "left" if side > 0 else "right", "va": "center", "fontsize": SMALL}
        where = (0.0 if np.isnan(edge) else edge, place)
        axis.annotate(text, where, (3 * side, 0), textcoords="offset points", **style)
    axis.set_yticks(at, table.feature[some].tolist(), fontsize=SMALL)
    axis.tick_params(axis="y", length=0)
    reach = max(2.0, float(np.nanmax(np.abs(np.clip([*z, *low, *high], -FAR, FAR)))))
    axis.set_xlim(-1.35 * reach, 1.35 * reach)
    axis.set_ylim(0.6 - number, 0.6)
    axis.set_xlabel("standard deviations from the mean", fontsize=SMALL)
    bare(axis, "top", "right", "left")
    return axis.figure


def inferences(
    table: Features,
    posterior: Profiles,
    predictive: Profiles,
    *,
    names: Mapping[str, str] | None = None,
    theta: str = "θ",
    y: str = "y / n",
    axes: Any = None,
) -> Any:
    """Draw units from data to answer, a row of three panels each: features, posterior, predictive.

    The three tables are of the same units in the same order. `axes` are three a unit. Returns the
    figure.
    """
    units = table.units
    if not len(units) == len(posterior) == len(predictive):
        found = f"{len(units)}, {len(posterior)} and {len(predictive)}"
        raise ValueError(f"there are {found} units: give three tables of the same units")
    if axes is None:
        number = len(table.feature) // len(units)
        size = (11.0, len(units) * max(2.1, 0.26 * number + 0.9) + 0.5)
        _, grid = pyplot().subplots(
            len(units), 3, figsize=size, squeeze=False, layout="constrained"
        )
    else:
        grid = np.reshape(axes, (len(units), 3))
    for row, unit in enumerate(units):
        first, *others = grid[row]
        features(table, unit, axis=first)
        first.set_title(str(unit), fontsize=10, loc="left", fontweight="bold")
        titles = ("posterior of θ, given the features", "predictive of y, given the features")
        for axis, of, quantity, title in zip(
            others, (posterior, predictive), (theta, y), titles, strict=True
        ):
            ends = span(of)
            along(axis, "linear", ends)
            draw_unit(axis, of, row, base=0.0, height=1.0, ends=ends)
            axis.set_ylim(-0.13, 1.08)
            axis.set_yticks([])
            axis.axhline(0, color="#c8c8c8", linewidth=0.6, zorder=0)
            axis.set_xlabel(quantity, fontsize=SMALL)
            axis.set_title(title, fontsize=SMALL, loc="left")
            bare(axis, "top", "right", "left")
    roles, axis = drawn_roles(posterior) | drawn_roles(predictive), grid[0, 1]
    marks = [marked(axis, of, "linear", span(of)) for of in (posterior, predictive)]
    legend(axis.figure, roles, names, marks[0] | marks[1])
    return axis.figure
