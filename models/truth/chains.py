"""Coreference chains from links: every mention points to an antecedent, begins an entity, or refers to nothing.

Chains are the mentions that links connect, followed in any direction and however far. Links may be those of many draws
of a posterior over antecedents; all draws are followed at once.

Any posterior over the labels of `Mentions` will do. A mention whose label is ``DO(m)`` is linked to m, ``DN`` begins an
entity, and ``NR`` refers to nothing; nor does a property, ``PR(m)``, which is said of m and no mention of it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from consilience.arrays import Float, Int
from consilience.data.mentions import MENTION_TYPES, MentionLabels, Mentions
from consilience.errors import UnsupportedRequest
from consilience.models.rows import row_blocks, successive
from consilience.models.truth.classes import ClassTruth
from consilience.models.truth.truth import CHAINS, CLASSES, READINGS, Block, Clusters, Question, Ranked, Shares, Truth

NEW, NOTHING = -1, -2
"""In the place of an antecedent: the mention begins an entity, or refers to nothing."""

# Mentions of all draws that are connected at a time, and that a block holds.
_MOST_NODES, _MOST_ROWS = 1 << 22, 1 << 21


class ChainTruth(Truth):
    """Draws of the entities of mentions; -1 where a mention refers to nothing.

    Attributes
    ----------
    data : the mentions.
    """

    kind = CHAINS
    systems: tuple[str, ...] = (CHAINS.name,)
    data: Mentions

    def answers(self, question: Question) -> bool:
        """Return whether `blocks` would answer."""
        return question == Clusters()

    def read_as(self, kind: str, **which: Any) -> Truth:
        """Return the chains as they are."""
        if kind == CHAINS.name:
            return self
        raise UnsupportedRequest("this truth is chains of mentions; evaluate chains (read_conll)")


class DrawnChains(ChainTruth):
    """Chains of which draws are stored.

    Parameters
    ----------
    entity : shape ``(draw, mention)``; equal numbers where mentions are together.
    data : the mentions.
    """

    def __init__(self, entity: Int[np.ndarray, "draw mention"], data: Mentions) -> None:
        self.entity, self.data = entity, data
        self.num_draws, self.num_units = entity.shape

    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield the stored entities."""
        yield Block(slice(0, self.num_units), slice(0, self.num_draws), self.entity)

    def estimate(self) -> Int[np.ndarray, " mention"]:
        """Return the entities of the first draw."""
        return self.entity[0]


class LabelChains(ChainTruth):
    """The chains that the labels of mentions make: each draw of the labels gives a whole chaining of its own.

    Parameters
    ----------
    of : the labels, by draw.
    data : the mentions that they are labels of.
    labels : what their codes stand for; those of the data by default.

    Raises
    ------
    UnsupportedRequest : the labels are others than those of the mentions.
    """

    def __init__(self, of: Any, data: Mentions, labels: MentionLabels | None = None) -> None:
        self.of, self.data, self.labels = of, data, data.label_codes() if labels is None else labels
        if of.answers(Shares()) or of.num_classes != len(self.labels.names):
            raise UnsupportedRequest("the truth of this fit is not one label of mentions for each item")
        self.num_units, self.num_draws, self.ids = of.num_units, of.num_draws, of.ids

    def blocks(self, question: Question) -> Iterator[Block]:
        """Yield the entities of all mentions, some draws at a time."""
        if not self.answers(question):
            raise UnsupportedRequest("chains of mentions say who is together, and nothing else")
        for draws in row_blocks(self.num_draws, self.num_units, _MOST_ROWS):
            yield Block(slice(0, self.num_units), slice(draws.start, min(draws.stop, self.num_draws)),
                        follow_links(self.links[self.drawn[draws]]))  # fmt: skip

    def estimate(self) -> Int[np.ndarray, " mention"]:
        """Return the silver chains: those of the most probable label of each mention (Paun et al. 2018, 5.3)."""
        return self.chains_of(self.silver[0])

    def standard(self) -> DrawnChains:
        """Return the silver chains as a truth of one draw."""
        return DrawnChains(self.estimate()[None], self.data)

    def chains_of(self, label: Int[np.ndarray, " mention"]) -> Int[np.ndarray, " mention"]:
        """Return the entities that labels make."""
        return follow_links(self.links[label][None])[0]

    @functools.cached_property
    def silver(self) -> tuple[Int[np.ndarray, " mention"], Float[np.ndarray, " mention"]]:
        """The label of each mention that makes the silver chains, and how probable it is."""
        return self.of.lead.label, self.of.lead.probability

    def together(
        self, entity: Int[np.ndarray, " mention"], label: Int[np.ndarray, " mention"]
    ) -> Float[np.ndarray, " mention"] | None:
        """Return how probably mentions that an entity's links join are of one; None where links alone are known."""
        return None

    @functools.cached_property
    def drawn(self) -> Int[np.ndarray, "draw mention"]:
        """The label of each mention in each draw."""
        return np.concatenate([block.real[:, :, 0] for block in self.of.blocks(Ranked(1))]).T

    @functools.cached_property
    def links(self) -> Int[np.ndarray, " label"]:
        """What each label points to, as `follow_links` takes it."""
        return links_of(self.labels)

    def probability_of(self, label: Int[np.ndarray, " mention"]) -> Float[np.ndarray, " mention"]:
        """Return how probable a label of each mention is."""
        found = self.of.label_probabilities()
        unit = found.unit
        own = found.code == label[unit]
        result = np.zeros(len(label))
        result[unit[own]] = found.probability[own]
        return result


