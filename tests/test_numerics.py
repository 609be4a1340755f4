"""Accuracy of the count log-pmfs and their gradients, against mpmath at 60 digits.

The numbers handed to `ldf.special` are taken as exact: each is converted to mpmath without
rounding, and so is each tangent. What is left is the error of the evaluation alone, which must
not grow with the concentration, the count, or the distance from the mean.

Most cases use numbers that float32 can hold, so that one reference serves both precisions. Cases
with all 53 bits, and with counts up to 1e9, are added for float64.
"""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.stats

from ldf.special import (
    beta_binomial_log_pmf,
    dirichlet_multinomial_log_pmf,
    gamma_poisson_log_pmf,
)

# Relative to max(1, |value|) and to max(1, |gradient|).
VALUE_TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
GRADIENT_TOLERANCE = {"float32": 1e-4, "float64": 1e-8}
HESSIAN_TOLERANCE = 1e-7

# The largest count at which gradients are promised (and values in float32), and the largest for
# values in float64.
COUNT_LIMIT = 1e6
WIDE_COUNT_LIMIT = 1e9

CONCENTRATIONS = (
    *(1e-8, 1e-4, 1e-2, 0.3, 1.0, 3.0, 7.9, 8.1, 10.0),
    *(1e2, 1e3, 1e5, 1e6, 1e8, 1e10, 1e12, 1e15),
)
RATES = (1e-4, 0.03, 0.3, 0.5, 0.97, 1 - 1e-4)
TRIALS = (1, 2, 10, 137, 1e4, 1e6)
DEVIATIONS = (-5, -3, 0, 3, 5)

# A context of its own, so that no other test sees these digits. At concentration 1e24 (a gamma
# prior's rate for a rare event) the log-gammas are near 1e26, and 60 digits leave 33 after them.
MP = mpmath.MPContext()
MP.dps = 60


# --- References -----------------------------------------------------------------------------


@functools.cache
def log_gamma(x):
    return MP.loggamma(x)


@functools.cache
def digamma(x):
    return MP.digamma(x)


def exact(*values):
    """Floats as mpmath numbers, without rounding."""
    return [MP.mpf(float(value)) for value in values]


def log_rising(x, count):
    """log Γ(x + count) − log Γ(x)."""
    return log_gamma(x + count) - log_gamma(x) if count else MP.zero


def digamma_rising(x, count):
    """ψ(x + count) − ψ(x)."""
    return digamma(x + count) - digamma(x) if count else MP.zero


def dirichlet_multinomial_reference(counts, a):
    """The log-pmf and its partial derivatives by each a."""
    counts, a = exact(*counts), exact(*a)
    trials, total = MP.fsum(counts), MP.fsum(a)
    value = log_gamma(trials + 1) - log_rising(total, trials)
    for count, each in zip(counts, a, strict=True):
        value += log_rising(each, count) - log_gamma(count + 1)
    shared = digamma_rising(total, trials)
    return value, [digamma_rising(x, k) - shared for k, x in zip(counts, a, strict=True)]


def beta_binomial_reference(successes, failures, a, b):
    """The log-pmf and its partial derivatives by a and b."""
    return dirichlet_multinomial_reference((successes, failures), (a, b))


def gamma_poisson_reference(count, exposure, a, b):
    """The log-pmf and its partial derivatives by a and b."""
    count, exposure, a, b = exact(count, exposure, a, b)
    log_stay = MP.log(b / (b + exposure))
    moved = count * MP.log(exposure / (b + exposure)) if count else MP.zero
    value = log_rising(a, count) - log_gamma(count + 1) + moved + a * log_stay
    return value, [
        digamma_rising(a, count) + log_stay,
        a / b - (a + count) / (b + exposure),
    ]


def contract(partials, tangents):
    """The directional derivative along tangents that are floats, exactly."""
    return MP.fdot(partials, exact(*tangents))


# --- Cases ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """A log-pmf, split as the gradients need it: data first, parameters after."""

    name: str
    log_pmf: Callable
    reference: Callable  # one case's floats → value, partial derivatives
    data: tuple[str, ...]
    parameters: tuple[str, ...]
    directions: Callable  # parameters → {name: tangents, one per parameter}


@dataclass(frozen=True)
class Cases:
    """Inputs in float64 (one array per argument) with what mpmath says of them."""

    family: Family
    inputs: dict[str, np.ndarray]
    tangents: dict[str, tuple[np.ndarray, ...]]
    value: np.ndarray
    gradients: dict[str, np.ndarray]  # by direction

    def select(self, rows) -> Cases:
        return replace(
            self,
            inputs={name: x[rows] for name, x in self.inputs.items()},
            tangents={name: tuple(x[rows] for x in t) for name, t in self.tangents.items()},
            value=self.value[rows],
            gradients={name: g[rows] for name, g in self.gradients.items()},
        )

    @property
    def largest_count(self) -> np.ndarray:
        counts = [self.inputs[name] for name in self.family.data if name != "exposure"]
        if counts[0].ndim == 2:
            return counts[0].sum(-1)
        return sum(counts)

    def arguments(self, dtype: str, convert: Callable = np.asarray) -> list:
        """The inputs in `dtype`: data, then parameters."""
        return [convert(x.astype(dtype)) for x in self.inputs.values()]


