"""One fit to the last digit."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import ldf
from ldf.curvature import numbered
from ldf.ground import ground_of
from ldf.mappings import Linear, Mapping, Splines, split
from ldf.model import Ground, Model
from ldf.objective import maximum_likelihood, model_selection
from ldf.solve import Solved, _bend, _double, _lost, solve
from ldf.table import Table

M, P = 200, 3
COMPOUND = Model(ldf.Binomial(), Linear(True))
PLAIN = Model(ldf.Binomial(), Linear(True), certain=True)
GAMMA_POISSON = Model(ldf.Poisson(), Linear(True, shape=True))
POISSON = Model(ldf.Poisson(), Linear(True), certain=True)


def rows() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(M, P))
    rate = 1 / (1 + np.exp(-(0.8 * x[:, 0] - 0.5)))
    trials = rng.integers(0, 40, M)
    successes = rng.binomial(trials, rng.beta(8 * rate, 8 * (1 - rate)))
    return x, {"successes": successes.astype(float), "trials": trials.astype(float)}


X, Y = rows()


def solved(model: Model = COMPOUND, x: Any = X, y: Any = Y, *more: Any) -> Solved:
    return solve(model, model.ground(), x, y, *more)


def flat(found: Solved) -> np.ndarray:
    return np.concatenate([found.weights["slope"].ravel(), found.weights["bias"]])


def test_a_weight_is_a_repetition() -> None:
    """150 rows of which 50 count twice, and 200 rows of which 50 come twice."""
    weight = np.ones(M)
    weight[:50], weight[150:] = 2, 0
    order = np.concatenate([np.arange(150), np.arange(50)])
    weighed = solved(COMPOUND, X, Y, weight)
    repeated = solved(COMPOUND, X[order], {name: v[order] for name, v in Y.items()})
    np.testing.assert_allclose(flat(weighed), flat(repeated), rtol=1e-5, atol=1e-7)
    assert weighed.score == pytest.approx(repeated.score, rel=1e-12)


def test_only_the_ratios_of_weights_matter() -> None:
    weight = np.random.default_rng(1).random(M)
    one, two = (solved(COMPOUND, X, Y, scale * weight, 0.01) for scale in (1, 1e-6))
    np.testing.assert_allclose(flat(one), flat(two), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("model", [COMPOUND, PLAIN])
def test_rows_without_weight_change_nothing_however_absurd(model: Model) -> None:
    weight = np.where(np.arange(M) < 150, 1.0, 0.0)
    out = weight == 0
    x = np.where(out[:, None], 1e6, X)
    y = {"successes": np.where(out, 1e9, Y["successes"]), "trials": np.where(out, 1e9, Y["trials"])}
    one, two = solved(model, X, Y, weight), solved(model, x, y, weight)
    np.testing.assert_allclose(flat(one), flat(two), rtol=1e-5, atol=1e-7)
    assert one.score == pytest.approx(two.score, rel=1e-12)


def test_rows_without_weight_may_be_impossible() -> None:
    """A count that no rate could give has a log-predictive of −∞, or none at all."""
    weight = np.where(np.arange(M) < 150, 1.0, 0.0)
    y = {"successes": np.where(weight == 0, 9.0, Y["successes"]),
         "trials": np.where(weight == 0, 3.0, Y["trials"])}  # fmt: skip
    one, two = solved(COMPOUND, X, Y, weight), solved(COMPOUND, X, y, weight)
    np.testing.assert_allclose(flat(one), flat(two), rtol=1e-5, atol=1e-7)


def test_the_penalised_score_is_flat_at_the_solution_and_falls_around_it() -> None:
    """By the definition, in NumPy, without the code that found it."""
    penalty, weight = 0.02, np.random.default_rng(2).random(M)
    found = solved(COMPOUND, X, Y, weight, penalty)
    assert found.converged

    def score(at: np.ndarray) -> float:
        slope, bias = at[:P], at[P:]
        count, rate = np.exp(bias[0]), 1 / (1 + np.exp(-(X @ slope + bias[1])))
        natural = COMPOUND.family.prior(count * rate, count * (1 - rate))
        log_p = COMPOUND.family.log_predictive(natural, **Y)
        return float((weight * log_p).sum() / weight.sum() - penalty * (slope**2).sum())

    at = flat(found)
    assert found.score == pytest.approx(score(at), rel=1e-12)
    for step in 1e-4 * np.eye(P + 2):
        below, above = score(at - step), score(at + step)
        assert abs(above - below) / 2e-4 < 1e-7
        assert max(above, below) < found.score


COUNTS = {"binomial": Y, "poisson": {"count": Y["successes"], "exposure": Y["trials"] + 1.0}}
COUNTS["classes"] = {"counts": np.random.default_rng(2).integers(0, 5, (M, 4)).astype(float)}
FAMILIES = {
    "binomial": ldf.Binomial(),
    "poisson": ldf.Poisson(),
    "classes": ldf.Multinomial(classes=4),
    "nested": ldf.NestedMultinomial(classes=4),
}


@pytest.mark.parametrize(
    ("family", "mapping"),
    [
        ("nested", Linear(by="counts")),
        *((name, Linear()) for name in ("poisson", "classes", "nested")),
        ("nested", Linear(constant_count=True)),
        ("binomial", Linear(constant_rate=True)),
        ("poisson", Linear(True, shape=True)),
        ("nested", Splines(knots=4)),
    ],
)
def test_second_derivatives_are_those_of_what_is_minimised(family: str, mapping: Mapping) -> None:
    model = Model(FAMILIES[family], mapping)
    y, rng = COUNTS.get(family, COUNTS["classes"]), np.random.default_rng(4)
    weights = model.prepared(model.init(rng, P), X, rng)
    with jax.enable_x64(True):
        weights = jax.tree.map(_double, weights)
        start = ravel_pytree(split(weights)[0])[0]
        at = start + 0.2 * rng.normal(size=start.shape)
        held = jax.tree.map(_double, (model.ground(), X, y, rng.integers(0, 3, M), 0.01))
        of = (*held, maximum_likelihood, 0.0)
        expected = jax.hessian(lambda flat: _lost(model, flat, weights, *of))(at)
        np.testing.assert_allclose(_bend(model, at, weights, *held), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("formulation", ["log", "rate", "counts"])
def test_outputs_of_nested_classes_that_do_not_meet_are_moved_together(formulation: str) -> None:
    meets = ldf.NestedMultinomial(classes=9).natural.meets(16, formulation)
    assert numbered(meets).max() + 1 == (2 if formulation == "counts" else 3)
    assert (numbered(np.ones((5, 5), bool)) == np.arange(5)).all()


def test_what_is_climbed_is_the_objective_that_is_given() -> None:
    """By the definition, in NumPy; where a row counts for nothing its reference may be any."""
    weight = np.where(np.arange(M) < 150, 1.0, 0.0)
    least = np.log1p(Y["trials"])  # a reference that knows nothing: all counts alike
    reference = np.where(weight > 0, -least, np.nan)
    more = {"objective": model_selection, "reference": reference}
    found = solve(COMPOUND, COMPOUND.ground(), X, Y, weight, 0.02, **more)
    assert found.converged

    def score(at: np.ndarray) -> float:
        slope, bias = at[:P], at[P:]
        count, rate = np.exp(bias[0]), 1 / (1 + np.exp(-(X @ slope + bias[1])))
        natural = COMPOUND.family.prior(count * rate, count * (1 - rate))
        ahead = (COMPOUND.family.log_predictive(natural, **Y) + least)[:150]
        return float((1 / (1 + np.exp(-ahead))).mean() - 0.02 * (slope**2).sum())

    at = flat(found)
    assert found.score == pytest.approx(score(at), rel=1e-12)
    assert found.score > score(flat(solved(COMPOUND, X, Y, weight, 0.02))) + 1e-4
    for step in 1e-3 * np.eye(P + 2):
        assert max(score(at - step), score(at + step)) < found.score


def test_a_penalty_shrinks_slopes_and_leaves_biases() -> None:
    firm = solved(COMPOUND, X, Y, None, 1e4)
    assert np.abs(firm.weights["slope"]).max() < 1e-4
    alone = solved(Model(ldf.Binomial(), Linear(True, True)))
    np.testing.assert_allclose(firm.weights["bias"], alone.weights["bias"], rtol=1e-3)


def test_the_start_does_not_matter() -> None:
    start = {"slope": np.full((P, 1), -2.0), "bias": np.array([4.0, 3.0])}
    one, two = solved(), solve(COMPOUND, COMPOUND.ground(), X, Y, start=start)
    np.testing.assert_allclose(flat(one), flat(two), rtol=1e-5, atol=1e-7)


# --- extremes -----------------------------------------------------------------------------------


def counts(scale: float, rate: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Of exposures about `scale`, with rates about `rate`; gamma-distributed with shape 2."""
    rng = np.random.default_rng(3)
    exposure = scale * np.exp(rng.normal(size=M))
    theta = rng.gamma(2, rate * np.exp(0.5 * X[:, 0]) / 2)
    return theta, {"count": rng.poisson(exposure * theta).astype(float), "exposure": exposure}


