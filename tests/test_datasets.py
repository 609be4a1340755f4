"""The simulated district has the paper's shape, and its truth is what it says; the counties are
those of their source."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from ldf.datasets import FEATURES, counties, district
from ldf.datasets.district import PRIOR


@pytest.mark.parametrize("truth", ["beta", "logit-normal"])
def test_the_district_has_the_papers_numbers(truth: str) -> None:
    cells = district(truth, seed=1)
    assert len(cells.theta) == 2236
    surveyed = np.isfinite(cells.buildings)
    assert surveyed.sum() == 854
    assert (cells.buildings[surveyed] == 0).sum() == 70
    assert (cells.electrified[surveyed] <= cells.buildings[surveyed]).all()
    assert np.isfinite(cells.features).all()
    assert cells.features.shape == (2236, len(FEATURES)) == (2236, 4)
    assert cells.buildings[surveyed].max() > 100
    assert 0.05 < cells.electrified[surveyed].sum() / cells.buildings[surveyed].sum() < 0.45


def test_features_are_smooth_in_space_and_mostly_dark() -> None:
    cells = district(seed=2)
    lights, density, transformers, distance = cells.features.T
    assert 0.4 < (lights == 0).mean() < 0.9
    assert (transformers == 0).mean() > 0.7
    assert (distance[transformers > 0] == 0).all()
    grid = np.log(density).reshape(43, 52)
    assert np.corrcoef(grid[:, 1:].ravel(), grid[:, :-1].ravel())[0, 1] > 0.8


def test_the_beta_truth_is_drawn_from_its_pseudo_observations() -> None:
    cells = district("beta", seed=3)
    law = scipy.stats.beta(PRIOR[0] + cells.pseudo_successes, PRIOR[1] + cells.pseudo_failures)
    assert scipy.stats.kstest(law.cdf(cells.theta), "uniform").pvalue > 1e-3


def test_the_other_truth_has_the_same_features_and_no_pseudo_observations() -> None:
    one, other = district("beta", seed=4), district("logit-normal", seed=4)
    np.testing.assert_array_equal(one.features, other.features)
    assert np.isnan(other.pseudo_successes).all()
    assert not np.array_equal(one.theta, other.theta)


# --- counties -----------------------------------------------------------------------------------

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "homicide_nat1990.csv"


def rings(shape: bytes) -> list[np.ndarray]:
    """The outlines in well-known binary: of a polygon, or of several."""

    def polygon(at: int) -> tuple[list[np.ndarray], int]:
        assert struct.unpack_from("<BI", shape, at) == (1, 3)
        (many,), at, found = struct.unpack_from("<I", shape, at + 5), at + 9, []
        for _ in range(many):
            (points,) = struct.unpack_from("<I", shape, at)
            found.append(np.frombuffer(shape, "<f8", 2 * points, at + 4).reshape(-1, 2))
            at += 4 + 16 * points
        return found, at

    order, kind, many = struct.unpack_from("<BII", shape)
    assert order == 1
    if kind == 3:
        return polygon(0)[0]
    assert kind == 6
    at, found = 9, []
    for _ in range(many):
        some, at = polygon(at)
        found += some
    return found


def test_counties_are_those_of_the_lower_48_states() -> None:
    found = counties()
    assert len(set(found.fips)) == len(found.fips) == 3085
    assert len(set(found.state)) == 49  # and the District of Columbia
    assert found.features.shape == (3085, len(found.names)) == (3085, 52)
    assert np.isfinite(found.features).all()
    assert found.sensitive == ("BLK60", "BLK70", "BLK80", "BLK90")
    new_york = int(np.argmax(found.homicides))  # all boroughs, under the name of one
    assert (found.county[new_york], found.homicides[new_york]) == ("Bronx", 6210)
    assert found.homicides.sum() == 73_198


def test_rates_are_like_those_of_the_decade_before() -> None:
    """The source gives HR80 per 100,000."""
    found = counties()
    rate = 1e5 * found.homicides / found.person_years
    before = found.features[:, found.names.index("HR80")]
    large = found.person_years > 300_000
    assert scipy.stats.spearmanr(rate[large], before[large]).statistic > 0.8
    assert 0.5 < np.median(rate[large] / before[large]) < 1.5


def test_counties_have_closed_outlines_where_they_are() -> None:
    found = counties()
    for shape in found.geometry:
        for ring in rings(shape):
            assert len(ring) >= 4
            np.testing.assert_array_equal(ring[0], ring[-1])
            assert (np.abs(ring - (-96, 37)) < (30, 13)).all()
    cook = rings(found.geometry[list(found.fips).index("17031")])[0]  # about Chicago
    np.testing.assert_allclose(cook.mean(0), (-87.8, 41.8), atol=0.3)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
def test_counties_are_the_set_that_is_measured() -> None:
    theirs = pd.read_csv(SHARED, dtype={"fips": str}).set_index("fips")
    mine = pd.DataFrame(counties().columns()).set_index("fips").loc[theirs.index]
    for name in ("homicides", "person_years", *counties().names):
        np.testing.assert_array_equal(mine[name], theirs[name])
