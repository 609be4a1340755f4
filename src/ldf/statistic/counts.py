"""What is counted: trials, classes, arrivals."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np

from ldf import check
from ldf.special.arrays import Array, namespace
from ldf.statistic.base import Statistic


def softplus(x: Array) -> Array:
    return jax.nn.softplus(x) if isinstance(x, jax.Array) else np.logaddexp(0.0, x)


def sigmoid(x: Array) -> Array:
    # 1/(1 + e^-x) written so that both it and its complement keep their digits at either end.
    return jax.nn.sigmoid(x) if isinstance(x, jax.Array) else np.exp(-np.logaddexp(0.0, -x))


# What a mapping's outputs stand for. "rate" and "counts" are the paper's, through softplus; "log"
# is by rate too, with logarithms: the unit of a count or an exposure is then only a constant.
FORMULATIONS = ("rate", "log", "counts")


def exp(x: Array) -> Array:
    return namespace(x).exp(x)


def softmax(x: Array) -> Array:
    xp = namespace(x)
    powers = xp.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_ratio(a: Array, b: Array) -> Array:
    """log(a / b): −∞ or ∞ where one of them is zero, NaN where both are."""
    xp = namespace(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.log(a) - xp.log(b)


def amount(x: Array, formulation: str) -> Array:
    """A number above zero: exp of the output by "log", softplus of it otherwise."""
    return exp(x) if formulation == "log" else softplus(x)


class Trials(Statistic):
    """Successes and failures: what a Beta prior counts."""

    successes: Array
    failures: Array

    event_axes: ClassVar = (0, 0)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        return 2

    @classmethod
    def prior(cls, successes: Any, failures: Any) -> Trials:
        """Pseudo-observations given by hand: a prior Be(successes, failures), or what auxiliary
        data are worth. They may be fractional."""
        a = check.nonnegative("successes", successes)
        b = check.nonnegative("failures", failures)
        check.same_length(successes=successes, failures=failures)
        return cls(a, b)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Trials:
        """From a mapping's two outputs: n and the logit of μ, or (a, b)."""
        check.one_of("formulation", formulation, FORMULATIONS)
        check.last_axis("outputs", outputs, 2, "outputs")
        first, second = outputs[..., 0], outputs[..., 1]
        if formulation == "counts":
            return cls(softplus(first), softplus(second))
        trials = amount(first, formulation)
        return cls(trials * sigmoid(second), trials * sigmoid(-second))

    @property
    def location(self) -> Array:
        return log_ratio(self.successes, self.failures)[..., None]

    def moved(self, location: Array) -> Trials:
        logit = location[..., 0]
        return type(self)(self.n * sigmoid(logit), self.n * sigmoid(-logit))

    @property
    def t(self) -> Array:
        return self.successes

    @property
    def n(self) -> Array:
        return self.successes + self.failures


class ClassCounts(Statistic):
    """Counts a class, classes on the last axis: what a Dirichlet prior counts."""

    counts: Array

    event_axes: ClassVar = (1,)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        if components is None:
            raise ValueError("how many classes there are is not said: use Multinomial(classes=K)")
        return components if formulation == "counts" else components + 1

    @classmethod
    def prior(cls, counts: Any) -> ClassCounts:
        """Pseudo-counts given by hand: a prior Dir(counts), or what auxiliary data are worth."""
        array = check.nonnegative("counts", counts)
        check.classes("counts", array)
        return cls(array)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> ClassCounts:
        """From a mapping's outputs: n and the K logits of the shares, or K counts."""
        check.one_of("formulation", formulation, FORMULATIONS)
        if formulation == "counts":
            return cls(softplus(outputs))
        return cls(amount(outputs[..., :1], formulation) * softmax(outputs[..., 1:]))

    @property
    def location(self) -> Array:
        return log_ratio(self.counts, self.n[..., None])

    def moved(self, location: Array) -> ClassCounts:
        return type(self)(self.n[..., None] * softmax(location))

    @property
    def t(self) -> Array:
        return self.counts

    @property
    def n(self) -> Array:
        return self.counts.sum(-1)


class Arrivals(Statistic):
    """A count and the exposure it took: what a Gamma prior counts."""

    count: Array
    exposure: Array

    event_axes: ClassVar = (0, 0)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        return 2

    @classmethod
    def prior(cls, count: Any, exposure: Any) -> Arrivals:
        """Pseudo-observations given by hand: a prior Ga(shape count, rate exposure), or what
        auxiliary data are worth."""
        a, b = check.nonnegative("count", count), check.nonnegative("exposure", exposure)
        check.same_length(count=count, exposure=exposure)
        return cls(a, b)

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> Arrivals:
        """From a mapping's two outputs: exposure and rate, or count and exposure."""
        check.one_of("formulation", formulation, FORMULATIONS)
        check.last_axis("outputs", outputs, 2, "outputs")
        first, second = (amount(outputs[..., i], formulation) for i in (0, 1))
        return cls(first, second) if formulation == "counts" else cls(first * second, first)

    @property
    def location(self) -> Array:
        return log_ratio(self.count, self.exposure)[..., None]

    def moved(self, location: Array) -> Arrivals:
        # The count says how wide θ's distribution is beside its mean.
        return type(self)(self.count, self.count * exp(-location[..., 0]))

    @property
    def t(self) -> Array:
        return self.count

    @property
    def n(self) -> Array:
        return self.exposure
