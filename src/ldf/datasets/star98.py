"""Mathematics tests in California 1998: pupils above the national median, by school district."""

from __future__ import annotations

from ldf.datasets.dataset import Dataset, package
from ldf.families import Binomial

NAMES = {
    "LOWINC": "low_income",
    "PERASIAN": "asian",
    "PERBLACK": "black",
    "PERHISP": "hispanic",
    "PERMINTE": "minority_teachers",
    "AVYRSEXP": "experience",
    "AVSALK": "salary",
    "PERSPENK": "spending",
    "PTRATIO": "pupils_per_teacher",
    "PCTAF": "college_courses",
    "PCTCHRT": "charter_schools",
    "PCTYRRND": "year_round_schools",
    "PERMINTE_AVYRSEXP": "minority_teachers_x_experience",
    "PERMINTE_AVSAL": "minority_teachers_x_salary",
    "AVYRSEXP_AVSAL": "experience_x_salary",
    "PERSPEN_PTRATIO": "spending_x_pupils",
    "PERSPEN_PCTAF": "spending_x_college",
    "PTRATIO_PCTAF": "pupils_x_college",
    "PERMINTE_AVYRSEXP_AVSAL": "minority_teachers_x_experience_x_salary",
    "PERSPEN_PTRATIO_PCTAF": "spending_x_pupils_x_college",
}
ETHNICITY = ("asian", "black", "hispanic", "minority_teachers")


def star98() -> Dataset:
    """303 districts: pupils above the national median of those tested, and 20 features.

    Columns are per cent, but for `experience` (a teacher's years), `salary` (thousands a teacher),
    `spending` (thousands a pupil) and `pupils_per_teacher`. The last eight are products, as the
    source gives them.
    """
    data = package("statsmodels.datasets").star98.load_pandas().data
    frame = data[list(NAMES)].rename(columns=NAMES)
    frame.insert(0, "district", range(len(frame)))
    frame.insert(1, "above_median", data["NABOVE"])
    frame.insert(2, "tested", data["NABOVE"] + data["NBELOW"])
    return Dataset(
        name="star98",
        about="9th graders above the national median in mathematics, Californian school districts",
        frame=frame,
        family=Binomial(),
        primary={"successes": "above_median", "trials": "tested"},
        auxiliary=list(NAMES.values()),
        ids=("district",),
        group=None,
        sensitive=tuple(name for name in NAMES.values() if name.startswith(ETHNICITY)),
        source="PyPI statsmodels, datasets.star98; from Gill, Generalized Linear Models: "
        "A Unified Approach (2000)",
        licence="BSD-3-Clause (statsmodels); of the data it says: used with express permission "
        "from the original author, who retains all rights",
    )
