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

__all__ = [
    "Arrivals",
    "ClassCounts",
    "Moments",
    "Potential",
    "Statistic",
    "Trials",
    "VectorMoments",
    "VectorPotential",
    "refuse_far_from_zero",
    "triangle_outputs",
]
