"""One test for each displayed equation of Section 3 of the paper that has global variables γ.

Equations are numbered as in the compiled paper: 24 and 36–41. The cases are those of
`test_paper.py`; γ is one of a few values, so that sums over it can be written out. Nothing on the
expected side calls `ldf`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import logsumexp

import ldf
from test_paper import BY_NAME, close, plus

three_families = pytest.mark.parametrize("name", ["binomial", "poisson", "gaussian"])
of_trials = ldf.Binomial()


def world_with_globals(name: str) -> tuple[Any, ...]:
    """γ picks one of two priors that both units share; unit i has T_x and y."""
    case = BY_NAME[name]
    priors = [case.at, plus(case.at, case.aux)]
    half = tuple(np.asarray(x) / 2 for x in case.aux)
    return case, np.log([0.3, 0.7]), priors, [(case.aux, case.y), (half, case.new)]


def joint_of_globals_and_two_units(case, log_gamma, priors, units) -> tuple[np.ndarray, np.ndarray]:
    """log p(γ, θ_1, θ_2 | x, y) of Eq. 24 by brute force on a grid."""
    theta, log_weight = (part[::4] for part in case.grid())
    log_weight = log_weight + np.log(4)
    joint = np.stack(
        [
            log_p
            + np.add.outer(
                *(
                    case.log_density(plus(prior, aux), theta) + y.log_likelihood(theta)
                    for aux, y in units
                )
            )
            for log_p, prior in zip(log_gamma, priors, strict=True)
        ]
    )
    return theta, joint - logsumexp(joint + np.add.outer(log_weight, log_weight))


@three_families
def test_eq_24_posterior_with_mappings(name):
    """Eq. 24: p(θ, γ | x, y; φ) ∝ p(γ) Π_i p(θ_i | γ, T_x(x_i; φ)) p(y_i | θ_i)."""
    case, log_gamma, priors, units = world_with_globals(name)
    theta, joint = joint_of_globals_and_two_units(case, log_gamma, priors, units)
    log_evidence, densities = np.array(log_gamma), []
    for g, prior in enumerate(priors):
        naturals = [case.statistic(plus(prior, aux)) for aux, _ in units]
        for natural, (_, y) in zip(naturals, units, strict=True):
            log_evidence[g] += y.family.log_predictive(natural, **y.columns)
        after = [natural + y.statistic() for natural, (_, y) in zip(naturals, units, strict=True)]
        of_units = [case.family.posterior(natural).log_prob(theta) for natural in after]
        densities.append(np.add.outer(*of_units))
    of_gamma = log_evidence - logsumexp(log_evidence)
    seen = joint > -200  # further out both are zero for all purposes
    close((of_gamma[:, None, None] + np.stack(densities))[seen], joint[seen])


@three_families
def test_eq_36_and_37_predictive_without_global_variables(name):
    """Eq. 36: p(y_i | T_x) = ∫ p(γ) ∫ p(θ_i | γ, T_x) p(y_i | θ_i) dθ_i dγ.
    Eq. 37: the same, h(y_i) ∫ p(γ) Z(λ_i(γ) + T_x + T_y) / Z(λ_i(γ) + T_x) dγ.
    """
    case, log_gamma, priors, units = world_with_globals(name)
    theta, log_weight = case.grid()
    for aux, y in units:
        by_grid, by_ratio, found = [], [], []
        for log_p, prior in zip(log_gamma, priors, strict=True):
            at = plus(prior, aux)
            density = case.log_density(at, theta) + y.log_likelihood(theta)
            by_grid.append(log_p + logsumexp(density + log_weight))
            after = case.family.log_partition(case.statistic(at) + y.statistic())
            ratio = after - case.family.log_partition(case.statistic(at))
            by_ratio.append(log_p + y.family.log_base(**y.columns) + ratio)
            found.append(log_p + y.family.log_predictive(case.statistic(at), **y.columns))
        close(logsumexp(found), logsumexp(by_grid))
        close(logsumexp(by_ratio), logsumexp(by_grid))


def test_eq_38_draws_of_global_variables_are_consistent():
    """Eq. 38: p(y_i | T_x) ≈ 1/S Σ_s p(y_i | γ^(s), T_x), the draws used again for every φ.

    γ scales the prior and is one of three, so that the sum is known. The error is within its
    standard error for each φ, and the best φ is that of the known sum.
    """
    gammas, p_gamma = np.array([0.5, 2.0, 20.0]), np.array([0.5, 0.3, 0.2])
    rates, y, n = np.linspace(0.05, 0.95, 19), 7, 10  # φ: the rate of 6 pseudo-trials
    a = 0.5 * gammas[:, None] + 6 * rates
    b = 1.5 * gammas[:, None] + 6 * (1 - rates)
    known = p_gamma @ st.betabinom.pmf(y, n, a, b)
    rng = np.random.default_rng(0)
    errors = []
    for draws in (400, 40_000):
        gamma = rng.choice(gammas, draws, p=p_gamma)  # once, for all φ
        prior = of_trials.prior(0.5 * gamma, 1.5 * gamma)
        aux = [of_trials.natural(6 * rate, 6 * (1 - rate)) for rate in rates]
        mass = np.exp([of_trials.log_predictive(prior + one, y, n) for one in aux])
        error = np.abs(mass.mean(1) - known)
        assert (error < 4 * mass.std(1) / np.sqrt(draws)).all()
        errors.append(error.max())
    assert errors[1] < errors[0] / 3
    assert mass.mean(1).argmax() == known.argmax()


@three_families
def test_eq_39_conditional_of_one_unit(name):
    """Eq. 39: p(θ_i | θ_others, γ, x, y; φ) = π(θ_i; λ_i(γ) + T_x(x_i) + T_y(y_i))."""
    case, log_gamma, priors, units = world_with_globals(name)
    theta, joint = joint_of_globals_and_two_units(case, log_gamma, priors, units)
    log_weight = case.grid()[1][::4] + np.log(4)
    (aux, y), at = units[0], len(theta) // 2
    for g, prior in enumerate(priors):
        for other in (at, at + 9):  # whatever θ_2 is
            row = joint[g, :, other] - logsumexp(joint[g, :, other] + log_weight)
            natural = case.statistic(prior) + case.statistic(aux) + y.statistic()
            seen = row > -200
            close(case.family.posterior(natural).log_prob(theta)[seen], row[seen])


@three_families
def test_eq_40_conditional_of_global_variables(name):
    """Eq. 40: p(γ | θ, x, y; φ) = p(γ | θ): so under Eq. 1, where θ_i tells all of x_i.

    Under Eq. 24 with p(γ) as printed y drops out, and x does not: Z(λ_i(γ) + T_x) depends on both.
    The two agree once p(γ) is p(γ | x) ∝ p(γ) Π_i Z(λ_i(γ) + T_x) / Z(λ_i(γ)).
    """
    case, log_gamma, priors, units = world_with_globals(name)
    theta = case.points[2]

    def conditional(log_p: np.ndarray, times_aux: float) -> np.ndarray:
        """By p(γ) and the posteriors of both units at θ, with their T_x or without."""
        total = np.array(log_p)
        for g, prior in enumerate(priors):
            for aux, _ in units:
                natural = case.statistic(prior) + case.statistic(aux) * times_aux
                total[g] += case.family.posterior(natural).log_prob(theta)
        return total - logsumexp(total)

    given_x, by_theta = np.array(log_gamma), np.array(log_gamma)
    for g, prior in enumerate(priors):
        for aux, _ in units:
            given_x[g] += case.log_partition(plus(prior, aux)) - case.log_partition(prior)
            by_theta[g] += case.log_density(prior, theta)
    by_theta -= logsumexp(by_theta)
    close(conditional(log_gamma, 0.0), by_theta)
    close(conditional(given_x, 1.0), by_theta)
    assert np.abs(conditional(log_gamma, 1.0) - by_theta).max() > 0.01


@three_families
def test_eq_41_posterior_factorises_without_global_variables(name):
    """Eq. 41: p(θ | x, y; φ) = Π_i p(θ_i | x_i, y_i; φ) where there is no γ."""
    case, _, priors, units = world_with_globals(name)
    theta, joint = joint_of_globals_and_two_units(case, [0.0], priors[:1], units)
    adds = [plus(aux, y.adds) for aux, y in units]
    both = case.statistic(tuple(np.stack(part) for part in zip(*adds, strict=True)))
    found = case.family.posterior(case.prior + both)
    product = np.add.outer(found[0].log_prob(theta), found[1].log_prob(theta))
    near = joint[0] > -200
    close(product[near], joint[0][near])
