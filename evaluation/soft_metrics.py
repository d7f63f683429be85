r"""Scores of predicted probabilities against plausibilities of classes, or against labels.

A system gives class k of an item the probability :math:`q_k`; the truth of a draw are plausibilities
:math:`\lambda_k`, or a label y, which is :math:`\lambda_k = [k = y]`. A score is a sum over classes of *terms*
:math:`\varphi(q_k, \lambda_k)`, and higher is better:

| metric | score | term |
|---|---|---|
| ``log`` | :math:`\sum_k \lambda_k \ln q_k`, of which nothing is clipped | the same |
| ``brier`` | :math:`1 - \frac12 \sum_k (q_k - \lambda_k)^2` | :math:`\lambda_k - \frac12 (q_k - \lambda_k)^2` |
| ``soft-f1`` | :math:`\sum_k \min(q_k, \lambda_k)` | the same |
| ``jsd`` | 1 - Jensen-Shannon divergence of q and λ, in bits | with their middle m, see `shannon_terms` |
| ``ece-b`` | 1 - expected calibration error of the first choice, b bins | parts, see `calibration_terms` |

The calibration error is :math:`\frac1n \sum_\beta \lvert\sum_{i \in \beta} (\bar\lambda_i - q_i)\rvert` over the items
whose first choice has a probability q in bin β. Plausibilities are averaged over draws first: a draw's own noise, and
above all that of a drawn label, would add. Finite bins still bias it, by the order of :math:`\sqrt{b / n}`.

Classes of an item that nobody named have their mass o together in each draw, which U of them divide as a symmetric
Dirichlet variable of concentration a (`Plausibilities`). How it is divided is not drawn: the score is its expectation,
:math:`\sum_k \mathrm E\,\varphi(q_k, o s)` with :math:`s \sim \mathrm{Beta}(a, (U - 1) a)`, by Gauss-Jacobi quadrature
with eight nodes. That is exact where the terms are polynomials (``log``, ``brier``, ``ece-b``).

References
----------
Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA 102. Lin (1991), Divergence
measures based on the Shannon entropy, IEEE Transactions on Information Theory 37. Kurniawan et al. (2025), soft metrics
for labels that vary, arXiv:2502.01891. Guo et al. (2017), On calibration of modern neural networks (the bins of
``ece-b``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from consilience.arrays import Bool, Float, Int
from consilience.data.predictions import Predictions
from consilience.models.truth.truth import Block

Terms = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
"""Terms of q, λ, and whether the class is the first choice, elementwise; with several parts, a row for each."""

# Nodes of the quadrature over how unnamed classes divide their mass, and numbers that are held at a time.
_NODES, _MOST_NUMBERS = 8, 1 << 20

# An agreement of unnamed classes that is 1/U but for rounding says that they have equal parts.
_EQUAL = 1e-5


def log_terms(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return λ ln q; 0 where λ is 0."""
    return special.xlogy(plausibility, q)


