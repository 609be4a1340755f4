"""Data that come with the package: simulators, and later real sets."""

from ldf.datasets.district import FEATURES, District, district

__all__ = ["FEATURES", "District", "district"]
