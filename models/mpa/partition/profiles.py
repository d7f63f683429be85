r"""Parameters that documents share, drawn given one partition of each: profiles, λ, and how errors fall.

The profile of an annotator is a point of a grid of sensitivities to new and to old mentions, and to mentions that are
neither where such labels occur: midpoints .05, .15, …, .95 in each. The weights of the points are
:math:`\mathrm{Dirichlet}(1/2, …)`. A grid holds dependence and several modes, is conjugate, and needs no tuning.

The base q of errors is :math:`\mathrm{Dirichlet}(1/2, …)` over bins, for each kind of mention. Given the numbers of
tables of Pólya's urn (Antoniak 1974) its conditional is a Dirichlet distribution, but for mentions that lack labels in
some bin: a draw is accepted with what these make of it. log θ has a flat prior from log(1/2) to log(2000).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from consilience.arrays import Float
from consilience.models.mpa.partition.annotations import (
    BIN_LATER, BIN_NEW, BIN_NOTHING, BIN_PROPERTY, ERROR, FIRST_RANK, KINDS, LIMIT, LOWEST_RANK, NEAREST, OWN, RANKS,
    Given, bins_of_ranks, error_tables, outcomes,
)  # fmt: skip
from consilience.models.mpa.partition.field import START, size_terms
from consilience.models.mpa.partition.state import State, Texts
from consilience.models.truth.chains import NEW, NOTHING

_GRID = (np.arange(10) + 0.5) / 10
_HALF = 0.5                             # of both Dirichlet priors
_LEAST, _MOST = 0.5, 2000.0             # of θ
_WALK, _STEPS = 0.3, 5                  # of log θ
_TINY = 1e-12                           # a weight may underflow


class Parameters(NamedTuple):
    """What documents share.

    Parameters
    ----------
    sensitivity : shape ``(annotator, class)``; of new and old mentions, and of those that are neither.
    weight : shape ``(point,)``; of the grid.
    nearest : λ.
    concentration : θ.
    base : shape ``(kind, bin)``; q, 0 of bins that have no part.
    field : of `field.PARAMETERS`.
    """

    sensitivity: Float[np.ndarray, "annotator class"]
    weight: Float[np.ndarray, " point"]
    nearest: float
    concentration: float
    base: Float[np.ndarray, "kind bin"]
    field: Float[np.ndarray, " parameter"]


def points(classes: int) -> Float[np.ndarray, "point class"]:
    """Return the points of the grid, of 2 or 3 classes."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*[_GRID] * classes, indexing="ij")], axis=1)


def possible_bins(texts: Texts) -> np.ndarray:
    """Return which bins errors of each kind of mention may be in, ``(kind, bin)``."""
    of = np.repeat(np.arange(len(texts.position)), np.diff(texts.begin))
    there = np.ones((KINDS, len(LOWEST_RANK)), bool)
    there[:, BIN_NOTHING], there[:, BIN_PROPERTY] = texts.unreferring, (texts.target < NOTHING).any()
    there[:, BIN_LATER] = (texts.target > of).any()
    there[0, BIN_NEW] = there[2, BIN_NOTHING] = False
    return there


def first_parameters(texts: Texts, num_annotators: int, any_antecedent: bool) -> Parameters:
    """Return parameters to begin with: annotators alike, errors that lie near."""
    there = possible_bins(texts)
    classes = 3 if (texts.target < NEW).any() else 2
    size = len(_GRID) ** classes
    # A third of a bin's weight a step away from the mention.
    base = there * np.append(np.ones(FIRST_RANK), 0.7 ** np.arange(len(RANKS)))
    return Parameters(
        np.full((num_annotators, classes), 0.6), np.full(size, 1 / size), 0.9 if any_antecedent else 1.0, 4.0,
        base / base.sum(axis=1, keepdims=True), START,
    )  # fmt: skip


def given(parameters: Parameters, texts: Texts, any_antecedent: bool) -> Given:
    """Return what the kernel reads of parameters."""
    sensitivity, longest = parameters.sensitivity, int(np.diff(texts.first).max(initial=0)) + 2
    number, classes = len(texts.position), 3
    right, wrong = np.log(sensitivity), np.log1p(-sensitivity)
    mention = np.repeat(np.arange(number), np.diff(texts.begin))[texts.row_candidate]
    of_label = _class_of(texts.target)[texts.row_candidate]
    none = np.zeros((classes, number))
    for own in range(sensitivity.shape[1]):
        none[own] = np.bincount(mention, wrong[texts.row_annotator, own], number)
    gain = np.bincount(texts.row_candidate, (right - wrong)[texts.row_annotator, of_label], len(texts.target))
    most = int(texts.votes.max(initial=0))
    base, rising, whole = error_tables(parameters.concentration, parameters.base, most)
    by_size, by_number = size_terms(parameters.field, longest)
    return Given(
        none, gain, np.log(max(parameters.nearest, _TINY)), np.log(max(1 - parameters.nearest, _TINY)), any_antecedent,
        base, rising, whole, bins_of_ranks(longest), np.log(np.maximum(np.arange(longest + 1.0), 1)), by_size,
        by_number, float(parameters.field[1]), float(parameters.field[4]), float(parameters.field[5]),
    )  # fmt: skip


def _class_of(target: np.ndarray) -> np.ndarray:
    return np.where(target >= 0, 1, np.where(target == NEW, 0, 2))


