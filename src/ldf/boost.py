"""Boosting: trees learned one after the other, each from what those before leave unexplained.

The third way to learn φ, beside `fit` (by gradients, for networks) and `solve` (to the last digit,
for regressions). A round adds a tree to every output of the mapping, by a Newton step on

    score = Σ_i w_i ℓ(log p(y_i | T_x(x_i; φ)))

so that the rate and the count of pseudo-observations both grow by what they are worth to the
closed-form predictive. XGBoost grows the trees; slopes and curvatures are exact. Where the score
bends upwards (a count far from its best) there is no Newton step, and the curvature is taken to be
a share of the slope, which bounds the step.

Beside other sources, what these say is an `offset` of each row: p(y_i | offset_i + T_x / sources).

As everywhere, a fit stops when the rows that it watches have not been explained better for a while,
and its best state is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.curvature import Curvature
from ldf.mappings import Linear, Weights
from ldf.model import Ground, Model
from ldf.objective import Objective, maximum_likelihood
from ldf.special import Array

PATIENCE = 50  # rounds
STEEP = 0.05  # the least curvature, as a share of the slope: no step is longer than its inverse
FLAT = 1e-3  # the least curvature of all
BLOCK = 256  # rows are padded to a multiple of it, to compile rarely


class Boosted(NamedTuple):
    """The best trees, and how it went."""

    weights: Weights
    score: float  # mean log-predictive of the watched rows
    rounds: int  # until the best
    cut: bool  # whether there were no more rounds


def boost(
    model: Model,
    ground: Ground,
    x: np.ndarray,
    y: dict[str, np.ndarray],
    training: np.ndarray,
    watched: np.ndarray,
    *,
    reference: np.ndarray | None = None,
    objective: Objective = maximum_likelihood,
    learning_rate: float = 0.05,
    penalty: float = 1e-2,
    dropout: float = 0.0,
    seed: int = 0,
    begin: np.ndarray | None = None,
    offset: Any = None,
    share: float = 1.0,
) -> Boosted:
    """Learn trees from the rows that count by `training`, until those that count by `watched` gain
    nothing. A tree does without a share `dropout` of the columns. The penalty is on the squares of
    a round's leaves, a row, as a network's is on its weights. Trees begin at the outputs
    of others, if there are some. The offset is a statistic of each row, to which that of the trees
    is added, counted `share` times."""
    import xgboost  # takes a while, and only those who boost need it

    trees: Any = model.mapping
    used = (training > 0) | (watched > 0)
    weight, watch = training[used], watched[used]
    weight = weight / weight[weight > 0].mean()
    counts = weight[:, None] > 0
    nothing = np.zeros((len(weight), model.outputs))
    begin = nothing if begin is None else begin[used]
    reference = np.zeros(len(used)) if reference is None else reference
    slopes_at = _slopes(
        model, objective, ground, {name: values[used] for name, values in y.items()},
        reference[used], None if offset is None else offset[used], share,
    )  # fmt: skip
    known: list[Any] = [None, None]

    def at(outputs: np.ndarray) -> list[np.ndarray]:
        """XGBoost asks for the score of what it has learned, then for the slopes there."""
        if known[0] is None or not np.array_equal(known[0], outputs):
            known[:] = outputs, slopes_at(begin + outputs)
        return known[1]

    def steps(outputs: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        _, slope, curvature = at(outputs.reshape(nothing.shape))
        if not (np.isfinite(slope) & np.isfinite(curvature) | ~counts).all():
            remedy = "lower the learning rate, or raise the penalty"
            raise check.DataError("mapping", None, None, "gave slopes that are no numbers", remedy)
        bend = np.maximum(-curvature, STEEP * np.abs(slope) + FLAT)
        downhill, bend = (np.where(counts, v * weight[:, None], 0.0) for v in (-slope, bend))
        return downhill, bend

    def score(outputs: np.ndarray) -> float:
        log_predictive = at(outputs.reshape(nothing.shape))[0]
        return float(np.where(watch > 0, watch * log_predictive, 0.0).sum() / watch.sum())

    first = score(nothing)
    data = xgboost.QuantileDMatrix(x[used], nothing, nthread=1)
    found = xgboost.train(
        {
            "max_depth": trees.depth,
            "learning_rate": learning_rate,
            "reg_lambda": 2 * penalty * counts.sum(),
            "min_child_weight": 0,  # leaves are held back by the penalty
            "colsample_bytree": 1 - dropout,
            "base_score": 0.0,  # outputs begin at the ground
            "disable_default_eval_metric": True,
            "nthread": 1,
            "seed": seed,
        },
        data,
        trees.most,
        evals=[(data, "rows")],
        obj=steps,
        custom_metric=lambda outputs, _: ("score", score(outputs)),
        maximize=True,
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    rounds = found.best_iteration + 1 if found.best_score > first else 0
    score_of_best = max(found.best_score, first)
    return Boosted(_arrays(found, model, rounds), score_of_best, rounds, rounds == trees.most)


def _slopes(
    model: Model, objective: Objective, ground: Ground, y: Any, reference: np.ndarray,
    offset: Any = None, share: float = 1.0,
) -> Callable[[np.ndarray], list[np.ndarray]]:  # fmt: skip
    """Of each row, at given outputs: its log-predictive, and the slope and curvature of its worth
    in each output. A round asks once, so what stays the same is handed to JAX here."""
    # Of the mapping only the formulation matters: one program serves trees of any depth.
    model = Model(model.family, Linear(by=model.mapping.formulation), model.certain)
    with jax.enable_x64(True):
        offset = ground.prior.zero().spread(reference.shape) if offset is None else offset
        held = (ground, *_padded((y, reference, offset)), share)
        held = jax.tree.map(lambda v: jnp.asarray(v, jnp.float64), held)
        begin, own, compared, others, part = held

    def at(outputs: np.ndarray) -> list[np.ndarray]:
        with jax.enable_x64(True):
            padded = _padded(np.float64(outputs))
            given = (begin, own, compared, others, part, padded)
            found = _compiled_slopes(model, objective, *given)
        return [np.asarray(values)[: len(outputs)] for values in found]

    return at


@eqx.filter_jit
def _compiled_slopes(
    model: Model, objective: Objective, ground: Ground, y: Any, reference: Array, offset: Any,
    share: Array, outputs: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    def log_predictive(outputs: Array) -> Array:
        own = model.from_outputs(outputs, ground)
        pseudo = offset + jax.tree.map(lambda leaf: leaf * share, own)
        return model.log_predictive_given(pseudo, ground, y)

    # Rows are independent: the slope of their sum is the slope of each.
    slope = jax.grad(lambda at: log_predictive(at).sum())
    worth = jax.grad(lambda log_p: objective(log_p, reference).sum())

    log_p, steep = log_predictive(outputs), slope(outputs)
    bend = Curvature.at(outputs, slope, model.meets).diagonal
    first, second = jax.jvp(worth, (log_p,), (jnp.ones_like(log_p),))
    return log_p, first[:, None] * steep, first[:, None] * bend + second[:, None] * steep**2


def _padded(tree: Any) -> Any:
    """With repeats of the first row."""

    def pad(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.repeat(values[:1], -len(values) % BLOCK, 0)])

    return jax.tree.map(pad, tree)


def _arrays(found: Any, model: Model, rounds: int) -> Weights:
    """The first so many rounds, from XGBoost's own description of its trees."""
    trees: Any = model.mapping
    weights = trees.init(np.random.default_rng(0), 0, model.outputs, rounds)
    if rounds == 0:
        return weights
    told = json.loads(found[:rounds].save_raw("json"))["learner"]["gradient_booster"]["model"]
    number = [0] * model.outputs
    for output, tree in zip(told["tree_info"], told["trees"], strict=True):
        _put(weights, (number[output], output), tree, trees.depth)
        number[output] += 1
    return weights


def _put(weights: Weights, at: tuple[int, int], tree: dict[str, Any], depth: int) -> None:
    """A tree of linked nodes, as a full one."""
    left, right = tree["left_children"], tree["right_children"]
    column, value = tree["split_indices"], tree["split_conditions"]
    todo = [(0, 0, 0)]
    while todo:
        node, place, level = todo.pop()
        if left[node] < 0:  # a branch ends: what further nodes ask is answered with "below"
            lowest = (place + 1) * 2 ** (depth - level) - 1
            weights["leaf"][*at, lowest - (2**depth - 1)] = value[node]
            continue
        weights["column"][*at, place] = column[node]
        weights["threshold"][*at, place] = value[node]
        todo += [(left[node], 2 * place + 1, level + 1), (right[node], 2 * place + 2, level + 1)]
