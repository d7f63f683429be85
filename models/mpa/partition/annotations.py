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

import math
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Float
from consilience.models.block_linkage.densities import machine_code
from consilience.models.mpa.partition.state import Texts
from consilience.models.truth.chains import NEW, NOTHING

BIN_NEW, BIN_NOTHING, BIN_PROPERTY, BIN_LATER, FIRST_RANK = range(5)
LOWEST_RANK = np.array([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 13, 21, 41])
RANKS = np.append(np.diff(LOWEST_RANK[FIRST_RANK:]), 0)     # in each bin; the last is open
LIMIT = int(LOWEST_RANK[-1])
"""With so many earlier mentions of other entities, a mention has labels in all bins of ranks."""
KINDS = 4
"""Of mentions: new, old, NR, PR; the last two share a class of profiles."""
NEAREST, OWN, ERROR = range(3)


class Given(NamedTuple):
    """What the kernel reads of the parameters.

    Parameters
    ----------
    wrong : shape ``(class, mention)``; log probability that all annotations of a mention are wrong.
    gain : shape ``(candidate,)``; what is added where a candidate is right.
    nearest, other : log λ and log(1 - λ); ``any`` is false where λ is fixed at 1.
    base : shape ``(kind, bin)``; θ q of a whole bin.
    rising : shape ``(kind, bin, votes)``; log Γ(θ q_l + v) / Γ(θ q_l) in bins of all their ranks.
    whole : shape ``(kind, number)``; θ Q with 0, 1, … earlier mentions of other entities, and at last `LIMIT` or more.
    bins : shape ``(rank,)``; the bin of each rank.
    log : shape ``(number,)``; logarithms of whole numbers, of 0 that of 1.
    by_size, by_number : shape ``(number,)``; what a size of an entity, and a number of entities, add to the prior.
    recency, nothing, of : b, and what NR and PR add.
    """

    wrong: Any
    gain: Any
    nearest: float
    other: float
    any: bool
    base: Any
    rising: Any
    whole: Any
    bins: Any
    log: Any
    by_size: Any
    by_number: Any
    recency: float
    nothing: float
    of: float


def bins_of_ranks(longest: int) -> np.ndarray:
    """Return the bin of each rank from 0 to ``longest``."""
    return np.searchsorted(LOWEST_RANK[FIRST_RANK:], np.arange(longest + 1), side="right") - 1 + FIRST_RANK


