"""Whether one model holds whatever sources a unit lacks, though sources repeat each other.

Worlds of three sources that tell of θ, the third lacking in a fifth of the rows that are learned
from: A and B are `copies` of each other, `share` most of their errors, or are `apart`. Of each, so
many draws of 900 units to learn from and 2,000 new ones:

- for every subset of sources, new units that have only these: how often the 90 % interval holds θ;
- in the first draws, by how much the one model falls short of one that learned this subset only,
  in mean log score of a new unit;
- what each source is worth, and how much it tells;
- in the first draws, what intervals hold with other mappings, and where sources simply add.

Then a source of noise, of 2 and of 500 columns, beside a census of two columns that tell of θ: 400
units to learn from and 2,000 new ones, all of which have both. How much the noise is taken to tell,
how often the 90 % interval holds θ, and how far the model falls short of one of the census only.

Then Malawi's survey areas, their 24 columns in four sources, five folds: how often the 90 % sets of
held-out areas hold what was counted, beside what they should, and whether the randomised PIT is
uniform, whatever the areas lack.

    python bench/sources.py [--data ../shared/data] [--draws 5] [--retrained 2] [--page FILE]
                            [--prior weak]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain, combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ldf
from ldf import assess, folds
from ldf.table import empirical_rate

SOURCES = {"A": ["a"], "B": ["b"], "C": ["c"]}
SUBSETS = [*chain.from_iterable(combinations(SOURCES, many) for many in (3, 2, 1, 0))]
WORLDS = ("copies", "share", "apart")
CENSUS = ["a", "c"]
NOISE = (0, 2, 500)  # columns
PRIMARY = {"successes": "successes", "trials": "trials"}
WAYS: dict[str, dict[str, Any]] = {
    "regressions": {"mapping": ldf.Linear()},
    "splines": {"mapping": ldf.Splines()},
    "trees": {"mapping": ldf.Trees()},
    "default, independent": {"independent": True},
}
MALAWI = {
    "roads": ["dist_road", "dist_popcenter", "dist_admarc", "dist_auction", "dist_boma",
              "dist_borderpost", "dist_agmrkt", "log_popdens"],
    "climate": ["af_bio_1", "af_bio_8", "af_bio_12", "af_bio_13", "af_bio_16", "anntot_avg",
                "wetQ_avg", "h2015_tot", "h2015_wetQ", "h2016_tot", "h2016_wetQ"],
    "terrain": ["fsrad3_agpct", "srtm_1k", "twi_mwi"],
    "lights": ["ntl_dmsp", "ntl_dmsp_mean3"],
}  # fmt: skip


def units(world: str, rows: int, rng: np.random.Generator) -> pd.DataFrame:
    u, shared = rng.normal(size=rows), rng.normal(size=rows)
    own = rng.normal(size=(2, rows))
    part = {"copies": 1.0, "share": 0.9, "apart": 0.0}[world]
    errors = 0.7 * (part**0.5 * shared + (1 - part) ** 0.5 * own)
    theta, trials = 1 / (1 + np.exp(-u)), rng.integers(3, 25, rows)
    return pd.DataFrame(
        {
            "a": u + errors[0],
            "b": u + errors[1],
            "c": u + rng.normal(size=rows),
            "trials": trials,
            "successes": rng.binomial(trials, theta),
            "theta": theta,
        }
    )


def draw(world: str, seed: int, prior: str, retrain: bool) -> dict[str, Any]:
    """One draw: by subset, whether θ is inside and how far the retrained model is ahead."""
    rng = np.random.default_rng(seed)
    learn, new = units(world, 900, rng), units(world, 2000, rng)
    learn.loc[rng.random(len(learn)) < 0.2, "c"] = np.nan
    model = ldf.Fusion("binomial", PRIMARY, SOURCES, prior=prior, seed=seed).fit(learn)
    found: dict[str, Any] = {"inside": [], "width": [], "behind": []}
    for kept in SUBSETS:
        frame = new.drop(columns=[SOURCES[name][0] for name in SOURCES if name not in kept])
        low, high = model.posterior(frame, given="auxiliary").interval(0.9)
        found["inside"].append(((low <= new["theta"]) & (new["theta"] <= high)).mean())
        found["width"].append((high - low).mean())
        if retrain and kept:
            some = {name: SOURCES[name] for name in kept}
            if kept == ("C",):  # rows without it say nothing of it
                some, rows = SOURCES["C"], learn["c"].notna()
            else:
                some, rows = some if len(kept) > 1 else SOURCES[kept[0]], slice(None)
            alone = ldf.Fusion("binomial", PRIMARY, some, seed=seed).fit(learn[rows])
            ahead = alone.log_scores(frame) - model.log_scores(frame)
            found["behind"].append((ahead.mean(), ahead.std() / len(ahead) ** 0.5))
    table = model.pseudo_observations(new).groupby("source")
    found["worth"] = table[["n", "information", "information_alone"]].mean()
    return found


def other_ways(world: str, seed: int) -> dict[str, list[float]]:
    """One draw: what 90 % intervals hold by subset, where the mappings are others than by default;
    and where sources are taken to be independent, so that they simply add."""
    rng = np.random.default_rng(seed)
    learn, new = units(world, 900, rng), units(world, 2000, rng)
    learn.loc[rng.random(len(learn)) < 0.2, "c"] = np.nan
    found = {}
    for name, more in WAYS.items():
        model = ldf.Fusion("binomial", PRIMARY, SOURCES, seed=seed, **more).fit(learn)
        found[name] = []
        for kept in SUBSETS:
            frame = new.drop(columns=[SOURCES[name][0] for name in SOURCES if name not in kept])
            low, high = model.posterior(frame, given="auxiliary").interval(0.9)
            found[name].append(((low <= new["theta"]) & (new["theta"] <= high)).mean())
    return found


def by_other_ways(options: argparse.Namespace) -> list[str]:
    draws = min(options.retrained, options.draws)
    with two_at_a_time() as pool:
        every = {
            world: [pool.submit(other_ways, world, seed) for seed in range(draws)]
            for world in WORLDS
        }
    lines = [
        "",
        "What 90 % intervals hold where all sources have another mapping than by default, and"
        f" where they are taken to be independent; the mean of {draws} draws:",
        "",
        f"| world | sources | {' | '.join(WAYS)} |",
        "|:--|:--|" + "--:|" * len(WAYS),
    ]
    for world, found in every.items():
        means = [np.mean([one.result()[way] for one in found], 0) for way in WAYS]
        for at, kept in enumerate(SUBSETS[:-1]):
            holds = " | ".join(f"{of[at]:.1%}" for of in means)
            lines.append(f"| {world} | {' '.join(kept)} | {holds} |")
    return lines


def noisy(columns: int, seed: int, prior: str) -> dict[str, float]:
    """One draw of a census beside so many columns of noise; by seed the census is the same."""
    rng = np.random.default_rng(seed)
    census, names = [units("apart", rows, rng) for rows in (400, 2000)], [*map(str, range(columns))]
    learn, new = (
        frame.join(pd.DataFrame(rng.normal(size=(len(frame), columns)), columns=names))
        for frame in census
    )
    auxiliary = {"census": CENSUS, "noise": names} if columns else CENSUS
    model = ldf.Fusion("binomial", PRIMARY, auxiliary, prior=prior, seed=seed).fit(learn)
    low, high = model.posterior(new, given="auxiliary").interval(0.9)
    found = {"inside": ((low <= new["theta"]) & (new["theta"] <= high)).mean()}
    found |= {"width": (high - low).mean(), "score": model.log_scores(new).mean()}
    if columns:
        table = model.pseudo_observations(new).groupby("source")
        told = table[["information", "information_alone"]].mean()
        found |= {f"{source} {of}": told.loc[source, of] for source in told.index for of in told}
    return found


def lacking_some() -> list[tuple[str, ...]]:
    """What Malawi's areas have left."""
    names = tuple(MALAWI)
    kept = [names, *(tuple(n for n in names if n != out) for out in names)]
    return [*kept, ("roads", "lights"), ("climate", "terrain"), *((name,) for name in names), ()]


