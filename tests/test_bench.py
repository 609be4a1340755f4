"""What the benches of quality and speed compare with is fair: M4, the verdict, equal steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ldf
from ldf.baselines import regression
from ldf.data import Columns, Data, read
from ldf.learn import learn
from units import villages

BENCH = str(Path(__file__).parents[1] / "bench")
ROWS = villages(240)
WORDS = {"successes": "lit", "trials": "asked"}


@pytest.fixture(autouse=True)
def _bench_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)


def data(frame: Any = ROWS, group: str | None = None) -> Data:
    return read(frame, ldf.Binomial(), Columns(WORDS, ("lights", "roads"), group=group))


def test_trees_say_of_a_training_row_what_those_do_that_have_not_seen_its_group() -> None:
    from boosted import links

    before = data(group="state")
    training = before.seen & (np.arange(len(ROWS)) < 200)
    there = training & (ROWS["state"] == "s3").to_numpy()
    changed = ROWS.copy()
    changed.loc[there, "lit"] = changed["asked"] - changed["lit"]
    one, two = (links(own, training, 0)[:, 0] for own in (before, data(changed, "state")))
    np.testing.assert_array_equal(one[there], two[there])
    others = training & ~there
    assert (one[others] != two[others]).mean() > 0.5
    lights = ROWS["lights"].to_numpy()
    assert np.corrcoef(one[training], lights[training])[0, 1] > 0.7  # which tell of θ


def test_under_a_strong_penalty_trees_speak_alone_and_unheld() -> None:
    from boosted import trees

    training = data().seen
    spec, table = trees(data(), training, 0)
    (member,) = spec.ensemble.members
    assert len(member.penalties) > 1
    strong = replace(member, penalty=1e6)
    spec = replace(spec, ensemble=replace(spec.ensemble, members=(strong,), parts=1))
    (held,) = learn(spec, table, 0)
    alone = regression(ldf.Binomial(), ldf.Linear(), 0.0, "none")
    (free,) = learn(alone, table._replace(x=table.x[:, -1:]), 0)
    one, two = held.said(table.x).pseudo, free.said(table.x[:, -1:]).pseudo
    np.testing.assert_allclose(one.n, two.n, rtol=1e-3)
    np.testing.assert_allclose(one.t / one.n, two.t / two.n, rtol=1e-3)
    assert np.ptp(np.log(one.n)) > 0.01  # the precision varies with the prediction


def test_a_bench_that_loses_says_so() -> None:
    from quality import MODELS, failures

    def row(ahead: float, **more: Any) -> dict[str, Any]:
        own = {"set": "s", "split": "random", "best": "M2", "ahead": ahead, "error": 0.01}
        return own | dict.fromkeys(MODELS, -1.0) | more

    assert failures([row(0.1), row(-0.009)]) == []
    assert failures([row(0.1), row(-0.02)]) == ["s (random): ldf is 0.0200 ± 0.0100 behind M2"]
    assert failures([row(0.1, M1=np.nan)]) == ["s (random): the score of M1 is not a number"]
    assert failures([row(0.001), row(-0.005)]) == ["ldf is not ahead on average"]
    assert failures([row(np.nan)]) == ["ldf is not ahead on average"]


def test_ldf_takes_as_many_steps_an_epoch_as_a_loop_over_its_own_rows() -> None:
    from fit import BATCH, protocol, schedule_of

    rows = protocol()
    training, every = rows["training"].sum(1), len(rows["trials"])
    schedule = schedule_of(rows, 5, 2)
    steps = -(-every // schedule.batch)
    assert (-(-training // BATCH) == steps).all()
    assert training.mean() / steps == pytest.approx(training.mean() / every * schedule.batch, 5e-3)
