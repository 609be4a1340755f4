"""Primary data that do not add: what is known of θ once they are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from ldf.special import Array
from ldf.statistic import Statistic


class Observed(eqx.Module):
    """λ, and the primary data of the units that have some. No statistic holds both."""

    natural: Any
    y: dict[str, Array]  # checked; of some other unit where nothing was seen
    seen: Array  # whether there are data

    @classmethod
    def of(
        cls, natural: Any, y: dict[str, Any], seen: Any, checked: Callable[..., Any]
    ) -> Observed:
        """With columns as the family has checked them. Where nothing was seen stand the data of
        another unit, which do not count."""
        there = np.asarray(seen)
        found = checked(**{word: np.asarray(values)[there] for word, values in y.items()})

        def fill(values: Any) -> np.ndarray:
            whole = np.full(there.shape, np.asarray(values, float).reshape(-1)[0])
            whole[there] = values
            return whole

        return cls(natural, {word: fill(values) for word, values in found.items()}, there)

    @property
    def shape(self) -> tuple[int, ...]:
        parts = (np.shape(part) for part in (*self.y.values(), self.seen))
        return np.broadcast_shapes(self.natural.shape, *parts)

    def spread(self, shape: tuple[int, ...]) -> Observed:
        """The same over more units."""
        wide = {word: np.broadcast_to(values, shape) for word, values in self.y.items()}
        return Observed(self.natural.spread(shape), wide, np.broadcast_to(self.seen, shape))

    def __getitem__(self, rows: Any) -> Observed:
        of = self.spread(self.shape)
        y = {word: values[rows] for word, values in of.y.items()}
        return Observed(of.natural[rows], y, of.seen[rows])


SEEN = "this is what was seen of a rate, and no mapping makes it"


class Share(Statistic):
    """What rows of primary data say of a rate, t of n, to sort them by. It is a statistic of no
    conjugate prior, and adds to none."""

    total: Array
    number: Array

    event_axes: ClassVar = (0, 0)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        raise TypeError(SEEN)

    @property
    def location(self) -> Array:
        raise TypeError(SEEN)

    def moved(self, location: Array) -> Share:
        raise TypeError(SEEN)

    @property
    def t(self) -> Array:
        return self.total

    @property
    def n(self) -> Array:
        return self.number
