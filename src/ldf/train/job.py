"""What is trained: one member on one training set, and which of its rows teach and which watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ldf import check
from ldf.ensemble import Member
from ldf.model import Ground, Model
from ldf.preprocess import Blocks, Preprocess, Sourced

# What is done, how many of how many. Called from the threads that do it, one at a time.
Tell = Callable[[str, int, int], None]


class Job(NamedTuple):
    """One member on one training set, before it is trained."""

    model: Model
    member: Member
    preprocess: Preprocess | Blocks | Sourced
    ground: Ground
    z: np.ndarray  # features of all rows, preprocessed on this set's training rows
    weight: np.ndarray  # of all rows; zero where they are not learned from
    part: np.ndarray
    reference: np.ndarray  # log p_0 of all rows


def roles(job: Job, p: int, parts: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """How much each row counts in learning, and in deciding when to stop, for fit number p."""
    if parts > 1:  # it has not seen part p, and watches the next
        later = job.part == (p + 1) % parts
        return np.where(later | (job.part == p), 0.0, job.weight), np.where(later, job.weight, 0.0)
    later = np.zeros(len(job.weight), bool)  # a tenth of the rows, and at least one
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(job.weight > 0))
    later[rows[: max(1, len(rows) // 10)]] = True
    return np.where(later, 0.0, job.weight), np.where(later, job.weight, 0.0)


def refuse_failed(failed: np.ndarray) -> None:
    """A fit may fail beside better ones; none of those that are used may have."""
    if failed.any():
        remedy = "lower the learning rate, or leave out the column with extreme values"
        problem = f"gave numbers that are none in {int(failed.sum())} of {failed.size} fits"
        raise check.DataError("mapping", None, None, problem, remedy)


def two_at_a_time(do: Callable[[Any], Any], names: Sequence[Any]) -> Iterator[Any]:
    """What is done by XGBoost, which has one thread; in order."""
    pool = ThreadPoolExecutor(2)
    try:
        yield from pool.map(do, names)
    finally:  # whoever is interrupted does not wait for those that have not begun
        pool.shutdown(cancel_futures=True)
