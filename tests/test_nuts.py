"""Draws of γ by NUTS and by Gibbs, against quadrature, closed forms and simulation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
from scipy.special import logsumexp

import ldf
from ldf.check import DataError
from ldf.infer import gamma_gibbs, nuts
from ldf.infer.gamma_draws import Draws, effective_draws, r_hat, statistic_of
from ldf.statistic import Potential
from ldf.structure import Conditional, Hierarchy, Structure, Time

POISSON, GAUSSIAN = ldf.Poisson(), ldf.Gaussian(variance=1.0)


# --- structures of one's own ---------------------------------------------------------------------


class CommonMean(Conditional):
    """All units' λ_i(γ) is n observations of γ ~ N(0, 4)."""

    n: float
    of_x: Any = 1.0  # how much of x γ's conditional hears: Eq. 40 as printed, nothing

    def sample_prior(self, key: Any) -> Any:
        return 2 * jax.random.normal(key)

    def log_prior(self, gamma: Any) -> Any:
        return -(gamma**2) / 8

    def natural(self, gamma: Any, pseudo: Any) -> Any:
        return Potential(self.n * gamma, self.n + 0 * gamma) + pseudo

    def sample_given(self, key: Any, gamma: Any, theta: Any, pseudo: Any) -> Any:
        # θ_i ~ N((n γ + h_i)/J_i, 1/J_i) with J_i = n + j_i: a measurement of γ.
        pseudo = pseudo * self.of_x
        whole = self.n + pseudo.precision
        precision = 1 / 4 + (self.n**2 / whole).sum()
        potential = (self.n * (theta - pseudo.potential / whole)).sum()
        return potential / precision + jax.random.normal(key) / jnp.sqrt(precision)


class RateAndStrength(Structure):
    """λ(γ) is e^γ_1 units of exposure at the rate e^γ_0."""

    def sample_prior(self, key: Any) -> Any:
        return jax.random.normal(key, (2,))

    def log_prior(self, gamma: Any) -> Any:
        return -(gamma**2).sum() / 2

    def natural(self, gamma: Any, pseudo: Any) -> Any:
        return POISSON.natural(jnp.exp(gamma[0] + gamma[1]), jnp.exp(gamma[1])) + pseudo


# --- NUTS against quadrature ---------------------------------------------------------------------

COUNTS = {
    "count": np.array([3.0, 0.0, 7.0, 2.0, 4.0, np.nan]),
    "exposure": np.array([2.0, 1.0, 2.0, 3.0, 1.0, np.nan]),
}
PSEUDO = POISSON.prior([1.0, 0.0, 2.0, 0.5, 0.0, 2.0], [1.0, 0.0, 1.0, 0.5, 0.0, 1.0])
SEEN = np.array([True] * 5 + [False])


@pytest.fixture(scope="module")
def by_nuts() -> Draws:
    return nuts.sample(
        RateAndStrength(), POISSON, PSEUDO, COUNTS, SEEN, draws=1000, warmup=400, seed=0
    )


@pytest.fixture(scope="module")
def by_quadrature() -> tuple[np.ndarray, np.ndarray, Any]:
    """γ on a grid, its posterior there, and each unit's natural parameter before its data."""
    axis = np.arange(-5, 5, 0.05)
    gamma = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    prior = POISSON.natural(np.exp(gamma.sum(1)), np.exp(gamma[:, 1]))
    natural = prior[:, None] + PSEUDO[None]
    data = {name: values[:5] for name, values in COUNTS.items()}
    log_p = np.asarray(POISSON.log_predictive(natural[:, :5], **data)).sum(1)
    log_p = log_p - (gamma**2).sum(1) / 2
    return gamma, np.exp(log_p - logsumexp(log_p)), natural


def agrees(values: np.ndarray, wanted: Any, chains: int = 4) -> None:
    """The mean of draws is what it should be, within 4.5 of its own standard errors."""
    split = values.reshape(chains, -1, *values.shape[1:])
    error = values.std(0) / np.sqrt(effective_draws(split))
    assert (np.abs(values.mean(0) - wanted) < 4.5 * error).all()


