"""One test for each displayed equation of Section 6 and of Appendices B and D of the paper.

Equations are numbered as in the compiled paper: 52–64 in Section 6, B1–B11 in Appendix B, D1–D8 in
Appendix D. Five counties and three mappings, so that all assignments can be listed. Nothing on the
expected side calls `ldf`.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats as st
from scipy.special import gamma, logsumexp, softmax

import ldf
from ldf.distributions import PointMass
from ldf.infer import MixtureProblem, collapsed, gibbs
from ldf.infer.marginal import Target
from ldf.mappings import Linear
from ldf.mixed import MixedModel, Mixture
from ldf.model import Model
from ldf.objective import maximum_likelihood
from ldf.solve import solve_mixture
from ldf.step import EM, MonteCarlo, marginals
from ldf.structure import joint_marginal
from test_paper import BY_NAME, POSITIVE, close, plus, positive_grid, simplex_grid, softplus
from test_paper_learning import mapped, three_families

ALPHA, BETA = 0.9, 2.0  # α0 and β0
family, prior = ldf.Poisson(), ldf.Poisson.prior(ALPHA, BETA)

X = np.array([[0.3, -1.0], [1.5, 0.2], [-2.0, 2.5], [0.0, 0.0], [0.8, 1.1]])
SLOPE = np.array([[[0.9, -0.3], [0.2, 0.4]], [[-0.5, 0.3], [1.2, 0.1]], [[0.0, 0.8], [-0.7, -0.2]]])
BIAS = np.array([[1.0, -0.6], [0.2, 1.5], [2.5, 0.4]])
Y, N = np.array([3.0, 0.0, 11.0, 0.0, 2.0]), np.array([1.5, 7.0, 2.0, 0.0, 0.4])  # thousands
SHARE = np.array([0.2, 0.5, 0.3])  # β
COLUMNS = {"count": Y, "exposure": N}
UNITS, MAPPINGS = np.arange(5), np.arange(3)
A, B = np.moveaxis(softplus(np.einsum("ip,kpo->kio", X, SLOPE) + BIAS[:, None]), -1, 0)  # a, b
EVERY = np.array(list(itertools.product(MAPPINGS, repeat=5)))  # all z


def double(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree)


def model_of(gate: bool = False) -> tuple[MixedModel, Any]:
    """Three mappings that give a and b by softplus, and their weights."""
    model = MixedModel(family, Linear(by="counts"), mixture=Mixture(3, gate=gate))
    of_gate = {"bias": np.log(SHARE)} | ({"slope": np.zeros((2, 3))} if gate else {})
    each = [{"slope": slope, "bias": bias} for slope, bias in zip(SLOPE, BIAS, strict=True)]
    return model, {"each": each, "gate": of_gate}


def ask(method: str, weights: Any = None, columns: Any = COLUMNS) -> Any:
    """What the model answers in float64."""
    model, own = model_of()
    with jax.enable_x64(True):
        given = double((own if weights is None else weights, model.ground(prior), X, columns))
        found = getattr(model, method)(*(given[:3] if method == "pseudo_observations" else given))
        return jax.tree.map(np.asarray, found)


def problem_of(alpha: Any = 1.0, columns: Any = COLUMNS) -> MixtureProblem:
    return MixtureProblem.of(family, prior + ask("pseudo_observations"), columns, alpha)


def log_mass() -> np.ndarray:
    """log p(y_i | x_i, z_i = k) by SciPy: the Gamma–Poisson is its negative binomial."""
    a, b = ALPHA + A, BETA + B
    return st.nbinom.logpmf(Y, a, b / (b + N))


def integral(log_density: np.ndarray) -> Any:
    """Of exp(log_density) over θ > 0, at the nodes of the grid."""
    return logsumexp(log_density + positive_grid()[1], axis=-1)


THETA = positive_grid()[0]


def log_joint() -> np.ndarray:
    """log p(y_i | θ) p(θ | x_i, z_i = k) at the nodes: mappings × units × nodes."""
    density = st.gamma.logpdf(THETA, (ALPHA + A)[..., None], scale=1 / (BETA + B)[..., None])
    return st.poisson.logpmf(Y[:, None], N[:, None] * THETA) + density


# --- Section 6: the model -----------------------------------------------------------------------


def test_eq_52_the_model():
    """Eq. 52: p(β) = Dir(β; α), p(z_i | β) = Cat(z_i; β), p(θ_i | x_i, z_i; φ) = π(θ_i; λ0 +
    T_x(x_i; φ_{z_i})), p(y_i | θ_i) = f(y_i; θ_i).

    The density of β given y is their product, summed over all z and integrated over θ.
    """
    alpha = np.array([0.7, 1.0, 2.5])
    for k in MAPPINGS:
        found = family.posterior(prior + ask("pseudo_observations")[k])
        for theta in POSITIVE:
            close(
                found.log_prob(theta), st.gamma.logpdf(theta, ALPHA + A[k], scale=1 / (BETA + B[k]))
            )
    close(family.log_likelihood(1.7, **COLUMNS), st.poisson.logpmf(Y, 1.7 * N))
    beta = np.random.default_rng(0).dirichlet(alpha, 4)
    of_y = integral(log_joint())[EVERY, UNITS].sum(1)  # Π_i p(y_i | x_i, z_i) of each z
    known = [
        st.dirichlet.logpdf(b, alpha) + logsumexp(np.log(b)[EVERY].sum(1) + of_y) for b in beta
    ]
    u = np.log(beta[:, :-1] / beta[:, -1:])  # the sampler's coordinates: dβ/du = Π_k β_k
    found = Target(problem_of(alpha))(u) - np.log(beta).sum(1)
    close(found - found[0], np.array(known) - known[0])


def test_eq_53_predictive_given_the_mapping():
    """Eq. 53: p(y_i | x_i, z_i; φ) = ∫ f(y_i; θ_i) π(θ_i; λ0 + T_x(x_i; φ_{z_i})) dθ_i."""
    close(ask("log_each"), integral(log_joint()))
    close(problem_of().log_predictive, integral(log_joint()))


def test_section_6_one_mapping_is_the_model_without_a_mixture():
    """Section 6: with K = 1 it is the model of Section 2."""
    one = MixedModel(family, Linear(by="counts"), mixture=Mixture(1))
    plain = Model(family, Linear(by="counts"))
    each = {"slope": SLOPE[0], "bias": BIAS[0]}
    with jax.enable_x64(True):
        own, ground, x, y = double((each, plain.ground(prior), X, COLUMNS))
        weights = {"each": [own], "gate": {"bias": jnp.zeros(1)}}
        found = np.asarray(one.log_predictive(weights, ground, x, y))
        np.testing.assert_array_equal(found, plain.log_predictive(own, ground, x, y))
    close(found, log_mass()[0])


def by_bayes(log_prior: np.ndarray) -> np.ndarray:
    """log p(θ | y_i) at the nodes, by the likelihood and any density of θ: units × nodes."""
    logs = st.poisson.logpmf(Y[:, None], N[:, None] * THETA) + log_prior
    return logs - integral(logs)[:, None]


def assert_posterior(found: Any, known: np.ndarray) -> None:
    """At the nodes where there is any mass to speak of."""
    for i in UNITS:
        near = known[i] > -30
        close(found[i].log_prob(THETA[near]), known[i][near])


def test_eq_54_posterior_given_primary_data():
    """Eq. 54: p(θ_i | y_i) = Ga(θ_i; α0 + y_i, β0 + n_i), T_y = [y_i; n_i].

    The paper prints β0 + 1 and T_y = [y_i; 1]: that is so only where n_i = 1, and contradicts its
    own likelihood Po(n_i θ_i) and predictive (Eq. 56).
    """
    seen = family.statistic(**COLUMNS)
    close(seen.t, Y)
    close(seen.n, N)
    known = by_bayes(st.gamma.logpdf(THETA, ALPHA, scale=1 / BETA))
    assert_posterior(family.posterior(prior + seen), known)
    printed = st.gamma.logpdf(THETA, ALPHA + Y[0], scale=1 / (BETA + 1))
    assert np.abs(printed - known[0])[known[0] > -5].max() > 0.1


def test_section_6_intervals_and_empirical_rate():
    """Section 6: r = a / b, and the posterior mean is a weighted mean of α0/β0 and r."""
    aux = ask("pseudo_observations")
    close(aux.count, A)
    close(aux.exposure, B)
    weight = BETA / (BETA + B)
    close(family.posterior(prior + aux).mean(), weight * ALPHA / BETA + (1 - weight) * A / B)
    by_rate = family.from_unconstrained(np.log(np.stack([B, A / B], -1)), "log")
    close(by_rate.count, A)
    close(by_rate.exposure, B)


def test_eq_55_posterior_given_auxiliary_data():
    """Eq. 55: p(θ_i | x_i, z_i; φ) = Ga(θ_i; α0 + a(x_i; φ_{z_i}), β0 + b(x_i; φ_{z_i}))."""
    found = family.posterior(prior + ask("pseudo_observations"))
    for theta in POSITIVE:
        close(found.log_prob(theta), st.gamma.logpdf(theta, ALPHA + A, scale=1 / (BETA + B)))


def test_eq_56_predictive_is_gamma_poisson():
    """Eq. 56: p(y_i | x_i, z_i = k; φ) = GaPo(y_i; α0 + a(x_i; φ_k), (β0 + b(x_i; φ_k)) / n_i)."""
    a, b = ALPHA + A[:, N > 0], (BETA + B[:, N > 0]) / N[N > 0]
    y, found = Y[N > 0], ask("log_each")
    factorial = gamma(y + 1)
    known = gamma(a + y) / (factorial * gamma(a)) * (1 / (b + 1)) ** y * (b / (b + 1)) ** a
    close(found[:, N > 0], np.log(known))
    close(found[:, N == 0], 0.0)  # nobody lives there: no homicide, for sure


def test_section_6_footnote_the_gamma_poisson_distribution():
    """Section 6, footnote: p(y | a, b) = Γ(a + y) / (y! Γ(a)) · (1/(b + 1))^y (b/(b + 1))^a.

    For a whole number a it counts successes of probability 1/(1 + b) before a failures.
    """
    y = np.arange(12.0)
    found = np.exp(family.log_predictive(family.natural(3.0, 0.8), y, 1.0))
    close(found, gamma(3 + y) / (gamma(y + 1) * gamma(3.0)) * (1 / 1.8) ** y * (0.8 / 1.8) ** 3)
    # All orders of y successes and three failures of which the last one is at the end.
    orders = [len(list(itertools.combinations(range(int(k) + 2), 2))) for k in y]
    close(found, orders * (1 / 1.8) ** y * (0.8 / 1.8) ** 3)


# --- Section 6: learning --------------------------------------------------------------------------


def test_eq_57_marginal_over_the_mixture_weights():
    """Eq. 57: p(y_i | x; φ) = ∫ p(β) Σ_k β_k p(y_i | x_i, z_i = k; φ) dβ.

    Of one unit it is Σ_k (α_k / Σα) p_k exactly, whatever φ is: it cannot teach which mapping is
    more common. That takes the joint of all units.
    """
    alpha = np.array([1.2, 3.0, 2.0])
    beta, log_weight = simplex_grid()
    log_p = st.dirichlet.logpdf(np.maximum(beta, 1e-300).T / beta.sum(-1), alpha)
    mean = np.exp(log_p + log_weight) @ beta
    close(mean, alpha / alpha.sum())
    weights = model_of()[1] | {"gate": {"bias": np.log(alpha)}}
    close(ask("log_predictive", weights), np.log(mean @ np.exp(log_mass())))
    together = logsumexp(log_p + log_weight + np.log(beta @ np.exp(log_mass())).sum(-1))
    assert abs(together - np.log(mean @ np.exp(log_mass())).sum()) > 0.01


def test_eq_58_draws_of_the_mixture_weights():
    """Eq. 58: p(y_i | x; φ) ≈ (1/S) Σ_s Σ_k β_k^(s) p(y_i | x_i, z_i = k; φ), with draws of p(β)
    that every step uses again; and likewise of all units together."""
    step = MonteCarlo(0.7, 3, 8000)
    log_beta = np.asarray(step.betas(), float)
    np.testing.assert_array_equal(log_beta, step.betas())
    with jax.enable_x64(True):
        found = np.exp(np.asarray(marginals(double(log_beta), double(ask("log_each")))))
        joint = float(joint_marginal(jnp.log(double(found))).value)
    error = found.std(0) / np.sqrt(8000)
    known = np.exp(log_mass()).mean(0)
    assert (np.abs(found.mean(0) - known) <= 4.5 * error).all()
    assert (error < 0.02 * known).all()
    count = 0.7 + (EVERY[..., None] == MAPPINGS).sum(1)  # β integrated out of each z
    log_z = (np.log(gamma(count)) - np.log(gamma(0.7))).sum(1) + np.log(gamma(2.1) / gamma(7.1))
    exact = logsumexp(log_z + log_mass()[EVERY, UNITS].sum(1))
    products = found.prod(1)
    assert abs(joint - exact) < 4.5 * products.std() / products.mean() / np.sqrt(8000) < 0.1


# --- Section 6: inference -------------------------------------------------------------------------

CHAINS = 20_000


def drawn(conditional: Any, *given: Any, problem: Any = None) -> Any:
    """So many draws of a full conditional at one state."""
    known = problem_of(np.array([0.7, 1.0, 2.5])) if problem is None else problem
    with jax.enable_x64(True):
        wide = [jnp.broadcast_to(jnp.asarray(g), (CHAINS, *np.shape(g))) for g in given]
        known = jax.tree.map(jnp.asarray, known)
        return np.asarray(jax.jit(conditional)(known, *wide, jax.random.key(0)))


def test_eq_59_conditional_of_the_mixture_weights():
    """Eq. 59: p(β | z) = Dir(β; α_1 + M_1, …, α_K + M_K), M_k units being assigned to k."""
    z = np.array([0, 2, 2, 0, 2], np.int32)
    beta = np.exp(drawn(gibbs.draw_weights, z))
    counts = np.array([0.7 + 2, 1.0 + 0, 2.5 + 3])
    for k in MAPPINGS:
        law = st.beta(counts[k], counts.sum() - counts[k])
        assert st.kstest(beta[:, k], law.cdf).pvalue > 1e-3
    exact = st.dirichlet.cov(counts)
    np.testing.assert_allclose(np.cov(beta.T), exact, atol=4.5 * exact.max() / np.sqrt(CHAINS))


def test_eq_60_conditional_of_the_assignments():
    """Eq. 60: p(z_i = k | β, θ_i, x_i; φ) ∝ β_k π(θ_i; λ0 + T_x(x_i; φ_k)), whatever y_i is."""
    theta = np.array([0.4, 1.3, 0.9, 2.0, 0.1])
    z = drawn(gibbs.draw_assignment, np.log(SHARE), theta)
    density = SHARE[:, None] * st.gamma.pdf(theta, ALPHA + A, scale=1 / (BETA + B))
    known = density / density.sum(0)
    for i in UNITS:
        seen = np.bincount(z[:, i], minlength=3)
        assert st.chisquare(seen, CHAINS * known[:, i]).pvalue > 1e-3
    other = problem_of(1.0, {"count": Y[::-1], "exposure": N[::-1]})
    again = drawn(gibbs.draw_assignment, np.log(SHARE), theta, problem=other)
    np.testing.assert_array_equal(z, again)


@three_families
def test_eq_61_conditional_of_theta(name):
    """Eq. 61: p(θ_i | x_i, y_i, z_i; φ) = π(θ_i; λ0 + T_x(x_i; φ_{z_i}) + T_y(y_i))."""
    case = BY_NAME[name]
    theta, log_weight = case.grid()
    natural = (case.prior + case.statistic(case.aux) * np.array([0.3, 1.0, 4.0]))[:, None]
    y = {word: np.reshape(values, -1)[:1] for word, values in case.y.columns.items()}
    problem = MixtureProblem.of(case.family, natural, y)
    for k, share in enumerate((0.3, 1.0, 4.0)):
        found = case.family.posterior(problem.natural_of(np.array([k])) + problem.statistic)
        at = plus(case.at, tuple(share * np.asarray(part) for part in case.aux))
        known = case.log_density(at, theta) + case.y.log_likelihood(theta)
        known = known - logsumexp(known + log_weight)
        near = known > -30
        close(found.log_prob(theta[near]), known[near])


def test_eq_61_is_what_gibbs_draws():
    """Eq. 61, by the sampler's own draws."""
    z = np.array([0, 1, 2, 1, 0], np.int32)
    theta = drawn(gibbs.draw_theta, z)
    for i in UNITS:
        law = st.gamma(ALPHA + A[z[i], i] + Y[i], scale=1 / (BETA + B[z[i], i] + N[i]))
        assert st.kstest(theta[:, i], law.cdf).pvalue > 1e-3


