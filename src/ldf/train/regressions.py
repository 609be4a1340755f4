"""What is linear in its weights, to the last digit.

Where several penalties are given, they are gone through from the strongest, each from where the one
before ended. That is taken under which rows are likeliest by fits that have not seen them: as
networks stop by rows that they watch, what is solved is held back by rows that it has not seen. It
is one for all parts, so that these are alike.

Members that are stacked get a sharpness afterwards. So penalties are compared by what they score
with the sharpness that suits them: otherwise a strong one would be taken only to be less sure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ldf import check
from ldf.learned import Correction, Learned, Trained
from ldf.mappings import Weights
from ldf.mixed import MixedModel
from ldf.objective import maximum_likelihood
from ldf.solve import solve, solve_mixture
from ldf.spec import Spec
from ldf.table import Table, somewhere
from ldf.train.job import Job, Tell, roles

WHILE = 2  # penalties without a gain, after which no weaker one is looked at
TIMES = (0.5, 0.7, 1.0, 1.4, 2.0)  # how often T_x may count


class Solved(NamedTuple):
    """Under one penalty."""

    trained: Trained
    penalty: float
    converged: bool

    @property
    def whole(self) -> Weights:
        """By all training rows."""
        return jax.tree.map(lambda leaf: leaf[0], self.trained.weights)


def train_regressions(
    jobs: list[Job], spec: Spec, table: Table, seed: int, say: Tell
) -> tuple[list[Trained], str]:
    y = somewhere(table.y, table.seen)
    if spec.structure is not None and spec.objective is not maximum_likelihood:
        remedy = "use the likelihood, or a mapping that learns by gradients"
        problem = f"is not for a mixture of {jobs[0].model.named} mappings, which is solved by EM"
        raise check.DataError("objective", None, None, problem, remedy)
    done: list[Solved] = []
    for job in jobs:
        say("regressions", len(done), len(jobs))
        done.append(_regressed(job, spec, y, seed))
    say("regressions", len(jobs), len(jobs))
    status = f"{len(done)} regression{'s' if len(done) > 1 else ''}, solved"
    found = [own.penalty for own, job in zip(done, jobs, strict=True) if _is_open(job)]
    if found:
        ends = dict.fromkeys(f"{end:.2g}" for end in (min(found), max(found)))
        status += f" (penalty {' to '.join(ends)} by unseen rows)"
    short = sum(not own.converged for own in done)
    status += f", of which {short} did not converge: give a penalty." if short else "."
    return [own.trained for own in done], status


def _is_open(job: Job) -> bool:
    """Whether the penalty is to be found."""
    return len(job.member.penalties) > 1


def _regressed(job: Job, spec: Spec, y: dict[str, np.ndarray], seed: int) -> Solved:
    """A member, under the penalty that suits it."""
    penalties, ensemble = job.member.penalties, spec.ensemble
    if not _is_open(job):
        return _solved(job, spec, y, job.part, penalties[0], None, seed)
    alone = ensemble.parts == 1
    # Then some rows are left out to choose by, and for no other end.
    part = np.where(roles(job, 0, 1, seed)[1] > 0, 0, -1) if alone else job.part
    times = TIMES if ensemble.combine == "stack" and not alone else (1.0,)
    path: list[Solved] = []
    scores: list[float] = []
    for penalty in penalties:
        # Where a strong penalty lets columns tell nothing, one of several sources may end with no
        # count at all, and nothing leads back from there.
        start = path[-1].whole if path and not spec.sources else None
        path.append(_solved(job, spec, y, part, penalty, start, seed))
        scores.append(_unseen(path[-1].trained, job, y, part, times))
        if len(scores) - 1 - int(np.argmax(scores)) == WHILE:
            break
    best = path[int(np.argmax(scores))]
    if alone:
        best = best._replace(trained=best.trained._replace(held=best.trained.weights))
    return best


def _solved(
    job: Job, spec: Spec, y: Any, part: np.ndarray, penalty: float, start: Any, seed: int
) -> Solved:
    """On all training rows, and without each part. And whether all of these converged."""
    converged = []

    def best(weight: np.ndarray, start: Any) -> Any:
        data = (job.ground, job.z, y, weight, penalty)
        if isinstance(job.model, MixedModel):
            restarts = range(spec.ensemble.restarts)
            tries = [solve_mixture(job.model, *data, seed=s) for s in restarts]
            found = max(tries, key=lambda one: one.scores[-1])
        else:
            found = solve(job.model, *data, start, seed, spec.objective, job.reference)
        converged.append(found.converged)
        return found.weights

    whole = best(job.weight, start)
    numbers = range(part.max() + 1)
    # What is chosen by rows (knots) is chosen by all of them, as preprocessing is.
    without = [best(np.where(part == p, 0.0, job.weight), whole) for p in numbers] or [whole]
    stack = lambda *leaves: np.stack(leaves)  # noqa: E731
    weights = jax.tree.map(stack, whole), jax.tree.map(stack, *without)
    trained = Trained(job.model, job.preprocess, job.ground, *weights, np.nan)
    return Solved(trained, penalty, all(converged))


def _unseen(trained: Trained, job: Job, y: Any, part: np.ndarray, times: Any) -> float:
    """The mean log-predictive of rows by fits that have not seen them, where T_x counts as often as
    suits. Of several sources that is the mean over their subsets, as they teach."""
    rows, there, share = job.model.copies(job.z)
    rows, there, share = (own[part[rows] >= 0] for own in (rows, there, share))
    y, weight = {name: values[rows] for name, values in y.items()}, job.weight[rows] * share
    z, sources = job.model.lacking(job.z[rows], there), there.shape[1]
    said = trained.said_of(z, part[rows])
    learned = Learned((trained,), np.ones(1), part, "", Correction.of_all(1.0, sources=sources))

    def score(often: float) -> float:
        own = trained.corrected(said, z, Correction.of_all(often, sources=sources))
        found = learned.log_score(own, y) @ weight / weight.sum()
        return float(found) if np.isfinite(found) else -np.inf

    return max(map(score, times))
