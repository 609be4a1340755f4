"""Lightweight data fusion with conjugate mappings.

A prior, primary data and auxiliary data are the same kind of thing, a statistic, and they add:

>>> import ldf
>>> family = ldf.Binomial()
>>> prior = family.prior(successes=0.5, failures=0.5)
>>> seen = family.statistic(successes=[3, 0], trials=[10, 4])
>>> family.posterior(prior + seen).mean()
array([0.31818182, 0.1       ])
"""

from ldf import families
from ldf.check import DataError, DoesNotExist
from ldf.families import *
from ldf.statistic import Statistic

__all__ = ["DataError", "DoesNotExist", "Statistic"]
__all__ += families.__all__
