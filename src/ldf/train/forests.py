"""Trees: each member, part and restart by itself, two at a time."""

from __future__ import annotations

from itertools import product

import numpy as np

from ldf.boost import Boosted, boost
from ldf.learned import Trained
from ldf.mappings import together
from ldf.spec import Spec
from ldf.table import Table, somewhere
from ldf.train.job import Job, Tell, roles, two_at_a_time


def train_forests(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    """Each member, part and restart by itself, two at a time."""
    parts, restarts = spec.ensemble.parts, spec.ensemble.restarts
    y = somewhere(table.y, table.seen)

    def grown(name: tuple[int, int, int]) -> Boosted:
        j, p, restart = name
        job = jobs[j]
        return boost(
            job.model, job.ground, job.z, y, *roles(job, p, parts, seed),
            reference=job.reference, objective=spec.objective,
            learning_rate=job.member.learning_rate, penalty=job.member.least_penalty,
            dropout=job.member.dropout, seed=seed + restarts * again[j] + restart,
        )  # fmt: skip

    # A member that is named again, on the same training set, is drawn otherwise.
    names_of = [(id(job.part), job.member) for job in jobs]
    again = [names_of[:j].count(own) for j, own in enumerate(names_of)]
    names = list(product(range(len(jobs)), range(parts), range(restarts)))
    found: list[Boosted] = []
    say("forests", 0, len(names))
    for one in two_at_a_time(grown, names):
        found.append(one)
        say("forests", len(found), len(names))

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
    status += f"; the trees ran out while {cut} still gained: allow more." if cut else "."
    return trained, status
