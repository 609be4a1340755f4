"""Jobs done: every mapping is trained in the way that is made for it.

    "gradients"    networks and whatever else is smooth: all members of one mapping, their parts and
                   restarts in one program (`fit`)
    "newton"       what is linear in its weights: to the last digit, on all training rows and
                   without each part (`solve`)
    "boosting"     trees, without each part (`boost`)
    "backfitting"  several sources, some by trees: those and the smooth ones in turn

Networks and trees watch some rows to decide when to stop; for part p, that they have not seen, they
watch the next.
"""

from __future__ import annotations

from collections.abc import Callable

from ldf.fit import State
from ldf.learned import Trained
from ldf.spec import Spec
from ldf.table import Table
from ldf.train.backfitting import backfit
from ldf.train.forests import train_forests
from ldf.train.job import Job, Tell
from ldf.train.networks import train_networks
from ldf.train.regressions import train_regressions

__all__ = ["Job", "Tell", "train"]


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

    def climbed(some: list[Job]) -> tuple[list[Trained], str]:
        first = some[0].member.mapping == spec.ensemble.network
        kept = (resume, watch) if first else (None, None)
        return train_networks(some, spec, table, seed, *kept, say)

    ways: dict[str, Callable[[list[Job]], tuple[list[Trained], str]]] = {
        "newton": lambda some: train_regressions(some, spec, table, seed, say),
        "boosting": lambda some: train_forests(some, spec, table, seed, say),
        "gradients": climbed,
        "backfitting": lambda some: backfit(some, spec, table, seed, say),
    }
    # Networks of one mapping are one program; the others are done one by one in any case.
    programs = ("gradients", "backfitting")
    kinds = [
        (job.model.way, job.member.mapping if job.model.way in programs else None) for job in jobs
    ]
    done: dict[int, Trained] = {}
    status = []
    for kind in sorted(dict.fromkeys(kinds), key=lambda kind: list(ways).index(kind[0])):
        mine = [number for number, own in enumerate(kinds) if own == kind]
        trained, said = ways[kind[0]]([jobs[number] for number in mine])
        done |= dict(zip(mine, trained, strict=True))
        status.append(said)
    return [done[number] for number in range(len(jobs))], " ".join(status)
