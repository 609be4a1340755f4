"""What is to be learned and how; the data aside."""

from __future__ import annotations

from dataclasses import dataclass, field

from ldf import check
from ldf.ensemble import Ensemble
from ldf.families.base import Family
from ldf.ground import PRIORS, REFERENCES
from ldf.mixed import Mixture
from ldf.objective import Objective, maximum_likelihood
from ldf.statistic import Statistic


@dataclass(frozen=True)
class Spec:
    """One model, before it has seen data."""

    family: Family
    ensemble: Ensemble = field(default_factory=Ensemble)
    prior: Statistic | str = "weak"  # λ0, or how to find it
    objective: Objective = maximum_likelihood
    reference: str = "prior"  # what the objective compares with, if it does
    balance: int = 0  # classes of the empirical rate that count the same; 0: each row counts
    certain: bool = False  # a regression without dispersion: see Model
    structure: Mixture | None = None  # what ties units together

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            check.one_of("prior", self.prior, tuple(PRIORS))
        check.one_of("reference", self.reference, REFERENCES)
