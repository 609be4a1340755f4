"""What a fitted model answers, with the units' names: posteriors of θ and predictives of y.

Both hold a distribution (a mixture over the ensemble's members) and answer in its words. What is
asked of several units together (a district's mean, ranks) is answered by joint draws: within a
draw all units listen to the same member, so that what members disagree about does not average out.
Given the member, units are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import check, frame
from ldf.distributions import Continuous, Distribution, Mixture
from ldf.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Units:
    """Who the rows are."""

    source: Any  # the frame they came in
    label: np.ndarray
    components: tuple[str, ...]  # names of the components of a vector; none for a number

    def __len__(self) -> int:
        return len(self.label)

    def frame(self, columns: dict[str, Any]) -> Any:
        return frame.like(self.source, columns)

    def column(self, name: str, values: Any) -> np.ndarray:
        """A column of the source by its name, or one value a unit."""
        if isinstance(values, str):
            return frame.Frame.open(self.source).cells(values)
        array = np.asarray(values)
        if array.shape != (len(self),):
            problem = f"has {len(array) if array.ndim else 1} values for {len(self)} units"
            raise check.DataError(name, None, None, problem, "give one value a unit")
        return array

    def position(self, component: Any) -> int:
        """Of a component, by name or number."""
        if component in self.components:
            return self.components.index(component)
        if isinstance(component, int | np.integer) and component < len(self.components):
            return int(component)
        known = ", ".join(repr(name) for name in self.components) or "none: θ is one number"
        raise check.DataError("component", None, component, "is not there", f"there are {known}")


class Result:
    """A distribution for each unit, and the units."""

    distribution: Any
    units: Units

    def __len__(self) -> int:
        return len(self.units)

    def mean(self) -> np.ndarray:
        return np.asarray(self.distribution.mean())

    def sd(self) -> np.ndarray:
        return np.asarray(self.distribution.sd())

    def quantile(self, q: Any) -> np.ndarray:
        return np.asarray(self.distribution.quantile(q))

    def interval(self, mass: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper): the narrowest interval that holds at least this mass."""
        return self.distribution.interval(mass)

    def exceeds(self, value: Any) -> np.ndarray:
        """P(more than value)."""
        return np.asarray(self.distribution.exceeds(value))

    def sample(self, draws: int, seed: int) -> np.ndarray:
        """Draws × units, jointly."""
        of: Distribution = self.distribution
        if not isinstance(of, Mixture):
            return np.asarray(of.sample(draws, seed))
        every = np.asarray(of.components.sample(draws, seed))  # draws × members × units …
        weights = np.asarray(of.weights)
        if weights.ndim == 1:
            weights = np.repeat(weights[:, None], len(self), 1)
        u = np.random.default_rng([seed, 1]).random((draws, 1, 1))
        member = (np.cumsum(weights, 0)[:-1] < u).sum(1)  # draws × units
        at = member.reshape(draws, 1, len(self), *(1,) * (every.ndim - 3))
        return np.take_along_axis(every, at, 1)[:, 0]

    def _summary(self, mass: float) -> dict[str, np.ndarray]:
        """mean, sd, lower, upper; for vectors, of each component."""
        low, high = self.interval(mass)
        table = {"mean": self.mean(), "sd": self.sd(), "lower": low, "upper": high}
        table = {name: np.asarray(values) for name, values in table.items()}
        if not self.units.components:
            return table
        return {
            f"{name} of {component}": values[..., i]
            for i, component in enumerate(self.units.components)
            for name, values in table.items()
        }


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """The posterior of each unit's θ."""

    distribution: Any
    units: Units
    given: str
    pseudo: Statistic | None  # T_x of each unit: its members' weighted mean
    out_of_fold: np.ndarray  # units that were learned from, answered for by fits without them

    def __repr__(self) -> str:
        words = {"both": "auxiliary and primary data", "auxiliary": "auxiliary data"}
        text = f"posterior of {len(self)} units given {words.get(self.given, 'primary data')}"
        held = int(self.out_of_fold.sum())
        if held:
            text += (
                f"; {held} were learned from, and have pseudo-observations of fits that had not "
                "seen them, so that their primary data count once"
            )
        return text

    def mode(self) -> np.ndarray:
        return np.asarray(self.distribution.mode())

    def entropy(self) -> np.ndarray:
        """In nats."""
        return np.asarray(self.distribution.entropy())

    def log_prob(self, theta: Any) -> np.ndarray:
        return np.asarray(self.distribution.log_prob(theta))

    def cdf(self, theta: Any) -> np.ndarray:
        return np.asarray(self.distribution.cdf(theta))

    def component(self, component: Any) -> Posterior:
        """Of one component of a vector θ."""
        part = self.distribution.marginal(self.units.position(component))
        units = Units(self.units.source, self.units.label, ())
        return Posterior(part, units, self.given, None, self.out_of_fold)

    def to_frame(self, mass: float = 0.9) -> Any:
        """One row a unit: mean, sd, lower, upper, entropy, and what auxiliary data are worth."""
        table: dict[str, Any] = {"unit": self.units.label, **self._summary(mass)}
        if isinstance(self.distribution, Continuous):
            table["entropy"] = self.entropy()
        if self.pseudo is not None:
            table["pseudo_observations"] = _number(self.pseudo.n)
            table["out_of_fold"] = self.out_of_fold
        return self.units.frame(table)

    def aggregate(
        self,
        by: Any = None,
        weights: Any = None,
        mass: float = 0.9,
        draws: int = 4000,
        seed: int = 0,
    ) -> Any:
        """The (weighted) mean of θ over groups of units, by joint draws: one row a group."""
        self._refuse_vector()
        everyone = np.zeros(len(self), int)
        group = everyone if by is None else self.units.column("by", by)
        weight = np.ones(len(self)) if weights is None else self.units.column("weights", weights)
        weight = np.asarray(check.nonnegative("weights", weight))
        names, index = _distinct(group)
        total = np.bincount(index, weight, minlength=len(names))
        empty = total == 0
        check.refuse("weights", total, empty, "is all a group has", "give it units that weigh")
        theta = self.sample(draws, seed)
        share = np.zeros((len(self), len(names)))
        share[np.arange(len(self)), index] = weight / total[index]
        means = theta @ share
        low, high = narrowest(means, mass)
        table = {
            "group": ["all"] if by is None else names,
            "units": np.bincount(index, minlength=len(names)),
            "mean": means.mean(0),
            "sd": means.std(0, ddof=1),
            "lower": low,
            "upper": high,
        }
        return self.units.frame(table)

    def ranks(self, top: int = 10, mass: float = 0.9, draws: int = 4000, seed: int = 0) -> Any:
        """Who is highest: the mean rank (1: the highest θ), its interval, and P(among the top)."""
        self._refuse_vector()
        theta = self.sample(draws, seed)
        order = np.argsort(-theta, 1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(1, len(self) + 1)[None], 1)
        low, high = np.quantile(rank, [(1 - mass) / 2, (1 + mass) / 2], axis=0, method="nearest")
        table = {
            "unit": self.units.label,
            "rank": rank.mean(0),
            "lower": low,
            "upper": high,
            f"top_{top}": (rank <= top).mean(0),
        }
        return self.units.frame(table)

    def to_arviz(self, draws: int = 1000, seed: int = 0) -> Any:
        """Draws of θ as ArviZ data, with units as a dimension; needs `pip install 'ldf[arviz]'`."""
        try:
            import arviz
        except ImportError:
            raise ImportError("ArviZ is not installed: pip install 'ldf[arviz]'") from None
        theta = self.sample(draws, seed)[None]
        dims, coords = ["unit"], {"unit": self.units.label}
        if self.units.components:
            dims, coords = (
                [*dims, "component"],
                {**coords, "component": list(self.units.components)},
            )
        return arviz.from_dict({"theta": theta}, dims={"theta": dims}, coords=coords)

    def _refuse_vector(self) -> None:
        if self.units.components:
            problem = f"has {len(self.units.components)} components"
            raise check.DataError("theta", None, None, problem, "choose one by .component(…)")


