"""T_x(x; φ): how auxiliary data become pseudo-observations."""

from ldf.mappings.base import Mapping, Weights, count_weights, scramble, squared
from ldf.mappings.linear import Linear
from ldf.mappings.network import Network
from ldf.mappings.trees import Trees, together

__all__ = [
    "Linear",
    "Mapping",
    "Network",
    "Trees",
    "Weights",
    "count_weights",
    "scramble",
    "squared",
    "together",
]
