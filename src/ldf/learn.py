"""Algorithm 1, line 1: from a table to a learned mapping, or to many that answer together.

Every member of an ensemble is trained once for each part of the training rows, without that part,
so that each row has a fit that has not seen it. From those come, with nothing trained twice,

- out-of-fold pseudo-observations for training rows;
- the score of a member on rows it has not learned from, by which members are weighed;
- a member's pseudo-observations for any other row: the mean over its fits.

What all units have in common (the prior, the ground that outputs are counted from) is learned from
all training rows, a row's own among them, and so are the parts, which are stratified by rate.

Members answer as a mixture. Its weights are equal, or stacked: those under which the mixture best
explains the training rows out of fold; or all weight goes to the best member, which is how a random
search is decided. A mixture of members that each are as sure as they should be is less sure than it
should be: their differences come on top. So with the weights one more number is learned, how often
T_x counts (decision 19). Several training sets (the folds of a cross-validation) are learned at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy  # optimize is loaded when it is asked for
from scipy.special import logsumexp

from ldf import check, folds
from ldf.ensemble import Ensemble, Member
from ldf.families.base import Family
from ldf.fit import Rows, Settings, State, fit
from ldf.ground import PRIORS, REFERENCES, ground_of, log_reference
from ldf.learned import Learned, Trained
from ldf.mappings import Linear
from ldf.mixed import MixedModel, Mixture
from ldf.model import Ground, Model
from ldf.objective import Objective, balanced_weights, maximum_likelihood
from ldf.preprocess import Blocks, Preprocess
from ldf.solve import solve, solve_mixture
from ldf.statistic import Statistic
from ldf.step import step_of
from ldf.table import Table, empirical_rate, somewhere

SHARPEST = np.log(2)  # T_x may count twice as often as it says, or half as often


@dataclass(frozen=True)
class Spec:
    """What is to be learned and how; the data aside."""

    family: Family
    ensemble: Ensemble = field(default_factory=Ensemble)
    prior: Statistic | str = "weak"  # λ0, or how to find it
    objective: Objective = maximum_likelihood
    reference: str = "prior"  # what the objective compares with, if it does
    balance: int = 0  # classes of the empirical rate that count the same; 0: each row counts
    certain: bool = False  # a regression without dispersion: see Model
    structure: Mixture | None = None  # what ties units together

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            check.one_of("prior", self.prior, tuple(PRIORS))
        check.one_of("reference", self.reference, REFERENCES)


class Job(NamedTuple):
    """One member on one training set, before it is trained."""

    model: Model
    member: Member
    preprocess: Preprocess | Blocks
    ground: Ground
    z: np.ndarray  # features of all rows, preprocessed on this set's training rows
    weight: np.ndarray  # of all rows; zero where they are not learned from
    part: np.ndarray
    reference: np.ndarray  # log p_0 of all rows


def learn(
    spec: Spec,
    table: Table,
    seed: int,
    training: np.ndarray | None = None,
    resume: State | None = None,
    watch: Callable[[State], None] | None = None,
) -> list[Learned]:
    """Learn from each training set (a row of `training`, sets × M); by default from all rows."""
    every = np.ones((1, len(table.x)), bool) if training is None else training
    every = every & table.seen & (table.weight > 0)
    ensemble = spec.ensemble.settled(int(every.any(0).sum()))
    asked, parts = ensemble.parts, _possible_parts(ensemble, table, every)
    spec = replace(spec, ensemble=replace(ensemble, parts=parts))
    sets = [_jobs(spec, table, rows, seed) for rows in every]
    jobs = [job for some in sets for job in some]
    if isinstance(spec.ensemble.mapping, Linear):
        solved = [_regressed(job, table, parts, spec.ensemble.restarts) for job in jobs]
        done, short = [trained for trained, _ in solved], sum(not good for _, good in solved)
        status = f"{len(done)} regressions, solved"
        status += f", of which {short} did not converge: give a penalty." if short else "."
    else:
        done, status = _networks(jobs, spec, table, seed, resume, watch)
    if parts < asked:
        status += f" There are too few units for {asked} parts, so there were {parts}."
    many = len(spec.ensemble.members)
    return [
        _combined(spec.ensemble, table, done[i * many : (i + 1) * many], some[0], status)
        for i, some in enumerate(sets)
    ]


# --- before training ----------------------------------------------------------------------------


def _jobs(spec: Spec, table: Table, rows: np.ndarray, seed: int) -> list[Job]:
    """One a member, with all that depends on the training rows learned from these alone."""
    family, ensemble = spec.family, spec.ensemble
    rate = empirical_rate(family, table.y, rows)
    part = np.full(len(rows), -1)
    part[rows] = _parts(table, rate, rows, ensemble.parts, seed)
    weight = np.where(rows, table.weight, 0.0)
    if spec.balance:
        weight[rows] *= balanced_weights(rate[rows], spec.balance)
    kinds = {m: _kinds(spec, m) for m in ensemble.members}
    wanted = dict.fromkeys(kind for some in kinds.values() for kind in some)
    single = {kind: Preprocess.learn(kind, table.x[rows]) for kind in wanted}
    learned = {
        some: single[some[0]] if len(some) == 1 else Blocks(tuple(single[kind] for kind in some))
        for some in kinds.values()
    }
    z = {some: preprocess.apply(table.x) for some, preprocess in learned.items()}
    jobs = []
    for member in ensemble.members:
        kind, model = kinds[member], _model(spec, member)
        ground = ground_of(model, spec.prior, table, rows, member.strength)
        reference = np.zeros(len(rows))
        if spec.objective is not maximum_likelihood:
            reference = log_reference(spec.family, spec.reference, table, rows, ground, z[kind])
        jobs.append(Job(model, member, learned[kind], ground, z[kind], weight, part, reference))
    return jobs


def _kinds(spec: Spec, member: Member) -> tuple[str, ...]:
    """How columns are preprocessed for a member: in one way, or in those of a mixture's parts."""
    each = spec.structure.each if spec.structure else ()
    return tuple(dict.fromkeys(c.preprocess or member.preprocess for c in each)) or (
        member.preprocess,
    )


