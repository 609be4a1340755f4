"""What is asked of several units together is answered by joint draws; each unit by its own law.

The laws here are given by hand, so that what must come out is known: two members that agree, two
that disagree about every unit, and units of different certainty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

import ldf
from ldf import DataError, assess
from ldf.distributions import Beta, Dirichlet, mixture
from ldf.results import Posterior, Predictive, Units, narrowest
from ldf.statistic import ClassCounts, Trials

FRAME = pd.DataFrame(
    {"people": [10.0, 30.0, 60.0, 5.0], "state": ["a", "b", "a", "b"]}, index=list("wxyz")
)
SUCCESSES = np.array([[2.0, 8.0, 5.0, 1.0], [3.0, 18.0, 5.0, 4.0]])
FAILURES = np.array([[8.0, 2.0, 5.0, 3.0], [3.0, 2.0, 15.0, 4.0]])
SHARES = np.array([[0.7, 0.2, 0.5, 1.0], [0.3, 0.8, 0.5, 0.0]])


def posterior(frame: Any = FRAME, rows: Any = slice(None), shares: Any = SHARES) -> Posterior:
    law = mixture(shares[:, rows], Beta(Trials(SUCCESSES[:, rows], FAILURES[:, rows])))
    units = Units(frame, np.array(list("wxyz"), object)[rows], ())
    return Posterior(law, units, "auxiliary", None, np.zeros(len(units), bool))


POST = posterior()
MEANS = (SHARES * SUCCESSES / (SUCCESSES + FAILURES)).sum(0)


# --- Draws --------------------------------------------------------------------------------------


def test_draws_of_a_unit_are_of_its_posterior() -> None:
    draws = POST.sample(20_000, seed=1)
    assert draws.shape == (20_000, 4)
    for unit in range(4):
        assert scipy.stats.kstest(POST.cdf(draws)[:, unit], "uniform").pvalue > 1e-3


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.array_equal(POST.sample(50, seed=1), POST.sample(50, seed=1))
    assert not np.array_equal(POST.sample(50, seed=1), POST.sample(50, seed=2))
    monkeypatch.setattr("ldf.results.BLOCK", 1000)  # many blocks
    draws = POST.sample(20_000, seed=1)
    assert draws.shape == (20_000, 4)
    assert np.allclose(draws.mean(0), MEANS, atol=0.01)


def test_units_listen_to_the_same_member() -> None:
    """Members that disagree about all units alike: the mean of many does not get certain."""
    many = 400
    a = np.repeat([[20.0], [80.0]], many, 1)
    law = mixture(np.array([0.5, 0.5]), Beta(Trials(a, 100 - a)))
    units = Units({"unit": np.arange(many)}, np.arange(many), ())
    post = Posterior(law, units, "auxiliary", None, np.zeros(many, bool))
    means = post.sample(500, seed=0).mean(1)
    assert np.minimum(np.abs(means - 0.2), np.abs(means - 0.8)).max() < 0.02
    (sd,) = post.aggregate(draws=500)["sd"]
    assert sd == pytest.approx(0.3, abs=0.01)


# --- Several units ------------------------------------------------------------------------------


def test_the_mean_of_one_unit_is_that_unit() -> None:
    for unit in range(4):
        alone = posterior(FRAME.iloc[[unit]], [unit])
        row = alone.aggregate(draws=20_000, mass=0.8).iloc[0]
        assert row["mean"] == pytest.approx(alone.mean()[0])
        assert row["sd"] == pytest.approx(alone.sd()[0], rel=0.03)
        low, high = alone.interval(0.8)
        held = alone.cdf(row["upper"]) - alone.cdf(row["lower"])
        assert held[0] == pytest.approx(0.8, abs=0.02)
        assert row["upper"] - row["lower"] == pytest.approx((high - low)[0], rel=0.06)


def test_a_weighted_mean_is_the_mean_of_means() -> None:
    weight = FRAME["people"].to_numpy()
    table = POST.aggregate(weights="people")
    assert list(table) == ["group", "units", "mean", "sd", "lower", "upper"]
    assert list(table["group"]) == ["all"]
    assert table["mean"].item() == pytest.approx(MEANS @ weight / weight.sum(), rel=1e-12)
    given = POST.aggregate(weights=weight)
    pd.testing.assert_frame_equal(given, table)
    drawn = POST.sample(4000, seed=0) @ (weight / weight.sum())
    assert drawn.mean() == pytest.approx(table["mean"].item(), abs=4 * drawn.std() / 60)


def test_groups_by_a_column_or_by_values() -> None:
    table = POST.aggregate(by="state", weights="people")
    assert list(table["group"]) == ["a", "b"]
    assert list(table["units"]) == [2, 2]
    weight = FRAME["people"].to_numpy()
    by_hand = [np.average(MEANS[i::2], weights=weight[i::2]) for i in (0, 1)]
    assert np.allclose(table["mean"], by_hand)
    pd.testing.assert_frame_equal(
        POST.aggregate(by=FRAME["state"].to_numpy(), weights="people"), table
    )
    each = POST.aggregate(by=np.arange(4))
    assert np.allclose(each["mean"], MEANS)
    assert list(each.index) == [0, 1, 2, 3]  # groups are no units: they have no index of theirs


def test_ranks_are_shared_out() -> None:
    table = POST.ranks(top=2)
    assert list(table) == ["unit", "rank", "lower", "upper", "top_2"]
    assert list(table.index) == list(FRAME.index)
    assert table["rank"].sum() == pytest.approx(4 * 5 / 2)
    assert table["top_2"].sum() == pytest.approx(2)
    assert table["rank"].idxmin() == "x"  # the highest θ is first
    assert ((table["lower"] >= 1) & (table["lower"] <= table["upper"])).all()
    assert (POST.ranks(top=4)["top_4"] == 1).all()


def test_the_narrowest_interval_of_draws() -> None:
    draws = np.concatenate([np.linspace(0, 1, 91), np.linspace(5, 9, 9)])[:, None]
    low, high = narrowest(draws, 0.9)
    assert low[0] >= 0
    assert high[0] <= 1


# --- Export -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_draws_for_arviz() -> None:
    found = POST.to_arviz(draws=200, seed=3).posterior["theta"]
    assert found.dims == ("chain", "draw", "unit")
    assert list(found["unit"].values) == list("wxyz")
    assert np.array_equal(found.values[0], POST.sample(200, seed=3))
    vector = colours().to_arviz(draws=10).posterior["theta"]
    assert vector.dims == ("chain", "draw", "unit", "component")
    assert list(vector["component"].values) == ["red", "green", "blue"]


def colours() -> Posterior:
    counts = np.random.default_rng(0).gamma(3.0, size=(2, 4, 3))
    law = mixture(SHARES, Dirichlet(ClassCounts(counts)))
    units = Units(FRAME, np.array(list("wxyz")), ("red", "green", "blue"))
    return Posterior(law, units, "auxiliary", None, np.zeros(4, bool))


def test_vectors_are_drawn_jointly() -> None:
    draws = colours().sample(4000, seed=0)
    assert draws.shape == (4000, 4, 3)
    assert np.allclose(draws.sum(-1), 1)
    assert np.allclose(draws.mean(0), colours().mean(), atol=0.02)
    table = colours().component("blue").aggregate()
    assert table["mean"].item() == pytest.approx(colours().mean()[:, 2].mean())


def test_frames_of_the_kind_that_came() -> None:
    assert list(POST.to_frame().index) == list(FRAME.index)
    other = posterior(pl.from_pandas(FRAME))
    for table in (other.to_frame(), other.aggregate(by="state"), other.ranks()):
        assert isinstance(table, pl.DataFrame)
    assert isinstance(posterior({"people": np.ones(4)}).ranks(), dict)


def test_predictives_answer_of_what_was_seen() -> None:
    law = ldf.Binomial().predictive(Trials(SUCCESSES[0], FAILURES[0]), trials=[5, 6, 7, 8])
    seen = np.array([True, True, False, True])
    units = Units(FRAME, np.array(list("wxyz")), ())
    pred = Predictive(law, units, "auxiliary", np.array([1, 2, 0, 4]), seen)
    by_hand = scipy.stats.betabinom([5, 6, 7, 8], SUCCESSES[0], FAILURES[0])
    assert np.allclose(pred.log_prob()[seen], by_hand.logpmf([1, 2, 0, 4])[seen])
    assert np.isnan(pred.log_prob()[2])
    assert np.allclose(pred.cdf(3), by_hand.cdf(3))
    assert list(pred.to_frame()["log_prob"].isna()) == [False, False, True, False]
    assert pred.sample(3, seed=0).shape == (3, 4)
    assert repr(pred) == "predictive of 4 units given auxiliary"


# --- What a user reads --------------------------------------------------------------------------

SENTENCES: list[tuple[str, Callable[[], Any], str]] = [
    (
        "too few values",
        lambda: POST.aggregate(weights=[1.0, 2.0]),
        "column 'weights' is not one value for each of 4 units; give as many, or name a column.",
    ),
    (
        "a column that is not there",
        lambda: POST.aggregate(by="county"),
        "column 'county' is not in the frame; there are 'people', 'state'.",
    ),
    (
        "a negative weight",
        lambda: POST.aggregate(weights=[1.0, -2.0, 1.0, 1.0]),
        "column 'weights', row 'x': -2 is negative; a weight is zero or more.",
    ),
    (
        "a missing weight",
        lambda: POST.aggregate(weights=[1.0, np.nan, 1.0, 1.0]),
        "column 'weights', row 'x' is missing; give every unit a weight.",
    ),
    (
        "weights that are text",
        lambda: POST.aggregate(weights="state"),
        "column 'state', row 'w': 'a' is text, not a number; turn the column into numbers first.",
    ),
    (
        "a missing group",
        lambda: POST.aggregate(by=["a", None, "a", "b"]),
        "column 'by', row 'x' is missing; give every unit its group.",
    ),
    (
        "a group that weighs nothing",
        lambda: POST.aggregate(by="state", weights=[1.0, 0.0, 1.0, 0.0]),
        "column 'weights', row 'b' has units of weight zero only; leave it out, or let some count.",
    ),
    (
        "ranks of vectors",
        lambda: colours().ranks(),
        "column 'theta' has 3 components; choose one by .component(…).",
    ),
    (
        "a component of a number",
        lambda: POST.component("red"),
        "column 'component': 'red' is not there; there are none: θ is one number.",
    ),
    (
        "too sure",
        lambda: POST.interval(1.5),
        "column 'mass': 1.5 is not between 0 and 1; ask for 0.9, say, for 90 %.",
    ),
    (
        "too sure of several",
        lambda: POST.aggregate(mass=90),
        "column 'mass': 90 is not between 0 and 1; ask for 0.9, say, for 90 %.",
    ),
    (
        "nobody at the top",
        lambda: POST.ranks(top=0),
        "column 'top': 0 is nobody; ask for the top 1 or more.",
    ),
]


@pytest.mark.parametrize(
    ("run", "sentence"), [s[1:] for s in SENTENCES], ids=[s[0] for s in SENTENCES]
)
def test_bad_questions_get_one_sentence(run: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as error:
        run()
    assert str(error.value) == sentence


def test_what_a_model_answers_with_is_assessed_as_its_distribution() -> None:
    theta = np.array([0.3, 0.7, 0.4, 0.5])
    np.testing.assert_array_equal(
        assess.pit(POST, theta, 0), assess.pit(POST.distribution, theta, 0)
    )
