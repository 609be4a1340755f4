"""Whole numbers whose masses stand in a table: new data when θ is known on nodes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Integer, check_q, on_host
from ldf.distributions.beta_binomial import first_count, highest_count, narrowest_window
from ldf.distributions.on_nodes import OnNodes
from ldf.special import Array, check_draws

CELLS = 4_000_000  # of likelihoods held at once
LARGEST = 50_000_000  # masses in one table
NEGLIGIBLE = 1e-18  # a node's weight
RESOLVED = 0.7  # of a likelihood's width that nodes may be apart

# (θ, 1 − θ, units, width): of units × nodes, the masses of 0 … width − 1 on a third axis.
Masses = Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]


class Tabulated(Integer):
    """Of whole numbers from 0 on, by a table of their masses on the last axis."""

    mass: np.ndarray
    largest: np.ndarray  # possible value

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.mass)[:-1]

    @property
    def top(self) -> Array:
        return self.largest

    def __getitem__(self, rows: Any) -> Tabulated:
        return Tabulated(self.mass[rows], self.largest[rows])

    @property
    def _values(self) -> np.ndarray:
        return np.arange(self.mass.shape[-1])

    def mean(self) -> Array:
        return self.mass @ self._values

    def variance(self) -> Array:
        return (self.mass * (self._values - self.mean()[..., None]) ** 2).sum(-1)

    def mode(self) -> Array:
        return self._rows(highest_count, 0)

    def log_prob(self, value: Any) -> Array:
        k = np.asarray(check.numbers("value", value, units=self.shape), float)
        inside = (k >= 0) & (k < self.mass.shape[-1]) & (k == np.floor(k))
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(self._at(self.mass, np.where(inside, k, 0))), -np.inf)

    def cdf(self, value: Any) -> Array:
        k = check.numbers("value", value, infinite=True, units=self.shape)
        k = np.clip(np.floor(np.asarray(k, float)), -1, self.mass.shape[-1] - 1)
        found = self._at(np.cumsum(self.mass, -1), np.maximum(k, 0))
        return np.where(k < 0, 0.0, np.minimum(found, 1.0))

    def _at(self, table: np.ndarray, k: np.ndarray) -> np.ndarray:
        shape = np.broadcast_shapes(self.shape, k.shape)
        table = np.broadcast_to(table, (*shape, table.shape[-1]))
        index = np.broadcast_to(k, shape).astype(np.int64)[..., None]
        return np.take_along_axis(table, index, -1)[..., 0]

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        shape = np.broadcast_shapes(self.shape, np.shape(q))
        table = np.broadcast_to(np.cumsum(self.mass, -1), (*shape, self.mass.shape[-1]))
        levels = np.broadcast_to(np.asarray(q, float), shape).reshape(-1)
        found = first_count(table.reshape(-1, table.shape[-1]), levels).reshape(shape)
        return np.minimum(found, self.largest)

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        ends = self._rows(lambda table: narrowest_window(table, mass), 1)
        return ends[..., 0], ends[..., 1]

    def _rows(self, function: Any, axes: int) -> np.ndarray:
        """Of tables of cumulative masses, one row a unit."""
        found = function(np.cumsum(self.mass, -1).reshape(-1, self.mass.shape[-1]))
        return found.reshape(self.shape + found.shape[found.ndim - axes :])

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        level = np.random.default_rng(seed).random((draws, *self.shape))
        return self.quantile(level)


def tabulated(of: OnNodes, top: np.ndarray, masses: Masses) -> Tabulated:
    """New whole numbers up to `top`, when θ is distributed so: of as many units."""
    sizes = np.asarray(top, float).reshape(-1)
    width = int(sizes.max(initial=0)) + 1
    if width * len(sizes) > LARGEST:
        problem = f"needs a table of {width * len(sizes):,} masses"
        remedy = f"ask about fewer units at once: {LARGEST:,} are the most"
        raise check.DataError("trials", None, sizes.max(), problem, remedy)
    flat = of[tuple(axis.reshape(-1) for axis in np.indices(of.shape)) if of.shape else None]
    table = np.zeros((len(sizes), width))
    # So many nodes that what n new data say of θ is resolved: a share is told to √(θ(1 − θ)/n).
    needed = np.maximum(64, flat.extent() * np.sqrt(sizes) / RESOLVED)
    nodes = 1 << np.ceil(np.log2(needed)).astype(int)
    for number in np.unique(nodes).tolist():
        left = np.flatnonzero(nodes == number)
        left = left[np.argsort(-sizes[left], kind="stable")]
        while len(left):
            size = int(sizes[left[0]]) + 1
            many = max(1, CELLS // (number * size))
            rows, left = left[:many], left[many:]
            nodes_of = flat[rows].weighted(number)
            counts = nodes_of[2].max(1) > NEGLIGIBLE
            theta, rest, weight = (part[counts].T for part in nodes_of)
            table[rows, :size] = (weight[:, None] @ masses(theta, rest, rows, size))[:, 0]
    return Tabulated(table.reshape(*of.shape, width), np.asarray(top, float))
