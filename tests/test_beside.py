"""Images, series and items beside the frame: how they become columns, what is said when they
cannot, and that a model of them learns, answers, and comes back from its file.

Read REFUSED first: what a user reads of a source that is not what it should be.
"""

from __future__ import annotations

import json
import sys
import warnings
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

import ldf
from ldf import DataError, DataWarning, Ensemble, Fusion, Member, Network, Schedule
from ldf.data import Columns, Data, read
from ldf.preprocess import Preprocess, Shaped, Sourced

PRIMARY = {"successes": "lit", "trials": "asked"}
ROWS, SIZE, LONGEST = 90, 8, 6
TINY = Ensemble(
    (Member(Network(shared=(3,), branch=())),),
    parts=1,
    schedule=Schedule(epochs=4, patience=4, batch=64, chunk=2, places=2),
)


def units(rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    asked = rng.integers(3, 25, rows)
    income = rng.normal(size=rows)
    lit = rng.binomial(asked, 1 / (1 + np.exp(-income)))
    cell = [f"c{i}" for i in range(rows)]
    return pd.DataFrame({"cell": cell, "income": income, "asked": asked, "lit": lit})


def patches(rows: int = ROWS) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {f"c{i}": rng.gamma(1.0, 1.0, (SIZE, SIZE)) for i in range(rows)}


def months(rows: int = ROWS) -> pd.DataFrame:
    """From one to `LONGEST` steps a unit, in no order."""
    rng = np.random.default_rng(2)
    parts = [
        {"cell": f"c{i}", "month": month, "wage": rng.normal(), "hours": rng.normal(30, 5)}
        for i in range(rows)
        for month in range(1 + i % LONGEST)
    ]
    return pd.DataFrame(parts).sample(frac=1, random_state=0)


UNITS, PATCHES, MONTHS = units(), patches(), months()


def series(frame: Any = MONTHS, **more: Any) -> ldf.Series:
    return ldf.Series(frame, **{"by": "cell", "time": "month", "values": ["wage", "hours"]} | more)


def items(frame: Any = MONTHS, **more: Any) -> ldf.Items:
    return ldf.Items(frame, **{"by": "cell", "values": ["wage", "hours"]} | more)


def opened(source: Any, frame: Any = UNITS, **more: Any) -> Data:
    """The frame with one source beside it."""
    columns = Columns(PRIMARY, {"beside": source}, **{"id": "cell"} | more)
    return read(frame, ldf.Binomial(), columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of each unit but the first."""
    where = tmp_path_factory.mktemp("lights")
    for cell, patch in list(PATCHES.items())[1:]:
        Image.fromarray((patch * 20).clip(0, 255).astype(np.uint8)).save(where / f"{cell}.png")
    return where


# --- How they become columns --------------------------------------------------------------------


def test_an_image_is_its_pixels_in_the_row_of_its_unit(folder: Path) -> None:
    with pytest.warns(DataWarning, match="1 of 90 units have no image in 'beside'"):
        data = opened(ldf.Images(folder / "{id}.png"))
    assert data.x.shape == (ROWS, SIZE**2 + 1)
    picture = np.asarray(Image.open(folder / "c7.png"), float)
    np.testing.assert_array_equal(data.x[7, :-1], picture.ravel())
    assert np.isnan(data.x[0, :-1]).all()
    np.testing.assert_array_equal(data.x[:, -1], np.arange(ROWS) > 0)
    assert data.names[SIZE + 1] == "beside 1,1"


def test_arrays_with_ids_and_a_mapping_of_arrays_are_the_same_images() -> None:
    stacked = ldf.Images(np.stack(list(PATCHES.values())), ids=list(PATCHES))
    one, other = opened(stacked), opened(ldf.Images(PATCHES))
    np.testing.assert_array_equal(one.x, other.x)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "I;16", "F", "1", "P"])
def test_pictures_of_every_kind_are_read(mode: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    channels = {"RGB": 3, "RGBA": 4, "P": 3}.get(mode, 1)
    for cell in UNITS["cell"]:
        if mode in ("I;16", "F"):
            kind = np.uint16 if mode == "I;16" else np.float32
            picture = Image.fromarray((rng.random((3, 5)) * 60000).astype(kind))
        else:
            picture = Image.fromarray(rng.integers(0, 255, (3, 5, 3), np.uint8)).convert(mode)
        picture.save(tmp_path / f"{cell}.tif")
    data = opened(ldf.Images(f"{tmp_path}/{{id}}.tif"))
    assert data.schema.blocks[0].shape == (3, 5, channels)
    assert np.isfinite(data.x).all()


def test_resized_images_keep_the_mean_brightness() -> None:
    data = opened(ldf.Images(PATCHES, resize=(4, 4)))
    assert data.schema.blocks[0].shape == (4, 4, 1)
    wanted = [patch.mean() for patch in PATCHES.values()]
    np.testing.assert_allclose(data.x[:, :-1].mean(1), wanted, rtol=1e-5)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, lambda f: f.to_dict("list")])
def test_a_series_stands_at_the_end_sorted_by_time(kind: Any) -> None:
    data = opened(series(kind(MONTHS)))
    block = data.x[:, :-1].reshape(ROWS, LONGEST, 3)
    for row in (0, 3, 5, 61):
        own = MONTHS[MONTHS["cell"] == f"c{row}"].sort_values("month")
        number = 1 + row % LONGEST
        np.testing.assert_array_equal(block[row, LONGEST - number :, :2], own[["wage", "hours"]])
        np.testing.assert_array_equal(block[row, :, 2], np.arange(LONGEST) >= LONGEST - number)
        assert not block[row, : LONGEST - number].any()


def test_times_may_be_dates_or_texts() -> None:
    dated = MONTHS.assign(month=pd.Timestamp("2020-01-01") + pd.to_timedelta(MONTHS["month"], "D"))
    text = MONTHS.assign(month=[f"2020-{month + 1:02}" for month in MONTHS["month"]])
    wanted = opened(series()).x
    np.testing.assert_array_equal(opened(series(dated)).x, wanted)
    np.testing.assert_array_equal(opened(series(text)).x, wanted)


def test_items_stand_at_the_beginning() -> None:
    block = opened(items()).x[:, :-1].reshape(ROWS, LONGEST, 3)
    np.testing.assert_array_equal(block[:, :, 2].sum(1), 1 + np.arange(ROWS) % LONGEST)
    np.testing.assert_array_equal(block[0, :, 2], np.arange(LONGEST) < 1)


def test_a_longer_series_keeps_its_last_steps_and_says_so() -> None:
    with pytest.warns(DataWarning, match="the last 2 are kept"):
        data = opened(series(most=2))
    whole = opened(series()).x[:, :-1].reshape(ROWS, LONGEST, 3)
    np.testing.assert_array_equal(data.x[:, :-1].reshape(ROWS, 2, 3), whole[:, -2:])


def test_units_without_steps_lack_the_source_and_strange_ids_are_told() -> None:
    known = MONTHS[~MONTHS["cell"].isin(["c4", "c8"])]
    strange = pd.DataFrame({"cell": ["zz"], "month": [0], "wage": [1.0], "hours": [1.0]})
    with pytest.warns(DataWarning) as told:
        data = opened(series(pd.concat([known, strange])))
    said = " ".join(str(one.message) for one in told)
    assert "2 of 90 units have no series in 'beside'" in said
    assert "1 ids in 'beside' are of no unit of the frame, such as 'zz'" in said
    assert np.flatnonzero(np.isnan(data.x[:, 0])).tolist() == [4, 8]
    assert np.flatnonzero(data.x[:, -1] == 0).tolist() == [4, 8]


def test_ids_may_be_numbers_and_come_twice_in_the_frame() -> None:
    frame = UNITS.assign(cell=[i % 30 for i in range(ROWS)])
    data = opened(ldf.Images({i: PATCHES[f"c{i}"] for i in range(30)}), frame)
    np.testing.assert_array_equal(data.x[35], data.x[5])
    np.testing.assert_array_equal(data.x[35, :-1], PATCHES["c5"].ravel())


# --- Preprocessing ------------------------------------------------------------------------------


def test_every_pixel_of_a_channel_is_preprocessed_alike() -> None:
    x = np.random.default_rng(0).gamma(1.0, 1.0, (40, 3 * 4 * 2)) + np.tile([0, 9], 12)
    found = Shaped.learn("standard", x, (3, 4, 2), masked=False).apply(x).reshape(-1, 2)
    wanted = x.reshape(-1, 2)
    wanted = (wanted - wanted.mean(0)) / wanted.std(0)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_masks_are_left_alone_and_only_what_is_there_is_learned_from() -> None:
    data = opened(series())
    own = Shaped.learn("standard", data.x[:, :-1], (LONGEST, 3), masked=True)
    z = own.apply(data.x[:, :-1]).reshape(ROWS, LONGEST, 3)
    x = data.x[:, :-1].reshape(ROWS, LONGEST, 3)
    np.testing.assert_array_equal(z[..., 2], x[..., 2])
    assert not z[x[..., 2] == 0].any()
    there = z[x[..., 2] == 1]
    np.testing.assert_allclose(there[:, :2].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(there[:, :2].std(0), 1, rtol=1e-12)


def test_a_missing_value_of_a_step_gets_the_training_mean_and_is_told() -> None:
    frame = MONTHS.assign(wage=MONTHS["wage"].where(MONTHS["month"] != 1))
    with pytest.warns(DataWarning, match="numbers are missing, and get the mean"):
        data = opened(series(frame))
    z = Shaped.learn("power", data.x[:, :-1], (LONGEST, 3), masked=True).apply(data.x[:, :-1])
    x = data.x[:, :-1]
    assert np.isnan(x).any()
    assert not z[np.isnan(x)].any()


def test_tables_beside_blocks_are_preprocessed_as_they_were() -> None:
    data = opened_with_income()
    own = Sourced.learn("power", data.x, data.schema.sources)
    wanted = Preprocess.learn("power", data.x[:, :1]).apply(data.x[:, :1])
    np.testing.assert_array_equal(own.apply(data.x)[:, :1], wanted)
    np.testing.assert_array_equal(own.apply(data.x)[:, -2:], data.x[:, -2:])


def opened_with_income() -> Data:
    columns = Columns(PRIMARY, {"census": ["income"], "lights": ldf.Images(PATCHES)}, id="cell")
    return read(UNITS, ldf.Binomial(), columns)


# --- What is refused ----------------------------------------------------------------------------


def sized(**others: Any) -> dict[str, Any]:
    return PATCHES | others


REFUSED: dict[str, tuple[Any, str]] = {
    "size": (
        lambda: ldf.Images(sized(c7=np.ones((8, 9)))),
        "row 'c7': '8 × 9' is the size of the image, and 8 × 8 is wanted; "
        r"give Images\(…, resize=\(8, 8\)\)",
    ),
    "channels": (
        lambda: ldf.Images(sized(c7=np.ones((8, 8, 3)))),
        "'8 × 8 × 3' is the size of the image, and 8 × 8 is wanted; give it as many channels",
    ),
    "shape": (lambda: ldf.Images(sized(c7=np.ones(8))), "row 'c7': '8' is no image"),
    "text": (lambda: ldf.Images(sized(c7=[["a"]])), "row 'c7' is an array of <U1"),
    "infinite": (
        lambda: ldf.Images(sized(c7=np.full((8, 8), np.inf))),
        "row 'c7' has a pixel that is infinite",
    ),
    "constant": (
        lambda: ldf.Images({cell: np.ones((8, 8)) for cell in PATCHES}),
        "is the same in every row",
    ),
    "too large": (
        lambda: ldf.Images({"c0": np.random.default_rng(0).random((400, 400))}),
        "would be 400 × 400 × 1 numbers a unit",
    ),
    "no id": (lambda: ldf.Images(np.ones((3, 8, 8))), "has not one id for each image"),
    "pattern without an id": (lambda: ldf.Images("lights/all.png"), "names no unit; write {id}"),
    "pattern of no unit": (
        lambda: ldf.Images("nowhere/{id}.png"),
        "an image of no unit of the frame; they were looked for as '/.*nowhere/{id}.png'",
    ),
    "other ids": (
        lambda: ldf.Images({7: np.ones((8, 8))}),
        "an image of no unit of the frame; ids of the frame are like 'c0', those of the source "
        "like 7",
    ),
    "resize": (lambda: ldf.Images(PATCHES, resize=(4,)), "is no size"),  # pyright: ignore
    "twice": (
        lambda: series(pd.concat([MONTHS, MONTHS[MONTHS["cell"] == "c2"][:1]])),
        "column 'month', row .* is there twice for unit 'c2'; keep one row a unit and time",
    ),
    "text value": (
        lambda: series(MONTHS.assign(wage=["high", *MONTHS["wage"][1:]])),
        "column 'wage', row .*'high' is text",
    ),
    "infinite value": (
        lambda: series(MONTHS.assign(wage=[np.inf, *MONTHS["wage"][1:]])),
        "column 'wage', row .* is infinite",
    ),
    "no time": (
        lambda: series(MONTHS.assign(month=[None, *MONTHS["month"][1:]])),
        "column 'month', row .* is missing",
    ),
    "times of two kinds": (
        lambda: series(MONTHS.assign(month=["May", *MONTHS["month"][1:]])),
        "times that cannot be compared",
    ),
    "no column": (lambda: series(values=["wages"]), "'wages' is not in the frame; near to it"),
    "no values": (lambda: series(values=[]), "values' is empty"),
    "a value twice": (lambda: series(values=["wage", "wage"]), "is twice among the values"),
    "most": (lambda: series(most=0), "is less than one"),
    "missing value": (
        lambda: series(MONTHS.assign(wage=np.nan)),
        "column 'wage' is missing in every row",
    ),
    "series of others": (
        lambda: series(MONTHS.assign(cell=range(len(MONTHS)))),
        "has steps of no unit of the frame; ids of the frame are like 'c0', those of the source",
    ),
    "items of others": (
        lambda: items(MONTHS.assign(cell=range(len(MONTHS)))),
        "has items of no unit of the frame",
    ),
    "no row": (lambda: items(MONTHS[:0]), "has items of no unit of the frame"),
}


@pytest.mark.filterwarnings("ignore::ldf.DataWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_source_gets_one_sentence(case: str) -> None:
    make, said = REFUSED[case]
    with pytest.raises(DataError, match=said):
        opened(make())


def test_a_file_that_is_no_image_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "c5.png").write_bytes((folder / "c5.png").read_bytes()[:60])
    (tmp_path / "c6.png").write_text("not a picture")
    for cell in ("c5", "c6"):
        wanted = f"row '{cell}': '{tmp_path}/{cell}.png' cannot be read as an image"
        with pytest.raises(DataError, match=wanted):
            opened(ldf.Images(f"{tmp_path}/{{id}}.png"), UNITS[UNITS["cell"] == cell].iloc[[0, 0]])


def test_sources_beside_the_frame_need_ids_and_a_name() -> None:
    with pytest.raises(DataError, match="is found by the units' ids; name the frame's column"):
        opened(ldf.Images(PATCHES), id=None)
    with pytest.raises(DataError, match="is a source without a name"):
        Columns(PRIMARY, ldf.Images(PATCHES), id="cell")


def test_the_extra_that_is_not_installed_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rasterio", None)
    frame = UNITS.assign(east=0.0, north=0.0)
    with pytest.raises(DataError, match=r"pip install 'ldf\[rasters\]'"):
        opened(ldf.Images.windows("lights.tif"), frame, geometry=("east", "north"))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'ldf\[images\]'"):
        opened(ldf.Images(folder / "{id}.png"))


def test_windows_need_places() -> None:
    with pytest.raises(DataError, match="needs a place for each unit"):
        opened(ldf.Images.windows("lights.tif"))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of rasterio's own
def test_windows_are_cut_around_places_and_end_with_the_raster(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    cells = np.arange(40.0 * 30).reshape(1, 40, 30)
    cells[0, 0, 0] = -1
    how = {"height": 40, "width": 30, "count": 1, "dtype": "float64", "nodata": -1}
    moved = rasterio.transform.from_origin(1000, 2000, 10, 10)
    with rasterio.open(tmp_path / "lights.tif", "w", transform=moved, **how) as raster:
        raster.write(cells)
    # In the middle of a pixel, at the upper left corner, and outside.
    frame = UNITS[:3].assign(east=[1105.0, 1005.0, 5000.0], north=[1895.0, 1995.0, 1995.0])
    with pytest.warns(DataWarning):
        data = opened(
            ldf.Images.windows(tmp_path / "lights.tif", size=4), frame, geometry=("east", "north")
        )
    first, corner, outside = data.x[:, :-1].reshape(3, 4, 4)
    np.testing.assert_array_equal(first, cells[0, 8:12, 8:12])
    assert np.isnan(corner[:2]).all()
    assert np.isnan(corner[2, 2])  # no data
    np.testing.assert_array_equal(corner[3, 2:], cells[0, 1, :2])
    assert np.isnan(outside).all()
    assert data.x[:, -1].tolist() == [1, 1, 0]


# --- Models -------------------------------------------------------------------------------------


MAPPINGS = {
    "lights": ldf.Convolution((2,), 2, Network(shared=(3,), branch=())),
    "history": ldf.Recurrent("gru", 3, Network(shared=(3,), branch=())),
    "shops": ldf.Attention(3, 1, Network(shared=(3,), branch=())),
}


def sources(**changed: Any) -> dict[str, Any]:
    known = {cell: patch for cell, patch in PATCHES.items() if cell != "c3"}
    given = {
        "census": ["income"],
        "lights": ldf.Images(known),
        "history": series(),
        "shops": items(),
    }
    return given | changed


@cache
def fitted() -> Fusion:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Fusion(
            "binomial", PRIMARY, sources(), id="cell", ensemble=TINY, mapping=MAPPINGS
        ).fit(UNITS)


def test_each_source_has_the_mapping_it_was_given_and_a_table_the_member_s() -> None:
    model: Any = fitted().learned_.trained[0].model
    kinds = [type(mapping).__name__ for mapping in model.each]
    assert kinds == ["Network", "Convolution", "Recurrent", "Attention"]
    assert model.each[1].shape == (SIZE, SIZE, 1)
    assert model.each[2].shape == (LONGEST, 3)


def test_what_sources_of_all_kinds_are_worth_adds() -> None:
    table = fitted().pseudo_observations(UNITS)
    assert table["source"].tolist()[:4] == ["census", "lights", "history", "shops"]
    together = fitted().posterior(UNITS, given="auxiliary").to_frame()["pseudo_observations"]
    by_unit = table.groupby("unit", sort=False)["n"].sum()
    np.testing.assert_allclose(by_unit, together, rtol=1e-12)
    lights = table[table["source"] == "lights"].set_index("unit")
    assert lights["n"]["c3"] == 0
    assert (lights["n"].drop("c3") > 0).all()


def test_a_saved_model_answers_alike_and_holds_no_data(tmp_path: Path) -> None:
    model, path = fitted(), tmp_path / "model.ldf"
    model.save(path)
    again = ldf.load(path)
    with pytest.raises(DataError, match=r"say where it is: model.bring\(lights=…\)"):
        again.posterior(UNITS)
    given = sources()
    brought = again.bring(
        lights=given["lights"].images, history=MONTHS.sample(frac=1, random_state=1), shops=MONTHS
    )
    np.testing.assert_array_equal(brought.posterior(UNITS).mean(), model.posterior(UNITS).mean())
    with zipfile.ZipFile(path) as archive:
        specs = json.loads(archive.read("model.json"))
    assert specs["model"]["arguments"]["auxiliary"]["lights"]["images"] is None
    assert specs["model"]["arguments"]["auxiliary"]["history"]["frame"] is None
    brought.save(tmp_path / "again.ldf")
    assert (tmp_path / "again.ldf").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda model: model["schema"]["blocks"][0].update(shape=[10**6, 10**6, 1]), "blocks.0"),
        (lambda model: model["schema"]["blocks"][0].update(shape=[8, 4, 2]), "sources"),
        (
            lambda model: _mapping(model, 1).update(channels=[10**9, 10**9]),
            "mappings.1",
        ),
        (lambda model: _mapping(model, 2).update(hidden=10**9), "mappings.2"),
        (lambda model: _mapping(model, 2).update(shape=[5, 3]), "mappings.2"),
        (lambda model: _mapping(model, 2).update(cell="rnn"), "mappings.2"),
    ],
)
def test_a_file_that_claims_another_form_is_damaged(change: Any, said: str, tmp_path: Path) -> None:
    fitted().save(f"{tmp_path}/model/")
    path = tmp_path / "model" / "model.json"
    specs = json.loads(path.read_text(encoding="utf-8"))
    change(specs["model"])
    path.write_text(json.dumps(specs), encoding="utf-8")
    with pytest.raises(DataError, match=f"is damaged: '.*{said}"):
        ldf.load(tmp_path / "model")


def _mapping(model: dict[str, Any], number: int) -> dict[str, Any]:
    return model["learned"]["trained"][0]["model"]["mappings"][number]


def test_files_are_looked_for_again_and_elsewhere_if_one_says_so(
    folder: Path, tmp_path: Path
) -> None:
    lights = {"lights": ldf.Images(folder / "{id}.png")}
    with pytest.warns(DataWarning, match="have no image"):
        model = Fusion(
            "binomial",
            PRIMARY,
            lights,
            id="cell",
            ensemble=TINY,
            mapping={"lights": MAPPINGS["lights"]},
        ).fit(UNITS, checkpoint=tmp_path / "checkpoint")
    model.save(tmp_path / "model.ldf")
    again = ldf.load(tmp_path / "model.ldf")
    wanted = model.posterior(UNITS, given="auxiliary").mean()
    np.testing.assert_array_equal(again.posterior(UNITS, given="auxiliary").mean(), wanted)
    elsewhere = again.bring(lights=f"{tmp_path}/{{id}}.png")
    with pytest.warns(DataWarning, match=f"No unit has an image .* as '{tmp_path}/{{id}}.png'"):
        nothing = elsewhere.posterior(UNITS, given="auxiliary")
    prior = model.family_.posterior(model.learned_.trained[0].ground.prior)
    np.testing.assert_allclose(nothing.mean(), float(prior.mean()), rtol=1e-12)
    with pytest.raises(DataError, match="8 × 8 is wanted"):
        again.bring(lights={"c1": np.ones((4, 4))}).posterior(UNITS)


def test_a_frame_without_its_ids_is_refused() -> None:
    with pytest.raises(DataError, match="'cell' is not in the frame"):
        fitted().posterior(UNITS.drop(columns="cell"))


def test_cross_validation_holds_out_units_with_their_images() -> None:
    model = Fusion(
        "binomial", PRIMARY, {"lights": ldf.Images(PATCHES)}, id="cell", ensemble=TINY,
        mapping={"lights": MAPPINGS["lights"]},
    )  # fmt: skip
    cv = ldf.cross_validate(model, UNITS, folds=3, baselines=["beta-binomial"])
    assert set(cv.answers) == {"ldf", "beta-binomial"}
    assert np.isfinite(cv.answers["ldf"].log_score).all()


def test_a_report_shows_tables_and_no_pixels() -> None:
    page = ldf.report.explore(fitted(), UNITS).text
    assert "income" in page
    assert "lights 1,1" not in page


def test_a_flattened_network_is_what_one_may_ask_for() -> None:
    flat = Network(shared=(2,), branch=())
    model = Fusion("binomial", PRIMARY, {"lights": ldf.Images(PATCHES)}, id="cell", mapping=flat)
    spec = model.spec(read(UNITS, model.family_of(), model.columns()))
    (weights,) = spec.model(spec.ensemble.members[0]).init(np.random.default_rng(0), SIZE**2 + 1)
    assert weights["shared"][0]["matrix"].shape == (SIZE**2, 2)


def test_trees_read_the_tables_beside_images() -> None:
    both = {"census": ["income"], "lights": ldf.Images(PATCHES)}
    small = ldf.Convolution((2,), window=2, head=Network(shared=(2,), branch=()))
    words: dict[str, Any] = {"auxiliary": both, "id": "cell"}
    asked = Fusion("binomial", PRIMARY, **words, mapping=ldf.Trees())
    spec = asked.spec(read(UNITS, asked.family_of(), asked.columns()))
    each = spec.model(spec.ensemble.members[0]).each  # pyright: ignore
    assert [type(own) for own in each] == [ldf.Trees, ldf.Convolution]
    members = (Member(ldf.Trees(depth=1), learning_rate=0.3),)
    words |= {"ensemble": replace(TINY, members=members), "mapping": {"lights": small}}
    model = Fusion("binomial", PRIMARY, **words).fit(UNITS)
    assert "by backfitting" in model.status_
    forest, reader = model.learned_.trained[0].weights
    assert forest["leaf"].shape[-1] == 2
    for own in (reader["beside"], reader["alone"]):
        assert np.isfinite(own["reading"][0]["matrix"]).all()
    table = model.pseudo_observations(UNITS)
    together = model.posterior(UNITS, given="auxiliary").to_frame()["pseudo_observations"]
    np.testing.assert_allclose(table.groupby("unit", sort=False)["n"].sum(), together, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mapping": {"census": ldf.Convolution()}}, "reads images, and 'census' is a table"),
        ({"mapping": {"history": ldf.Attention()}}, "reads items, and 'history' is a series"),
        ({"mapping": {"light": ldf.Convolution()}}, "light"),
        ({"mapping": {"lights": ldf.Trees()}}, "reads a table, and 'lights' is images"),
        ({"mapping": {"lights": Network(by="rate")}}, "differs between sources"),
        ({"structure": ldf.Mixture(2)}, "is not for several sources"),
        (
            {"auxiliary": {"lights": ldf.Images(PATCHES)}, "structure": ldf.Mixture(2)},
            "'structure' is not for images; give one list of auxiliary columns, or no structure",
        ),
        ({"auxiliary": {"census": ["income"]}, "mapping": {"lights": Network()}}, "lights"),
    ],
)
@pytest.mark.filterwarnings("ignore::ldf.DataWarning")
def test_what_does_not_fit_a_source_is_said(change: dict[str, Any], said: str) -> None:
    words: dict[str, Any] = {"auxiliary": sources(), "id": "cell", "ensemble": TINY}
    with pytest.raises(DataError, match=said):
        Fusion("binomial", PRIMARY, **words | change).fit(UNITS)


def test_only_sources_beside_the_frame_can_be_brought() -> None:
    with pytest.raises(DataError, match="source"):
        fitted().bring(census=UNITS)
