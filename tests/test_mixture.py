"""Mixtures against brute force: integrals of the mixed density, tables of the mixed mass."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats as ss

from ldf import check
from ldf import distributions as d
from ldf.statistic import (
    Arrivals,
    ClassCounts,
    Moments,
    Potential,
    Trials,
    VectorMoments,
    VectorPotential,
)

rng = np.random.default_rng(7)
K, M = 3, 12
A, B = 10 ** rng.uniform(-0.3, 1.7, (K, M)), 10 ** rng.uniform(-0.3, 1.7, (K, M))
W = rng.dirichlet(np.ones(K), M).T
FEW = slice(M - 5, M)
N = np.append(rng.integers(1, 40, M - 1), 0).astype(float)  # the last unit has none

CONTINUOUS: dict[str, Any] = {
    "Beta": d.Beta(Trials(A, B)),
    "Gamma": d.Gamma(Arrivals(A, B)),
    "InverseGamma": d.InverseGamma(Arrivals(A + 2.5, B)),
    "CompoundGamma": d.CompoundGamma(Arrivals(A + 2.5, B), N + 0.5),
    "Gaussian": d.Gaussian(Potential(A * 3 - 20, B)),
    "StudentT": d.StudentT(A + 2.5, B, A),
    "KnownValue": d.KnownValue(
        ss.norm, (A, B), A, -np.inf, lambda x, centre, scale: (centre - x) / scale**2
    ),
}
WHOLE: dict[str, Any] = {
    "BetaBinomial": d.BetaBinomial(Trials(A, B), N),
    "GammaPoisson": d.GammaPoisson(Arrivals(A, B), N),
    "BetaNegativeBinomial": d.BetaNegativeBinomial(Trials(A + 8, B), np.minimum(N, 3.0)),
    "KnownCount": d.KnownCount(ss.poisson, (A,), np.floor(A)),
}
VECTORS: dict[str, Any] = {
    "Dirichlet": d.Dirichlet(ClassCounts(np.stack([A, B, A[::-1]], -1))),
    "DirichletMultinomial": d.DirichletMultinomial(ClassCounts(np.stack([A, B, A[::-1]], -1)), N),
    "MultivariateGaussian": d.MultivariateGaussian.of(
        np.stack([A, B], -1), np.array([[2.0, 0.5], [0.5, 1.0]]) * A[..., None, None]
    ),
    "MultivariateStudentT": d.MultivariateStudentT(
        A + 2.5, np.stack([A, B], -1), np.array([[2.0, 0.5], [0.5, 1.0]]) * A[..., None, None]
    ),
    "KnownCounts": d.KnownCounts(ss.multinomial, N, np.stack([A, B], -1) / (A + B)[..., None]),
}
MASSES = [0.9, *(pytest.param(mass, marks=pytest.mark.full) for mass in (0.3, 0.99))]
every_continuous = pytest.mark.parametrize("name", CONTINUOUS)
every_whole = pytest.mark.parametrize("name", WHOLE)
every_number = pytest.mark.parametrize("name", {**CONTINUOUS, **WHOLE})
every_vector = pytest.mark.parametrize("name", VECTORS)


def grid(of: Any) -> tuple[np.ndarray, np.ndarray]:
    """Places and measure for sums that are integrals: on a scale without ends, such are exact."""
    start, end = of.support
    if end == 1:
        s = np.arange(-80, 36, 0.01)
        x = 1 / (1 + np.exp(-s))
        return x, x * np.exp(-np.logaddexp(0, s)) * 0.01
    if start == 0:
        s = np.arange(-80, 40, 0.01)
        return np.exp(s), np.exp(s) * 0.01
    s = np.arange(-28, 28, 0.002)
    return 10 * np.sinh(s), 10 * np.cosh(s) * 0.002


@every_continuous
def test_moments_cdf_and_entropy_are_integrals_of_the_mixed_density(name: str) -> None:
    # Near 1 a float has too few digits for the grid where there are few failures.
    components = d.Beta(Trials(A, B + 1)) if name == "Beta" else CONTINUOUS[name]
    components, w = components[:, FEW], W[:, FEW]
    mixed = d.mixture(w, components)
    x, measure = grid(mixed)
    parts = np.exp(components.log_prob(x[:, None, None]))
    density = (w * parts).sum(1)
    np.testing.assert_allclose(np.exp(mixed.log_prob(x[:, None])), density, rtol=1e-9, atol=1e-290)
    mass = density * measure[:, None]
    np.testing.assert_allclose(mass.sum(0), 1, rtol=1e-8)
    mean = (x[:, None] * mass).sum(0)
    np.testing.assert_allclose(mixed.mean(), mean, rtol=1e-6)
    variance = ((x[:, None] - mean) ** 2 * mass).sum(0)
    loose = 1e-2 if name in ("StudentT", "InverseGamma", "CompoundGamma") else 1e-6  # heavy tails
    np.testing.assert_allclose(mixed.variance(), variance, rtol=loose)
    np.testing.assert_allclose(mixed.sd() ** 2, mixed.variance(), rtol=1e-12)
    for place in (len(x) // 2, len(x) // 2 + 80):
        at = x[place]
        below = scipy.integrate.simpson(mass[: place + 1], dx=1, axis=0)
        np.testing.assert_allclose(mixed.cdf(at), below, atol=2e-6)
        np.testing.assert_allclose(mixed.exceeds(at), 1 - mixed.cdf(at), atol=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = np.where(density > 0, -mass * np.log(density), 0.0).sum(0)
    np.testing.assert_allclose(mixed.entropy(), surprise, atol=1e-6)


def test_the_entropy_of_u_shaped_rates_is_their_integral() -> None:
    """Of a = b = ½ and a = b = ¼, whose mass near 1 no float reaches: by symmetry."""
    mixed = d.mixture([0.4, 0.6], d.Beta(Trials(*[np.array([[0.5], [0.25]])] * 2)))

    s = np.linspace(-300, np.log(0.5), 60_001)
    log_density = mixed.log_prob(np.exp(s)[:, None])[:, 0]
    half = scipy.integrate.simpson(-np.exp(log_density + s) * log_density, x=s)
    assert mixed.entropy()[0] == pytest.approx(2 * half, abs=1e-7)


def test_the_entropy_of_what_does_not_overlap_is_known() -> None:
    """The entropy of the weights, and the components' own: of spikes far apart."""
    worth, w = np.array([1e4, 1e6, 1e9]), W[:, :3]
    apart = np.array([[1.0], [10.0], [100.0]])
    for of in (
        d.Gaussian(Potential(apart * worth, worth * apart[::-1])),
        d.Beta(Trials(apart * worth, 15 * worth + 0 * apart)),
        d.Gamma(Arrivals(worth + 0 * apart, worth / apart)),
    ):
        expected = (w * (of.entropy() - np.log(w))).sum(0)
        np.testing.assert_allclose(d.mixture(w, of).entropy(), expected, atol=1e-6)


