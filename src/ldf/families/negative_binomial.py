"""Failures before a known number of successes, with a Beta prior: calls until an answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import scipy.stats

from ldf import check
from ldf.distributions import Beta, BetaNegativeBinomial, KnownCount
from ldf.families.base import Family
from ldf.special import Array, floats, log_binomial, namespace
from ldf.statistic import Trials


class Waiting(Family):
    """`failures` seen in `waits` waits, each until so many successes."""

    natural: ClassVar = Trials
    latent: ClassVar = Beta
    columns: ClassVar = ("failures", "waits")
    design: ClassVar = ("waits",)
    outputs: ClassVar[int] = Trials.outputs
    prior = staticmethod(Trials.prior)
    from_unconstrained = staticmethod(Trials.from_unconstrained)

    @property
    @abstractmethod
    def until(self) -> float:
        """Successes that end one wait."""

    def _counts(self, failures: Any, waits: Any) -> tuple[Array, Array]:
        check.same_length(failures=failures, waits=waits)
        f = check.counts("failures", failures)
        n = check.counts("waits", waits)
        if not check.is_traced(f, n):
            most = np.where(np.asarray(n) > 0, np.inf, 0.0)
            remedy = "a row without waits has no failures: correct it"
            check.at_most("failures", failures, "what no wait allows", most, remedy)
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
        return BetaNegativeBinomial(natural, r).log_prob(f)

    def predictive(self, natural: Trials, waits: Any = 1) -> BetaNegativeBinomial:
        return BetaNegativeBinomial(natural, check.counts("waits", waits) * self.until)

    def likelihood(self, theta: Any, waits: Any = 1) -> KnownCount:
        p = check.probability("theta", theta)
        _, (p, r) = floats(p, check.counts("waits", waits) * self.until)
        with np.errstate(all="ignore"):
            peak = np.where(r > 1, np.floor((r - 1) * (1 - p) / p), 0.0)
        return KnownCount(scipy.stats.nbinom, (r, p), peak)


class NegativeBinomial(Waiting):
    """`failures` before `r` successes, summed over `waits` such waits."""

    r: float

    def __check_init__(self) -> None:
        check.positive("r", self.r, "give the known number of successes")

    @property
    def until(self) -> float:
        return self.r
