"""How each model looks, in every plot: by its role, in one place.

A role has a colour, a dash, a marker and a hatch, so that none is told by its colour alone. The
colours are the paper's; their lightness differs enough for those who do not see all hues apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ldf import check


class Role(NamedTuple):
    name: str  # in a legend, unless the caller has another
    colour: str
    dash: Any
    width: float
    marker: str
    hatch: str

    def line(self) -> dict[str, Any]:
        """As Matplotlib's lines take it."""
        return {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}


SOLID, DASHED, DOTTED = "-", (0, (4, 1.6)), (0, (1.2, 1.2))

ROLES: dict[str, Role] = {
    "mixture": Role("LDF mixture", "#8c8c8c", DOTTED, 1.5, "s", "...."),
    "ldf": Role("LDF", "#d1231f", SOLID, 1.5, "o", ""),
    "compound": Role("compound regression", "#2f8fd8", DASHED, 1.3, "^", "////"),
    "plain": Role("plain regression", "#4b1a86", (0, (5, 1.2, 1, 1.2)), 1.2, "D", "\\\\\\\\"),
    "observed": Role("observed", "#000000", SOLID, 2.0, "|", ""),
}
MODELS = tuple(role for role in ROLES if role != "observed")


def check_models(models: Iterable[str]) -> None:
    """Models are named by their roles."""
    found = list(models)
    if not found:
        raise ValueError("there is no model to draw: give one, as in {'ldf': …}")
    for role in found:
        check.one_of("models", role, MODELS)


def in_order(roles: Iterable[str]) -> list[str]:
    """As a legend has them: LDF before its baselines."""
    given = set(roles)
    return [role for role in ("ldf", "mixture", "compound", "plain", "observed") if role in given]


def names_of(names: Mapping[str, str] | None) -> dict[str, str]:
    """What each role is called: the caller's words, or else ours."""
    given = dict(names or {})
    for role in given:
        check.one_of("names", role, tuple(ROLES))
    return {role: given.get(role, look.name) for role, look in ROLES.items()}


def key_of(role: str, *, filled: bool = False, marked: bool = False) -> Any:
    """What stands for a role in a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look = ROLES[role]
    if role == "observed":
        style = {"marker": "|", "markersize": 11, "markeredgewidth": 2}
        return Line2D([], [], color=look.colour, linestyle="", **style)
    if filled:
        return Patch(facecolor="white", edgecolor=look.colour, hatch=look.hatch)
    return Line2D([], [], marker=look.marker if marked else "", markersize=4.5, **look.line())


def legend(
    figure: Any,
    roles: Iterable[str],
    names: Mapping[str, str] | None = None,
    marked: Iterable[str] = (),
) -> None:
    """One line above all panels that names the models; those in `marked` with their markers."""
    shown, words, marks = in_order(roles), names_of(names), set(marked)
    figure.legend(
        [key_of(role, marked=role in marks) for role in shown],
        [words[role] for role in shown],
        loc="outside upper left",
        ncols=_columns(figure, [words[role] for role in shown]),
        frameon=False,
        labelcolor=[ROLES[role].colour for role in shown],
        handlelength=2.6,
        columnspacing=1.6,
    )


def _columns(figure: Any, words: list[str]) -> int:
    """As many as fit into the figure's width: a letter takes about 6 points, a key 45."""
    room = 72 * figure.get_figwidth() // (6.2 * max(len(word) for word in words) + 45)
    return int(min(len(words), max(room, 1)))
