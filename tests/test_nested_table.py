"""Counts of nested classes among many trials: against sums over all counts, integrals and draws."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as sp
import scipy.stats as st
from numpy.testing import assert_allclose

import ldf.distributions as d
from ldf.distributions import nested_table, one_line
from ldf.distributions.beta_binomial import narrowest_window
from ldf.distributions.contour import invert_counts
from ldf.distributions.one_line import Law

rng = np.random.default_rng(7)

# Factors of the rate: both broad, one of them sharp, near zero, near one, with an infinite density.
FACTORS = [
    ((20.0, 30.0), (9.0, 40.0)),
    ((300.0, 5.3), (8.9, 4.9)),
    ((1200.0, 20.0), (21.0, 31.0)),
    ((4.0, 60.0), (900.0, 50.0)),
    ((700.0, 90.0), (3.0, 1.5)),
    ((0.4, 6.0), (3.0, 0.7)),
]
LEVELS = np.array([0.001, 0.05, 0.3, 0.5, 0.9, 0.999])


def mass(c: tuple[float, ...], e: tuple[float, ...], n: int) -> np.ndarray:
    """Of 0 … n: what the first factor leaves, and what the second leaves of that."""
    k = np.arange(n + 1)
    choose = sp.gammaln(k + 1)
    left = np.zeros(n + 1)
    left[n] = 1.0
    for one, two in zip(c, e, strict=True):
        up, down, total = sp.gammaln(one + k), sp.gammaln(two + k), sp.gammaln(one + two + k)
        start, kept = sp.betaln(one, two), np.zeros(n + 1)
        for m in np.flatnonzero(left > 1e-18):
            some = k[: m + 1]
            logs = choose[m] - choose[some] - choose[m - some] + up[some] + down[m - some]
            kept[: m + 1] += left[m] * np.exp(logs - total[m] - start)
        left = kept
    return left


def mixed(n: Any, jitter: float = 0.2) -> Any:
    """Of five members that differ by so much, for each of the rates."""
    c, e = (np.array(side) for side in zip(*FACTORS, strict=True))
    c, e = (part * np.exp(jitter * rng.normal(size=(5, *part.shape))) for part in (c, e))
    weights = rng.dirichlet(np.ones(5), len(FACTORS)).T
    return d.mixture(weights, d.NestedCount(c, e, np.broadcast_to(n, (5, len(FACTORS)))))


@pytest.mark.parametrize("n", [200, 1_500])
def test_mixtures_are_sums_over_all_counts(n: int) -> None:
    law = mixed(n)
    k = np.unique(np.concatenate([np.arange(20), np.linspace(0, n, 150).round(), n - np.arange(5)]))
    found, quantiles = law.cdf(k[:, None]), law.quantile(LEVELS[:, None])
    lower, upper = law.interval(0.8)
    for unit in range(len(FACTORS)):
        of = law.components[:, unit]
        each = [mass(*parts, n) for parts in zip(of.successes, of.failures, strict=True)]
        up_to = np.cumsum(law.weights[:, unit] @ np.array(each))
        assert_allclose(found[:, unit], up_to[k.astype(int)], atol=2e-7)
        assert_allclose(quantiles[:, unit], np.searchsorted(up_to, LEVELS), atol=1)
        first, last = lower[unit], upper[unit]
        held = up_to[int(last)] - (up_to[int(first) - 1] if first else 0.0)
        assert held >= 0.8 - 2e-7
        best = np.subtract(*narrowest_window(up_to[None], 0.8)[0][::-1])
        assert best - 1 <= last - first <= max(best + 1, 1.002 * best)


@pytest.mark.full
def test_five_thousand_trials_are_sums_over_all_counts() -> None:
    n = 5_000
    law = d.NestedCount(*(np.array(side) for side in zip(*FACTORS, strict=True)), float(n))
    for unit, factors in enumerate(FACTORS):
        up_to = np.cumsum(mass(*factors, n))
        assert_allclose(law[unit : unit + 1].cdf(np.arange(n)[:, None])[:, 0], up_to[:n], atol=2e-7)


def by_integral(c: Any, e: Any, n: Any, k: Any) -> float:
    """P(fewer than k) along a straight line, by mpmath."""
    with mpmath.workdps(25):
        k, n, lg = mpmath.mpf(k), mpmath.mpf(n), mpmath.loggamma
        spread = sum(mpmath.mpf(b) / a / (a + b) for a, b in zip(c, e, strict=True))
        width = 1 / mpmath.sqrt(spread + 1 / k - 1 / (n + 1))
        at = min(width, k / 2)

        def term(y: Any) -> Any:
            s = at + 1j * y * width
            logs = lg(k - s) - lg(k) - lg(n + 1 - s) + lg(n + 1)
            for a, b in zip(c, e, strict=True):
                logs += lg(a + s) - lg(a) - lg(a + b + s) + lg(a + b)
            return mpmath.re(mpmath.exp(logs) / s)

        ends = [0, 1, 2, 4, 8, 16, 40, 100, 400]
        return float(1 - width * mpmath.quad(term, ends) / mpmath.pi)


@pytest.mark.parametrize(
    ("factors", "n"), [(FACTORS[0], 3e4), (FACTORS[1], 2e6), (FACTORS[2], 5e14)]
)
def test_many_trials_are_mpmaths_integral(factors: Any, n: float) -> None:
    c, e = (np.array(side) for side in factors)
    law = d.NestedCount(c[None], e[None], np.array([n]))
    for z in (-1.5, 0.4):
        k = np.floor(law.mean()[0] + z * law.sd()[0])
        expected = by_integral(c, e, n, k + 1)
        assert law.cdf(k)[0] == pytest.approx(expected, abs=1e-7)
        alone = invert_counts(c[None], e[None], np.array([k + 1]), np.array([n])).below()
        assert alone[0] == pytest.approx(expected, abs=1e-8)


def test_one_line_is_right_for_all_its_places() -> None:
    """As much as two standard deviations of them, for members of their own opinions."""
    size = 60
    c, e = (10.0 ** rng.uniform(0.5, 3, (size, 4, 2)) for _ in range(2))
    c, e = (part[:, :1] * np.exp(0.15 * rng.normal(size=part.shape)) for part in (c, e))
    e[:10, :, 1] = 0  # a single factor
    n, weights = np.floor(10.0 ** rng.uniform(2, 7, size)), rng.dirichlet(np.ones(4), size)
    law = Law.of(weights, c, e, n)
    mean, sd = nested_table._moments(law)
    z = rng.uniform(-5, 4, (size, 1)) + np.linspace(0, 2, 9)
    k = np.clip(mean[:, None] + z * sd[:, None], 1.0, n[:, None] - 1)
    found, expected = one_line.below(law, k), np.zeros(k.shape)
    known = ~np.isnan(found).any(1)
    assert known.mean() > 0.9
    for j in range(4):
        rows = (np.repeat(part, 9, 0) for part in (c[:, j], e[:, j]))
        own = invert_counts(*rows, k.reshape(-1), np.repeat(n, 9)).below()
        expected += weights[:, j, None] * own.reshape(k.shape)
    assert_allclose(found[known], expected[known], atol=2e-8)


def test_members_that_are_far_apart_are_summed() -> None:
    shares = np.array([0.1, 0.4, 0.8])[:, None, None]
    c, e = 1e6 * shares * [1.0, 1.0], 1e6 * (1 - shares) * [1.0, 0.5]
    law: Any = d.mixture([0.2, 0.7, 0.1], d.NestedCount(c, e, np.array([300_000.0])))
    k = law.components.mean()
    k = np.concatenate([k, k + law.components.sd(), k - 2.5 * law.components.sd()])
    expected = np.tensordot(np.array([0.2, 0.7, 0.1]), law.components.cdf(k[:, None]), (0, 1))
    assert_allclose(law.cdf(k), expected, atol=1e-7)
    low, high = law.interval(0.65)  # of the likeliest member alone
    assert (low > k[0]) & (high < k[2])


def test_draws_of_millions_of_trials_have_uniform_ranks() -> None:
    law = mixed(np.array([3e4, 1e5, 4e6, 1e6, 2e5, 9e6]))
    draws = law.sample(20_000, seed=0)
    ranks = law.cdf(draws)
    for unit in range(len(FACTORS)):
        assert st.kstest(ranks[:, unit], "uniform").pvalue > 1e-3
    lower, upper = law.interval(0.9)
    inside = ((lower <= draws) & (draws <= upper)).mean(0)
    assert (np.abs(inside - 0.9) <= 4 * np.sqrt(0.09 / 20_000)).all()


def test_components_with_trials_of_their_own_are_mixed_by_values() -> None:
    trials = np.array([[150.0], [900.0]])
    c, e = np.full((2, 1, 2), 30.0), np.full((2, 1, 2), 20.0)
    law: Any = d.mixture([0.5, 0.5], d.NestedCount(c, e, trials))
    assert law.cdf(60.0)[0] == pytest.approx(law.components.cdf(60.0).mean(), abs=1e-12)
    assert law.cdf(law.quantile(0.7))[0] >= 0.7 > law.cdf(law.quantile(0.7) - 1)[0]
    low, high = law.interval(0.9)
    assert law.cdf(high)[0] - law.cdf(low - 1)[0] >= 0.9 - 1e-9
