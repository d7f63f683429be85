"""What a page of agreement says of which labels meet: two annotators who differ, and annotations beside gold labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.evaluation.agreement import Agreement
from consilience.evaluation.agreement.meeting import Meeting, labels_that_meet
from consilience.models.intervals import LEVEL
from consilience.pages import Action, Heading, Table
from consilience.pages.agreement_by_gold import known_gold
from consilience.printing import percent
from consilience.rounding import probability

MEETING = "Which labels meet"

_MOST_ROWS = 30

_HOW = (
    "Where two annotators of an item differ, these are their two labels. “By frequency” is the share that the two "
    "would have if labels met as often as they are frequent; p is the probability of a share so far above that by "
    "chance, over all pairs of labels (Bonferroni, approximate)."
)


def meeting_blocks(found: Agreement) -> list[Any]:
    """Return the table of labels that meet, and what annotators call items whose gold label they miss."""
    import pandas

    blocks: list[Any] = []
    met = labels_that_meet(found.counts, _MOST_ROWS)
    if met is not None and found.counts.num_labels > 2:
        columns: dict[str, Any] = {
            "label": _names(found, met.first), "other label": _names(found, met.second), "pairs": met.number,
            "of those that differ": met.share, "by frequency": met.by_frequency, "p": met.chance,
        }  # fmt: skip
        texts = {name: [percent(one) for one in columns[name]] for name in ("of those that differ", "by frequency")}
        texts |= {"p": [probability(one) if np.isfinite(one) else "–" for one in met.chance]}
        table = Table(pandas.DataFrame(columns), "Pairs of annotations of an item that differ.", texts=texts)
        blocks += [Heading(MEETING), f"{_HOW}{_so(found, met)}", table]
    return [*blocks, *_missed(found)]


def confused(found: Agreement) -> list[Action]:
    """Advise to tell two labels apart that meet beyond chance, the most frequent such pair; of three labels or more."""
    if found.counts.num_labels < 3 or (met := labels_that_meet(found.counts, _MOST_ROWS)) is None:
        return []
    beyond = np.flatnonzero(met.chance < 1 - LEVEL)
    if not len(beyond):
        return []
    place = beyond[0]
    one, other = (_names(found, codes[[place]])[0] for codes in (met.first, met.second))
    words = (
        f"Say in the guidelines what tells “{one}” from “{other}”: {percent(float(met.share[place]))} of the pairs of "
        f"labels that differ are these two, where {percent(float(met.by_frequency[place]))} would be by frequency"
    )
    return [Action(words, section="Agreement by label")]


def _so(found: Agreement, met: Meeting) -> str:
    """Say what the table tells, with a space in front."""
    if not np.isfinite(met.chance).any():
        return " Annotators differ on too few items for a test."
    beyond = int((met.chance < 1 - LEVEL).sum())
    if not beyond:
        return " No two labels meet more often than by frequency beyond chance."
    return ""


def _missed(found: Agreement) -> list[Any]:
    """Tabulate the labels that annotators gave in place of the gold label, the most frequent first."""
    import pandas

    data: Any = found.annotations
    if not (known := known_gold(found)).any():
        return []
    item, label, weight = (np.asarray(one) for one in (data.item, data.label, data.weight))
    own = known[item]
    gold, label, weight = np.asarray(data.gold)[item[own]], label[own], weight[own].astype(float)
    size = int(max(gold.max(), label.max())) + 1
    cell, place = np.unique(gold.astype(np.int64) * size + label, return_inverse=True)
    number, (true, given) = np.bincount(place, weight), np.divmod(cell, size)
    of_gold = np.bincount(gold, weight, size)[true]
    order = np.lexsort([given, true, -number])
    order = order[(true != given)[order]][:_MOST_ROWS]
    if not len(order):
        return []
    columns = {
        "gold label": _names(found, true[order]), "label given": _names(found, given[order]),
        "annotations": number[order], "of this gold label": number[order] / of_gold[order],
    }  # fmt: skip
    texts = {"of this gold label": [percent(one) for one in columns["of this gold label"]]}
    caption = "Annotations that are not the gold label, with their share of all annotations of items of that label."
    return [Table(pandas.DataFrame(columns), caption, texts=texts)]


def _names(found: Agreement, codes: np.ndarray) -> list[str]:
    names = found.counts.labels
    return [str(code if names is None else names[code]) for code in codes.tolist()]
