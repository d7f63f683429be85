r"""Parameters that documents share, drawn given one partition of each: profiles, λ, and how errors fall.

The profile of an annotator is a point of a grid of sensitivities to new and to old mentions, and to mentions that are
neither where such labels occur: midpoints .05, .15, …, .95 in each. The weights of the points are
:math:`\mathrm{Dirichlet}(1/2, …)`. A grid holds dependence and several modes, is conjugate, and needs no tuning.

The base q of errors is :math:`\mathrm{Dirichlet}(1/2, …)` over bins, and log θ is flat from log(1/2) to log(2000), for
each kind of mention. Equivalently the θ q of bins are independent :math:`\mathrm{Gamma}(1/2, r)` with a flat log r.
Given the numbers of tables of Pólya's urn (Antoniak 1974) and, of each mention with errors, a variable
:math:`x \sim \mathrm{Beta}(\theta Q, E)`, which makes an exponential of Q of its normaliser, these are Gamma variables
again, whatever bins a mention lacks. A random walk scales each θ besides: tables are many where errors are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from consilience.arrays import Float
from consilience.models.mpa.partition.annotations import (
    BIN_LATER,
    BIN_NEW,
    BIN_NOTHING,
    BIN_PROPERTY,
    CANDIDATE,
    ERROR,
    FIRST_RANK,
    KINDS,
    LIMIT,
    LOWEST_RANK,
    NEAREST,
    OWN,
    WIDTH,
    Given,
    bins_of_ranks,
    error_tables,
    ranked_bins,
)  # fmt: skip
from consilience.models.mpa.partition.field import START, size_terms
from consilience.models.mpa.partition.state import State, Texts
from consilience.models.truth.chains import NEW, NOTHING

_GRID = (np.arange(10) + 0.5) / 10
_HALF = 0.5  # of both Dirichlet priors
_LEAST, _MOST = 0.5, 2000.0  # of θ
_WALK, _STEPS = 0.3, 3  # of log θ
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


def points(classes: int) -> Float[np.ndarray, "point class"]:
    """Return the points of the grid, of 2 or 3 classes."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*[_GRID] * classes, indexing="ij")], axis=1)


def possible_bins(texts: Texts) -> np.ndarray:
    """Return which bins errors of each kind of mention may be in, ``(kind, bin)``."""
    there = np.ones((KINDS, len(LOWEST_RANK)), bool)
    there[:, BIN_NOTHING], there[:, BIN_PROPERTY] = (texts.target == NOTHING).any(), (texts.target < NOTHING).any()
    there[:, BIN_LATER] = (texts.target > texts.of).any()
    there[0, BIN_NEW] = there[2, BIN_NOTHING] = False
    return there


def first_parameters(texts: Texts, num_annotators: int, any_antecedent: bool) -> Parameters:
    """Return parameters to begin with: annotators alike, errors that lie near."""
    classes = 3 if (texts.target < NEW).any() else 2
    base = possible_bins(texts) * np.append(np.ones(FIRST_RANK), 0.7 ** np.arange(len(LOWEST_RANK) - FIRST_RANK))
    return Parameters(
        np.full((num_annotators, classes), 0.6), np.full(len(_GRID) ** classes, len(_GRID) ** -float(classes)),
        0.9 if any_antecedent else 1.0, 4 * base / base.sum(axis=1, keepdims=True), START,
        np.full(2, 0.8),
    )  # fmt: skip


