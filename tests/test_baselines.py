"""Every baseline is its textbook's fit: that of statsmodels or scikit-learn, or the likelihood as
SciPy has it, maximised directly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats as st
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

import ldf
from ldf.baselines import NAMES, PARTS, baselines, regression
from ldf.distributions import PointMass
from ldf.estimator import Fusion
from ldf.learn import Learned, learn
from ldf.mappings import Linear
from ldf.table import Table

M, P, K = 200, 3, 3
close = np.testing.assert_allclose


def features() -> np.ndarray:
    """Columns that are far from standardised, one of them skewed."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(M, P))
    return np.stack([3 + 2 * z[:, 0], 0.01 * z[:, 1], np.exp(z[:, 2])], 1)


X = features()
DESIGN = sm.add_constant(X)
Z = sm.add_constant((X - X.mean(0)) / X.std(0))  # the same fits, better conditioned
SIGNAL = Z @ [-0.8, 0.5, -0.3, 0.2]


def primary() -> dict[str, dict[str, np.ndarray]]:
    """Over-dispersed in every family, with trials, exposures and variances that differ."""
    rng = np.random.default_rng(1)
    trials = rng.integers(1, 30, M)
    rate = 1 / (1 + np.exp(-SIGNAL))
    exposure = np.exp(rng.normal(size=M))
    shares = np.exp(np.stack([SIGNAL, -0.5 * SIGNAL, 0 * SIGNAL], 1))
    shares /= shares.sum(1, keepdims=True)
    classes = rng.multinomial(trials, [rng.dirichlet(6 * share) for share in shares])
    variance = rng.uniform(0.1, 1.0, M)
    columns = {
        "Binomial": {"successes": rng.binomial(trials, rng.beta(6 * rate, 6 * (1 - rate))),
                     "trials": trials},
        "Poisson": {"count": rng.poisson(exposure * rng.gamma(1.5, np.exp(SIGNAL + 1) / 1.5)),
                    "exposure": exposure},
        "Multinomial": {"counts": classes},
        "Gaussian": {"mean": 50 + 2 * SIGNAL + rng.normal(size=M) * np.sqrt(0.8 + variance),
                     "variance": variance},
    }  # fmt: skip
    return {
        family: {name: np.asarray(v, float) for name, v in words.items()}
        for family, words in columns.items()
    }


Y = primary()
FAMILIES = {
    "Binomial": ldf.Binomial(),
    "Poisson": ldf.Poisson(),
    "Multinomial": ldf.Multinomial(classes=K),
    "Gaussian": ldf.Gaussian(),
}
PLAIN = {kind: names[0] for kind, names in NAMES.items()}
COMPOUND = {kind: names[1] for kind, names in NAMES.items()}


def table(y: dict[str, np.ndarray], rows: int = M) -> Table:
    return Table(X[:rows], y, np.ones(rows, bool), np.ones(rows))


@cache
def learned(kind: str, name: str) -> Learned:
    """By the name of the baseline, without penalty."""
    spec = baselines(FAMILIES[kind], penalty=0.0, preprocess="standard")[name]
    return learn(spec, table(Y[kind]), seed=0)[0]


def pseudo(fit: Learned) -> Any:
    """T_x, which is all of λ: there is no prior beside it."""
    for leaf in fit.prior().natural.coordinates():
        assert (np.asarray(leaf) == 0).all()
    return fit.said(X).pseudo[0]


def log_likelihood(fit: Learned, y: dict[str, np.ndarray]) -> float:
    rows = len(next(iter(y.values())))
    return float(fit.log_score(fit.said(X[:rows]), y).sum())


def coefficients(fit: Learned) -> np.ndarray:
    """Intercept and slopes of the (single) linear predictor, in the columns' own units."""
    (trained,) = fit.trained
    slope = trained.ground.scale[1] * trained.weights["slope"][0, :, -1] / trained.preprocess.scale
    bias = trained.ground.centre[1] + trained.ground.scale[1] * trained.weights["bias"][0, 1]
    return np.array([bias - slope @ trained.preprocess.centre, *slope])


def maximised(log_likelihood: Callable[[np.ndarray], float], size: int) -> tuple[np.ndarray, float]:
    """Directly, by finite differences."""
    found = scipy.optimize.minimize(
        lambda at: -log_likelihood(at) / M, np.zeros(size), jac="3-point", method="BFGS",
        options={"gtol": 1e-7},
    )  # fmt: skip
    return found.x, -M * found.fun


