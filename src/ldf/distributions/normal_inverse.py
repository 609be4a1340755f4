"""Mean and variance together: normal-inverse-gamma, and normal-inverse-Wishart for vectors.

The variance is known as if from `variance_n` observations; given it, the mean is known as if from
`mean_n`. The joint answers for the pair; `marginal("mean")` and `marginal("variance")` for each.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ldf import check
from ldf.distributions.base import Distribution, check_component, of_units
from ldf.distributions.gamma import Gamma, InverseGamma
from ldf.distributions.gaussian import MultivariateStudentT, StudentT, diagonal, log_det
from ldf.special import (
    HALF_LOG_2PI,
    Array,
    Draws,
    digamma,
    floats,
    log_gamma,
    multivariate_digamma,
    multivariate_log_gamma,
)
from ldf.statistic import Arrivals, Moments, VectorMoments

IMPROPER = "give a prior with mean_n, variance_n and variance above zero"


def check_pair(column: str, theta: Array) -> None:
    """Mean and variance, on the last axis."""
    if np.ndim(theta) == 0 or np.shape(theta)[-1] != 2:
        remedy = "give two values a row: the mean and the variance"
        raise check.DataError(column, None, None, "is not a pair", remedy)


class NormalInverseGamma(Distribution):
    """Of a mean and a variance. Answers for both are stacked on a last axis: mean, variance."""

    natural: Moments

    @staticmethod
    def log_partition(natural: Moments) -> Array:
        """log Z: ½ log(2π/κ) + log Γ(ν/2) − ν/2 log(νs²/2); infinite if improper."""
        xp, (kappa, total, nu, squares) = floats(*natural.coordinates())
        seen = (kappa > 0) & (nu > 0)
        kappa, nu = xp.where(seen, kappa, 1.0), xp.where(seen, nu, 1.0)
        spread = squares - total * (total / kappa)
        proper = seen & (spread > 0)
        log_variance = -0.5 * nu * xp.log(xp.where(proper, spread, 1.0) / 2)
        value = HALF_LOG_2PI - 0.5 * xp.log(kappa) + log_gamma(nu / 2) + log_variance
        return xp.where(proper, value, np.inf)

    @staticmethod
    def sufficient(value: Any) -> Moments:
        """What the coordinates multiply in log p(mean, variance)."""
        xp, (theta,) = floats(check.numbers("theta", value))
        check_pair("theta", theta)
        check.positive("variance", theta[..., 1])
        mean, variance = theta[..., 0], theta[..., 1]
        return Moments(
            -0.5 * mean**2 / variance, mean / variance, -0.5 * xp.log(variance), -0.5 / variance
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    def __getitem__(self, rows: Any) -> NormalInverseGamma:
        return NormalInverseGamma(self.natural[rows])

    def parameters(self, quantity: str = "distribution") -> tuple[Any, Array, Array, Array, Array]:
        """mean_n, mean, variance_n and variance."""
        xp, (kappa, total, nu, squares) = floats(*self.natural.coordinates())
        kappa, total, nu, squares = xp.broadcast_arrays(kappa, total, nu, squares)
        with np.errstate(all="ignore"):
            mean = total / kappa
            spread = squares - total * mean
        why = "mean or variance was not observed, not even by a prior"
        proper = (kappa > 0) & (nu > 0) & (spread > 0)
        check.exists(f"posterior {quantity}", proper, why, IMPROPER)
        return xp, kappa, mean, nu, spread / nu

    def marginal(self, component: str) -> StudentT | InverseGamma:
        """Of the "mean" (Student's t) or of the "variance" (inverse Gamma)."""
        check.one_of("component", component, ("mean", "variance"))
        xp, kappa, mean, nu, variance = self.parameters()
        if component == "mean":
            return StudentT(nu, mean, xp.sqrt(variance / kappa))
        return InverseGamma(Arrivals(nu / 2, nu * variance / 2))

    def _both(self, method: str) -> Array:
        parts = [getattr(self.marginal(name), method)() for name in ("mean", "variance")]
        xp, parts = floats(*parts)
        return xp.stack(parts, -1)

    def mean(self) -> Array:
        return self._both("mean")

    def sd(self) -> Array:
        return self._both("sd")

    def mode(self) -> Array:
        """The mode of the joint."""
        xp, _, mean, nu, variance = self.parameters("mode")
        return xp.stack([mean, nu * variance / (nu + 3)], -1)

    def log_prob(self, value: Any) -> Array:
        """The log density of (mean, variance) on the last axis."""
        xp, kappa, mean, nu, variance = self.parameters("density")
        value = check.numbers("value", value)
        check_pair("value", value)
        of_variance = check.positive("variance", value[..., 1])
        off = kappa * (value[..., 0] - mean) ** 2 / of_variance
        given = 0.5 * xp.log(kappa / of_variance) - HALF_LOG_2PI - 0.5 * off
        return given + InverseGamma(Arrivals(nu / 2, nu * variance / 2)).log_prob(of_variance)

    def entropy(self) -> Array:
        xp, kappa, _, nu, variance = self.parameters("entropy")
        # H(mean given variance) averaged over the variance, plus H(variance).
        log_variance = xp.log(nu * variance / 2) - digamma(nu / 2)
        given = 0.5 + HALF_LOG_2PI + 0.5 * (log_variance - xp.log(kappa))
        return given + self.marginal("variance").entropy()

    def divergence(self, other: NormalInverseGamma) -> Array:
        """KL(this ‖ other) in nats."""
        xp, kappa, mean, nu, variance = self.parameters("divergence")
        _, kappa2, mean2, nu2, variance2 = other.parameters("divergence")
        ratio = (kappa2 - kappa) / kappa
        # E[1/variance] = 1/variance under this one.
        given = 0.5 * (ratio - xp.log1p(ratio) + kappa2 * (mean - mean2) ** 2 / variance)
        precision = Gamma(Arrivals(nu / 2, nu * variance / 2))
        return given + precision.divergence(Gamma(Arrivals(nu2 / 2, nu2 * variance2 / 2)))

    def sample(self, draws: int, seed: Any) -> Array:
        xp, kappa, mean, nu, variance = self.parameters("sample")
        source = Draws(draws, seed, mean)
        drawn = xp.exp(xp.log(nu * variance / 2) - source.log_gamma(nu / 2))
        centre = mean + source.normal(mean) * xp.sqrt(drawn / kappa)
        return xp.stack([centre, drawn], -1)


class InverseWishart(Distribution):
    """Of a covariance matrix: so many degrees of freedom, and their sum of squares."""

    freedom: Array
    squares: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.freedom), np.shape(self.squares)[:-2])

    def __getitem__(self, rows: Any) -> InverseWishart:
        _, nu, psi, _ = self._parameters()
        return InverseWishart(of_units(nu, self.shape)[rows], of_units(psi, self.shape, 2)[rows])

    def _parameters(self) -> tuple[Any, Array, Array, int]:
        xp, (nu, psi) = floats(self.freedom, self.squares)
        return xp, nu, psi, psi.shape[-1]

    def marginal(self, component: int) -> InverseGamma:
        """Of one component's variance."""
        _, nu, psi, size = self._parameters()
        check_component(component, size)
        return InverseGamma(Arrivals((nu - size + 1) / 2, psi[..., component, component] / 2))

    def mean(self) -> Array:
        _, nu, psi, size = self._parameters()
        remedy = "take the mode, or give a prior of the covariance worth more"
        check.exists("mean", nu > size + 1, "its tails are too heavy", remedy)
        return psi / (nu - size - 1)[..., None, None]

    def sd(self) -> Array:
        """Of each entry."""
        xp, nu, psi, size = self._parameters()
        remedy = "give a prior of the covariance worth more"
        check.exists("sd", nu > size + 3, "its tails are too heavy", remedy)
        variances = diagonal(psi)
        nu = nu[..., None, None]
        products = variances[..., :, None] * variances[..., None, :]
        top = (nu - size + 1) * psi**2 + (nu - size - 1) * products
        return xp.sqrt(top / ((nu - size) * (nu - size - 1) ** 2 * (nu - size - 3)))

    def mode(self) -> Array:
        _, nu, psi, size = self._parameters()
        return psi / (nu + size + 1)[..., None, None]

    def log_prob(self, value: Any) -> Array:
        """The log density of a covariance matrix."""
        xp, nu, psi, size = self._parameters()
        sigma = check.positive_definite("value", value)
        trace = diagonal(xp.linalg.solve(sigma, psi + 0 * sigma)).sum(-1)
        constant = 0.5 * nu * log_det(psi) - 0.5 * nu * size * np.log(2)
        constant = constant - multivariate_log_gamma(nu / 2, size)
        return constant - 0.5 * (nu + size + 1) * log_det(sigma) - 0.5 * trace

    def entropy(self) -> Array:
        _, nu, psi, size = self._parameters()
        # E log|Σ| and E tr(ΨΣ⁻¹) = νD in −E log p.
        expected_log_det = log_det(psi) - size * np.log(2) - multivariate_digamma(nu / 2, size)
        constant = multivariate_log_gamma(nu / 2, size) + 0.5 * nu * size * np.log(2)
        constant = constant - 0.5 * nu * log_det(psi)
        return constant + 0.5 * (nu + size + 1) * expected_log_det + 0.5 * nu * size

    def sample(self, draws: int, seed: Any) -> Array:
        xp, nu, psi, size = self._parameters()
        source = Draws(draws, seed, psi)
        nu, _ = xp.broadcast_arrays(nu, psi[..., 0, 0])
        # Bartlett: Σ⁻¹ = C A Aᵀ Cᵀ, A lower triangular, with CCᵀ = Ψ⁻¹.
        chi = xp.stack(
            [xp.sqrt(2 * xp.exp(source.log_gamma((nu - i) / 2))) for i in range(size)], -1
        )
        noise = source.normal(xp.broadcast_to(psi, (*nu.shape, size, size)))
        lower = xp.tril(noise, -1) + chi[..., None] * xp.eye(size, dtype=psi.dtype)
        # Σ = K (AAᵀ)⁻¹ Kᵀ with KKᵀ = Ψ: the inverse of a lower triangle, transposed.
        root = xp.linalg.cholesky(psi) @ xp.linalg.inv(lower).swapaxes(-1, -2)
        return root @ root.swapaxes(-1, -2)


