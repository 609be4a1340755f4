"""A posterior of θ on quadrature nodes.

The log density of a posterior without conjugate form is a polynomial on each of some panels (see
`quadrature`). From those follow all that a `Continuous` distribution is asked.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ldf.distributions import mixture_interval
from ldf.distributions.base import Continuous, check_q, on_host
from ldf.distributions.mixture_units import Units
from ldf.distributions.quadrature import LONG, Grid, Line, LogLikelihood, stretched, unstretched
from ldf.distributions.search import Scale
from ldf.special import Array, check_draws

PANELS, TERMS = 48, 10
HALVINGS = 60
BLOCK = 1 << 16  # quantiles looked for at once
SOMEWHERE = 0.5  # a θ inside of every support, to stand where one outside was asked about
FLAT = 1e-6  # an exponent this near to one leaves a finite density at the end of the support


class Legendre(NamedTuple):
    """Gauss's rule on −1 … 1, and polynomials through its places."""

    places: np.ndarray
    weights: np.ndarray
    values: np.ndarray  # of each polynomial (second axis) at the places
    to_terms: np.ndarray  # from values at the places to the polynomials' share


@cache
def legendre(terms: int) -> Legendre:
    places, weights = np.polynomial.legendre.leggauss(terms)
    values = np.polynomial.legendre.legvander(places, terms - 1)
    to_terms = (weights[:, None] * values) * (np.arange(terms) + 0.5)
    return Legendre(places, weights, values, to_terms)


SHARES = (np.arange(PANELS)[:, None] + 0.5 + 0.5 * legendre(TERMS).places).reshape(-1) / PANELS


class Panels(NamedTuple):
    """A density of v on panels of equal width: its logarithm there, by Legendre polynomials, with a
    constant that makes the masses of all panels sum to one."""

    grid: Grid
    peak: Array
    unit: Array
    curve: Array  # units × panels × terms


def panels(line: Line, log_likelihood: LogLikelihood, of: Grid) -> Panels:
    """Of θ after data: prior times likelihood, up to a factor."""
    v = of.low[..., None] + (of.high - of.low)[..., None] * SHARES
    x, speed = stretched(v, of.scale[..., None])
    x = of.centre[..., None] + x
    logs = line.log_density(x) + log_likelihood(*line.theta(x)) + jnp.log(speed)
    top = logs.max(-1, keepdims=True)
    logs = jnp.maximum(jnp.where(jnp.isnan(logs), -jnp.inf, logs) - top, -800.0)
    rule = legendre(TERMS)
    curve = logs.reshape((*logs.shape[:-1], PANELS, TERMS)) @ rule.to_terms
    total = (jnp.exp(curve @ rule.values.T) @ rule.weights).sum(-1, keepdims=True)
    return Panels(of, *line.origin, curve.at[..., 0].add(-jnp.log(total)))


