"""What may come in: bad input gets one sentence that names the column, the row, the value and the
remedy. Nothing is repaired here, and no NaN is ever replaced by a number.

Arrays that are being traced by JAX have no values yet and pass unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ldf.special.arrays import Array


class DataError(ValueError):
    """A value that cannot be used, with what a caller needs to point at it."""

    def __init__(self, column: str, row: Any, value: Any, problem: str, remedy: str) -> None:
        self.column, self.row, self.value = column, row, value
        self.problem, self.remedy = problem, remedy
        where = f"column '{column}'" + ("" if row is None else f", row {shown(row)}")
        what = "" if value is None or problem == "is missing" else f": {shown(value)}"
        super().__init__(f"{where}{what} {problem}; {remedy}.")


class DoesNotExist(ValueError):
    """A quantity that an improper or heavy-tailed distribution does not have."""


def shown(value: Any) -> str:
    """A value as a person would write it, on one line."""
    if not isinstance(value, str | int | float | list | tuple | np.generic | np.ndarray):
        return str(value)
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, np.floating):
        value = float(str(value))  # 0.1 of float32 is 0.1
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return repr(value)


def is_traced(*values: Any) -> bool:
    return any(isinstance(value, Tracer) for value in values)


# --- numbers ------------------------------------------------------------------------------------

NO_PRIMARY = "leave the row out, or give a row without primary data zero trials or zero exposure"
A_NUMBER = "give a number"


def numbers(
    column: str,
    values: Any,
    *,
    missing: str = A_NUMBER,
    infinite: bool = False,
    absent: Any = False,
    units: tuple[int, ...] = (),
) -> Array:
    """The values as an array of floats: NumPy's, or JAX's if they are a JAX array.

    `missing` is the remedy for a missing value, which passes (as NaN) only where it is `absent` by
    its row's own word; infinities pass only if `infinite`. They must go with `units` of that shape.
    """
    if is_traced(values):
        return values
    if isinstance(values, jax.Array):
        if jnp.issubdtype(values.dtype, jnp.complexfloating):
            refuse(column, values, np.ones(values.shape, bool), "is a complex number", TURN)
        array = values if jnp.issubdtype(values.dtype, jnp.floating) else values.astype(float)
    else:
        array = _host_numbers(column, values)
    host = np.asarray(array)
    refuse(column, values, np.isnan(host) & ~np.asarray(absent), "is missing", missing)
    if not infinite:
        refuse(column, values, np.isinf(host), "is infinite", "give a finite number")
    fits(column, host, units)
    return array


def _host_numbers(column: str, values: Any) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), np.nan, _host_numbers(column, values.data))
    try:
        array = np.asarray(values)
    except ValueError:
        _refuse_ragged(column)
    if array.dtype.kind in "US":  # one text among numbers makes texts of all: look again
        array = np.asarray(values, dtype=object)
    if array.dtype.kind in "biu":
        return array.astype(float)
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind == "O":
        entries = np.empty(array.size)
        for position, value in enumerate(array.reshape(-1)):
            entries[position] = _entry(column, values, array, position, value)
        return entries.reshape(array.shape)
    kinds = {"m": "is a duration", "M": "is a date", "c": "is a complex number"}
    problem = kinds.get(array.dtype.kind, "is not a number")
    refuse(column, values, np.ones(array.shape, bool), problem, TURN)
    return array.astype(float)  # no rows at all


TURN = "turn the column into numbers first"
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
_DATES = {"Timestamp", "datetime", "date", "datetime64", "Period"}
_DURATIONS = {"Timedelta", "timedelta", "timedelta64"}


def _entry(column: str, values: Any, array: np.ndarray, position: int, value: Any) -> float:
    at = tuple(int(i) for i in np.unravel_index(position, array.shape)) if array.ndim else ()
    kind = type(value).__name__
    if kind in _MISSING_TYPES:
        return np.nan
    for kinds, problem in ((_DATES, "is a date"), (_DURATIONS, "is a duration")):
        if kind in kinds:
            raise DataError(column, _label(values, at), value, problem, TURN)
    if isinstance(value, list | tuple | np.ndarray):
        _refuse_ragged(column)
    if isinstance(value, str | bytes):
        at, value = _culprit(array, at, value)
        raise DataError(column, _label(values, at), value, "is text, not a number", TURN)
    if isinstance(value, bool | int | float | np.bool | np.integer | np.floating):
        return float(value) if abs(value) < 1e308 or value != value else np.inf
    try:  # decimals and fractions
        return float(value) if hasattr(value, "as_integer_ratio") else _refuse_entry()
    except (TypeError, ValueError, OverflowError):
        raise DataError(column, _label(values, at), value, "is not a number", TURN) from None


def _culprit(array: np.ndarray, at: tuple[int, ...], value: Any) -> tuple[tuple[int, ...], Any]:
    """One word in a column of a text file makes texts of all its numbers: which word it is."""
    for position, other in enumerate(array.reshape(-1)):
        if isinstance(other, str | bytes):
            try:
                float(other)
            except ValueError:
                return tuple(int(i) for i in np.unravel_index(position, array.shape)), other
    return at, value


def _refuse_entry() -> NoReturn:
    raise TypeError


def _refuse_ragged(column: str) -> NoReturn:
    remedy = "give every row as many values"
    raise DataError(column, None, None, "holds rows of unequal length", remedy) from None


def _label(values: Any, position: tuple[int, ...]) -> Any:
    """The row's label if the column brings an index (pandas), else its position from 0."""
    if not position:
        return None
    index = getattr(values, "index", None)
    if index is None or callable(index):
        return position[0]
    label = index[position[0]]
    if isinstance(label, tuple):
        return tuple(part.item() if hasattr(part, "item") else part for part in label)
    return label.item() if hasattr(label, "item") else label


