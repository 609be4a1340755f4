"""Events and the total time they took, with a Gamma prior: failures on test, waiting times.

Right-censoring is natural: time without an event is exposure without a count.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ldf import check
from ldf.distributions import CompoundGamma, KnownValue
from ldf.families.gamma import Positive
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
        check.same_length(time=time, events=events)
        times = check.nonnegative("time", time, "a duration is zero or more: correct the row")
        return check.counts("events", events), times

    def statistic(self, time: Any, events: Any = 1) -> Arrivals:
        events, time = self._times(time, events)
        return Arrivals(events + 0 * time, time + 0 * events)

    def log_base(self, time: Any, events: Any = 1) -> Array:
        return self._log_base(*self._times(time, events))

    def log_predictive(self, natural: Arrivals, time: Any, events: Any = 1) -> Array:
        return self._log_predictive(natural, *self._times(time, events))

    def predictive(self, natural: Arrivals, events: Any = 1) -> CompoundGamma:
        """Of the total time until so many further events."""
        return CompoundGamma(natural, check.positive("events", events))

    def likelihood(self, theta: Any, events: Any = 1) -> KnownValue:
        return self._likelihood(theta, check.positive("events", events))
