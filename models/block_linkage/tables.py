"""Tables of block-linkage: who is one entity, which pairs, what to decide by hand, what is lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.codes import object_array
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.em import record_shares
from consilience.models.block_linkage.gibbs.truth import DrawnLinks
from consilience.models.block_linkage.posterior import Posterior
from consilience.models.block_linkage.truth import expected_clusters
from consilience.models.partition import PartitionTruth

__all__ = ["entities", "fields", "hyperparameters", "loss", "pairs", "patterns", "review"]

_DOUBTFUL = 1e-3  # Entropy below this is nothing to look at.
_FEW_SOURCES = 4    # of which all sets are listed
_MOST_SOURCES = 62  # bits of a set of them


def entities(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records: the entity of each in the most probable partition, named by its first record.

    ``certainty`` is the probability that the entity is exactly these records, and no other. ``file`` and
    ``original_id`` say where the record comes from: its id there, where ``record`` is ``file:id`` because files share
    ids.
    """
    own = _assigned(truth)
    if data.records is None or data.sources is None:
        return own
    records, files = np.asarray(data.records, object), np.asarray(data.sources, object)[np.asarray(data.source)]
    return own | {"file": files, "original_id": records if data.num_sources == 1 else _original_ids(records, files)}


def _assigned(truth: PartitionTruth) -> dict[str, np.ndarray]:
    estimate = truth.estimate()
    return {
        "record": np.arange(truth.num_records), "entity": estimate, "certainty": truth.cluster_probability(estimate),
    }  # fmt: skip


def _original_ids(records: np.ndarray, files: np.ndarray) -> np.ndarray:
    """Return the ids in the files: without the name of the file, where an id is of several ones."""
    ids = records.copy()
    pairs = zip(records, files, strict=True)
    marked = np.array([record.startswith(f"{file}:") for record, file in pairs], bool)
    if not marked.any():
        return ids
    pairs = zip(records[marked], files[marked], strict=True)
    bare = object_array(record[len(file) + 1 :] for record, file in pairs)
    _, code, number = np.unique(bare.astype(str), return_inverse=True, return_counts=True)
    # An id that only looks like that is of one file.
    ids[marked] = np.where(number[code] > 1, bare, ids[marked])
    return ids


