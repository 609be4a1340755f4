"""Lightweight data fusion with conjugate mappings.

A prior, primary data and auxiliary data are the same kind of thing, a statistic, and they add:

>>> import ldf
>>> family = ldf.Binomial()
>>> prior = family.prior(successes=0.5, failures=0.5)
>>> seen = family.statistic(successes=[3, 0], trials=[10, 4])
>>> family.posterior(prior + seen).mean()
array([0.31818182, 0.1       ])

Everything is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldf import assess, datasets, families, folds, infer, plot, report, structure
    from ldf.beside import Images, Items, Series
    from ldf.check import DataError, DoesNotExist
    from ldf.data import DataWarning
    from ldf.ensemble import Ensemble, Member, random_search
    from ldf.estimator import CalibrationWarning, Fusion, load
    from ldf.families import *
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
    from ldf.statistic import Statistic
    from ldf.validate import cross_validate

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
        "families",
        "folds",
        "infer",
        "load",
        "plot",
        "random_search",
        "report",
        "structure",
    ]
    __all__ += families.__all__

# Where the names above live; a module is itself a name where it stands among its own. What is
# named nowhere here may be a family: those are listed in `ldf.families` alone.
_HOMES = {
    "assess": ["assess"],
    "beside": ["Images", "Items", "Series"],
    "check": ["DataError", "DoesNotExist"],
    "data": ["DataWarning"],
    "datasets": ["datasets"],
    "ensemble": ["Ensemble", "Member", "random_search"],
    "estimator": ["CalibrationWarning", "Fusion", "load"],
    "families": ["families"],
    "families.own": ["ImportanceSampled", "NonConjugate"],
    "fit": ["Schedule"],
    "folds": ["Split", "folds"],
    "infer": ["infer"],
    "mappings": [
        "Attention",
        "Convolution",
        "Fourier",
        "GaussianProcess",
        "Linear",
        "Network",
        "Own",
        "Recurrent",
        "Splines",
        "TemporalConvolution",
        "Trees",
    ],
    "mixed": ["Component", "Mixture"],
    "plot": ["plot"],
    "regressor": ["FusionRegressor"],
    "report": ["report"],
    "statistic": ["Statistic"],
    "structure": ["structure"],
    "validate": ["cross_validate"],
}
_LATER = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted({*_LATER, *import_module("ldf.families").__all__})
    home = _LATER.get(name)
    if home is None and name[0].isupper() and name in import_module("ldf.families").__all__:
        home = "families"
    if home is None:
        raise AttributeError(f"module 'ldf' has no attribute {name!r}")
    module = import_module(f"ldf.{home}")
    found = module if name == home else getattr(module, name)
    globals()[name] = found  # the next time it is at hand
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
