"""Whether what was predicted is what came: numbers in tables.

A predictive is asked for its distribution function, intervals and draws, and the data y are set
beside them. Nothing has to be known of its kind. Whole numbers differ from others only in that the
distribution function jumps at y: from F(y−), P(less than y), to F(y), P(at most y). Hence

- the probability integral transform is a random point between F(y−) and F(y), uniform if the
  predictive is right; where nothing jumps it is F(y);
- the narrowest set of whole numbers with 90 % holds *more* than 90 %: F(upper) − F(lower−). How
  often it covers y is compared with that, or every good model of counts would look too cautious.

Vectors (class counts) are assessed component by component. Rows that saw nothing (no trials) are
left out by `counted`.

>>> import ldf
>>> predictive = ldf.Binomial().predictive(ldf.Binomial().prior(2, 3), trials=[4, 9, 30])
>>> coverage(predictive, y=[2, 0, 11]).expected.round(3).tolist()  # of 50, 80, 90 and 95 %
[0.548, 0.853, 0.926, 0.981]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import jax
import numpy as np
import scipy.stats

from ldf import check
from ldf.check import DataError
from ldf.folds import group_codes
from ldf.special import check_draws

MASSES = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, or one number each."""

    def to_dict(self) -> dict[str, np.ndarray]:
        """The columns by name, as a data frame takes them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: np.atleast_1d(of) for name, of in named.items() if of is not None}

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        columns = {name: column.tolist() for name, column in self.to_dict().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- coverage -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Coverage(Table):
    """One row a mass, and for vectors a component."""

    mass: np.ndarray  # asked for
    observed: np.ndarray  # the share of units inside their interval
    expected: np.ndarray  # the mass these intervals hold, on average
    difference: np.ndarray  # observed − expected
    standard_error: np.ndarray  # of the difference, if the predictives are right, or by groups
    z: np.ndarray  # NaN where every interval holds all there is
    units: np.ndarray
    component: np.ndarray | None = None


def coverage(
    predictive: Any,
    y: Any,
    masses: Sequence[float] = MASSES,
    counted: Any = None,
    group: Any = None,
) -> Coverage:
    """How often the narrowest intervals hold the data, beside how often they should.

    A z beyond ±3 says that the predictives are too sure of themselves (below) or not sure enough
    (above). Units are taken as independent given their predictives. Where neighbours err alike,
    give the `group` (a state, a block, a fold) within which they may: groups are then what is
    independent, and the standard error comes from their sums, as in `score_difference`. Of a
    single group there is none: NaN.
    """
    return _coverage("y", predictive, y, masses, counted, group)


def coverage_of(
    posterior: Any,
    theta: Any,
    masses: Sequence[float] = MASSES,
    counted: Any = None,
    group: Any = None,
) -> Coverage:
    """The same of θ, where it is known because it was simulated."""
    return _coverage("theta", posterior, theta, masses, counted, group)


def _coverage(
    column: str, law: Any, values: Any, masses: Sequence[float], counted: Any, group: Any
) -> Coverage:
    law, y, kept = _beside(column, law, values, counted)
    codes = None if group is None else _groups(group, kept)
    found = []
    for mass in masses:
        lower, upper = law.interval(mass)
        inside = (lower <= y) & (y <= upper)
        held = np.broadcast_to(np.clip(law.cdf(upper) - _less(law, lower), 0, 1), y.shape)
        inside, held = _columns(inside[kept]), _columns(held[kept])
        if codes is None:
            error = np.sqrt((held * (1 - held)).sum(0)) / len(held)
        else:
            error = _clustered(inside - held, codes)
        found.append((np.full(held.shape[1], mass), inside.mean(0), held.mean(0), error))
    mass, observed, expected, error = (np.concatenate(c) for c in zip(*found, strict=True))
    difference = observed - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / error
    units = np.full(len(mass), int(kept.sum()))
    component = np.tile(np.arange(y.shape[-1]), len(masses)) if y.ndim > 1 else None
    return Coverage(mass, observed, expected, difference, error, z, units, component)


def _groups(group: Any, kept: np.ndarray) -> np.ndarray:
    """A number from 0 on for each unit that counts."""
    codes = group_codes("group", group)
    if len(codes) != len(kept):
        problem = f"has {len(codes)} rows but there are {len(kept)} units"
        raise DataError("group", None, None, problem, "give one value a unit")
    return np.unique(codes[kept], return_inverse=True)[1]


def _clustered(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The standard error of the mean of each column: deviations are summed within groups."""
    groups = int(codes.max()) + 1
    if groups == 1:
        return np.full(values.shape[1], np.nan)
    deviation = values - values.mean(0)
    sums = np.stack([np.bincount(codes, weights=column) for column in deviation.T], 1)
    return np.sqrt(groups / (groups - 1) * (sums**2).sum(0)) / len(values)


