"""T_x(x; φ): how auxiliary data become pseudo-observations."""

from ldf.mappings.attention import Attention
from ldf.mappings.base import (
    Mapping,
    Weights,
    count_weights,
    scramble,
    split,
    squared,
)
from ldf.mappings.convolution import Convolution
from ldf.mappings.fourier import Fourier
from ldf.mappings.linear import Linear
from ldf.mappings.network import Network
from ldf.mappings.own import Given, Own, as_mapping
from ldf.mappings.process import GaussianProcess
from ldf.mappings.recurrent import Recurrent
from ldf.mappings.splines import Splines
from ldf.mappings.temporal import TemporalConvolution
from ldf.mappings.trees import Trees, together

__all__ = [
    "Attention",
    "Convolution",
    "Fourier",
    "GaussianProcess",
    "Given",
    "Linear",
    "Mapping",
    "Network",
    "Own",
    "Recurrent",
    "Splines",
    "TemporalConvolution",
    "Trees",
    "Weights",
    "as_mapping",
    "count_weights",
    "scramble",
    "split",
    "squared",
    "together",
]
