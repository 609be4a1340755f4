"""What moves the model's answers: the attributions of columns, a dot a unit.

Columns stand under one another, those that move most first: by the mean size of what they move.
The colour of a dot is the rank of the unit's value in the column; what has no order is grey. That a
column moves an answer does not say that it brings the answer about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.check import DataError
from ldf.frame import Frame
from ldf.plot.colours import colouring
from ldf.plot.figure import INK, MISSING, SMALL, bare, colour_bar, given_axis
from ldf.plot.table import Table

MOST = 12  # columns that are drawn
WIDE = 6.4
BINS = 80  # along the axis; dots of one bin stand on each other
ROOM = 0.4  # of the way to the next column, for the dots of one


@dataclass(frozen=True, eq=False)
class Attribution(Table):
    """One row a unit and column, columns by the mean size of what they move, the largest first."""

    unit: np.ndarray
    column: np.ndarray
    attribution: np.ndarray
    rank: np.ndarray  # of the unit's value, from 0 to 1; NaN if it has none
    size: np.ndarray  # the column's mean |attribution|

    @classmethod
    def of(cls, frame: Any) -> Attribution:
        """From what `model.attribution` gave. Of several sources, columns are named with theirs."""
        table = Frame.open(frame)
        source, column = table.texts("source"), table.texts("column")
        if len(set(source)) > 1:
            column = np.array([f"{s}: {c}" for s, c in zip(source, column, strict=True)], object)
        moved = table.numbers("attribution", missing="give what model.attribution gave")
        if not len(moved):
            raise DataError("attribution", None, None, "has no rows", "give some units")
        size = {name: np.abs(moved[column == name]).mean() for name in dict.fromkeys(column)}
        each = np.array([size[name] for name in column])
        place = {name: i for i, name in enumerate(sorted(size, key=lambda name: -size[name]))}
        order = np.argsort([place[name] for name in column], kind="stable")
        rank, unit = table.numbers("rank"), table.texts("unit")
        return cls(*(of[order] for of in (unit, column, moved, rank, each)))


def attribution(
    table: Attribution, *, quantity: str = "the rate", most: int = MOST, axis: Any = None
) -> Any:
    """Draw what each column moves: a dot a unit, and the mean size beside the column's name.

    `quantity` is what is moved, `most` how many columns are drawn. Returns the figure.
    """
    names = list(dict.fromkeys(table.column))[:most]
    axis = given_axis(axis, (WIDE, 0.6 + 0.34 * len(names)))
    shown = np.isin(table.column, names)
    moved, rank = table.attribution[shown], table.rank[shown]
    place = np.array([names.index(name) for name in table.column[shown]])
    axis.axvline(0, color=INK, linewidth=0.8, zorder=1)
    colours = colouring(rank, (0.0, 1.0))
    drawn = axis.scatter(
        moved, place + _beside(moved, place), c=np.ma.masked_invalid(rank), s=9, linewidths=0,
        norm=colours.norm, cmap=colours.palette.with_extremes(bad=MISSING), plotnonfinite=True,
        zorder=2,
    )  # fmt: skip
    size = dict(zip(table.column, table.size, strict=True))
    labels = [f"{name}  ({size[name]:.2g})" for name in names]
    axis.set_yticks(range(len(names)), labels, fontsize=SMALL)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel(f"moves {quantity} by", fontsize=SMALL)
    axis.set_title("mean size of what a column moves, in brackets", fontsize=SMALL, loc="left")
    bare(axis, "top", "right", "left")
    bar = colour_bar([axis], drawn, "value in the column", ticks=[0, 1], aspect=30)
    bar.ax.set_yticklabels(["lowest", "highest"])
    return axis.figure


def _beside(moved: np.ndarray, place: np.ndarray) -> np.ndarray:
    """How far each dot stands above or below its line, so that dots of one value stand on each
    other: first on the line, then above and below in turn."""
    low, high = moved.min(), moved.max()
    bins = ((moved - low) / (high - low if high > low else 1.0) * BINS).astype(int)
    key = place * (BINS + 1) + bins
    order = np.argsort(key, kind="stable")
    first = np.searchsorted(key[order], key[order])
    turn = np.empty(len(key), int)
    turn[order] = np.arange(len(key)) - first
    offset = (turn + 1) // 2 * np.where(turn % 2, 1.0, -1.0)
    most = np.abs(offset).max(initial=0)
    return offset * min(0.07, ROOM / most if most else 1.0)
