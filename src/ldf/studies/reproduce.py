"""From a table to a study's folder: on the data that come with the package, or on a file.

What a file must hold is in docs/data.md. Columns that are neither ids nor counts are auxiliary,
unless they are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ldf import check, plot
from ldf.datasets import FEATURES, counties, district
from ldf.datasets.district import SHAPE
from ldf.plot.table import data_frame
from ldf.studies import electrification, homicide
from ldf.studies.folder import NO_CAUSES, write
from ldf.studies.protocol import THE_PAPERS, Protocol

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


def reproduce_electrification(
    out: Path,
    data: Path | None = None,
    auxiliary: Sequence[str] = (),
    *,
    id: str | None = None,
    printed: bool = False,
    protocol: Protocol = THE_PAPERS,
    say: Say = print,
) -> list[Path]:
    """Section 5, into a folder."""
    more: dict[str, Any] = {}
    if data is None:
        cells = district(seed=protocol.seed)
        about = (
            f"A simulated district in Kayonza's likeness: {len(cells.theta):,} cells, of which "
            f"{int(np.isfinite(cells.buildings).sum())} were surveyed; the truth is known."
        )
        primary = {"successes": "electrified", "trials": "buildings"}
        of = Source(cells.columns(), primary, list(auxiliary or FEATURES), about)
        truth = cells.pseudo_successes + cells.pseudo_failures
        more = {"place": SHAPE, "theta": cells.theta, "information": truth}
    else:
        frame = file(data)
        primary = {"successes": "electrified", "trials": "households"}
        of = Source(frame, primary, features(frame, primary, auxiliary, id), f"From {data.name}.")
        if {"lat", "lon"} <= set(frame):
            more = {"place": np.stack([frame["lon"], frame["lat"]], -1)}
        if id is not None:
            more["id"] = id
    _tell(say, of)
    study = electrification.run(
        of.frame, of.primary, of.auxiliary, protocol=protocol, printed=printed, **more
    )
    how = "printed in the paper" if printed else "searched in each fold"
    about = f"{of.about} {_size(protocol)} Settings: {how}. {study.model.status_}"
    return write(
        out, "Electrification: Section 5", about, electrification.figures(study),
        electrification.claims(study), _tables(study.cv),
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
    shipped, later = counties(), None
    if data is None:
        frame = shipped.columns()
        frame["thousands"] = frame["person_years"] / 1000
        about = f"US county homicides of 1988–90 (NCOVR), {len(frame['fips']):,} counties."
        names = list(auxiliary or shipped.names)
        sensitive = tuple(sensitive) or shipped.sensitive
    else:
        frame = file(data)
        for name in ("fips", "county", "state", "homicides", "population"):
            _need(frame, name)
        names = features(frame, {"count": "homicides", "exposure": "population"}, auxiliary)
        frame["thousands"] = frame["population"] / 1000
        sensitive = tuple(sensitive) or tuple(n for n in names if ETHNICITY.search(n))
        later, about = _other_year(frame), f"From {data.name}."
    of = Source(frame, {"count": "homicides", "exposure": "thousands"}, names, about)
    _tell(say, of, sensitive)
    study = homicide.run(
        frame, of.primary, names,
        county=np.asarray(frame["county"]), state=np.asarray(frame["state"]),
        shapes=_shapes(frame, shipped), sensitive=tuple(sensitive), protocol=protocol, later=later,
    )  # fmt: skip
    about = f"{of.about} {_size(protocol)} {study.mixture.status_}"
    tables = _tables(study.cv) | {"scores_by_state": study.by_state.table()}
    found = homicide.figures(study), homicide.claims(study)
    return write(out, "Homicide rates: Section 6", about, *found, _frames(tables), NO_CAUSES)


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


def _other_year(frame: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The first year after 2010 that there are counts of, or else any."""
    years = sorted(
        match[2] for n in frame if (match := OTHER_YEAR.fullmatch(n)) and match[1] == "homicides"
    )
    if not years:
        return None
    year = next((year for year in years if year > "2010"), years[0])
    people = frame.get(f"population_{year}", frame["population"])
    count = np.asarray(frame[f"homicides_{year}"], float)
    return {"count": count, "exposure": np.asarray(people, float) / 1000}


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


def _tell(say: Say, of: Source, sensitive: Sequence[str] = ()) -> None:
    """What was taken as what: nothing is guessed in silence."""
    say(of.about)
    say("primary: " + ", ".join(f"{word} = {name}" for word, name in of.primary.items()))
    shown = [n if n not in sensitive else f"feature #{j + 1}" for j, n in enumerate(of.auxiliary)]
    say(f"auxiliary ({len(shown)}): {', '.join(shown)}")


def _size(protocol: Protocol) -> str:
    return f"{protocol.folds} folds, {protocol.restarts} restarts, seed {protocol.seed}."


def _tables(cv: Any) -> dict[str, Any]:
    """Scores a model, coverage a model and level, and one row a unit and model."""
    rows = [{"model": name} | row for name in cv.answers for row in cv.coverage(name)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return _frames({"scores": cv.table(), "coverage": columns, "units": cv.to_frame()})


def _frames(tables: dict[str, Any]) -> dict[str, Any]:
    return {n: data_frame(t) if isinstance(t, dict) else t for n, t in tables.items()}
