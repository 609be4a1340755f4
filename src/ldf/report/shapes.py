"""Where units are, as a page draws it: areas, points, cells of a grid, or nowhere.

Coordinates are whole numbers from 0 to 65,535 over the larger extent. Outlines are simplified to
what a screen can show.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import check
from ldf.frame import Frame
from ldf.plot import Areas
from ldf.report.pack import array

GRID = 65535
DETAIL = 3000  # parts of the extent that an outline may be off by one of
MARGIN = 0.015  # of the extent, around the outermost points
MOST = 1_200_000  # corners in a page
GEOGRAPHIC = (("lon", "lat"), ("lng", "lat"), ("x", "y"))


def of_units(frame: Any, units: int, geometry: Any) -> dict[str, Any]:
    """By their outlines if there are any, else by their places; by rank if nothing is known."""
    if geometry is None:
        return {"kind": "ranked"}
    if isinstance(geometry, str):
        shapes, crs = Frame.open(frame).shapes(geometry), getattr(frame[geometry], "crs", None)
        return _drawn(Areas.of([shape.wkb for shape in shapes], crs), units)
    if isinstance(geometry, tuple | list) and all(isinstance(name, str) for name in geometry):
        if len(geometry) != 2:
            problem, remedy = "is not two columns", "name one for across and one for up"
            raise check.DataError("geometry", None, None, problem, remedy)
        table = Frame.open(frame)
        place = np.stack([table.numbers(name) for name in geometry], -1)
        return _points(_pairs(place, units), tuple(geometry))
    if isinstance(geometry, Areas):
        return _areas(geometry, units)
    if not hasattr(geometry, "geometry"):
        place = np.asarray(geometry)
        if place.dtype.kind in "biuf":
            return _points(_pairs(place.astype(float), units), ("", ""))
    return _drawn(Areas.of(*_wkb(geometry)), units)


def _pairs(place: np.ndarray, units: int) -> np.ndarray:
    if place.shape != (units, 2):
        problem = f"has shape {place.shape} for {units} units"
        raise check.DataError("geometry", None, None, problem, "give two coordinates a unit")
    return place


def _drawn(shapes: Areas, units: int) -> dict[str, Any]:
    """As outlines, or where they have none as points."""
    import shapely

    if (shapely.get_dimensions(shapes.shapes) == 2).any():
        return _areas(shapes, units)
    middle = shapely.centroid(shapes.shapes)
    place = np.stack([shapely.get_x(middle), shapely.get_y(middle) * shapes.aspect], -1)
    return _points(_pairs(place, units), ("", ""))


# --- areas --------------------------------------------------------------------------------------


def _areas(areas: Areas, units: int) -> dict[str, Any]:
    if len(areas) != units:
        problem = f"has {len(areas)} shapes for {units} units"
        raise check.DataError("geometry", None, None, problem, "give one a unit, in their order")
    import shapely

    shapes = np.array(areas.shapes, dtype=object)
    shapes[~areas.kept] = None
    west, south, east, north = shapely.total_bounds(shapes)
    extent = max(east - west, (north - south) * areas.aspect)
    tolerance = extent / DETAIL
    while True:
        plain = shapely.simplify(shapes, tolerance)
        if shapely.get_num_coordinates(plain).sum() <= MOST:
            break
        tolerance *= 2
    starts, rings, corners = [0], [0], []
    for shape in plain:
        for ring in _rings(shape):
            corners.append(ring)
            rings.append(rings[-1] + len(ring))
        starts.append(len(rings) - 1)
    at = np.concatenate(corners) if corners else np.empty((0, 2))
    flat = np.stack([at[:, 0] - west, (north - at[:, 1]) * areas.aspect], -1) / extent
    return {
        "kind": "areas",
        "starts": array(starts, "i4"),
        "rings": array(rings, "i4"),
        "points": array(np.round(flat * GRID), "u2"),
        "size": [float((east - west) / extent), float((north - south) * areas.aspect / extent)],
        "note": areas.note,
    }


def _wkb(geometry: Any) -> tuple[list[bytes], str]:
    """Well-known binary and its coordinate system: of bytes, of shapely's shapes, or of a column
    of geopandas."""
    crs = getattr(geometry, "crs", None)
    shapes = list(getattr(geometry, "geometry", geometry))
    binary = [shape if isinstance(shape, bytes) else shape.wkb for shape in shapes]
    return binary, "EPSG:4326" if crs is None else crs


def _rings(shape: Any) -> list[np.ndarray]:
    """Outlines and holes alike: they are filled by the rule of even and odd."""
    if shape is None or shape.is_empty:
        return []
    parts = [part for part in getattr(shape, "geoms", [shape]) if hasattr(part, "exterior")]
    return [np.asarray(r.coords)[:, :2] for part in parts for r in (part.exterior, *part.interiors)]


# --- points -------------------------------------------------------------------------------------


def _points(place: np.ndarray, names: tuple[str, ...]) -> dict[str, Any]:
    place = place.copy()
    there = np.asarray(np.isfinite(place).all(1))
    if not there.any():
        return {"kind": "ranked"}
    pair = tuple(name.lower()[:3] for name in names)
    if pair in GEOGRAPHIC[:2]:  # degrees of longitude are narrower away from the equator
        place[:, 0] *= np.cos(np.radians(np.median(place[there, 1])))
    low, high = place[there].min(0), place[there].max(0)
    step = _step(place[there])
    room = MARGIN * (high - low).max() if step is None else step / 2  # a cell is around its place
    low, high = low - room, high + room
    extent = float(max((high - low).max(), 1e-300))
    flat = np.stack([place[:, 0] - low[0], high[1] - place[:, 1]], -1) / extent
    missing = int((~there).sum())
    return {
        "kind": "points",
        "points": array(np.where(there[:, None], flat, np.nan)),
        "cell": None if step is None else (step / extent).tolist(),
        "size": ((high - low) / extent).tolist(),
        "note": f"not shown: {missing:,} units without a place" if missing else "",
    }


def _step(place: np.ndarray) -> np.ndarray | None:
    """The width and height of a cell, if the places are those of a regular grid, well filled."""
    steps = []
    for values in place.T:
        distinct = np.unique(values)
        if len(distinct) < 3:
            return None
        gaps = np.diff(distinct)
        steps.append(gaps.min())
        if np.abs(gaps / gaps.min() - np.round(gaps / gaps.min())).max() > 1e-6:
            return None
    cells = np.prod([np.round(np.ptp(v) / s) + 1 for v, s in zip(place.T, steps, strict=True)])
    return np.array(steps) if len(place) >= 0.2 * cells else None
