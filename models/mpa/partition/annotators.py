r"""What annotators say of a mention, given the partition of its document, and how they come to be known.

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

Documents share the parameters, which are drawn given one partition of each. The profile of an annotator is a point of a
grid of sensitivities to new and to old mentions, and to mentions that are neither where such labels occur: midpoints
.05, .15, …, .95 in each. The weights of the points are :math:`\mathrm{Dirichlet}(1/2, …)`. A grid holds dependence and
several modes, is conjugate, and needs no tuning.

The base q of errors is :math:`\mathrm{Dirichlet}(1/2, …)` over bins, and log θ is flat from log(1/2) to log(2000), for
each kind of mention. Equivalently the θ q of bins are independent :math:`\mathrm{Gamma}(1/2, r)` with a flat log r.
Given the numbers of tables of Pólya's urn (Antoniak 1974) and, of each mention with errors, a variable
:math:`x \sim \mathrm{Beta}(\theta Q, E)`, which makes an exponential of Q of its normaliser, these are Gamma variables
again, whatever bins a mention lacks. A random walk scales each θ besides: tables are many where errors are.
"""

from __future__ import annotations

import itertools
from collections import namedtuple
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from consilience.arrays import Bool, Float, Int
from consilience.models.mpa.partition.field import FREE, START, size_terms
from consilience.models.mpa.partition.state import Texts, kind_of
from consilience.models.truth.chains import NEW, NOTHING

BIN_NEW, BIN_NOTHING, BIN_PROPERTY, BIN_LATER, FIRST_RANK = range(5)
LOWEST_RANK = np.array([0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 13, 21, 41])
"""Of each bin of ranks; the last is open."""
WIDTH = np.concatenate([np.ones(FIRST_RANK, int), np.diff(LOWEST_RANK[FIRST_RANK:]), [1 << 30]])
"""Of how many labels the probability of an error in the bin is in a table; else it is worked out."""
LIMIT = int(LOWEST_RANK[-1])
"""With so many earlier mentions of other entities, a mention has labels in all bins of ranks."""
BIN = np.searchsorted(LOWEST_RANK, np.arange(LIMIT + 1), side="right") - 1
"""Of each rank to that."""
KINDS = 4
"""Of mentions: new, old, NR, PR; the last two share a class of profiles."""
NEAREST, OWN, ERROR = range(3)

CANDIDATE = np.dtype([(name, np.int32) for name in ("target", "votes", "what", "bin", "available")] + [("gain", float)])
"""Code of a label, how often it was given; whether it is right or an error, its bin if it is one, and how many labels
of the mention are in that, as the kernel found last; and what is added where it is right."""

_GRID = (np.arange(10) + 0.5) / 10
_HALF = 0.5  # of both Dirichlet priors
_LEAST, _MOST = 0.5, 2000.0  # of θ
_WALK, _STEPS = 0.3, 3  # of log θ
_THERE = np.tile((LOWEST_RANK <= np.arange(LIMIT + 1)[:, None])[:, None], (1, 2, 1)).astype(float)
_THERE[:, 1, BIN_LATER] = 0
"""Which bins a mention has labels in, as far as its place tells: ``(number, last, bin)``, as `Given.whole`."""
_TINY = 1e-12  # a weight may underflow


class Parameters(NamedTuple):
    """What documents share.

    Parameters
    ----------
    sensitivity : shape ``(annotator, class)``; of new and old mentions, and of those that are neither.
    weight : shape ``(point,)``; of the grid.
    nearest : λ.
    base : shape ``(kind, bin)``; θ q, 0 of bins that have no part.
    field : of `tables.PARAMETERS`.
    witness : how often a system is right of new and of old mentions.
    """

    sensitivity: Float[np.ndarray, "annotator class"]
    weight: Float[np.ndarray, " point"]
    nearest: float
    base: Float[np.ndarray, "kind bin"]
    field: Float[np.ndarray, " parameter"]
    witness: Float[np.ndarray, " class"]


