"""The command line: a table in, a table out, and one sentence where something is wrong."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import ldf
from ldf import cli, compiled
from ldf.cli import commands
from ldf.datasets import district
from units import villages

WORDS = ("--family", "binomial", "--successes", "lit", "--trials", "asked")
QUICK = (*WORDS, "--auxiliary", "lights,roads", "--mapping", "linear", "--parts", "3")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Ran]:
    """`ldf …` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiled, "keep_compiled", lambda: None)

    def ldf_(*arguments: Any) -> Ran:
        monkeypatch.setattr(sys, "argv", ["ldf", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return Ran(code, *capfd.readouterr())

    return ldf_


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = villages().reset_index(names="village")
    frame.to_csv(tmp_path / "villages.csv", index=False)
    return tmp_path / "villages.csv"


@pytest.fixture
def model(run: Callable[..., Ran], table: Path) -> Path:
    assert run("fit", table, *QUICK, "--id", "village", "--out", "villages.ldf").code == 0
    return table.with_name("villages.ldf")


# --- what it does -------------------------------------------------------------------------------


def test_fit_says_what_it_took_and_writes_a_model(run: Callable[..., Ran], table: Path) -> None:
    ran = run("fit", table, *WORDS, "--mapping", "linear", "--parts", 3, "--id", "village",
              "--without", "state,side,year", "--out", "m.ldf")  # fmt: skip
    assert ran.code == 0
    assert "Primary: successes = 'lit', trials = 'asked'." in ran.err
    assert "Auxiliary (11): 'lights', 'roads', 'sick', 'people'" in ran.err
    assert "Others: id = 'village'." in ran.err
    assert ran.out == "Written: m.ldf\n"
    fitted = ldf.load("m.ldf")
    assert fitted.primary == {"successes": "lit", "trials": "asked"}
    assert not list(Path().glob("*checkpoint*"))


def test_posterior_is_what_the_library_says(
    run: Callable[..., Ran], table: Path, model: Path
) -> None:
    frame = pd.read_csv(table)
    wanted = ldf.load(model).posterior(frame).to_frame(0.8)
    ran = run("posterior", model, table, "--mass", 0.8)
    piped = pd.read_csv(io.StringIO(ran.out))
    pd.testing.assert_frame_equal(piped, wanted, check_dtype=False, rtol=1e-12)
    assert run("posterior", model, table, "--mass", 0.8, "--out", "rates.parquet").code == 0
    stored = pyarrow.parquet.read_table("rates.parquet").to_pandas()
    pd.testing.assert_frame_equal(stored, wanted, check_dtype=False, check_exact=True)


def test_all_formats_give_the_same_answers(
    run: Callable[..., Ran], table: Path, model: Path
) -> None:
    frame = pd.read_csv(table)
    frame.to_parquet("a.parquet")
    frame.to_feather("a.feather")
    frame.to_csv("a.tsv", sep="\t", index=False)
    frame.to_csv("a.csv.gz", index=False)
    frame.to_csv("b.csv", sep=";", decimal=",", encoding="latin-1", index=False)
    usual = run("posterior", model, table).out
    for name in ("a.parquet", "a.feather", "a.tsv", "a.csv.gz"):
        assert run("posterior", model, name).out == usual
    spoken = ("--separator", ";", "--decimal", ",", "--encoding", "latin-1")
    assert run("posterior", model, "b.csv", *spoken).out == usual


def test_a_pipe_is_read_and_written(
    run: Callable[..., Ran], table: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = run("posterior", model, table).out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
    assert run("posterior", model, "-").out == usual


def test_a_map_stays_a_map(run: Callable[..., Ran], table: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    frame = pd.read_csv(table)
    points = geopandas.points_from_xy(frame.east, frame.north, crs="EPSG:4326")
    geopandas.GeoDataFrame(frame, geometry=points).to_file("villages.gpkg")
    assert run("fit", "villages.gpkg", *QUICK, "--id", "village", "--out", "m.ldf").code == 0
    for name in ("rates.parquet", "rates.geojson"):
        ran = run("posterior", "m.ldf", "villages.gpkg", "--out", name)
        assert ran.code == 0, ran.err
        read = geopandas.read_parquet if name.endswith("parquet") else geopandas.read_file
        found = read(name)
        same = found.geometry.geom_equals_exact(geopandas.GeoSeries(points), 1e-6)
        assert same.all()
        assert found["mean"].between(0, 1).all()
    assert run("posterior", "m.ldf", "rates.parquet").code == 1  # has no auxiliary columns


def test_predict_is_of_data_yet_to_come(run: Callable[..., Ran], table: Path, model: Path) -> None:
    ran = run("predict", model, table, "--given", "both", "--of", "trials=20")
    found = pd.read_csv(io.StringIO(ran.out))
    rates = pd.read_csv(io.StringIO(run("posterior", model, table).out))
    np.testing.assert_allclose(found["mean"], 20 * rates["mean"], rtol=1e-9)


def test_validate_shows_the_models_and_writes_every_unit(
    run: Callable[..., Ran], table: Path
) -> None:
    ran = run("validate", table, *QUICK, "--folds", 3, "--baselines", "binomial", "--out", "s.csv")
    assert ran.code == 0, ran.err
    assert "held-out units in 3 folds" in ran.out
    assert "What ldf's sets hold, beside what they should" in ran.out
    scores = pd.read_csv("s.csv")
    assert set(scores.model) == {"ldf", "binomial"}
    told = json.loads(
        run("validate", table, *QUICK, "--folds", 3, "--baselines", "none", "--json").out
    )
    mine = scores[scores.model == "ldf"].log_score.mean()
    assert told["models"][0]["log_score"] == pytest.approx(mine, rel=1e-9)
    assert [row["mass"] for row in told["coverage"]] == [0.5, 0.8, 0.9, 0.95]


def test_inspect_says_what_a_model_is(run: Callable[..., Ran], model: Path) -> None:
    out = run("inspect", model).out
    assert "primary: successes = lit, trials = asked" in out
    assert "auxiliary: lights, roads" in out
    told = json.loads(run("inspect", model, "--json").out)
    assert [member["mapping"] for member in told["members"]] == ["Linear"]
    assert told["units_learned_from"] == 100


def test_sensitive_columns_are_not_named(run: Callable[..., Ran], table: Path) -> None:
    ran = run("fit", table, *QUICK, "--sensitive", "roads", "--out", "m.ldf")
    shown = ran.err + ran.out + run("inspect", "m.ldf").out
    assert "feature #2" in shown
    assert "roads" not in shown


def test_a_recorded_run_is_run_again(run: Callable[..., Ran], table: Path) -> None:
    ran = run("fit", "villages.csv", *QUICK, "--seed", 3, "--out", "m.ldf", "--record", "run.toml")
    assert ran.code == 0, ran.err
    recorded = tomllib.loads(Path("run.toml").read_text())
    assert recorded["fit"]["data"] == "villages.csv"
    assert recorded["fit"]["seed"] == 3
    first = Path("m.ldf").read_bytes()
    Path("m.ldf").unlink()
    assert run("fit", "--config", "run.toml").code == 0
    assert Path("m.ldf").read_bytes() == first
    assert run("fit", "--config", "run.toml", "--seed", 4, "--out", "other.ldf").code == 0
    assert ldf.load("other.ldf").seed == 4


def test_a_config_may_have_lists(run: Callable[..., Ran], table: Path) -> None:
    Path("run.toml").write_text(
        '[fit]\ndata = "villages.csv"\nfamily = "binomial"\nsuccesses = "lit"\ntrials = "asked"\n'
        'auxiliary = ["lights", "roads"]\nmapping = "linear"\nout = "m.ldf"\n'
    )
    assert run("fit", "--config", "run.toml").code == 0
    assert ldf.load("m.ldf").auxiliary == ["lights", "roads"]


def test_ctrl_c_says_how_to_go_on(
    run: Callable[..., Ran], table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Any, frame: Any, *, checkpoint: Any, progress: Any) -> None:
        checkpoint.write_text("half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.Fusion, "fit", interrupted)
    ran = run("fit", table, *QUICK, "--out", "m.ldf")
    assert ran.code == 130
    assert "the same command goes on from m.ldf.checkpoint." in ran.err.replace("\n", " ")
    assert not Path("m.ldf").exists()


def examples(*groups: Any) -> list[str]:
    """Of every command's help."""
    found = []
    for command in (command for group in groups for command in group.registered_commands):
        help = " ".join((command.callback.__doc__ or "").split())
        assert "Example: " in help, command.callback
        found.append(help.split("Example: ")[1])
    return found


@pytest.mark.full
@pytest.mark.parametrize("line", [*examples(cli.reproduce), "ldf demo --out demo"])
def test_the_examples_that_take_minutes_run(run: Callable[..., Ran], line: str) -> None:
    ran = run(*line.split()[1:])
    assert ran.code == 0, ran.err
    assert any(Path(line.split()[-1]).iterdir())


def test_every_example_of_the_help_runs(run: Callable[..., Ran], tmp_path: Path) -> None:
    frame = villages().reset_index(names="village")[["village", "lights", "roads", "lit", "asked"]]
    frame = frame.rename(columns={"lit": "electrified", "asked": "households"})
    frame.to_csv("villages.csv", index=False)
    lines = [line for line in examples(cli.app) if line != "ldf demo --out demo"]
    assert len(lines) == 6
    for line in sorted(lines, key=lambda line: " fit " not in line):
        words = line.split()
        quick = ("--mapping", "linear") if words[1] in ("fit", "validate") else ()
        ran = run(*words[1:], *quick)
        assert ran.code == 0, f"{line}: {ran.err}"


@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/commands.md", marks=pytest.mark.full)]
)
def test_the_commands_of_the_pages_run(run: Callable[..., Ran], page: str) -> None:
    root = Path(__file__).parent.parent
    lines = [
        line
        for block in (root / page).read_text(encoding="utf-8").split("```bash\n")[1:]
        for line in block.split("```")[0].splitlines()
    ]
    assert len(lines) >= 2
    pd.DataFrame(district(seed=0).columns()).to_csv("villages.csv", index=False)
    for line in lines:
        quick = ("--mapping", "linear") if line.split()[1] in ("fit", "validate") else ()
        ran = run(*shlex.split(line)[1:], *quick)
        assert ran.code == 0, f"{line}: {ran.err}"


# --- what is wrong ------------------------------------------------------------------------------


def text(content: str | bytes, name: str = "bad.csv") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def edited(**cells: Any) -> Callable[[Path], Path]:
    """The villages with other cells in a row or a column."""

    def make(folder: Path) -> Path:
        frame = villages().reset_index(names="village")
        for name, value in cells.items():
            if callable(value):
                frame[name] = value(frame)
            else:
                frame[name] = frame[name].astype(object) if name in frame else None
                frame.loc[7, name] = value
        frame.to_csv(folder / "bad.csv", index=False)
        return folder / "bad.csv"

    return make


def cut(kind: str, share: float = 0.5) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / f"bad.{kind}"
        getattr(villages().reset_index(), f"to_{kind}")(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(len(whole) * share)])
        return path

    return make


def folder_as_file(folder: Path) -> Path:
    (folder / "bad.csv").mkdir()
    return folder / "bad.csv"


def long_line(folder: Path) -> Path:
    """A line of a gigabyte, most of it a hole in the file."""
    with open(folder / "bad.csv", "wb") as file:
        file.truncate(1 << 30)
    return folder / "bad.csv"


HEADER = "lights,roads,lit,asked\n"
ROW = "1,2,3,4\n"
BAD: list[tuple[str, Callable[[Path], Path], str]] = [
    ("no such file", lambda folder: folder / "no.csv", "is not there"),
    ("no format", text("x", "bad.xyz"), "ending that says no format"),
    ("Excel", text("x", "bad.xlsx"), "ending that says no format"),
    ("a folder", folder_as_file, "is a folder"),
    ("empty", text(""), "is empty"),
    ("blank lines", text("\n\n \n"), "is empty"),
    ("a header alone", text(HEADER), "has no rows"),
    ("a short row", text(HEADER + ROW + "1,2,3\n"), "has 3 cells in line 3, and 4 columns"),
    ("a long row", text(HEADER + "1,2,3,4,5\n"), "has 5 cells in line 2, and 4 columns"),
    ("semicolons", text(HEADER.replace(",", ";") + ROW.replace(",", ";")), "separated by ';'"),
    ("tabs", text(HEADER.replace(",", "\t") + ROW.replace(",", "\t")), "separated by a tab"),
    ("mixed separators", text(HEADER + "1;2;3;4\n"), "has 1 cell in line 2, and 4 columns"),
    ("latin-1", text((HEADER + "dörf").encode("latin-1")), "not utf-8 text in line 2"),
    ("UTF-16", text((HEADER + ROW).encode("utf-16")), "not utf-8 text in line 1"),
    ("a picture", text(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "not utf-8 text in line 1"),
    ("zeros", text(b"\0" * 1000), "is no text"),
    ("a gigabyte in a line", long_line, "first line of more than 1,000,000 characters"),
    ("a header twice", text("lights,roads,lit,asked,lit\n1,2,3,4,5\n"), "twice"),
    ("half a gzip", text(gzip.compress(b"a,b\n" * 99)[:-9], "bad.csv.gz"), "no whole gzip"),
    ("no gzip", text("a,b\n", "bad.csv.gz"), "no whole gzip"),
    ("half a Parquet", cut("parquet"), "damaged, or no Parquet"),
    ("text as Parquet", text(HEADER, "bad.parquet"), "damaged, or no Parquet"),
    ("an empty Parquet", text("", "bad.parquet"), "is empty"),
    ("half a Feather", cut("feather"), "damaged, or no Feather"),
    ("text as a map", text("{", "bad.geojson"), "damaged, or no map"),
    ("text as a package", text("{", "bad.gpkg"), "damaged, or no map"),
    ("without a column", text("lights,lit,asked\n1,2,3\n4,5,6\n"), "column 'roads' is not in"),
    ("more successes than trials", edited(lit=99), "column 'lit', row 7: 99"),
    ("negative", edited(lit=-1), "column 'lit', row 7: -1"),
    ("half a success", edited(lit=0.5), "column 'lit', row 7: 0.5"),
    ("text among counts", edited(lit="three"), "column 'lit', row 7: 'three'"),
    ("infinite trials", edited(asked="inf"), "column 'asked', row 7"),
    ("successes alone", edited(asked=None), "column 'asked', row 7 is missing although 'lit' is"),
    ("text in a number column", edited(lights="bright"), "column 'lights'"),
    ("infinite lights", edited(lights="inf"), "column 'lights', row 7"),
    ("dates", edited(lights=lambda f: "2020-01-" + (f.index % 28 + 1).astype(str).str.zfill(2)),
     "column 'lights'"),
    ("all zero", edited(lit=lambda f: 0, asked=lambda f: 0), "column"),
    ("nothing observed", edited(lit=lambda f: None, asked=lambda f: None), "column"),
    ("constant columns", edited(lights=lambda f: 1, roads=lambda f: 2), "is the same in every row"),
    ("an id as a feature", edited(roads=lambda f: f.village), "is it an id?"),
    ("a missing column of lights", edited(lights=lambda f: None), "is missing in every row"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_data_get_one_sentence_and_nothing_is_written(
    run: Callable[..., Ran], tmp_path: Path, make: Callable[[Path], Path], sentence: str
) -> None:
    path = make(tmp_path)
    before = {p.name for p in tmp_path.iterdir()}
    ran = run("fit", path, *QUICK, "--out", "m.ldf")
    assert ran.code == 1
    told = [line for line in ran.err.splitlines() if line.startswith("ldf: ")]
    assert len(told) == 1, ran.err
    assert sentence in told[0]
    assert told[0].endswith(".")
    assert "Traceback" not in ran.err
    assert not ran.out
    assert {p.name for p in tmp_path.iterdir()} == before


WRONG: list[tuple[str, tuple[Any, ...], str]] = [
    ("no primary", ("--family", "binomial", "--out", "m.ldf"),
     "give --successes COLUMN and --trials COLUMN"),
    ("another family's word", (*WORDS, "--count", "sick", "--out", "m.ldf"), "column 'count'"),
    ("no family", ("--family", "binominal", "--out", "m.ldf"), "'family'"),
    ("no mapping", (*WORDS, "--mapping", "forest", "--out", "m.ldf"), "use linear, splines"),
    ("no number", ("--family", "gaussian", "--mean", "yield", "--variance", "x", "--out", "m.ldf"),
     "give a number"),
    ("no pair", ("--family", "exponential", "--primary", "time", "--out", "m.ldf"), "word=column"),
    ("over the input", (*QUICK, "--out", "villages.csv"), "is an input"),
    ("no folder", (*QUICK, "--out", "no/m.ldf"), "in a folder that is not there"),
    ("a folder", (*QUICK, "--out", "."), "is a folder"),
    ("a device", (*QUICK, "--out", "/dev/full"), "is no file that could be replaced"),
    ("no config", ("--config", "no.toml"), "cannot be read"),
    ("no TOML", ("--config", "villages.csv"), "is no TOML"),
    ("two characters", (*QUICK, "--separator", "ab", "--out", "m.ldf"), "give one character"),
    ("no encoding", (*QUICK, "--encoding", "klingon", "--out", "m.ldf"), "utf-8 or latin-1"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_options_get_one_sentence(
    run: Callable[..., Ran], table: Path, words: tuple[Any, ...], sentence: str
) -> None:
    before = table.read_bytes()
    ran = run("fit", table, *words)
    assert ran.code == 1
    (told,) = [line for line in ran.err.splitlines() if line.startswith("ldf: ")]
    assert sentence in told
    assert "Traceback" not in ran.err
    assert table.read_bytes() == before
    assert sorted(p.name for p in table.parent.iterdir()) == ["villages.csv"]


def test_a_config_with_a_word_too_many_is_refused(run: Callable[..., Ran], tmp_path: Path) -> None:
    Path("run.toml").write_text('[fit]\ncolour = "red"\n')
    ran = run("fit", "--config", "run.toml")
    assert (ran.code, ran.err) == (
        1, "ldf: column 'colour' is no option of `ldf fit`; leave it out.\n"
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_told(
    run: Callable[..., Ran], table: Path, model: Path
) -> None:
    table.parent.chmod(0o500)
    try:
        ran = run("posterior", model, table, "--out", "rates.csv")
    finally:
        table.parent.chmod(0o700)
    assert ran.code == 1
    assert "permission denied" in ran.err


@pytest.mark.parametrize("name", ["rates.csv", "rates.parquet"])
def test_where_the_disk_is_full_nothing_is_left(
    run: Callable[..., Ran], table: Path, model: Path, name: str
) -> None:
    """A limit to the size of files is as good as a full disk."""
    import signal

    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        ran = run("posterior", model, table, "--out", name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert ran.code == 1
    assert "file too large" in ran.err.lower()
    assert not list(table.parent.glob("*rates*"))


def test_a_model_is_no_table_and_a_table_no_model(
    run: Callable[..., Ran], table: Path, model: Path
) -> None:
    ran = run("posterior", table, table)
    assert (ran.code, "is not a model" in ran.err) == (1, True)
    ran = run("posterior", model, model)
    assert (ran.code, "ending that says no format" in ran.err) == (1, True)