def _of_labels(truth: ClassTruth) -> LabelChains:
    """Return the chains that the labels of mentions make."""
    if truth.mentions is None:
        raise UnsupportedRequest(
            "chains need a fit of mentions, whose labels say what each mention goes back to; read the file by "
            "read_mentions and fit mpa or majority-vote"
        )
    return LabelChains(truth, truth.mentions)


READINGS[CLASSES.name, CHAINS.name] = _of_labels


def links_of(labels: MentionLabels) -> Int[np.ndarray, " label"]:
    """Return what labels point to, as `follow_links` takes it."""
    old, new = (labels.type == MENTION_TYPES.index(name) for name in ("DO", "DN"))
    return np.where(old, labels.antecedent, np.where(new, NEW, NOTHING)).astype(np.int32)


def follow_links(antecedent: Int[np.ndarray, "draw mention"]) -> Int[np.ndarray, "draw mention"]:
    """Return the entity of each mention in each draw.

    Parameters
    ----------
    antecedent : code of the mention that it points to, `NEW` or `NOTHING`.

    Returns
    -------
    int64 codes of entities from 0 in each draw, in the order of their first mentions; -1 where the mention refers to
    nothing, also where another mention points to it.
    """
    num_draws, num_mentions = antecedent.shape
    rows = max(_MOST_NODES // max(num_mentions, 1), 1)
    parts = [_connected(antecedent[start : start + rows]) for start in range(0, num_draws, rows)]
    return np.concatenate(parts) if parts else np.zeros(antecedent.shape, np.int64)


def nearest_links(entity: Int[np.ndarray, " mention"]) -> Int[np.ndarray, " mention"]:
    """Return the nearest earlier mention of the entity, `NEW` of its first one, `NOTHING` where the entity is below 0.

    Examples
    --------
    >>> nearest_links(np.array([3, 3, -1, 3])).tolist()
    [-1, 0, -2, 1]
    """
    before, mention = successive(entity)
    link = np.where(entity < 0, NOTHING, NEW)
    link[mention] = before
    return link


def _connected(antecedent: np.ndarray) -> np.ndarray:
    num_draws, num_mentions = antecedent.shape
    size = num_draws * num_mentions
    node = np.arange(size).reshape(antecedent.shape)
    linked = antecedent >= 0
    target = antecedent + num_mentions * np.arange(num_draws)[:, None]
    graph = sparse.coo_array((np.ones(linked.sum(), np.int8), (node[linked], target[linked])), shape=(size, size))
    component = sparse.csgraph.connected_components(graph, directed=False)[1].reshape(antecedent.shape)
    # Entities are those with a mention that refers to something, numbered by the first of these in each draw.
    refers = antecedent != NOTHING
    codes, first = np.unique(component[refers], return_index=True)
    order = np.argsort(first)
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes))
    entity = np.full(antecedent.shape, -1, np.int64)
    entity[refers] = rank[np.searchsorted(codes, component[refers])]
    before = np.zeros(num_draws, np.int64)
    if num_mentions:
        before[1:] = np.maximum.accumulate(entity.max(axis=1))[:-1] + 1
    return np.where(refers, entity - before[:, None], -1)
