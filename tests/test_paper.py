"""One test for each displayed equation of Section 2, Table 1 and Appendix A of the paper.

Equations are numbered as in the compiled paper: 1–23 in Section 2, A1–A8 in Appendix A.

A case says in SciPy's words what a family claims: the density of θ, the likelihood of y, and the
natural parameters by hand. Integrals over θ are sums over a grid, on a scale where the integrand
is smooth and dies out at both ends: there the trapezoidal rule is exact to rounding. Nothing on
the expected side calls `ldf`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import expit, log_expit, logsumexp, multigammaln

import ldf

TIGHT = {"rtol": 1e-9, "atol": 1e-9}
Natural = tuple[Any, ...]  # λ or T by hand, in the family's additive coordinates


# --- Grids: θ, and the logarithm of each node's weight ---------------------------------------


@functools.cache
def unit_grid(step: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    u = np.arange(-30, 30, step)
    return expit(u), log_expit(u) + log_expit(-u) + np.log(step)


@functools.cache
def positive_grid(step: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    u = np.arange(-30, 7, step)
    return np.exp(u), u + np.log(step)


@functools.cache
def real_grid(step: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    u = np.arange(-40, 40, step)
    return u, np.full(u.shape, np.log(step))


@functools.cache
def simplex_grid(step: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    u, v = (x.ravel() for x in np.meshgrid(*[np.arange(-28, 28, step)] * 2))
    theta = np.stack([expit(u), expit(-u) * expit(v), expit(-u) * expit(-v)], -1)
    logs = log_expit(u) + 2 * log_expit(-u) + log_expit(v) + log_expit(-v)
    return theta, logs + 2 * np.log(step)


@functools.cache
def mean_and_variance_grid(step: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    z, w = (x.ravel() for x in np.meshgrid(np.arange(-25, 25, step), np.arange(-7, 24, step)))
    return np.stack([z * np.exp(w / 2), np.exp(w)], -1), 1.5 * w + 2 * np.log(step)


@functools.cache
def plane_grid(step: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    u, v = (x.ravel() for x in np.meshgrid(*[np.arange(-13, 13, step)] * 2))
    return np.stack([u, v], -1), np.full(u.shape, 2 * np.log(step))


# --- Cases ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Primary (or well-understood auxiliary) data, what they add, and their likelihood."""

    family: Any
    columns: dict[str, Any]
    adds: Natural
    log_likelihood: Callable[[Any], Any]

    def statistic(self) -> Any:
        return self.family.statistic(**self.columns)


@dataclass(frozen=True)
class Case:
    name: str
    family: Any
    prior: Any
    at: Natural  # the same prior by hand
    aux: Natural  # T_x
    y: Data
    new: Data
    sensor: Data  # auxiliary data whose forward model is known after all
    log_density: Callable[[Natural, Any], Any]  # of θ, by SciPy
    log_kernel: Callable[[Natural, Any], Any]  # log h(θ) + ⟨λ, statistic of θ⟩, Eq. 6
    points: Any  # a few values of θ
    grid: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    def statistic(self, natural: Natural) -> Any:
        return self.family.natural(*(np.asarray(x, dtype=float) for x in natural))

    def log_partition(self, natural: Natural) -> float:
        """By sum over the grid; five dimensions are too many, so there as kernel over density."""
        if self.grid is None:
            return same(self.log_kernel(natural, self.points) - self.density(natural))
        theta, log_weight = self.grid()
        return logsumexp(self.log_kernel(natural, theta) + log_weight)

    def density(self, natural: Natural) -> np.ndarray:
        return self.log_density(natural, self.points)

    def log_marginal(self, natural: Natural, *data: Data) -> float:
        """log ∫ Π p(data | θ) π(θ; natural) dθ."""
        if self.grid is None:
            posterior = self.log_density(plus(natural, *(d.adds for d in data)), self.points)
            likelihood = sum(d.log_likelihood(self.points) for d in data)
            return same(self.density(natural) + likelihood - posterior)
        theta, log_weight = self.grid()
        likelihood = sum(d.log_likelihood(theta) for d in data)
        return logsumexp(self.log_density(natural, theta) + likelihood + log_weight)

    def log_bayes(self, natural: Natural, *data: Data) -> np.ndarray:
        """log p(θ | data) at the points: prior × likelihood, divided by its integral."""
        likelihood = sum(d.log_likelihood(self.points) for d in data)
        return self.density(natural) + likelihood - self.log_marginal(natural, *data)


def plus(*naturals: Natural) -> Natural:
    return tuple(sum(np.asarray(x, dtype=float) for x in xs) for xs in zip(*naturals, strict=True))


def same(values: np.ndarray) -> float:
    """Of values that must all be one number."""
    np.testing.assert_allclose(values, values[0], **TIGHT)
    return float(values[0])


def beta_density(natural: Natural, theta: Any) -> Any:
    return st.beta.logpdf(theta, *natural)


def beta_kernel(natural: Natural, theta: Any) -> Any:
    a, b = natural
    return (a - 1) * np.log(theta) + (b - 1) * np.log1p(-theta)


def gamma_density(natural: Natural, theta: Any) -> Any:
    return st.gamma.logpdf(theta, natural[0], scale=1 / natural[1])


def gamma_kernel(natural: Natural, theta: Any) -> Any:
    return (natural[0] - 1) * np.log(theta) - natural[1] * theta


def normal_density(natural: Natural, theta: Any) -> Any:
    h, j = natural
    return st.norm.logpdf(theta, h / j, j**-0.5)


def normal_kernel(natural: Natural, theta: Any) -> Any:
    return natural[0] * theta - natural[1] * theta**2 / 2


def dirichlet_density(natural: Natural, theta: Any) -> Any:
    return st.dirichlet.logpdf(theta.T, natural[0])


def dirichlet_kernel(natural: Natural, theta: Any) -> Any:
    return np.log(theta) @ (np.asarray(natural[0]) - 1)


def nig_density(natural: Natural, theta: Any) -> Any:
    kappa, total, nu, squares = natural
    mean, variance = theta[..., 0], theta[..., 1]
    spread = squares - total**2 / kappa
    given = st.norm.logpdf(mean, total / kappa, np.sqrt(variance / kappa))
    return given + st.invgamma.logpdf(variance, nu / 2, scale=spread / 2)


def nig_kernel(natural: Natural, theta: Any) -> Any:
    kappa, total, nu, squares = natural
    mean, variance = theta[..., 0], theta[..., 1]
    exponent = -kappa * mean**2 / 2 + total * mean - squares / 2
    return exponent / variance - (nu + 3) / 2 * np.log(variance)


def vector_density(natural: Natural, theta: Any) -> Any:
    covariance = np.linalg.inv(natural[1])
    return st.multivariate_normal.logpdf(theta, covariance @ natural[0], covariance)


def vector_kernel(natural: Natural, theta: Any) -> Any:
    return theta @ natural[0] - np.einsum("...i,ij,...j", theta, natural[1], theta) / 2


