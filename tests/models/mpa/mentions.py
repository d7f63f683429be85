"""Mentions, and decisions one by one, for the tests of the mention-pair model."""

import numpy as np

from consilience.data import read_mentions
from consilience.models.mpa import candidates

TOY = [
    ("m1", "a1", "DN"), ("m1", "a2", "DN"), ("m2", "a1", "DO(m1)"), ("m2", "a2", "DO(m1)"), ("m2", "a3", "DN"),
    ("m3", "a2", "DO(m2)"), ("m3", "a3", "DO(m1)"), ("m3", "a1", "DO(m2)"),
]  # fmt: skip


def mentions_of(rows=TOY, **options):
    """Return mentions of rows of mention, annotator and annotation, and of gold labels where they have a fourth."""
    columns = zip(("mention_id", "annotator_id", "annotation", "gold"), zip(*rows, strict=True), strict=False)
    return read_mentions(dict(columns), **options)


def of_decisions(pair_class, pair, annotator, agrees, weight=None, *, num_annotators, num_classes):
    """Return the tables of decisions, each by one annotator on one pair, which then is a group of its own.

    ``agrees`` is 1 where the annotator says that the label is true, else 0.
    """
    weight = np.ones(len(pair)) if weight is None else np.asarray(weight, float)
    cell = annotator * num_classes + pair_class[pair]
    order = np.argsort(pair, kind="stable")
    num_pairs = len(pair_class)
    return candidates._finish(
        pair_class, np.arange(num_pairs), np.ones(num_pairs), np.ones(num_pairs), np.zeros(num_pairs),
        (pair[order], cell[order], weight[order]), (pair, cell, weight * agrees), np.arange(num_classes),
        num_annotators,
    )  # fmt: skip