def beta_binomial_directions(a, b):
    slope = a * (b / (a + b))
    return {"log-concentration": (a, b), "logit of the rate": (slope, -slope)}


def gamma_poisson_directions(a, b):
    zero = np.zeros_like(a)
    return {
        "log-concentration": (a, b),
        "log rate at fixed shape": (zero, -b),
        "log rate at fixed prior exposure": (a, zero),
    }


def dirichlet_multinomial_directions(a):
    shares = a / a.sum(-1, keepdims=True)
    logits = {
        f"logit of class {j}": (a * (np.eye(a.shape[-1])[j] - shares[:, j : j + 1]),)
        for j in range(a.shape[-1])
    }
    return {"log-concentration": (a,), **logits}


BETA_BINOMIAL = Family(
    "beta-binomial",
    beta_binomial_log_pmf,
    beta_binomial_reference,
    ("successes", "failures"),
    ("a", "b"),
    beta_binomial_directions,
)
GAMMA_POISSON = Family(
    "gamma-Poisson",
    gamma_poisson_log_pmf,
    gamma_poisson_reference,
    ("count", "exposure"),
    ("a", "b"),
    gamma_poisson_directions,
)
DIRICHLET_MULTINOMIAL = Family(
    "Dirichlet-multinomial",
    dirichlet_multinomial_log_pmf,
    dirichlet_multinomial_reference,
    ("counts",),
    ("a",),
    dirichlet_multinomial_directions,
)


def build(family: Family, rows: list[tuple], dtype: str = "float64") -> Cases:
    """Reference values for rows of inputs, tangents held in `dtype`."""
    columns = [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]
    names = family.data + family.parameters
    parameters = columns[len(family.data) :]
    tangents = {
        name: tuple(t.astype(dtype).astype(np.float64) for t in direction)
        for name, direction in family.directions(*parameters).items()
    }
    value = np.empty(len(rows))
    gradients = {name: np.empty(len(rows)) for name in tangents}
    for i, row in enumerate(zip(*columns, strict=True)):
        value[i], partials = family.reference(*row)
        for name, direction in tangents.items():
            along = np.concatenate([np.atleast_1d(t[i]) for t in direction])
            gradients[name][i] = contract(partials, along)
    return Cases(family, dict(zip(names, columns, strict=True)), tangents, value, gradients)


def join(first: Cases, second: Cases) -> Cases:
    def both(x: dict, y: dict) -> dict:
        return {name: np.concatenate([x[name], y[name]]) for name in x}

    return replace(
        first,
        inputs=both(first.inputs, second.inputs),
        tangents={
            name: tuple(
                np.concatenate(pair)
                for pair in zip(first.tangents[name], second.tangents[name], strict=True)
            )
            for name in first.tangents
        },
        value=np.concatenate([first.value, second.value]),
        gradients=both(first.gradients, second.gradients),
    )


def rounder(dtype: str) -> Callable[[float], float]:
    return lambda x: float(np.dtype(dtype).type(x))


def counts_around(mean: float, sd: float, upper: float) -> list[float]:
    """Zero, one, the mean and 3 and 5 sd off it, and the upper end."""
    around = [np.rint(mean + z * sd) for z in DEVIATIONS]
    counts = [0.0, 1.0, upper - 1, upper, *around]
    return sorted({float(np.clip(k, 0, upper)) + 0.0 for k in counts})  # no −0


def beta_binomial_rows(rates, trials, concentrations, dtype) -> Iterator[tuple]:
    held = rounder(dtype)
    for rate, n, concentration in itertools.product(rates, trials, concentrations):
        if rate < 1e-2 and n * rate < 0.5:
            continue  # no more than k = 0 and k = 1 at a lower rate than the others
        a, b = held(concentration * rate), held(concentration * (1 - rate))
        variance = n * rate * (1 - rate) * (concentration + n) / (concentration + 1)
        for k in counts_around(n * rate, np.sqrt(variance), n):
            yield k, n - k, a, b


def gamma_poisson_rows(means, exposures, concentrations, dtype, limit) -> Iterator[tuple]:
    """The concentration is the shape at every other exposure, and the prior's exposure between."""
    held = rounder(dtype)
    for mean, (i, exposure), concentration in itertools.product(
        means, enumerate(exposures), concentrations
    ):
        exposure, rate = held(exposure), mean / exposure
        a = held(concentration if i % 2 == 0 else concentration * rate)
        b = held(concentration / rate if i % 2 == 0 else concentration)
        sd = np.sqrt(mean * (1 + exposure / b))
        for y in {min(max(np.rint(mean + z * sd), 0.0), limit) for z in DEVIATIONS} | {0.0, 1.0}:
            yield float(y), exposure, a, b


