"""What Section 6 says, and what was found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldf import assess
from ldf.studies.claims import (
    NONE,
    Claim,
    ahead,
    better,
    beyond,
    correlation,
    middle,
    of_ranks,
    share,
)
from ldf.studies.figure import scores
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
BELOW = 0.25  # rates in the lowest quarter are very low; likewise counties are small


def modes(law: Any, points: int = 2000) -> np.ndarray:
    """How many peaks the density of each unit has, on a grid in the log of θ over 99.8 % of it."""
    low, high = (np.asarray(law.quantile(q), float) for q in (0.001, 0.999))
    grid = np.exp(np.linspace(np.log(np.maximum(low, high * 1e-9)), np.log(high), points))
    height = np.asarray(law.log_prob(grid))
    rises = np.diff(height, axis=0) > 0
    inner = (rises[:-1] & ~rises[1:]).sum(0)
    return inner + ~rises[0]  # a density that falls from the start has its peak there


def claims(of: Homicide) -> list[Claim]:
    """Sentences of Section 6 and Appendix D that numbers can agree with or not, then what the paper
    does not ask."""
    return [
        *_posteriors(of), *_low_rates(of), *_assignments(of), *_fits(of), *_mappings(of),
        *_unlike(of), *_lead(of), *_states(of), *_periods(of),
    ]  # fmt: skip


def _posteriors(of: Homicide) -> list[Claim]:
    peaks = modes(of.mixture.learned_.posterior(of.said.rows(of.largest)))
    theta = {name: np.asarray(of.cv.posterior(name).entropy()) for name in ("ldf", EM)}
    return [
        Claim("6.1", "there are 3,137 counties with 47 features", "3,137; 47",
              f"{len(of.county):,}; {len(of.mixture.columns().auxiliary)}"),
        Claim("6.3", "the posteriors of the mixture are multimodal", "",
              f"more than one peak in {int((peaks > 1).sum())} of the {len(peaks)} most populous "
              "counties of their states"),
        Claim("6.3", "the mixture is more precise about the rate than one mapping", "",
              f"lower entropy of p(θ | x) in {better(theta['ldf'], theta[EM])}"),
    ]  # fmt: skip


def _low_rates(of: Homicide) -> list[Claim]:
    """Of the counties whose rates gamma-Poisson regression holds for the lowest."""
    cv, y = of.cv, of.cv.data.outcome()[of.cv.counted]
    theta = {name: cv.posterior(name) for name in ("ldf", "gamma-poisson")}
    mean, sd = (
        {name: np.asarray(getattr(law, what)()) for name, law in theta.items()}
        for what in ("mean", "sd")
    )
    low = mean["gamma-poisson"] <= np.quantile(mean["gamma-poisson"], BELOW)
    spread = {name: (sd[name] / mean[name])[low] for name in theta}
    inside = {
        name: assess.coverage(cv.predictive(name), y, (0.9,), low).rows()[0] for name in theta
    }
    exposure = np.asarray(cv.answers["ldf"].of(cv.counted).mean().n)
    regression = np.asarray(cv.answers["gamma-poisson"].of(cv.counted).mean().n)
    where = f"the {BELOW:.0%} of counties with the lowest rates"
    each = " against ".join(
        f"{own['observed']:.1%} of {own['expected']:.1%} ({name})" for name, own in inside.items()
    )
    return [
        Claim("6.3", "regressions are often highly concentrated at very low rates", "",
              f"in {where}: smaller sd(θ | x) than LDF's in "
              f"{better(sd['ldf'][low], sd['gamma-poisson'][low])}; sd over mean "
              f"{np.median(spread['gamma-poisson']):.2f}, LDF's {middle(spread['ldf'], 2)}"),
        Claim("6.3", "there LDF is more uncertain, gamma-Poisson much more overconfident", "",
              f"median b {np.median(regression[low]):.1f}, LDF's {np.median(exposure[low]):.1f}; "
              f"held-out counts inside 90 % sets, of what these should hold: {each}"),
    ]  # fmt: skip


def _assignments(of: Homicide) -> list[Claim]:
    entropy, label = of.entropy, of.assignment.argmax(0)
    sizes = np.bincount(label, minlength=COMPONENTS)
    people = of.cv.data.y["exposure"]
    big, small = label[of.largest] > 0, label[people <= np.quantile(people, BELOW)] > 0
    return [
        Claim("6.3", "the largest entropy of an assignment is about 1.1, and few counties reach it",
              "1.1", f"log 3 = {UNIFORM:.3f}; {NEARLY:.0%} of it in "
              f"{share(entropy > NEARLY * UNIFORM)}; {middle(entropy, 2)}"),
        Claim("6.3", "large population centres are mostly in the two larger clusters", "",
              f"{int(big.sum())} of {len(big)}; the clusters have "
              f"{', '.join(f'{size:,}' for size in sizes)} counties"),
        Claim("6.3", "many rural counties are in the two larger clusters as well", "",
              f"of the {BELOW:.0%} with the fewest people {share(small)}"),
        Claim("6.3", "clusters come from factors other than the direct population", "",
              f"rank correlation of cluster and population {of_ranks(label, people)}"),
    ]  # fmt: skip


def _fits(of: Homicide) -> list[Claim]:
    score = scores(of.cv)
    compound, plain = score["gamma-poisson"], score["poisson"]
    return [
        Claim("6.3", "LDF (one mapping) fits more counties better than gamma-Poisson", "64.8 %",
              better(score["ldf"], compound)),
        Claim("6.3", "LDF-MM (three mappings, one epoch an iteration) does", "80.5 %",
              better(score[EM], compound)),
        Claim("6.3", "both are much better than the baselines: against Poisson", "",
              f"{better(score['ldf'], plain)}; LDF-MM {better(score[EM], plain)}"),
        Claim("D", "Poisson regression performs very poorly", "",
              f"{plain.mean():.3f} a county, gamma-Poisson {compound.mean():.3f}"),
    ]  # fmt: skip


def _mappings(of: Homicide) -> list[Claim]:
    """Of a and b at the likeliest mapping."""
    cv, (a, b) = of.cv, at_map(of)
    rate = a / b
    low = rate < 1
    pick = of.assignment.argmax(0), np.arange(len(rate))
    law = of.mixture.learned_.family.posterior(of.said.natural[pick])
    variance = np.asarray(law.sd()) ** 2
    regression = cv.answers["gamma-poisson"].of(cv.counted).mean()
    b_regression = np.asarray(regression.n)
    r_regression = np.asarray(regression.t) / b_regression
    below = share(b[low] < 100) + f"; {middle(b[low])}" if low.any() else NONE
    return [
        Claim("6.3", "b is inversely proportional to the posterior variance", "",
              f"correlation of their logarithms {correlation(np.log(b), np.log(variance))}; at a "
              f"given rate it is: variance × b / rate is {middle(variance * b / rate, 2)}"),
        Claim("6.3", "where a/b < 1 (per thousand), the pseudo-exposure b is below 100", "< 100",
              below),
        Claim("6.3", "gamma-Poisson: the lower the rate, the more intervals b", "",
              f"correlation {correlation(np.log(r_regression), np.log(b_regression))}"),
        Claim("6.3", "rate and pseudo-exposure are collinear on a log scale", "",
              f"correlation {correlation(np.log(rate), np.log(b))}"),
    ]  # fmt: skip


# --- what the paper does not ask ----------------------------------------------------------------


def _unlike(of: Homicide) -> list[Claim]:
    """What else the shares of 64.8 % and 80.5 % could be of."""
    score, weak = scores(of.cv), of.held_back[of.cv.counted]
    compound = score["gamma-poisson"]
    known = by_own_count(of.cv.answers[EM], of.cv.data, of.cv.counted)
    return [
        beyond("LDF-MM with a full M-step fits better than gamma-Poisson",
               better(score[FULL_EM], compound)),
        beyond("LDF-MM does, if a county's own count may choose its mapping",
               better(known, compound)),
        beyond(f"LDF fits better than a gamma-Poisson regression held back by a penalty of "
               f"{HELD_BACK:g}", f"{better(score['ldf'], weak)}; that regression scores "
               f"{weak.mean():.3f}, not {compound.mean():.3f}"),
        beyond("LDF-MM fits better than that one", better(score[EM], weak)),
        beyond("and does, if a county's own count may choose its mapping", better(known, weak)),
    ]  # fmt: skip


def _lead(of: Homicide) -> list[Claim]:
    score, state = scores(of.cv), of.state[of.cv.counted]
    compound = score.pop("gamma-poisson")
    return [
        beyond(f"mean held-out log score, {name} minus gamma-Poisson", ahead(own, compound, state))
        for name, own in score.items()
    ]


def _states(of: Homicide) -> list[Claim]:
    score, state = scores(of.by_state), of.state[of.by_state.counted]
    compound = score["gamma-poisson"]
    return [
        beyond(f"whole states held out: {name} minus gamma-Poisson",
               f"{ahead(score[name], compound, state)}; better in {better(score[name], compound)}")
        for name in ("ldf", EM)
    ]  # fmt: skip


def _periods(of: Homicide) -> list[Claim]:
    """Standard errors are by state, as counties of a state may err alike."""
    found = []
    for period, score in of.later.items():
        both = score["x and this period"]
        gain = [ahead(both, score[name], score["state"]) for name in ("x", "this period")]
        found.append(
            beyond(f"counts of {period}, foretold by {of.foretold_by} from x and y of this period",
                   f"mean log score {both.mean():.4f}; minus that from x alone {gain[0]}; minus "
                   f"that from y alone {gain[1]}")
        )  # fmt: skip
    return found
