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

Against a crowd each draw of the posterior is a key of its own: the score is the mean over draws, and its interval says
what the annotations leave open. The entities of a draw are scored as a whole, so that a link that two draws disagree on
counts with all that it connects. Documents are what a comparison of systems weights.

References
----------
Vilain et al. (1995), MUC-6. Bagga and Baldwin (1998), LREC. Luo (2005), HLT/EMNLP. Recasens and Hovy (2011), Natural
Language Engineering 17. Luo, Pradhan, Recasens and Hovy (2014), ACL: BLANC for mentions that one side lacks. Pradhan et
al. (2014), ACL: the official scorer. Moosavi and Strube (2016), ACL: LEA.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from consilience.arrays import Float, Int
from consilience.data.conll import Chains, as_chains
from consilience.data.mentions import Mentions
from consilience.errors import UnsupportedRequest
from consilience.evaluation.coreference_matching import Matching, match, of_rows
from consilience.evaluation.engine import Scoring, Sums
from consilience.evaluation.overlap import Overlap, b3, of_cells, of_key, of_response, overlap
from consilience.evaluation.registry import METRICS, Form, metric, scores
from consilience.models.truth import CHAINS
from consilience.models.truth.chains import ChainTruth, nearest_links
from consilience.models.truth.truth import Clusters

DocumentSums = dict[str, np.ndarray]
"""For each score what its recall and precision are ratios of, ``(part, …)``."""

BASES = ("mentions", "muc", "b3", "ceafe", "ceafm", "blanc", "lea")
"""Scores of which recall, precision and F are told, beside those of mentions that refer to nothing."""

CONLL = ("muc", "b3", "ceafe")
"""The scores whose F values CoNLL averages."""

DOCUMENT_CORRELATION = 0.11
"""Of the errors of scores of documents. A fit is wrong of all documents together, by what its model leaves out: of 20
crowds simulated on LitBank this is the least, in steps of 0.01, by which 18 of the 90 % intervals of all documents held
(``python -m benchmarks chains``, seeds 0 to 4; of seeds 5 to 9 then 19 of 20 did)."""

_ASSUMED = (
    "Intervals of several documents assume that errors of their scores are correlated "
    f"({DOCUMENT_CORRELATION:g}, as in simulated crowds)."
)


class Share(NamedTuple):
    """Recall, precision and F of any number of units, float64; 0 where there is nothing to recall or to be precise in.

    Parameters
    ----------
    recall, precision, f1 : arrays of one shape, or numbers.
    """

    recall: Any
    precision: Any
    f1: Any


def sums(found: Overlap, metric: str) -> Float[np.ndarray, "part unit"]:
    """Return the sums that one of `BASES` is a ratio of; those of several documents are added.

    Raises
    ------
    KeyError : there is no such score.
    """
    return np.array(_SUMS[metric](found), float)


def share(metric: str, parts: Float[np.ndarray, "part ..."]) -> Share:
    """Return recall, precision and F of one of `BASES` from its sums, whatever the units are, one or more."""
    return _blanc_share(parts) if metric == "blanc" else _share(*parts)


def score(found: Overlap, metric: str) -> Share:
    """Return one of `BASES` for every unit."""
    return share(metric, sums(found, metric))


def conll(found: Overlap) -> Float[np.ndarray, " unit"]:
    """Return the mean F of MUC, B³ and CEAF-e of every unit."""
    return np.mean([score(found, metric).f1 for metric in CONLL], axis=0)


def _links(number: np.ndarray) -> np.ndarray:
    return number * (number - 1) // 2


# Scores: numerator and denominator of recall, the same of precision ---------------------------------------------------

_Sums = tuple[np.ndarray, ...]


def _mentions(found: Overlap) -> _Sums:
    common = of_cells(found, found.common)
    return common, of_key(found, found.key_size), common, of_response(found, found.response_size)


def _muc(found: Overlap) -> _Sums:
    # Entities are cut into parts, one a cell and one a mention that the other side lacks: the sizes cancel.
    common = of_cells(found, np.maximum(found.common - 1, 0))
    return common, of_key(found, found.key_size - 1), common, of_response(found, found.response_size - 1)


def _ceafm(found: Overlap) -> _Sums:
    total = _best_alignment(found, found.listed.astype(float))
    return total, of_key(found, found.key_size), total, of_response(found, found.response_size)


