"""Accuracy and speed of the log-pmfs and the posterior quantiles, beside NumPyro and SciPy.

Accuracy is against mpmath, with the floats each library is given taken as exact. Speed is always a
ratio, and both sides of a ratio run in turn in one process: the machine's mood then falls on both.

    python bench/numerics.py --rows 1000000
    python bench/numerics.py --write    # also to docs/numerics-measured.md
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import numpyro.distributions as numpyro_distributions
import scipy.stats

import ldf
from ldf.special import beta_binomial_log_pmf, gamma_poisson_log_pmf

OUTPUT = Path(__file__).resolve().parent.parent / "docs" / "numerics-measured.md"
CONCENTRATIONS = (1e3, 1e6, 1e8, 1e15)
MP = mpmath.MPContext()
MP.dps = 60


# --- Tables ---------------------------------------------------------------------------------


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, the first column to the left and numbers to the right."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def power(x: float) -> str:
    return f"1e{round(np.log10(x))}"


def machine() -> str:
    packages = ("jax", "jaxlib", "numpyro", "scipy", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"Python {platform.python_version()}, {versions}; "
        f"{os.cpu_count()} cores, {processor()}, {platform.system()}."
    )


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


# --- (1) Accuracy ---------------------------------------------------------------------------


def log_rising(x, count):
    return MP.loggamma(x + count) - MP.loggamma(x)


def digamma_rising(x, count):
    return MP.digamma(x + count) - MP.digamma(x)


def beta_binomial_exact(k, m, a, b):
    """log-pmf, and its gradient by the log-concentration."""
    k, m, a, b = (MP.mpf(float(x)) for x in (k, m, a, b))
    n, total = k + m, a + b
    value = MP.log(MP.binomial(n, k)) + log_rising(a, k) + log_rising(b, m) - log_rising(total, n)
    parts = [x * digamma_rising(x, count) for x, count in ((a, k), (b, m), (total, n))]
    return value, parts[0] + parts[1] - parts[2]


def gamma_poisson_exact(y, exposure, a, b):
    """log-pmf, and its gradient by the log-concentration."""
    y, exposure, a, b = (MP.mpf(float(x)) for x in (y, exposure, a, b))
    stay, total = MP.log(b / (b + exposure)), b + exposure
    value = log_rising(a, y) - MP.loggamma(y + 1) + y * MP.log(exposure / total) + a * stay
    return value, a * (digamma_rising(a, y) + stay) + b * (a / b - (a + y) / total)


def numpyro_beta_binomial(k, m, a, b):
    made = numpyro_distributions.BetaBinomial(a, b, k + m, validate_args=False)
    return made.log_prob(k)


def numpyro_gamma_poisson(y, exposure, a, b):
    made = numpyro_distributions.GammaPoisson(a, b / exposure, validate_args=False)
    return made.log_prob(y)


def errors(log_pmf: Callable, exact: Callable, row: tuple, dtype: str) -> tuple[str, str]:
    """Absolute error of the log-pmf, and relative error of its gradient by log-concentration."""
    held = [np.dtype(dtype).type(x) for x in row]
    value, gradient = exact(*held)
    with jax.enable_x64(dtype == "float64"):
        *data, a, b = (jnp.asarray(x) for x in held)
        got, slope = jax.jvp(partial(log_pmf, *data), (a, b), (a, b))
        assert got.dtype == slope.dtype == dtype
        got, slope = float(got), float(slope)
    return f"{float(abs(got - value)):.1e}", f"{float(abs((slope - gradient) / gradient)):.1e}"


def accuracy() -> str:
    comparisons = (
        (
            "beta-binomial",
            lambda c: (3.0, 7.0, 0.3 * c, 0.7 * c),
            beta_binomial_log_pmf,
            numpyro_beta_binomial,
            beta_binomial_exact,
            lambda k, m, a, b: scipy.stats.betabinom.logpmf(k, k + m, a, b),
        ),
        (
            "gamma-Poisson",
            # An exposure of 8 makes b / 8, which NumPyro asks for, exact.
            lambda c: (3.0, 8.0, 0.375 * c, c),
            gamma_poisson_log_pmf,
            numpyro_gamma_poisson,
            gamma_poisson_exact,
            lambda y, n, a, b: scipy.stats.nbinom.logpmf(y, a, b / (b + n)),
        ),
    )
    header = ["", "concentration", "exact", "ldf float32", "NumPyro float32"]
    header += ["ldf float64", "NumPyro float64", "SciPy float64"]
    rows = []
    for name, make, ours, theirs, exact, scipy_log_pmf in comparisons:
        values, gradients = [], []
        for concentration in CONCENTRATIONS:
            row = make(concentration)
            each = [
                errors(log_pmf, exact, row, dtype)
                for dtype in ("float32", "float64")
                for log_pmf in (ours, theirs)
            ]
            value, gradient = exact(*row)
            scipy_error = f"{float(abs(scipy_log_pmf(*row) - value)):.1e}"
            values.append([f"{name}, log-pmf", power(concentration), f"{float(value):.4f}"])
            values[-1] += [error for error, _ in each] + [scipy_error]
            gradients.append([f"{name}, gradient", power(concentration)])
            gradients[-1].append(f"{float(gradient):.1e}")
            gradients[-1] += [error for _, error in each] + ["–"]
        rows += values + gradients
    return "\n\n".join(
        [
            "## Accuracy",
            "Absolute error of the log-pmf, and relative error of its gradient by the "
            "log-concentration (mean held), against mpmath at 60 digits. Beta-binomial: 3 of 10 "
            "at mean 0.3. Gamma-Poisson: 3 events in exposure 8 at mean rate 0.375, the "
            "concentration being the prior's exposure. SciPy has no gradient. At the "
            "mean the gradient falls as one over the concentration: see what it is beside how "
            "far off it is.",
            table(header, rows),
        ]
    )


# --- (2) Speed of the log-pmf with its gradient ---------------------------------------------


def race(rounds: int, *runs: Callable[[], object]) -> np.ndarray:
    """Seconds of each run (columns) in each round, taking turns after a warm-up."""
    for run in runs:
        jax.block_until_ready(run())
    seconds = np.empty((rounds, len(runs)))
    for i in range(rounds):
        for j, run in enumerate(runs):
            start = time.perf_counter()
            jax.block_until_ready(run())
            seconds[i, j] = time.perf_counter() - start
    return seconds


def ratio(ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    """Both medians, their ratio, and the range of the ratio over the rounds."""
    each = ours / theirs
    return [
        *(f"{1e3 * np.median(seconds):.0f} ms" for seconds in (ours, theirs)),
        f"{np.median(ours) / np.median(theirs):.2f}",
        f"{each.min():.2f}–{each.max():.2f}",
    ]


def draws(rows: int, rng: np.random.Generator) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Rows as a model meets them: many sizes of trial and of concentration, data to match."""
    concentration = 10 ** rng.uniform(-1, 4, rows)
    rate = rng.beta(1, 3, rows).clip(1e-3, 1 - 1e-3)
    trials = np.floor(1000 ** rng.uniform(0, 1, rows))
    a, b = concentration * rate, concentration * (1 - rate)
    successes = rng.binomial(trials.astype(int), rng.beta(a, b))
    yield "beta-binomial", (successes, trials - successes, a, b)
    b = 10 ** rng.uniform(-1, 4, rows)
    a = b * rate
    yield "gamma-Poisson", (rng.poisson(trials * rng.gamma(a) / b), trials, a, b)


