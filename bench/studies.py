"""The paper's two studies, each on shipped data and on real data, and their claims as one page.

Runs what `ldf reproduce electrification` and `ldf reproduce homicide` run: on the simulated
district and the counties of 1988–90, then on Malawi's survey and the counties of 2010 from the data
folder, written in the form that docs/data.md asks for. Every figure and table is in the folder;
the page holds the tables of claims.

    python bench/studies.py [--data ../shared/data] [--out build/studies] [--page FILE] [--only a,b]
"""

from __future__ import annotations

import argparse
import csv
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from quality import FOUR

from ldf.studies.claims import Claim, as_markdown
from ldf.studies.protocol import Protocol
from ldf.studies.reproduce import reproduce_electrification, reproduce_homicide

# The commands' own defaults.
ELECTRIFICATION = Protocol(folds=10, restarts=10, draws=4)
HOMICIDE = Protocol(folds=10, restarts=2, draws=2)
TITLES = {
    "district": "Electrification, the simulated district",
    "malawi": "Electrification, Malawi's survey with its 24 columns",
    "malawi_four": "Electrification, Malawi's survey with four columns like the paper's",
    "malawi_paper": "Electrification, Malawi's survey with four columns and what the paper prints",
    "counties": "Homicide rates, the counties of 1988–90",
    "counties_2010": "Homicide rates, the counties of 2010",
}


def malawi(folder: Path, out: Path, four: bool) -> Path:
    table = pd.read_csv(folder / "malawi_electrification.csv").rename(columns={"ea": "id"})
    if four:
        table = table[["id", "lat", "lon", "electrified", "households", *FOUR]]
    table.to_csv(out / "malawi.csv", index=False)
    return out / "malawi.csv"


def counties_2010(folder: Path, out: Path) -> Path:
    table = pd.read_csv(folder / "homicide.csv", dtype={"fips": str})
    others = pd.read_csv(folder / "homicide_other_years.csv", dtype={"fips": str})
    for year, some in others.groupby("year"):
        words = {"homicides": f"homicides_{year}", "ucr_pop": f"population_{year}"}
        table = table.merge(some[["fips", *words]].rename(columns=words), "left", "fips")
    table.to_csv(out / "counties_2010.csv", index=False)
    return out / "counties_2010.csv"


def run(name: str, folder: Path, out: Path) -> None:
    place = out / name
    shutil.rmtree(place, ignore_errors=True)
    if name == "district":
        reproduce_electrification(place, protocol=ELECTRIFICATION)
    elif name.startswith("malawi"):
        printed = name.endswith("paper")
        file = malawi(folder, out, four=name != "malawi")
        reproduce_electrification(place, file, id="id", printed=printed, protocol=ELECTRIFICATION)
    elif name == "counties":
        reproduce_homicide(place, protocol=HOMICIDE)
    else:
        reproduce_homicide(place, counties_2010(folder, out), protocol=HOMICIDE)


def section(name: str, out: Path) -> str:
    with (out / name / "claims.csv").open(encoding="utf-8", newline="") as file:
        claims = [Claim(**row) for row in csv.DictReader(file)]
    return f"**{TITLES[name]}**\n\n{as_markdown(claims)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/studies"))
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    parser.add_argument("--only", default=",".join(TITLES), help="some of them; others are kept")
    options: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only.split(","):
        begin = time.perf_counter()
        run(name, options.data, options.out)
        print(f"{name}: {time.perf_counter() - begin:.0f} s\n", flush=True)
    done = [name for name in TITLES if (options.out / name / "claims.csv").exists()]
    text = "\n".join(section(name, options.out) for name in done)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