def apportion(trials: float, shares) -> tuple[float, ...]:
    """Whole counts that add up to `trials`, in proportion to the shares."""
    wanted = trials * np.asarray(shares) / np.sum(shares)
    counts = np.floor(wanted)
    short = int(trials - counts.sum())
    counts[np.argsort(counts - wanted)[:short]] += 1
    return tuple(map(float, counts))


def dirichlet_multinomial_rows(shares, trials, concentrations, dtype) -> Iterator[tuple]:
    """Counts at the mean, the first and last class off it, one class missing, one class only."""
    held = rounder(dtype)
    for share, n, concentration in itertools.product(shares, trials, concentrations):
        share = np.asarray(share)
        a = tuple(held(concentration * s) for s in share)
        last = len(share) - 1
        alone = np.eye(last + 1)
        counts = {
            apportion(n, share),
            apportion(n, share * (1 - alone[1])),
            apportion(n, alone[0]),
            apportion(n, alone[last]),
        }
        spread = np.sqrt(n * share * (1 - share) * (concentration + n) / (concentration + 1))
        for j, z in itertools.product((0, last), DEVIATIONS):
            here = float(np.clip(np.rint(n * share[j] + z * spread[j]), 0, n))
            rest = np.array(apportion(n - here, share * (1 - alone[j])))
            counts.add(tuple(map(float, rest + here * alone[j])))
        for each in sorted(counts):
            yield each, a


def random_rows(
    family: Family, size: int, dtype: str, limit: float, seed: int, far: bool = False
) -> Iterator[tuple]:
    """Log-uniform concentrations, trials and odds.

    Counts are within 5 sd of the mean or at an end, or far from it in all classes.
    """
    rng = np.random.default_rng(seed)
    held = rounder(dtype)
    for _ in range(size):
        concentration = 10 ** rng.uniform(-8, 15)
        n = float(np.rint(10 ** rng.uniform(0, np.log10(limit))))
        if family is GAMMA_POISSON:
            mean, exposure = 10 ** rng.uniform(-3, np.log10(limit)), held(10 ** rng.uniform(-1, 6))
            rate = mean / exposure
            by_shape = rng.random() < 0.5
            a = held(concentration if by_shape else concentration * rate)
            b = held(concentration / rate if by_shape else concentration)
            y = np.rint(mean + rng.uniform(-5, 5) * np.sqrt(mean * (1 + exposure / b)))
            yield rng.choice([float(np.clip(y, 0, limit)), 0.0], p=[0.9, 0.1]), exposure, a, b
            continue
        classes = 2 if family is BETA_BINOMIAL else 4
        share = np.exp(rng.uniform(-10, 0, size=classes))
        share /= share.sum()
        a = tuple(held(concentration * s) for s in share)
        left, counts = n, []
        for j in range(classes - 1):  # a class among those not yet served is a beta-binomial
            rate, weight = share[j] / share[j:].sum(), concentration * share[j:].sum()
            spread = np.sqrt(left * rate * (1 - rate) * (weight + left) / (weight + 1))
            around = np.rint(left * rate + rng.uniform(-5, 5) * spread)
            counts.append(float(np.clip(around, 0, left)) + 0.0)
            left -= counts[-1]
        counts.append(left)
        if rng.random() < 0.2:
            counts = n * rng.permutation(np.eye(classes)[0])
        if far:
            counts = apportion(n, rng.dirichlet(np.full(classes, 0.5)))
        yield (*counts, *a) if family is BETA_BINOMIAL else (tuple(counts), a)


MEANS = (1e-3, 0.05, 1.0, 3.0, 40.0, 1e3, 3e4, 9.9e5)
EXPOSURES = (0.1, 1.0, 250.0, 1e6)
THREE_SHARES = ((0.6, 0.3, 0.1), (0.97, 0.0299, 1e-4))
SIX_SHARES = ((0.5, 0.3, 0.15, 0.04, 0.0099, 1e-4),)
WIDE_TRIALS = (10, 1e6, 1e9)

