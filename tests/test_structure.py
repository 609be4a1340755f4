"""What ties units together: terms on rates, hierarchy, space, time, and the marginal over γ."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logit, logsumexp, softmax

import ldf
from ldf.check import DataError
from ldf.infer.nuts import log_density
from ldf.structure import Hierarchy, Space, Structure, Time, joint_marginal, tilt
from ldf.structure.space import autoregression

BINOMIAL, POISSON, GAUSSIAN = ldf.Binomial(), ldf.Poisson(), ldf.Gaussian(variance=1.0)
TRIALS, ARRIVALS = BINOMIAL.prior(0.6, 1.4), POISSON.prior(2.0, 1.5)
POTENTIAL = GAUSSIAN.prior(0.5, 2.0)
CLASSES = ldf.Multinomial().prior([1.0, 2.0, 3.0])
RING = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])

STRUCTURES: dict[str, Structure] = {
    "hierarchy": Hierarchy(["a", "b", "a"], ARRIVALS),
    "nested": Hierarchy([["n", "n", "s"], [1, 2, 1]], TRIALS, scale=0.7),
    "hierarchy on the rate": Hierarchy([0, 1, 1], POTENTIAL, on="rate", strength=True, scale=2.0),
    "of classes": Hierarchy([0, 1], CLASSES, on="rate"),
    "space": Space([[0, 1], [1, 2]], TRIALS, areas=4, scale=0.5),
    "intrinsic": Space(RING, ARRIVALS, share=1.0),
    "time": Time([2001, 2004, 2002], ARRIVALS, scale=0.3),
}
every_structure = pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES.keys())


def draw(structure: Structure, seed: int = 0) -> Any:
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, structure.sample_prior(jax.random.key(seed)))


def natural(structure: Structure, gamma: Any, pseudo: Any) -> Any:
    with jax.enable_x64(True):
        gamma = jax.tree.map(jnp.asarray, gamma)
        return jax.tree.map(np.asarray, structure.natural(gamma, pseudo))


# --- a term on the rate --------------------------------------------------------------------------


def test_a_term_moves_the_rate_and_keeps_the_number() -> None:
    term = np.array([-3.0, 0.0, 0.4, 800.0])
    trials = tilt(TRIALS, term)
    np.testing.assert_allclose(trials.n, 2.0)
    np.testing.assert_allclose(trials.successes / 2, expit(logit(0.3) + term))
    np.testing.assert_allclose(tilt(TRIALS, -term).failures / 2, expit(logit(0.7) + term))
    arrivals = tilt(ARRIVALS, term[:3])
    np.testing.assert_allclose(arrivals.count, 2 * np.exp(term[:3]))
    np.testing.assert_array_equal(arrivals.exposure, 1.5)
    moved = GAUSSIAN.posterior(tilt(POTENTIAL, term))
    np.testing.assert_allclose(moved.mean(), 0.5 + term)
    np.testing.assert_allclose(moved.variance(), 2.0)
    terms = np.array([[0.0, 1.0, -1.0], [900.0, 0.0, 0.0]])
    shares = tilt(CLASSES, terms).counts
    np.testing.assert_allclose(shares, 6 * softmax(np.log([1, 2, 3]) + terms, -1), atol=1e-300)


def test_a_term_leaves_nothing_as_it_is_and_has_a_slope_everywhere() -> None:
    nothing = BINOMIAL.prior([0.0, 1.0], [0.0, 0.0])
    np.testing.assert_array_equal(tilt(nothing, np.array([2.0, 2.0])).successes, [0, 1])
    with jax.enable_x64(True):
        for at in (-700.0, 0.0, 2.0):
            slope = jax.grad(lambda e: tilt(TRIALS, e).successes)(at)
            np.testing.assert_allclose(slope, 2 * expit(logit(0.3) + at) * expit(-logit(0.3) - at))
    with pytest.raises(TypeError, match="Moments has no rate to add a term to"):
        tilt(ldf.Normal().prior(0.0, 1.0, 1.0, 1.0), np.zeros(()))


# --- priors --------------------------------------------------------------------------------------


@every_structure
def test_the_log_prior_is_that_of_the_draws(structure: Structure) -> None:
    """Of any density without bounds, E ∂log p = 0 and E γ ∂log p = −1 in each coordinate."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), 20_000)
        draws = jax.jit(jax.vmap(structure.sample_prior))(keys)
        slopes = jax.jit(jax.vmap(jax.grad(structure.log_prior)))(draws)
        draws, slopes = jax.tree.map(np.asarray, (draws, slopes))
    for gamma, slope in zip(jax.tree.leaves(draws), jax.tree.leaves(slopes), strict=True):
        for wanted, values in ((0.0, slope), (-1.0, gamma * slope)):
            error = 4.5 * values.std(0) / np.sqrt(len(keys))
            assert (np.abs(values.mean(0) - wanted) <= error).all()


