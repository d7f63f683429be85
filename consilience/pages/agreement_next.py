"""What to do next after a look at the agreement of annotators: deeds, and what each would gain where that is known."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from consilience.evaluation.agreement import Agreement
from consilience.models import FIRST
from consilience.models.truth.against_gold import LEAST_ITEMS
from consilience.pages import Action, Section
from consilience.pages.agreement_by_gold import known_gold
from consilience.pages.agreement_planned import narrower
from consilience.pages.annotators_alike import differ
from consilience.printing import percent

LABELS, LEAST = "Agreement by label", "Items that agree least"

MOST_ITEMS = 10
"""Items that agree least, which a page shows."""


def next_steps(found: Agreement, sections: Sequence[Section]) -> list[Action]:
    """Return what to do next: deeds, each with its command or the section that has what it needs.

    Parameters
    ----------
    found : the agreement.
    sections : of the page.
    """
    there = {part.title for part in sections}
    steps = [_infer(found), *_gold(found), *_confused(found), *_items(found), *narrower(found)]
    return [one for one in steps if not one.section or one.section in there]


def _infer(found: Agreement) -> Action:
    """Advise to infer the labels, by a model that knows annotators where these are known."""
    file = found.told.get("file", "")
    data = found.annotations
    known, gold = bool(data is not None and data.num_annotators), int(known_gold(found).sum())
    name = shlex.quote(file) if file else "labels.csv"
    command = f"consilience fit {FIRST[known]} {name} -o run && consilience report run -o labels.html"
    words = f"Infer the labels{'' if file else ' from the table of annotations in labels.csv'}"
    words += ", counting annotators the more the fewer errors they seem to make" * differ(found)
    words += f"; the report sets them beside {'the one gold label' if gold == 1 else f'the {gold:,} gold labels'}" * (
        gold > 0
    )
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


def _confused(found: Agreement) -> list[Action]:
    """Advise to tell apart the two labels that differ most often, of three or more; with their share of all that do."""
    item, label, number = found.counts.entries
    if found.counts.num_labels < 3 or not len(item):
        return []
    given = sparse.coo_array((number.astype(float), (item, label)), (found.counts.num_items, found.counts.num_labels))
    both = sparse.triu(given.T @ given, 1).tocoo()
    if not both.data.sum():
        return []
    place, names = int(both.data.argmax()), found.counts.labels
    codes = int(both.row[place]), int(both.col[place])
    one, other = codes if names is None else (names[code] for code in codes)
    share = percent(float(both.data[place] / both.data.sum()))
    words = f"Say in the guidelines what tells “{one}” from “{other}”: {share} of all pairs of labels that differ are "
    return [Action(f"{words}these two", section=LABELS)]


def _items(found: Agreement) -> list[Action]:
    """Advise to settle the items that agree least, with their share of all that differ."""
    size = found.counts.size.astype(float)
    differing = size * (size - 1) - found.counts.pairs
    usable = np.flatnonzero(size >= 2)
    least = usable[np.lexsort([-size[usable], found.counts.agreement[usable]])][:MOST_ITEMS]
    if len(least) == len(usable) or not differing.sum():
        return []
    share = percent(float(differing[least].sum() / differing[usable].sum()))
    words = (
        f"Look at the {len(least)} items that agree least and settle what is unclear in them: of all pairs of labels "
        f"that differ, {share} are theirs"
    )
    return [Action(words, section=LEAST)]
