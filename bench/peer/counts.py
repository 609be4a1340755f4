"""The distribution of counts that every peer is scored by.

A peer says of each held-out unit what it knows of θ: its mean, and what that is worth.

    binomial   θ ~ Beta(mean · worth, (1 − mean) · worth),  y ~ Binomial(n, θ)
    poisson    θ ~ Gamma(shape worth, rate worth / mean),   y ~ Poisson(n · θ)

An infinite worth is a known θ. Posterior draws and quadrature nodes are a mixture: components on
the first axis, with weights. So the mass of y is the same kind of number for all, whatever the
peer's own parameters are called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.stats
from scipy.special import betainc, gammaincc, logsumexp

from ldf.special import beta_binomial_log_pmf, gamma_poisson_log_pmf

KNOWN = 1e9  # a worth past this is as good as infinite
WIDE = 1e20  # times its worth: a greater mean of a count is past what ldf's own mass is made for
FAR = 10.0  # standard deviations from the mean: by Cantelli, no narrowest 90 % set goes beyond
LAST = 2.0**50  # no count is looked for past this
CELLS = 4000  # of a table of masses, at most: the set of a law wider than that is of whole cells


@dataclass(frozen=True, eq=False)
class Counts:
    """One law a unit."""

    kind: str  # "binomial" or "poisson"
    n: np.ndarray  # units
    mean: np.ndarray  # components × units
    worth: np.ndarray  # components × units
    weight: np.ndarray  # components × units

    @classmethod
    def of(cls, kind: str, n: np.ndarray, mean: object, worth: object, weight=None) -> Counts:
        """From one row or several, and one weight a component, equal if not given."""
        mean = np.atleast_2d(np.asarray(mean, float))
        worth = np.broadcast_to(np.asarray(worth, float), mean.shape)
        mean = np.clip(mean, 1e-12, 1 - 1e-12 if kind == "binomial" else 1e100)
        share = np.full(len(mean), 1 / len(mean)) if weight is None else np.asarray(weight)
        share = share[:, None] if share.ndim == 1 else share
        return cls(kind, np.asarray(n, float), mean, np.maximum(worth, 1e-6),
                   np.broadcast_to(share, mean.shape))  # fmt: skip

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """The log mass of each unit's count."""
        each = np.stack([
            log_mass(self.kind, np.asarray(y, float), self.n, mean, worth)
            for mean, worth in zip(self.mean, self.worth, strict=True)
        ])  # fmt: skip
        return logsumexp(each, axis=0, b=self.weight)

    def interval(self, mass: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The narrowest set of neighbouring whole numbers with at least this mass: its ends, and
        the mass it really has."""
        of = _of_trials if self.kind == "binomial" else _of_exposure
        units = zip(self.n, self.mean.T, self.worth.T, self.weight.T, strict=True)
        low, high, held = np.array([of(mass, *unit) for unit in units]).T
        return low, high, held


def _of_trials(
    mass: float, n: float, mean: np.ndarray, worth: np.ndarray, weight: np.ndarray
) -> tuple[float, float, float]:
    """One unit's set: all its whole numbers within so many standard deviations are tried."""
    variance = n * mean * (1 - mean) * (1 + (n - 1) / (1 + worth))
    centre = weight @ (n * mean)
    far = FAR * np.sqrt(weight @ (variance + (n * mean - centre) ** 2))
    low, high = max(np.floor(centre - far), 0), min(np.ceil(centre + far), n)
    k = np.arange(low, high + 1)
    each = np.exp(log_mass("binomial", k, n, mean[:, None], worth[:, None]))
    first, last, held = _narrowest(np.concatenate([[0.0], np.cumsum(weight @ each)]), mass)
    return low + first, low + last, held


def _of_exposure(
    mass: float, n: float, mean: np.ndarray, worth: np.ndarray, weight: np.ndarray
) -> tuple[float, float, float]:
    """One unit's set. The variance is no guide to where it lies: one draw of a posterior, of
    hundreds, can make it huge. But the narrowest set is no wider than that of equal tails, and
    overlaps it; and that has a quantile at each end."""

    def up_to(k: np.ndarray) -> np.ndarray:
        return weight @ mass_up_to(k, n * mean[:, None], worth[:, None])

    left, right = (_quantile(up_to, level) for level in ((1 - mass) / 2, (1 + mass) / 2))
    low, high = max(left - (right - left), 0), right + (right - left)
    cell = np.ceil((high - low + 1) / CELLS)
    edges = np.arange(low - 1, high + cell, cell)
    first, last, held = _narrowest(up_to(edges), mass)
    return edges[first] + 1, edges[last + 1], held


def _quantile(up_to: Callable[[np.ndarray], np.ndarray], level: float) -> float:
    """The least whole number up to which there is so much mass; `LAST` if there is none."""
    low, high = -1.0, 1.0
    while up_to(np.array([high]))[0] < level:  # doubled until it is enough, then halved
        if high >= LAST:
            return LAST
        low, high = high, 2 * high
    while high - low > 1:
        middle = np.floor((low + high) / 2)
        if up_to(np.array([middle]))[0] < level:
            low = middle
        else:
            high = middle
    return high


def mass_up_to(k: np.ndarray, mean: np.ndarray, worth: np.ndarray) -> np.ndarray:
    """The mass that a Poisson or negative binomial count of this mean has up to k, from −1 on."""
    known = worth > KNOWN
    worth = np.where(known, 1.0, worth)
    plain = gammaincc(k + 1, mean)
    spread = betainc(worth, k + 1, worth / (worth + mean))
    return np.where(k < 0, 0.0, np.where(known, plain, spread))


def log_mass(
    kind: str, y: np.ndarray, n: np.ndarray, mean: np.ndarray, worth: np.ndarray
) -> np.ndarray:
    """Of one component, elementwise."""
    known = worth > KNOWN
    worth = np.where(known, 1.0, worth)
    if kind == "binomial":
        plain = scipy.stats.binom.logpmf(y, n, mean)
        spread = beta_binomial_log_pmf(y, n - y, mean * worth, (1 - mean) * worth)
    else:
        plain = scipy.stats.poisson.logpmf(y, n * mean)
        spread = np.where(
            n * mean < WIDE * worth,
            gamma_poisson_log_pmf(y, n, worth, worth / mean),
            scipy.stats.nbinom.logpmf(y, worth, worth / (worth + n * mean)),
        )
    return np.where(known, plain, np.asarray(spread))


def _narrowest(up_to: np.ndarray, wanted: float) -> tuple[int, int, float]:
    """Of masses summed up, from before the first cell to the last: the first cell of the narrowest
    window, its last, what it holds."""
    many = len(up_to) - 1
    wanted = min(wanted, up_to[-1] - up_to[0])
    end = np.searchsorted(up_to, up_to[:-1] + wanted - 1e-12)
    width = np.where(end <= many, end - np.arange(many), many + 1)
    best = int(width.min())
    # Of windows as narrow, the one that holds most.
    at = np.flatnonzero(width == best)
    held = up_to[at + best] - up_to[at]
    first = int(at[held.argmax()])
    return first, first + best - 1, float(held.max())


def nodes(mean: np.ndarray, sd: np.ndarray, many: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """A normal as so many points, components × units, and their weights: Gauss–Hermite."""
    places, weights = np.polynomial.hermite_e.hermegauss(many)
    return mean + places[:, None] * sd, weights / weights.sum()
