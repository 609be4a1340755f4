"""Simulation-based calibration: whether posteriors are as wide as they say.

A truth is drawn from the prior, data from the truth, and the posterior from the data; over many
runs the truth's rank among the posterior's draws must be uniform (Talts et al. 2018; the
log-likelihood as one more quantity after Modrák et al. 2023). All runs are one compiled program.

Each quantity's ranks are tested twice: the counts of 16 bins by chi-squared, against any fault, and
the ranks' variance, against a posterior too narrow or too wide. The smallest p-value, times how
many there are, must be above 1 %. The power against a posterior too narrow by a fifth is found by
the same test on simulated ranks, and printed.

    python bench/calibration.py [--models hierarchy,space] [--runs 1000] [--narrow 0.2]
                                [--out calibration.png]

With --narrow the posterior is made too narrow by that share, to see it found.

A model is one row of MODELS: a function of (runs, draws, seed, narrow) that gives, for each
quantity's name, the rank of the truth among the draws in each run, from 0 to draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import ldf
from ldf.infer import nuts
from ldf.structure import Hierarchy, Space, Structure, Time

Ranks = dict[str, np.ndarray]  # a rank a run, for each quantity
BINS = 16
DRAWS = 63  # one less than a multiple of the bins
LEVEL = 0.01
NARROW = 0.2  # the fault whose discovery is the power that is stated


# --- ranks ---------------------------------------------------------------------------------------


def narrowed(draws: np.ndarray, share: float) -> np.ndarray:
    """Runs × draws, drawn in about their mean: by nothing, unless a fault is wanted."""
    centre = draws.mean(1, keepdims=True)
    return centre + (1 - share) * (draws - centre)


def ranks(truth: dict[str, np.ndarray], draws: dict[str, np.ndarray], narrow: float) -> Ranks:
    """Of the truth (a number a run) among draws (runs × draws), for each quantity."""
    return {
        name: (narrowed(draws[name], narrow) < value[:, None]).sum(1)
        for name, value in truth.items()
    }


# --- models with global variables ----------------------------------------------------------------


class Setting(NamedTuple):
    """A small problem: units with T_x, some of them without primary data."""

    structure: Structure
    family: Any
    pseudo: Any
    design: dict[str, np.ndarray]  # what is known of primary data beforehand
    outcome: str  # the column that is drawn
    seen: np.ndarray


def _poisson(structure: Callable[[Any], Structure]) -> Setting:
    family = ldf.Poisson()
    pseudo = family.prior(
        [2.0, 0.5, 1.0, 0.0, 3.0, 1.0, 0.5, 2.0], [1.0, 0.5, 2.0, 0.0, 2.0, 1, 1, 3]
    )
    return Setting(
        structure(family.prior(2.0, 1.5)),
        family,
        pseudo,
        {"exposure": np.array([3.0, 5.0, 2.0, 4.0, 6.0, 3.0, 2.0, 4.0])},
        "count",
        np.array([True, True, True, True, True, True, True, False]),
    )


GROUPS = np.array([0, 0, 1, 1, 2, 2, 3, 3])
GRAPH = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6]])  # a ring, a path, an island
SETTINGS = {
    "hierarchy": lambda: _poisson(lambda prior: Hierarchy(GROUPS, prior)),
    "hierarchy on the rate": lambda: _poisson(
        lambda prior: Hierarchy(GROUPS, prior, on="rate", strength=True)
    ),
    "space": lambda: _poisson(lambda prior: Space(GRAPH, prior, areas=8)),
    "time": lambda: _poisson(lambda prior: Time([1, 2, 3, 5, 6, 7, 7, 8], prior)),
}


def simulate(of: Setting, runs: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """γ, θ and y of each run."""
    first, second = np.random.SeedSequence(seed).spawn(2)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), runs)
        gamma = jax.jit(jax.vmap(of.structure.sample_prior))(keys)
        natural = jax.jit(jax.vmap(lambda g: of.structure.natural(g, of.pseudo)))(gamma)
        natural = jax.tree.map(np.asarray, natural)
    theta = np.asarray(of.family.posterior(natural).sample(1, first))[0]
    y = np.asarray(of.family.likelihood(theta, **of.design).sample(1, second))[0]
    return gamma, theta, y


def posteriors(
    of: Setting, runs: int, draws: int, seed: int, warmup: int = 200, thin: int = 6, depth: int = 6
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The truth of each run and draws of its posterior: of what γ means, of θ of the first unit and
    of the last, and of the likelihood. Draws that depend on each other (at thin=3, a fifth) would
    make a right posterior look 5 % too narrow."""
    rows, (gamma, theta, y) = np.flatnonzero(of.seen), simulate(of, runs, seed)
    structure, family = of.structure, of.family
    some = {name: values[rows] for name, values in of.design.items()}

    with jax.enable_x64(True):

        def scalars(gamma: Any, theta: Any, seen: Any) -> dict[str, Any]:
            """A few numbers that stand for all."""
            found = {n: jnp.ravel(q)[0] for n, q in structure.quantities(gamma).items()}
            likely = -potential(gamma, seen) - structure.log_prior(gamma)
            ends = {"θ of the first unit": theta[0], "θ of the last unit": theta[-1]}
            return found | ends | {"log-likelihood": likely}

        def potential(gamma: Any, seen: Any) -> Any:
            columns = {**some, of.outcome: seen}
            return -nuts.log_density(structure, family, gamma, of.pseudo, columns, rows)

        def posterior(key: Any, seen: Any) -> dict[str, Any]:
            first, second = jax.random.split(key)
            found, _ = nuts.chain(
                structure, lambda g: potential(g, seen), first, draws * thin, warmup, depth=depth
            )
            kept = jax.tree.map(lambda leaf: leaf[thin - 1 :: thin], found)

            def one(gamma: Any, key: Any) -> dict[str, Any]:
                known = family.statistic(**{**some, of.outcome: seen})
                whole = structure.natural(gamma, of.pseudo)
                after = jax.tree.map(lambda a, b: a.at[rows].add(b), whole, known)
                return scalars(gamma, family.posterior(after).sample(1, key)[0], seen)

            return jax.vmap(one)(kept, jax.random.split(second, draws))

        data = jnp.asarray(y[:, rows])
        keys = jax.random.split(jax.random.key(seed + 1), runs)
        found = jax.jit(jax.vmap(posterior))(keys, data)
        truth = jax.jit(jax.vmap(scalars))(gamma, jnp.asarray(theta), data)
        return jax.tree.map(np.asarray, (truth, found))


