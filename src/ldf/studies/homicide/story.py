"""Section 6 in words."""

from __future__ import annotations

import numpy as np

from ldf.studies.claims import ahead, middle
from ldf.studies.figure import scores
from ldf.studies.homicide.claims import modes
from ldf.studies.homicide.figures import NAMES, ROLES
from ldf.studies.homicide.study import EM, Homicide, at_map
from ldf.studies.story import listed, predicted

WORDS = {ROLES[role]: name for role, name in NAMES.items()}


def story(of: Homicide) -> list[str]:
    """What was found, in a few paragraphs."""
    return [predicted(of.cv, "counties", WORDS, "gamma-poisson", of.state), _mixture(of), _more(of)]


def _mixture(of: Homicide) -> str:
    sizes = np.bincount(of.assignment.argmax(0), minlength=len(of.assignment))
    peaks = modes(of.mixture.learned_.posterior(of.said.rows(of.largest)))
    a, b = at_map(of)
    each = listed([f"{size:,}" for size in sizes])
    return (
        f"The mappings of LDF-MM are the likeliest for {each} counties. The entropy of the "
        f"assignment, of {np.log(len(sizes)):.2f} nats at most, is {middle(of.entropy, 2)}. "
        f"p(θ | x) has several peaks in {int((peaks > 1).sum())} of the {len(peaks)} most populous "
        f"counties of their states. So many homicides the auxiliary data of a county are worth: "
        f"{middle(a)}; in an exposure of so many thousands: {middle(b)}."
    )


def _more(of: Homicide) -> str:
    score, state = scores(of.by_state), of.state[of.by_state.counted]
    whole = ahead(score[EM], score["gamma-poisson"], state)
    found = f"With whole states held out LDF-MM is ahead of gamma-Poisson regression by {whole}."
    for period, own in of.later.items():
        both, group = own["x and this period"], own["state"]
        found += (
            f" Counts of {period} are foretold by {of.foretold_by} from x and this period's count "
            f"with {both.mean():.3f} a county, {ahead(both, own['x'], group)} more than from x and "
            f"{ahead(both, own['this period'], group)} more than from the count alone."
        )
    return found
