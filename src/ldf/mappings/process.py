"""A sparse Gaussian process: outputs are smooth functions of all columns together, with a prior.

Of each output, beside a linear mean,

    f(x) = a · k(x, Z) L⁻ᵀ w,    L Lᵀ = k(Z, Z),    w ~ N(0, 1)

which at the inducing points Z is the Gaussian process with kernel a² k itself, and between them
what those tell (Titsias 2009; whitened as in Murray and Adams 2010). Then the penalty |w|² is minus
twice the logarithm of the prior of f. Learning multiplies it by the member's penalty, against the
mean log-predictive of M rows: so the prior variance of f is a² / (2 · penalty · M).

Z are the centres of clusters among the rows that a fit learns from. Lengthscales, one a column, and
amplitudes, one an output, are learned with w, under log-normal priors about where they begin: all
is the mode of one posterior (MAP). With `learned=False` they stay, f is linear in w, and Newton's
method finds the mode.

What this is not: there is no posterior of f here, only its mode. Of how uncertain f is, the parts
and members of an ensemble tell something, by how they differ; what a row's pseudo-observations say
of θ is learned as with every mapping, from how well they predict.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Weights
from ldf.mappings.basis import Basis
from ldf.mappings.kernels import KERNELS, kernel
from ldf.mappings.roots import root_of, solved, solved_across
from ldf.special import Array

# Added to k(Z, Z), so that it has a root: in single precision, which gradients are taken in (and
# then wherever it is asked), and in double.
JITTER, LITTLE = 1e-4, 1e-9
NOWHERE = 1e6  # where inducing points are that no row is left for: there they say nothing
GLANCE = 4000  # rows that suffice to find clusters
ROUNDS = 20


class GaussianProcess(Basis):
    """With so many inducing points, beside a linear mean.

    `lengthscale` is where lengthscales begin, in units of √columns: about how far apart rows are
    once columns are preprocessed; `amplitude` is where amplitudes do.
    """

    inducing: int = 64
    lengthscale: float = 1.0
    amplitude: float = 2.0
    kernel: str = "matern"
    learned: bool = True
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

    @property
    def way(self) -> str:
        return "gradients" if self.learned else "newton"

    def size(self, inputs: int) -> int:
        return self.inducing

    def chosen(self, rng: np.random.Generator, inputs: int) -> dict[str, Any]:
        return {"points": np.zeros((self.inducing, inputs))}

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        weights = super().init(rng, inputs, outputs, width)
        if self.learned:  # logarithms, from where they begin; as matrices, which are penalised
            weights |= {"lengths": np.zeros((1, inputs)), "loudness": np.zeros((1, outputs))}
        return weights

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        return weights | {"fixed": {"points": centres(x, self.inducing, rng)}}

    def _near(self, weights: Weights, x: Array) -> tuple[Array, Array]:
        """How near a row is to the inducing points, and the root of how near they are to each
        other, which hangs on no row: one serves all."""
        length = self.lengthscale * np.sqrt(max(x.shape[-1], 1))
        if self.learned:
            length = length * jnp.exp(weights["lengths"][0])
        points = jax.lax.stop_gradient(weights["fixed"]["points"]) / length
        alike = kernel(self.kernel, _squares(points[:, None] - points))
        single = self.learned or alike.dtype == jnp.float32
        jitter = (JITTER if single else LITTLE) * jnp.eye(len(points), dtype=alike.dtype)
        root = root_of(alike + jitter)
        return self.amplitude * kernel(self.kernel, _squares(x / length - points)), root

    def features(self, weights: Weights, x: Array) -> Array:
        near, root = self._near(weights, x)
        return solved(root, near)

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        near, root = self._near(weights, x)
        told = near @ solved_across(root, weights["matrix"])
        if self.learned:
            told = told * jnp.exp(weights["loudness"][0])
        return told + x @ weights["slope"] + weights["bias"]


def _squares(away: Array) -> Array:
    return (away**2).sum(-1)


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
