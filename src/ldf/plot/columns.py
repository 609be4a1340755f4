"""Columns of the data, each by a histogram and a map beside it (Appendix C).

Bars have the colours of the map, so that the histogram is its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check
from ldf.plot.colours import colouring
from ldf.plot.figure import bare, pyplot, settle
from ldf.plot.maps import Paint, map_panel, paint_areas, paint_grid, paint_points, shown_areas
from ldf.plot.projection import Areas
from ldf.plot.table import Table, data_frame
from ldf.plot.table import labels as labels_of

BINS = 24


@dataclass(frozen=True, eq=False)
class Histograms(Table):
    """One row a column and bin; and the values themselves, for the maps."""

    column: np.ndarray
    left: np.ndarray
    right: np.ndarray
    count: np.ndarray
    values: dict[str, np.ndarray]  # NaN where there is none

    def to_dict(self) -> dict[str, np.ndarray]:
        named = ("column", "left", "right", "count")
        return {name: getattr(self, name) for name in named}

    def values_frame(self, unit: Any = None) -> Any:
        """The values of the maps, one row a column and unit; `unit` are the units' names."""
        each = list(self.values.values())
        names = labels_of(unit, len(each[0]))
        table = {
            "column": np.repeat(self.columns, len(names)),
            "unit": np.tile(names, len(each)),
            "value": np.concatenate(each),
        }
        return data_frame(table)

    @property
    def columns(self) -> list[str]:
        return list(self.values)

    @classmethod
    def of(
        cls, columns: Mapping[str, Any], bins: int = BINS, *, standardise: bool = False
    ) -> Histograms:
        """Of columns by name; `standardise` brings each to mean 0 and standard deviation 1."""
        if not columns:
            raise ValueError("there is no column to draw: give one, as in {'trials': …}")
        parts, values = [], {}
        for name, given in columns.items():
            of = np.asarray(check.numbers(name, given, absent=True), float)
            if standardise:
                of = (of - np.nanmean(of)) / np.nanstd(of)
            values[name] = of
            known = of[np.isfinite(of)]
            count, edges = np.histogram(known, _edges(known, bins))
            parts.append((np.full(len(count), name), edges[:-1], edges[1:], count))
        return cls(*(np.concatenate(of) for of in zip(*parts, strict=True)), values=values)


def _edges(known: np.ndarray, bins: int) -> np.ndarray:
    """Even bins; of whole numbers, each with as many of them."""
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    if known.size and (known == known.round()).all():
        step = np.ceil((high - low + 1) / bins)
        return np.arange(low, high + 1 + step, step) - 0.5
    return np.linspace(low, high if high > low else low + 1, bins + 1)


def histograms(
    table: Histograms,
    place: Any,
    *,
    scale: str = "linear",
    labels: Mapping[str, str] | None = None,
    units: str = "units",
    axes: Any = None,
) -> Any:
    """Draw a histogram and a map a column.

    `place` is where values are: the shape (rows, columns) of a grid of cells, coordinates, units ×
    2, or `Areas`. Counts are on a square-root axis, so that single units remain visible. `labels`
    are your words for the columns. `axes` are a histogram's and a map's in turn. Returns the
    figure.
    """
    paint, shaped = _painter(place)
    names, words = table.columns, dict(labels or {})
    if axes is None:
        size = (7.2, 2.2 * len(names))
        ratio = {"width_ratios": [1.2, 1]}
        _, grid = pyplot().subplots(
            len(names), 2, figsize=size, squeeze=False, layout="constrained", gridspec_kw=ratio
        )
    else:
        grid = np.reshape(axes, (len(names), 2))
    for (left, right), name in zip(grid, names, strict=True):
        of = colouring(shaped(table.values[name]), scale=scale)
        some = table.column == name
        low, width = table.left[some], (table.right - table.left)[some]
        middle = np.clip(low + width / 2, of.norm.vmin, of.norm.vmax)
        colours = of.palette(of.norm(middle))
        left.bar(
            low,
            table.count[some],
            width,
            align="edge",
            color=colours,
            edgecolor="#555555",
            linewidth=0.4,
        )
        left.set_yscale("function", functions=(lambda c: np.sqrt(np.maximum(c, 0)), np.square))
        top = int(table.count[some].max(initial=1))
        left.set_ylim(0, 1.05 * top)
        left.yaxis.set_major_locator(_few(top))
        whole = (low + 0.5 == (low + 0.5).round()) & (width == 1)
        if whole.all() and len(low) <= 10:  # few whole numbers: a tick each
            left.set_xticks(low + 0.5)
        left.set_ylabel(units)
        left.set_xlabel(words.get(name, name))
        bare(left)
        map_panel(right, of, paint, "")
    return settle(grid[0, 0].figure)


def _few(top: int) -> Any:
    """A few round counts, for an axis on which small ones have room."""
    from matplotlib.ticker import FixedLocator

    step = 10 ** np.floor(np.log10(max(top, 1)))
    return FixedLocator(
        [v for v in step * np.array([0, 0.1, 0.5, 1, 2, 4, 6, 8]) if v <= top and v == round(v)]
    )


def _painter(place: Any) -> tuple[Paint, Callable[[np.ndarray], np.ndarray]]:
    if isinstance(place, Areas):
        return paint_areas(place), lambda values: shown_areas(place, values)
    if isinstance(place, tuple) and np.ndim(place[0]) == 0:
        return paint_grid, lambda values: np.reshape(values, place)
    at = np.asarray(place, float)
    if at.ndim != 2 or at.shape[1] != 2:
        raise ValueError(f"place has shape {at.shape}: give units × 2 coordinates")
    return paint_points(at), np.asarray
