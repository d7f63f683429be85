"""Graph colouring: items of one colour share no pair, so that they are updated together as if one after the other.

On the host, greedily, items of the largest degree first. A plain loop: a million pairs take a second.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import Int
from consilience.models.rows import sorted_order


def coloured(
    first: Int[np.ndarray, " pair"], second: Int[np.ndarray, " pair"], number: int
) -> Int[np.ndarray, " node"]:
    """Return a colour from 0 for each node of a graph, such that no pair has two of the same.

    Parameters
    ----------
    first, second : the nodes of each pair, different, from 0 to ``number - 1``.
    number : of nodes.
    """
    end, other = np.concatenate([first, second]), np.concatenate([second, first])
    degree = np.bincount(end, minlength=number)
    begin, neighbour = [0, *np.cumsum(degree).tolist()], other[sorted_order(end)].tolist()
    colour = [-1] * number
    for node in np.lexsort((np.random.default_rng(0).permutation(number), -degree)).tolist():
        taken = {colour[one] for one in neighbour[begin[node] : begin[node + 1]]}
        colour[node] = next(new for new in range(len(taken) + 1) if new not in taken)
    return np.array(colour, int)
