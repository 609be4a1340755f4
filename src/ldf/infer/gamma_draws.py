"""Draws of γ, and what they say of each unit.

Given a draw γ_s a unit's natural parameter is natural_i(γ_s, T_x) + T_y(y_i), so that θ_i has a
mixture over draws, and so have new primary data. Of several units together the draws are joint:
within one, all units listen to the same γ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.distributions import mixture
from ldf.families.base import Family
from ldf.special import Array, check_draws
from ldf.structure import Structure, joint_marginal
from ldf.structure.base import check_units

COMPONENTS = 200  # of mixtures over draws
BATCH = 64  # draws looked at together
FEW, FAR = 100, 1.01  # effective draws and R-hat that are worth a warning


def double(tree: Any) -> Any:
    """In JAX's float64, of what is a number."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def columns_of(y: dict[str, Any], rows: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Primary data as arrays: of some rows."""
    found = {name: np.asarray(values) for name, values in y.items() if values is not None}
    return found if rows is None else {name: values[rows] for name, values in found.items()}


def statistic_of(family: Family, y: dict[str, Any], seen: np.ndarray) -> Any:
    """T_y of all units: zero where there are no primary data. Validated where there are."""
    rows = np.flatnonzero(seen)
    if not len(rows):
        remedy = "give primary data of one unit or more"
        raise check.DataError("seen", None, None, "has no unit with primary data", remedy)
    some = family.statistic(**columns_of(y, rows))

    def everywhere(value: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(seen), *value.shape[1:]))
        whole[rows] = value
        return whole

    return jax.tree.map(everywhere, some.spread((len(rows),)))


def of_units(family: Family, pseudo: Any, y: dict[str, Any], seen: Any) -> tuple[Any, Any, Any]:
    """T_x and T_y of each unit, and which of them have primary data."""
    seen = check_seen(y, seen)
    check_units(pseudo, len(seen))
    return pseudo.spread(seen.shape), statistic_of(family, y, seen), seen


def check_seen(y: dict[str, Any], seen: Any) -> np.ndarray:
    """Which units have primary data: all, if it is not said."""
    size = len(next(iter(columns_of(y).values())))
    found = np.ones(size, bool) if seen is None else np.asarray(seen)
    if found.dtype != bool or found.shape != (size,):
        remedy = "say True or False for each unit"
        raise check.DataError("seen", None, None, f"does not fit {size} units", remedy)
    return found


class Sampled(ABC):
    """Chains of draws, and whether they agree."""

    diverging: np.ndarray  # chains × draws × …

    @property
    @abstractmethod
    def what(self) -> str:
        """What was drawn."""

    @cached_property
    @abstractmethod
    def quantities(self) -> dict[str, np.ndarray]:
        """What it means, by name: chains × draws × …"""

    @property
    def shape(self) -> tuple[int, ...]:
        """Chains × draws."""
        return self.diverging.shape[:2]

    @cached_property
    def diagnostics(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each quantity, R-hat and the effective number of draws of each of its elements."""
        return {name: (r_hat(x), effective_draws(x)) for name, x in self.quantities.items()}

    @property
    def status(self) -> str:
        """One sentence or two: whether the draws can be trusted, and what to do if not."""
        chains, draws = self.shape
        worst = max(self.diagnostics, key=lambda name: self.diagnostics[name][0].max(initial=1.0))
        far = float(self.diagnostics[worst][0].max(initial=1.0))
        fewest = min(self.diagnostics, key=lambda n: self.diagnostics[n][1].min(initial=np.inf))
        few = float(self.diagnostics[fewest][1].min(initial=np.inf))
        said = f"{chains} chains of {draws} draws"
        said += f"; R-hat at most {far:.3f} ({worst}), at least {few:.0f} effective ({fewest})."
        if far > FAR or few < FEW:
            said += " The chains do not agree yet: give more warmup and draws."
        if self.diverging.any():
            said += (
                f" {int(self.diverging.sum())} draws diverged, so some of {self.what} may be "
                "missed: raise the target acceptance, or give a tighter prior."
            )
        return said

    def _to_arviz(self, found: dict[str, np.ndarray]) -> Any:
        try:
            import arviz
        except ImportError:
            raise ImportError("ArviZ is not installed: pip install 'ldf[arviz]'") from None
        return arviz.from_dict(posterior=found, sample_stats={"diverging": self.diverging})


@dataclass(frozen=True, eq=False)
class Draws(Sampled):
    """Draws of γ given the primary data of the units that were seen."""

    structure: Structure
    family: Family
    pseudo: Any  # T_x of each unit
    primary: Any  # T_y of each unit, zero where nothing was seen
    gamma: Any  # arrays of chains × draws × …
    diverging: np.ndarray  # chains × draws

    # --- what γ is ------------------------------------------------------------------------------

    @property
    def what(self) -> str:
        return "γ"

    def _flat(self, count: int | None = None) -> Any:
        """γ of all draws in one row, or of so many of them, evenly spaced over all chains."""
        total = int(np.prod(self.shape))
        some = np.arange(total) if count is None else _spaced(total, count)
        return jax.tree.map(lambda leaf: leaf.reshape(total, *leaf.shape[2:])[some], self.gamma)

    @cached_property
    def quantities(self) -> dict[str, np.ndarray]:
        """What γ means in the structure's words: chains × draws × …"""
        with jax.enable_x64(True):
            found = jax.jit(jax.vmap(jax.vmap(self.structure.quantities)))(double(self.gamma))
        return {name: np.asarray(value) for name, value in found.items()}

    # --- what it says of units ------------------------------------------------------------------

    def elsewhere(self, structure: Structure, pseudo: Any) -> Draws:
        """The same draws of γ, for other units, none of which was seen."""
        return replace(self, structure=structure, pseudo=pseudo, primary=pseudo.zero())

    def natural(self, count: int | None = None) -> Any:
        """λ after all data: draws × units."""
        with jax.enable_x64(True):
            before = _naturals(self.structure, double(self._flat(count)), double(self.pseudo))
        return jax.tree.map(np.asarray, before) + self.primary[None]

    def posterior(self, count: int = COMPONENTS) -> Any:
        """Of each unit's θ: a mixture over so many draws of γ."""
        return _mixed(self.family.posterior(self.natural(count)))

    def predictive(self, count: int = COMPONENTS, **design: Any) -> Any:
        """Of each unit's new primary data: a mixture over so many draws of γ."""
        return _mixed(self.family.predictive(self.natural(count), **design))

    def theta(self, seed: int, count: int | None = None) -> np.ndarray:
        """Draws × units of θ, jointly: one with each draw of γ."""
        check_draws(1, seed)
        return np.asarray(self.family.posterior(self.natural(count)).sample(1, seed))[0]

    def new_data(self, seed: int, count: int | None = None, **design: Any) -> np.ndarray:
        """Draws × units of new primary data, jointly."""
        first, second = np.random.SeedSequence(seed).spawn(2)
        theta = np.asarray(self.family.posterior(self.natural(count)).sample(1, first))[0]
        return np.asarray(self.family.likelihood(theta, **design).sample(1, second))[0]

    def log_predictive(self, **y: Any) -> np.ndarray:
        """log p(new y_i | all data) of each unit: the predictive is averaged over γ."""
        each = self._log_p(columns_of(y))
        top = each.max(0)
        return top + np.log(np.exp(each - top).mean(0))

    def joint_log_predictive(self, rows: Any = None, **y: Any) -> float:
        """log p(new y of all these units | all data), one γ for all of them."""
        each = self._log_p(columns_of(y))
        return float(joint_marginal(each if rows is None else each[:, rows]).value)

    def _log_p(self, y: dict[str, np.ndarray]) -> np.ndarray:
        """log p(new y_i | γ_s, all data): draws × units."""
        self.family.statistic(**y)  # refuses what is wrong
        with jax.enable_x64(True):
            return np.asarray(
                _log_ps(
                    self.structure,
                    self.family,
                    *double((self._flat(), self.pseudo, self.primary, y)),
                )
            )

    def to_arviz(self, seed: int | None = None) -> Any:
        """γ in the structure's words as ArviZ data; with a seed, θ of each unit as well. Needs
        `pip install 'ldf[arviz]'`."""
        found = dict(self.quantities)
        if seed is not None:
            theta = self.theta(seed)
            found["theta"] = theta.reshape(*self.shape, *theta.shape[1:])
        return self._to_arviz(found)


def _spaced(total: int, count: int) -> np.ndarray:
    check_draws(count, 0)
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int))


