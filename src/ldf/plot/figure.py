"""Figures, panels and colour bars: the one place that asks for Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MISSING = "#d9d9d9"  # what has no value
INK = "#222222"
SMALL = 8.5
ROUNDS = 3


def pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as missing:
        raise ImportError("plots need Matplotlib: pip install 'ldf[plot]'") from missing
    return pyplot


def new_panels(
    panels: int, widest: int, size: tuple[float, float], sharex: bool = False
) -> list[Any]:
    """The axes of a new figure with so many panels, at most `widest` in a row."""
    columns = min(panels, widest)
    rows = -(-panels // columns)
    _, grid = pyplot().subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows + 0.7),
        squeeze=False,
        sharex=sharex,
        layout="constrained",
    )
    for spare in grid.flat[panels:]:
        spare.set_visible(False)
    return list(grid.flat[:panels])


def given_panels(
    axes: Any, panels: int, widest: int, size: tuple[float, float], sharex: bool = False
) -> list[Any]:
    """The caller's axes, if there are as many as panels; or those of a new figure."""
    if axes is None:
        return new_panels(panels, widest, size, sharex)
    found = list(np.ravel(axes))
    if len(found) != panels:
        raise ValueError(f"there are {panels} panels but {len(found)} axes: give one a panel")
    return found


def given_axis(axis: Any, size: tuple[float, float]) -> Any:
    return new_panels(1, 1, size)[0] if axis is None else axis


def settle(figure: Any) -> Any:
    """Lay the panels out. Maps keep their proportions, so that their titles and notes find their
    places only after some rounds. A caller's own layout is left alone."""
    layout: Any = figure.get_layout_engine()
    for _ in range(ROUNDS if layout else 0):
        layout.execute(figure)
    return figure


def bare(axis: Any, *sides: str) -> None:
    """Without the lines at these sides: top and right, unless others are named."""
    axis.spines[list(sides or ("top", "right"))].set_visible(False)


def colour_bar(axes: Sequence[Any], scalar: Any, label: str, **options: Any) -> Any:
    # Panels stay where they are anchored.
    bar = axes[0].figure.colorbar(scalar, ax=list(axes), panchor=False, **options)
    bar.outline.set_visible(False)
    bar.set_label(label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    return bar
