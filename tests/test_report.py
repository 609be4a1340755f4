"""The explorer's file: whole, self-contained, exact in what it holds, and silent about what is
sensitive. What it does in a browser is tested in tests/browser."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ldf
from ldf import DataError, Fusion, report
from ldf.preprocess import Preprocess
from ldf.report import page, shapes
from ldf.report.far import distances
from ldf.report.pack import to_json
from units import FAMILIES, LINES, fusion, villages

EVIL = "</script><script>alert(1)</script>\u2028&"


@cache
def fitted(family: str = "binomial") -> tuple[Fusion, pd.DataFrame]:
    frame = villages().rename(index={"v1": EVIL})
    kind, primary = FAMILIES[family]
    return fusion(kind, primary, ensemble=LINES).fit(frame), frame


def content(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text())
    assert found is not None
    return json.loads(found[1])


def array(packed: dict[str, str]) -> np.ndarray:
    kind = {"Float32": "<f4", "Float64": "<f8", "Int32": "<i4", "Uint16": "<u2", "Uint8": "<u1"}
    return np.frombuffer(base64.b64decode(packed["bytes"]), kind[packed["type"]])


def column(data: dict[str, Any], key: str) -> np.ndarray:
    return array(next(own["data"] for own in data["columns"] if own["key"] == key))


# --- The file -----------------------------------------------------------------------------------


class Elements(HTMLParser):
    """What a browser would see of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_is_one_file_that_loads_nothing(tmp_path: Path) -> None:
    model, frame = fitted()
    path = report.write(model, frame, tmp_path / "page.html", title=f"A {EVIL} title")
    assert list(tmp_path.iterdir()) == [path]
    text = path.read_text()
    elements = Elements(text).found
    assert [tag for tag, _ in elements].count("script") == 2
    for _, given in elements:
        assert not {"src", "onclick", "onload", "onerror", "style"} & given.keys()
        assert (given.get("href") or "#").startswith("#")
    assert EVIL not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_the_policy_names_the_scripts_of_the_page(tmp_path: Path) -> None:
    model, frame = fitted()
    text = report.write(model, frame, tmp_path / "page.html").read_text()
    policy = next(given["content"] for _, given in Elements(text).found if "http-equiv" in given)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    assert page._hash(script) in policy


def test_words_of_the_data_cannot_end_their_element() -> None:
    text = to_json({"label": EVIL})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"label": EVIL}


def test_the_same_data_give_the_same_page(tmp_path: Path) -> None:
    model, frame = fitted()
    one, other = (report.write(model, frame, tmp_path / name) for name in ("a.html", "b.html"))
    assert one.read_bytes() == other.read_bytes()


def test_only_an_older_page_is_replaced(tmp_path: Path) -> None:
    model, frame = fitted()
    path = tmp_path / "villages.csv"
    path.write_text("lights,roads\n")
    with pytest.raises(DataError, match="is there and is no report; give another name"):
        report.write(model, frame, path)
    assert path.read_text() == "lights,roads\n"
    with pytest.raises(DataError, match="would be in a folder that is not there"):
        report.write(model, frame, tmp_path / "none" / "page.html")
    with pytest.raises(DataError, match="is a folder"):
        report.write(model, frame, tmp_path)
    path = report.write(model, frame, tmp_path / "page.html", title="old")
    assert content(report.write(model, frame, path, title="new"))["title"] == "new"
    assert {own.name for own in tmp_path.iterdir()} == {"villages.csv", "page.html"}


# --- What it holds ------------------------------------------------------------------------------


def test_units_have_the_posterior_of_python(tmp_path: Path) -> None:
    model, frame = fitted()
    data = content(report.write(model, frame, tmp_path / "p.html", mass=0.8, threshold=0.4))
    post = model.posterior(frame)
    lower, upper = post.interval(0.8)
    expected = {
        "mean": post.mean(), "lower": lower, "upper": upper, "sd": post.sd(),
        "exceeds": post.exceeds(0.4), "entropy": post.entropy(),
        "worth": model.pseudo_observations(frame)["n"], "score": model.log_scores(frame),
    }  # fmt: skip
    for key, values in expected.items():
        assert np.allclose(column(data, key), values, rtol=1e-6, equal_nan=True), key
    assert data["labels"] == [str(name) for name in frame.index]
    assert np.array_equal(array(data["seen"]), frame["lit"].notna())


