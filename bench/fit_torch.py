"""The paper's protocol in PyTorch, two ways, for `fit.py` to compare with. Knows nothing of ldf.

`loop` is what one would write first: one fit after the other, each by an optimiser of its own.
`together` is the most that `torch.func` gives: all fits at once by `vmap` over stacked weights.
They share batches of rows and differ by a membership weight, Adam is a few operations on one tensor
of all weights, and a fit that has stopped leaves the stack. Tensors are loaded beforehand, and
nothing waits for a number within an epoch.

Both return seconds, steps of fits that had not stopped, and the best score of each fit.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

Result = tuple[float, int, np.ndarray]


class Protocol(NamedTuple):
    prior: tuple[float, float]
    rate: float
    penalty: float
    batch: int
    patience: int
    epochs: int


class Net(nn.Module):
    """4 inputs, 12 shared units, a branch of 3 for the count and for the rate: 146 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(4, 12)
        self.count = nn.Sequential(nn.Linear(12, 3), nn.Tanh(), nn.Linear(3, 1))
        self.rate = nn.Sequential(nn.Linear(12, 3), nn.Tanh(), nn.Linear(3, 1))

    def forward(self, x: Any) -> tuple[Any, Any]:
        """Pseudo-successes and pseudo-failures."""
        hidden = torch.tanh(self.shared(x))
        count = nn.functional.softplus(self.count(hidden))[:, 0]
        logit = self.rate(hidden)[:, 0]
        return count * torch.sigmoid(logit), count * torch.sigmoid(-logit)


def load(data: dict[str, np.ndarray]) -> tuple[Any, ...]:
    """x, k, n, and the logarithm of n over k."""
    x, k, n = (torch.tensor(data[name]) for name in ("x", "successes", "trials"))
    return x, k, n, torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


def log_predictive(protocol: Protocol, pseudo: tuple[Any, Any], k: Any, n: Any, orders: Any) -> Any:
    a, b = pseudo[0] + protocol.prior[0], pseudo[1] + protocol.prior[1]
    after = torch.lgamma(a + k) + torch.lgamma(b + n - k) - torch.lgamma(a + b + n)
    return orders + after - torch.lgamma(a) - torch.lgamma(b) + torch.lgamma(a + b)


def loop(data: dict[str, np.ndarray], protocol: Protocol, fits: int, threads: int) -> Result:
    torch.set_num_threads(threads)
    x, *y = load(data)

    def log_p(net: Any, seen: Any, rows: Any) -> Any:
        return log_predictive(protocol, net(seen[rows]), *(value[rows] for value in y))

    begin, steps, scores = time.perf_counter(), 0, []
    for f in range(fits):
        torch.manual_seed(f)
        net, seen = Net(), x[data["view"][f]]
        adam = torch.optim.Adam(net.parameters(), lr=protocol.rate)
        learn = torch.tensor(np.flatnonzero(data["training"][f]))
        watch = torch.tensor(np.flatnonzero(data["watched"][f]))
        best, since, epoch = -np.inf, 0, 0
        while since < protocol.patience and epoch < protocol.epochs:
            for rows in learn[torch.randperm(len(learn))].split(protocol.batch):
                adam.zero_grad()
                squared = sum((w**2).sum() for w in net.parameters() if w.ndim > 1)
                loss = protocol.penalty * squared - log_p(net, seen, rows).mean()
                loss.backward()
                adam.step()
                steps += 1
            with torch.no_grad():
                score = float(log_p(net, seen, watch).mean())
            best, since = (score, 0) if score > best else (best, since + 1)
            epoch += 1
        scores.append(best)
    return time.perf_counter() - begin, steps, np.array(scores)


def together(data: dict[str, np.ndarray], protocol: Protocol, threads: int) -> Result:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    x, *y = load(data)
    net = Net().to("meta")
    training, watched = (torch.tensor(data[name]) for name in ("training", "watched"))
    # The rows each fit watches, as many for all: only these are looked at after an epoch.
    most = int((watched > 0).sum(1).max())
    watching = torch.argsort(watched, dim=1, descending=True, stable=True)[:, :most]
    watched = watched.gather(1, watching)
    watched = watched / watched.sum(1, keepdim=True)
    size = x.shape[1]
    share = training * size / training.sum(1, keepdim=True)
    x = x[torch.tensor(data["view"])]  # as each fit sees it

    def log_p(weights: dict[str, Any], x: Any, rows: Any) -> Any:
        pseudo = functional_call(net, weights, (x,))
        return log_predictive(protocol, pseudo, *(value[rows] for value in y))

    def loss(weights: dict[str, Any], x: Any, rows: Any, share: Any) -> Any:
        squared = sum((w**2).sum() for w in weights.values() if w.ndim > 1)
        return protocol.penalty * squared - (share * log_p(weights, x, rows)).mean()

    def score(weights: dict[str, Any], x: Any, rows: Any, share: Any) -> Any:
        return (share * log_p(weights, x[rows], rows)).sum()

    slope, judge = vmap(grad(loss), in_dims=(0, 0, None, 0)), vmap(score)

    begin, steps, fits = time.perf_counter(), 0, len(training)
    stacked, _ = stack_module_state([Net() for _ in range(fits)])
    stacked = {name: w.detach() for name, w in stacked.items()}
    sizes = [w[0].numel() for w in stacked.values()]
    shapes = {name: w.shape[1:] for name, w in stacked.items()}
    flat = torch.cat([w.reshape(fits, -1) for w in stacked.values()], 1)

    def unflatten(flat: Any) -> dict[str, Any]:
        parts = zip(shapes.items(), flat.split(sizes, 1), strict=True)
        return {name: part.unflatten(1, shape) for (name, shape), part in parts}

    scores = np.full(fits, -np.inf)
    live = torch.arange(fits)  # who is in the stack
    best, since = torch.full((fits,), -torch.inf), torch.zeros(fits)
    first, second = torch.zeros_like(flat), torch.zeros_like(flat)
    weights, step, epoch = unflatten(flat), 0, 0
    while len(live) and epoch < protocol.epochs:
        for rows in torch.randperm(size).split(protocol.batch):
            found = slope(weights, x[:, rows], rows, share[:, rows])
            g = torch.cat([found[name].flatten(1) for name in shapes], 1)
            step += 1
            first.lerp_(g, 0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            spread = (second / (1 - 0.999**step)).sqrt_().add_(1e-8)
            flat.addcdiv_(first, spread, value=-protocol.rate / (1 - 0.9**step))
            steps += len(live)
        now = judge(weights, x, watching, watched)
        better = now > best
        best, since = torch.where(better, now, best), torch.where(better, 0.0, since + 1)
        epoch += 1
        stay = since < protocol.patience
        if not bool(stay.all()) or epoch == protocol.epochs:
            scores[live.numpy()] = best.numpy()
            live, best, since, flat, first, second, x, share, watching, watched = (
                part[stay]
                for part in (live, best, since, flat, first, second, x, share, watching, watched)
            )
            weights = unflatten(flat)
    return time.perf_counter() - begin, steps, scores
