"""What readers of images, series and items learn, beside a feature made by hand and a flat network.

Units are simulated, so that the feature that tells of θ is known. Each mapping sees the same units:

- images: a settlement somewhere in a patch of night lights, as bright as all others but more or
  less dense. The feature is the sum of squares; the place says nothing;
- series: of 4 to 20 steps, of which only those above a threshold count, and all of them alike. The
  feature is what they add up to;
- items: one to eight shops a unit, and only the quality of the largest counts.

For each number of training units: the mean log score of 2,000 new ones, and how far it is behind
that of the feature (with the standard error of the difference).

    python bench/architectures.py [--page docs/architectures-measured.md] [--picture FILE]
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import ldf
from ldf.data import Data, read
from ldf.estimator import table_of
from ldf.learn import learn

NEW = 2000
SIZES = (100, 200, 400, 800)
SIDE, STEPS, MOST = 12, 20, 8
PRIMARY = {"successes": "successes", "trials": "trials"}
FLAT = ldf.Network(shared=(32,), branch=(8,), activations=("silu",), linear_path=True)
SCHEDULE = ldf.Schedule(epochs=300, patience=40, batch=128, chunk=20, places=2)


class Task(NamedTuple):
    """Units, what lies beside them, and which mappings are compared."""

    units: pd.DataFrame
    beside: Any
    mappings: dict[str, Any]  # of the source beside; a list of columns stands for those


def frame(tells: np.ndarray, rng: np.random.Generator, **columns: Any) -> pd.DataFrame:
    """Units whose θ hangs on what tells."""
    rows = len(tells)
    u = 1.5 * (tells - tells.mean()) / tells.std()
    trials = rng.integers(5, 40, rows)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-u)))
    known = {"id": np.arange(rows), "trials": trials, "successes": successes, "feature": tells}
    return pd.DataFrame(known | columns)


def images(rows: int, rng: np.random.Generator) -> Task:
    """Of the same brightness in all: dense or spread out, anywhere."""
    y, x = np.mgrid[:SIDE, :SIDE]
    width = np.exp(rng.uniform(np.log(0.8), np.log(2.5), rows))[:, None, None]
    at = rng.uniform(3, SIDE - 4, (rows, 2))[:, :, None, None]
    light = np.exp(-((y - at[:, 0]) ** 2 + (x - at[:, 1]) ** 2) / (2 * width**2))
    light = light / light.sum((1, 2), keepdims=True) * 20
    seen = light + 0.15 * rng.normal(size=light.shape)
    density = np.log((light**2).sum((1, 2)))
    mappings = {
        "feature by hand": ["feature"],
        "brightness by hand": ["brightness"],
        "Convolution": ldf.Convolution(),
        "flat Network": FLAT,
    }
    # Made of what is seen: the noise is in it, too.
    by_hand = {"feature": np.log((seen**2).sum((1, 2))), "brightness": seen.sum((1, 2))}
    units = frame(density, rng, **by_hand)
    return Task(units, ldf.Images(seen, ids=units["id"]), mappings)


def series(rows: int, rng: np.random.Generator) -> Task:
    """What goes beyond a threshold adds up, whenever it does."""
    length = rng.integers(4, STEPS + 1, rows)
    unit = np.repeat(np.arange(rows), length)
    step = np.concatenate([np.arange(own) for own in length])
    value = rng.normal(size=len(unit))
    total = np.bincount(unit, np.maximum(value - 0.5, 0), rows)
    long = pd.DataFrame({"id": unit, "step": step, "value": value})
    ends = np.cumsum(length)
    last = {f"last{k}": value[ends - 1 - k] for k in range(4)}
    mappings = {
        "feature by hand": ["feature"],
        "last four values": list(last),
        "Recurrent, LSTM": ldf.Recurrent("lstm"),
        "Recurrent, GRU": ldf.Recurrent("gru"),
        "TemporalConvolution": ldf.TemporalConvolution(),
        "flat Network": FLAT,
    }
    return Task(frame(total, rng, **last), ldf.Series(long, "id", "step", ("value",)), mappings)


def items(rows: int, rng: np.random.Generator) -> Task:
    """Only the largest counts."""
    number = rng.integers(1, MOST + 1, rows)
    unit = np.repeat(np.arange(rows), number)
    size, quality = rng.normal(size=(2, len(unit)))
    order = np.lexsort((size, unit))
    largest = order[np.cumsum(number) - 1]
    long = pd.DataFrame({"id": unit, "size": size, "quality": quality})
    mean = {
        "mean_size": np.bincount(unit, size, rows) / number,
        "mean_quality": np.bincount(unit, quality, rows) / number,
    }
    mappings = {
        "feature by hand": ["feature"],
        "means of the items": list(mean),
        "Attention": ldf.Attention(),
        "flat Network": FLAT,
    }
    return Task(
        frame(quality[largest], rng, **mean), ldf.Items(long, "id", ("size", "quality")), mappings
    )


TASKS = {"images": images, "series": series, "items": items}


def scores(task: Task, mapping: Any, sizes: tuple[int, ...], new: int = NEW) -> np.ndarray:
    """The log score of each of the last units, which are new, learned from so many of the first:
    all sizes are one program."""
    columns = isinstance(mapping, list)
    source = mapping if columns else task.beside
    member = ldf.Member(FLAT if columns else mapping, "standard")
    model = ldf.Fusion(
        "binomial", PRIMARY, {"source": source}, id="id", prior="fitted",
        ensemble=ldf.Ensemble((member,), parts=1, schedule=SCHEDULE),
        mapping=None if columns else {"source": mapping},
    )  # fmt: skip
    data: Data = read(task.units, model.family_of(), model.columns())
    rows = np.arange(len(data))
    training = np.stack([rows < size for size in sizes])
    learned = learn(model.spec(data), table_of(data), 0, training)
    last = data[rows >= len(data) - new]
    return np.stack([one.log_score(one.said(last.x), last.y) for one in learned])


def measured(kind: str, sizes: tuple[int, ...], seed: int) -> dict[str, np.ndarray]:
    """By mapping: sizes × new units."""
    task = TASKS[kind](max(sizes) + NEW, np.random.default_rng(seed))
    found = {}
    for name, mapping in task.mappings.items():
        began = time.process_time()
        found[name] = scores(task, mapping, sizes)
        print(f"  {kind}, {name}: {time.process_time() - began:.0f} s of a core", flush=True)
    return found


def table(kind: str, found: dict[str, np.ndarray], sizes: tuple[int, ...]) -> str:
    """Mean log score a new unit, and behind the feature."""
    head = f"| {kind} | " + " | ".join(f"{size} units" for size in sizes) + " |"
    lines = [head, "|:--|" + "--:|" * len(sizes)]
    best = found["feature by hand"]
    for name, own in found.items():
        cells = []
        for mine, known in zip(own, best, strict=True):
            behind = mine - known
            error = behind.std() / np.sqrt(len(behind))
            more = "" if own is best else f" ({behind.mean():+.3f} ± {error:.3f})"
            cells.append(f"{mine.mean():.3f}{more}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    flat = found["flat Network"][-1]
    for name in found:
        if name.split(",")[0] in ("Convolution", "Recurrent", "TemporalConvolution", "Attention"):
            ahead = found[name][-1] - flat
            error = ahead.std() / np.sqrt(len(ahead))
            lines.append(
                f"\nWith {sizes[-1]} units, {name} is {ahead.mean():.3f} ± {error:.3f} nats a unit "
                f"ahead of the flat network ({ahead.mean() / error:.1f} standard errors)."
            )
    return "\n".join(lines)


def draw(every: dict[str, dict[str, np.ndarray]], sizes: tuple[int, ...], path: Path) -> None:
    """Learning curves."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(every), figsize=(11, 3.6), layout="constrained")
    for axis, (kind, found) in zip(np.atleast_1d(axes), every.items(), strict=True):
        for name, own in found.items():
            plain = "hand" in name or "values" in name or "means" in name
            style = {"color": "0.6" if plain else None, "ls": "--" if "feature" in name else "-"}
            if name == "flat Network":
                style = {"color": "0.2", "ls": ":"}
            axis.plot(sizes, own.mean(1), marker="o", ms=3, label=name, **style)
        axis.set(xscale="log", title=kind, xlabel="training units", xticks=sizes)
        axis.set_xticklabels([str(size) for size in sizes])
        axis.minorticks_off()
        axis.legend(fontsize=7, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(axes)[0].set_ylabel("mean log score of a new unit")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    every = {kind: measured(kind, SIZES, options.seed) for kind in options.tasks.split(",")}
    text = "\n\n".join(table(kind, found, SIZES) for kind, found in every.items()) + "\n"
    print(text)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    if options.picture:
        draw(every, SIZES, options.picture)


if __name__ == "__main__":
    main()
