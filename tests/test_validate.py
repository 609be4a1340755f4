"""Cross-validation is honest: what is held out is not learned from, by no way round.

First what comes out, a row a unit and model; then that nothing leaks; then kinds of folds; then
what a user reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ldf
from ldf import DataError, Split, cross_validate
from ldf.validate import CrossValidation, _baselines
from units import FAMILIES, ONE, fusion, villages

VILLAGES = villages()
SAW = (VILLAGES["lit"].notna() & (VILLAGES["asked"] > 0)).to_numpy()
ALTERNATE = Split.of(np.arange(120) % 3)
BEST = "beta-binomial"


@pytest.fixture(scope="module")
def cv() -> CrossValidation:
    return cross_validate(fusion(), VILLAGES, folds=3)


# --- What comes out -----------------------------------------------------------------------------


def test_one_row_a_unit_and_model(cv: CrossValidation) -> None:
    models = ["ldf", "intercept", "binomial", BEST, f"{BEST}, log-linear count"]
    rows = cv.to_frame()
    assert list(rows) == ["unit", "model", "fold", "log_score", "mean", "sd"]
    assert list(rows["model"].unique()) == models
    for _, mine in rows.groupby("model"):
        assert list(mine["unit"]) == list(VILLAGES.index[SAW])  # those without trials do not count
        assert set(mine["fold"]) == {0, 1, 2}
        assert np.isfinite(mine["log_score"]).all()
    table = cv.table()
    assert list(table["model"]) == models
    assert (table["units"] == SAW.sum()).all()
    means = rows.groupby("model", sort=False)["log_score"].mean()
    assert np.allclose(table["log_score"], means)
    assert np.allclose(table["minus_ldf"], means - means["ldf"])
    assert table["coverage_90"].between(0.5, 1).all()
    heading, _, *lines = repr(cv).splitlines()[:1] + repr(cv).splitlines()[2:]
    assert (
        heading == f"{SAW.sum()} held-out units in 3 folds (mean log score a unit; more is better):"
    )
    best = table.sort_values("log_score", ascending=False)
    assert [line[:33].rstrip() for line in lines] == list(best["model"])
    assert [float(line[34:44]) for line in lines] == [round(s, 3) for s in best["log_score"]]


def test_scores_are_those_of_the_predictive(cv: CrossValidation) -> None:
    lit = VILLAGES["lit"].to_numpy()[SAW]
    rows = cv.to_frame()
    for name in ("ldf", "binomial", BEST):
        law = cv.predictive(name)
        mine = rows[rows["model"] == name]
        assert np.allclose(law.log_prob(lit), mine["log_score"])
        assert np.allclose(law.mean(), mine["mean"])
        asked = VILLAGES["asked"].to_numpy()[SAW]
        assert np.allclose(cv.posterior(name).mean() * asked, mine["mean"])


def test_a_comparison_has_a_sign(cv: CrossValidation) -> None:
    there, back = cv.compare(BEST, "intercept"), cv.compare("intercept", BEST)
    assert there["mean"] > 0  # lights tell something
    assert there["mean"] == -back["mean"]
    assert there["standard_error"] == back["standard_error"]
    assert there["better"] + back["better"] == pytest.approx(1)
    itself = cv.compare(BEST, BEST)
    assert itself["mean"] == 0
    assert itself["better"] == 0.5  # a tie is half
    assert itself["units"] == SAW.sum()


def test_more_can_be_asked(cv: CrossValidation) -> None:
    uniform = cv.pit("ldf", seed=0)
    assert uniform.shape == (SAW.sum(),)
    assert ((uniform >= 0) & (uniform <= 1)).all()
    assert [row["mass"] for row in cv.coverage("ldf", (0.5, 0.9))] == [0.5, 0.9]
    assert len(cv.check("ldf", draws=20)) > 0


def test_baselines_by_name_or_none() -> None:
    def models(baselines: Any) -> list[str]:
        return list(cross_validate(fusion(ensemble=ONE), VILLAGES, ALTERNATE, baselines).answers)

    assert models(None) == models(()) == ["ldf"]
    assert models(BEST) == ["ldf", BEST]
    assert models(["binomial", "intercept"]) == ["ldf", "intercept", "binomial"]


def test_the_penalty_of_many_rows_is_looked_for_in_larger_steps() -> None:
    few, many = (_baselines(ldf.Binomial(), BEST, rows=m)[BEST].ensemble for m in (100, 10_000))
    assert (few.parts, many.parts) == (5, 2)
    (few,), (many,) = few.members, many.members
    assert few.penalties[::2] == many.penalties == (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)


def test_vectors_and_other_frames() -> None:
    model = fusion(*FAMILIES["multinomial"], ensemble=ONE)
    cv = cross_validate(model, pl.from_pandas(VILLAGES), ALTERNATE, None)
    rows = cv.to_frame()
    assert isinstance(rows, pl.DataFrame)
    assert isinstance(cv.table(), pl.DataFrame)
    assert {"mean of red", "sd of blue"} <= set(rows.columns)
    assert len(rows) == 100


def test_effective_counts_are_scored_only() -> None:
    cv = cross_validate(fusion(ensemble=ONE, design_effect=2.0), VILLAGES, ALTERNATE, None)
    assert np.isfinite(cv.table()["log_score"]).all()
    assert list(cv.to_frame()) == ["unit", "model", "fold", "log_score"]
    with pytest.raises(DataError) as error:
        cv.coverage("ldf")
    assert str(error.value) == (
        "column 'design_effect' makes counts that are not whole numbers; "
        "compare log scores instead."
    )


# --- Nothing leaks ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binomial", "multinomial"])
def test_what_is_held_out_says_nothing_of_itself(kind: str) -> None:
    regression = {"binomial": BEST, "multinomial": None}[kind]
    model = fusion(*FAMILIES[kind], balance=3)
    held = ALTERNATE.held[0]
    other = VILLAGES.copy()
    if kind == "binomial":
        other.loc[held, "lit"] = other["asked"] - other["lit"]
    else:
        other.loc[held, ["red", "green", "blue"]] *= [0.0, 0.0, 50.0]
        other.loc[held, "red"] += 1 + 0 * other.loc[held, "red"]
    before, after = (cross_validate(model, f, ALTERNATE, regression) for f in (VILLAGES, other))
    for name in before.answers:
        assert not np.array_equal(  # the others have learned from what changed
            *(cv.answers[name].log_score[~held] for cv in (before, after)), equal_nan=True
        )
        counted = held[before.counted]
        for cv in (before, after):
            assert np.array_equal(cv.counted, before.counted)
        one, two = (np.asarray(cv.posterior(name).mean())[counted] for cv in (before, after))
        assert np.array_equal(one, two)


def test_folds_are_the_models_own_refits() -> None:
    cv = cross_validate(fusion(), VILLAGES, ALTERNATE, None)
    training = VILLAGES.copy()
    training.loc[ALTERNATE.held[1], "lit"] = np.nan
    alone = fusion().fit(training).posterior(training, given="auxiliary").mean()
    held = ALTERNATE.held[1]
    found = np.asarray(cv.posterior("ldf").mean())[held[cv.counted]]
    assert np.allclose(found, alone[held & cv.counted], rtol=1e-6)


# --- Kinds of folds -----------------------------------------------------------------------------


def test_groups_are_held_out_together() -> None:
    cv = cross_validate(fusion(ensemble=ONE, group="state"), VILLAGES, 3, None)
    rows = cv.to_frame()
    state = VILLAGES.loc[rows["unit"], "state"].to_numpy()
    assert (rows.groupby(state)["fold"].nunique() == 1).all()
    assert cv.compare("ldf", "ldf")["units"] == SAW.sum()


def test_forward_in_time() -> None:
    cv = cross_validate(fusion(ensemble=ONE), VILLAGES, 3, None, time="year")
    year = VILLAGES["year"].to_numpy()
    for training, held in cv.split:
        assert year[training].max() < year[held].min()
    first = year < year[cv.split.fold == 0].min()
    assert not cv.counted[first].any()  # nothing is before the first years
    assert len(cv.to_frame()) == (SAW & ~first).sum() < SAW.sum()


def test_a_buffer_around_what_is_held_out() -> None:
    model = fusion(ensemble=ONE, geometry=("east", "north"))
    cv = cross_validate(model, VILLAGES, 3, None, buffer=0.05)
    place = VILLAGES[["east", "north"]].to_numpy()
    for training, held in cv.split:
        gap = np.linalg.norm(place[training][:, None] - place[held][None], axis=-1)
        assert gap.min() >= 0.05


def test_a_buffer_around_shapes_is_around_their_middles() -> None:
    """Which are never learned from."""
    shapely = pytest.importorskip("shapely")
    east, north = VILLAGES[["east", "north"]].to_numpy().T
    areas = shapely.box(east - 0.01, north - 0.02, east + 0.01, north + 0.02)
    frame = VILLAGES.assign(area=[area.wkb for area in areas])
    answers = []
    for geometry in (("east", "north"), "area"):
        model = fusion(ensemble=ONE, geometry=geometry)
        cv = cross_validate(model, frame, 3, None, buffer=0.05)
        assert cv.data.names == ("lights", "roads")
        answers.append((cv.split.fold, cv.answers["ldf"].log_score))
    np.testing.assert_array_equal(*(fold for fold, _ in answers))
    np.testing.assert_array_equal(*(score for _, score in answers))


def test_a_split_of_ones_own() -> None:
    cv = cross_validate(fusion(ensemble=ONE), VILLAGES, ALTERNATE, None)
    assert np.array_equal(cv.to_frame()["fold"], (np.arange(120) % 3)[SAW])


# --- What a user reads --------------------------------------------------------------------------


def leak() -> Split:
    training = ALTERNATE.training.copy()
    training[0, 3] = True
    return Split(training, ALTERNATE.held)


SENTENCES: list[tuple[str, Callable[[], Any], str]] = [
    (
        "fewer units than folds",
        lambda: cross_validate(fusion(), VILLAGES[1:6], 10),
        "column 'folds': 10 is more than there are units, 5; ask for 5 or fewer.",
    ),
    (
        "too few units to learn from",
        lambda: cross_validate(fusion(), VILLAGES[1:3], 2),
        "column 'primary' has 1 units, too few to learn from; give primary data of 2 or more.",
    ),
    (
        "fewer groups than folds",
        lambda: cross_validate(fusion(group="side"), VILLAGES, 3),
        "column 'side' has 2 groups, fewer than 3 folds; ask for 2 or fewer.",
    ),
    (
        "one fold",
        lambda: cross_validate(fusion(), VILLAGES, 1),
        "column 'folds': 1 is too few; ask for 2 or more.",
    ),
    (
        "a baseline that is none",
        lambda: cross_validate(fusion(), VILLAGES, 3, "poisson"),
        "column 'baselines': 'poisson' is not known; choose one of 'all', 'intercept', "
        "'binomial', 'beta-binomial', 'beta-binomial, log-linear count'.",
    ),
    (
        "a buffer around nowhere",
        lambda: cross_validate(fusion(), VILLAGES, 3, buffer=1.0),
        "column 'buffer': 1 needs a place for each unit; "
        "tell the model where units are: geometry=(…, …).",
    ),
    (
        "a time that is not there",
        lambda: cross_validate(fusion(), VILLAGES, 3, time="month"),
        "column 'month' is not in the frame; near to it are 'north'.",
    ),
    (
        "a split of another frame",
        lambda: cross_validate(fusion(), VILLAGES[:60], ALTERNATE),
        "column 'folds' is for 120 rows, and the frame has 60; make it of this frame's rows.",
    ),
    (
        "a split that leaks",
        lambda: cross_validate(fusion(), VILLAGES, leak()),
        "column 'fold', row 3 is trained on in fold 0 and is held out in it too; "
        "leave it out there.",
    ),
    (
        "more successes than trials",
        lambda: cross_validate(fusion(), VILLAGES.assign(asked=1.0), 3),
        "column 'lit', row 'v1': 23 is more than 'asked', 1; "
        "successes cannot exceed trials: correct the row, or swap the columns.",
    ),
    (
        "all zero",
        lambda: cross_validate(fusion(), VILLAGES.assign(lit=0.0), 3),
        "column 'lit' is zero in every row with primary data; "
        "nothing can be learned from zeros alone: check that it is the right column.",
    ),
    (
        "an empty frame",
        lambda: cross_validate(fusion(), VILLAGES[:0], 3),
        "column 'lit' has no rows; give a frame with one row a unit.",
    ),
    (
        "a column twice",
        lambda: cross_validate(fusion(), pd.concat([VILLAGES, VILLAGES[["roads"]]], axis=1), 3),
        "column 'roads' is in the frame twice; rename one of them.",
    ),
]


@pytest.mark.parametrize(
    ("run", "sentence"), [s[1:] for s in SENTENCES], ids=[s[0] for s in SENTENCES]
)
def test_bad_input_gets_one_sentence(run: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as error:
        run()
    assert str(error.value) == sentence


def test_an_unknown_model(cv: CrossValidation) -> None:
    with pytest.raises(DataError) as error:
        cv.compare("ldf", "trees")
    assert str(error.value) == (
        "column 'model': 'trees' is not known; choose one of 'ldf', 'intercept', 'binomial', "
        "'beta-binomial', 'beta-binomial, log-linear count'."
    )


def test_families_without_textbook_regressions_stand_alone() -> None:
    assert _baselines(ldf.Exponential(), "all", "power") == {}
    with pytest.raises(DataError, match="has no textbook regressions"):
        _baselines(ldf.Exponential(), "intercept", "power")
