"""Compute, then draw: every plot takes numbers that already stand in a table.

Drawing needs Matplotlib, which is imported only then: `pip install 'ldf[plot]'`.
"""

from ldf.plot.maps import areas, grids, points
from ldf.plot.projection import Areas
from ldf.plot.sources import FILL, STYLES, Curves, ceiling, curves, posteriors

__all__ = [
    "FILL",
    "STYLES",
    "Areas",
    "Curves",
    "areas",
    "ceiling",
    "curves",
    "grids",
    "points",
    "posteriors",
]
