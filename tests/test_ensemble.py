"""What an ensemble is, before it learns."""

from __future__ import annotations

import numpy as np
import pytest

import ldf
from ldf.ensemble import DEEP, FEW, LARGE, MANY, NETWORK, Ensemble, Member, random_search
from ldf.mappings import Trees, count_weights


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
        Member(Trees(depth=3), "standard"),
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


def test_a_penalty_and_a_learning_rate_are_those_that_suit_the_mapping():
    trees, network = Member(Trees()), Member(NETWORK, penalty=0.0)
    assert (trees.penalty, trees.learning_rate) == (1e-2, 0.05)
    assert (network.penalty, network.learning_rate) == (0.0, 0.01)


def test_mixtures_have_no_trees_by_default():
    for rows in (LARGE - 1, LARGE):
        kinds = {type(member.mapping) for member in Ensemble().settled(rows, smooth=True).members}
        assert kinds == {ldf.Network}


def test_a_random_search_stays_in_its_ranges_and_is_spread_on_a_log_scale():
    members = random_search(400, 0, penalty=(1e-6, 1e-2), width=(2, 32)).members
    penalty = np.log10([member.penalty for member in members])
    assert penalty.min() >= -6
    assert penalty.max() <= -2
    assert penalty.mean() == pytest.approx(-4, abs=4 * (4 / np.sqrt(12)) / np.sqrt(400))
    widths = {member.width for member in members}
    assert {2, 32} < widths < set(range(2, 33))
