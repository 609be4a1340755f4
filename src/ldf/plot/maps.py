"""Maps: of a grid of cells, of points, of areas. What has no value is grey.

Each takes panels, a title and its values, and draws them side by side. Texts are categories and get
a legend; numbers get a colour bar, one for all panels with `limits`, one a panel without.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ldf.plot.colours import Colouring, colouring, is_categorical
from ldf.plot.figure import MISSING, SMALL, colour_bar, given_panels, settle
from ldf.plot.projection import Areas
from ldf.plot.table import data_frame

LETTERS = 60  # in a line of a note

Limits = tuple[float, float] | None
Paint = Callable[[Any, Colouring], Any]  # draws into an axis, returns what a colour bar reads


def grids(
    panels: Mapping[str, Any],
    *,
    limits: Limits = (0.0, 1.0),
    scale: str = "linear",
    order: Sequence[Any] | None = None,
    label: str = "",
    axes: Any = None,
) -> Any:
    """Maps of a grid of cells, rows × columns, one a title.

    All are on one scale; with `limits=None` each is on its own. Returns the figure.
    """
    drawn = given_panels(axes, len(panels), 2, (4.2, 3.2))
    return _draw(panels, drawn, paint_grid, limits, scale, order, label)


def points(
    panels: Mapping[str, Any],
    place: Any,
    *,
    limits: Limits = None,
    scale: str = "linear",
    order: Sequence[Any] | None = None,
    label: str = "",
    size: float | None = None,
    axes: Any = None,
) -> Any:
    """Maps of points at `place`, points × (across, up), one a title; `size` is in points²."""
    drawn = given_panels(axes, len(panels), 2, (4.2, 3.4))
    return _draw(panels, drawn, paint_points(place, size), limits, scale, order, label)


def areas(
    panels: Mapping[str, Any],
    shapes: Areas,
    *,
    limits: Limits = None,
    scale: str = "linear",
    order: Sequence[Any] | None = None,
    label: str = "",
    axes: Any = None,
) -> Any:
    """Maps of areas, one a title; a note below says what is left out."""
    drawn = given_panels(axes, len(panels), 2, (6.4, 3.6))
    kept = {title: shown_areas(shapes, values) for title, values in panels.items()}
    return _draw(kept, drawn, paint_areas(shapes), limits, scale, order, label)


def map_frame(panels: Mapping[str, Any], place: Any = None) -> Any:
    """The values of a map's panels, one row a cell, point or area, and where each is: its row and
    column in a grid, how far across and up a point is, whether an area is shown."""
    columns = {title: np.ravel(np.asarray(values)) for title, values in panels.items()}
    if isinstance(place, Areas):
        return data_frame({"shown": place.kept} | columns)
    if place is not None:
        across, up = np.asarray(place, float).T
        return data_frame({"across": across, "up": up} | columns)
    row, column = np.indices(np.shape(next(iter(panels.values()))))
    return data_frame({"row": row.ravel(), "column": column.ravel()} | columns)


# --- how a map is painted into an axis ----------------------------------------------------------


def paint_grid(axis: Any, of: Colouring) -> Any:
    axis.set_facecolor(MISSING)
    return axis.imshow(of.values, norm=of.norm, cmap=of.palette, interpolation="nearest")


def paint_points(place: Any, size: float | None = None) -> Paint:
    at = np.asarray(place, dtype=float)
    each = size or float(np.clip(9000 / max(len(at), 1), 2, 30))

    def paint(axis: Any, of: Colouring) -> Any:
        _fit("places", len(at), of.values)
        missing = np.isnan(of.values)
        axis.scatter(*at[missing].T, s=each, c=MISSING, linewidth=0)
        axis.set_aspect("equal")
        return axis.scatter(
            *at[~missing].T,
            c=of.values[~missing],
            s=each,
            norm=of.norm,
            cmap=of.palette,
            linewidth=0,
        )

    return paint


def shown_areas(shapes: Areas, values: Any) -> np.ndarray:
    """The values of areas that are drawn: those left out have no part in the colours."""
    given = np.asarray(values)
    _fit("areas", len(shapes), given)
    return given[shapes.kept]


def paint_areas(shapes: Areas) -> Paint:
    paths = [_path(shape) for shape in shapes.shapes[shapes.kept]]

    def paint(axis: Any, of: Colouring) -> Any:
        from matplotlib.collections import PathCollection

        drawn = PathCollection(paths, norm=of.norm, cmap=of.palette, linewidth=0.3)
        drawn.set_array(np.ma.masked_invalid(of.values))
        drawn.set_edgecolor("face")  # no seams between neighbours
        drawn.set_in_layout(False)  # it is inside the axis, and slow to measure
        axis.add_collection(drawn)
        axis.margins(0.01)
        axis.autoscale_view()
        axis.set_aspect(shapes.aspect)
        if shapes.note:
            note(axis, shapes.note)
        return drawn

    return paint


def _path(shape: Any) -> Any:
    """All rings of a shape, the holes among them."""
    from matplotlib.path import Path

    parts = getattr(shape, "geoms", [shape])
    rings = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    return Path.make_compound_path(*(Path(np.asarray(r.coords)[:, :2], closed=True) for r in rings))


def _fit(what: str, places: int, values: np.ndarray) -> None:
    if values.shape != (places,):
        shape = values.shape
        raise ValueError(f"there are {places} {what} but values of shape {shape}: give one each")


# --- panels -------------------------------------------------------------------------------------


def _draw(
    panels: Mapping[str, Any],
    axes: list[Any],
    paint: Paint,
    limits: Limits,
    scale: str,
    order: Sequence[Any] | None,
    label: str,
) -> Any:
    shared = limits is not None and not any(is_categorical(v) for v in panels.values())
    drawn: list[Any] = []
    beyond: set[str] = set()
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        of = colouring(values, limits, scale, order)
        drawn.append(map_panel(axis, of, paint, title))
        beyond.add(of.beyond)
        if not shared:
            key(axis, drawn[-1], of, label)
    if shared:
        low, high = ("both" in beyond or end in beyond for end in ("min", "max"))
        extend = {(1, 1): "both", (1, 0): "min", (0, 1): "max"}.get((low, high), "neither")
        colour_bar(axes, drawn[0], label, shrink=0.6, aspect=30, extend=extend)
    return settle(axes[0].figure)


def map_panel(axis: Any, of: Colouring, paint: Paint, title: str) -> Any:
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.set_anchor("W")  # so that words below have room, however narrow the map is
    drawn = paint(axis, of)
    missing = int(np.isnan(of.values).sum())
    if missing and not of.categories:
        note(axis, f"grey: no value ({missing:,})")
    return drawn


def note(axis: Any, text: str) -> None:
    """More words below a map."""
    lines = [axis.get_xlabel(), textwrap.fill(text, LETTERS)]
    axis.set_xlabel("\n".join(line for line in lines if line), fontsize=SMALL, loc="left")


def key(axis: Any, drawn: Any, of: Colouring, label: str) -> None:
    """What the colours of one panel mean: a bar, or a legend with how many there are of each."""
    if not of.categories:
        bar = colour_bar([axis], drawn, label, shrink=0.75, aspect=25, extend=of.beyond)
        known = of.values[np.isfinite(of.values)]
        if known.size and (known == known.round()).all() and np.ptp(known) < 10:
            bar.set_ticks(np.arange(known.min(), known.max() + 1))  # whole numbers, and few
        return
    from matplotlib.patches import Patch

    found = [int((of.values == i).sum()) for i in range(len(of.categories))]
    names = [f"{name} ({n:,})" for name, n in zip(of.categories, found, strict=True)]
    handles = [Patch(color=of.palette(i)) for i in range(len(names))]
    missing = int(np.isnan(of.values).sum())
    if missing:
        names, handles = [*names, f"no value ({missing:,})"], [*handles, Patch(color=MISSING)]
    axis.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0, -0.02),
        ncols=4,
        columnspacing=1.2,
        frameon=False,
        fontsize=SMALL,
        title=label or None,
        alignment="left",
        handlelength=1.0,
    )
