"""A sparse Gaussian process: outputs are smooth functions of all columns together, with a prior.

Of each output, beside a linear mean,

    f(x) = a · k(x, Z) L⁻ᵀ w,    L Lᵀ = k(Z, Z),    w ~ N(0, 1)

which at the inducing points Z is the Gaussian process with kernel a² k itself, and between them
what those tell (Titsias 2009; whitened as in Murray and Adams 2010). Then the penalty |w|² is minus
twice the logarithm of the prior of f. Learning multiplies it by the member's penalty, against the
mean log-predictive of M rows: so the prior variance of f is a² / (2 · penalty · M). Which of these
suits is found by rows that fits have not seen.

Z are the centres of clusters among the rows that a fit learns from. Lengthscale and amplitude are
given, so f is linear in w, and Newton's method finds its mode.

What this is not: there is no posterior of f here, only its mode. Of how uncertain f is, the parts
and members of an ensemble tell something, by how they differ; what a row's pseudo-observations say
of θ is learned as with every mapping, from how well they predict.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ldf import check
from ldf.mappings.base import Weights
from ldf.mappings.basis import Basis
from ldf.mappings.kernels import KERNELS, kernel
from ldf.special import Array

JITTER = 1e-9  # added to k(Z, Z), so that it has a root
NOWHERE = 1e6  # where inducing points are that no row is left for: there they say nothing
GLANCE = 4000  # rows that suffice to find clusters
ROUNDS = 20


class GaussianProcess(Basis):
    """With so many inducing points, beside a linear mean.

    `lengthscale` is how far one has to go for something else to hold, in units of √columns: about
    how far apart rows are once columns are preprocessed. `amplitude` says how much the process may
    say for the same penalty as the linear mean.
    """

    inducing: int = 64
    lengthscale: float = 1.0
    amplitude: float = 2.0
    kernel: str = "matern"
    by: str = "log"

    def __check_init__(self) -> None:
        check.one_of("kernel", self.kernel, KERNELS)
        check.positive("lengthscale", self.lengthscale)
        check.positive("amplitude", self.amplitude)
        if self.inducing < 1:
            raise check.DataError("inducing", None, self.inducing, "is less than one", "give more")

    @property
    def formulation(self) -> str:
        return self.by

    def size(self, inputs: int) -> int:
        return self.inducing

    def chosen(self, rng: np.random.Generator, inputs: int) -> dict[str, Any]:
        return {
            "points": np.zeros((self.inducing, inputs)),
            "unroot": np.zeros((self.inducing, self.inducing)),
        }

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        """With points among the rows, and L⁻¹ of how near they are to each other: it hangs on no
        row, and JAX's own roots of many small matrices may stand still in the trainer's lanes."""
        points = centres(x, self.inducing, rng)
        alike = self._near(points, points[:, None]) + JITTER * np.eye(self.inducing)
        unroot = solve_triangular(np.linalg.cholesky(alike), np.eye(self.inducing), lower=True)
        return weights | {"fixed": {"points": points, "unroot": unroot}}

    def _near(self, points: Array, x: Array) -> Array:
        length = self.lengthscale * np.sqrt(max(points.shape[-1], 1))
        return kernel(self.kernel, (((x - points) / length) ** 2).sum(-1))

    def features(self, weights: Weights, x: Array) -> Array:
        fixed = weights["fixed"]
        return self.amplitude * (fixed["unroot"] @ self._near(fixed["points"], x))


def centres(x: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """So many points among the rows: the rows themselves if there are no more, else the centres of
    clusters, by Lloyd's algorithm."""
    rows = np.unique(np.asarray(x, float), axis=0)
    if len(rows) <= number:
        rest = np.full((number - len(rows), x.shape[1]), NOWHERE)
        return np.concatenate([rows, rest])
    found = rows[rng.choice(len(rows), number, replace=False)]
    rows = np.asarray(x, float)  # by how many there are of each
    rows = rows[rng.choice(len(rows), min(len(rows), GLANCE), replace=False)]
    for _ in range(ROUNDS):
        away = (found**2).sum(1) - 2 * rows @ found.T
        own = away.argmin(1)
        counts = np.bincount(own, minlength=number)
        sums = np.zeros_like(found)
        np.add.at(sums, own, rows)
        some = counts > 0  # one that is nobody's stays where it is
        found[some] = sums[some] / counts[some, None]
    return found
