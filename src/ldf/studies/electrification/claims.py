"""What Section 5 says, and what was found."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from ldf import assess
from ldf.studies.claims import Claim, middle, share
from ldf.studies.electrification.study import Electrification

MODERATE, LOW = (0.3, 0.7), 0.1  # what the sentences call moderate and low rates


def claims(of: Electrification) -> list[Claim]:
    """Every sentence of Section 5 that can be checked."""
    cv, counted = of.cv, of.cv.counted
    score = {name: answer.log_score[counted] for name, answer in cv.answers.items()}
    pseudo = of.said.mean()
    n, rate = (np.asarray(v) for v in (pseudo.n, pseudo.t / pseudo.n))
    entropy = {name: np.asarray(cv.posterior(name).entropy()) for name in ("ldf", "beta-binomial")}
    trials = cv.data.y["trials"]
    regression = np.asarray(cv.answers["beta-binomial"].of(counted).pseudo.n)
    moderate = (rate > MODERATE[0]) & (rate < MODERATE[1])
    few = cv.data.seen & np.isin(trials, (1, 2))
    cover = cv.coverage("ldf", (0.9,))[0]
    to_plain, to_compound = (score["ldf"] - score[m] for m in ("binomial", "beta-binomial"))
    correlation = _ranks_agree(rate, n)
    found = [
        Claim("5.3", "LDF fits better than binomial regression, share of regions", "78.3 %",
              share(to_plain > 0)),
        Claim("5.3", "and better than beta-binomial regression", "59.3 %", share(to_compound > 0)),
        Claim("5.3", "75th percentile of the difference to binomial regression", "3.24",
              f"{np.quantile(to_plain, 0.75):.2f}"),
        Claim("5.3", "LDF's posterior has the lower entropy", "59.5 %",
              share(entropy["ldf"] < entropy["beta-binomial"])),
        Claim("5.3", "primary data inside the narrowest 90 % region", "over 95 %",
              f"{cover['observed']:.1%}; being of whole numbers, these regions hold "
              f"{cover['expected']:.1%}"),
        Claim("5.3", "regions of moderate rate are often worth over eight pseudo-trials", "> 8",
              f"over eight in {share(n[moderate] > 8)}; median {middle(n[moderate])}"),
        Claim("5.3", "at low rates little confidence is gained", "",
              f"rates below {LOW}: median {middle(n[rate < LOW])}"),
        Claim("5.3", "LDF gives less weight where data say less: pseudo-trials vary", "",
              f"from {n.min():.1f} to {n.max():.1f}; rank correlation with the rate "
              f"{correlation:+.2f}"),
        Claim("5.3", "beta-binomial regression has one number of pseudo-trials for all", "",
              f"{middle(regression)} over folds"),
        Claim("5.3", "with one or two primary observations, auxiliary data are worth as much", "",
              share(n[few] >= trials[few])),
    ]  # fmt: skip
    lead = {name: cv.compare("ldf", name) for name in score if name != "ldf"}
    for name, row in lead.items():
        found.append(
            Claim("5.3", f"mean held-out log score, LDF minus {name}", "",
                  f"{row['mean']:+.4f} ± {row['standard_error']:.4f}")
        )  # fmt: skip
    return found if of.theta is None else [*found, *_truth(of, of.theta, n)]


def _truth(of: Electrification, theta: np.ndarray, n: np.ndarray) -> list[Claim]:
    """What can be said only where θ is known."""
    learned = of.model.learned_
    new = ~of.cv.data.seen
    law = learned.posterior(of.said.rows(new))
    rows = assess.coverage_of(law, theta[new]).rows()
    held = ", ".join(f"{row['observed']:.1%} at {row['mass']:.0%}" for row in rows)
    found = [Claim("", "intervals hold the truth in cells without primary data", "", held)]
    if of.information is not None:
        found.append(
            Claim("", "pseudo-trials rank cells as their true information does", "",
                  f"rank correlation {_ranks_agree(of.information, n):+.2f}")
        )  # fmt: skip
    return found


def _ranks_agree(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
