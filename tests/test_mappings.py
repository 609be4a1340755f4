"""Splines, random waves, Gaussian processes, and mappings of one's own.

What each is by its textbook; that what is fixed stays; that all of them learn, are mixed, have
sources, and come back from a file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline, make_smoothing_spline

import ldf
from ldf import Component, DataError, Ensemble, Fusion, Linear, Member, Mixture, Network
from ldf.fit import Schedule
from ldf.mappings import Fourier, GaussianProcess, Own, Splines, count_weights, squared
from ldf.mappings.kernels import kernel
from ldf.mappings.process import NOWHERE, centres
from ldf.mappings.splines import b_splines
from ldf.model import Model
from ldf.solve import solve

SIGMA = 0.3
QUICKLY = Schedule(epochs=30, patience=10, batch=64, chunk=10, places=4)


def features(mapping: Any, weights: Any, x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        double = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), weights)
        each = jax.vmap(lambda row: mapping.features(double, row))
        return np.asarray(each(jnp.asarray(x, jnp.float64)))


def curves(mapping: Any, weights: Any, x: np.ndarray) -> np.ndarray:
    """The second output, the mean of a Gaussian, of each row."""
    with jax.enable_x64(True):
        double = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), weights)
        return np.asarray(jax.vmap(lambda row: mapping.apply(double, row))(jnp.asarray(x)))[:, 1]


def regressed(mapping: Any, x: np.ndarray, y: np.ndarray, penalty: float, start: Any = None) -> Any:
    """A mean of known variance: least squares, penalised."""
    model = Model(ldf.Gaussian(variance=SIGMA**2), mapping, certain=True)
    found = solve(model, model.ground(), x, {"mean": y}, penalty=penalty, start=start)
    assert found.converged
    return found.weights


# --- splines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("knots", [3, 4, 9])
def test_b_splines_are_those_of_scipy(knots: int) -> None:
    gap = 1 / (knots - 1)
    at = np.arange(-3, knots + 3) * gap
    u = np.linspace(0, 1, 101)[:-1]
    theirs = BSpline.design_matrix(u, at, 3, extrapolate=False).toarray()
    np.testing.assert_allclose(b_splines(u, knots), theirs, atol=1e-14)


def spline(knots: int = 7, smoothness: float = 0.5) -> tuple[Splines, Any]:
    """Of one column, with knots from 0 to 1."""
    mapping = Splines(knots, smoothness)
    weights = mapping.init(np.random.default_rng(0), 1, 2)
    return mapping, weights | {"fixed": {"first": np.zeros(1), "last": np.ones(1)}}


def test_squared_weights_are_the_curvature_of_a_spline() -> None:
    mapping, weights = spline()
    u = (np.arange(6000) + 0.5) / 6000
    bends = np.gradient(np.gradient(features(mapping, weights, u[:, None]), u, axis=0), u, axis=0)
    inside = slice(2, -2)
    gram = bends[inside].T @ bends[inside] / 6000
    np.testing.assert_allclose(mapping.smoothness * gram, np.eye(5), atol=2e-3)


def test_splines_have_nothing_straight_in_them_and_are_straight_outside() -> None:
    mapping, weights = spline()
    u = (np.arange(2000) + 0.5) / 2000
    inside = features(mapping, weights, u[:, None])
    assert np.abs(inside.mean(0)).max() < 1e-6
    assert np.abs((u - 0.5) @ inside / len(u)).max() < 1e-6
    step = 1e-4
    for edge in (0.0, 1.0):
        across = np.linspace(edge - step, edge + step, 5)[:, None]
        values = features(mapping, weights, across)
        assert np.abs(np.diff(values, 2, axis=0)).max() < 1e-8 * 50  # no corner, and no jump
    for outside in (np.linspace(-50, 0, 11), np.linspace(1, 50, 11)):
        values = features(mapping, weights, outside[:, None])
        assert np.abs(np.diff(values, 2, axis=0)).max() < 1e-10


def test_splines_are_the_smoothing_spline_of_scipy() -> None:
    """With a knot at every row, and slopes that are as good as free."""
    rng = np.random.default_rng(0)
    u = np.linspace(0, 1, 25)
    y = np.sin(5 * u) + SIGMA * rng.normal(size=25)
    lam, penalty = 1e-4, 1e-7
    smoothness = lam / (2 * SIGMA**2 * len(u) * penalty)
    mapping, start = spline(25, smoothness)
    found = regressed(mapping, u[:, None], y, penalty, start)
    theirs = make_smoothing_spline(u, y, lam=lam)
    at = np.linspace(-0.2, 1.2, 57)
    inside = (at >= 0) & (at <= 1)
    ours = curves(mapping, found, at[:, None])
    np.testing.assert_allclose(ours[inside], theirs(at[inside]), atol=2e-6)
    end = theirs(1.0) + theirs(1.0, 1) * (at[at > 1] - 1)
    np.testing.assert_allclose(ours[at > 1], end, atol=2e-6)


@pytest.mark.parametrize("mapping", [Splines(6), Fourier(20), GaussianProcess(12)])
def test_a_basis_is_solved_as_a_ridge_regression(mapping: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + SIGMA * rng.normal(size=80)
    penalty = 1e-3
    found = regressed(mapping, x, y, penalty)
    of = np.concatenate([np.ones((80, 1)), features(mapping, found, x), x], 1)
    held = np.diag(np.r_[0.0, np.full(of.shape[1] - 1, 2 * penalty * SIGMA**2 * len(x))])
    exact = np.linalg.solve(of.T @ of + held, of.T @ y)
    ours = np.concatenate([found["bias"][None], found["matrix"], found["slope"]])[:, 1]
    np.testing.assert_allclose(ours, exact, atol=1e-8)


def test_knots_are_where_the_training_rows_are() -> None:
    rng = np.random.default_rng(0)
    rare = (np.arange(1000) == 7).astype(float)
    x = np.stack([rng.normal(100, 5, 1000), rare, np.full(1000, 3.0)], 1)
    mapping = Splines()
    fixed = mapping.prepared(mapping.init(rng, 3, 2), x, rng)["fixed"]
    assert fixed["first"] == pytest.approx([90.2, 0, 3], abs=1)
    assert fixed["last"] == pytest.approx([109.8, 1, 4], abs=1)
    assert (fixed["last"] > fixed["first"]).all()


# --- random waves -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_waves_approach_their_kernel_as_the_root_of_their_number(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    square = ((x[:, None] - x) ** 2).sum(-1) / (3 * 0.8**2)
    wanted = 2.0**2 * kernel(name, square)

    def error(waves: int) -> float:
        mapping = Fourier(waves, lengthscale=0.8, amplitude=2.0, kernel=name)
        found = []
        for _ in range(20):
            of = features(mapping, mapping.init(rng, 3, 2), x)
            found.append(((of @ of.T - wanted) ** 2).mean())
        return float(np.sqrt(np.mean(found)))

    few, many = error(50), error(800)
    assert few < 0.5
    assert few / many == pytest.approx(4, rel=0.15)


def test_waves_are_drawn_by_the_seed() -> None:
    mapping = Fourier(5)
    one, same, other = (
        mapping.init(np.random.default_rng(s), 3, 2)["fixed"]["frequency"] for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.isclose(one, other).any()


# --- Gaussian processes -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", "matern"])
def test_with_a_point_at_every_row_it_is_the_exact_gaussian_process(name: str) -> None:
    """The mean of the exact posterior, by its textbook: beside a linear mean and a free level."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(40, 2))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 1 + SIGMA * rng.normal(size=40)
    penalty, length = 2e-3, 0.7
    mapping = GaussianProcess(50, length, amplitude=1.5, kernel=name)
    found = regressed(mapping, x, y, penalty)
    assert (found["fixed"]["points"] == NOWHERE).all(1).sum() == 10

    variance = 1 / (2 * penalty * len(x))

    def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        square = ((a[:, None] - b) ** 2).sum(-1) / (2 * length**2)
        return variance * (1.5**2 * kernel(name, square) + a @ b.T)

    noisy = covariance(x, x) + SIGMA**2 * np.eye(len(x))
    one = np.ones(len(x))
    level = one @ np.linalg.solve(noisy, y) / (one @ np.linalg.solve(noisy, one))
    new = rng.uniform(-2, 2, size=(30, 2))
    exact = level + covariance(new, x) @ np.linalg.solve(noisy, y - level)
    np.testing.assert_allclose(curves(mapping, found, new), exact, atol=1e-5)


