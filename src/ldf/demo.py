"""Fuse a small survey with night lights, for six made-up villages: `python -m ldf.demo`.

What the night lights are worth is given by hand here, in surveyed households. The rest is the
package: a prior, the lights and the survey are statistics, and they add.
"""

from __future__ import annotations

import argparse
import csv
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ldf
from ldf import plot
from ldf.distributions import Beta


class Village(NamedTuple):
    name: str
    surveyed: int  # households asked
    electrified: int  # of them, with electricity
    lights_households: float  # what the night lights are worth: so many households ...
    lights_electrified: float  # ... so many of them with electricity


VILLAGES = (
    Village("Crossroads", 20, 17, 6.0, 5.1),
    Village("Riverbend", 8, 2, 4.5, 1.4),
    Village("Old Mill", 3, 3, 5.0, 1.5),
    Village("Tea Farm", 40, 11, 3.0, 1.2),
    Village("Hillside", 0, 0, 3.2, 2.9),
    Village("Lakeview", 0, 0, 0.6, 0.3),
)
PRIOR = {"successes": 1.0, "failures": 1.5}
MASS = 0.9
HALF = 0.5

WORDS = {
    "prior": "before any data",
    "auxiliary": "given night lights",
    "primary": "given the survey",
    "both": "given both",
    "observed": "share seen in the survey",
}
COLUMNS = (
    *("village", "surveyed", "electrified", "lights_households", "lights_electrified"),
    *("given", "mean", "sd", "lower", "upper", "exceeds_half"),
)


def fuse(villages: Sequence[Village]) -> dict[str, Beta]:
    """The distribution of each village's electrification rate, before and after each source."""
    _, surveyed, electrified, lights_households, lights_electrified = zip(*villages, strict=True)
    family, pseudo = ldf.Binomial(), ldf.Binomial(effective=True)
    survey = family.statistic(successes=electrified, trials=surveyed)
    lights = pseudo.statistic(successes=lights_electrified, trials=lights_households)
    prior = family.prior(**PRIOR) + survey.zero()  # the same for every village
    return {
        "prior": family.posterior(prior),
        "auxiliary": family.posterior(prior + lights),
        "primary": family.posterior(prior + survey),
        "both": family.posterior(prior + lights + survey),
    }


def rows(villages: Sequence[Village], known: dict[str, Beta]) -> list[dict[str, object]]:
    """One row a village and kind of knowledge: what `posteriors.csv` holds."""
    table = []
    for i, village in enumerate(villages):
        for given, rates in known.items():
            rate = rates[i]
            numbers = (rate.mean(), rate.sd(), *rate.interval(MASS), rate.exceeds(HALF))
            values = (*village, given, *map(float, numbers))
            table.append(dict(zip(COLUMNS, values, strict=True)))
    return table


# --- words --------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _chance(probability: float) -> str:
    if probability < 0.01 or probability > 0.99:
        return "< 1 %" if probability < 0.01 else "> 99 %"
    return _percent(probability)


def text_table(villages: Sequence[Village], known: dict[str, Beta]) -> str:
    """Mean and interval of every village's rate, in plain text."""
    above = ["", "", "lights are", "before any", "given night", "given", "given", "chance of"]
    header = ["village", "survey", "worth", "data", "lights", "the survey", "both", "θ > 50 %"]
    cells = []
    for i, village in enumerate(villages):
        survey = f"{village.electrified} of {village.surveyed}" if village.surveyed else "none"
        lights = f"{village.lights_electrified:.1f} of {village.lights_households:.1f}"
        knowledge = []
        for rates in known.values():
            lower, upper = rates[i].interval(MASS)
            knowledge.append(f"{_percent(rates[i].mean())}  {100 * lower:2.0f}–{100 * upper:.0f}")
        exceeds = _chance(float(known["both"][i].exceeds(HALF)))
        cells.append([village.name, survey, lights, *knowledge, exceeds])
    widths = [max(map(len, column)) for column in zip(above, header, *cells, strict=True)]
    lines = [above, header, ["─" * width for width in widths], *cells]
    padded = ([c.ljust(w) for c, w in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def in_words(village: Village, before: Beta, after: Beta) -> str:
    """One village's row in sentences."""
    name, surveyed, electrified, households, with_power = village
    asked = (
        "Nobody was asked there. The lights alone move"
        if surveyed == 0
        else f"Of {surveyed} households asked, {electrified} have electricity. Together they move"
    )
    lower, upper = (_percent(end) for end in after.interval(MASS))
    text = (
        f"In {name} the night lights are worth {households} surveyed households, {with_power} of "
        f"them electrified. {asked} the expected rate from {_percent(before.mean())} to "
        f"{_percent(after.mean())}; with probability 90 % it lies between {lower} and {upper}."
    )
    together = text.replace(" %", "\N{NO-BREAK SPACE}%")  # no line begins with a % sign
    return textwrap.fill(together, 96).replace("\N{NO-BREAK SPACE}", " ")


# --- files --------------------------------------------------------------------------------------


def write_csv(path: Path, table: Sequence[dict[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def write_figure(
    paths: Sequence[Path], villages: Sequence[Village], known: dict[str, Beta]
) -> None:
    labels = [
        f"{v.name}\n"
        + (f"survey {v.electrified} of {v.surveyed}" if v.surveyed else "not surveyed")
        + f", lights {v.lights_electrified:.1f} of {v.lights_households:.1f}"
        for v in villages
    ]
    observed = [v.electrified / v.surveyed if v.surveyed else np.nan for v in villages]
    figure = plot.posteriors(
        plot.curves(known),
        labels,
        observed=observed,
        names=WORDS,
        quantity="electrification rate θ",
    )
    for path in paths:
        figure.savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ldf.demo", description="Six made-up villages.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the files")
    out = parser.parse_args(arguments).out

    known = fuse(VILLAGES)
    print("What share of households has electricity? Six made-up villages: the expected rate")
    print("and the interval, in per cent, that holds it with probability 90 %.\n")
    print(text_table(VILLAGES, known) + "\n")
    for i in (4, 2):  # one without a survey, one where survey and lights disagree
        print(in_words(VILLAGES[i], known["prior"][i], known["both"][i]) + "\n")

    pictures = [out / "posteriors.png", out / "posteriors.svg"]
    numbers = out / "posteriors.csv"
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_csv(numbers, rows(VILLAGES, known))
        write_figure(pictures, VILLAGES, known)
    except (OSError, ImportError) as problem:
        print(f"not everything was written: {problem}", file=sys.stderr)
        return 1
    print("Written:", *(f"  {path}" for path in [*pictures, numbers]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