def grounded(model: Model, y: dict[str, np.ndarray]) -> Ground:
    table = Table(X, y, np.ones(M, bool), np.ones(M))
    return ground_of(model, "none", table, np.ones(M, bool))


@pytest.mark.parametrize("model", [GAMMA_POISSON, POISSON])
@pytest.mark.parametrize(("scale", "rate"), [(1e6, 1e-6), (1e6, 0.3), (1e-6, 1e6)])
def test_huge_exposures_and_tiny_rates_are_solved(model: Model, scale: float, rate: float) -> None:
    """With a ground and without one: the same fit, whatever the units."""
    _, y = counts(scale, rate)
    bare, ground = model.ground(), grounded(model, y)
    plain, shifted = solve(model, bare, X, y), solve(model, ground, X, y)
    assert plain.converged
    assert shifted.converged
    assert plain.score == pytest.approx(shifted.score, rel=1e-8)
    offset = ground.centre[1] + shifted.weights["bias"][1] - plain.weights["bias"][1]
    assert offset == pytest.approx(0, abs=1e-4)
    slopes = plain.weights["slope"], shifted.weights["slope"]
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-5)
    assert 0.3 < shifted.weights["slope"][0, 0] < 0.7  # 0.5 made the data


def test_the_unit_of_exposure_is_only_a_constant() -> None:
    _, y = counts(1e6, 1e-6)
    other = {"count": y["count"], "exposure": y["exposure"] * 1e-5}
    one, two = (solve(GAMMA_POISSON, grounded(GAMMA_POISSON, v), X, v) for v in (y, other))
    np.testing.assert_allclose(one.weights["slope"], two.weights["slope"], rtol=1e-5)
    assert one.score == pytest.approx(two.score, rel=1e-10)


