"""Figures of agreement; each function draws one and returns its matplotlib Axes, as in `consilience.figures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.drawing import (
    BLUE,
    GRID,
    INK,
    VERMILLION,
    axes_of,
    colours_of,
    count_items,
    legend_below,
    shown_name,
    styled,
)
from consilience.evaluation.agreement import PosteriorAgreement

# A matrix of more annotators cannot be read; those who share most items with others are drawn.
MOST_ANNOTATORS = 30

# Cells of so many can be written on.
_MOST_WRITTEN = 16


@styled
def agreement_by_name(
    frame: Any, name: str, value: str, title: str, ax: Any = None, *, most: int = 30, chance: str = ""
) -> Any:  # fmt: skip
    """Draw values with their intervals, one row each: schemes, labels or annotators.

    Parameters
    ----------
    frame : data frame with the columns ``name``, ``value``, ``lower``, ``upper``; rows without a value are left out.
    name, value : which columns.
    title : of the figure.
    ax : axes to draw into.
    most : rows to draw; of more, those at equal distances are.
    chance : the column of what labels at random would reach, which is marked.
    """
    frame = frame[frame[value].notna()]
    if len(frame) > most:
        frame = frame.iloc[np.linspace(0, len(frame) - 1, most).round().astype(int)]
    ax = axes_of(ax, height=1.1 + 0.24 * max(2, len(frame)))
    rows = np.arange(len(frame))
    ax.hlines(rows, frame["lower"], frame["upper"], color=BLUE, linewidth=3.2, alpha=0.55)
    handles = ax.plot(frame[value], rows, "o", color=BLUE, markersize=5)
    if chance:
        handles += ax.plot(frame[chance], rows, "|", color=VERMILLION, markersize=11, markeredgewidth=2)
        legend_below(ax, handles, ["agreement, with its interval", "labels at random"])
    ax.set_yticks(rows, [shown_name(text) for text in frame[name]])
    ax.set(title=title, xlabel="agreement")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    return ax


@styled
def annotator_matrix(pairs: Any, ax: Any = None) -> Any:
    """Draw how often every two annotators agree on the items that both labelled; white where they share none.

    Cells of few annotators show the agreement, and below it how many items it is of.

    Parameters
    ----------
    pairs : data frame of `Agreement.pairs`: ``annotator_a, annotator_b, items, agreement``; of those who share most
        items, or of all.
    ax : axes to draw into.
    """
    from matplotlib import colormaps

    both = np.concatenate([pairs["annotator_a"].to_numpy(object), pairs["annotator_b"].to_numpy(object)])
    names, code = np.unique(both.astype(str), return_inverse=True)
    shared = np.bincount(code, np.tile(pairs["items"], 2), len(names))
    kept = np.sort(np.argsort(-shared, kind="stable")[:MOST_ANNOTATORS])
    place = np.full(len(names), -1)
    place[kept] = np.arange(len(kept))
    first, second = place[code[: len(pairs)]], place[code[len(pairs) :]]
    drawn = (first >= 0) & (second >= 0)
    matrix, items = np.full((2, len(kept), len(kept)), np.nan)
    for cells, values in ((matrix, pairs["agreement"]), (items, pairs["items"])):
        cells[first[drawn], second[drawn]] = cells[second[drawn], first[drawn]] = values.to_numpy()[drawn]
    written = len(kept) <= _MOST_WRITTEN
    side = 1.6 + (0.44 if written else 0.17) * len(kept)
    ax = axes_of(ax, side + (0.0 if written else 0.7), side)
    colours = colormaps["Blues"].with_extremes(bad="none")
    cells = ax.pcolormesh(np.ma.masked_invalid(0.9 * matrix), vmin=0, vmax=1, cmap=colours, edgecolors=GRID)
    cells.set_linewidth(0.6)
    for row, column in np.argwhere(np.isfinite(matrix)) if written else ():
        value, ink = matrix[row, column], "#111111" if matrix[row, column] < 0.6 else "#ffffff"
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": ink}
        ax.text(column + 0.5, row + 0.36, f"{value:.2f}", fontsize=8.5, **look)
        ax.text(column + 0.5, row + 0.74, f"{items[row, column]:,.0f}", fontsize=7, **look)
    labels = [shown_name(name) for name in names[kept]]
    ax.set_xticks(np.arange(len(kept)) + 0.5, labels, rotation=90)
    ax.set_yticks(np.arange(len(kept)) + 0.5, labels)
    ax.set(aspect="equal", ylim=(len(kept), 0))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    total = pairs.attrs.get("annotators", len(names))
    which = f":\nthe {len(kept)} of {total} annotators who share most items" if len(kept) < total else ""
    ax.set(title="Agreement of every two annotators" + which + (", and number of common items" if written else ""))
    if not written:
        bar = ax.figure.colorbar(cells, ax=ax, shrink=0.7, label="share of common items with equal labels")
        bar.set_ticks(0.9 * np.linspace(0, 1, 6), labels=[f"{value:.1f}" for value in np.linspace(0, 1, 6)])
    return ax


@styled
def learning_curve(frame: Any, ax: Any = None) -> Any:
    """Draw SPA as annotations arrived, one curve a scheme.

    Parameters
    ----------
    frame : data frame of `Agreement.curve`: ``num_annotations``, ``num_items``, and one column a scheme.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    schemes = [name for name in frame.columns if name not in ("num_annotations", "num_items")]
    handles = []
    for scheme, colour in zip(schemes, colours_of(len(schemes)), strict=True):
        handles += ax.plot(frame["num_annotations"], frame[scheme], color=colour)
    ax.set(title="Agreement as annotations arrived", xlabel="annotations so far", ylabel="agreement")
    count_items(ax.xaxis)
    ax.grid(axis="y")
    if len(schemes) > 1:
        legend_below(ax, handles, schemes)
    return ax


@styled
def monitoring(frame: Any, ax: Any = None, level: float = 0.95) -> Any:
    """Draw agreement over items in their order, with the band that holds at all times at once.

    Parameters
    ----------
    frame : data frame of `Agreement.monitor`: ``items, agreement, lower, upper``.
    ax : axes to draw into.
    level : of the band.
    """
    ax = axes_of(ax)
    line = ax.plot(frame["items"], frame["agreement"], color=BLUE)
    band = ax.fill_between(frame["items"], frame["lower"], frame["upper"], color=BLUE, alpha=0.18, linewidth=0)
    ax.set(title="Agreement as items were completed", xlabel="items with two annotations or more", ylabel="agreement")
    count_items(ax.xaxis)
    ax.grid(axis="y")
    legend_below(ax, [*line, band], ["estimate", f"{100 * level:g} % confidence sequence"])
    return ax


@styled
def predictive_check(found: PosteriorAgreement, ax: Any = None) -> Any:
    """Draw the agreement that the fitted model would show in data like these, and the one that was observed.

    Parameters
    ----------
    found : of `consilience.agreement` for a fit to annotations.
    ax : axes to draw into.
    """
    ax = axes_of(ax, height=2.6)
    values = np.append(found.predictive, found.observed)
    room = 0.04 * max(np.ptp(values), 1e-3)
    edges = np.linspace(values.min() - room, values.max() + room, 31)
    _, _, bars = ax.hist(found.predictive, bins=edges, color=GRID, edgecolor=INK, linewidth=0.4)
    line = ax.axvline(found.observed, color=VERMILLION, linewidth=2)
    ax.set(title="What the model expects, and what was observed", xlabel="agreement", ylabel="simulated data sets")
    count_items(ax.yaxis)
    legend_below(ax, [bars, line], ["simulated from the fit", "observed"])
    return ax
