"""Class counts whose classes are known with different precision, against what must come out."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
from numpy.testing import assert_allclose

import ldf
import ldf.distributions as d
from ldf import assess
from ldf.baselines import baselines
from ldf.check import DataError, DoesNotExist
from ldf.learn import learn
from ldf.statistic import ClassCounts, NestedCounts, Trials
from ldf.table import Table
from units import LINES, fusion, villages

FAMILY, PLAIN = ldf.NestedMultinomial(), ldf.Multinomial()
rng = np.random.default_rng(0)

# Pseudo-counts of a Dirichlet: from next to nothing to ten million.
ALPHAS = [
    [3.0, 5.0, 0.7, 2.0],
    [0.05, 0.3, 0.06],
    [1e7, 2e6, 3e5, 4e6, 1e7],
    [2e5, 0.05, 30.0, 4.0, 1e7, 0.4],
    [0.1, 4.0, 25.0, 1e3, 8.0, 0.6, 2.0, 90.0, 5.0, 1.5],
]
# Splits of three classes that no Dirichlet has.
UNEVEN = NestedCounts(np.array([20.0, 900.0]), np.array([30.0, 40.0]))
# Sharp and broad factors together; a density that is infinite at either end, or at both.
PAIRS = [
    ((3.0, 5.0), (0.3, 2.0)),
    ((0.05, 0.05), (1e7, 1e7)),
    ((0.05, 0.7), (1e5, 20.0)),
    ((50.0, 0.05), (30.0, 0.1)),
    ((1e7, 3e6), (2e5, 1e6)),
    ((2.0, 0.5), (400.0, 1.0)),
]


def nested(counts: Any) -> Any:
    return FAMILY.posterior(FAMILY.prior(counts))


# --- what adds ----------------------------------------------------------------------------------


def test_the_statistic_of_data_is_each_class_and_all_after_it() -> None:
    seen = FAMILY.statistic(counts=[[1, 2, 3], [4, 0, 0]])
    assert seen.counts.tolist() == [[1, 2], [4, 0]]
    assert seen.later.tolist() == [[5, 3], [0, 0]]
    assert seen.t.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert seen.n.tolist() == [6, 4]
    halved = FAMILY.statistic([[1, 2, 3]], design_effect=2.0)
    assert (halved.counts.tolist(), halved.later.tolist()) == ([[0.5, 1.0]], [[2.5, 1.5]])


def test_t_of_pseudo_observations_is_n_times_the_mean() -> None:
    assert_allclose(UNEVEN.t, UNEVEN.n * FAMILY.posterior(UNEVEN).mean(), rtol=1e-14)


@pytest.mark.parametrize("formulation", ["log", "rate", "counts"])
def test_two_classes_are_successes_and_failures(formulation: str) -> None:
    outputs = rng.normal(size=(5, 2))
    mine = NestedCounts.from_unconstrained(outputs, formulation)
    theirs = Trials.from_unconstrained(outputs, formulation)
    assert_allclose(mine.counts[:, 0], theirs.successes, rtol=1e-14)
    assert_allclose(mine.later[:, 0], theirs.failures, rtol=1e-14)
    two, beta = FAMILY.posterior(mine), ldf.Binomial().posterior(theirs)
    assert isinstance(two.marginal(), d.Beta)
    assert_allclose(two.interval(0.8)[0][:, 0], beta.interval(0.8)[0])
    assert_allclose(two.marginal(1).quantile(0.3), 1 - beta.quantile(0.7), rtol=1e-9, atol=1e-15)
    counts = FAMILY.predictive(mine, 9).marginal()
    assert isinstance(counts, d.BetaBinomial)


@pytest.mark.parametrize("formulation", ["log", "rate", "counts"])
def test_outputs_make_splits_of_any_worth(formulation: str) -> None:
    family = ldf.NestedMultinomial(classes=4)
    outputs = rng.normal(scale=2, size=(7, family.outputs(formulation)))
    made = family.from_unconstrained(outputs, formulation)
    n, rate = made.counts + made.later, made.counts / (made.counts + made.later)
    if formulation != "counts":
        amount = np.exp if formulation == "log" else lambda x: np.logaddexp(0, x)
        worth = outputs[:, :1] + np.concatenate([np.zeros((7, 1)), outputs[:, 4:]], 1)
        assert_allclose(n, amount(worth), rtol=1e-13)
        assert_allclose(rate, sp.expit(outputs[:, 1:4]), rtol=1e-13)
    assert (made.counts > 0).all()
    assert (made.later > 0).all()


# --- θ ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS, ids=len)
def test_a_dirichlet_is_the_special_case(alpha: list[float]) -> None:
    mine, theirs = nested(alpha), PLAIN.posterior(PLAIN.prior(alpha))
    for method in ("mean", "sd", "entropy"):
        assert_allclose(getattr(mine, method)(), getattr(theirs, method)(), rtol=1e-11)
    scale = theirs.sd()[:, None] * theirs.sd()
    assert_allclose(mine.covariance() / scale, theirs.covariance() / scale, atol=1e-8)
    assert_allclose(mine.mode(), theirs.mode(), rtol=1e-11)
    value = np.asarray(theirs.sample(3, seed=0))
    value = np.maximum(value, 1e-9) / np.maximum(value, 1e-9).sum(-1, keepdims=True)
    assert_allclose(mine.log_prob(value), theirs.log_prob(value), rtol=1e-9, atol=1e-7)
    beta = theirs.marginal()
    for q in (1e-6, 0.5, 0.97):
        place = beta.quantile(q)
        inside = (place > 1e-290) & (place < 1 - 1e-9)
        assert_allclose(mine.cdf(place)[inside], beta.cdf(place)[inside], atol=1e-9)
        assert_allclose(mine.exceeds(place)[inside], beta.exceeds(place)[inside], atol=1e-9)
        found = mine.marginal()
        assert_allclose(
            found.log_prob(place)[inside], beta.log_prob(place)[inside], atol=1e-7, rtol=1e-7
        )
        width = beta.sd() * np.exp(-abs(np.log(place + 1e-300) - np.log(beta.mean())) / 50)
        apart = np.abs(mine.quantile(q) - place)
        assert (apart[inside] <= 1e-6 * width[inside]).all()


def test_intervals_of_a_dirichlet_are_those_of_its_betas() -> None:
    alpha = [[3.0, 5.0, 0.7], [3e3, 8.0, 1.5], [0.4, 0.3, 2.0]]
    mine, theirs = nested(alpha).marginal(), PLAIN.posterior(PLAIN.prior(alpha)).marginal()
    lower, upper = mine.interval(0.8)
    assert_allclose(mine.cdf(upper) - mine.cdf(lower), 0.8, atol=1e-6)
    first, last = theirs.interval(0.8)
    assert_allclose(upper - lower, last - first, rtol=1e-5)
    assert_allclose(mine.mode(), theirs.mode(), atol=1e-7)
    assert_allclose(mine.entropy(), theirs.entropy(), atol=1e-6)


def by_panels(pair: Any, x: float) -> float:
    """P(u v > x) by brute force: −log u and −log v sum to less than −log x. What u has of that is
    taken to a scale without ends, and cut where either factor has its quantiles."""
    (a, b), (c, e) = pair
    most = -np.log(x)
    small = 10.0 ** np.arange(-17, 0)
    levels = np.concatenate([small, np.linspace(0.15, 0.85, 8)])

    def places(first: float, second: float) -> np.ndarray:
        near = -np.log1p(-sp.betaincinv(second, first, levels))
        return np.concatenate(
            [near, -np.log(np.maximum(sp.betaincinv(first, second, small), 1e-300))]
        )

    cuts = np.concatenate([places(a, b), most - places(c, e)])
    cuts = cuts[(cuts > 0) & (cuts < most)]
    far = np.array([-800.0, -300, -100, -30, -10, -3, 3, 10, 30, 100, 300, 800])
    edges = np.unique(np.concatenate([np.log(cuts) - np.log(most - cuts), far]))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    low, high = (edges[i : len(edges) - 1 + i, None, None] for i in (0, 1))
    fine = (high - low) / 8
    start = low + fine * np.arange(8)[:, None]
    place, weight = start + fine * (nodes + 1) / 2, fine / 2 * weights
    log_r = np.log(most) - np.logaddexp(0, -place)
    own, other = np.exp(log_r), most * np.exp(-np.logaddexp(0, place))
    with np.errstate(divide="ignore"):
        log_rest = np.where(own < 1e-8, log_r, np.log(-np.expm1(-own)))
    ones = float(mpmath.log(mpmath.beta(a, b)))  # SciPy's is off by 1e-8 of millions
    log_density = -a * own + (b - 1) * log_rest - ones
    speed = log_r - np.logaddexp(0, place)
    cdf = sp.betainc(e, c, -np.expm1(-other))
    return float((weight * np.exp(log_density + speed) * cdf).sum())


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_a_product_of_two_betas_is_its_integral(pair: Any) -> None:
    of = d.BetaProduct(*np.array(pair).T)
    x = np.asarray(of.quantile(np.array([1e-4, 0.02, 0.3, 0.5, 0.8, 0.99, 0.9999])))
    x = x[(x > 1e-280) & (x < 1 - 1e-9)]
    expected = np.array([by_panels(pair, float(value)) for value in x])
    assert_allclose(of.exceeds(x), expected, atol=1e-8)
    assert_allclose(of.cdf(x), 1 - expected, atol=1e-8)
    # The density and its slope are those of the distribution function.
    x = x[(x > 1e-12) & (x < 1 - 1e-7)]
    step = 3e-3 / (np.abs(of.slope(x)) + 1 / of.sd())
    rise = (of.cdf(x + step) - of.cdf(x - step)) / (2 * step)
    assert_allclose(np.exp(of.log_prob(x)), rise, rtol=1e-4)
    bend = (of.log_prob(x + step) - of.log_prob(x - step)) / (2 * step)
    assert_allclose(of.slope(x) * step, bend * step, atol=1e-5)


def test_a_product_of_four_betas_is_meijers_function() -> None:
    c, e = np.array([3.0, 0.8, 12.0, 2.5]), np.array([0.7, 2.0, 5.0, 0.4])
    of = d.BetaProduct(c, e)
    ones = float(np.exp((sp.gammaln(c + e) - sp.gammaln(c)).sum()))
    for x in (0.01, 0.2, 0.6):
        value = ones * mpmath.meijerg([[], list(c + e - 1)], [list(c - 1), []], x)
        assert np.exp(of.log_prob(x)) == pytest.approx(float(value), rel=1e-8)


def test_marginals_are_those_of_draws() -> None:
    law = FAMILY.posterior(
        NestedCounts(np.array([[2.0, 40.0, 0.5], [0.6, 3.0, 900.0]]), np.array([9.0, 0.8, 30.0]))
    )
    draws = law.sample(4000, seed=1)
    assert_allclose(draws.sum(-1), 1)
    for unit, component in itertools.product(range(2), range(4)):
        marginal = law.marginal(component)[unit]
        assert st.kstest(draws[:, unit, component], marginal.cdf).pvalue > 1e-3
        own = marginal.sample(4000, seed=2)
        assert st.kstest(own, marginal.cdf).pvalue > 1e-3
        assert_allclose(marginal.mean(), law.mean()[unit, component], rtol=1e-13)
        assert_allclose(marginal.sd(), law.sd()[unit, component], rtol=1e-12)
    error = 5 / np.sqrt(4000)
    assert_allclose(np.cov(draws[:, 0].T), law.covariance()[0], atol=error * law.sd()[0].max() ** 2)


def test_one_class_is_as_among_all() -> None:
    law, pred = FAMILY.posterior(UNEVEN), FAMILY.predictive(UNEVEN, 300)
    for component in (0, 1, 2, -1):
        assert_allclose(law.marginal(component).cdf(0.4), law.cdf(0.4)[component], atol=1e-12)
        assert_allclose(pred.marginal(component).cdf(90), pred.cdf(90)[component], atol=1e-9)
    assert isinstance(law.marginal(0), d.Beta)
    assert isinstance(pred.marginal(0), d.BetaBinomial)


def test_the_mode_is_where_the_density_is_highest() -> None:
    law = FAMILY.posterior(NestedCounts(np.array([6.0, 3.0]), np.array([9.0, 2.5])))
    top, mode = law.log_prob(law.mode()), law.mode()
    near = mode + 1e-4 * np.array([[1, -1, 0], [-1, 0, 1], [0, 1, -1], [-1, 1, 0]])
    assert (law.log_prob(near) < top).all()
    assert np.isnan(FAMILY.posterior(NestedCounts(np.ones(2), np.full(2, 9.0))).mode()).all()
    # Later classes that are known too little: the density is infinite where nothing is left.
    assert np.isnan(
        FAMILY.posterior(NestedCounts(np.full(2, 5.0), np.array([1.5, 9.0]))).mode()
    ).all()


def test_densities_at_the_ends() -> None:
    of = d.BetaProduct(
        np.array([[1.0, 4.0], [0.5, 4.0], [2.0, 4.0], [1.0, 1.0]]), np.full((4, 2), 0.5)
    )
    assert_allclose(of.log_prob(0.0), [np.log(0.5 * 3.5 / 3), np.inf, -np.inf, np.inf])
    assert_allclose(of.log_prob(1e-12)[0], of.log_prob(0.0)[0], rtol=1e-3)
    assert_allclose(of.log_prob(1 - 1e-6)[0], of.log_prob(1.0)[0], rtol=1e-5)
    assert of.mode().tolist()[1] == 0
    assert_allclose(of.cdf(-1.0), 0)
    assert_allclose(of.cdf(2.0), 1)
    assert_allclose(of.quantile(np.array([[0.0], [1.0]])), [[0.0] * 4, [1.0] * 4])


def test_the_entropy_of_sharp_and_broad_factors_is_that_of_draws() -> None:
    of = d.BetaProduct(np.array([[0.6, 5e3], [2.0, 40.0]]), np.array([[0.4, 8e3], [0.3, 0.2]]))
    surprise = -of.log_prob(np.clip(of.sample(3000, seed=0), 1e-300, 1 - 1e-16))
    error = surprise.std(0) / np.sqrt(3000)
    assert (np.abs(of.entropy() - surprise.mean(0)) <= 4 * error).all()


# --- counts -------------------------------------------------------------------------------------


def all_counts(n: int, classes: int) -> np.ndarray:
    every = itertools.product(range(n + 1), repeat=classes)
    return np.array([counts for counts in every if sum(counts) == n], float)


@pytest.mark.parametrize("trials", [1, 7])
def test_the_predictive_sums_to_one_and_marginals_to_its_sums(trials: int) -> None:
    natural = NestedCounts(np.array([2.0, 0.4, 9.0]), np.array([7.0, 30.0, 0.6]))
    law, every = FAMILY.predictive(natural, trials), all_counts(trials, 4)
    mass = np.exp(law.log_prob(every))
    assert mass.sum() == pytest.approx(1, abs=1e-12)
    mean = mass @ every
    assert_allclose(law.mean(), mean, rtol=1e-12)
    spread = (every - mean).T @ (mass[:, None] * (every - mean))
    assert_allclose(law.covariance(), spread, atol=1e-12)
    assert_allclose(law.sd(), np.sqrt(np.diag(spread)), rtol=1e-10)
    for component in range(4):
        sums = [mass[every[:, component] == k].sum() for k in range(trials + 1)]
        marginal = law.marginal(component)
        assert_allclose(marginal.cdf(np.arange(trials + 1)), np.cumsum(sums), atol=1e-9)
        assert_allclose(np.exp(marginal.log_prob(np.arange(trials + 1))), sums, rtol=1e-8)
        assert marginal.mode() == np.argmax(sums)
    assert (
        law.log_prob([[1.0] * 4, [0.5, 0.5, 0, 0], [-1, trials + 1, 0, 0]]).tolist()
        == [-np.inf] * 3
    )


def chain(natural: NestedCounts, n: int, component: int) -> np.ndarray:
    """The mass of one class's count, by summing over what earlier classes leave."""
    left = np.zeros(n + 1)
    left[n] = 1.0
    table = np.arange(n + 1)
    for k, (a, b) in enumerate(zip(natural.counts, natural.later, strict=True)):
        if k == component:
            break
        taken = np.exp(st.betabinom.logpmf(table[:, None], table, a, b))  # k of each number left
        left = np.array([sum(left[m] * taken[m - j, m] for m in range(j, n + 1)) for j in table])
    else:
        return left
    own = np.exp(st.betabinom.logpmf(table[:, None], table, a, b))
    return own @ left


