"""Compiled programs: keep them between runs, and drop them before there are too many.

A library leaves JAX's configuration alone, so nothing here happens on import; the commands keep
programs, since they start anew each time.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import jax

MAPS = Path("/proc/self/maps")  # a line for each piece of memory that this process has
MOST_MAPS = Path("/proc/sys/vm/max_map_count")


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


def drop_if_too_many(share: float = 0.5) -> bool:
    """Forget the programs of this process if its pieces of memory are more than this share of what
    the system allows. Each program takes some, each number of rows wants programs of its own, and
    where there is no place for one more, the process ends without a word of Python's."""
    try:
        have, most = len(MAPS.read_bytes().splitlines()), int(MOST_MAPS.read_text())
    except (OSError, ValueError):  # not on Linux
        return False
    if have <= share * most:
        return False
    jax.clear_caches()
    gc.collect()
    return True
