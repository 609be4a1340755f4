"""Section 6: homicide rates by a mixture of mappings. The study, its claims, its figures."""

from ldf.studies.homicide.claims import claims
from ldf.studies.homicide.figures import figures
from ldf.studies.homicide.story import story
from ldf.studies.homicide.study import Homicide, run

__all__ = ["Homicide", "claims", "figures", "run", "story"]
