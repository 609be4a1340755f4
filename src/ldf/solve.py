"""One fit to the last digit: for mappings with few weights, such as regressions.

The trainer takes many noisy steps on many fits; a regression has one best answer and deserves it.
All rows at once, in float64, by Newton's method where the mapping is linear in its weights and the
likelihood is climbed (second derivatives are then cheap, and columns that tell the same do not slow
it down), by a quasi-Newton method otherwise:

    score = Σ_i w_i ℓ(log p(y_i | T_x(x_i; φ))) / Σ_i w_i  −  penalty · |φ|²
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from scipy.special import log_softmax, logsumexp, softmax

from ldf.curvature import Curvature
from ldf.mappings import Weights, count_weights, split, squared
from ldf.mixed import MixedModel
from ldf.model import Ground, Model
from ldf.objective import Objective, maximum_likelihood
from ldf.special import Array
from ldf.step import mixture_weights

WORK = 1e10  # multiplications that second derivatives may take
FLAT = 1e-12  # of the greatest curvature


class Solved(NamedTuple):
    """The best weights, in float64."""

    weights: Weights
    score: float
    converged: bool


def _weights(flat: Array, like: Weights) -> Weights:
    """What is learned, from a flat array, beside what is fixed."""
    learned, fixed = split(like)
    return eqx.combine(ravel_pytree(learned)[1](flat), fixed)


def _lost(
    model: Model, flat: Array, like: Weights, ground: Ground, x: Any, y: Any, w: Any, penalty: Any,
    objective: Objective, reference: Any,
) -> Array:  # fmt: skip
    """What is minimised."""
    weights = _weights(flat, like)
    each = (  # by a row, of several sources one a subset of them
        jnp.where(w * of > 0, w * of * objective(told, reference), 0.0).sum()
        for told, of in model.lessons(weights, ground, x, y)
    )
    return penalty * _held_back(model, weights) - sum(each) / w.sum()


def _held_back(model: Model, weights: Weights) -> Array:
    """What the penalty multiplies. Of a sum the rates' levels too: what one source says more,
    another may say less, and nothing else would decide between them."""
    if type(model) is Model or model.mapping.formulation == "counts":
        return squared(weights)
    levels = (leaf[1:] for leaf in jax.tree.leaves(split(weights)[0]) if leaf.ndim == 1)
    return squared(weights) + sum((leaf**2).sum() for leaf in levels)


@eqx.filter_jit
def _score(model: Model, flat: Array, *held: Any) -> tuple[Array, Array]:
    return jax.value_and_grad(lambda at: _lost(model, at, *held))(flat)


@eqx.filter_jit
def _turn(model: Model, flat: Array, along: Array, *held: Any) -> Array:
    """How the slope turns along a direction."""
    return jax.jvp(jax.grad(lambda at: _lost(model, at, *held)), (flat,), (along,))[1]


@eqx.filter_jit
def _bend(
    model: Model, flat: Array, like: Weights, ground: Ground, x: Any, y: Any, w: Any, penalty: Any
) -> Array:
    """Second derivatives of what is minimised, where the mapping is linear in its weights: those by
    its lines, row by row, between all that a line is a sum of."""

    mapping: Any = model.mapping

    def total(lines: Array) -> Array:
        pseudo = model.from_outputs(jax.vmap(mapping.from_lines)(lines), ground)
        log_predictive = model.log_predictive_given(pseudo, ground, y)
        return jnp.where(w > 0, w * log_predictive, 0.0).sum() / w.sum()

    weights = _weights(flat, like)
    lines = jax.vmap(lambda row: mapping.lines(weights, row))(x)
    of = jax.vmap(lambda row: mapping.design(weights, row))(x)  # rows × parts
    met = model.meets
    each = Curvature.at(lines, jax.grad(total), met)
    bent = jnp.zeros((of.shape[1], len(met), of.shape[1], len(met)))
    for one, other in np.argwhere(np.triu(met)):
        both = (of * each.of(one, other)[:, None]).T @ of
        bent = bent.at[:, one, :, other].set(both).at[:, other, :, one].set(both)
    learned = mapping.learned(x.shape[1], len(met)).ravel()
    bent = bent.reshape(len(learned), len(learned))[np.ix_(learned, learned)]
    held = ravel_pytree(jax.grad(squared)(jax.tree.map(jnp.ones_like, split(like)[0])))[0]
    return jnp.diag(penalty * held) - bent


def solve(
    model: Model,
    ground: Ground,
    x: np.ndarray,
    y: dict[str, np.ndarray],
    weight: np.ndarray | None = None,
    penalty: float = 0.0,
    start: Weights | None = None,
    seed: int = 0,
    objective: Objective = maximum_likelihood,
    reference: np.ndarray | float = 0.0,
) -> Solved:
    """Maximise what the rows are worth, by default their log-likelihood, less the penalty."""
    weight = np.ones(len(x)) if weight is None else weight
    if start is None:
        rng = np.random.default_rng(seed)
        start = model.prepared(model.init(rng, x.shape[1]), x[weight > 0], rng)
    x, y = _only(weight > 0, x), {name: _only(weight > 0, values) for name, values in y.items()}
    reference = _only(weight > 0, np.broadcast_to(reference, len(x)))
    with jax.enable_x64(True):
        start = jax.tree.map(_double, start)
        held = jax.tree.map(_double, (ground, x, y, weight, penalty))
        few = type(model) is Model and model.mapping.way == "newton" and _is_cheap(x, start)
        few = few and objective is maximum_likelihood
        of = (start, *held, objective, _double(reference))
        return _climbed(
            lambda at: _score(model, at, *of),
            start,
            (lambda at: _bend(model, at, start, *held)) if few else None,
            None if type(model) is Model else lambda at, along: _turn(model, at, along, *of),
        )


def _is_cheap(x: np.ndarray, weights: Weights) -> bool:
    """Whether second derivatives are."""
    return len(x) * count_weights(weights) ** 2 < WORK


def _climbed(
    score: Callable[[Any], tuple[Array, Array]],
    start: Weights,
    bend: Callable[[Any], Array] | None = None,
    turn: Callable[[Any, Any], Array] | None = None,
) -> Solved:
    """From here to the top, given what to minimise and its slope at flat weights; and, if they are
    cheap, its second derivatives, or else how its slope turns along a direction. Either keeps steps
    short where it is not round: a quasi-Newton step may take a source's count to nothing, where it
    is flat."""
    flat = ravel_pytree(split(start)[0])[0]
    best = (np.inf, np.asarray(flat), np.full(flat.shape, np.inf))

    def function(at: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        value, slope = score(jnp.asarray(at, jnp.float64))
        value, slope = float(value), np.asarray(slope)
        if np.isfinite(value) and np.isfinite(slope).all():
            best = min(best, (value, at.copy(), slope), key=lambda known: known[0])
            return value, slope
        # Too far out to be a number: worse than what is known, so that the line search comes
        # back. Infinity it would take for an answer.
        return best[0] + max(1.0, abs(best[0])), np.zeros_like(slope)

    def bent(at: np.ndarray) -> np.ndarray:
        found = np.asarray(bend(jnp.asarray(at, jnp.float64))) if bend is not None else np.eye(0)
        if not np.isfinite(found).all():
            return np.eye(len(at))
        # A direction that changes nothing (the count of a certain model) is not walked along.
        return found + FLAT * np.abs(np.diag(found)).max(initial=0.0) * np.eye(len(at))

    if bend is not None:
        options: dict[str, Any] = {"maxiter": 200, "gtol": 1e-9}
        scipy.optimize.minimize(
            function, np.asarray(flat), jac=True, hess=bent, method="trust-exact", options=options
        )
    elif turn is not None:
        options = {"maxiter": 200, "gtol": 1e-7}
        scipy.optimize.minimize(
            function, np.asarray(flat), jac=True, method="trust-ncg", options=options,
            hessp=lambda at, along: np.asarray(turn(jnp.asarray(at), jnp.asarray(along))),
        )  # fmt: skip
    if not np.abs(best[2]).max(initial=0.0) < 1e-6:
        options = {"maxiter": 2000, "maxfun": 4000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
        scipy.optimize.minimize(function, best[1], jac=True, method="L-BFGS-B", options=options)
    value, at, slope = best
    flat_enough = np.abs(slope).max(initial=0.0) < 1e-4 * max(1.0, abs(value))
    weights = jax.tree.map(np.asarray, _weights(jnp.asarray(at, jnp.float64), start))
    return Solved(weights, -value, bool(flat_enough))


class Mixed(NamedTuple):
    """A mixture's best weights, and the penalised marginal likelihood after each round of EM."""

    weights: Weights
    scores: list[float]
    converged: bool


