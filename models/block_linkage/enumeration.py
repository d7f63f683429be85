"""All partitions of the records of small components: how probable each is, and each pair.

A component of n records has 2ⁿ - 1 subsets and Bell(n) partitions (203 of 6 records, 877 of 7). Subsets are numbered by
the bits of their members, partitions in the order of `set_partitions`. The component is the last axis of every array,
so that the arithmetic runs over contiguous numbers. The same lines run in NumPy, by chunks that stay in the cache, and
in JAX, where they can be differentiated, or divided among devices: components need nothing of each other. Nothing here
is a BLAS product: the number of threads changes nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from consilience.arrays import Array, Bool, Float, Int
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.by_source import log_factors
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.settings import setting

# As many components as keep the arrays in the cache.
_CHUNK = {2: 8192, 3: 8192, 4: 1024, 5: 256, 6: 256, 7: 64, 8: 32}
_SMALLEST_CHUNK = 16

RESTRICTIONS = ("none", "across", "within")
"""Which records may be together: all; only those of different sources; only those of one source."""


def restriction_setting() -> Any:
    """Declare the setting that says which records may be together."""
    return setting(
        "none", "across: no two records of a file in an entity; within: only records of one file", choices=RESTRICTIONS
    )


class Enumerated(NamedTuple):
    """What enumeration says of components of one size n.

    Parameters
    ----------
    log_evidence : shape ``(component,)``; log of the sum over partitions, relative to all records apart.
    partition : shape ``(partition, component)``; probabilities.
    pair : shape ``(pair, component)``; probability that two records are together, pairs as in `pairs_within`.
    sizes : shape ``(size, component)``; expected number of clusters of 1, 2, …, n records.
    """

    log_evidence: Float[Array, " component"]
    partition: Float[Array, "partition component"]
    pair: Float[Array, "pair component"]
    sizes: Float[Array, "size component"]


@functools.cache
def set_partitions(num_records: int) -> Int[np.ndarray, "partition record"]:
    """Return all set partitions as labels 0, 1, … in order of first appearance; the first has all records together."""
    labels = np.zeros((1, 1), np.int8)
    for _ in range(num_records - 1):
        choices = labels.max(axis=1) + 2
        start = np.repeat(np.cumsum(choices) - choices, choices)
        new = (np.arange(choices.sum()) - start).astype(np.int8)
        labels = np.concatenate([np.repeat(labels, choices, axis=0), new[:, None]], axis=1)
    return labels


@functools.cache
def first_places(num_records: int) -> Int[np.ndarray, "partition record"]:
    """Return of each partition, and each record, the place of the first record in its cluster."""
    labels = set_partitions(num_records)
    return (labels[:, :, None] == labels[:, None]).argmax(axis=2)


@functools.cache
def links_of_partitions(num_records: int) -> Int[np.ndarray, " partition"]:
    """Return how many links each partition has: how many clusters fewer than records."""
    return (num_records - 1 - set_partitions(num_records).max(axis=1)).astype(np.int32)


@functools.cache
def subset_sizes(num_records: int) -> Int[np.ndarray, " subset"]:
    """Return the number of members of every subset."""
    return members_of_subsets(num_records).sum(axis=1, dtype=np.int32)


@functools.cache
def pairs_within(num_records: int) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Return the places of the first and second record of each pair."""
    return np.triu_indices(num_records, 1)


@functools.cache
def together(num_records: int) -> Bool[np.ndarray, "pair partition"]:
    """Return whether a partition has a pair together."""
    first, second = pairs_within(num_records)
    labels = set_partitions(num_records)
    return (labels[:, first] == labels[:, second]).T


@functools.cache
def members_of_subsets(num_records: int) -> Int[np.ndarray, "subset record"]:
    """Return 1 where a record is in a subset."""
    return np.arange(2**num_records)[:, None] >> np.arange(num_records) & 1


@functools.cache
def partition_clusters(num_records: int) -> Int[np.ndarray, "partition cluster"]:
    """Return the clusters of each partition as subsets; the empty set fills up."""
    labels = set_partitions(num_records)
    belongs = labels[:, None] == np.arange(num_records)[:, None]
    return (belongs @ (1 << np.arange(num_records))).astype(np.int32)


