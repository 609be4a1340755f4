"""A figure of a study: what it shows, the numbers in it, and how it is drawn.

What both studies draw alike is made here: what each model says of units it has not seen, by the
model's role in `ldf.plot`, and how calibrated it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ldf import plot
from ldf.table import empirical_rate
from ldf.validate import CrossValidation

Words = Mapping[str, str]


class Figure(NamedTuple):
    """Nothing is drawn before `draw` is called."""

    name: str  # of its files
    caption: str
    table: Any  # a frame
    draw: Callable[[], Any]  # gives a figure of Matplotlib's


def laws(cv: CrossValidation, roles: Words, rows: np.ndarray, kind: str) -> dict[str, Any]:
    """p(θ | x) ("posteriors") or p(y | x) ("predictives") of some units, by the role of each model
    that is there."""
    design = {name: values[rows] for name, values in cv.data.design.items()}
    found = {}
    for role, name in roles.items():
        if name in cv.answers:
            learned, said = cv.answers[name].learned, cv.answers[name].of(rows)
            posterior = kind == "posteriors"
            found[role] = learned.posterior(said) if posterior else learned.predictive(said, design)
    return found


def rates(cv: CrossValidation) -> np.ndarray:
    """The empirical rate of every unit, NaN where nothing was seen."""
    return empirical_rate(cv.data.family, cv.data.y, cv.data.seen)


def scores(cv: CrossValidation) -> dict[str, np.ndarray]:
    """Held-out log scores of the units that were counted, by model."""
    return {name: answer.log_score[cv.counted] for name, answer in cv.answers.items()}


def panels(frames: Mapping[str, Any]) -> Any:
    """The numbers of a figure whose panels show different things, one under the other."""
    import pandas

    each = [of.assign(panel=name) for name, of in frames.items()]
    found = pandas.concat(each, ignore_index=True)
    return found[["panel", *(name for name in found if name != "panel")]]


def calibration(
    cv: CrossValidation, roles: Words, names: Words, units: str, name: str = "calibration"
) -> Figure:
    y = cv.data.outcome()[cv.counted]
    table = plot.Calibration.of(laws(cv, roles, cv.counted, "predictives"), y)
    caption = f"Share of {units} inside their predictive sets, against what these hold."
    return Figure(name, caption, table.to_frame(), lambda: plot.calibration(table, names=names))


def pit(cv: CrossValidation, roles: Words, names: Words) -> Figure:
    y = cv.data.outcome()[cv.counted]
    table = plot.Pit.of(laws(cv, roles, cv.counted, "predictives"), y, seed=0)
    caption = "Randomised probability integral transform: flat, within the band, if calibrated."
    return Figure("pit", caption, table.to_frame(), lambda: plot.pit(table, names=names))
