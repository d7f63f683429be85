"""Figures of linkage; each function draws one and returns its matplotlib Axes, as in `consilience.figures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.drawing import BLUE, INK, VERMILLION, axes_of, count_items, styled


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
