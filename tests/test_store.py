"""A model comes back from its file to the last bit, or one sentence says why not.

Read SENTENCES first: what a user reads of a file that is not what it should be. Then that nothing
is lost on the way, that nothing in a file can do harm, and that a file is never half a file.
"""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from safetensors import numpy as safetensors

import ldf
from ldf import check, store
from ldf.checkpoint import fingerprint
from ldf.ensemble import Ensemble, Member
from ldf.estimator import Fusion, load
from ldf.fit import Schedule
from ldf.learned import Correction, Learned, Trained
from ldf.mappings import Fourier, GaussianProcess, Linear, Network, Splines, Trees
from ldf.model import Ground, Model
from ldf.objective import model_selection
from ldf.preprocess import Preprocess
from ldf.schema import Auxiliary, Schema
from ldf.store import Parts, Saved, files
from ldf.store.files import FIELDS, FORMAT, NUMBERS, SPECS
from ldf.store.values import KNOWN, fields_of

SCHEDULE = Schedule(epochs=20, patience=5, batch=64, chunk=5, places=4)
TINY = Ensemble((Member(Network(shared=(4,), branch=())),), parts=3, schedule=SCHEDULE)


def villages(rows: int = 120, surveyed: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    lights, households = rng.normal(size=rows), rng.integers(1, 30, rows)
    electrified = rng.binomial(households, 1 / (1 + np.exp(-lights))).astype(float)
    electrified[surveyed:] = np.nan
    region = rng.choice(["East", "North", "Süd"], rows)
    columns = {"electrified": electrified, "households": households, "lights": lights}
    return pd.DataFrame(columns | {"region": region})


def fusion(**changed: Any) -> Fusion:
    given: dict[str, Any] = {
        "family": "binomial",
        "primary": {"successes": "electrified", "trials": "households"},
        "auxiliary": ["lights", "region"],
        "ensemble": TINY,
    }
    return Fusion(**given | changed)


@pytest.fixture(scope="module")
def network() -> Fusion:
    return fusion().fit(villages())


@pytest.fixture(scope="module")
def regression() -> Fusion:
    """On few rows, some of them alike, with a prior given and floats of several kinds."""
    prior = ldf.Binomial().prior(successes=0.1, failures=0.3)
    ensemble = Ensemble((Member(Linear(), penalty=np.float64(0.1)),), parts=2)
    frame = pd.concat([villages(40, 30)] * 2, ignore_index=True)
    return fusion(ensemble=ensemble, prior=prior, seed=np.int64(3)).fit(frame)


@pytest.fixture(scope="module")
def saved(network: Fusion, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "villages.ldf"
    network.save(path)
    return path


# --- What comes back ----------------------------------------------------------------------------


def same_bits(one: Any, other: Any) -> bool:
    """The same tree of the same arrays."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    arrays = [(np.asarray(a), np.asarray(b)) for a, b in pairs]
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in arrays)


@pytest.mark.parametrize("which", ["network", "regression"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_answers_are_the_same_to_the_last_bit(
    which: str, as_folder: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: Fusion = request.getfixturevalue(which)
    path = f"{tmp_path}/villages.ldf" + ("/" if as_folder else "")
    model.save(path)
    again, frame = load(path), villages()
    assert Path(path).is_dir() == as_folder
    for given in ("both", "auxiliary", "primary"):
        one, other = model.posterior(frame, given), again.posterior(frame, given)
        assert np.array_equal(one.out_of_fold, other.out_of_fold)
        pd.testing.assert_frame_equal(one.to_frame(), other.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(
        model.pseudo_observations(frame), again.pseudo_observations(frame), check_exact=True
    )
    assert np.array_equal(model.predictive(frame).log_prob(), again.predictive(frame).log_prob(),
                          equal_nan=True)  # fmt: skip
    assert same_bits(
        [(t.weights, t.held, t.ground, t.score) for t in model.learned_.trained],
        [(t.weights, t.held, t.ground, t.score) for t in again.learned_.trained],
    )
    for name in ("schema_", "notes_", "status_", "parts_", "family_"):
        assert getattr(again, name) == getattr(model, name)
    assert list(again.parts_) == list(model.parts_)


def test_all_that_was_asked_for_comes_back(network: Fusion, saved: Path) -> None:
    assert load(saved).get_params() == network.get_params()


def test_a_loaded_model_is_saved_as_the_same_bytes(
    network: Fusion, regression: Fusion, tmp_path: Path
) -> None:
    for model in (network, regression):
        one, two, three = (tmp_path / name for name in ("one", "two", "three"))
        model.save(one)
        model.save(two)
        load(one).save(three)
        assert one.read_bytes() == two.read_bytes() == three.read_bytes()


def test_a_loaded_model_can_be_fitted_again(regression: Fusion, tmp_path: Path) -> None:
    regression.save(tmp_path / "model")
    frame = pd.concat([villages(40, 30)] * 2, ignore_index=True)
    again = load(tmp_path / "model").fit(frame)
    assert same_bits(again.learned_.trained[0].weights, regression.learned_.trained[0].weights)


def test_the_file_is_json_and_arrays_that_people_can_read(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        assert archive.namelist() == [SPECS, NUMBERS]
        text = archive.read(SPECS).decode()
        arrays = safetensors.load(archive.read(NUMBERS))
    specs = json.loads(text)
    assert [specs[n] for n in ("format", "kind")] == [FORMAT, "Fusion"]
    assert specs["model"]["arguments"]["ensemble"]["members"][0]["mapping"]["shared"] == [4]
    assert specs["model"]["learned"]["trained"][0]["model"]["family"]["is"] == "Binomial"
    assert "Süd" in text
    assert arrays["learned.trained.0.weights.shared.0.matrix"].dtype == np.float32
    assert arrays["learned.part"].shape == (120,)


def test_other_fields_are_another_format() -> None:
    """If this fails, what is saved has changed: raise FORMAT, and put this digest beside it."""
    kinds = {**KNOWN, "Saved": Saved, "Parts": Parts}
    fields = {name: fields_of(kind) for name, kind in kinds.items()}
    fields["Fusion"] = tuple(Fusion("binomial", {}, []).get_params(deep=False))
    assert fingerprint(sorted(fields.items()))[:16] == FIELDS


def test_weights_that_are_there_twice_are_written_once(saved: Path, network: Fusion) -> None:
    (trained,) = load(saved).learned_.trained
    assert trained.held is trained.weights
    with zipfile.ZipFile(saved) as archive:
        arrays = safetensors.load(archive.read(NUMBERS))
    assert not [name for name in arrays if ".held." in name]
    total = sum(array.nbytes for array in arrays.values())
    assert saved.stat().st_size < total + 10_000


def test_fits_that_differ_from_the_held_ones_stay_apart(regression: Fusion, tmp_path: Path) -> None:
    regression.save(tmp_path / "model")
    (trained,) = load(tmp_path / "model").learned_.trained
    assert trained.held["slope"].shape == (2, *trained.weights["slope"].shape[1:])


# --- Every family, mapping and prior ------------------------------------------------------------

MATRIX = np.array([[1.0, 0.5], [0.0, 2.0], [1.0, 1.0]])
MODELS: list[tuple[ldf.Family, Any]] = [
    (ldf.Binomial(effective=True), Linear(constant_count=True)),
    (ldf.CensoredPoisson(lower=0, upper=4), Linear()),
    (ldf.Exponential(), Linear(by="rate")),
    (ldf.Gamma(shape=2), Network(shared=(3, 2), branch=(2,), activations=("tanh", "relu", "silu"))),
    (ldf.Gaussian(variance=8.5), Network(linear_path=True)),
    (ldf.Gaussian(variance=np.float32(0.1)), Network(by="counts")),  # pyright: ignore
    (ldf.Gaussian(), Linear(True, True)),
    (ldf.Geometric(), Linear()),
    (ldf.LinearGaussian(MATRIX, np.zeros(3), np.eye(3)), Linear()),
    (ldf.LinearGaussian(jnp.asarray(MATRIX.T), jnp.zeros(2)), Network()),
    (ldf.Misreported(sensitivity=0.9, specificity=0.95), Linear()),
    (ldf.Multinomial(classes=3), Network(shared=())),
    (ldf.MultivariateNormal(dimension=2), Linear()),
    (ldf.Joint(visits=ldf.NegativeBinomial(r=1.5), survey=ldf.Binomial()), Linear()),
    (ldf.NegativeBinomial(r=1.5), Linear()),
    (ldf.NestedMultinomial(classes=3), Network(shared=())),
    (ldf.Normal(), Linear()),
    (ldf.Poisson(), Network()),
    (ldf.ZeroInflatedPoisson(zeros=0.3), Linear()),
    (ldf.Poisson(), Trees(depth=2, most=9)),
    (ldf.Binomial(), Splines(knots=4)),
    (ldf.Poisson(), Fourier(waves=3, by="counts")),
    (ldf.Gaussian(variance=2.0), GaussianProcess(inducing=3)),
    (ldf.Normal(), GaussianProcess(inducing=3, kernel="gaussian")),
]


def made(family: ldf.Family, mapping: Any, members: int = 2) -> Fusion:
    """As if fitted to two columns, with weights drawn at random."""
    model, rng = Model(family, mapping), np.random.default_rng(0)
    like = mapping.init(rng, 2, model.outputs, 3)

    def draw(fits: int, kind: Any) -> Any:
        def one(leaf: Any) -> Any:
            size = (fits, *leaf.shape)
            whole = leaf.dtype.kind == "i"  # a column's number
            return rng.integers(0, 2, size) if whole else rng.normal(size=size).astype(kind)

        return jax.tree.map(one, like)

    centre = rng.normal(size=model.outputs)
    prior = family.from_unconstrained(centre, mapping.formulation)
    preprocess = Preprocess.learn("power", rng.normal(size=(20, 2)))
    trained = tuple(
        Trained(model, preprocess, Ground(prior, centre, np.exp(centre)),
                draw(1, np.float32), draw(3, np.float64), np.nan)
        for _ in range(members)
    )  # fmt: skip
    fitted = Fusion(family, {}, ["a", "b"], prior=prior, mapping=mapping)
    share, part = np.full(members, 1 / members), np.array([-1, 0, 2])
    fitted.learned_ = Learned(trained, share, part, "Done.", Correction.of_all(1.1, doubt=0.3))
    fitted.family_, fitted.notes_ = family, ("A note.",)
    fitted.schema_ = Schema((Auxiliary("a", "number"), Auxiliary("b", "category", ("x", "y"))))
    fitted.parts_ = {b"12345678": [0, 2], b"\0" * 8: [1]}
    return fitted


@pytest.mark.parametrize(("family", "mapping"), MODELS, ids=lambda m: type(m).__name__)
def test_every_family_and_mapping_comes_back(
    family: ldf.Family, mapping: Any, tmp_path: Path
) -> None:
    model = made(family, mapping)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert same_bits(
        [(t.ground, t.weights, t.held, t.preprocess[1:]) for t in model.learned_.trained],
        [(t.ground, t.weights, t.held, t.preprocess[1:]) for t in again.learned_.trained],
    )
    assert isinstance(model.prior, ldf.Statistic)
    assert same_bits(again.prior, model.prior)
    assert type(again.family_) is type(family)
    assert same_bits(jax.tree.leaves(again.family_), jax.tree.leaves(family))
    assert again.mapping == mapping
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("column", [-1, 2])
def test_trees_that_ask_for_a_column_that_is_not_there_are_refused(
    column: int, tmp_path: Path
) -> None:
    model = made(ldf.Poisson(), Trees(depth=2))
    model.learned_.trained[1].held["column"][2, 1, 0, 1] = column
    with pytest.raises(ldf.DataError, match=r"cannot hold 'learned\.trained\.1\.held\.column'"):
        model.save(tmp_path / "model")


def test_every_family_is_tried() -> None:
    assert {type(family).__name__ for family, _ in MODELS} == set(ldf.families.__all__) - {"Family"}


def test_a_model_with_array_fields_answers_the_same(tmp_path: Path) -> None:
    model = made(ldf.LinearGaussian(MATRIX, np.zeros(3), np.eye(3)), Linear())
    model.save(tmp_path / "model")
    again, x = load(tmp_path / "model"), np.random.default_rng(1).normal(size=(5, 2))
    one, other = (m.learned_.said(x) for m in (model, again))
    assert same_bits(one, other)
    posteriors = [m.learned_.posterior(n) for m, n in ((model, one), (again, other))]
    assert same_bits(*[(p.mean(), p.sd()) for p in posteriors])


# --- What a file does not hold ------------------------------------------------------------------


def test_an_objective_of_ones_own_is_only_named(network: Fusion, tmp_path: Path) -> None:
    model = load(_written(network, tmp_path)).set_params(objective=lambda log_p, log_q: log_p / 2)
    again = load(_written(model, tmp_path))
    assert again.objective == "custom"
    assert np.array_equal(again.posterior(villages()).mean(), network.posterior(villages()).mean())
    assert load(_written(again, tmp_path)).objective == "custom"
    with pytest.raises(ldf.DataError) as told:
        again.fit(villages())
    assert str(told.value) == (
        "column 'objective' is a function no file holds; set model.objective to it before you fit."
    )
    again.set_params(objective=model_selection)
    assert load(_written(again, tmp_path)).objective == "model-selection"


def _written(model: Fusion, folder: Path) -> Path:
    model.save(folder / "model")
    return folder / "model"


class Wavy(Linear):
    """A mapping of one's own."""


class Coins(ldf.Binomial):
    """A family of one's own."""

    name: ClassVar = "coins"


def test_a_mapping_of_ones_own_is_only_numbered(tmp_path: Path) -> None:
    model = made(ldf.Binomial(), Wavy())
    path = _written(model, tmp_path)
    with pytest.raises(ldf.DataError, match="holds the weights of a mapping of your own"):
        load(path)
    again = load(path, mapping=Wavy())
    assert again.mapping == model.mapping
    x = np.random.default_rng(1).normal(size=(5, 2))
    assert same_bits(again.learned_.said(x), model.learned_.said(x))


REFUSED: list[tuple[str, Callable[[], Fusion], str]] = [
    (
        "a family",
        lambda: made(Coins(), Linear()),
        "cannot hold 'arguments.family', a Coins of your own; only ldf's own can be saved: "
        "Binomial, CensoredPoisson, Exponential, Gamma, Gaussian, Geometric, Joint, "
        "LinearGaussian, Misreported, Multinomial, MultivariateNormal, NegativeBinomial, "
        "NestedMultinomial, Normal, Poisson, ZeroInflatedPoisson.",
    ),
    (
        "a number that is no truth value",
        lambda: made(ldf.Binomial(), Linear(constant_count=1)),  # pyright: ignore
        "cannot hold 'arguments.mapping.constant_count'; "
        "give it as its documentation says, and fit again.",
    ),
    (
        "an array of another kind",
        lambda: made(ldf.Gaussian(variance=np.float16(2)), Linear()),  # pyright: ignore
        "cannot hold 'arguments.family.variance', an array of float16; "
        "give it as its documentation says, and fit again.",
    ),
    (
        "a column that is no text",
        lambda: made(ldf.Binomial(), Linear()).set_params(id=frozenset({"a"})),
        "cannot hold 'arguments.id', a frozenset; "
        "give it as its documentation says, and fit again.",
    ),
]


@pytest.mark.parametrize(("what", "make", "sentence"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_cannot_be_saved_is_said_and_the_old_file_kept(
    what: str, make: Callable[[], Fusion], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"before")
    with pytest.raises(ldf.DataError) as told:
        make().save(path)
    assert str(told.value) == f"file '{path}' {sentence}"
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"before"


def test_what_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ldf.DataError, match="is not fitted; call"):
        fusion().save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


# --- What a user reads of a file that is not what it should be ----------------------------------


@dataclass
class File:
    """A model taken apart, to be put together otherwise."""

    specs: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def pieces(self, signed: bool = True) -> dict[str, bytes]:
        numbers = safetensors.save(self.arrays)
        own = {"sha256": sha256(numbers).hexdigest()} if signed else {}
        return {SPECS: json.dumps(self.specs | own).encode(), NUMBERS: numbers}


@pytest.fixture
def file(saved: Path) -> File:
    return opened(saved)


def opened(path: Path) -> File:
    with zipfile.ZipFile(path) as archive:
        return File(json.loads(archive.read(SPECS)), safetensors.load(archive.read(NUMBERS)))


def zipped(pieces: dict[str, bytes] | list[tuple[str, bytes]], method: int = 0) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, piece in pieces.items() if isinstance(pieces, dict) else pieces:
            archive.writestr(zipfile.ZipInfo(name), piece, method)
    return whole.getvalue()


def with_specs(**changed: Any) -> Callable[[File], bytes]:
    def change(file: File) -> bytes:
        file.specs |= changed
        return zipped(file.pieces())

    return change


def with_arrays(**changed: Any) -> Callable[[File], bytes]:
    def change(file: File) -> bytes:
        named = {name.replace("__", "."): array for name, array in changed.items()}
        everything = file.arrays | named
        file.arrays = {name: a for name, a in everything.items() if a is not None}
        return zipped(file.pieces())

    return change


def with_text(old: str, new: str, times: int = 1) -> Callable[[File], bytes]:
    def change(file: File) -> bytes:
        pieces = file.pieces()
        assert old.encode() in pieces[SPECS]
        return zipped(pieces | {SPECS: pieces[SPECS].replace(old.encode(), new.encode(), times)})

    return change


def other_numbers(file: File) -> bytes:
    file.arrays["learned.share"] = np.array([0.5])
    return zipped(file.pieces(signed=False))


def bomb(file: File) -> bytes:
    return zipped(file.pieces() | {SPECS: b" " * 10_000_000}, zipfile.ZIP_DEFLATED)


def lying(file: File) -> bytes:
    """A zip whose directory claims 3 GB for the arrays."""
    whole = bytearray(zipped(file.pieces()))
    at = whole.rindex(b"PK\x01\x02") + 20
    whole[at : at + 8] = (3_000_000_000).to_bytes(4, "little") * 2
    return bytes(whole)


AGAIN = "save the model again, or take another copy."
NO_MODEL = "is not a model; give the file that .save(path) wrote."
JSON = f"is damaged: model.json is not the JSON that ldf writes; {AGAIN}"
WEIGHTS = "learned__trained__0__weights__shared__0__matrix"
MATRIX_AT = "learned.trained.0.weights.shared.0.matrix"


def damage(at: str) -> str:
    return f"is damaged: '{at}' is not what it should be; {AGAIN}"


SENTENCES: list[tuple[str, Callable[[File], bytes], str]] = [
    ("empty", lambda f: b"", NO_MODEL),
    ("text", lambda f: b"village,electrified\nAmba,3\n", NO_MODEL),
    ("a pickle", lambda f: b"\x80\x04\x95\x0b\0\0\0\0\0\0\0\x8c\x02os\x94.", NO_MODEL),
    ("another zip", lambda f: zipped({"word/document.xml": b"<x/>"}), NO_MODEL),
    ("JSON of another program", lambda f: zipped({SPECS: b"{}", NUMBERS: b""}), NO_MODEL),
    (
        "the end is missing",
        lambda f: zipped(f.pieces())[:-200],
        f"is damaged: its end is missing; {AGAIN}",
    ),
    (
        "a newer format",
        with_specs(format=FORMAT + 1, more="of it"),
        f"was written by a newer ldf (format {FORMAT + 1}, this one reads {FORMAT}); update ldf.",
    ),
    (
        "another kind",
        with_specs(kind="Fission"),
        "holds 'Fission'; this reads 'Fusion'.",
    ),
    (
        "an older format",
        with_specs(format=FORMAT - 1),
        f"was written by an older ldf (format {FORMAT - 1}, this one reads {FORMAT}); "
        "fit the model again.",
    ),
    (
        "no format",
        with_specs(format="one"),
        f"is damaged: model.json lacks what every model has; {AGAIN}",
    ),
    (
        "more than a model has",
        with_specs(code="import os"),
        f"is damaged: model.json lacks what every model has; {AGAIN}",
    ),
    ("half the JSON", lambda f: zipped(f.pieces() | {SPECS: b'{"format": 1,'}), JSON),
    ("JSON without end", lambda f: zipped(f.pieces() | {SPECS: b"[" * 100_000}), JSON),
    ("a NaN", with_text('"parts": 3', '"parts": NaN'), JSON),
    ("an infinity", with_text('"penalty": 0.001', '"penalty": 1e999'), JSON),
    (
        "other weights",
        other_numbers,
        f"is damaged: {NUMBERS} is not the one that {SPECS} was written with; {AGAIN}",
    ),
    (
        "no weights",
        lambda f: zipped({SPECS: f.pieces()[SPECS]}),
        f"is damaged: it needs one {SPECS} and one {NUMBERS}; {AGAIN}",
    ),
    (
        "weights twice",
        lambda f: zipped([*f.pieces().items(), (NUMBERS, f.pieces()[NUMBERS])]),
        f"is damaged: it needs one {SPECS} and one {NUMBERS}; {AGAIN}",
    ),
    (
        "a path out of the folder",
        lambda f: zipped(f.pieces() | {"../evil.py": b"boo"}),
        f"is damaged: it holds other files too; {AGAIN}",
    ),
    (
        "a zip bomb",
        bomb,
        "was packed by another program; unpack it into a folder and load that.",
    ),
    (
        "sizes that are not so",
        lying,
        f"is damaged: {NUMBERS} is larger than the file; {AGAIN}",
    ),
    ("an array is missing", with_arrays(**{WEIGHTS: None}), damage(MATRIX_AT)),
    ("an array too many", with_arrays(more=np.zeros(3)), damage("more")),
    (
        "an array of another shape",
        with_arrays(**{WEIGHTS: np.zeros((3, 4, 5), np.float32)}),
        damage("learned.trained.0.weights"),
    ),
    (
        "an array of another kind",
        with_arrays(**{WEIGHTS: np.zeros((3, 4, 4), np.int32)}),
        damage("learned.trained.0.weights"),
    ),
    (
        "half precision",
        with_arrays(**{WEIGHTS: np.zeros((3, 4, 4), np.float16)}),
        f"is damaged: {NUMBERS} holds arrays of another kind; {AGAIN}",
    ),
    ("shares of others", with_arrays(learned__share=np.ones(2)), damage("learned.share")),
    (
        "a part that is none",
        with_arrays(parts__place=np.full(100, 3)),
        damage("parts.place"),
    ),
    (
        "a wider network",
        with_text('"shared": [4]', '"shared": [5]', 2),
        damage("learned.trained.0.weights"),
    ),
    (
        "a class that is none of ours",
        with_text('"is": "Binomial"', '"is": "Popen"'),
        damage("family"),
    ),
    (
        "a class in the wrong place",
        with_text('"is": "Binomial"', '"is": "Network"'),
        damage("family"),
    ),
    (
        "a field of another type",
        with_text('"effective": false', '"effective": "no"'),
        damage("family.effective"),
    ),
    (
        "an activation of another program",
        with_text('"activations": ["tanh"]', '"activations": ["eval"]'),
        damage("arguments.ensemble.members.0.mapping"),
    ),
    (
        "a formulation of another program",
        with_text('"by": "log"', '"by": "exec"'),
        damage("arguments.ensemble.members.0.mapping.by"),
    ),
    (
        "an argument that Fusion does not have",
        with_text('"seed": 0', '"seed": 0, "evil": 1'),
        damage("arguments"),
    ),
]


@pytest.mark.parametrize(("what", "change", "sentence"), SENTENCES, ids=[s[0] for s in SENTENCES])
def test_one_sentence_says_what_is_wrong(
    what: str, change: Callable[[File], bytes], sentence: str, file: File, tmp_path: Path
) -> None:
    path = tmp_path / "villages.ldf"
    path.write_bytes(change(file))
    with pytest.raises(ldf.DataError) as told:
        load(path)
    assert str(told.value) == f"file '{path}' {sentence}"
    assert [p.name for p in tmp_path.iterdir()] == ["villages.ldf"]


@pytest.mark.parametrize("name", [SPECS, NUMBERS])
def test_a_file_too_large_is_not_read(
    name: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(files.MOST, name, 1000)
    with zipfile.ZipFile(saved) as archive:
        size = archive.getinfo(name).file_size
        archive.extractall(tmp_path)
    for path, told_of in ((saved, saved), (tmp_path, tmp_path / name)):
        with pytest.raises(ldf.DataError) as told:
            load(path)
        assert str(told.value) == (
            f"file '{told_of}' says that {name} holds {size:,} bytes; "
            "a model has at most 1,000: save it again."
        )


def test_places_where_no_model_is(tmp_path: Path, regression: Fusion) -> None:
    (tmp_path / "pipe").mkdir()
    (tmp_path / "file").write_text("some text")
    sentences = {
        "nothing": "is not there; check the path.",
        "pipe": NO_MODEL,
        "file": NO_MODEL,
    }
    for name, sentence in sentences.items():
        with pytest.raises(ldf.DataError) as told:
            load(tmp_path / name)
        assert str(told.value) == f"file '{tmp_path / name}' {sentence}"
    with pytest.raises(ldf.DataError, match="in a folder that is not there; make the folder first"):
        regression.save(tmp_path / "no" / "model")
    with pytest.raises(ldf.DataError, match="is a file, not a folder; leave out the slash"):
        regression.save(f"{tmp_path}/file/")


def test_whatever_byte_is_lost_or_changed_is_noticed(saved: Path, tmp_path: Path) -> None:
    """Or it is one that says nothing, such as the date of an entry."""
    whole, rng = saved.read_bytes(), np.random.default_rng(0)
    wanted = opened(saved)
    path = tmp_path / "model"
    noticed = 0
    ends = [*range(0, len(whole), len(whole) // 30), len(whole) - 1]
    changes = [whole[:end] for end in ends]
    entries = [i for i in range(len(whole)) if whole[i : i + 2] == b"PK"]  # headers, byte by byte
    places = [i + j for i in entries for j in range(46) if i + j < len(whole)]
    for at in [*rng.integers(0, len(whole), 60), *places]:
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.integers(8)
        changes.append(bytes(changed))
    for changed in changes:
        path.write_bytes(changed)
        try:
            specs, arrays = files.read(path)
        except store.FileError:
            noticed += 1
        else:
            assert specs == wanted.specs
            assert same_bits(arrays, wanted.arrays)
    assert noticed > 0.5 * len(changes)


def spots(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    below = [s for k, v in inner if isinstance(v, dict | list) for s in spots(v, (*at, k))]
    return [(*at, key) for key in (value if isinstance(value, dict) else range(len(value)))] + below


@pytest.mark.parametrize("new", [None, -1, 10**30, 0.5, "text", [], {}, {"array": "learned.part"}])
def test_whatever_is_written_into_the_specs_is_refused_or_sound(
    new: Any, saved: Path, tmp_path: Path
) -> None:
    """No other error than the sentence, at whatever spot; and none at all where it may be so."""
    file, path = opened(saved), tmp_path / "model"
    text, refused = json.dumps(file.specs), 0
    everywhere = spots(file.specs["model"])
    rng = np.random.default_rng(0)
    for at in (everywhere[i] for i in rng.permutation(len(everywhere))[:60]):
        specs = json.loads(text)
        inner = specs["model"]
        for key in at[:-1]:
            inner = inner[key]
        inner[at[-1]] = new
        path.write_bytes(zipped(replace(file, specs=specs).pieces()))
        try:
            load(path)
        except store.FileError:
            refused += 1
    assert refused > 20


# --- A file is whole, or it is the one from before ----------------------------------------------


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_when_writing_fails_the_old_model_is_kept(
    function: str, as_folder: bool, regression: Fusion, network: Fusion, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = tmp_path / "model"
    if as_folder:
        path.mkdir()
    network.save(path)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, function, full)
        with pytest.raises(OSError, match="No space left"):
            regression.save(path)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    regression.save(path)
    assert isinstance(load(path).learned_.trained[0].model.mapping, Linear)


def test_a_link_is_followed(regression: Fusion, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    regression.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "model").status_ == regression.status_


def test_other_files_in_a_folder_are_left_alone(regression: Fusion, tmp_path: Path) -> None:
    (tmp_path / "README").write_text("ours")
    regression.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README", SPECS, NUMBERS]
    assert load(tmp_path).status_ == regression.status_


def test_the_error_is_one_for_data() -> None:
    assert issubclass(store.FileError, check.DataError)
