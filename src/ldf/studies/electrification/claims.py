"""What Section 5 says, and what was found."""

from __future__ import annotations

import jax
import numpy as np

from ldf import assess
from ldf.learned import Said
from ldf.objective import classes
from ldf.studies.claims import (
    Claim,
    ahead,
    better,
    beyond,
    held,
    middle,
    of_ranks,
    share,
)
from ldf.studies.electrification.study import CLASSES, Electrification
from ldf.studies.figure import rates, scores

MODERATE, LOW = (0.3, 0.7), 0.1  # what the sentences call moderate and low rates


def claims(of: Electrification) -> list[Claim]:
    """Sentences of Section 5 and Appendix C that numbers can agree with or not, then what the paper
    does not ask."""
    score = scores(of.cv)
    others = [name for name in score if name != "ldf"]
    lead = [
        beyond(f"mean held-out log score, LDF minus {name}", ahead(score["ldf"], score[name]))
        for name in others
    ]
    return [*_learning(of), *_worth(of), *_fits(of), *lead, *_truth(of)]


def worth(of: Electrification) -> tuple[np.ndarray, np.ndarray]:
    """n and μ of each unit."""
    pseudo = of.said.mean()
    return np.asarray(pseudo.n), np.asarray(pseudo.t / pseudo.n)


def moderate(rate: np.ndarray) -> np.ndarray:
    return (rate > MODERATE[0]) & (rate < MODERATE[1])


def _learning(of: Electrification) -> list[Claim]:
    cv, learned = of.cv, of.model.learned_
    fits = jax.tree.leaves(learned.trained[0].weights)  # the first axis is that of fits
    weights = sum(leaf[0].size for leaf in fits)
    _, sizes = classes(rates(cv)[cv.counted], CLASSES)
    rows = int(cv.counted.sum())
    # Where none or all are electrified, the entropy is the prior's spike at the end.
    some = cv.counted & (rates(cv) > 0) & (rates(cv) < 1)
    y = {name: values[some] for name, values in cv.data.y.items()}
    alone = learned.updated(learned.prior(bare=False).spread(int(some.sum())), y)
    entropy = np.asarray(learned.posterior(alone).entropy())
    return [
        Claim("C", "of the regions with primary data some have no building", "784 of 854",
              f"{rows:,} of {int(cv.data.seen.sum()):,} have trials"),
        Claim("5.2", "the network has few trainable parameters", "146",
              f"{weights}, of {cv.data.x.shape[1]} columns"),
        Claim("5.2", "classes are balanced by five quantiles of the rate", "5",
              f"{len(sizes)} classes, of {', '.join(f'{size:,}' for size in sizes)} regions: equal "
              "rates are of one class"),
        Claim("5.2", "the entropy of p(θ | y) decreases with the number of trials", "",
              f"rank correlation {of_ranks(entropy, y['trials'])} in the {len(entropy):,} regions "
              "where not all or none are electrified"),
    ]  # fmt: skip


def _worth(of: Electrification) -> list[Claim]:
    cv, (n, rate) = of.cv, worth(of)
    trials = cv.data.y["trials"]
    regression = np.asarray(cv.answers["beta-binomial"].of(cv.counted).pseudo.n)
    few = cv.data.seen & np.isin(trials, (1, 2))
    some = moderate(rate)
    return [
        Claim("5.3", "beta-binomial regression has one number of pseudo-trials for all", "",
              f"{middle(regression)} over folds"),
        Claim("5.3", "LDF gives less weight where data say less: pseudo-trials vary", "",
              f"from {n.min():.1f} to {n.max():.1f}; rank correlation with the rate "
              f"{of_ranks(rate, n)}"),
        Claim("5.3", "at low rates little confidence is gained", "",
              f"of rates below {LOW}: {middle(n[rate < LOW])}"),
        Claim("5.3", "regions of moderate rate are often worth over eight pseudo-trials", "> 8",
              f"over eight: {share(n[some] > 8)}; {middle(n[some])}"),
        Claim("5.3", "with one or two primary observations, auxiliary data are worth as much", "",
              share(n[few] >= trials[few])),
    ]  # fmt: skip


def _fits(of: Electrification) -> list[Claim]:
    cv, score = of.cv, scores(of.cv)
    entropy = {name: np.asarray(cv.posterior(name).entropy()) for name in ("ldf", "beta-binomial")}
    cover = cv.coverage("ldf", (0.9,))[0]
    to_plain = score["ldf"] - score["binomial"]
    return [
        Claim("5.3", "LDF's posterior has the lower entropy", "59.5 %",
              better(entropy["beta-binomial"], entropy["ldf"])),
        Claim("5.3", "primary data inside the narrowest 90 % region", "over 95 %",
              f"{cover['observed']:.1%}; being of whole numbers, these regions hold "
              f"{cover['expected']:.1%}"),
        Claim("5.3", "LDF fits better than binomial regression, share of regions", "78.3 %",
              better(score["ldf"], score["binomial"])),
        Claim("5.3", "and better than beta-binomial regression", "59.3 %",
              better(score["ldf"], score["beta-binomial"])),
        Claim("5.3", "75th percentile of the difference to binomial regression", "3.24",
              f"{np.quantile(to_plain, 0.75):.2f}"),
    ]  # fmt: skip


def _truth(of: Electrification) -> list[Claim]:
    """What can be said only where θ is known. No fit has seen the cells that it answers for: what
    is said of cells with primary data is by the fold that held them out."""
    if of.theta is None:
        return []
    learned, data = of.model.learned_, of.cv.data
    after = learned.updated(of.said, data.y, data.seen)
    cells: dict[str, tuple[Said, np.ndarray]] = {
        "p(θ | x) holds the truth in cells without primary data": (of.said, ~data.seen),
        "p(θ | x) holds it in cells with primary data, held out": (of.said, data.seen),
        "p(θ | x, y) holds it in the same cells, given their own data too": (after, data.seen),
    }
    found = []
    for what, (said, rows) in cells.items():
        law = learned.posterior(said.rows(rows))
        found.append(beyond(what, held(assess.coverage_of(law, of.theta[rows]))))
    if of.information is not None:
        ranks = of_ranks(of.information, worth(of)[0])
        what = "pseudo-trials rank cells as their true information does"
        found.append(beyond(what, f"rank correlation {ranks}"))
    return found
