"""Beta-binomials of many trials by cells: against tables of all counts, SciPy and limits."""

from __future__ import annotations

import time
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.special
import scipy.stats as ss

from ldf import DataError, assess
from ldf.distributions import (
    Beta,
    BetaBinomial,
    Dirichlet,
    DirichletMultinomial,
    Gamma,
    cells,
    mixture,
)
from ldf.distributions import beta as rates
from ldf.distributions import beta_binomial as dense
from ldf.results import Posterior, Predictive, Units
from ldf.statistic import Arrivals, ClassCounts, Trials

PAIRS = {
    "U-shaped": (0.3, 0.5),
    "skewed": (0.05, 30.0),
    "mirrored": (30.0, 0.05),
    "moderate": (20.0, 80.0),
    "concentrated": (1e4, 3e4),
    "nearly binomial": (1e8, 2e8),
}
A, B = (np.array(side) for side in zip(*PAIRS.values(), strict=True))
LEVELS = np.array([0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
MASSES = (0.5, 0.8, 0.9, 0.95)
rng = np.random.default_rng(3)
K, M = 5, 6
WEIGHTS = rng.dirichlet(np.ones(K), M).T
# Each unit has five of the pairs, or such as are near to each other.
MIXED_A = np.stack([np.roll(A, shift) for shift in range(K)])
MIXED_B = np.stack([np.roll(B, shift) for shift in range(K)])
MIXED_A[:, 3:] = rng.uniform(15, 25, (K, 3)) * [1, 10, 1000]
MIXED_B[:, 3:] = rng.uniform(60, 90, (K, 3)) * [1, 10, 1000]


def sizes(units: int) -> np.ndarray:
    return np.round(np.linspace(1e4, 6e4, units))


def every_count(weights: Any, a: Any, b: Any, n: float) -> np.ndarray:
    """The cumulative masses of all counts, of one unit."""
    a, b, weights = (np.atleast_1d(part).astype(float) for part in (a, b, weights))
    mass = weights @ dense.mass_table(a, b, np.full(len(a), n))
    return np.cumsum(mass)


def agrees(of: Any, unit: int, up_to: np.ndarray) -> None:
    """All answers about a unit, beside the sums over all counts."""
    of = of[unit : unit + 1]
    spread = float(of.sd()[0])
    k = np.unique(np.linspace(-2, len(up_to), 2000).astype(int))
    k = np.unique(np.concatenate([k, np.arange(50), len(up_to) - np.arange(50)]))
    below = np.concatenate([[0.0], up_to])[np.clip(k + 1, 0, len(up_to))]
    found = of.cdf(k[:, None] + 0.5)[:, 0]
    assert np.abs(found - below).max() < 1e-6
    assert np.diff(found).min() > -1e-13
    quantiles = of.quantile(LEVELS[:, None])[:, 0]
    assert np.abs(quantiles - np.searchsorted(up_to, LEVELS)).max() <= 0.02 * spread
    for mass in MASSES:
        (low,), (high,) = of.interval(mass)
        first, last = dense.narrowest_window(up_to[None], mass)[0]
        below = up_to[int(low) - 1] if low else 0.0
        assert up_to[int(high)] - below >= mass - 1e-6
        excess = (high - low) - (last - first)  # one count is what whole numbers may cost
        assert -1e-6 * (last - first) <= excess <= max(1, 0.002 * (last - first))


@pytest.mark.parametrize("n", [1e4, 2e5])
def test_they_agree_with_tables_of_all_counts(n: float) -> None:
    of = BetaBinomial(Trials(A, B), np.full(len(A), n))
    for unit in range(len(A)):
        agrees(of, unit, every_count(1.0, A[unit], B[unit], n))


def test_they_agree_with_scipy() -> None:
    n, k = 20_000, np.arange(0, 20_001, 2_500)
    found = BetaBinomial(Trials(A[:4], B[:4]), float(n)).cdf(k[:, None])
    for unit in range(4):
        wanted = np.cumsum(ss.betabinom.pmf(np.arange(n + 1), n, A[unit], B[unit]))[k]
        assert np.allclose(found[:, unit], wanted, rtol=0, atol=1e-6)


def test_mixtures_agree_with_mixed_tables() -> None:
    n = sizes(M)
    of = mixture(WEIGHTS, BetaBinomial(Trials(MIXED_A, MIXED_B), n))
    modes = of.mode()
    for unit in range(M):
        up_to = every_count(WEIGHTS[:, unit], MIXED_A[:, unit], MIXED_B[:, unit], n[unit])
        agrees(of, unit, up_to)
        assert modes[unit] == dense.highest_count(up_to[None])[0]
        at = of[unit : unit + 1]
        assert np.allclose(at.cdf([n[unit] / 3]) + at.exceeds([n[unit] / 3]), 1, atol=1e-15)


def test_a_mixture_of_mirror_images_has_no_single_mode() -> None:
    law = BetaBinomial(Trials(np.array([[30.0], [60.0]]), np.array([[60.0], [30.0]])), [20_001.0])
    assert np.isnan(mixture([0.5, 0.5], law).mode()[0])
    assert mixture([0.6, 0.4], law).mode()[0] == pytest.approx(20_001 * 29 / 88, rel=0.01)


def test_components_may_differ_in_their_trials() -> None:
    n = np.array([[9_000.0], [30_000.0], [12_345.0]])
    weights, a, b = np.array([0.3, 0.5, 0.2]), np.array([0.5, 3.0, 40.0]), np.array([0.4, 5.0, 2.0])
    of = mixture(weights, BetaBinomial(Trials(a[:, None], b[:, None]), n))
    mass = np.zeros(30_001)
    for w, *law in zip(weights, a, b, n[:, 0], strict=True):
        table = dense.mass_table(*(np.array([part]) for part in law))[0]
        mass[: len(table)] += w * table
    agrees(of, 0, np.cumsum(mass))


def test_class_counts_have_them_as_marginals() -> None:
    counts = np.array([[[2.0, 30.0, 8.0]], [[4.0, 20.0, 9.0]]])
    of = mixture([0.5, 0.5], DirichletMultinomial(ClassCounts(counts), np.array([15_000.0])))
    low, high = of.interval(0.9)
    for j in range(3):
        a, b = counts[:, 0, j], counts[:, 0].sum(-1) - counts[:, 0, j]
        up_to = every_count([0.5, 0.5], a, b, 15_000)
        first, last = dense.narrowest_window(up_to[None], 0.9)[0]
        assert (high - low)[0, j] == pytest.approx(last - first, rel=0.002)
        assert of.cdf(low)[0, j] == pytest.approx(up_to[int(low[0, j])], abs=1e-6)


def test_edges_are_in_order_and_cells_sum_to_one() -> None:
    n = np.tile(sizes(M), (K, 1))
    edges = cells.edges_of(MIXED_A, MIXED_B, n)
    assert (np.diff(edges, axis=1) >= 0).all()
    assert (edges == np.round(edges)).all()
    assert (edges[:, 0] == -1).all()
    assert (edges[:, -1] == n[0]).all()
    found = cells.cells_of(MIXED_A, MIXED_B, n, WEIGHTS)
    assert np.allclose(found.up_to[:, -1], 1, rtol=0, atol=1e-14)
    assert (np.diff(found.up_to, axis=1) >= 0).all()


def test_the_rule_sums_cubics_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ k³ over many counts, and any two counts."""
    monkeypatch.setattr(cells, "_mass", lambda a, b, n, k: k**3)
    law = tuple(np.full((1, 1, 1), value) for value in (1.0, 1.0, 1e6, 1.0))
    low, high = np.array([[9.0, 0.0, 4.0, 5.0]]), np.array([[100.0, 1000.0, 6.0, 6.0]])
    wanted = [(np.arange(i + 1, j + 1) ** 3).sum() for i, j in zip(low[0], high[0], strict=True)]
    assert np.allclose(cells._sum(law, low, high)[0], wanted, rtol=1e-14)


@pytest.mark.parametrize("n", [5e8, 5e12])
def test_of_very_many_trials_the_share_is_the_rate(n: float) -> None:
    """k/n is Beta, up to terms of order 1/k."""
    a, b = np.array([0.8, 20.0, 300.0, 0.05]), np.array([2.0, 80.0, 300.0, 30.0])
    of, limit = BetaBinomial(Trials(a, b), np.full(4, n)), Beta(Trials(a, b))
    share = limit.quantile(LEVELS[1:, None])
    clear = share * n > 1e5  # of few counts each has a mass that the Beta does not know
    assert clear.sum() >= 17
    off = of.cdf(np.round(share * n)) - LEVELS[1:, None]
    assert np.abs(off[clear]).max() < 1e-6
    off = (of.quantile(LEVELS[1:, None]) / n - share) / limit.sd()
    assert np.abs(off[clear]).max() < 1e-4
    (low, high), (start, end) = of.interval(0.9), limit.interval(0.9)
    assert np.allclose((high - low) / n, end - start, rtol=0.002)


def test_of_very_many_trials_at_a_known_rate_it_is_binomial() -> None:
    n, rate = 5e8, np.array([0.3, 1e-4])
    of = BetaBinomial(Trials(1e15 * rate, 1e15 * (1 - rate)), np.full(2, n))
    z = np.array([-1.0, 0.0, 2.0])[:, None]
    k = np.floor(n * rate + z * of.sd())
    wanted = scipy.special.betainc(n - k, k + 1, 1 - rate)
    assert np.allclose(of.cdf(k), wanted, rtol=0, atol=1e-6)


def test_more_than_floats_can_count_is_refused() -> None:
    of = BetaBinomial(Trials(np.ones(2), np.ones(2)), np.array([10.0, 1e17]))
    with pytest.raises(DataError, match="too many"):
        of.cdf(3)


def test_a_rate_that_is_surely_zero_or_one() -> None:
    of = BetaBinomial(Trials(np.array([0.0, 5.0]), np.array([5.0, 0.0])), np.full(2, 1e5))
    assert np.array_equal(of.quantile(0.4), [0.0, 1e5])
    assert np.array_equal(of.cdf(1e5 - 1), [1.0, 0.0])
    assert np.array_equal(np.stack(of.interval(0.9)), [[0.0, 1e5], [0.0, 1e5]])


def test_values_beyond_the_ends() -> None:
    of = BetaBinomial(Trials(A, B), 5e4)
    assert (of.cdf(-0.5) == 0).all()
    assert (of.cdf(-np.inf) == 0).all()
    assert (of.cdf(5e4) == 1).all()
    assert (of.cdf(np.inf) == 1).all()
    assert (of.quantile(0.0) == 0).all()
    assert (of.quantile(1.0) <= 5e4).all()


def test_few_trials_are_answered_for_as_before() -> None:
    """To the bit: by the table of all counts; also beside units of many."""
    n = np.array([8192.0, 8192.0, 8192.0])
    of = BetaBinomial(Trials(A[:3], B[:3]), n)
    up_to = np.cumsum(dense.mass_table(A[:3], B[:3], n), 1)
    assert np.array_equal(of.cdf(100), np.minimum(up_to[:, 100], 1))
    assert np.array_equal(of.quantile(0.3), dense.first_count(up_to, np.full(3, 0.3)))
    assert np.array_equal(np.stack(of.interval(0.9), 1), dense.narrowest_window(up_to, 0.9))
    beside = BetaBinomial(Trials(A[:4], B[:4]), np.append(n, 5e4))
    assert np.array_equal(beside.cdf(100)[:3], of.cdf(100))
    few = mixture([0.4, 0.6], BetaBinomial(Trials(MIXED_A[:2], MIXED_B[:2]), 500.0))
    parts = few.components.cdf(100)
    assert np.array_equal(few.cdf(100), np.minimum((np.array([[0.4], [0.6]]) * parts).sum(0), 1))


def test_units_do_not_depend_on_each_other() -> None:
    """Whatever their sizes: also where masses are computed in two ways."""
    n = np.array([100.0, 5e4, 2e9, 5e4, 8193.0])
    a, b = MIXED_A[:, :5], MIXED_B[:, :5]
    of = mixture(WEIGHTS[:, :5], BetaBinomial(Trials(a, b), n))
    together = np.stack([*of.interval(0.9), of.quantile(0.2), of.cdf(n / 3), of.mode()])
    for unit in range(5):
        at = of[unit : unit + 1]
        alone = [*at.interval(0.9), at.quantile(0.2), at.cdf(n[unit] / 3), at.mode()]
        assert np.allclose(together[:, unit], np.ravel(alone), rtol=1e-12)


def test_answers_from_kept_tables_are_those_of_new_ones() -> None:
    of = mixture(WEIGHTS, BetaBinomial(Trials(MIXED_A, MIXED_B), sizes(M)))

    def answers() -> np.ndarray:
        return np.stack([*of.interval(0.8), of.quantile(0.4), of.cdf(4000), of.mode()])

    cells._kept.clear()
    first = answers()
    assert len(cells._kept) == 1  # one table for all questions
    assert np.array_equal(answers(), first)
    # Other numbers have other tables.
    other = mixture(WEIGHTS[::-1], BetaBinomial(Trials(MIXED_A, MIXED_B), sizes(M)))
    assert not np.array_equal(other.cdf(4000), of.cdf(4000))
    assert len(cells._kept) == 2


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    cells._kept.clear()
    monkeypatch.setattr(cells, "KEPT", 3000)
    for n in (1e4, 2e4, 3e4, 4e4):
        BetaBinomial(Trials(A[:1], B[:1]), np.array([n])).cdf(3)
    size = sum(table.edges.size + table.up_to.size for table in cells._kept.values())
    assert 0 < size <= 3000


def test_one_unit_asked_about_many_values_is_tabulated_once() -> None:
    cells._kept.clear()
    of = mixture(WEIGHTS, BetaBinomial(Trials(MIXED_A, MIXED_B), sizes(M)))
    of.quantile(np.linspace(0.1, 0.9, 9)[:, None])
    (table,) = cells._kept.values()
    assert len(table.edges) == M


def test_coverage_is_right() -> None:
    of = mixture(WEIGHTS, BetaBinomial(Trials(MIXED_A, MIXED_B), sizes(M)))
    found = assess.coverage(of, of.mean().round())
    assert (found.expected >= np.array(MASSES) - 1e-6).all()


def test_they_are_fast() -> None:
    """Several times faster than the masses of all counts."""
    units = 8
    a, b, n = np.linspace(5, 30, units), np.linspace(20, 90, units), np.full(units, 2e5)

    def seconds(function: Any) -> float:
        found = []
        for _ in range(2):
            cells._kept.clear()
            start = time.perf_counter()
            function()
            found.append(time.perf_counter() - start)
        return min(found)

    by_counts = seconds(
        lambda: dense.narrowest_window(np.cumsum(dense.mass_table(a, b, n), 1), 0.9)
    )
    by_cells = seconds(lambda: BetaBinomial(Trials(a, b), n).interval(0.9))
    assert by_counts > 5 * by_cells


# --- rates that are nearly known ----------------------------------------------------------------


def _integral(a: float, b: float, x: float) -> float:
    """P(at most x), by quadrature."""
    with mpmath.workdps(40):
        a, b, x = (mpmath.mpf(v) for v in (a, b, x))
        mean, total = a / (a + b), a + b
        sd = mpmath.sqrt(mean * (1 - mean) / total)
        peak = (a - 1) / (total - 2) if a > 1 else mean

        def density(t: Any) -> Any:
            top = (a - 1) * mpmath.log(t / peak) + (b - 1) * mpmath.log((1 - t) / (1 - peak))
            return mpmath.exp(top)

        low, high = max(mean - 30 * sd, mpmath.mpf(10) ** -60), mean + 30 * sd
        below = mpmath.quad(density, mpmath.linspace(low, x, 9))
        return float(below / (below + mpmath.quad(density, mpmath.linspace(x, high, 9))))


SURE = {
    "even": (5e12, 5e12),
    "uneven": (3e12, 2e16),
    "at the limit": (1.1e6, 1e11),
    "few": (0.9e6, 1e11),
    "very few": (7.5, 1e14),
    "rare failures": (1e12, 400.0),
}


@pytest.mark.parametrize("name", SURE)
def test_a_nearly_known_rate_is_right(name: str) -> None:
    a, b = SURE[name]
    of = Beta(Trials(np.array([a]), np.array([b])))
    q = np.array([0.01, 0.3, 0.8, 0.99])
    x = of.quantile(q[:, None])
    # What is few is integrated over, whichever it is: 1 − θ keeps its digits.
    exact = [_integral(a, b, at) if a <= b else 1 - _integral(b, a, 1 - at) for at in x[:, 0]]
    near_one = 1e-16 / of.sd()[0] if a > b else 0.0  # what the last digit of θ is worth
    assert np.allclose(exact, q, rtol=0, atol=1e-6 + near_one)
    assert np.allclose(of.cdf(x)[:, 0], exact, rtol=0, atol=1e-6)
    assert np.allclose(of.cdf(x) + of.exceeds(x), 1, rtol=0, atol=1e-14)


def test_limits_go_on_where_scipy_ends() -> None:
    """On both sides of where the limits begin, as far as SciPy is right."""
    total = 0.99 * rates.SURE
    for share in (0.4, 1e-3, 1e-7):
        a, b = np.array([total * share]), np.array([total * (1 - share)])
        of = Beta(Trials(a, b))
        x = of.quantile(np.array([[0.02], [0.5], [0.9]]))
        assert np.allclose(rates._limit_cdf(a, b, x), of.cdf(x), rtol=0, atol=2e-7)


def test_intervals_of_nearly_known_rates_come_at_once() -> None:
    total = np.repeat([1e13, 1e16, 1e18, 1e20], 40)
    share = np.tile(np.linspace(0.001, 0.6, 40), 4)
    of = Beta(Trials(total * share, total * (1 - share)))
    start = time.perf_counter()
    low, high = of.interval(0.9)
    assert time.perf_counter() - start < 5
    z = ss.norm.ppf(0.95)
    assert np.allclose((low - of.mean()) / of.sd(), -z, atol=1e-4)
    assert np.allclose((high - of.mean()) / of.sd(), z, atol=1e-4)


def test_ends_of_nearly_known_rates() -> None:
    of = Beta(Trials(np.array([1e13, 2.0, 1e20]), np.array([1e13, 1e20, 2.0])))
    assert np.array_equal(of.cdf(0), [0, 0, 0])
    assert np.array_equal(of.cdf(1), [1, 1, 1])
    assert np.array_equal(of.quantile(0.0), [0, 0, 0])
    assert np.array_equal(of.quantile(1.0), [1, 1, 1])


# --- no units at all ----------------------------------------------------------------------------

NONE = np.ones((2, 0))
EMPTY: dict[str, Any] = {
    "Beta": Beta(Trials(NONE, NONE)),
    "Gamma": Gamma(Arrivals(NONE, NONE)),
    "BetaBinomial": BetaBinomial(Trials(NONE, NONE), np.ones(0)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_of_no_units_there_is_an_empty_table(name: str) -> None:
    law = mixture([0.5, 0.5], EMPTY[name])
    units = Units(pd.DataFrame({"people": []}), np.empty(0, object), ())
    of: Any = Predictive(law, units, "auxiliary", None, np.zeros(0, bool))
    if name != "BetaBinomial":
        of = Posterior(law, units, "auxiliary", None, np.zeros(0, bool))
    assert [len(end) for end in of.interval(0.9)] == [0, 0]
    table = of.to_frame()
    assert len(table) == 0
    assert {"unit", "mean", "sd", "lower", "upper"} <= set(table.columns)


def test_of_no_units_vectors_have_an_empty_table_too() -> None:
    law = mixture([0.5, 0.5], Dirichlet(ClassCounts(np.ones((2, 0, 3)))))
    units = Units(pd.DataFrame({"people": []}), np.empty(0, object), ("a", "b", "c"))
    table = Posterior(law, units, "auxiliary", None, np.zeros(0, bool)).to_frame()
    assert len(table) == 0
    assert "upper of c" in table.columns
