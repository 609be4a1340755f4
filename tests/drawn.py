"""What a figure shows, read back from it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np


def lines_of(axis: Any, label: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The lines with this label, as (x, y)."""
    found = [line.get_data() for line in axis.get_lines() if line.get_label() == label]
    return [(np.asarray(x, float), np.asarray(y, float)) for x, y in found]


def texts_of(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.texts]


def words_of(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def assert_nothing_is_cut(figure: Any) -> None:
    """Every text stands inside the figure, and no two tick labels of an axis on each other."""
    figure.canvas.draw()
    page = figure.bbox
    for axis in figure.axes:
        if not axis.get_visible():
            continue
        for ticks in (axis.get_xticklabels(), axis.get_yticklabels()):
            boxes = [t.get_window_extent() for t in ticks if t.get_text() and t.get_visible()]
            boxes = [box for box in boxes if _inside(box, axis.get_tightbbox(), 1.0)]
            for one, other in pairwise(boxes):
                assert not one.overlaps(other), [t.get_text() for t in ticks]
        legends = [axis.get_legend()] if axis.get_legend() else []
        parts = [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts]
        for part in [*parts, *legends, *figure.legends]:
            if getattr(part, "get_text", lambda: "legend")():
                assert _inside(part.get_window_extent(), page, 2.0), part
        assert _inside(axis.get_tightbbox(), page, 2.0), axis.get_title(loc="left")


def _inside(box: Any, page: Any, slack: float) -> bool:
    return bool(
        box.x0 >= page.x0 - slack
        and box.y0 >= page.y0 - slack
        and box.x1 <= page.x1 + slack
        and box.y1 <= page.y1 + slack
    )