def niw_density(natural: Natural, theta: Any) -> Any:
    kappa, total, nu, squares = natural
    mean, psi = total / kappa, squares - np.outer(total, total) / kappa
    return np.array(
        [
            st.multivariate_normal.logpdf(m, mean, s / kappa) + st.invwishart.logpdf(s, nu, psi)
            for m, s in zip(*theta, strict=True)
        ]
    )


def niw_kernel(natural: Natural, theta: Any) -> Any:
    kappa, total, nu, squares = natural
    found = []
    for mean, sigma in zip(*theta, strict=True):
        precision = np.linalg.inv(sigma)
        exponent = -kappa / 2 * mean @ precision @ mean + mean @ precision @ total
        exponent -= np.trace(precision @ squares) / 2
        found.append(exponent - (nu + len(mean) + 2) / 2 * np.linalg.slogdet(sigma)[1])
    return np.array(found)


def successes(k: int, n: int) -> Data:
    columns = {"successes": k, "trials": n}
    return Data(ldf.Binomial(), columns, (k, n - k), lambda p: st.binom.logpmf(k, n, p))


def waits(family: Any, until: float, f: int, n: int) -> Data:
    columns = {"failures": f, "waits": n}
    return Data(family, columns, (n * until, f), lambda p: st.nbinom.logpmf(f, n * until, p))


def arrivals(y: int, n: float) -> Data:
    columns = {"count": y, "exposure": n}
    return Data(ldf.Poisson(), columns, (y, n), lambda rate: st.poisson.logpmf(y, n * rate))


def times(t: float, events: int) -> Data:
    def log_likelihood(rate: Any) -> Any:
        if events == 0:  # nothing happened up to t
            return st.expon.logsf(t, scale=1 / rate)
        return st.gamma.logpdf(t, events, scale=1 / rate)

    return Data(ldf.Exponential(), {"time": t, "events": events}, (events, t), log_likelihood)


def totals(shape: float, total: float, n: int) -> Data:
    def log_likelihood(rate: Any) -> Any:
        return st.gamma.logpdf(total, n * shape, scale=1 / rate)

    return Data(ldf.Gamma(shape), {"total": total, "n": n}, (n * shape, total), log_likelihood)


def mean_of(variance: float, mean: float, n: int) -> Data:
    adds = (n * mean / variance, n / variance)
    family = ldf.Gaussian(variance=variance)
    sd = np.sqrt(variance / n)
    return Data(family, {"mean": mean, "n": n}, adds, lambda at: st.norm.logpdf(mean, at, sd))


def estimate(mean: float, variance: float) -> Data:
    adds = (mean / variance, 1 / variance)
    sd = np.sqrt(variance)
    columns = {"mean": mean, "variance": variance}
    return Data(ldf.Gaussian(), columns, adds, lambda at: st.norm.logpdf(mean, at, sd))


def classes(*counts: int) -> Data:
    k = np.array(counts)

    def log_likelihood(p: Any) -> Any:
        return st.multinomial.logpmf(k, k.sum(), p / p.sum(-1, keepdims=True))

    return Data(ldf.Multinomial(), {"counts": k}, (k,), log_likelihood)


def values(*ys: float) -> Data:
    y = np.array(ys)

    def log_likelihood(theta: Any) -> Any:
        sd = np.sqrt(theta[..., 1])
        return sum(st.norm.logpdf(one, theta[..., 0], sd) for one in y)

    adds = (len(y), y.sum(), len(y), (y**2).sum())
    return Data(ldf.Normal(), {"values": y[None, :]}, adds, log_likelihood)


def seen_through(matrix: Any, offset: Any, covariance: Any, y: Any) -> Data:
    a, b, noise, y = (np.array(x, dtype=float) for x in (matrix, offset, covariance, y))
    weight = a.T @ np.linalg.inv(noise)

    def log_likelihood(theta: Any) -> Any:
        return st.multivariate_normal.logpdf(y - theta @ a.T - b, None, noise)

    family = ldf.LinearGaussian(a, b, noise)
    return Data(family, {"values": y}, (weight @ (y - b), weight @ a), log_likelihood)


def vectors(*ys: list[float]) -> Data:
    y = np.array(ys)

    def log_likelihood(theta: Any) -> Any:
        pairs = zip(*theta, strict=True)
        return np.array([st.multivariate_normal.logpdf(y, *pair).sum() for pair in pairs])

    adds = (len(y), y.sum(0), len(y), y.T @ y)
    return Data(ldf.MultivariateNormal(2), {"values": y[None]}, adds, log_likelihood)


RATES = np.array([0.03, 0.2, 0.5, 0.71, 0.98])
POSITIVE = np.array([0.05, 0.4, 1.0, 2.3, 6.0])
REALS = np.array([-3.0, -0.2, 0.0, 1.1, 4.0])
SHARES = np.array([[0.2, 0.3, 0.5], [0.9, 0.06, 0.04], [1 / 3, 1 / 3, 1 / 3]])
PAIRS = np.array([[0.4, 1.0], [-1.0, 0.3], [2.0, 5.0]])
PLANE = np.array([[0.0, 0.0], [1.0, -1.5], [-0.7, 2.0]])
COVARIANCES = np.array([[[1.0, 0.2], [0.2, 0.5]], [[2.0, -0.9], [-0.9, 1.4]], np.eye(2)])
MAP = np.array([[1.0, 0.5], [0.0, 2.0], [-1.0, 1.0]])
OFFSET = np.array([0.3, -0.2, 0.0])
NOISE = np.array([[1.0, 0.2, 0.0], [0.2, 0.8, 0.1], [0.0, 0.1, 1.5]])
MEAN, COVARIANCE = np.array([0.5, -0.5]), np.array([[1.5, 0.4], [0.4, 0.9]])

OF_A_RATE = dict(
    prior=ldf.Binomial.prior(successes=1.5, failures=2.5),
    at=(1.5, 2.5),
    aux=(2.2, 0.7),
    sensor=waits(ldf.Geometric(), 1, 4, 2),
    log_density=beta_density,
    log_kernel=beta_kernel,
    points=RATES,
    grid=unit_grid,
)
OF_ARRIVALS = dict(
    prior=ldf.Poisson.prior(count=2.0, exposure=3.0),
    at=(2.0, 3.0),
    aux=(1.3, 0.6),
    sensor=times(1.4, 3),
    log_density=gamma_density,
    log_kernel=gamma_kernel,
    points=POSITIVE,
    grid=positive_grid,
)
OF_A_MEAN = dict(
    prior=ldf.Gaussian.prior(mean=0.5, variance=4.0),
    at=(0.125, 0.25),
    aux=(-0.6, 0.4),
    sensor=estimate(2.1, 0.7),
    log_density=normal_density,
    log_kernel=normal_kernel,
    points=REALS,
    grid=real_grid,
)


def case(name: str, y: Data, new: Data, shared: dict[str, Any]) -> Case:
    return Case(name=name, family=y.family, y=y, new=new, **shared)


