"""How fast the paper's protocol trains here, beside PyTorch, in one run.

The protocol of Section 5 on the simulated district: 10 folds × 10 restarts of the 146-weight
network, Adam, batches of 256, early stopping with patience 100 on a random tenth of the training
rows. PyTorch (`fit_torch.py`) does so in two ways, each with the better of 1 and 2 threads: in the
plain loop one would write, where a few of the same fits are trained to their end and the time for
all 100 is what these took, times how many more there are; and all 100 at once by `torch.func.vmap`,
to their end. Likewise ldf has as many fits in the program at once as is quickest for ones so small.

All take as many steps an epoch, each by as many rows that teach. A fit of the loop has only its own
rows and takes 256 at once, and what is left. Where fits share a batch, a fifth of its rows teach a
given fit nothing: it is larger by so much. Only steps of fits that have not stopped count.

    python bench/fit.py [--torch-fits 5] [--places 4] [--lanes 2] [--page FILE] [--alone]

`make bench-fit` installs PyTorch, which is not among the pinned packages: under its plain name
there is another build for each kind of machine. --alone measures ldf without it.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from machine import measured_with

import ldf
from ldf.datasets import district
from ldf.fit import Rows, Schedule, Settings, fit
from ldf.mappings import Network
from ldf.model import Model

FOLDS, RESTARTS = 10, 10
PRIOR, RATE, PENALTY = (0.005316, 1.55), 0.005418707, 1.74e-7
BATCH = 256  # rows that teach, in one step


class Measured(NamedTuple):
    """One way of training."""

    name: str
    threads: int
    seconds: float  # the whole protocol, whatever is compiled included
    rate: float  # optimiser steps a second of fits that had not stopped, compiled already
    score: float  # of the watched rows; the median over fits

    def told(self) -> str:
        return (
            f"{self.name} ({self.threads} threads): {self.rate:,.0f} steps a second, whole "
            f"protocol in {self.seconds:,.1f} s, median score {self.score:.3f}"
        )


def protocol(seed: int = 0) -> dict[str, np.ndarray]:
    """Counts, which rows each fit learns from and watches, and the features as its fold sees them:
    standardised by the rows that are not held out."""
    cells = district("beta", seed)
    seen = np.isfinite(cells.buildings)
    x, k, n = cells.features[seen], cells.electrified[seen], cells.buildings[seen]
    rng = np.random.default_rng(seed)
    fold = rng.permutation(np.arange(len(k)) % FOLDS)
    training, watched = [], []
    for f in range(FOLDS * RESTARTS):
        held = fold == f % FOLDS
        stop = ~held & (rng.random(len(k)) < 0.1)
        training.append(~held & ~stop)
        watched.append(stop)
    kept = [x[fold != f] for f in range(FOLDS)]
    views = [(x - rows.mean(0)) / rows.std(0) for rows in kept]
    return {
        "x": np.array(views, np.float32),
        "view": np.arange(FOLDS * RESTARTS) % FOLDS,
        "successes": k.astype(np.float32),
        "trials": n.astype(np.float32),
        "training": np.array(training, np.float32),
        "watched": np.array(watched, np.float32),
    }


def ours(data: dict[str, np.ndarray], schedule: Schedule) -> tuple[float, int, np.ndarray]:
    """Seconds for everything, compiling included; steps of live fits; scores."""
    begin = time.perf_counter()
    fits = len(data["training"])
    family = ldf.Binomial()
    y = {name: data[name] for name in ("successes", "trials")}
    none = np.zeros(data["x"].shape[1], np.float32)
    rows = Rows(data["x"], data["view"], y, data["training"], data["watched"], none)
    model = Model(family, Network(by="rate"))
    ground = model.ground(family.prior(*PRIOR))
    ground = jax.tree.map(lambda v: np.stack([np.asarray(v, np.float32)] * fits), ground)
    values = np.array([RATE, PENALTY, 0.0, 12], np.float32)
    settings = Settings(*np.repeat(values[:, None], fits, 1))
    found = fit(model, rows, ground, settings, 0, schedule)
    return time.perf_counter() - begin, found.steps, found.score


def schedule_of(data: dict[str, np.ndarray], places: int, lanes: int) -> Schedule:
    """With as many steps an epoch as a fit needs that takes its own rows by 256."""
    steps = -(-int(data["training"].sum(1).max()) // BATCH)
    return Schedule(batch=-(-len(data["trials"]) // steps), places=places, lanes=lanes)


def by_ldf(data: dict[str, np.ndarray], schedule: Schedule) -> tuple[Measured, np.ndarray]:
    seconds, _, scores = ours(data, schedule)
    again, steps, _ = ours(data, schedule)
    rate = steps / again
    return Measured("ldf", schedule.lanes, seconds, rate, float(np.median(scores))), scores


def by_torch(
    data: dict[str, np.ndarray], schedule: Schedule, fits: int, scores: np.ndarray
) -> list[Measured]:
    import fit_torch

    rule = fit_torch.Protocol(PRIOR, RATE, PENALTY, BATCH, schedule.patience, schedule.epochs)
    threads = faster(lambda t: fit_torch.loop(data, rule._replace(epochs=30), 1, t))
    took, taken, found = fit_torch.loop(data, rule, fits, threads)
    median, whole = float(np.median(found)), took / fits * FOLDS * RESTARTS
    print(f"{fits} fits of the loop took {took:.1f} s and {taken:,} steps: median score", end=" ")
    print(f"{median:.3f}, of ldf's same fits {np.median(scores[:fits]):.3f}")
    loop = Measured(f"PyTorch, loop, by {fits} of the fits", threads, whole, taken / took, median)
    rule = rule._replace(batch=schedule.batch)
    threads = faster(lambda t: fit_torch.together(data, rule._replace(epochs=10), t))
    took, taken, found = fit_torch.together(data, rule, threads)
    vmap = Measured("PyTorch, vmap", threads, took, taken / took, float(np.median(found)))
    return [loop, vmap]


def page(every: list[Measured], shape: str) -> str:
    lines = [
        measured_with("ldf", "jax", "numpy", "torch"),
        "",
        f"{shape} Steps are of fits that have not stopped, compiled already; the whole protocol is "
        "with compiling.",
        "",
        "| | threads | steps a second | whole protocol | ldf: steps a second | ldf: less time "
        "| median score |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    ldf, *others = every
    for own in every:
        beside = " | "
        if own in others:
            beside = f"{ldf.rate / own.rate:.1f} times | {own.seconds / ldf.seconds:.1f} times"
        lines.append(
            f"| {own.name} | {own.threads} | {own.rate:,.0f} | {own.seconds:,.1f} s "
            f"| {beside} | {own.score:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch-fits", type=int, default=5)
    parser.add_argument("--places", type=int, default=4)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--page", type=Path, help="write the table as Markdown")
    parser.add_argument("--alone", action="store_true", help="without PyTorch")
    options = parser.parse_args()
    if not options.alone and importlib.util.find_spec("torch") is None:
        raise SystemExit("PyTorch is not installed: pip install torch==2.13.0, or give --alone")
    data = protocol()
    schedule = schedule_of(data, options.places, options.lanes)
    rows = float(data["training"].sum(1).mean())
    steps = -(-len(data["trials"]) // schedule.batch)
    shape = (
        f"{FOLDS * RESTARTS} fits; {steps} steps an epoch, each by {rows / steps:.0f} rows that "
        f"teach (ldf and vmap: of {schedule.batch} that all fits share)."
    )
    print(shape, flush=True)
    own, scores = by_ldf(data, schedule)
    print(own.told(), flush=True)
    every = [own]
    if not options.alone:
        every += by_torch(data, schedule, options.torch_fits, scores)
    text = page(every, shape)
    print(f"\n{text}")
    if options.page:
        options.page.write_text(text)


def faster(run: Callable[[int], tuple[float, int, Any]]) -> int:
    """The number of threads with more steps a second, in a short trial of each."""
    run(1)  # the first is slow for reasons of its own
    rates = {threads: run(threads) for threads in (1, 2)}
    return max(rates, key=lambda threads: rates[threads][1] / rates[threads][0])


if __name__ == "__main__":
    main()
