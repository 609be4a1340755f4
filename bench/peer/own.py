"""ldf itself, and the boosted trees of bench/quality.py with a fitted dispersion."""

from __future__ import annotations

from typing import Any

import numpy as np
from quality import boosted

import ldf
from ldf.baselines import regression
from ldf.learn import learn
from ldf.mappings import Linear
from ldf.spec import Spec
from ldf.table import Table

from .counts import Counts
from .task import Task


def fusion(task: Task) -> Counts:
    data = task.data
    return learned(task, ldf.Fusion(data.family, {}, [], seed=task.seed).spec(data), data.x)


def trees(task: Task) -> Counts:
    x = np.concatenate([task.data.x, boosted(task.data, task.training, task.seed)], 1)
    return learned(task, regression(task.data.family, Linear(), 1e-3, "power"), x)


def learned(task: Task, spec: Spec, x: np.ndarray) -> Counts:
    data = task.data
    table = Table(x, data.y, data.seen, data.weight, data.group)
    said = learn(spec, table, task.seed, task.training[None])[0].said(x[task.held])
    return counts(task, said.natural, said.share)


def counts(task: Task, natural: Any, share: np.ndarray) -> Counts:
    """Pseudo-observations as a mean and what it is worth."""
    if task.kind == "binomial":
        a, b = np.asarray(natural.successes), np.asarray(natural.failures)
        return Counts.of(task.kind, task.n_new, a / (a + b), a + b, share)
    a, b = np.asarray(natural.count), np.asarray(natural.exposure)
    return Counts.of(task.kind, task.n_new, a / b, a, share)