def test_the_entropy_of_nearly_sure_rates_goes_on_below_the_smallest_float() -> None:
    once = d.Beta(Trials(np.array([0.003, 0.002, 40.0]), np.array([0.9, 0.001, 0.004])))
    twice = d.mixture([0.3, 0.7], d.Beta(once.natural.spread((2, 3))))
    np.testing.assert_allclose(twice.entropy(), once.entropy(), rtol=1e-8)


@every_continuous
def test_quantiles_invert_the_distribution_function(name: str) -> None:
    mixed = d.mixture(W, CONTINUOUS[name])
    for q in (1e-6 if name != "CompoundGamma" else 0.01, 0.05, 0.5, 0.9, 0.999):
        x = mixed.quantile(q)
        inner = x < 1 - 1e-9 if name == "Beta" else np.full(M, True)
        np.testing.assert_allclose(mixed.cdf(x)[inner], q, rtol=1e-8)
    levels = np.array([0.2, 0.7])[:, None] + np.zeros(M)
    assert mixed.quantile(levels).shape == (2, M)
    np.testing.assert_array_equal(mixed.quantile(levels)[1], mixed.quantile(0.7))
    start, end = mixed.support
    assert (mixed.quantile(0.0) == start).all()
    assert (mixed.quantile(1.0) == end).all()


