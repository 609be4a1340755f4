"""From a table to what was learned: who has seen what, and how members answer together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, cast

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.stats as st
from scipy.special import expit, logsumexp

import ldf
from ldf import folds
from ldf.baselines import PENALTY, regression
from ldf.distributions import mixture
from ldf.ensemble import Ensemble, Member
from ldf.fit import Rows, Schedule
from ldf.ground import ground_of
from ldf.learn import learn, stacked
from ldf.learned import Correction, Learned, Trained
from ldf.mappings import Linear, Network
from ldf.model import Model
from ldf.objective import balanced_weights, model_selection
from ldf.spec import Spec
from ldf.statistic import NestedCounts, Trials
from ldf.table import Table, empirical_rate
from ldf.validate import gathered

room: Any = import_module("ldf.learn")

M, P, PARTS = 200, 3, 3  # as in test_baselines: what is compiled there serves here
FAMILY = ldf.Binomial()
NETWORK = Network(shared=(4,), branch=())
# None stops before the end: rows are shuffled by how many epochs all fits together have had, so
# that a fit's last bits, not what it learns from, may depend on when others stop.
QUICK = Schedule(epochs=30, patience=30, batch=64, chunk=10, places=6)
MEMBERS = (Member(NETWORK, width=2), Member(NETWORK, "standard", learning_rate=0.03))
SPEC = Spec(FAMILY, Ensemble(MEMBERS, parts=PARTS, schedule=QUICK))


def made(size: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """x, trials, successes, and the Be(a, b) that θ was drawn from."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, P))
    rate = 1 / (1 + np.exp(0.5 - 0.8 * x[:, 0]))
    count = np.exp(2.4 + np.tanh(1.5 * x[:, 1]))
    trials = rng.integers(1, 60, size)
    theta = rng.beta(count * rate, count * (1 - rate))
    return x, trials.astype(float), rng.binomial(trials, theta).astype(float), rate, count


def table() -> Table:
    """Of 200 rows 10 have no primary data and 10 do not count."""
    x, trials, successes, *_ = made(M)
    seen, weight = np.ones(M, bool), np.random.default_rng(1).uniform(0.5, 1.5, M)
    seen[180:190], weight[190:] = False, 0.0
    return Table(x, {"successes": successes, "trials": trials}, seen, weight)


TABLE = table()
COUNTED = np.arange(M) < 180
# Two training sets that share some rows; rows 170 to 179 are in neither.
TRAINING = np.stack([np.arange(M) < 130, (np.arange(M) >= 40) & (np.arange(M) < 170)])
TRAINING[:, 180:] = True  # which changes nothing: they have no primary data, or no weight
ALL = np.ones(M, bool)


def changed(rows: Any, of: Table = TABLE, x: bool = False) -> Table:
    """Other primary data in some rows: as many failures as there were successes; and other x."""
    rows = np.isin(np.arange(M), rows)
    trials, successes = of.y["trials"], of.y["successes"]
    y = {"successes": np.where(rows, trials - successes, successes), "trials": trials}
    features = np.where(rows[:, None], 50.0, of.x) if x else of.x
    return of._replace(x=features, y=y)


def run(of: Table = TABLE, spec: Spec = SPEC) -> list[Learned]:
    """All with the same shapes, so that one program serves all tests."""
    return learn(spec, of, seed=0, training=TRAINING)


@cache
def usual() -> tuple[Learned, ...]:
    return tuple(run())


def same(one: Any, two: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)


def alike(one: Learned, two: Learned) -> bool:
    """To the bit, in all that was learned."""
    mine, theirs = (
        [(t.preprocess[1:], t.ground, t.weights, t.held, t.score) for t in fit.trained]
        for fit in (one, two)
    )
    parts = np.array_equal(one.part, two.part) and np.array_equal(one.share, two.share)
    return parts and same(mine, theirs)


class Stop(Exception):
    """Before anything is trained."""


def handed_over(monkeypatch: pytest.MonkeyPatch, spec: Spec, *more: Any) -> Rows:
    """The rows as the trainer gets them."""
    found = []

    def fit(model: Any, rows: Rows, *_: Any) -> None:
        found.append(jax.tree.map(np.asarray, rows))
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr("ldf.train.networks.fit", fit)
        with pytest.raises(Stop):
            learn(spec, TABLE, 0, *more)
    return found[0]


# --- who has seen what --------------------------------------------------------------------------


