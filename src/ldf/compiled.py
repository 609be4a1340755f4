"""Keep compiled programs between runs: for commands, which start anew each time.

A library leaves JAX's configuration alone, so nothing here happens on import; the commands call it.
"""

from __future__ import annotations

import os
from pathlib import Path

import jax


def keep_compiled(folder: Path | None = None) -> None:
    """From now on, programs compiled on this machine are found again by later runs."""
    if folder is None:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) / "ldf" / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to only means compiling again
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