def malawi_fold(frame: pd.DataFrame, fold: int, learn: np.ndarray, hold: np.ndarray) -> list[Any]:
    """By what areas lack: coverage of 90 % sets, PIT and score of one fold's areas."""
    primary = {"successes": "electrified", "trials": "households"}
    model = ldf.Fusion("binomial", primary, MALAWI, seed=0).fit(frame.iloc[learn])
    found = []
    for some in lacking_some():
        lacking = [c for name in MALAWI if name not in some for c in MALAWI[name]]
        held = frame.iloc[hold].drop(columns=lacking)
        law, y = model.predictive(held, given="auxiliary"), held["electrified"].to_numpy()
        covered = assess.coverage(law, y, (0.9,)).rows()[0]
        u = assess.pit(law, y, fold)  # the same draws in each would make bins of zeros clump
        found.append((covered, u, law.log_prob(y), len(hold)))
    return found


def malawi(folder: Path) -> tuple[list[tuple[Any, ...]], float]:
    """By what areas lack: coverage of 90 % sets, what they should hold, z, and PIT's p."""
    frame = pd.read_csv(folder / "malawi_electrification.csv")
    counts = {"successes": frame["electrified"].to_numpy(float)}
    counts["trials"] = frame["households"].to_numpy(float)
    rate = empirical_rate(ldf.Binomial(), counts, np.ones(len(frame), bool))
    with two_at_a_time() as pool:
        every = [
            pool.submit(malawi_fold, frame, fold, learn, hold)
            for fold, (learn, hold) in enumerate(folds.stratified(rate, 5, 0))
        ]
        by_fold = [one.result() for one in every]
    rows = []
    for some, parts in zip(lacking_some(), zip(*by_fold, strict=True), strict=True):
        sizes = np.array([part[3] for part in parts])
        observed = sum(p[0]["observed"] * p[3] for p in parts) / sizes.sum()
        expected = sum(p[0]["expected"] * p[3] for p in parts) / sizes.sum()
        error = (sum((p[0]["standard_error"] * p[3]) ** 2 for p in parts)) ** 0.5 / sizes.sum()
        u = np.concatenate([part[1] for part in parts])
        p_value = min(row["p_value"] for row in assess.uniformity(u).rows())
        score = np.concatenate([part[2] for part in parts]).mean()
        rows.append((", ".join(some) or "none", observed, expected, error, p_value, score))
    return rows, float(len(frame))