def brier_terms(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return λ - (q - λ)² / 2."""
    return plausibility - (q - plausibility) ** 2 / 2


def overlap_terms(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the smaller of q and λ."""
    return np.minimum(q, plausibility)


def shannon_terms(q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return what a class adds to 1 - JSD, in bits."""
    middle = (q + plausibility) / 2
    return middle - (special.rel_entr(q, middle) + special.rel_entr(plausibility, middle)) / (2 * np.log(2))


def calibration_terms(bins: int, q: np.ndarray, plausibility: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return λ - q of the first choice, in the row of the bin (β/b, (β + 1)/b] that holds q; shape ``(bin, …)``."""
    own = np.where(first, np.clip(np.ceil(q * bins) - 1, 0, bins - 1), -1)
    return np.stack([np.where(own == one, plausibility - q, 0.0) for one in range(bins)])


def calibration(parts: np.ndarray, number: Any) -> np.ndarray:
    """Return 1 less the expected calibration error, from sums ``(bin, …)``."""
    return 1 - np.abs(parts).sum(axis=0) / number


def soft_scores(
    terms: Terms, parts: int, system: Predictions, block: Block, class_: Int[np.ndarray, " entry"] | None
) -> Float[np.ndarray, "part item draw"]:
    """Score the probabilities of a system against a block of a truth.

    Parameters
    ----------
    terms, parts : of the metric.
    system : aligned to the truth, with probabilities.
    block : of plausibilities (`Shares`), or of leading classes (`Ranked`), which are scored as labels.
    class_ : of the entries of a block of plausibilities; None of one of labels.
    """
    draws = block.draws.stop - block.draws.start
    numbers = parts * (system.num_classes + draws * (1 if class_ is None else system.num_positions + 1))
    rows = max(_MOST_NUMBERS // numbers, 1)
    found = np.empty((parts, block.num_units, draws))
    for start in range(0, block.num_units, rows):
        stop = min(start + rows, block.num_units)
        said = _Said.of(system, slice(block.units.start + start, block.units.start + stop))
        if class_ is None:
            found[:, start:stop] = _against_labels(terms, said, block.real[start:stop, :, 0])
        else:
            found[:, start:stop] = _against_shares(terms, said, block.values, class_, slice(start, stop))
    return found


class _Said(NamedTuple):
    """What a system says of some items: of each class, and of each position with the unlisted classes behind them."""

    table: Float[np.ndarray, "item class"]
    first: Bool[np.ndarray, "item class"]
    code: Int[np.ndarray, "item position"]
    listed: Float[np.ndarray, "item position"]
    unlisted: Float[np.ndarray, " item"]

    @classmethod
    def of(cls, system: Predictions, items: slice) -> _Said:
        table, code = system.class_probabilities(items), np.asarray(system.ranked)[items]
        first = np.arange(table.shape[1]) == code[:, :1]
        return cls(table, first, code, np.asarray(system.probability, float)[items], system.unlisted_probability(items))

    @property
    def choice(self) -> Bool[np.ndarray, "item position"]:
        """Whether a position is the first choice."""
        return np.broadcast_to(np.arange(self.code.shape[1]) == 0, self.code.shape) & (self.code != -1)


def _applied(terms: Terms, q: np.ndarray, plausibility: Any, first: np.ndarray) -> np.ndarray:
    """Return terms with an axis of parts before the others."""
    shape = np.broadcast_shapes(q.shape, np.shape(plausibility), first.shape)
    return np.reshape(terms(q, np.asarray(plausibility, float), first), (-1, *shape))


def _foreign(terms: Terms, said: _Said) -> Float[np.ndarray, "part item 1"]:
    """Return the terms of classes that the data do not have, which are never true."""
    given = np.where(said.code == -2, said.listed, 0.0)
    return _applied(terms, given, 0.0, said.choice & (said.code == -2)).sum(axis=2, keepdims=True)


def _against_labels(terms: Terms, said: _Said, label: Int[np.ndarray, "item draw"]) -> np.ndarray:
    never, ever = (_applied(terms, said.table, true, said.first) for true in (0.0, 1.0))
    others = never.sum(axis=2, keepdims=True) + _foreign(terms, said)
    return others + np.take_along_axis(ever - never, label[None], axis=2)


def _against_shares(terms: Terms, said: _Said, shares: Any, class_: np.ndarray, items: slice) -> np.ndarray:
    """Score against plausibilities of some items of a block; ``class_`` is that of each entry of the block."""
    segment = np.asarray(shares.segment)[: len(class_)]
    own = slice(*np.searchsorted(segment, [items.start, items.stop]))
    item, class_ = segment[own] - items.start, class_[own]
    plausibility = np.asarray(shares.named[own], float)
    by_entry = _applied(terms, said.table[item, class_][:, None], plausibility, said.first[item, class_][:, None])
    found = np.zeros((len(by_entry), len(said.table), plausibility.shape[1])) + _foreign(terms, said)
    filled = np.flatnonzero(np.bincount(item, minlength=len(said.table)))
    if len(filled):
        found[:, filled] += np.add.reduceat(by_entry, np.searchsorted(item, filled), axis=1)
    unnamed = np.ones(said.table.shape, bool)
    unnamed[item, class_] = False
    open_ = np.flatnonzero(unnamed.any(axis=1))
    if len(open_):
        said, unnamed = _Said(*(values[open_] for values in said)), unnamed[open_]
        other, agreement = (np.asarray(one[items], float)[open_] for one in (shares.other, shares.other_agreement))
        found[:, open_] += _of_unnamed(terms, said, unnamed, other, agreement)
    return found


def _of_unnamed(
    terms: Terms, said: _Said, unnamed: Bool[np.ndarray, "item class"], other: Float[np.ndarray, "item draw"],
    agreement: Float[np.ndarray, "item draw"],
) -> Float[np.ndarray, "part item draw"]:  # fmt: skip
    """Return the expected terms of unnamed classes: those that the system lists, and all others, which are alike."""
    listed = (said.code >= 0) & np.take_along_axis(unnamed, np.maximum(said.code, 0), axis=1)
    number = unnamed.sum(axis=1)
    weight = np.concatenate([listed, (number - listed.sum(axis=1))[:, None]], axis=1)[:, :, None]
    q = np.concatenate([said.listed, said.unlisted[:, None]], axis=1)[:, :, None]
    first = np.concatenate([said.choice, np.zeros((len(q), 1), bool)], axis=1)[:, :, None]
    # One division an item: draws in which nothing is known of it are not divided in another way than the rest.
    nodes = np.stack([_division(*one) for one in zip(number.tolist(), agreement.max(axis=1).tolist(), strict=True)])
    found: Any = 0.0
    for share, mass in np.moveaxis(nodes, 0, 2):
        by_class = _applied(terms, q, other[:, None] * share[:, None, None], first)
        # A weight of 0 is of no class, whatever its terms are.
        found = found + (np.where(weight > 0, by_class, 0.0) * weight).sum(axis=2) * mass[:, None]
    return np.asarray(found)


@functools.cache
def _division(number: int, agreement: float) -> Float[np.ndarray, "node 2"]:
    """Return the share that one of so many unnamed classes has of their mass, as nodes and weights.

    Two annotations of unnamed classes agree with probability :math:`(a + 1) / (U a + 1)`, which tells a.
    """
    excess = agreement * number - 1
    if number == 1 or excess < _EQUAL:
        return np.array([[1 / number, 1.0]] + [[0.0, 0.0]] * (_NODES - 1))
    concentration = max(1 - agreement, 0.0) / excess
    node, weight = special.roots_jacobi(_NODES, (number - 1) * concentration - 1, concentration - 1)
    return np.stack([(1 + node) / 2, weight / weight.sum()], axis=1)
