"""Posteriors of what ties units together: Gibbs and its collapsed forms, coordinate ascent."""

from ldf.infer.chains import Chains
from ldf.infer.mixture import MixtureProblem
from ldf.infer.sampling import sample
from ldf.infer.variational import Variational, variational

__all__ = ["Chains", "MixtureProblem", "Variational", "sample", "variational"]