def refuse(
    column: str,
    values: Any,
    wrong: Any,
    problem: str | Callable[[tuple[int, ...]], str],
    remedy: str,
    labels: Any = None,
) -> None:
    """Raise for the first row that is wrong; `labels` may know its name better than `values`."""
    if is_traced(wrong):
        return
    wrong = np.asarray(wrong)
    if not wrong.any():
        return
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    array = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        array = values.filled(np.nan) if values.dtype.kind == "f" else values.astype(float)
    value = np.broadcast_to(array, np.broadcast_shapes(array.shape, wrong.shape))[at]
    text = problem(at) if callable(problem) else problem
    raise DataError(column, _label(values if labels is None else labels, at), value, text, remedy)


def nonnegative(
    column: str,
    values: Any,
    remedy: str = "give a number that is zero or more",
    *,
    missing: str = A_NUMBER,
    infinite: bool = False,
) -> Array:
    array = numbers(column, values, missing=missing, infinite=infinite)
    if not is_traced(array):
        refuse(column, values, np.asarray(array) < 0, "is negative", remedy)
    return array


def positive(
    column: str,
    values: Any,
    remedy: str = "give a number above zero",
    *,
    missing: str = A_NUMBER,
    infinite: bool = False,
) -> Array:
    array = nonnegative(column, values, remedy, missing=missing, infinite=infinite)
    if not is_traced(array):
        refuse(column, values, np.asarray(array) == 0, "is zero", remedy)
    return array


def counts(
    column: str,
    values: Any,
    *,
    fractions: bool = False,
    declare: str = "",
    missing: str = NO_PRIMARY,
) -> Array:
    """Whole numbers, zero or more. `declare` says how fractions could be declared, if they can."""
    remedy = "a count is zero or more: correct the row"
    array = nonnegative(column, values, remedy, missing=missing)
    if not fractions and not is_traced(array):
        host = np.asarray(array)
        remedy = "correct the row or round it"
        if declare:
            remedy = f"round it, or declare effective counts by {declare}"
        refuse(column, values, host != np.round(host), "is not a whole number", remedy)
    return array


def probability(column: str, values: Any, units: tuple[int, ...] = ()) -> Array:
    remedy = "a probability lies between 0 and 1"
    array = nonnegative(column, values, remedy)
    fits(column, array, units)
    if not is_traced(array):
        refuse(column, values, np.asarray(array) > 1, "is above 1", remedy)
    return array


def at_most(column: str, values: Any, other: str, limit: Any, remedy: str) -> None:
    if is_traced(values, limit):
        return
    top = np.asarray(limit, dtype=float)
    wrong = np.asarray(values, dtype=float) > top
    top = np.broadcast_to(top, wrong.shape)
    refuse(column, values, wrong, lambda at: f"is more than '{other}', {shown(top[at])}", remedy)


def needs(column: str, values: Any, other: str, amounts: Any) -> None:
    """What is above zero needs some of the other column."""
    if not is_traced(values, amounts):
        wrong = (np.asarray(values) > 0) & (np.asarray(amounts) == 0)
        remedy = f"a row whose '{other}' is zero holds nothing: correct it"
        refuse(column, values, wrong, f"has no '{other}'", remedy)


# --- several columns ----------------------------------------------------------------------------


def same_length(**columns: Any) -> None:
    """All columns describe the same units, in the same order; a single number serves all."""
    given = [(name, value) for name, value in columns.items() if np.ndim(value) > 0]
    # Each with the first that says as much: the first column, and the first that has an index.
    pairs = [(given[0], other) for other in given[1:]]
    indexed = [item for item in given if hasattr(getattr(item[1], "index", None), "equals")]
    pairs += [(indexed[0], other) for other in indexed[1:]]
    for (first, one), (second, other) in pairs:
        if np.ndim(one) != np.ndim(other):
            problem = f"has {_axes(other)} but column '{first}' has {_axes(one)}"
            raise DataError(second, None, None, problem, "give every column one value a unit")
        if np.shape(one) != np.shape(other):
            problem = f"has {_rows(other)} but column '{first}' has {_rows(one)}"
            raise DataError(second, None, None, problem, "give every column one value a unit")
        labels: Any = getattr(one, "index", None)
        others: Any = getattr(other, "index", None)
        if hasattr(labels, "equals") and hasattr(others, "equals") and not labels.equals(others):
            problem = f"is indexed otherwise than column '{first}'"
            raise DataError(second, None, None, problem, "take both from one frame, or align them")


