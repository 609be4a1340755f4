"""The entropy of a mixture of numbers on a line, in nats: −∫ f log f.

On a scale where the support is the whole line a density is smooth and its tails vanish. Then the
plain sum over equal steps is nearly exact, and halving the step squares its error. Where two such
sums, or their masses and one, disagree (a spike beside a long tail), panels are halved until two
rules agree on each.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from ldf.distributions.beta import Beta, beta_log_partition
from ldf.distributions.mixture_units import Units, columns, location, log_sum
from ldf.distributions.search import Scale
from ldf.special import beta_quantile

TAIL = 1e-11  # the mass left out at either end
STEPS = 24  # of the first sum
HALVINGS = 3
AGREE = 1e-7  # the next sum is off by about the square of this
LARGEST = 1e8  # pseudo-observations that leave digits enough in a plain Beta density


def entropy(of: Units) -> np.ndarray:
    plain = np.zeros(len(of), bool)
    if isinstance(of.components, Beta):
        natural = of.components.natural
        worth = np.where(of.weights > 0, natural.successes + natural.failures, 0.0)
        plain = worth.max(0) < LARGEST
    found = np.zeros(len(of))
    for kind, rows in ((_Rate, np.nonzero(plain)[0]), (_Line, np.nonzero(~plain)[0])):
        if len(rows):
            line = kind.of(of[rows])
            found[rows], good = _by_equal_steps(line)
            found[rows[~good]] = _by_panels(line[~good])
    return found


# --- places without ends ------------------------------------------------------------------------


class _Line:
    """Units on scales on which the support is the whole line and tails are short: identity, log or
    logit, and of that a line near the middle, a logarithm far from it."""

    def __init__(self, of: Units, centre: np.ndarray, spread: np.ndarray) -> None:
        self.units, self.centre, self.spread = of, centre, spread
        self.scale = Scale(of.support)

    @classmethod
    def of(cls, of: Units) -> Self:
        low, centre, high = columns(Scale(of.support).place, of.knots(3)).T
        return cls(of, centre, np.maximum((high - low) / 2, 1e-300))

    def __getitem__(self, rows: np.ndarray) -> Self:
        return type(self)(self.units[rows], self.centre[rows], self.spread[rows])

    def __len__(self) -> int:
        return len(self.units)

    def place(self, x: np.ndarray) -> np.ndarray:
        return self.stretched(self.scale.place(x))

    def stretched(self, plain: np.ndarray) -> np.ndarray:
        return np.arcsinh((plain - self.centre) / self.spread)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The places outside of which is next to nothing."""
        low, _ = self.units.ends(self.units.components.quantile(TAIL))
        _, high = self.units.ends(self.units.components.quantile(1 - TAIL))
        return self.place(low), self.place(high)

    def logs(self, plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """At places on the plain scale: of the density, and of dx by d(plain place)."""
        x = self.scale.value(plain)
        return self.units.log_prob(x), np.log(self.scale.speed(x))

    def terms(self, place: np.ndarray) -> np.ndarray:
        """The integrands of the entropy and of the mass."""
        log_density, log_speed = self.logs(self.centre + self.spread * np.sinh(place))
        mass = np.exp(log_density + log_speed) * self.spread * np.cosh(place)
        return np.stack([np.where(mass > 0, -mass * log_density, 0.0), mass])

    def beyond(self, low: np.ndarray) -> np.ndarray:
        """−∫ f log f from 0 to x, where f is a power c·t^(β − 1): with p = P(below x), and so
        β = x f(x)/p, it is −p (log f(x) − 1 + 1/β)."""
        if self.scale.lower < 0:
            return np.zeros(len(self))
        x = self.scale.value(self.centre + self.spread * np.sinh(low))
        below, log_density = self.units.cdf(x), self.units.log_prob(x)
        exponent = x * np.exp(log_density) / below
        found = -below * (log_density - 1 + 1 / exponent)
        return np.where((below > 0) & np.isfinite(found), found, 0.0)


class _Rate(_Line):
    """A Beta by the logarithms of x and of 1 − x, of which neither is ever rounded to zero."""

    def __init__(self, of: Units, centre: np.ndarray, spread: np.ndarray) -> None:
        super().__init__(of, centre, spread)
        natural = of.components.natural
        self.a, self.b = natural.successes, natural.failures
        self.constant = of.log_weights() - Beta.log_partition(natural)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        low, _ = self.units.ends(_log_odds_of_tail(self.a, self.b))
        over, _ = self.units.ends(_log_odds_of_tail(self.b, self.a))
        return self.stretched(low), self.stretched(-over)

    def logs(self, plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        log_x, log_rest = -np.logaddexp(0.0, -plain), -np.logaddexp(0.0, plain)
        parts = self.constant + (self.a - 1) * log_x + (self.b - 1) * log_rest
        return log_sum(parts), log_x + log_rest

    def beyond(self, low: np.ndarray) -> np.ndarray:
        return np.zeros(len(self))


def _log_odds_of_tail(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Below which is the tail; P(below x) is x^a / aB(a, b) where x is smaller than any float."""
    x = beta_quantile(a, b, TAIL)
    far = (np.log(TAIL * a) + beta_log_partition(a, b)) / a
    return np.where(x > 1e-300, np.log(x) - np.log1p(-x), far)


# --- equal steps --------------------------------------------------------------------------------


@np.errstate(all="ignore")
def _by_equal_steps(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """The entropies, and which of them are good."""
    found, good = np.zeros(len(line)), np.zeros(len(line), bool)
    low, high = line.ends()
    left = np.arange(len(line))
    step, number = (high - low) / STEPS, STEPS
    total = step * sum(line.terms(low + i * step) for i in range(number + 1))
    for _ in range(HALVINGS):
        between = step * sum(line.terms(low + (i + 0.5) * step) for i in range(number))
        before, total = total, (total + between) / 2
        off = np.abs([total[0] - before[0], total[1] - 1, before[1] - 1]).max(0)
        found[left], good[left] = total[0], off <= AGREE
        more = ~good[left]
        if not more.any():
            break
        left, line, low, total = left[more], line[more], low[more], total[:, more]
        step, number = step[more] / 2, 2 * number
    return found, good


# --- panels -------------------------------------------------------------------------------------

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
BEGIN = (-8, -2.5, 0, 2.5, 8)  # by the spread from the middle
PRECISION = 1e-7


@np.errstate(all="ignore")
def _by_panels(line: _Line) -> np.ndarray:
    """Panels are halved until two rules agree on each."""
    if not len(line):
        return np.zeros(0)
    low, high = (end[:, None] for end in line.ends())
    # They begin in the middle of each component and some way to either side, lest one is missed.
    centre, spread = location(line.units.components)
    inner = columns(line.place, np.concatenate([centre + z * spread for z in BEGIN]).T)
    inner = np.where(np.isnan(inner), low, np.clip(inner, low, high))
    edges = np.sort(np.concatenate([low, inner, high], 1), 1)
    entropy, panels = line.beyond(low[:, 0]), edges.shape[1] - 1
    rows = np.repeat(np.arange(len(line)), panels)
    a, b = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    rows, a, b = (part[a < b] for part in (rows, a, b))
    for _ in range(40):
        if not len(rows):
            break
        at, fine, coarse = line[rows], np.zeros(len(rows)), np.zeros(len(rows))
        for node, kronrod, gauss in zip(NODES, KRONROD, GAUSS, strict=True):
            for side in (-1, 1) if node else (1,):
                value = at.terms((a + b) / 2 + (b - a) / 2 * node * side)[0] * (b - a) / 2
                fine, coarse = fine + kronrod * value, coarse + gauss * value
        # Kronrod's error is about the power 3/2 of the difference, as in QUADPACK.
        agree = (200 * np.abs(fine - coarse)) ** 1.5 <= PRECISION
        np.add.at(entropy, rows[agree], fine[agree])
        rows, a, b = np.repeat(rows[~agree], 2), a[~agree], b[~agree]
        middle = (a + b) / 2
        a, b = np.stack([a, middle], 1).ravel(), np.stack([middle, b], 1).ravel()
    return entropy
