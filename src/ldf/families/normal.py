"""Measurements with unknown mean and variance, with a normal-inverse-gamma prior."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.distributions import Gaussian, NormalInverseGamma, StudentT
from ldf.families.base import Family
from ldf.special import HALF_LOG_2PI, Array, floats, log_rising, namespace
from ldf.statistic import Moments


class Normal(Family):
    """`values` of unknown mean and variance: one a unit, or several on a second axis.

    θ is the pair (mean, variance). Squares are summed as they are, so values whose mean is more
    than 100,000 standard deviations away from zero are refused: subtract a constant first.
    """

    natural: ClassVar = Moments
    latent: ClassVar = NormalInverseGamma
    columns: ClassVar = ("values",)
    design: ClassVar = ()
    outputs: ClassVar[int] = Moments.outputs
    prior = staticmethod(Moments.prior)
    from_unconstrained = staticmethod(Moments.from_unconstrained)

    def _summary(self, values: Any) -> tuple[Any, float, Array, Array]:
        """How many values, their mean and their sum of squares about it, for each unit."""
        xp, (y,) = floats(centred("values", values))
        y = y[..., None] if y.ndim < 2 else y
        mean = y.mean(-1)
        return xp, float(y.shape[-1]), mean, ((y - mean[..., None]) ** 2).sum(-1)

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
        xp, kappa, mean, nu, variance = NormalInverseGamma(natural).parameters("predictive")
        return StudentT(nu, mean, xp.sqrt(variance * (1 + 1 / kappa)))

    def likelihood(self, theta: Any) -> Gaussian:
        """Of one further value at a known (mean, variance), on the last axis."""
        theta = check.numbers("theta", theta)
        return Gaussian.of(theta[..., 0], check.positive("variance", theta[..., 1]))


def centred(column: str, values: Any) -> Array:
    """The values, refused if their squares would not hold their variance."""
    y = check.numbers(column, values)
    if not check.is_traced(y) and np.size(y) > 1:
        spread = float(np.std(np.asarray(y)))
        furthest = float(np.abs(np.mean(np.asarray(y))))
        if spread > 0 and furthest > 1e5 * spread:
            remedy = f"subtract a constant near {furthest:.6g} from the values and the prior's mean"
            problem = f"lies {furthest / spread:.3g} standard deviations away from zero"
            raise check.DataError(column, None, None, problem, remedy)
    return y if hasattr(y, "ndim") else namespace(y).asarray(y)
