"""Mixtures of mappings: Section 6 and Appendix B, against sums written out by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.stats as st
from scipy.special import logsumexp, softmax

import ldf
from ldf.fit import Rows, Schedule, Settings, fit
from ldf.learn import learn
from ldf.mappings import Linear, Network
from ldf.mixed import LEARN, Component, MixedModel, Mixture
from ldf.model import Model
from ldf.objective import maximum_likelihood, model_selection
from ldf.solve import solve_mixture
from ldf.spec import Spec
from ldf.step import EM, MonteCarlo, marginals, mixture_weights, step_of
from ldf.structure import joint_marginal
from test_every_family import CASES, made

FAMILY = ldf.Binomial()
N, P = 240, 3
NETWORK = Network(shared=(4,), branch=(), linear_path=True)


def two_kinds(seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Rows of which half follow one column and half another: x, y, and who is who."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(N, P)), rng.integers(2, size=N)
    rate = 1 / (1 + np.exp(-np.where(z == 0, 2 * x[:, 0] - 1, 1 - 2 * x[:, 1])))
    trials = rng.integers(5, 40, N)
    theta = rng.beta(40 * rate, 40 * (1 - rate))
    y = {"successes": rng.binomial(trials, theta).astype(float), "trials": trials.astype(float)}
    return x, y, z


X, Y, WHO = two_kinds()


def double(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def random_weights(model: MixedModel, seed: int = 0) -> Any:
    """Weights of a mixture none of which is zero."""
    rng = np.random.default_rng(seed)
    like = model.init(rng, P * (max(model.blocks, default=0) + 1))
    return jax.tree.map(lambda leaf: rng.normal(size=leaf.shape) * 0.5, like)


def trained(model: Model, mixture: Mixture | None, epochs: int = 30) -> Any:
    """Two fits of the trainer, on different rows."""
    fits, single = 2, np.float32
    watched = np.stack([np.arange(N) % 4 == f for f in range(fits)]).astype(single)
    rows = Rows(
        X[None].astype(single), np.zeros(fits, int),
        {name: values.astype(single) for name, values in Y.items()},
        1 - watched, watched, np.zeros(N, single),
    )  # fmt: skip
    ground = model.ground(FAMILY.prior(0.5, 0.5))
    ground = jax.tree.map(lambda v: np.stack([np.asarray(v, single)] * fits), ground)
    settings = Settings(*(np.full(fits, v, single) for v in (0.01, 1e-4, 0.2, 4)))
    step = step_of(mixture, maximum_likelihood)
    return fit(model, rows, ground, settings, 0, Schedule(epochs, epochs, 64, 10), step=step)


def slowly(values: Iterable[Any], quick: set[str]) -> list[Any]:
    """All but a few are left to the slow tests: each is compiled anew."""
    return [v if v in quick else pytest.param(v, marks=pytest.mark.full) for v in values]


# --- the model ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [False, True])
def test_the_predictive_is_the_sum_over_mappings(gate: bool) -> None:
    """Eqs. 53 and 57: Σ_k β_k times the beta-binomial of each mapping, by SciPy."""
    model = MixedModel(FAMILY, Linear(), mixture=Mixture(3, gate=gate))
    weights, ground = random_weights(model), model.ground(FAMILY.prior(0.4, 0.7))
    with jax.enable_x64(True):
        found = np.asarray(model.log_predictive(double(weights), ground, double(X), double(Y)))
    logits = weights["gate"]["bias"] + (X @ weights["gate"]["slope"] if gate else 0)
    beta = np.broadcast_to(softmax(logits, -1), (N, 3))
    total = 0.0
    for k, own in enumerate(weights["each"]):
        log_n, logit = (X @ own["slope"] + own["bias"]).T
        a = np.exp(log_n) / (1 + np.exp(-logit)) + 0.4
        b = np.exp(log_n) / (1 + np.exp(logit)) + 0.7
        law = st.betabinom(Y["trials"].astype(int), a, b)
        total = total + beta[:, k] * law.pmf(Y["successes"])
    np.testing.assert_allclose(found, np.log(total), rtol=1e-8)


@pytest.mark.parametrize("learn", slowly(LEARN, {"marginal"}))
def test_one_mapping_is_the_plain_model_to_the_bit(learn: str) -> None:
    mixture = Mixture(1, learn=learn)
    plain = trained(Model(FAMILY, NETWORK), None)
    mixed = trained(MixedModel(FAMILY, NETWORK, mixture=mixture), mixture)
    assert plain.steps > 100
    for one, other in zip(
        jax.tree.leaves(plain.weights), jax.tree.leaves(mixed.weights["each"][0]), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(plain.score, mixed.score)


def test_equal_mappings_are_one() -> None:
    one = Model(FAMILY, NETWORK)
    many = MixedModel(FAMILY, NETWORK, mixture=Mixture(4))
    weights = random_weights(many)
    weights["each"] = [weights["each"][0]] * 4
    with jax.enable_x64(True):
        x, y, ground = double((X, Y, one.ground()))
        alone = one.log_predictive(double(weights["each"][0]), ground, x, y)
        found = many.log_predictive(double(weights), ground, x, y)
    np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_names_of_mappings_do_not_matter() -> None:
    model = MixedModel(FAMILY, NETWORK, mixture=Mixture(3, gate=True))
    weights, order = random_weights(model), [2, 0, 1]
    turned = {
        "each": [weights["each"][k] for k in order],
        "gate": jax.tree.map(lambda leaf: leaf[..., order], weights["gate"]),
    }
    with jax.enable_x64(True):
        x, y, ground = double((X, Y, model.ground()))
        found = [model.log_predictive(double(w), ground, x, y) for w in (weights, turned)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_components_may_differ_in_mapping_width_and_preprocessing() -> None:
    parts = (Component(Linear()), Component(width=2), Component(preprocess="standard"))
    model = MixedModel(FAMILY, NETWORK, mixture=Mixture(parts), blocks=(0, 0, 1))
    first = model.init(np.random.default_rng(0), 2 * P)
    assert set(first["each"][0]) == {"slope", "bias"}
    matrices = [w["shared"][0]["matrix"] for w in first["each"][1:]]
    assert [m.shape for m in matrices] == [(P, 4), (P, 4)]
    assert [(m != 0).any(0).sum() for m in matrices] == [2, 4]
    # The last sees the second block of columns alone, the others the first.
    weights, rng = random_weights(model), np.random.default_rng(1)
    with jax.enable_x64(True):
        x, ground = double((rng.normal(size=(5, 2 * P)), model.ground()))
        before = model.pseudo_observations(double(weights), ground, x).n
        moved = model.pseudo_observations(double(weights), ground, x.at[:, P:].add(1.0)).n
    assert (before[:2] == moved[:2]).all()
    assert (before[2] != moved[2]).all()


# --- learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", slowly(CASES, {"binomial", "poisson", "multinomial", "normal"}))
def test_a_full_round_of_em_never_lowers_the_penalised_marginal(name: str) -> None:
    """Appendix B, on every family: with the M-step to its end, no dropout, and a penalty."""
    table = made(CASES[name])
    model = MixedModel(CASES[name].family, Linear(True), mixture=Mixture(2, concentration=1.5))
    ground = model.ground()
    start = np.asarray(CASES[name].centre, float)
    ground = ground._replace(centre=start, scale=np.ones(len(start)))
    y = {word: values[:60] for word, values in table.y.items()}
    found = solve_mixture(model, ground, table.x[:60], y, None, 1e-3, rounds=6)
    steps = np.diff(found.scores)
    assert len(steps) >= 2
    assert (steps > -1e-9 * np.abs(found.scores[:-1])).all()
    assert steps[0] > 1e-6


def test_with_a_gate_it_never_falls_either() -> None:
    model = MixedModel(FAMILY, Linear(True), mixture=Mixture(2, gate=True))
    found = solve_mixture(model, model.ground(), X, Y, None, 1e-3, rounds=12)
    assert (np.diff(found.scores) > -1e-9).all()


def test_em_climbs_what_it_says() -> None:
    """Its gain has the slope of the marginal where responsibilities are held (Eqs. B4 to B6), and β
    is their mean (Eq. B10), or with α the mode of its posterior."""
    model = MixedModel(FAMILY, NETWORK, mixture=Mixture(3))
    step, weight = EM(1.0, False, False), np.linspace(0.5, 2, N)
    with jax.enable_x64(True):
        weights, x, y, ground = double((random_weights(model), X, Y, model.ground()))
        held = step.hold(model, weights, ground, x, y, double(weight))
        joint = np.asarray(model.log_joint(weights, ground, x, y))
        np.testing.assert_allclose(held.rows.T, np.exp(joint - logsumexp(joint, 0)), rtol=1e-10)

        def bound(w: Any) -> Any:
            gain = step.gain(model, maximum_likelihood, w, ground, x, y, None, held)
            return (weight * gain).sum()

        def marginal(w: Any) -> Any:
            return (weight * model.log_predictive(w, ground, x, y)).sum()

        mine, theirs = jax.grad(bound)(weights)["each"], jax.grad(marginal)(weights)["each"]
        for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
        settled = step.settle(weights, held, double(weight))["gate"]["bias"]
    mean = weight @ np.asarray(held.rows) / weight.sum()
    np.testing.assert_allclose(softmax(settled), mean, rtol=1e-10)
    with_prior = mixture_weights(np.array([3.0, 5.0, 2.0]), 2.0)
    np.testing.assert_allclose(with_prior, np.array([4, 6, 3]) / 13)


def test_the_marginal_of_one_unit_over_beta_learns_no_weights() -> None:
    """E Σ_k β_k p_k = Σ_k (α_k / Σα) p_k, within the error of the draws (Section 6)."""
    step = MonteCarlo(0.7, 3, 4000)
    beta = np.exp(np.asarray(step.betas(), float))
    p = np.array([0.02, 0.3, 0.11])
    values = beta @ p
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - p.mean()) < 4 * error
    assert error < 0.003


def test_the_joint_marginal_over_beta_is_an_integral() -> None:
    """Two mappings: draws against quadrature over β ~ Be(α, α)."""
    rng = np.random.default_rng(0)
    each = np.log(rng.uniform(0.01, 1, size=(2, 7)))

    def integrand(b: float) -> float:
        return st.beta.pdf(b, 1.3, 1.3) * np.prod(b * np.exp(each[0]) + (1 - b) * np.exp(each[1]))

    exact = scipy.integrate.quad(integrand, 0, 1, epsabs=0, epsrel=1e-10)[0]
    beta = rng.dirichlet([1.3, 1.3], 40_000)
    products = np.prod(beta @ np.exp(each), 1)
    error = products.std() / products.mean() / np.sqrt(len(products))
    found = float(joint_marginal(marginals(jnp.log(beta), jnp.asarray(each))).value)
    assert abs(found - np.log(exact)) < 4 * error < 0.05


def test_monte_carlo_climbs_the_joint_marginal() -> None:
    """Where the draws' weights are held, its gain has the slope of log Σ_s Π_i Σ_k β_k^(s) p_k."""
    model = MixedModel(FAMILY, NETWORK, mixture=Mixture(2))
    step = MonteCarlo(1.0, 2, 50)
    with jax.enable_x64(True):
        weights, x, y, ground = double((random_weights(model), X, Y, model.ground()))
        weight = jnp.ones(N)
        held = step.hold(model, weights, ground, x, y, weight)

        def bound(w: Any) -> Any:
            return step.gain(model, maximum_likelihood, w, ground, x, y, None, held).sum()

        def joint(w: Any) -> Any:
            each = model.log_each(w, ground, x, y)
            return joint_marginal(marginals(step.betas(), each)).value

        mine, theirs = jax.grad(bound)(weights)["each"], jax.grad(joint)(weights)["each"]
        for one, other in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
        settled = step.settle(weights, held, weight)["gate"]["bias"]
    mean = np.asarray(held.whole) @ np.exp(np.asarray(step.betas(), float))
    np.testing.assert_allclose(softmax(settled), mean / mean.sum(), rtol=1e-5)


