"""How fast the paper's protocol trains here, beside PyTorch, in one run.

The protocol of Section 5 on the simulated district: 10 folds × 10 restarts of the 146-weight
network, Adam, batches of 256, early stopping with patience 100 on a random tenth of the training
rows. PyTorch (`fit_torch.py`) does so in two ways, each with the better of 1 and 2 threads: in the
plain loop one would write, where a few of the same fits are trained to their end and the time for
all 100 is what these took, times how many more there are; and all 100 at once by `torch.func.vmap`,
to their end. Likewise ldf has as many fits in the program at once as is quickest for ones so small.

    python bench/fit.py [--torch-fits 5] [--places 5] [--lanes 2]

PyTorch is not among the pinned packages: pip install torch==2.13.0, or be told only of ldf.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import ldf
from ldf.datasets import district
from ldf.fit import Rows, Schedule, Settings, fit
from ldf.mappings import Network
from ldf.model import Model

FOLDS, RESTARTS = 10, 10
PRIOR, RATE, PENALTY = (0.005316, 1.55), 0.005418707, 1.74e-7
SCHEDULE = Schedule(places=5)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-fits", type=int, default=5)
    parser.add_argument("--places", type=int, default=SCHEDULE.places)
    parser.add_argument("--lanes", type=int, default=SCHEDULE.lanes)
    options = parser.parse_args()
    wanted = options.torch_fits
    schedule = SCHEDULE._replace(places=options.places, lanes=options.lanes)
    data = protocol()
    seconds, steps, scores = ours(data, schedule)
    print(f"ldf: {FOLDS * RESTARTS} fits in {seconds:.1f} s with compiling, {steps:,} steps,")
    print(f"     {steps / seconds:,.0f} a second; median score {np.median(scores):.3f}")
    again, steps_again, _ = ours(data, schedule)
    print(f"     compiled already: {again:.1f} s, {steps_again / again:,.0f} steps a second")
    try:
        import fit_torch
    except ImportError:
        print("PyTorch is not installed: pip install torch==2.13.0 to compare")
        return
    rule = fit_torch.Protocol(
        PRIOR, RATE, PENALTY, schedule.batch, schedule.patience, schedule.epochs
    )
    threads = faster(lambda t: fit_torch.loop(data, rule._replace(epochs=30), 1, t))
    took, taken, found = fit_torch.loop(data, rule, wanted, threads)
    whole = took / wanted * FOLDS * RESTARTS
    print(f"PyTorch loop, {threads} thread(s): {wanted} fits in {took:.1f} s, {taken:,} steps,")
    print(
        f"     {taken / took:,.0f} a second; all fits would take {whole:.0f} s; "
        f"median score {np.median(found):.3f} (ours on these: {np.median(scores[:wanted]):.3f})"
    )
    compare(steps_again / again, seconds, taken / took, whole)
    threads = faster(lambda t: fit_torch.together(data, rule._replace(epochs=10), t))
    took, taken, found = fit_torch.together(data, rule, threads)
    print(f"PyTorch vmap, {threads} thread(s): {len(found)} fits in {took:.1f} s, {taken:,} steps,")
    print(f"     {taken / took:,.0f} a second; median score {np.median(found):.3f}")
    compare(steps_again / again, seconds, taken / took, took)


def faster(run: Callable[[int], tuple[float, int, Any]]) -> int:
    """The number of threads with more steps a second, in a short trial of each."""
    run(1)  # the first is slow for reasons of its own
    rates = {threads: run(threads) for threads in (1, 2)}
    return max(rates, key=lambda threads: rates[threads][1] / rates[threads][0])


def compare(rate: float, seconds: float, their_rate: float, their_seconds: float) -> None:
    print(
        f"     steps a second: ldf {rate / their_rate:.1f} times; "
        f"whole protocol, compiling counted: {their_seconds / seconds:.1f} times less time"
    )


if __name__ == "__main__":
    main()
