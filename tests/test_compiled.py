"""Compiled programs are kept for the next run of a command, and dropped when there are too many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from ldf import compiled
from units import villages

RUN = """
import jax.monitoring

missed = []
jax.monitoring.register_event_listener(
    lambda event, **_: missed.append(event) if event.endswith("cache_misses") else None
)
import ldf
from ldf.compiled import keep_compiled
from ldf.datasets import district

keep_compiled()
small = ldf.Ensemble(
    (ldf.Member(ldf.Network(shared=(4,), branch=())),),
    parts=3,
    schedule=ldf.Schedule(epochs=10, patience=5, chunk=5, places=2),
)
primary = {"successes": "electrified", "trials": "buildings"}
model = ldf.Fusion("binomial", primary, ["night_lights", "distance"], ensemble=small)
cells = district(seed=0).columns()
model.fit(cells).posterior(cells).mean()
print(len(missed))
"""


def test_a_second_run_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", RUN]
    found = []
    for _ in range(2):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        found.append(int(done.stdout))
    assert found[0] > 0
    assert found[1] == 0


FIT = """
import sys

import jax.monitoring

missed = []
jax.monitoring.register_event_listener(
    lambda event, **_: missed.append(event) if event.endswith("cache_misses") else None
)
from ldf import cli

try:
    cli.main()
finally:
    print(len(missed), file=sys.stderr)
"""


@pytest.mark.full
def test_a_second_fit_by_command_compiles_nothing(tmp_path: Path) -> None:
    """The default ensemble: regressions, networks and trees, their stacking and correction."""
    villages().to_csv(tmp_path / "villages.csv", index=False)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    words = ["--family", "binomial", "--successes", "lit", "--trials", "asked"]
    words += ["--auxiliary", "lights,roads"]
    found, written = [], []
    for name in ("one.ldf", "two.ldf"):
        out = tmp_path / name
        done = subprocess.run(
            [sys.executable, "-c", FIT, "fit", tmp_path / "villages.csv", *words, "--out", out],
            env=environment, capture_output=True, text=True, check=True, timeout=1200,
        )  # fmt: skip
        found.append(int(done.stderr.split()[-1]))
        written.append(out.read_bytes())
    assert found[0] > 0
    assert found[1] == 0
    assert written[0] == written[1]


def test_programs_are_dropped_before_the_system_has_no_place_for_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux ends a process that asks for more pieces of memory than it may have."""
    if not compiled.MAPS.exists():
        pytest.skip("only Linux says how many pieces of memory a process has")
    told = []

    @jax.jit
    def double(x: float) -> float:
        told.append("compiled")
        return 2 * x

    double(1.0)
    assert not compiled.drop_if_too_many(share=1.0)
    double(1.0)
    assert told == ["compiled"]
    assert compiled.drop_if_too_many(share=0.0)
    double(1.0)
    assert told == ["compiled"] * 2
    monkeypatch.setattr(compiled, "MAPS", Path("no such file"))
    assert not compiled.drop_if_too_many(share=0.0)