@pytest.mark.parametrize("how", slowly(("marginal", "em", "monte-carlo"), {"em"}))
def test_two_mappings_explain_two_kinds_of_rows(how: str) -> None:
    mixture = Mixture(2, learn=how)
    one = trained(Model(FAMILY, NETWORK), None, 200)
    two = trained(MixedModel(FAMILY, NETWORK, mixture=mixture), mixture, 200)
    assert (two.score > one.score + 0.05).all()
    share = softmax(two.weights["gate"]["bias"], -1)
    assert (np.abs(share - 0.5) < 0.25).all()


def test_em_bounds_only_the_likelihood() -> None:
    with pytest.raises(ldf.DataError, match="'em' bounds only the log-likelihood"):
        step_of(Mixture(2, learn="em"), model_selection)
    step_of(Mixture(2), model_selection)  # the exact marginal takes any objective


def test_a_mixture_of_regressions_is_solved_by_its_likelihood_alone() -> None:
    line = ldf.Ensemble((ldf.Member(Linear()),), parts=1)
    of = ldf.Fusion(
        "binomial", {"successes": "successes", "trials": "trials"}, ["a", "b"],
        structure=Mixture(2), ensemble=line, objective="model-selection",
    )  # fmt: skip
    with pytest.raises(ldf.DataError, match="a mixture of Linear mappings, which is solved by EM"):
        of.fit(FRAME)