def responsibilities() -> np.ndarray:
    """p(z_i = k | x_i, y_i), by integrals over θ."""
    return softmax(np.log(SHARE)[:, None] + integral(log_joint()), 0)


def test_eq_62_posterior_of_the_assignments():
    """Eq. 62: p(z_i = k | x, y; φ) ∝ β_k p(y_i | x_i, z_i = k; φ).

    With θ collapsed it is the conditional of Gibbs too. The likeliest and the entropy follow; the
    most that three mappings can have is log 3, about 1.1 nats.
    """
    known, problem = responsibilities(), problem_of()
    found = problem.responsibilities(SHARE)
    close(found, known)
    close(found[:, N == 0], SHARE[:, None])  # nothing was seen: H(z | x) is the same for all
    given = collapsed.Given(problem.log_predictive, problem.pseudo_counts)

    def conditional(_: Any, log_weights: Any, key: Any) -> Any:
        return collapsed.draw_assignment(given, log_weights, None, key)

    z = drawn(conditional, np.log(SHARE), problem=problem)
    for i in UNITS:
        assert st.chisquare(np.bincount(z[:, i], minlength=3), CHAINS * known[:, i]).pvalue > 1e-3
    assert (st.entropy(known) < np.log(3)).all()
    equal = {"each": [model_of()[1]["each"][0]] * 3, "gate": {"bias": np.zeros(3)}}
    joint = ask("log_joint", equal)
    close(st.entropy(softmax(joint, 0)), np.log(3))


