"""The main job, end to end, on a simulated district: `python -m ldf.demo`.

A survey has counted the electrified buildings in 854 of 2,236 cells; night lights, building
density, transformers and the distance to the nearest are known in all. The demonstration learns
what these are worth, checks itself on held-out cells beside the regressions one would use instead,
and writes the electrification rate of every cell with its interval. The district is simulated, so
the truth is known and can be compared.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ldf import plot
from ldf.compiled import keep_compiled
from ldf.datasets import district
from ldf.datasets.district import FEATURES, SHAPE, District
from ldf.estimator import Fusion
from ldf.results import Posterior
from ldf.validate import cross_validate

PRIMARY = {"successes": "electrified", "trials": "buildings"}
MASS = 0.9


def write_csv(path: Path, columns: Mapping[str, Any]) -> None:
    """A cell that is missing is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True):
            writer.writerow("" if cell != cell else cell for cell in row)


def in_words(cells: District, table: Mapping[str, Any], post: Posterior) -> str:
    """What is known of one cell that nobody surveyed: where the auxiliary data say most."""
    worth = np.where(np.isnan(cells.buildings), table["n"], 0)
    i = int(np.argmax(worth))
    low, high = (float(end[i]) for end in post.interval(MASS))
    return (
        f"Nobody surveyed the cell in row {cells.row[i]}, column {cells.column[i]}. Its auxiliary "
        f"data are worth\n{table['n'][i]:.1f} surveyed buildings, {table['t'][i]:.1f} of them "
        f"electrified: with probability 90 % its rate is\nbetween {low:.0%} and {high:.0%} "
        f"(in truth {cells.theta[i]:.0%})."
    )


def draw(path: Path, cells: District, post: Posterior) -> None:
    low, high = post.interval(MASS)
    with np.errstate(invalid="ignore"):
        seen = cells.electrified / np.where(cells.buildings > 0, cells.buildings, np.nan)
    panels = {
        "survey: share electrified": seen,
        "rate θ given all data: mean": post.mean(),
        "width of its 90 % interval": high - low,
        "truth (simulated)": cells.theta,
    }
    grids = {title: np.reshape(values, SHAPE) for title, values in panels.items()}
    plot.grids(grids).savefig(path, dpi=150)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ldf.demo", description="The main job.")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for the files")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    out: Path = options.out
    keep_compiled()
    files = {name: out / name for name in ("district.csv", "posterior.csv", "map.png", "model.ldf")}
    try:
        out.mkdir(parents=True, exist_ok=True)
        cells = district(seed=options.seed)
        columns = cells.columns()
        write_csv(files["district.csv"], columns)
        surveyed = int(np.isfinite(cells.buildings).sum())
        print(f"A simulated district: {len(cells.theta):,} cells, {surveyed} of them surveyed.\n")

        model = Fusion("binomial", PRIMARY, list(FEATURES), seed=options.seed).fit(columns)
        print(f"Learned: {model.status_}\n")
        post = model.posterior(columns)
        print(in_words(cells, model.pseudo_observations(columns), post) + "\n")
        low, high = post.interval(MASS)
        hit = ((low <= cells.theta) & (cells.theta <= high))[np.isnan(cells.buildings)]
        print(f"The 90 % intervals hold the truth in {hit.mean():.1%} of the cells not surveyed.\n")

        print(f"{cross_validate(model, columns, folds=5)}\n")

        write_csv(files["posterior.csv"], post.to_frame(MASS))
        model.save(files["model.ldf"])
        draw(files["map.png"], cells, post)
    except (OSError, ImportError) as problem:
        print(f"not everything was written: {problem}", file=sys.stderr)
        return 1
    print("Written:", *(f"  {path}" for path in files.values()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
