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
search is decided. Several training sets (the folds of a cross-validation) are learned at once.

The prior λ0 and T_x are not separately identified by p(y | x), so λ0 is given, or fitted to p(y)
without auxiliary data. "weak" keeps the mean of the fitted one, worth a tenth of its observations:
what it says is added to whatever auxiliary data say, and they cannot take it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from ldf import check, folds
from ldf.ensemble import Ensemble, Member
from ldf.families.base import Family
from ldf.fit import Rows, Settings, State, fit
from ldf.learned import Learned, Trained
from ldf.mappings import Linear
from ldf.model import Ground, Model
from ldf.objective import Objective, balanced_weights, maximum_likelihood
from ldf.preprocess import Preprocess
from ldf.solve import solve
from ldf.statistic import Arrivals, Statistic

WEAK = 0.1  # of the fitted prior's observations
PENALTY = 1e-3  # of regressions


PRIORS = {"weak": WEAK, "fitted": 1.0, "none": 0.0}  # how much of the fitted one
REFERENCES = ("prior", "regression")


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

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            check.one_of("prior", self.prior, tuple(PRIORS))
        check.one_of("reference", self.reference, REFERENCES)


class Table(NamedTuple):
    """What is learned from: features and primary data of the same M rows."""

    x: np.ndarray  # M × P, NaN where a cell is missing
    y: dict[str, np.ndarray]  # valid where seen
    seen: np.ndarray  # whether there are primary data
    weight: np.ndarray  # how much a row counts
    group: np.ndarray | None = None  # parts never split one


class Job(NamedTuple):
    """One member on one training set, before it is trained."""

    model: Model
    member: Member
    preprocess: Preprocess
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
    asked, parts = spec.ensemble.parts, _possible_parts(spec.ensemble, table, every)
    spec = replace(spec, ensemble=replace(spec.ensemble, parts=parts))
    sets = [_jobs(spec, table, rows, seed) for rows in every]
    jobs = [job for some in sets for job in some]
    if isinstance(spec.ensemble.mapping, Linear):
        solved = [_regressed(job, table, spec.ensemble.parts) for job in jobs]
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
    kinds = sorted({m.preprocess for m in ensemble.members})
    learned = {kind: Preprocess.learn(kind, table.x[rows]) for kind in kinds}
    z = {kind: preprocess.apply(table.x) for kind, preprocess in learned.items()}
    jobs = []
    for member in ensemble.members:
        kind, model = member.preprocess, Model(family, member.mapping, spec.certain)
        ground = ground_of(model, spec.prior, table, rows, member.strength)
        reference = np.zeros(len(rows))
        if spec.objective is not maximum_likelihood:
            reference = _reference(spec, table, rows, ground, z[kind])
        jobs.append(Job(model, member, learned[kind], ground, z[kind], weight, part, reference))
    return jobs


def empirical_rate(family: Family, y: dict[str, np.ndarray], seen: np.ndarray) -> np.ndarray:
    """t/n of each row's own primary data: NaN where there are none. Of a vector, the component
    that differs most between rows."""
    rate = np.full(len(seen), np.nan)
    if not seen.any():
        return rate
    statistic = family.statistic(**{name: values[seen] for name, values in y.items()})
    t, n = np.asarray(statistic.t, float), np.asarray(statistic.n, float)
    if t.ndim > 1:
        n = n if n.ndim == 1 else np.trace(n, axis1=-2, axis2=-1)
        t = t[:, np.argmax(np.nanvar(_ratio(t, n[:, None]), 0))]
    rate[seen] = _ratio(t, n)
    return rate


def _ratio(t: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.divide(t, n, out=np.full(np.broadcast_shapes(t.shape, n.shape), np.nan), where=n > 0)


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


def ground_of(
    model: Model, prior: Any, table: Table, rows: np.ndarray, strength: float = 1.0
) -> Ground:
    """What is known of all units alike, from the primary data of the training rows alone."""
    flat = Model(model.family, Linear(True, True, by=model.mapping.formulation))
    y = _somewhere(table.y, table.seen)
    start = {"slope": np.zeros((0, 0)), "bias": np.full(flat.outputs, 0.5)}
    nothing = np.empty((len(rows), 0))
    weight = np.where(rows, table.weight, 0.0)
    centre = solve(flat, flat.ground(), nothing, y, weight, start=start).weights["bias"]
    fitted = model.family.from_unconstrained(centre, flat.mapping.formulation)
    if isinstance(prior, str):
        prior = fitted * PRIORS[prior]
    return Ground(prior * strength, centre, fitted.output_scale(len(centre)))


def _reference(
    spec: Spec, table: Table, rows: np.ndarray, ground: Ground, z: np.ndarray
) -> np.ndarray:
    """log p_0 of each row: by the prior alone, or by a regression trained on the same rows."""
    y = _somewhere(table.y, table.seen)
    if spec.reference == "prior":
        return np.asarray(spec.family.log_predictive(ground.prior, **y))
    shape = spec.family.natural is Arrivals  # Appendix D
    model = Model(spec.family, Linear(constant_count=True, shape=shape))
    flat = ground_of(model, "fitted", table, rows)
    flat = flat._replace(prior=flat.prior.zero())
    weights = solve(model, flat, z, y, np.where(rows, table.weight, 0.0), PENALTY).weights
    with jax.enable_x64(True):
        return np.asarray(model.log_predictive(weights, flat, jnp.asarray(z), y))


def _somewhere(y: dict[str, np.ndarray], seen: np.ndarray) -> dict[str, np.ndarray]:
    """Primary data in every row: where there are none those of another, which must not count."""
    first = int(np.argmax(seen))

    def fill(values: np.ndarray) -> np.ndarray:
        mask = seen.reshape(seen.shape + (1,) * (values.ndim - 1))
        return np.where(mask, values, values[first])

    return {name: fill(values) for name, values in y.items()}


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
    found = fit(model, rows, ground, settings, seed, schedule, spec.objective, resume, watch)
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


def _regressed(job: Job, table: Table, parts: int) -> tuple[Trained, bool]:
    """A linear mapping to the last digit: on all training rows, and without each part. And whether
    all of these converged."""
    y = _somewhere(table.y, table.seen)
    converged = []

    def best(weight: np.ndarray) -> Any:
        found = solve(job.model, job.ground, job.z, y, weight, job.member.penalty)
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
    share = np.full(many, 1 / many)
    if ensemble.parts > 1:
        rows = job.part >= 0
        scores = np.stack([_out_of_fold(t, table, rows, job.part) for t in trained])
        weight = table.weight[rows] / table.weight[rows].sum()
        trained = [
            t._replace(score=float(s @ weight)) for t, s in zip(trained, scores, strict=True)
        ]
        if ensemble.combine == "stack":
            share = stacked(scores, table.weight[rows])
    if ensemble.combine == "best":
        best = int(np.argmax([t.score for t in trained]))
        trained, share = [trained[best]], np.ones(1)
    return Learned(tuple(trained), share, job.part, status)


def _out_of_fold(t: Trained, table: Table, rows: np.ndarray, part: np.ndarray) -> np.ndarray:
    pseudo = t.pseudo_observations(table.x[rows], part[rows])
    y = {name: values[rows] for name, values in table.y.items()}
    return np.asarray(t.model.family.log_predictive(t.ground.prior + pseudo, **y))


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