class OnNodes(Continuous):
    """Of θ, by the logarithm of its density on panels."""

    line: type[Line] = eqx.field(static=True)
    panels: Panels

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.panels.peak)

    @property
    def support(self) -> tuple[float, float]:
        return self.line.support

    def __getitem__(self, rows: Any) -> OnNodes:
        grid = self.panels.grid
        some = type(grid)(*(part[rows] for part in grid))
        rest = (part[rows] for part in self.panels[1:])
        return OnNodes(self.line, Panels(some, *rest))

    # --- panels and places ---

    def _spaced(self, share: np.ndarray) -> np.ndarray:
        """v at shares of the way from low to high, in front of the units."""
        grid = self.panels.grid
        return grid.low + (grid.high - grid.low) * share.reshape(-1, *[1] * len(self.shape))

    def _log_factor(self) -> np.ndarray:
        """What the curve lacks to be the log density of v."""
        return np.log(2 * PANELS / (self.panels.grid.high - self.panels.grid.low))

    def _nodes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """θ, its log density and the nodes' masses, which sum to one: nodes × units."""
        rule = legendre(TERMS)
        logs = np.moveaxis(self.panels.curve @ rule.values.T, (-2, -1), (0, 1))
        mass = np.exp(logs) * rule.weights.reshape(-1, *[1] * len(self.shape))
        logs, mass = (part.reshape(-1, *self.shape) for part in (logs, mass))
        theta, log_speed = self._theta(self._spaced(SHARES))
        return theta, logs + self._log_factor() - log_speed, mass / mass.sum(0)

    def _place(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On the scale without ends, and its derivative by v."""
        of = self.panels
        x, speed = stretched(v, of.grid.scale)
        return of.peak + of.unit * (of.grid.centre + x), of.unit * speed

    def _by_place(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log dθ by dplace, and its derivative."""
        if self.support[1] == 1:
            return -np.logaddexp(0, place) - np.logaddexp(0, -place), -np.tanh(place / 2)
        if self.support[0] == 0:
            return place, np.ones_like(place)
        return np.zeros_like(place), np.zeros_like(place)

    def _theta(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """θ at v, and log dθ by dv."""
        place, speed = self._place(v)
        return Scale(self.support).value(place), self._by_place(place)[0] + np.log(speed)

    def _v(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of θ, its place and the v nearest to it on the panels."""
        of, place = self.panels, theta
        if self.support[1] == 1:
            place = np.log(theta) - np.log1p(-theta)
        elif self.support[0] == 0:
            place = np.log(theta)
        v = unstretched((place - of.peak) / of.unit - of.grid.centre, of.grid.scale)
        return place, np.clip(v, of.grid.low, of.grid.high)

    def _local(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """v's panel, its polynomial, and where in it, −1 … 1."""
        grid = self.panels.grid
        at = np.clip((v - grid.low) / (grid.high - grid.low) * PANELS, 0.0, PANELS)
        panel = np.minimum(np.floor(at), PANELS - 1).astype(np.int64)
        curve = np.broadcast_to(self.panels.curve, (*np.shape(at), PANELS, TERMS))
        curve = np.take_along_axis(curve, panel[..., None, None], -2)[..., 0, :]
        return panel, curve, 2 * (at - panel) - 1

    def _curve(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log density of v on the panels, up to its constant, and its slope."""
        _, curve, t = self._local(v)
        value, slope = _legendre_sum(curve, t)
        return value, slope * 2 * PANELS / (self.panels.grid.high - self.panels.grid.low)

    def _height(self, theta: Any) -> tuple[np.ndarray, ...]:
        """The place of θ, the log density of the place and its slope, and where θ is inside of the
        support. Beyond the panels it is a line: near an end of the support θ has a power."""
        x, _ = np.broadcast_arrays(np.asarray(theta, float), self.panels.peak)
        inside = (x > self.support[0]) & (x < self.support[1])
        place, v = self._v(np.where(inside, x, SOMEWHERE))
        (value, slope), (near, speed) = self._curve(v), self._place(v)
        slope = (slope - self._bend(v)) / speed
        value = value + self._log_factor() - np.log(speed) + slope * (place - near)
        return place, value, slope, inside

    def _masses(self) -> np.ndarray:
        """Of each panel."""
        rule = legendre(TERMS)
        return np.exp(self.panels.curve @ rule.values.T) @ rule.weights

    def _in_panel(self, curve: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The mass of a panel up to t."""
        rule, half = legendre(TERMS), (t + 1) / 2
        points = -1 + half[..., None] * (1 + rule.places)
        logs = _legendre_sum(curve[..., None, :], points)[0]
        return half * (np.exp(logs) @ rule.weights)

    # --- answers ---

    def mean(self) -> Array:
        theta, _, mass = self._nodes()
        return (mass * theta).sum(0)

    def variance(self) -> Array:
        theta, _, mass = self._nodes()
        return (mass * (theta - (mass * theta).sum(0)) ** 2).sum(0)

    def entropy(self) -> Array:
        _, logs, mass = self._nodes()
        return -(mass * logs).sum(0)

    @on_host
    def log_prob(self, value: Any) -> Array:
        place, height, _, inside = self._height(value)
        found = np.where(inside, height - self._by_place(place)[0], -np.inf)
        if np.isin(value, self.support).any():
            for end, at_end in zip(self.support, self._at_ends()[1], strict=True):
                found = np.where(value == end, at_end, found)
        return found

    def _at_ends(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """θ^e near the lower end of the support, (1 − θ)^e near the upper: the exponents e + 1, and
        the log density at the ends."""
        grid, exponents, logs = self.panels.grid, [], []
        for edge, sign, finite in zip(
            (grid.low, grid.high), (1, -1), np.isfinite(self.support), strict=True
        ):
            value, slope = self._curve(edge)
            height = value + self._log_factor() - self._theta(edge)[1]
            # The density of the place is that of v, less the logarithm of its speed.
            by_place = (slope - self._bend(edge)) / self._place(edge)[1]
            exponent = sign * by_place if finite else np.full(self.shape, np.inf)
            flat = np.where(np.abs(exponent - 1) <= FLAT, height, -np.inf)
            exponents.append(exponent)
            logs.append(np.where(exponent < 1 - FLAT, np.inf, flat))
        return exponents, logs

    def slope(self, value: Array) -> Array:
        """At the ends of the support there is none."""
        place, _, slope, inside = self._height(value)
        log_by_place, bend = self._by_place(place)
        with np.errstate(over="ignore"):
            return np.where(inside, (slope - bend) / np.exp(log_by_place), np.nan)

    def _rise(self, v: np.ndarray) -> np.ndarray:
        """The derivative by v of the log density of θ."""
        place, speed = self._place(v)
        return self._curve(v)[1] - self._bend(v) - self._by_place(place)[1] * speed

    def _bend(self, v: np.ndarray) -> np.ndarray:
        """The derivative by v of the log of dx by dv: that is w′ cosh(w/L), see `quadrature`."""
        scale = self.panels.grid.scale
        z = scale * np.sinh(v)
        root = np.sqrt(1 + z * z)
        speed = scale * np.cosh(v) / root  # dw by dv
        return np.tanh(v) - z / root * speed + speed * np.tanh(np.arcsinh(z) / LONG) / LONG

    def mode(self) -> Array:
        _, logs, _ = self._nodes()
        # Between the neighbours of the highest node, by the sign of the slope.
        shares, top = np.concatenate([[0.0], SHARES, [1.0]]), logs.argmax(0)
        grid = self.panels.grid
        low, high = (grid.low + (grid.high - grid.low) * shares[top + i] for i in (0, 2))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rises = self._rise(middle) > 0
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
        found, best = self._theta((low + high) / 2)[0], logs.max(0)
        (first, last), (at_start, at_end) = self._at_ends()
        start, end = self.support
        found = np.where((at_start >= best) & (at_start >= at_end), start, found)
        found = np.where((at_end >= best) & (at_end > at_start), end, found)
        both = np.isposinf(at_start) & np.isposinf(at_end)
        nearer = np.where(last < first - FLAT, end, np.nan)
        return np.where(both, np.where(first < last - FLAT, start, nearer), found)

    @on_host
    def cdf(self, value: Any) -> Array:
        return self._below(value)[0]

    @on_host
    def exceeds(self, value: Any) -> Array:
        return self._below(value)[1]

    def _below(self, value: Any) -> tuple[np.ndarray, np.ndarray]:
        """P(at most value) and P(more than it), each summed from its own side."""
        x, _ = np.broadcast_arrays(np.asarray(value, float), self.panels.peak)
        start, end = self.support
        _, v = self._v(np.where((x > start) & (x < end), x, SOMEWHERE))
        panel, curve, t = self._local(v)
        inside, panel = self._in_panel(curve, t), panel[..., None]
        mass = np.broadcast_to(self._masses(), (*v.shape, PANELS))
        before = np.take_along_axis(np.cumsum(mass, -1) - mass, panel, -1)[..., 0]
        own = np.take_along_axis(mass, panel, -1)[..., 0]
        after = np.cumsum(mass[..., ::-1], -1)[..., ::-1] - mass
        after = np.take_along_axis(after, panel, -1)[..., 0]
        below, above = before + inside, after + np.maximum(own - inside, 0.0)
        out_low, out_high = x <= start, x >= end
        below = np.where(out_low, 0.0, np.where(out_high, 1.0, below))
        return np.minimum(below, 1.0), np.where(
            out_low, 1.0, np.where(out_high, 0.0, np.minimum(above, 1.0))
        )

    @on_host
    def quantile(self, q: Any) -> Array:
        check_q(q)
        level, _ = np.broadcast_arrays(np.asarray(q, float), self.panels.peak)
        size = int(np.prod(self.shape))
        rows = np.unravel_index(np.arange(size), self.shape) if self.shape else (None,)
        flat, levels = self[rows], level.reshape(-1)
        unit = np.broadcast_to(np.arange(size).reshape(self.shape), level.shape).reshape(-1)
        pieces = (slice(i, i + BLOCK) for i in range(0, max(len(levels), 1), BLOCK))
        found = [flat._reached(unit[piece], levels[piece]) for piece in pieces]
        return np.concatenate(found).reshape(level.shape)

    def _reached(self, unit: np.ndarray, level: np.ndarray) -> np.ndarray:
        """Where the distribution function of each of some units reaches a level."""
        mass = self._masses()
        up_to = np.cumsum(mass, -1)
        panel = np.minimum((up_to[unit] < level[:, None]).sum(-1), PANELS - 1)
        before = np.where(panel > 0, up_to[unit, panel - 1], 0.0)
        wanted, curve = level - before, self.panels.curve[unit, panel]
        low, high = -np.ones(len(level)), np.ones(len(level))
        t = np.clip(2 * wanted / mass[unit, panel] - 1, -1.0, 1.0)
        left = np.arange(len(level))
        for _ in range(HALVINGS):
            missing = wanted[left] - self._in_panel(curve[left], t[left])
            short = missing > 0
            low[left] = np.where(short, t[left], low[left])
            high[left] = np.where(short, high[left], t[left])
            step = missing / np.exp(_legendre_sum(curve[left], t[left])[0])
            inside = (t[left] + step >= low[left]) & (t[left] + step <= high[left])
            t[left] = np.where(inside, t[left] + step, (low[left] + high[left]) / 2)
            # Newton doubles its digits.
            done = (inside & (np.abs(step) < 1e-8)) | (high[left] - low[left] <= 1e-15)
            left = left[~done]
            if not len(left):
                break
        # Of the panels only where they are is needed still.
        bare = self.panels._replace(curve=np.empty((len(mass), 0, 0)))
        of = OnNodes(self.line, bare)[unit]
        grid = of.panels.grid
        v = grid.low + (grid.high - grid.low) * (panel + (t + 1) / 2) / PANELS
        start, end = self.support
        return np.where(level == 0, start, np.where(level == 1, end, of._theta(v)[0]))

    def _narrowest(self, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """There may be a peak inside and one at an end: looked for as in mixtures."""
        size = int(np.prod(self.shape))
        rows = np.unravel_index(np.arange(size), self.shape) if self.shape else (None,)
        units = Units(np.ones((1, size)), self[rows][None])
        lower, upper = mixture_interval.narrowest_interval(units, mass)
        return lower.reshape(self.shape), upper.reshape(self.shape)

    def weighted(self, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """θ and 1 − θ of as many nodes with equal steps of v, and weights that sum to one."""
        v = self._spaced((np.arange(nodes) + 0.5) / nodes)
        (place, _), weight = self._place(v), np.exp(self._curve(v)[0])
        value = Scale(self.support).value
        rest = value(-place) if self.support[1] == 1 else 1 - value(place)
        return value(place), rest, weight / weight.sum(0)

    def extent(self) -> np.ndarray:
        """How long the line is, in the width of what one new datum says of θ."""
        v = self._spaced(SHARES)
        (place, speed), (theta, _) = self._place(v), self._theta(v)
        tell = np.exp(-np.logaddexp(0, place) - np.logaddexp(0, -place))
        tell = tell if self.support[1] == 1 else np.abs(theta) / np.abs(theta).max(0)
        return (self.panels.grid.high - self.panels.grid.low) * (speed * np.sqrt(tell)).max(0)

    def sample(self, draws: int, seed: Any) -> Array:
        check_draws(draws, seed)
        return self.quantile(np.random.default_rng(seed).random((draws, *self.shape)))


def _legendre_sum(curve: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ c_k P_k(t) and its derivative by t, terms on the last axis of `curve`."""
    before, now = np.ones_like(t), t
    slope_before, slope = np.zeros_like(t), np.ones_like(t)
    value, rise = curve[..., 0] + curve[..., 1] * t, curve[..., 1] + 0 * t
    for k in range(1, curve.shape[-1] - 1):
        # (k + 1) P_{k+1} = (2k + 1) t P_k − k P_{k−1}, and its derivative.
        following = ((2 * k + 1) * t * now - k * before) / (k + 1)
        slope_following = slope_before + (2 * k + 1) * now
        before, now = now, following
        slope_before, slope = slope, slope_following
        value, rise = value + curve[..., k + 1] * now, rise + curve[..., k + 1] * slope
    return value, rise
