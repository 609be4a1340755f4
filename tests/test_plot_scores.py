"""Learned statistics, comparisons, the objective and calibration: numbers read back from plots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.stats
from matplotlib import pyplot

import ldf
from drawn import assert_nothing_is_cut, lines_of, texts_of, words_of
from ldf import assess, plot
from ldf.distributions import PointMass
from ldf.objective import maximum_likelihood

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def points_of(axis: Any) -> list[np.ndarray]:
    """The places of points, a scatter each."""
    return [np.asarray(drawn.get_offsets()) for drawn in axis.collections]


# --- what auxiliary data are worth --------------------------------------------------------------


def test_pseudo_trials_against_their_rate_and_the_regressions_line() -> None:
    family = ldf.Binomial()
    mine = family.prior([1.0, 2.0, 6.0], [3.0, 2.0, 2.0])
    regression = family.prior([0.5, 2.0, 4.5], [4.5, 3.0, 0.5])
    table = plot.Worth.of(mine, regression)
    figure = plot.worth(table, names={"compound": "beta-binomial"})
    (axis,) = figure.axes
    np.testing.assert_allclose(points_of(axis)[0], [[0.25, 4], [0.5, 4], [0.75, 8]])
    ((_, y),) = [data for data in map(lambda line: line.get_data(), axis.get_lines())]
    assert list(y) == [5, 5]
    assert axis.get_lines()[0].get_linestyle() == "--"
    assert words_of(axis.get_legend()) == ["LDF (3)", "beta-binomial: 5 everywhere"]
    assert table.to_frame()["model"].tolist() == ["ldf"] * 3 + ["compound"] * 3
    assert_nothing_is_cut(figure)


def test_a_regression_with_one_number_a_fold_is_a_dashed_line_each() -> None:
    family = ldf.Binomial()
    mine = family.prior(np.full(6, 2.0), np.full(6, 6.0))
    n, rate = np.repeat([5.0, 5.5], 3), np.array([0.1, 0.5, 0.9, 0.2, 0.4, 0.6])
    table = plot.Worth.of(mine, family.prior(n * rate, n * (1 - rate)))
    (axis,) = plot.worth(table).axes
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axis.get_lines()]
    np.testing.assert_allclose(lines, [([0.1, 0.9], [5, 5]), ([0.2, 0.6], [5.5, 5.5])])
    assert {line.get_linestyle() for line in axis.get_lines()} == {"--"}
    assert len(points_of(axis)) == 1  # only LDF's
    words = ["LDF (6)", "compound regression: 5 to 5.5"]
    assert words_of(axis.get_legend()) == words


def test_arrivals_by_assignment_on_logarithmic_axes() -> None:
    family = ldf.Poisson()
    mine = family.prior(count=[2.0, 8.0, 4.0], exposure=[1e5, 2e5, 1e5])
    regression = family.prior(count=[1.0, 2.0, 3.0], exposure=1e5)
    table = plot.Worth.of(mine, regression, assignment=[1, 2, 1], per=1e5)
    (axis,) = plot.worth(table, log=True).axes
    first, second, theirs = points_of(axis)
    np.testing.assert_allclose(first, [[2, 2], [4, 4]])
    np.testing.assert_allclose(second, [[4, 8]])
    np.testing.assert_allclose(theirs, [[1, 1], [2, 2], [3, 3]])  # they differ: no line
    looks = [tuple(drawn.get_edgecolor()[0]) for drawn in axis.collections]
    assert len(set(looks)) == 3  # and none looks like an assignment
    assert axis.get_xscale() == axis.get_yscale() == "log"
    shown = ["LDF: 1 (2)", "LDF: 2 (1)", "compound regression (3)"]
    assert words_of(axis.get_legend()) == shown
    with pytest.raises(ldf.DataError, match="assignment"):
        plot.Worth.of(mine, assignment=[1])
    with pytest.raises(TypeError, match="has no rate: give trials or arrivals"):
        plot.Worth.of(ldf.Gaussian(variance=1.0).prior(mean=0.0, variance=1.0))


# --- comparisons --------------------------------------------------------------------------------


def test_entropies_with_the_share_on_each_side() -> None:
    family = ldf.Binomial()
    mine = family.posterior(family.prior([1.0, 5.0, 2.0, 3.0], [4.0, 5.0, 9.0, 3.0]))
    theirs = family.posterior(family.prior([1.0, 2.0, 1.0, 9.0], [1.0, 2.0, 3.0, 9.0]))
    table = plot.Entropies.of(mine, theirs, rate=[0.1, 0.5, np.nan, 0.9])
    figure = plot.entropies(table, names={"compound": "beta-binomial"})
    axis = figure.axes[0]
    missing, known = points_of(axis)
    x = [scipy.stats.beta(*ab).entropy() for ab in ((1, 4), (5, 5), (2, 9), (3, 3))]
    y = [scipy.stats.beta(*ab).entropy() for ab in ((1, 1), (2, 2), (1, 3), (9, 9))]
    np.testing.assert_allclose(known, np.stack([x, y], 1)[[0, 1, 3]], atol=1e-9)
    np.testing.assert_allclose(missing, [[x[2], y[2]]], rtol=1e-6)
    np.testing.assert_allclose(axis.collections[1].get_array(), [0.1, 0.5, 0.9])
    line = axis.get_lines()[0].get_data()
    np.testing.assert_array_equal(*line)
    above, below = texts_of(axis)
    assert above == "75.0% of units:\nLDF is surer"
    assert below == "25.0% of units:\nbeta-binomial is surer"
    assert_nothing_is_cut(figure)
    with pytest.raises(ldf.DataError, match="a point mass has none"):
        plot.Entropies.of(mine, PointMass(np.full(4, 0.5)))


def test_differences_with_quartiles_and_the_share_above_zero() -> None:
    p = np.array([-1.0, -2.0, -3.0, -4.0, np.nan])
    q = np.array([-2.0, -2.0, -6.0, -3.5, -1.0])
    rate = [0.1, 0.2, 0.3, 0.4, 0.5]
    table = plot.Differences.of({"first": (p, q), "second": (q, p)}, rate)
    assert table.to_frame()["difference"].tolist() == [1, 0, 3, -0.5, -1, 0, -3, 0.5]
    one = table.summary()[0]
    assert one["better"] == 2.5 / 4  # a tie is half
    quartiles = np.quantile([1, 0, 3, -0.5], [0.25, 0.5, 0.75])
    np.testing.assert_allclose(
        [one["lower_quartile"], one["median"], one["upper_quartile"]], quartiles
    )
    assert table.summary_frame()["units"].tolist() == [4, 4]

    figure = plot.differences(table, rate="share")
    axis, bar = figure.axes
    points = points_of(axis)[1]
    np.testing.assert_allclose(points[:, 1], table.difference)
    assert (np.round(points[:, 0]) == [0] * 4 + [1] * 4).all()
    np.testing.assert_allclose(axis.collections[1].get_array(), rate[:4] * 2)
    box = axis.patches[0]
    np.testing.assert_allclose([box.get_y(), box.get_y() + box.get_height()], quartiles[[0, 2]])
    assert lines_of(axis, "median")[0][1].tolist() == [quartiles[1]] * 2
    words = [text.get_text() for text in axis.get_xticklabels()]
    assert words[0] == "first\nabove zero: 62.5%\nmedian +0.50\nquartiles −0.12 and +1.50"
    assert axis.get_yscale() == "linear"
    assert bar.get_ylabel() == "share"
    assert_nothing_is_cut(figure)


def test_a_wide_range_is_logarithmic_away_from_zero_and_infinity_stays_in_sight() -> None:
    p = np.concatenate([np.linspace(-1, 0, 40), [0.0, 0.0]])
    q = np.concatenate([np.zeros(40), [-500.0, -np.inf]])
    table = plot.Differences.of({"LDF − plain": (p, q)})
    assert np.isposinf(table.difference[-1])
    (axis,) = plot.differences(table).axes  # without rates there is nothing to key
    assert axis.get_yscale() == "symlog"
    assert points_of(axis)[0][-2:, 1].tolist() == [500, 500]
    with pytest.raises(ldf.DataError, match="give one score a unit and model"):
        plot.Differences.of({"a": ([0.0], [0.0, 1.0])})


# --- the objective ------------------------------------------------------------------------------


def test_the_objective_and_its_derivative_are_those_of_the_function() -> None:
    table = plot.Objective.of(reach=4.0, points=41)
    figure = plot.objective(table)
    left, right = figure.axes
    x, y = left.get_lines()[1].get_data()
    np.testing.assert_allclose(y, 1 / (1 + np.exp(-x)), rtol=1e-12)
    x, slope = right.get_lines()[1].get_data()
    np.testing.assert_allclose(slope, y * (1 - y), rtol=1e-12)
    assert x[np.argmax(slope)] == pytest.approx(0, abs=1e-9)
    assert table.to_frame().shape == (41, 3)
    assert (plot.Objective.of(maximum_likelihood).derivative == 1).all()
    assert_nothing_is_cut(figure)


# --- calibration --------------------------------------------------------------------------------


@pytest.fixture
def checked() -> tuple[dict[str, Any], np.ndarray]:
    """A predictive that is right, and one that is too sure."""
    rng = np.random.default_rng(0)
    theta, n = rng.beta(2, 3, 200), rng.integers(5, 40, 200)
    family = ldf.Binomial()
    right = family.predictive(family.prior(2.0, 3.0), trials=n)
    return {"ldf": right, "plain": family.likelihood(0.4, trials=n)}, rng.binomial(n, theta)


def test_coverage_at_many_levels(checked: Any) -> None:
    models, y = checked
    table = plot.Calibration.of(models, y, masses=(0.3, 0.6, 0.9))
    figure = plot.calibration(table, names={"plain": "binomial"})
    (axis,) = figure.axes
    for role, label in (("ldf", "LDF"), ("plain", "binomial")):
        expected = assess.coverage(models[role], y, (0.3, 0.6, 0.9))
        ((x, observed),) = lines_of(axis, label)
        np.testing.assert_allclose(x, expected.expected)
        np.testing.assert_allclose(observed, expected.observed)
    band = axis.collections[0].get_paths()[0].vertices
    some = table.model == "ldf"
    upper = (table.observed + 2 * table.standard_error)[some]
    assert band[:, 1].max() == pytest.approx(upper.max())
    assert (table.observed[~some] < table.expected[~some] - 0.1).all()
    assert words_of(axis.get_legend()) == ["LDF", "binomial"]
    assert_nothing_is_cut(figure)


def test_the_pit_and_where_uniform_counts_stay(checked: Any) -> None:
    models, y = checked
    table = plot.Pit.of(models, y, seed=0)
    figure = plot.pit(table)
    for axis, role in zip(figure.axes, ("ldf", "plain"), strict=True):
        counts = np.histogram(assess.pit(models[role], y, 0), 10, (0, 1))[0]
        bars = axis.containers[0]
        assert [bar.get_height() for bar in bars] == counts.tolist()
        low, high = scipy.stats.binom.ppf([0.0025, 0.9975], 200, 0.1)
        band = next(p for p in axis.patches if p not in bars)
        assert (band.get_y(), band.get_y() + band.get_height()) == (low, high)
    right, sure = table.count[:10], table.count[10:]
    assert (right <= table.upper[:10]).all()
    assert sure[0] > table.upper[10]
    assert_nothing_is_cut(figure)
    assert plot.Pit.of_values({"ldf": [0.05, 0.06, 0.95]}, bins=2).count.tolist() == [2, 1]


def test_a_few_units_far_out_do_not_make_one_dot_of_the_others() -> None:
    rng = np.random.default_rng(0)
    mine, theirs = rng.normal(-1, 0.5, (2, 200))
    usual = plot.entropies(plot.Entropies(mine, theirs, np.full(200, np.nan))).axes[0]
    assert usual.get_xscale() == "linear"
    theirs[0] = -1600.0
    axis = plot.entropies(plot.Entropies(mine, theirs, np.full(200, np.nan))).axes[0]
    assert axis.get_xscale() == axis.get_yscale() == "symlog"
    assert axis.get_ylim()[0] < -1600
    drawn = axis.transData.transform(np.stack([mine, theirs], -1))[1:]
    assert np.ptp(drawn[:, 0]) > 0.1 * axis.bbox.width
