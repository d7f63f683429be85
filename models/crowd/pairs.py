r"""Pairs of annotators: who agrees more than the model can explain.

Given the true label annotators are independent, so that two of them agree on an item with probability

.. math::

    e_i = \sum_t q_i(t) \sum_l \Theta_{jtl} \Theta_{ktl}

with q untempered. Over their common items, observed agreement minus the sum of e has standard deviation
:math:`\sqrt{\sum_i e_i (1 - e_i)}`, which makes it z. Copies, common sources and common errors make z large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from consilience.arrays import Float, Int
from consilience.data.annotations import Annotations
from consilience.models.crowd.shares import Shares, blocks
from consilience.models.rows import equal_pairs, row_blocks
from consilience.notes import Level, Note

AgreementGivenClass = Callable[[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]], Float[np.ndarray, "pair class"]]
"""The model's probability that two annotators give an item of each class the same label, for pairs of them."""

FEWEST_ITEMS = 20
_MOST_PAIRS = 100_000
# One wrong alarm in 16,000 pairs. Few annotators are all looked at; of many some pairs exceed it in every real crowd.
_ALARM, _FEW_ANNOTATORS = 4.0, 20
_REMARKABLE = 3.0
_BY_CHANCE = 0.0027  # of normal variables beyond that
_CERTAIN = 1e-12
_BLOCK = 1 << 20  # numbers (common item, class), (pair, class) or (pair, class, label) at a time


def annotator_pairs(
    data: Annotations, q: Float[np.ndarray, "item class"], agreement_given_class: AgreementGivenClass
) -> dict[str, np.ndarray]:
    """Return the pairs of annotators with at least 20 common items, largest |z| first.

    Parameters
    ----------
    data : the annotations; the labels that one annotator gave an item repeatedly are averaged.
    q : shape ``(item, class)``; untempered probabilities of the true labels.
    agreement_given_class : of pairs, codes ``(pair,)`` and ``(pair,)`` -> ``(pair, class)``; see `agreement_by`.

    Returns
    -------
    columns : ``annotator_a, annotator_b`` (codes, the lower one first), ``items`` in common, ``agreement`` observed,
        ``expected`` by the model, ``excess`` (their difference) and ``z``. Of more than 100,000 pairs those of the
        annotators with most items are looked at.
    """
    shares = Shares.of(data)
    one, other, number = _pairs_that_met(shares)
    sums = np.zeros((3, len(one)))
    for pairs in blocks(np.full(len(one), q.shape[1]), _BLOCK):
        sums[:, pairs] = _sums(shares, q, one[pairs], other[pairs], agreement_given_class(one[pairs], other[pairs]))
    agreement, expected, variance = sums
    # A model that is certain of all agreements has no z: its variance is a rounding error.
    defined = variance > _CERTAIN * number
    z = np.divide(agreement - expected, np.sqrt(variance), out=np.full(len(one), np.nan), where=defined)
    order = np.lexsort((other, one, -np.abs(z)))
    columns = {
        "annotator_a": one, "annotator_b": other, "items": number, "agreement": agreement / number,
        "expected": expected / number, "excess": (agreement - expected) / number, "z": z,
    }  # fmt: skip
    return {name: values[order] for name, values in columns.items()}


def agreement_by(
    rows: Callable[[Int[np.ndarray, " chosen"]], Float[np.ndarray, "chosen class label"]],
) -> AgreementGivenClass:
    """Return the agreement of pairs by confusion matrices, of which no more are held at once than a block.

    Parameters
    ----------
    rows : ``rows(annotators)`` -> P(label | class) of these annotators, shape ``(chosen, class, label)``.
    """

    def agreement(one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]) -> Float[np.ndarray, "pair class"]:
        if not len(one):
            return rows(one).sum(axis=2)
        size = rows(one[:1])[0].size
        parts = []
        for pairs in blocks(np.full(len(one), size), _BLOCK):
            chosen, place = np.unique(np.stack([one[pairs], other[pairs]]), return_inverse=True)
            place, confusion = place.reshape(2, -1), rows(chosen)
            parts.append(np.einsum("ptl,ptl->pt", confusion[place[0]], confusion[place[1]]))
        return np.concatenate(parts)

    return agreement


