"""The same model in scikit-learn's words: X, y, and what y is out of.

    import sklearn
    sklearn.set_config(enable_metadata_routing=True)

    model = FusionRegressor("binomial").set_fit_request(trials=True).set_score_request(trials=True)
    cross_val_score(model, X, successes, params={"trials": trials})

y is the family's outcome: successes, a count, a mean, or one column a class. What must be known of
it beforehand (trials, exposure, n, variance) comes beside it. X is an array, or a frame whose text
columns are categories; a cell may be missing if cells of its column were in the fit.
"""

from __future__ import annotations

import inspect
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from ldf import check
from ldf.arguments import named_family
from ldf.ensemble import Ensemble
from ldf.estimator import Fusion
from ldf.families.base import Family
from ldf.families.joint import Joint
from ldf.frame import Frame
from ldf.mappings import Given
from ldf.objective import Objective
from ldf.results import Posterior
from ldf.spec import Spec
from ldf.statistic import Statistic

ANY_CELLS: Any = {"dtype": None, "ensure_all_finite": False}  # Fusion knows which will do


class FusionRegressor(RegressorMixin, BaseEstimator):
    """Fusion for Pipeline, cross_val_score and GridSearchCV.

    Arguments are Fusion's; every column of X is auxiliary, and a reference may be another of these.
    Like all models in a model it is unfitted where scikit-learn clones them: then it is learned
    inside each training set. `predict` is the posterior mean of θ
    given X, `predict_posterior` all of it, and `score` the mean log-predictive of y: larger is
    better. The fitted Fusion is `fusion_`.
    """

    n_features_in_: int  # which scikit-learn finds

    def __init__(
        self,
        family: str | Family = "binomial",
        *,
        prior: Statistic | str = "weak",
        mapping: Given | None = None,
        objective: str | Objective = "maximum-likelihood",
        reference: str | Spec | FusionRegressor = "prior",
        balance: int = 0,
        ensemble: Ensemble | None = None,
        preprocess: str | None = None,
        seed: int = 0,
    ) -> None:
        self.family = family
        self.prior = prior
        self.mapping = mapping
        self.objective = objective
        self.reference = reference
        self.balance = balance
        self.ensemble = ensemble
        self.preprocess = preprocess
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Any,
        trials: Any = None,
        exposure: Any = None,
        n: Any = None,
        variance: Any = None,
        sample_weight: Any = None,
    ) -> FusionRegressor:
        """Learn from the rows whose y is not missing."""
        self._take_names(X, reset=True)
        design = {"trials": trials, "exposure": exposure, "n": n, "variance": variance}
        primary, columns = self._primary(y, design)
        weights = None
        if sample_weight is not None:
            weights = self._name("sample_weight")
            columns[weights] = column_or_1d(sample_weight)
        fusion = self._fusion(primary=primary, auxiliary=self._names(), weights=weights)
        self.fusion_ = fusion.fit(self._table(X, columns))
        return self

    def _fusion(self, **columns: Any) -> Fusion:
        """The same of a frame's columns, with a reference that is."""
        shared, other = self.get_params(deep=False), self.reference
        if isinstance(other, FusionRegressor):
            fitted = getattr(other, "fusion_", None)
            shared["reference"] = fitted or other._fusion(**columns)
        return Fusion(**columns, **shared)

    def predict(self, X: Any) -> np.ndarray:
        """The posterior mean of θ given X: one number a row, or one a class."""
        return self.predict_posterior(X).mean()

    def predict_posterior(self, X: Any) -> Posterior:
        """The posterior of θ given X."""
        check_is_fitted(self)
        self._take_names(X, reset=False)
        return self.fusion_.posterior(self._table(X, {}), given="auxiliary")

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        trials: Any = None,
        exposure: Any = None,
        n: Any = None,
        variance: Any = None,
    ) -> float:
        """The mean log-predictive of y. Rows of the fit are scored by fits without them, and rows
        that saw nothing (no trials) do not count."""
        check_is_fitted(self)
        self._take_names(X, reset=False)
        design = {"trials": trials, "exposure": exposure, "n": n, "variance": variance}
        scores = self.fusion_.log_scores(self._table(X, self._primary(y, design)[1]))
        weight = np.ones(len(scores)) if sample_weight is None else column_or_1d(sample_weight)
        check_consistent_length(scores, weight)
        known = np.isfinite(scores)
        if not weight[known].any():
            remedy = "give rows that saw something and count"
            raise check.DataError("y", None, None, "has no row that can be scored", remedy)
        return float(np.average(scores[known], weights=weight[known]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        family = named_family(self.family)
        tags.input_tags.allow_nan = True
        tags.target_tags.multi_output = _is_vector(family)
        tags.target_tags.single_output = not _is_vector(family)
        tags.target_tags.positive_only = hasattr(family, "effective")  # counts
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = True  # it is no R²
        return tags

    # --- X and y as the frame of a Fusion ---

    def _take_names(self, X: Any, reset: bool) -> None:
        """Of the columns, which scikit-learn keeps and compares with later ones."""
        whole = hasattr(X, "columns")
        if whole:
            Frame.open(X)  # which refuses what is there twice
        validate_data(self, X, reset=reset, skip_check_array=whole, **({} if whole else ANY_CELLS))

    def _names(self) -> list[str]:
        """Of the columns of X: a frame's own, or numbered."""
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        return list(getattr(self, "feature_names_in_", numbered))

    def _name(self, name: str) -> str:
        """Of a column beside X, other than all of X."""
        while name in self._names():
            name += "_"
        return name

    def _primary(
        self, y: Any, design: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The family's words and the names of their columns; and these columns."""
        family = named_family(self.family)
        if isinstance(family, Joint):
            problem, remedy = "joins several outcomes, and y is one", "use ldf.Fusion"
            raise check.DataError("family", None, None, problem, remedy)
        outcome = next(word for word in family.columns if word not in family.design)
        if _is_vector(family):
            array = check_array(y, **ANY_CELLS)
            given = getattr(y, "columns", range(array.shape[1]))
            names = [self._name(c if isinstance(c, str) else f"y{c}") for c in given]
            primary: dict[str, Any] = {outcome: names}
            columns = dict(zip(names, array.T, strict=True))
        else:
            name = self._name("y")
            primary, columns = {outcome: name}, {name: column_or_1d(y, warn=True)}
        for word, values in design.items():
            if values is None:
                if word in family.design and _is_needed(family, word):
                    remedy = f"give it beside y: {word}=…"
                    raise check.DataError(word, None, None, "is not given", remedy)
                continue
            if word not in family.columns:
                problem = f"is not a word of {type(family).__name__}"
                raise check.DataError(word, None, None, problem, "leave it out")
            name = self._name(word)
            primary[word], columns[name] = name, column_or_1d(values)
        return primary, columns

    def _table(self, X: Any, columns: dict[str, np.ndarray]) -> Any:
        """X with other columns beside it: a frame as a frame of its kind, an array as a dict."""
        check_consistent_length(X, *columns.values())
        if hasattr(X, "columns") and hasattr(self, "feature_names_in_"):
            frame = nw.from_native(X, eager_only=True)
            kind = frame.implementation
            more = [nw.new_series(name, cells, backend=kind) for name, cells in columns.items()]
            return frame.with_columns(*more).to_native()
        array = check_array(X, **ANY_CELLS)
        return dict(zip(self._names(), array.T, strict=True)) | columns


def _is_needed(family: Family, word: str) -> bool:
    known = inspect.signature(family.statistic).parameters
    return word in known and known[word].default is inspect.Parameter.empty


def _is_vector(family: Family) -> bool:
    return max(family.natural.event_axes) > 0
