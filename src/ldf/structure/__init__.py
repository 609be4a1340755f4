"""γ, what ties units together: groups, neighbours, time, or your own."""

from ldf.structure.base import Conditional, JointMarginal, Structure, joint_marginal, tilt
from ldf.structure.hierarchy import Hierarchy
from ldf.structure.space import Space
from ldf.structure.time import Time

__all__ = [
    "Conditional",
    "Hierarchy",
    "JointMarginal",
    "Space",
    "Structure",
    "Time",
    "joint_marginal",
    "tilt",
]
