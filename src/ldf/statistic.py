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
        for one, two in zip(self.coordinates(), other.coordinates(), strict=True):
            try:
                np.broadcast_shapes(np.shape(one), np.shape(two))
            except ValueError:
                raise ValueError(
                    f"statistics of shape {np.shape(one)} and {np.shape(two)} do not add: "
                    "give both as many units, and as many classes or components"
                ) from None
        pairs = zip(self.coordinates(), other.coordinates(), strict=True)
        return type(self)(*(mine + theirs for mine, theirs in pairs))

    __radd__ = __add__

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

        def take(value: Array, axes: int) -> Array:
            event = np.shape(value)[np.ndim(value) - axes :]
            return namespace(value).broadcast_to(value, shape + event)[rows]

        return self._map(take)

    def zero(self) -> Self:
        """What adds nothing."""
        return self._map(lambda value, axes: value * 0)

    def where(self, present: Array) -> Self:
        """This statistic where something is present, and nothing elsewhere."""
        present = present if hasattr(present, "reshape") else np.asarray(present)

        def keep(value: Array, axes: int) -> Array:
            mask = present.reshape(present.shape + (1,) * axes)
            return namespace(value, present).where(mask, value, 0.0)

        return self._map(keep)

    def __repr__(self) -> str:
        named = zip((field.name for field in fields(self)), self.coordinates(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{n}={_short(value)}' for n, value in named)})"

    @property
    @abstractmethod
    def t(self) -> Array:
        """The paper's t: the sum of sufficient statistics."""

    @property
    @abstractmethod
    def n(self) -> Array:
        """The paper's n: how many (pseudo-)observations."""


def _short(value: Any) -> str:
    if check.is_traced(value):
        return str(value)
    options: Any = {"precision": 4, "threshold": 6, "edgeitems": 2, "separator": ", "}
    return np.array2string(np.asarray(value), **options).replace("\n", "")


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
        """Pseudo-observations given by hand: a prior Be(successes, failures), or what auxiliary
        data are worth. They may be fractional."""
        a = check.nonnegative("successes", successes)
        b = check.nonnegative("failures", failures)
        check.same_length(successes=successes, failures=failures)
        return cls(a, b)

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
        """Pseudo-counts given by hand: a prior Dir(counts), or what auxiliary data are worth."""
        array = check.nonnegative("counts", counts)
        check.last_axis("counts", array, None, "classes")
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
        """Pseudo-observations given by hand: a prior Ga(shape count, rate exposure), or what
        auxiliary data are worth."""
        a, b = check.nonnegative("count", count), check.nonnegative("exposure", exposure)
        check.same_length(count=count, exposure=exposure)
        return cls(a, b)

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
        """N(mean, variance) in information form; an infinite variance says nothing."""
        precision = 1 / check.positive("variance", variance, infinite=True)
        centre = check.numbers("mean", mean)
        check.same_length(mean=mean, variance=variance)
        return cls(precision * centre, precision + 0 * centre)

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
        mean = check.numbers("mean", mean)
        check.last_axis("mean", mean, None, "components")
        covariance = check.positive_definite("covariance", covariance, mean.shape[-1])
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
        words = {"mean": mean, "mean_n": mean_n, "variance": variance, "variance_n": variance_n}
        mean = check.numbers("mean", mean)
        mean_n = check.nonnegative("mean_n", mean_n)
        variance_n = check.nonnegative("variance_n", variance_n)
        variance = check.nonnegative("variance", variance)
        check.same_length(**words)
        refuse_far_from_zero("mean", mean, mean, variance)
        return cls(mean_n, mean_n * mean, variance_n, variance_n * variance + mean_n * mean**2)

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


# Squares are summed as they are, so a variance keeps this many digits less than a float has.
FURTHEST = {"float64": 1e5, "float32": 90.0}


def refuse_far_from_zero(column: str, values: Any, mean: Array, variance: Array) -> None:
    """Refuse values whose squares would not hold their variance."""
    if check.is_traced(mean, variance):
        return
    mean, variance = np.asarray(mean), np.asarray(variance)
    most = FURTHEST.get(str(mean.dtype), 90.0)
    far = (variance > 0) & (np.abs(mean) > most * np.sqrt(variance))
    problem = f"is more than {most:,.0f} standard deviations away from zero"
    remedy = "subtract a constant from the values and from the prior's mean"
    if far.any():
        check.refuse(column, mean, far, problem, remedy)


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
        check.last_axis("mean", mean, None, "components")
        mean_n = check.nonnegative("mean_n", mean_n)
        variance_n = check.nonnegative("variance_n", variance_n)
        spread = check.positive_definite("variance", variance, mean.shape[-1])
        for name, weight in (("mean_n", mean_n), ("variance_n", variance_n)):
            check.fits(name, weight, mean.shape[:-1])
        refuse_far_from_zero("mean", mean, mean, spread.diagonal(axis1=-2, axis2=-1))
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
