"""p_0 of objectives that compare: the prior, a regression, or any model, learned from the same rows
or carried row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats as st
from sklearn.base import clone

import ldf
from ldf import DataError, Fusion, FusionRegressor, Linear
from ldf.baselines import regression
from ldf.data import read
from ldf.learn import learn
from ldf.objective import model_selection
from ldf.spec import Spec
from ldf.table import Table
from units import LINES, ONE, TINY, fusion, villages

pytestmark = pytest.mark.filterwarnings("ignore::ldf.CalibrationWarning")
room: Any = import_module("ldf.learn")
VILLAGES = villages()
FAMILY = ldf.Binomial()
# A reference in parts answers for its training rows out of fold.
RIVAL = fusion(ensemble=LINES, prior="fitted", seed=3)
PRIOR = FAMILY.prior(successes=0.4, failures=0.9)


def compared(reference: Any = RIVAL, **more: Any) -> Fusion:
    given = {"ensemble": TINY, "objective": "model-selection", "reference": reference}
    return fusion(**given | more)


def taken(model: Fusion, frame: Any = VILLAGES) -> tuple[Spec, Table]:
    data = read(frame, model.family_of(), model.columns())
    return model.spec(data), model.table(frame, data)


def halves(rows: int) -> np.ndarray:
    """Two training sets."""
    first = np.arange(rows) % 2 == 0
    return np.stack([first, ~first])


def references(model: Fusion, frame: Any = VILLAGES, every: np.ndarray | None = None) -> Any:
    spec, table = taken(model, frame)
    every = np.ones((1, len(frame)), bool) if every is None else every
    return room._references(spec, table, every & table.seen, model.seed, None)


def test_a_model_that_is_not_fitted_is_learned_inside_each_training_set() -> None:
    """p_0 is its own log-predictive: of its training rows by fits that have not seen them, of the
    others by all."""
    every = halves(len(VILLAGES))
    found = references(compared(seed=3), every=every)
    seen = VILLAGES["lit"].notna().to_numpy()
    saw = seen & (VILLAGES["asked"] > 0).to_numpy()
    for mine, rows in zip(found, every, strict=True):
        alone = cast("Fusion", clone(RIVAL)).fit(VILLAGES[rows])
        # As near as a solver comes that has other rows beside, which do not count.
        np.testing.assert_allclose(mine[saw], alone.log_scores(VILLAGES)[saw], rtol=1e-7)
        np.testing.assert_allclose(mine[seen & ~saw], 0.0, atol=1e-15)  # nobody was asked


def test_rows_held_out_do_not_influence_the_reference() -> None:
    (half, _) = every = halves(len(VILLAGES))
    other = VILLAGES.copy()
    other.loc[~half, "lit"] = other["asked"] - other["lit"]
    other.loc[~half, "lights"] = 9.0
    before, after = references(compared(), every=every), references(compared(), other, every)
    seen = VILLAGES["lit"].notna().to_numpy()
    np.testing.assert_array_equal(before[0][half & seen], after[0][half & seen])
    assert not np.allclose(before[1][half & seen], after[1][half & seen])


def test_what_is_compared_with_changes_what_is_learned() -> None:
    one, two = compared().fit(VILLAGES), compared("prior").fit(VILLAGES)
    rate = [model.posterior(VILLAGES, given="auxiliary").mean() for model in (one, two)]
    assert np.abs(rate[0] - rate[1]).max() > 1e-3


def test_a_baseline_is_compared_with_as_it_is_its_penalty_and_its_prior() -> None:
    """The prior is added to the regression's pseudo-observations (Appendix C)."""
    own = replace(regression(FAMILY, Linear(True), 5.214e-5), prior=PRIOR)
    (found,) = references(compared(own))
    table = taken(fusion())[1]
    (fit,) = learn(own, table, 0)
    (t,) = fit.trained
    assert t.ground.prior.successes == 0.4
    pseudo, seen = t.said(table.x).pseudo[0], table.seen
    y = {name: values[seen] for name, values in table.y.items()}
    a, b = 0.4 + pseudo.successes[seen], 0.9 + pseudo.failures[seen]
    known = st.betabinom.logpmf(y["successes"], y["trials"], a, b)
    np.testing.assert_allclose(found[seen], known, rtol=1e-6, atol=1e-12)
    (strong,) = references(compared(replace(own, ensemble=replace(own.ensemble, members=(
        replace(own.ensemble.members[0], penalty=10.0),)))))  # fmt: skip
    assert np.abs(strong - found)[seen].max() > 0.1


def test_by_name_the_regression_has_the_prior_that_is_given_and_no_other() -> None:
    for prior, known in (("fitted", "none"), (PRIOR, PRIOR)):
        own = replace(regression(FAMILY, Linear(True), 1e-3, "power"), prior=known)
        (found,), (wanted,) = (references(compared(r, prior=prior)) for r in ("regression", own))
        np.testing.assert_array_equal(found, wanted)