def _model(spec: Spec, member: Member) -> Model:
    mixture = spec.structure
    if mixture is None:
        return Model(spec.family, member.mapping, spec.certain)
    kinds = _kinds(spec, member)
    blocks = tuple(kinds.index(c.preprocess or member.preprocess) for c in mixture.each)
    return MixedModel(
        spec.family, member.mapping, spec.certain, mixture, blocks if len(kinds) > 1 else ()
    )


def _possible_parts(ensemble: Ensemble, table: Table, every: np.ndarray) -> int:
    """As many as asked for, or as there are units (or groups of them) in every training set."""
    parts, linear = ensemble.parts, isinstance(ensemble.mapping, Linear)
    if parts == 2 and not linear:
        remedy = "a network holds out one, watches another and learns from the rest: give 3 or more"
        raise check.DataError("parts", None, parts, "leaves none to learn from", remedy)
    units = np.arange(len(table.x)) if table.group is None else table.group
    number = min(len(set(units[rows].tolist())) for rows in every)
    least = 2 if parts == 1 or linear else 3
    if number < least:
        what = "units" if table.group is None else "groups"
        problem = f"has {number} {what}, too few to learn from"
        remedy = f"give primary data of {least} or more"
        raise check.DataError("primary", None, None, problem, remedy)
    return min(parts, number)


def _parts(table: Table, rate: np.ndarray, rows: np.ndarray, parts: int, seed: int) -> np.ndarray:
    """The part of each training row; −1 if there is only one, which none can be left out of."""
    if parts == 1:
        return np.full(rows.sum(), -1)
    if table.group is not None:
        return folds.grouped(table.group[rows], parts, seed, rate=rate[rows]).fold
    return folds.stratified(rate[rows], parts, seed).fold


# --- training -----------------------------------------------------------------------------------


def _networks(
    jobs: list[Job],
    spec: Spec,
    table: Table,
    seed: int,
    resume: State | None,
    watch: Callable[[State], None] | None,
) -> tuple[list[Trained], str]:
    """All members, parts and restarts in one program."""
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    names = list(product(range(len(jobs)), range(parts), range(restarts)))
    used = np.any([job.weight > 0 for job in jobs], axis=0)
    weights = [_roles(job, p, parts, seed) for job, p in product(jobs, range(parts))]
    training, watched = (
        np.repeat(np.stack(w)[:, used], restarts, 0) for w in zip(*weights, strict=True)
    )
    views = list({id(job.z): job.z for job in jobs}.values())
    at = [next(v for v, view in enumerate(views) if view is job.z) for job in jobs]

    def single(values: Any) -> Any:
        return np.asarray(values, np.float32)

    def each(of: Callable[[Job], Any]) -> Any:
        """One a fit, of its job."""
        return jax.tree.map(lambda *v: single(np.stack(v)), *[of(jobs[j]) for j, _, _ in names])

    rows = Rows(
        single(np.stack(views)[:, used]),
        np.array([at[j] for j, _, _ in names]),
        {name: single(values[used]) for name, values in table.y.items()},
        single(training),
        single(watched),
        each(lambda job: job.reference[used]),
    )
    model = jobs[0].model
    widest = model.mapping.widest
    settings = Settings(
        each(lambda job: job.member.learning_rate),
        each(lambda job: job.member.penalty),
        each(lambda job: job.member.dropout),
        each(lambda job: widest if job.member.width is None else job.member.width),
    )
    ground = each(lambda job: job.ground)
    schedule = spec.ensemble.schedule_for(int((training[0] > 0).sum()))
    step = step_of(spec.structure, spec.objective)
    found = fit(model, rows, ground, settings, seed, schedule, spec.objective, step, resume, watch)
    score = found.score.reshape(len(jobs), parts, restarts)
    best = score.argmax(-1)  # by log-likelihood whatever the objective (Section 5.2)
    _refuse_failure(found.failed.reshape(score.shape), best)

    def pick(j: int) -> Any:
        index = (j * parts + np.arange(parts)) * restarts + best[j]
        return jax.tree.map(lambda leaf: leaf[index], found.weights)

    trained = [
        Trained(
            job.model, job.preprocess, job.ground, pick(j), pick(j), float(score[j].max(-1).mean())
        )
        for j, job in enumerate(jobs)
    ]
    return trained, found.status()