def _ceafe(found: Overlap) -> _Sums:
    similarity = 2 * found.listed / (found.key_size[found.key] + found.response_size[found.response])
    total = _best_alignment(found, similarity)
    return (
        total, of_key(found, np.ones(len(found.key_size))), total,
        of_response(found, np.ones(len(found.response_size))),
    )  # fmt: skip


def _blanc(found: Overlap) -> _Sums:
    """Return the sums of pairs that corefer, and then those of pairs that do not."""
    key_links = of_key(found, _links(found.key_size))
    response_links = of_response(found, _links(found.response_size))
    common = of_cells(found, _links(found.common))
    key_pairs, response_pairs, common_pairs = found.pairs.T
    # Of the mentions that both sides have: coreferent pairs of the key, and of the response.
    shared = [
        np.bincount(unit, _links(np.bincount(entity, found.common, len(unit)).astype(int)), found.num_units)
        for unit, entity in ((found.key_unit, found.key), (found.response_unit, found.response))
    ]
    other = common_pairs - shared[0] - shared[1] + common
    key_rest, response_rest = key_pairs - key_links, response_pairs - response_links
    sums = np.stack([common, key_links, common, response_links, other, key_rest, other, response_rest]).astype(float)
    if found.twin is not None:
        _without_repeats(sums, found, found.twin)
    return tuple(sums)


def _without_repeats(sums: Float[np.ndarray, "part unit"], found: Overlap, twin: Int[np.ndarray, " row"]) -> None:
    """Count pairs of spans in the place of pairs of rows, in documents in which the key repeats a span.

    In the official scorer a pair that the key has twice is one pair; it may be one that corefers and one that does not,
    and a span of two entities does not corefer with itself.
    """
    num_documents = found.num_units // len(found.key_code) if found.by_document else 0
    for document in np.unique(found.document[twin != np.arange(len(twin))]):
        rows = np.flatnonzero(found.document == document)
        spans, of_row = np.unique(twin[rows], return_inverse=True)
        for draw, (key, response) in enumerate(zip(found.key_code, found.response_code, strict=True)):
            unit = draw * num_documents + document if found.by_document else draw
            sums[:, unit] += _pair_sums(key[rows], response[spans], of_row)
            sums[:, unit] -= _pair_sums(key[rows], response[rows], np.arange(len(rows)))


def _pair_sums(key: np.ndarray, response: np.ndarray, of_row: np.ndarray) -> Float[np.ndarray, " part"]:
    """Return the sums of BLANC of one document: entities of rows of the key, and of spans in the response."""
    entities, there = np.unique(key, return_inverse=True)[0], key >= 0
    times = np.zeros((len(response), len(entities)), int)
    np.add.at(times, (of_row[there], np.searchsorted(entities, key[there])), 1)
    own = (times > 0).astype(int)
    shared, number = own @ own.T, own.sum(axis=1)
    together, apart = shared > 0, number[:, None] * number > shared
    np.fill_diagonal(together, (times > 1).any(axis=1))
    both, same = np.outer(response >= 0, response >= 0), response[:, None] == response
    np.fill_diagonal(both, False)
    answers = both & same, both & ~same
    parts = [
        [(of_key & of_response).sum(), of_key.sum()] * 2
        for of_key, of_response in zip((np.triu(together), np.triu(apart)), answers, strict=True)
    ]
    for part, answer in zip(parts, answers, strict=True):
        part[3] = np.triu(answer).sum()
    return np.array(parts, float).ravel()


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
        of_cells(found, resolved(found.key_size[found.key])), of_key(found, found.key_size),
        of_cells(found, resolved(found.response_size[found.response])), of_response(found, found.response_size),
    )  # fmt: skip


_SUMS = {"mentions": _mentions, "muc": _muc, "b3": b3, "ceafe": _ceafe, "ceafm": _ceafm, "blanc": _blanc, "lea": _lea}


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


# Names ----------------------------------------------------------------------------------------------------------------

WRITTEN = {
    "conll": "CoNLL", "muc": "MUC", "b3": "B³", "ceafe": "CEAF-e", "ceafm": "CEAF-m", "blanc": "BLANC", "lea": "LEA",
}  # fmt: skip
"""How the names of scores are written for people."""

