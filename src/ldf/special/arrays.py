"""Which array library, and in which precision.

The same formulas run on NumPy arrays (at once, nothing to compile, float64 unless every array
given is float32) and on JAX arrays (traced, compiled, differentiated, in the precision of the
arrays). Nothing here touches JAX's configuration.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # a NumPy or JAX array of floats


def namespace(*values: Any) -> Any:
    """`jax.numpy` if any of the values is a JAX array, else `numpy`."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def is_single(dtype: Any) -> bool:
    """Whether the dtype has float32's 24 bits (or fewer) rather than float64's 53."""
    return np.finfo(dtype).nmant <= 23


def floats(*values: Any) -> tuple[Any, list[Array]]:
    """The namespace and the values as arrays of one floating dtype, not yet broadcast.

    Python numbers and integer arrays are weak: they take the precision of the floating arrays
    beside them. In JAX a NumPy array is weak too, or it would widen a float32 program.

    >>> xp, (a, b) = floats([1, 2], 0.5)
    >>> a.dtype, b.dtype
    (dtype('float64'), dtype('float64'))
    """
    xp = namespace(*values)
    dtypes = (_dtype(value) for value in values if xp is np or isinstance(value, jax.Array))
    strong = [dtype for dtype in dtypes if np.issubdtype(dtype, np.floating)]
    if xp is np:
        dtype = np.result_type(np.float32, *strong) if strong else np.dtype(np.float64)
    else:
        dtype = jnp.result_type(*strong) if strong else jnp.zeros(()).dtype
    return xp, [xp.asarray(value, dtype=dtype) for value in values]


def _dtype(value: Any) -> Any:
    """Of an array or a sequence; a Python number has none worth keeping."""
    if isinstance(value, bool | int | float):
        return np.dtype(bool)
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
