"""How auxiliary columns become numbers: learned from the frame of a fit, stored with the model.

A number stays a column of its own. Text becomes a column of zeros and ones for each level, or one
column if there are two levels. Where cells are missing, and not in a few rows only, another column
of zeros and ones says so; a missing number stays NaN. A column that is the same in every row is
left out.

A source that lies beside the frame (images, series, items) is a block of columns, by the shape that
was learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ldf.beside import Block, Opened
from ldf.check import DataError
from ldf.frame import Frame, listed
from ldf.summed import Source

MANY = 50  # levels, from which on a text that nearly every row has for itself is an id
TOO_MANY = 1000
# Of rows, from which on a column says where cells are missing. Fewer teach little about what that
# means, and each would be more than seven standard deviations away from the others.
SOME = 0.02


class Auxiliary(NamedTuple):
    """How one auxiliary column is encoded, as learned from the frame of the fit."""

    name: str
    kind: str  # "number", "category", or "constant": then all it can say is that it is missing
    levels: tuple[str, ...] = ()
    missing: bool = False  # whether cells were
    marked: bool = False  # whether a column says which: if enough were
    per: str | None = None  # the population it is divided by

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns it becomes. Two levels need only one: it says which."""
        names = [f"{self.name}={level}" for level in self.coded]
        if self.kind == "number":
            names = [self.name if self.per is None else f"{self.name} per {self.per}"]
        return (*names, *([f"{self.name} is missing"] if self.marked else []))

    @property
    def width(self) -> int:
        return len(self.names)

    @property
    def coded(self) -> tuple[str, ...]:
        return self.levels[1:] if len(self.levels) == 2 and not self.missing else self.levels


