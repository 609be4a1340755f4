"""Failures before a known number of successes, with a Beta prior: calls until an answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import Beta, BetaNegativeBinomial, KnownCount
from ldf.families.base import Family
from ldf.special import Array, floats, log_binomial, namespace
from ldf.statistic import Trials

NO_WAITS = "leave the row out, or give a row without primary data zero waits and zero failures"


class Waiting(Family):
    """`failures` seen in `waits` waits, each until so many successes."""

    natural: ClassVar = Trials
    latent: ClassVar = Beta
    columns: ClassVar = ("failures", "waits")
    design: ClassVar = ("waits",)
    prior = staticmethod(Trials.prior)
    from_unconstrained = staticmethod(Trials.from_unconstrained)

    @property
    @abstractmethod
    def until(self) -> float:
        """Successes that end one wait."""

    def _counts(self, failures: Any, waits: Any) -> tuple[Array, Array]:
        f = check.counts("failures", failures, missing=NO_WAITS)
        n = check.counts("waits", waits, missing=NO_WAITS)
        check.same_length(failures=failures, waits=waits)
        check.needs("failures", failures, "waits", n)
        return f, n * self.until

    def statistic(self, failures: Any, waits: Any = 1) -> Trials:
        f, r = self._counts(failures, waits)
        xp = namespace(f, r)
        return Trials(xp.broadcast_to(r, np.broadcast_shapes(f.shape, r.shape)), f)

    def log_base(self, failures: Any, waits: Any = 1) -> Array:
        xp, (f, r) = floats(*self._counts(failures, waits))
        # The last trial of a wait is a success: r of the r + f orders remain.
        share = xp.where(r > 0, r / xp.where(r > 0, r + f, 1.0), 1.0)
        return log_binomial(r, f) + xp.log(share)

    def log_predictive(self, natural: Trials, failures: Any, waits: Any = 1) -> Array:
        f, r = self._counts(failures, waits)
        check.fits("failures", f, self.own(natural).shape)
        return BetaNegativeBinomial(natural, r).log_prob(f)

    def predictive(self, natural: Trials, waits: Any = 1) -> BetaNegativeBinomial:
        n = check.counts("waits", waits, missing=check.A_NUMBER)
        check.fits("waits", n, self.own(natural).shape)
        return BetaNegativeBinomial(natural, n * self.until)

    def likelihood(self, theta: Any, waits: Any = 1) -> KnownCount:
        p = check.probability("theta", theta)
        check.positive("theta", theta, "without any chance of success a wait never ends")
        n = check.counts("waits", waits, missing=check.A_NUMBER)
        _, (p, r) = floats(p, check.positive("waits", n, "ask for one wait or more") * self.until)
        with np.errstate(all="ignore"):
            peak = np.where(r > 1, np.floor((r - 1) * (1 - p) / p), 0.0)
        return KnownCount(scipy.stats.nbinom, (r, p), peak)


class NegativeBinomial(Waiting):
    """`failures` before `r` successes, summed over `waits` such waits."""

    r: float

    def __check_init__(self) -> None:
        check.positive("r", self.r, "give the known number of successes")
        check.single("r", self.r)

    @property
    def until(self) -> float:
        return self.r
