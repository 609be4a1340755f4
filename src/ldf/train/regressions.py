"""What is linear in its weights, to the last digit."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ldf.learned import Trained
from ldf.mixed import MixedModel
from ldf.solve import solve, solve_mixture
from ldf.spec import Spec
from ldf.table import Table, somewhere
from ldf.train.job import Job, Tell


def train_regressions(
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
