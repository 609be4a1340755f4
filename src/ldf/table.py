"""What is learned from: rows of numbers, whatever frame they came in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldf.families.base import Family


class Table(NamedTuple):
    """What is learned from: features and primary data of the same M rows."""

    x: np.ndarray  # M × P, NaN where a cell is missing
    y: dict[str, np.ndarray]  # valid where seen
    seen: np.ndarray  # whether there are primary data
    weight: np.ndarray  # how much a row counts
    group: np.ndarray | None = None  # parts never split one
    reference: np.ndarray | None = None  # log p_0 of each row, where a fitted model has said it


def empirical_rate(family: Family, y: dict[str, np.ndarray], seen: np.ndarray) -> np.ndarray:
    """t/n of each row's own primary data: NaN where there are none. Of a vector, the component
    that differs most between rows."""
    rate = np.full(len(seen), np.nan)
    if not seen.any():
        return rate
    statistic = family.statistic(**{name: values[seen] for name, values in y.items()})
    t, n = np.asarray(statistic.t, float), np.asarray(statistic.n, float)
    if t.ndim > 1:
        n = n if n.ndim == 1 else np.trace(n, axis1=-2, axis2=-1)
        t = t[:, np.argmax(np.nanvar(_ratio(t, n[:, None]), 0))]
    rate[seen] = _ratio(t, n)
    return rate


def _ratio(t: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.divide(t, n, out=np.full(np.broadcast_shapes(t.shape, n.shape), np.nan), where=n > 0)


def somewhere(y: dict[str, np.ndarray], seen: np.ndarray) -> dict[str, np.ndarray]:
    """Primary data in every row: where there are none those of another, which must not count."""
    first = int(np.argmax(seen))

    def fill(values: np.ndarray) -> np.ndarray:
        mask = seen.reshape(seen.shape + (1,) * (values.ndim - 1))
        return np.where(mask, values, values[first])

    return {name: fill(values) for name, values in y.items()}
