"""Successes out of trials, reported with known errors: a survey that is not always told the truth,
a test that is not always right.

Of those who have it, a share `sensitivity` says so; of those who have not, a share `specificity`.
θ is the true rate, and the rate of reports is

    p  =  sensitivity · θ  +  (1 − specificity) · (1 − θ)
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import scipy  # stats is loaded when it is asked for

from ldf import check
from ldf.distributions import Beta, KnownCount, Tabulated
from ldf.distributions.tabulated import tabulated
from ldf.families.binomial import Binomial, whole_trials
from ldf.families.nonconjugate import ByQuadrature
from ldf.families.observed import Share
from ldf.special import Array, binomial_log_pmf, floats
from ldf.statistic import Trials


class Misreported(ByQuadrature):
    """`successes` reported in `trials`, when reports have a known sensitivity and specificity.

    ldf.Misreported(sensitivity=0.9, specificity=0.95)          the same for all rows
    {"sensitivity": "se", "specificity": "sp", …} as columns    each row its own
    """

    sensitivity: float | None = None
    specificity: float | None = None

    natural: ClassVar = Trials
    latent: ClassVar = Beta
    columns: ClassVar = ("successes", "trials", "sensitivity", "specificity")
    design: ClassVar = ("trials", "sensitivity", "specificity")
    prior = staticmethod(Trials.prior)
    from_unconstrained = staticmethod(Trials.from_unconstrained)

    def __check_init__(self) -> None:
        own = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        for word, value in own.items():
            if value is not None:
                check.probability(word, value)
                check.single(word, value)
        if self.sensitivity is not None and self.specificity is not None:
            refuse_useless(self.sensitivity, self.specificity)

    def _errors(self, sensitivity: Any, specificity: Any) -> tuple[Array, Array]:
        """The family's own, or a column's."""
        found = []
        for word, column in (("sensitivity", sensitivity), ("specificity", specificity)):
            own = getattr(self, word)
            if (own is None) == (column is None):
                problem = "is not given" if own is None else "is given twice"
                remedy = f"use Misreported({word}=…), or give a {word} for each row"
                raise check.DataError(word, None, None, problem, remedy)
            found.append(check.probability(word, column if own is None else own))
        refuse_useless(*found)
        return found[0], found[1]

    def checked(
        self, successes: Any, trials: Any, sensitivity: Any = None, specificity: Any = None
    ) -> dict[str, Array]:
        k, m = Binomial()._counts(successes, trials)
        se, sp = self._errors(sensitivity, specificity)
        check.same_length(successes=successes, sensitivity=sensitivity, specificity=specificity)
        return {"k": k, "m": m, "sensitivity": se, "specificity": sp}

    def statistic(
        self, successes: Any, trials: Any, sensitivity: Any = None, specificity: Any = None
    ) -> Share:
        """The true rate as reports without noise would have it, and the trials."""
        y = self.checked(successes, trials, sensitivity, specificity)
        xp, (k, m, se, sp) = floats(*y.values())
        n = k + m
        rate = (k / xp.where(n > 0, n, 1.0) - (1 - sp)) / (se + sp - 1)
        return Share(n * xp.clip(rate, 0.0, 1.0), n)

    def form(self) -> Misreported:
        return Misreported()

    def log_most(self, y: dict[str, Array]) -> Array:
        """At the rate of reports that was seen, which makes them likeliest."""
        n = y["k"] + y["m"]
        return binomial_log_pmf(y["k"], y["m"], y["k"] / jnp.where(n > 0, n, 1.0))

    def log_mass(self, theta: Array, rest: Array, y: dict[str, Array]) -> Array:
        p, q = reported(theta, rest, y["sensitivity"], y["specificity"])
        k, m = y["k"], y["m"]
        excess = k * q - m * p
        return _log_share(k, excess, (k + m) * p) + _log_share(m, -excess, (k + m) * q)

    def predictive(
        self, natural: Any, trials: Any, sensitivity: Any = None, specificity: Any = None
    ) -> Tabulated:
        """Of the reports among further trials."""
        n, (se, sp) = whole_trials(trials), self._errors(sensitivity, specificity)
        check.fits("trials", n, natural.shape)
        shape = np.broadcast_shapes(natural.shape, np.shape(n), np.shape(se), np.shape(sp))
        n, se, sp = (np.broadcast_to(np.asarray(v, float), shape).reshape(-1) for v in (n, se, sp))
        factorial = scipy.special.gammaln(np.arange(n.max(initial=0) + 1) + 1)

        def masses(theta: np.ndarray, rest: np.ndarray, at: np.ndarray, size: int) -> np.ndarray:
            p, q = reported(theta, rest, se[at][:, None], sp[at][:, None])
            # A share that is zero to the last digit: its logarithm has to be a number still.
            log_p, log_q = (np.log(np.maximum(part, 1e-300))[..., None] for part in (p, q))
            k, top = np.arange(size), n[at].astype(int)[:, None, None]
            left = np.maximum(top - k, 0)
            logs = k * log_p + left * log_q + (factorial[top] - factorial[k] - factorial[left])
            return np.where(k <= top, np.exp(logs), 0.0)

        return tabulated(self.on_nodes(natural.spread(shape)), n.reshape(shape), masses)

    def likelihood(
        self, theta: Any, trials: Any, sensitivity: Any = None, specificity: Any = None
    ) -> KnownCount:
        """Of the reports when the true rate is known."""
        se, sp = self._errors(sensitivity, specificity)
        rate = check.probability("theta", theta)
        return Binomial().likelihood(reported(rate, 1 - rate, se, sp)[0], trials)


def reported(theta: Any, rest: Any, sensitivity: Any, specificity: Any) -> tuple[Array, Array]:
    """The rate of reports, and that of none: sums, so that neither loses digits."""
    yes = sensitivity * theta + (1 - specificity) * rest
    return yes, (1 - sensitivity) * theta + specificity * rest


def refuse_useless(sensitivity: Any, specificity: Any) -> None:
    """Reports must be likelier of those who have it than of those who have not."""
    if not check.is_traced(sensitivity, specificity):
        total = np.asarray(sensitivity) + np.asarray(specificity)
        problem = "is the sum of sensitivity and specificity, not above 1"
        remedy = "such reports say nothing of the rate, or the opposite: correct them, or swap"
        check.refuse("sensitivity", total, total <= 1, problem, remedy)


def _log_share(k: Array, excess: Array, expected: Array) -> Array:
    """k log(E/k), E being k less an excess that is known more accurately than E."""
    some = jnp.where(k > 0, k, 1.0)
    off = excess / some
    near = off < 0.5
    log = jnp.where(near, jnp.log1p(-jnp.where(near, off, 0.0)), jnp.log(expected / some))
    return jnp.where(k > 0, k * log, 0.0)
