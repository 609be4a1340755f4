"""The Dirichlet over class probabilities, and the counts it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Multivariate, check_component
from ldf.distributions.beta import Beta
from ldf.distributions.beta_binomial import BetaBinomial
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    binet,
    deviance,
    difference_of_products,
    digamma_remainder,
    dirichlet_multinomial_log_pmf,
    floats,
    log_gamma_divergence,
    namespace,
)
from ldf.statistic import ClassCounts, Trials

IMPROPER = "give a prior with every class above zero"


def _marginal(counts: Array, component: int | None) -> Trials:
    """Each class against all others: summed, not subtracted, so that no digit is lost."""
    xp = namespace(counts)
    classes = counts.shape[-1]
    others = xp.stack(
        [
            xp.concatenate([counts[..., :j], counts[..., j + 1 :]], -1).sum(-1)
            for j in range(classes)
        ],
        -1,
    )
    if component is None:
        return Trials(counts, others)
    check_component(component, classes)
    return Trials(counts[..., component], others[..., component])


class Dirichlet(Multivariate):
    """Dir(counts) of class probabilities. Marginal answers have one column a class."""

    natural: ClassCounts

    @staticmethod
    def log_partition(natural: ClassCounts) -> Array:
        """log Z: the multivariate log B(a), from the shares; infinite if improper."""
        xp, (a,) = floats(natural.counts)
        proper = (a > 0).all(-1)
        a = xp.where(proper[..., None], a, 1.0)
        total = a.sum(-1)
        logs = (a * xp.log(a / total[..., None])).sum(-1)
        halves = (HALF_LOG_2PI - 0.5 * xp.log(a)).sum(-1) + 0.5 * xp.log(total) - HALF_LOG_2PI
        value = logs + halves + (binet(a).sum(-1) - binet(total))
        return xp.where(proper, value, np.inf)

    @staticmethod
    def sufficient(value: Any) -> ClassCounts:
        """What the coordinates multiply in log p(θ): the logarithms."""
        xp, (theta,) = floats(check.simplex("theta", value))
        with np.errstate(divide="ignore"):
            return ClassCounts(xp.log(theta))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    def __getitem__(self, rows: Any) -> Dirichlet:
        return Dirichlet(self.natural[rows])

    def marginal(self, component: int | None = None) -> Beta:
        """The Beta of one class's probability, or of all with classes on the last axis."""
        self._proper("marginal")
        return Beta(_marginal(self.natural.counts, component))

    def _proper(self, quantity: str) -> tuple[Any, Array, Array]:
        xp, (a,) = floats(self.natural.counts)
        why = "a class has no observation, not even a prior one"
        check.exists(f"posterior {quantity}", (a > 0).all(-1), why, IMPROPER)
        return xp, a, a.sum(-1)

    def mean(self) -> Array:
        _, a, total = self._proper("mean")
        return a / total[..., None]

    def covariance(self) -> Array:
        xp, a, total = self._proper("covariance")
        mean = a / total[..., None]
        outer = mean[..., :, None] * mean[..., None, :]
        spread = mean[..., None] * xp.eye(a.shape[-1], dtype=a.dtype) - outer
        return spread / (total + 1)[..., None, None]

    def mode(self) -> Array:
        """The mode of the joint; NaN unless every count is above one."""
        xp, a, total = self._proper("mode")
        inner = (a > 1).all(-1)[..., None]
        return xp.where(inner, (a - 1) / (total - a.shape[-1])[..., None], np.nan)

    def log_prob(self, value: Any) -> Array:
        """The log density of a probability vector."""
        xp, a, total = self._proper("density")
        x = check.simplex("value", value)
        check.last_axis("value", x, a.shape[-1], "classes")
        _, (x, a) = floats(x, a)
        x, a = xp.broadcast_arrays(x, a)
        classes = a.shape[-1]
        with np.errstate(all="ignore"):
            whole = xp.broadcast_to(total[..., None], a.shape)
            excess = difference_of_products(a, xp.ones_like(a), whole, x)
            cells = deviance(a, excess, whole * x) + xp.log(x) - 0.5 * xp.log(a) + binet(a)
            return (
                -cells.sum(-1) - (classes - 1) * HALF_LOG_2PI + (binet(total) - 0.5 * xp.log(total))
            )

    def entropy(self) -> Array:
        xp, a, total = self._proper("entropy")
        classes = a.shape[-1]
        each = HALF_LOG_2PI + 0.5 * xp.log(a) + binet(a) + (1 - a) * digamma_remainder(a)
        # Written with the shares: log a − log total rather than either alone.
        logs = (classes - 0.5) * xp.log(total) + HALF_LOG_2PI + binet(total)
        return each.sum(-1) - logs + (total - classes) * digamma_remainder(total)

    def divergence(self, other: Dirichlet) -> Array:
        """KL(this ‖ other) in nats."""
        xp, a, total = self._proper("divergence")
        _, c, other_total = other._proper("divergence")
        a, c = xp.broadcast_arrays(a, c)
        whole = xp.broadcast_to(total[..., None], a.shape)
        whole_other = xp.broadcast_to(other_total[..., None], a.shape)
        excess = difference_of_products(c, whole, a, whole_other) / whole
        cells = deviance(c, excess, a * (whole_other / whole)) + log_gamma_divergence(c, a)
        return cells.sum(-1) - log_gamma_divergence(other_total, total)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, _ = self._proper("sample")
        logs = Draws(draws, seed, a).log_gamma(a)
        logs = logs - logs.max(-1, keepdims=True)
        return xp.exp(logs) / xp.exp(logs).sum(-1, keepdims=True)


