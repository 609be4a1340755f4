"""Bad input gets one sentence that names the column, the row, the value and the remedy.

Read SENTENCES first: it is what a user reads. Then every family is tried with every kind of bad
value that its columns can hold, in every container; then every other argument; then quantities
that do not exist; and last what is accepted although it is unusual.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import ldf
from ldf import DataError, DoesNotExist

NAN, INF, EYE = float("nan"), float("inf"), [[1, 0], [0, 1]]
DISTRICTS = ["Kayonza", "Gatsibo", "Rwamagana"]
VILLAGES = pd.MultiIndex.from_tuples([("East", 1), ("East", 2), ("West", 1)])

BINOMIAL, POISSON, MULTINOMIAL = ldf.Binomial(), ldf.Poisson(), ldf.Multinomial()
GEOMETRIC, EXPONENTIAL, GAMMA = ldf.Geometric(), ldf.Exponential(), ldf.Gamma(1.5)
KNOWN, ESTIMATES = ldf.Gaussian(variance=2.0), ldf.Gaussian()
NORMAL, VECTOR = ldf.Normal(), ldf.MultivariateNormal(2)
LINEAR = ldf.LinearGaussian(np.eye(2), np.zeros(2), np.eye(2))
BY_ROW = ldf.LinearGaussian(np.eye(2), np.zeros(2))
HALF = ldf.LinearGaussian([[1, 0]], [0], [[1]])  # sees one of two components

RATE, INTENSITY, SHARES = BINOMIAL.prior(1, 2), POISSON.prior(1, 2), MULTINOMIAL.prior([1, 2])
MEAN, MEANS = KNOWN.prior(0, 1), LINEAR.prior([0, 0], EYE)
BOTH, ALL = NORMAL.prior(0, 1, 1, 3), VECTOR.prior([0, 0], 1, EYE, 5)

# --- What a user reads --------------------------------------------------------------------------

SENTENCES = """
BINOMIAL.statistic(pd.Series([1, 9, 3], index=DISTRICTS), [4, 5, 6])
    column 'successes', row 'Gatsibo': 9 is more than 'trials', 5;
    successes cannot exceed trials: correct the row, or swap the columns.
BINOMIAL.statistic([3, -2], [10, 4])
    column 'successes', row 1: -2 is negative; a count is zero or more: correct the row.
POISSON.statistic([3, 1], exposure=[10, INF])
    column 'exposure', row 1: inf is infinite; give a finite number.
POISSON.statistic([1, 2], exposure=[1, 0])
    column 'count', row 1: 2 has no 'exposure';
    a row whose 'exposure' is zero holds nothing: correct it.
NORMAL.statistic([1e9, 1e9 + 2])
    column 'values', row 0: 1000000000 is more than 100,000 standard deviations away from zero;
    subtract a constant from the values and from the prior's mean.
BINOMIAL.statistic([3, 1.5], [10, 4])
    column 'successes', row 1: 1.5 is not a whole number;
    round it, or declare effective counts by design_effect=, or by the family's effective=True.
GEOMETRIC.statistic([1.5])
    column 'failures', row 0: 1.5 is not a whole number; correct the row or round it.
BINOMIAL.statistic([3, NAN], [10, 4])
    column 'successes', row 1 is missing;
    leave the row out, or give a row without primary data zero trials or zero exposure.
KNOWN.statistic([3, None], n=[10, 4])
    column 'mean', row 1 is missing; leave the row out, or give it n = 0 or an infinite variance.
NORMAL.statistic([3, NAN])
    column 'values', row 1 is missing; leave the row out.
POISSON.statistic([3, "many"], [10, 4])
    column 'count', row 1: 'many' is text, not a number; turn the column into numbers first.
BINOMIAL.statistic([1, 2, 3], [4, 5])
    column 'trials' has 2 rows but column 'successes' has 3 rows;
    give every column one value a unit.
BINOMIAL.statistic(pd.Series([1, 2]), pd.Series([4, 5], index=[1, 2]))
    column 'trials' is indexed otherwise than column 'successes';
    take both from one frame, or align them.
MULTINOMIAL.statistic([[1, 2], [1]])
    column 'counts' holds rows of unequal length; give every row as many values.
ldf.Multinomial(classes=2).statistic([[1, 2, 3]])
    column 'counts' has 3 classes; give 2 classes a row.
KNOWN.statistic([3], variance=[1])
    column 'variance' is given twice; give n, or leave the family's variance out.
ESTIMATES.statistic([3])
    column 'variance' is not given;
    use Gaussian(variance=…) with n, or give a variance for each row.
LINEAR.prior([0, 0], [[1, 0.5], [0, 1]])
    column 'covariance': [[1.0, 0.5], [0.0, 1.0]] is not symmetric; give a symmetric matrix.
