"""glmmTMB and mgcv, called by Rscript: tables go through files in a temporary folder."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from .counts import Counts
from .task import Task

SCRIPT = Path(__file__).with_name("peers.R")
ASK = """
cat("R", as.character(getRversion()), "\\n")
for (p in c("glmmTMB", "mgcv"))
  if (requireNamespace(p, quietly = TRUE)) cat(p, format(packageVersion(p)), "\\n")
"""


@functools.cache
def versions() -> dict[str, str]:
    """Of R and the packages that are there."""
    if shutil.which("Rscript") is None:
        return {}
    said = subprocess.run(["Rscript", "-e", ASK], capture_output=True, text=True, check=False)
    return dict(line.split() for line in said.stdout.splitlines() if line.strip())


def glmmtmb(task: Task) -> Counts:
    return by_r(task, "glmmTMB", "each")


def glmmtmb_one(task: Task) -> Counts:
    return by_r(task, "glmmTMB", "one")


def mgcv(task: Task) -> Counts:
    return by_r(task, "mgcv", "one")


def by_r(task: Task, package: str, precision: str) -> Counts:
    if package not in versions():
        raise ImportError(f"R has no {package}")
    columns = [f"x{j}" for j in range(task.x.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        known = pd.DataFrame(task.x, columns=columns).assign(y=task.y, n=task.n)
        asked = pd.DataFrame(task.x_new, columns=columns).assign(n=task.n_new)
        known.to_csv(f"{folder}/known.csv", index=False)
        asked.to_csv(f"{folder}/asked.csv", index=False)
        command = ["Rscript", str(SCRIPT), folder, package, task.kind, precision]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        said = pd.read_csv(f"{folder}/said.csv")
    return Counts.of(task.kind, task.n_new, said["mean"].to_numpy(), np.array(said["worth"]))
