"""What each source is worth in each unit: its pseudo-observations, and how much it tells. And how
much each of its columns moves them.

Pseudo-observations of sources add. Information does not: it is KL(after ‖ before), how far a source
moves what is known of θ, and depends on what was known before. So it is given twice: beside all the
other sources, and alone.

Columns share in the logarithm of the count, or in the rate on the scale that a mapping has it on,
by Shapley values: shares that add to the unit's value. They say what the model makes of a column,
not what the column brings about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.stats import rankdata

from ldf import check, shapley
from ldf.data import Data
from ldf.learned import Learned, Said, Trained
from ldf.special import Array
from ldf.statistic import Arrivals, ClassCounts, NestedCounts, Potential, Trials

ROWS = 1 << 16  # asked about at once
CELLS = 1 << 24  # of these rows, at most: a row of an image has many


class Worth(NamedTuple):
    """Of each unit and source, units first: as many rows as units times sources."""

    pseudo: Any  # T_s, the members' weighted mean
    beside: np.ndarray  # in nats, the other sources being known
    alone: np.ndarray  # in nats, nothing else being known


def by_source(learned: Learned, data: Data, part: np.ndarray) -> Worth:
    """Of several sources. Before a source comes what the model says of a row that lacks it: beside
    it, others may be worth less."""
    many = len(data.schema.sources)
    together = learned.said(data.x, part)
    each = [learned.only(number).said(data.x, part) for number in range(many)]
    beside, alone = np.empty((2, len(data), many))
    there = data.x[:, -many:] > 0
    prior = learned.prior().spread(len(data))
    model: Any = learned.trained[0].model
    for number, own in enumerate(np.eye(many, dtype=bool)):
        without, itself = (learned.said(model.lacking(data.x, kept), part) for kept in (~own, own))
        beside[:, number] = _moved(learned, without, together)
        alone[:, number] = _moved(learned, prior, itself)
    beside, alone = np.where(there, beside, 0.0), np.where(there, alone, 0.0)
    pseudo = jax.tree.map(lambda *leaves: _interleaved(leaves), *[own.mean() for own in each])
    return Worth(pseudo, beside.ravel(), alone.ravel())


def _moved(learned: Learned, before: Said, after: Said) -> np.ndarray:
    """KL(after ‖ before) of each row: the members' mean, by their shares."""
    law = learned.family.posterior
    each = np.asarray(law(after.natural).divergence(law(before.natural)))
    return (after.share * np.maximum(each, 0.0)).sum(0)  # rounding aside, it never is negative


def _interleaved(leaves: tuple[np.ndarray, ...]) -> np.ndarray:
    """One a source, each with one row a unit, as rows of units and sources."""
    stacked = np.stack(leaves, 1)
    return stacked.reshape(-1, *stacked.shape[2:])


# --- columns ------------------------------------------------------------------------------------


class Moved(NamedTuple):
    """Of each unit: baseline + the sum of its attributions is its value."""

    attribution: np.ndarray  # units × columns
    baseline: np.ndarray  # the background's mean value, by the fits that answer for the unit


class Share(NamedTuple):
    """Of one column, in the units that have its source."""

    unit: np.ndarray  # their rows
    source: str
    column: str
    rank: np.ndarray  # of the unit's number among theirs, between 0 and 1; NaN if it is none
    moved: np.ndarray
    baseline: np.ndarray


def by_source_and_column(
    learned: Learned,
    value: Callable[[Any], np.ndarray],
    data: Data,
    part: np.ndarray,
    background: np.ndarray,
    seed: int,
) -> list[Share]:
    """Within each source, what its columns move in its own T_s. The background is then of rows that
    have the source."""
    schema, encoded = data.schema, data.schema.placed
    numbers = {column.name for column in schema.columns if column.kind == "number"}
    found = []
    for number, (source, own) in enumerate(schema.several or (("auxiliary", tuple(encoded)),)):
        names = [name for name in own if len(encoded[name])]
        alone = not schema.several
        at = -len(schema.several) + number
        there, behind = (
            np.ones(len(x), bool) if alone else x[:, at] > 0 for x in (data.x, background)
        )
        if not names or not there.any():  # an image, a series or a set has no columns
            continue
        if not behind.any():
            remedy = "give a background that has it in some row"
            raise check.DataError("background", None, source, "is a source it lacks", remedy)
        fits, x = learned if alone else learned.only(number), data.x[there]
        columns = [encoded[name] for name in names]
        moved = by_column(fits, value, columns, x, part[there], background[behind], seed)
        for name, attribution in zip(names, moved.attribution.T, strict=True):
            rank = _rank(x[:, encoded[name][0]]) if name in numbers else np.full(len(x), np.nan)
            unit = np.flatnonzero(there)
            found.append(Share(unit, source, name, rank, attribution, moved.baseline))
    if not found:
        problem, remedy = "has no columns in any unit", "give units that have a table of columns"
        raise check.DataError("auxiliary", None, None, problem, remedy)
    return found


