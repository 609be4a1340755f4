"""Compute, then draw: every plot takes numbers that already stand in a table.

A table is made by its `of`, is had as a frame by `to_frame()`, and is drawn by the function that
has its name in lower case. Maps are drawn from values as they are, and had as a frame by
`map_frame`. What is drawn goes into the caller's `axis` or `axes`, or into a new
figure; the figure comes back. Models are named by their roles ("ldf", "mixture", "compound",
"plain"), which have one look in all plots (`ROLES`); `names` are the caller's words for them.

>>> import ldf
>>> family = ldf.Binomial()
>>> seen = family.statistic(successes=[3, 0], trials=[10, 4])
>>> rate = family.posterior(family.prior(0.5, 0.5) + seen)
>>> table = Profiles.of_theta({"ldf": rate}, unit=["here", "there"], observed=[0.3, 0.0])
>>> table.to_frame().columns.tolist()
['model', 'unit', 'left', 'right', 'mass']

`profiles(table)` draws it. Drawing needs Matplotlib, which is imported only then:
`pip install 'ldf[plot]'`. Maps of areas need geopandas: `pip install 'ldf[maps]'`.
"""

from ldf.plot.attributions import Attribution, attribution
from ldf.plot.checks import Calibration, Pit, calibration, pit
from ldf.plot.columns import Histograms, histograms
from ldf.plot.comparisons import Differences, Entropies, differences, entropies
from ldf.plot.maps import areas, grids, map_frame, points
from ldf.plot.one_unit import Features, features, inferences
from ldf.plot.projection import Areas
from ldf.plot.ranked import Ranked, ranked
from ldf.plot.ridges import profiles
from ldf.plot.roles import ROLES, Role
from ldf.plot.selection import Objective, objective
from ldf.plot.slots import Profiles
from ldf.plot.sources import FILL, STYLES, Curves, ceiling, curves, posteriors
from ldf.plot.statistics import Worth, worth

__all__ = [
    "FILL",
    "ROLES",
    "STYLES",
    "Areas",
    "Attribution",
    "Calibration",
    "Curves",
    "Differences",
    "Entropies",
    "Features",
    "Histograms",
    "Objective",
    "Pit",
    "Profiles",
    "Ranked",
    "Role",
    "Worth",
    "areas",
    "attribution",
    "calibration",
    "ceiling",
    "curves",
    "differences",
    "entropies",
    "features",
    "grids",
    "histograms",
    "inferences",
    "map_frame",
    "objective",
    "pit",
    "points",
    "posteriors",
    "profiles",
    "ranked",
    "worth",
]