# --- without dispersion -------------------------------------------------------------------------


def test_binomial_regression_is_the_textbooks() -> None:
    y, fit = Y["Binomial"], learned("Binomial", "binomial")
    pair = np.stack([y["successes"], y["trials"] - y["successes"]], 1)
    book = sm.GLM(pair, DESIGN, family=sm.families.Binomial()).fit(tol=1e-12)
    close(coefficients(fit), book.params, rtol=1e-5)
    close(pseudo(fit).t / pseudo(fit).n, book.fittedvalues, rtol=1e-6)
    assert log_likelihood(fit, y) == pytest.approx(book.llf, rel=1e-10)


def test_poisson_regression_with_exposure_is_the_textbooks() -> None:
    y, fit = Y["Poisson"], learned("Poisson", "poisson")
    book = sm.GLM(
        y["count"], DESIGN, family=sm.families.Poisson(), exposure=y["exposure"]
    ).fit(tol=1e-12)  # fmt: skip
    close(coefficients(fit), book.params, rtol=1e-5)
    close(pseudo(fit).t / pseudo(fit).n * y["exposure"], book.fittedvalues, rtol=1e-6)
    assert log_likelihood(fit, y) == pytest.approx(book.llf, rel=1e-10)


def test_multinomial_regression_is_the_textbooks() -> None:
    """Which knows no grouped counts: a row a trial."""
    counts, fit = Y["Multinomial"]["counts"].astype(int), learned("Multinomial", "multinomial")
    unit, label = (np.repeat(v.ravel(), counts.ravel()) for v in np.indices(counts.shape))
    book = sm.MNLogit(label, Z[unit]).fit(disp=0, method="newton", tol=1e-12)
    shares = pseudo(fit).counts / pseudo(fit).n[:, None]
    close(shares, book.predict(Z), rtol=1e-5)
    base = FAMILIES["Multinomial"].log_base(counts).sum()
    assert log_likelihood(fit, Y["Multinomial"]) == pytest.approx(book.llf + base, rel=1e-10)


def test_least_squares_is_the_textbooks() -> None:
    y, fit = Y["Gaussian"], learned("Gaussian", "least-squares")
    book = sm.WLS(y["mean"], DESIGN, weights=1 / y["variance"]).fit()
    close(coefficients(fit), book.params, rtol=1e-5)
    close(pseudo(fit).t / pseudo(fit).n, book.fittedvalues, rtol=1e-7)
    known = st.norm.logpdf(y["mean"], book.fittedvalues, np.sqrt(y["variance"])).sum()
    assert log_likelihood(fit, y) == pytest.approx(known, rel=1e-10)


# --- with it ------------------------------------------------------------------------------------


def test_beta_binomial_regression_is_the_textbooks() -> None:
    """Eq. C5 with α0 = β0 = 0: one δ for all rows."""
    y, fit = Y["Binomial"], learned("Binomial", "beta-binomial")
    k, n = y["successes"], y["trials"]

    def of(at: np.ndarray) -> float:
        rate = 1 / (1 + np.exp(-Z @ at[1:]))
        delta = np.exp(at[0])
        return st.betabinom.logpmf(k, n, delta * rate, delta * (1 - rate)).sum()

    at, best = maximised(of, P + 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).n, np.exp(at[0]), rtol=1e-4)
    close(pseudo(fit).t / pseudo(fit).n, 1 / (1 + np.exp(-Z @ at[1:])), rtol=1e-4)


def test_gamma_poisson_regression_is_the_textbooks() -> None:
    """Appendix D: θ_i ~ Ga(1/δ, 1/(δ μ_i)), which is NB2, one δ for all rows."""
    y, fit = Y["Poisson"], learned("Poisson", "gamma-poisson")
    book = sm.NegativeBinomial(y["count"], Z, exposure=y["exposure"]).fit(
        disp=0, method="bfgs", maxiter=500, gtol=1e-8
    )
    delta = book.params[-1]
    close(pseudo(fit).count, 1 / delta, rtol=1e-5)
    close(pseudo(fit).exposure, 1 / (delta * np.exp(Z @ book.params[:-1])), rtol=1e-5)
    assert log_likelihood(fit, y) == pytest.approx(book.llf, rel=1e-10)


