"""A mixture as searches see it: in NumPy, units on one axis, only the components that matter.

Values are one a unit, and what is asked is the weighted sum over components. `knots` says where the
mass is, before anything is searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NEGLIGIBLE = 1e-12  # a weight that searches leave out, if it is as small for all units
EPS = np.finfo(float).eps


class Units:
    """Weights of K × M and as many components."""

    def __init__(self, weights: np.ndarray, components: Any) -> None:
        self.weights, self.components = weights, components

    @classmethod
    def of(cls, mixture: Any) -> Units:
        components, shape = mixture.components, mixture.shape
        size = int(np.prod(shape))
        units = np.unravel_index(np.arange(size), shape) if shape else (None,)
        weights = np.asarray(mixture.weights, float)
        weights = weights.reshape(weights.shape + (1,) * (1 + len(shape) - weights.ndim))
        weights = np.broadcast_to(weights, components.shape)[(slice(None), *units)]
        heavy = weights.max(1, initial=0) > NEGLIGIBLE
        rows = slice(None) if heavy.all() or not size else heavy
        weights = weights[rows]
        return cls(weights / weights.sum(0), components[(slice(None), *units)][rows])

    def __len__(self) -> int:
        return self.weights.shape[1]

    def __getitem__(self, rows: Any) -> Units:
        return Units(self.weights[:, rows], self.components[:, rows])

    @property
    def support(self) -> tuple[float, float]:
        return self.components.support

    def _sum(self, values: Any) -> np.ndarray:
        return np.where(self.weights > 0, self.weights * values, 0.0).sum(0)

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self._sum(self.components.cdf(x)), 1.0)

    def exceeds(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(self._sum(self.components.exceeds(x)), 1.0)

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        return log_sum(self._logs(x))

    def density(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log density and its derivative."""
        logs = self._logs(x)
        log_density = log_sum(logs)
        with np.errstate(all="ignore"):
            share = np.where(np.isfinite(logs), np.exp(logs - log_density), 0.0)
            rise = np.where(self.weights > 0, share * self.components.slope(x), 0.0)
        return log_density, rise.sum(0)

    def _logs(self, x: np.ndarray) -> np.ndarray:
        return self.log_weights() + np.where(self.weights > 0, self.components.log_prob(x), 0.0)

    def log_weights(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.weights)

    def modes(self) -> np.ndarray:
        """Of the components."""
        return np.broadcast_to(np.asarray(self.components.mode(), float), self.weights.shape)

    def ends(self, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """The least and greatest over components that have weight; NaN where one is."""
        there = self.weights > 0
        return np.where(there, values, np.inf).min(0), np.where(there, values, -np.inf).max(0)

    def knots(self, number: int) -> np.ndarray:
        """So many places a unit where the mixture has its mass, in order: units × number. Between
        two neighbours is about the same share of it, going by components' means and spreads."""
        centre, spread = location(self.components)
        start, end = getattr(self.components, "support", (-0.5, np.inf))
        z = np.array([-3.0, -2.0, -1.25, -0.6, 0.0, 0.6, 1.25, 2.0, 3.0]).reshape(-1, 1, 1)
        share = np.array([0.3, 0.6, 1.0, 1.2, 1.2, 1.2, 1.0, 0.6, 0.3]).reshape(-1, 1, 1)
        x = centre + z * spread
        with np.errstate(all="ignore"):  # within the support: by a factor where it has an end
            if np.isfinite(start):
                x = np.where(
                    z < 0, start + (centre - start) * np.exp((x - centre) / (centre - start)), x
                )
            if np.isfinite(end):
                x = np.where(z > 0, end - (end - centre) * np.exp((centre - x) / (end - centre)), x)
        x = np.where(np.isfinite(x), x, centre).reshape(len(z) * len(self.weights), len(self))
        share = (share * self.weights).reshape(x.shape)
        order = np.argsort(x, 0)
        x = np.take_along_axis(x, order, 0)
        up_to = np.cumsum(np.take_along_axis(share, order, 0), 0)
        up_to = up_to / up_to[-1]
        levels = (np.arange(number) + 0.5) / number
        index = np.stack([(up_to < level).sum(0) for level in levels])
        return np.take_along_axis(x, np.minimum(index, len(x) - 1), 0).T


def location(components: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd, or, where there is none, the median and half the way between quartiles."""
    spread = np.broadcast_to(np.sqrt(np.asarray(components.variance(), float)), components.shape)
    if np.isfinite(spread).all():
        return np.broadcast_to(np.asarray(components.mean(), float), components.shape), spread
    low, middle, high = (np.asarray(components.quantile(q), float) for q in (0.2, 0.5, 0.8))
    return middle, (high - low) / 1.7


def log_sum(logs: np.ndarray) -> np.ndarray:
    """log Σ_k exp."""
    peak = logs.max(0)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        return peak + np.log(np.exp(logs - peak).sum(0))


def columns(function: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """Of each column of units × places: one after the other, as K times as much is held at once."""
    return np.stack([np.asarray(function(column)) for column in x.T], 1)
