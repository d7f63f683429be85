"""What coordinate ascent for `dirichlet-entity` reads: over all entities, or over the edges of an anchored support."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.records import Records
from consilience.errors import InvalidPrior, TooLarge, UnsupportedRequest
from consilience.models.block_linkage.labels import refuse_labels
from consilience.models.dirichlet_entity.priors import concentrations, field_of_value, value_codes
from consilience.models.dirichlet_entity.support import Support, anchored, least_agreement
from consilience.models.rows import padded_rows, padded_size
from consilience.models.sites import Resolved
from consilience.notes import Remedy

# The fewest records, edges and slots for which programs are made.
_LEAST_RECORDS, _LEAST_EDGES = 64, 256

# Responsibilities of one GiB in float32.
_MOST_CELLS = 1 << 28


class Dense(NamedTuple):
    """What the sweeps read where a record may belong to every entity.

    Parameters
    ----------
    code : shape ``(field, record)``; over the values of all fields, and the number of values where missing.
    concentration, field : shape ``(value,)``.
    total : shape ``(field,)``.
    entity : shape ``(entity,)``; 0, 1, …
    random : whether the start is random.
    """

    code: Int[Array, "field record"]
    concentration: Float[Array, " value"]
    field: Int[Array, " value"]
    total: Float[Array, " field"]
    entity: Int[Array, " entity"]
    random: Bool[Array, ""]


class Whole(NamedTuple):
    """Where the records and edges of a problem are among all; in their own places where the problem is in one piece.

    Parameters
    ----------
    record : shape ``(record,)``; the number of all records where it pads.
    edge : shape ``(edge,)``; the number of all edges where it pads.
    first : shape ``(all records + 1,)``; as in `Support`.
    entity : shape ``(all edges,)``; as in `Support`.
    """

    record: Int[Array, " record"]
    edge: Int[Array, " edge"]
    first: Int[Array, " all_records_plus_one"]
    entity: Int[Array, " all_edges"]


class Anchored(NamedTuple):
    """What the sweeps read where entity k is that of which record k is the first: an edge for each that is possible.

    Parameters
    ----------
    support : the edges.
    slot : shape ``(field, edge)``; which of the entity's values the record has, the number of slots where missing.
    concentration : shape ``(slot,)``.
    entity_field : shape ``(slot,)``; entity times the number of fields, plus the field.
    total : shape ``(field,)``.
    log_entities : ln K.
    random : whether the start is random.
    whole : where all this is among all records.
    """

    support: Support
    slot: Int[Array, "field edge"]
    concentration: Float[Array, " slot"]
    entity_field: Int[Array, " slot"]
    total: Float[Array, " field"]
    log_entities: Float[Array, ""]
    random: Bool[Array, ""]
    whole: Whole


def entities_of(resolved: Resolved) -> int:
    """Return K: as many as there are records where none is given."""
    return resolved.settings.num_entities or resolved.data.num_records


def prepare(resolved: Resolved) -> Dense | Anchored:
    """Collect what the sweeps read.

    Raises
    ------
    InvalidPrior : a concentration is not positive.
    UnsupportedRequest : there are too few entities for the start or the support.
    TooLarge : a dense support would not fit.
    """
    refuse_labels(resolved.data, "this model")
    data, settings, concentration = resolved.data, resolved.settings, np.asarray(concentrations(resolved))
    if not np.all((concentration > 0) & np.isfinite(concentration)):
        raise InvalidPrior("a concentration of site 'value_share' is not above 0; give positive numbers")
    number = entities_of(resolved)
    if number < data.num_records and (settings.support == "anchored" or settings.start == "records"):
        raise UnsupportedRequest(
            f"there are {number} entities for {data.num_records} records; with {{support}}, and with {{start}}, "
            "every record can have one of its own: leave out {num_entities}",
            Remedy("support", "anchored"), Remedy("start", "records"), Remedy("num_entities"),
        )  # fmt: skip
    if settings.support == "anchored":
        edges = anchored(data, least_agreement(settings.agree, data))
        return anchored_problem(data, concentration, edges, number, settings.start)
    if number * data.num_records > _MOST_CELLS:
        raise TooLarge(
            f"a dense support of {data.num_records:,} records and {number:,} entities is too large; use {{support}}",
            Remedy("support", "anchored"),
        )
    return Dense(
        code=np.asarray(value_codes(data), np.int32),
        concentration=concentration,
        field=np.asarray(field_of_value(data), np.int32),
        total=_total(data, concentration),
        entity=np.arange(number, dtype=np.int32),
        random=np.asarray(settings.start == "random"),
    )


def anchored_problem(
    data: Records, concentration: Float[np.ndarray, " value"], support: Support, num_entities: int, start: str
) -> Anchored:
    """Give each value that an entity may have a slot: each that some record on an edge to it has.

    Records, edges and slots are padded, so that data of like size share their programs. Edges that pad belong to the
    last record, which is then none, and have no value.
    """
    code = np.asarray(value_codes(data), np.int64)[:, support.record]
    observed = code < data.num_values
    cells = (support.entity.astype(np.int64) * max(data.num_values, 1) + code)[observed]
    slots, place = np.unique(cells, return_inverse=True)
    num_edges, num_slots = (padded_size(len(rows), _LEAST_EDGES) for rows in (support.record, slots))
    num_records = padded_size(data.num_records + (num_edges > len(support.record)), _LEAST_RECORDS)
    slot = np.full((data.num_fields, num_edges), num_slots, np.int32)
    slot[:, : len(support.record)][observed] = place
    entity, value = np.divmod(slots, max(data.num_values, 1))
    entity_field = (entity * data.num_fields + np.asarray(field_of_value(data))[value]).astype(np.int32)
    edges = np.arange(len(support.record), dtype=np.int32)
    first = padded_rows(support.first, num_records + 1, len(edges))
    first[-1] = num_edges
    padded = Support(first, *(padded_rows(rows, num_edges, num_records - 1) for rows in support[1:]))
    return Anchored(
        support=padded,
        slot=slot,
        concentration=padded_rows(concentration[value], num_slots, 1),
        entity_field=padded_rows(entity_field, num_slots, num_records * data.num_fields - 1),
        total=_total(data, concentration),
        log_entities=np.asarray(np.log(num_entities), concentration.dtype),
        random=np.asarray(start == "random"),
        whole=Whole(
            record=padded_rows(np.arange(data.num_records, dtype=np.int32), num_records, num_records),
            edge=padded_rows(edges, num_edges, num_edges),
            first=padded.first,
            entity=padded.entity,
        ),
    )


def _total(data: Records, concentration: Float[np.ndarray, " value"]) -> Float[np.ndarray, " field"]:
    """Return A₀; of a field without values it is 1, which no count ever meets."""
    total = np.bincount(np.asarray(field_of_value(data)), concentration, data.num_fields)
    return np.where(total > 0, total, 1.0).astype(concentration.dtype)
