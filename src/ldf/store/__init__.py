"""A fitted model as a file: plain specs and numbers, and no code.

    model.json           which classes it is made of and what their fields are
    weights.safetensors  every array among them, by the name of its place

A model is one zip of these two, or a folder of them. Numbers come back to the last bit, and an
array that is there twice is written once. Nothing in a file can make reading it do anything else:
`files` reads bytes, `values` makes objects of known classes, and here they are asked to agree.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, get_type_hints

import jax
import numpy as np

from ldf.beside.base import MOST
from ldf.checkpoint import FileError, fingerprint
from ldf.families.base import Family
from ldf.learned import Learned, Trained
from ldf.mappings import Mapping, Trees
from ldf.mappings.reader import Reader
from ldf.mixed import MixedModel
from ldf.preprocess import Preprocess, Shaped, Sourced
from ldf.schema import Schema
from ldf.store.files import damaged, read, write
from ldf.store.values import Found, Misfit, pack, unpack
from ldf.summed import Source, SummedModel

__all__ = ["CUSTOM", "FileError", "Saved", "load", "save"]

CUSTOM = "custom"  # instead of an objective that is a function: it is not needed to predict
DEEPEST = 64  # hidden layers


class Saved(NamedTuple):
    """What a model is: how it was asked for, and what it learned."""

    arguments: dict[str, Any]
    family: Family
    learned: Learned
    schema: Schema
    notes: tuple[str, ...]
    parts: dict[bytes, list[int]]  # of rows by their fingerprints: where they were held out


class Parts(NamedTuple):
    """The same in arrays, one row each."""

    mark: np.ndarray
    place: np.ndarray

    @classmethod
    def listed(cls, parts: dict[bytes, list[int]]) -> Parts:
        pairs = [(mark, place) for mark, places in parts.items() for place in places]
        marks = np.frombuffer(b"".join(mark for mark, _ in pairs), np.uint8)
        shape = (len(pairs), len(pairs[0][0]) if pairs else 0)
        return cls(marks.reshape(shape), np.array([place for _, place in pairs], np.int64))

    def grouped(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for mark, place in zip(self.mark, self.place.tolist(), strict=True):
            found.setdefault(mark.tobytes(), []).append(place)
        return found


def save(path: Any, kind: str, saved: Saved, hints: dict[str, Any]) -> None:
    """Write a model; `hints` are the types of its arguments. What could not be read is refused."""
    content = saved._asdict() | {"parts": Parts.listed(saved.parts)._asdict()}
    found: Found = {}
    try:
        model = {name: pack(value, name, found) for name, value in content.items()}
        arrays = {name: array for name, array in found.values() if isinstance(name, str)}
        own = tuple(mapping for name, mapping in found.values() if isinstance(name, int))
        _rebuilt(model, arrays, hints, path, own)
    except Misfit as misfit:
        remedy = misfit.remedy or "give it as its documentation says, and fit again"
        raise FileError(path, f"cannot hold '{misfit.at}'{misfit.what}", remedy) from misfit
    write(path, {"kind": kind, "model": model}, arrays)


def load(path: Any, kind: str, hints: dict[str, Any], own: tuple[Mapping, ...] = ()) -> Saved:
    """Read a model, or say in a sentence why not. Mappings of the user's own are not in a file."""
    specs, arrays = read(path)
    if specs["kind"] != kind:
        raise FileError(path, f"holds {specs['kind']!r:.40}", f"this reads {kind!r}")
    try:
        return _rebuilt(specs["model"], arrays, hints, path, own)
    except Misfit as misfit:
        if own:
            remedy = "give the one that it was fitted with"
            problem = f"does not fit the mapping that is given ('{misfit.at}' is something else)"
            raise FileError(path, problem, remedy) from misfit
        raise damaged(path, f"'{misfit.at}' is not what it should be") from misfit


def _rebuilt(
    model: Any, arrays: dict[str, np.ndarray], hints: dict[str, Any], path: Any,
    own: tuple[Mapping, ...],
) -> Saved:  # fmt: skip
    of = get_type_hints(Saved) | {"arguments": hints, "parts": get_type_hints(Parts)}
    used: set[Any] = set()

    def take(name: Any) -> Any:
        used.add(name)
        if not isinstance(name, int):
            return arrays[name]
        if name < len(own):
            return own[name]
        many = f"{name + 1} mappings" if name else "a mapping"
        problem = f"holds the weights of {many} of your own, and no file holds a mapping itself"
        raise FileError(path, problem, "give it again: ldf.load(path, mapping=…)")

    try:
        content = unpack(model, of, "", take)
        if more := sorted(arrays.keys() - used):
            raise Misfit(more[0])
        if not used.issuperset(range(len(own))):
            remedy = "leave out the mapping that is given" + (
                ", or the last of them" * (len(own) > 1)
            )
            raise FileError(path, "holds weights of no such mapping", remedy)
        return _agreed(Saved(**content | {"parts": Parts(**content["parts"])}))
    except RecursionError as error:
        raise Misfit("model") from error


