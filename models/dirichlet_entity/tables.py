"""Tables of `dirichlet-entity`: which records are one entity, which pairs may be, how many entities of each size."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Int
from consilience.data.records import Records
from consilience.models.partition import PartitionTruth

__all__ = ["clusters", "entities", "pairs", "review"]

_CERTAIN = 0.999


def entities(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records: the entity of each, named by its first record.

    ``certainty`` is the probability that the entity is exactly these records, and no other.
    """
    estimate = truth.estimate()
    certainty = truth.cluster_probability(estimate)
    return {"record": np.arange(truth.num_records), "entity": estimate, "certainty": certainty}


def pairs(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the pairs of records that may belong together; all others have probability zero, or next to it."""
    found = truth.pairs()
    return {"record_a": found.first, "record_b": found.second, "probability": found.probability}


def review(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records whose entity is in doubt, the least certain first."""
    table = entities(posterior, data, truth)
    order = np.argsort(table["certainty"], kind="stable")
    order = order[table["certainty"][order] < _CERTAIN]
    return {name: values[order] for name, values in table.items()}


def clusters(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the numbers of entities with one record, two, …: of the estimate, and over the draws.

    The interval is that of the draws, central 95 %. Under independent records it is far too narrow.
    """
    estimate = _numbers_by_size(truth.estimate()[None])[0]
    drawn = [_numbers_by_size(truth.clusters(block)) for block in truth.blocks()]
    largest = max(len(estimate), *(numbers.shape[1] for numbers in drawn))
    numbers = np.concatenate([np.pad(block, ((0, 0), (0, largest - block.shape[1]))) for block in drawn])
    shown = np.flatnonzero(numbers.any(axis=0) | (np.pad(estimate, (0, largest - len(estimate))) > 0))
    lower, upper = np.quantile(numbers, [0.025, 0.975], axis=0)[:, shown]
    return {
        "size": shown, "estimate": np.pad(estimate, (0, largest - len(estimate)))[shown],
        "mean": numbers.mean(axis=0)[shown], "lower": lower, "upper": upper,
    }  # fmt: skip


def _numbers_by_size(cluster: Int[np.ndarray, "draw record"]) -> Int[np.ndarray, "draw size_plus_one"]:
    """Count the clusters with no record (none), one record, two, … of each draw."""
    num_draws, num_records = cluster.shape
    draw = np.arange(num_draws)[:, None]
    size = np.bincount((draw * num_records + cluster).ravel(), minlength=cluster.size).reshape(cluster.shape)
    width = int(size.max(initial=0)) + 1
    numbers = np.bincount((draw * width + size).ravel(), minlength=num_draws * width).reshape(num_draws, width)
    return numbers * (np.arange(width) > 0)
