"""Whether to believe it: held-out scores beside baselines, coverage, and the PIT.

With a cross-validation, all of it is from there. Without, the model's own out-of-fold answers are
assessed: every training row by fits that had not seen it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import assess, check
from ldf.report.answers import Answers
from ldf.report.columns import scores
from ldf.report.pack import array, number, text

BINS = 20
ASSESSED = 3000  # units at most, where nothing was cross-validated: drawn at random
ADVICE = (
    "These are the model's own out-of-fold answers: fits that had not seen a row answer for it, "
    "but the members' shares were learned from all rows. For scores beside baselines, write the "
    "report with validation=ldf.cross_validate(model, frame)."
)


def of_model(of: Answers, validation: Any) -> dict[str, Any]:
    return _own(of) if validation is None else _validated(of, validation)


def _effective(of: Answers) -> bool:
    """Effective counts are no whole numbers, and cannot be compared with what is predicted."""
    return bool(getattr(of.first.family, "effective", False))


def _own(of: Answers) -> dict[str, Any]:
    score = scores(of)
    saw = np.isfinite(score)
    content: dict[str, Any] = {"advice": ADVICE, "models": [], "units": int(saw.sum())}
    content["score"] = number(score[saw].mean()) if saw.any() else None
    exact = of.first.exact() & saw
    if exact.any() and not _effective(of):
        at = np.flatnonzero(exact)
        if len(at) > ASSESSED:
            at = np.sort(np.random.default_rng(of.model.seed).choice(at, ASSESSED, replace=False))
        design = {name: values[at] for name, values in of.first.design.items()}
        law = of.learned.predictive(of.before.rows(at), design)
        y = of.first.outcome()[at]
        cover = assess.coverage(law, y).rows()
        content |= _calibration(of, cover, assess.pit(law, y, of.model.seed))
    return content


def _validated(of: Answers, cv: Any) -> dict[str, Any]:
    rows, first = cv.rows(), next(iter(cv.answers))
    content: dict[str, Any] = {"advice": "", "units": int(cv.counted.sum())}
    content["folds"] = len(cv.split.held)
    content["score"] = number(rows[0]["log_score"])
    content["models"] = [
        {
            "name": text(row["model"]),
            "score": number(row["log_score"]),
            "behind": number(row[f"minus_{first}"]),
            "error": number(row["standard_error"]),
            "held": number(row["coverage_90"]),
            "expected": number(row["expected_90"]),
        }
        for row in rows
    ]
    at = _match(of, cv)
    content["by_unit"] = [
        {"name": text(name), **{key: array(_spread(values, at)) for key, values in own.items()}}
        for name, own in ((name, _of_each(of, cv, name)) for name in cv.answers)
    ]
    if not _effective(of) and cv.having().any():
        content |= _calibration(of, cv.coverage(first), cv.pit(first, of.model.seed))
    return content


def _of_each(of: Answers, cv: Any, name: str) -> dict[str, np.ndarray]:
    """The held-out log score of each unit, and what the model had expected."""
    score = np.where(cv.counted, cv.answers[name].log_score, np.nan)
    mean = np.full(len(score), np.nan)
    if not _effective(of):
        own = np.asarray(cv.predictive(name).mean(), float)
        mean[cv.having()] = own if own.ndim == 1 else own[:, of.component or 0]
    return {"score": score, "mean": mean}


def _match(of: Answers, cv: Any) -> np.ndarray:
    """Where each unit of the report is among those that were cross-validated; −1 if it is not."""
    mine, theirs = of.units.label.tolist(), cv.units.label.tolist()
    if mine == theirs:
        return np.arange(len(mine))
    known = {label: i for i, label in enumerate(theirs)}
    found = np.array([known.get(label, -1) for label in mine], int)
    if len(known) < len(theirs) or (found < 0).all():
        problem, remedy = "is of other units than the frame", "cross-validate on this frame"
        raise check.DataError("validation", None, None, problem, remedy)
    return found


def _spread(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.where(at >= 0, values[np.maximum(at, 0)], np.nan)


def _calibration(of: Answers, cover: list[dict[str, Any]], pit: np.ndarray) -> dict[str, Any]:
    which = of.component or 0
    kept = [row for row in cover if row.get("component", which) == which]
    pit = pit if pit.ndim == 1 else pit[:, which]
    tests = assess.uniformity(pit).rows()
    return {
        "coverage": [
            {key: number(row[key]) for key in ("mass", "observed", "expected", "standard_error")}
            for row in kept
        ],
        "pit": np.histogram(pit, BINS, (0, 1))[0].tolist(),
        "uniform": {"test": tests[0]["test"], "p": number(tests[0]["p_value"])},
    }
