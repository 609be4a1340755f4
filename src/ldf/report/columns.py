"""One number a unit: what the map colours, the table lists and the card tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf.report.answers import Answers, conjugate, is_conjugate
from ldf.report.far import Distance
from ldf.report.pack import array, text
from ldf.report.words import Words

LEVELS = 101  # quantiles of each auxiliary column
FEATURE_CELLS = 1_500_000  # of auxiliary data in a page, at most: six million bytes


def of_units(
    of: Answers, words: Words, mass: float, threshold: float, distance: Distance, drawn: bool
) -> list[dict[str, Any]]:
    """Columns by name, with what they are called and how their numbers are written. `drawn` says
    whether the page can draw the densities itself."""
    both, auxiliary = of.posterior(of.after, "both"), of.posterior(of.before, "auxiliary")
    low, high = both.interval(mass)
    t, n = of.primary()
    pseudo_t, pseudo_n = of.worth(of.before.mean())
    prior_n = float(of.worth(prior_mean(of))[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        direct = np.where(n > 0, t / n, np.nan)
        shrinkage = np.where(n > 0, 1 - n / (n + pseudo_n + prior_n), np.nan)
    share, shown = f"{mass:.0%}".replace("%", " %"), words.value(threshold)
    theta = words.theta
    table = [
        ("mean", f"{theta}: posterior mean", "mean", both.mean(), "value"),
        ("lower", f"{theta}: lower end of the {share} interval", "lower", low, "value"),
        ("upper", f"{theta}: upper end of the {share} interval", "upper", high, "value"),
        ("width", f"width of the {share} interval", "width", high - low, "value"),
        ("exceeds", f"P({theta} > {shown})", f"P(> {shown})", both.exceeds(threshold), "share"),
        ("entropy", "entropy of the posterior, in nats", "entropy", both.entropy(), "number"),
        ("sd", "standard deviation of the posterior", "sd", both.sd(), "value"),
        ("worth", f"auxiliary data are worth so many {words.unit}", "worth", pseudo_n, "number"),
        ("says", f"{theta} that auxiliary data speak for", "says", pseudo_t / pseudo_n, "value"),
        ("asked", f"primary data: {words.unit}", "primary", n, "number"),
        ("direct", f"direct estimate from primary data alone: {theta}", "direct", direct, "value"),
        ("shrinkage", "shrinkage: weight of all but primary data", "shrinkage", shrinkage, "share"),
        ("distance", "distance to the nearest training row", "distance", distance.each, "number"),
        ("score", "held-out log score of the primary data", "log score", scores(of), "number"),
    ]  # fmt: skip
    table.append(("auxiliary_mean", "mean given auxiliary data", "", auxiliary.mean(), "value"))
    if not drawn:  # intervals stand for densities
        ends = auxiliary.interval(mass)
        table += [
            ("auxiliary_lower", "lower end given auxiliary data", "", ends[0], "value"),
            ("auxiliary_upper", "upper end given auxiliary data", "", ends[1], "value"),
        ]
    return [
        {"key": key, "name": name, "short": short, "format": form, "data": array(values)}
        for key, name, short, values, form in table
    ]


def prior_mean(of: Answers) -> Any:
    """λ0, over members by their shares: for display."""
    import jax

    prior = of.learned.prior()

    def mean(leaf: np.ndarray) -> np.ndarray:
        own = np.asarray(leaf)[:, 0]
        return np.tensordot(prior.share[:, 0], own, 1)

    return jax.tree.map(mean, prior.natural)


def scores(of: Answers) -> np.ndarray:
    """The log-predictive of primary data given auxiliary data, NaN where nothing was seen."""
    found = np.full(len(of), np.nan)
    saw = of.data.seen & (of.primary()[1] > 0)
    if saw.any():
        y = {word: values[saw] for word, values in of.data.y.items()}
        found[saw] = of.learned.log_score(of.before.rows(saw), y)
    return found


def laws(of: Answers) -> dict[str, Any] | None:
    """The mixtures themselves, exactly, for the page to draw and to update: λ and shares of each
    component. λ given both is λ given auxiliary data plus T_y."""
    before = conjugate(of.before.natural, of.component)
    if before is None or not is_conjugate(of.data.family, of.after):
        return None
    kind, first, second = before
    prior = of.learned.prior()
    _, prior_first, prior_second = conjugate(prior.natural, of.component) or before
    there = (of.before.share > 0).any(1)  # components that have a share in some unit
    return {
        "kind": kind,
        "components": int(there.sum()),
        "first": array(first[there].T, "f8"),
        "second": array(second[there].T, "f8"),
        "before": array(of.before.share[there].T, "f8"),
        "after": array(of.after.share[there].T, "f8"),
        "primary": [array(part, "f8") for part in conjugate_of_primary(of)],
        "prior": {
            "first": prior_first[:, 0].tolist(),
            "second": prior_second[:, 0].tolist(),
            "share": prior.share[:, 0].tolist(),
        },
        "alone": array(of.alone.share.T),
        "design": array(design(of), "f8"),
    }


def conjugate_of_primary(of: Answers) -> list[np.ndarray]:
    """T_y in the two parameters of the component's distribution, zero where nothing was seen."""
    seen = of.data.seen
    added = [np.zeros(len(of)), np.zeros(len(of))]
    if seen.any():
        y = {word: values[seen] for word, values in of.data.y.items()}
        own = conjugate(of.data.family.statistic(**y), of.component)
        for whole, part in zip(added, own[1:] if own else (), strict=True):
            whole[seen] = part
    return added


def design(of: Answers) -> np.ndarray:
    """How much was asked or watched in each unit; where that is not known, the median of the
    others. Of a mean, its precision."""
    n = of.primary(of.first)[1] * of.scale
    some = n[np.isfinite(n) & (n > 0)]
    return np.where(n > 0, n, np.median(some) if len(some) else 1.0)


def features(of: Answers) -> dict[str, Any]:
    """Auxiliary columns as they came, and each unit's rank in them. Of sensitive columns there are
    ranks only, and no names; of images, series and items there is nothing."""
    columns, schema = of.model.columns(), of.data.schema
    kept = np.flatnonzero(schema.tabular)
    x, named = of.data.x[:, kept], [of.data.names[i] for i in kept]
    origins = [schema.origins[i] for i in kept]
    most = max(1, FEATURE_CELLS // max(len(of), 1))
    names, values, hidden, spread = columns.shown_encoded(named, origins), [], [], []
    for source, cells in zip(origins, x.T, strict=True):
        secret = source in columns.sensitive
        hidden.append(secret)
        values.append(ranks(cells) if secret else cells)
        spread.append(quantiles(values[-1]))
    kept = names[:most]
    return {
        "names": [text(name) for name in kept],
        "hidden": hidden[:most],
        "values": array(np.stack(values[:most]) if kept else np.empty(0)),
        "spread": array(np.stack(spread[:most]) if kept else np.empty(0)),
        "left_out": len(names) - len(kept),
    }


def ranks(cells: np.ndarray) -> np.ndarray:
    """The share of units that are below, ties counting half; NaN where a cell is missing."""
    from scipy.stats import rankdata

    here = ~np.isnan(cells)
    found = np.full(len(cells), np.nan)
    if here.any():
        found[here] = (rankdata(cells[here]) - 0.5) / here.sum()
    return found


def quantiles(cells: np.ndarray) -> np.ndarray:
    here = cells[~np.isnan(cells)]
    levels = np.linspace(0, 1, LEVELS)
    return np.quantile(here, levels) if len(here) else np.full(LEVELS, np.nan)