def error_tables(
    concentration: float, base: Float[np.ndarray, "kind bin"], most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``base``, ``rising`` and ``whole`` of `Given`.

    Parameters
    ----------
    concentration, base : θ and q.
    most : the largest number of votes.
    """
    share = concentration * base
    each = share.copy()
    each[:, FIRST_RANK:-1] /= RANKS[:-1]
    rising = np.zeros((*share.shape, most + 1))
    with np.errstate(divide="ignore"):
        rising[..., 1:] = np.cumsum(np.log(each[..., None] + np.arange(most)), axis=-1)
    numbers = np.arange(LIMIT + 1)
    there = (LOWEST_RANK[None] <= numbers[:, None]).astype(float)
    return share, rising, share @ there.T


@machine_code
def log_error(kind, own_bin, available, votes, given):
    """Return log Γ(θ q_l + v) / Γ(θ q_l) of a label that shares its bin with ``available - 1`` others."""
    if own_bin >= FIRST_RANK and available == RANKS[own_bin - FIRST_RANK]:
        return given.rising[kind, own_bin, votes]
    each, total = given.base[kind, own_bin] / available, 0.0
    for vote in range(votes):
        total += math.log(each + vote)
    return total


@machine_code
def kind_of(link):
    """Return the kind of a mention: new, old, NR or PR."""
    return 1 if link >= 0 else 0 if link == NEW else 2 if link == NOTHING else 3


@machine_code
def foreign(mention, kind, ordinal, texts, given):
    """Return how many earlier mentions could be errors: those of other entities."""
    if kind > 1:
        return texts.position[mention]
    own = ordinal if given.any else kind
    return texts.position[mention] - own


@machine_code
def whole_base(mention, kind, others, texts, given):
    """Return θ Q of a mention."""
    whole = given.whole[kind, min(others, LIMIT)]
    if mention + 1 == texts.first[texts.document[mention] + 1]:
        whole -= given.base[kind, BIN_LATER]
    return whole


@machine_code
def classified(candidate, mention, link, kind, before, own, others, texts, given):
    """Return what a candidate is, its bin, how many labels are in it, and where the walk through the entity stands.

    Parameters
    ----------
    before, own : the latest mention of the entity that was not passed, and how many were.
    others : of `foreign`.
    """
    target, document = texts.target[candidate], texts.document[mention]
    if target >= 0:
        if target > mention:
            return ERROR, BIN_LATER, texts.first[document + 1] - mention - 1, before, own
        if target == before:
            return (NEAREST if own == 0 else OWN), 0, 1, before, own
        rank = mention - target - own
        its = given.bins[rank]
        least = LOWEST_RANK[its]
        available = others - least + 1
        if its < len(LOWEST_RANK) - 1:
            available = min(available, RANKS[its - FIRST_RANK])
        return ERROR, its, available, before, own
    if target == link:
        return NEAREST, 0, 1, before, own
    if target == NEW:
        return ERROR, BIN_NEW, 1, before, own
    if target == NOTHING:
        return ERROR, BIN_NOTHING, 1, before, own
    size = texts.first[document + 1] - texts.first[document]  # PR of any other mention, or of nothing
    return ERROR, BIN_PROPERTY, (size - 1 if kind == 3 else size), before, own


@machine_code
def log_mention(mention, link, ordinal, links, texts, given):
    """Return the log probability of the annotations of a mention.

    Parameters
    ----------
    link, ordinal : of the mention, as if it stood there.
    links : of all mentions on the rung.
    """
    begin, end = texts.begin[mention], texts.begin[mention + 1]
    if begin == end:
        return 0.0
    kind = kind_of(link)
    others = foreign(mention, kind, ordinal, texts, given)
    whole = whole_base(mention, kind, others, texts, given)
    if whole <= 0:
        return 0.0
    total, errors = given.wrong[min(kind, 2), mention], 0
    before, own = (link if kind == 1 else -1), 0
    for candidate in range(begin, end):
        target = texts.target[candidate]
        while before > target >= 0:
            own += 1
            before = links[before] if given.any else -1
        what, its, available, before, own = classified(
            candidate, mention, link, kind, before, own, others, texts, given
        )  # fmt: skip
        votes = texts.votes[candidate]
        if what == ERROR:
            errors += votes
            total += log_error(kind, its, available, votes, given)
        else:
            total += given.gain[candidate]
            if what == OWN:
                total += votes * (given.other - given.log[ordinal - 1])
            elif ordinal > 1 and given.any:
                total += votes * given.nearest
    for error in range(errors):
        total -= math.log(whole + error)
    return total


@machine_code
def outcomes(links, ordinals, texts, given, what, bins, available, kinds, others, counts):
    """Set what every candidate is, and of every mention its kind, `foreign`, and whether it could be wrong at all."""
    for mention in range(len(links)):
        link = links[mention]
        kind = kinds[mention] = kind_of(link)
        others[mention] = foreign(mention, kind, ordinals[mention], texts, given)
        counts[mention] = whole_base(mention, kind, others[mention], texts, given) > 0
        before, own = (link if kind == 1 else -1), 0
        for candidate in range(texts.begin[mention], texts.begin[mention + 1]):
            while before > texts.target[candidate] >= 0:
                own += 1
                before = links[before] if given.any else -1
            what[candidate], bins[candidate], available[candidate], before, own = classified(
                candidate, mention, link, kind, before, own, others[mention], texts, given
            )  # fmt: skip
