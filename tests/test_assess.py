"""What is calibrated passes, what is not is caught, and standard errors are those by hand."""

from __future__ import annotations

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats as ss

import ldf
from ldf import DataError
from ldf import distributions as d
from ldf.assess import (
    QUANTITIES,
    coverage,
    coverage_of,
    pit,
    predictive_check,
    score_difference,
    uniformity,
)
from ldf.datasets import district
from ldf.statistic import Arrivals, ClassCounts, Potential, Trials

M = 2000
rng = np.random.default_rng(40)
A, B = rng.gamma(2, 1, M) + 0.3, rng.gamma(2, 2, M) + 0.3
N = rng.integers(0, 40, M).astype(float)
SHARES = np.stack([A, B, 0 * A + 1.0], -1)

# Right by construction: θ is drawn from its prior and y from θ, by NumPy.
RATE, INTENSITY = rng.beta(A, B), rng.gamma(A) / B
SUCCESSES, COUNT = rng.binomial(N.astype(int), RATE), rng.poisson(INTENSITY * N)
CLASSES = np.stack([rng.multinomial(n, rng.dirichlet(a)) for n, a in zip(N, SHARES, strict=True)])
VALUES = A / B + rng.normal(size=M) / np.sqrt(B)

RIGHT: dict[str, tuple[Any, Any]] = {
    "beta-binomial": (d.BetaBinomial(Trials(A, B), N), SUCCESSES),
    "gamma-Poisson": (d.GammaPoisson(Arrivals(A, B), N), COUNT),
    "classes": (d.DirichletMultinomial(ClassCounts(SHARES), N), CLASSES),
    "Gaussian": (d.Gaussian(Potential(A, B)), VALUES),
    "Beta": (d.Beta(Trials(A, B)), RATE),
    "known": (d.KnownCount(ss.binom, (N.astype(int), RATE), np.floor((N + 1) * RATE)), SUCCESSES),
}
# Too sure: of ten times the pseudo-observations.
SURE: dict[str, tuple[Any, Any]] = {
    "beta-binomial": (d.BetaBinomial(Trials(10 * A, 10 * B), N), SUCCESSES),
    "gamma-Poisson": (d.GammaPoisson(Arrivals(10 * A, 10 * B), N), COUNT),
    "classes": (d.DirichletMultinomial(ClassCounts(10 * SHARES), N), CLASSES),
    "Gaussian": (d.Gaussian(Potential(10 * A, 10 * B)), VALUES),
    "Beta": (d.Beta(Trials(10 * A, 10 * B)), RATE),
}
# Not sure enough: the data spread less than predicted.
UNSURE: dict[str, tuple[Any, Any]] = {
    "beta-binomial": (d.BetaBinomial(Trials(A, B), N), rng.binomial(N.astype(int), A / (A + B))),
    "Gaussian": (d.Gaussian(Potential(0.1 * A, 0.1 * B)), VALUES),
}


# --- coverage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
def test_calibrated_intervals_cover_as_often_as_they_should(name: str) -> None:
    found = coverage(*RIGHT[name], counted=N > 0)
    assert np.abs(found.z).max() < 3.5
    assert (found.units == (N > 0).sum()).all()
    assert (found.expected >= found.mass - 1e-9).all()
    np.testing.assert_allclose(found.z * found.standard_error, found.observed - found.expected)


@pytest.mark.parametrize("name", SURE)
def test_overconfident_intervals_are_caught(name: str) -> None:
    found = coverage(*SURE[name])
    assert (found.z[found.mass >= 0.8] < -5).all()


@pytest.mark.parametrize("name", UNSURE)
def test_timid_intervals_are_caught(name: str) -> None:
    found = coverage(*UNSURE[name])
    assert (found.z[found.mass == 0.5] > 5).all()


