"""The weights alone, with z and θ summed out: draws that are all but independent.

    p(β | y)  ∝  Dir(β; α) Π_i Σ_k β_k p(y_i | x_i, z_i = k)

has K − 1 dimensions however many units there are. In coordinates u, β = softmax(u, 0), its single
peak is found by Newton's method. A multivariate t is laid about it, and moved and stretched to the
moments of a few rounds of pilot draws. Proposals then do not depend on where a chain is, so those
of all chains are drawn and weighed at once, by one product of draws × K and K × units; what is left
is to accept or refuse each (Metropolis and Hastings). The target falls off exponentially in u and
the t more slowly, so no state holds a chain for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ldf.infer.mixture import MixtureProblem

FREEDOM = 5.0  # of the t
PARTS = ((0.7, 0.9), (0.3, 2.0))  # shares and scales: some proposals go where a tail may be
ROUNDS = 3  # of pilot draws, before those that tell what a proposal is worth
PILOT = 300  # draws a round
WARM = 50  # draws discarded; the first is a pilot draw
ENOUGH = 0.5  # a proposal worth as much of an exact draw is kept as a draw
LEAST = 0.05  # one worth less does not fit
TOGETHER = 8  # units whose likelihoods are multiplied before a logarithm is taken
BLOCK = 1 << 18  # numbers weighed at once: more would leave the processor's memory


class Target:
    """The log density of u, up to a constant."""

    def __init__(self, problem: MixtureProblem) -> None:
        self.pseudo_counts = np.asarray(problem.pseudo_counts)
        self.likely = problem.likely()
        # Logarithms are what costs. A product of a few numbers up to one is zero only where the
        # density is no more than 1e-300 of its peak.
        more = -self.likely.shape[1] % TOGETHER
        self._filled = np.pad(self.likely, ((0, 0), (0, more)), constant_values=1.0)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Of draws × (K − 1). That of β times Π_k β_k, which is dβ/du: α − 1 becomes α."""
        log_weights = log_softmax(u)
        blocks = np.array_split(log_weights, 1 + len(u) * self.likely.shape[1] // BLOCK)
        of_units = [self._of_units(np.exp(block)) for block in blocks]
        return log_weights @ self.pseudo_counts + np.concatenate(of_units)

    def _of_units(self, weights: np.ndarray) -> np.ndarray:
        each = (weights @ self._filled).reshape(len(weights), TOGETHER, -1)
        with np.errstate(divide="ignore", under="ignore"):
            return np.log(each.prod(1)).sum(-1)

    def peak(self) -> tuple[np.ndarray, np.ndarray]:
        """Where it is, and minus the second derivative there."""
        alpha, likely = self.pseudo_counts, self.likely
        total = alpha.sum() + likely.shape[1]
        u = np.log(alpha[:-1] / alpha[-1])
        for _ in range(1000):
            weights = np.exp(log_softmax(u))
            share = weights[:, None] * likely
            share = share / share.sum(0)
            count = alpha + share.sum(1)
            slope = (count - total * weights)[:-1]
            curvature = total * (np.diag(weights) - np.outer(weights, weights))
            curvature = (curvature - np.diag(share.sum(1)) + share @ share.T)[:-1, :-1]
            safe = np.log(count[:-1] / count[-1])  # a step of EM, which never goes down
            if (np.linalg.eigvalsh(curvature) > 0).all():
                newton = np.linalg.solve(curvature, slope)
                if newton @ slope < 1e-10:
                    return u, curvature
                here, there = self(np.stack([u, u + newton]))
                u = u + newton if there > here else safe
            else:
                u = safe
        raise ArithmeticError("the peak of the weights' density was not found")


class Proposal(NamedTuple):
    """A mixture of multivariate t's in u, with one centre."""

    centre: np.ndarray
    root: np.ndarray  # R, R Rᵀ being a covariance

    def draw(self, number: int, rng: np.random.Generator) -> np.ndarray:
        shares, scales = np.array(PARTS).T
        normal = rng.standard_normal((number, len(self.centre)))
        scale = rng.choice(scales, (number, 1), p=shares)
        wide = scale * np.sqrt(FREEDOM / rng.chisquare(FREEDOM, (number, 1)))
        return self.centre + (normal * wide) @ self.root.T

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """Up to a constant."""
        dimensions = len(self.centre)
        distance = (np.linalg.solve(self.root, (u - self.centre).T) ** 2).sum(0)
        density = 0.0
        for share, scale in PARTS:
            fall = 1 + distance / (FREEDOM * scale**2)
            density = density + share * scale**-dimensions * fall ** (-(FREEDOM + dimensions) / 2)
        return np.log(density)

    def moved(self, u: np.ndarray, share: np.ndarray) -> Proposal:
        """To the moments of weighted draws; a little of the old covariance keeps it definite."""
        centre = share @ u
        off = u - centre
        covariance = (off.T * share) @ off + 0.05 * self.root @ self.root.T
        return Proposal(centre, np.linalg.cholesky(covariance))


class Fit(NamedTuple):
    """A proposal, and what it is worth."""

    proposal: Proposal
    u: np.ndarray  # pilot draws
    share: np.ndarray  # their importance; sums to one

    @property
    def efficiency(self) -> float:
        """One proposal is worth so much of an exact draw."""
        return float(1 / (self.share**2).sum() / len(self.share))


def fit(target: Target, rng: np.random.Generator) -> Fit:
    """The proposal, by rounds of pilot draws that start from the peak and its curvature."""
    centre, curvature = target.peak()
    proposal = Proposal(centre, np.linalg.inv(np.linalg.cholesky(curvature)).T)
    found = _tried(target, proposal, rng)
    for _ in range(ROUNDS):
        found = _tried(target, found.proposal.moved(found.u, found.share), rng)
    return found


def _tried(target: Target, proposal: Proposal, rng: np.random.Generator) -> Fit:
    u = proposal.draw(PILOT, rng)
    log_ratio = target(u) - proposal.log_density(u)
    share = np.exp(log_ratio - log_ratio.max())
    return Fit(proposal, u, share / share.sum())


def walk(
    target: Callable[[np.ndarray], np.ndarray],
    proposal: Proposal,
    start: np.ndarray,
    moves: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """Chains from `start`, chains × (K − 1): moves × chains × (K − 1), and the share accepted."""
    chains = len(start)
    u = np.concatenate([start, proposal.draw(moves * chains, rng)])
    log_ratio = (target(u) - proposal.log_density(u)).reshape(moves + 1, chains)
    height = np.log(rng.random((moves, chains)))
    at = np.zeros((moves + 1, chains), int)
    every = np.arange(chains)
    for move in range(moves):
        accepted = height[move] < log_ratio[move + 1] - log_ratio[at[move], every]
        at[move + 1] = np.where(accepted, move + 1, at[move])
    u = u.reshape(moves + 1, *start.shape)
    return u[at[1:], every], float((at[1:] != at[:-1]).mean())


def draw(
    problem: MixtureProblem, draws: int, chains: int, rng: np.random.Generator
) -> tuple[np.ndarray, float] | None:
    """β of chains × draws × K and the share of proposals accepted; None if no t fits."""
    target = Target(problem)
    found = fit(target, rng)
    if found.efficiency < LEAST:
        return None
    every = int(np.ceil(ENOUGH / found.efficiency))
    start = found.u[rng.choice(PILOT, chains, p=found.share)]
    u, accepted = walk(target, found.proposal, start, (WARM + draws) * every, rng)
    kept = u[every - 1 :: every][WARM:]
    return np.exp(log_softmax(kept)).swapaxes(0, 1), accepted


def log_softmax(u: np.ndarray) -> np.ndarray:
    """log β of u, in which the last component is left out: it is zero."""
    full = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], -1)
    peak = full.max(-1, keepdims=True)
    return full - peak - np.log(np.exp(full - peak).sum(-1, keepdims=True))
