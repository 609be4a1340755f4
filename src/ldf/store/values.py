"""Values as JSON and back: what a class declares is what is written, and all that is read.

    {"is": "Gaussian", "variance": 8.5}                            ldf.Gaussian(variance=8.5)
    {"is": "Trials", "successes": {"array": "prior.successes"}, …}  an array, by its name

A class is found by name in a fixed table of those that may be in a file, and each of its fields has
to be of the type that it declares.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import fields
from itertools import chain
from typing import Any, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np

from ldf import families, mappings, statistic
from ldf.beside import Block, Images, Items, Series
from ldf.checkpoint import plain
from ldf.ensemble import Ensemble, Member
from ldf.families.base import Family
from ldf.fit import Schedule
from ldf.learned import Correction, Learned, Trained
from ldf.mappings import Mapping, Own
from ldf.mappings.reader import Reader
from ldf.mixed import Component, MixedModel, Mixture
from ldf.model import Ground, Model
from ldf.preprocess import KINDS, Blocks, Preprocess, Shaped, Sourced
from ldf.schema import Auxiliary, Schema
from ldf.statistic import Statistic
from ldf.statistic.counts import FORMULATIONS
from ldf.summed import READERS, Source, SummedModel

DTYPES = ("bool", "uint8", "int32", "int64", "float32", "float64")


def _classes(module: Any, base: type) -> list[type]:
    named = [getattr(module, name) for name in module.__all__]
    return [c for c in named if isinstance(c, type) and issubclass(c, base) and c is not base]


BASES: tuple[type, ...] = (Family, Mapping, Statistic)
KINDS_OF = dict(zip(BASES, map(_classes, (families, mappings, statistic), BASES), strict=True))
KINDS_OF[Mapping].remove(Own)  # is named by a number: what it is made of is no file's
PARTS = (
    *(Auxiliary, Block, Blocks, Component, Correction, Ensemble, Ground, Images, Items, Learned),
    *(Member, MixedModel, Mixture, Model),
    *(Preprocess, Schedule, Schema, Series, Shaped, Source, Sourced, SummedModel),
    Trained,
)
KNOWN: dict[str, Any] = {c.__name__: c for c in (*PARTS, *chain(*KINDS_OF.values()))}
CHOICES: dict[Any, tuple[str, tuple[str, ...]]] = {
    Auxiliary: ("kind", ("number", "category", "constant")),
    Block: ("kind", tuple(READERS)),
    Preprocess: ("kind", KINDS),
    # What reads images and series says it by its head.
    **{own: ("by", FORMULATIONS) for own in KINDS_OF[Mapping] if not issubclass(own, Reader)},
}


class Misfit(Exception):
    """Something that is not what it should be: where, and what it is instead."""

    def __init__(self, at: str, what: str = "", remedy: str = "") -> None:
        super().__init__(at)
        self.at, self.what, self.remedy = at, what, remedy


# Arrays by what they hold: where first, and the array. And the user's own mappings, numbered.
Found = dict[Any, tuple[Any, Any]]


def pack(value: Any, at: str, found: Found) -> Any:
    """A value as JSON. Arrays in it are put among those found, and only named; so are mappings of
    the user's own."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.bool | np.integer):
        return value.item()
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, float | np.floating | np.ndarray | jax.Array):
        array = plain(value)
        if array.dtype.name not in DTYPES:
            raise Misfit(at, f", an array of {array.dtype.name}")
        key = (array.dtype.name, array.shape, array.tobytes())
        return {"array": found.setdefault(key, (at, array))[0]}
    kind = type(value)
    if KNOWN.get(kind.__name__) is kind:
        named = {n: pack(getattr(value, n), f"{at}.{n}", found) for n in fields_of(kind)}
        return {"is": kind.__name__} | named
    if isinstance(value, list | tuple):
        return [pack(part, f"{at}.{i}", found) for i, part in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {str(n): pack(part, f"{at}.{n}", found) for n, part in value.items()}
    if isinstance(value, Mapping):
        own = [(name, m) for name, m in found.values() if isinstance(name, int)]
        number = next((name for name, mapping in own if mapping == value), len(own))
        found["mapping", number] = number, value
        return {"own mapping": number, "by": value.formulation}
    remedy = ""
    for base, classes in KINDS_OF.items():
        if isinstance(value, base):
            remedy = f"only ldf's own can be saved: {', '.join(c.__name__ for c in classes)}"
    raise Misfit(at, f", a {kind.__name__}" + (" of your own" if remedy else ""), remedy)


Take = Callable[[Any], Any]  # an array by its name, or a mapping of the user's by its number
PLAIN = {bool: (bool,), int: (int,), float: (int, float), str: (str,), type(None): (type(None),)}


def unpack(saved: Any, hint: Any, at: str, take: Take) -> Any:
    """What JSON says, if it is of the type that is hinted: a class, a generic, or one hint for each
    of the names in a dictionary."""
    if isinstance(hint, dict):
        if not isinstance(saved, dict) or saved.keys() != hint.keys():
            raise Misfit(at)
        return {n: unpack(saved[n], of, f"{at}.{n}".strip("."), take) for n, of in hint.items()}
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _either(saved, inner, at, take)
    if hint in PLAIN and type(saved) in PLAIN[hint]:
        return saved
    if isinstance(saved, dict) and saved.keys() == {"array"} and hint in (np.ndarray, float, Any):
        return _array(saved["array"], hint, at, take)
    if isinstance(saved, dict) and saved.keys() == {"own mapping", "by"} and hint is Mapping:
        return _own(saved, at, take)
    if hint is Any:
        return _anything(saved, at, take)
    if origin in (tuple, list) and isinstance(saved, list):
        same = origin is list or inner[-1] is ...
        if not same and len(saved) != len(inner):
            raise Misfit(at)
        each = [inner[0]] * len(saved) if same else inner
        pairs = enumerate(zip(saved, each, strict=True))
        return origin(unpack(part, of, f"{at}.{i}", take) for i, (part, of) in pairs)
    if origin is dict and isinstance(saved, dict):
        return {name: unpack(part, inner[1], f"{at}.{name}", take) for name, part in saved.items()}
    if isinstance(hint, type) and isinstance(saved, dict) and isinstance(saved.get("is"), str):
        return _made(saved, hint, at, take)
    raise Misfit(at)


def _either(saved: Any, hints: tuple[Any, ...], at: str, take: Take) -> Any:
    misfits = []
    for hint in hints:
        try:
            return unpack(saved, hint, at, take)
        except Misfit as misfit:
            misfits.append(misfit)
    raise max(misfits, key=lambda misfit: len(misfit.at))  # the one that came furthest


def _array(name: Any, hint: Any, at: str, take: Take) -> Any:
    if not isinstance(name, str):
        raise Misfit(at)
    try:
        array = take(name)
    except KeyError:
        raise Misfit(at) from None
    if hint is not float:
        return array
    if array.ndim or array.dtype.kind != "f":
        raise Misfit(at)
    return array[()]


def _own(saved: dict[str, Any], at: str, take: Take) -> Mapping:
    number = saved["own mapping"]
    if type(number) is not int or number < 0:
        raise Misfit(at)
    mapping = take(number)
    if mapping.formulation != saved["by"]:
        raise Misfit(f"{at}.by")
    return mapping


def _anything(saved: Any, at: str, take: Take) -> Any:
    """Numbers, text and arrays, in lists and dictionaries."""
    if isinstance(saved, list):
        return [unpack(part, Any, f"{at}.{i}", take) for i, part in enumerate(saved)]
    if isinstance(saved, dict):
        return {name: unpack(part, Any, f"{at}.{name}", take) for name, part in saved.items()}
    return saved


def _made(saved: dict[str, Any], base: type, at: str, take: Take) -> Any:
    """An object of a known class, its fields by their declared types."""
    kind = KNOWN.get(saved["is"])
    if kind is None or not issubclass(kind, base):
        raise Misfit(at)
    declared = get_type_hints(kind)
    hints = {name: declared[name] for name in fields_of(kind)}
    own = unpack({n: v for n, v in saved.items() if n != "is"}, hints, at, take)
    name, choices = CHOICES.get(kind, ("", ()))
    if name and own[name] not in choices:
        raise Misfit(f"{at}.{name}")
    try:
        return kind(**own)
    except (TypeError, ValueError) as error:  # it checks itself
        raise Misfit(at) from error


def fields_of(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "_fields", None) or tuple(field.name for field in fields(kind))
