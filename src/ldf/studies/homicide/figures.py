"""The figures of Section 6, from the study's numbers; and those the paper lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import plot
from ldf.plot.table import data_frame
from ldf.studies.figure import Figure
from ldf.studies.homicide.study import EM, Homicide, largest
from ldf.table import empirical_rate
from ldf.validate import CrossValidation

ROLES = {"ldf": "ldf", "mixture": EM, "compound": "gamma-poisson", "plain": "poisson"}
NAMES = {
    "ldf": "LDF",
    "mixture": "LDF-MM",
    "compound": "gamma-Poisson regression",
    "plain": "Poisson regression",
}
PER = 100.0  # exposure is in thousands; rates are shown for 100,000
RATE = "homicides a year, per 100,000"


def figures(of: Homicide) -> list[Figure]:
    """All of them, in the paper's order, then folds of whole states and another period."""
    maps = [] if of.shapes is None else [_mean_map(of), _entropy_map(of), _assignment_map(of)]
    found = [
        *maps,
        _counties(of, "posteriors"),
        _differences(of),
        _statistics(of),
        _counties(of, "predictives"),
        _calibration(of.cv, "calibration", "held out at random"),
        _calibration(of.by_state, "calibration_by_state", "with their whole state held out"),
        _pit(of.cv),
    ]
    return found if of.later is None else [*found, _later(of.later)]


def _laws(cv: CrossValidation, rows: np.ndarray, kind: str) -> dict[str, Any]:
    """p(θ | x) or p(y | x) of some counties, by each model's role."""
    found = {}
    for role, name in ROLES.items():
        if name in cv.answers:
            answer = cv.answers[name]
            said, exposure = answer.of(rows), {"exposure": cv.data.y["exposure"][rows]}
            posterior = kind == "posteriors"
            found[role] = (
                answer.learned.posterior(said)
                if posterior
                else answer.learned.predictive(said, exposure)
            )
    return found


def _rate(of: Homicide) -> np.ndarray:
    data = of.cv.data
    return empirical_rate(data.family, data.y, data.seen)


def _mapped(
    of: Homicide, name: str, title: str, values: np.ndarray, caption: str, **how: Any
) -> Figure:
    columns = {"county": of.county, "state": of.state, title: values}
    return Figure(
        name, caption, data_frame(columns), lambda: plot.areas({title: values}, of.shapes, **how)
    )


def _mean_map(of: Homicide) -> Figure:
    answer = of.cv.answers[EM]
    every = np.ones(len(of.county), bool)
    mean = PER * np.asarray(answer.learned.posterior(answer.of(every)).mean())
    caption = "Posterior mean of the rate given auxiliary data, by LDF-MM; held out."
    return _mapped(of, "map_mean", RATE, mean, caption, scale="log")


def _entropy_map(of: Homicide) -> Figure:
    caption = "Entropy of which mapping holds, p(z | x, y), in nats; uniform would be 1.10."
    limits = (0.0, float(np.log(len(of.assignment))))
    return _mapped(
        of, "map_entropy", "entropy of the assignment", of.entropy, caption, limits=limits
    )


def _assignment_map(of: Homicide) -> Figure:
    label = of.assignment.argmax(0)
    names = np.array([f"mapping {k}" for k in range(len(of.assignment))])
    caption = "The likeliest mapping of each county; clusters from fewest counties to most."
    return _mapped(
        of, "map_assignment", "likeliest mapping", names[label], caption, order=names.tolist()
    )


def _counties(of: Homicide, kind: str) -> Figure:
    rows = largest(of)
    names = zip(of.county[rows], of.state[rows], strict=True)
    unit = [f"{county}, {state}" for county, state in names]
    laws, y = _laws(of.cv, rows, kind), of.cv.data.y
    if kind == "posteriors":
        table = plot.Profiles.of_theta(laws, unit=unit, observed=_rate(of)[rows], per=PER)
    else:
        count = y["count"][rows]
        table = plot.Profiles.of_counts(
            laws, y["exposure"][rows], unit=unit, observed=count, per=PER
        )
    what = "p(θ | x)" if kind == "posteriors" else "p(y | x)"
    caption = f"{what} of the most populous county of each state, by fits that have not seen it."
    return Figure(
        kind, caption, table.to_frame(),
        lambda: plot.profiles(table, names=NAMES, quantity=RATE, scale="sqrt"),
    )  # fmt: skip


def _differences(of: Homicide) -> Figure:
    score = {name: answer.log_score[of.cv.counted] for name, answer in of.cv.answers.items()}
    compound = score["gamma-poisson"]
    pairs = {f"{NAMES[role]} − gamma-Poisson": (score[ROLES[role]], compound) for role in
             ("ldf", "mixture")}  # fmt: skip
    table = plot.Differences.of(pairs, PER * _rate(of)[of.cv.counted])
    caption = "Difference of held-out log-likelihoods a county: above zero LDF explains it better."
    return Figure(
        "differences", caption, table.to_frame(),
        lambda: plot.differences(table, rate="observed rate, per 100,000"),
    )  # fmt: skip


def _statistics(of: Homicide) -> Figure:
    pick = of.assignment.argmax(0)
    pseudo = of.said.pseudo[pick, np.arange(len(pick))]
    baseline = of.cv.answers["gamma-poisson"].of(of.cv.counted).mean()
    label = [f"mapping {k}" for k in pick]
    table = plot.Worth.of(pseudo, baseline, assignment=label, per=PER)
    caption = (
        "Pseudo-occurrences a(x) against the rate a(x) / b(x), by the likeliest mapping of each "
        "county, and those of gamma-Poisson regression."
    )
    return Figure(
        "statistics", caption, table.to_frame(),
        lambda: plot.worth(
            table, names=NAMES, rate=f"a(x) / b(x): {RATE}", amount="a(x)", log=True
        ),
    )  # fmt: skip


def _calibration(cv: CrossValidation, name: str, how: str) -> Figure:
    y = cv.data.y["count"][cv.counted]
    table = plot.Calibration.of(_laws(cv, cv.counted, "predictives"), y)
    caption = f"Share of counties, {how}, inside their predictive sets, against what these hold."
    return Figure(name, caption, table.to_frame(), lambda: plot.calibration(table, names=NAMES))


def _pit(cv: CrossValidation) -> Figure:
    y = cv.data.y["count"][cv.counted]
    table = plot.Pit.of(_laws(cv, cv.counted, "predictives"), y, seed=0)
    caption = "Randomised probability integral transform: flat, within the band, if calibrated."
    return Figure("pit", caption, table.to_frame(), lambda: plot.pit(table, names=NAMES))


def _later(scores: dict[str, np.ndarray]) -> Figure:
    both = scores["x and this period"]
    pairs = {f"x and this period − {name} alone": (both, scores[name]) for name in
             ("x", "this period")}  # fmt: skip
    table = plot.Differences.of(pairs)
    caption = (
        "Another period's counts, given both sources rather than one: log-likelihoods a county."
    )
    return Figure("another_period", caption, table.to_frame(), lambda: plot.differences(table))