FAILURES = ldf.NegativeBinomial(2.5)
CASES = [
    case("binomial", successes(3, 10), successes(1, 4), OF_A_RATE),
    case("bernoulli", successes(1, 1), successes(0, 1), OF_A_RATE),
    case("geometric", waits(ldf.Geometric(), 1, 4, 2), waits(ldf.Geometric(), 1, 0, 1), OF_A_RATE),
    case("negative-binomial", waits(FAILURES, 2.5, 3, 2), waits(FAILURES, 2.5, 6, 1), OF_A_RATE),
    case("poisson", arrivals(4, 2.5), arrivals(1, 0.8), OF_ARRIVALS),
    case("exponential", times(3.2, 2), times(0.7, 1), OF_ARRIVALS),
    case("censored", times(3.2, 2), times(0.7, 0), OF_ARRIVALS),
    case("gamma", totals(1.7, 4.1, 3), totals(1.7, 0.6, 1), OF_ARRIVALS),
    case("gaussian", mean_of(2.0, 1.3, 4), mean_of(2.0, -0.4, 1), OF_A_MEAN),
    case("estimate", estimate(1.3, 0.6), estimate(0.2, 1.9), OF_A_MEAN),
    case(
        "multinomial",
        classes(3, 0, 4),
        classes(1, 1, 0),
        dict(
            prior=ldf.Multinomial.prior([1.3, 1.5, 2.2]),
            at=(np.array([1.3, 1.5, 2.2]),),
            aux=(np.array([0.4, 2.0, 0.1]),),
            sensor=classes(0, 5, 1),
            log_density=dirichlet_density,
            log_kernel=dirichlet_kernel,
            points=SHARES,
            grid=simplex_grid,
        ),
    ),
    case(
        "normal",
        values(1.0, 2.0, 0.3),
        values(-0.5),
        dict(
            prior=ldf.Normal.prior(mean=0.4, mean_n=2.0, variance=1.5, variance_n=3.0),
            at=(2.0, 0.8, 3.0, 4.5 + 2 * 0.16),
            aux=(1.5, 0.6, 2.5, 2.5 * 0.8 + 0.6**2 / 1.5),
            sensor=values(0.7, 1.9),
            log_density=nig_density,
            log_kernel=nig_kernel,
            points=PAIRS,
            grid=mean_and_variance_grid,
        ),
    ),
    case(
        "linear-gaussian",
        seen_through(MAP, OFFSET, NOISE, [1.0, -0.5, 0.8]),
        seen_through(MAP, OFFSET, NOISE, [-0.3, 0.1, 0.0]),
        dict(
            prior=ldf.LinearGaussian.prior(mean=MEAN, covariance=COVARIANCE),
            at=(np.linalg.inv(COVARIANCE) @ MEAN, np.linalg.inv(COVARIANCE)),
            aux=(np.array([0.3, -0.8]), np.array([[1.0, 0.2], [0.2, 0.5]])),
            sensor=seen_through([[1.0, -1.0]], [0.4], [[0.7]], [1.2]),
            log_density=vector_density,
            log_kernel=vector_kernel,
            points=PLANE,
            grid=plane_grid,
        ),
    ),
    case(
        "multivariate-normal",
        vectors([1.0, 0.2], [0.3, -0.9], [1.7, 1.1]),
        vectors([0.0, 0.5]),
        dict(
            prior=ldf.MultivariateNormal.prior(
                mean=MEAN, mean_n=2.0, variance=COVARIANCE, variance_n=4.0
            ),
            at=(2.0, 2 * MEAN, 4.0, 4 * COVARIANCE + 2 * np.outer(MEAN, MEAN)),
            aux=(1.0, np.array([0.2, 0.1]), 2.0, np.diag([1.0, 2.0])),
            sensor=vectors([0.4, 0.4], [1.0, 0.0]),
            log_density=niw_density,
            log_kernel=niw_kernel,
            points=(PLANE, COVARIANCES),
        ),
    ),
]
BY_NAME = {c.name: c for c in CASES}
every_family = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(*np.broadcast_arrays(found, expected), **TIGHT)


def assert_natural(statistic: Any, natural: Natural) -> None:
    for found, expected in zip(statistic.coordinates(), natural, strict=True):
        close(found, expected)


# --- Section 2: the fusion problem ----------------------------------------------------------


@pytest.mark.parametrize("name", ["binomial", "poisson", "gaussian"])
@pytest.mark.parametrize("with_auxiliary", [True, False], ids=["eq-1", "eq-2"])
def test_eq_1_and_2_posterior_of_local_and_global_variables(name, with_auxiliary):
    """Eq. 1: p(θ, γ | x, y) ∝ p(γ) Π_i p(θ_i | γ) p(x_i | θ_i) p(y_i | θ_i).
    Eq. 2: the same without x: p(θ, γ | y) ∝ p(γ) Π_i p(θ_i | γ) p(y_i | θ_i).

    γ picks one of two priors; both units share it, so one unit's data speak of the other's θ.
    """
    case = BY_NAME[name]
    priors = [case.at, plus(case.at, case.aux)]
    log_gamma = np.log([0.3, 0.7])
    units = [(case.sensor, case.y), (case.new, case.sensor)]  # (x_i, y_i)
    units = units if with_auxiliary else [(y,) for _, y in units]

    # By brute force: the joint of γ, θ_1 and θ_2 on a grid.
    theta, log_weight = (part[::4] for part in case.grid())
    log_weight = log_weight + np.log(4)
    joint = np.stack(
        [
            log_p + np.add.outer(*(log_unit(case, prior, unit, theta) for unit in units))
            for log_p, prior in zip(log_gamma, priors, strict=True)
        ]
    )
    weight = np.add.outer(log_weight, log_weight)
    joint -= logsumexp(joint + weight)

    # By sums of statistics and ratios of partition functions.
    log_evidence, densities = [], []
    for log_p, prior in zip(log_gamma, priors, strict=True):
        total = log_p
        of_units = []
        for unit in units:
            natural = case.statistic(prior)
            for data in unit:
                total = total + data.family.log_predictive(natural, **data.columns)
                natural = natural + data.statistic()
            of_units.append(case.family.posterior(natural).log_prob(theta))
        log_evidence.append(total)
        densities.append(np.add.outer(*of_units))
    of_gamma = np.array(log_evidence) - logsumexp(log_evidence)
    seen = joint > -200  # further out both are zero for all purposes
    close((of_gamma[:, None, None] + np.stack(densities))[seen], joint[seen])


def log_unit(case: Case, prior: Natural, unit: tuple[Data, ...], theta: np.ndarray) -> np.ndarray:
    return case.log_density(prior, theta) + sum(data.log_likelihood(theta) for data in unit)


@every_family
def test_eq_3_posterior_factorises_over_units(case):
    """Eq. 3: p(θ | x, y) ∝ Π_i p(θ_i) p(x_i | θ_i) p(y_i | θ_i)."""
    x, y = case.sensor, case.y
    natural = case.prior + x.statistic() + y.statistic()
    close(case.family.posterior(natural).log_prob(case.points), case.log_bayes(case.at, x, y))


