"""A run that was killed goes on to the same end, bit for bit; a file of another run is left alone.

Run as a program, this file is the run that is killed: `test_checkpoint.py CHECKPOINT MODEL HALT`.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import ldf
import units
from ldf import checkpoint
from ldf.checkpoint import Checkpoint, fingerprint
from ldf.data import read
from ldf.estimator import load, table_of
from ldf.fit import Schedule, State
from ldf.objective import model_selection, tempered
from ldf.spec import Spec
from ldf.table import Table
from test_store import fusion, villages


def run(path: str, out: str, halt: int) -> None:
    """Fit and save; with `halt`, never get beyond so many chunks, of at least five epochs each."""
    checkpoint.SECONDS, checkpoint.SHARE = 0.0, np.inf  # after every chunk
    chunks: list[int] = []

    write = checkpoint.Checkpoint.write

    def written(self: Any, state: State) -> None:
        write(self, state)
        chunks.append(int(np.asarray(state.epoch).sum()))
        if len(chunks) == halt:
            time.sleep(600)

    checkpoint.Checkpoint.write = written  # pyright: ignore
    fusion().fit(villages(), checkpoint=path).save(out)
    print(f"began after {chunks[0]} epochs")


def started(*arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE)


def test_a_killed_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    path, out = tmp_path / "checkpoint", tmp_path / "resumed.ldf"
    ours, left, until = opened(path), None, time.monotonic() + 300
    with started(path, out, 4) as first:
        while first.poll() is None and time.monotonic() < until:
            left = ours.state()  # always a whole one, while it is being written
            if left is not None and left.epoch.sum() >= 15:
                break
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
    assert first.returncode == -signal.SIGKILL
    assert left is not None
    assert not left.stopped.all()
    assert not out.exists()

    with started(path, out, 0) as again:
        told, _ = again.communicate()
    assert again.returncode == 0
    assert int(told.split()[2]) > left.epoch.sum()  # anew it would be after ten at most
    assert sorted(p.name for p in tmp_path.iterdir()) == ["resumed.ldf"]

    whole = fusion().fit(villages())
    whole.save(tmp_path / "whole.ldf")
    assert out.read_bytes() == (tmp_path / "whole.ldf").read_bytes()
    frames = [model.posterior(villages()).to_frame() for model in (whole, load(out))]
    assert frames[0].equals(frames[1])


# --- The file -----------------------------------------------------------------------------------


def asked(**changed: Any) -> tuple[Spec, Table]:
    model = fusion(**changed)
    data = read(villages(), model.family_of(), model.columns())
    return model.spec(data), table_of(data)


SPEC, TABLE = asked()


def opened(path: Path, spec: Spec = SPEC, table: Table = TABLE, seed: int = 0) -> Checkpoint:
    return Checkpoint.open(path, spec, table, seed)


@pytest.fixture
def state() -> State:
    """Of three fits, with something in every number."""
    rng = np.random.default_rng(0)

    def some(leaf: Any) -> np.ndarray:
        return np.asfortranarray(rng.normal(size=leaf.shape) * 9).astype(leaf.dtype, order="K")

    like = checkpoint._shapes(SPEC, TABLE.x.shape[1], 3)
    return jax.tree.map(some, like)._replace(best_score=np.float32([-np.inf, np.nan, -1.5]))


@pytest.fixture
def path(tmp_path: Path, state: State) -> Path:
    opened(tmp_path / "checkpoint").write(state)
    return tmp_path / "checkpoint"


def test_the_state_comes_back_to_the_last_bit(path: Path, state: State) -> None:
    found = opened(path).state()
    assert jax.tree.structure(found) == jax.tree.structure(state)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(state), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    assert [p.name for p in path.parent.iterdir()] == ["checkpoint"]


def test_where_nothing_was_a_run_begins(tmp_path: Path) -> None:
    assert opened(tmp_path / "checkpoint").state() is None


def test_it_is_written_every_few_seconds_only(
    path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    ours = opened(path)

    def write() -> bool:
        path.unlink(missing_ok=True)
        ours.write(state)
        return path.exists()

    assert write()
    now += checkpoint.SECONDS - 0.1
    assert not write()
    now += 0.2
    assert write()


def test_a_slow_disk_is_written_to_less_often(
    path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 3.0])  # it took three seconds
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    ours = opened(path)
    ours.write(state)
    assert ours.due == 3 + 3 / checkpoint.SHARE


def test_when_writing_fails_the_last_state_is_kept(
    path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    for function in ("fsync", "replace"):

        def full(*args: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(OSError, match="No space left"):
                opened(path).write(state._replace(epoch=state.epoch + 1))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["checkpoint"]


def test_half_a_file_that_a_killed_run_left_goes_at_the_end(path: Path) -> None:
    path.with_name("checkpoint.part").write_bytes(b"half")
    path.with_name("mine").write_bytes(b"another file")
    opened(path).remove()
    assert [p.name for p in path.parent.iterdir()] == ["mine"]


def test_places_where_no_checkpoint_can_be(tmp_path: Path) -> None:
    with pytest.raises(ldf.DataError, match="is a folder; name a file in it for the checkpoint"):
        opened(tmp_path)
    with pytest.raises(ldf.DataError, match="in a folder that is not there; make the folder first"):
        opened(tmp_path / "no" / "checkpoint")


# --- Damaged, or of another run -----------------------------------------------------------------


def flipped(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-7] ^= 1
    path.write_bytes(whole)


def lacking(path: Path) -> None:
    arrays = load_file(path)
    save_file({name: array for name, array in arrays.items() if name != "3"}, path)


def misshapen(path: Path) -> None:
    arrays = load_file(path)
    arrays["0"] = arrays["0"][..., None]
    own = {name: array for name, array in arrays.items() if name not in ("mark", "sum")}
    arrays["sum"] = np.frombuffer(fingerprint(own).encode(), np.uint8)
    save_file(arrays, path)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[:2000]),
    "a frame": lambda path: path.write_text("village,electrified\nAmba,3\n"),
    "one bit": flipped,
    "an array too few": lacking,
    "another shape": misshapen,
    "another file of arrays": lambda path: save_file({"a": np.zeros(3)}, path),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_refused_and_kept(damage: Callable[[Path], Any], path: Path) -> None:
    damage(path)
    before = path.read_bytes()
    with pytest.raises(ldf.DataError) as told:
        fusion().fit(villages(), checkpoint=path)
    assert str(told.value) == (
        f"file '{path}' is no checkpoint, or a damaged one; "
        "name another file, or remove this one to begin again."
    )
    assert path.read_bytes() == before


def changed_table(**changed: Any) -> tuple[Spec, Table]:
    return SPEC, TABLE._replace(**changed)


def other_ensemble(**changed: Any) -> Any:
    return replace(fusion().ensemble, **changed)


GROUPS = np.array(["a", "b"] * 60, object)
X = TABLE.x + 1e-12
OTHERS: dict[str, Callable[[], tuple[Spec, Table]]] = {
    "features": lambda: changed_table(x=X),
    "primary data": lambda: changed_table(y=TABLE.y | {"trials": TABLE.y["trials"] + 1}),
    "weights": lambda: changed_table(weight=TABLE.weight * 2),
    "groups": lambda: changed_table(group=GROUPS),
    "prior": lambda: asked(prior=ldf.Binomial().prior(0.5, 0.5)),
    "objective": lambda: asked(objective="model-selection"),
    "parts": lambda: asked(ensemble=other_ensemble(parts=4)),
    "schedule": lambda: asked(ensemble=other_ensemble(schedule=None)),
    "balance": lambda: asked(balance=3),
    "preprocessing": lambda: asked(preprocess="standard"),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_a_checkpoint_of_another_run_is_refused_and_kept(
    other: Callable[[], tuple[Spec, Table]], path: Path
) -> None:
    before = path.read_bytes()
    with pytest.raises(ldf.DataError, match="is the checkpoint of another run: of other data"):
        opened(path, *other()).state()
    assert path.read_bytes() == before


def test_so_is_one_of_another_seed(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ldf.DataError) as told:
        fusion(seed=1).fit(villages(), checkpoint=path)
    assert str(told.value) == (
        f"file '{path}' is the checkpoint of another run: of other data, settings, seed or "
        "versions; name another file, or go on as that run began."
    )
    assert path.read_bytes() == before


# --- Fingerprints -------------------------------------------------------------------------------


def scaled(factor: float) -> Callable[..., Any]:
    def objective(log_predictive: Any, log_reference: Any) -> Any:
        names = "half" if factor in {0.5, 0.25, 0.125} else "whole"  # a set keeps no order
        return factor * log_predictive if names else objective

    return objective


class Scaled:
    """An objective with a memory."""

    def __init__(self, factor: float) -> None:
        self.factor, self.names = factor, {"a", "b", "c", "d"}

    def __call__(self, log_predictive: Any, log_reference: Any) -> Any:
        return self.factor * log_predictive


def alike(factor: float) -> list[Any]:
    """Everything twice the same, at another address; with another factor something else."""
    priors = ldf.Binomial().prior(1 / 3, factor / 3)
    return [
        scaled(factor),
        Scaled(factor),
        Scaled(factor).__call__,
        tempered(factor),
        functools.partial(model_selection, log_reference=factor),
        jax.jit(scaled(factor)),
        lambda p, q: p * factor,
        priors,
        ldf.LinearGaussian(np.full((1, 1), factor), np.zeros(1)),
        np.array(["a", factor], object),
        {"a", "b", factor},
        {"b": 1, "a": factor},
    ]


def test_fingerprints_are_of_contents_not_of_addresses() -> None:
    for one, same, other in zip(alike(0.5), alike(0.5), alike(0.25), strict=True):
        assert fingerprint(one) == fingerprint(same)
        assert fingerprint(one) != fingerprint(other)


def test_what_runs_together_stays_apart() -> None:
    ones = ["ab", "c"], ["a", "bc"], ["abc"], [["ab"], "c"], ("ab", "c"), b"ab", "1", 1, 1.0, True
    assert len({fingerprint(one) for one in ones}) == len(ones)
    zeros = (np.zeros(2), np.zeros(1), np.zeros(2, np.float32), np.zeros((2, 1)), -np.zeros(2))
    assert len({fingerprint(zero) for zero in zeros}) == len(zeros)


@pytest.mark.parametrize(
    "more",
    [{"structure": ldf.Mixture(2)}, {"auxiliary": {"sky": ["lights"], "land": ["roads"]}}],
    ids=["mixture", "sources"],
)
def test_whatever_is_learned_goes_on_from_where_it_was(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    schedule = Schedule(epochs=30, patience=30, chunk=10)
    members = (ldf.Member(ldf.Network(shared=(3,), branch=())),)
    words = {"ensemble": ldf.Ensemble(members, parts=3, schedule=schedule)} | more
    looks: list[int] = []

    def stop(what: str, done: int, of: int) -> None:
        looks.append(done)
        if len(looks) == 4:
            raise InterruptedError

    frame, path = units.villages(), tmp_path / "checkpoint"
    with pytest.raises(InterruptedError):
        units.fusion(**words).fit(frame, checkpoint=path, progress=stop)
    state = Checkpoint.open(path, *_learned(units.fusion(**words), frame)).state()
    assert state is not None
    assert np.asarray(state.epoch).sum() > 0
    resumed = units.fusion(**words).fit(frame, checkpoint=path)
    whole = units.fusion(**words).fit(frame)
    np.testing.assert_array_equal(resumed.posterior(frame).mean(), whole.posterior(frame).mean())


def _learned(model: ldf.Fusion, frame: Any) -> tuple[Spec, Table, int]:
    data = read(frame, model.family_of(), model.columns())
    return model.spec(data), table_of(data), model.seed


def test_another_process_finds_the_same() -> None:
    code = "import test_checkpoint as t; print(t.fingerprint(t.alike(0.5), t.SPEC, t.TABLE))"
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, text=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": other}, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert found.stdout.strip() == fingerprint(alike(0.5), SPEC, TABLE)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
