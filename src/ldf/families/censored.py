"""Counts of which small ones are not published: suppressed cells of health statistics.

An office that suppresses counts from 1 to 9 tells of such a cell only that its count is one of
these. Any of them may have been, and each is a Poisson count.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.distributions import GammaPoisson, KnownCount, mixture
from ldf.families.observed import Share
from ldf.families.poisson import Poisson
from ldf.families.poisson_sum import PoissonSum, Terms, term_axis
from ldf.special import Array, namespace


class CensoredPoisson(PoissonSum):
    """`count` in `exposure`; counts from `lower` to `upper` are suppressed.

    A suppressed cell holds any number within these bounds. By the rule, every such number is one;
    where a column `censored` says which rows are, the others within the bounds are counts.
    """

    lower: int = 1
    upper: int = 9

    columns: ClassVar = ("count", "censored", "exposure")

    def __check_init__(self) -> None:
        for word in ("lower", "upper"):
            check.counts(word, getattr(self, word), missing=check.A_NUMBER)
            check.single(word, getattr(self, word))
        remedy = "give the least and the greatest count that is suppressed"
        check.at_most("lower", self.lower, "upper", self.upper, remedy)

    def checked(self, count: Any, exposure: Any = 1.0, censored: Any = None) -> dict[str, Array]:
        y, n = Poisson()._counts(count, exposure)
        inside = (y >= self.lower) & (y <= self.upper)
        if censored is None:
            return {"count": y, "exposure": n, "censored": 1.0 * inside}
        flag = check.numbers("censored", censored, missing="say of every row if it is suppressed")
        check.same_length(count=count, censored=censored)
        if not check.is_traced(y, flag):
            on = np.asarray(flag)
            remedy = "say true or false, 1 or 0"
            check.refuse("censored", censored, (on != 0) & (on != 1), "is not a yes or no", remedy)
            problem = f"is suppressed, but not from {self.lower} to {self.upper}"
            remedy = "give a suppressed cell any number within the family's bounds"
            check.refuse("count", count, (on == 1) & ~np.asarray(inside), problem, remedy)
        return {"count": y, "exposure": n, "censored": flag}

    def exact(self, **columns: Any) -> np.ndarray:
        return np.asarray(self.checked(**columns)["censored"]) == 0

    def statistic(self, count: Any, exposure: Any = 1.0, censored: Any = None) -> Share:
        """The count, half way between the bounds where it is suppressed, and its exposure."""
        y = self.checked(count, exposure, censored)
        xp = namespace(*y.values())
        middle = (self.lower + self.upper) / 2
        known = xp.where(y["censored"] > 0, middle, y["count"])
        return Share(known, y["exposure"] + 0 * known)

    def terms(self, y: dict[str, Array]) -> Terms:
        """Each count that a suppressed cell may have had; of others there is one."""
        xp, (count, n, flag) = term_axis(y["count"], y["exposure"], y["censored"])
        numbers = np.arange(self.lower, self.upper + 1).reshape(-1, *[1] * (count.ndim - 1))
        off = (flag == 0) & (numbers > self.lower)
        every = xp.where(flag > 0, numbers, count).astype(count.dtype)
        return Terms(xp.where(off, -np.inf, 0.0).astype(count.dtype), every, n + 0 * every)

    def predictive(self, natural: Any, exposure: Any = 1.0) -> Any:
        """Of a further count, published or not."""
        n = self._exposure(natural, exposure)
        weights, every = self._apart(natural)
        if len(weights) == 1:
            return GammaPoisson(every[0], n)
        return mixture(weights, GammaPoisson(every, np.broadcast_to(n, every.shape)))

    def likelihood(self, theta: Any, exposure: Any = 1.0) -> KnownCount:
        return Poisson().likelihood(theta, exposure)