BINOMIAL.prior([1, 2], 1) * [1, 2, 3]
    column 'weight' has 3 rows but there are 2 units; give one value a unit, or one for all.
BINOMIAL.likelihood(1.5, trials=3)
    column 'theta': 1.5 is above 1; a probability lies between 0 and 1.
MULTINOMIAL.likelihood([[0.5, 0.5], [0.5, 0.6]], trials=3)
    column 'theta', row 1: [0.5, 0.6] does not sum to one; divide it by its sum.
BINOMIAL.posterior(RATE).interval(90)
    column 'mass': 90 is not between 0 and 1; ask for 0.9, say, for 90 %.
NORMAL.posterior(BOTH).marginal("sd")
    column 'component': 'sd' is not known; choose one of 'mean', 'variance'.
"""
ABSENT = """
BINOMIAL.posterior(BINOMIAL.statistic([3, 2], [5, 2])).mean()
    the posterior mean of row 1 does not exist: its Beta has no successes or no failures,
    not even prior ones; give a prior with successes and failures above zero.
KNOWN.posterior(KNOWN.prior(0, INF)).mean()
    the posterior mean does not exist: nothing was observed, not even by a prior;
    give a prior with a finite variance.
NORMAL.posterior(NORMAL.prior(0, 1, 1, 1)).marginal("mean").mean()
    the mean does not exist: its tails are too heavy;
    take the mode or the median, or give a prior of the variance worth more.
BINOMIAL.log_predictive(BINOMIAL.prior(0, 0), [1], [2])
    the predictive of row 0 does not exist: there is no observation of the rate,
    not even a prior one; give a prior with successes and failures above zero.
POISSON.predictive(POISSON.prior(0, 0), exposure=[0, 2]).mean()
    the predictive of row 1 does not exist: the rate was seen in no exposure,
    not even a prior one; give a prior with count and exposure above zero.
MULTINOMIAL.predictive(MULTINOMIAL.prior([0, 0]), 3).sample(2, seed=0)
    the predictive does not exist: there is no observation of the classes,
    not even a prior one; give a prior with every class above zero.
