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
from consilience.data.codes import places
from consilience.errors import UnsupportedRequest
from consilience.evaluation.agreement.annotators import count_cells
from consilience.evaluation.agreement.bayesian_bootstrap import Draws, bootstrap_interval
from consilience.evaluation.agreement.chance import (
    Coefficient,
    WithoutEach,
    against_flat,
    beyond_chance,
    with_jackknife,
)
from consilience.evaluation.agreement.counts import LabelCounts, count_entries
from consilience.evaluation.agreement.jackknife import ratio


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
    own = np.column_stack([counts.size >= 2, np.nan_to_num(counts.agreement)])
    interval = _interval(annotations, own, counts.size > 0, level)
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
    own = np.column_stack([both, both]).astype(float)
    own[both, 1] = agreeing
    one, two = first.sum(axis=0), second.sum(axis=0)
    number = int(both.sum())
    observed, left_observed = ratio(agreeing.sum(), number), ratio(agreeing.sum() - agreeing, number - 1)
    coefficients = []
    for name, a, b, total_a, total_b in (
        ("Cohen's kappa", first, second, one, two),
        ("Scott's pi", (first + second) / 2, (first + second) / 2, (one + two) / 2, (one + two) / 2),
    ):
        common = a.multiply(b).sum(axis=1)
        expected = ratio(total_a @ total_b, number**2)
        left_expected = ratio(total_a @ total_b - a @ total_b - b @ total_a + common, (number - 1) ** 2)
        value = float(beyond_chance(observed, expected))
        left_out = beyond_chance(left_observed, left_expected)
        interval = _interval(annotations, own, both, level, shares=True, pooled=name == "Scott's pi")
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


def _interval(
    annotations: Annotations, own: np.ndarray, taking_part: np.ndarray, level: float, *, shares: bool = False,
    pooled: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """Return the interval, ``own`` being k and kP of items.

    Every other annotator gives the first label of the pseudo-item's pairs, the rest the second, each as often as they
    label an item in the mean. ``shares``: an annotator counts once in an item; ``pooled``: P_e is that of Scott.
    """
    if not own[:, 0].any():
        return float("nan"), float("nan")
    item, annotator, label, weight = _columns(annotations)
    kept, num_labels = taking_part[item], annotations.num_labels
    present, who = places(annotator[kept])
    codes, code = places(who * num_labels + label[kept])
    entries = count_entries(item[kept], code, None if weight is None else weight[kept], len(codes))
    who, label, amount = codes // num_labels, codes % num_labels, entries.number
    if shares:
        cell = entries.item * len(present) + who[entries.label]
        amount = amount / np.bincount(cell, amount)[cell]
    mean = np.bincount(who[entries.label], amount, len(present)) / max(1, taking_part.sum())
    columns, ones = np.arange(len(who)), np.ones(len(who))
    by_annotator = sparse.csr_array((ones, (columns, who)))

    def coefficient(draws: Draws) -> np.ndarray:
        by_label = sparse.csr_array((ones, (columns, draws.place)), (len(who), len(draws.used)))
        # The share of a class is share + pseudo · (first or second), where few have a share of their own.
        inverse = 1 / (draws.counted @ by_annotator + mean * draws.pseudo(1)[:, None])
        share, pseudo = draws.counted * inverse[:, who], mean * inverse
        first, second = draws.said(draws.first), draws.said(draws.second)
        met = np.where(who % 2, second[:, draws.place], first[:, draws.place])
        total, squares = share @ by_label, (share**2 + 2 * share * pseudo[:, who] * met).sum(axis=1)
        for part, given in ((pseudo[:, ::2], first), (pseudo[:, 1::2], second)):
            total += part.sum(axis=1, keepdims=True) * given
            squares += (part**2).sum(axis=1) * (given**2).sum(axis=1)
        own, pairs = (0, len(present) ** 2) if pooled else (squares, len(present) * (len(present) - 1))
        return beyond_chance(draws.agreement(), ratio((total**2).sum(axis=1) - own, pairs))

    return bootstrap_interval(entries, own, amount, label, coefficient, num_labels, level)


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