def test_eq_63_posterior_of_the_rate():
    """Eq. 63: p(θ_i | x_i, y_i, z_i) = Ga(θ_i; α0 + a(x_i; φ_{z_i}) + y_i, β0 + b(x_i; φ_{z_i}) +
    n_i). The paper prints + 1 again (see Eq. 54)."""
    problem = problem_of()
    for k in MAPPINGS:
        density = st.gamma.logpdf(THETA, (ALPHA + A[k])[:, None], scale=1 / (BETA + B[k])[:, None])
        found = family.posterior(problem.natural_of(np.full(5, k)) + problem.statistic)
        assert_posterior(found, by_bayes(density))
        close(found.mean(), (ALPHA + A[k] + Y) / (BETA + B[k] + N))


def test_eq_64_iterated_expectations():
    """Eq. 64: E[θ_i | x_i, y_i; φ] = E_{z_i | x_i, y_i}[E[θ_i | x_i, y_i, z_i; φ]], by the mean of
    the mixture on the grid. So is its density, which the mixture's methods speak of."""
    problem = problem_of()
    found = problem.posterior(problem.responsibilities(SHARE))
    mixed = logsumexp(log_joint() + np.log(SHARE)[:, None, None], 0)
    mixed = mixed - integral(mixed)[:, None]
    close(found.mean(), np.exp(integral(mixed + np.log(THETA))))
    each = (ALPHA + A + Y) / (BETA + B + N)
    close(found.mean(), (responsibilities() * each).sum(0))
    for i in UNITS:
        near = mixed[i] > -30
        close(found[i].log_prob(THETA[near]), mixed[i][near])