def test_gamma_poisson_regression_with_a_constant_exposure() -> None:
    """Section 4: one number of pseudo-observations for all rows, and in the same units as n_i."""
    y, fit = Y["Poisson"], learned("Poisson", "gamma-poisson, constant exposure")
    count, exposure = y["count"], y["exposure"]

    def of(at: np.ndarray) -> float:
        b, mu = np.exp(at[0]), np.exp(Z @ at[1:])
        return st.nbinom.logpmf(count, b * mu, b / (b + exposure)).sum()

    at, best = maximised(of, P + 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).exposure, np.exp(at[0]), rtol=1e-4)
    close(pseudo(fit).count, np.exp(at[0] + Z @ at[1:]), rtol=1e-4)


def test_with_equal_exposures_a_constant_one_is_the_textbooks_nb1() -> None:
    """Var y = m (1 + α) with α = n / b."""
    exposure = 2.5
    y = {"count": Y["Poisson"]["count"], "exposure": np.full(M, exposure)}
    spec = baselines(ldf.Poisson(), 0.0, "standard")["gamma-poisson, constant exposure"]
    (fit,) = learn(spec, table(y), seed=0)
    book = sm.NegativeBinomialP(y["count"], Z, p=1, exposure=y["exposure"]).fit(
        disp=0, method="bfgs", maxiter=500, gtol=1e-8
    )
    close(pseudo(fit).exposure, exposure / book.params[-1], rtol=1e-5)
    close(pseudo(fit).count / pseudo(fit).exposure, np.exp(Z @ book.params[:-1]), rtol=1e-5)
    assert log_likelihood(fit, y) == pytest.approx(book.llf, rel=1e-10)


def test_a_log_linear_count_has_both_gamma_poisson_regressions_in_it() -> None:
    y = Y["Poisson"]
    both = ("gamma-poisson", "gamma-poisson, constant exposure")
    wide = learned("Poisson", "gamma-poisson, log-linear count")
    for name in both:
        assert log_likelihood(wide, y) > log_likelihood(learned("Poisson", name), y)


def test_only_logarithms_have_a_shape_to_share() -> None:
    with pytest.raises(ldf.DataError, match="has no logarithm of a shape"):
        Linear(True, by="rate", shape=True)


def test_dirichlet_multinomial_regression_is_the_textbooks() -> None:
    fit, counts = learned("Multinomial", "dirichlet-multinomial"), Y["Multinomial"]["counts"]
    counts = counts.astype(int)

    def alpha(at: np.ndarray) -> np.ndarray:
        logits = np.concatenate([Z @ at[1:].reshape(P + 1, K - 1), np.zeros((M, 1))], 1)
        return np.exp(at[0] + logits - scipy.special.logsumexp(logits, 1, keepdims=True))

    def of(at: np.ndarray) -> float:
        return st.dirichlet_multinomial.logpmf(counts, alpha(at), counts.sum(1)).sum()

    at, best = maximised(of, 1 + (P + 1) * (K - 1))
    assert log_likelihood(fit, Y["Multinomial"]) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).counts, alpha(at), rtol=1e-4)


