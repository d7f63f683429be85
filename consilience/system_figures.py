"""Figures of systems and of items for the first screen of a page: small, with few texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.drawing import (
    BLUE,
    INK,
    SMALL,
    axes_of,
    count_items,
    folded,
    inches,
    legend_below,
    shown_name,
    styled,
)

_WIDTH = 4.2
_MOST_SYSTEMS = 6
_BESIDE = 0.7  # inches beside names and the texts of a legend, which stands under the axes


class Scores(NamedTuple):
    """Scores of systems, in the order in which they are drawn.

    Parameters
    ----------
    label : what they are, in the legend.
    points : one or several values of each system, shape ``(value, system)``; none where only intervals are drawn.
    lower, upper : ends of the interval of each.
    """

    label: str
    points: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@styled
def scores_at_a_glance(
    names: Sequence[str], scores: Scores, title: str, other: Scores | None = None,
    marks: Mapping[str, Any] | None = None, note: str = "",
) -> Any:  # fmt: skip
    """Draw systems with the interval of their score, the first ones, the best above.

    Parameters
    ----------
    names : of the systems.
    scores : of each.
    title : of the figure.
    other : scores that are drawn thin and grey below those.
    marks : by what they are, single values of each system: a line and a cross, named beside the first system.
    note : under the scale.
    """
    number = min(len(names), _MOST_SYSTEMS)
    rows = np.arange(number)
    shown = [folded(shown_name(name)) for name in names[:number]]
    legend = [scores.label, *([] if other is None else [other.label])]
    width = max(_WIDTH, inches(shown) + inches(legend, SMALL) + _BESIDE)
    ax = axes_of(None, width, 1.15 + 0.45 * number + 0.2 * len(legend) + 0.2 * bool(note))
    ax.hlines(rows, scores.lower[:number], scores.upper[:number], color=BLUE, linewidth=4, alpha=0.5)
    for values in scores.points:
        ax.plot(values[:number], rows, "o", color=BLUE, markersize=7)
    handles, labels = [_line(BLUE, "o", 3)], [scores.label]
    if other is not None:
        ax.hlines(rows + 0.27, other.lower[:number], other.upper[:number], color=INK, linewidth=1.6, alpha=0.55)
        for values in other.points:
            ax.plot(values[:number], rows + 0.27, "o", color="0.5", markersize=5)
        handles = [*handles, _line("0.5" if len(other.points) else INK, "o" * bool(len(other.points)), 1.6)]
        labels = [*labels, other.label]
    for (label, values), marker in zip((marks or {}).items(), "|x", strict=False):
        size = 14 if marker == "|" else 7
        ax.plot(values[:number], rows, marker, color=INK, markersize=size, markeredgewidth=1.8)
        ax.annotate(label, (values[0], 0), (0, 9), textcoords="offset points", ha="center", fontsize=SMALL)
    ax.set_yticks(rows, shown)
    ax.set_ylim(number - 0.4, -0.5)
    low, high = ax.get_xlim()
    ax.set_xlim(min(low, (low + high) / 2 - 0.01), max(high, (low + high) / 2 + 0.01))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    first = f", the first {number} of {len(names):,}" if len(names) > number else ""
    ax.set(title=f"{title}{first}", xlabel=note)
    legend_below(ax, handles, labels)
    return ax


def _line(colour: str, marker: str, width: float) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, marker=marker, markersize=5, linewidth=width, alpha=1 if marker else 0.55)


@styled
def counts(numbers: Mapping[str, int], title: str, unit: str = "item") -> Any:
    """Draw how many items there are of each kind, as bars with their numbers.

    Parameters
    ----------
    numbers : by kind, from above.
    title : of the figure.
    unit : what an item is called.
    """
    rows, widths = np.arange(len(numbers)), np.array(list(numbers.values()))
    ax = axes_of(None, _WIDTH, 1.0 + 0.4 * len(numbers))
    ax.barh(rows, widths, height=0.6, color=BLUE, alpha=0.75)
    for row, width in zip(rows, widths, strict=True):
        ax.annotate(f"{width:,}", (width, row), xytext=(4, 0), textcoords="offset points", va="center")
    ax.set_yticks(rows, list(numbers))
    ax.set_ylim(len(numbers) - 0.5, -0.5)
    ax.set_xlim(0, 1.15 * max(widths.max(), 1))
    ax.tick_params(axis="y", length=0)
    ax.set(title=title, xlabel=f"{unit}s")
    count_items(ax.xaxis)
    ax.grid(axis="x")
    return ax
