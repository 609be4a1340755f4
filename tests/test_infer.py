"""Samplers and coordinate ascent of a mixture against brute force, and what must hold exactly.

With few units all assignments can be listed: β is then integrated out by the Dirichlet's own
formula, and θ by its components' posteriors. Predictives and means on the exact side are SciPy's
and the textbook's. Draws are compared within 4.5 of their Monte-Carlo standard errors (ArviZ's).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import gammaln, logsumexp

import ldf
from ldf import infer
from ldf.infer import MixtureProblem, marginal

# ArviZ says on import that its next version will differ.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

METHODS = ("marginal", "theta-collapsed", "beta-collapsed", "gibbs")
# What compiles anew for no other reason than another shape is left for the slow tests.
SLOW = [METHODS[0], *(pytest.param(method, marks=pytest.mark.full) for method in METHODS[1:])]
ALL = ("weights", "assignment", "theta")


class World(NamedTuple):
    """Three components and five units, so that programs are compiled once."""

    problem: MixtureProblem
    log_predictive: np.ndarray  # components × units, by SciPy
    mean: np.ndarray  # of θ given its component: components × units (× classes)


def binomial() -> World:
    rng = np.random.default_rng(1)
    a, b = rng.gamma(4.0, size=(2, 3, 5)) + 0.8
    n, k = np.array([10, 4, 0, 7, 12]), np.array([2, 3, 0, 1, 10])
    family = ldf.Binomial()
    y = {"successes": k, "trials": n}
    problem = MixtureProblem.of(family, family.natural(a, b), y, [1.0, 0.5, 2.0])
    return World(problem, st.betabinom.logpmf(k, n, a, b), (a + k) / (a + b + n))


def poisson() -> World:
    """The fourth unit was not seen, and its row is nonsense."""
    rng = np.random.default_rng(2)
    a, b = rng.gamma(3.0, size=(2, 3, 5)) + 0.5
    y, n = np.array([0.0, 3, 9, np.nan, 2]), np.array([1.0, 2.0, 3.0, np.nan, 0.5])
    seen = np.isfinite(y)
    family = ldf.Poisson()
    columns = {"count": y, "exposure": n}
    problem = MixtureProblem.of(family, family.natural(a, b), columns, [0.7, 1.3, 1.0], seen)
    y, n = np.nan_to_num(y), np.nan_to_num(n)
    log_mass = np.where(seen, st.nbinom.logpmf(y, a, b / (b + n)), 0.0)
    return World(problem, log_mass, (a + y) / (b + n))


def multinomial() -> World:
    rng = np.random.default_rng(3)
    a = rng.gamma(4.0, size=(3, 5, 3)) + 0.5
    k = np.array([[3, 0, 1], [0, 6, 2], [1, 1, 1], [5, 0, 0], [0, 2, 2]])
    family = ldf.Multinomial()
    problem = MixtureProblem.of(family, family.natural(a), {"counts": k}, 1.5)
    log_mass = [st.dirichlet_multinomial.logpmf(k, row, k.sum(1)) for row in a]
    return World(problem, np.array(log_mass), (a + k) / (a + k).sum(-1, keepdims=True))


WORLDS = {"binomial": binomial(), "poisson": poisson(), "multinomial": multinomial()}


class Exact(NamedTuple):
    log_marginal: float
    share: np.ndarray  # of each assignment of all units
    assignment: np.ndarray  # assignments × units
    weights: np.ndarray  # E β given each
    squares: np.ndarray  # E β²

    def responsibilities(self) -> np.ndarray:
        components = self.weights.shape[1]
        return np.array([self.share @ (self.assignment == k) for k in range(components)])


def enumerate_all(log_predictive: np.ndarray, alpha: np.ndarray) -> Exact:
    components, units = log_predictive.shape
    z = np.array(list(itertools.product(range(components), repeat=units)))
    count = alpha + (z[..., None] == np.arange(components)).sum(1)
    total = alpha.sum() + units
    joint = log_predictive[z, np.arange(units)].sum(1) + gammaln(count).sum(1) - gammaln(total)
    joint = joint - gammaln(alpha).sum() + gammaln(alpha.sum())
    log_marginal = float(logsumexp(joint))
    mean = count / total
    squares = mean * (count + 1) / (total + 1)
    return Exact(log_marginal, np.exp(joint - log_marginal), z, mean, squares)


def agree(draws: np.ndarray, exact: Any) -> None:
    """Means over chains × draws, within their Monte-Carlo errors."""
    import arviz

    draws, exact = draws.astype(float), np.asarray(exact)
    assert draws.shape[2:] == exact.shape
    error = arviz.mcse(arviz.convert_to_dataset({"g": draws}))["g"].values
    assert (error < 0.1 * draws.std((0, 1))).all()  # more than a hundred effective draws
    assert (np.abs(draws.mean((0, 1)) - exact) < 4.5 * error).all()


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_sampler_agrees_with_all_assignments_listed(method: str, name: str) -> None:
    problem, log_predictive, mean = WORLDS[name]
    exact = enumerate_all(log_predictive, problem.pseudo_counts)
    found = infer.sample(problem, 2000, 4, seed=5, method=method, keep=ALL)
    assert found.method == method
    agree(found.weights, exact.share @ exact.weights)
    agree(found.weights**2, exact.share @ exact.squares)
    z = found.assignment
    agree(z == 0, exact.responsibilities()[0])
    # Jointly: two units together, β with z, θ with z.
    agree(z[..., 0] == z[..., 1], exact.share @ (exact.assignment[:, 0] == exact.assignment[:, 1]))
    first = exact.assignment[:, 0] == 0
    agree(found.weights * (z[..., :1] == 0), (exact.share * first) @ exact.weights)
    theta, share = found.theta, exact.responsibilities()
    more = (1,) * (mean.ndim - 2)  # of a vector, its components
    agree(theta, (share.reshape(*share.shape, *more) * mean).sum(0))
    agree(theta[:, :, 0] * (z[..., 0] == 0).reshape(*z.shape[:2], *more), share[0, 0] * mean[0, 0])
    # And without draws of z and θ.
    near = found.responsibilities()
    assert np.allclose(near.sum(0), 1)
    assert np.abs(near - share).max() < 0.03
    assert np.allclose(found.posterior().mean(), np.einsum("ki,ki...->i...", near, mean))


@pytest.mark.parametrize("name", WORLDS)
def test_the_problem_holds_the_predictives(name: str) -> None:
    problem, log_predictive, _ = WORLDS[name]
    assert np.allclose(problem.log_predictive, log_predictive, atol=1e-12)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("mean_field", [False, True])
def test_the_bound_rises_and_is_one(name: str, mean_field: bool) -> None:
    problem, log_predictive, _ = WORLDS[name]
    exact = enumerate_all(log_predictive, problem.pseudo_counts)
    found = infer.variational(problem, mean_field)
    assert found.converged
    assert (np.diff(found.elbo) > -1e-12).all()
    assert found.elbo[0] + 1e-3 < found.elbo[-1] < exact.log_marginal
    assert found.elbo[-1] > exact.log_marginal - 2
    if mean_field:
        assert found.elbo[-1] < infer.variational(problem).elbo[-1]


@pytest.mark.parametrize("mean_field", [False, True])
def test_the_bound_is_what_it_should_be(mean_field: bool) -> None:
    """E log p(β, z, θ, y) − log q by draws of q and SciPy's densities."""
    problem, _, _ = WORLDS["binomial"]
    found = infer.variational(problem, mean_field)
    rng, draws, units = np.random.default_rng(0), 40_000, np.arange(problem.units)
    counts, share, at = found.weights.natural.counts, found.responsibilities, problem.natural
    assert np.allclose(counts.sum(), problem.pseudo_counts.sum() + problem.units)
    k, m = problem.statistic.successes, problem.statistic.failures
    beta = rng.dirichlet(counts, draws)
    z = (rng.random((draws, 1, len(units))) > share.cumsum(0)[:-1]).sum(1)
    if mean_field:
        a = (share * at.successes).sum(0) + k
        b = (share * at.failures).sum(0) + m
    else:
        a, b = (at.successes + k)[z, units], (at.failures + m)[z, units]
    theta = rng.beta(np.broadcast_to(a, z.shape), b)
    rows = np.arange(draws)[:, None]
    log_p = st.dirichlet.logpdf(beta.T, problem.pseudo_counts) + np.log(beta[rows, z]).sum(1)
    log_p += st.beta.logpdf(theta, at.successes[z, units], at.failures[z, units]).sum(1)
    log_p += st.binom.logpmf(k, k + m, theta).sum(1)
    log_q = st.dirichlet.logpdf(beta.T, counts) + np.log(share[z, units]).sum(1)
    log_q += st.beta.logpdf(theta, a, b).sum(1)
    gap = log_p - log_q
    assert abs(gap.mean() - found.elbo[-1]) < 4.5 * gap.std() / np.sqrt(draws)