# --- the probability integral transform ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Uniformity(Table):
    """One row a test, and for vectors a component."""

    test: np.ndarray
    statistic: np.ndarray
    p_value: np.ndarray
    component: np.ndarray | None = None


def pit(predictive: Any, y: Any, seed: Any, counted: Any = None) -> np.ndarray:
    """F(y−) + v·(F(y) − F(y−)) with v uniform: uniform itself if the predictive is right.

    One value a unit that is counted, with components on the last axis for vectors.
    """
    law, y, kept = _beside("y", predictive, y, counted)
    below, at_most = _less(law, y), law.cdf(y)
    check_draws(1, seed)
    v = np.random.default_rng(seed).random(y.shape)
    return np.clip(below + v * (at_most - below), 0, 1)[kept]


def uniformity(u: Any, bins: Sequence[int] = (10, 20)) -> Uniformity:
    """Whether values between 0 and 1 are uniform: by the largest distance of their distribution
    function (Kolmogorov and Smirnov), and by how many fall into each of so many equal bins (χ²)."""
    values = np.asarray(check.probability("u", u), dtype=float)
    _refuse_none("u", len(values) if values.ndim else 0)
    tests = {"Kolmogorov-Smirnov": lambda u: scipy.stats.kstest(u, "uniform")}
    tests |= {f"χ² of {n} bins": partial(_chi_square, n) for n in bins}
    columns = _columns(values).T
    found = [test(column) for test in tests.values() for column in columns]
    return Uniformity(
        np.repeat(list(tests), len(columns)),
        np.array([result.statistic for result in found]),
        np.array([result.pvalue for result in found]),
        np.tile(np.arange(len(columns)), len(tests)) if values.ndim > 1 else None,
    )


def _chi_square(bins: int, u: np.ndarray) -> Any:
    return scipy.stats.chisquare(np.histogram(u, bins, (0, 1))[0])


# --- differences of scores ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScoreDifference(Table):
    """How much better the first of two models predicts, a unit."""

    mean: float  # of log p − log q, in nats a unit
    standard_error: float
    better: float  # the share of units that p predicts better; a tie is half a unit
    units: int
    groups: int  # as many as units, if none were given


def score_difference(
    log_p: Any, log_q: Any, group: Any = None, counted: Any = None
) -> ScoreDifference:
    """The mean difference of two log scores of the same units, with its standard error.

    Units of one `group` (a state, a fold) may err alike. What they deviate is then summed within
    groups, and the groups are what is independent. A single one has no standard error, nor has an
    infinite mean: NaN.
    """
    p = np.asarray(check.numbers("log_p", log_p, infinite=True, absent=True), dtype=float)
    q = np.asarray(check.numbers("log_q", log_q, infinite=True, absent=True), dtype=float)
    kept = _counted(counted, p.shape)
    named = {"log_p": log_p, "log_q": log_q} | ({} if group is None else {"group": group})
    check.same_length(**named)
    for column, values in (("log_p", p), ("log_q", q)):
        if values.ndim != 1:
            raise DataError(column, None, None, "is not one value a row", "give one score a unit")
        check.refuse(column, named[column], np.isnan(values) & kept, "is missing", COUNTED)
    p, q = p[kept], q[kept]
    _refuse_none("log_p", len(p))
    codes = np.arange(len(p)) if group is None else _groups(group, kept)
    with np.errstate(invalid="ignore"):
        gain = np.where(p == q, 0.0, p - q)  # where both are −∞, neither is better
        (error,) = _clustered(gain[:, None], codes)
    groups = int(codes.max()) + 1
    better = float(wins(gain).mean())
    return ScoreDifference(float(gain.mean()), float(error), better, len(gain), groups)


def wins(gain: Any) -> np.ndarray:
    """Whether each unit is above zero, as a number: a tie is half a unit."""
    values = np.asarray(gain, dtype=float)
    return (values > 0) + 0.5 * (values == 0)


# --- predictive checks --------------------------------------------------------------------------

Quantity = Callable[[np.ndarray], np.ndarray]  # draws × units → draws

QUANTITIES: dict[str, Quantity] = {
    "zeros": lambda y: (y == 0).mean(1),  # their share
    "mean": lambda y: y.mean(1),
    "variance": lambda y: y.var(1),
    "maximum": lambda y: y.max(1),
}


@dataclass(frozen=True, eq=False)
class Check(Table):
    """One row a quantity, and for vectors a component."""

    quantity: np.ndarray
    observed: np.ndarray
    simulated: np.ndarray  # its mean over simulated data
    lower: np.ndarray  # 5 % of simulated data are below
    upper: np.ndarray  # 5 % are above
    p_value: np.ndarray  # two-sided; a tie counts as at least as far on either side
    component: np.ndarray | None = None


