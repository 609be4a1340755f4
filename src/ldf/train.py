"""Jobs done: every mapping is trained in the way that is made for it.

    "gradients"  networks and whatever else is smooth: all members of one mapping, their parts and
                 restarts in one program (`fit`)
    "newton"     what is linear in its weights: to the last digit, on all training rows and without
                 each part (`solve`)
    "boosting"   trees, without each part (`boost`)

Networks and trees watch some rows to decide when to stop; for part p, that they have not seen, they
watch the next.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from ldf import check
from ldf.boost import Boosted, boost
from ldf.ensemble import Member
from ldf.fit import Rows, Settings, State, fit
from ldf.learned import Trained
from ldf.mappings import together
from ldf.mixed import MixedModel
from ldf.model import Ground, Model
from ldf.preprocess import Blocks, Preprocess, Sourced
from ldf.solve import solve, solve_mixture
from ldf.spec import Spec
from ldf.step import step_of
from ldf.table import Table, somewhere

# What is done, how many of how many. Called from the threads that do it, one at a time.
Tell = Callable[[str, int, int], None]


class Job(NamedTuple):
    """One member on one training set, before it is trained."""

    model: Model
    member: Member
    preprocess: Preprocess | Blocks | Sourced
    ground: Ground
    z: np.ndarray  # features of all rows, preprocessed on this set's training rows
    weight: np.ndarray  # of all rows; zero where they are not learned from
    part: np.ndarray
    reference: np.ndarray  # log p_0 of all rows


def train(
    jobs: list[Job],
    spec: Spec,
    table: Table,
    seed: int,
    resume: State | None = None,
    watch: Callable[[State], None] | None = None,
    tell: Tell | None = None,
) -> tuple[list[Trained], str]:
    """Each job done, and how it went. A state is one of the first networks: the others begin again,
    and end the same."""

    def say(what: str, done: int, of: int) -> None:
        if tell is not None:
            tell(what, done, of)

    def networks(some: list[Job]) -> tuple[list[Trained], str]:
        first = some[0].member.mapping == spec.ensemble.network
        kept = (resume, watch) if first else (None, None)
        return _networks(some, spec, table, seed, *kept, say)

    ways: dict[str, Callable[[list[Job]], tuple[list[Trained], str]]] = {
        "newton": lambda some: _regressions(some, spec, table, seed, say),
        "boosting": lambda some: _forests(some, spec, table, seed, say),
        "gradients": networks,
    }
    # Networks of one mapping are one program; the others are done one by one in any case.
    kinds = [
        (job.model.way, job.member.mapping if job.model.way == "gradients" else None)
        for job in jobs
    ]
    done: dict[int, Trained] = {}
    status = []
    for kind in sorted(dict.fromkeys(kinds), key=lambda kind: list(ways).index(kind[0])):
        mine = [number for number, own in enumerate(kinds) if own == kind]
        trained, said = ways[kind[0]]([jobs[number] for number in mine])
        done |= dict(zip(mine, trained, strict=True))
        status.append(said)
    return [done[number] for number in range(len(jobs))], " ".join(status)


# --- networks -----------------------------------------------------------------------------------


def _networks(
    jobs: list[Job],
    spec: Spec,
    table: Table,
    seed: int,
    resume: State | None,
    watch: Callable[[State], None] | None,
    say: Tell,
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

    def seen(state: State) -> None:
        say("networks", int(state.stopped.sum()), len(names))
        if watch is not None:
            watch(state)

    say("networks", 0, len(names))
    found = fit(model, rows, ground, settings, seed, schedule, spec.objective, step, resume, seen)
    score = found.score.reshape(len(jobs), parts, restarts)
    best = score.argmax(-1)  # by log-likelihood whatever the objective (Section 5.2)
    used = np.take_along_axis(found.failed.reshape(score.shape), best[..., None], -1)
    if used.any():  # a fit may fail beside better ones; none may be used
        remedy = "lower the learning rate, or leave out the column with extreme values"
        problem = f"gave numbers that are none in {int(used.sum())} of {used.size} fits"
        raise check.DataError("mapping", None, None, problem, remedy)

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


# --- regressions --------------------------------------------------------------------------------


def _regressions(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    solved = []
    for job in jobs:
        say("regressions", len(solved), len(jobs))
        solved.append(_regressed(job, table, parts, restarts, seed))
    say("regressions", len(jobs), len(jobs))
    done, short = [trained for trained, _ in solved], sum(not good for _, good in solved)
    status = f"{len(done)} regression{'s' if len(done) > 1 else ''}, solved"
    status += f", of which {short} did not converge: give a penalty." if short else "."
    return done, status


def _regressed(
    job: Job, table: Table, parts: int, restarts: int, seed: int
) -> tuple[Trained, bool]:
    """A linear mapping to the last digit: on all training rows, and without each part. And whether
    all of these converged."""
    y = somewhere(table.y, table.seen)
    converged = []

    def best(weight: np.ndarray, start: Any = None) -> Any:
        data = (job.ground, job.z, y, weight, job.member.penalty)
        if isinstance(job.model, MixedModel):
            tries = [solve_mixture(job.model, *data, seed=s) for s in range(restarts)]
            found = max(tries, key=lambda one: one.scores[-1])
        else:
            found = solve(job.model, *data, start=start, seed=seed)
        converged.append(found.converged)
        return found.weights

    whole = best(job.weight)
    numbers = range(parts if parts > 1 else 0)
    # What is chosen by rows (knots) is chosen by all of them, as preprocessing is.
    without = [best(np.where(job.part == p, 0.0, job.weight), whole) for p in numbers] or [whole]
    stack = lambda *leaves: np.stack(leaves)  # noqa: E731
    held = jax.tree.map(stack, *without)
    weights = jax.tree.map(stack, whole)
    return Trained(job.model, job.preprocess, job.ground, weights, held, np.nan), all(converged)


# --- trees --------------------------------------------------------------------------------------


def _forests(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    """Each member, part and restart by itself, two at a time."""
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    y = somewhere(table.y, table.seen)

    def grown(name: tuple[Job, int, int]) -> Boosted:
        job, p, restart = name
        return boost(
            job.model, job.ground, job.z, y, *_roles(job, p, parts, seed),
            reference=job.reference, objective=spec.objective,
            learning_rate=job.member.learning_rate, penalty=job.member.penalty,
            dropout=job.member.dropout, seed=seed + restart,
        )  # fmt: skip

    names = list(product(jobs, range(parts), range(restarts)))
    found: list[Boosted] = []
    say("forests", 0, len(names))
    pool = ThreadPoolExecutor(2)
    try:
        for one in pool.map(grown, names):
            found.append(one)
            say("forests", len(found), len(names))
    finally:  # whoever is interrupted does not wait for those that have not begun
        pool.shutdown(cancel_futures=True)

    def best(j: int) -> list[Boosted]:
        mine = [found[(j * parts + p) * restarts :][:restarts] for p in range(parts)]
        return [max(some, key=lambda one: one.score) for some in mine]

    trained = []
    for j, job in enumerate(jobs):
        weights = together([one.weights for one in best(j)])
        score = float(np.mean([one.score for one in best(j)]))
        trained.append(Trained(job.model, job.preprocess, job.ground, weights, weights, score))
    rounds, cut = int(np.median([one.rounds for one in found])), sum(one.cut for one in found)
    status = f"{len(found)} forests, best after {rounds} rounds (median)"
    status += f"; {cut} were at their best when the trees ran out: allow more." if cut else "."
    return trained, status
