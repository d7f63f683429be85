r"""Links drawn record by record in JAX: the oracle of the other forms, right for some thousand records.

All forms draw from the same distribution of partitions given θ, b, μ and m,

.. math::

    p(\Pi) \propto \prod_C m\, |C|!\, \mu_{|C|} \prod_f m_f(C),

with the true values and distortions summed out of :math:`m_f`, over the partitions whose clusters are *connected* in
the graph of candidates, have no more records than μ has sizes, and no two records of one source.

A record in turn is taken out of its cluster. Where what remains is not connected, that is no such partition unless the
record comes back, so it stays where it was. Else it is alone, or joins a cluster that holds one of its neighbours and
is not full, with the weight

.. math::

    \frac{(n+1)\, \mu_{n+1}}{\mu_n} \prod_f \Bigl(b + (1 - b) \frac{r^{n_x}}{Z(C)}\Bigr), \qquad
    Z(C) = 1 + \sum_{v \in C} \theta_v (r_v^{n_v} - 1), \qquad r_v = 1 + \frac{1 - b}{b\, \theta_v},

against :math:`m \mu_1` for being alone; fields that it lacks are left out. That is its exact conditional distribution.
With error classes the ratio of the likelihoods with and without the record takes the place of the product; see
`error_classes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.models.block_linkage.gibbs import error_classes
from consilience.models.block_linkage.gibbs.hyperparameters import copy_log_weight, log_copy_ratio, members_by_name
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.rows import padded_size

__all__ = ["ScanLayout", "join_log_factors", "log_normalisers", "log_size_weights", "redraw_scan", "scan_layout"]


class ScanLayout(NamedTuple):
    """The graph of candidates as tables.

    Parameters
    ----------
    neighbour : int32, shape ``(record, degree)``; -1 beyond those that a record has.
    adjacent : shape ``(record, record)``; whether two records are neighbours.
    """

    neighbour: Int[Array, "record degree"]
    adjacent: Bool[Array, "record record"]


def scan_layout(
    first_neighbour: Int[np.ndarray, " records_and_one"], neighbour: Int[np.ndarray, " edge"]
) -> ScanLayout:
    """Return the tables, on the host; there is a table of all pairs of records, so they must not be many."""
    degree = np.diff(first_neighbour)
    record = np.repeat(np.arange(len(degree)), degree)
    table = np.full((len(degree), padded_size(int(degree.max(initial=1)))), -1, np.int32)
    table[record, np.arange(len(neighbour)) - first_neighbour[record]] = neighbour
    adjacent = np.zeros((len(degree), len(degree)), bool)
    adjacent[record, neighbour] = True
    return ScanLayout(table, adjacent)


class _Clusters(NamedTuple):
    """Partition during a sweep; a cluster has the number of one of its records, other numbers are not in use.

    Parameters
    ----------
    label : shape ``(record,)``; the number of the cluster of each.
    member : shape ``(record, size)``; records of each cluster in any order, -1 where there are fewer.
    kept : shape ``(record, …)``; what the likelihood keeps of each, as log Z of every field.
    """

    label: Any
    member: Any
    kept: Any

    def put(self, number: Array, row: Array, kept: Array) -> _Clusters:
        """Return the partition with a cluster of these records."""
        place = jnp.where(row >= 0, row, len(self.label))
        return _Clusters(
            self.label.at[place].set(number, mode="drop"),
            self.member.at[number].set(row),
            self.kept.at[number].set(kept),
        )


def redraw_scan(key: Key, state: State, problem: LinkProblem) -> Int[Array, " record"]:
    """Take each record out of its cluster in turn, and draw where it goes.

    Parameters
    ----------
    state : partition, and the hyperparameters given which it is drawn anew.
    problem : its layout is a `ScanLayout`.

    Returns
    -------
    The cluster of each record, named by its first record.
    """
    layout: ScanLayout = problem.layout
    num_records, degree = layout.neighbour.shape
    likelihood = (_hit_miss if state.class_share is None else _error_classes)(state, problem)
    log_size = log_size_weights(state.intensity, state.size_share)

    def step(clusters: _Clusters, given: tuple[Any, Any, Any]) -> tuple[_Clusters, None]:
        record, neighbour, noise = given
        home, row = clusters.label[record], clusters.member[clusters.label[record]]
        rest = jnp.where(row == record, -1, row)
        rest_number = jnp.where((home == record) & (rest >= 0).any(), rest.max(), home)
        clusters = clusters.put(rest_number, rest, likelihood.kept(rest))

        number = clusters.label[neighbour]
        rows = clusters.member[number]
        filled, size = rows >= 0, (rows >= 0).sum(axis=1)
        factor = likelihood.join(record, rows, clusters.kept[number])
        allowed = (neighbour >= 0) & (size < rows.shape[1])
        allowed &= ~(filled & (problem.source[rows] == problem.source[record])).any(axis=1)
        # A cluster is there once for each neighbour in it.
        times = (filled & layout.adjacent[record, rows]).sum(axis=1)
        weight = factor + log_size[size + 1] - log_size[size] - jnp.log(times)
        weight = jnp.append(jnp.where(allowed, weight, -jnp.inf), log_size[1])
        choice = jnp.argmax(weight + noise)
        target = jnp.append(number, record)[choice]
        target = jnp.where(_connected(rest, layout.adjacent), target, rest_number)

        row = jnp.where(target == record, -1, clusters.member[target])
        row = row.at[jnp.argmin(row >= 0)].set(record)
        return clusters.put(target, row, likelihood.kept(row)), None

    member = members_by_name(state.cluster, len(state.size_share))
    begun = _Clusters(state.cluster, member, jax.vmap(likelihood.kept)(member))
    noise = jax.random.gumbel(key, (num_records, degree + 1), state.value_share.dtype)
    record = jnp.arange(num_records, dtype=state.cluster.dtype)
    label = jax.lax.scan(step, begun, (record, layout.neighbour, noise))[0].label
    return jax.ops.segment_min(record, label, num_records)[label]


class _Likelihood(NamedTuple):
    """What a sweep asks of a likelihood.

    Parameters
    ----------
    kept : ``kept(row)`` -> what is kept of a cluster of these records, -1 where there are fewer.
    join : ``join(record, rows, kept)`` -> log likelihood of a record in each of some clusters, relative to it alone.
    """

    kept: Callable[[Array], Array]
    join: Callable[[Array, Array, Array], Array]


def _hit_miss(state: State, problem: LinkProblem) -> _Likelihood:
    """Keep log Z of each field."""
    log_share = jnp.log(state.value_share)
    log_ratio = log_copy_ratio(state.value_share, state.distortion, problem.field)

    def kept(row: Any) -> Array:
        own = _values(row, problem.value)
        return log_normalisers(own, log_share[own], log_ratio[own])

    def join(record: Any, rows: Any, kept: Any) -> Array:
        own = problem.value[record]
        return join_log_factors(own, log_ratio[own], state.distortion, _values(rows, problem.value), kept)

    return _Likelihood(kept, join)


def _error_classes(state: State, problem: LinkProblem) -> _Likelihood:
    """Keep the log weight of each member as the head."""
    share, errors = state.value_share, (state.distortion, state.class_share)

    def kept(row: Any) -> Array:
        own = _values(row, problem.value)
        return error_classes.head_log_weights(own, share[own], *errors, row >= 0)

    def join(record: Any, rows: Any, kept: Any) -> Array:
        own, others = problem.value[record], _values(rows, problem.value)
        return error_classes.join_log_factors(own, share[own], *errors, others, share[others], kept)

    return _Likelihood(kept, join)


def log_size_weights(intensity: Float[Array, ""], size_share: Float[Array, " size"]) -> Float[Array, " members"]:
    """Return log m n! μ_n of clusters of n = 0, 1, … records; zero of none, minus infinity of one too many."""
    size = np.arange(1, len(size_share) + 1)
    weight = jnp.log(intensity) + np.cumsum(np.log(size)).astype(size_share.dtype) + jnp.log(size_share)
    return jnp.concatenate([jnp.zeros(1, weight.dtype), weight, jnp.full(1, -jnp.inf, weight.dtype)])


def log_normalisers(
    value: Int[Array, "member field"], log_share: Float[Array, "member field"], log_ratio: Float[Array, "member field"]
) -> Float[Array, " field"]:
    """Return log Z of the records of a cluster.

    Parameters
    ----------
    value : of each record, -1 where it has none.
    log_share, log_ratio : log θ and log r of these values.
    """
    number = (value[:, None] == value[None]).sum(axis=1)
    # A value that several records show is there once for each of them.
    weight = copy_log_weight(log_share, log_ratio, number) - jnp.log(number)
    weight = jnp.where(value >= 0, weight, -jnp.inf)
    return logsumexp(jnp.concatenate([jnp.zeros_like(weight[:1]), weight]), axis=0)


def join_log_factors(
    value: Int[Array, " field"],
    log_ratio: Float[Array, " field"],
    distortion: Float[Array, " field"],
    members: Int[Array, "cluster member field"],
    log_normaliser: Float[Array, "cluster field"],
) -> Float[Array, " cluster"]:
    """Return the log likelihood of a record in each cluster, relative to it alone.

    Parameters
    ----------
    value : of the record, -1 where it has none.
    log_ratio : log r of these values.
    distortion : b.
    members : values of the records that are there, -1 where there are none.
    log_normaliser : log Z of each cluster.
    """
    number = (members == value).sum(axis=1)
    copied = jnp.log1p(-distortion) + number * log_ratio - log_normaliser
    return jnp.where(value >= 0, jnp.logaddexp(jnp.log(distortion), copied), 0).sum(axis=1)


def _values(row: Array, value: Int[Array, "record field"]) -> Array:
    return jnp.where((row >= 0)[..., None], value[row], -1)


def _connected(row: Array, adjacent: Bool[Array, "record record"]) -> Array:
    """Return whether records are connected among themselves; no record at all is."""
    there = row >= 0
    near = adjacent[row[:, None], row] & there & there[:, None] | jnp.eye(len(row), dtype=bool)
    for _ in range((len(row) - 1).bit_length()):
        near = (near[:, :, None] & near[None]).any(axis=1)
    first = jnp.argmax(there)
    return (near[first] | ~there).all()
