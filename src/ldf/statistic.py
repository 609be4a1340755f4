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
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.special.arrays import Array, namespace


class Statistic(eqx.Module):
    """Additive coordinates of M units. Concrete kinds name them; nothing else is theirs."""

    event_axes: ClassVar[tuple[int, ...]]  # for each coordinate, its axes beyond the units'

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
        pairs = zip(self.coordinates(), other.coordinates(), strict=True)
        return type(self)(*(mine + theirs for mine, theirs in pairs))

    __radd__ = __add__

    def __mul__(self, weight: Any) -> Self:
        """Each unit's statistic counted `weight` times: a number, or one a unit."""
        if isinstance(weight, Statistic):
            raise TypeError("statistics add; they are multiplied by numbers only")
        if not hasattr(weight, "ndim"):
            weight = np.asarray(weight, dtype=float)
        return self._map(lambda value, axes: value * weight.reshape(weight.shape + (1,) * axes))

    __rmul__ = __mul__

    def __getitem__(self, rows: Any) -> Self:
        """The statistics of some units."""
        shape = self.shape

        def take(value: Array, axes: int) -> Array:
            event = np.shape(value)[np.ndim(value) - axes :]
            return namespace(value).broadcast_to(value, shape + event)[rows]

        return self._map(take)

    def zero(self) -> Self:
        """What adds nothing."""
        return self._map(lambda value, axes: value * 0)

    def where(self, present: Array) -> Self:
        """This statistic where something is present, and nothing elsewhere."""

        def keep(value: Array, axes: int) -> Array:
            mask = present.reshape(present.shape + (1,) * axes)
            return namespace(value, present).where(mask, value, 0.0)

        return self._map(keep)

    @property
    @abstractmethod
    def t(self) -> Array:
        """The paper's t: the sum of sufficient statistics."""

    @property
    @abstractmethod
    def n(self) -> Array:
        """The paper's n: how many (pseudo-)observations."""


def _softplus(x: Array) -> Array:
    return jax.nn.softplus(x) if isinstance(x, jax.Array) else np.logaddexp(0.0, x)


def _sigmoid(x: Array) -> Array:
    # 1/(1 + e^-x) written so that both it and its complement keep their digits at either end.
    return jax.nn.sigmoid(x) if isinstance(x, jax.Array) else np.exp(-np.logaddexp(0.0, -x))


FORMULATIONS = ("rate", "counts")


class Trials(Statistic):
    """Successes and failures: what a Beta prior counts."""

    successes: Array
    failures: Array

    event_axes: ClassVar = (0, 0)
    outputs: ClassVar[int] = 2

    @classmethod
    def prior(cls, successes: Any, failures: Any) -> Trials:
        """Prior pseudo-observations, Be(successes, failures)."""
        check.same_length(successes=successes, failures=failures)
        return cls(
            check.nonnegative("successes", successes), check.nonnegative("failures", failures)
        )

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Trials:
        """From a mapping's two outputs: (n, μ) through softplus and logistic, or (a, b)."""
        check.one_of("formulation", formulation, FORMULATIONS)
        first, second = outputs[..., 0], outputs[..., 1]
        if formulation == "counts":
            return cls(_softplus(first), _softplus(second))
        trials = _softplus(first)
        return cls(trials * _sigmoid(second), trials * _sigmoid(-second))

    @property
    def t(self) -> Array:
        return self.successes

    @property
    def n(self) -> Array:
        return self.successes + self.failures


class ClassCounts(Statistic):
    """Counts a class, classes on the last axis: what a Dirichlet prior counts."""

    counts: Array

    event_axes: ClassVar = (1,)

    @classmethod
    def prior(cls, counts: Any) -> ClassCounts:
        """Prior pseudo-counts, Dir(counts)."""
        array = check.nonnegative("counts", counts)
        if np.ndim(array) == 0:
            remedy = "give one pseudo-count a class, as in prior([0.5, 0.5, 0.5])"
            raise check.DataError("counts", None, counts, "is one number", remedy)
        return cls(array)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> ClassCounts:
        """From a mapping's outputs: n and the K logits of the shares, or K counts."""
        check.one_of("formulation", formulation, FORMULATIONS)
        if formulation == "counts":
            return cls(_softplus(outputs))
        xp = namespace(outputs)
        logits = outputs[..., 1:] - outputs[..., 1:].max(-1, keepdims=True)
        shares = xp.exp(logits) / xp.exp(logits).sum(-1, keepdims=True)
        return cls(_softplus(outputs[..., :1]) * shares)

    @property
    def t(self) -> Array:
        return self.counts

    @property
    def n(self) -> Array:
        return self.counts.sum(-1)


