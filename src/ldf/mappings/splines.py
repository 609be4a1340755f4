"""Splines: every output is a sum of smooth curves, one a column.

A generalised additive model. Of each column a curve is piecewise cubic between knots, which lie
evenly over the middle of the training rows, and straight beyond the outer ones, so that nothing
explodes where there are no rows: a natural cubic spline, in the basis of cubic B-splines.

The penalty of learning is a sum of squared weights. So the basis is turned (Wood 2017, section 5.4)
until that sum is the curvature of the curve,

    |w|² = smoothness · ∫ f''(u)² du,    u from 0 to 1 between the outer knots,

which leaves out its straight part. That is the linear path beside it, penalised as a regression's
is: columns may tell the same, and without a penalty would have no one best answer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Weights
from ldf.mappings.basis import Basis
from ldf.special import Array, namespace

MIDDLE = (0.025, 0.975)  # of the training rows: between the outer knots


class Splines(Basis):
    """Natural cubic splines with so many knots a column; the more `smoothness`, the straighter."""

    knots: int = 8
    smoothness: float = 0.01
    by: str = "log"

    def __check_init__(self) -> None:
        if self.knots < 3:
            raise check.DataError("knots", None, self.knots, "bend nothing", "give three or more")
        check.positive("smoothness", self.smoothness)

    @property
    def formulation(self) -> str:
        return self.by

    def size(self, inputs: int) -> int:
        return inputs * (self.knots - 2)

    def chosen(self, rng: np.random.Generator, inputs: int) -> dict[str, Any]:
        return {"first": np.full(inputs, -2.0), "last": np.full(inputs, 2.0)}

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        """With the outer knots where all but few of the rows are between them; of a column of which
        most are alike, where all are."""
        first, last = np.quantile(x, MIDDLE, axis=0)
        alike = first == last
        first, last = np.where(alike, x.min(0), first), np.where(alike, x.max(0), last)
        last = np.where(first == last, first + 1, last)
        return weights | {"fixed": {"first": first, "last": last}}

    def features(self, weights: Weights, x: Array) -> Array:
        fixed = weights["fixed"]
        u = (x - fixed["first"]) / (fixed["last"] - fixed["first"])
        turned, start, end = (v / np.sqrt(self.smoothness) for v in _turned(self.knots))
        inside = jnp.clip(u, 0.0, 1.0)
        curves = b_splines(inside, self.knots) @ turned
        # Straight beyond the outer knots.
        beyond = jnp.where(u < 0, u, 0.0)[:, None] * start
        beyond += jnp.where(u > 1, u - 1, 0.0)[:, None] * end
        return (curves + beyond).reshape(-1)


def b_splines(u: Array, knots: int) -> Array:
    """The cubic B-splines on so many even knots from 0 to 1, at each u between them: u × splines.
    There are two more of them than knots."""
    xp = namespace(u)
    far = xp.abs(u[..., None] * (knots - 1) - np.arange(-1, knots + 1))
    near = (4 - 6 * far**2 + 3 * far**3) / 6
    return xp.where(far < 1, near, xp.maximum(2 - far, 0.0) ** 3 / 6)


@cache
def _turned(knots: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What makes curves of B-splines, a column each: those that are straight at both ends, of
    curvature one, across each other, and with nothing straight in them (on average from 0 to 1).
    And their slopes at 0 and at 1."""
    gaps = knots - 1
    many = knots + 2
    # Second derivatives at the knots, between which they are straight lines.
    bends = np.zeros((knots, many))
    slopes = np.zeros((knots, many))
    for knot in range(knots):
        bends[knot, knot : knot + 3] = np.array([1, -2, 1]) * gaps**2
        slopes[knot, knot : knot + 3] = np.array([-0.5, 0, 0.5]) * gaps
    hat = np.diag(np.full(knots, 4.0)) + np.eye(knots, k=1) + np.eye(knots, k=-1)
    hat[0, 0] = hat[-1, -1] = 2.0
    curvature = bends.T @ (hat / (6 * gaps)) @ bends
    _, _, rows = np.linalg.svd(bends[[0, -1]])
    natural = rows[2:].T  # those that do not bend at the ends
    value, vector = np.linalg.eigh(natural.T @ curvature @ natural)
    turned = natural @ (vector[:, 2:] / np.sqrt(value[2:]))  # the first two are straight
    # Gauss–Legendre is exact for a cubic between knots, times a straight line.
    at, weight = np.polynomial.legendre.leggauss(4)
    u = ((np.arange(gaps)[:, None] + (at + 1) / 2) / gaps).ravel()
    weight = np.tile(weight / (2 * gaps), gaps)
    straight = np.stack([np.ones_like(u), np.sqrt(12) * (u - 0.5)], 1)
    part = straight.T @ (weight[:, None] * (b_splines(u, knots) @ turned))
    line = (np.arange(-1, knots + 1) / gaps - 0.5) * np.sqrt(12)  # a straight line, of B-splines
    turned = turned - np.stack([np.ones(many), line], 1) @ part
    return turned, slopes[0] @ turned, slopes[-1] @ turned