def test_nuts_agrees_with_quadrature(by_nuts: Draws, by_quadrature: Any) -> None:
    gamma, weight, natural = by_quadrature
    found = by_nuts.quantities["gamma"].reshape(-1, 2)
    agrees(found, weight @ gamma)
    agrees(found**2, weight @ gamma**2)
    agrees(found[:, 0] * found[:, 1], weight @ (gamma[:, 0] * gamma[:, 1]))
    after = natural + statistic_of(POISSON, COUNTS, SEEN)[None]
    mean = np.asarray(POISSON.posterior(after).mean())
    theta = by_nuts.theta(seed=1)
    assert theta.shape == (4000, 6)
    agrees(theta, weight @ mean)
    agrees(theta**2, weight @ (mean**2 + np.asarray(POISSON.posterior(after).variance())))
    # The mixture over draws is what θ is drawn from.
    of_each = np.asarray(POISSON.posterior(by_nuts.natural()).mean())
    np.testing.assert_allclose(by_nuts.posterior(4000).mean(), of_each.mean(0), rtol=1e-10)
    agrees(of_each, weight @ mean)


def test_a_unit_without_primary_data_learns_through_the_others(
    by_nuts: Draws, by_quadrature: Any
) -> None:
    _, weight, natural = by_quadrature
    new = {"count": np.full(6, 3.0), "exposure": np.full(6, 2.0)}
    wanted = np.asarray(POISSON.log_predictive(natural[:, 5], 3.0, 2.0))
    found = by_nuts.log_predictive(**new)
    each = np.exp(by_nuts._log_p(new)[:, 5])
    agrees(each, weight @ np.exp(wanted))
    np.testing.assert_allclose(found[5], np.log(each.mean()))
    draws = by_nuts.new_data(seed=2, exposure=np.full(6, 2.0))[:, 5]
    agrees(draws, weight @ (2 * np.asarray(POISSON.posterior(natural[:, 5]).mean())))
    np.testing.assert_allclose(
        by_nuts.predictive(exposure=2.0).log_prob(3.0)[5], found[5], atol=0.1
    )
    # The joint predictive is not the sum of the units': they share γ.
    joint = by_nuts.joint_log_predictive(**new)
    by_hand = logsumexp(by_nuts._log_p(new).sum(1)) - np.log(4000)
    np.testing.assert_allclose(joint, by_hand)
    assert joint > found.sum()
    np.testing.assert_allclose(by_nuts.joint_log_predictive(rows=[5], **new), found[5])


def test_the_same_draws_speak_of_other_units(by_nuts: Draws) -> None:
    other = by_nuts.elsewhere(RateAndStrength(), PSEUDO[5:].spread((1,)))
    np.testing.assert_allclose(other.natural().count[:, 0], by_nuts.natural().count[:, 5])


def test_draws_go_to_arviz_and_say_whether_they_are_good(by_nuts: Draws) -> None:
    data = by_nuts.to_arviz(seed=0)
    assert data.posterior["theta"].shape == (4, 1000, 6)
    assert data.posterior["gamma"].shape == (4, 1000, 2)
    assert not data.sample_stats["diverging"].any()
    assert "more warmup" not in by_nuts.status
    assert "4 chains of 1000 draws; R-hat at most 1.00" in by_nuts.status


def test_bad_chains_get_a_sentence(by_nuts: Draws) -> None:
    rng = np.random.default_rng(0)
    apart = rng.normal(size=(4, 500, 2)) + np.arange(4)[:, None, None]
    diverging = np.zeros((4, 500), bool)
    diverging[0, :3] = True
    bad = Draws(RateAndStrength(), POISSON, PSEUDO, by_nuts.primary, apart, diverging)
    assert "The chains do not agree yet: give more warmup and draws." in bad.status
    assert "3 draws diverged, so some of γ may be missed: raise the target" in bad.status


def test_r_hat_and_effective_draws_are_arvizs() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 1000, 3))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for i in range(1, 1000):  # correlated, independent and anti-correlated
        chains[:, i] = [0.9, 0.0, -0.4] * chains[:, i - 1] + noise[:, i]
    chains[0, :, 1] += 0.3
    data = arviz.convert_to_dataset({"x": chains})
    np.testing.assert_allclose(r_hat(chains), arviz.rhat(data, method="split")["x"], rtol=1e-10)
    found, wanted = effective_draws(chains), arviz.ess(data, method="mean")["x"]
    np.testing.assert_allclose(found[[0, 2]], wanted[[0, 2]], rtol=1e-10)
    # One chain apart: no pair of lags is ever negative, and ArviZ stops short of the last.
    np.testing.assert_allclose(found[1], wanted[1], rtol=0.003)
    assert r_hat(np.ones((2, 10)))[()] == 1


# --- Gibbs ---------------------------------------------------------------------------------------

MEANS = {"mean": np.array([1.5, 0.2, 2.4, 0.0]), "n": np.array([3.0, 1.0, 2.0, 0.0])}
AUXILIARY = GAUSSIAN.prior([3.0, -1.0, 0.0, 1.0], [0.5, 0.2, 1.0, 0.3])


