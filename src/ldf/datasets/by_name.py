"""All sets by name."""

from __future__ import annotations

from collections.abc import Callable

from ldf import check
from ldf.datasets.birthdays import birthdays
from ldf.datasets.chem97_schools import chem97_schools
from ldf.datasets.counties import IDS, PRIMARY, counties
from ldf.datasets.dataset import Dataset, package
from ldf.datasets.district import FEATURES, district
from ldf.datasets.flights_late import flights_late
from ldf.datasets.homicide_panel import homicide_panel
from ldf.datasets.melanoma_eu import melanoma_eu
from ldf.datasets.movielens import movielens
from ldf.datasets.star98 import star98
from ldf.datasets.unemployment2009 import unemployment2009
from ldf.families import Binomial, Poisson


def load(name: str) -> Dataset:
    """A set by its name, with what its columns are. Needs `pip install 'ldf[datasets]'`."""
    check.one_of("name", name, names())
    return SETS[name]()


def names() -> tuple[str, ...]:
    """Of all sets."""
    return tuple(SETS)


def _district() -> Dataset:
    return Dataset(
        name="district",
        about="electrified of the buildings, cells of a simulated district, 854 of 2,236 surveyed",
        frame=package("pandas").DataFrame(district().columns()),
        family=Binomial(),
        primary={"successes": "electrified", "trials": "buildings"},
        auxiliary=list(FEATURES),
        ids=("row", "column"),
        group=None,
        sensitive=(),
        source="simulated by ldf.datasets.district",
        licence="BSD-3-Clause (ldf)",
    )


def _counties() -> Dataset:
    found = counties()
    return Dataset(
        name="counties",
        about="homicides of 1988-90, US counties",
        frame=package("pandas").DataFrame(found.columns()),
        family=Poisson(),
        primary=dict(PRIMARY),
        auxiliary=list(found.names),
        ids=IDS,
        group="state",
        sensitive=found.sensitive,
        source="with ldf; from PyPI libpysal 4.1.1, NAT (NCOVR)",
        licence="BSD-3-Clause (libpysal)",
    )


SETS: dict[str, Callable[[], Dataset]] = {
    "district": _district,
    "counties": _counties,
    "star98": star98,
    "unemployment2009": unemployment2009,
    "flights_late": flights_late,
    "melanoma_eu": melanoma_eu,
    "birthdays": birthdays,
    "chem97_schools": chem97_schools,
    "movielens": movielens,
    "homicide_panel": homicide_panel,
}
