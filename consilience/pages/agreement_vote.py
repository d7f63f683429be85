"""What a page of agreement says of a majority vote: how often it is the gold label, by how labels of items split."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience import agreement_figures
from consilience.evaluation.agreement import Agreement
from consilience.evaluation.agreement.jackknife import wilson
from consilience.models.truth.against_gold import hits
from consilience.pages import Section, Table
from consilience.pages.agreement_by_gold import known_gold
from consilience.pages.agreement_first import ALL_SAME, MOST_SAME, NONE_MOST, splits
from consilience.pages.won import TIES
from consilience.printing import counted, joined, percent, percents

VOTE = "A majority vote against the gold labels"

_WHERE = {ALL_SAME: "all labels agree", MOST_SAME: "more than half agree", NONE_MOST: "fewer agree"}


class Votes(NamedTuple):
    """How often a majority vote is right, of items that have two labels or more and a gold label.

    Parameters
    ----------
    names, kinds : of the ways in which the labels of items split; see `splits`.
    items : how many items split so.
    known : how many of these have a gold label.
    right : of how many of these the vote is right; a tie counts by its share.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    items: np.ndarray
    known: np.ndarray
    right: np.ndarray

    @property
    def in_all(self) -> tuple[float, int]:
        """Of how many items with a gold label the vote is right, and how many have one."""
        return float(self.right.sum()), int(self.known.sum())


def votes_by_split(found: Agreement) -> Votes:
    """Count how often a majority vote is the gold label, by how the labels of an item split."""
    ways, known = splits(found), known_gold(found)[found.counts.size >= 2]
    right = _share_right(found)[found.counts.size >= 2]
    number, hit = (np.bincount(ways.place, part * known, len(ways.names)) for part in (np.ones(len(known)), right))
    return Votes(ways.names, ways.kinds, ways.items, number.astype(int), hit)


def _share_right(found: Agreement) -> np.ndarray:
    """Return the share of the labels that lead on each item which is the gold label; 0 of items without one."""
    item, label, number = found.counts.entries
    most = np.zeros(found.counts.num_items)
    np.maximum.at(most, item, number)
    leads = number == most[item]
    gold = np.full(found.counts.num_items, -1)
    data: Any = found.annotations
    if data is not None and data.gold is not None:
        gold = np.asarray(data.gold)
    tied, own = (np.bincount(item, part, found.counts.num_items) for part in (leads, leads & (label == gold[item])))
    return np.asarray(own / np.maximum(tied, 1))


def of_a_vote(votes: Votes) -> list[str]:
    """Say how often a majority vote is the gold label, in all and by how labels split; nothing without gold labels."""
    right, number = votes.in_all
    if not number:
        return []
    tied = f", {TIES}" * _any_tie(votes)
    said = f"A majority vote is right on {hits(right)} of {counted(number, 'items')} with a gold label{tied}"
    parts = []
    for kind, where in _WHERE.items():
        own = np.array([one == kind for one in votes.kinds])
        if of := int(votes.known[own].sum()):
            parts.append(f"{hits(float(votes.right[own].sum()))} of {of:,} where {where}")
    by_kind = f" That is {joined(parts)}." * (len(parts) > 1)
    return [f"{said}.{by_kind}"]


def tile_of_a_vote(votes: Votes) -> dict[str, str]:
    """Return the key figure of a majority vote beside the gold labels; nothing without any."""
    right, number = votes.in_all
    if not number:
        return {}
    low, high = wilson(right / number, number)
    tied = f", {TIES}" * _any_tie(votes)
    name = f"gold labels matched by a majority vote{tied} ({percents(float(low), float(high))}, 95 %)"
    return {name: f"{hits(right)} of {number:,}"}


def first_figure(votes: Votes) -> Any:
    """Draw how the labels of items split, with how often a majority vote is then right, where gold labels tell."""
    pairs = zip(votes.right.tolist(), votes.known.tolist(), strict=True)
    right = [f"{hits(one)} of {number:,}" if number else "" for one, number in pairs]
    return agreement_figures.splits_of_items(votes.names, votes.items, votes.kinds, right=right)


def _any_tie(votes: Votes) -> bool:
    """Return whether some count is no whole number, so that it has to be said how ties count."""
    return bool((votes.right % 1 != 0).any())


def vote_section(found: Agreement) -> Section | None:
    """Tabulate how often a majority vote is the gold label, by how the labels of an item split; None without gold."""
    import pandas

    votes = votes_by_split(found)
    right, number = votes.in_all
    if not number:
        return None
    rows = [*zip(votes.names, votes.items.tolist(), votes.known.tolist(), votes.right.tolist(), strict=True)]
    rows = [(name, *rest) for name, *rest in [*rows, ("all", int(votes.items.sum()), number, right)]]
    texts: dict[str, list[str]] = {"vote is right on": [], "share": [], "95 %": []}
    for _, _, known, hit in rows:
        low, high = wilson(hit / max(known, 1), max(known, 1))
        texts["vote is right on"].append(hits(hit) if known else "–")
        texts["share"].append(percent(hit / known) if known else "–")
        texts["95 %"].append(percents(float(low), float(high)) if known else "–")
    frame = pandas.DataFrame([row[:3] for row in rows], columns=["labels of the item", "items", "with a gold label"])
    frame = frame.assign(**texts)
    frame.attrs["numbers"] = tuple(texts)
    words = (
        "A majority vote takes the label that most annotators of an item gave. “3–1” stands for three equal labels and "
        "one other. A tie counts by its share: if one of two tied labels is right, by 1/2. Intervals are Wilson's."
    )
    table = Table(frame, "How often a majority vote matches the gold label, by split of the labels.", of="")
    return Section(VOTE, [words, table], f"right on {hits(right)} of {counted(number, 'items')}")