def test_inducing_points_are_the_centres_of_clusters() -> None:
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    x = np.concatenate([m + 0.1 * rng.normal(size=(200, 2)) for m in middles])
    found = centres(x, 30, rng)
    nearest = np.linalg.norm(found[:, None] - middles, axis=-1).min(1)
    assert nearest.max() < 0.5
    few = centres(np.repeat(middles, 50, 0), 5, rng)
    assert sorted(map(tuple, few[:3])) == sorted(map(tuple, middles))
    assert (few[3:] == NOWHERE).all()


def test_what_is_fixed_is_neither_counted_nor_penalised() -> None:
    weights = GaussianProcess(4).init(np.random.default_rng(0), 3, 2)
    weights["fixed"]["points"] += 7
    assert float(squared(weights)) == 0
    assert count_weights(weights) == 4 * 2 + 3 * 2 + 2
    assert float(squared([weights, {"matrix": np.full((2, 2), 3.0)}])) == 36


# --- all of them, from frame to answer ----------------------------------------------------------


def villages(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """A rate that is a wave of one column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    asked = rng.integers(5, 40, rows)
    rate = 1 / (1 + np.exp(-2 * np.sin(2 * x[:, 0]) - 0.5 * x[:, 1]))
    lit = rng.binomial(asked, rate)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "asked": asked, "lit": lit})


VILLAGES = villages()
PRIMARY = {"successes": "lit", "trials": "asked"}


def perceptron(inputs: int, outputs: int, key: Any) -> Any:
    return eqx.nn.MLP(inputs, outputs, 8, 1, activation=jnp.tanh, key=key)


def fusion(**given: Any) -> Fusion:
    return Fusion("binomial", PRIMARY, ["a", "b"], **given)


MAPPINGS = {
    "splines": Splines(),
    "waves": Fourier(30),
    "process": GaussianProcess(20),
    "own": Own(perceptron),
}


@cache
def everything() -> Fusion:
    """One ensemble of all, three of which learn by gradients in programs of their own."""
    members = (Member(Linear()), *map(Member, MAPPINGS.values()), Member(Network((4,), ())))
    ensemble = Ensemble(members, parts=3, schedule=QUICKLY)
    return fusion(ensemble=ensemble).fit(VILLAGES)


def test_smooth_mappings_find_what_a_regression_cannot() -> None:
    fitted = everything()
    score = dict(zip(["linear", *MAPPINGS, "network"], fitted.learned_.trained, strict=True))
    linear = score["linear"].score
    for name in ("splines", "waves", "process"):
        assert score[name].score > linear + 0.3
    assert fitted.learned_.share[0] < 0.1
    new = villages(200, 1)
    assert fitted.score(new) > linear + 0.3


def test_all_come_back_from_a_file_to_the_last_bit(tmp_path: Path) -> None:
    fitted = everything()
    fitted.save(tmp_path / "model")
    again = ldf.load(tmp_path / "model", mapping=perceptron)
    pd.testing.assert_frame_equal(
        again.posterior(VILLAGES).to_frame(), fitted.posterior(VILLAGES).to_frame(),
        check_exact=True,
    )  # fmt: skip
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("mapping", [Splines(by="rate"), Fourier(by="counts")])
def test_every_formulation_is_solved(mapping: Any) -> None:
    fitted = fusion(ensemble=Ensemble((Member(mapping),), parts=2)).fit(VILLAGES)
    assert "did not converge" not in fitted.status_
    assert fitted.learned_.trained[0].score > everything().learned_.trained[0].score + 0.3


def test_sources_have_knots_of_their_own() -> None:
    frame = VILLAGES.assign(a=VILLAGES["a"].where(np.arange(300) % 5 > 0))
    sources = {"one": ["a"], "two": ["b"]}
    ensemble = Ensemble((Member(Splines(5)),), parts=2)
    fitted = Fusion("binomial", PRIMARY, sources, ensemble=ensemble).fit(frame)
    assert fitted.learned_.trained[0].score > everything().learned_.trained[0].score + 0.2
    first, second = fitted.learned_.trained[0].weights
    z = fitted.learned_.trained[0].preprocess.apply(fitted._read(frame)[0].x)
    for own, column, there in ((first, 0, frame["a"].notna()), (second, 1, frame["b"].notna())):
        wanted = np.quantile(z[there, column], 0.975)
        for mapping in (own["beside"], own["alone"]):
            assert mapping["fixed"]["last"][0, 0] == pytest.approx(wanted, rel=1e-6)


def test_splines_are_components_of_a_mixture() -> None:
    mixture = Mixture((Component(Splines(6)), Component(Linear())))
    ensemble = Ensemble((Member(Splines(6), penalty=5e-3),), parts=1)
    fitted = fusion(structure=mixture, ensemble=ensemble).fit(VILLAGES)
    assert fitted.score(villages(200, 1)) > everything().learned_.trained[0].score + 0.2


# --- how far they are held back -----------------------------------------------------------------


def crowded(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Many trials, few rows, and eight columns of which one says something."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 8))
    rate = 1 / (1 + np.exp(-0.5 * x[:, 0] - 0.5 * rng.normal(size=rows)))
    frame = pd.DataFrame(x, columns=list("abcdefgh"))
    return frame.assign(asked=300, lit=rng.binomial(300, rate))


def held_back(penalty: Any = None, mapping: Any = None, parts: int = 3) -> Any:
    """One member as it is: with a sharpness of one."""
    member = Member(mapping or Splines(5), penalty=penalty)
    ensemble = Ensemble((member,), parts=parts, combine="equal")
    return Fusion("binomial", PRIMARY, list("abcdefgh"), ensemble=ensemble).fit(crowded())


def test_the_penalty_is_the_one_that_suits_unseen_rows() -> None:
    alone = {penalty: held_back(penalty) for penalty in (0.5, 0.05, 0.005)}
    score = {penalty: own.learned_.trained[0].score for penalty, own in alone.items()}
    best = max(score, key=lambda penalty: score[penalty])
    assert best == 0.5
    assert score[0.5] > score[0.005] + 1
    found = held_back((0.005, 0.5, 0.05))  # in whatever order
    assert found.status_ == "1 regression, solved (penalty 0.5 by unseen rows)."
    assert found.learned_.trained[0].score == pytest.approx(score[0.5], abs=1e-6)
    ours, theirs = (own.learned_.trained[0] for own in (found, alone[0.5]))
    for name in ("bias", "matrix", "slope"):
        np.testing.assert_allclose(ours.weights[name], theirs.weights[name], atol=1e-5)
        np.testing.assert_allclose(ours.held[name], theirs.held[name], atol=1e-5)


@pytest.mark.parametrize("mapping", [Splines(5), Fourier(30), GaussianProcess(20)])
def test_left_alone_they_do_not_learn_noise(mapping: Any) -> None:
    new = crowded(300, 1)
    regression = held_back(mapping=Linear()).score(new)
    for parts in (3, 1):  # of one part, a tenth of the rows decides
        assert held_back(mapping=mapping, parts=parts).score(new) > regression - 0.1
    assert held_back(0.005, mapping).score(new) < regression - 0.2


def test_a_penalty_that_is_given_is_the_penalty() -> None:
    fitted = held_back(0.02)
    assert fitted.status_ == "1 regression, solved."
    own = fitted.learned_.trained[0]
    frame = crowded()
    data = fitted._read(frame)[0]
    z = own.preprocess.apply(data.x)
    found = solve(own.model, own.ground, z, data.y, penalty=0.02)
    np.testing.assert_allclose(own.weights["matrix"][0], found.weights["matrix"], atol=1e-6)


# --- mappings of one's own ----------------------------------------------------------------------


def test_a_module_is_the_network_that_it_copies() -> None:
    network = Network(shared=(8,), branch=(), by="counts")
    rng = np.random.default_rng(0)
    weights = network.init(rng, 3, 2)
    own = Own(perceptron, by="counts")
    learned = own.init(rng, 3, 2)
    first, last = weights["shared"][0], weights["branches"][0][0]
    learned["learned"] = {
        ".layers[0].weight": first["matrix"].T, ".layers[0].bias": first["bias"] + 0.1,
        ".layers[1].weight": last["matrix"].T, ".layers[1].bias": last["bias"] - 0.2,
    }  # fmt: skip
    first["bias"], last["bias"] = first["bias"] + 0.1, last["bias"] - 0.2
    with jax.enable_x64(True):
        for x in rng.normal(size=(5, 3)):
            ours, theirs = own.apply(learned, jnp.asarray(x)), network.apply(weights, x)
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_fits_of_a_constructor_begin_at_draws_of_their_own_and_of_a_module_at_it() -> None:
    module = perceptron(2, 2, jax.random.key(5))
    for own, same in ((Own(perceptron), False), (Own(module), True)):
        one, two = (own.init(np.random.default_rng(s), 2, 2)["learned"] for s in (0, 1))
        assert np.array_equal(one[".layers[0].weight"], two[".layers[0].weight"]) == same
    assert Own(module) == Own(module)
    assert Own(module) != Own(perceptron(2, 2, jax.random.key(5)))


def test_a_function_and_its_weights_are_a_mapping() -> None:
    def make(inputs: int, outputs: int, key: Any) -> Any:
        return {"slope": np.zeros((inputs, outputs)), "bias": [np.zeros(outputs)]}

    def function(weights: Any, x: Any) -> Any:
        return x @ weights["slope"] + weights["bias"][0]

    own, linear = (
        fusion(ensemble=Ensemble((Member(mapping),), parts=3)).fit(VILLAGES).learned_.trained[0]
        for mapping in (Own(make, function), Linear())
    )
    assert own.score == pytest.approx(linear.score, abs=0.05)
    assert set(own.weights["learned"]) == {"[slope]", "[bias][0]"}


def told(call: Any) -> str:
    with pytest.raises(DataError) as caught:
        call()
    return str(caught.value)


def test_a_file_is_given_its_mapping_again(tmp_path: Path) -> None:
    path = tmp_path / "model"
    ensemble = Ensemble((Member(perceptron),), parts=1, schedule=QUICKLY)  # pyright: ignore
    fusion(ensemble=ensemble).fit(VILLAGES).save(path)
    assert told(lambda: ldf.load(path)) == (
        f"file '{path}' holds the weights of a mapping of your own, and no file holds a mapping "
        "itself; give it again: ldf.load(path, mapping=…)."
    )
    wide = Own(lambda i, o, key: eqx.nn.MLP(i, o, 9, 1, key=key))
    assert told(lambda: ldf.load(path, mapping=wide)) == (
        f"file '{path}' does not fit the mapping that is given ('learned.trained.0.weights' is "
        "something else); give the one that it was fitted with."
    )
    other = Own(perceptron, by="counts")
    assert "does not fit the mapping that is given" in told(lambda: ldf.load(path, mapping=other))
    twice = (perceptron, wide)
    assert "holds weights of no such mapping" in told(lambda: ldf.load(path, mapping=twice))
    again = ldf.load(path, mapping=perceptron)
    assert again.get_params()["ensemble"].members[0].mapping == Own(perceptron)


BAD: list[tuple[str, Any, str]] = [
    (
        "penalties",
        lambda: Member(Network(), penalty=(0.1, 0.01)),
        "column 'penalty': (0.1, 0.01) is not one number, as Network needs; give one",
    ),
    (
        "no penalty",
        lambda: Member(Splines(), penalty=()),
        "column 'penalty': () is not one number, as Splines needs; give one",
    ),
    ("knots", lambda: Splines(2), "column 'knots': 2 bend nothing; give three or more."),
    (
        "smoothness",
        lambda: Splines(smoothness=0),
        "column 'smoothness': 0 is zero; give a number above zero.",
    ),
    ("waves", lambda: Fourier(0), "column 'waves': 0 is less than one; give more."),
    ("kernel", lambda: Fourier(kernel="flat"), "column 'kernel': 'flat' is not known"),
    ("points", lambda: GaussianProcess(0), "column 'inducing': 0 is less than one; give more."),
    (
        "length",
        lambda: GaussianProcess(lengthscale=-1),
        "column 'lengthscale': -1 is negative; give",
    ),
    ("no call", lambda: Own(3), "column 'make': 3 cannot be called; give a constructor"),  # pyright: ignore
    (
        "a plain function",
        lambda: Own(lambda x: x).init(np.random.default_rng(0), 3, 2),
        "column 'mapping' was not made",
    ),
    (
        "another number of outputs",
        lambda: Own(lambda i, o, key: eqx.nn.Linear(i, 5, key=key)).init(
            np.random.default_rng(0), 3, 2
        ),
        "column 'mapping' gives numbers of shape (5,) for a row of 3; let it give 2: that is what "
        "the family is made of by 'log'.",
    ),
    (
        "another number of columns",
        lambda: Own(eqx.nn.Linear(7, 2, key=jax.random.key(0))).init(
            np.random.default_rng(0), 3, 2
        ),
        "column 'mapping' cannot take a row of 3 numbers, which columns are once encoded; let it "
        "take as many and give 2",
    ),
]


@pytest.mark.parametrize(("what", "call", "sentence"), BAD, ids=[b[0] for b in BAD])
def test_bad_input_is_told_in_a_sentence(what: str, call: Any, sentence: str) -> None:
    assert told(call).startswith(sentence)
