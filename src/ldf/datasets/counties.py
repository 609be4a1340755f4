"""US county homicides 1988–90: counts with exposure, 52 census features, and the counties' shapes.

The set is known as NCOVR (Baller, Anselin, Messner, Deane and Hawkins, Criminology 2001); the file
beside this one holds its source and licence, and `tools/counties.py` builds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ldf.special import Array

FILE = Path(__file__).with_name("counties.parquet")
IDS = ("fips", "county", "state")
PRIMARY = {"count": "homicides", "exposure": "person_years"}


class Counties(NamedTuple):
    """One row a county."""

    fips: Array
    county: Array
    state: Array
    homicides: Array  # of three years
    person_years: Array
    features: Array  # counties × 52, in the order of `names`
    names: tuple[str, ...]
    geometry: Array  # shapes as well-known binary, longitude and latitude

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Features that tell of ethnicity."""
        return tuple(name for name in self.names if name.startswith("BLK"))

    def columns(self) -> dict[str, Array]:
        """What a user would have: a table, without the shapes."""
        ids = {name: getattr(self, name) for name in (*IDS, *PRIMARY.values())}
        return ids | dict(zip(self.names, self.features.T, strict=True))


def counties() -> Counties:
    """Read them."""
    from pyarrow import parquet

    table = parquet.read_table(FILE)
    column = {name: table[name].to_numpy() for name in table.column_names}
    own = {name: column.pop(name) for name in (*IDS, *PRIMARY.values(), "geometry")}
    return Counties(**own, features=np.stack(list(column.values()), -1), names=tuple(column))