"""


def spoken(text: str) -> list[tuple[str, str]]:
    """What is done, and the sentence that follows, indented."""
    found = re.findall(r"^(\S.*)\n((?: +.*\n)+)", text, re.MULTILINE)
    return [(act, " ".join(sentence.split())) for act, sentence in found]


@pytest.mark.parametrize(("act", "sentence"), spoken(SENTENCES + ABSENT))
def test_the_whole_sentence(act, sentence):
    with pytest.raises(DataError if sentence.startswith("column") else DoesNotExist) as caught:
        eval(act)
    assert str(caught.value) == sentence


def test_an_error_can_be_taken_apart():
    with pytest.raises(ValueError, match="swap the columns") as caught:
        BINOMIAL.statistic(pd.Series([1, 9, 8], index=DISTRICTS), [4, 5, 6])
    error: Any = caught.value
    assert (error.column, error.row, error.value) == ("successes", "Gatsibo", 9)  # the first one
    assert error.problem == "is more than 'trials', 5"
    assert error.remedy == "successes cannot exceed trials: correct the row, or swap the columns"


def refused(expected: tuple[Any, ...], act: Callable[..., Any], *args: Any, **columns: Any) -> Any:
    """The error: with this column, row, problem and value (as many as are expected), in one
    sentence that shows no machinery."""
    with pytest.raises(DataError) as caught:
        act(*args, **columns)
    error, text = caught.value, str(caught.value)
    assert (error.column, error.row, error.problem)[: len(expected)] == expected[:3]
    assert all(same(error.value, value) for value in expected[3:])
    where = f"column '{error.column}'" + ("" if error.row is None else f", row {error.row!r}")
    assert re.match(rf"{re.escape(where)}:? ", text)
    assert text.endswith(f" {error.problem}; {error.remedy}.")
    assert not re.search(r"\n|numpy|np\.|dtype|array\(|broadcast|operand|object at", text)
    return error


def same(found: Any, value: Any) -> bool:
    missing = np.ndim(value) == 0 and pd.isna(value)
    return pd.isna(found) if missing else np.array_equal(found, value)


# --- One bad value in the second of three rows --------------------------------------------------


class Case(NamedTuple):
    family: Any
    prior: Any
    columns: dict[str, Any]  # three good rows
    kinds: list[str]  # what each column holds

    def score(self, **columns: Any) -> Any:
        return self.family.log_predictive(self.prior, **columns)


def case(family: Any, prior: Any, kinds: str, **columns: Any) -> Case:
    return Case(family, prior, columns, kinds.split())


ONE, REAL, SOME = [1, 2, 3], [1.0, -2.0, 3.5], [1.0, 2.5, 3.0]
VECTORS, MATRICES = [[1.0, 2.0], [3.0, 5.0], [5.0, 7.0]], [EYE, EYE, EYE]
CASES = {
    "binomial": case(BINOMIAL, RATE, "count count", successes=ONE, trials=[4, 5, 6]),
    "poisson": case(POISSON, INTENSITY, "count amount", count=ONE, exposure=SOME),
    "multinomial": case(MULTINOMIAL, SHARES, "count", counts=[[1, 2], [3, 4], [5, 6]]),
    "gaussian": case(KNOWN, MEAN, "real count", mean=REAL, n=ONE),
    "estimates": case(ESTIMATES, MEAN, "real variance", mean=REAL, variance=SOME),
    "normal": case(NORMAL, BOTH, "real", values=REAL),
    "multivariate-normal": case(VECTOR, ALL, "real", values=VECTORS),
    "linear": case(LINEAR, MEANS, "real", values=VECTORS),
    "by-row": case(BY_ROW, MEANS, "real matrix", values=VECTORS, covariance=MATRICES),
    "geometric": case(GEOMETRIC, RATE, "count count", failures=ONE, waits=ONE),
    "negative": case(ldf.NegativeBinomial(2.5), RATE, "count count", failures=ONE, waits=ONE),
    "exponential": case(EXPONENTIAL, INTENSITY, "amount count", time=SOME, events=ONE),
    "gamma": case(GAMMA, INTENSITY, "amount count", total=SOME, n=ONE),
}
each_family = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

ANY = "count amount real matrix variance"
BAD: dict[str, tuple[str, list[Any]]] = {  # the problem, the kinds of columns, the values
    "is missing": (ANY, [NAN, np.float32(NAN), None, pd.NA]),
    "is text, not a number": (ANY, ["two", "2", ""]),
    "is infinite": ("count amount real matrix", [INF, -INF]),
    "is negative": ("count amount variance", [-1]),
    "is zero": ("variance", [0]),
    "is not a whole number": ("count", [1.5]),
}
TRIED = [
    pytest.param(each, problem, id=f"{name}-{problem}")
    for (name, each), problem in itertools.product(CASES.items(), BAD)
    if set(each.kinds) & set(BAD[problem][0].split())
]


def spoilt(values: Any, bad: Any) -> Any:
    """The values with the second row gone bad; of a vector or matrix, its last entry."""
    if not isinstance(values, list):
        return bad
    return [spoilt(value, bad) if at == 1 else value for at, value in enumerate(values)]


@pytest.mark.parametrize(("case", "problem"), TRIED)
def test_one_bad_value(case, problem):
    """It is found by the statistic, the base measure and the score alike."""
    kinds, values = BAD[problem]
    for (column, rows), kind in zip(case.columns.items(), case.kinds, strict=True):
        for bad in values if kind in kinds.split() else ():
            columns = {**case.columns, column: spoilt(rows, bad)}
            for ask in (case.family.statistic, case.family.log_base, case.score):
                refused((column, 1, problem, bad), ask, **columns)


@each_family
def test_a_column_of_another_type(case):
    day = np.datetime64("2020-01-01")
    types = {"is a date": day, "is a duration": day - day, "is a complex number": 1j}
    for column, (problem, value) in itertools.product(case.columns, types.items()):
        refused((column, 0, problem), case.family.statistic, **{**case.columns, column: [value]})
        refused((column, None, problem), case.family.statistic, **{**case.columns, column: value})


def test_columns_of_different_length():
    """One row is not stretched to three."""
    for name, length in itertools.product(CASES, (0, 1, 2)):
        family, _, columns, kinds = CASES[name]
        if len(columns) == 2 and "matrix" not in kinds:
            first, second = columns
            problem = (
                f"has {length} row{'' if length == 1 else 's'} but column '{first}' has 3 rows"
            )
            columns = {**columns, second: columns[second][:length]}
            refused((second, None, problem), family.statistic, **columns)


# --- Containers ---------------------------------------------------------------------------------


def labelled(rows: Any, index: Any) -> Any:
    if np.ndim(rows) == 3:
        return np.array(rows)
    return (pd.Series if np.ndim(rows) == 1 else pd.DataFrame)(rows, index=index)


def masked(rows: Any) -> Any:
    """A good number lies hidden under the mask."""
    return np.ma.array(np.nan_to_num(rows, nan=1.0), mask=np.isnan(rows))


CONTAINERS: dict[str, tuple[Callable[[Any], Any], Any]] = {  # and what the second row is called
    "float32": (lambda rows: np.array(rows, np.float32), 1),
    "object": (lambda rows: np.array(rows, object), 1),
    "masked": (lambda rows: masked(np.array(rows, float)), 1),
    "jax": (lambda rows: jnp.array(rows, jnp.float32), 1),
    "labelled": (lambda rows: labelled(rows, DISTRICTS), "Gatsibo"),
    "two-levels": (lambda rows: labelled(rows, VILLAGES), ("East", 2)),
}


@pytest.mark.parametrize(("pack", "label"), CONTAINERS.values(), ids=CONTAINERS)
@each_family
def test_any_container(case, pack, label):
    """Good rows give what lists give; a missing and a negative value are found and named."""
    packed = {name: pack(rows) for name, rows in case.columns.items()}
    found, known = case.family.statistic(**packed), case.family.statistic(**case.columns)
    for a, b in zip(found.coordinates(), known.coordinates(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for (column, rows), kind in zip(case.columns.items(), case.kinds, strict=True):
        row = 1 if kind == "matrix" else label
        columns = {**packed, column: pack(spoilt(rows, NAN))}
        refused((column, row, "is missing"), case.family.statistic, **columns)
        if kind not in ("real", "matrix"):
            columns = {**packed, column: pack(spoilt(rows, -1))}
            refused((column, row, "is negative", -1), case.family.statistic, **columns)


@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_nullable_columns_of_pandas(dtype):
    trials, good = pd.Series([4, 5, 6], dtype=dtype), pd.Series([1, 2, 3], dtype=dtype)
    np.testing.assert_array_equal(BINOMIAL.statistic(good, trials).failures, [3, 3, 3])
    hole = pd.Series([1, None, 3], dtype=dtype)
    refused(("successes", 1, "is missing", pd.NA), BINOMIAL.statistic, hole, trials)


# --- Every other argument -----------------------------------------------------------------------

NUMBER, AMOUNT, ABOVE = [NAN, None, INF, "one"], [NAN, None, INF, "one", -1], [NAN, "one", -1, 0]
WHOLE, COVARIANCE = [*AMOUNT, 1.5], [[[1, 0.5], [0, 1]], [[1, 1], [1, 1]], [[1, 2], [2, 1]], [1, 2]]
ARGUMENTS: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    # priors
    ("successes", lambda v: BINOMIAL.prior(v, 1), AMOUNT),
    ("failures", lambda v: GEOMETRIC.prior(1, v), AMOUNT),
    ("count", lambda v: POISSON.prior(v, 1), AMOUNT),
    ("exposure", lambda v: GAMMA.prior(1, v), AMOUNT),
    ("counts", lambda v: MULTINOMIAL.prior([1, v]), AMOUNT),
    ("mean", lambda v: KNOWN.prior(v, 1), NUMBER),
    ("variance", lambda v: KNOWN.prior(0, v), ABOVE),
    ("mean", lambda v: NORMAL.prior(v, 1, 1, 3), [*NUMBER, 1e9]),
    ("mean_n", lambda v: NORMAL.prior(0, v, 1, 3), AMOUNT),
    ("variance", lambda v: NORMAL.prior(0, 1, v, 3), AMOUNT),
    ("variance_n", lambda v: NORMAL.prior(0, 1, 1, v), AMOUNT),
    ("mean", lambda v: LINEAR.prior([0, v], EYE), NUMBER),
    ("covariance", lambda v: LINEAR.prior([0, 0], v), [*NUMBER, *COVARIANCE, np.eye(3)]),
    ("mean", lambda v: VECTOR.prior([0, v], 1, EYE, 3), NUMBER),
    ("mean_n", lambda v: VECTOR.prior([0, 0], v, EYE, 3), AMOUNT),
    ("variance", lambda v: VECTOR.prior([0, 0], 1, v, 3), [*NUMBER, *COVARIANCE, np.eye(3)]),
    # families
    ("variance", lambda v: ldf.Gaussian(variance=v), [*ABOVE, INF, [1, 2]]),
    ("shape", ldf.Gamma, [*ABOVE, INF, None]),
    ("r", ldf.NegativeBinomial, [*ABOVE, INF, None]),
    ("classes", lambda v: ldf.Multinomial(classes=v), [0, 1, 2.5, -3]),
    ("dimension", ldf.MultivariateNormal, [0, 1.5, -1]),
    ("map", lambda v: ldf.LinearGaussian(v, [0, 0]), [*NUMBER, [1, 2], [[1, 2]]]),
    ("covariance", lambda v: ldf.LinearGaussian(EYE, [0, 0], v), [*COVARIANCE, np.eye(3)]),
    # weights, design effects, formulations
    ("weight", lambda v: RATE * v, AMOUNT),
    ("design_effect", lambda v: BINOMIAL.statistic([1, 1], [2, 2], v), [*ABOVE, INF, [1, 2, 3]]),
    ("design_effect", lambda v: POISSON.statistic([1, 1], [2, 2], v), [*ABOVE, INF, [1, 2, 3]]),
    ("design_effect", lambda v: MULTINOMIAL.statistic([EYE[0]] * 2, v), [*ABOVE, [1, 2, 3]]),
    ("formulation", lambda v: BINOMIAL.from_unconstrained(np.zeros(2), v), ["odds"]),
    # what is to be predicted
    ("trials", lambda v: BINOMIAL.predictive(RATE * [1, 2], v), [*WHOLE, [1, 2, 3]]),
    ("trials", lambda v: MULTINOMIAL.predictive(SHARES * [1, 2], v), [*WHOLE, [1, 2, 3]]),
    ("waits", lambda v: GEOMETRIC.predictive(RATE * [1, 2], v), [*WHOLE, [1, 2, 3]]),
    ("exposure", lambda v: POISSON.predictive(INTENSITY * [1, 2], v), [*AMOUNT, [1, 2, 3]]),
    ("events", lambda v: EXPONENTIAL.predictive(INTENSITY * [1, 2], v), [*WHOLE, 0, [1, 2, 3]]),
    ("n", lambda v: GAMMA.predictive(INTENSITY * [1, 2], v), [*WHOLE, 0, [1, 2, 3]]),
    ("n", lambda v: KNOWN.predictive(MEAN * [1, 2], v), [NAN, INF, "one", -1, 1.5, 0, [1, 2, 3]]),
    ("variance", lambda v: ESTIMATES.predictive(MEAN, variance=v), [*ABOVE, None]),
    ("covariance", lambda v: BY_ROW.predictive(MEANS * [1, 2], v), [*COVARIANCE, MATRICES, None]),
    # a known θ
    ("theta", lambda v: BINOMIAL.likelihood(v, 3), [*AMOUNT, 1.5]),
    ("theta", GEOMETRIC.likelihood, [*AMOUNT, 1.5, 0]),
    ("theta", POISSON.likelihood, AMOUNT),
    ("theta", EXPONENTIAL.likelihood, [*AMOUNT, 0]),
    ("theta", lambda v: MULTINOMIAL.likelihood(v, 3), [*AMOUNT, 0.5, [0.5, 0.6], [-0.5, 1.5]]),
    ("theta", KNOWN.likelihood, NUMBER),
    ("theta", NORMAL.likelihood, [*NUMBER, 0, [0, 1, 2]]),
    ("theta", LINEAR.likelihood, [*NUMBER, 0, [0, 1, 2]]),
    ("theta", lambda v: BINOMIAL.log_likelihood(v, 1, 2), [*AMOUNT, 1.5]),
    ("theta", lambda v: POISSON.log_likelihood(v, 1, 2), AMOUNT),
    ("theta", lambda v: MULTINOMIAL.log_likelihood(v, [1, 2]), [*NUMBER, [0.5, 0.6]]),
    ("theta", lambda v: KNOWN.log_likelihood(v, 1.0), NUMBER),
    ("variance", lambda v: NORMAL.log_likelihood([0, v], 1.0), [-1, 0]),
    # points
    ("value", MULTINOMIAL.posterior(SHARES).log_prob, [*NUMBER, [0.5, 0.6], [0.2, 0.3, 0.5]]),
    ("variance", lambda v: VECTOR.posterior(ALL).log_prob(([0, 0], v)), COVARIANCE),
    ("component", MULTINOMIAL.posterior(SHARES).marginal, [2, -3]),
    ("component", LINEAR.posterior(MEANS).marginal, [2, -3]),
]


@pytest.mark.parametrize(("column", "act", "values"), ARGUMENTS)
def test_every_other_argument(column, act, values):
    """A wrong shape has no value to show, and a wrong entry of a vector is shown alone."""
    for bad in values:
        error = refused((column,), act, bad)
        assert error.value is None or same(error.value, bad) or error.value in np.ravel(bad)
        assert error.row in (None, 0, 1)


DISTRIBUTIONS = {
    "beta": BINOMIAL.posterior(RATE),
    "gamma": POISSON.posterior(INTENSITY),
    "gaussian": KNOWN.posterior(MEAN),
    "student": NORMAL.predictive(BOTH),
    "inverse-gamma": NORMAL.posterior(BOTH).marginal("variance"),
    "beta-binomial": BINOMIAL.predictive(RATE, 5),
    "beta-negative-binomial": GEOMETRIC.predictive(RATE),
    "gamma-poisson": POISSON.predictive(INTENSITY, 5),
    "compound-gamma": EXPONENTIAL.predictive(INTENSITY),
    "known-count": BINOMIAL.likelihood(0.3, 5),
    "known-value": EXPONENTIAL.likelihood(0.3),
}


@pytest.mark.parametrize("of", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_questions_to_a_distribution(of):
    questions = (of.log_prob, of.cdf, of.exceeds, of.quantile, of.interval)
    for ask, bad in itertools.product(questions, (NAN, None, "two")):
        refused((), ask, bad)
    for bad in (-0.1, 1.1):
        refused(("q", None, "is not between 0 and 1", bad), of.quantile, bad)
    for bad in (0, 1, -0.5, 90, [0.5, 0.9]):
        refused(("mass", None, "is not between 0 and 1", bad), of.interval, bad)


def test_draws_need_a_seed():
    with pytest.raises(TypeError, match="None is not a seed: give a whole number"):
        BINOMIAL.posterior(RATE).sample(3, seed=None)


# --- Statistics ---------------------------------------------------------------------------------

STATISTICS = (RATE, INTENSITY, SHARES, MEAN, BOTH, MEANS, ALL)


@pytest.mark.parametrize("one", STATISTICS, ids=lambda one: type(one).__name__)
def test_what_does_not_add(one):
    """Only statistics of one conjugate prior add, and a family takes only its own."""
    mine = type(one).__name__
    for other in (*STATISTICS, 1, None, "one", np.ones(2)):
        if not isinstance(other, type(one)):
            with pytest.raises(TypeError, match=f"^{mine} and {type(other).__name__} do not add: "):
                one + other
    for family in (case.family for case in CASES.values()):
        if not isinstance(one, family.natural):
            with pytest.raises(TypeError, match=f"and was given {mine}$"):
                family.posterior(one)
    with pytest.raises(TypeError, match="multiplied by numbers only"):
        one * one
    with pytest.raises(TypeError, match="shared by all units and has no length"):
        len(one)
    with pytest.raises(TypeError, match="shared by all units and has no rows"):
        one[0]
    np.testing.assert_equal(sum([one, one]).coordinates(), (one * 2).coordinates())


def test_what_does_not_fit_does_not_add():
    units, classes = (RATE * [1, 2], RATE * [1, 2, 3]), (SHARES, MULTINOMIAL.prior([1, 2, 3]))
    for one, other in (units, classes, (MEANS, LINEAR.prior([0, 0, 0], np.eye(3)))):
        with pytest.raises(ValueError, match="do not add: give both as many units, and as many cl"):
            one + other


# --- Quantities that do not exist ---------------------------------------------------------------

IMPROPER: dict[str, tuple[Any, Any, Any]] = {  # two units, the second improper; a value of θ
    "binomial": (BINOMIAL, BINOMIAL.statistic([3, 2], [5, 2]), 0.5),
    "geometric": (GEOMETRIC, GEOMETRIC.statistic([3, 0], [1, 0]), 0.5),
    "poisson": (POISSON, POISSON.statistic([3, 0], [5, 2]), 0.5),
    "exponential": (EXPONENTIAL, EXPONENTIAL.statistic([3, 2], [1, 0]), 0.5),
    "gamma": (GAMMA, GAMMA.statistic([3, 0], [1, 0]), 0.5),
    "multinomial": (MULTINOMIAL, MULTINOMIAL.statistic([[3, 2], [5, 0]]), [0.5, 0.5]),
    "gaussian": (KNOWN, KNOWN.statistic([3, 2], n=[5, 0]), 0.5),
    "normal": (NORMAL, NORMAL.statistic([[3, 1], [2, 2]]), [0, 1]),
    "multivariate-normal": (VECTOR, ALL * [1, 0] + VECTOR.statistic(EYE), ([0, 0], EYE)),
    "linear": (HALF, MEANS * [1, 0] + HALF.statistic([[3], [2]]), [0, 0]),
}
WITHOUT = ("mean", "sd", "variance", "covariance", "mode", "entropy")
ASKED: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(WITHOUT, lambda ask, value: ask()),
    **dict.fromkeys(("log_prob", "cdf", "exceeds"), lambda ask, value: ask(value)),
    **dict.fromkeys(("quantile", "interval"), lambda ask, value: ask(0.5)),
    "sample": lambda ask, value: ask(3, seed=0),
    "divergence": lambda ask, value: ask(ask.__self__),
}


@pytest.mark.parametrize(("family", "natural", "value"), IMPROPER.values(), ids=IMPROPER)
def test_an_improper_posterior_has_no_such_thing(family, natural, value):
    """Not a NaN, an infinity or a warning: a sentence that names the row and the remedy."""
    of = family.posterior(natural)
    for name in ASKED.keys() & set(dir(of)):
        with pytest.raises(DoesNotExist) as caught:
            ASKED[name](getattr(of, name), value)
        sentence = r"the posterior \w+ of row 1 does not exist: .+; give a prior with .+\."
        assert re.fullmatch(sentence, str(caught.value))
    of[:1].mode()  # an improper row does not spoil the others


@pytest.mark.parametrize("name", ["binomial", "poisson", "multinomial", "gaussian", "normal"])
def test_the_partition_function_of_an_improper_prior_is_infinite(name):
    family, natural, _ = IMPROPER[name]
    np.testing.assert_array_equal(np.isposinf(family.log_partition(natural)), [False, True])


# --- What is accepted ---------------------------------------------------------------------------

UNSEEN: dict[str, dict[str, Any]] = {  # the second row saw nothing
    "binomial": {"successes": [1, 0], "trials": [4, 0]},
    "poisson": {"count": [1, 0], "exposure": [4, 0]},
    "multinomial": {"counts": [[1, 2], [0, 0]]},
    "gaussian": {"mean": [1, NAN], "n": [2, 0]},
    "estimates": {"mean": [1, NAN], "variance": [2, INF]},
    "geometric": {"failures": [1, 0], "waits": [1, 0]},
    "exponential": {"time": [1, 0], "events": [1, 0]},
    "gamma": {"total": [1, 0], "n": [1, 0]},
}


@pytest.mark.parametrize("name", UNSEEN)
def test_a_row_that_saw_nothing_adds_nothing(name):
    case, columns = CASES[name], UNSEEN[name]
    assert all((value == 0).all() for value in case.family.statistic(**columns)[1].coordinates())
    assert (case.score(**columns) == 0).tolist() == [False, True]
    assert case.family.log_base(**columns)[1] == 0


@pytest.mark.parametrize("name", ["gaussian", "estimates"])
def test_only_a_row_that_saw_nothing_may_leave_its_mean_out(name):
    columns = {**UNSEEN[name], "mean": [NAN, NAN]}
    refused(("mean", 0, "is missing", NAN), CASES[name].family.statistic, **columns)


def test_a_variance_is_not_minus_infinite():
    columns = {"mean": [1, 2], "variance": [1, -INF]}
    refused(("variance", 1, "is negative", -INF), ESTIMATES.statistic, **columns)


@each_family
def test_one_unit_or_none(case):
    """A single number (or vector) is one unit, and no rows are no units."""
    one = case.family.statistic(**{name: rows[1] for name, rows in case.columns.items()})
    second = case.family.statistic(**case.columns)[1]
    assert one.shape == ()
    for a, b in zip(one.coordinates(), second.coordinates(), strict=True):
        np.testing.assert_allclose(a, b)
    none = {name: np.array(rows)[:0] for name, rows in case.columns.items()}
    assert len(case.family.statistic(**none)) == 0
    assert case.score(**none).shape == (0,)
    assert case.family.posterior(case.prior + case.family.statistic(**none)).shape == (0,)


def test_one_number_stands_for_all_rows():
    np.testing.assert_array_equal(BINOMIAL.statistic([1, 2, 3], 6).failures, [5, 4, 3])
    np.testing.assert_array_equal(POISSON.statistic([1, 2, 3]).exposure, [1, 1, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool])
def test_whole_numbers_of_any_type_become_floats(dtype):
    """Unsigned failures do not wrap around."""
    found = BINOMIAL.statistic(np.array([0, 1], dtype), np.array([1, 1], dtype))
    assert found.failures.dtype == np.float64
    np.testing.assert_array_equal(found.failures - found.successes, [1, -1])


@pytest.mark.parametrize("name", ["binomial", "poisson", "multinomial"])
def test_fractional_counts_are_accepted_when_declared(name):
    """By the family for all its data, or by the design effect that divides them."""
    plain, _, columns, _ = CASES[name]
    effective = type(plain)(effective=True)
    columns = {column: np.array(rows) * 1.5 for column, rows in columns.items()}
    refused((next(iter(columns)), 0, "is not a whole number", 1.5), plain.statistic, **columns)
    declared = effective.statistic(**columns)
    halved = plain.statistic(**columns, design_effect=2)
    np.testing.assert_equal(declared.coordinates(), (halved * 2).coordinates())
    assert np.isfinite(effective.log_predictive(declared, **columns)).all()


@pytest.mark.parametrize("name", ["binomial", "gaussian"])
def test_traced_arrays_have_no_values_to_check(name):
    case = CASES[name]
    columns = {name: jnp.array(rows, jnp.float32) for name, rows in case.columns.items()}
    found = jax.jit(lambda columns: case.score(**columns))(columns)
    np.testing.assert_allclose(found, case.score(**case.columns), rtol=1e-4)


# --- What once slipped through ------------------------------------------------------------------


def test_a_blind_row_does_not_excuse_the_others():
    """An infinite variance excuses its own row's mean from being there, and nothing else."""
    estimates = ldf.Gaussian()
    assert estimates.statistic([np.nan, 1.0], variance=[np.inf, 1.0]).potential.tolist() == [0, 1]
    for mean in (["3", 1.0], [1.0, "3"], [1.0, np.nan], np.ma.array([1.0, 2.0], mask=[0, 1])):
        with pytest.raises(ldf.DataError, match=r"'mean', row [01]"):
            estimates.statistic(mean, variance=[np.inf, 1.0])
    with pytest.raises(ldf.DataError, match="has 2 rows but column 'mean' has 3 rows"):
        estimates.statistic([1.0, 2.0, 3.0], variance=[np.inf, 1.0])


