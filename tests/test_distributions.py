"""Distributions of θ and of y against SciPy and brute force, at the ends and at scale."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.stats as ss

from ldf import distributions as d
from ldf.special import beta_binomial_log_pmf
from ldf.statistic import Arrivals, ClassCounts, Moments, Potential, Trials, VectorMoments

rng = np.random.default_rng(20)
A, B = 10 ** rng.uniform(-1, 3, 60), 10 ** rng.uniform(-1, 3, 60)
N = rng.integers(0, 200, 60).astype(float)
BETA, GAMMA = Trials(A, B), Arrivals(A, B)

CONTINUOUS: dict[str, tuple[Any, Any]] = {
    "Beta": (d.Beta(BETA), ss.beta(A, B)),
    "Gamma": (d.Gamma(GAMMA), ss.gamma(A, scale=1 / B)),
    "InverseGamma": (d.InverseGamma(GAMMA), ss.invgamma(A, scale=B)),
    "CompoundGamma": (d.CompoundGamma(GAMMA, N + 0.5), ss.betaprime(N + 0.5, A, scale=B)),
    "Gaussian": (d.Gaussian(Potential(A - 5, B)), ss.norm((A - 5) / B, B**-0.5)),
    "StudentT": (d.StudentT(A + 0.5, B, A), ss.t(A + 0.5, B, A)),
    "KnownValue": (
        d.KnownValue(
            ss.gamma,
            (A, 0 * A, 1 / B),
            np.maximum(A - 1, 0) / B,
            0.0,
            lambda x, shape, _, scale: (shape - 1) / x - 1 / scale,
        ),
        ss.gamma(A, scale=1 / B),
    ),
}
DISCRETE: dict[str, tuple[Any, Any]] = {
    "BetaBinomial": (d.BetaBinomial(BETA, N), ss.betabinom(N.astype(int), A, B)),
    "GammaPoisson": (d.GammaPoisson(GAMMA, N + 0.5), ss.nbinom(A, B / (B + N + 0.5))),
    "BetaNegativeBinomial": (
        d.BetaNegativeBinomial(Trials(A + 3, B), np.full(60, 4.0)),
        ss.betanbinom(4, A + 3, B),
    ),
    "KnownCount": (d.KnownCount(ss.poisson, (A,), np.floor(A)), ss.poisson(A)),
}
every_continuous = pytest.mark.parametrize("name", CONTINUOUS)
every_discrete = pytest.mark.parametrize("name", DISCRETE)
LEVELS = (0.001, 0.05, 0.5, 0.93, 0.999)


@every_continuous
def test_moments_and_entropy_equal_scipys(name: str) -> None:
    mine, theirs = CONTINUOUS[name]
    exists = np.isfinite(theirs.mean())
    if name == "StudentT":
        mine, theirs, exists = d.StudentT(A + 1.5, B, A), ss.t(A + 1.5, B, A), slice(None)
    np.testing.assert_allclose(mine.mean()[exists], theirs.mean()[exists], rtol=1e-10)
    spread = np.isfinite(theirs.std())
    np.testing.assert_allclose(mine.sd()[spread], theirs.std()[spread], rtol=1e-9)
    assert np.isinf(mine.sd()[~spread]).all()
    if name != "CompoundGamma":  # SciPy integrates it, and fails for many
        np.testing.assert_allclose(mine.entropy(), theirs.entropy(), rtol=1e-8, atol=1e-8)


def test_the_entropy_of_a_sum_of_waits_is_its_integral() -> None:
    mine = d.CompoundGamma(Arrivals(np.array(2.5), np.array(1.3)), np.array(3.0))
    theirs = ss.betaprime(3.0, 2.5, scale=1.3)
    log_x = np.arange(-30, 40, 0.01)
    density = theirs.pdf(np.exp(log_x))
    integral = -(density * np.log(density) * np.exp(log_x))[density > 0].sum() * 0.01
    assert mine.entropy() == pytest.approx(integral, rel=1e-8)


@every_continuous
def test_density_and_distribution_function_equal_scipys(name: str) -> None:
    mine, theirs = CONTINUOUS[name]
    for q in LEVELS:
        x = theirs.ppf(q)
        np.testing.assert_allclose(mine.log_prob(x), theirs.logpdf(x), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(mine.cdf(x), theirs.cdf(x), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(mine.exceeds(x), theirs.sf(x), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(mine.quantile(q), x, rtol=1e-8)


@every_continuous
def test_the_slope_is_the_derivative_of_the_log_density(name: str) -> None:
    mine, theirs = CONTINUOUS[name]
    low, high = theirs.ppf(0.4), theirs.ppf(0.4001)
    keep = high - low > 1e-12
    rise = (mine.log_prob(high) - mine.log_prob(low)) / np.where(keep, high - low, 1)
    slope = mine.slope((low + high) / 2)
    np.testing.assert_allclose(rise[keep], slope[keep], rtol=1e-3, atol=1e-2)


@every_continuous
@pytest.mark.parametrize("mass", [0.2, 0.9, 0.999])
def test_no_other_interval_of_the_mass_is_narrower(name: str, mass: float) -> None:
    mine, theirs = CONTINUOUS[name]
    lower, upper = mine.interval(mass)
    held = theirs.cdf(upper) - theirs.cdf(lower)
    at_an_end = (lower == theirs.support()[0]) | (upper == theirs.support()[1])
    np.testing.assert_allclose(held[~at_an_end], mass, rtol=1e-8)
    assert (held >= mass * (1 - 1e-8)).all()  # an end may be the next float there is
    for below in np.linspace(0, 1 - mass, 41):
        width = theirs.ppf(below + mass) - theirs.ppf(below)
        assert (upper - lower <= width * (1 + 1e-8) + 1e-14).all()


@every_continuous
def test_the_mode_is_where_the_density_is_highest(name: str) -> None:
    mine, theirs = CONTINUOUS[name]
    mode = mine.mode()
    for q in np.linspace(0.02, 0.98, 25):
        elsewhere = mine.log_prob(theirs.ppf(q))
        assert (mine.log_prob(mode) >= elsewhere - 1e-9)[np.isfinite(mode)].all()


@every_discrete
def test_masses_equal_scipys(name: str) -> None:
    mine, theirs = DISCRETE[name]
    for k in (0, 1, 7, 60, 500):
        np.testing.assert_allclose(mine.log_prob(k), theirs.logpmf(k), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(mine.cdf(k), theirs.cdf(k), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(mine.mean(), theirs.mean(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine.sd(), theirs.std(), rtol=1e-8, atol=1e-12)
    for k in (-1, 2.5):
        assert (mine.log_prob(k) == -np.inf).all()
    assert (mine.cdf(-1) == 0).all()


@every_discrete
def test_quantiles_of_counts_are_the_first_that_reach_the_level(name: str) -> None:
    mine, theirs = DISCRETE[name]
    for q in LEVELS:
        k = mine.quantile(q)
        assert (theirs.cdf(k) >= q - 1e-12).all()
        assert (theirs.cdf(k - 1) < q + 1e-12).all()


@every_discrete
@pytest.mark.parametrize("mass", [0.5, 0.9])
def test_no_smaller_set_of_neighbouring_counts_holds_the_mass(name: str, mass: float) -> None:
    mine, theirs = DISCRETE[name]
    lower, upper = mine.interval(mass)
    held = theirs.cdf(upper) - theirs.cdf(lower - 1)
    assert (held >= mass - 1e-10).all()
    size = upper - lower  # one value fewer, wherever it starts, holds less
    near = np.arange(-12, 13)
    for start in [lower + i for i in near] + [mine.mode() - size // 2 + i for i in near]:
        start = np.maximum(start, 0)
        smaller = theirs.cdf(start + size - 1) - theirs.cdf(start - 1)
        assert (smaller[size > 0] < mass + 1e-10).all()


def test_a_u_shaped_count_has_its_narrowest_set_at_an_end() -> None:
    lower, upper = d.BetaBinomial(
        Trials(np.array([0.1]), np.array([0.2])), np.array([20.0])
    ).interval(0.6)
    assert (lower[0], upper[0]) == (0, 2) or lower[0] == 0


def test_a_flat_density_keeps_the_middle() -> None:
    lower, upper = d.Beta(Trials(np.ones(3), np.ones(3))).interval(0.9)
    np.testing.assert_allclose(upper - lower, 0.9)
    np.testing.assert_allclose(lower, 0.05)


def test_counts_of_half_a_million_trials_have_a_distribution_function() -> None:
    n, a, b = 500_000, 3.7, 8.1
    counts = d.BetaBinomial(Trials(np.array([a]), np.array([b])), np.array([float(n)]))
    rate = ss.beta(a, b)
    k = np.array([150_000.0])
    smooth = rate.cdf((k + 0.5) / n)  # a count of so many trials is nearly its rate
    assert counts.cdf(k) == pytest.approx(smooth, abs=2e-6)
    exact = np.exp(beta_binomial_log_pmf(np.arange(1001.0), n - np.arange(1001.0), a, b)).sum()
    assert counts.cdf(np.array([1000.0])) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("concentration", [1e-6, 1.0, 1e6, 1e12, 1e15])
def test_entropy_and_divergence_keep_their_digits(concentration: float) -> None:
    """Against mpmath, where sums of log-gammas have none left."""
    mpmath.mp.dps = 60
    a, b = (mpmath.mpf(float(r * concentration)) for r in (0.3, 0.7))
    c, e = (mpmath.mpf(float(r * concentration)) for r in (0.3000001, 0.69))
    log_beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    psi, total = mpmath.digamma, a + b
    entropy = log_beta - (a - 1) * psi(a) - (b - 1) * psi(b) + (total - 2) * psi(total)
    other = mpmath.loggamma(c) + mpmath.loggamma(e) - mpmath.loggamma(c + e)
    between = other - log_beta + (a - c) * psi(a) + (b - e) * psi(b) + (c + e - total) * psi(total)
    mine = d.Beta(Trials(np.array(float(a)), np.array(float(b))))
    theirs = d.Beta(Trials(np.array(float(c)), np.array(float(e))))
    assert mine.entropy() == pytest.approx(float(entropy), rel=1e-12, abs=1e-12)
    assert mine.divergence(theirs) == pytest.approx(float(between), rel=1e-9, abs=1e-12)
    vector = d.Dirichlet(ClassCounts(np.array([float(a), float(b)])))
    other_vector = d.Dirichlet(ClassCounts(np.array([float(c), float(e)])))
    assert vector.entropy() == pytest.approx(float(entropy), rel=1e-11, abs=1e-11)
    assert vector.divergence(other_vector) == pytest.approx(float(between), rel=1e-6, abs=1e-9)

    rate = mpmath.loggamma(a) + a - mpmath.log(b) + (1 - a) * psi(a)
    gamma = d.Gamma(Arrivals(np.array(float(a)), np.array(float(b))))
    assert gamma.entropy() == pytest.approx(float(rate), rel=1e-12, abs=1e-12)
    moved = mpmath.loggamma(c) - mpmath.loggamma(a) + (a - c) * psi(a)
    moved += c * mpmath.log(b / e) + a * (e - b) / b
    other_gamma = d.Gamma(Arrivals(np.array(float(c)), np.array(float(e))))
    assert gamma.divergence(other_gamma) == pytest.approx(float(moved), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("concentration", [1e6, 1e12, 1e15])
def test_a_density_keeps_its_digits(concentration: float) -> None:
    mpmath.mp.dps = 60
    a, b = 0.3 * concentration, 0.7 * concentration
    sd = np.sqrt(0.21 / concentration)
    for off in (0.0, 1.0, -5.0):
        x = 0.3 + off * sd
        xm, am, bm = mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(b)
        beta = (am - 1) * mpmath.log(xm) + (bm - 1) * mpmath.log(1 - xm)
        beta -= mpmath.loggamma(am) + mpmath.loggamma(bm) - mpmath.loggamma(am + bm)
        mine = d.Beta(Trials(np.array(a), np.array(b))).log_prob(x)
        # 1 − x is rounded: at 1e15 the density itself moves by 1e-16/sd · off.
        assert mine == pytest.approx(float(beta), abs=1e-16 / sd * 100 + 1e-9)
        gamma = am * mpmath.log(bm) - mpmath.loggamma(am) + (am - 1) * mpmath.log(xm) - bm * xm
        mine = d.Gamma(Arrivals(np.array(a), np.array(b))).log_prob(x)
        assert mine == pytest.approx(float(gamma), rel=1e-11, abs=1e-9)


def test_intervals_at_the_extremes_are_finite_and_hold_their_mass() -> None:
    a = np.array([1e-8, 1e-3, 1.0, 1.0001, 3e14, 1e-3, 2.0])
    b = np.array([1.0, 1e-3, 5.0, 1e6, 7e14, 1e5, 1e-3])
    posterior = d.Beta(Trials(a, b))
    lower, upper = posterior.interval(0.9)
    assert ((lower >= 0) & (upper <= 1) & (lower <= upper)).all()
    held = posterior.cdf(upper) - np.where(lower > 0, posterior.cdf(lower), 0)
    inner = (a > 1e-2) & (b > 1e-2)  # where a float next to an end does not hold more by itself
    np.testing.assert_allclose(held[inner], 0.9, rtol=1e-6)
    sd = np.sqrt(0.21 / 1e15)
    np.testing.assert_allclose(
        [lower[4], upper[4]], 0.3 + sd * ss.norm.ppf([0.05, 0.95]), rtol=1e-8
    )


def test_draws_agree_with_their_distribution() -> None:
    for name, (mine, _) in {**CONTINUOUS, **DISCRETE}.items():
        draws = mine[:8].sample(4000, seed=3)
        assert draws.shape == (4000, 8), name
        for q in (0.1, 0.5, 0.9):
            edge = mine[:8].quantile(q)
            share = (draws <= edge).mean(0)
            at = mine[:8].cdf(edge)
            error = np.sqrt(at * (1 - at) / 4000)
            assert (abs(share - at) <= 5 * error + 1e-3).all(), name
    again = d.Beta(BETA).sample(3, seed=1)
    np.testing.assert_array_equal(again, d.Beta(BETA).sample(3, seed=1))


def test_draws_of_a_tiny_concentration_do_not_vanish() -> None:
    draws = d.Beta(Trials(np.array([1e-5]), np.array([2e-5]))).sample(4000, seed=0)
    assert np.isfinite(draws).all()
    assert draws.mean() == pytest.approx(1 / 3, abs=0.04)


def test_vectors_of_counts_are_drawn_with_their_moments() -> None:
    predictive = d.DirichletMultinomial(ClassCounts(np.array([[2.0, 3.0, 5.0]])), np.array([12.0]))
    draws = predictive.sample(20_000, seed=5)[:, 0]
    assert (draws.sum(-1) == 12).all()
    theirs = ss.dirichlet_multinomial([2.0, 3.0, 5.0], 12)
    np.testing.assert_allclose(draws.mean(0), theirs.mean(), atol=0.08)
    np.testing.assert_allclose(np.cov(draws.T), theirs.cov(), atol=0.2)
    np.testing.assert_allclose(predictive.mean()[0], theirs.mean())
    np.testing.assert_allclose(predictive.sd()[0] ** 2, np.diag(theirs.cov()))


def test_marginals_of_mean_and_variance_are_those_of_the_joint_draws() -> None:
    joint = d.NormalInverseGamma(Moments.prior(1.0, 4.0, 2.0, 9.0))
    draws = joint.sample(20_000, seed=2)
    for column, name in enumerate(("mean", "variance")):
        marginal = joint.marginal(name)
        assert ss.kstest(draws[:, column], lambda x, m=marginal: m.cdf(x)).pvalue > 1e-4
    np.testing.assert_allclose(joint.mean(), draws.mean(0), atol=0.05)

    words = {"mean": np.array([1.0, -1.0]), "mean_n": 4.0, "variance_n": 9.0}
    vector = d.NormalInverseWishart(VectorMoments.prior(variance=[[2.0, 0.3], [0.3, 1.0]], **words))
    means, covariances = vector.sample(20_000, seed=2)
    of_mean, of_variance = vector.marginal("mean"), vector.marginal("variance")
    for j in range(2):
        assert ss.kstest(means[:, j], of_mean.marginal(j).cdf).pvalue > 1e-4
        assert ss.kstest(covariances[:, j, j], of_variance.marginal(j).cdf).pvalue > 1e-4
    np.testing.assert_allclose(covariances.mean(0), of_variance.mean(), atol=0.06)
    np.testing.assert_allclose(covariances.std(0), of_variance.sd(), rtol=0.15)
    # E[mean² given covariance]: the mean's spread is the covariance over mean_n.
    np.testing.assert_allclose(np.cov(means.T), covariances.mean(0) / 4.0, atol=0.04)
    for _ in range(2):  # a sequence is the same seed, however often it is used
        again, _ = vector.sample(20_000, np.random.SeedSequence(2))
        np.testing.assert_array_equal(again, means)


def test_everything_runs_under_jit_and_gives_jax_arrays() -> None:
    single = Trials(jnp.asarray(A, jnp.float32), jnp.asarray(B, jnp.float32))

    @jax.jit
    def summary(natural: Trials) -> dict[str, Any]:
        posterior = d.Beta(natural)
        counts = d.BetaBinomial(natural, jnp.full(60, 20.0))
        return {
            "mean": posterior.mean(),
            "quantile": posterior.quantile(0.3),
            "lower": posterior.interval(0.9)[0],
            "entropy": posterior.entropy(),
            "cdf": counts.cdf(jnp.full(60, 7.0)),
            "count": counts.quantile(0.5),
            "draw": posterior.sample(1, jax.random.key(0))[0],
        }

    found = summary(single)
    assert all(isinstance(v, jax.Array) and v.dtype == jnp.float32 for v in found.values())
    posterior, counts = d.Beta(BETA), d.BetaBinomial(BETA, np.full(60, 20.0))
    np.testing.assert_allclose(found["mean"], posterior.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["quantile"], posterior.quantile(0.3), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found["lower"], posterior.interval(0.9)[0], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found["entropy"], posterior.entropy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["cdf"], counts.cdf(np.full(60, 7.0)), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found["count"], counts.quantile(0.5))
    jax.vmap(lambda a, b: d.Beta(Trials(a, b)).quantile(0.3))(single.successes, single.failures)


def test_a_million_posteriors_have_intervals_without_a_loop_over_them() -> None:
    """A tenth of a million here; `make bench-numerics` times a million beside SciPy."""
    many = np.random.default_rng(0)
    a, b = 10 ** many.uniform(-1, 4, 100_000), 10 ** many.uniform(-1, 4, 100_000)
    for posterior in (d.Beta(Trials(a, b)), d.Gamma(Arrivals(a, b))):
        lower, upper = posterior.interval(0.9)
        held = posterior.cdf(upper) - posterior.cdf(lower)
        np.testing.assert_allclose(held, 0.9, atol=1e-7)
