"""Several sources: their pseudo-observations add, what is missing adds zero, and what repeats
another counts once."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import ldf
from ldf import DataError, Ensemble, Fusion, Linear, Member, Network
from ldf.ensemble import BESIDE, NETWORK
from ldf.learn import UNUSUAL
from ldf.learned import Correction
from ldf.model import Model
from ldf.summed import LITTLE, Source, SummedModel

PRIMARY = {"successes": "lit", "trials": "asked"}
SOURCES = {"census": ["rich", "old"], "lights": ["bright"], "noise": ["dice", "kind"]}
SMALL = Ensemble((Member(Network(shared=(6,), branch=(), linear_path=True)),), parts=4)


def villages(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Sources that tell of θ, each with errors of its own, and one that does not."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=rows)
    asked = rng.integers(3, 25, rows)
    theta = 1 / (1 + np.exp(-u))
    frame = pd.DataFrame(
        {
            "rich": u + 0.8 * rng.normal(size=rows),
            "old": rng.normal(size=rows),
            "bright": u + 0.8 * rng.normal(size=rows),
            "dice": rng.normal(size=rows),
            "kind": rng.choice(["a", "b", "c"], rows),
            "asked": asked.astype(float),
            "lit": rng.binomial(asked, theta).astype(float),
            "theta": theta,
        },
        index=[f"v{i}" for i in range(rows)],
    )
    frame.loc[frame.index[::5], SOURCES["lights"]] = np.nan
    frame.loc[frame.index[::7], SOURCES["noise"]] = None
    frame.loc[frame.index[::9], PRIMARY.values()] = np.nan
    return frame


VILLAGES = villages()


@cache
def model(ensemble: Any = SMALL) -> Fusion:
    return Fusion("binomial", PRIMARY, SOURCES, ensemble=ensemble).fit(VILLAGES)


def test_what_sources_are_worth_adds_to_what_they_are_worth_together() -> None:
    fitted = model()
    table = fitted.pseudo_observations(VILLAGES)
    assert table["source"].tolist()[:4] == ["census", "lights", "noise", "census"]
    assert table["unit"].tolist()[:4] == ["v0", "v0", "v0", "v1"]
    together = fitted.posterior(VILLAGES, given="auxiliary").to_frame()["pseudo_observations"]
    by_unit = table.groupby("unit", sort=False)["n"].sum()
    np.testing.assert_allclose(by_unit, together, rtol=1e-12)


def test_within_a_component_the_sum_is_exact_and_gives_the_posterior() -> None:
    fitted = model()
    data, _, part = fitted._read(VILLAGES)
    learned = fitted.learned_
    whole = learned.said(data.x, part)
    parts = [learned.only(s).said(data.x, part).pseudo for s in range(3)]
    for both, *each in zip(
        whole.pseudo.coordinates(), *(p.coordinates() for p in parts), strict=True
    ):
        np.testing.assert_allclose(sum(each), both, rtol=1e-13)


def test_a_source_that_is_missing_adds_nothing() -> None:
    table = model().pseudo_observations(VILLAGES)
    lights = table[table["source"] == "lights"].set_index("unit")
    absent = VILLAGES["bright"].isna().to_numpy()
    assert (lights["n"][absent] == 0).all()
    assert (lights["information"][absent] == 0).all()
    assert (lights["information_alone"][absent] == 0).all()
    assert (lights["n"][~absent] > 0).all()


def test_a_frame_may_lack_a_source_altogether() -> None:
    fitted = model()
    empty = VILLAGES.assign(bright=np.nan)
    without = fitted.posterior(VILLAGES.drop(columns="bright"), given="auxiliary")
    np.testing.assert_array_equal(without.mean(), fitted.posterior(empty, given="auxiliary").mean())


@pytest.mark.parametrize(("prior", "times"), [("weak", 10), ("fitted", 1), ("given", 1)])
def test_without_any_source_the_posterior_is_the_prior(prior: str, times: int) -> None:
    """A weak one is a tenth of what is known of all units: a bare row has the whole."""
    given = ldf.Binomial().prior(successes=1.5, failures=2.5) if prior == "given" else prior
    line = Ensemble((Member(Linear()),), parts=1)
    fitted = Fusion("binomial", PRIMARY, SOURCES, prior=given, ensemble=line).fit(VILLAGES)
    every = [name for own in SOURCES.values() for name in own]
    bare = VILLAGES.drop(columns=every)[:3]
    own = fitted.family_.posterior(fitted.learned_.trained[0].ground.prior * times)
    post = fitted.posterior(bare, given="auxiliary")
    np.testing.assert_allclose(post.mean(), float(own.mean()), rtol=1e-9)
    np.testing.assert_allclose(post.sd(), float(own.sd()), rtol=1e-9)
    np.testing.assert_array_equal(
        fitted.posterior(bare, given="both").sd(), fitted.posterior(bare, given="primary").sd()
    )


def test_a_source_of_noise_tells_next_to_nothing() -> None:
    """Members together tell less of it than one: here those that are the default beside images."""
    table = model(Ensemble(BESIDE, parts=4)).pseudo_observations(VILLAGES)
    beside = table.groupby("source")["information"].mean()
    assert beside["noise"] < 0.15 * beside["census"]
    assert beside["noise"] < 0.06  # nats
    alone = table.groupby("source")["information_alone"].mean()
    assert alone["noise"] < 0.1 * alone["lights"]


def test_information_is_the_divergence_from_without_the_source_to_with_it() -> None:
    """By integration, of one unit and the one member."""
    fitted = model()
    a0, b0 = (float(v) for v in fitted.learned_.trained[0].ground.prior.coordinates())

    def parameters(frame: pd.DataFrame) -> tuple[float, float]:
        table = fitted.pseudo_observations(frame)
        return a0 + table["t"].sum(), b0 + (table["n"] - table["t"]).sum()

    one = villages(3, seed=9)[1:2]  # a new one: every fit answers
    after, before = parameters(one), parameters(one.drop(columns="bright"))

    def integrand(theta: float) -> float:
        log = stats.beta.logpdf(theta, *after)
        return float(np.exp(log) * (log - stats.beta.logpdf(theta, *before)))

    found, _ = integrate.quad(integrand, 0, 1, limit=200)
    told = fitted.pseudo_observations(one).set_index("source")["information"]
    assert told["lights"] == pytest.approx(found, rel=1e-6)


def test_a_subset_of_sources_that_nobody_knows_has_the_mean_sharpness_of_the_nearest() -> None:
    none = Correction.of_all(1.0)
    subsets = np.array([[True, True], [True, False]])
    known = none._replace(there=subsets, times=np.array([[1.2], [0.3]]))
    asked = np.array([[True, False], [True, True], [False, True], [False, False]])
    np.testing.assert_allclose(known.times_in(asked)[:, 0], [0.3, 1.2, 1.2, 0.3])
    tied = none._replace(there=~np.eye(3, dtype=bool), times=np.array([[0.5], [1.0], [2.0]]))
    np.testing.assert_allclose(tied.times_in(np.ones((1, 3), bool)), [[1.0]])
    one_table = Correction.of_all(0.7)
    np.testing.assert_allclose(one_table.times_in(np.ones((4, 0), bool)), 0.7)


def test_the_sharpness_of_a_subset_is_the_likeliest_of_a_grid_for_rows_with_just_these() -> None:
    """Of units that have the census and the lights, as if they had the census only."""
    fitted = model()
    learned, table = fitted.learned_, VILLAGES[VILLAGES["lit"].notna()]
    census = [True, False, False]
    place = learned.correction.there.tolist().index(census)
    only = table.assign(bright=np.nan, dice=np.nan, kind=None)
    data, _, part = fitted._read(table)
    bare, _, _ = fitted._read(only)
    usual = _usual(fitted, data, part)

    def score(times: float) -> float:
        said = learned.trained[0].said(bare.x, part, Correction.of_all(times, sources=3))
        likely = said.log_score(fitted.family_, data.y)
        return likely.sum() - (np.log(times / usual) / UNUSUAL) ** 2 / 2

    grid = np.exp(np.linspace(-0.69, 0.69, 100))
    best = grid[np.argmax([score(times) for times in grid])]
    assert learned.correction.times[place] == pytest.approx(best, rel=0.03)


def _usual(fitted: Fusion, data: Any, part: np.ndarray) -> float:
    """Of all rows as they are, by a grid."""
    grid = np.exp(np.linspace(-0.69, 0.69, 400))
    only = fitted.learned_.trained[0]
    every = [Correction.of_all(times, sources=3) for times in grid]
    scores = [only.said(data.x, part, c).log_score(fitted.family_, data.y).sum() for c in every]
    return float(grid[np.argmax(scores)])


def test_copies_of_one_source_are_not_counted_twice() -> None:
    """The plain sum would be sure twice over; mappings that see each other are not."""
    learn, new = villages(800, seed=1), villages(3000, seed=2)
    for frame in (learn, new):
        frame["bright"] = frame["rich"]
    two = {"census": ["rich"], "lights": ["bright"]}
    fitted = Fusion("binomial", PRIMARY, two, ensemble=SMALL).fit(learn)
    for kept in (*combinations(two, 1), tuple(two)):
        lacking = [name for source in two if source not in kept for name in two[source]]
        low, high = fitted.posterior(new.drop(columns=lacking), given="auxiliary").interval(0.9)
        inside = ((low <= new["theta"]) & (new["theta"] <= high)).to_numpy()
        assert 0.87 < inside.mean() < 0.93, (kept, inside.mean())
    told = fitted.pseudo_observations(new)
    assert told["information"].mean() < 0.1 * told["information_alone"].mean()


def apart(rows: int, seed: int) -> pd.DataFrame:
    """Two sources whose errors are their own, and one that all units have."""
    frame = villages(rows, seed)
    rng = np.random.default_rng(seed + 100)
    u = np.log(frame["theta"]) - np.log1p(-frame["theta"])
    return frame.assign(bright=u + 0.8 * rng.normal(size=rows), old=u + rng.normal(size=rows))


APART = {"census": ["rich"], "lights": ["bright"], "register": ["old"]}


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(Member(Linear()), id="Linear"),
        pytest.param(Member(ldf.Splines(), penalty=0.02), id="Splines", marks=pytest.mark.full),
        pytest.param(
            Member(ldf.GaussianProcess(inducing=20), penalty=0.02),
            id="GaussianProcess",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_is_solved_holds_whatever_sources_a_unit_lacks(member: Member) -> None:
    """Although no unit that it learned from lacks any."""
    learn, new = apart(700, 1), apart(3000, 2)
    fitted = Fusion("binomial", PRIMARY, APART, ensemble=Ensemble((member,), parts=2)).fit(learn)
    for many in (1, 2, 3):
        for kept in combinations(APART, many):
            frame = new.drop(columns=[APART[source][0] for source in APART if source not in kept])
            low, high = fitted.posterior(frame, given="auxiliary").interval(0.9)
            inside = ((low <= new["theta"]) & (new["theta"] <= high)).mean()
            assert 0.86 < inside < 0.94, (kept, inside)
    # What one source says more, another could say less: each says the rate that it tells of.
    rates = fitted.pseudo_observations(new).groupby("source")["rate"].mean()
    assert ((rates > 0.3) & (rates < 0.7)).all(), rates


def test_independent_sources_simply_add() -> None:
    """What one is worth hangs on no other. Of copies the sum is then too sure."""
    learn, new = villages(800, seed=1), villages(2000, seed=2)
    for frame in (learn, new):
        frame["bright"] = frame["rich"]
    two = {"census": ["rich"], "lights": ["bright"]}
    line = Ensemble((Member(Linear()),), parts=2)
    fitted = Fusion("binomial", PRIMARY, two, independent=True, ensemble=line).fit(learn)
    (trained,) = fitted.learned_.trained

    def said(frame: pd.DataFrame) -> Any:
        return trained.said(fitted._read(frame)[0].x).pseudo

    both = said(new)
    one, other = said(new.drop(columns="bright")), said(new.drop(columns="rich"))
    for whole, mine, theirs in zip(*(p.coordinates() for p in (both, one, other)), strict=True):
        np.testing.assert_allclose(whole, mine + theirs, rtol=1e-12)


def test_a_source_of_five_hundred_columns_of_noise_does_not_drown_the_others() -> None:
    wide = [f"c{i}" for i in range(500)]
    member = Member(NETWORK, width=32, dropout=0.2, penalty=1e-2)  # of the default ensemble
    one = Ensemble((member,), parts=4)
    both = {"census": SOURCES["census"], "wide": wide}

    def wider(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
        noise = np.random.default_rng(seed).normal(size=(len(frame), len(wide)))
        return frame.join(pd.DataFrame(noise, frame.index, wide))

    learn, new = wider(villages(300, seed=3), 5), wider(villages(2000, seed=4), 6)
    usual = Fusion("binomial", PRIMARY, SOURCES["census"], ensemble=one).fit(learn)
    fitted = Fusion("binomial", PRIMARY, both, ensemble=one).fit(learn)
    narrow, whole, none = (
        float(np.nanmean(scores))
        for scores in (
            usual.log_scores(new),
            fitted.log_scores(new),
            fitted.log_scores(new.drop(columns=[*SOURCES["census"], *wide])),
        )
    )
    assert whole - none > 0.5 * (narrow - none), (whole, narrow, none)
    low, high = fitted.posterior(new, given="auxiliary").interval(0.9)
    assert ((low <= new["theta"]) & (new["theta"] <= high)).mean() > 0.87


def test_one_source_by_name_is_the_plain_list() -> None:
    line = Ensemble((Member(Linear()),), parts=2)
    named = Fusion("binomial", PRIMARY, {"census": SOURCES["census"]}, ensemble=line).fit(VILLAGES)
    plain = Fusion("binomial", PRIMARY, SOURCES["census"], ensemble=line).fit(VILLAGES)
    np.testing.assert_array_equal(
        named.posterior(VILLAGES).mean(), plain.posterior(VILLAGES).mean()
    )


def test_a_saved_model_answers_alike(tmp_path: Path) -> None:
    model().save(tmp_path / "model.ldf")
    again = ldf.load(tmp_path / "model.ldf")
    for given in ("auxiliary", "both"):
        np.testing.assert_array_equal(
            again.posterior(VILLAGES, given=given).mean(),
            model().posterior(VILLAGES, given=given).mean(),
        )
    pd.testing.assert_frame_equal(
        again.pseudo_observations(VILLAGES), model().pseudo_observations(VILLAGES)
    )


def test_sources_are_left_out_at_random_but_never_all_of_a_row() -> None:
    of = SummedModel(
        ldf.Binomial(), Network(), sources=(Source("a", 0, 1), Source("b", 1, 2)), left_out=0.5
    )
    there = np.array([[True, True]] * 4000 + [[True, False]] * 4000)
    kept = np.asarray(of.some(there, np.uint32(7)))
    assert kept.any(1).all()
    assert (kept <= there).all()
    # Of two, both stay with chance 1/4, and if neither would, both do.
    assert kept[:4000].all(1).mean() == pytest.approx(0.5, abs=0.03)


# --- alone and beside the others ----------------------------------------------------------------

FOUR = tuple(Source(name, 2 * i, 2 * i + 2) for i, name in enumerate("abcd"))


def rows_with(*there: str) -> tuple[SummedModel, Any, np.ndarray, np.ndarray]:
    """A sum of four with random weights; rows that have these, and their columns."""
    rng = np.random.default_rng(3)
    of = SummedModel(ldf.Binomial(), Network(shared=(4,), branch=(), by="log"), sources=FOUR)
    weights = of.init(rng, 12)
    for own in weights:
        own["alone"]["branches"][0][-1]["bias"] += 0.7
        own |= {name: rng.normal(size=own[name].shape) for name in ("slope", "level")}
    x, marks = rng.normal(size=(5, 8)), [source.name in there for source in FOUR]
    return of, weights, np.concatenate([x, np.tile(marks, (5, 1))], 1), x


def test_a_source_alone_says_what_a_model_of_its_own_would() -> None:
    of, weights, rows, x = rows_with("b")
    table, ground = Model(of.family, of.mapping), of.ground()
    own = table.pseudo_observations(weights[1]["alone"], ground, x[:, 2:4])
    said = of.pseudo_observations(weights, ground, rows)
    for mine, theirs in zip(said.coordinates(), own.coordinates(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_each_of_the_others_that_lacks_has_a_slope_and_a_level() -> None:
    """Of the outputs; and all that are there share the whole."""
    of, weights, rows, x = rows_with("a", "b")
    table, ground, own = Model(of.family, of.mapping), of.ground(), weights[1]
    beside = table.mapped(own["beside"], x[:, 2:4])
    slope, level = (LITTLE * own[name][1:].sum(0) for name in ("slope", "level"))  # of c and d
    expected = of.from_outputs(beside * (1 - slope) - level, ground)
    found = of.terms(weights, ground, rows)[1]
    for mine, whole in zip(found.coordinates(), expected.coordinates(), strict=True):
        np.testing.assert_allclose(mine, whole / 2, rtol=1e-5)


SEEN = {"successes": np.full(5, 2.0), "trials": np.full(5, 7.0)}


def test_a_row_teaches_with_every_subset_of_its_sources() -> None:
    """As a row does that has just these, each once."""
    of, weights, rows, _ = rows_with("a", "c", "d")
    ground = of.ground()
    lessons = of.lessons(weights, ground, rows, SEEN)
    found = sorted(float(told[0]) for told, counts in lessons if np.all(counts))
    subsets = [some for many in (1, 2, 3) for some in combinations("acd", many)]
    each = [of.log_predictive(weights, ground, rows_with(*some)[2], SEEN)[0] for some in subsets]
    np.testing.assert_allclose(found, sorted(map(float, each)), rtol=1e-5)
    assert all(np.all(counts) or not np.any(counts) for _, counts in lessons)
    weight = [float(np.mean(counts)) for _, counts in lessons if np.all(counts)]
    assert sorted(weight) == [0.25] * 4 + [1.0] * 3  # several together once, and each alone


def test_of_many_sources_a_row_teaches_with_all_without_each_and_with_each_alone() -> None:
    """And, in learning, with some at random."""
    sources = tuple(Source(name, i, i + 1) for i, name in enumerate("abcdef"))
    of = SummedModel(ldf.Binomial(), Network(shared=(4,), branch=()), sources=sources)
    rng, ground = np.random.default_rng(3), of.ground()
    weights = of.init(rng, 12)
    rows = np.concatenate([rng.normal(size=(5, 6)), np.ones((5, 6))], 1)
    assert len(of.lessons(weights, ground, rows, SEEN)) == 1 + 6 + 6
    drawn = of.lessons(weights, ground, rows, SEEN, 0.0, np.uint32(1))
    assert len(drawn) == 1 + 6 + 1 + 6
    without = rows.copy()
    without[:, 6] = 0
    single = of.log_predictive(weights, ground, without, SEEN)
    np.testing.assert_allclose(of.lessons(weights, ground, rows, SEEN)[1][0], single, rtol=1e-5)


def test_a_row_is_read_once_whatever_it_teaches() -> None:
    """By both mappings of each source: an image is dear to read for every subset."""
    told = []

    def start(inputs: int, outputs: int, key: Any) -> Any:
        return {"matrix": jax.random.normal(key, (inputs, outputs))}

    def read(weights: Any, x: Any) -> Any:
        told.append(1)
        return x @ weights["matrix"]

    sources = tuple(Source(name, i, i + 1) for i, name in enumerate("abc"))
    of = SummedModel(ldf.Binomial(), ldf.Own(start, read), sources=sources)
    rng, ground = np.random.default_rng(3), of.ground()
    rows = np.concatenate([rng.normal(size=(5, 3)), np.ones((5, 3))], 1)
    weights = of.init(rng, 6)
    told.clear()
    assert len(of.lessons(weights, ground, rows, SEEN)) == 7
    assert len(told) == 6


def test_learning_is_stopped_by_the_mean_of_what_a_row_teaches() -> None:
    of, weights, rows, _ = rows_with("a", "c")
    ground = of.ground(of.family.prior(0.5, 0.5))
    of_each = [rows, rows_with("a")[2], rows_with("c")[2]]
    each = [of.log_predictive(weights, ground, some, SEEN) for some in of_each]
    found = of.learned_well(weights, ground, rows, SEEN)
    np.testing.assert_allclose(found, np.mean(each, 0), rtol=1e-5)
    table = Model(of.family, of.mapping)
    one = table.init(np.random.default_rng(0), 2)
    same = (one, ground, rows[:, :2], SEEN)
    np.testing.assert_array_equal(table.learned_well(*same), table.log_predictive(*same))


def test_trees_tell_by_themselves_whether_a_source_is_alone() -> None:
    assert not any(map(SummedModel(ldf.Binomial(), ldf.Trees(), sources=FOUR).twofold, range(4)))
    assert all(map(SummedModel(ldf.Binomial(), Linear(), sources=FOUR).twofold, range(4)))


def test_one_source_of_three_alone_is_as_good_as_a_model_of_it() -> None:
    """Where beside the others it says other things: here they leave low rates to it."""

    def areas(rows: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        u = rng.normal(size=(rows, 3)) + rng.normal(size=rows)[:, None]
        theta = 1 / (1 + np.exp(5 - 4 * u[:, 0] - u[:, 1:].sum(1) / 2))
        frame = pd.DataFrame(u, columns=list("abc"))
        return frame.assign(asked=16.0, lit=rng.binomial(16, theta).astype(float))

    learn, new = areas(600, 0), areas(2000, 1)
    three = Fusion("binomial", PRIMARY, {n: [n] for n in "abc"}, ensemble=SMALL).fit(learn)
    single = Fusion("binomial", PRIMARY, ["a"], ensemble=SMALL).fit(learn)
    behind = single.log_scores(new) - three.log_scores(new[["a", "asked", "lit"]])
    assert behind.mean() < 0.02, behind.mean()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"auxiliary": {"a": ["rich"], "b": ["rich"]}}, "'rich' is twice among auxiliary columns"),
        ({"structure": ldf.Mixture(2)}, "is not for several sources"),
    ],
)
def test_what_sources_cannot_be_is_said(change: dict[str, Any], said: str) -> None:
    words: dict[str, Any] = {"family": "binomial", "primary": PRIMARY, "auxiliary": SOURCES}
    with pytest.raises(DataError, match=said):
        Fusion(**words | change).fit(VILLAGES)
