"""Failures before the first success, with a Beta prior: a negative binomial with r = 1."""

from __future__ import annotations

from ldf.families.negative_binomial import Waiting


class Geometric(Waiting):
    """`failures` before the first success, summed over `waits` waits."""

    @property
    def until(self) -> float:
        return 1.0
