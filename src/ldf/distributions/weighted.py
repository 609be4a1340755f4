"""Draws of θ that count differently: a posterior by importance sampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf.distributions.base import Distribution, check_q
from ldf.special import Array, check_draws


class WeightedDraws(Distribution):
    """Draws × units × the axes of θ, and weights of draws × units that sum to one."""

    draws: np.ndarray
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.weights)[1:]

    def __getitem__(self, rows: Any) -> WeightedDraws:
        at = (slice(None), *(rows if isinstance(rows, tuple) else (rows,)))
        return WeightedDraws(self.draws[at], self.weights[at])

    def _weights(self) -> np.ndarray:
        """With the axes of the draws."""
        own = self.draws.ndim - self.weights.ndim
        return self.weights.reshape(self.weights.shape + (1,) * own)

    def effective(self) -> np.ndarray:
        """How many equally weighted draws these are worth."""
        return 1 / (self.weights**2).sum(0)

    def mean(self) -> Array:
        return (self._weights() * self.draws).sum(0)

    def sd(self) -> Array:
        return np.sqrt((self._weights() * (self.draws - self.mean()) ** 2).sum(0))

    def quantile(self, q: float) -> Array:
        """Of each component: the smallest draw up to which the weights reach q."""
        check_q(q)
        order = np.argsort(self.draws, 0)
        weights = np.broadcast_to(self._weights(), self.draws.shape)
        up_to = np.cumsum(np.take_along_axis(weights, order, 0), 0)
        at = np.minimum((up_to < q * up_to[-1]).sum(0), len(order) - 1)[None]
        return np.take_along_axis(np.take_along_axis(self.draws, order, 0), at, 0)[0]

    def sample(self, draws: int, seed: Any) -> Array:
        """Drawn again, each as often as it counts."""
        check_draws(draws, seed)
        level = np.random.default_rng(seed).random((draws, *self.shape))
        up_to = np.cumsum(self.weights, 0)
        which = np.minimum((up_to[None] < level[:, None]).sum(1), len(up_to) - 1)
        units = np.ogrid[tuple(slice(size) for size in self.shape)] if self.shape else ()
        return self.draws[(which, *units)]
