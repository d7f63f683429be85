"""Figures of the first screen of pages: small ones, of one message, that are read at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.drawing import BLUE, INK, VERMILLION, axes_of, count_items, inked, legend_below, shown_name, styled
from consilience.printing import numbered

_WIDTH = 4.2
_MOST_ITEMS = 200  # more bars could not be told apart


@styled
def least_certain(names: Sequence[Any], certainty: np.ndarray, title: str, sure: float, ax: Any = None) -> Any:
    """Draw the certainties of some things, each a dot on a line, beside what counts as sure.

    Parameters
    ----------
    names, certainty : of each, the least certain first.
    title : of the figure.
    sure : what counts as sure.
    ax : axes to draw into.
    """
    rows = np.arange(len(names))
    ax = axes_of(ax, _WIDTH, 1.1 + 0.26 * max(len(names), 2))
    ax.hlines(rows, 0, certainty, color=BLUE, linewidth=2, alpha=0.4)
    ax.plot(certainty, rows, "o", color=BLUE, markersize=6)
    ax.axvline(sure, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    ax.set_yticks(rows, [shown_name(name) for name in names])
    ax.set(title=title, xlabel="certainty", xlim=(0, 1.01), ylim=(len(rows) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    return ax


@styled
def items_by_mean(frame: Any, above: np.ndarray, threshold: float, sure: float, ax: Any = None) -> Any:
    """Draw items by their mean, each with its interval, in the colour and shape of what is known of its side.

    Parameters
    ----------
    frame : data frame of ``fit.means()``.
    above : how probably the mean of each is above the threshold.
    threshold, sure : of the means, and what counts as sure.
    ax : axes to draw into.
    """
    order = np.argsort(frame["mean"].to_numpy(), kind="stable")
    if len(order) > _MOST_ITEMS:
        order = order[np.linspace(0, len(order) - 1, _MOST_ITEMS).round().astype(int)]
    rank, shown, chance = np.arange(1, len(order) + 1), frame.iloc[order], np.asarray(above)[order]
    ax = axes_of(ax, _WIDTH, 3.0)
    kinds = (
        (side_is_sure(chance, sure) & (chance > 0.5), BLUE, "^", f"surely above ({100 * sure:.0f} %)"),
        (~side_is_sure(chance, sure), "0.5", "o", "open"),
        (side_is_sure(chance, sure) & (chance < 0.5), VERMILLION, "v", f"surely below ({100 * sure:.0f} %)"),
    )
    handles, names = [], []
    for which, colour, marker, name in kinds:
        if which.any():
            own = shown[which]
            ax.vlines(rank[which], own["lower"], own["upper"], color=colour, linewidth=1.6, alpha=0.45)
            handles += ax.plot(rank[which], own["mean"], marker, color=colour, markersize=4.5)
            names.append(name)
    ax.axhline(threshold, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    few = "" if len(order) == len(frame) else f", {len(order)} of {len(frame):,} of them"
    ax.set(title="Means of items, with 95 % intervals", xlabel=f"items, lowest first{few}", ylabel="rating")
    count_items(ax.xaxis)
    ax.grid(axis="y")
    legend_below(ax, handles, names)
    return ax


@styled
def said_together(share: np.ndarray, ax: Any = None) -> Any:
    """Draw how often experts call items of two clusters together, as a triangle whose ink is that share.

    Parameters
    ----------
    share : shape ``(cluster, cluster)``, of which the upper half is drawn; not a number where nobody was asked.
    ax : axes to draw into.
    """
    number = len(share)
    ax = axes_of(ax, _WIDTH, min(1.4 + 0.5 * number, 4.2))
    drawn = np.triu(np.ones(share.shape, bool)) & np.isfinite(share)
    ax.pcolormesh(inked(np.where(drawn, share, 0)))
    for row, column in np.argwhere(drawn):
        ax.text(column + 0.5, row + 0.5, f"{100 * share[row, column]:.0f} %", ha="center", va="center")
    names = [str(numbered(code)) for code in range(number)]
    ax.set_xticks(np.arange(number) + 0.5, names)
    ax.set_yticks(np.arange(number) + 0.5, names)
    ax.tick_params(length=0)
    ax.set(title="How often experts say “together”", xlabel="cluster of one item", ylabel="of the other")
    ax.set_ylim(number, 0)
    ax.spines[:].set_visible(False)
    return ax


def side_is_sure(above: np.ndarray, sure: float) -> np.ndarray:
    """Return which probabilities of one side, as they are written, are sure of it or of the other side."""
    return np.round(np.maximum(above, 1 - above), 3) >= sure
