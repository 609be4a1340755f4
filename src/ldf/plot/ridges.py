"""Many units under one another, each with what every model says of it: one line a unit.

Along a line runs the unit's value, θ or the rate y/n; above it stands how probable values are, a
curve a model, or bars where there are few values. All curves of a unit are on one scale, so that
areas compare; a peak far higher than the lowest model's is cut off, and so is a curve that climbs
towards an end of the values. Where a curve is all but zero it is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ldf import check
from ldf.plot.figure import SMALL, bare, given_panels
from ldf.plot.roles import MODELS, ROLES, legend
from ldf.plot.slots import Profiles

COLUMN = 25  # units under one another
HEIGHT = 0.86  # of the highest curve, where units are 1 apart
CUT = 4.0  # how many times higher than the lowest model's peak a peak may be
EDGE = 1 / 40  # of the values, at either end: a curve that is highest there counts from here on
NOTHING = 0.012  # of the top: what is lower is not drawn
BAR = 2.2  # the width of a bar, in points: values far enough apart have one a model
MARKED = 0.08  # of the top: lower bars have no marker
FILL = {"ldf": 0.2, "mixture": 0.3}

Scale = tuple[Callable[[Any], Any], Callable[[Any], Any]]
SCALES: dict[str, Scale] = {
    "linear": (np.asarray, np.asarray),
    "sqrt": (lambda x: np.sqrt(np.maximum(x, 0)), np.square),
    "log": (lambda x: np.log(np.maximum(x, 1e-300)), np.exp),
}


def profiles(
    table: Profiles,
    *,
    names: Mapping[str, str] | None = None,
    quantity: str = "θ",
    scale: str = "linear",
    limits: tuple[float, float] | None = None,
    axes: Any = None,
) -> Any:
    """Draw posteriors or predictives of many units under one another, 25 in a panel.

    `names` are your words for the roles. A point mass is a line with a diamond, what was observed a
    black tick. `scale` is "linear", "sqrt" or "log"; heights are such that areas on the page are
    probabilities. Units are divided evenly among `axes`. Returns the figure.
    """
    check.one_of("scale", scale, tuple(SCALES))
    number = -(-len(table) // COLUMN) if axes is None else len(np.ravel(axes))
    each = -(-len(table) // number)
    drawn = given_panels(axes, number, 4, (5.6, 0.3 * each))
    ends = limits or span(table, scale)
    for i, axis in enumerate(drawn):
        some = table[i * each : (i + 1) * each]
        along(axis, scale, ends)
        for line, unit in enumerate(range(len(some))):
            draw_unit(axis, some, unit, base=-line, scale=scale, ends=ends)
        axis.set_yticks(-np.arange(len(some)), [str(name) for name in some.unit], fontsize=SMALL)
        axis.set_ylim(-each + 0.75, HEIGHT + 0.15)
        axis.tick_params(axis="y", length=0)
        axis.set_xlabel(quantity)
        axis.hlines(-np.arange(len(some)), *ends, color="#c8c8c8", linewidth=0.5, zorder=0)
        bare(axis, "top", "left", "right")
    marks = marked(drawn[0], table, scale, ends)
    legend(drawn[0].figure, drawn_roles(table), names, marks)
    return drawn[0].figure


def drawn_roles(table: Profiles) -> set[str]:
    seen = np.isfinite(table.observed).any()
    return {*table.roles, *(["observed"] if seen else [])}


def marked(axis: Any, table: Profiles, scale: str, ends: tuple[float, float]) -> set[str]:
    """Roles that have their marker somewhere: on bars, and on point masses."""
    bars = any(_as_bars(axis, table, unit, scale, ends) for unit in range(len(table)))
    return {*table.at, *(table.mass if bars else ())}


def along(axis: Any, scale: str, ends: tuple[float, float]) -> None:
    """The axis of values, with a little room beyond its ends."""
    forward, back = SCALES[scale]
    if scale != "linear":
        axis.set_xscale("function", functions=(forward, back))
        axis.xaxis.set_major_locator(_ticks(ends, scale))
        axis.xaxis.set_major_formatter("{x:g}")
    low, high = forward(np.array(ends, float))
    room = 0.015 * (high - low)
    outer = (low - room, high + room)
    axis.set_xlim(*(back(np.maximum(outer, 0)) if scale == "sqrt" else back(np.array(outer))))


def _ticks(ends: tuple[float, float], scale: str) -> Any:
    from matplotlib.ticker import FixedLocator

    if scale == "log":
        powers = np.arange(np.floor(np.log10(ends[0])), np.ceil(np.log10(ends[1])) + 1)
        round_ones = np.outer(10.0**powers, [1, 3] if len(powers) < 5 else [1]).ravel()
    else:
        step = 10 ** np.floor(np.log10(ends[1]))
        round_ones = step * np.array([0, 0.02, 0.1, 0.2, 0.5, 1, 2, 4, 6, 8])
    return FixedLocator([float(v) for v in round_ones if ends[0] <= v <= ends[1]])


def span(table: Profiles, scale: str = "linear") -> tuple[float, float]:
    """From the lowest to the highest value that is drawn."""
    seen = table.observed[np.isfinite(table.observed)]
    places = [table.left, table.right, seen, *table.at.values()]
    values = np.concatenate([np.ravel(of) for of in places])
    values = values[np.isfinite(values) & ((values > 0) | (scale != "log"))]
    return float(values.min()), float(values.max())


def heights(table: Profiles, unit: int, scale: str = "linear") -> dict[str, np.ndarray]:
    """Of each model's cells, 1 being the top: a cell's mass over its width on the page."""
    forward, _ = SCALES[scale]
    left, right = outer_edges(table, unit, scale)
    with np.errstate(invalid="ignore", divide="ignore"):
        width = forward(right) - forward(left)
        found = {role: mass[unit] / width for role, mass in table.mass.items()}
    peaks = [_peak(of) for of in found.values()]
    top = min(max(peaks, default=1.0), CUT * min(peaks, default=1.0)) or 1.0
    return {role: np.minimum(of / top, 1.0) for role, of in found.items()}


def _peak(heights: np.ndarray) -> float:
    """The highest cell; of those inside, if it is at an end and there are many."""
    known = heights[np.isfinite(heights)]
    edge = int(EDGE * len(known))
    if edge and int(np.argmax(known)) in (0, len(known) - 1):
        known = known[edge:-edge]
    return float(known.max())


def outer_edges(table: Profiles, unit: int, scale: str = "linear") -> tuple[np.ndarray, np.ndarray]:
    """Where cells begin and end on the page: half-way to the neighbouring value."""
    half = table.step[unit] / 2
    left, right = table.left[unit] - half, table.right[unit] + half
    if scale != "linear":  # no value is below zero; on a logarithmic axis zero has no place
        floor = np.nanmax(right) * 1e-6 if scale == "log" else 0.0
        left, right = np.maximum(left, floor), np.maximum(right, floor)
    return left, right


def draw_unit(
    axis: Any,
    table: Profiles,
    unit: int,
    *,
    base: float = 0.0,
    height: float = HEIGHT,
    scale: str = "linear",
    ends: tuple[float, float],
) -> None:
    """What every model says of one unit, above `base`."""
    high = heights(table, unit, scale)
    left, right = outer_edges(table, unit, scale)
    there = np.isfinite(left)
    bars = _as_bars(axis, table, unit, scale, ends)
    shown = [role for role in MODELS if role in high]
    for place, role in enumerate(shown):
        tall = high[role][there]
        look, y = ROLES[role], base + height * np.where(tall > NOTHING, tall, np.nan)
        if bars:
            offset = BAR * 1.15 * (place - (len(shown) - 1) / 2)
            _bars(axis, table.left[unit][there], base, y, role, offset)
            continue
        # Around the cells: up at the first, down after the last.
        x = np.concatenate([left[there][:1], _middle(left, right, there), right[there][-1:]])
        y = np.concatenate([y[:1], y, y[-1:]])
        if role in FILL:
            style = {"color": look.colour, "alpha": FILL[role], "linewidth": 0}
            axis.fill_between(x, base, y, zorder=2, **style)
        axis.plot(x, y, label=role, zorder=3, **look.line())
    for role, at in table.at.items():
        look = ROLES[role]
        ends_of = [base, base + height]
        axis.plot([at[unit]] * 2, ends_of, label=role, zorder=4, **look.line() | {"linestyle": "-"})
        style = {"color": look.colour, "markersize": 3.5, "zorder": 4}
        axis.plot([at[unit]], ends_of[1:], look.marker, **style)
    if np.isfinite(table.observed[unit]):
        seen = [table.observed[unit]] * 2
        mark = [base - 0.12 * height, base + 0.42 * height]
        look = ROLES["observed"]
        axis.plot(seen, mark, label="observed", zorder=5, solid_capstyle="butt", **look.line())


def _as_bars(axis: Any, table: Profiles, unit: int, scale: str, ends: tuple[float, float]) -> bool:
    """Whether a unit's values are so far apart that each has room for a bar a model."""
    if not table.step[unit]:
        return False
    forward, _ = SCALES[scale]
    left, right = (of[np.isfinite(of)] for of in outer_edges(table, unit, scale))
    low, high = forward(np.array(ends, float))
    share = (forward(right) - forward(left)).mean() / (high - low)
    points = axis.get_window_extent().width * 72 / axis.figure.dpi
    return bool(share * points > (len(table.mass) + 1) * BAR)


def _middle(left: np.ndarray, right: np.ndarray, there: np.ndarray) -> np.ndarray:
    return (left[there] + right[there]) / 2


def _bars(axis: Any, x: np.ndarray, base: float, top: np.ndarray, role: str, offset: float) -> None:
    """One a value, beside those of other models: so many points to the right of its place."""
    from matplotlib.transforms import ScaledTranslation

    shift = ScaledTranslation(offset / 72, 0, axis.figure.dpi_scale_trans)
    look = ROLES[role]
    x, top = x[np.isfinite(top)], top[np.isfinite(top)]
    style = {"color": look.colour, "linewidth": BAR, "zorder": 3, "label": role, "clip_on": False}
    axis.vlines(x, base, top, transform=axis.transData + shift, **style)
    style = {"color": look.colour, "markersize": 2.6, "zorder": 3, "clip_on": False}
    tall = top - base > MARKED * HEIGHT
    axis.plot(x[tall], top[tall], look.marker, transform=axis.transData + shift, **style)
