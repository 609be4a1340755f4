"""A count that is surely zero in a share of units: clinics that treat none, farms without the crop.

With probability `zeros` a unit is not at risk at all and counts nothing; else it counts like a
Poisson. θ is the rate of a unit at risk, so a zero says little about it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy  # stats and optimize are loaded when they are asked for

from ldf import check
from ldf.distributions import GammaPoisson, KnownCount, Mixture, mixture
from ldf.families.observed import Share
from ldf.families.poisson import Poisson
from ldf.families.poisson_sum import PoissonSum, Terms, term_axis
from ldf.special import Array
from ldf.statistic import Arrivals


class ZeroInflatedPoisson(PoissonSum):
    """`count` in `exposure`, where a known share `zeros` of units counts nothing whatever θ is.

    ldf.ZeroInflatedPoisson(zeros=0.3)                      the share is known
    ldf.ZeroInflatedPoisson.learned(count, exposure)        it is learned from counts alone
    """

    zeros: float

    columns: ClassVar = ("count", "exposure")

    def __check_init__(self) -> None:
        check.probability("zeros", self.zeros)
        check.single("zeros", self.zeros)
        if self.zeros == 1:
            remedy = "some units have to be at risk: give less than 1"
            raise check.DataError("zeros", None, self.zeros, "leaves nothing to count", remedy)

    @classmethod
    def learned(cls, count: Any, exposure: Any = 1.0) -> ZeroInflatedPoisson:
        """With the share under which counts are likeliest, together with a Gamma of the rate that
        all units share. Rates that differ much make zeros too: without any excess it is zero."""
        y, n = Poisson()._counts(count, exposure)
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        rate = (y.sum() + 0.5) / max(n.sum(), 1e-300)

        def misfit(at: np.ndarray) -> float:
            shape = np.exp(np.clip(at[0], -20, 20))
            natural = Arrivals(shape, shape / (rate * np.exp(np.clip(at[1], -20, 20))))
            zeros = min(scipy.special.expit(at[2]), 1 - 1e-12)
            return -float(cls(float(zeros)).log_predictive(natural, y, n).sum())

        starts = [np.array([0.5, 0.0, odds]) for odds in (-2.0, 1.0)]
        found = [scipy.optimize.minimize(misfit, start, method="L-BFGS-B") for start in starts]
        best = min(found, key=lambda one: one.fun)
        return cls(float(min(scipy.special.expit(best.x[2]), 1 - 1e-12)))

    def checked(self, count: Any, exposure: Any = 1.0) -> dict[str, Array]:
        y, n = Poisson()._counts(count, exposure)
        return {"count": y, "exposure": n}

    def statistic(self, count: Any, exposure: Any = 1.0) -> Share:
        """The count and its exposure."""
        y = self.checked(count, exposure)
        return Share(y["count"], y["exposure"] + 0 * y["count"])

    def terms(self, y: dict[str, Array]) -> Terms:
        """At risk, or not: then a zero, which says nothing of θ."""
        xp, (count, n) = term_axis(y["count"], y["exposure"])
        with np.errstate(divide="ignore"):
            never, risk = np.log(self.zeros), np.log1p(-self.zeros)
        log_share = [xp.full_like(count, risk), xp.where(count == 0, never, -np.inf)]
        stack = xp.concatenate
        return Terms(stack(log_share), stack([count, 0 * count]), stack([n, 0 * n]))

    def predictive(self, natural: Any, exposure: Any = 1.0) -> Mixture:
        """Of a further count. Whether the unit is at risk is drawn anew."""
        n = self._exposure(natural, exposure)
        weights, every = self._apart(natural)
        weights = np.concatenate([np.full((1, *n.shape), self.zeros), (1 - self.zeros) * weights])
        amounts = np.concatenate([0 * n[None], np.broadcast_to(n, every.shape)])
        both = Arrivals(*(np.concatenate([c[:1], c]) for c in every.coordinates()))
        return mixture(weights, GammaPoisson(both, amounts))

    def likelihood(self, theta: Any, exposure: Any = 1.0) -> Mixture:
        known = Poisson().likelihood(theta, exposure)
        (mean,) = (np.asarray(p, float) for p in known.parameters)
        means = np.stack([0 * mean, mean])
        components = KnownCount(scipy.stats.poisson, (means,), np.floor(means))
        return mixture([self.zeros, 1 - self.zeros], components)
