"""What was learned, and what it says of any row: pseudo-observations, member by member.

A row that was not learned from is answered for by every fit of a member: its pseudo-observations
are the mean of theirs. A training row is answered for by the fit that has not seen it, since its
primary data would otherwise be used twice: once in φ, once in T_y.

Fits of a mixture of mappings have no mean: the first mapping of one need not be the first of
another. They answer side by side, all mappings of all fits being components of one mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from ldf import check
from ldf.distributions import PointMass, mixture
from ldf.mappings import Weights
from ldf.mixed import MixedModel
from ldf.model import Ground, Model
from ldf.preprocess import Blocks, Preprocess, Sourced
from ldf.special import Array

BLOCK = 4096  # rows answered for at once


class Said(NamedTuple):
    """What is said of rows, components × rows: one component a member, two where there is doubt, or
    one a mapping of each fit of a mixture."""

    natural: Any  # λ0 + T_x
    pseudo: Any  # T_x
    share: np.ndarray  # of each component

    def rows(self, at: Any) -> Said:
        """Of some rows."""
        return Said(self.natural[:, at], self.pseudo[:, at], self.share[:, at])

    def spread(self, rows: int) -> Said:
        """What is said of any row, said of so many."""
        size = (len(self.share), rows)
        share = np.broadcast_to(self.share, size)
        return Said(self.natural.spread(size), self.pseudo.spread(size), share)

    def with_components(self, number: int) -> Said:
        """The same by so many: the first again, which has no share then."""
        more = number - len(self.share)

        def again(leaf: np.ndarray) -> np.ndarray:
            return np.concatenate([leaf, np.repeat(leaf[:1], more, 0)])

        natural, pseudo = jax.tree.map(again, (self.natural, self.pseudo))
        return Said(natural, pseudo, np.pad(self.share, ((0, more), (0, 0))))

    def log_score(self, family: Any, y: dict[str, Any]) -> np.ndarray:
        """log Σ_k share_k p_k(y) of each row."""
        each = np.asarray(family.log_predictive(self.natural, **y))
        return np.asarray(logsumexp(each, axis=0, b=self.share))

    def mean(self) -> Any:
        """T_x over components, by their shares: for display, never for updating."""

        def mean(leaf: np.ndarray) -> np.ndarray:
            share = self.share.reshape(self.share.shape + (1,) * (leaf.ndim - 2))
            return (share * leaf).sum(0)

        return jax.tree.map(mean, self.pseudo)


class Correction(NamedTuple):
    """What makes a mixture of members as sure, and as far from the usual, as it should be.

    T_x counts so many `times` in a row, by the sources that it has (decision 28; of one table there
    is one subset of no sources). What it says, its location, is so many times (`stretch`) as far
    from that of all units, and shifted (`level`): decision 31. How many observations it is worth
    differs by more or less (`contrast`) from a `typical` number: decision 35. Nested classes have
    these of each split. And where that number is in `doubt`, each member says it twice, e^doubt
    times as sure and e^doubt times less: decision 37. Sources have `times` alone, since their terms
    would no longer add.
    """

    there: np.ndarray  # subsets × sources
    times: np.ndarray  # in rows that have just these: subsets × splits
    stretch: np.ndarray  # one a split
    level: np.ndarray  # on the line of locations; one number, or one each
    contrast: np.ndarray  # one a split
    typical: np.ndarray  # one a split
    doubt: np.ndarray  # one

    @classmethod
    def of_all(
        cls,
        times: Any,
        stretch: Any = 1.0,
        level: Any = 0.0,
        contrast: Any = 1.0,
        typical: Any = 1.0,
        doubt: Any = 0.0,
        sources: int = 0,
    ) -> Correction:
        """The same in all rows; one number for all splits, or one each."""
        there, by_split = np.ones((1, sources), bool), (times, stretch, contrast, typical)
        times, stretch, contrast, typical = (np.atleast_1d(np.float64(v)) for v in by_split)
        level, doubt = np.asarray(level, float), np.asarray(doubt, float)
        return cls(there, times[None], stretch, level, contrast, typical, doubt)

    @property
    def often(self) -> tuple[float, ...]:
        """How often what is corrected counts: once, or in doubt more and less often."""
        return (float(np.exp(self.doubt)), float(np.exp(-self.doubt))) if self.doubt else (1.0,)

    def corrected(self, pseudo: Any, usual: Any, there: np.ndarray) -> Any:
        """T_x as it counts, of rows that have these sources, before any doubt."""
        often = self.times_in(there) * self._contrasted(pseudo)
        return self._moved(pseudo, usual).counted(often)

    def _contrasted(self, pseudo: Any) -> Any:
        """How often T_x counts beside other rows, by how many observations it is worth."""
        if (self.contrast == 1).all():
            return 1.0
        sizes = pseudo.sizes
        return np.where(sizes > 0, sizes / self.typical, 1.0) ** (self.contrast - 1)

    def _moved(self, pseudo: Any, usual: Any) -> Any:
        if (self.stretch == 1).all() and not self.level.any():
            return pseudo
        centre, said = np.asarray(usual.location), pseudo.location
        said = np.where(np.isnan(said), centre, said)  # no observations say nothing else
        return pseudo.moved(self.level + centre + self.stretch * (said - centre))

    def times_in(self, there: np.ndarray) -> np.ndarray:
        """In each row of rows × sources: rows × splits. A subset that is not known has the
        (geometric) mean of those that differ from it least."""
        every, which = np.unique(there, axis=0, return_inverse=True)
        apart = (every[:, None] != self.there).sum(-1)
        nearest = apart == apart.min(1, keepdims=True)
        times = np.exp(nearest @ np.log(self.times) / nearest.sum(1, keepdims=True))
        return times[which.reshape(-1)]


class Trained(NamedTuple):
    """One member on one training set."""

    model: Model
    preprocess: Preprocess | Blocks | Sourced
    ground: Ground
    weights: Weights  # leading axis: the fits that answer for new rows together
    held: Weights  # leading axis: parts; the fits that have not seen them
    score: float  # mean log-predictive of the training rows, out of fold

    def said(
        self, x: np.ndarray, part: np.ndarray | None = None, correction: Correction | None = None
    ) -> Said:
        """Of each row; `part` is where it was held out in learning, −1 if nowhere."""
        return self.said_of(self.preprocess.apply(x), part, correction)

    def said_of(
        self, z: np.ndarray, part: np.ndarray | None = None, correction: Correction | None = None
    ) -> Said:
        """The same of rows that are preprocessed already."""
        part = np.full(len(z), -1) if part is None else part
        pieces = [slice(i, i + BLOCK) for i in range(0, max(len(z), 1), BLOCK)]
        found = [self._piece(z[piece], part[piece]) for piece in pieces]
        pseudo, share = jax.tree.map(lambda *leaves: np.concatenate(leaves, 1), *found)
        said = Said(self.natural(pseudo, self.model.bare(z)), pseudo, share)
        return said if correction is None else self.corrected(said, z, correction)

    def corrected(self, said: Said, z: np.ndarray, correction: Correction) -> Said:
        """What is said of rows, as the mixture needs it."""
        usual = self.model.usual(self.ground)
        pseudo = correction.corrected(said.pseudo, usual, self.model.there(z))
        bare, share = self.model.bare(z), said.share / len(correction.often)
        each = [pseudo * often for often in correction.often]
        return _joined([Said(self.natural(own, bare), own, share) for own in each])

    def natural(self, pseudo: Any, bare: np.ndarray) -> Any:
        """λ0 + T_x, and what is known of rows that are bare of auxiliary data."""
        natural = self.ground.prior + pseudo
        if not bare.any():
            return natural
        alone = self.model.alone(self.ground).spread(pseudo.shape)
        return natural.where(~bare) + alone.where(bare)

    def without(self, part: int) -> Trained:
        """The fit that has not seen a part answers alone, for whatever rows; all, if it is −1."""
        if part < 0:
            return self
        return self._replace(weights=jax.tree.map(lambda leaf: leaf[part : part + 1], self.held))

    def _piece(self, z: np.ndarray, part: np.ndarray) -> tuple[Any, np.ndarray]:
        """T_x and the shares in it: components × rows."""
        rows = len(z)
        more = max(16, 1 << max(rows - 1, 0).bit_length()) - rows  # few shapes, to compile rarely
        z, part = np.pad(z, ((0, more), (0, 0))), np.pad(part, (0, more))
        mixed = isinstance(self.model, MixedModel)
        with jax.enable_x64(True):
            together = _by_all_fits if mixed else _by_their_mean
            found = together(self.model, self.weights, self.ground, jnp.asarray(z))
            found = jax.tree.map(np.array, found)
            if (part >= 0).any():
                own = _by_own_fit(
                    self.model, self.held, self.ground, jnp.asarray(z), jnp.asarray(part)
                )
                _put(found, own, np.flatnonzero(part >= 0))
        return jax.tree.map(lambda leaf: leaf[:, :rows], found)


def _put(found: tuple[Any, np.ndarray], own: Any, rows: np.ndarray) -> None:
    """Where a row's own fit answers, it has the first places, and the others no share."""
    found[1][:, rows] = 0.0
    for leaf, mine in zip(jax.tree.leaves(found), jax.tree.leaves(own), strict=True):
        leaf[: len(mine), rows] = np.asarray(mine)[:, rows]


