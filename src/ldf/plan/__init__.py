"""Where to survey next: what further observations are expected to tell, and what to spend on them.

What is known of a unit's θ is a mixture of conjugate components, so that what n further
observations may say, and what would be known after each answer, has a closed form:

    gain_i(n)  =  loss(now)  −  Σ_y p(y) loss(after y)

`answers` lists the y, `targets` says what is lost by not knowing θ, `allocate` spends a budget so
that the gains of all units together are large, `survey` does so for a frame.

A plan is made at once, before anything is answered. It counts what answers say of their own unit,
not what they would teach the mappings about others.
"""

from ldf.plan.answers import Belief
from ldf.plan.survey import Plan, expected_gain, make

__all__ = ["Belief", "Plan", "expected_gain", "make"]
