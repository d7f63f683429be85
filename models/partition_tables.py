"""Tables of a partition of records that do not depend on the model: matching sets, and entities by their size."""

from __future__ import annotations

import numpy as np

from consilience.data.codes import object_array
from consilience.data.records import Records
from consilience.models.interface import Column, Table
from consilience.models.posterior import Draws, Posterior
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import MatchingSets, PartitionTruth


def matching_sets(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the records, with the set of records of each that is most probably exactly its entity.

    ``matching_set`` is that most probable maximal matching set, with its ``probability``. ``entity`` is that of the
    estimate in which two records are together if and only if their sets are the same (shared sets). A record whose own
    set is not shared by all its members is then with fewer records than the set has.
    """
    found = truth.matching_sets()
    return {
        "record": np.arange(truth.num_units), "matching_set": _listed(found, resolved.data),
        "records": np.diff(found.first), "probability": found.probability, "entity": truth.shared_matching_sets(),
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


MATCHING_SETS = Table(
    name="matching_sets", help="The records: of each the set of records that is most probably exactly its entity.",
    columns=(
        Column("record", "record"), Column("matching_set", help="records of the set"), Column("records", help="of it"),
        Column("probability", help="that they are exactly one entity"),
        Column("entity", "record", help="records are together if and only if their sets are the same"),
    ),
    make=matching_sets,
)  # fmt: skip


def clusters(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the numbers of entities with one record, two, …: of the estimate, and over the draws.

    The interval is that of the draws, and as narrow as the posterior behind them.
    """
    drawn = truth.clusters_by_size()
    estimate = np.bincount(np.bincount(truth.estimate()), minlength=drawn.shape[1] + 1)[1:]
    drawn = np.pad(drawn, ((0, 0), (0, len(estimate) - drawn.shape[1])))
    shown = np.flatnonzero(drawn.any(axis=0) | (estimate > 0))
    numbers = Draws({"number": drawn[None, :, shown]}).summary("number")
    return {"size": shown + 1, "estimate": estimate[shown], **numbers.columns()}


CLUSTERS = Table(
    name="clusters", help="Numbers of entities with one record, two, …: of the estimate, and over the draws.",
    columns=(
        Column("size", help="records of an entity"), Column("estimate"), Column("mean"), Column("lower"),
        Column("upper"),
    ),
    make=clusters,
)  # fmt: skip
