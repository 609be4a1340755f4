"""The paper's two studies as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

reproduce = typer.Typer(
    help="The paper's two studies, on shipped data or on yours.", no_args_is_help=True
)

Out = Annotated[Path, typer.Option(help="Folder for figures, tables and a README.")]
Data = Annotated[Path | None, typer.Option(help="CSV or Parquet; docs/data.md has the format.")]
Seed = Annotated[int, typer.Option(help="Of all that is random.")]
Auxiliary = Annotated[str, typer.Option(help="Columns, by commas; left out: all that are left.")]
Sensitive = Annotated[
    str, typer.Option(help="Columns shown by number only; left out: those whose names say so.")
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
Restarts = Annotated[int, typer.Option(min=1, help="Random starts, of which the best is kept.")]
Draws = Annotated[int, typer.Option(min=1, help="Settings drawn in the search.")]


@reproduce.command()
def electrification(
    out: Out = Path("electrification"),
    data: Data = None,
    auxiliary: Auxiliary = "",
    sensitive: Sensitive = "",
    id: Annotated[str | None, typer.Option(help="Column that names the units.")] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Use the paper's printed values.")] = False,
    folds: Folds = 10,
    restarts: Restarts = 10,
    draws: Draws = 4,
    seed: Seed = 0,
) -> None:
    """Section 5: rates of electrification.

    Example: ldf reproduce electrification --out electrification
    """
    from ldf.studies.protocol import Protocol
    from ldf.studies.reproduce import reproduce_electrification

    protocol = Protocol(folds, restarts, draws, seed=seed)
    written = reproduce_electrification(
        out, data, _names(auxiliary), sensitive=_names(sensitive), id=id, printed=paper,
        protocol=protocol, say=typer.echo,
    )  # fmt: skip
    typer.echo(f"Written: {out} ({len(written)} files); begin with {out / 'README.md'}")


@reproduce.command()
def homicide(
    out: Out = Path("homicide"),
    data: Data = None,
    auxiliary: Auxiliary = "",
    sensitive: Sensitive = "",
    folds: Folds = 10,
    restarts: Restarts = 2,
    draws: Draws = 2,
    seed: Seed = 0,
) -> None:
    """Section 6: homicide rates by a mixture of mappings.

    Example: ldf reproduce homicide --out homicide
    """
    from ldf.studies.protocol import Protocol
    from ldf.studies.reproduce import reproduce_homicide

    protocol = Protocol(folds, restarts, draws, seed=seed)
    written = reproduce_homicide(
        out, data, _names(auxiliary), sensitive=_names(sensitive), protocol=protocol, say=typer.echo
    )
    typer.echo(f"Written: {out} ({len(written)} files); begin with {out / 'README.md'}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
