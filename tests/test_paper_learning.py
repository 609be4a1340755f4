"""One test for each displayed equation of Section 3.1 of the paper: what is maximised.

Equations are numbered as in the compiled paper, 25–35. `test_paper.py` has those before and the
cases used here, `test_paper_inference.py` those with global variables. Nothing on the expected
side calls `ldf`, except where the trainer is compared with itself.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from jax.flatten_util import ravel_pytree
from scipy.special import expit, logsumexp, rel_entr

import ldf
from ldf.mappings import Linear, Mapping, Network
from ldf.objective import maximum_likelihood, model_selection, tempered
from test_fit import QUICK, learn, leaves, settings
from test_fit import rows as rows_of_fits
from test_paper import BY_NAME, close, plus, softplus

three_families = pytest.mark.parametrize("name", ["binomial", "poisson", "gaussian"])
of_trials = ldf.Binomial()


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


in_double = pytest.mark.usefixtures("double")


def mapped(family: Any, mapping: Mapping, weights: Any, x: Any) -> Any:
    """T_x(x_i; φ) of each row."""
    outputs = jax.vmap(lambda row: mapping.apply(weights, row))(jnp.asarray(x))
    return family.from_unconstrained(outputs, mapping.formulation)


# --- The sum over rows ----------------------------------------------------------------------


def test_eq_25_a_weight_is_so_many_rows():
    """Eq. 25: φ̂ = argmax Σ_i w_i L(y_i; T_x(x_i; φ)): w_i = 3 is the row three times."""
    data, rng = rows_of_fits(2), np.random.default_rng(0)
    size = data.training.shape[1]
    count = rng.integers(0, 4, size)  # w_i, zero too
    repeated = np.repeat(np.arange(size), count)
    # Both watch one copy of the same 50 rows, so that they stop alike.
    shown = np.flatnonzero(count)[:50]
    copies = np.searchsorted(repeated, shown)

    def counted(weight: np.ndarray, watched: np.ndarray) -> dict[str, Any]:
        seen = np.isin(np.arange(len(weight)), watched)
        both = {"training": weight, "watched": seen}
        return {name: jnp.tile(jnp.asarray(w, jnp.float32), (2, 1)) for name, w in both.items()}

    one = data._replace(**counted(count, shown))
    unweighted = data._replace(**counted(np.ones(size), shown))
    many = data._replace(
        x=data.x[..., repeated, :],
        y={name: value[repeated] for name, value in data.y.items()},
        reference=data.reference[..., repeated],
        **counted(np.ones(len(repeated)), copies),
    )
    whole = {"schedule": QUICK._replace(batch=1024), "settings": settings(2, penalty=0.01)}
    fitted = [leaves(learn(rows, **whole).weights) for rows in (one, many, unweighted)]
    for mine, same, different in zip(*fitted, strict=True):
        np.testing.assert_allclose(mine, same, rtol=1e-3, atol=1e-4)
        assert np.abs(mine - different).max() > 1e-3


@in_double
@pytest.mark.parametrize("objective", [maximum_likelihood, model_selection])
def test_eq_25_a_batch_estimates_the_sum_without_bias(objective):
    """Eq. 25: the mean over all batches of (M/B) Σ_batch w_i L_i / Σ w_i is the whole.

    So is its gradient. Dividing by the batch's own weight instead, a ratio of two sums, is off.
    """
    size, batch = 6, 2
    rng = np.random.default_rng(1)
    x, k, n = rng.normal(size=(size, 2)), np.array([3, 0, 7, 1, 2, 9]), np.full(size, 9)
    w = np.array([0.1, 5.0, 1.0, 0.0, 2.0, 0.4])
    weights = {"slope": jnp.asarray(rng.normal(size=(2, 2))), "bias": jnp.zeros(2)}
    flat, unravel = ravel_pytree(weights)

    def gains(at: Any) -> Any:
        natural = of_trials.prior(0.5, 0.5) + mapped(of_trials, Linear(), unravel(at), x)
        return w * objective(of_trials.log_predictive(natural, k, n), jnp.full(size, -2.0))

    value, slope = (np.asarray(jax.jit(of)(flat)) for of in (gains, jax.jacobian(gains)))
    every = [list(rows) for rows in itertools.combinations(range(size), batch)]
    for parts in (value, slope):
        scaled = [size / batch * parts[rows].sum(0) / w.sum() for rows in every]
        own = [parts[rows].sum(0) / w[rows].sum() for rows in every]
        close(np.mean(scaled, 0), parts.sum(0) / w.sum())
        assert np.abs(np.mean(own, 0) - parts.sum(0) / w.sum()).max() > 0.01


def test_eq_25_small_batches_lead_where_the_whole_sum_does():
    """Eq. 25 as the trainer estimates it: rows of small weight keep it in batches of their own.

    Half of the rows, of rate 0.1, weigh a hundredth of the others, of rate 0.9. A batch of two is
    of such rows alone a quarter of the time; divided by its own weight it would count in full.
    """
    data = rows_of_fits(2)
    light = np.arange(data.training.shape[1]) % 2 == 0
    k, n = np.where(light, 2.0, 18.0), np.full(light.shape, 20.0)
    w = jnp.asarray(np.tile(np.where(light, 0.01, 1.0), (2, 1)), jnp.float32)
    y = {"successes": jnp.asarray(k, jnp.float32), "trials": jnp.asarray(n, jnp.float32)}
    data = data._replace(y=y, training=w, watched=w)
    schedule = QUICK._replace(epochs=10, batch=2)
    found = learn(data, Linear(by="rate"), schedule=schedule)
    for f in range(2):
        weights = jax.tree.map(lambda leaf, f=f: leaf[f], found.weights)
        rate = expit(np.asarray(weights["bias"])[1])
        assert rate > 0.84  # 0.89 is the weighted mean, 0.7 what the biased sum gives


def test_eq_26_objectives_are_functions_of_the_log_predictive():
    """Eq. 26: L(y_i; T_x) = ℓ(log p(y_i | T_x)), here for three ℓ, in p itself by SciPy."""
    k, n, p0 = np.arange(10), 9, 0.07
    natural = of_trials.prior(1.5, 2.5) + of_trials.natural(2.2, 0.7)
    log_p = of_trials.log_predictive(natural, k, n)
    p = st.betabinom.pmf(k, n, 3.7, 3.2)
    close(maximum_likelihood(log_p, np.log(p0)), np.log(p))
    np.testing.assert_allclose(model_selection(log_p, np.log(p0)), p / (p + p0), rtol=1e-5)
    close(tempered(0.5)(log_p, np.log(p0)), (np.sqrt(p) - 1) / 0.5)


@three_families
def test_eq_27_predictive_integrates_over_theta(name):
    """Eq. 27: p(y_i | T_x(x_i; φ)) = ∫ p(y_i | θ_i) p(θ_i | T_x(x_i; φ)) dθ_i, T_x by a mapping."""
    case = BY_NAME[name]
    x = np.array([[0.3, -1.0], [1.5, 0.2], [0.0, 0.0]])
    slope, bias = np.array([[0.4, -0.3], [0.1, 0.8]]), np.array([0.5, 0.2])
    with jax.enable_x64(True):
        weights = {"slope": jnp.asarray(slope), "bias": jnp.asarray(bias)}
        aux = mapped(case.family, Linear(by="rate"), weights, x)
        aux = jax.tree.map(np.asarray, aux)
    found = case.family.log_predictive(case.prior + aux, **case.y.columns)
    to_rate = {"binomial": expit, "poisson": softplus, "gaussian": lambda v: v}[name]
    theta, log_weight = case.grid()
    for i, (first, second) in enumerate(x @ slope + bias):
        n, t = softplus(first), softplus(first) * to_rate(second)
        natural = plus(case.at, (t, n - t) if name == "binomial" else (t, n))
        log_joint = case.y.log_likelihood(theta) + case.log_density(natural, theta)
        close(found[i], logsumexp(log_joint + log_weight))


@three_families
def test_eq_28_maximum_likelihood_criterion(name):
    """Eq. 28: L_ML(y_i; T_x) = log p(y_i | T_x), whatever the reference."""
    case = BY_NAME[name]
    log_p = case.family.log_predictive(case.prior + case.statistic(case.aux), **case.y.columns)
    known = case.log_marginal(plus(case.at, case.aux), case.y)
    for reference in (-30.0, 0.0):
        close(maximum_likelihood(log_p, reference), known)


# --- What maximum likelihood does -------------------------------------------------------------

# A world small enough to be written out: x is one of three, y of 0 … 4 successes in 4 trials, and
# p*(x, y) is so many of 600. φ is a slope, an intercept and a count, on a grid.
XS, TRIALS = np.array([-1.0, 0.0, 1.0]), 4
WORLD = np.array([[60, 40, 30, 15, 5], [30, 50, 60, 40, 20], [10, 20, 50, 80, 90]])
TRUTH = WORLD / WORLD.sum()
PHIS = np.array(list(itertools.product(np.linspace(-1, 2, 13), np.linspace(-1, 1, 9), (1.0, 4.0))))
BEST = 40  # of these, one that may be made the truth


def log_predictives() -> np.ndarray:
    """log p(y | T_x(x; φ)) of all φ × x × y."""
    slope, intercept, bias = PHIS.T
    with jax.enable_x64(True):
        zero = np.zeros_like(slope)
        weights = {
            "slope": jnp.asarray(np.stack([zero, slope], -1)[:, None]),
            "bias": jnp.asarray(np.stack([bias, intercept], -1)),
        }
        mapping = Linear(by="rate")
        aux = jax.vmap(lambda w: mapped(of_trials, mapping, w, XS[:, None]))(weights)
        a, b = (np.asarray(part)[..., None] + np.zeros(TRIALS + 1) for part in aux.coordinates())
    y = np.broadcast_to(np.arange(TRIALS + 1), a.shape)
    return of_trials.log_predictive(of_trials.natural(a + 0.5, b + 0.5), y, TRIALS + 0 * y)


def expected(truth: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (truth * values).sum((-2, -1))


def inside() -> np.ndarray:
    """A truth that the mapping can say: p*(x) p(y | T_x(x; φ*)) by SciPy."""
    slope, intercept, bias = PHIS[BEST]
    n, rate = softplus(bias), expit(intercept + slope * XS)[:, None]
    y = np.arange(TRIALS + 1)
    mass = st.betabinom.pmf(y, TRIALS, 0.5 + n * rate, 0.5 + n * (1 - rate))
    return TRUTH.sum(1, keepdims=True) * mass


def test_eq_29_mean_over_rows_becomes_the_expectation():
    """Eq. 29: lim 1/M Σ_i log p(y_i | T_x(x_i; φ)) is the expectation where (x_i, y_i) ~ p*."""
    log_p = log_predictives()
    where = np.repeat(np.arange(15), WORLD.ravel())  # 600 rows whose frequencies are p*
    close(log_p.reshape(-1, 15)[:, where].mean(1), expected(TRUTH, log_p))
    rng = np.random.default_rng(0)
    for size in (1_000, 100_000):
        drawn = log_p.reshape(-1, 15)[:, rng.choice(15, size, p=TRUTH.ravel())]
        error = drawn.mean(1) - expected(TRUTH, log_p)
        assert (np.abs(error) < 5 * drawn.std(1) / np.sqrt(size)).all()
    assert drawn.mean(1).argmax() == expected(TRUTH, log_p).argmax()


@pytest.mark.parametrize("truth", [TRUTH, inside()], ids=["outside", "inside"])
def test_eq_30_maximum_likelihood_minimises_the_entropy(truth):
    """Eq. 30: E_p*[log p(y | T_x)] = −H_p*(p(y | T_x)), a cross-entropy: never above −H(p*(y | x)).

    It is the entropy of the predictive itself where the predictive is the truth.
    """
    log_p = log_predictives()
    of_x = truth.sum(1)
    given = truth / of_x[:, None]
    cross = -(of_x * (given * log_p).sum(-1)).sum(-1)
    close(expected(truth, log_p), -cross)
    own = (of_x * st.entropy(given, axis=-1)).sum()
    assert (cross > own - 1e-12).all()
    if truth is not TRUTH:
        assert cross.argmin() == BEST
        close(cross[BEST], own)
        close((of_x * st.entropy(np.exp(log_p[BEST]), axis=-1)).sum(), own)


def test_eq_31_a_marginal_shifts_all_phi_alike():
    """Eq. 31: E_p*[log p(y | T_x) − log p(y)] differs by a constant: φ̂ stays."""
    log_p = log_predictives()
    y = np.arange(TRIALS + 1)
    marginals = (TRUTH.sum(0), st.betabinom.pmf(y, TRIALS, 0.5, 0.5))  # the world's, the prior's
    for marginal in marginals:
        found = expected(TRUTH, log_p - np.log(marginal))
        close(found - expected(TRUTH, log_p), -(TRUTH.sum(0) * np.log(marginal)).sum())
        assert found.argmax() == expected(TRUTH, log_p).argmax()


@pytest.mark.parametrize("truth", [TRUTH, inside()], ids=["outside", "inside"])
def test_eq_32_maximum_likelihood_maximises_the_mutual_information(truth):
    """Eq. 32: E_p*[log p(y | T_x) / p(y)] is I(y; x) less the divergence from p*(y | x).

    So it is a lower bound, and the mutual information where the predictive is the truth.
    """
    log_p = log_predictives()
    ratio = expected(truth, log_p - np.log(truth.sum(0)))
    outer = np.outer(truth.sum(1), truth.sum(0))
    information = rel_entr(truth, outer).sum()
    assert (ratio < information + 1e-12).all()
    close(ratio, information - divergence(truth, log_p))
    if truth is not TRUTH:
        assert ratio.argmax() == BEST
        close(ratio[BEST], information)


def divergence(truth: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """E_x KL(p*(y | x) ‖ p(y | T_x(x; φ))) of each φ."""
    of_x = truth.sum(1)
    return (of_x * rel_entr(truth / of_x[:, None], np.exp(log_p)).sum(-1)).sum(-1)


@pytest.mark.parametrize("truth", [TRUTH, inside()], ids=["outside", "inside"])
def test_section_3_1_maximum_likelihood_minimises_the_divergence(truth):
    """Section 3.1: E_p*[log p(y | T_x)] = −H(p*(y | x)) − KL(p*(y | x) ‖ p(y | T_x))."""
    log_p = log_predictives()
    of_x = truth.sum(1)
    entropy = (of_x * st.entropy(truth / of_x[:, None], axis=-1)).sum()
    close(expected(truth, log_p) + divergence(truth, log_p), -entropy)
    assert divergence(truth, log_p).argmin() == expected(truth, log_p).argmax()


# --- Model selection, and gradients -----------------------------------------------------------


def test_eq_33_model_selection_criterion():
    """Eq. 33: L_MS = p/(p + p_0) = 1/(1 + exp{−(log p − log p_0)}) = σ(log p − log p_0).

    At one half the row is explained as well as by the reference; at both ends it saturates.
    """
    k, n, count = 9, 9, np.array([0.0, 1.0, 1e2, 1e4, 1e6])
    natural = of_trials.prior(0.5, 0.5) + of_trials.natural(count, 0 * count)
    log_p = of_trials.log_predictive(natural, k, n)
    p, p0 = st.betabinom.pmf(k, n, 0.5 + count, 0.5), st.betabinom.pmf(k, n, 0.5, 0.5)
    found = model_selection(log_p, np.log(p0))
    np.testing.assert_allclose(found, p / (p + p0), rtol=1e-5)
    assert found[0] == pytest.approx(0.5)  # no better than the reference, here the prior's
    with jax.enable_x64(True):
        d = np.array([-800.0, -40.0, 0.0, 40.0, 800.0])
        ends = model_selection(jnp.asarray(d) - 3.0, jnp.asarray(-3.0))
    np.testing.assert_allclose(ends, [0.0, np.exp(-40.0), 0.5, 1.0, 1.0], rtol=1e-12)


@in_double
@three_families
@pytest.mark.parametrize("objective", [maximum_likelihood, model_selection])
def test_section_3_1_gradient_is_a_product_of_three(name, objective):
    """Section 3.1: ∇φ L = ∇φ T_x(x_i; φ) · ∇T_x log p(y_i | T_x) · ∇log p ℓ(log p)."""
    case, reference = BY_NAME[name], jnp.asarray(-2.0)
    x = jnp.array([[0.4, -0.2, 1.0]])
    weights = Network(by="rate").init(np.random.default_rng(3), 3, 2)
    flat, unravel = ravel_pytree(weights)
    prior = jax.tree.map(jnp.asarray, case.prior)
    y = {name: jnp.asarray(value, float) for name, value in case.y.columns.items()}

    def statistic(at: Any) -> Any:
        parts = mapped(case.family, Network(by="rate"), unravel(at), x).coordinates()
        return jnp.stack([part[0] for part in parts])

    def log_p(t: Any) -> Any:
        return case.family.log_predictive(prior + case.family.natural(*t), **y)

    def score(value: Any) -> Any:
        return objective(value, reference)

    of_mapping = jax.jit(jax.jacobian(statistic))(flat)  # D × weights
    of_predictive = jax.jit(jax.grad(log_p))(statistic(flat))
    of_objective = jax.grad(score)(jax.jit(log_p)(statistic(flat)))
    whole = jax.jit(jax.grad(lambda at: score(log_p(statistic(at)))))(flat)
    np.testing.assert_allclose(whole, of_predictive @ of_mapping * of_objective, rtol=1e-9)
    assert np.abs(whole).max() > 1e-3
    # The middle factor by differences of the integral over θ.
    t = np.asarray(statistic(flat))
    for d, step in enumerate(1e-5 * np.eye(2)):
        up, down = (case.log_marginal(plus(case.at, t + sign * step), case.y) for sign in (1, -1))
        assert of_predictive[d] == pytest.approx((up - down) / 2e-5, rel=1e-5)


@in_double
def test_eq_34_maximum_likelihood_counts_all_rows_alike():
    """Eq. 34: ∇log p ℓ_ML = 1."""
    log_p = jnp.linspace(-900.0, 2.0, 23)
    slope = jax.vmap(jax.grad(lambda v: maximum_likelihood(v, jnp.asarray(-3.0))))(log_p)
    np.testing.assert_array_equal(slope, 1.0)


@in_double
def test_eq_35_model_selection_counts_rows_near_the_reference():
    """Eq. 35: ∇log p ℓ_MS = e^−d / (1 + e^−d)² in d = log p − log p_0; at most 1/4, at d = 0."""
    d = np.linspace(-30.0, 30.0, 121)
    slope = jax.vmap(jax.grad(lambda v: model_selection(v, jnp.asarray(-3.0))))(jnp.asarray(d - 3))
    slope = np.asarray(slope)
    np.testing.assert_allclose(slope, np.exp(-d) / (1 + np.exp(-d)) ** 2, rtol=1e-9, atol=1e-15)
    assert slope.argmax() == 60
    close(slope[60], 0.25)
    close(slope, slope[::-1])
    assert (slope[[0, -1]] < 1e-12).all()
