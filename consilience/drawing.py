"""How the house draws: colours, settings of matplotlib, and what every figure needs."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

INK, GRID = "#262626", "#d9d9d9"
"""Colours of text and of guiding lines; the report replaces them by those of the reader's light or dark page."""

SMALL = 8.5
"""Points of the smallest texts: at four fifths of their size, as on a phone, these are nine pixels high."""

STYLE: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.titlepad": 8, "axes.labelsize": 9,
    "axes.titley": 1.0,  # none has anything above it, and to look for that would measure all texts again
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "axes.axisbelow": True,
    "grid.color": GRID, "grid.linewidth": 0.6, "xtick.major.width": 0.7, "ytick.major.width": 0.7,
    "legend.frameon": False, "legend.fontsize": SMALL, "lines.linewidth": 1.5, "figure.facecolor": "none",
    "axes.facecolor": "none", "text.parse_math": False, "text.usetex": False, "svg.fonttype": "none",
}  # fmt: skip
"""Settings of matplotlib under which all figures are drawn."""

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
PALETTE = {"blue": BLUE, "vermillion": VERMILLION, "green": GREEN, "purple": PURPLE, "orange": ORANGE, "sky": SKY}
"""Colours of things, those of Okabe and Ito, in their order."""

ON_DARK = dict(zip(PALETTE, ("#4ba3dc", "#f0803c", "#2fbf95", "#dd93c0", "#f2b233", "#8fd0f5"), strict=True))
"""What a dark page shows in their place."""

WIDTH = 4.65
"""Inches of a figure: at four fifths of its size, the least that texts are read at, it fits the page of a phone."""

# More points than this are drawn as a picture, and curves are thinned to it: an SVG lists every single one.
MOST_POINTS = 800

# Longer names are cut in the middle, where names of one family differ least.
_LONGEST_NAME = 34
_LONGEST_LINE = 20  # where names have room for two

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


def styled(draw: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Draw in our style and leave the user's settings as they were."""

    @functools.wraps(draw)
    def drawn(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        import matplotlib

        with matplotlib.rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


def axes_of(ax: Any, width: float = WIDTH, height: float = 3.2) -> Any:
    """Return the given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    ax = Figure(figsize=(width, height), layout="constrained").subplots()
    ax.set_title("", wrap=True)  # one wider than the figure goes on in the next line
    return ax


def room_for(names: Sequence[str]) -> float:
    """Return the width of a figure whose rows have such names: long ones leave the axes half of it."""
    return WIDTH + max(0.0, inches(names) - 1.5)


def shown_name(text: Any) -> str:
    """Make an id fit for drawing: no characters that no file format knows, and not too long."""
    name = re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", str(text))
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 15]}…{name[-14:]}"
    # Matplotlib hides legend entries that start with an underscore; an invisible space in front shows them.
    return f"\u200b{name}" if name.startswith("_") else name


def folded(name: str) -> str:
    """Break a name into lines that leave room beside them on a phone, between words."""
    return textwrap.fill(name, _LONGEST_LINE, break_long_words=False)


def count_items(axis: Any) -> None:
    """Label an axis that counts items: whole numbers, thousands apart."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def colours_of(number: int) -> list[Any]:
    """Return colours of so many things: Okabe and Ito's, or viridis where they are many."""
    if number <= len(PALETTE):
        return list(PALETTE.values())[:number]
    import matplotlib

    return list(matplotlib.colormaps["viridis"](np.linspace(0.2, 0.92, number)))  # darker ones are lost on a dark page


def inches(texts: Sequence[Any], size: float = 9) -> float:
    """Return the width of the widest line of some texts, of so many points, in the fonts of matplotlib."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    lines = (line for one in texts for line in str(one).splitlines())
    return max((text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines), default=0) / 72


def inked(share: Any, fullest: float = 0.6) -> Any:
    """Return colours of cells, blue by how much ink they have, from 0 to 1, and vermillion by how far this is below 0.

    That of the page shows through, light or dark; on the ``fullest`` of them, as opaque as that, its texts can be read.
    """
    from matplotlib.colors import to_rgb

    share = np.nan_to_num(share)[..., None]
    return np.concatenate([np.where(share < 0, to_rgb(VERMILLION), to_rgb(BLUE)), fullest * np.abs(share)], axis=-1)


def legend_below(ax: Any, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Place a legend under the axis label, at the same distance whatever the height of the axes."""
    from matplotlib.transforms import ScaledTranslation

    below = ax.transAxes + ScaledTranslation(0, -0.5, ax.figure.dpi_scale_trans)
    # The layout is not known before drawing: most of the figure's width, less the names on the left.
    share = ax.get_position().width / 0.775
    left = 0.35 + inches([tick.get_text() for tick in ax.get_yticklabels()])
    columns = legend_columns(labels, ax.figure.get_figwidth() * share - left)
    ax.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, ncols=columns,
        borderaxespad=0, borderpad=0, handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip


def legend_columns(labels: Sequence[str], room: float) -> int:
    """Return how many columns fit into so many inches: a legend wider than the axes would squeeze them."""
    mark, between = (2.4 * SMALL / 72, 1.4 * SMALL / 72)  # line and gap before a text, gap before the next column
    return int(np.clip((room + between) // (mark + inches(labels, SMALL) + between), 1, 4))
