"""Mappings, objectives and the one trainer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ldf
from ldf.fit import Fitted, Rows, Schedule, Settings, State, fit
from ldf.mappings import Linear, Mapping, Network, count_weights
from ldf.mappings.network import ACTIVATIONS
from ldf.model import Ground, Model
from ldf.objective import balanced_weights, maximum_likelihood, model_selection, tempered

M, P = 600, 3
QUICK = Schedule(epochs=60, patience=20, batch=128, chunk=10, places=2)


def truth(rng: np.random.Generator, size: int = M) -> tuple[np.ndarray, ...]:
    """x, and θ ~ Be(a(x), b(x)) with a rate and a count that both vary with x."""
    x = rng.normal(size=(size, P)).astype(np.float32)
    rate = 1 / (1 + np.exp(-(0.8 * x[:, 0] - 0.5)))
    count = np.where(x[:, 1] > 0, 30.0, 4.0)
    trials = rng.integers(0, 60, size)
    theta = rng.beta(count * rate, count * (1 - rate))
    return x, trials, rng.binomial(trials, theta), rate, count


def rows(fits: int, size: int = M) -> Rows:
    rng = np.random.default_rng(0)
    x, trials, successes, *_ = truth(rng, size)
    watched = np.stack([rng.random(size) < 0.2 for _ in range(fits)])
    y = {"successes": successes, "trials": trials}
    return Rows(
        jnp.asarray(x)[None],
        jnp.zeros(fits, jnp.int32),
        {name: jnp.asarray(value, jnp.float32) for name, value in y.items()},
        jnp.asarray(~watched, jnp.float32),
        jnp.asarray(watched, jnp.float32),
        jnp.zeros(size),
    )


def settings(fits: int, rate: float = 0.01, penalty: float = 0.0, dropout: float = 0.0) -> Settings:
    return Settings(*(jnp.full(fits, value) for value in (rate, penalty, dropout, 12)))


FAMILY = ldf.Binomial()
PRIOR = jax.tree.map(lambda v: jnp.asarray(v, jnp.float32), FAMILY.prior(0.1, 0.1))


def learn(data: Rows, mapping: Mapping | None = None, **more: Any) -> Fitted:
    model = Model(FAMILY, mapping or Linear())
    fits = data.training.shape[0]
    words = {"settings": settings(fits), "seed": 0, "schedule": QUICK, **more}
    return fit(model, data, ground(model, fits), **words)


def ground(model: Model, fits: int) -> Ground:
    """The same prior for all fits."""
    return jax.tree.map(
        lambda v: jnp.stack([jnp.asarray(v, jnp.float32)] * fits), model.ground(PRIOR)
    )


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


# --- mappings -----------------------------------------------------------------------------------


def test_the_papers_electrification_network_has_146_weights() -> None:
    weights = Network(shared=(12,), branch=(3,)).init(np.random.default_rng(0), 4, 2)
    assert count_weights(weights) == 146


def test_a_network_without_hidden_layers_is_the_linear_mapping() -> None:
    """Section 4: GLM mappings are networks with zero hidden layers."""
    network, linear = Network(shared=(), branch=()), Linear()
    weights = network.init(np.random.default_rng(1), P, 2)
    parts = [layers[0] for layers in weights["branches"]]
    same = {name: jnp.concatenate([part[key] for part in parts], -1) for name, key in
            {"slope": "matrix", "bias": "bias"}.items()}  # fmt: skip
    x = jnp.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(network.apply(weights, x), linear.apply(same, x), rtol=1e-6)


def test_a_constant_count_is_shared_by_all_rows() -> None:
    mapping = Linear(constant_count=True)
    weights = {"slope": jnp.ones((P, 1)), "bias": jnp.ones(2)}
    data = rows(1)
    model = Model(FAMILY, mapping)
    pseudo = model.pseudo_observations(weights, model.ground(), data.x[0])
    np.testing.assert_allclose(pseudo.n, pseudo.n[0], rtol=1e-5)
    assert np.ptp(np.asarray(pseudo.t)) > 0


def test_appendix_d_network_gives_two_positive_counts() -> None:
    mapping = Network(shared=(10, 10), branch=(), activations=("tanh", "relu"), by="counts")
    model = Model(ldf.Poisson(), mapping)
    pseudo = model.pseudo_observations(
        mapping.init(np.random.default_rng(0), P, 2), model.ground(), rows(1).x[0]
    )
    assert (np.asarray(pseudo.count) > 0).all()
    assert (np.asarray(pseudo.exposure) > 0).all()


def test_a_linear_path_adds_to_the_networks_rate() -> None:
    plain, beside = Network(), Network(linear_path=True)
    weights = beside.init(np.random.default_rng(0), P, 2)
    x = jnp.array([0.3, -1.0, 2.0])
    np.testing.assert_array_equal(beside.apply(weights, x), plain.apply(weights, x))
    weights["linear"] = jnp.ones((P, 1))
    added = beside.apply(weights, x) - plain.apply(weights, x)
    np.testing.assert_allclose(added, [0.0, 1.3], rtol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_narrow_network_in_a_wide_program_keeps_its_spare_units_at_zero(activation: str) -> None:
    """So that a search over widths is one compiled program."""
    data = rows(2)
    network = Network(shared=(6, 6), branch=(2,), activations=(activation,), linear_path=True)
    narrow = settings(2)._replace(width=jnp.array([2, 6]))
    found = learn(data, network, settings=narrow).weights
    for layer, live_in in zip(found["shared"], (P, 2), strict=True):
        assert not layer["matrix"][0][:, 2:].any()
        assert not layer["bias"][0][2:].any()
        assert (layer["matrix"][0][:live_in, :2] != 0).all()
        assert (layer["matrix"][1] != 0).all()
    for branch in found["branches"]:
        assert not branch[0]["matrix"][0][2:].any()
        assert (branch[0]["matrix"][1] != 0).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_narrow_network_answers_as_one_without_spare_units(activation: str) -> None:
    narrow, wide = (
        Network(shared=(width, width), branch=(2,), activations=(activation,)) for width in (2, 6)
    )
    weights = wide.init(np.random.default_rng(0), P, 2, width=2)
    own = {
        "shared": [
            {"matrix": layer["matrix"][:most, :2], "bias": layer["bias"][:2]}
            for layer, most in zip(weights["shared"], (P, 2), strict=True)
        ],
        "branches": [
            [first | {"matrix": first["matrix"][:2]}, *rest] for first, *rest in weights["branches"]
        ],
    }
    x = jnp.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(wide.apply(weights, x), narrow.apply(own, x), rtol=1e-6)


def test_a_network_of_width_zero_is_a_regression_with_one_count() -> None:
    """Its rate is linear in x and its count is the same for all rows."""
    network = Network(shared=(6,), branch=(2,), linear_path=True)
    model = Model(FAMILY, network)
    data = rows(1)
    found = learn(data, network, settings=settings(1)._replace(width=jnp.array([0])))
    weights = jax.tree.map(lambda leaf: leaf[0], found.weights)
    pseudo = model.pseudo_observations(weights, model.ground(), data.x[0])
    np.testing.assert_allclose(pseudo.n, pseudo.n[0], rtol=1e-5)
    logit = np.log(pseudo.successes / pseudo.failures)
    design = np.column_stack([np.ones(M), data.x[0]])
    np.testing.assert_allclose(design @ np.linalg.lstsq(design, logit)[0], logit, atol=1e-4)


def test_dropped_units_are_a_share_and_differ_by_row_and_step() -> None:
    network = Network(shared=(400,), branch=(), activations=("relu",))
    weights = network.init(np.random.default_rng(0), P, 2)
    shared = weights["shared"][0]
    weights["shared"] = [{"matrix": 0 * shared["matrix"], "bias": jnp.ones(400)}]
    weights["branches"] = [
        {"matrix": jnp.eye(400), "bias": jnp.zeros(400)} for _ in weights["branches"]
    ]
    weights["branches"] = [[layer] for layer in weights["branches"]]
    x = jnp.zeros(P)
    outputs = [np.asarray(network.apply(weights, x, 0.3, jnp.uint32(n)))[:400] for n in range(50)]
    kept = np.stack(outputs) > 0
    assert abs(kept.mean() - 0.7) < 4 * np.sqrt(0.3 * 0.7 / kept.size)
    np.testing.assert_allclose(np.stack(outputs)[kept], 1 / 0.7, rtol=1e-5)
    between = np.corrcoef(kept[:2].astype(float))[0, 1]
    assert abs(between) < 4 / np.sqrt(400)
    np.testing.assert_array_equal(network.apply(weights, x)[:400], 1.0)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(ldf.DataError, match="column 'activations': 'sine' is not known"):
        Network(activations=("sine",))


# --- objectives ---------------------------------------------------------------------------------


def test_maximum_likelihood_and_model_selection_have_the_papers_derivatives() -> None:
    """Section 3.1: 1, and e^−d / (1 + e^−d)² in the difference d from the reference."""
    log_p = jnp.linspace(-9.0, 2.0, 23)
    reference = -3.0
    slope = jax.vmap(jax.grad(lambda v: maximum_likelihood(v, jnp.array(reference))))(log_p)
    np.testing.assert_array_equal(slope, 1.0)
    d = np.asarray(log_p) - reference
    slope = jax.vmap(jax.grad(lambda v: model_selection(v, jnp.array(reference))))(log_p)
    np.testing.assert_allclose(slope, np.exp(-d) / (1 + np.exp(-d)) ** 2, rtol=1e-4)
    value = model_selection(log_p, jnp.array(reference))
    by_definition = np.exp(log_p) / (np.exp(log_p) + np.exp(reference))
    np.testing.assert_allclose(value, by_definition, rtol=1e-5)


def test_the_gradient_is_the_product_of_three() -> None:
    """Section 3.1: ∇φ L = ∇φ T_x · ∇T log p · ∇log p ℓ."""
    mapping = Linear()
    weights = mapping.init(np.random.default_rng(3), P, 2)
    x, y = (
        jnp.array([[0.4, -0.2, 1.0]]),
        {"successes": jnp.array([3.0]), "trials": jnp.array([9.0])},
    )
    model, reference = Model(FAMILY, mapping), jnp.array([-2.0])

    def whole(w: Any) -> Any:
        return model_selection(model.log_predictive(w, model.ground(PRIOR), x, y), reference)[0]

    pseudo, pull = jax.vjp(lambda w: model.pseudo_observations(w, model.ground(), x), weights)
    log_p, by_statistic = jax.value_and_grad(lambda t: FAMILY.log_predictive(PRIOR + t, **y)[0])(
        pseudo
    )
    outer = jax.grad(lambda v: model_selection(v, reference[0]))(log_p)
    chained = pull(jax.tree.map(lambda g: g * outer, by_statistic))[0]
    for mine, theirs in zip(leaves(jax.grad(whole)(weights)), leaves(chained), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-7)


def test_tempering_runs_from_the_log_score_to_the_mass() -> None:
    log_p = jnp.array([-3.0, -0.1])
    np.testing.assert_array_equal(tempered(1.0)(log_p, log_p), log_p)
    np.testing.assert_allclose(tempered(0.999)(log_p, log_p), log_p, rtol=2e-3)
    np.testing.assert_allclose(tempered(1e-6)(log_p, log_p), np.exp(log_p) - 1, rtol=1e-3)


def test_balanced_weights_count_every_class_of_the_rate_alike() -> None:
    rate = np.array([0, 0, 0, 0, 0, 0, 0.2, 0.4, 0.9, np.nan])
    weights = balanced_weights(rate, quantiles=3)
    seen = np.isfinite(rate)
    assert weights[seen].mean() == pytest.approx(1)
    assert weights[~seen] == 1
    zero, rest = weights[rate == 0].sum(), weights[rate > 0].sum()
    assert zero == pytest.approx(rest)  # many zeros are one class, never split


# --- the trainer --------------------------------------------------------------------------------


def test_a_row_that_is_held_out_has_no_influence() -> None:
    data = rows(2)
    held = jnp.arange(M) < 100
    away = data._replace(
        training=jnp.where(held, 0.0, data.training), watched=jnp.where(held, 0.0, data.watched)
    )
    other = {**away.y, "successes": jnp.where(held, 0.0, away.y["successes"])}
    one, two = learn(away), learn(away._replace(y=other))
    for mine, theirs in zip(leaves(one.weights), leaves(two.weights), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(leaves(one.weights)[0], leaves(learn(data).weights)[0])


def test_stopped_and_started_again_it_ends_the_same_to_the_bit() -> None:
    """More fits than places, so that some wait and some have left when it is interrupted."""
    data, seen = rows(7), []
    whole = learn(data, watch=seen.append)
    assert len(seen) > 3
    kept: State = jax.tree.map(np.asarray, seen[2])  # as it would come back from a file
    again = learn(data, resume=jax.tree.map(jnp.asarray, kept))
    for mine, theirs in zip(leaves(whole), leaves(again), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_interrupted_it_ends_within_a_chunk() -> None:
    seen: list[State] = []

    def watch(state: State) -> None:
        seen.append(state)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(rows(7), watch=watch)
    assert len(seen) <= 4  # the other lane may be in the middle of one
    assert not seen[-1].stopped.all()


def test_the_same_seed_gives_the_same_weights_and_another_gives_others() -> None:
    data = rows(2)
    one, two, other = learn(data), learn(data), learn(data, seed=1)
    np.testing.assert_array_equal(leaves(one.weights)[0], leaves(two.weights)[0])
    assert not np.array_equal(leaves(one.weights)[0], leaves(other.weights)[0])


def test_the_best_weights_score_what_is_said_and_later_ones_no_better() -> None:
    data = rows(3)
    found = learn(data, Network())
    model = Model(FAMILY, Network())
    for f in range(3):
        weights = jax.tree.map(lambda leaf, f=f: leaf[f], found.weights)
        log_p = model.log_predictive(weights, model.ground(PRIOR), data.x[0], data.y)
        score = (data.watched[f] * log_p).sum() / data.watched[f].sum()
        assert found.score[f] == pytest.approx(float(score), rel=1e-5)
        last = jax.tree.map(lambda leaf, f=f: leaf[f], found.state.weights)
        later = model.log_predictive(last, model.ground(PRIOR), data.x[0], data.y)
        assert (data.watched[f] * later).sum() / data.watched[f].sum() <= found.score[f] + 1e-5


def test_patience_ends_a_fit_that_many_epochs_after_its_best() -> None:
    found = learn(rows(3), schedule=QUICK._replace(epochs=500, patience=7))
    stopped = np.asarray(found.state.epoch) < 500
    assert stopped.any()
    np.testing.assert_array_equal((found.epochs + 7)[stopped], found.state.epoch[stopped])
    assert found.steps == int(found.state.epoch.sum()) * 5  # 600 rows in batches of 128


def test_a_mapping_that_made_the_data_is_found_again() -> None:
    """The rate, and the two levels of the count, from 3,000 units with up to 60 trials."""
    *_, rate, count = truth(np.random.default_rng(0), 3000)
    data, mapping = rows(4, 3000), Network(shared=(16,), branch=(6,))
    found = learn(data, mapping, schedule=QUICK._replace(epochs=300))
    best = int(np.argmax(found.score))
    weights = jax.tree.map(lambda leaf: leaf[best], found.weights)
    model = Model(FAMILY, mapping)
    pseudo = model.pseudo_observations(weights, model.ground(), data.x[0])
    learned, worth = np.asarray(pseudo.t / pseudo.n), np.asarray(pseudo.n)
    assert np.corrcoef(learned, rate)[0, 1] > 0.98
    assert np.abs(learned - rate).mean() < 0.03
    assert np.median(worth[count == 30]) == pytest.approx(30, rel=0.35)
    assert np.median(worth[count == 4]) == pytest.approx(4, rel=0.35)


def test_a_penalty_shrinks_and_dropout_drops() -> None:
    data = rows(2)
    free = learn(data, Network())
    firm = learn(data, Network(), settings=settings(2, penalty=1.0))
    size = [sum((leaf**2).sum() for leaf in leaves(f.weights)) for f in (free, firm)]
    assert size[1] < 0.3 * size[0]
    dropped = learn(data, Network(), settings=settings(2, dropout=0.5))
    assert np.isfinite(dropped.score).all()
    assert not np.array_equal(leaves(dropped.weights)[0], leaves(free.weights)[0])


def test_a_fit_that_breaks_says_so_and_does_not_spoil_the_others() -> None:
    data = rows(3)
    rates = settings(3)._replace(learning_rate=jnp.array([0.01, jnp.nan, 0.01]))
    found = learn(data, settings=rates)
    assert found.failed.tolist() == [False, True, False]
    assert np.isfinite(found.score[[0, 2]]).all()
    assert "1 failed" in found.status()


def test_huge_counts_train_without_a_number_that_is_not_one() -> None:
    """Counts in the hundreds of thousands, in float32, where plain log-gammas give NaN."""
    rng = np.random.default_rng(0)
    data = rows(2)
    trials = jnp.asarray(rng.integers(100_000, 900_000, M), jnp.float32)
    successes = jnp.round(trials * jnp.asarray(rng.beta(40, 60, M), jnp.float32))
    found = learn(data._replace(y={"successes": successes, "trials": trials}), Network())
    assert not found.failed.any()
    assert (found.score > -20).all()
