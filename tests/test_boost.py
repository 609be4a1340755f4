"""Trees as a conjugate mapping: what they say, and that they are grown by exact steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xgboost

import ldf
from ldf.boost import FLAT, STEEP, _arrays, _slopes, boost
from ldf.ensemble import Ensemble, Member
from ldf.ground import ground_of
from ldf.learn import learn
from ldf.mappings import Linear, Network, Trees, together
from ldf.mixed import Mixture
from ldf.model import Ground, Model
from ldf.objective import maximum_likelihood, model_selection
from ldf.spec import Spec
from ldf.table import Table

M = 600
BINOMIAL = Model(ldf.Binomial(), Trees(depth=2))


def steps(seed: int = 0, rows: int = M) -> Table:
    """A rate that steps, and a number of pseudo-trials that steps elsewhere."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(size=(rows, 2)), rng.integers(0, 3, (rows, 1))], 1)
    rate, count = np.where(x[:, 0] > 0.3, 0.7, 0.2), np.where(x[:, 2] == 1, 3.0, 50.0)
    theta = rng.beta(count * rate, count * (1 - rate))
    y = {"successes": rng.binomial(40, theta).astype(float), "trials": np.full(rows, 40.0)}
    return Table(x, y, np.ones(rows, bool), np.ones(rows))


TABLE = steps()
LEARNED_FROM = np.where(np.arange(M) < 400, 1.0, 0.0)
WATCHED = np.where((np.arange(M) >= 400) & (np.arange(M) < 500), 1.0, 0.0)
GROUND = ground_of(BINOMIAL, "none", TABLE, LEARNED_FROM > 0)


def grown(table: Table = TABLE, model: Model = BINOMIAL, **more: Any) -> Any:
    rows = {"training": LEARNED_FROM, "watched": WATCHED, "learning_rate": 0.2} | more
    return boost(model, GROUND, table.x, table.y, **rows)


def said(model: Model, weights: Any, ground: Ground, x: np.ndarray) -> Any:
    with jax.enable_x64(True):
        found = model.pseudo_observations(weights, ground, jnp.asarray(x))
        return jax.tree.map(np.asarray, found)


