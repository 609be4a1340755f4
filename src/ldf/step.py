"""What a step of the trainer climbs.

A step says what each row of a batch is worth, to be differentiated. Some hold a quantity of all
rows fixed for a while, such as the responsibilities of EM: `hold` computes it, `gain` uses it, and
`settle` afterwards sets what it decides without a gradient.

`Gradient` is for any model: ℓ(log p). The others learn mixtures by their likelihood. Their `gain`
has the same gradient as the marginal where it was held, and bounds it from below elsewhere:

    EM            Σ_k ρ_ik log β_k p_k(y_i)                         log Σ_k β_k p_k(y_i)
    Monte-Carlo   Σ_s ω_s Σ_i log Σ_k β_k^(s) p_k(y_i)     log Σ_s Π_i Σ_k β_k^(s) p_k(y_i)

The marginal of one row over β ~ Dir(α) is Σ_k (α_k / Σα) p_k exactly and can learn no weights; only
the joint marginal of all rows does, which is what draws are for (Section 3.1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings import Weights
from ldf.mixed import Mixture
from ldf.model import Ground
from ldf.objective import Objective, maximum_likelihood
from ldf.special import Array, namespace
from ldf.structure import joint_marginal


class Held(NamedTuple):
    """What a step holds fixed."""

    rows: Any = None  # one value a row
    whole: Any = None  # one for all


class Gradient(eqx.Module):
    """The objective itself; nothing is held."""

    @property
    def lasts(self) -> str:
        """For how long something is held: "epoch" or "chunk"."""
        return "epoch"

    def hold(
        self, model: Any, weights: Weights, ground: Ground, x: Array, y: Any, weight: Array
    ) -> Held:
        return Held()

    def gain(
        self,
        model: Any,
        objective: Objective,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: Any,
        log_reference: Array,
        held: Held,
        *dropped: Any,
    ) -> Array:
        """What each row is worth."""
        lessons = [
            (objective(told, log_reference), jnp.asarray(of))
            for told, of in model.lessons(weights, ground, x, y, *dropped)
        ]
        return sum(jnp.where(of > 0, of * worth, 0.0) for worth, of in lessons)

    def settle(self, weights: Weights, held: Held, weight: Array) -> Weights:
        return weights


class EM(Gradient):
    """Appendix B: responsibilities held, mixture weights in closed form."""

    concentration: float
    gate: bool
    full: bool

    @property
    def lasts(self) -> str:
        return "chunk" if self.full else "epoch"

    def hold(
        self, model: Any, weights: Weights, ground: Ground, x: Array, y: Any, weight: Array
    ) -> Held:
        joint = model.log_joint(weights, ground, x, y)
        return Held(jax.nn.softmax(joint, 0).T)  # rows × K

    def gain(
        self,
        model: Any,
        objective: Objective,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: Any,
        log_reference: Array,
        held: Held,
        *dropped: Any,
    ) -> Array:
        each = model.log_each(weights, ground, x, y, *dropped)
        if self.gate:
            each = each + model.log_shares(weights, x)
        return _expected(held.rows.T, each)

    def settle(self, weights: Weights, held: Held, weight: Array) -> Weights:
        if self.gate:
            return weights
        own = jnp.where(weight[:, None] > 0, weight[:, None] * held.rows, 0.0)
        return _with_shares(weights, mixture_weights(own.sum(0), self.concentration))


class MonteCarlo(Gradient):
    """Section 6: the joint marginal over draws of β, which every step uses again."""

    concentration: float
    number: int
    draws: int

    def betas(self) -> Array:
        """The draws: S × K."""
        rng = np.random.default_rng(0)
        beta = rng.dirichlet(np.full(self.number, self.concentration), self.draws)
        return jnp.log(np.maximum(beta, 1e-30).astype(np.float32))

    def hold(
        self, model: Any, weights: Weights, ground: Ground, x: Array, y: Any, weight: Array
    ) -> Held:
        each = model.log_each(weights, ground, x, y)
        log_p = jnp.where(weight > 0, weight * marginals(self.betas(), each), 0.0)
        return Held(whole=joint_marginal(log_p).weights)  # ω

    def gain(
        self,
        model: Any,
        objective: Objective,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: Any,
        log_reference: Array,
        held: Held,
        *dropped: Any,
    ) -> Array:
        each = model.log_each(weights, ground, x, y, *dropped)
        return _expected(held.whole[:, None], marginals(self.betas(), each))

    def settle(self, weights: Weights, held: Held, weight: Array) -> Weights:
        """The posterior mean of β, which is all that a prediction needs."""
        return _with_shares(weights, held.whole @ jnp.exp(self.betas()))


def step_of(mixture: Mixture | None, objective: Objective) -> Gradient:
    """How a mixture is learned; without one, by the gradient."""
    if mixture is None or mixture.learn == "marginal" or mixture.number == 1:
        return Gradient()
    if objective is not maximum_likelihood:
        remedy = 'use learn="marginal" for other objectives'
        raise check.DataError(
            "learn", None, mixture.learn, "bounds only the log-likelihood", remedy
        )
    if mixture.learn == "monte-carlo":
        return MonteCarlo(mixture.concentration, mixture.number, mixture.draws)
    return EM(mixture.concentration, mixture.gate, mixture.learn == "full em")


def mixture_weights(counts: Array, concentration: float) -> Array:
    """β of highest posterior density when so many units are in each component; a component keeps
    at least a thousandth of a unit, so that it can come back."""
    xp = namespace(counts)
    size = xp.maximum(counts + concentration - 1, 1e-3)
    return size / size.sum()


def marginals(log_beta: Array, each: Array) -> Array:
    """log Σ_k β_k^(s) p_k(y_i): S × rows."""
    top = jax.lax.stop_gradient(each.max(0))
    return top + jnp.log(jnp.exp(log_beta) @ jnp.exp(each - top))


def _expected(share: Array, values: Array) -> Array:
    """The mean of values by their shares (first axis); what has none may be infinite."""
    return jnp.where(share > 0, share * values, 0.0).sum(0)


def _with_shares(weights: Weights, share: Array) -> Weights:
    return weights | {"gate": {"bias": jnp.log(share)}}
