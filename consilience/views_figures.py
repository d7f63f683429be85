"""Figures of views; each function draws one and returns its matplotlib Axes, as in `consilience.figures`.

They take the tables of a fit of expert-views, such as ``fit.experts()`` and ``fit.restarts()``. Colours are never
alone: what is certain is opaque, what was never judged has a marker of another shape, and cells show their numbers.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.drawing import (
    BLUE,
    GREEN,
    GRID,
    INK,
    MOST_POINTS,
    VERMILLION,
    axes_of,
    colours_of,
    count_items,
    inked,
    legend_below,
    legend_columns,
    room_for,
    shown_name,
    styled,
)
from consilience.printing import numbered
from consilience.rounding import probability as written

_BEYOND = 1e-3       # Numbers of views that are less probable are not drawn at the ends.
_LABEL = 46          # Characters in a line of the label of an axis.
_FULL = 0.9          # How opaque a cell without a text is at most: half of it is told from it, light or dark.
_FAINTEST = 0.15     # How opaque an item is of which nothing is known.


@styled
def number_of_views(count: Any, ax: Any = None, *, draws: float = math.inf) -> Any:
    """Draw how probable each number of views is.

    Parameters
    ----------
    count : ``fit.num_views()``.
    ax : axes to draw into.
    draws : effective ones, among which it was counted: nothing surer is written.
    """
    table = count.table
    seen = np.flatnonzero(table["probability"].to_numpy() > _BEYOND)
    table = table.iloc[max(seen[0] - 1, 0) : seen[-1] + 2]
    ax = axes_of(ax, 2.6, 2.6)
    bars = ax.bar(table["views"], table["probability"], width=0.7, color=BLUE, alpha=0.75)
    ax.bar_label(bars, [written(value, 2, draws) for value in table["probability"]], padding=2, fontsize=8.5)
    ax.set(title="Number of views", xlabel="views that some expert has", ylabel="probability", ylim=(0, 1.08))
    ax.set_xlim(table["views"].min() - 0.8, table["views"].max() + 0.8)
    count_items(ax.xaxis)
    ax.set_xticks(table["views"])
    return ax


@styled
def restart_bounds(frame: Any, ax: Any = None) -> Any:
    """Draw how far below the best bound each restart ended, and whether it groups the experts as the best does.

    Parameters
    ----------
    frame : data frame of ``fit.restarts()``.
    ax : axes to draw into.
    """
    ax = axes_of(ax, 4.6, 2.6)
    rank, gap = np.arange(1, len(frame) + 1), frame["gap"].to_numpy(float)
    same = frame["same_grouping"].to_numpy(bool)
    handles, names = [], []
    for which, colour, marker, words in (
        (same, BLUE, "o", "same grouping of the experts as the best"), (~same, VERMILLION, "v", "another grouping"),
    ):  # fmt: skip
        if which.any():
            handles += ax.plot(rank[which], gap[which], marker, color=colour, markersize=4.5, clip_on=False)
            names.append(words)
    ax.axhline(1, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    ax.set_yscale("symlog", linthresh=1, linscale=0.6)
    highest = max(gap.max(), 1)
    ticks = [tick for tick in (0, 1, 10, 100, 1_000, 10_000, 100_000) if tick <= 2 * highest]
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks], minor=False)
    ax.set_yticks([], minor=True)
    ax.set_ylim(1.3 * highest, -0.15)
    ax.set(title="Restarts, the best first", xlabel="restart", ylabel="nats below the best bound")
    count_items(ax.xaxis)
    legend_below(ax, handles, names)
    return ax


@styled
def expert_views(
    frame: Any, ax: Any = None, *, title: str = "View of each expert", across: str = "view", down: str = "expert",
    draws: float = math.inf,
) -> Any:  # fmt: skip
    """Draw how probably each expert has each view, or items are in each cluster, as a matrix whose ink is probability.

    Parameters
    ----------
    frame : data frame with a row for each expert, named by its index, and a column for each view, named by its code.
    ax : axes to draw into.
    title, across, down : what is shown, and what columns and rows are.
    draws : effective ones, among which probabilities were counted: nothing surer is written.
    """
    probability = frame.to_numpy(float)
    num_rows, num_columns = probability.shape
    names = [shown_name(name) for name in frame.index]
    longest = max(map(len, names))
    ax = axes_of(ax, max(2.2, 1.0 + 0.6 * num_columns) + 0.065 * longest, 1.0 + 0.24 * max(num_rows, 3))
    ax.pcolormesh(inked(probability), edgecolors=GRID, linewidth=0.6)
    for row, column in np.argwhere(probability >= 0.005):
        text = written(probability[row, column], 2, draws)
        ax.text(column + 0.5, row + 0.53, text, ha="center", va="center", fontsize=8)
    ax.set_yticks(np.arange(num_rows) + 0.5, names)
    ax.set_xticks(np.arange(num_columns) + 0.5, [str(numbered(code)) for code in frame.columns])
    ax.tick_params(length=0)
    ax.set(title=title, xlabel=across, ylabel=down, ylim=(num_rows, 0))
    ax.spines[:].set_visible(False)
    return ax


@styled
def reliability(frame: Any, ax: Any = None) -> Any:
    """Draw sensitivity and specificity of each expert with their intervals, and what the prior believed of them.

    Parameters
    ----------
    frame : data frame of ``fit.experts()``, experts of one view next to each other. Columns such as
        ``sensitivity_prior_lower`` and ``sensitivity_prior_upper`` are the ends of the prior's interval, where it is
        to be drawn.
    ax : axes to draw into.
    """
    from matplotlib.lines import Line2D

    rows = np.arange(len(frame))
    experts = [shown_name(name) for name in frame["expert"]]
    ax = axes_of(ax, room_for(experts), 1.3 + 0.3 * max(3, len(frame)))
    handles: list[Any] = []
    names = []
    for site, shift, colour, marker in (("sensitivity", -0.18, BLUE, "o"), ("specificity", 0.18, GREEN, "s")):
        place, prior = rows + shift, frame[f"{site}_prior"].to_numpy(float)
        if f"{site}_prior_lower" in frame:
            ends = (frame[f"{site}_prior_{end}"].to_numpy(float) for end in ("lower", "upper"))
            ax.hlines(place, *ends, color=GRID, linewidth=5.5, zorder=1)
        ax.plot(prior, place, "|", color=INK, alpha=0.55, markersize=5.5, zorder=2)
        low, high = (frame[f"{site}_{end}"].to_numpy(float) for end in ("lower", "upper"))
        ax.hlines(place, low, high, color=colour, linewidth=2.4, alpha=0.5, zorder=3)
        ax.plot(frame[site].to_numpy(float), place, marker, color=colour, markersize=4.5, zorder=4)
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=4.5))
        names.append(site)
    if np.isfinite(frame["sensitivity_prior"].to_numpy(float)).any():
        width = 5.5 if "sensitivity_prior_lower" in frame else 0
        handles.append(Line2D([], [], color=GRID, linewidth=width, marker="|", markeredgecolor=INK, markersize=5.5))
        names.append("prior")
    for row in np.flatnonzero(np.diff(frame["view"].to_numpy())):
        ax.axhline(row + 0.5, color=INK, linewidth=0.6, alpha=0.6)
    _write_beside(ax, rows, 46, "answers", [f"{number:,.0f}" for number in frame["answers"]])
    _write_beside(ax, rows, 84, "weight", [f"{number:.1f}" for number in frame["weight"]])
    _write_beside(ax, rows, 112, "view", [str(numbered(view)) for view in frame["view"]])
    ax.set_yticks(rows, experts)
    lows = [name for name in frame if name.endswith("_lower") and name.startswith(("sensitivity", "specificity"))]
    least = min(0.5, *(np.nanmin(frame[name].to_numpy(float)) for name in lows))
    ax.set(title="Sensitivity and specificity", xlabel="probability", xlim=(np.floor(10 * least) / 10 - 0.01, 1.01))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    legend_below(ax, handles, names)
    return ax


def _write_beside(ax: Any, rows: np.ndarray, points: float, words: str, texts: Sequence[str]) -> None:
    """Write a column of numbers at the right of the axes, which ends so many points from them."""
    look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8.5, "ha": "right"}
    for row, text in zip(rows, texts, strict=True):
        ax.annotate(text, (1.0, row), (points, 0), xycoords=("axes fraction", "data"), va="center", **look)
    ax.annotate(words, (1.0, 1.0), (points, 3), xycoords="axes fraction", **look)


@styled
def clusters(
    place: np.ndarray, probability: np.ndarray, judged: np.ndarray, names: tuple[str, str], title: str, ax: Any = None
) -> Any:
    """Draw the items of a view over two directions: the cluster by colour, its probability by opacity.

    Parameters
    ----------
    place : float, shape ``(item, 2)``.
    probability : of the clusters, shape ``(item, cluster)``.
    judged : booleans, shape ``(item,)``; the others have crosses.
    names : of the two directions.
    title : of the figure.
    ax : axes to draw into.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    ax = axes_of(ax, 4.6, 4.6)
    num_clusters = probability.shape[1]
    code, sure = probability.argmax(axis=1), probability.max(axis=1)
    # A probability of one over the number of clusters says nothing.
    opacity = _FAINTEST + (1 - _FAINTEST) * (sure - 1 / num_clusters) / (1 - 1 / num_clusters)
    colour = np.array([to_rgb(one) for one in colours_of(num_clusters)])[code]
    colour = np.concatenate([colour, opacity.clip(0, 1)[:, None]], axis=1)
    size = np.clip(12_000 / max(len(place), 1), 4, 26)
    for which, look in ((judged, {"marker": "o", "linewidth": 0}), (~judged, {"marker": "x", "linewidth": 1.1})):
        if which.any():
            ax.scatter(*place[which].T, s=size, color=colour[which], rasterized=len(place) > MOST_POINTS, **look)
    handles: list[Any] = []
    labels = []
    for cluster, hue in enumerate(colours_of(num_clusters)):
        if (code == cluster).any():
            handles.append(Line2D([], [], color=hue, marker="o", markersize=4.5, linestyle=""))
            labels.append(f"cluster {numbered(cluster)}")
    if (~judged).any():
        handles.append(Line2D([], [], color=INK, marker="x", markersize=4.5, linestyle=""))
        labels.append("never judged")
    across, up = (textwrap.fill(name, _LABEL) for name in names)
    ax.set(xlabel=across, ylabel=up)
    ax.grid()
    # Above the axes: the labels below may have several lines, and beside them a telephone has no room.
    columns = legend_columns(labels, ax.figure.get_figwidth() - 0.9)
    ax.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3, borderpad=0, handlelength=1.2,
        columnspacing=1.4, ncols=columns,
    )  # fmt: skip
    rows = -(-len(labels) // columns)
    ax.set_title(title, loc="left", pad=6 + 14 * rows)
    return ax


@styled
def pairs_by_model(together: np.ndarray, label: np.ndarray, ax: Any = None) -> Any:
    """Draw how probably two items are together, for all pairs.

    Parameters
    ----------
    together : float, shape ``(item, item)``, from 0 to 1.
    label : shape ``(item,)``; the cluster of each item, in the order of the rows.
    ax : axes to draw into.
    """
    looks = [("1", BLUE, _FULL), ("0.5", BLUE, _FULL / 2), ("0", "none", 1.0)]
    return _pairs(inked(together, _FULL), label, "Model: how probably two items are together", looks, ax)


@styled
def pairs_by_experts(said: np.ndarray, label: np.ndarray, ax: Any = None) -> Any:
    """Draw what experts said of pairs of items.

    Parameters
    ----------
    said : float, shape ``(item, item)``, the share of answers that say together; not a number where nobody was asked.
    label : shape ``(item,)``; the cluster of each item, in the order of the rows.
    ax : axes to draw into.
    """
    signed, mixed = np.nan_to_num(2 * said - 1), (said > 0) & (said < 1)
    colour = inked(np.where(mixed, 0.5 * np.sign(signed), signed), _FULL)  # one ink, which is told from none
    colour[said == 0.5] = 0.5, 0.5, 0.5, 0.6  # as many said the one as the other
    looks = [("together", BLUE, _FULL), ("apart", VERMILLION, _FULL)]
    most = {"most say together": (BLUE, said > 0.5), "most say apart": (VERMILLION, said < 0.5)}
    looks += [(name, ink, _FULL / 2) for name, (ink, which) in most.items() if (mixed & which).any()]
    looks += [("as many say either", "0.5", 0.6)] * bool((said == 0.5).any())
    looks += [("nobody was asked", "none", 1.0)] * bool(np.isnan(said).any())
    return _pairs(colour, label, "Experts: what they said of pairs", looks, ax)


# One step beside the house's colours, which a dark page replaces by lighter ones: in a picture of cells it cannot.
_OF_CELLS = {BLUE: "#0072b3", VERMILLION: "#d55e01"}


def _pairs(colour: np.ndarray, label: np.ndarray, title: str, looks: list[tuple[str, str, float]], ax: Any) -> Any:
    """Draw a cell for each pair of items, with lines between clusters and what its colours mean."""
    from matplotlib.patches import Patch

    number = len(label)
    ax = axes_of(ax, 4.2, 5.4)  # of three rows of colours below
    ax.set_anchor("N")  # so that two side by side are level
    ax.imshow(colour, interpolation="nearest", extent=(0, number, number, 0), aspect="equal")
    begins = np.flatnonzero(np.diff(label)) + 1
    for place in begins:
        ax.axhline(place, color=INK, linewidth=0.6)
        ax.axvline(place, color=INK, linewidth=0.6)
    ends = np.concatenate([[0], begins, [number]])
    middle, names = (ends[:-1] + ends[1:]) / 2, [str(numbered(label[start])) for start in ends[:-1]]
    ax.set_xticks(middle, names)
    ax.set_yticks(middle, names)
    ax.tick_params(length=0)
    ax.set(title=title, xlabel="items, by cluster", ylabel="items, by cluster")
    handles = [
        Patch(facecolor=_OF_CELLS.get(ink, ink), alpha=alpha, edgecolor="0.6" if ink == "none" else "none")
        for _, ink, alpha in looks
    ]
    legend_below(ax, handles, [name for name, *_ in looks])
    return ax
