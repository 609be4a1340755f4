"""A frame and what its columns are, turned into arrays: the data room.

A frame (pandas, polars, pyarrow, or a dict of columns) has one row a unit. `Columns` says which
column is what, `read` gives `Data`. Reading the frame of a fit also learns its `Schema`: how each
auxiliary column is encoded. A frame read later is encoded by that schema, or refused.

A row without primary data is kept: it has a posterior too. A missing number stays NaN, and
`Preprocess` knows what to do with it.

    data = read(villages, ldf.Binomial(), Columns(
        primary={"successes": "electrified", "trials": "households"},
        auxiliary=("night_lights", "region"),
    ))
    data.names    ("night_lights", "region=East", "region=North", "region=West")
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldf import check
from ldf.beside import Beside, Opened, Units
from ldf.check import DataError
from ldf.families.base import Family
from ldf.families.joint import Joint, has
from ldf.frame import Frame
from ldf.primary import names_of, read_primary
from ldf.schema import Schema


class DataWarning(UserWarning):
    """Something was done to the data that one should know."""


def _several(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Columns:
    """Which column of the frame is what."""

    primary: dict[str, Any]  # the family's word: a column, or a list; or such words by source
    auxiliary: Any  # columns, or columns by source, of which some may lie beside the frame
    per_capita: dict[str, str] = field(default_factory=dict)  # auxiliary column: its population
    weight: str | None = None  # how much a row counts in learning
    id: str | None = None
    group: str | None = None  # rows that belong together when some are held out
    # A column, or one number for all rows; or such by source.
    design_effect: str | float | dict[str, str | float] | None = None
    geometry: str | tuple[str, str] | None = None  # shapes, or two columns of coordinates
    sensitive: tuple[str, ...] = ()  # auxiliary columns whose names are not shown
    # By source, if there is more than one or it is no table.
    several: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False)
    beside: dict[str, Beside] = field(init=False)  # sources that are no columns of the frame

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitive", tuple(self.sensitive))
        given, several, beside = self.auxiliary, (), {}
        if isinstance(given, Beside):
            remedy = "give it a name: auxiliary={'lights': …}"
            raise DataError("auxiliary", None, None, "is a source without a name", remedy)
        if isinstance(given, dict):
            beside = {str(s): own for s, own in given.items() if isinstance(own, Beside)}
            several = tuple(
                (str(source), () if str(source) in beside else _several(own))
                for source, own in given.items()
            )
            given = [name for _, own in several for name in own]
        object.__setattr__(self, "auxiliary", _several(given))
        object.__setattr__(self, "several", several if len(several) > 1 or beside else ())
        object.__setattr__(self, "beside", beside)
        if self.geometry is not None and not isinstance(self.geometry, str):
            object.__setattr__(self, "geometry", tuple(self.geometry))
            if len(self.geometry) != 2:
                remedy = "name one for across and one for up, or one column of shapes"
                raise DataError("geometry", None, None, "is not two columns", remedy)
        for name in self.sensitive:
            check.one_of("sensitive", name, self.auxiliary)

    @property
    def where(self) -> tuple[str, ...]:
        """The columns that say where units are."""
        return (self.geometry,) if isinstance(self.geometry, str) else self.geometry or ()

    @property
    def words(self) -> dict[str, Any]:
        """The primary columns by the family's words, which of several sources are source.word."""
        return {
            (f"{name}.{word}" if isinstance(given, dict) else word): column
            for name, given in self.primary.items()
            for word, column in (given if isinstance(given, dict) else {name: given}).items()
        }

    def shown_name(self, column: str) -> str:
        """An auxiliary column as results show it: sensitive ones by their number, from 1 on."""
        if column not in self.sensitive:
            return column
        return f"feature #{self.auxiliary.index(column) + 1}"

    def shown_encoded(self, names: Sequence[str], origins: Sequence[str]) -> list[str]:
        """Encoded columns as results show them: of a sensitive one neither the name nor a level.
        Where it became several, they are counted."""
        found, times = [], Counter[str]()
        for name, origin in zip(names, origins, strict=True):
            times[origin] += 1
            more = f" ({times[origin]})" if list(origins).count(origin) > 1 else ""
            found.append(self.shown_name(origin) + more if origin in self.sensitive else name)
        return found

    def shown(self, sentence: str) -> str:
        """What is said of columns, without the names of sensitive ones."""
        for name in self.sensitive:
            sentence = sentence.replace(f"'{name}'", f"'{self.shown_name(name)}'")
        return sentence


