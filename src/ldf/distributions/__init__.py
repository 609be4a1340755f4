"""Distributions of θ and of y."""

from ldf.distributions.base import Continuous, Distribution, Integer, Multivariate, Univariate
from ldf.distributions.beta import Beta, BetaNegativeBinomial
from ldf.distributions.beta_binomial import BetaBinomial
from ldf.distributions.beta_product import BetaProduct
from ldf.distributions.dirichlet import Dirichlet, DirichletMultinomial
from ldf.distributions.gamma import CompoundGamma, Gamma, GammaPoisson, InverseGamma
from ldf.distributions.gaussian import (
    Gaussian,
    MultivariateGaussian,
    MultivariateStudentT,
    StudentT,
)
from ldf.distributions.known import KnownCount, KnownCounts, KnownValue, PointMass
from ldf.distributions.mixture import (
    ContinuousMixture,
    IntegerMixture,
    Mixture,
    MultivariateMixture,
    mixture,
)
from ldf.distributions.nested import NestedDirichlet, NestedDirichletMultinomial
from ldf.distributions.nested_count import NestedCount
from ldf.distributions.normal_inverse import (
    InverseWishart,
    NormalInverseGamma,
    NormalInverseWishart,
)
from ldf.distributions.on_nodes import OnNodes
from ldf.distributions.tabulated import Tabulated
from ldf.distributions.weighted import WeightedDraws

__all__ = [
    "Beta",
    "BetaBinomial",
    "BetaNegativeBinomial",
    "BetaProduct",
    "CompoundGamma",
    "Continuous",
    "ContinuousMixture",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Gamma",
    "GammaPoisson",
    "Gaussian",
    "Integer",
    "IntegerMixture",
    "InverseGamma",
    "InverseWishart",
    "KnownCount",
    "KnownCounts",
    "KnownValue",
    "Mixture",
    "Multivariate",
    "MultivariateGaussian",
    "MultivariateMixture",
    "MultivariateStudentT",
    "NestedCount",
    "NestedDirichlet",
    "NestedDirichletMultinomial",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "OnNodes",
    "PointMass",
    "StudentT",
    "Tabulated",
    "Univariate",
    "WeightedDraws",
    "mixture",
]
