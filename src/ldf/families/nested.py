"""Counts a class, whose classes are known with different precision: votes by party."""

from __future__ import annotations

from typing import Any, ClassVar

from ldf import check
from ldf.distributions import NestedDirichlet, NestedDirichletMultinomial
from ldf.distributions.nested import check_splits_known, log_mass
from ldf.families.binomial import whole_trials
from ldf.families.multinomial import Multinomial
from ldf.special import Array
from ldf.statistic import NestedCounts


class NestedMultinomial(Multinomial):
    """`counts`, one column a class, with a generalised Dirichlet prior: each class has a precision
    of its own, whereas `Multinomial` has one for all.

    The order of the columns matters: the first class is set against all others, the second against
    those after it, and so on; the last two are symmetric. With `effective=True` counts may be
    fractional: effective counts of a weighted survey.
    """

    natural: ClassVar = NestedCounts
    latent: ClassVar = NestedDirichlet
    prior = staticmethod(NestedCounts.prior)
    from_unconstrained = staticmethod(NestedCounts.from_unconstrained)

    def statistic(self, counts: Any, design_effect: Any = None) -> Any:
        """T_y. A survey's `design_effect` makes its (weighted) counts effective ones."""
        return NestedCounts.of_classes(super().statistic(counts, design_effect).counts)

    def log_predictive(self, natural: Any, counts: Any) -> Array:
        k = self._counts(counts)
        check.last_axis("counts", k, self.own(natural).counts.shape[-1] + 1, "classes")
        check.fits("counts", k[..., 0], natural.shape)
        check_splits_known(natural, k.sum(-1))
        return log_mass(natural, k)

    def predictive(self, natural: Any, trials: Any) -> Any:
        n = whole_trials(trials)
        check.fits("trials", n, self.own(natural).shape)
        return NestedDirichletMultinomial(natural, n)
