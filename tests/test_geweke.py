"""Geweke's joint-distribution test: samplers against the model that they should sample from.

β, z, θ and y are drawn from the model. Then chains go on: y given θ, then the sampler's own step
given y. If every conditional is right, (β, z, θ, y) keep the model's distribution for ever; if one
is not, they drift away from it. Chains start at draws of the model and are independent of each
other, so the spread of their means is the error, however slowly each of them moves.

What is broken is given to the sampler as a conditional: it adds to the counts of a component, or
does not heed the primary data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ldf
from ldf.infer import MixtureProblem, collapsed, gibbs, marginal
from ldf.infer.gibbs import Conditionals

family = ldf.Binomial()
A = np.array([[2.0, 4.0, 1.5, 3.0], [6.0, 3.0, 5.0, 4.0]])
B = np.array([[5.0, 3.0, 4.0, 6.0], [2.0, 5.0, 3.0, 3.0]])
NATURAL = family.natural(A, B)
TRIALS = np.array([6.0, 3.0, 9.0, 6.0])
ALPHA = np.array([1.5, 2.5])
UNITS = np.arange(4)

Variables = tuple[Any, Any, Any, Any]  # β, z, θ, y: the first axis is chains


def of_model(number: int, seed: int) -> Variables:
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(ALPHA, number)
    z = (rng.random((number, 4)) > beta[:, :1]).astype(np.int32)
    theta = rng.beta(A[z, UNITS], B[z, UNITS])
    return beta, z, theta, rng.binomial(TRIALS.astype(int), theta).astype(float)


def functions(beta: Any, z: Any, theta: Any, y: Any) -> Any:
    """What is compared: chains × functions. Those of θ are left out where it is integrated out."""
    found = [beta[:, 0], beta[:, 0] ** 2, z.mean(1), beta[:, 0] * z.mean(1), z[:, 0] * z[:, 1]]
    found += [y.mean(1), y[:, 2] * z[:, 2], y.mean(1) * beta[:, 0]]
    if theta is not None:
        found += [theta[:, 0], theta[:, 2] ** 2, theta[:, 0] * z[:, 0], y[:, 2] * theta[:, 2]]
    return (jnp if isinstance(beta, jax.Array) else np).stack(found, 1)


KNOWN = functions(*of_model(200_000, 9))


def scores(of_chains: np.ndarray) -> np.ndarray:
    """z-scores, from each chain's means: chains × functions."""
    known = KNOWN[:, : of_chains.shape[1]]
    error = np.hypot(of_chains.std(0) / len(of_chains) ** 0.5, known.std(0) / len(known) ** 0.5)
    return (of_chains.mean(0) - known.mean(0)) / error


# The predictives of all that can be seen: components × units × successes.
COUNTS = np.minimum(np.arange(TRIALS.max() + 1), TRIALS[:, None])
PREDICTIVE = family.log_predictive(NATURAL[..., None], COUNTS, 0 * COUNTS + TRIALS[:, None])


def with_data(y: Any, heed: Any = 1.0) -> MixtureProblem:
    """The problem of one chain's y, traced."""
    natural = jax.tree.map(jnp.asarray, NATURAL)
    return MixtureProblem(
        family,
        natural,
        family.natural(heed * y, heed * (jnp.asarray(TRIALS) - y)),
        heed * jnp.asarray(PREDICTIVE)[:, UNITS, y.astype(int)],
        0 * y,
        jnp.asarray(family.log_partition(NATURAL)),
        jnp.asarray(ALPHA),
    )


def weights_with(extra: Any) -> Any:
    """β given z, with so many counts too many."""

    def draw(known: Any, assignment: Any, key: Any) -> Any:
        counts = known.pseudo_counts + extra
        return gibbs.draw_weights(collapsed.Given(known.log_predictive, counts), assignment, key)

    return draw


@eqx.filter_jit
def full(start: Variables, uniform: Any, key: Any, extra: Any, heed: Any) -> Any:
    """Gibbs over (β, z, θ): each chain's means. y is counted from `uniform`, steps × chains × units
    × trials. Nothing is broken at extra = 0 and heed = 1."""
    draw = Conditionals(weights=weights_with(extra))
    asked = jnp.arange(TRIALS.max()) < TRIALS[:, None]

    def step(now: Variables, uniform: Any, key: Any) -> Variables:
        beta, z, theta, _ = now
        y = ((uniform < theta[:, None]) & asked).sum(1).astype(float)
        state = gibbs.State(jnp.log(beta)[None], z[None], theta[None])
        state = gibbs.sweep(with_data(y, heed), state, key, draw)
        return jnp.exp(state.log_weights[0]), state.assignment[0], state.theta[0], y

    return means(step, start, uniform, key)


