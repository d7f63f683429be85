"""Intervals of shares of mentions or chains: those of one document depend on each other, and documents hardly do."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.agreement.jackknife import jackknife_sd, wilson, wilson_interval
from consilience.models.truth.against_gold import AgainstGold

LEAST = 5
"""How many documents an interval takes."""

HOW = " The interval allows for labels of one document that depend on each other."
"""What an interval by documents is."""

TOO_FEW = " The interval is too narrow if labels in a document depend on each other."
"""What is to be said of an interval of fewer."""


def of_mentions(data: Any, found: AgainstGold) -> tuple[tuple[float, float] | None, int]:
    """Return the interval of the share of mentions that is right, and of how many documents these are; of items none.

    Parameters
    ----------
    data : of the fit.
    found : its mentions beside their gold labels.
    """
    if data.unit != "mention" or not len(found.item):
        return None, 0
    document = np.asarray(data.document)[found.item]
    return share_interval(found.right, document), len(np.unique(document))


def share_interval(right: np.ndarray, document: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval (Wilson) of the share that is right, an entry each.

    By documents where there are enough of them: each is left out once (jackknife), and the interval is no narrower than
    that of independent entries. Of fewer documents it is the latter, which is too narrow.

    Examples
    --------
    >>> right, document = np.repeat([1, 0], 50), np.repeat(np.arange(10), 10)
    >>> [f"{end:.2f}" for end in share_interval(right, document)]  # all of a document are right, or none
    ['0.20', '0.80']
    >>> [f"{end:.2f}" for end in share_interval(right, np.zeros(100, int))]
    ['0.40', '0.60']
    """
    right, share = np.asarray(right, float), float(np.mean(right))
    low, high = map(float, wilson(share, len(right)))
    _, place = np.unique(document, return_inverse=True)
    number, hits = np.bincount(place).astype(float), np.bincount(place, right)
    if len(number) < LEAST:
        return low, high
    sd = jackknife_sd((hits.sum() - hits) / (number.sum() - number))
    own = wilson_interval(share, sd, number.sum() ** 2 / np.square(number).sum())
    return min(low, own[0]), max(high, own[1])
