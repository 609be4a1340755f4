"""Windows of a raster around places, by rasterio."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ldf.check import DataError


def windows(source: str, path: Any, place: np.ndarray, size: int) -> list[np.ndarray | None]:
    """Height × width × bands around each place, NaN where the raster has no data or has ended; None
    where it has none at all."""
    try:
        rasterio: Any = import_module("rasterio")
        cut_by: Any = import_module("rasterio.windows")
    except ImportError:
        remedy = "pip install 'ldf[rasters]'"
        raise DataError(source, None, None, "needs rasterio to read rasters", remedy) from None
    try:
        raster = rasterio.open(path)
    except rasterio.errors.RasterioIOError:
        remedy = "give the path of a GeoTIFF, or of what else rasterio reads"
        raise DataError(source, None, str(path), "cannot be read as a raster", remedy) from None
    found: list[np.ndarray | None] = []
    with raster:
        for x, y in place:
            row, column = raster.index(x, y)
            window = cut_by.Window(column - size // 2, row - size // 2, size, size)
            cut = raster.read(window=window, boundless=True, masked=True, out_dtype="float64")
            cells = np.moveaxis(np.ma.filled(cut, np.nan), 0, -1)
            found.append(None if np.isnan(cells).all() else cells)
    return found
