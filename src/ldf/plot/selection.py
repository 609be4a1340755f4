"""An objective and its derivative, by how much better than the reference a row is explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ldf.objective import Objective as Function
from ldf.objective import model_selection
from ldf.plot.figure import bare, given_panels
from ldf.plot.roles import ROLES
from ldf.plot.table import Table


@dataclass(frozen=True, eq=False)
class Objective(Table):
    """One row a difference of log-likelihoods."""

    difference: np.ndarray  # log p − log p0
    value: np.ndarray
    derivative: np.ndarray

    @classmethod
    def of(
        cls, function: Function = model_selection, reach: float = 8.0, points: int = 401
    ) -> Objective:
        """The function's own values and its gradient, at differences up to `reach`."""
        with jax.enable_x64(True):
            x = jax.numpy.linspace(-reach, reach, points)
            value = jax.vmap(lambda d: function(d, 0.0 * d))(x)
            slope = jax.vmap(jax.grad(lambda d: function(d, 0.0)))(x)
            return cls(*(np.asarray(of) for of in (x, value, slope)))


def objective(table: Objective, *, axes: Any = None) -> Any:
    """Draw the objective to the left and its derivative to the right. Returns the figure."""
    left, right = given_panels(axes, 2, 2, (4.0, 2.3))
    for axis, values, title in (
        (left, table.value, "objective ℓ of a row"),
        (right, table.derivative, "its derivative dℓ / d log p"),
    ):
        axis.axvline(0, color="#b0b0b0", linewidth=0.9, zorder=0)
        axis.plot(table.difference, values, color=ROLES["ldf"].colour, linewidth=2)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel("log p(y | x) − log p₀(y)")
        axis.set_xlim(table.difference[0], table.difference[-1])
        axis.set_ylim(bottom=min(0.0, float(values.min())))
        bare(axis)
    return left.figure
