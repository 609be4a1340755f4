"""Simulation-based calibration: whether posteriors are as wide as they say.

A truth is drawn from the prior, data from the truth, and the posterior from the data; over many
runs the truth's rank among the posterior's draws must be uniform (Talts et al. 2018; the
log-likelihood as one more quantity after Modrák et al. 2023). All runs are computed together.

Each quantity's ranks are tested twice: the counts of 16 bins by chi-squared, against any fault, and
the ranks' variance, against a posterior too narrow or too wide. The smallest p-value, times how
many there are, must be above 1 %. The power against a posterior too narrow by a fifth is found by
the same test on simulated ranks, and printed.

    python bench/calibration.py [--models hierarchy,space] [--runs 1000] [--narrow 0.2] [--out FILE]

With --narrow the posterior is made too narrow by that share, to see it found.

A model is one row of MODELS: a function of (runs, draws, seed, narrow) that gives, for each
quantity's name, the rank of the truth among the draws in each run, from 0 to draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import ldf
from ldf import infer
from ldf.infer import collapsed, gibbs, nuts
from ldf.infer.mixture import on_device
from ldf.infer.sampling import KEPT, SWEEPS
from ldf.structure import Hierarchy, Space, Structure, Time

Ranks = dict[str, np.ndarray]  # a rank a run, for each quantity
POISSON = ldf.Poisson()
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
    """Of the truth (a number a run) among draws (runs × draws), for each quantity. Where some are
    equal, each rank that they share is as likely."""
    rng, found = np.random.default_rng(0), {}
    for name, value in truth.items():
        among = narrowed(draws[name], narrow)
        equal = (among == value[:, None]).sum(1)
        found[name] = (among < value[:, None]).sum(1) + rng.integers(0, equal + 1)
    return found


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
    pseudo = POISSON.prior(
        [2.0, 0.5, 1.0, 0.0, 3.0, 1.0, 0.5, 2.0], [1.0, 0.5, 2.0, 0.0, 2.0, 1, 1, 3]
    )
    exposure = {"exposure": np.array([3.0, 5.0, 2.0, 4.0, 6.0, 3.0, 2.0, 4.0])}
    seen = np.arange(8) < 7
    return Setting(structure(POISSON.prior(2.0, 1.5)), POISSON, pseudo, exposure, "count", seen)


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
            ask = (structure.sample_prior, lambda g: potential(g, seen), first)
            found, _ = nuts.chain(*ask, draws * thin, warmup, depth=depth)
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


# --- the mixture of mappings ---------------------------------------------------------------------

ALPHA = np.array([1.0, 2.0, 1.5])
WATCHED = np.array([1.0, 3.0, 0.5, 2.0, 4.0, 1.0, 2.0, 0.0])  # exposure; the last has no data
_rates = np.array([[0.5], [1.5], [4.0]]) * np.linspace(1.4, 0.7, 8)
_strength = np.array([[2.0], [1.0], [3.0]]) + np.linspace(0.0, 2.0, 8)
MAPPINGS = POISSON.natural(_rates * _strength, _strength)  # λ0 + T_x of three mappings


def mixture_truth(runs: int, seed: int) -> tuple[np.ndarray, ...]:
    """β, z, θ and y of each run."""
    rng, units = np.random.default_rng(seed), np.arange(8)
    beta = rng.dirichlet(ALPHA, runs)
    z = (rng.random((runs, 8, 1)) > np.cumsum(beta, 1)[:, None, :-1]).sum(-1)
    theta = rng.gamma(MAPPINGS.count[z, units], 1 / MAPPINGS.exposure[z, units])
    return beta, z, theta, rng.poisson(WATCHED * theta).astype(float)


def problem_of(y: np.ndarray) -> infer.MixtureProblem:
    columns = {"count": y, "exposure": WATCHED}
    return infer.MixtureProblem.of(POISSON, MAPPINGS, columns, ALPHA)


def by_marginal(y: np.ndarray, draws: int, seed: int, thin: int = 4) -> list[np.ndarray]:
    """Draws of β, z and θ: runs × draws, one run after the other."""
    every = []
    for run, own in enumerate(y):
        found = infer.sample(problem_of(own), draws * thin, 1, seed + run, keep=KEPT)
        parts = (found.weights, found.assignment, found.theta)
        every.append([part[0, thin - 1 :: thin] for part in parts])
    return [np.stack(part) for part in zip(*every, strict=True)]


def by_sweeps(
    method: str, y: np.ndarray, draws: int, seed: int, warmup: int = 200, thin: int = 25
) -> list[np.ndarray]:
    """The same by sweeps of Gibbs or of a collapsed form, all runs at once."""

    def chain(key: Any, y: Any, each: Any) -> list[Any]:
        known = replace(problem, statistic=POISSON.natural(y, WATCHED + 0 * y), log_predictive=each)
        first, second, third = jax.random.split(key, 3)
        start = jnp.log(problem.pseudo_counts)[None], jnp.zeros((1, 8), jnp.int32)
        state = collapsed.State(*start)
        if method == "gibbs":
            state = gibbs.State(*start, gibbs.draw_theta(known, start[1], first))

        def move(state: Any, key: Any) -> tuple[Any, None]:
            return SWEEPS[method](known, state, key), None

        def kept(state: Any, key: Any) -> tuple[Any, Any]:
            return 2 * jax.lax.scan(move, state, jax.random.split(key, thin))[:1]

        state, _ = jax.lax.scan(move, state, jax.random.split(second, warmup))
        _, found = jax.lax.scan(kept, state, jax.random.split(third, draws))
        z = found.assignment[:, 0]
        theta = found.theta[:, 0] if method == "gibbs" else gibbs.draw_theta(known, z, first)
        return [jnp.exp(found.log_weights[:, 0]), z, theta]

    with jax.enable_x64(True):
        problem = on_device(problem_of(y[0]))
        each = np.stack([problem_of(own).log_predictive for own in y])
        keys = jax.random.split(jax.random.key(seed), len(y))
        found = jax.jit(jax.vmap(chain))(keys, jnp.asarray(y), jnp.asarray(each))
        return [np.asarray(part) for part in found]


def _of_mixture(method: str) -> Callable[[int, int, int, float], Ranks]:
    def of_runs(runs: int, draws: int, seed: int, narrow: float) -> Ranks:
        beta, z, theta, y = mixture_truth(runs, seed)
        each = np.stack([problem_of(own).log_predictive for own in y])  # runs × K × units
        sampler = by_marginal if method == "marginal" else partial(by_sweeps, method)

        def scalars(beta: np.ndarray, z: np.ndarray, theta: np.ndarray) -> dict[str, np.ndarray]:
            """Of runs × draws. How many units go with the first does not depend on names."""
            by_own = np.take_along_axis(each[:, None], z[:, :, None], 2)[:, :, 0]
            return {
                "β of the first mapping": beta[..., 0],
                "β of the last mapping": beta[..., -1],
                "θ of the first unit": theta[..., 0],
                "θ of the last unit": theta[..., -1],
                "units like the first": (z == z[..., :1]).sum(-1),
                "log-likelihood given z": by_own.sum(-1),
                "log-likelihood": np.log(beta @ np.exp(each)).sum(-1),
            }

        truth = scalars(beta[:, None], z[:, None], theta[:, None])
        found = scalars(*sampler(y, draws, seed + 1))
        return ranks({name: value[:, 0] for name, value in truth.items()}, found, narrow)

    return of_runs


# --- primary data without a conjugate prior ------------------------------------------------------


def _of_units(family: Any, natural: Any, design: dict[str, Any], outcome: str) -> Any:
    """Three units, of a weak prior, of a strong one, and of few data."""

    def of_runs(runs: int, draws: int, seed: int, narrow: float) -> Ranks:
        first, second, third = np.random.SeedSequence(seed).spawn(3)
        before, known = jax.tree.map(lambda each: np.tile(each, runs), (natural, design))
        theta = np.asarray(family.posterior(before).sample(1, first))[0]
        y = known | {outcome: np.asarray(family.likelihood(theta, **known).sample(1, second))[0]}
        after = family.posterior(family.after(before, y, np.ones(3 * runs, bool)))
        drawn = np.asarray(after.sample(draws, third))

        def scalars(theta: np.ndarray) -> dict[str, np.ndarray]:
            """Of draws × units of all runs: runs × draws."""
            likely = np.asarray(family.log_likelihood(theta, **y)).reshape(-1, runs, 3).sum(-1)
            units = theta.reshape(-1, runs, 3).T  # units × runs × draws
            names = ("θ, weak prior", "θ, strong prior", "θ, few data", "log-likelihood")
            return dict(zip(names, (*units, likely.T), strict=True))

        truth = {name: value[:, 0] for name, value in scalars(theta[None]).items()}
        return ranks(truth, scalars(drawn), narrow)

    return of_runs


_trials = ldf.Binomial.prior([0.7, 12, 2], [0.9, 30, 5]), {"trials": np.array([40.0, 60, 4])}
_counts = POISSON.prior([0.8, 15, 2], [0.5, 6, 1]), {"exposure": np.array([3.0, 4, 0.5])}

MODELS: dict[str, Callable[[int, int, int, float], Ranks]] = {
    **{name: _of_setting(name) for name in SETTINGS},
    **{f"mixture by {method}": _of_mixture(method) for method in ("marginal", *SWEEPS)},
    "misreported": _of_units(ldf.Misreported(0.85, 0.9), *_trials, "successes"),
    "zero-inflated": _of_units(ldf.ZeroInflatedPoisson(0.3), *_counts, "count"),
    "censored": _of_units(ldf.CensoredPoisson(1, 9), *_counts, "count"),
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
    """A row of histograms a model; red where they are not uniform."""
    from matplotlib.figure import Figure

    columns = max(len(of) for of in every.values())
    figure = Figure(figsize=(1.6 * columns, 1.3 * len(every)), layout="constrained")
    figure.suptitle("Ranks of the truth; grey: where 99 % of uniform bins lie", fontsize=9)
    panels = figure.subplots(len(every), columns, squeeze=False, sharex=True, sharey=True)
    panels[0, 0].set_ylim(0, 1.1 * max(v.bins.max() for of in every.values() for v in of.values()))
    for row, (model, verdicts) in zip(panels, every.items(), strict=True):
        row[0].set_ylabel(model.replace(" on ", "\non ").replace(" by ", "\nby "), fontsize=8)
        for panel in row[len(verdicts) :]:
            panel.axis("off")
        for panel, (name, of) in zip(row, verdicts.items(), strict=False):
            found = min(of.p_bins, of.p_width) * 2 * len(verdicts) < LEVEL
            band = scipy.stats.binom.ppf([0.005, 0.995], of.bins.sum(), 1 / BINS)
            panel.axhspan(*band, color="#cccccc")
            panel.stairs(of.bins, baseline=None, color="#a30015" if found else "#204080")
            panel.set_xticks([])
            panel.tick_params(labelsize=6)
            panel.set_title(name, fontsize=7)
    figure.savefig(file, dpi=90)


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
            f"  too narrow by {NARROW:.0%}, it would be found with probability {sure:.3f}",
            flush=True,
        )
        for quantity, of in every[name].items():
            tests = f"p = {of.p_bins:.3f} by bins, {of.p_width:.3f} by width"
            print(f"  {quantity:24s} {tests}; {of.width:.2f} times as wide as it should be")
    draw(every, ask.out)


if __name__ == "__main__":
    main()
