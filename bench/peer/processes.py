"""Gaussian processes: GPBoost's, with its trees and without, and scikit-learn's.

GPBoost takes trials as weights of the share of successes, and exposure as an offset.
"""

from __future__ import annotations

from typing import Any

import gpboost as gpb
import numpy as np
import scipy.optimize
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from .counts import Counts, nodes
from .task import Task

LARGEST = 1000  # rows that scikit-learn's kernel is learned on
LADDER = (10, 20, 40, 80, 160, 320)  # rounds of boosting that are tried


def response(task: Task) -> dict[str, Any]:
    """y, weights and offset as GPBoost wants them."""
    if task.kind == "binomial":
        return {"y": task.y / task.n, "weights": task.n, "offset": None}
    return {"y": task.y, "weights": None, "offset": np.log(task.n / task.n.mean())}


def answer(task: Task, mean: np.ndarray, variance: np.ndarray, worth: float, scale: float):
    """From the latent's mean and variance, exposure left out, and the likelihood's parameter."""
    link, weight = nodes(mean, np.sqrt(np.maximum(variance, 0)))
    if task.kind == "binomial":
        return Counts.of(task.kind, task.n_new, expit(link), worth, weight)
    return Counts.of(task.kind, task.n_new, np.exp(link) / scale, worth, weight)


def count(task: Task) -> Counts:
    """A linear mean and a Gaussian process. Of trials with an effect of each row's own, since the
    beta-binomial, whose log is not concave, breaks the Laplace approximation."""
    own = response(task)
    ones, ones_new = np.ones((len(task.x), 1)), np.ones((len(task.x_new), 1))
    if task.kind == "binomial":
        kind = {"likelihood": "binomial_logit", "group_data": np.arange(len(task.x))}
        asked = {"group_data_pred": -1 - np.arange(len(task.x_new))}
    else:
        kind = {"likelihood": "negative_binomial", "gp_approx": "vecchia"}
        asked = {}
    model = gpb.GPModel(
        gp_coords=task.x, cov_function="matern", cov_fct_shape=1.5, weights=own["weights"],
        num_parallel_threads=1, seed=task.seed, **kind,
    )  # fmt: skip
    model.fit(y=own["y"], X=np.hstack([ones, task.x]), offset=own["offset"])
    said = model.predict(
        gp_coords_pred=task.x_new, X_pred=np.hstack([ones_new, task.x_new]),
        predict_var=True, predict_response=False, **asked,
    )  # fmt: skip
    worth = np.inf
    if task.kind == "poisson":
        worth = float(model.get_aux_pars(format_pandas=False)[0])
    return answer(task, said["mu"], said["var"], worth, task.n.mean())


