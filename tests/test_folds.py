"""What is held out together is held out together, and nothing of it is trained on."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from ldf import DataError
from ldf.folds import Split, buffered, forward, group_codes, grouped, strata, stratified

NAN = float("nan")
rng = np.random.default_rng(30)
TRIALS = rng.integers(0, 12, 400)
with np.errstate(invalid="ignore"):
    RATE = rng.binomial(TRIALS, rng.beta(0.5, 1.5, 400)) / TRIALS  # many zeros, some without trials
GROUP = rng.integers(0, 37, 400) ** 2 // 40  # of very unequal size
PLACE = rng.normal(size=(400, 2)) * [3, 1]


def held_by(split: Split, label: Any) -> np.ndarray:
    """Folds × labels: how many rows of each label every fold holds out."""
    label = np.asarray(label)
    return np.array([[(label[held] == one).sum() for one in np.unique(label)] for _, held in split])


# --- stratified ---------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [2, 5, 10, 400])
def test_each_class_and_all_rows_are_dealt_evenly(folds: int) -> None:
    split = stratified(RATE, folds, seed=1)
    assert np.ptp(held_by(split, strata(RATE)), axis=0).max() <= 1
    assert np.ptp(split.held.sum(1)) <= 1
    assert (split.held.sum(0) == 1).all()
    np.testing.assert_array_equal(split.training, ~split.held)


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0, NAN]) | st.floats(0, 1), min_size=2, max_size=60),
    st.integers(2, 12),
    st.integers(1, 12),
)
def test_any_rates_are_dealt_evenly(rate: list[float], folds: int, classes: int) -> None:
    folds = min(folds, len(rate))
    split = stratified(rate, folds, seed=0, classes=classes)
    assert np.ptp(held_by(split, strata(rate, classes)), axis=0).max() <= 1
    assert np.ptp(split.held.sum(1)) <= 1


def test_folds_resemble_each_other_more_than_random_ones_do() -> None:
    def spread(split: Split) -> float:
        return float(np.std([np.nanmean(RATE[held]) for _, held in split]))

    shuffled = [Split.of(rng.permutation(np.arange(400) % 10)) for _ in range(20)]
    mine = [spread(stratified(RATE, 10, seed)) for seed in range(20)]
    assert np.mean(mine) < 0.5 * np.mean([spread(split) for split in shuffled])


def test_classes_are_quantiles_and_never_split_a_tie() -> None:
    np.testing.assert_array_equal(strata(np.arange(100) / 100), np.arange(100) // 10)
    classes = strata(RATE)
    known = np.isfinite(RATE)
    for one in np.unique(RATE[known]):
        assert len(np.unique(classes[known & (one == RATE)])) == 1
    assert len(np.unique(classes[~known])) == 1
    assert not np.isin(classes[~known], classes[known]).any()
    in_order = classes[known][np.argsort(RATE[known])]
    assert (np.diff(in_order) >= 0).all()  # higher rates, higher classes


def test_a_rate_that_fills_a_class_is_alone_in_it() -> None:
    rate = np.r_[np.linspace(0.01, 0.99, 40), np.zeros(60), np.ones(70), np.full(50, 0.5)]
    classes = strata(rate)
    for tied in (0.0, 1.0, 0.5):
        assert (rate[classes == classes[rate == tied][0]] == tied).all()


def test_scikit_learn_deals_as_evenly() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    theirs = selection.StratifiedKFold(10, shuffle=True, random_state=0)
    label = strata(RATE)
    with np.errstate(all="ignore"):
        folds = [held for _, held in theirs.split(np.zeros((400, 1)), label)]
    counts = np.array([[(label[held] == one).sum() for one in np.unique(label)] for held in folds])
    mine = held_by(stratified(RATE, 10, seed=0), label)
    np.testing.assert_array_equal(np.sort(mine, 0), np.sort(counts, 0))


# --- grouped ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [None, RATE])
@pytest.mark.parametrize("folds", [2, 5, 10])
def test_a_group_is_never_split(rate: Any, folds: int) -> None:
    split = grouped(GROUP, folds, seed=2, rate=rate)
    assert ((held_by(split, GROUP) > 0).sum(0) == 1).all()
    assert (split.held.sum(0) == 1).all()
    for training, held in split:
        assert not set(GROUP[training]) & set(GROUP[held])


def test_groups_are_as_level_as_scikit_learns() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    for folds in (2, 3, 5, 8):
        theirs = selection.GroupKFold(folds).split(np.zeros((400, 1)), groups=GROUP)
        sizes = sorted(len(held) for _, held in theirs)
        assert sorted(grouped(GROUP, folds, seed=3).held.sum(1)) == sizes


def test_groups_of_one_row_are_level_and_with_a_rate_nearly_stratified() -> None:
    assert np.ptp(grouped(np.arange(403), 10, seed=4).held.sum(1)) == 1
    split = grouped(np.arange(400), 10, seed=4, rate=RATE)
    assert np.ptp(split.held.sum(1)) <= 2
    assert np.ptp(held_by(split, strata(RATE)), axis=0).max() <= 2


def test_a_rate_levels_the_classes_of_groups() -> None:
    group = np.repeat(np.arange(60), 5)
    rate = np.repeat(rng.random(60), 5)  # all rows of a group are alike

    def unevenness(split: Split) -> float:
        return float(held_by(split, strata(rate, 5)).std(0).mean())

    without = np.mean([unevenness(grouped(group, 4, seed)) for seed in range(10)])
    assert np.mean([unevenness(grouped(group, 4, s, rate, 5)) for s in range(10)]) < 0.5 * without


def test_groups_have_any_labels() -> None:
    names = pd.Series(["north", "south", "east"] * 4)
    for labels in (names, names.to_list(), names.to_numpy(), names.astype("category")):
        np.testing.assert_array_equal(group_codes("group", labels), [0, 1, 2] * 4)
    np.testing.assert_array_equal(group_codes("group", [3, "a", 2.5, "a"]), [0, 1, 2, 1])


# --- buffered -----------------------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_within_the_distance_is_trained_on_and_everything_else_is(
    distance: float, seed: int
) -> None:
    split = buffered(PLACE, 5, seed, distance)
    assert (split.held.sum(0) == 1).all()
    for training, held in zip(split.training, split.held, strict=True):
        nearest = cdist(PLACE, PLACE[held]).min(1)
        assert (nearest[training] >= distance - 1e-12).all()
        assert training[~held & (nearest > distance + 1e-12)].all()
    assert split.held.sum(1).min() > 40


def test_blocks_are_held_out_not_single_rows() -> None:
    def alone(split: Split) -> float:
        """The share of rows whose nearest neighbour is held out in another fold."""
        apart = cdist(PLACE, PLACE)
        np.fill_diagonal(apart, np.inf)
        return float((split.fold != split.fold[apart.argmin(1)]).mean())

    assert alone(buffered(PLACE, 5, 0, 0.0)) < 0.25 < 0.6 < alone(stratified(RATE, 5, 0))


@pytest.mark.parametrize(
    "place",
    [
        np.arange(12.0),  # on a line
        np.c_[np.arange(12.0), np.zeros(12)],  # on a line in the plane
        np.repeat([[0.0, 0], [1, 0], [0, 1]], 4, axis=0),  # as few places as folds
        np.r_[np.zeros((6, 2)), [[1e-13, 0]], np.ones((5, 2)) * 1e6],  # far and near
        rng.normal(size=(12, 3)),
    ],
    ids=["line", "flat", "few", "far", "solid"],
)
def test_odd_places_are_split_and_equal_ones_stay_together(place: np.ndarray) -> None:
    split = buffered(place, 3, 5, 0.0)
    points = place.reshape(12, -1)
    same = (points[:, None] == points[None]).all(-1)
    assert (split.fold[:, None] == split.fold[None])[same].all()


# --- forward ------------------------------------------------------------------------------------


def test_only_the_past_is_trained_on() -> None:
    time = rng.integers(0, 30, 400)
    split = forward(time, 6)
    for training, held in split:
        assert time[training].max() < time[held].min()
        assert not np.isin(time[held], np.delete(time, held)).any()  # one time, one block
        assert len(training) == (time < time[held].min()).sum()  # all of the past
    first = split.training[0]
    np.testing.assert_array_equal(split.held.sum(0), ~first)
    assert (split.fold[first] == -1).all()
    assert split.held.sum(1).min() > 400 / 7 / 2


def test_scikit_learn_cuts_the_same_where_times_differ() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    theirs = selection.TimeSeriesSplit(5).split(np.zeros((60, 1)))
    for mine, (training, held) in zip(forward(np.arange(60), 5), theirs, strict=True):
        np.testing.assert_array_equal(mine[0], training)
        np.testing.assert_array_equal(mine[1], held)


@given(st.lists(st.integers(0, 9), min_size=3, max_size=50), st.integers(2, 9))
def test_any_times_are_cut_if_there_are_enough(time: list[int], folds: int) -> None:
    if len(set(time)) <= folds:
        with pytest.raises(DataError):
            forward(time, folds)
    else:
        forward(time, folds).check(every=False, time=time)


def test_dates_are_times() -> None:
    days = pd.Series(pd.date_range("2020-01-31", periods=8, freq="D"))[::-1]
    by_date, by_number = forward(days, 3), forward(np.arange(8)[::-1], 3)
    np.testing.assert_array_equal(by_date.held, by_number.held)
    aware = days.dt.tz_localize("Africa/Kigali")
    np.testing.assert_array_equal(forward(aware, 3).held, by_number.held)
    with pytest.raises(DataError, match="column 'time', row 7 is missing"):
        forward(days.mask(days.index == 7), 3)


# --- seeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: stratified(RATE, 5, seed),
        lambda seed: grouped(np.arange(400) // 4, 5, seed),
        lambda seed: grouped(np.arange(400) // 4, 5, seed, RATE),
        lambda seed: buffered(PLACE, 5, seed, 0.1),
    ],
)
def test_a_seed_fixes_the_split_and_another_makes_another(make: Any) -> None:
    def together(split: Split) -> np.ndarray:
        return split.fold[:, None] == split.fold[None]

    np.testing.assert_array_equal(make(7).held, make(7).held)
    assert (together(make(7)) != together(make(8))).any()  # not only numbered otherwise


# --- the audit ----------------------------------------------------------------------------------


def test_a_split_is_read_off_a_column_of_folds() -> None:
    split = Split.of([0, 1, 1, 2])
    assert len(split) == 3
    np.testing.assert_array_equal(split.fold, [0, 1, 1, 2])
    assert [(a.tolist(), b.tolist()) for a, b in split][1] == ([0, 3], [1, 2])


def altered(
    row: int, fold: int, *, training: bool | None = None, held: bool | None = None
) -> Split:
    split = Split.of([0, 0, 1, 1, 2, 2])
    trains, holds = split.training.copy(), split.held.copy()
    trains[fold, row] = trains[fold, row] if training is None else training
    holds[fold, row] = holds[fold, row] if held is None else held
    return Split(trains, holds)


GOOD = Split.of([0, 0, 1, 1, 2, 2])
LEAKS: dict[str, tuple[Split, dict[str, Any], str]] = {
    "both": (altered(3, 1, training=True), {}, "row 3 is trained on in fold 1 and is held out in"),
    "twice": (altered(3, 2, held=True, training=False), {}, "row 3 is held out more than once"),
    "never": (altered(3, 1, held=False), {}, "row 3 is never held out"),
    "group": (GOOD, {"group": list("abccdb")}, "row 5 is trained on in fold 0 and is of a group"),
    "place": (
        GOOD,
        {"place": [0, 1, 5, 6, 9, 10], "distance": 3.5},
        "row 4 is trained on in fold 1 and is too close",
    ),
    "tie": (
        Split(np.array([[1, 1, 0, 0], [1, 1, 0, 0]], bool), np.eye(4, dtype=bool)[2:]),
        {"every": False, "time": [0, 2, 3, 2]},
        "row 1 is trained on in fold 1 and is not before",
    ),
    "time": (GOOD, {"time": [0, 1, 2, 3, 4, 5]}, "row 2 is trained on in fold 0 and is not before"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found(name: str) -> None:
    split, given_, sentence = LEAKS[name]
    with pytest.raises(DataError, match=re.escape(sentence)):
        split.check(**given_)


def test_what_does_not_leak_passes() -> None:
    assert GOOD.check(group=list("aabbcc"), place=[0, 1, 5, 6, 10, 11], distance=4.0) is GOOD
    altered(3, 1, held=False).check(every=False)
    with pytest.raises(DataError, match="0 trains on no row"):
        Split(np.zeros((2, 2), bool), np.eye(2, dtype=bool)).check()


# --- what a user reads --------------------------------------------------------------------------

SENTENCES = """
stratified([0.1, 0.2, 0.3], 5, 0)
    column 'folds': 5 is more than there are units, 3; ask for 3 or fewer.
