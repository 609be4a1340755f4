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
should be: their differences come on top. So with the weights a correction is learned: how often T_x
counts (decision 19), for each subset of sources where rows may lack some (decision 28); and, of one
table, how far from the usual it is to be (decision 31), how much rows differ in what T_x is worth
(decision 35), and in how much doubt that is (decision 37). Several training sets (the folds of a
cross-validation) are learned at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # optimize is loaded when it is asked for
from scipy.special import logsumexp

from ldf import check, folds
from ldf.baselines import PENALTY, regression
from ldf.compiled import drop_if_too_many
from ldf.ensemble import Ensemble
from ldf.fit import State
from ldf.ground import ground_of
from ldf.learned import Correction, Learned, Said, Trained
from ldf.mappings import Linear
from ldf.objective import balanced_weights, maximum_likelihood
from ldf.preprocess import Blocks, Preprocess, Sourced
from ldf.spec import Spec
from ldf.statistic import Arrivals
from ldf.table import Table, empirical_rate, somewhere
from ldf.train import Job, Tell, train

SHARPEST = np.log(2)  # T_x may count twice as often as it says, or half as often
UNUSUAL = 0.35  # how far its logarithm is expected to be from the usual in a subset of sources
USUAL = 0.2  # how far log stretch, log contrast, doubt, and level beside units' spread are expected
DOUBT = 0.5  # where doubt is looked for, and half of the most that there may be
DOUBLING = 0.005  # nats a unit that doubt has to gain, since with it components are twice as many
ROUNDS = 3  # of shares, and of the correction given them


def learn(
    spec: Spec,
    table: Table,
    seed: int,
    training: np.ndarray | None = None,
    resume: State | None = None,
    watch: Callable[[State], None] | None = None,
    tell: Tell | None = None,
) -> list[Learned]:
    """Learn from each training set (a row of `training`, sets × M); by default from all rows."""
    drop_if_too_many()
    every = np.ones((1, len(table.x)), bool) if training is None else training
    every = every & table.seen & (table.weight > 0)
    ensemble = spec.ensemble.settled(int(every.any(0).sum()), smooth=spec.smooth)
    asked, parts = ensemble.parts, _possible_parts(spec, ensemble, table, every)
    spec = replace(spec, ensemble=replace(ensemble, parts=parts))
    references = _references(spec, table, every, seed, tell)
    pairs = zip(every, references, strict=True)
    sets = [_jobs(spec, table, rows, seed, reference) for rows, reference in pairs]
    jobs = [job for some in sets for job in some]
    done, status = train(jobs, spec, table, seed, resume, watch, tell)
    if parts < asked:
        status += f" There are too few units for {asked} parts, so there were {parts}."
    many = len(spec.ensemble.members)
    return [
        combined(spec.ensemble, table, done[i * many : (i + 1) * many], some[0].part, status)
        for i, some in enumerate(sets)
    ]


# --- before training ----------------------------------------------------------------------------


def _references(
    spec: Spec, table: Table, every: np.ndarray, seed: int, tell: Tell | None
) -> list[np.ndarray | None]:
    """log p_0 of each row, for each training set; None where it is the prior's, which members may
    have different ones of. A model says it as it does everywhere: without having seen the row, if
    it was learned in parts."""
    if spec.objective is maximum_likelihood:
        return [np.zeros(len(table.x))] * len(every)
    if spec.reference == "prior":
        return [None] * len(every)
    if spec.reference == "carried":
        if table.reference is None:
            remedy = "give the fitted model itself"
            raise check.DataError("reference", None, "carried", "is not with the rows", remedy)
        return [table.reference] * len(every)
    y = somewhere(table.y, table.seen)
    found = learn(_rival(spec), table, seed, every, tell=tell)
    return [one.log_score(one.said(table.x, one.part), y) for one in found]


def _rival(spec: Spec) -> Spec:
    """The model that p_0 is of. To a regression a prior is added if it is given (Appendix C)."""
    if isinstance(spec.reference, Spec):
        return spec.reference
    mapping = Linear(True, shape=spec.family.natural is Arrivals)  # Appendix D
    kind = spec.ensemble.members[0].preprocess
    own = regression(spec.family, mapping, PENALTY, kind)
    return own if isinstance(spec.prior, str) else replace(own, prior=spec.prior)


