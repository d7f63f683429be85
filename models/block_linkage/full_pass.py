"""The pass over all candidates: their log odds, and the partitions of all small parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.sharding import Mesh

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.enumeration import enumerate_blocks, gather_values, size_terms
from consilience.models.block_linkage.join import CandidatePairs, pair_log_odds
from consilience.models.block_linkage.labels import label_log_odds, pair_terms_of
from consilience.models.block_linkage.likelihoods import Likelihood
from consilience.models.block_linkage.linkage import Group
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import Parts
from consilience.models.block_linkage.workers import Workers
from consilience.models.rows import row_blocks

_PIECE = 65_536  # components or pairs that a process goes through at a time, a multiple of what fits the cache


def log_odds_at(
    found: CandidatePairs, records: Records, parameters: Parameters, likelihood: Likelihood, workers: Workers
) -> CandidatePairs:
    """Return candidates with their log odds under other hyperparameters."""
    parts = ((found.first[rows], found.second[rows]) for rows in row_blocks(len(found.first), 1, _PIECE))
    log_odds = workers.map(_log_odds_of, parts, parameters, likelihood, records.first_value)
    labels = label_log_odds(records, found.first, found.second)
    return found._replace(log_odds=np.concatenate([np.zeros(0), *log_odds]) + labels)


def _log_odds_of(
    arrays: Mapping[str, np.ndarray],
    pairs: tuple[np.ndarray, np.ndarray],
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
) -> Float[np.ndarray, " pair"]:
    return pair_log_odds(arrays["value"], *pairs, parameters, likelihood, first_value).log_odds


def enumerate_all(
    records: Records,
    parts: Parts,
    parameters: Parameters,
    likelihood: Likelihood,
    restriction: str,
    mesh: Mesh | None,
    workers: Workers,
) -> tuple[list[Group], float]:
    """Enumerate all components; return their partitions and the log evidence, relative to all records apart."""
    pieces = [members[rows] for members in parts.members for rows in row_blocks(len(members), 1, _PIECE)]
    with_terms = ((members, pair_terms_of(records, members, restriction)) for members in pieces)
    found = workers.map(_enumerate_piece, with_terms, parameters, likelihood, records.first_value, mesh)
    of_size: dict[int, list[Group]] = {}
    evidence = 0.0
    for members, (partition, own) in zip(pieces, found, strict=True):
        of_size.setdefault(members.shape[1], []).append(Group(members, partition))
        evidence += own
    return [Group(*map(np.concatenate, zip(*groups, strict=True))) for groups in of_size.values()], evidence


def _enumerate_piece(
    arrays: Mapping[str, np.ndarray],
    piece: tuple[Int[np.ndarray, "component member"], Any],
    parameters: Parameters,
    likelihood: Likelihood,
    first_value: Int[np.ndarray, " fields_and_one"],
    mesh: Mesh | None,
) -> tuple[Float[np.ndarray, "component partition"], float]:
    """Enumerate components of one size; return the probabilities of their partitions, and the sum of log evidence.

    Parameters
    ----------
    piece : the records of each component, and what is added for pairs of them, as `pair_terms_of` returns it.
    """
    members, pair_terms = piece
    terms = size_terms(parameters.intensity, parameters.size_share, members.shape[1], np)
    found = enumerate_blocks(
        gather_values(arrays["value"], first_value, members), parameters.value_share, parameters.distortion, terms,
        likelihood, pair_terms, mesh=mesh,
    )  # fmt: skip
    return np.ascontiguousarray(found.partition.T), float(found.log_evidence.sum(dtype=float))