def _rows(values: Any) -> str:
    shape = np.shape(values)
    if len(shape) == 1:
        return f"{shape[0]} row" + ("" if shape[0] == 1 else "s")
    return " × ".join(map(str, shape)) + " values"


def _axes(values: Any) -> str:
    return "rows of several values" if np.ndim(values) > 1 else "one value a row"


def fits(column: str, values: Any, shape: tuple[int, ...]) -> None:
    """The column goes with units of that shape: as many, or one for all."""
    try:
        np.broadcast_shapes(np.shape(values), shape)
    except ValueError:
        problem = f"has {_rows(values)} but there are {' × '.join(map(str, shape))} units"
        remedy = "give one value a unit, or one for all"
        raise DataError(column, None, None, problem, remedy) from None


def last_axis(column: str, values: Any, size: int | None, what: str) -> None:
    """Each row holds so many values."""
    own = np.shape(values)[-1] if np.ndim(values) else None
    if own is None or own == 0 or (size is not None and own != size):
        found = "is a single number" if own is None else f"has {own} {what}"
        wanted = f"one or more {what}" if size is None else f"{size} {what}"
        raise DataError(column, None, None, found, f"give {wanted} a row")


def single(column: str, value: Any) -> None:
    """One number, not one a row."""
    if np.ndim(value):
        problem = "is not one number"
        raise DataError(column, None, None, problem, "the family knows one value for all rows")


def classes(column: str, values: Any, number: int | None = None) -> None:
    """Two classes or more, on the last axis."""
    last_axis(column, values, number, "classes")
    if np.shape(values)[-1] == 1:
        raise DataError(column, None, None, "has one class", "give two classes or more a row")


def one_of(column: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        known = ", ".join(repr(c) for c in choices)
        raise DataError(column, None, value, "is not known", f"choose one of {known}")


def simplex(column: str, values: Any) -> Array:
    """Probabilities along the last axis that sum to one."""
    array = nonnegative(column, values, "a probability is zero or more")
    if not is_traced(array):
        last_axis(column, array, None, "classes")
        host = np.asarray(array)
        slack = max(100 * np.finfo(host.dtype).eps * host.shape[-1], 1e-9)
        wrong = np.abs(host.sum(-1) - 1) > slack
        _refuse_block(column, values, host, wrong, "does not sum to one", "divide it by its sum")
    return array


def positive_definite(column: str, values: Any, size: int | None = None) -> Array:
    """Symmetric matrices on the last two axes with positive eigenvalues."""
    array = numbers(column, values)
    if is_traced(array):
        return array
    host = np.asarray(array)
    wanted = "give a square matrix" if size is None else f"give a {size} × {size} matrix"
    square = host.ndim >= 2 and host.shape[-1] == host.shape[-2]
    if not square or (size is not None and host.shape[-1] != size):
        found = " × ".join(map(str, host.shape[-2:])) or "a single number"
        raise DataError(column, None, None, f"is {found}", wanted)
    scale = np.abs(host).max(axis=(-1, -2), initial=0)
    skew = np.abs(host - np.swapaxes(host, -1, -2)).max(axis=(-1, -2), initial=0)
    wrong = skew > 1e-6 * scale
    _refuse_block(column, values, host, wrong, "is not symmetric", "give a symmetric matrix")
    remedy = "give a covariance whose eigenvalues are all above zero"
    wrong = ~is_definite(host)
    _refuse_block(column, values, host, wrong, "is not positive definite", remedy)
    return array


def is_definite(matrices: np.ndarray) -> np.ndarray:
    """Whether all eigenvalues are above zero by more than rounding."""
    values = np.linalg.eigvalsh(matrices)
    slack = values.shape[-1] * np.finfo(matrices.dtype).eps
    return values[..., 0] > slack * np.abs(values).max(-1, initial=0)


def _refuse_block(
    column: str, values: Any, host: np.ndarray, wrong: Any, problem: str, remedy: str
) -> None:
    """Raise for the first vector or matrix that is wrong, showing all of it."""
    wrong = np.asarray(wrong)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
        raise DataError(column, _label(values, at), host[at], problem, remedy)


# --- quantities ---------------------------------------------------------------------------------


def exists(quantity: str, where: Any, why: str, remedy: str) -> None:
    """Raise unless the quantity exists in every row."""
    if is_traced(where):
        return
    where = np.asarray(where)
    if not where.all():
        row = "" if where.ndim == 0 else f" of row {int(np.argwhere(~where)[0][0])}"
        raise DoesNotExist(f"the {quantity}{row} does not exist: {why}; {remedy}.")