def test_classes_and_components_are_never_stretched():
    classes, plane = ldf.Multinomial(), ldf.LinearGaussian(np.eye(2), np.zeros(2), np.eye(2))
    with pytest.raises(ldf.DataError, match="has one class"):
        classes.prior([0.5])
    with pytest.raises(ValueError, match="do not add"):
        plane.prior([0.0], [[1.0]]) + plane.statistic(np.ones((3, 2)))
    with pytest.raises(ldf.DataError, match="'theta' has 1 classes or components; give 2"):
        classes.log_likelihood([1.0], [[1, 2]])
    prior = plane.prior([0.0, 0.0], np.eye(2))
    with pytest.raises(ldf.DataError, match="give 2 components a row"):
        plane.posterior(prior).log_prob([1.0])
    with pytest.raises(ValueError, match="has 2 classes or components"):
        ldf.MultivariateNormal(2).predictive(ALL_OF_THREE)
    with pytest.raises(ldf.DataError, match="is not a pair"):
        ldf.Normal().posterior(BOTH).log_prob([0.0, 1.0, 2.0])


ALL_OF_THREE = ldf.MultivariateNormal.prior(np.zeros(3), 1.0, np.eye(3), 5.0)


def test_a_matrix_that_is_singular_but_for_rounding_is_refused():
    plane = ldf.LinearGaussian(np.eye(2), np.zeros(2), np.eye(2))
    with pytest.raises(ldf.DataError, match="is not positive definite"):
        plane.prior([0.0, 0.0], [[0.1, 0.3], [0.3, 0.9]])
    line = ldf.LinearGaussian([[0.1, 0.3]], [0.0], [[1.0]])
    with pytest.raises(ldf.DoesNotExist, match="some direction was not observed"):
        line.posterior(line.statistic([[1.0]])).mean()