@every_continuous
@pytest.mark.parametrize("mass", MASSES)
def test_no_narrower_interval_holds_the_mass(name: str, mass: float) -> None:
    mixed = d.mixture(W, CONTINUOUS[name])
    lower, upper = mixed.interval(mass)
    assert (mixed.cdf(upper) - mixed.cdf(lower) >= mass - 1e-7).all()
    below = np.linspace(0, 1 - mass, 101)[:, None] + np.zeros(M)
    width = mixed.quantile(np.minimum(below + mass, 1)) - mixed.quantile(below)
    assert (upper - lower <= width.min(0) * (1 + 1e-6)).all()


@pytest.mark.parametrize("mass", [0.2, 0.5, 0.8, 0.95])
def test_the_interval_of_two_peaks_is_the_narrowest_single_one(mass: float) -> None:
    """Peaks apart and unequally high, spikes beside hills, and hills beside an open end."""
    a = np.array([[20.0, 2.0, 300.0, 0.6, 80.0, 5.0], [80.0, 90.0, 2.0, 50.0, 20.0, 95.0]])
    b = np.array([[80.0, 6.0, 700.0, 3.0, 20.0, 95.0], [20.0, 10.0, 2.0, 50.0, 80.0, 0.5]])
    first = np.repeat([0.5, 0.35, 0.05, 0.93], 6)
    mixed = d.mixture([first, 1 - first], d.Beta(Trials(np.tile(a, 4), np.tile(b, 4))))
    lower, upper = mixed.interval(mass)
    assert (mixed.cdf(upper) - mixed.cdf(lower) >= mass - 1e-7).all()
    below = np.linspace(0, 1 - mass, 301)[:, None] + np.zeros(24)
    width = mixed.quantile(np.minimum(below + mass, 1)) - mixed.quantile(below)
    assert (upper - lower <= width.min(0) * (1 + 1e-6)).all()


def test_intervals_end_where_floats_do() -> None:
    """Much of the mass is next to 1, or next to 0, or next to both, and none has a finite peak."""
    a = np.array([[0.02, 0.057, 1.5, 0.003], [0.05, 0.013, 0.6, 0.2]])
    b = np.array([[1.2, 0.054, 0.03, 1.0], [0.037, 0.016, 0.02, 0.9]])
    mixed = d.mixture([0.6, 0.4], d.Beta(Trials(a, b)))
    for mass in (0.5, 0.9):
        lower, upper = mixed.interval(mass)
        assert (mixed.cdf(upper) - mixed.cdf(lower) >= mass - 1e-7).all()
        below = np.linspace(0, 1 - mass, 101)[:, None] + np.zeros(4)
        width = mixed.quantile(np.minimum(below + mass, 1)) - mixed.quantile(below)
        assert (upper - lower <= width.min(0) * (1 + 1e-6) + 2e-16).all()


@every_continuous
def test_the_mode_is_where_the_mixed_density_is_highest(name: str) -> None:
    mixed = d.mixture(W, CONTINUOUS[name])
    mode = mixed.mode()
    found = np.isfinite(mode)
    assert found.sum() >= M - 4  # rates may be high at both ends
    top = mixed.log_prob(np.where(found, mode, 0.5))
    x = mixed.quantile(np.linspace(0.002, 0.998, 150)[:, None] + np.zeros(M))
    assert (mixed.log_prob(x) <= top + 1e-9)[:, found].all()


def test_a_mode_that_is_not_one_place_is_none() -> None:
    twins = d.Beta(Trials(np.array([[5.0], [20.0]]), np.array([[20.0], [5.0]])))
    assert np.isnan(d.mixture([0.5, 0.5], twins).mode()[0])
    higher = d.mixture([0.6, 0.4], twins)
    assert higher.mode()[0] == pytest.approx(4 / 23, abs=1e-3)
    assert higher.slope(higher.mode())[0] == pytest.approx(0, abs=1e-8)
    open_ends = d.Beta(Trials(np.array([[0.5], [3.0]]), np.array([[3.0], [0.5]])))
    assert np.isnan(d.mixture([0.5, 0.5], open_ends).mode()[0])
    one_end = d.Beta(Trials(np.array([[0.5], [3.0]]), np.array([[3.0], [2.0]])))
    assert d.mixture([0.5, 0.5], one_end).mode()[0] == 0


