"""Two models unit by unit: which is surer, and which predicts better.

Points are coloured by the empirical rate of the unit. Shares of units leave out those that cannot
be compared, and count a tie as half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf import assess, check
from ldf.check import DataError
from ldf.plot.colours import colouring
from ldf.plot.figure import INK, MISSING, SMALL, bare, colour_bar, given_axis
from ldf.plot.roles import names_of
from ldf.plot.table import Table, column, data_frame

GOLDEN = (np.sqrt(5) - 1) / 2
BOX = {"color": INK, "linewidth": 1.3}


# --- entropies ----------------------------------------------------------------------------------

FAR = 8.0  # times as far as nine tenths of the units are apart


@dataclass(frozen=True, eq=False)
class Entropies(Table):
    """One row a unit, in nats."""

    ldf: np.ndarray
    baseline: np.ndarray
    rate: np.ndarray  # empirical; NaN where nothing was seen

    @property
    def surer(self) -> float:
        """The share of units of which LDF is surer."""
        return float(assess.wins(self.baseline - self.ldf).mean())

    @classmethod
    def of(cls, ldf: Any, baseline: Any, rate: Any = None) -> Entropies:
        """Of two posteriors of the same units."""
        mine, theirs = (np.atleast_1d(np.asarray(of.entropy(), float)) for of in (ldf, baseline))
        mine, theirs = np.broadcast_arrays(mine, theirs)
        for name, values in (("ldf", mine), ("baseline", theirs)):
            remedy = "compare with a model that has a density: a point mass has none"
            check.refuse(name, values, ~np.isfinite(values), "is not finite", remedy)
        return cls(mine, theirs, column("rate", rate, len(mine)))


def entropies(
    table: Entropies,
    *,
    names: Mapping[str, str] | None = None,
    rate: str = "empirical rate",
    limits: tuple[float, float] | None = None,
    axis: Any = None,
) -> Any:
    """Draw the baseline's entropy against LDF's, a point a unit. Above the diagonal LDF is surer.
    Where few units are very far from the others, scales are logarithmic beyond one.

    The colour scale spans `limits`, or the rates there are. Returns the figure.
    """
    axis = given_axis(axis, (5.4, 4.0))
    words = names_of(names)
    drawn = _scatter(axis, table.ldf, table.baseline, table.rate, limits, size=15)
    both = np.concatenate([table.ldf, table.baseline])
    room = 0.04 * max(np.ptp(both), 1e-9)
    ends = both.min() - room, both.max() + room
    if np.ptp(both) > FAR * np.ptp(np.quantile(both, (0.05, 0.95))):
        # Near-certain units are far out: on this scale the others are not one dot.
        ends = 1.3 * both.min(), max(1.3 * both.max(), 1.0)
        axis.set_xscale("symlog", linthresh=1.0)
        axis.set_yscale("symlog", linthresh=1.0)
    axis.plot(ends, ends, color=INK, linewidth=1, zorder=1)
    axis.set(xlim=ends, ylim=ends, aspect="equal")
    axis.set_xlabel(f"entropy of θ, {words['ldf']} (nats)")
    axis.set_ylabel(f"entropy of θ, {words['compound']} (nats)")
    share = table.surer
    _inside(axis, 0.03, 0.97, f"{share:.1%} of units:\n{words['ldf']} is surer", "left", "top")
    theirs = f"{1 - share:.1%} of units:\n{words['compound']} is surer"
    _inside(axis, 0.97, 0.03, theirs, "right", "bottom")
    _rate_bar(axis, drawn, rate, table.rate)
    bare(axis)
    return axis.figure


# --- differences of log-likelihoods -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Differences(Table):
    """One row a comparison and unit."""

    comparison: np.ndarray
    difference: np.ndarray  # log p − log q, in nats: above zero the first model is better
    rate: np.ndarray

    @property
    def comparisons(self) -> list[str]:
        return list(dict.fromkeys(self.comparison.tolist()))

    def summary(self) -> list[dict[str, Any]]:
        """One dictionary a comparison: the share of units that are better, quartiles, mean and its
        standard error."""
        rows = []
        for name in self.comparisons:
            values = self.difference[self.comparison == name]
            found = assess.score_difference(values, np.zeros(len(values)))
            lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75), method="linear")
            rows.append(
                {
                    "comparison": name,
                    "better": found.better,
                    "lower_quartile": float(lower),
                    "median": float(median),
                    "upper_quartile": float(upper),
                    "mean": found.mean,
                    "standard_error": found.standard_error,
                    "units": found.units,
                }
            )
        return rows

    def summary_frame(self) -> Any:
        rows = self.summary()
        return data_frame({name: [row[name] for row in rows] for name in rows[0]})

    @classmethod
    def of(cls, scores: Mapping[str, tuple[Any, Any]], rate: Any = None) -> Differences:
        """From the log scores of two models, (log p, log q) by the comparison's name. Units with a
        missing score (nothing was seen) are left out."""
        if not scores:
            raise ValueError("there is no comparison: give one, as in {'LDF − …': (log p, log q)}")
        parts = []
        for name, (log_p, log_q) in scores.items():
            p, q = (np.asarray(of, float) for of in (log_p, log_q))
            if p.shape != q.shape or p.ndim != 1:
                problem = f"has scores of shape {p.shape} and {q.shape}"
                raise DataError("scores", None, name, problem, "give one score a unit and model")
            there = np.isfinite(p) & np.isfinite(q)
            gain = np.where(there, p - np.where(there, q, 0.0), np.nan)
            # What one model holds for impossible is infinitely better under the other.
            gain = np.where(np.isneginf(q) & np.isfinite(p), np.inf, gain)
            gain = np.where(np.isneginf(p) & np.isfinite(q), -np.inf, gain)
            kept = ~np.isnan(gain)
            parts.append(
                (np.full(kept.sum(), name), gain[kept], column("rate", rate, len(p))[kept])
            )
        return cls(*(np.concatenate(of) for of in zip(*parts, strict=True)))


def differences(
    table: Differences,
    *,
    rate: str = "empirical rate",
    limits: tuple[float, float] | None = None,
    symmetric_log: bool | None = None,
    axis: Any = None,
) -> Any:
    """Draw differences of log-likelihoods: a box and all units beside it, a comparison each.

    The box is from quartile to quartile with a line at the median; whiskers end at the furthest
    units within one and a half times its height. The numbers stand below, with the share of units
    above zero. The axis is linear near zero and logarithmic beyond, if
    `symmetric_log` or else if the range asks for it. Returns the figure.
    """
    names = table.comparisons
    axis = given_axis(axis, (2.2 + 1.9 * len(names), 4.2))
    known = table.difference[np.isfinite(table.difference)]
    reach = np.abs(known).max() if known.size else 1.0
    core = max(float(np.quantile(np.abs(known), 0.75)), 1e-9) if known.size else 1.0
    if symmetric_log is None:
        symmetric_log = bool(reach > 10 * core)
    if symmetric_log:
        axis.set_yscale("symlog", linthresh=float(f"{2 * core:.1g}"), linscale=1.5)
        axis.yaxis.set_major_formatter("{x:g}")
    axis.axhline(0, color="#9a9a9a", linewidth=0.9, zorder=0)
    shown = np.clip(table.difference, known.min(), known.max()) if known.size else known
    at = np.array([names.index(name) for name in table.comparison.tolist()], float)
    # Evenly spread instead of random, so that a picture is the same each time.
    spread = (np.arange(len(at)) * GOLDEN) % 1 - 0.5
    drawn = _scatter(axis, at + 0.22 + 0.34 * spread, shown, table.rate, limits, size=11)
    rows = table.summary()
    for place, row in enumerate(rows):
        _box(axis, place - 0.16, row, shown[at == place])
    axis.set_xticks(range(len(names)), [_words(row) for row in rows], fontsize=SMALL)
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_ylabel("difference of log-likelihood (nats)")
    _rate_bar(axis, drawn, rate, table.rate)
    bare(axis, "top", "right", "bottom")
    return axis.figure


def _words(row: dict[str, Any]) -> str:
    low, middle, high = (
        f"{row[name]:+.2f}".replace("-", "−")
        for name in ("lower_quartile", "median", "upper_quartile")
    )
    above = f"above zero: {row['better']:.1%}"
    return f"{row['comparison']}\n{above}\nmedian {middle}\nquartiles {low} and {high}"


def _box(axis: Any, x: float, row: dict[str, Any], values: np.ndarray) -> None:
    """From quartile to quartile, with whiskers as Tukey has them."""
    from matplotlib.patches import Rectangle

    lower, median, upper = row["lower_quartile"], row["median"], row["upper_quartile"]
    reach = 1.5 * (upper - lower)
    low = values[values >= lower - reach].min(initial=lower)
    high = values[values <= upper + reach].max(initial=upper)
    axis.plot([x, x], [low, lower], label="whisker", **BOX)
    axis.plot([x, x], [upper, high], label="whisker", **BOX)
    box = Rectangle((x - 0.08, lower), 0.16, upper - lower, facecolor="white", edgecolor=INK)
    axis.add_patch(box)
    axis.plot([x - 0.08, x + 0.08], [median] * 2, label="median", **BOX | {"linewidth": 2.4})


# --- shared -------------------------------------------------------------------------------------


def _scatter(
    axis: Any,
    x: np.ndarray,
    y: np.ndarray,
    rate: np.ndarray,
    limits: tuple[float, float] | None,
    size: float,
) -> Any:
    """Points by rate; grey where there is none."""
    of = colouring(rate, limits)
    style = {"s": size, "linewidth": 0.2, "edgecolor": "#444444"}
    there = np.isfinite(rate)
    axis.scatter(x[~there], y[~there], color=MISSING, zorder=2, **style)
    colours = {"c": of.values[there], "norm": of.norm, "cmap": of.palette}
    return axis.scatter(x[there], y[there], zorder=2.5, **colours, **style)


def _rate_bar(axis: Any, drawn: Any, label: str, rate: np.ndarray) -> None:
    if np.isfinite(rate).any():
        colour_bar([axis], drawn, label, shrink=0.8, aspect=28)


def _inside(axis: Any, x: float, y: float, text: str, across: str, up: str) -> None:
    style = {"ha": across, "va": up, "fontsize": SMALL, "color": INK, "zorder": 6}
    behind = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2}
    axis.text(x, y, text, transform=axis.transAxes, bbox=behind, **style)
