"""Counts a class, with a Dirichlet prior: main lighting fuel, votes by party."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.stats

from ldf import check
from ldf.distributions import Dirichlet, DirichletMultinomial
from ldf.distributions.known import KnownCounts
from ldf.families.base import Family, effective
from ldf.special import Array, dirichlet_multinomial_log_pmf, floats, log_gamma
from ldf.statistic import ClassCounts


class Multinomial(Family):
    """`counts`, one column a class. One trial a unit is categorical data.

    With `effective=True` counts may be fractional: effective counts of a weighted survey.
    """

    classes: int | None = None  # needed only to learn a mapping
    effective: bool = False

    natural: ClassVar = ClassCounts
    latent: ClassVar = Dirichlet
    columns: ClassVar = ("counts",)
    design: ClassVar = ("trials",)
    prior = staticmethod(ClassCounts.prior)
    from_unconstrained = staticmethod(ClassCounts.from_unconstrained)

    @property
    def outputs(self) -> int:
        """How many outputs a mapping needs, in the formulation by rate: n and K logits."""
        if self.classes is None:
            raise ValueError("how many classes there are is not said: use Multinomial(classes=K)")
        return self.classes + 1

    def _counts(self, counts: Any) -> Array:
        k = check.counts("counts", counts, effective=self.effective)
        if np.ndim(k) == 0 or (self.classes is not None and np.shape(k)[-1] != self.classes):
            wanted = "one column a class" if self.classes is None else f"{self.classes} columns"
            raise check.DataError(
                "counts", None, None, f"has shape {np.shape(k)}", f"give {wanted}"
            )
        return k

    def statistic(self, counts: Any, design_effect: Any = None) -> ClassCounts:
        """T_y. A survey's `design_effect` makes its counts effective ones."""
        k = self._counts(counts)
        if np.ndim(design_effect) > 0:
            design_effect = np.asarray(design_effect)[..., None]
        return ClassCounts(effective(k, design_effect))

    def log_base(self, counts: Any) -> Array:
        k = self._counts(counts)
        return log_gamma(k.sum(-1) + 1) - log_gamma(k + 1).sum(-1)

    def log_predictive(self, natural: ClassCounts, counts: Any) -> Array:
        return dirichlet_multinomial_log_pmf(self._counts(counts), natural.counts)

    def predictive(self, natural: ClassCounts, trials: Any) -> DirichletMultinomial:
        return DirichletMultinomial(natural, check.counts("trials", trials))

    def likelihood(self, theta: Any, trials: Any) -> KnownCounts:
        _, (p, n) = floats(check.simplex("theta", theta), check.counts("trials", trials))
        return KnownCounts(scipy.stats.multinomial, n, p)