def test_random_effects_are_fay_and_herriots() -> None:
    """y_i ~ N(x_i β, σ² + v_i)."""
    y, fit = Y["Gaussian"], learned("Gaussian", "random-effect")
    centred = y["mean"] - 50

    def of(at: np.ndarray) -> float:
        spread = np.sqrt(np.exp(at[0]) + y["variance"])
        return st.norm.logpdf(centred, Z @ at[1:], spread).sum()

    at, best = maximised(of, P + 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(1 / pseudo(fit).precision, np.exp(at[0]), rtol=1e-4)
    close(pseudo(fit).t / pseudo(fit).n, 50 + Z @ at[1:], rtol=1e-6)


def test_with_equal_variances_random_effects_leave_the_least_squares_line() -> None:
    y = {"mean": Y["Gaussian"]["mean"], "variance": np.full(M, 0.4)}
    (fit,) = learn(baselines(ldf.Gaussian(), 0.0, "standard")["random-effect"], table(y), seed=0)
    book = sm.OLS(y["mean"], DESIGN).fit()
    close(coefficients(fit), book.params, rtol=1e-5)
    close(1 / pseudo(fit).precision, book.ssr / M - 0.4, rtol=1e-5)


def test_an_intercept_alone_is_the_compound_distribution_of_all_rows() -> None:
    y, fit = Y["Binomial"], learned("Binomial", "intercept")

    def beta(at: np.ndarray) -> float:
        return st.betabinom.logpmf(y["successes"], y["trials"], *np.exp(at)).sum()

    at, best = maximised(beta, 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).successes, np.exp(at[0]), rtol=1e-4)
    close(pseudo(fit).failures, np.exp(at[1]), rtol=1e-4)

    y, fit = Y["Poisson"], learned("Poisson", "intercept")

    def gamma(at: np.ndarray) -> float:
        a, b = np.exp(at)
        return st.nbinom.logpmf(y["count"], a, b / (b + y["exposure"])).sum()

    at, best = maximised(gamma, 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).count, np.exp(at[0]), rtol=1e-4)
    close(pseudo(fit).exposure, np.exp(at[1]), rtol=1e-4)

    counts, fit = Y["Multinomial"]["counts"].astype(int), learned("Multinomial", "intercept")

    def dirichlet(at: np.ndarray) -> float:
        return st.dirichlet_multinomial.logpmf(counts, np.exp(at), counts.sum(1)).sum()

    at, best = maximised(dirichlet, K)
    assert log_likelihood(fit, Y["Multinomial"]) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).counts, np.broadcast_to(np.exp(at), (M, K)), rtol=1e-4)

    y, fit = Y["Gaussian"], learned("Gaussian", "intercept")

    def normal(at: np.ndarray) -> float:
        spread = np.sqrt(np.exp(at[1]) + y["variance"])
        return st.norm.logpdf(y["mean"], 50 + at[0], spread).sum()

    at, best = maximised(normal, 2)
    assert log_likelihood(fit, y) == pytest.approx(best, rel=1e-9)
    close(pseudo(fit).t / pseudo(fit).n, 50 + at[0], rtol=1e-6)
    close(1 / pseudo(fit).precision, np.exp(at[1]), rtol=1e-4)


@pytest.mark.parametrize("kind", ["Binomial", "Poisson"])
def test_more_freedom_explains_the_training_rows_better(kind: str) -> None:
    """Each is a special case of the next: plain and intercept of compound, that of log-linear."""
    names = ("intercept", PLAIN[kind], COMPOUND[kind], f"{COMPOUND[kind]}, log-linear count")
    fits = (learned(kind, name) for name in names)
    intercept, plain, compound, wide = (log_likelihood(fit, Y[kind]) for fit in fits)
    assert max(intercept, plain) < compound < wide


# --- penalties ----------------------------------------------------------------------------------

PENALTY = 0.05


def test_a_penalised_binomial_regression_is_scikit_learns() -> None:
    """C multiplies the sum over rows, of Bernoulli data here, and half of |w|² is added."""
    label = (Y["Binomial"]["successes"] * 2 > Y["Binomial"]["trials"]).astype(float)
    y = {"successes": label, "trials": np.ones(M)}
    spec = regression(ldf.Binomial(), Linear(True), PENALTY, certain=True)
    (fit,) = learn(spec, table(y), seed=0)
    book = LogisticRegression(C=1 / (2 * PENALTY * M), tol=1e-10).fit(Z[:, 1:], label)
    slope = fit.trained[0].weights["slope"][0, :, 0]
    close(slope, book.coef_[0], rtol=1e-4)
    close(pseudo(fit).t / pseudo(fit).n, book.predict_proba(Z[:, 1:])[:, 1], rtol=1e-5)


def test_a_penalised_poisson_regression_is_scikit_learns() -> None:
    """Which divides by the sum of weights, here exposures, and not by the number of rows."""
    y = Y["Poisson"]
    spec = regression(ldf.Poisson(), Linear(True), PENALTY, certain=True)
    (fit,) = learn(spec, table(y), seed=0)
    alpha = 2 * PENALTY * M / y["exposure"].sum()
    book = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=1000, solver="newton-cholesky").fit(
        Z[:, 1:], y["count"] / y["exposure"], sample_weight=y["exposure"]
    )
    close(fit.trained[0].weights["slope"][0, :, 0], book.coef_, rtol=1e-5)
    close(pseudo(fit).t / pseudo(fit).n, book.predict(Z[:, 1:]), rtol=1e-5)