def _jobs(
    spec: Spec, table: Table, rows: np.ndarray, seed: int, reference: np.ndarray | None = None
) -> list[Job]:
    """One a member, with all that depends on the training rows learned from these alone."""
    family, ensemble = spec.family, spec.ensemble
    rate = empirical_rate(family, table.y, rows)
    part = np.full(len(rows), -1)
    part[rows] = _parts(table, rate, rows, ensemble.parts, seed)
    weight = np.where(rows, table.weight, 0.0)
    if spec.balance:
        weight[rows] *= balanced_weights(rate[rows], spec.balance)
    kinds = {m: spec.kinds(m) for m in ensemble.members}
    wanted = dict.fromkeys(kind for some in kinds.values() for kind in some)
    single = {kind: _preprocess(spec, kind, table.x[rows]) for kind in wanted}
    learned = {
        some: single[some[0]] if len(some) == 1 else Blocks(tuple(single[kind] for kind in some))
        for some in kinds.values()
    }
    z = {some: preprocess.apply(table.x) for some, preprocess in learned.items()}
    jobs = []
    for member in ensemble.members:
        kind, model = kinds[member], spec.model(member)
        ground = ground_of(model, spec.prior, table, rows, member.strength)
        log_p0 = reference
        if log_p0 is None:
            y = somewhere(table.y, table.seen)
            log_p0 = np.asarray(family.log_predictive(ground.prior, **y))
        jobs.append(Job(model, member, learned[kind], ground, z[kind], weight, part, log_p0))
    return jobs


def _preprocess(spec: Spec, kind: str, x: np.ndarray) -> Any:
    if not spec.sources:
        return Preprocess.learn(kind, x)
    return Sourced.learn(kind, x, spec.sources)


def _possible_parts(spec: Spec, ensemble: Ensemble, table: Table, every: np.ndarray) -> int:
    """As many as asked for, or as there are units (or groups of them) in every training set."""
    parts = ensemble.parts
    linear = all(spec.model(member).way == "newton" for member in ensemble.members)
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


# --- after training -----------------------------------------------------------------------------


def combined(
    ensemble: Ensemble, table: Table, trained: list[Trained], part: np.ndarray, status: str
) -> Learned:
    """Members that learned from the same rows, without the same parts, as one answer."""
    many, sources = len(trained), trained[0].model.there(table.x[:0]).shape[1]
    share, correction = np.full(many, 1 / many), Correction.of_all(1.0, sources=sources)
    if ensemble.parts > 1:
        rows = part >= 0
        y, weight = {name: values[rows] for name, values in table.y.items()}, table.weight[rows]
        unseen = _Unseen.of(trained, table.x[rows], part[rows], y, weight)
        if ensemble.combine == "stack":
            share, times = _stacked_and_sharpened(unseen.sharpened, weight)
            if sources:
                correction = _by_subset(unseen, share, times)
            else:
                share, correction = _stretched(unseen, share, times)
        means = unseen.scores(correction) @ (weight / weight.sum())
        trained = [t._replace(score=float(mean)) for t, mean in zip(trained, means, strict=True)]
    if ensemble.combine == "best":
        best = int(np.argmax([t.score for t in trained]))
        trained, share = [trained[best]], np.ones(1)
    return Learned(tuple(trained), share, part, status, correction)


def _stacked_and_sharpened(
    scores: Callable[[float], np.ndarray], weight: np.ndarray
) -> tuple[np.ndarray, float]:
    """The members' shares, and how often their T_x count, under which the rows are likeliest."""

    def loss(log_times: float) -> float:
        found = scores(np.exp(log_times))
        share = stacked(found, weight)
        return -float(logsumexp(found, 0, b=share[:, None]) @ weight)

    times = _least(loss)
    return stacked(scores(times), weight), times


def _least(loss: Callable[[float], float]) -> float:
    """The sharpness whose logarithm loses least."""
    found = scipy.optimize.minimize_scalar(
        loss, bounds=(-SHARPEST, SHARPEST), method="bounded", options={"xatol": 0.01}
    )
    return float(np.exp(found.x))


