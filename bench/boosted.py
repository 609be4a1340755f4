"""M4: boosted trees for the mean, with a precision that varies with what they predict.

The trees know nothing of how much units differ. So their link, of training rows out of fold, is a
column of a compound regression, where nothing holds it back: under a strong penalty mean and
precision depend on the link alone, under a weaker one on the other columns too.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from ldf import folds
from ldf.baselines import regression, search
from ldf.data import Data
from ldf.mappings import Linear, Weights
from ldf.preprocess import Preprocess
from ldf.spec import Spec
from ldf.table import Table, empirical_rate

BINS = 255
PARTS = 5  # of the training rows, each predicted by trees that have not seen it
SETTINGS: dict[str, Any] = {"max_iter": 200, "learning_rate": 0.05, "max_leaf_nodes": 8}


class BesideLinks(Linear):
    """A regression of count and rate by columns of which the last are links."""

    links: int = 1

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        # What links say is one row of numbers, not a matrix: no penalty holds it back.
        link, slope = np.zeros(self.links * outputs), np.zeros((inputs - self.links, outputs))
        return {"bias": np.zeros(outputs), "link": link, "slope": slope}

    def lines(self, weights: Weights, x: Any) -> Any:
        columns, links = x[: -self.links], x[-self.links :]
        said = links @ weights["link"].reshape(self.links, -1)
        return weights["bias"] + columns @ weights["slope"] + said

    def design(self, weights: Weights, x: Any) -> Any:
        return jnp.concatenate([jnp.ones(1, x.dtype), x[-self.links :], x[: -self.links]])


def in_bins(x: np.ndarray) -> np.ndarray:
    """Columns of at most as many values as scikit-learn's trees tell apart. They would cut weighted
    columns by sorting them once for each of 255 bins, ten times the trees' own time."""
    binned = x.copy()
    for own in binned.T:
        if len(np.unique(own)) > BINS:
            cuts = np.unique(np.nanquantile(own, np.linspace(0, 1, BINS + 1)[1:-1]))
            own[:] = np.where(np.isnan(own), np.nan, np.searchsorted(cuts, own))
    return binned


def link(data: Data, x: np.ndarray, learn: np.ndarray, ask: np.ndarray) -> np.ndarray:
    """What trees that learn from some rows say of others: one column, or one a class but one."""
    kind = type(data.family).__name__
    if kind in ("Binomial", "Multinomial", "NestedMultinomial"):
        counts = data.y.get("counts")
        if counts is None:
            k, n = data.y["successes"], data.y["trials"]
            counts = np.stack([n - k, k], -1)
        some = counts[learn]
        rows, label = np.nonzero(some)
        trees = HistGradientBoostingClassifier(min_samples_leaf=20, **SETTINGS).fit(
            x[learn][rows], label, sample_weight=some[rows, label] / some[some > 0].mean()
        )
        shares = np.full((ask.sum(), counts.shape[1]), 1e-6)
        shares[:, trees.classes_] = np.clip(trees.predict_proba(x[ask]), 1e-6, 1)
        return np.log(shares[:, 1:] / shares[:, :1])
    if kind == "Poisson":
        y, n = data.y["count"], data.y["exposure"]
        trees = HistGradientBoostingRegressor(loss="poisson", **SETTINGS)
        scale = y[learn].sum() / n[learn].sum()
        trees.fit(x[learn], y[learn] / n[learn] / scale, sample_weight=n[learn] * scale)
        return np.log(np.clip(trees.predict(x[ask]), 1e-6, None))[:, None]
    y, n = data.y["mean"], data.y["n"]
    trees = HistGradientBoostingRegressor(**SETTINGS)
    return trees.fit(x[learn], y[learn], sample_weight=n[learn]).predict(x[ask])[:, None]


def links(data: Data, training: np.ndarray, seed: int) -> np.ndarray:
    """Of all rows; of training rows out of fold, by whole groups where these are held out."""
    x = in_bins(data.x)
    tasks = [(training, np.ones(len(x), bool))]
    at = np.flatnonzero(training)
    for learn, hold in parts(data, training, seed):
        mask, ask = np.zeros(len(x), bool), np.zeros(len(x), bool)
        mask[at[learn]], ask[at[hold]] = True, True
        tasks.append((mask, ask))

    def by_one_thread(task: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        with threadpool_limits(1, "openmp"):
            return link(data, x, *task)

    # Two forests side by side rather than each tree by two threads, which wait for each other.
    with ThreadPoolExecutor(2) as pool:
        each = list(pool.map(by_one_thread, tasks))
    found = each[0]
    for (_, ask), own in zip(tasks[1:], each[1:], strict=True):
        found[ask] = own
    return found


def parts(data: Data, training: np.ndarray, seed: int) -> folds.Split:
    """Trees that have seen a row's neighbours would be trusted too much elsewhere."""
    rate = empirical_rate(data.family, data.y, data.seen)[training]
    if data.group is None:
        return folds.stratified(rate, PARTS, seed)
    group = data.group[training]
    return folds.grouped(group, min(PARTS, len(np.unique(group))), seed, rate=rate)


def trees(data: Data, training: np.ndarray, seed: int) -> tuple[Spec, Table]:
    """M4 of one training set, and the rows as it sees them."""
    said = links(data, training, seed)
    columns = Preprocess.learn("power", data.x[training]).apply(data.x)
    said_standard = Preprocess.learn("standard", said[training]).apply(said)
    mapping = BesideLinks(links=said.shape[1])
    spec = regression(data.family, mapping, preprocess="none", **search(len(data)))
    x = np.concatenate([columns, said_standard], 1)
    return spec, Table(x, data.y, data.seen, data.weight, data.group)