# --- whether it all agrees ----------------------------------------------------------------------


def _agreed(saved: Saved) -> Saved:
    learned, many = saved.learned, len(saved.learned.trained)
    for i, block in enumerate(saved.schema.blocks):
        sound = min(block.shape, default=0) >= 1 and block.width <= MOST
        _need(
            f"schema.blocks.{i}", sound and len(block.shape) == (3 if block.kind == "image" else 2)
        )
    for i, trained in enumerate(learned.trained):
        at = f"learned.trained.{i}"
        try:
            _refuse_misfit(trained, saved.family, saved.schema, at)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Misfit(at) from error
    _need("learned.share", many and learned.share.shape == (many,) and _floats(learned.share))
    _refuse_miscorrection(learned, len(saved.schema.several))
    held = min(len(jax.tree.leaves(trained.held)[0]) for trained in learned.trained)
    _need("learned.part", learned.part.ndim == 1 and _between(learned.part, -1, held))
    parts: Any = saved.parts
    marks, place = parts
    _need("parts.mark", marks.dtype == np.uint8 and marks.ndim == 2 and len(marks) == len(place))
    _need("parts.place", place.ndim == 1 and _between(place, 0, held))
    learned = replace(learned, trained=tuple(map(_shared, learned.trained)))
    return saved._replace(learned=learned, parts=parts.grouped())


def _refuse_miscorrection(learned: Learned, sources: int) -> None:
    there, times, stretch, level, contrast, typical, doubt = learned.correction
    at = "learned.correction"
    _need(f"{at}.there", there.dtype == bool and there.shape[1:] == (sources,))
    first = learned.trained[0]
    usual = first.model.usual(first.ground)
    line, splits = usual.location.shape, ((1,), usual.sizes.shape)
    _need(f"{at}.times", len(there) and times.shape[:1] == there.shape[:1])
    _need(f"{at}.times", times.shape[1:] in splits)
    by_split = {"times": times, "stretch": stretch, "contrast": contrast, "typical": typical}
    for name, value in by_split.items():
        _need(f"{at}.{name}", _floats(value) and ((value > 0) & np.isfinite(value)).all())
        _need(f"{at}.{name}", name == "times" or value.shape in splits)
    _need(f"{at}.doubt", _floats(doubt) and doubt.shape == () and 0 <= doubt < np.inf)
    _need(f"{at}.level", _floats(level) and level.shape in ((), line) and np.isfinite(level).all())
    plain = (stretch == 1).all() and (contrast == 1).all() and not level.any() and not doubt
    _need(f"{at}.stretch", not sources or plain)


