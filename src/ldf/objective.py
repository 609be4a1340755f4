"""What learning maximises: plain functions of the log-predictive of each row, larger is better.

    φ̂ = argmax Σ_i w_i ℓ(log p(y_i | T_x(x_i; φ)))

`maximum_likelihood` is the default and the only proper score here: its optimum is the truth where
the mapping can say it. `model_selection` saturates once a row is explained better than by its
reference, and leans away from it; a model trained by it should be checked for calibration. Any
function of (log p, log p of the reference) can take their place.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from ldf import check
from ldf.special import Array, namespace

Objective = Callable[[Array, Array], Array]


def maximum_likelihood(log_predictive: Array, log_reference: Array) -> Array:
    """ℓ = log p."""
    return log_predictive


def model_selection(log_predictive: Array, log_reference: Array) -> Array:
    """ℓ = p / (p + p_0), the probability that the model explains the row better than p_0."""
    return jax.nn.sigmoid(log_predictive - log_reference)


def tempered(temperature: float) -> Objective:
    """ℓ = (p^(1 − t) − 1)/(1 − t): from log p at t = 1 to p itself at t = 0, robust in between."""
    check.positive("temperature", temperature)

    def objective(log_predictive: Array, log_reference: Array) -> Array:
        if temperature == 1:
            return log_predictive
        xp = namespace(log_predictive)
        power = 1 - temperature
        return xp.expm1(power * log_predictive) / power

    return objective


def balanced_weights(rate: np.ndarray, quantiles: int = 5) -> np.ndarray:
    """Weights by which every quantile class of the rate counts the same, with mean one.

    Rows without a rate (no trials: NaN) keep weight one: they are a class that says nothing.
    """
    rate = np.asarray(rate, dtype=float)
    weights = np.ones(rate.shape)
    seen = np.isfinite(rate)
    if seen.any():
        index, sizes = classes(rate[seen], quantiles)
        weights[seen] = seen.sum() / (len(sizes) * sizes[index])
    return weights


def classes(rate: np.ndarray, quantiles: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """The quantile class of each rate, and the size of each class. Equal rates fall into one class,
    so that ties (many zeros) are never split: then there are fewer classes than quantiles."""
    edges = np.quantile(rate, np.linspace(0, 1, quantiles + 1)[1:-1])
    label = np.searchsorted(edges, rate, side="right")
    _, index, sizes = np.unique(label, return_inverse=True, return_counts=True)
    return index, sizes
