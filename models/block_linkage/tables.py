r"""Tables of block-linkage: who is one entity, which pairs, what to decide by hand, what an entity looks like.

The true value of a field of an entity is v with probability :math:`P(y = v) \propto \theta_v (1 + (1 - b) / (b
\theta_v))^{n_v}`, where :math:`n_v` of its records show v (hit-miss likelihood, distortions summed out).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.arrays import Float
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.em import record_shares
from consilience.models.block_linkage.posterior import Posterior
from consilience.models.block_linkage.truth import expected_clusters
from consilience.models.partition import PartitionTruth

__all__ = ["canonical", "entities", "fields", "loss", "pairs", "patterns", "review"]

_DOUBTFUL = 1e-3  # Entropy below this is nothing to look at.
_MOST_SOURCES = 62  # bits of a set of them


def entities(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the records: the entity of each in the most probable partition, named by its first record.

    ``certainty`` is the probability that the entity is exactly these records, and no other.
    """
    estimate = truth.estimate()
    return {
        "record": np.arange(truth.num_records), "entity": estimate, "certainty": truth.cluster_probability(estimate),
    }  # fmt: skip


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
    table = entities(posterior, data, truth)
    return {**{name: values[order] for name, values in table.items()}, "entropy": entropy[order]}


def canonical(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the true values of entities with several records: of each field the most probable one.

    ``values`` is how many different values its records show; a field that all of them lack has no row.
    """
    cluster, fields = truth.estimate(), np.arange(data.num_fields)
    several = np.bincount(cluster, minlength=truth.num_records)[cluster] > 1
    record = np.flatnonzero(several)
    value = np.asarray(data.value)[:, record] + np.asarray(data.first_value)[:-1, None]
    seen = np.asarray(data.value)[:, record] >= 0
    field = np.broadcast_to(fields[:, None], value.shape)[seen]
    entity = np.broadcast_to(cluster[record], value.shape)[seen].astype(np.int64)
    cells, number = np.unique((entity * data.num_fields + field) * data.num_values + value[seen], return_counts=True)
    of_field, value = np.divmod(cells, data.num_values)
    value_share, of_fields = _hyperparameters(posterior, data)
    share, distortion = value_share[value], of_fields[of_field % data.num_fields]
    # The values that no record shows have together what is left of one.
    log_weight = np.log(share) + number * np.log1p((1 - distortion) / (distortion * share))
    starts = np.flatnonzero(np.diff(of_field, prepend=-1))
    lengths = np.diff(np.append(starts, len(cells)))
    highest = np.maximum.reduceat(log_weight, starts) if len(starts) else log_weight
    weight = np.exp(log_weight - np.repeat(highest, lengths))
    rest = np.exp(-highest) * (1 - np.add.reduceat(share, starts)) if len(starts) else highest
    whole = (np.add.reduceat(weight, starts) if len(starts) else highest) + rest
    leads = np.flatnonzero(log_weight == np.repeat(highest, lengths))
    leads = leads[np.searchsorted(leads, starts)]
    values = np.asarray(data.values, object)
    return {
        "entity": (of_field[starts] // data.num_fields).astype(np.int32),
        "field": np.asarray(data.fields, object)[of_field[starts] % data.num_fields], "value": values[value[leads]],
        "probability": weight[leads] / whole, "values": lengths,
    }  # fmt: skip


def fields(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of the fields: how many values, in how many records they are missing, and how often they are distorted."""
    missing = (np.asarray(data.value) < 0).sum(axis=1)
    return {
        "field": np.asarray(data.fields, object), "values": np.diff(data.first_value), "missing": missing,
        "distortion": _hyperparameters(posterior, data)[1],
    }  # fmt: skip


def patterns(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of how many entities have records in exactly these sources, with central 95 % of the draws."""
    names = np.asarray(data.sources, object)
    if len(names) > _MOST_SOURCES:
        raise UnsupportedRequest(f"sets of {len(names)} sources; of at most {_MOST_SOURCES} they are counted")
    known, drawn = truth.clusters_by_source(np.asarray(data.source))
    shown = drawn.any(axis=0)
    known, drawn = known[shown], drawn[:, shown]
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=0)
    words = [" + ".join(names[np.flatnonzero(pattern >> np.arange(len(names)) & 1)]) for pattern in known]
    return {"sources": np.array(words, object), "entities": drawn.mean(axis=0), "lower": lower, "upper": upper}


def loss(posterior: Any, data: Records, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Table of what the candidates leave out, as far as the model can tell; a value that nobody knows is NaN.

    The corrected number of entities is given only where linked pairs look as the model expects them to: where the
    ``disagreement`` is small. Without rows for draws of the hyperparameters.
    """
    rows: dict[str, tuple[Any, str]] = {}
    if isinstance(posterior, Posterior):
        mean, corrected = expected_clusters(posterior)
        components, records, largest, pairs_cut, _ = np.asarray(posterior.cut, float)
        rows = {
            "threshold": (posterior.threshold, "candidates are pairs with log odds above minus this"),
            "found_share": (posterior.found_share, "of all links, those that the model expects among candidates"),
            "disagreement": (
                posterior.disagreement,
                "between the numbers of fields in which linked pairs agree and those expected, 0 to 1",
            ),
            "completed": (posterior.completed, "1 if what was learned includes the links left out, else 0"),
            "entities": (mean, "expected number of entities"),
            "entities_corrected": (corrected, "the same, with the links left out"),
            "components_cut": (components, "groups of candidates that were too large to go through"),
            "records_cut": (records, "records in them"),
            "largest_component": (largest, "records in the largest group of candidates, before the cut"),
            "pairs_cut": (pairs_cut, "pairs that were given up to make them small"),
        }
    return {
        "quantity": np.array(list(rows), object),
        "value": np.array([float(value) for value, _ in rows.values()]),
        "meaning": np.array([meaning for _, meaning in rows.values()], object),
    }


def _hyperparameters(posterior: Any, data: Records) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " field"]]:
    """Return θ and b: the estimates, or means of draws."""
    if isinstance(posterior, Posterior):
        return np.asarray(posterior.value_share), np.asarray(posterior.distortion)
    share = posterior["value_share"].mean(axis=0) if "value_share" in posterior else record_shares(data)
    return np.asarray(share, float), np.asarray(posterior["distortion"], float).mean(axis=0)
