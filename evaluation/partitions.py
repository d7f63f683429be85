r"""Scores of partitions: how well predicted clusters of records agree with the true ones.

Either side may be many draws of a partition ``(draw, record)``: all draws are scored at once, from the numbers
:math:`n_{ab}` of records that predicted cluster a and true cluster b have in common. With :math:`\binom{n}{2}` pairs
among n records, of which R are together in the prediction, S in truth and B in both:

* pairwise: precision :math:`B / R`, recall :math:`B / S`;
* cluster: the share of the predicted clusters that are true ones exactly, and of the true clusters that are found
  exactly. Records left alone count as clusters: leaving every record alone scores high where most are alone in truth;
* B³: the mean over records of the share of its predicted cluster that truly belongs with it, and of its true cluster
  that was found;
* ARI: :math:`(B - E) / ((R + S)/2 - E)`, where chance expects :math:`E = R S / \binom{n}{2}` pairs in both;
* NMI: the information that the two have in common over the mean of their entropies;
* merge distances: what it takes to split and merge the predicted clusters into the true ones, counted in moves, in
  pairs parted or joined, or in nats a record, which is the variation of information. Zero is best.

F1 is the harmonic mean of precision and recall. A share of nothing is undefined, NaN: there is no pairwise precision
where no pair is predicted, and pairwise F1 is then 0, though nothing may be wrong: pairs say nothing of records that
are alone. Two equal partitions have ARI and NMI 1, those without pairs or of one cluster too.

Records are not independent items: a pair has two, and a score counts whole clusters. What is independent are groups of
records that nothing links, neither a draw of the truth nor a system: the connected components of all of these together
(`connected_groups`). Scores are made of sums over clusters, and no cluster reaches from one group into another: a
comparison of systems weights groups, as another data set of the same kind would have other groups. The fewer groups
there are, the less these weights say: a system that joins most records makes one group of them.

References
----------
Bagga and Baldwin (1998), LREC: B³. Hubert and Arabie (1985), Journal of Classification 2: ARI. Meilă (2007), Journal of
Multivariate Analysis 98: variation of information. Menestrina, Whang and Garcia-Molina (2010), VLDB: generalised merge
distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from consilience.arrays import Float, Int
from consilience.data.partitions import Partition
from consilience.errors import UnsupportedRequest
from consilience.evaluation.engine import Scoring
from consilience.evaluation.engine import Sums as BlockSums
from consilience.evaluation.overlap import Overlap, b3, of_cells, of_key, of_response, overlap
from consilience.evaluation.registry import METRICS, Form, metric, scores
from consilience.models.truth.partitions import PartitionTruth
from consilience.models.truth.truth import PARTITION, Clusters

DISTANCES = ("merge-moves", "merge-pairs", "variation-of-information")
"""Scores of which less is better."""


class Sums(NamedTuple):
    """What a score is made of, added up over clusters; of the units of an `Overlap`, or of what these are added up to.

    Parameters
    ----------
    records : how many.
    both, predicted, true : of intersections, predicted clusters and true clusters, something that the score counts.
    """

    records: Any
    both: Any
    predicted: Any
    true: Any


def contingency(
    predicted: Int[np.ndarray, "draws record"], truth: Int[np.ndarray, "other_draws record"],
    group: Int[np.ndarray, " record"] | None = None, num_groups: int | None = None,
) -> Overlap:  # fmt: skip
    """Count what clusters have in common; the truth is the key.

    Parameters
    ----------
    predicted, truth : shape ``(draw, record)``, or ``(1, record)`` where it is the same in all draws; numbers that are
        equal where records are together, -1 where the cluster of a record is unknown: it is left out on both sides.
    group : of each record, where sums are kept apart for groups that no cluster crosses; one group by default.
    num_groups : how many there are.

    Raises
    ------
    ValueError : for unequal numbers of draws, neither of which is one.
    """
    num_draws = max(len(predicted), len(truth))
    if {len(predicted), len(truth)} - {1, num_draws}:
        given = f"{len(predicted)} draws of the prediction and {len(truth)} of the truth"
        raise ValueError(f"{given}; give equal numbers, or one")
    known = (predicted >= 0) & (truth >= 0)
    if not known.all():
        predicted, truth = np.where(known, predicted, -1), np.where(known, truth, -1)
    of_record = np.zeros(predicted.shape[1], int) if group is None else group
    return overlap(truth, predicted, of_record, by_document=True, num_documents=num_groups or 1)


def form_of(name: str) -> Form:
    """Return the score of a name.

    Raises
    ------
    UnknownName : the text lists the names.
    """
    return METRICS[PARTITION.name].form_of(name)[0]


def names() -> dict[str, str]:
    """Return the names of the scores, and what they are in words."""
    return METRICS[PARTITION.name].lines


def score(found: Overlap, name: str) -> Float[np.ndarray, " unit"]:
    """Return one of the scores for every unit; NaN where it is undefined.

    Raises
    ------
    UnknownName : there is no such score.
    """
    form = form_of(name)
    return _value(form, form.more["parts"](found))


def _value(form: Form, parts: Any) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(form.function(Sums(*parts)), float)


def record_f1(found: Overlap) -> Float[np.ndarray, "draw record"]:
    """Return how well the predicted and the true cluster of each record agree, as F1; NaN for records left out."""
    size = found.response_size[found.response] + found.key_size[found.key]
    # The last one stands for records that are left out, whose cell is -1.
    return np.append(2 * found.common / size, np.nan)[found.cell]


# What is counted ------------------------------------------------------------------------------------------------------


def _of_sizes(of_size: Callable[[np.ndarray], np.ndarray]) -> Callable[[Overlap], Sums]:
    """Count some function of the sizes."""

    def parts(found: Overlap) -> Sums:
        return Sums(
            of_cells(found, found.common), of_cells(found, of_size(found.common)),
            of_response(found, of_size(found.response_size)), of_key(found, of_size(found.key_size)),
        )  # fmt: skip

    return parts


def _pairs(size: Any) -> Any:
    return size * (size - 1) / 2


def _size_log_size(size: Any) -> Any:
    return size * np.log(np.maximum(size, 1))


def _exact(found: Overlap) -> Sums:
    """Count clusters, and of the intersections those that are a predicted and a true cluster."""
    equal = (found.common == found.response_size[found.response]) & (found.common == found.key_size[found.key])
    predicted, true = (np.ones(len(size)) for size in (found.response_size, found.key_size))
    return Sums(
        of_cells(found, found.common), of_cells(found, equal), of_response(found, predicted), of_key(found, true)
    )


def _b3_parts(found: Overlap) -> Sums:
    """Count the shares of predicted and of true clusters that belong together; all records are on both sides."""
    recall, records, precision, _ = b3(found)
    return Sums(records, np.zeros(len(records)), precision, recall)


_IN_PAIRS, _IN_CLUSTERS, _IN_NATS = _of_sizes(_pairs), _of_sizes(np.ones_like), _of_sizes(_size_log_size)

# Scores ---------------------------------------------------------------------------------------------------------------


def _precision(sums: Sums) -> np.ndarray:
    return sums.both / sums.predicted


def _recall(sums: Sums) -> np.ndarray:
    return sums.both / sums.true


def _f1(sums: Sums) -> np.ndarray:
    """Return the F1 of counts; 0 where there is nothing to count."""
    total = sums.predicted + sums.true
    return np.where(total > 0, 2 * sums.both / total, 0.0)


def _ari(sums: Sums) -> np.ndarray:
    every = _pairs(sums.records)
    chance = sums.predicted * sums.true / np.where(every > 0, every, 1)
    best = (sums.predicted + sums.true) / 2
    # The best is what chance expects only where both have no pair, or both have all: they are equal.
    return np.where(best == chance, 1.0, (sums.both - chance) / (best - chance))


def _entropies(sums: Sums) -> Sums:
    """Return the entropy of the intersections, and of the clusters of either side, in nats."""
    number = sums.records
    return Sums(number, *((_size_log_size(number) - each) / number for each in sums[1:]))


def _nmi(sums: Sums) -> np.ndarray:
    entropy = _entropies(sums)
    total = entropy.predicted + entropy.true
    return np.where(total == 0, 1.0, np.clip(2 * (total - entropy.both) / total, 0, 1))


def _wrong_pairs(sums: Sums) -> np.ndarray:
    return sums.predicted + sums.true - 2 * sums.both


def _moves(sums: Sums) -> np.ndarray:
    return 2 * sums.both - sums.predicted - sums.true


def _variation(sums: Sums) -> np.ndarray:
    entropy = _entropies(sums)
    return np.maximum(2 * entropy.both - entropy.predicted - entropy.true, 0)


def _b3_precision(sums: Sums) -> np.ndarray:
    return sums.predicted / sums.records


def _b3_recall(sums: Sums) -> np.ndarray:
    return sums.true / sums.records


def _b3_f1(sums: Sums) -> np.ndarray:
    precision, recall = _b3_precision(sums), _b3_recall(sums)
    return 2 * precision * recall / (precision + recall)


# Each score once: its name, its value from the sums, what it counts, and what it is in words.
_SCORES = (
    ("pairwise-f1", _f1, _IN_PAIRS, "F1 of pairs that belong together"),
    ("pairwise-precision", _precision, _IN_PAIRS, "share of the predicted pairs that are true"),
    ("pairwise-recall", _recall, _IN_PAIRS, "share of the true pairs that are predicted"),
    ("cluster-f1", _f1, _exact, "F1 of clusters that are exactly right"),
    ("cluster-precision", _precision, _exact, "share of the predicted clusters that are exactly right"),
    ("cluster-recall", _recall, _exact, "share of the true clusters that are found exactly"),
    ("b3-f1", _b3_f1, _b3_parts, "F1 of B³"),
    ("b3-precision", _b3_precision, _b3_parts, "mean share of a record's predicted cluster that belongs with it"),
    ("b3-recall", _b3_recall, _b3_parts, "mean share of a record's true cluster that is with it"),
    ("ari", _ari, _IN_PAIRS, "adjusted Rand index"),
    ("nmi", _nmi, _IN_NATS, "mutual information over mean entropy"),
    ("merge-moves", _moves, _IN_CLUSTERS, "splits and merges to the true clusters"),
    ("merge-pairs", _wrong_pairs, _IN_PAIRS, "pairs wrongly joined or parted"),
    ("variation-of-information", _variation, _IN_NATS, "variation of information, in nats"),
)
for _name, _value_of, _parts, _line in _SCORES:
    metric(_name, kind=PARTITION, line=_line, parts=_parts)(_value_of)


# Scoring --------------------------------------------------------------------------------------------------------------


@scores(PARTITION)
def _scoring(
    truth: PartitionTruth, systems: Sequence[Partition], metrics: Sequence[Any], *, missing: str = "error",
    unknown: str = "error", groups: bool = False, **settings: Any,
) -> Scoring:  # fmt: skip
    """Score partitions against the partition of each draw.

    Parameters
    ----------
    truth : a partition.
    systems : partitions of the same records.
    metrics : names of scores.
    missing, unknown : see `consilience.evaluate`.
    groups : whether groups of records that nothing links are the units, to be weighted. By default all records are
        one, and the rows of a table are records, with their own B³ F1.

    Raises
    ------
    UnsupportedRequest : no record has an entity in every partition.
    """
    chosen = [str(getattr(one, "name", one)) for one in metrics]
    forms = {name: form_of(name) for name in chosen}
    entity = np.stack([one.align(truth.names(), missing=missing, unknown=unknown) for one in systems])
    compared = (entity >= 0).all(axis=0)
    if not compared.any():
        raise UnsupportedRequest("no record has an entity in every partition; check that their ids agree")
    entity = np.where(compared, entity, -1)
    group, number = connected_groups(truth, entity) if groups else (np.zeros(truth.num_units, int), 1)
    counted = list(dict.fromkeys(form.more["parts"] for form in forms.values()))
    width = len(Sums._fields)

    def summed(cluster: np.ndarray) -> tuple[np.ndarray, list[Overlap]]:
        found = [contingency(one[None], cluster, group, number) for one in entity]
        of_systems = [np.concatenate([np.stack(parts(each)) for parts in counted]) for each in found]
        shape = (len(entity), width * len(counted), len(cluster), number)
        return np.swapaxes(np.stack(of_systems).reshape(shape), 2, 3), found  # system, part, group, draw

    def blocks() -> Iterator[BlockSums]:
        for block in truth.blocks(Clusters()):
            values, found = summed(block.values)
            shown = None if groups else np.stack([record_f1(one).sum(axis=0) for one in found])
            yield BlockSums(slice(0, number), block.draws, values, shown=shown)

    def value(form: Form) -> Callable[[np.ndarray, Any], np.ndarray]:
        first = width * counted.index(form.more["parts"])
        return lambda parts, number: _value(form, parts[first : first + width])

    def with_score(mean: np.ndarray, score: np.ndarray) -> np.ndarray:
        """Return the sums of a group of mean size, with precision and recall alike."""
        found = np.repeat(mean[..., None], score.shape[-1], axis=2)
        for place, parts in enumerate(counted):
            own = found[:, width * place : width * (place + 1)]
            if parts is _b3_parts:
                own[:, 2:] = (own[:, 0] * score)[:, None]
            else:
                own[:, 2:] = own[:, 2:].mean(axis=1, keepdims=True)
                own[:, 1] = own[:, 2] * score
        return found

    alone = not any((np.bincount(one[one >= 0]) > 1).any() for one in entity)
    return Scoring(
        blocks=blocks, values={name: value(form) for name, form in forms.items()},
        title=lambda name, system=None, draws=None: _title(forms, name, system, draws, alone), unit="connected group",
        num_units=number, num_draws=truth.num_draws, joint=True,
        standard=lambda: summed(truth.estimate()[None])[0][..., 0], place=np.arange(number), rows=truth.num_units,
        ids=truth.ids.get("record"), row="record", label="b3_f1", pseudo=with_score,
    )  # fmt: skip


def _title(
    forms: Mapping[str, Form], name: str, system: str | None, draws: np.ndarray | None, alone: bool
) -> str:
    """Return what was measured, in words; of a score that may be undefined, where it is."""
    line = forms[name].line
    title = f"{name} ({line})" if system is None else f"{name} of {system} ({line})"
    if draws is None:
        return title
    if name in ("pairwise-f1", "pairwise-precision") and alone:
        return f"{title}; no pair is predicted"
    defined = int(np.isfinite(draws).sum())
    return title if defined == len(draws) else f"{title}; in the {defined:,} of {len(draws):,} draws that have pairs"


def connected_groups(
    truth: PartitionTruth, systems: Int[np.ndarray, "system record"]
) -> tuple[Int[np.ndarray, " record"], int]:
    """Return the group of each record and how many groups there are; records that are not compared count in none."""
    size = truth.num_units
    record = np.arange(size)
    edges = [_edges(record, block.values) for block in truth.blocks(Clusters())]
    for system in systems:
        _, first, label = np.unique(system, return_index=True, return_inverse=True)
        edges.append(_edges(record, np.where(system >= 0, first[label], record)[None]))
    one, other = np.divmod(np.unique(np.concatenate(edges)), size)
    graph = sparse.coo_array((np.ones(len(one), np.int8), (one, other)), shape=(size, size))
    component = sparse.csgraph.connected_components(graph, directed=False)[1]
    compared = (systems >= 0).all(axis=0)
    names = np.unique(component[compared])
    # Any group will do for records that are not compared: nothing of them is counted.
    return np.where(compared, np.searchsorted(names, component), 0), len(names)


def _edges(record: Int[np.ndarray, " record"], first: Int[np.ndarray, "draw record"]) -> Int[np.ndarray, " edge"]:
    """Return which records are linked with the first one of their cluster in some draw, as one number each."""
    linked = first != record
    return np.unique((record * len(record) + first)[linked])
