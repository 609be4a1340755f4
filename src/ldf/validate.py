"""Cross-validation: what a model says of units it has not seen, beside what others say.

All that is learned (encoding aside: preprocessing, priors, references, members' shares) is learned
from each fold's training rows alone, and all folds of a model are one program. Every unit has one
row a model, predicted by the fold that held it out.

Of several primary sources the log score is of all that a unit has, together. What is predicted (the
means, sets and PIT) is of one source, the first unless another is named, in the units that have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ldf import assess, check, folds, frame, notebook
from ldf.baselines import NAMES, search
from ldf.baselines import baselines as regressions
from ldf.data import Data, read
from ldf.folds import Split
from ldf.learn import learn
from ldf.learned import Learned, Said
from ldf.results import Units
from ldf.spec import Spec
from ldf.table import Table, empirical_rate
from ldf.train import Tell


@dataclass(frozen=True, eq=False)
class Answer:
    """What one model says of units it has not seen."""

    learned: Learned  # any of the folds': what they have in common
    said: Said | None  # components × units; None if only the scores are kept
    log_score: np.ndarray  # NaN where there is nothing to score

    def of(self, units: np.ndarray) -> Said:
        if self.said is None:
            remedy = "cross-validate the model itself"
            raise check.DataError("model", None, None, "was only scored", remedy)
        return self.said.rows(units)


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """One out-of-fold row a unit and model."""

    units: Units
    data: Data
    split: Split
    counted: np.ndarray  # units that were held out and saw something
    answers: dict[str, Answer]

    def __repr__(self) -> str:
        """The comparison in plain text, best first."""
        rows = sorted(self.rows(), key=lambda row: -row["log_score"])
        first = next(iter(self.answers))
        wide = max(30, *(len(name) for name in self.answers)) + 3
        held = f"{int(self.counted.sum()):,} held-out units in {len(self.split.held)} folds"
        lines = [
            f"{held} (mean log score a unit; more is better):\n",
            f"{'model':{wide}}{'log score':>10}{f'behind {first}':>19}{'90 % sets hold':>18}",
        ]
        for row in rows:
            behind = f"{row[f'minus_{first}']:+.3f} ± {row['standard_error']:.3f}"
            hold = f"{row['coverage_90']:.1%} of {row['expected_90']:.1%}"
            lines.append(
                f"{row['model']:{wide}}{row['log_score']:10.3f}"
                f"{'' if row['model'] == first else behind:>19}"
                f"{'' if self._effective() else hold:>18}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The comparison, for a notebook."""
        rows = sorted(self.rows(), key=lambda row: -row["log_score"])
        held = f"{int(self.counted.sum()):,} held-out units in {len(self.split.held)} folds"
        return notebook.of_rows(f"{held}; mean log score a unit, more is better.", rows)

    def to_frame(self, of: str | None = None) -> Any:
        """One row a unit and model: fold, log score, mean and sd of the predictive, NaN where a
        unit lacks the source that it is of."""
        parts = []
        for name, answer in self.answers.items():
            part = {
                "unit": self.units.label[self.counted],
                "model": np.full(int(self.counted.sum()), name),
                "fold": self.split.fold[self.counted],
                "log_score": answer.log_score[self.counted],
            }
            if not self._effective(of):
                part |= self._moments(name, of)
            parts.append(part)
        table = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        return self.units.frame(table, by_unit=False)

    def _moments(self, name: str, of: str | None) -> dict[str, np.ndarray]:
        law, have = self.predictive(name, of), self.having(of)[self.counted]

        def spread(values: Any) -> np.ndarray:
            full = np.full((len(have), *np.shape(values)[1:]), np.nan)
            full[have] = values
            return full

        table = {"mean": spread(law.mean()), "sd": spread(law.sd())}
        if not self.units.components:
            return table
        return {
            f"{what} of {component}": values[:, i]
            for i, component in enumerate(self.units.components)
            for what, values in table.items()
        }

    def table(self) -> Any:
        """One row a model: its mean log score a unit, how far behind the first it is, and whether
        its 90 % sets hold what they should."""
        rows = self.rows()
        table = {key: [row[key] for row in rows] for key in rows[0]}
        return self.units.frame(table, by_unit=False)

    def rows(self) -> list[dict[str, Any]]:
        """What `table` holds, one dictionary a model."""
        first = next(iter(self.answers))
        rows = []
        for name, answer in self.answers.items():
            behind = self._difference(name, first)
            cover = {"observed": np.nan, "expected": np.nan}
            if not self._effective() and self.having().any():
                cover = self.coverage(name, (0.9,))[0]
            rows.append(
                {
                    "model": name,
                    "log_score": float(answer.log_score[self.counted].mean()),
                    f"minus_{first}": behind.mean,
                    "standard_error": behind.standard_error,
                    "coverage_90": cover["observed"],
                    "expected_90": cover["expected"],
                    "units": int(self.counted.sum()),
                }
            )
        return rows

    def compare(self, one: str, other: str) -> dict[str, Any]:
        """By how much `one` predicts better than `other`: mean difference of the log scores a unit,
        its standard error (by groups, if the folds kept groups together), share of units better."""
        return self._difference(one, other).rows()[0]

    def _difference(self, one: str, other: str) -> assess.ScoreDifference:
        for name in (one, other):
            check.one_of("model", name, tuple(self.answers))
        p, q = (self.answers[name].log_score for name in (one, other))
        return assess.score_difference(p, q, self.data.group, self.counted)

    def having(self, of: str | None = None) -> np.ndarray:
        """Units that were held out and saw something of a source: those that its predictives are
        compared with. If there is one source, all that are counted."""
        data = self.data.of(of)
        if data is self.data:
            return self.counted
        return self.counted & np.isfinite(empirical_rate(data.family, data.y, data.seen))

    def coverage(
        self, model: str, masses: Any = assess.MASSES, of: str | None = None
    ) -> list[dict[str, Any]]:
        """Observed and actual mass of the predictive's sets, with the standard error: by groups, if
        the folds kept groups together."""
        law, y = self.predictive(model, of), self._outcome(of)
        group = None if self.data.group is None else self.data.group[self.having(of)]
        return assess.coverage(law, y, masses, self._exact(of), group).rows()

    def pit(self, model: str, seed: int = 0, of: str | None = None) -> np.ndarray:
        """The randomised probability integral transform: uniform if the model is right."""
        return assess.pit(self.predictive(model, of), self._outcome(of), seed, self._exact(of))

    def check(
        self,
        model: str,
        quantity: Any = assess.QUANTITIES,
        draws: int = 1000,
        seed: int = 0,
        of: str | None = None,
    ) -> list[dict[str, Any]]:
        """Predictive checks: test quantities of the data beside those of draws."""
        law, outcome, exact = self.predictive(model, of), self._outcome(of), self._exact(of)
        return assess.predictive_check(law, outcome, quantity, draws, seed, exact).rows()

    def predictive(self, model: str, of: str | None = None) -> Any:
        """p(y | x) of the counted units (of several sources, of those that have it), by the fold
        that held each out."""
        check.one_of("model", model, tuple(self.answers))
        answer, units = self.answers[model], self.having(of)
        design = {name: values[units] for name, values in self.data.of(of).design.items()}
        return answer.learned.predictive(answer.of(units), design, of)

    def posterior(self, model: str) -> Any:
        """p(θ | x) of the counted units, by the fold that held each out."""
        check.one_of("model", model, tuple(self.answers))
        answer = self.answers[model]
        return answer.learned.posterior(answer.of(self.counted))

    def _effective(self, of: str | None = None) -> bool:
        """Whether counts are a survey's effective ones: scored, but not predicted as they are."""
        return getattr(self.data.family.source(of), "effective", False)

    def _exact(self, of: str | None) -> np.ndarray:
        """Of the units whose data are predicted, those whose outcome is known itself."""
        return self.data.of(of).exact()[self.having(of)]

    def _outcome(self, of: str | None) -> np.ndarray:
        if self._effective(of):
            problem, remedy = (
                "makes counts that are not whole numbers",
                "compare log scores instead",
            )
            raise check.DataError("design_effect", None, None, problem, remedy)
        return self.data.of(of).outcome()[self.having(of)]


