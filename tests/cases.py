"""One row a family: what the laws in test_laws.py need to know to try it.

A row says how priors and primary data of its family are drawn (small, so that brute force can
follow), how θ is integrated without the family's help, which outcomes there are, what SciPy calls
the predictive, and how two batches of data make one. Adding a family adds one row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from hypothesis import strategies as st

import ldf

Columns = dict[str, Any]
Nodes = tuple[Any, np.ndarray]  # θ and weights that sum to one, under the prior


@dataclass(frozen=True)
class Case:
    name: str
    family: ldf.Family
    priors: st.SearchStrategy[Columns]  # in the words of family.prior
    data: st.SearchStrategy[Columns]  # of one unit, in the words of family.statistic
    nodes: Callable[[Any], Nodes]  # θ under π(natural), for integration
    outcomes: Callable[[Any, Columns], tuple[Columns, np.ndarray]]  # all y and their measure
    merge: Callable[[Columns, Columns], Columns]  # two batches as one
    scipy: Callable[[Any, Columns], Any] | None  # the predictive, where SciPy has it
    tolerance: float = 1e-8  # of integration

    def __repr__(self) -> str:
        return self.name


# --- integration over θ: sums over a fine grid, normalised by themselves, so that no partition
# function is involved. On a scale without ends such sums are exact to the last digits. -----------


def _weights(log_density: np.ndarray) -> np.ndarray:
    weights = np.exp(log_density - log_density.max())
    return weights / weights.sum()


def _plane(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    grid = np.meshgrid(x, y, indexing="ij")
    return grid[0].reshape(-1), grid[1].reshape(-1)


def _log_logistic(x: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0, -x)


def beta_nodes(natural: Any) -> Nodes:
    logit = np.arange(-36, 36, 0.03)
    log_density = natural.successes * _log_logistic(logit)
    log_density = log_density + natural.failures * _log_logistic(-logit)
    return scipy.special.expit(logit), _weights(log_density)


def dirichlet_nodes(natural: Any) -> Nodes:
    a, b, c = natural.counts  # three classes, broken off a stick one after the other
    x, y = _plane(np.arange(-24, 24, 0.15), np.arange(-24, 24, 0.15))
    log_density = a * _log_logistic(x) + (b + c) * _log_logistic(-x)
    log_density = log_density + b * _log_logistic(y) + c * _log_logistic(-y)
    first, rest = scipy.special.expit(x), scipy.special.expit(-x)
    theta = np.stack([first, rest * scipy.special.expit(y), rest * scipy.special.expit(-y)], -1)
    return theta, _weights(log_density)


def nested_nodes(natural: Any) -> Nodes:
    (a, b), (c, d) = natural.counts, natural.later  # of each split: this class, and those after it
    x, y = _plane(np.arange(-24, 24, 0.15), np.arange(-24, 24, 0.15))
    log_density = a * _log_logistic(x) + c * _log_logistic(-x)
    log_density = log_density + b * _log_logistic(y) + d * _log_logistic(-y)
    first, rest = scipy.special.expit(x), scipy.special.expit(-x)
    theta = np.stack([first, rest * scipy.special.expit(y), rest * scipy.special.expit(-y)], -1)
    return theta, _weights(log_density)


def gamma_nodes(natural: Any) -> Nodes:
    log_theta = np.log(natural.count / natural.exposure) + np.arange(-45, 7, 0.02)
    theta = np.exp(log_theta)
    return theta, _weights(natural.count * log_theta - natural.exposure * theta)


def gaussian_nodes(natural: Any) -> Nodes:
    theta = np.arange(-25, 25, 0.04)
    return theta, _weights(natural.potential * theta - natural.precision * theta**2 / 2)


def plane_nodes(natural: Any) -> Nodes:
    x, y = _plane(np.arange(-16, 16, 0.1), np.arange(-16, 16, 0.1))
    covariance = np.linalg.inv(natural.precision)
    theta = np.stack([x, y], -1) @ np.linalg.cholesky(covariance).T
    return covariance @ natural.potential + theta, _weights(-(x**2 + y**2) / 2)


def mean_and_variance_nodes(natural: Any) -> Nodes:
    mean = natural.total / natural.mean_n
    spread = natural.squares - natural.total * mean
    x, z = _plane(np.arange(-5, 7, 0.04), np.arange(-14, 14, 0.1))
    variance = spread / natural.variance_n * np.exp(x)
    log_density = -natural.variance_n / 2 * (x + np.exp(-x)) - z**2 / 2
    centre = mean + z * np.sqrt(variance / natural.mean_n)
    return np.stack([centre, variance], -1), _weights(log_density)


def mean_and_covariance_nodes(natural: Any) -> Nodes:
    """Five dimensions: drawn, by SciPy's sampler."""
    draws = 40_000
    rng = np.random.default_rng(0)
    mean = natural.total / natural.mean_n
    psi = natural.squares - np.outer(natural.total, mean)
    law = scipy.stats.invwishart(df=float(natural.variance_n), scale=psi)
    sigma = law.rvs(draws, random_state=rng)
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(sigma), rng.normal(size=(draws, 2)))
    weights = np.full(draws, 1 / draws)
    return (mean + noise / np.sqrt(natural.mean_n), sigma), weights


