"""What every distribution here can be asked, and what follows once for all of them.

A distribution holds the parameters of M units and answers for all of them at once. `Continuous`
and `Integer` ones give density, distribution function and its inverse; the minimum-width interval,
exceedance and standard deviation follow. Vectors answer through their `marginal`s.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.distributions import search
from ldf.special.arrays import Array, floats, namespace


def call_on_host(function: Callable[..., Any], results: int, shape: Any, *trees: Any) -> Any:
    """Call a function of NumPy-valued objects; under JAX, back on the host in float64."""
    leaves, tree = jax.tree.flatten(trees)
    if namespace(*leaves) is np:
        return function(*trees)
    dtype = next(leaf.dtype for leaf in leaves if isinstance(leaf, jax.Array))
    struct = jax.ShapeDtypeStruct(shape, dtype)

    def host(*arrays: Any) -> Any:
        found = function(*jax.tree.unflatten(tree, [np.asarray(a, np.float64) for a in arrays]))
        return jax.tree.map(lambda x: np.asarray(x, dtype), found)

    wanted = struct if results == 1 else (struct,) * results
    return jax.pure_callback(host, wanted, *leaves, vmap_method="sequential")


def on_host(method: Callable[..., Any]) -> Callable[..., Any]:
    """For methods of one elementwise argument that are written for NumPy."""
    column = "q" if method.__name__ == "quantile" else "value"

    @wraps(method)
    def call(self: Any, value: Any) -> Any:
        value = check.numbers(column, value, infinite=True)
        check.fits(column, value, self.shape)
        shape = np.broadcast_shapes(self.shape, np.shape(value))
        return call_on_host(method, 1, shape, self, value)

    return call


def of_units(value: Array, units: tuple[int, ...], event: int = 0) -> Array:
    """A value for each of the units; its last axes, as many as `event`, are the value's own."""
    own = np.shape(value)[np.ndim(value) - event :]
    return namespace(value).broadcast_to(value, (*units, *own))


class Distribution(eqx.Module):
    """Of something about each of M units."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The units' axes."""

    @abstractmethod
    def mean(self) -> Array: ...

    @abstractmethod
    def sd(self) -> Array: ...

    @abstractmethod
    def sample(self, draws: int, seed: Any) -> Array:
        """Draws × units. `seed` is a whole number, or a JAX key for JAX arrays."""


class Univariate(Distribution):
    """Of one number a unit."""

    @abstractmethod
    def variance(self) -> Array: ...

    @abstractmethod
    def mode(self) -> Array:
        """Where the density or mass is highest; NaN where no single place is."""

    @abstractmethod
    def log_prob(self, value: Any, /) -> Array:
        """The logarithm of the density or mass."""

    @abstractmethod
    def cdf(self, value: Any, /) -> Array:
        """P(at most value)."""

    @abstractmethod
    def quantile(self, q: Any) -> Array:
        """The smallest value with P(at most it) >= q."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Self:
        """The distributions of some units."""

    def sd(self) -> Array:
        xp, (variance,) = floats(self.variance())
        return xp.sqrt(variance)

    def exceeds(self, value: Any, /) -> Array:
        """P(more than value)."""
        return 1 - self.cdf(value)

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        """(lower, upper): the narrowest interval that holds at least this mass."""
        check_mass(mass)
        return call_on_host(lambda of: of._narrowest(mass), 2, self.shape, self)

    @abstractmethod
    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]: ...


class Multivariate(Distribution):
    """Of a vector a unit. What is asked of one number is answered by the marginals: all of them
    with components on the last axis, or one by `marginal(component)`."""

    @abstractmethod
    def marginal(self, component: int | None = None) -> Univariate: ...

    def sd(self) -> Array:
        return self.marginal().sd()

    def cdf(self, value: Any) -> Array:
        return self.marginal().cdf(value)

    def exceeds(self, value: Any) -> Array:
        return self.marginal().exceeds(value)

    def quantile(self, q: Any) -> Array:
        return self.marginal().quantile(q)

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        return self.marginal().interval(mass)


class Continuous(Univariate):
    """With a density that has one peak, is monotone, or is high at both ends only."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]: ...

    @abstractmethod
    def slope(self, value: Array) -> Array:
        """The derivative of the log density."""

    @abstractmethod
    def entropy(self) -> Array:
        """In nats."""

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        return search.narrowest_interval(self, mass)


class Integer(Univariate):
    """Of whole numbers from 0 on, with a mass that has one peak or is high at both ends only."""

    @property
    @abstractmethod
    def top(self) -> Array:
        """The largest possible value; infinity if there is none."""

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        return search.integer_quantile(self, q)

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        return search.narrowest_set(self, mass)


class Tabled(Univariate):
    """Of whole numbers whose distribution functions stand in tables: mixtures have tables of their
    own."""

    @property
    def mixes(self) -> bool:
        """Whether components × units are mixed by tables."""
        return True

    @abstractmethod
    def by_table(self, weights: np.ndarray, ask: Callable[[Any, np.ndarray], Any]) -> np.ndarray:
        """What a function of (table, its units) says of components × units, mixed by weights."""


def check_mass(mass: Any) -> None:
    held = check.numbers("mass", mass)
    if np.ndim(held) or not 0 < float(held) < 1:
        remedy = "ask for 0.9, say, for 90 %"
        raise check.DataError("mass", None, mass, "is not between 0 and 1", remedy)


def check_q(q: Any, units: tuple[int, ...] = ()) -> None:
    levels = check.numbers("q", q, units=units)
    if not check.is_traced(levels):
        host = np.asarray(levels)
        remedy = "a quantile is asked for at a probability between 0 and 1"
        check.refuse("q", host, (host < 0) | (host > 1), "is not between 0 and 1", remedy)


def check_component(component: Any, size: int) -> None:
    if not isinstance(component, int | np.integer) or not -size <= component < size:
        remedy = f"choose a component from 0 to {size - 1}"
        raise check.DataError("component", None, component, "is not there", remedy)
