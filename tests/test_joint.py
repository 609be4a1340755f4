"""Several primary sources of one θ: their statistics add, in any order; what a unit lacks says
nothing; and all that answers for one source answers for several."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import cases
import ldf
from ldf import DataError, Ensemble, Fusion, Linear, Member, Network, cli, compiled
from ldf.data import Columns, read
from ldf.fit import Schedule
from ldf.mixed import MixedModel
from ldf.recognise import find_parts

NAN = np.nan
TWO = ldf.Joint(survey=ldf.Binomial(), visits=ldf.Geometric())
THREE = ldf.Joint(
    here=ldf.Multinomial(classes=3), there=ldf.Multinomial(classes=3), late=ldf.Multinomial(3)
)

# A family, a prior, columns of three units that lack some sources, θ under the prior, and log
# p(y | θ) of each unit in SciPy's words.
JOINED: dict[str, tuple[Any, ...]] = {
    "binomial and geometric": (
        TWO,
        TWO.prior(1.5, 2.5),
        {
            "survey.successes": [3, NAN, 0],
            "survey.trials": [10, NAN, 4],
            "visits.failures": [4, 7, NAN],
            "visits.waits": [2, 1, NAN],
        },
        cases.beta_nodes,
        lambda p: np.stack(
            [
                stats.binom.logpmf(3, 10, p) + stats.nbinom.logpmf(4, 2, p),
                stats.nbinom.logpmf(7, 1, p),
                stats.binom.logpmf(0, 4, p),
            ]
        ),
    ),
    "poisson and exponential": (
        ldf.Joint(register=ldf.Poisson(), watch=ldf.Exponential()),
        ldf.Poisson().prior(count=2.0, exposure=3.0),
        {
            "register.count": [5, 1, NAN],
            "register.exposure": [2.5, 4, NAN],
            "watch.time": [1.5, NAN, 6.0],
            "watch.events": [3, NAN, 2],
        },
        cases.gamma_nodes,
        lambda rate: np.stack(
            [
                stats.poisson.logpmf(5, 2.5 * rate) + stats.gamma.logpdf(1.5, 3, scale=1 / rate),
                stats.poisson.logpmf(1, 4 * rate),
                stats.gamma.logpdf(6.0, 2, scale=1 / rate),
            ]
        ),
    ),
    "two instruments": (
        ldf.Joint(old=ldf.Gaussian(variance=2.0), new=ldf.Gaussian()),
        ldf.Gaussian().prior(mean=0.5, variance=1.5),
        {
            "old.mean": [1.0, NAN, -0.4],
            "old.n": [3, NAN, 1],
            "new.mean": [0.2, 1.4, NAN],
            "new.variance": [0.5, 0.3, NAN],
        },
        cases.gaussian_nodes,
        lambda mean: np.stack(
            [
                stats.norm.logpdf(1.0, mean, np.sqrt(2 / 3))
                + stats.norm.logpdf(0.2, mean, np.sqrt(0.5)),
                stats.norm.logpdf(1.4, mean, np.sqrt(0.3)),
                stats.norm.logpdf(-0.4, mean, np.sqrt(2.0)),
            ]
        ),
    ),
    "three counts of classes": (
        THREE,
        THREE.prior(counts=np.array([1.0, 2.0, 1.5])),
        {
            "here.counts": [[2, 1, 0], [NAN] * 3, [0, 0, 3]],
            "there.counts": [[0, 4, 1], [1, 1, 0], [NAN] * 3],
            "late.counts": [[NAN] * 3, [0, 0, 2], [1, 0, 0]],
        },
        cases.dirichlet_nodes,
        lambda p: np.stack(
            [
                sum(stats.multinomial.logpmf(k, sum(k), p) for k in of_unit)
                for of_unit in ([[2, 1, 0], [0, 4, 1]], [[1, 1, 0], [0, 0, 2]],
                                [[0, 0, 3], [1, 0, 0]])
            ]
        ),
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("case", JOINED.values(), ids=JOINED)


def one_by_one(family: Any, y: dict[str, Any], of: Any) -> list[Any]:
    """Of each unit, what each of the sources it has gives on its own."""
    found = []
    for unit in range(3):
        own = []
        for name, source in family.sources:
            columns = {w: np.asarray(v, float)[[unit]] for w, v in family.part(name, y).items()}
            if not np.isnan(next(iter(columns.values()))).any():
                own.append(of(source, columns))
        found.append(own)
    return found


# --- the exact core -----------------------------------------------------------------------------


@EACH
def test_statistics_of_sources_add(case: tuple[Any, ...]) -> None:
    family, _, y, _, _ = case
    found = family.statistic(**y)
    by_hand = one_by_one(family, y, lambda source, own: source.statistic(**own))
    for unit, own in enumerate(by_hand):
        total = sum(own[1:], start=own[0])
        for one, other in zip(found[[unit]].coordinates(), total.coordinates(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-15)


@EACH
def test_the_log_predictive_is_the_integral_of_the_product_of_likelihoods(
    case: tuple[Any, ...],
) -> None:
    family, prior, y, nodes, log_likelihood = case
    theta, weight = nodes(prior)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = np.nan_to_num(np.exp(log_likelihood(theta)))
    np.testing.assert_allclose(
        family.log_predictive(prior, **y), np.log(likelihood @ weight), rtol=1e-8
    )


@EACH
def test_the_posterior_is_the_prior_times_the_likelihoods(case: tuple[Any, ...]) -> None:
    family, prior, y, nodes, log_likelihood = case
    theta, weight = nodes(prior)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.nan_to_num(np.exp(log_likelihood(theta))) * weight
    share /= share.sum(1, keepdims=True)
    known = family.after(
        prior.spread((3,)), {w: np.asarray(v) for w, v in y.items()}, np.ones(3, bool)
    )
    post = family.posterior(known)
    mean = share @ theta
    np.testing.assert_allclose(post.mean(), mean, rtol=1e-7)
    np.testing.assert_allclose(post.sd() ** 2, share @ theta**2 - mean**2, rtol=1e-5)


@EACH
def test_the_order_of_sources_does_not_matter(case: tuple[Any, ...]) -> None:
    family, prior, y, _, _ = case
    first = family.log_predictive(prior, **y)
    for order in permutations(family.sources):
        other = ldf.Joint(order)
        np.testing.assert_allclose(other.log_predictive(prior, **y), first, rtol=1e-12)
        np.testing.assert_allclose(other.log_base(**y), family.log_base(**y), rtol=1e-12)


@EACH
def test_what_a_unit_lacks_says_nothing(case: tuple[Any, ...]) -> None:
    """To the bit, and so does a source of which there are no columns at all."""
    family, prior, y, _, _ = case
    name, source = family.sources[0]
    others = {w: np.full(np.shape(v), NAN) for w, v in y.items() if not w.startswith(name)}
    seen = one_by_one(family, y, lambda *_: None)
    own = {w: v for w, v in y.items() if w.startswith(name)}
    rows = [
        i for i in range(3) if not np.isnan(np.asarray(next(iter(own.values())), float)[i]).any()
    ]
    own = {w: np.asarray(v, float)[rows] for w, v in own.items()}
    others = {w: v[rows] for w, v in others.items()}
    alone = source.log_predictive(prior, **family.part(name, own))
    np.testing.assert_array_equal(family.log_predictive(prior, **own, **others), alone)
    np.testing.assert_array_equal(family.log_predictive(prior, **own), alone)
    assert len(seen[0]) >= 2


@EACH
def test_compiled_it_is_the_same_with_slopes_even_where_nobody_has_a_source(
    case: tuple[Any, ...],
) -> None:
    family, prior, y, _, _ = case
    name = family.sources[0][0]
    nobody = {w: np.full(np.shape(v), NAN) if w.startswith(name) else v for w, v in y.items()}

    @jax.jit
    @jax.value_and_grad
    def total(natural: Any, columns: Any) -> Any:
        return family.log_predictive(natural, **columns).sum()

    for columns in (y, nobody):
        with jax.enable_x64(True):
            traced = {w: jnp.asarray(v, float) for w, v in columns.items()}
            found, slope = total(jax.tree.map(jnp.asarray, prior), traced)
        assert float(found) == pytest.approx(family.log_predictive(prior, **columns).sum(), 1e-12)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_given_theta_sources_are_independent() -> None:
    y = JOINED["binomial and geometric"][2]
    theta = np.array([0.2, 0.5, 0.7])
    wanted = [
        stats.binom.logpmf(3, 10, 0.2) + stats.nbinom.logpmf(4, 2, 0.2),
        stats.nbinom.logpmf(7, 1, 0.5),
        stats.binom.logpmf(0, 4, 0.7),
    ]
    np.testing.assert_allclose(TWO.log_likelihood(theta, **y), wanted, rtol=1e-12)


def test_a_predictive_is_of_one_source() -> None:
    natural = TWO.prior([2.0, 3.0], [3.0, 1.0])
    one = ldf.Binomial().predictive(natural, trials=8)
    other = ldf.Geometric().predictive(natural, waits=2)
    np.testing.assert_array_equal(TWO.predictive(natural, trials=8).mean(), one.mean())
    found = TWO.predictive(natural, of="visits", waits=2)
    np.testing.assert_array_equal(found.quantile(0.4), other.quantile(0.4))
    assert TWO.likelihood(0.5, of="survey", trials=8).mean() == 4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ldf.Joint(), "joins no sources; name them"),
        (
            lambda: ldf.Joint(a=ldf.Binomial(), b=ldf.Poisson()),
            "'b' is Poisson, whose prior is Gamma; 'a' is Binomial, with Beta; join sources of one",
        ),
        (
            lambda: ldf.Joint(a=ldf.Poisson(), b=ldf.ZeroInflatedPoisson(zeros=0.1)),
            "'b' is ZeroInflatedPoisson, whose data have no statistic that adds; join families",
        ),
        (
            lambda: ldf.Joint(a=ldf.Misreported()),
            "'a' is Misreported, whose data have no statistic",
        ),
        (lambda: ldf.Joint(a=ldf.CensoredPoisson()), "'a' is CensoredPoisson, whose data have no"),
        (
            lambda: ldf.Joint(a=ldf.NonConjugate(ldf.Poisson(), lambda theta, **y: theta)),
            "'a' is NonConjugate, whose data have no statistic that adds",
        ),
        (lambda: ldf.Joint(a=TWO), "'a' is a Joint inside another; name all of its sources in one"),
        (lambda: ldf.Joint(ldf.Binomial()), "is one family without a name"),
        (lambda: ldf.Joint(a="binomial"), "'a': 'binomial' is not a family"),
        (lambda: ldf.Joint({"a survey": ldf.Binomial()}), "'a survey' is not a name"),
        (
            lambda: ldf.Joint(a=ldf.Multinomial(classes=3), b=ldf.Multinomial(classes=4)),
            "'b' has 4 classes or components, and 'a' has 3",
        ),
        (lambda: TWO.source("clinic"), "'clinic' is not known; choose one of 'survey', 'visits'"),
        (lambda: ldf.Binomial().source("survey"), "leave it out: there is one source only"),
        (lambda: TWO.statistic(), "'columns' is not given"),
        (lambda: TWO.statistic(successes=[1], trials=[2]), "'successes' is not known"),
        (
            lambda: TWO.statistic(**{"survey.successes": [1, 2], "survey.trials": [2, NAN]}),
            "'trials', row 1 is missing",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(DataError) as told:
        make()
    assert sentence in str(told.value)


# --- frames -------------------------------------------------------------------------------------

PRIMARY = {
    "survey": {"successes": "lit", "trials": "asked"},
    "visits": {"failures": "dark", "waits": "walks"},
}


def villages(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    theta = 1 / (1 + np.exp(-x))
    asked = rng.integers(3, 25, rows)
    frame = pd.DataFrame(
        {
            "x": x,
            "asked": asked,
            "lit": rng.binomial(asked, theta),
            "walks": 2,
            "dark": rng.negative_binomial(2, theta),
            "effect": rng.uniform(1, 3, rows),
        },
        index=[f"v{i}" for i in range(rows)],
    ).astype(float)
    frame.loc[frame.index[::3], ["lit", "asked"]] = NAN
    frame.loc[frame.index[::4], ["dark", "walks"]] = NAN
    return frame


def test_a_row_has_primary_data_if_it_has_any_source() -> None:
    frame = villages()
    data = read(frame, TWO, Columns(PRIMARY, ["x"]))
    survey, visits = frame["lit"].notna().to_numpy(), frame["dark"].notna().to_numpy()
    assert 0 < (survey & visits).sum() < (survey | visits).sum() < len(frame)
    np.testing.assert_array_equal(data.seen, survey | visits)
    np.testing.assert_array_equal(data.of("survey").seen, survey)
    np.testing.assert_array_equal(data.of("visits").outcome()[visits], frame["dark"][visits])
    assert data.notes[:3] == (
        "55 of 60 rows have primary data of some source.",
        "Source 'survey': 40 of 60 rows have primary data.",
        "Source 'visits': 45 of 60 rows have primary data.",
    )
    later = read(frame.drop(columns=["dark"]), TWO, Columns(PRIMARY, ["x"]), data.schema)
    np.testing.assert_array_equal(later.seen, survey)


def test_each_source_has_a_design_effect_of_its_own() -> None:
    frame = villages()
    family = ldf.Joint(survey=ldf.Binomial(), second=ldf.Binomial(), visits=ldf.Geometric())
    primary = PRIMARY | {"second": {"successes": "lit2", "trials": "asked2"}}
    frame = frame.assign(lit2=frame["lit"] // 2, asked2=frame["asked"])
    effects = {"survey": "effect", "second": 2.0}
    data = read(frame, family, Columns(primary, ["x"], design_effect=effects))
    found = data.family.statistic(**{w: v[data.seen] for w, v in data.y.items()})
    seen = frame[data.seen].fillna(0.0)
    made = seen["lit"] / seen["effect"] + seen["lit2"] / 2 + seen["walks"]
    np.testing.assert_allclose(found.successes, made, rtol=1e-12)
    n = seen["asked"] / seen["effect"] + seen["asked2"] / 2 + seen["walks"] + seen["dark"]
    np.testing.assert_allclose(found.n, n, rtol=1e-12)


def test_sources_may_share_what_is_known_beforehand_but_no_outcome() -> None:
    family = ldf.Joint(a=ldf.Poisson(), b=ldf.Poisson())
    frame = pd.DataFrame({"x": [1.0, 2, 3], "k": [1, 0, 2], "m": [2, 1, 1], "n": [5.0, 6, 7]})
    primary = {"a": {"count": "k", "exposure": "n"}, "b": {"count": "m", "exposure": "n"}}
    data = read(frame, family, Columns(primary, ["x"]))
    found = data.family.statistic(**data.y)
    np.testing.assert_array_equal(found.count, [3, 1, 3])
    np.testing.assert_array_equal(found.exposure, [10, 12, 14])
    primary["b"]["count"] = "k"
    with pytest.raises(DataError, match="'k' is twice among primary columns"):
        read(frame, family, Columns(primary, ["x"]))


@pytest.mark.parametrize(
    ("primary", "more", "sentence"),
    [
        ({"successes": "lit", "trials": "asked"}, {}, "'successes' is not a source; there are"),
        ({"survey": "lit"}, {}, "'survey' has no words; there are 'survey', 'visits'"),
        ({"survey": PRIMARY["survey"]}, {}, "'visits' is a source without columns; say which"),
        (PRIMARY | {"clinic": {}}, {}, "'clinic' is not a source"),
        (PRIMARY | {"visits": {"successes": "dark"}}, {}, "'successes' is not a word of Geometric"),
        (PRIMARY | {"visits": {"waits": "walks"}}, {}, "'failures' is not given; say which column"),
        (PRIMARY, {"design_effect": 2.0}, "'design_effect': 2 is not a source"),
        (PRIMARY, {"design_effect": {"visits": 2.0}}, "is for counts, and Geometric has none"),
        (PRIMARY, {"auxiliary": ["x", "dark"]}, "'dark' is the outcome and auxiliary"),
        (PRIMARY | {"visits": {"failures": "none"}}, {}, "'none' has no value in any row"),
        (PRIMARY | {"visits": {"failures": "half"}}, {}, "'half', row 'v1': 0.5 is not a whole"),
    ],
)
def test_what_is_wrong_with_a_source_is_told(
    primary: Any, more: dict[str, Any], sentence: str
) -> None:
    frame = (
        villages()
        .assign(none=NAN, half=0.5)
        .assign(half=lambda f: f["half"].where(f["x"] == f["x"].iloc[1]))
    )
    with pytest.raises(DataError) as told:
        read(frame, TWO, Columns(primary, **{"auxiliary": ["x"]} | more))
    assert sentence in str(told.value)


def test_a_plain_family_has_no_sources() -> None:
    with pytest.raises(DataError, match="'survey' is not a word of Binomial"):
        read(villages(), ldf.Binomial(), Columns({"survey": PRIMARY["survey"]}, ["x"]))
    columns = Columns(PRIMARY["survey"], ["x"], design_effect={"survey": 2.0})
    with pytest.raises(DataError, match="is by source, and there is one"):
        read(villages(), ldf.Binomial(), columns)


# --- models -------------------------------------------------------------------------------------

INSTRUMENTS = ldf.Joint(gauge=ldf.Gaussian(), report=ldf.Gaussian(variance=0.5))
MEASURED = {
    "gauge": {"mean": "level", "variance": "error"},
    "report": {"mean": "told", "n": "many"},
}
LINE = Ensemble((Member(Linear(constant_count=True)),), parts=3)
NET = Ensemble(
    (Member(Network(shared=(3,), branch=())),), parts=1, schedule=Schedule(20, 20, chunk=10)
)


def wells(rows: int, seed: int) -> pd.DataFrame:
    """θ ~ N(x, 0.6²), seen by a gauge, by reports, by both or by none."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    theta = x + 0.6 * rng.normal(size=rows)
    error, many = rng.uniform(0.1, 0.6, rows), rng.integers(1, 4, rows)
    frame = pd.DataFrame(
        {
            "x": x,
            "level": theta + np.sqrt(error) * rng.normal(size=rows),
            "error": error,
            "told": theta + np.sqrt(0.5 / many) * rng.normal(size=rows),
            "many": many.astype(float),
            "theta": theta,
        }
    )
    frame.loc[frame.index % 3 == 0, ["level", "error"]] = NAN
    frame.loc[frame.index % 4 == 0, ["told", "many"]] = NAN
    return frame


