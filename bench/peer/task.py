"""What a peer is given: training rows, and the rows it is asked about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldf.data import Data
from ldf.preprocess import Preprocess


class Task(NamedTuple):
    """One fold. Columns are preprocessed alike for all; missing cells are filled."""

    kind: str  # "binomial" or "poisson"
    x: np.ndarray
    y: np.ndarray
    n: np.ndarray  # trials or exposure
    x_new: np.ndarray
    n_new: np.ndarray
    seed: int
    data: Data | None = None  # all rows as they came, for ldf, which preprocesses for itself
    training: np.ndarray | None = None
    held: np.ndarray | None = None

    @classmethod
    def of(cls, data: Data, training: np.ndarray, held: np.ndarray, seed: int) -> Task:
        kind = type(data.family).__name__.lower()
        names = {"binomial": ("successes", "trials"), "poisson": ("count", "exposure")}[kind]
        y, n = (np.asarray(data.y[name], float) for name in names)
        learned = Preprocess.learn("power", data.x[training])
        x = learned.apply(data.x)
        # A column that is constant in the training rows says nothing, and breaks regressions.
        x = x[:, x[training].std(0) > 0]
        return cls(
            kind, x[training], y[training], n[training], x[held], n[held], seed,
            data, training, held,
        )  # fmt: skip

    def inner(self, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
        """Training rows to learn from and to stop by: positions."""
        order = np.random.default_rng(self.seed).permutation(len(self.y))
        cut = round(share * len(order))
        return np.sort(order[cut:]), np.sort(order[:cut])
