"""What a sampler returns: draws of chains × draws, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ldf.distributions import Mixture
from ldf.infer.mixture import MixtureProblem


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws of the posterior of a mixture's weights and, where kept, of assignments and of θ."""

    problem: MixtureProblem
    method: str  # that drew them
    weights: np.ndarray  # β: chains × draws × K
    assignment: np.ndarray | None = None  # z: chains × draws × units
    theta: Any = None  # chains × draws × units; of a mean and a covariance, a pair
    accepted: float | None = None  # share of proposals, where there were some

    def __repr__(self) -> str:
        chains, draws, components = self.weights.shape
        text = f"{chains} × {draws} draws of the weights of {components} components, {self.method}"
        return text if self.accepted is None else f"{text}, {self.accepted:.0%} accepted"

    def responsibilities(self) -> np.ndarray:
        """p(z_i = k | x, y): components × units. The mean over draws of β of the probability given
        β, which varies less than the draws of z themselves."""
        return self.problem.responsibilities(self.weights)

    def posterior(self) -> Mixture:
        """p(θ_i | x, y) of each unit: its components' posteriors, by their responsibilities."""
        return self.problem.posterior(self.responsibilities())

    def to_arviz(self) -> Any:
        """The draws as ArviZ data: `weights` by component, `assignment` and `theta` by unit. Needs
        `pip install 'ldf[arviz]'`."""
        draws = {"weights": self.weights}
        if self.assignment is not None:
            draws["assignment"] = self.assignment
        dims = {"weights": ["component"], "assignment": ["unit"]}
        parts = [] if self.theta is None else jax.tree.leaves(self.theta)
        names = ["theta"] if len(parts) == 1 else ["theta_mean", "theta_variance"]
        for name, part in zip(names, parts, strict=False):
            draws[name] = part
            dims[name] = ["unit"]  # what follows is numbered by ArviZ
        coords = {
            "component": np.arange(self.problem.components),
            "unit": np.arange(self.problem.units),
        }
        dims = {name: dims[name] for name in draws}
        return _arviz().from_dict(draws, dims=dims, coords=coords)

    def summary(self) -> dict[str, np.ndarray]:
        """One row a weight: mean, sd, Monte-Carlo standard error of the mean, effective draws in
        the bulk and in the tails, and R-hat, which is near one where chains agree."""
        arviz = _arviz()
        draws = arviz.convert_to_dataset({"weights": self.weights})
        ask = lambda function, **how: function(draws, **how)["weights"].values  # noqa: E731
        return {
            "component": np.arange(self.problem.components),
            "mean": self.weights.mean((0, 1)),
            "sd": self.weights.std((0, 1), ddof=1),
            "mcse": ask(arviz.mcse),
            "ess_bulk": ask(arviz.ess, method="bulk"),
            "ess_tail": ask(arviz.ess, method="tail"),
            "r_hat": ask(arviz.rhat),
        }

    def trace(self) -> Any:
        """Trace plots of the weights, by ArviZ and Matplotlib: their axes."""
        return _arviz().plot_trace(self.to_arviz(), var_names=["weights"])


def _arviz() -> Any:
    try:
        import arviz
    except ImportError:
        raise ImportError("ArviZ is not installed: pip install 'ldf[arviz]'") from None
    return arviz
