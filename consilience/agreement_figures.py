"""Figures of agreement; each function draws one and returns its matplotlib Axes, as in `consilience.figures`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.drawing import (
    BLUE,
    GRID,
    INK,
    SKY,
    SMALL,
    VERMILLION,
    axes_of,
    colours_of,
    count_items,
    folded,
    inches,
    inked,
    legend_below,
    room_for,
    shown_name,
    styled,
)
from consilience.evaluation.agreement import PosteriorAgreement

# A matrix of more annotators cannot be read; those who share most items with others are drawn.
MOST_ANNOTATORS = 16

FEW_ITEMS = 10
"""Common items of two annotators, of which fewer say little about how often they agree."""

_MUTED = 0.65  # of the ink; on white this has the contrast that texts need


@styled
def agreement_by_name(
    frame: Any, name: str, value: str, title: str, ax: Any = None, *, most: int = 30, chance: str = "",
    whose: str = "",
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
    whose : for whom intervals are, such as these annotators; the legend says so.
    """
    frame = frame[frame[value].notna()]
    if len(frame) > most:
        frame = frame.iloc[np.linspace(0, len(frame) - 1, most).round().astype(int)]
    names = [shown_name(text) for text in frame[name]]
    ax = axes_of(ax, room_for(names), 1.1 + 0.24 * max(2, len(frame)))
    rows = np.arange(len(frame))
    ax.hlines(rows, frame["lower"], frame["upper"], color=BLUE, linewidth=3.2, alpha=0.55)
    handles = ax.plot(frame[value], rows, "o", color=BLUE, markersize=5)
    ax.set_yticks(rows, names)
    names = ["agreement, with its interval" + f"\nfor {whose}" * bool(whose)]  # in one line it may leave the figure
    if chance:
        handles += ax.plot(frame[chance], rows, "|", color=VERMILLION, markersize=11, markeredgewidth=2)
        names.append("labels at random")
    legend_below(ax, handles, names)
    ax.set(title=title, xlabel="agreement")
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    return ax


@styled
def annotator_matrix(pairs: Any, ax: Any = None) -> Any:
    """Draw how often every two annotators agree on the items that both labelled.

    Who agrees least with the others stands first. Colour is agreement; where two share fewer than `FEW_ITEMS` items the
    number is grey and has none, and a dash stands where they share no item.

    Parameters
    ----------
    pairs : data frame of `Agreement.pairs`: ``annotator_a, annotator_b, items, agreement, lower, upper``; of those who
        share most items, or of all.
    ax : axes to draw into.
    """
    both = np.concatenate([pairs["annotator_a"].to_numpy(object), pairs["annotator_b"].to_numpy(object)])
    names, code = np.unique(both.astype(str), return_inverse=True)
    frame = pairs
    shared, agreed = (
        np.bincount(code, np.tile(one, 2), len(names)) for one in (frame["items"], frame["items"] * frame["agreement"])
    )
    kept = np.argsort(-shared, kind="stable")[:MOST_ANNOTATORS]
    kept = kept[np.argsort(agreed[kept] / shared[kept], kind="stable")]
    place = np.full(len(names), -1)
    place[kept] = np.arange(len(kept))
    first, second = place[code[: len(frame)]], place[code[len(frame) :]]
    drawn, own_figure = (first >= 0) & (second >= 0), ax is None
    matrix, items = np.full((2, len(kept), len(kept)), np.nan)
    for cells, column in ((matrix, "agreement"), (items, "items")):
        cells[first[drawn], second[drawn]] = cells[second[drawn], first[drawn]] = frame[column].to_numpy()[drawn]
    labels = [shown_name(name) for name in names[kept]]
    side = 0.7 + inches(labels) + 0.31 * len(kept)  # twelve fit a phone
    ax = axes_of(ax, side, side)
    ax.pcolormesh(inked(np.where(items >= FEW_ITEMS, matrix, 0)), edgecolors=GRID, linewidth=0.6)
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
    for row, column in np.argwhere(~np.eye(len(kept), dtype=bool)):
        known, many = np.isfinite(matrix[row, column]), items[row, column] >= FEW_ITEMS
        text = f"{100 * matrix[row, column]:.0f}" if known else "–"
        ax.text(column + 0.5, row + 0.5, text, alpha=1.0 if many else _MUTED, **look)
    ax.set_xticks(np.arange(len(kept)) + 0.5, labels, rotation=90)
    ax.set_yticks(np.arange(len(kept)) + 0.5, labels)
    ax.set(aspect="equal", ylim=(len(kept), 0))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    total = pairs.attrs.get("annotators", len(names))
    which = f" ({len(kept)} of {total:,})" if len(kept) < total else ""
    ax.set(title=f"Agreement of every two annotators{which}, %")
    if own_figure:
        _colour_key(ax)
    return ax


def _colour_key(ax: Any) -> None:
    """Say below a figure of its own what colours of cells stand for."""
    from matplotlib.patches import Patch

    cells = [Patch(facecolor=tuple(inked(share)), edgecolor=GRID) for share in (0.25, 0.5, 0.75, 1.0)]
    ax.figure.legend(cells, ["25", "50", "75", "100"], loc="outside lower left", ncols=4, handlelength=1.2)


@styled
def splits_of_items(
    names: Sequence[str], items: Any, kinds: Sequence[str], ax: Any = None, *, right: Sequence[str] = ()
) -> Any:  # fmt: skip
    """Draw how many items split in which way, such as three labels of four the same.

    Parameters
    ----------
    names : of the ways.
    items : how many items split so.
    kinds : of the ways, one colour each; the legend names them where they are not the names themselves.
    ax : axes to draw into.
    right : how often a majority vote is right, of each way; "" where that is not known.
    """
    from matplotlib.patches import Patch

    ax = axes_of(ax, 4.2, 3.0)
    every = list(dict.fromkeys(kinds))
    colour = dict(zip(every, (BLUE, SKY, VERMILLION), strict=False))
    alone = list(names) == every  # then the rows name the kinds
    rows = np.arange(len(names))
    bars = ax.barh(rows, items, color=[colour[kind] for kind in kinds], height=0.7)
    known = [f" (vote right on {one})" if one else "" for one in right] or [""] * len(rows)
    texts = [f"{number:,}{said}" for number, said in zip(items, known, strict=True)]
    ax.bar_label(bars, texts, padding=3, fontsize=9)
    ax.set_yticks(rows, [folded(name) for name in names])
    ax.set(title="How the labels of an item split", xlabel="items", ylim=(len(names) - 0.4, -0.6))
    ax.margins(x=1.0 if any(known) else 0.12)  # room for the texts
    ax.tick_params(axis="y", length=0)
    count_items(ax.xaxis)
    if not alone:
        legend_below(ax, [Patch(color=colour[kind]) for kind in every], every)
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
    legend_below(ax, [*line, band], ["estimate", f"{100 * level:g} % confidence sequence, for these annotators"])
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
