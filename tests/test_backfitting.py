"""Trees beside other sources: learned in turn, each on top of what the others say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import ldf
from ldf import DataError, Ensemble, Fusion, Linear, Member, Network, Schedule, Trees
from ldf.boost import _slopes
from ldf.data import read
from ldf.ground import ground_of
from ldf.learn import _jobs, learn
from ldf.model import Model
from ldf.objective import maximum_likelihood
from ldf.spec import Spec
from ldf.summed import TWO, Source, SummedModel
from ldf.table import Table
from ldf.train import backfitting
from ldf.train.job import roles
from ldf.train.recalled import answers, patterns, recalling, rows_told

PRIMARY = {"successes": "lit", "trials": "asked"}
SOURCES = {"census": ["rich", "old"], "lights": ["bright"]}
STEPS = {"census": Trees(depth=2)}


def villages(rows: int, seed: int) -> pd.DataFrame:
    """θ ~ Be(0.2 + T_census, …): the census acts by steps, lights smoothly; some lack the census.
    With it, a village is worth 12 or 4 trials; with lights, 6."""
    rng = np.random.default_rng(seed)
    rich, old, bright = rng.normal(size=(3, rows))
    counted = rng.random(rows) > 0.15
    n = np.where(old > 0, 12.0, 4.0) * counted
    successes = n * np.where(np.abs(rich) < 0.7, 0.85, 0.25)
    lights = 6 / (1 + np.exp(-1.5 * bright))
    theta = rng.beta(0.2 + successes + lights, 0.2 + n - successes + 6 - lights)
    asked = rng.integers(10, 40, rows)
    frame = pd.DataFrame(
        {
            "rich": np.where(counted, rich, np.nan),
            "old": np.where(counted, old, np.nan),
            "bright": bright,
            "asked": asked.astype(float),
            "lit": rng.binomial(asked, theta).astype(float),
            "theta": theta,
            "census": n,
        },
        index=[f"v{i}" for i in range(rows)],
    )
    frame.loc[frame.index[::9], list(PRIMARY.values())] = np.nan
    return frame


FEW = villages(120, 0)
QUICK = Ensemble(
    (Member(Linear(), learning_rate=0.05),),
    parts=3,
    schedule=Schedule(epochs=4, patience=5, batch=64, chunk=1, places=2),
)


def quick(mapping: Any = None, **more: Any) -> Fusion:
    words = {"mapping": mapping or STEPS, "ensemble": QUICK} | more
    return Fusion("binomial", PRIMARY, SOURCES, **words)


@cache
def fitted(both: bool = False) -> Fusion:
    if both:
        members = (Member(Trees(depth=2), learning_rate=0.2),)
        return quick({}, ensemble=replace(QUICK, members=members)).fit(FEW)
    return quick().fit(FEW)


def bits(model: Fusion) -> list[np.ndarray]:
    (trained,) = model.learned_.trained
    return jax.tree.leaves(trained.weights)


# --- what is learned ----------------------------------------------------------------------------


def test_steps_beside_a_curve_are_found_and_each_is_worth_what_it_is() -> None:
    learn, new = villages(800, 1), villages(2000, 2)
    schedule = Schedule(epochs=600, patience=15, chunk=5, places=4, lanes=1)
    line = Ensemble((Member(Linear(), learning_rate=0.05),), parts=4, schedule=schedule)
    words: dict[str, Any] = {"ensemble": line, "independent": True}  # as they are here
    straight = Fusion("binomial", PRIMARY, SOURCES, **words).fit(learn)
    steps = Fusion("binomial", PRIMARY, SOURCES, mapping=STEPS, **words).fit(learn)
    assert "4 fits by backfitting, best after" in steps.status_
    gain = steps.log_scores(new) - straight.log_scores(new)
    gain = gain[np.isfinite(gain)]
    assert gain.mean() > max(0.1, 8 * gain.std() / np.sqrt(len(gain)))
    table = steps.pseudo_observations(new).set_index(["source", "unit"])
    census, lights = table.loc["census"], table.loc["lights"]
    worth = census["n"].groupby(new["census"]).mean()
    assert worth[0.0] == 0
    assert worth[4.0] == pytest.approx(4, rel=0.4)
    assert worth[12.0] == pytest.approx(12, rel=0.4)
    beside = new["census"] > 0
    assert lights["n"].mean() == pytest.approx(6, rel=0.5)
    rate = census["rate"][beside].groupby(new["rich"][beside].abs() < 0.7).mean()
    np.testing.assert_allclose(rate, [0.25, 0.85], atol=0.15)
    low, up = steps.posterior(new, given="auxiliary").interval(0.9)
    inside = ((low <= new["theta"]) & (new["theta"] <= up)).to_numpy()
    assert 0.86 < inside[beside].mean() < 0.94
    assert 0.84 < inside[~beside].mean() < 0.98  # some three hundred


def test_a_forest_alone_is_the_plain_forest_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    y = {"successes": rng.binomial(9, np.where(x[:, 0] > 0, 0.8, 0.3)).astype(float)}
    y["trials"] = np.full(150, 9.0)
    table = Table(x, y, np.ones(150, bool), rng.uniform(0.5, 2, 150))
    trees = Ensemble((Member(Trees(depth=2, most=30), learning_rate=0.2),), parts=1)
    (plain,) = learn(Spec(ldf.Binomial(), trees), table, 0)
    named = table._replace(x=np.column_stack([x, np.ones(150)]))
    (one,) = learn(Spec(ldf.Binomial(), trees, sources=(Source("all", 0, 2),)), named, 0)
    (own,) = one.trained[0].weights
    assert own["leaf"].any()
    for name, leaf in plain.trained[0].weights.items():
        np.testing.assert_array_equal(own[name], leaf)


@pytest.mark.parametrize("both", [False, True])
def test_what_sources_say_adds_and_what_is_missing_adds_nothing(both: bool) -> None:
    model = fitted(both)
    data, _, part = model._read(FEW)
    whole = model.learned_.said(data.x, part).pseudo
    each = [model.learned_.only(s).said(data.x, part).pseudo for s in range(2)]
    lacking = FEW["rich"].isna().to_numpy()
    for together, census, lights in zip(
        whole.coordinates(), *(own.coordinates() for own in each), strict=True
    ):
        np.testing.assert_allclose(census + lights, together, rtol=1e-13)
        assert (census[:, lacking] == 0).all()
        assert (census[:, ~lacking] > 0).all()
    table = model.pseudo_observations(FEW).set_index(["source", "unit"])
    assert (table.loc["census"]["information"].to_numpy()[lacking] == 0).all()
    (forest, *_) = model.learned_.trained[0].weights
    assert forest["leaf"].any()


def test_columns_share_in_what_trees_say() -> None:
    model, some = fitted(), FEW[:4]
    moved = model.attribution(some, background=FEW[10:16])
    census = moved[moved["source"] == "census"].groupby("unit")
    logit = census["attribution"].sum() + census["baseline"].first()
    rate = model.pseudo_observations(some).set_index(["source", "unit"]).loc["census"]["rate"]
    np.testing.assert_allclose(1 / (1 + np.exp(-logit)), rate[logit.index], rtol=1e-9)


# --- how it is learned --------------------------------------------------------------------------


def job_of(model: Fusion) -> tuple[Any, Spec, Table]:
    data = read(FEW, model.family_of(), model.columns())
    spec, table = model.spec(data), Table(data.x, data.y, data.seen, data.weight)
    (job,) = _jobs(spec, table, data.seen, 0)
    return job, spec, table


def test_the_slopes_beside_others_are_those_of_the_log_predictive() -> None:
    family, rng = ldf.Binomial(), np.random.default_rng(0)
    model = Model(family, Trees())
    ground = model.ground(family.prior(successes=0.3, failures=0.4))
    y = {"successes": np.array([3.0, 0.0]), "trials": np.array([9.0, 4.0])}
    offset = ldf.Binomial(effective=True).statistic(successes=[2.5, 0.1], trials=[7.0, 0.3])
    at = rng.normal(size=(2, 2))

    def worth(at: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            own = model.from_outputs(jnp.asarray(at), ground)
            return np.asarray(family.log_predictive(ground.prior + offset + own * (1 / 3), **y))

    found = _slopes(model, maximum_likelihood, ground, y, np.zeros(2), offset, 1 / 3)(at)
    np.testing.assert_allclose(found[0], worth(at), rtol=1e-12)
    for output in range(2):
        step = 1e-4 * (np.arange(2) == output)
        above, below = worth(at + step), worth(at - step)
        np.testing.assert_allclose(found[1][:, output], (above - below) / 2e-4, rtol=1e-5)
        bend = (above + below - 2 * worth(at)) / 1e-8
        np.testing.assert_allclose(found[2][:, output], bend, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("aware", [True, False])
def test_forests_that_have_answered_say_what_they_say(aware: bool) -> None:
    rng = np.random.default_rng(0)
    sources = (Source("a", 0, 2), Source("b", 2, 3), Source("c", 3, 5))
    mappings = (Trees(depth=3), Linear(), Trees(depth=2))
    model = SummedModel(ldf.Binomial(), Linear(), False, sources, mappings, aware)
    x = np.concatenate([rng.normal(size=(60, 5)), rng.random((60, 3)) > 0.4], 1)
    weights = model.init(rng, 8)
    for number, depth in ((0, 3), (2, 2)):
        inputs = 4 if aware else 2
        forest = cast("Trees", mappings[number]).init(rng, inputs, 2, 7)
        forest["column"] = rng.integers(0, inputs, forest["column"].shape).astype(np.int32)
        forest["threshold"] = rng.normal(-0.5, 0.7, forest["threshold"].shape).astype(np.float32)
        forest["leaf"] = rng.normal(0, 0.5, forest["leaf"].shape).astype(np.float32)
        assert forest["leaf"].shape == (7, 2, 2**depth)
        weights[number] = forest
    for own in [weights[1][of] for of in TWO] if model.twofold(1) else weights[1:2]:
        own["slope"] += rng.normal(size=own["slope"].shape)
    told = {number: answers(model, number, weights[number], x) for number in (0, 2)}
    assert told[0].shape == (60, 2 * len(patterns(model)))
    own = recalling(model)
    recalled = own.terms([{}, weights[1], {}], model.ground(), rows_told(model, x, told))
    for one, other in zip(model.terms(weights, model.ground(), x), recalled, strict=True):
        for mine, theirs in zip(one.coordinates(), other.coordinates(), strict=True):
            np.testing.assert_allclose(theirs, mine, rtol=2e-5)


def test_a_turn_of_gradients_leaves_the_trees_as_they_are() -> None:
    job, spec, table = job_of(quick())
    counts = roles(job, 0, 3, 0)
    one = backfitting._begun(job, 0, 0, counts)
    start = recalling(one.model).init(np.random.default_rng(0), 0)
    assert start[0] == {}  # nothing to climb, nothing to penalise
    one.smooth = start
    backfitting._grow(one, 0, 1, spec, table.y, job.model.copies(job.z))
    before = jax.tree.map(np.copy, (one.forests, one.told))
    assert before[0][0]["leaf"].any()
    schedule = Schedule(epochs=2, patience=2, batch=64, chunk=2)
    backfitting._climb([one], 1, None, spec, schedule, table, 0)
    for old, new in zip(*map(jax.tree.leaves, (before, (one.forests, one.told))), strict=True):
        np.testing.assert_array_equal(old, new)
    assert all(one.smooth[1][of]["slope"].any() for of in ("beside", "alone"))


def test_a_row_is_there_once_with_each_subset_of_its_sources() -> None:
    of = SummedModel(ldf.Binomial(), Trees(), sources=(Source("a", 0, 1), Source("b", 1, 2)))
    there = np.array([[True, True], [True, False], [False, False]])
    row, kept, share = of.copies(np.column_stack([np.zeros((3, 2)), there]))
    assert row.tolist() == [0, 0, 0, 1, 2]
    assert kept.tolist() == [[False, True], [True, False], [True, True], *there[1:].tolist()]
    np.testing.assert_allclose(share, [1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_the_watched_rows_decide_by_what_they_would_teach() -> None:
    """By every subset of their sources, as gradients are stopped by."""
    job, _, table = job_of(fitted())
    training, watched = roles(job, 0, 3, 0)
    one = backfitting._begun(job, 0, 0, (training, watched))
    (trained,) = fitted().learned_.trained
    weights = jax.tree.map(lambda leaf: leaf[0], trained.weights)
    one.smooth, one.forests = [{}, weights[1]], {0: weights[0]}
    one.told = {0: answers(job.model, 0, weights[0], job.z)}
    row = np.flatnonzero(watched > 0)
    y = {name: values[row] for name, values in table.y.items()}
    each = [
        np.asarray(job.model.log_predictive(weights, job.ground, job.model.lacking(z, kept), y))
        for z in [job.z[row]]
        for kept in job.model.subsets
    ]
    there = job.model.there(job.z[row])
    has = np.array([(there & kept).any(1) for kept in job.model.subsets])
    lights, census, both = each  # of sources, census first: the last alone, the first, all
    whole = np.where(there.all(1), (both + census + 2 * lights) / 4, lights)
    assert has[0].all()
    expected = np.average(whole, weights=watched[row])
    assert backfitting._score(one, table.y) == pytest.approx(expected, rel=1e-5)


# --- as any other model -------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_does_not(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    again = quick().fit(FEW, checkpoint=path)
    assert not path.exists()
    assert all(map(np.array_equal, bits(fitted()), bits(again)))
    one, two = (of.learned_.correction.times for of in (again, fitted()))
    np.testing.assert_array_equal(one, two)
    other = quick(seed=1).fit(FEW)
    assert not all(map(np.array_equal, bits(fitted()), bits(other)))


@pytest.mark.parametrize("both", [False, True])
def test_a_saved_model_answers_alike(both: bool, tmp_path: Path) -> None:
    fitted(both).save(tmp_path / "model.ldf")
    again = ldf.load(tmp_path / "model.ldf")
    for given in ("auxiliary", "both"):
        one, other = (m.posterior(FEW, given=given) for m in (fitted(both), again))
        np.testing.assert_array_equal(one.mean(), other.mean())
        np.testing.assert_array_equal(one.sd(), other.sd())


def test_a_file_whose_trees_ask_for_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    quick().fit(FEW).save(tmp_path / "model.ldf")
    broken = ldf.load(tmp_path / "model.ldf")
    broken.learned_.trained[0].weights[0]["column"][0, 0, 0, 0] = 4
    with pytest.raises(DataError, match=r"trained\.0\.weights\.0\.column"):
        broken.save(tmp_path / "broken.ldf")


def test_rows_that_do_not_count_teach_nothing_whatever_the_objective() -> None:
    weight = np.where(np.arange(len(FEW)) % 4 == 0, 0.0, 1.0)
    turned = FEW["asked"] - FEW["lit"]
    words: dict[str, Any] = {"objective": "model-selection", "weights": "weight"}
    words["ensemble"] = replace(QUICK, restarts=2, parts=1)
    found = []
    for wrong in (weight < 0, weight == 0, weight > 0):
        frame = FEW.assign(weight=weight, lit=FEW["lit"].where(~wrong, turned))
        with pytest.warns(ldf.CalibrationWarning):
            found.append(bits(quick(**words).fit(frame)))
    assert all(map(np.array_equal, *found[:2]))
    assert not all(map(np.array_equal, found[0], found[2]))


def test_a_source_that_no_row_with_primary_data_has_gets_no_trees() -> None:
    census = SOURCES["census"]
    frame = FEW.assign(**FEW[census].where(FEW["lit"].isna()))
    model = quick(ensemble=replace(QUICK, parts=1)).fit(frame)
    assert model.learned_.trained[0].weights[0]["leaf"].size == 0
    assert np.isfinite(model.posterior(frame, given="auxiliary").mean()).all()


def test_mappings_are_those_that_were_asked_for() -> None:
    def each(mapping: Any) -> list[list[str]]:
        model = Fusion("binomial", PRIMARY, SOURCES, mapping=mapping)
        spec = model.spec(read(FEW, model.family_of(), model.columns()))
        models = [cast("SummedModel", spec.model(member)) for member in spec.ensemble.members]
        return [[type(own).__name__ for own in of.each] for of in models]

    assert each({"census": Trees()}) == [["Trees", "Network"]] * 2
    assert each(Trees()) == each(dict.fromkeys(SOURCES, Trees())) == [["Trees", "Trees"]]
    assert all(own == ["Network", "Network"] for own in each(None))


def test_trees_beside_too_many_sources_are_refused() -> None:
    many = tuple(Source(str(k), k, k + 1) for k in range(9))
    with pytest.raises(DataError, match="of trees is for 8 sources at most; join some"):
        SummedModel(ldf.Binomial(), Trees(), sources=many)
    SummedModel(ldf.Binomial(), Network(), sources=many)


def test_the_ground_is_shared_by_all_sources_before_anything_is_learned() -> None:
    job, _, table = job_of(quick())
    one = backfitting._begun(job, 0, 0, roles(job, 0, 3, 0))
    one.smooth = recalling(one.model).init(np.random.default_rng(0), 0)
    rows = np.arange(len(FEW))
    terms = backfitting._terms(one, rows, np.ones((len(FEW), 2), bool))
    alone = ground_of(job.model, "weak", table, table.seen)
    centre = job.model.family.from_unconstrained(alone.centre, "log")
    np.testing.assert_allclose(sum(terms).n, float(centre.n), rtol=1e-6)