def predictive_check(
    predictive: Any,
    y: Any,
    quantity: str | Quantity | Mapping[str, Quantity],
    draws: int,
    seed: Any,
    counted: Any = None,
) -> Check:
    """Whether data simulated from the predictive look like those observed, in some quantity of all
    units together (Gelman, Meng and Stern 1996).

    A quantity is one of QUANTITIES by its name, a function from draws × units to draws, or several
    of these by name, as QUANTITIES itself. No p-value is below 2 / (draws + 1).
    """
    if isinstance(quantity, str):
        check.one_of("quantity", quantity, tuple(QUANTITIES))
        quantity = {quantity: QUANTITIES[quantity]}
    elif not isinstance(quantity, Mapping):
        quantity = {getattr(quantity, "__name__", "quantity"): quantity}
    law, y, kept = _beside("y", predictive, y, counted)
    # One law for all units is drawn from for each.
    each = 1 if law.shape[:1] == y.shape[:1] else len(y)
    simulated = np.reshape(law.sample(draws * each, seed), (draws, *y.shape))
    # The observed data go first, as one more draw, so that both are treated alike.
    data = np.concatenate([y[None], simulated])[:, kept]
    data = data if y.ndim > 1 else data[..., None]
    names, found = [], []
    for name, of in quantity.items():
        for component in range(data.shape[-1]):
            names.append(name)
            found.append(_compare(name, np.asarray(of(data[..., component])), draws))
    observed, simulated, lower, upper, p_value = np.array(found).T
    component = np.tile(np.arange(data.shape[-1]), len(quantity)) if y.ndim > 1 else None
    return Check(np.array(names), observed, simulated, lower, upper, p_value, component)


def _compare(name: str, values: np.ndarray, draws: int) -> tuple[float, ...]:
    """Of a quantity, first of the observed data, then of each draw."""
    if values.shape != (draws + 1,):
        problem = f"gives shape {values.shape} for {draws + 1} draws"
        raise DataError("quantity", None, name, problem, "let it go from draws × units to draws")
    observed, simulated = values[0], values[1:]
    sides = (values <= observed).mean(), (values >= observed).mean()  # the observed one included
    lower, upper = np.quantile(simulated, (0.05, 0.95))
    return observed, simulated.mean(), lower, upper, min(1.0, 2 * min(sides))


# --- distributions and data side by side --------------------------------------------------------

COUNTED = "give a number, or leave the row out by counted="


def _beside(column: str, law: Any, values: Any, counted: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """The law in NumPy, the values in the shape of its answers, and which units count."""
    law = _host(law)
    answers = np.shape(law.cdf(0.0))  # a vector's have components on the last axis
    y = np.asarray(check.numbers(column, values, absent=True), dtype=float)
    check.fits(column, y, answers)
    y = np.broadcast_to(y, np.broadcast_shapes(y.shape, answers))
    if y.ndim != 1 + len(answers) - len(law.shape):
        remedy = "give one row a unit, with as many values as the distribution is of"
        raise DataError(column, None, None, "is not of one axis of units", remedy)
    kept = _counted(counted, y.shape[:1])
    left_out = np.broadcast_to(~kept.reshape(-1, *[1] * (y.ndim - 1)), y.shape)
    check.refuse(column, values, np.isnan(y) & ~left_out, "is missing", COUNTED)
    _refuse_none(column, int(kept.sum()))
    return law, np.where(left_out, 0.0, y), kept


def _host(law: Any) -> Any:
    """In NumPy's float64, in which a number just below another is another. What a model answers
    with has its distribution in it."""
    return jax.tree.map(
        lambda leaf: np.asarray(leaf, float) if isinstance(leaf, jax.Array) else leaf,
        getattr(law, "distribution", law),
    )


def _less(law: Any, value: np.ndarray) -> np.ndarray:
    """P(less than value)."""
    below = np.nextafter(value, -np.inf)
    return law.cdf(np.where(value == 0, -np.finfo(float).tiny, below))


def _counted(counted: Any, shape: tuple[int, ...]) -> np.ndarray:
    if counted is None:
        return np.ones(shape, bool)
    kept = np.asarray(counted)
    if kept.dtype != bool:
        raise DataError("counted", None, None, "is not true or false", "give trials > 0, say")
    if kept.shape != shape:
        problem = f"has shape {kept.shape} but the units have {shape}"
        raise DataError("counted", None, None, problem, "give one value a unit")
    return kept


def _columns(values: np.ndarray) -> np.ndarray:
    return values if values.ndim > 1 else values[:, None]


def _refuse_none(column: str, units: int) -> None:
    if units == 0:
        raise DataError(column, None, None, "has no unit that counts", "give one or more")
