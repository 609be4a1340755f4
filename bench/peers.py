"""The field side by side: ldf and the packages people fit to counts today.

All are fitted on the same folds with the same preprocessing (a power transform learned on each
fold's training rows) and scored by the log mass of each held-out count, given its trials or
exposure. Beside the scores: whether sets of 90 % hold what they should, how long one fold takes,
and what each can do. A peer that is not installed, fails, or takes longer than --limit, is said
to be so, and is not tried on the other folds of that set.

    python bench/peers.py [--data ../shared/data] [--sets a,b] [--peers "ldf,Bambi"]
                          [--splits random,blocked] [--folds 5] [--rows 20000] [--limit 900]
                          [--out build/peers.json] [--page docs/peers-measured.md] [--show]

Numbers are kept in --out after each fold, so a run that was stopped goes on where it was; --again
tries anew what failed, --anew measures the sets and peers that are named once more.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from peer import PEERS
from peer.measure import Worker
from peer.r import versions as r_versions
from peer.task import Task
from quality import Set, load

from ldf import assess, folds
from ldf.data import Columns, Data, read
from ldf.table import empirical_rate

SETS = (
    "malawi_electrification", "tz_malaria", "star98", "melanoma_eu", "homicide",
    "homicide_nat1990",
)  # fmt: skip
PACKAGES = (
    "ldf", "jax", "numpy", "scipy", "scikit-learn", "statsmodels", "ngboost", "xgboostlss",
    "xgboost", "torch", "gpboost", "bambi", "pymc", "numpyro",
)  # fmt: skip


# --- measuring ----------------------------------------------------------------------------------


def split_of(of: Set, data: Data, blocked: bool, number: int) -> folds.Split:
    """The folds of bench/quality.py."""
    rate = empirical_rate(data.family, data.y, data.seen)
    if blocked:
        return folds.grouped(data.group, min(number, len(set(of.region))), 0, rate=rate)
    return folds.stratified(rate, number, 0)


def data_of(of: Set, blocked: bool) -> Data:
    columns = Columns(
        of.columns.primary, of.columns.auxiliary, group="the region" * blocked or None
    )
    frame = of.frame.assign(**{"the region": of.region}) if of.region is not None else of.frame
    return read(frame, of.family, columns)


def run(of: Set, blocked: bool, names: list[str], options: Any, kept: dict[str, Any]) -> None:
    """One set and one split: every peer on every fold, fold by fold."""
    data = data_of(of, blocked)
    split = split_of(of, data, blocked, options.folds)
    counted = np.isfinite(empirical_rate(data.family, data.y, data.seen))
    where = f"{of.name}|{'blocked' if blocked else 'random'}"
    found = kept.setdefault(where, {"folds": [], "peers": {}, "columns": data.x.shape[1]})
    found["folds"] = [np.flatnonzero(h & counted).tolist() for h in split.held]
    found["region"] = None if of.region is None else of.region.tolist()
    for name in names:
        parts = found["peers"].setdefault(name, [])
        if options.anew:
            parts.clear()
        if options.again:
            parts[:] = [part for part in parts if "failed" not in part]
        with Worker(PEERS[name].load, options.limit) as worker:
            while len(parts) < len(split.held) and not (parts and "failed" in parts[-1]):
                training, held = split.training[len(parts)], split.held[len(parts)]
                task = Task.of(data, training & counted, held & counted, 0)
                y = np.asarray(data.y[type(data.family).columns[0]], float)[held & counted]
                part = worker(task, y)
                said = part.get("failed") or (
                    f"{np.mean(part['score']):8.4f}  {np.mean(part['inside']):.1%} of "
                    f"{np.mean(part['held']):.1%}  CPU {part['cpu']:.1f} s"
                )
                print(f"{where} {name} fold {len(parts)}: {said}", flush=True)
                parts.append(part)
                write(options.out, kept)


def write(path: Path, kept: dict[str, Any]) -> None:
    """All at once, so that a run that is stopped leaves the numbers whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept))
    new.replace(path)


# --- tables -------------------------------------------------------------------------------------


def gathered(of: dict[str, Any], name: str) -> dict[str, Any] | None:
    """All folds of a peer that finished them, units in the order of the folds."""
    parts = of["peers"].get(name, [])
    if len(parts) < len(of["folds"]) or any("failed" in part for part in parts):
        return None
    joined = {
        key: np.concatenate([part[key] for part in parts]) for key in ("score", "inside", "held")
    }
    return joined | {"cpu": [part["cpu"] for part in parts]}


def why(of: dict[str, Any], name: str) -> tuple[str, str]:
    """What a cell without a number says, and the sentence under the table, if there is one."""
    parts = of["peers"].get(name, [])
    if not parts or "failed" not in parts[-1]:
        return "–", ""
    fold = f"fold {len(parts)} of {len(of['folds'])}"
    return parts[-1]["cell"], f"{parts[-1]['failed']} ({fold}, the last that was tried)"


