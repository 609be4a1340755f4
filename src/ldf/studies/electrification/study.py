"""Section 5: rates of electrification in the cells of a district.

Ten stratified folds; columns standardised on training rows; the network of 146 weights, trained by
model selection against beta-binomial regression, with the classes of the rate by five quantiles
balanced; Adam on batches of 256, patience 100, ten restarts of which the best on a tenth of the
training rows is taken; learning rate, penalty and the prior's strength drawn on a log scale in each
fold, or those that the paper prints. Beside it the two regressions, with their penalties searched
likewise or printed, and `ldf` as it is by default. What the model is compared with in learning is
the same beta-binomial regression, learned in each training set.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldf.data import read
from ldf.ensemble import Ensemble, Member
from ldf.estimator import CalibrationWarning, Fusion
from ldf.families import Binomial
from ldf.fit import Schedule
from ldf.learned import Said
from ldf.mappings import Network
from ldf.spec import Spec
from ldf.studies.protocol import THE_PAPERS, Protocol, beside, everywhere, log_uniform, regressions
from ldf.validate import CrossValidation

NETWORK = Network(shared=(12,), branch=(3,), by="rate")  # 146 weights with four columns
PRINTED = Member(NETWORK, "standard", learning_rate=0.005418707, penalty=1.74e-7)
PRINTED_PRIOR = {"successes": 0.005316, "failures": 1.55}
PRINTED_PENALTIES = {"binomial": 0.00123, "beta-binomial": 5.214e-5}
DEFAULTS = "ldf, default settings"
CLASSES = 5  # quantiles of the rate, whose classes count the same


@dataclass(frozen=True, eq=False)
class Electrification:
    """The study, done. Units are the rows of the frame."""

    cv: CrossValidation
    model: Fusion  # the same, learned from all cells with primary data
    said: Said  # of every cell
    place: Any  # of the cells, as ldf.plot takes it: a grid's shape, or coordinates; or None
    theta: np.ndarray | None  # the truth, where it was simulated
    information: np.ndarray | None  # and the true number of pseudo-trials


def run(
    frame: Any,
    primary: dict[str, str],
    auxiliary: list[str],
    *,
    protocol: Protocol = THE_PAPERS,
    printed: bool = False,
    place: Any = None,
    theta: np.ndarray | None = None,
    information: np.ndarray | None = None,
    id: str | None = None,
    sensitive: tuple[str, ...] = (),
) -> Electrification:
    """Do it. With `printed`, by the numbers that the paper prints."""
    settings, others = asked(protocol, printed)
    words: dict[str, Any] = {"sensitive": sensitive, "seed": protocol.seed}
    model = Fusion(Binomial(), primary, auxiliary, id=id, **settings, **words)
    if protocol.defaults:
        default = Fusion(Binomial(), primary, auxiliary, **words)
        others[DEFAULTS] = default.spec(read(frame, default.family_of(), default.columns()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the claims say how calibrated it is
        model.fit(frame)
    cv = beside(model, frame, others, protocol.folds)
    return Electrification(cv, model, everywhere(cv, model), place, theta, information)


def asked(protocol: Protocol, printed: bool = False) -> tuple[dict[str, Any], dict[str, Spec]]:
    """The model's settings, and the regressions: searched, or as the paper prints them."""
    family = Binomial()
    rng = np.random.default_rng(protocol.seed)
    members, penalties, prior = searched(rng, protocol.draws)
    if printed:
        members, penalties = (PRINTED,), PRINTED_PENALTIES
        prior = family.prior(**PRINTED_PRIOR)
    # Appendix C adds the prior to the regression as well.
    others: dict[str, Spec] = regressions(family, penalties, prior if printed else "none")
    schedule = Schedule(epochs=protocol.epochs)
    settings = {
        "prior": prior,
        "objective": "model-selection",
        "reference": others["beta-binomial"],
        "balance": CLASSES,
        "ensemble": Ensemble(members, 1, protocol.restarts, "best", schedule),
    }
    return settings, others


def searched(rng: np.random.Generator, draws: int) -> tuple[tuple[Member, ...], dict, str]:
    """Settings drawn on a log scale: of the network, of the regressions, and of the prior."""
    rates = log_uniform(rng, 1e-3, 3e-2, draws).tolist()
    penalties = log_uniform(rng, 1e-8, 1e-3, draws).tolist()
    strengths = log_uniform(rng, 1e-2, 1.0, draws).tolist()
    members = tuple(
        Member(NETWORK, "standard", learning_rate=rate, penalty=penalty, strength=strength)
        for rate, penalty, strength in zip(rates, penalties, strengths, strict=True)
    )
    own = log_uniform(rng, 1e-6, 1e-1, 2 * draws)
    return members, {"binomial": own, "beta-binomial": own}, "fitted"
