"""How many effective draws of a mixture's weights come in a second, beside NumPyro, in one run.

The counties of 2010 (homicides, population as exposure) and K = 3 log-linear mappings of their
Census columns, fitted together by L-BFGS on the exact marginal with point weights. The mappings are
then known, and β ~ Dir(1) is inferred with 4 chains: by the samplers here, and by NumPyro's NUTS in
its best form, with θ and z summed out, so that its model is a Dirichlet and one factor of a product
of K × counties. NUTS runs vectorised, with a dense mass matrix, for the best of several lengths of
warm-up, in float32 and in float64. Effective draws are ArviZ's, in the bulk, of the weight that has
the fewest.

Then what auxiliary data cost: a sweep of full Gibbs, and the posterior of every θ in closed form,
with λ0 + T_x of every county and with primary data alone, in turns; medians of processor time, and
the median and the quartiles of the ratios of the turns. Draws and quantiles of a Gamma cost more or
less by its shape, so the prior of primary data alone is once as strong, λ0 + T_x of another county
drawn by lot, and once the weak λ0 itself.

    python bench/infer.py [--data ../shared/data] [--draws 1000] [--rounds 9]

NumPyro is an extra: pip install 'ldf[numpyro]', or be told only of ldf.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import minimize

import ldf
from ldf import infer
from ldf.infer import gibbs
from ldf.infer.mixture import on_device
from ldf.infer.sampling import CHUNK, advance

COMPONENTS, CHAINS = 3, 4
WARMUPS = (100, 300, 600)
family = ldf.Poisson()


def counties(folder: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Features, ranked to normal scores (a missing cell is in the middle), and primary data."""
    about = json.loads((folder / "registry.json").read_text())["homicide"]
    frame = pd.read_csv(folder / about["file"])
    y = {"count": frame[about["y"]].to_numpy(float)}
    y["exposure"] = frame[about["n"]].to_numpy(float) / 1000  # thousands, as in the paper
    x = frame[about["features"]].rank(pct=True).fillna(0.5).to_numpy(float) - 0.5
    return np.sqrt(12) * x, y


def mappings(x: np.ndarray, y: dict[str, np.ndarray], prior: Any, seed: int = 0) -> Any:
    """T_x of K mappings: exposure is a constant of each, the log rate is linear in x."""
    columns = x.shape[1]
    rate = y["count"].sum() / y["exposure"].sum()
    start = np.random.default_rng(seed).normal(size=(COMPONENTS, columns + 3)) * 0.1
    start[:, 0] += np.log(rate)

    def statistic(weights: Any) -> Any:
        log_rate = weights[:, :1] + weights[:, 3:] @ x.T
        exposure = jnp.exp(weights[:, 1:2] + 0 * log_rate)
        return family.natural(exposure * jnp.exp(log_rate), exposure)

    def objective(flat: Any) -> Any:
        weights = flat.reshape(start.shape)
        each = family.log_predictive(prior + statistic(weights), **y)
        log_share = jax.nn.log_softmax(weights[:, 2])
        fit = jax.scipy.special.logsumexp(log_share[:, None] + each, axis=0).mean()
        # Penalties keep slopes small and all components in use.
        return -fit + 1e-3 * (weights[:, 3:] ** 2).sum() - 0.03 * log_share.mean()

    with jax.enable_x64(True):
        step = jax.jit(jax.value_and_grad(objective))
        both = lambda flat: tuple(np.asarray(part) for part in step(jnp.asarray(flat)))  # noqa: E731
        found = minimize(both, start.reshape(-1), jac=True, method="L-BFGS-B")
        weights = found.x.reshape(start.shape)
        return jax.tree.map(np.asarray, statistic(jnp.asarray(weights)))


def effective(weights: np.ndarray) -> float:
    """Draws, of the weight that has the fewest."""
    return float(arviz.ess(arviz.convert_to_dataset({"weights": weights}))["weights"].min())