WELLS = wells(400, 0)


@cache
def fitted() -> Fusion:
    return Fusion(INSTRUMENTS, MEASURED, ["x"], ensemble=LINE).fit(WELLS)


def test_with_both_sources_the_posterior_is_narrower_and_covers() -> None:
    model, new = fitted(), wells(3000, 1)
    gauge, report = new["level"].notna(), new["told"].notna()
    post = model.posterior(new)
    low, high = post.interval(0.9)
    inside = (low <= new["theta"]) & (new["theta"] <= high)
    widths = []
    for have in (gauge & report, gauge & ~report, ~gauge & report, ~gauge & ~report):
        chance = np.sqrt(0.9 * 0.1 / have.sum())
        assert inside[have].mean() == pytest.approx(0.9, abs=4 * chance + 0.01)
        widths.append(post.sd()[have].mean())
    assert widths[0] < min(widths[1:3])
    assert max(widths[1:3]) < widths[3]


def test_a_posterior_is_the_sum_of_what_is_known() -> None:
    model, new = fitted(), wells(6, 2)
    data, _, part = model._read(new)
    said = model._fitted().said(data.x, part)
    precision = (
        said.natural.precision
        + ((1 / new["error"]).fillna(0) + (new["many"] / 0.5).fillna(0)).to_numpy()
    )
    potential = (
        said.natural.potential
        + (
            (new["level"] / new["error"]).fillna(0) + (new["told"] * new["many"] / 0.5).fillna(0)
        ).to_numpy()
    )
    np.testing.assert_allclose(model.posterior(new).mean(), (potential / precision)[0], rtol=1e-12)
    np.testing.assert_allclose(model.posterior(new).sd(), precision[0] ** -0.5, rtol=1e-12)


