"""The Gamma over a rate, the counts and durations it predicts, and the inverse Gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Continuous, Integer, check_q
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    beta_cdf,
    beta_quantile,
    beta_sf,
    binet,
    deviance,
    difference_of_products,
    digamma_remainder,
    floats,
    gamma_cdf,
    gamma_poisson_log_pmf,
    gamma_quantile,
    gamma_sf,
    log_gamma,
    log_gamma_divergence,
    log_rising,
    namespace,
    upper_beta_quantile,
    upper_gamma_quantile,
)
from ldf.statistic import Arrivals

IMPROPER = "give a prior with count and exposure above zero"


class Gamma(Continuous):
    """Ga(shape count, rate exposure) of a rate per unit of exposure."""

    natural: Arrivals

    @staticmethod
    def log_partition(natural: Arrivals) -> Array:
        """log Z: log Γ(a) − a log b; infinite if improper."""
        xp, (a, b) = floats(natural.count, natural.exposure)
        proper = (a > 0) & (b > 0)
        a, b = xp.where(proper, a, 1.0), xp.where(proper, b, 1.0)
        value = a * (xp.log(a / b) - 1) - 0.5 * xp.log(a) + HALF_LOG_2PI + binet(a)
        return xp.where(proper, value, np.inf)

    @staticmethod
    def sufficient(value: Any) -> Arrivals:
        """What the coordinates multiply in log p(θ): log θ and −θ."""
        xp, (theta,) = floats(check.nonnegative("theta", value, "a rate is zero or more"))
        with np.errstate(divide="ignore"):
            return Arrivals(xp.log(theta), -theta)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def __getitem__(self, rows: Any) -> Gamma:
        return Gamma(self.natural[rows])

    def _proper(self, quantity: str) -> tuple[Any, Array, Array]:
        xp, (a, b) = floats(self.natural.count, self.natural.exposure)
        why = "its Gamma has no count or no exposure, not even prior ones"
        check.exists(f"posterior {quantity}", (a > 0) & (b > 0), why, IMPROPER)
        return xp, *xp.broadcast_arrays(a, b)

    def mean(self) -> Array:
        _, a, b = self._proper("mean")
        return a / b

    def variance(self) -> Array:
        _, a, b = self._proper("variance")
        return a / b / b

    def mode(self) -> Array:
        xp, a, b = self._proper("mode")
        return xp.maximum(a - 1, 0.0) / b

    def log_prob(self, value: Any) -> Array:
        xp, a, b = self._proper("density")
        _, (x, a) = floats(check.numbers("value", value, units=self.shape), a)
        x, a, b = xp.broadcast_arrays(x, a, b)
        with np.errstate(all="ignore"):
            excess = difference_of_products(a, xp.ones_like(a), b, x)
            inner = 0.5 * xp.log(a) - HALF_LOG_2PI - binet(a) - deviance(a, excess, b * x)
            end = xp.where(a < 1, np.inf, xp.where(a > 1, -np.inf, xp.log(b)))
            return xp.where(x > 0, inner - xp.log(x), xp.where(x == 0, end, -np.inf))

    def slope(self, value: Array) -> Array:
        return (self.natural.count - 1) / value - self.natural.exposure

    def cdf(self, value: Any) -> Array:
        xp, a, b = self._proper("cdf")
        return gamma_cdf(
            a, b * xp.maximum(check.numbers("value", value, infinite=True, units=self.shape), 0.0)
        )

    def exceeds(self, value: Any) -> Array:
        xp, a, b = self._proper("cdf")
        return gamma_sf(
            a, b * xp.maximum(check.numbers("value", value, infinite=True, units=self.shape), 0.0)
        )

    def quantile(self, q: Any) -> Array:
        _, a, b = self._proper("quantile")
        check_q(q, self.shape)
        return gamma_quantile(a, q) / b

    def entropy(self) -> Array:
        xp, a, b = self._proper("entropy")
        logs = 0.5 * xp.log(a) - xp.log(b) + HALF_LOG_2PI
        return logs + binet(a) + (1 - a) * digamma_remainder(a)

    def divergence(self, other: Gamma) -> Array:
        """KL(this ‖ other) in nats."""
        xp, a, b = self._proper("divergence")
        _, c, d = other._proper("divergence")
        a, b, c, d = xp.broadcast_arrays(a, b, c, d)
        excess = difference_of_products(c, b, a, d) / b
        return deviance(c, excess, a * (d / b)) + log_gamma_divergence(c, a)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b = self._proper("sample")
        return xp.exp(Draws(draws, seed, a).log_gamma(a) - xp.log(b))


def check_rate_known(exposure: Array, n: Array) -> None:
    """A predictive exists where the rate was observed, or where nothing is to be predicted."""
    if not check.is_traced(exposure, n):
        why = "the rate was seen in no exposure, not even a prior one"
        known = (np.asarray(exposure) > 0) | (np.asarray(n) == 0)
        check.exists("predictive", known, why, IMPROPER)


class GammaPoisson(Integer):
    """A count in further exposure."""

    natural: Arrivals
    exposure: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.exposure))

    @property
    def top(self) -> Array:
        return np.where(np.broadcast_to(np.asarray(self.exposure), self.shape) == 0, 0.0, np.inf)

    def __getitem__(self, rows: Any) -> GammaPoisson:
        exposure = namespace(self.exposure).broadcast_to(self.exposure, self.shape)
        return GammaPoisson(self.natural.spread(self.shape)[rows], exposure[rows])

    def _parameters(self) -> tuple[Any, Array, Array, Array]:
        xp, (a, b, n) = floats(self.natural.count, self.natural.exposure, self.exposure)
        check_rate_known(b, n)
        return xp, *xp.broadcast_arrays(a, b, n)

    def mean(self) -> Array:
        xp, a, b, n = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(n == 0, 0.0, n * (a / b))

    def variance(self) -> Array:
        xp, a, b, n = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(n == 0, 0.0, n * (a / b) * (1 + n / b))

    def mode(self) -> Array:
        xp, a, b, n = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where((a > 1) & (n > 0), xp.floor((a - 1) * (n / b)), 0.0)

    def log_prob(self, count: Any) -> Array:
        xp, a, b, n = self._parameters()
        _, (y, a) = floats(check.numbers("count", count, units=self.shape), a)
        inside = (y >= 0) & (y == xp.floor(y))
        return xp.where(inside, gamma_poisson_log_pmf(xp.where(inside, y, 0.0), n, a, b), -np.inf)

    def cdf(self, count: Any) -> Array:
        xp, a, b, n = self._parameters()
        y = xp.floor(check.numbers("count", count, infinite=True, units=self.shape))
        below = beta_cdf(a, xp.where(y >= 0, y, 0.0) + 1, b / xp.where(n > 0, b + n, 1.0))
        sure = (n == 0) | (a == 0)
        return xp.where(y < 0, 0.0, xp.where(sure | xp.isposinf(y), 1.0, below))

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b, n = self._parameters()
        source = Draws(draws, seed, a)
        with np.errstate(all="ignore"):
            rate = xp.exp(source.log_gamma(a) - xp.log(b)) * n
        return source.poisson(xp.where(n > 0, rate, 0.0))


class CompoundGamma(Continuous):
    """The sum of further values, of `size` in units of shape: a Gamma(size, θ) under θ ~ Ga(a, b).

    For waiting times it is the total time until `size` further events.
    """

    natural: Arrivals
    size: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.size))

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def __getitem__(self, rows: Any) -> CompoundGamma:
        size = namespace(self.size).broadcast_to(self.size, self.shape)
        return CompoundGamma(self.natural.spread(self.shape)[rows], size[rows])

    def _parameters(self) -> tuple[Any, Array, Array, Array]:
        xp, (a, b, size) = floats(self.natural.count, self.natural.exposure, self.size)
        why = "the rate was seen in no event or no exposure, not even prior ones"
        check.exists("predictive", (a > 0) & (b > 0), why, IMPROPER)
        return xp, *xp.broadcast_arrays(a, b, size)

    def mean(self) -> Array:
        xp, a, b, size = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(a > 1, size * b / (a - 1), np.inf)

    def variance(self) -> Array:
        xp, a, b, size = self._parameters()
        with np.errstate(all="ignore"):
            known = size * (size + a - 1) * (b / (a - 1)) ** 2 / (a - 2)
            return xp.where(a > 2, known, np.inf)

    def mode(self) -> Array:
        xp, a, b, size = self._parameters()
        return xp.maximum(size - 1, 0.0) * b / (a + 1)

    def log_prob(self, time: Any) -> Array:
        xp, a, b, size = self._parameters()
        _, (t, a) = floats(check.numbers("time", time, units=self.shape), a)
        with np.errstate(all="ignore"):
            inner = (
                log_rising(a, size)
                - log_gamma(size)
                - a * xp.log1p(t / b)
                - size * xp.log1p(b / t)
                - xp.log(t)
            )
            end = xp.where(size < 1, np.inf, xp.where(size > 1, -np.inf, xp.log(a / b)))
            return xp.where(t > 0, inner, xp.where(t == 0, end, -np.inf))

    def slope(self, value: Array) -> Array:
        _, a, b, size = self._parameters()
        return (size - 1) / value - (a + size) / (b + value)

    def cdf(self, time: Any) -> Array:
        xp, a, b, size = self._parameters()
        t = xp.maximum(check.numbers("time", time, infinite=True, units=self.shape), 0.0)
        return xp.where(xp.isposinf(t), 1.0, beta_sf(a, size, b / (b + t)))

    def exceeds(self, value: Any) -> Array:
        xp, a, b, size = self._parameters()
        t = xp.maximum(check.numbers("value", value, infinite=True, units=self.shape), 0.0)
        return xp.where(xp.isposinf(t), 0.0, beta_cdf(a, size, b / (b + t)))

    def quantile(self, q: Any) -> Array:
        xp, a, b, size = self._parameters()
        check_q(q, self.shape)
        share, rest = beta_quantile(size, a, q), upper_beta_quantile(a, size, q)
        with np.errstate(all="ignore"):  # t/(b + t) and b/(b + t): each has its digits near zero
            return b * xp.where(share < 0.5, share / (1 - share), (1 - rest) / rest)

    def entropy(self) -> Array:
        xp, a, b, size = self._parameters()
        # Of t/b, a beta prime: log B + (1 − size) E log t + (a + size) E log(1 + t).
        log_beta = log_gamma(size) - log_rising(a, size)
        psi_size = xp.log(size) + digamma_remainder(size)
        psi_a = xp.log(a) + digamma_remainder(a)
        psi_both = xp.log(a + size) + digamma_remainder(a + size)
        return (
            xp.log(b) + log_beta + (1 - size) * (psi_size - psi_a) + (a + size) * (psi_both - psi_a)
        )

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b, size = self._parameters()
        source = Draws(draws, seed, a)
        return xp.exp(source.log_gamma(size) - source.log_gamma(a)) * b


class InverseGamma(Continuous):
    """Of a variance: 1/x ~ Ga(shape, scale)."""

    natural: Arrivals

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    def __getitem__(self, rows: Any) -> InverseGamma:
        return InverseGamma(self.natural[rows])

    def _inverse(self) -> Gamma:
        return Gamma(self.natural)

    def mean(self) -> Array:
        xp, a, b = self._inverse()._proper("mean")
        with np.errstate(all="ignore"):
            return xp.where(a > 1, b / (a - 1), np.inf)

    def variance(self) -> Array:
        xp, a, b = self._inverse()._proper("variance")
        with np.errstate(all="ignore"):
            return xp.where(a > 2, (b / (a - 1)) ** 2 / (a - 2), np.inf)

    def mode(self) -> Array:
        _, a, b = self._inverse()._proper("mode")
        return b / (a + 1)

    def log_prob(self, value: Any) -> Array:
        xp, (x,) = floats(check.numbers("value", value, units=self.shape))
        with np.errstate(all="ignore"):
            inside = x > 0
            inner = self._inverse().log_prob(1 / xp.where(inside, x, 1.0)) - 2 * xp.log(x)
            return xp.where(inside, inner, -np.inf)

    def slope(self, value: Array) -> Array:
        return -(self.natural.count + 1) / value + self.natural.exposure / value**2

    def cdf(self, value: Any) -> Array:
        return self._inverse().exceeds(_reciprocal(value, self.shape))

    def exceeds(self, value: Any) -> Array:
        return self._inverse().cdf(_reciprocal(value, self.shape))

    def quantile(self, q: Any) -> Array:
        _, a, b = self._inverse()._proper("quantile")
        check_q(q, self.shape)
        with np.errstate(all="ignore"):
            return b / upper_gamma_quantile(a, q)

    def entropy(self) -> Array:
        xp, a, b = self._inverse()._proper("entropy")
        # H(1/x) = H(x) − 2 E log x.
        return self._inverse().entropy() - 2 * (xp.log(a / b) + digamma_remainder(a))

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b = self._inverse()._proper("sample")
        return xp.exp(xp.log(b) - Draws(draws, seed, a).log_gamma(a))


def _reciprocal(value: Any, units: tuple[int, ...]) -> Array:
    xp, (x,) = floats(check.numbers("value", value, infinite=True, units=units))
    with np.errstate(all="ignore"):
        return xp.where(x > 0, 1 / x, np.inf)