def agreement_of_lifts(
    wrong: Float[np.ndarray, "annotator label"], surplus: Float[np.ndarray, "annotator label"]
) -> AgreementGivenClass:
    """Return the agreement of pairs where the class changes the probability of its own label alone.

    Parameters
    ----------
    wrong, surplus : how probably a label is given to items of other classes, and how much more to those of its own.
    """

    def agreement(one: Int[np.ndarray, " pair"], other: Int[np.ndarray, " pair"]) -> Float[np.ndarray, "pair class"]:
        a, b = wrong[one], wrong[other]
        of_class = surplus[one] * b + (a + surplus[one]) * surplus[other]
        return np.einsum("pl,pl->p", a, b)[:, None] + of_class

    return agreement


def _pairs_that_met(shares: Shares) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of annotators with enough common items, and how many these are, sorted by their codes."""
    items, common = np.zeros(shares.num_annotators, int), csr_array((shares.num_annotators,) * 2)
    for _, part in shares.parts():
        items += np.bincount(part.annotator[part.first], minlength=len(items))
    enough = items >= FEWEST_ITEMS
    for _, part in shares.by(enough).parts():
        met = part.met()
        common = common[: met.shape[0], : met.shape[0]] + met @ met.T
    common, code = common.tocoo(), np.flatnonzero(enough)
    kept = (common.row < common.col) & (common.data >= FEWEST_ITEMS)
    one, other, number = code[common.row[kept]], code[common.col[kept]], common.data[kept].astype(int)
    if len(one) > _MOST_PAIRS:
        rank = np.empty(len(items), int)
        rank[np.argsort(-items, kind="stable")] = np.arange(len(items))
        last = np.argsort(np.maximum(rank[one], rank[other]), kind="stable")[:_MOST_PAIRS]
        one, other, number = one[last], other[last], number[last]
    order = np.lexsort((other, one))
    return one[order], other[order], number[order]


def _sums(
    shares: Shares, q: np.ndarray, one: np.ndarray, other: np.ndarray, given: Float[np.ndarray, "pair class"]
) -> Float[np.ndarray, "3 pair"]:
    """Return agreement, its expectation and variance, of pairs sorted by their codes, over all common items.

    Item by item, since annotators of thousands of items share but a few with each of the others.
    """
    found, known = np.zeros((3, len(one))), one * shares.num_annotators + other
    for items, part in shares.parts():
        begins, probability = np.zeros(len(part.item), bool), q[items]
        begins[part.first] = True
        for first, second in equal_pairs(part.item):
            code = part.annotator[first] * shares.num_annotators + part.annotator[second]
            pair = np.minimum(np.searchsorted(known, code), len(known) - 1)
            met = np.flatnonzero(known[pair] == code)
            for rows in row_blocks(len(met), q.shape[1], _BLOCK):
                a, b, pairs = first[met[rows]], second[met[rows]], pair[met[rows]]
                agrees = (part.label[a] == part.label[b]) * part.share[a] * part.share[b]
                chance = np.einsum("rt,rt->r", probability[part.item[a]], given[pairs])
                # Once for each item, however many labels of it she gave.
                chance = np.where(begins[a] & begins[b], chance, 0.0)
                for total, values in zip(found, (agrees, chance, chance * (1 - chance)), strict=True):
                    total += np.bincount(pairs, values, len(total))
    return found


def pair_notes(
    table: Mapping[str, np.ndarray], names: Sequence[object] | np.ndarray, num_annotators: int
) -> Iterator[Note]:
    """Yield what the pairs say to a reader.

    Parameters
    ----------
    table : of `annotator_pairs`.
    names : the annotators' ids, in code order.
    num_annotators : how many there are.
    """
    size = np.abs(table["z"][np.isfinite(table["z"])])
    if num_annotators > _FEW_ANNOTATORS:
        by_chance = _BY_CHANCE * len(size)
        if (size > _REMARKABLE).sum() > by_chance + 3 * np.sqrt(by_chance):
            share = f"{float(f'{100 * np.mean(size > _REMARKABLE):.2g}'):g} %"
            text = (
                f"{share} of {len(size):,} pairs of annotators agree more or less than the model can explain "
                f"(|z| above {_REMARKABLE:.0f}; chance 0.27 %): some annotators do not work independently; see the "
                "table annotator_pairs"
            )
            yield Note(Level.warning, text)
    elif (size > _ALARM).any():
        one, other = (names[table[column][0]] for column in ("annotator_a", "annotator_b"))
        agreement, expected = (f"{table[column][0]:.2f}".removeprefix("0") for column in ("agreement", "expected"))
        how = "more than the model can explain" if table["z"][0] > 0 else "less than the model has them"
        what = f"{one} and {other} agree {how} ({agreement}, expected {expected})"
        yield Note(Level.error, f"{what}: some annotators do not work independently")
