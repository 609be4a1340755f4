"""Neighbours alike: a spatial term on the rate, after Besag, York and Mollié, scaled as by Riebler.

The rate of λ0 + T_x (its logit, logarithm, or a mean itself) moves by the term of the unit's area,

    term = level + spread · ( √(1 − share) · v  +  √share · u ),      v ~ N(0, I)

where u is an intrinsic autoregression: its density is ∝ exp(−½ Σ_{neighbours} (u_i − u_j)²), it
sums to zero, and it is scaled so that the geometric mean of its variances is one. So `spread` is
the standard deviation of a term whatever the graph, and `share` how much of its variance is
spatial.

A graph may fall into parts. Each part of two areas or more has a sum of zero, a scale and a level
of its own; an area without neighbours has u ~ N(0, 1), and such areas share a level.

u is written as a root of its covariance times standard normals, so that its prior is exact and
proper. The root is a dense matrix: for graphs of some thousand areas.

Hyperpriors, weakly informative: level ~ N(0, scale²), spread is the size of a N(0, scale²), share
is uniform. The scale is 1 on logits and logarithms; of a mean give the spread of units you would
not be surprised by. With `share` given it is not learned: 0 is independent areas, 1 the intrinsic
autoregression alone.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.csgraph import connected_components

from ldf import check
from ldf.special import Array
from ldf.structure.base import (
    Gamma,
    Structure,
    check_prior,
    check_scale,
    check_units,
    half_normal,
    normal,
    sample_log_half_normal,
    term_shape,
    tilt,
)


class Space(Structure):
    """A BYM2 term on the rate.

    Space(adjacency, prior)                     a symmetric matrix, not zero between neighbours
    Space(edges, prior, areas=50)               pairs of neighbours, among so many areas
    Space(adjacency, prior, area=area)          several units an area, or none: its number from 0
    """

    prior: Any  # λ0, one for all units
    root: np.ndarray  # areas × normals: u = root · z
    part: np.ndarray  # of each area: which level it has
    area: np.ndarray  # of each unit
    share: float | None
    scale: float
    shape: tuple[int, ...] = eqx.field(static=True)  # of one area's term

    def __init__(
        self,
        graph: Any,
        prior: Any,
        *,
        areas: int | None = None,
        area: Any = None,
        share: float | None = None,
        scale: float = 1.0,
    ) -> None:
        weight = _adjacency(graph) if areas is None else _from_edges(graph, areas)
        self.prior, self.shape, self.scale = (
            check_prior(prior),
            term_shape(prior),
            check_scale(scale),
        )
        self.root, self.part = autoregression(weight)
        self.area = np.arange(len(weight)) if area is None else _areas(area, len(weight))
        self.share = None if share is None else float(check.probability("share", share))

    def at(self, area: Any) -> Space:
        """The same areas and γ, for other units."""
        return eqx.tree_at(lambda of: of.area, self, _areas(area, len(self.part)))

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        areas, normals = self.root.shape
        return {
            "level": (self.part.max() + 1, *self.shape),
            "u": (normals, *self.shape),
            "v": (areas, *self.shape),
        }

    def sample_prior(self, key: Array) -> Gamma:
        keys = iter(jax.random.split(key, 5))
        gamma = {n: jax.random.normal(next(keys), shape) for n, shape in self._shapes.items()}
        gamma["level"] = self.scale * gamma["level"]
        gamma["log_spread"] = sample_log_half_normal(next(keys), (), self.scale)
        if self.share is None:
            gamma["logit_share"] = jax.random.logistic(next(keys), ())
        return gamma

    def log_prior(self, gamma: Gamma) -> Array:
        total = normal(gamma["level"], self.scale) + normal(gamma["u"]) + normal(gamma["v"])
        total = total + half_normal(gamma["log_spread"], self.scale)
        if self.share is None:  # the logit of a uniform is logistic
            logit = gamma["logit_share"]
            total = total + jax.nn.log_sigmoid(logit) + jax.nn.log_sigmoid(-logit)
        return total

    def terms(self, gamma: Gamma) -> Array:
        """Of each area."""
        if self.share is None:
            logit = gamma["logit_share"]
            own, spatial = (jnp.exp(jax.nn.log_sigmoid(x) / 2) for x in (-logit, logit))
        else:
            own, spatial = np.sqrt(1 - self.share), np.sqrt(self.share)
        both = own * gamma["v"] + spatial * jnp.tensordot(self.root, gamma["u"], 1)
        return gamma["level"][self.part] + jnp.exp(gamma["log_spread"]) * both

    def natural(self, gamma: Gamma, pseudo: Any) -> Any:
        check_units(pseudo, len(self.area))
        return tilt(self.prior + pseudo, self.terms(gamma)[self.area])

    def quantities(self, gamma: Gamma) -> dict[str, Array]:
        found = {
            "level": gamma["level"],
            "spread": jnp.exp(gamma["log_spread"]),
            "area": self.terms(gamma),
        }
        if self.share is None:
            found["share"] = jax.nn.sigmoid(gamma["logit_share"])
        return found


def autoregression(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A root of the scaled covariance of u, areas × normals, and the part of each area.

    Of each part, the covariance is the generalised inverse of its Laplacian, divided by the
    geometric mean of its diagonal (Riebler et al. 2016; by parts, Freni-Sterrantino et al. 2018).
    """
    number, label = connected_components(weight > 0, directed=False)
    columns, part, parts = [], np.full(len(weight), -1), 0
    for members in (np.flatnonzero(label == c) for c in range(number)):
        if len(members) == 1:
            block = np.ones((1, 1))
        else:
            inner = weight[np.ix_(members, members)]
            values, vectors = np.linalg.eigh(np.diag(inner.sum(1)) - inner)
            block = vectors[:, 1:] / np.sqrt(values[1:])  # the first is the constant, at zero
            block = block / np.exp(np.log((block**2).sum(1)).mean() / 2)
            part[members], parts = parts, parts + 1
        column = np.zeros((len(weight), block.shape[1]))
        column[members] = block
        columns.append(column)
    return np.concatenate(columns, 1), np.where(part < 0, parts, part)