@dataclass(frozen=True, eq=False, repr=False)
class Predictive(Result):
    """The distribution of each unit's primary data."""

    distribution: Any
    units: Units
    given: str
    observed: Any  # what log_prob and cdf are of, unless they are told; None if they must be
    seen: np.ndarray  # units for which there is something observed

    def __repr__(self) -> str:
        return f"predictive of {len(self)} units given {self.given}"

    def log_prob(self, value: Any = None) -> np.ndarray:
        """Of the observed data, NaN where there are none; or of a value."""
        return self._at(value, self.distribution.log_prob)

    def cdf(self, value: Any = None) -> np.ndarray:
        """P(at most the observed value), NaN where there is none; or at most a value."""
        return self._at(value, self.distribution.cdf)

    def _at(self, value: Any, function: Any) -> np.ndarray:
        if value is not None:
            return np.asarray(function(value))
        if self.observed is None:
            problem = "is not in the frame, or belongs to other data than these"
            raise check.DataError("value", None, None, problem, "give the value to be asked about")
        found = np.asarray(function(self.observed), float)
        return np.where(self.seen.reshape(self.seen.shape + (1,) * (found.ndim - 1)), found, np.nan)

    def to_frame(self, mass: float = 0.9) -> Any:
        """One row a unit: mean, sd, lower, upper, and the log score of what was observed."""
        table: dict[str, Any] = {"unit": self.units.label, **self._summary(mass)}
        if self.observed is not None:
            table["log_prob"] = self.log_prob()
        return self.units.frame(table)


def narrowest(draws: np.ndarray, mass: float) -> tuple[np.ndarray, np.ndarray]:
    """The narrowest interval that holds this share of the draws (first axis)."""
    ordered = np.sort(draws, 0)
    span = int(np.ceil(mass * len(ordered)))
    width = ordered[span - 1 :] - ordered[: len(ordered) - span + 1]
    at = width.argmin(0)[None]
    low = np.take_along_axis(ordered, at, 0)[0]
    return low, np.take_along_axis(ordered, at + span - 1, 0)[0]


def _distinct(values: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Distinct values in order of appearance, and each row's."""
    numbers: dict[Any, int] = {}
    index = np.array([numbers.setdefault(v, len(numbers)) for v in values.tolist()], int)
    return list(numbers), index


def _number(n: Any) -> Sequence[float]:
    n = np.asarray(n)
    return n if n.ndim == 1 else np.trace(n, axis1=-2, axis2=-1)
