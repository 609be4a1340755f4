"""What is lost by not knowing θ, and what further observations are expected to gain of it.

"mse"           the squared error of the posterior mean: θ's variance
"entropy"       θ's entropy: what is gained is the information, in nats, that answers give about θ
("exceeds", c)  deciding whether θ > c: the chance to decide wrongly, min(P, 1 − P)

Part of each gain has a closed form in a mixture. Within a component the variance is expected to
fall by a factor, n before over n after; what is left to sum over answers is how far components
stay apart. The information about θ is that about the component, and that within components,

    I(θ; y)  =  Σ_y p(y) [ KL(shares after y ‖ shares) + Σ_k share_k(y) KL(π_k after y ‖ π_k) ]

since the component says nothing of y that θ does not say. No entropy of a mixture is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from ldf import check
from ldf.plan.answers import Belief

TARGETS = ("mse", "entropy")


class Target(ABC):
    """What a plan makes small."""

    word: str  # of its columns

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is made small, in words."""

    @abstractmethod
    def now(self, of: Belief) -> np.ndarray:
        """What is lost now, of each unit."""

    @abstractmethod
    def _gain(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        """What is expected to be gained."""

    def most(self, of: Belief) -> np.ndarray:
        """What any number of observations gain at most."""
        return self.now(of)

    def gain(self, of: Belief, rows: np.ndarray, amount: np.ndarray) -> np.ndarray:
        """Expected of so many observations, above zero, of these units: a unit may be there several
        times."""
        found = np.zeros(len(rows))
        for block in of[rows].blocks(amount):
            own, n = of[rows[block]], amount[block]
            found[block] = self._gain(own, n)
        return found


class SquaredError(Target):
    word = "mse"

    @property
    def sentence(self) -> str:
        return "squared error"

    def now(self, of: Belief) -> np.ndarray:
        return np.asarray(of.theta().variance())

    def _gain(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        law, answers = of.latent(), of.answers(amount)
        before, after = of.natural.n, answers.after.n[:, 0]
        within = (of.share * law.variance() * (after - before) / after).sum(0)
        mean = np.asarray(law.mean())
        apart = (of.share * (mean - (of.share * mean).sum(0)) ** 2).sum(0)
        mean = np.asarray(of.latent(answers.after).mean())
        off = mean - (answers.share * mean).sum(0)
        left = (answers.chance * (answers.share * off**2).sum(0)).sum(0)
        return within + apart - left


class Entropy(Target):
    word = "entropy"

    @property
    def sentence(self) -> str:
        return "entropy"

    def now(self, of: Belief) -> np.ndarray:
        return np.asarray(of.theta().entropy())

    def most(self, of: Belief) -> np.ndarray:
        return np.full(len(of), np.inf)

    def _gain(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        answers = of.answers(amount)
        within = of.latent(answers.after).divergence(of.latent(of.natural[:, None]))
        told = answers.share * within + rel_entr(answers.share, of.share[:, None])
        return (answers.chance * told.sum(0)).sum(0)


@dataclass(frozen=True)
class Exceeds(Target):
    threshold: float
    word = "risk"

    @property
    def sentence(self) -> str:
        return f"chance to decide wrongly whether θ > {check.shown(self.threshold)}"

    def now(self, of: Belief) -> np.ndarray:
        below = np.asarray(of.theta().cdf(self.threshold))
        return np.minimum(below, 1 - below)

    def _gain(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        if not of.few(amount):
            return self.now(of) - of.wrong(amount, self.threshold)
        answers = of.answers(amount)
        below = of.latent(answers.after).cdf(self.threshold)
        below = np.clip((answers.share * below).sum(0), 0.0, 1.0)
        return self.now(of) - (answers.chance * np.minimum(below, 1 - below)).sum(0)


def named_target(target: Any) -> Target:
    if isinstance(target, tuple | list) and len(target) == 2 and target[0] == "exceeds":
        value = check.numbers("target", target[1])
        check.single("target", value)
        return Exceeds(float(value))
    if not isinstance(target, str) or target not in TARGETS:
        known = ", ".join(map(repr, TARGETS)) + ' or ("exceeds", 0.5)'
        raise check.DataError("target", None, target, "is not known", f"choose {known}")
    return SquaredError() if target == "mse" else Entropy()