def speed_of_log_pmf(rows: int, rounds: int) -> str:
    functions = {
        "beta-binomial": (beta_binomial_log_pmf, numpyro_beta_binomial),
        "gamma-Poisson": (gamma_poisson_log_pmf, numpyro_gamma_poisson),
    }
    lines = []
    for name, columns in draws(rows, np.random.default_rng(0)):
        arguments = [jnp.asarray(column, dtype=jnp.float32) for column in columns]
        programs = []
        for log_pmf in functions[name]:
            # Bound now, as the loop goes on: data and parameters are all arguments, so that
            # nothing is folded into the program.
            def total(k, n, a, b, log_pmf=log_pmf):
                return jnp.sum(log_pmf(k, n, a, b))

            programs.append(partial(jax.jit(jax.value_and_grad(total, (2, 3))), *arguments))
        ours, theirs = race(rounds, *programs).T
        lines.append([name, *ratio(ours, theirs)])
    return "\n\n".join(
        [
            "## Speed of the log-pmf with its gradient",
            f"`jit(value_and_grad(sum))` by a and b on {rows:,} rows in float32: concentrations "
            f"0.1 to 1e4, up to 1,000 trials. Medians of {rounds} rounds in turn.",
            table(["", "ldf", "NumPyro", "ratio", "range of the ratio"], lines),
        ]
    )


# --- (3) Speed of the posterior's quantiles -------------------------------------------------


def speed_of_quantiles(rows: int, rounds: int) -> str:
    rng = np.random.default_rng(1)
    first = 10 ** rng.uniform(-1, 4, rows)
    second = 10 ** rng.uniform(-1, 4, rows)
    binomial, poisson = ldf.Binomial(), ldf.Poisson()
    comparisons = (
        (
            "beta",
            binomial.posterior(binomial.prior(successes=first, failures=second)),
            lambda: scipy.stats.beta.ppf(0.05, first, second),
            scipy.stats.beta.mean(first, second),
        ),
        (
            "gamma",
            poisson.posterior(poisson.prior(count=first, exposure=second)),
            lambda: scipy.stats.gamma.ppf(0.05, first, scale=1 / second),
            scipy.stats.gamma.mean(first, scale=1 / second),
        ),
    )
    lines = []
    for name, posterior, ppf, middle in comparisons:
        runs = {
            "quantile(0.05)": partial(posterior.quantile, 0.05),
            "cdf(mean)": partial(posterior.cdf, middle),
            "interval(0.9)": partial(posterior.interval, 0.9),
        }
        *ours, theirs = race(rounds, *runs.values(), ppf).T
        for label, seconds in zip(runs, ours, strict=True):
            lines.append([f"{name}, {label}", *ratio(seconds, theirs)])
    return "\n\n".join(
        [
            "## Speed of quantiles",
            f"On {rows:,} posteriors, parameters log-uniform from 0.1 to 1e4, beside SciPy's "
            f"`ppf(0.05)` of the same distribution. Medians of {rounds} rounds in turn.",
            table(["", "ldf", "SciPy ppf", "ratio", "range of the ratio"], lines),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9, help="of the log-pmfs")
    parser.add_argument("--quantile-rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="also to docs/numerics-measured.md")
    options = parser.parse_args()
    sections = ["# Numerics, measured", machine()]
    print("\n\n".join(sections), flush=True)
    for section in (
        accuracy,
        partial(speed_of_log_pmf, options.rows, options.rounds),
        partial(speed_of_quantiles, options.rows, options.quantile_rounds),
    ):
        sections.append(section())
        print(f"\n{sections[-1]}", flush=True)
    if options.write:
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
