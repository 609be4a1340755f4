"""Whether intervals hold θ when sources are missing, though two of them share all their errors.

Three sources tell of θ: A and B with the same errors, C with its own, lacking in a fifth of the
rows that are learned from. For every subset of them, new units that have only these: how often the
90 % interval holds θ, how wide it is, and the mean log score; then what each source is worth, and
how much it tells.

    python bench/sources.py [--prior fitted]
"""

from __future__ import annotations

import argparse
import warnings
from itertools import combinations

import numpy as np
import pandas as pd

import ldf

SOURCES = {"A": ["a"], "B": ["b"], "C": ["c"]}


def units(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    u, shared = rng.normal(size=rows), 0.7 * rng.normal(size=rows)
    theta, trials = 1 / (1 + np.exp(-u)), rng.integers(3, 25, rows)
    return pd.DataFrame(
        {
            "a": u + shared,
            "b": u + shared,
            "c": u + rng.normal(size=rows),
            "trials": trials,
            "successes": rng.binomial(trials, theta),
            "theta": theta,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prior", default="fitted", choices=("fitted", "weak"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    learn, new = units(900, rng), units(3000, rng)
    learn.loc[rng.random(len(learn)) < 0.2, "c"] = np.nan
    primary = {"successes": "successes", "trials": "trials"}
    model = ldf.Fusion("binomial", primary, SOURCES, prior=options.prior).fit(learn)
    print(f"λ0 is {options.prior}. {model.status_}\n\nsources   90 % hold   width   log score")
    for many in range(len(SOURCES), -1, -1):
        for kept in combinations(SOURCES, many):
            lacking = [SOURCES[name][0] for name in SOURCES if name not in kept]
            frame = new.drop(columns=lacking)
            low, high = model.posterior(frame, given="auxiliary").interval(0.9)
            inside = ((low <= new["theta"]) & (new["theta"] <= high)).mean()
            width = (high - low).mean()
            name = " ".join(kept) or "none"
            print(f"{name:9} {inside:8.1%}   {width:8.3f}   {model.score(frame):9.4f}")
    table = model.pseudo_observations(new).groupby("source")
    print(f"\n{table[['n', 'information', 'information_alone']].mean().round(3)}")


if __name__ == "__main__":
    main()