def header() -> str:
    """What was measured with what; nothing that names the machine."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} not installed")
    found += [f"{package} {version}" for package, version in r_versions().items()]
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} CPUs ({platform.machine()}), {python}; " + ", ".join(found) + "."


def page(kept: dict[str, Any], names: list[str]) -> str:
    kept = {s: of for s, of in kept.items() if sum(gathered(of, n) is not None for n in names) > 1}
    lines = [header(), "", *quality(kept, names), "", *failures(kept, names), *speed(kept, names)]
    return "\n".join([*lines, "", *abilities(names)]) + "\n"


def quality(kept: dict[str, Any], names: list[str]) -> list[str]:
    splits = list(kept)
    titles = [split.replace("|", ", ") for split in splits]
    lines = [
        "Mean log score of a held-out unit; more is better. The best of each set is bold; – is not "
        "tried:",
        "",
        "| | " + " | ".join(titles) + " |",
        "|:--|" + "--:|" * len(splits),
    ]
    scores = {
        s: {n: g["score"].mean() for n in names if (g := gathered(kept[s], n))} for s in splits
    }
    for name in names:
        cells = []
        for s in splits:
            if name not in scores[s]:
                cells.append(why(kept[s], name)[0])
                continue
            best = scores[s][name] == max(scores[s].values())
            text = f"{scores[s][name]:.4f}"
            cells.append(f"**{text}**" if best else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "By how much ldf leads the best of its peers, with the standard error of the paired "
        "difference, by region where there is one:",
        "",
        "| set | folds | units | columns | best peer | lead | in SE |",
        "|:--|:--|--:|--:|:--|--:|--:|",
    ]
    leads = []
    for s in splits:
        others = {n: v for n, v in scores[s].items() if n != "ldf"}
        if "ldf" not in scores[s] or not others:
            continue
        best = max(others, key=lambda n: others[n])
        rows = np.concatenate(kept[s]["folds"]).astype(int)
        region = kept[s]["region"]
        ahead = assess.score_difference(
            gathered(kept[s], "ldf")["score"], gathered(kept[s], best)["score"],
            None if region is None else np.asarray(region)[rows],
        )  # fmt: skip
        leads.append(ahead.mean)
        lead = f"{ahead.mean:+.4f} ± {ahead.standard_error:.4f}"
        z = ahead.mean / ahead.standard_error
        shape = f"{len(rows):,} | {kept[s]['columns']}"
        lines.append(f"| {s.replace('|', ' | ')} | {shape} | {best} | {lead} | {z:+.1f} |")
    if leads:
        lines += ["", f"The mean of these leads is {np.mean(leads):+.4f}."]
    lines += [
        "",
        "Share of held-out units inside their 90 % sets minus what these sets, being of whole "
        "numbers, really hold, in points:",
        "",
        "| | " + " | ".join(titles) + " |",
        "|:--|" + "--:|" * len(splits),
    ]
    for name in names:
        cells = []
        for s in splits:
            g = gathered(kept[s], name)
            off = 100 * (g["inside"].mean() - g["held"].mean()) if g else None
            cells.append(why(kept[s], name)[0] if off is None else f"{off:+.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def failures(kept: dict[str, Any], names: list[str]) -> list[str]:
    sentences = [
        f"- {name} on {s.replace('|', ', ')}: {why(of, name)[1]}."
        for s, of in kept.items() for name in names if why(of, name)[1]
    ]  # fmt: skip
    return ["What is not measured, and why:", "", *sentences, ""] if sentences else []


def speed(kept: dict[str, Any], names: list[str]) -> list[str]:
    splits = list(kept)
    lines = [
        "Seconds of CPU to fit one fold and predict it, the median of the folds, "
        "one thread each where a package lets us; in brackets the first fold, with what is "
        "compiled or started then:",
        "",
        "| | " + " | ".join(s.replace("|", ", ") for s in splits) + " |",
        "|:--|" + "--:|" * len(splits),
    ]
    for name in names:
        cells = []
        for s in splits:
            g = gathered(kept[s], name)
            cells.append(
                f"{np.median(g['cpu']):.1f} ({g['cpu'][0]:.1f})" if g else why(kept[s], name)[0]
            )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def abilities(names: list[str]) -> list[str]:
    lines = [
        'What each can do: whether there is a distribution of each unit\'s θ ("implied": its '
        "Beta or Gamma can be written down from the fitted parameters, but the package gives "
        "none), whether the package updates it by the unit's own data, whether its precision "
        "varies with x, and whether trials and exposure are taken as such:",
        "",
        "| | distribution of θ | updated by own data | precision by x | trials, exposure |",
        "|:--|:--|:--|:--|:--|",
    ]
    for name in names:
        p = PEERS[name]
        lines.append(f"| {name} | {p.theta} | {p.updated} | {p.precision} | {p.design} |")
    return [*lines, "", "How each was used:", "",
            *[f"- **{name}**: {PEERS[name].note}." for name in names]]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--peers", default="", help="by name, with commas; all by default")
    parser.add_argument("--splits", default="random")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000, help="of a set, at most")
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds a fold may take")
    parser.add_argument("--again", action="store_true", help="try anew what failed")
    parser.add_argument("--anew", action="store_true", help="forget what --out has of these peers")
    parser.add_argument("--out", type=Path, default=Path("build/peers.json"))
    parser.add_argument("--page", type=Path, help="write the tables as Markdown")
    parser.add_argument("--show", action="store_true", help="only write what --out has")
    options = parser.parse_args()
    if not (options.data / "registry.json").exists():
        raise SystemExit(f"{options.data} holds no registry.json: give the folder by --data")
    names = [name.strip() for name in options.peers.split(",")]
    names = [n for n in PEERS if n in names or not options.peers]
    if not names:
        raise SystemExit(f"--peers names none of: {', '.join(PEERS)}")
    warnings.simplefilter("ignore")
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in [] if options.show else options.sets.split(","):
        of = load(options.data, name, options.rows)
        for blocked in [s == "blocked" for s in options.splits.split(",")]:
            if blocked and of.region is None:
                continue
            run(of, blocked, names, options, kept)
    if options.page:
        options.page.write_text(page(kept, list(PEERS)))
    else:
        sys.stdout.write(page(kept, names))


if __name__ == "__main__":
    main()