stratified([0.1], 2, 0)
    column 'folds': 2 is more than there are units, 1; give two units or more.
stratified([0.1, 0.2, 0.3], 1, 0)
    column 'folds': 1 is too few; ask for 2 or more.
stratified([0.1, 0.2, 0.3], 2.5, 0)
    column 'folds': 2.5 is not a whole number; give one, from 2 on.
stratified([0.1, 0.2, 0.3], 2, 0, classes=0)
    column 'classes': 0 is too few; ask for 1 or more.
stratified([[0.1, 0.2], [0.3, 0.4]], 2, 0)
    column 'rate' is not one value a row; give one value a unit.
stratified([0.1, float('inf')], 2, 0)
    column 'rate', row 1: inf is infinite; give a finite number.
grouped(['a', 'a', 'b', 'b'], 3, 0)
    column 'group' has 2 groups, fewer than 3 folds; ask for 2 or fewer.
grouped(['a', 'a', 'a'], 2, 0)
    column 'group' has one group; give two or more: what is held out is not trained on.
grouped(['a', None, 'b'], 2, 0)
    column 'group', row 1 is missing; give every row a group.
grouped(pd.Series([1, NAN, 2], index=['x', 'y', 'z']), 2, 0)
    column 'group', row 'y' is missing; give every row a group.