def test_eq_3_units_do_not_touch_each_other():
    """Eq. 3: a product over units: each row's posterior is that of the row alone."""
    family = ldf.Binomial()
    k, n, f = np.array([3, 0, 7]), np.array([10, 4, 7]), np.array([2, 0, 5])
    seen = family.statistic(successes=k, trials=n)
    aux = ldf.Geometric().statistic(failures=f)
    found = family.posterior(family.prior(0.5, 0.5) + aux + seen)
    close(found.mean(), st.beta.mean(0.5 + 1 + k, 0.5 + f + n - k))
    close(found.log_prob(0.3), st.beta.logpdf(0.3, 0.5 + 1 + k, 0.5 + f + n - k))


# --- Section 2.1: exponential families ------------------------------------------------------


def natural_form(case: Case, statistic: Any, theta: Any) -> np.ndarray:
    """η(θ)ᵀt − N·A(θ) in the paper's t and n, with η and A by hand."""
    t, n = statistic.t, statistic.n
    if case.log_density is beta_density:
        return np.log(theta / (1 - theta)) * t + np.log1p(-theta) * n
    if case.log_density is gamma_density:
        return np.log(theta) * t - theta * n
    if case.log_density is normal_density:
        return theta * t - theta**2 / 2 * n
    if case.log_density is dirichlet_density:
        return np.log(theta) @ t
    if case.log_density is vector_density:
        return theta @ t - np.einsum("...i,ij,...j", theta, n, theta) / 2
    if case.log_density is nig_density:
        mean, variance = theta.T
        eta = np.stack([mean / variance, -0.5 / variance], -1)
        return (eta * t).sum(-1) - n * (mean**2 / variance + np.log(variance)) / 2
    mean, sigma = theta
    precision = np.linalg.inv(sigma)
    weighted = np.einsum("pij,pj->pi", precision, mean)
    eta = np.concatenate([weighted, -0.5 * precision.reshape(len(mean), -1)], -1)
    log_a = ((mean * weighted).sum(-1) + np.linalg.slogdet(sigma)[1]) / 2
    return (eta * t).sum(-1) - n * log_a


@every_family
def test_eq_4_likelihood_in_natural_form(case):
    """Eq. 4: p(y | θ) = h(y) exp{η(θ)ᵀ t(y) − A(θ)}."""
    for data in (case.y, case.new):
        known = data.log_likelihood(case.points)
        base = data.family.log_base(**data.columns)
        close(base + natural_form(case, data.statistic(), case.points), known)
        close(data.family.log_likelihood(case.points, **data.columns), known)


def test_eq_4_log_partition_makes_the_likelihood_sum_to_one():
    """Eq. 4: A(θ) = log ∫ h(y) exp{η(θ)ᵀ t(y)} dy, here over all counts, and over the line."""
    k = np.arange(13)
    binomial = ldf.Binomial()
    t = binomial.statistic(k, 12).t
    close(logsumexp(binomial.log_base(k, 12) + np.log(0.3 / 0.7) * t), -12 * np.log(0.7))
    y = np.arange(200)
    poisson = ldf.Poisson()
    t = poisson.statistic(y, 2.5).t
    close(logsumexp(poisson.log_base(y, 2.5) + np.log(1.7) * t), 2.5 * 1.7)
    f = np.arange(4000)
    geometric = ldf.Geometric()
    t = geometric.statistic(f).failures
    close(logsumexp(geometric.log_base(f) + np.log(0.9) * t), -np.log(0.1))
    line, log_weight = real_grid()
    gaussian = ldf.Gaussian(variance=2.0)
    t = gaussian.statistic(line, n=3).t
    close(logsumexp(gaussian.log_base(line, n=3) + 0.8 * t + log_weight), 3 / 2 * 0.8**2 / 2)


@every_family
def test_eq_5_joint_of_several_observations(case):
    """Eq. 5: p(y_i | θ) = h(y_i) exp{η(θ)ᵀ Σ_j t(y_ij) − N A(θ)}, h(y_i) = Π_j h(y_ij)."""
    several = (case.y, case.new, case.new)
    together = sum(data.statistic() for data in several)
    base = sum(data.family.log_base(**data.columns) for data in several)
    joint = sum(data.log_likelihood(case.points) for data in several)
    close(base + natural_form(case, together, case.points), joint)


def test_eq_5_values_of_one_unit_together():
    """Eq. 5: several values on a second axis are one observation with N_i = 4."""
    y = np.array([0.3, -1.2, 2.0, 0.8])
    theta = np.array([0.1, 1.7])
    known = st.norm.logpdf(y, 0.1, np.sqrt(1.7)).sum()
    close(ldf.Normal().log_likelihood(theta, values=y[None]), known)
    close(ldf.Normal().statistic(values=y[None]).n, 4)
    one_by_one = ldf.Normal().statistic(values=y)
    assert len(one_by_one) == 4
    close(one_by_one.t.sum(0), [y.sum(), (y**2).sum()])


@every_family
def test_eq_6_conjugate_prior(case):
    """Eq. 6: π(θ; λ0) = h(θ) exp{[τ0 ν0]·[η(θ) −A(θ)] − log Z(τ0, ν0)}."""
    assert_natural(case.prior, case.at)
    found = case.family.posterior(case.prior).log_prob(case.points)
    close(found, case.log_kernel(case.at, case.points) - case.log_partition(case.at))
    close(found, case.density(case.at))


@every_family
def test_eq_7_partition_function(case):
    """Eq. 7: Z(τ, ν) = ∫ h(θ) exp{[τ ν]·[η(θ) −A(θ)]} dθ."""
    for natural in (case.at, plus(case.at, case.aux), plus(case.at, case.y.adds)):
        found = case.family.log_partition(case.statistic(natural))
        close(found, case.log_partition(natural))


def test_eq_7_partition_function_of_the_normal_inverse_wishart():
    """Eq. 7 in closed form where the integral has five dimensions."""
    kappa, nu, psi = 2.0, 5.0, COVARIANCE * 5
    squares = psi + kappa * np.outer(MEAN, MEAN)
    natural = ldf.MultivariateNormal.natural(
        np.array(kappa), kappa * MEAN, np.array(nu), np.array(squares)
    )
    known = np.log(2 * np.pi / kappa) + nu * np.log(2) + multigammaln(nu / 2, 2)
    known -= nu / 2 * np.linalg.slogdet(psi)[1]
    close(ldf.MultivariateNormal(2).log_partition(natural), known)


@every_family
def test_eq_8_posterior_adds_the_statistic(case):
    """Eq. 8: p(θ | y) = π(θ; λ0 + T_y(y))."""
    assert_natural(case.y.statistic(), case.y.adds)
    found = case.family.posterior(case.prior + case.y.statistic())
    close(found.log_prob(case.points), case.log_bayes(case.at, case.y))


