r"""Agreement beyond chance where each annotator has class shares of their own: Conger, and Cohen and Scott for two.

With the share :math:`p_{gc}` of class c among the annotations of annotator g and A annotators, chance agreement is that
of two different annotators who label any two items,

.. math:: P_e = \frac{\sum_c (\sum_g p_{gc})^2 - \sum_c \sum_g p_{gc}^2}{A (A - 1)}
          = \operatorname{mean}_{g \ne h} \sum_c p_{gc} p_{hc}.

Conger's kappa sets it against SPA with flat weights, and takes the shares over all items that an annotator labelled;
with two annotators and full data it is Cohen's. Cohen's kappa and Scott's pi look at the items that both labelled, and
take the shares there; Scott's are the mean of the two.

References
----------
A. J. Conger. Integration and generalization of kappas for multiple raters. Psychological Bulletin 88 (1980).
J. Cohen. A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20 (1960).
W. A. Scott. Reliability of content analysis: the case of nominal scale coding. Public Opinion Quarterly 19 (1955).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from consilience.arrays import Int
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.annotators import count_cells
from consilience.evaluation.agreement.bayesian_bootstrap import PseudoItems, bootstrap_interval, pseudo_items
from consilience.evaluation.agreement.chance import (
    Coefficient,
    WithoutEach,
    against_flat,
    agreeing_parts,
    beyond_chance,
    with_jackknife,
)
from consilience.evaluation.agreement.counts import Entries, LabelCounts
from consilience.evaluation.agreement.jackknife import ratio
from consilience.evaluation.agreement.weighting import weight_function


def present_annotators(annotations: Annotations) -> Int[np.ndarray, " present"]:
    """Return the codes of the annotators who occur; none where an annotation has no known annotator."""
    present = np.unique(_columns(annotations)[1])
    return present if (present >= 0).all() else present[:0]


def conger_kappa(annotations: Annotations, level: float = 0.95) -> Coefficient:
    """Estimate Conger's kappa, with the jackknife over items.

    Without an item the shares of its annotators change too, exactly, and an annotator of that item alone is gone. It
    takes a step for each annotation and each class that its annotator ever used.

    Raises
    ------
    UnsupportedRequest : where annotators are unknown.
    """
    if not len(present_annotators(annotations)):
        raise UnsupportedRequest("these data do not say who annotated; read a table with an annotator column")
    counts = LabelCounts.of_annotations(annotations)
    interval = _conger_interval(annotations, counts, level)
    return against_flat(counts, "Conger's kappa", "", _conger_chance(annotations), counts.size > 0, interval)


def two_annotators(annotations: Annotations, level: float = 0.95) -> list[Coefficient]:
    """Estimate Cohen's kappa and Scott's pi on the items that both annotators labelled, the units of the jackknife.

    An annotator who labelled an item several times has shares of classes there; the two agree as often as a label of
    one, taken at random, is that of the other.

    Raises
    ------
    UnsupportedRequest : unless exactly two annotators occur.
    """
    present = present_annotators(annotations)
    if len(present) != 2:
        raise UnsupportedRequest(f"{len(present)} known annotators occur; Cohen's kappa and Scott's pi are of two")
    first, second = (_item_shares(annotations, int(annotator)) for annotator in present)
    both = (first.sum(axis=1) > 0) & (second.sum(axis=1) > 0)
    first, second = first[both], second[both]
    agreeing = first.multiply(second).sum(axis=1)
    one, two = first.sum(axis=0), second.sum(axis=0)
    number = int(both.sum())
    entries, _, _ = _said(annotations)
    entries = Entries(*(column[both[entries.item]] for column in entries))
    items, used = pseudo_items(len(one), np.flatnonzero(one + two))
    shape = (annotations.num_items, number)
    back = sparse.csr_array((np.ones(number), (np.flatnonzero(both), np.arange(number))), shape)
    counted = [np.ones((number, 1)), agreeing[:, None], first[:, used], second[:, used]]
    parts = back @ sparse.hstack([sparse.csr_array(part) for part in counted], format="csr")

    def pseudo_parts(block: PseudoItems) -> np.ndarray:
        said = [block.totals(label, len(used)) for label in (block.first, block.second)]
        agrees = (block.weight * (block.first == block.second)).sum(axis=1, keepdims=True)
        return np.hstack([block.weight.sum(axis=1, keepdims=True), agrees, *said])

    observed, left_observed = ratio(agreeing.sum(), number), ratio(agreeing.sum() - agreeing, number - 1)
    coefficients, pooled = [], (first + second) / 2
    for name, a, b, total_a, total_b in (
        ("Cohen's kappa", first, second, one, two),
        ("Scott's pi", pooled, pooled, (one + two) / 2, (one + two) / 2),
    ):
        own = a.multiply(b).sum(axis=1)
        expected = ratio(total_a @ total_b, number**2)
        left_expected = ratio(total_a @ total_b - a @ total_b - b @ total_a + own, (number - 1) ** 2)

        def drawn(sums: np.ndarray, alike: bool = a is b) -> np.ndarray:
            sides = sums[:, 2 : 2 + len(used)], sums[:, 2 + len(used) :]
            total = sides if not alike else ((sides[0] + sides[1]) / 2,) * 2
            return beyond_chance(sums[:, 1] / sums[:, 0], (total[0] * total[1]).sum(axis=1) / sums[:, 0] ** 2)

        interval = bootstrap_interval(entries, parts, items, pseudo_parts, drawn, level)
        value = float(beyond_chance(observed, expected))
        left_out = beyond_chance(left_observed, left_expected)
        coefficients.append(with_jackknife(name, "", value, left_out, float(observed), float(expected), interval))
    return coefficients


def _conger_chance(annotations: Annotations) -> WithoutEach:
    """Return P_e, and P_e without each item."""
    _, annotator, label, weight = _columns(annotations)
    num_items, num_labels = annotations.num_items, annotations.num_labels
    whose = LabelCounts.of_codes(annotator, label, weight, num_labels=num_labels)
    shares = _rows(whose, 1 / np.maximum(whose.size, 1))
    # A cell is what an annotator said of an item; usually it holds a single label.
    cell_item, cell_annotator, entry_cell, entry_label, number = count_cells(annotations)
    said = np.bincount(entry_cell, number, len(cell_item))
    rest = whose.size[cell_annotator] - said
    stays = rest > 0
    inverse = np.divide(1, rest, out=np.zeros(len(rest)), where=stays)

    # Without the item, annotator g has the shares (n_gc - x_gc) / rest: p_gc plus said / rest * p_gc - x_gc / rest.
    grown = sparse.csr_array(
        (np.where(stays, said * inverse, -1.0), (cell_item, cell_annotator)), (num_items, whose.num_items)
    )
    place = (cell_item[entry_cell], entry_label)
    gone = sparse.csr_array((number * inverse[entry_cell], place), (num_items, num_labels))
    change = grown @ shares - gone
    sums = shares.sum(axis=0)
    left_total = sums @ sums + 2 * (change @ sums) + change.multiply(change).sum(axis=1)

    squares = (whose.pairs + whose.size).astype(float)
    own = np.divide(squares, whose.size.astype(float) ** 2, out=np.zeros(len(squares)), where=whose.size > 0)
    meets = np.bincount(entry_cell, number * whose.at(cell_annotator[entry_cell], entry_label), len(said))
    left_squares = squares[cell_annotator] - 2 * meets + np.bincount(entry_cell, number**2, len(said))
    left_own = own.sum() + np.bincount(cell_item, left_squares * inverse**2 - own[cell_annotator], num_items)

    present = int((whose.size > 0).sum())
    left_present = present - np.bincount(cell_item[~stays], minlength=num_items)
    expected = ratio(sums @ sums - own.sum(), present * (present - 1))
    return float(expected), ratio(left_total - left_own, left_present * (left_present - 1))


def _conger_interval(annotations: Annotations, counts: LabelCounts, level: float) -> tuple[float, float]:
    """Return the interval. Of the pseudo-item's two labels every other annotator gives the first, the rest the second.

    Each of them counts it as their mean number of labels per item.
    """
    entries, who, label = _said(annotations)
    items, used = pseudo_items(counts.num_labels, label)
    label, num_labels, num_annotators, columns = np.searchsorted(used, label), len(used), int(who.max()) + 1, np.arange(len(who))
    agreeing, pseudo = agreeing_parts(counts, weight_function("flat", counts))
    said = sparse.csr_array((entries.number, (entries.item, entries.label)), (counts.num_items, len(who)))
    parts = sparse.hstack([sparse.csr_array(agreeing), said, sparse.csr_array((len(agreeing), 2 * num_labels))]).tocsr()
    of_annotator = sparse.csr_array((np.ones(len(who)), (columns, who)), (len(who), num_annotators))
    of_label = sparse.csr_array((np.ones(len(who)), (columns, label)), (len(who), num_labels))
    mean = said.sum(axis=0) @ of_annotator / (counts.size > 0).sum()

    def pseudo_parts(block: PseudoItems) -> np.ndarray:
        given = [block.totals(one, num_labels) for one in (block.first, block.second)]
        return np.hstack([pseudo(block), np.zeros((len(block.weight), len(who))), *given])

    def coefficient(sums: np.ndarray) -> np.ndarray:
        observed = ratio(sums[:, 1], sums[:, 0])
        said, first, second = np.split(sums[:, 2:], [len(who), len(who) + num_labels], axis=1)
        # The share of class c is share + pseudo · (first or second), of which most annotators have only a few.
        inverse = 1 / (said @ of_annotator + mean * first.sum(axis=1, keepdims=True))
        share, pseudo = said * inverse[:, who], mean * inverse
        total = share @ of_label
        own = (share**2).sum(axis=1)
        own += 2 * (share * pseudo[:, who] * np.where(who % 2, second[:, label], first[:, label])).sum(axis=1)
        for part, given in ((pseudo[:, ::2], first), (pseudo[:, 1::2], second)):
            total += part.sum(axis=1, keepdims=True) * given
            own += (part**2).sum(axis=1) * (given**2).sum(axis=1)
        return beyond_chance(observed, ratio((total**2).sum(axis=1) - own, num_annotators * (num_annotators - 1)))

    return bootstrap_interval(entries, parts, items, pseudo_parts, coefficient, level)


def _said(annotations: Annotations) -> tuple[Entries, np.ndarray, np.ndarray]:
    """Return how often each annotator gave each label to an item, as entries; and who, and which label, a code is."""
    item, annotator, label, weight = _columns(annotations)
    who = np.unique(annotator, return_inverse=True)[1]
    pairs, code = np.unique(who * annotations.num_labels + label, return_inverse=True)
    counts = LabelCounts.of_codes(item, code, weight, num_items=annotations.num_items)
    return counts.entries, pairs // annotations.num_labels, pairs % annotations.num_labels


def _columns(annotations: Annotations) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return item, annotator and label of the rows that count, and how often each does."""
    columns = [np.asarray(values) for values in (annotations.item, annotations.annotator, annotations.label)]
    weight = np.asarray(annotations.weight)
    if (weight == 1).all():
        return columns[0], columns[1], columns[2], None
    item, annotator, label = (values[weight > 0] for values in columns)
    return item, annotator, label, weight[weight > 0]


def _item_shares(annotations: Annotations, annotator: int) -> sparse.csr_array:
    """Return the class shares of one annotator on each item, shape ``(item, label)``; zero where there are none."""
    item, who, label, weight = _columns(annotations)
    own = who == annotator
    counts = LabelCounts.of_codes(
        item[own], label[own], None if weight is None else weight[own],
        num_items=annotations.num_items, num_labels=annotations.num_labels,
    )  # fmt: skip
    return _rows(counts, 1 / np.maximum(counts.size, 1))


def _rows(counts: LabelCounts, scale: np.ndarray) -> sparse.csr_array:
    """Return counts as a sparse matrix, each row times its scale."""
    row, label, number = counts.entries
    return sparse.csr_array((number * scale[row], (row, label)), (counts.num_items, counts.num_labels))
