"""A plan gains what it says, and no other plan gains more.

Expected gains are compared with sums over every answer and integrals over θ, done the long way; and
with themselves: what two surveys gain is what the first gains and the second after it. What a
budget is spent on is compared with every way to spend it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats as stats
from scipy.integrate import quad

import ldf
from ldf import DataError
from ldf.frame import Frame
from ldf.plan import Belief, allocate, answers, make, targets
from ldf.results import Units
from ldf.statistic import Arrivals, ClassCounts, Potential, Trials
from units import BINOMIAL, FAMILIES, ONE, fusion, villages

SHARE = np.array([[0.7, 0.2, 0.5, 1.0], [0.3, 0.8, 0.5, 0.0]])
A = np.array([[2.0, 8.0, 0.4, 5.0], [3.0, 1.5, 6.0, 4.0]])
B = np.array([[8.0, 2.0, 0.7, 5.0], [3.0, 2.5, 9.0, 4.0]])
UNITS = np.arange(4)
VARIANCE = 2.0

BELIEFS = {
    "binomial": Belief.of(ldf.Binomial(), Trials(A, B), SHARE, None),
    "poisson": Belief.of(ldf.Poisson(), Arrivals(A, B), SHARE, None),
    "gaussian": Belief.of(ldf.Gaussian(variance=VARIANCE), Potential(A - 3, B), SHARE, None),
}
TARGETS = ["mse", "entropy", ("exceeds", 0.45)]


def gain(of: Belief, target: Any, n: float, rows: Any = UNITS) -> np.ndarray:
    return targets.named_target(target).gain(of, np.asarray(rows), np.full(len(rows), float(n)))


# --- the long way -------------------------------------------------------------------------------


def law_of(family: str, k: int, unit: int) -> Any:
    a, b = A[k, unit], B[k, unit]
    if family == "binomial":
        return stats.beta(a, b)
    if family == "poisson":
        return stats.gamma(a, scale=1 / b)
    return stats.norm((a - 3) / b, b**-0.5)


def after(family: str, k: int, unit: int, y: float, n: float) -> tuple[float, Any]:
    """p_k(y), and the component after y, by SciPy."""
    a, b = A[k, unit], B[k, unit]
    if family == "binomial":
        return stats.betabinom.pmf(y, n, a, b), stats.beta(a + y, b + n - y)
    if family == "poisson":
        return stats.nbinom.pmf(y, a, b / (b + n)), stats.gamma(a + y, scale=1 / (b + n))
    told, worth = n / VARIANCE, b + n / VARIANCE
    chance = stats.norm.pdf(y, (a - 3) / b, (1 / b + 1 / told) ** 0.5)
    return chance, stats.norm((a - 3 + told * y) / worth, worth**-0.5)


def loss(target: Any, weights: np.ndarray, laws: list[Any]) -> float:
    """Of a mixture, from its definition."""
    if target == "mse":
        mean = sum(w * law.mean() for w, law in zip(weights, laws, strict=True))
        second = (w * (law.var() + law.mean() ** 2) for w, law in zip(weights, laws, strict=True))
        return sum(second) - mean**2
    if target == "entropy":
        low = min(law.ppf(1e-14) for law in laws)
        high = max(law.isf(1e-14) for law in laws)
        points = sorted({float(law.ppf(q)) for law in laws for q in (0.01, 0.3, 0.7, 0.99)})

        def term(theta: float) -> float:
            density = sum(w * law.pdf(theta) for w, law in zip(weights, laws, strict=True))
            return -density * np.log(density) if density > 0 else 0.0

        ends = [low, *points, high]
        return sum(quad(term, x, z, limit=200)[0] for x, z in itertools.pairwise(ends))
    above = sum(w * law.sf(target[1]) for w, law in zip(weights, laws, strict=True))
    return min(above, 1 - above)


def by_hand(family: str, target: Any, n: int, unit: int) -> float:
    weights = SHARE[:, unit]
    now = loss(target, weights, [law_of(family, k, unit) for k in (0, 1)])

    def left(y: float) -> float:
        """Times the chance of y."""
        found = [after(family, k, unit, y, n) for k in (0, 1)]
        joint = weights * [chance for chance, _ in found]
        if joint.sum() < 1e-11:
            return 0.0
        return joint.sum() * loss(target, joint / joint.sum(), [law for _, law in found])

    if family == "binomial":
        return now - sum(left(y) for y in range(n + 1))
    if family == "poisson":
        return now - sum(left(y) for y in range(120))
    if target == "entropy":  # on a grid on which a smooth density's sum is its integral
        grid, width = np.linspace(-10, 10, 81, retstep=True)
        return now - width * sum(left(y) for y in grid)
    return now - quad(left, -10, 10, limit=200, epsabs=1e-9)[0]


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(("family", "n"), [("binomial", 1), ("binomial", 6), ("poisson", 2)])
def test_gains_are_those_of_every_answer(family: str, n: int, target: Any) -> None:
    few = UNITS[: 1 if family == "poisson" else 2] if target == "entropy" else UNITS
    wanted = [by_hand(family, target, n, unit) for unit in few]
    assert np.allclose(gain(BELIEFS[family], target, n, few), wanted, rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_gains_from_the_mean_of_measurements(target: Any) -> None:
    few = UNITS[: 1 if target == "entropy" else 2]
    wanted = [by_hand("gaussian", target, 3, unit) for unit in few]
    assert np.allclose(gain(BELIEFS["gaussian"], target, 3, few), wanted, rtol=1e-4)


# --- closed forms and laws ----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 17, 900])
def test_one_component_has_the_textbook_gain(n: int) -> None:
    alone = np.ones((1, 4))
    a, b = A[:1], B[:1]
    rate = Belief.of(ldf.Binomial(), Trials(a, b), alone, None)
    variance = (a * b / (a + b) ** 2 / (a + b + 1))[0]
    assert np.allclose(gain(rate, "mse", n), variance * n / (a + b + n)[0], rtol=1e-12)
    count = Belief.of(ldf.Poisson(), Arrivals(a, b), alone, None)
    assert np.allclose(gain(count, "mse", n), (a / b**2 * n / (b + n))[0], rtol=1e-12)
    value = Belief.of(ldf.Gaussian(variance=VARIANCE), Potential(a, b), alone, None)
    told = n / VARIANCE
    assert np.allclose(gain(value, "mse", n), (1 / b - 1 / (b + told))[0], rtol=1e-12)
    assert np.allclose(gain(value, "entropy", n), 0.5 * np.log1p(told / b)[0], rtol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_two_surveys_gain_what_the_first_and_then_the_second_gain(family: str, target: Any) -> None:
    of, first, second = BELIEFS[family], 3, 5
    found = of.answers(np.full(4, float(first)))
    then = np.zeros(4)
    for j, chance in enumerate(found.chance):
        state = Belief(of.kind, found.after[:, j], found.share[:, j])
        then += chance * gain(state, target, second)
    together = gain(of, target, first + second)
    assert np.allclose(gain(of, target, first) + then, together, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("family", list(BELIEFS))
def test_more_observations_gain_more_and_never_all(family: str, target: Any) -> None:
    of = BELIEFS[family]
    numbers = (1, 2, 20, 240, 280, 20_000)
    each = np.stack([gain(of, target, n) for n in numbers])
    assert (each >= -1e-9).all()
    slack = 2e-3 * each[1:]  # of many answers, to a thousandth
    assert (np.diff(each, axis=0) > -slack).all()
    if target != "entropy":
        now = targets.named_target(target).now(of)
        assert (each <= now * (1 + 1e-9)).all()
        assert np.allclose(each[-1], now, rtol=0.05)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(("family", "n"), [("binomial", 200), ("binomial", 2000), ("poisson", 60)])
def test_places_are_as_good_as_counting(
    family: str, n: int, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    statistic = {"binomial": Trials, "poisson": Arrivals}[family]
    a, b = (rng.gamma(1, 4, (3, 30)) * rng.choice([1, 20], 30) + 0.05 for _ in (0, 1))
    kind = BELIEFS[family].kind
    of = Belief(kind, statistic(a, b), rng.dirichlet(np.ones(3), 30).T)
    monkeypatch.setattr(answers, "FEW", 10**6)
    counted = gain(of, target, n, np.arange(30))
    monkeypatch.setattr(answers, "FEW", 0)
    placed = gain(of, target, n, np.arange(30))
    tolerance = {"mse": 3e-5, "entropy": 2e-3}.get(target, 5e-4)
    assert np.abs(placed - counted).max() < tolerance * counted.max()


def test_a_class_is_planned_by_its_own_count() -> None:
    counts = np.stack([A, B, B / 2], -1)
    family = ldf.Multinomial(3)
    own = Belief.of(family, ClassCounts(counts), SHARE, 1)
    rate = Belief.of(ldf.Binomial(), Trials(B, A + B / 2), SHARE, None)
    assert np.allclose(gain(own, "mse", 5), gain(rate, "mse", 5))


# --- budgets ------------------------------------------------------------------------------------


def best(offer: allocate.Offer, budget: float, table: np.ndarray) -> float:
    """What any plan gains, by trying all. The table has units × amounts from 0 on."""
    most = 0.0
    choices = [
        [0, *np.arange(offer.minimum[i], offer.most[i] + 1, offer.step)]
        for i in range(len(offer.cost))
    ]
    for plan in itertools.product(*choices):
        n = np.array(plan, int)
        if np.where(n > 0, offer.visit + offer.cost * n, 0).sum() <= budget + 1e-9:
            most = max(most, table[np.arange(len(n)), n].sum())
    return most


def tried(
    table: np.ndarray, offer: allocate.Offer, budget: float
) -> tuple[float, float, np.ndarray]:
    amount = allocate.allocate(
        offer, budget, lambda i, n: table[i, n.astype(int)], np.full(len(table), table.max())
    )
    n = amount.astype(int)
    spent = np.where(n > 0, offer.visit + offer.cost * n, 0).sum()
    assert spent <= budget + 1e-9
    assert ((n == 0) | ((n >= offer.minimum) & (n <= offer.most))).all()
    return float(table[np.arange(len(n)), n].sum()), float(spent), n


def an_offer(units: int, most: int, **more: Any) -> allocate.Offer:
    each = {"cost": 1.0, "visit": 0.0, "minimum": 1.0, "most": float(most)} | more
    return allocate.Offer(
        **{name: np.full(units, 0.0) + value for name, value in each.items()}, step=1.0
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_gains_more_where_gains_are_concave(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rises = np.sort(rng.exponential(size=(4, 6)), 1)[:, ::-1]
    table = np.concatenate([np.zeros((4, 1)), np.cumsum(rises, 1)], 1)
    for budget in (1, 4, 9):
        offer = an_offer(4, 6)
        assert tried(table, offer, budget)[0] == pytest.approx(best(offer, budget, table))


@pytest.mark.parametrize("seed", range(12))
def test_any_gains_and_costs_come_near_the_best_plan(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    table = np.concatenate([np.zeros((4, 1)), np.cumsum(rng.exponential(size=(4, 5)) ** 2, 1)], 1)
    table[rng.integers(4), 1:3] = 0  # a first observation that turns nothing
    offer = an_offer(4, 5, cost=rng.uniform(0.5, 2, 4), visit=rng.uniform(0, 2, 4), minimum=2.0)
    shares = []
    for budget in (3.0, 6.0, 10.0, 40.0):
        wanted = best(offer, budget, table)
        found, _, _ = tried(table, offer, budget)
        assert found <= wanted + 1e-9
        shares.append(found / wanted if wanted else 1.0)
    assert min(shares) > 0.5
    assert np.mean(shares) > 0.85
    assert shares[-1] == pytest.approx(1)  # there was money for all


def test_a_dear_unit_is_not_missed_for_a_cheap_one() -> None:
    table = np.array([[0.0, 2.0], [0.0, 100.0]])
    offer = an_offer(2, 1, cost=np.array([1.0, 100.0]))
    assert tried(table, offer, 100.0)[2].tolist() == [0, 1]
    assert tried(table, offer, 101.0)[2].tolist() == [1, 1]


def test_a_decision_that_one_answer_cannot_turn_is_bought_in_one_step() -> None:
    """Of θ ~ Be(1, 5) one success leaves θ < 0.5 likelier; several may turn it."""
    of = Belief.of(ldf.Binomial(), Trials(np.array([[1.0]]), np.array([[5.0]])), np.ones((1, 1)), 0)
    first, later = gain(of, ("exceeds", 0.5), 1, [0]), gain(of, ("exceeds", 0.5), 12, [0])
    assert abs(first[0]) < 1e-12 < later[0]
    units = Units({"unit": [0]}, np.array([0]), ())
    assert make(of, units, 12, target=("exceeds", 0.5)).observations[0] > 3


def many(rows: int = 60, seed: int = 3) -> tuple[Belief, Units]:
    rng = np.random.default_rng(seed)
    natural = Trials(rng.gamma(1, 2, (2, rows)) + 0.1, rng.gamma(1, 4, (2, rows)) + 0.1)
    of = Belief.of(ldf.Binomial(), natural, rng.dirichlet(np.ones(2), rows).T, None)
    return of, Units({"unit": np.arange(rows)}, np.arange(rows), ())


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_levels_not_asked_for_would_not_be_bought(
    target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, units = many()
    for budget in (20, 300):
        asked = make(of, units, budget, target=target, most=120, visit=1.5)
        monkeypatch.setattr(allocate, "ROUND", 10**6)
        assert np.array_equal(
            asked.observations,
            make(of, units, budget, target=target, most=120, visit=1.5).observations,
        )
        monkeypatch.undo()


def test_wide_levels_cost_little_of_the_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    of, units = many(12)
    coarse = make(of, units, 900)
    monkeypatch.setattr(allocate, "EVERY", 10**6)
    exact = make(of, units, 900)
    assert coarse.spent == exact.spent == 900
    left, wanted = (plan.after.sum() for plan in (coarse, exact))
    assert wanted <= left < 1.01 * wanted


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_larger_budget_gains_more_and_none_is_exceeded(target: Any) -> None:
    of, units = many()
    rng = np.random.default_rng(0)
    how = {"cost": rng.uniform(0.1, 3, 60), "visit": rng.uniform(0, 2, 60), "minimum": 3}
    plans = [make(of, units, budget, target=target, most=25, **how) for budget in (10, 50, 250)]
    for plan in plans:
        assert plan.spent <= plan.budget * (1 + 1e-12)
        n = plan.observations
        assert ((n == 0) | ((n >= 3) & (n <= 25) & (n == np.round(n)))).all()
        assert np.allclose(plan.cost, np.where(n > 0, how["visit"] + how["cost"] * n, 0))
        assert plan.total == pytest.approx(float((plan.before - plan.after).sum()))
    assert plans[0].total < plans[1].total < plans[2].total


def test_money_that_is_left_is_spent_between_levels() -> None:
    of, units = many(2)
    plan = make(of, units, 197)
    assert plan.observations.sum() == 197


def test_exposure_comes_in_portions_and_ends_where_there_is_no_more() -> None:
    of, units = BELIEFS["poisson"], Units({"unit": UNITS}, UNITS, ())
    plan = make(of, units, 3.0, step=0.25, most=np.array([0.1, 0.6, 1.0, 0.0]))
    assert plan.observations.tolist() == [0.1, 0.6, 1.0, 0.0]
    plan = make(of, units, 1.3, step=0.25)
    assert np.allclose(plan.observations % 0.25, 0)
    assert plan.spent == pytest.approx(1.25)


def test_weights_say_what_counts() -> None:
    of, units = many()
    weight = np.zeros(60)
    weight[[4, 7]] = [1.0, 3.0]
    plan = make(of, units, 30, weights=weight)
    assert set(np.flatnonzero(plan.observations)) <= {4, 7}
    plain = make(of[np.array([4, 7])], Units({"u": [4, 7]}, np.array([4, 7]), ()), 30)
    assert plan.observations[7] > plain.observations[1]
    assert plan.gain[7] == pytest.approx(3 * (plan.before - plan.after)[7])
    assert "by weight" in repr(plan)


# --- models -------------------------------------------------------------------------------------

VILLAGES = villages()
VILLAGES["price"] = np.linspace(1, 3, len(VILLAGES))
MODEL = fusion().fit(VILLAGES)


def test_a_plan_begins_with_the_posterior() -> None:
    post = MODEL.posterior(VILLAGES)
    plan = MODEL.plan(VILLAGES, 60, "price")
    assert np.allclose(plan.before, post.sd() ** 2)
    assert np.allclose(MODEL.plan(VILLAGES, 60, target="entropy").before, post.entropy())
    risk = MODEL.plan(VILLAGES, 60, target=("exceeds", 0.4)).before
    assert np.allclose(risk, np.minimum(post.exceeds(0.4), 1 - post.exceeds(0.4)))
    unseen = VILLAGES["lit"].isna().to_numpy() | (VILLAGES["asked"].to_numpy() == 0)
    assert plan.observations[unseen].sum() > plan.observations[~unseen].sum()
    told = repr(plan)
    assert told.startswith(f"plan: {int(plan.observations.sum())} observations at ")
    assert "of 120 units for " in told
    assert "of a budget of 60; the squared error, summed over units, is expected to fall" in told
    assert "<table>" in plan._repr_html_()


def test_what_is_expected_is_what_updates_give_on_average() -> None:
    """New counts drawn from the predictive, each updated as the model does it."""
    frame = VILLAGES.iloc[::12].copy()  # not learned from: with new counts it still is not
    rows = len(frame)
    expected = MODEL.expected_gain(frame, 4, target="mse")
    before = MODEL.posterior(frame)
    new = MODEL.predictive(frame, given="both", trials=4)
    left = np.zeros(rows)
    for y in range(5):
        frame["lit"], frame["asked"] = float(y), 4.0
        left += np.exp(new.log_prob(y)) * MODEL.posterior(frame).sd() ** 2
    assert np.allclose(expected["gain"], before.sd() ** 2 - left, rtol=1e-9)
    assert list(expected) == ["unit", "observations", "gain", "mse_before", "mse_after"]
    assert list(expected.index) == list(VILLAGES.index[::12])


@pytest.mark.parametrize(
    "kind",
    [pd.DataFrame, pl.DataFrame, lambda d: pa.table(dict(d)), dict],
    ids=["pandas", "polars", "pyarrow", "dict"],
)
def test_frames_come_back_in_kind(kind: Callable[[Any], Any]) -> None:
    given = {name: VILLAGES[name].to_numpy() for name in ("lights", "roads", "price")}
    frame = kind(given)
    found = MODEL.plan(frame, 40, cost="price", most=5).to_frame()
    assert type(found) is type(frame)
    columns = ["unit", "observations", "cost", "gain", "mse_before", "mse_after"]
    assert Frame.open(found).names == columns
    assert np.asarray(found["cost"]).sum() <= 40 + 1e-9


def test_a_unit_without_auxiliary_data_is_planned_for_too() -> None:
    frame, dark = VILLAGES.copy(), VILLAGES.index[[6, 18, 40, 41]]
    frame.loc[dark, ["lights", "roads"]] = np.nan
    with pytest.warns(ldf.DataWarning, match="missing"):
        model = fusion(ensemble=ONE).fit(frame)
    plan = model.plan(frame, 200).to_frame().loc[dark]
    assert (plan["observations"].iloc[:2] > 0).all()  # nobody was asked there either
    assert (plan["mse_after"] <= plan["mse_before"]).all()


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_other_families(name: str) -> None:
    model = fusion(*FAMILIES[name], ensemble=ONE).fit(VILLAGES)
    more = {"component": "green"} if name == "multinomial" else {"step": 0.5}
    plan = model.plan(VILLAGES, 25, **more)
    assert plan.spent == pytest.approx(25)
    component = {"component": "green"} if name == "multinomial" else {}
    assert np.allclose(plan.before, model.posterior(VILLAGES, **component).sd() ** 2)


# --- what is refused ----------------------------------------------------------------------------

COST = np.linspace(0, 1, len(VILLAGES))
GAP = np.where(np.arange(len(VILLAGES)) == 3, np.nan, 1.0)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"budget": -1}, "column 'budget': -1 is negative; a budget is zero or more."),
        ({"budget": np.nan}, "column 'budget' is missing; give a number."),
        ({"budget": np.inf}, "column 'budget': inf is infinite; give a finite number."),
        ({"budget": [1, 2]}, "column 'budget' is not one number; the family knows"),
        ({"budget": 0.5}, "column 'budget': 0.5 pays for no unit: the cheapest costs 1; give more"),
        ({"cost": 0}, "column 'cost': 0 is zero; give a number above zero."),
        ({"cost": COST}, "column 'cost', row 'v0': 0 is zero; give a number above zero."),
        ({"cost": -COST}, "column 'cost', row 'v1': -0.0084033613445378"),
        ({"cost": GAP}, "column 'cost', row 'v3' is missing; give every unit a number."),
        ({"cost": "prize"}, "column 'prize' is not in the frame; near to it are 'price'."),
        (
            {"cost": [1.0, 2.0]},
            "column 'cost' is not one value for each of 120 units; give as many",
        ),
        ({"cost": "side"}, "column 'side', row 'v0': 'left' is text, not a number"),
        ({"target": "variance"}, "column 'target': 'variance' is not known; choose 'mse', 'entr"),
        ({"target": ("exceeds", 1.5)}, "column 'target': 1.5 is no question: θ lies between 0 and"),
        ({"visit": -2}, "column 'visit': -2 is negative; give a number that is zero or more."),
        ({"minimum": 0}, "column 'minimum': 0 is zero; give a number above zero."),
        ({"minimum": 2.5}, "column 'minimum': 2.5 is not a whole number; observations come one by"),
        (
            {"minimum": 9, "most": 5},
            "column 'minimum': 9 is more than there are; lower the minimum",
        ),
        ({"most": "asked", "minimum": 2}, "column 'minimum': 2 is more than there are; lower the"),
        ({"most": 0}, "column 'most' is zero for all units; let some have any."),
        ({"most": "lit"}, "column 'lit', row 'v0' is missing; give every unit a number."),
        ({"step": 0.5}, "column 'step': 0.5 is not a whole number; observations come one by one"),
        ({"weights": -COST}, "column 'weights', row 'v1': -0.0084"),
        ({"component": "lit"}, "column 'component': 'lit' is not there; there are none: θ is one"),
    ],
    ids=str,
)
def test_bad_input_gets_one_sentence(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as refused:
        MODEL.plan(VILLAGES, **{"budget": 50} | how)
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_what_has_no_plan_says_so() -> None:
    with pytest.raises(DataError, match="'Geometric' has no plan; there are plans for binomial"):
        Belief.of(ldf.Geometric(), Trials(A, B), SHARE, None)
    with pytest.raises(DataError, match="'Multinomial' has a vector θ; choose a class by comp"):
        Belief.of(ldf.Multinomial(3), ClassCounts(np.ones((2, 4, 3))), SHARE, None)
    with pytest.raises(DataError, match="does not say how exact one observation is; fit ldf"):
        Belief.of(ldf.Gaussian(), Potential(A, B), SHARE, None)
    with pytest.raises(DataError, match="is not fitted; call"):
        ldf.Fusion("binomial", BINOMIAL, ["lights"]).plan(VILLAGES, 10)
