"""What adds: the statistics of each conjugate prior."""

from ldf.statistic.base import Statistic
from ldf.statistic.counts import Arrivals, ClassCounts, Trials
from ldf.statistic.gaussian import (
    Moments,
    Potential,
    VectorMoments,
    VectorPotential,
    refuse_far_from_zero,
    triangle_outputs,
)
from ldf.statistic.nested import NestedCounts

__all__ = [
    "Arrivals",
    "ClassCounts",
    "Moments",
    "NestedCounts",
    "Potential",
    "Statistic",
    "Trials",
    "VectorMoments",
    "VectorPotential",
    "refuse_far_from_zero",
    "triangle_outputs",
]
