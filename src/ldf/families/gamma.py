"""Positive values of known shape, with a Gamma prior on their rate: rainfall, repair costs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import CompoundGamma, KnownValue
from ldf.distributions import Gamma as GammaOfRate
from ldf.families.base import Family
from ldf.special import Array, floats, log_gamma
from ldf.statistic import Arrivals

NO_VALUES = "leave the row out, or give a row without primary data zero for both"


class Positive(Family):
    """Sums of values, each Gamma(shape, θ): a sum of n is Gamma(n · shape, θ)."""

    natural: ClassVar = Arrivals
    latent: ClassVar = GammaOfRate
    prior = staticmethod(Arrivals.prior)
    from_unconstrained = staticmethod(Arrivals.from_unconstrained)

    @property
    @abstractmethod
    def each(self) -> float:
        """The known shape of one value."""

    def _log_base(self, size: Array, total: Array) -> Array:
        """Of the sum of values worth `size`; nothing observed but a wait has base measure one."""
        xp, (size, total) = floats(size, total)
        some = size > 0
        size, total = xp.where(some, size, 1.0), xp.where(some & (total > 0), total, 1.0)
        return xp.where(some, (size - 1) * xp.log(total) - log_gamma(size), 0.0)

    def _log_predictive(self, natural: Arrivals, size: Array, total: Array) -> Array:
        check.fits(self.columns[0], total, self.own(natural).shape)
        xp, (size, total, a, b) = floats(size, total, natural.count, natural.exposure)
        some = size > 0
        known = Arrivals(xp.where(some, a, 1.0), xp.where(some, b, 1.0))
        seen = CompoundGamma(known, xp.where(some, size, 1.0)).log_prob(total)
        with np.errstate(all="ignore"):
            unseen = xp.where(total > 0, -a * xp.log1p(total / b), 0.0)
        return xp.where(some, seen, unseen)

    def _size(self, column: str, n: Any) -> Array:
        check.positive(column, n, "ask for one or more")
        return check.counts(column, n, missing=check.A_NUMBER) * self.each

    def _predictive(self, natural: Arrivals, column: str, n: Any) -> CompoundGamma:
        size = self._size(column, n)
        check.fits(column, size, self.own(natural).shape)
        return CompoundGamma(natural, size)

    def _likelihood(self, theta: Any, column: str, n: Any) -> KnownValue:
        rate = check.positive("theta", theta, "a rate of values is above zero")
        _, (rate, size) = floats(rate, self._size(column, n))
        zero = np.zeros(np.broadcast_shapes(rate.shape, size.shape))
        peak = np.maximum(size - 1, 0.0) / rate
        return KnownValue(scipy.stats.gamma, (size, zero, 1 / rate), peak, 0.0, _gamma_slope)


def _gamma_slope(value: Array, size: Array, _: Array, scale: Array) -> Array:
    return (size - 1) / value - 1 / scale


class Gamma(Positive):
    """The `total` of `n` positive values, each Gamma(`shape`, θ) with a known shape."""

    shape: float

    columns: ClassVar = ("total", "n")
    design: ClassVar = ("n",)

    def __check_init__(self) -> None:
        check.positive("shape", self.shape, "give the known shape of the values")
        check.single("shape", self.shape)

    @property
    def each(self) -> float:
        return self.shape

    def _sums(self, total: Any, n: Any) -> tuple[Array, Array]:
        sums = check.nonnegative("total", total, missing=NO_VALUES)
        number = check.counts("n", n, missing=NO_VALUES)
        check.same_length(total=total, n=n)
        check.needs("total", total, "n", number)
        return number * self.each, sums

    def statistic(self, total: Any, n: Any = 1) -> Arrivals:
        size, total = self._sums(total, n)
        return Arrivals(size + 0 * total, total)

    def log_base(self, total: Any, n: Any = 1) -> Array:
        return self._log_base(*self._sums(total, n))

    def log_predictive(self, natural: Arrivals, total: Any, n: Any = 1) -> Array:
        return self._log_predictive(natural, *self._sums(total, n))

    def predictive(self, natural: Arrivals, n: Any = 1) -> CompoundGamma:
        """Of the total of n further values."""
        return self._predictive(natural, "n", n)

    def likelihood(self, theta: Any, n: Any = 1) -> KnownValue:
        return self._likelihood(theta, "n", n)
