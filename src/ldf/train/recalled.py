"""Trees that have answered beforehand, so that the other sources can be learned beside them.

Applying hundreds of trees in every step would take most of the time, and what a forest says of a
row depends on little: on the row, and on which of the other sources are there. So it is asked once
for every row and every such pattern, and its answers take the place of its source's columns.
`Recalled` is the mapping that looks them up. It has no weights: nothing can climb a forest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np

from ldf.mappings import Mapping, Trees, Weights, together
from ldf.special import Array
from ldf.summed import Source, SummedModel


class Recalled(Mapping):
    """Answers by pattern: the row holds one a pattern, then which of the others are there."""

    outputs: int
    others: int
    by: str = "log"

    @property
    def formulation(self) -> str:
        return self.by

    @property
    def way(self) -> str:
        return "boosting"  # as the trees that it stands for

    def init(
        self, rng: np.random.Generator, inputs: int, outputs: int, width: int | None = None
    ) -> Weights:
        return {}

    def apply(
        self, weights: Weights, x: Array, dropout: Array | float = 0.0, noise: Array | None = None
    ) -> Array:
        told = x[: len(x) - self.others].reshape(-1, self.outputs)
        there = x[len(x) - self.others :] > -0.5  # zero where they are, as SummedModel has it
        return told[pattern(there)]


def pattern(there: Array) -> Array:
    """The number of what is there of the others, by which answers are kept."""
    return (there * 2 ** np.arange(there.shape[-1])).sum(-1)


def patterns(model: SummedModel) -> np.ndarray:
    """All that a mapping may see of the others, in the order in which answers are kept."""
    others = len(model.sources) - 1 if model.aware else 0
    numbers = np.arange(2**others)[:, None]
    return (numbers >> np.arange(others)) % 2 - 1.0


def recalling(model: SummedModel) -> SummedModel:
    """The same sum, with forests that have answered."""
    others = len(model.sources) - 1 if model.aware else 0
    sources, mappings, start = [], [], 0
    for source, mapping in zip(model.sources, model.each, strict=True):
        width = source.stop - source.start
        if isinstance(mapping, Trees):
            width = model.outputs * 2**others
            mapping = Recalled(model.outputs, others, mapping.by)
        sources.append(Source(source.name, start, start + width, source.kind, source.shape))
        mappings.append(mapping)
        start += width
    own: Any = model
    return replace(own, sources=tuple(sources), mappings=tuple(mappings))


def nothing_told(model: SummedModel, z: np.ndarray) -> np.ndarray:
    """The answers of a forest without trees."""
    return np.zeros((len(z), len(patterns(model)) * model.outputs), np.float32)


def answers(model: SummedModel, number: int, forest: Weights, z: np.ndarray) -> np.ndarray:
    """Of the forest of a source, for each row: as many outputs as there are, for every pattern."""
    source, mapping = model.sources[number], cast("Trees", model.each[number])
    trees = max(16, 1 << max(len(forest["leaf"]) - 1, 0).bit_length())  # to compile rarely
    like = mapping.init(np.random.default_rng(0), 0, model.outputs, trees)
    filled = {name: leaf[0] for name, leaf in together([forest, like]).items()}
    own = z[:, source.start : source.stop].astype(np.float32)
    told = [
        _outputs(mapping, filled, np.concatenate([own, np.tile(np.float32(seen), (len(z), 1))], 1))
        for seen in patterns(model)
    ]
    return np.concatenate(told, 1)


def rows_told(model: SummedModel, z: np.ndarray, told: dict[int, np.ndarray]) -> np.ndarray:
    """Rows for `recalling(model)`, given the answers of each forest."""
    parts = [
        told[number] if number in told else z[:, source.start : source.stop]
        for number, source in enumerate(model.sources)
    ]
    return np.concatenate([*parts, z[:, -len(model.sources) :]], 1).astype(np.float32)


@eqx.filter_jit
def _outputs(mapping: Mapping, weights: Weights, x: Array) -> Array:
    return jax.vmap(lambda row: mapping.apply(weights, row))(x)
