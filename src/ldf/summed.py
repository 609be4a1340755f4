"""Several auxiliary sources, each with a mapping of its own; their pseudo-observations add.

    natural_i  =  λ0  +  Σ_s [s is there] T_s(x_is; φ_s)

A source that a row lacks adds zero, in learning and afterwards. The plain sum takes sources to be
independent given θ: two that tell the same would be counted twice. So what a source says depends on
which others are there: for each one that lacks, its outputs have another slope and another level,

    outputs_s  =  f_s(x_s) · (1 − Σ_{j lacks} slope_sj)  −  Σ_{j lacks} level_sj

and alone, where it says other things, it has a mapping of its own (decision 36). For all that a
mapping has to meet rows without the others: in every step a row teaches with every subset of its
sources, and all of these decide when to stop (decision 34).

A source may be a table of columns, or an image, a series or a set of items: then its columns are
the numbers of that, by the shape it has, and its mapping knows how to read them. Of tables some may
have trees, which are then learned in turn with what is smooth ("backfitting").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.mappings import (
    Attention,
    Convolution,
    Mapping,
    Recurrent,
    Trees,
    Weights,
    scramble,
)
from ldf.mappings.reader import Reader
from ldf.model import Copies, Ground, Model
from ldf.special import Array

GOLDEN = 0x9E3779B9
LITTLE = 0.3  # of a slope or a level for each weight: so its penalty is ten times what it would be
FEW = 4  # sources of which every subset teaches
MOST = 8  # sources if some have trees, which answer beforehand for whatever others are there


class Read(NamedTuple):
    """What both mappings of a source give: for rows that have others, and that have none."""

    beside: Array
    alone: Array


TWO = Read._fields


class Source(NamedTuple):
    """A source and its columns, once they are encoded."""

    name: str
    start: int
    stop: int
    kind: str = "table"  # or what a reader reads: "image", "series", "items"
    shape: tuple[int, ...] = ()  # of what is no table


# What reads a source where no mapping is given for it.
READERS: dict[str, Reader] = {"image": Convolution(), "series": Recurrent(), "items": Attention()}


def can_read(mapping: Mapping, source: Source) -> bool:
    """Readers read what they are made for, trees read tables; others take any numbers."""
    if isinstance(mapping, Trees):
        return source.kind == "table"
    return not isinstance(mapping, Reader) or mapping.reads == source.kind


def mapping_of(source: Source, given: Mapping | None, of_tables: Mapping) -> Mapping:
    """A source's own mapping, or the one that suits its kind."""
    by = of_tables.formulation
    mapping = given or READERS.get(source.kind, of_tables)
    if not can_read(mapping, source):
        kinds = {"table": "a table", "image": "images", "series": "a series", "items": "items"}
        reads = getattr(mapping, "reads", "table")
        problem = f"reads {kinds[reads]}, and '{source.name}' is {kinds[source.kind]}"
        remedy = "give this source another one, by mapping={source: mapping}"
        raise check.DataError("mapping", None, type(mapping).__name__, problem, remedy)
    if not isinstance(mapping, Reader):
        return mapping
    if given is None and by != mapping.formulation:  # a default one says what the others say
        mapping = replace(cast("Any", mapping), head=replace(mapping.head, by=by))
    return mapping.shaped(source.shape)