# --- what trees say -----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 4])
def test_the_arrays_say_what_the_trees_say(depth: int) -> None:
    rng = np.random.default_rng(depth)
    x = np.concatenate([rng.integers(-3, 4, (300, 2)), rng.normal(size=(300, 1))], 1)
    target = np.stack([x[:, 0] ** 2 + x[:, 2], np.sign(x[:, 1])], 1)
    data = xgboost.DMatrix(x, target)
    settings = {"max_depth": depth, "base_score": 0.0, "min_child_weight": 20}  # some end early
    trees = xgboost.train(settings, data, 15)
    model = Model(ldf.Binomial(), Trees(depth))
    weights = _arrays(trees, model, 10)
    found = np.asarray(jax.jit(jax.vmap(lambda row: model.mapping.apply(weights, row)))(x))
    # Whole numbers lie on thresholds; all must go the same way.
    expected = trees.predict(data, iteration_range=(0, 10), output_margin=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_forests_of_different_size_are_one_pytree_and_say_the_same() -> None:
    short, long = (grown(model=Model(ldf.Binomial(), Trees(2, most=n))) for n in (3, 9))
    both = together([short.weights, long.weights])
    for number, one in enumerate((short, long)):
        mine = jax.tree.map(lambda leaf, n=number: leaf[n], both)
        for own, padded in zip(
            jax.tree.leaves(said(BINOMIAL, one.weights, GROUND, TABLE.x)),
            jax.tree.leaves(said(BINOMIAL, mine, GROUND, TABLE.x)),
            strict=True,
        ):
            assert np.array_equal(own, padded)


def test_no_tree_at_all_says_what_holds_for_all_units() -> None:
    nothing = BINOMIAL.init(np.random.default_rng(0), 3)
    pseudo = said(BINOMIAL, nothing, GROUND, TABLE.x[:2])
    centre = ldf.Binomial().from_unconstrained(GROUND.centre, "log")
    assert pseudo.successes == pytest.approx(float(centre.successes), rel=1e-12)


# --- how they grow ------------------------------------------------------------------------------

ROWS: dict[str, tuple[Any, dict[str, Any], int]] = {
    "binomial": (ldf.Binomial(), {"successes": [3.0, 0.0], "trials": [9.0, 4.0]}, 2),
    "poisson": (ldf.Poisson(), {"count": [2.0, 0.0], "exposure": [3.0, 1.5]}, 2),
    "classes": (ldf.Multinomial(classes=3), {"counts": [[2.0, 0, 5], [1, 1, 0]]}, 4),
    "nested": (ldf.NestedMultinomial(classes=4), {"counts": [[2.0, 0, 5, 1], [1, 1, 0, 4]]}, 6),
    "gaussian": (ldf.Gaussian(variance=2.0), {"mean": [0.3, -1.0], "n": [1.0, 4.0]}, 2),
}


@pytest.mark.parametrize(
    ("name", "objective"),
    [*((name, maximum_likelihood) for name in ROWS), ("nested", model_selection)],
)
def test_slopes_and_curvatures_are_those_of_the_score(name: str, objective: Any) -> None:
    family, y, outputs = ROWS[name]
    y = {word: np.array(values) for word, values in y.items()}
    model = Model(family, Trees())
    ground = model.ground()._replace(centre=np.full(outputs, 0.3), scale=np.full(outputs, 0.7))
    ground = ground._replace(prior=family.from_unconstrained(np.zeros(outputs), "log"))
    reference, at = np.array([-1.0, -2.0]), np.random.default_rng(0).normal(size=(2, outputs))

    def worth(at: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            pseudo = model.from_outputs(jnp.asarray(at), ground)
            log_p = model.log_predictive_given(pseudo, ground, y)
            return np.asarray(objective(log_p, jnp.asarray(reference)))

    log_p, slope, curvature = _slopes(model, objective, ground, y, reference)(at)
    with jax.enable_x64(True):
        np.testing.assert_allclose(objective(log_p, reference), worth(at), rtol=1e-12)
    for output in range(outputs):
        step = 1e-4 * (np.arange(outputs) == output)
        above, below = worth(at + step), worth(at - step)
        np.testing.assert_allclose(slope[:, output], (above - below) / 2e-4, rtol=1e-5, atol=1e-8)
        bend = (above + below - 2 * worth(at)) / 1e-8
        np.testing.assert_allclose(curvature[:, output], bend, rtol=1e-4, atol=1e-6)


def test_a_leaf_is_the_newton_step_of_its_rows() -> None:
    x = (np.arange(M) % 2)[:, None].astype(float)  # one question to ask
    model = Model(ldf.Binomial(), Trees(depth=1, most=1))
    penalty, weight = 0.01, LEARNED_FROM * np.random.default_rng(0).uniform(0.5, 2, M)
    found = boost(model, GROUND, x, TABLE.y, weight, weight, learning_rate=0.3, penalty=penalty)
    rows = weight > 0
    y = {name: values[rows] for name, values in TABLE.y.items()}
    outputs = np.zeros((rows.sum(), 2))
    _, slope, curvature = _slopes(model, maximum_likelihood, GROUND, y, np.zeros(400))(outputs)
    own = (weight[rows] / weight[rows].mean())[:, None]
    bend = np.maximum(-curvature, STEEP * np.abs(slope) + FLAT)
    for side in (0, 1):
        mine = x[rows, 0] == side
        up, curved = (own * slope)[mine].sum(0), (own * bend)[mine].sum(0)
        leaf = 0.3 * up / (curved + 2 * penalty * rows.sum())
        np.testing.assert_allclose(found.weights["leaf"][0, :, side], leaf, rtol=1e-4)


def test_steps_in_rate_and_count_come_back() -> None:
    many = steps(rows=6000)
    watched = np.where(np.arange(6000) < 1500, 1.0, 0.0)
    rows = {"training": 1 - watched, "watched": watched}
    pseudo = said(BINOMIAL, grown(many, **rows, penalty=1e-3).weights, GROUND, many.x)
    trials = pseudo.successes + pseudo.failures
    rate = pseudo.successes / trials
    high, noisy = many.x[:, 0] > 0.3, many.x[:, 2] == 1
    assert rate[high].mean() == pytest.approx(0.7, abs=0.01)
    assert rate[~high].mean() == pytest.approx(0.2, abs=0.01)
    assert np.median(trials[noisy]) == pytest.approx(3, rel=0.1)
    assert np.median(trials[~noisy]) == pytest.approx(50, rel=0.2)


def test_where_steps_are_trees_explain_more_than_a_regression() -> None:
    members = {"trees": Member(Trees(depth=2), learning_rate=0.2), "line": Member(Linear())}
    new = steps(seed=1)
    score = {}
    for name, member in members.items():
        spec = Spec(ldf.Binomial(), Ensemble((member,), parts=3))
        (learned,) = learn(spec, TABLE, 0)
        score[name] = learned.log_score(learned.said(new.x), new.y).mean()
    assert score["trees"] > score["line"] + 0.1


def test_rows_that_do_not_count_change_nothing_and_watched_ones_only_when_to_stop() -> None:
    def other(rows: np.ndarray) -> Table:
        successes = np.where(rows, 40 - TABLE.y["successes"], TABLE.y["successes"])
        return TABLE._replace(y=TABLE.y | {"successes": successes})

    usual = grown().weights["leaf"]
    unseen = grown(other(np.arange(M) >= 500)).weights["leaf"]
    assert np.array_equal(usual, unseen)
    watched = grown(other(WATCHED > 0)).weights["leaf"]
    assert len(watched) < len(usual)
    assert np.array_equal(watched, usual[: len(watched)])
    assert not np.array_equal(grown(other(np.arange(M) < 10)).weights["leaf"], usual)


def test_where_nothing_can_be_learned_no_tree_grows() -> None:
    rng = np.random.default_rng(0)
    y = {"successes": rng.permutation(TABLE.y["successes"]), "trials": TABLE.y["trials"]}
    found = grown(TABLE._replace(y=y), learning_rate=0.5, penalty=0.0)
    assert found.rounds <= 2


def test_the_seed_decides_which_columns_a_tree_does_without() -> None:
    one, same, other = (grown(dropout=0.5, seed=s).weights["column"] for s in (0, 0, 1))
    assert np.array_equal(one, same)
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_slopes_that_are_no_numbers_are_refused() -> None:
    broken = GROUND._replace(scale=GROUND.scale * np.nan)
    with pytest.raises(ldf.DataError, match="gave slopes that are no numbers; lower"):
        boost(BINOMIAL, broken, TABLE.x, TABLE.y, LEARNED_FROM, WATCHED)


# --- in an ensemble -----------------------------------------------------------------------------

SCHEDULE = ldf.Schedule(epochs=10, patience=10, batch=256, chunk=10, places=4)
EVERY = Ensemble(
    (
        Member(Trees(depth=2), "standard", learning_rate=0.2),
        Member(Network(shared=(4,), branch=())),
        Member(Linear()),
    ),
    parts=3,
    schedule=SCHEDULE,
)


def test_members_of_every_mapping_are_learned_together_and_keep_their_places() -> None:
    (learned,) = learn(Spec(ldf.Binomial(), EVERY), TABLE, 0)
    kinds = [type(one.model.mapping) for one in learned.trained]
    assert kinds == [Trees, Network, Linear]
    assert learned.share[0] > 0.5  # the world is one of steps
    for told in ("1 regression, solved.", "forests, best after", "fits, best after"):
        assert told in learned.status


def test_no_row_is_answered_for_by_trees_that_have_seen_it() -> None:
    spec = Spec(ldf.Binomial(), Ensemble(EVERY.members[:1], parts=3))
    (usual,) = learn(spec, TABLE, 0)
    row = int(np.flatnonzero(usual.part == 0)[0])
    successes = TABLE.y["successes"].copy()
    successes[row] = 40 - successes[row]
    (trained,) = usual.trained
    roles = usual.part[:, None] == np.arange(3)

    def without(table: Table) -> Any:
        rows = np.where(roles[:, 2], 1.0, 0.0), np.where(roles[:, 1], 1.0, 0.0)
        return boost(trained.model, trained.ground, trained.preprocess.apply(table.x), table.y,
                     *rows, learning_rate=0.2, penalty=1e-2)  # fmt: skip

    for table in (TABLE, TABLE._replace(y=TABLE.y | {"successes": successes})):
        again = without(table)
        mine = {name: leaf[0, : again.rounds] for name, leaf in trained.held.items()}
        assert all(np.array_equal(mine[name], again.weights[name]) for name in mine)
        assert not trained.held["leaf"][0, again.rounds :].any()


def test_mixtures_are_of_smooth_mappings() -> None:
    spec = Spec(ldf.Binomial(), Ensemble(EVERY.members[:1], parts=3), structure=Mixture(2))
    with pytest.raises(ldf.DataError, match="of trees is not for mixtures; give networks"):
        learn(spec, TABLE, 0)


@pytest.mark.parametrize(("name", "given"), [("depth", 0), ("depth", 40), ("most", 0)])
def test_trees_that_cannot_be_are_refused(name: str, given: int) -> None:
    with pytest.raises(ldf.DataError, match=f"column '{name}': {given} is"):
        Trees(**{name: given})
