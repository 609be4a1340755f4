"""Lightweight data fusion with conjugate mappings.

A prior, primary data and auxiliary data are the same kind of thing, a statistic, and they add:

>>> import ldf
>>> family = ldf.Binomial()
>>> prior = family.prior(successes=0.5, failures=0.5)
>>> seen = family.statistic(successes=[3, 0], trials=[10, 4])
>>> family.posterior(prior + seen).mean()
array([0.31818182, 0.1       ])

What learns and what reads frames is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ldf import families
from ldf.check import DataError, DoesNotExist
from ldf.families import *
from ldf.statistic import Statistic

if TYPE_CHECKING:
    from ldf import assess, datasets, folds, infer, plot, report, structure
    from ldf.beside import Images, Items, Series
    from ldf.data import DataWarning
    from ldf.ensemble import Ensemble, Member, random_search
    from ldf.estimator import CalibrationWarning, Fusion, load
    from ldf.families.own import ImportanceSampled, NonConjugate
    from ldf.fit import Schedule
    from ldf.folds import Split
    from ldf.mappings import (
        Attention,
        Convolution,
        Fourier,
        GaussianProcess,
        Linear,
        Network,
        Own,
        Recurrent,
        Splines,
        TemporalConvolution,
        Trees,
    )
    from ldf.mixed import Component, Mixture
    from ldf.regressor import FusionRegressor
    from ldf.validate import cross_validate

# Where the names above live; a module lives in itself.
_LATER = {
    "assess": "assess",
    "datasets": "datasets",
    "folds": "folds",
    "infer": "infer",
    "plot": "plot",
    "report": "report",
    "structure": "structure",
    "Attention": "mappings",
    "CalibrationWarning": "estimator",
    "Convolution": "mappings",
    "DataWarning": "data",
    "Ensemble": "ensemble",
    "Fourier": "mappings",
    "Fusion": "estimator",
    "FusionRegressor": "regressor",
    "GaussianProcess": "mappings",
    "Images": "beside",
    "ImportanceSampled": "families.own",
    "Items": "beside",
    "Linear": "mappings",
    "Component": "mixed",
    "Member": "ensemble",
    "Mixture": "mixed",
    "Network": "mappings",
    "Own": "mappings",
    "Splines": "mappings",
    "Recurrent": "mappings",
    "Series": "beside",
    "TemporalConvolution": "mappings",
    "Trees": "mappings",
    "NonConjugate": "families.own",
    "Schedule": "fit",
    "Split": "folds",
    "cross_validate": "validate",
    "load": "estimator",
    "random_search": "ensemble",
}

__all__ = [
    "Attention",
    "CalibrationWarning",
    "Component",
    "Convolution",
    "DataError",
    "DataWarning",
    "DoesNotExist",
    "Ensemble",
    "Fourier",
    "Fusion",
    "FusionRegressor",
    "GaussianProcess",
    "Images",
    "ImportanceSampled",
    "Items",
    "Linear",
    "Member",
    "Mixture",
    "Network",
    "NonConjugate",
    "Own",
    "Recurrent",
    "Schedule",
    "Series",
    "Splines",
    "Split",
    "Statistic",
    "TemporalConvolution",
    "Trees",
    "assess",
    "cross_validate",
    "datasets",
    "folds",
    "infer",
    "load",
    "plot",
    "random_search",
    "report",
    "structure",
]
__all__ += families.__all__


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'ldf' has no attribute {name!r}")
    module = import_module(f"ldf.{_LATER[name]}")
    found = module if name == _LATER[name] else getattr(module, name)
    globals()[name] = found  # the next time it is at hand
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
