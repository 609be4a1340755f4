"""What may come in: bad input gets one sentence that names the column, the row, the value and the
remedy. Nothing is repaired here, and no NaN is ever replaced by a number.

Arrays that are being traced by JAX have no values yet and pass unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from ldf.special.arrays import Array


class DataError(ValueError):
    """A value that cannot be used, with what a caller needs to point at it."""

    def __init__(self, column: str, row: Any, value: Any, problem: str, remedy: str) -> None:
        self.column, self.row, self.value = column, row, value
        self.problem, self.remedy = problem, remedy
        where = f"column '{column}'" + ("" if row is None else f", row {row!r}")
        what = "" if value is None else f": {_shown(value)}"
        super().__init__(f"{where}{what} {problem}; {remedy}.")


class DoesNotExist(ValueError):
    """A quantity that an improper or heavy-tailed distribution does not have."""


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=9, separator=", ")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return repr(value)


def is_traced(*values: Any) -> bool:
    return any(isinstance(value, Tracer) for value in values)


def numbers(column: str, values: Any, *, finite: bool = True) -> Array:
    """The values as an array of floats: NumPy's, or JAX's if they are a JAX array."""
    if is_traced(values):
        return values
    raw = values
    if not isinstance(values, jax.Array):
        try:
            values = np.asarray(values)
            if values.dtype.kind not in "biuf":
                values = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            _complain_of_text(column, raw)
        if values.dtype.kind in "biu":
            values = values.astype(float)
    if finite:
        _all(column, raw, np.isnan(values), "is missing", MISSING)
        _all(column, raw, np.isinf(values), "is infinite", "give a finite number")
    return values


MISSING = "leave the row out, or give a row without primary data zero trials or zero exposure"


def _complain_of_text(column: str, values: Any) -> None:
    try:
        flat = list(np.asarray(values, dtype=object).reshape(-1))
    except ValueError:
        flat = []
    for position, value in enumerate(flat):
        try:
            float(value)
        except (TypeError, ValueError):
            row = _label(values, (position,))
            problem, remedy = "is not a number", "turn the column into numbers first"
            if value is None or value is getattr(value, "NA", ()):
                problem, remedy = "is missing", MISSING
            raise DataError(column, row, value, problem, remedy) from None
    shapes = "rows of unequal length" if flat == [] else "not numbers"
    raise DataError(column, None, None, f"holds {shapes}", "give an array of numbers") from None


def _label(values: Any, position: tuple[int, ...]) -> Any:
    """The row's label if the column brings an index (pandas), else its position from 0."""
    if not position:
        return None
    index = getattr(values, "index", None)
    if index is not None and not callable(index):
        label = index[position[0]]
        return label.item() if hasattr(label, "item") else label
    return int(position[0])


def _all(
    column: str,
    raw: Any,
    wrong: Any,
    problem: str | Callable[[tuple[int, ...]], str],
    remedy: str,
) -> None:
    """Raise for the first row that is wrong."""
    if is_traced(wrong):
        return
    wrong = np.asarray(wrong)
    if not wrong.any():
        return
    position = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = np.asarray(raw, dtype=object) if not hasattr(raw, "dtype") else np.asarray(raw)
    values = np.broadcast_to(values, np.broadcast_shapes(values.shape, wrong.shape))
    value = values[position]
    text = problem(position) if callable(problem) else problem
    raise DataError(column, _label(raw, position), value, text, remedy)


def nonnegative(
    column: str, values: Any, remedy: str = "give a number that is zero or more"
) -> Array:
    array = numbers(column, values)
    if not is_traced(array):
        _all(column, values, np.asarray(array) < 0, "is negative", remedy)
    return array


def positive(column: str, values: Any, remedy: str = "give a number above zero") -> Array:
    array = nonnegative(column, values)
    if not is_traced(array):
        _all(column, values, np.asarray(array) == 0, "is zero", remedy)
    return array


def counts(column: str, values: Any, *, effective: bool = False) -> Array:
    """Whole numbers, zero or more; fractions only if declared as effective counts."""
    array = nonnegative(column, values, "a count is zero or more: correct the row")
    if not effective and not is_traced(array):
        host = np.asarray(array)
        remedy = "round it, or declare survey-weighted counts with design_effect= or effective=True"
        _all(column, values, host != np.round(host), "is not a whole number", remedy)
    return array


def at_most(column: str, values: Any, other: str, limit: Any, remedy: str) -> None:
    if is_traced(values, limit):
        return
    top = np.asarray(limit, dtype=float)
    wrong = np.asarray(values, dtype=float) > top
    top = np.broadcast_to(top, wrong.shape)
    _all(column, values, wrong, lambda at: f"is more than '{other}', {_shown(top[at])}", remedy)


def same_length(**columns: Any) -> None:
    """All columns describe the same units: lengths agree, or are one number for all."""
    lengths = {name: np.shape(value)[0] for name, value in columns.items() if np.ndim(value) > 0}
    if len(set(lengths.values())) > 1:
        (first, a), (second, b) = next(
            (x, y) for x in lengths.items() for y in lengths.items() if x[1] != y[1]
        )
        problem = f"has {b} rows but column '{first}' has {a}"
        raise DataError(second, None, None, problem, "give every column one value a unit")


def one_of(column: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        known = ", ".join(repr(c) for c in choices)
        raise DataError(column, None, value, "is not known", f"choose one of {known}")


def simplex(column: str, values: Any) -> Array:
    """Probabilities along the last axis that sum to one."""
    array = nonnegative(column, values, "a probability is zero or more")
    if not is_traced(array):
        total = np.asarray(array).sum(-1)
        eps = 100 * np.finfo(np.asarray(array).dtype).eps * np.shape(array)[-1]
        wrong = np.abs(total - 1) > max(eps, 1e-9)
        _all(column, values, wrong, "does not sum to one", "divide it by its sum")
    return array


def probability(column: str, values: Any) -> Array:
    array = nonnegative(column, values, "a probability lies between 0 and 1")
    at_most(column, array, "the largest probability", 1.0, "a probability lies between 0 and 1")
    return array


def positive_definite(column: str, values: Any) -> Array:
    """Symmetric matrices on the last two axes with positive eigenvalues."""
    array = numbers(column, values)
    if is_traced(array):
        return array
    host = np.asarray(array)
    if host.ndim < 2 or host.shape[-1] != host.shape[-2]:
        raise DataError(column, None, None, f"has shape {host.shape}", "give a square matrix")
    scale = np.abs(host).max(axis=(-1, -2), initial=0)
    skew = np.abs(host - np.swapaxes(host, -1, -2)).max(axis=(-1, -2), initial=0)
    _matrix(column, host, skew > 1e-6 * scale, "is not symmetric", "give a symmetric matrix")
    least = np.linalg.eigvalsh(host).min(-1)
    remedy = "give a covariance or precision whose eigenvalues are all above zero"
    _matrix(column, host, least <= 0, "is not positive definite", remedy)
    return array


def _matrix(
    column: str, matrices: np.ndarray, wrong: np.ndarray, problem: str, remedy: str
) -> None:
    if np.any(wrong):
        at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0]) if np.ndim(wrong) else ()
        raise DataError(column, at[0] if at else None, matrices[at], problem, remedy)


def exists(quantity: str, where: Any, why: str, remedy: str) -> None:
    """Raise unless the quantity exists in every row."""
    if is_traced(where):
        return
    where = np.asarray(where)
    if not where.all():
        row = "" if where.ndim == 0 else f" of row {int(np.argwhere(~where)[0][0])}"
        raise DoesNotExist(f"the {quantity}{row} does not exist: {why}; {remedy}.")
