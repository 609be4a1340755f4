"""Several sources: their pseudo-observations add, what is missing adds zero, and what repeats
another counts once."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ldf
from ldf import DataError, Ensemble, Fusion, Linear, Member, Network
from ldf.summed import Source, SummedModel

PRIMARY = {"successes": "lit", "trials": "asked"}
SOURCES = {"census": ["rich", "old"], "lights": ["bright"], "noise": ["dice", "kind"]}
SMALL = Ensemble((Member(Network(shared=(6,), branch=(), linear_path=True)),), parts=4)


def villages(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """Sources that tell of θ, each with errors of its own, and one that does not."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=rows)
    asked = rng.integers(3, 25, rows)
    theta = 1 / (1 + np.exp(-u))
    frame = pd.DataFrame(
        {
            "rich": u + 0.8 * rng.normal(size=rows),
            "old": rng.normal(size=rows),
            "bright": u + 0.8 * rng.normal(size=rows),
            "dice": rng.normal(size=rows),
            "kind": rng.choice(["a", "b", "c"], rows),
            "asked": asked.astype(float),
            "lit": rng.binomial(asked, theta).astype(float),
            "theta": theta,
        },
        index=[f"v{i}" for i in range(rows)],
    )
    frame.loc[frame.index[::5], SOURCES["lights"]] = np.nan
    frame.loc[frame.index[::7], SOURCES["noise"]] = None
    frame.loc[frame.index[::9], PRIMARY.values()] = np.nan
    return frame


VILLAGES = villages()


@cache
def model(ensemble: Any = SMALL) -> Fusion:
    return Fusion("binomial", PRIMARY, SOURCES, ensemble=ensemble).fit(VILLAGES)


def test_what_sources_are_worth_adds_to_what_they_are_worth_together() -> None:
    fitted = model()
    table = fitted.pseudo_observations(VILLAGES)
    assert table["source"].tolist()[:4] == ["census", "lights", "noise", "census"]
    assert table["unit"].tolist()[:4] == ["v0", "v0", "v0", "v1"]
    together = fitted.posterior(VILLAGES, given="auxiliary").to_frame()["pseudo_observations"]
    by_unit = table.groupby("unit", sort=False)["n"].sum()
    np.testing.assert_allclose(by_unit, together, rtol=1e-12)


def test_within_a_component_the_sum_is_exact_and_gives_the_posterior() -> None:
    fitted = model()
    data, _, part = fitted._read(VILLAGES)
    learned = fitted.learned_
    whole = learned.said(data.x, part)
    parts = [learned.only(s).said(data.x, part).pseudo for s in range(3)]
    for both, *each in zip(
        whole.pseudo.coordinates(), *(p.coordinates() for p in parts), strict=True
    ):
        np.testing.assert_allclose(sum(each), both, rtol=1e-13)


def test_a_source_that_is_missing_adds_nothing() -> None:
    table = model().pseudo_observations(VILLAGES)
    lights = table[table["source"] == "lights"].set_index("unit")
    absent = VILLAGES["bright"].isna().to_numpy()
    assert (lights["n"][absent] == 0).all()
    assert (lights["information"][absent] == 0).all()
    assert (lights["information_alone"][absent] == 0).all()
    assert (lights["n"][~absent] > 0).all()


def test_a_frame_may_lack_a_source_altogether() -> None:
    fitted = model()
    empty = VILLAGES.assign(bright=np.nan)
    without = fitted.posterior(VILLAGES.drop(columns="bright"), given="auxiliary")
    np.testing.assert_array_equal(without.mean(), fitted.posterior(empty, given="auxiliary").mean())


@pytest.mark.parametrize(("prior", "times"), [("weak", 10), ("fitted", 1), ("given", 1)])
def test_without_any_source_the_posterior_is_the_prior(prior: str, times: int) -> None:
    """A weak one is a tenth of what is known of all units: a bare row has the whole."""
    given = ldf.Binomial().prior(successes=1.5, failures=2.5) if prior == "given" else prior
    fitted = Fusion("binomial", PRIMARY, SOURCES, prior=given, mapping=Linear()).fit(VILLAGES)
    every = [name for own in SOURCES.values() for name in own]
    bare = VILLAGES.drop(columns=every)[:3]
    own = fitted.family_.posterior(fitted.learned_.trained[0].ground.prior * times)
    post = fitted.posterior(bare, given="auxiliary")
    np.testing.assert_allclose(post.mean(), float(own.mean()), rtol=1e-9)
    np.testing.assert_allclose(post.sd(), float(own.sd()), rtol=1e-9)
    np.testing.assert_array_equal(
        fitted.posterior(bare, given="both").sd(), fitted.posterior(bare, given="primary").sd()
    )