Given = namedtuple("Given", (
    "mention", "candidate", "namer", "wrong", "nearest", "other", "any", "base", "rising", "whole", "log", "harmonic",
    "by_size", "by_number", "field", "choice", "weight", "seen",
))  # fmt: skip
"""What the kernel reads of annotations and parameters, and its memory.

Parameters
----------
mention, candidate : records `state.MENTION` and `CANDIDATE`.
namer : as in `state.Texts`.
wrong : shape ``(mention, class)``; log probability that all annotations of a mention are wrong.
nearest, other : log λ and log(1 - λ); ``any`` is false where λ is fixed at 1.
base : shape ``(kind, bin)``; θ q of a whole bin.
rising : shape ``(kind, bin, votes)``; log Γ(θ q_l + v) / Γ(θ q_l) in bins of `WIDTH` labels.
whole : shape ``(kind, number, last)``; θ Q with 0, 1, … earlier mentions of other entities, at last `LIMIT` or more, of
    mentions that are not the last of their document, and of those that are.
log, harmonic : shape ``(number,)``; logarithms of whole numbers, of 0 that of 1, and sums 1 + 1/2 + … + 1/n.
by_size, by_number : shape ``(number,)``; what a size of an entity, and a number of entities, add to the prior.
field : of `tables.PARAMETERS`.
choice, weight : shapes ``(choice, 2)`` and ``(choice,)``; where what is moved may be put.
seen : bool, shape ``(mention,)``; whether an entity is among the choices.
"""


def _whole(base: Float[np.ndarray, "kind bin"]) -> Float[np.ndarray, "kind number last"]:
    """Return `Given.whole`."""
    return np.einsum("kb,nlb->knl", base, _THERE)


def points(classes: int) -> Float[np.ndarray, "point class"]:
    """Return the points of the grid, of 2 or 3 classes."""
    return np.array(list(itertools.product(_GRID, repeat=classes)))


def beliefs(any_antecedent: bool) -> dict[str, str]:
    """Return in words what is believed before any data, by what it is of.

    ``any_antecedent`` is whether a right label may name any earlier mention of the entity.
    """
    grid = f"{_GRID[0]:.2f}, {_GRID[1]:.2f}, …, {_GRID[-1]:.2f}"
    linked = {
        "right links (λ)": "one names the nearest earlier mention of the entity with probability λ, any other with the "
        "rest; λ is Beta(1, 1)"
    }  # fmt: skip
    return {
        "sensitivities": f"those of an annotator are each one of {grid}; how often each combination occurs is learned "
        f"from all annotators, from Dirichlet({_HALF:g}, …)",
        **(linked if any_antecedent else {}),
        "which errors": "annotators share what they err to: a first mention, or an earlier one by how near it is; the "
        f"proportions of these are Dirichlet({_HALF:g}, …)",
        "how alike errors are (θ)": "the smaller θ, the more often annotators of a mention err to the same label; log "
        f"θ is uniform, θ between {_LEAST:g} and {_MOST:,.0f}",
        "entities": "how they grow by their size and by how recent they are, and how often new ones come, is set in "
        f"the warm-up and then fixed (numbers with normal priors of standard deviation {FREE:g})",
    }


def first_parameters(texts: Texts, any_antecedent: bool) -> Parameters:
    """Return parameters to begin with: annotators alike, errors that lie near, in all bins that have labels."""
    classes = 3 if (texts.target < NEW).any() else 2
    base = np.tile(np.append(np.ones(FIRST_RANK), 0.7 ** np.arange(len(LOWEST_RANK) - FIRST_RANK)), (KINDS, 1))
    base[:, BIN_NOTHING] *= (texts.target == NOTHING).any()
    base[:, BIN_PROPERTY] *= (texts.target < NOTHING).any()
    base[:, BIN_LATER] *= (texts.target > texts.of).any()
    base[0, BIN_NEW] = base[2, BIN_NOTHING] = 0
    return Parameters(
        np.full((texts.num_annotators, classes), 0.6), np.full(len(_GRID) ** classes, len(_GRID) ** -float(classes)),
        0.9 if any_antecedent else 1.0, 4 * base / base.sum(axis=1, keepdims=True), START, np.full(2, 0.8),
    )  # fmt: skip