@pytest.mark.parametrize("family", ["binomial", "poisson", "gaussian", "multinomial"])
def test_mixtures_are_there_to_the_last_digit(tmp_path: Path, family: str) -> None:
    """λ given auxiliary data, plus T_y, is λ given both; with their shares they are the law."""
    model, frame = fitted(family)
    of = content(report.write(model, frame, tmp_path / "p.html"))["laws"]
    first, second, share = (
        array(of[key]).reshape(len(frame), -1).T for key in ("first", "second", "after")
    )
    first, second = (
        part + array(y) for part, y in zip((first, second), of["primary"], strict=True)
    )
    means = first / second if of["kind"] != "beta" else first / (first + second)
    post = model.posterior(frame, component=0 if family == "multinomial" else None)
    assert np.allclose((share * means).sum(0), post.mean(), rtol=1e-13)


def test_a_class_is_shown_by_its_name(tmp_path: Path) -> None:
    model, frame = fitted("multinomial")
    data = content(report.write(model, frame, tmp_path / "p.html", component="blue"))
    assert data["words"]["theta"] == "share of blue"
    assert np.allclose(column(data, "mean"), model.posterior(frame).mean()[:, 2], rtol=1e-6)
    with pytest.raises(DataError, match="'black' is not there; there are 'red', 'green', 'blue'"):
        report.write(model, frame, tmp_path / "p.html", component="black")


def test_a_family_the_page_cannot_update_says_so(tmp_path: Path) -> None:
    frame = villages()
    ensemble = ldf.Ensemble(LINES.members[:1], parts=2)  # each fit integrates
    model = fusion(ldf.Misreported(0.9, 0.95), ensemble=ensemble).fit(frame)
    data = content(report.write(model, frame, tmp_path / "p.html"))
    assert data["laws"] is None
    assert data["words"]["asked"] is None
    assert "is not offered for the family Misreported" in data["words"]["why_not"]
    assert np.isfinite(column(data, "auxiliary_upper")).all()


def test_a_rate_is_told_of_so_much_exposure_that_it_is_readable() -> None:
    from ldf.report.words import Words

    words = Words.of(ldf.Poisson(), {"count": "deaths", "exposure": "years"}, None, 3e-5)
    assert words.theta == "deaths per 100,000 years"
    assert words.value(2.5e-5) == "2.5"


def test_sensitive_columns_have_neither_name_nor_value(tmp_path: Path) -> None:
    frame = villages().rename(columns={"side": "tribe", "roads": "income"})
    model = fusion(auxiliary=["lights", "tribe", "income"], sensitive=["tribe", "income"])
    path = report.write(model.fit(frame), frame, tmp_path / "p.html")
    data = content(path)
    assert data["features"]["names"] == ["lights", "feature #2", "feature #3"]
    assert data["features"]["hidden"] == [False, True, True]
    values = array(data["features"]["values"]).reshape(3, -1)
    assert ((values[1:] > 0) & (values[1:] < 1)).all()  # ranks
    assert "tribe" not in json.dumps(data)
    assert "income" not in json.dumps(data)


# --- Far from the training data -----------------------------------------------------------------


def test_a_unit_far_away_is_flagged_and_few_others_are() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    training = np.arange(500) < 400
    x[450] = [8, -8, 8]
    found = distances(x, training)
    assert found.far[450]
    assert found.far[training].mean() == pytest.approx(0.01, abs=0.003)
    assert found.far[~training].mean() < 0.06
    assert "above" in found.in_words


def test_a_distance_is_to_the_nearest_other_training_row() -> None:
    x = np.random.default_rng(1).normal(size=(60, 2))
    training = np.arange(60) < 40
    z = Preprocess.learn("power", x[training]).apply(x)
    apart = np.sqrt(((z[:, None] - z[None, training]) ** 2).mean(-1))
    apart[np.arange(40), np.arange(40)] = np.inf
    assert np.allclose(distances(x, training).each, apart.min(1))


def test_without_training_rows_nothing_is_called_far(tmp_path: Path) -> None:
    model, _ = fitted()
    other = villages(seed=3)
    data = content(report.write(model, other, tmp_path / "p.html"))
    assert not array(data["far"]).any()
    assert "too few to tell" in data["card"]["far"]


# --- Where units are ----------------------------------------------------------------------------


def test_places_are_points_and_a_grid_has_cells() -> None:
    east, north = np.meshgrid(np.arange(6.0), np.arange(4.0))
    place = np.stack([east.ravel(), north.ravel()], -1)
    grid = shapes.of_units({}, 24, place)
    assert grid["cell"] == pytest.approx([1 / 6, 1 / 6])
    assert grid["size"] == pytest.approx([1, 4 / 6])
    apart = shapes.of_units({}, 24, np.random.default_rng(0).uniform(size=(24, 2)))
    assert apart["cell"] is None
    assert shapes.of_units({}, 24, None) == {"kind": "ranked"}
    with pytest.raises(DataError, match="give two coordinates a unit"):
        shapes.of_units({}, 23, place)


