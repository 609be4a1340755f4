"""Primary data at a known θ: SciPy's plain likelihoods, asked in the words used here.

They are the limit of infinitely many pseudo-observations. A point mass takes no conjugate update,
and its predictive is the likelihood itself, never a huge concentration.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions.base import (
    Continuous,
    Distribution,
    Integer,
    Multivariate,
    check_component,
    check_mass,
    check_q,
    of_units,
)
from ldf.special import Array, check_draws


class KnownCount(Integer):
    """A whole number whose distribution SciPy has, with the place of its peak."""

    law: Any = eqx.field(static=True)  # of scipy.stats
    parameters: tuple[Array, ...]
    peak: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(p) for p in self.parameters))

    @property
    def top(self) -> Array:
        return np.broadcast_to(self.law.support(*self.parameters)[1], self.shape).astype(float)

    def __getitem__(self, rows: Any) -> KnownCount:
        first, *rest = (np.broadcast_to(p, self.shape)[rows] for p in (self.peak, *self.parameters))
        return KnownCount(self.law, tuple(rest), first)

    def mean(self) -> Array:
        return self.law.mean(*self.parameters)

    def variance(self) -> Array:
        return self.law.var(*self.parameters)

    def mode(self) -> Array:
        return np.broadcast_to(self.peak, self.shape)

    def log_prob(self, value: Any) -> Array:
        return self.law.logpmf(check.numbers("value", value, units=self.shape), *self.parameters)

    def cdf(self, value: Any) -> Array:
        return self.law.cdf(
            check.numbers("value", value, infinite=True, units=self.shape), *self.parameters
        )

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        size = (draws, *self.shape)
        rng = np.random.default_rng(seed)
        return self.law.rvs(*self.parameters, size=size, random_state=rng).astype(float)


class KnownCounts(Multivariate):
    """Class counts at known probabilities. Marginal answers have one column a class."""

    law: Any = eqx.field(static=True)
    trials: Array
    rates: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.trials), np.shape(self.rates)[:-1])

    def __getitem__(self, rows: Any) -> KnownCounts:
        trials, rates = (
            of_units(p, self.shape, i) for i, p in enumerate((self.trials, self.rates))
        )
        return KnownCounts(self.law, trials[rows], rates[rows])

    def marginal(self, component: int | None = None) -> KnownCount:
        """The binomial of one class's count, or of all with classes on the last axis."""
        n, p = np.asarray(self.trials)[..., None], np.asarray(self.rates)
        if component is not None:
            check_component(component, p.shape[-1])
            n, p = n[..., 0], p[..., component]
        return KnownCount(scipy.stats.binom, (n, p), np.clip(np.floor((n + 1) * p), 0, n))

    def mean(self) -> Array:
        return self.marginal().mean()

    def log_prob(self, counts: Any) -> Array:
        k = check.numbers("counts", counts)
        check.last_axis("counts", k, np.shape(self.rates)[-1], "classes")
        return self.law.logpmf(k, self.trials, self.rates)

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        n = np.broadcast_to(np.asarray(self.trials, dtype=np.int64), self.shape)
        rates = np.broadcast_to(self.rates, (*self.shape, np.shape(self.rates)[-1]))
        rng = np.random.default_rng(seed)
        return rng.multinomial(n, rates, size=(draws, *self.shape)).astype(float)


class KnownValue(Continuous):
    """A number whose distribution SciPy has, with its peak, support and the slope of its log."""

    law: Any = eqx.field(static=True)
    parameters: tuple[Array, ...]  # shape parameters, location, scale: in SciPy's order
    peak: Array
    lower: float = eqx.field(static=True)
    slopes: Any = eqx.field(static=True)  # (value, *parameters) → d log density

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(*(np.shape(p) for p in self.parameters))

    @property
    def support(self) -> tuple[float, float]:
        return self.lower, np.inf

    def __getitem__(self, rows: Any) -> KnownValue:
        first, *rest = (np.broadcast_to(p, self.shape)[rows] for p in (self.peak, *self.parameters))
        return KnownValue(self.law, tuple(rest), first, self.lower, self.slopes)

    def mean(self) -> Array:
        return self.law.mean(*self.parameters)

    def variance(self) -> Array:
        return self.law.var(*self.parameters)

    def mode(self) -> Array:
        return np.broadcast_to(self.peak, self.shape)

    def log_prob(self, value: Any) -> Array:
        return self.law.logpdf(check.numbers("value", value, units=self.shape), *self.parameters)

    def slope(self, value: Array) -> Array:
        return self.slopes(value, *self.parameters)

    def cdf(self, value: Any) -> Array:
        return self.law.cdf(
            check.numbers("value", value, infinite=True, units=self.shape), *self.parameters
        )

    def quantile(self, q: Any) -> Array:
        check_q(q, self.shape)
        return self.law.ppf(q, *self.parameters)

    def entropy(self) -> Array:
        return self.law.entropy(*self.parameters)

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        size = (draws, *self.shape)
        return self.law.rvs(*self.parameters, size=size, random_state=np.random.default_rng(seed))


class PointMass(Distribution):
    """θ known for sure: what a regression without dispersion claims. Its entropy is −∞, not 0."""

    at: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.at)

    def mean(self) -> Array:
        return self.at

    def sd(self) -> Array:
        return self.at * 0

    def mode(self) -> Array:
        return self.at

    def cdf(self, value: Any) -> Array:
        return 1.0 * (self.at <= check.numbers("value", value))

    def exceeds(self, value: Any) -> Array:
        return 1.0 * (self.at > check.numbers("value", value))

    def quantile(self, q: Any) -> Array:
        check_q(q)
        return self.at + 0 * np.asarray(q)

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        check_mass(mass)
        return self.at, self.at

    def entropy(self) -> Array:
        return np.full(self.shape, -np.inf)

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        return np.broadcast_to(self.at, (draws, *self.shape))