def test_equal_values_are_not_far_from_zero():
    """Their variance is zero; what a computer makes of it is rounding."""
    assert ldf.Normal().statistic([[0.1, 0.1, 0.1]]).total == pytest.approx(0.3)
    assert ldf.Normal().statistic([0.7, 0.7, 0.7]).total.tolist() == [0.7, 0.7, 0.7]


def test_weights_of_numpy_multiply_from_either_side():
    statistic = np.array([1.0, 2.0]) * ldf.Binomial.prior([1.0, 2.0], 1.0)
    assert statistic.successes.tolist() == [1, 4]
    with pytest.raises(TypeError, match="True or False"):
        statistic.where([1.0, np.nan])


def test_one_unit_may_be_asked_for_several_values():
    counts = ldf.Binomial().predictive(RATE, trials=5)
    sums = np.cumsum(np.exp(counts.log_prob(range(6))))
    assert counts.cdf([0, 1, 5]) == pytest.approx(sums[[0, 1, 5]])
    assert counts.quantile([0.1, 0.9]).shape == (2,)
    assert counts.cdf(np.inf) == 1


def test_as_many_values_as_units_or_one_for_all():
    """Two units and three values: a sentence, not the words of an array library."""
    two = ldf.Binomial().posterior(ldf.Binomial.prior([1.0, 2.0], 3.0))
    rates = ldf.Poisson().posterior(ldf.Poisson.prior([1.0, 2.0], 3.0))
    for ask in (two.quantile, two.cdf, two.log_prob, rates.exceeds, rates.quantile):
        with pytest.raises(ldf.DataError, match="has 3 rows but there are 2 units"):
            ask([0.1, 0.2, 0.3])
        assert np.shape(ask(0.5)) == (2,)


def test_a_row_that_saw_nothing_scores_nothing_even_under_an_improper_prior():
    exponential, gaussian = ldf.Exponential(), ldf.Gaussian(variance=2.0)
    assert exponential.log_predictive(exponential.prior(0.0, 0.0), time=[0.0], events=[0]) == 0
    improper = gaussian.prior(0.0, np.inf)
    assert gaussian.log_predictive(improper, mean=[np.nan], n=[0]) == 0
    with pytest.raises(ldf.DoesNotExist):
        gaussian.log_predictive(improper, mean=[1.0], n=[1])
