"""How probability is spread over each unit's values, by model: the table of posteriors and
predictives side by side.

The range of a unit is cut into cells, and the table holds the probability of each, by the
distribution function: so nothing is lost however narrow a peak is or however many values there
are, and a density that is infinite at an end has a finite cell. θ has cells between two values;
counts y, shown as rates y/n, have cells of one value, or of several neighbours if there are many.

>>> import ldf
>>> family = ldf.Binomial()
>>> seen = family.prior(0.5, 0.5) + family.statistic(successes=[3, 0], trials=[10, 4])
>>> table = Profiles.of_counts({"ldf": family.predictive(seen, trials=[10, 4])}, exposure=[10, 4])
>>> (table.left[1, :5] * 4).round().tolist()  # the counts of the second unit
[0.0, 1.0, 2.0, 3.0, 4.0]
>>> np.nansum(table.mass["ldf"], 1) > 0.999
array([ True,  True])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check
from ldf.check import DataError
from ldf.distributions import PointMass
from ldf.plot.roles import check_models
from ldf.plot.table import Table, column, labels

CELLS = 240
TAILS = (0.0005, 0.9995)  # the central 99.9 %


@dataclass(frozen=True, eq=False)
class Profiles(Table):
    """Units × cells; where a unit has fewer cells than others, NaN."""

    unit: np.ndarray  # names
    left: np.ndarray  # of each cell: where it begins; for counts its lowest value
    right: np.ndarray  # where it ends; for counts its highest value
    step: np.ndarray  # a unit: between neighbouring values of counts; 0 for θ
    mass: dict[str, np.ndarray]  # by role: the probability of each cell
    at: dict[str, np.ndarray]  # by role: where all probability is, a unit (a known θ)
    observed: np.ndarray  # a unit: NaN where there is none

    @property
    def roles(self) -> tuple[str, ...]:
        return (*self.mass, *self.at)

    def __len__(self) -> int:
        return len(self.unit)

    def __getitem__(self, rows: Any) -> Profiles:
        """Some of the units."""
        some = np.atleast_1d(np.arange(len(self))[rows])
        pick = lambda of: {role: values[some] for role, values in of.items()}  # noqa: E731
        of = (self.unit, self.left, self.right, self.step, self.observed)
        unit, left, right, step, observed = (values[some] for values in of)
        return Profiles(unit, left, right, step, pick(self.mass), pick(self.at), observed)

    def to_dict(self) -> dict[str, np.ndarray]:
        """One row a model, unit and cell. A point mass is a cell without width, and so is what was
        observed, of mass NaN."""
        units, cells = self.left.shape
        parts = []
        for role, mass in self.mass.items():
            cell = [np.repeat(self.unit, cells), self.left.ravel(), self.right.ravel()]
            parts.append([np.full(mass.size, role), *cell, mass.ravel()])
        for role, at in self.at.items():
            parts.append([np.full(units, role), self.unit, at, at, np.ones(units)])
        seen = [self.unit, self.observed, self.observed, np.full(units, np.nan)]
        parts.append([np.full(units, "observed"), *seen])
        columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
        there = np.isfinite(columns[2])
        names = ("model", "unit", "left", "right", "mass")
        return {name: of[there] for name, of in zip(names, columns, strict=True)}

    @classmethod
    def of_theta(
        cls,
        models: Mapping[str, Any],
        *,
        unit: Any = None,
        observed: Any = None,
        limits: tuple[float, float] | None = None,
        per: float = 1.0,
        cells: int = CELLS,
    ) -> Profiles:
        """Of posteriors, by role. `observed` are empirical rates.

        All units share the cells between `limits`, or else those of the support if it is finite;
        otherwise each has its own, over the central 99.9 % of its models. `per` is the exposure
        that a rate is shown for: 100,000 for homicides.
        """
        laws, known, units = _laws(models)
        if limits is not None:
            limits = (limits[0] / per, limits[1] / per)
        ends = _ends(laws, known, units, limits)
        edges = np.linspace(*ends, cells + 1, axis=-1)
        mass = {}
        for role, law in laws.items():
            up_to = np.broadcast_to(law.cdf(edges.T), edges.T.shape).T
            mass[role] = np.clip(np.diff(up_to, axis=1), 0, 1)
        at = {role: np.broadcast_to(where, units) * per for role, where in known.items()}
        names, marks = labels(unit, units), column("observed", observed, units) * per
        edges = edges * per
        return cls(names, edges[:, :-1], edges[:, 1:], np.zeros(units), mass, at, marks)

    @classmethod
    def of_counts(
        cls,
        models: Mapping[str, Any],
        exposure: Any,
        *,
        unit: Any = None,
        observed: Any = None,
        per: float = 1.0,
        cells: int = CELLS,
    ) -> Profiles:
        """Of predictives of counts, by role, as rates: `exposure` is what a count is divided by,
        its trials or its exposure. `observed` are counts. Each unit's cells hold all values in the
        central 99.9 % of its models."""
        laws, known, units = _laws(models)
        if known:
            problem, remedy = "is of θ, not of counts", "give its predictive"
            raise DataError("models", None, next(iter(known)), problem, remedy)
        size = np.asarray(check.positive("exposure", exposure), dtype=float)
        size = np.broadcast_to(size, (units,))
        low, high = _ends(laws, {}, units, None)
        # So many neighbouring values go into a cell that the cells are enough for all of them.
        together = np.maximum(1, np.ceil((high - low + 1) / cells))
        first = low[:, None] + np.arange(cells) * together[:, None]
        last = np.minimum(first + together[:, None] - 1, high[:, None])
        there = first <= high[:, None]
        first, last = (np.where(there, of, np.nan) for of in (first, last))
        mass = {role: _between(law, first, last) for role, law in laws.items()}
        scale = per / size
        names, marks = labels(unit, units), column("observed", observed, units) * scale
        left, right = first * scale[:, None], last * scale[:, None]
        return cls(names, left, right, scale, mass, {}, marks)


def _laws(models: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray], int]:
    """Distributions with a width, places of those without, and how many units there are."""
    check_models(models)
    laws = {role: getattr(of, "distribution", of) for role, of in models.items()}
    shape: Any = np.broadcast_shapes(*(law.shape for law in laws.values()), (1,))
    if len(shape) > 1:
        raise ValueError(f"units have shape {shape}: give distributions of one row of units")
    known = {role: np.asarray(of.at) for role, of in laws.items() if isinstance(of, PointMass)}
    return {role: of for role, of in laws.items() if role not in known}, known, shape[0]


def _ends(
    laws: dict[str, Any],
    known: dict[str, np.ndarray],
    units: int,
    limits: tuple[float, float] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest value shown of each unit."""
    supports = [law.support for law in laws.values() if hasattr(law, "support")]
    if limits is None and supports and np.isfinite(supports).all():
        limits = min(low for low, _ in supports), max(high for _, high in supports)
    if limits is not None:
        return np.full(units, limits[0]), np.full(units, limits[1])
    tails = [[np.broadcast_to(law.quantile(q), units) for law in laws.values()] for q in TAILS]
    for ends in tails:
        ends.extend(np.broadcast_to(where, units) for where in known.values())
    low, high = np.min(tails[0], 0), np.max(tails[1], 0)
    if laws:
        return low, high
    return low - 0.5, high + 0.5  # point masses alone need some room


def _between(law: Any, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The probability of the whole numbers from first to last, units × cells."""
    there = np.isfinite(first)
    low, high = (np.where(there, of, 0.0).T for of in (first, last))
    up_to, below = law.cdf(high), np.where(low > 0, law.cdf(np.maximum(low - 1, 0)), 0.0)
    return np.where(there, np.clip(up_to - below, 0, 1).T, np.nan)
