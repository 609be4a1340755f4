"""What both studies do alike: several models on the same folds, and what they say of every unit.

In all figures of the paper a unit's posterior is by a fit that has not seen it. So units with
primary data are answered for by the fold that held them out, the others by a fit to all that have
any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from ldf.baselines import NAMES, regression
from ldf.ensemble import Member
from ldf.estimator import Fusion, table_of
from ldf.families.base import Family
from ldf.folds import Split
from ldf.learned import Said
from ldf.mappings import Linear
from ldf.spec import Spec
from ldf.validate import CrossValidation, answer, cross_validate


@dataclass(frozen=True)
class Protocol:
    """How much is done. The paper's is the default; a smaller one is for tests."""

    folds: int = 10
    restarts: int = 10
    draws: int = 4  # settings drawn on a log scale, of which each fold takes the best
    epochs: int = 1000
    defaults: bool = True  # also ldf as it is by default
    seed: int = 0


THE_PAPERS = Protocol()


def beside(
    model: Fusion, frame: Any, others: Mapping[str, Spec], folds: int | Split
) -> CrossValidation:
    """The model and the others, each unit held out once, on the same folds."""
    cv = cross_validate(model, frame, folds, baselines=None)
    rows = table_of(cv.data)
    found = {name: answer(spec, rows, cv.split, model.seed) for name, spec in others.items()}
    return replace(cv, answers=cv.answers | found)


def log_uniform(rng: np.random.Generator, low: float, high: float, size: int) -> np.ndarray:
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def regressions(
    family: Family, penalties: Mapping[str, Any], prior: Any = "none"
) -> dict[str, Any]:
    """The plain and the compound regression of standardised columns. Where several penalties are
    given each fold takes the one that explains rows best that it was not fitted to."""
    plain, compound = NAMES[type(family).__name__]
    shape = type(family).__name__ == "Poisson"
    found = {}
    for name, mapping in ((plain, Linear(True)), (compound, Linear(True, shape=shape))):
        spec = regression(family, mapping, certain=name == plain)
        some = np.atleast_1d(penalties[name]).tolist()
        members = tuple(Member(mapping, "standard", penalty=penalty) for penalty in some)
        parts = 1 if len(some) == 1 else 5
        ensemble = replace(spec.ensemble, members=members, parts=parts, combine="best")
        # A point has no prior to be added to.
        found[name] = replace(spec, ensemble=ensemble, prior="none" if name == plain else prior)
    return found


def everywhere(cv: CrossValidation, model: Fusion, name: str = "ldf") -> Said:
    """What is said of every row: by the fold that held it out, or by the fit to all."""
    held = cv.data.seen
    new = model.learned_.said(cv.data.x)
    own = cv.answers[name].said

    def put(mine: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.where(held.reshape(1, -1, *[1] * (mine.ndim - 2)), mine, other)

    return jax.tree.map(put, own, new)
