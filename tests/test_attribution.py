"""What each column moves: shares that add to the unit's value, and are the textbook's where those
are known."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from math import factorial
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import ldf
from drawn import assert_nothing_is_cut
from ldf import DataError, Ensemble, Fusion, Linear, Member, Network, Trees, plot, shapley
from ldf.attribution import value_of
from ldf.fit import Schedule

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore:Cells are missing")

# --- Shapley values -----------------------------------------------------------------------------


def pairs(x: np.ndarray) -> np.ndarray:
    """Columns act alone and in pairs."""
    return np.sin(x[..., 0]) + x[..., 1] * np.exp(x[..., 2]) - x[..., 3] ** 2 * x[..., 0]


def tangled(x: np.ndarray) -> np.ndarray:
    """All act together."""
    return np.tanh(x.sum(-1)) * x.prod(-1) + np.maximum(x[..., 0], x[..., 3]) * x[..., 2]


def textbook(of: Any, unit: np.ndarray, background: np.ndarray) -> np.ndarray:
    """By the sum over all sets of the other columns."""
    many = len(unit)

    def value(own: tuple[int, ...]) -> float:
        rows = background.copy()
        rows[:, list(own)] = unit[list(own)]
        return float(of(rows).mean())

    found = np.zeros(many)
    for column in range(many):
        rest = [other for other in range(many) if other != column]
        for size in range(many):
            weight = factorial(size) * factorial(many - size - 1) / factorial(many)
            for own in combinations(rest, size):
                found[column] += weight * (value((*own, column)) - value(own))
    return found


def shares(of: Any, units: np.ndarray, background: np.ndarray, orders: np.ndarray) -> np.ndarray:
    own = shapley.own_cells(orders)
    rows = np.where(own, units[:, None, None], background[None, :, None])
    return shapley.attributed(orders, of(rows), of(units))


UNITS, BACKGROUND = (np.random.default_rng(s).normal(size=(n, 4)) for s, n in ((0, 3), (1, 5)))


def test_where_columns_act_alone_or_in_pairs_any_orders_give_the_shapley_values() -> None:
    found = shares(pairs, UNITS, BACKGROUND, shapley.draw_orders(4, 5, seed=7))
    for own, unit in zip(found, UNITS, strict=True):
        np.testing.assert_allclose(own, textbook(pairs, unit, BACKGROUND), rtol=1e-10, atol=1e-12)


def test_over_all_orders_they_are_the_shapley_values_of_any_function() -> None:
    orders = np.array(list(permutations(range(4))))
    found = shares(
        tangled, UNITS, np.repeat(BACKGROUND, len(orders), 0), np.tile(orders, (len(BACKGROUND), 1))
    )
    for own, unit in zip(found, UNITS, strict=True):
        np.testing.assert_allclose(own, textbook(tangled, unit, BACKGROUND), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_whatever_the_orders_they_add_to_the_value(columns: int) -> None:
    units, background = UNITS[:, :columns], BACKGROUND[:, :columns]

    def of(x: np.ndarray) -> np.ndarray:
        return np.tanh(x.sum(-1)) * x.prod(-1)

    found = shares(of, units, background, shapley.draw_orders(columns, 5, seed=1))
    np.testing.assert_allclose(found.sum(1) + of(background).mean(), of(units), rtol=1e-12)


# --- models -------------------------------------------------------------------------------------

PRIMARY = {"mean": "yield", "variance": "error"}
COLUMNS = ["rain", "soil", "secret", "kind", "dice"]


def farms(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=["rain", "soil", "secret", "dice"])
    frame["kind"] = rng.choice(["hill", "plain", "shore"], rows)
    frame["other"] = frame["rain"] + rng.normal(size=rows)
    mean = 2 * frame["rain"] + frame["soil"] * frame["secret"] + 2 * (frame["kind"] == "hill")
    frame["error"] = 0.3
    frame["yield"] = mean + np.sqrt(0.3) * rng.normal(size=rows)
    frame.loc[frame.index % 5 == 0, "soil"] = np.nan
    frame.loc[frame.index % 7 == 0, "yield"] = np.nan
    return frame


FARMS, NEW = farms(240, 0), farms(30, 1)


@cache
def line() -> Fusion:
    ensemble = Ensemble((Member(Linear(), "standard"),), parts=1)
    return Fusion(ldf.Gaussian(), PRIMARY, COLUMNS, ensemble=ensemble).fit(FARMS)


@cache
def mixed() -> Fusion:
    """A regression, a network and trees, stacked."""
    members = (
        Member(Linear(), "power"),
        Member(Network(shared=(8,), branch=()), "standard"),
        Member(Trees(depth=3, most=60), learning_rate=0.2),
    )
    ensemble = Ensemble(members, parts=3, schedule=Schedule(300, 100, batch=64))
    return Fusion(ldf.Gaussian(), PRIMARY, COLUMNS, ensemble=ensemble, sensitive=["secret"]).fit(
        FARMS
    )


def by_unit(table: Any) -> Any:
    """Attributions, units × columns, and the value that they and the baseline add to."""
    wide = table.pivot(index="unit", columns="column", values="attribution")
    return wide, wide.sum(axis=1) + table.groupby("unit")["baseline"].first()


@pytest.mark.parametrize(("of", "output"), [("count", 0), ("rate", 1)])
def test_of_a_linear_mapping_it_is_coefficient_times_deviation(of: str, output: int) -> None:
    model, background = line(), FARMS[:50]
    (trained,) = model.learned_.trained
    slope = trained.weights["slope"][0][:, output] * trained.ground.scale[output]
    data, behind = model._read(NEW)[0], model._read(background)[0]
    away = trained.preprocess.apply(data.x) - trained.preprocess.apply(behind.x).mean(0)
    found, _ = by_unit(model.attribution(NEW, of, background))
    origins = np.array(data.schema.origins)
    assert list(origins).count("soil") == 2  # the number, and whether it is missing
    assert list(origins).count("kind") == 3
    for column in COLUMNS:
        own = origins == column
        np.testing.assert_allclose(found[column], (away * slope)[:, own].sum(1), atol=1e-12)


@pytest.mark.parametrize("frame", [FARMS, NEW], ids=["learned from", "new"])
def test_attributions_and_baseline_add_to_what_auxiliary_data_say(frame: Any) -> None:
    """Also of rows that were learned from, which fits answer for that have not seen them."""
    model, worth = mixed(), mixed().pseudo_observations(frame)
    assert min(model.learned_.share) > 0.005
    for of, value in (("count", np.log(worth["n"])), ("rate", worth["rate"])):
        table = model.attribution(frame, of, background=4)
        np.testing.assert_allclose(by_unit(table)[1], value, rtol=1e-9, atol=1e-9)
        assert table["out_of_fold"].sum() == worth["out_of_fold"].sum() * len(COLUMNS)


def test_what_says_nothing_moves_next_to_nothing() -> None:
    moved = np.abs(by_unit(mixed().attribution(NEW, background=FARMS[:40]))[0]).mean()
    assert moved["dice"] < 0.12 * moved["rain"]
    assert moved["dice"] < 0.2 * moved["kind"]
    assert moved.idxmax() == "rain"


def test_what_is_sensitive_has_a_number_and_no_values() -> None:
    table = mixed().attribution(NEW, background=2)
    assert "secret" not in repr(table.to_dict())
    hidden = table[table["column"] == "feature #3"]
    assert len(hidden) == len(NEW)
    assert hidden["value"].isna().all()
    np.testing.assert_allclose(hidden["rank"], NEW["secret"].rank().sub(1) / 29)
    shown = table[table["column"] == "kind"]
    assert shown["value"].tolist() == NEW["kind"].tolist()
    assert shown["rank"].isna().all()


def test_within_a_source_columns_share_in_what_it_is_worth() -> None:
    sources = {"weather": ["rain", "other"], "ground": ["soil", "kind"]}
    ensemble = Ensemble((Member(Linear()),), parts=1)
    model = Fusion(ldf.Gaussian(), PRIMARY, sources, ensemble=ensemble).fit(FARMS)
    some = NEW.copy()
    some.loc[some.index % 3 == 0, sources["weather"]] = np.nan
    worth = model.pseudo_observations(some).set_index(["unit", "source"])
    table = model.attribution(some, "count", background=FARMS)
    total = table.groupby(["unit", "source"])["attribution"].sum()
    total += table.groupby(["unit", "source"])["baseline"].first()
    there = worth["n"] > 0
    assert len(total) == there.sum() < len(worth)
    np.testing.assert_allclose(total, np.log(worth["n"][there])[total.index], rtol=1e-9)
    drawn = plot.Attribution.of(table)
    assert "ground: kind" in set(drawn.column)
    with pytest.raises(DataError, match="'weather' is a source it lacks; give a background"):
        model.attribution(NEW, background=FARMS.drop(columns=sources["weather"]))


def weeks(frame: pd.DataFrame) -> pd.DataFrame:
    """What a gauge beside the frame measured in four weeks."""
    rng = np.random.default_rng(3)
    steps = [
        {"farm": farm, "week": week, "wet": rain + rng.normal()}
        for farm, rain in zip(frame["farm"], frame["rain"], strict=True)
        for week in range(4)
    ]
    return pd.DataFrame(steps)


BOTH = pd.concat([FARMS, NEW], ignore_index=True).assign(farm=[f"f{i}" for i in range(270)])
GAUGE = ldf.Series(weeks(BOTH), by="farm", time="week", values="wet")
BESIDE: dict[str, Any] = {"weather": ["rain"], "gauge": GAUGE, "ground": ["kind", "dice"]}
QUICK = Ensemble(
    (Member(Network(shared=(4,), branch=())),),
    parts=1,
    schedule=Schedule(epochs=20, patience=20, batch=64),
)


def spoken(model: Fusion, source: str, one: pd.DataFrame) -> Any:
    """The rate that a source speaks for in a farm, had it other cells, from what is public."""

    def rate(cells: np.ndarray) -> np.ndarray:
        others = dict(zip(BESIDE[source], cells.T, strict=True))
        said = model.pseudo_observations(pd.concat([one] * len(cells)).assign(**others))
        return said["rate"][said["source"] == source].to_numpy()

    return rate


@pytest.mark.filterwarnings("ignore:30 ids in 'gauge' are of no unit")
@pytest.mark.parametrize("order", [["weather", "ground", "gauge"], ["gauge", "ground", "weather"]])
def test_wherever_a_series_stands_columns_have_the_textbook_s_shares(order: list[str]) -> None:
    sources = {source: BESIDE[source] for source in order}
    learn, one, behind = BOTH[:240], BOTH[-1:], BOTH[:5]
    model = Fusion(ldf.Gaussian(), PRIMARY, sources, ensemble=QUICK, id="farm").fit(learn)
    table = model.attribution(one, background=behind).set_index(["source", "column"])
    assert len(table) == 3
    for source in ("weather", "ground"):
        columns, rate = BESIDE[source], spoken(model, source, one)
        wanted = textbook(rate, one[columns].to_numpy()[0], behind[columns].to_numpy())
        found = table["attribution"][source][columns]
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
        assert (np.abs(found) > 1e-3).all()
    ranks = model.attribution(NEW.assign(farm=BOTH["farm"][240:].to_numpy()), background=behind)
    ranks = ranks[ranks["column"] == "rain"]["rank"]
    np.testing.assert_allclose(ranks, NEW["rain"].rank().sub(1) / 29)


def test_a_series_alone_has_no_columns_to_share() -> None:
    model = Fusion(ldf.Gaussian(), PRIMARY, {"gauge": GAUGE}, ensemble=QUICK, id="farm").fit(BOTH)
    with pytest.raises(DataError, match="'auxiliary' has no columns in any unit; give units that"):
        model.attribution(BOTH)


@pytest.mark.parametrize(
    ("family", "natural", "component", "wanted"),
    [
        (
            ldf.Binomial(),
            ldf.Binomial().prior([2.0, 1.0], [6.0, 3.0]),
            None,
            np.log([1 / 3, 1 / 3]),
        ),
        (ldf.Poisson(), ldf.Poisson().prior([2.0, 9.0], [8.0, 3.0]), None, np.log([0.25, 3.0])),
        (
            ldf.Multinomial(classes=3),
            ldf.Multinomial(classes=3).prior([[1.0, 2.0, 1.0], [3.0, 3.0, 6.0]]),
            1,
            [0.0, np.log(1 / 3)],
        ),
    ],
)
def test_rates_are_on_the_scale_that_a_mapping_has_them_on(
    family: Any, natural: Any, component: int | None, wanted: Any
) -> None:
    np.testing.assert_allclose(value_of("rate", component, family)(natural), wanted, atol=1e-12)
    np.testing.assert_allclose(value_of("count", None, family)(natural), np.log(natural.n))


def test_what_cannot_be_attributed_is_refused() -> None:
    with pytest.raises(DataError, match="'component' is not said; choose one of the classes"):
        value_of("rate", None, ldf.Multinomial(classes=3))
    with pytest.raises(DataError, match="'rate' is not one number for Normal; ask for of='count'"):
        value_of("rate", None, ldf.Normal())
    with pytest.raises(DataError, match="'of': 'sd' is not known; choose one of 'rate', 'count'"):
        line().attribution(NEW, "sd")
    with pytest.raises(DataError, match="'background': 0 is no row"):
        line().attribution(NEW, background=0)
    with pytest.raises(DataError, match="'background' has no rows"):
        line().attribution(NEW, background=FARMS[:0])
    with pytest.raises(DataError, match="'rain' is not in the frame"):
        line().attribution(NEW, background=FARMS.drop(columns="rain"))


# --- the figure ---------------------------------------------------------------------------------


def test_dots_stand_at_what_columns_move_the_largest_first() -> None:
    table = line().attribution(NEW, background=FARMS[:50])
    drawn = plot.Attribution.of(table)
    figure = plot.attribution(drawn, quantity="the yield", most=3)
    axis = figure.axes[0]
    size = table.groupby("column")["attribution"].apply(lambda of: of.abs().mean())
    size = size.sort_values(ascending=False)[:3]
    labels = [tick.get_text() for tick in axis.get_yticklabels()]
    assert labels == [f"{name}  ({size[name]:.2g})" for name in size.index]
    x, y = np.asarray(axis.collections[0].get_offsets()).T
    for place, name in enumerate(size.index):
        own = np.abs(y - place) <= 0.45
        wanted = table["attribution"][table["column"] == name]
        np.testing.assert_array_equal(np.sort(x[own]), np.sort(wanted))
    assert len(x) == 3 * len(NEW)
    assert axis.get_xlabel() == "moves the yield by"
    assert_nothing_is_cut(figure)
    own = matplotlib.figure.Figure(layout="constrained").subplots()
    assert plot.attribution(drawn, axis=own) is own.figure
    frame = drawn.to_frame()
    assert frame["size"].is_monotonic_decreasing
    with pytest.raises(DataError, match="'attribution' has no rows"):
        plot.Attribution.of(table[:0])
