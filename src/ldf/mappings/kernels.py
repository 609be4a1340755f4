"""Kernels of a Gaussian process: how alike what is said of two rows is, by how far apart they are.

Distances are in lengthscales. "gaussian" is exp(−r²/2), endlessly smooth; "matern" (ν = 5/2) bends
twice, as things measured mostly do. By Bochner's theorem a kernel is the mean of cos(ω · (x − x'))
over random frequencies ω: normal ones of the Gaussian kernel, Student's t with 2ν degrees of
freedom of the Matérn.
"""

from __future__ import annotations

import numpy as np

from ldf.special import Array, namespace

KERNELS = ("matern", "gaussian")
DEGREES = 5  # 2ν


def kernel(name: str, square: Array) -> Array:
    """Of squared distances."""
    xp = namespace(square)
    if name == "gaussian":
        return xp.exp(-square / 2)
    r = xp.sqrt(DEGREES * xp.maximum(square, 1e-12))  # whose slope at zero is a number
    return (1 + r + r**2 / 3) * xp.exp(-r)


def frequencies(name: str, rng: np.random.Generator, number: int, inputs: int) -> np.ndarray:
    """Drawn at random: inputs × number, of a lengthscale of one."""
    drawn = rng.standard_normal((inputs, number))
    if name == "gaussian":
        return drawn
    return drawn / np.sqrt(rng.chisquare(DEGREES, number) / DEGREES)
