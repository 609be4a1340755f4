"""A simulated district in the likeness of the paper's Kayonza, with the truth known.

2,236 cells on a grid of 43 × 52; 854 have primary data (buildings with electricity out of all), of
which 70 have no building; four features known everywhere, shaped like those of Appendix C: night
lights that are mostly dark, building density, a few transformers, and the distance to the nearest.

Two truths. Under "beta" each cell's rate is drawn from Be(λ0 + T*(x)) with a known, smooth T*: the
model class contains it. Under "logit-normal" it is a smooth function of the features plus a spatial
Gaussian field plus noise, which no model here contains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree

from ldf import check
from ldf.special import Array

SHAPE = (43, 52)
CELLS = SHAPE[0] * SHAPE[1]
SURVEYED = 854
EMPTY = 70
FEATURES = ("night_lights", "building_density", "transformers", "distance")
PRIOR = (0.3, 0.9)  # λ0 of the beta truth: successes and failures


class District(NamedTuple):
    """One row a cell. Electrified and buildings are NaN where there are no primary data."""

    row: Array
    column: Array
    features: Array  # cells × 4, in the order of FEATURES
    electrified: Array
    buildings: Array
    theta: Array  # the truth
    pseudo_successes: Array  # T* of the beta truth; NaN under another
    pseudo_failures: Array

    def columns(self) -> dict[str, Array]:
        """What a user would have: a table, without the truth."""
        named = dict(zip(FEATURES, self.features.T, strict=True))
        place = {"row": self.row, "column": self.column}
        return {**place, **named, "electrified": self.electrified, "buildings": self.buildings}


def district(truth: str = "beta", seed: int = 0) -> District:
    """Draw one district. The same seed gives the same features under either truth."""
    check.one_of("truth", truth, ("beta", "logit-normal"))
    features_rng, theta_rng, survey_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)
    )
    row, column = (axis.reshape(-1) for axis in np.indices(SHAPE))
    features = _features(features_rng, row, column)
    rate, count = _mapping(features)
    a, b = count * rate, count * (1 - rate)
    if truth == "beta":
        theta = theta_rng.beta(PRIOR[0] + a, PRIOR[1] + b)
    else:
        field = _field(theta_rng, 3.0)
        noise = theta_rng.normal(size=CELLS)
        theta = 1 / (1 + np.exp(-(np.log(rate / (1 - rate)) + 0.7 * field + 0.5 * noise)))
        a, b = np.full(CELLS, np.nan), np.full(CELLS, np.nan)
    buildings = _survey(survey_rng, features[:, 1])
    seen = np.isfinite(buildings)
    electrified = np.full(CELLS, np.nan)
    electrified[seen] = survey_rng.binomial(buildings[seen].astype(int), theta[seen])
    return District(row, column, features, electrified, buildings, theta, a, b)


def _field(rng: np.random.Generator, smoothness: float) -> np.ndarray:
    """A smooth Gaussian field over the grid, with mean zero and variance one."""
    field = gaussian_filter(rng.normal(size=SHAPE), smoothness, mode="reflect").reshape(-1)
    return (field - field.mean()) / field.std()


def _features(rng: np.random.Generator, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    towns = _field(rng, 4.0)
    density = np.exp(2.2 + 0.8 * towns + 0.5 * _field(rng, 1.5))  # buildings a cell
    # Most cells are dark; lights grow with towns.
    lights = np.maximum(0.0, np.exp(1.6 * towns - 0.9 + 0.4 * _field(rng, 1.5)) - 0.8)
    grid = _field(rng, 6.0)
    expected = np.exp(1.1 * towns + 0.9 * grid - 2.6)
    transformers = rng.poisson(expected).astype(float)
    if transformers.sum() == 0:
        transformers[np.argmax(expected)] = 1.0
    place = np.stack([row, column], -1)
    nearest = KDTree(place[transformers > 0]).query(place)[0]
    return np.stack([lights, density, transformers, nearest], -1)


def _mapping(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T*: the rate μ(x) and the count n(x) that the features are worth."""
    lights, density, transformers, distance = features.T
    score = (
        -2.1
        + 0.9 * np.log1p(lights)
        + 0.35 * np.log(density / 9)
        + 0.8 * np.minimum(transformers, 2)
        - 0.9 * np.log1p(distance / 2)
    )
    rate = 1 / (1 + np.exp(-score))
    # Lights and transformers say much where they are; darkness says little.
    count = 1.5 + 9 / (1 + np.exp(-(1.5 * np.log1p(lights) + transformers - 1.2)))
    return rate, count


def _survey(rng: np.random.Generator, density: np.ndarray) -> np.ndarray:
    """Buildings in the surveyed cells, NaN elsewhere; 70 of these have none."""
    surveyed = rng.choice(CELLS, SURVEYED, replace=False)
    # Empty cells are rather those where few buildings are.
    scarce = 1 / density[surveyed]
    empty = rng.choice(SURVEYED, EMPTY, replace=False, p=scarce / scarce.sum())
    counts = 1 + rng.negative_binomial(1.2, 1.2 / (1.2 + 1.6 * density[surveyed]))
    counts[empty] = 0
    buildings = np.full(CELLS, np.nan)
    buildings[surveyed] = counts
    return buildings