@pytest.mark.parametrize(
    "natural", [UNEVEN, NestedCounts(np.array([0.3, 2.0]), np.array([5.0, 0.1]))]
)
@pytest.mark.parametrize("component", [1, 2])
def test_counts_among_many_trials_are_sums_over_those_left(
    natural: NestedCounts, component: int
) -> None:
    n = 160
    mass = chain(natural, n, component)
    law = FAMILY.predictive(natural, n).marginal(component)
    up_to = np.cumsum(mass)
    assert_allclose(law.cdf(np.arange(n + 1)), up_to, atol=2e-7)
    some = np.array([0, 1, 3, 20, 77, 140, 159, 160])
    assert_allclose(law.log_prob(some), np.log(mass[some]), rtol=1e-7, atol=1e-7)
    assert law.mode() == np.argmax(mass)
    for q in (0.1, 0.5, 0.93):
        assert law.quantile(q) == (up_to < q).sum()
    first, last = law.interval(0.8)
    widths = [
        np.searchsorted(up_to, (up_to[i - 1] if i else 0.0) + 0.8) - i
        for i in range(n)
        if (up_to[i - 1] if i else 0.0) + 0.8 <= 1
    ]
    assert last - first == min(widths)


@pytest.mark.parametrize("n", [3_000, 400_000])
def test_counts_of_a_dirichlet_are_beta_binomial(n: int) -> None:
    alpha = np.array([[3.0, 5.0, 0.7, 2.0], [400.0, 3e3, 8.0, 2e5], [0.05, 0.4, 30.0, 0.1]])
    mine = FAMILY.predictive(FAMILY.prior(alpha), n).marginal()
    theirs = PLAIN.predictive(PLAIN.prior(alpha), n).marginal()
    k = np.concatenate([[0, 1, 5, n - 1, n], np.linspace(10, n - 10, 40).round()])[:, None, None]
    assert_allclose(mine.cdf(k), theirs.cdf(k), atol=2e-6 if n > 8192 else 2e-7)
    assert_allclose(mine.mean(), theirs.mean(), rtol=1e-12)
    assert_allclose(mine.sd(), theirs.sd(), rtol=1e-9)
    assert_allclose(mine.log_prob(k[:6]), theirs.log_prob(k[:6]), rtol=1e-7, atol=1e-7)
    first, last = mine.interval(0.9)
    held = mine.cdf(last) - mine.cdf(first - 1)
    assert (held >= 0.9 - 1e-9).all()
    low, high = theirs.interval(0.9)
    assert ((last - first) <= (high - low) * 1.002 + 1).all()
    assert_allclose(mine.quantile(0.3), theirs.quantile(0.3), atol=1)