def test_scores_are_of_all_that_a_unit_has() -> None:
    model, new = fitted(), wells(12, 3)
    data, _, part = model._read(new)
    natural = model._said(data, part, "auxiliary").natural
    mean, v = (natural.potential / natural.precision)[0], (1 / natural.precision)[0]
    scores = model.log_scores(new)
    for i, row in new.iterrows():
        values = [row["level"], row["told"]]
        noise = [row["error"], 0.5 / row["many"]]
        here = ~np.isnan(values)
        if not here.any():
            assert np.isnan(scores[i])
            continue
        covariance = np.diag(noise)[here][:, here] + v[i]
        wanted = stats.multivariate_normal.logpdf(
            np.array(values)[here], [mean[i]] * here.sum(), covariance
        )
        assert scores[i] == pytest.approx(wanted, rel=1e-9)


def test_predictives_are_of_the_source_that_is_named() -> None:
    model, new = fitted(), wells(40, 4)
    both = new.dropna()
    first = model.predictive(both)
    named = model.predictive(both, of="gauge")
    np.testing.assert_array_equal(first.mean(), named.mean())
    other = model.predictive(both, of="report")
    wanted = stats.norm.logpdf(both["told"], other.mean(), other.sd())
    np.testing.assert_allclose(other.log_prob(), wanted, rtol=1e-9)
    with pytest.raises(DataError, match=r"column 'many', row 0 is missing.*give n=…"):
        model.predictive(new, of="report")
    assert len(model.predictive(new, of="report", n=2)) == 40
    with pytest.raises(DataError, match="'trials' is not known; choose one of 'n', 'variance'"):
        model.predictive(new, of="report", trials=2)
    with pytest.raises(DataError, match="'phone' is not known; choose one of 'gauge', 'report'"):
        model.predictive(new, of="phone")


