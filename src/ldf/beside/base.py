"""A source that is no column of the frame, and how it becomes columns.

A `Beside` says where a source is: files, arrays, another frame. Opened for some units, it holds
what is there of them. From the units of a fit a `Block` is learned, which says how much of a row
the source takes: an image of H × W pixels and C channels is H·W·C numbers, a series of at most T
steps T·(V + 1), V values and whether the step is there. The block is stored with the model, the
source is not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ldf.check import DataError, shown

MOST = 100_000  # numbers a unit


class Units(NamedTuple):
    """Whose source is asked for."""

    label: np.ndarray  # ids
    place: np.ndarray | None  # M × 2

    @property
    def known(self) -> dict[Any, int]:
        """Where each id is first."""
        found: dict[Any, int] = {}
        for number, label in enumerate(self.label.tolist()):
            found.setdefault(label, number)
        return found


class Block(NamedTuple):
    """How a source is encoded, as learned from the units of a fit."""

    source: str
    kind: str  # "image", "series" or "items"
    shape: tuple[int, ...]  # what is one number a place, a step or an item comes last
    values: tuple[str, ...] = ()  # names of these, where they have any

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns it becomes."""
        if self.kind == "image":
            rows, columns, channels = self.shape
            return tuple(
                f"{self.source} {i},{j}" + (f" ({channel})" if channels > 1 else "")
                for i in range(rows)
                for j in range(columns)
                for channel in range(channels)
            )
        steps = range(self.shape[0])
        word = "item" if self.kind == "items" else "step"
        return tuple(
            f"{self.source} {word} {step + 1}: {value}"
            for step in steps
            for value in (*self.values, "is there")
        )

    def check(self) -> Block:
        """Unless it is too large for a row."""
        if self.width > MOST:
            size = " × ".join(map(str, self.shape))
            problem = f"would be {size} numbers a unit"
            remedy = f"at most {MOST:,} are taken: give resize=… of images, or most=… of the others"
            raise DataError(self.source, None, None, problem, remedy)
        return self


class Encoded(NamedTuple):
    """A source as columns, and what one should know of it."""

    x: np.ndarray  # M × as many numbers as the block has, NaN in rows of units that have none
    told: list[str]  # when a model is fitted
    always: list[str]  # whenever it happens


class Opened(ABC):
    """What is there of some units."""

    @abstractmethod
    def learn(self) -> Block:
        """How to encode such a source; units without any are passed over."""

    @abstractmethod
    def encode(self, block: Block) -> Encoded:
        """By the block that was learned."""


class Beside(ABC):
    """Where a source is."""

    kind: ClassVar[str]

    @abstractmethod
    def open(self, source: str, units: Units) -> Opened:
        """For these units; `source` is its name."""

    @abstractmethod
    def elsewhere(self, given: Any) -> Self:
        """The same source, to be found elsewhere."""

    @abstractmethod
    def unsaved(self) -> Self:
        """As a file holds it: without data."""


def not_here(source: str) -> DataError:
    problem = "is not in the file of a model"
    return DataError(source, None, None, problem, f"say where it is: model.bring({source}=…)")


def unmatched(source: str, units: Units, ids: Any, what: str) -> DataError:
    """No unit has any."""
    mine = shown(units.label[0]) if len(units.label) else "none"
    theirs = next((shown(id) for id in ids), "none")
    problem = f"has {what} of no unit of the frame"
    remedy = f"ids of the frame are like {mine}, those of the source like {theirs}"
    return DataError(source, None, None, problem, remedy)


def refuse_constant(source: str, cells: np.ndarray) -> None:
    here = cells[~np.isnan(cells)]
    if not len(here) or (here == here[0]).all():
        problem, remedy = "is the same in every row", "leave the source out"
        raise DataError(source, None, None, problem, remedy)
