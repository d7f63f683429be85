"""What a page of agreement says of gold labels, which agreement does not use: annotators can agree and be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.agreement import Agreement
from consilience.evaluation.agreement.jackknife import jackknife_of_ratios, ratio, wilson, wilson_interval
from consilience.pages.annotators_alike import halves_by_gold
from consilience.printing import counted, percent, percents

BY_GOLD = (
    " “Right by gold” is how many of the annotator's labels are the gold label, of items that have one, with 95 % "
    "for that annotator (Wilson)."
)


def beside_gold(found: Agreement) -> list[str]:
    """Say how often annotations are right where gold labels are known: what agreement does not tell."""
    known = known_gold(found)
    if not known.any():
        return []
    data: Any = found.annotations
    own = known[np.asarray(data.item)]
    right = (np.asarray(data.label) == np.asarray(data.gold)[np.asarray(data.item)])[own]
    weight = np.asarray(data.weight, float)[own]
    _, unit = np.unique(np.asarray(data.item)[own], return_inverse=True)
    top, number = np.bincount(unit, right * weight), np.bincount(unit, weight)
    value, sd = (float(one[0]) for one in jackknife_of_ratios(np.zeros(len(top), int), top, number, 1))
    which = "the item" if known.sum() == 1 else "the items"
    said = f"{percent(value)} of {counted(int(number.sum()), 'single labels')} of {which} with a gold label are right"
    if np.isfinite(sd) and sd > 0:
        low, high = wilson_interval(value, sd, number.sum() ** 2 / (number**2).sum(), found.level)
        said += f" ({percents(float(low), float(high))}, {100 * found.level:g} % for these annotators)"
    return [f"{said}.{halves_by_gold(found)}"]


def right_by_annotator(found: Agreement) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Return how often the labels of each annotator are the gold label, and a column that says so; none without gold.

    An annotator without any such label has NaN, and "–".
    """
    known = known_gold(found)
    data: Any = found.annotations
    if not known.any():
        return np.zeros(0), {}
    item, who, weight = (np.asarray(one) for one in (data.item, data.annotator, data.weight))
    own = known[item]
    right = (np.asarray(data.label) == np.asarray(data.gold)[item])[own]
    number, hits = (np.bincount(who[own], weight[own] * part, data.num_annotators) for part in (1.0, right))
    share = ratio(hits, number)
    low, high = wilson(share, np.maximum(number, 1))
    said = [
        f"{top:g} of {bottom:g} [{one:.2f}, {other:.2f}]".replace(" ", "\N{NO-BREAK SPACE}") if bottom else "–"
        for top, bottom, one, other in zip(hits, number, low, high, strict=True)
    ]
    return share, {"right by gold": said}


def known_gold(found: Agreement) -> np.ndarray:
    """Return which items have a gold label and annotations."""
    data = found.annotations
    if data is None or data.gold is None:
        return np.zeros(found.counts.num_items, bool)
    return (np.asarray(data.gold) >= 0) & (found.counts.size > 0)
