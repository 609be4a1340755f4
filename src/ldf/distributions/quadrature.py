"""Integrals over a scalar θ ~ π(λ), of what has no conjugate form.

    log p(y)  =  log ∫ π(θ; λ) p(y | θ) dθ

θ is taken to a scale without ends (log odds, logarithm, or itself), and there to x, how far it is
from the prior's peak. So the prior is known to its last digit however sharp it is: nothing large is
subtracted. Where the mass is, is found first: the integrand's peak and how sharp that is. Equal
steps in v then make

    x  =  centre + L sinh(w/L),   sinh w = scale · sinh v

dense at the peak, about a unit apart where likelihoods turn, and far apart in tails that only a
prior of next to no observations has. A plain sum over such steps is right to nearly all digits.

The nodes are held still when derivatives are taken: those of the prior's density at given θ are
enough, and they are composed along the pseudo-observations and across them, as in `compound`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf.special import HALF_LOG_2PI, Array, binet, digamma_remainder, namespace
from ldf.special.arrays import is_single
from ldf.statistic import Arrivals, Potential, Trials

LONG = 6.0  # L: from where on steps grow with the distance
FARTHEST = 43.0  # w that is looked at
STEPS = 7  # of Newton's method, each time
COARSE = 32  # places looked at before it is known where the mass is
LogLikelihood = Callable[[Array, Array], Array]  # (θ, 1 − θ) → log p(y | θ), nodes on the last axis


def effort(dtype: Any) -> tuple[float, int]:
    """How far the prior is followed, in nats, and how many nodes an integral has."""
    return (24.0, 64) if is_single(dtype) else (42.0, 192)


# --- scales without ends ------------------------------------------------------------------------


class Line(eqx.Module):
    """π(λ) of units on a scale without ends, by x: how far from its peak. Nodes are the last axis,
    which the parameters lack."""

    support: ClassVar[tuple[float, float]]  # of θ

    @abstractmethod
    def log_density(self, x: Array) -> Array:
        """Of x. Its derivative by λ is the one at a given θ."""

    @abstractmethod
    def height(self, x: Array) -> tuple[Array, Array, Array]:
        """The log density less that of the peak, and its derivatives by x."""

    @abstractmethod
    def theta(self, x: Array) -> tuple[Array, Array]:
        """θ and 1 − θ, each with all its digits (the second is of use for shares only)."""

    @abstractmethod
    def sharpness(self) -> Array:
        """Minus the second derivative of the log density at its peak."""

    @abstractmethod
    def reach(self, drop: Array) -> tuple[Array, Array]:
        """Places left and right of the peak, outside of which the log density has fallen by so
        much at least."""

    @property
    @abstractmethod
    def origin(self) -> tuple[Array, Array]:
        """The peak's place on the scale without ends, and the length of a unit of x there."""


@jax.custom_jvp
def _odds_log_density(a: Array, b: Array, x: Array) -> Array:
    ones = 0.5 * jnp.log(a / (a + b) * b) - HALF_LOG_2PI + (binet(a + b) - binet(a) - binet(b))
    return ones - _odds_fall(a, b, x)


def _odds_fall(a: Array, b: Array, x: Array) -> Array:
    """Minus a log θ + b log(1 − θ), from its maximum: a deviance of both cells."""
    # To the left of the peak θ falls and 1 − θ stays; to the right it is the other way round.
    total, far = a + b, jnp.abs(x)
    falls, stays = jnp.where(x < 0, a, b), jnp.where(x < 0, b, a)
    lost = -jnp.expm1(-far)
    scale = (falls * jnp.exp(-far) + stays) / total
    gone, gained = stays / total * lost / scale, falls / total * lost / scale
    near = gone < 0.5
    log = jnp.where(near, -jnp.log1p(-jnp.where(near, gone, 0.0)), far + jnp.log(scale))
    return falls * (log - gone) + stays * (gained - jnp.log1p(gained))


@_odds_log_density.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    a, b, x = primals
    da, db, _ = tangents
    grown = (da + db) / (a + b)
    left = jnp.where(a < b, da - a * grown, b * grown - db)
    x = x + _held(jnp.log(a / b))
    rest = a * digamma_remainder(a) + b * digamma_remainder(b)
    along = -_odds_fall(a, b, x) - (rest - (a + b) * digamma_remainder(a + b))
    across = x - (digamma_remainder(a) - digamma_remainder(b))
    return _odds_log_density(*primals), along * grown + across * left


