"""What is to be learned and how; the data aside."""

from __future__ import annotations

from dataclasses import dataclass, field

from ldf import check
from ldf.ensemble import Ensemble, Member
from ldf.families.base import Family
from ldf.ground import PRIORS
from ldf.mappings import Mapping
from ldf.mixed import MixedModel, Mixture
from ldf.model import Model
from ldf.objective import Objective, maximum_likelihood
from ldf.statistic import Statistic
from ldf.summed import Source, SummedModel, mapping_of

REFERENCES = ("prior", "regression", "carried")  # "carried": with the table, row by row


@dataclass(frozen=True)
class Spec:
    """One model, before it has seen data.

    An objective may compare each row with a `reference`: the prior, the family's compound
    regression, another model that is learned from the same training rows, or what a fitted model
    has said."""

    family: Family
    ensemble: Ensemble = field(default_factory=Ensemble)
    prior: Statistic | str = "weak"  # λ0, or how to find it
    objective: Objective = maximum_likelihood
    reference: str | Spec = "prior"  # what the objective compares with, if it does
    balance: int = 0  # classes of the empirical rate that count the same; 0: each row counts
    certain: bool = False  # a regression without dispersion: see Model
    structure: Mixture | None = None  # what ties units together
    sources: tuple[Source, ...] = ()  # none: all columns are one
    mappings: tuple[tuple[str, Mapping], ...] = ()  # of sources that have one of their own
    independent: bool = False  # given θ, of sources: what one says hangs on no other

    def __post_init__(self) -> None:
        if isinstance(self.prior, str):
            check.one_of("prior", self.prior, tuple(PRIORS))
        self._check_reference()
        if self.sources and self.structure is not None:
            lone = self.sources[0].kind if len(self.sources) == 1 else ""
            beside = {"image": "images", "series": "a series", "items": "items"}
            problem = f"is not for {beside.get(lone, 'several sources')}"
            remedy = "give one list of auxiliary columns, or no structure"
            raise check.DataError("structure", None, None, problem, remedy)
        for name, _ in self.mappings:
            check.one_of("mapping", name, tuple(source.name for source in self.sources))
        members = self.ensemble.members
        several = any(member.mapping != members[0].mapping for member in members)
        if several and (self.mappings or any(source.shape for source in self.sources)):
            problem = "holds different mappings, and some sources have their own"
            remedy = "give all members the same mapping"
            raise check.DataError("ensemble", None, None, problem, remedy)

    def _check_reference(self) -> None:
        other = self.reference
        if not isinstance(other, Spec):
            return check.one_of("reference", other, REFERENCES)
        mine, its = type(self.family).__name__, type(other.family).__name__
        if mine != its:
            problem, remedy = f"is of another family than {mine}", "give a model of the same family"
            raise check.DataError("reference", None, its, problem, remedy)

    @property
    def smooth(self) -> bool:
        """Whether default members are: those of mixtures, and of several sources."""
        return self.structure is not None or bool(self.sources)

    def kinds(self, member: Member) -> tuple[str, ...]:
        """How columns are preprocessed for a member: in one way, or in those of a mixture's
        parts."""
        each = self.structure.each if self.structure else ()
        own = dict.fromkeys(c.preprocess or member.preprocess for c in each)
        return tuple(own) or (member.preprocess,)

    def model(self, member: Member) -> Model:
        """What a member learns."""
        if self.sources:
            given, own = dict(self.mappings), member.mapping
            each = tuple(mapping_of(of, given.get(of.name), own) for of in self.sources)
            whole = isinstance(self.prior, str) and self.prior == "weak"
            return SummedModel(
                self.family, own, self.certain, self.sources, each, not self.independent,
                whole=whole,
            )  # fmt: skip
        if self.structure is None:
            return Model(self.family, member.mapping, self.certain)
        kinds = self.kinds(member)
        blocks = tuple(kinds.index(c.preprocess or member.preprocess) for c in self.structure.each)
        blocks = blocks if len(kinds) > 1 else ()
        return MixedModel(self.family, member.mapping, self.certain, self.structure, blocks)
