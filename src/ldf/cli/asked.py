"""What is asked for on the command line: which column is what, and how the file is written.

`fit` and `validate` ask the same, so their options are the fields of one class each. `options`
makes a command of a function that takes such an object.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from ldf import families
from ldf.arguments import named_family
from ldf.check import DataError
from ldf.cli import files
from ldf.ensemble import Ensemble, Member
from ldf.estimator import Fusion
from ldf.mappings import Fourier, GaussianProcess, Linear, Mapping, Network, Splines, Trees

WHAT, HOW, FILE = "What the columns are", "How it is learned", "How the file is written"
MAPPINGS: dict[str, Mapping] = {
    "linear": Linear(),
    "splines": Splines(),
    "fourier": Fourier(),
    "gaussian-process": GaussianProcess(),
    "network": Network(),
    "trees": Trees(),
}


def column(help: str, *, panel: str = WHAT) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, metavar="COLUMN")


def columns_of(help: str, *, panel: str = WHAT) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, metavar="A,B,…")


def setting(help: str, *, panel: str = HOW, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class Written:
    """How a text file is written."""

    separator: Annotated[
        str | None, setting("Between cells; a comma, or a tab in .tsv.", panel=FILE)
    ] = None
    encoding: Annotated[str, setting("Of its text.", panel=FILE)] = "utf-8"
    decimal: Annotated[str, setting("The point in numbers.", panel=FILE)] = "."

    @property
    def text(self) -> files.Text:
        separator = "\t" if self.separator in ("\\t", "tab") else self.separator
        return files.Text(separator, self.encoding, self.decimal)


@dataclass(frozen=True)
class Asked:
    """What is to be learned from a table."""

    family: Annotated[
        str, setting("binomial, poisson, multinomial, gaussian, … (docs/data.md).", panel=WHAT)
    ]
    successes: Annotated[str | None, column("Binomial: how many of the trials.")] = None
    trials: Annotated[str | None, column("Binomial: how many were asked.")] = None
    count: Annotated[str | None, column("Poisson: how many events.")] = None
    exposure: Annotated[str | None, column("Poisson: people, person-years, area.")] = None
    counts: Annotated[str | None, columns_of("Multinomial: one column a class.")] = None
    mean: Annotated[str | None, column("Gaussian: the mean of the measurements.")] = None
    n: Annotated[str | None, column("Gaussian: how many measurements.")] = None
    variance: Annotated[
        str | None, setting("Gaussian: of one measurement, a number.", panel=WHAT)
    ] = None
    primary: Annotated[
        str | None,
        setting("Of other families: word=column, by commas.", panel=WHAT, metavar="WORD=COLUMN,…"),
    ] = None
    auxiliary: Annotated[
        str | None, columns_of("What is known everywhere; left out: all columns that are left.")
    ] = None
    without: Annotated[str | None, columns_of("Columns that are not to be used.")] = None
    id: Annotated[str | None, column("Names the units.")] = None
    group: Annotated[str | None, column("Units of a group are held out together.")] = None
    weights: Annotated[str | None, column("How much a unit counts in learning.")] = None
    design_effect: Annotated[str | None, column("Of a survey: a column, or a number.")] = None
    sensitive: Annotated[str | None, columns_of("Auxiliary columns shown by number only.")] = None
    prior: Annotated[str, setting("weak, fitted or none.")] = "weak"
    objective: Annotated[str, setting("maximum-likelihood or model-selection.")] = (
        "maximum-likelihood"
    )
    mapping: Annotated[
        str | None, setting(f"One alone ({', '.join(MAPPINGS)}); left out: an ensemble.")
    ] = None
    parts: Annotated[int, setting("Of the units, each left out once.", min=1)] = 8
    seed: Annotated[int, setting("Of all that is random.")] = 0

    def model(self, frame: Any) -> Fusion:
        """Before it is fitted; auxiliary columns that were not named are all that are left."""
        primary = self._primary()
        words = {name: getattr(self, name) for name in ("id", "group", "weights")}
        effect = self.design_effect
        if effect is not None and effect not in files.columns(frame):
            effect = _number("design_effect", effect)
        named = names(self.auxiliary)
        return Fusion(
            self._family(),
            primary,
            list(named) if named else self._rest(frame, primary),
            prior=self.prior,
            objective=self.objective,
            ensemble=self._ensemble(),
            design_effect=effect,
            sensitive=names(self.sensitive),
            seed=self.seed,
            **words,
        )

    def _family(self) -> Any:
        if self.variance is None:
            return named_family(self.family)
        if not isinstance(named_family(self.family), families.Gaussian):
            remedy = "leave it out, or use --family gaussian"
            raise DataError("variance", None, self.variance, "is for measurements only", remedy)
        return families.Gaussian(variance=_number("variance", self.variance))

    def _primary(self) -> dict[str, Any]:
        own = {
            w: getattr(self, w) for w in ("successes", "trials", "count", "exposure", "mean", "n")
        }
        found = {word: name for word, name in own.items() if name is not None}
        if self.counts is not None:
            found["counts"] = list(names(self.counts))
        for pair in names(self.primary):
            word, equals, name = pair.partition("=")
            if not equals:
                raise DataError("primary", None, pair, "is no pair", "write word=column")
            found[word.strip()] = name.strip()
        known = named_family(self.family).columns
        if not found:
            remedy = f"give {' and '.join(f'--{word} COLUMN' for word in known)}"
            raise DataError("primary", None, None, "is not given", remedy)
        for word in found:
            if word not in known:
                remedy = f"a {self.family} family has {', '.join(known)}"
                raise DataError(word, None, found[word], "is no word of this family", remedy)
        return found

    def _rest(self, frame: Any, primary: dict[str, Any]) -> list[str]:
        taken = {self.id, self.group, self.weights, self.design_effect, *names(self.without)}
        for given in primary.values():
            taken |= set(given) if isinstance(given, list) else {given}
        return [name for name in files.columns(frame) if name not in taken]

    def _ensemble(self) -> Ensemble:
        if self.mapping is None:
            return Ensemble(parts=self.parts)
        if self.mapping not in MAPPINGS:
            remedy = f"use {', '.join(MAPPINGS)}"
            raise DataError("mapping", None, self.mapping, "is not known", remedy)
        return Ensemble((Member(MAPPINGS[self.mapping]),), parts=self.parts)


def names(text: str | None) -> tuple[str, ...]:
    """Of columns, by commas; one that holds a comma is put in quotation marks."""
    found = next(csv.reader([text or ""], skipinitialspace=True), [])
    return tuple(name.strip() for name in found if name.strip())


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        remedy = "give a number, or name a column" if name == "design_effect" else "give a number"
        raise DataError(name, None, text, "is neither a column nor a number", remedy) from None


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, with an option for each field of the objects that it takes."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    bundles = {n: k for n, k in hints.items() if isinstance(k, type) and k in (Asked, Written)}
    parameters, plain = [], []
    for name, parameter in signature.parameters.items():
        if name not in bundles:
            plain.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))
            continue
        own = get_type_hints(bundles[name], include_extras=True)
        for field in fields(bundles[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=own[field.name],
                )
            )

    @wraps(function)
    def command(**given: Any) -> Any:
        made = {}
        for name, kind in bundles.items():
            made[name] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
        return function(**made, **given)

    every = [*parameters, *plain]  # as the help shows them: what columns are comes first
    command.__signature__ = signature.replace(parameters=every)  # pyright: ignore
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return command
