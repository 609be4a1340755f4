"""Section 6: homicide rates of counties, by one mapping and by a mixture of three.

Ten folds stratified by the rate; columns standardised on training rows; Appendix D's network (tanh,
ReLU, softplus outputs a and b), penalty and dropout drawn on a log scale in each fold; the mixture
learned by EM with one epoch an iteration, as Section 6 has it, and with a full M-step, as Appendix
B does: at most 1,000 iterations, patience 50. Beside them Poisson and gamma-Poisson regression, and
`ldf` as it is by default. What the paper lacks: folds of whole states, and how well the fit to one
period foretells another.

Which mapping holds for a county is read off one mixture that is learned from all counties: the
first mapping of one fold need not be the first of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import entr

from ldf import folds
from ldf.baselines import baselines
from ldf.data import Data, read
from ldf.ensemble import Ensemble, Member
from ldf.estimator import Fusion, table_of
from ldf.families import Poisson
from ldf.fit import Schedule
from ldf.learn import learn
from ldf.learned import Said
from ldf.mappings import Network
from ldf.mixed import Mixture
from ldf.spec import Spec
from ldf.studies.protocol import THE_PAPERS, Protocol, beside, log_uniform, regressions
from ldf.table import Table, empirical_rate
from ldf.validate import Answer, CrossValidation, answer

NETWORK = Network(shared=(10, 10), branch=(), activations=("tanh", "relu"), by="counts")
EM, FULL_EM = "ldf-mm", "ldf-mm, full M-step"
DEFAULTS = "ldf, default settings"
PATIENCE = 50
HELD_BACK = (
    10.0  # a penalty under which a regression of standardised columns learns next to nothing
)
COMPONENTS = 3


@dataclass(frozen=True, eq=False)
class Homicide:
    """The study, done. Units are the rows of the frame."""

    cv: CrossValidation
    by_state: CrossValidation
    mixture: Fusion  # learned from all counties
    said: Said  # by the mixture: mappings × counties, from fewest to most counties
    assignment: np.ndarray  # p(z | x, y), likewise
    county: np.ndarray
    state: np.ndarray
    shapes: Any  # ldf.plot.Areas, or None
    held_back: np.ndarray  # log scores of a gamma-Poisson regression with far too much penalty
    later: dict[str, dict[str, np.ndarray]]  # by other period: its log scores, by what is known
    foretold_by: str  # the model that these are of

    @property
    def entropy(self) -> np.ndarray:
        """Of p(z | x, y). That of p(z | x) is the same for all counties, without a gate."""
        return np.asarray(entr(self.assignment).sum(0))

    @property
    def largest(self) -> np.ndarray:
        """The most populous county of each state, in the order of the states."""
        return largest(self.state, self.cv.data.y["exposure"])


def run(
    frame: Any,
    primary: dict[str, str],
    auxiliary: list[str],
    *,
    county: np.ndarray,
    state: np.ndarray,
    shapes: Any = None,
    sensitive: tuple[str, ...] = (),
    protocol: Protocol = THE_PAPERS,
    later: Mapping[str, dict[str, np.ndarray]] | None = None,
) -> Homicide:
    """Do it. `later` are counts and exposure of other periods by their names, NaN where there are
    none."""
    family = Poisson()
    words: dict[str, Any] = {"sensitive": sensitive, "seed": protocol.seed}
    ensemble, penalties = searched(protocol)
    single = Fusion(family, primary, auxiliary, ensemble=ensemble, **words)
    mixture = Fusion(
        family, primary, auxiliary, ensemble=ensemble,
        structure=Mixture(COMPONENTS, learn="em"), **words,
    )  # fmt: skip
    data = read(frame, family, single.columns())
    rate = empirical_rate(family, data.y, data.seen)
    split = folds.stratified(rate, protocol.folds, protocol.seed)
    others = {
        EM: mixture.spec(data),
        FULL_EM: replace(mixture.spec(data), structure=Mixture(COMPONENTS, learn="full em")),
        **regressions(family, penalties),
    }
    if protocol.defaults:
        others[DEFAULTS] = Fusion(family, primary, auxiliary, **words).spec(data)
    cv = beside(single, frame, others, split)
    blocks = folds.grouped(state, min(protocol.folds, 5), protocol.seed, rate=rate)
    # The paper has no such folds: what is asked of them needs no more than a few restarts.
    few = replace(ensemble, restarts=min(ensemble.restarts, 3))
    fewer = {EM: replace(others[EM], ensemble=few), "gamma-poisson": others["gamma-poisson"]}
    by_state = beside(
        Fusion(family, primary, auxiliary, ensemble=few, **words), frame, fewer, blocks
    )
    mixture.fit(frame)
    said, assignment = _assigned(mixture, cv)
    foretold_by = DEFAULTS if protocol.defaults else "ldf"
    spec = others.get(foretold_by, single.spec(data))
    known = _later(spec, cv, later, state, protocol.seed) if later else {}
    much = regressions(family, dict.fromkeys(penalties, HELD_BACK))["gamma-poisson"]
    weak = answer(much, table_of(data), split, protocol.seed).log_score
    return Homicide(
        cv, by_state, mixture, said, assignment, county, state, shapes, weak, known, foretold_by
    )


def searched(protocol: Protocol) -> tuple[Ensemble, dict[str, np.ndarray]]:
    """Settings drawn on a log scale: of the networks, and of the regressions."""
    rng = np.random.default_rng(protocol.seed)
    penalty = log_uniform(rng, 1e-5, 1e-2, protocol.draws).tolist()
    dropout = log_uniform(rng, 1e-2, 0.3, protocol.draws).tolist()
    members = tuple(
        Member(NETWORK, "standard", penalty=p, dropout=d)
        for p, d in zip(penalty, dropout, strict=True)
    )
    schedule = Schedule(epochs=protocol.epochs, patience=PATIENCE)
    ensemble = Ensemble(
        members, parts=1, restarts=protocol.restarts, combine="best", schedule=schedule
    )
    own = log_uniform(rng, 1e-6, 1e-1, 2 * protocol.draws)
    return ensemble, {"poisson": own, "gamma-poisson": own}


def _assigned(mixture: Fusion, cv: CrossValidation) -> tuple[Said, np.ndarray]:
    """The mixture's mappings, ordered from that with the fewest counties to that with the most."""
    learned, data = mixture.learned_, cv.data
    said = learned.said(data.x)
    after = learned.updated(said, data.y, data.seen).share
    order = np.argsort(np.bincount(after.argmax(0), minlength=len(after)), kind="stable")
    return Said(said.natural[order], said.pseudo[order], said.share[order]), after[order]


