"""Families in their special cases and limits, and families of one prior together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import ldf
from ldf.distributions import PointMass

approx = pytest.approx


# --- special cases ------------------------------------------------------------------------------


def test_bernoulli_data_are_one_trial_each() -> None:
    family, prior = ldf.Binomial(), ldf.Binomial().prior(successes=2.0, failures=3.0)
    outcomes = [1, 0, 0, 1, 1]
    one_by_one = prior + sum(family.statistic([y], [1])[0] for y in outcomes)
    at_once = prior + family.statistic(successes=3, trials=5)
    assert one_by_one.successes == at_once.successes
    chain = 0.0
    for i, y in enumerate(outcomes):
        so_far = prior + family.statistic(sum(outcomes[:i]), i)
        chain += family.log_predictive(so_far, y, 1)
    orders = family.log_base(3, 5)
    assert chain + orders == approx(family.log_predictive(prior, 3, 5), rel=1e-12)


def test_binomial_is_multinomial_of_two_classes() -> None:
    binomial, multinomial = ldf.Binomial(), ldf.Multinomial()
    a, b, k, n = np.array([0.3, 4.0]), np.array([2.0, 1e6]), np.array([3, 7]), np.array([10, 9])
    one, two = binomial.prior(a, b), multinomial.prior(np.stack([a, b], -1))
    counts = np.stack([k, n - k], -1)
    assert binomial.log_predictive(one, k, n) == approx(multinomial.log_predictive(two, counts))
    beta, dirichlet = binomial.posterior(one), multinomial.posterior(two)
    for method in ("mean", "sd"):
        assert getattr(beta, method)() == approx(getattr(dirichlet, method)()[:, 0])
    assert beta.entropy() == approx(dirichlet.entropy())
    assert beta.interval(0.8)[0] == approx(dirichlet.interval(0.8)[0][:, 0])
    x = np.array([0.2, 0.1])
    assert beta.log_prob(x) == approx(dirichlet.log_prob(np.stack([x, 1 - x], -1)))
    other = binomial.posterior(binomial.prior(b, a))
    other_two = multinomial.posterior(multinomial.prior(np.stack([b, a], -1)))
    assert beta.divergence(other) == approx(dirichlet.divergence(other_two))


def test_geometric_is_negative_binomial_of_one_and_exponential_is_gamma_of_shape_one() -> None:
    prior = ldf.Geometric().prior(successes=3.0, failures=2.0)
    one = ldf.Geometric().log_predictive(prior, failures=[0, 5], waits=[1, 3])
    assert one == approx(ldf.NegativeBinomial(r=1).log_predictive(prior, [0, 5], [1, 3]))
    rate = ldf.Exponential().prior(count=3.0, exposure=2.0)
    times = ldf.Exponential().log_predictive(rate, time=[0.5, 9.0], events=[1, 3])
    assert times == approx(ldf.Gamma(shape=1).log_predictive(rate, total=[0.5, 9.0], n=[1, 3]))


def test_one_dimensional_vectors_are_numbers() -> None:
    scalar, vector = (
        ldf.Gaussian(variance=2.0),
        ldf.LinearGaussian(map=np.eye(1), offset=np.zeros(1), covariance=2.0 * np.eye(1)),
    )
    one = scalar.prior(mean=1.0, variance=3.0) + scalar.statistic(mean=[0.5], n=[1])
    two = vector.prior(mean=[1.0], covariance=[[3.0]]) + vector.statistic(values=[[0.5]])
    assert scalar.posterior(one).mean() == approx(vector.posterior(two).mean()[:, 0])
    assert scalar.posterior(one).entropy() == approx(vector.posterior(two).entropy())
    assert scalar.log_predictive(one, [2.0]) == approx(vector.log_predictive(two, [[2.0]]))

    normal, vectors = ldf.Normal(), ldf.MultivariateNormal(dimension=1)
    values = np.array([[0.5, 2.0, 1.0]])
    words = {"mean_n": 2.0, "variance_n": 5.0}
    one = normal.prior(mean=1.0, variance=3.0, **words) + normal.statistic(values)
    two = vectors.prior(mean=[1.0], variance=[[3.0]], **words) + vectors.statistic(
        values[..., None]
    )
    mine, theirs = normal.posterior(one), vectors.posterior(two)
    assert mine.entropy() == approx(theirs.entropy())
    assert mine.marginal("mean").sd() == approx(theirs.marginal("mean").sd()[:, 0])
    assert mine.marginal("variance").mean() == approx(theirs.marginal("variance").mean()[:, 0, 0])
    assert mine.mode()[0] == approx([theirs.mode()[0][0, 0], theirs.mode()[1][0, 0, 0]])
    assert normal.log_predictive(one, values) == approx(
        vectors.log_predictive(two, values[..., None])
    )


# --- families of one prior add ------------------------------------------------------------------


def test_binomial_counts_and_geometric_waits_of_one_unit_add() -> None:
    prior = ldf.Binomial().prior(successes=1.0, failures=1.0)
    both = prior + ldf.Binomial().statistic(3, 10) + ldf.Geometric().statistic(failures=4, waits=2)
    grid = np.linspace(1e-9, 1 - 1e-9, 200_001)
    density = grid**3 * (1 - grid) ** 7 * grid**2 * (1 - grid) ** 4
    assert ldf.Binomial().posterior(both).mean() == approx((grid * density).sum() / density.sum())


def test_poisson_counts_and_exponential_durations_of_one_unit_add() -> None:
    prior = ldf.Poisson().prior(count=2.0, exposure=1.0)
    both = prior + ldf.Poisson().statistic(3, 2.0) + ldf.Exponential().statistic(time=4.0, events=1)
    assert ldf.Poisson().posterior(both).mean() == approx((2 + 3 + 1) / (1 + 2 + 4))


def test_a_wait_that_ended_without_an_event_is_exposure_without_a_count() -> None:
    """Right-censoring: the likelihood of no event in time t is exp(−θt)."""
    family = ldf.Exponential()
    prior = family.prior(count=2.0, exposure=3.0)
    after = prior + family.statistic(time=5.0, events=0)
    assert (after.count, after.exposure) == (2, 8)
    survival = scipy.stats.lomax(2.0, scale=3.0).logsf(5.0)
    assert family.log_predictive(prior, time=5.0, events=0) == approx(survival)
    assert family.log_likelihood(0.7, time=5.0, events=0) == approx(-0.7 * 5)


# --- limits -------------------------------------------------------------------------------------


def test_no_trials_no_exposure_and_no_values_say_nothing() -> None:
    for family, prior, nothing in [
        (ldf.Binomial(), {"successes": 0.4, "failures": 2.0}, {"successes": 0, "trials": 0}),
        (ldf.Multinomial(), {"counts": [0.4, 2.0, 1.0]}, {"counts": [0, 0, 0]}),
        (ldf.Poisson(), {"count": 0.4, "exposure": 2.0}, {"count": 0, "exposure": 0.0}),
        (ldf.Geometric(), {"successes": 0.4, "failures": 2.0}, {"failures": 0, "waits": 0}),
        (ldf.Exponential(), {"count": 0.4, "exposure": 2.0}, {"time": 0.0, "events": 0}),
        (ldf.Gamma(shape=2), {"count": 0.4, "exposure": 2.0}, {"total": 0.0, "n": 0}),
        (ldf.Gaussian(variance=2), {"mean": 1.0, "variance": 2.0}, {"mean": np.nan, "n": 0}),
        (ldf.Gaussian(), {"mean": 1.0, "variance": 2.0}, {"mean": 5.0, "variance": np.inf}),
        (
            ldf.Normal(),
            {"mean": 1.0, "mean_n": 1.0, "variance": 2.0, "variance_n": 3.0},
            {"values": np.zeros((1, 0))},
        ),
    ]:
        natural = family.prior(**prior)
        statistic = family.statistic(**nothing)
        assert all((np.asarray(c) == 0).all() for c in statistic.coordinates()), family
        assert family.log_predictive(natural, **nothing) == approx(0, abs=1e-12), family


def test_an_improper_prior_adds_to_data_and_what_does_not_exist_is_said() -> None:
    family = ldf.Binomial()
    nothing = family.prior(successes=0, failures=0)
    posterior = family.posterior(nothing + family.statistic([3, 0], [10, 4]))
    assert posterior[0:1].mean() == approx([0.3])
    with pytest.raises(ldf.DoesNotExist, match="posterior mean of row 1 does not exist"):
        posterior.mean()
    with pytest.raises(ldf.DoesNotExist, match="predictive"):
        family.log_predictive(nothing, [1], [2])
    # A rate that is surely zero is the limit of few prior successes.
    surely = family.prior(successes=0, failures=2.0)
    assert family.log_predictive(surely, [0, 1], [3, 3]).tolist() == [0, -np.inf]
    assert family.log_partition(surely) == np.inf


@pytest.mark.parametrize("concentration", [1e9, 1e12, 1e15])
def test_at_infinite_concentration_the_predictive_is_the_likelihood(concentration: float) -> None:
    binomial = ldf.Binomial()
    sure = binomial.prior(successes=0.3 * concentration, failures=0.7 * concentration)
    k, n = np.array([3, 280]), np.array([10, 1000])
    plain = binomial.log_likelihood(0.3, k, n)
    assert plain == approx(scipy.stats.binom.logpmf(k, n, 0.3), rel=1e-12)
    assert binomial.log_predictive(sure, k, n) == approx(
        plain, rel=1e-5 * 1e9 / concentration + 1e-13
    )
    poisson = ldf.Poisson()
    rate = poisson.prior(count=2.5 * concentration, exposure=concentration)
    y, e = np.array([4, 2600]), np.array([1.5, 1000.0])
    plain = poisson.log_likelihood(2.5, y, e)
    assert plain == approx(scipy.stats.poisson.logpmf(y, 2.5 * e), rel=1e-11)
    assert poisson.log_predictive(rate, y, e) == approx(
        plain, rel=1e-5 * 1e9 / concentration + 1e-12
    )


def test_a_point_mass_has_no_spread_and_entropy_minus_infinity() -> None:
    sure = PointMass(np.array([0.2, 0.7]))
    assert sure.entropy().tolist() == [-np.inf, -np.inf]
    assert sure.sd().tolist() == [0, 0]
    assert sure.exceeds(0.5).tolist() == [0, 1]
    assert sure.interval(0.9)[0].tolist() == [0.2, 0.7]
    np.testing.assert_array_equal(sure.sample(3, seed=0)[2], [0.2, 0.7])


def test_counts_declared_effective_may_be_fractional() -> None:
    weighted = ldf.Binomial().statistic(successes=[31.5], trials=[80.2], design_effect=2.0)
    assert weighted.successes[0] == approx(15.75)
    effective = ldf.Binomial(effective=True)
    prior = effective.prior(successes=1.0, failures=1.0)
    log = effective.log_predictive(prior, successes=[1.5], trials=[4.0])
    gamma = scipy.special.gammaln
    by_hand = (gamma(5.0) - gamma(2.5) - gamma(3.5)) + (gamma(2.5) + gamma(3.5) - gamma(6.0))
    assert log == approx(by_hand, rel=1e-12)


# --- derivatives --------------------------------------------------------------------------------


def test_learning_pseudo_observations_by_gradient_recovers_them() -> None:
    """The derivative that learning uses, end to end in float32: θ drawn from Be(6, 14)."""
    family, rng = ldf.Binomial(), np.random.default_rng(4)
    trials = jnp.asarray(rng.integers(1, 60, 4000), jnp.float32)
    counts = jnp.asarray(rng.binomial(np.asarray(trials, int), rng.beta(6, 14, 4000)), jnp.float32)

    def score(outputs: jax.Array) -> jax.Array:
        shared = family.from_unconstrained(outputs)
        return family.log_predictive(shared, counts, trials).mean()

    step = jax.jit(lambda o: o + jnp.array([40.0, 0.1]) * jax.grad(score)(o))
    outputs = jnp.array([3.0, 0.0])
    for _ in range(1500):
        outputs = step(outputs)
    assert abs(jax.grad(score)(outputs)).max() < 2e-4
    learned = family.from_unconstrained(outputs)
    assert float(learned.successes) == approx(6, rel=0.08)
    assert float(learned.failures) == approx(14, rel=0.08)


def test_plain_likelihoods_have_their_textbook_derivatives() -> None:
    binomial = jax.grad(lambda p: ldf.Binomial().log_likelihood(p, jnp.array(3.0), 10.0))(0.2)
    assert float(binomial) == approx(3 / 0.2 - 7 / 0.8, rel=1e-5)
    poisson = jax.grad(lambda rate: ldf.Poisson().log_likelihood(rate, jnp.array(3.0), 2.0))(0.7)
    assert float(poisson) == approx(3 / 0.7 - 2.0, rel=1e-5)
