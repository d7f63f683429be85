r"""Scores of coreference: how well the entities of a response agree with those of a key.

Mentions stand in a table, one row for each that the key or the response has, with the entity on both sides or -1 where
that side lacks the mention. Either side may be many draws of entities ``(draw, mention)``: all draws are scored at
once, from the numbers :math:`n_{ks}` of mentions that key entity k and response entity s have in common. Entities do
not cross documents, so that the sums below are those over documents, divided at the end, as in the official scorer.

With K an entity of the key, S one of the response and :math:`n` their numbers of mentions in common, recall is

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
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse

from consilience.arrays import Bool, Float, Int

__all__ = ["CONLL", "METRICS", "Overlap", "Share", "conll", "overlap", "score"]

METRICS = ("muc", "b3", "ceafe", "ceafm", "blanc", "lea")
"""Names of the scores, beside ``conll``, which is made of others."""

CONLL = ("muc", "b3", "ceafe")
"""The scores whose F values CoNLL averages."""


class Share(NamedTuple):
    """Recall and precision as the sums that they are made of, float64, each of shape ``(draw,)``.

    Parameters
    ----------
    recall_part, recall_whole : numerator and denominator of recall.
    precision_part, precision_whole : the same of precision.
    f_value : of scores whose F is not that of their recall and precision; else None.
    """

    recall_part: Float[np.ndarray, " draw"]
    recall_whole: Float[np.ndarray, " draw"]
    precision_part: Float[np.ndarray, " draw"]
    precision_whole: Float[np.ndarray, " draw"]
    f_value: Float[np.ndarray, " draw"] | None = None

    @property
    def recall(self) -> Float[np.ndarray, " draw"]:
        """Recall; 0 where there is nothing to recall."""
        return _ratio(self.recall_part, self.recall_whole)

    @property
    def precision(self) -> Float[np.ndarray, " draw"]:
        """Precision; 0 where the response has nothing."""
        return _ratio(self.precision_part, self.precision_whole)

    @property
    def f1(self) -> Float[np.ndarray, " draw"]:
        """Harmonic mean of both; 0 where both are 0."""
        return _harmonic(self.recall, self.precision) if self.f_value is None else self.f_value


class Overlap(NamedTuple):
    """Which entities have mentions in common, in all draws.

    Parameters
    ----------
    num_draws : how many draws.
    key_size, response_size : mentions of each entity, those included that the other side lacks.
    key_draw, response_draw : the draw of each entity.
    key, response, common : of pairs of entities that have mentions in common: which entities, and how many mentions.
    pairs : shape ``(draw, 3)``; pairs of different mentions of a document: of the key, of the response, of those that
        both have.
    """

    num_draws: int
    key_size: Int[np.ndarray, " entity"]
    response_size: Int[np.ndarray, " entity"]
    key_draw: Int[np.ndarray, " entity"]
    response_draw: Int[np.ndarray, " entity"]
    key: Int[np.ndarray, " cell"]
    response: Int[np.ndarray, " cell"]
    common: Int[np.ndarray, " cell"]
    pairs: Int[np.ndarray, "draw 3"]


def overlap(
    key: Int[np.ndarray, "draws mention"],
    response: Int[np.ndarray, "other_draws mention"],
    document: Int[np.ndarray, " mention"],
    *,
    singletons: bool = True,
) -> Overlap:
    """Count what entities have in common.

    Parameters
    ----------
    key, response : shape ``(draw, mention)``, or ``(1, mention)`` where it is the same in all draws; code of the entity
        of each mention, -1 where this side lacks the mention. Codes are of all documents together.
    document : shape ``(mention,)``; code of its document.
    singletons : False leaves out entities of one mention, on both sides.

    Raises
    ------
    ValueError : for unequal numbers of draws, neither of which is one.
    """
    num_draws = max(len(key), len(response))
    if {len(key), len(response)} - {1, num_draws}:
        raise ValueError(f"{len(key)} draws of the key and {len(response)} of the response; give equal numbers, or one")
    key, response = (np.broadcast_to(side, (num_draws, len(document))) for side in (key, response))
    key_code, key_size, key_draw = _entities(key, singletons)
    response_code, response_size, response_draw = _entities(response, singletons)
    both = (key_code >= 0) & (response_code >= 0)
    cell, count = np.unique(
        key_code[both].astype(np.int64) * (len(response_size) + 1) + response_code[both], return_counts=True
    )
    of_key, of_response = np.divmod(cell, len(response_size) + 1)
    present = (key_code >= 0, response_code >= 0, both)
    pairs = np.stack([_pairs_within(side, document) for side in present], axis=1)
    return Overlap(num_draws, key_size, response_size, key_draw, response_draw, of_key, of_response, count, pairs)


def score(found: Overlap, metric: str) -> Share:
    """Return one of `METRICS` for every draw.

    Raises
    ------
    KeyError : there is no such score.
    """
    return _SCORES[metric](found)


def conll(found: Overlap) -> Float[np.ndarray, " draw"]:
    """Return the mean F of MUC, B³ and CEAF-e of every draw."""
    return np.mean([score(found, metric).f1 for metric in CONLL], axis=0)


# Entities -------------------------------------------------------------------------------------------------------------


def _entities(side: np.ndarray, singletons: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a code for each entity of each draw ``(draw, mention)``, -1 where there is none; sizes; and draws."""
    width = int(side.max(initial=-1)) + 1
    draw = np.arange(len(side))[:, None]
    present = side >= 0
    number = np.bincount((draw * width + side)[present], minlength=len(side) * width)
    counted = number > (0 if singletons else 1)
    code = np.where(counted, np.cumsum(counted) - 1, -1)
    of_mention = np.where(present, code[np.where(present, draw * width + side, 0)] if width else -1, -1)
    return of_mention, number[counted], np.flatnonzero(counted) // max(width, 1)


