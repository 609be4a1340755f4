"""Primary data out of a frame, by the family's words.

Which rows have any, what was known of them beforehand (trials, an exposure), and the family that
takes them: it may have to know how many classes there are, or that counts are effective ones.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ldf.check import DataError, positive, shown
from ldf.families.base import Family
from ldf.families.joint import Joint
from ldf.frame import Frame, listed

CORRECT = "correct the row"


class Primary(NamedTuple):
    """What a frame has of primary data."""

    family: Family  # to be used
    y: dict[str, np.ndarray]  # by the family's words; valid where seen
    seen: np.ndarray
    design: dict[str, np.ndarray]  # what was known beforehand; NaN where it is not
    notes: list[str]


def read_primary(
    table: Frame, family: Family, given: dict[str, Any], effect: Any, outcome: bool, fitting: bool
) -> Primary:
    """By words and columns, or such by source. Without the `outcome` only what is known beforehand
    is read."""
    if isinstance(family, Joint):
        return _joined(table, family, given, effect, outcome, fitting)
    if isinstance(effect, dict):
        remedy = "give one number or column"
        raise DataError("design_effect", None, effect, "is by source, and there is one", remedy)
    return _source(table, family, given, effect, outcome, fitting)


def _joined(
    table: Frame, family: Joint, primary: dict[str, Any], effect: Any, outcome: bool, fitting: bool
) -> Primary:
    """Of all sources together. A row has primary data if it has any."""
    names = tuple(name for name, _ in family.sources)
    effects = _by_source("design_effect", effect or {}, names)
    given = _by_source("primary", primary, names)
    alone = len(names) == 1
    sources, seen, y, design, notes = {}, np.zeros(len(table), bool), {}, {}, []
    for name, own in family.sources:
        if name not in given:
            remedy = f"say which columns are its: primary={{'{name}': {{…}}}}"
            raise DataError("primary", None, name, "is a source without columns", remedy)
        sources[name], of_own, here, known, told = _source(
            table, own, given[name], effects.get(name), outcome, fitting, alone
        )
        seen = seen | here
        y |= {f"{name}.{word}": values for word, values in of_own.items()}
        design |= {f"{name}.{word}": values for word, values in known.items()}
        notes += [f"Source '{name}': {sentence}" for sentence in told]
    if fitting:
        _refuse_few(names_of(column for own in given.values() for column in own.values()), seen)
    notes = [f"{seen.sum()} of {len(seen)} rows have primary data of some source.", *notes]
    return Primary(Joint(sources), y, seen, design, notes)


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
) -> Primary:
    """Of one source. One that is not `alone` may be in few rows, and tell of zeros only."""
    words, outcomes = _words(family, primary)
    outcomes_too = outcomes_too and (fitting or any(table.has(name) for name in outcomes))
    if fitting:
        _refuse_empty(table, outcomes)
    found = _columns(table, family, effect, words, outcomes_too)
    if fitting:
        _refuse_uninformative(family, words, found.y, found.seen, alone)
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


def _columns(
    table: Frame, family: Family, said_effect: Any, words: dict[str, Any], outcome: bool
) -> Primary:
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
    return Primary(family, divided, seen, design, notes)


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


def names_of(columns: Iterable[Any]) -> tuple[str, ...]:
    return tuple(name for given in columns for name in _many(given))


# --- what is refused ----------------------------------------------------------------------------


def _refuse_empty(table: Frame, outcomes: list[str]) -> None:
    for name in outcomes:
        table.need(name)
    if len(table) == 0:
        remedy = "give a frame with one row a unit"
        raise DataError(outcomes[0], None, None, "has no rows", remedy)


def _refuse_few(columns: tuple[str, ...], seen: np.ndarray) -> None:
    if seen.sum() < 2:
        found = "has no value in any row" if not seen.any() else "has a value in one row only"
        remedy = "a fit needs primary data of two units or more"
        raise DataError(columns[0], None, None, found, remedy)


def _refuse_uninformative(
    family: Family, words: dict[str, Any], y: dict[str, np.ndarray], seen: np.ndarray, alone: bool
) -> None:
    """Primary data from which nothing can be learned."""
    if alone or not seen.any():
        _refuse_few(names_of(words.values()), seen)
    for word in sorted(words, key=lambda word: word not in family.design):
        known = word in family.design
        counts = alone and hasattr(family, "effective")
        if (known or counts) and not y[word][seen].any():
            problem = "is zero in every row with primary data"
            remedy = "nothing can be learned from zeros alone: check that it is the right column"
            raise DataError(listed(_many(words[word]))[1:-1], None, None, problem, remedy)
