"""What the model says of each unit, asked once: before and after its primary data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check
from ldf.data import Data, read
from ldf.learned import Learned, Said
from ldf.recognise import find_parts
from ldf.results import Posterior, Units
from ldf.statistic import Arrivals, ClassCounts, Potential, Statistic, Trials


@dataclass(frozen=True, eq=False)
class Answers:
    """Of all units. `component` is the one that is shown, of a θ that has several."""

    model: Any
    learned: Learned
    data: Data
    units: Units
    training: np.ndarray  # rows that were learned from
    before: Said  # given auxiliary data
    after: Said  # given both
    alone: Said  # given primary data
    component: int | None

    @classmethod
    def of(cls, model: Any, frame: Any, component: Any = None) -> Answers:
        learned = getattr(model, "learned_", None)
        if learned is None:
            remedy = "call .fit(frame) first"
            raise check.DataError("model", None, None, "is not fitted", remedy)
        data = read(frame, model.family_of(), model.columns(), model.schema_)
        units, part = model.units(frame, data), find_parts(data, model.parts_)
        before = learned.said(data.x, part)
        alone = learned.prior().spread(len(data))
        after = before
        if data.seen.any():
            after, alone = (learned.updated(s, data.y, data.seen) for s in (before, alone))
        which = None
        if units.components:
            which = units.position(0 if component is None else component)
        elif component is not None:
            units.position(component)  # says that there is none
        training = (part >= 0) & data.seen
        return cls(model, learned, data, units, training, before, after, alone, which)

    def __len__(self) -> int:
        return len(self.units)

    def posterior(self, said: Said, given: str) -> Posterior:
        pseudo = self.before.mean()
        found = Posterior(self.learned.posterior(said), self.units, given, pseudo, self.training)
        return found if self.component is None else found.component(self.component)

    # --- statistics ---

    @property
    def first(self) -> Data:
        """Of several primary sources the first, which the page predicts; else all there is."""
        return self.data.of()

    @property
    def scale(self) -> float:
        """What one observation adds to a statistic's n: of values with known variance, a
        precision."""
        variance = getattr(self.first.family, "variance", None)
        return 1.0 if variance is None else 1 / float(variance)

    def worth(self, statistic: Any) -> tuple[np.ndarray, np.ndarray]:
        """t and n of a statistic, in observations: of class counts, those of the class shown."""
        t, n = np.asarray(statistic.t, float), np.asarray(statistic.n, float)
        if n.ndim > 1:  # a precision matrix
            n = np.trace(n, axis1=-2, axis2=-1)
        if t.ndim > n.ndim:
            t = t[..., self.component or 0]
        return t / self.scale, n / self.scale

    def primary(self, data: Data | None = None) -> tuple[np.ndarray, np.ndarray]:
        """t and n of the primary data (of all sources, unless of some), NaN where there are
        none."""
        data = self.data if data is None else data
        t, n = np.full((2, len(self)), np.nan)
        seen = data.seen
        if seen.any():
            y = {word: values[seen] for word, values in data.y.items()}
            t[seen], n[seen] = self.worth(data.family.statistic(**y))
        return t, n


def conjugate(natural: Any, component: int | None) -> tuple[str, np.ndarray, np.ndarray] | None:
    """The kind of a component's distribution and its two parameters, of those the page knows. One
    class of class counts is a success, and the others are failures."""
    if isinstance(natural, Trials):
        return "beta", np.asarray(natural.successes), np.asarray(natural.failures)
    if isinstance(natural, Arrivals):
        return "gamma", np.asarray(natural.count), np.asarray(natural.exposure)
    if isinstance(natural, Potential):
        return "gaussian", np.asarray(natural.potential), np.asarray(natural.precision)
    if isinstance(natural, ClassCounts) and component is not None:
        counts = np.asarray(natural.counts)
        rest = np.delete(counts, component, -1).sum(-1)
        return "beta", counts[..., component], rest
    return None


def is_conjugate(family: Any, after: Said) -> bool:
    """Whether primary data add to what is known: the page can then do so, too."""
    return isinstance(after.natural, Statistic) and isinstance(after.natural, family.natural)
