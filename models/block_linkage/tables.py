"""Tables of block-linkage: who is one entity, which pairs, what to decide by hand, what is lost."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from consilience.data.codes import object_array, text_array
from consilience.data.records import Records
from consilience.errors import TooLarge
from consilience.models.block_linkage.canonical import CANONICAL
from consilience.models.block_linkage.engines import Kept
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.review import REVIEW, THRESHOLDS
from consilience.models.block_linkage.starting import hyperparameters
from consilience.models.block_linkage.truth import BlockPartition
from consilience.models.block_linkage.weights import CANDIDATES, EXPLAIN, UNLINKABLE, WEIGHTS
from consilience.models.interface import Column, Measure, Table
from consilience.models.partition_tables import CLUSTERS, MATCHING_SETS
from consilience.models.posterior import Draws, Posterior
from consilience.models.rows import row_blocks
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import PartitionTruth

_FEW_SOURCES = 4    # of which all sets are listed
_PIECE = 65_536     # rows that an engine is given at a time
_MOST_SOURCES = 62  # bits of a set of them


def entities(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the records: the entity of each in the most probable partition, named by its first record.

    ``certainty`` is the probability that the entity is exactly these records, and no other. ``file`` and
    ``original_id`` say where the record comes from: its id there, where ``record`` is ``file:id`` because files share
    ids.
    """
    data, own = resolved.data, assigned(truth)
    if data.records is None or data.sources is None:
        return own
    return own | {"file": np.asarray(data.sources, object)[np.asarray(data.source)], "original_id": _original_ids(data)}