# --- Appendix B: expectation maximisation ---------------------------------------------------------


@three_families
def test_eq_b1_marginal_of_one_mapping(name):
    """Eq. B1: p(y_i | x_i, z_i; φ) = ∫ f(y_i; θ_i) π(θ_i; λ0 + T_x(x_i; φ_{z_i})) dθ_i.

    It is g(y_i; λ0 + T_x(x_i; φ_{z_i})): it depends on the mapping through T_x alone.
    """
    case = BY_NAME[name]
    theta, log_weight = case.grid()
    aux = [tuple(s * np.asarray(part) for part in case.aux) for s in (0.3, 1.0, 4.0)]
    for own in aux:
        found = case.family.log_predictive(case.prior + case.statistic(own), **case.y.columns)
        density = case.log_density(plus(case.at, own), theta)
        close(found, logsumexp(case.y.log_likelihood(theta) + density + log_weight))


def complete(weights: Any = None) -> np.ndarray:
    """log p(y, z | x; φ, β) of every z, as the model has it."""
    return ask("log_joint", weights)[EVERY, UNITS].sum(1)


def test_eq_b2_and_b3_complete_data_log_likelihood():
    """Eq. B2: log p(y, z | x; φ, β) = log Π_i Π_k {β_k p(y_i | x_i, z_i; φ)}^{z_ik}.
    Eq. B3: = Σ_i Σ_k z_ik log β_k + Σ_i Σ_k z_ik log g(y_i; λ0 + T_x(x_i; φ_k)).

    (The paper has φ_{z_i} in the sum over k.) Summed over all z it is the marginal likelihood.
    """
    product = np.prod((SHARE[:, None] * np.exp(log_mass()))[EVERY, UNITS], 1)
    close(complete(), np.log(product))
    one_hot = EVERY[..., None] == MAPPINGS
    of_weights = one_hot.sum(1) @ np.log(SHARE)
    close(complete(), of_weights + np.einsum("zik,ki->z", one_hot, log_mass()))
    close(logsumexp(complete()), ask("log_predictive").sum())