def _pairs_within(present: Bool[np.ndarray, "draw mention"], document: np.ndarray) -> Int[np.ndarray, " draw"]:
    """Return how many pairs of mentions of one document there are."""
    number = int(document.max(initial=-1)) + 1
    cell = np.arange(len(present))[:, None] * number + document
    counts = np.bincount(cell[present], minlength=len(present) * number).reshape(len(present), number)
    return _links(counts).sum(axis=1)


def _links(number: np.ndarray) -> np.ndarray:
    return number * (number - 1) // 2


# Scores ---------------------------------------------------------------------------------------------------------------


def _muc(found: Overlap) -> Share:
    # Entities are cut into parts, one a cell and one a mention that the other side lacks: the sizes cancel.
    common = _by_draw(found, found.common - 1)
    return Share(common, _of_key(found, found.key_size - 1), common, _of_response(found, found.response_size - 1))


def _b3(found: Overlap) -> Share:
    square = found.common.astype(float) ** 2
    return Share(
        _by_draw(found, square / found.key_size[found.key]), _of_key(found, found.key_size),
        _by_draw(found, square / found.response_size[found.response]), _of_response(found, found.response_size),
    )  # fmt: skip


def _ceafm(found: Overlap) -> Share:
    total = _best_alignment(found, found.common.astype(float))
    return Share(total, _of_key(found, found.key_size), total, _of_response(found, found.response_size))


def _ceafe(found: Overlap) -> Share:
    similarity = 2 * found.common / (found.key_size[found.key] + found.response_size[found.response])
    total = _best_alignment(found, similarity)
    return Share(
        total, _of_key(found, np.ones(len(found.key_size))), total,
        _of_response(found, np.ones(len(found.response_size))),
    )  # fmt: skip


def _blanc(found: Overlap) -> Share:
    of_key, of_response = _of_key(found, _links(found.key_size)), _of_response(found, _links(found.response_size))
    common = _by_draw(found, _links(found.common))
    key_pairs, response_pairs, common_pairs = found.pairs.T.astype(float)
    # Of the mentions that both sides have: coreferent pairs of the key, and of the response.
    shared = [
        np.bincount(draw, _links(np.bincount(entity, found.common, len(draw))), found.num_draws)
        for draw, entity in ((found.key_draw, found.key), (found.response_draw, found.response))
    ]
    other = common_pairs - shared[0] - shared[1] + common
    links = Share(common, of_key, common, of_response)
    rest = Share(other, key_pairs - of_key, other, response_pairs - of_response)
    # Where the key has no pairs of a kind, the other kind alone decides, as in the official scorer.
    first, second = (of_key > 0).astype(float), (rest.recall_whole > 0).astype(float)
    weight = np.maximum(first + second, 1)
    recall, precision, f_value = (
        (first * getattr(links, name) + second * getattr(rest, name)) / weight for name in ("recall", "precision", "f1")
    )
    whole = np.ones(found.num_draws)
    return Share(recall, whole, precision, whole, f_value)


def _lea(found: Overlap) -> Share:
    alone = (found.key_size[found.key] == 1) & (found.response_size[found.response] == 1)

    def resolved(size: np.ndarray) -> np.ndarray:
        links = _links(size)
        return size * np.where(alone, 1.0, _links(found.common) / np.maximum(links, 1))

    return Share(
        _by_draw(found, resolved(found.key_size[found.key])), _of_key(found, found.key_size),
        _by_draw(found, resolved(found.response_size[found.response])), _of_response(found, found.response_size),
    )  # fmt: skip


_SCORES = {"muc": _muc, "b3": _b3, "ceafe": _ceafe, "ceafm": _ceafm, "blanc": _blanc, "lea": _lea}


def _by_draw(found: Overlap, of_cell: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.key_draw[found.key], of_cell, found.num_draws).astype(float)


def _of_key(found: Overlap, of_entity: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.key_draw, of_entity, found.num_draws).astype(float)


def _of_response(found: Overlap, of_entity: np.ndarray) -> Float[np.ndarray, " draw"]:
    return np.bincount(found.response_draw, of_entity, found.num_draws).astype(float)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=np.asarray(whole) != 0)


def _harmonic(recall: np.ndarray, precision: np.ndarray) -> np.ndarray:
    return _ratio(2 * recall * precision, recall + precision)


# Alignment ------------------------------------------------------------------------------------------------------------


def _best_alignment(found: Overlap, similarity: Float[np.ndarray, " cell"]) -> Float[np.ndarray, " draw"]:
    """Return the largest sum of similarities of entities that are aligned one to one, of each draw.

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
    for cells in _grouped(of_cell, several):
        best[of_cell[cells[0]]] = _assigned(found.key[cells], found.response[cells], similarity[cells])
    draw_of_block = np.zeros(size, np.int64)
    draw_of_block[of_cell] = found.key_draw[found.key]
    return np.bincount(draw_of_block, best, found.num_draws).astype(float)


def _grouped(of_cell: np.ndarray, chosen: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the cells of each chosen block."""
    cells = np.flatnonzero(chosen[of_cell])
    cells = cells[np.argsort(of_cell[cells], kind="stable")]
    if len(cells):
        yield from np.split(cells, np.flatnonzero(np.diff(of_cell[cells])) + 1)


def _assigned(key: np.ndarray, response: np.ndarray, similarity: np.ndarray) -> float:
    rows, row = np.unique(key, return_inverse=True)
    columns, column = np.unique(response, return_inverse=True)
    table = np.zeros((len(rows), len(columns)))
    table[row, column] = similarity
    return float(table[optimize.linear_sum_assignment(table, maximize=True)].sum())
