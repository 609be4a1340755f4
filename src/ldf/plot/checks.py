"""Whether predictives hold what they promise: coverage at many levels, and the PIT.

Both tables are made of what `ldf.assess` computes. Whole numbers have no set with exactly 90 %, so
coverage is drawn against what the sets really hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats

from ldf import assess
from ldf.plot.figure import INK, SMALL, bare, given_axis, given_panels
from ldf.plot.roles import ROLES, check_models, in_order, names_of
from ldf.plot.table import Table

LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2))
BINS = 10
SURE = 0.95  # with which uniform counts stay within their band, all bins together


@dataclass(frozen=True, eq=False)
class Calibration(Table):
    """One row a model and level."""

    model: np.ndarray
    mass: np.ndarray  # asked for
    expected: np.ndarray  # what the sets hold
    observed: np.ndarray  # the share of units inside
    standard_error: np.ndarray
    units: np.ndarray

    @classmethod
    def of(
        cls,
        models: Mapping[str, Any],
        y: Any,
        masses: Sequence[float] = LEVELS,
        counted: Any = None,
        group: Any = None,
    ) -> Calibration:
        """Of predictives by role; `counted` and `group` as in `ldf.assess.coverage`."""
        check_models(models)
        parts = []
        for role, of in models.items():
            law = getattr(of, "distribution", of)
            found = assess.coverage(law, y, masses, counted, group)
            role_of = np.full(len(found.mass), role)
            shares = found.expected, found.observed, found.standard_error
            parts.append((role_of, found.mass, *shares, found.units))
        return cls(*(np.concatenate(of) for of in zip(*parts, strict=True)))


def calibration(
    table: Calibration, *, names: Mapping[str, str] | None = None, axis: Any = None
) -> Any:
    """Draw observed against expected coverage, a line a model, with bands of two standard errors.

    Above the diagonal a model is too cautious, below it is too sure. Returns the figure.
    """
    axis = given_axis(axis, (4.6, 4.0))
    axis.plot([0, 1], [0, 1], color=INK, linewidth=1, zorder=1)
    words, roles = names_of(names), in_order(table.model)
    for role in roles:
        some, look = table.model == role, ROLES[role]
        x, y, error = table.expected[some], table.observed[some], table.standard_error[some]
        band = {"facecolor": look.colour, "alpha": 0.15, "linewidth": 0}
        axis.fill_between(x, y - 2 * error, y + 2 * error, **band)
        style = look.line() | {"marker": look.marker, "markersize": 3.5}
        axis.plot(x, y, label=words[role], **style)
    axis.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axis.set_xlabel("probability that the sets hold")
    axis.set_ylabel("share of units inside")
    grey = {"transform": axis.transAxes, "fontsize": SMALL, "color": "#707070"}
    axis.text(0.97, 0.05, "below: too sure of itself", ha="right", **grey)
    title = "bands: ± 2 standard errors"
    place = {"loc": "upper left", "frameon": False, "fontsize": SMALL, "title": title}
    axis.legend(title_fontsize=SMALL, alignment="left", handlelength=2.6, **place)
    bare(axis)
    return axis.figure


@dataclass(frozen=True, eq=False)
class Pit(Table):
    """One row a model and bin."""

    model: np.ndarray
    left: np.ndarray
    right: np.ndarray
    count: np.ndarray
    lower: np.ndarray  # uniform values would have counts between these, in all bins together
    upper: np.ndarray

    @classmethod
    def of(
        cls, models: Mapping[str, Any], y: Any, seed: Any, counted: Any = None, bins: int = BINS
    ) -> Pit:
        """Of predictives by role, as `ldf.assess.pit` has it."""
        check_models(models)
        values = {}
        for role, of in models.items():
            values[role] = assess.pit(getattr(of, "distribution", of), y, seed, counted)
        return cls.of_values(values, bins)

    @classmethod
    def of_values(cls, values: Mapping[str, Any], bins: int = BINS) -> Pit:
        """Of probability integral transforms that are known already, by role."""
        check_models(values)
        edges = np.linspace(0, 1, bins + 1)
        parts = []
        for role, given in values.items():
            u = np.ravel(given)
            # Each bin strays with so small a chance that together they rarely do.
            tail = (1 - SURE) / bins / 2
            low, high = scipy.stats.binom.ppf((tail, 1 - tail), u.size, 1 / bins)
            ends = np.full(bins, low), np.full(bins, high)
            count = np.histogram(u, edges)[0]
            parts.append((np.full(bins, role), edges[:-1], edges[1:], count, *ends))
        return cls(*(np.concatenate(of) for of in zip(*parts, strict=True)))


def pit(table: Pit, *, names: Mapping[str, str] | None = None, axes: Any = None) -> Any:
    """Draw histograms of the PIT, a panel a model, with the band that uniform values stay within.

    High at both ends: too sure. High in the middle: too cautious. Returns the figure.
    """
    roles, words = in_order(table.model), names_of(names)
    panels = given_panels(axes, len(roles), 4, (3.0, 2.3))
    top = 1.08 * max(table.count.max(), table.upper.max())
    for axis, role in zip(panels, roles, strict=True):
        some, look = table.model == role, ROLES[role]
        left, width = table.left[some], (table.right - table.left)[some]
        style = {"facecolor": "white", "edgecolor": look.colour, "hatch": look.hatch}
        axis.bar(left, table.count[some], width, align="edge", **style)
        low, high = table.lower[some][0], table.upper[some][0]
        axis.axhspan(low, high, color="#808080", alpha=0.35, linewidth=0, zorder=3)
        axis.set(xlim=(-0.01, 1.01), ylim=(0, top))
        axis.set_title(words[role], fontsize=10, loc="left", color=look.colour)
        axis.set_xlabel("PIT")
        bare(axis)
    panels[0].set_ylabel("units")
    note = f"grey: uniform values stay within, with probability {SURE:.0%}"
    panels[0].figure.supxlabel(note, fontsize=SMALL, color="#606060")
    return panels[0].figure
