"""Section 5 in words."""

from __future__ import annotations

import numpy as np

from ldf import assess
from ldf.studies.claims import better, held, middle, of_ranks
from ldf.studies.electrification.claims import LOW, MODERATE, moderate, worth
from ldf.studies.electrification.figures import NAMES, ROLES
from ldf.studies.electrification.study import Electrification
from ldf.studies.story import predicted

WORDS = {ROLES[role]: name for role, name in NAMES.items()}


def story(of: Electrification) -> list[str]:
    """What was found, in a few paragraphs."""
    found = [predicted(of.cv, "regions", WORDS, "beta-binomial"), _worth(of)]
    return found if of.theta is None else [*found, _truth(of, of.theta)]


def _worth(of: Electrification) -> str:
    n, rate = worth(of)
    theirs = np.asarray(of.cv.answers["beta-binomial"].of(of.cv.counted).pseudo.n)
    low, high = MODERATE
    entropy = [np.asarray(of.cv.posterior(m).entropy()) for m in ("beta-binomial", "ldf")]
    return (
        f"So many pseudo-trials the auxiliary data of a region are worth to LDF: {middle(n)}; of "
        f"regions where they speak for a rate between {low} and {high}: "
        f"{middle(n[moderate(rate)])}; for less than {LOW}: {middle(n[rate < LOW])}. To "
        f"beta-binomial regression they are worth as much everywhere, {theirs.min():.1f} to "
        f"{theirs.max():.1f} by fold. LDF's p(θ | x) has the lower entropy in {better(*entropy)} "
        "regions."
    )


def _truth(of: Electrification, theta: np.ndarray) -> str:
    seen, learned = of.cv.data.seen, of.model.learned_
    new, out = (
        held(assess.coverage_of(learned.posterior(of.said.rows(rows)), theta[rows]))
        for rows in (~seen, seen)
    )
    ranks = "" if of.information is None else (
        " The rank correlation of pseudo-trials with the true information of a cell is "
        f"{of_ranks(of.information, worth(of)[0])}."
    )  # fmt: skip
    return (
        f"The true rates are known here. Intervals of p(θ | x) hold {new} in cells without primary "
        f"data and {out} in cells with some, held out.{ranks}"
    )
