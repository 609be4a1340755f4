"""What is done to auxiliary columns before a mapping sees them, learned on training rows only.

"standard" gives each column mean zero and standard deviation one (Section 5.1). "power" first bends
it towards a bell shape by a Yeo–Johnson transform,

    z = sign(u) · ((1 + |u|)^p − 1) / p,   p = λ where u ≥ 0 and 2 − λ where u < 0,   log if p = 0,

of u = (x − origin) / unit, with λ of maximum likelihood in [−5, 5]. The transform depends on where
zero is and how long a unit is: shares of 0.001 or years about 2000 it would leave straight. So
three are tried (the column standardised, as it is, and in units of its median size) and the
likeliest is taken. "none" leaves columns as they are.

A missing cell gets the training mean; a column of its own says that it was missing. A column that
is constant in the training rows says nothing and becomes zero.

Values farther out than all training rows and than six standard deviations are clipped to the
farther of both. A mapping knows nothing out there, and a linear one would otherwise claim any
number of pseudo-observations for a row a thousand deviations away. Training rows are not clipped,
so that on them the transform is the textbook's; only columns of two values are, at six deviations,
which loses nothing: the one row in 3,000 where a cell is missing would stand 55 away.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ldf import check
from ldf.summed import Source

KINDS = ("power", "standard", "none")
FAR = 6.0  # standard deviations
STEEPEST = 5.0  # |λ| at most
GLANCE = 2000  # rows that suffice to choose origin, unit and a first λ
SUFFICE = 1_000_000  # pixels or steps that a channel's transform is learned from, about
LOST = 1e-14  # a spread this small beside its values is rounding


class Preprocess(NamedTuple):
    """One number a column in each field, as learned."""

    kind: str
    origin: np.ndarray
    unit: np.ndarray
    power: np.ndarray  # λ; one where the column stays straight
    centre: np.ndarray
    scale: np.ndarray  # zero where the training rows are constant
    low: np.ndarray
    high: np.ndarray

    @property
    def width(self) -> int:
        return len(self.centre)

    @classmethod
    def learn(cls, kind: str, x: Any) -> Preprocess:
        """Of the training rows, M × P, NaN where a cell is missing."""
        check.one_of("preprocess", kind, KINDS)
        x = _table(x)
        here = ~np.isnan(x)
        straight = np.zeros(x.shape[1]), np.ones(x.shape[1]), np.ones(x.shape[1])
        origin, unit, power = _bends(x, here) if kind == "power" else straight
        z = _bend(x, origin, unit, power)
        centre, scale = _moments(z, here)
        z = _standard(z, centre, scale)
        low, high = z.min(0, where=here, initial=-FAR), z.max(0, where=here, initial=FAR)
        two = _two_values(x, here)
        low, high = np.where(two, -FAR, low), np.where(two, FAR, high)
        return cls(kind, origin, unit, power, centre, scale, low, high)

    def apply(self, x: Any) -> np.ndarray:
        """Any rows, M × P, in float64 and without a NaN."""
        x = _table(x)
        check.last_axis("auxiliary", x, len(self.centre), "columns")
        if self.kind == "none":
            return np.where(np.isnan(x), self.centre, x)
        z = _standard(_bend(x, self.origin, self.unit, self.power), self.centre, self.scale)
        return np.where(np.isnan(z), 0.0, np.clip(z, self.low, self.high))


class Blocks(NamedTuple):
    """Columns preprocessed in several ways, side by side: one block each."""

    each: tuple[Preprocess, ...]

    def apply(self, x: Any) -> np.ndarray:
        return np.concatenate([one.apply(x) for one in self.each], 1)


class Shaped(NamedTuple):
    """An image, a series or a set of items: each channel or variable is preprocessed alike wherever
    it stands. The last of them may be a mask that says what is there, which stays as it is."""

    inner: Preprocess  # one number a channel
    shape: tuple[int, ...]  # channels last
    masked: bool

    @property
    def width(self) -> int:
        return math.prod(self.shape)

    @classmethod
    def learn(cls, kind: str, x: Any, shape: tuple[int, ...], masked: bool) -> Shaped:
        """Of the training rows, M × as many as the shape holds."""
        x = np.asarray(x, float).reshape(len(x), -1, shape[-1])
        x = x[:: max(1, x.shape[0] * x.shape[1] // SUFFICE)]
        # By place and then by unit: so every so many of them are of all places.
        cells = x.swapaxes(0, 1).reshape(-1, shape[-1])
        if masked:
            cells = cells[cells[:, -1] > 0, :-1]
        return cls(Preprocess.learn(kind, cells), shape, masked)

    def apply(self, x: Any) -> np.ndarray:
        x = np.asarray(x, float)
        check.last_axis("auxiliary", x, self.width, "columns")
        cells = x.reshape(-1, self.shape[-1])
        if not self.masked:
            return self.inner.apply(cells).reshape(x.shape)
        there = np.where(cells[:, -1:] > 0, 1.0, 0.0)
        values = self.inner.apply(cells[:, :-1]) * there
        return np.concatenate([values, there], 1).reshape(x.shape)


class Sourced(NamedTuple):
    """Sources preprocessed each by itself, and after them the columns that say which are there, as
    they are."""

    each: tuple[Preprocess | Shaped, ...]

    @property
    def kind(self) -> str:
        first = self.each[0]
        return first.kind if isinstance(first, Preprocess) else first.inner.kind

    @classmethod
    def learn(cls, kind: str, x: np.ndarray, sources: tuple[Source, ...]) -> Sourced:
        return cls(tuple(_of_source(kind, x[:, of.start : of.stop], of) for of in sources))

    def apply(self, x: Any) -> np.ndarray:
        x = np.asarray(x, float)
        found, start = [], 0
        for one in self.each:
            found.append(one.apply(x[:, start : start + one.width]))
            start += one.width
        check.last_axis("auxiliary", x, start + len(self.each), "columns")
        return np.concatenate([*found, x[:, start:]], 1)


def _of_source(kind: str, x: np.ndarray, source: Source) -> Preprocess | Shaped:
    if not source.shape:
        return Preprocess.learn(kind, x)
    return Shaped.learn(kind, x, source.shape, masked=source.kind != "image")


def _table(x: Any) -> np.ndarray:
    return check.numbers("auxiliary", np.asarray(x, dtype=float), absent=True)


def _standard(z: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    some = scale > 0
    with np.errstate(over="ignore"):  # what is infinite is clipped
        return np.where(some, (z - centre) / np.where(some, scale, 1.0), np.where(z == z, 0.0, z))


def _moments(z: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column's cells that are here; zero if it is constant."""
    size = np.max(np.abs(z), axis=0, where=here, initial=0)
    size = np.where(size > 0, size, 1.0)
    z = np.where(here, z / size, 0.0)  # no square overflows
    n = np.maximum(here.sum(0), 1)
    mean = z.sum(0) / n
    sd = np.sqrt((np.where(here, z - mean, 0.0) ** 2).sum(0) / n)
    return mean * size, np.where(sd > LOST, sd * size, 0.0)


