"""Whether intervals for θ hold the truth, on the simulated district where it is known.

For each seed and each truth a district is drawn, the default model is fitted, and the share of
cells whose true θ lies in the interval is counted: given auxiliary data and given both, on cells
without primary data, held-out cells and training cells.

- Cells without primary data are answered for by the fitted model.
- Held-out cells: a quarter of the surveyed cells is kept from the model; given both, their primary
  data then enter the posterior, but not the mapping.
- Training cells are answered for by fits that have not seen them.

Last, what no model of this class can do better: what the intervals of the Beta that best predicts
counts hold of a logit-normal rate, if its mean and spread are known.

    python bench/truth.py [--seeds 20] [--page FILE]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats
from scipy.special import expit, logit

import ldf
from ldf.datasets import district
from ldf.datasets.district import FEATURES

MASSES = (0.5, 0.8, 0.9, 0.95)
ASKED = {"beta": 0.02, "logit-normal": 0.04}  # from the nominal mass, at most


def inside(truth: str, seed: int) -> dict[str, np.ndarray]:
    """For each kind of cell: cells × masses, whether θ is in its interval."""
    cells = district(truth, seed)
    frame = pd.DataFrame(cells.features, columns=list(FEATURES))
    frame["electrified"], frame["buildings"] = cells.electrified, cells.buildings
    surveyed = np.flatnonzero(np.isfinite(cells.buildings))
    held = np.random.default_rng(seed).permutation(surveyed)[: len(surveyed) // 4]
    shown = frame.copy()
    shown.loc[held, ["electrified", "buildings"]] = np.nan
    primary = {"successes": "electrified", "trials": "buildings"}
    model = ldf.Fusion("binomial", primary, list(FEATURES), seed=seed).fit(shown)
    kinds = {
        "without primary data": np.setdiff1d(np.arange(len(frame)), surveyed),
        "held out": held,
        "training": np.setdiff1d(surveyed, held),
    }
    found = {}
    for given in ("auxiliary", "both"):
        posterior = model.posterior(frame, given=given)
        bounds = [posterior.interval(mass) for mass in MASSES]
        hits = np.stack([(low <= cells.theta) & (cells.theta <= high) for low, high in bounds], -1)
        for kind, rows in kinds.items():
            found[f"{kind}, given {given}"] = hits[rows]
    return found


def by_shape_alone(centre: float, trials: int = 20) -> np.ndarray:
    """The mass of a logit-normal rate inside the intervals of the likeliest Beta."""
    spread = np.hypot(0.7, 0.5)  # the district's field and noise
    places, weights = np.polynomial.hermite_e.hermegauss(80)
    theta, counts = expit(centre + spread * places), np.arange(trials + 1)
    mass = scipy.stats.binom.pmf(counts[:, None], trials, theta) @ (weights / weights.sum())

    def loss(logs: np.ndarray) -> float:
        return -float(mass @ scipy.stats.betabinom.logpmf(counts, trials, *np.exp(logs)))

    a, b = np.exp(scipy.optimize.minimize(loss, [0.0, 1.0]).x)
    family = ldf.Binomial()
    rate = family.posterior(family.prior(successes=a, failures=b))
    ends = np.array([rate.interval(mass) for mass in MASSES])
    return np.diff(scipy.stats.norm.cdf((logit(ends) - centre) / spread), axis=1)[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--truths", default="beta,logit-normal")
    parser.add_argument("--page", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    table = []
    for truth in options.truths.split(","):
        begin = time.perf_counter()
        each = [inside(truth, seed) for seed in range(options.seeds)]
        print(f"{truth} truth, {options.seeds} districts ({time.perf_counter() - begin:.0f} s)")
        for kind in each[0]:
            covered = np.stack([found[kind].mean(0) for found in each])
            mean, error = covered.mean(0), covered.std(0, ddof=1) / np.sqrt(len(covered))
            off = np.abs(mean - MASSES).max()
            shares = "  ".join(
                f"{mass:.0%}: {m:.3f} ± {e:.3f}"
                for mass, m, e in zip(MASSES, mean, error, strict=True)
            )
            verdict = "within" if off <= ASKED[truth] else "BEYOND"
            print(f"  {kind:42s} {shares}   {verdict} {100 * ASKED[truth]:.0f} points", flush=True)
            cells = " | ".join(f"{m:.1%} ± {e:.1%}" for m, e in zip(mean, error, strict=True))
            table.append(f"| {truth} | {kind} | {cells} |")
    print("by shape alone, of a logit-normal rate")
    for centre in (0.05, 0.1, 0.25, 0.5):
        held = "  ".join(
            f"{m:.0%}: {h:.3f}" for m, h in zip(MASSES, by_shape_alone(logit(centre)), strict=True)
        )
        print(f"  median {centre:.2f}{'':31} {held}")
    if options.page:
        head = "| truth | cells | 50 % | 80 % | 90 % | 95 % |\n|:--|:--|--:|--:|--:|--:|\n"
        options.page.write_text(head + "\n".join(table) + "\n")


if __name__ == "__main__":
    main()
