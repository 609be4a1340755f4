"""Importing the package is cheap: what learns and what reads frames comes when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

import pytest

import ldf

HEAVY = ("sklearn", "scipy.special", "scipy.stats", "narwhals", "pandas", "optax")


def seconds(statement: str) -> float:
    """Of the processor: what else runs beside does not count."""
    code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


def test_importing_costs_little_more_than_jax() -> None:
    """At most 1.5 times as much, by medians of rounds that alternate."""
    rounds = [(seconds("import ldf"), seconds("import jax, equinox, optax")) for _ in range(3)]
    ours, theirs = (median(times) for times in zip(*rounds, strict=True))
    assert ours < 1.5 * theirs


def test_what_is_heavy_is_not_loaded() -> None:
    code = f"import sys, ldf; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_every_public_name_is_there() -> None:
    assert len(set(ldf.__all__)) == len(ldf.__all__)
    assert set(ldf.__all__) <= set(dir(ldf))
    assert set(ldf._LATER) <= set(ldf.__all__)
    for name in ldf.__all__:
        assert getattr(ldf, name).__name__.split(".")[-1] == name
    with pytest.raises(AttributeError, match="module 'ldf' has no attribute 'Fission'"):
        _ = ldf.Fission
