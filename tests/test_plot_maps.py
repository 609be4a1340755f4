"""Maps and histograms: colours, places and counts read back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import ldf
from drawn import assert_nothing_is_cut, words_of
from ldf import plot
from ldf.plot.colours import CATEGORIES

matplotlib.use("agg")

SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]
HOLE = [(0.4, 0.4), (0.4, 0.6), (0.6, 0.6), (0.6, 0.4)]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def squares(*corners: tuple[float, float], hole: bool = False) -> list[bytes]:
    """One degree wide, from their lower left corners."""
    shapely = pytest.importorskip("shapely")
    found = []
    for corner in corners:
        holes = [np.add(HOLE, corner)] if hole else []
        found.append(shapely.to_wkb(shapely.Polygon(np.add(SQUARE, corner), holes)))
    return found


# --- grids and points ---------------------------------------------------------------------------


def test_each_grid_may_have_a_scale_of_its_own() -> None:
    first, second = np.array([[0.0, 5.0]]), np.array([[-1.0, np.nan, 3.0]])
    figure = plot.grids({"one": first, "two": second}, limits=None)
    maps = [axis for axis in figure.axes if axis.images]
    assert [axis.images[0].get_clim() for axis in maps] == [(0, 5), (-1, 3)]
    assert len(figure.axes) == 4  # a bar each
    assert [axis.get_xlabel() for axis in maps] == ["", "grey: no value (1)"]
    assert_nothing_is_cut(figure)


def test_a_grid_of_categories_has_a_legend() -> None:
    cells = np.array([["town", "field"], ["field", None]], dtype=object)
    (axis,) = plot.grids({"use": cells}, order=["town", "field"]).axes
    np.testing.assert_array_equal(axis.images[0].get_array().filled(-1), [[0, 1], [1, -1]])
    assert words_of(axis.get_legend()) == ["town (1)", "field (2)", "no value (1)"]
    colours = [to_hex(patch.get_facecolor()) for patch in axis.get_legend().get_patches()]
    assert colours[:2] == list(CATEGORIES[:2])
    many = np.arange(8).astype(str)[None]
    with pytest.raises(ldf.DataError, match="put some of them together"):
        plot.grids({"use": many})


def test_points_where_they_are_and_grey_where_nothing_is_known() -> None:
    place = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    figure = plot.points({"rate": [0.2, np.nan, 0.8]}, place, limits=(0, 1), label="share")
    axis, bar = figure.axes
    missing, known = axis.collections
    np.testing.assert_array_equal(missing.get_offsets(), place[[1]])
    np.testing.assert_array_equal(known.get_offsets(), place[[0, 2]])
    np.testing.assert_array_equal(known.get_array(), [0.2, 0.8])
    assert known.get_clim() == (0, 1)
    assert bar.get_ylabel() == "share"
    assert_nothing_is_cut(figure)
    with pytest.raises(ValueError, match=r"3 places but values of shape \(2,\)"):
        plot.points({"rate": [0.2, 0.8]}, place)


def test_values_beyond_the_scale_are_said() -> None:
    figure = plot.grids({"rate": np.array([[0.5, 3.0]])}, limits=(0, 1))
    assert figure.axes[0].images[0].colorbar.extend == "max"
    logs = plot.grids({"rate": np.array([[0.0, 1.0, 100.0]])}, limits=None, scale="log")
    assert logs.axes[0].images[0].get_clim() == (1, 100)


def test_what_a_map_draws_is_had_as_a_frame() -> None:
    cells = {"rate": np.array([[0.1, 0.2, 0.3], [0.4, np.nan, 0.6]])}
    frame = plot.map_frame(cells)
    drawn = plot.grids(cells).axes[0].images[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(drawn[frame["row"], frame["column"]], frame["rate"])
    assert frame["column"].tolist() == [0, 1, 2, 0, 1, 2]

    place, values = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), {"rate": np.array([1.0, 2, 3])}
    frame = plot.map_frame(values, place)
    drawn = plot.points(values, place).axes[0].collections[-1]
    np.testing.assert_array_equal(drawn.get_offsets(), frame[["across", "up"]])
    np.testing.assert_array_equal(drawn.get_array(), frame["rate"])

    areas = plot.Areas.of(squares((-100, 30), (-156, 20), (-100, 45)), group=["a", "Hawaii", "b"])
    frame = plot.map_frame(values, areas)
    (drawn,) = plot.areas(values, areas).axes[0].collections
    np.testing.assert_array_equal(drawn.get_array(), frame["rate"][frame["shown"]])
    assert frame["shown"].tolist() == [True, False, True]


# --- areas --------------------------------------------------------------------------------------


def test_the_contiguous_states_are_of_equal_area_and_the_rest_is_noted() -> None:
    geometry = squares((-100, 30), (-100, 45), (-90, 35), (-156, 20))
    areas = plot.Areas.of(geometry, group=["Texas", "Dakota", "Arkansas", "Hawaii"])
    assert areas.crs == "EPSG:5070"
    assert areas.kept.tolist() == [True, True, True, False]
    note = "not shown: Hawaii (1 of 4 areas, outside the contiguous United States)"
    assert areas.note == note
    # A square degree shrinks with the cosine of the latitude, and so do areas on the map.
    size = areas.to_frame().geometry.area.to_numpy()
    expected = np.cos(np.radians(45.5)) / np.cos(np.radians(30.5))
    assert size[1] / size[0] == pytest.approx(expected, rel=0.01)

    values = np.array([1.0, np.nan, 3.0, 9.0])
    figure = plot.areas({"rate": values}, areas, label="per 100,000")
    axis, _ = figure.axes
    (drawn,) = axis.collections
    np.testing.assert_array_equal(drawn.get_array().filled(-1), [1, -1, 3])
    assert drawn.get_clim() == (1, 3)  # Hawaii's 9 is not shown
    first = drawn.get_paths()[0].vertices
    west, south, east, north = areas.shapes[0].bounds
    np.testing.assert_allclose(first.min(0), [west, south])
    np.testing.assert_allclose(first.max(0), [east, north])
    assert axis.get_xlabel().replace("\n", " ") == f"{note} grey: no value (1)"
    assert_nothing_is_cut(figure)


def test_elsewhere_all_areas_are_shown_and_holes_stay_open() -> None:
    areas = plot.Areas.of(squares((30, -2), (31, -2), hole=True))
    assert areas.kept.all()
    assert areas.note == ""
    assert areas.aspect == pytest.approx(1 / np.cos(np.radians(1.5)), rel=1e-3)
    figure = plot.areas({"mapping": np.array(["a", "b"])}, areas)
    (axis,) = figure.axes
    path = axis.collections[0].get_paths()[0]
    assert len(path.vertices) == 10  # two rings of five
    assert words_of(axis.get_legend()) == ["a (1)", "b (1)"]
    assert_nothing_is_cut(figure)
    assert not plot.Areas.of(squares((-100, 30)), contiguous=False).note


def test_without_geopandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    geometry = squares((30, -2))
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(ImportError, match=r"pip install 'ldf\[maps\]'"):
        plot.Areas.of(geometry)


# --- histograms ---------------------------------------------------------------------------------


def bars_of(axis: Any) -> list[tuple[float, float, float]]:
    return [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axis.containers[0]]


def test_a_histogram_and_a_map_a_column() -> None:
    trials, rate = np.array([1.0, 2, 2, 4, np.nan, 1]), np.array([0, 0.5, 1, 0.25, np.nan, 0.75])
    table = plot.Histograms.of({"trials": trials, "rate": rate}, bins=4)
    assert table.to_frame()["count"].tolist() == [2, 2, 0, 1, 1, 1, 1, 2]
    values = table.values_frame(unit=list("abcdef"))
    np.testing.assert_array_equal(values["value"], [*trials, *rate])
    assert values["unit"].tolist() == list("abcdef") * 2
    assert values["column"].tolist() == ["trials"] * 6 + ["rate"] * 6
    figure = plot.histograms(table, (2, 3), labels={"rate": "share y/n"}, units="cells")
    first, grid, second, _ = figure.axes
    np.testing.assert_allclose(bars_of(first), [(0.5, 1, 2), (1.5, 1, 2), (2.5, 1, 0), (3.5, 1, 1)])
    np.testing.assert_allclose([bar[0] for bar in bars_of(second)], [0, 0.25, 0.5, 0.75])
    assert first.get_ylim()[0] == 0
    assert (first.get_ylabel(), second.get_xlabel()) == ("cells", "share y/n")
    np.testing.assert_array_equal(
        grid.images[0].get_array().filled(-1), np.nan_to_num(trials, nan=-1).reshape(2, 3)
    )
    colours = [bar.get_facecolor() for bar in first.containers[0]]
    expected = grid.images[0].to_rgba(np.array([1.0, 2.0, 3.0, 4.0]))
    np.testing.assert_allclose(colours, expected)  # the histogram is the map's key
    assert_nothing_is_cut(figure)


def test_standardised_columns_at_points_and_in_areas() -> None:
    table = plot.Histograms.of({"x": [1.0, 2.0, 6.0]}, bins=2, standardise=True)
    values = table.values["x"]
    assert (values.mean(), values.std()) == pytest.approx((0, 1))
    place = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    dots = plot.histograms(table, place).axes[1].collections[-1]
    np.testing.assert_array_equal(dots.get_offsets(), place)
    np.testing.assert_array_equal(dots.get_array(), values)
    areas = plot.Areas.of(squares((30, -2), (31, -2), (32, -2)))
    shapes = plot.histograms(table, areas).axes[1].collections[0]
    np.testing.assert_array_equal(shapes.get_array(), values)
    with pytest.raises(ValueError, match="give units × 2 coordinates"):
        plot.histograms(table, [1.0, 2.0])


def test_an_area_without_a_shape_is_not_shown_and_that_is_said() -> None:
    shapely = pytest.importorskip("shapely")
    square = shapely.box(0, 0, 1, 1).wkb
    areas = plot.Areas.of([square, None, shapely.box(1, 0, 2, 1).wkb])
    assert areas.kept.tolist() == [True, False, True]
    assert areas.note == "1 of 3 areas have no shape"