@every_family
def test_eq_9_posterior_in_natural_form(case):
    """Eq. 9: p(θ | y) = h(θ) exp{[τ0 + t, ν0 + N]·[η, −A] − log Z(τ0 + t, ν0 + N)}."""
    natural = plus(case.at, case.y.adds)
    found = case.family.posterior(case.prior + case.y.statistic())
    close(
        found.log_prob(case.points),
        case.log_kernel(natural, case.points) - case.log_partition(natural),
    )


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("bernoulli", [successes(k, 1) for k in (1, 0, 0, 1, 1)], [successes(3, 5)]),
        ("binomial", [successes(3, 4), successes(0, 6)], [successes(1, 5), successes(2, 5)]),
        ("poisson", [arrivals(4, 1.0), arrivals(0, 1.5)], [arrivals(1, 2.0), arrivals(3, 0.5)]),
        ("exponential", [times(2.0, 1), times(1.0, 1)], [times(0.5, 2), times(2.5, 0)]),
        ("multinomial", [classes(1, 0, 2), classes(0, 2, 0)], [classes(1, 2, 2)]),
        ("gaussian", [mean_of(2.0, 1.0, 1), mean_of(2.0, 3.0, 1)], [mean_of(2.0, 2.0, 2)]),
        ("normal", [values(0.0, 3.0, 3.0)], [values(1.0, 1.0, 4.0)]),  # sums 6, squares 18
    ],
)
def test_eq_10_sufficiency(name, one, other):
    """Eq. 10: p(θ | y) = p(θ | T_y(y)): different data with one statistic tell the same of θ."""
    case = BY_NAME[name]
    for data in (one, other):
        natural = case.prior + sum(d.statistic() for d in data)
        found = case.family.posterior(natural).log_prob(case.points)
        close(found, case.log_bayes(case.at, *data))
        close(found, case.density(plus(case.at, *(d.adds for d in one))))


@every_family
def test_eq_11_marginal_is_a_ratio_of_partition_functions(case):
    """Eq. 11: p(y) = ∫ p(y | θ) p(θ) dθ = h(y) Z(τ0 + t, ν0 + N) / Z(τ0, ν0)."""
    for data in (case.y, case.new):
        known = case.log_marginal(case.at, data)
        family, natural = data.family, case.prior + data.statistic()
        ratio = family.log_partition(natural) - family.log_partition(case.prior)
        close(family.log_base(**data.columns) + ratio, known)
        close(family.log_predictive(case.prior, **data.columns), known)


@every_family
def test_eq_12_posterior_predictive(case):
    """Eq. 12: p(ỹ | y) = ∫ p(ỹ | θ) p(θ | T_y) dθ = h(ỹ) Z(λ0 + T_y + T_ỹ) / Z(λ0 + T_y)."""
    family, seen = case.family, case.prior + case.y.statistic()
    found = family.log_predictive(seen, **case.new.columns)
    close(found, case.log_marginal(case.at, case.y, case.new) - case.log_marginal(case.at, case.y))
    close(found, case.log_marginal(plus(case.at, case.y.adds), case.new))
    ratio = family.log_partition(seen + case.new.statistic()) - family.log_partition(seen)
    close(family.log_base(**case.new.columns) + ratio, found)


def test_eq_12_predictives_are_the_named_distributions():
    """Eq. 12: the same p(ỹ | y) from the predictive's distribution, by SciPy's names for it."""
    rate, arrived = ldf.Binomial.prior(2.5, 4.5), ldf.Poisson.prior(3.5, 2.0)
    k = np.arange(9)
    close(ldf.Binomial().predictive(rate, 8).log_prob(k), st.betabinom.logpmf(k, 8, 2.5, 4.5))
    close(ldf.Geometric().predictive(rate).log_prob(k), st.betanbinom.logpmf(k, 1, 2.5, 4.5))
    found = ldf.NegativeBinomial(3.0).predictive(rate, 2).log_prob(k)
    close(found, st.betanbinom.logpmf(k, 6, 2.5, 4.5))
    found = ldf.Poisson().predictive(arrived, 1.5).log_prob(k)
    close(found, st.nbinom.logpmf(k, 3.5, 2 / (2 + 1.5)))
    t = np.array([0.1, 1.0, 4.0])
    found = ldf.Exponential().predictive(arrived, 2).log_prob(t)
    close(found, st.betaprime.logpdf(t, 2, 3.5, scale=2.0))
    found = ldf.Gamma(1.7).predictive(arrived, 2).log_prob(t)
    close(found, st.betaprime.logpdf(t, 3.4, 3.5, scale=2.0))
    found = ldf.Gaussian(variance=2.0).predictive(ldf.Gaussian.prior(0.5, 4.0), n=2).log_prob(t)
    close(found, st.norm.logpdf(t, 0.5, np.sqrt(5.0)))
    found = ldf.Normal().predictive(ldf.Normal.prior(0.5, 2.0, 1.5, 3.0)).log_prob(t)
    close(found, st.t.logpdf(t, 3.0, 0.5, np.sqrt(1.5 * 1.5)))
    prior = ldf.MultivariateNormal.prior(MEAN, 2.0, COVARIANCE, 5.0)
    shape = 5 * COVARIANCE * 1.5 / 4
    found = ldf.MultivariateNormal(2).predictive(prior).log_prob(PLANE)
    close(found, st.multivariate_t.logpdf(PLANE, MEAN, shape, df=4))


# --- Section 2.2: conjugate mappings --------------------------------------------------------


@every_family
def test_eq_13_a_sufficient_statistic_of_auxiliary_data(case):
    """Eq. 13: p(θ | x) = p(θ | T*(x)) = π(θ; λ0 + T*(x)), tried where p(x | θ) is known."""
    found = case.family.posterior(case.prior + case.sensor.statistic())
    close(found.log_prob(case.points), case.log_bayes(case.at, case.sensor))


@every_family
def test_eq_14_posterior_given_auxiliary_data(case):
    """Eq. 14: p(θ | x; φ) = π(θ; λ0 + T_x(x; φ))."""
    natural = plus(case.at, case.aux)
    found = case.family.posterior(case.prior + case.statistic(case.aux))
    close(found.log_prob(case.points), case.density(natural))


@every_family
def test_eq_15_posterior_given_auxiliary_data_in_natural_form(case):
    """Eq. 15: p(θ | x; φ) = h(θ) exp{[τ0 + t_x, ν0 + n_x]·[η, −A] − log Z(τ0 + t_x, ν0 + n_x)}."""
    natural = plus(case.at, case.aux)
    found = case.family.posterior(case.prior + case.statistic(case.aux))
    close(
        found.log_prob(case.points),
        case.log_kernel(natural, case.points) - case.log_partition(natural),
    )


@every_family
def test_eq_16_full_posterior(case):
    """Eq. 16: p(θ | x, y; φ) = π(θ; λ0 + T_x + T_y): p(θ | x) × p(y | θ), normalised."""
    x, y = case.statistic(case.aux), case.y.statistic()
    known = case.log_bayes(plus(case.at, case.aux), case.y)
    for natural in (case.prior + x + y, y + (x + case.prior)):  # in any order
        close(case.family.posterior(natural).log_prob(case.points), known)


@every_family
def test_eq_17_predictive_given_auxiliary_data(case):
    """Eq. 17: p(y | x; φ) = ∫ f(y; θ) π(θ; λ0 + T_x) dθ = h(y) Z(λ0 + T_x + T_y) / Z(λ0 + T_x)."""
    family, natural = case.family, case.prior + case.statistic(case.aux)
    found = family.log_predictive(natural, **case.y.columns)
    close(found, case.log_marginal(plus(case.at, case.aux), case.y))
    ratio = family.log_partition(natural + case.y.statistic()) - family.log_partition(natural)
    close(found, family.log_base(**case.y.columns) + ratio)