def test_the_fit_that_answers_for_a_row_neither_learned_from_it_nor_watched_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = handed_over(monkeypatch, SPEC, TRAINING)
    used = (usual()[0].part >= 0) | (usual()[1].part >= 0)
    fits = iter(range(len(rows.training)))
    for one in usual():
        part = one.part[used]
        for _ in MEMBERS:
            for p in range(PARTS):
                f = next(fits)
                counts = rows.training[f] > 0, rows.watched[f] > 0
                assert not (counts[0] | counts[1])[part == p].any()
                np.testing.assert_array_equal(counts[1], part == (p + 1) % PARTS)
                np.testing.assert_array_equal(counts[0], (part >= 0) & (part != p) & ~counts[1])
                weight = (rows.training[f] + rows.watched[f])[counts[0] | counts[1]]
                close = np.testing.assert_allclose
                close(weight, TABLE.weight[used][counts[0] | counts[1]], rtol=1e-6)
    assert next(fits, None) is None


def test_primary_data_are_not_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training row's pseudo-observations do not know its own y, to the bit. Parts are stratified
    by y, the ground (two numbers) and the correction (four) are fitted to all training rows, so
    these are held fixed."""
    part, row = usual()[0].part, 7
    parts, ground_of = room._parts, room.ground_of
    # The parts and the ground of the unchanged rows, whatever is asked for.
    monkeypatch.setattr(
        room, "_parts", lambda of, rate, *a: parts(TABLE, empirical_rate(FAMILY, TABLE.y, ALL), *a)
    )
    monkeypatch.setattr(
        room, "ground_of", lambda model, prior, of, *a: ground_of(model, prior, TABLE, *a)
    )
    both = usual()[0], run(changed([row]))[0]
    before, after = (replace(one, correction=Correction.of_all(1.0)) for one in both)
    np.testing.assert_array_equal(after.part, part)
    old, new = (np.asarray(one.said(TABLE.x, part).pseudo.n) for one in (before, after))
    mine = part == part[row]
    np.testing.assert_array_equal(old[:, mine], new[:, mine])
    # The next part's fit has learned from the row; the one before has only watched it.
    others = part == (part[row] + 1) % PARTS
    assert (old[:, others] != new[:, others]).all()
    # Asked as if it were new, the row is answered for by all fits, and they know its y.
    assert (np.asarray(after.said(TABLE.x).pseudo.n)[:, row]
            != np.asarray(before.said(TABLE.x).pseudo.n)[:, row]).all()  # fmt: skip


def test_a_rows_own_data_move_the_ground_by_one_row_in_many() -> None:
    """The one thing that a row's pseudo-observations share with its y."""
    model = Model(FAMILY, NETWORK)
    rows = TRAINING[0] & COUNTED
    one, two = (ground_of(model, "fitted", of, rows) for of in (TABLE, changed([7])))
    assert 0 < np.abs(one.centre - two.centre).max() < 5 / rows.sum()


def test_a_rows_own_data_move_the_correction_by_little() -> None:
    """The fits being the same."""
    before = usual()[0]
    ensemble, trained = SPEC.ensemble, list(before.trained)
    after = room.combined(ensemble, changed([7]), trained, before.part, "").correction
    assert after.times[0] == pytest.approx(before.correction.times[0], rel=0.1)
    assert after.stretch == pytest.approx(before.correction.stretch, rel=0.05)
    assert after.level == pytest.approx(before.correction.level, abs=0.05)
    assert after.contrast == pytest.approx(before.correction.contrast, rel=0.05)
    assert after.stretch != before.correction.stretch


def test_nothing_outside_a_training_set_matters_to_it() -> None:
    """Both sets are learned in one program, to the bit the same whatever the other's rows say."""
    outside = np.flatnonzero(~TRAINING[0] | ~COUNTED)
    other = run(changed(outside, x=True))
    assert alike(usual()[0], other[0])
    assert not alike(usual()[1], other[1])


def test_rows_without_primary_data_or_weight_and_unused_rows_never_matter() -> None:
    nobody = changed(np.arange(170, M), x=True)
    nobody.y["successes"][180:190] = nobody.y["trials"][180:190] = np.nan
    for one, two in zip(usual(), run(nobody), strict=True):
        assert alike(one, two)
        assert (two.part[170:] == -1).all()


