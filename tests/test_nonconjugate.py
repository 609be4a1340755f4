"""Primary data that do not add: misreported, zero-inflated and censored counts, one's own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from scipy.special import expit, gammaln, log_expit, logsumexp

import ldf
from ldf.distributions import OnNodes, mixture
from ldf.distributions.quadrature import LogRate, Mean, Odds
from ldf.families.base import inner
from ldf.infer import theta_nuts
from ldf.infer.gamma_draws import effective_draws
from ldf.infer.theta_nuts import ThetaDraws
from ldf.statistic import Arrivals, ClassCounts, Potential, Trials
from units import LINES, ONE

SURVEY = ldf.Misreported(sensitivity=0.9, specificity=0.95)
ALL = np.ones(1, bool)


def mpmath_log_predictive(a: float, b: float, k: int, n: int, se: float, sp: float) -> float:
    """The integral with twenty digits, in pieces: on log odds, where the ends are far away."""
    with mpmath.workdps(20):
        a, b = mpmath.mpf(a), mpmath.mpf(b)

        def integrand(u: Any) -> Any:
            yes, no = 1 / (1 + mpmath.exp(-u)), 1 / (1 + mpmath.exp(u))
            p = se * yes + (1 - sp) * no
            q = (1 - se) * yes + sp * no
            return yes**a * no**b * p**k * q ** (n - k)

        peak, width = mpmath.log(a / b), min(1, 1 / mpmath.sqrt(a * b / (a + b)))
        near = [4 * width * d for d in range(7)] + [d + 24 * width for d in (1, 3, 6, 12, 25)]
        left, right = 60 / a + 30, 60 / b + 30
        far = [-left, -left / 4, *near, *(-d for d in near), right / 4, right]
        places = sorted({peak + d for d in far if -left <= d <= right})
        most = max(integrand(u) for u in places)  # its rule stops at an absolute error
        total = mpmath.quad(lambda u: integrand(u) / most, places, maxdegree=8)
        return float(mpmath.log(total * most * mpmath.binomial(n, k) / mpmath.beta(a, b)))


HARD = [
    (0.5, 0.5, 3, 10),
    (0.01, 0.01, 0, 5),  # next to no pseudo-observations: tails that never end
    (0.01, 300.0, 2, 40),
    (40.0, 3.0, 0, 60),  # data against the prior
    (3.0, 400.0, 150, 900),  # a ridge between what the prior and what the reports say
    (2000.0, 6000.0, 0, 30),
    (1.0, 1.0, 0, 0),
]


def test_the_predictive_is_the_integral() -> None:
    """Against mpmath, to 1e-10."""
    a, b, k, n = np.array(HARD).T
    found = SURVEY.log_predictive(SURVEY.prior(a, b), k, n)
    wanted = [mpmath_log_predictive(*row, 0.9, 0.95) for row in HARD]
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def draws(rows: int, most: float = 6.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    a, b = 10 ** rng.uniform(-2, most, (2, rows))
    n = rng.integers(0, 4000, rows)
    return a, b, rng.binomial(n, rng.beta(0.5, 0.5, rows)), n


def test_without_errors_reports_are_successes() -> None:
    a, b, k, n = draws(64)
    prior = SURVEY.prior(a, b)
    found = ldf.Misreported(1.0, 1.0).log_predictive(prior, k, n)
    np.testing.assert_allclose(found, ldf.Binomial().log_predictive(prior, k, n), rtol=1e-10)


def exact_by_true_positives(a: float, b: float, k: int, n: int, se: float, sp: float) -> float:
    """Σ over how many have it, of whom some say so, and of the others some do too."""
    true = np.arange(n + 1)
    terms = []
    for j in true:
        said = np.arange(max(0, k - (n - j)), min(j, k) + 1)
        both = scipy.stats.binom.logpmf(said, j, se)
        both = both + scipy.stats.binom.logpmf(k - said, n - j, 1 - sp)
        terms.append(logsumexp(both) + scipy.stats.betabinom.logpmf(j, n, a, b))
    return float(logsumexp(terms))


def test_misreporting_is_a_sum_over_true_positives() -> None:
    rows = [(2.0, 5.0, 9, 30), (0.3, 0.2, 0, 25), (30.0, 4.0, 25, 25), (1.0, 9.0, 12, 20)]
    a, b, k, n = np.array(rows).T
    found = SURVEY.log_predictive(SURVEY.prior(a, b), k, n)
    wanted = [exact_by_true_positives(*row, 0.9, 0.95) for row in rows]
    np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_rows_may_have_errors_of_their_own() -> None:
    family, prior = ldf.Misreported(), SURVEY.prior(2.0, 3.0)
    rates = {"sensitivity": [0.9, 1.0], "specificity": [0.95, 1.0]}
    found = family.log_predictive(prior, [4, 4], [9, 9], **rates)
    one, plain = SURVEY.log_predictive(prior, 4, 9), ldf.Binomial().log_predictive(prior, 4, 9)
    np.testing.assert_allclose(found, [one, plain], atol=1e-12)


# --- derivatives and float32 --------------------------------------------------------------------


@jax.jit
def scores_and_slopes(x: Any, k: Any, n: Any) -> Any:
    """Of each row, by the logarithms of a and b, which is how they are learned."""

    def total(x: Any) -> Any:
        prior = Trials(jnp.exp(x[0]), jnp.exp(x[1]))
        each = SURVEY.log_predictive(prior, successes=k, trials=n)
        return each.sum(), each

    slope, each = jax.grad(total, has_aux=True)(x)
    return each, slope


def of_rows(rows: Any, dtype: Any) -> Any:
    a, b, k, n = (jnp.asarray(v, dtype) for v in rows)
    return scores_and_slopes(jnp.log(jnp.stack([a, b])), k, n)


def test_derivatives_are_those_of_differences() -> None:
    a, b, k, n = draws(64, 3.0)
    n = n // 20
    k, step = np.minimum(k, n), 1e-4
    with jax.enable_x64(True):
        _, found = of_rows((a, b, k, n), jnp.float64)
    for i, grown in enumerate(np.exp(step * np.eye(2))):
        high = SURVEY.log_predictive(SURVEY.prior(a * grown[0], b * grown[1]), k, n)
        low = SURVEY.log_predictive(SURVEY.prior(a / grown[0], b / grown[1]), k, n)
        np.testing.assert_allclose(found[i], (high - low) / (2 * step), rtol=1e-5, atol=1e-6)


def test_float32_learns_what_float64_would() -> None:
    rows = draws(64)
    with jax.enable_x64(True):
        exact, slope = of_rows(rows, jnp.float64)
    rough, found = of_rows(rows, jnp.float32)
    assert rough.dtype == jnp.float32
    np.testing.assert_allclose(rough, exact, rtol=1e-5, atol=2e-3)
    np.testing.assert_allclose(found, slope, rtol=2e-3, atol=2e-3)


def test_the_prior_is_followed_far_enough() -> None:
    """Outside of the reach the density has fallen by as much as was asked for."""
    with jax.enable_x64(True):
        grown = 10 ** np.random.default_rng(0).uniform(-3, 7, (2, 2000))
        a, b = (jnp.asarray(v) for v in grown)
        lines = (Odds(Trials(a, b)), LogRate(Arrivals(a, b)), Mean(Potential(a, b)))
        for line in lines:
            for drop in (1e-3, 1.0, 42.0, 900.0):
                low, high = line.reach(jnp.full_like(a, drop))
                fall = np.asarray(line.height(jnp.stack([low, high], -1))[0])
                assert (fall <= -drop * (1 - 1e-6)).all()


def test_the_line_holds_all_of_the_prior() -> None:
    """log_density is that of the named distribution, on the other scale."""
    a, b = np.array([0.3, 5.0, 4e4]), np.array([2.0, 0.1, 2e5])
    x = np.array([-2.0, -0.3, 0.0, 1e-3, 0.4]) * np.minimum(1, 6 / np.sqrt(a))[:, None]
    with jax.enable_x64(True):
        odds = Odds(Trials(jnp.asarray(a), jnp.asarray(b)))
        rate = LogRate(Arrivals(jnp.asarray(a), jnp.asarray(b)))
        theta, rest = (np.asarray(v) for v in odds.theta(jnp.asarray(x)))
        wanted = scipy.stats.beta.logpdf(theta, a[:, None], b[:, None]) + np.log(theta * rest)
        np.testing.assert_allclose(odds.log_density(jnp.asarray(x)), wanted, rtol=1e-7, atol=1e-7)
        theta = np.asarray(rate.theta(jnp.asarray(x))[0])
        wanted = scipy.stats.gamma.logpdf(theta, a[:, None], scale=1 / b[:, None]) + np.log(theta)
        np.testing.assert_allclose(rate.log_density(jnp.asarray(x)), wanted, rtol=1e-7, atol=1e-7)


# --- posteriors and predictives -----------------------------------------------------------------

PRIORS = SURVEY.prior([0.5, 2.0, 5e3, 30.0], [0.7, 30.0, 5e3, 1.0])
SEEN = {"successes": np.array([4.0, 3.0, 20.0, 0.0]), "trials": np.array([10.0, 40.0, 30.0, 25.0])}


def brute_force(row: int) -> tuple[np.ndarray, np.ndarray, float]:
    """θ and its posterior masses on a fine grid of log odds, and its step."""
    a, b = float(PRIORS.successes[row]), float(PRIORS.failures[row])
    wide = 60 / min(a, b, 1) if a < 1e3 else 0.3
    u = np.log(a / b) + np.linspace(-1, 1, 400_001) * wide
    p = 0.9 * expit(u) + 0.05 * expit(-u)
    logs = a * log_expit(u) + b * log_expit(-u)
    logs = logs + scipy.stats.binom.logpmf(SEEN["successes"][row], SEEN["trials"][row], p)
    mass = np.exp(logs - logs.max())
    return expit(u), mass / mass.sum(), wide / 200_000


@pytest.fixture(scope="module")
def posterior() -> OnNodes:
    return SURVEY.posterior(SURVEY.after(PRIORS, SEEN, np.ones(4, bool)))


def test_the_posterior_is_that_of_a_fine_grid(posterior: OnNodes) -> None:
    for row in range(4):
        theta, mass, step = brute_force(row)
        mean = mass @ theta
        assert posterior.mean()[row] == pytest.approx(mean, rel=1e-9)
        assert posterior.sd()[row] == pytest.approx(np.sqrt(mass @ (theta - mean) ** 2), rel=1e-8)
        middle = np.cumsum(mass) - mass / 2
        for q in (0.02, 0.4, 0.93):
            at = np.interp(q, middle, theta)
            assert posterior.quantile(q)[row] == pytest.approx(at, rel=1e-5, abs=1e-9)
            assert posterior.cdf(at)[row] == pytest.approx(q, abs=1e-5)
            assert posterior.exceeds(at)[row] == pytest.approx(1 - q, abs=1e-5)
        i = 200_000
        density = mass[i] / (step * theta[i] * (1 - theta[i]))
        assert posterior[row].log_prob(theta[i]) == pytest.approx(np.log(density), abs=1e-8)
        there = (mass > 1e-25) & (theta < 1)
        by_theta = mass[there] / (step * theta[there] * (1 - theta[there]))
        surprise = -(mass[there] @ np.log(by_theta))
        assert posterior.entropy()[row] == pytest.approx(surprise, abs=1e-6)


def test_the_posterior_agrees_with_itself(posterior: OnNodes) -> None:
    q = np.array([0.001, 0.2, 0.5, 0.9, 0.9999])[:, None]
    np.testing.assert_allclose(posterior.cdf(posterior.quantile(q)), q + np.zeros(4), atol=1e-12)
    low, high = posterior.interval(0.8)
    np.testing.assert_allclose(posterior.cdf(high) - posterior.cdf(low), 0.8, atol=1e-6)
    # The slope is the derivative of the log density, and zero at an inner mode.
    at, step = posterior.quantile(0.3), 1e-5 * posterior.sd()
    rise = (posterior.log_prob(at + step) - posterior.log_prob(at - step)) / (2 * step)
    np.testing.assert_allclose(posterior.slope(at), rise, rtol=1e-4, atol=1e-4)
    inner = posterior.mode()[1:3]
    assert (np.abs(posterior[1:3].slope(inner)) * posterior.sd()[1:3] < 1e-6).all()
    assert posterior.mode()[0] == 0  # high at both ends, and 0.5 < 0.7
    drawn = posterior.sample(4000, seed=0)
    assert (np.abs(drawn.mean(0) - posterior.mean()) < 5 * posterior.sd() / np.sqrt(4000)).all()


def test_where_nothing_was_seen_it_is_the_prior() -> None:
    """Every answer beside that of the Beta; nodes know no names."""
    of = SURVEY.posterior(SURVEY.after(PRIORS, SEEN, np.array([True, True, False, False])))[2:]
    beta = SURVEY.posterior(PRIORS)[2:]
    for answer in ("mean", "sd", "mode", "entropy"):
        found, wanted = getattr(of, answer)(), getattr(beta, answer)()
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(of.quantile(0.1), beta.quantile(0.1), rtol=1e-9)
    np.testing.assert_allclose(of.log_prob([0.51, 0.97]), beta.log_prob([0.51, 0.97]), rtol=1e-8)
    np.testing.assert_allclose(of.interval(0.9), beta.interval(0.9), rtol=1e-5)
    assert of.log_prob(1.0)[1] == pytest.approx(beta.log_prob(1.0)[1], rel=1e-6)  # Be(30, 1)


def test_far_from_all_data_the_density_is_a_power(posterior: OnNodes) -> None:
    """Beyond the panels: θ^(a − 1) near zero, where nothing of the likelihood changes any more."""
    a, b = np.array([0.5, 2.0]), np.array([0.7, 30.0])
    k, n = SEEN["successes"][:2], SEEN["trials"][:2]
    evidence = SURVEY.log_predictive(PRIORS[:2], k, n)
    for theta in (1e-6, 1e-20, 1e-80, 1e-250):
        wanted = scipy.stats.beta.logpdf(theta, a, b) + scipy.stats.binom.logpmf(k, n, 0.05)
        found = posterior[:2].log_prob(theta)
        np.testing.assert_allclose(found, wanted - evidence, atol=1e-3)
        np.testing.assert_allclose(posterior[:2].slope(theta) * theta, a - 1, atol=1e-3)


def test_a_rate_may_be_one_to_the_last_digit() -> None:
    """So much mass next to the end of the support that no float lies between."""
    prior = SURVEY.prior([[4.75, 9.28], [6.0, 7.85]], [[0.0106, 2.06], [0.0166, 1.005]])
    y = {"successes": np.array([22.0, 19.0]), "trials": np.array([23.0, 20.0])}
    each = SURVEY.posterior(SURVEY.after(prior, y, np.ones(2, bool)))
    assert np.isnan(each.slope(1.0)).all()
    both = mixture([0.5, 0.5], each)
    low, high = both.interval(0.9)
    np.testing.assert_allclose(both.cdf(high) - both.cdf(low), 0.9, atol=1e-5)
    assert low[0] > 0.99
    assert high[0] == 1.0
    # None narrower, of those between two quantiles.
    start = np.linspace(0, 0.1, 101)[:, None]
    width = both.quantile(np.minimum(start + 0.9, 1.0)) - both.quantile(start)
    assert (high - low <= width.min(0) + 1e-9).all()


def test_posteriors_on_nodes_mix(posterior: OnNodes) -> None:
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), posterior)
    both = mixture([0.25, 0.75], stacked)
    np.testing.assert_allclose(both.mean(), posterior.mean(), rtol=1e-12)
    np.testing.assert_allclose(both.quantile(0.3), posterior.quantile(0.3), rtol=1e-8)
    np.testing.assert_allclose(both.entropy(), posterior.entropy(), atol=1e-5)
    np.testing.assert_allclose(both.interval(0.9), posterior.interval(0.9), atol=1e-4)
    assert both.sample(7, seed=0).shape == (7, 4)


def test_the_predictive_sums_to_one_and_scores_as_it_should() -> None:
    trials, k = np.array([10, 40, 30, 25]), np.arange(41)[:, None]
    law = SURVEY.predictive(PRIORS, trials)
    logs = law.log_prob(k)
    np.testing.assert_allclose(np.exp(logs).sum(0), 1.0, atol=1e-12)
    wanted = SURVEY.log_predictive(PRIORS[None], np.minimum(k, trials), trials + 0 * k)
    np.testing.assert_allclose(logs[k <= trials], wanted[k <= trials], atol=1e-8)
    assert np.isneginf(logs[k > trials]).all()
    middle = law.quantile(0.5)
    assert ((law.cdf(middle) >= 0.5) & (law.cdf(middle - 1) < 0.5)).all()
    rate = 0.9 * 15 / 46 + 0.05 * 31 / 46  # means are linear in θ
    many = SURVEY.predictive(SURVEY.prior(15.0, 31.0), 900)
    assert many.mean() == pytest.approx(900 * rate, rel=1e-10)
    assert many.mass.sum() == pytest.approx(1, abs=1e-12)


def test_further_reports_after_some() -> None:
    """p(ỹ | y) = p(ỹ, y) / p(y), where reports of both are one report but for how they divide."""
    prior = SURVEY.prior([2.0], [5.0])
    known = SURVEY.after(prior, {"successes": np.array([3.0]), "trials": np.array([9.0])}, ALL)
    law, k = SURVEY.predictive(known, 6), np.arange(7)
    joint = SURVEY.log_predictive(prior, 3 + k, 15) - SURVEY.log_predictive(prior, 3, 9)
    pairs = ((k, 6), (3, 9), (3 + k, 15))
    orders = [gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1) for j, n in pairs]
    wanted = joint + orders[0] + orders[1] - orders[2]
    np.testing.assert_allclose(law.log_prob(k[:, None])[:, 0], wanted, atol=1e-9)


# --- counts -------------------------------------------------------------------------------------

COUNTS = ldf.Poisson.prior([0.4, 3.0, 900.0], [0.5, 2.0, 40.0])
THREE = np.ones(3, bool)


def test_without_structural_zeros_counts_are_poisson() -> None:
    y, n = np.array([0, 4, 70]), np.array([1.0, 2.5, 3.0])
    found = ldf.ZeroInflatedPoisson(0.0).log_predictive(COUNTS, y, n)
    np.testing.assert_allclose(found, ldf.Poisson().log_predictive(COUNTS, y, n), rtol=1e-13)


def test_counts_by_quadrature_are_the_exact_sums() -> None:
    """Both at once, as if only log p(y | θ) were known: zero-inflated, small counts suppressed."""
    y, n = np.array([0, 4, 70]), np.array([1.0, 2.5, 3.0])

    def log_likelihood(theta: Any, count: Any, exposure: Any) -> Any:
        few = jnp.arange(1.0, 10.0).reshape(-1, *[1] * jnp.ndim(theta))

        def poisson(number: Any) -> Any:
            mean = exposure * theta
            return jax.scipy.special.xlogy(number, mean) - mean - jax.lax.lgamma(number + 1)

        none = jnp.logaddexp(jnp.log(0.3), jnp.log(0.7) + poisson(0.0 * count))
        some = jax.nn.logsumexp(poisson(few + 0 * count), 0)
        return jnp.where(count == 0, none, jnp.where(count < 10, some, poisson(count)))

    own = ldf.NonConjugate(ldf.Poisson(), log_likelihood)
    exact = [ldf.ZeroInflatedPoisson(0.3), ldf.CensoredPoisson(1, 9), ldf.Poisson()]
    found = own.log_predictive(COUNTS, y, n)
    posterior = own.posterior(own.after(COUNTS, {"count": y, "exposure": n}, THREE))
    for i, family in enumerate(exact):
        row, at = slice(i, i + 1), {"count": y[i : i + 1], "exposure": n[i : i + 1]}
        assert found[i] == pytest.approx(family.log_predictive(COUNTS[row], **at)[0], rel=1e-10)
        wanted = family.posterior(family.after(COUNTS[row], at, ALL))
        assert posterior.mean()[i] == pytest.approx(wanted.mean()[0], rel=1e-9)
        assert posterior.sd()[i] == pytest.approx(wanted.sd()[0], rel=1e-8)
        assert posterior.quantile(0.8)[i] == pytest.approx(wanted.quantile(0.8)[0], rel=1e-7)


@pytest.mark.parametrize("family", [ldf.ZeroInflatedPoisson(0.3), ldf.CensoredPoisson(1, 9)])
def test_derivatives_of_sums_are_those_of_differences(family: Any) -> None:
    y, n, step = np.array([0.0, 4.0, 70.0]), np.array([1.0, 2.5, 3.0]), 1e-5

    def each(grown: Any) -> Any:
        return family.log_predictive(COUNTS * grown, y, n)

    def total(x: Any) -> Any:
        natural = Arrivals(x * COUNTS.count, x * COUNTS.exposure)
        return family.log_predictive(natural, y, n).sum()

    with jax.enable_x64(True):
        found = jax.jit(jax.grad(total))(jnp.ones(3))
    wanted = (each(1 + step) - each(1 - step)) / (2 * step)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_zero_inflated_predictives() -> None:
    family, y = ldf.ZeroInflatedPoisson(0.3), np.arange(400)[:, None]
    law = family.predictive(COUNTS, [1.0, 2.0, 0.5])
    logs = law.log_prob(y)
    wanted = family.log_predictive(COUNTS[None], y + np.zeros(3), [1.0, 2.0, 0.5] + 0.0 * y)
    np.testing.assert_allclose(logs, wanted, atol=1e-11)
    np.testing.assert_allclose(np.exp(logs).sum(0), 1.0, atol=1e-9)
    low, high = law.interval(0.9)
    assert (law.cdf(high) - law.cdf(low - 1) >= 0.9 - 1e-12).all()
    # After a zero: which of both ways it came about is not known.
    known = family.after(COUNTS, {"count": np.zeros(3), "exposure": np.ones(3)}, THREE)
    after = family.posterior(known).mean()
    assert (after < ldf.Poisson().posterior(COUNTS).mean()).all()
    np.testing.assert_allclose(family.predictive(known, 2.0).mean(), 0.7 * 2 * after, rtol=1e-12)
    at = family.likelihood(np.array([3.0]), 2.0)
    wanted = family.log_likelihood(np.array([3.0]), 0, 2.0)
    np.testing.assert_allclose(at.log_prob(0), wanted, rtol=1e-12)


def test_the_share_of_zeros_is_learned() -> None:
    rng = np.random.default_rng(0)
    exposure, theta = rng.uniform(1, 4, 1500), rng.gamma(5.0, 0.6, 1500)
    count = rng.poisson(exposure * theta)
    inflated = count * (rng.random(1500) > 0.25)
    found = ldf.ZeroInflatedPoisson.learned(inflated, exposure).zeros
    assert found == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 1500))
    assert ldf.ZeroInflatedPoisson.learned(count, exposure).zeros < 0.02


def test_a_suppressed_cell_is_any_of_its_counts() -> None:
    family = ldf.CensoredPoisson(lower=0, upper=9)
    found = family.log_predictive(COUNTS, 5, 2.0)
    each = ldf.Poisson().log_predictive(COUNTS[None], np.arange(10)[:, None], 2.0)
    np.testing.assert_allclose(found, logsumexp(each, 0), rtol=1e-13)
    plain = ldf.Poisson().log_predictive(COUNTS, 12, 2.0)
    np.testing.assert_allclose(family.log_predictive(COUNTS, 12, 2.0), plain, rtol=1e-13)
    told = family.log_predictive(COUNTS, [5, 5, 20], 2.0, censored=[1, 0, 0])
    plain = ldf.Poisson().log_predictive(COUNTS, [5, 5, 20], 2.0)
    np.testing.assert_allclose(told, [found[0], *plain[1:]], rtol=1e-13)
    known = family.after(COUNTS, {"count": np.full(3, 3.0), "exposure": np.ones(3)}, THREE)
    mean = family.posterior(known).mean()
    np.testing.assert_allclose(family.predictive(known, 1.0).mean(), mean, rtol=1e-12)


# --- one's own ----------------------------------------------------------------------------------


def test_a_gaussian_mean_by_quadrature() -> None:
    def log_likelihood(theta: Any, mean: Any, n: Any) -> Any:
        return -0.5 * n / 2.0 * (mean - theta) ** 2 + 0.5 * jnp.log(n / (4 * jnp.pi))

    plain = ldf.Gaussian(variance=2.0)
    own, prior = ldf.NonConjugate(plain, log_likelihood), plain.prior([0.0, 900.0], [9.0, 4.0])
    y = {"mean": np.array([1.3, 905.0]), "n": np.array([1.0, 6.0])}
    wanted = plain.log_predictive(prior, **y)
    np.testing.assert_allclose(own.log_predictive(prior, **y), wanted, rtol=1e-11)
    found = own.posterior(own.after(prior, y, np.ones(2, bool)))
    wanted = plain.posterior(prior + plain.statistic(**y))
    np.testing.assert_allclose(found.mean(), wanted.mean(), rtol=1e-11)
    np.testing.assert_allclose(found.quantile(0.05), wanted.quantile(0.05), rtol=1e-9)
    np.testing.assert_allclose(found.interval(0.9), wanted.interval(0.9), rtol=1e-6)

    def total(x: Any, of: Any) -> Any:
        return of.log_predictive(Potential(x[0], x[1]), **data).sum()

    with jax.enable_x64(True):
        data = {word: jnp.asarray(values) for word, values in y.items()}
        at = jnp.stack([jnp.asarray(prior.potential), jnp.asarray(prior.precision)])
        np.testing.assert_allclose(jax.grad(total)(at, own), jax.grad(total)(at, plain), rtol=1e-8)


def test_a_likelihood_of_ones_own_predicts_whole_numbers() -> None:
    def log_likelihood(theta: Any, successes: Any, trials: Any) -> Any:
        k, m = successes, trials - successes
        orders = jax.lax.lgamma(trials + 1) - jax.lax.lgamma(k + 1) - jax.lax.lgamma(m + 1)
        return orders + jax.scipy.special.xlogy(k, theta) + jax.scipy.special.xlog1py(m, -theta)

    own = ldf.NonConjugate(ldf.Binomial(), log_likelihood, top=lambda trials: trials)
    law, k = own.predictive(PRIORS, trials=np.array([5.0, 9.0, 9.0, 2.0])), np.arange(3)[:, None]
    wanted = ldf.Binomial().predictive(PRIORS, [5, 9, 9, 2]).log_prob(k)
    np.testing.assert_allclose(law.log_prob(k), wanted, atol=1e-9)
    with pytest.raises(ldf.DoesNotExist, match="give the family a top"):
        ldf.NonConjugate(ldf.Binomial(), log_likelihood).predictive(PRIORS, trials=3)
    with pytest.raises(TypeError, match="do not add"):
        PRIORS + own.statistic([1, 1, 1, 1], [2, 2, 2, 2])


def multinomial(theta: Any, counts: Any) -> Any:
    orders = jax.lax.lgamma(counts.sum(-1) + 1) - jax.lax.lgamma(counts + 1).sum(-1)
    return orders + (counts * jnp.log(theta)).sum(-1)


def test_vectors_by_importance_sampling() -> None:
    plain, counts = ldf.Multinomial(classes=3), np.array([[3.0, 1.0, 0.0], [2.0, 2.0, 4.0]])
    own = ldf.ImportanceSampled(plain, multinomial, draws=20_000)
    prior = plain.prior(np.array([[2.0, 3.0, 4.0], [3.0, 3.0, 3.0]]))
    exact, found = (f.log_predictive(prior, counts) for f in (plain, own))
    effective = own.effective_draws(prior, counts)
    assert ((effective > 1000) & (effective < 20_000)).all()
    # A mean of weights has the relative error √(1/effective − 1/draws).
    error = np.sqrt(1 / effective - 1 / 20_000)
    assert (np.abs(found - exact) < 4 * error).all()
    after = own.posterior(own.after(prior, {"counts": counts}, np.ones(2, bool)))
    wanted = plain.posterior(prior + plain.statistic(counts))
    np.testing.assert_allclose(after.effective(), effective, rtol=1e-6)
    assert (np.abs(after.mean() - wanted.mean()) < 5 * wanted.sd() / np.sqrt(effective.min())).all()
    np.testing.assert_allclose(after.sd(), wanted.sd(), rtol=0.1)
    np.testing.assert_allclose(after.quantile(0.5), wanted.quantile(0.5), atol=0.03)
    assert after.sample(5, seed=0).shape == (5, 2, 3)


def agrees(draws: ThetaDraws, law: Any) -> None:
    """Means of θ and θ² within 4.5 of their own standard errors."""
    theta = draws.theta.reshape(-1, *draws.theta.shape[2:])
    for power, wanted in ((1, law.mean()), (2, law.mean() ** 2 + law.sd() ** 2)):
        error = (theta**power).std(0) / np.sqrt(effective_draws(draws.theta**power))
        assert (np.abs((theta**power).mean(0) - wanted) < 4.5 * error).all()


@pytest.mark.parametrize(
    ("law", "u"),
    [
        (ldf.Binomial().posterior(Trials(0.3, 2.0)), 0.7),
        (ldf.Poisson().posterior(Arrivals(0.3, 2.0)), -1.1),
        (ldf.Gaussian(variance=2.0).posterior(Potential(0.3, 2.0)), 0.4),
        (
            ldf.Multinomial().posterior(ClassCounts(np.array([0.3, 2.0, 1.0]))),
            np.array([0.7, -0.4]),
        ),
    ],
)
def test_in_these_coordinates_the_prior_is_its_natural_form(law: Any, u: Any) -> None:
    """The density of u is that of θ times |dθ/du|: exp⟨λ, statistic of θ⟩ / Z."""
    with jax.enable_x64(True):
        space, u = theta_nuts.SPACES[type(law.natural)], jnp.asarray(u)
        theta = space.theta(u)
        np.testing.assert_allclose(space.back(theta), u, rtol=1e-12)
        slope = jnp.atleast_2d(jax.jacobian(space.theta)(u))[: max(1, u.size)]
        natural = inner(law.natural, law.sufficient(theta)) - law.log_partition(law.natural)
    found = law.log_prob(np.asarray(theta)) + np.linalg.slogdet(np.asarray(slope))[1]
    np.testing.assert_allclose(found, natural, rtol=1e-10)


@pytest.mark.full
def test_nuts_agrees_with_quadrature(posterior: OnNodes) -> None:
    found = theta_nuts.sample(SURVEY, PRIORS, SEEN, draws=500, warmup=300, chains=2, seed=0)
    agrees(found, posterior)
    assert "more warmup" not in found.status
    np.testing.assert_allclose(found.posterior().quantile(0.5), posterior.quantile(0.5), atol=0.03)
    assert found.posterior().sample(3, seed=0).shape == (3, 4)


def test_nuts_finds_vectors_that_draws_of_the_prior_miss() -> None:
    """A multinomial likelihood as if only its logarithm were known. The last unit was not seen."""
    plain = ldf.Multinomial(classes=3)
    counts = np.array([[3.0, 1.0, 0.0], [900.0, 50.0, 40.0], [np.nan] * 3])
    seen, own = np.array([True, True, False]), ldf.ImportanceSampled(plain, multinomial)
    prior = plain.prior(np.array([[2.0, 3.0, 4.0], [3.0, 3.0, 3.0], [2.0, 1.0, 3.0]]))
    ask = {"draws": 500, "warmup": 300, "chains": 2, "seed": 0}
    found = theta_nuts.sample(own, prior, {"counts": counts}, seen, **ask)
    agrees(found, plain.posterior(plain.after(prior, {"counts": counts}, seen)))
    np.testing.assert_allclose(found.theta.sum(-1), 1.0)
    assert (own.effective_draws(prior[:2], counts[:2]) < [1000, 20]).all()
    with pytest.raises(TypeError, match="θ of Normal is not one number or vector"):
        theta_nuts.sample(ldf.Normal(), ldf.Normal.prior(0, 1, 1, 1), {"values": [[1.0]]}, seed=0)


# --- calibrated, and end to end -----------------------------------------------------------------


def test_intervals_hold_the_truth_and_those_of_plain_counts_do_not() -> None:
    rng, units = np.random.default_rng(1), 1500
    theta = rng.beta(2, 8, units)
    n = rng.integers(30, 120, units)
    k = rng.binomial(n, 0.8 * theta + 0.15 * (1 - theta))
    family = ldf.Misreported(0.8, 0.85)
    prior = family.prior(2.0, 8.0)
    y = {"successes": 1.0 * k, "trials": 1.0 * n}
    right = family.posterior(family.after(prior.spread((units,)), y, np.ones(units, bool)))
    wrong = ldf.Binomial().posterior(prior + ldf.Binomial().statistic(k, n))
    below = [np.asarray(of.cdf(theta)) for of in (right, wrong)]
    shares = [((p >= 0.05) & (p <= 0.95)).mean() for p in below]
    assert abs(shares[0] - 0.9) < 3 * np.sqrt(0.9 * 0.1 / units)
    assert shares[1] < 0.6
    assert scipy.stats.kstest(below[0], "uniform").pvalue > 0.01  # ranks of the truth


def reports(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    lights, roads = rng.normal(size=(2, rows))
    theta = rng.beta(*(10 * expit(np.stack([lights, -lights]))))
    asked = rng.integers(1, 40, rows).astype(float)
    said = rng.binomial(asked.astype(int), 0.9 * theta + 0.05 * (1 - theta)).astype(float)
    said[::5] = np.nan
    frame = {"lights": lights, "roads": roads, "said": said, "asked": asked, "theta": theta}
    return pd.DataFrame(frame, index=[f"v{i}" for i in range(rows)])


def test_fusion_end_to_end() -> None:
    frame = reports()
    primary = {"successes": "said", "trials": "asked"}
    model = ldf.Fusion(SURVEY, primary, ["lights", "roads"], ensemble=ONE).fit(frame)
    seen = frame["said"].notna().to_numpy()
    errors = {}
    for given in ("auxiliary", "primary", "both"):
        posterior = model.posterior(frame, given)
        table = posterior.to_frame()
        assert ((table["lower"] <= table["mean"]) & (table["mean"] <= table["upper"])).all()
        errors[given] = np.abs(posterior.mean() - frame["theta"])[seen].mean()
    assert errors["both"] < min(errors["auxiliary"], errors["primary"])
    # Where there are no reports, both is what auxiliary data say.
    both, alone = model.posterior(frame), model.posterior(frame, "auxiliary")
    np.testing.assert_allclose(both.mean()[~seen], alone.mean()[~seen], rtol=1e-8)
    law = model.predictive(frame)
    np.testing.assert_allclose(law.log_prob()[seen], model.log_scores(frame)[seen], atol=1e-8)
    assert np.isnan(law.log_prob()[~seen]).all()
    assert model.predictive(frame, given="both", trials=20).mean().shape == (60,)
    assert (model.pseudo_observations(frame)["n"] > 0).all()


@pytest.mark.full
def test_a_network_learns_rates_through_errors_of_reporting() -> None:
    """Trained through the integral it finds what rates are drawn about, held-out rows included;
    trained as if reports were true, what reports are drawn about."""
    rng, frame = np.random.default_rng(1), reports(400)
    asked = frame["asked"].to_numpy() + 10
    rate = 0.75 * frame["theta"] + 0.2 * (1 - frame["theta"])
    frame["asked"], frame["said"] = asked, 1.0 * rng.binomial(asked.astype(int), rate)
    network = ldf.Network(shared=(4,), branch=(), linear_path=True)
    how = ldf.Schedule(epochs=200, patience=60, batch=128, chunk=40, places=2)
    ensemble = ldf.Ensemble((ldf.Member(network),), parts=3, schedule=how)
    errors = {}
    for name, family in (("through", ldf.Misreported(0.75, 0.8)), ("plain", ldf.Binomial())):
        primary = {"successes": "said", "trials": "asked"}
        model = ldf.Fusion(family, primary, ["lights", "roads"], ensemble=ensemble).fit(frame)
        mean = model.posterior(frame, "auxiliary").mean()
        errors[name] = np.sqrt(((mean - expit(frame["lights"])) ** 2).mean())
    assert errors["through"] < 0.07
    assert errors["plain"] > 2 * errors["through"]


@pytest.mark.parametrize(
    "family",
    [
        ldf.CensoredPoisson(1, 4),
        pytest.param(ldf.ZeroInflatedPoisson(0.1), marks=pytest.mark.full),
    ],
)
def test_cross_validation_of_counts(family: Any) -> None:
    rng, frame = np.random.default_rng(0), reports()
    frame["people"] = rng.uniform(5, 50, len(frame))
    rate = np.exp(0.5 * frame["lights"]) / 8
    frame["deaths"] = 1.0 * rng.poisson(frame["people"] * rate)
    primary = {"count": "deaths", "exposure": "people"}
    model = ldf.Fusion(family, primary, ["lights"], ensemble=LINES)
    found = ldf.cross_validate(model, frame, folds=2)
    (row,) = found.rows()
    assert np.isfinite(row["log_score"])
    assert 0.6 < row["coverage_90"] <= 1
    hidden = frame["deaths"].between(1, 4) & isinstance(family, ldf.CensoredPoisson)
    assert len(found.pit("ldf")) == (~hidden).sum()
    posterior = model.fit(frame).posterior(frame)
    assert (posterior.sd() > 0).all()
    assert np.isfinite(model.predictive(frame).log_prob()).sum() == (~hidden).sum()


# --- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ldf.Misreported(0.4, 0.6), "is the sum of sensitivity and specificity, not above"),
        (lambda: ldf.Misreported(1.2, 0.9), "'sensitivity': 1.2 is above 1"),
        (lambda: ldf.Misreported(0.9).checked(1, 2), "'specificity' is not given"),
        (lambda: SURVEY.checked(1, 2, sensitivity=0.8), "'sensitivity' is given twice"),
        (lambda: SURVEY.log_predictive(PRIORS, 5, 3), "is more than 'trials', 3"),
        (lambda: ldf.ZeroInflatedPoisson(1.0), "leaves nothing to count"),
        (lambda: ldf.ZeroInflatedPoisson(-0.1), "'zeros': -0.1 is negative"),
        (lambda: ldf.CensoredPoisson(9, 1), "'lower': 9 is more than 'upper', 1"),
        (
            lambda: ldf.CensoredPoisson().checked([3, 12], 1.0, [1, 1]),
            "row 1: 12 is suppressed, but not from 1 to 9",
        ),
        (lambda: ldf.CensoredPoisson().checked([3], 1.0, [2]), "is not a yes or no"),
        (lambda: ldf.NonConjugate(ldf.Multinomial(classes=3), print), "whose θ is not one number"),
    ],
)
def test_bad_input_gets_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(ldf.DataError, match=sentence):
        make()


def test_what_does_not_exist_is_said_so() -> None:
    with pytest.raises(ldf.DoesNotExist, match="improper"):
        SURVEY.log_predictive(SURVEY.prior(0.0, 1.0), 1, 2)
    with pytest.raises(TypeError, match="do not add"):
        SURVEY.prior(1.0, 1.0) + SURVEY.statistic([1], [2])