@eqx.filter_jit
def _by_their_mean(model: Model, weights: Weights, ground: Ground, z: Array) -> Any:
    every = jax.vmap(lambda w: model.pseudo_observations(w, ground, z))(_double(weights))
    return jax.tree.map(lambda leaf: leaf.mean(0)[None], every), jnp.ones((1, len(z)))


@eqx.filter_jit
def _by_all_fits(model: Any, weights: Weights, ground: Ground, z: Array) -> Any:
    def one(w: Weights) -> Any:
        return model.pseudo_observations(w, ground, z), jnp.exp(model.log_shares(w, z))

    pseudo, share = jax.vmap(one)(_double(weights))
    flat = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    return jax.tree.map(flat, pseudo), flat(share / len(share))


@eqx.filter_jit
def _by_own_fit(model: Model, held: Weights, ground: Ground, z: Array, part: Array) -> Any:
    def one(w: Weights) -> Any:
        pseudo = model.pseudo_observations(w, ground, z)
        if isinstance(model, MixedModel):
            return pseudo, jnp.exp(model.log_shares(w, z))
        return jax.tree.map(lambda leaf: leaf[None], pseudo), jnp.ones((1, len(z)))

    # All fits answer for all rows, and a row takes its own: weights of its own would be a copy of
    # a whole mapping a row.
    every = jax.vmap(one)(_double(held))  # fits × components × rows
    own, rows = jnp.maximum(part, 0), jnp.arange(len(z))
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf[own, :, rows], 0, 1), every)


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
    correction: Correction  # of what members say, for their mixture

    @property
    def certain(self) -> bool:
        return self.trained[0].model.certain

    @property
    def family(self) -> Any:
        return self.trained[0].model.family

    def prior(self, bare: bool = True) -> Said:
        """What is known of a row without auxiliary data, or beside those it has: members × 1."""
        each = [t.model.alone(t.ground) if bare else t.ground.prior for t in self.trained]
        prior = _joined([own[None] for own in each])[:, None]
        return Said(prior, prior.zero(), self.share[:, None])

    def said(self, x: np.ndarray, part: np.ndarray | None = None) -> Said:
        """By all members together."""
        each = [t.said(x, part, self.correction) for t in self.trained]
        weighed = [
            own._replace(share=own.share * share)
            for own, share in zip(each, self.share, strict=True)
        ]
        return _joined(weighed)

    def only(self, source: int) -> Learned:
        """One source's part of what is said, beside the others: the parts add."""
        trained = (
            t._replace(model=replace(cast("Any", t.model), only=source)) for t in self.trained
        )
        return replace(self, trained=tuple(trained))

    def posterior(self, said: Said) -> Any:
        """Of θ."""
        if self.certain:
            return PointMass(np.asarray(self.family.latent(said.natural[0]).mean()))
        return mixture(said.share, self.family.posterior(said.natural))

    def predictive(self, said: Said, design: dict[str, Any], of: str | None = None) -> Any:
        """Of new primary data; of several sources, those `of` one."""
        source = self.family.source(of)
        if self.certain:
            return source.likelihood(source.latent(said.natural[0]).mean(), **design)
        return mixture(said.share, source.predictive(said.natural, **design))

    def log_score(self, said: Said, y: dict[str, Any]) -> np.ndarray:
        """The log-predictive of primary data: of the mixture, not of its components."""
        if self.certain:
            theta = self.family.latent(said.natural[0]).mean()
            return np.asarray(self.family.log_likelihood(theta, **y))
        return said.log_score(self.family, y)

    def updated(self, said: Said, y: dict[str, Any], seen: np.ndarray | None = None) -> Said:
        """After the primary data of the rows that have some (all, if it is not said), which each
        component expects otherwise: those that expected them gain share."""
        seen = np.ones(said.share.shape[1], bool) if seen is None else seen
        if self.certain:
            remedy = "ask for given='auxiliary', or fit a model with dispersion"
            raise check.DataError("given", None, None, "cannot update a known θ", remedy)
        before, own = said.rows(seen), {name: values[seen] for name, values in y.items()}
        evidence = np.asarray(self.family.log_predictive(before.natural, **own))
        share = np.array(said.share)
        share[:, seen] = before.share * np.exp(evidence - logsumexp(evidence, 0, b=before.share))
        return said._replace(natural=self.family.after(said.natural, y, seen), share=share)


def _joined(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *trees)
