"""One test for each displayed equation of Sections 4 and 5 and of Appendix C of the paper.

Equations are numbered as in the compiled paper: 42 in Section 4, 43–51 in Section 5, C1–C8 in
Appendix C. Nothing on the expected side calls `ldf`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from scipy.special import expit, logsumexp

import ldf
from ldf.mappings import Linear, Network
from test_paper import BY_NAME, RATES, close, plus, softplus, unit_grid
from test_paper_learning import mapped, three_families

ALPHA, BETA = 0.005316, 1.55  # Section 5.3
family, prior = ldf.Binomial(), ldf.Binomial.prior(ALPHA, BETA)

X = np.array([[0.3, -1.0], [1.5, 0.2], [-2.0, 2.5], [0.0, 0.0]])
SLOPE, BIAS = np.array([[1.4, -0.3], [0.6, 0.8]]), np.array([5.0, -0.6])
Y, N = np.array([3, 0, 40, 0]), np.array([10, 7, 41, 0])  # nobody asked in the last


def by_mapping(mapping: Any = None, slope: Any = SLOPE, of_family: Any = family) -> Any:
    """T_x of each row in float64."""
    with jax.enable_x64(True):
        weights = {"slope": jnp.asarray(slope), "bias": jnp.asarray(BIAS)}
        found = mapped(of_family, mapping or Linear(by="rate"), weights, X)
        return jax.tree.map(np.asarray, found)


def by_hand() -> tuple[np.ndarray, np.ndarray]:
    """a(x_i; φ) and b(x_i; φ) of the same."""
    count, logit = (X @ SLOPE + BIAS).T
    return softplus(count) * expit(logit), softplus(count) * expit(-logit)


# --- Section 4: generalised linear models as special cases ----------------------------------


@three_families
def test_eq_42_log_likelihood_is_a_sum_of_integrals(name):
    """Eq. 42: log p(y | x) = Σ_i log ∫ p(y_i | θ_i) p(θ_i | x_i; φ) dθ_i."""
    case = BY_NAME[name]
    shares = np.array([0.3, 1.0, 4.0])
    natural = case.prior + case.statistic(case.aux) * shares
    found = case.family.log_predictive(natural, **case.y.columns).sum()
    theta, log_weight = case.grid()
    likelihood = case.y.log_likelihood(theta) + log_weight
    aux = [tuple(share * np.asarray(part) for part in case.aux) for share in shares]
    close(
        found, sum(logsumexp(likelihood + case.log_density(plus(case.at, a), theta)) for a in aux)
    )


K = np.arange(10.0)
GLMS = {  # family, one pseudo-observation of mean μ, primary data, their likelihood at θ = μ
    "binomial": (
        family,
        family.natural(0.3, 0.7),
        {"successes": K, "trials": 9 + 0 * K},
        st.binom.logpmf(K, 9, 0.3),
    ),
    "poisson": (
        ldf.Poisson(),
        ldf.Poisson.natural(1.7, 1.0),
        {"count": K, "exposure": 2.5 + 0 * K},
        st.poisson.logpmf(K, 2.5 * 1.7),
    ),
    "gaussian": (
        ldf.Gaussian(variance=2.0),
        ldf.Gaussian.natural(0.4, 1.0),
        {"mean": K, "n": 3 + 0 * K},
        st.norm.logpdf(K, 0.4, np.sqrt(2.0 / 3)),
    ),
}


@three_families
def test_section_4_the_standard_model_is_the_limit_of_many_pseudo_observations(name):
    """Section 4: as n_x → ∞ the predictive becomes the plain likelihood at μ(x_i), as 1/n_x."""
    case = BY_NAME[name]
    of_glm, one, columns, known = GLMS[name]
    errors = []
    for n in 10.0 ** np.arange(2, 13, 2):
        found = of_glm.log_predictive(case.prior + one * n, **columns)
        errors.append(np.abs(found - known).max())
    errors = np.array(errors)
    assert errors[0] > 1e-3
    assert (errors[1:] < errors[:-1] / 20).all()
    assert errors[-1] < 1e-9


@three_families
def test_section_4_the_over_dispersed_model_shares_one_number(name):
    """Section 4: with one n_x for all rows the mean varies with x and the dispersion does not."""
    of_family = GLMS[name][0]
    aux = by_mapping(Linear(constant_count=True, by="rate"), SLOPE[:, 1:], of_family)
    close(aux.n, softplus(BIAS[0]))
    link = {"binomial": expit, "poisson": softplus, "gaussian": lambda v: v}[name]
    close(aux.t / aux.n, link(X @ SLOPE[:, 1] + BIAS[1]))


# --- Section 5: electrification ---------------------------------------------------------------


def test_eq_43_prior_and_likelihood():
    """Eq. 43: p(θ_i) = Beta(θ_i; α0, β0) and p(y_i | θ_i) = Bin(y_i; N_i, θ_i)."""
    close(family.posterior(prior).log_prob(RATES), st.beta.logpdf(RATES, ALPHA, BETA))
    for theta in RATES:
        close(family.log_likelihood(theta, Y, N), st.binom.logpmf(Y, N, theta))


def test_section_5_2_hyperparameters_are_prior_successes_and_failures():
    """Section 5.2: α0 and β0 are what α0 successes and β0 failures, seen before, would add."""
    seen = ldf.Binomial(effective=True).statistic(successes=ALPHA, trials=ALPHA + BETA)
    for mine, theirs in zip(prior.coordinates(), seen.coordinates(), strict=True):
        close(mine, theirs)
    split = family.prior(1.0, 1.0) + family.statistic(successes=2, trials=5)
    known = family.posterior(family.prior(3.0, 4.0)).log_prob(RATES)
    close(family.posterior(split).log_prob(RATES), known)
    close(known, st.beta.logpdf(RATES, 3.0, 4.0))


def test_eq_44_posterior_given_primary_data():
    """Eq. 44: p(θ_i | y_i) = Beta(θ_i; α0 + y_i, β0 + N_i − y_i); T_y = [y_i; N_i].

    At one rate its entropy falls with N_i.
    """
    seen = family.statistic(successes=Y, trials=N)
    close(seen.t, Y)
    close(seen.n, N)
    found = family.posterior(prior + seen)
    for theta in RATES:
        close(found.log_prob(theta), st.beta.logpdf(theta, ALPHA + Y, BETA + N - Y))
    n = np.array([0, 10, 100, 1000, 10_000])
    more = family.posterior(family.prior(1.0, 1.0) + family.statistic(3 * n // 10, n))
    assert (np.diff(more.entropy()) < 0).all()
    close(more.entropy(), st.beta.entropy(1 + 3 * n // 10, 1 + n - 3 * n // 10))


def test_section_5_2_successes_failures_and_success_rate():
    """Section 5.2: a = t_x ≥ 0, b = n_x − t_x ≥ 0, μ = t_x / n_x ∈ [0, 1], the θ most likely."""
    aux, (a, b) = by_mapping(), by_hand()
    close(aux.t, a)
    close(aux.n, a + b)
    close(aux.successes, a)
    close(aux.failures, b)
    rate = aux.t / aux.n
    assert ((rate >= 0) & (rate <= 1) & (a >= 0) & (b >= 0)).all()
    theta = np.linspace(0, 1, 100_001)[1:-1]
    likelihood = np.outer(a, np.log(theta)) + np.outer(b, np.log1p(-theta))
    np.testing.assert_allclose(rate, theta[likelihood.argmax(1)], atol=1e-5)


def test_eq_45_posterior_given_auxiliary_data():
    """Eq. 45: p(θ_i | x_i; φ) = Beta(θ_i; α0 + a(x_i; φ), β0 + b(x_i; φ))."""
    a, b = by_hand()
    found = family.posterior(prior + by_mapping())
    for theta in RATES:
        close(found.log_prob(theta), st.beta.logpdf(theta, ALPHA + a, BETA + b))


def test_eq_46_full_posterior():
    """Eq. 46: p(θ_i | x_i, y_i; φ) = Beta(θ_i; α0 + a(x_i) + y_i, β0 + b(x_i) + N_i − y_i)."""
    a, b = by_hand()
    found = family.posterior(prior + by_mapping() + family.statistic(Y, N))
    for theta in RATES:
        close(found.log_prob(theta), st.beta.logpdf(theta, ALPHA + a + Y, BETA + b + N - Y))
    close(found.mean()[-1], family.posterior(prior + by_mapping()).mean()[-1])  # nobody asked


def test_eq_47_predictive():
    """Eq. 47: p(y_i | x_i; φ) = ∫ p(y_i | θ) p(θ | x_i; φ) dθ = BeBi(y_i; N_i, α0 + a, β0 + b)."""
    a, b = by_hand()
    found = family.log_predictive(prior + by_mapping(), Y, N)
    close(found, st.betabinom.logpmf(Y, N, ALPHA + a, BETA + b))
    theta, log_weight = unit_grid()
    for i in range(len(Y)):
        log_joint = st.binom.logpmf(Y[i], N[i], theta)
        log_joint = log_joint + st.beta.logpdf(theta, ALPHA + a[i], BETA + b[i])
        close(found[i], logsumexp(log_joint + log_weight))


def test_section_5_2_the_network_gives_a_count_and_a_rate():
    """Section 5.2: n_x ≥ 0 and μ ∈ [0, 1] by a network of 146 weights, whatever these are."""
    mapping = Network(shared=(12,), branch=(3,), by="rate")
    x = np.random.default_rng(0).normal(scale=3, size=(50, 4))
    with jax.enable_x64(True):
        weights = jax.tree.map(lambda w: 9 * w + 0.1, mapping.init(np.random.default_rng(0), 4, 2))
        assert sum(leaf.size for leaf in jax.tree.leaves(weights)) == 146
        aux = jax.tree.map(np.asarray, mapped(family, mapping, weights, x))
    assert (aux.n > 0).all()
    assert ((aux.t >= 0) & (aux.t <= aux.n)).all()
    close(aux.t + aux.failures, aux.n)
    assert np.ptp(aux.n) > 1  # each row its own
    assert np.ptp(aux.t / aux.n) > 0.1


def test_eq_48_joint_posterior_factorises():
    """Eq. 48: p(θ | x, y; φ) = Π_i p(θ_i | x_i, y_i; φ), by the joint of two units on a grid."""
    a, b = by_hand()
    theta, log_weight = (part[::4] for part in unit_grid())
    log_weight = log_weight + np.log(4)
    logs = [
        st.beta.logpdf(theta, ALPHA + a[i], BETA + b[i]) + st.binom.logpmf(Y[i], N[i], theta)
        for i in range(2)
    ]
    joint = np.add.outer(*logs)
    joint = joint - logsumexp(joint + np.add.outer(log_weight, log_weight))
    found = family.posterior(prior + by_mapping() + family.statistic(Y, N))
    product = np.add.outer(found[0].log_prob(theta), found[1].log_prob(theta))
    seen = joint > -200  # further out both are zero for all purposes
    close(product[seen], joint[seen])


def test_eq_49_and_c2_the_link_of_the_baselines():
    """Eq. C2: μ(x_i; φ) = sigm(φᵀ x_i), with a bias. Eq. 49 prints exp(φᵀ x_i): that is no rate."""
    mapping = Linear(constant_count=True, by="rate")
    aux = by_mapping(mapping, 3 * SLOPE[:, 1:])
    linear = 3 * X @ SLOPE[:, 1] + BIAS[1]
    close(aux.t / aux.n, 1 / (1 + np.exp(-linear)))
    assert np.exp(linear).max() > 1


@pytest.mark.parametrize("rate", [0.03, 0.3, 0.8])
def test_eq_50_and_51_binomial_regression_is_a_limit(rate):
    """Eq. 50: p_Bin = lim ∫ Bin(y_i; N_i, θ) Beta(θ; α0 + n_x μ, β0 + n_x (1 − μ)) dθ, n_x → ∞.
    Eq. 51: = Bin(y_i; N_i, μ). The distance falls with every step of n_x, as 1/n_x.
    """
    k, trials = np.arange(13), 12
    known = st.binom.pmf(k, trials, rate)
    counts = 10.0 ** np.arange(2, 13)
    errors = []
    for n in counts:
        natural = prior + family.natural(n * rate, n * (1 - rate))
        errors.append(np.abs(np.exp(family.log_predictive(natural, k, trials)) - known).sum())
    errors = np.array(errors)
    assert (np.diff(errors) < 0).all()
    np.testing.assert_allclose((errors * counts)[2:-2], (errors * counts)[6], rtol=0.1)
    assert errors[-1] < 1e-9
    close(family.log_likelihood(rate, k, trials), np.log(known))


def test_section_5_3_infinite_information_precludes_conditioning():
    """Section 5.3: as n_x → ∞ primary data no longer move the posterior, however many."""
    seen = family.statistic(successes=900, trials=1000)
    moved = []
    for n in 10.0 ** np.arange(2, 13, 2):
        aux = prior + family.natural(0.3 * n, 0.7 * n)
        moved.append(family.posterior(aux + seen).mean() - family.posterior(aux).mean())
        a, b = ALPHA + 0.3 * n, BETA + 0.7 * n
        close(moved[-1], (a + 900) / (a + b + 1000) - a / (a + b))
    assert moved[0] > 0.4
    assert (np.diff(moved) < 0).all()
    assert moved[-1] < 1e-9


# --- Appendix C: the baselines ----------------------------------------------------------------


def test_eq_c1_likelihood_is_a_product_of_integrals():
    """Eq. C1: p(y | x; φ) = Π_i p(y_i | x_i; φ) = Π_i ∫ p(y_i | θ_i) p(θ_i | x_i; φ) dθ_i."""
    a, b = by_hand()
    theta, log_weight = unit_grid()
    product = 1.0
    for i in range(len(Y)):
        density = st.beta.logpdf(theta, ALPHA + a[i], BETA + b[i])
        product *= np.exp(logsumexp(st.binom.logpmf(Y[i], N[i], theta) + density + log_weight))
    found = np.exp(family.log_predictive(prior + by_mapping(), Y, N).sum())
    np.testing.assert_allclose(found, product, rtol=1e-9)


def test_eq_c3_binomial_regression_predicts_by_the_likelihood():
    """Eq. C3: p_Bin(y_i | x_i; φ) = Bin(y_i; n_i, μ(x_i; φ))."""
    rate = by_mapping().t / by_mapping().n
    known = st.binom.logpmf(Y, N, expit(X @ SLOPE[:, 1] + BIAS[1]))
    close(family.log_likelihood(rate, Y, N), known)
    close(family.likelihood(rate, N).log_prob(Y), known)


def test_eq_c4_binomial_regression_implies_a_point_mass():
    """Eq. C4: p_Bin(θ_i | x_i; φ) = Dirac(θ_i − μ(x_i; φ)): all mass at μ, and an entropy of −∞.

    The entropy is that of a normal of variance μ (1 − μ) / n_x: with n_x a hundredfold it falls by
    log 10, each time.
    """
    counts = 10.0 ** np.arange(4, 15, 2)
    rate = 0.3
    found = family.posterior(prior + family.natural(counts * rate, counts * (1 - rate)))
    close(found.cdf(rate - 0.001)[2:], 0)
    close(found.cdf(rate + 0.001)[2:], 1)
    np.testing.assert_allclose(np.diff(found.entropy()), -np.log(10), rtol=1e-3)
    normal = st.norm.entropy(scale=np.sqrt(rate * (1 - rate) / counts))
    np.testing.assert_allclose(found.entropy(), normal, atol=1e-3)
    assert (found.sd() <= 0.5 / np.sqrt(counts)).all()


def baseline() -> tuple[Any, float, np.ndarray]:
    """T_x of beta-binomial regression; δ and μ(x_i) by hand."""
    aux = by_mapping(Linear(constant_count=True, by="rate"), SLOPE[:, 1:])
    return aux, softplus(BIAS[0]), expit(X @ SLOPE[:, 1] + BIAS[1])


def test_eq_c5_beta_binomial_regression_predictive():
    """Eq. C5: p_BB(y_i | x_i; φ) = BeBi(y_i; n_i, α0 + δ μ(x_i), β0 + δ (1 − μ(x_i))), one δ."""
    aux, delta, rate = baseline()
    known = st.betabinom.logpmf(Y, N, ALPHA + delta * rate, BETA + delta * (1 - rate))
    close(family.log_predictive(prior + aux, Y, N), known)


def test_eq_c6_beta_binomial_regression_posterior():
    """Eq. C6: p_BB(θ_i | x_i; φ) = Beta(θ_i; α0 + δ μ(x_i), β0 + δ (1 − μ(x_i))), one δ."""
    aux, delta, rate = baseline()
    found = family.posterior(prior + aux)
    for theta in RATES:
        known = st.beta.logpdf(theta, ALPHA + delta * rate, BETA + delta * (1 - rate))
        close(found.log_prob(theta), known)
    close(aux.n, delta)


def test_eq_c7_and_c8_each_row_has_a_count_of_its_own():
    """Eq. C7: p_LDF(y_i | x_i; φ) = BeBi(y_i; n_i, α0 + a(x_i; φ), β0 + b(x_i; φ)).
    Eq. C8: p_LDF(θ_i | x_i; φ) = Beta(θ_i; α0 + a(x_i; φ), β0 + b(x_i; φ)).

    Where the count does not depend on x it is beta-binomial regression, a = δ μ, b = δ (1 − μ).
    """
    a, b = by_hand()
    assert np.ptp(a + b) > 1
    natural = prior + by_mapping()
    close(family.log_predictive(natural, Y, N), st.betabinom.logpmf(Y, N, ALPHA + a, BETA + b))
    close(family.posterior(natural).sd(), st.beta.std(ALPHA + a, BETA + b))
    flat = by_mapping(Linear(by="rate"), SLOPE * [0.0, 1.0])
    aux, delta, rate = baseline()
    for of_rows in (flat, aux):
        close(of_rows.successes, delta * rate)
        close(of_rows.failures, delta * (1 - rate))
