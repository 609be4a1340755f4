"""The same member several times: the best of its restarts, or their mixture."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import ldf
from ldf.ensemble import Ensemble, Member
from ldf.fit import Schedule, State
from ldf.learn import learn
from ldf.learned import Learned
from ldf.mappings import Network, Trees
from ldf.spec import Spec
from ldf.table import Table

M, PARTS, RESTARTS, MANY = 200, 3, 4, 10
FAMILY = ldf.Binomial()
MEMBER = Member(Network(shared=(4,), branch=()), "standard")
QUICK = Schedule(epochs=20, patience=20, batch=64, chunk=10, places=6)


def table() -> Table:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(M, 3))
    rate = 1 / (1 + np.exp(0.5 - 0.8 * x[:, 0]))
    trials = rng.integers(1, 60, M)
    successes = rng.binomial(trials, rng.beta(9 * rate, 9 * (1 - rate)))
    y = {"successes": successes.astype(float), "trials": trials.astype(float)}
    return Table(x, y, np.ones(M, bool), np.ones(M))


TABLE = table()


def learned(ensemble: Ensemble, **more: Any) -> Learned:
    return learn(Spec(FAMILY, ensemble), TABLE, 0, **more)[0]


def test_of_several_restarts_the_one_answers_that_unseen_rows_are_likeliest_by() -> None:
    states: list[State] = []
    ensemble = Ensemble((MEMBER,), PARTS, RESTARTS, schedule=QUICK)
    found = learned(ensemble, watch=states.append)
    (t,), ends = found.trained, states[-1]
    z = t.preprocess.apply(TABLE.x)
    picked = []
    for p in range(PARTS):
        watched = found.part == (p + 1) % PARTS
        y = {name: values[watched] for name, values in TABLE.y.items()}
        scores = []
        for restart in range(RESTARTS):
            own = jax.tree.map(lambda leaf, at=p * RESTARTS + restart: leaf[at], ends.best)
            scores.append(np.mean(t.model.log_predictive(own, t.ground, z[watched], y)))
        np.testing.assert_allclose(ends.best_score[p * RESTARTS :][:RESTARTS], scores, rtol=1e-4)
        picked.append(int(np.argmax(scores)))
        best = jax.tree.map(lambda leaf, at=p * RESTARTS + picked[-1]: leaf[at], ends.best)
        for mine, wanted in zip(
            jax.tree.leaves(t.without(p).weights), jax.tree.leaves(best), strict=True
        ):
            np.testing.assert_array_equal(mine[0], wanted)
    assert any(picked)  # not merely the first


@pytest.mark.parametrize("combine", ["equal", "stack"])
def test_a_member_named_ten_times_is_the_mixture_of_ten_restarts(combine: str) -> None:
    found = learned(Ensemble((MEMBER,) * MANY, PARTS, combine=combine, schedule=QUICK))
    matrices = [np.asarray(t.weights["shared"][0]["matrix"]) for t in found.trained]
    assert len(matrices) == MANY
    assert len({matrix.tobytes() for matrix in matrices}) == MANY
    share = found.share
    assert share.sum() == pytest.approx(1)
    if combine == "equal":
        np.testing.assert_array_equal(share, 0.1)
    each = []
    for t in found.trained:
        alone = Learned((t,), np.ones(1), found.part, "", found.correction)
        each.append(alone.log_score(alone.said(TABLE.x, found.part), TABLE.y))
    assert np.ptp(each, 0).max() > 0.01  # they differ
    whole = found.log_score(found.said(TABLE.x, found.part), TABLE.y)
    np.testing.assert_allclose(whole, logsumexp(each, 0, b=share[:, None]), rtol=1e-9)


def test_trees_that_are_named_again_look_at_other_columns() -> None:
    """Where they look at some only."""
    trees = Member(Trees(depth=2), "standard", dropout=0.5)
    first, second = learned(Ensemble((trees, trees), PARTS, combine="equal")).trained
    one, two = (t.said(TABLE.x).pseudo[0].successes for t in (first, second))
    assert np.abs(np.log(one / two)).max() > 0.01


def test_one_preprocessing_for_all_leaves_members_that_were_named_apart() -> None:
    named = Ensemble((MEMBER,) * MANY)
    assert named.settled(M, "power").members == (Member(MEMBER.mapping, "power"),) * MANY
    primary = {"successes": "successes", "trials": "trials"}
    frame = dict(zip("abc", TABLE.x.T, strict=True)) | TABLE.y
    ensemble = Ensemble((MEMBER,) * 2, PARTS, schedule=QUICK)
    model = ldf.Fusion("binomial", primary, list("abc"), ensemble=ensemble, preprocess="power")
    assert len(model.fit(frame).learned_.trained) == 2
