"""Who is held out together.

A score is honest only if what is scored was not trained on. How far apart the two must be depends
on what ties units together, so there are four kinds of split:

- `stratified`: nothing does; each fold has low and high rates alike (Section 5.2 of the paper).
- `grouped`: units of one group (a household panel, a state) are held out together.
- `buffered`: neighbours resemble each other; blocks of a map are held out, and the rows closer to
  them than a distance are not trained on either.
- `forward`: the future is held out, and only the past is trained on.

>>> import numpy as np
>>> rate = np.array([0.1, 0.9, 0.2, 0.8])
>>> split = stratified(rate, folds=2, seed=0)
>>> [int((rate[held] > 0.5).sum()) for training, held in split]  # in each, one of the high rates
[1, 1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial import KDTree

from ldf import check
from ldf.check import DataError
from ldf.special import check_draws


@dataclass(frozen=True, eq=False)
class Split:
    """For each of F folds, which of the M rows are trained on and which are held out."""

    training: np.ndarray  # F × M, bool
    held: np.ndarray  # F × M, bool

    @classmethod
    def of(cls, fold: Any) -> Self:
        """Each row is held out in the fold of this number, from 0 on, and trained on elsewhere."""
        number = np.asarray(check.counts("fold", fold, missing="give every row a fold")).astype(int)
        _check_column("fold", number)
        _check_folds(int(number.max(initial=-1)) + 1, len(number))
        held = number == np.arange(number.max() + 1)[:, None]
        return cls(~held, held).check()

    def __len__(self) -> int:
        return len(self.held)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of each fold, the positions of the rows trained on and of those held out."""
        for training, held in zip(self.training, self.held, strict=True):
            yield np.flatnonzero(training), np.flatnonzero(held)

    @property
    def fold(self) -> np.ndarray:
        """The fold each row is held out in; -1 where in none."""
        return np.where(self.held.any(0), self.held.argmax(0), -1)

    def check(
        self,
        *,
        every: bool = True,
        group: Any = None,
        place: Any = None,
        distance: float = 0.0,
        time: Any = None,
    ) -> Self:
        """Raise if a fold leaks: if it trains on a row it holds out, or on one of the same group,
        or closer than the distance, or not before. A row is held out once; without `every`, some
        may never be, as those before the first cut in time."""
        for fold, (training, held) in enumerate(self):
            for rows, what in ((training, "trains on"), (held, "holds out")):
                if len(rows) == 0:
                    raise DataError("fold", None, fold, f"{what} no row", "ask for other folds")
        times = self.held.sum(0)
        self._refuse(times > 1, "is held out more than once", "hold it out in one fold")
        if every:
            self._refuse(times == 0, "is never held out", "hold it out in one fold")
        self._refuse_leak(self.held, "is held out in it too")
        if group is not None:
            codes = group_codes("group", group)
            inside = np.stack([np.isin(codes, codes[held]) for held in self.held])
            self._refuse_leak(inside, "is of a group held out in it")
        if place is not None:
            points = _points(place)
            near = np.stack([_gap(points, held) < distance for held in self.held])
            self._refuse_leak(near, "is too close to a row held out in it")
        if time is not None:
            clock = _clock(time)
            late = np.stack([clock >= clock[held].min() for held in self.held])
            self._refuse_leak(late, "is not before the rows held out in it")
        return self

    def _refuse(self, wrong: np.ndarray, problem: str, remedy: str) -> None:
        if wrong.any():
            raise DataError("fold", int(np.argmax(wrong)), None, problem, remedy)

    def _refuse_leak(self, related: np.ndarray, why: str) -> None:
        for fold, wrong in enumerate(self.training & related):
            self._refuse(wrong, f"is trained on in fold {fold} and {why}", "leave it out there")


# --- kinds of split -----------------------------------------------------------------------------


def stratified(rate: Any, folds: int, seed: Any, classes: int = 10) -> Split:
    """Low and high rates alike in every fold. A row without one (NaN: no trials) has its own class.

    Both each class and all rows are spread over the folds as evenly as whole rows allow.
    """
    stratum = strata(rate, classes)
    _check_folds(folds, len(stratum))
    rng = _generator(seed)
    order = rng.permutation(len(stratum))
    order = order[np.argsort(stratum[order], kind="stable")]
    # Dealing goes on from class to class where it stopped: that keeps the folds level too.
    fold = np.empty(len(stratum), int)
    fold[order] = rng.permutation(folds)[np.arange(len(stratum)) % folds]
    return Split.of(fold)


