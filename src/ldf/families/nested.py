"""Counts a class, whose classes are known with different precision: votes by party."""

from __future__ import annotations

from typing import Any, ClassVar

import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import NestedDirichlet, NestedDirichletMultinomial
from ldf.distributions.known import KnownCounts
from ldf.distributions.nested import check_splits_known, log_mass
from ldf.families.base import Family
from ldf.families.binomial import DECLARE, whole_trials
from ldf.families.multinomial import NO_COUNTS
from ldf.special import Array, floats, log_gamma
from ldf.statistic import NestedCounts


class NestedMultinomial(Family):
    """`counts`, one column a class, with a generalised Dirichlet prior: each class has a precision
    of its own, whereas `Multinomial` has one for all.

    The order of the columns matters: the first class is set against all others, the second against
    those after it, and so on; the last two are symmetric. With `effective=True` counts may be
    fractional: effective counts of a weighted survey.
    """

    classes: int | None = None  # needed only to learn a mapping
    effective: bool = False

    natural: ClassVar = NestedCounts
    latent: ClassVar = NestedDirichlet
    columns: ClassVar = ("counts",)
    design: ClassVar = ("trials",)
    prior = staticmethod(NestedCounts.prior)
    from_unconstrained = staticmethod(NestedCounts.from_unconstrained)

    def __check_init__(self) -> None:
        if self.classes is not None and (not isinstance(self.classes, int) or self.classes < 2):
            remedy = "give a whole number from 2 on"
            raise check.DataError("classes", None, self.classes, "is not possible", remedy)

    @property
    def components(self) -> int | None:
        return self.classes

    def _counts(self, counts: Any, fractions: bool = False) -> Array:
        how = {"fractions": fractions or self.effective, "declare": DECLARE}
        k = check.counts("counts", counts, missing=NO_COUNTS, **how)
        check.classes("counts", k, self.classes)
        return k

    def design_of(self, **columns: Any) -> dict[str, Any]:
        return {"trials": self._counts(columns["counts"]).sum(-1)}

    def statistic(self, counts: Any, design_effect: Any = None) -> NestedCounts:
        """T_y. A survey's `design_effect` makes its (weighted) counts effective ones."""
        k = self._counts(counts, fractions=design_effect is not None)
        if design_effect is None:
            return NestedCounts.of_classes(k)
        by_unit = check.positive("design_effect", design_effect)
        first = counts.iloc[:, 0] if hasattr(counts, "iloc") else k[..., 0]
        check.same_length(counts=first, design_effect=design_effect)
        return NestedCounts.of_classes(k / by_unit[..., None])

    def log_base(self, counts: Any) -> Array:
        k = self._counts(counts)
        return log_gamma(k.sum(-1) + 1) - log_gamma(k + 1).sum(-1)

    def log_predictive(self, natural: NestedCounts, counts: Any) -> Array:
        k = self._counts(counts)
        check.last_axis("counts", k, self.own(natural).counts.shape[-1] + 1, "classes")
        check.fits("counts", k[..., 0], natural.shape)
        check_splits_known(natural, k.sum(-1))
        return log_mass(natural, k)

    def predictive(self, natural: NestedCounts, trials: Any) -> NestedDirichletMultinomial:
        n = whole_trials(trials)
        check.fits("trials", n, self.own(natural).shape)
        return NestedDirichletMultinomial(natural, n)

    def likelihood(self, theta: Any, trials: Any) -> KnownCounts:
        _, (p, n) = floats(check.simplex("theta", theta), whole_trials(trials))
        return KnownCounts(scipy.stats.multinomial, n, p)
