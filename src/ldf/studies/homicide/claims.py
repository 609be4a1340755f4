"""What Section 6 says, and what was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import assess
from ldf.studies.claims import Claim, middle, share
from ldf.studies.homicide.study import (
    COMPONENTS,
    EM,
    FULL_EM,
    HELD_BACK,
    Homicide,
    at_map,
    by_own_count,
)

UNIFORM = float(np.log(COMPONENTS))  # the largest entropy of an assignment
NEARLY = 0.95  # of it


def modes(law: Any, points: int = 2000) -> np.ndarray:
    """How many peaks the density of each unit has, on a grid in the log of θ over 99.8 % of it."""
    low, high = (np.asarray(law.quantile(q), float) for q in (0.001, 0.999))
    grid = np.exp(np.linspace(np.log(np.maximum(low, high * 1e-9)), np.log(high), points))
    height = np.asarray(law.log_prob(grid))
    rises = np.diff(height, axis=0) > 0
    inner = (rises[:-1] & ~rises[1:]).sum(0)
    return inner + ~rises[0]  # a density that falls from the start has its peak there


def claims(of: Homicide) -> list[Claim]:
    """Every sentence of Section 6 that can be checked."""
    cv, counted = of.cv, of.cv.counted
    score = {name: answer.log_score[counted] for name, answer in cv.answers.items()}
    compound = score["gamma-poisson"]
    weak = of.held_back[counted]
    entropy = of.entropy
    known = by_own_count(cv.answers[EM], cv.data, counted)
    a, b = at_map(of)
    rate = a / b
    sizes = np.bincount(of.assignment.argmax(0), minlength=COMPONENTS)
    big = of.assignment.argmax(0)[of.largest] > 0
    peaks = modes(of.mixture.learned_.posterior(of.said.rows(of.largest)))
    theta = {name: np.asarray(cv.posterior(name).entropy()) for name in ("ldf", EM)}
    regression = cv.answers["gamma-poisson"].of(counted).pseudo
    b_regression = np.asarray(regression.n)[0]
    r_regression = np.asarray(regression.t)[0] / b_regression
    low = rate < 1
    found = [
        Claim("6.3", "LDF (one mapping) fits more counties better than gamma-Poisson", "64.8 %",
              share(score["ldf"] > compound)),
        Claim("6.3", "LDF-MM (three mappings, one epoch an iteration) does", "80.5 %",
              share(score[EM] > compound)),
        Claim("6.3", "and with a full M-step", "", share(score[FULL_EM] > compound)),
        Claim("6.3", "LDF-MM, if a county's own count may choose its mapping", "",
              share(known > compound)),
        Claim("6.3", "LDF against a gamma-Poisson regression held back by a penalty of "
              f"{HELD_BACK:g}", "", f"{share(score['ldf'] > weak)}; that regression scores "
              f"{weak.mean():.3f}, not {compound.mean():.3f}"),
        Claim("6.3", "LDF-MM against the same", "", share(score[EM] > weak)),
        Claim("6.3", "and if a county's own count may choose its mapping", "",
              share(known > weak)),
        Claim("6.3", "the posteriors of the mixture are multimodal", "",
              f"more than one peak in {int((peaks > 1).sum())} of the {len(peaks)} most populous "
              "counties of their states"),
        Claim("6.3", "the mixture is more precise about the rate than one mapping", "",
              f"lower entropy of p(θ | x) in {share(theta[EM] < theta['ldf'])}"),
        Claim("6.3", "the largest entropy of an assignment is about 1.1, and few counties reach it",
              "1.1", f"log 3 = {UNIFORM:.3f}; {NEARLY:.0%} of it in "
              f"{share(entropy > NEARLY * UNIFORM)}; median {middle(entropy, 2)}"),
        Claim("6.3", "large population centres are mostly in the two larger clusters", "",
              f"{int(big.sum())} of {len(big)}; the clusters have "
              f"{', '.join(f'{size:,}' for size in sizes)} counties"),
        Claim("6.3", "where a/b < 1 (per thousand), the pseudo-exposure b is below 100", "< 100",
              share(b[low] < 100) + f"; median {middle(b[low])}"),
        Claim("6.3", "rate and pseudo-exposure are collinear on a log scale", "",
              f"correlation {np.corrcoef(np.log(rate), np.log(b))[0, 1]:+.2f}"),
        Claim("6.3", "gamma-Poisson: the lower the rate, the more intervals b", "",
              f"correlation {np.corrcoef(np.log(r_regression), np.log(b_regression))[0, 1]:+.2f}"),
        Claim("D", "Poisson regression performs very poorly", "",
              f"{score['poisson'].mean():.3f} a county, gamma-Poisson {compound.mean():.3f}"),
    ]  # fmt: skip
    for name in cv.answers:
        if name != "gamma-poisson":
            ahead = assess.score_difference(score[name], compound, of.state[counted])
            found.append(
                Claim("6.3", f"mean held-out log score, {name} minus gamma-Poisson", "",
                      f"{ahead.mean:+.4f} ± {ahead.standard_error:.4f}")
            )  # fmt: skip
    return found + _beyond(of)


def _beyond(of: Homicide) -> list[Claim]:
    """What the paper does not ask: whole states held out, and another period."""
    found = []
    counted = of.by_state.counted
    score = {name: own.log_score[counted] for name, own in of.by_state.answers.items()}
    for name in ("ldf", EM):
        ahead = assess.score_difference(score[name], score["gamma-poisson"], of.state[counted])
        found.append(
            Claim("", f"whole states held out: {name} minus gamma-Poisson", "",
                  f"{ahead.mean:+.4f} ± {ahead.standard_error:.4f}; better in "
                  f"{share(score[name] > score['gamma-poisson'])}")
        )  # fmt: skip
    later = of.later or {}
    for name in ("x", "this period") if later else ():
        ahead = assess.score_difference(later["x and this period"], later[name], later["state"])
        found.append(
            Claim("", f"another period, given x and this one rather than {name} alone", "",
                  f"{ahead.mean:+.4f} ± {ahead.standard_error:.4f}")
        )  # fmt: skip
    return found
