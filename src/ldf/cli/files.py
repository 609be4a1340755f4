"""Tables in files: CSV, Parquet and Feather by pyarrow, maps by geopandas; `-` is a pipe of CSV.

Nothing is guessed silently: the separator is a comma unless one is given (a tab for .tsv), the text
is UTF-8 unless an encoding is given. Files are written whole or not at all, and never over an
input.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from csv import writer
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ldf.checkpoint import FileError, replacing

PIPE = Path("-")
TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
MAPS = (".geojson", ".gpkg", ".shp", ".fgb")
READ = (*TEXT, ".parquet", ".feather", ".arrow", *MAPS)
WRITTEN = (".csv", ".parquet", ".feather", ".geojson", ".gpkg")
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
LONGEST = 1_000_000  # characters of a first line


class Text(NamedTuple):
    """How a text file is written."""

    separator: str | None = None  # None: a comma, or a tab in .tsv
    encoding: str = "utf-8"
    decimal: str = "."


def read(path: Path, text: Text = Text()) -> Any:  # noqa: B008
    """A pyarrow table; of a map, a geopandas frame."""
    if path == PIPE:
        return _read_text(path, sys.stdin.buffer.read(), text)
    kind = _ending(path, READ)
    if kind is None:
        raise FileError(path, "has an ending that says no format", f"use {', '.join(READ)}")
    if not path.exists():
        raise FileError(path, "is not there", "check the path")
    if path.is_dir():
        raise FileError(path, "is a folder", "name a file in it")
    if path.stat().st_size == 0:
        raise FileError(path, "is empty", "give a table with a header and rows")
    if kind in TEXT:
        _refuse_one_line(path)
        return _read_text(path, _bytes(path, kind), text)
    if kind in MAPS:
        return _read_map(path)
    return _read_arrow(path, kind)


def _ending(path: Path, known: Sequence[str]) -> str | None:
    name = path.name.lower()
    return max((e for e in known if name.endswith(e)), key=len, default=None)


# --- text ---------------------------------------------------------------------------------------


def _refuse_one_line(path: Path) -> None:
    """Before all of it is in memory."""
    with path.open("rb") as file:
        first = file.read(LONGEST)
    if len(first) == LONGEST and b"\n" not in first and not path.name.lower().endswith(".gz"):
        problem = f"has a first line of more than {LONGEST:,} characters"
        raise FileError(path, problem, "give a table, one line a unit")


def _bytes(path: Path, kind: str) -> bytes:
    if not kind.endswith(".gz"):
        return path.read_bytes()
    import gzip

    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as problem:
        raise FileError(path, "is no whole gzip file", "compress the table again") from problem


def _read_text(path: Path, content: bytes, text: Text) -> Any:
    from pyarrow import ArrowInvalid, csv

    content = _decoded(path, content, text.encoding)
    separator = text.separator or ("\t" if ".tsv" in path.name.lower() else ",")
    if len(separator) != 1:
        raise FileError(path, f"cannot be separated by {separator!r}", "give one character")
    header = _header(path, content, separator)
    try:
        return csv.read_csv(
            io.BytesIO(content),
            # All of it is one block: what a column is, is decided by all of its cells. And without
            # threads, so that complaints have a line.
            read_options=csv.ReadOptions(
                use_threads=False, block_size=max(1 << 20, min(len(content) + 1, 2**31 - 2))
            ),
            parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                strings_can_be_null=True, null_values=MISSING, decimal_point=text.decimal
            ),
        )
    except ArrowInvalid as problem:
        raise FileError(path, *_told(str(problem), header)) from None


def _decoded(path: Path, content: bytes, encoding: str) -> bytes:
    """As UTF-8, without the mark that some programs put before it."""
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except LookupError:
        remedy = "give one such as utf-8 or latin-1"
        raise FileError(path, f"cannot be read as {encoding!r}", remedy) from None
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        remedy = "save it as UTF-8, or say how it is written: --encoding latin-1"
        raise FileError(path, f"is not {encoding} text in line {line}", remedy) from None


def _header(path: Path, content: bytes, separator: str) -> list[str]:
    if not content.strip():
        raise FileError(path, "is empty", "give a table with a header and rows")
    if b"\0" in content[:LONGEST]:
        raise FileError(path, "is no text", "give a table as text, or another format by its ending")
    first = content[:LONGEST].split(b"\n", 1)[0]
    names = first.decode(errors="replace").rstrip("\r").split(separator)
    other = next((s for s in ";\t|," if s != separator and s in names[0]), None)
    if len(names) == 1 and other is not None:
        shown = {"\t": "a tab", ";": "';'", "|": "'|'", ",": "','"}[other]
        remedy = f"say so: --separator '{other if other != chr(9) else chr(92) + 't'}'"
        raise FileError(path, f"is separated by {shown}, not by {separator!r}", remedy)
    return names


def _told(problem: str, header: list[str]) -> tuple[str, str]:
    """What pyarrow says of a CSV, in one sentence: what is wrong, and the remedy."""
    found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", problem)
    if found:
        row, wanted, got = found.groups()
        cells = "cell" if got == "1" else "cells"
        return f"has {got} {cells} in line {row}, and {wanted} columns", "correct the line"
    if "Empty CSV" in problem or "no columns" in problem.lower():
        return "is empty", "give a table with a header and rows"
    return "is no table: " + problem.split("\n")[0][:200].rstrip("."), "correct the file"


# --- Parquet, Feather, maps ---------------------------------------------------------------------


def _read_arrow(path: Path, kind: str) -> Any:
    from pyarrow import ArrowException, feather, parquet

    try:
        table = parquet.read_table(path) if kind == ".parquet" else feather.read_table(path)
    except (ArrowException, OSError) as problem:
        name = "Parquet" if kind == ".parquet" else "Feather"
        remedy = "write it again, or take another copy"
        raise FileError(path, f"is damaged, or no {name} file", remedy) from problem
    if b"geo" in (table.schema.metadata or {}):
        return _geopandas().read_parquet(path)
    return table


def _geopandas() -> Any:
    try:
        import geopandas
    except ImportError:
        raise ImportError("maps need geopandas: pip install 'ldf[maps]'") from None
    return geopandas


def _read_map(path: Path) -> Any:
    geopandas = _geopandas()
    try:
        return geopandas.read_file(path)
    except Exception as problem:
        remedy = "write it again, or take another copy"
        raise FileError(path, "is damaged, or no map", remedy) from problem


def columns(frame: Any) -> list[str]:
    """Their names, the geometry's aside."""
    names = getattr(frame, "column_names", None)
    names = list(frame.columns) if names is None else list(names)
    return [str(name) for name in names if name != geometry_of(frame)]