def many(units: int = 600, pseudo_counts: Any = 1.0) -> MixtureProblem:
    rng = np.random.default_rng(7)
    family = ldf.Poisson()
    exposure = rng.uniform(5, 20, units)
    rate = np.exp(rng.normal(size=(3, units)))
    z = rng.choice(3, units, p=[0.6, 0.3, 0.1])
    theta = rng.gamma(6 * rate[z, np.arange(units)], 1 / 6)
    y = {"count": rng.poisson(theta * exposure), "exposure": exposure}
    return MixtureProblem.of(family, family.natural(6 * rate, 6 + 0 * rate), y, pseudo_counts)


def test_with_many_units_all_agree() -> None:
    """The bound is then tight, so that coordinate ascent is near too."""
    problem = many()
    found = {method: infer.sample(problem, 1000, seed=3, method=method) for method in METHODS[:2]}
    table = {method: chains.summary() for method, chains in found.items()}
    best = table["marginal"]
    assert (best["ess_bulk"] > 1000).all()
    for one in table.values():
        assert (one["r_hat"] < 1.02).all()
        apart = np.abs(one["mean"] - best["mean"])
        assert (apart < 4.5 * np.hypot(one["mcse"], best["mcse"])).all()
        assert np.allclose(one["sd"], best["sd"], rtol=0.15)
    near = infer.variational(problem)
    assert (np.abs(near.weights.mean() - best["mean"]) < 0.1 * best["sd"]).all()
    share = found["marginal"].responsibilities()
    assert np.abs(near.responsibilities - share).max() < 0.01


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_draws_the_same(method: str) -> None:
    problem = WORLDS["binomial"].problem
    one, two, other = (
        infer.sample(problem, 2000, 4, seed, method=method, keep=ALL) for seed in (5, 5, 6)
    )
    assert np.array_equal(one.weights, two.weights)
    assert np.array_equal(one.theta, two.theta)
    assert not np.array_equal(one.weights, other.weights)


