"""The numerics: one place where digits are kept."""

from ldf.special.arrays import Array, floats, namespace
from ldf.special.compound import (
    beta_binomial_log_pmf,
    dirichlet_multinomial_log_pmf,
    gamma_poisson_log_pmf,
)
from ldf.special.incomplete import (
    beta_cdf,
    beta_quantile,
    beta_sf,
    gamma_cdf,
    gamma_quantile,
    gamma_sf,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
    upper_beta_quantile,
    upper_gamma_quantile,
)
from ldf.special.plain import binomial_log_pmf, log_binomial, poisson_log_pmf
from ldf.special.random import Draws, check_draws
from ldf.special.stirling import (
    HALF_LOG_2PI,
    binet,
    binet_prime,
    digamma,
    digamma_remainder,
    log_gamma,
    log_gamma_divergence,
    log_rising,
    multivariate_digamma,
    multivariate_log_gamma,
)
from ldf.special.table import deviance, difference_of_products

__all__ = [
    "HALF_LOG_2PI",
    "Array",
    "Draws",
    "beta_binomial_log_pmf",
    "beta_cdf",
    "beta_quantile",
    "beta_sf",
    "binet",
    "binet_prime",
    "binomial_log_pmf",
    "check_draws",
    "deviance",
    "difference_of_products",
    "digamma",
    "digamma_remainder",
    "dirichlet_multinomial_log_pmf",
    "floats",
    "gamma_cdf",
    "gamma_poisson_log_pmf",
    "gamma_quantile",
    "gamma_sf",
    "log_binomial",
    "log_gamma",
    "log_gamma_divergence",
    "log_rising",
    "multivariate_digamma",
    "multivariate_log_gamma",
    "namespace",
    "normal_cdf",
    "normal_quantile",
    "poisson_log_pmf",
    "student_cdf",
    "student_quantile",
    "upper_beta_quantile",
    "upper_gamma_quantile",
]
