"""What to do next after a look at the agreement of annotators: deeds, and what each would gain where that is known."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from consilience.evaluation.agreement import Agreement
from consilience.models import FIRST
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.pages import Action, Section
from consilience.pages.agreement_by_gold import known_gold
from consilience.pages.agreement_meeting import confused
from consilience.pages.agreement_planned import narrower
from consilience.pages.annotators_alike import differ, review_first
from consilience.printing import percent

LABELS, LEAST = "Agreement by label", "Items that agree least"

MOST_ITEMS = 10
"""Items that agree least, which a page shows; more where they tie for the least agreement."""

_MOST_TIED = 50  # of which a page shows all


def next_steps(found: Agreement, sections: Sequence[Section]) -> list[Action]:
    """Return what to do next: deeds, each with its command or the section that has what it needs.

    Parameters
    ----------
    found : the agreement.
    sections : of the page.
    """
    there = {part.title for part in sections}
    steps = [_infer(found), *_gold(found), *review_first(found), *confused(found), *_items(found), *narrower(found)]
    return [one for one in steps if not one.section or one.section in there]


def _infer(found: Agreement) -> Action:
    """Advise to infer the labels, by a model that knows annotators where these are known."""
    file = found.told.get("file", "")
    data = found.annotations
    known, gold = bool(data is not None and data.num_annotators), int(known_gold(found).sum())
    name = shlex.quote(file) if file else "labels.csv"
    command = f"consilience fit {FIRST[known]} {name} -o run && consilience report run -o labels.html"
    words = f"Infer the labels{'' if file else ' from the table of annotations in labels.csv'}"
    words += " with a model that gives more weight to annotators who seem to make fewer errors" * differ(found)
    if gold:
        words += "; its report says how many gold labels it gets right"
    return Action(f"{words}:", command)


def _gold(found: Agreement) -> list[Action]:
    """Advise to have items decided, where no gold label says how often annotators are right."""
    if known_gold(found).any():
        return []
    which = f"{LEAST_ITEMS} random items" if found.counts.num_items > LEAST_ITEMS else "the items"
    words = (
        f"Have {which} decided for certain and give their labels in a column gold: then this "
        "page says how often annotators are right, which agreement cannot tell"
    )
    return [Action(words)]


def lowest_items(found: Agreement) -> tuple[np.ndarray, int]:
    """Return the items with the lowest agreement, those that tie among them, and how many tie for the least agreement.

    Ties are in the order of how many annotations items have, the most first; at most `MOST_ITEMS`, or as many as tie up
    to `_MOST_TIED`.
    """
    size, agreement = found.counts.size, found.counts.agreement
    usable = np.flatnonzero(size >= 2)
    order = usable[np.lexsort([-size[usable], agreement[usable]])]
    tied = int(np.isclose(agreement[usable], agreement[order[0]]).sum()) if len(order) else 0
    return order[: min(max(MOST_ITEMS, tied), max(MOST_ITEMS, _MOST_TIED))], tied


def _items(found: Agreement) -> list[Action]:
    """Advise to look at the items with the lowest agreement and those that tie, with their share of what differs."""
    size = found.counts.size.astype(float)
    differing = size * (size - 1) - found.counts.pairs
    usable = np.flatnonzero(size >= 2)
    least, tied = lowest_items(found)
    least = least[:tied] if tied >= MOST_ITEMS else least
    if len(least) == len(usable) or not differing.sum():
        return []
    share = percent(float(differing[least].sum() / differing[usable].sum()))
    which = f"{len(least):,} of the {tied:,} items that tie as lowest" if tied > len(least) else (
        f"{len(least):,} items with the lowest agreement"
    )
    words = (
        f"Look at the {which}: they account for {share} of all disagreements between two labels. Are they unclear, or "
        "did annotators err?"
    )
    return [Action(words, section=LEAST)]