GRIDS = {
    "beta-binomial": (
        BETA_BINOMIAL,
        lambda: beta_binomial_rows(RATES, TRIALS, CONCENTRATIONS, "float32"),
        lambda: beta_binomial_rows((0.03, 1 - 1e-4), WIDE_TRIALS, CONCENTRATIONS, "float64"),
    ),
    "gamma-Poisson": (
        GAMMA_POISSON,
        lambda: gamma_poisson_rows(MEANS, EXPOSURES, CONCENTRATIONS, "float32", COUNT_LIMIT),
        lambda: gamma_poisson_rows(
            (0.7, 9.7e5, 9.9e8), (0.1, 333.3), CONCENTRATIONS, "float64", WIDE_COUNT_LIMIT
        ),
    ),
    "Dirichlet-multinomial, 3 classes": (
        DIRICHLET_MULTINOMIAL,
        lambda: dirichlet_multinomial_rows(THREE_SHARES, TRIALS, CONCENTRATIONS, "float32"),
        lambda: dirichlet_multinomial_rows(
            THREE_SHARES[1:], WIDE_TRIALS, CONCENTRATIONS, "float64"
        ),
    ),
    "Dirichlet-multinomial, 6 classes": (
        DIRICHLET_MULTINOMIAL,
        lambda: dirichlet_multinomial_rows(SIX_SHARES, TRIALS[2:], CONCENTRATIONS, "float32"),
        lambda: dirichlet_multinomial_rows(SIX_SHARES, (1e9,), CONCENTRATIONS[::2], "float64"),
    ),
}
FAR = "Dirichlet-multinomial, far from the mean"
FULL_GRIDS = {
    name: (
        family,
        functools.partial(random_rows, family, size, "float32", COUNT_LIMIT, 0, name == FAR),
        functools.partial(
            random_rows, family, size // 4, "float64", WIDE_COUNT_LIMIT, 1, name == FAR
        ),
    )
    for name, family, size in (
        ("beta-binomial", BETA_BINOMIAL, 6000),
        ("gamma-Poisson", GAMMA_POISSON, 6000),
        ("Dirichlet-multinomial", DIRICHLET_MULTINOMIAL, 3000),
        (FAR, DIRICHLET_MULTINOMIAL, 1000),
    )
}


@functools.cache
def cases_of(name: str, dtype: str, full: bool = False) -> Cases:
    family, rows, wide_rows = (FULL_GRIDS if full else GRIDS)[name]
    if dtype == "float32":
        return build(family, list(rows()), "float32")
    return join(cases_of(name, "float32", full), build(family, list(wide_rows())))


def like_grid(cases: Cases, name: str, dtype: str) -> Cases:
    """Repeated to the size of a grid, whose compiled program then serves for these too."""
    size = len(cases_of(name, dtype).value)
    return cases.select(np.resize(np.arange(len(cases.value)), size))


# --- Comparison -----------------------------------------------------------------------------


def assert_accurate(got, expected, tolerance, inputs, scale=None, what="value"):
    """Error at most tolerance · max(1, scale); the message shows the worst cases."""
    got = np.asarray(got, dtype=np.float64)
    scale = np.abs(expected) if scale is None else scale
    with np.errstate(invalid="ignore"):
        ratio = np.abs(got - expected) / (tolerance * np.maximum(1.0, scale))
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    if not np.any(ratio > 1):
        return
    lines = [f"{what}: {np.sum(ratio > 1)} of {ratio.size} cases beyond {tolerance:g}; the worst:"]
    for i in np.argsort(-ratio, kind="stable")[:4]:
        at = ", ".join(f"{name}={x[i].tolist()!r}" for name, x in inputs.items())
        lines.append(
            f"  {at}: got {float(got[i])!r}, expected {float(expected[i])!r}, "
            f"error/tolerance {ratio[i]:.3g}"
        )
    pytest.fail("\n".join(lines), pytrace=False)


def in_precision(dtype: str):
    """JAX computes in float64 inside this context alone."""
    return jax.enable_x64(dtype == "float64")


@functools.cache
def compiled(family: Family):
    """Value, directional derivative and reverse-mode gradient, as one program."""
    size = len(family.data)

    def program(data, parameters, tangents):
        log_pmf = functools.partial(family.log_pmf, *data)
        value, derivative = jax.jvp(log_pmf, parameters, tangents)
        _, pull_back = jax.vjp(log_pmf, *parameters)
        return value, derivative, pull_back(jnp.ones_like(value))

    jitted = jax.jit(program)
    return lambda arguments, tangents: jitted(arguments[:size], arguments[size:], tangents)


def evaluate(cases: Cases, dtype: str, direction: str = "log-concentration"):
    with in_precision(dtype):
        arguments = tuple(cases.arguments(dtype, jnp.asarray))
        along = tuple(jnp.asarray(t.astype(dtype)) for t in cases.tangents[direction])
        return compiled(cases.family)(arguments, along)


def check_numpy_values(cases: Cases, dtype: str):
    got = cases.family.log_pmf(*cases.arguments(dtype))
    assert isinstance(got, np.ndarray)
    assert got.dtype == dtype
    assert_accurate(got, cases.value, VALUE_TOLERANCE[dtype], cases.inputs)


def check_jax_values(cases: Cases, dtype: str):
    got, _, _ = evaluate(cases, dtype)
    assert got.dtype == dtype
    assert_accurate(got, cases.value, VALUE_TOLERANCE[dtype], cases.inputs)


def check_directional_derivatives(cases: Cases, dtype: str):
    failures = []
    # All rows go in, so that nothing is compiled twice; gradients are promised for some.
    promised = cases.largest_count <= COUNT_LIMIT
    inputs = cases.select(promised).inputs
    for name in cases.tangents:
        _, got, _ = evaluate(cases, dtype, name)
        assert got.dtype == dtype
        try:
            assert_accurate(
                np.asarray(got)[promised],
                cases.gradients[name][promised],
                GRADIENT_TOLERANCE[dtype],
                inputs,
                what=f"gradient by {name}",
            )
        except pytest.fail.Exception as failure:
            failures.append(str(failure))
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)


