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
import inspect
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ldf import check
from ldf.beside import Beside, Opened, Units
from ldf.check import DataError, positive, shown
from ldf.families.base import Family
from ldf.families.joint import Joint, has
from ldf.frame import Frame, listed
from ldf.schema import Schema

CORRECT = "correct the row"


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
    place: tuple[str, str] | None = None  # coordinates
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
        if self.place is not None:
            object.__setattr__(self, "place", tuple(self.place))
        for name in self.sensitive:
            check.one_of("sensitive", name, self.auxiliary)

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
    place: np.ndarray | None  # M × 2
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
    weights, ids, groups and places.
    """
    _refuse_reuse(family, columns)
    fitting = schema is None
    table = Frame.open(frame, columns.id, strict=fitting or bool(columns.beside))
    if isinstance(family, Joint):
        family, y, seen, design, notes = _joined(table, family, columns, primary, fitting)
    else:
        effect = columns.design_effect
        if isinstance(effect, dict):
            remedy = "give one number or column"
            raise DataError("design_effect", None, effect, "is by source, and there is one", remedy)
        family, y, seen, design, notes = _source(
            table, family, columns.primary, effect, primary, fitting
        )
    weight = _weight(table, columns.weight, seen, fitting)
    group = place = None
    if columns.group is not None and (fitting or table.has(columns.group)):
        group = table.labels(columns.group, "give every row its group")
    if columns.place is not None and (fitting or all(map(table.has, columns.place))):
        remedy = "give every row its place"
        place = np.stack([table.numbers(name, missing=remedy) for name in columns.place], -1)
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


# --- primary data -------------------------------------------------------------------------------


def _joined(
    table: Frame, family: Joint, columns: Columns, primary: bool, fitting: bool
) -> tuple[Family, dict[str, Any], np.ndarray, dict[str, Any], list[str]]:
    """What `_source` gives, of all sources together. A row has primary data if it has any."""
    names = tuple(name for name, _ in family.sources)
    effects = _by_source("design_effect", columns.design_effect or {}, names)
    given = _by_source("primary", columns.primary, names)
    alone = len(names) == 1
    sources, seen, y, design, notes = {}, np.zeros(len(table), bool), {}, {}, []
    for name, own in family.sources:
        if name not in given:
            remedy = f"say which columns are its: primary={{'{name}': {{…}}}}"
            raise DataError("primary", None, name, "is a source without columns", remedy)
        sources[name], of_own, here, known, told = _source(
            table, own, given[name], effects.get(name), primary, fitting, alone
        )
        seen = seen | here
        y |= {f"{name}.{word}": values for word, values in of_own.items()}
        design |= {f"{name}.{word}": values for word, values in known.items()}
        notes += [f"Source '{name}': {sentence}" for sentence in told]
    if fitting:
        _refuse_few(columns.words, seen)
    notes = [f"{seen.sum()} of {len(seen)} rows have primary data of some source.", *notes]
    return Joint(sources), y, seen, design, notes


def _by_source(argument: str, given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """What was said of sources, by their names; of primary data, as words and columns."""
    of_words = argument == "primary"
    for name, own in given.items() if isinstance(given, dict) else ((given, {}),):
        if name not in names or (of_words and not isinstance(own, dict)):
            example = f"{argument}={{'{names[0]}': {'{word: column}' if of_words else '…'}}}"
            problem = "is not a source" if name not in names else "has no words"
            remedy = f"there are {listed(names)}: give {example}"
            raise DataError(argument, None, name, problem, remedy)
    return dict(given)


def _source(
    table: Frame,
    family: Family,
    primary: dict[str, Any],
    effect: str | float | None,
    outcomes_too: bool,
    fitting: bool,
    alone: bool = True,
) -> tuple[Family, dict[str, Any], np.ndarray, dict[str, Any], list[str]]:
    """Of one source: the family to use, its columns, which rows have them, what was known
    beforehand, notes. A source that is not `alone` may be in few rows, and tell of zeros only."""
    words, outcomes = _words(family, primary)
    outcomes_too = outcomes_too and (fitting or any(table.has(name) for name in outcomes))
    if fitting:
        _refuse_empty(table, outcomes)
    found = _primary(table, family, effect, words, outcomes_too)
    if fitting:
        _refuse_uninformative(family, words, *found[1:3], alone)
    return found


def _many(columns: Any) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _words(family: Family, primary: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The family's words that are given, in its own order; and the columns of the outcome."""
    for word in primary:
        if word not in family.columns:
            problem = f"is not a word of {type(family).__name__}"
            raise DataError(word, None, None, problem, f"its words are {listed(family.columns)}")
    for word, parameter in inspect.signature(family.statistic).parameters.items():
        if parameter.default is parameter.empty and word not in primary:
            remedy = f"say which column of the frame it is, by primary={{'{word}': …}}"
            raise DataError(word, None, None, "is not given", remedy)
    words = {word: primary[word] for word in family.columns if word in primary}
    vectors = max(family.natural.event_axes) > 0
    for word, given in words.items():
        if vectors and word not in family.design and isinstance(given, str):
            raise DataError(given, None, None, "is one column", f"give a list of them as '{word}'")
    outcomes = [n for word in words if word not in family.design for n in _many(words[word])]
    return words, outcomes


