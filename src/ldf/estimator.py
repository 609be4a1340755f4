"""The façade: from a frame to posteriors, in the words of its columns.

model = ldf.Fusion(
    family="binomial",
    primary={"successes": "electrified", "trials": "households"},
    auxiliary=["night_lights", "building_density"],
).fit(villages)
"""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from html import escape
from typing import Any, cast, get_type_hints

import jax
import numpy as np
from scipy.special import entr

from ldf import attribution, check, families, notebook, plan, report, store
from ldf.arguments import OBJECTIVES, Arguments
from ldf.beside import Beside, Images, Items, Series
from ldf.data import Data, read
from ldf.ensemble import Ensemble
from ldf.families.base import Family
from ldf.frame import Frame
from ldf.learn import learn
from ldf.learned import Learned, Said
from ldf.mappings import Given, as_mapping
from ldf.mixed import Mixture
from ldf.objective import Objective, maximum_likelihood
from ldf.plan import Belief, Plan
from ldf.recognise import find_parts, parts_by_row
from ldf.results import Posterior, Predictive, Units, coordinates
from ldf.spec import Spec
from ldf.statistic import Statistic
from ldf.table import Table, empirical_rate
from ldf.train import Tell

GIVEN = ("both", "auxiliary", "primary")
BACKGROUND = 12  # rows that a unit is compared with, unless others are given

MAY_LEAN = (
    "An objective that is not a proper score may lean away from the truth: check the calibration "
    "of this model (ldf.cross_validate) before you rely on its intervals."
)


class CalibrationWarning(UserWarning):
    """Intervals of this model may not hold what they say."""


