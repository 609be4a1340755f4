"""Every family can be learned: a mapping for it, a ground, an answer that beats knowing nothing.

Data are drawn from the family's own predictive, with a natural parameter that depends on x. What is
learned must explain other rows better than the intercept alone does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import ldf
from ldf.ensemble import Ensemble, Member
from ldf.fit import Schedule
from ldf.ground import ground_of
from ldf.learn import learn
from ldf.mappings import Linear, Network, Trees
from ldf.model import Model
from ldf.spec import Spec
from ldf.table import Table

M = 240
TRAINING = np.arange(M) < 160
NETWORK = Network(shared=(4,), branch=())
SCHEDULE = Schedule(epochs=150, patience=150, batch=64, chunk=50, places=3)


class Case(NamedTuple):
    family: Any
    word: str  # of the outcome
    design: dict[str, float]
    centre: tuple[float, ...]  # outputs at x = 0, on the log formulation
    slope: tuple[float, ...]


CASES = {
    "binomial": Case(ldf.Binomial(), "successes", {"trials": 20}, (2, -0.5), (0, 1)),
    "geometric": Case(ldf.Geometric(), "failures", {"waits": 6}, (3, 0.5), (0, 2)),
    "negative binomial": Case(
        ldf.NegativeBinomial(r=3.0), "failures", {"waits": 4}, (3, 0.5), (0, 2)
    ),
    "multinomial": Case(
        ldf.Multinomial(classes=3), "counts", {"trials": 20}, (2, 0, 0, 0), (0, 1, -1, 0)
    ),
    "poisson": Case(ldf.Poisson(), "count", {"exposure": 1e5}, (9, -9), (0, 1)),
    "exponential": Case(ldf.Exponential(), "time", {"events": 5}, (1, -1), (0, 1)),
    "gamma": Case(ldf.Gamma(shape=2.0), "total", {"n": 5}, (1, -1), (0, 1)),
    "gaussian": Case(ldf.Gaussian(variance=4e4), "mean", {"n": 9}, (-9.2, 5000), (0, 300)),
    "linear gaussian": Case(
        ldf.LinearGaussian(np.array([[1.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.eye(2)),
        "values",
        {},
        (1, -1, 0.3, 0.2, 0.3),
        (1, 1, 0, 0, 0),
    ),
    "normal": Case(ldf.Normal(), "values", {}, (1, 3, 2, 0), (0, 3, 0, 0)),
    "multivariate normal": Case(
        ldf.MultivariateNormal(dimension=2),
        "values",
        {},
        (1, 2.5, 1, -1, 0.3, 0.2, 0.3),
        (0, 0, 3, 3, 0, 0, 0),
    ),
}


def made(case: Case) -> Table:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(M, 2))
    outputs = np.asarray(case.centre) + x[:, :1] * np.asarray(case.slope, float)
    natural = case.family.from_unconstrained(outputs, "log")
    design = {word: np.full(M, value) for word, value in case.design.items()}
    y = np.asarray(case.family.predictive(natural, **design).sample(1, seed=1)[0])
    if isinstance(case.family, ldf.Normal):
        y = y[:, None]  # one value a unit
    if isinstance(case.family, ldf.MultivariateNormal):
        y = y[:, None, :]
    words = {} if "trials" in design and case.word == "counts" else design
    return Table(x, {case.word: y, **words}, np.ones(M, bool), np.ones(M))


def gain(case: Case, ensemble: Ensemble) -> np.ndarray:
    """By how much each held-out row is better explained than by the intercept alone."""
    table = made(case)
    y = {word: values[~TRAINING] for word, values in table.y.items()}
    (learned,) = learn(Spec(case.family, ensemble), table, 0, TRAINING[None])
    said = learned.said(table.x[~TRAINING])
    alone = ground_of(Model(case.family, Linear()), "fitted", table, TRAINING).prior
    return learned.log_score(said, y) - np.asarray(case.family.log_predictive(alone, **y))


def clearly_positive(values: np.ndarray) -> bool:
    return bool(values.mean() > 3 * values.std() / np.sqrt(len(values)))


# The others are regressions of test_baselines too.
QUICK = ("exponential", "linear gaussian", "normal")
NAMES = [n if n in QUICK else pytest.param(n, marks=pytest.mark.full) for n in CASES]


@pytest.mark.parametrize("name", NAMES)
def test_a_linear_mapping_is_learned_in_every_family(name: str) -> None:
    assert clearly_positive(gain(CASES[name], Ensemble((Member(Linear(True)),), parts=1)))


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_network_is_learned_in_every_family(name: str) -> None:
    member = Member(NETWORK, learning_rate=0.03)
    assert clearly_positive(gain(CASES[name], Ensemble((member,), parts=3, schedule=SCHEDULE)))


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_trees_are_learned_in_every_family(name: str) -> None:
    member = Member(Trees(depth=2), learning_rate=0.1)
    assert clearly_positive(gain(CASES[name], Ensemble((member,), parts=6)))
