"""The laws every family obeys, searched by Hypothesis from one table of cases."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ldf
from cases import CASES, Case
from ldf.families.base import inner

every_family = pytest.mark.parametrize("case", CASES, ids=repr)
# Derandomised: a run that passes passes again, and no test seeds itself by luck.
search = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def numbers_of(statistic: Any) -> np.ndarray:
    return np.concatenate([np.ravel(c) for c in statistic.coordinates()])


@every_family
@search
@given(data=st.data())
def test_the_predictive_sums_or_integrates_to_one(case: Case, data: Any) -> None:
    natural = case.family.prior(**data.draw(case.priors))
    outcomes, measure = case.outcomes(natural, data.draw(case.data))
    total = (np.exp(case.family.log_predictive(natural, **outcomes)) * measure).sum()
    assert total == pytest.approx(1, abs=max(1e-7, case.tolerance / 100))


@every_family
@search
@given(data=st.data())
def test_the_predictive_equals_scipys(case: Case, data: Any) -> None:
    if case.scipy is None:
        pytest.skip("SciPy does not have this predictive")
    natural, seen = case.family.prior(**data.draw(case.priors)), data.draw(case.data)
    theirs = case.scipy(natural, seen)
    value = seen[case.family.columns[0]]
    log = theirs.logpdf if hasattr(theirs, "logpdf") else theirs.logpmf
    expected = log(value)
    assert case.family.log_predictive(natural, **seen) == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )
    design = case.family.design_of(**seen)
    mine = case.family.predictive(natural, **design)
    assert mine.log_prob(value) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_family
@search
@given(data=st.data())
def test_the_predictive_is_the_likelihood_mixed_over_the_prior(case: Case, data: Any) -> None:
    natural, seen = case.family.prior(**data.draw(case.priors)), data.draw(case.data)
    theta, weights = case.nodes(natural)
    mixed = np.log((weights * np.exp(case.family.log_likelihood(theta, **seen))).sum())
    assert case.family.log_predictive(natural, **seen) == pytest.approx(
        mixed, rel=case.tolerance, abs=case.tolerance
    )


@every_family
@search
@given(data=st.data())
def test_the_predictive_is_a_ratio_of_partition_functions(case: Case, data: Any) -> None:
    natural, seen = case.family.prior(**data.draw(case.priors)), data.draw(case.data)
    after = natural + case.family.statistic(**seen)
    ratio = case.family.log_partition(after) - case.family.log_partition(natural)
    expected = case.family.log_base(**seen) + ratio
    assert case.family.log_predictive(natural, **seen) == pytest.approx(
        expected, rel=1e-8, abs=1e-8
    )


@every_family
@search
@given(data=st.data())
def test_the_likelihood_is_an_exponential_family(case: Case, data: Any) -> None:
    """log p(y|θ) − log h(y) is linear in T_y, and the plain likelihood says the same."""
    natural, seen = case.family.prior(**data.draw(case.priors)), data.draw(case.data)
    theta, weights = case.nodes(natural)
    middle = int(np.argmax(weights * np.isfinite(weights)))
    theta = jax.tree.map(lambda x: x[middle], theta)
    linear = inner(case.family.statistic(**seen), case.family.latent.sufficient(theta))
    expected = case.family.log_base(**seen) + linear
    log_likelihood = case.family.log_likelihood(theta, **seen)
    assert log_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)
    design = case.family.design_of(**seen)
    plain = case.family.likelihood(theta, **design).log_prob(seen[case.family.columns[0]])
    assert log_likelihood == pytest.approx(plain, rel=1e-8, abs=1e-8)


@every_family
@search
@given(data=st.data())
def test_the_gradient_of_the_log_partition_is_the_expected_statistic(case: Case, data: Any) -> None:
    natural = case.family.prior(**data.draw(case.priors))
    theta, weights = case.nodes(natural)
    of_theta = case.family.latent.sufficient(theta)
    for mine, theirs in zip(
        case.family.expected(natural).coordinates(), of_theta.coordinates(), strict=True
    ):
        expected = np.tensordot(weights, theirs, axes=(0, 0))
        scale = np.sqrt(np.tensordot(weights, theirs**2, axes=(0, 0)))
        np.testing.assert_allclose(mine, expected, atol=float((case.tolerance * scale).max()))


@every_family
@search
@given(data=st.data())
def test_one_batch_equals_two_one_after_the_other(case: Case, data: Any) -> None:
    family, natural = case.family, case.family.prior(**data.draw(case.priors))
    first, second = data.draw(case.data), data.draw(case.data)
    whole = case.merge(first, second)
    after_first = natural + family.statistic(**first)
    one, two = family.statistic(**whole), family.statistic(**first) + family.statistic(**second)
    np.testing.assert_allclose(numbers_of(one), numbers_of(two), rtol=1e-9, atol=1e-9)

    def gain(at: Any, y: Any) -> Any:  # without the base measure, which depends on the order
        return family.log_predictive(at, **y) - family.log_base(**y)

    assert gain(natural, whole) == pytest.approx(
        gain(natural, first) + gain(after_first, second), rel=1e-8, abs=1e-8
    )


@every_family
@search
@given(data=st.data())
def test_the_posterior_by_the_sum_is_bayes_rule_on_a_grid(case: Case, data: Any) -> None:
    family, natural = case.family, case.family.prior(**data.draw(case.priors))
    seen = data.draw(case.data)
    theta, weights = case.nodes(natural)
    posterior = family.posterior(natural + family.statistic(**seen))
    # On the grid: weights times likelihood, normalised by their sum and by nothing of the family's.
    unnormalised = weights * np.exp(family.log_likelihood(theta, **seen))
    on_grid = unnormalised / unnormalised.sum()
    of_theta = family.latent.sufficient(theta)
    expected = family.expected(posterior.natural)
    for mine, theirs in zip(expected.coordinates(), of_theta.coordinates(), strict=True):
        moment = np.tensordot(on_grid, theirs, axes=(0, 0))
        scale = np.sqrt(np.tensordot(on_grid, theirs**2, axes=(0, 0))).max()
        np.testing.assert_allclose(mine, moment, atol=10 * case.tolerance * scale)
    # And point by point: posterior density = prior density × likelihood / predictive.
    middle = int(np.argmax(on_grid))
    at = jax.tree.map(lambda x: x[middle], theta)
    bayes = (
        family.posterior(natural).log_prob(at)
        + family.log_likelihood(at, **seen)
        - family.log_predictive(natural, **seen)
    )
    assert posterior.log_prob(at) == pytest.approx(bayes, rel=1e-8, abs=1e-8)


@every_family
@search
@given(data=st.data())
def test_entropy_and_divergence_equal_their_integrals(case: Case, data: Any) -> None:
    family = case.family
    natural, other = (family.prior(**data.draw(case.priors)) for _ in range(2))
    theta, weights = case.nodes(natural)
    inside = jax.tree.reduce(
        np.logical_and,
        jax.tree.map(lambda x: np.isfinite(x.reshape(len(weights), -1)).all(-1), theta),
    )
    theta, weights = jax.tree.map(lambda x: x[inside], theta), weights[inside]
    mine, theirs = family.posterior(natural), family.posterior(other)
    log_mine, log_theirs = mine.log_prob(theta), theirs.log_prob(theta)
    counted = np.isfinite(log_mine) & np.isfinite(log_theirs)
    weights = np.where(counted, weights, 0.0)
    log_mine, log_theirs = np.where(counted, log_mine, 0.0), np.where(counted, log_theirs, 0.0)
    rough = 10 * case.tolerance
    entropy = -(weights * log_mine).sum()
    assert mine.entropy() == pytest.approx(entropy, rel=rough, abs=rough)
    between = (weights * (log_mine - log_theirs)).sum()
    scale = np.sqrt((weights * (log_mine - log_theirs) ** 2).sum())
    assert mine.divergence(theirs) == pytest.approx(between, rel=rough, abs=rough * max(1, scale))
    assert mine.divergence(mine) == pytest.approx(0, abs=1e-9)


@every_family
@search
@given(data=st.data())
def test_under_jit_in_float32_it_says_the_same(case: Case, data: Any) -> None:
    natural, seen = case.family.prior(**data.draw(case.priors)), data.draw(case.data)
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), natural)
    traced = {name: jnp.asarray(value, jnp.float32) for name, value in seen.items()}
    compiled = _compiled(case.name, "log_predictive")(single, traced)
    assert compiled.dtype == jnp.float32
    assert float(compiled) == pytest.approx(
        float(case.family.log_predictive(natural, **seen)), rel=2e-4, abs=2e-4
    )
    after = _compiled(case.name, "update")(single, traced)
    eager = natural + case.family.statistic(**seen)
    np.testing.assert_allclose(numbers_of(after), numbers_of(eager), rtol=1e-4, atol=1e-5)


@cache
def _compiled(name: str, what: str) -> Any:
    family = next(case.family for case in CASES if case.name == name)
    if what == "update":
        return jax.jit(lambda at, y: at + family.statistic(**y))
    return jax.jit(lambda at, y: family.log_predictive(at, **y))


@every_family
def test_a_mapping_can_reach_it_from_unconstrained_outputs(case: Case) -> None:
    """Any real outputs make a valid T_x: added to a prior, the posterior exists."""
    family = case.family
    if isinstance(family, ldf.Multinomial):
        family = type(family)(classes=3)
    rng = np.random.default_rng(0)
    outputs = rng.normal(scale=3, size=(50, family.outputs()))
    prior = _a_prior(case)
    rate = family.from_unconstrained(outputs)
    posterior = family.posterior(prior + rate)
    assert np.isfinite(posterior.entropy()).all()
    assert (np.asarray(rate.n) >= 0).all() or np.ndim(rate.n) > 1
    gradient = jax.jit(
        jax.grad(lambda o: family.log_partition(prior + family.from_unconstrained(o)).sum())
    )(jnp.asarray(outputs, jnp.float32))
    assert np.isfinite(gradient).all()


def _a_prior(case: Case) -> Any:
    found: list[Any] = []

    @settings(max_examples=1, database=None, derandomize=True, deadline=None)
    @given(case.priors)
    def take(words: Any) -> None:
        found.append(case.family.prior(**words))

    take()
    return found[0]


@every_family
@search
@given(data=st.data())
def test_observations_that_are_moved_say_what_they_were_moved_to(case: Case, data: Any) -> None:
    """And as many, or as precise ones, as before: moved back they are what they were."""
    one, two = (case.family.prior(**data.draw(case.priors)) for _ in range(2))
    there = one.moved(two.location)
    np.testing.assert_allclose(there.location, two.location, rtol=1e-7, atol=1e-7)
    back = there.moved(one.location)
    np.testing.assert_allclose(numbers_of(back), numbers_of(one), rtol=1e-6, atol=1e-9)


@every_family
@search
@given(data=st.data())
def test_the_size_is_one_number_a_unit_that_counts_as_often_as_the_statistic(
    case: Case, data: Any
) -> None:
    one = case.family.prior(**data.draw(case.priors))
    assert np.shape(one.sizes)[:-1] == one.shape
    np.testing.assert_allclose((one * 3.0).sizes, 3.0 * one.sizes, rtol=1e-12)
    often = np.linspace(0.5, 2.0, one.sizes.shape[-1])
    np.testing.assert_allclose(one.counted(often).sizes, often * one.sizes, rtol=1e-12)
    np.testing.assert_allclose(one.counted(often).location, one.location, rtol=1e-12)


@every_family
@search
@given(data=st.data())
def test_draws_have_the_moments_of_what_they_are_drawn_from(case: Case, data: Any) -> None:
    natural = case.family.prior(**data.draw(case.priors))
    posterior = case.family.posterior(natural)
    draws = 4000
    sample = posterior.sample(draws, seed=1)
    of_theta = case.family.latent.sufficient(sample)
    for mine, theirs in zip(
        case.family.expected(natural).coordinates(), of_theta.coordinates(), strict=True
    ):
        error = theirs.std(0) / np.sqrt(draws)
        assert (abs(theirs.mean(0) - mine) <= 5 * error + 1e-9).all()
