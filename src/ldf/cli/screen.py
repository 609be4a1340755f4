"""What a person sees: progress and remarks on the error stream, results on the output."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ldf.data import DataWarning
from ldf.train import Tell


def remarks() -> Console:
    return Console(stderr=True, highlight=False)


@contextmanager
def progress(what: str, quiet: bool) -> Iterator[Tell | None]:
    """A bar for each thing that is learned, with the time that is left; none where nobody looks."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=remarks(), transient=False) as bars:
        known: dict[str, Any] = {}

        def tell(name: str, done: int, of: int) -> None:
            if name not in known:
                known[name] = bars.add_task(f"{what}: {name}", total=of)
            bars.update(known[name], completed=done)

        yield tell


@contextmanager
def remarked(quiet: bool, shown: Any = str) -> Iterator[list[str]]:
    """What the library warns of, one sentence a line instead of a traceback's look."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    for warning in caught:
        ours = issubclass(warning.category, UserWarning)
        if ours and str(warning.message) not in told:
            told.append(str(warning.message))
    if not quiet:
        for sentence in told:
            remarks().print(f"[yellow]Note:[/] {_plain(shown(sentence))}", soft_wrap=True)


def say(sentence: str, quiet: bool = False) -> None:
    if not quiet:
        remarks().print(_plain(sentence), soft_wrap=True)


def as_json(content: Mapping[str, Any]) -> None:
    """One object, for machines. What is not a number is null."""
    print(json.dumps(_jsonable(content), ensure_ascii=False, indent=1, allow_nan=False))


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """To read."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for name in rows[0]:
        text = isinstance(rows[0][name], str)
        made.add_column(name.replace("_", " "), justify="left" if text else "right")
    for row in rows:
        made.add_row(*(_cell(value) for value in row.values()))
    Console(highlight=False).print(made)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:,.4g}"
    return _plain(str(value)) if isinstance(value, str) else f"{value:,}"


def _plain(text: str) -> str:
    """Names of columns are no markup."""
    return text.replace("[", r"\[")


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _jsonable(part) for name, part in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if hasattr(value, "tolist"):
        return _jsonable(value.tolist())
    return [_jsonable(part) for part in value]


__all__ = ["DataWarning", "as_json", "progress", "remarked", "remarks", "say", "table"]