@functools.cache
def _statistics(num_records: int) -> Float[np.ndarray, "pair_and_size partition"]:
    """Return which pairs are together in each partition, and below that its numbers of clusters by size."""
    sizes = subset_sizes(num_records)[partition_clusters(num_records)]
    counts = (sizes[None] == np.arange(1, num_records + 1)[:, None, None]).sum(axis=-1)
    return np.concatenate([together(num_records), counts]).astype(np.float32)


def size_terms(
    intensity: Any, size_share: Float[Array, " size"], largest: int, xp: Any, source_share: Any = ()
) -> Any:  # fmt: skip
    """Return what the prior adds for a cluster of 0, 1, …, `largest` records, relative to the same records apart.

    The partition prior is that of a Poisson number of entities with independent sizes: each cluster of s records has
    the factor m s! μ_s, or m μ_s / e_s(φ) where there are shares of sources. It is minus infinity for sizes
    that μ does not have. Shape ``(members,)``.
    """
    known = min(largest, len(size_share))
    share = size_share[:known]
    size = np.arange(1, known + 1)
    log_factorial = np.cumsum(np.log(size))
    log_share = xp.where(share > 0, xp.log(xp.where(share > 0, share, 1)), -math.inf)
    if len(source_share):
        log_share = log_share + log_factors(source_share, known, xp)
    log_intensity = xp.log(intensity)
    terms = log_intensity + log_factorial + log_share - size * (log_intensity + log_share[0])
    return xp.concatenate([xp.zeros(2), terms[1:], xp.full(largest - known, -math.inf)])


def terms_under(parameters: Parameters, largest: int) -> Float[np.ndarray, " members"]:
    """Return the same under hyperparameters."""
    return size_terms(parameters.intensity, parameters.size_share, largest, np, parameters.source_share)


def log_size_weights(
    intensity: float, size_share: Float[np.ndarray, " size"], source_share: Float[np.ndarray, " source"] | tuple = ()
) -> Float[np.ndarray, " sizes_and_none"]:  # fmt: skip
    """Return log m s! μ_s, or log m μ_s / e_s(φ), for s = 0, 1, …: weights of clusters in the prior; of none 0."""
    share = np.maximum(np.asarray(size_share, float), 1e-300)    # ratios stay numbers
    number = np.arange(len(share) + 1)
    return size_terms(intensity, share, len(share), np, source_share) + number * np.log(intensity * share[0])


def gather_values(
    value: Int[np.ndarray, "field record"],
    first_value: Int[np.ndarray, " fields_and_one"],
    members: Int[np.ndarray, "component member"],
) -> Int[np.ndarray, "member field component"]:
    """Return the values of components of one size as codes into the table of all fields, -1 where missing."""
    return np.ascontiguousarray(value_codes(value[:, members.T], first_value).transpose(1, 0, 2))


def conflicts(
    source: Int[Array, " record"], members: Int[Array, "component member"], restriction: str
) -> Bool[Array, "member member component"] | None:
    """Return which records of a component may not be together; None where all may.

    Parameters
    ----------
    restriction : "none"; "across": only records of different sources; "within": only those of one source.
    """
    if restriction == "none":
        return None
    own = source[members.T]
    same = own[:, None] == own[None]
    return ~same if restriction == "within" else same & ~np.eye(len(own), dtype=bool)[..., None]


def enumerate_blocks(
    values: Int[np.ndarray, "member field component"],
    value_share: Float[np.ndarray, " value"],
    distortion: Float[np.ndarray, " field"],
    size_term: Float[np.ndarray, " members"],
    likelihood: Likelihood,
    conflict: Bool[Array, "member member component"] | Float[Array, "member member component"] | None = None,
    candidates: Any = None,
    *,
    dtype: Any = np.float32,
    chunk: int | None = None,
    mesh: Mesh | None = None,
) -> Enumerated:
    """Enumerate components of one size, in NumPy; or in JAX, divided among devices.

    Parameters
    ----------
    values : as `gather_values` returns them.
    value_share : of all values.
    size_term : as `size_terms` returns them, for up to as many members as there are records.
    conflict : as `conflicts` returns it; or numbers that are added to the log weight of every cluster with the pair:
        minus infinity keeps it apart, infinity together.
    candidates : as the likelihood returns them for these values; made here where they are left out.
    dtype : precision of products; float32 is exact to 1e-5.
    chunk : components at a time, of each device; it changes nothing but the speed.
    mesh : the devices, along one axis. What they find is the same for any number of them, and that of NumPy up to
        rounding.

    Raises
    ------
    UnsupportedRequest : the devices belong to several processes.
    """
    num_records, _, num_components = values.shape
    given = np.append(value_share, 1).astype(dtype), distortion.astype(dtype), size_term.astype(dtype)
    chunk = chunk or _CHUNK.get(num_records, _SMALLEST_CHUNK)
    if candidates is None:
        candidates = likelihood.candidates(values)
    program: Callable[..., Enumerated] = functools.partial(_enumerate, xp=np)
    if mesh is not None:
        chunk *= mesh.size
        program = _on_devices(mesh, chunk)
    found = Enumerated(
        np.empty(num_components, dtype),
        np.empty((len(set_partitions(num_records)), num_components), dtype),
        np.empty((len(pairs_within(num_records)[0]), num_components), dtype),
        np.empty((num_records, num_components), dtype),
    )
    for start in range(0, num_components, chunk):
        piece = slice(start, start + chunk)
        of_piece = jax.tree.map(operator.itemgetter((..., piece)), (values, conflict, candidates))
        own = program(*of_piece, *given, likelihood)
        for whole, part in zip(found, own, strict=True):
            whole[..., piece] = part
    return found