def _later(
    spec: Spec,
    cv: CrossValidation,
    later: Mapping[str, dict[str, np.ndarray]],
    state: np.ndarray,
    seed: int,
) -> dict[str, dict[str, np.ndarray]]:
    """How well the counts of each other period are foretold by what is known of this one."""
    family, data = cv.data.family, cv.data
    (learned,) = learn(spec, table_of(data), seed)
    # A county's own count is not used twice: it is answered for by fits that have not seen it.
    x_alone = learned.said(data.x, learned.part)
    nothing = np.zeros((len(data), 1))
    alone = Table(nothing, data.y, data.seen, np.ones(len(data)))
    (flat,) = learn(baselines(family)["intercept"], alone, seed)
    said = {
        "x and this period": (learned, learned.updated(x_alone, data.y, data.seen)),
        "x": (learned, x_alone),
        "this period": (flat, flat.updated(flat.said(nothing), data.y, data.seen)),
    }
    found = {}
    for period, y in later.items():
        known = data.seen & np.isfinite(y["count"]) & (y["exposure"] > 0)
        after = _rows(y, known)
        found[period] = {
            name: by.log_score(what.rows(known), after) for name, (by, what) in said.items()
        } | {"state": state[known]}
    return found


def _rows(y: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
    return {name: np.asarray(values)[rows] for name, values in y.items()}


def by_own_count(mixture: Answer, data: Data, units: np.ndarray) -> np.ndarray:
    """Log scores of units if each county's mapping were known to be the one that its own
    count makes likeliest: no prediction, since the count is used to choose what predicts it."""
    said = mixture.of(units)
    each = np.asarray(data.family.log_predictive(said.natural, **_rows(data.y, units)))
    pick = (each + np.log(said.share)).argmax(0)
    return each[pick, np.arange(each.shape[1])]


def at_map(of: Homicide) -> tuple[np.ndarray, np.ndarray]:
    """a and b of each county, by the mapping that most likely holds for it."""
    pick = of.assignment.argmax(0), np.arange(of.assignment.shape[1])
    return np.asarray(of.said.pseudo.t)[pick], np.asarray(of.said.pseudo.n)[pick]


def largest(state: np.ndarray, exposure: np.ndarray) -> np.ndarray:
    """The most populous county of each state, in the order of the states."""
    rows = [np.flatnonzero(state == one) for one in np.unique(state)]
    return np.array([some[np.argmax(exposure[some])] for some in rows])
