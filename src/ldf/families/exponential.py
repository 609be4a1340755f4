"""Events and the total time they took, with a Gamma prior: failures on test, waiting times.

Right-censoring is natural: time without an event is exposure without a count.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ldf import check
from ldf.distributions import CompoundGamma, KnownValue
from ldf.families.gamma import NO_VALUES, Positive
from ldf.special import Array
from ldf.statistic import Arrivals


class Exponential(Positive):
    """`events` in a total `time`; waits that ended without an event add their time only.

    The predictive is that of the total time until so many events; a row with no event at all is
    scored by the probability of none in its time.
    """

    columns: ClassVar = ("time", "events")
    design: ClassVar = ("events",)

    @property
    def each(self) -> float:
        return 1.0

    def _times(self, time: Any, events: Any) -> tuple[Array, Array]:
        remedy = "a duration is zero or more: correct the row"
        times = check.nonnegative("time", time, remedy, missing=NO_VALUES)
        number = check.counts("events", events, missing=NO_VALUES)
        check.same_length(time=time, events=events)
        return number, times

    def statistic(self, time: Any, events: Any = 1) -> Arrivals:
        events, time = self._times(time, events)
        return Arrivals(events + 0 * time, time + 0 * events)

    def log_base(self, time: Any, events: Any = 1) -> Array:
        return self._log_base(*self._times(time, events))

    def log_predictive(self, natural: Arrivals, time: Any, events: Any = 1) -> Array:
        return self._log_predictive(natural, *self._times(time, events))

    def predictive(self, natural: Arrivals, events: Any = 1) -> CompoundGamma:
        """Of the total time until so many further events."""
        return self._predictive(natural, "events", events)

    def likelihood(self, theta: Any, events: Any = 1) -> KnownValue:
        return self._likelihood(theta, "events", events)
