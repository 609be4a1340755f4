"""The figures of Section 6, from the study's numbers; and those the paper lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import plot
from ldf.studies.figure import Figure, calibration, laws, pit, rates, scores
from ldf.studies.homicide.study import EM, Homicide

ROLES = {"ldf": "ldf", "mixture": EM, "compound": "gamma-poisson", "plain": "poisson"}
NAMES = {
    "ldf": "LDF",
    "mixture": "LDF-MM",
    "compound": "gamma-Poisson regression",
    "plain": "Poisson regression",
}
PER = 100.0  # exposure is in thousands; rates are shown for 100,000
WHOLE = "counties, with their whole state held out,"
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
        calibration(of.cv, ROLES, NAMES, "counties, held out at random,"),
        calibration(of.by_state, ROLES, NAMES, WHOLE, "calibration_by_state"),
        pit(of.cv, ROLES, NAMES),
    ]
    return [*found, _later(of)] if of.later else found


def _mapped(
    of: Homicide, name: str, title: str, values: np.ndarray, caption: str, **how: Any
) -> Figure:
    table = plot.map_frame({title: values}, of.shapes)
    table.insert(0, "county", of.county)
    table.insert(1, "state", of.state)
    return Figure(name, caption, table, lambda: plot.areas({title: values}, of.shapes, **how))


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
    rows = of.largest
    names = zip(of.county[rows], of.state[rows], strict=True)
    unit = [f"{county}, {state}" for county, state in names]
    found, y = laws(of.cv, ROLES, rows, kind), of.cv.data.y
    if kind == "posteriors":
        table = plot.Profiles.of_theta(found, unit=unit, observed=rates(of.cv)[rows], per=PER)
    else:
        count = y["count"][rows]
        table = plot.Profiles.of_counts(
            found, y["exposure"][rows], unit=unit, observed=count, per=PER
        )
    what = "p(θ | x)" if kind == "posteriors" else "p(y | x)"
    caption = f"{what} of the most populous county of each state, by fits that have not seen it."
    return Figure(
        kind, caption, table.to_frame(),
        lambda: plot.profiles(table, names=NAMES, quantity=RATE, scale="sqrt"),
    )  # fmt: skip


def _differences(of: Homicide) -> Figure:
    score = scores(of.cv)
    compound = score["gamma-poisson"]
    pairs = {f"{NAMES[role]} − gamma-Poisson": (score[ROLES[role]], compound) for role in
             ("ldf", "mixture")}  # fmt: skip
    table = plot.Differences.of(pairs, PER * rates(of.cv)[of.cv.counted])
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
        "county; those of gamma-Poisson regression are a dashed line a fold, as long as its rates "
        "reach."
    )
    return Figure(
        "statistics", caption, table.to_frame(),
        lambda: plot.worth(
            table, names=NAMES, rate=f"a(x) / b(x): {RATE}", amount="a(x)", log=True
        ),
    )  # fmt: skip


def _later(of: Homicide) -> Figure:
    pairs = {
        f"{period}: x and y − {short}": (score["x and this period"], score[name])
        for period, score in of.later.items()
        for short, name in (("x", "x"), ("y", "this period"))
    }
    table = plot.Differences.of(pairs)
    caption = (
        "Counts of other periods, given x and this period's y rather than one of them: "
        f"log-likelihoods a county, by {of.foretold_by}."
    )
    return Figure("other_periods", caption, table.to_frame(), lambda: plot.differences(table))