def test_draws_of_counts_have_their_moments() -> None:
    law = FAMILY.predictive(UNEVEN, np.array([40.0, 0.0, 2000.0]))
    draws = law.sample(4000, seed=0)
    assert (draws.sum(-1) == [40, 0, 2000]).all()
    error = law.sd() / np.sqrt(4000)
    assert (np.abs(draws.mean(0) - law.mean()) <= 5 * error).all()
    own = law.marginal(2).sample(4000, seed=1)
    assert (np.abs(own.mean(0) - law.mean()[:, 2]) <= 5 * error[:, 2]).all()
    assert law.interval(0.9)[1][1].tolist() == [0, 0, 0]


def test_mixtures_answer_by_their_components() -> None:
    """As an ensemble's predictive does: some hundreds of thousands of trials, five members."""
    outputs = np.array([3.0, 0.2, 3.0, 4.0]) + 0.3 * rng.normal(size=(5, 12, 4))
    natural = NestedCounts.from_unconstrained(outputs, "log")
    trials = 10.0 ** rng.uniform(1, 5.6, 12) // 1
    share = rng.dirichlet(np.ones(5))
    law: Any = d.mixture(share, FAMILY.predictive(natural, trials))
    k = np.floor(law.mean())
    expected = np.tensordot(share, FAMILY.predictive(natural, trials).cdf(k), 1)
    assert_allclose(law.cdf(k), expected, atol=1e-10)
    y = law.sample(1, seed=0)[0]
    found = assess.coverage(law, y, (0.8,))
    first, last = law.interval(0.8)
    assert_allclose(found.observed, ((first <= y) & (y <= last)).mean(0))
    assert (found.expected >= 0.8 - 1e-9).all()
    u = assess.pit(law, y, seed=0)
    assert st.kstest(u[:, 2], "uniform").pvalue > 1e-3
    theta: Any = d.mixture(share, FAMILY.posterior(natural[:, :3]))
    low, high = theta.interval(0.9)
    assert_allclose(theta.cdf(high) - theta.cdf(low), 0.9, atol=1e-5)


