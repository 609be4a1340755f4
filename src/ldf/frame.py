"""Any frame, seen as columns of numbers or of texts, whose complaints name the row.

pandas, polars and pyarrow come in through narwhals; a dict of columns needs none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from ldf import check
from ldf.check import DataError, shown

SHOWN = 10  # names in a sentence, at most


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    more = len(names) - SHOWN
    quoted = ", ".join(f"'{name}'" for name in names[:SHOWN])
    return quoted + (f" and {more:,} more" if more > 0 else "")


class Frame:
    """Columns by name, and a label for each row: its id, else the frame's index, else a number."""

    label: np.ndarray

    def __init__(self, columns: Mapping[str, Any], index: Any) -> None:
        self._columns, self._cells = columns, {}
        self.names = list(columns)
        self._length = len(next(iter(columns.values()))) if columns else 0
        self.label = np.arange(self._length) if index is None else _compact(list(index))

    @classmethod
    def open(cls, frame: Any, id: str | None = None, *, strict: bool = True) -> Frame:
        """With `strict` the id has to be there."""
        opened = cls(*_opened(frame))
        if id is not None and (strict or opened.has(id)):
            opened.label = opened.labels(id, "give every row its id")
        return opened

    def __len__(self) -> int:
        return self._length

    def has(self, name: str) -> bool:
        return name in self._columns

    def need(self, name: str) -> None:
        if self.has(name):
            return
        folded = {str(known).casefold(): str(known) for known in self.names}
        near = [folded[match] for match in get_close_matches(str(name).casefold(), folded)]
        remedy = f"near to it are {listed(near)}" if near else f"there are {listed(self.names)}"
        raise DataError(name, None, None, "is not in the frame", remedy)

    # --- columns ---

    def cells(self, name: str) -> np.ndarray:
        """Floats with NaN, or objects with None, where a cell is missing."""
        if name not in self._cells:
            self.need(name)
            self._cells[name] = _cells(self._columns[name])
        return self._cells[name]

    def missing(self, name: str) -> np.ndarray:
        cells = self.cells(name)
        return _none(cells) if cells.dtype == object else np.isnan(cells)

    def numbers(
        self, name: str, *, missing: str | None = None, infinite: bool = False
    ) -> np.ndarray:
        """A column of numbers. What is missing is NaN, unless there is a remedy for it."""
        with self.telling():
            absent = missing is None
            how = {"absent": absent, "missing": missing or check.A_NUMBER, "infinite": infinite}
            return np.asarray(check.numbers(name, self.cells(name), **how), dtype=float)

    def divided(self, name: str, per: str | None) -> np.ndarray:
        """A column of numbers, per head of a population if there is one."""
        values = self.numbers(name)
        if per is None:
            return values
        remedy = f"'{name}' is divided by it: give every row a population above zero"
        with self.telling():
            population = check.positive(per, self.cells(per), remedy, missing=remedy)
        with np.errstate(over="ignore"):
            ratio = values / np.asarray(population)
        self.refuse(name, values, np.isinf(ratio), f"is infinite per '{per}'", "correct the row")
        return ratio

    def values(self, name: str) -> np.ndarray:
        """A column of numbers, or of texts as objects; a mixture is refused."""
        cells = self.cells(name)
        if cells.dtype != object:
            return self.numbers(name)
        text = np.array([isinstance(cell, str) for cell in cells], dtype=bool)
        if not text.any():
            return self.numbers(name)
        if (text | _none(cells)).all():
            return cells
        remedy = "turn the column into numbers, or all of it into text"
        self.refuse(name, cells, text, "is text in a column that also has numbers", remedy)
        return cells

    def texts(self, name: str) -> np.ndarray:
        """A column as texts, whatever it holds; None where a cell is missing."""
        missing = self.missing(name)
        pairs = zip(self.cells(name), missing, strict=True)
        return _objects([None if lacks else _text(cell) for cell, lacks in pairs])

    def labels(self, name: str, remedy: str) -> np.ndarray:
        """A column of names or whole numbers: ids, groups."""
        self.refuse(name, None, self.missing(name), "is missing", remedy)
        column = self._columns[name]
        return _compact(column.to_list() if isinstance(column, nw.Series) else list(column))

    def shapes(self, name: str) -> np.ndarray:
        """A column of shapes: shapely's (so geopandas' too), or well-known binary."""
        try:
            import shapely
        except ImportError:
            raise ImportError("shapes need geopandas: pip install 'ldf[maps]'") from None
        remedy = "give every row its shape"
        self.refuse(name, None, self.missing(name), "is missing", remedy)
        cells = self.cells(name)
        try:
            found = np.array([shapely.from_wkb(c) if isinstance(c, bytes) else c for c in cells])
        except shapely.errors.GEOSException as error:
            problem, remedy = "holds binary that is no shape", "write it as well-known binary"
            raise DataError(name, None, None, problem, remedy) from error
        kind = "shapely's shapes or well-known binary, or two columns of coordinates"
        other = ~np.asarray(shapely.is_geometry(found))
        self.refuse(name, cells, other, "is no shape", f"give {kind}")
        self.refuse(name, None, shapely.is_empty(found), "is an empty shape", remedy)
        return found

    def places(self, geometry: str | tuple[str, str]) -> np.ndarray:
        """Where each row is, rows × 2: two columns of coordinates, or the middle of each shape."""
        if isinstance(geometry, str):
            import shapely

            return shapely.get_coordinates(shapely.centroid(self.shapes(geometry)))
        remedy = "give every row its place"
        return np.stack([self.numbers(name, missing=remedy) for name in geometry], -1)

    # --- complaints ---

    def refuse(self, name: str, values: Any, wrong: Any, problem: str, remedy: str) -> None:
        wrong = np.asarray(wrong)
        if wrong.any():
            at = int(np.argmax(wrong))
            value = None if values is None else values[at]
            raise DataError(name, self.label[at], value, problem, remedy)

    @contextmanager
    def telling(
        self,
        rows: np.ndarray | None = None,
        words: Mapping[str, Any] | None = None,
        values: Mapping[str, np.ndarray] | None = None,
    ) -> Iterator[None]:
        """Errors name the frame's row and the user's column.

        What is checked inside may be some of the `rows`, known by other `words`: each stands for a
        column, or for a list of columns, and then its `values` tell which of them is meant.
        """
        words, values = words or {}, values or {}
        try:
            yield
        except DataError as error:
            row = error.row
            if row is not None:
                row = self.label[row if rows is None else rows[row]]
            spoken = {word: _meant(word, given, values, error) for word, given in words.items()}
            problem, remedy = (
                re.sub(r"'(\w+)'", lambda found: f"'{spoken.get(found[1], found[1])}'", text)
                for text in (error.problem, error.remedy)
            )
            column = spoken.get(error.column, error.column)
            raise DataError(column, row, error.value, problem, remedy) from None


