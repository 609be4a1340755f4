"""The distribution of counts that every peer is scored by.

A peer says of each held-out unit what it knows of θ: its mean, and what that is worth.

    binomial   θ ~ Beta(mean · worth, (1 − mean) · worth),  y ~ Binomial(n, θ)
    poisson    θ ~ Gamma(shape worth, rate worth / mean),   y ~ Poisson(n · θ)

An infinite worth is a known θ. Posterior draws and quadrature nodes are a mixture: components on
the first axis, with weights. So the mass of y is the same kind of number for all, whatever the
peer's own parameters are called.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.stats
from scipy.special import logsumexp

from ldf.special import beta_binomial_log_pmf, gamma_poisson_log_pmf

KNOWN = 1e9  # a worth past this is as good as infinite
FAR = 10.0  # standard deviations from the mean: what lies beyond is in no 90 % set


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
        mean = np.clip(mean, 1e-12, 1 - 1e-12 if kind == "binomial" else None)
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

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each count."""
        n, mean, worth = self.n, self.mean, self.worth
        if self.kind == "binomial":
            variance = n * mean * (1 - mean) * (1 + (n - 1) / (1 + worth))
        else:
            variance = n * mean * (1 + n * mean / worth)
        centre = (self.weight * n * mean).sum(0)
        return centre, np.sqrt((self.weight * (variance + (n * mean - centre) ** 2)).sum(0))

    def interval(self, mass: float = 0.9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The narrowest set of neighbouring whole numbers with at least this mass: its ends, and
        the mass it really has."""
        centre, sd = self.moments()
        low = np.maximum(np.floor(centre - FAR * sd), 0).astype(int)
        high = np.ceil(centre + FAR * sd + 10).astype(int)
        if self.kind == "binomial":
            high = np.minimum(high, self.n.astype(int))
        # All units' whole numbers in one long row: few units have many.
        size = high - low + 1
        unit = np.repeat(np.arange(len(size)), size)
        start = np.cumsum(size) - size
        k = np.arange(size.sum()) - start[unit] + low[unit]
        table = np.zeros(len(k))
        parts = zip(self.mean, self.worth, self.weight, strict=True)
        for mean, worth, weight in parts:
            logs = log_mass(self.kind, k, self.n[unit], mean[unit], worth[unit])
            table += weight[unit] * np.exp(logs)
        found = [_narrowest(table[s : s + m], mass) for s, m in zip(start, size, strict=True)]
        first, last, held = np.array(found).T
        return low + first, low + last, held


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
        spread = gamma_poisson_log_pmf(y, n, worth, worth / mean)
    return np.where(known, plain, np.asarray(spread))


def _narrowest(mass: np.ndarray, wanted: float) -> tuple[int, int, float]:
    """Of a table of masses: the first of the narrowest windows, its end, what it holds."""
    up_to = np.concatenate([[0.0], np.cumsum(mass)])
    wanted = min(wanted, up_to[-1])
    end = np.searchsorted(up_to, up_to[:-1] + wanted - 1e-12)
    whole = end < len(up_to)
    width = np.where(whole, end - np.arange(len(mass)), len(mass) + 1)
    best = width.min()
    # Of windows as narrow, the one that holds most.
    at = np.flatnonzero(width == best)
    held = up_to[at + best] - up_to[at]
    first = int(at[held.argmax()])
    return first, first + int(best) - 1, float(held.max())


def nodes(mean: np.ndarray, sd: np.ndarray, many: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """A normal as so many points, components × units, and their weights: Gauss–Hermite."""
    places, weights = np.polynomial.hermite_e.hermegauss(many)
    return mean + places[:, None] * sd, weights / weights.sum()