class NormalInverseWishart(Distribution):
    """Of a mean vector and a covariance matrix."""

    natural: VectorMoments

    @staticmethod
    def log_partition(natural: VectorMoments) -> Array:
        """log Z: D/2 log(2π/κ) + νD/2 log 2 + log Γ_D(ν/2) − ν/2 log|Ψ|; infinite if improper."""
        xp, (kappa, total, nu, squares) = floats(*natural.coordinates())
        size = total.shape[-1]
        seen = (kappa > 0) & (nu > size - 1)
        kappa, nu = xp.where(seen, kappa, 1.0), xp.where(seen, nu, 1.0 * size)
        psi = squares - total[..., :, None] * (total / kappa[..., None])[..., None, :]
        scale = size * (HALF_LOG_2PI - 0.5 * xp.log(kappa)) + 0.5 * nu * size * np.log(2)
        with np.errstate(divide="ignore"):
            value = scale + multivariate_log_gamma(nu / 2, size) - 0.5 * nu * log_det(psi)
        return xp.where(seen, value, np.inf)

    @staticmethod
    def sufficient(value: tuple[Any, Any]) -> VectorMoments:
        """What the coordinates multiply in log p(mean, covariance)."""
        sigma = check.positive_definite("variance", value[1])
        xp, (mean, sigma) = floats(check.numbers("mean", value[0]), sigma)
        precision = xp.linalg.inv(sigma)
        weighted = (precision @ mean[..., None])[..., 0]
        return VectorMoments(
            -0.5 * (mean * weighted).sum(-1), weighted, -0.5 * log_det(sigma), -0.5 * precision
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.natural.shape

    def __getitem__(self, rows: Any) -> NormalInverseWishart:
        return NormalInverseWishart(self.natural[rows])

    def parameters(self, quantity: str = "distribution") -> tuple[Any, Array, Array, Array, Array]:
        """mean_n, mean, variance_n and the sum of squares Ψ = variance_n · variance."""
        xp, (kappa, total, nu, squares) = floats(*self.natural.coordinates())
        size = total.shape[-1]
        with np.errstate(all="ignore"):
            mean = total / kappa[..., None]
            psi = squares - total[..., :, None] * mean[..., None, :]
        psi = (psi + psi.swapaxes(-1, -2)) / 2
        if not check.is_traced(psi, kappa, nu):
            host = np.asarray(psi)
            finite = np.isfinite(host).all((-1, -2), keepdims=True)
            definite = check.is_definite(np.where(finite, host, 0.0))
            proper = (np.asarray(kappa) > 0) & (np.asarray(nu) > size - 1) & definite
            why = "mean or covariance was observed too little, even with the prior"
            remedy = f"give a prior with mean_n above 0 and variance_n above {size - 1}"
            check.exists(f"posterior {quantity}", proper, why, remedy)
        return xp, kappa, mean, nu, psi

    def marginal(self, component: str) -> MultivariateStudentT | InverseWishart:
        """Of the "mean" (multivariate t) or of the "variance" (inverse Wishart)."""
        check.one_of("component", component, ("mean", "variance"))
        _, kappa, mean, nu, psi = self.parameters()
        if component == "variance":
            return InverseWishart(nu, psi)
        freedom = nu - mean.shape[-1] + 1
        return MultivariateStudentT(freedom, mean, psi / (kappa * freedom)[..., None, None])

    def mean(self) -> tuple[Array, Array]:
        """Of the mean and of the covariance."""
        return self.marginal("mean").mean(), self.marginal("variance").mean()

    def sd(self) -> tuple[Array, Array]:
        return self.marginal("mean").sd(), self.marginal("variance").sd()

    def mode(self) -> tuple[Array, Array]:
        """The mode of the joint."""
        _, _, mean, nu, psi = self.parameters("mode")
        return mean, psi / (nu + mean.shape[-1] + 2)[..., None, None]

    def log_prob(self, value: tuple[Any, Any]) -> Array:
        """The log density of (mean, covariance)."""
        xp, kappa, mean, nu, psi = self.parameters("density")
        centre = check.numbers("mean", value[0])
        sigma = check.positive_definite("variance", value[1])
        off = centre - mean
        distance = (off * xp.linalg.solve(sigma, off[..., None])[..., 0]).sum(-1)
        size = mean.shape[-1]
        given = size * (0.5 * xp.log(kappa) - HALF_LOG_2PI) - 0.5 * log_det(sigma)
        return given - 0.5 * kappa * distance + InverseWishart(nu, psi).log_prob(sigma)

    def entropy(self) -> Array:
        xp, kappa, mean, nu, psi = self.parameters("entropy")
        size = mean.shape[-1]
        expected_log_det = log_det(psi) - size * np.log(2) - multivariate_digamma(nu / 2, size)
        given = size * (0.5 + HALF_LOG_2PI - 0.5 * xp.log(kappa)) + 0.5 * expected_log_det
        return given + InverseWishart(nu, psi).entropy()

    def divergence(self, other: NormalInverseWishart) -> Array:
        """KL(this ‖ other) in nats."""
        xp, kappa, mean, nu, psi = self.parameters("divergence")
        _, kappa2, mean2, nu2, psi2 = other.parameters("divergence")
        size = mean.shape[-1]
        off = mean - mean2
        # E Σ⁻¹ = ν Ψ⁻¹.
        distance = nu * (off * xp.linalg.solve(psi, off[..., None])[..., 0]).sum(-1)
        ratio = (kappa2 - kappa) / kappa
        given = 0.5 * (size * (ratio - xp.log1p(ratio)) + kappa2 * distance)
        trace = diagonal(xp.linalg.solve(psi, psi2 + 0 * psi)).sum(-1)
        of_covariance = (
            0.5 * nu2 * (log_det(psi) - log_det(psi2))
            + 0.5 * nu * (trace - size)
            + multivariate_log_gamma(nu2 / 2, size)
            - multivariate_log_gamma(nu / 2, size)
            + 0.5 * (nu - nu2) * multivariate_digamma(nu / 2, size)
        )
        return given + of_covariance

    def sample(self, draws: int, seed: Any) -> tuple[Array, Array]:
        """Draws of the mean and of the covariance."""
        xp, kappa, mean, nu, psi = self.parameters("sample")
        sigma = InverseWishart(nu, psi).sample(draws, seed)
        source = Draws(1, _another(seed), mean)
        noise = source.normal(xp.zeros(sigma.shape[:-1], sigma.dtype))[0]
        step = (xp.linalg.cholesky(sigma) @ noise[..., None])[..., 0]
        return mean + step / xp.sqrt(kappa)[..., None], sigma


def _another(seed: Any) -> Any:
    """A second, independent seed from one."""
    if isinstance(seed, jax.Array):
        return jax.random.fold_in(seed, 1)
    own = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(int(seed))
    second = np.random.SeedSequence(own.entropy, spawn_key=(*own.spawn_key, 0))
    return int(second.generate_state(1)[0])