def _stretched(unseen: _Unseen, share: np.ndarray, times: float) -> tuple[np.ndarray, Correction]:
    """The shares and the correction under which the rows are likeliest, if no more is expected to
    be wrong than `USUAL`: few rows change little."""
    spread, typical, weight = unseen.spread, unseen.typical, unseen.weight
    splits = len(typical)
    doubt, level = 3 * splits, slice(3 * splits + 1, None)

    def correction(v: np.ndarray) -> Correction:
        times, stretch, contrast = np.exp(v[:doubt]).reshape(3, splits)
        return Correction.of_all(times, stretch, v[level] * spread, contrast, typical, v[doubt])

    def loss(v: np.ndarray, share: np.ndarray) -> float:
        likely = logsumexp(unseen.scores(correction(v)), 0, b=share[:, None]) @ weight
        return float((v[splits:] ** 2).sum() / USUAL**2 / 2 - likely)

    most = np.array([SHARPEST] * doubt + [2 * DOUBT] + [1.0] * len(spread))
    least, doubting = -most, np.arange(len(most)) == doubt
    least[doubt] = 0.0

    def climbed(v: np.ndarray, share: np.ndarray, free: Any) -> tuple[np.ndarray, np.ndarray]:
        """From there; what is not free stays as it is."""
        bounds = scipy.optimize.Bounds(np.where(free, least, v), np.where(free, most, v))
        for _ in range(ROUNDS):
            options = {"maxiter": 20, "eps": 1e-4}
            v = scipy.optimize.minimize(
                loss, v, (share,), method="L-BFGS-B", bounds=bounds, options=options
            ).x
            share = stacked(unseen.scores(correction(v)), weight)
        return v, share

    start = np.where(np.arange(len(most)) < splits, np.log(times), 0.0)
    found, share = climbed(start, share, ~doubting)
    # In doubt T_x counts more often, or the mixture of two would be too wide.
    free = doubting | (np.arange(len(most)) < splits)
    doubtful = climbed(np.where(doubting, DOUBT, found), share, free)
    if loss(found, share) - loss(*doubtful) > DOUBLING * weight.sum():
        found, share = climbed(*doubtful, True)
    return share, correction(found)


class _Unseen(NamedTuple):
    """Rows, and what each member says of them by a fit that has not seen them."""

    trained: list[Trained]
    x: np.ndarray
    part: np.ndarray
    y: dict[str, np.ndarray]
    weight: np.ndarray
    said: list[Said]

    @classmethod
    def of(cls, trained: Any, x: Any, part: Any, y: Any, weight: Any) -> _Unseen:
        return cls(trained, x, part, y, weight, [t.said(x, part) for t in trained])

    @property
    def there(self) -> np.ndarray:
        return self.trained[0].model.there(self.x)

    @property
    def spread(self) -> np.ndarray:
        """How much units differ in what is said of them: the mean over members."""
        said = [own.pseudo.location for own in self.said]
        return np.mean([one.std((0, 1), where=np.isfinite(one)) for one in said], 0)

    @property
    def typical(self) -> np.ndarray:
        """How many observations T_x is worth, of each split: the geometric mean over members and
        rows."""
        sizes = np.concatenate([own.pseudo.sizes for own in self.said])
        by_split = (of[of > 0] for of in np.moveaxis(sizes, -1, 0))
        return np.array([np.exp(np.log(of).mean()) if of.size else 1.0 for of in by_split])

    def scores(self, correction: Correction) -> np.ndarray:
        """Members × rows."""
        family = self.trained[0].model.family
        pairs = zip(self.trained, self.said, strict=True)
        each = [t.corrected(own, self.x, correction) for t, own in pairs]
        return np.stack([own.log_score(family, self.y) for own in each])

    def sharpened(self, times: float) -> np.ndarray:
        """Members × rows, where T_x counts so many times in all of them."""
        return self.scores(Correction.of_all(times, sources=self.there.shape[1]))

    def with_only(self, kept: np.ndarray) -> _Unseen:
        """Those that have these sources, without the others."""
        rows = (self.there >= kept).all(1)
        model: Any = self.trained[0].model
        y = {name: values[rows] for name, values in self.y.items()}
        x, part, weight = self.x[rows], self.part[rows], self.weight[rows]
        return _Unseen.of(self.trained, model.lacking(x, kept), part, y, weight)


def _by_subset(unseen: _Unseen, share: np.ndarray, usual: float) -> Correction:
    """A sharpness for each subset of sources, from rows that have these, as if they had no others.
    It may be other than usual by what these rows tell."""

    def best(some: _Unseen) -> float:
        def loss(log_times: float) -> float:
            likely = logsumexp(some.sharpened(np.exp(log_times)), 0, b=share[:, None]) @ some.weight
            return ((log_times - np.log(usual)) / UNUSUAL) ** 2 / 2 - float(likely)

        return _least(loss) if len(some.x) else usual

    model: Any = unseen.trained[0].model
    subsets = model.subsets
    times = np.array([best(unseen.with_only(kept)) for kept in subsets])
    return Correction.of_all(1.0)._replace(there=subsets, times=times[:, None])


def stacked(scores: np.ndarray, weight: np.ndarray | None = None, steps: int = 1000) -> np.ndarray:
    """The mixture weights under which members × rows of log-predictives are likeliest, by EM.

    Each member begins with one row's worth, so that few rows do not silence any."""
    many = len(scores)
    weight = np.ones(scores.shape[1]) if weight is None else weight
    share = np.full(many, 1 / many)
    ratio = np.exp(scores - scores.max(0))
    for _ in range(steps):
        after = (share * (ratio @ (weight / (share @ ratio))) + 1) / (weight.sum() + many)
        if np.abs(after - share).max() < 1e-8:
            break
        share = after
    return share