def check_reverse_mode(cases: Cases, dtype: str):
    """Partial derivatives, contracted on the host in float64.

    A partial derivative by a is rounded to its dtype before it is contracted, and the terms of a
    contraction may cancel: far above the trials, a · ∂a and b · ∂b are the gradient by the logit
    with opposite signs, and the gradient by log-concentration is what is left. Cotangents in
    float32 cannot carry more than the precision of the whole gradient vector, so the error is
    relative to its length here, and to each of its parts only in forward mode.
    """
    _, _, cotangents = evaluate(cases, dtype)
    assert all(c.dtype == dtype for c in cotangents)
    cotangents = [np.asarray(c, dtype=np.float64) for c in cotangents]
    promised = cases.largest_count <= COUNT_LIMIT
    length = np.linalg.norm(list(cases.gradients.values()), axis=0)
    for name, tangents in cases.tangents.items():
        products = [c * t for c, t in zip(cotangents, tangents, strict=True)]
        got = sum(p.sum(-1) if p.ndim == 2 else p for p in products)
        assert_accurate(
            got[promised],
            cases.gradients[name][promised],
            GRADIENT_TOLERANCE[dtype],
            cases.select(promised).inputs,
            length[promised],
            what=f"reverse-mode gradient by {name}",
        )


every_grid = pytest.mark.parametrize("name", GRIDS)
# Six classes in float64 take the longest to compile, and three have said the same.
every_grid_in_both_precisions = pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=[pytest.mark.full] * ("6" in name and dtype == "float64"))
        for name in GRIDS
        for dtype in ("float32", "float64")
    ],
)
every_full_grid = pytest.mark.parametrize("name", FULL_GRIDS)
every_family = pytest.mark.parametrize("name", ["beta-binomial", "gamma-Poisson"])
both_precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


# --- The references themselves --------------------------------------------------------------


def test_references_agree_with_scipy_at_moderate_parameters():
    for k, n, a, b in [(3, 10, 2.5, 4.0), (0, 7, 0.4, 1.3), (120, 137, 30.0, 6.0)]:
        value, _ = beta_binomial_reference(k, n - k, a, b)
        assert float(value) == pytest.approx(scipy.stats.betabinom.logpmf(k, n, a, b), rel=1e-10)
    for y, exposure, a, b in [(3, 2.0, 2.5, 4.0), (0, 0.1, 0.4, 1.3), (40, 250.0, 9.0, 70.0)]:
        value, _ = gamma_poisson_reference(y, exposure, a, b)
        expected = scipy.stats.nbinom.logpmf(y, a, b / (b + exposure))
        assert float(value) == pytest.approx(expected, rel=1e-10)
    for counts, a in [((3, 0, 7), (0.5, 2.0, 3.0)), ((1, 2, 3, 4), (9.0, 0.1, 1.0, 4.0))]:
        value, _ = dirichlet_multinomial_reference(counts, a)
        expected = scipy.stats.dirichlet_multinomial.logpmf(counts, a, sum(counts))
        assert float(value) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("reference", "data", "parameters"),
    [
        (beta_binomial_reference, (3, 7), (2.5, 4.0)),
        (gamma_poisson_reference, (3, 2.0), (2.5, 4.0)),
        (lambda *x: dirichlet_multinomial_reference(x[:3], x[3:]), (3, 0, 7), (0.5, 2.0, 3.0)),
    ],
)
def test_reference_gradients_agree_with_differences_of_the_reference(reference, data, parameters):
    # Steps of 2⁻⁴⁰ are exact in float64, and 60 digits leave the differences most of theirs.
    step = 2.0**-40
    _, partials = reference(*data, *parameters)
    for i, partial in enumerate(partials):
        up, down = ([x + s * (i == j) for j, x in enumerate(parameters)] for s in (step, -step))
        difference = (reference(*data, *up)[0] - reference(*data, *down)[0]) / (2 * step)
        assert abs(difference - partial) < 1e-20


# --- Accuracy -------------------------------------------------------------------------------


@every_grid_in_both_precisions
def test_value_is_accurate_on_numpy_arrays(name, dtype):
    check_numpy_values(cases_of(name, dtype), dtype)


@every_grid_in_both_precisions
def test_value_is_accurate_under_jit(name, dtype):
    check_jax_values(cases_of(name, dtype), dtype)


@every_grid_in_both_precisions
def test_directional_derivatives_are_accurate(name, dtype):
    check_directional_derivatives(cases_of(name, dtype), dtype)


@every_grid_in_both_precisions
def test_reverse_mode_is_accurate_relative_to_the_whole_gradient(name, dtype):
    check_reverse_mode(cases_of(name, dtype), dtype)


