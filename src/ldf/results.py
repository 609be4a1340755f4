"""What a fitted model answers, with the units' names: posteriors of θ and predictives of y.

Both hold a distribution (a mixture over the ensemble's members) and answer in its words, one value
a unit. What is asked of several units together (a district's mean, ranks) is answered by joint
draws: within a draw all units listen to the same member, as far as their shares in it allow, so
that what members disagree about does not average out. Given the member, units are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ldf import check, frame, notebook
from ldf.distributions import Distribution, Mixture
from ldf.distributions.base import check_mass
from ldf.special import check_draws
from ldf.statistic import Statistic

MASS = 0.9  # of intervals, unless another is asked for
BLOCK = 1 << 20  # numbers drawn at once


@dataclass(frozen=True, eq=False)
class Units:
    """Who the rows are."""

    source: Any  # the frame they came in
    label: np.ndarray
    components: tuple[str, ...]  # names of the components of a vector; none for a number

    def __len__(self) -> int:
        return len(self.label)

    def frame(self, columns: dict[str, Any], *, by_unit: bool = True) -> Any:
        """Of the kind the units came in, and, if it has one row a unit, with the same index."""
        return frame.like(self.source, columns, by_unit=by_unit)

    def groups(self, values: Any) -> np.ndarray:
        """A group for each unit: a column of the source by its name, or one value a unit."""
        table, name = self._column("by", values)
        return table.labels(name, "give every unit its group")

    def weights(self, values: Any) -> np.ndarray:
        """A weight for each unit, likewise."""
        table, name = self._column("weights", values)
        weight = table.numbers(name, missing="give every unit a weight")
        table.refuse(name, weight, weight < 0, "is negative", "a weight is zero or more")
        return weight

    def numbers(self, name: str, values: Any) -> np.ndarray:
        """A number for each unit: one for all, or likewise."""
        if not isinstance(values, str) and np.ndim(values) == 0:
            return np.full(len(self), float(check.numbers(name, values)))
        table, name = self._column(name, values)
        return table.numbers(name, missing="give every unit a number")

    def _column(self, name: str, values: Any) -> tuple[frame.Frame, str]:
        """Where a column is, and its name there."""
        if isinstance(values, str):
            table, name = frame.Frame.open(self.source), values
        elif np.shape(values) == (len(self),):
            table = frame.Frame.open({name: values})
        else:
            problem = f"is not one value for each of {len(self)} units"
            raise check.DataError(name, None, None, problem, "give as many, or name a column")
        table.label = self.label
        return table, name

    def position(self, component: Any) -> int:
        """Of a component, by name or number."""
        if component in self.components:
            return self.components.index(component)
        if isinstance(component, int | np.integer) and 0 <= component < len(self.components):
            return int(component)
        known = ", ".join(repr(name) for name in self.components) or "none: θ is one number"
        raise check.DataError("component", None, component, "is not there", f"there are {known}")


class Result:
    """A distribution for each unit, and the units. Of a vector, components are on the last axis."""

    distribution: Any
    units: Units

    def __len__(self) -> int:
        return len(self.units)

    def mean(self) -> np.ndarray:
        return np.asarray(self.distribution.mean())

    def sd(self) -> np.ndarray:
        return np.asarray(self.distribution.sd())

    def quantile(self, q: Any) -> np.ndarray:
        """The smallest value with P(at most it) >= q; of a vector, for each component."""
        return np.asarray(self.distribution.quantile(q))

    def interval(self, mass: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper): the narrowest interval that holds at least this mass."""
        low, high = self.distribution.interval(mass)
        return np.asarray(low), np.asarray(high)

    def exceeds(self, value: Any) -> np.ndarray:
        """P(more than value)."""
        return np.asarray(self.distribution.exceeds(value))

    def sample(self, draws: int, seed: int) -> np.ndarray:
        """Draws × units, jointly."""
        of: Distribution = self.distribution
        check_draws(draws, seed)
        if not isinstance(of, Mixture):
            return np.asarray(of.sample(draws, seed))
        weights = np.asarray(of.weights)
        up_to = np.cumsum(weights.reshape(len(weights), -1), 0)
        up_to = up_to / up_to[-1]
        units = np.arange(len(self))
        blocks = -(-draws * max(len(self), 1) // BLOCK)
        first, *sources = np.random.SeedSequence(seed).spawn(1 + min(blocks, draws))
        levels = np.random.default_rng(first).random((draws, 1, 1))
        found = []
        for level, source in zip(np.array_split(levels, len(sources)), sources, strict=True):
            member = (level >= up_to[:-1]).sum(1)  # draws × units, or × 1
            member = np.broadcast_to(member, (len(level), len(self)))
            found.append(np.asarray(of.components[member, units].sample(1, source))[0])
        return np.concatenate(found)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first units."""
        first = np.arange(min(len(self), notebook.SHOWN))
        units = Units(self.units.source, self.units.label[first], self.units.components)
        few: Any = replace(self, distribution=self.distribution[first], units=units)  # pyright: ignore
        rest = len(self) - len(first)
        more = f"… and {rest:,} more units. " if rest else ""
        table = {"unit": units.label, **few._summary(MASS)}
        return notebook.table(repr(self), table, f"{more}Intervals hold {MASS:.0%}.")

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
    page: Callable[..., Any] | None = None  # makes the explorer of the model and the frame

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
        """Where the density is highest; NaN where no single place is."""
        self._refuse_vector()
        return np.asarray(self.distribution.mode())

    def entropy(self) -> np.ndarray:
        """In nats."""
        self._refuse_vector()
        return np.asarray(self.distribution.entropy())

    def log_prob(self, theta: Any) -> np.ndarray:
        """The log density at θ: one for all units, or one a unit."""
        return np.asarray(self.distribution.log_prob(theta))

    def cdf(self, theta: Any) -> np.ndarray:
        """P(at most θ)."""
        return np.asarray(self.distribution.cdf(theta))

    def component(self, component: Any) -> Posterior:
        """Of one component of a vector θ."""
        position = self.units.position(component)
        part = self.distribution.marginal(position)
        units = Units(self.units.source, self.units.label, ())
        shared = self.pseudo if self.pseudo is None or np.ndim(self.pseudo.n) == 1 else None
        page = self.page and partial(self.page, component=component)
        return Posterior(part, units, self.given, shared, self.out_of_fold, page)

    def to_frame(self, mass: float = 0.9) -> Any:
        """One row a unit: mean, sd, the narrowest interval of this mass, entropy, and how many
        observations auxiliary data are worth. Of a vector, "mean of" each component, and so on."""
        table: dict[str, Any] = {"unit": self.units.label, **self._summary(mass)}
        if not self.units.components:
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
        """The (weighted) mean of θ over groups of units: one row a group, in order of appearance.

        `by` and `weights` are columns of the frame, or one value a unit. The mean is exact, the
        rest is by joint draws."""
        self._refuse_vector()
        check_mass(mass)
        group = np.zeros(len(self), int) if by is None else self.units.groups(by)
        weight = np.ones(len(self)) if weights is None else self.units.weights(weights)
        names, index = _distinct(group)
        total = np.bincount(index, weight, minlength=len(names))
        if (total == 0).any():
            name = "all" if by is None else names[int(np.argmax(total == 0))]
            problem, remedy = "has units of weight zero only", "leave it out, or let some count"
            raise check.DataError("weights", name, None, problem, remedy)
        share = np.zeros((len(self), len(names)))
        share[np.arange(len(self)), index] = weight / total[index]
        means = self.sample(draws, seed) @ share
        low, high = narrowest(means, mass)
        table = {
            "group": ["all"] if by is None else names,
            "units": np.bincount(index, minlength=len(names)),
            "mean": self.mean() @ share,
            "sd": means.std(0, ddof=1),
            "lower": low,
            "upper": high,
        }
        return self.units.frame(table, by_unit=False)

    def ranks(self, top: int = 10, mass: float = 0.9, draws: int = 4000, seed: int = 0) -> Any:
        """Who is highest: the mean rank (1: the highest θ), its central interval, and P(among the
        top so many), by joint draws."""
        self._refuse_vector()
        check_mass(mass)
        if top < 1:
            raise check.DataError("top", None, top, "is nobody", "ask for the top 1 or more")
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

    def plot(self, mass: float = 0.9, **options: Any) -> Any:
        """Units by rank, with means and intervals: a Matplotlib figure. Options are those of
        `ldf.plot.ranked`; needs `pip install 'ldf[plot]'`."""
        from ldf import plot

        self._refuse_vector()
        return plot.ranked(plot.Ranked.of(self, self.units.label, mass=mass), **options)

    def explore(self, **options: Any) -> Any:
        """The explorer of these units: a page that a notebook shows, and that `.save(path)` writes.
        Options are those of `ldf.report.explore`."""
        if self.page is None:
            remedy = "ask model.posterior(frame), or use ldf.report"
            raise check.DataError("posterior", None, None, "is of no fitted model", remedy)
        return self.page(**options)

    def to_arviz(self, draws: int = 1000, seed: int = 0) -> Any:
        """Draws of θ as ArviZ data, with units as a dimension; needs `pip install 'ldf[arviz]'`."""
        try:
            import arviz
        except ImportError:
            raise ImportError("ArviZ is not installed: pip install 'ldf[arviz]'") from None
        theta = self.sample(draws, seed)[None]
        dims, coords = ["unit"], {"unit": self.units.label}
        if self.units.components:
            dims.append("component")
            coords["component"] = np.array(self.units.components)
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


def _number(n: Any) -> np.ndarray:
    """Of pseudo-observations; of a precision matrix, its trace."""
    n = np.asarray(n)
    return n if n.ndim == 1 else np.trace(n, axis1=-2, axis2=-1)


def coordinates(statistic: Any, components: tuple[str, ...]) -> dict[str, np.ndarray]:
    """t, n and the rate, and the coordinates by their names."""
    t, n = np.asarray(statistic.t), np.asarray(statistic.n)
    table: dict[str, np.ndarray] = {}
    if n.ndim > 1:  # a precision matrix
        return {"n": np.trace(n, axis1=-2, axis2=-1)}
    if t.ndim == 1:
        table |= {"t": t, "n": n, "rate": _rate(t, n)}
    else:
        table["n"] = n
        names = components if t.shape[1] == len(components) else tuple(map(str, range(t.shape[1])))
        for i, name in enumerate(names):
            table |= {f"t of {name}": t[:, i], f"rate of {name}": _rate(t[:, i], n)}
    return table


def _rate(t: np.ndarray, n: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to have one: a source that is missing."""
    return np.divide(t, n, out=np.full(np.shape(n), np.nan), where=n != 0)
