r"""Scores of coreference: how well the entities of a response agree with those of a key.

Mentions stand in a table, one row for each that the key or the response has, with the entity on both sides or -1 where
that side lacks the mention. Either side may be many draws of entities ``(draw, mention)``: all draws are scored at
once, from the numbers :math:`n_{ks}` of mentions that key entity k and response entity s have in common. Entities do
not cross documents, so that the sums below are those over documents, divided at the end, as in the official scorer.

With K an entity of the key, S one of the response and :math:`n` their numbers of mentions in common, recall is

* mentions: the share of the key's mentions that the response has, whatever their entities;
* MUC: :math:`\sum_K (\lvert K \rvert - \mathrm{parts}(K)) / \sum_K (\lvert K \rvert - 1)`, where the response cuts K
  into parts, and a mention that it lacks is a part of its own;
* B³: :math:`\sum_{K, S} (n^2 / \lvert K \rvert) / \sum_K \lvert K \rvert`;
* CEAF-m and CEAF-e: the similarity of the best alignment of entities, one to one, over that of the key with itself; it
  is :math:`n`, or :math:`2 n / (\lvert K \rvert + \lvert S \rvert)`;
* BLANC: the mean of two shares, of the pairs of mentions of a document that corefer, and of those that do not;
* LEA: :math:`\sum_K \lvert K \rvert\, r(K) / \sum_K \lvert K \rvert`, r being the share of the links of K that the
  response has; a singleton is found where it is one on the other side.

Precision exchanges key and response, and CoNLL is the mean F of MUC, B³ and CEAF-e.

F is 0 where precision and recall are, and a share of nothing is 0.

References
----------
Vilain et al. (1995), MUC-6. Bagga and Baldwin (1998), LREC. Luo (2005), HLT/EMNLP. Recasens and Hovy (2011), Natural
Language Engineering 17. Luo, Pradhan, Recasens and Hovy (2014), ACL: BLANC for mentions that one side lacks. Pradhan et
al. (2014), ACL: the official scorer. Moosavi and Strube (2016), ACL: LEA.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from consilience.arrays import Bool, Float, Int

__all__ = ["CONLL", "METRICS", "Overlap", "Share", "conll", "overlap", "score", "share", "sums"]

METRICS = ("mentions", "muc", "b3", "ceafe", "ceafm", "blanc", "lea")
"""Names of the scores, beside ``conll``, which is made of others."""

CONLL = ("muc", "b3", "ceafe")
"""The scores whose F values CoNLL averages."""


class Share(NamedTuple):
    """Recall, precision and F of any number of units, float64; 0 where there is nothing to recall or to be precise in.

    Parameters
    ----------
    recall, precision, f1 : arrays of one shape, or numbers.
    """

    recall: Any
    precision: Any
    f1: Any


class Overlap(NamedTuple):
    """Which entities have mentions in common, in all units: draws, or documents of draws.

    Parameters
    ----------
    num_units : how many units.
    key_size, response_size : mentions of each entity, those included that the other side lacks.
    key_unit, response_unit : the unit of each entity.
    key, response, common : of pairs of entities that have mentions in common: which entities, and how many mentions.
    listed : how many, a mention counted as often as it stands in the key; ``common`` counts it where it stands last.
    pairs : shape ``(unit, 3)``; pairs of different mentions of a document: of the key, of the response, of those that
        both have.
    """

    num_units: int
    key_size: Int[np.ndarray, " entity"]
    response_size: Int[np.ndarray, " entity"]
    key_unit: Int[np.ndarray, " entity"]
    response_unit: Int[np.ndarray, " entity"]
    key: Int[np.ndarray, " cell"]
    response: Int[np.ndarray, " cell"]
    common: Int[np.ndarray, " cell"]
    listed: Int[np.ndarray, " cell"]
    pairs: Int[np.ndarray, "unit 3"]


def overlap(
    key: Int[np.ndarray, "draws mention"],
    response: Int[np.ndarray, "other_draws mention"],
    document: Int[np.ndarray, " mention"],
    *,
    singletons: bool = True,
    by_document: bool = False,
    twin: Int[np.ndarray, " mention"] | None = None,
) -> Overlap:
    """Count what entities have in common.

    Parameters
    ----------
    key, response : shape ``(draw, mention)``, or ``(1, mention)`` where it is the same in all draws; code of the entity
        of each mention, -1 where this side lacks the mention. Codes are of all documents together.
    document : shape ``(mention,)``; code of its document.
    singletons : False leaves out entities of one mention, on both sides.
    by_document : whether each document of each draw is a unit of its own: those of the first draw, of the second, …
    twin : of a span that stands in the key more than once, the place where it stands last, which is also where the
        response has it; each mention's own place by default.

    Raises
    ------
    ValueError : for unequal numbers of draws, neither of which is one.
    """
    num_draws = max(len(key), len(response))
    if {len(key), len(response)} - {1, num_draws}:
        raise ValueError(f"{len(key)} draws of the key and {len(response)} of the response; give equal numbers, or one")
    key, response = (np.broadcast_to(side, (num_draws, len(document))) for side in (key, response))
    num_documents = int(document.max(initial=-1)) + 1
    unit = np.arange(num_draws)[:, None]
    if by_document:
        unit = unit * num_documents + document
    unit = np.broadcast_to(unit, key.shape)
    num_units = num_draws * (num_documents if by_document else 1)
    key_code, key_size, key_unit = _entities(key, unit, singletons)
    response_code, response_size, response_unit = _entities(response, unit, singletons)
    width = len(response_size) + 1
    cell, common = _cells(key_code, response_code, width)
    listed = common
    if twin is not None:
        single, (cell, listed) = (cell, common), _cells(key_code, response_code[:, twin], width)
        common = np.zeros_like(listed)
        common[np.searchsorted(cell, single[0])] = single[1]
    of_key, of_response = np.divmod(cell, width)
    pairs = np.stack(
        [
            _pairs_within(present, document, num_documents, by_document)
            for present in (key_code >= 0, response_code >= 0, (key_code >= 0) & (response_code >= 0))
        ],
        axis=1,
    )
    return Overlap(
        num_units, key_size, response_size, key_unit, response_unit, of_key, of_response, common, listed, pairs
    )


def sums(found: Overlap, metric: str) -> Float[np.ndarray, "part unit"]:
    """Return the sums that one of `METRICS` is a ratio of; those of several documents are added.

    Raises
    ------
    KeyError : there is no such score.
    """
    return np.array(_SUMS[metric](found), float)


def share(metric: str, parts: Float[np.ndarray, "part ..."]) -> Share:
    """Return recall, precision and F of one of `METRICS` from its sums, whatever the units are, one or more."""
    return _blanc_share(parts) if metric == "blanc" else _share(*parts)


def score(found: Overlap, metric: str) -> Share:
    """Return one of `METRICS` for every unit."""
    return share(metric, sums(found, metric))


def conll(found: Overlap) -> Float[np.ndarray, " unit"]:
    """Return the mean F of MUC, B³ and CEAF-e of every unit."""
    return np.mean([score(found, metric).f1 for metric in CONLL], axis=0)


# Entities -------------------------------------------------------------------------------------------------------------


def _entities(side: np.ndarray, unit: np.ndarray, singletons: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a code for each entity of each draw ``(draw, mention)``, -1 where there is none; sizes; and units."""
    width = int(side.max(initial=-1)) + 1
    draw = np.arange(len(side))[:, None]
    present = side >= 0
    number = np.bincount((draw * width + side)[present], minlength=len(side) * width)
    counted = number > (0 if singletons else 1)
    code = np.where(counted, np.cumsum(counted) - 1, -1)
    of_mention = np.where(present, code[np.where(present, draw * width + side, 0)] if width else -1, -1)
    of_entity = np.zeros(counted.sum(), np.int64)
    of_entity[of_mention[of_mention >= 0]] = unit[of_mention >= 0]
    return of_mention, number[counted], of_entity


