"""Successes out of trials, with a Beta prior: electrified households, positive tests."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import Beta, BetaBinomial, KnownCount
from ldf.distributions.beta import check_rate_known
from ldf.families.base import Family, effective
from ldf.special import Array, beta_binomial_log_pmf, binomial_log_pmf, floats, log_binomial
from ldf.statistic import Trials


class Binomial(Family):
    """`successes` out of `trials`. One trial a unit is Bernoulli data.

    With `effective=True` counts may be fractional: effective counts of a weighted survey.
    """

    effective: bool = False

    natural: ClassVar = Trials
    latent: ClassVar = Beta
    columns: ClassVar = ("successes", "trials")
    design: ClassVar = ("trials",)
    prior = staticmethod(Trials.prior)
    from_unconstrained = staticmethod(Trials.from_unconstrained)

    def _counts(self, successes: Any, trials: Any, fractions: bool = False) -> tuple[Array, Array]:
        how = {"fractions": fractions or self.effective, "declare": DECLARE}
        k = check.counts("successes", successes, **how)
        n = check.counts("trials", trials, **how)
        check.same_length(successes=successes, trials=trials)
        remedy = "successes cannot exceed trials: correct the row, or swap the columns"
        check.at_most("successes", successes, "trials", n, remedy)
        return k, n - k

    def statistic(self, successes: Any, trials: Any, design_effect: Any = None) -> Trials:
        """T_y. A survey's `design_effect` makes its (weighted) counts effective ones."""
        counts = self._counts(successes, trials, fractions=design_effect is not None)
        return Trials(*effective(design_effect, counts, successes=successes, trials=trials))

    def log_base(self, successes: Any, trials: Any) -> Array:
        return log_binomial(*self._counts(successes, trials))

    def log_predictive(self, natural: Trials, successes: Any, trials: Any) -> Array:
        k, m = self._counts(successes, trials)
        check.fits("successes", k, self.own(natural).shape)
        check_rate_known(natural.n, k + m)
        return beta_binomial_log_pmf(k, m, natural.successes, natural.failures)

    def predictive(self, natural: Trials, trials: Any) -> BetaBinomial:
        n = whole_trials(trials)
        check.fits("trials", n, self.own(natural).shape)
        return BetaBinomial(natural, n)

    def log_likelihood(self, theta: Any, successes: Any, trials: Any) -> Array:
        k, m = self._counts(successes, trials)
        rate = check.probability("theta", theta)
        check.fits("theta", rate, np.broadcast_shapes(np.shape(k), np.shape(m)))
        return binomial_log_pmf(k, m, rate)

    def likelihood(self, theta: Any, trials: Any) -> KnownCount:
        _, (p, n) = floats(check.probability("theta", theta), whole_trials(trials))
        check.fits("theta", p, n.shape)
        peak = np.clip(np.floor((n + 1) * p), 0, n)
        return KnownCount(scipy.stats.binom, (n.astype(np.int64), p), peak)


def whole_trials(trials: Any) -> Array:
    """Of new data: so many, in whole numbers."""
    return check.counts("trials", trials, missing=check.A_NUMBER)


DECLARE = "design_effect=, or by the family's effective=True"
