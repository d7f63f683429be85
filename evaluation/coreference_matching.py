"""Which mentions of a key are those of a response: the ones with the same first and last token in the same document.

What is done with a span that stands in several entities is what the official scorer does. The key keeps them all, and
the response has the mention where it stands last. Of the response, where the key has the span, the first counts and the
others are left out; where the key lacks it all stay. First and last are in the order of the entities, which is that of
their first mentions, or of their first brackets where files were read. A span that also stands there as referring to
nothing is matched as an entity's.

One thing is not as there: the official BLANC counts a pair of mentions that it meets twice once; here it is counted as
often as it stands there.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from consilience.arrays import Bool, Int
from consilience.data.conll import Chains
from consilience.data.conll_text import match_documents
from consilience.errors import InputError, InputProblem, InputWarning


class Matching(NamedTuple):
    """Mentions that the key or the response has, one row each.

    Parameters
    ----------
    key, response : shape ``(row,)``; the mention of either side, -1 where it lacks the mention.
    document : shape ``(row,)``; code in the key's ``documents``.
    twin : shape ``(row,)``; the row where a span that the key has more than once stands last; None where there is no
        such span.
    """

    key: Int[np.ndarray, " row"]
    response: Int[np.ndarray, " row"]
    document: Int[np.ndarray, " row"]
    twin: Int[np.ndarray, " row"] | None


def match(key: Chains, response: Chains) -> Matching:
    """Match the mentions of a response to those of a key.

    Documents of the response that the key lacks are left out, as in the official scorer; in documents that the response
    lacks it has no mentions. Both are said in a warning, as are repeated spans.

    Raises
    ------
    InputError : no document of the response is one of the key, or an entity has mentions in several documents.
    """
    _require_entities_of_one_document(key, "key")
    _require_entities_of_one_document(response, "response")
    document = _documents(key, response)[np.asarray(response.document)]
    length = 1 + max(int(np.max(side.end, initial=0)) for side in (key, response))

    def span(chains: Chains, of_document: np.ndarray) -> np.ndarray:
        # In the order of the mentions, so that there is little to sort.
        return (of_document.astype(np.int64) * length + chains.start) * length + (length - 1 - chains.end)

    key_span, response_span = span(key, np.asarray(key.document)), span(response, document)
    # The first of the response counts, and the last of the key has it.
    by_place = _by_span(key, key_span, np.asarray(key.entity) >= 0)
    last = np.diff(key_span[by_place], append=-1) != 0
    order = _by_span(response, response_span, np.asarray(response.entity) < 0)
    order = order[document[order] >= 0]
    first = np.diff(response_span[order], prepend=-1) != 0
    place, in_key = _find(response_span[order], key_span[by_place[last]])
    first |= ~in_key
    _say_repeated(int(np.sum(~first)), "response", "the first of its entities counts")
    _say_repeated(int(np.sum(~last)), "key", "they are kept, and the last of its entities has the response's")
    of_key = np.full(key.num_mentions, -1)
    of_key[by_place[last][place[first & in_key]]] = order[first & in_key]
    missed = np.sort(order[first & ~in_key])
    twin = None
    if not last.all():
        rows = np.arange(key.num_mentions + len(missed))
        group = np.cumsum(last) - last
        rows[by_place] = by_place[last][group]
        twin = rows
    return Matching(
        key=np.concatenate([np.arange(key.num_mentions), np.full(len(missed), -1)]),
        response=np.concatenate([of_key, missed]),
        document=np.concatenate([np.asarray(key.document), document[missed]]),
        twin=twin,
    )


def of_rows(entity: Int[np.ndarray, "draw mention"], row: Int[np.ndarray, " row"]) -> Int[np.ndarray, "draw row"]:
    """Return the entity of each row, -1 where this side lacks the mention or it refers to nothing."""
    if not entity.shape[1]:
        return np.full((len(entity), len(row)), -1)
    return np.where(row >= 0, entity[:, row], -1)


def _by_span(
    chains: Chains, span: Int[np.ndarray, " mention"], later: Bool[np.ndarray, " mention"]
) -> Int[np.ndarray, " mention"]:
    """Return the order of the spans; of equal ones those marked as later come last, else those of later entities."""
    order = np.argsort(span, kind="stable")
    if (np.diff(span[order]) != 0).all():
        return order
    return np.lexsort((_place(chains), later, span))


def _find(span: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each span stands among known ones, which are sorted, and whether it is there."""
    if not len(known):
        return np.zeros(len(span), np.int64), np.zeros(len(span), bool)
    place = np.minimum(np.searchsorted(known, span), len(known) - 1)
    return place, known[place] == span


def _documents(key: Chains, response: Chains) -> Int[np.ndarray, " document"]:
    """Return the key's code of each document of the response, -1 where it has none."""
    codes = np.array(match_documents(response.documents, key.documents), np.int64)
    if not np.any(codes >= 0):
        names = f"{', '.join(map(repr, response.documents[:3]))} and not {', '.join(map(repr, key.documents[:3]))}"
        remedy = "give files of the same documents; the names stand after '#begin document' or '# newdoc id ='"
        raise InputError(InputProblem(f"no document of the response is in the key: it has {names}", remedy))
    unknown, absent = int(np.sum(codes < 0)), key.num_documents - int(np.sum(codes >= 0))
    if unknown:
        _warn(f"{unknown:,} documents of the response are not in the key and were left out")
    if absent:
        _warn(f"{absent:,} documents of the key are not in the response, which is scored as if it found nothing there")
    return codes


def _place(chains: Chains) -> Int[np.ndarray, " mention"]:
    """Return the place of each mention's entity in the order of their first mentions; it means nothing for none."""
    entity = np.asarray(chains.entity)
    # Of mentions that begin together, those of one token come first, as the official scorer reads them.
    longer = np.asarray(chains.end) > np.asarray(chains.start)
    order = np.lexsort((entity, longer, chains.start, chains.document))
    named = order[entity[order] >= 0]
    place = np.full(chains.num_entities + 1, chains.num_entities)
    place[entity[named[::-1]]] = np.arange(len(named))[::-1]
    return place[entity]


def _require_entities_of_one_document(chains: Chains, side: str) -> None:
    entity, document = np.asarray(chains.entity), np.asarray(chains.document)
    entity, document = entity[entity >= 0], document[entity >= 0]
    of_entity = np.zeros(chains.num_entities, np.int64)
    of_entity[entity] = document
    several = len(np.unique(entity[of_entity[entity] != document]))
    if several:
        remedy = "number the entities of each document apart from those of others"
        message = f"{several:,} entities of the {side} have mentions in several documents"
        raise InputError(InputProblem(message, remedy))


def _say_repeated(number: int, side: str, rule: str) -> None:
    if number:
        _warn(f"{number:,} mentions of the {side} repeat the span of another one; {rule}, as in the official scorer")


def _warn(text: str) -> None:
    warnings.warn(text, InputWarning, stacklevel=4)