def given(parameters: Parameters, texts: Texts, any_antecedent: bool) -> Given:
    """Return what the kernel reads of annotations and parameters."""
    sensitivity, longest = parameters.sensitivity, int(np.diff(texts.first).max(initial=0)) + 2
    number, row = len(texts.mention), texts.row_candidate
    right, wrong = np.log(sensitivity), np.log1p(-sensitivity)
    of_label = np.where(texts.target >= 0, 1, np.where(texts.target == NEW, 0, 2))[row]
    none = np.zeros((number, 3))
    for own in range(sensitivity.shape[1]):
        none[:, own] = np.bincount(texts.of[row], wrong[texts.row_annotator, own], number)
    candidate = np.zeros(len(texts.target), CANDIDATE)
    candidate["target"], candidate["votes"] = texts.target, texts.votes
    candidate["gain"] = np.bincount(row, (right - wrong)[texts.row_annotator, of_label], len(candidate))
    if (told := texts.witness >= 0).any():                  # its errors are any other label, all alike
        others = np.log(np.maximum(np.arange(number) - texts.mention["low"], 1))[:, None]
        right, wrong = np.log(parameters.witness), np.log1p(-parameters.witness) - others
        none[told, :2] += wrong[told]
        none[told, 2] -= others[told, 0]
        kind = np.minimum(texts.target[texts.witness[told]], 0) + 1
        candidate["gain"][texts.witness[told]] += right[kind] - wrong[told, kind]
    rising, whole = error_tables(parameters.base, int(texts.votes.max(initial=0)))
    by_size, by_number, whole_numbers = *size_terms(parameters.field, longest), np.arange(longest + 1.0)
    nearest, other = (float(np.log(max(one, _TINY))) for one in (parameters.nearest, 1 - parameters.nearest))
    return Given(
        texts.mention, candidate, texts.namer, none, nearest, other, any_antecedent, parameters.base, rising, whole,
        bins_of_ranks(longest), LOWEST_RANK, WIDTH, np.log(np.maximum(whole_numbers, 1)),
        np.cumsum(1 / np.maximum(whole_numbers, 1)) - 1, by_size, by_number, float(parameters.field[1]),
        float(parameters.field[4]), float(parameters.field[5]), bool((texts.target == NOTHING).any()),
    )  # fmt: skip


class Counts(NamedTuple):
    """What the parameters are drawn from.

    Parameters
    ----------
    right, wrong : shape ``(annotator, class)``; annotations.
    witness : shape ``(class, 2)``; how often a system was right and wrong.
    nearest, own : right annotations of mentions with several earlier ones of their entity.
    error : int64, shape ``(cell, 4)``; kind, bin, labels in the bin, votes; ``error_number`` labels are alike in these.
    mention : int64, shape ``(cell, 4)``; kind, earlier mentions of other entities, whether it is the last, errors;
        likewise.
    """

    right: np.ndarray
    wrong: np.ndarray
    witness: np.ndarray
    nearest: float
    own: float
    error: np.ndarray
    error_number: np.ndarray
    mention: np.ndarray
    mention_number: np.ndarray


def counted(state: State, found: np.ndarray, texts: Texts, known: Given, shape: tuple[int, int]) -> Counts:
    """Count what annotations are, given the partitions of the first rung.

    Parameters
    ----------
    found : records `annotations.FOUND` of that rung.
    shape : annotators and classes.
    """
    place, number, row, of = state.place[0], len(texts.mention), texts.row_candidate, texts.of
    kinds = np.select([place["link"] >= 0, place["link"] == NEW, place["link"] == NOTHING], [1, 0, 2], 3)
    own = np.where(kinds > 1, 0, place["ordinal"] if known.any else kinds)
    others = np.minimum(np.arange(number) - texts.mention["low"] - own, LIMIT)
    last = (np.arange(number) + 1 == texts.mention["high"]).astype(int)
    free = known.whole[kinds, others] - last * known.base[kinds, BIN_LATER] > 0  # to err at all
    cell = texts.row_annotator * shape[1] + np.minimum(kinds, 2)[of[row]]
    right, counts = found["what"][row] != ERROR, free[of[row]]
    tallies = [np.bincount(cell[counts & one], minlength=shape[0] * shape[1]).reshape(shape) for one in (right, ~right)]
    several = ((place["ordinal"] > 1) & (kinds == 1))[of]
    nearest, other = (float(texts.votes[several & (found["what"] == one)].sum()) for one in (NEAREST, OWN))
    wrong = (found["what"] == ERROR) & free[of] & (texts.votes > 0)
    errors = np.bincount(of[wrong], texts.votes[wrong], number).astype(np.int64)
    of_errors = np.stack([kinds[of], found["bin"], found["available"], texts.votes], axis=1)[wrong]
    of_mentions = np.stack([kinds, others, last, errors], axis=1)[errors > 0]
    told = np.flatnonzero((texts.witness >= 0) & (kinds < 2) & free)
    hit = found["what"][texts.witness[told]] != ERROR
    witness = np.bincount(2 * kinds[told] + ~hit, minlength=4).reshape(2, 2)
    return Counts(tallies[0], tallies[1], witness, nearest, other, *_grouped(of_errors), *_grouped(of_mentions))


