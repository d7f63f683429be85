"""Which clusters of two sides have members in common, in all draws at once: what scores of clusters are made of.

It serves records, mentions and items of views alike. One side is the *key*, the truth, and the other the *response*;
either may be many draws ``(draw, row)``. A *unit* is what sums are kept apart for: a draw, or a document, or a group of
records, of a draw.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from consilience.arrays import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which clusters have members in common, in all units: draws, or documents of draws.

    Parameters
    ----------
    num_units : how many units.
    key_size, response_size : members of each cluster, those included that the other side lacks.
    key_unit, response_unit : the unit of each cluster.
    key, response, common : of pairs of clusters that have members in common: which clusters, and how many members.
    listed : how many, a member counted as often as it stands in the key; ``common`` counts it where it stands last.
    key_code, response_code : shape ``(draw, row)``; the cluster of each row on either side, -1 where there is none.
    document : shape ``(row,)``; what no cluster crosses.
    by_document : whether each document of each draw is a unit of its own: those of the first draw, of the second, …
    twin : as `overlap` takes it.
    """

    num_units: int
    key_size: Int[np.ndarray, " key_cluster"]
    response_size: Int[np.ndarray, " response_cluster"]
    key_unit: Int[np.ndarray, " key_cluster"]
    response_unit: Int[np.ndarray, " response_cluster"]
    key: Int[np.ndarray, " cell"]
    response: Int[np.ndarray, " cell"]
    common: Int[np.ndarray, " cell"]
    listed: Int[np.ndarray, " cell"]
    key_code: Int[np.ndarray, "draw row"]
    response_code: Int[np.ndarray, "draw row"]
    document: Int[np.ndarray, " row"]
    by_document: bool
    twin: Int[np.ndarray, " row"] | None = None

    @functools.cached_property
    def num_common(self) -> Int[np.ndarray, " unit"]:
        """How many members both sides have, of each unit."""
        return of_cells(self, self.common).astype(int)

    @functools.cached_property
    def pairs(self) -> Int[np.ndarray, "unit 3"]:
        """Pairs of different members of a document: of the key, of the response, of those that both have."""
        key, response = self.key_code >= 0, self.response_code >= 0
        return np.stack([self._pairs_within(present) for present in (key, response, key & response)], axis=1)

    def _pairs_within(self, present: Bool[np.ndarray, "draw row"]) -> Int[np.ndarray, " unit"]:
        num_documents = int(self.document.max(initial=-1)) + 1
        cell = np.arange(len(present))[:, None] * num_documents + self.document
        number = np.bincount(cell[present], minlength=len(present) * num_documents)
        links = number * (number - 1) // 2
        return links if self.by_document else links.reshape(len(present), num_documents).sum(axis=1)

    @functools.cached_property
    def cell(self) -> Int[np.ndarray, "draw row"]:
        """The pair of clusters that each row is in, -1 where a side has none."""
        width = len(self.response_size) + 1
        both = (self.key_code >= 0) & (self.response_code >= 0)
        found = np.full(both.shape, -1)
        wanted = self.key_code[both].astype(np.int64) * width + self.response_code[both]
        found[both] = np.searchsorted(self.key.astype(np.int64) * width + self.response, wanted)
        return found


