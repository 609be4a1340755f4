"""What people use today, as special cases of the same machinery.

All are linear mappings (Section 4, Appendices C and D), solved to the last digit:

- the plain regression gives θ itself: infinitely many pseudo-observations, no dispersion;
- the compound regression gives all rows the same number of pseudo-observations; of counts with
  exposure it is the same number of events (Appendix D), or the same exposure (Section 4);
- with a log-linear count that number varies with x as well; of nested classes it does so for all
  but the first of them in either case;
- the intercept alone knows the units' distribution and nothing of x.

None has a prior beside it: its pseudo-observations are the whole of λ. Each is one fit to all
training rows, and its penalty that under which these are likeliest by fits that have not seen them
(decision 44), unless one is given.
"""

from __future__ import annotations

from typing import Any

from ldf import check
from ldf.ensemble import LARGE, Ensemble, Member
from ldf.families.base import Family
from ldf.mappings import Linear
from ldf.spec import Spec

# The textbook's names of the plain and of the compound regression, by family.
NAMES = {
    "Binomial": ("binomial", "beta-binomial"),
    "Poisson": ("poisson", "gamma-poisson"),
    "Multinomial": ("multinomial", "dirichlet-multinomial"),
    "NestedMultinomial": ("continuation-ratio", "generalised-dirichlet-multinomial"),
    "Gaussian": ("least-squares", "random-effect"),
}
PENALTY = 1e-3  # of the regression that an objective compares with, which is learned in each fold
# From where little is left of a slope to where little holds it back.
PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
PARTS = 5  # of the training rows, each left out in turn, where the penalty is to be found
MANY = 1000  # rows, from which on fewer parts do


def search(rows: int) -> dict[str, Any]:
    """Among which penalties, and by how many parts. Of many rows some tell nearly as much as all,
    and of very many penalties a decade apart nearly the same."""
    if rows >= LARGE:
        return {"penalty": PENALTIES[::2], "parts": 2}
    return {"penalty": PENALTIES, "parts": PARTS if rows < MANY else 3}


def baselines(
    family: Family,
    penalty: float | tuple[float, ...] = PENALTIES,
    preprocess: str = "power",
    parts: int = PARTS,
) -> dict[str, Spec]:
    """The regressions of a family, by name. Of several penalties each training set takes the one
    that explains rows best that a fit has not seen, each of so many parts left out in turn."""
    kind = type(family).__name__
    if kind not in NAMES:
        remedy = f"there are some for {', '.join(NAMES)}"
        raise check.DataError("baselines", None, kind, "has no textbook regressions", remedy)
    plain, compound = NAMES[kind]
    mappings = {
        "intercept": Linear(True, True),
        plain: Linear(True),
        compound: Linear(True, shape=kind == "Poisson"),  # Appendix D: they share the shape 1/δ
        f"{compound}, log-linear count": Linear(),
    }
    if kind == "Poisson":
        mappings[f"{compound}, constant exposure"] = Linear(True)
    return {
        name: regression(family, mapping, penalty, preprocess, name == plain, parts)
        for name, mapping in mappings.items()
    }


def regression(
    family: Family,
    mapping: Linear,
    penalty: float | tuple[float, ...] = 0.0,
    preprocess: str = "standard",
    certain: bool = False,
    parts: int = PARTS,
) -> Spec:
    """One linear mapping, with no prior beside it and nothing corrected afterwards."""
    if mapping.constant_count and mapping.constant_rate:
        penalty = 0.0  # there is no slope to hold back
    member = Member(mapping, preprocess, penalty=penalty)
    parts = parts if len(member.penalties) > 1 else 1
    ensemble = Ensemble((member,), parts=parts, combine="equal")
    return Spec(family, ensemble, prior="none", certain=certain)