def numpyro_sampler(problem: Any, draws: int, warmup: int) -> Callable[[int], np.ndarray]:
    """NUTS on β alone; the function returned may be called again without compiling."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    likely = jnp.asarray(problem.likely())
    alpha = jnp.asarray(problem.pseudo_counts)

    def model() -> None:
        weights = numpyro.sample("weights", dist.Dirichlet(alpha))
        numpyro.factor("units", jnp.log(weights @ likely).sum())

    mcmc = MCMC(
        NUTS(model, dense_mass=True),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )

    def run(seed: int) -> np.ndarray:
        mcmc.run(jax.random.key(seed))
        return np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])

    return run


def speed(name: str, run: Callable[[int], np.ndarray]) -> tuple[str, float, float]:
    """Effective draws a second with compiling and, in a second run, without."""
    rates, text = [], f"{name:38}"
    for seed in (0, 1):
        begin = time.perf_counter()
        weights = run(seed)
        seconds = time.perf_counter() - begin
        draws = effective(weights)
        rates.append(draws / seconds)
        text += f"{draws:9,.0f} in {seconds:6.2f} s {rates[-1]:10,.0f}/s"
    print(text, flush=True)
    return name, rates[0], rates[1]


def samplers(problem: Any, draws: int) -> None:
    print(f"{'':38}{'with compiling':>34}{'compiled already':>33}")
    ours = [
        speed(
            f"ldf, {method}",
            lambda seed, method=method: (
                infer.sample(problem, draws, CHAINS, seed, method=method).weights
            ),
        )
        for method in ("marginal", "theta-collapsed", "beta-collapsed", "gibbs")
    ]
    try:
        import numpyro  # noqa: F401
    except ImportError:
        print("NumPyro is not installed: pip install 'ldf[numpyro]' to compare")
        return
    theirs = []
    for double, warmup in itertools.product((False, True), WARMUPS):
        name = f"NumPyro NUTS, float{32 * (1 + double)}, {warmup} warm-up"
        with jax.enable_x64(double):
            theirs.append(speed(name, numpyro_sampler(problem, draws, warmup)))
    for words, at in (("with compiling", 1), ("compiled already", 2)):
        best, other = (max(rows, key=lambda row: row[at]) for rows in (ours, theirs))
        print(f"{words}: {best[0]} has {best[at] / other[at]:.1f} times as many as {other[0]}")


def compare(name: str, both: Any, primary: Any, rounds: int, number: int = 1) -> None:
    """With auxiliary data and without, `number` at a time, one after the other in every round."""
    times: list[list[float]] = []
    for turn in range(1 + rounds):
        seconds = []
        for run in (both, primary) if turn % 2 else (primary, both):
            begin = time.process_time()
            run()
            seconds.append((time.process_time() - begin) / number)
        times.append(seconds if turn % 2 else seconds[::-1])
    del times[0]  # compiling
    first, second = (1000 * median(column) for column in zip(*times, strict=True))
    low, ratio, high = np.quantile([one / two for one, two in times], [0.25, 0.5, 0.75])
    print(
        f"{name:32} with auxiliary data {first:.3f} ms, primary alone {second:.3f} ms: "
        f"{ratio:.3f} times ({low:.3f} to {high:.3f} in half of the turns)"
    )


def cost(priors: Any, pseudo: Any, y: dict[str, np.ndarray], rounds: int) -> None:
    """Sweeps and closed-form posteriors with auxiliary data and without."""

    def sweeps(natural: Any) -> Callable[[], Any]:
        problem = infer.MixtureProblem.of(family, natural, y)
        rng, seed = np.random.default_rng(0), np.random.SeedSequence(0)
        weights = rng.dirichlet(problem.pseudo_counts, CHAINS)
        assignment = problem.draw_assignment(weights, rng)
        state = gibbs.State(np.log(weights), assignment, problem.draw_theta(assignment, seed))
        known, state, key = on_device(problem), on_device(state), jax.random.key(0)
        return lambda: jax.block_until_ready(advance(gibbs.sweep, known, state, key, ()))

    def posterior(*parts: Any) -> Callable[[], Any]:
        def run() -> Any:
            known = family.posterior(sum(parts, family.statistic(**y)))
            return known.mean(), known.sd(), known.quantile(0.05), known.quantile(0.95)

        return run

    with jax.enable_x64(True):
        of_county = priors + pseudo
        strong = of_county[:, np.random.default_rng(0).permutation(of_county.shape[1])]
        both = sweeps(of_county)
        for name, alone in (("as strong", strong), ("weak", priors)):
            primary = sweeps(alone.spread(of_county.shape))
            compare(f"sweep of Gibbs, prior {name}", both, primary, 2 * rounds, CHUNK)
    both = posterior(priors[0], pseudo[0])
    for name, alone in (("as strong", strong[0]), ("weak", priors[0])):
        compare(f"closed form, prior {name}", both, posterior(alone), 20 * rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    x, y = counties(options.data)
    # Without auxiliary data the components would be these: one prior of rates each.
    priors = family.prior(count=[[0.5], [1.0], [2.0]], exposure=[[20.0], [20.0], [20.0]])
    pseudo = mappings(x, y, priors)
    problem = infer.MixtureProblem.of(family, priors + pseudo, y)
    print(f"{problem.units:,} counties, {COMPONENTS} components, {CHAINS} × {options.draws} draws")
    samplers(problem, options.draws)
    cost(priors, pseudo, y, options.rounds)


if __name__ == "__main__":
    main()
