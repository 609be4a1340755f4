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
from dataclasses import fields
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.distributions.base import (
    Continuous,
    Distribution,
    Multivariate,
    Univariate,
    _call_on_host,
    check_q,
    on_host,
)
from ldf.distributions.beta import Beta
from ldf.distributions.beta_binomial import (
    BetaBinomial,
    _beta_binomial_table,
    _blocks,
    _narrowest_window,
)
from ldf.distributions.known import PointMass
from ldf.special import Array, check_draws, floats, namespace
from ldf.statistic import Statistic, Trials

NEGLIGIBLE = 1e-12  # a weight that searches leave out, if it is as small for all units
EPS = np.finfo(float).eps


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
        return type(self)(weights, _take(self.components, at))

    @property
    def _full(self) -> tuple[int, ...]:
        return self.components.shape

    @property
    def _alone(self) -> Any:
        """The one component there is, if there is one."""
        return _take(self.components, 0) if self._full[0] == 1 else None

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

    def _for_all(self, value: Array, event: int = 0) -> Array:
        """A value for each unit, as one for each component and unit."""
        units = len(self.shape) + event
        if np.ndim(value) <= units:
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
        drawn = _take(self.components, (which, *units)).sample(1, second)
        return jax.tree.map(lambda value: value[0], drawn)


WEIGHT = "a weight is zero or more"


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a single number"


