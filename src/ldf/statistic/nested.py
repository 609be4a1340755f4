"""Class after class: what a generalised Dirichlet prior counts.

The first class is set against all later ones, the second against those after it, and so on: of K
classes there are K − 1 such splits, each with trials of its own,

    counts_k, later_k  =  y_k, Σ_{j>k} y_j  of data.

Pseudo-observations need not be nested like those of data: each split may be known as well as it
is. Where later_k = counts_{k+1} + later_{k+1}, they are a Dirichlet's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ldf import check
from ldf.special.arrays import Array, namespace
from ldf.statistic.base import Statistic
from ldf.statistic.counts import FORMULATIONS, amount, log_ratio, sigmoid, softplus


class NestedCounts(Statistic):
    """Counts of each class but the last, and of all classes after it; splits on the last axis."""

    counts: Array
    later: Array

    event_axes: ClassVar = (1, 1)

    @classmethod
    def outputs(cls, components: int | None, formulation: str) -> int:
        if components is None:
            family = "NestedMultinomial(classes=K)"
            raise ValueError(f"how many classes there are is not said: use {family}")
        return 2 * (components - 1)

    @classmethod
    def meets(cls, outputs: int, formulation: str) -> np.ndarray:
        """Those of a split, and all the first one, which all splits' n have a part in."""
        each = np.arange(outputs // 2)
        if formulation == "counts":
            split = np.concatenate([each, each])
            return split[:, None] == split
        split = np.concatenate([each[:1], each, each[1:]])
        met = split[:, None] == split
        met[0] = met[:, 0] = True
        return met

    @classmethod
    def vector_size(cls, components: int) -> int:
        return components - 1

    @classmethod
    def prior(cls, counts: Any, later: Any = None) -> NestedCounts:
        """Pseudo-counts given by hand: of every class, which is a Dirichlet prior; or of each class
        but the last, and of those `later` than it, as many."""
        array = check.nonnegative("counts", counts)
        if later is None:
            check.classes("counts", array)
            return cls.of_classes(array)
        check.last_axis("counts", array, None, "classes")
        after = check.nonnegative("later", later)
        check.last_axis("later", after, array.shape[-1], "classes")
        check.same_length(counts=counts, later=later)
        return cls(array, after)

    @classmethod
    def of_classes(cls, counts: Array) -> NestedCounts:
        """Of counts of every class, which are added up, from the last class on."""
        xp = namespace(counts)
        up_to = xp.cumsum(counts[..., ::-1], -1)[..., ::-1]
        return cls(counts[..., :-1], up_to[..., 1:])

    @classmethod
    def from_unconstrained(cls, outputs: Array, formulation: str = "rate") -> NestedCounts:
        """From a mapping's outputs: the first split's n, the logits of all K − 1 splits, and what
        is added for the n of each of the others; or 2 (K − 1) counts."""
        check.one_of("formulation", formulation, FORMULATIONS)
        splits = outputs.shape[-1] // 2
        check.last_axis("outputs", outputs, 2 * max(splits, 1), "outputs")
        if formulation == "counts":
            found = softplus(outputs)
            return cls(found[..., :splits], found[..., splits:])
        first, logits = outputs[..., :1], outputs[..., 1 : 1 + splits]
        xp = namespace(outputs)
        others = xp.concatenate([first, first + outputs[..., 1 + splits :]], -1)
        trials = amount(others, formulation)
        return cls(trials * sigmoid(logits), trials * sigmoid(-logits))

    @property
    def sizes(self) -> Array:
        return self.counts + self.later

    def counted(self, often: Array) -> NestedCounts:
        return type(self)(self.counts * often, self.later * often)

    @property
    def location(self) -> Array:
        return log_ratio(self.counts, self.later)

    def moved(self, location: Array) -> NestedCounts:
        return type(self)(self.sizes * sigmoid(location), self.sizes * sigmoid(-location))

    @property
    def t(self) -> Array:
        """Of every class: its share of n, split after split."""
        xp, left, found = namespace(self.counts, self.later), self.n, []
        for k in range(self.counts.shape[-1]):
            own, after = self.counts[..., k], self.later[..., k]
            total = xp.where(own + after > 0, own + after, 1.0)
            found.append(left * own / total)
            left = left * after / total
        return xp.stack([*found, left], -1)

    @property
    def n(self) -> Array:
        """Of the first split, which all observations are part of."""
        return self.counts[..., 0] + self.later[..., 0]
