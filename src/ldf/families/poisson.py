"""A count with exposure, with a Gamma prior: homicides among so many people."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import Gamma, GammaPoisson, KnownCount
from ldf.distributions.gamma import check_rate_known
from ldf.families.base import Family, effective
from ldf.families.binomial import DECLARE
from ldf.special import Array, floats, gamma_poisson_log_pmf, log_gamma, poisson_log_pmf
from ldf.statistic import Arrivals


class Poisson(Family):
    """`count` in `exposure`; θ is the rate per unit of exposure, so T_y = [count; exposure].

    With `effective=True` counts may be fractional: effective counts of a weighted survey.
    """

    effective: bool = False

    natural: ClassVar = Arrivals
    latent: ClassVar = Gamma
    columns: ClassVar = ("count", "exposure")
    design: ClassVar = ("exposure",)
    prior = staticmethod(Arrivals.prior)
    from_unconstrained = staticmethod(Arrivals.from_unconstrained)

    def _counts(self, count: Any, exposure: Any, fractions: bool = False) -> tuple[Array, Array]:
        how = {"fractions": fractions or self.effective, "declare": DECLARE}
        y = check.counts("count", count, **how)
        remedy = "exposure is zero or more: correct the row"
        n = check.nonnegative("exposure", exposure, remedy, missing=check.NO_PRIMARY)
        check.same_length(count=count, exposure=exposure)
        check.needs("count", count, "exposure", n)
        return y, n

    def statistic(self, count: Any, exposure: Any = 1.0, design_effect: Any = None) -> Arrivals:
        """T_y. A survey's `design_effect` makes its (weighted) counts effective ones."""
        y, n = self._counts(count, exposure, fractions=design_effect is not None)
        counts = effective(design_effect, (y, n + 0 * y), count=count, exposure=exposure)
        return Arrivals(*counts)

    def log_base(self, count: Any, exposure: Any = 1.0) -> Array:
        xp, (y, n) = floats(*self._counts(count, exposure))
        return y * xp.log(xp.where(y > 0, n, 1.0)) - log_gamma(y + 1)

    def log_predictive(self, natural: Arrivals, count: Any, exposure: Any = 1.0) -> Array:
        y, n = self._counts(count, exposure)
        check.fits("count", y, self.own(natural).shape)
        check_rate_known(natural.exposure, n)
        return gamma_poisson_log_pmf(y, n, natural.count, natural.exposure)

    def predictive(self, natural: Arrivals, exposure: Any = 1.0) -> GammaPoisson:
        n = check.nonnegative("exposure", exposure)
        check.fits("exposure", n, self.own(natural).shape)
        return GammaPoisson(natural, n)

    def log_likelihood(self, theta: Any, count: Any, exposure: Any = 1.0) -> Array:
        y, n = self._counts(count, exposure)
        rate = check.nonnegative("theta", theta, "a rate is zero or more")
        check.fits("theta", rate, np.broadcast_shapes(np.shape(y), np.shape(n)))
        return poisson_log_pmf(y, n * rate)

    def likelihood(self, theta: Any, exposure: Any = 1.0) -> KnownCount:
        rate = check.nonnegative("theta", theta, "a rate is zero or more")
        amount = check.nonnegative("exposure", exposure)
        check.fits("theta", rate, np.shape(amount))
        mean = rate * amount
        return KnownCount(scipy.stats.poisson, (mean,), np.floor(mean))