def geometry_of(frame: Any) -> str | None:
    """The column that holds shapes, if there is one."""
    return getattr(frame, "_geometry_column_name", None)


# --- writing ------------------------------------------------------------------------------------


def check_out(path: Path, inputs: Sequence[Path], endings: Sequence[str] = WRITTEN) -> None:
    """Before any work is done: whether the result can be put there."""
    if path == PIPE:
        return
    if endings and _ending(path, endings) is None:
        raise FileError(path, "has an ending that says no format", f"use {', '.join(endings)}")
    if path.is_dir():
        raise FileError(path, "is a folder", "name a file in it")
    if path.exists() and not path.is_file():
        raise FileError(path, "is no file that could be replaced", "name another one")
    if not path.parent.is_dir():
        raise FileError(path, "would be in a folder that is not there", "make the folder first")
    for given in inputs:
        if given != PIPE and path.exists() and given.exists() and path.samefile(given):
            raise FileError(path, "is an input", "give the result a name of its own")


def write(path: Path, frame: Any, source: Any = None) -> None:
    """A frame by the ending of the path; a map, if the source is one and the format can hold it."""
    if path == PIPE:
        _write_csv(frame, sys.stdout.buffer)
        return
    kind = _ending(path, WRITTEN)
    shapes = source if geometry_of(source) else None
    if kind in (".geojson", ".gpkg"):
        if shapes is None:
            raise FileError(path, "is a map, and the data have no shapes", "write .csv or .parquet")
        _whole(path, lambda place: _mapped(frame, shapes).to_file(place))
    elif kind == ".parquet" and shapes is not None:
        _whole(path, lambda place: _mapped(frame, shapes).to_parquet(place, index=False))
    else:
        put = {".csv": _write_csv, ".parquet": _write_parquet, ".feather": _write_feather}[
            kind or ""
        ]
        with replacing(path, path.with_name(path.name + ".part")) as file:
            put(frame, file)


def _whole(path: Path, write: Callable[[Path], None]) -> None:
    """For writers that need a path: one with the same ending beside it."""
    beside = path.with_name(f".part-{path.name}")
    try:
        write(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _mapped(frame: Any, shapes: Any) -> Any:
    return _geopandas().GeoDataFrame(frame, geometry=shapes.geometry.to_numpy(), crs=shapes.crs)


def _arrow(frame: Any) -> Any:
    import pyarrow

    return (
        frame
        if isinstance(frame, pyarrow.Table)
        else pyarrow.Table.from_pandas(frame, preserve_index=False)
    )


def _write_csv(frame: Any, file: BinaryIO) -> None:
    from pyarrow import csv

    table, header = _arrow(frame), io.StringIO()
    writer(header, lineterminator="\n").writerow(table.column_names)  # pyarrow would quote them all
    file.write(header.getvalue().encode())
    csv.write_csv(table, file, csv.WriteOptions(include_header=False))


def _write_parquet(frame: Any, file: BinaryIO) -> None:
    from pyarrow import parquet

    parquet.write_table(_arrow(frame), file)


def _write_feather(frame: Any, file: BinaryIO) -> None:
    from pyarrow import feather

    feather.write_feather(_arrow(frame), file)


PLAIN = {".csv": _write_csv, ".parquet": _write_parquet, ".feather": _write_feather}
