"""The one trainer: many fits in one compiled program.

Fits (folds × restarts × hyperparameters) differ in their weights, their settings and in which rows
they learn from, and share everything else. So all of them take each batch of rows together: a row
counts in each fit by its `training` weight, which is zero where it is held out. Its features are
seen by each fit in its own `view`: as they were preprocessed on that fit's training rows.

    score_f = Σ_i w_fi ℓ(log p(y_i | T_x(x_i; φ_f))) / Σ_i w_fi  −  penalty_f · |φ_f|²

or what else the `step` makes of a row.
A batch estimates the sum; it is scaled by the number of rows, not by the batch's own weight, which
would bias it. After each epoch every fit is scored on the rows it watches (and does not learn
from) by their mean log-predictive, whatever the objective (of several sources, by the mean over the
subsets that teach); a fit that has not improved for `patience` epochs stops, and its best weights
are kept.

Only so many fits are in the program at once: as some stop, others take their places, so that none
waits idle for the slowest. Fits are dealt to two lanes, each a thread that runs the one compiled
program on its own core; how many lanes there are belongs to the schedule, not to the machine, so
that results do not depend on where they were made.

Epochs run in chunks. After each the caller sees the state, a plain pytree: to show progress, or to
save it. A run that is given a state goes on from there to the same end, bit for bit: who is in the
program and how rows are shuffled depend on the seed and on the state alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Event, Lock
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ldf.mappings import Weights, scramble, squared
from ldf.model import Ground, Model
from ldf.objective import Objective, maximum_likelihood
from ldf.special import Array
from ldf.step import Gradient, Held


class Rows(NamedTuple):
    """What all fits share, and what each makes of it. F fits, M rows, P features, V views."""

    x: Array  # V × M × P
    view: Array  # F: which of these a fit sees
    y: dict[str, Array]  # primary columns, M each
    training: Array  # F × M: how much a row counts in learning; zero where it is held out
    watched: Array  # F × M: how much it counts in deciding when to stop
    reference: Array  # M or F × M: log p_0, for objectives that compare; zero otherwise


class Settings(NamedTuple):
    """One number a fit, all traced: changing them compiles nothing."""

    learning_rate: Array
    penalty: Array
    dropout: Array
    width: Array


class Schedule(NamedTuple):
    """The same for all fits; a part of the compiled program."""

    epochs: int = 2000  # at most
    patience: int = 100
    batch: int = 256
    chunk: int = 20  # epochs between looks
    places: int = 8  # fits in the program at once, in each lane
    lanes: int = 2


PAPER = Schedule()  # Section 5.2
GRADIENT = Gradient()


class State(NamedTuple):
    """Where training is: all that is needed to go on."""

    weights: Weights
    moments: Any  # Adam's
    best: Weights
    best_score: Array  # of the watched rows; −∞ before the first epoch
    best_epoch: Array
    epoch: Array  # that each fit has learned for
    stopped: Array
    failed: Array  # a score was not a number


class Fitted(NamedTuple):
    """The best weights of each fit, and how it went."""

    weights: Weights
    score: np.ndarray  # mean log-predictive of the watched rows
    epochs: np.ndarray  # until the best
    steps: int  # optimiser steps that fits took before they stopped
    failed: np.ndarray
    state: State

    def status(self) -> str:
        """What happened, in a sentence."""
        fits, lost = len(self.score), int(self.failed.sum())
        parts = [f"{fits} fits, best after {int(np.median(self.epochs))} epochs (median)"]
        cut = int((self.epochs == np.asarray(self.state.epoch)).sum()) - lost
        if cut > 0:
            parts.append(f"the epochs ran out while {cut} still gained: allow more of them")
        if lost:
            parts.append(f"{lost} failed with a number that is not one: lower the learning rate")
        return "; ".join(parts) + "."


def start(model: Model, seed: int, inputs: int, width: Array, rows: Rows | None = None) -> State:
    """Random weights for each fit, nothing learned; ready for the rows that it learns from."""

    def first(number: int, wide: int) -> Weights:
        rng = np.random.default_rng([seed, 0, number])
        weights = model.init(rng, inputs, wide)
        if rows is None:
            return weights
        x, counts = rows.x[rows.view[number]], rows.training[number] > 0
        return model.prepared(weights, np.asarray(x[counts]), rng)

    drawn = [first(number, wide) for number, wide in enumerate(np.asarray(width).tolist())]
    weights = jax.tree.map(lambda *leaves: np.stack(leaves).astype(np.float32), *drawn)
    fits = len(drawn)
    none, no = np.zeros(fits, np.int32), np.zeros(fits, bool)
    moments = optax.ScaleByAdamState(none, *(jax.tree.map(np.zeros_like, weights),) * 2)
    worst = np.full(fits, -np.inf, np.float32)
    return State(weights, moments, weights, worst, none, none, no, no)


def onward(state: State, stopped: np.ndarray) -> State:
    """The same weights on the way, at the beginning of another run: some fits stay as they are."""
    none, no = np.zeros_like(state.epoch), np.zeros_like(state.failed)
    worst = np.full_like(state.best_score, -np.inf)
    return State(state.weights, state.moments, state.weights, worst, none, none, stopped, no)


def fit(
    model: Model,
    rows: Rows,
    ground: Ground,
    settings: Settings,
    seed: int,
    schedule: Schedule = PAPER,
    objective: Objective = maximum_likelihood,
    step: Gradient = GRADIENT,
    resume: State | None = None,
    watch: Callable[[State], None] | None = None,
) -> Fitted:
    """Learn φ of all fits at once (Algorithm 1, line 1). The ground has a leading axis of fits."""
    # Sorting, drawing and shuffling are done on the host: there they compile nothing.
    rows, ground, settings = jax.tree.map(np.asarray, (rows, ground, settings))
    fits, inputs = rows.training.shape[0], rows.x.shape[-1]
    state = resume or start(model, seed, inputs, settings.width, rows)
    whole: State = jax.tree.map(np.array, state)
    watching = _watching(rows.watched)
    rows = _padded(rows, schedule.batch)
    batches = rows.x.shape[1] // schedule.batch
    dropping = bool((settings.dropout > 0).any()) or model.leaves_out
    lanes = _lanes(fits, schedule.lanes)
    run: Any = partial(_chunk, model, objective, step, schedule, dropping)
    compiling, writing, interrupted = Lock(), Lock(), Event()

    @contextmanager
    def stopping() -> Iterator[None]:
        """Whatever goes wrong, Ctrl-C among it: no lane goes on for more than a chunk."""
        try:
            yield
        except BaseException:
            interrupted.set()
            raise

    @stopping()
    def lane(number: int) -> None:
        mine, real = lanes[number]
        part: State = _some(whole, mine)
        part.stopped[real:] = True
        first = compiling  # the lane that comes first compiles for all; the others wait
        while not (part.stopped.all() or interrupted.is_set()):
            at = _seated(part.stopped, schedule.places)
            fits = mine[at]
            seated = (_own(rows, fits), watching[fits], *_some((ground, settings), fits), fits)
            done = int(part.epoch[:real].sum())
            draws = _draws(np.random.default_rng([seed, 1 + number, done]), batches, schedule)
            with first:
                after = run(*seated, draws, _some(part, at))
            first = nullcontext()
            _put(part, at, after)
            with writing:
                _put(whole, mine[:real], _some(part, slice(real)))
                if watch is not None:
                    watch(jax.tree.map(np.array, whole))

    with ThreadPoolExecutor(len(lanes)) as pool, stopping():
        list(pool.map(lane, range(len(lanes))))
    return Fitted(
        weights=whole.best,
        score=whole.best_score,
        epochs=whole.best_epoch,
        steps=int(whole.epoch.sum()) * batches,
        failed=whole.failed,
        state=whole,
    )


def _lanes(fits: int, lanes: int) -> list[tuple[np.ndarray, int]]:
    """The fits of each lane, as many for all (the last repeated), and how many are real."""
    most = -(-fits // lanes)
    dealt = [np.arange(i, fits, lanes) for i in range(min(lanes, fits))]
    return [(np.pad(mine, (0, most - len(mine)), mode="edge"), len(mine)) for mine in dealt]


def _some(tree: Any, fits: np.ndarray | slice) -> Any:
    return jax.tree.map(lambda leaf: leaf[fits], tree)


def _put(tree: Any, fits: np.ndarray, some: Any) -> None:
    for leaf, own in zip(jax.tree.leaves(tree), jax.tree.leaves(some), strict=True):
        leaf[fits] = own


def _own(rows: Rows, fits: np.ndarray) -> Rows:
    """The rows as these fits see them: features are now fits × M × P."""
    reference = np.broadcast_to(rows.reference, rows.training.shape)
    return Rows(
        rows.x[rows.view[fits]],
        fits,
        rows.y,
        *_some((rows.training, rows.watched, reference), fits),
    )


def _seated(stopped: np.ndarray, places: int) -> np.ndarray:
    """Who is in the program next: the first that have not stopped. One who has may keep a place
    that nobody needs."""
    order = np.argsort(stopped, kind="stable")
    return order[: min(places, len(order))]


def _watching(watched: np.ndarray) -> np.ndarray:
    """The rows each fit watches, as many for all: only these are looked at after an epoch."""
    most = int((watched > 0).sum(1).max(initial=1))
    return np.argsort(watched <= 0, axis=1, kind="stable")[:, :most]


def _draws(rng: np.random.Generator, batches: int, schedule: Schedule) -> tuple[Array, Array]:
    """For each epoch of a chunk the rows of each batch, and a number to drop units by."""
    size = batches * schedule.batch
    order = np.tile(np.arange(size, dtype=np.int32), (schedule.chunk, 1))
    order = rng.permuted(order, axis=1).reshape(schedule.chunk, batches, schedule.batch)
    return order, rng.integers(2**32, size=(schedule.chunk, batches), dtype=np.uint32)


def _padded(rows: Rows, batch: int) -> Rows:
    """Rows that count nowhere, so that every batch is full."""
    more = -rows.x.shape[1] % batch
    if more == 0:
        return rows

    def pad(value: Array, axis: int) -> np.ndarray:
        widths = [(0, 0)] * value.ndim
        widths[axis] = (0, more)
        return np.pad(value, widths)

    # Repeats of the first row rather than zeros: a row of zeros may be no valid primary data.
    first = {name: np.repeat(value[:1], more, axis=0) for name, value in rows.y.items()}
    return Rows(
        pad(rows.x, 1),
        rows.view,
        {name: np.concatenate([value, first[name]]) for name, value in rows.y.items()},
        pad(rows.training, 1),
        pad(rows.watched, 1),
        pad(rows.reference, -1),
    )


@eqx.filter_jit
def _chunk(
    model: Model,
    objective: Objective,
    climb: Gradient,
    schedule: Schedule,
    dropping: bool,
    rows: Rows,
    seen: Array,
    ground: Ground,
    settings: Settings,
    names: Array,
    draws: tuple[Array, Array],
    state: State,
) -> State:
    """Some epochs of the fits that are in the program."""
    batches = rows.x.shape[1] // schedule.batch
    counted = rows.training.sum(1)
    adam = optax.scale_by_adam()

    def hold(weights: Weights) -> Held:
        def one(weights: Weights, ground: Ground, x: Array, weight: Array) -> Held:
            return climb.hold(model, weights, ground, x, rows.y, weight)

        return jax.vmap(one)(weights, ground, rows.x, rows.training)

    def score(weights: Weights, at: Any, held: Held, setting: Settings, noise: Array) -> Array:
        ground, x, y, weight, total, log_reference = at
        dropped = (setting.dropout, noise) if dropping else ()
        worth = climb.gain(model, objective, weights, ground, x, y, log_reference, held, *dropped)
        # Rows that do not count must not reach the sum, not even as 0 · ∞.
        gain = jnp.where(weight > 0, weight * worth, 0.0)
        return gain.sum() * (batches / total) - setting.penalty * squared(weights)

    def step(carry: tuple[Any, ...], batch: tuple[Array, Array]) -> tuple[Any, None]:
        weights, moments, live, held = carry
        index, noise = batch
        y = {name: value[index] for name, value in rows.y.items()}
        own = (rows.x[:, index], rows.training[:, index], rows.reference[:, index])
        part = Held(jax.tree.map(lambda leaf: leaf[:, index], held.rows), held.whole)

        def one(
            w: Weights, m: Any, g: Ground, mine: Any, h: Held, total: Array, s: Settings, k: Any
        ) -> Any:
            x, weight, log_reference = mine
            slope = jax.grad(score)(w, (g, x, y, weight, total, log_reference), h, s, k)
            direction, after = adam.update(slope, m)
            moved = jax.tree.map(lambda v, d: v + s.learning_rate * d, w, direction)
            return moved, after

        # By its name, not its place: who else is in the program changes nothing.
        noises = scramble(noise ^ scramble(names))
        moved, after = jax.vmap(one)(weights, moments, ground, own, part, counted, settings, noises)
        return (_choose(live, moved, weights), _choose(live, after, moments), live, held), None

    def epoch(state: State, drawn: tuple[Array, Array]) -> tuple[State, None]:
        held = first if climb.lasts == "chunk" else hold(state.weights)
        carry = (state.weights, state.moments, ~state.stopped, held)
        (weights, moments, live, _), _ = jax.lax.scan(step, carry, drawn)
        settled = jax.vmap(climb.settle)(weights, held, rows.training)
        weights = _choose(live, settled, weights)
        return judged(state, weights, moments), None

    def watched_score(
        weights: Weights, ground: Ground, x: Array, index: Array, watched: Array
    ) -> Array:
        y = {name: value[index] for name, value in rows.y.items()}
        worth, weight = model.learned_well(weights, ground, x[index], y), watched[index]
        return jnp.where(weight > 0, weight * worth, 0.0).sum() / weight.sum()

    def judged(state: State, weights: Weights, moments: Any) -> State:
        found = jax.vmap(watched_score)(weights, ground, rows.x, seen, rows.watched)
        live = ~state.stopped
        broken = live & ~jnp.isfinite(found)
        better = live & (found > state.best_score)
        number = state.epoch + live
        best_epoch = jnp.where(better, number, state.best_epoch)
        over = (number - best_epoch >= schedule.patience) | (number >= schedule.epochs)
        return State(
            weights,
            moments,
            _choose(better, weights, state.best),
            jnp.where(better, found, state.best_score),
            best_epoch,
            number,
            state.stopped | broken | over,
            state.failed | broken,
        )

    first = hold(state.weights)
    return jax.lax.scan(epoch, state, draws)[0]


def _choose(which: Array, one: Any, other: Any) -> Any:
    """`one` for the fits of which it is true, leaf by leaf."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(which.reshape(which.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, one, other)
