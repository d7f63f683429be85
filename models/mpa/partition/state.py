"""Mentions and their partition as long tables: what the kernel reads, and what it changes.

A mention stands in the partition, or is said not to refer (NR) or to be a property (PR). In the partition it has a
*link*: the nearest earlier mention of its entity, or none where it is the first. Links are different for different
mentions, so that chains of links are exactly partitions. Links and labels have the same codes: a mention, or `NEW`,
`NOTHING`, `PROPERTY` without a mention and ``PROPERTY - 1 - m`` of mention m.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Bool, Float, Int
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.models.truth.chains import NEW, NOTHING, follow_links

PROPERTY = -3


MENTION = np.dtype([
    (name, np.int32)
    for name in ("document", "low", "high", "begin", "end", "reach", "first_namer", "last_namer", "fixed")
])  # fmt: skip
"""Of a mention: its document, where the mentions of that begin and end; its candidates; the earliest mention that a
label of it points to, itself where none; the mentions that have it as a candidate; whether its link is known."""

PLACE = np.dtype([(name, np.int32) for name in ("link", "following", "entity", "ordinal", "size")])
"""Of a mention: its link; the next mention of its entity, -1 where there is none; the first one, and how many are
earlier; at the first one, the size of the entity, else anything. One in no entity is the first of none."""


class Texts(NamedTuple):
    """Mentions and what was said of them; candidates are the distinct labels of a mention, the latest first.

    Parameters
    ----------
    order : int64, shape ``(mention,)``; the mention of the data at each place. All else counts mentions by document,
        and in it by where they begin, the longer first; where the data have no places, as they come.
    first : int64, shape ``(document + 1,)``; where the mentions of each document begin.
    mention : records `MENTION`.
    of, target, votes : int64, shape ``(candidate,)``; mention, code of the label, and how often it was given.
    namer : int64, shape ``(naming,)``; the mentions that have a mention as a candidate, mention by mention.
    row_candidate, row_annotator : int64, shape ``(annotation,)``.
    witness : int64, shape ``(mention,)``; the candidate that a system names, whose errors fall evenly, -1 of none.
    """

    order: Any
    first: Any
    mention: Any
    of: Any
    target: Any
    votes: Any
    namer: Any
    row_candidate: Any
    row_annotator: Any
    witness: Any


class State(NamedTuple):
    """Partitions of all documents on all rungs.

    Parameters
    ----------
    place : records `PLACE`, shape ``(rung, mention)``.
    entities : int64, shape ``(rung, document)``; how many there are.
    """

    place: Any
    entities: Any


def label_code(type_: Int[np.ndarray, " label"], antecedent: Int[np.ndarray, " label"]) -> Int[np.ndarray, " label"]:
    """Return the code of labels, from their types and the mentions that they point to."""
    new, nothing, of = (np.asarray(type_) == MENTION_TYPES.index(name) for name in ("DN", "NR", "PR"))
    own = np.asarray(antecedent, np.int64)
    return np.select([new, nothing, of], [NEW, NOTHING, PROPERTY - 1 - own], own)


def label_of(code: Int[np.ndarray, " label"]) -> tuple[Int[np.ndarray, " label"], Int[np.ndarray, " label"]]:
    """Return the types of labels with these codes, and the mentions that they point to, -1 of none."""
    kinds = np.select([code >= 0, code == NEW, code == NOTHING], [1, 0, 2], 3)
    types = np.array([MENTION_TYPES.index(name) for name in ("DN", "DO", "NR", "PR")])
    return types[kinds], np.maximum(np.where(code >= 0, code, PROPERTY - 1 - code), -1)


def recoded(code: Int[np.ndarray, " label"], place: Int[np.ndarray, " mention"]) -> Int[np.ndarray, " label"]:
    """Return codes of labels where each mention has another number."""
    aim = label_of(code)[1]
    other = place[np.maximum(aim, 0)]
    return np.where(aim < 0, code, np.where(code >= 0, other, PROPERTY - 1 - other))


def texts_of(data: Mentions, gold: str, witness: Int[np.ndarray, " mention"] | None = None) -> Texts:
    """Return the tables of mentions.

    Parameters
    ----------
    gold : with "use", links of mentions with a gold label are known.
    witness : what a system says of each mention of the data, as a link in codes of the data; -2 of nothing.
    """
    number = data.num_mentions
    places = () if data.start is None else (-np.asarray(data.end), np.asarray(data.start))
    order = np.lexsort((np.arange(number), *places, np.asarray(data.document)))
    document, place = np.asarray(data.document, np.int64)[order], np.argsort(order)
    first = np.searchsorted(document, np.arange(data.num_documents + 1))
    mention, code = place[data.mention], recoded(label_code(data.type, data.antecedent), place)
    width = 2 * number + 4
    keys, told = mention * width + number - code, np.zeros(0, np.int64)
    if witness is not None:
        own = recoded(np.asarray(witness)[order], place)
        named = np.flatnonzero(own >= NEW)
        told = named * width + number - own[named]
    key, row_candidate, votes = np.unique(np.append(keys, told), return_inverse=True, return_counts=True)
    row_candidate, by_witness = np.split(row_candidate.ravel(), [len(keys)])
    votes = votes - np.bincount(by_witness, minlength=len(votes))
    said = np.full(number, -1)
    said[told // width] = by_witness
    of, target = key // width, number - key % width
    earlier = (target >= 0) & (target < of)
    reach = np.arange(number)
    np.minimum.at(reach, of[earlier], target[earlier])
    by_target = np.flatnonzero(target >= 0)[np.argsort(target[target >= 0], kind="stable")]
    mentions = np.zeros(number, MENTION)
    mentions["document"], mentions["low"], mentions["high"] = document, first[document], first[document + 1]
    for begin, end, keys in (("begin", "end", of), ("first_namer", "last_namer", target[by_target])):
        mentions[begin], mentions[end] = (np.searchsorted(keys, np.arange(number) + one) for one in (0, 1))
    mentions["reach"] = reach
    mentions["fixed"] = np.asarray(data.gold_type)[order] >= 0 if gold == "use" else 0
    return Texts(
        order, first, mentions, of, target, votes, of[by_target], row_candidate, np.asarray(data.annotator, np.int64),
        said,
    )  # fmt: skip


def known_links(data: Mentions, texts: Texts) -> Int[np.ndarray, " mention"]:
    """Return the links that gold labels make, `NEW` where there is none.

    A gold label may point to any mention of its entity: links go to the nearest that gold labels connect.
    """
    code = recoded(label_code(data.gold_type, data.gold_antecedent)[texts.order], np.argsort(texts.order))
    fixed = texts.mention["fixed"] > 0
    link = np.where(fixed & (code < NEW), code, NEW)
    entity = follow_links(np.where(fixed, np.where(code < NEW, NOTHING, code), NEW)[None])[0]
    latest: dict[int, int] = {}
    for mention in np.flatnonzero(entity >= 0).tolist():
        link[mention] = latest.get(entity[mention], NEW)
        latest[entity[mention]] = mention
    return link


def linked(link: Int[np.ndarray, "rung mention"], texts: Texts) -> State:
    """Return the state that links make.

    Parameters
    ----------
    link : to an earlier mention that no other links to, or a code below 0.
    """
    place, rows = np.zeros(link.shape, PLACE), np.arange(len(link))
    place["link"], place["following"], place["entity"] = link, -1, np.arange(link.shape[1])
    for mention in range(link.shape[1]):  # links go back
        rung = np.flatnonzero(link[:, mention] >= 0)
        before = link[rung, mention]
        place["following"][rung, before] = mention
        place["entity"][rung, mention] = place["entity"][rung, before]
        place["ordinal"][rung, mention] = place["ordinal"][rung, before] + 1
    np.add.at(place["size"], (rows[:, None], place["entity"]), 1)
    entities = np.zeros((len(link), len(texts.first) - 1), np.int64)
    np.add.at(entities, (rows[:, None], texts.mention["document"]), link == NEW)
    return State(place, entities)


def injective(
    weight: Float[np.ndarray, " candidate"], of: Int[np.ndarray, " candidate"], target: Int[np.ndarray, " candidate"],
    link: Int[np.ndarray, " mention"], done: Bool[np.ndarray, " mention"],
) -> Int[np.ndarray, " mention"]:  # fmt: skip
    """Return links of which no two go to one mention: of several that want it the one of most weight has it.

    Parameters
    ----------
    weight, of, target : of candidates; their mentions, and the codes of the labels. One of weight -inf cannot be.
    link, done : links that are known, and of which mentions.
    """
    link, done, taken = np.where(done, link, NEW), done.copy(), np.zeros(len(link), bool)
    if done.any():
        taken[link[link >= 0]] = True
        taken[link < NEW] = True                            # what is in no entity has no later mention
    for candidate in np.argsort(-weight, kind="stable").tolist():
        mention, aim = of[candidate], target[candidate]
        if done[mention] or weight[candidate] == -np.inf or (aim >= 0 and (taken[aim] or link[aim] < NEW)):
            continue
        if aim < NEW and taken[mention]:
            continue
        link[mention], done[mention] = aim, True
        if aim >= 0:
            taken[aim] = True
    return link
