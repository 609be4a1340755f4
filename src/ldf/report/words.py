"""What the page calls things: θ, observations, and what one more survey would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Families whose further data the page can add, and the question it asks. The two numbers are the
# design (how many, how long) and the outcome.
ASKED = {
    "Binomial": ("How many more {trials}?", "Of these, {successes}"),
    "Multinomial": ("How many more are counted?", "Of these, {component}"),
    "Poisson": ("How much more {exposure}?", "{count} in it"),
    "Gaussian": ("How many more values?", "Their mean"),
}
PER_CENT = 100.0
MANY = (1.0, 1e3, 1e4, 1e5, 1e6)  # units of exposure that a rate may be told of


@dataclass(frozen=True)
class Words:
    """Of one model and, for a vector, one component."""

    family: str
    theta: str  # what is estimated
    unit: str  # what statistics count
    times: float  # θ is written times this: 100 for a share in per cent
    suffix: str  # and with this after it
    outcome: str  # what a predictive is of
    asked: tuple[str, str] | None  # of the what-if; None if it is not offered
    why_not: str

    @classmethod
    def of(
        cls, family: Any, primary: dict[str, Any], component: str | None, typical: float
    ) -> Words:
        """`typical` is the size of θ, by which its unit is chosen."""
        name = type(family).__name__
        columns = {
            word: column.replace("_", " ")
            for word, column in primary.items()
            if isinstance(column, str)
        }
        theta, unit, times, outcome = f"θ of {name}", "observations", 1.0, "observed"
        if name == "Binomial":
            made, trials = columns["successes"], columns["trials"]
            theta, unit, times = f"share of {made} in {trials}", trials, PER_CENT
            outcome = f"{made} among so many {trials}"
        elif component is not None:
            theta = f"share of {component}" if name == "Multinomial" else str(component)
            times = PER_CENT if name == "Multinomial" else 1.0
            unit = "counted" if name == "Multinomial" else "observations"
            outcome = str(component)
        elif name == "Poisson":
            exposure = columns.get("exposure", "exposure")
            times = next((many for many in MANY if many * typical >= 1), MANY[-1])
            many = "unit of" if times == 1 else f"{times:,.0f}"
            theta = f"{columns['count']} per {many} {exposure}"
            unit, outcome = exposure, columns["count"]
        elif name == "Gaussian":
            theta, outcome = columns["mean"], columns["mean"]
            known = getattr(family, "variance", None) is not None
            unit = "values" if known else "units of precision"
        asked = ASKED.get(name)
        filled = {"exposure": "exposure", "trials": "trials", "component": component} | columns
        if asked is not None:
            asked = (asked[0].format(**filled), asked[1].format(**filled))
        if name == "Gaussian" and getattr(family, "variance", None) is None:
            asked = ("With which variance?", "A further estimate of the mean")
        why = f"What further data would change is not offered for the family {name}: "
        why += "the page can add successes, counts, classes and means only."
        suffix = " %" if times == PER_CENT else ""
        return cls(name, theta, unit, times, suffix, outcome, asked, why)

    def value(self, theta: float) -> str:
        """θ in words."""
        return f"{self.times * theta:.3g}{self.suffix}"


def round_threshold(means: np.ndarray) -> float:
    """The mean of all units in two digits: about half of them lie above."""
    return float(f"{float(np.mean(means)):.2g}") if len(means) else 0.0
