"""The shapes of areas, in a plane: of the contiguous United States by an equal-area projection.

Shapes come as well-known binary, as in `ldf.datasets.counties().geometry`. Alaska and Hawaii would
leave the other states a corner of the page, so they are left out, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.plot.table import labels

CONTIGUOUS = (-125.0, 24.3, -66.8, 49.5)  # west, south, east, north
UNITED_STATES = (-180.0, 17.0, -64.0, 72.0)
EQUAL_AREA = "EPSG:5070"  # Albers, for the contiguous United States
NAMED = 6  # groups in a note, at most


@dataclass(frozen=True, eq=False)
class Areas:
    """Shapes ready to be drawn. Where longitude and latitude are kept, `aspect` undoes the
    narrowing of degrees towards the poles."""

    shapes: np.ndarray  # of shapely, one an area
    kept: np.ndarray  # whether it is drawn
    note: str  # what is left out, in words; "" if nothing is
    crs: str
    aspect: float

    def __len__(self) -> int:
        return len(self.shapes)

    @classmethod
    def of(
        cls,
        geometry: Any,
        crs: str | None = "EPSG:4326",
        *,
        contiguous: bool | None = None,
        group: Any = None,
    ) -> Areas:
        """From well-known binary, one an area; None where an area has no shape, and is not shown.

        Without a `crs` they are drawn as they are. `contiguous` says whether to show the contiguous
        United States only; left out, it is seen from where the areas are. `group` (a state) is what
        the note names.
        """
        shapes = _geopandas().GeoSeries.from_wkb(list(geometry), crs=crs)
        if crs is None:
            return cls(_array(shapes), ~np.asarray(shapes.isna()), "", "", 1.0)
        degrees = shapes.to_crs("EPSG:4326").bounds.to_numpy()
        middle = (degrees[:, :2] + degrees[:, 2:]) / 2
        inside, there = _within(middle, CONTIGUOUS), ~np.asarray(shapes.isna())
        if contiguous is None:
            known = middle[there]
            contiguous = bool(inside[there].mean() > 0.5 and _within(known, UNITED_STATES).all())
        lacking = (
            f"{(~there).sum():,} of {len(there):,} areas have no shape" if not there.all() else ""
        )
        if contiguous:
            note = "; ".join(filter(None, [_note(inside | ~there, group), lacking]))
            return cls(_array(shapes.to_crs(EQUAL_AREA)), inside & there, note, EQUAL_AREA, 1.0)
        aspect = 1.0
        if shapes.crs is not None and shapes.crs.is_geographic:
            aspect = float(1 / np.cos(np.radians(middle[there, 1].mean())))
        return cls(_array(shapes), there, lacking, crs, aspect)

    def to_frame(self) -> Any:
        """A frame of geopandas: one row an area."""
        columns = {"area": np.arange(len(self)), "kept": self.kept}
        return _geopandas().GeoDataFrame(columns, geometry=list(self.shapes), crs=self.crs)


def _geopandas() -> Any:
    try:
        import geopandas
    except ImportError as missing:
        raise ImportError("maps of areas need geopandas: pip install 'ldf[maps]'") from missing
    return geopandas


def _array(shapes: Any) -> np.ndarray:
    return np.asarray(shapes.array, dtype=object)


def _within(places: np.ndarray, box: tuple[float, float, float, float]) -> np.ndarray:
    return np.asarray(((places >= box[:2]) & (places <= box[2:])).all(1))


def _note(inside: np.ndarray, group: Any) -> str:
    out = int((~inside).sum())
    if not out:
        return ""
    which = f"{out:,} of {len(inside):,} areas, outside the contiguous United States"
    if group is None:
        return f"not shown: {which}"
    names = sorted({str(name) for name in labels(group, len(inside))[~inside]})
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"not shown: {', '.join(names[:NAMED])}{more} ({which})"
