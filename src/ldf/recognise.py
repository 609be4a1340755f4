"""Which rows of a frame a model has learned from, by what they hold.

A training row is answered for by the fit that has not seen it, also when the frame comes back in
another order, as a part, or from a file.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b

import numpy as np

from ldf.data import Data


def _fingerprints(data: Data) -> list[bytes]:
    """Of each row with primary data: what it holds, not what it is called."""
    y = [np.column_stack([values]).astype(float) for values in data.y.values()]
    whole = np.ascontiguousarray(np.concatenate([data.x, *y], 1)) + 0.0  # −0 is 0
    whole[np.isnan(whole)] = np.nan  # there are many NaN, too
    return [
        blake2b(row.tobytes(), digest_size=8).digest() if seen else b""
        for row, seen in zip(whole, data.seen, strict=True)
    ]


def parts_by_row(data: Data, part: np.ndarray) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for mark, number in zip(_fingerprints(data), part.tolist(), strict=True):
        if number >= 0:
            found[mark].append(number)
    return dict(found)


def find_parts(data: Data, parts: dict[bytes, list[int]]) -> np.ndarray:
    """Where each row was held out in learning; −1 if it was not there. Rows that hold the same are
    told apart by their order."""
    taken: dict[bytes, int] = defaultdict(int)
    found = np.full(len(data), -1)
    for i, mark in enumerate(_fingerprints(data)):
        known = parts.get(mark, []) if mark else []
        if known:
            found[i] = known[taken[mark] % len(known)]
            taken[mark] += 1
    return found