def held(weights: Any = None) -> tuple[Any, Any, Any]:
    """A step of EM, what it holds at these weights, and what its gain needs."""
    model, own = model_of(gate=True)
    step = EM(1.0, True, False)
    with jax.enable_x64(True):
        given = double((own if weights is None else weights, model.ground(prior), X, COLUMNS))
        return step, model, step.hold(model, *given, jnp.ones(5))


def test_eq_b4_to_b6_responsibilities():
    """Eq. B4: ρ_ik = p(z_i = k | x_i, y_i; φ, β). Eq. B5: ∝ p(z_i = k; β) p(y_i | x_i, z_i = k; φ).
    Eq. B6: = β_k g(y_i; λ0 + T_x(x_i; φ_k)), to be divided by its sum. All z are listed for B4."""
    rho = np.asarray(held()[2].rows)  # units × mappings
    of_z = np.exp(complete() - logsumexp(complete()))
    close(rho, np.einsum("z,zik->ik", of_z, EVERY[..., None] == MAPPINGS))
    mass = SHARE[:, None] * np.exp(log_mass())
    close(rho.T, mass / mass.sum(0))
    close(rho.sum(1), 1.0)


def moved(seed: int = 1) -> Any:
    """Other weights than those at which responsibilities are held."""
    rng = np.random.default_rng(seed)
    own = jax.tree.map(lambda w: w + rng.normal(size=w.shape), model_of()[1])
    return own | {"gate": {"bias": own["gate"]["bias"], "slope": np.zeros((2, 3))}}


