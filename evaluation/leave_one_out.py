r"""How well the annotators of an item agree: each one against the others together.

The agreement of an item with $R$ reports (Stutz et al. 2023, appendix D) is

.. math:: \frac{1}{R} \sum_{r=1}^{R} 1\left[\operatorname{arg\,max}_k \mathrm{IRN}_k(\text{all reports but } r)
          \text{ is among the classes that } r \text{ listed}\right],

where IRN is the inverse rank normalisation (equation 14): the class $y$ in the $i$-th block $b_i$ of a report gets $1 /
(i |b_i|)$, summed over reports. The authors' published code gives $1 / i$ instead; both weightings are here by name.
Where several classes share the largest sum, it is a hit if any of them is listed. With single labels the sums are
votes, and both weightings are the same.

References
----------
D. Stutz et al. Evaluating AI systems under uncertain ground truth: a case study in dermatology. arXiv:2307.02191
(2023), appendix D.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from consilience.data.annotations import Annotations
from consilience.data.codes import places
from consilience.data.rankings import Rankings
from consilience.errors import UnknownName
from consilience.evaluation.agreement.jackknife import wilson
from consilience.evaluation.scores import Score

# Equal sums of reciprocals differ in their last digits by the order of the terms; real differences are far larger.
_TIE = 1e-9


class _Votes(NamedTuple):
    """Weights that reports give to entries, the named (item, class) pairs; reports and entries are sorted by item."""

    report_item: np.ndarray  # (report,)
    copies: np.ndarray  # (report,); how many equal reports stand behind this one
    entry_item: np.ndarray  # (entry,)
    report: np.ndarray  # (row,), sorted
    entry: np.ndarray  # (row,)
    weight: np.ndarray  # (row,); what the entry gets from this row
    own: np.ndarray  # (row,); what it loses when one report is left out
    num_items: int


def annotator_agreement(data: Rankings | Annotations, weights: str = "equation-14") -> Score:
    """Measure how often an annotator names the class that leads among the others (Stutz et al. 2023, Appendix D).

    Parameters
    ----------
    data : Rankings or Annotations
        Rankings, or annotations: then every annotation is a report of one class, and one with weight $w$ stands for $w$
        of them. A report that ranks nothing counts in $R$ and lists no class; where all others rank nothing, no class
        is first.
    weights : str, default "equation-14"
        "equation-14", 1 / (i size of block i), or "published-code", 1 / i, which the published numbers use.

    Returns
    -------
    Score
        NaN for items with a single annotator. There is no spread over draws: the truth has no part in it.

    Raises
    ------
    UnknownName : for other `weights`.

    Examples
    --------
    >>> import consilience as cs
    >>> rankings = cs.Rankings.from_nested([[[["flu"], ["cold"]], [["flu"], ["cold"]]], [[["cold"]], [["flu"]]]])
    >>> cs.annotator_agreement(rankings).items.tolist()  # they agree on the first item alone
    [1.0, 0.0]
    """
    if weights not in ("equation-14", "published-code"):
        raise UnknownName(f"no weights are called {weights!r}; choose 'equation-14' or 'published-code'")
    votes = _VOTES[type(data)](data, weights)
    items = _mean_of_items(votes, _hits(votes))
    title = "leave-one-out annotator agreement"
    return Score(title=title, items=items, draws=np.empty(0), ids=data.items, label="agreement")


def _mean_of_items(votes: _Votes, of_report: np.ndarray) -> np.ndarray:
    """Return the mean of what reports have, ``(item,)``; NaN of items with a single annotator."""
    copies = np.bincount(votes.report_item, votes.copies, minlength=votes.num_items)
    sums = np.bincount(votes.report_item, votes.copies * of_report, minlength=votes.num_items)
    several = np.bincount(votes.report_item, minlength=votes.num_items) > 1
    return np.divide(sums, copies, out=np.full(votes.num_items, np.nan), where=several | (copies > 1))


class Naming(NamedTuple):
    """How often annotators of rankings name the class that leads among the others, and what chance would give.

    Parameters
    ----------
    at_random : share of all classes that a ranking names: so often it would name any one class by chance.
    first : how often it has the class that leads in its first place.
    first_at_random : share of all classes that are there.
    """

    at_random: float
    first: float
    first_at_random: float


def naming(data: Rankings, weights: str = "equation-14") -> Naming:
    """Return what `annotator_agreement` of rankings is to be read beside: means over the same items.

    Parameters
    ----------
    data, weights : as for `annotator_agreement`.
    """
    votes, is_first = _of_rankings(data, weights), np.asarray(data.block) == 0
    named, top = (np.bincount(votes.report[rows], minlength=len(votes.copies)) for rows in (slice(None), is_first))
    of_reports = named / data.num_classes, _hits(votes, is_first), top / data.num_classes
    return Naming(*(float(np.nanmean(_mean_of_items(votes, one))) for one in of_reports))


def agreement_by_annotator(data: Rankings, weights: str = "equation-14") -> Any:
    """Measure how often each annotator names the class that leads among the others of an item.

    Parameters
    ----------
    data, weights : as for `annotator_agreement`.

    Returns
    -------
    Data frame, a row for each who ranks an item that others rank too: ``annotator``, so many ``rankings``, the mean
    number of ``classes`` that they name, the share ``agreement`` of them, and that share, ``first``, of which it is the
    first choice, with Wilson's interval of 95 % of that, ``lower`` and ``upper``.
    """
    import pandas

    votes, who = _of_rankings(data, weights), np.asarray(data.report_annotator)
    counts = (np.bincount(votes.report_item, minlength=votes.num_items) > 1)[votes.report_item]
    first = _hits(votes, np.asarray(data.block) == 0)
    found = (
        np.bincount(who[counts], values[counts], data.num_annotators)
        for values in (votes.copies, _hits(votes), first, np.bincount(votes.report, minlength=len(who)))
    )
    rankings, hits, first, named = found
    there = rankings > 0
    rankings, hits, first, named = rankings[there], hits[there], first[there], named[there]
    lower, upper = wilson(first / rankings, rankings)
    names = np.arange(data.num_annotators) if data.annotators is None else np.asarray(data.annotators)
    return pandas.DataFrame({
        "annotator": names[there], "rankings": rankings.astype(int), "classes": named / rankings,
        "agreement": hits / rankings, "first": first / rankings, "lower": lower, "upper": upper,
    })  # fmt: skip


def _of_rankings(rankings: Rankings, weights: str) -> _Votes:
    rank = np.asarray(rankings.block) + 1.0
    weight = 1 / (rank * np.asarray(rankings.block_size) if weights == "equation-14" else rank)
    return _Votes(
        report_item=np.asarray(rankings.report_item),
        copies=np.ones(rankings.num_reports),
        entry_item=np.asarray(rankings.entry_item),
        report=np.asarray(rankings.report),
        entry=np.asarray(rankings.entry),
        weight=weight,
        own=weight,
        num_items=rankings.num_items,
    )


def _of_annotations(annotations: Annotations, weights: str) -> _Votes:
    """Return votes: of reports of one class all weights are the same."""
    counted = np.asarray(annotations.weight) > 0
    item, label = np.asarray(annotations.item)[counted], np.asarray(annotations.label)[counted]
    order = np.argsort(item, kind="stable")
    copies = np.asarray(annotations.weight)[counted][order]
    pair = item[order].astype(np.int64) * annotations.num_labels + label[order]
    distinct, entry = places(pair)
    return _Votes(
        report_item=item[order],
        copies=copies,
        entry_item=distinct // annotations.num_labels,
        report=np.arange(entry.size),
        entry=entry,
        weight=copies,
        own=np.minimum(copies, 1.0),
        num_items=annotations.num_items,
    )


_VOTES: dict[type, Callable[[Any, str], _Votes]] = {Annotations: _of_annotations, Rankings: _of_rankings}


def _hits(votes: _Votes, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
    """Return for each report whether it lists a class that the others together put first, in some of its rows."""
    total = np.bincount(votes.entry, votes.weight, minlength=votes.entry_item.size)
    others = total[votes.entry] - votes.own
    highest = _highest_not_listed(votes, total)
    np.maximum.at(highest, votes.report, others)
    first = (others > 0) & (others >= highest[votes.report] * (1 - _TIE))
    return np.bincount(votes.report[rows][first[rows]], minlength=highest.size) > 0


def _highest_not_listed(votes: _Votes, total: np.ndarray) -> np.ndarray:
    """Return the largest total among the classes that a report does not list, 0 where it lists all that anybody did.

    With an item's classes ranked by their totals from 0, the class in question has the smallest rank that is not among
    the ranks of the report's own classes. Sorted, those are 0, 1, … exactly up to it, so counting the agreements finds
    it: no table of reports against classes is needed.
    """
    num_entries, num_reports = total.size, votes.report_item.size
    descending = np.lexsort((-total, votes.entry_item))
    first_entry = np.searchsorted(votes.entry_item, np.arange(votes.num_items + 1))
    rank = np.empty(num_entries, dtype=np.int64)
    rank[descending] = np.arange(num_entries) - first_entry[votes.entry_item[descending]]
    row = np.lexsort((rank[votes.entry], votes.report))
    place = np.arange(row.size) - np.searchsorted(votes.report, votes.report)
    missing = np.bincount(votes.report[rank[votes.entry[row]] == place], minlength=num_reports)
    candidate = first_entry[votes.report_item] + missing
    exists = candidate < first_entry[votes.report_item + 1]
    highest = np.zeros(num_reports)
    highest[exists] = total[descending[candidate[exists]]]
    return highest