def table(of: Any, size: int = 3000) -> np.ndarray:
    """The mixed mass of 0, 1, …: counts × units."""
    counts = np.arange(float(size))[:, None, None]
    return (W * np.exp(of.log_prob(counts))).sum(1)


@every_whole
def test_whole_numbers_answer_as_the_table_of_their_mass(name: str) -> None:
    components = WHOLE[name]
    mixed, mass = d.mixture(W, components), table(components)
    counts = np.arange(float(len(mass)))
    assert isinstance(mixed, d.IntegerMixture)
    np.testing.assert_allclose(np.exp(mixed.log_prob(counts[:50, None])), mass[:50], rtol=1e-10)
    up_to = mass.cumsum(0)
    np.testing.assert_allclose(up_to[-1], 1, atol=1e-4)
    for k in (-1.0, 0.0, 2.5, 7.0, 30.0):
        expected = up_to[int(k)] if k >= 0 else 0
        np.testing.assert_allclose(mixed.cdf(k), np.zeros(M) + expected, atol=1e-10)
        np.testing.assert_allclose(mixed.exceeds(k), 1 - mixed.cdf(k), atol=1e-12)
    ended = counts[-1] ** 3 * mass[-1] < 1e-9  # the table is as long as the tail
    assert ended.sum() >= 2
    mean, squares = counts @ mass, counts**2 @ mass
    np.testing.assert_allclose(mixed.mean()[ended], mean[ended], rtol=1e-8, atol=1e-12)
    spread = squares - mean**2
    np.testing.assert_allclose(mixed.variance()[ended], spread[ended], rtol=1e-6, atol=1e-12)
    for q in (0.01, 0.3, 0.5, 0.95):
        np.testing.assert_array_equal(mixed.quantile(q), (up_to < q * (1 - 1e-12)).sum(0))
    np.testing.assert_array_equal(mixed.mode(), mass.argmax(0))
    assert mixed.mode()[-1] == 0 or name == "KnownCount"  # nothing asked, nothing found


@every_whole
@pytest.mark.parametrize("mass", [0.6, *MASSES])
def test_no_smaller_set_of_neighbouring_values_holds_the_mass(name: str, mass: float) -> None:
    mixed = d.mixture(W, WHOLE[name])
    lower, upper = mixed.interval(mass)
    before = np.concatenate([np.zeros((1, M)), table(WHOLE[name]).cumsum(0)])
    for unit in range(M):
        first, last = int(lower[unit]), int(upper[unit])
        assert before[last + 1, unit] - before[first, unit] >= mass * (1 - 1e-9)
        size = last - first  # one value fewer
        if size:
            assert (before[size:, unit] - before[:-size, unit]).max() < mass * (1 + 1e-9)


def test_the_fewest_counts_of_two_far_peaks() -> None:
    """With 45 % at about 10, 55 % at about 2,000 and 100,000 between: by a table again."""
    far = d.GammaPoisson(
        Arrivals(np.array([[50.0] * 2, [400.0] * 2]), np.array([[5.0] * 2, [0.2, 0.004]])),
        np.ones(2),
    )
    weights = np.array([0.45, 0.55])
    counts = np.arange(140_000.0)
    for unit in range(2):
        mass = weights @ np.exp(far[:, unit].log_prob(counts[:, None])).T
        before = np.append(0, mass.cumsum())
        for level in (0.4, 0.5, 0.9):
            lower, upper = d.mixture(weights, far).interval(level)
            first, last = int(lower[unit]), int(upper[unit])
            assert before[last + 1] - before[first] >= level * (1 - 1e-9)
            size = last - first
            assert (before[size:] - before[:-size]).max() < level * (1 + 1e-9)


ASKED: dict[str, tuple[Any, ...]] = {
    "mean": (),
    "variance": (),
    "sd": (),
    "mode": (),
    "interval": (0.8,),
    "quantile": (0.3,),
    "cdf": (0.4,),
    "exceeds": (0.4,),
    "log_prob": (0.4,),
}