def cross_validate(
    model: Any,
    table: Any,
    folds: int | Split = 10,
    baselines: str | Iterable[str] | None = "all",
    *,
    buffer: float | None = None,
    time: str | None = None,
    progress: Tell | None = None,
) -> CrossValidation:
    """Hold out each unit once, and see how the model and the regressions predict it.

    Folds are stratified by the empirical rate; whole groups if the model has a `group`; spatial
    blocks with a `buffer` around them if the model has a `geometry`; forward in time by the column
    `time`; or a Split of your own. `baselines` are "all", some by name, or None: each is one
    regression under the penalty that suits training rows which a fit has not seen. They see no
    images, series or items. `progress` is called with what is learned, and how many of how many are
    done.
    """
    data = read(table, model.family_of(), model.columns())
    split = _split(model, data, table, folds, buffer, time)
    specs: dict[str, Spec] = {"ldf": model.spec(data)}
    specs |= _baselines(data.family, baselines, model.preprocess, len(data))
    rows = model.table(table, data)
    # What people use today does not read images: regressions see the columns of tables.
    tables = rows._replace(x=data.x[:, data.schema.tabular])
    answers = {}
    for name, spec in specs.items():
        seen = rows if name == "ldf" else tables
        answers[name] = answer(spec, seen, split, model.seed, _of(name, progress))
    rate = empirical_rate(data.family, data.y, data.seen)
    # A unit that saw nothing (no trials) is predicted by every model alike.
    counted = split.held.any(0) & np.isfinite(rate)
    return CrossValidation(model.units(table, data), data, split, counted, answers)