def test_penalised_least_squares_are_scikit_learns() -> None:
    """Slopes are counted in standard deviations of θ, so the penalty does not depend on units."""
    y = Y["Gaussian"]
    spec = regression(ldf.Gaussian(), Linear(True), PENALTY, certain=True)
    (fit,) = learn(spec, table(y), seed=0)
    scale = fit.trained[0].ground.scale[1]
    book = Ridge(alpha=2 * PENALTY * M / scale**2, solver="cholesky").fit(
        Z[:, 1:], y["mean"], sample_weight=1 / y["variance"]
    )
    close(scale * fit.trained[0].weights["slope"][0, :, 0], book.coef_, rtol=1e-5)
    close(pseudo(fit).t / pseudo(fit).n, book.predict(Z[:, 1:]), rtol=1e-6)


@pytest.mark.parametrize("name", ["binomial", "beta-binomial"])
def test_of_several_penalties_that_is_taken_which_suits_unseen_rows(name: str) -> None:
    """And with it there is one fit, to all training rows: nothing is averaged or corrected."""
    few = table({key: values[:60] for key, values in Y["Binomial"].items()}, 60)
    penalties = (30.0, 0.3, 0.03, 1e-3)

    def fitted(penalty: Any, parts: int) -> Learned:
        spec = baselines(FAMILIES["Binomial"], penalty, "standard")[name]
        spec = replace(spec, ensemble=replace(spec.ensemble, parts=parts))
        return learn(spec, few, seed=0)[0]

    def unseen(penalty: float) -> float:
        fit = fitted(penalty, PARTS)
        return float(fit.log_score(fit.said(few.x, fit.part), few.y).sum())

    best = max(penalties, key=unseen)
    (found,) = learn(baselines(FAMILIES["Binomial"], penalties, "standard")[name], few, seed=0)
    assert best in penalties[1:-1]  # neither the strongest nor the weakest
    close(log_likelihood(found, few.y), log_likelihood(fitted(best, 1), few.y), rtol=1e-8)
    seen = [log_likelihood(fitted(penalty, 1), few.y) for penalty in penalties]
    assert (np.diff(seen) > 0).all()  # the weaker, the better for those that it has seen


# --- what they say of θ and of new data ---------------------------------------------------------


def test_a_beta_binomial_regression_knows_theta_as_a_beta() -> None:
    """Eq. C6, and Be(δμ + k, δ(1 − μ) + n − k) after the row's own data."""
    y, fit = Y["Binomial"], learned("Binomial", "beta-binomial")
    k, n = y["successes"], y["trials"]
    delta, rate = pseudo(fit).n, pseudo(fit).t / pseudo(fit).n
    before, after_y = fit.said(X), fit.updated(fit.said(X), y)
    theta = np.linspace(0.01, 0.99, M)
    known = st.beta(delta * rate, delta * (1 - rate))
    close(fit.posterior(before).log_prob(theta), known.logpdf(theta), rtol=1e-8)
    close(fit.posterior(before).mean(), rate, rtol=1e-12)
    after = st.beta(delta * rate + k, delta * (1 - rate) + n - k)
    close(fit.posterior(after_y).quantile(0.9), after.ppf(0.9), rtol=1e-7)
    close(after_y.share, 1.0)  # one member keeps its share
    future = fit.predictive(after_y, {"trials": np.full(M, 10.0)})
    close(future.log_prob(np.full(M, 4.0)), st.betabinom.logpmf(4, 10, *after.args), rtol=1e-8)


def test_a_gamma_poisson_regression_knows_theta_as_a_gamma() -> None:
    y, fit = Y["Poisson"], learned("Poisson", "gamma-poisson")
    a, b = pseudo(fit).count, pseudo(fit).exposure
    before, after_y = fit.said(X), fit.updated(fit.said(X), y)
    close(fit.posterior(before).sd(), st.gamma.std(a, scale=1 / b), rtol=1e-8)
    a, b = a + y["count"], b + y["exposure"]
    close(fit.posterior(after_y).cdf(0.7), st.gamma.cdf(0.7, a, scale=1 / b), atol=1e-9)
    future = fit.predictive(after_y, {"exposure": np.full(M, 3.0)})
    close(future.log_prob(np.full(M, 2.0)), st.nbinom.logpmf(2, a, b / (b + 3)), rtol=1e-8)


