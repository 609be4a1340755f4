"""Importing the package is cheap: everything comes when it is first asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ldf

HEAVY = ("sklearn", "scipy.special", "scipy.stats", "narwhals", "pandas", "optax")


def seconds(statement: str) -> float:
    """Of the processor: what else runs beside does not count."""
    code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


@pytest.mark.parametrize("statement", ["import ldf", "import ldf; ldf.Binomial()"])
def test_importing_costs_little_more_than_jax(statement: str) -> None:
    """At most 1.5 times as much: the least of five rounds, since what disturbs only adds."""
    rounds = [(seconds(statement), seconds("import jax, equinox, optax")) for _ in range(5)]
    ours, theirs = (min(times) for times in zip(*rounds, strict=True))
    assert ours < 1.5 * theirs


def test_a_family_loads_nothing_heavy() -> None:
    code = (
        f"import sys, ldf; ldf.Binomial(); print([name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_every_public_name_is_there() -> None:
    assert len(set(ldf.__all__)) == len(ldf.__all__)
    assert set(ldf.__all__) <= set(dir(ldf))
    assert set(ldf._LATER) | set(ldf.families.__all__) == set(ldf.__all__)
    for name in ldf.__all__:
        assert getattr(ldf, name).__name__.split(".")[-1] == name
    with pytest.raises(AttributeError, match="module 'ldf' has no attribute 'Fission'"):
        _ = ldf.Fission


def test_what_a_type_checker_is_told_is_what_there_is() -> None:
    tree = ast.parse(Path(ldf.__file__).read_text(encoding="utf-8"))
    told = next(
        ast.literal_eval(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert told == sorted(ldf._LATER)
