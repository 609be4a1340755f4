"""Several primary sources of one θ, each with a likelihood of its own and the same conjugate prior.

A survey has asked some of a village's households, a register has counted the visits until the first
electrified one. Both say something of one rate, both statistics are successes and failures, and
they add. By the chain rule

    p(y_1, y_2 | λ)  =  p(y_1 | λ) · p(y_2 | λ + T_1)

whichever comes first. A unit may lack any of the sources: its outcome is NaN there, and it adds
nothing to T_y, to the log-predictive, or to what is learned.

>>> import numpy as np
>>> from ldf.families import Binomial, Geometric
>>> family = Joint(survey=Binomial(), visits=Geometric())
>>> family.columns
('survey.successes', 'survey.trials', 'visits.failures', 'visits.waits')
>>> y = {"survey.successes": [3, np.nan], "survey.trials": [10, np.nan], "visits.failures": [4, 2]}
>>> family.statistic(**y)
Trials(successes=[4., 1.], failures=[11.,  2.])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ldf import check
from ldf.distributions import Distribution
from ldf.families.base import Family
from ldf.special import Array, namespace


def _shared(name: str) -> Any:
    """The same for all sources."""
    return property(lambda self: getattr(self.sources[0][1], name))


def _of_each(name: str) -> Any:
    """The sources' words, each with its source."""

    def words(self: Any) -> tuple[str, ...]:
        return tuple(f"{own}.{word}" for own, of in self.sources for word in getattr(of, name))

    return property(words)


class Joint(Family):
    """Sources by name: ldf.Joint(survey=ldf.Binomial(), visits=ldf.Geometric()), or a dict of them.

    The words of its columns are those of the sources, `survey.successes`. What a predictive is of
    is one source, which is to be named; it is the first if none is.
    """

    sources: tuple[tuple[str, Family], ...]

    natural = _shared("natural")
    latent = _shared("latent")
    columns = _of_each("columns")
    design = _of_each("design")
    prior = _shared("prior")
    from_unconstrained = _shared("from_unconstrained")

    def __init__(self, sources: Any = (), **named: Family) -> None:
        given = dict(sources) if isinstance(sources, Mapping | tuple | list) else {}
        if isinstance(sources, Family):
            problem, remedy = "is one family without a name", "give it one: ldf.Joint(survey=…)"
            raise check.DataError("sources", None, type(sources).__name__, problem, remedy)
        self.sources = tuple((given | named).items())

    def __check_init__(self) -> None:
        if not self.sources:
            remedy = "name them: ldf.Joint(survey=ldf.Binomial(), visits=ldf.Geometric())"
            raise check.DataError("family", None, None, "joins no sources", remedy)
        for name, family in self.sources:
            _refuse_alone(name, family)
            _refuse_other_prior(*self.sources[0], name, family)

    # --- sources ---

    def source(self, of: str | None = None) -> Family:
        names = tuple(name for name, _ in self.sources)
        of = names[0] if of is None else of
        check.one_of("of", of, names)
        return dict(self.sources)[of]

    def part(self, of: str | None, columns: Mapping[str, Any]) -> dict[str, Any]:
        """A source's own columns among all, by its own words."""
        start = f"{self.sources[0][0] if of is None else of}."
        return {word[len(start) :]: v for word, v in columns.items() if word.startswith(start)}

    @property
    def components(self) -> int | None:
        known = (family.components for _, family in self.sources)
        return next((many for many in known if many is not None), None)

    def _there(
        self, columns: Mapping[str, Any]
    ) -> Iterator[tuple[Family, dict[str, Any], Array | None]]:
        """Each source that there are columns of, these columns, and which units have it; None if
        all have."""
        if not columns:
            raise check.DataError("columns", None, None, "is not given", "give those of a source")
        for word in columns:
            check.one_of("columns", word, self.columns)
        for name, family in self.sources:
            own = self.part(name, columns)
            if not own:
                continue
            here = has(family, own)
            # In a compiled program it cannot be seen whether all have it. Of one source they do: a
            # unit that lacks it has no primary data, and is not there.
            traced = check.is_traced(here)
            if len(self.sources) == 1 if traced else np.asarray(here).all():
                yield family, own, None
            else:
                yield family, {word: _filled(word, own[word], here) for word in own}, here

    def _sum(self, columns: Mapping[str, Any], of: Callable[..., Array]) -> Array:
        """Of what each source gives, where it is there."""
        terms = []
        for family, own, here in self._there(columns):
            each = of(family, own, here)
            terms.append(each if here is None else namespace(each, here).where(here, each, 0.0))
        return sum(terms[1:], start=terms[0])

    # --- what a family says ---

    def statistic(self, **columns: Any) -> Any:
        """T_y: the sum over sources. An outcome that is NaN adds nothing."""
        terms = [_statistic(family, own, here) for family, own, here in self._there(columns)]
        return sum(terms[1:], start=terms[0])

    def log_base(self, **columns: Any) -> Array:
        return self._sum(columns, lambda family, own, here: family.log_base(**own))

    def log_predictive(self, natural: Any, **columns: Any) -> Array:
        """Of all that a unit has: each source given those before it."""
        known = self.own(natural)

        def next_of(family: Family, own: dict[str, Any], here: Array | None) -> Array:
            nonlocal known
            log = family.log_predictive(known, **own)
            known = known + _statistic(family, own, here)
            return log

        return self._sum(columns, next_of)

    def log_likelihood(self, theta: Any, **columns: Any) -> Array:
        """Of all that a unit has: given θ, sources are independent."""
        return self._sum(columns, lambda family, own, here: family.log_likelihood(theta, **own))

    def predictive(self, natural: Any, of: str | None = None, **design: Any) -> Distribution:
        """Of new data of one source, in its own words."""
        return self.source(of).predictive(natural, **design)

    def likelihood(self, theta: Any, of: str | None = None, **design: Any) -> Distribution:
        return self.source(of).likelihood(theta, **design)


