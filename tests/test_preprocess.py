"""Columns are made alike by what the training rows say, and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import PowerTransformer, StandardScaler

from ldf import DataError
from ldf.preprocess import FAR, Preprocess

NAN = float("nan")


def skewed(rows: int = 500, seed: int = 0) -> np.ndarray:
    """Lights, population, a share, a year, a signed change, a rare 0/1."""
    rng = np.random.default_rng(seed)
    columns = [
        np.maximum(0, np.exp(1.5 * rng.normal(size=rows)) - 0.8),
        np.exp(10 + 1.4 * rng.normal(size=rows)),
        1e-4 * rng.gamma(1.5, size=rows),
        2000 + rng.integers(0, 20, rows),
        rng.standard_t(4, size=rows) * 3,
        rng.random(rows) < 0.05,
    ]
    return np.stack(columns, -1).astype(float)


def test_standard_is_scikit_learns() -> None:
    x = skewed()
    ours = Preprocess.learn("standard", x).apply(x)
    np.testing.assert_allclose(ours, StandardScaler().fit_transform(x), rtol=1e-9, atol=1e-10)


def test_power_is_scikit_learns_in_the_unit_it_chose() -> None:
    x = skewed()
    learned = Preprocess.learn("power", x)
    theirs = PowerTransformer().fit((x - learned.origin) / learned.unit)
    bent = learned.power != 1
    np.testing.assert_allclose(learned.power[bent], theirs.lambdas_[bent], atol=2e-3)
    expected = theirs.transform((x - learned.origin) / learned.unit)
    np.testing.assert_allclose(learned.apply(x), expected, atol=5e-3)
    assert (learned.origin[1], learned.unit[1]) == (0, 1)  # a population is bent as it is
    assert learned.unit[2] < 1e-3  # a share of 1e-4 in a unit of its own


@pytest.mark.parametrize("rows", [500, 5000])
def test_power_makes_skewed_columns_symmetric(rows: int) -> None:
    x = skewed(rows)[:, :5]
    z = Preprocess.learn("power", x).apply(x)
    plain = Preprocess.learn("standard", x).apply(x)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(z.std(0), 1, rtol=1e-9)
    skew, before = np.abs((z**3).mean(0)), np.abs((plain**3).mean(0))
    assert (before[:3] > 1).all()
    assert (skew[1:] < 0.2).all()
    assert skew[0] < before[0] / 4  # what is heaped at zero stays heaped


def test_many_rows_are_learned_from_all() -> None:
    x = skewed(20_000)[:, [1]]  # the first guess is from some of the rows only
    learned = Preprocess.learn("power", x)
    assert learned.power == pytest.approx(PowerTransformer().fit(x).lambdas_, abs=1e-3)


@pytest.mark.parametrize("kind", ["power", "standard", "none"])
def test_only_training_rows_are_learned_from(kind: str) -> None:
    x = skewed()
    learned = Preprocess.learn(kind, x[:300])
    whole = learned.apply(x)
    np.testing.assert_array_equal(whole[:300], learned.apply(x[:300]))
    np.testing.assert_array_equal(whole[300:], learned.apply(x[300:]))  # nor do rows meet
    if kind != "none":
        np.testing.assert_allclose(whole[:300].mean(0), 0, atol=1e-9)


@pytest.mark.parametrize("kind", ["power", "standard", "none"])
def test_the_order_of_values_is_kept(kind: str) -> None:
    learned = Preprocess.learn(kind, skewed())
    for x in (np.sort(skewed(), 0), np.sort(skewed(2000, seed=1) * 3 - 1, 0)):
        assert (np.diff(learned.apply(x), axis=0) >= 0).all()


@pytest.mark.parametrize("kind", ["power", "standard"])
def test_training_rows_are_not_clipped_and_others_only_far_out(kind: str) -> None:
    x = np.append(np.random.default_rng(3).normal(size=200), [40.0])[:, None]
    learned = Preprocess.learn("standard", x)
    assert learned.apply(x).max() == learned.high[0] > FAR  # an outlier of the training rows stays
    assert learned.apply([[1e9]])[0, 0] == learned.high[0]
    assert learned.apply([[-1e9]])[0, 0] == learned.low[0] == -FAR
    learned = Preprocess.learn(kind, skewed())
    far = learned.apply(np.array([[1.0], [-1.0]]) * [1e308] * np.ones(6))
    assert np.isfinite(far).all()
    assert (far <= learned.high).all()
    assert (far >= learned.low).all()


@pytest.mark.parametrize("kind", ["power", "standard"])
def test_a_missing_cell_gets_the_training_mean(kind: str) -> None:
    x = skewed()
    x[::3, 1] = NAN
    learned = Preprocess.learn(kind, x)
    z = learned.apply(x)
    assert (z[::3, 1] == 0).all()
    here = ~np.isnan(x[:, 1])
    alone = Preprocess.learn(kind, x[here][:, [1]])
    np.testing.assert_allclose(learned.power[1], alone.power[0], atol=1e-6)
    np.testing.assert_allclose(z[here, 1], alone.apply(x[here][:, [1]])[:, 0], rtol=1e-6)


def test_none_leaves_columns_alone_and_fills_with_the_mean() -> None:
    x = np.array([[1.0, 5.0], [NAN, 5.0], [4.0, 5.0]])
    np.testing.assert_array_equal(Preprocess.learn("none", x).apply(x), [[1, 5], [2.5, 5], [4, 5]])
    learned = Preprocess.learn("none", x)
    np.testing.assert_array_equal(learned.apply([[1e9, NAN]]), [[1e9, 5]])


@pytest.mark.parametrize("kind", ["power", "standard"])
def test_columns_without_variation_in_training_become_zero(kind: str) -> None:
    train = np.array([[0.1, NAN, 3.0], [0.1, NAN, 3.0], [0.1, NAN, NAN]])
    learned = Preprocess.learn(kind, train)
    np.testing.assert_array_equal(
        learned.apply([[7.0, 2.0, NAN], [NAN, NAN, 5.0]]), np.zeros((2, 3))
    )


def test_a_rare_one_among_zeros_does_not_stand_far_out() -> None:
    x = np.zeros((3000, 1))
    x[7] = 1
    for kind in ("power", "standard"):
        z = Preprocess.learn(kind, x).apply(x)
        assert z[7] == FAR
        assert (z[8:] == z[0]).all()


def test_two_values_are_only_standardised() -> None:
    x = skewed()[:, [5]]
    learned = Preprocess.learn("power", x)
    assert (learned.origin, learned.unit, learned.power) == (0, 1, 1)
    np.testing.assert_array_equal(learned.apply(x), Preprocess.learn("standard", x).apply(x))


@pytest.mark.parametrize(
    "column",
    [
        np.r_[np.ones(99), 1e308],
        np.r_[np.zeros(99), -1e300],
        np.r_[np.arange(99.0), 1e15],
        1e15 + np.arange(100.0),
        1e9 + np.arange(100.0) ** 3,
        1e-300 * np.arange(100.0),
        np.r_[np.full(50, 5e-324), np.arange(50.0)],
        1e308 * np.linspace(-1, 1, 100),
        -np.exp(np.linspace(0, 30, 100)),
        np.r_[np.zeros(9998), 1.0, 2.0],
    ],
)
def test_hostile_columns_give_finite_ordered_numbers(column: np.ndarray) -> None:
    x = np.sort(column)[:, None]
    for kind in ("power", "standard"):
        learned = Preprocess.learn(kind, x)
        z = learned.apply(x)
        assert np.isfinite(z).all()
        assert (np.diff(z[:, 0]) >= 0).all()
        assert z[-1, 0] > z[0, 0]
        assert np.abs(learned.power).max() <= 5
        assert np.isfinite(learned.apply([[1e308], [-1e308], [0.0], [NAN]])).all()
        assert all(np.isfinite(field).all() for field in learned[1:])


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError) as raised:
        Preprocess.learn("log", skewed())
    assert str(raised.value) == (
        "column 'preprocess': 'log' is not known; choose one of 'power', 'standard', 'none'."
    )
    with pytest.raises(DataError, match="has 3 columns; give 6 columns a row"):
        Preprocess.learn("power", skewed()).apply(skewed()[:, :3])
