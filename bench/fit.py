"""How fast the paper's protocol trains here, beside a PyTorch loop, in one run.

The protocol of Section 5 on the simulated district: 10 folds × 10 restarts of the 146-weight
network, Adam, batches of 256, early stopping with patience 100 on a random tenth of the training
rows. PyTorch trains a few of the same fits to their end, one after the other, in the plain loop one
would write: tensors loaded beforehand, no synchronising within a step, the best thread count of 1
and 2. Its time for all 100 fits is what these took, times how many more there are.

    python bench/fit.py [--torch-fits 5] [--places 8] [--lanes 2]

PyTorch is not among the pinned packages: pip install torch==2.13.0, or be told only of ldf.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ldf
from ldf.datasets import district
from ldf.fit import Rows, Schedule, Settings, fit
from ldf.mappings import Network
from ldf.model import Model

FOLDS, RESTARTS = 10, 10
PRIOR, RATE, PENALTY = (0.005316, 1.55), 0.005418707, 1.74e-7
SCHEDULE = Schedule()


def protocol(seed: int = 0) -> dict[str, np.ndarray]:
    """Standardised features, counts, and which rows each fit learns from and watches."""
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
    x = (x - x.mean(0)) / x.std(0)
    return {
        "x": x.astype(np.float32),
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
    rows = Rows(
        jnp.asarray(data["x"]),
        {name: jnp.asarray(data[name]) for name in ("successes", "trials")},
        jnp.asarray(data["training"]),
        jnp.asarray(data["watched"]),
        jnp.zeros(len(data["x"])),
    )
    prior = jax.tree.map(lambda v: jnp.asarray(v, jnp.float32), family.prior(*PRIOR))
    settings = Settings(*(jnp.full(fits, v) for v in (RATE, PENALTY, 0.0)))
    found = fit(Model(family, Network()), rows, prior, settings, 0, schedule)
    return time.perf_counter() - begin, found.steps, found.score


def theirs(data: dict[str, np.ndarray], fits: int, threads: int) -> tuple[float, int, list[float]]:
    import torch

    torch.set_num_threads(threads)
    x, k, n = (torch.tensor(data[name]) for name in ("x", "successes", "trials"))
    orders = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = torch.nn.Linear(4, 12)
            self.count = torch.nn.Sequential(
                torch.nn.Linear(12, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)
            )
            self.rate = torch.nn.Sequential(
                torch.nn.Linear(12, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)
            )

        def forward(self, v: Any) -> tuple[Any, Any]:
            hidden = torch.tanh(self.shared(v))
            count = torch.nn.functional.softplus(self.count(hidden))[:, 0]
            logit = self.rate(hidden)[:, 0]
            return PRIOR[0] + count * torch.sigmoid(logit), PRIOR[1] + count * torch.sigmoid(-logit)

    def log_p(net: Any, rows: Any) -> Any:
        a, b = net(x[rows])
        kk, nn = k[rows], n[rows]
        after = torch.lgamma(a + kk) + torch.lgamma(b + nn - kk) - torch.lgamma(a + b + nn)
        return orders[rows] + after - torch.lgamma(a) - torch.lgamma(b) + torch.lgamma(a + b)

    begin, steps, scores = time.perf_counter(), 0, []
    for f in range(fits):
        torch.manual_seed(f)
        net = Net()
        adam = torch.optim.Adam(net.parameters(), lr=RATE)
        learn = torch.tensor(np.flatnonzero(data["training"][f]))
        watch = torch.tensor(np.flatnonzero(data["watched"][f]))
        best, since = -np.inf, 0
        while since < SCHEDULE.patience:
            for rows in learn[torch.randperm(len(learn))].split(SCHEDULE.batch):
                adam.zero_grad()
                penalty = sum((w**2).sum() for w in net.parameters() if w.ndim > 1)
                loss = PENALTY * penalty - log_p(net, rows).mean()
                loss.backward()
                adam.step()
                steps += 1
            with torch.no_grad():
                score = float(log_p(net, watch).mean())
            best, since = (score, 0) if score > best else (best, since + 1)
        scores.append(best)
    return time.perf_counter() - begin, steps, scores


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
        rates = {t: theirs(data, 1, t) for t in (1, 2)}
    except ImportError:
        print("PyTorch is not installed: pip install torch==2.13.0 to compare")
        return
    threads = max(rates, key=lambda t: rates[t][1] / rates[t][0])
    took, taken, found = theirs(data, wanted, threads)
    whole = took / wanted * FOLDS * RESTARTS
    print(f"PyTorch loop, {threads} thread(s): {wanted} fits in {took:.1f} s, {taken:,} steps,")
    print(
        f"     {taken / took:,.0f} a second; all fits would take {whole:.0f} s; "
        f"median score {np.median(found):.3f} (ours on these: {np.median(scores[:wanted]):.3f})"
    )
    print(
        f"steps a second: {steps_again / again / (taken / took):.0f} times; "
        f"whole protocol, compiling counted: {whole / seconds:.0f} times less time"
    )


if __name__ == "__main__":
    main()
