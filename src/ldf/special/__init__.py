"""The numerics: one place where digits are kept."""

from ldf.special.binet import (
    binet,
    binet_prime,
    digamma,
    log_gamma,
    multivariate_digamma,
    multivariate_log_gamma,
)
from ldf.special.compound import (
    beta_binomial_log_pmf,
    dirichlet_multinomial_log_pmf,
    gamma_poisson_log_pmf,
)
