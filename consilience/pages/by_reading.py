"""What the first system scores if its predictions were made from the annotations, and if it looked at the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from consilience.evaluation.leaderboard import Comparison
from consilience.models.intervals import ends
from consilience.pages.told_apart import ahead_by
from consilience.rounding import written
from consilience.system_figures import Scores, scores_at_a_glance

_APART = 0.005  # between two dots that are seen as two

ACCURACIES = "accuracy", "top-1 accuracy"
"""What the share of right first choices is called: where it is the only metric of single labels, and elsewhere."""


def intervals(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of all systems by either reading, shape ``(2, system)`` each.

    Of systems that looked at the items they go from the lowest to the highest end over the ways in which these may err.
    """
    found = np.quantile(comparison.readings.draws, ends(comparison.level), axis=2)
    low, high = np.clip(found, *comparison.limits)
    return np.stack([low[0], high[0]]), np.stack([low[1:].min(axis=0), high[1:].max(axis=0)])


def own_score(comparison: Comparison, digits: int) -> str:
    """Return what the first system scores if it looked at the items itself, with its interval; empty if it cannot."""
    text = comparison.own_texts(digits)[0]
    if text == "–":
        return ""
    _, own = intervals(comparison)
    return f"{text.replace('–', ' to ')} {_brackets(own[:, comparison.order[0]], digits)}"


def copied_score(comparison: Comparison, digits: int) -> str:
    """Return what the first system scores if its predictions were made from the annotations, with its interval."""
    copied, _ = intervals(comparison)
    alone = written(float(comparison.table.loc[0, "value_alone"]), f".{digits}f")
    return f"{alone} {_brackets(copied[:, comparison.order[0]], digits)}"


def figure_by_reading(comparison: Comparison, names: Sequence[str], title: str, note: str = "") -> Any:
    """Draw systems by their scores where predictions come from the annotations, and where systems looked themselves.

    What a system's known provenance leaves out is not a number, and not drawn.

    Parameters
    ----------
    comparison : of the systems.
    names : of these, in the order in which they are drawn.
    title, note : of the figure, and under its scale.
    """
    places = [comparison.systems.index(name) for name in names]
    readings = comparison.readings
    counts = np.array([[0 in options, options[-1] > 0] for options in readings.options])[places].T
    copied, looked = (one[:, places] for one in intervals(comparison))
    alone = Scores("predictions made from the annotations", *(
        np.where(counts[0], one, np.nan) for one in (readings.values[:1, places], *copied)
    ))  # fmt: skip
    two = np.nanmax(np.ptp(readings.own_range[:, places], axis=0), initial=0) > _APART
    own = Scores(f"system looked at the items itself{' (dots: two assumptions)' * bool(two)}", *(
        np.where(counts[1], one, np.nan) for one in (readings.own_range[:, places], *looked)
    ))  # fmt: skip
    return scores_at_a_glance(names, alone, title, own, note=note)


def two_readings(comparison: Comparison, digits: int, right: str) -> str:
    """Say what the first system scores by either reading, and how far it is ahead.

    Parameters
    ----------
    comparison : of the systems.
    digits : of scores.
    right : what a first choice is that counts.
    """
    name, *others = comparison.table["system"].tolist()
    words = (
        f"The first choice of “{name}” is {right} ({comparison.title}) on {copied_score(comparison, digits)} of the "
        f"{comparison.unit}s if it was made from the annotations. If the system looked at the {comparison.unit}s "
        "itself, it is on "
        f"{own_score(comparison, digits)}."
    )
    if not others:
        return words
    which = "both systems" if len(others) == 1 else "all systems"
    none = "neither" if len(others) == 1 else "none"
    return f"{words} “{name}” leads “{others[0]}” by {ahead_by(comparison)}, whether {which} looked or {none} did."


def _brackets(interval: np.ndarray, digits: int) -> str:
    low, high = (written(float(one), f"z.{digits}f") for one in interval)
    return f"[{low}, {high}]"
