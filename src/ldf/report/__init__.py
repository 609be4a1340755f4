"""The explorer: one HTML file that opens offline and asks the network for nothing.

A map, a table and a card for each unit, linked; what further primary data would change, exactly;
and below them how good the model is and what it is made of.

    ldf.report.write(model, villages, "villages.html", geometry=("east", "north"))
    ldf.report.write(model, counties, "counties.html", geometry=shapes, validation=cv)

What the page shows is computed here, by the same code that answers in Python. The page itself only
adds further primary data to what it was given, which conjugacy makes exact.
"""

from ldf.report.explorer import explore, write
from ldf.report.page import Page

__all__ = ["Page", "explore", "write"]
