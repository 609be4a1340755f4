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
from ldf.families.normal import refuse_lost_variance
from ldf.special import HALF_LOG_2PI, Array, floats, multivariate_log_gamma
from ldf.statistic import VectorMoments


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

    def __check_init__(self) -> None:
        if not isinstance(self.dimension, int) or self.dimension < 1:
            remedy = "give a whole number from 1 on"
            raise check.DataError("dimension", None, self.dimension, "is not possible", remedy)

    @property
    def components(self) -> int:
        return self.dimension

    def _summary(self, values: Any) -> tuple[Any, float, Array, Array]:
        """How many vectors, their mean and their scatter about it, for each unit."""
        xp, (y,) = floats(check.numbers("values", values, missing="leave the row out"))
        check.last_axis("values", y, self.dimension, "components")
        y = y[..., None, :] if y.ndim < 3 else y
        n = y.shape[-2]
        mean = y.sum(-2) / max(n, 1)
        off = y - mean[..., None, :]
        refuse_lost_variance(values, y, mean, (off**2).sum(-2))
        return xp, float(n), mean, off.swapaxes(-1, -2) @ off

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
        check.fits("values", centre[..., 0], self.own(natural).shape)
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
        known = NormalInverseWishart(self.own(natural))
        _, kappa, mean, nu, psi = known.parameters("predictive")
        freedom = nu - self.dimension + 1
        widen = (1 + 1 / kappa) / freedom
        return MultivariateStudentT(freedom, mean, psi * widen[..., None, None])

    def likelihood(self, theta: tuple[Any, Any]) -> MultivariateGaussian:
        """Of one further vector at a known (mean, covariance)."""
        if not isinstance(theta, tuple | list) or len(theta) != 2:
            remedy = "give the mean vector and the covariance matrix"
            raise check.DataError("theta", None, None, "is not a pair", remedy)
        mean = check.numbers("mean", theta[0])
        check.last_axis("mean", mean, self.dimension, "components")
        covariance = check.positive_definite("variance", theta[1], self.dimension)
        return MultivariateGaussian.of(mean, covariance)