def grouped(group: Any, folds: int, seed: Any, rate: Any = None, classes: int = 10) -> Split:
    """All rows of a group together, the largest group first, each to where there is least of it.

    What is levelled is the number of rows, and with a `rate` that of each class of it as well.
    """
    codes = group_codes("group", group)
    _check_folds(folds, len(codes))
    groups = int(codes.max()) + 1
    if groups == 1:
        remedy = "give two or more: what is held out is not trained on"
        raise DataError("group", None, None, "has one group", remedy)
    if groups < folds:
        problem = f"has {groups} groups, fewer than {folds} folds"
        raise DataError("group", None, None, problem, f"ask for {groups} or fewer")
    size = np.bincount(codes)[:, None]
    amounts = size / len(codes)
    if rate is not None:
        check.same_length(group=group, rate=rate)
        stratum = strata(rate, classes)
        shares = np.zeros((groups, int(stratum.max()) + 1))
        np.add.at(shares, (codes, stratum), 1.0)
        # All classes together count as much as the number of rows.
        amounts = np.hstack([amounts, shares / shares.sum(0) / shares.shape[1]])
    return Split.of(_level(amounts, size[:, 0], folds, _generator(seed))[codes])


def buffered(place: Any, folds: int, seed: Any, distance: float, blocks: int = 4) -> Split:
    """Square blocks of a map, some `blocks` a fold. What is closer than `distance` to a row held
    out is not trained on.

    `place` has one row a unit: coordinates in the distance's own measure (project longitude and
    latitude first).
    """
    points = _points(place)
    _check_folds(folds, len(points))
    _check_whole("blocks", blocks, 1)
    reach = check.nonnegative("distance", distance)
    if np.ndim(reach):
        raise DataError("distance", None, None, "is not one number", "give one for all rows")
    distinct = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    places = int(distinct.max()) + 1
    if places < folds:
        problem = f"has {places} different places, fewer than {folds} folds"
        raise DataError("place", None, None, problem, "give more places, or group the rows instead")
    rng = _generator(seed)
    block = _blocks(points, distinct, min(blocks * folds, places), rng)
    size = np.bincount(block)
    held = Split.of(_level(size[:, None] / len(points), size, folds, rng)[block]).held
    training = np.stack([~here & (_gap(points, here) >= reach) for here in held])
    for fold, rows in enumerate(training):
        if not rows.any():
            problem = f"leaves no row to train on in fold {fold}"
            remedy = "choose a shorter distance, or more folds"
            raise DataError("distance", None, distance, problem, remedy)
    return Split(training, held).check()


def forward(time: Any, folds: int) -> Split:
    """Train on all rows strictly before a cut, hold out those from it to the next. Rows of one time
    stay together; those before the first cut are never held out."""
    clock = _clock(time)
    _check_folds(folds, len(clock))
    moment, position, size = np.unique(clock, return_inverse=True, return_counts=True)
    if len(moment) <= folds:
        problem = f"has {len(moment)} different times, too few for {folds} folds"
        remedy = f"{folds} folds need {folds + 1}: ask for fewer, or group the rows instead"
        raise DataError("time", None, None, problem, remedy)
    # Blocks of like size: each cut is the moment nearest to its due share of the rows.
    before = np.concatenate([[0], np.cumsum(size)])[:-1]
    cuts = [0]
    for k in range(1, folds + 1):
        free = np.arange(cuts[-1] + 1, len(moment) - (folds - k))
        due = len(clock) * k / (folds + 1)
        cuts.append(int(free[np.argmin(np.abs(before[free] - due))]))
    block = np.searchsorted(cuts, position, side="right") - 1
    number = np.arange(1, folds + 1)[:, None]
    return Split(block < number, block == number).check(every=False)


# --- classes, groups, places, times -------------------------------------------------------------


