"""Gaussians in information form, and Student's t, which they become when the variance is unknown.

A Gaussian is held by its potential h = J·mean and its precision J: that is what adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Continuous, Multivariate, check_component, check_q, of_units
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    digamma,
    floats,
    log_rising,
    namespace,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)
from ldf.statistic import Potential, VectorPotential

IMPROPER = "give a prior with a finite variance"


class Gaussian(Continuous):
    """Of one number: N(h/J, 1/J)."""

    natural: Potential

    @staticmethod
    def log_partition(natural: Potential) -> Array:
        """log Z: h²/2J − ½ log J + ½ log 2π; infinite if improper."""
        xp, (h, j) = floats(natural.potential, natural.precision)
        proper = j > 0
        j = xp.where(proper, j, 1.0)
        value = 0.5 * h * (h / j) - 0.5 * xp.log(j) + HALF_LOG_2PI
        return xp.where(proper, value, np.inf)

    @staticmethod
    def sufficient(value: Any) -> Potential:
        """What the coordinates multiply in log p(θ): θ and −θ²/2."""
        _, (theta,) = floats(check.numbers("theta", value))
        return Potential(theta, -0.5 * theta**2)

    @classmethod
    def of(cls, mean: Array, variance: Array) -> Gaussian:
        return cls(Potential(mean / variance, 1 / variance))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def __getitem__(self, rows: Any) -> Gaussian:
        return Gaussian(self.natural[rows])

    def _proper(self, quantity: str) -> tuple[Any, Array, Array]:
        xp, (h, j) = floats(self.natural.potential, self.natural.precision)
        why = "nothing was observed, not even by a prior"
        check.exists(f"posterior {quantity}", j > 0, why, IMPROPER)
        h, j = xp.broadcast_arrays(h, j)
        return xp, h / j, j

    def mean(self) -> Array:
        return self._proper("mean")[1]

    def variance(self) -> Array:
        return 1 / self._proper("variance")[2]

    def mode(self) -> Array:
        return self._proper("mode")[1]

    def log_prob(self, value: Any) -> Array:
        xp, mean, j = self._proper("density")
        _, (x, mean) = floats(check.numbers("value", value, units=self.shape), mean)
        return 0.5 * xp.log(j) - HALF_LOG_2PI - 0.5 * j * (x - mean) ** 2

    def slope(self, value: Array) -> Array:
        _, mean, j = self._proper("density")
        return -j * (value - mean)

    def cdf(self, value: Any) -> Array:
        xp, mean, j = self._proper("cdf")
        return normal_cdf(
            (check.numbers("value", value, infinite=True, units=self.shape) - mean) * xp.sqrt(j)
        )

    def exceeds(self, value: Any) -> Array:
        xp, mean, j = self._proper("cdf")
        return normal_cdf(
            (mean - check.numbers("value", value, infinite=True, units=self.shape)) * xp.sqrt(j)
        )

    def quantile(self, q: Any) -> Array:
        xp, mean, j = self._proper("quantile")
        check_q(q, self.shape)
        return mean + normal_quantile(q + 0 * mean) / xp.sqrt(j)

    def entropy(self) -> Array:
        xp, _, j = self._proper("entropy")
        return 0.5 + HALF_LOG_2PI - 0.5 * xp.log(j)

    def divergence(self, other: Gaussian) -> Array:
        """KL(this ‖ other) in nats."""
        xp, mean, j = self._proper("divergence")
        _, other_mean, k = other._proper("divergence")
        ratio = (k - j) / j
        return 0.5 * (ratio - xp.log1p(ratio) + k * (mean - other_mean) ** 2)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, mean, j = self._proper("sample")
        return mean + Draws(draws, seed, mean).normal(mean) / xp.sqrt(j)


def _solve(matrix: Array, vector: Array) -> Array:
    return namespace(matrix, vector).linalg.solve(matrix, vector[..., None])[..., 0]


def diagonal(matrix: Array) -> Array:
    return namespace(matrix).diagonal(matrix, axis1=-2, axis2=-1)


def log_det(matrix: Array) -> Array:
    """Of a positive definite matrix."""
    return namespace(matrix).linalg.slogdet(matrix)[1]


class MultivariateGaussian(Multivariate):
    """Of a vector: N(J⁻¹h, J⁻¹). Marginal answers have one column a component."""

    natural: VectorPotential

    @staticmethod
    def log_partition(natural: VectorPotential) -> Array:
        """log Z: hᵀJ⁻¹h/2 − ½ log|J| + D/2 log 2π; infinite if improper."""
        xp, (h, j) = floats(natural.potential, natural.precision)
        if xp is np:
            proper = check.is_definite(j)
            j = np.where(proper[..., None, None], j, np.eye(h.shape[-1]))
            value = 0.5 * (h * _solve(j, h)).sum(-1) - 0.5 * log_det(j)
            return np.where(proper, value + h.shape[-1] * HALF_LOG_2PI, np.inf)
        return 0.5 * (h * _solve(j, h)).sum(-1) - 0.5 * log_det(j) + h.shape[-1] * HALF_LOG_2PI

    @staticmethod
    def sufficient(value: Any) -> VectorPotential:
        """What the coordinates multiply in log p(θ): θ and −θθᵀ/2."""
        _, (theta,) = floats(check.numbers("theta", value))
        return VectorPotential(theta, -0.5 * theta[..., :, None] * theta[..., None, :])

    @classmethod
    def of(cls, mean: Array, covariance: Array) -> MultivariateGaussian:
        precision = namespace(covariance).linalg.inv(covariance)
        return cls(VectorPotential((precision @ mean[..., None])[..., 0], precision))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    def __getitem__(self, rows: Any) -> MultivariateGaussian:
        return MultivariateGaussian(self.natural[rows])

    def _proper(self, quantity: str) -> tuple[Any, Array, Array]:
        xp, (h, j) = floats(self.natural.potential, self.natural.precision)
        if not check.is_traced(j):
            why = "some direction was not observed, not even by a prior"
            check.exists(f"posterior {quantity}", check.is_definite(np.asarray(j)), why, IMPROPER)
        return xp, h, j

    def mean(self) -> Array:
        _, h, j = self._proper("mean")
        return _solve(j, h)

    def covariance(self) -> Array:
        xp, _, j = self._proper("covariance")
        return xp.linalg.inv(j)

    def sd(self) -> Array:
        covariance = self.covariance()
        return namespace(covariance).sqrt(diagonal(covariance))

    def mode(self) -> Array:
        return self.mean()

    def marginal(self, component: int | None = None) -> Gaussian:
        """Of one component, or of all with components on the last axis."""
        mean, variance = self.mean(), diagonal(self.covariance())
        if component is None:
            return Gaussian.of(mean, variance)
        check_component(component, mean.shape[-1])
        return Gaussian.of(mean[..., component], variance[..., component])

    def log_prob(self, value: Any) -> Array:
        """The log density of a vector."""
        _, h, j = self._proper("density")
        x = check.numbers("value", value)
        check.last_axis("value", x, h.shape[-1], "components")
        off = x - _solve(j, h)
        quadratic = (off * (j @ off[..., None])[..., 0]).sum(-1)
        return 0.5 * log_det(j) - h.shape[-1] * HALF_LOG_2PI - 0.5 * quadratic

    def entropy(self) -> Array:
        _, h, j = self._proper("entropy")
        return h.shape[-1] * (0.5 + HALF_LOG_2PI) - 0.5 * log_det(j)

    def divergence(self, other: MultivariateGaussian) -> Array:
        """KL(this ‖ other) in nats."""
        xp, h, j = self._proper("divergence")
        _, g, k = other._proper("divergence")
        off = _solve(k, g) - _solve(j, h)
        trace = diagonal(xp.linalg.solve(j, k)).sum(-1) - h.shape[-1]
        quadratic = (off * (k @ off[..., None])[..., 0]).sum(-1)
        return 0.5 * (trace - (log_det(k) - log_det(j)) + quadratic)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, h, j = self._proper("sample")
        mean = _solve(j, h)
        upper = xp.linalg.cholesky(j).swapaxes(-1, -2)  # J = LLᵀ, so L⁻ᵀ z has covariance J⁻¹
        noise = Draws(draws, seed, mean).normal(mean)
        upper = xp.broadcast_to(upper, noise.shape + noise.shape[-1:])
        return mean + _solve(upper, noise)


class StudentT(Continuous):
    """Of one number: centre + scale · t, with so many degrees of freedom."""

    freedom: Array
    centre: Array
    scale: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(v) for v in (self.freedom, self.centre, self.scale)))

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def _parameters(self) -> tuple[Any, Array, Array, Array]:
        xp, values = floats(self.freedom, self.centre, self.scale)
        return xp, *xp.broadcast_arrays(*values)

    def __getitem__(self, rows: Any) -> StudentT:
        _, *values = self._parameters()
        return StudentT(*(value[rows] for value in values))

    def mean(self) -> Array:
        _, freedom, centre, _ = self._parameters()
        remedy = "take the mode or the median, or give a prior of the variance worth more"
        check.exists("mean", freedom > 1, "its tails are too heavy", remedy)
        return centre

    def variance(self) -> Array:
        xp, freedom, _, scale = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(freedom > 2, scale**2 * (freedom / (freedom - 2)), np.inf)

    def mode(self) -> Array:
        return self._parameters()[2]

    def log_prob(self, value: Any) -> Array:
        xp, freedom, centre, scale = self._parameters()
        _, (x, centre) = floats(check.numbers("value", value, units=self.shape), centre)
        off = (x - centre) / scale
        constant = log_rising(freedom / 2, 0.5) - 0.5 * xp.log(freedom * np.pi) - xp.log(scale)
        return constant - 0.5 * (freedom + 1) * xp.log1p(off**2 / freedom)

    def slope(self, value: Array) -> Array:
        _, freedom, centre, scale = self._parameters()
        off = (value - centre) / scale
        return -(freedom + 1) * off / (freedom + off**2) / scale

    def cdf(self, value: Any) -> Array:
        _, freedom, centre, scale = self._parameters()
        return student_cdf(
            freedom,
            (check.numbers("value", value, infinite=True, units=self.shape) - centre) / scale,
        )

    def exceeds(self, value: Any) -> Array:
        _, freedom, centre, scale = self._parameters()
        return student_cdf(
            freedom,
            (centre - check.numbers("value", value, infinite=True, units=self.shape)) / scale,
        )

    def quantile(self, q: Any) -> Array:
        _, freedom, centre, scale = self._parameters()
        check_q(q, self.shape)
        return centre + scale * student_quantile(freedom, q)

    def entropy(self) -> Array:
        xp, freedom, _, scale = self._parameters()
        spread = 0.5 * (freedom + 1) * (digamma(0.5 * (freedom + 1)) - digamma(0.5 * freedom))
        constant = 0.5 * xp.log(freedom * np.pi) - log_rising(freedom / 2, 0.5)
        return spread + constant + xp.log(scale)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, freedom, centre, scale = self._parameters()
        source = Draws(draws, seed, centre)
        # χ²_ν is twice a Gamma(ν/2).
        spread = xp.exp(-0.5 * (source.log_gamma(freedom / 2) - xp.log(freedom / 2)))
        return centre + scale * source.normal(centre) * spread


class MultivariateStudentT(Multivariate):
    """Of a vector, with a shape matrix. Marginal answers have one column a component."""

    freedom: Array
    centre: Array
    spread: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.freedom), np.shape(self.centre)[:-1])

    def __getitem__(self, rows: Any) -> MultivariateStudentT:
        parts = floats(self.freedom, self.centre, self.spread)[1]
        return MultivariateStudentT(
            *(of_units(p, self.shape, i)[rows] for i, p in enumerate(parts))
        )

    def marginal(self, component: int | None = None) -> StudentT:
        """Of one component, or of all with components on the last axis."""
        xp, (freedom, centre, spread) = floats(self.freedom, self.centre, self.spread)
        scale = xp.sqrt(diagonal(spread))
        if component is None:
            return StudentT(freedom[..., None], centre, scale)
        check_component(component, centre.shape[-1])
        return StudentT(freedom, centre[..., component], scale[..., component])

    def mean(self) -> Array:
        return self.marginal().mean()

    def mode(self) -> Array:
        return self.centre

    def log_prob(self, value: Any) -> Array:
        """The log density of a vector."""
        xp, (freedom, centre, spread) = floats(self.freedom, self.centre, self.spread)
        x = check.numbers("value", value)
        check.last_axis("value", x, centre.shape[-1], "components")
        _, (x, centre) = floats(x, centre)
        off = x - centre
        size = off.shape[-1]
        distance = (off * _solve(xp.broadcast_to(spread, (*off.shape, size)), off)).sum(-1)
        constant = log_rising(freedom / 2, size / 2) - 0.5 * size * xp.log(freedom * np.pi)
        power = 0.5 * (freedom + size) * xp.log1p(distance / freedom)
        return constant - 0.5 * log_det(spread) - power

    def sample(self, draws: int, seed: Any) -> Array:
        xp, (freedom, centre, spread) = floats(self.freedom, self.centre, self.spread)
        source = Draws(draws, seed, centre)
        noise = source.normal(centre)
        lower = xp.linalg.cholesky(spread)
        stretch = xp.exp(-0.5 * (source.log_gamma(freedom / 2) - xp.log(freedom / 2)))
        return centre + (lower @ noise[..., None])[..., 0] * stretch[..., None]
