# mypy: allow-untyped-defs
r"""What annotators say of a mention, given the partition of its document.

An annotation of mention i is right with the probability :math:`\alpha_{nc}` of its annotator n and the class c of the
mention: new (DN), old (DO), or neither (NR, PR). A right annotation of an old mention names its link with probability
λ, and otherwise one of the m earlier mentions of its entity that are not the nearest, each with (1 - λ) / m; λ is 1
where m = 0. Everything else that can be said of i is an error. Errors share proportions that are popular,

.. math::

    P(\text{errors}) = \frac{\Gamma(\theta Q)}{\Gamma(\theta Q + E)}
    \prod_l \frac{\Gamma(\theta q_l + v_l)}{\Gamma(\theta q_l)}, \qquad Q = \sum_l q_l,

with :math:`v_l` of the E errors on label l. The base :math:`q_l` is that of the *bin* of l, in equal parts for the
labels of i that are in the bin: DN, NR, PR, later mentions, and by rank the earlier mentions **of other entities**, of
which the nearest has rank 1. Annotators err to what lies near and is something else. Where λ is fixed at 1
(``antecedents="nearest"``) mentions of the own entity that are not the link are errors too, and have a rank.

Bins that a mention has no labels in are left out of Q: a mention that can only be new is always right. θ = ∞ spreads
errors evenly; θ = 4 and four labels of q = 1/4 are the "sparse" errors of Paun et al. (2018).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float

BIN_NEW, BIN_NOTHING, BIN_PROPERTY, BIN_LATER, FIRST_RANK = range(5)
LOWEST_RANK = np.array([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 13, 21, 41])
"""Of each bin of ranks; the last is open."""
WIDTH = np.append(np.diff(LOWEST_RANK), 1 << 30)
LIMIT = int(LOWEST_RANK[-1])
"""With so many earlier mentions of other entities, a mention has labels in all bins of ranks."""
KINDS = 4
"""Of mentions: new, old, NR, PR; the last two share a class of profiles."""
NEAREST, OWN, ERROR = range(3)

CANDIDATE = np.dtype([("target", np.int32), ("votes", np.int32), ("gain", float)])
"""Code of a label, how often it was given, and what is added where it is right."""

FOUND = np.dtype([("what", np.int32), ("bin", np.int32), ("available", np.int32)])
"""Whether a candidate is right or an error, and of an error its bin, and how many labels of the mention are in it."""


class Given(NamedTuple):
    """What the kernel reads of annotations and parameters.

    Parameters
    ----------
    mention, candidate : records `state.MENTION` and `CANDIDATE`.
    namer : as in `state.Texts`.
    wrong : shape ``(mention, class)``; log probability that all annotations of a mention are wrong.
    nearest, other : log λ and log(1 - λ); ``any`` is false where λ is fixed at 1.
    base : shape ``(kind, bin)``; θ q of a whole bin.
    rising : shape ``(kind, bin, votes)``; log Γ(θ q_l + v) / Γ(θ q_l) in bins of all their ranks.
    whole : shape ``(kind, number)``; θ Q with 0, 1, … earlier mentions of other entities, and at last `LIMIT` or more.
    bins, lowest, width : the bin of each rank, the lowest rank of each bin, and its number of ranks.
    log, harmonic : shape ``(number,)``; logarithms of whole numbers, of 0 that of 1, and sums 1 + 1/2 + … + 1/n.
    by_size, by_number : shape ``(number,)``; what a size of an entity, and a number of entities, add to the prior.
    recency, nothing, of : b, and what NR and PR add.
    unreferring : whether any label is NR.
    """

    mention: Any
    candidate: Any
    namer: Any
    wrong: Any
    nearest: float
    other: float
    any: bool
    base: Any
    rising: Any
    whole: Any
    bins: Any
    lowest: Any
    width: Any
    log: Any
    harmonic: Any
    by_size: Any
    by_number: Any
    recency: float
    nothing: float
    of: float
    unreferring: bool


def bins_of_ranks(longest: int) -> np.ndarray:
    """Return the bin of each rank from 0 to ``longest``."""
    return np.searchsorted(LOWEST_RANK[FIRST_RANK:], np.arange(longest + 1), side="right") - 1 + FIRST_RANK


def error_tables(base: Float[np.ndarray, "kind bin"], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``rising`` and ``whole`` of `Given`.

    Parameters
    ----------
    base : θ q.
    most : the largest number of votes.
    """
    each = base.copy()
    each[:, FIRST_RANK:-1] /= WIDTH[FIRST_RANK:-1]
    rising = np.zeros((*base.shape, most + 1))
    with np.errstate(divide="ignore"):
        rising[..., 1:] = np.cumsum(np.log(each[..., None] + np.arange(most)), axis=-1)
    return rising, base @ ranked_bins().T


def ranked_bins() -> Float[np.ndarray, "number bin"]:
    """Return which bins have labels where 0, 1, … `LIMIT` earlier mentions are of other entities."""
    return (LOWEST_RANK[None] <= np.arange(LIMIT + 1)[:, None]).astype(float)