def permuted(problem: MixtureProblem, order: list[int]) -> MixtureProblem:
    y = {"successes": problem.statistic.successes, "trials": problem.statistic.n}
    natural, alpha = problem.natural[order], problem.pseudo_counts[order]
    return MixtureProblem.of(problem.family, natural, y, alpha)


def test_labels_permute_without_effect() -> None:
    problem, order = WORLDS["binomial"].problem, [2, 0, 1]
    other = permuted(problem, order)
    for mean_field in (False, True):
        one, two = (infer.variational(p, mean_field, 1e-13) for p in (problem, other))
        assert np.allclose(one.responsibilities[order], two.responsibilities, atol=1e-5)
        assert np.allclose(one.weights.natural.counts[order], two.weights.natural.counts, atol=1e-4)
        assert np.isclose(one.elbo[-1], two.elbo[-1], atol=1e-10)
    targets = marginal.Target(problem), marginal.Target(other)
    one, two = (np.exp(marginal.log_softmax(target.peak()[0])) for target in targets)
    assert np.allclose(one[order], two, atol=1e-6)
    beta = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    one, two = (
        target(np.log(b[:, :2] / b[:, 2:]))
        for target, b in zip(targets, (beta, beta[:, order]), strict=True)
    )
    assert np.allclose(one, two)


