"""Is another label worth what `next_labels` expects? On nine sets with gold labels, where one more label is known.

`python -m benchmarks another_label`. Of every item n labels are drawn, ``dawid-skene`` is fitted to them with its
defaults, and every other label of the item takes the place of the next one: does the leading label become right, or
wrong? The mean of that over the labels that are left is what one more is worth, to be set beside what was expected.
Gold labels take no part in the fit. How much of the gain of an independent label is expected follows from the
dependence alone, and was chosen among three rules on seeds 100 to 102 of these sets; the seeds here are others.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import consilience as cs
from benchmarks.crowd_public import SETS, loaded
from benchmarks.recording import Recording
from consilience.data import Annotations

NUMBERS = (2, 3, 4, 5, 6, 8)
"""Labels that each item has before the next one."""

_FEWEST_ITEMS = 100
_TOP = 0.2  # the share of items that are the most worth another label


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how often labels are drawn")
    parser.add_argument("--sets", type=int, default=len(SETS), metavar="N", help="the first N public sets")


def run(arguments: argparse.Namespace) -> None:
    """Measure, and write the record."""
    rows = [row for name in SETS[: arguments.sets] for row in _of_set(name, arguments.seeds)]
    record = Recording(
        "another-label", "Is another label worth what is expected of it?", arguments.command, arguments.output
    )
    record.say(
        "Changes of the share of right leading labels by one more label, per 1,000 items: what was expected (`gain`), "
        "what an independent label would gain, and what the labels that were left out did; of all items, and of the "
        f"{_TOP:.0%} for which most was expected."
    )
    every = []
    for number in NUMBERS:
        own = [row for row in rows if row["labels"] == number]
        if own:
            means = {key: float(np.mean([row[key] for row in own])) for key in own[0] if key not in ("set", "labels")}
            every.append({"labels": number, "sets": len(own), **means, "items": int(sum(row["items"] for row in own))})
    record.section("Means of the sets")
    record.table("means", every, digits=1)
    record.section("Every set")
    record.table("sets", rows, digits=1)
    record.write()


def _of_set(name: str, seeds: int) -> Iterator[dict[str, Any]]:
    data = loaded(name)
    amount = np.bincount(data.item, minlength=data.num_items)
    for number in NUMBERS:
        items = np.flatnonzero((amount > number) & (np.asarray(data.gold) >= 0))
        if len(items) >= _FEWEST_ITEMS:
            found = [_of_draw(data, items, number, np.random.default_rng(seed)) for seed in range(seeds)]
            means = {key: 1000 * float(np.mean([one[key] for one in found])) for key in found[0]}
            yield {"set": name, "labels": number, "items": len(items), **means}


def _of_draw(data: Annotations, items: np.ndarray, number: int, random: np.random.Generator) -> dict[str, float]:
    """Return expected and measured changes of the share of right labels, each item having so many labels."""
    position = np.full(data.num_items, -1)
    position[items] = np.arange(len(items))
    rows = random.permutation(np.flatnonzero(position[data.item] >= 0))
    rows = rows[np.argsort(position[np.asarray(data.item)[rows]], kind="stable")]
    item, annotator, label = (np.asarray(column)[rows] for column in (data.item, data.annotator, data.label))
    item = position[item]
    place = np.arange(len(item)) - np.searchsorted(item, item)
    own, other = place < number, place >= number
    few = Annotations.from_codes(
        item[own], annotator[own], label[own], num_items=len(items), num_annotators=data.num_annotators,
        num_labels=data.num_labels,
    )  # fmt: skip
    fit = cs.fit("dawid-skene", few)
    expected = cs.next_labels(fit).sort_values("item", key=lambda column: column.astype(int))["gain"].to_numpy()
    # What the model makes of the next label, from whom it comes; annotators of no other item have the crowd's errors.
    confusion = fit.samples(100)["confusion"].mean(axis=(0, 1))
    missing = data.num_annotators - len(confusion)
    crowd = fit.truth.crowd.mean_confusion
    confusion = np.concatenate([confusion, np.broadcast_to(crowd, (missing, *crowd.shape))])
    before, gold = np.asarray(fit.truth.untempered), np.asarray(data.gold)[items]
    which = item[other]
    after = before[which] * confusion[annotator[other], :, label[other]]
    change = (after.argmax(axis=1) == gold[which]).astype(float) - (before.argmax(axis=1) == gold)[which]
    change = np.bincount(which, change, len(items)) / np.bincount(which, minlength=len(items))
    top = np.argsort(-expected, kind="stable")[: max(int(_TOP * len(items)), 1)]
    independent = expected / fit.truth.worth
    return {
        "expected": expected.mean(), "if independent": independent.mean(), "measured": change.mean(),
        "expected, top": expected[top].mean(), "if independent, top": independent[top].mean(),
        "measured, top": change[top].mean(),
    }  # fmt: skip
