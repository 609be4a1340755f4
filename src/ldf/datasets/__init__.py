"""Data to learn from: a simulator, a real set that comes with the package, and real sets that
packages of the extra `datasets` bring. `load` gives any of them by name, with what its columns are.
"""

from ldf.datasets.by_name import load, names
from ldf.datasets.counties import Counties, counties
from ldf.datasets.dataset import Dataset
from ldf.datasets.district import FEATURES, District, district

__all__ = [
    "FEATURES",
    "Counties",
    "Dataset",
    "District",
    "counties",
    "district",
    "load",
    "names",
]
