"""Tables of `dirichlet-entity`: which records are one entity, which pairs may be."""

from __future__ import annotations

import numpy as np

from consilience.models.block_linkage.tables import assigned
from consilience.models.interface import Column, Table
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import PartitionTruth


def entities(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records: the entity of each, named by its first record.

    ``certainty`` is the probability that the entity is exactly these records, and no other.
    """
    return assigned(truth)


def pairs(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the pairs of records that may belong together; all others have probability zero, or next to it."""
    found = truth.pairs()
    return {"record_a": found.first, "record_b": found.second, "probability": found.probability}


_OF_RECORDS = (
    Column("record", "record"), Column("entity", "record", "named by its first record"),
    Column("certainty", help="probability that the entity is exactly these records, and no other"),
)  # fmt: skip

ENTITIES = Table(name="entities", help="The entity of each record.", columns=_OF_RECORDS, make=entities)

PAIRS = Table(
    name="pairs", help="Pairs of records that may belong together; all others have next to no probability.",
    columns=(Column("record_a", "record"), Column("record_b", "record"), Column("probability", help="of being one")),
    make=pairs,
)  # fmt: skip
