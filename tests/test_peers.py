"""The common scoring of `make bench-peers`, and the peers that the project's environment has."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import statsmodels.api as sm

BENCH = str(Path(__file__).parents[1] / "bench")


@pytest.fixture(autouse=True)
def _bench_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)


def counts():
    from peer import counts

    return counts


def task(kind: str, seed: int = 0):
    """200 rows of two columns: 150 to learn from."""
    from peer.task import Task

    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 2))
    if kind == "binomial":
        n = rng.integers(1, 30, 200).astype(float)
        theta = rng.beta(*(4 * np.array([p := 1 / (1 + np.exp(-x[:, 0])), 1 - p])))
        y = rng.binomial(n.astype(int), theta).astype(float)
    else:
        n = rng.uniform(10, 1000, 200)
        y = rng.poisson(n * 0.01 * np.exp(x[:, 0]) * rng.gamma(3, 1 / 3, 200)).astype(float)
    old, new = slice(None, 150), slice(150, None)
    return Task(kind, x[old], y[old], n[old], x[new], n[new], seed), y[new]


def test_a_beta_binomial_is_scipys() -> None:
    n = np.array([1.0, 7.0, 40.0])
    mean, worth = np.array([0.2, 0.5, 0.97]), np.array([0.3, 4.0, 200.0])
    law = counts().Counts.of("binomial", n, mean, worth)
    for y in (np.zeros(3), np.array([1.0, 3.0, 38.0]), n):
        wanted = scipy.stats.betabinom.logpmf(y, n, mean * worth, (1 - mean) * worth)
        np.testing.assert_allclose(law.log_prob(y), wanted, rtol=1e-9)


def test_a_negative_binomial_is_scipys() -> None:
    n = np.array([0.7, 300.0, 2e6])
    mean, worth = np.array([2.0, 0.05, 3e-5]), np.array([0.4, 5.0, 80.0])
    law = counts().Counts.of("poisson", n, mean, worth)
    for y in (np.zeros(3), np.array([1.0, 17.0, 70.0])):
        wanted = scipy.stats.nbinom.logpmf(y, worth, worth / (worth + n * mean))
        np.testing.assert_allclose(law.log_prob(y), wanted, rtol=1e-9)


def test_a_known_rate_is_the_plain_law() -> None:
    n, mean = np.array([9.0, 20.0]), np.array([0.3, 0.6])
    y = np.array([2.0, 15.0])
    plain = counts().Counts.of("binomial", n, mean, np.inf)
    np.testing.assert_allclose(plain.log_prob(y), scipy.stats.binom.logpmf(y, n, mean))
    plain = counts().Counts.of("poisson", n, mean, np.inf)
    np.testing.assert_allclose(plain.log_prob(y), scipy.stats.poisson.logpmf(y, n * mean))


def test_a_mixture_adds_masses() -> None:
    n, mean = np.array([9.0, 20.0]), np.array([[0.3, 0.6], [0.1, 0.2]])
    y = np.array([2.0, 15.0])
    law = counts().Counts.of("binomial", n, mean, np.inf, [0.25, 0.75])
    masses = scipy.stats.binom.pmf(y, n, mean)
    np.testing.assert_allclose(law.log_prob(y), np.log(np.array([0.25, 0.75]) @ masses))


def test_nodes_integrate_a_normal() -> None:
    at, weight = counts().nodes(np.array([1.0]), np.array([0.5]))
    np.testing.assert_allclose(weight @ np.exp(at[:, 0]), np.exp(1 + 0.125), rtol=1e-9)


@pytest.mark.parametrize("kind", ["binomial", "poisson"])
def test_the_set_is_the_narrowest(kind: str) -> None:
    """Against a search through all windows of SciPy's masses."""
    n, mean, worth = np.array([12.0, 40.0]), np.array([0.1, 0.7]), np.array([3.0, 9.0])
    low, high, held = counts().Counts.of(kind, n, mean, worth).interval(0.9)
    for unit in range(2):
        k = np.arange(13 if kind == "binomial" and unit == 0 else 400)
        if kind == "binomial":
            a, b = mean[unit] * worth[unit], (1 - mean[unit]) * worth[unit]
            mass = scipy.stats.betabinom.pmf(k, n[unit], a, b)
        else:
            p = worth[unit] / (worth[unit] + n[unit] * mean[unit])
            mass = scipy.stats.nbinom.pmf(k, worth[unit], p)
        first, last = int(low[unit]), int(high[unit])
        np.testing.assert_allclose(held[unit], mass[first : last + 1].sum(), rtol=1e-6)
        assert held[unit] >= 0.9
        narrower = np.convolve(mass, np.ones(last - first))
        assert narrower.max() < 0.9


@pytest.mark.parametrize("kind", ["binomial", "poisson"])
def test_statsmodels_plain_regression_scores_as_itself(kind: str) -> None:
    from peer.regressions import plain

    of, _ = task(kind)
    ours = plain(of._replace(x_new=of.x, n_new=of.n)).log_prob(of.y).sum()
    x = sm.add_constant(of.x)
    if kind == "binomial":
        y = np.stack([of.y, of.n - of.y], 1)
        theirs = sm.GLM(y, x, sm.families.Binomial()).fit().llf
    else:
        theirs = sm.GLM(of.y, x, sm.families.Poisson(), exposure=of.n).fit().llf
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_statsmodels_negative_binomial_scores_as_itself() -> None:
    from peer.regressions import dispersed

    of, y = task("poisson")
    ours = dispersed(of._replace(x_new=of.x, n_new=of.n)).log_prob(of.y).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sm.NegativeBinomial(of.y, sm.add_constant(of.x), exposure=of.n)
        theirs = model.fit(disp=0, maxiter=1000).llf
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert dispersed(of).log_prob(y).mean() > -np.inf


def test_statsmodels_beta_regression_gives_each_row_a_precision() -> None:
    from peer.regressions import dispersed, plain

    of, y = task("binomial")
    found = dispersed(of)
    assert np.ptp(found.worth) > 0
    assert found.log_prob(y).mean() > plain(of).log_prob(y).mean()


def test_a_peer_that_is_not_there_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpboost", None)
    sys.modules.pop("peer.processes", None)
    from peer import PEERS

    with pytest.raises(ImportError):
        PEERS["GPBoost GP"].load()
    assert callable(PEERS["statsmodels GLM"].load())
