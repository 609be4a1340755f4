"""statsmodels: the plain regression, and one with a dispersion."""

from __future__ import annotations

import warnings

import numpy as np
import statsmodels.api as sm
from statsmodels.othermod.betareg import BetaModel

from .counts import Counts
from .task import Task


def plain(task: Task) -> Counts:
    """The binomial or Poisson GLM: θ is known, the counts vary about it."""
    x, x_new = sm.add_constant(task.x), sm.add_constant(task.x_new, has_constant="add")
    if task.kind == "binomial":
        y = np.stack([task.y, task.n - task.y], 1)
        found = sm.GLM(y, x, sm.families.Binomial()).fit()
    else:
        found = sm.GLM(task.y, x, sm.families.Poisson(), exposure=task.n).fit()
    return Counts.of(task.kind, task.n_new, found.predict(x_new), np.inf)


def dispersed(task: Task) -> Counts:
    x, x_new = sm.add_constant(task.x), sm.add_constant(task.x_new, has_constant="add")
    if task.kind == "poisson":
        return negative_binomial(task, x, x_new)
    # No beta-binomial: the rates themselves, moved off 0 and 1. If the precision by x does not
    # converge, one for all.
    rate, one, one_new = (task.y + 0.5) / (task.n + 1), x[:, :1], x_new[:, :1]
    for z, z_new in ((x, x_new), (one, one_new)):
        for method in ("bfgs", "newton"):
            found = quietly(BetaModel(rate, x, exog_precision=z), method=method)
            if found.mle_retvals["converged"] and np.isfinite(found.params).all():
                worth = found.predict(x_new, exog_precision=z_new, which="precision")
                return Counts.of(task.kind, task.n_new, found.predict(x_new), worth)
    raise RuntimeError("the beta regression did not converge")


def quietly(model: object, **how: object) -> object:
    """Whether it converged is looked at, not warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(maxiter=500, disp=0, **how)


def negative_binomial(task: Task, x: np.ndarray, x_new: np.ndarray) -> Counts:
    model = sm.NegativeBinomial(task.y, x, exposure=task.n)
    plain = sm.GLM(task.y, x, sm.families.Poisson(), exposure=task.n).fit().params
    start = np.append(plain, 0.5)
    tried = []
    for method in ("bfgs", "newton"):  # the second goes on where the first stopped
        found = quietly(model, start_params=start, method=method)
        if np.isfinite(found.params).all() and found.params[-1] > 0:
            tried.append(found)
            start = found.params
    if not tried:
        raise RuntimeError("the negative binomial regression did not converge")
    found = max(tried, key=lambda one: one.llf)
    coefficients, alpha = found.params[:-1], found.params[-1]
    return Counts.of(task.kind, task.n_new, np.exp(x_new @ coefficients), 1 / alpha)
