"""Draw docs/images/idea.svg, the picture in the README: `python docs/images/idea.py`.

One village. Above, what each source is worth in surveyed households, which
add; below, what is then known of the electrification rate.
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import ldf
from ldf.plot import FILL, STYLES, ceiling, curves

# Households with and without electricity: what each source is worth.
WORTH = {"prior": (1.0, 1.5), "auxiliary": (1.5, 3.5), "primary": (3, 0)}
WORDS = {
    "prior": "before any data",
    "auxiliary": "given night lights",
    "primary": "given the survey",
    "both": "given both",
}
WITH, WITHOUT = "#e0a100", "#c9ced6"  # households with and without electricity
POINTS = 120


def main() -> None:
    worth = {**WORTH, "both": tuple(np.sum(list(WORTH.values()), axis=0))}
    family = ldf.Binomial()
    sources = {name: family.prior([a], [b]) for name, (a, b) in WORTH.items()}
    added = {name: [sources["prior"], sources[name]] for name in ("auxiliary", "primary")}
    added = {"prior": [sources["prior"]], **added, "both": list(sources.values())}
    known = {name: family.posterior(sum(parts)) for name, parts in added.items()}
    table = curves(known, points=POINTS)
    top = 1.1 * ceiling(table)

    figure = Figure(figsize=(9.2, 3.3), layout="constrained")
    grid = figure.subplots(2, 4, height_ratios=[1, 2.2])
    titles = ["prior", "+  night lights", "+  survey", "=  what is known"]
    for column, (name, (successes, failures)) in enumerate(worth.items()):
        bar, panel = grid[:, column]
        bar.barh([0], [successes], color=WITH, height=0.6)
        bar.barh([0], [failures], left=[successes], color=WITHOUT, height=0.6)
        for place, value in ((successes / 2, successes), (successes + failures / 2, failures)):
            if value:
                bar.text(place, 0, f"{value:g}", ha="center", va="center", fontsize=9)
        bar.set(xlim=(0, sum(worth["both"])), ylim=(-0.5, 0.5))
        bar.set_axis_off()
        bar.set_title(titles[column], loc="left", fontsize=12, fontweight="bold")

        style = STYLES[name]
        density = table.density[name][0]
        panel.plot(table.x, density, clip_on=False, **style)
        if name == "both":
            panel.fill_between(table.x, density, color=style["color"], alpha=FILL, linewidth=0)
        panel.set(xlim=(0, 1), ylim=(0, top), yticks=[], xticks=[0, 0.5, 1])
        panel.set_xticklabels(["0", "50 %", "100 %"])
        panel.spines[["top", "left", "right"]].set_visible(False)
        panel.set_title(WORDS[name], loc="left", fontsize=9, color=style["color"])
    below = {"y": -0.55, "fontsize": 9, "ha": "center", "va": "center"}
    successes, failures = worth["both"]
    grid[0, 0].text(0, s="worth in surveyed households", **below | {"ha": "left"})
    grid[0, 3].text(successes / 2, s="electrified", color="#8a6300", **below)
    grid[0, 3].text(successes + failures / 2, s="not", color="#5a6270", **below)
    grid[1, 0].set_ylabel("density")
    figure.supxlabel("electrification rate θ of one village", fontsize=10)

    path = Path(__file__).with_suffix(".svg")
    with matplotlib.rc_context({"svg.hashsalt": "ldf"}):
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