def test_what_depends_on_training_rows_is_the_same_when_sets_are_learned_alone() -> None:
    together = [job for rows in TRAINING for job in room._jobs(SPEC, TABLE, rows & COUNTED, 0)]
    for job, one in zip(together, (t for fit in usual() for t in fit.trained), strict=True):
        assert same(job.ground, one.ground)
        assert same(job.preprocess[1:], one.preprocess[1:])
    np.testing.assert_array_equal(together[0].part, usual()[0].part)


def test_the_order_of_sets_is_kept() -> None:
    for rows, one in zip(TRAINING, usual(), strict=True):
        np.testing.assert_array_equal(one.part >= 0, rows & COUNTED)


def test_parts_are_level_in_size_and_in_rate() -> None:
    rate = empirical_rate(FAMILY, TABLE.y, TABLE.seen)
    for one in usual():
        sizes = np.bincount(one.part[one.part >= 0])
        assert np.ptp(sizes) <= 1
        means = [rate[one.part == p].mean() for p in range(PARTS)]
        assert np.ptp(means) < 0.1


def test_parts_never_split_a_group() -> None:
    group = np.random.default_rng(3).integers(0, 20, M)
    (job, *_) = room._jobs(SPEC, TABLE._replace(group=group), TRAINING[0] & COUNTED, 0)
    for name in np.unique(group[job.part >= 0]):
        assert len(np.unique(job.part[(group == name) & (job.part >= 0)])) == 1
    assert set(job.part[job.part >= 0]) == set(range(PARTS))


# --- what answers -------------------------------------------------------------------------------


def by_hand(t: Trained, x: np.ndarray) -> np.ndarray:
    """The (successes, failures) of each fit: parts × 2 × rows."""
    (shared,), ((count,), (rate,)) = t.held["shared"], t.held["branches"]
    z = t.preprocess.apply(x)
    found = []
    for p in range(PARTS):
        hidden = np.tanh(z @ shared["matrix"][p] + shared["bias"][p])
        outputs = [hidden @ layer["matrix"][p] + layer["bias"][p] for layer in (count, rate)]
        outputs = t.ground.centre + t.ground.scale * np.concatenate(outputs, 1)
        pseudo = FAMILY.from_unconstrained(outputs, "log")
        found.append([pseudo.successes, pseudo.failures])
    return np.asarray(found)


def test_a_new_row_is_answered_for_by_the_mean_of_all_parts_and_a_training_row_by_its_own() -> None:
    one = replace(usual()[0], correction=Correction.of_all(1.0))
    new = np.random.default_rng(5).normal(size=(20, P))
    for k, t in enumerate(one.trained):
        fresh = one.said(new).pseudo[k]
        np.testing.assert_allclose(fresh.successes, by_hand(t, new).mean(0)[0], rtol=1e-10)
        np.testing.assert_allclose(fresh.failures, by_hand(t, new).mean(0)[1], rtol=1e-10)
        mixed = one.said(TABLE.x, one.part).pseudo[k]
        every = by_hand(t, TABLE.x)
        own = every[one.part, :, np.arange(M)].T
        wanted = np.where(one.part >= 0, own, every.mean(0))
        np.testing.assert_allclose([mixed.successes, mixed.failures], wanted, rtol=1e-10)


def test_a_members_score_is_that_of_rows_it_has_not_seen() -> None:
    one = usual()[0]
    rows = one.part >= 0
    said = one.said(TABLE.x[rows], one.part[rows])
    natural = said.natural
    y = {name: v[rows] for name, v in TABLE.y.items()}
    each = st.betabinom.logpmf(y["successes"], y["trials"], natural.successes, natural.failures)
    weight = TABLE.weight[rows] / TABLE.weight[rows].sum()
    np.testing.assert_allclose([t.score for t in one.trained], each @ weight, rtol=1e-8)
    np.testing.assert_allclose(one.share, stacked(each, TABLE.weight[rows]), rtol=1e-6)
    together = logsumexp(each, axis=0, b=one.share[:, None])
    np.testing.assert_allclose(one.log_score(said, y), together, rtol=1e-8)


def test_the_best_member_is_the_one_with_the_best_score_out_of_fold() -> None:
    best = run(spec=replace(SPEC, ensemble=replace(SPEC.ensemble, combine="best")))
    for one, all_of_them in zip(best, usual(), strict=True):
        rows = one.part >= 0
        y = {name: v[rows] for name, v in TABLE.y.items()}
        scores = [
            t.said(TABLE.x[rows], one.part[rows]).log_score(FAMILY, y) @ TABLE.weight[rows]
            for t in all_of_them.trained
        ] / TABLE.weight[rows].sum()
        (kept,) = one.trained
        assert kept.score == pytest.approx(max(scores), rel=1e-12)
        assert one.correction.times == [1] == one.correction.stretch == one.correction.contrast
        assert same(kept.weights, all_of_them.trained[int(np.argmax(scores))].weights)
        np.testing.assert_array_equal(one.share, [1.0])


