"""The Beta over a success rate, and the failures it predicts.

With a successes and b failures as (pseudo-)observations, θ ~ Be(a, b), and before r further
successes come f ~ BeNB(r, a, b) failures. Of n further trials, k ~ BeBi(n, a, b) succeed: see
`beta_binomial`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # special is loaded when it is asked for

from ldf import check
from ldf.distributions.base import Continuous, Integer, check_q, on_host
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    beta_binomial_log_pmf,
    binet,
    deviance,
    difference_of_products,
    digamma_remainder,
    floats,
    log_gamma_divergence,
    namespace,
)
from ldf.special.incomplete import from_scipy
from ldf.special.incomplete import on_host as elementwise
from ldf.statistic import Trials

IMPROPER = "give a prior with successes and failures above zero"


def beta_log_partition(a: Array, b: Array) -> Array:
    """log B(a, b), from the shares so that nothing large is subtracted; infinite if improper."""
    xp, (a, b) = floats(a, b)
    proper = (a > 0) & (b > 0)
    a, b = xp.where(proper, a, 1.0), xp.where(proper, b, 1.0)
    total = a + b
    with np.errstate(divide="ignore"):  # in the branch that is not taken
        log_a = xp.where(a < b, xp.log(a / total), xp.log1p(-b / total))
        log_b = xp.where(b < a, xp.log(b / total), xp.log1p(-a / total))
    halves = 0.5 * xp.log(total / a / b) + HALF_LOG_2PI
    value = a * log_a + b * log_b + halves + (binet(a) + binet(b) - binet(total))
    return xp.where(proper, value, np.inf)


def check_rate_known(total: Array, n: Array) -> None:
    """A predictive exists where the rate was observed, or where nothing is to be predicted."""
    if not check.is_traced(total, n):
        why = "there is no observation of the rate, not even a prior one"
        check.exists("predictive", (np.asarray(total) > 0) | (np.asarray(n) == 0), why, IMPROPER)


SURE = 1e11  # observations from which on SciPy's incomplete beta is wrong by 1e-5, slow, or NaN
FEW = 1e6  # successes or failures up to which a gamma is then their limit, beyond it a normal


def _unless_sure(exact: Any, limit: Any) -> Any:
    """A function of a, b and a third: SciPy's, or that of very many observations, to 1e-6."""

    def function(*values: np.ndarray) -> np.ndarray:
        a, b, at = np.broadcast_arrays(*values)
        sure = a + b >= SURE
        found = np.empty(at.shape)
        found[~sure] = exact(a[~sure], b[~sure], at[~sure])
        found[sure] = limit(a[sure], b[sure], at[sure])
        return found

    return elementwise(function)