_LINES = {name: f"F of {WRITTEN.get(name, name)}" for name in BASES} | {
    "non-referring": "F of mentions that refer to nothing"
}


def _register() -> None:
    metric("conll", kind=CHAINS, line="mean F of MUC, B³ and CEAF-e", bases=CONLL)(_mean_f)
    for base, line in _LINES.items():
        metric(base, kind=CHAINS, line=f"{line}; also with -recall or -precision behind", bases=(base,))(
            functools.partial(_one_number, base, "f1")
        )
        for of in ("recall", "precision"):
            metric(f"{base}-{of}", kind=CHAINS, line="", listed=False, bases=(base,))(
                functools.partial(_one_number, base, of)
            )


def _mean_f(of_sums: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.mean([share(base, of_sums[base]).f1 for base in CONLL], axis=0)


def _one_number(base: str, of: str, of_sums: Mapping[str, np.ndarray]) -> np.ndarray:
    return getattr(share(base, of_sums[base]), of)


_register()


def _form(name: str) -> Form:
    return METRICS[CHAINS.name].form_of(name)[0]


def bases_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the scores whose sums are needed.

    Raises
    ------
    UnknownName : the text lists the names.
    """
    return tuple(dict.fromkeys(base for name in names for base in _form(name).more["bases"]))


def value_of(name: str, of_sums: Mapping[str, np.ndarray]) -> Float[np.ndarray, "*units"]:
    """Return the score of a name from sums ``(part, …)``."""
    return _form(name).function(of_sums)


def title_of(name: str, *, singletons: bool) -> str:
    """Return what a score is called in words."""
    base = name.removesuffix("-recall").removesuffix("-precision")
    written = WRITTEN.get(base, base)
    of_all = _LINES.get(base, f"{written}, {_form(base).line}")
    title = of_all if base == name else f"{written} {name.removeprefix(f'{base}-')}"
    return title if singletons else f"{title}, singletons excluded"


# Scoring --------------------------------------------------------------------------------------------------------------


@scores(CHAINS)
def _scoring(
    truth: ChainTruth, systems: Sequence[Any], metrics: Sequence[Any], *, singletons: bool = True, **settings: Any
) -> Scoring:
    """Score responses against the chains of each draw, document by document.

    Parameters
    ----------
    truth : of mentions with spans.
    systems : responses.
    metrics : names of scores.
    singletons : whether entities of one mention count.

    Raises
    ------
    UnsupportedRequest : the mentions have no spans.
    InputError : a response has no document in common with the mentions.
    """
    names = [str(getattr(one, "name", one)) for one in metrics]
    bases = bases_of(names)
    responses = [as_chains(one) for one in systems]
    # `from_spans` sorts the mentions: the codes of entities say where each of them went.
    key = spans_of(truth.data, np.arange(truth.num_units))
    rows, order = [match(key, response) for response in responses], np.asarray(key.entity)
    place: dict[str, slice] = {}
    for base in bases:
        start = sum(_num_parts(one) for one in place)
        place[base] = slice(start, start + _num_parts(base))

    def summed(entity: np.ndarray) -> np.ndarray:
        found = [
            sums_of_documents(entity[:, order], response, row, key.num_documents, bases, singletons=singletons)
            for response, row in zip(responses, rows, strict=True)
        ]
        of_systems = np.stack([np.concatenate([own[base] for base in bases]) for own in found])
        return np.swapaxes(of_systems, 2, 3)  # system, part, document, draw

    def blocks() -> Iterator[Sums]:
        for block in truth.blocks(Clusters()):
            yield Sums(slice(0, key.num_documents), block.draws, summed(block.values))

    def value(name: str) -> Callable[[np.ndarray, Any], np.ndarray]:
        return lambda parts, number: value_of(name, {base: parts[own] for base, own in place.items()})

    return Scoring(
        blocks=blocks, values={name: value(name) for name in names},
        title=lambda name, system=None, draws=None: title_of(name, singletons=singletons), unit="document",
        num_units=key.num_documents, num_draws=truth.num_draws, joint=True,
        standard=lambda: summed(truth.estimate()[None])[..., 0], place=np.arange(key.num_documents),
        rows=key.num_documents, ids=key.documents, row="document", pseudo=_with_score,
        **_wrong_together(np.asarray(truth.data.document)),
    )  # fmt: skip


def _wrong_together(document: Int[np.ndarray, " mention"]) -> dict[str, Any]:
    """Return how much wider correlated errors of documents make an interval, which count by their mentions."""
    mentions = np.bincount(document)
    number = mentions.sum() ** 2 / np.square(mentions).sum()
    if number == 1:
        return {}
    return {"widening": float(np.sqrt(1 + DOCUMENT_CORRELATION * (number - 1))), "assumes": (_ASSUMED,)}


def _with_score(mean: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return the sums of a document of mean size with recall and precision alike; numerators come before theirs."""
    whole = np.repeat(mean[:, 1::2, None], 2, axis=1) * np.ones(score.shape[-1])
    whole[:, ::2] *= score[:, None]
    return whole


def _num_parts(base: str) -> int:
    return 8 if base == "blanc" else 4


def spans_of(data: Mentions, entity: Int[np.ndarray, " mention"]) -> Chains:
    """Return the entities of mentions with their spans.

    Raises
    ------
    UnsupportedRequest : the mentions have no spans.
    """
    if data.start is None:
        raise UnsupportedRequest(
            "the mentions have no places in their documents; give the columns document_id, start and end (first and "
            "last token of the mention, counted from 0 in the document) and fit again"
        )
    return Chains.from_spans(data.document, data.start, data.end, entity, documents=data.documents)


def said_links(data: Mentions, response: Chains) -> Int[np.ndarray, " mention"]:
    """Return what a response says of each mention: the nearest earlier one of its entity, -1 first, -2 nothing.

    Raises
    ------
    UnsupportedRequest : the mentions have no spans.
    """
    key = spans_of(data, np.arange(data.num_mentions))
    rows = match(key, response)
    there = (rows.key >= 0) & (rows.response >= 0)
    entity = np.full(data.num_mentions, -1)
    # `from_spans` sorts the mentions, and their codes are in the place of entities.
    entity[np.asarray(key.entity)[rows.key[there]]] = np.asarray(response.entity)[rows.response[there]]
    order, link = np.asarray(key.entity), np.empty(data.num_mentions, int)
    found = nearest_links(entity[order])
    link[order] = np.where(found < 0, found, order[found])
    return link


def sums_of_documents(
    entity: np.ndarray, response: Chains, rows: Matching, num_documents: int, metrics: tuple[str, ...], *,
    singletons: bool,
) -> DocumentSums:  # fmt: skip
    """Return the sums of scores for each draw of the key's entities and each document, ``(part, draw, document)``.

    Parameters
    ----------
    entity : shape ``(draw, mention)``; entities of the key's mentions, -1 where one refers to nothing.
    response, rows : the response, and which of its mentions are the key's.
    num_documents : of the key.
    metrics : names of scores.
    """
    sides = of_rows(entity, rows.key), of_rows(np.asarray(response.entity)[None], rows.response)
    # A row without mentions in the last document keeps that document's place.
    document = np.append(rows.document, num_documents - 1)
    of_key, of_response = (np.pad(side, ((0, 0), (0, 1)), constant_values=-1) for side in sides)
    twin = None if rows.twin is None else np.append(rows.twin, len(rows.twin))
    found = overlap(
        of_key, of_response, document, singletons=singletons, by_document=True, num_documents=num_documents, twin=twin
    )
    result = {metric: sums(found, metric) for metric in metrics if metric != "non-referring"}
    if "non-referring" in metrics:
        one, other = ((place >= 0) & (side < 0) for place, side in zip((rows.key, rows.response), sides, strict=True))
        both, one, other = (
            _counts(chosen, rows.document, num_documents) for chosen in (one & other, one, other | np.zeros_like(one))
        )
        result["non-referring"] = np.stack([both, one, both, other])
    shape = (len(entity), num_documents)
    return {metric: values.reshape(len(values), *shape) for metric, values in result.items()}


def _counts(chosen: np.ndarray, document: np.ndarray, num_documents: int) -> Float[np.ndarray, " unit"]:
    cell = np.arange(len(chosen))[:, None] * num_documents + document
    return np.bincount(cell[chosen], minlength=len(chosen) * num_documents).astype(float)
