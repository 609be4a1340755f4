"""Bambi, and so PyMC: mean and precision linear in x, by Markov chains."""

from __future__ import annotations

import logging

import bambi
import numpy as np
import pandas as pd

from .counts import Counts
from .task import Task

CHAINS, DRAWS, KEPT = 2, 500, 200
# A diagonal mass matrix takes steps by the hundred through columns that go together. A full one
# needs few, but before it is learned would take as many: so trees are kept short until then.
NUTS = {"dense_mass": True, "max_tree_depth": (6, 10)}


def distributional(task: Task) -> Counts:
    logging.getLogger("pymc").setLevel(logging.ERROR)
    columns = [f"x{j}" for j in range(task.x.shape[1])]
    right = " + ".join(columns)
    table = pd.DataFrame(task.x, columns=columns)
    asked = pd.DataFrame(task.x_new, columns=columns)
    if task.kind == "binomial":
        table["y"], table["n"] = task.y.astype(int), task.n.astype(int)
        asked["n"] = task.n_new.astype(int)
        formula = bambi.Formula(f"p(y, n) ~ {right}", f"kappa ~ {right}")
        family, worth = "beta_binomial", "kappa"
    else:
        scale = task.n.sum() / task.y.sum()  # so that the intercept is near zero
        table["y"], table["n"] = task.y.astype(int), np.log(task.n / scale)
        asked["n"] = np.log(task.n_new / scale)
        formula = bambi.Formula(f"y ~ {right} + offset(n)", f"alpha ~ {right}")
        family, worth = "negativebinomial", "alpha"
    model = bambi.Model(formula, table, family=family)
    found = model.fit(
        draws=DRAWS, tune=DRAWS, chains=CHAINS, random_seed=task.seed, inference_method="numpyro",
        nuts_sampler_kwargs={"chain_method": "sequential", "nuts_kwargs": NUTS},
        progressbar=False,
    )  # fmt: skip
    model.predict(found, kind="response_params", data=asked)
    every = slice(None, None, CHAINS * DRAWS // KEPT)
    mean, worth = (
        found.posterior[name].to_numpy().reshape(CHAINS * DRAWS, -1)[every]
        for name in ("mu", worth)
    )
    if task.kind == "poisson":
        mean = mean / task.n_new
    return Counts.of(task.kind, task.n_new, mean, worth)