@contextmanager
def two_at_a_time() -> Iterator[ProcessPoolExecutor]:
    """What one does with one core (compiling, above all) leaves the other a core."""
    with ProcessPoolExecutor(2, get_context("spawn"), warnings.simplefilter, ("ignore",)) as pool:
        yield pool


def simulated(options: argparse.Namespace) -> list[str]:
    lines = [
        f"{options.draws} draws of each world; ± is the standard error over draws. How far one"
        f" model is behind is the mean of {min(options.retrained, options.draws)} draws; there ±"
        " is the standard error of 2,000 units, the mean of the draws.",
        "",
        "| world | sources | 90 % intervals hold | width | behind a model of this subset only |",
        "|:--|:--|--:|--:|--:|",
    ]
    worths, draws = [], {}
    with two_at_a_time() as pool:
        for world in WORLDS:
            for seed in range(options.draws):
                task = (world, seed, options.prior, seed < options.retrained)
                draws[world, seed] = pool.submit(draw, *task)
        for (world, seed), one in draws.items():
            inside = one.result()["inside"]
            print(f"{world}, draw {seed}: {np.round(inside, 3)}", file=sys.stderr, flush=True)
    for world in WORLDS:
        found = [draws[world, seed].result() for seed in range(options.draws)]
        inside = np.stack([one["inside"] for one in found])
        width = np.stack([one["width"] for one in found]).mean(0)
        behind = np.stack([one["behind"] for one in found[: options.retrained]])
        for at, kept in enumerate(SUBSETS):
            error = inside[:, at].std(ddof=1) / len(inside) ** 0.5
            short = ""
            if kept and len(behind):
                mean, within = behind[:, at, 0].mean(), behind[:, at, 1].mean()
                short = f"{mean:+.4f} ± {within:.4f}"
            name = " ".join(kept) or "none"
            holds = f"{inside[:, at].mean():.1%} ± {error:.1%}"
            lines.append(f"| {world} | {name} | {holds} | {width[at]:.3f} | {short} |")
        worths.append(pd.concat([one["worth"] for one in found]).groupby(level=0).mean())
    lines += [
        "",
        "What a source is worth in units that have all, and how much it tells, in nats:",
        "",
        "| world | source | worth | beside the others | alone |",
        "|:--|:--|--:|--:|--:|",
    ]
    for world, worth in zip(WORLDS, worths, strict=True):
        for source, row in worth.iterrows():
            lines.append(f"| {world} | {source} | " + " | ".join(f"{v:.3f}" for v in row) + " |")
    return lines


