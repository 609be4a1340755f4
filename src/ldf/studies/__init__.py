"""The paper's two case studies: each a protocol, its figures, and its claims beside what was found.

`electrification` is Section 5, `homicide` Section 6; `ldf reproduce` runs them.
"""
