"""What the pages show is what the code does.

Every Python block of the README and of docs/ runs, in order, one namespace a page; where a text
block follows, the Python block prints exactly that. A block with a title is a file, or a change to
one: those of the page on adding a family are made to a copy of the project, where the laws must
hold for the new family.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
ADDING = ROOT / "docs" / "adding-a-family.md"

FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$'
    r"(?:\n+```(?:text|output)\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\]\(([^)#:]+)\)")
LARGEST_PICTURE = 150_000
RUN = """
import contextlib, io, json, sys

before, page, blocks = json.load(sys.stdin)
exec(before)
names, found = {"__name__": "__main__"}, []
for line, body in blocks:
    printed = io.StringIO()
    # The blank lines make the line numbers of a traceback those of the page.
    code = compile("\\n" * line + body, page, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    found.append(printed.getvalue())
print(json.dumps(found))
"""


# The README's model has all its members, but few fits of each, and short ones.
SHORT = """
from functools import partial
import ldf

short = ldf.Schedule(epochs=10, patience=5, chunk=5, places=2)
ldf.Fusion = partial(ldf.Fusion, ensemble=ldf.Ensemble(parts=3, schedule=short))
"""


class Block(NamedTuple):
    language: str
    title: str | None
    body: str
    output: str | None
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            *found.group("language", "title", "body", "output"), text[: found.start()].count("\n")
        )
        for found in FENCE.finditer(text)
    ]


def examples_of(page: Path) -> list[Block]:
    return [b for b in blocks_of(page) if b.language == "python" and b.title is None]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run_in(
    folder: Path, *arguments: str, source: Path = ROOT / "src", told: str | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(source), "JAX_PLATFORMS": "cpu"} | more
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        input=told,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def run_examples(page: Path, folder: Path, before: str = "", **more: str) -> None:
    """In a process of its own and an empty folder, as a reader runs them."""
    examples = examples_of(page)
    told = json.dumps([before, str(page), [(block.line + 1, block.body) for block in examples]])
    done = run_in(folder, "-W", "error", "-c", RUN, told=told, **more)
    assert done.returncode == 0, done.stderr
    for block, printed in zip(examples, json.loads(done.stdout), strict=True):
        assert printed == (block.output or ""), f"{page}, line {block.line + 1}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if examples_of(page) and page != ADDING], ids=name_of
)
def test_every_example_runs_and_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    run_examples(page, tmp_path, SHORT if page == README else "")


@pytest.mark.full
def test_the_readme_runs_as_it_is(tmp_path: Path) -> None:
    run_examples(README, tmp_path, XLA_FLAGS="")  # optimised, since a real model is learned


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_exist(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target
        assert path.exists(), f"{page} links to {target}"
        assert path.suffix not in {".svg", ".png"} or path.stat().st_size < LARGEST_PICTURE


# --- adding a family ----------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.py")
    }


def change(text: str, lines: list[str]) -> str:
    """Insert the lines that begin with + beside those that are there already."""
    assert {line[:1] for line in lines} <= {" ", "+"}, "a change on this page only adds lines"
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] == " ")
    after = "".join(f"{line[1:]}\n" for line in lines)
    assert f"\n{text}".count(f"\n{before}") == 1, f"{before!r} must be there exactly once"
    return f"\n{text}".replace(f"\n{before}", f"\n{after}")[1:]


def make_changes(page: Path, folder: Path) -> None:
    for block in blocks_of(page):
        if block.title is not None:
            path = folder / block.title
            if block.language == "diff":
                text = change(path.read_text(encoding="utf-8"), block.body.splitlines())
            else:
                assert not path.exists(), f"{block.title} is there already"
                text = block.body
            path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def with_weibull(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with the page's changes made."""
    folder = tmp_path_factory.mktemp("adding") / "project"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignore)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    make_changes(ADDING, folder)
    return folder


def test_adding_a_family_touches_three_files(with_weibull: Path) -> None:
    after = contents(with_weibull)
    before = {
        f"{part}/{path}": text
        for part in ("src", "tests")
        for path, text in contents(ROOT / part).items()
    }
    assert {path for path in after if after[path] != before.get(path)} == {
        "src/ldf/families/weibull.py",
        "src/ldf/families/__init__.py",
        "tests/cases.py",
    }
    assert before.keys() - after.keys() == set()


def test_an_added_family_obeys_the_laws(with_weibull: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-k", "Weibull")
    ran = run_in(
        with_weibull, "-m", "pytest", "tests/test_laws.py", *options, source=with_weibull / "src"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) >= 10


def test_an_added_family_gives_what_the_page_shows(with_weibull: Path) -> None:
    (example,) = examples_of(ADDING)
    ran = run_in(with_weibull, "-c", example.body, source=with_weibull / "src")
    assert ran.stderr == ""
    assert ran.stdout == example.output


def _equations(first: str, last: str) -> set[str]:
    """B4, B6: B4, B5 and B6."""
    begin, end = (int(re.sub(r"\D", "", name)) for name in (first, last or first))
    return {re.sub(r"\d", "", first) + str(number) for number in range(begin, end + 1)}


def test_every_equation_of_the_paper_has_a_test_and_a_place_in_the_code() -> None:
    appendices = {"A8", "B11", "C8", "D8"}
    wanted = _equations("1", "64").union(*(_equations(last[0] + "1", last) for last in appendices))
    files = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_paper*"))
    names = re.findall(
        r"def test_eq_([a-d]?\d+)(?:_to_([a-d]?\d+)|_and_([a-d]?\d+))?", "".join(files)
    )
    tested: set[str] = set()
    for first, last, other in names:
        tested |= _equations(first.upper(), last.upper()) | ({other.upper()} - {""})
    assert tested == wanted
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([A-D]?\d+)(?:–([A-D]?\d+))? \|", page, re.MULTILINE)
    assert set().union(*(_equations(*cell) for cell in cells)) == wanted
    for name in re.findall(r"`(ldf\.[\w.]+)`", page):
        pkgutil.resolve_name(name)  # or it is not there