def _mixed(components: Any) -> Any:
    draws = components.shape[0]
    return mixture(np.full(draws, 1 / draws), components)


@eqx.filter_jit
def _naturals(structure: Structure, gammas: Any, pseudo: Any) -> Any:
    return jax.lax.map(lambda g: structure.natural(g, pseudo), gammas, batch_size=BATCH)


@eqx.filter_jit
def _log_ps(
    structure: Structure, family: Family, gammas: Any, pseudo: Any, primary: Any, y: Any
) -> Array:
    def one(gamma: Any) -> Array:
        return family.log_predictive(structure.natural(gamma, pseudo) + primary, **y)

    return jax.lax.map(one, gammas, batch_size=BATCH)


# --- whether chains agree -------------------------------------------------------------------------


def _halves(chains: np.ndarray) -> np.ndarray:
    """Each chain as two, so that one that drifts disagrees with itself."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def _variances(split: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Within chains, and of all draws."""
    draws = split.shape[1]
    within = split.var(1, ddof=1).mean(0)
    return within, within * (draws - 1) / draws + split.mean(1).var(0, ddof=1)


def r_hat(chains: np.ndarray) -> np.ndarray:
    """Split R-hat of chains × draws × …: near 1 if chains agree."""
    within, whole = _variances(_halves(chains))
    return np.sqrt(np.divide(whole, within, out=np.ones_like(whole), where=within > 0))


def effective_draws(chains: np.ndarray) -> np.ndarray:
    """How many independent draws would give the mean as well, by Geyer's monotone sequence."""
    split = _halves(chains)
    many, draws = split.shape[:2]
    within, whole = _variances(split)
    size = 2 * draws  # padded, so that the transform does not wrap around
    wave = np.fft.rfft(split - split.mean(1, keepdims=True), size, axis=1)
    autocovariance = np.fft.irfft(np.abs(wave) ** 2, size, axis=1)[:, :draws].mean(0) / draws
    scale = np.where(whole > 0, whole, 1.0)
    correlation = 1 - (within - autocovariance) / scale
    correlation[0] = 1.0
    pairs = correlation[: draws // 2 * 2].reshape(draws // 2, 2, *split.shape[2:])
    positive = np.logical_and.accumulate(pairs.sum(1) > 0, axis=0)
    steady = np.minimum.accumulate(np.where(positive, pairs.sum(1), 0.0), axis=0)
    last = np.minimum(positive.sum(0), len(pairs) - 1)  # the first pair left out: half of it counts
    tail = np.maximum(np.take_along_axis(pairs[:, 0], last[None], 0)[0], 0.0)
    time = np.maximum(2 * steady.sum(0) + tail - 1, 1 / np.log10(many * draws))
    return np.where(whole > 0, many * draws / time, float(many * draws))