def _primary(
    table: Frame, family: Family, said_effect: Any, words: dict[str, Any], outcome: bool
) -> tuple[Family, dict[str, Any], np.ndarray, dict[str, Any], list[str]]:
    """The family to use, its columns, which rows have them, what was known beforehand, notes."""
    y = {}
    for word, given in words.items():
        there = outcome or (word in family.design and all(map(table.has, _many(given))))
        none = np.full(len(table), np.nan)
        never = word == "variance"  # which is infinite of a mean that was not seen
        cells = [table.numbers(name, infinite=never) if there else none for name in _many(given)]
        y[word] = cells[0] if isinstance(given, str) else np.stack(cells, -1)
    seen = _seen(table, family, words, y)
    design = {word: y[word] for word in family.design if word in y}
    notes = [f"{seen.sum()} of {len(seen)} rows have primary data."]
    if getattr(family, "classes", 0) is None:
        family = dataclasses.replace(family, **{"classes": len(words["counts"])})
    said, effect = words, said_effect
    if isinstance(effect, str):
        said = words | {"design_effect": effect}
        effect = table.numbers(effect) if outcome else np.full(len(table), np.nan)
        table.refuse(said["design_effect"], effect, effect <= 0, "is not above zero", CORRECT)
    divided = y
    if effect is not None:
        family, divided = effective_counts(family, y, effect)
        notes.append(f"Counts are divided by the design effect, {shown(said_effect)}.")
    if seen.any():
        of_seen = {word: values[seen] for word, values in y.items()}
        more = {} if effect is None else {"design_effect": np.asarray(effect, dtype=float)}
        more = {word: values[seen] if values.ndim else values for word, values in more.items()}
        with table.telling(np.flatnonzero(seen), said, of_seen | more):
            statistic = family.statistic(**of_seen, **more)
            known = family.design_of(**of_seen)
        _refuse_several(words, statistic.shape, seen)
        for word in known.keys() - design.keys():
            design[word] = np.full(len(table), np.nan)
            design[word][seen] = known[word]
    return family, divided, seen, design, notes


def _seen(
    table: Frame, family: Family, words: dict[str, Any], y: dict[str, np.ndarray]
) -> np.ndarray:
    """Which rows have primary data: those with an outcome, which needs all of its cells."""
    cells = [
        (name, values, word in family.design)
        for word, given in words.items()
        for name, values in zip(_many(given), np.atleast_2d(y[word].T), strict=True)
    ]
    outcomes = [(name, values) for name, values, known in cells if not known]
    here = np.stack([~np.isnan(values) for _, values in outcomes])
    seen = here.any(0)
    for name, values, known in cells:
        wrong = np.isnan(values) & seen
        if wrong.any():
            at = int(np.argmax(wrong))
            other, found = next((n, v[at]) for n, v in outcomes if not np.isnan(v[at]))
            problem = f"is missing although '{other}' is {shown(found)}"
            remedy = f"fill it in, or leave {listed([n for n, _ in outcomes])} empty too"
            raise DataError(name, table.label[at], None, problem, remedy)
        if known:
            table.refuse(name, values, values < 0, "is negative", CORRECT)
    return np.asarray(seen)


def effective_counts(
    family: Family, y: dict[str, np.ndarray], design_effect: Any
) -> tuple[Family, dict[str, np.ndarray]]:
    """Counts as if from simple random sampling, and the family that takes such counts.

    A survey's design effect is how many times more people it had to ask than a simple random sample
    would. A count without exposure stands for an exposure of one, which is divided too.
    """
    if not hasattr(family, "effective"):
        problem = f"is for counts, and {type(family).__name__} has none"
        raise DataError("design_effect", None, None, problem, "leave it out")
    if np.ndim(design_effect) == 0:
        positive("design_effect", design_effect)
    by_row = np.asarray(design_effect, dtype=float)
    defaults = inspect.signature(family.statistic).parameters
    rows = len(next(iter(y.values())))
    divided = {}
    for word in family.columns:
        counts = y[word] if word in y else np.full(rows, float(defaults[word].default))
        divided[word] = counts / (by_row if counts.ndim == 1 else by_row[..., None])
    return dataclasses.replace(family, **{"effective": True}), divided


def _refuse_several(words: dict[str, Any], shape: tuple[int, ...], seen: np.ndarray) -> None:
    """One statistic a row, or a word that is one number was given several columns."""
    if shape != (seen.sum(),):
        word, given = next((w, c) for w, c in words.items() if not isinstance(c, str))
        problem = f"is several columns, and '{word}' is one number a row"
        raise DataError(listed(given)[1:-1], None, None, problem, "name one column")


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
    outcome = _names(c for w, c in columns.words.items() if w not in family.design)
    given = _names(columns.words.values())
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
        "a coordinate": columns.place or (),
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


def _names(columns: Iterable[Any]) -> tuple[str, ...]:
    return tuple(name for given in columns for name in _many(given))


def _refuse_empty(table: Frame, outcomes: list[str]) -> None:
    for name in outcomes:
        table.need(name)
    if len(table) == 0:
        remedy = "give a frame with one row a unit"
        raise DataError(outcomes[0], None, None, "has no rows", remedy)


def _refuse_few(words: dict[str, Any], seen: np.ndarray) -> None:
    if seen.sum() < 2:
        found = "has no value in any row" if not seen.any() else "has a value in one row only"
        remedy = "a fit needs primary data of two units or more"
        raise DataError(_names(words.values())[0], None, None, found, remedy)


def _refuse_uninformative(
    family: Family, words: dict[str, Any], y: dict[str, np.ndarray], seen: np.ndarray, alone: bool
) -> None:
    """Primary data from which nothing can be learned."""
    if alone or not seen.any():
        _refuse_few(words, seen)
    for word in sorted(words, key=lambda word: word not in family.design):
        known = word in family.design
        counts = alone and hasattr(family, "effective")
        if (known or counts) and not y[word][seen].any():
            problem = "is zero in every row with primary data"
            remedy = "nothing can be learned from zeros alone: check that it is the right column"
            raise DataError(listed(_many(words[word]))[1:-1], None, None, problem, remedy)
