"""Data that come with the package: a simulator, and a real set."""

from ldf.datasets.counties import Counties, counties
from ldf.datasets.district import FEATURES, District, district

__all__ = ["FEATURES", "Counties", "District", "counties", "district"]
