"""Fusion keeps its contract: from a frame to posteriors, in the words of its columns.

Read the first test for what a user types, and SENTENCES for what a user reads. Then: posteriors
are sums worked out by hand, rows learned from are answered for by fits that have not seen them, and
a fit is a function of its data, settings and seed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats
from matplotlib import pyplot
from sklearn.base import clone

import ldf
from ldf import CalibrationWarning, DataError, DataWarning, Ensemble, Fusion, Linear, Member
from ldf.data import read
from units import BINOMIAL, FAMILIES, LINE, LINES, TINY, fusion, villages

VILLAGES = villages()
SURVEYED = VILLAGES["lit"].notna().to_numpy()


@pytest.fixture(scope="module")
def model() -> Fusion:
    return fusion(ensemble=TINY).fit(VILLAGES)


@pytest.fixture(scope="module")
def lines() -> Fusion:
    return fusion().fit(VILLAGES)


def test_what_a_user_types(model: Fusion) -> None:
    units = len(VILLAGES)
    post = model.posterior(VILLAGES)
    low, high = post.interval(0.9)
    for found in (post.mean(), post.sd(), post.mode(), post.entropy(), post.quantile(0.5), low):
        assert found.shape == (units,)
        assert found.dtype == np.float64
        assert np.isfinite(found).all()
    assert np.allclose(post.cdf(high) - post.cdf(low), 0.9, atol=1e-6)
    assert np.allclose(post.exceeds(post.quantile(0.7)), 0.3)
    assert np.allclose(post.exceeds(0.5), 1 - post.cdf(0.5))
    assert post.sample(1000, seed=0).shape == (1000, units)
    assert np.array_equal(post.sample(5, seed=1), post.sample(5, seed=1))
    shown = post.to_frame()
    assert list(shown) == [
        *("unit", "mean", "sd", "lower", "upper", "entropy"),
        *("pseudo_observations", "out_of_fold"),
    ]
    assert np.array_equal(shown["mean"], post.mean())
    assert "120 units given auxiliary and primary data; 100 were learned from" in repr(post)

    pred = model.predictive(VILLAGES)
    assert np.array_equal(np.isnan(pred.log_prob()), ~SURVEYED)
    assert np.array_equal(np.isnan(pred.cdf()), ~SURVEYED)
    asked = VILLAGES["asked"].to_numpy()
    auxiliary = model.posterior(VILLAGES, given="auxiliary")
    assert np.allclose(pred.mean(), asked * auxiliary.mean())
    low, high = pred.interval(0.9)
    assert ((low >= 0) & (low <= high) & (high <= asked)).all()
    assert pred.sample(100, seed=0).shape == (100, units)
    assert list(pred.to_frame()) == ["unit", "mean", "sd", "lower", "upper", "log_prob"]
    assert model.score(VILLAGES) == pytest.approx(np.nanmean(pred.log_prob()[asked > 0]))

    further = model.predictive(VILLAGES, given="both", trials=50)
    assert np.allclose(further.mean(), 50 * post.mean())
    worth = model.pseudo_observations(VILLAGES)
    assert list(worth) == ["unit", "source", "t", "n", "rate", "out_of_fold"]
    assert np.allclose(worth["n"], shown["pseudo_observations"])
    assert (worth["source"] == "auxiliary").all()


# --- Sums worked out by hand --------------------------------------------------------------------


def members(model: Fusion) -> tuple[np.ndarray, np.ndarray]:
    """Beta parameters of each member and row, before primary data."""
    data = read(VILLAGES, ldf.Binomial(), model.columns())
    before = model.learned_.said(data.x, model.learned_.part).natural
    return before.successes, before.failures


def test_the_posterior_is_a_mixture_of_betas_with_updated_shares(model: Fusion) -> None:
    a, b = members(model)
    k, n = VILLAGES["lit"].to_numpy(), VILLAGES["asked"].to_numpy()
    k, n = np.where(SURVEYED, k, 0), np.where(SURVEYED, n, 0)
    assert a.shape == (2, 120)
    joint = model.learned_.share[:, None] * scipy.stats.betabinom(n.astype(int), a, b).pmf(k)
    share = joint / joint.sum(0)
    assert np.abs(share - model.learned_.share[:, None]).max() > 0.01  # data do move them
    law = scipy.stats.beta(a + k, b + n - k)
    post = model.posterior(VILLAGES)
    assert np.allclose(post.mean(), (share * law.mean()).sum(0), rtol=1e-9)
    assert np.allclose(post.cdf(0.4), (share * law.cdf(0.4)).sum(0), rtol=1e-9)
    second = (share * (law.var() + law.mean() ** 2)).sum(0)
    assert np.allclose(post.sd() ** 2, second - post.mean() ** 2, rtol=1e-7)


def test_the_predictive_is_the_members_mixture(model: Fusion) -> None:
    a, b = members(model)
    k, n = (VILLAGES[c].to_numpy()[SURVEYED] for c in ("lit", "asked"))
    each = scipy.stats.betabinom(n.astype(int), a[:, SURVEYED], b[:, SURVEYED])
    by_hand = (model.learned_.share[:, None] * each.pmf(k)).sum(0)
    assert np.allclose(model.predictive(VILLAGES).log_prob()[SURVEYED], np.log(by_hand))


def test_without_primary_data_both_is_auxiliary(model: Fusion) -> None:
    both, auxiliary = (model.posterior(VILLAGES, given=given) for given in ("both", "auxiliary"))
    assert np.array_equal(both.mean()[~SURVEYED], auxiliary.mean()[~SURVEYED])
    assert np.array_equal(both.quantile(0.2)[~SURVEYED], auxiliary.quantile(0.2)[~SURVEYED])
    nothing = model.posterior(VILLAGES.drop(columns=["lit", "asked"]))
    assert not nothing.out_of_fold.any()
    assert np.array_equal(nothing.mean()[~SURVEYED], auxiliary.mean()[~SURVEYED])


def test_primary_data_alone_add_to_the_prior(model: Fusion) -> None:
    prior = model.learned_.prior().natural
    a, b = (np.unique(prior.successes).item(), np.unique(prior.failures).item())
    k, n = (np.where(SURVEYED, VILLAGES[c], 0) for c in ("lit", "asked"))
    post = model.posterior(VILLAGES, given="primary")
    assert np.allclose(post.mean(), (a + k) / (a + b + n))
    assert np.allclose(post.cdf(0.3), scipy.stats.beta(a + k, b + n - k).cdf(0.3))
    assert list(post.to_frame()) == ["unit", "mean", "sd", "lower", "upper", "entropy"]


def test_a_prior_given_by_hand_is_used(model: Fusion) -> None:
    prior = ldf.Binomial().prior(successes=2.0, failures=3.0)
    post = fusion(prior=prior).fit(VILLAGES).posterior(VILLAGES, given="primary")
    assert post.mean()[0] == pytest.approx(0.4)


# --- Who was learned from -----------------------------------------------------------------------


def test_rows_learned_from_are_known_again(model: Fusion) -> None:
    whole = pd.Series(model.posterior(VILLAGES).mean(), VILLAGES.index)
    order = np.random.default_rng(0).permutation(len(VILLAGES))
    for frame in (VILLAGES.iloc[order], VILLAGES.iloc[7:40:3], VILLAGES.sample(50, random_state=1)):
        found = model.posterior(frame)
        assert np.array_equal(found.mean(), whole[frame.index])
        assert np.array_equal(found.out_of_fold, frame["lit"].notna())
    others = villages(seed=1)
    between = pd.concat([others[:50], VILLAGES[20:40], others[50:]])
    found = model.posterior(between)
    assert np.array_equal(found.mean()[50:70], whole[20:40])
    assert found.out_of_fold[50:70].sum() == found.out_of_fold.sum()


def test_a_row_learned_from_is_answered_for_by_a_fit_without_it(model: Fusion) -> None:
    held = model.posterior(VILLAGES, given="auxiliary")
    new = model.posterior(VILLAGES.drop(columns="lit"), given="auxiliary")
    assert (held.mean() != new.mean())[SURVEYED].all()
    learned, row = model.learned_, int(np.flatnonzero(SURVEYED)[0])
    data = read(VILLAGES, ldf.Binomial(), model.columns())
    for j, member in enumerate(learned.trained):
        z = member.preprocess.apply(data.x[[row]])
        weights = _part(member.held, learned.part[row])
        alone = member.model.pseudo_observations(weights, member.ground, z)
        usual = member.model.usual(member.ground)
        wanted = learned.correction.corrected(alone, usual, np.ones((1, 0), bool))
        found = learned.said(data.x, learned.part).pseudo.successes[j, row]
        assert found == pytest.approx(float(wanted.successes[0]), rel=1e-5)


def _part(weights: Any, part: int) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf[part], weights)


def test_a_row_that_changed_is_a_new_one(model: Fusion) -> None:
    row = int(np.flatnonzero(SURVEYED & (VILLAGES["asked"] > 2))[0])
    changed = VILLAGES.copy()
    changed.iloc[row, changed.columns.get_loc("lit")] = 1 + changed["lit"].iloc[row] % 2
    found = model.posterior(changed, given="auxiliary")
    assert list(np.flatnonzero(found.out_of_fold != SURVEYED)) == [row]
    new = model.posterior(VILLAGES.drop(columns="lit"), given="auxiliary")
    assert found.mean()[row] == new.mean()[row]


def test_rows_that_hold_the_same_are_each_their_own() -> None:
    twice = pd.concat([VILLAGES[:60], VILLAGES[:60]], ignore_index=True)
    model = fusion().fit(twice)
    assert np.array_equal(model.posterior(twice).out_of_fold, twice["lit"].notna())
    data = read(twice, ldf.Binomial(), model.columns())
    own = model.learned_.said(data.x, model.learned_.part).pseudo.n
    share = model.learned_.share
    assert np.allclose(model.pseudo_observations(twice)["n"], share @ own)


# --- Frames -------------------------------------------------------------------------------------


def test_the_kind_of_frame_that_went_in_comes_out(lines: Fusion) -> None:
    small = VILLAGES[:20]
    wanted = lines.posterior(small).to_frame()
    assert list(wanted.index) == list(small.index)
    assert list(wanted["unit"]) == list(small.index)
    kinds: list[tuple[Any, type]] = [
        (pl.from_pandas(small), pl.DataFrame),
        (pa.Table.from_pandas(small, preserve_index=False), pa.Table),
        ({name: small[name].to_numpy() for name in small}, dict),
    ]
    for given, kind in kinds:
        post = lines.posterior(given)
        assert post.out_of_fold.sum() == SURVEYED[:20].sum()
        for frame in (post.to_frame(), lines.predictive(given).to_frame()):
            assert isinstance(frame, kind)
        assert isinstance(lines.pseudo_observations(given), kind)
        assert np.array_equal(np.asarray(post.to_frame()["mean"]), wanted["mean"])
    named = fusion(id="state").fit(VILLAGES)
    assert list(named.posterior(small).to_frame()["unit"]) == list(small["state"])


@pytest.mark.parametrize("kind", ["poisson", "gaussian", "multinomial"])
def test_other_families(kind: str) -> None:
    family, primary = FAMILIES[kind]
    model = fusion(family, primary).fit(VILLAGES)
    post = model.posterior(VILLAGES)
    shape = (120, 3) if kind == "multinomial" else (120,)
    low, high = post.interval(0.9)
    assert post.mean().shape == post.sd().shape == low.shape == post.quantile(0.5).shape == shape
    assert ((low < post.mean()) & (post.mean() < high)).all()
    assert post.sample(7, seed=0).shape == (7, *shape)
    assert (post.sd() < model.posterior(VILLAGES, given="auxiliary").sd())[SURVEYED].mean() > 0.9
    seen = VILLAGES[SURVEYED]
    pred = model.predictive(seen)
    assert np.isfinite(pred.log_prob()).all()
    assert pred.log_prob().shape == (100,)
    assert model.score(VILLAGES) == pytest.approx(pred.log_prob().mean())
    assert len(model.pseudo_observations(VILLAGES)) == 120
    if kind == "poisson":
        data = read(VILLAGES, ldf.Poisson(), model.columns())
        before = model.learned_.said(data.x, model.learned_.part).natural
        law = scipy.stats.gamma(before.count, scale=1 / before.exposure)
        by_hand = model.learned_.share @ law.mean()
        assert np.allclose(model.posterior(VILLAGES, given="auxiliary").mean(), by_hand)


def test_vectors_have_components_by_name() -> None:
    family, primary = FAMILIES["multinomial"]
    model = fusion(family, primary).fit(VILLAGES)
    post = model.posterior(VILLAGES)
    assert np.allclose(post.mean().sum(1), 1)
    green = model.posterior(VILLAGES, component="green")
    assert np.allclose(green.mean(), post.mean()[:, 1])
    assert np.allclose(post.component(1).mean(), green.mean())
    assert "mean of blue" in post.to_frame()
    assert {"mean", "entropy", "pseudo_observations"} <= set(green.to_frame())
    assert {"t of red", "rate of blue", "n"} <= set(model.pseudo_observations(VILLAGES))
    told = {
        "column 'component': 'purple' is not there; there are 'red', 'green', 'blue'.": (
            lambda: post.component("purple")
        ),
        "column 'component': -1 is not there; there are 'red', 'green', 'blue'.": (
            lambda: post.component(-1)
        ),
        "column 'theta' has 3 components; choose one by .component(…).": post.entropy,
    }
    for sentence, asked in told.items():
        with pytest.raises(DataError) as error:
            asked()
        assert str(error.value) == sentence


def test_a_design_effect_divides_counts() -> None:
    prior = ldf.Binomial().prior(successes=2.0, failures=3.0)
    model = fusion(prior=prior, design_effect=2.0).fit(VILLAGES)
    k, n = (VILLAGES[c].to_numpy()[SURVEYED] / 2 for c in ("lit", "asked"))
    post = model.posterior(VILLAGES, given="primary")
    assert np.allclose(post.mean()[SURVEYED], (2 + k) / (5 + n))
    assert np.isfinite(model.score(VILLAGES))
    with pytest.raises(DataError, match="give the value to be asked about"):
        model.predictive(VILLAGES).log_prob()  # whole numbers are predicted


# --- A fit is a function of its data, settings and seed -----------------------------------------


def test_a_refit_is_the_same_to_the_last_bit(model: Fusion) -> None:
    again, other = clone(model).fit(VILLAGES), clone(model).set_params(seed=1).fit(VILLAGES)
    mean = model.posterior(VILLAGES).mean()
    assert np.array_equal(again.posterior(VILLAGES).mean(), mean)
    assert not np.array_equal(other.posterior(VILLAGES).mean(), mean)


def test_parameters_are_scikit_learns() -> None:
    model = fusion(prior=ldf.Binomial().prior(successes=1.0, failures=1.0), balance=3)
    params = model.get_params()
    assert params["balance"] == 3
    assert params["primary"] == BINOMIAL
    copy = clone(model)
    assert copy is not model
    assert repr(copy) == repr(model)
    assert copy.ensemble == LINES
    assert copy.set_params(preprocess="standard", seed=4).seed == 4
    assert model.seed == 0


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    fusion(ensemble=TINY).fit(VILLAGES, progress=lambda *what: told.append(what))
    assert told[0] == ("networks", 0, 6)
    assert told[-1] == ("networks", 6, 6)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    told.clear()
    fusion(ensemble=LINES).fit(VILLAGES, progress=lambda *what: told.append(what))
    assert told == [("regressions", done, 2) for done in range(3)]


def test_an_improper_score_is_told() -> None:
    with pytest.warns(CalibrationWarning, match="check the calibration of this model"):
        fusion(objective="model-selection").fit(VILLAGES)


def test_what_was_saved_and_loaded_still_says_that_its_score_is_improper(tmp_path: Path) -> None:
    with pytest.warns(CalibrationWarning):
        model = fusion(objective="model-selection").fit(VILLAGES)
    model.save(tmp_path / "villages.ldf")
    again = ldf.load(tmp_path / "villages.ldf")
    told = "check the calibration of this model"
    assert told in again.notes_[-1]
    assert told in repr(again)
    assert told in again._repr_html_()
    assert told in ldf.report.explore(again, VILLAGES).text
    assert told not in repr(fusion().fit(VILLAGES))


# --- What may not be seen -----------------------------------------------------------------------


def test_sensitive_columns_are_numbers() -> None:
    marked = VILLAGES.assign(faith=["a", "b"] * 60, constant=1.0)
    auxiliary = ["lights", "faith", "constant"]
    with pytest.warns(DataWarning, match="Column 'feature #3' is the same in every row"):
        model = fusion(auxiliary=auxiliary, sensitive=["faith", "constant"]).fit(marked)
    assert model.notes_ == (
        "100 of 120 rows have primary data.",
        "Column 'feature #2' has 2 levels, coded as 0 and 1.",
        "Column 'feature #3' is the same in every row and is left out.",
    )
    post = model.posterior(marked)
    shown = [model.status_, *model.notes_, repr(post), *post.to_frame(), *model.predictive(marked).
             to_frame(), *model.pseudo_observations(marked)]  # fmt: skip
    assert not [text for text in shown if "faith" in text or "constant" in text]
    assert [model.shown_name(name) for name in auxiliary] == ["lights", "feature #2", "feature #3"]


# --- What a user reads --------------------------------------------------------------------------


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    frame = VILLAGES[:30].copy()
    if isinstance(value, str):
        frame[column] = frame[column].astype(object)
    frame.iloc[row, frame.columns.get_loc(column)] = value
    return frame


@cache
def fitted() -> Fusion:
    return fusion(auxiliary=["lights", "side"]).fit(VILLAGES)


SENTENCES: list[tuple[str, Callable[[], Any], str]] = [
    (
        "a model that has not learned",
        lambda: fusion().posterior(VILLAGES),
        "column 'model' is not fitted; call .fit(frame) first.",
    ),
    (
        "a missing column",
        lambda: fusion(auxiliary=["Road"]).fit(VILLAGES),
        "column 'Road' is not in the frame; near to it are 'roads'.",
    ),
    (
        "a missing column, later",
        lambda: fitted().posterior(VILLAGES.drop(columns="lights")),
        "column 'lights' is not in the frame; near to it are 'lit'.",
    ),
    (
        "text among numbers",
        lambda: fusion().fit(changed("lights", 2, "dark")),
        "column 'lights', row 'v2': 'dark' is text in a column that also has numbers; "
        "turn the column into numbers, or all of it into text.",
    ),
    (
        "text among numbers, later",
        lambda: fitted().posterior(changed("lights", 2, "dark")),
        "column 'lights', row 'v2': 'dark' is text, not a number; "
        "turn the column into numbers first.",
    ),
    (
        "more successes than trials",
        lambda: fusion().fit(changed("lit", 2, 99)),
        f"column 'lit', row 'v2': 99 is more than 'asked', {VILLAGES['asked'].iloc[2]:.0f}; "
        "successes cannot exceed trials: correct the row, or swap the columns.",
    ),
    (
        "no success anywhere",
        lambda: fusion().fit(VILLAGES.assign(lit=0.0)),
        "column 'lit' is zero in every row with primary data; "
        "nothing can be learned from zeros alone: check that it is the right column.",
    ),
    (
        "one unit",
        lambda: fusion().fit(VILLAGES[1:2]),
        "column 'lit' has a value in one row only; a fit needs primary data of two units or more.",
    ),
    (
        "two units for a network",
        lambda: fusion(ensemble=TINY).fit(VILLAGES[1:3]),
        "column 'primary' has 2 units, too few to learn from; give primary data of 3 or more.",
    ),
    (
        "two groups for a network",
        lambda: fusion(ensemble=TINY, group="side").fit(VILLAGES),
        "column 'primary' has 2 groups, too few to learn from; give primary data of 3 or more.",
    ),
    (
        "two parts for a network",
        lambda: fusion(ensemble=Ensemble(TINY.members, parts=2)).fit(VILLAGES),
        "column 'parts': 2 leaves none to learn from; a network holds out one, "
        "watches another and learns from the rest: give 3 or more.",
    ),
    (
        "columns that are all the same",
        lambda: fusion(auxiliary=["one"]).fit(VILLAGES.assign(one=1)),
        "column 'one' is the same in every row; give auxiliary columns that differ between rows.",
    ),
    (
        "an unseen category",
        lambda: fitted().posterior(changed("side", 3, "middle")),
        "column 'side', row 'v3': 'middle' is a new level; "
        "the model was fitted to 'left', 'right'.",
    ),
    (
        "infinity",
        lambda: fusion().fit(changed("roads", 4, np.inf)),
        "column 'roads', row 'v4': inf is infinite; give a finite number.",
    ),
    (
        "infinity, later",
        lambda: fitted().posterior(changed("lights", 4, -np.inf)),
        "column 'lights', row 'v4': -inf is infinite; give a finite number.",
    ),
    (
        "a gap that never was",
        lambda: fitted().posterior(changed("lights", 4, np.nan)),
        "column 'lights', row 'v4' is missing, and never was when the model was fitted; "
        "fill it in, or fit the model to rows where it is missing.",
    ),
    (
        "an empty frame",
        lambda: fusion().fit(VILLAGES[:0]),
        "column 'lit' has no rows; give a frame with one row a unit.",
    ),
    (
        "a column twice",
        lambda: fusion().fit(pd.concat([VILLAGES, VILLAGES[["roads"]]], axis=1)),
        "column 'roads' is in the frame twice; rename one of them.",
    ),
    (
        "a column twice, later",
        lambda: fitted().posterior(pd.concat([VILLAGES, VILLAGES[["lights"]]], axis=1)),
        "column 'lights' is in the frame twice; rename one of them.",
    ),
    (
        "an unknown condition",
        lambda: fitted().posterior(VILLAGES, given="all"),
        "column 'given': 'all' is not known; choose one of 'both', 'auxiliary', 'primary'.",
    ),
    (
        "a word of another family",
        lambda: fitted().predictive(VILLAGES, exposure=3),
        "column 'design': 'exposure' is not known; choose one of 'trials'.",
    ),
    (
        "trials nobody knows",
        lambda: fitted().predictive(changed("asked", 0, np.nan)),
        "column 'asked', row 'v0' is missing, and without it y has no distribution; "
        "give trials=…, or leave the row out.",
    ),
    (
        "nothing to score",
        lambda: fitted().score(VILLAGES.drop(columns="lit")),
        "column 'frame' has no primary data in any row; give rows that can be scored.",
    ),
    (
        "an unknown family",
        lambda: fusion("bernoulli").fit(VILLAGES),
        "column 'family': 'bernoulli' is not known; choose one of 'binomial', "
        "'censoredpoisson', 'exponential', 'family', 'gamma', 'gaussian', 'geometric', "
        "'joint', 'lineargaussian', 'misreported', 'multinomial', 'multivariatenormal', "
        "'negativebinomial', 'nestedmultinomial', 'normal', 'poisson', 'zeroinflatedpoisson'.",
    ),
    (
        "an unknown objective",
        lambda: fusion(objective="accuracy").fit(VILLAGES),
        "column 'objective': 'accuracy' is not known; "
        "choose one of 'maximum-likelihood', 'model-selection'.",
    ),
    (
        "an unknown prior",
        lambda: fusion(prior="flat").fit(VILLAGES),
        "column 'prior': 'flat' is not known; choose one of 'weak', 'fitted', 'none'.",
    ),
    (
        "a mapping beside an ensemble",
        lambda: fusion(mapping=Linear()).fit(VILLAGES),
        "column 'mapping' is given beside an ensemble; "
        "give the ensemble members of this mapping, or leave one of both out.",
    ),
    (
        "a sensitive column that is none",
        lambda: fusion(sensitive=["faith"]).fit(VILLAGES),
        "column 'sensitive': 'faith' is not known; choose one of 'lights', 'roads'.",
    ),
]


@pytest.mark.parametrize(
    ("run", "sentence"), [s[1:] for s in SENTENCES], ids=[s[0] for s in SENTENCES]
)
def test_bad_input_gets_one_sentence(run: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as error:
        run()
    assert str(error.value) == sentence


def test_a_constant_column_is_left_out_and_told() -> None:
    with pytest.warns(DataWarning) as told:
        model = fusion(auxiliary=["lights", "roads", "one"]).fit(VILLAGES.assign(one=1.0))
    sentence = "Column 'one' is the same in every row and is left out."
    assert [str(w.message) for w in told] == [sentence]
    assert sentence in model.notes_
    assert model.posterior(VILLAGES[:3].assign(one=2.0)).mean().shape == (3,)


def test_few_units_have_fewer_parts() -> None:
    ensemble = Ensemble((Member(LINE),), parts=8)
    few = VILLAGES.copy()
    few.loc[few.index[6:], "lit"] = np.nan
    model = fusion(ensemble=ensemble).fit(few)
    assert model.status_.endswith("There are too few units for 8 parts, so there were 5.")
    assert sorted(model.learned_.part[few["lit"].notna()]) == [0, 1, 2, 3, 4]
    grouped = fusion(ensemble=ensemble, group="side").fit(VILLAGES)
    part = grouped.learned_.part[SURVEYED]
    assert len(set(part)) == 2


def test_a_frame_without_rows_has_a_posterior_without_units(lines: Fusion) -> None:
    assert lines.posterior(VILLAGES[:0]).mean().shape == (0,)


# --- in a notebook ------------------------------------------------------------------------------


def test_a_notebook_shows_models_posteriors_and_comparisons_and_runs_nothing() -> None:
    evil = "<script>alert(1)</script>"
    frame = VILLAGES.rename(index={"v1": evil})
    assert "<pre>" in fusion(ensemble=LINES)._repr_html_()
    model = fusion(ensemble=LINES).fit(frame)
    assert "Linear" in model._repr_html_()
    assert "2 regressions, solved." in model._repr_html_()
    shown = model.posterior(frame)._repr_html_()
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script" not in shown
    assert "… and 110 more units." in shown
    mean = model.posterior(frame).mean()[1]
    assert f"{mean:.4g}" in shown
    assert f"{model.predictive(frame.dropna()).mean()[0]:.4g}" in (
        model.predictive(frame.dropna())._repr_html_()
    )
    compared = ldf.cross_validate(model, frame, 3, baselines="binomial")._repr_html_()
    assert compared.index("ldf") < compared.index("binomial")  # the better one first


def test_a_posterior_draws_its_units_by_rank(lines: Fusion) -> None:
    post = lines.posterior(VILLAGES)
    figure = post.plot(mass=0.5, quantity="rate")
    axis = figure.axes[0]
    low, high = post.interval(0.5)
    order = np.argsort(-post.mean(), kind="stable")
    drawn = np.array([segment for segment in axis.collections[0].get_segments()])
    np.testing.assert_allclose(drawn[..., 1], np.stack([low, high], -1)[order])
    pyplot.close(figure)


def test_a_posterior_shows_its_explorer_in_a_frame_that_reaches_nothing(
    lines: Fusion, tmp_path: Path
) -> None:
    post = lines.posterior(VILLAGES)
    page = post.explore(title="here & there", geometry=("east", "north"))
    shown = page._repr_html_()
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    (inside,) = re.findall('srcdoc="([^"]*)"', shown)
    assert html.unescape(inside) == page.text
    assert page.save(tmp_path / "page.html").read_text() == page.text
    with pytest.raises(DataError, match="is of no fitted model"):
        replace(post, page=None).explore()
