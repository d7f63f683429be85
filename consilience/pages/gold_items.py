"""What a page says of the items that have a gold label, beside the others: whether they look like a random sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from consilience.evaluation.agreement.counts import LabelCounts
from consilience.inference.fitting import Fit
from consilience.models.intervals import ends
from consilience.models.truth.against_gold import LEAST_ITEMS, unused_gold
from consilience.rounding import within, written


def compared_with_others(fit: Fit) -> str:
    """Say how annotators agree on the items with a gold label and on the others, and which items these are.

    Empty of data in which annotators do not label the same items, or where a weight is no number of annotations, and
    where either are few.
    """
    data: Any = fit.data
    gold = unused_gold(fit.resolved)
    if gold is None or fit.data.unit != "item" or "pairs" not in fit.data.agreements or np.mod(data.weight, 1).any():
        return ""
    known = gold >= 0
    if min(known.sum(), (~known).sum()) < LEAST_ITEMS:
        return ""
    agree, tied = agreement_of_items(data)
    several = np.isfinite(agree)
    own, others = agree[known & several], agree[~known & several]
    if min(len(own), len(others)) < LEAST_ITEMS:
        return ""
    apart, low, high = within(*difference(own, others))
    words = (
        f" On items with gold labels, {own.mean():.2f} of the pairs of annotations agree, and on the "
        f"{int((~known).sum()):,} others {others.mean():.2f}, a difference of {apart} [{low}, {high}] (95 %). Votes "
        f"tie on {_share(tied[known])} of the items with gold labels and on {_share(tied[~known])} of the others."
    )
    if of_the_first(fit):
        words += (
            f" The items with gold labels are the first {int(known.sum()):,} of the data, which is a random sample "
            "only if the data are in random order."
        )
    return words


def of_the_first(fit: Fit) -> bool:
    """Return whether the items with a gold label that the fit did not use are the first of the data, and not all."""
    known = _known(fit)
    return bool(known.any() and known[: known.sum()].all() and not known.all())


def _known(fit: Fit) -> np.ndarray:
    """Return which items have a gold label that the fit did not use; none where no item has."""
    gold = unused_gold(fit.resolved)
    return np.zeros(1, bool) if gold is None else gold >= 0


def if_random(fit: Fit) -> str:
    """Say that items with a gold label stand for all if they are a random sample; empty where all have one, or none."""
    known = _known(fit)
    if known.all() or not known.any():
        return ""
    first = f", the first {int(known.sum()):,} of the data," * of_the_first(fit)
    return f" This assumes that the {fit.data.unit}s with gold labels{first} are a random sample."


def agreement_of_items(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of pairs of annotations that agree, NaN of an item with fewer than two, and which items tie.

    ``data`` are annotations; a weight counts as so many of them.
    """
    counts = LabelCounts.of_annotations(data)
    item, _, number = counts.entries
    most = np.zeros(data.num_items)
    np.maximum.at(most, item, number)
    return counts.agreement, np.bincount(item, number == most[item], data.num_items) > 1


def difference(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
    """Return the difference of two means with its interval of 95 %, by Welch.

    Examples
    --------
    >>> [round(end, 3) for end in difference(np.array([1.0, 0.0]), np.array([1.0, 0.0]))]
    [0.0, -3.042, 3.042]
    """
    parts = [own.var(ddof=1) / len(own) for own in (one, other)]
    apart = float(one.mean() - other.mean())
    if not sum(parts):
        return apart, apart, apart
    free = sum(parts) ** 2 / sum(part**2 / (len(own) - 1) for part, own in zip(parts, (one, other), strict=True))
    half = float(special.stdtrit(free, ends()[1]) * np.sqrt(sum(parts)))
    return apart, apart - half, apart + half


def _share(values: np.ndarray) -> str:
    return written(float(values.mean()), ".2f")
