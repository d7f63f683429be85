"""Mentions and their partition as long tables: what the kernel reads, and what it changes.

A mention stands in the partition, or is said not to refer (NR) or to be a property (PR). In the partition it has a
*link*: the nearest earlier mention of its entity, or none where it is the first. Links are different for different
mentions, so that chains of links are exactly partitions. Links and labels have the same codes: a mention, or `NEW`,
`NOTHING`, `PROPERTY` without a mention and ``PROPERTY - 1 - m`` of mention m.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.mentions import MENTION_TYPES, Mentions
from consilience.models.truth.chains import NEW, NOTHING, follow_links, nearest_links

PROPERTY = -3
_TYPES = np.array([MENTION_TYPES.index(name) for name in ("DN", "DO", "NR", "PR")])

MENTION = np.dtype([
    (name, np.int32)
    for name in ("document", "low", "high", "last", "begin", "end", "reach", "first_namer", "last_namer", "fixed")
])  # fmt: skip
"""Of a mention: its document, where the mentions of that begin and end, and whether it is the last of them; its
candidates; the earliest mention that a label of it points to, itself where none; the mentions that have it as a
candidate; whether its link is known."""

PLACE = np.dtype([(name, np.int32) for name in ("link", "following", "entity", "ordinal", "size", "entities")])
"""Of a mention: its link; the next mention of its entity, -1 where there is none; the first one, and how many are
earlier; at the first one, the size of the entity, else anything; at the first one of a document, how many entities that
has. One in no entity is the first of none."""


Texts = namedtuple("Texts", (
    "order", "first", "mention", "known", "of", "target", "votes", "namer", "row_candidate", "row_annotator", "witness",
    "num_annotators",
))  # fmt: skip
"""Mentions and what was said of them; candidates are the distinct labels of a mention, the latest first.

Parameters
----------
order : int64, shape ``(mention,)``; the mention of the data at each place. All else counts mentions by document, and in
    it by where they begin, the longer first; where the data have no places, as they come.
first : int64, shape ``(document + 1,)``; where the mentions of each document begin.
mention : records `MENTION`.
known : int64, shape ``(mention,)``; links that gold labels make, `NEW` where there is none.
of, target, votes : int64, shape ``(candidate,)``; mention, code of the label, and how often it was given.
namer : int64, shape ``(naming,)``; the mentions that have a mention as a candidate, mention by mention.
row_candidate, row_annotator : int64, shape ``(annotation,)``.
witness : int64, shape ``(mention,)``; the candidate that a system names, whose errors fall evenly, -1 of none.
num_annotators : how many there are.
"""


def kind_of(code: Int[np.ndarray, " label"]) -> Int[np.ndarray, " label"]:
    """Return what labels of these codes say: 0 new, 1 old, 2 not referring, 3 a property."""
    return np.select([code >= 0, code == NEW, code == NOTHING], [1, 0, 2], 3)


def label_code(type_: Int[np.ndarray, " label"], antecedent: Int[np.ndarray, " label"]) -> Int[np.ndarray, " label"]:
    """Return the code of labels, from their types and the mentions that they point to."""
    new, _, nothing, of = (np.asarray(type_) == one for one in _TYPES)
    own = np.asarray(antecedent, np.int64)
    return np.select([new, nothing, of], [NEW, NOTHING, PROPERTY - 1 - own], own)


def label_of(code: Int[np.ndarray, " label"]) -> tuple[Int[np.ndarray, " label"], Int[np.ndarray, " label"]]:
    """Return the types of labels with these codes, and the mentions that they point to, -1 of none."""
    return _TYPES[kind_of(code)], np.maximum(np.where(code >= 0, code, PROPERTY - 1 - code), -1)


def recoded(code: Int[np.ndarray, " label"], place: Int[np.ndarray, " mention"]) -> Int[np.ndarray, " label"]:
    """Return codes of labels where each mention has another number."""
    type_, aim = label_of(code)
    return np.where(aim < 0, code, label_code(type_, place[np.maximum(aim, 0)]))


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
    said = np.full(number, NOTHING) if witness is None else recoded(np.asarray(witness)[order], place)
    told = np.flatnonzero(said >= NEW)
    rows = np.append(place[data.mention], told)
    codes = np.append(recoded(label_code(data.type, data.antecedent), place), said[told])
    width = 2 * number + 4                                  # a key is of a mention and a code, the latest first
    key, candidate = np.unique(rows * width + number - codes, return_inverse=True)
    row_candidate, by_witness = np.split(candidate.ravel(), [len(data.mention)])
    of, target = key // width, number - key % width
    aimed = np.argsort(target, kind="stable")[np.count_nonzero(target < 0) :]
    mention, every = np.zeros(number, MENTION), np.arange(number)
    mention["document"], first = document, np.searchsorted(document, np.arange(data.num_documents + 1))
    mention["low"], mention["high"] = first[document], first[document + 1]
    mention["last"], mention["reach"] = mention["high"] == every + 1, every
    np.minimum.at(mention["reach"], of[target >= 0], target[target >= 0])
    for begin, end, keys in (("begin", "end", of), ("first_namer", "last_namer", target[aimed])):
        mention[begin], mention[end] = (np.searchsorted(keys, every + one) for one in (0, 1))
    known, its = np.full(number, NEW), np.full(number, -1)
    its[told] = by_witness
    if gold == "use":
        mention["fixed"] = np.asarray(data.gold_type)[order] >= 0
        code = recoded(label_code(data.gold_type, data.gold_antecedent)[order], place)
        # A gold label may point to any mention of the entity.
        entity = follow_links(np.where(mention["fixed"], np.maximum(code, NOTHING), NEW)[None])[0]
        known = np.where(entity < 0, code, nearest_links(entity))
    return Texts(
        order, first, mention, known, of, target, np.bincount(row_candidate, minlength=len(key)), of[aimed],
        row_candidate, np.asarray(data.annotator, np.int64), its, data.num_annotators,
    )  # fmt: skip


def linked(link: Int[np.ndarray, " mention"], texts: Texts) -> np.ndarray:
    """Return the records `PLACE` that links make: codes below 0, or an earlier mention that no other links to."""
    place = np.zeros(len(link), PLACE)
    place["link"], place["following"], place["entity"] = link, -1, np.arange(len(link))
    for mention in np.flatnonzero(link >= 0):               # links go back
        before = link[mention]
        place["following"][before], place["entity"][mention] = mention, place["entity"][before]
        place["ordinal"][mention] = place["ordinal"][before] + 1
    np.add.at(place["size"], place["entity"], 1)
    np.add.at(place["entities"], texts.mention["low"][link == NEW], 1)
    return place


def injective(
    weight: Float[np.ndarray, " candidate"], of: Int[np.ndarray, " candidate"], target: Int[np.ndarray, " candidate"],
    number: int,
) -> Int[np.ndarray, " mention"]:  # fmt: skip
    """Return links of which no two go to one mention: of several that want it the one of most weight has it.

    Parameters
    ----------
    weight, of, target : of candidates; their mentions, and the codes of the labels.
    number : of mentions; one whose candidates are all taken is new.
    """
    link, done, taken = np.full(number, NEW), np.zeros(number, bool), np.zeros(number, bool)
    for candidate in np.argsort(-weight, kind="stable").tolist():
        mention, aim = of[candidate], target[candidate]
        # What is in no entity has no later mention.
        if done[mention] or (aim != NEW and taken[aim if aim >= 0 else mention]):
            continue
        link[mention], done[mention] = aim, True
        taken[aim if aim >= 0 else mention] |= aim != NEW
    return link
