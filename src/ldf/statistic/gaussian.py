"""What is measured, in information form: potentials and precisions, and sums of squares."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.special.arrays import Array, namespace
from ldf.statistic.base import Statistic
from ldf.statistic.counts import FORMULATIONS, amount, exp


def ratio(a: Array, b: Array) -> Array:
    """a / b; NaN where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return a / b


class Potential(Statistic):
    """Potential h and precision J of a scalar: what a Gaussian prior of a mean counts."""

    potential: Array
    precision: Array

    event_axes: ClassVar = (0, 0)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        return 2

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
        check.last_axis("outputs", outputs, 2, "outputs")
        if formulation == "counts":
            return cls(outputs[..., 0], outputs[..., 1] ** 2)
        precision = amount(outputs[..., 0], formulation)
        return cls(precision * outputs[..., 1], precision)

    def output_scale(self, outputs: int) -> np.ndarray:
        return np.array([1.0, float(np.asarray(self.precision) ** -0.5)])

    @property
    def location(self) -> Array:
        return ratio(self.potential, self.precision)[..., None]

    def moved(self, location: Array) -> Potential:
        return type(self)(self.precision * location[..., 0], self.precision)

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
    def outputs(cls, components: int | None, formulation: str) -> int:
        return triangle_outputs(components or 1)

    @classmethod
    def prior(cls, mean: Any, covariance: Any) -> VectorPotential:
        """N(mean, covariance) in information form."""
        mean = check.numbers("mean", mean)
        check.last_axis("mean", mean, None, "components")
        covariance = check.positive_definite("covariance", covariance, mean.shape[-1])
        check.fits("covariance", covariance[..., 0, 0], mean.shape[:-1])
        xp = namespace(mean, covariance)
        precision = xp.linalg.inv(covariance)
        return cls((precision @ mean[..., None])[..., 0], precision)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> VectorPotential:
        """From D + D(D + 1)/2 outputs: a vector (mean or h) and the lower triangle L, J = LLᵀ."""
        check.one_of("formulation", formulation, FORMULATIONS)
        vector, lower = _vector_and_triangle(outputs, formulation)
        precision = lower @ lower.swapaxes(-1, -2)
        if formulation != "counts":
            vector = (precision @ vector[..., None])[..., 0]
        return cls(vector, precision)

    @property
    def location(self) -> Array:
        xp = namespace(self.potential, self.precision)
        return xp.linalg.solve(self.precision, self.potential[..., None])[..., 0]

    def moved(self, location: Array) -> VectorPotential:
        return type(self)((self.precision @ location[..., None])[..., 0], self.precision)

    @property
    def t(self) -> Array:
        return self.potential

    @property
    def n(self) -> Array:
        return self.precision


def triangle_outputs(dimension: int) -> int:
    """How many numbers a vector and a lower triangle of that dimension need."""
    return dimension + dimension * (dimension + 1) // 2


def _vector_and_triangle(outputs: Array, formulation: str) -> tuple[Array, Array]:
    size = outputs.shape[-1]
    dimension = next((d for d in range(1, size + 1) if triangle_outputs(d) == size), None)
    if dimension is None:
        raise ValueError(f"{size} outputs are not a vector and a lower triangle")
    rows, columns = np.tril_indices(dimension)
    entries = outputs[..., dimension:]
    if formulation == "log":
        entries = namespace(outputs).where(rows == columns, exp(entries), entries)
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

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        return 4

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
        check.last_axis("outputs", outputs, 4, "outputs")
        mean_n, variance_n, variance = (amount(outputs[..., i], formulation) for i in (0, 2, 3))
        mean = outputs[..., 1]
        total = mean if formulation == "counts" else mean_n * mean
        squares = variance_n * variance + total**2 / mean_n
        return cls(mean_n, total, variance_n, squares)

    def output_scale(self, outputs: int) -> np.ndarray:
        spread = (self.squares - self.total**2 / self.mean_n) / self.variance_n
        return np.array([1.0, float(np.sqrt(spread)), 1.0, 1.0])

    @property
    def location(self) -> Array:
        return ratio(self.total, self.mean_n)[..., None]

    def moved(self, location: Array) -> Moments:
        mean, before = location[..., 0], self.location[..., 0]
        squares = self.squares + self.mean_n * (mean**2 - before**2)
        return type(self)(self.mean_n, self.mean_n * mean, self.variance_n, squares)

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
        labels = values if hasattr(values, "index") else mean
        check.refuse(column, mean, far, problem, remedy, labels=labels)


class VectorMoments(Statistic):
    """The same for vectors: `total` is a vector and `squares` a matrix."""

    mean_n: Array
    total: Array
    variance_n: Array
    squares: Array

    event_axes: ClassVar = (0, 1, 0, 2)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        return 2 + triangle_outputs(components or 1)

    @classmethod
    def prior(cls, mean: Any, mean_n: Any, variance: Any, variance_n: Any) -> VectorMoments:
        """A mean as if from `mean_n` vectors and a covariance as if from `variance_n`."""
        mean = check.numbers("mean", mean)
        check.last_axis("mean", mean, None, "components")
        mean_n = check.nonnegative("mean_n", mean_n)
        variance_n = check.nonnegative("variance_n", variance_n)
        spread = check.positive_definite("variance", variance, mean.shape[-1])
        check.fits("variance", spread[..., 0, 0], mean.shape[:-1])
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
        mean_n, variance_n = (amount(outputs[..., i], formulation) for i in (0, 1))
        vector, lower = _vector_and_triangle(outputs[..., 2:], formulation)
        total = vector if formulation == "counts" else mean_n[..., None] * vector
        outer = total[..., :, None] * total[..., None, :] / mean_n[..., None, None]
        spread = variance_n[..., None, None] * (lower @ lower.swapaxes(-1, -2))
        return cls(mean_n, total, variance_n, spread + outer)

    @property
    def location(self) -> Array:
        return ratio(self.total, self.mean_n[..., None])

    def moved(self, location: Array) -> VectorMoments:
        before = self.location
        outer = location[..., :, None] * location[..., None, :]
        squares = self.squares + self.mean_n[..., None, None] * (
            outer - before[..., :, None] * before[..., None, :]
        )
        return type(self)(self.mean_n, self.mean_n[..., None] * location, self.variance_n, squares)

    @property
    def t(self) -> Array:
        xp = namespace(self.total)
        flat = self.squares.reshape((*self.squares.shape[:-2], -1))
        return xp.concatenate([self.total, flat], -1)

    @property
    def n(self) -> Array:
        return self.mean_n
