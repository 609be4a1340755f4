"""The generalised Dirichlet of Connor and Mosimann, and the class counts it predicts.

Class after class a Beta says how much of what is left is this class's:

    θ_k  =  v_k Π_{j<k} (1 − v_j),      v_k ~ Be(counts_k, later_k) independent,  k = 1 … K − 1,

and the last class has the rest. So each class may be known as well as it is, whereas a Dirichlet
has one precision for all: it is the special case later_k = counts_{k+1} + later_{k+1}.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import check
from ldf.distributions.base import Multivariate, Univariate, check_component
from ldf.distributions.beta import Beta, beta_log_partition, logistic
from ldf.distributions.beta_binomial import BetaBinomial
from ldf.distributions.beta_product import BetaProduct
from ldf.distributions.nested_count import NestedCount
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    beta_binomial_log_pmf,
    binet,
    deviance,
    difference_of_products,
    digamma_remainder,
    floats,
    namespace,
)
from ldf.statistic import NestedCounts, Trials

IMPROPER = "give a prior with every class and all after it above zero"


def splits(shares: Array) -> tuple[Array, Array]:
    """Of every class but the last: its share of what is left by those before it, and the rest of
    that. Later classes are added up, not subtracted from one, so that no digit is lost."""
    xp = namespace(shares)
    up_to = xp.cumsum(shares[..., ::-1], -1)[..., ::-1]
    left = xp.where(up_to > 0, up_to, 1.0)[..., :-1]
    return shares[..., :-1] / left, up_to[..., 1:] / left


def factors(natural: NestedCounts, component: int | None) -> tuple[Array, Array]:
    """The Betas whose product a class's share is, on the last axis: of one class, or of all on the
    axis before. Those of the splits after it are sure to be one, Be(1, 0)."""
    xp, (a, b) = floats(natural.counts, natural.later)
    many = a.shape[-1]
    a, b = xp.broadcast_arrays(a, b)
    found = []
    for k in range(many + 1) if component is None else [component % (many + 1)]:
        own = np.arange(many)
        first = xp.where(own < k, b, xp.where(own == k, a, 1.0))
        second = xp.where(own < k, a, xp.where(own == k, b, 0.0))
        found.append((first, second))
    if component is not None:
        return found[0]
    first, second = zip(*found, strict=True)
    return xp.stack(first, -2), xp.stack(second, -2)


class NestedDirichlet(Multivariate):
    """Of class probabilities, by the Betas of its splits. Marginal answers have one column a
    class."""

    natural: NestedCounts

    @staticmethod
    def log_partition(natural: NestedCounts) -> Array:
        """log Z: Σ log B(counts_k, later_k); infinite if improper."""
        return beta_log_partition(natural.counts, natural.later).sum(-1)

    @staticmethod
    def sufficient(value: Any) -> NestedCounts:
        """What the coordinates multiply in log p(θ): log v_k and log(1 − v_k)."""
        xp, (theta,) = floats(check.simplex("theta", value))
        with np.errstate(divide="ignore"):
            own, rest = splits(theta)
            return NestedCounts(xp.log(own), xp.log(rest))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    def __getitem__(self, rows: Any) -> NestedDirichlet:
        return NestedDirichlet(self.natural[rows])

    @property
    def _each(self) -> Beta:
        """Of the splits, on the last axis."""
        return Beta(Trials(self.natural.counts, self.natural.later))

    def _proper(self, quantity: str) -> tuple[Any, Array, Array]:
        xp, (a, b) = floats(self.natural.counts, self.natural.later)
        why = "a class or those after it have no observation, not even a prior one"
        check.exists(f"posterior {quantity}", ((a > 0) & (b > 0)).all(-1), why, IMPROPER)
        return xp, a, b

    def marginal(self, component: int | None = None) -> Beta | BetaProduct:
        """Of one class's probability, or of all with classes on the last axis: a Beta for the first
        class, and if there are but two."""
        _, a, b = self._proper("marginal")
        many = a.shape[-1]
        if component is not None:
            check_component(component, many + 1)
            if component % (many + 1) == 0:
                return Beta(Trials(a[..., 0], b[..., 0]))
        if many == 1:
            xp = namespace(a, b)
            both, rest = xp.concatenate([a, b], -1), xp.concatenate([b, a], -1)
            if component is None:
                return Beta(Trials(both, rest))
            return Beta(Trials(both[..., component], rest[..., component]))
        return BetaProduct(*factors(self.natural, component))

    def mean(self) -> Array:
        xp, a, b = self._proper("mean")
        return _product(xp, a / (a + b), b / (a + b))

    def covariance(self) -> Array:
        xp, a, b = self._proper("covariance")
        total = a + b
        mean = _product(xp, a / total, b / total)
        # E[θ_i θ_j] / E[θ_i] E[θ_j] is a product over the splits both take part in.
        spread = total + 1
        both_left = xp.log1p(a / b / spread)  # (1 − v)² of splits before both
        parted = xp.log1p(-1 / spread)  # v (1 − v), where one is taken and the other goes on
        own = xp.log1p(b / a / spread)  # v²
        before = xp.cumsum(both_left, -1)
        zero = xp.zeros_like(before[..., :1])
        before = xp.concatenate([zero, before], -1)  # of the splits before each class
        parted, own = (xp.concatenate([part, zero], -1) for part in (parted, own))
        classes = before.shape[-1]
        index = np.arange(classes)
        first = np.minimum(index[:, None], index)
        logs = before[..., first] + xp.where(
            index[:, None] == index, own[..., first], parted[..., first]
        )
        return xp.expm1(logs) * mean[..., :, None] * mean[..., None, :]

    def sd(self) -> Array:
        variance = self.covariance()
        return namespace(variance).sqrt(_diagonal(variance))

    def mode(self) -> Array:
        """The mode of the joint; NaN unless it is inside, where every count is above one and what
        is later than it makes up for the classes still to come."""
        xp, a, b = self._proper("mode")
        # In terms of v_k the density of θ has 1 − v_k to the power of later_k less K − k.
        after = np.arange(a.shape[-1], 0, -1)
        inner = ((a > 1) & (b > after)).all(-1)[..., None]
        with np.errstate(all="ignore"):
            total = a - 1 + b - after
            own, rest = (a - 1) / total, (b - after) / total
        return xp.where(inner, _product(xp, own, rest), np.nan)

    def log_prob(self, value: Any) -> Array:
        """The log density of a probability vector."""
        xp, a, b = self._proper("density")
        x = check.simplex("value", value)
        check.last_axis("value", x, a.shape[-1] + 1, "classes")
        _, (x, a, b) = floats(x, a, b)
        own, rest = splits(x)
        own, rest, a, b = xp.broadcast_arrays(own, rest, a, b)
        total = a + b
        left = xp.cumsum(x[..., ::-1], -1)[..., ::-1][..., 1:-1]
        with np.errstate(all="ignore"):
            # As in a Beta, whose 1 − v is here known to its last digit.
            excess = difference_of_products(a, rest, b, own)
            cells = deviance(a, excess, total * own) + deviance(b, -excess, total * rest)
            ones = 0.5 * xp.log(a / total * b) - HALF_LOG_2PI + (binet(total) - binet(a) - binet(b))
            each = ones - cells - xp.log(own) - xp.log(rest)
            # dθ by dv: each class but the first is a share of what is left.
            return each.sum(-1) - xp.log(left).sum(-1)

    def entropy(self) -> Array:
        xp, a, b = self._proper("entropy")
        # dθ by dv has 1 − v_k once for each split that is still to come.
        total, more = a + b, np.arange(a.shape[-1] - 1, -1, -1)
        mean_log = xp.log(b / total) + (digamma_remainder(b) - digamma_remainder(total))
        return (self._each.entropy() + more * mean_log).sum(-1)

    def divergence(self, other: NestedDirichlet) -> Array:
        """KL(this ‖ other) in nats."""
        self._proper("divergence")
        other._proper("divergence")
        return self._each.divergence(other._each).sum(-1)

    def sample(self, draws: int, seed: Any) -> Array:
        xp, a, b = self._proper("sample")
        a, b = xp.broadcast_arrays(a, b)
        source = Draws(draws, seed, a)
        odds = source.log_gamma(a) - source.log_gamma(b)
        return _product(xp, logistic(xp, odds), logistic(xp, -odds))


def _product(xp: Any, own: Array, rest: Array) -> Array:
    """Shares of all classes, from those of the splits."""
    left = xp.cumprod(rest, -1)
    before = xp.concatenate([xp.ones_like(left[..., :1]), left], -1)
    return xp.concatenate([own * before[..., :-1], before[..., -1:]], -1)


def _diagonal(matrices: Array) -> Array:
    return namespace(matrices).diagonal(matrices, axis1=-2, axis2=-1)


def check_splits_known(natural: NestedCounts, n: Array) -> None:
    """A predictive exists where every split was observed, or where nothing is to be predicted."""
    total = natural.counts + natural.later
    if not check.is_traced(total, n):
        why = "there is no observation of a class and those after it, not even a prior one"
        known = (np.asarray(total) > 0).all(-1) | (np.asarray(n) == 0)
        check.exists("predictive", known, why, IMPROPER)


class NestedDirichletMultinomial(Multivariate):
    """Class counts among further trials: a beta-binomial of what is left, class after class.
    Marginal answers have one column a class."""

    natural: NestedCounts
    trials: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.natural.shape, np.shape(self.trials))

    def __getitem__(self, rows: Any) -> NestedDirichletMultinomial:
        trials = namespace(self.trials).broadcast_to(self.trials, self.shape)
        return NestedDirichletMultinomial(self.natural.spread(self.shape)[rows], trials[rows])

    def marginal(self, component: int | None = None) -> Univariate:
        """Of one class's count, or of all with classes on the last axis: a beta-binomial for the
        first class, and if there are but two."""
        check_splits_known(self.natural, self.trials)
        trials = namespace(self.trials).asarray(self.trials)
        trials = trials[..., None] if component is None else trials
        rate = NestedDirichlet(self._known()).marginal(component)
        if isinstance(rate, Beta):
            return BetaBinomial(rate.natural, trials)
        return NestedCount(rate.successes, rate.failures, trials)

    def mean(self) -> Array:
        check_splits_known(self.natural, self.trials)
        _, (n,) = floats(self.trials)
        return n[..., None] * NestedDirichlet(self._known()).mean()

    def _known(self) -> NestedCounts:
        """With something where nothing is to be predicted."""
        xp, (a, b) = floats(self.natural.counts, self.natural.later)
        none = a + b == 0
        return NestedCounts(xp.where(none, 1.0, a), xp.where(none, 1.0, b))

    def covariance(self) -> Array:
        """That of counts at a known θ, and n² times that of θ."""
        check_splits_known(self.natural, self.trials)
        of, (n,) = NestedDirichlet(self._known()), floats(self.trials)[1]
        mean, spread = of.mean(), of.covariance()
        xp, n = namespace(mean, n), n[..., None]
        # E[θ_i θ_j] = covariance + the product of means.
        second = spread + mean[..., :, None] * mean[..., None, :]
        own = mean[..., None] * xp.eye(mean.shape[-1], dtype=mean.dtype)
        return n[..., None] * (own - second) + (n * n)[..., None] * spread

    def sd(self) -> Array:
        variance = self.covariance()
        return namespace(variance).sqrt(_diagonal(variance))

    def log_prob(self, counts: Any) -> Array:
        check_splits_known(self.natural, self.trials)
        k = check.numbers("counts", counts)
        check.last_axis("counts", k, self.natural.counts.shape[-1] + 1, "classes")
        xp, (k, n) = floats(k, self.trials)
        inside = ((k >= 0) & (k == xp.floor(k))).all(-1) & (k.sum(-1) == n)
        k = xp.where(inside[..., None], k, 0.0)
        return xp.where(inside, log_mass(self.natural, k), -np.inf)

    def sample(self, draws: int, seed: Any) -> Array:
        check_splits_known(self.natural, self.trials)
        xp, (a, b, n) = floats(self.natural.counts, self.natural.later, self.trials)
        a, b = (xp.broadcast_to(part, self.shape + part.shape[-1:]) for part in (a, b))
        source = Draws(draws, seed, a)
        rate = logistic(xp, source.log_gamma(a) - source.log_gamma(b))
        left = xp.broadcast_to(n, (draws, *self.shape))
        counts = []
        for k in range(a.shape[-1]):
            counts.append(source.binomial(left, rate[..., k]))
            left = left - counts[-1]
        return xp.stack([*counts, left], -1)


def log_mass(natural: NestedCounts, counts: Array) -> Array:
    """Of class counts: the beta-binomials of the splits."""
    seen = NestedCounts.of_classes(counts)
    each = beta_binomial_log_pmf(seen.counts, seen.later, natural.counts, natural.later)
    return each.sum(-1)