def test_sets_of_whole_numbers_hold_more_than_asked_for() -> None:
    """Beside the nominal mass a right model of small counts would look far too cautious."""
    predictive, y = d.BetaBinomial(Trials(A, B), np.full(M, 3.0)), rng.binomial(3, RATE)
    found = coverage(predictive, y, masses=(0.5, 0.9))
    nominal = np.sqrt(found.mass * (1 - found.mass) / M)
    assert ((found.observed - found.mass) / nominal > 5).all()
    assert np.abs(found.z).max() < 3.5


def test_coverage_by_hand() -> None:
    law = ss.betabinom(np.array([2, 5, 9]), 1.5, 2.5)
    predictive = d.BetaBinomial(Trials(np.array(1.5), np.array(2.5)), np.array([2.0, 5.0, 9.0]))
    lower, upper = (np.asarray(end) for end in predictive.interval(0.8))
    held = law.cdf(upper) - law.cdf(lower - 1)
    y = np.array([0, 5, 9])
    (row,) = coverage(predictive, y, masses=[0.8]).rows()
    assert row["observed"] == np.mean((lower <= y) & (y <= upper))
    assert row["expected"] == pytest.approx(held.mean(), rel=1e-12)
    assert row["standard_error"] == pytest.approx(np.sqrt((held * (1 - held)).sum()) / 3)
    assert "component" not in row


def test_coverage_by_groups_by_hand() -> None:
    law, y = RIGHT["classes"]
    alone, plain = (coverage(law, y, [0.5, 0.9], N > 0, group) for group in (np.arange(M), None))
    # Its own group each: the spread that is seen, rather than the one that is expected.
    np.testing.assert_allclose(alone.standard_error, plain.standard_error, rtol=0.1)
    np.testing.assert_array_equal(alone.difference, plain.difference)
    group, seen = np.arange(M) % 40, N > 0
    found = coverage(law, y, masses=[0.8], counted=seen, group=[f"group {g}" for g in group])
    lower, upper = law.interval(0.8)
    off = ((lower <= y) & (y <= upper)) - (law.cdf(upper) - law.cdf(lower - 1))
    off = off[seen] - off[seen].mean(0)
    sums = np.stack([off[group[seen] == g].sum(0) for g in range(40)])
    expected = np.sqrt(40 / 39 * (sums**2).sum(0)) / seen.sum()
    np.testing.assert_allclose(found.standard_error, expected)
    assert np.isnan(coverage(law, y, [0.8], group=np.zeros(M)).standard_error).all()


def test_groups_that_err_alike_widen_the_standard_error_of_coverage() -> None:
    group, draws = np.repeat(np.arange(60), 10), []
    law = d.Gaussian(Potential(np.zeros(600), np.ones(600)))
    for _ in range(100):
        shared, own = np.repeat(rng.normal(size=60), 10), rng.normal(size=600)
        y = np.sqrt(0.8) * shared + np.sqrt(0.2) * own  # a standard normal each
        found = [coverage(law, y, [0.8], group=g) for g in (group, None)]
        draws.append([found[0].difference[0], *(table.standard_error[0] for table in found)])
    difference, grouped, plain = np.array(draws).T
    assert grouped.mean() == pytest.approx(difference.std(), rel=0.2)
    assert plain.mean() < 0.6 * difference.std()


def test_what_holds_everything_tests_nothing_and_what_is_sure_and_wrong_is_infinitely_so() -> None:
    nothing_asked = d.BetaBinomial(Trials(A[:5], B[:5]), np.zeros(5))
    found = coverage(nothing_asked, np.zeros(5))
    assert (found.observed == 1).all()
    assert np.isnan(found.z).all()
    point = coverage_of(d.PointMass(RATE + 1e-9), RATE)
    assert (point.observed == 0).all()
    assert (point.z == -np.inf).all()