def given(parameters: Parameters, texts: Texts, any_antecedent: bool) -> Given:
    """Return what the kernel reads of annotations and parameters."""
    mention, sensitivity, target, row = texts.mention, parameters.sensitivity, texts.target, texts.row_candidate
    right, wrong, kind = np.log(sensitivity), np.log1p(-sensitivity), kind_of(target)
    none = np.zeros((len(mention), 3))
    for own in range(sensitivity.shape[1]):
        none[:, own] = np.bincount(texts.of[row], wrong[texts.row_annotator, own], len(mention))
    later = target > texts.of
    candidate = np.zeros(len(target), CANDIDATE)
    candidate["target"], candidate["votes"] = target, texts.votes
    candidate["bin"] = np.where(later, BIN_LATER, np.array([BIN_NEW, 0, BIN_NOTHING, BIN_PROPERTY])[kind])
    end, low = mention["high"][texts.of], mention["low"][texts.of]
    candidate["available"] = np.select([later, kind == 3], [end - texts.of - 1, end - low], 1)
    gain = (right - wrong)[texts.row_annotator, np.minimum(kind, 2)[row]]
    candidate["gain"] = np.bincount(row, gain, len(target))
    if (told := texts.witness >= 0).any():                  # its errors are any other label, all alike
        others = np.log(np.maximum(np.arange(len(mention)) - mention["low"], 1))[:, None]
        right, wrong = np.log(parameters.witness), np.log1p(-parameters.witness) - others
        none[told, :2] += wrong[told]
        none[told, 2] -= others[told, 0]
        own = kind[texts.witness[told]]
        candidate["gain"][texts.witness[told]] += right[own] - wrong[told, own]
    most = int(texts.votes.max(initial=0))
    with np.errstate(divide="ignore"):
        rising = np.cumsum(np.log((parameters.base / WIDTH)[..., None] + np.arange(most)), axis=-1)
    longest = int(np.diff(texts.first).max(initial=0)) + 2
    by_size, by_number, whole_numbers = *size_terms(parameters.field, longest), np.arange(longest + 1.0)
    nearest, other = (float(np.log(max(one, _TINY))) for one in (parameters.nearest, 1 - parameters.nearest))
    choices = len(mention) + len(target) + 2                # every entity and label, to be new and to be nothing
    return Given(
        mention, candidate, texts.namer, none, nearest, other, any_antecedent, parameters.base,
        np.pad(rising, ((0, 0), (0, 0), (1, 0))), _whole(parameters.base),
        np.log(np.maximum(whole_numbers, 1)), np.cumsum(1 / np.maximum(whole_numbers, 1)) - 1, by_size, by_number,
        parameters.field, np.zeros((choices, 2), np.int64), np.zeros(choices), np.zeros(len(mention), bool),
    )  # fmt: skip


Errors = tuple[Int[np.ndarray, "label_cell 5"], Int[np.ndarray, "mention_cell 5"]]
"""How errors fall, in cells of labels and of mentions that are alike: kind, bin, labels in the bin, votes and how many
labels are so; kind, earlier mentions of other entities, whether it is the last, errors and how many mentions are so."""


def drawn(
    random: np.random.Generator, parameters: Parameters, place: np.ndarray, texts: Texts, known: Given
) -> Parameters:
    """Draw profiles, λ, and how errors fall, each given the rest.

    Parameters
    ----------
    place : records `state.PLACE`, shape ``(mention,)``; one partition of each document.
    known : of which candidates were found in that partition.
    """
    number, row, of, what = len(place), texts.row_candidate, texts.of, known.candidate["what"]
    kinds, last = kind_of(place["link"]), texts.mention["last"]
    own = np.where(kinds > 1, 0, place["ordinal"] if known.any else kinds)
    others = np.minimum(np.arange(number) - texts.mention["low"] - own, LIMIT)
    free = known.whole[kinds, others, last] > 0             # to err at all

    (annotators, classes), grid = parameters.sensitivity.shape, points(parameters.sensitivity.shape[1])
    cell = texts.row_annotator * classes + np.minimum(kinds, 2)[of[row]]
    tally = [
        np.bincount(cell[free[of[row]] & one], minlength=annotators * classes).reshape(annotators, classes)
        for one in (what[row] != ERROR, what[row] == ERROR)
    ]
    score = np.log(parameters.weight) + tally[0] @ np.log(grid).T + tally[1] @ np.log1p(-grid).T
    below = np.cumsum(np.exp(score - score.max(axis=1, keepdims=True)), axis=1)
    point = (below < (random.random(len(below)) * below[:, -1])[:, None]).sum(axis=1)
    weight = np.maximum(random.dirichlet(_HALF + np.bincount(point, minlength=len(grid))), _TINY)

    several = ((place["ordinal"] > 1) & (kinds == 1))[of]   # earlier mentions of the entity
    named = (1.0 + texts.votes[several & (what == one)].sum() for one in (NEAREST, OWN))
    nearest = random.beta(*named) if known.any else 1.0

    wrong = (what == ERROR) & free[of] & (texts.votes > 0)
    errors = np.bincount(of[wrong], texts.votes[wrong], number).astype(np.int64)
    of_labels = kinds[of], known.candidate["bin"], known.candidate["available"], texts.votes
    counted = _counted(of_labels, wrong), _counted((kinds, others, last, errors), errors > 0)
    base = _scaled(random, _base(random, parameters.base, counted), counted)

    told = np.flatnonzero((texts.witness >= 0) & (kinds < 2) & free)
    missed = what[texts.witness[told]] == ERROR
    hits = 1 + np.bincount(2 * kinds[told] + missed, minlength=4).reshape(2, 2)
    witness = np.clip(random.beta(*hits.T), _TINY, 1 - 1e-6)
    return parameters._replace(sensitivity=grid[point], weight=weight, nearest=nearest, base=base, witness=witness)


