"""The field: models people fit to counts today, each behind one function.

`fit_predict(task)` learns from a task's training rows and gives a `Counts`: the distribution of
each held-out count, given its trials or exposure. A peer is imported when it is asked for, so that
one that is not installed stops no other.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

from .counts import Counts
from .task import Task


class Peer(NamedTuple):
    """Where a peer is, and what it can do."""

    where: str  # module and function
    theta: str  # has a distribution of each unit's θ
    updated: str  # by the unit's own data
    precision: str  # varies with x
    design: str  # trials and exposure are taken as such
    note: str

    def load(self) -> Callable[[Task], Counts]:
        module, _, function = self.where.partition(".")
        return getattr(importlib.import_module(f"peer.{module}"), function)


YES, NO = "yes", "no"

PEERS = {
    "ldf": Peer(
        "own.fusion", YES, YES, YES, YES,
        "the default Fusion, nothing set"),
    "statsmodels GLM": Peer(
        "regressions.plain", "a point", NO, NO, YES,
        "binomial or Poisson GLM, scored by its plain likelihood"),
    "statsmodels NB or beta": Peer(
        "regressions.dispersed", "implied", "by hand", NO, "exposure",
        "negative binomial with exposure; it has no beta-binomial, so of trials its beta "
        "regression of (y + ½) / (n + 1), with precision by x where that converges, compounded "
        "with the binomial"),
    "trees + dispersion": Peer(
        "own.trees", YES, "by hand", YES, YES,
        "M4 of the quality page: boosted trees of scikit-learn, whose out-of-fold prediction is "
        "one more column of a compound regression with log-linear precision"),
    "NGBoost": Peer(
        "natural.natural", "implied", "by hand", YES, "written for it",
        "has no beta-binomial and no exposure: both distributions were written for it; rounds by "
        "early stopping on a fifth of the training rows, then refitted on all"),
    "XGBoostLSS": Peer(
        "location_scale.location_scale", "implied", "by hand", YES, "written for it",
        "has no beta-binomial and no exposure: both distributions were written for it; rounds by "
        "its own 5-fold cross-validation"),
    "GPBoost trees": Peer(
        "processes.boosted", "implied", "by hand", NO, YES,
        "boosted trees with its beta-binomial (trials as weights) or negative binomial (exposure "
        "as offset); its random effect is one that all rows share, since rows have no groups; "
        "rounds and dispersion are those that predict a fifth of the training rows best, since it "
        "finds the dispersion on the rows the trees have learned from; then refitted on all"),
    "GPBoost GP": Peer(
        "processes.count", "implied", "by hand", "in part", YES,
        "a linear mean and a Gaussian process over all columns (Matérn 3/2); binomial with an "
        "effect of each row's own, since its beta-binomial breaks down here, or negative binomial "
        "with exposure as offset (Vecchia); the latent's variance is integrated over"),
    "sklearn GP": Peer(
        "processes.transformed", "of the transform", "refit", "in part", "as noise",
        "a Gaussian process (linear + Matérn) on transformed rates, each with its own sampling "
        "variance, and a variance between units; compounded with the binomial or Poisson by "
        "quadrature; the transform (logit or arcsine, logarithm or root) is the one that predicts "
        "a fifth of the training rows better; past 1,000 rows its kernel is learned on 1,000"),
    "Bambi": Peer(
        "bayes.distributional", "implied", "by hand", YES, YES,
        "beta-binomial or negative binomial, mean and precision linear in x, its default priors, "
        "NUTS (of NumPyro) with a full mass matrix and, while that is learned, trees of 6 levels "
        "at most: 2 chains of 500 draws after 500, every fifth of which is used"),
    "glmmTMB": Peer(
        "r.glmmtmb", "implied", "by hand", YES, YES,
        "betabinomial or nbinom2, dispformula ~ all columns"),
    "glmmTMB one precision": Peer(
        "r.glmmtmb_one", "implied", "by hand", NO, YES,
        "the same, dispformula ~ 1"),
    "mgcv": Peer(
        "r.mgcv", "implied", "by hand", NO, YES,
        "a smooth of each column with shrinkage (select = TRUE, fREML); nb() with offset; it has "
        "no beta-binomial, so a quasi-binomial mean and then one precision of greatest "
        "likelihood"),
}  # fmt: skip
