"""Measurements with unknown mean and variance, with a normal-inverse-gamma prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.distributions import Gaussian, NormalInverseGamma, StudentT
from ldf.distributions.normal_inverse import check_pair
from ldf.families.base import Family
from ldf.special import HALF_LOG_2PI, Array, floats, log_rising
from ldf.statistic import Moments, refuse_far_from_zero


class Normal(Family):
    """`values` of unknown mean and variance: one a unit, or several on a second axis.

    θ is the pair (mean, variance). Squares are summed as they are, so values more than 100,000
    standard deviations away from zero are refused: subtract a constant first.
    """

    natural: ClassVar = Moments
    latent: ClassVar = NormalInverseGamma
    columns: ClassVar = ("values",)
    design: ClassVar = ()
    prior = staticmethod(Moments.prior)
    from_unconstrained = staticmethod(Moments.from_unconstrained)

    def _summary(self, values: Any) -> tuple[Any, float, Array, Array]:
        """How many values, their mean and their sum of squares about it, for each unit."""
        xp, (y,) = floats(check.numbers("values", values, missing="leave the row out"))
        y = y[..., None] if y.ndim < 2 else y
        n = y.shape[-1]
        mean = y.sum(-1) / max(n, 1)
        squares = ((y - mean[..., None]) ** 2).sum(-1)
        refuse_lost_variance(values, y, mean, squares)
        return xp, float(n), mean, squares

    def statistic(self, values: Any) -> Moments:
        xp, n, mean, squares = self._summary(values)
        count = xp.full_like(mean, n)
        return Moments(count, n * mean, count, squares + n * mean**2)

    def log_base(self, values: Any) -> Array:
        _, n, mean, _ = self._summary(values)
        return -n * HALF_LOG_2PI + 0 * mean

    def log_predictive(self, natural: Moments, values: Any) -> Array:
        """The joint density of all the unit's values."""
        xp, n, centre, squares = self._summary(values)
        check.fits("values", centre, self.own(natural).shape)
        _, kappa, mean, nu, variance = NormalInverseGamma(natural).parameters("predictive")
        spread = nu * variance
        more = squares + kappa * n / (kappa + n) * (centre - mean) ** 2
        return (
            -n * HALF_LOG_2PI
            - 0.5 * xp.log1p(n / kappa)
            + log_rising(nu / 2, n / 2)
            - 0.5 * nu * xp.log1p(more / spread)
            - 0.5 * n * xp.log((spread + more) / 2)
        )

    def predictive(self, natural: Moments) -> StudentT:
        """Of one further value."""
        known = NormalInverseGamma(self.own(natural))
        xp, kappa, mean, nu, variance = known.parameters("predictive")
        return StudentT(nu, mean, xp.sqrt(variance * (1 + 1 / kappa)))

    def likelihood(self, theta: Any) -> Gaussian:
        """Of one further value at a known (mean, variance), on the last axis."""
        theta = check.numbers("theta", theta)
        check_pair("theta", theta)
        return Gaussian.of(theta[..., 0], check.positive("variance", theta[..., 1]))


def refuse_lost_variance(values: Any, y: Array, mean: Array, squares: Array) -> None:
    """Refuse values whose squares would not hold their variance: within units that have several,
    else among all units. `y` has a unit's values on the axis that `mean` lacks."""
    if check.is_traced(y) or np.size(y) < 2:
        return
    axis = -1 if np.ndim(mean) == np.ndim(y) - 1 and np.shape(mean) == np.shape(y)[:-1] else -2
    host, n = np.asarray(y), np.shape(y)[axis]
    if n > 1:
        constant = host.max(axis) == host.min(axis)  # what variance is left is rounding
        refuse_far_from_zero("values", values, mean, np.where(constant, 0.0, squares / n))
    elif np.shape(mean)[0] > 1:
        each = np.asarray(mean)
        spread = np.where(each.max(0) == each.min(0), 0.0, each.var(0))
        refuse_far_from_zero("values", values, each, np.broadcast_to(spread, each.shape))