def test_the_log_prior_integrates_to_one() -> None:
    structure = Time([0.0, 1.0], ARRIVALS, scale=0.5)
    at = np.arange(-12, 3, 0.01)
    with jax.enable_x64(True):
        zero = jnp.zeros(())

        def of_spread(log_spread: Any) -> Any:
            return structure.log_prior(
                {"level": zero, "log_spread": log_spread, "step": jnp.zeros(1)}
            )

        log_density = np.asarray(jax.vmap(of_spread)(jnp.asarray(at)))
    two_normals = -np.log(2 * np.pi) - np.log(0.5)
    np.testing.assert_allclose(np.exp(log_density).sum() * 0.01, np.exp(two_normals), rtol=1e-3)


@every_structure
def test_quantities_and_naturals_are_finite(structure: Structure) -> None:
    gamma = draw(structure)
    with jax.enable_x64(True):
        quantities = structure.quantities(jax.tree.map(jnp.asarray, gamma))
        assert all(np.isfinite(q).all() for q in quantities.values())
    units = len(natural(structure, gamma, structure.prior.zero()))
    for value in natural(structure, gamma, structure.prior.spread((units,))).coordinates():
        assert np.isfinite(value).all()
        assert value.shape[0] == units


# --- hierarchy -----------------------------------------------------------------------------------


def test_nested_groups_add_level_by_level() -> None:
    region, district = ["n", "n", "s", "s"], [1, 2, 1, 1]  # district 1 of n is not that of s
    structure = Hierarchy([region, district], ARRIVALS)
    assert [len(level) for level in structure.groups] == [2, 3]
    gamma = draw(structure)
    rate, strength = gamma["rate"], gamma["strength"]
    pseudo = POISSON.prior([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0])
    found = natural(structure, gamma, pseudo)
    for unit, (r, d) in enumerate([(0, 0), (0, 1), (1, 2), (1, 2)]):
        e, s = (
            of["mean"]
            + np.exp(of["log_spread"][0]) * of["z"][0][r]
            + np.exp(of["log_spread"][1]) * of["z"][1][d]
            for of in (rate, strength)
        )
        np.testing.assert_allclose(found.exposure[unit], 1.5 * np.exp(s) + 1)
        np.testing.assert_allclose(found.count[unit], 2 * np.exp(e + s) + unit + 1)


def test_labels_permute_without_effect() -> None:
    """Other names and another order of groups: the same density, with the groups' terms moved."""
    one, two = Hierarchy([0, 0, 1, 2], ARRIVALS), Hierarchy(["c", "c", "a", "b"], ARRIVALS)
    gamma, pseudo = draw(one), POISSON.prior([1.0, 2, 3, 4], [1.0, 1, 1, 1])
    first, second = (natural(of, gamma, pseudo) for of in (one, two))
    np.testing.assert_array_equal(first.count, second.count)
    units = np.array([3, 1, 0, 2])  # another order of units is another order of first appearance
    mixed = Hierarchy(np.array([0, 0, 1, 2])[units], ARRIVALS)
    order = [mixed.groups[0].index((g,)) for g in range(3)]
    moved = jax.tree.map(lambda z: z, gamma)
    for part in ("rate", "strength"):
        moved[part]["z"] = [gamma[part]["z"][0][np.argsort(order)]]
    np.testing.assert_allclose(natural(mixed, moved, pseudo[units]).count, first.count[units])
    with jax.enable_x64(True):
        np.testing.assert_allclose(one.log_prior(gamma), mixed.log_prior(moved))


def test_without_spread_one_group_is_no_hierarchy() -> None:
    pseudo = BINOMIAL.prior([1.0, 0.0, 5.0], [2.0, 0.0, 1.0])
    for on in ("prior", "rate"):
        structure = Hierarchy(["all"] * 3, TRIALS, on=on)
        gamma = jax.tree.map(np.zeros_like, draw(structure))
        for of in gamma.values():
            of["log_spread"] = np.array([-50.0])
            of["z"] = [np.array([1.3])]
        found = natural(structure, gamma, pseudo)
        np.testing.assert_allclose(found.successes, (TRIALS + pseudo).successes)
        np.testing.assert_allclose(found.failures, (TRIALS + pseudo).failures)