# --- all outcomes of y, to sum or integrate over ------------------------------------------------


def whole_numbers(column: str, most: int) -> Callable[[Any, Columns], tuple[Columns, np.ndarray]]:
    def outcomes(_: Any, data: Columns) -> tuple[Columns, np.ndarray]:
        values = np.arange(most + 1)
        return {**data, column: values}, np.ones(len(values))

    return outcomes


def successes_of(_: Any, data: Columns) -> tuple[Columns, np.ndarray]:
    values = np.arange(data["trials"] + 1)
    return {**data, "successes": values}, np.ones(len(values))


def compositions(_: Any, data: Columns) -> tuple[Columns, np.ndarray]:
    n = int(np.sum(data["counts"]))
    pairs = itertools.product(range(n + 1), repeat=2)
    counts = np.array([(i, j, n - i - j) for i, j in pairs if i + j <= n])
    return {"counts": counts}, np.ones(len(counts))


def half_line(column: str) -> Callable[[Any, Columns], tuple[Columns, np.ndarray]]:
    def outcomes(natural: Any, data: Columns) -> tuple[Columns, np.ndarray]:
        t = np.linspace(-6.5, 6.5, 1601)
        log_value = np.pi / 2 * np.sinh(t)
        value = natural.exposure / natural.count * np.exp(log_value)
        measure = value * np.pi / 2 * np.cosh(t) * (t[1] - t[0])
        keep = (value > 1e-200) & (value < 1e60)
        return {**data, column: value[keep]}, measure[keep]

    return outcomes


def line(column: str) -> Callable[[Any, Columns], tuple[Columns, np.ndarray]]:
    def outcomes(natural: Any, data: Columns) -> tuple[Columns, np.ndarray]:
        t = np.linspace(-5, 5, 2001)
        value = np.sinh(np.pi / 2 * np.sinh(t))
        measure = np.cosh(np.pi / 2 * np.sinh(t)) * np.pi / 2 * np.cosh(t) * (t[1] - t[0])
        keep = abs(value) < 1e12
        return {**data, column: value[keep]}, measure[keep]

    return outcomes


def plane(_: Any, data: Columns) -> tuple[Columns, np.ndarray]:
    t = np.linspace(-3.2, 3.2, 301)
    value = np.sinh(np.pi / 2 * np.sinh(t))
    measure = np.cosh(np.pi / 2 * np.sinh(t)) * np.pi / 2 * np.cosh(t) * (t[1] - t[0])
    x, y = _plane(value, value)
    w = np.prod(_plane(measure, measure), axis=0)
    keep = (abs(x) < 1e5) & (abs(y) < 1e5)  # the family refuses what is too far from zero
    return {**data, "values": np.stack([x, y], -1)[keep]}, w[keep]


