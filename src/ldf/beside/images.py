"""Images by the unit's id: files, arrays, or windows of a raster around the units' places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldf.beside.base import (
    Beside,
    Block,
    Encoded,
    Opened,
    Units,
    not_here,
    refuse_constant,
    unmatched,
)
from ldf.check import DataError

ID = "{id}"
Size = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Images(Beside):
    """One image a unit.

    images  where they are: files by a pattern such as "lights/{id}.png", in which {id} stands for
            the unit's id; a mapping from ids to arrays; or one array, images × height × width
            (× channels), with their `ids`
    ids     of the images of one array
    resize  (height, width) that all images are brought to; they have to be of one size otherwise

    A unit without an image lacks the source. A pixel that is NaN is missing, and gets the mean of
    its channel. Files are read when they are needed, and a model does not keep them; a relative
    pattern is looked for from the folder that the program runs in.
    """

    images: Any
    ids: Any = None
    resize: tuple[int, int] | None = None
    size: int | None = None  # of windows, in pixels

    kind: ClassVar[str] = "image"

    def __post_init__(self) -> None:
        if self.resize is not None:
            object.__setattr__(self, "resize", tuple(self.resize))
            if len(self.resize) != 2 or min(self.resize) < 1:
                remedy = "give height and width, such as resize=(16, 16)"
                raise DataError("resize", None, self.resize, "is no size", remedy)
        if isinstance(self.images, Path):
            object.__setattr__(self, "images", str(self.images))
        if isinstance(self.images, str) and self.size is None and ID not in self.images:
            remedy = f"write {ID} where the unit's id stands, as in 'lights/{ID}.png'"
            raise DataError("images", None, self.images, "names no unit", remedy)
        if self.size is not None and self.size < 1:
            raise DataError("size", None, self.size, "is less than one", "give pixels")

    def __repr__(self) -> str:
        where = repr(self.images) if isinstance(self.images, str) else "…"
        more = {"resize": self.resize, "size": self.size}
        return f"Images({', '.join([where, *(f'{k}={v}' for k, v in more.items() if v)])})"

    @classmethod
    def windows(cls, raster: Any, size: int = 16, resize: tuple[int, int] | None = None) -> Images:
        """Squares of `size` × `size` pixels of a raster (a GeoTIFF, or what else rasterio reads)
        around the units' places: the model's `geometry`, in the raster's own coordinates."""
        return cls(raster, resize=resize, size=size)

    def elsewhere(self, given: Any) -> Images:
        return given if isinstance(given, Images) else replace(self, images=given, ids=None)

    def unsaved(self) -> Images:
        kept = self.images if isinstance(self.images, str) else None
        return replace(self, images=kept, ids=None)

    def open(self, source: str, units: Units) -> Opened:
        if self.images is None:
            raise not_here(source)
        if self.size is not None:
            found = self._windows(source, units)
        elif isinstance(self.images, str):
            found = self._files(source, units)
        else:
            found = self._arrays(source, units)
        return _Found(source, units, self, found)

    # --- where they are ---

    def _files(self, source: str, units: Units) -> dict[Any, np.ndarray]:
        found = {}
        for label in units.known:
            path = Path(self.images.replace(ID, str(label)))
            if path.exists():
                found[label] = self._image(source, label, _read(source, label, path))
        return found

    def _arrays(self, source: str, units: Units) -> dict[Any, np.ndarray]:
        given = self.images
        if not isinstance(given, Mapping):
            if self.ids is None or len(self.ids) != len(given):
                problem = "has not one id for each image"
                remedy = "give ids=…, or a mapping from ids to arrays"
                raise DataError(source, None, None, problem, remedy)
            given = dict(zip(np.asarray(self.ids).tolist(), np.asarray(given), strict=True))
        known = units.known
        return {
            label: self._image(source, label, array)
            for label, array in given.items()
            if label in known
        }

    def _windows(self, source: str, units: Units) -> dict[Any, np.ndarray]:
        from ldf.beside.raster import windows

        if units.place is None:
            remedy = "tell the model where units are: geometry=(…, …)"
            raise DataError(source, None, None, "needs a place for each unit", remedy)
        first = list(units.known.values())
        cut = windows(source, self.images, units.place[first], self.size or 1)
        pairs = zip(units.known, cut, strict=True)
        return {label: self._image(source, label, one) for label, one in pairs if one is not None}

    def _image(self, source: str, label: Any, array: Any) -> np.ndarray:
        """Height × width × channels."""
        image = np.asarray(array)
        if image.dtype.kind not in "biuf":
            remedy = "give arrays of numbers"
            raise DataError(source, label, None, f"is an array of {image.dtype}", remedy)
        if image.ndim not in (2, 3) or 0 in image.shape:
            remedy = "an image is height × width, or height × width × channels"
            raise DataError(source, label, _shown(image.shape), "is no image", remedy)
        image = np.atleast_3d(image).astype(float)
        if np.isinf(image).any():
            raise DataError(source, label, None, "has a pixel that is infinite", "correct it")
        return image if self.resize is None else _resized(source, image, self.resize)

    def sought(self) -> str:
        """Where they were looked for."""
        if not isinstance(self.images, str):
            return "the arrays given"
        return str(Path(self.images).absolute())


