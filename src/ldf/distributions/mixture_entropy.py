"""The entropy of a mixture of numbers on a line, in nats: −∫ f log f.

On a scale where the support is the whole line a density is smooth and its tails vanish. Then the
plain sum over equal steps is nearly exact, and halving the step squares its error. Where two such
sums, or their masses and one, disagree (a spike beside a long tail), panels are halved until two
rules agree on each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ldf.distributions.beta import Beta
from ldf.distributions.mixture_units import Units, columns, location, log_sum
from ldf.distributions.search import Scale
from ldf.statistic import Trials

TAIL = 1e-11  # the mass left out at either end
STEPS = 24  # of the first sum
HALVINGS = 3
AGREE = 1e-6  # the next sum is off by about the square of this
LARGEST = 1e7  # pseudo-observations that leave digits enough in a plain Beta density


def entropy(of: Units) -> np.ndarray:
    found, left = np.zeros(len(of)), np.arange(len(of))
    if isinstance(of.components, Beta):
        natural = of.components.natural
        worth = np.where(of.weights > 0, natural.successes + natural.failures, 0.0).max(0)
        left = np.nonzero(worth < LARGEST)[0]
    found[left], good = _by_equal_steps(of[left])
    good = np.isin(np.arange(len(of)), left[good])
    found[~good] = _carefully(of[~good])
    return found


# --- equal steps --------------------------------------------------------------------------------


@np.errstate(all="ignore")
def _by_equal_steps(of: Units) -> tuple[np.ndarray, np.ndarray]:
    """The entropies, and which of them are good."""
    found, good = np.zeros(len(of)), np.zeros(len(of), bool)
    line = _Line.of(of, of.support[1])
    low, high = _outermost(of, line)
    left = np.nonzero(np.isfinite(high - low))[0]
    low, step, number = low[left], (high - low)[left] / STEPS, STEPS
    terms = _terms(of[left], line[left])
    total = step * sum(terms(low + i * step) for i in range(number + 1))
    for _ in range(HALVINGS):
        between = step * sum(terms(low + (i + 0.5) * step) for i in range(number))
        before, total = total, (total + between) / 2
        off = np.abs([total[0] - before[0], total[1] - 1, before[1] - 1]).max(0)
        found[left], good[left] = total[0], off <= AGREE
        more = ~good[left]
        left, low, step, number = left[more], low[more], step[more] / 2, 2 * number
        if not len(left):
            break
        total, terms = total[:, more], _terms(of[left], line[left])
    return found, good


def _outermost(of: Units, line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """The places outside of which is next to nothing."""
    low, _ = of.ends(of.components.quantile(TAIL))
    if isinstance(of.components, Beta):  # next to 1 as exact as next to 0
        over, _ = of.ends(_mirrored(of.components).quantile(TAIL))
        return line.stretch(np.log(low) - np.log1p(-low)), line.stretch(
            np.log1p(-over) - np.log(over)
        )
    _, high = of.ends(of.components.quantile(1 - TAIL))
    return line.place(low), line.place(high)


def _terms(of: Units, line: _Line) -> Callable[[np.ndarray], np.ndarray]:
    """At places on the line: the integrands of the entropy and of the mass."""
    if isinstance(of.components, Beta):
        # By the logarithms of x and of 1 − x, of which neither is ever rounded to zero.
        natural = of.components.natural
        constant = of.log_weights() - Beta.log_partition(natural)
        a, b = natural.successes - 1, natural.failures - 1

        def logs(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            logit, speed = line.plain(place)
            log_x, log_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
            log_density = log_sum(constant + a * log_x + b * log_rest)
            return log_density, log_x + log_rest + np.log(speed)
    else:

        def logs(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x, speed = line.value(place)
            return of.log_prob(x), np.log(speed)

    def terms(place: np.ndarray) -> np.ndarray:
        log_density, log_speed = logs(place)
        mass = np.exp(log_density + log_speed)
        return np.stack([np.where(mass > 0, -mass * log_density, 0.0), mass])

    return terms


def _mirrored(of: Beta) -> Beta:
    return Beta(Trials(of.natural.failures, of.natural.successes))


class _Line:
    """A scale for each unit on which the support is the whole line and tails are short: identity,
    log or logit, and of that a line near the middle, a logarithm far from it."""

    def __init__(self, scale: Scale, centre: np.ndarray, spread: np.ndarray) -> None:
        self.scale, self.centre, self.spread = scale, centre, spread

    @classmethod
    def of(cls, of: Units, until: float) -> _Line:
        scale = Scale((of.support[0], until))
        low, centre, high = columns(line.place, np.minimum(of.knots(3), until)).T
        return cls(scale, centre, np.maximum((high - low) / 2, 1e-300))

    def __getitem__(self, rows: np.ndarray) -> _Line:
        return _Line(self.scale, self.centre[rows], self.spread[rows])

    def place(self, x: np.ndarray) -> np.ndarray:
        return self.stretch(self.scale.place(x))

    def stretch(self, plain: np.ndarray) -> np.ndarray:
        return np.arcsinh((plain - self.centre) / self.spread)

    def plain(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place on the plain scale, and its change by that here."""
        return self.centre + self.spread * np.sinh(place), self.spread * np.cosh(place)

    def value(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x, and dx by d(place)."""
        plain, speed = self.plain(place)
        x = self.scale.value(plain)
        return x, self.scale.speed(x) * speed


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
PRECISION = 1e-7


def _carefully(of: Units) -> np.ndarray:
    found, halved = np.zeros(len(of)), np.zeros(len(of), bool)
    if isinstance(of.components, Beta):
        # Where much may be next to 1, which floats do not resolve: by halves, each from 0.
        steep = (of.components.natural.failures < 1) & (of.weights > 0)
        halved = steep.any(0)
        part = of[halved]
        halves = (part, Units(part.weights, _mirrored(part.components)))
        found[halved] = sum(_by_panels(half, 0.5) for half in halves)
    found[~halved] = _by_panels(of[~halved], of.support[1])
    return found


@np.errstate(all="ignore")
def _by_panels(of: Units, until: float) -> np.ndarray:
    """Up to a place, on a scale without ends: panels are halved until two rules agree on each."""
    if not len(of):
        return np.zeros(0)
    start, line = of.support[0], _Line.of(of, until)
    low, _ = of.ends(of.components.quantile(TAIL))
    _, high = of.ends(of.components.quantile(1 - TAIL))
    if start == 0:
        high = np.clip(high, 2e-300, until)
        low = np.clip(low, 1e-300, high / 2)
    # Panels begin in the middle of each component and some way to either side, lest one is missed.
    centre, spread = location(of.components)
    inner = np.concatenate([centre + z * spread for z in (-8, -2.5, 0, 2.5, 8)]).T
    inner = np.sort(np.clip(inner, low[:, None], high[:, None]), 1)
    edges = columns(line.place, np.concatenate([low[:, None], inner, high[:, None]], 1))

    def integrals(rows: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
        at, on, fine, coarse = of[rows], line[rows], np.zeros(len(rows)), np.zeros(len(rows))
        for node, kronrod, gauss in zip(NODES, KRONROD, GAUSS, strict=True):
            for side in (-1, 1) if node else (1,):
                x, speed = on.value((a + b) / 2 + (b - a) / 2 * node * side)
                log_density = at.log_prob(x)
                f = np.exp(log_density)
                value = np.where(f > 0, -f * log_density * speed, 0.0) * (b - a) / 2
                fine, coarse = fine + kronrod * value, coarse + gauss * value
        return fine, coarse

    entropy, panels = np.zeros(len(of)), edges.shape[1] - 1
    rows, a, b = np.repeat(np.arange(len(of)), panels), edges[:, :-1].ravel(), edges[:, 1:].ravel()
    rows, a, b = (part[a < b] for part in (rows, a, b))
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


def _power_tail(of: Units, x: np.ndarray) -> np.ndarray:
    """−∫ f log f from 0 to x, where f is a power c·t^(β − 1): with p = P(below x), and so
    β = x f(x)/p, it is −p (log f(x) − 1 + 1/β)."""
    below, log_density = of.cdf(x), of.log_prob(x)
    exponent = x * np.exp(log_density) / below
    found = -below * (log_density - 1 + 1 / exponent)
    return np.where((below > 0) & np.isfinite(found), found, 0.0)