def _rank(cells: np.ndarray) -> np.ndarray:
    """The share of others that are below, ties counting half; NaN where a cell is missing."""
    here = ~np.isnan(cells)
    rank = np.full(len(cells), np.nan)
    rank[here] = (rankdata(cells[here]) - 1) / max(here.sum() - 1, 1)
    return rank


def by_column(
    learned: Learned,
    value: Callable[[Any], np.ndarray],
    columns: Sequence[np.ndarray],
    x: np.ndarray,
    part: np.ndarray,
    background: np.ndarray,
    seed: int,
) -> Moved:
    """Of a value of T_x. `columns` are the encoded columns of each that has a share; others stay as
    the unit has them."""
    orders = shapley.draw_orders(len(columns), len(background), seed)
    own = shapley.own_cells(orders)
    rows = len(background), own.shape[1]
    cells = np.ones((*rows, x.shape[1]), bool)
    for number, encoded in enumerate(columns):
        cells[..., encoded] = own[..., number, None]
    attribution, baseline = np.empty((len(x), len(columns))), np.empty(len(x))
    at_once = max(1, min(ROWS, CELLS // x.shape[1]) // (rows[0] * rows[1]))

    def ask(job: tuple[_Fits, np.ndarray]) -> None:
        fits, some = job
        asked, whole = (value(found) for found in fits.mixed(x[some], background, cells))
        asked = asked.reshape(len(some), *rows)
        attribution[some] = shapley.attributed(orders, asked, whole)
        baseline[some] = asked[..., 0].mean(1)

    jobs = []
    for number in np.unique(part):
        fits, units = _Fits(learned, int(number)), np.flatnonzero(part == number)
        jobs += [(fits, units[start : start + at_once]) for start in range(0, len(units), at_once)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, jobs))
    return Moved(attribution, baseline)


class _Fits:
    """The fits that answer for units of one part."""

    def __init__(self, learned: Learned, part: int) -> None:
        self.trained = [trained.without(part) for trained in learned.trained]
        self.share, self.correction = learned.share, learned.correction

    def mixed(self, x: np.ndarray, background: np.ndarray, cells: np.ndarray) -> tuple[Any, Any]:
        """T_x of rows that have some cells of a unit and the others of a background row, and of the
        units themselves. Columns are preprocessed one by one, so cells may be mixed afterwards."""
        found = []
        for trained in self.trained:
            z, behind = trained.preprocess.apply(x), trained.preprocess.apply(background)
            of = np.tile(cells, z.shape[1] // x.shape[1])  # in each of several blocks
            rows = np.where(of, z[:, None, None], behind[None, :, None]).reshape(-1, z.shape[1])
            found.append([self._said(trained, some) for some in (rows, z)])
        weighed = [
            [own * share for own, share in zip(each, self.share, strict=True)]
            for each in zip(*found, strict=True)
        ]
        mixed, whole = (sum(each[1:], start=each[0]) for each in weighed)
        return mixed, whole

    def _said(self, trained: Trained, z: np.ndarray) -> Any:
        return trained.said_of(z, None, self.correction).mean()


def value_of(of: str, component: int | None, family: Any) -> Callable[[Any], np.ndarray]:
    """What of T_x columns share in: log n, or the rate as logit, logarithm or mean."""
    check.one_of("of", of, ("rate", "count"))
    if of == "count":
        return _log_count
    if family.natural in (ClassCounts, NestedCounts):
        if component is None:
            problem, remedy = "is not said", "choose one of the classes"
            raise check.DataError("component", None, None, problem, remedy)
        return lambda known: _logit(known.t[..., component], known.n)
    rates: dict[Any, Callable[[Any], Array]] = {
        Trials: lambda known: np.log(known.successes) - np.log(known.failures),
        Arrivals: lambda known: np.log(known.count) - np.log(known.exposure),
        Potential: lambda known: known.potential / known.precision,
    }
    if family.natural not in rates:
        problem = f"is not one number for {type(family).__name__}"
        raise check.DataError("rate", None, None, problem, "ask for of='count'")
    return rates[family.natural]


def _log_count(known: Any) -> np.ndarray:
    n = np.asarray(known.n)
    return np.log(n if n.ndim == 1 else np.trace(n, axis1=-2, axis2=-1))


def _logit(t: Array, n: Array) -> np.ndarray:
    return np.log(t) - np.log(n - t)