def test_the_simulated_district_is_covered_under_its_own_truth() -> None:
    cells = district("beta", seed=5)
    family = ldf.Binomial(effective=True)
    worth = family.prior(cells.pseudo_successes + 0.3, cells.pseudo_failures + 0.9)
    assert np.abs(coverage_of(family.posterior(worth), cells.theta).z).max() < 3.5
    seen = np.isfinite(cells.buildings)
    found = coverage(
        family.predictive(worth, trials=np.where(seen, cells.buildings, 0)),
        cells.electrified,
        counted=seen & (cells.buildings > 0),
    )
    assert (found.units == 854 - 70).all()
    assert np.abs(found.z).max() < 3.5


# What every family predicts of 400 units, and data drawn from that.
FEW = 400
PRIORS: dict[str, tuple[ldf.Family, dict[str, Any], dict[str, Any]]] = {
    "Binomial": (ldf.Binomial(), {"successes": 2, "failures": 3}, {"trials": 5}),
    "Multinomial": (ldf.Multinomial(), {"counts": [1, 2, 3]}, {"trials": 9}),
    "Poisson": (ldf.Poisson(), {"count": 3, "exposure": 2}, {"exposure": 1.5}),
    "Exponential": (ldf.Exponential(), {"count": 4, "exposure": 2}, {"events": 2}),
    "Gamma": (ldf.Gamma(1.5), {"count": 4, "exposure": 2}, {"n": 2}),
    "Geometric": (ldf.Geometric(), {"successes": 4, "failures": 3}, {"waits": 2}),
    "NegativeBinomial": (ldf.NegativeBinomial(2), {"successes": 4, "failures": 3}, {"waits": 1}),
    "Gaussian": (ldf.Gaussian(variance=2.0), {"mean": 1, "variance": 3}, {"n": 4}),
    "Normal": (ldf.Normal(), {"mean": 1, "mean_n": 2, "variance": 2, "variance_n": 6}, {}),
    "LinearGaussian": (
        ldf.LinearGaussian([[1, 0.5]], [0.3], [[1]]),
        {"mean": [0, 1], "covariance": [[1, 0.4], [0.4, 1]]},
        {},
    ),
    "MultivariateNormal": (
        ldf.MultivariateNormal(2),
        {"mean": [0, 1], "mean_n": 3, "variance": [[1, 0.3], [0.3, 2]], "variance_n": 7},
        {},
    ),
}


@pytest.mark.parametrize("name", PRIORS)
def test_every_family_is_assessed_by_the_same_words(name: str) -> None:
    family, prior, design = PRIORS[name]
    predictive = family.predictive(family.prior(**prior), **design)
    y = np.asarray(predictive.sample(FEW, 12))
    assert np.abs(coverage(predictive, y, masses=(0.5, 0.9)).z).max() < 3.5
    u = pit(predictive, y, seed=13)
    assert u.shape == y.shape
    assert uniformity(u).p_value.min() > 1e-3
    assert predictive_check(predictive, y, QUANTITIES, 100, 14).p_value.min() > 0.005
    shifted = coverage(predictive, y + 3 * y.std(0) + 1, masses=(0.9,))
    assert shifted.z.max() < -5


# --- the probability integral transform ---------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
def test_the_transform_of_what_is_right_is_uniform(name: str) -> None:
    assert uniformity(pit(*RIGHT[name], seed=1)).p_value.min() > 1e-3


@pytest.mark.parametrize("name", SURE | UNSURE)
def test_the_transform_of_what_is_not_is_not(name: str) -> None:
    for wrong in (SURE, UNSURE):
        if name in wrong:
            assert uniformity(pit(*wrong[name], seed=1)).p_value.max() < 1e-6


