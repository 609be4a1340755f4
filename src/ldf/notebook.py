"""What results look like in a notebook: a sentence and a short table, as HTML in which names from
the data are only text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

SHOWN = 10  # rows


def table(sentence: str, columns: Mapping[str, Any], more: str = "") -> str:
    """The first rows of columns of the same length, under a sentence."""
    values = [np.asarray(column).tolist() for column in columns.values()]
    length = len(values[0]) if values else 0
    numbers = [all(isinstance(v, int | float) for v in column) for column in values]
    head = "".join(
        f'<th scope="col" style="text-align:{"right" if number else "left"}">{escape(name)}</th>'
        for name, number in zip(columns, numbers, strict=True)
    )
    body = "".join(_row(row, numbers) for row in list(zip(*values, strict=True))[:SHOWN])
    rest = f"<p>… and {length - SHOWN:,} more.</p>" if length > SHOWN else ""
    note = f"<p>{escape(more)}</p>" if more else ""
    return (
        f"<div><p>{escape(sentence)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{rest}{note}</div>"
    )


def of_rows(sentence: str, rows: Sequence[Mapping[str, Any]], more: str = "") -> str:
    """The same, one dictionary a row."""
    return table(sentence, {name: [row[name] for row in rows] for name in rows[0]}, more)


def _row(row: tuple[Any, ...], numbers: list[bool]) -> str:
    cells = (
        f'<td style="text-align:{"right" if number else "left"}">{escape(_text(value))}</td>'
        for value, number in zip(row, numbers, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _text(value: Any) -> str:
    if isinstance(value, float) and not isinstance(value, bool):
        return "" if value != value else f"{value:.4g}"
    return str(value)
