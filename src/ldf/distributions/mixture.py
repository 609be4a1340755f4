"""One mixture for ensembles, stacks and mixtures of mappings, of θ and of y.

K components answer for the same M units; a unit's distribution is their weighted sum,

    p(θ_i)  =  Σ_k w_k π(θ_i; λ_ik).

Components are one distribution whose first axis is K. Weights are shared by all units, (K,), or
each unit's own, (K, M). Densities and distribution functions add. What has no closed form
(quantiles, modes, intervals, entropies) is searched for, with several peaks in mind. A component
alone answers for itself.

>>> import numpy as np
>>> from ldf.distributions import Beta
>>> from ldf.statistic import Trials
>>> apart = Beta(Trials(np.array([[2.0], [18.0]]), np.array([[18.0], [2.0]])))
>>> mixture([0.75, 0.25], apart).mean().round(3)
array([0.3])
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.distributions import mixture_entropy, mixture_interval, mixture_search
from ldf.distributions.base import (
    Continuous,
    Distribution,
    Multivariate,
    Univariate,
    call_on_host,
    check_q,
    on_host,
)
from ldf.distributions.known import PointMass
from ldf.distributions.mixture_units import Units
from ldf.special import Array, check_draws, floats, namespace


def mixture(weights: Any, components: Distribution) -> Mixture:
    """The mixture of components on the first axis: of numbers, of whole numbers or of vectors."""
    if isinstance(components, Continuous):
        return ContinuousMixture(weights, components)
    if isinstance(components, Univariate):
        return IntegerMixture(weights, components)
    if isinstance(components, PointMass):
        raise TypeError("point masses have no density to mix: mix their predictives instead")
    return MultivariateMixture(weights, components)


class Mixture(Distribution):
    """Σ_k w_k p_k. `mixture(weights, components)` picks the kind."""

    weights: Array = eqx.field(converter=lambda w: check.nonnegative("weights", w, WEIGHT))
    components: Any  # one distribution, of shape K × units

    def __check_init__(self) -> None:
        if not self.components.shape:
            raise ValueError("these components have no axis of their own: give them K × units")
        wanted, given = self.components.shape, np.shape(self.weights)
        known = range(1, len(wanted) + 1)
        if len(given) not in known or given[0] != wanted[0] or not _fit(given, wanted):
            problem = f"are {_times(given)} but the components are {_times(wanted)}"
            remedy = "give one weight a component, or one a component and unit"
            raise check.DataError("weights", None, None, problem, remedy)
        if not check.is_traced(self.weights):
            total = np.asarray(self.weights).sum(0)
            wrong = np.abs(total - 1) > 1e-6  # what float32 leaves is divided out
            problem = "is the sum over components, not one"
            check.refuse("weights", total, wrong, problem, "divide the weights by their sum")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.components.shape[1:]

    def __getitem__(self, rows: Any) -> Self:
        """The mixtures of some units."""
        at = (slice(None), *(rows if isinstance(rows, tuple) else (rows,)))
        weights = self.weights
        if np.ndim(weights) > 1:
            weights = namespace(weights).broadcast_to(self._aligned(weights), self._full)[at]
        return type(self)(weights, self.components[at])

    @property
    def _full(self) -> tuple[int, ...]:
        return self.components.shape

    @property
    def _alone(self) -> Any:
        """The one component there is, if there is one."""
        return self.components[0] if self._full[0] == 1 else None

    def _aligned(self, weights: Array, axes: int | None = None) -> Array:
        """With as many axes as K × units, or so many: weights begin with components, not units."""
        axes = len(self._full) if axes is None else axes
        return weights.reshape(weights.shape + (1,) * (axes - weights.ndim))

    def _average(self, values: Array) -> Array:
        """Over components, which are in front of the units and what follows them. What has no
        weight may be infinite or missing."""
        xp, (w, values) = floats(self.weights, values)
        w = self._aligned(w / w.sum(0), values.ndim)
        return xp.where(w > 0, w * xp.where(w > 0, values, 0.0), 0.0).sum(0)

    def _sum(self, values: Array) -> Array:
        """Over components, which are before the units' axes; values may have others in front."""
        xp, (w, values) = floats(self.weights, values)
        w = self._aligned(w / w.sum(0))
        values = xp.where(w > 0, w * xp.where(w > 0, values, 0.0), 0.0)
        return values.sum(-len(self._full))

    def _for_all(self, value: Array, event: int = 0, always: bool = False) -> Array:
        """A value for each unit, as one for each component and unit."""
        units = len(self.shape) + event
        if np.ndim(value) <= units and not always:
            return value
        shape = np.shape(value)
        at = len(shape) - units
        return value.reshape((*shape[:at], 1, *shape[at:]))

    def _log_sum(self, logs: Array) -> Array:
        xp, (w, logs) = floats(self.weights, logs)
        w = self._aligned(w / w.sum(0))
        logs = xp.where(w > 0, xp.log(xp.where(w > 0, w, 1.0)) + xp.where(w > 0, logs, 0), -np.inf)
        axis = -len(self._full)
        peak = logs.max(axis, keepdims=True)
        peak = xp.where(xp.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            return xp.squeeze(peak, axis) + xp.log(xp.exp(logs - peak).sum(axis))

    def update(self, log_evidence: Any) -> Self:
        """Reweighted by what data say of the components: w_k ∝ w_k p_k(y), from log p_k(y) of shape
        K × units (or K, for all units). Components that hold the data too are to be given anew."""
        found = check.numbers("log_evidence", log_evidence, infinite=True)
        if np.shape(found)[:1] != self._full[:1] or not _fit(np.shape(found), self._full):
            problem = f"is {_times(np.shape(found))} but the components are {_times(self._full)}"
            remedy = "give one value a component and unit"
            raise check.DataError("log_evidence", None, None, problem, remedy)
        xp, (w, logs) = floats(self.weights, found)
        axes = max(w.ndim, logs.ndim)
        w, logs = self._aligned(w, axes), self._aligned(logs, axes)
        with np.errstate(divide="ignore"):
            logs = xp.where(w > 0, xp.log(xp.where(w > 0, w, 1.0)) + logs, -np.inf)
        peak = logs.max(0, keepdims=True)
        why = "no component with weight could have given the data"
        remedy = "correct the data, or give weight to a component that allows them"
        check.exists("update", xp.isfinite(peak)[0], why, remedy)
        new = xp.exp(logs - peak)
        return type(self)(new / new.sum(0), self.components)

    def mean(self) -> Array:
        if self._alone is not None:
            return self._alone.mean()
        return jax.tree.map(self._average, self.components.mean())

    def _variance(self, mean: Array, variance: Array) -> Array:
        """That within components, and that of their means."""
        xp, (mean, variance) = floats(mean, variance)
        centre = self._average(mean)
        with np.errstate(invalid="ignore"):
            total = self._average(variance + (mean - centre) ** 2)
        return xp.where(xp.isfinite(centre), total, np.inf)

    def sample(self, draws: int, seed: Any) -> Array:
        if self._alone is not None:
            return self._alone.sample(draws, seed)
        check_draws(draws, seed)
        leaves = jax.tree.leaves((self.weights, self.components))
        xp, (w,) = floats(self.weights)
        w = xp.broadcast_to(self._aligned(w), self._full)
        shape = (draws, *self.shape)
        if namespace(*leaves) is np:
            if isinstance(seed, jax.Array):
                raise TypeError("a JAX key draws from JAX arrays: give a whole number as seed")
            whole = isinstance(seed, int | np.integer)
            source = np.random.SeedSequence(int(seed)) if whole else seed
            first, second = (int(state) for state in source.generate_state(2, np.uint64))
            level = np.random.default_rng(first).random(shape)
        else:
            key = seed if isinstance(seed, jax.Array) else jax.random.key(seed)
            first, second = jax.random.split(key)
            level = jax.random.uniform(first, shape)
        # Which component a draw is from: the first whose cumulative weight is above the level.
        up_to = xp.cumsum(w, 0)
        up_to = up_to / up_to[-1]
        which = sum((level >= up_to[k]).astype(int) for k in range(len(w) - 1))
        units = np.ogrid[tuple(slice(size) for size in self.shape)] if self.shape else ()
        drawn = self.components[(which, *units)].sample(1, second)
        return jax.tree.map(lambda value: value[0], drawn)


WEIGHT = "a weight is zero or more"


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _fit(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether axes, from the first on, are those wanted or one for all."""
    pairs = zip(given, wanted, strict=False)
    return len(given) <= len(wanted) and all(a in (1, b) for a, b in pairs)


class _Numbers(Mixture, Univariate):
    """What mixtures of one number a unit have in common."""

    def _value(self, value: Any) -> Array:
        value = check.numbers("value", value, infinite=True)
        check.fits("value", value, self.shape)
        return self._for_all(value)

    def variance(self) -> Array:
        if self._alone is not None:
            return self._alone.variance()
        return self._variance(self.components.mean(), self.components.variance())

    def sd(self) -> Array:
        return Univariate.sd(self) if self._alone is None else self._alone.sd()

    def log_prob(self, value: Any) -> Array:
        if self._alone is not None:
            return self._alone.log_prob(value)
        return self._log_sum(self.components.log_prob(self._value(value)))

    def cdf(self, value: Any) -> Array:
        if self._alone is not None:
            return self._alone.cdf(value)
        found = self._sum(self.components.cdf(self._value(value)))
        return namespace(found).minimum(found, 1.0)

    def exceeds(self, value: Any) -> Array:
        if self._alone is not None:
            return self._alone.exceeds(value)
        found = self._sum(self.components.exceeds(self._value(value)))
        return namespace(found).minimum(found, 1.0)

    @abstractmethod
    def _peak(self, of: Units) -> np.ndarray:
        """Where the mode is, of units whose components' modes differ."""

    def mode(self) -> Array:
        """Where the density or mass is highest of all; NaN where no single place is."""
        if self._alone is not None:
            return self._alone.mode()

        def highest(of: Self) -> np.ndarray:
            return mixture_search.mode(Units.of(of), of._peak).reshape(of.shape)

        return call_on_host(highest, 1, self.shape, self)

    @abstractmethod
    def _level(self, of: Units, q: np.ndarray) -> np.ndarray:
        """Where the distribution function of each unit reaches q."""

    @on_host
    def quantile(self, q: Any) -> Array:
        """The smallest value with P(at most it) >= q: between the components' own."""
        check_q(q)
        if self._alone is not None:
            return self._alone.quantile(q)
        return self._each(self._level, q)

    def _each(self, answer: Callable[[Units, np.ndarray], np.ndarray], value: Any) -> np.ndarray:
        """Of values for each unit, which may have others in front: a unit is there once a value."""
        shape = np.broadcast_shapes(self.shape, np.shape(value))
        units = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        units, value = (np.broadcast_to(part, shape).reshape(-1) for part in (units, value))
        return answer(Units.of(self)[units], value).reshape(shape)

    @abstractmethod
    def _interval(self, of: Units, mass: float) -> tuple[np.ndarray, np.ndarray]: ...

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """One interval, also where leaving out the middle would be narrower."""
        if self._alone is not None:
            return self._alone._narrowest(mass)
        lower, upper = self._interval(Units.of(self), mass)
        return lower.reshape(self.shape), upper.reshape(self.shape)


class ContinuousMixture(_Numbers, Continuous):
    """Of one number with a density, which may have several peaks."""

    @property
    def support(self) -> tuple[float, float]:
        return self.components.support

    def slope(self, value: Array) -> Array:
        if self._alone is not None:
            return self._alone.slope(value)
        value = self._value(value)
        logs = self.components.log_prob(value)
        log_density = self._log_sum(logs)
        xp = namespace(logs)
        with np.errstate(all="ignore"):
            share = xp.exp(logs - self._for_all(log_density, always=True))
            share = xp.where(xp.isfinite(logs), share, 0.0)
            return self._sum(share * self.components.slope(value))

    def _peak(self, of: Units) -> np.ndarray:
        return mixture_search.peak(of)

    def _level(self, of: Units, q: np.ndarray) -> np.ndarray:
        return mixture_search.quantile(of, q)

    def _interval(self, of: Units, mass: float) -> tuple[np.ndarray, np.ndarray]:
        return mixture_interval.narrowest_interval(of, mass)

    def entropy(self) -> Array:
        """In nats, integrated to about 1e-6."""
        if self._alone is not None:
            return self._alone.entropy()

        def surprise(of: Self) -> np.ndarray:
            return mixture_entropy.entropy(Units.of(of)).reshape(of.shape)

        return call_on_host(surprise, 1, self.shape, self)


class IntegerMixture(_Numbers):
    """Of whole numbers from 0 on; their mass may have several peaks."""

    @property
    def top(self) -> Array:
        """The largest possible value; infinity if there is none."""
        return np.broadcast_to(self.components.top, self._full).max(0)

    def cdf(self, value: Any) -> Array:
        if not mixture_search.has_cells(self):
            return super().cdf(value)
        value = check.numbers("value", value, infinite=True)
        check.fits("value", value, self.shape)
        return self._each(mixture_search.cdf_by_table, value)

    def exceeds(self, value: Any) -> Array:
        return 1 - self.cdf(value) if mixture_search.has_cells(self) else super().exceeds(value)

    def _peak(self, of: Units) -> np.ndarray:
        return mixture_search.integer_peak(of)

    def _level(self, of: Units, q: np.ndarray) -> np.ndarray:
        return mixture_search.integer_quantile(of, q)

    def _interval(self, of: Units, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """The fewest neighbouring values."""
        ends = mixture_interval.narrowest_values(of, mass)
        return ends[:, 0], ends[:, 1]


class MultivariateMixture(Mixture, Multivariate):
    """Of a vector, or of a mean and a variance together. What is asked of one number is answered by
    the marginals, which are mixtures too."""

    def marginal(self, component: Any = None) -> Any:
        """Of one component, or of all on the last axis."""
        of = self.components
        marginal = of.marginal() if component is None else of.marginal(component)
        return mixture(self.weights, marginal)

    def sd(self) -> Array:
        if self._alone is not None:
            return self._alone.sd()

        def spread(mean: Array, sd: Array) -> Array:
            variance = self._variance(mean, sd**2)
            return namespace(variance).sqrt(variance)

        return jax.tree.map(spread, self.components.mean(), self.components.sd())

    def covariance(self) -> Array:
        """That within components, and that of their means."""
        if self._alone is not None:
            return self._alone.covariance()
        mean = self.components.mean()
        off = mean - self._average(mean)
        return self._average(self.components.covariance() + off[..., :, None] * off[..., None, :])

    def log_prob(self, value: Any) -> Array:
        """The log density or mass of a vector."""
        if self._alone is not None:
            return self._alone.log_prob(value)
        if isinstance(value, tuple):  # a mean vector and a covariance matrix
            parts = [check.numbers("value", part) for part in value]
            value = tuple(self._for_all(part, axes) for axes, part in enumerate(parts, 1))
        else:
            event = 2 if hasattr(self.components, "squares") else 1
            value = self._for_all(check.numbers("value", value), event)
        return self._log_sum(self.components.log_prob(value))
