"""Several sources of which some have trees: these and the smooth ones are learned in turn.

    turn    the smooth sources go on for some epochs, given what the trees say (`fit`)
            each source with trees has some more, given what all others say (`boost`)

What the others say is an offset: pseudo-observations add, so a source is learned on top of them by
the same closed-form predictive, whatever they are. Turns are short. How many pseudo-observations a
source should be worth hangs on how well the others explain what it does not: each learned to its
end given the others, they would come nearer to their best by ever smaller steps.

Trees are added only if they explain the watched rows better. A fit is over when these have not been
explained better for a while, and its best state is kept, as everywhere.

As in the trainer, every row teaches with each subset of its sources: it is there several times, and
its copies together weigh what the row weighs; and the watched rows decide by all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf.boost import BLOCK, PATIENCE, boost
from ldf.ensemble import Member
from ldf.fit import Schedule, State, fit, onward
from ldf.learned import Trained
from ldf.mappings import Mapping, Trees, Weights, together
from ldf.model import Copies, Ground, Model
from ldf.spec import Spec
from ldf.special import Array
from ldf.summed import SummedModel
from ldf.table import Table, somewhere
from ldf.train.job import Job, Tell, refuse_failed, roles, two_at_a_time
from ldf.train.networks import gathered
from ldf.train.recalled import answers, nothing_told, pattern, recalling, rows_told

WHILE = 5  # turns without a gain, after which a fit is over: as patient as networks and trees are
FAR = 7919  # between seeds of turns


@dataclass
class Fit:
    """A member without a part, on its way."""

    job: Job
    part: int
    seed: int
    training: np.ndarray
    watched: np.ndarray
    smooth: Weights  # one a source; nothing where there are trees
    forests: dict[int, Weights]  # by the number of their source
    told: dict[int, np.ndarray]  # what they answer
    best: Weights = None
    score: float = -np.inf  # mean log-predictive of the watched rows, at its best
    turn: int = 0  # of the best
    over: bool = False

    @property
    def model(self) -> SummedModel:
        return cast("SummedModel", self.job.model)

    def keep(self, turn: int, score: float, smooth: Weights) -> None:
        """The best so far, if it is."""
        if score > self.score:
            self.score, self.turn = score, turn
            self.best = [self.forests.get(k, own) for k, own in enumerate(smooth)]


def backfit(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    """Members of one mapping, their parts and restarts."""
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    names = product(jobs, range(parts), range(restarts))
    fits = [_begun(job, p, seed + r, roles(job, p, parts, seed)) for job, p, r in names]
    copies = {id(job): job.model.copies(job.z) for job in jobs}
    y, state = somewhere(table.y, table.seen), None
    schedule = spec.ensemble.schedule_for(int((fits[0].training > 0).sum()))
    epochs = max(1, schedule.patience // WHILE)
    alone = len(fits[0].model.sources) == 1
    turns = 1 if alone else max(1, schedule.epochs // epochs)
    schedule = schedule._replace(epochs=epochs, patience=epochs, chunk=epochs)

    def grown(turn: int, one: Fit) -> Fit:
        for number in one.forests:
            _grow(one, number, turn, spec, y, copies[id(one.job)])
        return one

    say("backfitting", 0, len(fits))
    for turn in range(1, turns + 1):
        if _smooth(fits[0].model):
            state = _climb(fits, turn, state, spec, schedule, table, seed)
        going = [one for one in fits if not one.over]
        for one in two_at_a_time(partial(grown, turn), going):
            one.keep(turn, _score(one, y), one.smooth)
            one.over = alone or turn - one.turn >= WHILE
        over = sum(one.over for one in fits)
        say("backfitting", over, len(fits))
        if over == len(fits):
            break

    trained = []
    for j, job in enumerate(jobs):
        mine = [fits[(j * parts + p) * restarts :][:restarts] for p in range(parts)]
        best = [max(some, key=lambda one: one.score) for some in mine]
        refuse_failed(np.array([one.best is None for one in best]))
        weights = _stacked(fits[0].model, [one.best for one in best])
        score = float(np.mean([one.score for one in best]))
        trained.append(Trained(job.model, job.preprocess, job.ground, weights, weights, score))
    last, cut = int(np.median([one.turn for one in fits])), sum(not one.over for one in fits)
    status = f"{len(fits)} fits by backfitting, best after {last} turns (median)"
    status += f"; the epochs ran out while {cut} went on: allow more of them." if cut else "."
    return trained, status


def _begun(job: Job, part: int, seed: int, counts: tuple[np.ndarray, np.ndarray]) -> Fit:
    """With trees that say nothing."""
    model = cast("SummedModel", job.model)
    rng = np.random.default_rng(0)
    forests = {
        number: mapping.init(rng, 0, model.outputs)
        for number, mapping in enumerate(model.each)
        if isinstance(mapping, Trees)
    }
    told = dict.fromkeys(forests, nothing_told(model, job.z))
    return Fit(job, part, seed, *counts, [{}] * len(model.sources), forests, told)


def _smooth(model: SummedModel) -> list[Mapping]:
    return [mapping for mapping in model.each if not isinstance(mapping, Trees)]


# --- what is learned by gradients ---------------------------------------------------------------


def _climb(
    fits: list[Fit],
    turn: int,
    state: State | None,
    spec: Spec,
    schedule: Schedule,
    table: Table,
    seed: int,
) -> State:
    """The smooth sources of all fits that go on, in one program, from where they are."""
    model = recalling(fits[0].model)
    jobs = [(one.job._replace(model=model, member=_of_smooth(one)), one.part)
            for one in fits]  # fmt: skip
    views = [rows_told(one.model, one.job.z, one.told) for one in fits]
    resume = None if state is None else onward(state, np.array([one.over for one in fits]))
    taken = gathered(jobs, views, list(range(len(fits))), spec, table, seed)
    found = fit(
        model, taken.rows, taken.ground, taken.settings, seed + (turn - 1) * FAR, schedule,
        spec.objective, resume=resume,
    )  # fmt: skip

    def of(weights: Weights, number: int) -> Weights:
        return jax.tree.map(lambda leaf: leaf[number], weights)

    for number, one in enumerate(fits):
        if not one.over:
            one.smooth = of(found.state.weights, number)
            one.keep(turn, float(found.score[number]), of(found.weights, number))
            one.over = bool(found.failed[number])
    return found.state


def _of_smooth(one: Fit) -> Member:
    """How smooth sources are learned: as the member is, unless its settings are of trees."""
    member = one.job.member
    if not isinstance(member.mapping, Trees):
        return member
    own = Member(_smooth(one.model)[0])
    return replace(
        member, penalty=own.least_penalty, learning_rate=own.learning_rate, dropout=0.0, width=None
    )


# --- trees --------------------------------------------------------------------------------------


def _grow(
    one: Fit, number: int, turn: int, spec: Spec, y: dict[str, np.ndarray], copies: Copies
) -> None:
    """Some more trees of a source, given what all others say. Rows that lack it do not count."""
    model, job = one.model, one.job
    mapping, z, many = cast("Trees", model.each[number]), job.z, len(model.sources)
    forest = one.forests[number]
    most = mapping.most - len(forest["leaf"])
    if many > 1:  # a source alone has no others to wait for
        most = min(most, PATIENCE // WHILE)
    some = copies.there[:, number] & (one.training + one.watched > 0)[copies.row]
    row, seen, share = (own[some] for own in copies)
    training, watched = one.training[row] * share, one.watched[row] * share
    if most < 1 or not training.any() or not watched.any():
        return
    terms = _terms(one, row, seen)
    offset = sum((term for k, term in enumerate(terms) if k != number), start=terms[number].zero())
    source, others = model.sources[number], np.delete(seen, number, 1) - 1.0
    x = [z[row, source.start : source.stop], *([others] if model.aware else [])]
    member = job.member if mapping == job.member.mapping else Member(mapping)
    found = boost(
        Model(model.family, replace(cast("Any", mapping), most=most), model.certain),
        job.ground, np.concatenate(x, 1), {name: values[row] for name, values in y.items()},
        training, watched,
        reference=job.reference[row], objective=spec.objective,
        learning_rate=member.learning_rate, penalty=member.least_penalty, dropout=member.dropout,
        seed=one.seed + (turn - 1) * FAR, begin=_outputs(one, number, row, seen),
        offset=offset, share=1 / many,
    )  # fmt: skip
    if found.rounds:
        one.forests[number] = {
            name: np.concatenate([forest[name], more]) for name, more in found.weights.items()
        }
        one.told[number] = one.told[number] + answers(model, number, found.weights, z)


def _outputs(one: Fit, number: int, row: np.ndarray, there: np.ndarray) -> np.ndarray:
    """What the forest of a source gives for rows that have these."""
    told = one.told[number][row].reshape(len(row), -1, one.model.outputs)
    others = np.delete(there, number, 1) if one.model.aware else there[:, :0]
    return told[np.arange(len(row)), pattern(others)].astype(float)


def _terms(one: Fit, row: np.ndarray, there: np.ndarray) -> list[Any]:
    """What each source says of rows that have these."""
    x = _told(one, row)
    x[:, -there.shape[1] :] = there
    found = _asked(_compiled_terms, one, x)
    return jax.tree.map(lambda leaf: leaf[: len(row)], found)


def _score(one: Fit, y: dict[str, np.ndarray]) -> float:
    """Of the watched rows, as gradients are stopped by."""
    row = np.flatnonzero(one.watched > 0)
    own = {name: _filled(values[row]) for name, values in y.items()}
    found = _asked(_compiled_score, one, _told(one, row), own)
    return float(np.average(found[: len(row)], weights=one.watched[row]))


def _told(one: Fit, row: np.ndarray) -> np.ndarray:
    """Rows for `recalling(model)`."""
    return rows_told(one.model, one.job.z[row], {k: told[row] for k, told in one.told.items()})


def _filled(leaf: np.ndarray) -> np.ndarray:
    """To whole blocks, by the first row again: to compile rarely."""
    return np.concatenate([leaf, np.repeat(leaf[:1], -len(leaf) % BLOCK, 0)])


def _asked(what: Any, one: Fit, x: np.ndarray, *more: Any) -> Any:
    """In float64, with weights as they are."""
    with jax.enable_x64(True):
        own = (one.smooth, one.job.ground, _filled(x), *more)
        held = jax.tree.map(lambda v: jnp.asarray(v, jnp.float64), own)
        return jax.tree.map(np.asarray, what(recalling(one.model), *held))


@eqx.filter_jit
def _compiled_terms(model: SummedModel, weights: Weights, ground: Ground, x: Array) -> list[Any]:
    return model.terms(weights, ground, x)


@eqx.filter_jit
def _compiled_score(
    model: SummedModel, weights: Weights, ground: Ground, x: Array, y: Any
) -> Array:
    return model.learned_well(weights, ground, x, y)


def _stacked(model: SummedModel, fits: list[Weights]) -> Weights:
    """Of each source, with a leading axis of fits."""
    each = zip(model.each, *fits, strict=True)
    return [
        together(list(own)) if isinstance(mapping, Trees)
        else jax.tree.map(lambda *leaves: np.stack(leaves), *own)
        for mapping, *own in each
    ]  # fmt: skip