def _of(model: str, progress: Tell | None) -> Tell | None:
    """What is told, with the model that it is about."""
    if progress is None:
        return None
    return lambda what, done, of: progress(f"{model}: {what}", done, of)


def _baselines(
    family: Any,
    wanted: str | Iterable[str] | None,
    preprocess: str | None = None,
    rows: int = 0,
) -> dict[str, Spec]:
    """All there are of the family, some by their names, or none; preprocessed as the model is."""
    if not wanted or (wanted == "all" and type(family).__name__ not in NAMES):
        return {}
    known = regressions(family, preprocess=preprocess or "power", **search(rows))
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        check.one_of("baselines", name, ("all", *known))
    return {name: spec for name, spec in known.items() if name in names or "all" in names}


def _split(
    model: Any, data: Data, table: Any, number: int | Split, buffer: float | None, time: str | None
) -> Split:
    if isinstance(number, Split):
        if number.held.shape[1] != len(data):
            problem = f"is for {number.held.shape[1]} rows, and the frame has {len(data)}"
            raise check.DataError("folds", None, None, problem, "make it of this frame's rows")
        return number.check(every=False, group=data.group)
    if buffer is not None:
        if data.place is None:
            remedy = "tell the model where units are: geometry=(…, …)"
            raise check.DataError("buffer", None, buffer, "needs a place for each unit", remedy)
        return folds.buffered(data.place, number, model.seed, buffer)
    rate, opened = empirical_rate(data.family, data.y, data.seen), frame.Frame.open(table)
    if time is not None:
        with opened.telling(words={"time": time}):
            return folds.forward(opened.cells(time), number)
    if data.group is not None:
        with opened.telling(words={"group": model.group}):
            return folds.grouped(data.group, number, model.seed, rate=rate)
    return folds.stratified(rate, number, model.seed)


def answer(spec: Spec, rows: Table, split: Split, seed: int, tell: Tell | None = None) -> Answer:
    """What a model says of each unit when it has not learned from it."""
    found = learn(spec, rows, seed, split.training, tell=tell)
    said = gathered(found, rows.x, split.held)
    score = np.full(len(rows.x), np.nan)
    scored = split.held.any(0) & rows.seen
    y = {name: values[scored] for name, values in rows.y.items()}
    score[scored] = found[0].log_score(said.rows(scored), y)
    return Answer(found[0], said, score)


def gathered(found: list[Learned], x: np.ndarray, held: np.ndarray) -> Said:
    """What is said of each row by what was learned without it. Where some of these are in doubt,
    they have more components than the others."""
    each = [learned.said(x[rows]) for learned, rows in zip(found, held, strict=True)]
    most = max(len(said.share) for said in each)
    parts = [said.with_components(most) for said in each]

    def whole(*leaves: np.ndarray) -> np.ndarray:
        full = np.full((most, len(x), *leaves[0].shape[2:]), np.nan)
        for leaf, rows in zip(leaves, held, strict=True):
            full[:, rows] = leaf
        return full

    return jax.tree.map(whole, *parts)
