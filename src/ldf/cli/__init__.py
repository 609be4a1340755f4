"""The command line: the same words as the library's.

Errors of the data are one sentence on the error stream, and exit status 1.
"""

from __future__ import annotations

import sys

import typer

from ldf.check import DataError
from ldf.cli import commands
from ldf.cli.demonstration import demo
from ldf.cli.studies import reproduce

app = typer.Typer(
    help="Estimate rates of many small units from scarce counts and cheap data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)
for command in (
    *(commands.fit, commands.posterior, commands.predict),
    *(commands.validate, commands.report, commands.inspect),
):
    app.command()(command)
app.add_typer(reproduce, name="reproduce")


def main() -> None:
    """What the command `ldf` runs."""
    from ldf.compiled import keep_compiled

    keep_compiled()
    try:
        app()
    except (DataError, OSError, ImportError, MemoryError) as problem:
        print(f"ldf: {_sentence(problem)}", file=sys.stderr)
        sys.exit(1)


def _sentence(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        where = f"file '{problem.filename}' " if problem.filename else ""
        return f"{where}cannot be used: {problem.strerror.lower()}."
    return str(problem) or "there is not enough memory."