def _counted(columns: tuple[np.ndarray, ...], chosen: Bool[np.ndarray, " row"]) -> Int[np.ndarray, "cell column"]:
    """Return the distinct rows of whole numbers among those that are chosen, and how many there are of each."""
    rows = np.stack(columns, axis=1)[chosen]
    key = np.ravel_multi_index(tuple(rows.T), tuple(rows.max(axis=0, initial=0) + 1))
    _, first, number = np.unique(key, return_index=True, return_counts=True)
    return np.column_stack([rows[first], number])


def _log_errors(base: Float[np.ndarray, "kind bin"], errors: Errors) -> Float[np.ndarray, " kind"]:
    """Return the log probability of all errors of mentions of each kind."""
    (kind, bins, available, votes, labels), (own, others, last, wrong, mentions) = errors[0].T, errors[1].T
    each, whole = base[kind, bins] / available, _whole(base)[own, others, last]
    of_labels = labels * (gammaln(each + votes) - gammaln(each))
    of_mentions = mentions * (gammaln(whole) - gammaln(whole + wrong))
    # Without any error NumPy counts in whole numbers.
    return np.bincount(kind, of_labels, KINDS) + np.bincount(own, of_mentions, KINDS) + 0.0


def _scaled(random: np.random.Generator, base: Float[np.ndarray, "kind bin"], errors: Errors) -> np.ndarray:
    """Draw the θ of each kind by a random walk."""
    now = _log_errors(base, errors)
    for _ in range(_STEPS):
        other = base * np.exp(random.normal(0, _WALK, (KINDS, 1)) * random.choice([0.1, 1.0]))
        then, theta = _log_errors(other, errors), other.sum(axis=1)
        taken = (np.log(random.random(KINDS)) < then - now) & (theta > _LEAST) & (theta < _MOST)
        base, now = np.where(taken[:, None], other, base), np.where(taken, then, now)
    return base


def _base(random: np.random.Generator, base: Float[np.ndarray, "kind bin"], errors: Errors) -> np.ndarray:
    """Draw θ q, given tables and the auxiliary variables of mentions."""
    (kind, bins, available, votes, labels), mentions = errors[0].T, errors[1]
    each, tables, there = base[kind, bins] / available, np.full(base.shape, _HALF), base > 0
    for before in range(int(votes.max(initial=0))):
        sat = random.binomial(labels, np.where(votes > before, each / (each + before), 0.0))
        np.add.at(tables, (kind, bins), sat)
    own, others, last, wrong, _ = np.repeat(mentions, mentions[:, -1], axis=0).T
    one, rest = random.standard_gamma(_whole(base)[own, others, last]), random.standard_gamma(wrong)
    with np.errstate(over="ignore"):
        odds = np.minimum(rest / np.maximum(one, np.finfo(float).tiny), np.finfo(float).max)
    rates = np.zeros(base.shape)
    np.add.at(rates, own, np.log1p(odds)[:, None] * _THERE[others, last])   # - log x
    scale = random.gamma(there.sum(axis=1) / 2) / base.sum(axis=1)
    drawn_ = np.maximum(random.gamma(tables) / (scale[:, None] + np.maximum(rates, 0)), _TINY) * there
    theta = drawn_.sum(axis=1)
    return np.where(((theta > _LEAST) & (theta < _MOST))[:, None], drawn_, base)
