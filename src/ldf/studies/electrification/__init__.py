"""Section 5: rates of electrification. The study, its claims, its figures."""

from ldf.studies.electrification.claims import claims
from ldf.studies.electrification.figures import figures
from ldf.studies.electrification.story import story
from ldf.studies.electrification.study import Electrification, run

__all__ = ["Electrification", "claims", "figures", "run", "story"]
