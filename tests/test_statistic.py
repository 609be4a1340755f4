"""Statistics add; what is missing is zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldf
from ldf.statistic import Arrivals, ClassCounts, Moments, Potential, Trials, VectorPotential

counts = st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(np.array)


def trials(draw: np.ndarray) -> Trials:
    return Trials(draw, draw[::-1])


@settings(derandomize=True, deadline=None, database=None)
@given(counts, counts, counts)
def test_adding_is_commutative_and_associative_and_zero_adds_nothing(a, b, c) -> None:
    x, y, z = trials(a), trials(b), trials(c)
    np.testing.assert_array_equal((x + y).successes, (y + x).successes)
    np.testing.assert_allclose(((x + y) + z).failures, (x + (y + z)).failures, rtol=1e-15)
    np.testing.assert_array_equal((x + x.zero()).successes, x.successes)
    np.testing.assert_array_equal(sum([x, y, z]).successes, (x + y + z).successes)


def test_a_shared_statistic_adds_to_every_unit() -> None:
    prior, seen = (
        Trials(np.array(0.5), np.array(2.0)),
        Trials(np.array([3.0, 0]), np.array([7.0, 4])),
    )
    assert (prior + seen).shape == (2,)
    np.testing.assert_array_equal((prior + seen).failures, [9.0, 6.0])
    with pytest.raises(TypeError, match="shared by all units"):
        prior[0]
    with pytest.raises(TypeError, match="shared by all units"):
        len(prior)


def test_counting_units_twice_doubles_their_statistic() -> None:
    seen = VectorPotential(np.ones((3, 2)), np.broadcast_to(np.eye(2), (3, 2, 2)))
    doubled = seen * [2, 0, 1]
    np.testing.assert_array_equal(doubled.potential[:, 0], [2, 0, 1])
    np.testing.assert_array_equal(doubled.precision[0], 2 * np.eye(2))
    np.testing.assert_array_equal((0.5 * seen).potential, 0.5 * np.ones((3, 2)))


def test_units_are_picked_like_rows_of_an_array() -> None:
    seen = ClassCounts(np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(seen[1:3].counts, np.arange(3.0, 9).reshape(2, 3))
    np.testing.assert_array_equal(seen[np.array([True, False, False, True])].n, [3, 30])
    np.testing.assert_array_equal(seen[2].counts, [6, 7, 8])
    assert len(seen) == 4


def test_what_is_not_present_is_zero() -> None:
    seen = Arrivals(np.array([3.0, 5.0]), np.array([1.0, 2.0]))
    kept = seen.where(np.array([True, False]))
    np.testing.assert_array_equal(kept.count, [3, 0])
    np.testing.assert_array_equal(kept.exposure, [1, 0])


def test_the_papers_t_and_n_are_views() -> None:
    """Binomial [y; N], Poisson [y; exposure], Gaussian [h; J], multinomial [counts; N]."""
    binomial = ldf.Binomial().statistic(successes=[3], trials=[10])
    poisson = ldf.Poisson().statistic(count=[3], exposure=[2.5])
    gaussian = ldf.Gaussian(variance=4.0).statistic(mean=[6.0], n=[2])
    multinomial = ldf.Multinomial().statistic(counts=[[1, 2, 3]])
    assert (binomial.t[0], binomial.n[0]) == (3, 10)
    assert (poisson.t[0], poisson.n[0]) == (3, 2.5)
    assert (gaussian.t[0], gaussian.n[0]) == (3.0, 0.5)
    assert (multinomial.t[0].tolist(), multinomial.n[0]) == ([1, 2, 3], 6)


def test_a_rate_near_one_keeps_its_failures_in_float32() -> None:
    """Stored as (t, n) they would be gone: n − t is 0 in float32."""
    sure = Trials(
        np.float32(1e8) * np.ones(1, np.float32), np.float32(1e-3) * np.ones(1, np.float32)
    )
    assert float(sure.n[0] - sure.t[0]) == 0
    assert sure.failures[0] == np.float32(1e-3)
    assert ldf.Binomial().posterior(sure + sure).natural.failures[0] == np.float32(2e-3)


def test_a_statistic_passes_through_jit_grad_and_vmap() -> None:
    seen = Trials(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))

    @jax.jit
    def total(s: Trials) -> jax.Array:
        return ((s + s) * 2.0).n.sum()

    assert total(seen) == 40
    assert jax.grad(total)(seen).successes.tolist() == [4, 4]
    assert jax.vmap(lambda s: s.n)(seen).tolist() == [4, 6]


def test_statistics_of_different_priors_do_not_add() -> None:
    with pytest.raises(TypeError, match="Trials and Arrivals do not add"):
        Trials(np.ones(2), np.ones(2)) + Arrivals(np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="as many units"):
        Trials(np.ones(2), np.ones(2)) + Trials(np.ones(3), np.ones(3))


def test_a_statistic_shows_its_numbers() -> None:
    seen = ldf.Binomial().statistic(successes=[3, 0], trials=[10, 4])
    assert repr(seen) == "Trials(successes=[3., 0.], failures=[7., 4.])"


@pytest.mark.parametrize("formulation", ["rate", "counts"])
def test_both_formulations_of_a_mapping_reach_the_same_statistics(formulation: str) -> None:
    """(n, μ) and (a, b): softplus and logistic are undone by hand and give the numbers back."""

    def inverse_softplus(x: float) -> float:
        return float(np.log(np.expm1(x)))

    a, b = 2.9, 0.3
    logit = float(np.log(a / b))
    outputs = [inverse_softplus(a + b), logit]
    if formulation == "counts":
        outputs = [inverse_softplus(a), inverse_softplus(b)]
    found = Trials.from_unconstrained(np.array(outputs), formulation)
    assert (found.successes, found.failures) == pytest.approx((a, b), rel=1e-12)
    shares = [inverse_softplus(a + b), np.log(a), np.log(b)]
    if formulation == "counts":
        shares = outputs
    assert ClassCounts.from_unconstrained(np.array(shares), formulation).counts == pytest.approx(
        [a, b], rel=1e-12
    )
    arrivals = [inverse_softplus(b), inverse_softplus(a / b)]
    if formulation == "counts":
        arrivals = outputs
    found = Arrivals.from_unconstrained(np.array(arrivals), formulation)
    assert (found.count, found.exposure) == pytest.approx((a, b), rel=1e-12)
    pull = [inverse_softplus(b), a] if formulation == "rate" else [a * b, np.sqrt(b)]
    found = Potential.from_unconstrained(np.array(pull), formulation)
    assert (found.potential, found.precision) == pytest.approx((a * b, b), rel=1e-12)


def test_a_prior_by_mean_and_variance_is_read_back_as_it_was_given() -> None:
    prior = Moments.prior(mean=1.5, mean_n=4.0, variance=2.0, variance_n=7.0)
    _, mean_n, mean, variance_n, variance = ldf.Normal().posterior(prior).parameters()
    assert (mean_n, mean, variance_n, variance) == pytest.approx((4, 1.5, 7, 2))
