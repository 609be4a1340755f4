"""Pages that the tests of the explorer share: made once, from a law by hand where learning would
take long."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd

from ldf import Fusion, report
from units import FAMILIES, LINES, fusion, villages

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">'
FOLDER = Path(mkdtemp(prefix="ldf-pages-"))


@cache
def fitted(family: str = "binomial") -> tuple[Fusion, pd.DataFrame]:
    """A few villages, one of them with a name that would like to run, and a column as well."""
    frame = villages()
    frame = frame.rename(index={"v1": EVIL}).rename(columns={"roads": f"roads {EVIL}"})
    kind, primary = FAMILIES[family]
    model = fusion(kind, primary, auxiliary=["lights", f"roads {EVIL}"], ensemble=LINES)
    return model.fit(frame), frame


@cache
def written(family: str = "binomial", rows: int = 0, **more: Any) -> Path:
    """The page of the fitted villages; of so many others, if `rows` are given."""
    model, frame = fitted(family)
    if rows:
        frame = many(rows)
    path = FOLDER / f"{family}-{rows}-{'-'.join(more)}.html"
    return report.write(model, frame, path, geometry=("east", "north"), **more)


def many(rows: int) -> pd.DataFrame:
    frame = villages(rows)
    return frame.rename(columns={"roads": f"roads {EVIL}"})


def grid(rows: int) -> Any:
    return np.random.default_rng(0).uniform(size=(rows, 2))