def test_a_row_that_was_learned_from_is_known_by_any_of_its_sources() -> None:
    model = fitted()
    data, _, part = model._read(WELLS)
    assert (part[data.seen] >= 0).all()
    gauge = WELLS["level"].notna().to_numpy()
    for frame in (WELLS.drop(columns="told"), WELLS.assign(told=0.0, many=1.0)):
        _, _, again = model._read(frame)
        np.testing.assert_array_equal(again[gauge], part[gauge])
    moved = read(WELLS.assign(level=WELLS["level"] + 1, told=NAN), INSTRUMENTS,
                 model.columns(), model.schema_)  # fmt: skip
    assert (find_parts(moved, model.parts_) == -1).all()


def test_cross_validation_scores_all_and_predicts_one_source() -> None:
    frame = WELLS[:240]
    cv = ldf.cross_validate(fitted(), frame, 3)
    gauge, report = (frame[c].notna().to_numpy() for c in ("level", "told"))
    np.testing.assert_array_equal(cv.counted, gauge | report)
    assert list(cv.answers) == ["ldf"]
    natural = cv.answers["ldf"].said.natural
    score = INSTRUMENTS.log_predictive(
        natural[:, cv.counted], **{w: v[cv.counted] for w, v in cv.data.y.items()}
    )
    np.testing.assert_allclose(cv.answers["ldf"].log_score[cv.counted], score[0], rtol=1e-9)
    for of, have in ((None, gauge), ("gauge", gauge), ("report", report)):
        rows = cv.coverage("ldf", (0.5, 0.9), of=of)
        assert [row["units"] for row in rows] == [have.sum()] * 2
        assert all(abs(row["z"]) < 4 for row in rows)
        assert len(cv.pit("ldf", of=of)) == have.sum()
        law = cv.predictive("ldf", of)
        table = cv.to_frame(of)
        np.testing.assert_array_equal(np.isnan(table["mean"]), ~have[cv.counted])
        np.testing.assert_array_equal(table["mean"].dropna(), law.mean())
    assert cv.check("ldf", "mean", draws=50, of="report")[0]["quantity"] == "mean"
    assert cv.table()["coverage_90"][0] == cv.coverage("ldf", (0.9,), of="gauge")[0]["observed"]
    with pytest.raises(DataError, match="has no textbook regressions"):
        ldf.cross_validate(fitted(), frame, 3, baselines="random-effect")