def strata(rate: Any, classes: int = 10) -> np.ndarray:
    """The class of each row, from 0 on: between which quantiles its rate is. Equal rates are in one
    class, a rate that fills a class is alone in it, rows without a rate are in one of their own."""
    _check_whole("classes", classes, 1)
    values = np.asarray(check.numbers("rate", rate, absent=True), dtype=float)
    _check_column("rate", values)
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(len(values), int)
    inner = np.linspace(0, 1, classes + 1)[1:-1]
    edges, times = np.unique(np.quantile(values[known], inner), return_counts=True)
    stratum = np.searchsorted(edges, values) + np.searchsorted(edges[times > 1], values, "right")
    stratum = np.where(known, stratum, -1)
    return np.unique(stratum, return_inverse=True)[1].reshape(-1)


def group_codes(column: str, values: Any) -> np.ndarray:
    """Each row's group as a number from 0 on, in the order of appearance."""
    labels = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    _check_column(column, labels)
    entries = labels.tolist()
    wrong = np.array([_is_missing(entry) for entry in entries], bool)
    check.refuse(column, values, wrong, "is missing", "give every row a group")
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(entry, len(numbers)) for entry in entries], int)


def _is_missing(entry: Any) -> bool:
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry


def _points(place: Any) -> np.ndarray:
    points = np.asarray(check.numbers("place", place), dtype=float)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] == 0:
        remedy = "give one row of coordinates a unit"
        raise DataError("place", None, None, "is not rows of coordinates", remedy)
    return points


def _gap(points: np.ndarray, held: np.ndarray) -> np.ndarray:
    """How far each row is from the nearest that is held out."""
    return KDTree(points[held]).query(points)[0]


def _clock(time: Any) -> np.ndarray:
    """Numbers, or dates as a frame or an array has them."""
    missing = "give every row a time"
    if getattr(getattr(time, "dtype", None), "kind", None) == "M":
        clock = np.asarray(time, dtype="datetime64[us]")
        check.refuse("time", time, np.isnat(clock), "is missing", missing)
    else:
        clock = np.asarray(check.numbers("time", time, missing=missing))
    _check_column("time", clock)
    return clock


def _blocks(
    points: np.ndarray, distinct: np.ndarray, wanted: int, rng: np.random.Generator
) -> np.ndarray:
    """The block of each row in the coarsest of ever finer square grids that has enough blocks with
    rows in them; `distinct` numbers the different places."""
    points = points - points.min(0)
    side, corner = points.max(), rng.random(points.shape[1])
    while side > points.max() * 1e-9:
        cells = np.floor(points / side + corner)
        block = np.unique(cells, axis=0, return_inverse=True)[1].reshape(-1)
        if block.max() + 1 >= wanted:
            return block
        side *= 0.9
    return distinct


def _level(
    amounts: np.ndarray, size: np.ndarray, folds: int, rng: np.random.Generator
) -> np.ndarray:
    """A fold for each group, the largest first, each to where least is of what it has.

    This is the fold that adds least to the sum of squared amounts; an empty one has none of it,
    so that no fold stays empty.
    """
    order = rng.permutation(len(size))
    order = order[np.argsort(-size[order], kind="stable")]
    held = np.zeros((folds, amounts.shape[1]))
    fold = np.empty(len(size), int)
    scale = 1 / amounts.sum(0)
    for group in order:
        fold[group] = np.argmin(held @ (scale * amounts[group]))
        held[fold[group]] += amounts[group]
    return rng.permutation(folds)[fold]


# --- checks -------------------------------------------------------------------------------------


def _generator(seed: Any) -> np.random.Generator:
    check_draws(1, seed)
    return np.random.default_rng(seed)


def _check_column(column: str, values: np.ndarray) -> None:
    if values.ndim != 1:
        raise DataError(column, None, None, "is not one value a row", "give one value a unit")


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise DataError(name, None, value, "is not a whole number", f"give one, from {least} on")
    if value < least:
        raise DataError(name, None, value, "is too few", f"ask for {least} or more")


def _check_folds(folds: Any, units: int) -> None:
    _check_whole("folds", folds, 2)
    if units < folds:
        remedy = f"ask for {units} or fewer" if units > 1 else "give two units or more"
        problem = f"is more than there are units, {units}"
        raise DataError("folds", None, folds, problem, remedy)