def _meant(word: str, given: Any, values: Mapping[str, np.ndarray], error: DataError) -> str:
    """The one column of a list that holds the value complained of, in the row it was found in."""
    if isinstance(given, str):
        return given
    if word == error.column and error.row is not None and np.ndim(error.value) == 0:
        found = np.flatnonzero(values[word][error.row] == error.value)
        if len(found):
            return given[found[0]]
    return listed(given)[1:-1]


# --- cells --------------------------------------------------------------------------------------


def _opened(frame: Any) -> tuple[Mapping[str, Any], Any]:
    """The frame's columns, and its index if it has one."""
    if isinstance(frame, Mapping):
        for name, values in frame.items():
            if np.ndim(values) != 1:
                remedy = "give every column one value a unit"
                raise DataError(str(name), None, None, "is not one value a row", remedy)
        check.same_length(**{str(name): values for name, values in frame.items()})
        return frame, None
    try:
        opened = nw.from_native(frame, eager_only=True)
        columns = {name: opened[name] for name in opened.columns}
    except DuplicateError:
        names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(twice, None, None, "is in the frame twice", "rename one of them") from None
    except TypeError:
        raise TypeError(
            "data come as a frame of pandas, polars (collected) or pyarrow, or as a dict of "
            f"columns, and {type(frame).__name__} was given"
        ) from None
    return columns, nw.maybe_get_index(opened)


def _cells(column: Any) -> np.ndarray:
    if isinstance(column, nw.Series):
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            array = np.asarray(column.to_numpy())
        else:
            array = _objects(column.to_list())
        if isinstance(column.dtype, nw.Categorical | nw.Enum):
            return _objects([None if _absent(cell) else _text(cell) for cell in array])
    elif isinstance(column, np.ma.MaskedArray):
        pairs = zip(column.data, np.ma.getmaskarray(column), strict=True)
        array = _objects([None if masked else cell for cell, masked in pairs])
    elif isinstance(column, list | tuple):
        array = _objects(column)
    else:
        array = np.asarray(column)
    if array.dtype.kind in "mM":  # in microseconds they become dates, in nanoseconds whole numbers
        array = array.astype(f"{array.dtype.kind}8[us]")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return _objects([None if _absent(cell) else cell for cell in array.astype(object)])


def _absent(cell: Any) -> bool:
    if type(cell).__name__ in {"NoneType", "NAType", "NaTType"}:
        return True
    return not isinstance(cell, str) and np.ndim(cell) == 0 and bool(cell != cell)


def _objects(cells: Sequence[Any]) -> np.ndarray:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _none(cells: np.ndarray) -> np.ndarray:
    return np.array([cell is None for cell in cells], dtype=bool)


def _text(cell: Any) -> str:
    return str(cell) if isinstance(cell, str) else shown(cell)


def _compact(cells: list[Any]) -> np.ndarray:
    """Whole numbers as such; anything else as it is."""
    if not all(isinstance(c, int | float | np.integer) and c == c // 1 for c in cells):
        return _objects(cells)
    try:
        return np.array([int(c) for c in cells], dtype=np.int64)
    except OverflowError:
        return _objects(cells)


def like(frame: Any, columns: Mapping[str, Any], *, by_unit: bool = True) -> Any:
    """A frame of the kind that went in. With its rows, `by_unit`, it keeps the index of pandas."""
    if isinstance(frame, Mapping):
        return dict(columns)
    given: Any = nw.from_native(frame, eager_only=True)
    made = nw.from_dict(dict(columns), backend=given.implementation).to_native()
    index = nw.maybe_get_index(given) if by_unit else None
    if index is not None and len(made) == len(index):
        made.index = index
    return made
