"""Primary data whose likelihood is known only as log p(y | θ), under a conjugate family's prior.

Auxiliary data still add: θ_i ~ π(λ0 + T_x). Primary data do not, since there is no T_y; they come
in through their likelihood, by quadrature over θ (see `distributions.quadrature`):

    p(y)  =  ∫ π(θ; λ) p(y | θ) dθ,        p(θ | y)  ∝  π(θ; λ) p(y | θ)

So what is known after data is no statistic but `Observed`: λ, and the data themselves. A family
says how its columns are checked, and its likelihood; the rest follows here.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.distributions import OnNodes
from ldf.distributions.on_nodes import panels
from ldf.distributions.quadrature import LINES, grid, log_integral
from ldf.families.base import Family
from ldf.families.observed import Observed
from ldf.special import Array, floats, namespace

BLOCK, SMALL = 512, 64  # units integrated for at once, if there are many, and if not


class ByQuadrature(Family):
    """A likelihood of a scalar θ, which has a Beta, a Gamma or a Gaussian before the data."""

    @abstractmethod
    def checked(self, *args: Any, **columns: Any) -> dict[str, Array]:
        """The columns as arrays of numbers, by the words of `log_mass`."""

    @abstractmethod
    def log_mass(self, theta: Array, rest: Array, y: dict[str, Array]) -> Array:
        """log p(y | θ) − log_most(y) of checked columns, in JAX. `rest` is 1 − θ with all its
        digits."""

    def log_most(self, y: dict[str, Array]) -> Any:
        """A part that no θ changes: the greatest log p(y | θ), if it is known."""
        return 0.0

    def form(self) -> ByQuadrature:
        """The family, less what is in the checked columns anyway: one program serves all values."""
        return self

    def log_base(self, *args: Any, **columns: Any) -> Array:
        raise TypeError(f"{type(self).__name__} is not conjugate: it has no base measure")

    def log_likelihood(self, theta: Any, *args: Any, **columns: Any) -> Array:
        y = self.checked(*args, **columns)
        theta = check.numbers("theta", theta)
        return answer(lambda t, y: self.log_most(y) + self.log_mass(t, 1 - t, y), theta, y)

    def log_predictive(self, natural: Any, *args: Any, **columns: Any) -> Array:
        y = self.checked(*args, **columns)
        check.fits(self.columns[0], next(iter(y.values())), self.own(natural).shape)
        return by_rows(_log_integral, self, natural, y, np.ones((), bool))

    def after(self, natural: Any, y: dict[str, Any], seen: np.ndarray) -> Observed:
        return Observed.of(self.own(natural), y, seen, self.checked)

    def posterior(self, natural: Any) -> Any:
        """The distribution of θ: named where no data came in that do not add, else on nodes."""
        if not isinstance(natural, Observed):
            return super().posterior(natural)
        return self.on_nodes(natural)

    def on_nodes(self, natural: Any) -> OnNodes:
        """The distribution of θ by quadrature, also where it has a name."""
        if not isinstance(natural, Observed):
            natural = Observed(self.own(natural), {}, np.zeros((), bool))
        found = by_rows(_panels, self, natural.natural, natural.y, natural.seen)
        return OnNodes(LINES[self.natural], found)


# --- all units at once --------------------------------------------------------------------------


def _likelihood(family: ByQuadrature, y: dict[str, Array], seen: Array) -> Any:
    wide = {word: jnp.asarray(values)[..., None] for word, values in y.items()}

    def log_likelihood(theta: Array, rest: Array) -> Array:
        if not wide:
            return jnp.zeros_like(theta)
        return jnp.where(seen[..., None], family.log_mass(theta, rest, wide), 0.0)

    return log_likelihood


def _grid(family: ByQuadrature, natural: Any, y: Any, seen: Array) -> Any:
    return grid(LINES[family.natural](natural), _likelihood(family, y, seen))


def _log_integral(family: ByQuadrature, natural: Any, y: Any, seen: Array, of: Any) -> Array:
    found = log_integral(LINES[family.natural](natural), _likelihood(family, y, seen), of)
    return family.log_most(y) + found


def _panels(family: ByQuadrature, natural: Any, y: Any, seen: Array, of: Any) -> Any:
    return panels(LINES[family.natural](natural), _likelihood(family, y, seen), of)


@eqx.filter_jit
def _compiled(function: Any, family: Any, *of: Any) -> Any:
    return function(family, *of)


def by_rows(function: Any, of: ByQuadrature, natural: Any, y: Any, seen: Any) -> Any:
    """A function of each unit's λ, data and grid: traced as it is under JAX; from NumPy in float64,
    some rows at a time, all as many so that it is compiled once."""
    family, leaves = of.form(), jax.tree.leaves((natural, y))
    shape = np.broadcast_shapes(*(np.shape(leaf) for leaf in (*leaves, seen)))
    if namespace(*leaves) is not np:
        _, leaves = floats(*leaves)
        whole = [jnp.broadcast_to(leaf, shape) for leaf in leaves]
        natural, y = jax.tree.unflatten(jax.tree.structure((natural, y)), whole)
        rows = (natural, y, jnp.broadcast_to(seen, shape))
        return _compiled(function, family, *rows, _compiled(_grid, family, *rows))
    proper = np.isfinite(family.latent.log_partition(natural))
    check.exists("predictive", proper, "the prior is improper", "give a proper one")
    flat = jax.tree.map(lambda leaf: np.broadcast_to(leaf, shape).reshape(-1), (natural, y, seen))
    number = int(np.prod(shape))
    size = BLOCK if number > SMALL else SMALL
    found = []
    with jax.enable_x64(True):
        for i in range(0, max(number, 1), size):
            some = jax.tree.map(lambda leaf: _full(leaf[i : i + size], size), flat)  # noqa: B023
            each = _compiled(function, family, *some, _compiled(_grid, family, *some))
            found.append(jax.tree.map(np.asarray, each))
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *found)
    return jax.tree.map(lambda leaf: leaf.reshape(shape + leaf.shape[1:]), joined)


def _full(values: np.ndarray, size: int) -> Array:
    """As many rows, the first one repeated; one of an odd number where there is none."""
    first = values[:1] if len(values) else np.ones(1, values.dtype)
    padded = np.concatenate([values, np.repeat(first, size - len(values))])
    return jnp.asarray(padded, bool if values.dtype == bool else jnp.float64)


def answer(function: Any, theta: Any, y: dict[str, Any]) -> Array:
    """A function written for JAX; from NumPy, in float64."""
    if namespace(theta, *y.values()) is not np:
        return function(theta, y)
    with jax.enable_x64(True):
        double = jax.tree.map(lambda value: jnp.asarray(value, jnp.float64), (theta, y))
        return np.asarray(function(*double))