# --- Section 2.3: global variables ----------------------------------------------------------

GLOBALS = (0.8, 1.0, 2.5)  # values of γ; the prior of unit i is worth (i + 1)·γ times λ0
UNITS = 3


def prior_of_unit(case: Case, i: int, gamma: float) -> Natural:
    """λ_i(γ) by hand."""
    return tuple((i + 1) * gamma * np.asarray(x, dtype=float) for x in case.at)


def priors(case: Case, gamma: float) -> Any:
    """λ_i(γ) of all units at once: λ0 counted (i + 1)·γ times."""
    return case.prior * ((1 + np.arange(UNITS)) * gamma)


heavy = {"normal": (1.0, 2.5), "multivariate-normal": (1.0, 2.5)}  # proper, and on the grid
every_family_and_gamma = pytest.mark.parametrize(
    ("case", "gamma"),
    [(c, gamma) for c in CASES for gamma in heavy.get(c.name, GLOBALS)],
    ids=lambda value: getattr(value, "name", f"gamma={value}"),
)


def rows(case: Case, natural: Any) -> list[np.ndarray]:
    return [case.family.posterior(natural[i]).log_prob(case.points) for i in range(UNITS)]


@every_family_and_gamma
def test_eq_18_model_with_global_variables(case, gamma):
    """Eq. 18: p(θ_i | γ, x_i; φ) = π(θ_i; λ_i(γ) + T_x) and p(y_i | θ_i) = f(y_i; θ_i)."""
    found = rows(case, priors(case, gamma) + case.statistic(case.aux))
    likelihood = case.family.log_likelihood(case.points, **case.y.columns)
    for i in range(UNITS):
        known = case.density(plus(prior_of_unit(case, i, gamma), case.aux))
        known = known + case.y.log_likelihood(case.points)
        close(found[i] + likelihood, known)  # the joint of θ_i and y_i


@every_family_and_gamma
def test_eq_19_prior_given_global_variables(case, gamma):
    """Eq. 19: p(θ_i | γ) = π(θ_i; λ_i(γ))."""
    found = rows(case, priors(case, gamma))
    for i in range(UNITS):
        close(found[i], case.density(prior_of_unit(case, i, gamma)))


@every_family_and_gamma
def test_eq_20_posterior_given_global_variables_and_auxiliary_data(case, gamma):
    """Eq. 20: p(θ_i | γ, x_i; φ) = π(θ_i; λ_i(γ) + T_x(x_i; φ)), tried where p(x | θ) is known."""
    found = rows(case, priors(case, gamma) + case.sensor.statistic())
    for i in range(UNITS):
        close(found[i], case.log_bayes(prior_of_unit(case, i, gamma), case.sensor))


@every_family_and_gamma
def test_eq_21_full_posterior_given_global_variables(case, gamma):
    """Eq. 21: p(θ_i | γ, x_i, y_i; φ) = π(θ_i; λ_i(γ) + T_x(x_i; φ) + T_y(y_i))."""
    found = rows(case, priors(case, gamma) + case.statistic(case.aux) + case.y.statistic())
    for i in range(UNITS):
        natural = plus(prior_of_unit(case, i, gamma), case.aux)
        close(found[i], case.log_bayes(natural, case.y))


@every_family_and_gamma
def test_eq_22_predictive_given_global_variables_integrates(case, gamma):
    """Eq. 22: p(y_i | γ, x_i; φ) = ∫ f(y_i; θ_i) π(θ_i; λ_i(γ) + T_x(x_i; φ)) dθ_i."""
    natural = priors(case, gamma) + case.statistic(case.aux)
    found = case.family.log_predictive(natural, **case.y.columns)
    known = [
        case.log_marginal(plus(prior_of_unit(case, i, gamma), case.aux), case.y)
        for i in range(UNITS)
    ]
    close(found, known)


@every_family_and_gamma
def test_eq_23_predictive_given_global_variables_is_a_ratio(case, gamma):
    """Eq. 23: p(y_i | γ, x_i; φ) = h(y_i) Z(λ_i(γ) + T_x + T_y) / Z(λ_i(γ) + T_x)."""
    natural = priors(case, gamma) + case.statistic(case.aux)
    found = case.family.log_predictive(natural, **case.y.columns)
    for i in range(UNITS):
        before = plus(prior_of_unit(case, i, gamma), case.aux)
        ratio = case.log_partition(plus(before, case.y.adds)) - case.log_partition(before)
        base = case.y.log_likelihood(case.points) - natural_form(
            case, case.y.statistic(), case.points
        )
        close(found[i], same(base) + ratio)
    after = case.family.log_partition(natural + case.y.statistic())
    ratio = after - case.family.log_partition(natural)
    close(found, case.family.log_base(**case.y.columns) + ratio)


# --- Table 1: what a mapping's outputs mean -------------------------------------------------

OUTPUTS = np.random.default_rng(0).normal(scale=20, size=(200, 9))


def softplus(x: Any) -> Any:
    return np.logaddexp(0.0, x)


def test_table_1_binomial_trials_and_success_rate():
    """Table 1, Bernoulli/binomial, Beta: trials n_x ≥ 0, success rate μ ∈ [0, 1]."""
    aux = ldf.Binomial.from_unconstrained(OUTPUTS[:, :2])
    assert (aux.n >= 0).all()
    assert (aux.successes >= 0).all()
    assert (aux.failures >= 0).all()
    close(aux.n, softplus(OUTPUTS[:, 0]))
    close(aux.successes, aux.n * expit(OUTPUTS[:, 1]))
    # Ten pseudo-trials at a rate of 0.3 are worth what 3 successes in 10 trials are.
    pseudo = ldf.Binomial.from_unconstrained(np.array([np.log(np.expm1(10.0)), np.log(0.3 / 0.7)]))
    prior = ldf.Binomial.prior(0.5, 0.5)
    close(ldf.Binomial().posterior(prior + pseudo).log_prob(RATES), st.beta.logpdf(RATES, 3.5, 7.5))


def test_table_1_multinomial_trials_and_outcome_probabilities():
    """Table 1, Multinoulli/multinomial, Dirichlet: trials n_x ≥ 0, probabilities on the simplex."""
    assert ldf.Multinomial(classes=3).outputs() == 4
    aux = ldf.Multinomial.from_unconstrained(OUTPUTS[:, :4])
    assert (aux.counts >= 0).all()
    close(aux.n, softplus(OUTPUTS[:, 0]))
    shares = aux.counts / aux.n[:, None]
    close(shares.sum(-1), 1)
    logits = OUTPUTS[:, 1:4] - logsumexp(OUTPUTS[:, 1:4], axis=-1, keepdims=True)
    close(shares, np.exp(logits))
    pseudo = ldf.Multinomial.from_unconstrained(
        np.array([np.log(np.expm1(10.0)), *np.log([0.2, 0.3, 0.5])])
    )
    found = ldf.Multinomial().posterior(ldf.Multinomial.prior([1.0, 1.0, 1.0]) + pseudo)
    close(found.log_prob(SHARES), st.dirichlet.logpdf(SHARES.T, [3.0, 4.0, 6.0]))