def overlap(
    key: Int[np.ndarray, "draws row"],
    response: Int[np.ndarray, "other_draws row"],
    document: Int[np.ndarray, " row"],
    *,
    singletons: bool = True,
    by_document: bool = False,
    num_documents: int | None = None,
    twin: Int[np.ndarray, " row"] | None = None,
) -> Overlap:
    """Count what clusters have in common.

    Parameters
    ----------
    key, response : shape ``(draw, row)``, or ``(1, row)`` where it is the same in all draws; numbers that are equal
        where rows are together, -1 where this side lacks the row. Codes are of all documents together.
    document : shape ``(row,)``; code of its document, or of another group that no cluster crosses.
    singletons : False leaves out clusters of one member, on both sides.
    by_document : whether each document of each draw is a unit of its own: those of the first draw, of the second, …
    num_documents : how many there are; as many as have rows by default.
    twin : of a span that stands in the key more than once, the place where it stands last, which is also where the
        response has it; each row's own place by default.

    Raises
    ------
    ValueError : for unequal numbers of draws, neither of which is one.
    """
    num_draws = max(len(key), len(response))
    if {len(key), len(response)} - {1, num_draws}:
        raise ValueError(f"{len(key)} draws of the key and {len(response)} of the response; give equal numbers, or one")
    key, response = (np.broadcast_to(side, (num_draws, len(document))) for side in (key, response))
    number = int(document.max(initial=-1)) + 1 if num_documents is None else num_documents
    unit = np.arange(num_draws)[:, None]
    if by_document:
        unit = unit * number + document
    unit = np.broadcast_to(unit, key.shape)
    num_units = num_draws * (number if by_document else 1)
    key_code, key_size, key_unit = _clusters(key, unit, singletons)
    response_code, response_size, response_unit = _clusters(response, unit, singletons)
    width = len(response_size) + 1
    cell, common = _cells(key_code, response_code, width)
    listed = common
    if twin is not None:
        single, (cell, listed) = (cell, common), _cells(key_code, response_code[:, twin], width)
        common = np.zeros_like(listed)
        common[np.searchsorted(cell, single[0])] = single[1]
    of_key, of_response = np.divmod(cell, width)
    return Overlap(
        num_units, key_size, response_size, key_unit, response_unit, of_key, of_response, common, listed,
        key_code, response_code, document, by_document, twin,
    )  # fmt: skip


def _clusters(side: np.ndarray, unit: np.ndarray, singletons: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a code for each cluster of each draw ``(draw, row)``, -1 where there is none; sizes; and units."""
    if side.max(initial=-1) >= 2 * side.shape[1] + 2:  # labels of another kind than codes of rows: take their ranks
        side = np.unique(np.append(side, -1), return_inverse=True)[1][:-1].reshape(side.shape) - 1
    width = int(side.max(initial=-1)) + 1
    draw = np.arange(len(side))[:, None]
    present = side >= 0
    number = np.bincount((draw * width + side)[present], minlength=len(side) * width)
    counted = number > (0 if singletons else 1)
    code = np.where(counted, np.cumsum(counted) - 1, -1)
    of_row = np.where(present, code[np.where(present, draw * width + side, 0)] if width else -1, -1)
    of_cluster = np.zeros(counted.sum(), np.int64)
    of_cluster[of_row[of_row >= 0]] = unit[of_row >= 0]
    return of_row, number[counted], of_cluster


def _cells(key: np.ndarray, response: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of clusters that have members in common, as one code, and how many."""
    both = (key >= 0) & (response >= 0)
    cell, number = np.unique(key[both].astype(np.int64) * width + response[both], return_counts=True)
    return cell, number


# Sums over units ------------------------------------------------------------------------------------------------------


def of_cells(found: Overlap, of_cell: np.ndarray) -> Float[np.ndarray, " unit"]:
    """Add up something of the pairs of clusters."""
    return np.bincount(found.key_unit[found.key], of_cell, found.num_units).astype(float)


def of_key(found: Overlap, of_cluster: np.ndarray) -> Float[np.ndarray, " unit"]:
    """Add up something of the clusters of the key."""
    return np.bincount(found.key_unit, of_cluster, found.num_units).astype(float)


def of_response(found: Overlap, of_cluster: np.ndarray) -> Float[np.ndarray, " unit"]:
    """Add up something of the clusters of the response."""
    return np.bincount(found.response_unit, of_cluster, found.num_units).astype(float)


def b3(found: Overlap) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of B³: numerator and denominator of recall, and of precision (Bagga and Baldwin 1998)."""
    product = found.common * found.listed.astype(float)
    return (
        of_cells(found, product / found.key_size[found.key]), of_key(found, found.key_size),
        of_cells(found, product / found.response_size[found.response]), of_response(found, found.response_size),
    )  # fmt: skip