def _held(peak: Array) -> Array:
    """Zero; but x moves against the peak when that moves, if θ stays where it is."""
    return jax.lax.stop_gradient(peak) - peak


class Odds(Line):
    """A Beta, by its log odds."""

    natural: Trials

    support: ClassVar = (0.0, 1.0)

    def _parameters(self) -> tuple[Array, Array]:
        return self.natural.successes[..., None], self.natural.failures[..., None]

    def log_density(self, x: Array) -> Array:
        a, b, x = jnp.broadcast_arrays(*self._parameters(), x)
        return _odds_log_density(a, b, x)

    def height(self, x: Array) -> tuple[Array, Array, Array]:
        a, b = self._parameters()
        theta, rest = self.theta(x)
        return -_odds_fall(a, b, x), a * rest - b * theta, -(a + b) * theta * rest

    def theta(self, x: Array) -> tuple[Array, Array]:
        a, b = self._parameters()
        u = jnp.log(a / b) + x
        return jax.nn.sigmoid(u), jax.nn.sigmoid(-u)

    def sharpness(self) -> Array:
        a, b = self.natural.successes, self.natural.failures
        return a * (b / (a + b))

    def reach(self, drop: Array) -> tuple[Array, Array]:
        a, b = self.natural.successes, self.natural.failures
        left, right = _odds_reach(a, b, drop), _odds_reach(b, a, drop)
        return -left, right

    @property
    def origin(self) -> tuple[Array, Array]:
        peak = jnp.log(self.natural.successes / self.natural.failures)
        return peak, jnp.ones_like(peak)


def _odds_reach(falls: Array, stays: Array, drop: Array) -> Array:
    """The fall is at least κx²/(2 + cx), of slope `falls` far out; where the share that falls
    starts near one, it falls like an exponential of x before."""
    total = falls + stays
    c, q = stays / total, drop / (falls * (stays / total))
    slow = 0.5 * (c * q + jnp.sqrt(c * q * (c * q) + 8 * q))
    w = 3 + 3 * drop / stays
    return jnp.where(stays / total * w <= 1, jnp.minimum(slow, jnp.log1p(w)), slow)


@jax.custom_jvp
def _log_rate_log_density(a: Array, b: Array, x: Array) -> Array:
    return 0.5 * jnp.log(a) - HALF_LOG_2PI - binet(a) - _log_rate_fall(a, x)


def _log_rate_fall(a: Array, x: Array) -> Array:
    return a * (jnp.expm1(x) - x)


@_log_rate_log_density.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    a, b, x = primals
    da, db, _ = tangents
    grown = db / b
    x = x + _held(jnp.log(a / b))
    along = -_log_rate_fall(a, x) - a * digamma_remainder(a)
    across = x - digamma_remainder(a)
    return _log_rate_log_density(*primals), along * grown + across * (da - a * grown)


class LogRate(Line):
    """A Gamma, by its logarithm."""

    natural: Arrivals

    support: ClassVar = (0.0, np.inf)

    def log_density(self, x: Array) -> Array:
        a, b = self.natural.count[..., None], self.natural.exposure[..., None]
        return _log_rate_log_density(*jnp.broadcast_arrays(a, b, x))

    def height(self, x: Array) -> tuple[Array, Array, Array]:
        a, grown = self.natural.count[..., None], jnp.expm1(x)
        return a * (x - grown), -a * grown, -a * (1 + grown)

    def theta(self, x: Array) -> tuple[Array, Array]:
        theta = (self.natural.count / self.natural.exposure)[..., None] * jnp.exp(x)
        return theta, 1 - theta

    def sharpness(self) -> Array:
        return self.natural.count

    def reach(self, drop: Array) -> tuple[Array, Array]:
        # eˣ − 1 − x is at least x²/(2 − x) on the left, and q at log(1 + q + √2q) on the right.
        q = drop / self.natural.count
        return -0.5 * (q + jnp.sqrt(q * q + 8 * q)), jnp.log1p(q + jnp.sqrt(2 * q))

    @property
    def origin(self) -> tuple[Array, Array]:
        peak = jnp.log(self.natural.count / self.natural.exposure)
        return peak, jnp.ones_like(peak)


