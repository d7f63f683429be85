"""The records of an anchored support divided among devices.

The support falls into parts that no edge connects. They share no entity and so no count: divided whole, they exchange
nothing in a sweep. A part with more than its share of all edges makes the other devices wait.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from consilience.arrays import Int
from consilience.errors import UnsupportedRequest
from consilience.models.dirichlet_entity.problem import Anchored, Dense, Whole
from consilience.models.dirichlet_entity.support import Support
from consilience.models.interface import Shards
from consilience.models.rows import copies, divide_rows, sorted_order
from consilience.notes import Remedy


def shard(problem: Dense | Anchored, number: int) -> Shards:
    """Divide the records of an anchored support; on the host.

    Every shard ends with a record that is none, to which the edges that pad belong.

    Raises
    ------
    UnsupportedRequest : the support is dense.
    """
    if isinstance(problem, Dense):
        raise UnsupportedRequest(
            "a dense support is not divided among devices, since every record may belong to every entity; leave out "
            "{devices}, or use {support}", Remedy("devices"), Remedy("support", "anchored"),
        )  # fmt: skip
    support, num_fields = problem.support, len(problem.total)
    entity, field = np.divmod(problem.entity_field, num_fields)
    own = shard_of_record(support, number)
    records, edges, slots = (_Cut.of(rows, number) for rows in (own, own[support.record], own[entity]))
    none = records.longest
    local_slot = np.append(slots.place, slots.longest)[problem.slot].astype(np.int32)
    local_field = records.place[entity] * num_fields + field
    every = copies((problem.whole.first, problem.whole.entity), number)
    divided = Anchored(
        support=_local_support(support, own, records, edges),
        slot=edges.divide(local_slot.T, slots.longest).swapaxes(1, 2),
        concentration=slots.divide(problem.concentration, 1),
        entity_field=slots.divide(local_field.astype(np.int32), (none + 1) * num_fields - 1),
        total=copies(problem.total, number),
        log_entities=copies(problem.log_entities, number),
        random=copies(problem.random, number),
        whole=Whole(
            records.divide(problem.whole.record, len(own), none + 1),
            edges.divide(problem.whole.edge, len(support.record)),
            *every,
        ),
    )
    return Shards(divided, {})


def shard_of_record(support: Support, number: int) -> Int[np.ndarray, " record"]:
    """Return the shard of each record: no edge leaves one, and they have about as many edges.

    None has more than its share and those of one part.
    """
    num_records = len(support.first) - 1
    edges = np.ones(len(support.record), np.int8), (support.record, support.entity)
    graph = sparse.coo_array(edges, shape=(num_records, num_records))
    num_parts, part = csgraph.connected_components(graph, directed=False)
    size = np.bincount(part[support.record], minlength=num_parts)
    end = np.cumsum(size)
    # A part goes where its middle falls when all parts are laid end to end and cut evenly.
    return ((2 * end - size) * number // (2 * end[-1]))[part]


class _Cut(NamedTuple):
    """Rows sorted by shard: their order, where each shard begins, the place of each row in its own, the most of one."""

    order: Int[np.ndarray, " row"]
    first: Int[np.ndarray, " shard_plus_one"]
    place: Int[np.ndarray, " row"]
    longest: int

    @classmethod
    def of(cls, own: Int[np.ndarray, " row"], number: int) -> _Cut:
        """Cut rows given the shard of each."""
        order = sorted_order(own)
        size = np.bincount(own, minlength=number)
        first = np.concatenate([[0], np.cumsum(size)])
        place = np.empty(len(own), np.int32)
        place[order] = np.arange(len(own)) - np.repeat(first[:-1], size)
        return cls(order, first, place, max(int(size.max()), 1))

    def divide(self, rows: Any, fill: int, length: int | None = None) -> np.ndarray:
        """Return rows by shard, filled up to one length."""
        return divide_rows(np.asarray(rows)[self.order], self.first, fill, length)


def _local_support(support: Support, own: Int[np.ndarray, " record"], records: _Cut, edges: _Cut) -> Support:
    """Return the support of each shard, in codes of its own records."""
    none = records.longest
    num_edges = np.zeros((len(edges.first) - 1, none + 1), np.int32)
    num_edges[own, records.place] = np.diff(support.first)
    num_edges[:, none] = edges.longest - np.diff(edges.first)
    return Support(
        np.pad(np.cumsum(num_edges, axis=1, dtype=np.int32), ((0, 0), (1, 0))),
        edges.divide(records.place[support.record], none),
        edges.divide(records.place[support.entity], none),
    )
