"""What the primary data are: one file a family."""

from ldf.families.base import Family
from ldf.families.binomial import Binomial
from ldf.families.censored import CensoredPoisson
from ldf.families.exponential import Exponential
from ldf.families.gamma import Gamma
from ldf.families.gaussian import Gaussian, LinearGaussian
from ldf.families.geometric import Geometric
from ldf.families.joint import Joint
from ldf.families.misreported import Misreported
from ldf.families.multinomial import Multinomial
from ldf.families.multivariate_normal import MultivariateNormal
from ldf.families.negative_binomial import NegativeBinomial
from ldf.families.nested import NestedMultinomial
from ldf.families.normal import Normal
from ldf.families.poisson import Poisson
from ldf.families.zero_inflated import ZeroInflatedPoisson

__all__ = [
    "Binomial",
    "CensoredPoisson",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "Geometric",
    "Joint",
    "LinearGaussian",
    "Misreported",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "NestedMultinomial",
    "Normal",
    "Poisson",
    "ZeroInflatedPoisson",
]
