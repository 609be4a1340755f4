"""Measurements with known (co)variance, with a Gaussian prior, in information form.

`Gaussian` is a scalar θ seen through means of n values of known variance, or through estimates
that bring their own variance (Fay–Herriot). `LinearGaussian` is a vector θ seen through a linear
map: y ~ N(Aθ + b, Σ), so that T_y = (Aᵀ Σ⁻¹ (y − b), Aᵀ Σ⁻¹ A).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.distributions import Gaussian as GaussianOfMean
from ldf.distributions import MultivariateGaussian
from ldf.families.base import Family
from ldf.special import HALF_LOG_2PI, Array, floats, namespace
from ldf.statistic import Potential, VectorPotential


class Gaussian(Family):
    """The `mean` of `n` values of known `variance`, or a `mean` with a variance of its own.

    ldf.Gaussian(variance=8.5).statistic(mean=…, n=…)   values of one known variance
    ldf.Gaussian().statistic(mean=…, variance=…)        estimates, each with its variance
    """

    variance: float | None = None

    natural: ClassVar = Potential
    latent: ClassVar = GaussianOfMean
    columns: ClassVar = ("mean", "n", "variance")
    design: ClassVar = ("n", "variance")
    prior = staticmethod(Potential.prior)
    from_unconstrained = staticmethod(Potential.from_unconstrained)

    def __check_init__(self) -> None:
        if self.variance is not None:
            check.positive("variance", self.variance)
            check.single("variance", self.variance)

    def _precision(self, n: Any, variance: Any) -> Array:
        """Of the mean that was or will be seen; zero where nothing is."""
        if self.variance is not None:
            if variance is not None:
                remedy = "give n, or leave the family's variance out"
                raise check.DataError("variance", None, None, "is given twice", remedy)
            return check.counts("n", 1 if n is None else n, missing=NO_MEAN) / self.variance
        if n is not None:
            remedy = "use Gaussian(variance=…), or give the variance of each mean instead"
            raise check.DataError("n", None, None, "needs the values' known variance", remedy)
        if variance is None:
            remedy = "use Gaussian(variance=…) with n, or give a variance for each row"
            raise check.DataError("variance", None, None, "is not given", remedy)
        return 1 / check.positive("variance", variance, missing=NO_MEAN, infinite=True)

    def _seen(self, mean: Any, n: Any, variance: Any) -> tuple[Any, Array, Array]:
        """The mean and its precision. A row that says it saw nothing may leave its mean out."""
        precision = self._precision(n, variance)
        if check.is_traced(mean, precision):
            y = mean
        else:
            y = check.numbers("mean", mean, absent=True)
            check.same_length(mean=mean, n=n, variance=variance)
            absent = np.asarray(precision) == 0
            check.refuse("mean", mean, np.isnan(np.asarray(y)) & ~absent, "is missing", NO_MEAN)
            y = namespace(y).where(absent, 0.0, y) if absent.any() else y
        xp, (y, precision) = floats(y, precision)
        return xp, y, precision

    def statistic(self, mean: Any, n: Any = None, variance: Any = None) -> Potential:
        """T_y. A row without data has n = 0, or an infinite variance."""
        _, y, precision = self._seen(mean, n, variance)
        return Potential(precision * y, precision + 0 * y)

    def log_base(self, mean: Any, n: Any = None, variance: Any = None) -> Array:
        xp, y, j = self._seen(mean, n, variance)
        some = j > 0
        log = 0.5 * xp.log(xp.where(some, j, 1.0)) - HALF_LOG_2PI - 0.5 * j * y**2
        return xp.where(some, log, 0.0)

    def log_predictive(
        self, natural: Potential, mean: Any, n: Any = None, variance: Any = None
    ) -> Array:
        xp, y, j = self._seen(mean, n, variance)
        check.fits("mean", y, self.own(natural).shape)
        some = j > 0
        # A row that saw nothing scores nothing, whatever is known of its mean.
        known = GaussianOfMean(Potential(natural.potential, xp.where(some, natural.precision, 1.0)))
        spread = known.variance() + 1 / xp.where(some, j, 1.0)
        return xp.where(some, GaussianOfMean.of(known.mean(), spread).log_prob(y), 0.0)

    def predictive(self, natural: Potential, n: Any = None, variance: Any = None) -> GaussianOfMean:
        """Of the mean of n further values, or of a further estimate with this variance."""
        precision = self._new(n, variance)
        check.fits("n" if variance is None else "variance", precision, self.own(natural).shape)
        known = GaussianOfMean(natural)
        return GaussianOfMean.of(known.mean(), known.variance() + 1 / precision)

    def _new(self, n: Any, variance: Any) -> Array:
        """The precision of data to come: some."""
        if variance is not None:
            check.positive("variance", variance)
        if n is not None:
            check.positive("n", n, "ask for one value or more")
        return self._precision(n, variance)

    def likelihood(self, theta: Any, n: Any = None, variance: Any = None) -> GaussianOfMean:
        precision = self._new(n, variance)
        return GaussianOfMean(Potential(check.numbers("theta", theta) * precision, precision))


NO_MEAN = "leave the row out, or give it n = 0 or an infinite variance"


class LinearGaussian(Family):
    """`values` y ~ N(Aθ + b, Σ) with known A, b and Σ; Σ may come with each row instead."""

    map: Array  # A: values × components
    offset: Array  # b
    covariance: Array | None = None  # Σ

    natural: ClassVar = VectorPotential
    latent: ClassVar = MultivariateGaussian
    columns: ClassVar = ("values", "covariance")
    design: ClassVar = ("covariance",)
    prior = staticmethod(VectorPotential.prior)
    from_unconstrained = staticmethod(VectorPotential.from_unconstrained)

    def __check_init__(self) -> None:
        matrix, offset = check.numbers("map", self.map), check.numbers("offset", self.offset)
        if np.ndim(matrix) != 2 or np.shape(offset) != np.shape(matrix)[:1]:
            problem = "does not fit the offset"
            remedy = "give a matrix with a row a value, and an offset a value"
            raise check.DataError("map", None, None, problem, remedy)
        if self.covariance is not None:
            check.positive_definite("covariance", self.covariance, np.shape(matrix)[0])

    @property
    def components(self) -> int:
        return np.shape(self.map)[1]

    def _noise(self, covariance: Any) -> Array:
        if (covariance is None) == (self.covariance is None):
            problem = "is not given" if covariance is None else "is given twice"
            remedy = "give one covariance: the family's, or one a row"
            raise check.DataError("covariance", None, None, problem, remedy)
        if covariance is None:
            return namespace(self.covariance).asarray(self.covariance)
        return check.positive_definite("covariance", covariance, np.shape(self.map)[0])

    def _values(self, values: Any) -> Array:
        y = check.numbers("values", values, missing="leave the row out")
        check.last_axis("values", y, np.shape(self.offset)[0], "values")
        return y - namespace(y).asarray(self.offset)

    def statistic(self, values: Any, covariance: Any = None) -> VectorPotential:
        off, noise = self._values(values), self._noise(covariance)
        check.fits("covariance", noise[..., 0, 0], off.shape[:-1])
        xp = namespace(off, noise)
        weight = xp.linalg.solve(noise, xp.asarray(self.map)).swapaxes(-1, -2)  # Aᵀ Σ⁻¹
        precision = weight @ xp.asarray(self.map)
        shape = (*off.shape[:-1], *precision.shape[-2:])
        return VectorPotential((weight @ off[..., None])[..., 0], xp.broadcast_to(precision, shape))

    def log_base(self, values: Any, covariance: Any = None) -> Array:
        off, noise = self._values(values), self._noise(covariance)
        check.fits("covariance", noise[..., 0, 0], off.shape[:-1])
        return MultivariateGaussian.of(0 * off, noise).log_prob(off)

    def log_predictive(
        self, natural: VectorPotential, values: Any, covariance: Any = None
    ) -> Array:
        off = self._values(values)
        check.fits("values", off[..., 0], self.own(natural).shape)
        check.fits("covariance", self._noise(covariance)[..., 0, 0], off.shape[:-1])
        return self.predictive(natural, covariance).log_prob(off + self.offset)

    def predictive(self, natural: VectorPotential, covariance: Any = None) -> MultivariateGaussian:
        known, noise = MultivariateGaussian(self.own(natural)), self._noise(covariance)
        check.fits("covariance", noise[..., 0, 0], natural.shape)
        xp = namespace(noise, *natural.coordinates())
        matrix = xp.asarray(self.map)
        mean = (matrix @ known.mean()[..., None])[..., 0] + self.offset
        return MultivariateGaussian.of(mean, matrix @ known.covariance() @ matrix.T + noise)

    def likelihood(self, theta: Any, covariance: Any = None) -> MultivariateGaussian:
        noise = self._noise(covariance)
        theta = check.numbers("theta", theta)
        check.last_axis("theta", theta, np.shape(self.map)[1], "components")
        xp = namespace(noise, theta)
        mean = (xp.asarray(self.map) @ theta[..., None])[..., 0] + self.offset
        return MultivariateGaussian.of(mean, noise)