def test_a_fitted_model_is_taken_at_its_word() -> None:
    """Whatever its columns; out of fold for the rows that it has learned from."""
    fitted = fusion(auxiliary=["roads", "east"]).fit(VILLAGES)
    (found,), table = references(compared(fitted)), taken(fusion())[1]
    saw = np.isfinite(fitted.log_scores(VILLAGES))
    assert fitted.posterior(VILLAGES).out_of_fold[saw].all()
    np.testing.assert_array_equal(found[saw], fitted.log_scores(VILLAGES)[saw])
    np.testing.assert_array_equal(found[~table.seen], 0.0)
    compared(fitted).fit(VILLAGES)


def test_a_cross_validation_carries_what_a_fitted_model_said() -> None:
    model = compared(fusion(auxiliary=["roads", "east"], ensemble=ONE).fit(VILLAGES))
    cv = ldf.cross_validate(model, VILLAGES, folds=2, baselines=None)
    spec, table = taken(model)
    assert spec.objective is model_selection
    assert table.reference is not None
    for one, held in zip(learn(spec, table, 0, cv.split.training), cv.split.held, strict=True):
        rows = held & table.seen
        y = {name: values[rows] for name, values in table.y.items()}
        score = one.log_score(one.said(table.x[rows]), y)
        np.testing.assert_allclose(cv.answers["ldf"].log_score[rows], score, rtol=1e-9, atol=1e-12)


def test_a_reference_is_a_parameter_like_others() -> None:
    model = compared(fusion(ensemble=ONE))
    assert model.get_params()["reference__ensemble"] == ONE
    copy: Any = clone(model)
    assert copy.reference is not model.reference
    assert copy.reference.get_params() == model.get_params(deep=False)["reference"].get_params()
    spec = taken(RIVAL)[0]
    copy = clone(compared(spec))
    assert copy.reference == spec
    copy = clone(compared(fusion(ensemble=ONE).fit(VILLAGES)))
    assert not hasattr(copy.reference, "learned_")  # as scikit-learn has it


def test_a_regressor_is_compared_with_another() -> None:
    X, y, trials = VILLAGES[["lights", "roads"]], VILLAGES["lit"], VILLAGES["asked"]
    rival = FusionRegressor(ensemble=ONE)
    words: Any = {"ensemble": TINY, "objective": "model-selection"}
    model = FusionRegressor(reference=rival, **words).fit(X, y, trials=trials)
    fusion_ = compared(fusion(ensemble=ONE)).fit(VILLAGES)
    rival.fit(X, y, trials=trials)
    again = FusionRegressor(reference=rival, **words).fit(X, y, trials=trials)
    known = fusion_.posterior(X, given="auxiliary").mean()  # of rows that it does not know again
    np.testing.assert_allclose(model.predict(X), known, rtol=1e-12)
    np.testing.assert_allclose(again.predict(X), known, rtol=1e-4)  # one part: nothing out of fold


def test_a_saved_model_names_its_reference_and_is_not_fitted_without_it(tmp_path: Path) -> None:
    model = compared(fusion(ensemble=ONE)).fit(VILLAGES)
    model.save(tmp_path / "m.ldf")
    again = ldf.load(tmp_path / "m.ldf")
    np.testing.assert_array_equal(
        again.posterior(VILLAGES).mean(), model.posterior(VILLAGES).mean()
    )
    assert again.reference == "custom"
    again.save(tmp_path / "m.ldf")
    with pytest.raises(DataError) as refused:
        again.fit(VILLAGES)
    assert str(refused.value) == (
        "column 'reference' is a model no file holds; set model.reference to it before you fit."
    )
    refitted = again.set_params(reference=fusion(ensemble=ONE)).fit(VILLAGES)
    np.testing.assert_array_equal(
        refitted.posterior(VILLAGES).mean(), model.posterior(VILLAGES).mean()
    )


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (lambda: "rival", "column 'reference': 'rival' is not known; choose one of 'prior', 'reg"),
        (lambda: fusion(primary={"successes": "lit", "trials": "people"}),
         "column 'reference' is of other primary data; give it the same primary columns"),
        (lambda: fusion(auxiliary=["lights"]), "column 'reference' is not fitted, and of another"),
        (lambda: fusion(ldf.Misreported(0.9, 0.9)), "column 'reference' is not fitted, and of an"),
        (lambda: Spec(ldf.Poisson()), "column 'reference': 'Poisson' is of another family than "),
    ],
)  # fmt: skip
def test_other_references_are_refused(reference: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        compared(reference()).fit(VILLAGES)
    assert str(refused.value).startswith(sentence)


def test_what_is_carried_has_to_come_with_the_rows() -> None:
    spec, table = taken(fusion(ensemble=TINY))
    spec = replace(spec, objective=model_selection, reference="carried")
    with pytest.raises(DataError, match="is not with the rows; give the fitted model itself"):
        learn(spec, table, 0)