@every_number
def test_one_component_answers_for_itself(name: str) -> None:
    components = {**CONTINUOUS, **WHOLE}[name]
    alone, itself = d.mixture([1.0], components[:1]), components[0]
    for asked, values in ASKED.items():
        mine, theirs = (getattr(of, asked)(*values) for of in (alone, itself))
        np.testing.assert_array_equal(mine, theirs, err_msg=asked)
    np.testing.assert_array_equal(alone.sample(5, seed=1), itself.sample(5, seed=1))
    if name in CONTINUOUS:
        np.testing.assert_array_equal(alone.entropy(), itself.entropy())


@every_number
def test_the_order_of_components_does_not_matter_nor_does_one_without_weight(name: str) -> None:
    components, w = {**CONTINUOUS, **WHOLE}[name][:, FEW], W[:, FEW]
    order = np.array([2, 0, 1, 0])  # the last without weight
    one = d.mixture(w, components)
    other = d.mixture(np.where([[1], [1], [1], [0]], w[order], 0), components[order])
    for asked, values in ASKED.items():
        got, want = (getattr(of, asked)(*values) for of in (other, one))
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-12, err_msg=asked)


@every_number
def test_two_equal_components_are_one(name: str) -> None:
    components = {**CONTINUOUS, **WHOLE}[name][:, FEW]
    twice, once = d.mixture([0.3, 0.7], components[np.array([1, 1])]), components[1]
    for asked, values in ASKED.items():
        got, want = (getattr(of, asked)(*values) for of in (twice, once))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9, err_msg=asked)
    if name in CONTINUOUS:
        np.testing.assert_allclose(twice.entropy(), once.entropy(), atol=1e-6)


def test_a_component_without_weight_contributes_nothing_not_even_infinities() -> None:
    b = d.Beta(Trials(np.array([[0.5], [3.0]]), np.array([[0.5], [2.0]])))
    alone = b[1]
    mixed = d.mixture([0.0, 1.0], b)
    np.testing.assert_array_equal(mixed.log_prob(0.0), alone.log_prob(0.0))
    np.testing.assert_allclose(mixed.interval(0.9), alone.interval(0.9), rtol=1e-8)
    heavy = d.CompoundGamma(Arrivals(np.array([[0.5], [3.0]]), np.ones((2, 1))), np.ones(1))
    assert d.mixture([0.0, 1.0], heavy).mean() == heavy[1].mean()
    assert d.mixture([0.5, 0.5], heavy).sd() == np.inf


@every_number
def test_draws_follow_the_distribution(name: str) -> None:
    mixed = d.mixture(W, {**CONTINUOUS, **WHOLE}[name])
    draws = mixed.sample(3000, seed=4)
    assert draws.shape == (3000, M)
    np.testing.assert_array_equal(draws, mixed.sample(3000, seed=4))
    assert (draws != mixed.sample(3000, seed=5)).any()
    for unit in range(0, M, 3):
        if name in CONTINUOUS:
            assert ss.kstest(draws[:, unit], mixed[unit].cdf).pvalue > 1e-4
        else:
            edges = np.unique(mixed[unit].quantile(np.linspace(0.1, 0.9, 9)))
            up_to = np.append(mixed[unit].cdf(edges), 1.0)
            expected = np.diff(up_to, prepend=0.0) * 3000
            cell = np.searchsorted(edges, draws[:, unit])
            seen = np.bincount(cell, minlength=len(expected))
            keep = expected > 1e-6
            assert ss.chisquare(seen[keep], expected[keep]).pvalue > 1e-4


def test_vectors_have_rows() -> None:
    """Also of parameters that units share."""
    wishart = d.InverseWishart(np.arange(7.0, 10.0)[:, None], np.eye(2) * np.ones((4, 1, 1)))
    counts = d.DirichletMultinomial(ClassCounts(np.ones((3, 1, 2))), np.arange(4.0))
    for of in (wishart, counts):
        assert of[1:, 2].shape == (2,)
        np.testing.assert_array_equal(of[1:, 2].mean(), of.mean()[1:, 2])
        np.testing.assert_array_equal(of[1:, 2].sd(), of.sd()[1:, 2])


