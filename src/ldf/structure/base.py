"""γ, what ties units together: how each unit's natural parameter depends on it.

    γ ~ p(γ)        θ_i | γ, x_i ~ π(natural_i(γ, T_x))        y_i | θ_i ~ f

In the paper natural_i is λ_i(γ) + T_x(x_i). Here a structure is given T_x and says what comes of
it, so that γ may also move the rate that auxiliary data speak of. With θ summed out, γ sees the
primary data through the family's predictive at natural_i(γ, T_x).

A structure says three things: how γ is drawn from its prior, the logarithm of the same prior, and
natural. γ is any pytree of arrays in coordinates without bounds; Jacobians belong to the prior. If
p(γ | θ, x) can be drawn from, a `Conditional` says so too.

>>> import jax.numpy as jnp
>>> from ldf.statistic import Trials
>>> tilted = tilt(Trials(jnp.array(3.0), jnp.array(1.0)), jnp.log(2.0))  # odds of 3 become 6
>>> round(float(tilted.successes / tilted.failures), 4), float(tilted.n)
(6.0, 4.0)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.special import HALF_LOG_2PI, Array, namespace
from ldf.statistic import Arrivals, ClassCounts, Potential, Statistic, Trials

Gamma = Any  # a pytree of arrays


class Structure(eqx.Module):
    """How units depend on γ."""

    @abstractmethod
    def sample_prior(self, key: Array) -> Gamma:
        """γ from its prior."""

    @abstractmethod
    def log_prior(self, gamma: Gamma) -> Array:
        """log p(γ), one number."""

    @abstractmethod
    def natural(self, gamma: Gamma, pseudo: Any) -> Any:
        """The natural parameter of each unit before its primary data. `pseudo` is T_x of N units,
        without λ0; zero where there are no auxiliary data."""

    def quantities(self, gamma: Gamma) -> dict[str, Array]:
        """What γ means, in words: γ itself if the structure does not say."""
        leaves = jax.tree_util.tree_leaves_with_path(gamma)
        return {
            jax.tree_util.keystr(path, simple=True, separator=".") or "gamma": leaf
            for path, leaf in leaves
        }


class Conditional(Structure):
    """A structure whose γ can be drawn given θ."""

    @abstractmethod
    def sample_given(self, key: Array, gamma: Gamma, theta: Array, pseudo: Any) -> Gamma:
        """γ from p(γ | θ, x) ∝ p(γ) Π_i π(θ_i; natural_i(γ, T_x)), or a step that leaves it as it
        is. The partition functions in π depend on γ and T_x and are part of it."""


# --- terms on the rate --------------------------------------------------------------------------


def tilt(natural: Any, term: Array) -> Any:
    """As many pseudo-observations at another rate: `term` is added to the logit of trials, to the
    logarithms of classes' shares (on the last axis) and of a rate of arrivals, or to a mean."""
    if isinstance(natural, Trials):
        xp = namespace(term, natural.successes, natural.failures)
        # Odds times e^term, with only the smaller of the two factors taken.
        a = natural.successes * xp.exp(xp.minimum(term, 0.0))
        b = natural.failures * xp.exp(xp.minimum(-term, 0.0))
        each = natural.n / _some(xp, a + b)
        return Trials(a * each, b * each)
    if isinstance(natural, ClassCounts):
        xp = namespace(term, natural.counts)
        counts = natural.counts * xp.exp(term - term.max(-1, keepdims=True))
        return ClassCounts(counts * (natural.n / _some(xp, counts.sum(-1)))[..., None])
    if isinstance(natural, Arrivals):
        xp = namespace(term, natural.count)
        return Arrivals(natural.count * xp.exp(term), natural.exposure + 0 * term)
    if isinstance(natural, Potential):
        return Potential(natural.potential + natural.precision * term, natural.precision + 0 * term)
    kinds = "trials, class counts, arrivals or a scalar's potential"
    raise TypeError(f"{type(natural).__name__} has no rate to add a term to: give {kinds}")


def _some(xp: Any, total: Array) -> Array:
    """A total to divide by; where there is nothing, nothing is divided."""
    return xp.where(total > 0, total, 1.0)


def term_shape(prior: Statistic) -> tuple[int, ...]:
    """The axes of one unit's term: one number, or one a class."""
    tilt(prior, np.zeros(np.shape(prior.t)))  # whether there is a rate
    return np.shape(prior.t)[len(prior.shape) :]


def check_scale(scale: Any) -> float:
    check.positive("scale", scale)
    check.single("scale", scale)
    return float(scale)


def check_prior(prior: Any) -> Any:
    """λ0, one for all units, that is proper: units without auxiliary data have only it."""
    if prior.shape:
        problem = f"is of {len(prior)} units"
        raise check.DataError("prior", None, None, problem, "give one prior for all units")
    term_shape(prior)
    for value in prior.coordinates():
        check.numbers("prior", value)
    check.positive("prior", prior.n, "give a proper prior: some pseudo-observations")
    return prior


def check_units(pseudo: Any, units: int) -> None:
    """T_x of as many units as there are, or one for all."""
    if pseudo.shape not in ((), (1,), (units,)):
        found = " × ".join(map(str, pseudo.shape))
        problem = f"is of {found} units but there are {units}"
        raise check.DataError("pseudo", None, None, problem, "give T_x of each unit, in its order")


# --- hyperpriors --------------------------------------------------------------------------------


def normal(value: Array, sd: Array | float = 1.0) -> Array:
    """log N(value; 0, sd²), summed."""
    return (-0.5 * (value / sd) ** 2 - jnp.log(sd) - HALF_LOG_2PI).sum()


def half_normal(log_value: Array, sd: Array | float = 1.0) -> Array:
    """The log density of log s, summed, where s is the size of a N(0, sd²): Jacobian included."""
    return normal(jnp.exp(log_value), sd) + (jnp.log(2.0) + log_value).sum()


def sample_log_half_normal(key: Array, shape: tuple[int, ...], sd: Array | float = 1.0) -> Array:
    return jnp.log(jnp.abs(jax.random.normal(key, shape)) * sd)


# --- learning: the marginal over γ ----------------------------------------------------------------


class JointMarginal(NamedTuple):
    """log p(y | x) over draws of γ, and the share of each draw in its gradient."""

    value: Array
    weights: Array  # ω_s, one a draw; they sum to one


def joint_marginal(log_p: Array) -> JointMarginal:
    """log (1/S) Σ_s Π_i p(y_i | γ_s, x_i), from log p(y_i | γ_s, x_i): draws × units.

    The draws are from p(γ), which does not depend on φ: draw them once and use them again in every
    step (Eq. 38, of all units together). The gradient is Σ_s ω_s Σ_i ∇ log p(y_i | γ_s, x_i) with
    ω_s ∝ Π_i p(y_i | γ_s, x_i): hold the weights of the last pass over all units, and the inner sum
    can be had from a batch of them.
    """
    xp = namespace(log_p)
    total = log_p.sum(-1)
    top = total.max()
    each = xp.exp(total - top)
    return JointMarginal(top + xp.log(each.mean()), each / each.sum())
