"""Which units are far from what the model has learned from.

A unit's distance is to the nearest training row, in auxiliary columns that are preprocessed as the
model's are (each bent towards a bell shape, with standard deviation one among training rows), as a
root mean square over columns. A training row's distance is to the nearest *other* one. A unit is
far if its distance is larger than that of 99 % of the training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldf.preprocess import Preprocess

SHARE = 0.99
FEWEST = 20  # training rows from which on a share of 99 % can be told


class Distance(NamedTuple):
    each: np.ndarray  # NaN if it cannot be told
    limit: float  # beyond it a unit is far
    training: int  # rows there were to compare with

    @property
    def far(self) -> np.ndarray:
        return self.each > self.limit

    @property
    def in_words(self) -> str:
        if np.isnan(self.limit):
            return (
                f"The frame holds {self.training} of the rows that the model has learned from, too "
                "few to tell which units are far from them: write the report of a frame that holds "
                "them."
            )
        return (
            "A unit's distance is to the nearest of the "
            f"{self.training:,} training rows in this report, in auxiliary columns that are bent "
            "towards a bell shape and have standard deviation one, as a root mean square over "
            "columns. A training row's is to the nearest other one. "
            f"A unit is far if its distance is above {self.limit:.3g}, that of {SHARE:.0%} of the "
            "training rows: what the model says there rests on its shape more than on data."
        )


def distances(x: np.ndarray, training: np.ndarray) -> Distance:
    """Of each row, M × P, NaN where a cell is missing; `training` says which were learned from."""
    from sklearn.neighbors import NearestNeighbors

    number = int(training.sum())
    if number < FEWEST:
        return Distance(np.full(len(x), np.nan), np.nan, number)
    z = Preprocess.learn("power", x[training]).apply(x)
    near = NearestNeighbors(n_neighbors=2).fit(z[training])
    each = np.empty(len(x))
    each[training] = near.kneighbors(z[training])[0][:, 1]  # the first is the row itself
    if not training.all():
        each[~training] = near.kneighbors(z[~training], n_neighbors=1)[0][:, 0]
    each /= np.sqrt(max(x.shape[1], 1))
    return Distance(each, float(np.quantile(each[training], SHARE)), number)