grouped([1, 2, 3], 2, 0, rate=[0.1, 0.2])
    column 'rate' has 2 rows but column 'group' has 3 rows; give every column one value a unit.
buffered([[0, 0], [1, NAN], [2, 2]], 2, 0, 1.0)
    column 'place', row 1 is missing; give a number.
buffered([[0, 0], [0, 0], [1, 1]], 3, 0, 1.0)
    column 'place' has 2 different places, fewer than 3 folds;
    give more places, or group the rows instead.
buffered([0, 1, 2, 3], 2, 0, -1.0)
    column 'distance': -1 is negative; give a number that is zero or more.
buffered([0, 1, 2, 3], 2, 0, [1.0, 2.0])
    column 'distance' is not one number; give one for all rows.
buffered([0, 1, 2, 3], 2, 0, 9.0)
    column 'distance': 9 leaves no row to train on in fold 0;
    choose a shorter distance, or more folds.
forward([1, NAN, 3], 2)
    column 'time', row 1 is missing; give every row a time.
forward([1, 1, 2, 2], 2)
    column 'time' has 2 different times, too few for 2 folds;
    2 folds need 3: ask for fewer, or group the rows instead.
Split.of([0, 2, 2])
    column 'fold': 1 holds out no row; ask for other folds.
"""


def _sentences() -> list[tuple[str, str]]:
    calls = re.split(r"\n(?=\S)", SENTENCES.strip())
    return [(call, " ".join(text.split())) for call, text in (one.split("\n", 1) for one in calls)]


@pytest.mark.parametrize(("call", "sentence"), _sentences())
def test_bad_input_gets_one_sentence(call: str, sentence: str) -> None:
    with pytest.raises(DataError) as error:
        eval(call)
    assert str(error.value) == sentence