@pytest.mark.full
@both_precisions
@every_full_grid
def test_values_and_gradients_are_accurate_at_random_parameters(name, dtype):
    cases = cases_of(name, dtype, full=True)
    failures = []
    for check in (
        check_numpy_values,
        check_jax_values,
        check_reverse_mode,
        check_directional_derivatives,
    ):
        try:
            check(cases, dtype)
        except pytest.fail.Exception as failure:
            failures.append(f"{check.__name__}: {failure}")
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)


@both_precisions
@every_family
def test_fractional_counts_follow_the_gamma_function(name, dtype):
    family, _, _ = GRIDS[name]
    held = rounder(dtype)
    counts = [held(k) for k in (0.0, 0.25, 0.999, 1.5, 7.3, 1234.56)]
    concentrations = (1e-8, 0.3, 8.1, 1e3, 1e8, 1e15)
    if family is BETA_BINOMIAL:
        rows = [
            (k, m, held(0.3 * c), held(0.7 * c))
            for k, m, c in itertools.product(counts, counts, concentrations)
        ]
    else:
        rows = [
            (y, held(exposure), held(0.3 * c), held(c))
            for y, exposure, c in itertools.product(counts, (0.1, 7.3, 250.0), concentrations)
        ]
    cases = like_grid(build(family, rows, dtype), name, dtype)
    check_numpy_values(cases, dtype)
    check_jax_values(cases, dtype)
    check_directional_derivatives(cases, dtype)


@both_precisions
def test_fractional_counts_of_classes_follow_the_gamma_function(dtype):
    held = rounder(dtype)
    rows = [
        (tuple(map(held, counts)), tuple(held(c * s) for s in (0.6, 0.3, 0.1)))
        for counts in [(0.25, 0.999, 1.5), (7.3, 0.0, 0.25), (1234.56, 0.5, 7.3)]
        for c in (1e-8, 0.3, 8.1, 1e3, 1e8, 1e15)
    ]
    cases = build(DIRICHLET_MULTINOMIAL, rows, dtype)
    cases = like_grid(cases, "Dirichlet-multinomial, 3 classes", dtype)
    check_numpy_values(cases, dtype)
    check_jax_values(cases, dtype)
    check_directional_derivatives(cases, dtype)


@both_precisions
@every_family
def test_tiny_shape_is_accurate(name, dtype):
    """A shape far below one trial: certain to see none, and a finite price for seeing some."""
    family, _, _ = GRIDS[name]
    held = rounder(dtype)
    tiny = (1e-30, 1e-20) if dtype == "float32" else (1e-300, 1e-100, 1e-20)
    rows = [
        (k, 10.0 if family is GAMMA_POISSON else 10.0 - k, held(a), b)
        for k, a, b in itertools.product((0.0, 1.0, 10.0), tiny, (0.5, 1.0, 1000.0))
    ]
    cases = like_grid(build(family, rows, dtype), name, dtype)
    check_numpy_values(cases, dtype)
    check_jax_values(cases, dtype)
    check_directional_derivatives(cases, dtype)


# --- Limits ---------------------------------------------------------------------------------

both_backends = pytest.mark.parametrize("backend", ["numpy", "jax"])

# Compiled once for each family and shape. (Outside jit, JAX compiles every single operation.)
jitted = functools.cache(jax.jit)

SHAPES = (1e-8, 0.3, 1.0, 50.0, 1e6, 1e15)
ZERO = np.zeros(len(SHAPES))


def call(log_pmf, backend, *arguments):
    arguments = [np.asarray(x, dtype=np.float32) for x in arguments]
    got = log_pmf(*arguments) if backend == "numpy" else jitted(log_pmf)(*arguments)
    assert got.dtype == np.float32
    return np.asarray(got)


@both_backends
def test_zero_trials_cost_exactly_nothing(backend):
    got = call(beta_binomial_log_pmf, backend, ZERO, ZERO, SHAPES, SHAPES[::-1])
    np.testing.assert_array_equal(got, 0)
    classes = np.stack([SHAPES, SHAPES[::-1], SHAPES], axis=-1)
    got = call(dirichlet_multinomial_log_pmf, backend, np.zeros_like(classes), classes)
    np.testing.assert_array_equal(got, 0)


@every_family
def test_zero_trials_have_no_gradient(name):
    family, _, _ = GRIDS[name]
    rows = list(zip(ZERO, ZERO, SHAPES, SHAPES[::-1], strict=True))
    cases = like_grid(build(family, rows, "float32"), name, "float32")
    _, derivative, cotangents = evaluate(cases, "float32")
    # Not exactly: a compiler may fuse one of two equal products with their difference.
    np.testing.assert_allclose(derivative, 0, atol=1e-7)
    scaled = [np.asarray(c) * cases.inputs[x] for c, x in zip(cotangents, "ab", strict=True)]
    np.testing.assert_allclose(scaled, 0, atol=1e-7)