class Arrivals(Statistic):
    """A count and the exposure it took: what a Gamma prior counts."""

    count: Array
    exposure: Array

    event_axes: ClassVar = (0, 0)
    outputs: ClassVar[int] = 2

    @classmethod
    def prior(cls, count: Any, exposure: Any) -> Arrivals:
        """Prior pseudo-observations, Ga(shape count, rate exposure)."""
        check.same_length(count=count, exposure=exposure)
        return cls(check.nonnegative("count", count), check.nonnegative("exposure", exposure))

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Arrivals:
        """From a mapping's two outputs: exposure and rate, or count and exposure."""
        check.one_of("formulation", formulation, FORMULATIONS)
        first, second = _softplus(outputs[..., 0]), _softplus(outputs[..., 1])
        return cls(first * second, first) if formulation == "rate" else cls(first, second)

    @property
    def t(self) -> Array:
        return self.count

    @property
    def n(self) -> Array:
        return self.exposure


class Potential(Statistic):
    """Potential h and precision J of a scalar: what a Gaussian prior of a mean counts."""

    potential: Array
    precision: Array

    event_axes: ClassVar = (0, 0)
    outputs: ClassVar[int] = 2

    @classmethod
    def prior(cls, mean: Any, variance: Any) -> Potential:
        """N(mean, variance) in information form."""
        check.same_length(mean=mean, variance=variance)
        precision = 1 / check.positive("variance", variance)
        return cls(precision * check.numbers("mean", mean), precision)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Potential:
        """From a mapping's two outputs: precision and mean, or h and the root of J."""
        check.one_of("formulation", formulation, FORMULATIONS)
        if formulation == "rate":
            precision = _softplus(outputs[..., 0])
            return cls(precision * outputs[..., 1], precision)
        return cls(outputs[..., 0], outputs[..., 1] ** 2)

    @property
    def t(self) -> Array:
        return self.potential

    @property
    def n(self) -> Array:
        return self.precision


class VectorPotential(Statistic):
    """Potential vector h and precision matrix J: the same for a vector."""

    potential: Array
    precision: Array

    event_axes: ClassVar = (1, 2)

    @classmethod
    def prior(cls, mean: Any, covariance: Any) -> VectorPotential:
        """N(mean, covariance) in information form."""
        covariance = check.positive_definite("covariance", covariance)
        mean = check.numbers("mean", mean)
        xp = namespace(mean, covariance)
        precision = xp.linalg.inv(covariance)
        return cls((precision @ mean[..., None])[..., 0], precision)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> VectorPotential:
        """From D + D(D + 1)/2 outputs: a vector (mean or h) and the lower triangle L, J = LLᵀ."""
        check.one_of("formulation", formulation, FORMULATIONS)
        vector, lower = _vector_and_triangle(outputs)
        precision = lower @ lower.swapaxes(-1, -2)
        if formulation == "rate":
            vector = (precision @ vector[..., None])[..., 0]
        return cls(vector, precision)

    @property
    def t(self) -> Array:
        return self.potential

    @property
    def n(self) -> Array:
        return self.precision


def triangle_outputs(dimension: int) -> int:
    """How many numbers a vector and a lower triangle of that dimension need."""
    return dimension + dimension * (dimension + 1) // 2


