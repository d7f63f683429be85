"""Figures of the demonstration alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience import figures
from consilience.drawing import BLUE, GREEN, INK, VERMILLION, axes_of, styled

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
def with_true_scores(ax: Any, scores: np.ndarray) -> Any:
    """Mark the true accuracy of each system, best first, in the figure of a leaderboard."""
    for row, score in enumerate(scores):
        ax.plot(score, row - 0.18, "v", color=INK, markersize=6)
        ax.annotate("truth", (score, row - 0.18), (0, 5), textcoords="offset points", ha="center", fontsize=8.5)
    ax.set_ylim(len(scores) - 0.4, -0.7)
    return ax


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
    colour = np.where(certainty[order] >= 0.95, _COLOURS[0], _COLOURS[2])
    above, below = _two()
    above.vlines(place, shown["lower"], shown["upper"], color=colour, linewidth=1.2)
    above.plot(place, truth[order], ".", color=INK, markersize=4)
    above.axhline(0, color=INK, linewidth=0.8)
    title = "Mean of each item (95 %; blue: certain), truth (dot)"
    above.set(title=title, xlabel="items, lowest mean first", ylabel="mean")
    below.vlines(place, 0.5, certainty[order], color=colour, linewidth=2)
    below.set(title="Certainty of the side", xlabel="items, lowest mean first", ylim=(0.5, 1.02))
    return above, below
