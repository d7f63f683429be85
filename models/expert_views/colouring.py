"""Graph colouring: items of one colour share no pair, so that they are updated together as if one after the other.

On the host. Every item waits for its neighbours of higher degree, and takes the smallest colour that none of them has:
this is greedy colouring, largest degree first, but all items that wait for nobody are coloured at once (Jones and
Plassmann 1993). Ties are broken at random; by number, a chain of comparisons 1-2, 2-3, … would be coloured one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.arrays import Int
from consilience.models.rows import sorted_order


class _Lists(NamedTuple):
    """Neighbours of each node, one list after the other."""

    begin: np.ndarray
    neighbour: np.ndarray

    def of(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the neighbours of some nodes, and for each of them to which of these nodes it belongs."""
        length = self.begin[node + 1] - self.begin[node]
        owner = np.repeat(np.arange(len(node)), length)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
        return self.neighbour[self.begin[node][owner] + within], owner


def coloured(
    first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"], number: int
) -> Int[np.ndarray, " node"]:
    """Return a colour from 0 for each node of a graph, such that no pair has two of the same.

    Parameters
    ----------
    first, second : the nodes of each pair, different, from 0 to ``number - 1``.
    number : of nodes.
    """
    degree = np.bincount(first, minlength=number) + np.bincount(second, minlength=number)
    place = np.empty(number, np.int64)
    place[np.lexsort((np.random.default_rng(0).permutation(number), -degree))] = np.arange(number)
    earlier = place[first] < place[second]
    before, after = np.where(earlier, first, second), np.where(earlier, second, first)
    predecessors, successors = _lists(after, before, number), _lists(before, after, number)
    waits_for = np.diff(predecessors.begin)
    colour = np.zeros(number, np.int64)
    ready = np.flatnonzero(waits_for == 0)
    while len(ready):
        neighbour, owner = predecessors.of(ready)
        colour[ready] = _smallest_missing(colour[neighbour], owner, len(ready))
        released, times = np.unique(successors.of(ready)[0], return_counts=True)
        waits_for[released] -= times
        ready = released[waits_for[released] == 0]
    return colour


def _lists(node: np.ndarray, neighbour: np.ndarray, number: int) -> _Lists:
    begin = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=number))])
    return _Lists(begin, neighbour[sorted_order(node)])


def _smallest_missing(value: np.ndarray, owner: np.ndarray, number: int) -> np.ndarray:
    """Return for each owner the smallest number from 0 that is not among its values; owners are sorted."""
    span = int(value.max(initial=0)) + 1
    key = np.sort(owner * span + value)
    key = key[np.append(True, key[1:] != key[:-1])] if len(key) else key
    owner, value = key // span, key % span
    first = np.searchsorted(owner, np.arange(number))
    rank = np.arange(len(key)) - first[owner]
    # Sorted values of an owner count from 0 upwards until the first gap.
    return np.bincount(owner[value == rank], minlength=number)
