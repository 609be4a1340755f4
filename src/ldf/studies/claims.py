"""What the paper says, and what was found here: one row a sentence.

A claim is a sentence of the paper that can be checked, with its figure where it gives one. What was
measured stands beside it, whether it agrees or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NONE = "there are none"


class Claim(NamedTuple):
    """One sentence."""

    section: str
    says: str
    paper: str  # its figure; empty if the sentence has none
    measured: str


def as_columns(claims: Sequence[Claim]) -> dict[str, list[str]]:
    return {name: [getattr(claim, name) for claim in claims] for name in Claim._fields}


def as_markdown(claims: Sequence[Claim]) -> str:
    lines = ["| section | the paper says | its figure | measured here |", "|:--|:--|--:|:--|"]
    cells = ([cell.replace("|", "\\|") for cell in claim] for claim in claims)
    lines += [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(lines) + "\n"


def share(mask: np.ndarray) -> str:
    """Of units, with what chance alone would make of it."""
    values = np.asarray(mask, float)
    if not len(values):
        return NONE
    mean = values.mean()
    error = np.sqrt(mean * (1 - mean) / len(values))
    return f"{mean:.1%} ± {error:.1%} of {len(values):,}"


def middle(values: np.ndarray, digits: int = 1) -> str:
    """The median, and the quartiles around it."""
    if not len(values):
        return NONE
    low, half, high = np.quantile(np.asarray(values, float), (0.25, 0.5, 0.75))
    return f"{half:.{digits}f} (half of them {low:.{digits}f} to {high:.{digits}f})"
