"""The simulated district has the paper's shape, and its truth is what it says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from ldf.datasets import FEATURES, district
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