def test_equal_members_answer_equally() -> None:
    (one, _) = run(spec=replace(SPEC, ensemble=replace(SPEC.ensemble, combine="equal")))
    np.testing.assert_array_equal(one.share, [0.5, 0.5])


# --- stacking -----------------------------------------------------------------------------------


def test_the_correction_is_the_likeliest_of_a_grid() -> None:
    """Out of fold, with the shares stacked anew at each, and little expected to be wrong."""
    one = usual()[0]
    rows = one.part >= 0
    y, weight = {name: v[rows] for name, v in TABLE.y.items()}, TABLE.weight[rows]
    before = [t.said(TABLE.x[rows], one.part[rows]).pseudo for t in one.trained]
    spread = np.mean([np.log(p.successes / p.failures).std() for p in before])
    typical = np.exp(np.mean([np.log(p.n) for p in before]))

    def score(times: float, stretch: float, contrast: float, level: float) -> float:
        correction = Correction.of_all(times, stretch, [level * spread], contrast, typical)
        each = [t.said(TABLE.x[rows], one.part[rows], correction) for t in one.trained]
        scores = np.stack([said.log_score(FAMILY, y) for said in each])
        likely = weight @ logsumexp(scores, axis=0, b=stacked(scores, weight)[:, None])
        return likely - (np.log(stretch) ** 2 + np.log(contrast) ** 2 + level**2) / 0.2**2 / 2

    of = one.correction
    found = np.array([of.times[0, 0], of.stretch[0], of.contrast[0], of.level[0] / spread])
    assert of.typical == pytest.approx(typical)
    factors, levels = np.geomspace(0.5, 2, 81), np.linspace(-1, 1, 81)
    for which, grid in enumerate((factors, factors, factors, levels)):
        others = [np.where(np.arange(4) == which, value, found) for value in grid]
        best = grid[np.argmax([score(*v) for v in others])]
        assert found[which] == pytest.approx(best, abs=0.05)
    assert score(*found) > score(1.0, 1.0, 1.0, 0.0)


class Said(NamedTuple):
    """What two members say who each know a half of what there is to know, and are right about how
    sure they are."""

    y: dict[str, np.ndarray]
    each: list[Any]
    weight: np.ndarray = np.ones(4000)
    spread: np.ndarray = np.ones(1)
    typical: np.ndarray = np.full(1, 20.0)

    family: Any = FAMILY

    def scores(self, correction: Correction) -> np.ndarray:
        usual = jax.tree.map(lambda v: np.ones(v.shape[1:]), self.each[0])
        every = [correction.corrected(one, usual, np.ones((4000, 0), bool)) for one in self.each]
        by_doubt = np.stack(
            [
                [self.family.log_predictive(one * of, **self.y) for of in correction.often]
                for one in every
            ]
        )
        return logsumexp(by_doubt, 1) - np.log(len(correction.often))


