"""Mentions and their partition as long tables: what the kernel reads, and what it changes.

A mention stands in the partition, or is said not to refer (NR) or to be a property (PR). In the partition it has a
*link*: the nearest earlier mention of its entity, or none where it is the first. Links are different for different
mentions, so that chains of links are exactly partitions. Links and labels have the same codes: a mention, or `NEW`,
`NOTHING`, `PROPERTY` without a mention and ``PROPERTY - 1 - m`` of mention m.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.models.truth.chains import NEW, NOTHING, follow_links

PROPERTY = -3


class Texts(NamedTuple):
    """Mentions and what was said of them; candidates are the distinct labels of a mention, the latest first.

    Parameters
    ----------
    order : int64, shape ``(mention,)``; the mention of the data at each place. All else counts mentions by document, and
        in it by where they begin, the longer first; where the data have no places, as they come.
    first : int64, shape ``(document + 1,)``; where the mentions of each document begin.
    document, position : int64, shape ``(mention,)``; the document, and the number of mentions before it there.
    begin : int64, shape ``(mention + 1,)``; where the candidates of each mention begin.
    target, votes : int64, shape ``(candidate,)``; code of the label, and how often it was given.
    reach : int64, shape ``(mention,)``; the earliest mention that a label of this one points to, itself where none.
    first_namer : int64, shape ``(mention + 1,)``; where those begin that have this mention as a candidate.
    namer : int64, shape ``(naming,)``; these mentions.
    fixed : bool, shape ``(mention,)``; whether the link is known.
    unreferring : whether any label is NR.
    row_candidate, row_annotator : int64, shape ``(annotation,)``.
    """

    order: Any
    first: Any
    document: Any
    position: Any
    begin: Any
    target: Any
    votes: Any
    reach: Any
    first_namer: Any
    namer: Any
    fixed: Any
    unreferring: bool
    row_candidate: Any
    row_annotator: Any


class State(NamedTuple):
    """Partitions of all documents on all rungs, each array of shape ``(rung, mention)``, int64.

    Parameters
    ----------
    link : see above.
    following : the next mention of the entity, -1 where there is none.
    entity : the first mention of the entity; the mention itself where it is in none.
    ordinal : how many mentions of the entity are earlier.
    size : of the entity, at its first mention.
    entities : shape ``(rung, document)``; how many there are.
    """

    link: Any
    following: Any
    entity: Any
    ordinal: Any
    size: Any
    entities: Any


def label_code(type_: Int[np.ndarray, " label"], antecedent: Int[np.ndarray, " label"]) -> Int[np.ndarray, " label"]:
    """Return the code of labels, from their types and the mentions that they point to."""
    new, nothing, of = (np.asarray(type_) == MENTION_TYPES.index(name) for name in ("DN", "NR", "PR"))
    own = np.asarray(antecedent, np.int64)
    return np.select([new, nothing, of], [NEW, NOTHING, PROPERTY - 1 - own], own)


def texts_of(data: Mentions, gold: str) -> Texts:
    """Return the tables of mentions; with ``gold="use"`` links of mentions with a gold label are known."""
    number = data.num_mentions
    places = () if data.start is None else (-np.asarray(data.end), np.asarray(data.start))
    order = np.lexsort((np.arange(number), *places, np.asarray(data.document)))
    document, place = np.asarray(data.document, np.int64)[order], np.argsort(order)
    first = np.searchsorted(document, np.arange(data.num_documents + 1))
    mention, code = place[data.mention], label_code(data.type, _placed(data.antecedent, place))
    width = 2 * number + 4
    key, row_candidate, votes = np.unique(mention * width + number - code, return_inverse=True, return_counts=True)
    of, target = key // width, number - key % width
    earlier = (target >= 0) & (target < of)
    reach = np.arange(number)
    np.minimum.at(reach, of[earlier], target[earlier])
    by_target = np.flatnonzero(target >= 0)[np.argsort(target[target >= 0], kind="stable")]
    return Texts(
        order, first, document, np.arange(number) - first[document], np.searchsorted(of, np.arange(number + 1)),
        target, votes, reach, np.searchsorted(target[by_target], np.arange(number + 1)), of[by_target],
        np.asarray(data.gold_type)[order] >= 0 if gold == "use" else np.zeros(number, bool),
        bool((target == NOTHING).any()), row_candidate.ravel(), np.asarray(data.annotator, np.int64),
    )  # fmt: skip


def _placed(antecedent: Int[np.ndarray, " label"], place: Int[np.ndarray, " mention"]) -> Int[np.ndarray, " label"]:
    antecedent = np.asarray(antecedent, np.int64)
    return np.where(antecedent >= 0, place[antecedent], antecedent)


def known_links(data: Mentions, texts: Texts) -> Int[np.ndarray, " mention"]:
    """Return the links that gold labels make, `NEW` where there is none.

    A gold label may point to any mention of its entity: links go to the nearest that gold labels connect.
    """
    place = np.argsort(texts.order)
    code = label_code(np.asarray(data.gold_type)[texts.order], _placed(data.gold_antecedent, place)[texts.order])
    entity = follow_links(np.where(texts.fixed & (code < NEW), NOTHING, np.where(texts.fixed, code, NEW))[None])[0]
    latest: dict[int, int] = {}
    link = np.where(texts.fixed & (code < NEW), code, NEW)
    for mention in np.flatnonzero(entity >= 0).tolist():
        link[mention] = latest.get(entity[mention], NEW)
        latest[entity[mention]] = mention
    return link


def linked(link: Int[np.ndarray, "rung mention"], document: Int[np.ndarray, " mention"]) -> State:
    """Return the state that links make.

    Parameters
    ----------
    link : to an earlier mention that no other links to, or a code below 0.
    """
    link = np.array(link, np.int64)
    following, entity = np.full(link.shape, -1), np.tile(np.arange(link.shape[1]), (len(link), 1))
    rung, old = np.nonzero(link >= 0)
    following[rung, link[rung, old]] = old
    ordinal = np.zeros_like(link)
    for number in range(link.shape[1]):                     # links go back
        own = np.flatnonzero(link[:, number] >= 0)
        before = link[own, number]
        entity[own, number], ordinal[own, number] = entity[own, before], ordinal[own, before] + 1
    size = np.zeros_like(link)
    np.add.at(size, (np.arange(len(link))[:, None], entity), 1)
    size[link < NEW] = 0
    entities = np.zeros((len(link), int(document.max(initial=-1)) + 1), np.int64)
    np.add.at(entities, (np.arange(len(link))[:, None], document), link == NEW)
    return State(link, following, entity, ordinal, size, entities)


def injective(
    weight: Float[np.ndarray, " candidate"], texts: Texts, known: Int[np.ndarray, " mention"] | None = None
) -> Int[np.ndarray, " mention"]:
    """Return links of which no two go to one mention: of several that want it the one of most weight has it.

    Parameters
    ----------
    weight : of candidates; -inf of one that cannot be.
    known : links that are known, of mentions that are ``fixed``.
    """
    number = len(texts.position)
    of = np.repeat(np.arange(number), np.diff(texts.begin))
    link, taken, done = np.full(number, NEW), np.zeros(number, bool), np.zeros(number, bool)
    if known is not None:
        link[texts.fixed], done[texts.fixed] = known[texts.fixed], True
        taken[link[link >= 0]] = True
        taken[link < NEW] = True                            # what is in no entity has no later mention
    may = np.isfinite(weight) & (texts.target < of) & ~done[of]
    for candidate in np.argsort(-weight, kind="stable"):
        mention, target = of[candidate], texts.target[candidate]
        if not may[candidate] or done[mention] or (target >= 0 and (taken[target] or link[target] < NEW)):
            continue
        if target < NEW and taken[mention]:
            continue
        link[mention], done[mention] = target, True
        if target >= 0:
            taken[target] = True
    return link