def separable(trials: float) -> dict[str, np.ndarray]:
    return {"successes": np.where(X[:, 0] > 0, trials, 0.0), "trials": np.full(M, trials)}


@pytest.mark.parametrize("trials", [1.0, 20.0])
@pytest.mark.parametrize("model", [COMPOUND, PLAIN])
def test_data_without_a_maximum_end_in_numbers(model: Model, trials: float) -> None:
    """The best slope is infinite. What comes back is finite and tells successes from failures; it
    may be said not to have converged."""
    found = solved(model, X, separable(trials))
    assert np.isfinite(flat(found)).all()
    assert np.isfinite(found.score)
    linear = X @ found.weights["slope"][:, 0] + found.weights["bias"][1]
    assert ((linear > 0) == (X[:, 0] > 0)).mean() > 0.98


@pytest.mark.parametrize(
    ("model", "trials"),
    [(COMPOUND, 1.0), (COMPOUND, 20.0), (PLAIN, 1.0), (PLAIN, 20.0)],
)
def test_a_penalty_gives_them_one(model: Model, trials: float) -> None:
    found = solved(model, X, separable(trials), None, 1e-3)
    assert found.converged
    assert 1 < found.weights["slope"][0, 0] < 30


def test_no_success_at_all_ends_in_numbers() -> None:
    found = solved(PLAIN, X, {"successes": np.zeros(M), "trials": np.full(M, 20.0)})
    assert found.score == pytest.approx(0, abs=1e-6)
    assert np.isfinite(flat(found)).all()


def test_a_start_that_gives_no_number_is_not_called_converged() -> None:
    start = {"slope": np.full((P, 1), np.nan), "bias": np.zeros(2)}
    found = solve(COMPOUND, COMPOUND.ground(), X, Y, start=start)
    assert not found.converged
