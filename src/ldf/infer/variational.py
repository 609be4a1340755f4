"""Coordinate ascent: the posterior by the nearest one that factorises.

    q(β) q(z, θ)       the default: given q(β), z and θ are exact, so θ stays a mixture
    q(β) q(z) q(θ)     mean_field=True: q(θ_i) = π(Σ_k r_ik natural_ik + T_y(y_i))

Either way q(β) = Dir(α + Σ_i r_i), and r_i are the unit's responsibilities. Every step raises the
bound on the log marginal likelihood: what the units' data are worth, less KL(q(β) ‖ p(β)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, logsumexp

from ldf.distributions import Dirichlet, Distribution
from ldf.families.base import inner
from ldf.infer.mixture import MixtureProblem
from ldf.statistic import ClassCounts


@dataclass(frozen=True, eq=False)
class Variational:
    """The factors, and the bound on the log marginal likelihood after every step."""

    weights: Dirichlet  # q(β)
    responsibilities: np.ndarray  # q(z): components × units
    posterior: Distribution  # q(θ)
    elbo: np.ndarray
    converged: bool


def variational(
    problem: MixtureProblem,
    mean_field: bool = False,
    tolerance: float = 1e-9,
    steps: int = 20_000,
) -> Variational:
    """Steps until the bound rises by less than `tolerance` a unit of data."""
    alpha = np.asarray(problem.pseudo_counts)
    counts = alpha + problem.units * alpha / alpha.sum()
    share = np.broadcast_to((alpha / alpha.sum())[:, None], problem.log_predictive.shape)
    if mean_field:  # starts where the other form ends: it has many local optima
        near = variational(problem, False, tolerance, steps)
        share, counts = near.responsibilities, np.asarray(near.weights.natural.counts)
    elbo, converged = [], False
    for _ in range(steps):
        log_weights = digamma(counts) - digamma(counts.sum())
        if mean_field:
            known = _theta(problem, share)
            share, _ = _normalised(log_weights[:, None] + _expected_log_prior(problem, known))
            known = _theta(problem, share)
            of_units = _factorised_bound(problem, share, known, log_weights)
        else:
            share, of_units = _normalised(log_weights[:, None] + problem.log_predictive)
        divergence = Dirichlet(ClassCounts(counts)).divergence(Dirichlet(ClassCounts(alpha)))
        elbo.append(float(of_units.sum() - divergence))
        if len(elbo) > 1 and elbo[-1] - elbo[-2] < tolerance * problem.units:
            converged = True
            break
        counts = alpha + share.sum(1)
    if mean_field:
        posterior = problem.family.posterior(_theta(problem, share))
    else:
        posterior = problem.posterior(share)
    weights = Dirichlet(ClassCounts(counts))
    return Variational(weights, share, posterior, np.array(elbo), converged)


def _normalised(log_mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As probabilities over the first axis, and the logarithm of what they were divided by."""
    total = np.asarray(logsumexp(log_mass, axis=0))
    return np.exp(log_mass - total), total


def _theta(problem: MixtureProblem, share: np.ndarray) -> Any:
    """The natural parameter of q(θ_i): Σ_k r_ik natural_ik + T_y(y_i)."""
    each = problem.natural.spread(share.shape) * share
    mean = each._map(lambda value, axes: value.sum(0))
    return mean + problem.statistic


def _expected_log_prior(problem: MixtureProblem, known: Any) -> np.ndarray:
    """E log π(θ_i; natural_ik) under q(θ_i), up to what all components share."""
    return inner(problem.natural, problem.family.expected(known)) - problem.log_partition


def _factorised_bound(
    problem: MixtureProblem, share: np.ndarray, known: Any, log_weights: np.ndarray
) -> np.ndarray:
    """Of each unit, right after q(θ): then expected statistics of θ drop out, and what is left is
    log h(y) + log Z of q(θ) − Σ_k r_ik (log Z of component k − E log β_k + log r_ik)."""
    log_share = np.log(np.where(share > 0, share, 1.0))
    each = share * (log_weights[:, None] - problem.log_partition - log_share)
    return problem.log_base + problem.family.log_partition(known) + each.sum(0)
