"""The common scoring of `make bench-peers`, and the peers that the project's environment has."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize("mean", [1e3, 1e18, 1e37, 1e90])
def test_a_count_of_any_mean_has_a_mass(mean: float) -> None:
    """Its first two are known in closed form."""
    law = counts().Counts.of("poisson", np.array([3.0, 3.0]), np.array([mean, mean]), 0.01)
    none = 0.01 * (np.log(0.01) - np.log(0.01 + 3 * mean))
    one = none + np.log(0.01) + np.log(3 * mean / (0.01 + 3 * mean))
    np.testing.assert_allclose(law.log_prob(np.array([0.0, 1.0])), [none, one], rtol=1e-9)


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


def narrowest(mass: np.ndarray, wanted: float = 0.9) -> int:
    """How many neighbours it takes to hold so much."""
    up_to = np.concatenate([[0.0], np.cumsum(mass)])
    end = np.searchsorted(up_to, up_to + wanted)
    return int((end - np.arange(len(up_to)))[end < len(up_to)].min())


@pytest.mark.parametrize("wide", [1e6, 1e12, 1e40, np.inf])
def test_one_wide_draw_does_not_widen_the_set(wide: float) -> None:
    """Of 50 draws of a posterior one says that next to anything can be, as chains of a regression
    of the precision do where a unit's columns are far from all others."""
    rng = np.random.default_rng(0)
    mean, worth = rng.gamma(20, 0.1, 50), rng.gamma(5, 1, 50)
    mean[7], worth[7] = wide, 1e-3
    low, high, held = (
        counts().Counts.of("poisson", [30.0], mean[:, None], worth[:, None]).interval()
    )
    k = np.arange(5000)[:, None]
    mass = scipy.stats.nbinom.pmf(k, worth, worth / (worth + 30 * np.minimum(mean, 1e100))).mean(1)
    np.testing.assert_allclose(held, mass[int(low[0]) : int(high[0]) + 1].sum(), rtol=1e-9)
    assert held[0] >= 0.9
    assert high[0] - low[0] + 1 == narrowest(mass)


@pytest.mark.parametrize("worth", [0.7, 4.0, np.inf])
def test_a_set_of_very_many_numbers_is_of_whole_cells(worth: float) -> None:
    n, mean = np.array([1e3]), np.array([30.0])
    low, high, held = counts().Counts.of("poisson", n, mean, worth).interval()
    k = np.arange(400_000)
    known = np.isinf(worth)
    law = scipy.stats.poisson(3e4) if known else scipy.stats.nbinom(worth, worth / (worth + 3e4))
    np.testing.assert_allclose(held, law.cdf(high) - law.cdf(low - 1), rtol=1e-9)
    assert held[0] >= 0.9
    best = narrowest(law.pmf(k))
    assert best <= high[0] - low[0] + 1 <= best * (1 + 3 / 1000)


def test_mass_at_infinity_is_in_no_set() -> None:
    mean = np.array([[2.0], [np.inf]])
    low, high, held = counts().Counts.of("poisson", [1.0], mean, 5.0).interval()
    assert low[0] == 0
    assert np.isfinite(high).all()
    np.testing.assert_allclose(held, 0.5, rtol=1e-6)


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


def statsmodels_plain():
    from peer.regressions import plain

    return plain


def busy():
    """For ever, with trials."""

    def fit_predict(of):
        while of.kind == "binomial":
            pass
        return statsmodels_plain()(of)

    return fit_predict


def without_sets():
    class Law(counts().Counts):
        def interval(self, mass: float = 0.9):
            raise OverflowError("too wide")

    return lambda of: Law.of(of.kind, of.n_new, np.full(len(of.n_new), 0.5), 1.0)


def gone():
    return lambda of: os._exit(3)


def absent():
    raise ImportError("no such package")


def test_a_worker_scores_as_the_peer_itself() -> None:
    from peer.measure import Worker

    of, y = task("binomial")
    with Worker(statsmodels_plain, 60) as worker:
        found = [worker(of, y), worker(of, y)]
    for one in found:
        np.testing.assert_array_equal(one["score"], statsmodels_plain()(of).log_prob(y))
        assert 0 < one["cpu"] < 60


@pytest.mark.parametrize(
    ("load", "cell", "why"),
    [
        (without_sets, "failed", "OverflowError: too wide"),
        (absent, "not installed", "not installed (no such package)"),
    ],
)
def test_a_peer_that_fails_says_why(load, cell: str, why: str) -> None:
    from peer.measure import measured

    assert measured(load, *task("binomial")) == {"failed": why, "cell": cell}


def test_a_peer_that_breaks_down_takes_nothing_with_it() -> None:
    from peer.measure import Worker

    with Worker(gone, 60) as worker:
        assert worker(*task("binomial"))["failed"] == "its process ended by itself (3)"


def test_a_peer_is_ended_when_its_time_is_up() -> None:
    from peer.measure import Worker

    with Worker(busy, 3) as worker:
        assert "score" in worker(*task("poisson"))
        assert worker(*task("binomial")) == {"failed": "more than 3 s of CPU", "cell": "> 3 s"}


def test_the_page_says_what_was_too_slow_and_why() -> None:
    import peers

    done = {"score": [-1.0, -2.0], "inside": [True, True], "held": [0.9, 0.95], "cpu": 1.5}
    slow = {"failed": "more than 900 s of CPU", "cell": "> 900 s"}
    kept = {
        "a|random": {
            "folds": [[0, 1], [2, 3]], "region": None, "columns": 3,
            "peers": {"mgcv": [done, done], "NGBoost": [done, done], "Bambi": [done, slow]},
        }
    }  # fmt: skip
    page = peers.page(kept, ["NGBoost", "Bambi", "mgcv"])
    assert page.count("| Bambi | > 900 s |") == 3
    assert "- Bambi on a, random: more than 900 s of CPU (fold 2 of 2" in page
    assert page.count("| mgcv | **-1.5000** |") == 1
