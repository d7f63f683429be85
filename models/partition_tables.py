"""Tables of a partition of records that do not depend on the model: matching sets, and entities by their size."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.data.codes import object_array
from consilience.data.records import Records
from consilience.models.partition import MatchingSets, PartitionTruth

__all__ = ["clusters", "matching_sets"]


def matching_sets(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records: of each the set of records that is most probably exactly its entity.

    ``matching_set`` is that most probable maximal matching set, with its ``probability``. ``entity`` is that of the
    estimate in which two records are together if and only if their sets are the same (shared sets). A record whose own
    set is not shared by all its members is then with fewer records than the set has.
    """
    found = truth.matching_sets()
    return {
        "record": np.arange(truth.num_records), "matching_set": _listed(found, data), "records": np.diff(found.first),
        "probability": found.probability, "entity": truth.shared_matching_sets(),
    }  # fmt: skip


def _listed(sets: MatchingSets, data: Records) -> np.ndarray:
    """Return the ids of each set in one text."""
    names = object_array(map(str, range(data.num_records))) if data.records is None else np.asarray(data.records)
    first, length = sets.first[:-1], np.diff(sets.first)
    texts = names[sets.member[first]]
    for place in range(1, int(length.max(initial=0))):
        longer = length > place
        texts[longer] = texts[longer] + " + " + names[sets.member[first[longer] + place]]
    return texts


def clusters(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the numbers of entities with one record, two, …: of the estimate, and over the draws.

    The interval is that of the draws, central 95 %, and as narrow as the posterior behind them.
    """
    estimate = _numbers_by_size(truth.estimate()[None])[0]
    drawn = [_numbers_by_size(truth.clusters(block)) for block in truth.blocks()]
    largest = max(len(estimate), *(numbers.shape[1] for numbers in drawn))
    numbers = np.concatenate([np.pad(block, ((0, 0), (0, largest - block.shape[1]))) for block in drawn])
    estimate = np.pad(estimate, (0, largest - len(estimate)))
    shown = np.flatnonzero(numbers.any(axis=0) | (estimate > 0))
    lower, upper = np.quantile(numbers, [0.025, 0.975], axis=0)[:, shown]
    return {
        "size": shown, "estimate": estimate[shown], "mean": numbers.mean(axis=0)[shown], "lower": lower,
        "upper": upper,
    }  # fmt: skip


def _numbers_by_size(cluster: Int[np.ndarray, "draw record"]) -> Int[np.ndarray, "draw size_plus_one"]:
    """Count the clusters with no record (none), one record, two, … of each draw."""
    num_draws, num_records = cluster.shape
    draw = np.arange(num_draws)[:, None]
    size = np.bincount((draw * num_records + cluster).ravel(), minlength=cluster.size).reshape(cluster.shape)
    width = int(size.max(initial=0)) + 1
    numbers = np.bincount((draw * width + size).ravel(), minlength=num_draws * width).reshape(num_draws, width)
    return numbers * (np.arange(width) > 0)