# --- numerics and refusals ----------------------------------------------------------------------


def test_float32_under_jit_keeps_its_digits_with_many_trials() -> None:
    outputs = np.array([3.0, -0.2, 3.0, 5.0]) + rng.normal(size=(40, 4))
    y = FAMILY.predictive(NestedCounts.from_unconstrained(outputs, "log"), 400_000).sample(1, 0)[0]

    def score(at: Any, counts: Any) -> Any:
        natural = FAMILY.from_unconstrained(at, "log")
        return FAMILY.log_predictive(natural, counts).sum()

    single = jax.jit(jax.value_and_grad(score))
    value, slope = single(jnp.asarray(outputs, jnp.float32), jnp.asarray(y, jnp.float32))
    with jax.enable_x64(True):
        exact, steep = jax.value_and_grad(score)(jnp.asarray(outputs), jnp.asarray(y))
    assert float(value) == pytest.approx(float(exact), rel=1e-5)
    assert_allclose(slope, steep, rtol=2e-3, atol=2e-3)
    assert float(exact) == pytest.approx(score(outputs, y), rel=1e-12)


def test_answers_on_jax_arrays_are_those_on_numpy() -> None:
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), UNEVEN)
    mine, theirs = FAMILY.posterior(single), FAMILY.posterior(UNEVEN)
    assert_allclose(mine.quantile(0.2), theirs.quantile(0.2), rtol=1e-5)
    counts = FAMILY.predictive(single, jnp.asarray(30.0))
    assert_allclose(counts.cdf(9.0), FAMILY.predictive(UNEVEN, 30).cdf(9.0), atol=1e-5)
    assert_allclose(mine.sample(3, jax.random.key(0)).sum(-1), 1, rtol=1e-6)


