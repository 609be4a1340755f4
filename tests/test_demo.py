"""The demonstration: the main job end to end, as `make demo` runs it."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ldf
from ldf import demo
from ldf.datasets import district
from units import LINES


def by_itself(out: Path) -> str:
    """As `make demo` runs it."""
    environment = os.environ | {"XDG_CACHE_HOME": str(out), "XLA_FLAGS": ""}  # optimised
    command = [sys.executable, "-m", "ldf.demo", "--out", str(out / "demo")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def quickly(out: Path) -> str:
    """Here, with regressions instead of networks."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(demo, "keep_compiled", lambda: None)  # not for the rest of the tests
        patch.setattr(demo, "Fusion", partial(ldf.Fusion, ensemble=LINES))
        assert demo.main(["--out", str(out / "demo")]) == 0
    return said.getvalue()


@pytest.fixture(scope="module", params=[quickly, pytest.param(by_itself, marks=pytest.mark.full)])
def demonstration(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The folder it made, and what it said."""
    new = tmp_path_factory.mktemp("new")
    said = request.param(new)
    return new / "demo", said


def test_the_demonstration_writes_what_it_says(demonstration: tuple[Path, str]) -> None:
    folder, said = demonstration
    for name, start in {
        "district.csv": b"row,column,night_lights,",
        "posterior.csv": b"unit,mean,sd,lower,upper,",
        "map.png": b"\x89PNG",
        "model.ldf": b"PK",
    }.items():
        assert str(folder / name) in said
        assert (folder / name).read_bytes().startswith(start)
    lines = [line for line in said.splitlines() if "±" in line]
    assert len(lines) == 4
    assert all(float(line.split("±")[0].split()[-1]) < 0 for line in lines), said


def test_its_posteriors_are_those_of_its_model(demonstration: tuple[Path, str]) -> None:
    folder, _ = demonstration
    with (folder / "posterior.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    post = ldf.load(folder / "model.ldf").posterior(district(seed=0).columns())
    close: dict[str, float] = {"rtol": 1e-12}  # it was compiled otherwise there
    np.testing.assert_allclose([float(row["mean"]) for row in table], post.mean(), **close)
    np.testing.assert_allclose(
        [float(row["lower"]) for row in table], post.interval(0.9)[0], **close
    )


def test_it_fails_when_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "keep_compiled", lambda: None)
    (tmp_path / "taken").write_text("a file, not a folder")
    assert demo.main(["--out", str(tmp_path / "taken")]) == 1
    assert "not everything was written" in capsys.readouterr().err