def solve_mixture(
    model: MixedModel,
    ground: Ground,
    x: np.ndarray,
    y: dict[str, np.ndarray],
    weight: np.ndarray | None = None,
    penalty: float = 0.0,
    seed: int = 0,
    start: Weights | None = None,
    rounds: int = 500,
    tolerance: float = 1e-7,
) -> Mixed:
    """EM as in Appendix B, each M-step to its end. Without a start, rows are first shared out among
    components by random directions of their features."""
    weight = np.ones(len(x)) if weight is None else weight
    x, y = _only(weight > 0, x), {name: _only(weight > 0, values) for name, values in y.items()}
    rng = np.random.default_rng(seed)
    weights = start
    if start is None:
        weights = model.prepared(model.init(rng, x.shape[1]), x[weight > 0], rng)
    shares = None
    if start is None:
        at = x @ rng.standard_normal((x.shape[1], model.number)) * 3 / np.sqrt(max(x.shape[1], 1))
        shares = softmax(at + rng.standard_normal(at.shape) * 0.1, 1)
    scores: list[float] = []
    for _ in range(rounds):
        if shares is None:
            score, shares = _shared(model, weights, ground, x, y, weight, penalty)
            scores.append(score)
            if len(scores) > 1 and scores[-1] - scores[-2] < tolerance * max(1.0, abs(score)):
                return Mixed(weights, scores, True)
        weights, shares = _stepped(model, weights, ground, x, y, weight, penalty, shares), None
    return Mixed(weights, scores, False)