@pytest.mark.parametrize("spread", [1e-4, 0.7, 1e4])
def test_partial_pooling_of_means_is_the_textbooks(spread: float) -> None:
    """Measurements with known variance: given the spread a group's term is Gaussian, and shrinks
    from its own mean (much spread) to nothing (no spread)."""
    groups, y = np.array([0, 0, 0, 1]), np.array([2.0, 3.0, 2.5, -1.0])
    structure = Hierarchy(groups, POTENTIAL, on="rate")
    pseudo = POTENTIAL.zero().spread((4,))
    with jax.enable_x64(True):

        def minus(z: Any) -> Any:
            rate = {"mean": jnp.zeros(()), "log_spread": jnp.log(jnp.array([spread])), "z": [z]}
            columns = {"mean": jnp.asarray(y), "n": jnp.ones(4)}
            return -log_density(structure, GAUSSIAN, {"rate": rate}, pseudo, columns, np.arange(4))

        start = jnp.zeros(2)  # quadratic in z: one step of Newton's is exact
        slope, curvature = jax.jit(lambda z: (jax.grad(minus)(z), jax.hessian(minus)(z)))(start)
        mode = -np.linalg.solve(curvature, slope)
    size, own = np.array([3, 1]), np.array([2.5, -1.0]) - 0.5
    noise = (2.0 + 1.0) / size  # of θ about its group, and of y about θ
    np.testing.assert_allclose(spread * mode, own * spread**2 / (spread**2 + noise), rtol=1e-6)


def test_other_units_of_known_groups() -> None:
    structure = Hierarchy(["a", "b", "a"], ARRIVALS)
    gamma = draw(structure)
    found = natural(structure.at(["b", "a"]), gamma, ARRIVALS.zero())
    np.testing.assert_array_equal(
        found.count, natural(structure, gamma, ARRIVALS.zero()).count[1::-1]
    )
    with pytest.raises(
        DataError, match="row 1: 'c' is not a known group; build the hierarchy with"
    ):
        structure.at(["a", "c"])


# --- space ---------------------------------------------------------------------------------------


def test_the_autoregression_is_that_of_the_laplacian_and_scaled() -> None:
    """Part by part: a generalised inverse by a dense computation, its variances' geometric mean
    one, sums of zero, and the quadratic form of neighbours' differences."""
    graph = np.zeros((7, 7))
    for i, j in [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5)]:
        graph[i, j] = graph[j, i] = 1
    root, part = autoregression(graph)
    np.testing.assert_array_equal(part, [0, 0, 0, 0, 1, 1, 2])
    covariance = root @ root.T
    assert root.shape == (7, 3 + 1 + 1)
    for members in ([0, 1, 2, 3], [4, 5]):
        inner = graph[np.ix_(members, members)]
        dense = np.linalg.pinv(np.diag(inner.sum(1)) - inner)
        dense = dense / np.exp(np.log(np.diag(dense)).mean())
        np.testing.assert_allclose(covariance[np.ix_(members, members)], dense, atol=1e-12)
        np.testing.assert_allclose(root[members].sum(0), 0, atol=1e-12)
    np.testing.assert_allclose(covariance[4:6, 4:6], [[1, -1], [-1, 1]], atol=1e-12)
    np.testing.assert_array_equal(covariance[6], [0, 0, 0, 0, 0, 0, 1])  # an island
    z = np.random.default_rng(0).normal(size=5)
    u = root @ z
    differences = [(u[i] - u[j]) ** 2 for i, j in [(0, 1), (1, 2), (2, 0), (2, 3)]]
    laplacian = np.diag(graph[:4, :4].sum(1)) - graph[:4, :4]
    scale = np.exp(np.log(np.diag(np.linalg.pinv(laplacian))).mean())
    np.testing.assert_allclose(scale * sum(differences), (z[:3] ** 2).sum())


def test_without_share_areas_are_independent() -> None:
    structure = Space(RING, ARRIVALS, share=0.0)
    gamma = draw(structure)
    with jax.enable_x64(True):
        expected = gamma["level"][0] + np.exp(gamma["log_spread"]) * gamma["v"]
        np.testing.assert_allclose(structure.terms(gamma), expected)
        learned = Space(RING, ARRIVALS)
        low = {**gamma, "logit_share": jnp.asarray(-80.0)}
        np.testing.assert_allclose(learned.terms(low), expected)
        all_spatial = np.exp(gamma["log_spread"]) * (structure.root @ gamma["u"])
        high = {**gamma, "logit_share": jnp.asarray(80.0)}
        np.testing.assert_allclose(learned.terms(high) - gamma["level"][0], all_spatial)


