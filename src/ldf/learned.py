"""What was learned, and what it says of any row: pseudo-observations, member by member.

A row that was not learned from is answered for by every fit of a member: its pseudo-observations
are the mean of theirs. A training row is answered for by the fit that has not seen it, since its
primary data would otherwise be used twice: once in φ, once in T_y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from ldf.distributions import PointMass, mixture
from ldf.mappings import Weights
from ldf.model import Ground, Model
from ldf.preprocess import Preprocess
from ldf.special import Array

BLOCK = 4096  # rows answered for at once


class Trained(NamedTuple):
    """One member on one training set."""

    model: Model
    preprocess: Preprocess
    ground: Ground
    weights: Weights  # leading axis: the fits that answer for new rows together
    held: Weights  # leading axis: parts; the fits that have not seen them
    score: float  # mean log-predictive of the training rows, out of fold

    def pseudo_observations(self, x: np.ndarray, part: np.ndarray | None = None) -> Any:
        """T_x of each row; `part` is where it was held out in learning, −1 if nowhere."""
        part = np.full(len(x), -1) if part is None else part
        z = self.preprocess.apply(x)
        pieces = [slice(i, i + BLOCK) for i in range(0, max(len(z), 1), BLOCK)]
        found = [self._piece(z[piece], part[piece]) for piece in pieces]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)

    def _piece(self, z: np.ndarray, part: np.ndarray) -> Any:
        rows = len(z)
        more = max(16, 1 << max(rows - 1, 0).bit_length()) - rows  # few shapes, to compile rarely
        z, part = np.pad(z, ((0, more), (0, 0))), np.pad(part, (0, more))
        with jax.enable_x64(True):
            new = _mean_statistic(self.model, self.weights, self.ground, jnp.asarray(z))
            if (part >= 0).any():
                old = _own_statistic(
                    self.model, self.held, self.ground, jnp.asarray(z), jnp.asarray(part)
                )
                new = jax.tree.map(lambda a, b: _choose(part >= 0, b, a), new, old)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:rows], new)


def _choose(which: np.ndarray, one: Any, other: Any) -> np.ndarray:
    one, other = np.asarray(one), np.asarray(other)
    return np.where(which.reshape(which.shape + (1,) * (one.ndim - 1)), one, other)


@eqx.filter_jit
def _mean_statistic(model: Model, weights: Weights, ground: Ground, z: Array) -> Any:
    one = lambda w: model.pseudo_observations(w, ground, z)  # noqa: E731
    every = jax.vmap(one)(_double(weights))
    return jax.tree.map(lambda leaf: leaf.mean(0), every)


@eqx.filter_jit
def _own_statistic(model: Model, held: Weights, ground: Ground, z: Array, part: Array) -> Any:
    def one(row: Array, j: Array) -> Any:
        mine = jax.tree.map(lambda leaf: leaf[jnp.maximum(j, 0)], _double(held))
        return model.pseudo_observations(mine, ground, row[None])

    return jax.tree.map(lambda leaf: leaf[:, 0], jax.vmap(one)(z, part))


def _double(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


@dataclass(frozen=True)
class Learned:
    """What was learned from one training set."""

    trained: tuple[Trained, ...]
    share: np.ndarray  # of each member in the mixture
    part: (
        np.ndarray
    )  # of each row of the data: where it was held out; −1 if it was not learned from
    status: str

    @property
    def certain(self) -> bool:
        return self.trained[0].model.certain

    def prior(self) -> Any:
        """λ0 of each member: members × 1."""
        return _stacked([t.ground.prior for t in self.trained])[:, None]

    @property
    def family(self) -> Any:
        return self.trained[0].model.family

    def pseudo_observations(self, x: np.ndarray, part: np.ndarray | None = None) -> Any:
        """T_x of each row by each member: members × rows."""
        return _stacked([t.pseudo_observations(x, part) for t in self.trained])

    def posterior(self, natural: Any, share: Any = None) -> Any:
        """Of θ, when members' natural parameters are these: members × rows."""
        if self.certain:
            return PointMass(np.asarray(self.family.latent(natural[0]).mean()))
        return mixture(self.share if share is None else share, self.family.posterior(natural))

    def predictive(self, natural: Any, design: dict[str, Any], share: Any = None) -> Any:
        """Of new primary data."""
        if self.certain:
            return self.family.likelihood(self.family.latent(natural[0]).mean(), **design)
        return mixture(
            self.share if share is None else share, self.family.predictive(natural, **design)
        )

    def log_score(self, natural: Any, y: dict[str, Any], share: Any = None) -> np.ndarray:
        """The log-predictive of primary data: of the mixture, not of its members."""
        if self.certain:
            theta = self.family.latent(natural[0]).mean()
            return np.asarray(self.family.log_likelihood(theta, **y))
        share = self.share[:, None] if share is None else share
        each = np.asarray(self.family.log_predictive(natural, **y))
        return np.asarray(logsumexp(each, axis=0, b=share))

    def updated(self, natural: Any, y: dict[str, Any]) -> np.ndarray:
        """The members' shares after primary data that each expects otherwise: members × rows."""
        evidence = np.asarray(self.family.log_predictive(natural, **y))
        joint = np.log(self.share)[:, None] + evidence
        return np.exp(joint - logsumexp(joint, 0))


def _stacked(statistics: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *statistics)
