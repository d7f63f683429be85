"""Tables of `dirichlet-entity`: which records are one entity, which pairs may be, what is in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.data.records import Records
from consilience.models.partition import PartitionTruth

__all__ = ["entities", "pairs", "review"]

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
