"""What the Gibbs sampler of block-linkage reads: records, a wide graph of candidates, parameters of the priors.

The graph is made once, with wide values of the hyperparameters, and never changes: a graph that followed them would be
no fixed target. It keeps pairs that are individually improbable, because there are many of them and they are worth
entities together; nothing is cut into components.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.join import CandidatePairs, join, pair_log_odds
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.model import wide_parameters

ALL_PAIRS = 3000           # so many records are all compared with each other, which finds all pairs exactly


class State(NamedTuple):
    """State of one chain.

    Parameters
    ----------
    cluster : int32, shape ``(record,)``; Π, each cluster named by the code of its first record.
    value_share : shape ``(value,)``; θ, adding up to one within a field.
    distortion : shape ``(field,)``; b.
    intensity, size_share : shapes ``()`` and ``(size,)``; m and μ, None under priors of the partition that have none.
    class_share : shape ``(3,)``; π of error classes, None where errors have no classes.
    source_share : shape ``(source,)``; φ, None where records of one source may be together.
    """

    cluster: Int[Array, " record"]
    value_share: Float[Array, " value"]
    distortion: Float[Array, " field"]
    intensity: Any = None
    size_share: Any = None
    class_share: Any = None
    source_share: Any = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LinkProblem:
    """What a sweep reads.

    Parameters
    ----------
    value : int32, shape ``(record, field)``; codes into the values of all fields, -1 where missing.
    field : int32, shape ``(value,)``; the field of each value, increasing.
    source : int32, shape ``(record,)``; records of one source are never together. Empty where all may be.
    first_neighbour : int64, shape ``(record + 1,)``; where the neighbours of each record begin.
    neighbour : int64, shape ``(edge,)``; candidates of each record; every pair is there twice.
    value_concentration : shape ``()`` or ``(value,)``; parameters of the Dirichlet distributions of the values of each
        field.
    distortion : shape ``(field, 2)``; parameters of Beta distributions.
    intensity : shape ``(2,)``; shape and rate of a Gamma distribution.
    size_share : shape ``(size,)``; parameters of a Dirichlet distribution. Entities have at most so many records.
    class_share : shape ``(3,)``; parameters of the Dirichlet distribution of π, None where the likelihood is hit-miss.
    num_sources : of the records, 0 where all may be together; static.
    prior : of the partition: "entities", with m and μ, or one without: "partitions" or "labels" are as likely; static.
    splits : how many splits and mergers are tried after every sweep; static.
    """

    value: Int[np.ndarray, "record field"]
    field: Int[np.ndarray, " value"]
    source: Int[np.ndarray, " records_or_none"]
    first_neighbour: Int[np.ndarray, " records_and_one"]
    neighbour: Int[np.ndarray, " edge"]
    value_concentration: Float[np.ndarray, "*value"]
    distortion: Float[np.ndarray, "field 2"]
    intensity: Float[np.ndarray, " 2"]
    size_share: Float[np.ndarray, " size"]
    class_share: Any = None
    num_sources: int = dataclasses.field(default=0, metadata={"static": True})
    prior: str = dataclasses.field(default="entities", metadata={"static": True})
    splits: int = dataclasses.field(default=0, metadata={"static": True})


def wide_pairs(records: Records, *, threshold: float, restriction: str = "none") -> CandidatePairs:
    """Return the pairs that Gibbs sampling may link; those of the user, where the records have some.

    Parameters
    ----------
    threshold : pairs with log odds above minus this, under wide values of the hyperparameters.
    restriction : which records may be together, a name in `RESTRICTIONS`.
    """
    wide, likelihood = wide_parameters(records), LIKELIHOODS["hit-miss"]
    if records.candidate is not None:
        first, second = records.candidate.T
        pairs = pair_log_odds(records.value, first, second, wide, likelihood, records.first_value)
    elif records.num_records <= ALL_PAIRS:
        first, second = (place.astype(np.int32) for place in np.triu_indices(records.num_records, 1))
        pairs = pair_log_odds(records.value, first, second, wide, likelihood, records.first_value)
        pairs = pairs.where(pairs.log_odds > -threshold)
    else:
        pairs = join(records, wide, likelihood, threshold=threshold, exact=True)
    return pairs.allowed(records.source, restriction)