def _grouped(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of whole numbers, and how many there are of each."""
    if not len(rows):
        return rows, np.zeros(0, np.int64)
    key = np.ravel_multi_index(tuple(rows.T), tuple(rows.max(axis=0) + 1))
    _, first, number = np.unique(key, return_index=True, return_counts=True)
    return rows[first], number


def drawn(
    random: np.random.Generator, parameters: Parameters, counts: Counts, there: np.ndarray, any_antecedent: bool
) -> Parameters:
    """Draw profiles, λ, and how errors fall, each given the rest.

    Parameters
    ----------
    there : of `possible_bins`.
    """
    grid = points(parameters.sensitivity.shape[1])
    score = np.log(parameters.weight) + counts.right @ np.log(grid).T + counts.wrong @ np.log1p(-grid).T
    below = np.cumsum(np.exp(score - score.max(axis=1, keepdims=True)), axis=1)
    point = (below < (random.random(len(below)) * below[:, -1])[:, None]).sum(axis=1)
    weight = np.maximum(random.dirichlet(_HALF + np.bincount(point, minlength=len(grid))), _TINY)
    nearest = random.beta(1 + counts.nearest, 1 + counts.own) if any_antecedent else 1.0
    base = _scaled(random, _base(random, parameters.base, counts, there), counts)
    witness = np.clip(random.beta(*(1 + counts.witness.T)), _TINY, 1 - 1e-6)
    return parameters._replace(sensitivity=grid[point], weight=weight, nearest=nearest, base=base, witness=witness)


def _wholes(base: np.ndarray, counts: Counts) -> np.ndarray:
    """Return θ Q of cells of mentions."""
    kind, others, last, _ = counts.mention.T
    return (base @ ranked_bins().T)[kind, others] - last * base[kind, BIN_LATER]


def log_errors(base: Float[np.ndarray, "kind bin"], counts: Counts) -> Float[np.ndarray, " kind"]:
    """Return the log probability of all errors of mentions of each kind."""
    kind, bins, available, votes = counts.error.T
    each, whole, errors = base[kind, bins] / available, _wholes(base, counts), counts.mention[:, 3]
    of_labels = counts.error_number * (gammaln(each + votes) - gammaln(each))
    of_mentions = counts.mention_number * (gammaln(whole) - gammaln(whole + errors))
    # Without any error NumPy counts in whole numbers.
    return np.bincount(kind, of_labels, KINDS) + np.bincount(counts.mention[:, 0], of_mentions, KINDS) + 0.0


def _scaled(random: np.random.Generator, base: np.ndarray, counts: Counts) -> np.ndarray:
    """Draw the θ of each kind by a random walk."""
    now = log_errors(base, counts)
    for _ in range(_STEPS):
        other = base * np.exp(random.normal(0, _WALK, (KINDS, 1)) * random.choice([0.1, 1.0]))
        then, theta = log_errors(other, counts), other.sum(axis=1)
        taken = (np.log(random.random(KINDS)) < then - now) & (theta > _LEAST) & (theta < _MOST)
        base, now = np.where(taken[:, None], other, base), np.where(taken, then, now)
    return base


def _base(random: np.random.Generator, base: np.ndarray, counts: Counts, there: np.ndarray) -> np.ndarray:
    """Draw θ q, given tables and the auxiliary variables of mentions."""
    kind, bins, available, votes = counts.error.T
    each, tables = base[kind, bins] / available, np.full(base.shape, _HALF)
    for before in range(int(votes.max(initial=0))):
        sat = random.binomial(counts.error_number, np.where(votes > before, each / (each + before), 0.0))
        np.add.at(tables, (kind, bins), sat)
    own, others, last, errors = np.repeat(counts.mention, counts.mention_number, axis=0).T
    whole = np.repeat(_wholes(base, counts), counts.mention_number)
    one, rest = random.standard_gamma(whole), random.standard_gamma(errors)
    with np.errstate(over="ignore"):
        odds = np.minimum(rest / np.maximum(one, np.finfo(float).tiny), np.finfo(float).max)
    rate = np.log1p(odds)  # - log x
    rates = np.zeros(base.shape)
    np.add.at(rates, own, rate[:, None] * ranked_bins()[others])
    rates[:, BIN_LATER] -= np.bincount(own, rate * last, KINDS)
    scale = random.gamma(there.sum(axis=1) / 2) / base.sum(axis=1)
    drawn_ = np.maximum(random.gamma(tables) / (scale[:, None] + np.maximum(rates, 0)), _TINY) * there
    theta = drawn_.sum(axis=1)
    return np.where(((theta > _LEAST) & (theta < _MOST))[:, None], drawn_, base)
