"""T_x(x; φ): how auxiliary data become pseudo-observations."""

from ldf.mappings.base import Mapping, Weights, count_weights, scramble, squared
from ldf.mappings.linear import Linear
from ldf.mappings.network import Network

__all__ = ["Linear", "Mapping", "Network", "Weights", "count_weights", "scramble", "squared"]