def _roles(job: Job, p: int, parts: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """How much each row counts in learning, and in deciding when to stop, for fit number p."""
    if parts > 1:  # it has not seen part p, and watches the next
        later = job.part == (p + 1) % parts
        return np.where(later | (job.part == p), 0.0, job.weight), np.where(later, job.weight, 0.0)
    later = np.zeros(len(job.weight), bool)  # a tenth of the rows, and at least one
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(job.weight > 0))
    later[rows[: max(1, len(rows) // 10)]] = True
    return np.where(later, 0.0, job.weight), np.where(later, job.weight, 0.0)


def _refuse_failure(failed: np.ndarray, best: np.ndarray) -> None:
    """A fit may fail beside better ones; none may be used."""
    used = np.take_along_axis(failed, best[..., None], -1)
    if used.any():
        remedy = "lower the learning rate, or leave out the column with extreme values"
        problem = f"gave numbers that are none in {int(used.sum())} of {used.size} fits"
        raise check.DataError("mapping", None, None, problem, remedy)


def _regressed(job: Job, table: Table, parts: int, restarts: int) -> tuple[Trained, bool]:
    """A linear mapping to the last digit: on all training rows, and without each part. And whether
    all of these converged."""
    y = somewhere(table.y, table.seen)
    converged = []

    def best(weight: np.ndarray) -> Any:
        data = (job.ground, job.z, y, weight, job.member.penalty)
        if isinstance(job.model, MixedModel):
            tries = [solve_mixture(job.model, *data, seed=s) for s in range(restarts)]
            found = max(tries, key=lambda one: one.scores[-1])
        else:
            found = solve(job.model, *data)
        converged.append(found.converged)
        return found.weights

    whole = best(job.weight)
    numbers = range(parts if parts > 1 else 0)
    without = [best(np.where(job.part == p, 0.0, job.weight)) for p in numbers] or [whole]
    stack = lambda *leaves: np.stack(leaves)  # noqa: E731
    held = jax.tree.map(stack, *without)
    weights = jax.tree.map(stack, whole)
    return Trained(job.model, job.preprocess, job.ground, weights, held, np.nan), all(converged)


# --- after training -----------------------------------------------------------------------------


def _combined(
    ensemble: Ensemble, table: Table, trained: list[Trained], job: Job, status: str
) -> Learned:
    many = len(trained)
    share, sharpness = np.full(many, 1 / many), 1.0
    if ensemble.parts > 1:
        rows = job.part >= 0
        y, weight = {name: values[rows] for name, values in table.y.items()}, table.weight[rows]
        said = [t.said(table.x[rows], job.part[rows]) for t in trained]

        def scores(sharpness: float) -> np.ndarray:
            """Of the rows by each member, out of fold."""
            pairs = zip(trained, said, strict=True)
            sharper = [
                own._replace(natural=t.ground.prior + own.pseudo * sharpness) for t, own in pairs
            ]
            return np.stack([own.log_score(job.model.family, y) for own in sharper])

        if ensemble.combine == "stack":
            share, sharpness = _stacked_and_sharpened(scores, weight)
        means = scores(sharpness) @ (weight / weight.sum())
        trained = [t._replace(score=float(mean)) for t, mean in zip(trained, means, strict=True)]
    if ensemble.combine == "best":
        best = int(np.argmax([t.score for t in trained]))
        trained, share = [trained[best]], np.ones(1)
    return Learned(tuple(trained), share, job.part, status, sharpness)


def _stacked_and_sharpened(
    scores: Callable[[float], np.ndarray], weight: np.ndarray
) -> tuple[np.ndarray, float]:
    """The members' shares, and how often their T_x count, under which the rows are likeliest."""

    def loss(log_sharpness: float) -> float:
        found = scores(np.exp(log_sharpness))
        share = stacked(found, weight)
        return -float(logsumexp(found, 0, b=share[:, None]) @ weight)

    found = scipy.optimize.minimize_scalar(
        loss, bounds=(-SHARPEST, SHARPEST), method="bounded", options={"xatol": 0.01}
    )
    sharpness = float(np.exp(found.x))
    return stacked(scores(sharpness), weight), sharpness


def stacked(scores: np.ndarray, weight: np.ndarray | None = None, steps: int = 1000) -> np.ndarray:
    """The mixture weights under which members × rows of log-predictives are likeliest, by EM.

    Each member begins with one row's worth, so that few rows do not silence any."""
    many = len(scores)
    weight = np.ones(scores.shape[1]) if weight is None else weight
    share = np.full(many, 1 / many)
    for _ in range(steps):
        joint = np.log(share)[:, None] + scores
        responsibility = np.exp(joint - logsumexp(joint, 0))
        after = (responsibility @ weight + 1) / (weight.sum() + many)
        if np.abs(after - share).max() < 1e-8:
            break
        share = after
    return share
