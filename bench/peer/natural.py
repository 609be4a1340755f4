"""NGBoost: trees boosted along natural gradients."""

from __future__ import annotations

import numpy as np
from ngboost import NGBRegressor
from ngboost.distns import RegressionDistn
from ngboost.scores import LogScore
from scipy.special import digamma

from .counts import Counts, log_mass
from .task import Task
from .two import PATIENCE, RATE, ROUNDS, mean_and_worth, start


class Compound(LogScore):
    """The log score, its gradient, and the Fisher information that makes it natural."""

    def score(self, pairs: np.ndarray) -> np.ndarray:
        y, n = pairs.T
        return -log_mass(self.kind, y, n, *mean_and_worth(self.kind, self._params))

    def d_score(self, pairs: np.ndarray) -> np.ndarray:
        self.n = pairs[:, 1]
        return -slopes(self.kind, *pairs.T, *mean_and_worth(self.kind, self._params))

    def metric(self, draws: int = 30) -> np.ndarray:
        """Mean and worth as good as orthogonal: for counts with exposure they are."""
        mean, worth = mean_and_worth(self.kind, self._params)
        n, rng = self.n, np.random.default_rng(0)
        if self.kind == "binomial":
            first = n * mean * (1 - mean) * (worth + 1) / (worth + n)
            theta = rng.beta(mean * worth, (1 - mean) * worth, (draws, len(n)))
            y = rng.binomial(n.astype(int), theta)
        else:
            first = n * mean * worth / (n * mean + worth)
            y = rng.poisson(np.minimum(n * rng.gamma(worth, mean / worth, (draws, len(n))), 1e9))
        second = (slopes(self.kind, y, n, mean, worth)[..., 1] ** 2).mean(0)
        # Few draws may say nothing of a row with few counts.
        second = np.maximum(second, 0.1 * second.mean() + 1e-6)
        found = np.zeros((len(n), 2, 2))
        found[:, 0, 0], found[:, 1, 1] = np.maximum(first, 1e-3), second
        return found


def slopes(kind: str, y: np.ndarray, n: np.ndarray, mean: np.ndarray, worth: np.ndarray):
    """The log mass's derivatives by the mean's link and by the log worth, on the last axis."""
    if kind == "binomial":
        a, b = mean * worth, (1 - mean) * worth
        by_a = digamma(y + a) - digamma(a)
        by_b = digamma(n - y + b) - digamma(b)
        both = digamma(worth) - digamma(n + worth)
        by_link = worth * mean * (1 - mean) * (by_a - by_b)
        by_worth = worth * (mean * by_a + (1 - mean) * by_b + both)
    else:
        m = n * mean
        by_link = worth * (y - m) / (worth + m)
        by_worth = worth * (
            digamma(y + worth) - digamma(worth) - np.log1p(m / worth) + (m - y) / (worth + m)
        )
    return np.stack([by_link, by_worth], -1)


class Pairs(RegressionDistn):
    """A compound count. What is learned from are pairs: the count, and its trials or exposure."""

    kind = "binomial"
    n_params = 2
    multi_output = True
    scores = (Compound,)

    @classmethod
    def fit(cls, pairs: np.ndarray) -> np.ndarray:
        return start(cls.kind, *pairs.T)


class PairsOfExposure(Pairs):
    kind = "poisson"


def natural(task: Task) -> Counts:
    np.random.seed(task.seed)  # noqa: NPY002 (its trees break ties by that generator)
    distribution = Pairs if task.kind == "binomial" else PairsOfExposure
    pairs = np.stack([task.y, task.n], 1)
    learn, stop = task.inner()

    def booster(rounds: int) -> NGBRegressor:
        return NGBRegressor(
            Dist=distribution, n_estimators=rounds, learning_rate=RATE, verbose=False,
            random_state=task.seed,
        )  # fmt: skip

    tried = booster(ROUNDS).fit(
        task.x[learn], pairs[learn], task.x[stop], pairs[stop], early_stopping_rounds=PATIENCE
    )
    best = ROUNDS if tried.best_val_loss_itr is None else tried.best_val_loss_itr + 1
    found = booster(best).fit(task.x, pairs)
    mean, worth = mean_and_worth(task.kind, found.pred_param(task.x_new).T)
    return Counts.of(task.kind, task.n_new, mean, worth)