class _Found(Opened):
    """Images of the units that have one."""

    def __init__(
        self, source: str, units: Units, where: Images, images: dict[Any, np.ndarray]
    ) -> None:
        self.source, self.units, self.where, self.images = source, units, where, images

    def learn(self) -> Block:
        if not self.images:
            given = self.where.images
            if isinstance(given, str):
                problem = "has an image of no unit of the frame"
                remedy = f"they were looked for as {self.where.sought()!r}"
                raise DataError(self.source, None, None, problem, remedy)
            ids = given if isinstance(given, Mapping) else self.where.ids
            raise unmatched(self.source, self.units, ids, "an image")
        sizes = Counter(image.shape for image in self.images.values())
        block = Block(self.source, "image", sizes.most_common(1)[0][0]).check()
        self._refuse_sizes(block)
        refuse_constant(self.source, np.stack(list(self.images.values())))
        return block

    def _refuse_sizes(self, block: Block) -> None:
        for label, image in self.images.items():
            if image.shape != block.shape:
                problem = f"is the size of the image, and {_shown(block.shape)} is wanted"
                remedy = f"give Images(…, resize={block.shape[:2]}), or an image of that size"
                if image.shape[2] != block.shape[2]:
                    remedy = "give it as many channels as the others have"
                raise DataError(self.source, label, _shown(image.shape), problem, remedy)

    def encode(self, block: Block) -> Encoded:
        self._refuse_sizes(block)
        labels, name = self.units.label.tolist(), f"'{block.source}'"
        x = np.full((len(labels), block.width), np.nan)
        for row, label in enumerate(labels):
            if label in self.images:
                x[row] = self.images[label].ravel()
        told, always = [], []
        lacking = sum(label not in self.images for label in labels)
        if lacking and lacking < len(labels):
            told.append(f"{lacking:,} of {len(labels):,} units have no image in {name}.")
        elif lacking:
            sought = self.where.sought()
            always.append(f"No unit has an image in {name}: they were looked for as {sought!r}.")
        blank = int(sum(np.isnan(image).any() for image in self.images.values()))
        if blank:
            what = "pixels are missing, and get the mean of the training rows"
            told.append(f"In {blank:,} images of {name} {what}.")
        return Encoded(x, told, always)


def _shown(shape: Size) -> str:
    return " × ".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape))


# --- files --------------------------------------------------------------------------------------


def _pillow(source: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        remedy = "pip install 'ldf[images]', or give arrays"
        raise DataError(source, None, None, "needs Pillow to read images", remedy) from None
    return Image


def _read(source: str, label: Any, path: Path) -> np.ndarray:
    pillow = _pillow(source)
    try:
        with pillow.open(path) as image:
            if image.mode in ("1", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
                plain = "L" if image.mode == "1" else "RGB"
                return np.asarray(image.convert(plain))
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError):
        remedy = "replace the file, or remove it if the unit has no image"
        raise DataError(source, label, str(path), "cannot be read as an image", remedy) from None


def _resized(source: str, image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """By the mean over what falls into a pixel."""
    if image.shape[:2] == size:
        return image
    pillow = _pillow(source)
    channels = [
        pillow.fromarray(channel.astype(np.float32)).resize(size[::-1], pillow.Resampling.BOX)
        for channel in np.moveaxis(image, -1, 0)
    ]
    return np.stack([np.asarray(channel, float) for channel in channels], -1)