def _two_values(x: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Columns with at most two: any transform leaves them two."""
    low = np.min(x, 0, where=here, initial=np.inf)
    high = np.max(x, 0, where=here, initial=-np.inf)
    return ((x == low) | (x == high) | ~here).all(0)


# --- Yeo–Johnson --------------------------------------------------------------------------------


def _bend(x: np.ndarray, origin: np.ndarray, unit: np.ndarray, power: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        u = (x - origin) / unit
        z = _yeo_johnson(np.log1p(np.abs(u)), u >= 0, power)
    return np.where(power == 1, u, z)


def _yeo_johnson(log: np.ndarray, above: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Of log(1 + |u|), which all trials of λ share."""
    p = np.where(above, power, 2 - power)
    p = np.where(np.abs(p) < 1e-9, 1e-9, p)  # as good as the logarithm
    return np.where(above, 1.0, -1.0) * np.expm1(p * log) / p


def _likelihood(u: np.ndarray, here: np.ndarray) -> Any:
    """The log-likelihood a cell of λ, for all columns at once; u is zero where nothing is here."""
    above, log, n = u >= 0, np.log1p(np.abs(u)), np.maximum(here.sum(0), 1)
    slope = np.where(above, log, -log).sum(0) / n

    def of(power: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            z = _yeo_johnson(log, above, power)  # of zero it is zero
            mean = z.sum(0) / n
            square = np.einsum("mp,mp->p", z, z) / n
            variance = square - mean**2
            # The spread about values far from zero is lost to rounding.
            sound = np.isfinite(variance) & (variance > 1e-8 * square)
            score = (power - 1) * slope - 0.5 * np.log(np.where(sound, variance, 1.0))
        return np.where(sound, score, -np.inf)

    return of


def _bends(x: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Origin, unit and λ of each column."""
    columns = x.shape[1]
    plain = _two_values(x, here)
    glance = slice(None, None, -(-len(x) // GLANCE) or None)
    zero, one = np.zeros(columns), np.ones(columns)
    centre, scale = _moments(x, here)
    size = np.abs(np.where(here & (x != 0), x, np.nan))
    median = np.ones(columns)
    some = np.isfinite(size).any(0)
    median[some] = np.nanmedian(size[:, some], 0)
    best = np.full(columns, -np.inf)
    chosen = np.stack([zero, one, one])
    for origin, unit in ((centre, scale), (zero, one), (zero, median)):
        unit = np.where(unit > 0, unit, 1.0)
        u = _cells(x[glance], here[glance], origin, unit)
        power, score = _peak(_likelihood(u, here[glance]), -STEEPEST, STEEPEST, columns)
        score = score - np.log(unit)  # in the column's own unit
        better = score > best + 1e-3
        best = np.where(better, score, best)
        chosen = np.where(better, np.stack([origin, unit, power]), chosen)
    origin, unit, power = chosen
    if len(x) > GLANCE:
        of = _likelihood(_cells(x, here, origin, unit), here)
        power, _ = _peak(of, power - 0.25, power + 0.25, columns, 3)
    power = np.clip(power, -STEEPEST, STEEPEST)
    return np.where(plain, zero, origin), np.where(plain, one, unit), np.where(plain, one, power)


def _cells(x: np.ndarray, here: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.where(here, (x - origin) / unit, 0.0)


def _peak(of: Any, low: Any, high: Any, columns: int, grid: int = 21) -> tuple[Any, Any]:
    """Where a smooth function of one number a column is largest: a grid, then golden sections."""
    points = np.linspace(np.broadcast_to(low, columns), np.broadcast_to(high, columns), grid)
    scores = np.stack([of(point) for point in points])
    at = np.argmax(scores, 0)
    step = points[1] - points[0]
    top = points[at, np.arange(columns)]
    a, b = top - step, top + step
    golden = (np.sqrt(5) - 1) / 2
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = of(c), of(d)
    for _ in range(20):
        left = at_c >= at_d
        a, b = np.where(left, a, c), np.where(left, d, b)
        new = np.where(left, b - golden * (b - a), a + golden * (b - a))
        at_new = of(new)
        c, d = np.where(left, new, d), np.where(left, c, new)
        at_c, at_d = np.where(left, at_new, at_d), np.where(left, at_c, at_new)
    return (a + b) / 2, np.maximum(at_c, at_d)