def entities_kept(engine: Any, posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> Kept:
    """Return the same rows as an engine keeps them, numbered, as long as the truth is there; it gets them in pieces."""
    import pyarrow as pa

    if "entities" in vars(truth):
        return vars(truth)["entities"]
    data, own = resolved.data, assigned(truth)
    names, files = text_array(data.records), text_array(data.sources)
    original = names if data.num_sources == 1 else text_array(_original_ids(data))

    def batch(rows: slice) -> Any:
        return pa.record_batch({
            "row": own["record"][rows], "record": names[rows], "entity": names[own["entity"][rows]],
            "certainty": own["certainty"][rows], "file": files[data.source[rows]], "original_id": original[rows],
        })  # fmt: skip

    schema = pa.schema([("row", pa.int64()), *((name, pa.string()) for name in ("record", "entity")),
                        ("certainty", pa.float64()), *((name, pa.string()) for name in ("file", "original_id"))])
    batches = (batch(rows) for rows in row_blocks(data.num_records, 1, _PIECE))
    found = Kept(engine, engine.table(pa.RecordBatchReader.from_batches(schema, batches)))
    return vars(truth).setdefault("entities", found)


def assigned(truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the entity of each record in the estimate, and how probably it is exactly these records."""
    estimate = truth.estimate()
    return {
        "record": np.arange(truth.num_units), "entity": estimate, "certainty": truth.cluster_probability(estimate),
    }  # fmt: skip


def _original_ids(data: Records) -> np.ndarray:
    """Return the ids in the files: without the name of the file, where an id is of several ones."""
    records = np.asarray(data.records, object)
    if data.num_sources == 1:
        return records
    files, ids = np.asarray(data.sources, object)[np.asarray(data.source)], records.copy()
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


def pairs(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the pairs of records that may be of one entity, the most probable first."""
    found = truth.pairs()
    order = np.argsort(-found.probability, kind="stable")
    return {
        "record_a": found.first[order], "record_b": found.second[order], "probability": found.probability[order],
    }  # fmt: skip


def fields(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return the fields: how many values, in how many records they are missing, and how often they are distorted."""
    data: Records = resolved.data
    missing = (np.asarray(data.value) < 0).sum(axis=1)
    return {
        "field": np.arange(data.num_fields), "values": np.diff(data.first_value), "missing": missing,
        "distortion": hyperparameters(posterior, data)[1],
    }  # fmt: skip


def patterns(posterior: Posterior, resolved: Resolved, truth: PartitionTruth) -> dict[str, np.ndarray]:
    """Return how many entities have records in exactly these sources, with the interval of the draws.

    Of few sources all sets are there, of many those that some draw has.

    Raises
    ------
    UnsupportedRequest : there are more sources than a set of them can be told for.
    """
    data: Records = resolved.data
    names = np.asarray(data.sources, object)
    if len(names) > _MOST_SOURCES:
        raise TooLarge(f"sets of {len(names)} sources; of at most {_MOST_SOURCES} they are counted")
    # The draws in which the entities are counted: one page has one number of them.
    known, drawn = (truth.counted().partitions or truth).clusters_by_source(np.asarray(data.source))
    if len(names) <= _FEW_SOURCES:
        every = np.arange(1, 2 ** len(names))
        of_every = np.zeros((len(drawn), len(every)), drawn.dtype)
        of_every[:, known - 1] = drawn
        known, drawn = every, of_every
    else:
        found = drawn.any(axis=0)
        known, drawn = known[found], drawn[:, found]
    numbers = Draws({"number": drawn[None]}).summary("number")
    words = [" + ".join(names[np.flatnonzero(pattern >> np.arange(len(names)) & 1)]) for pattern in known]
    return {
        "sources": np.array(words, object), "entities": numbers.mean, "lower": numbers.lower, "upper": numbers.upper,
    }  # fmt: skip


def loss(posterior: Posterior, resolved: Resolved, truth: Any) -> dict[str, np.ndarray]:
    """Return what the candidates leave out, as far as the model can tell; a value that nobody knows is NaN.

    The meanings are short, so that the table fits a terminal of 80 characters. What pairs were worth in links is each
    taken for itself, and the ``disagreement`` is that of the numbers of fields in which linked pairs agree.
    The corrected number of entities is given only where linked pairs look as the model expects them to: where the
    ``disagreement`` is small; of draws of the hyperparameters neither is known. Gibbs sampling cuts nothing.
    """
    if "found_share" in posterior.hidden:
        rows = _left_out_by_estimates(Linkage.of(posterior))
    else:
        rows = {
            "threshold": (truth.threshold, "candidates: log odds above minus this"),
            "found_share": (truth.found_share, "share of all links among the candidates"),
            **truth.expected_outside(),
            "entities": (truth.num_clusters().mean(), "expected number of entities"),
            **({} if truth.given_up is None else _cut(truth.given_up)),
        }
    return {
        "quantity": np.array(list(rows), object),
        # Whole numbers as such: printed, a column of floats has as many digits as the smallest needs.
        "value": np.array([_short(float(value)) for value, _ in rows.values()], object),
        "meaning": np.array([meaning for _, meaning in rows.values()], object),
    }


def expected_clusters(posterior: Linkage) -> tuple[float, float]:
    """Return the expected number of clusters, as it is and with the links that the candidates leave out."""
    partition = BlockPartition(posterior, key=jax.random.key(0), num_draws=1)
    return partition.num_clusters_moments()[0], partition.corrected_num_clusters()


def _left_out_by_estimates(posterior: Linkage) -> dict[str, tuple[Any, str]]:
    mean, corrected = expected_clusters(posterior)
    if posterior.links_nothing():  # what was learned is the prior, and expects nothing of these records
        posterior = posterior._replace(found_share=np.array(np.nan))
        corrected = np.nan
    return {
        "threshold": (posterior.threshold, "candidates: log odds above minus this"),
        "found_share": (posterior.found_share, "share of all links among the candidates"),
        "disagreement": (posterior.disagreement, "disagreement of data and model, 0 to 1"),
        "completed": (posterior.completed, "1 if learning includes the other links"),
        "entities": (mean, "expected number of entities"),
        "entities_corrected": (corrected, "entities with the links not looked at"),
        "pairs_unseen": (posterior.unseen, "most pairs unseen: their values are common"),
        "records_drawn": (len(posterior.large), "records in parts drawn, not enumerated"),
        "unsettled": (posterior.unsettled, "parts whose draws do not agree"),
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


ENTITIES = Table(
    name="entities", help="The records: the entity of each in the most probable partition, named by its first record.",
    columns=(
        Column("record", "record"), Column("entity", "record"),
        Column("certainty", help="probability that the entity is exactly these records"),
        Column("file", help="from which the record comes"), Column("original_id", help="its id in that file"),
    ),
    make=entities, kept=entities_kept,
)  # fmt: skip
PAIRS = Table(
    name="pairs", help="The pairs of records that may be of one entity, the most probable first.",
    columns=(Column("record_a", "record"), Column("record_b", "record"), Column("probability")),
    make=pairs,
)
FIELDS = Table(
    name="fields", help="The fields: how many values, how many missing, and how often they are distorted.",
    columns=(
        Column("field", "field"), Column("values", help="how many different ones"),
        Column("missing", help="records without one"), Column("distortion", help="share of distorted values"),
    ),
    make=fields,
)  # fmt: skip
PATTERNS = Table(
    name="patterns", help="How many entities have records in exactly these sources.",
    columns=(Column("sources"), Column("entities", help="expected number"), Column("lower"), Column("upper")),
    make=patterns,
)
LOSS = Table(
    name="loss", help="What the candidates leave out, as far as the model can tell; NaN where nobody knows.",
    columns=(Column("quantity"), Column("value"), Column("meaning")),
    make=loss,
)
CLEANING = Measure(
    name="cleaning", help="What cleaning did to each column of each source, of fits by `link`.",
    place="consilience.linking:cleaning",
    columns=tuple(map(Column, ("column", "source", "type", "order", "values", "forms", "missing", "examples"))),
)  # fmt: skip
MEASURES: tuple[Measure, ...] = tuple(
    Measure(name=name, help=help, place=f"consilience.evaluation.partition_scores:{name}")
    for name, help in (
        ("num_entities", "The number of entities, with its interval."),
        ("expected_scores", "Scores that the estimate is expected to have."),
        ("entity_probability", "How probably some records are exactly one entity."),
    )
)
CALIBRATION = Measure(
    name="calibration", help="How often pairs are the same entity, by their probability, as labels say.",
    place="consilience.evaluation.reliability:calibration_of_labels",
)
LINK_NEW = Measure(
    name="link_new", help="Link new records with those of the fit, what was learned fixed.",
    place="consilience.new_records:link_new",
)
TABLES: tuple[Table | Measure, ...] = (
    ENTITIES, PAIRS, REVIEW, MATCHING_SETS, CANONICAL, FIELDS, WEIGHTS, UNLINKABLE, CANDIDATES, PATTERNS, CLUSTERS,
    LOSS,     CLEANING, THRESHOLDS, EXPLAIN, CALIBRATION, LINK_NEW, *MEASURES,
)  # fmt: skip
"""What fits of linkage answer."""