def test_eq_b7_to_b9_the_expected_complete_log_likelihood():
    """Eqs. B7 and B8: what an M-step makes large is E log p(y, z | x; φ, β), z being distributed as
    by the weights before. Eq. B9: it is Σ_i Σ_k ρ_ik log β_k + Σ_i Σ_k ρ_ik log g(…). It bounds the
    marginal likelihood from below, less the entropy of z, and touches it at the weights before."""
    step, model, known = held()
    of_z = np.exp(complete() - logsumexp(complete()))
    entropy = st.entropy(np.asarray(known.rows), axis=1).sum()

    def gain(weights: Any) -> float:
        with jax.enable_x64(True):
            own, ground, x, y = double((weights, model.ground(prior), X, COLUMNS))
            found = step.gain(model, maximum_likelihood, own, ground, x, y, None, known)
            return float(found.sum())

    for seed in (1, 2):
        weights = moved(seed)
        expected = of_z @ complete(weights)
        close(gain(weights), expected)
        assert expected + entropy < ask("log_predictive", weights).sum()
    close(gain(model_of(True)[1]) + entropy, ask("log_predictive").sum())


M, TRUE = 200, np.random.default_rng(0)
ROWS, PEOPLE = TRUE.normal(size=(M, 2)), TRUE.uniform(0.5, 4.0, M)
RATE = np.exp(np.where(np.arange(M) % 2 == 0, ROWS[:, 0], -ROWS[:, 0]))
DEATHS = TRUE.poisson(PEOPLE * TRUE.gamma(ALPHA + 6 * RATE, 1 / (BETA + 6)))
DATA = {"count": DEATHS.astype(float), "exposure": PEOPLE}


def gamma_poisson(flat: np.ndarray) -> np.ndarray:
    """log g of each row: log b, log rate and its two slopes."""
    b = np.exp(flat[0])
    a = b * np.exp(flat[1] + ROWS @ flat[2:])
    return st.nbinom.logpmf(DEATHS, ALPHA + a, (BETA + b) / (BETA + b + PEOPLE))


@pytest.fixture(scope="module")
def m_step() -> tuple[np.ndarray, Any]:
    """The responsibilities of some weights, and the weights after one step from there."""
    flat = np.array([[1.5, 0.0, 0.8, 0.1], [1.0, 0.2, -0.9, 0.0]])
    each = [{"slope": own[2:, None], "bias": own[:2]} for own in flat]
    start = {"each": each, "gate": {"bias": np.log([0.4, 0.6])}}
    model = MixedModel(family, Linear(constant_count=True), mixture=Mixture(2))
    found = solve_mixture(model, model.ground(prior), ROWS, DATA, start=start, rounds=1)
    mass = np.array([[0.4], [0.6]]) * np.exp([gamma_poisson(own) for own in flat])
    return (mass / mass.sum(0)).T, found.weights


