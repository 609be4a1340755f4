"""Posteriors and predictives of many units: masses in the table, heights on the page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.stats
from matplotlib import pyplot
from matplotlib.colors import to_rgb

import ldf
from drawn import assert_nothing_is_cut, lines_of, texts_of, words_of
from ldf import plot
from ldf.distributions import PointMass, mixture

matplotlib.use("agg")

FAMILY = ldf.Binomial()
A, B = np.array([2.0, 6.0, 0.4]), np.array([5.0, 1.5, 2.0])
TRIALS, SUCCESSES = np.array([4.0, 60.0, 9.0]), np.array([1.0, 50.0, 0.0])


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def posteriors() -> dict[str, Any]:
    sure = FAMILY.posterior(FAMILY.prior(10 * A, 10 * B))
    return {
        "ldf": FAMILY.posterior(FAMILY.prior(A, B)),
        "compound": sure,
        "plain": PointMass(A / (A + B)),
    }


def predictives() -> dict[str, Any]:
    pseudo = FAMILY.prior(A, B)
    return {
        "ldf": FAMILY.predictive(pseudo, trials=TRIALS),
        "plain": FAMILY.likelihood(A / (A + B), trials=TRIALS),
    }


# --- roles --------------------------------------------------------------------------------------

# How colours look to those who lack one kind of cone (Machado, Oliveira and Fernandes 2009).
SEEN_BY = {
    "all": np.eye(3),
    "protanopes": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.052]],
    "deuteranopes": [[0.3673, 0.8606, -0.228], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopes": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def lab(colour: str, seen: Any) -> np.ndarray:
    """In CIE L*a*b*, where equal distances look equally different."""
    c = np.array(to_rgb(colour))
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    rgb = np.clip(np.asarray(seen) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.asarray(to_xyz) @ rgb / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("who", SEEN_BY)
def test_everyone_can_tell_the_models_apart(who: str) -> None:
    for one, other in combinations(plot.ROLES.values(), 2):
        apart = np.linalg.norm(lab(one.colour, SEEN_BY[who]) - lab(other.colour, SEEN_BY[who]))
        assert apart > 25, (one.name, other.name)


def test_no_model_is_told_by_its_colour_alone() -> None:
    models = [role for name, role in plot.ROLES.items() if name != "observed"]
    for aspect in ("dash", "marker", "hatch"):
        assert len({str(getattr(role, aspect)) for role in models}) == len(models)


# --- the table ----------------------------------------------------------------------------------


def test_cells_of_theta_hold_what_scipy_says() -> None:
    table = plot.Profiles.of_theta(posteriors(), unit=list("abc"), observed=[0.2, np.nan, 0.0])
    for unit in range(3):
        law = scipy.stats.beta(A[unit], B[unit])
        expected = law.cdf(table.right[unit]) - law.cdf(table.left[unit])
        np.testing.assert_allclose(table.mass["ldf"][unit], expected, atol=1e-12)
    np.testing.assert_allclose(table.mass["compound"].sum(1), 1)
    np.testing.assert_allclose(table.at["plain"], A / (A + B))
    assert (table.left[:, 0] == 0).all()
    assert (table.right[:, -1] == 1).all()


def test_rates_without_an_upper_end_have_cells_of_their_own() -> None:
    family = ldf.Poisson()
    pseudo = family.prior(count=[4.0, 4.0], exposure=[1e5, 1e7])
    law = family.posterior(pseudo)
    table = plot.Profiles.of_theta({"ldf": law}, per=1e5, cells=50)
    np.testing.assert_allclose(table.left[:, 0], 1e5 * law.quantile(0.0005))
    np.testing.assert_allclose(table.right[:, -1], 1e5 * law.quantile(0.9995))
    np.testing.assert_allclose(table.mass["ldf"].sum(1), 0.999, atol=1e-9)


def test_every_count_is_in_a_cell_however_many_there_are() -> None:
    table = plot.Profiles.of_counts(predictives(), TRIALS, observed=SUCCESSES)
    for unit, n in enumerate(TRIALS.astype(int)):
        there = np.isfinite(table.left[unit])
        np.testing.assert_array_equal(table.left[unit], table.right[unit])
        values = np.round(table.left[unit][there] * n)
        expected = scipy.stats.betabinom(n, A[unit], B[unit]).pmf(values)
        np.testing.assert_allclose(table.mass["ldf"][unit][there], expected, atol=1e-10)
    np.testing.assert_allclose(table.observed, SUCCESSES / TRIALS)

    family = ldf.Poisson()
    law = family.predictive(family.prior(count=50.0, exposure=1e6), exposure=[4e8])
    wide = plot.Profiles.of_counts({"ldf": law}, [4e8], per=1e5, cells=40)
    assert np.isfinite(wide.left).sum() <= 40
    assert wide.mass["ldf"].sum() > 0.999
    width = np.diff(wide.left[0]) * 4e8 / 1e5
    np.testing.assert_allclose(width, width[0])  # as many counts in each


def test_the_table_is_a_frame_with_a_row_a_cell() -> None:
    table = plot.Profiles.of_theta(posteriors(), unit=list("abc"), observed=[0.2, np.nan, 0.0])
    frame = table.to_frame()
    assert frame.columns.tolist() == ["model", "unit", "left", "right", "mass"]
    total = frame.groupby(["model", "unit"])["mass"].sum()
    np.testing.assert_allclose(total.drop("observed"), 1)
    seen = frame[frame["model"] == "observed"]
    assert seen["unit"].tolist() == ["a", "c"]
    assert seen["left"].tolist() == [0.2, 0.0]


def test_errors_of_tables_say_what_to_give() -> None:
    with pytest.raises(ldf.DataError, match="'lfd' is not known; choose one of 'mixture'"):
        plot.Profiles.of_theta({"lfd": posteriors()["ldf"]})
    with pytest.raises(ValueError, match="there is no model to draw"):
        plot.Profiles.of_theta({})
    with pytest.raises(ldf.DataError, match="give its predictive"):
        plot.Profiles.of_counts(posteriors(), TRIALS)
    with pytest.raises(ldf.DataError, match="observed"):
        plot.Profiles.of_theta(posteriors(), observed=[0.1])


# --- the drawing --------------------------------------------------------------------------------


def test_areas_on_the_page_are_probabilities() -> None:
    table = plot.Profiles.of_theta(posteriors(), unit=list("abc"), observed=[0.2, np.nan, 0.0])
    figure = plot.profiles(table, names={"ldf": "LDF (ours)"}, quantity="rate θ")
    (axis,) = figure.axes
    assert axis.get_xlabel() == "rate θ"
    assert [t.get_text() for t in axis.get_yticklabels()] == ["a", "b", "c"]
    lines = {role: lines_of(axis, role) for role in ("ldf", "compound", "plain", "observed")}
    for unit in range(2):  # the third is infinite at 0, and cut there
        areas = []
        for role in ("ldf", "compound"):
            x, y = lines[role][unit]
            areas.append(np.trapezoid(np.nan_to_num(y + unit), x))  # its base is at −unit
            peak = (np.asarray(posteriors()[role].mode()))[unit]
            assert x[np.nanargmax(y)] == pytest.approx(peak, abs=0.005)
        np.testing.assert_allclose(areas[0], areas[1], rtol=0.02)
    for unit in range(3):
        at, ends = lines["plain"][unit]
        np.testing.assert_allclose(at, A[unit] / (A + B)[unit])
        assert ends[0] == -unit
    assert [x[0] for x, _ in lines["observed"]] == [0.2, 0.0]
    shown = ["LDF (ours)", "compound regression", "plain regression", "observed"]
    assert words_of(figure.legends[0]) == shown
    assert_nothing_is_cut(figure)


@pytest.mark.parametrize("scale", ["sqrt", "log"])
def test_on_another_scale_too(scale: str) -> None:
    family = ldf.Poisson()
    laws = {"ldf": family.posterior(family.prior(count=[9.0, 3.0], exposure=[2.0, 9.0]))}
    laws["compound"] = family.posterior(family.prior(count=[4.0, 2.0], exposure=[2.0, 9.0]))
    figure = plot.profiles(plot.Profiles.of_theta(laws), scale=scale)
    forward = {"sqrt": np.sqrt, "log": np.log}[scale]
    for unit in range(2):
        areas = []
        for role in laws:
            x, y = lines_of(figure.axes[0], role)[unit]
            areas.append(np.trapezoid(np.nan_to_num(y + unit), forward(x)))
        np.testing.assert_allclose(areas[0], areas[1], rtol=0.03)


def test_a_mixture_keeps_its_peaks() -> None:
    apart = FAMILY.posterior(FAMILY.prior([[3.0], [30.0]], [[30.0], [3.0]]))
    table = plot.Profiles.of_theta({"mixture": mixture([0.5, 0.5], apart)})
    ((x, y),) = lines_of(plot.profiles(table).axes[0], "mixture")
    y = np.nan_to_num(y)
    peaks = x[1:-1][(y[1:-1] > y[:-2]) & (y[1:-1] >= y[2:])]
    np.testing.assert_allclose(peaks, [2 / 31, 29 / 31], atol=0.005)


def test_few_counts_are_bars_many_are_a_curve() -> None:
    table = plot.Profiles.of_counts(predictives(), TRIALS, observed=SUCCESSES)
    (axis,) = plot.profiles(table).axes
    bars = {}
    for drawn in axis.collections:
        if drawn.get_label() == "ldf":
            segments = np.array(drawn.get_segments())
            bars[-round(segments[0, 0, 1])] = segments
    assert sorted(bars) == [0, 2]  # of 4 and of 9 trials
    np.testing.assert_allclose(bars[0][:, 0, 0], np.arange(5) / 4)
    height = bars[0][:, 1, 1] - bars[0][:, 0, 1]
    mass = scipy.stats.betabinom(4, A[0], B[0]).pmf(np.arange(5))
    np.testing.assert_allclose(height / height.max(), mass / mass.max(), rtol=1e-6)
    ((x, _),) = lines_of(axis, "ldf")  # of 60 trials
    assert len(x) == np.isfinite(table.left[1]).sum() + 2
    assert [x[0] for x, _ in lines_of(axis, "observed")] == pytest.approx(SUCCESSES / TRIALS)


def test_fifty_units_stand_in_two_columns() -> None:
    rng = np.random.default_rng(0)
    law = FAMILY.posterior(FAMILY.prior(rng.uniform(1, 9, 50), rng.uniform(1, 9, 50)))
    names = [f"county {i}, a state" for i in range(50)]
    figure = plot.profiles(plot.Profiles.of_theta({"ldf": law}, unit=names, cells=40))
    left, right = figure.axes
    assert [t.get_text() for t in left.get_yticklabels()] == names[:25]
    assert [t.get_text() for t in right.get_yticklabels()] == names[25:]
    assert len(lines_of(right, "ldf")) == 25
    assert_nothing_is_cut(figure)


def test_into_the_callers_axes() -> None:
    figure, axes = pyplot.subplots(1, 3)
    table = plot.Profiles.of_theta(posteriors())
    assert plot.profiles(table, axes=axes) is figure
    assert [len(lines_of(axis, "ldf")) for axis in axes] == [1, 1, 1]


# --- single units -------------------------------------------------------------------------------

POPULATION = np.array([[0.0, 10.0], [2.0, 10.0], [4.0, 40.0], [6.0, np.nan]])


def test_features_are_standardised_by_the_population() -> None:
    table = plot.Features.of(POPULATION, ["lights", "share"], [2, 3], unit=["here", "there"])
    z = (4 - 3) / np.sqrt(5), (40 - 20) / np.sqrt(200)
    np.testing.assert_allclose(table.standardised[:2], z)
    assert table.to_frame()["unit"].tolist() == ["here"] * 2 + ["there"] * 2
    axis = plot.features(table, "here").axes[0]
    population, bars = axis.containers
    np.testing.assert_allclose([bar.get_width() for bar in bars], z)
    np.testing.assert_allclose([bar.get_x() for bar in population], table.lower[:2])
    assert texts_of(axis) == ["4", "40"]
    assert texts_of(plot.features(table, "there").axes[0]) == ["6", "missing"]
    hidden = plot.Features.of(POPULATION, ["lights", "share"], [0], sensitive=["share"])
    assert hidden.feature.tolist() == ["lights", "feature #2"]


def test_a_unit_from_its_features_to_its_predictive() -> None:
    table = plot.Features.of(POPULATION, ["lights", "share"], [1, 2], unit=["low", "high"])
    theta = plot.Profiles.of_theta(posteriors(), observed=SUCCESSES / TRIALS)[:2]
    counts = plot.Profiles.of_counts(predictives(), TRIALS, observed=SUCCESSES)[:2]
    figure = plot.inferences(table, theta, counts, theta="rate", y="share")
    rows = np.reshape(figure.axes, (2, 3))
    assert [axis.get_title(loc="left") for axis in rows[:, 0]] == ["low", "high"]
    for unit in range(2):
        posterior, predictive = rows[unit, 1:]
        ((x, y),) = lines_of(posterior, "compound")
        mode = np.asarray(posteriors()["compound"].mode())[unit]
        assert x[np.nanargmax(y)] == pytest.approx(mode, abs=0.005)
        ((x, _),) = lines_of(predictive, "observed")
        assert x[0] == pytest.approx((SUCCESSES / TRIALS)[unit])
        assert [axis.get_xlabel() for axis in rows[unit, 1:]] == ["rate", "share"]
    assert_nothing_is_cut(figure)
    with pytest.raises(ValueError, match="2, 3 and 2 units: give three tables of the same units"):
        plot.inferences(table, plot.Profiles.of_theta(posteriors()), counts)


# --- by rank ------------------------------------------------------------------------------------


def test_units_are_ranked_by_their_means_with_their_own_intervals() -> None:
    rate = FAMILY.posterior(FAMILY.prior(A, B))
    table = plot.Ranked.of(rate, ["low", "high", "lowest"], mass=0.8).to_frame()
    assert table["unit"].tolist() == ["high", "low", "lowest"]
    order = [1, 0, 2]
    np.testing.assert_allclose(table["mean"], (A / (A + B))[order])
    for name, end in zip(("lower", "upper"), rate.interval(0.8), strict=True):
        np.testing.assert_allclose(table[name], end[order])


def test_few_units_are_drawn_under_one_another_by_name() -> None:
    table = plot.Ranked.of(FAMILY.posterior(FAMILY.prior(A, B)), ["a", "b", "c"])
    axis = plot.ranked(table, per=100.0).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "a", "c"]
    (bars,) = axis.collections
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, 100 * np.stack([table.lower, table.upper], -1))
    np.testing.assert_allclose(axis.lines[0].get_xdata(), 100 * table.mean)
    assert "90% interval" in axis.get_xlabel()


def test_many_units_are_drawn_side_by_side_in_the_order_of_their_means() -> None:
    many = np.linspace(1, 9, 100)
    table = plot.Ranked.of(FAMILY.posterior(FAMILY.prior(many, 10 - many)))
    axis = plot.ranked(table, log=True).axes[0]
    rank, mean = axis.lines[0].get_data()
    np.testing.assert_array_equal(rank, np.arange(1, 101))
    np.testing.assert_allclose(mean, many[::-1] / 10)
    assert axis.get_yscale() == "log"
    assert len(axis.collections[0].get_segments()) == 100


def test_what_cannot_be_ranked_is_refused() -> None:
    classes = ldf.Multinomial()
    with pytest.raises(ValueError, match="several components"):
        plot.Ranked.of(classes.posterior(classes.prior(counts=[[1.0, 2.0, 3.0]])))
    empty = plot.Ranked.of(FAMILY.posterior(FAMILY.prior(A[:0], B[:0])))
    with pytest.raises(ValueError, match="no unit"):
        plot.ranked(empty)
