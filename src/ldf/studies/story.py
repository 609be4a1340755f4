"""A study in words: what was found, with the numbers of its tables filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldf.studies.claims import ahead, better
from ldf.studies.figure import scores
from ldf.validate import CrossValidation


def sizes(cv: CrossValidation, units: str) -> str:
    """What the data are."""
    rows, width = cv.data.x.shape
    return (
        f"{rows:,} {units}, of which {int(cv.data.seen.sum()):,} have primary data and "
        f"{int(cv.counted.sum()):,} could be scored; {width} auxiliary columns once encoded."
    )


def predicted(
    cv: CrossValidation, units: str, names: Mapping[str, str], than: str, group: Any = None
) -> str:
    """How well each model predicts what it has not seen; those in `names` beside one of them."""
    score = scores(cv)
    means = [f"{own.mean():.3f} by {names.get(name, name)}" for name, own in score.items()]
    groups = None if group is None else np.asarray(group)[cv.counted]
    lead = [
        f"{ahead(score[name], score[than], groups)} for {words}, which is better in "
        f"{better(score[name], score[than])} {units}"
        for name, words in names.items()
        if name != than
    ]
    cover = cv.coverage("ldf", (0.9,))[0]
    return (
        f"All that follows is of {units} predicted by fits that had not seen them. The mean log "
        f"score, of which more is better, is {listed(means)}. The difference to {names[than]} is "
        f"{'; '.join(lead)}. Of what was observed {cover['observed']:.1%} lie in LDF's 90 % sets, "
        f"which, being of whole numbers, should hold {cover['expected']:.1%}."
    )


def listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
