"""What a family of primary data has to say, and what follows once for all of them.

A family says only what is its own: the words for its columns, its statistic T_y, its base measure
h(y), its predictive in a form free of cancellation, and the plain likelihood's distribution. The
conjugate prior (a `Statistic` and the distribution of θ it stands for) is shared by all families
that have it; that is why binomial counts and geometric waits of one unit add.

Posterior, partition function, likelihood and expectations are derived here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ldf import check
from ldf.distributions import Distribution
from ldf.special import Array, namespace
from ldf.statistic import Statistic


class Family(eqx.Module):
    """The known likelihood p(y | θ) of the primary data, with its conjugate prior."""

    natural: ClassVar[type[Statistic]]  # what adds
    latent: ClassVar[Any]  # the distribution of θ it stands for
    columns: ClassVar[tuple[str, ...]]  # the words for primary data
    design: ClassVar[tuple[str, ...]]  # what must be said of new data to predict them
    prior: ClassVar[Callable[..., Any]]  # pseudo-observations given by hand
    from_unconstrained: ClassVar[Callable[..., Any]]  # those of a mapping's outputs

    @property
    def components(self) -> int | None:
        """How many classes or components θ has, if that is known and more than one number."""
        return None

    def source(self, of: str | None = None) -> Family:
        """The likelihood of one source, if there are several (`Joint`); else this one."""
        if of is not None:
            remedy = "leave it out: there is one source only"
            raise check.DataError("of", None, of, "is not known", remedy)
        return self

    @abstractmethod
    def statistic(self, *args: Any, **columns: Any) -> Any:
        """T_y of each unit's primary data, validated."""

    @abstractmethod
    def log_base(self, *args: Any, **columns: Any) -> Array:
        """log h(y)."""

    @abstractmethod
    def log_predictive(self, natural: Any, *args: Any, **columns: Any) -> Array:
        """log p(y) = log h(y) + log Z(λ + T_y) − log Z(λ), of each unit."""

    @abstractmethod
    def predictive(self, natural: Any, *args: Any, **design: Any) -> Distribution:
        """The distribution of new primary data when θ ~ π(λ)."""

    @abstractmethod
    def likelihood(self, theta: Any, *args: Any, **design: Any) -> Distribution:
        """The distribution of new primary data when θ is known for sure."""

    def posterior(self, natural: Any) -> Any:
        """The distribution of θ: prior, auxiliary and primary data are all in the sum."""
        return self.latent(self.own(natural))

    def after(self, natural: Any, y: dict[str, Any], seen: np.ndarray) -> Any:
        """What is known of θ after the primary data of those units, on the last axis, that have
        some: what posterior() and predictive() take. Here it is a sum."""
        there = np.asarray(seen)
        own = self.statistic(**{word: np.asarray(values)[there] for word, values in y.items()})

        def place(leaf: Any) -> np.ndarray:
            full = np.zeros((len(there), *np.shape(leaf)[1:]))
            full[there] = leaf
            return full

        return self.own(natural) + jax.tree.map(place, own.spread((int(there.sum()),)))

    def exact(self, **columns: Any) -> Any:
        """Whether each row tells its outcome, and not only that it lies somewhere."""
        return True

    def log_partition(self, natural: Any) -> Array:
        """log Z(λ); infinite where the prior is improper."""
        return self.latent.log_partition(self.own(natural))

    def outputs(self, formulation: str = "rate") -> int:
        """How many outputs a mapping needs for `from_unconstrained`."""
        return self.natural.outputs(self.components, formulation)

    def design_of(self, **columns: Any) -> dict[str, Any]:
        """What must be said of data like these to predict them."""
        return {name: columns[name] for name in self.design if columns.get(name) is not None}

    def own(self, natural: Any) -> Any:
        """The statistic, if it is of this family's conjugate prior."""
        if not isinstance(natural, self.natural):
            mine, wanted, given = type(self), self.natural, type(natural)
            raise TypeError(
                f"{mine.__name__} needs {wanted.__name__}, which its prior() and statistic() make, "
                f"and was given {given.__name__}"
            )
        if self.components is not None:
            vector = natural.coordinates()[natural.event_axes.index(1)]
            wanted, size = self.natural.vector_size(self.components), np.shape(vector)[-1]
            if size != wanted:
                raise ValueError(
                    f"{type(self).__name__} has {self.components} classes or components and was "
                    f"given a statistic of {size + self.components - wanted}"
                )
        return natural

    def log_likelihood(self, theta: Any, *args: Any, **columns: Any) -> Array:
        """log p(y | θ) = log h(y) + ⟨T_y, statistic of θ⟩."""
        statistic = self.statistic(*args, **columns)
        return self.log_base(*args, **columns) + inner(statistic, self.latent.sufficient(theta))

    def expected(self, natural: Any) -> Any:
        """E of θ's sufficient statistics under π(λ): the gradient of log Z."""
        if namespace(*self.own(natural).coordinates()) is np:
            proper = np.isfinite(self.log_partition(natural))
            check.exists("expected statistic", proper, "the prior is improper", "give a proper one")
            with jax.enable_x64(True):
                traced = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), natural)
                return jax.tree.map(np.asarray, self.expected(traced))
        return _expected(self.latent, self.own(natural))


@partial(jax.jit, static_argnums=0)
def _expected(latent: Any, natural: Any) -> Any:
    return jax.grad(lambda at: latent.log_partition(at).sum())(natural)


def inner(statistic: Statistic, of_theta: Statistic) -> Array:
    """⟨T, statistic of θ⟩, summed over coordinates."""
    total: Any = 0.0
    pairs = zip(statistic.coordinates(), of_theta.coordinates(), strict=True)
    for (mine, theirs), axes in zip(pairs, statistic.event_axes, strict=True):
        if axes and np.shape(mine)[-axes:] != np.shape(theirs)[-axes:]:
            found, wanted = np.shape(theirs)[-1], np.shape(mine)[-1]
            problem = f"has {found} classes or components"
            raise check.DataError("theta", None, None, problem, f"give {wanted}, as the data have")
        # What was not observed says nothing, even of a θ that would have forbidden it.
        xp = namespace(mine, theirs)
        product = mine * xp.where(mine == 0, 0.0, theirs)
        total = total + product.sum(tuple(range(-axes, 0))) if axes else total + product
    return total


def effective(design_effect: Any, counts: tuple[Array, ...], **columns: Any) -> tuple[Array, ...]:
    """Counts as if from simple random sampling: divided by the survey's design effect."""
    if design_effect is None:
        return counts
    divisor = check.positive("design_effect", design_effect)
    check.same_length(**columns, design_effect=design_effect)
    return tuple(count / divisor for count in counts)
