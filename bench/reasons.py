"""Why some figures of the paper's studies are not reached: what each setting, and the data, do.

Electrification: the study's model with one thing changed at a time, on the simulated district and
on Malawi's survey with four columns, beside `ldf` as it is by default and, in the district, beside
the law that the rates were drawn from. Then the same with fewer and with more trials in a unit.

Homicide: the mixture of three on the counties of 2010, likewise changed. Clusters and peaks are of
a fit to all counties, scores are held out.

    python bench/reasons.py [--data ../shared/data] [--page FILE]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from quality import FOUR
from scipy import stats
from scipy.special import entr
from studies import HOMICIDE, counties_2010

from ldf import assess, folds
from ldf.data import read
from ldf.datasets import FEATURES, district
from ldf.datasets.district import PRIOR
from ldf.estimator import Fusion, table_of
from ldf.families import Binomial, Poisson
from ldf.learn import learn
from ldf.mixed import Mixture
from ldf.objective import maximum_likelihood
from ldf.spec import Spec
from ldf.studies import reproduce
from ldf.studies.electrification import study as electrification
from ldf.studies.homicide import study as homicide
from ldf.studies.homicide.claims import modes
from ldf.studies.protocol import THE_PAPERS, regressions
from ldf.table import empirical_rate
from ldf.train import networks
from ldf.validate import answer

AS_IN_THE_STUDY = "as in the study"


class Survey(NamedTuple):
    """Units with trials, and the law of their rates where it is known."""

    title: str
    frame: dict[str, Any]
    primary: dict[str, str]
    auxiliary: list[str]
    law: tuple[np.ndarray, np.ndarray] | None  # of θ: successes and failures


def in_district(times: float = 1.0, seed: int = 0) -> Survey:
    """With so many times the buildings of each cell, electrified by the same true rates."""
    cells = district(seed=seed)
    columns = cells.columns()
    if times != 1:
        rng = np.random.default_rng(seed)
        seen = np.isfinite(cells.buildings)
        number = np.ceil(cells.buildings[seen] * times)
        for name, values in (
            ("buildings", number),
            ("electrified", rng.binomial(number.astype(int), cells.theta[seen])),
        ):
            columns[name] = np.full(len(seen), np.nan)
            columns[name][seen] = values
    law = (PRIOR[0] + cells.pseudo_successes, PRIOR[1] + cells.pseudo_failures)
    primary = {"successes": "electrified", "trials": "buildings"}
    return Survey("The simulated district", columns, primary, list(FEATURES), law)


def in_malawi(folder: Path, households: int | None = None, seed: int = 0) -> Survey:
    """With so many households of each area, drawn from those that were asked."""
    table = pd.read_csv(folder / "malawi_electrification.csv")
    if households is not None:
        rng = np.random.default_rng(seed)
        yes, of = table["electrified"].to_numpy(int), table["households"].to_numpy(int)
        some = np.minimum(households, of)
        table["electrified"], table["households"] = rng.hypergeometric(yes, of - yes, some), some
    columns = {name: table[name].to_numpy(float) for name in (*FOUR, "electrified", "households")}
    primary = {"successes": "electrified", "trials": "households"}
    return Survey("Malawi's survey with four columns", columns, primary, list(FOUR), None)


class Trial(NamedTuple):
    """What a model made of held-out units: log scores, and entropies of p(θ | x)."""

    score: np.ndarray
    entropy: Any


class Measured(NamedTuple):
    """Several models on the same folds of a survey."""

    trials: dict[str, Trial]

    def row(self, name: str) -> list[str]:
        own, plain, compound = (self.trials[of] for of in (name, "binomial", "beta-binomial"))
        ahead = assess.score_difference(own.score, compound.score)
        return [
            f"{assess.wins(own.score - plain.score).mean():.1%}",
            f"{np.quantile(own.score - plain.score, 0.75):.2f}",
            f"{ahead.better:.1%}",
            f"{ahead.mean:+.3f} ± {ahead.standard_error:.3f}",
            f"{assess.wins(compound.entropy - own.entropy).mean():.1%}",
        ]


def measure(of: Survey, changes: dict[str, Callable[[Spec], Spec]], default: bool) -> Measured:
    protocol = THE_PAPERS
    settings, specs = electrification.asked(protocol)
    model = Fusion(Binomial(), of.primary, of.auxiliary, seed=protocol.seed, **settings)
    data = read(of.frame, model.family_of(), model.columns())
    spec = model.spec(data)
    specs |= {name: change(spec) for name, change in changes.items()}
    if default:
        specs["ldf by default"] = Fusion(Binomial(), of.primary, of.auxiliary).spec(data)
    y, n = data.y["successes"], data.y["trials"]
    rate = empirical_rate(data.family, data.y, data.seen)
    counted = np.isfinite(rate)  # of those without a trial all models say the same
    split = folds.stratified(rate, protocol.folds, protocol.seed)
    trials = {}
    for name, one in specs.items():
        found = answer(one, table_of(data), split, protocol.seed)
        law = found.learned.posterior(found.of(counted))
        entropy = -np.inf if one.certain else np.asarray(law.entropy())
        trials[name] = Trial(found.log_score[counted], entropy)
    if of.law is not None:
        a, b = (each[counted] for each in of.law)
        score = stats.betabinom.logpmf(y[counted], n[counted], a, b)
        trials["the true law"] = Trial(score, stats.beta.entropy(a, b))
    return Measured(trials)


def changed(spec: Spec, **words: Any) -> Spec:
    """With other members' settings, or another ensemble's."""
    own = {k: v for k, v in words.items() if k in ("penalty", "preprocess", "learning_rate")}
    rest = {k: v for k, v in words.items() if k not in own}
    members = tuple(replace(member, **own) for member in spec.ensemble.members)
    return replace(spec, ensemble=replace(spec.ensemble, members=members, **rest))


likeliest = {"objective": maximum_likelihood, "reference": "prior"}
CHANGES: dict[str, Callable[[Spec], Spec]] = {
    AS_IN_THE_STUDY: lambda spec: spec,
    "maximum likelihood": lambda spec: replace(spec, **likeliest),
    "classes not balanced": lambda spec: replace(spec, balance=0),
    "both": lambda spec: replace(spec, balance=0, **likeliest),
    "no penalty": lambda spec: changed(spec, penalty=0.0),
    "a penalty of 0.01": lambda spec: changed(spec, penalty=1e-2),
    "one restart": lambda spec: changed(spec, restarts=1),
    "thirty restarts": lambda spec: changed(spec, restarts=30),
    "columns by powers": lambda spec: changed(spec, preprocess="power"),
    "settings averaged": lambda spec: changed(spec, combine="equal"),
}


FEW: dict[str, Callable[[Spec], Spec]] = {
    name: CHANGES[name] for name in (AS_IN_THE_STUDY, "classes not balanced")
}


class Counties(NamedTuple):
    """Those of 2010, as the study reads them, and what a gamma-Poisson regression makes of them."""

    data: Any
    spec: Spec  # of the mixture
    split: folds.Split
    largest: np.ndarray  # the most populous county of each state
    regression: np.ndarray  # log scores


def in_2010(folder: Path) -> Counties:
    with TemporaryDirectory() as out:
        frame = reproduce.file(counties_2010(folder, Path(out)))
    names = reproduce.features(frame, {"count": "homicides", "exposure": "population"}, ())
    frame["thousands"] = frame["population"] / 1000
    ensemble, penalties = homicide.searched(HOMICIDE)
    model = Fusion(
        Poisson(), {"count": "homicides", "exposure": "thousands"}, names,
        ensemble=ensemble, structure=Mixture(homicide.COMPONENTS, learn="em"), seed=HOMICIDE.seed,
    )  # fmt: skip
    data = read(frame, model.family_of(), model.columns())
    rate = empirical_rate(data.family, data.y, data.seen)
    split = folds.stratified(rate, HOMICIDE.folds, HOMICIDE.seed)
    spec = regressions(data.family, penalties)["gamma-poisson"]
    score = answer(spec, table_of(data), split, HOMICIDE.seed).log_score
    largest = homicide.largest(np.asarray(frame["state"]), data.y["exposure"])
    return Counties(data, model.spec(data), split, largest, score)


@contextmanager
def by_training_rows() -> Iterator[None]:
    """A fit learns from all its rows, and watches the same: as Section 6 has it, it stops after so
    many iterations "of no training loss improvement"."""
    usual = networks.roles
    networks.roles = lambda job, p, parts, seed: (job.weight, job.weight)
    try:
        yield
    finally:
        networks.roles = usual


def free(spec: Spec) -> Spec:
    """Without penalty and dropout."""
    member = replace(spec.ensemble.members[0], penalty=0.0, dropout=0.0)
    return replace(spec, ensemble=replace(spec.ensemble, members=(member,)))


MIXTURES: dict[str, tuple[Callable[[Spec], Spec], bool]] = {
    AS_IN_THE_STUDY: (lambda spec: spec, False),
    "ten restarts": (lambda spec: changed(spec, restarts=10), False),
    "no penalty, no dropout": (free, False),
    "stopped by training rows": (lambda spec: spec, True),
    "both": (free, True),
}


def mixture_row(of: Counties, change: Callable[[Spec], Spec], training: bool) -> list[str]:
    spec, rows = change(of.spec), table_of(of.data)
    with by_training_rows() if training else nullcontext():
        (whole,) = learn(spec, rows, HOMICIDE.seed)
        held = answer(spec, rows, of.split, HOMICIDE.seed)
    said = whole.said(of.data.x)
    after = whole.updated(said, of.data.y, of.data.seen).share
    sizes = np.sort(np.bincount(after.argmax(0), minlength=len(after)))
    peaks = modes(whole.posterior(said.rows(of.largest)))
    own = homicide.by_own_count(held, of.data, of.data.seen)
    ahead = assess.score_difference(held.log_score, of.regression)
    return [
        ", ".join(f"{size:,}" for size in sizes),
        f"{np.mean(entr(after).sum(0)):.2f}",
        f"{int((peaks > 1).sum())} of {len(peaks)}",
        f"{ahead.better:.1%}",
        f"{ahead.mean:+.3f} ± {ahead.standard_error:.3f}",
        f"{assess.wins(own - of.regression).mean():.1%}",
    ]


# --- tables -------------------------------------------------------------------------------------

ELECTRIFICATION_HEAD = (
    "better than binomial regression", "75th percentile of the difference",
    "better than beta-binomial", "mean difference to it", "lower entropy than it",
)  # fmt: skip
HOMICIDE_HEAD = (
    "counties of each mapping", "mean entropy of p(z \\| x, y)", "several peaks",
    "better than gamma-Poisson", "mean difference to it", "better, if its own count may choose",
)  # fmt: skip


def as_table(title: str, head: tuple[str, ...], rows: dict[str, list[str]]) -> str:
    lines = [f"**{title}**", "", "| | " + " | ".join(head) + " |", "|:--|" + "--:|" * len(head)]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in rows.items()]
    print("\n".join(lines), "\n", flush=True)
    return "\n".join(lines) + "\n"


def tables(folder: Path) -> Iterator[str]:
    for of in (in_district(), in_malawi(folder)):
        found = measure(of, CHANGES, True)
        rows = {name: found.row(name) for name in found.trials if name != "binomial"}
        yield as_table(f"{of.title}, one thing changed", ELECTRIFICATION_HEAD, rows)
    sizes: dict[str, list[Survey]] = {
        "The simulated district, other numbers of buildings": [
            in_district(times) for times in (0.25, 4, 16)
        ],
        "Malawi's survey, fewer households": [in_malawi(folder, some) for some in (2, 4, 8)],
    }
    for title, surveys in sizes.items():
        rows = {}
        for of in surveys:
            found, mean = measure(of, FEW, False), np.nanmean(of.frame[of.primary["trials"]])
            for name in (*FEW, "the true law"):
                if name in found.trials:
                    rows[f"{mean:.0f} trials a unit: {name}"] = found.row(name)
        yield as_table(title, ELECTRIFICATION_HEAD, rows)
    counties = in_2010(folder)
    rows = {name: mixture_row(counties, *how) for name, how in MIXTURES.items()}
    yield as_table("The mixture of 2010, one thing changed", HOMICIDE_HEAD, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    options: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    text = "\n".join(tables(options.data))
    if options.page:
        options.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
