"""Figures of the demonstration alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience import figures
from consilience.drawing import (
    BLUE,
    GREEN,
    INK,
    VERMILLION,
    axes_of,
    folded,
    legend_below,
    room_for,
    shown_name,
    styled,
)
from consilience.evaluation.leaderboard import Comparison
from consilience.system_figures import Scores, scores_at_a_glance

TOY_LABELS = ("Benign 1", "Benign 2", "Cancer")
RELIABILITIES = (0.5, 1.0, 2.0, 5.0, 10.0)

_COLOURS = (BLUE, GREEN, VERMILLION)
_THIRD = 3.3  # inches of a figure of three in a row


@styled
def plausibilities(fit: Any, item: Any, place: int) -> Any:
    """Draw the plausibilities of a case, narrow enough for three in a row, of which the first has the legend.

    Parameters
    ----------
    fit : of the cases.
    item : the case.
    place : in the row.
    """
    ax = figures.plausibility_bars(fit, item, axes_of(None, _THIRD, 3.6), unit="case")
    if place:
        ax.get_legend().remove()
    ax.set_title(f"Case {item}")
    return ax


@styled
def leaderboard_by_priors(found: Mapping[str, Comparison], true: Mapping[str, float]) -> Any:
    """Draw what the model says of each system by each prior, beside the truth and what a majority vote claims.

    Parameters
    ----------
    found : comparisons of the same systems, by the name of the prior; systems stand in the order of the first.
    true : accuracy of each system.
    """
    first, *_ = found.values()
    systems = first.table["system"].tolist()
    rows = np.arange(len(systems), dtype=float)
    names = [folded(shown_name(name)) for name in systems]
    ax = axes_of(None, room_for(names), 2.0 + 0.75 * len(systems))
    for place, (prior, comparison) in enumerate(found.items()):
        table, at = comparison.table.set_index("system").loc[systems], rows + 0.22 * (place - (len(found) - 1) / 2)
        ax.hlines(at, table["lower"], table["upper"], color=_COLOURS[place], linewidth=2.6, alpha=0.55)
        label = f"{prior}, with 95 % interval"
        ax.plot(table["value"], at, "osD"[place], color=_COLOURS[place], markersize=5, label=label)
    points = first.table.set_index("system").loc[systems, "point_estimate"]
    ax.plot(points, rows, "x", color=INK, markersize=6.5, markeredgewidth=1.6, label="against the majority vote")
    for row, name in zip(rows, systems, strict=True):
        ax.vlines(true[name], row - 0.36, row + 0.36, color=INK, linewidth=1.4, label="truth" if not row else None)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(systems) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    ax.set(title=f"Leaderboard: {first.title}, {first.num_items} items", xlabel=first.title)
    legend_below(ax, *ax.get_legend_handles_labels())
    return ax


def leaderboard_at_a_glance(found: Comparison, true: Mapping[str, float], told: Any) -> Any:
    """Draw what the model says of each system, beside the truth and a majority vote.

    Parameters
    ----------
    found : the systems, as if all had learned from the crowd.
    true : accuracy of each.
    told : the row of one that did not, of which the model is told so; it is drawn both ways.
    """
    rows = [told, *found.table.itertuples()]
    value, lower, upper = (np.array([getattr(row, name) for row in rows]) for name in ("value", "lower", "upper"))
    claimed = dict(zip(found.table["system"], found.table["point_estimate"], strict=True))
    marks = {"truth": np.array([true[row.system] for row in rows])}
    marks |= {"majority vote": np.array([claimed[row.system] for row in rows])}
    both = {True: "; model told so", False: "; model not told"}
    names = [f"{row.system}{both[row is told] if row.system == told.system else ''}" for row in rows]
    scores = Scores("model, 95 %", value[None], lower, upper)
    return scores_at_a_glance(names, scores, "Accuracy of simulated systems", marks=marks)


@styled
def triangle(name: str, draws: np.ndarray, truth: np.ndarray) -> Any:
    """Draw the plausibilities of an example with the true one.

    Parameters
    ----------
    name : of the example.
    draws : of the plausibilities.
    truth : the true ones.
    """
    ax = figures.simplex(draws, truth, TOY_LABELS, axes_of(None, 3.0, 2.8))  # three in a row
    ax.set_title(name, pad=18)
    return ax


@styled
def certainty_over(x: np.ndarray, certainty: np.ndarray, plausibility: np.ndarray) -> tuple[Any, Any]:
    """Draw the true plausibilities over x, and beside them the expected certainty at each reliability.

    Parameters
    ----------
    x : places along the line.
    certainty : at each of them, by reliability.
    plausibility : of each condition there.
    """
    import matplotlib

    above, below = _two()
    for values, name, colour in zip(plausibility.T, TOY_LABELS, _COLOURS, strict=True):
        above.plot(x, values, color=colour, label=name)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.2, 0.9, len(RELIABILITIES)))
    for values, value, colour in zip(certainty.T, RELIABILITIES, shades, strict=True):
        below.plot(x, values, color=colour, label=f"γ = {value:g}")
    title = "True plausibilities of the three conditions at x"
    above.set(title=title, xlabel="x", ylabel="plausibility", ylim=(-0.02, 1.02))
    below.set(title="Expected certainty of the top condition, by reliability γ", xlabel="x", ylabel="certainty")
    for ax in (above, below):
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        ax.grid(axis="y")
    return above, below


def _two() -> tuple[Any, Any]:
    """Return the axes of two figures that stand side by side where there is room."""
    return axes_of(None, height=3.0), axes_of(None, height=3.0)


@styled
def intervals(means: Any, certainty: np.ndarray, truth: np.ndarray) -> tuple[Any, Any]:
    """Draw the interval of each item's mean, sorted, with its true mean, and the certainty beside.

    Parameters
    ----------
    means : the table of the fit, with the columns mean, lower and upper.
    certainty : of each item, that its mean is on the side that is said.
    truth : the true mean of each item.
    """
    order = np.argsort(means["mean"].to_numpy())
    place, shown = np.arange(1, len(order) + 1), means.iloc[order]
    sure = certainty[order] >= 0.95
    above, below = _two()
    for chosen, tint, words in ((sure, _COLOURS[0], "side 0.95 certain or more"), (~sure, _COLOURS[2], "less certain")):
        above.vlines(
            place[chosen], shown["lower"][chosen], shown["upper"][chosen], color=tint, linewidth=1.2, label=words
        )
    above.plot(place, truth[order], ".", color=INK, markersize=4, label="true mean")
    above.axhline(0, color=INK, linewidth=0.8)
    title = "Mean of each item, with 95 % interval"
    above.set(title=title, xlabel="items, lowest mean first", ylabel="mean")
    legend_below(above, *above.get_legend_handles_labels())
    below.vlines(place, 0.5, certainty[order], color=np.where(sure, _COLOURS[0], _COLOURS[2]), linewidth=2)
    below.set(title="Certainty of the side", xlabel="items, lowest mean first", ylim=(0.5, 1.02))
    return above, below
