"""A prior, primary data and auxiliary data are the same kind of thing: a `Statistic`. They add.

    posterior over θ_i  =  π( λ0  +  Σ_s T_s(x_is; φ_s)  +  T_y(y_i) )

A statistic holds additive coordinates, one for each unit: successes and failures, class counts,
count and exposure, a Gaussian's potential and precision. What is missing is zero. The paper's
t and n are views: a rate near one would lose its failures in n − t, so those are never stored.

>>> import numpy as np
>>> prior = Trials(np.array(0.5), np.array(0.5))
>>> seen = Trials(np.array([3.0, 0.0]), np.array([7.0, 4.0]))
>>> (prior + seen).successes
array([3.5, 0.5])
>>> (prior + seen)[0].n
array(11.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.special.arrays import Array, namespace


class Statistic(eqx.Module):
    """Additive coordinates of M units. Concrete kinds name them; nothing else is theirs."""

    event_axes: ClassVar[tuple[int, ...]]  # for each coordinate, its axes beyond the units'

    @classmethod
    @abstractmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        """How many unconstrained outputs make one, for so many classes or components."""

    @classmethod
    def meets(cls, outputs: int, formulation: str) -> np.ndarray:
        """Outputs × outputs: whether what one adds to a log-predictive depends on the other."""
        return np.ones((outputs, outputs), bool)

    @classmethod
    def vector_size(cls, components: int) -> int:
        """How long its vectors are, of so many classes or components."""
        return components

    def coordinates(self) -> tuple[Array, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def _map(self, function: Callable[[Array, int], Array]) -> Self:
        pairs = zip(self.coordinates(), self.event_axes, strict=True)
        return type(self)(*(function(value, axes) for value, axes in pairs))

    @property
    def shape(self) -> tuple[int, ...]:
        """The units' axes: () for one statistic shared by all, (M,) for M units."""
        pairs = zip(self.coordinates(), self.event_axes, strict=True)
        shapes = (np.shape(value)[: np.ndim(value) - axes] for value, axes in pairs)
        return np.broadcast_shapes(*shapes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("this statistic is shared by all units and has no length")
        return self.shape[0]

    def __add__(self, other: Any) -> Self:
        if isinstance(other, int | float) and other == 0:  # so that sum() works
            return self
        if not isinstance(other, type(self)):
            mine, theirs = type(self).__name__, type(other).__name__
            raise TypeError(
                f"{mine} and {theirs} do not add: only statistics of one conjugate prior do"
            )
        pairs = tuple(zip(self.coordinates(), other.coordinates(), strict=True))
        _refuse_misfit(pairs, self.event_axes)
        return type(self)(*(mine + theirs for mine, theirs in pairs))

    __radd__ = __add__
    __array_ufunc__ = None  # so that an array of weights leaves the product to us

    def __mul__(self, weight: Any) -> Self:
        """Each unit's statistic counted `weight` times: a number, or one a unit."""
        if isinstance(weight, Statistic):
            raise TypeError("statistics add; they are multiplied by numbers only")
        weight = check.nonnegative("weight", weight)
        check.fits("weight", weight, self.shape)
        return self._map(lambda value, axes: value * weight.reshape(weight.shape + (1,) * axes))

    __rmul__ = __mul__

    def __getitem__(self, rows: Any) -> Self:
        """The statistics of some units."""
        shape = self.shape
        if not shape and rows is not None:
            raise TypeError(
                "this statistic is shared by all units and has no rows: add it to theirs first"
            )

        return self.spread(shape)._map(lambda value, axes: value[rows])

    def spread(self, shape: tuple[int, ...]) -> Self:
        """The same statistics over more units, each with its own copy of what was shared."""

        def copy(value: Array, axes: int) -> Array:
            event = np.shape(value)[np.ndim(value) - axes :]
            return namespace(value).broadcast_to(value, shape + event)

        return self._map(copy)

    def output_scale(self, outputs: int) -> np.ndarray:
        """The units in which a mapping's outputs are best counted, if this is what is known of all
        units: one for logarithms and logits, the spread of what is measured."""
        return np.ones(outputs)

    def zero(self) -> Self:
        """What adds nothing."""
        return self._map(lambda value, axes: value * 0)

    def where(self, present: Array) -> Self:
        """This statistic where something is present, and nothing elsewhere."""
        present = present if isinstance(present, jax.Array) else np.asarray(present)
        if present.dtype != bool:
            raise TypeError("what is present is said by True or False for each unit")
        check.fits("present", present, self.shape)

        def keep(value: Array, axes: int) -> Array:
            mask = present.reshape(present.shape + (1,) * axes)
            return namespace(value, present).where(mask, value, 0.0)

        return self._map(keep)

    def __repr__(self) -> str:
        named = zip((field.name for field in fields(self)), self.coordinates(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{n}={_short(value)}' for n, value in named)})"

    @property
    def sizes(self) -> Array:
        """n of each split that is known by itself, on a last axis; most kinds have one split. Of a
        matrix, what a direction has on average."""
        n = self.n
        one = n if np.ndim(n) == len(self.shape) else n.diagonal(axis1=-2, axis2=-1).mean(-1)
        return one[..., None]

    def counted(self, often: Array) -> Self:
        """As if each split had been observed so often, on a last axis."""
        return self * often[..., 0]

    @property
    @abstractmethod
    def location(self) -> Array:
        """What its observations say, on a line without ends (logit, logarithm, mean), on a last
        axis of its own. Of no observations: NaN."""

    @abstractmethod
    def moved(self, location: Array) -> Self:
        """As many observations, or ones that are relatively as precise, that say this."""

    @property
    @abstractmethod
    def t(self) -> Array:
        """The paper's t: the sum of sufficient statistics."""

    @property
    @abstractmethod
    def n(self) -> Array:
        """The paper's n: how many (pseudo-)observations."""


def _refuse_misfit(pairs: tuple[tuple[Array, Array], ...], event_axes: tuple[int, ...]) -> None:
    """Units add as arrays do; classes and components must be the same on both sides."""
    for (a, b), axes in zip(pairs, event_axes, strict=True):
        first, second = np.shape(a), np.shape(b)
        try:
            np.broadcast_shapes(first, second)
            fit = not axes or first[-axes:] == second[-axes:]
        except ValueError:
            fit = False
        if not fit:
            raise ValueError(
                f"statistics of shape {first} and {second} do not add: "
                "give both as many units, and as many classes or components"
            )


def _short(value: Any) -> str:
    if check.is_traced(value):
        return str(value)
    options: Any = {"precision": 4, "threshold": 6, "edgeitems": 2, "separator": ", "}
    return np.array2string(np.asarray(value), **options).replace("\n", "")