def test_table_1_poisson_arrivals_and_intervals():
    """Table 1, Poisson, Gamma: arrivals a ≥ 0, intervals b ≥ 0."""
    aux = ldf.Poisson.from_unconstrained(OUTPUTS[:, :2], "counts")
    close(aux.t, softplus(OUTPUTS[:, 0]))
    close(aux.n, softplus(OUTPUTS[:, 1]))
    assert (aux.count >= 0).all()
    assert (aux.exposure >= 0).all()
    by_rate = ldf.Poisson.from_unconstrained(OUTPUTS[:, :2])
    close(by_rate.exposure, softplus(OUTPUTS[:, 0]))
    close(by_rate.count, by_rate.exposure * softplus(OUTPUTS[:, 1]))
    pseudo = ldf.Poisson.from_unconstrained(np.log(np.expm1([4.0, 2.5])), "counts")
    found = ldf.Poisson().posterior(ldf.Poisson.prior(1.0, 1.0) + pseudo)
    close(found.log_prob(POSITIVE), st.gamma.logpdf(POSITIVE, 5.0, scale=1 / 3.5))


def test_table_1_multivariate_gaussian_potential_and_precision():
    """Table 1, multivariate Gaussian: potential h ∈ R^d, precision L Lᵀ ⪰ 0 (known covariance)."""
    outputs = OUTPUTS[:, :5] / 10
    aux = ldf.LinearGaussian.from_unconstrained(outputs, "counts")
    close(aux.potential, outputs[:, :2])
    a, b, c = outputs[:, 2:].T  # L = [[a, 0], [b, c]]
    known = np.stack([np.stack([a * a, a * b], -1), np.stack([a * b, b * b + c * c], -1)], -2)
    close(aux.precision, known)
    assert (np.linalg.eigvalsh(aux.precision) >= -1e-12).all()
    assert ldf.LinearGaussian(MAP, OFFSET, NOISE).outputs() == 5


def test_table_1_normal_inverse_wishart():
    """Table 1, multivariate Gaussian, NIW: the row's prior is that of an unknown covariance.

    Any output adds to a prior of mean and covariance and leaves it proper.
    """
    family = ldf.MultivariateNormal(2)
    assert family.outputs() == 7
    outputs = OUTPUTS[:20, :7] / 10
    prior = family.prior(MEAN, 2.0, COVARIANCE, 4.0)
    natural = prior + family.from_unconstrained(outputs)
    found = family.posterior(natural).log_prob((PLANE[0], COVARIANCES[0]))
    for i, (first, second, *vector, a, b, c) in enumerate(outputs):
        kappa, nu = softplus(first), softplus(second)
        lower = np.array([[a, 0.0], [b, c]])
        squares = nu * lower @ lower.T + kappa * np.outer(vector, vector)
        aux = (kappa, kappa * np.array(vector), nu, squares)
        at = plus(BY_NAME["multivariate-normal"].at, aux)
        close(found[i], niw_density(at, (PLANE[:1], COVARIANCES[:1])))


# --- Appendix A: mappings for common primary data -------------------------------------------

A_X, B_X = np.array([0.0, 2.2, 40.0]), np.array([0.0, 0.7, 3.0])  # a(x_i), b(x_i) of three units


def test_eq_a1_binomial_posterior():
    """Eq. A1: p(θ_i | x_i; φ) = Beta(θ_i; α0 + a(x_i; φ), β0 + b(x_i; φ))."""
    family = ldf.Binomial()
    found = family.posterior(family.prior(0.5, 1.5) + family.natural(A_X, B_X))
    known = st.beta(0.5 + A_X, 1.5 + B_X)
    for theta in RATES:
        close(found.log_prob(theta), known.logpdf(theta))
        close(found.cdf(theta), known.cdf(theta))
    close(found.mean(), known.mean())
    close(found.sd(), known.std())
    close(found.entropy(), known.entropy())
    close(found.quantile(0.05), known.ppf(0.05))


def test_eq_a2_binomial_predictive():
    """Eq. A2: p(y_i | x_i; φ) = BeBi(y_i; n_i, α0 + a(x_i; φ), β0 + b(x_i; φ))."""
    family = ldf.Binomial()
    n = np.array([1, 7, 30])
    natural = family.prior(0.5, 1.5) + family.natural(A_X, B_X)
    known = st.betabinom(n, 0.5 + A_X, 1.5 + B_X)
    predictive = family.predictive(natural, trials=n)
    for y in range(2):
        close(predictive.log_prob(y), known.logpmf(y))
        close(family.log_predictive(natural, y, n), known.logpmf(y))
        close(predictive.cdf(y), known.cdf(y))
    close(predictive.mean(), known.mean())
    close(predictive.sd(), known.std())
    masses = np.exp(predictive[2].log_prob(np.arange(31)))
    close(masses.sum(), 1)


def test_appendix_a_binomial_by_pseudo_trials_and_pseudo_mean():
    """Appendix A: a(x) = n(x) μ(x) and b(x) = n(x) (1 − μ(x)), with n ≥ 0 and μ ∈ (0, 1)."""
    outputs = np.array([[-3.0, 0.4], [0.0, -2.0], [5.0, 40.0]])
    n, mean = softplus(outputs[:, 0]), expit(outputs[:, 1])
    aux = ldf.Binomial.from_unconstrained(outputs, "rate")
    close(aux.successes, n * mean)
    np.testing.assert_allclose(aux.failures, n * expit(-outputs[:, 1]), rtol=1e-9)
    assert aux.failures[2] > 0  # a rate near one keeps its failures
    direct = ldf.Binomial.from_unconstrained(outputs, "counts")
    close(direct.successes, softplus(outputs[:, 0]))
    close(direct.failures, softplus(outputs[:, 1]))


def test_eq_a3_multinomial_posterior():
    """Eq. A3: p(θ_i | x_i; φ) = Dir(θ_i; α0 + a(x_i; φ))."""
    family = ldf.Multinomial()
    aux = np.array([[0.0, 0.0, 0.0], [0.4, 2.0, 0.1]])
    alpha = np.array([0.5, 0.7, 1.1])
    found = family.posterior(family.prior(alpha) + family.natural(aux))
    for theta in SHARES:
        close(found.log_prob(theta), [st.dirichlet.logpdf(theta, alpha + a) for a in aux])
    close(found.mean(), [st.dirichlet.mean(alpha + a) for a in aux])
    close(found.sd() ** 2, [st.dirichlet.var(alpha + a) for a in aux])
    close(found.entropy(), [st.dirichlet.entropy(alpha + a) for a in aux])


def test_eq_a4_multinomial_predictive():
    """Eq. A4: p(y_i | x_i; φ) = DirMult(y_i; n_i, α0 + a(x_i; φ))."""
    family = ldf.Multinomial()
    aux = np.array([[0.0, 0.0, 0.0], [0.4, 2.0, 0.1]])
    alpha = np.array([0.5, 0.7, 1.1])
    natural = family.prior(alpha) + family.natural(aux)
    all_counts = np.array([k for k in itertools.product(range(5), repeat=3) if sum(k) == 4])
    predictive = family.predictive(natural, trials=4)
    masses = np.stack([predictive.log_prob(k) for k in all_counts])
    known = [[st.dirichlet_multinomial.logpmf(k, alpha + a, 4) for a in aux] for k in all_counts]
    close(masses, known)
    close(np.exp(masses).sum(0), 1)
    close(family.log_predictive(natural, all_counts[3]), known[3])
    close(predictive.mean(), np.tensordot(np.exp(masses), all_counts, (0, 0)))


