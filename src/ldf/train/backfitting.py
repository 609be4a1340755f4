"""Several sources of which some have trees: these and the smooth ones are learned in turn.

    round    the smooth sources by gradients, all at once, given what the trees say (`fit`)
             the trees of each source anew, given what all others say (`boost`)

What the others say is an offset: pseudo-observations add, so a source is learned on top of them by
the same closed-form predictive, whatever they are. Rounds go on while the rows that a fit watches
are explained better, and the best one is kept.

As the trainer leaves sources out of rows at random, trees meet rows that lack some: every row is
there several times, with others left out by the same chance, and its copies together weigh what the
row weighs. The copies are drawn once, so that all rounds climb the same score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf.boost import BLOCK, boost
from ldf.ensemble import Member
from ldf.fit import State, again, fit
from ldf.learned import Trained
from ldf.mappings import Mapping, Trees, Weights, together
from ldf.model import Ground, Model
from ldf.spec import Spec
from ldf.special import Array
from ldf.summed import SummedModel
from ldf.table import Table, somewhere
from ldf.train.job import Job, Tell, refuse_failed, roles, two_at_a_time
from ldf.train.networks import gathered
from ldf.train.recalled import answers, nothing_told, recalling, rows_told

ROUNDS = 3  # at most
LEAST = 1e-3  # nats a watched row that a round has to gain, or there is no other
COPIES = 4  # of a row, with other sources left out


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
    round: int = 0  # of the best
    cut: bool = False  # whether trees ran out
    over: bool = False

    @property
    def model(self) -> SummedModel:
        return cast("SummedModel", self.job.model)


class Copies(NamedTuple):
    """Rows with some of their sources, in the order of rows."""

    row: np.ndarray
    there: np.ndarray  # which sources are
    share: np.ndarray  # of the row's weight


def backfitting(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    """Members of one mapping, their parts and restarts."""
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    names = product(jobs, range(parts), range(restarts))
    fits = [_begun(job, p, seed + r, roles(job, p, parts, seed)) for job, p, r in names]
    copies = {id(job): _copies(fits[0].model, job.z, seed) for job in jobs}
    y, state = somewhere(table.y, table.seen), None

    def grown(one: Fit) -> Fit:
        for number in one.forests:
            _grow(one, number, spec, y, copies[id(one.job)])
        return one

    for number in range(ROUNDS if len(fits[0].model.sources) > 1 else 1):
        if not all(one.over for one in fits) and _smooth(fits[0].model):
            told = partial(say, f"networks, round {number + 1}")
            state = _climb(fits, state, spec, table, seed, told)
        going = [one for one in fits if not one.over]
        told = partial(say, f"forests, round {number + 1}")
        for done, one in enumerate(two_at_a_time(grown, going), 1):
            _judge(one, y, number + 1)
            told(done, len(going))

    trained = []
    for j, job in enumerate(jobs):
        mine = [fits[(j * parts + p) * restarts :][:restarts] for p in range(parts)]
        best = [max(some, key=lambda one: one.score) for some in mine]
        refuse_failed(np.array([one.best is None for one in best]))
        weights = _stacked(fits[0].model, [one.best for one in best])
        score = float(np.mean([one.score for one in best]))
        trained.append(Trained(job.model, job.preprocess, job.ground, weights, weights, score))
    rounds, cut = int(np.median([one.round for one in fits])), sum(one.cut for one in fits)
    status = f"{len(fits)} fits by backfitting, best after {rounds} rounds (median)"
    status += f"; {cut} were at their best when the trees ran out: allow more." if cut else "."
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


def _copies(model: SummedModel, z: np.ndarray, seed: int) -> Copies:
    """Of all rows. Copies that lack the same are one, of their weight."""
    there = z[:, -len(model.sources) :] > 0.5
    noises = np.random.default_rng([seed, 2]).integers(2**32, size=COPIES, dtype=np.uint32)
    kept = np.stack([np.asarray(model.some(there, noise)) for noise in noises], 1)
    bits = 1 << np.arange(there.shape[1])
    names = (np.arange(len(z))[:, None] << there.shape[1]) + kept @ bits
    name, many = np.unique(names, return_counts=True)
    row, pattern = np.divmod(name, 1 << there.shape[1])
    return Copies(row, (pattern[:, None] & bits) > 0, many / COPIES)


# --- what is learned by gradients ---------------------------------------------------------------


def _climb(
    fits: list[Fit], state: State | None, spec: Spec, table: Table, seed: int,
    told: Callable[[int, int], None],
) -> State:
    """The smooth sources of all fits that go on, in one program, from where they were."""
    model = recalling(fits[0].model)
    jobs = [(one.job._replace(model=model, member=_of_smooth(one.job.member, model)), one.part)
            for one in fits]  # fmt: skip
    views = [rows_told(one.model, one.job.z, one.told) for one in fits]
    over = np.array([one.over for one in fits])
    resume = None if state is None else again(state, over)

    def watch(state: State) -> None:
        told(int(state.stopped.sum()), len(fits))

    taken = gathered(jobs, views, list(range(len(fits))), spec, table, seed)
    found = fit(
        model, taken.rows, taken.ground, taken.settings, seed, taken.schedule, spec.objective,
        resume=resume, watch=watch,
    )  # fmt: skip
    for number, one in enumerate(fits):
        one.smooth = jax.tree.map(lambda leaf, n=number: leaf[n], found.weights)
        one.over |= bool(found.failed[number])
    return found.state


def _of_smooth(member: Member, model: SummedModel) -> Member:
    """How smooth sources are learned: as the member is, unless its settings are of trees."""
    if not isinstance(member.mapping, Trees):
        return member
    own = Member(_smooth(model)[0])
    return replace(
        member, penalty=own.penalty, learning_rate=own.learning_rate, dropout=0.0, width=None
    )


# --- trees --------------------------------------------------------------------------------------


def _grow(one: Fit, number: int, spec: Spec, y: dict[str, np.ndarray], copies: Copies) -> None:
    """The trees of a source anew, given what all others say. Rows that lack it do not count."""
    model, job = one.model, one.job
    mapping, z, many = model.each[number], job.z, len(model.sources)
    teaches = copies.there[:, number] & (one.training[copies.row] > 0)
    there = z[:, -many:] > 0.5
    watches = np.flatnonzero(there[:, number] & (one.watched > 0))  # as they are
    if not teaches.any() or not len(watches):
        return
    row = np.concatenate([copies.row[teaches], watches])
    order = np.argsort(row, kind="stable")
    row = row[order]
    seen = np.concatenate([copies.there[teaches], there[watches]])[order]
    share = np.concatenate([copies.share[teaches], np.ones(len(watches))])[order]
    terms = _terms(one, row, seen)
    offset = sum((term for k, term in enumerate(terms) if k != number), start=terms[number].zero())
    source, others = model.sources[number], np.delete(seen, number, 1) - 1.0
    x = [z[row, source.start : source.stop], *([others] if model.aware else [])]
    member = job.member if mapping == job.member.mapping else Member(mapping)
    found = boost(
        Model(model.family, mapping, model.certain), job.ground, np.concatenate(x, 1),
        {name: values[row] for name, values in y.items()},
        one.training[row] * share, one.watched[row],
        reference=job.reference[row], objective=spec.objective,
        learning_rate=member.learning_rate, penalty=member.penalty, dropout=member.dropout,
        seed=one.seed, offset=offset, share=1 / many,
    )  # fmt: skip
    one.forests[number], one.cut = found.weights, one.cut or found.cut
    one.told[number] = answers(model, number, found.weights, z)


def _terms(one: Fit, row: np.ndarray, there: np.ndarray) -> list[Any]:
    """What each source says of rows that have these."""
    x = rows_told(one.model, one.job.z[row], {k: told[row] for k, told in one.told.items()})
    x[:, -there.shape[1] :] = there
    x = np.concatenate([x, np.repeat(x[:1], -len(row) % BLOCK, 0)])  # to compile rarely
    with jax.enable_x64(True):
        held = jax.tree.map(lambda v: jnp.asarray(v, jnp.float64), (one.smooth, one.job.ground, x))
        found = _compiled_terms(recalling(one.model), *held)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[: len(row)], found)


@eqx.filter_jit
def _compiled_terms(model: SummedModel, weights: Weights, ground: Ground, x: Array) -> list[Any]:
    return model.terms(weights, ground, x)


# --- rounds -------------------------------------------------------------------------------------


def _judge(one: Fit, y: dict[str, np.ndarray], number: int) -> None:
    """Whether a round was worth it, by the watched rows as they are."""
    row = np.flatnonzero(one.watched > 0)
    terms = _terms(one, row, one.job.z[row, -len(one.model.sources) :] > 0.5)
    own = {name: values[row] for name, values in y.items()}
    log_predictive = one.model.log_predictive_given(sum(terms), one.job.ground, own)
    score = float(np.average(np.asarray(log_predictive), weights=one.watched[row]))
    one.over = not score > one.score + LEAST
    if score > one.score:
        one.score, one.round = score, number
        one.best = [one.forests.get(k, own) for k, own in enumerate(one.smooth)]


def _stacked(model: SummedModel, fits: list[Weights]) -> Weights:
    """Of each source, with a leading axis of fits."""
    each = zip(model.each, *fits, strict=True)
    return [
        together(list(own)) if isinstance(mapping, Trees)
        else jax.tree.map(lambda *leaves: np.stack(leaves), *own)
        for mapping, *own in each
    ]  # fmt: skip