def closed_form(n: float) -> tuple[float, float]:
    """The mean and variance of γ: y_i ~ N((nγ + h_i)/J_i, 1/J_i + 1/m_i)."""
    whole = n + AUXILIARY.precision[:3]
    variance = 1 / whole + 1 / MEANS["n"][:3]
    slope, offset = n / whole, AUXILIARY.potential[:3] / whole
    precision = 1 / 4 + (slope**2 / variance).sum()
    return (slope * (MEANS["mean"][:3] - offset) / variance).sum() / precision, 1 / precision


def test_gibbs_and_nuts_agree_with_the_closed_form() -> None:
    mean, variance = closed_form(2.0)
    ask = (CommonMean(2.0), GAUSSIAN, AUXILIARY, MEANS)
    by_gibbs = gamma_gibbs.sample(*ask, draws=4000, warmup=50, seed=0)
    by_nuts = nuts.sample(*ask, draws=1000, warmup=300, chains=2, seed=0)
    for found, chains in ((by_gibbs, 4), (by_nuts, 2)):
        gamma = found.quantities["gamma"].reshape(-1)
        agrees(gamma, mean, chains)
        agrees((gamma - mean) ** 2, variance, chains)
    printed = gamma_gibbs.sample(CommonMean(2.0, of_x=0.0), *ask[1:], draws=4000, seed=0)
    with pytest.raises(AssertionError):
        agrees(printed.quantities["gamma"].reshape(-1), mean)


@pytest.fixture(scope="module")
def geweke() -> Any:
    """Draw γ, θ and y from the model, then y given θ and a sweep, again and again: if every
    conditional is right, γ is still from its prior. Chains are independent, so a Kolmogorov–Smirnov
    test of the last γ holds exactly. Its p-value."""
    chains, sweeps = 4000, 20

    @jax.jit
    def last(of_x: Any, pseudo: Potential) -> Any:
        structure = CommonMean(2.0, of_x)

        def one(key: Any) -> Any:
            first, second, third = jax.random.split(key, 3)
            gamma = structure.sample_prior(first)
            theta = GAUSSIAN.posterior(structure.natural(gamma, pseudo)).sample(1, second)[0]

            def again(state: Any, key: Any) -> Any:
                noise, step = jax.random.split(key)
                y = state[1] + jax.random.normal(noise, theta.shape)
                primary = Potential(y, jnp.ones_like(y))
                state = gamma_gibbs.sweep(structure, GAUSSIAN, pseudo, primary, state[0], step)
                return state, None

            return jax.lax.scan(again, (gamma, theta), jax.random.split(third, sweeps))[0][0]

        return jax.vmap(one)(jax.random.split(jax.random.key(0), chains))

    def p_value(of_x: float, pseudo: Potential) -> float:
        with jax.enable_x64(True):
            found = np.asarray(last(of_x, pseudo))
        return float(scipy.stats.kstest(found, "norm", args=(0, 2)).pvalue)

    return p_value


def test_gewekes_test_passes_and_finds_the_conditional_without_x(geweke: Any) -> None:
    assert geweke(1.0, AUXILIARY) > 0.01
    assert geweke(0.0, AUXILIARY) < 1e-6
    # Without auxiliary data Eq. 40 holds as it is printed.
    assert geweke(0.0, AUXILIARY.zero()) > 0.01


def test_gibbs_needs_to_be_told_how() -> None:
    with pytest.raises(
        TypeError, match=r"Time does not say how γ is drawn given θ: use nuts\.sample"
    ):
        gamma_gibbs.sample(Time([1, 2], POISSON.prior(1.0, 1.0)), POISSON, PSEUDO, COUNTS, seed=0)  # type: ignore[arg-type]


# --- a NumPyro model of one's own ----------------------------------------------------------------


def model(y: dict[str, Any] | None, seen: Any = None) -> None:
    rate = numpyro.sample("rate", dist.LogNormal(0.0, 0.5))
    natural = POISSON.natural(3 * rate * jnp.ones(6), 3 * jnp.ones(6))
    nuts.units("cases", POISSON, natural, y, seen)


