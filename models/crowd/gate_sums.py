r"""The sums of the agreement gate: how much annotators agree about items beyond what chance would have.

With v the shares of an annotator's labels of an item, P their mean over the annotator's items, x = v - P and S the mean
of x x' over these items, two annotators j and k of the same items have

.. math::

    U_{jk} = \sum_i x_{ij} \cdot x_{ik}, \qquad V_{jk} = N_{jk} \operatorname{tr}(S_j S_k)

with N their number of common items. If both label without a look at the items, U has mean zero and variance V, and
pairs are uncorrelated. `by_items` sums over all others of an item at once, so that its time is linear in the
annotations and in the square of the labels. `by_pairs` tells pairs apart, in sparse tables of what occurs: for few
annotators, and for so many labels that their square is too much.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from consilience.arrays import Float, Int
from consilience.models.crowd.shares import Shares, blocks

# Numbers in a block of a dense table: 32 MiB of float64.
_BLOCK = 1 << 22


class Sums(NamedTuple):
    """What annotators agree beyond chance.

    Parameters
    ----------
    agreement, variance : U and V. Of `by_items` the sums over all other annotators, ``(annotator,)``; of `by_pairs`
        those of each pair, a sparse table ``(annotator, annotator)`` with a diagonal of zeros.
    own : shape ``(annotator,)``; V of an annotator with herself, against which a zero is told from rounding errors.
    """

    agreement: Any
    variance: Any
    own: Float[np.ndarray, " annotator"]


def label_rates(shares: Shares) -> tuple[Float[np.ndarray, " annotator"], csr_array]:
    """Return how many items each annotator labelled, and P as a sparse table ``(annotator, label)``."""
    number, shape = np.zeros(shares.num_annotators), (shares.num_annotators, shares.num_labels)
    rates = csr_array(shape)
    for _, part in shares.parts():
        number += np.bincount(part.annotator[part.first], minlength=shares.num_annotators)
        own = csr_array((part.share, (part.annotator, part.label)), shape)
        own.sum_duplicates()
        rates = rates + own
    rates.data /= np.repeat(number, np.diff(rates.indptr))
    return number, rates


def second_moments(shares: Shares, number: Float[np.ndarray, " annotator"]) -> tuple[np.ndarray, ...]:
    """Return annotator, label, label and value of the parts of which the mean of v v' is the sum."""
    first = shares.first
    if len(first) == len(shares.item):  # each cell has one entry, as is usual
        return shares.annotator, shares.label, shares.label, shares.share**2 / number[shares.annotator]
    size = np.diff(first, append=len(shares.item))
    of_cell = np.repeat(np.arange(len(first)), size)
    one = np.repeat(np.arange(len(shares.item)), size[of_cell])
    begin = np.cumsum(size[of_cell]) - size[of_cell]
    other = first[of_cell[one]] + np.arange(len(one)) - begin[one]
    annotator = shares.annotator[one]
    value = shares.share[one] * shares.share[other] / number[annotator]
    return annotator, shares.label[one], shares.label[other], value


def by_items(shares: Shares) -> Sums:
    """Return the sums over all other annotators of an item."""
    number, sparse_rates = label_rates(shares)
    rates, (size, num_labels) = sparse_rates.toarray(), sparse_rates.shape
    moments = csr_array((num_labels * size, num_labels))
    for _, part in shares.parts():
        annotator, label, other, value = second_moments(part, number)
        moments = moments + csr_array((value, (label * size + annotator, other)), moments.shape)
    agreement, variance, own = np.zeros(size), np.zeros(size), np.zeros(size)
    for items, part in shares.parts(-(-num_labels // 8)):
        met, cell = part.met().T.tocsr(), part.item * num_labels + part.label
        votes = np.bincount(cell, part.share, met.shape[0] * num_labels).reshape(-1, num_labels)
        beyond = votes - met @ rates
        agreement += np.bincount(part.annotator, part.share * beyond.ravel()[cell], size)
        agreement -= np.einsum("jl,jl->j", met.T @ beyond, rates)
        for one in range(num_labels):
            # S is symmetric: a label with itself, and with those after it, which count twice.
            spread = (moments[one * size : (one + 1) * size].toarray() - rates[:, [one]] * rates)[:, one:]
            twice = np.where(np.arange(num_labels - one) > 0, 2.0, 1.0)
            variance += np.einsum("jl,jl,l->j", met.T @ (met @ spread), spread, twice)
            if items.start == 0:
                agreement -= number * spread[:, 0]  # in all, the trace of S: what she agrees with herself
                own += number * (spread**2 @ twice)
    return Sums(agreement, variance - own, own)


def by_pairs(shares: Shares) -> Sums:
    """Return the sums of each pair."""
    shares = shares.wide()
    size, num_labels = shares.num_annotators, shares.num_labels
    number, rates = label_rates(shares)
    annotator, label, other, value = second_moments(shares, number)
    column, place = np.unique(label * num_labels + other, return_inverse=True)
    moments = csr_array((value, (annotator, place)), (size, len(column)))
    by_label = rates.tocsc()
    products = by_label[:, column // num_labels].multiply(by_label[:, column % num_labels]).tocsr()
    met, votes = shares.met(), shares.by_label()
    met_by, rates_by, votes_by, moments_by, products_by = (
        table.T.tocsr() for table in (met, rates, votes, moments, products)
    )
    parts = []
    for some in blocks(_joined(shares) + size, _BLOCK):
        common, gram = met[some] @ met_by, rates[some] @ rates_by
        traces = moments[some] @ (moments_by - products_by) - products[some] @ moments_by + gram.power(2)
        parts.append((votes[some] @ votes_by + common.multiply(gram), common.multiply(traces)))
    agreement, variance = (vstack(list(each), format="csr") for each in zip(*parts, strict=True))
    expected = _expected_votes(shares, met_by, rates)
    agreement = agreement - expected - expected.T
    own = variance.diagonal()
    return Sums(_between(agreement), _between(variance), own)


def _expected_votes(shares: Shares, met_by: csr_array, rates: csr_array) -> csr_array:
    """Return the sum of v_ij . P_k over common items, for each pair j, k."""
    num_labels, label = shares.num_labels, rates.indices.astype(np.int64)
    giver = np.repeat(np.arange(shares.num_annotators), np.diff(rates.indptr))
    known = giver * num_labels + label
    slot = np.searchsorted(known, shares.annotator * num_labels + shares.label)
    said = csr_array((shares.share, (slot, shares.item)), (len(known), shares.num_items))
    total = csr_array((shares.num_annotators,) * 2)
    for some in blocks(np.bincount(slot, _joined_of_entry(shares), len(known)), _BLOCK):
        found = (said[some] @ met_by).tocoo()
        wanted = found.col.astype(np.int64) * num_labels + label[some][found.row]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        rate = np.where(known[place] == wanted, rates.data[place], 0.0)
        total += csr_array((found.data * rate, (giver[some][found.row], found.col)), total.shape)
    return total


def _joined_of_entry(shares: Shares) -> Int[np.ndarray, " entry"]:
    """Return how many annotators there are on the item of each entry."""
    return np.bincount(shares.item[shares.first], minlength=shares.num_items)[shares.item]


def _joined(shares: Shares) -> Float[np.ndarray, " annotator"]:
    """Return how many annotators there are on the items of each annotator, all together."""
    return np.bincount(shares.annotator, _joined_of_entry(shares), shares.num_annotators)


def _between(table: csr_array) -> csr_array:
    """Return the pairs of different annotators."""
    table.setdiag(0.0)
    return table
