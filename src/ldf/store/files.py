"""The two files of a model, in a zip or a folder: written all or not at all, read with suspicion.

Sizes are bounded before anything is read, names are fixed, the zip does not compress (so that
nothing in it is larger than it is), and a checksum ties the arrays to the specs.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors import numpy as safetensors

from ldf.checkpoint import FileError, replacing, version
from ldf.store.values import DTYPES

FORMAT = 3  # raise it with every change that older ones could not read
FIELDS = "70d6c1f7c124759f"  # a digest of those of all classes in a file: a test knows it
SPECS, NUMBERS = "model.json", "weights.safetensors"
MOST = {SPECS: 2**26, NUMBERS: 2**32}  # bytes


def write(path: Any, specs: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """One zip; or a folder, if the path is that of one or ends with a slash. What was there before
    stays until all is written. (In a folder two files are replaced, one after the other: should the
    machine stop between the two, their checksum tells.)"""
    numbers = safetensors.save(arrays)
    head = {"format": FORMAT, "ldf": version(), "sha256": sha256(numbers).hexdigest()}
    written = json.dumps(head | specs, indent=1, ensure_ascii=False, allow_nan=False)
    text = written.encode(errors="surrogatepass")
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileError(path, "would be in a folder that is not there", "make the folder first")
    for name, content in ((SPECS, text), (NUMBERS, numbers)):
        if len(content) > MOST[name]:
            problem = f"would hold {len(content):,} bytes in {name}"
            raise FileError(path, problem, f"at most {MOST[name]:,} can be saved")
    if target.is_dir() or os.fspath(path).endswith(("/", os.sep)):
        if target.is_file():
            raise FileError(path, "is a file, not a folder", "leave out the slash")
        target.mkdir(exist_ok=True)
        with _new(target / SPECS) as one, _new(target / NUMBERS) as other:
            one.write(text)
            other.write(numbers)
    else:
        with _new(target) as file, zipfile.ZipFile(file, "w") as archive:
            for name, content in ((SPECS, text), (NUMBERS, numbers)):
                archive.writestr(zipfile.ZipInfo(name), content)  # stored, with a fixed date


def _new(path: Path) -> Any:
    return replacing(path, path.with_name(f".{path.name}.{secrets.token_hex(4)}.part"))


def read(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The specs and the arrays, both sound by themselves."""
    place = Path(path)
    if not place.exists():
        raise FileError(path, "is not there", "check the path")
    if place.is_dir():
        return _checked(path, [p.name for p in place.iterdir()], lambda n: _from_folder(place / n))
    if not place.is_file():
        raise _no_model(path)
    if not zipfile.is_zipfile(place):
        with open(place, "rb") as file:
            zipped = file.read(4) == b"PK\x03\x04"
        raise damaged(path, "its end is missing") if zipped else _no_model(path)
    try:
        with zipfile.ZipFile(place) as archive:
            size = place.stat().st_size
            names = archive.namelist()
            return _checked(path, names, lambda name: _from_zip(archive, name, size))
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, UnicodeDecodeError) as error:
        raise damaged(path, "it is no whole zip") from error


def _from_folder(place: Path) -> bytes:
    if not place.is_file():
        raise FileError(place, "is not a file", "save the model again")
    _refuse_size(place, place.name, place.stat().st_size)
    return place.read_bytes()


def _from_zip(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """What is stored as it is cannot be larger than the file it is in."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED:
        remedy = "unpack it into a folder and load that"
        raise FileError(archive.filename, "was packed by another program", remedy)
    if entry.file_size != entry.compress_size or entry.file_size > size:
        raise damaged(archive.filename, f"{name} is larger than the file")
    _refuse_size(archive.filename, name, entry.file_size)
    return archive.read(entry)


def _refuse_size(path: Any, name: str, size: int) -> None:
    if size > MOST[name]:
        problem = f"says that {name} holds {size:,} bytes"
        raise FileError(path, problem, f"a model has at most {MOST[name]:,}: save it again")


def _checked(
    path: Any, names: list[str], get: Callable[[str], bytes]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if SPECS not in names:
        raise _no_model(path)
    text = get(SPECS)
    try:
        specs = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"{SPECS} is not the JSON that ldf writes") from error
    if not isinstance(specs, dict) or "format" not in specs:
        raise _no_model(path)
    number = specs["format"]
    if type(number) is int and number > FORMAT:
        by = f"a newer ldf (format {number}, this one reads {FORMAT})"
        raise FileError(path, f"was written by {by}", "update ldf")
    if type(number) is int and 0 < number < FORMAT:
        by = f"an older ldf (format {number}, this one reads {FORMAT})"
        raise FileError(path, f"was written by {by}", "fit the model again")
    if number != FORMAT or specs.keys() != {"format", "ldf", "kind", "sha256", "model"}:
        raise damaged(path, f"{SPECS} lacks what every model has")
    if names.count(SPECS) != 1 or names.count(NUMBERS) != 1:
        raise damaged(path, f"it needs one {SPECS} and one {NUMBERS}")
    if not Path(path).is_dir() and len(names) > 2:
        raise damaged(path, "it holds other files too")
    numbers = get(NUMBERS)
    if sha256(numbers).hexdigest() != specs["sha256"]:
        raise damaged(path, f"{NUMBERS} is not the one that {SPECS} was written with")
    try:
        arrays = safetensors.load(numbers)
    except (SafetensorError, LookupError, TypeError, ValueError) as error:
        raise damaged(path, f"{NUMBERS} holds no arrays") from error
    if any(array.dtype.name not in DTYPES for array in arrays.values()):
        raise damaged(path, f"{NUMBERS} holds arrays of another kind")
    return specs, arrays


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def damaged(path: Any, how: str) -> FileError:
    return FileError(path, f"is damaged: {how}", "save the model again, or take another copy")


def _no_model(path: Any) -> FileError:
    return FileError(path, "is not a model", "give the file that .save(path) wrote")