def test_a_dirichlet_multinomial_regression_knows_theta_as_a_dirichlet() -> None:
    y, fit = Y["Multinomial"], learned("Multinomial", "dirichlet-multinomial")
    before, after_y = fit.said(X), fit.updated(fit.said(X), y)
    alpha = pseudo(fit).counts + y["counts"]
    after = fit.posterior(after_y)
    theta = np.array([0.2, 0.5, 0.3])
    known = [st.dirichlet.logpdf(theta, row) for row in alpha]
    close(after.log_prob(np.broadcast_to(theta, (M, K))), known, rtol=1e-8)
    future = fit.predictive(before, {"trials": np.full(M, 6.0)})
    known = st.dirichlet_multinomial.logpmf([1, 2, 3], pseudo(fit).counts, 6)
    close(future.log_prob(np.broadcast_to([1.0, 2.0, 3.0], (M, K))), known, rtol=1e-8)


def test_random_effects_shrink_as_the_textbook_has_it() -> None:
    """Fay–Herriot's estimate: γ_i y_i + (1 − γ_i) x_i β with γ_i = σ²/(σ² + v_i)."""
    y, fit = Y["Gaussian"], learned("Gaussian", "random-effect")
    variance, line = 1 / pseudo(fit).precision, pseudo(fit).t / pseudo(fit).n
    before, after_y = fit.said(X), fit.updated(fit.said(X), y)
    own = variance / (variance + y["variance"])
    after = fit.posterior(after_y)
    close(after.mean(), own * y["mean"] + (1 - own) * line, rtol=1e-10)
    close(after.sd(), np.sqrt(own * y["variance"]), rtol=1e-10)
    future = fit.predictive(before, {"variance": y["variance"]})
    close(future.sd(), np.sqrt(variance + y["variance"]), rtol=1e-10)


LIKELIHOODS: dict[str, tuple[dict[str, Any], Any, Callable[[Any], Any]]] = {
    "Binomial": ({"trials": 10.0}, 4.0, lambda theta: st.binom.logpmf(4, 10, theta)),
    "Poisson": ({"exposure": 3.0}, 2.0, lambda theta: st.poisson.logpmf(2, 3 * theta)),
    "Multinomial": (
        {"trials": 6.0}, [1.0, 2.0, 3.0], lambda theta: st.multinomial.logpmf([1, 2, 3], 6, theta)
    ),
    "Gaussian": ({"variance": 0.5}, 49.0, lambda theta: st.norm.logpdf(49, theta, np.sqrt(0.5))),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_plain_regression_is_sure_of_theta(kind: str) -> None:
    """Eqs. C3 and C4 and their like: a Dirac, scored by the plain likelihood."""
    fit = learned(kind, PLAIN[kind])
    theta = fit.posterior(fit.said(X))
    assert isinstance(theta, PointMass)
    assert (theta.entropy() == -np.inf).all()
    assert (theta.sd() == 0).all()
    rate = pseudo(fit).t / np.expand_dims(pseudo(fit).n, tuple(range(1, pseudo(fit).t.ndim)))
    close(theta.mean(), rate, rtol=1e-10)
    design, value, known = LIKELIHOODS[kind]
    future = fit.predictive(fit.said(X), {n: np.full(M, v) for n, v in design.items()})
    value = np.broadcast_to(value, (M, *np.shape(value)))
    close(future.log_prob(value), known(theta.mean()), rtol=1e-8)


def test_a_plain_regression_takes_no_update() -> None:
    class Plain(Fusion):
        def spec(self, data: Any) -> Any:
            return baselines(data.family, 0.0, "standard")["binomial"]

    frame = pd.DataFrame({**dict(zip("abc", X.T, strict=True)), **Y["Binomial"]})
    words = {"successes": "successes", "trials": "trials"}
    model = Plain("binomial", words, list("abc")).fit(frame)
    fit = learned("Binomial", "binomial")
    close(model.posterior(frame, given="auxiliary").mean(), pseudo(fit).t / pseudo(fit).n)
    for given in ("both", "primary"):
        with pytest.raises(ldf.DataError, match="cannot update a known θ"):
            model.posterior(frame, given=given)


def test_a_family_without_textbook_regressions_says_so() -> None:
    with pytest.raises(ldf.DataError, match="has no textbook regressions"):
        baselines(ldf.Geometric())