@eqx.filter_jit
def without_theta(
    sweep: Any, start: Variables, tables: Any, key: Any, extra: Any, heed: Any
) -> Any:
    """Collapsed Gibbs likewise. y is the assigned component's in `tables` of draws of predictives,
    steps × chains × components × units."""

    def step(now: Variables, table: Any, key: Any) -> Variables:
        beta, z, _, _ = now
        y = table[z, UNITS]
        counts = jnp.asarray(ALPHA)
        if sweep is collapsed.urn_sweep:
            counts = counts + extra
        given = collapsed.Given(with_data(y, heed).log_predictive, counts)
        state = collapsed.State(jnp.log(beta)[None], z[None])
        draw = collapsed.THETA_COLLAPSED
        if sweep is collapsed.sweep:
            draw = draw._replace(weights=weights_with(extra))
        state = sweep(given, state, key, draw)
        return jnp.exp(state.log_weights[0]), state.assignment[0], None, y

    return means(step, start, tables, key)


def means(step: Any, start: Variables, noise: Any, key: Any) -> Any:
    """Of the functions, over the steps of each chain."""

    def one(now: Variables, noise_and_key: Any) -> tuple[Variables, Any]:
        noise, key = noise_and_key
        now = jax.vmap(step)(now, noise, jax.random.split(key, len(start[0])))
        return now, functions(*now)

    keys = jax.random.split(key, len(noise))
    return jax.lax.scan(one, start, (noise, keys))[1].mean(0)


def drift(method: str, extra: Any, heed: float) -> float:
    """The largest z-score."""
    chains, steps = 400, 100
    beta, z, theta, y = of_model(chains, 1)
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        broken = jnp.asarray(extra), jnp.asarray(heed)
        if method == "gibbs":
            noise = rng.random((steps, chains, 4, int(TRIALS.max())))
            start = jax.tree.map(jnp.asarray, (beta, z, theta, y))
            found = full(start, jnp.asarray(noise), jax.random.key(2), *broken)
        else:
            tables = rng.binomial(TRIALS.astype(int), rng.beta(A, B, (steps, chains, 2, 4)))
            start = (jnp.asarray(beta), jnp.asarray(z), None, jnp.asarray(y))
            sweep = {"theta-collapsed": collapsed.sweep, "beta-collapsed": collapsed.urn_sweep}
            noise = jnp.asarray(tables.astype(float))
            found = without_theta(sweep[method], start, noise, jax.random.key(2), *broken)
    return float(np.abs(scores(np.asarray(found))).max())


RIGHT = ([0.0, 0.0], 1.0)
BROKEN = {"a count too many": ([1.0, 0.0], 1.0), "data not heeded": ([0.0, 0.0], 0.0)}


@pytest.mark.parametrize("method", ["gibbs", "theta-collapsed", "beta-collapsed"])
def test_the_model_is_kept_by_what_is_right_alone(method: str) -> None:
    assert drift(method, *RIGHT) < 4.5
    for extra, heed in BROKEN.values():
        assert drift(method, extra, heed) > 8


def marginal_drift(breaks: Any = None) -> float:
    """The largest z-score, if the target is what `breaks` makes of it."""
    chains, steps = 30, 20
    rng = np.random.default_rng(3)
    beta, z, _, _ = of_model(chains, 4)
    any_data = {"successes": TRIALS, "trials": TRIALS}
    problem = MixtureProblem.of(family, NATURAL, any_data, ALPHA)
    found = []
    for _ in range(steps):
        y = rng.binomial(TRIALS.astype(int), rng.beta(A[z, UNITS], B[z, UNITS]))
        for c in range(chains):
            problem = replace(problem, log_predictive=PREDICTIVE[:, UNITS, y[c]])
            target: Any = marginal.Target(problem)
            proposal = marginal.fit(target, rng).proposal
            if breaks is not None:
                target = breaks(target)
            start = np.log(beta[c : c + 1, :1] / beta[c : c + 1, 1:])
            u, _ = marginal.walk(target, proposal, start, 2, rng)
            beta[c] = np.exp(marginal.log_softmax(u[-1, 0]))
            z[c] = problem.draw_assignment(beta[c : c + 1], rng)[0]
        found.append(functions(beta, z, None, y))
    return float(np.abs(scores(np.mean(found, 0))).max())


def without_jacobian(target: Any) -> Any:
    """The density of β, not that of u."""
    return lambda u: target(u) - marginal.log_softmax(u).sum(-1)


def with_a_count_too_many(target: Any) -> Any:
    return lambda u: target(u) + marginal.log_softmax(u)[:, 0]


def test_the_model_is_kept_by_the_marginal_sampler() -> None:
    assert marginal_drift() < 4.5


@pytest.mark.parametrize("breaks", [without_jacobian, with_a_count_too_many])
def test_a_broken_marginal_sampler_drifts(breaks: Any) -> None:
    assert marginal_drift(breaks) > 8