def test_eq_b10_mixture_weights_of_an_m_step(m_step):
    """Eq. B10: β_k = Σ_i ρ_ik / Σ_k Σ_i ρ_ik, and no other β has more of Σ_i Σ_k ρ_ik log β_k."""
    rho, weights = m_step
    beta = softmax(weights["gate"]["bias"])
    close(beta, rho.sum(0) / rho.sum())
    others = np.random.default_rng(0).dirichlet([1, 1], 2000)
    assert (rho.sum(0) @ np.log(others).T <= rho.sum(0) @ np.log(beta)).all()


def test_eq_b11_mappings_of_an_m_step(m_step):
    """Eq. B11: φ_k = argmax Σ_i ρ_ik log g(y_i; λ0 + T_x(x_i; φ_k)), beside SciPy's own search."""
    rho, weights = m_step
    for k, own in enumerate(weights["each"]):
        flat = np.concatenate([own["bias"], own["slope"][:, 0]])
        best = scipy.optimize.minimize(
            lambda at: -rho[:, k] @ gamma_poisson(at),  # noqa: B023
            np.array([0.5, 0.0, 0.0, 0.0]),
            options={"gtol": 1e-7},
        )
        # SciPy's slopes are differences: it stops a little short of the top.
        assert -1e-9 < rho[:, k] @ gamma_poisson(flat) + best.fun < 1e-5
        np.testing.assert_allclose(flat, best.x, atol=1e-3)


# --- Appendix D: the baselines --------------------------------------------------------------------

LINEAR, OVERDISPERSION = X @ SLOPE[0, :, 1] + BIAS[0, 1], 0.35  # φᵀx with a bias, and δ
MU = np.exp(LINEAR)


def regression(mapping: Linear, first: float) -> Any:
    """T_x of a regression with the first output for all rows."""
    weights = {"slope": SLOPE[0, :, 1:], "bias": np.array([first, BIAS[0, 1]])}
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, mapped(family, mapping, double(weights), double(X)))


def gamma_poisson_regression(delta: float = OVERDISPERSION) -> Any:
    return regression(Linear(constant_count=True, shape=True), -np.log(delta))


def test_eq_d1_likelihood_is_a_product_of_integrals():
    """Eq. D1: p(y | x; φ) = Π_i p(y_i | x_i; φ) = Π_i ∫ p(y_i | θ_i) p(θ_i | x_i; φ) dθ_i."""
    found = family.log_predictive(prior + gamma_poisson_regression(), **COLUMNS).sum()
    a, b = ALPHA + 1 / OVERDISPERSION, BETA + 1 / (OVERDISPERSION * MU)
    density = st.gamma.logpdf(THETA, a, scale=1 / b[:, None])
    likelihood = st.poisson.logpmf(Y[:, None], N[:, None] * THETA)
    close(found, np.log(np.prod(np.exp(integral(likelihood + density)))))


def test_eq_d2_the_link_of_the_baselines():
    """Eq. D2: μ(x_i; φ) = exp(φᵀ x_i), with a bias."""
    for mapping in (Linear(constant_count=True), Linear(constant_count=True, shape=True)):
        aux = regression(mapping, 0.3)
        close(aux.t / aux.n, MU)


def test_eq_d3_poisson_regression_predicts_by_the_likelihood():
    """Eq. D3: p_Po(y_i | x_i; φ) = Po(y_i; n_i μ(x_i; φ))."""
    model = Model(family, Linear(constant_count=True), certain=True)
    weights = {"slope": SLOPE[0, :, 1:], "bias": np.array([0.3, BIAS[0, 1]])}
    with jax.enable_x64(True):
        given = double((weights, model.ground(prior), X, COLUMNS))
        found = np.asarray(model.log_predictive(*given))
    close(found, st.poisson.logpmf(Y, N * MU))
    close(family.likelihood(MU, N).log_prob(Y), st.poisson.logpmf(Y, N * MU))