@jax.custom_jvp
def _mean_log_density(h: Array, j: Array, z: Array) -> Array:
    return -0.5 * z * z - HALF_LOG_2PI


@_mean_log_density.defjvp
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    h, j, z = primals
    dh, dj, _ = tangents
    moved, grown = (dh - h / j * dj) / j, dj / j
    # At a given θ, z moves too: by what its mean and its unit do.
    z = z + _held(h / j) * jnp.sqrt(jax.lax.stop_gradient(j))
    z = z * (1 - 0.5 * _held(jnp.log(j)))
    slope = jnp.sqrt(j) * z * moved - 0.5 * grown * (z * z - 1)
    return _mean_log_density(*primals), slope


class Mean(Line):
    """A Gaussian, as it is: x counts its standard deviations."""

    natural: Potential

    support: ClassVar = (-np.inf, np.inf)

    def log_density(self, x: Array) -> Array:
        h, j = self.natural.potential[..., None], self.natural.precision[..., None]
        return _mean_log_density(*jnp.broadcast_arrays(h, j, x))

    def height(self, x: Array) -> tuple[Array, Array, Array]:
        return -0.5 * x * x, -x, -jnp.ones_like(x)

    def theta(self, x: Array) -> tuple[Array, Array]:
        centre, unit = self.origin
        theta = centre[..., None] + unit[..., None] * x
        return theta, 1 - theta

    def sharpness(self) -> Array:
        return jnp.ones_like(self.natural.precision)

    def reach(self, drop: Array) -> tuple[Array, Array]:
        far = jnp.sqrt(2 * drop)
        return -far, far

    @property
    def origin(self) -> tuple[Array, Array]:
        h, j = self.natural.potential, self.natural.precision
        return h / j, 1 / jnp.sqrt(j)


LINES: dict[Any, Any] = {Trials: Odds, Arrivals: LogRate, Potential: Mean}


# --- where the mass is --------------------------------------------------------------------------


class Grid(NamedTuple):
    """Of each unit: v goes from low to high."""

    centre: Array
    scale: Array
    low: Array
    high: Array


def stretched(v: Array, scale: Array) -> tuple[Array, Array]:
    """x − centre, and dx by dv."""
    xp = namespace(v)
    grown = xp.exp(v)
    z = 0.5 * scale * (grown - 1 / grown)
    w, root = _arcsinh(xp.abs(z))
    t = xp.expm1(w / LONG)
    speed = 0.5 * scale * (grown + 1 / grown) / root
    away = 0.5 * LONG * (t + t / (1 + t))
    return xp.where(z < 0, -away, away), speed * (1 + 0.5 * t * t / (1 + t))


def unstretched(x: Array, scale: Array) -> Array:
    """v of x − centre."""
    xp = namespace(x)
    w = xp.minimum(LONG * _arcsinh(xp.abs(x) / LONG)[0], FARTHEST)
    t = xp.expm1(w)
    v = _arcsinh(0.5 * (t + t / (1 + t)) / scale)[0]
    return xp.where(x < 0, -v, v)


def _arcsinh(z: Array) -> tuple[Array, Array]:
    """Of what is not negative, and √(1 + z²). Shorter to compile than the library's."""
    xp = namespace(z)
    root = xp.sqrt(1 + z * z)
    return xp.log1p(z + z * (z / (1 + root))), root