def _of_setting(name: str) -> Callable[[int, int, int, float], Ranks]:
    def of_runs(runs: int, draws: int, seed: int, narrow: float) -> Ranks:
        return ranks(*posteriors(SETTINGS[name](), runs, draws, seed), narrow)

    return of_runs


MODELS: dict[str, Callable[[int, int, int, float], Ranks]] = {
    name: _of_setting(name) for name in SETTINGS
}


# --- the test ------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """One quantity's ranks."""

    bins: np.ndarray  # how many runs in each
    p_bins: float
    p_width: float
    width: float  # the posterior's spread as a share of what it should be


def uniformity(ranks: np.ndarray, draws: int) -> Verdict:
    bins = np.bincount(ranks * BINS // (draws + 1), minlength=BINS)
    p_bins = float(scipy.stats.chisquare(bins).pvalue)
    # A uniform's variance is 1/12, and that of its estimate (1/80 − 1/144)/runs.
    place = (ranks + 0.5) / (draws + 1)
    square = ((place - 0.5) ** 2).mean()
    z = (square - 1 / 12) / np.sqrt((1 / 80 - 1 / 144) / len(ranks))
    # A normal posterior whose sd is 1/a of what it should be has ranks whose variance is
    # asin(a²/(1 + a²))/2π.
    ratio = np.sin(2 * np.pi * square)
    width = np.sqrt((1 - ratio) / ratio) if 0 < ratio < 1 else np.nan
    return Verdict(bins, p_bins, float(2 * scipy.stats.norm.sf(abs(z))), float(width))


def smallest(verdicts: list[Verdict]) -> float:
    """Of all p-values, times how many they are."""
    every = [p for of in verdicts for p in (of.p_bins, of.p_width)]
    return min(1.0, min(every) * len(every))


def power(
    runs: int, draws: int, quantities: int, narrow: float = NARROW, trials: int = 400
) -> float:
    """How often a normal posterior too narrow by that share is found in one of the quantities."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(trials):
        truth, sd = rng.standard_normal((runs, 1)), 1 - narrow
        rank = (sd * rng.standard_normal((runs, draws)) < truth).sum(1)
        of = uniformity(rank, draws)
        found += min(of.p_bins, of.p_width) * 2 * quantities < LEVEL
    return found / trials


def draw(every: dict[str, dict[str, Verdict]], file: Path) -> None:
    """A row of histograms a model."""
    from matplotlib.figure import Figure

    columns = max(len(of) for of in every.values())
    figure = Figure(figsize=(1.7 * columns, 1.6 * len(every)), layout="constrained")
    panels = figure.subplots(len(every), columns, squeeze=False)
    for row, (model, verdicts) in zip(panels, every.items(), strict=True):
        for panel in row[len(verdicts) :]:
            panel.axis("off")
        for panel, (name, of) in zip(row, verdicts.items(), strict=False):
            runs = of.bins.sum()
            low, high = scipy.stats.binom.ppf([0.005, 0.995], runs, 1 / BINS)
            panel.axhspan(low, high, color="#dddddd")
            panel.bar(np.arange(BINS), of.bins, 1.0, color="#a30015")
            panel.set_xticks([])
            panel.tick_params(labelsize=6)
            panel.set_title(f"{model}\n{name}", fontsize=6)
    figure.savefig(file, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--narrow", type=float, default=0.0)
    parser.add_argument("--out", type=Path, default=Path("calibration.png"))
    ask = parser.parse_args()
    every = {}
    for name in ask.models.split(","):
        start = time.perf_counter()
        found = MODELS[name](ask.runs, ask.draws, ask.seed, ask.narrow)
        every[name] = {q: uniformity(rank, ask.draws) for q, rank in found.items()}
        p = smallest(list(every[name].values()))
        word = "uniform" if p > LEVEL else "NOT uniform"
        sure = power(ask.runs, ask.draws, len(found))
        print(f"{name}: {word}, p = {p:.3f}, {ask.runs} runs, {time.perf_counter() - start:.0f} s")
        print(
            f"  a posterior too narrow by {NARROW:.0%} would be found with probability {sure:.3f}"
        )
        for quantity, of in every[name].items():
            tests = f"p = {of.p_bins:.3f} by bins, {of.p_width:.3f} by width"
            print(f"  {quantity:24s} {tests}; {of.width:.2f} times as wide as it should be")
    draw(every, ask.out)


if __name__ == "__main__":
    main()