@every_vector
def test_vectors_have_moments_marginals_and_draws(name: str) -> None:
    components = VECTORS[name]
    mixed = d.mixture(W, components)
    assert mixed.shape == (M,)
    each = components.mean()
    mean = (W[..., None] * each).sum(0)
    np.testing.assert_allclose(mixed.mean(), mean)
    size = mean.shape[-1]
    lower, _ = mixed.interval(0.8)
    for j in range(size):
        marginal = mixed.marginal(j)
        assert marginal.shape == (M,)
        np.testing.assert_allclose(marginal.mean(), mean[:, j])
        np.testing.assert_allclose(mixed.sd()[:, j], marginal.sd(), atol=1e-12)
        np.testing.assert_allclose(lower[:, j], marginal.interval(0.8)[0])
        np.testing.assert_allclose(mixed.cdf(0.4)[:, j], marginal.cdf(0.4))
    if hasattr(components, "covariance"):
        within = components.covariance() + each[..., :, None] * each[..., None, :]
        expected = (W[..., None, None] * within).sum(0) - mean[:, :, None] * mean[:, None, :]
        np.testing.assert_allclose(mixed.covariance(), expected, rtol=1e-9)
        spread = np.sqrt(np.diagonal(mixed.covariance(), axis1=-2, axis2=-1))
        np.testing.assert_allclose(spread, mixed.sd(), rtol=1e-9)
    draws = mixed.sample(4000, seed=2)
    assert draws.shape == (4000, M, size)
    error = 5 * mixed.sd() / np.sqrt(4000)
    assert (abs(draws.mean(0) - mean) <= error + 1e-9).all()
    logs = np.stack([_component(components, k).log_prob(draws[0]) for k in range(K)])
    with np.errstate(divide="ignore"):
        expected = np.log((W * np.exp(logs)).sum(0))
    np.testing.assert_allclose(mixed.log_prob(draws[0]), expected, atol=1e-9)
    np.testing.assert_allclose(mixed.log_prob(draws[:3])[0], expected, atol=1e-9)
    np.testing.assert_allclose(mixed[2:5].mean(), mean[2:5])
    np.testing.assert_allclose(mixed[3].log_prob(draws[0, 3]), expected[3], atol=1e-9)


def _component(of: Any, k: int) -> Any:
    return d.mixture([1.0], of)._alone if of.shape[0] == 1 else d.mixture(np.eye(K)[k], of)


def test_mean_and_variance_together_are_mixed_too() -> None:
    pair = d.NormalInverseGamma(Moments.prior(A, 4.0, B, 9.0))
    mixed = d.mixture(W, pair)
    np.testing.assert_allclose(mixed.mean(), (W[..., None] * pair.mean()).sum(0))
    np.testing.assert_allclose(mixed.sd()[:, 0], mixed.marginal("mean").sd())
    draws = mixed.sample(500, seed=1)
    assert draws.shape == (500, M, 2)
    expected = np.log((W * np.exp(pair.log_prob(draws[0]))).sum(0))
    np.testing.assert_allclose(mixed.log_prob(draws[0]), expected)

    words = {"mean": np.stack([A, B], -1), "mean_n": 4.0, "variance_n": 9.0}
    joint = d.NormalInverseWishart(VectorMoments.prior(variance=np.eye(2), **words))
    mixed = d.mixture(W, joint)
    means, covariances = mixed.sample(20, seed=1)
    assert means.shape == (20, M, 2)
    assert covariances.shape == (20, M, 2, 2)
    np.testing.assert_allclose(mixed.mean()[0], (W[..., None] * joint.mean()[0]).sum(0))
    assert mixed.log_prob((means, covariances)).shape == (20, M)
    np.testing.assert_allclose(
        mixed.log_prob((means, covariances))[4], mixed.log_prob((means[4], covariances[4]))
    )
    assert mixed.marginal("mean").marginal(0).interval(0.5)[0].shape == (M,)


