"""What is gained when units share something: several mappings, states, years. On real counties.

mixtures   K = 3 mappings beside K = 1 (Appendix D's network), the default ensemble, an ensemble
           of mixtures and gamma-Poisson regression, on the same folds, by each way of learning
states     a hierarchy by state, with half the counties of each state held out, and with whole
           states held out
years      fitted on 2010: p(y_2011 | x, y_2010) beside p(y_2011 | x), p(y_2011 | y_2010) and a
           negative-binomial regression with the rate of 2010 as a column

python bench/structure.py [--data ../shared/data] [--parts mixtures,states,years] [--folds 5]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

import ldf
from ldf import assess, folds
from ldf.baselines import baselines
from ldf.ensemble import FEW, Ensemble, Member
from ldf.fit import Schedule
from ldf.infer import nuts
from ldf.learn import learn
from ldf.mappings import Linear, Network
from ldf.mixed import Mixture
from ldf.objective import model_selection
from ldf.spec import Spec
from ldf.structure import Hierarchy
from ldf.table import Table, empirical_rate
from ldf.validate import answer

FAMILY = ldf.Poisson()
APPENDIX_D = Network(shared=(10, 10), branch=(), activations=("tanh", "relu"), by="counts")
SCHEDULE = Schedule(epochs=1000, patience=50)


def counties(folder: Path, name: str) -> tuple[pd.DataFrame, Table, np.ndarray]:
    about = json.loads((folder / "registry.json").read_text())[name]
    frame = pd.read_csv(folder / about["file"])
    exposure = frame[about["n"]].to_numpy(float) / 1000
    y = {"count": frame[about["y"]].to_numpy(float), "exposure": exposure}
    x = frame[about["features"]].to_numpy(float)
    state = frame["state"].astype(str).to_numpy()
    return frame, Table(x, y, np.ones(len(x), bool), np.ones(len(x))), state


def line(
    name: str, score: np.ndarray, rival: np.ndarray, state: np.ndarray, more: str = ""
) -> None:
    ahead = assess.score_difference(score, rival, state)
    print(
        f"  {name:<34}{score.mean():9.4f}   {ahead.mean:+.4f} ± {ahead.standard_error:.4f}"
        f"   {ahead.better:6.1%}   {more}",
        flush=True,
    )


def mixtures(folder: Path, number: int) -> None:
    for name in ("homicide", "homicide_nat1990"):
        _, table, state = counties(folder, name)
        split = folds.stratified(empirical_rate(FAMILY, table.y, table.seen), number, 0)
        one = Ensemble((Member(APPENDIX_D),), parts=1, restarts=4, schedule=SCHEDULE)
        specs = {
            "gamma-poisson": baselines(FAMILY)["gamma-poisson"],
            "K = 1": Spec(FAMILY, one),
            "K = 1, model selection": Spec(FAMILY, one, objective=model_selection),
            **{
                f"K = 3, {how}": Spec(FAMILY, one, structure=Mixture(3, learn=how))
                for how in ("marginal", "em", "full em", "monte-carlo")
            },
            "K = 3, model selection": Spec(
                FAMILY, one, objective=model_selection, structure=Mixture(3)
            ),
            "ensemble": Spec(FAMILY),
            "ensemble of mixtures, K = 2": Spec(FAMILY, structure=Mixture(2)),
        }
        print(f"{name}: mean log score, lead over gamma-Poisson, share of counties better")
        scores: dict[str, np.ndarray] = {}
        for what, spec in specs.items():
            begin = time.perf_counter()
            found = answer(spec, table, split, 0)
            scores[what] = found.log_score
            law = found.learned.predictive(found.of(table.seen), {"exposure": table.y["exposure"]})
            cover = assess.coverage(law, table.y["count"], (0.5, 0.9)).rows()
            held = ", ".join(f"{c['mass']:.0%}: {c['z']:+.1f}" for c in cover)
            took = f"coverage in SE {held}; {time.perf_counter() - begin:.0f} s"
            line(what, scores[what], scores["gamma-poisson"], state, took)


def states(folder: Path, number: int) -> None:
    _, table, state = counties(folder, "homicide")
    rng = np.random.default_rng(0)
    half = np.zeros(len(state), bool)
    for one in np.unique(state):
        rows = rng.permutation(np.flatnonzero(state == one))
        half[rows[: (len(rows) + int(rng.integers(2))) // 2]] = True
    print("Hierarchy by state, half the counties of each held out, then the others: lead over none")
    for what, ensemble in (
        ("regression", Ensemble((Member(Linear(True, shape=True)),), parts=8)),
        ("ensemble's second member", Ensemble((FEW[1],), parts=8)),
    ):
        score: dict[str, np.ndarray] = {}
        for training in (half, ~half):
            for form, (found, status) in hierarchies(table, state, training, ensemble).items():
                score.setdefault(form, np.empty(len(state)))[~training] = found[~training]
                if "agree" in status or "diverged" in status:
                    print(f"    {what}, {form}: {status}")
        for form, found in score.items():
            line(f"{what}, {form}", found, score["none"], state)
    print("Whole states held out: joint log predictive of a state, and coverage of its total")
    whole_states(table, state, number)


def hierarchies(
    table: Table, state: np.ndarray, training: np.ndarray, ensemble: Ensemble
) -> dict[str, tuple[np.ndarray, str]]:
    """The log score of every county without a hierarchy, and with each of its forms."""
    (learned,) = learn(Spec(FAMILY, ensemble), table, 0, training[None])
    said = learned.said(table.x, learned.part)
    pseudo = said.pseudo[0]
    prior = jax.tree.map(np.asarray, learned.trained[0].ground.prior)
    none = np.asarray(FAMILY.log_predictive(said.natural[0], **table.y))
    found = {"none": (none, learned.status)}
    forms = {
        "on the prior": Hierarchy(state, prior),
        "on the rate": Hierarchy(state, prior, on="rate"),
        "on the rate, and strength": Hierarchy(state, prior, on="rate", strength=True),
    }
    for form, structure in forms.items():
        draws = nuts.sample(
            structure, FAMILY, pseudo, table.y, training,
            draws=800, warmup=600, chains=2, target=0.9, seed=0,
        )  # fmt: skip
        found[form] = np.asarray(draws.log_predictive(**table.y)), draws.status
    return found


def whole_states(table: Table, state: np.ndarray, number: int) -> None:
    """Each fold's states are new: their counties share a term that nothing is known of."""
    split = folds.grouped(state, number, 0, rate=empirical_rate(FAMILY, table.y, table.seen))
    ensemble = Ensemble((Member(Linear(True, shape=True)),), parts=8)
    joint: dict[str, list[float]] = {"none": [], "on the rate": []}
    inside: dict[str, list[bool]] = {"none": [], "on the rate": []}
    for training, held in zip(split.training, split.held, strict=True):
        (learned,) = learn(Spec(FAMILY, ensemble), table, 0, training[None])
        said = learned.said(table.x, learned.part)
        prior = jax.tree.map(np.asarray, learned.trained[0].ground.prior)
        structure = Hierarchy(state, prior, on="rate", strength=True)
        draws = nuts.sample(
            structure, FAMILY, said.pseudo[0], table.y, training,
            draws=500, warmup=400, chains=2, seed=0,
        )  # fmt: skip
        exposure = {"exposure": table.y["exposure"]}
        alone = FAMILY.predictive(said.natural[0], **exposure).sample(1000, 0)
        tied = draws.new_data(seed=0, **exposure)
        for one in np.unique(state[held]):
            rows = held & (state == one)
            independent = FAMILY.log_predictive(said.natural[0][rows], **_rows(table.y, rows))
            joint["none"].append(float(np.sum(independent)))
            joint["on the rate"].append(draws.joint_log_predictive(rows, **table.y))
            total = table.y["count"][rows].sum()
            for name, sample in (("none", alone), ("on the rate", tied)):
                low, high = np.quantile(sample[:, rows].sum(1), [0.05, 0.95])
                inside[name].append(bool(low <= total <= high))
    gain = np.subtract(joint["on the rate"], joint["none"])
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    for name in joint:
        print(
            f"  {name:<34}{np.mean(joint[name]):9.2f} a state; "
            f"{np.mean(inside[name]):.0%} of totals inside 90 % intervals"
        )
    print(f"  the hierarchy's lead: {gain.mean():+.2f} ± {error:.2f} a state")


