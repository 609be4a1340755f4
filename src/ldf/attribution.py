"""What each source is worth in each unit: its pseudo-observations, and how much it tells.

Pseudo-observations of sources add. Information does not: it is KL(after ‖ before), how far a source
moves what is known of θ, and depends on what was known before. So it is given twice: beside all the
other sources, and alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from ldf.data import Data
from ldf.learned import Learned, Said


class Worth(NamedTuple):
    """Of each unit and source, units first: as many rows as units times sources."""

    pseudo: Any  # T_s, the members' weighted mean
    beside: np.ndarray  # in nats, the other sources being known
    alone: np.ndarray  # in nats, nothing else being known


def by_source(learned: Learned, data: Data, part: np.ndarray) -> Worth:
    """Of several sources."""
    many = len(data.schema.sources)
    together, prior = learned.said(data.x, part), learned.prior().spread(len(data))
    each = [learned.only(number).said(data.x, part) for number in range(many)]
    beside, alone = np.empty((2, len(data), many))
    for number in range(many):
        others = [other.pseudo for k, other in enumerate(each) if k != number]
        without = prior._replace(natural=sum(others, start=prior.natural))
        beside[:, number] = _moved(learned, without, together)
        x = data.x.copy()
        x[:, -many:] *= np.eye(many)[number]  # as if no other were there
        alone[:, number] = _moved(learned, prior, learned.said(x, part))
    there = data.x[:, -many:] > 0
    beside, alone = np.where(there, beside, 0.0), np.where(there, alone, 0.0)
    pseudo = jax.tree.map(lambda *leaves: _interleaved(leaves), *[own.mean() for own in each])
    return Worth(pseudo, beside.ravel(), alone.ravel())


def _moved(learned: Learned, before: Said, after: Said) -> np.ndarray:
    """KL(after ‖ before) of each row: the members' mean, by their shares."""
    law = learned.family.posterior
    each = np.asarray(law(after.natural).divergence(law(before.natural)))
    return (after.share * np.maximum(each, 0.0)).sum(0)  # rounding aside, it never is negative


def _interleaved(leaves: tuple[np.ndarray, ...]) -> np.ndarray:
    """One a source, each with one row a unit, as rows of units and sources."""
    stacked = np.stack(leaves, 1)
    return stacked.reshape(-1, *stacked.shape[2:])
