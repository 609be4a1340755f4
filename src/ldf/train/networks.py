"""Networks and whatever else is smooth: all members of one mapping, their parts and restarts in one
program."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np

from ldf.fit import Rows, Schedule, Settings, State, fit
from ldf.learned import Trained
from ldf.model import Ground
from ldf.spec import Spec
from ldf.step import step_of
from ldf.table import Table
from ldf.train.job import Job, Tell, refuse_failed, roles


class Gathered(NamedTuple):
    """What the program takes, for all fits."""

    rows: Rows
    ground: Ground
    settings: Settings
    schedule: Schedule


def train_networks(
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
    names = list(product(jobs, range(parts), range(restarts)))
    views = list({id(job.z): job.z for job in jobs}.values())
    at = [next(v for v, view in enumerate(views) if view is job.z) for job, _, _ in names]
    taken = gathered([(job, p) for job, p, _ in names], views, at, spec, table, seed)
    rows, ground, settings, schedule = taken
    step = step_of(spec.structure, spec.objective)

    def seen(state: State) -> None:
        say("networks", int(state.stopped.sum()), len(names))
        if watch is not None:
            watch(state)

    say("networks", 0, len(names))
    model = jobs[0].model
    found = fit(model, rows, ground, settings, seed, schedule, spec.objective, step, resume, seen)
    score = found.score.reshape(len(jobs), parts, restarts)
    best = score.argmax(-1)  # by log-likelihood whatever the objective (Section 5.2)
    refuse_failed(np.take_along_axis(found.failed.reshape(score.shape), best[..., None], -1))

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


def gathered(
    fits: list[tuple[Job, int]],
    views: list[np.ndarray],
    at: list[int],
    spec: Spec,
    table: Table,
    seed: int,
) -> Gathered:
    """For fits of jobs without a part; `at` says which view a fit has of the features."""
    used = np.any([job.weight > 0 for job, _ in fits], axis=0)
    counts = [roles(job, p, spec.ensemble.parts, seed) for job, p in fits]
    training, watched = (np.stack(of)[:, used] for of in zip(*counts, strict=True))

    def single(values: Any) -> Any:
        return np.asarray(values, np.float32)

    def each(of: Callable[[Job], Any]) -> Any:
        """One a fit, of its job."""
        return jax.tree.map(lambda *v: single(np.stack(v)), *[of(job) for job, _ in fits])

    rows = Rows(
        single(np.stack(views)[:, used]),
        np.array(at),
        {name: single(values[used]) for name, values in table.y.items()},
        single(training),
        single(watched),
        each(lambda job: job.reference[used]),
    )
    widest = fits[0][0].model.mapping.widest
    settings = Settings(
        each(lambda job: job.member.learning_rate),
        each(lambda job: job.member.least_penalty),
        each(lambda job: job.member.dropout),
        each(lambda job: widest if job.member.width is None else job.member.width),
    )
    schedule = spec.ensemble.schedule_for(int((training[0] > 0).sum()))
    return Gathered(rows, each(lambda job: job.ground), settings, schedule)
