"""What each source of data adds: densities of θ before and after, one panel a unit.

`curves` is the table, densities of θ on a common grid; `posteriors` draws it.

>>> import ldf
>>> family = ldf.Binomial()
>>> prior = family.prior(successes=0.5, failures=0.5)
>>> seen = family.statistic(successes=[3, 0], trials=[10, 4])
>>> known = {"prior": family.posterior(prior), "primary": family.posterior(prior + seen)}
>>> table = curves(known, points=201)
>>> table.x.shape, table.density["primary"].shape
((201,), (2, 201))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ldf import check
from ldf.distributions import Continuous
from ldf.plot.figure import new_panels
from ldf.plot.table import data_frame


class Curves(NamedTuple):
    """Densities on a common grid."""

    x: np.ndarray  # points
    density: dict[str, np.ndarray]  # for each name, units × points; infinite at an end if it is

    def to_frame(self) -> Any:
        """One row a name, unit and point, in pandas."""
        names, units = list(self.density), len(next(iter(self.density.values())))
        points = len(self.x)
        return data_frame(
            {
                "name": np.repeat(names, units * points),
                "unit": np.tile(np.repeat(np.arange(units), points), len(names)),
                "x": np.tile(self.x, len(names) * units),
                "density": np.concatenate([of.ravel() for of in self.density.values()]),
            }
        )


def curves(
    distributions: Mapping[str, Continuous],
    points: int = 400,
    limits: tuple[float, float] | None = None,
) -> Curves:
    """The density of each distribution at evenly spaced points.

    A distribution shared by all units (a prior) is repeated for each. The grid spans `limits`;
    left out, it spans the support, and where that is infinite, 99 % of every distribution but
    those far wider than the unit's narrowest: a vague prior would leave the rest no room.
    """
    if not distributions:
        raise ValueError("there is no distribution to draw: give one, as in {'prior': …}")
    shape = np.broadcast_shapes(*(of.shape for of in distributions.values()), (1,))
    if len(shape) > 1:
        raise ValueError(f"units have shape {shape}: give distributions of one row of units")
    low, high = limits or _span(list(distributions.values()))
    x = np.linspace(low, high, points)
    density = {
        name: np.broadcast_to(np.exp(np.asarray(of.log_prob(x[:, None]))), (points, *shape)).T
        for name, of in distributions.items()
    }
    return Curves(x, density)


TAILS = (0.005, 0.995)
FAR_WIDER = 5.0


def _span(distributions: Sequence[Continuous]) -> tuple[float, float]:
    ends = zip(*(of.support for of in distributions), strict=True)
    low, high = (np.array(end) for end in ends)
    if np.isfinite([low, high]).all():
        return low.min(), high.max()
    quantiles = [np.broadcast_arrays(*(of.quantile(q) for of in distributions)) for q in TAILS]
    lower, upper = (np.asarray(level) for level in quantiles)  # distributions × units
    width = upper - lower
    shown = width <= FAR_WIDER * width.min(0)
    if np.isinf(low).any():
        low = lower[shown]
    if np.isinf(high).any():
        high = upper[shown]
    return low.min(), high.max()


# --- drawing ------------------------------------------------------------------------------------

# What θ is given, in the order it is drawn: the last lie on top. Each has its own colour, dash and
# weight, so that none is told by its colour alone.
STYLES: dict[str, dict[str, Any]] = {
    "prior": {"color": "#8a8a8a", "linewidth": 0.9},
    "both": {"color": "#a30015", "linewidth": 2.6},
    "auxiliary": {"color": "#e8590c", "linewidth": 1.2},
    "primary": {"color": "#111111", "linewidth": 1.3, "linestyle": (0, (4, 2))},
}
MARK = {"marker": "^", "markersize": 8, "color": "white", "markeredgecolor": "black"}
FILL = 0.16
WIDEST_ROW = 3


def posteriors(
    table: Curves,
    labels: Sequence[str],
    *,
    observed: Any = None,
    names: Mapping[str, str] | None = None,
    quantity: str = "θ",
    axes: Any = None,
) -> Any:
    """Draw what is known of θ before and after each source of data, one panel a unit.

    The curves are named as in `given=`: "prior", "auxiliary", "primary" and "both"; draw those you
    have. `names` are your words for them ("night lights"), `labels` those for the units, `quantity`
    what θ is. `observed` is each unit's observed value of θ, NaN where there is none: a mark on the
    axis. Data that add nothing to a unit get no curve there. All panels share one scale; a density
    that is infinite at an end runs out of its panel.

    Draws into `axes`, one a unit, or else into a new figure of Matplotlib's. Returns the figure.
    """
    units = len(next(iter(table.density.values())))
    for name in table.density:
        check.one_of("table", name, tuple(STYLES))
    panels = (
        new_panels(units, WIDEST_ROW, (2.9, 2.1), sharex=True)
        if axes is None
        else list(np.ravel(axes))
    )
    marks = np.full(units, np.nan) if observed is None else np.asarray(observed, dtype=float)
    for what, given in {"labels": labels, "axes": panels, "observed values": marks}.items():
        if len(given) != units:
            raise ValueError(f"there are {units} units but {len(given)} {what}: give one a unit")

    top = 1.06 * ceiling(table)
    for unit, panel in enumerate(panels):
        _draw(panel, {name: density[unit] for name, density in table.density.items()}, table.x, top)
        if np.isfinite(marks[unit]):
            panel.plot([marks[unit]], [0], label="observed", ls="", clip_on=False, zorder=9, **MARK)
        panel.set_title(labels[unit], fontsize=10, loc="left")
    _words(panels, quantity, names or {})
    return panels[0].figure


def _draw(panel: Any, densities: dict[str, np.ndarray], x: np.ndarray, top: float) -> None:
    before = densities.get("prior", np.nan)
    for order, (name, style) in enumerate(STYLES.items()):
        after = densities.get(name)
        if after is None or (name != "prior" and np.array_equal(after, before)):
            continue
        y = np.minimum(after, 2 * top)  # out of sight is as good as infinite, and can be drawn
        panel.plot(x, y, label=name, zorder=2 + order, **style)
        if name == "both":
            panel.fill_between(x, y, color=style["color"], alpha=FILL, linewidth=0)
    panel.set_xlim(x[0], x[-1])
    panel.set_ylim(0, top)
    panel.set_yticks([])
    panel.spines[["top", "left", "right"]].set_visible(False)


def ceiling(table: Curves) -> float:
    """The height that shows every peak.

    A curve that is infinite at an end counts only from a fortieth of the range inwards.
    """
    place = np.arange(len(table.x)) / (len(table.x) - 1)
    inner = (place > 1 / 40) & (place < 39 / 40)
    heights = [
        np.where(np.isfinite(density).all(-1, keepdims=True) | inner, density, 0.0).max()
        for density in table.density.values()
    ]
    return float(max(heights))


def _words(panels: Sequence[Any], quantity: str, names: Mapping[str, str]) -> None:
    """Axis labels at the edges, and one line above all panels that names the curves."""
    figure = panels[0].figure
    keys: dict[str, Any] = {}
    for i, panel in enumerate(panels):
        place = panel.get_subplotspec()
        columns = 1 if place is None else place.get_gridspec().ncols
        if place is None or i + columns >= len(panels):  # no panel below it
            panel.set_xlabel(quantity)
            panel.tick_params(labelbottom=True)
        if place is None or place.is_first_col():
            panel.set_ylabel("density")
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            keys.setdefault(name, handle)
    order = [name for name in ("prior", "auxiliary", "primary", "both", "observed") if name in keys]
    figure.legend(
        [keys[name] for name in order],
        [names.get(name, name) for name in order],
        loc="outside upper left",
        ncols=len(order),
        frameon=False,
        labelcolor=[keys[name].get_color() if name != "observed" else "black" for name in order],
        handlelength=1.8,
        columnspacing=1.4,
    )
