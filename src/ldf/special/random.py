"""Draws from the few distributions all others are made of, by NumPy or by JAX.

A sampler is written once, against `Draws`; a seed makes it NumPy's generator for NumPy arrays and a
JAX key for JAX arrays, so that the same code runs under `jit`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ldf.special.arrays import Array, namespace


def check_draws(draws: Any, seed: Any) -> None:
    """So many draws, from a seed that is said."""
    if not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"{draws!r} draws cannot be made: give a whole number from 1 on")
    whole = isinstance(seed, int | np.integer) and seed >= 0
    if not whole and not isinstance(seed, jax.Array | np.random.SeedSequence):
        raise TypeError(f"{seed!r} is not a seed: give a whole number, zero or more")


class Draws:
    """A source of `draws` independent draws for arrays of parameters, in front of their axes."""

    def __init__(self, draws: int, seed: Any, *like: Array) -> None:
        self.draws = draws
        self.xp = namespace(*like)
        check_draws(draws, seed)
        if self.xp is np:
            if isinstance(seed, jax.Array):
                raise TypeError("a JAX key draws from JAX arrays: give a whole number as seed")
            self._generator = np.random.default_rng(seed)
        else:
            self._key = seed if isinstance(seed, jax.Array) else jax.random.key(seed)

    def _next(self) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        return key

    def _shape(self, *parameters: Array) -> tuple[int, ...]:
        return (self.draws, *np.broadcast_shapes(*(np.shape(p) for p in parameters)))

    def normal(self, like: Array) -> Array:
        """Standard normal, one for each element of `like` and draw."""
        if self.xp is np:
            return self._generator.standard_normal(self._shape(like))
        return jax.random.normal(self._next(), self._shape(like), jnp.asarray(like).dtype)

    def log_gamma(self, shape: Array) -> Array:
        """The logarithm of a Gamma(shape, 1) draw: a tiny shape would underflow without it."""
        shape = self.xp.asarray(shape)
        if self.xp is np:
            size = self._shape(shape)
            small = shape < 1
            base = np.log(self._generator.standard_gamma(shape + small, size))
            uniform = np.log1p(-self._generator.random(size))
            with np.errstate(divide="ignore"):  # shape 0 is a point mass at 0
                return base + np.where(small, uniform / np.where(small, shape, 1), 0)
        return jax.random.loggamma(self._next(), shape, self._shape(shape))

    def poisson(self, rate: Array) -> Array:
        """One Poisson count for each rate; the rates are draws already."""
        if self.xp is np:
            # Beyond 1e15 a Poisson count is its rate to the last digit that a float has of it.
            huge = rate > 1e15
            counts = self._generator.poisson(np.where(huge, 0.0, rate)).astype(float)
            return np.where(huge, np.round(rate), counts)
        return jax.random.poisson(self._next(), rate).astype(rate.dtype)

    def binomial(self, trials: Array, rate: Array) -> Array:
        """One binomial count for each rate; the rates are draws already."""
        if self.xp is np:
            return self._generator.binomial(np.asarray(trials, dtype=np.int64), rate).astype(float)
        return jax.random.binomial(self._next(), trials, rate).astype(rate.dtype)