REFUSED = [
    (lambda: ldf.NestedMultinomial(classes=1), DataError, "'classes': 1"),
    (lambda: FAMILY.prior([1.0, 2.0], later=[3.0]), DataError, "later"),
    (lambda: ldf.NestedMultinomial(classes=4).posterior(UNEVEN), ValueError, "a statistic of 3"),
    (lambda: FAMILY.outputs(), ValueError, "classes=K"),
    (lambda: FAMILY.statistic([[1, 2.5]]), DataError, "whole number"),
    (lambda: FAMILY.log_predictive(UNEVEN, [1, 2]), DataError, "has 2 classes"),
    (lambda: FAMILY.posterior(UNEVEN.zero()).mean(), DoesNotExist, "posterior mean"),
    (lambda: FAMILY.predictive(UNEVEN.zero(), 3).mean(), DoesNotExist, "predictive"),
    (lambda: FAMILY.posterior(UNEVEN).marginal(3), DataError, "component"),
    (lambda: FAMILY.predictive(UNEVEN, 2.0**54).cdf(3), DataError, "too many to tabulate"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_cannot_be_is_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# --- learning -----------------------------------------------------------------------------------

COLOURS = {"counts": ["red", "green", "blue"]}


@pytest.mark.full
def test_the_regression_is_one_of_each_split() -> None:
    """With a log-linear count, splits share nothing: each is a beta-binomial regression."""
    frame = villages().dropna()
    x, y = frame[["lights", "roads"]].to_numpy(), frame[COLOURS["counts"]].to_numpy()
    every = np.ones(len(x), bool)

    def score(family: Any, name: str, columns: dict[str, Any]) -> np.ndarray:
        spec = baselines(family, penalty=0.0, preprocess="standard")[name]
        (fit,) = learn(spec, Table(x, columns, every, np.ones(len(x))), seed=0)
        return fit.log_score(fit.said(x), columns)

    name = "generalised-dirichlet-multinomial, log-linear count"
    whole = score(ldf.NestedMultinomial(classes=3), name, {"counts": y})
    left, parts = y.sum(1), np.zeros(len(x))
    for k in range(2):
        columns = {"successes": y[:, k], "trials": left}
        parts += score(ldf.Binomial(), "beta-binomial, log-linear count", columns)
        left = left - y[:, k]
    assert whole.sum() == pytest.approx(parts.sum(), abs=1e-5)


def test_it_is_learned_kept_and_asked_as_other_families(tmp_path: Path) -> None:
    frame = villages()
    model = fusion("nested-multinomial", COLOURS, ensemble=LINES).fit(frame)
    post = model.posterior(frame)
    assert post.mean().shape == (120, 3)
    assert_allclose(post.mean().sum(1), 1)
    table = model.posterior(frame.head(6)).to_frame()
    assert {"mean of red", "upper of blue", "pseudo_observations"} <= set(table.columns)
    worth = model.pseudo_observations(frame)
    assert_allclose(worth[[f"rate of {c}" for c in COLOURS["counts"]]].sum(axis=1), 1)
    one = post.component("green")
    assert_allclose(one.mean(), post.mean()[:, 1])
    model.save(tmp_path / "model")
    again = ldf.load(tmp_path / "model")
    pred, same = model.predictive(frame, trials=12), again.predictive(frame, trials=12)
    assert_allclose(same.mean(), pred.mean())
    assert_allclose(same.interval(0.9)[1], pred.interval(0.9)[1])
    counts = ClassCounts(frame[COLOURS["counts"]].dropna().to_numpy())
    assert pred.log_prob(counts.counts[0]).shape == (120,)


@pytest.mark.full
def test_cross_validation_names_its_classes_and_baselines() -> None:
    model = fusion(ldf.NestedMultinomial(), COLOURS, ensemble=LINES)
    name = "generalised-dirichlet-multinomial"
    cv = ldf.cross_validate(model, villages(60), folds=3, baselines=[name])
    assert list(cv.answers) == ["ldf", name]
    rows = cv.coverage("ldf", (0.8,))
    assert [row["component"] for row in rows] == [0, 1, 2]
    assert cv.rows()[0]["log_score"] > cv.rows()[1]["log_score"] - 1
    assert cv.pit("ldf").shape[1] == 3
