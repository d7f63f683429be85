"""Figures of the first screen of pages: small ones, of one message, that are read at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.drawing import BLUE, INK, VERMILLION, axes_of, legend_below, shown_name, styled
from consilience.printing import numbered
from consilience.rounding import reaches

_WIDTH = 4.2
_MOST_ITEMS, _MOST_NAMED = 200, 20  # more bars could not be told apart, nor more names be read
_LONGEST_NAME = 12


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
def chains_beside_gold(
    names: Sequence[Any], probability: np.ndarray, right: np.ndarray, title: str, sure: float, ax: Any = None,
    *, error: np.ndarray | None = None,
) -> Any:  # fmt: skip
    """Draw how probable chains are, each a mark on a line that tells whether it is a gold chain.

    Parameters
    ----------
    names, probability, right : of each, the least probable first.
    title : of the figure.
    sure : what counts as sure, a line.
    ax : axes to draw into.
    error : half of the interval that the number of draws leaves, of each.
    """
    rows = np.arange(len(names))
    ax = axes_of(ax, _WIDTH, 1.5 + 0.19 * max(len(names), 2))
    handles, said = [], []
    for which, colour, marker, name in (
        (np.asarray(right, bool), BLUE, "o", "exactly a gold chain"),
        (~np.asarray(right, bool), VERMILLION, "X", "not a gold chain"),
    ):  # fmt: skip
        if which.any():
            ax.hlines(rows[which], 0, probability[which], color=colour, linewidth=2, alpha=0.4)
            handles += ax.plot(probability[which], rows[which], marker, color=colour, markersize=6.5)
            said.append(name)
    handles.append(ax.axvline(sure, color=INK, linewidth=0.8, linestyle=(0, (3, 2))))
    said.append(f"certain: {sure:g} or more")
    if error is not None and np.isfinite(error).all():
        low, high = np.clip([probability - error, probability + error], 0, 1)
        handles.append(ax.hlines(rows, low, high, color=INK, linewidth=1))
        said.append("± of the number of draws")
    ax.set_yticks(rows, [shown_name(name) for name in names])
    ax.set(title=title, xlabel="probability that the chain is exactly right")
    ax.set(xlim=(0, 1.02), ylim=(len(rows) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    legend_below(ax, handles, said)
    return ax


@styled
def items_by_mean(
    names: Sequence[Any], mean: np.ndarray, interval: np.ndarray, above: np.ndarray, threshold: float, sure: float,
    ax: Any = None,
) -> Any:  # fmt: skip
    """Draw items by their mean, each with its interval, in the colour and shape of what is known of its side.

    Parameters
    ----------
    names : of the items; as many are written as can be read.
    mean : of each item.
    interval : shape ``(2, item)``, its ends, of the level at which it does not hold the threshold where a side is sure.
    above : how probably the mean of each is above the threshold.
    threshold, sure : of the means, and what counts as sure.
    ax : axes to draw into.
    """
    order = np.argsort(mean, kind="stable")
    if len(order) > _MOST_ITEMS:
        order = order[np.linspace(0, len(order) - 1, _MOST_ITEMS).round().astype(int)]
    rank, chance = np.arange(1, len(order) + 1), np.asarray(above)[order]
    ax = axes_of(ax, _WIDTH, 3.0)
    kinds = (
        (side_is_sure(chance, sure) & (chance > 0.5), BLUE, "^", f"above, at least {100 * sure:.0f} % certain"),
        (~side_is_sure(chance, sure), "0.5", "o", "open"),
        (side_is_sure(chance, sure) & (chance < 0.5), VERMILLION, "v", f"below, at least {100 * sure:.0f} % certain"),
    )
    handles, told = [], []
    for which, colour, marker, name in kinds:
        if which.any():
            own = order[which]
            ax.vlines(rank[which], *np.asarray(interval)[:, own], color=colour, linewidth=1.6, alpha=0.45)
            handles += ax.plot(rank[which], np.asarray(mean)[own], marker, color=colour, markersize=4.5)
            told.append(name)
    ax.axhline(threshold, color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    few = "" if len(order) == len(mean) else f", {len(order)} of {len(mean):,} of them"
    named = np.linspace(0, len(order) - 1, min(len(order), _MOST_NAMED)).round().astype(int)
    few += f"; {len(named)} are named" * (len(named) < len(order))
    ax.set_xticks(rank[named], [_brief(shown_name(names[order[one]])) for one in named], rotation=90, fontsize=8)
    level = f"{100 * (2 * sure - 1):.0f} %"
    clear = f"{level}: clear of {threshold:g} means {100 * sure:.0f} % certain"
    ax.set(title=f"Mean of each item, with interval\n({clear})", xlabel=f"items, lowest first{few}", ylabel="rating")
    ax.grid(axis="y")
    legend_below(ax, handles, told)
    return ax


def _brief(name: str) -> str:
    """Leave out the middle of a long name, which is written along a narrow axis."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 7]}…{name[-6:]}"


@styled
def said_together(share: np.ndarray, number: np.ndarray, ax: Any = None) -> Any:
    """Draw how often experts say “together” of two items of one cluster, and of two items of different clusters.

    Parameters
    ----------
    share : of each cluster and last of different ones; not a number where nobody was asked.
    number : of answers, of each.
    ax : axes to draw into.
    """
    names = [f"both in cluster {numbered(code)}" for code in range(len(share) - 1)] + ["in different clusters"]
    asked = np.flatnonzero(np.isfinite(share))
    rows = np.arange(len(asked))
    ax = axes_of(ax, _WIDTH, 1.2 + 0.4 * len(rows))
    across = asked == len(share) - 1
    bars = ax.barh(rows, 100 * share[asked], color=np.where(across, VERMILLION, BLUE).tolist(), height=0.65)
    told = [f"{100 * share[one]:.0f} % of {number[one]:,}" for one in asked]
    ax.bar_label(bars, told, padding=3, fontsize=9)
    ax.set_yticks(rows, [names[one] for one in asked])
    across = "% of answers about two items;\nthe clusters were made from these answers"
    ax.set(title="How often experts say “together”", xlabel=across)
    ax.set(xlim=(0, 138), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xticks([0, 50, 100])
    ax.spines["bottom"].set_bounds(0, 100)  # what is right of it is room for the labels of long bars
    ax.tick_params(axis="y", length=0)
    return ax


def side_is_sure(above: np.ndarray, sure: float) -> np.ndarray:
    """Return which probabilities of one side are sure of it or of the other side."""
    return reaches(np.maximum(above, 1 - above), sure)
