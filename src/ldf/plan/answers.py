"""What n further observations of a unit may say, how likely that is, and what is known after it.

Answers are counted one by one while there are few: then all that follows is exact. Of more, each
component has places on a scale on which its mass is smooth, with weights by Gauss and Legendre; the
answers at either end, where it is not, still stand for themselves. Gains are then right to about a
thousandth, and those of the squared error to a millionth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, log_expit, polygamma

from ldf import check
from ldf.distributions import mixture
from ldf.distributions.beta_binomial import mass_table
from ldf.families import Binomial, Family, Gaussian, Multinomial, Poisson
from ldf.statistic import Trials

FEW = 256  # answers that are counted one by one
ENDS = np.arange(8.0)  # of more, so many at either end
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)  # of each panel between
AT_ONCE = 1_000_000  # components × answers × units


class Answers(NamedTuple):
    """J answers of each of P surveys."""

    y: np.ndarray  # J × P
    chance: np.ndarray  # J × P, of each, by the mixture
    share: np.ndarray  # K × J × P, of each component after it
    after: Any  # K × J × P: the components' statistics after it


@dataclass(frozen=True)
class Belief:
    """What is known of the θ of M units: a mixture of K conjugate components."""

    kind: Kind
    natural: Any  # K × M
    share: np.ndarray  # K × M

    @classmethod
    def of(cls, family: Family, natural: Any, share: np.ndarray, position: int | None) -> Belief:
        """By a family's components; of a class of a multinomial, by its count alone."""
        if isinstance(family, Multinomial) and position is not None:
            own = natural.counts[..., position]
            others = np.delete(natural.counts, position, -1).sum(-1)
            return cls(_Successes(Binomial(effective=True)), Trials(own, others), share)
        if type(family) is Binomial:
            return cls(_Successes(Binomial(effective=True)), natural, share)
        if type(family) is Poisson:
            return cls(_Arrivals(Poisson(effective=True)), natural, share)
        if type(family) is Gaussian and family.variance is not None:
            return cls(_Means(family), natural, share)
        problem, remedy = "has no plan", "there are plans for binomial, Poisson and Gaussian data"
        if isinstance(family, Multinomial):
            problem, remedy = "has a vector θ", "choose a class by component=…"
        elif isinstance(family, Gaussian):
            problem = "does not say how exact one observation is"
            remedy = "fit ldf.Gaussian(variance=…), with n as a column"
        raise check.DataError("family", None, type(family).__name__, problem, remedy)

    def __len__(self) -> int:
        return self.share.shape[1]

    def __getitem__(self, rows: Any) -> Belief:
        return Belief(self.kind, self.natural[:, rows], self.share[:, rows])

    def latent(self, natural: Any = None) -> Any:
        """Components' distributions of θ."""
        return self.kind.family.latent(self.natural if natural is None else natural)

    def theta(self) -> Any:
        """The distribution of θ."""
        return mixture(self.share, self.latent())

    def few(self, amount: np.ndarray) -> bool:
        """Whether all answers can be counted."""
        tops = self.kind.tops(self, amount)
        return tops is not None and bool(tops.max() < FEW)

    def answers(self, amount: np.ndarray) -> Answers:
        """Of so many observations of each unit."""
        if not self.few(amount):
            return self._at_places(amount)
        tops: Any = self.kind.tops(self, amount)
        mass = self.kind.table(self, amount, int(tops.max()) + 1)
        y = np.minimum(np.arange(mass.shape[1])[:, None], tops)
        joint = self.share[:, None] * mass
        chance = joint.sum(0)
        with np.errstate(invalid="ignore"):
            share = np.where(chance > 0, joint / chance, self.share[:, None])
        return Answers(y, chance, share, self._after(y, amount))

    def blocks(self, amount: np.ndarray) -> Iterator[np.ndarray]:
        """Units with like numbers of answers, none of many beside one of few."""
        tops = self.kind.tops(self, amount)
        places = len(self.share) * 2 * (len(ENDS) + len(NODES))
        size = np.full(len(self), places) if tops is None else np.where(tops < FEW, tops, places)
        many = np.ones(len(self), bool) if tops is None else tops >= FEW
        for group in (np.flatnonzero(~many), np.flatnonzero(many)):
            order = group[np.argsort(-size[group], kind="stable")]  # the first is the widest
            while len(order):
                fit = max(1, int(AT_ONCE / len(self.share) / (size[order[0]] + 1)))
                yield order[:fit]
                order = order[fit:]

    def _after(self, y: np.ndarray, amount: np.ndarray) -> Any:
        own = self.kind.family.statistic(**self.kind.columns(y, amount + 0 * y))
        return self.natural[:, None] + own

    def _log_mass(self, y: np.ndarray, amount: np.ndarray) -> np.ndarray:
        """log p_k(y) of J answers each: K × J × P."""
        columns = self.kind.columns(y, amount + 0 * y)
        each = [self.kind.family.log_predictive(own, **columns) for own in self.natural[:, None]]
        return np.stack(each)

    def _shares(self, y: np.ndarray, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log p_k(y), and each component's share after y."""
        logs = self._log_mass(y, amount)
        with np.errstate(divide="ignore"):
            joint = np.log(self.share)[:, None] + logs
        share = np.exp(joint - joint.max(0))
        return logs, share / share.sum(0)

    def _places(self, amount: np.ndarray, edges: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Places of each component between such edges, and the answers at either end; and weights
        that turn a sum over places into one over answers: J × K × P."""
        to_line, from_line = self.kind.line(amount)
        on_line = to_line(np.stack(edges))
        half = np.diff(on_line, axis=0)[:, None] / 2  # panels × 1 × K × P
        at = (on_line[:-1] + on_line[1:])[:, None] / 2 + half * NODES[:, None, None]
        y, slope = from_line(at)
        weight = half * WEIGHTS[:, None, None] * slope
        y, weight = (part.reshape(-1, *part.shape[2:]) for part in (y, weight))
        ends = self.kind.ends(amount)
        single = np.broadcast_to(ends[:, None], (len(ends), *y.shape[1:]))
        return np.concatenate([single, y]), np.concatenate([np.ones(single.shape), weight])

    def _at_places(self, amount: np.ndarray) -> Answers:
        y, weight = self._places(amount, list(self.kind.range(self, amount)))
        places, members, _ = y.shape
        flat = y.swapaxes(0, 1).reshape(members * places, -1)  # one component's after another's
        logs, share = self._shares(flat, amount)
        own = np.stack([logs[k, k * places : (k + 1) * places] for k in range(members)])
        mass = np.exp(own) * weight.swapaxes(0, 1)
        chance = self.share[:, None] * mass / mass.sum(1, keepdims=True)
        return Answers(flat, chance.reshape(flat.shape), share, self._after(flat, amount))

    def wrong(self, amount: np.ndarray, threshold: float) -> np.ndarray:
        """The chance that after many answers it is decided wrongly whether θ is above a threshold.

        The larger y, the likelier it is: so there is one y from which on it is decided so, and a
        component is wrong by itself, whatever the others' shares. It can be so only with answers
        that are likely where θ is the threshold."""
        low, _, high = self.kind.range(self, amount)
        turn = self._turn(amount, threshold, low.min(0), high.max(0))
        centre, far = self.kind.expected(threshold, amount)
        cuts = (np.minimum(centre, turn) - far, turn, np.maximum(centre, turn) + far)
        edges = [np.clip(cut + 0 * low, low, high) for cut in cuts]
        y, weight = self._places(amount, edges)
        columns = self.kind.columns(y, amount + 0 * y)
        mass = weight * np.exp(self.kind.family.log_predictive(self.natural, **columns))
        after = self.natural + self.kind.family.statistic(**columns)
        below = np.asarray(self.latent(after).cdf(threshold))
        return (self.share * (mass * np.where(y < turn, 1 - below, below)).sum(0)).sum(0)

    def _turn(
        self, amount: np.ndarray, threshold: float, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """The answer from which on θ is rather above the threshold."""
        near = self.kind.near(amount)
        while (high - low > near).any():
            y = (low + high)[None] / 2
            _, share = self._shares(y, amount)
            below = (share * self.latent(self._after(y, amount)).cdf(threshold)).sum(0)[0]
            low, high = np.where(below > 0.5, y[0], low), np.where(below > 0.5, high, y[0])
        return self.kind.between(high)


# --- kinds of answers ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind(ABC):
    """What a family's observations are. Amounts are one for each unit."""

    family: Any
    whole = True  # observations come one by one

    @abstractmethod
    def columns(self, y: np.ndarray, amount: np.ndarray) -> dict[str, Any]:
        """Answers in the family's words."""

    @abstractmethod
    def tops(self, of: Belief, amount: np.ndarray) -> np.ndarray | None:
        """The largest answer that is to be expected, if answers are counts."""

    @abstractmethod
    def range(self, of: Belief, amount: np.ndarray) -> tuple[np.ndarray, ...]:
        """Where each component's mass begins, is, and ends: K × P."""

    @abstractmethod
    def line(self, amount: np.ndarray) -> tuple[Any, Any]:
        """To the scale on which it is smooth; and back, with the slope of the way back."""

    @abstractmethod
    def expected(self, theta: float, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The answer if θ is known, and how far it may stray from that."""

    def table(self, of: Belief, amount: np.ndarray, size: int) -> np.ndarray:
        """Each component's mass of 0, 1, …: K × size × P."""
        raise NotImplementedError

    def ends(self, amount: np.ndarray) -> np.ndarray:
        """Answers that stand for themselves, J × P."""
        return ENDS[:, None] + 0 * amount

    def near(self, amount: np.ndarray) -> np.ndarray:
        """How exactly a cut has to be known."""
        return np.full(len(amount), 0.1)

    def between(self, y: np.ndarray) -> np.ndarray:
        """A cut at y: between two counts, if they are such."""
        return np.ceil(y) - 0.5


def _digamma_range(a: np.ndarray, more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E log of a Gamma with shape a, and its variance with some more."""
    return digamma(a), polygamma(1, a) + more


class _Successes(Kind):
    def columns(self, y: np.ndarray, amount: np.ndarray) -> dict[str, Any]:
        return {"successes": y, "trials": amount}

    def tops(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        return amount

    def table(self, of: Belief, amount: np.ndarray, size: int) -> np.ndarray:
        a, b = (part.reshape(-1) for part in (of.natural.successes, of.natural.failures))
        found = mass_table(a, b, np.tile(amount, len(of.share)))
        return found.reshape(len(of.share), -1, size).swapaxes(1, 2)

    def range(self, of: Belief, amount: np.ndarray) -> tuple[np.ndarray, ...]:
        a, b = of.natural.successes, of.natural.failures
        law = of.kind.family.predictive(of.natural, amount)
        mean, sd = law.mean(), law.sd()
        # A short tail ends by its mean and sd, a long one by those of the logit.
        noise = 1 / mean + 1 / (amount - mean)
        (up, spread_up), (down, spread_down) = _digamma_range(a, noise), _digamma_range(b, noise)
        far = 12 * np.sqrt(spread_up + spread_down)
        _, back = self.line(amount)
        low = np.maximum(mean - 8 * sd - 20 * (1 + amount / a), back(up - down - far)[0])
        high = np.minimum(mean + 8 * sd + 20 * (1 + amount / b), back(up - down + far)[0])
        least, most = len(ENDS) - 0.5, amount - len(ENDS) + 0.5
        low, high = np.clip(low, least, most), np.clip(high, least, most)
        return low, np.clip(mean, low, high), high

    def line(self, amount: np.ndarray) -> tuple[Any, Any]:
        def back(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            part = np.exp(log_expit(t))
            return (amount + 1) * part - 0.5, (amount + 1) * part * np.exp(log_expit(-t))

        return lambda y: np.log((y + 0.5) / (amount - y + 0.5)), back

    def expected(self, theta: float, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return amount * theta, 8 * np.sqrt(amount * theta * (1 - theta)) + 8

    def ends(self, amount: np.ndarray) -> np.ndarray:
        return np.concatenate([super().ends(amount), amount - ENDS[:, None]])


class _Arrivals(Kind):
    whole = False

    def columns(self, y: np.ndarray, amount: np.ndarray) -> dict[str, Any]:
        return {"count": y, "exposure": amount}

    def tops(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        return np.ceil(self._highest(of, amount).max(0))

    def _highest(self, of: Belief, amount: np.ndarray) -> np.ndarray:
        """Beyond it is less than a millionth: in the end the mass falls by a factor each count."""
        law = of.kind.family.predictive(of.natural, amount)
        return law.mean() + 5 * law.sd() + 10 * (1 + amount / of.natural.exposure)

    def table(self, of: Belief, amount: np.ndarray, size: int) -> np.ndarray:
        a, b = of.natural.count[:, None], of.natural.exposure[:, None]
        y = np.arange(size - 1)[:, None]
        steps = np.log(a + y) - np.log1p(y) - np.log1p(b / amount)
        first = -a * np.log1p(amount / b)
        mass = np.exp(np.concatenate([first, first + np.cumsum(steps, 1)], 1))
        return mass / mass.sum(1, keepdims=True)

    def range(self, of: Belief, amount: np.ndarray) -> tuple[np.ndarray, ...]:
        a, b = of.natural.count, of.natural.exposure
        mean = amount * a / b
        log, spread = _digamma_range(a, 1 / mean)
        least = len(ENDS) - 0.5
        high = np.maximum(self._highest(of, amount), least)
        low = np.exp(log + np.log(amount / b) - 12 * np.sqrt(spread)) - 0.5
        low = np.clip(low, least, high)
        return low, np.clip(mean, low, high), high

    def line(self, amount: np.ndarray) -> tuple[Any, Any]:
        return lambda y: np.log(y + 0.5), lambda t: (np.exp(t) - 0.5, np.exp(t))

    def expected(self, theta: float, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return amount * theta, 8 * np.sqrt(amount * theta) + 8


class _Means(Kind):
    def columns(self, y: np.ndarray, amount: np.ndarray) -> dict[str, Any]:
        return {"mean": y, "n": amount}

    def tops(self, of: Belief, amount: np.ndarray) -> None:
        return None

    def range(self, of: Belief, amount: np.ndarray) -> tuple[np.ndarray, ...]:
        law = self.family.predictive(of.natural, amount)
        mean, sd = law.mean(), law.sd()
        return mean - 9 * sd, mean, mean + 9 * sd

    def line(self, amount: np.ndarray) -> tuple[Any, Any]:
        return lambda y: y, lambda t: (t, np.ones_like(t))

    def expected(self, theta: float, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return theta + 0 * amount, 8 * np.sqrt(self.family.variance / amount)

    def ends(self, amount: np.ndarray) -> np.ndarray:
        return np.zeros((0, len(amount)))

    def near(self, amount: np.ndarray) -> np.ndarray:
        return 1e-4 * np.sqrt(self.family.variance / amount)

    def between(self, y: np.ndarray) -> np.ndarray:
        return y
