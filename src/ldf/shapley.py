"""How much each column moves a value, in shares that add up: Shapley values by permutations.

A unit is set beside a row of a background. Column by column, in some order, the background row's
cells are replaced by the unit's; what the value changes by is the column's. Over all orders and
background rows the mean is the Shapley value (Štrumbelj and Kononenko 2014). Here every background
row has an order of its own, drawn at random, and the same order backwards (Mitchell and others
2022). Whatever the orders are,

    value of the unit  =  mean value of the background  +  sum over columns

and where columns act by themselves or in pairs, both orders together give the Shapley value itself.

>>> import numpy as np
>>> unit, background = np.array([[2.0, 3.0]]), np.zeros((1, 2))
>>> orders = draw_orders(2, 1, seed=0)
>>> own = own_cells(orders)  # which cells are the unit's, in each row that is asked about
>>> rows = np.where(own, unit, background)
>>> attributed(orders, rows.prod(-1)[None], unit.prod(-1))  # of the product: half each
array([[3., 3.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np


def draw_orders(columns: int, background: int, seed: Any) -> np.ndarray:
    """An order of the columns for each background row: background × columns."""
    orders = np.tile(np.arange(columns), (background, 1))
    return np.random.default_rng(seed).permuted(orders, axis=1)


def own_cells(orders: np.ndarray) -> np.ndarray:
    """Background × asked × columns. For each background row is asked what the value is with none
    of the unit's cells, with the first, the first two, … and with the last, the last two, …"""
    columns = orders.shape[1]
    place = np.argsort(orders, 1)[:, None, :]  # of each column in the order
    many = np.arange(1, columns)[:, None]
    return np.concatenate([place < 0, place < many, place >= columns - many], 1)


def attributed(orders: np.ndarray, asked: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Units × columns, from the values that were asked for (units × background × asked) and those
    of the units themselves."""
    columns = orders.shape[1]
    end = np.broadcast_to(whole[:, None, None], (*asked.shape[:2], 1))
    none, first, last = asked[..., :1], asked[..., 1:columns], asked[..., columns:]
    forwards = np.diff(np.concatenate([none, first, end], -1))
    backwards = np.diff(np.concatenate([none, last, end], -1))[..., ::-1]
    by_place = (forwards + backwards) / 2
    rows = np.arange(len(orders))[:, None]
    return by_place[:, rows, np.argsort(orders, 1)].mean(1)