def _rows(y: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[rows] for name, values in y.items()}


def years(folder: Path, _: int) -> None:
    frame, table, state = counties(folder, "homicide")
    later = pd.read_csv(folder / "homicide_other_years.csv")
    later = later[later["year"] == 2011].set_index("fips").reindex(frame["fips"])
    new = {
        "count": later["homicides"].to_numpy(float),
        "exposure": later["ucr_pop"].to_numpy(float) / 1000,
    }
    known = np.isfinite(new["count"]) & (new["exposure"] > 0)
    y_2011 = _rows(new, known)
    (learned,) = learn(Spec(FAMILY), table, 0)
    said = learned.said(table.x, learned.part)  # out of fold: y_2010 is not used twice
    rows = _rows(table.y, known)
    x_alone = said.rows(known)
    scores = {
        "p(y_2011 | x, y_2010)": learned.log_score(learned.updated(x_alone, rows), y_2011),
        "p(y_2011 | x)": learned.log_score(x_alone, y_2011),
        "p(y_2011 | y_2010)": fitted_alone(rows, y_2011),
        "regression with the 2010 rate": regression_on_rate(table, known, y_2011),
    }
    first = next(iter(scores.values()))
    print(f"Fitted on 2010, {known.sum():,} counties of 2011: mean log score, lead of the first")
    for name, score in scores.items():
        ahead = assess.score_difference(first, score, state[known])
        lead = f"{ahead.mean:+.4f} ± {ahead.standard_error:.4f}"
        print(f"  {name:<34}{score.mean():9.4f}   {lead}", flush=True)


def fitted_alone(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> np.ndarray:
    """By a gamma fitted to the rates of 2010, and updated by each county's own."""
    nothing = np.zeros((len(before["count"]), 1))
    table = Table(nothing, before, np.ones(len(nothing), bool), np.ones(len(nothing)))
    (learned,) = learn(baselines(FAMILY)["intercept"], table, 0)
    return learned.log_score(learned.updated(learned.said(nothing), before), after)


def regression_on_rate(table: Table, known: np.ndarray, after: dict[str, np.ndarray]) -> np.ndarray:
    """Gamma-Poisson regression of 2011 itself on x and the rate of 2010, out of fold."""
    rate = (table.y["count"] + 0.5) / (table.y["exposure"] + 0.5 / 0.05)
    x = np.column_stack([table.x, np.log(rate)])[known]
    own = Table(x, after, np.ones(len(x), bool), np.ones(len(x)))
    split = folds.stratified(empirical_rate(FAMILY, after, own.seen), 5, 0)
    return answer(baselines(FAMILY)["gamma-poisson"], own, split, 0).log_score


PARTS: dict[str, Any] = {"mixtures": mixtures, "states": states, "years": years}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--parts", default="mixtures,states,years")
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args()
    if not (options.data / "registry.json").exists():
        raise SystemExit(f"{options.data} holds no registry.json: give the folder by --data")
    warnings.simplefilter("ignore")
    for part in options.parts.split(","):
        PARTS[part](options.data, options.folds)


if __name__ == "__main__":
    main()
