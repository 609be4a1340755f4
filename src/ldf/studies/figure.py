"""A figure of a study: what it shows, the numbers in it, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """Nothing is drawn before `draw` is called."""

    name: str  # of its files
    caption: str
    table: Any  # a frame
    draw: Callable[[], Any]  # gives a figure of Matplotlib's