def _fit(given: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether axes, from the first on, are those wanted or one for all."""
    pairs = zip(given, wanted, strict=False)
    return len(given) <= len(wanted) and all(a in (1, b) for a, b in pairs)


EVENT_AXES = {"centre": 1, "spread": 2, "rates": 1, "squares": 2}


def _take(of: Any, rows: Any) -> Any:
    """Some rows of a distribution; vectors that have no rows of their own are taken by field."""
    if hasattr(of, "__getitem__"):
        return of[rows]

    def part(name: str, value: Any) -> Any:
        if isinstance(value, Statistic):
            return value.spread(of.shape)[rows]
        if not isinstance(value, np.ndarray | jax.Array):
            return value
        event = value.shape[value.ndim - EVENT_AXES.get(name, 0) :]
        return namespace(value).broadcast_to(value, of.shape + event)[rows]

    return type(of)(*(part(field.name, getattr(of, field.name)) for field in fields(of)))


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

    def mode(self) -> Array:
        """Where the density or mass is highest of all; NaN where no single place is."""
        if self._alone is not None:
            return self._alone.mode()
        return _call_on_host(lambda of: of._highest(), 1, self.shape, self)

    def _highest(self) -> np.ndarray:
        """Where all components agree, there; else it is searched for."""
        flat = self._row()
        found, weight = flat._modes()
        low, high = (_ends(found, weight, end) for end in (np.min, np.max))
        apart = ~(low == high)
        mode = np.where(apart, np.nan, low)
        if apart.any():
            mode[apart] = flat[apart]._peak()
        return mode.reshape(self.shape)

    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the components, and their weights: K × units."""
        found = np.broadcast_to(np.asarray(self.components.mode(), float), self._full)
        return found, self._weights()

    def _weights(self) -> np.ndarray:
        return np.broadcast_to(self._aligned(np.asarray(self.weights)), self._full)

    @abstractmethod
    def _peak(self) -> np.ndarray:
        """Where the mode is, of units on one axis whose components' modes differ."""

    def _row(self) -> Self:
        """Units on one axis, and only the components that matter."""
        size = int(np.prod(self.shape))
        units = np.unravel_index(np.arange(size), self.shape) if self.shape else None
        of = self[units] if self.shape else self[None]
        heavy = np.asarray(of.weights).max(tuple(range(1, of.weights.ndim)), initial=0) > NEGLIGIBLE
        if heavy.all() or not size:
            return of
        weights = np.asarray(of.weights)[heavy]
        return type(of)(weights / weights.sum(0), _take(of.components, heavy))

    def _spread_over(self, values: Any) -> tuple[Self, np.ndarray, tuple[int, ...]]:
        """Units on one axis, once for each of the values, the values, and their shape."""
        values = np.asarray(values, dtype=float)
        shape = np.broadcast_shapes(self.shape, values.shape)
        units = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        of, units = self._row(), np.broadcast_to(units, shape).reshape(-1)
        of = of if len(units) == of.shape[0] else of[units]
        return of, np.broadcast_to(values, shape).reshape(-1), shape

    def _knots(self, number: int) -> np.ndarray:
        """So many places a unit where the mixture has its mass, in order: units × number. Between
        two neighbours is about the same share of it, going by components' means and spreads."""
        centre, spread, w = *_location(self.components), self._weights()
        start, end = getattr(self.components, "support", (-0.5, np.inf))
        z = np.array([-3.0, -2.0, -1.25, -0.6, 0.0, 0.6, 1.25, 2.0, 3.0]).reshape(-1, 1, 1)
        share = np.array([0.3, 0.6, 1.0, 1.2, 1.2, 1.2, 1.0, 0.6, 0.3]).reshape(-1, 1, 1)
        x = centre + z * spread
        with np.errstate(all="ignore"):  # within the support: by a factor where it has an end
            if np.isfinite(start):
                x = np.where(
                    z < 0, start + (centre - start) * np.exp((x - centre) / (centre - start)), x
                )
            if np.isfinite(end):
                x = np.where(z > 0, end - (end - centre) * np.exp((centre - x) / (end - centre)), x)
        x = np.where(np.isfinite(x), x, centre).reshape(-1, self.shape[0])
        share = (share * w).reshape(x.shape)
        order = np.argsort(x, 0)
        x = np.take_along_axis(x, order, 0)
        up_to = np.cumsum(np.take_along_axis(share, order, 0), 0)
        up_to = up_to / up_to[-1]
        levels = (np.arange(number) + 0.5) / number
        index = np.stack([(up_to < level).sum(0) for level in levels])
        return np.take_along_axis(x, np.minimum(index, len(x) - 1), 0).T


def _location(components: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd, or, where there is none, the median and half the way between quartiles."""
    spread = np.broadcast_to(np.sqrt(np.asarray(components.variance(), float)), components.shape)
    if np.isfinite(spread).all():
        return np.broadcast_to(np.asarray(components.mean(), float), components.shape), spread
    low, middle, high = (np.asarray(components.quantile(q), float) for q in (0.2, 0.5, 0.8))
    return middle, (high - low) / 1.7


def _ends(values: np.ndarray, weights: np.ndarray, end: Callable[..., Any]) -> np.ndarray:
    """The least or greatest over components that have weight; NaN where one is."""
    rest = np.inf if end is np.min else -np.inf
    return end(np.where(weights > 0, values, rest), 0)


# --- numbers on a line --------------------------------------------------------------------------


class ContinuousMixture(_Numbers, Continuous):
    """Of one number with a density, which may have several peaks."""

    @property
    def support(self) -> tuple[float, float]:
        return self.components.support

    def slope(self, value: Array) -> Array:
        if self._alone is not None:
            return self._alone.slope(value)
        return self._density(value)[1]

    def _density(self, value: Any) -> tuple[Array, Array]:
        """The log density and its derivative."""
        value = self._value(value)
        logs = self.components.log_prob(value)
        log_density = self._log_sum(logs)
        shape = np.shape(log_density)
        at = len(shape) - len(self.shape)
        whole = log_density.reshape((*shape[:at], 1, *shape[at:]))
        xp = namespace(logs)
        with np.errstate(all="ignore"):
            share = xp.where(xp.isfinite(logs), xp.exp(logs - whole), 0.0)
            return log_density, self._sum(share * self.components.slope(value))

    @on_host
    def quantile(self, q: Any) -> Array:
        """The smallest value with P(at most it) >= q: between the components' own."""
        check_q(q)
        if self._alone is not None:
            return self._alone.quantile(q)
        of, q, shape = self._spread_over(q)
        each, weight = np.asarray(of.components.quantile(q)), of._weights()
        low, high = (_ends(each, weight, end) for end in (np.min, np.max))
        found = of._level(q, low, high)
        for edge, at in zip((0, 1), self.support, strict=True):
            found = np.where(q == edge, at, found)
        return found.reshape(shape)

    def _level(self, q: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Where the distribution function of each unit reaches q, between low and high."""
        scale = _Scale(self.support)
        found = low.copy()
        rows = np.nonzero((low < high) & np.isfinite(q) & (q > 0) & (q < 1))[0]
        if not len(rows):
            return found
        of, wanted = self[rows], _logit(q[rows])
        # The odds of being below, against the place on an endless scale, are nearly a line.
        place = _root(
            lambda at, s: _logit(of[at].cdf(scale.value(s))) - wanted[at],
            scale.place(low[rows]),
            scale.place(high[rows]),
        )
        found[rows] = np.clip(scale.value(place), low[rows], high[rows])
        return found

    def _peak(self) -> np.ndarray:
        start, end = self.support
        modes, weight = self._modes()
        heavy = np.where(weight > 0, weight, np.nan)
        inner = np.where((modes > start) & (modes < end), modes, np.nan)
        inner_safe = np.where(np.isfinite(inner), inner, _location(self.components)[0])
        with np.errstate(all="ignore"):
            own = np.log(heavy) + self.components.log_prob(inner_safe)
        tall = np.argsort(np.where(np.isfinite(own), -own, np.inf), 0)[: min(8, len(own))]
        outer = [inner_safe.min(0)[:, None], inner_safe.max(0)[:, None]]
        tries = [np.take_along_axis(inner_safe, tall, 0).T, self._knots(12), *outer]
        x = np.sort(np.concatenate(tries, 1), 1)
        heights = _columns(self.log_prob, x)
        mode, height = self._climb(x, heights)
        return self._against_the_ends(mode, height)

    def _climb(self, x: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the two highest of several places to the tops of their hills; NaN for a tie."""
        units = np.arange(len(x))
        tops = []
        peaks = heights.copy()
        for _ in range(2):
            at = np.where(np.isfinite(peaks), peaks, -1e300).argmax(1)
            here, height = x[units, at], heights[units, at]
            low = np.where(x < here[:, None], x, -np.inf).max(1)
            high = np.where(x > here[:, None], x, np.inf).min(1)
            up = self._density(here)[1] > 0
            low = np.where(up | np.isinf(low), here, low)
            high = np.where(up & np.isfinite(high), high, here)
            place = _root(lambda r, s: self[r]._density(s)[1], low, high)
            top = np.asarray(self.log_prob(place))
            tops.append((np.where(top >= height, place, here), np.maximum(top, height)))
            # The same hill again, down to where the density rises: not to be climbed twice.
            peaks = np.where(_same_hill(heights, at), -np.inf, peaks)
        (one, high_one), (two, high_two) = tops
        same = np.abs(one - two) <= 1e-6 * (np.abs(one) + np.abs(x[:, -1] - x[:, 0]))
        tie = (np.abs(high_one - high_two) <= 1e-10 * (1 + np.abs(high_one))) & ~same
        best = np.where(high_two > high_one, two, one)
        return np.where(tie, np.nan, best), np.maximum(high_one, high_two)

    def _against_the_ends(self, mode: np.ndarray, height: np.ndarray) -> np.ndarray:
        """The density may be higher, or without bound, where the support ends."""
        ends = [end for end in self.support if np.isfinite(end)]
        logs = [np.asarray(self.log_prob(np.full(len(mode), end))) for end in ends]
        top = np.max([height, *logs], 0)
        for end, log in zip(ends, logs, strict=True):
            mode = np.where((log == top) & (log > height), end, mode)
        both = np.sum([(log == top) & (log > height) for log in logs], 0) if logs else 0
        return np.where(np.asarray(both) > 1, np.nan, mode)

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """One interval, also where leaving out the middle would be narrower."""
        if self._alone is not None:
            return self._alone._narrowest(mass)
        lower, upper = _narrowest_interval(self._row(), mass)
        return lower.reshape(self.shape), upper.reshape(self.shape)

    def _from_the_edge(self, edge: float, q: float) -> tuple[np.ndarray, ...]:
        """The other end of an interval from an end of the support, and the log densities there and
        at the support's end. If the latter is the higher, none near is narrower."""
        inner = self.quantile(np.full(self.shape, q))
        if edge == self.support[1]:  # the next float may hold too little: take the one before
            close = np.nonzero(edge - inner < 1e-6)[0]
            short = self[close].exceeds(inner[close]) < 1 - q
            inner[close] = np.where(short, np.nextafter(inner[close], 0.0), inner[close])
        return inner, self.log_prob(np.full(self.shape, edge)), self.log_prob(inner)

    def entropy(self) -> Array:
        """In nats, integrated to about 1e-6."""
        if self._alone is not None:
            return self._alone.entropy()
        return _call_on_host(lambda of: of._surprise(), 1, self.shape, self)

    def _surprise(self) -> np.ndarray:
        of = self._row()
        found = np.zeros(of.shape)
        halved = np.zeros(of.shape, bool)
        if isinstance(of.components, Beta):
            # Where much may be next to 1, which floats do not resolve: by halves, each from 0.
            steep = (np.asarray(of.components.natural.failures) < 1) & (of._weights() > 0)
            halved = np.broadcast_to(steep, of._full).any(0)
            part = of[halved]
            natural = part.components.natural
            mirrored = Beta(Trials(natural.failures, natural.successes))
            halves = (part, ContinuousMixture(part.weights, mirrored))
            found[halved] = sum(_integrate_surprise(half, 0.5) for half in halves)
        found[~halved] = _integrate_surprise(of[~halved], of.support[1])
        return found.reshape(self.shape)


class _Scale:
    """A scale on which the support is the whole line: identity, log or logit."""

    def __init__(self, support: tuple[float, float]) -> None:
        self.start, self.end = support

    def place(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            if self.end == 1:
                return np.clip(np.log(x) - np.log1p(-x), -745.0, 40.0)
            return np.maximum(np.log(x), -745.0) if self.start == 0 else x

    def speed(self, x: np.ndarray) -> np.ndarray:
        """dx by d(place)."""
        if self.end == 1:
            return x * (1 - x)
        return x if self.start == 0 else np.ones_like(x)

    def move(self, x: np.ndarray, step: np.ndarray) -> np.ndarray:
        if self.end == 1:
            odds = x * np.exp(step)
            return odds / (odds + (1 - x))
        return x * np.exp(step) if self.start == 0 else x + step

    def both(self, place: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x, and dx by d(place)."""
        x = self.value(place)
        return x, self.speed(x)

    def value(self, place: np.ndarray) -> np.ndarray:
        if self.end == 1:
            return np.exp(-np.logaddexp(0.0, -place))
        return np.exp(place) if self.start == 0 else place


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-300, 1 - EPS / 2)
    return np.log(p) - np.log1p(-p)


def _columns(function: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """Of each column of units × places: one after the other, as K times as much is held at once."""
    return np.stack([np.asarray(function(column)) for column in x.T], 1)


def _same_hill(heights: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The places from which it only goes up to the one at `at`."""
    rows, size = heights.shape
    index = np.arange(size)
    step = np.diff(heights, axis=1)
    # Left of the top no step up to it may fall, right of it none may rise.
    left = np.where(index[:-1] < at[:, None], step >= 0, True)
    right = np.where(index[:-1] >= at[:, None], step <= 0, True)
    ones = np.ones((rows, 1), bool)
    from_left = np.concatenate([np.cumprod(left[:, ::-1], 1)[:, ::-1].astype(bool), ones], 1)
    from_right = np.concatenate([ones, np.cumprod(right, 1).astype(bool)], 1)
    return np.where(index <= at[:, None], from_left, from_right)


@np.errstate(all="ignore")
def _root(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Where a function of (rows, place) crosses zero between low and high, by Chandrupatla's
    method: parabolas through the last three places where they are to be trusted, else halves.
    Where it has one sign only, the end that is nearer to zero."""
    rows = np.arange(len(low))
    a, b = np.array(high, float), np.array(low, float)  # b is the last place, a across the root
    at_a, at_b = function(rows, a), function(rows, b)
    c, at_c = a.copy(), at_a.copy()
    best = np.where(np.abs(at_a) < np.abs(at_b), a, b)
    slack = 1e-13 * np.abs(a - b)
    left = rows[(np.sign(at_a) * np.sign(at_b) < 0)]
    t = np.full(len(low), 0.5)
    for _ in range(100):
        if not len(left):
            break
        i = left
        x = a[i] + t[i] * (b[i] - a[i])
        y = function(i, x)
        same = np.sign(y) == np.sign(at_a[i])
        c[i], at_c[i] = np.where(same, a[i], b[i]), np.where(same, at_a[i], at_b[i])
        b[i], at_b[i] = np.where(same, b[i], a[i]), np.where(same, at_b[i], at_a[i])
        a[i], at_a[i] = x, y
        best[i] = np.where(np.abs(at_a[i]) < np.abs(at_b[i]), a[i], b[i])
        gap = np.abs(b[i] - a[i])
        small = (2 * EPS * np.abs(best[i]) + slack[i]) / gap
        # Inverse quadratic interpolation, if it is monotone between the three places.
        xi = (a[i] - b[i]) / (c[i] - b[i])
        phi = (at_a[i] - at_b[i]) / (at_c[i] - at_b[i])
        curved = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        first = at_a[i] / (at_b[i] - at_a[i]) * at_c[i] / (at_b[i] - at_c[i])
        second = (c[i] - a[i]) / (b[i] - a[i])
        second = second * at_a[i] / (at_c[i] - at_a[i]) * at_b[i] / (at_c[i] - at_b[i])
        step = np.where(curved & np.isfinite(first + second), first + second, 0.5)
        t[i] = np.clip(step, small, 1 - small)
        left = i[(small < 0.5) & (y != 0) & np.isfinite(y)]
    return best


# --- the narrowest interval ---------------------------------------------------------------------

SCAN = 12  # places of the first look, besides the ends
RIVAL = 1.1  # a local minimum this much wider than the narrowest may turn out narrower
RESOLUTIONS = (0.1, 0.02, 0.004, 0.0008)  # of places, by the interval's width, one after the other
STEPS = 8
HAIR = 1e-12


@np.errstate(all="ignore")
def _narrowest_interval(of: ContinuousMixture, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """The distribution function in a few places says about where the local minima of the width
    are, by its lower end; Newton's method improves them, and the narrowest is taken. Units where
    that fails are looked at more closely. From and to an end of the support are two more ways."""
    lower, upper = np.full((2, *of.shape), np.nan)
    left, x, below = np.arange(of.shape[0]), *_first_look(of, *of.support)
    for resolution in RESOLUTIONS:
        if not len(left):
            break
        last = resolution == RESOLUTIONS[-1]
        at = of[left]
        x, below = _closer(at, x, below, mass, lambda width, r=resolution: r * width, unit=0)
        low, high, done = _candidates(at, mass, x, below, last)
        lower[left], upper[left] = low, high
        left, x, below = left[~done], x[~done], below[~done]
    lost = np.nonzero(np.isnan(lower))[0]
    for ends, q in ((lower, (1 - mass) / 2), (upper, (1 + mass) / 2)):
        ends[lost] = of[lost].quantile(np.full(len(lost), q))
    return lower, upper


def _first_look(of: _Numbers, start: Any, end: Any) -> tuple[np.ndarray, np.ndarray]:
    """Places and their distribution function, the ends of what is possible among them."""
    x = np.clip(of._knots(SCAN), np.reshape(start, (-1, 1)), np.reshape(end, (-1, 1)))
    x = np.round(x) + 0.0 if isinstance(of, IntegerMixture) else x
    below = np.maximum.accumulate(_columns(of.cdf, x), 1)
    x = np.insert(np.insert(x, 0, start, 1), SCAN + 1, end, 1)
    return x, np.insert(np.insert(below, 0, 0.0, 1), SCAN + 1, 1.0, 1)


def _candidates(
    of: ContinuousMixture, mass: float, x: np.ndarray, below: np.ndarray, last: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The narrowest interval by what is known, and whether it surely is."""
    start, end = of.support
    fine, level = _refined(*_bounded(x, below))
    upper = _inverse(fine, level, level + mass)
    width = np.where(level + mass <= level[:, -1:], upper - fine, np.inf)
    narrowest = width.min(1)
    after = np.pad(width, ((0, 0), (1, 1)), constant_values=np.inf)[:, 2:]
    before = np.pad(width, ((0, 0), (1, 1)), constant_values=np.inf)[:, :-2]
    dip = (width <= before) & (width < after) & (width <= RIVAL * narrowest[:, None])
    dip[np.arange(len(x)), width.argmin(1)] = True
    rows, places = np.nonzero(dip & (fine > start) & (upper < end) & np.isfinite(width))
    # Beyond the last that can hold the mass comes the end of the support, which is seen to.
    must = np.isfinite(after[rows, places]) | np.isinf(end)
    seeds = [(rows, fine[rows, places], upper[rows, places], must)]
    edges = []
    # Where the distribution function is level, by a hair the nearer place.
    for edge, q in ((start, mass - HAIR), (end, 1 - mass + HAIR)):
        if np.isfinite(edge):
            other = _inverse(fine, level, np.full((len(x), 1), q))[:, 0]
            near = np.nonzero(np.abs(other - edge) <= RIVAL * narrowest)[0]
            inner, at_edge, at_inner = of[near]._from_the_edge(edge, q)
            low, high = np.minimum(inner, edge), np.maximum(inner, edge)
            edges.append((near, low, high, np.ones(len(near), bool), (at_edge >= at_inner) | last))
            # A density that rises from the edge has a minimum nearby; one that is infinite only
            # there may have.
            must, may = at_edge < at_inner, np.isposinf(at_edge)
            for share, some in ((0.02, must | may), (0.005, may), (0.001, may)):
                gap = share * (high - low)[some]
                shift = (gap, 0.0) if edge == start else (0.0, -gap)
                seeds.append((near[some], low[some] + shift[0], high[some] + shift[1], must[some]))
    rows, low, high, must = (np.concatenate(parts) for parts in zip(*seeds, strict=True))
    reach = np.maximum(_gaps(x, rows, low), _gaps(x, rows, high))
    reach = np.maximum(2 * reach, 0.05 * (high - low))
    low, high, good = _newton(of[rows], mass, low, high, reach)
    if last:  # as near as it came: the mass at least is exact, if there is as much
        at = of[rows]
        bad = np.nonzero(~good & must & (at.cdf(low) + mass <= 1))[0]
        high[bad] = of[rows[bad]].quantile(of[rows[bad]].cdf(low[bad]) + mass)
        good[bad] = True
    found = [(rows, low, high, good, good), *edges]
    rows, low, high, holds, sure = (np.concatenate(parts) for parts in zip(*found, strict=True))
    # The narrowest of each unit; it is sure if what did not come out is no rival to it.
    order = np.lexsort((np.where(holds, high - low, np.inf), rows))
    units, first = np.unique(rows[order], return_index=True)
    best = order[first]
    lower, upper = np.full((2, len(x)), np.nan)
    lower[units], upper[units] = low[best], high[best]
    done = np.zeros(len(x), bool)
    done[units] = sure[best]
    seen = slice(len(good))
    rival = ~good & must & ~((high - low)[seen] > RIVAL * (upper - lower)[rows[seen]])
    done[rows[seen][rival]] = False
    return lower, upper, done | last


def _bounded(x: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """With the outermost finite places in place of infinite ones."""
    finite, found = np.isfinite(x), []
    for value in (x, below):
        known = np.where(finite, value, np.nan)
        least, most = np.nanmin(known, 1, keepdims=True), np.nanmax(known, 1, keepdims=True)
        found.append(np.where(finite, value, np.where(x < 0, least, most)))
    return found[0], found[1]


def _refined(x: np.ndarray, y: np.ndarray, parts: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """A monotone cubic through the points, with so many parts between two."""
    gap, rise = np.diff(x, axis=1), np.diff(y, axis=1)
    rate = np.where(gap > 0, rise / gap, 0.0)
    # The harmonic mean of neighbouring rates never overshoots.
    w1, w2 = 2 * gap[:, 1:] + gap[:, :-1], gap[:, 1:] + 2 * gap[:, :-1]
    inner = (w1 + w2) / (w1 / rate[:, :-1] + w2 / rate[:, 1:])
    inner = np.where((rate[:, :-1] > 0) & (rate[:, 1:] > 0), inner, 0.0)
    slope = np.concatenate([rate[:, :1], inner, rate[:, -1:]], 1)
    t = (np.arange(parts) / parts)[None, None, :]
    g, r, left, right = gap[..., None], rise[..., None], slope[:, :-1, None], slope[:, 1:, None]
    bend = g * t * (1 - t) * (left * (1 - t) - right * t)
    level = (y[:, :-1, None] + r * t**2 * (3 - 2 * t) + bend).reshape(len(x), -1)
    fine = (x[:, :-1, None] + g * t).reshape(len(x), -1)
    fine, level = np.concatenate([fine, x[:, -1:]], 1), np.concatenate([level, y[:, -1:]], 1)
    return fine, np.maximum.accumulate(level, 1)


def _reached(level: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The first index at which each row, which rises from 0 to 1, has the wanted levels."""
    rows, size = level.shape
    shift = 4.0 * np.arange(rows)[:, None]  # all rows as one rising list
    flat = np.searchsorted((level + shift).reshape(-1), (wanted + shift).reshape(-1))
    return flat.reshape(wanted.shape) - size * np.arange(rows)[:, None]


def _inverse(x: np.ndarray, level: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where the rows of a rising table have the wanted levels, by lines between its points."""
    at = np.clip(_reached(level, wanted), 1, x.shape[1] - 1)
    low, high = (np.take_along_axis(level, i, 1) for i in (at - 1, at))
    left, right = (np.take_along_axis(x, i, 1) for i in (at - 1, at))
    share = np.where(high > low, (wanted - low) / np.where(high > low, high - low, 1.0), 1.0)
    return left + np.clip(share, 0.0, 1.0) * (right - left)


def _gaps(x: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    """How far apart the places are between which this one is."""
    index = np.clip((x[rows] <= at[:, None]).sum(1), 1, x.shape[1] - 1)
    return x[rows, index] - x[rows, index - 1]


def _newton(
    of: ContinuousMixture, mass: float, low: np.ndarray, high: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both ends together, towards equal densities and the mass between, on a scale where the
    support has no edge. Where it does not come out, the ends as they were; and where it did."""
    scale, size = _Scale(of.support), len(low)
    new = np.stack([low, high])
    good, left = np.zeros(size, bool), np.arange(size)
    for _ in range(STEPS):
        if not len(left):
            break
        at, (lo, hi) = of[left], new[:, left]
        (log_low, rise_low), (log_high, rise_high) = at._density(lo), at._density(hi)
        missing = mass - (at.cdf(hi) - at.cdf(lo))
        uneven = log_low - log_high
        speed_low, speed_high = scale.speed(lo), scale.speed(hi)
        f_low, f_high = np.exp(log_low) * speed_low, np.exp(log_high) * speed_high
        rise_low, rise_high = rise_low * speed_low, rise_high * speed_high
        # −f(l) dl + f(u) du = missing mass;  −s(l) dl + s(u) du = log f(l) − log f(u)
        determinant = f_high * rise_low - f_low * rise_high
        step_low = (missing * rise_high - uneven * f_high) / determinant
        step_high = (missing * rise_low - uneven * f_low) / determinant
        new_low, new_high = scale.move(lo, step_low), scale.move(hi, step_high)
        # Not far from where the minimum was seen. It is one only where the density rises more at
        # the lower end than at the upper.
        far = np.maximum(np.abs(new_low - low[left]), np.abs(new_high - high[left]))
        usable = (determinant > 0) & (far <= reach[left]) & (new_low < new_high)
        # Newton squares its error: so small a step leaves none that could be seen.
        step = np.maximum(np.abs(new_low - lo), np.abs(new_high - hi))
        done = usable & (np.abs(missing) <= 1e-7) & (step <= 1e-5 * (hi - lo) + EPS * np.abs(hi))
        done &= np.abs(step_low) + np.abs(step_high) <= 1e-4 * (hi - lo if scale.start < 0 else 1)
        new[:, left] = np.where(usable, [new_low, new_high], [lo, hi])
        good[left] = done
        left = left[usable & ~done]
    low, high = np.where(good, new, [low, high])
    return low, high, good


def _closer(
    of: _Numbers,
    x: np.ndarray,
    below: np.ndarray,
    mass: float,
    finest: Callable[[np.ndarray], np.ndarray],
    unit: int,
) -> tuple[np.ndarray, np.ndarray]:
    """More places, by bounds. With the distribution function known in some, an interval that begins
    between two of them has a least possible width. Only gaps that may hold an end of one narrower
    than the best so far are halved, until they are as small as the finest. Whole numbers are a unit
    apart: an interval holds those above one place, up to another."""
    left = np.arange(len(x))
    kept_x, kept = x, below
    while len(left):
        wanted = _open_gaps(x, below, mass, finest, unit)
        still = wanted.any(1)
        left, x, below, wanted = (part[still] for part in (left, x, below, wanted))
        if not len(left):
            break
        # Half way into each gap that matters; beyond the last place, twice as far.
        rows, gaps = np.nonzero(wanted)
        near, far = x[rows, gaps], x[rows, gaps + 1]
        bounded = np.where(np.isfinite(x), x, np.nan)
        least, most = np.nanmin(bounded, 1)[rows], np.nanmax(bounded, 1)[rows]
        new = np.where(np.isfinite(near), (near + far) / 2, 2 * least - most)
        new = np.where(np.isfinite(far), new, 2 * most - least)
        new = np.floor(new) if unit else new
        value = np.asarray(of[left[rows]].cdf(new))
        count = wanted.sum(1)
        column = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        wider = (len(x), int(count.max()))  # rows with fewer repeat their first place
        more_x, more = (
            np.broadcast_to(x[:, :1], wider).copy(),
            np.broadcast_to(below[:, :1], wider).copy(),
        )
        more_x[rows, column], more[rows, column] = new, value
        x, below = np.concatenate([more_x, x], 1), np.concatenate([more, below], 1)
        order = np.argsort(x, 1, kind="stable")
        x, below = (np.take_along_axis(part, order, 1) for part in (x, below))
        below = np.maximum.accumulate(below, 1)
        extra = x.shape[1] - kept_x.shape[1]
        if extra > 0:
            repeat = ((0, 0), (extra, 0))
            kept_x, kept = np.pad(kept_x, repeat, "edge"), np.pad(kept, repeat, "edge")
        kept_x[left], kept[left] = x, below
    return kept_x, kept


def _open_gaps(
    x: np.ndarray,
    below: np.ndarray,
    mass: float,
    finest: Callable[[np.ndarray], np.ndarray],
    unit: int,
) -> np.ndarray:
    """The gaps that may hold an end of an interval narrower than the best so far."""
    size = x.shape[1]
    at = _reached(below, below + mass * (1 - 8 * EPS))
    reached = at < size
    at = np.clip(at, 1, size - 1)
    last, before = (np.take_along_axis(x, i, 1) for i in (at, at - 1))
    with np.errstate(invalid="ignore"):
        best = np.where(reached, last - x, np.inf).min(1, keepdims=True)
        gap = np.diff(x, axis=1)
        following = np.concatenate([x[:, 1:], x[:, -1:]], 1)
        least = before + unit - np.maximum(following - unit, x)
        # Of as many values, those that hold the most are wanted.
        open_ = reached & ((least <= best) if unit else (least < best))
        open_[:, :-1] &= gap > 0  # a place that is there twice is asked once
        coarse = np.where(np.isfinite(best), gap > finest(best), np.isinf(gap))
    ends = np.zeros_like(coarse)
    rows, starts = np.nonzero(open_)
    ends[rows, at[rows, starts] - 1] = True
    return (open_[:, :-1] | ends) & coarse


# --- entropy ------------------------------------------------------------------------------------

# Gauss's rule of 7 nodes within Kronrod's of 15, on half of [−1, 1].
NODES = (
    *(0.991455371120812639206854697526, 0.949107912342758524526189684048),
    *(0.864864423359769072789712788641, 0.741531185599394439863864773281),
    *(0.586087235467691130294144691693, 0.405845151377397166906606412077),
    *(0.207784955007898467600689403773, 0.0),
)
KRONROD = (
    *(0.022935322010529224963732008059, 0.063092092629978553290700663189),
    *(0.104790010322250183839876322542, 0.140653259715525918745189590510),
    *(0.169004726639267902826583426599, 0.190350578064785409913256402421),
    *(0.204432940075298892414161999235, 0.209482141084727828012999174892),
)
GAUSS = (
    *(0.0, 0.129484966168869693270611432679, 0.0, 0.279705391489276667901467771424),
    *(0.0, 0.381830050505118944950369775489, 0.0, 0.417959183673469387755102040816),
)
PANELS = 5
PRECISION = 1e-7
TAIL = 1e-11


@np.errstate(all="ignore")
def _integrate_surprise(of: ContinuousMixture, until: float) -> np.ndarray:
    """−∫ f log f, up to a place, on a scale without ends: panels are halved until two rules agree
    on each."""
    if not of.shape[0]:
        return np.zeros(0)
    start, _ = of.support
    scale = _Scale((start, until)) if start == 0 else _Sinh(of)
    each, weight = [np.asarray(of.components.quantile(q)) for q in (TAIL, 1 - TAIL)], of._weights()
    low, high = (_ends(v, weight, e) for v, e in zip(each, (np.min, np.max), strict=True))
    if start == 0:
        high = np.clip(high, 2e-300, until)
        low = np.clip(low, 1e-300, high / 2)
    units = np.arange(of.shape[0])
    inner = np.clip(of._knots(PANELS - 1), low[:, None], high[:, None])
    edges = np.concatenate([low[:, None], inner, high[:, None]], 1)
    edges = _columns(scale.place, edges)
    # The outermost panels are long: by halves.
    edges = np.insert(edges, 1, (edges[:, 0] + edges[:, 1]) / 2, 1)
    edges = np.insert(edges, -1, (edges[:, -2] + edges[:, -1]) / 2, 1)

    def integrals(rows: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        at, fine, coarse = of[rows], np.zeros(len(rows)), np.zeros(len(rows))
        for node, kronrod, gauss in zip(NODES, KRONROD, GAUSS, strict=True):
            for side in (-1, 1) if node else (1,):
                x, speed = scale.both((a + b) / 2 + (b - a) / 2 * node * side, rows)
                log_density = np.asarray(at.log_prob(x))
                f = np.exp(log_density)
                value = np.where(f > 0, -f * log_density * speed, 0.0) * (b - a) / 2
                fine, coarse = fine + kronrod * value, coarse + gauss * value
        return fine, coarse

    entropy = np.zeros(len(units))
    rows, a, b = np.repeat(units, PANELS + 2), edges[:, :-1].reshape(-1), edges[:, 1:].reshape(-1)
    for _ in range(40):
        if not len(rows):
            break
        fine, coarse = integrals(rows, a, b)
        # Kronrod's error is about the power 3/2 of the difference, as in QUADPACK.
        agree = (200 * np.abs(fine - coarse)) ** 1.5 <= PRECISION
        np.add.at(entropy, rows[agree], fine[agree])
        rows, a, b = np.repeat(rows[~agree], 2), a[~agree], b[~agree]
        middle = (a + b) / 2
        a, b = np.stack([a, middle], 1).reshape(-1), np.stack([middle, b], 1).reshape(-1)
    return entropy + _power_tail(of, low) if start == 0 else entropy


class _Sinh:
    """A scale for the whole line: a line near the middle, a logarithm far from it."""

    def __init__(self, of: ContinuousMixture) -> None:
        self.centre = np.asarray(of.quantile(0.5))
        self.spread = np.maximum(np.asarray(of.quantile(0.75)) - self.centre, 1e-300)

    def place(self, x: np.ndarray) -> np.ndarray:
        return np.arcsinh((x - self.centre) / self.spread)

    def both(self, place: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spread = self.spread[rows]
        return self.centre[rows] + spread * np.sinh(place), spread * np.cosh(place)


def _power_tail(of: ContinuousMixture, x: np.ndarray) -> np.ndarray:
    """−∫ f log f from 0 to x, where f is a power c·t^(β − 1): with p = P(below x), and so
    β = x f(x)/p, it is −p (log f(x) − 1 + 1/β)."""
    below, log_density = np.asarray(of.cdf(x)), np.asarray(of.log_prob(x))
    exponent = x * np.exp(log_density) / below
    found = -below * (log_density - 1 + 1 / exponent)
    return np.where((below > 0) & np.isfinite(found), found, 0.0)


# --- whole numbers ------------------------------------------------------------------------------


class IntegerMixture(_Numbers):
    """Of whole numbers from 0 on; their mass may have several peaks."""

    @property
    def top(self) -> Array:
        """The largest possible value; infinity if there is none."""
        of = self.components
        top = of.trials if isinstance(of, BetaBinomial) else of.top
        return np.broadcast_to(np.asarray(top, float), self._full).max(0)

    @on_host
    def quantile(self, q: Any) -> Array:
        """The smallest value with P(at most it) >= q: between the components' own."""
        check_q(q)
        if self._alone is not None:
            return self._alone.quantile(q)
        of, q, shape = self._spread_over(q)
        enough = q * (1 - 8 * EPS)
        if isinstance(of.components, BetaBinomial):
            found = of._by_table(lambda rows, up_to: (up_to < enough[rows][:, None]).sum(1))
            return found.astype(float).reshape(shape)
        each, weight = np.asarray(of.components.quantile(q), float), of._weights()
        low, high = (_ends(each, weight, end) for end in (np.min, np.max))
        low = low - 1  # is not enough
        left = np.nonzero(high - low > 1)[0]
        while len(left):
            middle = np.floor((low[left] + high[left]) / 2)
            reached = of[left].cdf(middle) >= enough[left]
            low[left] = np.where(reached, low[left], middle)
            high[left] = np.where(reached, middle, high[left])
            left = left[high[left] - low[left] > 1]
        return high.reshape(shape)

    def _by_table(self, look_up: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Mix the masses of all counts, units of like size together, and look something up in their
        sums: for the beta-binomial, whose distribution function is such a table anyway."""
        of = self.components
        natural = of.natural.spread(self._full)
        a, b = np.asarray(natural.successes, float), np.asarray(natural.failures, float)
        n = np.broadcast_to(np.asarray(of.trials, float), self._full)
        weights = self._weights() / self._weights().sum(0)
        of._parameters()  # refuses what was not seen
        blocks = list(_blocks(n.max(0))) or [np.zeros(0, np.int64)]
        found = []
        for rows in blocks:
            mass = np.zeros((len(rows), int(n[:, rows].max(initial=0)) + 1))
            for k in range(len(a)):
                table = _beta_binomial_table(a[k, rows], b[k, rows], n[k, rows])
                mass[:, : table.shape[1]] += weights[k, rows][:, None] * table
            found.append(look_up(rows, np.cumsum(mass, 1)))
        return np.concatenate(found)[np.argsort(np.concatenate(blocks))]

    def _peak(self) -> np.ndarray:
        if isinstance(self.components, BetaBinomial):
            return self._by_table(
                lambda _, up_to: _highest_count(np.diff(up_to, axis=1, prepend=0))
            )
        # Masses rise up to the first of the modes and fall from the last on.
        modes, weight = self._modes()
        low, high = (_ends(modes, weight, end) for end in (np.min, np.max))
        own = np.where(weight > 0, self.components.log_prob(modes), -np.inf)
        tall = np.argsort(-own, 0)[: min(8, len(own))]
        x = np.take_along_axis(modes, tall, 0).T
        while True:
            grid = np.round(low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 17))
            x = np.sort(np.concatenate([x, grid], 1), 1)
            heights = _columns(self.log_prob, x)
            best = np.argmax(heights, 1)[:, None]
            here = np.take_along_axis(x, best, 1)
            if (high - low <= 16).all():
                break
            low = np.where(x < here, x, low[:, None]).max(1)
            high = np.where(x > here, x, high[:, None]).min(1)
            x = here
        top = np.take_along_axis(heights, best, 1)
        tie = ((heights >= top - 1e-12) & (np.abs(x - here) > 1)).any(1)
        return np.where(tie, np.nan, here[:, 0])

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """The fewest neighbouring values, also where leaving out some between would be fewer."""
        if self._alone is not None:
            return self._alone._narrowest(mass)
        of = self._row()
        if isinstance(of.components, BetaBinomial):
            ends = of._by_table(lambda _, up_to: _narrowest_window(up_to, mass))
        else:
            ends = _narrowest_values(of, mass)
        return ends[:, 0].reshape(self.shape), ends[:, 1].reshape(self.shape)


def _highest_count(mass: np.ndarray) -> np.ndarray:
    best = mass.argmax(1)[:, None]
    ties = mass >= np.take_along_axis(mass, best, 1) * (1 - 1e-12)
    apart = (ties & (np.abs(np.arange(mass.shape[1]) - best) > 1)).any(1)
    return np.where(apart, np.nan, best[:, 0])


def _narrowest_values(of: IntegerMixture, mass: float) -> np.ndarray:
    """First and last of the fewest neighbouring values that hold the mass."""
    x, below = _closer(of, *_first_look(of, -1.0, of.top), mass, np.ones_like, unit=1)
    at = _reached(below, below + mass * (1 - 8 * EPS))
    last = np.take_along_axis(x, np.minimum(at, x.shape[1] - 1), 1)
    with np.errstate(invalid="ignore"):
        width = np.where(at < x.shape[1], last - x, np.inf)
    held = np.take_along_axis(below, np.minimum(at, x.shape[1] - 1), 1) - below
    narrow = width == width.min(1, keepdims=True)
    best = np.where(narrow, held, -1.0).argmax(1)[:, None]
    return np.concatenate([np.take_along_axis(part, best, 1) for part in (x + 1, last)], 1)


# --- vectors ------------------------------------------------------------------------------------


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