def test_a_source_of_noise_tells_next_to_nothing() -> None:
    table = model().pseudo_observations(VILLAGES)
    beside = table.groupby("source")["information"].mean()
    assert beside["noise"] < 0.1 * beside["census"]
    assert beside["noise"] < 0.05  # nats
    alone = table.groupby("source")["information_alone"].mean()
    assert alone["noise"] < 0.2 * alone["lights"]


def test_information_is_the_divergence_from_before_to_after() -> None:
    """By integration, of one unit and the one member."""
    fitted = model()
    one = VILLAGES[1:2]
    table = fitted.pseudo_observations(one).set_index("source")
    prior = fitted.learned_.trained[0].ground.prior
    a0, b0 = (float(v) for v in prior.coordinates())
    t, n = table["t"], table["n"]
    after = a0 + t.sum(), b0 + n.sum() - t.sum()
    before = after[0] - t["lights"], after[1] - (n - t)["lights"]
    from scipy import integrate, stats

    def integrand(theta: float) -> float:
        log = stats.beta.logpdf(theta, *after)
        return float(np.exp(log) * (log - stats.beta.logpdf(theta, *before)))

    found, _ = integrate.quad(integrand, 0, 1, limit=200)
    assert table["information"]["lights"] == pytest.approx(found, rel=1e-6)


def test_copies_of_one_source_are_not_counted_twice() -> None:
    """The plain sum would be sure twice over; mappings that see each other are not."""
    learn, new = villages(800, seed=1), villages(3000, seed=2)
    for frame in (learn, new):
        frame["bright"] = frame["rich"]
    two = {"census": ["rich"], "lights": ["bright"]}
    fitted = Fusion("binomial", PRIMARY, two, ensemble=SMALL).fit(learn)
    for kept in (*combinations(two, 1), tuple(two)):
        lacking = [name for source in two if source not in kept for name in two[source]]
        low, high = fitted.posterior(new.drop(columns=lacking), given="auxiliary").interval(0.9)
        inside = ((low <= new["theta"]) & (new["theta"] <= high)).to_numpy()
        assert 0.85 < inside.mean() < 0.96, (kept, inside.mean())


def test_one_source_by_name_is_the_plain_list() -> None:
    line = Ensemble((Member(Linear()),), parts=2)
    named = Fusion("binomial", PRIMARY, {"census": SOURCES["census"]}, ensemble=line).fit(VILLAGES)
    plain = Fusion("binomial", PRIMARY, SOURCES["census"], ensemble=line).fit(VILLAGES)
    np.testing.assert_array_equal(
        named.posterior(VILLAGES).mean(), plain.posterior(VILLAGES).mean()
    )


def test_a_saved_model_answers_alike(tmp_path: Path) -> None:
    model().save(tmp_path / "model.ldf")
    again = ldf.load(tmp_path / "model.ldf")
    for given in ("auxiliary", "both"):
        np.testing.assert_array_equal(
            again.posterior(VILLAGES, given=given).mean(),
            model().posterior(VILLAGES, given=given).mean(),
        )
    pd.testing.assert_frame_equal(
        again.pseudo_observations(VILLAGES), model().pseudo_observations(VILLAGES)
    )


def test_sources_are_left_out_at_random_but_never_all_of_a_row() -> None:
    of = SummedModel(
        ldf.Binomial(), Network(), sources=(Source("a", 0, 1), Source("b", 1, 2)), left_out=0.5
    )
    there = np.array([[True, True]] * 4000 + [[True, False]] * 4000)
    kept = np.asarray(of.some(there, np.uint32(7)))
    assert kept.any(1).all()
    assert (kept <= there).all()
    # Of two, both stay with chance 1/4, and if neither would, both do.
    assert kept[:4000].all(1).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"auxiliary": {"a": ["rich"], "b": ["rich"]}}, "'rich' is twice among auxiliary columns"),
        ({"structure": ldf.Mixture(2)}, "is not for several sources"),
    ],
)
def test_what_sources_cannot_be_is_said(change: dict[str, Any], said: str) -> None:
    words: dict[str, Any] = {"family": "binomial", "primary": PRIMARY, "auxiliary": SOURCES}
    with pytest.raises(DataError, match=said):
        Fusion(**words | change).fit(VILLAGES)