# --- how two batches make one -------------------------------------------------------------------


def added(*columns: str) -> Callable[[Columns, Columns], Columns]:
    return lambda a, b: {c: np.asarray(a[c]) + np.asarray(b[c]) for c in columns}


def averaged(a: Columns, b: Columns) -> Columns:
    n = a["n"] + b["n"]
    return {"mean": (a["n"] * a["mean"] + b["n"] * b["mean"]) / n, "n": n}


def averaged_by_precision(a: Columns, b: Columns) -> Columns:
    """Two vectors seen with the same noise are their mean, seen with half of it."""
    total = np.linalg.inv(np.linalg.inv(a["covariance"]) + np.linalg.inv(b["covariance"]))
    weighted = np.linalg.solve(a["covariance"], a["values"])
    weighted = weighted + np.linalg.solve(b["covariance"], b["values"])
    return {"values": total @ weighted, "covariance": total}


def listed(a: Columns, b: Columns) -> Columns:
    axis = -1 if np.ndim(a["values"]) == 2 else -2
    return {"values": np.concatenate([a["values"], b["values"]], axis)}


class NestedBetaBinomials:
    """SciPy's beta-binomials, one after the other."""

    def __init__(self, natural: Any) -> None:
        self.natural = natural

    def logpmf(self, counts: np.ndarray) -> Any:
        left = np.cumsum(counts[::-1])[::-1][:-1]
        a, b = self.natural.counts, self.natural.later
        return scipy.stats.betabinom.logpmf(counts[:-1], left, a, b).sum()


# --- the rows -----------------------------------------------------------------------------------

some = st.floats(0.8, 60)
few = st.floats(1.5, 12)
many = st.floats(8, 60)
number = st.floats(-2, 2)


def columns(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Columns]:
    return st.fixed_dictionaries(strategies)


@st.composite
def trials_and_successes(draw: Any) -> Columns:
    trials = draw(st.integers(0, 12))
    return {"successes": draw(st.integers(0, trials)), "trials": trials}


@st.composite
def covariances(draw: Any) -> np.ndarray:
    a, b = draw(st.floats(0.6, 2)), draw(st.floats(0.6, 2))
    c = draw(st.floats(-0.7, 0.7))
    return np.array([[a * a, a * b * c], [a * b * c, b * b]])


vector = st.tuples(number, number).map(np.array)
MAP = np.array([[1.0, 0.5], [-0.3, 1.2]])
OFFSET = np.array([0.4, -0.7])