def test_the_density_of_the_weights_is_the_products() -> None:
    """Also where units are not a multiple of those multiplied together."""
    for units in (1, 5, 8, 21):
        problem = many(units, [0.3, 1.0, 2.5])
        beta = np.random.default_rng(1).dirichlet(np.ones(3), 40)
        mixed = np.log(beta @ np.exp(problem.log_predictive)).sum(1)
        log_density = np.array([st.dirichlet.logpdf(b, problem.pseudo_counts) for b in beta])
        expected = log_density + mixed + np.log(beta).sum(1)
        gap = marginal.Target(problem)(np.log(beta[:, :2] / beta[:, 2:])) - expected
        assert np.allclose(gap, gap[0])


def test_the_peak_is_one() -> None:
    for problem in (many(), WORLDS["binomial"].problem, many(5, 0.01)):
        target = marginal.Target(problem)
        centre, curvature = target.peak()
        step = 1e-3 * np.linalg.inv(np.linalg.cholesky(curvature)).T
        around = np.concatenate([centre + step.T, centre - step.T])
        fall = target(centre[None]) - target(around)
        assert np.allclose(fall, 0.5e-6, rtol=0.05)


@pytest.mark.parametrize("method", SLOW)
def test_one_component_is_the_plain_model(method: str) -> None:
    world = WORLDS["binomial"]
    family, y = ldf.Binomial(), world.problem.statistic
    columns = {"successes": y.successes, "trials": y.n}
    natural = world.problem.natural[:1]
    problem = MixtureProblem.of(family, natural, columns, 0.5)
    found = infer.sample(problem, 20, method=method, warmup=100)
    assert (found.weights == 1).all()
    after = family.posterior(natural[0] + y)
    assert np.array_equal(found.posterior().quantile(0.3), after.quantile(0.3))
    for mean_field in (False, True):
        near = infer.variational(problem, mean_field)
        assert np.isclose(near.elbo[-1], world.log_predictive[0].sum())
        assert np.allclose(near.posterior.quantile(0.3), after.quantile(0.3))


def test_equal_components_tell_nothing_of_the_weights() -> None:
    family = ldf.Binomial()
    natural = family.natural(np.full((3, 4), 2.0), np.full((3, 4), 5.0))
    alpha = np.array([1.0, 2.0, 3.0])
    y = {"successes": [3, 0, 1, 2], "trials": [4, 4, 4, 4]}
    problem = MixtureProblem.of(family, natural, y, alpha)
    found = infer.sample(problem, seed=1)
    agree(found.weights, alpha / 6)
    agree(found.weights**2, alpha * (alpha + 1) / 42)
    mean = found.weights.mean((0, 1))
    assert np.allclose(found.responsibilities(), mean[:, None], rtol=1e-12)


def test_units_without_primary_data_give_back_the_prior() -> None:
    problem, _, _ = WORLDS["poisson"]
    found = infer.sample(problem, seed=1)
    mean = found.weights.mean((0, 1))
    assert np.allclose(found.responsibilities()[:, 3], mean, rtol=1e-12)
    prior = ldf.distributions.mixture(mean / mean.sum(), problem.family.posterior(problem.natural))
    assert np.allclose(found.posterior().quantile(0.2)[3], prior.quantile(0.2)[3])
    nothing = MixtureProblem.of(
        problem.family, problem.natural, {"count": [np.nan] * 5}, [3.0, 2.0, 1.0], np.zeros(5, bool)
    )
    agree(infer.sample(nothing, seed=1).weights, [1 / 2, 1 / 3, 1 / 6])
    for mean_field in (False, True):
        assert infer.variational(nothing, mean_field).elbo[-1] < 0  # the log marginal is 0


@pytest.mark.parametrize("method", SLOW)
def test_components_may_be_shared_by_all_units(method: str) -> None:
    """As primary data alone have them: K × 1 is K × units of the same."""
    family = ldf.Binomial()
    y = {"successes": [3, 0, 1], "trials": [4, 4, 4]}
    shared = family.natural(np.array([[2.0], [5.0]]), np.array([[5.0], [1.0]]))
    one, two = (
        infer.sample(MixtureProblem.of(family, at, y), 50, method=method, keep=ALL)
        for at in (shared, shared.spread((2, 3)))
    )
    assert np.array_equal(one.theta, two.theta)
    one, two = (
        infer.variational(MixtureProblem.of(family, at, y), True)
        for at in (shared, shared.spread((2, 3)))
    )
    assert np.array_equal(one.elbo, two.elbo)