def _shared(
    model: MixedModel, weights: Weights, ground: Ground, x: Any, y: Any, weight: Any, penalty: float
) -> tuple[float, np.ndarray]:
    """The E-step: the score of the weights, and the responsibilities, rows × K."""
    with jax.enable_x64(True):
        held = jax.tree.map(_double, (weights, ground, x, y))
        joint = np.asarray(_log_joint(model, *held))
    log_predictive = np.asarray(logsumexp(joint, 0))
    total = weight @ log_predictive
    if not model.mixture.gate:  # of β ~ Dir(α), up to a constant
        total += (model.mixture.concentration - 1) * log_softmax(weights["gate"]["bias"]).sum()
    score = total / weight.sum() - penalty * float(squared(weights))
    return float(score), np.exp(joint - log_predictive).T


def _stepped(
    model: MixedModel, weights: Weights, ground: Ground, x: Any, y: Any, weight: Any,
    penalty: float, shares: np.ndarray,
) -> Weights:  # fmt: skip
    """The M-step: each mapping by the rows it is responsible for, and the mixture weights."""
    counts, each = weight @ shares, []
    blocks = np.split(x, max(model.blocks, default=0) + 1, axis=1)
    for k, own in enumerate(weights["each"]):
        alone = Model(model.family, model.mappings[k])
        view = blocks[model.blocks[k] if model.blocks else 0]
        # `solve` divides by its own weights, the mixture by all.
        held_back = penalty * weight.sum() / max(counts[k], 1e-12)
        mine = weight * shares[:, k]
        each.append(solve(alone, ground, view, y, mine, held_back, own).weights)
    gate = {"bias": np.log(np.asarray(mixture_weights(counts, model.mixture.concentration)))}
    if model.mixture.gate:
        with jax.enable_x64(True):
            held = jax.tree.map(_double, (x, weight, shares, penalty))
            start = jax.tree.map(_double, weights["gate"])
            gate = _climbed(lambda at: _gate_score(model, at, start, *held), start).weights
    return {"each": each, "gate": gate}


@eqx.filter_jit
def _log_joint(model: MixedModel, weights: Weights, ground: Ground, x: Array, y: Any) -> Array:
    return model.log_joint(weights, ground, x, y)


@eqx.filter_jit
def _gate_score(
    model: MixedModel, flat: Array, like: Any, x: Array, weight: Array, shares: Array, penalty: Any
) -> tuple[Array, Array]:
    def score(at: Array) -> Array:
        gate = ravel_pytree(like)[1](at)
        log_shares = model.log_shares({"gate": gate}, x)
        mean = weight @ (shares.T * log_shares).sum(0) / weight.sum()
        return penalty * squared(gate) - mean

    return jax.value_and_grad(score)(flat)


def _double(value: Any) -> Any:
    return jnp.asarray(value, jnp.float64)


def _only(counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Those of a row that counts wherever one does not. A row of weight zero must not be absurd
    either: zero times a slope that is no number is none."""
    mask = counts.reshape(counts.shape + (1,) * (np.ndim(values) - 1))
    return np.where(mask, values, np.asarray(values)[int(np.argmax(counts))])