def boosted(task: Task) -> Counts:
    """Trees. GPBoost's likelihoods come with a random effect: all rows share one.

    It finds the dispersion on the rows that the trees have learned from, which is too small. So it
    is found anew, with the rounds, on a fifth of the training rows."""
    own = response(task)
    scale = task.n.mean()
    likelihood = "beta_binomial" if task.kind == "binomial" else "negative_binomial"
    settings = {
        "learning_rate": 0.05, "num_leaves": 8, "min_data_in_leaf": 20, "max_depth": 3,
        "verbose": -1, "num_threads": 1, "seed": task.seed,
    }  # fmt: skip

    def latent(rounds: int, rows: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        some = {name: None if values is None else values[rows] for name, values in own.items()}
        effect = gpb.GPModel(
            group_data=np.zeros(len(rows)), likelihood=likelihood, weights=some["weights"],
            num_parallel_threads=1,
        )  # fmt: skip
        known = gpb.Dataset(task.x[rows], some["y"], init_score=some["offset"])
        trees = gpb.train(settings, known, gp_model=effect, num_boost_round=rounds)
        said = trees.predict(
            data=x, group_data_pred=np.zeros(len(x)), predict_var=True, pred_latent=True
        )
        return said["fixed_effect"] + said["random_effect_mean"], said["random_effect_cov"]

    learn, stop = task.inner()
    best, score, worth = LADDER[0], -np.inf, 1.0
    asked = task._replace(n_new=task.n[stop])
    for rounds in LADDER:
        found = latent(rounds, learn, task.x[stop])

        def loss(log_worth: float, found: Any = found) -> float:
            law = answer(asked, *found, np.exp(log_worth), scale)
            return -float(law.log_prob(task.y[stop]).mean())

        fit = scipy.optimize.minimize_scalar(loss, bounds=(-5, 12), method="bounded")
        if -fit.fun < score:
            break
        best, score, worth = rounds, -fit.fun, float(np.exp(fit.x))
    return answer(task, *latent(best, np.arange(len(task.y)), task.x_new), worth, scale)


def transformed(task: Task) -> Counts:
    """Transformed rates, with the variance that sampling gives each. Of two transforms, the one
    that predicts a fifth of the training rows better."""
    learn, stop = task.inner()
    tried = task._replace(
        x=task.x[learn], y=task.y[learn], n=task.n[learn], x_new=task.x[stop], n_new=task.n[stop]
    )
    scores = [of(tried).log_prob(task.y[stop]).mean() for of in (by_logarithm, by_root)]
    return (by_logarithm, by_root)[int(np.argmax(scores))](task)


def by_logarithm(task: Task) -> Counts:
    """Empirical logits, or log rates."""
    if task.kind == "binomial":
        z = np.log((task.y + 0.5) / (task.n - task.y + 0.5))
        link, weight = process(task, z, 1 / (task.y + 0.5) + 1 / (task.n - task.y + 0.5))
        return Counts.of(task.kind, task.n_new, expit(link), np.inf, weight)
    link, weight = process(task, np.log((task.y + 0.5) / task.n), 1 / (task.y + 0.5))
    return Counts.of(task.kind, task.n_new, np.exp(link), np.inf, weight)


def by_root(task: Task) -> Counts:
    """Anscombe's: the sampling variance hardly depends on the rate, which suits zeros."""
    if task.kind == "binomial":
        z = np.arcsin(np.sqrt((task.y + 3 / 8) / (task.n + 3 / 4)))
        angle, weight = process(task, z, 1 / (4 * task.n + 2))
        theta = np.sin(np.clip(angle, 0, np.pi / 2)) ** 2
        return Counts.of(task.kind, task.n_new, np.clip(theta, 1e-4, 1 - 1e-4), np.inf, weight)
    unit = task.y.sum() / task.n.sum()  # so that roots are near one
    z, noise = np.sqrt((task.y + 3 / 8) / (task.n * unit)), 1 / (4 * task.n * unit)
    root, weight = process(task, z, noise)
    theta = np.maximum(root, 0.03) ** 2 * unit
    return Counts.of(task.kind, task.n_new, theta, np.inf, weight)


def process(task: Task, z: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is predicted of the new rows, as nodes and their weights."""
    centre = np.average(z, weights=1 / (noise + z.var()))
    scale = z.std()
    z, noise = (z - centre) / scale, noise / scale**2
    kernel = (
        ConstantKernel(1.0, (1e-3, 1e3))
        * Matern(np.sqrt(task.x.shape[1]), (0.1, 1e3), nu=1.5)
        + ConstantKernel(0.1, (1e-4, 1e2)) * DotProduct(1.0, (1e-3, 1e3))
        + WhiteKernel(0.1, (1e-4, 1e1))
    )  # fmt: skip
    some = np.random.default_rng(task.seed).permutation(len(z))[:LARGEST]
    model = GaussianProcessRegressor(kernel, alpha=noise[some], random_state=task.seed)
    model.fit(task.x[some], z[some])
    if len(some) < len(z):
        model = GaussianProcessRegressor(model.kernel_, alpha=noise, optimizer=None)
        model.fit(task.x, z)
    # The white part is the variance between units, so it belongs to what is predicted.
    mean, sd = model.predict(task.x_new, return_std=True)
    return nodes(centre + scale * mean, scale * sd)
