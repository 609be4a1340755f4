"""Vectors of unknown mean and covariance, with a normal-inverse-Wishart prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.distributions import (
    MultivariateGaussian,
    MultivariateStudentT,
    NormalInverseWishart,
)
from ldf.distributions.gaussian import log_det
from ldf.families.base import Family
from ldf.families.normal import centred
from ldf.special import HALF_LOG_2PI, Array, floats, multivariate_log_gamma
from ldf.statistic import VectorMoments, triangle_outputs


class MultivariateNormal(Family):
    """`values` (vectors on the last axis) of unknown mean and covariance: one a unit, or several
    on the axis before the last. θ is the pair (mean, covariance)."""

    dimension: int

    natural: ClassVar = VectorMoments
    latent: ClassVar = NormalInverseWishart
    columns: ClassVar = ("values",)
    design: ClassVar = ()
    prior = staticmethod(VectorMoments.prior)
    from_unconstrained = staticmethod(VectorMoments.from_unconstrained)

    @property
    def outputs(self) -> int:
        return 2 + triangle_outputs(self.dimension)

    def _summary(self, values: Any) -> tuple[Any, float, Array, Array]:
        """How many vectors, their mean and their scatter about it, for each unit."""
        xp, (y,) = floats(centred("values", values))
        if y.ndim == 0 or y.shape[-1] != self.dimension:
            problem, remedy = f"has shape {y.shape}", f"give vectors of length {self.dimension}"
            raise check.DataError("values", None, None, problem, remedy)
        y = y[..., None, :] if y.ndim < 3 else y
        mean = y.mean(-2)
        off = y - mean[..., None, :]
        return xp, float(y.shape[-2]), mean, off.swapaxes(-1, -2) @ off

    def statistic(self, values: Any) -> VectorMoments:
        xp, n, mean, scatter = self._summary(values)
        count = xp.full_like(mean[..., 0], n)
        outer = mean[..., :, None] * mean[..., None, :]
        return VectorMoments(count, n * mean, count, scatter + n * outer)

    def log_base(self, values: Any) -> Array:
        _, n, mean, _ = self._summary(values)
        return -n * self.dimension * HALF_LOG_2PI + 0 * mean[..., 0]

    def log_predictive(self, natural: VectorMoments, values: Any) -> Array:
        """The joint density of all the unit's vectors."""
        xp, n, centre, scatter = self._summary(values)
        _, kappa, mean, nu, psi = NormalInverseWishart(natural).parameters("predictive")
        off = centre - mean
        pull = (kappa * n / (kappa + n))[..., None, None]
        more = scatter + pull * off[..., :, None] * off[..., None, :]
        size = self.dimension
        return (
            -0.5 * n * size * np.log(np.pi)
            - 0.5 * size * xp.log1p(n / kappa)
            + multivariate_log_gamma((nu + n) / 2, size)
            - multivariate_log_gamma(nu / 2, size)
            + 0.5 * nu * log_det(psi)
            - 0.5 * (nu + n) * log_det(psi + more)
        )

    def predictive(self, natural: VectorMoments) -> MultivariateStudentT:
        """Of one further vector."""
        _, kappa, mean, nu, psi = NormalInverseWishart(natural).parameters("predictive")
        freedom = nu - self.dimension + 1
        widen = (1 + 1 / kappa) / freedom
        return MultivariateStudentT(freedom, mean, psi * widen[..., None, None])

    def likelihood(self, theta: tuple[Any, Any]) -> MultivariateGaussian:
        """Of one further vector at a known (mean, covariance)."""
        mean = check.numbers("mean", theta[0])
        return MultivariateGaussian.of(mean, check.positive_definite("covariance", theta[1]))
