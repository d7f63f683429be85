"""Figures of linkage; each function draws one and returns its matplotlib Axes, as in `consilience.figures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.drawing import BLUE, GRID, INK, VERMILLION, axes_of, count_items, styled


@styled
def entity_histogram(count: Any, true_number: int | None = None, ax: Any = None) -> Any:
    """Draw the posterior of the number of entities, with the mean, the estimate and, where it is known, the truth.

    Parameters
    ----------
    count : of `num_entities`.
    true_number : of entities.
    ax : axes to draw into.
    """
    ax = axes_of(ax)
    draws = count.draws
    low, high = int(draws.min()), int(draws.max())
    width = max(1, -(-(high - low + 1) // 40))
    ax.hist(draws, bins=np.arange(low, high + width + 1, width) - 0.5, color=BLUE, alpha=0.75)
    if true_number is not None:  # wide, and under the others, which may be at the same place
        known = f"known {true_number:,}"
        ax.axvline(true_number, color=VERMILLION, linewidth=5, alpha=0.55, solid_capstyle="butt", label=known)
    ax.axvline(count.value, color=INK, linewidth=1.2, label=f"mean {count.value:,.0f}")
    ax.axvline(count.point, color=INK, linewidth=1.2, linestyle=":", label=f"estimate {count.point:,.0f}")
    ax.set(title="Number of entities", xlabel="entities", ylabel="draws of the partition")
    count_items(ax.xaxis)
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.2), ncols=3, borderaxespad=0)
    return ax


@styled
def calibration(table: Any, ax: Any = None) -> Any:
    """Draw how often pairs of each probability are of one entity.

    Parameters
    ----------
    table : data frame with the columns ``predicted``, ``observed`` and ``pairs``, a row for each bin.
    ax : axes to draw into.
    """
    ax = axes_of(ax, 3.4, 3.2)
    ax.plot([0, 1], [0, 1], color=GRID, linewidth=1.2)
    spread = np.sqrt(table["predicted"] * (1 - table["predicted"]) / table["pairs"].clip(lower=1))
    observed = table["observed"]
    bars = [np.minimum(2 * spread, observed), np.minimum(2 * spread, 1 - observed)]  # shares are from 0 to 1
    ax.errorbar(table["predicted"], observed, yerr=bars, fmt="o", color=BLUE, markersize=5, linewidth=1)
    ax.set(title="Calibration of the pairs", xlabel="probability of being one entity")
    ax.set_ylabel("share that is of one entity")
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal")
    return ax
