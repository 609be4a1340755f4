"""The figures of Section 5 and of Appendix C, from the study's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import plot
from ldf.studies.electrification.study import Electrification
from ldf.studies.figure import Figure, calibration, laws, panels, pit, rates, scores

ROLES = {"ldf": "ldf", "compound": "beta-binomial", "plain": "binomial"}
NAMES = {"ldf": "LDF", "compound": "beta-binomial regression", "plain": "binomial regression"}
REGIONS = slice(100, 150)  # "regions 101 thru 150", of those with primary data
MASS = 0.9


def figures(of: Electrification) -> list[Figure]:
    """All of them, in the paper's order."""
    found = [_units(of, "posteriors"), _entropy(of), _units(of, "predictives"), _differences(of)]
    first = [_two_regions(of), _statistics(of)]
    if of.place is not None:
        first.insert(0, _map(of))
        found += [_data(of, "primary"), _data(of, "auxiliary")]
    return [*first, *found, _objective(), *_checks(of)]


def _profiles(of: Electrification, rows: np.ndarray, kind: str) -> plot.Profiles:
    unit, y = of.cv.units.label[rows], of.cv.data.y
    found = laws(of.cv, ROLES, rows, kind)
    if kind == "posteriors":
        return plot.Profiles.of_theta(found, unit=unit, observed=rates(of.cv)[rows])
    return plot.Profiles.of_counts(
        found, y["trials"][rows], unit=unit, observed=y["successes"][rows]
    )


def _map(of: Electrification) -> Figure:
    learned, data = of.model.learned_, of.cv.data
    law = learned.posterior(learned.updated(of.said, data.y, data.seen))
    low, high = law.interval(MASS)
    columns = {"mean of θ": np.asarray(law.mean()), f"width of its {MASS:.0%} interval": high - low}
    grid = isinstance(of.place, tuple)
    if grid:
        columns = {name: values.reshape(of.place) for name, values in columns.items()}
    table = plot.map_frame(columns, None if grid else of.place)
    table.insert(0, "unit", of.cv.units.label)

    def draw() -> Any:
        if grid:
            return plot.grids(columns)
        return plot.points(columns, of.place, limits=(0.0, 1.0))

    caption = "Rates of electrification given all data, and how uncertain they are, at all units."
    return Figure("map", caption, table, draw)


def _two_regions(of: Electrification) -> Figure:
    """One with a low and one with a high rate, of those where many buildings were seen."""
    counted = np.flatnonzero(of.cv.counted)
    trials, rate = of.cv.data.y["trials"][counted], rates(of.cv)[counted]
    many = trials >= np.median(trials)
    # Not the extremes, where all that is seen is none or all.
    rows = []
    for level in (0.2, 0.9):
        aim = np.quantile(rate[many], level)
        rows.append(int(np.flatnonzero(many)[np.argmin(np.abs(rate[many] - aim))]))
    rows = counted[rows]
    names = [str(label) for label in of.cv.units.label[rows]]
    table = plot.Features.of(of.cv.data.x, _shown(of), rows, unit=names)
    posterior, predictive = (_profiles(of, rows, kind) for kind in ("posteriors", "predictives"))
    drawn = {"features": table, "posterior": posterior, "predictive": predictive}
    caption = (
        "A region with a low and one with a high rate: its features, its posterior given these, "
        "and the predictive of its primary data."
    )
    return Figure(
        "two_regions", caption, panels({name: each.to_frame() for name, each in drawn.items()}),
        lambda: plot.inferences(table, posterior, predictive, names=NAMES),
    )  # fmt: skip


def _shown(of: Electrification) -> list[str]:
    """Names of the encoded columns, without those that are sensitive."""
    schema = of.cv.data.schema
    return of.model.columns().shown_encoded(schema.names, schema.origins)


def _statistics(of: Electrification) -> Figure:
    counted = of.cv.counted
    baseline = of.cv.answers["beta-binomial"].of(counted).mean()
    table = plot.Worth.of(of.said.rows(counted).mean(), baseline)
    caption = (
        "What auxiliary data are worth in each region: pseudo-trials n against their success rate "
        "μ. Beta-binomial regression has one n for all regions, a dashed line a fold."
    )
    return Figure("statistics", caption, table.to_frame(), lambda: plot.worth(table, names=NAMES))


def _units(of: Electrification, kind: str) -> Figure:
    rows = np.flatnonzero(of.cv.counted)[REGIONS]
    table = _profiles(of, rows, kind)
    what, quantity = ("p(θ | x)", "θ") if kind == "posteriors" else ("p(y | x)", "y / n")
    caption = f"{what} of the regions 101 to 150, by fits that have not seen them."
    return Figure(
        kind, caption, table.to_frame(),
        lambda: plot.profiles(table, names=NAMES, quantity=quantity),
    )  # fmt: skip


def _entropy(of: Electrification) -> Figure:
    found = laws(of.cv, ROLES, of.cv.counted, "posteriors")
    table = plot.Entropies.of(found["ldf"], found["compound"], rates(of.cv)[of.cv.counted])
    caption = "Entropy of p(θ | x): above the diagonal LDF is surer than beta-binomial regression."
    return Figure("entropy", caption, table.to_frame(), lambda: plot.entropies(table, names=NAMES))


def _differences(of: Electrification) -> Figure:
    score = scores(of.cv)
    pairs = {f"LDF − {name}": (score["ldf"], score[name]) for name in ("beta-binomial", "binomial")}
    table = plot.Differences.of(pairs, rates(of.cv)[of.cv.counted])
    caption = "Difference of held-out log-likelihoods a region: above zero LDF explains it better."
    return Figure("differences", caption, table.to_frame(), lambda: plot.differences(table))


def _data(of: Electrification, which: str) -> Figure:
    data = of.cv.data
    if which == "primary":
        seen = of.cv.counted
        y, n = (np.where(seen, data.y[name], np.nan) for name in ("successes", "trials"))
        columns = {"Y": y, "N": n, "Y / N": y / np.where(seen, n, 1.0)}
        caption = "Primary data where there are trials: successes, trials, and the empirical rate."
    else:
        columns = dict(zip(_shown(of), data.x.T, strict=True))
        caption = "Auxiliary data, standardised."
    table = plot.Histograms.of(columns, standardise=which == "auxiliary")
    values = table.values_frame(of.cv.units.label)
    frame = panels({"histogram": table.to_frame(), "map": values})
    return Figure(f"{which}_data", caption, frame, lambda: plot.histograms(table, of.place))


def _objective() -> Figure:
    table = plot.Objective.of()
    caption = (
        "The model-selection objective and its derivative, by how much better a row is explained."
    )
    return Figure("objective", caption, table.to_frame(), lambda: plot.objective(table))


def _checks(of: Electrification) -> list[Figure]:
    cv = of.cv
    return [calibration(cv, ROLES, NAMES, "held-out regions"), pit(cv, ROLES, NAMES)]