def test_eq_d4_poisson_regression_implies_a_point_mass():
    """Eq. D4: p_Po(θ_i | x_i; φ) = Dirac(θ_i − μ(x_i; φ)): all mass at μ, and an entropy of −∞.

    It is the limit of many pseudo-observations at the rate μ.
    """
    law = PointMass(MU)
    close(law.mean(), MU)
    close(law.sd(), 0.0)
    assert np.isneginf(law.entropy()).all()
    for n in 10.0 ** np.arange(8, 15, 2):
        near = family.posterior(prior + family.natural(n * MU, n * np.ones(5)))
        close(near.cdf(MU * 0.99), law.cdf(MU * 0.99))
        close(near.cdf(MU * 1.01), law.cdf(MU * 1.01))
        normal = st.norm.entropy(scale=np.sqrt(MU / n))
        np.testing.assert_allclose(near.entropy(), normal, atol=1e-3)


def test_eq_d5_gamma_poisson_regression_predictive():
    """Eq. D5: p_GaPo(y_i | x_i; φ) = GaPo(y_i; α0 + 1/δ, (β0 + 1/(δ μ(x_i; φ))) / n_i), one δ.

    With α0 = β0 = 0 it is negative-binomial regression, of mean n μ and variance n μ (1 + δ n μ).
    As δ → 0 it becomes the Poisson of mean n μ.
    """
    aux, delta = gamma_poisson_regression(), OVERDISPERSION
    for at, a0, b0 in ((prior + aux, ALPHA, BETA), (aux, 0.0, 0.0)):
        b = b0 + 1 / (delta * MU)
        close(
            family.log_predictive(at, **COLUMNS), st.nbinom.logpmf(Y, a0 + 1 / delta, b / (b + N))
        )
    law = family.predictive(aux, exposure=N)
    close(law.mean(), N * MU)
    close(law.variance(), N * MU * (1 + delta * N * MU))
    known, errors = st.poisson.logpmf(Y, N * MU), []
    for small in 10.0 ** -np.arange(2, 11, 2):
        found = family.log_predictive(gamma_poisson_regression(small), **COLUMNS)
        errors.append(np.abs(found - known).max())
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 1e-7


def test_eq_d6_gamma_poisson_regression_posterior():
    """Eq. D6: p_GaPo(θ_i | x_i; φ) = Ga(θ_i; α0 + 1/δ, β0 + 1/(δ μ(x_i; φ))), one δ.

    It is worth 1/δ arrivals in 1/(δ μ) intervals; the text below the equation has δ μ of them, by
    which the rate would not be μ.
    """
    aux, delta = gamma_poisson_regression(), OVERDISPERSION
    close(aux.count, 1 / delta)
    close(aux.exposure, 1 / (delta * MU))
    found = family.posterior(prior + aux)
    for theta in POSITIVE:
        known = st.gamma.logpdf(theta, ALPHA + 1 / delta, scale=1 / (BETA + 1 / (delta * MU)))
        close(found.log_prob(theta), known)


def test_eq_d7_and_d8_each_row_has_arrivals_and_intervals_of_its_own():
    """Eq. D7: p_LDF(y_i | x_i; φ) = GaPo(y_i; α0 + a(x_i; φ), (β0 + b(x_i; φ)) / n_i).
    Eq. D8: p_LDF(θ_i | x_i; φ) = Ga(θ_i; α0 + a(x_i; φ), β0 + b(x_i; φ)).

    Gamma–Poisson regression is the case a = 1/δ, b = 1/(δ μ). Of a mixture each component has this
    form, and the assignment is summed out.
    """
    model = Model(family, Linear(by="counts"))
    with jax.enable_x64(True):
        weights = double({"slope": SLOPE[0], "bias": BIAS[0]})
        given = double((model.ground(prior), X, COLUMNS))
        log_p = np.asarray(model.log_predictive(weights, *given))
        aux = jax.tree.map(np.asarray, model.pseudo_observations(weights, *given[:2]))
    close(log_p, log_mass()[0])
    found = family.posterior(prior + aux)
    for theta in POSITIVE:
        close(found.log_prob(theta), st.gamma.logpdf(theta, ALPHA + A[0], scale=1 / (BETA + B[0])))
    close(found.sd(), np.sqrt(ALPHA + A[0]) / (BETA + B[0]))
    special = family.natural(np.full(5, 1 / OVERDISPERSION), 1 / (OVERDISPERSION * MU))
    for mine, theirs in zip(
        gamma_poisson_regression().coordinates(), special.coordinates(), strict=True
    ):
        close(mine, theirs)
    close(ask("log_predictive"), np.log(SHARE @ np.exp(log_mass())))