# --- answers ------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], **Y})
EXACT = ldf.Ensemble((ldf.Member(Linear(True), "standard", penalty=1e-4),), parts=1, restarts=2)


def fusion(**arguments: Any) -> ldf.Fusion:
    words = {"successes": "successes", "trials": "trials"}
    return ldf.Fusion(FAMILY, words, ["a", "b", "c"], **arguments)


@pytest.fixture(scope="module")
def model() -> ldf.Fusion:
    return fusion(structure=Mixture(2), ensemble=EXACT, prior=FAMILY.prior(0.01, 0.01)).fit(FRAME)


def by_hand(model: ldf.Fusion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b and β of both mappings."""
    said = model.learned_.said(X)
    return said.natural.successes, said.natural.failures, said.share


def test_posteriors_are_mixtures_over_the_mappings(model: ldf.Fusion) -> None:
    """p(z | x, y) ∝ β_k p_k(y), and E[θ | x, y] by iterated expectations."""
    a, b, share = by_hand(model)
    k, n = Y["successes"], Y["trials"]
    evidence = share * st.betabinom.pmf(k, n.astype(int), a, b)
    after = evidence / evidence.sum(0)
    mean = (after * (a + k) / (a + b + n)).sum(0)
    np.testing.assert_allclose(model.posterior(FRAME).mean(), mean, rtol=1e-9)
    theta = np.full(N, 0.37)
    density = (after * st.beta.pdf(0.37, a + k, b + n - k)).sum(0)
    found = model.posterior(FRAME).distribution.log_prob(theta)
    np.testing.assert_allclose(found, np.log(density), rtol=1e-7)
    np.testing.assert_allclose(model.predictive(FRAME).log_prob(), np.log(evidence.sum(0)))


def test_assignments_are_responsibilities(model: ldf.Fusion) -> None:
    a, b, share = by_hand(model)
    evidence = share * st.betabinom.pmf(Y["successes"], Y["trials"].astype(int), a, b)
    after = evidence / evidence.sum(0)
    found = model.assignments(FRAME)
    np.testing.assert_allclose(found[["p(1)", "p(2)"]].to_numpy().T, after, rtol=1e-8)
    np.testing.assert_array_equal(found["assignment"], after.argmax(0) + 1)
    entropy = -(after * np.log(after)).sum(0)
    np.testing.assert_allclose(found["entropy"], entropy, atol=1e-10)
    before = model.assignments(FRAME, given="auxiliary")
    np.testing.assert_allclose(before["p(1)"], share[0], rtol=1e-10)
    assert np.unique(before["entropy"].round(12)).size == 1  # the same for all, without a gate
    agree = (found["assignment"] - 1 == WHO).mean()
    assert max(agree, 1 - agree) > 0.75


def test_assignments_need_one_mixture_to_speak_of() -> None:
    plain = fusion(ensemble=EXACT).fit(FRAME)
    with pytest.raises(ldf.DataError, match="structure"):
        plain.assignments(FRAME)


def test_fits_of_a_mixture_answer_side_by_side() -> None:
    """New rows by all mappings of all fits, training rows by the fit that has not seen them."""
    member = ldf.Member(NETWORK, "standard")
    ensemble = ldf.Ensemble((member,), parts=3, schedule=Schedule(20, 20, 64, 10))
    table = ldf.learn.Table(X, Y, np.ones(N, bool), np.ones(N))
    (learned,) = learn(Spec(FAMILY, ensemble, structure=Mixture(2)), table, 0)
    (t,) = learned.trained
    new, own = learned.said(X), learned.said(X, learned.part)
    assert new.share.shape == (6, N)
    np.testing.assert_allclose(new.share.sum(0), 1)
    np.testing.assert_allclose(own.share.sum(0), 1)
    assert (own.share[2:] == 0).all()
    for p in range(3):
        rows = learned.part == p
        np.testing.assert_allclose(
            own.natural.successes[:2, rows], new.natural.successes[2 * p : 2 * p + 2, rows]
        )
        beta = softmax(t.weights["gate"]["bias"][p].astype(float))
        np.testing.assert_allclose(own.share[:2, rows], beta[:, None] * np.ones(rows.sum()))
        np.testing.assert_allclose(new.share[2 * p : 2 * p + 2, 0], beta / 3)


def test_a_mixture_is_saved_and_loaded(model: ldf.Fusion, tmp_path: Any) -> None:
    parts = (Component(), Component(preprocess="standard", width=2))
    member = ldf.Member(NETWORK)
    ensemble = ldf.Ensemble((member,), parts=3, schedule=Schedule(5, 5, 64, 5))
    other = fusion(structure=Mixture(parts, gate=True), ensemble=ensemble).fit(FRAME)
    for i, one in enumerate((model, other)):
        one.save(tmp_path / f"{i}.ldf")
        again = ldf.load(tmp_path / f"{i}.ldf")
        assert again.structure == one.structure
        np.testing.assert_array_equal(again.posterior(FRAME).mean(), one.posterior(FRAME).mean())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"components": 0}, "'components'"),
        ({"learn": "guess"}, "'learn'"),
        ({"concentration": 0.0}, "'concentration'"),
        ({"gate": True, "learn": "monte-carlo"}, "leaves no β to draw"),
    ],
)
def test_what_is_no_mixture_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ldf.DataError, match=told):
        Mixture(**arguments)