def _cells(key: np.ndarray, response: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of entities that have mentions in common, as one code, and how many."""
    both = (key >= 0) & (response >= 0)
    cell, number = np.unique(key[both].astype(np.int64) * width + response[both], return_counts=True)
    return cell, number


def _pairs_within(
    present: Bool[np.ndarray, "draw mention"], document: np.ndarray, num_documents: int, by_document: bool
) -> Int[np.ndarray, " unit"]:
    """Return how many pairs of mentions of one document there are."""
    cell = np.arange(len(present))[:, None] * num_documents + document
    links = _links(np.bincount(cell[present], minlength=len(present) * num_documents))
    return links if by_document else links.reshape(len(present), num_documents).sum(axis=1)


def _links(number: np.ndarray) -> np.ndarray:
    return number * (number - 1) // 2


# Scores: numerator and denominator of recall, the same of precision ---------------------------------------------------

_Sums = tuple[np.ndarray, ...]


def _mentions(found: Overlap) -> _Sums:
    common = _of_cells(found, found.common)
    return common, _of_key(found, found.key_size), common, _of_response(found, found.response_size)


def _muc(found: Overlap) -> _Sums:
    # Entities are cut into parts, one a cell and one a mention that the other side lacks: the sizes cancel.
    common = _of_cells(found, np.maximum(found.common - 1, 0))
    return common, _of_key(found, found.key_size - 1), common, _of_response(found, found.response_size - 1)


def _b3(found: Overlap) -> _Sums:
    product = found.common * found.listed.astype(float)
    return (
        _of_cells(found, product / found.key_size[found.key]), _of_key(found, found.key_size),
        _of_cells(found, product / found.response_size[found.response]), _of_response(found, found.response_size),
    )  # fmt: skip


def _ceafm(found: Overlap) -> _Sums:
    total = _best_alignment(found, found.listed.astype(float))
    return total, _of_key(found, found.key_size), total, _of_response(found, found.response_size)


def _ceafe(found: Overlap) -> _Sums:
    similarity = 2 * found.listed / (found.key_size[found.key] + found.response_size[found.response])
    total = _best_alignment(found, similarity)
    return (
        total, _of_key(found, np.ones(len(found.key_size))), total,
        _of_response(found, np.ones(len(found.response_size))),
    )  # fmt: skip


def _blanc(found: Overlap) -> _Sums:
    """Return the sums of pairs that corefer, and then those of pairs that do not."""
    of_key, of_response = _of_key(found, _links(found.key_size)), _of_response(found, _links(found.response_size))
    common = _of_cells(found, _links(found.common))
    key_pairs, response_pairs, common_pairs = found.pairs.T
    # Of the mentions that both sides have: coreferent pairs of the key, and of the response.
    shared = [
        np.bincount(unit, _links(np.bincount(entity, found.common, len(unit)).astype(int)), found.num_units)
        for unit, entity in ((found.key_unit, found.key), (found.response_unit, found.response))
    ]
    other = common_pairs - shared[0] - shared[1] + common
    return common, of_key, common, of_response, other, key_pairs - of_key, other, response_pairs - of_response


def _blanc_share(parts: np.ndarray) -> Share:
    links, rest = _share(*parts[:4]), _share(*parts[4:])
    # Where the key has no pairs of a kind, the other kind alone decides, as in the official scorer.
    first, second = (parts[1] > 0).astype(float), (parts[5] > 0).astype(float)
    weight = np.maximum(first + second, 1)
    return Share(*((first * one + second * other) / weight for one, other in zip(links, rest, strict=True)))


def _lea(found: Overlap) -> _Sums:
    alone = (found.key_size[found.key] == 1) & (found.response_size[found.response] == 1)

    def resolved(size: np.ndarray) -> np.ndarray:
        links = _links(size)
        return size * np.where(alone, 1.0, _links(found.common) / np.maximum(links, 1))

    return (
        _of_cells(found, resolved(found.key_size[found.key])), _of_key(found, found.key_size),
        _of_cells(found, resolved(found.response_size[found.response])), _of_response(found, found.response_size),
    )  # fmt: skip


_SUMS = {"mentions": _mentions, "muc": _muc, "b3": _b3, "ceafe": _ceafe, "ceafm": _ceafm, "blanc": _blanc, "lea": _lea}


def _of_cells(found: Overlap, of_cell: np.ndarray) -> Float[np.ndarray, " unit"]:
    return np.bincount(found.key_unit[found.key], of_cell, found.num_units).astype(float)


def _of_key(found: Overlap, of_entity: np.ndarray) -> Float[np.ndarray, " unit"]:
    return np.bincount(found.key_unit, of_entity, found.num_units).astype(float)


def _of_response(found: Overlap, of_entity: np.ndarray) -> Float[np.ndarray, " unit"]:
    return np.bincount(found.response_unit, of_entity, found.num_units).astype(float)


def _share(recall_part: Any, recall_whole: Any, precision_part: Any, precision_whole: Any) -> Share:
    recall, precision = _ratio(recall_part, recall_whole), _ratio(precision_part, precision_whole)
    return Share(recall, precision, _ratio(2 * recall * precision, recall + precision))


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=np.asarray(whole) != 0)


# Alignment ------------------------------------------------------------------------------------------------------------


def _best_alignment(found: Overlap, similarity: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " unit"]:
    """Return the largest sum of similarities of entities that are aligned one to one, of each unit.

    Entities without common mentions have similarity zero, so that each connected block of entities is a problem of its
    own. Most blocks have one entity on one side, of which the largest similarity is the best.
    """
    num_keys, num_responses = len(found.key_size), len(found.response_size)
    size = num_keys + num_responses
    graph = sparse.coo_array((np.ones(len(found.common)), (found.key, num_keys + found.response)), shape=(size, size))
    _, block = sparse.csgraph.connected_components(graph, directed=False)
    of_cell = block[found.key]
    keys, responses = np.bincount(block[:num_keys], minlength=size), np.bincount(block[num_keys:], minlength=size)
    best = np.zeros(size)
    np.maximum.at(best, of_cell, similarity)
    several = (keys > 1) & (responses > 1)
    row, column = _places(block[:num_keys])[found.key], _places(block[num_keys:])[found.response]
    for cells in _grouped(of_cell, several):
        one = of_cell[cells[0]]
        table = np.zeros((keys[one], responses[one]))
        table[row[cells], column[cells]] = similarity[cells]
        best[one] = table[optimize.linear_sum_assignment(table, maximize=True)].sum()
    unit_of_block = np.zeros(size, np.int64)
    unit_of_block[of_cell] = found.key_unit[found.key]
    return np.bincount(unit_of_block, best, found.num_units).astype(float)


def _grouped(of_cell: np.ndarray, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the cells of each chosen block."""
    cells = np.flatnonzero(chosen[of_cell])
    cells = cells[np.argsort(of_cell[cells], kind="stable")]
    if len(cells):
        yield from np.split(cells, np.flatnonzero(np.diff(of_cell[cells])) + 1)


def _places(block: Int[np.ndarray, " entity"]) -> Int[np.ndarray, " entity"]:
    """Return the place of each entity among those of its block, from 0."""
    order = np.argsort(block, kind="stable")
    place = np.empty(len(block), np.int64)
    place[order] = np.arange(len(block)) - np.searchsorted(block[order], block[order])
    return place
