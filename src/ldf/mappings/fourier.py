"""Random Fourier features: a kernel machine at the price of a regression (Rahimi and Recht 2007).

    features(x) = amplitude · [cos(x · ω_1), sin(x · ω_1), …] / √waves

With frequencies ω drawn at random, once, the product of two rows' features is their kernel, up to
an error that falls as 1/√waves. So a ridge regression on them is one with that kernel: it finds
smooth functions of all columns together, interactions among them.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings.base import Weights
from ldf.mappings.basis import Basis
from ldf.mappings.kernels import KERNELS, frequencies
from ldf.special import Array


class Fourier(Basis):
    """So many waves in random directions, beside a linear path.

    `lengthscale` is how far one has to go for something else to hold, in units of √columns: about
    how far apart rows are once columns are preprocessed. `amplitude` says how much the waves may
    say for the same penalty as the linear path.
    """

    waves: int = 100
    lengthscale: float = 1.0
    amplitude: float = 2.0
    kernel: str = "matern"
    by: str = "log"

    def __check_init__(self) -> None:
        check.one_of("kernel", self.kernel, KERNELS)
        check.positive("lengthscale", self.lengthscale)
        check.positive("amplitude", self.amplitude)
        if self.waves < 1:
            raise check.DataError("waves", None, self.waves, "is less than one", "give more")

    @property
    def formulation(self) -> str:
        return self.by

    def size(self, inputs: int) -> int:
        return 2 * self.waves

    def chosen(self, rng: np.random.Generator, inputs: int) -> dict[str, Any]:
        drawn = frequencies(self.kernel, rng, self.waves, inputs)
        return {"frequency": drawn / (self.lengthscale * np.sqrt(max(inputs, 1)))}

    def features(self, weights: Weights, x: Array) -> Array:
        at = x @ weights["fixed"]["frequency"]
        waves = jnp.concatenate([jnp.cos(at), jnp.sin(at)])
        return waves * (self.amplitude / np.sqrt(self.waves))
