"""Which rows of a frame a model has learned from, by what they hold.

A training row is answered for by the fit that has not seen it, also when the frame comes back in
another order, as a part, or from a file. Of several primary sources it may come back with some:
a row is known by any of its sources, if not by all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from ldf.data import Data
from ldf.families.joint import Joint


def _fingerprints(data: Data, source: str | None = None) -> list[bytes]:
    """Of each row with primary data (of a source): what it holds, not what it is called."""
    y, seen = data.y, data.seen
    if source is not None:
        of = data.of(source)
        own, seen = {f"{source}.{word}" for word in of.y}, of.seen
        y = {word: values if word in own else values * np.nan for word, values in y.items()}
    cells = [np.column_stack([values]).astype(float) for values in y.values()]
    whole = np.ascontiguousarray(np.concatenate([data.x, *cells], 1)) + 0.0  # −0 is 0
    whole[np.isnan(whole)] = np.nan  # there are many NaN, too
    return [
        blake2b(row.tobytes(), digest_size=8).digest() if here else b""
        for row, here in zip(whole, seen, strict=True)
    ]


def _marks(data: Data) -> Iterator[tuple[bytes, ...]]:
    """What each row may be known by: all that it holds, then each of several sources."""
    several = data.family.sources if isinstance(data.family, Joint) else ()
    each = [_fingerprints(data, name) for name, _ in several if len(several) > 1]
    for row in zip(_fingerprints(data), *each, strict=True):
        yield tuple(dict.fromkeys(mark for mark in row if mark))


def parts_by_row(data: Data, part: np.ndarray) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for marks, number in zip(_marks(data), part.tolist(), strict=True):
        for mark in marks if number >= 0 else ():
            found[mark].append(number)
    return dict(found)


def find_parts(data: Data, parts: dict[bytes, list[int]]) -> np.ndarray:
    """Where each row was held out in learning; −1 if it was not there. Rows that hold the same are
    told apart by their order."""
    taken: dict[bytes, int] = defaultdict(int)
    found = np.full(len(data), -1)
    for i, marks in enumerate(_marks(data)):
        mark = next((mark for mark in marks if mark in parts), None)
        if mark is not None:
            found[i] = parts[mark][taken[mark] % len(parts[mark])]
            taken[mark] += 1
    return found
