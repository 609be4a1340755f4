"""FusionRegressor is Fusion in scikit-learn's words, and keeps scikit-learn's promises.

It gives what Fusion gives; it works where scikit-learn's own do, with trials routed as metadata;
and scikit-learn's own checks pass, but for those named in EXPECTED, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ldf
from ldf import DataError, FusionRegressor
from units import LINES, ONE, fusion, villages

VILLAGES = villages()
FEATURES = ["lights", "roads"]
X, LIT, ASKED = (VILLAGES[c].to_numpy() for c in (FEATURES, "lit", "asked"))


def regressor(**more: Any) -> FusionRegressor:
    return FusionRegressor(**{"ensemble": ONE} | more)


def routed(**more: Any) -> FusionRegressor:
    return regressor(**more).set_fit_request(trials=True).set_score_request(trials=True)


@pytest.fixture(scope="module")
def fitted() -> FusionRegressor:
    return regressor(ensemble=LINES).fit(X, LIT, trials=ASKED)


@pytest.fixture
def routing() -> Any:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# --- What Fusion gives --------------------------------------------------------------------------


def test_it_is_fusion(fitted: FusionRegressor) -> None:
    model = fusion().fit(VILLAGES)
    new = VILLAGES[FEATURES].to_numpy()
    post = model.posterior(VILLAGES[FEATURES], given="auxiliary")
    assert np.array_equal(fitted.predict(new), post.mean())
    found = fitted.predict_posterior(new)
    assert np.array_equal(found.quantile(0.9), post.quantile(0.9))
    assert not found.out_of_fold.any()
    assert fitted.score(X, LIT, trials=ASKED) == pytest.approx(model.score(VILLAGES), rel=1e-12)
    assert isinstance(fitted.fusion_, ldf.Fusion)


def test_scores_may_be_weighted(fitted: FusionRegressor) -> None:
    half = np.arange(len(X)) % 2
    whole = fitted.score(X, LIT, half, trials=ASKED)
    mine = half == 1
    assert whole == pytest.approx(fitted.score(X[mine], LIT[mine], trials=ASKED[mine]))


def test_weights_count_in_learning() -> None:
    weight = np.where(np.arange(len(X)) < 60, 1.0, 0.0)
    without = np.where(weight > 0, LIT, np.nan)
    one = regressor().fit(X, LIT, trials=ASKED, sample_weight=weight).predict(X)
    two = regressor().fit(X, without, trials=ASKED).predict(X)
    assert np.allclose(one, two, rtol=1e-6)


def test_frames_keep_their_names_and_kind(fitted: FusionRegressor) -> None:
    frame = VILLAGES[FEATURES]
    model = regressor(ensemble=LINES).fit(frame, VILLAGES["lit"], trials=VILLAGES["asked"])
    assert list(model.feature_names_in_) == FEATURES
    assert np.array_equal(model.predict(frame), fitted.predict(X))
    assert list(model.predict_posterior(frame).to_frame().index) == list(frame.index)
    other = regressor(ensemble=LINES).fit(pl.from_pandas(frame), LIT, trials=ASKED)
    assert np.array_equal(other.predict(pl.from_pandas(frame)), fitted.predict(X))


def test_names_of_y_give_way_to_those_of_x() -> None:
    frame = VILLAGES[FEATURES].rename(columns={"lights": "y", "roads": "trials"})
    model = regressor().fit(frame, LIT, trials=ASKED)
    assert model.fusion_.primary == {"successes": "y_", "trials": "trials_"}
    assert np.array_equal(model.predict(frame), regressor().fit(X, LIT, trials=ASKED).predict(X))


def test_cells_may_be_missing_and_columns_may_be_text() -> None:
    holes = X.copy()
    holes[::7, 1] = np.nan
    with pytest.warns(ldf.DataWarning, match="Cells are missing"):
        model = regressor().fit(holes, LIT, trials=ASKED)
    assert np.isfinite(model.predict(holes)).all()
    frame = VILLAGES[["lights", "side"]]
    assert np.isfinite(regressor().fit(frame, LIT, trials=ASKED).predict(frame)).all()


@pytest.mark.parametrize(
    ("family", "y", "design"),
    [
        ("poisson", "sick", {"exposure": "people"}),
        (ldf.Gaussian(), "yield", {"variance": "error"}),
        (ldf.Gaussian(variance=2.0), "yield", {}),
        ("multinomial", ["red", "green", "blue"], {}),
    ],
    ids=["poisson", "gaussian", "known variance", "multinomial"],
)
def test_other_families(family: Any, y: Any, design: dict[str, str]) -> None:
    values = {word: VILLAGES[column].to_numpy() for word, column in design.items()}
    model = regressor(family=family).fit(X, VILLAGES[y], **values)
    assert model.predict(X).shape == VILLAGES[y].shape
    assert np.isfinite(model.score(X, VILLAGES[y], **values))
    if family == "multinomial":
        assert model.predict_posterior(X).units.components == ("red", "green", "blue")
        by_array = regressor(family=family).fit(X, VILLAGES[y].to_numpy())
        assert np.array_equal(by_array.predict(X), model.predict(X))


# --- Where scikit-learn's own work --------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_cross_val_score() -> None:
    scores = cross_val_score(routed(), X, LIT, params={"trials": ASKED}, cv=2)
    held = np.arange(len(X)) < 60  # the first fold of two
    model = regressor().fit(X[~held], LIT[~held], trials=ASKED[~held])
    assert scores[0] == pytest.approx(model.score(X[held], LIT[held], trials=ASKED[held]))


@pytest.mark.usefixtures("routing")
def test_pipelines() -> None:
    pipe = make_pipeline(StandardScaler(), routed()).fit(X, LIT, trials=ASKED)
    assert pipe.predict(X).shape == (len(X),)
    assert np.isfinite(pipe.score(X, LIT, trials=ASKED))
    assert np.isfinite(cross_val_score(pipe, X, LIT, params={"trials": ASKED}, cv=2)).all()


@pytest.mark.usefixtures("routing")
def test_grid_search() -> None:
    grid = {"prior": ["weak", "fitted"]}
    search = GridSearchCV(routed(), grid, cv=2).fit(X, LIT, trials=ASKED)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    ensembles = [ONE, replace(ONE, members=(replace(ONE.members[0], penalty=1.0),))]
    search = GridSearchCV(routed(), {"ensemble": ensembles}, cv=2).fit(X, LIT, trials=ASKED)
    assert search.best_estimator_.ensemble in ensembles


def test_without_routing_fit_takes_them_all_the_same() -> None:
    assert regressor().fit(X, LIT, trials=ASKED).predict(X[:1]).shape == (1,)


def test_clones_and_tags(fitted: FusionRegressor) -> None:
    copy = clone(fitted)
    assert not hasattr(copy, "fusion_")
    assert copy.ensemble == LINES
    assert copy.set_params(seed=3).get_params()["seed"] == 3
    assert is_regressor(fitted)
    tags, vector = (sklearn.utils.get_tags(regressor(family=f)) for f in ("poisson", "multinomial"))
    assert tags.input_tags.allow_nan
    assert tags.target_tags.positive_only
    assert not tags.target_tags.multi_output
    assert vector.target_tags.multi_output
    assert not sklearn.utils.get_tags(regressor(family=ldf.Gaussian())).target_tags.positive_only


# --- What a user reads --------------------------------------------------------------------------

SENTENCES: list[tuple[str, Callable[[], Any], str]] = [
    (
        "no trials",
        lambda: regressor().fit(X, LIT),
        "column 'trials' is not given; give it beside y: trials=….",
    ),
    (
        "a word of another family",
        lambda: regressor().fit(X, LIT, trials=ASKED, exposure=ASKED),
        "column 'exposure' is not a word of Binomial; leave it out.",
    ),
    (
        "more successes than trials",
        lambda: regressor().fit(X, LIT + 100, trials=ASKED),
        f"column 'y', row 1: {LIT[1] + 100:.0f} is more than 'trials', {ASKED[1]:.0f}; "
        "successes cannot exceed trials: correct the row, or swap the columns.",
    ),
    (
        "nothing to score",
        lambda: regressor().fit(X, LIT, trials=ASKED).score(X, 0 * LIT, trials=0 * ASKED),
        "column 'y' has no row that can be scored; give rows that saw something and count.",
    ),
    (
        "infinity",
        lambda: regressor().fit(np.where(X[3, 1] == X, np.inf, X), LIT, trials=ASKED),
        "column 'x1', row 3: inf is infinite; give a finite number.",
    ),
    (
        "a column twice",
        lambda: regressor().fit(pd.concat([VILLAGES[["lights"]]] * 2, axis=1), LIT, trials=ASKED),
        "column 'lights' is in the frame twice; rename one of them.",
    ),
]


@pytest.mark.parametrize(
    ("run", "sentence"), [s[1:] for s in SENTENCES], ids=[s[0] for s in SENTENCES]
)
def test_bad_input_gets_one_sentence(run: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as error:
        run()
    assert str(error.value) == sentence


def test_scikit_learns_own_complaints(fitted: FusionRegressor) -> None:
    with pytest.raises(NotFittedError):
        regressor().predict(X)
    with pytest.raises(ValueError, match="X has 1 features, but FusionRegressor is expecting 2"):
        fitted.predict(X[:, :1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor().fit(X, LIT[:5], trials=ASKED)


# --- scikit-learn's own checks ------------------------------------------------------------------

# They give y of any sign and nothing beside it, which a Gaussian mean of known variance can be.
CHECKED = FusionRegressor(ldf.Gaussian(variance=1.0), ensemble=ONE)
EXPECTED = {
    "check_dtype_object": "a cell that is a dict is refused in a sentence of ours, not in theirs",
    "check_fit2d_1sample": "one row is refused in a sentence of ours, not in theirs",
}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([CHECKED], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learns_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