@dataclass(frozen=True, eq=False)
class Data:
    """One row a unit, in the frame's order. M units, P encoded auxiliary columns."""

    x: np.ndarray  # M × P, NaN where a number is missing
    names: tuple[str, ...]  # P
    y: dict[str, np.ndarray]  # primary data by the family's words; valid where seen
    seen: np.ndarray  # M: whether there are primary data
    design: dict[str, np.ndarray]  # what is known of primary data beforehand; NaN where it is not
    weight: np.ndarray  # M; NaN only where nothing is seen
    label: np.ndarray  # M: ids, or the frame's index, or row numbers
    group: np.ndarray | None
    place: np.ndarray | None  # M × 2: coordinates of each, or of its shape's middle
    family: Family  # to be used: it knows the number of classes, and of effective counts
    schema: Schema
    notes: tuple[str, ...]  # what was done, in sentences

    def outcome(self) -> np.ndarray:
        """What a predictive is of: the primary column that is not known beforehand."""
        word = next(name for name in self.family.columns if name not in self.family.design)
        return self.y[word]

    def of(self, source: str | None = None) -> Data:
        """The primary data of one of several sources, the first if it is not said, as if there were
        no others."""
        family = self.family.source(source)
        if not isinstance(self.family, Joint):
            return self
        y, design = self.family.part(source, self.y), self.family.part(source, self.design)
        seen = self.seen & has(family, y)
        return dataclasses.replace(self, family=family, y=y, design=design, seen=seen)

    def exact(self) -> np.ndarray:
        """Which rows have an outcome that is known itself, and not only to lie somewhere."""
        known = self.seen.copy()
        if known.any():
            y = {word: values[self.seen] for word, values in self.y.items()}
            known[self.seen] &= self.family.exact(**y)
        return known

    def __len__(self) -> int:
        return len(self.seen)

    def __getitem__(self, rows: Any) -> Data:
        """Some of the rows, by a mask, by positions or by a slice."""
        at = np.atleast_1d(np.arange(len(self))[rows])
        by_row = {n: v[at] for n, v in vars(self).items() if isinstance(v, np.ndarray)}
        y = {word: values[at] for word, values in self.y.items()}
        design = {word: values[at] for word, values in self.design.items()}
        return dataclasses.replace(self, **by_row, y=y, design=design)


def read(
    frame: Any,
    family: Family,
    columns: Columns,
    schema: Schema | None = None,
    *,
    primary: bool = True,
) -> Data:
    """The frame of a fit; or, with the schema that was learned there, any other.

    Without `primary` no outcome is read. A frame read by a schema may lack the outcomes anyway, and
    weights, ids, groups and geometry.
    """
    _refuse_reuse(family, columns)
    fitting = schema is None
    table = Frame.open(frame, columns.id, strict=fitting or bool(columns.beside))
    family, y, seen, design, notes = read_primary(
        table, family, columns.primary, columns.design_effect, primary, fitting
    )
    weight = _weight(table, columns.weight, seen, fitting)
    group = place = None
    if columns.group is not None and (fitting or table.has(columns.group)):
        group = table.labels(columns.group, "give every row its group")
    if columns.geometry is not None and (fitting or all(map(table.has, columns.where))):
        place = table.places(columns.geometry)
    opened = _beside(columns, Units(table.label, place))
    if schema is None:
        schema = Schema.learn(table, columns.auxiliary, columns.per_capita, columns.several, opened)
    encoded = {of.source: opened[of.source].encode(of) for of in schema.blocks}
    x = schema.encode(table, {source: own.x for source, own in encoded.items()})
    described, told = schema.described(table)
    always = [sentence for own in encoded.values() for sentence in own.always]
    if fitting:
        told += [sentence for own in encoded.values() for sentence in own.told]
    for sentence in (*(told if fitting else ()), *always):
        warnings.warn(columns.shown(sentence), DataWarning, stacklevel=3)
    told += always
    notes = tuple(columns.shown(note) for note in (*notes, *described, *told))
    return Data(
        x, schema.names, y, seen, design, weight, table.label, group, place, family, schema, notes
    )


def _beside(columns: Columns, units: Units) -> dict[str, Opened]:
    """Sources beside the frame, opened for its units."""
    if columns.beside and columns.id is None:
        source = next(iter(columns.beside))
        remedy = "name the frame's column of ids: id=…"
        raise DataError(source, None, None, "is found by the units' ids", remedy)
    return {source: beside.open(source, units) for source, beside in columns.beside.items()}


# --- other columns, and what is refused ---------------------------------------------------------


def _weight(table: Frame, name: str | None, seen: np.ndarray, fitting: bool) -> np.ndarray:
    if name is None or not (fitting or table.has(name)):
        return np.ones(len(table))
    weight = table.numbers(name, missing=None)
    remedy = "give every row with primary data a weight, or zero to leave it out"
    table.refuse(name, weight, np.isnan(weight) & seen, "is missing", remedy)
    table.refuse(name, weight, weight < 0, "is negative", "a weight is zero or more")
    if fitting and not (weight[seen] > 0).any():
        problem = "is zero in every row with primary data"
        raise DataError(name, None, None, problem, "give some row a weight above zero")
    return weight


def _refuse_reuse(family: Family, columns: Columns) -> None:
    """No column may serve twice where that would count it twice or tell the answer."""
    outcome = names_of(c for w, c in columns.words.items() if w not in family.design)
    given = names_of(columns.words.values())
    if isinstance(family, Joint):  # sources may share what is known beforehand: an exposure, say
        given = tuple(dict.fromkeys(name for name in given if name not in outcome)) + outcome
    effect = columns.design_effect
    for names, what in ((given, "primary"), (columns.auxiliary, "auxiliary")):
        for name in names:
            if names.count(name) > 1:
                raise DataError(name, None, None, f"is twice among {what} columns", "name it once")
    roles = {
        "auxiliary": columns.auxiliary,
        "a population": tuple(columns.per_capita.values()),
        "the weight": (columns.weight,),
        "the group": (columns.group,),
        "the design effect": tuple(effect.values()) if isinstance(effect, dict) else (effect,),
        "the geometry": columns.where,
    }
    for role, names in roles.items():
        for name in names:
            if name in outcome:
                problem = f"is the outcome and {role}"
                remedy = "give the outcome as primary data only: elsewhere it tells the answer"
                raise DataError(str(name), None, None, problem, remedy)
    for name in columns.per_capita:
        if name not in columns.auxiliary:
            problem = "is in per_capita but not among auxiliary columns"
            raise DataError(name, None, None, problem, "name it in both, or in neither")