def test_it_is_saved_and_loaded_and_shown(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "wells.ldf")
    again = ldf.load(tmp_path / "wells.ldf")
    assert [name for name, _ in again.family_.sources] == ["gauge", "report"]
    for of in ("gauge", "report"):
        design = {"variance": 0.5} if of == "gauge" else {"n": 2}
        one, other = (m.predictive(WELLS, of=of, **design).sd() for m in (model, again))
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(model.posterior(WELLS).mean(), again.posterior(WELLS).mean())
    page = ldf.report.write(model, WELLS, tmp_path / "page.html").read_text()
    assert "Primary sources that add: gauge (Gaussian), report (Gaussian)." in page
    assert "gauge.mean = level" in model._repr_html_()


def weights_of(model: Fusion) -> list[Any]:
    trained = model.learned_.trained[0]
    return jax.tree.leaves((trained.weights, trained.held, trained.ground))


@pytest.mark.parametrize("ensemble", [LINE, NET], ids=["linear", "network"])
def test_a_joint_of_one_is_that_family_to_the_bit(ensemble: Ensemble) -> None:
    frame = WELLS[:90]
    alone = Fusion(ldf.Gaussian(), MEASURED["gauge"], ["x"], ensemble=ensemble).fit(frame)
    family = ldf.Joint(gauge=ldf.Gaussian())
    joint = Fusion(family, {"gauge": MEASURED["gauge"]}, ["x"], ensemble=ensemble).fit(frame)
    for one, other in zip(weights_of(alone), weights_of(joint), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(alone.posterior(frame).mean(), joint.posterior(frame).mean())
    np.testing.assert_array_equal(alone.log_scores(frame), joint.log_scores(frame))


def test_rows_that_lack_a_source_are_learned_from_as_if_there_were_none() -> None:
    """The reports are there only in rows that do not count."""
    frame = WELLS[:90].assign(counts=WELLS["level"].notna().astype(float))
    frame[["told", "many"]] = frame[["told", "many"]].where(frame["counts"] == 0)
    joint = Fusion(INSTRUMENTS, MEASURED, ["x"], weights="counts", ensemble=LINE).fit(frame)
    alone = Fusion(ldf.Gaussian(), MEASURED["gauge"], ["x"], ensemble=LINE).fit(frame)
    for one, other in zip(weights_of(alone), weights_of(joint), strict=True):
        # Compiled otherwise, they stop near each other; a report that counts moves them by 0.05.
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_mixtures_of_mappings_take_sources() -> None:
    """Their log-predictive mixes that of all sources together."""
    family, _, y, _, _ = JOINED["two instruments"]
    model = MixedModel(family, Linear(), mixture=ldf.Mixture(2))
    weights, ground = model.init(np.random.default_rng(0), 1), model.ground(family.prior(0.0, 2.0))
    x = np.array([[0.3], [-1.0], [2.0]])
    with jax.enable_x64(True):
        columns = {w: jnp.asarray(v, float) for w, v in y.items()}
        found = model.log_predictive(weights, ground, jnp.asarray(x), columns)
        pseudo = jax.tree.map(
            np.asarray, model.pseudo_observations(weights, ground, jnp.asarray(x))
        )
    each = family.log_predictive(ground.prior + pseudo, **y)
    np.testing.assert_allclose(found, logsumexp(each, 0) - np.log(2), rtol=1e-9)


def test_a_regressor_refuses_several_outcomes() -> None:
    with pytest.raises(DataError, match="joins several outcomes, and y is one; use"):
        ldf.FusionRegressor(TWO).fit(np.zeros((9, 1)), np.arange(9))


def test_commands_answer_for_a_saved_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted().save(tmp_path / "wells.ldf")
    new = wells(9, 5)
    new.to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.setattr(compiled, "keep_compiled", lambda: None)

    def ran(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["ldf", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0)

    given = [str(tmp_path / name) for name in ("wells.ldf", "new.csv")]
    out = tmp_path / "out.csv"
    assert ran("predict", *given, "--source", "report", "--of", "n=2", "--out", str(out)) == 0
    wanted = fitted().predictive(new, of="report", n=2)
    np.testing.assert_allclose(pd.read_csv(out)["mean"], wanted.mean(), rtol=1e-9)
    assert ran("predict", *given, "--source", "phone", "--out", str(tmp_path / "no.csv")) != 0
    assert ran("inspect", given[0]) == 0
