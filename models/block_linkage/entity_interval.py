"""The number of entities after EM, by a short Gibbs run: an interval that holds links and hyperparameters both.

EM fixes the hyperparameters at an estimate, and looks at the pairs above a threshold alone. Laplace's method mends most
of that for any data. For data that are not too large `num_entities` comes from two chains on the wide graph of the
Gibbs sampler. One starts with every record alone, the other at what EM found; while they disagree they go on, twice as
long each time. Entities and pairs stay those of EM.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience.arrays import Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.error_classes import ErrorClasses
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.block_linkage.gibbs.sampler import prepare, start, sweep, wide_threshold
from consilience.models.block_linkage.likelihoods import HitMiss
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.diagnostics import convergence
from consilience.models.intervals import ends
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import CountedClusters, DrawnPartitions
from consilience.rounding import written

MOST_RECORDS, MOST_PAIRS = 10_000, 5_000_000    # 11 CPU seconds; of 50,000 records it would take 150
_MOST_WITH_CLASSES = 2_000                      # of error classes a run takes six times as long
_MOST_VALUES = 100_000                          # their shares are drawn in each sweep
_WARMUP, _DRAWS, _TIMES_LONGER = 100, 250, (1, 2, 4)
_MOST_R_HAT = 1.05
_FEW_LARGE = 0.5        # entities of more records than the run allows that leave its answer as it is


def interval_of_entities(
    resolved: Resolved, found: Linkage, estimate: Int[np.ndarray, " record"], larger: float, seed: Any
) -> CountedClusters | None:
    """Return draws of the number of entities by Gibbs sampling of links and hyperparameters, the same for a seed.

    Parameters
    ----------
    resolved : records, settings and priors, as EM took them.
    found : what EM ended with.
    estimate : entities by EM; one chain starts there.
    larger : expected number of entities of more than ``largest`` records.
    seed : of `numpy.random.default_rng`, one whole number or several.

    Returns
    -------
    None where there is no such run: of more than 10,000 records (2,000 with error classes), 100,000 values or five
    million pairs, of likelihoods or fields that the Gibbs sampler does not take, of labels, weights and large entities.
    """
    data, settings = resolved.data, resolved.settings
    with_classes = len(found.class_share) > 0
    likelihood = resolved.settings.likelihood
    known = isinstance(likelihood, str) or type(likelihood) in (HitMiss, ErrorClasses)
    most = _MOST_WITH_CLASSES if with_classes else MOST_RECORDS
    if data.num_records > most or data.num_values > _MOST_VALUES or larger > _FEW_LARGE or not known:
        return None
    chosen = "error-classes" if with_classes else "hit-miss"
    if isinstance(likelihood, str) and likelihood not in ("auto", chosen):
        return None
    try:
        problem = prepare(resolved.replace(settings=dataclasses.replace(settings, likelihood=chosen)))
    except UnsupportedRequest:  # similar fields, labels, or more pairs than there is room for
        return None
    if len(problem.neighbour) > 2 * MOST_PAIRS:
        return None
    clusters, r_hat = _sampled(problem, found, estimate, seed)
    drawn = DrawnPartitions(clusters.reshape(-1, data.num_records))
    number = drawn.num_clusters()
    size = convergence(number.reshape(2, -1)).ess_bulk
    doubt = f"the chains disagree, R-hat {r_hat:.2f}; " if r_hat > _MOST_R_HAT else ""
    pairs = "the pairs given"
    if data.candidate is None:
        pairs = f"pairs with log odds above {written(-wide_threshold(data, settings.wide), 'g')}"
    basis = (
        f"{doubt}{pairs}; Gibbs sampling of links and of what is learned of errors, 2 chains of "
        f"{clusters.shape[1]:,} draws, worth {float(size):,.0f} independent ones"
    )
    return CountedClusters(number, drawn.size_counts(), False, basis, partitions=drawn)


def disagree(sampled: Int[np.ndarray, " draw"], by_em: tuple[float, float]) -> bool:
    """Return whether draws of the number of entities are about another explanation of the records than that of EM.

    Of a skewed posterior the mode is outside the interval by little; this is by more than its width.

    Parameters
    ----------
    sampled : the draws.
    by_em : the expected number by EM, and with the links that the threshold hides, NaN where nobody knows.
    """
    low, high = np.quantile(sampled, ends())
    away = [max(low - number, number - high) for number in by_em if not np.isnan(number)]
    return bool(min(away) > max(high - low, 1))


def _sampled(
    problem: LinkProblem, found: Linkage, estimate: Int[np.ndarray, " record"], seed: Any
) -> tuple[Int[np.ndarray, "chain draw record"], float]:
    """Return the entities of two chains that started apart, and R-hat of their number."""
    random = [np.random.default_rng([*np.atleast_1d(seed).tolist(), chain]) for chain in range(2)]
    states = [start(random[0], problem), _started_at(found, estimate, problem)]
    for chain in range(2):
        for _ in range(_WARMUP):
            states[chain] = sweep(random[chain], states[chain], problem)
    for times in _TIMES_LONGER:
        clusters = np.empty((2, times * _DRAWS, len(problem.value)), np.int32)
        number = np.empty(clusters.shape[:2], int)
        for chain in range(2):
            for draw in range(times * _DRAWS):
                states[chain] = sweep(random[chain], states[chain], problem)
                clusters[chain, draw] = states[chain].cluster
                number[chain, draw] = np.count_nonzero(np.bincount(states[chain].cluster))
        r_hat = float(convergence(number).r_hat)
        if not r_hat > _MOST_R_HAT:
            break
    return clusters, r_hat


def _started_at(found: Linkage, estimate: Int[np.ndarray, " record"], problem: LinkProblem) -> State:
    """Return what EM found as a state; entities that the wide graph does not connect are several."""
    number, largest = len(problem.value), len(problem.size_share)
    one = np.repeat(np.arange(number), np.diff(problem.first_neighbour))
    other = np.asarray(problem.neighbour)
    # Of entities that are too large every record is alone.
    together = (estimate[one] == estimate[other]) & (np.bincount(estimate, minlength=number)[estimate[one]] <= largest)
    edges = np.ones(int(together.sum()), np.int8), (one[together], other[together])
    _, piece = connected_components(coo_array(edges, shape=(number, number)), directed=False)
    first = np.unique(piece, return_index=True)[1]
    sizes = _padded(np.asarray(found.size_share, float)[:largest], largest)
    dtype = problem.size_share.dtype
    return State(
        first[piece].astype(np.int32), found.value_share.astype(dtype), found.distortion.astype(dtype),
        np.asarray(found.intensity, dtype), sizes.astype(dtype),
        found.class_share.astype(dtype) if len(found.class_share) else None,
        found.source_share.astype(dtype) if len(found.source_share) else None,
    )  # fmt: skip


def _padded(share: Float[np.ndarray, " some"], length: int) -> Float[np.ndarray, " size"]:
    """Return shares of all sizes, of which none is zero."""
    share = np.maximum(np.pad(share, (0, length - len(share))), np.finfo(np.float32).tiny)
    return share / share.sum()
