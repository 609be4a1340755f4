"""Where training is, on disk: so that a run that was killed goes on to the same end, bit for bit.

The file holds the trainer's state and a fingerprint of what is being learned: data, settings, seed,
versions. A file with another fingerprint is refused and left alone. It is written beside its place
and moved there, so that it is never half a file, and removed when the run is over.

    ldf.Fusion(…).fit(villages, checkpoint="villages.checkpoint")
"""

from __future__ import annotations

import functools
import importlib.metadata
import math
import os
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ldf.check import DataError
from ldf.fit import State, start
from ldf.spec import Spec
from ldf.table import Table

SECONDS = 2.0  # between writes, at least
SHARE = 0.1  # of the time that writing may take


class FileError(DataError):
    """A file that cannot be used, in one sentence."""

    def __init__(self, path: Any, problem: str, remedy: str) -> None:
        super().__init__("file", None, str(path), problem, remedy)
        self.args = (f"file '{path}' {problem}; {remedy}.",)


@dataclass
class Checkpoint:
    """One file of one run."""

    path: Path
    mark: str  # of what is being learned
    like: Callable[[int], State]  # the shapes of its state, for so many fits
    due: float = -math.inf  # when it is to be written next

    @classmethod
    def open(cls, path: Any, spec: Spec, table: Table, seed: int) -> Checkpoint:
        path = Path(path)
        if path.is_dir():
            raise FileError(path, "is a folder", "name a file in it for the checkpoint")
        if not path.parent.is_dir():
            raise FileError(path, "would be in a folder that is not there", "make the folder first")
        versions = (version(), jax.__version__)
        mark = fingerprint(versions, spec, table, seed)
        return cls(path, mark, functools.partial(_shapes, spec, table.x.shape[1]))

    def state(self) -> State | None:
        """Where the run was, if there was one and it was this one."""
        if not self.path.exists():
            return None
        try:
            arrays = load(self.path.read_bytes())
            mark, whole = (bytes(arrays.pop(name)).decode() for name in ("mark", "sum"))
        except (SafetensorError, LookupError, TypeError, ValueError) as error:
            raise self._damaged() from error
        if whole != fingerprint(arrays):
            raise self._damaged()
        if mark != self.mark:
            problem = "is the checkpoint of another run: of other data, settings, seed or versions"
            raise FileError(self.path, problem, "name another file, or go on as that run began")
        leaves = [arrays[str(i)] for i in range(len(arrays))]
        like = self.like(len(leaves[0]))
        found, wanted = (
            [(a.shape, a.dtype) for a in tree] for tree in (leaves, jax.tree.leaves(like))
        )
        if found != wanted:
            raise self._damaged()
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def _damaged(self) -> FileError:
        remedy = "name another file, or remove this one to begin again"
        return FileError(self.path, "is no checkpoint, or a damaged one", remedy)

    def write(self, state: State) -> None:
        """At most every few seconds."""
        began = time.monotonic()
        if began < self.due:
            return
        arrays = {str(i): plain(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        marks = {"mark": self.mark, "sum": fingerprint(arrays)}
        arrays |= {name: np.frombuffer(mark.encode(), np.uint8) for name, mark in marks.items()}
        with replacing(self.path, self._beside) as file:
            file.write(save(arrays))
        now = time.monotonic()
        self.due = now + max(SECONDS, (now - began) / SHARE)

    def remove(self) -> None:
        """The run is over."""
        for path in (self.path, self._beside):  # a run that was killed may have left half a file
            path.unlink(missing_ok=True)

    @property
    def _beside(self) -> Path:
        return self.path.with_name(self.path.name + ".part")


def _shapes(spec: Spec, inputs: int, fits: int) -> State:
    # Only networks are checkpointed.
    member = next(m for m in spec.ensemble.members if spec.model(m).way == "gradients")
    inputs *= len(spec.kinds(member))
    return start(spec.model(member), 0, inputs, np.zeros(fits, np.float32))


# --- files --------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path, beside: Path) -> Iterator[BinaryIO]:
    """A file to write into, `beside`, that takes the place of `path` once all of it is on disk. If
    that fails, `path` stays as it was and nothing lies beside it."""
    if path.exists() and not path.is_file():  # a device would be replaced by a file
        raise FileError(path, "is no file that could be replaced", "name another one")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def plain(values: Any) -> np.ndarray:
    """An array as safetensors wants it: it writes the memory as it lies, whatever the order."""
    array = np.asarray(values, order="C")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def version() -> str:
    try:
        return importlib.metadata.version("ldf")
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        return "unknown"


# --- fingerprints -------------------------------------------------------------------------------


def fingerprint(*values: Any) -> str:
    """Of what values hold: the same in every process, wherever they lie in memory."""
    digest = sha256()
    _feed(digest.update, values, ())
    return digest.hexdigest()


def _feed(add: Callable[[bytes], None], value: Any, inside: tuple[int, ...]) -> None:
    if id(value) in inside:  # a function that names itself
        return add(b"itself")
    if isinstance(value, np.generic | np.ndarray | jax.Array):
        array = plain(value)
        if array.dtype.hasobject:
            parts: list[Any] = [array.shape, array.ravel().tolist()]
        else:
            parts = []
            add(f"{array.dtype.str}{array.shape}".encode())
            add(array.tobytes())
    elif isinstance(value, bool | int | float | complex | str | bytes | None):
        parts = []
        text = repr(value).encode(errors="surrogatepass")
        add(f"{type(value).__name__} {len(text)} ".encode())
        add(text)
    else:
        kind = type(value)
        name = getattr(value, "__qualname__", "")
        add(f"{kind.__module__}.{kind.__qualname__} {name}".encode())
        parts = _parts(value)
    add(f"[{len(parts)}]".encode())
    for part in parts:
        _feed(add, part, (*inside, id(value)))


def _parts(value: Any) -> list[Any]:
    """All that makes a value what it is, in an order of its own."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, dict):
        return [item for key in sorted(value, key=repr) for item in (key, value[key])]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if hasattr(value, "__wrapped__"):  # by jax.jit
        return [value.__wrapped__]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if isinstance(value, types.CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return []
    return [getattr(value, "__dict__", {})]
