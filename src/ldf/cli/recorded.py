"""A run as a TOML file: the options of a command, to be read again.

    [fit]
    data = "villages.csv"
    family = "binomial"
    …

Paths are as they were given: relative ones are looked for where the command runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ldf.check import DataError
from ldf.checkpoint import FileError, replacing
from ldf.cli import files

ASIDE = ("config", "record", "help")


def read(ctx: typer.Context, path: Path | None) -> Path | None:
    """Called before other options are looked at: what the file says becomes their default."""
    if path is None or ctx.resilient_parsing:
        return path
    name = ctx.command.name or ""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise FileError(path, f"is no TOML: {problem}", "correct it") from None
    except OSError as problem:
        raise FileError(path, f"cannot be read: {problem.strerror}", "check the path") from None
    own = content.get(name)
    if not isinstance(own, dict):
        raise FileError(path, f"has no table [{name}]", f"begin it with [{name}]")
    known = {parameter.name for parameter in ctx.command.params} - set(ASIDE)
    defaults = {}
    for key, value in own.items():
        option = key.replace("-", "_")
        option = "as_json" if option == "json" else option
        if option not in known:
            raise DataError(key, None, None, f"is no option of `ldf {name}`", "leave it out")
        defaults[option] = ",".join(map(_quoted, value)) if isinstance(value, list) else value
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    return path


def _quoted(name: Any) -> str:
    text = str(name)
    return f'"{text}"' if "," in text else text


def write(path: Path | None, ctx: typer.Context, inputs: Sequence[Path]) -> None:
    """What this run was asked for, its defaults aside."""
    if path is None:
        return
    import tomli_w

    files.check_out(path, inputs, (".toml",))
    asked = {}
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        if name in ASIDE or value is None or value == parameter.default:
            continue
        asked["json" if name == "as_json" else name] = (
            str(value) if isinstance(value, Path) else value
        )
    with replacing(path, path.with_name(path.name + ".part")) as file:
        tomli_w.dump({ctx.command.name or "": asked}, file)
