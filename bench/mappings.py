"""How mappings do on real data, one by one and mixed.

Every mapping learns on the same folds with its default settings, alone: an ensemble of one member.
The members are then stacked, as an ensemble of all of them would: out-of-fold scores of each fold's
training rows decide their shares. Beside them stands the default ensemble. Scores are the mean
log-predictive of a held-out unit; what the mixture leads a mapping by is a paired difference with
its standard error.

    python bench/mappings.py [--data ../shared/data] [--sets a,b] [--rows 3000] [--folds 5]
                             [--out numbers.json] [--page docs/mappings-measured.md]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quality import Set, load

import ldf
from ldf import assess, folds
from ldf.data import read
from ldf.ensemble import FEW, NETWORK, Ensemble, Member
from ldf.estimator import table_of
from ldf.learn import combined, learn
from ldf.learned import Learned
from ldf.table import Table, empirical_rate

SETS = (
    "tz_malaria", "star98", "melanoma_eu", "malawi_electrification", "malawi_lighting",
    "chem97_schools", "unemployment2009", "homicide_panel", "birthdays",
)  # fmt: skip
MEMBERS = {
    "linear": Member(ldf.Linear()),
    "network": Member(NETWORK, width=32, dropout=0.2, penalty=1e-2),
    "trees": Member(ldf.Trees(depth=3), "standard"),
    "splines": Member(ldf.Splines()),
    "waves": Member(ldf.Fourier()),
    "process": Member(ldf.GaussianProcess()),
}
assert MEMBERS["network"] in FEW  # of the default ensemble, as the trees are
assert MEMBERS["trees"] in FEW
MIXED, DEFAULT = "stacked", "default"


def scores_of(found: list[Learned], table: Table, split: folds.Split) -> np.ndarray:
    """Of each unit, by the fold that held it out."""
    scores = np.full(len(table.x), np.nan)
    for learned, held in zip(found, split.held & table.seen, strict=True):
        y = {name: values[held] for name, values in table.y.items()}
        scores[held] = learned.log_score(learned.said(table.x[held]), y)
    return scores


def run(of: Set, number: int, seed: int = 0) -> dict[str, Any]:
    """One set."""
    model = ldf.Fusion(of.family, of.columns.primary, list(of.columns.auxiliary), seed=seed)
    data = read(of.frame, of.family, model.columns())
    table, rate = table_of(data), empirical_rate(data.family, data.y, data.seen)
    split = folds.stratified(rate, number, seed)
    spec = model.spec(data)
    found, scores, seconds = {}, {}, {}
    for name, member in MEMBERS.items():
        begin = time.perf_counter()
        alone = replace(spec, ensemble=Ensemble((member,)))
        found[name] = learn(alone, table, seed, split.training)
        scores[name] = scores_of(found[name], table, split)
        seconds[name] = time.perf_counter() - begin
    every = Ensemble(tuple(MEMBERS.values()))
    mixed = [
        combined(every, table, [one.trained[0] for one in each], each[0].part, "")
        for each in zip(*found.values(), strict=True)
    ]
    scores[MIXED] = scores_of(mixed, table, split)
    begin = time.perf_counter()
    scores[DEFAULT] = scores_of(learn(spec, table, seed, split.training), table, split)
    seconds[DEFAULT] = time.perf_counter() - begin
    counted = split.held.any(0) & np.isfinite(rate)
    ahead = {
        name: assess.score_difference(scores[MIXED][counted], own[counted])
        for name, own in scores.items()
        if name != MIXED
    }
    share = np.mean([learned.share for learned in mixed], 0)
    return {
        "set": of.name,
        "units": int(counted.sum()),
        "columns": data.x.shape[1],
        "scores": {name: float(own[counted].mean()) for name, own in scores.items()},
        "ahead": {name: [one.mean, one.standard_error] for name, one in ahead.items()},
        "share": dict(zip(MEMBERS, share.tolist(), strict=True)),
        "seconds": seconds,
    }


def page(rows: list[dict[str, Any]]) -> str:
    """The numbers as tables in Markdown."""
    names = (*MEMBERS, MIXED, DEFAULT)
    lines = [
        "Mean log score of a held-out unit; the best of the single mappings is in bold:",
        "",
        "| set | units | columns | " + " | ".join(names) + " |",
        "|:--|--:|--:|" + "--:|" * len(names),
    ]
    for row in rows:
        scores = row["scores"]
        best = max(MEMBERS, key=lambda name: scores[name])
        cells = [f"**{scores[n]:.4f}**" if n == best else f"{scores[n]:.4f}" for n in names]
        lines.append(
            f"| {row['set']} | {row['units']:,} | {row['columns']} | " + " | ".join(cells) + " |"
        )
    others = (*MEMBERS, DEFAULT)
    lines += [
        "",
        "By how much the stacked mixture leads each of them, with the standard error of the paired "
        "difference:",
        "",
        "| set | " + " | ".join(others) + " |",
        "|:--|" + "--:|" * len(others),
    ]
    for row in rows:
        cells = ["{:+.4f} ± {:.4f}".format(*row["ahead"][name]) for name in others]
        lines.append(f"| {row['set']} | " + " | ".join(cells) + " |")
    lines += [
        "",
        _summary(rows),
        "",
        "The shares of mappings in the mixture, the mean over folds:",
        "",
    ]
    lines += ["| set | " + " | ".join(MEMBERS) + " |", "|:--|" + "--:|" * len(MEMBERS)]
    for row in rows:
        cells = [f"{row['share'][name]:.0%}" for name in MEMBERS]
        lines.append(f"| {row['set']} | " + " | ".join(cells) + " |")
    total = sum(sum(row["seconds"].values()) for row in rows)
    lines += ["", f"All of it took {total / 60:.0f} minutes."]
    return "\n".join(lines) + "\n"


def _summary(rows: list[dict[str, Any]]) -> str:
    pairs = [row["ahead"][name] for row in rows for name in MEMBERS]
    z = np.array([mean / error for mean, error in pairs])
    best = [min((row["ahead"][name] for name in MEMBERS), key=lambda pair: pair[0]) for row in rows]
    behind = sum(mean < 0 for mean, _ in best)
    lead = np.mean([mean for mean, _ in best])
    return (
        f"Of {len(pairs)} differences {int((z < 0).sum())} are negative, the smallest is "
        f"{z.min():+.1f} SE. The best single mapping of a set, which nobody knows beforehand, is "
        f"led by {lead:+.4f} on average, and leads in {behind} of {len(rows)} sets."
    )


def show(row: dict[str, Any]) -> None:
    print(f"{row['set']} ({row['units']:,} units, {row['columns']} columns)")
    for name, score in row["scores"].items():
        mean, error = row["ahead"].get(name, (0.0, 0.0))
        share = f"{row['share'][name]:5.0%}" if name in row["share"] else " " * 5
        taken = f"{row['seconds'].get(name, 0):6.0f} s"
        print(f"  {name:10} {score:9.4f} {share}  behind by {mean:+.4f} ± {error:.4f} {taken}")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="keep all numbers as JSON, and go on from there")
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    options = parser.parse_args()
    if not (options.data / "registry.json").exists():
        raise SystemExit(f"{options.data} holds no registry.json: give the folder by --data")
    warnings.simplefilter("ignore")
    rows = json.loads(options.out.read_text()) if options.out and options.out.exists() else []
    for name in options.sets.split(","):
        if name in {row["set"] for row in rows}:
            continue
        rows.append(run(load(options.data, name, options.rows), options.folds))
        show(rows[-1])
        if options.out:
            options.out.write_text(json.dumps(rows, indent=1))
        if options.page:
            options.page.write_text(page(rows))
    print(_summary(rows))


if __name__ == "__main__":
    main()