def check_classes_known(counts: Array, n: Array) -> None:
    """A predictive exists where a class was observed, or where nothing is to be predicted."""
    if not check.is_traced(counts, n):
        why = "there is no observation of the classes, not even a prior one"
        known = (np.asarray(counts).sum(-1) > 0) | (np.asarray(n) == 0)
        check.exists("predictive", known, why, IMPROPER)


class DirichletMultinomial(Multivariate):
    """Class counts among further trials. Marginal answers have one column a class."""

    natural: ClassCounts
    trials: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.trials))

    def __getitem__(self, rows: Any) -> DirichletMultinomial:
        trials = namespace(self.trials).broadcast_to(self.trials, self.shape)
        return DirichletMultinomial(self.natural.spread(self.shape)[rows], trials[rows])

    def marginal(self, component: int | None = None) -> BetaBinomial:
        """The beta-binomial of one class's count, or of all with classes on the last axis."""
        check_classes_known(self.natural.counts, self.trials)
        trials = namespace(self.trials).asarray(self.trials)
        return BetaBinomial(
            _marginal(self.natural.counts, component),
            trials[..., None] if component is None else trials,
        )

    def mean(self) -> Array:
        return self.marginal().mean()

    def log_prob(self, counts: Any) -> Array:
        check_classes_known(self.natural.counts, self.trials)
        k = check.numbers("counts", counts)
        check.last_axis("counts", k, self.natural.counts.shape[-1], "classes")
        xp, (k, a, n) = floats(k, self.natural.counts, self.trials)
        inside = ((k >= 0) & (k == xp.floor(k))).all(-1) & (k.sum(-1) == n)
        k = xp.where(inside[..., None], k, 0.0)
        return xp.where(inside, dirichlet_multinomial_log_pmf(k, a), -np.inf)

    def sample(self, draws: int, seed: Any) -> Array:
        check_classes_known(self.natural.counts, self.trials)
        xp, (a, n) = floats(self.natural.counts, self.trials)
        a = xp.broadcast_to(a, self.shape + a.shape[-1:])
        source = Draws(draws, seed, a)
        logs = source.log_gamma(a)
        # Class after class: binomial of what is left, at its share of the classes left.
        left = xp.broadcast_to(n, (draws, *self.shape))
        counts = []
        for j in range(a.shape[-1] - 1):
            rest = logs[..., j + 1 :]
            peak = rest.max(-1)
            log_rest = peak + xp.log(xp.exp(rest - peak[..., None]).sum(-1))
            share = xp.exp(-xp.logaddexp(0.0, log_rest - logs[..., j]))
            counts.append(source.binomial(left, share))
            left = left - counts[-1]
        return xp.stack([*counts, left], -1)
