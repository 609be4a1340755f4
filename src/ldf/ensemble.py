"""Which mappings learn, with which settings, and how their answers are combined.

An `Ensemble` is a value: it is stored with the model, and two can be compared. Its defaults depend
on the number of rows alone; decisions 10, 18 and 20 say how they were chosen, `make bench-quality`
how they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldf import check
from ldf.fit import Schedule
from ldf.mappings import Mapping, Network, Trees, as_mapping

COMBINE = ("stack", "equal", "best")
AS_SUITS: Any = None  # what the mapping says suits it


@dataclass(frozen=True)
class Member:
    """One mapping and how it is trained. An Equinox module or a constructor of one may stand for a
    mapping: see `Own`."""

    mapping: Mapping
    preprocess: str = "power"
    width: int | None = None  # how much of the mapping's width is used; None: all
    penalty: float | tuple[float, ...] = AS_SUITS  # or several, to find it among: see `penalties`
    dropout: float = 0.0  # share of units, or of a tree's columns, that a step does without
    learning_rate: float = AS_SUITS
    strength: float = 1.0  # of the prior, times what it is otherwise

    def __post_init__(self) -> None:
        object.__setattr__(self, "mapping", as_mapping(self.mapping))
        for name in ("penalty", "learning_rate"):
            if getattr(self, name) is AS_SUITS:
                object.__setattr__(self, name, getattr(self.mapping, name))
        if len(self.penalties) != 1 and (self.mapping.way != "newton" or not self.penalties):
            problem = f"is not one number, as {type(self.mapping).__name__} needs"
            remedy = "give one; several only to what is learned to the last digit"
            raise check.DataError("penalty", None, self.penalty, problem, remedy)

    @property
    def penalties(self) -> tuple[float, ...]:
        """From the strongest. What is learned to the last digit has that under which rows are
        likeliest by fits that have not seen them."""
        several = self.penalty if isinstance(self.penalty, tuple) else (self.penalty,)
        return tuple(sorted(several, reverse=True))

    @property
    def least_penalty(self) -> float:
        """Beside sources that learn by gradients, which stop by rows that they watch."""
        return self.penalties[-1]


# Wide enough for the widest member. The narrowest has no hidden unit at all: its rate is linear
# and its count is one number, the regression that people use today. The wide ones are held back
# more, so that columns that say nothing do no harm.
NETWORK = Network(shared=(32,), branch=(8,), linear_path=True)
FEW = (
    Member(NETWORK, width=0),
    Member(NETWORK, width=8),
    Member(NETWORK, width=32, dropout=0.2, penalty=1e-2),
    Member(NETWORK, "standard", width=8),
    Member(NETWORK, "standard", width=32, dropout=0.2, penalty=1e-2),
    Member(Trees(depth=3), "standard"),
)
# Many rows carry deeper networks, and can be trusted to hold them back themselves.
DEEP = Network(shared=(64, 64), branch=(16,), activations=("silu",), linear_path=True)
MANY = (
    Member(DEEP, width=0),
    Member(DEEP, dropout=0.2, penalty=1e-4, learning_rate=0.005),
    Member(DEEP, "standard", dropout=0.2, penalty=1e-4, learning_rate=0.005),
    Member(Trees(depth=5), "standard", penalty=3e-3, learning_rate=0.1),
)
# Beside images, series, items and trees: few, since each learns these too.
BESIDE = (
    Member(NETWORK, width=8),
    Member(NETWORK, "standard", width=32, dropout=0.2, penalty=1e-2),
)
LARGE = 8192  # rows from which there are many


@dataclass(frozen=True)
class Ensemble:
    """Members, each trained `restarts` times without each of so many `parts`.

    `combine`: "stack" mixes members by weights learned out of fold, "equal" by equal ones, "best"
    takes the member with the best score out of fold, which decides a random search.

    Of restarts the one answers that the rows it watches are likeliest by. To have their mixture
    instead, name the member so many times: `Ensemble((member,) * 10, combine="equal")`. Each begins
    at another draw and stays a member of its own. (What is solved to the last digit ends the same.)
    """

    members: tuple[Member, ...] = ()  # none: by the number of rows
    parts: int = 8
    restarts: int = 1
    combine: str = "stack"
    schedule: Schedule | None = None  # None: by the number of rows

    def __post_init__(self) -> None:
        check.one_of("combine", self.combine, COMBINE)
        for name in ("parts", "restarts"):
            if getattr(self, name) < 1:
                given = getattr(self, name)
                raise check.DataError(name, None, given, "is less than one", "give one or more")

    @property
    def network(self) -> Mapping | None:
        """The first that learns by gradients, once members are settled. Members that share one,
        wide enough for all, are one program; another one is another program."""
        mappings = (member.mapping for member in self.members)
        return next((m for m in mappings if m.way == "gradients"), None)

    def settled(self, rows: int, preprocess: str | None = None, smooth: bool = False) -> Ensemble:
        """The members for so many rows with primary data; with one preprocessing for all, if one is
        given. Where they are to be smooth, defaults are without trees; and defaults that are alike
        are one."""
        members = self.members or (FEW if rows < LARGE else MANY)
        if smooth and not self.members:
            members = tuple(m for m in members if not isinstance(m.mapping, Trees))
        if preprocess is not None:
            members = tuple(replace(member, preprocess=preprocess) for member in members)
        return replace(self, members=members if self.members else tuple(dict.fromkeys(members)))

    def schedule_for(self, rows: int) -> Schedule:
        """Patience is counted in epochs of about as many steps, whatever the number of rows."""
        if self.schedule is not None:
            return self.schedule
        batch = 256 if rows < 8192 else 512
        steps = max(1, -(-rows // batch))
        return Schedule(epochs=2000, patience=int(np.clip(400 // steps, 15, 100)), batch=batch)


def random_search(
    draws: int,
    seed: int,
    mapping: Mapping = NETWORK,
    preprocess: str = "power",
    **ranges: tuple[float, float],
) -> Ensemble:
    """Members drawn at random on a log scale (Section 5.3), of which the best is taken.

    Ranges may be given for learning_rate, penalty, dropout, width and the prior's strength.
    """
    limits: dict[str, tuple[float, float]] = {
        "learning_rate": (1e-3, 3e-2),
        "penalty": (1e-6, 1e-2),
        "strength": (1e-2, 1.0),
        "dropout": (1e-2, 0.4),
        "width": (2, max(2, mapping.widest)),
    }
    for name in ranges:
        check.one_of("range", name, tuple(limits))
    limits |= ranges
    rng = np.random.default_rng(seed)

    def draw() -> Member:
        found: dict[str, Any] = {}
        for name, (low, high) in limits.items():
            found[name] = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        found["width"] = round(found["width"]) if mapping.widest else None
        return Member(mapping, preprocess, **found)

    return Ensemble(tuple(draw() for _ in range(draws)), combine="best")
