"""Mappings that read images, series and sets: what they compute, and what they do not look at."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ldf import Attention, Convolution, DataError, Network, Recurrent, TemporalConvolution
from ldf.mappings.convolution import _squares

SERIES = [Recurrent("lstm", 5), Recurrent("gru", 5), TemporalConvolution((4, 4), 2)]
FLAT = "flat Network"
HEAD = Network(shared=(3,), branch=())


def name_of(mapping: Any) -> str:
    return getattr(mapping, "cell", type(mapping).__name__)


def drawn(mapping: Any, shape: tuple[int, ...], more: int = 0) -> tuple[Any, Any]:
    """A mapping for this shape and random weights, none of which is zero."""
    mapping = mapping.shaped(shape)
    weights = mapping.init(np.random.default_rng(0), int(np.prod(shape)) + more, 2)
    rng = np.random.default_rng(1)
    return mapping, jax.tree.map(lambda leaf: leaf + 0.1 * rng.standard_normal(leaf.shape), weights)


def steps(rows: int, pads: int = 0, before: bool = True, values: int = 2) -> np.ndarray:
    """So many steps that are there, and so many that are not."""
    rng = np.random.default_rng(2)
    here = np.concatenate([rng.normal(size=(rows, values)), np.ones((rows, 1))], 1)
    none = np.zeros((pads, values + 1))
    return np.concatenate([none, here] if before else [here, none])


@pytest.mark.parametrize("size", [(16, 16, 1), (7, 9, 3), (1, 1, 2)])
@pytest.mark.parametrize("window", [1, 3, 4])
def test_squares_side_by_side_are_a_convolution(size: tuple[int, ...], window: int) -> None:
    rng = np.random.default_rng(0)
    image, kernel = rng.normal(size=size), rng.normal(size=(window, window, size[-1], 4))
    with jax.enable_x64(True):
        found = _squares(jnp.asarray(image), window) @ kernel.reshape(-1, 4)
        dimensions = ("NHWC", "HWIO", "NHWC")
        wanted = jax.lax.conv_general_dilated(
            jnp.asarray(image)[None], jnp.asarray(kernel), (2, 2), "SAME",
            dimension_numbers=dimensions,
        )[0]  # fmt: skip
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_pattern_is_the_same_wherever_in_the_image_it_lies() -> None:
    mapping, weights = drawn(Convolution((4, 5), window=2, head=HEAD), (16, 16, 2))
    pattern = np.random.default_rng(3).normal(size=(4, 4, 2))
    images = np.zeros((2, 16, 16, 2))
    images[0, 4:8, 4:8], images[1, 8:12, 4:8] = pattern, pattern
    with jax.enable_x64(True):
        one, other = (mapping.apply(weights, jnp.asarray(image.ravel())) for image in images)
        turned = mapping.apply(weights, jnp.asarray(images[0, ::-1].ravel()))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not np.allclose(one, turned)


def test_an_lstm_is_equinox_s_cell_step_by_step() -> None:
    mapping, weights = drawn(Recurrent("lstm", 5, HEAD), (3, 3))
    cell = eqx.nn.LSTMCell(2, 5, key=jax.random.key(0))
    cell = jax.tree.unflatten(jax.tree.structure(cell), weights["reading"])
    series = steps(3)
    held = (jnp.zeros(5), jnp.zeros(5))
    for step in series:
        held = cell(jnp.asarray(step[:2]), held)
    found = mapping.features(weights["reading"], jnp.asarray(series))
    np.testing.assert_allclose(found, held[0], rtol=1e-5)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_series_of_one_point_is_one_step_of_the_cell(cell: str) -> None:
    mapping, weights = drawn(Recurrent(cell, 5, HEAD), (4, 3))
    kind = {"lstm": eqx.nn.LSTMCell, "gru": eqx.nn.GRUCell}[cell](2, 5, key=jax.random.key(0))
    one = jax.tree.unflatten(jax.tree.structure(kind), weights["reading"])
    series, nothing = steps(1, 3), jnp.zeros(5)
    after = one(jnp.asarray(series[-1, :2]), (nothing, nothing) if cell == "lstm" else nothing)
    wanted = after[0] if cell == "lstm" else after
    found = mapping.features(weights["reading"], jnp.asarray(series))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("mapping", SERIES, ids=name_of)
def test_steps_that_are_not_there_change_nothing(mapping: Any) -> None:
    short, weights = drawn(mapping, (3, 3))
    long, _ = drawn(mapping, (7, 3))
    with jax.enable_x64(True):
        one = short.features(weights["reading"], jnp.asarray(steps(3)))
        other = long.features(weights["reading"], jnp.asarray(steps(3, 4)))
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("mapping", SERIES, ids=name_of)
def test_the_order_of_steps_matters_and_the_first_is_not_forgotten(mapping: Any) -> None:
    mapping, weights = drawn(mapping, (4, 3))
    series = steps(4)
    other = series.copy()
    other[0, 0] += 1
    apply = jax.jit(lambda x: mapping.apply(weights, x.ravel()))
    assert not np.allclose(apply(series), apply(series[::-1]), atol=1e-4)
    assert not np.allclose(apply(series), apply(other), atol=1e-5)


def test_the_order_of_items_does_not_matter_but_their_number_does() -> None:
    mapping, weights = drawn(Attention(4, 3, HEAD), (6, 3))
    items = steps(4, 2, before=False)
    with jax.enable_x64(True):
        one = mapping.apply(weights, jnp.asarray(items.ravel()))
        turned = mapping.apply(weights, jnp.asarray(items[::-1].ravel()))
        twice = np.concatenate([items[:2], items[:2], items[4:]])
        once = np.concatenate([items[:2], np.zeros((4, 3))])
        doubled, single = (mapping.apply(weights, jnp.asarray(x.ravel())) for x in (twice, once))
    np.testing.assert_allclose(one, turned, rtol=1e-12)
    assert not np.allclose(doubled, single)


def test_attention_weighs_items_by_a_softmax_of_their_scores() -> None:
    mapping, weights = drawn(Attention(4, 2, HEAD), (5, 3))
    items = steps(3, 2, before=False)
    embedded = items[:3, :2]
    *layers, weigh = weights["reading"]
    for layer in layers:
        embedded = np.asarray(jax.nn.silu(embedded @ layer["matrix"] + layer["bias"]))
    score = embedded @ weigh["matrix"] + weigh["bias"]
    share = np.exp(score) / np.exp(score).sum(0)
    wanted = np.append((share.T @ embedded).ravel(), np.log(4))
    found = mapping.features(weights["reading"], jnp.asarray(items))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("mapping", [*SERIES, Attention(4, 2)], ids=name_of)
def test_nothing_at_all_gives_a_number_and_a_slope(mapping: Any) -> None:
    """A row that lacks the source is passed through the mapping before its answer is left out."""
    mapping, weights = drawn(mapping, (4, 3))

    def total(weights: Any) -> Any:
        return mapping.apply(weights, jnp.zeros(12)).sum()

    value, slope = jax.jit(jax.value_and_grad(total))(weights)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


@pytest.mark.parametrize("mapping", [Convolution((3,)), *SERIES, Attention(4, 2)], ids=name_of)
def test_what_stands_after_the_source_reaches_the_head(mapping: Any) -> None:
    shape = (4, 4, 1) if isinstance(mapping, Convolution) else (4, 3)
    mapping, weights = drawn(mapping, shape, more=1)
    row = np.append(np.ones(int(np.prod(shape))), 0.0)
    other = np.append(row[:-1], -1.0)
    apply = jax.jit(lambda x: mapping.apply(weights, x))
    assert not np.allclose(apply(row), apply(other), atol=1e-5)


# --- What they learn ----------------------------------------------------------------------------


def bench() -> Any:
    path = Path(__file__).parents[1] / "bench" / "architectures.py"
    spec = importlib.util.spec_from_file_location("architectures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("kind", "name", "units"),
    [
        ("items", "Attention", 300),
        pytest.param("images", "Convolution", 300, marks=pytest.mark.full),
        pytest.param("series", "Recurrent, LSTM", 300, marks=pytest.mark.full),
        pytest.param("series", "Recurrent, GRU", 300, marks=pytest.mark.full),
        # Of 300 units one fit of it is too sure of some.
        pytest.param("series", "TemporalConvolution", 800, marks=pytest.mark.full),
    ],
)
def test_a_reader_learns_what_a_flat_network_of_the_same_numbers_does_not(
    kind: str, name: str, units: int
) -> None:
    """`make bench-architectures` with fewer units."""
    of = bench()
    new = 500
    task = of.TASKS[kind](units + new, np.random.default_rng(0))
    reader, flat = (of.scores(task, task.mappings[n], (units,), new) for n in (name, FLAT))
    ahead = (reader - flat)[0]
    assert ahead.mean() > 2 * ahead.std() / np.sqrt(new)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Recurrent("rnn"), "cell"),
        (lambda: Recurrent(hidden=0), "hidden"),
        (lambda: Convolution((4, 0)), "channels"),
        (lambda: TemporalConvolution(window=0), "window"),
        (lambda: Attention(heads=0), "heads"),
    ],
)
def test_what_a_reader_cannot_be_is_said(make: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        make()