def has(family: Family, columns: Mapping[str, Any]) -> Array:
    """Which units, on the first axis, have a source: those whose outcome is not all NaN."""
    outcome = next(word for word in family.columns if word not in family.design)
    if outcome not in columns:
        remedy = "give it, NaN for units that lack the source"
        raise check.DataError(outcome, None, None, "is not given", remedy)
    values = columns[outcome]
    if not check.is_traced(values):
        values = check.numbers(outcome, values, absent=True)
    first = 0 if max(family.natural.event_axes) > 0 and values.ndim == 1 else 1
    missing = namespace(values).isnan(values)
    return ~missing.all(tuple(range(first, values.ndim)))


def _statistic(family: Family, columns: Mapping[str, Any], here: Array | None) -> Any:
    """T_y of one source, nothing where it is not there."""
    statistic = family.statistic(**columns)
    return statistic if here is None else statistic.where(here)


def _filled(word: str, values: Any, here: Array) -> Any:
    """The column, with ones where the source is not there: every family can compute with those, and
    what comes of it is left out. Nothing else is filled: a NaN beside an outcome that is there is
    for the family to refuse."""
    if not check.is_traced(values):
        values = check.numbers(word, values, absent=True, infinite=True)
    if np.ndim(values) < here.ndim:  # one number for all units
        return values
    mask = here.reshape(here.shape + (1,) * (np.ndim(values) - here.ndim))
    some = np.eye(np.shape(values)[-1]) if word == "covariance" else 1.0
    return namespace(values, here).where(mask, values, some)


def _refuse_alone(name: str, family: Any) -> None:
    """What cannot be a source."""
    if not isinstance(family, Family):
        remedy = "give a family, such as ldf.Binomial()"
        raise check.DataError(name, None, family, "is not a family", remedy)
    if not str(name).isidentifier():
        remedy = "use letters, digits and underscores"
        raise check.DataError("sources", None, name, "is not a name", remedy)
    kind = type(family).__name__
    if isinstance(family, Joint):
        remedy = "name all of its sources in one"
        raise check.DataError(name, None, None, "is a Joint inside another", remedy)
    if type(family).after is not Family.after:
        problem = f"is {kind}, whose data have no statistic that adds"
        remedy = "join families that have one, or use it alone"
        raise check.DataError(name, None, None, problem, remedy)


def _refuse_other_prior(first: str, one: Family, name: str, other: Family) -> None:
    kinds, priors = (
        [type(family).__name__ for family in (one, other)],
        [family.latent.__name__ for family in (one, other)],
    )
    if one.natural is not other.natural or one.latent is not other.latent:
        problem = f"is {kinds[1]}, whose prior is {priors[1]}; '{first}' is {kinds[0]}, with "
        remedy = "join sources of one θ, which have the same conjugate prior"
        raise check.DataError(name, None, None, problem + priors[0], remedy)
    many = one.components, other.components
    if None not in many and many[0] != many[1]:
        problem = f"has {many[1]} classes or components, and '{first}' has {many[0]}"
        raise check.DataError(name, None, None, problem, "give all sources the same")
