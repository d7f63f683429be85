"""Which labels meet: two annotators of an item who differ, and whether two labels do so more often than by frequency.

Labels that are frequent meet often whatever annotators confuse. By frequency alone two labels meet in a share of the
pairs that differ that goes as the product of their shares among all labels. How far a pair is above that is tested by
its standard error over items, to first order (each item's influence on the difference of the two shares).

Of 2,000 simulated crowds each, with 150 more or less hard items of four labels and annotators who draw a label by
frequency where they err, some pair was told to meet beyond chance at .05 in 94 with three labels, in 73 with five and
in 4 with ten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse, stats

from consilience.evaluation.agreement.counts import LabelCounts

_FEWEST = 10  # items on which annotators differ, below which nothing is tested


class Meeting(NamedTuple):
    """Pairs of labels that meet, the most frequent first.

    Parameters
    ----------
    first, second : codes of the two labels, shape ``(pair,)``.
    number : of pairs of annotations of an item, one of each label.
    share : of all pairs of annotations that differ.
    by_frequency : what that share would be by the frequency of labels alone.
    chance : how probably it is so far above that by chance, times the number of pairs of labels (Bonferroni), at most
        one; NaN where annotators differ on too few items.
    """

    first: np.ndarray
    second: np.ndarray
    number: np.ndarray
    share: np.ndarray
    by_frequency: np.ndarray
    chance: np.ndarray


def labels_that_meet(counts: LabelCounts, most: int = 30) -> Meeting | None:
    """Return the pairs of labels that meet most often; None where no two differ.

    Parameters
    ----------
    counts : of annotations.
    most : so many pairs of labels are returned.
    """
    item, label, number = counts.entries
    usable = counts.size[item] >= 2
    shape = (counts.num_items, counts.num_labels)
    given = sparse.csc_array((number[usable].astype(float), (item[usable], label[usable])), shape)
    both = sparse.triu(given.T @ given, 1).tocoo()
    total = float(both.data.sum())
    if not total:
        return None
    order = np.lexsort([both.col, both.row, -both.data])[:most]
    first, second, met = both.row[order], both.col[order], both.data[order]
    size, of_label = given.sum(axis=1), given.sum(axis=0)
    differing = (size**2 - given.multiply(given).sum(axis=1)) / 2  # of each item
    apart = (of_label.sum() ** 2 - (of_label**2).sum()) / 2
    expected = of_label[first] * of_label[second] / apart
    to_apart = (of_label.sum() * size - given @ of_label) / apart
    units, labels = int((differing > 0).sum()), int((of_label > 0).sum())
    chance = np.full(len(met), np.nan)
    if units >= _FEWEST:
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            a, b = (given[:, [code]].toarray()[:, 0] for code in (one, other))
            of_share = (a * b - met[place] / total * differing) / total
            of_expected = expected[place] * (a / of_label[one] + b / of_label[other] - to_apart)
            sd = np.sqrt(np.sum((of_share - of_expected) ** 2) * units / (units - 1))
            if sd > 0:
                z = (met[place] / total - expected[place]) / sd
                chance[place] = min(1.0, stats.t.sf(z, units - 1) * labels * (labels - 1) / 2)
    return Meeting(first, second, met, met / total, expected, chance)