class Counts(NamedTuple):
    """What the parameters are drawn from.

    Parameters
    ----------
    right, wrong : shape ``(annotator, class)``; annotations.
    nearest, own : right annotations of mentions with several earlier ones of their entity.
    error : int64, shape ``(cell, 4)``; kind, bin, labels in the bin, votes; ``number`` of labels with these.
    mention : int64, shape ``(cell, 4)``; kind, `annotations.foreign`, whether it is the last, errors; likewise.
    """

    right: np.ndarray
    wrong: np.ndarray
    nearest: float
    own: float
    error: np.ndarray
    error_number: np.ndarray
    mention: np.ndarray
    mention_number: np.ndarray


def counted(state: State, texts: Texts, known: Given, shape: tuple[int, int]) -> Counts:
    """Count what annotations are, given the partitions of the first rung.

    Parameters
    ----------
    shape : annotators and classes.
    """
    number, cells = len(texts.position), len(texts.target)
    what, bins, available = (np.empty(cells, np.int64) for _ in range(3))
    kinds, others, counts = np.empty(number, np.int64), np.empty(number, np.int64), np.empty(number, bool)
    outcomes(state.link[0], state.ordinal[0], texts, known, what, bins, available, kinds, others, counts)
    mention = np.repeat(np.arange(number), np.diff(texts.begin))
    row, of_row = texts.row_candidate, mention[texts.row_candidate]
    cell = texts.row_annotator * shape[1] + np.minimum(kinds, 2)[of_row]
    right, there = what[row] != ERROR, counts[of_row]
    tallies = [np.bincount(cell[there & one], minlength=shape[0] * shape[1]).reshape(shape) for one in (right, ~right)]
    several = (state.ordinal[0] > 1)[mention]
    nearest, own = (texts.votes[several & (what == one)].sum() for one in (NEAREST, OWN))
    wrong = (what == ERROR) & counts[mention]
    errors = np.bincount(mention[wrong], texts.votes[wrong], number).astype(np.int64)
    last = np.append(texts.document[1:] != texts.document[:-1], True)
    of_errors = np.stack([kinds[mention], bins, available, texts.votes], axis=1)[wrong]
    of_mentions = np.stack([kinds, np.minimum(others, LIMIT), last, errors], axis=1)[errors > 0]
    return Counts(*tallies, float(nearest), float(own), *_grouped(of_errors), *_grouped(of_mentions))


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
    score -= score.max(axis=1, keepdims=True)
    below = np.cumsum(np.exp(score), axis=1)
    point = (below < (random.random(len(below)) * below[:, -1])[:, None]).sum(axis=1)
    weight = np.maximum(random.dirichlet(_HALF + np.bincount(point, minlength=len(grid))), _TINY)
    nearest = random.beta(1 + counts.nearest, 1 + counts.own) if any_antecedent else 1.0
    concentration = _concentration(random, parameters.concentration, parameters.base, counts)
    base = _base(random, concentration, parameters.base, counts, there)
    return parameters._replace(
        sensitivity=grid[point], weight=weight, nearest=nearest, concentration=concentration, base=base
    )


def _log_errors(concentration: float, base: np.ndarray, counts: Counts) -> float:
    """Return the log probability of all errors."""
    kind, bins, available, votes = counts.error.T
    each = concentration * base[kind, bins] / available
    of_labels = counts.error_number @ (gammaln(each + votes) - gammaln(each))
    return float(of_labels + _log_wholes(concentration, base, counts))


def _log_wholes(concentration: float, base: np.ndarray, counts: Counts) -> float:
    """Return the part of it that the bins of mentions make."""
    kind, others, last, errors = counts.mention.T
    of_ranks = (LOWEST_RANK[None] <= np.arange(LIMIT + 1)[:, None]).astype(float)
    whole = concentration * ((base @ of_ranks.T)[kind, others] - last * base[kind, BIN_LATER])
    return float(counts.mention_number @ (gammaln(whole) - gammaln(whole + errors)))


def _concentration(random: np.random.Generator, value: float, base: np.ndarray, counts: Counts) -> float:
    now = _log_errors(value, base, counts)
    for _ in range(_STEPS):
        other = value * np.exp(random.normal(0, _WALK))
        if _LEAST < other < _MOST:
            then = _log_errors(other, base, counts)
            if np.log(random.random()) < then - now:
                value, now = other, then
    return float(value)


def _base(
    random: np.random.Generator, concentration: float, base: np.ndarray, counts: Counts, there: np.ndarray
) -> np.ndarray:
    """Draw q given the numbers of tables, and accept what mentions without some bins allow."""
    kind, bins, available, votes = counts.error.T
    each = concentration * base[kind, bins] / available
    tables = np.zeros(len(each))
    for before in range(int(votes.max(initial=0))):
        sat = random.binomial(counts.error_number, np.where(votes > before, each / (each + before), 0.0))
        tables += sat
    total = np.zeros(base.shape)
    np.add.at(total, (kind, bins), tables)
    other = np.zeros(base.shape)
    for own in range(KINDS):
        # A sum of one draws only from bins that there are.
        drawn_ = random.standard_gamma(np.where(there[own], _HALF + total[own], 1.0)) * there[own]
        other[own] = np.maximum(drawn_ / drawn_.sum(), _TINY) * there[own]
    gain = _log_wholes(concentration, other, counts) - _log_wholes(concentration, base, counts)
    return other if np.log(random.random()) < gain else base
