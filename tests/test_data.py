"""A frame becomes arrays, or one sentence says why not.

Read SENTENCES first: it is what a user reads. Then what is kept, encoded and noted; that all kinds
of frame say the same; and what holds when a later frame is read by the schema of the fit.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ldf
from ldf import DataError
from ldf.data import Columns, Data, DataWarning, read
from ldf.primary import effective_counts
from ldf.schema import Schema

NAN, INF = float("nan"), float("inf")
PRIMARY = {"successes": "electrified", "trials": "households"}
BINOMIAL = ldf.Binomial()
POINT = struct.pack("<bIdd", 1, 1, 3.0, 4.0)  # well-known binary


def villages(**changed: Any) -> dict[str, list[Any]]:
    """Five villages, the last one not surveyed; a column changed to None is left out."""
    columns: dict[str, Any] = {
        "village": ["Amba", "Buhe", "Cyeru", "Daro", "Emera"],
        "electrified": [3, 0, 7, 2, None],
        "households": [10, 4, 8, 0, None],
        "lights": [1.5, 0.0, 9.25, 0.5, 2.0],
        "region": ["North", "South", "North", "East", "East"],
        "grid": [True, False, True, True, False],
        "people": [100, 50, 80, 10, 40],
    }
    columns["electrified"][3] = 0
    columns |= changed
    return {name: cells for name, cells in columns.items() if cells is not None}


def frame(**changed: Any) -> pd.DataFrame:
    return pd.DataFrame(villages(**changed))


def columns(*auxiliary: str, **more: Any) -> Columns:
    given = {"primary": PRIMARY, "auxiliary": auxiliary or ("lights", "region"), "id": "village"}
    return Columns(**given | more)


def fitted(cells: Any = None, what: Columns | None = None, family: Any = BINOMIAL) -> Data:
    return read(frame() if cells is None else cells, family, what or columns())


# --- What a user reads --------------------------------------------------------------------------

POISSON = {"primary": {"count": "electrified", "exposure": "people"}}
CLASSES = {"primary": {"counts": ["electrified", "households"]}}
MEANS = {"primary": {"mean": "lights", "variance": "people"}}

SENTENCES: list[tuple[str, Callable[[], Any], str]] = [
    (
        "more successes than trials",
        lambda: fitted(frame(electrified=[3, 0, 9, 0, None])),
        "column 'electrified', row 'Cyeru': 9 is more than 'households', 8; "
        "successes cannot exceed trials: correct the row, or swap the columns.",
    ),
    (
        "rows after one that was not surveyed keep their labels",
        lambda: fitted(frame(electrified=[None, 0, -7, 0, None])),
        "column 'electrified', row 'Cyeru': -7 is negative; "
        "a count is zero or more: correct the row.",
    ),
    (
        "fractions",
        lambda: fitted(frame(households=[10, 4.5, 8, 0, None])),
        "column 'households', row 'Buhe': 4.5 is not a whole number; round it, or declare "
        "effective counts by design_effect=, or by the family's effective=True.",
    ),
    (
        "text among primary data",
        lambda: fitted(frame(electrified=[3, "none", 7, 0, None])),
        "column 'electrified', row 'Buhe': 'none' is text, not a number; "
        "turn the column into numbers first.",
    ),
    (
        "counts without exposure",
        lambda: fitted(frame(people=[1, 1, 0, 1, 1]), columns(**POISSON), ldf.Poisson()),
        "column 'electrified', row 'Cyeru': 7 has no 'people'; "
        "a row whose 'people' is zero holds nothing: correct it.",
    ),
    (
        "one class of several",
        lambda: fitted(
            frame(households=[1, -4, 1, 1, None]), columns(**CLASSES), ldf.Multinomial()
        ),
        "column 'households', row 'Buhe': -4 is negative; "
        "a count is zero or more: correct the row.",
    ),
    (
        "an outcome without its trials",
        lambda: fitted(frame(households=[10, None, 8, 0, None])),
        "column 'households', row 'Buhe' is missing although 'electrified' is 0; "
        "fill it in, or leave 'electrified' empty too.",
    ),
    (
        "half an outcome",
        lambda: fitted(
            frame(), columns(primary={"counts": ["grid", "electrified"]}), ldf.Multinomial()
        ),
        "column 'electrified', row 'Emera' is missing although 'grid' is 0; "
        "fill it in, or leave 'grid', 'electrified' empty too.",
    ),
    (
        "negative trials where nobody was asked",
        lambda: fitted(frame(households=[10, 4, 8, 0, -1])),
        "column 'households', row 'Emera': -1 is negative; correct the row.",
    ),
    (
        "a word of another family",
        lambda: fitted(what=columns(primary={"count": "electrified"})),
        "column 'count' is not a word of Binomial; its words are 'successes', 'trials'.",
    ),
    (
        "a word that is needed",
        lambda: fitted(what=columns(primary={"successes": "electrified"})),
        "column 'trials' is not given; "
        "say which column of the frame it is, by primary={'trials': …}.",
    ),
    (
        "a mean whose variance nobody knows",
        lambda: fitted(what=columns(primary={"mean": "electrified"}), family=ldf.Gaussian()),
        "column 'variance' is not given; "
        "use Gaussian(variance=…) with n, or give a variance for each row.",
    ),
    (
        "one column of classes",
        lambda: fitted(what=columns(primary={"counts": "electrified"}), family=ldf.Multinomial()),
        "column 'electrified' is one column; give a list of them as 'counts'.",
    ),
    (
        "several columns of one count",
        lambda: fitted(
            what=columns(primary={"count": ["electrified", "households"]}), family=ldf.Poisson()
        ),
        "column 'electrified', 'households' is several columns, "
        "and 'count' is one number a row; name one column.",
    ),
    (
        "a misspelt column",
        lambda: fitted(what=columns("Light")),
        "column 'Light' is not in the frame; near to it are 'lights'.",
    ),
    (
        "a column that is nowhere",
        lambda: fitted({"electrified": [1, 2], "households": [3, 4]}, columns("xyz", id=None)),
        "column 'xyz' is not in the frame; there are 'electrified', 'households'.",
    ),
    (
        "a missing outcome column at the fit",
        lambda: fitted(frame(electrified=None)),
        "column 'electrified' is not in the frame; there are 'village', 'households', "
        "'lights', 'region', 'grid', 'people'.",
    ),
    (
        "a frame without rows",
        lambda: fitted(frame()[:0]),
        "column 'electrified' has no rows; give a frame with one row a unit.",
    ),
    (
        "a column twice in pandas",
        lambda: fitted(pd.concat([frame(), frame()[["lights"]]], axis=1)),
        "column 'lights' is in the frame twice; rename one of them.",
    ),
    (
        "a column twice in pyarrow",
        lambda: fitted(pa.table([[1], [2]], names=["lights", "lights"])),
        "column 'lights' is in the frame twice; rename one of them.",
    ),
    (
        "no primary data at all",
        lambda: fitted(frame(electrified=[None] * 5)),
        "column 'electrified' has no value in any row; "
        "a fit needs primary data of two units or more.",
    ),
    (
        "one unit",
        lambda: fitted(frame()[:1], columns("lights")),
        "column 'electrified' has a value in one row only; "
        "a fit needs primary data of two units or more.",
    ),
    (
        "no success anywhere",
        lambda: fitted(frame(electrified=[0, 0, 0, 0, None])),
        "column 'electrified' is zero in every row with primary data; "
        "nothing can be learned from zeros alone: check that it is the right column.",
    ),
    (
        "no trial anywhere",
        lambda: fitted(frame(electrified=[0, 0, 0, 0, None], households=[0] * 5)),
        "column 'households' is zero in every row with primary data; "
        "nothing can be learned from zeros alone: check that it is the right column.",
    ),
    (
        "no count in any class",
        lambda: fitted(
            frame(a=[0] * 5, b=[0] * 5), columns(primary={"counts": ["a", "b"]}), ldf.Multinomial()
        ),
        "column 'a', 'b' is zero in every row with primary data; "
        "nothing can be learned from zeros alone: check that it is the right column.",
    ),
    (
        "infinite auxiliary data",
        lambda: fitted(frame(lights=[1, 2, INF, 3, 4])),
        "column 'lights', row 'Cyeru': inf is infinite; give a finite number.",
    ),
    (
        "dates",
        lambda: fitted(frame(lights=pd.date_range("2020-01-01", periods=5))),
        "column 'lights', row 'Amba': 2020-01-01 00:00:00 is a date; "
        "turn the column into numbers first.",
    ),
    (
        "dates in polars",
        lambda: fitted(pl.DataFrame(villages(lights=[datetime.date(2020, 1, 1)] * 5))),
        "column 'lights', row 'Amba': 2020-01-01 is a date; turn the column into numbers first.",
    ),
    (
        "dates in NumPy",
        lambda: fitted(villages(lights=np.array(["2020-01-01"] * 5, dtype="datetime64[ns]"))),
        "column 'lights', row 'Amba': 2020-01-01 00:00:00 is a date; "
        "turn the column into numbers first.",
    ),
    (
        "numbers and text",
        lambda: fitted(frame(lights=[1, 2, "dark", 3, "dim"])),
        "column 'lights', row 'Cyeru': 'dark' is text in a column that also has numbers; "
        "turn the column into numbers, or all of it into text.",
    ),
    (
        "nothing there",
        lambda: fitted(frame(lights=[None] * 5)),
        "column 'lights' is missing in every row; leave the column out.",
    ),
    (
        "an auxiliary column twice",
        lambda: fitted(what=columns("lights", "lights")),
        "column 'lights' is twice among auxiliary columns; name it once.",
    ),
    (
        "a primary column twice",
        lambda: fitted(what=columns(primary={"successes": "people", "trials": "people"})),
        "column 'people' is twice among primary columns; name it once.",
    ),
    (
        "a leak",
        lambda: fitted(what=columns("lights", "electrified")),
        "column 'electrified' is the outcome and auxiliary; "
        "give the outcome as primary data only: elsewhere it tells the answer.",
    ),
    (
        "a leak by division",
        lambda: fitted(what=columns("lights", per_capita={"lights": "electrified"})),
        "column 'electrified' is the outcome and a population; "
        "give the outcome as primary data only: elsewhere it tells the answer.",
    ),
    (
        "no auxiliary column",
        lambda: fitted(what=Columns(PRIMARY, ())),
        "column 'auxiliary' is not given; give auxiliary columns that differ between rows.",
    ),
    (
        "a population of none",
        lambda: fitted(
            frame(people=[100, 50, 0, 10, 40]), columns(per_capita={"lights": "people"})
        ),
        "column 'people', row 'Cyeru': 0 is zero; "
        "'lights' is divided by it: give every row a population above zero.",
    ),
    (
        "a population unknown",
        lambda: fitted(
            frame(people=[100, 50, None, 10, 40]), columns(per_capita={"lights": "people"})
        ),
        "column 'people', row 'Cyeru' is missing; "
        "'lights' is divided by it: give every row a population above zero.",
    ),
    (
        "text per head",
        lambda: fitted(what=columns(per_capita={"region": "people"})),
        "column 'region', row 'Amba': 'North' is text, not a number; "
        "turn the column into numbers first.",
    ),
    (
        "per head of what is not used",
        lambda: fitted(what=columns("lights", per_capita={"grid": "people"})),
        "column 'grid' is in per_capita but not among auxiliary columns; "
        "name it in both, or in neither.",
    ),
    (
        "a negative weight",
        lambda: fitted(frame(w=[1, -1, 1, 1, 1]), columns(weight="w")),
        "column 'w', row 'Buhe': -1 is negative; a weight is zero or more.",
    ),
    (
        "a missing weight",
        lambda: fitted(frame(w=[1, None, 1, 1, 1]), columns(weight="w")),
        "column 'w', row 'Buhe' is missing; "
        "give every row with primary data a weight, or zero to leave it out.",
    ),
    (
        "an infinite weight",
        lambda: fitted(frame(w=[1, INF, 1, 1, 1]), columns(weight="w")),
        "column 'w', row 'Buhe': inf is infinite; give a finite number.",
    ),
    (
        "no weight on what was seen",
        lambda: fitted(frame(w=[0, 0, 0, 0, 1]), columns(weight="w")),
        "column 'w' is zero in every row with primary data; give some row a weight above zero.",
    ),
    (
        "a row without id",
        lambda: fitted(frame(village=["A", None, "C", "D", "E"])),
        "column 'village', row 1 is missing; give every row its id.",
    ),
    (
        "a row without group",
        lambda: fitted(frame(region=["N", None, "S", "S", "S"]), columns("lights", group="region")),
        "column 'region', row 'Buhe' is missing; give every row its group.",
    ),
    (
        "a row without place",
        lambda: fitted(frame(lon=[1, 2, 3, 4, None]), columns(geometry=("lights", "lon"))),
        "column 'lon', row 'Emera' is missing; give every row its place.",
    ),
    (
        "a row without shape",
        lambda: fitted(frame(area=[POINT, POINT, None, POINT, POINT]), columns(geometry="area")),
        "column 'area', row 'Cyeru' is missing; give every row its shape.",
    ),
    (
        "a shape that is none",
        lambda: fitted(frame(area=[POINT, POINT, b"here", POINT, POINT]), columns(geometry="area")),
        "column 'area' holds binary that is no shape; write it as well-known binary.",
    ),
    (
        "three coordinates",
        lambda: columns(geometry=("lights", "people", "grid")),
        "column 'geometry' is not two columns; "
        "name one for across and one for up, or one column of shapes.",
    ),
    (
        "a design effect of measurements",
        lambda: fitted(what=columns("grid", **MEANS, design_effect=2.0), family=ldf.Gaussian()),
        "column 'design_effect' is for counts, and Gaussian has none; leave it out.",
    ),
    (
        "a design effect of zero",
        lambda: fitted(what=columns(design_effect=0)),
        "column 'design_effect': 0 is zero; give a number above zero.",
    ),
    (
        "a column with a design effect of zero",
        lambda: fitted(frame(deff=[1, 2, 0, 1, 1]), columns(design_effect="deff")),
        "column 'deff', row 'Cyeru': 0 is not above zero; correct the row.",
    ),
    (
        "a design effect unknown",
        lambda: fitted(frame(deff=[1, 2, None, 1, 1]), columns(design_effect="deff")),
        "column 'deff', row 'Cyeru' is missing; give a number.",
    ),
    (
        "names that fall together",
        lambda: fitted(frame(**{"region=East": [1, 2, 3, 4, 5]}), columns("region", "region=East")),
        "column 'region=East' would be there twice once encoded; rename a column.",
    ),
    (
        "columns of unequal length",
        lambda: fitted(villages(lights=[1, 2])),
        "column 'lights' has 2 rows but column 'village' has 5 rows; "
        "give every column one value a unit.",
    ),
    (
        "a single number for a column",
        lambda: fitted(villages(lights=3)),
        "column 'lights' is not one value a row; give every column one value a unit.",
    ),
]


@pytest.mark.parametrize(
    ("attempt", "sentence"), [s[1:] for s in SENTENCES], ids=[s[0] for s in SENTENCES]
)
def test_bad_data_get_one_sentence(attempt: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DataError) as raised:
        attempt()
    assert str(raised.value) == sentence


def test_a_text_that_every_row_has_for_itself_is_taken_for_an_id() -> None:
    names = [f"village {i}" for i in range(60)]
    cells = {"y": [1] * 60, "n": [2] * 60, "name": names}
    what = Columns({"successes": "y", "trials": "n"}, ("name",))
    with pytest.raises(DataError) as raised:
        fitted(cells, what)
    assert str(raised.value) == (
        "column 'name' has 60 different texts in 60 rows; "
        "is it an id? leave it out of the auxiliary data, or turn it into numbers."
    )
    few = {name: values * 3 for name, values in cells.items()}  # 60 levels, three rows each
    assert len(fitted(few, what).names) == 60
    wide = {"y": [1] * 3003, "n": [2] * 3003, "name": [f"{i % 1001}" for i in range(3003)]}
    with pytest.raises(DataError, match="has 1,001 different texts in 3,003 rows"):
        fitted(wide, what)


def test_what_is_no_frame_is_named() -> None:
    for wrong in (pl.LazyFrame(villages()), [1, 2], np.ones((2, 2))):
        with pytest.raises(TypeError, match=f"and {type(wrong).__name__} was given"):
            fitted(wrong)


# --- What is kept and encoded -------------------------------------------------------------------


def test_a_frame_becomes_arrays() -> None:
    data = fitted(what=columns("lights", "region", "grid"))
    names = ("lights", "region=East", "region=North", "region=South", "grid")
    assert data.names == data.schema.names == names
    assert data.schema.origins == ("lights", "region", "region", "region", "grid")
    expected = [
        [1.5, 0, 1, 0, 1],
        [0, 0, 0, 1, 0],
        [9.25, 0, 1, 0, 1],
        [0.5, 1, 0, 0, 1],
        [2, 1, 0, 0, 0],
    ]
    assert data.x.dtype == np.float64
    np.testing.assert_array_equal(data.x, expected)
    np.testing.assert_array_equal(data.y["successes"], [3, 0, 7, 0, NAN])
    np.testing.assert_array_equal(data.y["trials"], [10, 4, 8, 0, NAN])
    np.testing.assert_array_equal(data.seen, [True, True, True, True, False])
    np.testing.assert_array_equal(data.design["trials"], [10, 4, 8, 0, NAN])
    np.testing.assert_array_equal(data.weight, np.ones(5))
    assert data.label.tolist() == villages()["village"]
    assert data.group is None
    assert data.place is None
    assert data.family == BINOMIAL
    assert data.notes == (
        "4 of 5 rows have primary data.",
        "Column 'region' has 3 levels, coded as 0 and 1.",
    )


def test_some_rows_are_taken_by_mask_positions_or_slice() -> None:
    cells = frame(w=[1, 2, 3, 4, 5])
    data = fitted(cells, columns(weight="w", group="region", geometry=("lights", "people")))
    for rows in (data.seen & (data.weight < 3), [0, 1], slice(2), np.array([0, 1])):
        some = data[rows]
        assert len(some) == 2
        assert some.label.tolist() == ["Amba", "Buhe"]
        np.testing.assert_array_equal(some.x, data.x[:2])
        np.testing.assert_array_equal(some.y["successes"], [3, 0])
        np.testing.assert_array_equal(some.design["trials"], [10, 4])
        np.testing.assert_array_equal(some.weight, [1, 2])
        assert some.group is not None
        assert some.group.tolist() == ["North", "South"]
        np.testing.assert_array_equal(some.place, [[1.5, 100], [0, 50]])
        assert (some.names, some.schema, some.notes) == (data.names, data.schema, data.notes)
    assert data[4].label.tolist() == ["Emera"]


def test_trials_may_be_known_where_the_outcome_is_not() -> None:
    data = fitted(frame(households=[10, 4, 8, 0, 25]))
    assert not data.seen[4]
    assert data.design["trials"][4] == 25


def test_two_levels_are_one_column() -> None:
    data = fitted(frame(region=["N", "S", "N", "S", "S"]), columns("region"))
    assert data.names == ("region=S",)
    np.testing.assert_array_equal(data.x[:, 0], [0, 1, 0, 1, 1])


def test_rows_are_labelled_by_index_or_number_without_an_id() -> None:
    what = columns(id=None)
    assert fitted(frame(), what).label.tolist() == [0, 1, 2, 3, 4]
    assert fitted(frame().set_index("village"), what).label.tolist() == villages()["village"]
    pairs = pd.MultiIndex.from_product([["East"], range(5)])
    assert fitted(frame().set_index(pairs), what).label[1] == ("East", 1)
    assert fitted(pl.DataFrame(villages()), what).label.tolist() == [0, 1, 2, 3, 4]


def test_ids_keep_all_their_digits() -> None:
    ids = [2**60 + i for i in range(5)]
    for cells in (frame(village=ids), pl.DataFrame(villages(village=ids)), villages(village=ids)):
        label = fitted(cells).label
        assert label.dtype == np.int64
        assert label.tolist() == ids
    assert fitted(frame(village=[10**30 + i for i in range(5)])).label[1] == 10**30 + 1


def test_missing_cells_are_kept_told_and_warned_of() -> None:
    lights = [1.5, None, 9.25, None, 2]
    region = ["North", "South", None, "East", "East"]
    with pytest.warns(DataWarning) as warned:
        data = fitted(frame(lights=lights, region=region))
    assert [str(w.message) for w in warned] == [
        "Cells are missing: 2 in 'lights', 1 in 'region'. A column of 0 and 1 says where in "
        "'lights', 'region'. A missing number takes the mean of the training rows."
    ]
    assert warned[0].filename == __file__
    assert data.notes[-1] == str(warned[0].message)
    names = ("lights", "lights is missing", "region=East", "region=North", "region=South")
    assert data.names == (*names, "region is missing")
    np.testing.assert_array_equal(data.x[:, 0], [1.5, NAN, 9.25, NAN, 2])
    np.testing.assert_array_equal(data.x[:, 1], [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(data.x[2, 2:], [0, 0, 0, 1])


@pytest.mark.parametrize(("rows", "marked"), [(50, True), (51, False)])
def test_where_few_cells_are_missing_no_column_says_which(rows: int, marked: bool) -> None:
    many = pd.concat([frame()] * 11, ignore_index=True)[:rows]
    many = many.assign(village=[f"v{i}" for i in range(rows)], lights=np.arange(rows) * 1.0)
    many.loc[1, "lights"] = NAN
    said = r"Cells are missing: 1 in 'lights'\. (A column .* in 'lights'\. )?A missing number"
    with pytest.warns(DataWarning, match=said):
        data = fitted(many, columns("lights"))
    assert data.names == (("lights", "lights is missing") if marked else ("lights",))
    assert np.isnan(data.x[1, 0])


def test_a_constant_column_is_left_out_with_a_warning() -> None:
    with pytest.warns(DataWarning) as warned:
        data = fitted(frame(region=["North"] * 5), columns("lights", "region"))
    assert data.names == ("lights",)
    sentence = "Column 'region' is the same in every row and is left out."
    assert [str(w.message) for w in warned] == [sentence]
    assert sentence in data.notes
    later = read(frame(region=None), BINOMIAL, columns("lights", "region"), data.schema)
    assert later.names == ("lights",)


def test_of_a_constant_column_with_holes_the_holes_are_kept() -> None:
    with pytest.warns(DataWarning, match="is left out; only whether it is missing is used"):
        data = fitted(frame(lights=[5, None, 5, None, 5]), columns("lights"))
    assert data.names == ("lights is missing",)
    np.testing.assert_array_equal(data.x[:, 0], [0, 1, 0, 1, 0])


def test_nothing_but_constant_columns_is_refused() -> None:
    with pytest.raises(DataError, match="column 'lights' is the same in every row"):
        fitted(frame(lights=[1] * 5), columns("lights"))


def test_counts_are_divided_by_their_population() -> None:
    data = fitted(what=columns("lights", "people", per_capita={"lights": "people"}))
    assert data.names == ("lights per people", "people")
    np.testing.assert_array_equal(data.x[:, 0], [0.015, 0, 9.25 / 80, 0.05, 0.05])
    assert "Column 'lights' is divided by 'people'." in data.notes


def test_the_exposure_may_be_auxiliary_too() -> None:
    data = fitted(what=columns("people", **POISSON), family=ldf.Poisson())
    np.testing.assert_array_equal(data.design["exposure"], data.x[:, 0])


def test_weights_may_be_zero_and_missing_where_nothing_was_seen() -> None:
    data = fitted(frame(w=[0, 2, 1.5, 1, None]), columns(weight="w"))
    np.testing.assert_array_equal(data.weight, [0, 2, 1.5, 1, NAN])


# --- Families -----------------------------------------------------------------------------------


def test_classes_are_counted_and_their_trials_known_where_seen() -> None:
    cells = frame(a=[1, 2, 3, 4, None], b=[5, 0, 1, 2, None], c=[0, 0, 0, 1, None])
    family = ldf.Multinomial()
    data = fitted(cells, columns(primary={"counts": ["a", "b", "c"]}), family)
    assert data.y["counts"].shape == (5, 3)
    assert isinstance(data.family, ldf.Multinomial)
    assert data.family.classes == 3
    np.testing.assert_array_equal(data.design["trials"], [6, 2, 4, 7, NAN])
    np.testing.assert_array_equal(data[data.seen].y["counts"][1], [2, 0, 0])


def test_optional_words_are_those_the_user_gave() -> None:
    count = fitted(what=columns(primary={"count": "electrified"}), family=ldf.Poisson())
    assert (list(count.y), count.design) == (["count"], {})
    means = fitted(what=columns("grid", **MEANS), family=ldf.Gaussian())
    assert list(means.y) == ["mean", "variance"]
    assert list(means.design) == ["variance"]
    of_n = columns("grid", primary={"mean": "lights", "n": "people"})
    assert list(fitted(what=of_n, family=ldf.Gaussian(variance=2.0)).design) == ["n"]
    values = fitted(what=columns("grid", primary={"values": "lights"}), family=ldf.Normal())
    assert values.y["values"].shape == (5,)
    two = columns("grid", primary={"values": ["lights", "people"]})
    assert fitted(what=two, family=ldf.Normal()).y["values"].shape == (5, 2)
    assert fitted(what=two, family=ldf.MultivariateNormal(2)).y["values"].shape == (5, 2)


def test_an_infinite_variance_is_a_mean_not_seen() -> None:
    cells = frame(mean=[1, 2, 3, None, None], v=[1, 1, 2, INF, None])
    data = fitted(cells, columns(primary={"mean": "mean", "variance": "v"}), ldf.Gaussian())
    np.testing.assert_array_equal(data.seen, [1, 1, 1, 0, 0])


@pytest.mark.parametrize("effect", [2.0, "deff"])
def test_design_effects_make_counts_effective(effect: Any) -> None:
    cells = frame(deff=[2, 2, 2, 2, None])
    data = fitted(cells, columns(design_effect=effect))
    np.testing.assert_array_equal(data.y["successes"], [1.5, 0, 3.5, 0, NAN])
    np.testing.assert_array_equal(data.y["trials"], [5, 2, 4, 0, NAN])
    np.testing.assert_array_equal(data.design["trials"], [10, 4, 8, 0, NAN])
    assert data.family == ldf.Binomial(effective=True)
    seen = data[data.seen]
    direct = BINOMIAL.statistic([3, 0, 7, 0], [10, 4, 8, 0], design_effect=[2, 2, 2, 2])
    again = data.family.statistic(**seen.y)
    np.testing.assert_array_equal(again.successes, direct.successes)
    np.testing.assert_array_equal(again.failures, direct.failures)
    what = "2" if effect == 2 else "'deff'"
    assert f"Counts are divided by the design effect, {what}." in data.notes


def test_effective_counts_of_the_other_families() -> None:
    poisson, y = effective_counts(ldf.Poisson(), {"count": np.array([4.0, 6.0])}, [2.0, 3.0])
    assert poisson == ldf.Poisson(effective=True)
    np.testing.assert_array_equal(y["count"], [2, 2])
    np.testing.assert_array_equal(y["exposure"], [1 / 2, 1 / 3])  # one each, before
    counts = {"counts": np.array([[4.0, 6.0], [3.0, 0.0]])}
    _, y = effective_counts(ldf.Multinomial(), counts, [2.0, 3.0])
    np.testing.assert_array_equal(y["counts"], [[2, 3], [1, 0]])
    weighted = fitted(frame(electrified=[2.5, 0, 7, 0, None]), columns(design_effect=1.5))
    assert weighted.y["successes"][0] == 2.5 / 1.5  # weighted counts are fractional to begin with


# --- All kinds of frame say the same ------------------------------------------------------------

HOLES = {
    "lights": [1.5, None, 9.25, 0.5, 2.0],
    "region": ["North", None, "North", "East", "East"],
    "grid": [True, False, None, True, False],
}


def same(one: Data, other: Data) -> None:
    np.testing.assert_array_equal(one.x, other.x)
    for word in one.y:
        np.testing.assert_array_equal(one.y[word], other.y[word])
    np.testing.assert_array_equal(one.seen, other.seen)
    np.testing.assert_array_equal(one.weight, other.weight)
    assert one.x.dtype == other.x.dtype
    assert one.label.dtype == other.label.dtype
    assert one.label.tolist() == other.label.tolist()
    assert (one.schema, one.notes) == (other.schema, other.notes)


@pytest.mark.parametrize("changed", [{}, HOLES], ids=["whole", "with holes"])
@pytest.mark.parametrize("id", ["village", None])
@pytest.mark.filterwarnings("ignore::ldf.data.DataWarning")
def test_every_kind_of_frame_gives_the_same_data(changed: dict[str, Any], id: Any) -> None:
    cells, what = villages(**changed), columns("lights", "region", "grid", "people", id=id)
    expected = fitted(pd.DataFrame(cells), what)
    arrow = pa.table(cells)
    kinds = [
        cells,
        {name: np.array(values, dtype=object) for name, values in cells.items()},
        pl.DataFrame(cells),
        arrow,
        pd.DataFrame(cells).convert_dtypes(),
        pd.DataFrame(cells).astype(object),
        arrow.to_pandas(types_mapper=pd.ArrowDtype),
        pl.DataFrame(cells).with_columns(pl.col("region").cast(pl.Categorical)),
        pl.DataFrame(cells).with_columns(
            pl.col("region").cast(pl.Enum(["South", "North", "East", "West"]))
        ),
        pl.DataFrame(cells).with_columns(pl.col("lights").cast(pl.Decimal(10, 2))),
        pl.DataFrame(cells).with_columns(pl.col("people").cast(pl.UInt8)),
        pd.DataFrame(cells).astype({"region": "category"}),
        arrow.set_column(4, "region", arrow["region"].dictionary_encode()),
        pd.DataFrame(cells | {"people": [decimal.Decimal(v) for v in cells["people"]]}),
    ]
    for kind in kinds:
        same(expected, fitted(kind, what))


def test_masked_arrays_and_nan_are_missing() -> None:
    masked = np.ma.masked_array([1.5, 7.0, 9.25, 0.5, 2.0], [0, 1, 0, 0, 0])
    for lights in (masked, np.array([1.5, NAN, 9.25, 0.5, 2.0])):
        with pytest.warns(DataWarning, match="Cells are missing: 1 in 'lights'"):
            data = fitted(villages(lights=lights), columns("lights"))
        np.testing.assert_array_equal(data.x[:, 0], [1.5, NAN, 9.25, 0.5, 2])


def test_a_category_of_numbers_is_a_category() -> None:
    codes = frame(region=pd.Categorical([1, 2, 1, 3, 3]))
    data = fitted(codes, columns("region"))
    assert data.names == ("region=1", "region=2", "region=3")
    later = read(frame(region=[3.0, 3, 1, 2, 2]), BINOMIAL, columns("region"), data.schema)
    np.testing.assert_array_equal(later.x[0], [0, 0, 1])


# --- A later frame, by the schema of the fit ----------------------------------------------------


def later(cells: Any, what: Columns | None = None, **more: Any) -> Data:
    return read(cells, BINOMIAL, what or columns(), fitted(what=what).schema, **more)


def test_a_later_frame_may_hold_auxiliary_data_alone() -> None:
    what = columns("lights", "region", weight="people", group="grid", geometry=("lights", "people"))
    alone = pd.DataFrame({"lights": [1, 2], "region": ["South", "South"]})
    data = later(alone, what)
    assert not data.seen.any()
    assert np.isnan(data.y["successes"]).all()
    assert np.isnan(data.design["trials"]).all()
    np.testing.assert_array_equal(data.x, [[1, 0, 0, 1], [2, 0, 0, 1]])
    np.testing.assert_array_equal(data.weight, [1, 1])
    assert (data.group, data.place, data.label.tolist()) == (None, None, [0, 1])
    assert len(later(alone[:0])) == 0


def test_a_later_frame_may_hold_trials_without_outcomes() -> None:
    data = later(frame(electrified=None))
    assert not data.seen.any()
    np.testing.assert_array_equal(data.design["trials"], [10, 4, 8, 0, NAN])


def test_outcomes_are_left_unread_when_not_asked_for() -> None:
    data = later(frame(electrified=["?"] * 5), primary=False)
    assert not data.seen.any()


def test_one_row_with_or_without_primary_data_is_enough_later() -> None:
    assert later(frame()[:1]).seen.tolist() == [True]
    assert later(frame(electrified=[0] * 5)[:1]).y["successes"].tolist() == [0]


def test_a_later_frame_is_encoded_as_the_first_was() -> None:
    data = later(frame(region=["South"] * 5, lights=[1] * 5))
    assert data.names == fitted().names
    np.testing.assert_array_equal(data.x, [[1, 0, 0, 1]] * 5)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"region": ["North", "Souht", "North", "East", "East"]},
            "column 'region', row 'Buhe': 'Souht' is a new level; "
            "the model was fitted to 'East', 'North', 'South'.",
        ),
        (
            {"region": [1, 2, 3, 4, 5]},
            "column 'region', row 'Amba': '1' is a new level; "
            "the model was fitted to 'East', 'North', 'South'.",
        ),
        (
            {"region": ["North", None, "North", "East", "East"]},
            "column 'region', row 'Buhe' is missing, and never was when the model was fitted; "
            "fill it in, or fit the model to rows where it is missing.",
        ),
        (
            {"lights": [1, 2, None, 3, 4]},
            "column 'lights', row 'Cyeru' is missing, and never was when the model was fitted; "
            "fill it in, or fit the model to rows where it is missing.",
        ),
        (
            {"lights": ["dark"] * 5},
            "column 'lights', row 'Amba': 'dark' is text, not a number; "
            "turn the column into numbers first.",
        ),
        (
            {"lights": None},
            "column 'lights' is not in the frame; there are 'village', 'electrified', "
            "'households', 'region', 'grid', 'people'.",
        ),
        (
            {"households": None},
            "column 'households' is not in the frame; there are 'village', 'electrified', "
            "'lights', 'region', 'grid', 'people'.",
        ),
    ],
)
def test_what_the_fit_never_saw_is_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as raised:
        later(frame(**changed))
    assert str(raised.value) == sentence


def test_cells_that_were_missing_at_the_fit_may_be_missing_later() -> None:
    what = columns("lights", "region")
    with pytest.warns(DataWarning):
        first = fitted(frame(**HOLES), what)
    data = read(frame(lights=[None] * 5, region=[None] * 5), BINOMIAL, what, first.schema)
    assert np.isnan(data.x[:, 0]).all()
    np.testing.assert_array_equal(data.x[:, 1], np.ones(5))
    np.testing.assert_array_equal(data.x[:, 2:], [[0, 0, 1]] * 5)
    assert data.notes[-1].startswith("Cells are missing: 5 in 'lights', 5 in 'region'.")
    whole = read(frame(), BINOMIAL, columns("lights"), Schema(first.schema.columns[:1]))
    assert not any("missing" in note for note in whole.notes)


def test_one_auxiliary_column_needs_no_list() -> None:
    assert Columns(PRIMARY, "lights").auxiliary == ("lights",)  # pyright: ignore