def _vector_and_triangle(outputs: Array) -> tuple[Array, Array]:
    size = outputs.shape[-1]
    dimension = next((d for d in range(1, size + 1) if triangle_outputs(d) == size), None)
    if dimension is None:
        raise ValueError(f"{size} outputs are not a vector and a lower triangle")
    rows, columns = np.tril_indices(dimension)
    entries = outputs[..., dimension:]
    shape = (*outputs.shape[:-1], dimension, dimension)
    if isinstance(outputs, jax.Array):
        lower = jnp.zeros(shape, outputs.dtype).at[..., rows, columns].set(entries)
    else:
        lower = np.zeros(shape, outputs.dtype)
        lower[..., rows, columns] = entries
    return outputs[..., :dimension], lower


class Moments(Statistic):
    """Weights, total and squares of values: what a prior of mean and variance counts.

    With a mean m known as if from `mean_n` values and a variance s² as if from `variance_n`:
    total = mean_n · m and squares = variance_n · s² + mean_n · m².
    """

    mean_n: Array
    total: Array
    variance_n: Array
    squares: Array

    event_axes: ClassVar = (0, 0, 0, 0)
    outputs: ClassVar[int] = 4

    @classmethod
    def prior(cls, mean: Any, mean_n: Any, variance: Any, variance_n: Any) -> Moments:
        """A mean as if from `mean_n` values and a variance as if from `variance_n`."""
        mean = check.numbers("mean", mean)
        mean_n = check.nonnegative("mean_n", mean_n)
        variance_n = check.nonnegative("variance_n", variance_n)
        spread = variance_n * check.nonnegative("variance", variance)
        return cls(mean_n, mean_n * mean, variance_n, spread + mean_n * mean**2)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Moments:
        """From a mapping's four outputs: mean_n, mean, variance_n, variance."""
        check.one_of("formulation", formulation, FORMULATIONS)
        mean_n, mean = _softplus(outputs[..., 0]), outputs[..., 1]
        variance_n, variance = _softplus(outputs[..., 2]), _softplus(outputs[..., 3])
        total = mean if formulation == "counts" else mean_n * mean
        squares = variance_n * variance + total**2 / mean_n
        return cls(mean_n, total, variance_n, squares)

    @property
    def t(self) -> Array:
        xp = namespace(self.total)
        return xp.stack([self.total, self.squares], -1)

    @property
    def n(self) -> Array:
        return self.mean_n


class VectorMoments(Statistic):
    """The same for vectors: `total` is a vector and `squares` a matrix."""

    mean_n: Array
    total: Array
    variance_n: Array
    squares: Array

    event_axes: ClassVar = (0, 1, 0, 2)

    @classmethod
    def prior(cls, mean: Any, mean_n: Any, variance: Any, variance_n: Any) -> VectorMoments:
        """A mean as if from `mean_n` vectors and a covariance as if from `variance_n`."""
        mean = check.numbers("mean", mean)
        mean_n = check.nonnegative("mean_n", mean_n)
        variance_n = check.nonnegative("variance_n", variance_n)
        spread = check.positive_definite("variance", variance)
        outer = mean[..., :, None] * mean[..., None, :]
        squares = variance_n[..., None, None] * spread + mean_n[..., None, None] * outer
        return cls(mean_n, mean_n[..., None] * mean, variance_n, squares)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> VectorMoments:
        """From 2 + D + D(D + 1)/2 outputs: mean_n, variance_n, mean, lower triangle."""
        check.one_of("formulation", formulation, FORMULATIONS)
        mean_n, variance_n = _softplus(outputs[..., 0]), _softplus(outputs[..., 1])
        vector, lower = _vector_and_triangle(outputs[..., 2:])
        total = vector if formulation == "counts" else mean_n[..., None] * vector
        outer = total[..., :, None] * total[..., None, :] / mean_n[..., None, None]
        spread = variance_n[..., None, None] * (lower @ lower.swapaxes(-1, -2))
        return cls(mean_n, total, variance_n, spread + outer)

    @property
    def t(self) -> Array:
        xp = namespace(self.total)
        flat = self.squares.reshape((*self.squares.shape[:-2], -1))
        return xp.concatenate([self.total, flat], -1)

    @property
    def n(self) -> Array:
        return self.mean_n
