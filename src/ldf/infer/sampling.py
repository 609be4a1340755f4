"""One verb for all samplers of a mixture's posterior: `sample`.

`method` says what is drawn and what is integrated out:

    marginal         β, with z and θ summed out: all but independent draws (the default)
    theta-collapsed  β and z in turn, with θ integrated out
    beta-collapsed   z, one unit after the other, with θ and β integrated out
    gibbs            β, z and θ in turn

All have the same posterior. What a method has integrated out, and is to be kept, is drawn exactly
afterwards. Where the marginal's proposal does not fit (dozens of components, or pseudo-counts far
below one and few units), θ-collapsed Gibbs takes its place, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ldf import check
from ldf.infer import collapsed, gibbs, marginal
from ldf.infer.chains import Chains
from ldf.infer.mixture import MixtureProblem, on_device
from ldf.special import Array, check_draws

CHUNK = 100  # sweeps of one call of the compiled program
KEPT = ("weights", "assignment", "theta")
SWEEPS: dict[str, Callable[..., Any]] = {
    "theta-collapsed": collapsed.sweep,
    "beta-collapsed": collapsed.urn_sweep,
    "gibbs": gibbs.sweep,
}


def sample(
    problem: MixtureProblem,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    method: str = "marginal",
    warmup: int = 500,
    keep: Collection[str] = ("weights",),
) -> Chains:
    """Draws of the posterior of "weights", and of "assignment" and "theta" if they are to be kept:
    those are large. Sweeps of `warmup` are discarded; the marginal sampler needs none."""
    check_draws(draws, seed)
    check_draws(chains, seed)
    check.one_of("method", method, ("marginal", *SWEEPS))
    for name in keep:
        check.one_of("keep", name, KEPT)
    first, second, third = np.random.SeedSequence(seed).spawn(3)
    found: dict[str, Any] = {}
    accepted = None
    if method == "marginal":
        drawn = marginal.draw(problem, draws, chains, np.random.default_rng(first))
        if drawn is None:
            method = "theta-collapsed"
        else:
            found["weights"], accepted = drawn
    if method in SWEEPS:
        found = _run(problem, draws, chains, first, method, warmup, keep)
    if "assignment" not in found and {"assignment", "theta"} & set(keep):
        weights = found["weights"].reshape(-1, problem.components)
        assignment = problem.draw_assignment(weights, np.random.default_rng(second))
        found["assignment"] = assignment.reshape(chains, draws, -1)
    if "theta" in keep and "theta" not in found:
        assignment = found["assignment"].reshape(-1, problem.units)
        theta = problem.draw_theta(assignment, third)
        split = lambda value: value.reshape(chains, draws, *value.shape[1:])  # noqa: E731
        found["theta"] = jax.tree.map(split, theta)
    kept = {name: found[name] for name in ("assignment", "theta") if name in keep}
    return Chains(problem, method, found["weights"], accepted=accepted, **kept)


def _run(
    problem: MixtureProblem,
    draws: int,
    chains: int,
    seed: np.random.SeedSequence,
    method: str,
    warmup: int,
    keep: Collection[str],
) -> dict[str, Any]:
    """Chunks of sweeps, from weights drawn from their prior."""
    first, second, third = seed.spawn(3)
    rng = np.random.default_rng(first)
    log_weights = np.log(np.maximum(rng.dirichlet(problem.pseudo_counts, chains), 1e-300))
    assignment = problem.draw_assignment(np.exp(log_weights), rng)
    full = method == "gibbs"
    names = tuple(name for name in KEPT if name in keep and (full or name != "theta"))
    if "theta" in keep and not full and "assignment" not in names:
        names = (*names, "assignment")
    pieces = []
    with jax.enable_x64(True):
        if full:
            theta = problem.draw_theta(assignment, second)
            known, state = problem, gibbs.State(log_weights, assignment, theta)
        else:
            known = collapsed.Given(problem.log_predictive, problem.pseudo_counts)
            state = collapsed.State(log_weights, assignment)
        known, state = on_device(known), on_device(state)
        keys = jax.random.split(
            jax.random.key(int(third.generate_state(1)[0])), -(-(warmup + draws) // CHUNK)
        )
        for number, key in enumerate(keys):
            state, piece, lost = advance(SWEEPS[method], known, state, key, names)
            if bool(lost):
                why = "a draw lies where no component has density that a float can hold"
                remedy = "choose another method, which does without draws of θ"
                check.exists("assignment given θ", False, why, remedy)
            if (number + 1) * CHUNK > warmup:
                pieces.append(jax.tree.map(np.asarray, piece))
    skip = warmup % CHUNK
    join = lambda *parts: np.concatenate(parts)[skip : skip + draws].swapaxes(0, 1)  # noqa: E731
    found = jax.tree.map(join, *pieces)
    return {**found, "weights": np.exp(found["weights"])}


@eqx.filter_jit
def advance(
    sweep: Callable[..., Any],
    known: Any,
    state: Any,
    key: Array,
    names: tuple[str, ...],
) -> tuple[Any, dict[str, Any], Array]:
    """CHUNK sweeps: where they end, what is kept of each, and whether an assignment was lost."""

    def one(state: Any, key: Array) -> tuple[Any, tuple[dict[str, Any], Array]]:
        state = sweep(known, state, key)
        kept = {name: getattr(state, name) for name in names if name != "weights"}
        return state, ({**kept, "weights": state.log_weights}, (state.assignment < 0).any())

    state, (kept, lost) = jax.lax.scan(one, state, jax.random.split(key, CHUNK))
    return state, kept, lost.any()
