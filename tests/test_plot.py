"""What is drawn equals what was computed: lines and marks are read back, not pixels."""

from __future__ import annotations

import sys
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure

import ldf
from ldf import plot

matplotlib.use("agg")

SUCCESSES, TRIALS = np.array([3, 0, 7]), np.array([10, 0, 7])


@pytest.fixture
def known() -> dict[str, Any]:
    family, pseudo = ldf.Binomial(), ldf.Binomial(effective=True)
    prior = family.prior(successes=0.5, failures=0.5)
    lights = pseudo.statistic(successes=[0.4, 2.1, 0.0], trials=[2.0, 3.0, 0.0])
    survey = family.statistic(successes=SUCCESSES, trials=TRIALS)
    return {
        "prior": family.posterior(prior),
        "auxiliary": family.posterior(prior + lights),
        "primary": family.posterior(prior + survey),
        "both": family.posterior(prior + lights + survey),
    }


@pytest.fixture
def panels() -> Any:
    return Figure().subplots(1, 3)


def lines_of(panel: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in panel.get_lines()}


def test_curves_are_the_densities_of_scipy(known: dict[str, Any]) -> None:
    table = plot.curves(known, points=101)
    assert table.x[0] == 0
    assert table.x[-1] == 1
    for name, density in table.density.items():
        natural = known[name].natural
        a, b = (np.broadcast_to(c, 3) for c in natural.coordinates())
        for unit in range(3):
            expected = scipy.stats.beta(a[unit], b[unit]).pdf(table.x)
            np.testing.assert_allclose(density[unit], expected, rtol=1e-12)


def test_a_distribution_shared_by_all_units_is_repeated(known: dict[str, Any]) -> None:
    prior = plot.curves(known).density["prior"]
    assert prior.shape == (3, 400)
    np.testing.assert_array_equal(prior[0], prior[2])


def test_an_infinite_support_is_spanned_where_the_mass_is() -> None:
    family = ldf.Poisson()
    rate = family.posterior(family.prior(count=[2.0, 9.0], exposure=1.0))
    table = plot.curves({"both": rate})
    assert table.x[0] == 0
    assert table.x[-1] == pytest.approx(rate.quantile(0.995).max())
    area = np.trapezoid(table.density["both"], table.x)
    np.testing.assert_allclose(area, [1, 0.995], atol=1e-3)
    wide = ldf.Gaussian(variance=1.0)
    mean = plot.curves({"both": wide.posterior(wide.prior(mean=3.0, variance=4.0))}).x
    np.testing.assert_allclose(mean[[0, -1]], 3 + 2 * scipy.stats.norm.ppf([0.005, 0.995]))
    assert plot.curves({"both": rate}, limits=(1, 2)).x[-1] == 2
    vague = family.posterior(family.prior(count=0.5, exposure=0.001))
    assert plot.curves({"prior": vague, "both": rate}).x[-1] == table.x[-1]
    assert plot.curves({"prior": vague}).x[-1] == pytest.approx(vague.quantile(0.995))


def test_what_is_drawn_is_what_stands_in_the_table(known: dict[str, Any], panels: Any) -> None:
    table = plot.curves(known)
    plot.posteriors(table, ["a", "b", "c"], axes=panels)
    for unit, panel in enumerate(panels):
        top = panel.get_ylim()[1]
        for name, line in lines_of(panel).items():
            x, y = line.get_data()
            density = table.density[name][unit]
            seen = density <= top
            assert seen.sum() > 380
            np.testing.assert_array_equal(x, table.x)
            np.testing.assert_array_equal(y[seen], density[seen])


