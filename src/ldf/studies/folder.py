"""A study on disk: figures as PNG and SVG, their numbers and all tables as CSV, and a README.

Everything is made in a new folder beside the wanted one and moved there at the end, so that a study
is there whole or not at all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ldf import check
from ldf.plot.table import data_frame
from ldf.studies.claims import Claim, as_columns, as_markdown
from ldf.studies.figure import Figure

NO_CAUSES = (
    "No causal reading is offered: nothing here says that a feature causes a rate. Mappings use "
    "whatever goes along with it, and features share what they tell. Sensitive features, such as "
    "those of ethnicity, are shown by number."
)


def write(
    out: Path,
    title: str,
    story: Sequence[str],
    figures: Sequence[Figure],
    claims: Sequence[Claim],
    tables: Mapping[str, Any],
) -> list[Path]:
    """Write the folder, of which `story` are the first paragraphs; the files that are in it."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        remedy = "name a folder that does not exist yet, or an empty one"
        raise check.DataError("out", None, str(out), "is there already, and is not empty", remedy)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as place:
        folder = Path(place) / out.name
        folder.mkdir()
        for name, frame in {**tables, "claims": data_frame(as_columns(claims))}.items():
            frame.to_csv(folder / f"{name}.csv", index=False)
        for figure in figures:
            _draw(folder, figure)
        (folder / "README.md").write_text(
            _readme(title, story, figures, claims, tables), encoding="utf-8"
        )
        if out.exists():
            out.rmdir()
        shutil.move(folder, out)
    return sorted(out.iterdir())


def _draw(folder: Path, figure: Figure) -> None:
    from matplotlib import pyplot

    figure.table.to_csv(folder / f"{figure.name}.csv", index=False)
    drawn = figure.draw()
    # Without a date, so that the same numbers give the same file.
    drawn.savefig(folder / f"{figure.name}.svg", metadata={"Date": None})
    drawn.savefig(folder / f"{figure.name}.png", dpi=150)
    pyplot.close(drawn)


def _readme(
    title: str,
    story: Sequence[str],
    figures: Sequence[Figure],
    claims: Sequence[Claim],
    tables: Mapping[str, Any],
) -> str:
    parts = [f"# {title}", *story, NO_CAUSES]
    for name, frame in tables.items():
        if len(frame) <= 20:
            parts += [f"## {name.replace('_', ' ').capitalize()}", _markdown(frame)]
    parts += ["## What the paper says, and what was found", as_markdown(claims)]
    parts.append("Shares are of units, with the standard error of a share; `claims.csv` has them.")
    parts.append("## Figures")
    parts += [f"![{f.caption}]({f.name}.png)\n\n{f.caption} (`{f.name}.csv`)" for f in figures]
    return "\n\n".join(parts) + "\n"


def _markdown(frame: Any) -> str:
    def cell(value: Any) -> str:
        return f"{value:.4f}" if isinstance(value, float) else str(value)

    lines = [list(frame.columns), [":--"] + ["--:"] * (frame.shape[1] - 1)]
    lines += [[cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