def test_a_site_adds_the_units_with_theta_summed_out() -> None:
    with jax.enable_x64(True):
        density, trace = numpyro.infer.util.log_density(
            model, (COUNTS, SEEN), {}, {"rate": jnp.array(1.3)}
        )
    natural = POISSON.prior(np.full(5, 3.9), np.full(5, 3.0))
    data = {name: values[:5] for name, values in COUNTS.items()}
    wanted = scipy.stats.lognorm(0.5).logpdf(1.3) + POISSON.log_predictive(natural, **data).sum()
    np.testing.assert_allclose(density, wanted, rtol=1e-10)
    np.testing.assert_allclose(trace["cases_count"]["value"], np.full(6, 3.9))
    alone, _ = numpyro.infer.util.log_density(model, (None,), {}, {"rate": jnp.array(1.3)})
    np.testing.assert_allclose(alone, scipy.stats.lognorm(0.5).logpdf(1.3), rtol=1e-5)


def test_theta_is_drawn_after_the_model() -> None:
    samples = {"cases_count": np.full((5000, 6), 3.9), "cases_exposure": np.full((5000, 6), 3.0)}
    theta = nuts.theta("cases", POISSON, samples, COUNTS, SEEN, seed=0)
    after = POISSON.prior(3.9, 3.0) + statistic_of(POISSON, COUNTS, SEEN)
    for i in range(6):
        gamma = scipy.stats.gamma(after.count[i], scale=1 / after.exposure[i])
        assert scipy.stats.kstest(theta[:, i], gamma.cdf).pvalue > 1e-3


def test_without_numpyro_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(
        ImportError, match=r"NumPyro is not installed: pip install 'ldf\[numpyro\]'"
    ):
        nuts.units("cases", POISSON, PSEUDO)


def test_a_gamma_beyond_floats_is_impossible() -> None:
    """Not infinitely likely, as a predictive of 1e-300 units of exposure would have it."""
    with jax.enable_x64(True):
        y = {"count": jnp.array([3.0]), "exposure": jnp.array([2.0])}
        ask = (RateAndStrength(), POISSON), (PSEUDO.zero()[:1], y, np.arange(1))
        density = jax.jit(lambda gamma: nuts.log_density(*ask[0], gamma, *ask[1]))
        for gamma in ([0.0, -690.0], [0.0, 800.0], [-800.0, 0.0]):
            assert density(jnp.array(gamma)) < -1e5


def test_bad_input_gets_a_sentence() -> None:
    structure = Hierarchy([0] * 6, POISSON.prior(1.0, 1.0))
    ask = (structure, POISSON, PSEUDO)
    with pytest.raises(DataError, match="'seen' does not fit 6 units; say True or False"):
        nuts.sample(*ask, COUNTS, np.ones(6), seed=0)
    with pytest.raises(DataError, match="'pseudo' is of 5 units but there are 6; give T_x of each"):
        nuts.sample(structure, POISSON, PSEUDO[:5], COUNTS, SEEN, seed=0)
    with pytest.raises(DataError, match="'seen' has no unit with primary data"):
        nuts.sample(*ask, COUNTS, np.zeros(6, bool), seed=0)
    with pytest.raises(DataError, match="column 'count', row 5 is missing"):
        nuts.sample(*ask, COUNTS, seed=0)


# --- calibration ---------------------------------------------------------------------------------


def _calibration() -> Any:
    path = Path(__file__).parents[1] / "bench" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_test_of_ranks_has_the_power_it_states() -> None:
    bench = _calibration()
    rng = np.random.default_rng(0)
    assert bench.uniformity(rng.integers(0, 64, 1000), 63).p_bins > 0.01
    narrow = bench.uniformity(
        (0.8 * rng.normal(size=(4000, 63)) < rng.normal(size=(4000, 1))).sum(1), 63
    )
    assert abs(narrow.width - 0.8) < 0.03
    assert bench.power(1000, 63, 8, trials=50) == 1
    assert bench.power(100, 63, 8, narrow=0.0, trials=50) < 0.1


def test_hierarchy_is_calibrated_and_a_narrow_posterior_is_not() -> None:
    bench = _calibration()
    setting, runs, draws = bench.SETTINGS["hierarchy"](), 100, 31
    truth, found = bench.posteriors(setting, runs, draws, seed=0, warmup=120, thin=2, depth=4)

    def p(narrow: float) -> float:
        ranks = bench.ranks(truth, found, narrow)
        return bench.smallest([bench.uniformity(r, draws) for r in ranks.values()])

    assert p(0.0) > 0.01
    assert p(0.5) < 0.01


@pytest.mark.full
@pytest.mark.parametrize("name", ["hierarchy on the rate", "space", "time"])
def test_structures_are_calibrated(name: str) -> None:
    bench = _calibration()
    ranks = bench.MODELS[name](200, 63, 0, 0.0)
    assert bench.smallest([bench.uniformity(r, 63) for r in ranks.values()]) > 0.01
