"""Small worlds that tests of the façade share: quick to learn, with something to learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import ldf
from ldf import Ensemble, Fusion, Linear, Member, Network, Schedule

NETWORK = Network(shared=(4,), branch=())
TINY = Ensemble(
    (Member(NETWORK), Member(NETWORK, "standard", width=2)),
    parts=3,
    schedule=Schedule(epochs=20, patience=5, batch=64, chunk=5, places=4),
)
# Regressions are learned sooner. All are of one mapping, so that they compile once.
LINE = Linear(constant_count=True)
LINES = Ensemble((Member(LINE), Member(LINE, "standard", penalty=0.1)), parts=3)
ONE = Ensemble((Member(LINE),), parts=1)

BINOMIAL = {"successes": "lit", "trials": "asked"}
OUTCOMES = ["lit", "sick", "red", "green", "blue", "yield"]


def villages(rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Every sixth village was not surveyed; some that were asked nobody."""
    rng = np.random.default_rng(seed)
    lights, roads = rng.normal(size=(2, rows))
    centre = 1 / (1 + np.exp(-lights - 0.3))
    theta = rng.beta(8 * centre, 8 * (1 - centre))
    asked = rng.integers(0, 30, rows).astype(float)
    colours = rng.gamma([2.0, 1.5, 1.0], np.exp(np.outer(lights, [0.5, 0.0, 0.0])))
    counts = [rng.multinomial(12, colour / colour.sum()) for colour in colours]
    people = rng.uniform(0.5, 2.0, rows)
    made = {
        "lights": lights,
        "roads": roads,
        "lit": rng.binomial(asked.astype(int), theta),
        "asked": asked,
        "sick": rng.poisson(people * rng.gamma(2, 2 * np.exp(0.5 * lights))),
        "people": people,
        "yield": lights + rng.normal(size=rows) + rng.normal(size=rows),
        "error": rng.uniform(0.5, 1.5, rows),
        "state": [f"s{i % 10}" for i in range(rows)],
        "side": [("left", "right")[i % 2] for i in range(rows)],
        "east": rng.uniform(size=rows),
        "north": rng.uniform(size=rows),
        "year": np.repeat(np.arange(2000, 2000 + rows // 10), 10),
    }
    made |= dict(zip(("red", "green", "blue"), np.array(counts).T, strict=True))
    frame = pd.DataFrame(made, index=[f"v{i}" for i in range(rows)])
    frame[OUTCOMES] = frame[OUTCOMES].astype(float)
    frame.loc[frame.index[::6], OUTCOMES] = np.nan
    return frame


def fusion(family: Any = "binomial", primary: Any = None, **more: Any) -> Fusion:
    given = {"auxiliary": ["lights", "roads"], "ensemble": LINES}
    return Fusion(family, primary or BINOMIAL, **given | more)


# Of each kind of primary data: family, columns, and what its fits are asked about.
FAMILIES = {
    "binomial": ("binomial", BINOMIAL),
    "poisson": ("poisson", {"count": "sick", "exposure": "people"}),
    "gaussian": (ldf.Gaussian(), {"mean": "yield", "variance": "error"}),
    "multinomial": ("multinomial", {"counts": ["red", "green", "blue"]}),
}
