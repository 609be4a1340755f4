"""The page itself: markup, style and scripts in one file that may load and run nothing else.

The scripts are run only if they have the hash that the page's own policy names; data are text.
"""

from __future__ import annotations

import base64
import html
import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from ldf.checkpoint import FileError, replacing
from ldf.report.pack import to_json

SCRIPTS = (
    "numbers", "laws", "data", "draw", "map", "table", "card", "whatif", "scatter", "below", "main",
)  # fmt: skip
HEIGHT = 900  # pixels, in a notebook
MARK = '<meta name="generator" content="ldf.report">'


@dataclass(frozen=True)
class Page:
    """One HTML page, which needs nothing else."""

    text: str

    def save(self, path: Any) -> Path:
        """Written beside and moved into place; over nothing but an older page."""
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise FileError(path, "would be in a folder that is not there", "make the folder first")
        if target.is_dir():
            raise FileError(path, "is a folder", "give the name of a file in it")
        if target.exists():
            with open(target, "rb") as file:
                if MARK.encode() not in file.read(1024):
                    raise FileError(path, "is there and is no report", "give another name")
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with replacing(target, beside) as file:
            file.write(self.text.encode())
        return target

    def _repr_html_(self) -> str:
        """In a frame of its own, which can reach nothing of the notebook."""
        return (
            f'<iframe srcdoc="{html.escape(self.text)}" sandbox="allow-scripts allow-downloads" '
            f'title="explorer" style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
        )


def page(content: dict[str, Any], title: str) -> Page:
    script = "\n".join(["(() => {", '"use strict";', *map(_source, _files()), "})();"])
    style = _source("page.css")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "{{mark}}": MARK,
        "{{policy}}": policy,
        "{{title}}": html.escape(title),
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": to_json(content),
    }
    filled = []
    for piece in _pieces(_source("page.html"), tuple(parts)):
        filled.append(parts.get(piece, piece))
    return Page("".join(filled))


def _files() -> list[str]:
    return [f"{name}.js" for name in SCRIPTS]


def _source(name: str) -> str:
    return resources.files("ldf.report").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    digest = base64.b64encode(sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _pieces(template: str, names: tuple[str, ...]) -> list[str]:
    """The template cut at its places, once: what is filled in is not looked at again."""
    pieces = [template]
    for name in names:
        cut = []
        for piece in pieces:
            before, found, after = piece.partition(name) if piece not in names else (piece, "", "")
            cut += [before, found, after]
        pieces = [piece for piece in cut if piece]
    return pieces
