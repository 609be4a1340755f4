"""From a model and a frame to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import check_mass
from ldf.families.joint import Joint
from ldf.report import card, checks, columns, shapes
from ldf.report.answers import Answers
from ldf.report.far import distances
from ldf.report.pack import array, text
from ldf.report.page import Page, page
from ldf.report.words import Words, round_threshold


def explore(
    model: Any,
    frame: Any,
    *,
    validation: Any = None,
    geometry: Any = None,
    mass: float = 0.9,
    threshold: float | None = None,
    title: str | None = None,
    component: Any = None,
) -> Page:
    """The explorer of a fitted model and a frame: one HTML page that opens offline.

    validation  what ldf.cross_validate gave, for scores beside baselines
    geometry    where units are: two columns of the frame or one of shapes; two numbers a unit; or a
                shape a unit (well-known binary, shapely's, a column of geopandas, or plot.Areas).
                The model's own if left out
    mass        of the intervals
    threshold   of the exceedance P(θ > threshold); the mean of all units if left out
    component   of a θ that is a vector: which is shown, by name or number

    A notebook shows the page; `.save(path)` writes it.
    """
    check_mass(mass)
    of = Answers.of(model, frame, component)
    if not len(of):
        raise check.DataError("frame", None, None, "has no row", "give units to report")
    shown = None if of.component is None else of.units.components[of.component]
    means = np.asarray(of.posterior(of.after, "both").mean())
    if means.shape != (len(of),):
        problem, remedy = "has a θ of several parts", "report a family whose θ is one number"
        raise check.DataError("family", None, type(of.data.family).__name__, problem, remedy)
    spoken = model.columns().words
    if isinstance(of.data.family, Joint):
        spoken = of.data.family.part(None, spoken)
    words = Words.of(of.first.family, spoken, shown, float(np.median(means)))
    above = round_threshold(means) if threshold is None else float(threshold)
    distance = distances(of.data.x[:, of.data.schema.tabular], of.training)
    checked = checks.of_model(of, validation)
    named = title or f"{words.theta}: {len(of):,} units"
    laws = columns.laws(of)
    prior_t, prior_n = (float(part) for part in of.worth(columns.prior_mean(of)))
    own = None if of.data.place is None else model.columns().geometry
    content = {
        "title": named,
        "family": words.family,
        "words": {
            "theta": words.theta,
            "unit": words.unit,
            "times": words.times,
            "suffix": words.suffix,
            "outcome": words.outcome,
            "asked": None if laws is None else words.asked,
            "why_not": words.why_not,
            "scale": of.scale,
            "whole": words.family in ("Binomial", "Multinomial"),
        },
        "mass": mass,
        "threshold": above,
        "labels": [text(label) for label in of.units.label.tolist()],
        "columns": columns.of_units(of, words, mass, above, distance, laws is not None),
        "seen": array(of.data.seen, "u1"),
        "training": array(of.training, "u1"),
        "far": array(distance.far, "u1"),
        "prior": [prior_t, prior_n],
        "laws": laws,
        "features": columns.features(of),
        "map": shapes.of_units(frame, len(of), own if geometry is None else geometry),
        "checks": checked,
        "card": card.model_card(of, words, mass, distance, checked),
    }
    return page(content, named)


def write(model: Any, frame: Any, path: Any, **options: Any) -> Path:
    """Write the explorer into a file; the options are those of `explore`. A file that is already
    there is replaced only if it is such a page."""
    return explore(model, frame, **options).save(path)
