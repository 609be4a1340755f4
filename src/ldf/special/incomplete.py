"""Distribution functions and their inverses: SciPy's, on NumPy arrays and inside `jit`.

SciPy's ufuncs are Boost's and Cephes' and better than what would be written here. Under JAX they
are called back on the host; no derivative is defined for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ldf.special.arrays import Array, floats


def on_host(function: Callable[..., Any]) -> Callable[..., Array]:
    """An elementwise float64 function of NumPy arrays, made to take JAX arrays too."""

    def call(*values: Any) -> Array:
        xp, arrays = floats(*values)
        if xp is np:
            with np.errstate(all="ignore"):
                return function(*arrays)
        arrays = jnp.broadcast_arrays(*arrays)
        result = jax.ShapeDtypeStruct(arrays[0].shape, arrays[0].dtype)

        def host(*a: Any) -> np.ndarray:
            with np.errstate(all="ignore"):
                return np.asarray(function(*(np.asarray(v, np.float64) for v in a)), result.dtype)

        return jax.pure_callback(host, result, *arrays, vmap_method="broadcast_all")

    call.__doc__ = function.__doc__
    return call


beta_cdf = on_host(scipy.special.betainc)  # (a, b, x)
beta_sf = on_host(scipy.special.betaincc)
beta_quantile = on_host(scipy.special.betaincinv)  # (a, b, q)
upper_beta_quantile = on_host(scipy.special.betainccinv)
gamma_cdf = on_host(scipy.special.gammainc)  # (shape, x·rate)
gamma_sf = on_host(scipy.special.gammaincc)
gamma_quantile = on_host(scipy.special.gammaincinv)
upper_gamma_quantile = on_host(scipy.special.gammainccinv)
normal_cdf = on_host(scipy.special.ndtr)
normal_quantile = on_host(scipy.special.ndtri)
student_cdf = on_host(scipy.special.stdtr)  # (degrees of freedom, x)
student_quantile = on_host(scipy.special.stdtrit)