def two_halves() -> tuple[Said, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    centre = expit(x.sum(1))
    theta = rng.beta(20 * centre, 20 * (1 - centre))
    y = {"successes": rng.binomial(50, theta).astype(float), "trials": np.full(4000, 50.0)}
    said = []
    for column in range(2):
        rate = expit(x[:, column] / np.sqrt(1 + np.pi / 8))

        def loss(log_n: float, rate: np.ndarray = rate) -> float:
            n = np.exp(log_n)
            return -st.betabinom.logpmf(y["successes"], 50, n * rate, n * (1 - rate)).sum()

        n = np.exp(scipy.optimize.minimize_scalar(loss, bounds=(-2, 5), method="bounded").x)
        said.append(Trials(n * rate, n * (1 - rate)))
    return Said(y, said), theta


def test_members_that_differ_are_sharper_together_than_apart() -> None:
    """Their mixture is too wide until T_x counts more."""
    said, _ = two_halves()
    share, sharpness = room._stacked_and_sharpened(
        lambda times: said.scores(Correction.of_all(times)), np.ones(4000)
    )
    np.testing.assert_allclose(share, 0.5, atol=0.05)
    assert sharpness > 1.1


def test_members_that_differ_are_further_from_the_usual_together_than_apart() -> None:
    """The mean of two that are right about their rates is too near the middle: where it says that
    rates are low they are lower. Corrected, it is nearer to the truth at both ends."""
    said, theta = two_halves()
    share, correction = room._stretched(cast("Any", said), np.full(2, 0.5), 1.0)

    def rates(of: Correction) -> np.ndarray:
        usual = Trials(np.array(1.0), np.array(1.0))
        every = [of.corrected(one, usual, np.ones((4000, 0), bool)) for one in said.each]
        return share @ np.stack([one.successes / one.n for one in every])

    plain, corrected = rates(Correction.of_all(1.0)), rates(correction)
    low, high = plain < np.quantile(plain, 0.1), plain > np.quantile(plain, 0.9)
    assert correction.stretch > 1.1
    for end, sign in ((low, -1), (high, 1)):
        before, after = (sign * (theta[end] - rate[end]).mean() for rate in (plain, corrected))
        assert before > 0.05
        assert 0 < after < 0.9 * before


def test_rows_that_seem_to_differ_in_worth_differ_less() -> None:
    """A member that has learned differences that are not there says of some rows too much, of
    others too little. No one sharpness mends that; less contrast does."""
    rng = np.random.default_rng(1)
    rate = expit(rng.normal(size=4000))
    theta = rng.beta(20 * rate, 20 * (1 - rate))
    y = {"successes": rng.binomial(50, theta).astype(float), "trials": np.full(4000, 50.0)}
    worth = 20 * np.exp(0.6 * rng.normal(size=4000))
    said = Said(y, [Trials(worth * rate, worth * (1 - rate))])
    _, correction = room._stretched(cast("Any", said), np.ones(1), 1.0)
    assert correction.contrast < 0.7
    usual, there = Trials(np.array(1.0), np.array(1.0)), np.ones((4000, 0), bool)
    corrected = correction.corrected(said.each[0], usual, there)
    sure = worth > np.quantile(worth, 0.9)

    def short(of: Trials) -> float:
        low, high = FAMILY.posterior(of[sure]).interval(0.9)
        return 0.9 - ((low <= theta[sure]) & (theta[sure] <= high)).mean()

    assert short(said.each[0]) > 0.1
    assert short(corrected) < 0.5 * short(said.each[0])


def worth_of_two_kinds(apart: float) -> tuple[Said, np.ndarray]:
    """A member that says 20 observations of every row, where half are worth e^apart times as many
    and half e^apart times fewer, which nothing tells."""
    rng = np.random.default_rng(2)
    rate = expit(rng.normal(size=4000))
    worth = 20 * np.exp(apart * rng.choice([-1, 1], 4000))
    theta = rng.beta(worth * rate, worth * (1 - rate))
    y = {"successes": rng.binomial(50, theta).astype(float), "trials": np.full(4000, 50.0)}
    return Said(y, [Trials(20 * rate, 20 * (1 - rate))]), theta


def test_where_worth_differs_and_nothing_tells_how_it_is_in_doubt() -> None:
    """One number of observations for all makes narrow sets hold too much and wide ones too
    little, whatever the number; a mixture of two does not."""
    said, theta = worth_of_two_kinds(0.9)
    _, correction = room._stretched(cast("Any", said), np.ones(1), 1.0)
    assert correction.doubt == pytest.approx(0.9, abs=0.1)
    assert correction.times[0, 0] == pytest.approx(1.0, abs=0.1)

    def too_much(of: Correction) -> np.ndarray:
        usual, there = Trials(np.array(1.0), np.array(1.0)), np.ones((4000, 0), bool)
        one = of.corrected(said.each[0], usual, there)
        each = jax.tree.map(lambda *v: np.stack(v), *(one * often for often in of.often))
        law = mixture(np.full(each.shape, 1 / len(each)), FAMILY.posterior(each))
        inside = [(low <= theta) & (theta <= high) for low, high in map(law.interval, (0.5, 0.95))]
        return np.mean(inside, 1) - (0.5, 0.95)

    _, times = room._stacked_and_sharpened(
        lambda times: said.scores(Correction.of_all(times)), np.ones(4000)
    )
    without = too_much(Correction.of_all(times))
    assert without[0] > 0.03
    assert without[1] < -0.01
    assert (np.abs(too_much(correction)) < np.abs(without) / 2).all()


def test_each_split_of_nested_classes_is_corrected_by_itself() -> None:
    """One is worth twice what a member says and moves further from the usual, the other is worth
    half and as far."""
    rng = np.random.default_rng(3)
    logit = rng.normal(size=(4000, 2))
    share = expit(logit)
    seen = [rng.beta(n * share[:, k], n * (1 - share[:, k])) for k, n in enumerate((40.0, 10.0))]
    theta = np.stack([seen[0], (1 - seen[0]) * seen[1], (1 - seen[0]) * (1 - seen[1])], 1)
    y = {"counts": rng.multinomial(100, theta).astype(float)}
    said = expit(logit / (1.25, 1.0))
    member = NestedCounts(20 * said, 20 * (1 - said))
    family, spread = ldf.NestedMultinomial(), np.ones(2)
    two = Said(y, [member], spread=spread, typical=np.full(2, 20.0), family=family)
    _, correction = room._stretched(cast("Any", two), np.ones(1), 1.0)
    np.testing.assert_allclose(correction.times[0], (2.0, 0.5), rtol=0.1)
    np.testing.assert_allclose(correction.stretch, (1.25, 1.0), rtol=0.05)
    np.testing.assert_allclose(correction.contrast, 1.0, rtol=0.05)
    assert correction.doubt == 0


def test_nothing_is_in_doubt_where_a_mixture_of_two_gains_little() -> None:
    """It makes components twice as many."""
    said, _ = worth_of_two_kinds(0.0)
    assert room._stretched(cast("Any", said), np.ones(1), 1.0)[1].doubt == 0
    assert all(own.correction.doubt == 0 for own in usual())


def test_doubt_is_an_even_mixture_of_more_and_less() -> None:
    one = usual()[0]
    y = {name: values[:50] for name, values in TABLE.y.items()}
    x, (trained, _), correction = TABLE.x[:50], one.trained, Correction.of_all(1.2, 1.1, [0.1])
    both = trained.said(x, None, correction._replace(doubt=np.array(0.4)))
    assert both.share.shape == (2, 50)
    each = [
        trained.said(x, None, correction._replace(times=1.2 * np.exp([[doubt]])))
        for doubt in (0.4, -0.4)
    ]
    scores = np.stack([said.log_score(FAMILY, y) for said in each])
    np.testing.assert_allclose(both.log_score(FAMILY, y), np.log(np.exp(scores).mean(0)))
    np.testing.assert_allclose(
        both.mean().successes, np.mean([said.mean().successes for said in each], 0)
    )


def test_folds_with_doubt_and_without_are_gathered_each_as_it_answers() -> None:
    """Those without have fewer components: what is added has no share."""
    sure = usual()[0]
    doubtful = replace(sure, correction=sure.correction._replace(doubt=np.array(0.4)))
    x, y = TABLE.x[COUNTED], {name: values[COUNTED] for name, values in TABLE.y.items()}
    held = np.arange(180) < 80
    together = gathered([sure, doubtful], x, np.stack([held, ~held]))
    assert together.share.shape == (4, 180)
    score = together.log_score(FAMILY, y)
    for learned, rows in ((sure, held), (doubtful, ~held)):
        own, counts = learned.said(x[rows]), {name: v[rows] for name, v in y.items()}
        np.testing.assert_allclose(score[rows], own.log_score(FAMILY, counts), rtol=1e-12)
        mean = learned.posterior(together.rows(rows)).mean()
        np.testing.assert_allclose(mean, learned.posterior(own).mean(), rtol=1e-12)


def test_nothing_corrected_is_nothing() -> None:
    none = Trials(np.zeros(2), np.array([0.0, 3.0]))
    usual = Trials(np.array(1.0), np.array(4.0))
    for contrast, times in ((1.0, 2.0), (2.0, 4.0), (0.5, 2**0.5)):  # 3 of a typical 1.5
        correction = Correction.of_all(2.0, 1.5, [0.1], contrast, 1.5)
        found = correction.corrected(none, usual, np.ones((2, 0), bool))
        np.testing.assert_allclose(found.successes, 0.0)
        np.testing.assert_allclose(found.failures, [0.0, 3.0 * times])


def test_stacked_weights_are_the_likeliest_of_a_grid() -> None:
    rng = np.random.default_rng(0)
    scores, weight = rng.normal([[-2.0], [-1.8]], 1.0, (2, 400)), rng.random(400)
    grid = np.linspace(0.001, 0.999, 999)
    shares = np.stack([grid, 1 - grid])
    # The mixture's score, and one row's worth for each member.
    score = weight @ logsumexp(np.log(shares)[:, None] + scores[:, :, None], axis=0)
    score += np.log(shares).sum(0)
    found = stacked(scores, weight)
    assert found.sum() == pytest.approx(1)
    assert found[0] == pytest.approx(grid[np.argmax(score)], abs=1e-3)
    assert 0.1 < found[0] < 0.9


def test_members_that_say_the_same_share_equally() -> None:
    scores = np.random.default_rng(0).normal(size=50)
    np.testing.assert_allclose(stacked(np.stack([scores] * 3)), 1 / 3, rtol=1e-12)
    swapped = np.stack([scores, scores[::-1]])
    np.testing.assert_allclose(stacked(swapped), 1 / 2, rtol=1e-12)


def test_a_member_that_is_far_better_has_nearly_all_and_none_is_silenced() -> None:
    scores = np.stack([np.full(200, -1.0), np.full(200, -900.0)])
    found = stacked(scores)
    assert found[1] == pytest.approx(1 / 202)


def test_a_row_that_no_member_can_explain_leaves_the_others_their_say() -> None:
    scores = np.stack([np.full(50, -1.0), np.full(50, -3.0)])
    scores[:, 0] = -1e9
    assert np.isfinite(stacked(scores)).all()
    assert stacked(scores)[0] > 0.9


# --- priors, weights and references -------------------------------------------------------------


def test_a_fitted_prior_is_that_of_primary_data_alone_and_a_weak_one_a_tenth() -> None:
    model, rows = Model(FAMILY, NETWORK), TRAINING[0] & COUNTED
    y, weight = {name: v[rows] for name, v in TABLE.y.items()}, TABLE.weight[rows]

    def lost(at: np.ndarray) -> float:
        return -weight @ st.betabinom.logpmf(y["successes"], y["trials"], *np.exp(at))

    known = np.exp(scipy.optimize.minimize(lost, [0.0, 0.0], jac="3-point", method="BFGS").x)
    fitted, weak, none = (
        ground_of(model, prior, TABLE, rows).prior for prior in ("fitted", "weak", "none")
    )
    np.testing.assert_allclose([fitted.successes, fitted.failures], known, rtol=1e-4)
    assert weak.n == pytest.approx(0.1 * fitted.n)
    assert weak.t / weak.n == pytest.approx(fitted.t / fitted.n)
    assert none.n == 0
    strong = ground_of(model, "weak", TABLE, rows, strength=3.0)
    assert strong.prior.n == pytest.approx(0.3 * fitted.n)
    centre = FAMILY.from_unconstrained(strong.centre, "log")  # the mapping starts from all of it
    assert centre.n == pytest.approx(fitted.n)


def test_a_given_prior_is_used_as_it_is() -> None:
    given = FAMILY.prior(0.3, 0.7)
    for job in room._jobs(replace(SPEC, prior=given), TABLE, TRAINING[0] & COUNTED, 0):
        assert job.ground.prior.successes == 0.3
        assert job.ground.prior.failures == 0.7


def test_an_unknown_prior_is_refused() -> None:
    with pytest.raises(ldf.DataError, match="column 'prior': 'flat' is not known"):
        Spec(FAMILY, prior="flat")


def test_balance_weighs_rows_so_that_classes_of_the_rate_count_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = replace(SPEC, balance=7)
    rate = empirical_rate(FAMILY, TABLE.y, TABLE.seen)
    part, used = usual()[0].part, (TRAINING & COUNTED).any(0)
    rows = part >= 0
    wanted = np.zeros(M)
    wanted[rows] = TABLE.weight[rows] * balanced_weights(rate[rows], 7)
    found = handed_over(monkeypatch, spec, TRAINING)
    seen = np.where(part[used] != 0, wanted[used], 0.0)  # the first fit has not seen part 0
    np.testing.assert_allclose(found.training[0] + found.watched[0], seen, rtol=1e-6)
    assert np.ptp(wanted[rows] / TABLE.weight[rows]) > 0


def test_the_reference_goes_to_the_trainer_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the prior alone, or by the beta-binomial regression trained on the same rows, which is
    one for all members and preprocessed as the first is."""
    used = (TRAINING & COUNTED).any(0)
    y = {name: v[used] for name, v in TABLE.y.items()}
    compare = replace(SPEC, objective=model_selection)
    found = handed_over(monkeypatch, compare, TRAINING).reference
    for f, one in ((0, usual()[0]), (2 * PARTS, usual()[1])):
        prior = one.trained[0].ground.prior
        known = st.betabinom.logpmf(y["successes"], y["trials"], prior.successes, prior.failures)
        np.testing.assert_allclose(found[f], known, rtol=1e-4)

    found = handed_over(monkeypatch, replace(compare, reference="regression"), TRAINING).reference
    spec = regression(FAMILY, Linear(True), PENALTY, MEMBERS[0].preprocess)
    for set_, rival in enumerate(learn(spec, TABLE, 0, TRAINING)):
        score = rival.log_score(rival.said(TABLE.x[used]), y)
        mine = found[2 * PARTS * set_ : 2 * PARTS * (set_ + 1)]
        np.testing.assert_allclose(mine, np.tile(score, (2 * PARTS, 1)), rtol=1e-4)


def test_regressions_are_held_out_too() -> None:
    """A linear mapping by parts: new rows are answered for by the fit of all training rows, each
    training row by the one without its part."""
    member = Member(Linear(True), "standard", penalty=0.01)
    spec = Spec(FAMILY, Ensemble((member,), parts=PARTS), prior="none")
    (one, _) = learn(spec, TABLE, 0, TRAINING)
    (t,) = one.trained
    alone = replace(spec, ensemble=replace(spec.ensemble, parts=1))
    whole, *without = learn(
        alone, TABLE, 0,
        np.stack([TRAINING[0], *((one.part >= 0) & (one.part != p) for p in range(PARTS))]),
    )  # fmt: skip
    np.testing.assert_array_equal(t.weights["slope"][0], whole.trained[0].weights["slope"][0])
    for p, rival in enumerate(without):  # preprocessed and grounded on fewer rows, but as good
        rows = one.part == p
        mine = t.said(TABLE.x[rows], one.part[rows]).pseudo[0]
        theirs = rival.said(TABLE.x[rows]).pseudo[0]
        np.testing.assert_allclose(mine.n, theirs.n, rtol=0.05)
        np.testing.assert_allclose(mine.t / mine.n, theirs.t / theirs.n, rtol=0.05)


def test_the_empirical_rate_of_a_vector_is_of_the_component_that_differs_most() -> None:
    counts = np.array([[3.0, 5, 2], [1, 9, 0], [0, 0, 0], [5, 2, 3]])
    rate = empirical_rate(ldf.Multinomial(classes=3), {"counts": counts}, np.ones(4, bool))
    np.testing.assert_allclose(rate, [0.5, 0.9, np.nan, 0.2])
    y, seen = {"successes": np.ones(2), "trials": np.ones(2)}, np.array([True, False])
    np.testing.assert_array_equal(empirical_rate(FAMILY, y, seen), [1, np.nan])


def test_parts_are_folds_of_the_same_kind_as_a_cross_validations() -> None:
    rows = TRAINING[0] & COUNTED
    rate = empirical_rate(FAMILY, TABLE.y, TABLE.seen)
    np.testing.assert_array_equal(
        usual()[0].part[rows], folds.stratified(rate[rows], PARTS, 0).fold
    )


# --- recovery -----------------------------------------------------------------------------------


def test_pseudo_observations_that_made_the_data_are_learned_again() -> None:
    """θ_i ~ Be(a(x_i), b(x_i)), 4,000 rows of up to 59 trials, in one part; bounds set before."""
    x, trials, successes, *_ = made(4000)
    y = {"successes": successes, "trials": trials}
    member = Member(Network(shared=(12,), branch=()), "standard", penalty=1e-5)
    schedule = Schedule(epochs=120, patience=30, batch=256, places=1)
    ensemble = Ensemble((member,), parts=1, schedule=schedule)
    spec = Spec(FAMILY, ensemble, prior=FAMILY.prior(0.5, 0.5))
    (one,) = learn(spec, Table(x, y, np.ones(4000, bool), np.ones(4000)), seed=0)
    assert (one.part == -1).all()
    new, *_, rate, count = made(2000, seed=9)
    natural = one.said(new).natural[0]
    found = natural.t / natural.n
    assert np.corrcoef(found, rate)[0, 1] > 0.98
    assert np.abs(found - rate).mean() < 0.02
    assert np.corrcoef(np.log(natural.n), np.log(count))[0, 1] > 0.9
    ratio = natural.n / count
    assert 0.8 < np.median(ratio) < 1.25
    assert np.mean((ratio > 0.6) & (ratio < 1.67)) > 0.9