def test_where_no_proposal_fits_gibbs_takes_its_place() -> None:
    family = ldf.Poisson()
    rate = np.random.default_rng(0).gamma(2.0, size=(12, 6)) + 0.5
    natural = family.natural(rate, np.ones((12, 6)))
    problem = MixtureProblem.of(family, natural, {"count": [0, 1, 2, 3, 4, 5]}, 0.05)
    found = infer.sample(problem, 100, seed=0, keep=("assignment",))
    assert found.method == "theta-collapsed"
    assert found.assignment.shape == (4, 100, 6)
    assert np.allclose(found.weights.sum(-1), 1)


def every_family() -> dict[str, tuple[ldf.Family, Any, dict[str, Any]]]:
    """Two components and three units of each."""
    rng = np.random.default_rng(4)
    a, b = rng.gamma(5.0, size=(2, 2, 3)) + 4
    mean, spread = rng.normal(size=(2, 3, 2)), np.array([[1.2, 0.3], [0.3, 0.8]])
    covariance = np.broadcast_to(spread, (2, 3, 2, 2))
    vector = {"values": rng.normal(size=(3, 2))}
    trials, arrivals = ldf.Binomial().prior(a, b), ldf.Poisson().prior(a, b)
    plane = ldf.LinearGaussian(map=np.array([[1.0, 0.5], [-0.3, 1.2]]), offset=np.zeros(2))
    several = ldf.MultivariateNormal(dimension=2)
    return {
        "Geometric": (ldf.Geometric(), trials, {"failures": [0, 2, 7], "waits": [1, 1, 2]}),
        "NegativeBinomial": (ldf.NegativeBinomial(r=3), trials, {"failures": [0, 2, 7]}),
        "Exponential": (ldf.Exponential(), arrivals, {"time": [0.1, 2.0, 5.0]}),
        "Gamma": (ldf.Gamma(shape=2.5), arrivals, {"total": [0.1, 2.0, 5.0], "n": [1, 2, 1]}),
        "Gaussian": (
            ldf.Gaussian(variance=2.0),
            ldf.Gaussian().prior(mean[..., 0], a / 5),
            {"mean": [0.3, -1.0, 2.0], "n": [1, 4, 2]},
        ),
        "LinearGaussian": (
            plane,
            plane.prior(mean, covariance),
            {**vector, "covariance": covariance[0]},
        ),
        "Normal": (
            ldf.Normal(),
            ldf.Normal().prior(mean[..., 0], a, 1 + mean[..., 1] ** 2, b + 3),
            {"values": [0.5, -1.0, 2.0]},
        ),
        "MultivariateNormal": (several, several.prior(mean, a / 9, covariance, b / 2), vector),
    }


EVERY = every_family()


@pytest.mark.parametrize("name", EVERY)
def test_every_family(name: str) -> None:
    """That predictives are right is for the laws to say; the rest follows from them."""
    family, natural, y = EVERY[name]
    problem = MixtureProblem.of(family, natural, y, [1.0, 2.0])
    exact = enumerate_all(problem.log_predictive, problem.pseudo_counts)
    found = infer.sample(problem, seed=2, keep=ALL)
    agree(found.weights, exact.share @ exact.weights)
    means = family.posterior(natural + problem.statistic[None]).mean()
    pairs = zip(_parts(found.theta), _parts(means), strict=True)
    for theta, mean in pairs:
        agree(theta, np.einsum("ki,ki...->i...", exact.responsibilities(), mean))
    for mean_field in (False, True):
        near = infer.variational(problem, mean_field)
        assert near.converged
        assert (np.diff(near.elbo) > -1e-12).all()
        assert exact.log_marginal - 2 < near.elbo[-1] < exact.log_marginal


@pytest.mark.full
@pytest.mark.parametrize("name", EVERY)
def test_every_family_by_gibbs(name: str) -> None:
    family, natural, y = EVERY[name]
    problem = MixtureProblem.of(family, natural, y, [1.0, 2.0])
    exact = enumerate_all(problem.log_predictive, problem.pseudo_counts)
    found = infer.sample(problem, 3000, seed=2, method="gibbs", keep=ALL)
    agree(found.weights, exact.share @ exact.weights)
    means = family.posterior(natural + problem.statistic[None]).mean()
    for theta, mean in zip(_parts(found.theta), _parts(means), strict=True):
        agree(theta, np.einsum("ki,ki...->i...", exact.responsibilities(), mean))