def test_spread_is_the_sd_of_a_term_whatever_the_share() -> None:
    """On a ring all areas are alike, so that the scaled variance is one everywhere."""
    for share in (0.0, 0.4, 1.0):
        structure = Space(RING, ARRIVALS, share=share)
        rows = np.sqrt(share) * structure.root
        np.testing.assert_allclose((rows**2).sum(1) + 1 - share, 1.0)


def test_edges_adjacency_and_areas_of_units() -> None:
    by_matrix, by_edges = (
        Space(RING, ARRIVALS),
        Space([[1, 0], [2, 1], [3, 2], [0, 3]], ARRIVALS, areas=4),
    )
    np.testing.assert_allclose(by_matrix.root, by_edges.root)
    units = Space(RING, ARRIVALS, area=[2, 2, 0])
    gamma = draw(units)
    found = natural(units, gamma, ARRIVALS.zero()).count
    whole = natural(by_matrix, gamma, ARRIVALS.zero()).count
    np.testing.assert_array_equal(found, whole[[2, 2, 0]])
    np.testing.assert_array_equal(natural(units.at([3]), gamma, ARRIVALS.zero()).count, whole[[3]])
    assert Space(np.zeros((0, 2)), ARRIVALS, areas=2).root.tolist() == [[1, 0], [0, 1]]


# --- time ----------------------------------------------------------------------------------------


def test_two_times_by_hand() -> None:
    structure = Time([2000, 2004, 2000], ARRIVALS)
    gamma = {"level": 0.3, "log_spread": np.log(0.5), "step": np.array([1.2])}
    step = 0.5 * 1.2 * 2  # four years: twice the standard deviation of one
    with jax.enable_x64(True):
        terms = np.asarray(structure.terms(gamma))
    np.testing.assert_allclose(terms, [0.3 - step / 2, 0.3 + step / 2])
    found = natural(structure, gamma, ARRIVALS.zero())
    np.testing.assert_allclose(found.count, 2 * np.exp(terms[[0, 1, 0]]))
    np.testing.assert_array_equal(found.exposure, [1.5] * 3)


def test_a_walk_is_an_autoregression_on_a_path() -> None:
    """The covariance of the walk is the generalised inverse of the Laplacian with weights 1/gap."""
    times = np.array([0.0, 1.0, 3.0, 3.5])
    structure = Time(times, ARRIVALS)
    with jax.enable_x64(True):

        def walk(step: Any) -> Any:
            return structure.terms({"level": 0.0, "log_spread": 0.0, "step": step})

        root = np.asarray(jax.jacobian(walk)(jnp.zeros(3)))
    weight = np.diag(1 / np.diff(times), 1)
    weight = weight + weight.T
    laplacian = np.diag(weight.sum(1)) - weight
    np.testing.assert_allclose(root @ root.T, np.linalg.pinv(laplacian), atol=1e-12)
    scaled, _ = autoregression(weight)
    ratio = (scaled @ scaled.T) / (root @ root.T)
    np.testing.assert_allclose(ratio, ratio[0, 0])


def test_one_time_has_a_level_alone() -> None:
    structure = Time([7, 7], ARRIVALS)
    gamma = draw(structure)
    with jax.enable_x64(True):
        np.testing.assert_allclose(structure.terms(gamma), [gamma["level"]])


# --- refused -------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Any, str]] = {
    "missing group": (
        lambda: Hierarchy(["a", None], ARRIVALS),
        "column 'groups', row 1 is missing; give every unit its group",
    ),
    "no groups": (lambda: Hierarchy([], ARRIVALS), "'groups' has no units"),
    "unequal levels": (
        lambda: Hierarchy([["a", "b"], [1]], ARRIVALS),
        "'groups' has levels of 2 and 1 units; give every level a group a unit",
    ),
    "levels": (
        lambda: Hierarchy(["a"], ARRIVALS).at([["a"], ["b"]]),
        "'groups' has 2 levels but the hierarchy has 1",
    ),
    "on": (lambda: Hierarchy(["a"], ARRIVALS, on="mean"), "'mean' is not known; choose one of"),
    "scale": (lambda: Hierarchy(["a"], ARRIVALS, scale=0.0), "column 'scale': 0 is zero"),
    "prior of units": (
        lambda: Hierarchy(["a"], ARRIVALS.spread((3,))),
        "'prior' is of 3 units; give one prior for all units",
    ),
    "improper prior": (lambda: Time([1, 2], ARRIVALS.zero()), "give a proper prior"),
    "units": (
        lambda: Time([1, 2], ARRIVALS).natural(draw(Time([1, 2], ARRIVALS)), ARRIVALS.spread((3,))),
        "'pseudo' is of 3 units but there are 2",
    ),
    "asymmetric": (
        lambda: Space([[0, 1], [0, 0]], ARRIVALS),
        "row 0: 1 is its entry for area 1, whose own for area 0 is 0; give a symmetric matrix",
    ),
    "not square": (lambda: Space([[0, 1]], ARRIVALS), "is 1 × 2; give a square matrix, or pairs"),
    "diagonal": (lambda: Space(np.eye(2), ARRIVALS), "an area is not its own neighbour"),
    "not finite": (
        lambda: Space([[0, np.inf], [np.inf, 0]], ARRIVALS),
        "column 'adjacency', row 0: inf is infinite",
    ),
    "edge": (
        lambda: Space([[0, 5]], ARRIVALS, areas=3),
        "5 is not an area; there are 3 areas: number them from 0 to 2",
    ),
    "loop": (lambda: Space([[1, 1]], ARRIVALS, areas=3), "1 is paired with itself"),
    "area": (lambda: Space(RING, ARRIVALS, area=[0, 9]), "'area', row 1: 9 is not an area"),
    "share": (lambda: Space(RING, ARRIVALS, share=1.5), "'share': 1.5 is above 1"),
    "time missing": (
        lambda: Time([1.0, np.nan], ARRIVALS),
        "row 1 is missing; give every unit its",
    ),
    "unknown time": (
        lambda: Time([1, 2], ARRIVALS).at([1, 3]),
        "row 1: 3 is not a known time; build the structure with all times",
    ),
    "one number": (lambda: Time(3.0, ARRIVALS), "'time' is not one number a unit"),
}