def test_an_update_weighs_components_by_what_they_said_of_the_data() -> None:
    y, trials = np.array([3.0] * M), np.full(M, 5.0)
    mixed = d.mixture(W, d.Beta(Trials(A, B)))
    log_evidence = d.BetaBinomial(Trials(A, B), trials).log_prob(y)
    after = mixed.update(log_evidence)
    expected = W * np.exp(log_evidence)
    np.testing.assert_allclose(after.weights, expected / expected.sum(0))
    # Bayes' rule, by brute force: the mixed prior density times the likelihood.
    updated = d.mixture(after.weights, d.Beta(Trials(A + 3, B + 2)))
    for x in (0.2, 0.7):
        likelihood = ss.binom.logpmf(3, 5, x)
        total = d.mixture(W, d.BetaBinomial(Trials(A, B), trials)).log_prob(y)
        np.testing.assert_allclose(
            updated.log_prob(x), mixed.log_prob(x) + likelihood - total, rtol=1e-9
        )
    shared = d.mixture([0.2, 0.3, 0.5], d.Beta(Trials(A, B))).update(np.array([0.0, -1e4, 1e4]))
    np.testing.assert_array_equal(shared.weights, [0, 0, 1])
    with pytest.raises(check.DoesNotExist, match="no component with weight"):
        mixed.update(np.full((K, M), -np.inf))
    with pytest.raises(check.DataError, match="'log_evidence' is 2 but the components are 3 × 12"):
        mixed.update([0.0, 0.0])


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([0.5, 0.6, 0.2], "column 'weights': 1.3 is the sum over components, not one; divide"),
        ([0.5, 0.7, -0.2], "column 'weights', row 2: -0.2 is negative; a weight is zero or more."),
        ([0.5, np.nan, 0.5], "column 'weights', row 1 is missing; give a number."),
        ([0.5, 0.5], "column 'weights' are 2 but the components are 3 × 12; give one weight"),
        (np.full((3, 5), 1 / 3), "column 'weights' are 3 × 5 but the components are 3 × 12"),
        (np.where(np.arange(M) == 4, 0.3, W), "column 'weights', row 4: 0.9 is the sum over"),
        (1.0, "column 'weights' are a single number but the components are 3 × 12"),
    ],
)
def test_bad_weights_get_one_sentence(weights: Any, sentence: str) -> None:
    with pytest.raises(check.DataError) as caught:
        d.mixture(weights, d.Beta(Trials(A, B)))
    assert str(caught.value).replace("0.8999999999999999", "0.9").startswith(sentence)
    assert str(caught.value).count(".") - str(caught.value).count("0.") - 1 <= 1


def test_what_cannot_be_mixed_is_said() -> None:
    with pytest.raises(TypeError, match="point masses have no density"):
        d.mixture([1.0], d.PointMass(np.ones((1, 3))))
    with pytest.raises(ValueError, match="no axis of their own"):
        d.mixture([1.0], d.Beta(Trials(np.array(1.0), np.array(1.0))))
    with pytest.raises(check.DataError, match="column 'value' has 5 rows but there are 12 units"):
        d.mixture(W, d.Beta(Trials(A, B))).cdf(np.ones(5))
    with pytest.raises(check.DataError, match="is not between 0 and 1"):
        d.mixture(W, d.Beta(Trials(A, B))).quantile(1.5)


def test_one_unit_or_a_table_of_them_is_mixed_alike() -> None:
    column = d.mixture(W[:, 0], d.Beta(Trials(A[:, 0], B[:, 0])))
    whole = d.mixture(W, d.Beta(Trials(A, B)))
    square = d.mixture(W.reshape(K, 3, 4), d.Beta(Trials(A.reshape(K, 3, 4), B.reshape(K, 3, 4))))
    assert column.shape == ()
    for asked, values in {**ASKED, "entropy": ()}.items():
        want = np.asarray(getattr(whole, asked)(*values))
        np.testing.assert_allclose(getattr(column, asked)(*values), want[..., 0], rtol=1e-12)
        got = np.asarray(getattr(square, asked)(*values))
        np.testing.assert_allclose(got, want.reshape(got.shape), rtol=1e-12)
    assert column.sample(7, seed=0).shape == (7,)
    np.testing.assert_array_equal(whole[np.array([3, 1])].mean(), whole.mean()[[3, 1]])
    np.testing.assert_array_equal(whole[W[0] > 0.3].mean(), whole.mean()[W[0] > 0.3])