def _parts(theta: Any) -> tuple[Any, ...]:
    return theta if isinstance(theta, tuple) else (theta,)


def test_results_for_arviz() -> None:
    problem = WORLDS["multinomial"].problem
    found = infer.sample(problem, 100, 3, keep=ALL)
    data = found.to_arviz().posterior
    assert data["weights"].dims == ("chain", "draw", "component")
    assert data["assignment"].dims == ("chain", "draw", "unit")
    assert data["theta"].dims[:3] == ("chain", "draw", "unit")
    assert np.array_equal(data["theta"].values, found.theta)
    table = found.summary()
    assert np.allclose(table["mean"], data["weights"].mean(("chain", "draw")))
    assert {len(column) for column in table.values()} == {3}
    assert (table["r_hat"] < 1.1).all()
    assert (table["ess_bulk"] > 50).all()
    family, natural, y = EVERY["MultivariateNormal"]
    pair = infer.sample(MixtureProblem.of(family, natural, y), 20, keep=ALL)
    data = pair.to_arviz().posterior
    assert data["theta_mean"].shape == (4, 20, 3, 2)
    assert data["theta_variance"].shape == (4, 20, 3, 2, 2)
    assert "4 × 20 draws" in repr(pair)


def test_trace_plots() -> None:
    import matplotlib

    matplotlib.use("agg")
    axes = infer.sample(WORLDS["binomial"].problem, 100).trace()
    assert axes.shape == (1, 2)
    matplotlib.pyplot.close("all")


def test_without_arviz_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "arviz", None)
    found = infer.sample(WORLDS["binomial"].problem, 10)
    for ask in (found.to_arviz, found.summary, found.trace):
        with pytest.raises(ImportError, match=r"pip install 'ldf\[arviz\]'"):
            ask()


def test_what_does_not_fit_is_refused() -> None:
    family = ldf.Binomial()
    natural = family.natural(np.ones((2, 3)), np.ones((2, 3)))
    y = {"successes": [1, 0, 2], "trials": [2, 2, 2]}
    with pytest.raises(ldf.DataError, match="components × units"):
        MixtureProblem.of(family, natural[0], y)
    with pytest.raises(ldf.DataError, match=r"'trials'.*2 rows"):
        MixtureProblem.of(family, natural, y | {"trials": [2, 2]})
    with pytest.raises(ldf.DataError, match=r"'natural'.*3 units"):
        MixtureProblem.of(family, natural, {"successes": [1] * 4, "trials": [2] * 4})
    with pytest.raises(ldf.DataError, match="'pseudo_counts'"):
        MixtureProblem.of(family, natural, y, [1.0, 0.0])
    with pytest.raises(ldf.DataError, match="'seen'"):
        MixtureProblem.of(family, natural, y, seen=[1, 0, 1])
    with pytest.raises(ldf.DoesNotExist, match="improper"):
        MixtureProblem.of(family, natural.zero(), y)
    problem = MixtureProblem.of(family, natural, y)
    with pytest.raises(ldf.DataError, match="'method'"):
        infer.sample(problem, method="guess")
    with pytest.raises(ldf.DataError, match="'keep'"):
        infer.sample(problem, keep=("phi",))


def test_gibbs_says_when_a_float_cannot_hold_theta() -> None:
    """With so little seen, some θ are zero; the other methods need none."""
    family = ldf.Binomial()
    small = np.array([[1e-3], [2e-3], [0.5]])
    natural = family.natural(np.broadcast_to(small, (3, 5)), np.ones((3, 5)))
    y = {"successes": [0, 0, 1, 0, 2], "trials": [3, 1, 1, 4, 2]}
    problem = MixtureProblem.of(family, natural, y)
    with pytest.raises(ldf.DoesNotExist, match="another method"):
        infer.sample(problem, 100, method="gibbs", keep=ALL)
    exact = enumerate_all(problem.log_predictive, problem.pseudo_counts)
    agree(infer.sample(problem, seed=0).weights, exact.share @ exact.weights)
