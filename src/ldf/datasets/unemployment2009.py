"""US unemployment 2009: unemployed of the labour force, by county, with census features of 1990."""

from __future__ import annotations

import numpy as np

from ldf.datasets.counties import counties
from ldf.datasets.dataset import Dataset, package
from ldf.families import Binomial

NAMES = {
    "RD90": "deprivation",
    "PS90": "population_structure",
    "UE90": "unemployment_1990",
    "DV90": "divorced",
    "MA90": "median_age",
    "POL90": "log_population_rounded",
    "DNL90": "log_density",
    "MFIL89": "log_family_income",
    "FP89": "families_in_poverty",
    "BLK90": "black",
    "GI89": "gini",
    "FH90": "female_headed",
    "SOUTH": "south",
}
SOURCE = ("area", "state_code", "county_code", "name", "year",
          "labour_force", "employed", "unemployed", "rate")  # fmt: skip


def unemployment2009() -> Dataset:
    """3,083 counties: unemployed of the labour force, and 15 features of about 1990.

    The features are those of `counties`, which lacks Alaska, Hawaii and Puerto Rico; two of its
    counties have no unemployment data under their code. `log_population` and
    `log_population_rounded` differ by less than 1e-9: both are kept, since both are in the set
    that is measured. `homicide_rate` is per 100,000 person-years.
    """
    pandas = package("pandas")
    path = package("bokeh_sampledata").package_path("unemployment09.csv.gz")
    found = pandas.read_csv(path, header=None, names=SOURCE, dtype=str)
    found["fips"] = found["state_code"] + found["county_code"]
    for column in ("labour_force", "unemployed"):
        found[column] = found[column].str.replace(",", "").astype(int)
    known = pandas.DataFrame(counties().columns()).rename(columns=NAMES)
    frame = found[["fips", "name", "unemployed", "labour_force"]].merge(known, on="fips")
    frame["log_population"] = np.log(frame["person_years"] / 3)  # which are of three years
    frame["homicide_rate"] = 1e5 * frame["homicides"] / frame["person_years"]
    ids, primary = ("fips", "name", "state"), ("unemployed", "labour_force")
    auxiliary = [*NAMES.values(), "log_population", "homicide_rate"]
    return Dataset(
        name="unemployment2009",
        about="unemployed of the labour force in 2009, US counties",
        frame=frame[[*ids, *primary, *auxiliary]],
        family=Binomial(),
        primary=dict(zip(("successes", "trials"), primary, strict=True)),
        auxiliary=auxiliary,
        ids=ids,
        group="state",
        sensitive=("black",),
        source="PyPI bokeh_sampledata, unemployment09.csv.gz, from the Bureau of Labor Statistics; "
        "features from NCOVR, as counties()",
        licence="public domain (Bureau of Labor Statistics); BSD-3-Clause (libpysal, of NCOVR)",
    )