def _normal(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, sd and a sixth of the skewness of θ."""
    total = a + b
    mean, rest = a / total, b / total
    sd = np.sqrt(mean * rest / total)
    return mean, sd, (rest - mean) / (3 * total * sd)


def _score(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What is standard normal, by its skewness (Cornish and Fisher)."""
    _, sd, skew = _normal(a, b)
    z = difference_of_products(x, b, 1 - x, a) / (a + b) / sd
    z = np.clip(z, -40.0, 40.0)
    return z - skew * (z**2 - 1)


def _rate(few: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Of the gamma of few successes that −log(1 − θ) has (Wise)."""
    return many + (few - 1) / 2


def _limit_cdf(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    successes = scipy.special.gammainc(a, -np.log1p(-x) * _rate(a, b))
    failures = scipy.special.gammaincc(b, -np.log(x) * _rate(b, a))
    normal = scipy.special.ndtr(_score(a, b, x))
    return np.where(a < FEW, successes, np.where(b < FEW, failures, normal))


def _limit_sf(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    successes = scipy.special.gammaincc(a, -np.log1p(-x) * _rate(a, b))
    failures = scipy.special.gammainc(b, -np.log(x) * _rate(b, a))
    normal = scipy.special.ndtr(-_score(a, b, x))
    return np.where(a < FEW, successes, np.where(b < FEW, failures, normal))


def _limit_quantile(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    successes = -np.expm1(-scipy.special.gammaincinv(a, q) / _rate(a, b))
    failures = np.exp(-scipy.special.gammainccinv(b, q) / _rate(b, a))
    mean, sd, skew = _normal(a, b)
    z = np.clip(scipy.special.ndtri(q), -40.0, 40.0)
    normal = np.clip(mean + sd * (z + skew * (z**2 - 1)), 0.0, 1.0)
    normal = np.where(q == 0, 0.0, np.where(q == 1, 1.0, normal))
    return np.where(a < FEW, successes, np.where(b < FEW, failures, normal))


beta_cdf = _unless_sure(from_scipy("betainc"), _limit_cdf)  # (a, b, x)
beta_sf = _unless_sure(from_scipy("betaincc"), _limit_sf)
beta_quantile = _unless_sure(from_scipy("betaincinv"), _limit_quantile)  # (a, b, q)


class Beta(Continuous):
    """Be(successes, failures) of a rate."""

    natural: Trials

    @staticmethod
    def log_partition(natural: Trials) -> Array:
        """log Z of Eq. (prior-partition): log B(a, b)."""
        return beta_log_partition(natural.successes, natural.failures)

    @staticmethod
    def sufficient(value: Any) -> Trials:
        """What the coordinates multiply in log p(θ): log θ and log(1 − θ)."""
        xp, (theta,) = floats(check.probability("theta", value))
        with np.errstate(divide="ignore"):
            return Trials(xp.log(theta), xp.log1p(-theta))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def __getitem__(self, rows: Any) -> Beta:
        return Beta(self.natural[rows])

    def _proper(self, quantity: str) -> tuple[Any, Array, Array, Array]:
        xp, (a, b) = floats(self.natural.successes, self.natural.failures)
        why = "its Beta has no successes or no failures, not even prior ones"
        check.exists(f"posterior {quantity}", (a > 0) & (b > 0), why, IMPROPER)
        return xp, a, b, a + b

    def mean(self) -> Array:
        _, a, _, total = self._proper("mean")
        return a / total

    def variance(self) -> Array:
        _, a, b, total = self._proper("variance")
        return a / total * (b / total) / (total + 1)

    def mode(self) -> Array:
        xp, a, b, total = self._proper("mode")
        with np.errstate(all="ignore"):
            inner = (a - 1) / (total - 2)
        ends = xp.where(a < b, 0.0, xp.where(a > b, 1.0, xp.where(a == 1, 0.5, np.nan)))
        one_end = xp.where(a <= 1, 0.0, 1.0)
        return xp.where((a > 1) & (b > 1), inner, xp.where((a <= 1) & (b <= 1), ends, one_end))

    def log_prob(self, value: Any) -> Array:
        xp, a, b, total = self._proper("density")
        _, (x, _) = floats(check.probability("value", value, self.shape), a)
        with np.errstate(all="ignore"):
            # a log x + b log(1 − x) about its maximum: minus the deviance of the shares from x.
            excess = difference_of_products(*xp.broadcast_arrays(a, 1 - x, b, x))
            cells = deviance(a, excess, total * x) + deviance(b, -excess, total * (1 - x))
            halves = 0.5 * xp.log(a / total * b) - HALF_LOG_2PI
            inner = halves - cells - xp.log(x) - xp.log1p(-x)
            inner = inner + (binet(total) - binet(a) - binet(b))
            at_0, at_1 = _density_at_the_end(xp, a, b), _density_at_the_end(xp, b, a)
            return xp.where(x == 0, at_0, xp.where(x == 1, at_1, inner))

    def slope(self, value: Array) -> Array:
        a, b = self.natural.successes, self.natural.failures
        return (a - 1) / value - (b - 1) / (1 - value)

    def cdf(self, value: Any) -> Array:
        _, a, b, _ = self._proper("cdf")
        return beta_cdf(a, b, _clipped(value, self.shape))

    def exceeds(self, value: Any) -> Array:
        _, a, b, _ = self._proper("cdf")
        return beta_sf(a, b, _clipped(value, self.shape))

    def quantile(self, q: Any) -> Array:
        _, a, b, _ = self._proper("quantile")
        check_q(q, self.shape)
        return beta_quantile(a, b, q)

    def entropy(self) -> Array:
        xp, a, b, total = self._proper("entropy")
        logs = 0.5 * xp.log(a / total * (b / total) / total) + HALF_LOG_2PI
        return (
            logs
            + (binet(a) + binet(b) - binet(total))
            + (1 - a) * digamma_remainder(a)
            + (1 - b) * digamma_remainder(b)
            + (total - 2) * digamma_remainder(total)
        )

    def divergence(self, other: Beta) -> Array:
        """KL(this ‖ other) in nats."""
        xp, a, b, total = self._proper("divergence")
        _, c, d, other_total = other._proper("divergence")
        c, d, a, b = xp.broadcast_arrays(c, d, a, b)
        excess = difference_of_products(c, b, a, d) / total
        share = other_total / total
        cells = deviance(c, excess, a * share) + deviance(d, -excess, b * share)
        rest = log_gamma_divergence(c, a) + log_gamma_divergence(d, b)
        return cells + rest - log_gamma_divergence(other_total, total)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b, _ = self._proper("sample")
        a, b = xp.broadcast_arrays(a, b)
        source = Draws(draws, seed, a)
        return logistic(xp, source.log_gamma(a) - source.log_gamma(b))


def _clipped(value: Any, units: tuple[int, ...]) -> Array:
    x = check.numbers("value", value, infinite=True, units=units)
    return namespace(x).clip(x, 0.0, 1.0)


def _density_at_the_end(xp: Any, a: Array, b: Array) -> Array:
    """log density at 0: infinite for a < 1, log b for a = 1, none for a > 1."""
    return xp.where(a < 1, np.inf, xp.where(a > 1, -np.inf, xp.log(b)))


def logistic(xp: Any, x: Array) -> Array:
    return xp.exp(-xp.logaddexp(0.0, -x))


class BetaNegativeBinomial(Integer):
    """Failures before a given number of further successes."""

    natural: Trials
    successes: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.successes))

    @property
    def top(self) -> Array:
        _, a, _, r = self._parameters()
        return np.where(np.asarray(r) == 0, 0.0, np.full(np.shape(a), np.inf))

    def __getitem__(self, rows: Any) -> BetaNegativeBinomial:
        successes = namespace(self.successes).broadcast_to(self.successes, self.shape)
        return BetaNegativeBinomial(self.natural.spread(self.shape)[rows], successes[rows])

    def _parameters(self) -> tuple[Any, Array, Array, Array]:
        xp, (a, b, r) = floats(self.natural.successes, self.natural.failures, self.successes)
        why = "successes may never come: none was seen, not even a prior one"
        check.exists("predictive", (a > 0) | (r == 0), why, IMPROPER)
        return xp, *xp.broadcast_arrays(a, b, r)

    def mean(self) -> Array:
        xp, a, b, r = self._parameters()
        with np.errstate(all="ignore"):
            return xp.where(r * b == 0, 0.0, xp.where(a > 1, r * b / (a - 1), np.inf))

    def variance(self) -> Array:
        xp, a, b, r = self._parameters()
        with np.errstate(all="ignore"):
            known = r * b / (a - 1) ** 2 * ((a + r - 1) * (a + b - 1) / (a - 2))
            return xp.where(r * b == 0, 0.0, xp.where(a > 2, known, np.inf))

    def mode(self) -> Array:
        xp, a, b, r = self._parameters()
        # The mass grows from f to f + 1 while (r + f)(b + f) > (f + 1)(a + b + r + f).
        with np.errstate(all="ignore"):
            last = (r * b - a - b - r) / (a + 1)
        return xp.maximum(xp.ceil(xp.where(xp.isfinite(last), last, 0.0)), 0.0)

    def log_prob(self, failures: Any) -> Array:
        xp, a, b, r = self._parameters()
        _, (f, _) = floats(check.numbers("failures", failures, units=self.shape), a)
        inside = (f >= 0) & (f == xp.floor(f))
        f = xp.where(inside, f, 0.0)
        with np.errstate(all="ignore"):
            # The last trial is a success: r of the r + f orders remain.
            mass = beta_binomial_log_pmf(r, f, a, b) + xp.log(r / (r + f))
        return xp.where(inside, xp.where(r == 0, xp.where(f == 0, 0.0, -np.inf), mass), -np.inf)

    @on_host
    def cdf(self, failures: Any) -> Array:
        """P(at most f failures) = P(at least r successes in r + f trials)."""
        _, a, b, r = self._parameters()
        f = np.floor(
            np.asarray(
                check.numbers("failures", failures, infinite=True, units=self.shape), dtype=float
            )
        )
        a, b, r, f = np.broadcast_arrays(a, b, r, f)
        if (r != np.round(r)).any():
            remedy = "its distribution function needs a whole number of successes"
            raise check.DataError(
                "successes", None, r[r != np.round(r)][0], "is fractional", remedy
            )
        below = np.zeros(r.shape)
        safe = np.where(np.isfinite(f), np.maximum(f, 0.0), 0.0)
        for j in range(int(r.max(initial=0))):
            few = np.minimum(float(j), np.maximum(r - 1, 0))
            mass = np.exp(beta_binomial_log_pmf(few, r + safe - few, a, b))
            below = below + np.where(j < r, mass, 0.0)
        return np.where(f < 0, 0.0, np.where(np.isposinf(f), 1.0, np.clip(1 - below, 0.0, 1.0)))

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b, r = self._parameters()
        source = Draws(draws, seed, a)
        # A negative binomial is a Poisson of rate Ga(r) · (1 − θ)/θ, and the odds are Ga(b)/Ga(a).
        odds = source.log_gamma(b) - source.log_gamma(a)
        rate = xp.exp(odds + source.log_gamma(xp.where(r > 0, r, 1.0)))
        return source.poisson(xp.where(r > 0, rate, 0.0))