class SummedModel(Model):
    """One mapping a source, or two of the same kind. The last columns of x say which sources are
    there.

    sources   at least one
    mappings  one a source; if there is none, `mapping` is for all
    aware     whether what a source says depends on which of the others are there
    left_out  the chance that a source is left out of a row in a step of learning, where this is by
              chance; zero: rows teach as they are
    whole     whether a row without any source has the whole of what is known of all units, of
              which λ0 is a weak part
    only      the number of a source: its term of the sum alone, with all that it sees
    """

    sources: tuple[Source, ...] = ()
    mappings: tuple[Mapping, ...] = ()
    aware: bool = True
    left_out: float = 0.3
    whole: bool = False
    only: int | None = None

    def __check_init__(self) -> None:
        if self.way == "backfitting" and len(self.sources) > MOST:
            problem = f"of trees is for {MOST} sources at most"
            remedy = "join some of them, or give all a network"
            raise check.DataError("sources", None, len(self.sources), problem, remedy)
        if any(mapping.formulation != self.mapping.formulation for mapping in self.each):
            remedy = "give all mappings the same `by`"
            raise check.DataError("by", None, None, "differs between sources", remedy)

    @property
    def each(self) -> tuple[Mapping, ...]:
        """The mapping of each source."""
        return self.mappings or (self.mapping,) * len(self.sources)

    @property
    def way(self) -> str:
        ways = {mapping.way for mapping in self.each}
        if "boosting" in ways:
            return "backfitting"
        return ways.pop() if len(ways) == 1 else "gradients"

    @property
    def named(self) -> str:
        return ", ".join(dict.fromkeys(type(mapping).__name__ for mapping in self.each))

    @property
    def leaves_out(self) -> bool:
        return self.left_out > 0

    def alone(self, ground: Ground) -> Any:
        return self.usual(ground) if self.whole else ground.prior

    def there(self, x: np.ndarray) -> np.ndarray:
        return x[:, -len(self.sources) :] > 0.5

    def lacking(self, x: np.ndarray, there: np.ndarray) -> np.ndarray:
        return np.concatenate([x[:, : -len(self.sources)], self.there(x) & there], 1)

    @property
    def subsets(self) -> np.ndarray:
        """Of sources, subsets × sources: all but the empty one; of many sources those with all,
        all but one, or one."""
        many = len(self.sources)
        if many <= FEW:
            return np.array([*product((False, True), repeat=many)][1:])
        one = np.eye(many, dtype=bool)
        return np.concatenate([one, ~one, np.ones((1, many), bool)])

    def copies(self, x: np.ndarray) -> Copies:
        there = self.there(x)
        every = self.subsets if self.leaves_out else np.ones((1, len(self.sources)), bool)
        kept = (there[:, None] & every).reshape(-1, len(self.sources))
        row = np.repeat(np.arange(len(x)), len(every))
        some = kept.any(1) | ~there[row].any(1)  # who has none is there without any
        both = np.unique(np.column_stack([row, kept])[some].astype(int), axis=0)
        row, kept = both[:, 0], both[:, 1:] > 0
        return Copies(row, kept, 1 / np.bincount(row, minlength=len(x))[row])

    def twofold(self, number: int) -> bool:
        """Whether a source has a mapping for rows that lack all others beside the one for rows that
        have some. Trees have one, which sees who is there as columns and tells these rows apart by
        itself."""
        several = self.aware and self.leaves_out and len(self.sources) > 1
        return several and self.each[number].way != "boosting"

    def init(self, rng: np.random.Generator, inputs: int, width: int | None = None) -> Weights:
        weights = []
        for number, (of, mapping) in enumerate(zip(self.sources, self.each, strict=True)):
            # A member's width is that of its own mapping.
            wide, columns = width if mapping == self.mapping else None, of.stop - of.start
            if self.twofold(number):
                own = {name: mapping.init(rng, columns, self.outputs, wide) for name in TWO}
                none = np.zeros((self._others, self.outputs))
                weights.append(own | {"slope": none, "level": none})
            else:
                weights.append(mapping.init(rng, columns + self._others, self.outputs, wide))
        return weights

    @property
    def _others(self) -> int:
        """Of how many sources a source learns what it says without them."""
        return len(self.sources) - 1 if self.aware else 0

    def prepared(self, weights: Weights, x: np.ndarray, rng: np.random.Generator) -> Weights:
        """Each by the rows that have its source, as those that lack nothing see it."""
        found = []
        there = self.there(x)
        pairs = zip(self.sources, self.each, weights, strict=True)
        for number, (source, mapping, own) in enumerate(pairs):
            view = x[there[:, number], source.start : source.stop]
            if not len(view):
                found.append(own)
            elif self.twofold(number):
                found.append(own | {of: mapping.prepared(own[of], view, rng) for of in TWO})
            else:
                seen = np.concatenate([view, np.zeros((len(view), self._others))], 1)
                found.append(mapping.prepared(own, seen, rng))
        return found

    def pseudo_observations(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> Any:
        terms = self.terms(weights, ground, x, dropout, noise)
        return sum(terms[1:], start=terms[0])

    def terms(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
        there: Array | None = None,
        read: dict[int, Read] | None = None,
    ) -> list[Any]:
        """Of the sum, one a source; or that of the only one. Rows may be taken to have fewer
        sources `there` than they have, and their sources may have been `read` already."""
        read = self.read(weights, x, dropout, noise) if read is None else read
        has: Any = x[:, -len(self.sources) :] > 0.5 if there is None else there
        terms = []
        for number in self._asked:
            own = has[:, number]
            # Zero where they are there, as in rows that lack nothing.
            lacks = jnp.delete(has, number, axis=1, assume_unique_indices=True) - 1.0
            # Together they begin at the ground, which is what one mapping begins at.
            if number in read:
                slope, level = (LITTLE * lacks @ weights[number][of] for of in ("slope", "level"))
                beside = read[number].beside * (1 + slope) + level
                nobody = (lacks < 0).all(1, keepdims=True)
                outputs = jnp.where(nobody, read[number].alone, beside)
                parts = jnp.maximum(has.sum(1), 1)
            else:
                view = jnp.where(own[:, None], self._view(x, number), 0.0)
                seen = jnp.concatenate([view, lacks], 1) if self.aware else view
                dropped = _dropped(dropout, noise, number)
                outputs = self._of(number).mapped(weights[number], seen, *dropped)
                parts = jnp.full(len(x), len(self.sources))
            term = self.from_outputs(outputs, ground)
            terms.append(jax.tree.map(partial(_share, own, parts), term))
        return terms

    def read(
        self,
        weights: Weights,
        x: Array,
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> dict[int, Read]:
        """What the mappings of sources that have two give for rows, whoever else is there: so a row
        is read once, whatever it teaches."""
        found = {}
        for number in filter(self.twofold, self._asked):
            places = (number, number + len(self.sources))
            each = (
                self._of(number).mapped(
                    weights[number][of], self._view(x, number), *_dropped(dropout, noise, place)
                )
                for of, place in zip(TWO, places, strict=True)
            )
            found[number] = Read(*each)
        return found

    def lessons(
        self,
        weights: Weights,
        ground: Ground,
        x: Array,
        y: dict[str, Array],
        dropout: Array | float = 0.0,
        noise: Array | None = None,
    ) -> list[tuple[Array, Any]]:
        """A row teaches with every subset of its sources; of many, with all, without each, with
        some at random, and with each alone. Random ones only would meet some subsets so rarely that
        any penalty outweighs what these tell. All of several sources together count once, as a row
        of one table does, and so does each source alone."""
        there = x[:, -len(self.sources) :] > 0.5
        read = self.read(weights, x, dropout, noise)
        taught, found = self._taught(there, len(read), noise), []
        number = sum(jnp.where(counts, 1, 0) for _, counts in taught)
        for turn, (kept, counts) in enumerate(taught):
            drawn = None if noise is None else scramble(noise + jnp.uint32(turn))
            terms = self.terms(weights, ground, x, dropout, drawn, kept, read)
            found.append((sum(terms[1:], start=terms[0]), counts / number))
        found += [(self.from_outputs(own.alone, ground), there[:, n]) for n, own in read.items()]
        # Side by side, to be compiled once.
        every = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[pseudo for pseudo, _ in found])
        told = jax.vmap(lambda pseudo: self.log_predictive_given(pseudo, ground, y))(every)
        return list(zip(told, [of for _, of in found], strict=True))

    def _taught(self, there: Array, alone: int, noise: Array | None) -> list[tuple[Array, Any]]:
        """Which sources rows are taken to have, and which rows it takes some from. So many sources
        teach alone anyway."""
        many, found = len(self.sources), [(there, cast("Any", True))]
        if not self.leaves_out:
            return found
        least = 2 if alone == many else 1
        if many <= FEW:
            every = (np.array(kept) for kept in product((False, True), repeat=many))
            for kept in (kept for kept in every if least <= kept.sum() < many):
                found.append((there & kept, there[:, kept].all(1) & there[:, ~kept].any(1)))
            return found
        for kept in ~np.eye(many, dtype=bool):
            left = there & kept
            found.append((left, (left.sum(1) >= least) & there[:, ~kept].any(1)))
        return found if noise is None else [*found, (self.some(there, noise), True)]

    @property
    def _asked(self) -> Iterable[int]:
        return range(len(self.sources)) if self.only is None else (self.only,)

    def _view(self, x: Array, number: int) -> Array:
        """The columns of a source."""
        return x[:, self.sources[number].start : self.sources[number].stop]

    def _of(self, number: int) -> Model:
        return Model(self.family, self.each[number], self.certain)

    def some(self, there: Array, noise: Array) -> Array:
        """Without those that are left out; a row keeps what it has rather than nothing."""
        rows, many = there.shape
        cells = jnp.arange(rows * many, dtype=jnp.uint32).reshape(rows, many)
        kept = there & (scramble(scramble(noise + 1) + cells) * (1 / 2**32) >= self.left_out)
        return jnp.where(kept.any(1, keepdims=True), kept, there)


def _dropped(dropout: Array | float, noise: Array | None, number: int) -> tuple[Any, ...]:
    """What a mapping drops units by, if it does: each by a number of its own."""
    if noise is None:
        return ()
    return dropout, scramble(noise + jnp.uint32(number * GOLDEN % 2**32))


def _share(there: Array, parts: Array, leaf: Array) -> Array:
    """One of so many parts, in rows where it is there."""
    wide = (-1,) + (1,) * (leaf.ndim - 1)
    return jnp.where(there.reshape(wide), leaf / parts.reshape(wide), 0.0)
