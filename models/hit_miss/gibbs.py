"""The Gibbs sampler of hit-miss: that of block-linkage with the prior of the partition and the candidates of hit-miss.

Links are drawn among the records of a component of candidates, any two of which may be together, record by record and
by one split or merger a component; see `consilience.models.block_linkage.sampler`. So the draws are those of the
density, in which all partitions of every component are summed.

The program that was published with SMERED (Steorts, Hall and Fienberg 2014) accepts splits and mergers with another
ratio. It draws true values and distortions for what it proposes, but leaves out the densities of both draws; it leaves
out the number of ways to split; and it has no factor for the number of labels. It is therefore no sampler of the model
that it states, and its numbers are no measure for those of this one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from consilience.errors import TooLarge
from consilience.models.block_linkage.enumeration import pairs_within
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.block_linkage.gibbs.sampler import linked_among, sites, start, sweep
from consilience.models.block_linkage.gibbs.truth import label_free
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.model import members_by_size
from consilience.models.hit_miss.model import prepared
from consilience.models.hit_miss.priors import hyperpriors
from consilience.models.hit_miss.simulation import draw_records
from consilience.models.interface import Gibbs
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import DrawnPartitions

_MOST_VALUES = 100_000
_MOST_PAIRS = 50
_LOOKED_AT = 200  # draws in which pairs are looked for


def prepare(resolved: Resolved) -> LinkProblem:
    """Find the components, and return records and candidates with the parameters of the priors.

    Raises
    ------
    NotConjugate : a prior is not a Beta, a Dirichlet or a Gamma distribution.
    TooLarge : there are so many different values that draws of their shares would fill the memory.
    """
    data, own = resolved.data, resolved.settings
    if data.num_values > _MOST_VALUES:
        raise TooLarge(
            f"the fields have {data.num_values:,} different values, and how common each is would be drawn; at most "
            f"{_MOST_VALUES:,} are allowed: leave out fields that differ in nearly every record, or use block-linkage"
        )
    parts = prepared(resolved).data
    ends = [np.asarray(part)[:, pairs_within(part.shape[1])] for part in members_by_size(parts)]
    first, second = np.concatenate([np.zeros((2, 0), int), *(each.swapaxes(0, 1).reshape(2, -1) for each in ends)], 1)
    pairs = CandidatePairs(first, second, np.zeros(len(first))).allowed(np.asarray(data.source), own.restriction)
    prior, concentration = hyperpriors(resolved), np.asarray(resolved.given.value_share, float)
    problem = linked_among(data, pairs, prior, concentration, own.restriction)
    return dataclasses.replace(problem, prior=own.prior, splits=sum(parts.num_components))


def state_at(values: Mapping[str, Any], resolved: Resolved, problem: LinkProblem) -> State:
    """Return the state at true values."""
    dtype, known = problem.distortion.dtype, {"cluster": np.asarray(values["cluster"], np.int32)}
    limits = np.finfo(dtype)
    for site in State._fields[1:]:
        if site in values:
            known[site] = np.clip(np.asarray(values[site], dtype), limits.tiny, None)
    return State(**known | {"distortion": np.minimum(known["distortion"], 1 - limits.eps)})


def redraw(random: np.random.Generator, state: State, problem: LinkProblem) -> tuple[State, LinkProblem]:
    """Return state and problem with the records drawn anew given who is together, θ and b; what misses does so."""
    first_value = np.searchsorted(problem.field, np.arange(len(problem.distortion) + 1))
    value = draw_records(
        random, np.asarray(state.cluster), problem.value.T, first_value, np.asarray(state.value_share, float),
        np.asarray(state.distortion, float),
    )  # fmt: skip
    return state, dataclasses.replace(problem, value=np.ascontiguousarray(value.T))


def log_likelihood(state: State, problem: LinkProblem) -> float:
    """Return the log probability of the records given the partition, true values and distortions summed out."""
    cluster, value = np.asarray(state.cluster), problem.value
    share = np.append(np.asarray(state.value_share, float), 1)  # of what is missing
    total, size = np.log(share[value]).sum(), np.bincount(cluster)[cluster]
    for number in np.unique(size[size > 1]):
        record = np.flatnonzero(size == number)
        members = record[np.argsort(cluster[record], kind="stable")].reshape(-1, number)
        values = value[members].transpose(1, 2, 0)
        distortion = np.asarray(state.distortion, float)
        total += LIKELIHOODS["hit-miss"].log_marginals(values, share[values], distortion, np)[-1].sum()
    return float(total)


GIBBS = Gibbs(
    prepare=prepare, start=start, sweep=sweep, sites=sites, at=state_at, redraw=redraw, log_likelihood=log_likelihood,
    host=True,
)  # fmt: skip
"""The sampler, for the driver."""


def name_free(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Return hyperparameters, numbers of entities and of pairs, and whether the most doubtful pairs are together.

    Parameters
    ----------
    samples : draws ``(chain, draw, …)`` by site.
    """
    if "cluster" not in samples:
        return dict(samples)
    cluster = np.asarray(samples["cluster"])
    first, second = _doubtful(cluster.reshape(-1, cluster.shape[2]))
    return label_free(samples) | {"together": (cluster[:, :, first] == cluster[:, :, second]).astype(float)}


def _doubtful(cluster: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs that are most nearly as often together as apart, among those that ever are together."""
    if not len(cluster):
        return np.zeros(0, int), np.zeros(0, int)
    some = np.unique(np.linspace(0, len(cluster) - 1, _LOOKED_AT).round().astype(int))
    pairs = DrawnPartitions(cluster[some]).pairs()
    doubtful = np.flatnonzero(pairs.probability < 1)
    order = np.argsort(np.abs(pairs.probability[doubtful] - 0.5), kind="stable")
    chosen = np.sort(doubtful[order[:_MOST_PAIRS]])
    return pairs.first[chosen], pairs.second[chosen]