def test_areas_keep_their_outlines_and_holes() -> None:
    shapely = pytest.importorskip("shapely")
    pytest.importorskip("geopandas")
    square = shapely.box(0, 0, 1, 1)
    ring = shapely.box(1, 0, 3, 1).difference(shapely.box(1.5, 0.2, 2, 0.8))
    found = shapes.of_units({}, 2, [square.wkb, ring.wkb])
    assert array(found["starts"]).tolist() == [0, 1, 3]
    assert len(array(found["points"])) == 2 * array(found["rings"])[-1]
    with pytest.raises(DataError, match="has 2 shapes for 3 units"):
        shapes.of_units({}, 3, [square.wkb, ring.wkb])


def test_a_column_of_shapes_is_drawn_and_points_have_no_outlines() -> None:
    shapely = pytest.importorskip("shapely")
    geopandas = pytest.importorskip("geopandas")
    squares = shapely.box([0, 4, 0], [0, 0, 2], [2, 6, 2], [2, 2, 4])
    for frame in ({"area": [square.wkb for square in squares]}, geopandas.GeoDataFrame(
        {"area": squares}, geometry="area")):  # fmt: skip
        found = shapes.of_units(frame, 3, "area")
        assert found["kind"] == "areas"
        assert found["size"] == pytest.approx([1, 4 / 6])
    middles = shapes.of_units({"area": shapely.centroid(squares)}, 3, "area")
    assert middles["kind"] == "points"
    assert middles["size"][1] / middles["size"][0] == pytest.approx(2 / 4, rel=0.1)
    with pytest.raises(DataError, match="row 1: 'here' is no shape; give shapely's shapes or well"):
        shapes.of_units({"area": [squares[0], "here", squares[1]]}, 3, "area")


def test_a_model_that_knows_where_units_are_draws_them_there(tmp_path: Path) -> None:
    frame = villages()
    model = fusion(ensemble=LINES, geometry=("east", "north")).fit(frame)
    found = content(report.write(model, frame, tmp_path / "page.html"))["map"]
    assert (
        found
        == content(
            report.write(fitted()[0], frame, tmp_path / "page.html", geometry=("east", "north"))
        )["map"]
    )
    assert found["kind"] == "points"
    without = frame.drop(columns=["east", "north"])
    assert content(report.write(model, without, tmp_path / "page.html"))["map"]["kind"] == "ranked"


# --- Whether to believe it ----------------------------------------------------------------------


def test_scores_of_a_cross_validation_are_in_the_page(tmp_path: Path) -> None:
    model, frame = fitted()
    cv = ldf.cross_validate(model, frame, folds=3, baselines=["intercept"])
    checks = content(report.write(model, frame, tmp_path / "p.html", validation=cv))["checks"]
    assert [own["score"] for own in checks["models"]] == [own["log_score"] for own in cv.rows()]
    assert sum(checks["pit"]) == cv.counted.sum()
    own = array(checks["by_unit"][1]["score"])
    assert np.allclose(own[cv.counted], cv.answers["intercept"].log_score[cv.counted], rtol=1e-6)
    assert np.isnan(own[~cv.counted]).all()
    with pytest.raises(DataError, match="is of other units than the frame; cross-validate on"):
        report.write(model, frame.set_axis([f"w{i}" for i in range(120)]), "p", validation=cv)


def test_without_one_the_models_own_held_out_answers_are(tmp_path: Path) -> None:
    model, frame = fitted()
    checks = content(report.write(model, frame, tmp_path / "p.html"))["checks"]
    assert checks["score"] == pytest.approx(model.score(frame))
    assert "validation=ldf.cross_validate(model, frame)" in checks["advice"]
    assert [own["mass"] for own in checks["coverage"]] == [0.5, 0.8, 0.9, 0.95]


def test_the_model_card_tells_all_items_of_gather(tmp_path: Path) -> None:
    model, frame = fitted()
    card = content(report.write(model, frame, tmp_path / "p.html"))["card"]
    assert [own["item"] for own in card["gather"]] == list(range(1, 19))
    assert card["sections"][0]["title"] == "Data"
    assert "Seed 0." in card["sections"][-1]["lines"]


def test_a_model_that_is_not_fitted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not fitted; call"):
        report.write(fusion(), villages(), tmp_path / "p.html")