class Schema(NamedTuple):
    """How auxiliary columns are encoded; stored with the model.

    With several sources a row may lack all of one: for each, a column says whether it is there."""

    columns: tuple[Auxiliary, ...]
    several: tuple[tuple[str, tuple[str, ...]], ...] = ()  # columns by source; none if it is one
    blocks: tuple[Block, ...] = ()  # sources beside the frame: they have no columns in it

    @classmethod
    def learn(
        cls,
        table: Frame,
        auxiliary: tuple[str, ...],
        per_capita: dict[str, str],
        several: tuple[tuple[str, tuple[str, ...]], ...] = (),
        beside: Mapping[str, Opened] | None = None,
    ) -> Schema:
        there = {n: _there(table, own) for _, own in several for n in own}
        learned = [_learn(table, n, per_capita.get(n), there.get(n)) for n in auxiliary]
        blocks = tuple(opened.learn() for opened in (beside or {}).values())
        schema = cls(tuple(learned), several, blocks)
        for source, own in several:
            if source in (beside or {}):
                continue
            if not any(column.names for column in learned if column.name in own):
                problem, remedy = "is the same in every row", "leave the source out"
                raise DataError(source, None, None, problem, remedy)
        if not schema.width:
            found = "is the same in every row" if auxiliary else "is not given"
            remedy = "give auxiliary columns that differ between rows"
            raise DataError(listed(auxiliary)[1:-1] or "auxiliary", None, None, found, remedy)
        for name, times in Counter(schema.names).items():
            if times > 1:
                problem = "would be there twice once encoded"
                raise DataError(name, None, None, problem, "rename a column")
        return schema

    def encode(self, table: Frame, beside: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """M × P, NaN where a number is missing, or all of a source. Of those beside the frame, what
        they are encoded as."""
        blocks = dict(beside or {})
        there = {
            source: _some(blocks[source]) if source in blocks else _there(table, own)
            for source, own in self.several
        }
        of = {name: there[source] for source, own in self.several for name in own}
        each = [
            blocks[part.source] if isinstance(part, Block)
            else _encode(table, part, of.get(part.name))
            for part in self._parts
        ]  # fmt: skip
        presence = [mask[:, None].astype(float) for mask in there.values()]
        return np.concatenate([np.empty((len(table), 0)), *each, *presence], axis=1)

    @property
    def _parts(self) -> list[Auxiliary | Block]:
        """Columns and blocks, in the order of their sources."""
        if not self.blocks:
            return list(self.columns)
        columns, blocks = ({c.name: c for c in self.columns}, {b.source: b for b in self.blocks})
        parts: list[Auxiliary | Block] = []
        for source, own in self.several:
            parts += [blocks[source]] if source in blocks else [columns[name] for name in own]
        return parts

    @property
    def names(self) -> tuple[str, ...]:
        encoded = (name for part in self._parts for name in part.names)
        return (*encoded, *(f"{source} is there" for source, _ in self.several))

    @property
    def width(self) -> int:
        """How many columns there are once they are encoded."""
        return sum(part.width for part in self._parts) + len(self.several)

    @property
    def origins(self) -> tuple[str, ...]:
        """The auxiliary column, or the source, that each encoded one is of."""
        each = ((p.source if isinstance(p, Block) else p.name, p.width) for p in self._parts)
        return (*(name for name, width in each for _ in range(width)), *dict(self.several))

    @property
    def placed(self) -> dict[str, np.ndarray]:
        """Where each auxiliary column of the frame is, once they are encoded."""
        each = [(part, part.width) for part in self._parts]
        stops = np.cumsum([width for _, width in each])
        return {
            part.name: np.arange(stop - width, stop)
            for (part, width), stop in zip(each, stops, strict=True)
            if not isinstance(part, Block)
        }

    @property
    def tabular(self) -> np.ndarray:
        """Which encoded columns are no part of an image, a series or a set."""
        return np.concatenate(
            [
                *(np.full(part.width, not isinstance(part, Block)) for part in self._parts),
                np.full(len(self.several), True),
            ]
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where each source's columns are, once they are encoded; none if there is one table."""
        found, start = [], 0
        sizes = {column.name: column.width for column in self.columns}
        blocks = {block.source: block for block in self.blocks}
        for source, own in self.several:
            block = blocks.get(source)
            stop = start + (block.width if block else sum(sizes[name] for name in own))
            plain = Source(source, start, stop)
            found.append(plain._replace(kind=block.kind, shape=block.shape) if block else plain)
            start = stop
        return tuple(found)

    def described(self, table: Frame) -> tuple[list[str], list[str]]:
        """What was done to auxiliary columns: as a matter of course, and what one should know."""
        plain, told, lacking = [], [], []
        for block in self.blocks:
            size = " × ".join(map(str, block.shape))
            plain.append(f"Source '{block.source}' is {block.kind}: {size} numbers a unit.")
        for column in self.columns:
            name = f"Column '{column.name}'"
            if column.kind == "category":
                plain.append(f"{name} has {len(column.levels)} levels, coded as 0 and 1.")
            if column.kind == "number" and column.per is not None:
                plain.append(f"{name} is divided by '{column.per}'.")
            if column.kind == "constant":
                rest = "; only whether it is missing is used" if column.marked else ""
                told.append(f"{name} is the same in every row and is left out{rest}.")
            elif column.missing and (number := int(table.missing(column.name).sum())):
                lacking.append(f"{number:,} in '{column.name}'")
        if lacking:
            said = [f"Cells are missing: {', '.join(lacking)}."]
            marked = [c.name for c in self.columns if c.marked and c.kind != "constant"]
            if marked:
                said.append(f"A column of 0 and 1 says where in {listed(tuple(marked))}.")
            said.append("A missing number takes the mean of the training rows.")
            told.append(" ".join(said))
        return plain, told


def _there(table: Frame, columns: tuple[str, ...]) -> np.ndarray:
    """Which rows have any of a source's columns; none, if the frame has none of them."""
    known = [name for name in columns if table.has(name)]
    missing = [table.missing(name) for name in (columns if known else ())]
    return ~np.all(missing, axis=0) if missing else np.zeros(len(table), bool)


def _some(block: np.ndarray) -> np.ndarray:
    """Which rows have any number."""
    return np.asarray((~np.isnan(block)).any(1))


def _learn(table: Frame, name: str, per: str | None, there: np.ndarray | None) -> Auxiliary:
    values = table.divided(name, per) if per is not None else table.values(name)
    missing = table.missing(name)
    if missing.all():
        raise DataError(name, None, None, "is missing in every row", "leave the column out")
    here, missing = values[~missing], missing if there is None else missing[there]
    lacks = bool(missing.any())
    marked = bool(missing.mean() >= SOME)
    distinct = sorted(set(here.tolist()))
    if len(distinct) == 1:
        return Auxiliary(name, "constant", (), lacks, marked, per)
    if values.dtype != object:
        return Auxiliary(name, "number", (), lacks, marked, per)
    if len(distinct) > TOO_MANY or (len(distinct) > MANY and len(distinct) > len(here) / 2):
        problem = f"has {len(distinct):,} different texts in {len(here):,} rows"
        remedy = "is it an id? leave it out of the auxiliary data, or turn it into numbers"
        raise DataError(name, None, None, problem, remedy)
    return Auxiliary(name, "category", tuple(distinct), lacks, marked)


def _encode(table: Frame, column: Auxiliary, there: np.ndarray | None) -> np.ndarray:
    if not column.names or (there is not None and not there.any()):
        return np.full((len(table), len(column.names)), np.nan)
    missing = table.missing(column.name)
    if there is not None:
        missing = missing & there
    if not column.missing:
        problem = "is missing, and never was when the model was fitted"
        remedy = "fill it in, or fit the model to rows where it is missing"
        table.refuse(column.name, None, missing, problem, remedy)
    own = []
    if column.kind == "number":
        own = [table.divided(column.name, column.per)]
    if column.kind == "category":
        texts = table.texts(column.name)
        new = [text is not None and text not in column.levels for text in texts]
        known = f"the model was fitted to {listed(column.levels)}"
        table.refuse(column.name, texts, new, "is a new level", known)
        own = [texts == level for level in column.coded]
    found = np.stack([*own, *([missing] if column.marked else [])], -1).astype(float)
    return found if there is None else np.where(there[:, None], found, np.nan)
