"""Figures of annotators; each function draws one and returns its matplotlib Axes, as in `consilience.figures`.

They take the tables of a fit, such as ``fit.annotators()`` and ``fit.confusion()``. Colours are never alone: who is
below chance has a marker of another shape, and every cell of a matrix shows its numbers.

>>> import consilience as cs
>>> from consilience import annotator_figures
>>> fit = cs.fit("dawid-skene", cs.load("dawid-skene-1979"))
>>> axes = annotator_figures.reliability(fit.annotators(), "Accuracy of the anaesthetists")
>>> axes.figure.savefig("annotators.pdf")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.drawing import (
    BLUE,
    GREEN,
    GRID,
    INK,
    MOST_POINTS,
    SMALL,
    VERMILLION,
    axes_of,
    inches,
    inked,
    legend_below,
    room_for,
    shown_name,
    styled,
)

_CELL = (0.74, 0.44)  # inches of a cell of a matrix, which hold a probability and its interval

# A scatter of more annotators shows the intervals of so many: those who annotated most.
_MOST_INTERVALS, _MOST_NAMED = 20, 12


@styled
def reliability(
    frame: Any,
    title: str,
    series: Mapping[str, str] | None = None,
    *,
    chance: float | None = None,
    below: Any = None,
    amount: str = "annotations",
    ax: Any = None,
) -> Any:
    """Draw one row an annotator, with a dot and an interval for each measure, and how much they annotated.

    Parameters
    ----------
    frame : data frame with the columns ``annotator``, ``amount``, and of each measure m its value m and the ends of its
        interval, ``m_lower`` and ``m_upper`` (``lower`` and ``upper`` serve the first one). NaN ends: no interval.
    title : of the figure.
    series : columns of the measures, at most two, by the words for them; ``accuracy`` by default.
    chance : where chance is, for a line; those below are marked.
    below : booleans, shape ``(row,)``; who is below chance, where that is not seen from the first measure alone.
    amount : the column of how much each annotator annotated.
    ax : axes to draw into.
    """
    from matplotlib.lines import Line2D

    series = dict(series or {"accuracy": "accuracy"})
    shown = [shown_name(name) for name in frame["annotator"]]
    ax = axes_of(ax, room_for(shown), 1.4 + 0.21 * max(3, len(frame)))
    rows = np.arange(len(frame))
    first = frame[next(iter(series.values()))].to_numpy(float)
    if below is None:
        below = first < chance if chance is not None else np.zeros(len(frame), bool)
    below = np.asarray(below, bool)
    handles: list[Any] = []
    for number, (name, colour, marker) in enumerate(zip(series.values(), (BLUE, GREEN), "os", strict=False)):
        shift = 0.0 if len(series) == 1 else 0.34 * number - 0.17
        value, (low, high) = frame[name].to_numpy(float), _ends(frame, name, number)
        marked = below if number == 0 else np.zeros_like(below)
        for which, hue, shape in ((~marked, colour, marker), (marked, VERMILLION, "v")):
            ax.hlines(rows[which] + shift, low[which], high[which], color=hue, linewidth=2.4, alpha=0.5)
            ax.plot(value[which], rows[which] + shift, shape, color=hue, markersize=4.5)
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=4.5))
    names = list(series)
    if below.any():
        handles.append(Line2D([], [], color=VERMILLION, marker="v", markersize=4.5))
        names.append("below chance")
    if chance is not None:
        handles.append(ax.axvline(chance, color=INK, linewidth=0.8, linestyle=(0, (2, 2))))
        names.append("chance")
    _write_amounts(ax, rows, frame[amount].to_numpy(float), amount)
    ax.set_yticks(rows, shown)
    ax.set_title(title, pad=20)  # above the head of the amounts
    ax.set(xlabel=names[0] if len(series) == 1 else "probability", xlim=(-0.02, 1.02))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    if len(handles) > 1:
        legend_below(ax, handles, names)
    return ax


def _ends(frame: Any, name: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    own = f"{name}_lower" in frame
    if not own and number:
        return np.full(len(frame), np.nan), np.full(len(frame), np.nan)
    ends = (f"{name}_lower", f"{name}_upper") if own else ("lower", "upper")
    return frame[ends[0]].to_numpy(float), frame[ends[1]].to_numpy(float)


def _write_amounts(ax: Any, rows: np.ndarray, amounts: np.ndarray, words: str) -> None:
    """Write how much each annotator annotated at the right of the axes."""
    texts = [f"{number:,.0f}" for number in amounts]
    end, across = 8 + 72 * inches(texts, SMALL), ("axes fraction", "data")
    at_right: dict[str, Any] = {"textcoords": "offset points", "fontsize": SMALL, "ha": "right"}
    for row, text in zip(rows, texts, strict=True):
        ax.annotate(text, (1.0, row), (end, 0), xycoords=across, va="center", **at_right)
    ax.annotate(words, (1.0, 1.0), (end, 4), xycoords="axes fraction", **at_right)


@styled
def sensitivity_scatter(
    frame: Any, x: Any, y: Any, ax: Any = None, *, value: str = "sensitivity", below: Any = None
) -> Any:
    """Draw the annotators' sensitivity to two classes, one dot each, larger where they decided more.

    Figure 2 of Paun et al. (2018) has DO against DN. Those who decided most have their intervals and names.

    Parameters
    ----------
    frame : data frame of ``fit.annotators()``: ``annotator, class, decisions`` and the value with its interval.
    x, y : names of the two classes.
    ax : axes to draw into.
    value : ``sensitivity`` or ``specificity``.
    below : names of annotators who are worse than chance at one of the classes; they are marked.
    """
    from matplotlib.lines import Line2D

    wide = frame[frame["class"].isin([x, y])].pivot(index="annotator", columns="class")
    wide = wide.dropna(subset=[(value, x), (value, y)]) if {x, y} <= set(frame["class"]) else wide.iloc[:0]
    decisions = (wide["decisions"][x] + wide["decisions"][y]).to_numpy(float) if len(wide) else np.zeros(0)
    order = np.argsort(-decisions, kind="stable")
    wide, decisions = wide.iloc[order], decisions[order]
    ax = axes_of(ax, 4.6, 4.6)
    handles, names = [], []
    if len(wide):
        across, up = wide[value][x].to_numpy(float), wide[value][y].to_numpy(float)
        _draw_intervals(ax, wide.iloc[:_MOST_INTERVALS], x, y, value)
        marked = wide.index.isin([] if below is None else list(below))
        size = (0.1 + 0.9 * decisions / decisions.max()) * np.clip(30_000 / len(wide), 16, 80)
        rasterized = len(wide) > MOST_POINTS
        kinds = ((~marked, BLUE, "o", "annotator"), (marked, VERMILLION, "v", "below chance in one of them"))
        for which, colour, marker, words in kinds:
            if which.any():
                look = {"color": colour, "marker": marker, "alpha": 0.5, "linewidth": 0, "rasterized": rasterized}
                ax.scatter(across[which], up[which], s=size[which], **look)
                handles.append(Line2D([], [], color=colour, marker=marker, markersize=5, linestyle=""))
                names.append(words)
        for name, *place in zip(wide.index[:_MOST_NAMED], across, up, strict=False):
            ax.annotate(shown_name(name), place, (5, 4), textcoords="offset points", fontsize=SMALL)
    ax.set(xlabel=f"{value} to {shown_name(x)}", ylabel=f"{value} to {shown_name(y)}", aspect="equal")
    ax.set(title=f"{value.capitalize()} to two classes, {len(wide):,} annotators")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.grid()
    if len(handles) > 1:
        legend_below(ax, handles, names)
    return ax


def _draw_intervals(ax: Any, wide: Any, x: Any, y: Any, value: str) -> None:
    low, high = wide[f"{value}_lower"], wide[f"{value}_upper"]
    thin: dict[str, Any] = {"color": INK, "linewidth": 0.6, "alpha": 0.35, "zorder": 1}
    ax.hlines(wide[value][y], low[x], high[x], **thin)
    ax.vlines(wide[value][x], low[y], high[y], **thin)


@styled
def probability_matrix(
    frame: Any, title: str, *, row: str = "true_label", column: str = "label", amount: str | None = None, ax: Any = None
) -> Any:
    """Draw probabilities as a matrix of cells, with their intervals: ink is probability, and fades with uncertainty.

    A confusion matrix, where rows are the true label and columns the one that was given; cells of equal names have a
    frame.

    Parameters
    ----------
    frame : data frame with the columns ``row``, ``column``, ``probability``, ``lower`` and ``upper``, one row a cell;
        NaN ends: no interval.
    title : of the figure.
    row, column : which columns name the cells.
    amount : a column of how much is known of each row, shown beside its name; one of nothing, the prior's, is blank.
    ax : axes to draw into.
    """
    rows, columns = (list(dict.fromkeys(frame[name])) for name in (row, column))
    place = [[names.index(one) for one in frame[name]] for name, names in ((row, rows), (column, columns))]
    cells = np.full((3, len(rows), len(columns)), np.nan)
    for layer, name in enumerate(("probability", "lower", "upper")):
        cells[layer, place[0], place[1]] = frame[name]
    amounts = [""] * len(rows)
    if amount is not None:
        known_of = frame.groupby(row, sort=False)[amount].first().to_numpy(float)
        amounts = [f" ({number:,.0f})" for number in known_of]
        cells[:, np.round(known_of) == 0] = np.nan
    mean, width = cells[0], np.nan_to_num(cells[2] - cells[1])
    names = [f"{shown_name(one)}{of}" for one, of in zip(rows, amounts, strict=True)]
    given = [shown_name(one) for one in columns]
    turned = inches(given) > _CELL[0]  # these hang from the axis, and to the left of it
    below = 0.64 * inches(given) if turned else 0.0
    ax = axes_of(
        ax, 0.5 + max(inches(names), below) + _CELL[0] * len(columns), 0.95 + below + _CELL[1] * len(rows)
    )  # fmt: skip
    ax.pcolormesh(inked(mean * (1 - width)), edgecolors=GRID, linewidth=0.6)
    for r, c in np.argwhere(np.isfinite(mean)):
        known = np.isfinite(cells[1, r, c])
        look: dict[str, Any] = {"ha": "center", "va": "center"}
        ax.text(c + 0.5, r + (0.31 if known else 0.5), f"{mean[r, c]:.2f}", fontsize=9.5, weight="bold", **look)
        if known:
            ax.text(c + 0.5, r + 0.71, f"{cells[1, r, c]:.2f}–{cells[2, r, c]:.2f}", fontsize=SMALL, **look)
        if row == "true_label" and rows[r] == columns[c]:
            ax.plot([c, c + 1, c + 1, c, c], [r, r, r + 1, r + 1, r], color=INK, linewidth=1.2)
    ax.set_yticks(np.arange(len(rows)) + 0.5, names)
    way = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    ax.set_xticks(np.arange(len(columns)) + 0.5, given, **way)
    ax.tick_params(length=0)
    ax.set(title=title, xlabel=f"{column} given", ylabel=row.replace("_", " "), ylim=(len(rows), 0))
    ax.spines[:].set_visible(False)
    return ax
