"""From a table to a study's folder: on the data that come with the package, or on a file.

What a file must hold is in docs/data.md. Columns that are neither ids nor counts are auxiliary,
unless they are named.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldf import check, plot
from ldf.checkpoint import version
from ldf.data import Columns
from ldf.datasets import FEATURES, counties, district
from ldf.datasets.district import SHAPE
from ldf.plot.table import data_frame
from ldf.studies import electrification, homicide
from ldf.studies.folder import write
from ldf.studies.protocol import THE_PAPERS, Protocol
from ldf.studies.story import sizes

Say = Callable[[str], None]
OTHER_YEAR = re.compile(r"(homicides|population)_(\d{4})")
MAPPED = 0.9  # of the counties need a shape for maps to be drawn
NO_FEATURES = {"id", "fips", "county", "state", "lat", "lon", "ucr_pop", "ucr_coverage"}
# Of the table of 2010 that docs/data.md describes.
ETHNICITY = re.compile(r"white|black|native|asian|pac_isl|hispanic|races|ethnic", re.IGNORECASE)


class Source(NamedTuple):
    """A table and what its columns are."""

    frame: dict[str, Any]
    primary: dict[str, str]
    auxiliary: list[str]
    about: str
    sensitive: tuple[str, ...] = ()

    def shown(self, names: Sequence[str]) -> list[str]:
        """Columns as they are told of: sensitive ones by their number."""
        columns = Columns(self.primary, tuple(self.auxiliary), sensitive=self.sensitive)
        return [columns.shown_name(name) for name in names]


def reproduce_electrification(
    out: Path,
    data: Path | None = None,
    auxiliary: Sequence[str] = (),
    *,
    sensitive: Sequence[str] = (),
    id: str | None = None,
    printed: bool = False,
    protocol: Protocol = THE_PAPERS,
    say: Say = print,
) -> list[Path]:
    """Section 5, into a folder."""
    more: dict[str, Any] = {}
    if data is None:
        cells = district(seed=protocol.seed)
        about = "A simulated district in Kayonza's likeness; the truth is known."
        frame, names = cells.columns(), list(auxiliary or FEATURES)
        primary = {"successes": "electrified", "trials": "buildings"}
        truth = cells.pseudo_successes + cells.pseudo_failures
        more = {"place": SHAPE, "theta": cells.theta, "information": truth}
    else:
        frame, about = file(data), f"From {data.name}."
        primary = {"successes": "electrified", "trials": "households"}
        names = features(frame, primary, auxiliary, id)
        if {"lat", "lon"} <= set(frame):
            more = {"place": np.stack([frame["lon"], frame["lat"]], -1)}
        if id is not None:
            more["id"] = id
    of = Source(frame, primary, names, about, masked(names, sensitive))
    _tell(say, of)
    study = electrification.run(
        of.frame, of.primary, of.auxiliary,
        sensitive=of.sensitive, protocol=protocol, printed=printed, **more,
    )  # fmt: skip
    options = _options(of, data, auxiliary, sensitive)
    options += (["--id", id] if id else []) + (["--paper"] if printed else [])
    settings = "printed in the paper" if printed else "searched in each fold"
    did = [
        _command("electrification", out, options, protocol),
        f"{about} {sizes(study.cv, 'units')} {_folds(protocol)} Settings: {settings}. "
        f"{study.model.status_}",
    ]
    return write(
        out, "Electrification: Section 5", [*did, *electrification.story(study)],
        electrification.figures(study), electrification.claims(study), _tables(study.cv),
    )  # fmt: skip


def reproduce_homicide(
    out: Path,
    data: Path | None = None,
    auxiliary: Sequence[str] = (),
    *,
    sensitive: Sequence[str] = (),
    protocol: Protocol = THE_PAPERS,
    say: Say = print,
) -> list[Path]:
    """Section 6, into a folder."""
    shipped, later = counties(), {}
    if data is None:
        frame = shipped.columns()
        frame["thousands"] = frame["person_years"] / 1000
        about = "US county homicides of 1988–90 (NCOVR)."
        names = list(auxiliary or shipped.names)
        usual = tuple(n for n in shipped.sensitive if n in names)
        hidden = tuple(sensitive) or usual
    else:
        frame = file(data)
        for name in ("fips", "county", "state", "homicides", "population"):
            _need(frame, name)
        names = features(frame, {"count": "homicides", "exposure": "population"}, auxiliary)
        frame["thousands"] = frame["population"] / 1000
        hidden = masked(names, sensitive)
        later, about = other_years(frame), f"From {data.name}."
    of = Source(frame, {"count": "homicides", "exposure": "thousands"}, names, about, hidden)
    _tell(say, of)
    study = homicide.run(
        frame, of.primary, names,
        county=np.asarray(frame["county"]), state=np.asarray(frame["state"]),
        shapes=_shapes(frame, shipped), sensitive=hidden, protocol=protocol, later=later,
    )  # fmt: skip
    did = [
        _command("homicide", out, _options(of, data, auxiliary, sensitive), protocol),
        f"{about} {sizes(study.cv, 'counties')} {_folds(protocol)} {study.mixture.status_}",
    ]
    tables = _tables(study.cv) | {"scores_by_state": study.by_state.table()}
    return write(
        out, "Homicide rates: Section 6", [*did, *homicide.story(study)],
        homicide.figures(study), homicide.claims(study), _frames(tables),
    )  # fmt: skip


# --- files --------------------------------------------------------------------------------------


def file(path: Path) -> dict[str, Any]:
    """Columns of a CSV or Parquet file. Codes keep their leading zeros."""
    import pandas as pd

    if not path.exists():
        raise check.DataError("data", None, str(path), "is not there", "give the path of a file")
    parquet = path.suffix.lower() in {".parquet", ".pq"}
    frame = pd.read_parquet(path) if parquet else pd.read_csv(path, dtype={"fips": str})
    return {str(name): frame[name].to_numpy() for name in frame}


def _need(frame: dict[str, Any], name: str) -> None:
    if name not in frame:
        remedy = f"there are {', '.join(list(frame)[:12])}; see docs/data.md"
        raise check.DataError(name, None, None, "is not in the file", remedy)


def features(
    frame: dict[str, Any], primary: dict[str, str], named: Sequence[str], id: str | None = None
) -> list[str]:
    """The auxiliary columns: those that are named, or all that are neither ids nor counts."""
    for name in (*primary.values(), *named):
        _need(frame, name)
    known = {*NO_FEATURES, *primary.values(), id}
    return list(named) or [n for n in frame if n not in known and not OTHER_YEAR.fullmatch(n)]


def masked(names: Sequence[str], sensitive: Sequence[str]) -> tuple[str, ...]:
    """The columns that go by number: those that are named, or all whose names tell of ethnicity."""
    return tuple(sensitive) or tuple(name for name in names if ETHNICITY.search(name))


def other_years(frame: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    """Counts and exposure of the years beside 2010, by year."""
    found = {}
    for name in sorted(frame):
        match = OTHER_YEAR.fullmatch(name)
        if match and match[1] == "homicides":
            people = frame.get(f"population_{match[2]}", frame["population"])
            count = np.asarray(frame[name], float)
            found[match[2]] = {"count": count, "exposure": np.asarray(people, float) / 1000}
    return found


def _shapes(frame: dict[str, Any], shipped: Any) -> Any:
    """The counties' shapes, if most counties have one. Those of Alaska and Hawaii have none, nor
    have those whose borders are new."""
    at = {code: i for i, code in enumerate(shipped.fips)}
    found = [at.get(str(code)) for code in frame["fips"]]
    if np.mean([i is not None for i in found]) < MAPPED:
        return None
    shapes = [None if i is None else shipped.geometry[i] for i in found]
    return plot.Areas.of(shapes, group=np.asarray(frame["state"]))


# --- words --------------------------------------------------------------------------------------


def _tell(say: Say, of: Source) -> None:
    """What was taken as what: nothing is guessed in silence."""
    say(of.about)
    say("primary: " + ", ".join(f"{word} = {name}" for word, name in of.primary.items()))
    say(f"auxiliary ({len(of.auxiliary)}): {', '.join(of.shown(of.auxiliary))}")


def _options(
    of: Source, data: Path | None, auxiliary: Sequence[str], sensitive: Sequence[str]
) -> list[str]:
    """What was said of the data on the command line."""
    found = [] if data is None else ["--data", str(data)]
    for option, names in (("--auxiliary", auxiliary), ("--sensitive", sensitive)):
        found += [option, ",".join(of.shown(names))] if names else []
    return found


def _command(study: str, out: Path, options: list[str], protocol: Protocol) -> str:
    """The command that writes the folder again, but for names that are not shown."""
    size = {name: getattr(protocol, name) for name in ("folds", "restarts", "draws", "seed")}
    sized = [word for name, value in size.items() for word in (f"--{name}", str(value))]
    words = ["ldf", "reproduce", study, "--out", str(out), *options, *sized]
    return f"Written by ldf {version()}:\n\n    {shlex.join(words)}"


def _folds(protocol: Protocol) -> str:
    return (
        f"{protocol.folds} folds stratified by the empirical rate, {protocol.restarts} restarts, "
        f"seed {protocol.seed}."
    )


def _tables(cv: Any) -> dict[str, Any]:
    """Scores a model, coverage a model and level, and one row a unit and model."""
    rows = [{"model": name} | row for name in cv.answers for row in cv.coverage(name)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return _frames({"scores": cv.table(), "coverage": columns, "units": cv.to_frame()})


def _frames(tables: dict[str, Any]) -> dict[str, Any]:
    return {n: data_frame(t) if isinstance(t, dict) else t for n, t in tables.items()}