def _on_devices(mesh: Mesh, number: int) -> Callable[..., Enumerated]:
    """Return the function that enumerates up to so many components, an equal part of them on each device.

    It always takes as many, the last ones being padding: so each number of records has one program, and the number of
    devices changes no bit.
    """
    if mesh.is_multi_process:
        raise UnsupportedRequest("components are enumerated on the devices of one process; leave out devices=")
    compiled = _compiled(mesh)

    def enumerate_piece(
        values: Any, conflict: Any, candidates: Any, table: Any, distortion: Any, size_term: Any, likelihood: Likelihood
    ) -> Enumerated:
        own = values.shape[-1]
        given = jax.tree.map(
            lambda array: np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, number - own)], mode="edge"),
            (values, conflict, candidates),
        )
        # Of the precision that was asked for, whatever is JAX's own.
        with jax.enable_x64(table.dtype == np.float64):
            found = compiled(*given, table, distortion, size_term, likelihood)
        return Enumerated(*(np.asarray(part)[..., :own] for part in found))

    return enumerate_piece


@functools.lru_cache(maxsize=16)
def _compiled(mesh: Mesh) -> Callable[..., Enumerated]:
    """Return the compiled function of one chunk for each device."""
    whole, (axis,) = PartitionSpec(), mesh.axis_names

    def last(array: Any) -> PartitionSpec:
        return PartitionSpec(*[None] * (array.ndim - 1), axis)

    def of_device(
        values: Any, conflict: Any, candidates: Any, table: Any, distortion: Any, size_term: Any, likelihood: Likelihood
    ) -> Enumerated:
        with jax.default_matmul_precision("highest"):
            return _enumerate(values, conflict, candidates, table, distortion, size_term, likelihood, jnp)

    @jax.jit
    def of_devices(values: Any, conflict: Any, candidates: Any, *rest: Any) -> Enumerated:
        given = (*jax.tree.map(last, (values, conflict, candidates)), whole, whole, whole, whole)
        of_component: Any = PartitionSpec(axis)
        of_each: Any = PartitionSpec(None, axis)
        return jax.shard_map(
            of_device, mesh=mesh, in_specs=given, out_specs=Enumerated(of_component, of_each, of_each, of_each)
        )(values, conflict, candidates, *rest)  # fmt: skip

    return of_devices


@functools.partial(jax.jit, static_argnames="chunk")
def enumerate_blocks_jax(
    values: Int[Array, "member field component"],
    value_share: Float[Array, " value"],
    distortion: Float[Array, " field"],
    size_term: Float[Array, " members"],
    likelihood: Likelihood,
    conflict: Bool[Array, "member member component"] | Float[Array, "member member component"] | None = None,
    candidates: Any = None,
    *,
    chunk: int | None = None,
) -> Enumerated:
    """Enumerate components of one size, in JAX, in the precision of `value_share`; see `enumerate_blocks`."""
    num_records, _, num_components = values.shape
    chunk = min(chunk or _CHUNK.get(num_records, _SMALLEST_CHUNK), num_components)
    number = -(-num_components // chunk)

    def pieces(array: Any) -> Any:
        padded = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, number * chunk - num_components)], mode="edge")
        return jnp.moveaxis(padded.reshape(*array.shape[:-1], number, chunk), -2, 0)

    table = jnp.append(value_share, 1)

    def piece(given: Any) -> Enumerated:
        own_values, own_conflict, own_candidates = given
        with jax.default_matmul_precision("highest"):
            return _enumerate(
                own_values, own_conflict, own_candidates, table, distortion, size_term, likelihood, jnp
            )

    found = jax.lax.map(piece, jax.tree.map(pieces, (values, conflict, candidates)))
    return jax.tree.map(lambda part: _joined(part, num_components), found)