def pairs(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the pairs of records that may be of one entity, the most probable first."""
    found = truth.pairs()
    order = np.argsort(-found.probability, kind="stable")
    return {
        "record_a": found.first[order], "record_b": found.second[order], "probability": found.probability[order],
    }  # fmt: skip


def review(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records whose entity is in doubt, by the entropy (nats) of the set of records that is theirs."""
    entropy = truth.entropy()
    order = np.argsort(-entropy, kind="stable")
    order = order[entropy[order] > _DOUBTFUL]
    table = _assigned(truth)
    return {**{name: values[order] for name, values in table.items()}, "entropy": entropy[order]}


def fields(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the fields: how many values, in how many records they are missing, and how often they are distorted."""
    missing = (np.asarray(data.value) < 0).sum(axis=1)
    return {
        "field": np.asarray(data.fields, object), "values": np.diff(data.first_value), "missing": missing,
        "distortion": hyperparameters(posterior, data)[1],
    }  # fmt: skip


def patterns(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of how many entities have records in exactly these sources, with central 95 % of the draws.

    Of few sources all sets are there, of many those that some draw has.
    """
    names = np.asarray(data.sources, object)
    if len(names) > _MOST_SOURCES:
        raise UnsupportedRequest(f"sets of {len(names)} sources; of at most {_MOST_SOURCES} they are counted")
    known, drawn = truth.clusters_by_source(np.asarray(data.source))
    if len(names) <= _FEW_SOURCES:
        every = np.arange(1, 2 ** len(names))
        of_every = np.zeros((len(drawn), len(every)), drawn.dtype)
        of_every[:, known - 1] = drawn
        known, drawn = every, of_every
    else:
        found = drawn.any(axis=0)
        known, drawn = known[found], drawn[:, found]
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
    words = [" + ".join(names[np.flatnonzero(pattern >> np.arange(len(names)) & 1)]) for pattern in known]
    return {"sources": np.array(words, object), "entities": drawn.mean(axis=0), "lower": lower, "upper": upper}


def loss(posterior: Any, data: Records, truth: Any) -> dict[str, np.ndarray]:
    """Table of what the candidates leave out, as far as the model can tell; a value that nobody knows is NaN.

    The meanings are short, so that the table fits a terminal of 80 characters. What pairs were worth in links is each
    taken for itself, and the ``disagreement`` is that of the numbers of fields in which linked pairs agree.
    The corrected number of entities is given only where linked pairs look as the model expects them to: where the
    ``disagreement`` is small; of draws of the hyperparameters neither is known. Gibbs sampling cuts nothing.
    """
    if isinstance(posterior, Posterior):
        rows = _left_out_by_estimates(posterior)
    elif isinstance(truth, DrawnLinks):
        rows = {
            "threshold": (truth.threshold, "log odds above -this make a candidate"),
            "found_share": (truth.found_share, "share of all links among the candidates"),
            "links_outside": (truth.links_outside, "expected links that are not among them"),
            "disagreement": (truth.predictive.disagreement, "disagreement of data and model, 0 to 1"),
            "entities": (truth.num_clusters().mean(), "expected number of entities"),
            **({} if truth.components is None else _cut(truth.components)),
        }
    else:
        rows = {
            "threshold": (truth.threshold, "log odds above -this make a candidate"),
            "found_share": (truth.found_share, "share of all links among the candidates"),
            "entities": (truth.num_clusters().mean(), "expected number of entities"),
            **_cut(truth),
        }
    return {
        "quantity": np.array(list(rows), object),
        # Whole numbers as such: printed, a column of floats has as many digits as the smallest needs.
        "value": np.array([_short(float(value)) for value, _ in rows.values()], object),
        "meaning": np.array([meaning for _, meaning in rows.values()], object),
    }


def _left_out_by_estimates(posterior: Posterior) -> dict[str, tuple[Any, str]]:
    mean, corrected = expected_clusters(posterior)
    if posterior.links_nothing():  # what was learned is the prior, and expects nothing of these records
        posterior = posterior._replace(found_share=np.array(np.nan))
        corrected = np.nan
    return {
        "threshold": (posterior.threshold, "log odds above -this make a candidate"),
        "found_share": (posterior.found_share, "share of all links among the candidates"),
        "disagreement": (posterior.disagreement, "disagreement of data and model, 0 to 1"),
        "completed": (posterior.completed, "1 if learning includes the other links"),
        "entities": (mean, "expected number of entities"),
        "entities_corrected": (corrected, "entities with the links not looked at"),
        **_cut(posterior),
    }


def _cut(found: Any) -> dict[str, tuple[Any, str]]:
    """Return what was given up, of a posterior or of drawn partitions."""
    components, records, largest, pairs_cut, links_cut = np.asarray(found.cut, float)
    records_alike, pairs_alike, links_alike = np.asarray(found.alike, float)
    return {
        "components_cut": (components, "groups too large to go through"),
        "records_cut": (records, "records in these groups"),
        "largest_component": (largest, "records in the largest group, uncut"),
        "pairs_cut": (pairs_cut, "pairs given up to make them small"),
        "links_cut": (links_cut, "links that these pairs were worth"),
        "records_alike": (records_alike, "records like others, too common to link"),
        "pairs_alike": (pairs_alike, "pairs of such records, not looked at"),
        "links_alike": (links_alike, "links that these pairs were worth"),
    }


def _short(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def hyperparameters(posterior: Any, data: Records) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
    """Return θ and b: the estimates, or means of draws."""
    if isinstance(posterior, Posterior):
        return np.asarray(posterior.value_share), np.asarray(posterior.distortion)
    share = posterior["value_share"].mean(axis=0) if "value_share" in posterior else record_shares(data)
    return np.asarray(share, float), np.asarray(posterior["distortion"], float).mean(axis=0)