@both_backends
def test_zero_exposure_allows_only_a_count_of_zero(backend):
    for count, expected in [(0.0, 0.0), (1.0, -np.inf), (7.0, -np.inf), (0.25, -np.inf)]:
        got = call(gamma_poisson_log_pmf, backend, ZERO + count, ZERO, SHAPES, SHAPES[::-1])
        np.testing.assert_array_equal(got, expected)


@both_backends
def test_shape_of_zero_allows_only_a_count_of_zero(backend):
    for k, expected in [(0.0, 0.0), (1.0, -np.inf), (5.0, -np.inf), (10.0, -np.inf)]:
        some, rest = ZERO + k, 10 - k + ZERO
        for got in (
            call(beta_binomial_log_pmf, backend, some, rest, ZERO, SHAPES),
            call(beta_binomial_log_pmf, backend, rest, some, SHAPES, ZERO),
            call(gamma_poisson_log_pmf, backend, some, ZERO + 2.5, ZERO, SHAPES),
        ):
            np.testing.assert_allclose(got, expected, atol=VALUE_TOLERANCE["float32"])


@both_backends
def test_class_without_concentration_counts_for_nothing_unless_seen(backend):
    counts = np.array([[3, 0, 7], [3, 1, 6], [0, 0, 10], [0, 10, 0], [0, 0, 0], [10, 0, 0]])
    got = call(dirichlet_multinomial_log_pmf, backend, counts, np.tile([0.5, 0.0, 3.0], (6, 1)))
    expected = [
        float(beta_binomial_reference(k, m, 0.5, 3.0)[0]) if missing == 0 else -np.inf
        for k, missing, m in counts
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


# --- Use from JAX and NumPy -----------------------------------------------------------------


def check_eager(name, dtype):
    # 64 cases, for one shape only: every operation is compiled by itself, once for each shape.
    cases = cases_of(name, dtype)
    rows = np.linspace(0, len(cases.value) - 1, 64).astype(int)
    jitted, _, _ = evaluate(cases, dtype)
    jitted = np.asarray(jitted, dtype=np.float64)[rows]
    cases = cases.select(rows)
    with in_precision(dtype):
        eager = cases.family.log_pmf(*cases.arguments(dtype, jnp.asarray))
    assert eager.dtype == dtype
    assert_accurate(eager, cases.value, VALUE_TOLERANCE[dtype], cases.inputs)
    tolerance = 2 * VALUE_TOLERANCE[dtype]  # both are off, each by its own rounding
    assert_accurate(eager, jitted, tolerance, cases.inputs)


@every_family
def test_jit_agrees_with_eager_evaluation(name):
    check_eager(name, "float32")


@pytest.mark.full
@both_precisions
@every_grid
def test_jit_agrees_with_eager_evaluation_in_all_families(name, dtype):
    check_eager(name, dtype)


def test_vmap_agrees_with_a_call_on_the_whole():
    k, m = np.float32([0, 3, 10, 1, 2, 5]), np.float32([10, 7, 1, 1, 0.5, 5])
    a, b = np.float32([0.2, 30, 1e6, 1, 1e-3, 8]), np.float32([1, 70, 3e3, 1, 4, 1e9])
    for family in (BETA_BINOMIAL, GAMMA_POISSON):
        value_and_gradient = jax.jit(jax.vmap(jax.value_and_grad(family.log_pmf, (2, 3))))
        value, gradient = value_and_gradient(k, m, a, b)
        np.testing.assert_allclose(value, family.log_pmf(k, m, a, b), rtol=1e-5, atol=1e-5)
        for i, row in enumerate(zip(k, m, a, b, strict=True)):
            _, partials = family.reference(*row)
            for got, partial, x in zip(gradient, partials, row[2:], strict=True):
                by_log = float(partial * x)
                assert float(got[i] * x) == pytest.approx(by_log, rel=1e-4, abs=1e-4)
    # Over the parameters alone, as over draws from a posterior.
    counts, classes = np.float32([0, 3, 7]), np.stack([a, b, a], axis=-1)
    mapped = jax.jit(jax.vmap(dirichlet_multinomial_log_pmf, (None, 0)))(counts, classes)
    whole = dirichlet_multinomial_log_pmf(counts, classes)
    np.testing.assert_allclose(mapped, whole, rtol=1e-5, atol=1e-5)


@both_backends
def test_arguments_broadcast(backend):
    k, a = np.array([[0.0], [3.0], [9.0]]), np.array([0.5, 2.0, 40.0, 1e5])
    for family in (BETA_BINOMIAL, GAMMA_POISSON):
        got = call(family.log_pmf, backend, k, 4.0, a, 3.0)
        assert got.shape == (3, 4)
        expected = [[float(family.reference(x, 4.0, y, 3.0)[0]) for y in a] for x in k[:, 0]]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    counts = np.array([[[3, 0, 7]], [[1, 1, 1]]])
    classes = np.array([[0.5, 2.0, 3.0], [9.0, 1.0, 1e5], [1.0, 1.0, 1.0], [0.25, 4.0, 2.0]])
    got = call(dirichlet_multinomial_log_pmf, backend, counts, classes)
    assert got.shape == (2, 4)
    expected = [
        [float(dirichlet_multinomial_reference(x, y)[0]) for y in classes] for [x] in counts
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_gradients_sum_over_broadcast_axes():
    k, m = np.float32([0, 3, 9]), np.float32([10, 7, 1])
    got = jax.jit(jax.grad(lambda a: beta_binomial_log_pmf(k, m, a, 5.0).sum()))(2.0)
    each = [beta_binomial_reference(*row, 2.0, 5.0)[1][0] for row in zip(k, m, strict=True)]
    assert float(got) == pytest.approx(float(sum(each)), rel=1e-4)


# --- Second derivatives ---------------------------------------------------------------------


def trigamma_rising(x, count):
    return MP.polygamma(1, x + count) - MP.polygamma(1, x) if count else MP.zero


def beta_binomial_hessian(k, m, a, b):
    k, m, a, b = exact(k, m, a, b)
    shared = trigamma_rising(a + b, k + m)
    return [
        [trigamma_rising(a, k) - shared, -shared],
        [-shared, trigamma_rising(b, m) - shared],
    ]


def gamma_poisson_hessian(y, exposure, a, b):
    y, exposure, a, b = exact(y, exposure, a, b)
    mixed = 1 / b - 1 / (b + exposure)
    return [
        [trigamma_rising(a, y), mixed],
        [mixed, (a + y) / (b + exposure) ** 2 - a / b**2],
    ]


@pytest.mark.parametrize(
    ("log_pmf", "reference"),
    [
        (beta_binomial_log_pmf, beta_binomial_hessian),
        (gamma_poisson_log_pmf, gamma_poisson_hessian),
    ],
    ids=["beta-binomial", "gamma-Poisson"],
)
def test_second_derivatives_are_accurate(log_pmf, reference):
    rows = [
        (k, n if log_pmf is gamma_poisson_log_pmf else n - k, 0.3 * c, 0.7 * c)
        for c in (0.1, 1.0, 7.9, 30.0, 1e3, 1e4)
        for n in (1.0, 10.0, 137.0, 1000.0)
        for k in sorted({0.0, 1.0, float(round(0.3 * n)), n})
    ]
    columns = np.array(rows).T
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(jax.hessian(log_pmf, argnums=(2, 3))))(*map(jnp.asarray, columns))
        got = np.moveaxis(np.array(got), -1, 0)
    expected = np.array([reference(*row) for row in rows]).astype(np.float64)
    # Relative to the Hessian in logs: entries may vanish on their own, and differ in their units.
    sides = columns[2:].T
    units = sides[:, :, None] * sides[:, None, :]
    largest = np.abs(expected * units).max((1, 2))
    error = np.abs((got - expected) * units).max((1, 2)) / largest
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= HESSIAN_TOLERANCE, (
        f"at {rows[worst]}: got {got[worst].tolist()}, expected {expected[worst].tolist()}, "
        f"error/tolerance {error[worst] / HESSIAN_TOLERANCE:.3g}"
    )


def test_second_derivatives_by_classes_are_accurate():
    rows = [
        ((3.0, 0.0, 7.0), (0.5, 2.0, 3.0)),
        ((0.0, 1.0, 0.0), (0.06, 0.03, 0.01)),
        ((600.0, 310.0, 90.0), (600.0, 300.0, 100.0)),
        ((1000.0, 0.0, 0.0), (6e3, 3e3, 1e3)),
    ]
    counts, a = (np.array(column) for column in zip(*rows, strict=True))
    with jax.enable_x64(True):
        hessian = jax.jit(jax.vmap(jax.hessian(dirichlet_multinomial_log_pmf, argnums=1)))
        every = np.asarray(hessian(jnp.asarray(counts), jnp.asarray(a)))
    for got, (counts, a) in zip(every, rows, strict=True):
        shared = trigamma_rising(MP.fsum(exact(*a)), MP.fsum(exact(*counts)))
        own = [trigamma_rising(*exact(x, k)) for k, x in zip(counts, a, strict=True)]
        expected = np.diag(np.array(own, dtype=np.float64)) - float(shared)
        units = np.outer(a, a)
        error = np.abs((got - expected) * units).max() / np.abs(expected * units).max()
        assert error <= HESSIAN_TOLERANCE, (counts, a, got, expected)


# --- Precision is the caller's choice -------------------------------------------------------


def test_import_leaves_jax_in_single_precision():
    code = "import jax, ldf.special; print(jax.config.jax_enable_x64)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_numpy_double_precision_needs_no_jax_setting():
    assert not jax.config.jax_enable_x64
    got = beta_binomial_log_pmf(np.array([3.0]), np.array([7.0]), np.array([3e5]), np.array([7e5]))
    expected = float(beta_binomial_reference(3.0, 7.0, 3e5, 7e5)[0])
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert not jax.config.jax_enable_x64
