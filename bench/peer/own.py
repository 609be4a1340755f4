"""ldf itself, and the boosted trees of bench/boosted.py with a fitted dispersion."""

from __future__ import annotations

from typing import Any

import numpy as np
from boosted import trees as with_trees

import ldf
from ldf.learn import learn
from ldf.spec import Spec
from ldf.table import Table

from .counts import Counts
from .task import Task


def fusion(task: Task) -> Counts:
    data = task.data
    table = Table(data.x, data.y, data.seen, data.weight, data.group)
    return learned(task, ldf.Fusion(data.family, {}, [], seed=task.seed).spec(data), table)


def trees(task: Task) -> Counts:
    return learned(task, *with_trees(task.data, task.training, task.seed))


def learned(task: Task, spec: Spec, table: Table) -> Counts:
    said = learn(spec, table, task.seed, task.training[None])[0].said(table.x[task.held])
    return counts(task, said.natural, said.share)


def counts(task: Task, natural: Any, share: np.ndarray) -> Counts:
    """Pseudo-observations as a mean and what it is worth."""
    if task.kind == "binomial":
        a, b = np.asarray(natural.successes), np.asarray(natural.failures)
        return Counts.of(task.kind, task.n_new, a / (a + b), a + b, share)
    a, b = np.asarray(natural.count), np.asarray(natural.exposure)
    return Counts.of(task.kind, task.n_new, a / b, a, share)