def test_it_lies_between_less_than_and_at_most() -> None:
    law = ss.betabinom(N.astype(int), A, B)
    u = pit(*RIGHT["beta-binomial"], seed=2)
    below, at_most = law.cdf(SUCCESSES - 1), law.cdf(SUCCESSES)
    assert ((below - 1e-12 <= u) & (u <= at_most + 1e-12)).all()
    v = (u - below)[at_most - below > 0.01] / (at_most - below)[at_most - below > 0.01]
    assert ss.kstest(v, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", ["Gaussian", "Beta"])
def test_where_nothing_jumps_it_is_the_distribution_function(name: str) -> None:
    law, y = RIGHT[name]
    np.testing.assert_allclose(pit(law, y, seed=3), law.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(pit(law, y, seed=3), pit(law, y, seed=4), rtol=1e-12)


def test_jax_arrays_of_single_precision_jump_too() -> None:
    single = d.BetaBinomial(*(Trials(jnp.asarray(A), jnp.asarray(B)), jnp.asarray(N)))
    mine = pit(single, jnp.asarray(SUCCESSES), seed=5)
    np.testing.assert_allclose(mine, pit(*RIGHT["beta-binomial"], seed=5), atol=1e-5)


def test_uniformity_equals_scipys_and_knows_a_bad_generator() -> None:
    u = rng.random((500, 2))
    found = uniformity(u, bins=[5])
    assert found.test.tolist() == ["Kolmogorov-Smirnov"] * 2 + ["χ² of 5 bins"] * 2
    for j in range(2):
        counts = np.bincount((u[:, j] * 5).astype(int), minlength=5)
        chi = ((counts - 100) ** 2 / 100).sum()
        assert found.statistic[2 + j] == pytest.approx(chi)
        assert found.p_value[2 + j] == pytest.approx(ss.chi2(4).sf(chi))
        assert found.p_value[j] == pytest.approx(ss.kstest(u[:, j], "uniform").pvalue)
    assert uniformity(u[:, 0] ** 1.5).p_value.max() < 1e-4
    assert uniformity(np.r_[0.0, u[:, 0], 1.0]).p_value.min() > 1e-3  # the ends belong to it


def test_p_values_are_uniform_themselves() -> None:
    many = uniformity(rng.random((200, 300)))
    for test in np.unique(many.test):
        assert ss.kstest(many.p_value[many.test == test], "uniform").pvalue > 1e-3


# --- differences of scores ----------------------------------------------------------------------


def test_a_difference_of_scores_by_hand() -> None:
    found = score_difference([-1.0, -2.0, -3.0, -4.0], [-2.0, -2.0, -5.0, -3.5])
    gain = np.array([1.0, 0.0, 2.0, -0.5])
    assert found.mean == pytest.approx(gain.mean())
    assert found.standard_error == pytest.approx(gain.std(ddof=1) / 2)
    assert found.better == 2.5 / 4
    assert (found.units, found.groups) == (4, 4)


def test_groups_sum_before_they_are_squared() -> None:
    p, q = rng.normal(size=(2, 6))
    gain = p - q
    found = score_difference(p, q, group=list("aabbbc"))
    off = gain - gain.mean()
    sums = np.array([off[:2].sum(), off[2:5].sum(), off[5]])
    assert found.standard_error == pytest.approx(np.sqrt(3 / 2 * (sums**2).sum()) / 6)
    assert found.groups == 3
    alone, naive = score_difference(p, q, group=np.arange(6)), score_difference(p, q)
    assert alone.standard_error == pytest.approx(naive.standard_error)


def test_the_grouped_standard_error_is_the_right_one_when_groups_err_alike() -> None:
    group = np.repeat(np.arange(50), 8)

    def gains() -> np.ndarray:
        return np.repeat(rng.normal(size=50), 8) + rng.normal(size=400)

    draws = [(gain, 0 * gain) for gain in (gains() for _ in range(300))]
    truth = np.std([p.mean() for p, _ in draws])
    grouped = np.mean([score_difference(p, q, group).standard_error for p, q in draws])
    naive = np.mean([score_difference(p, q).standard_error for p, q in draws])
    assert grouped == pytest.approx(truth, rel=0.15)
    assert naive < 0.6 * truth


def test_rows_that_saw_nothing_are_left_out() -> None:
    p, q = np.array([-1.0, -3.0, 0.0, np.nan]), np.array([-2.0, -2.5, 0.0, np.nan])
    seen = np.array([True, True, False, False])
    found = score_difference(p, q, group=[1, 2, 2, 2], counted=seen)
    only = score_difference(p[:2], q[:2])
    assert found.rows() == only.rows()
    assert found.better == 0.5


def test_infinite_scores_are_said() -> None:
    same = score_difference([-np.inf, -1.0, -1.0], [-np.inf, -1.5, -1.0])
    assert same.mean == pytest.approx(0.5 / 3)
    assert same.better == pytest.approx(2 / 3)
    worse = score_difference([-np.inf, -1.0], [-2.0, -1.5])
    assert worse.mean == -np.inf
    assert np.isnan(worse.standard_error)
    assert np.isnan(score_difference([-1.0], [-2.0]).standard_error)
    assert np.isnan(score_difference([-1.0, -3.0], [-2.0, -1.0], group=["a", "a"]).standard_error)


# --- predictive checks --------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
def test_simulated_data_look_like_those_of_the_same_law(name: str) -> None:
    found = predictive_check(*RIGHT[name], QUANTITIES, 300, 6)
    assert found.p_value.min() > 0.005
    assert ((found.lower <= found.simulated) & (found.simulated <= found.upper)).all()
    components = 3 if name == "classes" else 1
    assert len(found.rows()) == 4 * components


def test_too_many_zeros_and_too_much_variance_are_caught() -> None:
    law, y = d.GammaPoisson(Arrivals(30 * A, 30 * B), N), COUNT
    for quantity in ("zeros", "variance"):
        found = predictive_check(law, y, quantity, 400, 7)
        assert found.observed > found.upper
        assert found.p_value == pytest.approx(2 / 401)
    assert predictive_check(law, np.round(law.mean()), "variance", 400, 7).observed < found.observed


def test_quantities_by_hand() -> None:
    y = np.array([0.0, 0, 3, 5])
    law = d.KnownCount(ss.poisson, (np.full(4, 2.0),), np.full(4, 2.0))
    found = predictive_check(law, y, QUANTITIES, 500, 8)
    assert dict(zip(found.quantity.tolist(), found.observed.tolist(), strict=True)) == {
        "zeros": 0.5,
        "mean": 2.0,
        "variance": np.var(y),
        "maximum": 5.0,
    }
    draws = law.sample(500, 8)
    (maximum,) = predictive_check(law, y, "maximum", 500, 8).rows()
    tops = draws.max(1)
    as_high, as_low = (1 + (tops >= 5).sum()) / 501, (1 + (tops <= 5).sum()) / 501
    assert maximum["p_value"] == pytest.approx(min(1, 2 * min(as_high, as_low)))
    assert maximum["simulated"] == tops.mean()
    assert (maximum["lower"], maximum["upper"]) == tuple(np.quantile(tops, (0.05, 0.95)))


def test_any_function_is_a_quantity_and_some_rows_may_not_count() -> None:
    def first(y: np.ndarray) -> np.ndarray:
        return y[:, 0]

    law, y = RIGHT["beta-binomial"]
    seen = np.arange(M) >= 10
    (row,) = predictive_check(law, np.where(seen, y, np.nan), first, 50, 9, counted=seen).rows()
    assert (row["quantity"], row["observed"]) == ("first", y[10])
    (row,) = predictive_check(law, y, {"own": lambda y: y.sum(1)}, 50, 9).rows()
    assert (row["quantity"], row["observed"]) == ("own", y.sum())


def test_one_law_for_all_units_is_drawn_from_for_each() -> None:
    shared = d.BetaBinomial(Trials(np.array(1.0), np.array(2.0)), np.array(10.0))
    y = ss.betabinom(10, 1, 2).rvs(500, random_state=rng)
    assert predictive_check(shared, y, QUANTITIES, 300, 10).p_value.min() > 0.005
    assert np.abs(coverage(shared, y).z).max() < 3.5
    assert uniformity(pit(shared, y, seed=11)).p_value.min() > 1e-3


# --- tables -------------------------------------------------------------------------------------


def test_every_result_is_a_table() -> None:
    law, y = RIGHT["classes"]
    found = coverage(law, y)
    frame = pd.DataFrame(found.to_dict())
    assert frame["component"].tolist() == [0, 1, 2] * 4
    assert frame["mass"].tolist() == np.repeat([0.5, 0.8, 0.9, 0.95], 3).tolist()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(found.rows()))
    component = coverage(law.marginal(1), y[:, 1])
    np.testing.assert_allclose(component.z, found.z[found.component == 1])
    for table in (
        uniformity(pit(law, y, seed=0)),
        predictive_check(law, y, QUANTITIES, 20, 0),
        score_difference([-1.0, -2.0], [-3.0, -1.0]),
    ):
        pd.testing.assert_frame_equal(pd.DataFrame(table.to_dict()), pd.DataFrame(table.rows()))


# --- what a user reads --------------------------------------------------------------------------

NAN = float("nan")
THREE = d.BetaBinomial(Trials(A[:3], B[:3]), np.full(3, 4.0))
SENTENCES = """
coverage(THREE, [1, NAN, 2])
    column 'y', row 1 is missing; give a number, or leave the row out by counted=.
coverage(THREE, [1, 2])
    column 'y' has 2 rows but there are 3 units; give one value a unit, or one for all.
coverage(THREE, [[1], [2], [3]])
    column 'y' is not of one axis of units;
    give one row a unit, with as many values as the distribution is of.
coverage(THREE, [1, 2, 3], masses=[1.5])
    column 'mass': 1.5 is not between 0 and 1; ask for 0.9, say, for 90 %.
coverage(THREE, [1, 2, 3], counted=[1, 1, 0])
    column 'counted' is not true or false; give trials > 0, say.
coverage(THREE, [1, 2, 3], counted=[True, True])
    column 'counted' has shape (2,) but the units have (3,); give one value a unit.
coverage(THREE, [1, 2, 3], group=['a', 'b'])
    column 'group' has 2 rows but there are 3 units; give one value a unit.
pit(THREE, [1, 2, 3], 0, counted=[False] * 3)
    column 'y' has no unit that counts; give one or more.
coverage_of(THREE, ['a', 'b', 'c'])
    column 'theta', row 0: 'a' is text, not a number; turn the column into numbers first.
uniformity([0.5, 1.5])
    column 'u', row 1: 1.5 is above 1; a probability lies between 0 and 1.
score_difference([-1, -2], [-1, -2, -3])
    column 'log_q' has 3 rows but column 'log_p' has 2 rows; give every column one value a unit.
score_difference([-1, NAN], [-1, -2])
    column 'log_p', row 1 is missing; give a number, or leave the row out by counted=.
score_difference([-1, -2], [-1, -2], group=['a', None])
    column 'group', row 1 is missing; give every row a group.
predictive_check(THREE, [1, 2, 3], 'median', 10, 0)
    column 'quantity': 'median' is not known;
    choose one of 'zeros', 'mean', 'variance', 'maximum'.
predictive_check(THREE, [1, 2, 3], {'all': np.mean}, 10, 0)
    column 'quantity': 'all' gives shape () for 11 draws; let it go from draws × units to draws.
"""


def _sentences() -> list[tuple[str, str]]:
    calls = re.split(r"\n(?=\S)", SENTENCES.strip())
    return [(call, " ".join(text.split())) for call, text in (one.split("\n", 1) for one in calls)]


@pytest.mark.parametrize(("call", "sentence"), _sentences())
def test_bad_input_gets_one_sentence(call: str, sentence: str) -> None:
    with pytest.raises(DataError) as error:
        eval(call)
    assert str(error.value) == sentence
