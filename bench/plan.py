"""Whether surveying where the plan says lowers the error of θ faster than other ways to choose.

district   simulated districts, where θ is known: a model is fitted to a first survey, and a budget
           is spent on further buildings of any cell. Answers are drawn from the truth, and errors
           are those of the posterior over all cells
counties   the homicides of 2010, replayed: of each county the deaths among a tenth of its people
           are known at first, and the model is fitted to that. A survey reveals more of its people,
           a thousand at a time, and the deaths among them. Errors are squared distances of the
           posterior mean to the rate of all its people in 2010, and to that of 2009, 2011 and 2012,
           which is of no year that was revealed

Every way has the same budget and the same costs: each observation costs one. "random observations"
are drawn from all that are left, "random units" from units alike; "largest variance first" visits
units by their variance, each for ten observations; "variance evened out" gives each observation to
the unit whose variance is then largest. Posteriors are updated with what was answered; the model is
not fitted again. The plan has the target that is measured: the squared error, the negative log
density at θ, or the share of wrong decisions.

The model is a cheap ensemble of two regressions, since what is compared is how a budget is spent.

    python bench/plan.py [--data ../shared/data] [--seeds 50] [--parts …] [--out FILE] [--page FILE]

What the file of --out has already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import ldf
from ldf.datasets import district
from ldf.datasets.district import FEATURES
from ldf.ensemble import Ensemble, Member
from ldf.learned import Said
from ldf.mappings import Linear

LINES = Ensemble((Member(Linear()), Member(Linear(constant_count=True))), parts=4)
TEN = 10
BUDGETS = {"district": (200, 1_000, 5_000), "counties": (1_000, 5_000, 25_000)}
WAYS = (
    "plan",
    "random observations",
    "random units",
    "largest variance first",
    "variance evened out",
)


class World(NamedTuple):
    """A fitted model, what is known, and what there is to know."""

    model: ldf.Fusion
    frame: pd.DataFrame
    words: tuple[str, str]  # the family's: of the outcome, of how much
    belief: Said  # after the first survey; rows learned from are answered for out of fold
    most: np.ndarray  # that can be asked of a unit yet
    answer: Any  # (amount, rng) → the outcomes of so many observations
    errors: dict[str, Any]  # what is measured of a posterior, by name
    target: dict[str, Any]  # what a plan has to make small for it
    step: float = 1.0

    def updated(self, amount: np.ndarray, rng: np.random.Generator) -> Said:
        """What is known after so many observations."""
        y = {self.words[0]: self.answer(amount, rng), self.words[1]: amount}
        return self.model.learned_.updated(self.belief, y, amount > 0)


def at_random(world: World, budget: float, rng: np.random.Generator, units: bool) -> np.ndarray:
    """Observations one by one; each of those left alike, or each unit that has some left."""
    left = np.floor(world.most / world.step)
    number = int(min(budget / world.step, left.sum()))
    if not units:
        return (
            rng.multivariate_hypergeometric(left.astype(int), number, method="marginals")
            * world.step
        )
    taken = np.zeros(len(left))
    while number > taken.sum():
        free = np.flatnonzero(taken < left)
        more = np.bincount(rng.choice(free, int(number - taken.sum())), minlength=len(left))
        taken = np.minimum(taken + more, left)
    return taken * world.step


def by_variance(world: World, budget: float) -> np.ndarray:
    variance = np.asarray(world.model.learned_.posterior(world.belief).variance())
    taken = np.zeros(len(variance))
    for unit in np.argsort(-variance, kind="stable"):
        taken[unit] = min(TEN * world.step, world.most[unit], budget - taken.sum())
        if taken.sum() >= budget:
            break
    return np.floor(taken / world.step + 1e-9) * world.step


def evened(world: World, budget: float) -> np.ndarray:
    """Down to a variance that all have after it, as far as there are observations."""
    law = world.model.learned_.posterior(world.belief)
    mean, variance = np.asarray(law.mean()), np.asarray(law.variance())
    spread = mean * (1 - mean) if world.words[0] == "successes" else mean
    worth = spread / variance - (world.words[0] == "successes")  # of one component like the mixture
    low, high = 0.0, float(variance.max())
    for _ in range(60):
        level = (low + high) / 2
        amount = np.clip(worth * (variance / level - 1), 0, world.most)
        low, high = (level, high) if amount.sum() > budget else (low, level)
    amount = np.clip(worth * (variance / high - 1), 0, world.most)
    return np.where(amount >= world.most, amount, np.floor(amount / world.step) * world.step)


def spend(world: World, budget: float, way: str, target: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, int(budget)])
    if way == "plan":
        plan = world.model.plan(
            world.frame, budget, target=target, most=world.most, step=world.step
        )
        return plan.observations
    if way == "largest variance first":
        return by_variance(world, budget)
    if way == "variance evened out":
        return evened(world, budget)
    return at_random(world, budget, rng, way == "random units")


# --- worlds -------------------------------------------------------------------------------------


def a_district(seed: int, truth: str) -> World:
    cells = district(truth, seed)
    frame = pd.DataFrame(cells.features, columns=list(FEATURES))
    frame["electrified"], frame["buildings"] = cells.electrified, cells.buildings
    primary = {"successes": "electrified", "trials": "buildings"}
    model = ldf.Fusion("binomial", primary, list(FEATURES), ensemble=LINES, seed=seed).fit(frame)
    rng = np.random.default_rng([seed, 1])
    most = 1.0 + rng.poisson(2 * cells.features[:, 1])  # buildings that can be asked

    errors = {
        "mse": lambda law: np.mean((law.mean() - cells.theta) ** 2),
        "−log density": lambda law: -np.mean(law.log_prob(cells.theta)),
        "wrong of θ > 0.5": lambda law: np.mean((law.exceeds(0.5) > 0.5) != (cells.theta > 0.5)),
    }
    targets = dict(zip(errors, ("mse", "entropy", ("exceeds", 0.5)), strict=True))

    def answer(amount: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.binomial(amount.astype(int), cells.theta)

    words = ("successes", "trials")
    return World(model, frame, words, _belief(model, frame), most, answer, errors, targets)


def some_counties(seed: int, folder: Path) -> World:
    about = json.loads((folder / "registry.json").read_text())["homicide"]
    table = pd.read_csv(folder / about["file"])
    deaths, people = table[about["y"]].to_numpy(int), table[about["n"]].to_numpy(float) / 1000
    others = pd.read_csv(folder / "homicide_other_years.csv").groupby("fips")
    others = others[["homicides", "ucr_pop"]].sum().reindex(table["fips"])
    there = (others["ucr_pop"] > 0).to_numpy()
    other = (1000 * others["homicides"] / others["ucr_pop"]).to_numpy()[there]
    known = people / 10
    first = np.random.default_rng([seed, 2]).binomial(deaths, 0.1)
    frame = table[about["features"]].astype(float).copy()
    frame["deaths"], frame["people"] = first.astype(float), known
    primary = {"count": "deaths", "exposure": "people"}
    model = ldf.Fusion("poisson", primary, list(about["features"]), ensemble=LINES, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ldf.DataWarning)  # of cells that are missing
        model.fit(frame)
    most, rest = people - known, deaths - first
    errors = {
        "mse, 2010": lambda law: np.mean((law.mean() - deaths / people) ** 2),
        "mse, other years": lambda law: np.mean((law.mean()[there] - other) ** 2),
    }

    def answer(amount: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.binomial(rest, np.minimum(amount / most, 1.0)).astype(float)

    words, targets = ("count", "exposure"), dict.fromkeys(errors, "mse")
    return World(model, frame, words, _belief(model, frame), most, answer, errors, targets)


def _belief(model: ldf.Fusion, frame: pd.DataFrame) -> Said:
    data, _, part = model._read(frame)
    return model._updated(model._said(data, part, "both"), data, "both")


# --- measuring ----------------------------------------------------------------------------------


def run(world: World, budgets: tuple[int, ...], seed: int) -> list[tuple[str, int, str, float]]:
    """Errors: each with its name, the budget and the way."""
    learned = world.model.learned_
    now = learned.posterior(world.belief)
    found = [(name, 0, "now", float(error(now))) for name, error in world.errors.items()]
    for budget in budgets:
        spent: dict[Any, Any] = {}
        for name, error in world.errors.items():
            for way in WAYS:
                target = world.target[name] if way == "plan" else None
                if (way, target) not in spent:
                    amount = spend(world, budget, way, target, seed)
                    assert amount.sum() <= budget * (1 + 1e-9)
                    assert (amount <= world.most + 1e-9).all()
                    after = world.updated(amount, np.random.default_rng([seed, 3, budget]))
                    spent[way, target] = learned.posterior(after)
                found.append((name, budget, way, float(error(spent[way, target]))))
    return found


def told(name: str, seeds: list[Any], unit: str) -> list[str]:
    """Rows of the table: the error by way, and the plan's lead with its 95 % interval."""
    rows, each = [], [{tuple(key): value for *key, value in seed} for seed in seeds]
    for error, budget in dict.fromkeys((e, b) for e, b, _ in each[0] if b):
        now = np.array([one[error, 0, "now"] for one in each])
        plan = np.array([one[error, budget, "plan"] for one in each])
        for way in WAYS[1:]:
            other = np.array([one[error, budget, way] for one in each])
            ahead = other - plan
            half = stats.t.ppf(0.975, len(ahead) - 1) * ahead.std(ddof=1) / np.sqrt(len(ahead))
            low, high = ahead.mean() - half, ahead.mean() + half
            verdict = "ahead" if low > 0 else "behind" if high < 0 else "even"
            rows.append(
                f"| {name} | {error} | {budget:,} {unit} | {now.mean():.4g} | {plan.mean():.4g} | "
                f"{way} | {other.mean():.4g} | {ahead.mean():+.2e} [{low:+.2e}, {high:+.2e}] | "
                f"{verdict} |"
            )
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--parts", default="beta,logit-normal,counties")
    parser.add_argument("--out", type=Path, help="keep each seed's errors, and go on from there")
    parser.add_argument("--page", type=Path, help="write the table as Markdown")
    options = parser.parse_args()
    kept = json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    rows = []
    for part in options.parts.split(","):
        counties = part == "counties"
        for seed in range(options.seeds):
            if f"{part} {seed}" in kept:
                continue
            world = some_counties(seed, options.data) if counties else a_district(seed, part)
            kept[f"{part} {seed}"] = run(
                world, BUDGETS["counties" if counties else "district"], seed
            )
            if options.out:
                options.out.write_text(json.dumps(kept))
        each = [kept[f"{part} {seed}"] for seed in range(options.seeds)]
        named = "counties of 2010" if part == "counties" else f"district, {part}"
        rows += told(named, each, "thousand people" if part == "counties" else "buildings")
    if options.page:
        head = (
            f"Over {options.seeds} seeds; smaller errors are better. The lead is how much larger "
            "the error of the other way is, with its 95 % interval over seeds.\n\n"
            "| world | error | budget | now | by plan | other way | by it | the plan's lead | |\n"
            "|:--|:--|--:|--:|--:|:--|--:|:--|:--|\n"
        )
        options.page.write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
