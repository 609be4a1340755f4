"""What is known of all units alike, from the primary data of the training rows alone.

The prior λ0 and T_x are not separately identified by p(y | x), so λ0 is given, or fitted to p(y)
without auxiliary data. "weak" keeps the mean of the fitted one, worth a tenth of its observations:
what it says is added to whatever auxiliary data say, and they cannot take it back.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.families.base import Family
from ldf.mappings import Linear
from ldf.model import Ground, Model
from ldf.solve import solve
from ldf.statistic import Arrivals
from ldf.table import Table, somewhere

WEAK = 0.1  # of the fitted prior's observations
PENALTY = 1e-3  # of regressions


PRIORS = {"weak": WEAK, "fitted": 1.0, "none": 0.0}  # how much of the fitted one
REFERENCES = ("prior", "regression")


def ground_of(
    model: Model, prior: Any, table: Table, rows: np.ndarray, strength: float = 1.0
) -> Ground:
    """The prior, and where a mapping's outputs begin."""
    flat = Model(model.family, Linear(True, True, by=model.mapping.formulation))
    y = somewhere(table.y, table.seen)
    start = {"slope": np.zeros((0, 0)), "bias": np.full(flat.outputs, 0.5)}
    nothing = np.empty((len(rows), 0))
    weight = np.where(rows, table.weight, 0.0)
    centre = solve(flat, flat.ground(), nothing, y, weight, start=start).weights["bias"]
    fitted = model.family.from_unconstrained(centre, flat.mapping.formulation)
    if isinstance(prior, str):
        prior = fitted * PRIORS[prior]
    return Ground(prior * strength, centre, fitted.output_scale(len(centre)))


def log_reference(
    family: Family, kind: str, table: Table, rows: np.ndarray, ground: Ground, z: np.ndarray
) -> np.ndarray:
    """log p_0 of each row: by the prior alone, or by a regression trained on the same rows."""
    y = somewhere(table.y, table.seen)
    if kind == "prior":
        return np.asarray(family.log_predictive(ground.prior, **y))
    shape = family.natural is Arrivals  # Appendix D
    model = Model(family, Linear(constant_count=True, shape=shape))
    flat = ground_of(model, "fitted", table, rows)
    flat = flat._replace(prior=flat.prior.zero())
    weights = solve(model, flat, z, y, np.where(rows, table.weight, 0.0), PENALTY).weights
    with jax.enable_x64(True):
        return np.asarray(model.log_predictive(weights, flat, jnp.asarray(z), y))
