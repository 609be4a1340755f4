"""One fit to the last digit: for mappings with few weights, such as regressions.

The trainer takes many noisy steps on many fits; a regression has one best answer and deserves it.
All rows at once, in float64, by a quasi-Newton method:

    score = Σ_i w_i ℓ(log p(y_i | T_x(x_i; φ))) / Σ_i w_i  −  penalty · |φ|²
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree

from ldf.mappings import Weights, squared
from ldf.model import Ground, Model
from ldf.special import Array


class Solved(NamedTuple):
    """The best weights, in float64."""

    weights: Weights
    score: float
    converged: bool


@eqx.filter_jit
def _score(
    model: Model, flat: Array, like: Weights, ground: Ground, x: Any, y: Any, w: Any, penalty: Any
) -> tuple[Array, Array]:
    def score(at: Array) -> Array:
        weights = ravel_pytree(like)[1](at)
        log_predictive = model.log_predictive(weights, ground, x, y)
        mean = jnp.where(w > 0, w * log_predictive, 0.0).sum() / w.sum()
        return penalty * squared(weights) - mean

    return jax.value_and_grad(score)(flat)


def solve(
    model: Model,
    ground: Ground,
    x: np.ndarray,
    y: dict[str, np.ndarray],
    weight: np.ndarray | None = None,
    penalty: float = 0.0,
    start: Weights | None = None,
) -> Solved:
    """Maximise the penalised log-likelihood of the rows."""
    weight = np.ones(len(x)) if weight is None else weight
    x, y = _only(weight > 0, x), {name: _only(weight > 0, values) for name, values in y.items()}
    with jax.enable_x64(True):

        def double(value: Any) -> Any:
            return jnp.asarray(value, jnp.float64)

        if start is None:
            start = model.mapping.init(np.random.default_rng(0), x.shape[1], model.outputs)
        start = jax.tree.map(double, start)
        flat, unravel = ravel_pytree(start)
        held = jax.tree.map(double, (ground, x, y, weight, penalty))

        best = (np.inf, np.asarray(flat), np.full(flat.shape, np.inf))

        def function(at: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            value, slope = _score(model, double(at), start, *held)
            value, slope = float(value), np.asarray(slope)
            if np.isfinite(value) and np.isfinite(slope).all():
                best = min(best, (value, at.copy(), slope), key=lambda known: known[0])
                return value, slope
            # Too far out to be a number: worse than what is known, so that the line search comes
            # back. Infinity it would take for an answer.
            return best[0] + max(1.0, abs(best[0])), np.zeros_like(slope)

        options = {"maxiter": 2000, "maxfun": 4000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
        scipy.optimize.minimize(
            function, np.asarray(flat), jac=True, method="L-BFGS-B", options=options
        )
        value, at, slope = best
        flat_enough = np.abs(slope).max(initial=0.0) < 1e-4 * max(1.0, abs(value))
        weights = jax.tree.map(np.asarray, unravel(double(at)))
        return Solved(weights, -value, bool(flat_enough))


def _only(counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Those of a row that counts wherever one does not. A row of weight zero must not be absurd
    either: zero times a slope that is no number is none."""
    mask = counts.reshape(counts.shape + (1,) * (np.ndim(values) - 1))
    return np.where(mask, values, np.asarray(values)[int(np.argmax(counts))])