def grid(line: Line, log_likelihood: LogLikelihood) -> Grid:
    """Around the highest peak of prior times likelihood, as far as there is mass."""
    line = jax.lax.stop_gradient(line)
    sharpness = line.sharpness()
    peak = jnp.zeros_like(sharpness)
    drop, _ = effort(peak.dtype)
    # A probability is at most one: so far from the prior's peak may the data lead.
    conflict = jnp.abs(log_likelihood(*line.theta(peak[..., None]))[..., 0])
    reach = line.reach(drop + jnp.where(conflict < 1e5, conflict, 1e5))

    def closer(_: Any, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """Look at some places; keep those that matter, and climb from the highest."""
        x = placed(_between(*state), COARSE)[0]
        heights = line.height(x)[0] + log_likelihood(*line.theta(x))
        heights = jnp.where(jnp.isnan(heights), -jnp.inf, heights)
        matters = heights >= heights.max(-1, keepdims=True) - drop
        near = jnp.pad(matters, [(0, 0)] * (x.ndim - 1) + [(1, 1)])
        near = near[..., :-2] | near[..., 1:-1] | near[..., 2:]
        first, last = jnp.where(near, x, jnp.inf).min(-1), jnp.where(near, x, -jnp.inf).max(-1)
        # At either end what lies beyond the places looked at is kept, too.
        first = jnp.where(near[..., 0], state[2], first)
        last = jnp.where(near[..., -1], state[3], last)
        centre, found = _peak(line, log_likelihood, x, heights)
        return centre, _scale(found), first, last

    state = jax.lax.fori_loop(0, 2, closer, (peak, _scale(sharpness), *reach))
    return jax.lax.stop_gradient(_between(*state))


def _scale(sharpness: Array) -> Array:
    """A peak's width; at most one, as likelihoods turn within a unit."""
    return 1 / jnp.sqrt(jnp.maximum(sharpness, 1.0))


def _between(centre: Array, scale: Array, first: Array, last: Array) -> Grid:
    ends = unstretched(jnp.stack([first, last]) - centre, scale)
    return Grid(centre, scale, ends[0], ends[1])


def placed(of: Grid, number: int) -> tuple[Array, Array]:
    """As many nodes, with equal steps of v: x, and dx by dv."""
    share = (np.arange(number) + 0.5) / number
    v = of.low[..., None] + (of.high - of.low)[..., None] * share.astype(of.low.dtype)
    x, speed = stretched(v, of.scale[..., None])
    return of.centre[..., None] + x, speed


def _peak(
    line: Line, log_likelihood: LogLikelihood, x: Array, heights: Array
) -> tuple[Array, Array]:
    """The highest place and how sharp it is, by Newton's method between the neighbours of the
    highest of some places. Where that leads nowhere the gap is halved."""
    top = jnp.argmax(heights, -1, keepdims=True)
    most = x.shape[-1] - 1

    def at(index: Array) -> Array:
        return jnp.take_along_axis(x, jnp.clip(index, 0, most), -1)

    def slopes(place: Array) -> tuple[Array, Array]:
        one = jnp.ones_like(place)
        seen = lambda p: log_likelihood(*line.theta(p))  # noqa: E731
        rise = lambda p: jax.jvp(seen, (p,), (one,))[1]  # noqa: E731
        first, second = jax.jvp(rise, (place,), (one,))
        _, prior, bend = line.height(place)
        first, second = prior + first, bend + second
        return jnp.where(jnp.isnan(first), 0.0, first), jnp.where(jnp.isnan(second), 0.0, second)

    def step(_: Any, state: tuple[Array, ...]) -> tuple[Array, ...]:
        place, low, high, _ = state
        first, second = slopes(place)
        low, high = jnp.where(first > 0, place, low), jnp.where(first > 0, high, place)
        newton = place - first / jnp.minimum(second, -1e-30)
        inside = (second < 0) & (newton > low) & (newton < high)
        return jnp.where(inside, newton, 0.5 * (low + high)), low, high, -second

    start = (at(top), at(top - 1), at(top + 1), jnp.zeros_like(at(top)))
    place, _, _, sharpness = jax.lax.fori_loop(0, STEPS, step, start)
    return place[..., 0], sharpness[..., 0]


# --- the integral -------------------------------------------------------------------------------


def log_integral(line: Line, log_likelihood: LogLikelihood, of: Grid) -> Array:
    """log ∫ π(θ; λ) p(y | θ) dθ of each unit."""
    _, number = effort(of.low.dtype)
    x, speed = placed(of, number)
    step = (of.high - of.low) / number
    seen = log_likelihood(*jax.lax.stop_gradient(line).theta(x)) + jnp.log(speed)
    logs = line.log_density(x) + jnp.where(jnp.isnan(seen), -jnp.inf, seen)
    return jax.nn.logsumexp(logs, -1) + jnp.log(step)
