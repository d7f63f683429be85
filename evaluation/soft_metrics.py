r"""Scores of predicted probabilities q against plausibilities λ of classes, or a label, which is λ = 1 of one class.

Higher is better. A score is a sum over classes k, of `Terms`; sources stand where `classes` registers them:

| metric | of an item |
|---|---|
| ``log`` | :math:`\sum_k \lambda_k \ln q_k`; nothing is clipped |
| ``brier`` | :math:`1 - \frac12 \sum_k (q_k - \lambda_k)^2` |
| ``soft-f1`` | :math:`\sum_k \min(q_k, \lambda_k)` |
| ``jsd`` | 1 - Jensen-Shannon divergence, in bits |
| ``ece-b`` | :math:`1 - \frac1n \sum_\beta \lvert\sum_{i \in \beta} (\bar\lambda_i - q_i)\rvert`, by bin β |

In ``ece-b`` q is that of the first choice and :math:`\bar\lambda` its mean over draws: the noise of a draw, above all
of a label, would add. Finite bins still bias it, by the order of :math:`\sqrt{b / n}`.

How the unnamed classes of an item divide their mass is not drawn: scores are expectations over it, by quadrature
(`Plausibilities.division`), which is exact for polynomials: ``log``, ``brier``, ``ece-b``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Bool, Float, Int
from consilience.data.predictions import Predictions
from consilience.models.truth.truth import Block

Terms = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
"""What a class adds to a score, elementwise: of q, λ, and whether the class is the first choice."""

# Numbers that are held at a time.
_MOST_NUMBERS = 1 << 20


def shannon_terms(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return what a class adds to 1 - JSD: q and λ sum to 1, and so does their middle."""
    middle = (q + plausibility) / 2
    return middle - (special.rel_entr(q, middle) + special.rel_entr(plausibility, middle)) / (2 * np.log(2))


def in_bins(system: Predictions, bins: int, items: slice) -> Bool[np.ndarray, "bin item"]:
    """Return which of equal bins, (β/b, (β + 1)/b], holds the probability of the first choice."""
    # Probabilities have seven digits: 0.6 of ten bins may be stored as a little more.
    own = np.ceil(np.asarray(system.probability, float)[items, 0] * bins - 1e-5) - 1
    return np.arange(bins)[:, None] == np.clip(own, 0, bins - 1)


def soft_scores(
    terms: Terms, system: Predictions, block: Block, class_: Int[np.ndarray, " entry"] | None
) -> Float[np.ndarray, "item draw"]:
    """Score the probabilities of a system against a block of a truth.

    A block of leading classes (`Ranked`) is scored as labels, and one of plausibilities (`Shares`) has entries of these
    classes. The system is aligned to the truth.
    """
    draws = block.draws.stop - block.draws.start
    rows = max(_MOST_NUMBERS // (system.num_classes + draws * (system.num_positions + 1)), 1)
    slices = [slice(at, min(at + rows, block.num_units)) for at in range(0, block.num_units, rows)]
    return np.concatenate([_scored(terms, system, block, class_, items) for items in slices])


def _scored(terms: Terms, system: Predictions, block: Block, class_: Any, items: slice) -> np.ndarray:
    """Score some items of a block: as if no class were true, and what those that may be true add to that."""
    own = slice(block.units.start + items.start, block.units.start + items.stop)
    table, code = system.class_probabilities(own), np.asarray(system.ranked)[own]

    def added(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
        return np.asarray(terms(q, plausibility, first) - terms(q, np.zeros(1), first))

    # Columns are positions, and last all classes that are not listed, which are alike; -2 in a list is never true.
    q = np.column_stack([np.asarray(system.probability, float)[own], system.unlisted_probability(own)])
    first = np.arange(q.shape[1]) == 0
    number = np.column_stack([code != -1, system.num_classes - (code >= 0).sum(axis=1)])
    found: np.ndarray = (number * terms(q, np.zeros(1), first)).sum(axis=1, keepdims=True)
    if class_ is None:
        label = block.real[items, :, 0]
        return found + added(np.take_along_axis(table, label, axis=1), np.ones(label.shape), label == code[:, :1])
    shares = block.values
    segment = np.asarray(shares.segment)[: len(class_)]
    entries = slice(*np.searchsorted(segment, [items.start, items.stop]))
    item, class_, named = segment[entries] - items.start, class_[entries], np.asarray(shares.named[entries], float)
    found = np.repeat(found, named.shape[1], axis=1)
    by_entry = added(table[item, class_][:, None], named, (class_ == code[item, 0])[:, None])
    filled, start = np.unique(item, return_index=True)
    found[filled] += np.add.reduceat(by_entry, start)
    unnamed = np.ones(table.shape, bool)
    unnamed[item, class_] = False
    listed = (code >= 0) & np.take_along_axis(unnamed, np.maximum(code, 0), axis=1)
    number = np.column_stack([listed, unnamed.sum(axis=1) - listed.sum(axis=1)])[..., None]
    other = np.asarray(shares.other[items], float)[:, None]
    if other.any():
        for share, weight in shares.division(items, unnamed.sum(axis=1)):
            more = added(q[..., None], other * share[:, None, None], first[:, None])
            # What is counted zero times may be -inf.
            found += (number * np.where(number > 0, more, 0.0)).sum(axis=1) * weight[:, None]
    return found
