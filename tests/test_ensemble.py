"""What an ensemble is, before it learns."""

from __future__ import annotations

import numpy as np
import pytest

import ldf
from ldf.ensemble import DEEP, FEW, LARGE, MANY, NETWORK, Ensemble, Member, random_search
from ldf.mappings import count_weights


def test_many_rows_have_deeper_networks():
    assert Ensemble().settled(LARGE - 1).members == FEW
    assert Ensemble(parts=3).settled(LARGE) == Ensemble(MANY, parts=3)


def test_members_that_are_given_stay():
    own = Ensemble((Member(NETWORK, width=3),))
    assert own.settled(10) == own.settled(10 * LARGE) == own


def test_one_preprocessing_for_all_makes_like_members_one():
    settled = Ensemble().settled(100, "standard").members
    assert settled == (
        Member(NETWORK, "standard", width=0),
        Member(NETWORK, "standard", width=8),
        Member(NETWORK, "standard", width=32, dropout=0.2, penalty=1e-2),
    )


@pytest.mark.parametrize("mapping", [NETWORK, DEEP])
def test_without_hidden_units_a_network_is_a_regression(mapping):
    rng = np.random.default_rng(0)
    weights = mapping.init(rng, 3, 2, width=0)
    weights["linear"] = rng.normal(size=(3, 1))
    x = rng.normal(size=(5, 3))
    outputs = np.stack([np.asarray(mapping.apply(weights, row)) for row in x])
    assert outputs[:, 0] == pytest.approx(0)  # one count for all
    assert outputs[:, 1] == pytest.approx(x @ weights["linear"][:, 0], rel=1e-5)
    assert count_weights(weights) > 100


def test_members_of_different_mappings_are_refused():
    with pytest.raises(ldf.DataError, match="members of different mappings"):
        Ensemble((Member(NETWORK), Member(DEEP)))


def test_a_random_search_stays_in_its_ranges_and_is_spread_on_a_log_scale():
    members = random_search(400, 0, penalty=(1e-6, 1e-2), width=(2, 32)).members
    penalty = np.log10([member.penalty for member in members])
    assert penalty.min() >= -6
    assert penalty.max() <= -2
    assert penalty.mean() == pytest.approx(-4, abs=4 * (4 / np.sqrt(12)) / np.sqrt(400))
    widths = {member.width for member in members}
    assert {2, 32} < widths < set(range(2, 33))
