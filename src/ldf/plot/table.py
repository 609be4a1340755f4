"""What is drawn stands in a table first, and any table is had as a frame of pandas.

Tables are those of `ldf.assess`: columns of equal length, `to_dict()` and `rows()`; here they have
`to_frame()` as well. pandas is imported only then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ldf import assess, check
from ldf.check import DataError


def data_frame(columns: Mapping[str, Any]) -> Any:
    try:
        import pandas
    except ImportError as missing:
        raise ImportError("a frame needs pandas: pip install pandas") from missing
    return pandas.DataFrame(dict(columns))


class Table(assess.Table):
    """Columns of equal length, which may be had as a frame."""

    def to_frame(self) -> Any:
        return data_frame(self.to_dict())


def labels(given: Any, units: int) -> np.ndarray:
    """Names of the units, their numbers if there are none."""
    names = np.arange(units) if given is None else np.asarray(given)
    if names.shape != (units,):
        problem = f"has shape {names.shape} but there are {units} units"
        raise DataError("unit", None, None, problem, "give one name a unit")
    return names


def column(name: str, given: Any, units: int) -> np.ndarray:
    """A number a unit, NaN where there is none."""
    if given is None:
        return np.full(units, np.nan)
    values = np.asarray(check.numbers(name, given, absent=True), dtype=float)
    if values.shape != (units,):
        problem = f"has shape {values.shape} but there are {units} units"
        raise DataError(name, None, None, problem, "give one value a unit")
    return values