def test_appendix_a_multinomial_by_pseudo_trials_and_pseudo_mean():
    """Appendix A: a(x) = n(x) μ(x) with μ on the simplex; two classes are the binomial."""
    outputs = np.array([[1.2, 0.3, -0.9, 2.0], [-2.0, 0.0, 0.0, 0.0]])
    aux = ldf.Multinomial.from_unconstrained(outputs)
    shares = np.exp(outputs[:, 1:]) / np.exp(outputs[:, 1:]).sum(-1, keepdims=True)
    close(aux.counts, softplus(outputs[:, :1]) * shares)
    two = ldf.Multinomial.prior([1.5, 2.5])
    found = ldf.Multinomial().log_predictive(two, [3, 4])
    close(found, st.betabinom.logpmf(3, 7, 1.5, 2.5))


def test_eq_a5_poisson_posterior():
    """Eq. A5: p(θ_i | x_i) = Ga(θ_i; α0 + a(x_i; φ), β0 + b(x_i; φ)), shape and rate."""
    family = ldf.Poisson()
    found = family.posterior(family.prior(0.5, 1.5) + family.natural(A_X, B_X))
    known = st.gamma(0.5 + A_X, scale=1 / (1.5 + B_X))
    for theta in POSITIVE:
        close(found.log_prob(theta), known.logpdf(theta))
        close(found.cdf(theta), known.cdf(theta))
    close(found.mean(), known.mean())
    close(found.sd(), known.std())
    close(found.entropy(), known.entropy())
    close(found.quantile(0.05), known.ppf(0.05))


def test_eq_a6_poisson_predictive():
    """Eq. A6: p(y_i | x_i) = GaPo(y_i; α0 + a(x_i; φ), (β0 + b(x_i; φ)) / n_i)."""
    family = ldf.Poisson()
    n = np.array([0.3, 2.5, 1000.0])
    natural = family.prior(0.5, 1.5) + family.natural(A_X, B_X)
    rate = (1.5 + B_X) / n
    known = st.nbinom(0.5 + A_X, rate / (1 + rate))  # GaPo(shape, rate)
    predictive = family.predictive(natural, exposure=n)
    for y in (0, 1, 5):
        close(predictive.log_prob(y), known.logpmf(y))
        close(family.log_predictive(natural, y, n), known.logpmf(y))
        close(predictive.cdf(y), known.cdf(y))
    close(predictive.mean(), known.mean())
    close(predictive.sd(), known.std())


def test_appendix_a_poisson_exposure_adds_to_the_rate():
    """Appendix A: y ~ Po(n_i θ) adds T_y = [y; n_i], so that Eq. A6 holds (the paper's +1 fails).

    So docs/decisions/0004-poisson-exposure.md: the posterior is Ga(α0 + a + y, β0 + b + n_i).
    """
    family = ldf.Poisson()
    seen = family.statistic(count=4, exposure=2.5)
    assert_natural(seen, (4.0, 2.5))
    prior = BY_NAME["poisson"].prior
    theta, log_weight = positive_grid()
    log_joint = st.gamma.logpdf(theta, 2.0, scale=1 / 3.0) + st.poisson.logpmf(4, 2.5 * theta)
    mean = np.exp(logsumexp(log_joint + log_weight + np.log(theta)))
    mean /= np.exp(logsumexp(log_joint + log_weight))
    close(family.posterior(prior + seen).mean(), mean)
    close(mean, 6.0 / 5.5)


def information_form(i: int, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h = J0 μ0 + h(x_i) and J = J0 + L(x_i) L(x_i)ᵀ by hand."""
    start = np.linalg.inv(COVARIANCE)
    lower = np.array([[outputs[i, 2], 0.0], outputs[i, 3:]])
    return start @ MEAN + outputs[i, :2], start + lower @ lower.T


LINEAR_OUTPUTS = np.array([[0.3, -0.8, 1.0, 0.2, -0.5], [2.0, 1.0, 0.0, 0.0, 0.0]])


def test_eq_a7_linear_gaussian_posterior():
    """Eq. A7: p(θ_i | x_i; φ) = N(θ_i; J⁻¹h, J⁻¹), h = J0 μ0 + h(x_i), J = J0 + L(x_i) L(x_i)ᵀ."""
    family = ldf.LinearGaussian(MAP, OFFSET, NOISE)
    aux = family.from_unconstrained(LINEAR_OUTPUTS, "counts")
    found = family.posterior(family.prior(MEAN, COVARIANCE) + aux)
    for i in range(2):
        h, j = information_form(i, LINEAR_OUTPUTS)
        known = st.multivariate_normal(np.linalg.solve(j, h), np.linalg.inv(j))
        close(found[i].log_prob(PLANE), known.logpdf(PLANE))
        close(found[i].mean(), known.mean)
        close(found[i].covariance(), known.cov)
        close(found[i].entropy(), known.entropy())


def test_eq_a8_linear_gaussian_predictive():
    """Eq. A8: p(y_i | x_i; φ) = N(y_i; A J⁻¹h + b, A J⁻¹ Aᵀ + noise covariance)."""
    family = ldf.LinearGaussian(MAP, OFFSET, NOISE)
    aux = family.from_unconstrained(LINEAR_OUTPUTS, "counts")
    natural = family.prior(MEAN, COVARIANCE) + aux
    y = np.array([1.0, -0.5, 0.8])
    predictive = family.predictive(natural)
    for i in range(2):
        h, j = information_form(i, LINEAR_OUTPUTS)
        mean = MAP @ np.linalg.solve(j, h) + OFFSET
        known = st.multivariate_normal(mean, MAP @ np.linalg.inv(j) @ MAP.T + NOISE)
        close(predictive[i].log_prob(y), known.logpdf(y))
        close(predictive[i].mean(), mean)
        close(predictive[i].covariance(), known.cov)
    close(family.log_predictive(natural, values=y), predictive.log_prob(y))


def test_appendix_a_linear_gaussian_full_posterior_by_the_kalman_gain():
    """Appendix A: adding T_y = (Aᵀ Σ⁻¹ (y − b), Aᵀ Σ⁻¹ A) is the update by the Kalman gain."""
    family = ldf.LinearGaussian(MAP, OFFSET, NOISE)
    y = np.array([1.0, -0.5, 0.8])
    found = family.posterior(family.prior(MEAN, COVARIANCE) + family.statistic(values=y))
    gain = COVARIANCE @ MAP.T @ np.linalg.inv(MAP @ COVARIANCE @ MAP.T + NOISE)
    close(found.mean(), MEAN + gain @ (y - MAP @ MEAN - OFFSET))
    close(found.covariance(), COVARIANCE - gain @ MAP @ COVARIANCE)
