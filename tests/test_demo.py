"""The demonstration: the main job end to end, as `make demo` runs it."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import ldf
from ldf.cli import app, demonstration
from ldf.datasets import Counties, counties
from units import LINES

pytest.importorskip("geopandas")


def by_itself(out: Path) -> str:
    """As `make demo` runs it."""
    environment = os.environ | {"XDG_CACHE_HOME": str(out), "XLA_FLAGS": ""}  # optimised
    command = [sys.executable, "-m", "ldf", "demo", "--out", str(out / "demo")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def some_counties() -> Counties:
    """Every twentieth, Loving County, and five columns, one of them sensitive."""
    known = counties()
    rows = np.unique([*range(0, len(known.fips), 20), int(np.argmin(known.person_years))])
    names = [*known.names[:4], known.sensitive[0]]
    columns = [known.names.index(name) for name in names]
    features = known.features[rows][:, columns]
    own = {name: getattr(known, name)[rows] for name in ("fips", "county", "state", "geometry")}
    counted = {name: getattr(known, name)[rows] for name in ("homicides", "person_years")}
    return Counties(**own, **counted, features=features, names=tuple(names))


def quickly(out: Path) -> str:
    """Here, with few counties, and regressions instead of networks and trees."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "counties", some_counties)
        patch.setattr(demonstration, "Fusion", partial(ldf.Fusion, ensemble=LINES))
        done = CliRunner().invoke(app, ["demo", "--out", str(out / "demo")])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module", params=[quickly, pytest.param(by_itself, marks=pytest.mark.full)])
def done(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """The folder it made, and what it said."""
    new = tmp_path_factory.mktemp("new")
    said = request.param(new)
    return new / "demo", said


def test_the_demonstration_writes_what_it_says(done: tuple[Path, str]) -> None:
    folder, said = done
    for name, start in {
        "counties.csv": b"fips,county,state,",
        "rates.csv": b"unit,mean,sd,lower,upper,",
        "model.ldf": b"PK",
        "counties.html": b"<!doctype html>",
    }.items():
        assert str(folder / name) in said
        assert (folder / name).read_bytes().startswith(start)
    assert "Loving County, Texas, had 0 homicides in 321 person-years" in said
    others = [line for line in said.splitlines() if "±" in line]
    assert len(others) == 5, said
    assert "BLK" not in said, "a sensitive column is named"


def test_its_rates_are_those_of_its_model_and_its_table(done: tuple[Path, str]) -> None:
    folder, _ = done
    with (folder / "rates.csv").open(encoding="utf-8", newline="") as file:
        rates = list(csv.DictReader(file))
    table = pyarrow.csv.read_csv(folder / "counties.csv")
    post = ldf.load(folder / "model.ldf").posterior(table)
    close: dict[str, float] = {"rtol": 1e-12}  # it was compiled otherwise there
    assert [row["unit"] for row in rates] == table["county"].to_pylist()
    np.testing.assert_allclose([float(row["mean"]) for row in rates], post.mean(), **close)
    low = post.interval(0.9)[0]
    np.testing.assert_allclose([float(row["lower"]) for row in rates], low, **close)


def test_what_it_says_of_one_county_is_its_row_of_the_tables(
    done: tuple[Path, str],
) -> None:
    folder, said = done
    with (folder / "rates.csv").open(encoding="utf-8", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row["unit"] == "Loving, Texas")
    n, low, high = (float(row[name]) for name in ("pseudo_observations", "lower", "upper"))
    assert f"worth {n:,.0f} person-years, with " in said
    assert f"between {1e5 * low:.1f} and {1e5 * high:.1f} per 100,000 person-years" in said


def test_it_fails_at_once_when_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "taken")])
    assert isinstance(done.exception, FileExistsError)
    assert (tmp_path / "taken").read_text() == "a file, not a folder"
