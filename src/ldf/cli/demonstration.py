"""The main job, end to end, on the shipped US county homicides of 1988–90.

Every county has a count of homicides and 52 census columns. Most counties are small: a few
homicides in three years, or none, say little of their rate. The demonstration learns what the
columns are worth, checks itself on held-out counties beside the regressions one would use instead,
and writes each county's rate with its interval, and a page with a map to look at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ldf.cli import files, screen
from ldf.datasets import Counties, counties
from ldf.datasets.counties import PRIMARY
from ldf.estimator import Fusion
from ldf.results import Posterior

FILES = ("counties.csv", "rates.csv", "model.ldf", "counties.html")
TITLE = "Homicide rates of US counties, 1988–90"
MASS = 0.9
PER = 100_000  # person-years


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Of all that is random.")] = 0,
) -> None:
    """The main job end to end, on shipped US county homicides.

    Example: ldf demo --out demo
    """
    import pyarrow

    from ldf.plot import Areas
    from ldf.report import write
    from ldf.validate import cross_validate

    known = counties()
    shapes = Areas.of(known.geometry)  # if maps cannot be drawn, say so before two minutes of work
    out.mkdir(parents=True, exist_ok=True)
    table, rates, saved, page = (out / name for name in FILES)
    named = [f"{c}, {s}" for c, s in zip(known.county, known.state, strict=True)]
    frame = pyarrow.table(known.columns() | {"county": named})
    files.write(table, frame)
    none = int((known.homicides == 0).sum())
    print(
        f"{len(known.fips):,} US counties, 1988–90, with {len(known.names)} census columns; "
        f"{none:,} of them had no homicide.\n"
    )
    model = Fusion(
        "poisson",
        PRIMARY,
        list(known.names),
        id="county",
        sensitive=list(known.sensitive),
        seed=seed,
    )
    with screen.remarked(quiet=False, shown=model.columns().shown):
        with screen.progress("learning", quiet=False) as tell:
            model.fit(frame, progress=tell)
        post = model.posterior(frame)
        files.write(rates, post.to_frame(MASS))
        model.save(saved)
        worth = model.pseudo_observations(frame)
        print(f"Learned: {model.status_}\n\n{in_words(known, worth, post)}\n")
        with screen.progress("validating", quiet=False) as tell:
            checked = cross_validate(model, frame, folds=5, progress=tell)
        print(f"{checked}\n")
        write(model, frame, page, validation=checked, geometry=shapes, mass=MASS, title=TITLE)
    print("Written:", *(f"  {path}" for path in (table, rates, saved, page)), sep="\n")
    print(f"Open {page} in a browser.")


def in_words(known: Counties, worth: Any, post: Posterior) -> str:
    """What is known of the county with the fewest people."""
    i = int(np.argmin(known.person_years))
    low, high = (PER * float(end[i]) for end in post.interval(MASS))
    t, n = worth["t"][i].as_py(), worth["n"][i].as_py()
    return (
        f"{known.county[i]} County, {known.state[i]}, had {known.homicides[i]:,} homicides in "
        f"{known.person_years[i]:,} person-years, which says next to\nnothing. Its census columns "
        f"are worth {n:,.0f} person-years, with {t:.1f} homicides: with\n"
        f"probability 90 % its rate is between {low:.1f} and {high:.1f} per {PER:,} person-years."
    )