CASES = [
    Case(
        "Binomial",
        ldf.Binomial(),
        columns(successes=some, failures=some),
        trials_and_successes(),
        beta_nodes,
        successes_of,
        added("successes", "trials"),
        lambda at, data: scipy.stats.betabinom(data["trials"], at.successes, at.failures),
    ),
    Case(
        "Geometric",
        ldf.Geometric(),
        columns(successes=many, failures=some),
        columns(failures=st.integers(0, 15), waits=st.integers(1, 3)),
        beta_nodes,
        whole_numbers("failures", 20_000),
        added("failures", "waits"),
        lambda at, data: scipy.stats.betanbinom(data["waits"], at.successes, at.failures),
    ),
    Case(
        "NegativeBinomial",
        ldf.NegativeBinomial(r=3),
        columns(successes=many, failures=some),
        columns(failures=st.integers(0, 15), waits=st.integers(1, 3)),
        beta_nodes,
        whole_numbers("failures", 20_000),
        added("failures", "waits"),
        lambda at, data: scipy.stats.betanbinom(3 * data["waits"], at.successes, at.failures),
    ),
    Case(
        "Multinomial",
        ldf.Multinomial(),
        columns(counts=st.tuples(few, few, few).map(np.array)),
        columns(counts=st.tuples(*[st.integers(0, 4)] * 3).map(np.array)),
        dirichlet_nodes,
        compositions,
        added("counts"),
        lambda at, data: scipy.stats.dirichlet_multinomial(at.counts, np.sum(data["counts"])),
    ),
    Case(
        "NestedMultinomial",
        ldf.NestedMultinomial(classes=3),
        columns(counts=st.tuples(few, few).map(np.array), later=st.tuples(few, few).map(np.array)),
        columns(counts=st.tuples(*[st.integers(0, 4)] * 3).map(np.array)),
        nested_nodes,
        compositions,
        added("counts"),
        lambda at, data: NestedBetaBinomials(at),
    ),
    Case(
        "Poisson",
        ldf.Poisson(),
        columns(count=some, exposure=some),
        columns(count=st.integers(0, 20), exposure=st.floats(0.1, 9)),
        gamma_nodes,
        whole_numbers("count", 60_000),
        added("count", "exposure"),
        lambda at, data: scipy.stats.nbinom(
            at.count, at.exposure / (at.exposure + data["exposure"])
        ),
    ),
    Case(
        "Exponential",
        ldf.Exponential(),
        columns(count=some, exposure=some),
        columns(time=st.floats(0.01, 20), events=st.integers(1, 4)),
        gamma_nodes,
        half_line("time"),
        added("time", "events"),
        lambda at, data: scipy.stats.betaprime(data["events"], at.count, scale=at.exposure),
    ),
    Case(
        "Gamma",
        ldf.Gamma(shape=2.5),
        columns(count=some, exposure=some),
        columns(total=st.floats(0.01, 20), n=st.integers(1, 4)),
        gamma_nodes,
        half_line("total"),
        added("total", "n"),
        lambda at, data: scipy.stats.betaprime(2.5 * data["n"], at.count, scale=at.exposure),
    ),
    Case(
        "Gaussian",
        ldf.Gaussian(variance=2.0),
        columns(mean=number, variance=st.floats(0.1, 9)),
        columns(mean=number, n=st.integers(1, 5)),
        gaussian_nodes,
        line("mean"),
        averaged,
        lambda at, data: scipy.stats.norm(
            at.potential / at.precision, np.sqrt(1 / at.precision + 2.0 / data["n"])
        ),
    ),
    Case(
        "LinearGaussian",
        ldf.LinearGaussian(map=MAP, offset=OFFSET),
        columns(mean=vector, covariance=covariances()),
        columns(values=vector, covariance=covariances()),
        plane_nodes,
        plane,
        averaged_by_precision,
        lambda at, data: scipy.stats.multivariate_normal(
            MAP @ np.linalg.solve(at.precision, at.potential) + OFFSET,
            MAP @ np.linalg.inv(at.precision) @ MAP.T + data["covariance"],
        ),
    ),
    Case(
        "Normal",
        ldf.Normal(),
        columns(mean=number, mean_n=some, variance=st.floats(0.5, 9), variance_n=many),
        columns(values=number),
        mean_and_variance_nodes,
        line("values"),
        lambda a, b: {"values": np.array([[a["values"], b["values"]]])},
        lambda at, data: scipy.stats.t(
            at.variance_n,
            at.total / at.mean_n,
            np.sqrt((at.squares - at.total**2 / at.mean_n) / at.variance_n * (1 + 1 / at.mean_n)),
        ),
    ),
    Case(
        "MultivariateNormal",
        ldf.MultivariateNormal(dimension=2),
        columns(mean=vector, mean_n=some, variance=covariances(), variance_n=many),
        columns(values=vector),
        mean_and_covariance_nodes,
        plane,
        lambda a, b: {"values": np.array([[a["values"], b["values"]]])},
        lambda at, data: scipy.stats.multivariate_t(
            at.total / at.mean_n,
            (at.squares - np.outer(at.total, at.total) / at.mean_n)
            * (1 + 1 / at.mean_n)
            / (at.variance_n - 1),
            df=float(at.variance_n) - 1,
        ),
        tolerance=0.05,  # drawn, not integrated
    ),
]
