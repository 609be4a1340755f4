"""What the paper says and what was found here, one row a sentence; then what it does not ask.

A claim is a sentence of the paper that can be checked, with its figure where it gives one. What was
measured stands beside it, whether it agrees or not. A row without a section is not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ldf import assess

NONE = "there are none"


class Claim(NamedTuple):
    """One sentence, or one measurement that the paper does not have."""

    section: str  # of the paper; empty: it is not in it
    what: str
    paper: str  # its figure; empty if the sentence has none
    measured: str


def beyond(what: str, measured: str) -> Claim:
    """What the paper does not ask."""
    return Claim("", what, "", measured)


def as_columns(claims: Sequence[Claim]) -> dict[str, list[str]]:
    return {name: [getattr(claim, name) for claim in claims] for name in Claim._fields}


def as_markdown(claims: Sequence[Claim]) -> str:
    """Two tables: what the paper says, and what it does not ask."""
    said = [claim for claim in claims if claim.section]
    lines = ["| section | the paper says | its figure | measured here |", "|:--|:--|--:|:--|"]
    lines += [_row(claim) for claim in said]
    if len(said) < len(claims):
        lines += ["", "| not in the paper | measured here |", "|:--|:--|"]
        lines += [_row((claim.what, claim.measured)) for claim in claims if not claim.section]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- numbers in words ---------------------------------------------------------------------------


def share(of: Any) -> str:
    """Of units, with what chance alone would make of it. A unit may count as a half."""
    values = np.asarray(of, float)
    if not len(values):
        return NONE
    error = values.std() / np.sqrt(len(values))
    return f"{values.mean():.1%} ± {error:.1%} of {len(values):,}"


def better(mine: np.ndarray, theirs: np.ndarray) -> str:
    """The share of units in which the first is more; a tie is half a unit."""
    with np.errstate(invalid="ignore"):  # both may be −∞
        return share(assess.wins(np.where(mine == theirs, 0.0, mine - theirs)))


def ahead(mine: np.ndarray, theirs: np.ndarray, group: Any = None) -> str:
    """The mean difference of two log scores, with its standard error."""
    found = assess.score_difference(mine, theirs, group)
    return f"{found.mean:+.4f} ± {found.standard_error:.4f}"


def middle(values: np.ndarray, digits: int = 1) -> str:
    """The median, and the quartiles around it, in words."""
    if not len(values):
        return NONE
    low, half, high = np.quantile(np.asarray(values, float), (0.25, 0.5, 0.75))
    return f"median {half:.{digits}f} (half of them {low:.{digits}f} to {high:.{digits}f})"


def held(found: assess.Coverage) -> str:
    """How many units are inside their intervals or sets, level by level."""
    return ", ".join(f"{row['observed']:.1%} at {row['mass']:.0%}" for row in found.rows())


def correlation(a: np.ndarray, b: np.ndarray) -> str:
    """Of two columns; there is none where one of them does not vary."""
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return "none: one of them is the same everywhere"
    return f"{np.corrcoef(a, b)[0, 1]:+.2f}"


def of_ranks(a: np.ndarray, b: np.ndarray) -> str:
    """The correlation of ranks."""
    from scipy.stats import rankdata

    return correlation(rankdata(a), rankdata(b))