def _adjacency(graph: Any) -> np.ndarray:
    dense = graph.toarray() if hasattr(graph, "toarray") else graph
    weight = np.asarray(check.nonnegative("adjacency", dense))
    if weight.ndim != 2 or weight.shape[0] != weight.shape[1] or not weight.size:
        found = " × ".join(map(str, weight.shape)) or "a single number"
        remedy = "give a square matrix, or pairs of neighbours and areas="
        raise check.DataError("adjacency", None, None, f"is {found}", remedy)
    if (wrong := np.argwhere(weight != weight.T)).size:
        i, j = (int(k) for k in wrong[0])
        back = check.shown(weight[j, i])
        problem = f"is its entry for area {j}, whose own for area {i} is {back}"
        raise check.DataError("adjacency", i, weight[i, j], problem, "give a symmetric matrix")
    remedy = "an area is not its own neighbour: set the diagonal to zero"
    check.refuse(
        "adjacency", weight.diagonal(), weight.diagonal() > 0, "is on the diagonal", remedy
    )
    return weight


def _from_edges(edges: Any, areas: int) -> np.ndarray:
    pairs = np.asarray(edges).reshape(-1, 2) if np.size(edges) else np.zeros((0, 2), int)
    first, second = (_areas(pairs[:, i], areas, "edges") for i in (0, 1))
    remedy = "an area is not its own neighbour: leave the pair out"
    check.refuse("edges", first, first == second, "is paired with itself", remedy)
    weight = np.zeros((areas, areas))
    weight[first, second] = weight[second, first] = 1.0
    return weight


def _areas(values: Any, areas: int, column: str = "area") -> np.ndarray:
    """Whole numbers from 0 that name areas."""
    number = np.asarray(check.counts(column, values, missing="give every unit its area"))
    remedy = f"there are {areas} areas: number them from 0 to {areas - 1}"
    check.refuse(column, values, number >= areas, "is not an area", remedy)
    return number.astype(int)
