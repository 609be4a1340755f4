"""Counts whose likelihood is a sum of Poisson terms: what follows once for all of them.

    p(y | θ)  =  Σ_c κ_c(y) Po(y_c; n_c θ)

Each term is conjugate, so all is exact: the predictive is a sum of gamma-Poisson masses, and the
posterior a mixture of Gammas π(λ + [y_c; n_c]), weighted by what each term explains.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import scipy  # special is loaded when it is asked for

from ldf import check
from ldf.distributions import Gamma, mixture
from ldf.distributions.gamma import check_rate_known
from ldf.families.base import Family
from ldf.families.observed import Observed
from ldf.special import Array, floats, gamma_poisson_log_pmf, namespace, poisson_log_pmf
from ldf.statistic import Arrivals


class Terms(NamedTuple):
    """Terms on the first axis, which may be of length one for all."""

    log_share: Array  # κ
    count: Array
    exposure: Array


class PoissonSum(Family):
    """A count that may have come about, or been reported, in several ways."""

    natural: ClassVar = Arrivals
    latent: ClassVar = Gamma
    design: ClassVar = ("exposure",)
    prior = staticmethod(Arrivals.prior)
    from_unconstrained = staticmethod(Arrivals.from_unconstrained)

    @abstractmethod
    def checked(self, *args: Any, **columns: Any) -> dict[str, Array]:
        """The columns as arrays of numbers, by the words of `terms`."""

    @abstractmethod
    def terms(self, y: dict[str, Array]) -> Terms:
        """Of checked columns."""

    def log_base(self, *args: Any, **columns: Any) -> Array:
        raise TypeError(f"{type(self).__name__} is not conjugate: it has no base measure")

    def log_likelihood(self, theta: Any, *args: Any, **columns: Any) -> Array:
        rate = check.nonnegative("theta", theta, "a rate is zero or more")
        of = self._terms(self.checked(*args, **columns), np.shape(rate))
        return _log_sum(of.log_share + poisson_log_pmf(of.count, of.exposure * rate))

    def log_predictive(self, natural: Arrivals, *args: Any, **columns: Any) -> Array:
        y = self.checked(*args, **columns)
        check.fits("count", y["count"], self.own(natural).shape)
        check_rate_known(natural.exposure, y["exposure"])
        return _log_sum(self._explained(natural, self._terms(y, natural.shape)))

    def _terms(self, y: dict[str, Array], units: tuple[int, ...]) -> Terms:
        """Of columns with as many axes as the units have, so that those of terms are in front."""
        shape = np.broadcast_shapes(units, *(np.shape(values) for values in y.values()))
        return self.terms({w: namespace(v).broadcast_to(v, shape) for w, v in y.items()})

    def _explained(self, natural: Arrivals, of: Terms) -> Array:
        """log κ_c + log p(y_c), of each term."""
        mass = gamma_poisson_log_pmf(of.count, of.exposure, natural.count, natural.exposure)
        return of.log_share + mass

    def after(self, natural: Any, y: dict[str, Any], seen: np.ndarray) -> Observed:
        return Observed.of(self.own(natural), y, seen, self.checked)

    def _apart(self, known: Any) -> tuple[np.ndarray, Arrivals]:
        """λ + [y_c; n_c] of each term, and how much each explains: terms × units."""
        if not isinstance(known, Observed):
            return np.ones((1, *self.own(known).shape)), self.own(known)[None]
        known = known.spread(known.shape)
        of, natural = self.terms(known.y), known.natural
        logs = self._explained(natural, of)
        # Where nothing was seen, the first term is all there is, and it adds nothing.
        first = np.arange(len(logs)).reshape(-1, *[1] * len(known.shape)) == 0
        logs = np.where(known.seen, logs, np.where(first, 0.0, -np.inf))
        count, exposure = (np.where(known.seen, part, 0.0) for part in (of.count, of.exposure))
        weights = np.exp(logs - scipy.special.logsumexp(logs, 0))
        every = natural[None] + Arrivals(count, exposure)
        return weights, every.spread(weights.shape)

    def posterior(self, natural: Any) -> Any:
        """The distribution of θ: a Gamma, or after data a mixture of them."""
        if not isinstance(natural, Observed):
            return super().posterior(natural)
        weights, every = self._apart(natural)
        return mixture(weights, Gamma(every))

    def _exposure(self, natural: Any, exposure: Any) -> np.ndarray:
        """Of new data, one for each unit."""
        n = check.nonnegative("exposure", exposure)
        check.fits("exposure", n, natural.shape)
        return np.broadcast_to(np.asarray(n, float), natural.shape)


def _log_sum(logs: Array) -> Array:
    """Over terms, on the first axis."""
    if namespace(logs) is np:
        return scipy.special.logsumexp(logs, 0)
    return jax.nn.logsumexp(logs, 0)


def term_axis(*values: Any) -> tuple[Any, list[Array]]:
    """Arrays of numbers of one shape, with an axis for terms in front."""
    xp, arrays = floats(*values)
    return xp, [array[None] for array in xp.broadcast_arrays(*arrays)]