@pytest.mark.parametrize(("ask", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_gets_a_sentence(ask: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        ask()
    assert sentence in str(caught.value)


# --- the marginal over γ -------------------------------------------------------------------------


def test_the_joint_marginal_is_that_of_quadrature() -> None:
    """One rate γ ~ N(0, 1) on the logit of all units: Eq. 36 of all units together."""
    y = {"successes": np.array([3.0, 0.0, 4.0]), "trials": np.array([8.0, 3.0, 5.0])}

    def log_p(gamma: np.ndarray) -> np.ndarray:
        return np.asarray(BINOMIAL.log_predictive(tilt(TRIALS, gamma[:, None]), **y))

    grid = np.arange(-9, 9, 0.01)
    by_quadrature = logsumexp(
        log_p(grid).sum(1) - grid**2 / 2 - np.log(2 * np.pi) / 2 + np.log(0.01)
    )
    each = log_p(np.random.default_rng(0).normal(size=40_000))
    found = joint_marginal(each)
    share = np.exp(each.sum(1) - found.value)  # of mean one
    assert abs(found.value - by_quadrature) < 4 * share.std() / np.sqrt(len(each))
    assert abs(found.value - logsumexp(each, 0).sum()) > 0.1  # units are not independent
    np.testing.assert_allclose(found.weights.sum(), 1.0)


def test_the_gradient_of_the_joint_marginal_is_an_average_over_draws() -> None:
    """∇ log p = Σ_s ω_s Σ_i ∇ log p_is: with ω held, batches of units give it without bias."""
    y = {"successes": np.array([3.0, 0.0, 4.0, 1.0]), "trials": np.array([8.0, 3.0, 5.0, 2.0])}
    with jax.enable_x64(True):
        gammas = jnp.asarray(np.random.default_rng(0).normal(size=(50, 1)))

        def log_p(phi: Any, units: Any) -> Any:
            pseudo = ldf.Binomial.from_unconstrained(jnp.stack([phi[0], phi[1]]), "log")
            some = {name: jnp.asarray(values)[units] for name, values in y.items()}
            return BINOMIAL.log_predictive(tilt(TRIALS + pseudo, gammas), **some)

        @jax.jit
        def slopes(phi: Any) -> Any:
            every = np.arange(4)
            held = joint_marginal(log_p(phi, every)).weights
            wanted = jax.grad(lambda p: joint_marginal(log_p(p, every)).value)(phi)
            of_batch = jax.grad(lambda p, units: held @ log_p(p, units).sum(1))
            return wanted, [of_batch(phi, every[:2]), of_batch(phi, every[2:])]

        wanted, halves = jax.tree.map(np.asarray, slopes(jnp.array([0.3, -0.2])))
    np.testing.assert_allclose(sum(halves), wanted, rtol=1e-10)


def test_far_from_likely_draws_do_not_underflow() -> None:
    found = joint_marginal(np.array([[-4000.0, -1.0], [-4002.0, -1.0]]))
    np.testing.assert_allclose(found.value, -4001 + np.log((1 + np.exp(-2)) / 2))
    np.testing.assert_allclose(found.weights, softmax([0.0, -2.0]))
