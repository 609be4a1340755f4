"""Which colour a value has on a map or in a scatter: a scale for numbers, a list for categories.

Numbers go from dark blue to yellow, which also reads in grey and by those who do not see red and
green apart; categories differ in lightness as well as in hue. What has no value is grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ldf import check
from ldf.plot.figure import MISSING, pyplot

NUMBERS = "viridis"
CATEGORIES = ("#0b3c8c", "#f2a900", "#7fc6ea", "#a8326b", "#1e7d5a", "#e9d8f2", "#6b4a2b")
SCALES = ("linear", "sqrt", "log")


class Colouring(NamedTuple):
    """Values as numbers (of categories, their places in the list), and what colours them."""

    values: np.ndarray  # NaN where there is none
    norm: Any
    palette: Any
    categories: tuple[str, ...] = ()

    @property
    def beyond(self) -> str:
        """At which ends of the scale there are values outside it, as Matplotlib says it."""
        known = self.values[np.isfinite(self.values)]
        ends = (known < self.norm.vmin).any(), (known > self.norm.vmax).any()
        return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
            ends, "neither"
        )


def is_categorical(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "OUSb"


def colouring(
    values: Any,
    limits: tuple[float, float] | None = None,
    scale: str = "linear",
    order: Sequence[Any] | None = None,
) -> Colouring:
    """Of numbers, between `limits` or else from the lowest to the highest; of texts, in `order` or
    else sorted."""
    check.one_of("scale", scale, SCALES)
    pyplot()  # complains if Matplotlib is not there
    from matplotlib import colors

    if is_categorical(values):
        return _categories(np.asarray(values, dtype=object), order)
    numbers = np.asarray(values, dtype=float)
    known = numbers[np.isfinite(numbers) & ((numbers > 0) | (scale != "log"))]
    ends = (0.0, 1.0) if not known.size else (float(known.min()), float(known.max()))
    low, high = limits or ends
    norm = {
        "linear": lambda: colors.Normalize(low, high),
        "sqrt": lambda: colors.PowerNorm(0.5, low, high),
        "log": lambda: colors.LogNorm(low, high),
    }[scale]()
    palette = pyplot().get_cmap(NUMBERS).with_extremes(bad=MISSING)
    if scale == "log":
        numbers = np.where(numbers > 0, numbers, np.where(np.isnan(numbers), np.nan, low))
    return Colouring(numbers, norm, palette)


def _categories(values: np.ndarray, order: Sequence[Any] | None) -> Colouring:
    from matplotlib import colors

    missing = np.array([v is None or v != v for v in values.flat], bool).reshape(values.shape)
    names = list(order) if order is not None else sorted({*values[~missing]})
    if len(names) > len(CATEGORIES):
        problem = f"has {len(names)} categories, and there are {len(CATEGORIES)} colours"
        raise check.DataError("panels", None, None, problem, "put some of them together")
    place = {name: float(i) for i, name in enumerate(names)}
    codes = [
        np.nan if gone else place[v] for v, gone in zip(values.flat, missing.flat, strict=True)
    ]
    palette = colors.ListedColormap(CATEGORIES[: len(names)]).with_extremes(bad=MISSING)
    norm = colors.BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    shape = values.shape
    return Colouring(np.reshape(codes, shape), norm, palette, tuple(str(name) for name in names))
