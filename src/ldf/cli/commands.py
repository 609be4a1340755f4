"""The commands of everyday work: fit, posterior, predict, validate, report, inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ldf import assess
from ldf.check import DataError
from ldf.cli import files, recorded, screen
from ldf.cli.asked import FILE, Asked, Written, names, options, setting
from ldf.estimator import Fusion, load
from ldf.frame import listed
from ldf.mappings import count_weights

Data = Annotated[Path, typer.Argument(help="CSV, Parquet, Feather or a map; - for a pipe of CSV.")]
Model = Annotated[Path, typer.Argument(help="What `ldf fit` wrote.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
Mass = Annotated[float, typer.Option(help="Of the intervals.")]
Given = Annotated[str, typer.Option(help="both, auxiliary or primary.")]
Component = Annotated[
    str | None, typer.Option(help="Of class counts: the class, by its column.", metavar="COLUMN")
]
Config = Annotated[
    Path | None,
    typer.Option(
        help="Options from a TOML file; those given here come first.",
        callback=recorded.read,
        is_eager=True,
        rich_help_panel=FILE,
    ),
]
Record = Annotated[
    Path | None, setting("Write the options of this run as TOML, to run it again.", panel=FILE)
]
TABLES = "A .csv, .parquet or .feather, or a .geojson or .gpkg of a map; - for a pipe."


@options
def fit(
    ctx: typer.Context,
    asked: Asked,
    written: Written,
    data: Data,
    out: Annotated[Path, typer.Option(help="The model's file.")],
    checkpoint: Annotated[
        Path | None, setting("Where to go on from if interrupted; left out: OUT.checkpoint.")
    ] = None,
    config: Config = None,
    record: Record = None,
    as_json: Json = False,
) -> None:
    """Learn what auxiliary data are worth, and save the model.

    Example: ldf fit villages.csv --family binomial --successes electrified --trials households
    --id village --out villages.ldf
    """
    files.check_out(out, [data], ())
    frame = files.read(data, written.text)
    model = asked.model(frame)
    _say_what_is_what(model, as_json)
    place = checkpoint or out.with_name(out.name + ".checkpoint")
    again = "Interrupted. Nothing is lost: the same command goes on"
    try:
        with (
            screen.remarked(as_json, model.columns().shown),
            screen.progress("learning", as_json) as tell,
        ):
            model.fit(frame, checkpoint=place, progress=tell)
    except KeyboardInterrupt:
        where = f" from {place}" if place.exists() else ", from the beginning"
        screen.say(f"{again}{where}.")
        raise typer.Exit(130) from None
    model.save(out)
    recorded.write(record, ctx, [data, out])
    told = {"model": str(out), "status": model.status_, "notes": list(model.notes_)}
    if as_json:
        screen.as_json(told | {"units_learned_from": _learned_from(model)})
    else:
        screen.say(f"Learned from {_learned_from(model):,} units: {model.status_}")
        print(f"Written: {out}")


@options
def posterior(
    written: Written,
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help=TABLES)] = files.PIPE,
    given: Given = "both",
    mass: Mass = 0.9,
    component: Component = None,
    as_json: Json = False,
) -> None:
    """θ of every unit: mean, sd, interval, entropy, and what auxiliary data are worth.

    Example: ldf posterior villages.ldf villages.csv --out rates.csv
    """
    files.check_out(out, [model, data])
    fitted, frame = load(model), files.read(data, written.text)
    with screen.remarked(as_json or out == files.PIPE, fitted.columns().shown):
        table = fitted.posterior(frame, given, component).to_frame(mass)
    _put(out, table, frame, as_json)


@options
def predict(
    written: Written,
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help=TABLES)] = files.PIPE,
    given: Given = "auxiliary",
    source: Annotated[
        str | None, typer.Option(help="Of several primary sources: which. The first, if left out.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            "--of", help="Of other data than the table's: trials=20.", metavar="WORD=NUMBER"
        ),
    ] = None,
    mass: Mass = 0.9,
    as_json: Json = False,
) -> None:
    """The distribution of each unit's primary data, or of data yet to come.

    Example: ldf predict villages.ldf villages.csv --given both --of trials=20 --out next.csv
    """
    files.check_out(out, [model, data])
    fitted, frame = load(model), files.read(data, written.text)
    with screen.remarked(as_json or out == files.PIPE, fitted.columns().shown):
        table = fitted.predictive(frame, given, source, **_design(design)).to_frame(mass)
    _put(out, table, frame, as_json)


@options
def validate(
    ctx: typer.Context,
    asked: Asked,
    written: Written,
    data: Data,
    folds: Annotated[int, setting("So many times, some units are held out.", min=2)] = 10,
    baselines: Annotated[str, setting("all, none, or some by their names.")] = "all",
    time: Annotated[str | None, setting("A column: later units are foretold by earlier.")] = None,
    out: Annotated[Path | None, typer.Option(help="One row a unit and model.")] = None,
    config: Config = None,
    record: Record = None,
    as_json: Json = False,
) -> None:
    """Hold out each unit once: how it is foretold, beside the regressions one would use instead.

    Example: ldf validate villages.csv --family binomial --successes electrified
    --trials households --id village --folds 5
    """
    from ldf.validate import cross_validate

    if out is not None:
        files.check_out(out, [data])
    frame = files.read(data, written.text)
    model = asked.model(frame)
    _say_what_is_what(model, as_json)
    wanted = None if baselines == "none" else baselines if baselines == "all" else _some(baselines)
    with (
        screen.remarked(as_json, model.columns().shown),
        screen.progress("validating", as_json) as tell,
    ):
        found = cross_validate(model, frame, folds, wanted, time=time, progress=tell)
    if out is not None:
        files.write(out, found.to_frame())
    recorded.write(record, ctx, [data])
    calibrated = not getattr(found.data.family, "effective", False)
    sets = found.coverage("ldf") if calibrated else []
    uniform = assess.uniformity(found.pit("ldf")).rows() if calibrated and not sets_of(sets) else []
    if as_json:
        screen.as_json({"models": found.rows(), "coverage": sets, "uniformity_of_pit": uniform})
        return
    print(f"{found}\n")
    if sets:
        screen.table("What ldf's sets hold, beside what they should", sets)
    if out is not None:
        print(f"Written: {out}")


@options
def report(
    written: Written,
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="The page, an .html file.")],
    geometry: Annotated[
        str | None,
        typer.Option(help="Columns of coordinates, or one of shapes; a map needs none."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Also hold out units, for scores and calibration.")
    ] = None,
    mass: Mass = 0.9,
    threshold: Annotated[float | None, typer.Option(help="Of P(θ > threshold).")] = None,
    component: Component = None,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    as_json: Json = False,
) -> None:
    """One page with a map, a table and a card for each unit, that opens offline.

    Example: ldf report villages.ldf villages.csv --out villages.html
    """
    from ldf.report import write
    from ldf.validate import cross_validate

    files.check_out(out, [model, data], (".html",))
    fitted, frame = load(model), files.read(data, written.text)
    where: Any = names(geometry)
    if len(where) > 2:
        remedy = "write, for example, east,north"
        raise DataError("geometry", None, geometry, "is not two columns", remedy)
    if len(where) < 2:
        where = where[0] if where else frame.geometry if files.geometry_of(frame) else None
    with (
        screen.remarked(as_json, fitted.columns().shown),
        screen.progress("validating", as_json) as tell,
    ):
        checked = cross_validate(fitted, frame, folds, progress=tell) if folds else None
        write(
            fitted, frame, out, validation=checked, geometry=where, mass=mass,
            threshold=threshold, title=title, component=component,
        )  # fmt: skip
    if as_json:
        screen.as_json({"file": str(out), "bytes": out.stat().st_size})
    else:
        print(f"Written: {out} ({out.stat().st_size / 1e6:.1f} MB)")


def inspect(
    model: Model,
    as_json: Json = False,
) -> None:
    """What a model is: its columns, its members, how it was learned.

    Example: ldf inspect villages.ldf
    """
    fitted = load(model)
    learned = fitted.learned_
    members = [
        {
            "mapping": one.model.named,
            "columns": getattr(one.preprocess, "kind", "several"),
            "share": float(share),
            "log_score": float(one.score),
            "weights": count_weights(one.weights),
        }
        for one, share in zip(learned.trained, learned.share, strict=True)
    ]
    about = {
        "family": repr(fitted.family_),
        "primary": ", ".join(f"{word} = {given}" for word, given in fitted.columns().words.items()),
        "auxiliary": [fitted.shown_name(name) for name in fitted.columns().auxiliary],
        "beside": {of.source: of.kind for of in fitted.schema_.blocks} or None,
        "id": fitted.id,
        "group": fitted.group,
        "seed": fitted.seed,
        "units_learned_from": _learned_from(fitted),
        "sharpness": learned.correction.times[-1].tolist(),  # of rows that lack nothing
        "stretch": learned.correction.stretch.tolist(),
        "contrast": learned.correction.contrast.tolist(),
        "doubt": float(learned.correction.doubt),
        "status": fitted.status_,
        "notes": [fitted.columns().shown(note) for note in fitted.notes_],
    }
    if as_json:
        screen.as_json(about | {"members": members})
        return
    for name, value in about.items():
        text = " ".join(value) if name == "notes" else value
        text = ", ".join(map(str, value)) if name != "notes" and isinstance(value, list) else text
        if text not in (None, ""):
            print(f"{name.replace('_', ' ')}: {text}")
    screen.table("Members", members)


# --- inside -------------------------------------------------------------------------------------


def sets_of(rows: list[dict[str, Any]]) -> bool:
    """Whether θ has several components: each then has sets of its own."""
    return any("component" in row for row in rows)


def _say_what_is_what(model: Fusion, quiet: bool) -> None:
    """Nothing is taken silently."""
    spoken = []
    for word, given in model.primary.items():
        spoken.append(f"{word} = {listed(given if isinstance(given, list) else [given])}")
    screen.say(f"Primary: {', '.join(spoken)}.", quiet)
    shown = [f"'{model.shown_name(name)}'" for name in model.columns().auxiliary]
    screen.say(f"Auxiliary ({len(shown)}): {', '.join(shown)}.", quiet)
    other = [(word, getattr(model, word)) for word in ("id", "group", "weights", "design_effect")]
    told = [f"{word} = '{value}'" for word, value in other if value is not None]
    if told:
        screen.say(f"Others: {', '.join(told)}.", quiet)


def _learned_from(model: Fusion) -> int:
    part = model.learned_.part
    return int((part >= 0).sum()) if (part >= 0).any() else len(part)


def _design(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    word, equals, number = text.partition("=")
    try:
        if equals:
            return {word.strip(): np.asarray(float(number))}
    except ValueError:
        pass
    raise DataError("of", None, text, "is no word and number", "write, for example, trials=20")


def _some(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _put(out: Path, table: Any, frame: Any, as_json: bool) -> None:
    if as_json and out == files.PIPE:
        made = table.to_pydict() if hasattr(table, "to_pydict") else table.to_dict("list")
        screen.as_json(made)
        return
    files.write(out, table, frame)
    if as_json:
        screen.as_json({"file": str(out), "rows": len(table)})
    elif out != files.PIPE:
        print(f"Written: {out} ({len(table):,} rows)")
