"""What boosters of mean and precision have in common: the two parameters of a compound count.

NGBoost and XGBoostLSS have no beta-binomial, nor take trials or exposure. Both take distributions
of one's own, so both get the compound ones, of two parameters: the link of the mean, and the log of
what it is worth.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize
from scipy.special import expit, logit

from .counts import log_mass

LIMIT = np.log(1e6)  # of the log worth: past it, a count is as good as plain
RATE, ROUNDS, PATIENCE = 0.05, 1000, 30


def mean_and_worth(kind: str, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    link, log_worth = params
    mean = expit(link) if kind == "binomial" else np.exp(np.clip(link, -40, 40))
    return mean, np.exp(np.clip(log_worth, -LIMIT, LIMIT))


def start(kind: str, y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The likeliest pair of parameters for all rows together."""

    def loss(params: np.ndarray) -> float:
        mean, worth = mean_and_worth(kind, params[:, None])
        return -float(log_mass(kind, y, n, mean, worth).mean())

    rate = y.sum() / n.sum()
    first = [logit(rate) if kind == "binomial" else np.log(rate), 1.0]
    return scipy.optimize.minimize(loss, first, method="Nelder-Mead").x