def beside_noise(options: argparse.Namespace) -> list[str]:
    with two_at_a_time() as pool:
        every = {
            (columns, seed): pool.submit(noisy, columns, seed, options.prior)
            for seed in range(options.draws)
            for columns in reversed(NOISE)  # the longest first
        }
    found = {
        columns: pd.DataFrame([every[columns, seed].result() for seed in range(options.draws)])
        for columns in NOISE
    }
    lines = [
        "",
        f"A source of noise beside a census, {options.draws} draws; ± is the standard error over"
        " draws. Nats are those of units that have both.",
        "",
        "| columns of noise | noise tells beside | alone | the census beside | alone"
        " | 90 % intervals hold | width | behind a model of the census only |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for columns, table in found.items():
        told = ["" for _ in range(4)]
        if columns:
            told = [
                over_draws(table[f"{source} {of}"])
                for source in ("noise", "census")
                for of in ("information", "information_alone")
            ]
        holds = over_draws(table["inside"], ".1%")
        short = over_draws(found[0]["score"] - table["score"], "+.4f") if columns else ""
        cells = [str(columns), *told, holds, over_draws(table["width"]), short]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def over_draws(values: pd.Series, form: str = ".3f") -> str:
    """Their mean and its standard error, which a single draw has none of."""
    error = f" ± {values.sem():{form.lstrip('+')}}" if len(values) > 1 else ""
    return f"{values.mean():{form}}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--retrained", type=int, default=2)
    parser.add_argument("--prior", default="weak", choices=("weak", "fitted"))
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = simulated(options)
    written(lines, options.page)
    lines += by_other_ways(options)
    lines += beside_noise(options)
    written(lines, options.page)
    if (options.data / "malawi_electrification.csv").exists():
        rows, number = malawi(options.data)
        lines += [
            "",
            f"Malawi's {number:,.0f} survey areas, held out, that have only some of four sources:",
            "",
            "| sources | 90 % sets hold | should | in SE | PIT: smallest p | log score |",
            "|:--|--:|--:|--:|--:|--:|",
        ]
        for name, observed, expected, error, p_value, score in rows:
            z = (observed - expected) / error
            holds = f"{observed:.1%} | {expected:.1%} | {z:+.1f}"
            lines.append(f"| {name} | {holds} | {p_value:.3f} | {score:.4f} |")
    print(written(lines, options.page))


def written(lines: list[str], page: Path | None) -> str:
    text = "\n".join(lines) + "\n"
    if page is not None:
        page.write_text(text)
    return text


if __name__ == "__main__":
    main()
