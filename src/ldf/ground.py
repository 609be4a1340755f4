"""What is known of all units alike, from the primary data of the training rows alone.

The prior λ0 and T_x are not separately identified by p(y | x), so λ0 is given, or fitted to p(y)
without auxiliary data. "weak" keeps the mean of the fitted one, worth a tenth of its observations:
what it says is added to whatever auxiliary data say, and they cannot take it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf.mappings import Linear
from ldf.model import Ground, Model
from ldf.solve import solve
from ldf.table import Table, somewhere

WEAK = 0.1  # of the fitted prior's observations
PRIORS = {"weak": WEAK, "fitted": 1.0, "none": 0.0}  # how much of the fitted one


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
