"""The arguments of a `Fusion`, and what they mean in the words of learning: from them and the data
that they are about to a `Spec`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

from ldf import check, families, store
from ldf.checkpoint import fingerprint
from ldf.data import Columns, Data
from ldf.ensemble import BESIDE, Ensemble, Member
from ldf.families.base import Family
from ldf.mappings import Mapping, Trees, as_mapping
from ldf.objective import Objective, maximum_likelihood, model_selection
from ldf.spec import Spec
from ldf.summed import can_read

REFERENCES = ("prior", "regression")  # by name
OBJECTIVES: dict[str, Objective] = {
    "maximum-likelihood": maximum_likelihood,
    "model-selection": model_selection,
}


class Arguments(BaseEstimator):
    """The arguments, which `Fusion` has and describes, and what they mean."""

    family: Any
    primary: Any
    auxiliary: Any
    prior: Any
    mapping: Any
    objective: Any
    reference: Any
    balance: Any
    independent: Any
    structure: Any
    ensemble: Any
    preprocess: Any
    weights: Any
    design_effect: Any
    per_capita: Any
    id: Any
    group: Any
    geometry: Any
    sensitive: Any

    def family_of(self) -> Family:
        return named_family(self.family)

    def columns(self) -> Columns:
        """What the user said of the columns."""
        return Columns(
            primary=dict(self.primary),
            auxiliary=self.auxiliary,
            per_capita=dict(self.per_capita or {}),
            weight=self.weights,
            id=self.id,
            group=self.group,
            design_effect=self.design_effect,
            geometry=self.geometry,
            sensitive=tuple(self.sensitive),
        )

    def spec(self, data: Data) -> Spec:
        """What is to be learned from these data, and how."""
        ensemble, sources = self.ensemble or Ensemble(), data.schema.sources
        mapping = self._mapping()
        mappings = mapping if isinstance(mapping, dict) else {}
        if isinstance(mapping, Mapping):
            if self.ensemble is not None:
                remedy = "give the ensemble members of this mapping, or leave one of both out"
                raise check.DataError("mapping", None, None, "is given beside an ensemble", remedy)
            ensemble = replace(ensemble, members=(Member(mapping),))
            if data.schema.blocks:
                mappings = {of.name: mapping for of in sources if can_read(mapping, of)}
        elif not ensemble.members:
            forests = [own for own in mappings.values() if isinstance(own, Trees)]
            if forests and len(forests) == len(sources):  # there is nothing else to learn
                ensemble = replace(ensemble, members=(Member(forests[0], "standard"),))
            elif forests or data.schema.blocks:
                ensemble = replace(ensemble, members=BESIDE)
        objective = self.objective
        if objective == store.CUSTOM:
            remedy = "set model.objective to it before you fit"
            raise check.DataError("objective", None, None, "is a function no file holds", remedy)
        if isinstance(objective, str):
            check.one_of("objective", objective, tuple(OBJECTIVES))
            objective = OBJECTIVES[objective]
        spec = Spec(
            data.family, ensemble, self.prior, objective, self._reference(data), self.balance,
            structure=self.structure, sources=sources, mappings=tuple(mappings.items()),
            independent=self.independent,
        )  # fmt: skip
        settled = ensemble.settled(int(data.seen.sum()), self.preprocess, spec.smooth)
        return replace(spec, ensemble=settled)

    def _reference(self, data: Data) -> str | Spec:
        """As learning takes it."""
        given = self.reference
        if given == store.CUSTOM:
            remedy = "set model.reference to it before you fit"
            raise check.DataError("reference", None, None, "is a model no file holds", remedy)
        if isinstance(given, Spec):
            same = type(given.family) is type(data.family)
            return replace(given, family=data.family) if same else given  # which Spec refuses
        if not isinstance(given, Arguments):
            check.one_of("reference", given, REFERENCES)
            return given
        mine, its = self.columns(), given.columns()

        def other(*names: str) -> bool:
            return any(getattr(mine, name) != getattr(its, name) for name in names)

        if other("primary", "design_effect"):
            remedy = "give it the same primary columns and design effect"
            raise check.DataError("reference", None, None, "is of other primary data", remedy)
        if hasattr(given, "learned_"):
            return "carried"
        family = fingerprint(self.family_of()) != fingerprint(given.family_of())
        if family or other("auxiliary", "several", "per_capita"):
            problem = "is not fitted, and of another family or other auxiliary columns"
            raise check.DataError("reference", None, None, problem, "fit it first")
        return given.spec(data)

    def _mapping(self) -> Any:
        """As it was given; by source, unless there is one table only."""
        if not isinstance(self.mapping, dict):
            return None if self.mapping is None else as_mapping(self.mapping)
        given = {name: as_mapping(own) for name, own in self.mapping.items()}
        if isinstance(self.auxiliary, dict) and not self.columns().several:
            for name in given:
                check.one_of("mapping", name, tuple(self.auxiliary))
            return next(iter(given.values()), None)
        return given


def named_family(family: str | Family) -> Family:
    """ "binomial" is ldf.Binomial()."""
    if isinstance(family, Family):
        return family
    known = {name.lower(): name for name in families.__all__}
    word = str(family).lower().replace("-", "").replace("_", "").replace(" ", "")
    check.one_of("family", word, tuple(known))
    kind = getattr(families, known[word])
    try:
        return kind()
    except TypeError:
        remedy = f"make one: ldf.{known[word]}(…)"
        raise check.DataError("family", None, family, "needs more to be known", remedy) from None