def _refuse_misfit(trained: Trained, family: Family, schema: Schema, at: str) -> None:
    """Unless arrays have the shapes that the family, the mapping and the columns ask for."""
    model, ground, columns = trained.model, trained.ground, schema.width
    same = fingerprint(model.family) == fingerprint(family)
    _need(f"{at}.model", same)
    sources = model.sources if isinstance(model, SummedModel) else ()
    several = len(schema.several)
    _need(f"{at}.model.sources", sources == schema.sources)
    _need(f"{at}.preprocess", isinstance(trained.preprocess, Sourced) == bool(sources))
    blocks = getattr(trained.preprocess, "each", (trained.preprocess,))
    sizes = [columns] * len(blocks)
    if isinstance(trained.preprocess, Sourced):
        _need(f"{at}.preprocess.each", len(blocks) == several)
        sizes = [_refuse_other_form(*pair, at) for pair in zip(blocks, sources, strict=True)]
    for preprocess, size in zip(blocks, sizes, strict=True):
        for name, array in getattr(preprocess, "inner", preprocess)._asdict().items():
            there = isinstance(array, str) or (array.shape == (size,) and _floats(array))
            _need(f"{at}.preprocess.{name}", there)
    mixed = isinstance(model, MixedModel)
    if mixed:
        stored = np.size(trained.weights["gate"]["bias"])
        _need(f"{at}.model.mixture", 1 <= model.number <= stored)
        seen = set(model.blocks) or {0}
        _need(f"{at}.model.blocks", seen == set(range(len(blocks))))
        _need(f"{at}.model.blocks", len(model.blocks) in (0, model.number))
    # A layer is made below only if there is as much of it in the file.
    stored = sum(np.size(leaf) for leaf in jax.tree.leaves(trained.weights))
    mappings = model.mappings if mixed else getattr(model, "each", (model.mapping,))
    _need(f"{at}.model.mappings", not sources or len(mappings) == len(sources))
    for number, mapping in enumerate(mappings):
        inputs = columns
        if sources:  # its own columns, and which of the others are there
            inputs = sources[number].stop - sources[number].start + several - 1
        if isinstance(mapping, Reader):
            _need(f"{at}.model.mappings.{number}", mapping.shape == sources[number].shape)
            _need(f"{at}.model.mappings.{number}", mapping.largest <= stored)
            mapping, inputs = mapping.head, 0
        layers = (*getattr(mapping, "shared", ()), *getattr(mapping, "branch", ()))
        matrices = pairwise((inputs, *layers, model.outputs)) if layers else ()
        fits = all(a * b <= stored for a, b in matrices)
        fits &= all(getattr(mapping, name, 0) <= stored for name in ("knots", "waves", "inducing"))
        _need(f"{at}.model", fits and len(layers) <= DEEPEST)
    prior, size = family.own(ground.prior), (family.natural.vector_size(family.components or 0),)
    for array, axes in zip(prior.coordinates(), prior.event_axes, strict=True):
        _need(f"{at}.ground.prior", np.shape(array) == size * axes and _floats(array))
    for name in ("centre", "scale"):
        array = getattr(ground, name)
        _need(f"{at}.ground.{name}", np.shape(array) == (model.outputs,) and _floats(array))
    for name in ("weights", "held"):
        tree, rng = getattr(trained, name), np.random.default_rng(0)
        seen = columns if sources else columns * len(blocks)
        like = model.init(rng, seen)
        if isinstance(model.mapping, Trees) and not sources:
            like = _like_forest(model.mapping, tree, seen, model.outputs, f"{at}.{name}")
        for number, mapping in enumerate(mappings if sources else ()):
            if isinstance(mapping, Trees):
                seen = sources[number].stop - sources[number].start + several - 1
                place = f"{at}.{name}.{number}"
                like[number] = _like_forest(mapping, tree[number], seen, model.outputs, place)
        leaves, wanted = jax.tree.leaves(tree), jax.tree.leaves(like)
        same = jax.tree.structure(tree) == jax.tree.structure(like)
        _need(f"{at}.{name}", same and leaves and np.ndim(leaves[0]) and len(leaves[0]) > 0)
        for leaf, other in zip(leaves, wanted, strict=True):
            _need(f"{at}.{name}", np.shape(leaf) == (len(leaves[0]), *other.shape))
            _need(f"{at}.{name}", leaf.dtype.kind == other.dtype.kind)


def _like_forest(mapping: Trees, forest: Any, inputs: int, outputs: int, at: str) -> Any:
    """As many trees as there are, if they ask for columns that are there."""
    _need(f"{at}.column", _between(forest["column"], 0, inputs))
    _need(f"{at}.leaf", np.shape(forest["leaf"])[2:] == (outputs, 2**mapping.depth))
    return mapping.init(np.random.default_rng(0), inputs, outputs, np.shape(forest["leaf"])[1])


def _refuse_other_form(preprocess: Any, source: Source, at: str) -> int:
    """Unless it preprocesses what the source is; how many numbers it should have in each field."""
    if not source.shape:
        _need(f"{at}.preprocess", isinstance(preprocess, Preprocess))
        return source.stop - source.start
    masked = source.kind != "image"
    form = (source.shape, masked)
    fits = isinstance(preprocess, Shaped) and (preprocess.shape, preprocess.masked) == form
    _need(f"{at}.preprocess", fits)
    return source.shape[-1] - masked


def _shared(trained: Trained) -> Trained:
    """Fits that answer for new rows and for their own part may be the same ones."""
    pairs = zip(jax.tree.leaves(trained.weights), jax.tree.leaves(trained.held), strict=True)
    same = all(one is other for one, other in pairs)
    return trained._replace(held=trained.weights) if same else trained


def _need(at: str, condition: Any) -> None:
    if not condition:
        raise Misfit(at)


def _floats(array: Any) -> bool:
    return isinstance(array, float) or (isinstance(array, np.ndarray) and array.dtype.kind == "f")


def _between(numbers: np.ndarray, least: int, most: int) -> bool:
    inside = (numbers >= least) & (numbers < most)
    return numbers.dtype.kind == "i" and bool(inside.all())
