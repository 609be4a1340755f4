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
import scipy  # special is loaded when it is asked for

from ldf.special.arrays import Array, floats


def from_scipy(name: str) -> Callable[..., Any]:
    """A function of scipy.special, which is loaded when it is first called."""
    return lambda *arrays: getattr(scipy.special, name)(*arrays)


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

    return call


beta_cdf = on_host(from_scipy("betainc"))  # (a, b, x)
beta_sf = on_host(from_scipy("betaincc"))
beta_quantile = on_host(from_scipy("betaincinv"))  # (a, b, q)
upper_beta_quantile = on_host(from_scipy("betainccinv"))
gamma_cdf = on_host(from_scipy("gammainc"))  # (shape, x·rate)
gamma_sf = on_host(from_scipy("gammaincc"))
gamma_quantile = on_host(from_scipy("gammaincinv"))
upper_gamma_quantile = on_host(from_scipy("gammainccinv"))
normal_cdf = on_host(from_scipy("ndtr"))
normal_quantile = on_host(from_scipy("ndtri"))
student_cdf = on_host(from_scipy("stdtr"))  # (degrees of freedom, x)
student_quantile = on_host(from_scipy("stdtrit"))
