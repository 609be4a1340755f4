"""How well the defaults predict held-out units on real data, beside what people use.

For each set of the data folder and each way of splitting it (random folds; folds of whole states,
regions or blocks of land where there are some), all models are fitted on the same folds. The
regressions get power-transformed columns and find their penalty by training rows that a fit has not
seen; ldf's members get power-transformed columns or standardised ones.

    ldf   the default ensemble
    M0    intercept only
    GLM   the plain regression
    M1    the compound regression with one precision (the paper's baseline)
    M2    the same with a log-linear precision
    M4    boosted trees for the mean, with a precision that varies (`boosted.py`)

They are scored by the mean log-predictive of a held-out unit. The lead is ldf minus the best of the
others, with the standard error of the paired difference, by groups where there are some. Then,
whether the sets that ldf gives hold what they should, and whether its randomised PIT is uniform.
It ends with an error if a lead is below −1 standard error, if the mean lead is not positive, or if
a score is not a number.

    python bench/quality.py [--data ../shared/data] [--sets a,b] [--rows 20000] [--folds 5]
                            [--out numbers.json] [--page docs/quality-measured.md]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from boosted import trees
from machine import measured_with
from scipy.stats import norm

import ldf
from ldf import assess, folds
from ldf.baselines import NAMES
from ldf.data import Columns, Data
from ldf.validate import Answer, answer

# Which rows are neighbours: a column, or two coordinates that are cut into blocks.
REGIONS: dict[str, Any] = {
    "homicide": "state",
    "homicide_nat1990": "state",
    "homicide_panel": "statefips",
    "malawi_electrification": ("lat", "lon", 0.75),
    "malawi_lighting": ("lat", "lon", 0.75),
    "tz_malaria": ("Lat", "Long", 1.5),
    "us_election2020": "state_name",
    "unemployment2009": "state",
    "flights_late": "month",
    "birthdays": "state",
    "melanoma_eu": "region",
    "chem97_schools": "lea",
}
FOUR = ["ntl_dmsp", "log_popdens", "dist_road", "dist_boma"]
SHORT = {"ldf": "ldf", "intercept": "M0"}
MODELS = ("ldf", "M0", "GLM", "M1", "M2", "M4")
PACKAGES = "ldf", "jax", "numpy", "scipy", "scikit-learn", "xgboost-cpu"


class Set(NamedTuple):
    """One table and what its columns are."""

    name: str
    frame: pd.DataFrame
    family: Any
    columns: Columns
    region: np.ndarray | None


def load(folder: Path, name: str, rows: int) -> Set:
    """A set of the registry. Its name may end in "__four": with four columns only; or in
    "__nested": class counts by the nested family, the rarest class first."""
    which, _, variant = name.partition("__")
    about = json.loads((folder / "registry.json").read_text())[which]
    file = folder / about["file"]
    frame = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    if len(frame) > rows:
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
    y, n, kind = about["y"], about["n"], about["likelihood"]
    family, primary = {
        "binomial": (ldf.Binomial(), {"successes": y, "trials": n}),
        "poisson": (ldf.Poisson(), {"count": y, "exposure": n}),
        "multinomial": (ldf.Multinomial(), {"counts": y}),
        "gaussian": (ldf.Gaussian(variance=about.get("sigma2")), {"mean": y, "n": n}),
    }[kind]
    if variant == "nested":
        rarest = frame[y].sum().sort_values().index
        family, primary = ldf.NestedMultinomial(), {"counts": list(rarest)}
    region = REGIONS.get(which)
    if isinstance(region, tuple):
        a, b, size = region
        blocks = (frame[[a, b]] // size).astype(int)
        region = (blocks[a].astype(str) + " " + blocks[b].astype(str)).to_numpy()
    elif region is not None:
        region = frame[region].astype(str).to_numpy()
    features = FOUR if variant == "four" else about["features"]
    columns = Columns(primary=primary, auxiliary=tuple(features))
    return Set(name, frame, family, columns, region)


def trees_answer(data: Data, split: folds.Split, seed: int) -> Answer:
    """M4: one fold after the other, since each has columns of its own."""
    parts = []
    for training, held in zip(split.training, split.held, strict=True):
        spec, table = trees(data, training & data.seen, seed)
        parts.append(answer(spec, table, folds.Split(training[None], held[None]), seed))
    score = np.nanmax(np.stack([part.log_score for part in parts]), 0)
    return Answer(parts[0].learned, None, score)


class Task(NamedTuple):
    """One split of one set."""

    folder: Path
    name: str
    blocked: bool
    rows: int
    folds: int


def measured(task: Task) -> dict[str, Any]:
    return run(load(task.folder, task.name, task.rows), task.blocked, task.folds)


def run(of: Set, blocked: bool, number: int, seed: int = 0) -> dict[str, Any]:
    """One set, one way of splitting it."""
    begin = time.perf_counter()
    frame = of.frame.assign(**{"the region": of.region}) if of.region is not None else of.frame
    model = ldf.Fusion(
        of.family,
        of.columns.primary,
        list(of.columns.auxiliary),
        group="the region" if blocked else None,
        seed=seed,
    )
    if blocked and of.region is not None:
        number = min(number, len(set(of.region)))
    cv = ldf.cross_validate(model, frame, number)
    plain, compound = NAMES[type(cv.data.family).__name__]
    short = {**SHORT, plain: "GLM", compound: "M1", f"{compound}, log-linear count": "M2"}
    cv.answers["M4"] = trees_answer(cv.data, cv.split, seed)
    scores = {short.get(name, name): a.log_score[cv.counted] for name, a in cv.answers.items()}
    region = None if of.region is None else of.region[cv.counted]
    others = {name: values.mean() for name, values in scores.items() if name != "ldf"}
    best = max(others, key=lambda name: others[name])
    ahead = assess.score_difference(scores["ldf"], scores[best], region)
    pit = assess.uniformity(cv.pit("ldf", seed)).rows()
    entropy = (
        {n: np.asarray(cv.posterior(n).entropy()) for n in ("ldf", compound)}
        if (not cv.units.components)
        else None
    )
    return {
        "set": of.name.replace("__", ", "),
        "split": "blocked" if blocked else "random",
        "units": int(cv.counted.sum()),
        "columns": cv.data.x.shape[1],
        **{name: float(values.mean()) for name, values in scores.items()},
        "best": best,
        "ahead": ahead.mean,
        "error": ahead.standard_error,
        "better_M1": assess.score_difference(scores["ldf"], scores["M1"]).better,
        "better_GLM": assess.score_difference(scores["ldf"], scores["GLM"]).better,
        "lower_entropy": None if entropy is None else float(
            np.mean(entropy["ldf"] < entropy[compound])),
        "coverage": cv.coverage("ldf"),
        "pit": pit,
        "seconds": time.perf_counter() - begin,
    }  # fmt: skip


def show(row: dict[str, Any]) -> None:
    scores = "  ".join(f"{name} {row[name]:.4f}" for name in MODELS)
    print(f"{row['set']} ({row['split']}, {row['units']:,} units, {row['columns']} columns)")
    print(f"  {scores}")
    z = row["ahead"] / row["error"]
    print(f"  ahead of {row['best']} by {row['ahead']:+.4f} ± {row['error']:.4f} ({z:+.1f} SE)")
    cover = "  ".join(
        f"{c['mass']:.0%}{' ' + str(c['component']) if 'component' in c else ''}: "
        f"{c['observed']:.3f} of {c['expected']:.3f} ({c['z']:+.1f})"
        for c in row["coverage"]
    )
    print(f"  coverage {cover}")
    worst = min(row["pit"], key=lambda r: r["p_value"])
    print(f"  PIT: smallest p {worst['p_value']:.3f} ({worst['test']}); {row['seconds']:.0f} s")
    print(flush=True)


def beyond(rows: list[dict[str, Any]]) -> str:
    """How many checks of coverage are beyond two standard errors, and how many by chance."""
    checks: dict[str, list[float]] = {}
    for row in rows:
        kind = "single numbers"
        if "component" in row["coverage"][0]:
            by = "nested classes" if "nested" in row["set"] else "a Dirichlet"
            kind = f"class counts by {by}"
        checks.setdefault(kind, []).extend(check["z"] for check in row["coverage"])
    told = [
        f"{(np.abs(z) > 2).sum()} of {len(z)} of {kind} ({2 * norm.sf(2) * len(z):.1f} by chance)"
        for kind, z in checks.items()
    ]
    return f"Checks beyond two standard errors: {'; '.join(told)}."


def failures(rows: list[dict[str, Any]]) -> list[str]:
    """What the bench holds the defaults to, and they do not reach."""
    found = []
    for row in rows:
        where = f"{row['set']} ({row['split']})"
        wrong = [name for name in MODELS if not np.isfinite(row[name])]
        if wrong:
            found.append(f"{where}: the score of {', '.join(wrong)} is not a number")
        elif row["ahead"] < -row["error"]:
            behind = f"{-row['ahead']:.4f} ± {row['error']:.4f}"
            found.append(f"{where}: ldf is {behind} behind {row['best']}")
    if not np.mean([row["ahead"] for row in rows]) > 0:
        found.append("ldf is not ahead on average")
    return found


def page(rows: list[dict[str, Any]], took: str) -> str:
    """The numbers as tables in Markdown."""
    lines = [
        measured_with(*PACKAGES),
        "",
        "By how much ldf leads the best of the others, in mean log score of a held-out unit:",
        "",
        "| set | folds | units | columns | best other | lead | in SE |",
        "|:--|:--|--:|--:|:--|--:|--:|",
    ]
    for row in rows:
        lead = f"{row['ahead']:+.4f} ± {row['error']:.4f} | {row['ahead'] / row['error']:+.1f}"
        shape = f"{row['units']:,} | {row['columns']}"
        lines.append(f"| {row['set']} | {row['split']} | {shape} | {row['best']} | {lead} |")
    z = np.array([row["ahead"] / row["error"] for row in rows])
    gain = np.mean([row["ahead"] for row in rows])
    lines += [
        "",
        f"Over {len(rows)} splits the lead is {gain:+.4f} on average; the smallest is "
        f"{z.min():+.1f} SE; in {int((z < 0).sum())} it is negative. The scores themselves:",
        "",
        "| set | folds | " + " | ".join(MODELS) + " |",
        "|:--|:--|" + "--:|" * len(MODELS),
    ]
    for row in rows:
        scores = " | ".join(f"{row[name]:.4f}" for name in MODELS)
        lines.append(f"| {row['set']} | {row['split']} | {scores} |")
    lines += [
        "",
        "Observed share of held-out units inside ldf's predictive sets minus what these sets "
        "really hold, in points, and in standard errors (by region for blocked folds); the "
        "smallest of the p-values of three tests that the randomised PIT is uniform; the share of "
        "units that ldf predicts better than M1 and than GLM, and whose posterior has a lower "
        "entropy than M1's:",
        "",
        "| set | folds | 50 % | 80 % | 90 % | 95 % | PIT | better than M1 | than GLM | entropy |",
        "|:--|:--|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        cells = []
        for mass in assess.MASSES:
            some = [c for c in row["coverage"] if c["mass"] == mass]
            worst = max(some, key=lambda c: abs(c["z"]))
            cells.append(f"{100 * worst['difference']:+.1f} ({worst['z']:+.1f})")
        p = min(test["p_value"] for test in row["pit"])
        lower = row["lower_entropy"]
        shares = f"{row['better_M1']:.1%} | {row['better_GLM']:.1%} | "
        shares += "" if lower is None else f"{lower:.1%}"
        lines.append(
            f"| {row['set']} | {row['split']} | {' | '.join(cells)} | {p:.2f} | {shares} |"
        )
    lines += ["", f"Of class counts the worst class is shown. {beyond(rows)}", "", took]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default="")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--splits", default="random,blocked")
    parser.add_argument("--out", type=Path, help="keep all numbers as JSON, and go on from there")
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    options = parser.parse_args()
    if not (options.data / "registry.json").exists():
        raise SystemExit(f"{options.data} holds no registry.json: give the folder by --data")
    registry = json.loads((options.data / "registry.json").read_text())
    scored = [name for name, about in registry.items() if "kfold_log_score" in about]
    class_counts = "malawi_lighting", "us_election2020", "movielens"
    extras = "malawi_electrification__four", *(f"{name}__nested" for name in class_counts)
    for extra in extras:
        scored.insert(scored.index(extra.partition("__")[0]) + 1, extra)
    names = options.sets.split(",") if options.sets else scored
    rows = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    done, begin = {(row["set"], row["split"]) for row in rows}, time.perf_counter()
    tasks = [
        Task(options.data, name, split == "blocked", options.rows, options.folds)
        for name in names
        for split in options.splits.split(",")
        if (name.replace("__", ", "), split) not in done
        and (split == "random" or name.partition("__")[0] in REGIONS)
    ]
    order = {name.replace("__", ", "): place for place, name in enumerate([*scored, *names])}
    # Two at a time: what one does with one core (compiling, above all) leaves the other a core.
    with ProcessPoolExecutor(2, get_context("spawn"), warnings.simplefilter, ("ignore",)) as pool:
        for future in as_completed([pool.submit(measured, task) for task in tasks]):
            if future.exception():
                pool.shutdown(cancel_futures=True)
            rows.append(future.result())
            show(rows[-1])
            rows.sort(key=lambda row: (order[row["set"]], row["split"] == "blocked"))
            if options.out:
                options.out.write_text(json.dumps(rows, indent=1))
            if options.page:
                options.page.write_text(page(rows, time_of(rows, len(done), begin)))
    gains = np.array([row["ahead"] for row in rows])
    z = np.array([row["ahead"] / row["error"] for row in rows])
    print(f"{len(rows)} splits: ahead by {gains.mean():+.4f} on average, worst {z.min():+.1f} SE")
    print(time_of(rows, len(done), begin))
    if failures(rows):
        raise SystemExit("\n".join(failures(rows)))


def time_of(rows: list[dict[str, Any]], before: int, begin: float) -> str:
    minutes = (time.perf_counter() - begin) / 60
    told = f"{len(rows) - before} splits, two at a time, took {minutes:.0f} minutes"
    return f"{told}; {before} had been measured before." if before else f"{told}."


if __name__ == "__main__":
    main()