class Fusion(Arguments):
    """Learns what auxiliary data are worth, and fuses them with primary data.

    family      "binomial", "poisson", "multinomial", "gaussian", … or a family such as
                ldf.Gaussian(variance=8.5); of several primary sources, an ldf.Joint of families
    primary     the family's words and their columns: {"successes": "electrified", "trials": "n"};
                of several sources, such words by source
    auxiliary   columns that say something about the rate; text columns are categories. Or such
                columns by source, {"census": […], "lights": […]}: each source has a mapping of its
                own, and a row may lack some. A source may lie beside the frame: ldf.Images,
                ldf.Series, ldf.Items
    prior       λ0 as family.prior(…), or "fitted" to the primary data alone, or "weak": as fitted,
                but worth a tenth of it; of several sources, a row without any has the whole of it
    mapping     a mapping to use instead of the ensemble's: ldf.Splines(), … or an Equinox module;
                or mappings by source, {"lights": …}: others keep the one they would have
    objective   "maximum-likelihood", "model-selection", or a function of log p and log p_0
    reference   p_0 of an objective that compares: "prior", "regression" (the compound one, to which
                a prior that is given is added), or a model. An ldf.spec.Spec, or a Fusion of the
                same columns that is not fitted, is learned inside each training set. A fitted one
                is taken at its word, row by row, whatever its columns: rows that it has learned
                from it answers for out of fold, but the folds of a cross-validation it does not
                know. (To clone a model, as scikit-learn does, unfits its reference.)
    balance     so many classes of the empirical rate count the same in learning; 0: rows do
    independent whether several sources are, given θ: then what one says hangs on no other, and
                they simply add
    structure   what ties units together: ldf.Mixture(3) for three mappings of which one holds for
                each unit; None: nothing
    ensemble    which members learn, and how they are combined: an ldf.Ensemble
    preprocess  "power", "standard" or "none" for all members; None: as the ensemble has it
    weights     a column: how much a row counts in learning
    design_effect  a survey's, a number or a column: counts are divided by it. Of several primary
                sources, by source
    per_capita  {auxiliary column: column of the population it is divided by}
    id          a column that names the units
    group       a column: rows of a group are held out together when the model checks itself
    geometry    where units are: two columns, projected coordinates, or one column of shapes. For
                folds with a buffer around them, windows of a raster and the map of a report; never
                what is learned from
    sensitive   auxiliary columns that results show as "feature #j"
    seed        of all that is random
    """

    def __init__(
        self,
        family: str | Family,
        primary: dict[str, Any],
        auxiliary: list[str] | dict[str, list[str] | Images | Series | Items],
        *,
        prior: Statistic | str = "weak",
        mapping: Given | dict[str, Given] | None = None,
        objective: str | Objective = "maximum-likelihood",
        reference: str | Spec | Fusion = "prior",
        balance: int = 0,
        independent: bool = False,
        structure: Mixture | None = None,
        ensemble: Ensemble | None = None,
        preprocess: str | None = None,
        weights: str | None = None,
        design_effect: str | float | dict[str, str | float] | None = None,
        per_capita: dict[str, str] | None = None,
        id: str | None = None,
        group: str | None = None,
        geometry: str | tuple[str, str] | None = None,
        sensitive: tuple[str, ...] | list[str] = (),
        seed: int = 0,
    ) -> None:
        self.family = family
        self.primary = primary
        self.auxiliary = auxiliary
        self.prior = prior
        self.mapping = mapping
        self.objective = objective
        self.reference = reference
        self.balance = balance
        self.independent = independent
        self.structure = structure
        self.ensemble = ensemble
        self.preprocess = preprocess
        self.weights = weights
        self.design_effect = design_effect
        self.per_capita = per_capita
        self.id = id
        self.group = group
        self.geometry = geometry
        self.sensitive = sensitive
        self.seed = seed

    # --- learning ---

    def fit(self, frame: Any, *, checkpoint: Any = None, progress: Tell | None = None) -> Fusion:
        """Learn from the rows that have primary data.

        A fit that is killed goes on from its `checkpoint`, a file, when it is started again.
        `progress` is called with what is learned, and how many of how many are done."""
        data = read(frame, self.family_of(), self.columns())
        spec = self.spec(data)
        self._learn(spec, data, self.table(frame, data), checkpoint, progress)
        if spec.objective is not maximum_likelihood:
            self.notes_ = (*self.notes_, MAY_LEAN)
            warnings.warn(MAY_LEAN, CalibrationWarning, stacklevel=2)
        return self

    def _learn(self, spec: Spec, data: Data, table: Table, checkpoint: Any, progress: Any) -> None:
        from ldf.checkpoint import Checkpoint

        saved = Checkpoint.open(checkpoint, spec, table, self.seed) if checkpoint else None
        resume = saved.state() if saved else None

        watch = saved.write if saved else None
        (self.learned_,) = learn(spec, table, self.seed, resume=resume, watch=watch, tell=progress)
        if saved:
            saved.remove()
        self.family_, self.schema_ = data.family, data.schema
        self.notes_ = data.notes
        self.status_ = self.learned_.status
        self.parts_ = parts_by_row(data, self.learned_.part)

    def table(self, frame: Any, data: Data) -> Table:
        """What is learned from, with log p_0 of each row where a fitted model says it."""
        given, table = self.reference, table_of(data)
        plain = self.objective in ("maximum-likelihood", maximum_likelihood)
        if plain or not isinstance(given, Fusion) or not hasattr(given, "learned_"):
            return table
        own, _, part = given._read(frame)
        said = given._scored(own, part, own.seen)
        # A row without primary data is not compared, but some number has to stand there.
        return table._replace(reference=np.where(own.seen, said, 0.0))

    def bring(self, **sources: Any) -> Fusion:
        """The same model with sources beside the frame found elsewhere: a pattern of files or
        arrays for images, a frame for a series or for items. What was learned is kept."""
        known = self.columns().beside
        for name in sources:
            check.one_of("source", name, tuple(known))
        moved = copy(self)
        given = cast("dict[str, Any]", self.auxiliary)
        moved.auxiliary = given | {n: known[n].elsewhere(own) for n, own in sources.items()}
        return moved

    # --- answers ---

    def posterior(self, frame: Any, given: str = "both", component: Any = None) -> Posterior:
        """θ of each row given all that it has: auxiliary data, and primary data where present.

        A row that the model has learned from is answered for by fits that have not seen it."""
        check.one_of("given", given, GIVEN)
        data, units, part = self._read(frame)
        said = self._said(data, part, given)
        pseudo = None if given == "primary" else said.mean()
        held = (part >= 0) & data.seen
        after = self._updated(said, data, given)
        page = partial(report.explore, self, frame)
        result = Posterior(self._fitted().posterior(after), units, given, pseudo, held, page)
        return result if component is None else result.component(component)

    def predictive(
        self, frame: Any, given: str = "auxiliary", of: str | None = None, **design: Any
    ) -> Predictive:
        """The distribution of each row's primary data; of other data if their trials, exposure, …
        are given. With "both" it is of further data, after those in the frame.

        Of several primary sources it is `of` one of them, the first if none is named."""
        check.one_of("given", given, GIVEN)
        data, units, part = self._read(frame)
        said = self._updated(self._said(data, part, given), data, given)
        data = data.of(of)
        for word in design:
            check.one_of("design", word, data.family.design)
        words = design or self._design(data, of)
        # Effective counts are no whole numbers, and what is predicted is.
        own = not design and given == "auxiliary" and not getattr(data.family, "effective", False)
        distribution = self._fitted().predictive(said, words, of)
        observed = _outcome(data) if own and data.seen.any() else None
        return Predictive(distribution, units, given, observed, data.exact())

    def pseudo_observations(self, frame: Any) -> Any:
        """What auxiliary data are worth: a frame, one row a unit and source. What the sources of a
        unit are worth adds to what they are worth together.

        With several sources, `information` is how far one moves what is known of θ, KL(after ‖
        before) in nats, where the others are known already; `information_alone` where nothing else
        is. Of an ensemble both are its members' means."""
        data, units, part = self._read(frame)
        held = (part >= 0) & data.seen
        names = [source.name for source in data.schema.sources]
        if not names:
            table: dict[str, Any] = {"unit": units.label, "source": ["auxiliary"] * len(units)}
            table |= coordinates(self._fitted().said(data.x, part).mean(), units.components)
            return units.frame(table | {"out_of_fold": held})
        worth = attribution.by_source(self._fitted(), data, part)
        table = {"unit": np.repeat(units.label, len(names)), "source": names * len(units)}
        table |= coordinates(worth.pseudo, units.components)
        table |= {"information": worth.beside, "information_alone": worth.alone}
        table["out_of_fold"] = np.repeat(held, len(names))
        return units.frame(table, by_unit=False)

    def attribution(
        self, frame: Any, of: str = "rate", background: Any = BACKGROUND, component: Any = None
    ) -> Any:
        """How much each auxiliary column moves what auxiliary data say of a unit: a frame, one row
        a unit and column.

        of          "rate": the logit of a share, the logarithm of a rate, or a mean; "count": the
                    logarithm of the number of pseudo-observations
        background  what a unit is compared with: a frame, or so many of the frame's rows, drawn
        component   of class counts, whose rate it is

        These are Shapley values of the combined pseudo-observations: in every unit they and the
        `baseline`, the mean of the background, add to the unit's own value. With several sources
        they are of each source's own pseudo-observations. `rank` says where the unit's number is
        among those of all units, from 0 to 1. Sensitive columns have a number, and no values.

        They tell what the model makes of a column. That is no statement on what the column brings
        about, nor on what would happen if it were changed."""
        data, units, part = self._read(frame)
        which = None if component is None else units.position(component)
        value = attribution.value_of(of, which, data.family)
        behind = self._background(data, background)
        shares = attribution.by_source_and_column(
            self._fitted(), value, data, part, behind, self.seed
        )
        opened, parts = Frame.open(frame), []
        for share in shares:
            hidden = share.column in self.columns().sensitive
            cells = opened.texts(share.column)[share.unit]
            parts.append(
                {
                    "row": share.unit,
                    "source": np.full(len(share.unit), share.source, object),
                    "column": np.full(len(share.unit), self.shown_name(share.column), object),
                    "value": np.full(len(share.unit), None) if hidden else cells,
                    "rank": share.rank,
                    "attribution": share.moved,
                    "baseline": share.baseline,
                }
            )
        table = {key: np.concatenate([one[key] for one in parts]) for key in parts[0]}
        order = np.argsort(table["row"], kind="stable")
        row = table.pop("row")[order]
        held = (part >= 0) & data.seen
        ordered = {key: values[order] for key, values in table.items()}
        for key in ("source", "column", "value"):  # Polars would keep NumPy's objects as objects
            ordered[key] = ordered[key].tolist()
        table = {"unit": units.label[row]} | ordered | {"out_of_fold": held[row]}
        return units.frame(table, by_unit=False)

    def _background(self, data: Data, background: Any) -> np.ndarray:
        """Auxiliary data to compare with."""
        if isinstance(background, int | np.integer):
            if background < 1:
                problem, remedy = "is no row", "give one or more"
                raise check.DataError("background", None, background, problem, remedy)
            many = min(int(background), len(data))
            rows = np.random.default_rng(self.seed).permutation(len(data))[:many]
            return data.x[np.sort(rows)]
        found = read(background, self.family_of(), self.columns(), self.schema_, primary=False)
        if not len(found):
            raise check.DataError("background", None, None, "has no rows", "give one or more")
        return found.x

    def assignments(self, frame: Any, given: str = "both") -> Any:
        """Which mapping of a mixture holds for each row, p(z | x, y): a frame with the probability
        of each, the likeliest, and the entropy of the assignment."""
        check.one_of("given", given, GIVEN[:2])
        trained = self._fitted().trained
        fits = len(jax.tree.leaves(trained[0].weights)[0])
        if self.structure is None or len(trained) * fits > 1:
            remedy = "fit structure=ldf.Mixture(K) with an ensemble of one member and parts=1"
            problem = "has no one mixture that rows could be assigned in"
            raise check.DataError("structure", None, None, problem, remedy)
        data, units, part = self._read(frame)
        share = self._updated(self._said(data, part, given), data, given).share
        table: dict[str, Any] = {"unit": units.label}
        table |= {f"p({k + 1})": own for k, own in enumerate(share)}
        table["assignment"] = share.argmax(0) + 1
        table["entropy"] = entr(share).sum(0)
        return units.frame(table)

    def plan(
        self,
        frame: Any,
        budget: Any,
        cost: Any = 1.0,
        *,
        target: Any = "mse",
        visit: Any = 0.0,
        minimum: Any = None,
        most: Any = None,
        step: float = 1.0,
        weights: Any = None,
        component: Any = None,
    ) -> Plan:
        """Where to survey next: how many observations of each row's unit a budget is best spent on,
        given all that the row has.

        cost        of one observation: a number, a column, or one a unit, as all below
        target      what is made small, summed over units: "mse", the squared error of θ's mean;
                    "entropy"; ("exceeds", 0.5), the chance to decide wrongly whether θ > 0.5
        visit       what coming to a unit costs, beside its observations
        minimum     observations of a unit, if there are any
        most        that can be made of a unit: a village's households
        step        one number: observations, or a count's exposure, come in portions of this size
        weights     how much a unit counts in the sum
        component   of class counts, the class whose share is asked for, planned by its own count

        With a design effect, observations are effective ones."""
        belief, units = self._belief(frame, component)
        return plan.make(
            belief, units, budget, cost, target,
            visit=visit, minimum=minimum, most=most, step=step, weights=weights,
        )  # fmt: skip

    def expected_gain(
        self, frame: Any, observations: Any, target: Any = "entropy", component: Any = None
    ) -> Any:
        """What so many further observations of each unit are expected to tell, in the words of
        `plan`: a frame. Of "entropy" it is the expected information about θ, in nats."""
        belief, units = self._belief(frame, component)
        return plan.expected_gain(belief, units, observations, target)

    def log_scores(self, frame: Any) -> np.ndarray:
        """The log-predictive of each row's primary data given its auxiliary data; NaN where nothing
        was seen (no primary data, or no trials). Of several primary sources it is of all that a row
        has, together."""
        data, _, part = self._read(frame)
        saw = np.isfinite(empirical_rate(data.family, data.y, data.seen))
        return self._scored(data, part, saw)

    def score(self, frame: Any) -> float:
        """The mean log-predictive of the rows that have primary data: larger is better."""
        scores = self.log_scores(frame)
        if np.isnan(scores).all():
            problem, remedy = "has no primary data in any row", "give rows that can be scored"
            raise check.DataError("frame", None, None, problem, remedy)
        return float(np.nanmean(scores))

    def save(self, path: Any) -> None:
        """Write the model: JSON and arrays, no code. One file; or a folder, if there is one at the
        path or it ends with a slash. An objective that is a function is not kept, nor is a
        reference that is a model; of a mapping of your own its weights are, and `load` has to be
        given it. Images, series and items are not
        kept: a pattern of files is."""
        learned, arguments = self._fitted(), self.get_params(deep=False)
        arguments["mapping"] = self._mapping()
        if isinstance(self.auxiliary, dict):  # data are not kept with a model
            given = self.auxiliary.items()
            bare = {s: own.unsaved() if isinstance(own, Beside) else own for s, own in given}
            arguments["auxiliary"] = bare
        if not isinstance(self.objective, str):
            own = (name for name, known in OBJECTIVES.items() if known is self.objective)
            arguments["objective"] = next(own, store.CUSTOM)
        if not isinstance(self.reference, str):
            arguments["reference"] = store.CUSTOM
        saved = store.Saved(
            arguments, self.family_, learned, self.schema_, self.notes_, self.parts_
        )
        store.save(path, "Fusion", saved, _argument_types())

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """As scikit-learn has it; of a fitted model also what was noted."""
        return "\n".join([super().__repr__(N_CHAR_MAX), *getattr(self, "notes_", ())])

    def _repr_html_(self) -> str:  # pyright: ignore
        """What a notebook shows: the members, once there are any."""
        if not hasattr(self, "learned_"):
            return f"<pre>{escape(repr(self))}</pre>"
        learned = self.learned_
        members = {
            "mapping": [one.model.named for one in learned.trained],
            "columns": [getattr(one.preprocess, "kind", "several") for one in learned.trained],
            "share": learned.share,
            "log score": [one.score for one in learned.trained],
        }
        spoken = ", ".join(f"{word} = {given}" for word, given in self.columns().words.items())
        columns = self.columns()
        beside = "".join(f", {own.kind} '{name}'" for name, own in columns.beside.items())
        told = f"{len(columns.auxiliary)} auxiliary columns{beside}"
        sentence = f"{type(self.family_).__name__} ({spoken}), {told}."
        return notebook.table(sentence, members, " ".join([self.status_, *self.notes_]))

    # --- inside ---

    def _fitted(self) -> Learned:
        if not hasattr(self, "learned_"):
            raise check.DataError("model", None, None, "is not fitted", "call .fit(frame) first")
        return self.learned_

    def _read(self, frame: Any) -> tuple[Data, Units, np.ndarray]:
        self._fitted()
        data = read(frame, self.family_of(), self.columns(), self.schema_)
        return data, self.units(frame, data), find_parts(data, self.parts_)

    def units(self, frame: Any, data: Data) -> Units:
        return Units(frame, data.label, self._component_names(data.family))

    def shown_name(self, column: str) -> str:
        """An auxiliary column as results show it: sensitive ones by their number, from 1 on."""
        return self.columns().shown_name(column)

    def _component_names(self, family: Family) -> tuple[str, ...]:
        many = family.components
        if many is None:
            return ()
        given = self.columns().words.values()
        columns = next((c for c in given if isinstance(c, list | tuple)), None)
        return tuple(columns) if columns and len(columns) == many else tuple(map(str, range(many)))

    def _said(self, data: Data, part: np.ndarray, given: str) -> Said:
        """Of each row before its primary data."""
        learned = self._fitted()
        alone = given == "primary"
        return learned.prior().spread(len(data)) if alone else learned.said(data.x, part)

    def _scored(self, data: Data, part: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The log-predictive of some rows; NaN for the others."""
        said, scores = self._said(data, part, "auxiliary"), np.full(len(data), np.nan)
        if rows.any():
            y = {name: values[rows] for name, values in data.y.items()}
            scores[rows] = self._fitted().log_score(said.rows(rows), y)
        return scores

    def _updated(self, said: Said, data: Data, given: str) -> Said:
        """With the primary data of the rows that have any, if they are given."""
        if given == "auxiliary" or not data.seen.any():
            return said
        return self._fitted().updated(said, data.y, data.seen)

    def _belief(self, frame: Any, component: Any) -> tuple[Belief, Units]:
        """What is known of each row's θ, before further observations: of several primary sources,
        of the first."""
        data, units, part = self._read(frame)
        said = self._updated(self._said(data, part, "both"), data, "both")
        position = None if component is None else units.position(component)
        return Belief.of(data.of().family, said.natural, said.share, position), units

    def _design(self, data: Data, of: str | None) -> dict[str, np.ndarray]:
        words = self.columns().words
        if isinstance(self.family_, families.Joint):
            words = self.family_.part(of, words)
        for word, values in data.design.items():
            missing = np.isnan(values).any(tuple(range(1, values.ndim)))
            if missing.any():
                row = data.label[int(np.argmax(missing))]
                problem = "is missing, and without it y has no distribution"
                remedy = f"give {word}=…, or leave the row out"
                raise check.DataError(words.get(word, word), row, None, problem, remedy)
        return data.design


def load(path: Any, mapping: Given | tuple[Given, ...] | None = None) -> Fusion:
    """A model that was saved, ready to answer. Nothing in the file is run: so a model with a
    mapping of your own has to be given it again; several, in the order of the ensemble."""
    given = mapping if isinstance(mapping, tuple) else () if mapping is None else (mapping,)
    own = tuple(as_mapping(one) for one in given)
    saved = store.load(path, "Fusion", _argument_types(), own)
    model = Fusion(**saved.arguments)
    model.learned_, model.family_, model.parts_ = saved.learned, saved.family, saved.parts
    model.schema_, model.notes_ = saved.schema, saved.notes
    model.status_ = saved.learned.status
    return model


def _argument_types() -> dict[str, Any]:
    hints = get_type_hints(Fusion.__init__)
    return {name: hint for name, hint in hints.items() if name != "return"}


def table_of(data: Data) -> Table:
    return Table(data.x, data.y, data.seen, data.weight, data.group)


def _outcome(data: Data) -> Any:
    """What was observed. A row without primary data is asked about nothing, but some number has to
    stand there."""
    values = data.outcome()
    mask = data.seen.reshape(data.seen.shape + (1,) * (values.ndim - 1))
    return np.where(mask, values, values[int(np.argmax(data.seen))])
