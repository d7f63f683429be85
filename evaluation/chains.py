"""Coreference chains from links: every mention points to an antecedent, begins an entity, or refers to nothing.

Chains are the mentions that links connect, followed in any direction and however far. Links may be those of many draws
of a posterior over antecedents; all draws are followed at once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from consilience.arrays import Int

__all__ = ["NEW", "NOTHING", "follow_links"]

NEW, NOTHING = -1, -2
"""In the place of an antecedent: the mention begins an entity, or refers to nothing."""

# Mentions of all draws that are connected at a time.
_MOST_NODES = 1 << 22


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