def test_shared_designs_serve_all_components() -> None:
    """Trials of (M,) beside naturals of (K, M), and naturals of (K, 1) for all units."""
    prior = Trials(A[:, :1], B[:, :1])
    mixed = d.mixture(W[:, 0], d.BetaBinomial(prior, N))
    assert mixed.shape == (M,)
    one = d.mixture(W[:, 0], d.BetaBinomial(Trials(A[:, 0], B[:, 0]), np.array(N[3])))
    np.testing.assert_allclose(mixed.cdf(2.0)[3], one.cdf(2.0))
    np.testing.assert_allclose(mixed.interval(0.9)[1][3], one.interval(0.9)[1])


def test_it_runs_under_jit_on_jax_arrays() -> None:
    weights = jnp.asarray(W, jnp.float32)
    natural = Trials(jnp.asarray(A, jnp.float32), jnp.asarray(B, jnp.float32))

    @jax.jit
    def summary(weights: Any, natural: Any) -> dict[str, Any]:
        mixed = d.mixture(weights, d.Beta(natural))
        return {
            "mean": mixed.mean(),
            "sd": mixed.sd(),
            "log_prob": mixed.log_prob(0.3),
            "cdf": mixed.cdf(0.3),
            "quantile": mixed.quantile(0.3),
            "lower": mixed.interval(0.9)[0],
        }

    found, mixed = summary(weights, natural), d.mixture(W, d.Beta(Trials(A, B)))
    assert all(value.dtype == jnp.float32 and value.shape == (M,) for value in found.values())
    for name, values in {"mean": (), "sd": (), "log_prob": (0.3,), "cdf": (0.3,)}.items():
        np.testing.assert_allclose(found[name], getattr(mixed, name)(*values), rtol=1e-4)
    np.testing.assert_allclose(found["lower"], mixed.interval(0.9)[0], atol=1e-4)
    slopes = jax.grad(lambda n: d.mixture(weights, d.Beta(n)).log_prob(0.3).sum())
    slope = jax.jit(slopes)(natural)
    assert np.isfinite(slope.successes).all()


@pytest.mark.full
def test_it_draws_under_jit() -> None:
    natural = Trials(jnp.asarray(A, jnp.float32), jnp.asarray(B, jnp.float32))
    mixed = d.mixture(jnp.asarray(W, jnp.float32), d.Beta(natural))
    draws = jax.jit(lambda key: mixed.sample(2000, key))(jax.random.key(0))
    assert (draws.dtype, draws.shape) == (jnp.float32, (2000, M))
    error = 5 * np.asarray(mixed.sd()) / np.sqrt(2000)
    assert (abs(np.asarray(draws).mean(0) - np.asarray(mixed.mean())) <= error).all()


def test_many_components_of_many_units_have_intervals_in_no_time() -> None:
    many = np.random.default_rng(0)
    rate, worth = many.uniform(0.05, 0.95, 400), 10 ** many.uniform(1, 2.5, (16, 400))
    rate = np.clip(rate + 0.05 * many.normal(size=(16, 400)), 0.02, 0.98)
    mixed = d.mixture(many.dirichlet(np.ones(16)), d.Beta(Trials(worth * rate, worth * (1 - rate))))
    lower, upper = mixed.interval(0.9)
    np.testing.assert_allclose(mixed.cdf(upper) - mixed.cdf(lower), 0.9, atol=1e-7)
    inner = (lower > 0) & (upper < 1)
    level = mixed.log_prob(np.where(inner, lower, 0.5)) - mixed.log_prob(
        np.where(inner, upper, 0.5)
    )
    np.testing.assert_allclose(level, 0, atol=1e-5)


def test_a_gaussian_is_no_vector_but_its_vector_has_it_as_marginal() -> None:
    precision = np.broadcast_to(np.eye(2), (K, M, 2, 2))
    vector = d.mixture(W, d.MultivariateGaussian(VectorPotential(np.stack([A, B], -1), precision)))
    plain = d.mixture(W, d.Gaussian(Potential(A, np.ones_like(A))))
    np.testing.assert_allclose(vector.marginal(0).quantile(0.2), plain.quantile(0.2), rtol=1e-9)
