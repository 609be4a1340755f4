"""Long frames beside the frame of units: several rows a unit, in time or in no order.

A series stands at the end of its columns, so that its last step is always in the same place; what
is before its first step is not there. Of a series that is longer than those of the fit, the last
steps are kept. Items stand at the beginning, in the order of the frame, which means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ldf.beside.base import (
    Beside,
    Block,
    Encoded,
    Opened,
    Units,
    not_here,
    refuse_constant,
    unmatched,
)
from ldf.check import DataError, shown
from ldf.frame import Frame


def _checked(values: Any, most: int | None) -> tuple[str, ...]:
    names = (values,) if isinstance(values, str) else tuple(values)
    if not names:
        raise DataError("values", None, None, "is empty", "name the columns of numbers")
    for name in names:
        if names.count(name) > 1:
            raise DataError(name, None, None, "is twice among the values", "name it once")
    if most is not None and most < 1:
        raise DataError("most", None, most, "is less than one", "give one or more")
    return names


@dataclass(frozen=True, eq=False)
class Series(Beside):
    """A series a unit: a frame with one row a unit and time.

    frame   pandas, polars, pyarrow or a dict of columns
    by      its column of ids, which are those of the units
    time    its column that steps are sorted by: numbers, dates or texts. Only their order counts:
            name it among the values too, if it tells something
    values  its columns of numbers
    most    steps that are kept, the last ones; None: as many as the longest series has

    A unit may have any number of steps; one without any lacks the source. A missing number gets the
    mean of the training rows. A model does not keep the frame.
    """

    frame: Any = field(repr=False)
    by: str
    time: str
    values: tuple[str, ...]
    most: int | None = None

    kind: ClassVar[str] = "series"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.values, self.most))

    def elsewhere(self, given: Any) -> Series:
        return given if isinstance(given, Series) else replace(self, frame=given)

    def unsaved(self) -> Series:
        return replace(self, frame=None)

    def open(self, source: str, units: Units) -> Opened:
        if self.frame is None:
            raise not_here(source)
        return _Rows(source, units, self, Frame.open(self.frame))


@dataclass(frozen=True, eq=False)
class Items(Beside):
    """A set of items a unit: a frame with one row an item.

    frame   pandas, polars, pyarrow or a dict of columns
    by      its column of ids, which are those of the units
    values  its columns of numbers
    most    items that are kept, the first ones; None: as many as the largest set has

    A unit without any item lacks the source. A missing number gets the mean of the training rows. A
    model does not keep the frame.
    """

    frame: Any = field(repr=False)
    by: str
    values: tuple[str, ...]
    most: int | None = None

    kind: ClassVar[str] = "items"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.values, self.most))

    def elsewhere(self, given: Any) -> Items:
        return given if isinstance(given, Items) else replace(self, frame=given)

    def unsaved(self) -> Items:
        return replace(self, frame=None)

    def open(self, source: str, units: Units) -> Opened:
        if self.frame is None:
            raise not_here(source)
        return _Rows(source, units, self, Frame.open(self.frame))


class _Rows(Opened):
    """The rows of a long frame that are of some units, sorted by unit and time."""

    def __init__(self, source: str, units: Units, where: Any, table: Frame) -> None:
        self.source, self.units, self.where = source, units, where
        labels = table.labels(where.by, "give every row the id of its unit").tolist()
        known = units.known
        unit = np.array([known.get(label, -1) for label in labels], int)
        values = np.stack([table.numbers(name) for name in where.values], -1)
        time = _ranks(table, where.time) if isinstance(where, Series) else np.arange(len(labels))
        order = np.lexsort((time, unit))
        order = order[unit[order] >= 0]
        self.unit, self.values = unit[order], values[order]
        if isinstance(where, Series):
            again = (np.diff(self.unit) == 0) & (np.diff(time[order]) == 0)
            if again.any():
                at = order[int(np.argmax(again)) + 1]
                problem = f"is there twice for unit {shown(labels[at])}"
                remedy = "keep one row a unit and time"
                when = table.cells(where.time)[at]
                raise DataError(where.time, table.label[at], when, problem, remedy)
        self.count = np.bincount(self.unit, minlength=len(units.label))
        self.first = np.cumsum(self.count) - self.count  # of each unit's rows
        self.ids = labels
        self.strange = list(dict.fromkeys(label for label in labels if label not in known))

    @property
    def _word(self) -> tuple[str, str, str]:
        series = self.where.kind == "series"
        return ("series", "steps", "last") if series else ("item", "items", "first")

    def learn(self) -> Block:
        longest = int(self.count.max(initial=0))
        if not longest:
            raise unmatched(self.source, self.units, self.ids, self._word[1])
        for name, cells in zip(self.where.values, self.values.T, strict=True):
            if np.isnan(cells).all():
                problem, remedy = "is missing in every row", "leave the column out"
                raise DataError(name, None, None, problem, remedy)
        if (self.count[self.count > 0] == longest).all():  # otherwise their number tells something
            refuse_constant(self.source, self.values)
        steps = min(longest, self.where.most or longest)
        shape = (steps, len(self.where.values) + 1)
        return Block(self.source, self.where.kind, shape, self.where.values).check()

    def encode(self, block: Block) -> Encoded:
        steps, many = block.shape
        series = block.kind == "series"
        place = np.arange(len(self.unit)) - self.first[self.unit]  # among the unit's own
        if series:
            place += steps - self.count[self.unit]
        kept = (place >= 0) & (place < steps)
        x = np.zeros((len(self.units.label), steps, many))
        x[self.unit[kept], place[kept]] = np.insert(self.values[kept], many - 1, 1.0, axis=1)
        x[self.count == 0] = np.nan
        known = self.units.known
        rows = [known[label] for label in self.units.label.tolist()]
        return Encoded(x.reshape(len(x), block.width)[rows], *self._said(block, self.count[rows]))

    def _said(self, block: Block, count: np.ndarray) -> tuple[list[str], list[str]]:
        what, plural, kept = self._word
        told, always, name, most = [], [], f"'{block.source}'", block.shape[0]
        lacking = int((count == 0).sum())
        if lacking and lacking < len(count):
            told.append(f"{lacking:,} of {len(count):,} units have no {what} in {name}.")
        elif lacking:
            always.append(f"No unit has {plural} in {name}.")
        if longer := int((count > most).sum()):
            more = f"{longer:,} units have more than {most} {plural} in {name}"
            always.append(f"{more}: the {kept} {most} are kept.")
        if missing := int(np.isnan(self.values).sum()):
            rest = "numbers are missing, and get the mean of the training rows"
            told.append(f"In {name} {missing:,} {rest}.")
        if self.strange:
            strange = f"{len(self.strange):,} ids in {name} are of no unit of the frame"
            told.append(f"{strange}, such as {shown(self.strange[0])}.")
        return told, always


def _ranks(table: Frame, name: str) -> np.ndarray:
    """Of each row's time among all."""
    table.refuse(name, None, table.missing(name), "is missing", "give every row its time")
    try:
        return np.unique(table.cells(name), return_inverse=True)[1]
    except TypeError:
        problem, remedy = "holds times that cannot be compared", "give numbers, dates or texts"
        raise DataError(name, None, None, problem, remedy) from None
