"""Numbers and words as a page can hold them: compact, exact, and never run.

Arrays are base64 of little-endian bytes. All else is JSON in which no character can end the element
it stands in, or mean anything to HTML.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

# What could end a script element or a line of one, written as JSON lets it be written.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
TYPES = {"f4": "Float32", "f8": "Float64", "i4": "Int32", "u2": "Uint16", "u1": "Uint8"}


def array(values: Any, kind: str = "f4") -> dict[str, str]:
    """An array of numbers, flattened: its type and its bytes."""
    flat = np.ascontiguousarray(np.ravel(values), dtype=f"<{kind}")
    return {"type": TYPES[kind], "bytes": base64.b64encode(flat.tobytes()).decode("ascii")}


def number(value: Any) -> float | None:
    """A number as JSON has it, which knows no NaN and no infinity."""
    found = float(value)
    return found if np.isfinite(found) else None


def text(value: Any) -> str:
    """A label as a person would write it: a whole number without its point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def to_json(content: Any) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":")).translate(UNSAFE)