def _joined(part: Array, num_components: int) -> Array:
    """Join the chunks along the last axis and leave the padding out."""
    moved = jnp.moveaxis(part, 0, -2)
    return moved.reshape(*moved.shape[:-2], -1)[..., :num_components]


def _enumerate(
    values: Any, conflict: Any, candidates: Any, table: Any, distortion: Any, size_term: Any, likelihood: Likelihood,
    xp: Any,
) -> Enumerated:  # fmt: skip
    """Enumerate one chunk; the last entry of the table of values is 1, for missing ones."""
    num_records = len(values)
    sizes = subset_sizes(num_records)
    log_cluster = likelihood.of_components(values, table, distortion, candidates, xp) + size_term[sizes][:, None]
    log_cluster = xp.where((sizes > 1)[:, None], log_cluster, 0)
    if conflict is not None:
        log_cluster = log_cluster + _pair_terms(conflict, xp).astype(log_cluster.dtype)
    clusters = partition_clusters(num_records)
    log_partition = log_cluster[clusters[:, 0]]
    for place in range(1, num_records):
        log_partition = log_partition + log_cluster[clusters[:, place]]
    highest = log_partition.max(0)
    weight = xp.exp(log_partition - highest)
    total = weight.sum(0)
    probability = weight / total
    statistics = xp.einsum("sp,pc->sc", _statistics(num_records).astype(probability.dtype), probability)
    num_pairs = len(statistics) - num_records
    return Enumerated(highest + xp.log(total), probability, statistics[:num_pairs], statistics[num_pairs:])


def _pair_terms(pairs: Any, xp: Any) -> Any:
    """Return what pairs add to the log weight of every subset, ``(subset, component)``: minus infinity to forbid it."""
    if pairs.dtype == bool:
        return xp.where(_allowed(pairs, xp), 0.0, -math.inf)
    bound = pairs == math.inf
    finite = xp.where(bound, 0.0, pairs)
    total, towards = xp.zeros_like(finite[0, :1]), xp.zeros_like(finite[:, :1])
    # The records that those of a subset must be with, as bits.
    needs = xp.zeros_like(bound[0, :1], int)
    bits = 1 << np.arange(len(pairs))
    of_record = (bound * bits[:, None]).sum(1)
    for record in range(len(pairs)):
        total = xp.concatenate([total, total + towards[record]])
        towards = xp.concatenate([towards, towards + finite[:, record, None]], 1)
        needs = xp.concatenate([needs, needs | of_record[record]])
    whole = (needs & ~np.arange(len(needs))[:, None]) == 0
    return xp.where(whole, total, -math.inf)


def _allowed(conflict: Any, xp: Any) -> Any:
    """Return which subsets hold no two records in conflict, ``(subset, component)``."""
    allowed = xp.ones_like(conflict[0, :1])
    free = xp.ones_like(conflict[:, :1])
    for record in range(len(conflict)):
        allowed = xp.concatenate([allowed, allowed & free[record]])
        free = xp.concatenate([free, free & ~conflict[:, record, None]], 1)
    return allowed


def pair_probabilities(partition: Float[np.ndarray, "partition component"], num_records: int) -> Any:
    """Return how probably each pair is together, ``(pair, component)``, from probabilities of partitions."""
    return np.einsum("sp,pc->sc", together(num_records).astype(partition.dtype), partition)


def subset_probabilities(partition: Float[np.ndarray, "partition component"], num_records: int) -> Any:
    """Return how probably each subset is exactly one cluster, ``(subset, component)``, zero for the empty set."""
    clusters = partition_clusters(num_records)
    which = (clusters[None] == np.arange(1, 2**num_records)[:, None, None]).any(axis=-1).astype(partition.dtype)
    return np.concatenate([np.zeros_like(partition[:1]), np.einsum("sp,pc->sc", which, partition)])
