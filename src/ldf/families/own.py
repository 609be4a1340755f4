"""A likelihood of one's own: only log p(y | θ) is given, and a family with the prior of θ.

    def log_likelihood(theta, count, exposure):   # in jax.numpy, elementwise
        return ...

    family = ldf.NonConjugate(ldf.Poisson(), log_likelihood)

Of a scalar θ all is by quadrature. Of a vector it is by importance sampling: θ is drawn from its
prior, and draws count by their likelihood. The same random numbers serve every call, so that
learning sees a smooth function. How many draws are left of it is to be looked at.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.distributions import Tabulated
from ldf.distributions.quadrature import LINES
from ldf.distributions.tabulated import tabulated
from ldf.distributions.weighted import WeightedDraws
from ldf.families.base import Family
from ldf.families.nonconjugate import ByQuadrature, answer
from ldf.families.observed import Observed, Share
from ldf.special import Array, floats, namespace


def _same(name: str) -> Any:
    """As the family has it that the prior is of."""
    return property(lambda self: getattr(self.family, name))


def _sorting(self: Any) -> Callable[..., Share]:
    """The rate by the family's own statistic, to sort rows by."""
    theirs = self.family.statistic

    @wraps(theirs)
    def statistic(*args: Any, **columns: Any) -> Any:
        found = theirs(*args, **columns)
        return Share(found.t, found.n)

    return statistic


_sorted_by: Any = property(_sorting)


def _named(family: Family, *args: Any, **columns: Any) -> dict[str, Array]:
    """The columns by their words, if the family takes them."""
    family.statistic(*args, **columns)  # refuses what is wrong
    words = inspect.signature(family.statistic).bind(*args, **columns).arguments
    return {word: check.numbers(word, values) for word, values in words.items()}


class NonConjugate(ByQuadrature):
    """Any likelihood of a scalar θ, in the words of a family that has the prior it is to have.

    function(θ, **columns) is log p(y | θ) in jax.numpy, elementwise: y is a whole number, or has a
    density that is nowhere far above one. `top` says the greatest y by what is known of it
    beforehand (lambda trials: trials), if predictives are wanted.
    """

    family: Family
    function: Callable[..., Any] = eqx.field(static=True)
    top: Callable[..., Any] | None = eqx.field(static=True, default=None)

    natural = _same("natural")
    latent = _same("latent")
    columns = _same("columns")
    design = _same("design")
    prior = _same("prior")
    from_unconstrained = _same("from_unconstrained")
    statistic = _sorted_by

    def __check_init__(self) -> None:
        if self.family.natural not in LINES:
            problem = f"is {type(self.family).__name__}, whose θ is not one number"
            remedy = "use ldf.ImportanceSampled"
            raise check.DataError("family", None, None, problem, remedy)

    def checked(self, *args: Any, **columns: Any) -> dict[str, Array]:
        return _named(self.family, *args, **columns)

    def log_mass(self, theta: Array, rest: Array, y: dict[str, Array]) -> Array:
        return self.function(theta, **y)

    def predictive(self, natural: Any, **design: Any) -> Tabulated:
        """Of new whole numbers, up to `top`."""
        if self.top is None:
            why = "it is not said how large new data may be"
            raise check.DoesNotExist(
                f"the predictive does not exist: {why}; give the family a top."
            )
        word = next(word for word in self.columns if word not in self.design)
        given = {name: np.asarray(check.numbers(name, v), float) for name, v in design.items()}
        most = np.asarray(self.top(**given), float) if self.top else np.zeros(())
        shape = np.broadcast_shapes(natural.shape, most.shape)
        flat = {name: np.broadcast_to(v, shape).reshape(-1) for name, v in given.items()}

        def masses(theta: np.ndarray, rest: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
            known = {name: values[at][:, None, None] for name, values in flat.items()}
            numbers = np.arange(size, dtype=float)
            inside = numbers <= np.broadcast_to(most, shape).reshape(-1)[at][:, None, None]
            y = known | {word: np.where(inside, numbers, 0.0)}
            logs = answer(lambda t, y: self.function(t, **y), theta[..., None], y)
            return np.where(inside, np.exp(logs), 0.0)

        return tabulated(self.on_nodes(natural.spread(shape)), np.broadcast_to(most, shape), masses)

    def likelihood(self, theta: Any, **design: Any) -> Any:
        _refuse_likelihood()


def _refuse_likelihood() -> None:
    why = "only the probability of given y is known"
    check.exists("distribution at a known θ", False, why, "ask for log_likelihood")


class ImportanceSampled(Family):
    """Any likelihood of any θ: a function(θ, **columns) of draws × units, and of θ's own axes."""

    family: Family
    function: Callable[..., Any] = eqx.field(static=True)
    draws: int = 1000
    seed: int = 0

    natural = _same("natural")
    latent = _same("latent")
    columns = _same("columns")
    design = _same("design")
    prior = _same("prior")
    from_unconstrained = _same("from_unconstrained")
    statistic = _same("statistic")

    @property
    def components(self) -> int | None:
        return self.family.components

    def log_base(self, *args: Any, **columns: Any) -> Array:
        raise TypeError("this likelihood is not conjugate: it has no base measure")

    def log_likelihood(self, theta: Any, *args: Any, **columns: Any) -> Array:
        y = _named(self.family, *args, **columns)
        return answer(lambda t, y: self.function(t, **y), theta, y)

    def _drawn(self, natural: Any, y: dict[str, Any]) -> tuple[Array, Array]:
        """θ and log p(y | θ): draws × units."""
        if namespace(*natural.coordinates(), *y.values()) is not np:
            _, values = floats(*natural.coordinates(), *y.values())
            natural = type(natural)(*values[: len(natural.coordinates())])
            y = dict(zip(y, values[len(natural.coordinates()) :], strict=True))
            theta = self.latent(natural).sample(self.draws, jax.random.key(self.seed))
            return theta, self.function(theta, **y)
        with jax.enable_x64(True):
            double = jax.tree.map(lambda value: jnp.asarray(value, jnp.float64), (natural, y))
            return jax.tree.map(np.asarray, self._drawn(*double))

    def log_predictive(self, natural: Any, *args: Any, **columns: Any) -> Array:
        """The logarithm of the mean of p(y | θ) over draws from the prior."""
        _, logs = self._drawn(self.own(natural), _named(self.family, *args, **columns))
        xp = namespace(logs)
        top = logs.max(0)
        return top + xp.log(xp.exp(logs - top).mean(0))

    def effective_draws(self, natural: Any, *args: Any, **columns: Any) -> np.ndarray:
        """How many equally weighted draws the posterior's are worth: below 100 or so, do not rely
        on it."""
        _, logs = self._drawn(self.own(natural), _named(self.family, *args, **columns))
        weight = np.exp(np.asarray(logs) - np.asarray(logs).max(0))
        return weight.sum(0) ** 2 / (weight**2).sum(0)

    def after(self, natural: Any, y: dict[str, Any], seen: np.ndarray) -> Observed:
        return Observed(self.own(natural), y, np.asarray(seen))

    def posterior(self, natural: Any) -> Any:
        """By name before data, by weighted draws after."""
        if not isinstance(natural, Observed):
            return super().posterior(natural)
        theta, logs = self._drawn(natural.natural, natural.y)
        logs = np.where(natural.seen, logs, 0.0)
        weight = np.exp(logs - logs.max(0))
        return WeightedDraws(np.asarray(theta), weight / weight.sum(0))

    def predictive(self, natural: Any, **design: Any) -> Any:
        _refuse_likelihood()

    def likelihood(self, theta: Any, **design: Any) -> Any:
        _refuse_likelihood()
