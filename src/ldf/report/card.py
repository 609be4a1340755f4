"""The model card: what was done with which data, in plain words, and the items that GATHER asks
reports of estimates for (Stevens and others, Lancet 2016)."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from ldf.checkpoint import version
from ldf.families.joint import Joint
from ldf.report.answers import Answers
from ldf.report.far import Distance
from ldf.report.words import Words

PACKAGES = ("numpy", "scipy", "jax", "equinox", "optax", "scikit-learn", "xgboost-cpu", "xgboost")
AUTHOR = "To be told by the author of this report."


def model_card(
    of: Answers, words: Words, mass: float, distance: Distance, checks: dict[str, Any]
) -> dict[str, Any]:
    """Sections of sentences, and the GATHER items."""
    return {
        "sections": [
            {"title": "Data", "lines": _data(of, words)},
            {"title": "Model", "lines": _model(of)},
            {"title": "How to read it", "lines": _reading(words, mass)},
            {"title": "Seeds and versions", "lines": _versions(of)},
        ],
        "gather": [
            {"item": item, "asks": asks, "answer": answer}
            for item, (asks, answer) in enumerate(_gather(of, words, mass, checks), 1)
        ],
        "far": distance.in_words,
    }


def _shown(of: Answers) -> list[str]:
    return [of.model.shown_name(name) for name in of.model.columns().auxiliary]


def _data(of: Answers, words: Words) -> list[str]:
    seen = of.data.seen
    primary = ", ".join(
        f"{word}: {column if isinstance(column, str) else ', '.join(map(str, column))}"
        for word, column in of.model.columns().words.items()
    )
    family = of.data.family
    several = family.sources if isinstance(family, Joint) else ()
    lines = [
        f"{len(of):,} units, {int(seen.sum()):,} of them with primary data; "
        f"{int(of.training.sum()):,} are rows that the model has learned from.",
        f"Primary data, {type(family).__name__} ({primary}).",
        f"Auxiliary data, {len(_shown(of))} columns: {', '.join(_shown(of))}.",
    ]
    if several:
        kinds = ", ".join(f"{name} ({type(one).__name__})" for name, one in several)
        lines.append(
            f"Primary sources that add: {kinds}. Scores are of all that a unit has; what is "
            f"predicted, and the calibration of it, is of {several[0][0]}."
        )
    for block in of.data.schema.blocks:
        size = " × ".join(map(str, block.shape))
        lines.append(
            f"Beside the table, '{block.source}': {block.kind}, {size} numbers a unit, of which "
            "this page shows none."
        )
    if of.model.columns().sensitive:
        lines.append(
            "Columns that are sensitive are named by their number, and their values are given as "
            "ranks only. Nothing on this page says what causes what."
        )
    return lines + [f"When it was fitted: {note}" for note in of.model.notes_]


def _model(of: Answers) -> list[str]:
    learned, model = of.learned, of.model
    members = ", ".join(
        f"{t.model.named} {share:.0%}".replace("%", " %")
        for t, share in zip(learned.trained, learned.share, strict=True)
        if hasattr(t.model, "mapping")
    )
    prior = model.prior if isinstance(model.prior, str) else "given by hand"
    objective = model.objective if isinstance(model.objective, str) else "a function of the user's"
    return [
        "Lightweight data fusion with conjugate mappings: what auxiliary data say of a unit is "
        "learned as the statistic that primary data would have had. Prior, auxiliary and primary "
        "data add, and the posterior follows by conjugacy.",
        f"Members and their shares: {members}." if members else "A mixture of mappings.",
        f"Prior: {prior}. Objective: {objective}.",
        f"Learning: {model.status_}",
        "Rows that were learned from are answered for by fits that had not seen them, so that "
        "their primary data count once.",
    ]


def _reading(words: Words, mass: float) -> list[str]:
    return [
        f"An interval is the narrowest that holds the {words.theta} with probability "
        f"{100 * mass:.3g} %.",
        f"Pseudo-observations say what a source is worth, in {words.unit}: they add.",
        "Units are described one by one. Differences, ranks and totals of several units need draws "
        "of all together: ask the posterior for them in Python.",
        "Auxiliary columns go with the quantity; that does not mean that they bring it about.",
    ]


def _versions(of: Answers) -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    own = f"ldf {version()}, Python {platform.python_version()}"
    return [f"Seed {of.model.seed}.", f"{own}, {', '.join(found)}."]


def _gather(
    of: Answers, words: Words, mass: float, checks: dict[str, Any]
) -> list[tuple[str, str]]:
    aux = f"{len(_shown(of))} auxiliary columns, listed under Data. " + AUTHOR
    score = checks.get("score")
    told = "No primary data to compare with." if score is None else (
        f"Mean held-out log score {score:.3f} a unit, of {checks['units']:,} units; coverage and "
        "PIT are on this page."
    )  # fmt: skip
    n = of.primary()[1]  # NaN where nothing was seen, which is neither zero nor more
    biases = (
        f"{int((~of.data.seen).sum()):,} units have no primary data, and "
        f"{int((of.data.seen & (n == 0)).sum()):,} asked nobody; whether these are missing at "
        "random the model cannot tell. " + AUTHOR
    )
    return [
        ("Indicator, population, period", f"The {words.theta}, of {len(of):,} units. " + AUTHOR),
        ("Funding", AUTHOR),
        ("How data were found and accessed", AUTHOR),
        ("Which data were included", f"Rows with primary data were learned from. {AUTHOR}"),
        ("The sources and their character", AUTHOR),
        ("Data with important biases", biases),
        ("Covariates and their sources", aux),
        ("Data inputs in a usable format", AUTHOR),
        ("The method in outline", "See Model, on this page."),
        ("All steps and formulas", "Posterior = prior + statistic of auxiliary data + statistic of "
         "primary data, in natural parameters; ldf's documentation has every step."),
        ("How models were chosen", "Members are combined by weights learned out of fold; no model "
         "was picked by hand here."),
        ("Evaluation", told),
        ("Uncertainty, and what it leaves out", "Intervals hold the uncertainty of θ given the "
         "data and between members. They leave out errors of measurement in the columns, and "
         "whatever neighbours have in common beyond their auxiliary data."),
        ("Source code", "The package ldf, of the version given here."),
        ("Estimates in a usable format", "The button above the table saves them as CSV."),
        ("Uncertainty of the estimates", f"{100 * mass:.3g} % intervals, standard deviations, "
         "entropies and exceedance probabilities are in the table."),
        ("What the results mean, beside others", AUTHOR),
        ("Limits", "Far from the training data the estimates rest on the model's shape: such "
         "units are flagged. " + AUTHOR),
    ]  # fmt: skip