def test_an_infinite_end_runs_out_of_the_panel_and_hides_no_peak(
    known: dict[str, Any], panels: Any
) -> None:
    table = plot.curves(known)
    assert np.isinf(table.density["prior"][:, 0]).all()
    plot.posteriors(table, ["a", "b", "c"], axes=panels)
    top = panels[0].get_ylim()[1]
    drawn = lines_of(panels[0])["prior"].get_ydata()
    assert np.isfinite(drawn).all()
    assert drawn[0] > top
    assert table.density["both"][0].max() < top < 20
    assert [panel.get_ylim() for panel in panels] == [panels[0].get_ylim()] * 3


def test_data_that_add_nothing_get_no_curve(known: dict[str, Any], panels: Any) -> None:
    plot.posteriors(plot.curves(known), ["a", "b", "c"], axes=panels)
    assert set(lines_of(panels[0])) == {"prior", "auxiliary", "primary", "both"}
    assert set(lines_of(panels[1])) == {"prior", "auxiliary", "both"}  # not surveyed
    assert set(lines_of(panels[2])) == {"prior", "primary", "both"}  # no lights


def test_the_observed_share_is_marked_where_there_is_one(
    known: dict[str, Any], panels: Any
) -> None:
    observed = [0.3, np.nan, 1.0]
    plot.posteriors(plot.curves(known), ["a", "b", "c"], observed=observed, axes=panels)
    marks = [lines_of(panel).get("observed") for panel in panels]
    assert marks[0].get_xdata() == [0.3]
    assert marks[1] is None
    assert marks[2].get_xdata() == [1.0]


def test_the_words_are_the_readers(known: dict[str, Any], panels: Any) -> None:
    names = {"auxiliary": "night lights", "primary": "survey"}
    labels = ["here", "there", "elsewhere"]
    figure = plot.posteriors(
        plot.curves(known), labels, names=names, quantity="rate θ", axes=panels
    )
    assert figure is panels[0].figure
    assert [panel.get_title(loc="left") for panel in panels] == labels
    assert panels[0].get_xlabel() == "rate θ"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["prior", "night lights", "survey", "both"]


def test_every_column_of_panels_ends_with_its_axis(known: dict[str, Any]) -> None:
    four = {name: rate[[0, 1, 2, 0]] for name, rate in known.items() if name != "prior"}
    figure = plot.posteriors(plot.curves(four), list("abcd"), quantity="rate θ")
    drawn = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_xlabel() for panel in drawn] == ["", "rate θ", "rate θ", "rate θ"]
    assert [panel.get_ylabel() for panel in drawn] == ["density", "", "", "density"]
    ticks = [panel.xaxis.get_tick_params()["labelbottom"] for panel in drawn]
    assert ticks == [False, True, True, True]


def test_errors_say_what_to_give(known: dict[str, Any], panels: Any) -> None:
    table = plot.curves(known)
    with pytest.raises(ValueError, match="3 units but 2 labels: give one a unit"):
        plot.posteriors(table, ["a", "b"], axes=panels)
    with pytest.raises(ValueError, match="3 units but 2 axes"):
        plot.posteriors(table, ["a", "b", "c"], axes=panels[:2])
    with pytest.raises(ldf.DataError, match="'posterior' is not known; choose one of 'prior'"):
        plot.posteriors(plot.curves({"posterior": known["both"]}), ["a", "b", "c"])
    with pytest.raises(ValueError, match="no distribution"):
        plot.curves({})


def test_without_matplotlib_the_extra_is_named(
    known: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'ldf\[plot\]'"):
        plot.posteriors(plot.curves(known), ["a", "b", "c"])


def test_maps_of_a_grid_share_one_scale_and_show_what_is_missing() -> None:
    first, second = np.array([[0.1, np.nan], [0.4, 0.9]]), np.full((2, 2), 0.5)
    figure = plot.grids({"survey": first, "model": second})
    drawn = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title(loc="left") for axis in drawn] == ["survey", "model"]
    for axis, values in zip(drawn, (first, second), strict=True):
        picture = axis.images[0]
        assert picture.get_clim() == (0.0, 1.0)
        np.testing.assert_array_equal(np.asarray(picture.get_array().filled(np.nan)), values)
