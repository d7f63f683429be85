r"""Links drawn for many pairs of records at once, for accelerators: parallel anchored split-merge.

The target is that of all forms (see `compiled`): clusters are connected in the graph, no larger than μ has sizes, and
hold no two records of one source.

The pairs of the graph are cut once into pieces; no record is twice in a piece. For a piece, every pair is dropped with
probability 1/2. A pair (i, j) that is kept has the set U of all records that are with i or with j. Where U meets that
of another kept pair, or is too large, nothing happens. Else U is drawn anew among "all together" and every split in two
that keeps i and j apart, both parts connected. The redraw leaves U as it is, and with it which pairs are redrawn, so
that this is a Gibbs step; the pairs of a piece are redrawn at once. Without the dropping, pairs of one piece would
block each other for good where their records are together, and the answer would be wrong.

Most sets are small. Of those with more than four records, a piece has room for the first few; which ones these are
depends on the sets alone, which do not change.

The number of steps, one after the other, is about the largest number of neighbours of a record, and does not grow with
the number of records.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.enumeration import size_terms
from consilience.models.block_linkage.gibbs.hyperparameters import members_by_name
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.rows import padded_rows, padded_size

__all__ = ["PairLayout", "pair_layout", "pieces", "redraw_pairs"]

_KEPT = 0.5             # probability that a pair is not dropped
_LARGEST = 12           # records in a set; n of them have 2^(n-2) splits
_ROOMS = {4: 1, 6: 8, _LARGEST: 32}     # for sets of up to so many records there is room for one in so many pairs
_ONE_PAIR = 1 << 26     # more than there are pairs in a piece; no cluster is touched by more than twelve
_RECORDS_PER_PAIR = 8   # by default a piece has one pair for so many records; more would meet too often


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PairLayout:
    """The pairs of the graph in pieces.

    Parameters
    ----------
    piece : int32, shape ``(piece, width, 2)``; pairs of records, -1 where there are fewer.
    num_probes : how many steps find a neighbour among those of a record; static.
    """

    piece: Int[Array, "piece width 2"]
    num_probes: int = dataclasses.field(metadata={"static": True})


def pair_layout(pairs: CandidatePairs, num_records: int, width: int | None = None) -> PairLayout:
    """Return the layout of this form, on the host.

    Parameters
    ----------
    width : pairs in a piece; by default one for eight records.
    """
    width = max(num_records // _RECORDS_PER_PAIR, 1) if width is None else width
    degree = np.bincount(np.concatenate([pairs.first, pairs.second]), minlength=1)
    cut = pieces(pairs, width)
    return PairLayout(padded_rows(cut, padded_size(len(cut)), -1), int(degree.max()).bit_length())


def pieces(pairs: CandidatePairs, width: int) -> Int[np.ndarray, "piece width 2"]:
    """Cut pairs into matchings, in which no record is twice, and these into pieces of a fixed width, on the host.

    The number of matchings is about the largest number of pairs of a record. Equal pairs give equal pieces.
    """
    ends = np.stack([pairs.first, pairs.second], axis=1)
    own = [
        np.pad(ends[matching[start : start + width]], ((0, max(start + width - len(matching), 0)), (0, 0)),
               constant_values=-1)
        for matching in _matchings(ends)
        for start in range(0, len(matching), width)
    ]  # fmt: skip
    return np.stack(own).astype(np.int32) if own else np.zeros((0, width, 2), np.int32)


def _matchings(ends: Int[np.ndarray, "pair 2"]) -> Iterator[Int[np.ndarray, " place"]]:
    """Yield disjoint matchings that together are all pairs. Pairs of records with many of them come first."""
    num_records = int(ends.max(initial=-1)) + 1
    degree = np.bincount(ends.ravel(), minlength=num_records)
    chance = np.random.default_rng(0).permutation(len(ends))
    left = np.lexsort((chance, -degree[ends].max(axis=1, initial=0)))
    while len(left):
        taken, free, found = np.zeros(len(ends), bool), np.ones(num_records, bool), []
        waiting = left
        while len(waiting):
            # A pair is taken that is the first one for both of its records.
            own = ends[waiting]
            place = np.arange(len(waiting))
            first = np.empty(num_records, np.int64)
            first[own[::-1]] = place[::-1, None]
            best = waiting[(first[own] == place[:, None]).all(axis=1)]
            found.append(best)
            taken[best] = True
            free[ends[best]] = False
            waiting = waiting[free[own].all(axis=1)]
        yield np.concatenate(found)
        left = left[~taken[left]]


def redraw_pairs(key: Key, state: State, problem: LinkProblem) -> Int[Array, " record"]:
    """Draw the links anew, given all else: every piece of pairs once.

    Parameters
    ----------
    key : random key.
    state : of one chain. No cluster may have more records than there are sizes.
    problem : with a `PairLayout`.

    Returns
    -------
    cluster : int32, shape ``(record,)``; each cluster named by the code of its first record.

    Raises
    ------
    UnsupportedRequest : entities may have more than twelve records.
    """
    return _redraw(key, state, problem, _KEPT)


def _redraw(key: Key, state: State, problem: LinkProblem, kept: float) -> Array:
    largest = len(state.size_share)
    if largest > _LARGEST:
        raise UnsupportedRequest(
            f"links are drawn in the form 'pairs' for entities of at most {_LARGEST} records, not {largest}; give "
            "fewer sizes, or take the form 'compiled' or 'scan'"
        )
    piece = jnp.asarray(problem.layout.piece)
    if not len(piece):
        return state.cluster
    weights = _Weights.of(state, problem)
    keys = jax.random.split(key, len(piece))

    def step(clusters: Any, given: Any) -> tuple[Any, None]:
        own_key, own_piece = given
        return _redraw_piece(own_key, own_piece, clusters, weights, problem, kept), None

    start = state.cluster, members_by_name(state.cluster, largest)
    return jax.lax.scan(step, start, (keys, piece))[0][0]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class _Weights:
    """Logarithms that a sweep uses: of θ, of the factors of a value that is a copy or may be one, and of sizes."""

    share: Array
    match: Array
    miss: Array
    size: Array

    @classmethod
    def of(cls, state: State, problem: LinkProblem) -> _Weights:
        tiny = jnp.finfo(state.value_share.dtype).tiny
        rate, share = state.distortion[problem.field], jnp.maximum(state.value_share, tiny)
        sizes = jnp.maximum(state.size_share, tiny)
        return cls(
            jnp.log(share),
            jnp.logaddexp(jnp.log(rate), jnp.log1p(-rate) - jnp.log(share)),
            jnp.log(state.distortion),
            size_terms(state.intensity, sizes, max(len(sizes), min(_ROOMS)), jnp),
        )


def _redraw_piece(
    key: Key, piece: Array, clusters: tuple[Array, Array], weights: _Weights, problem: LinkProblem, kept: float
) -> tuple[Array, Array]:
    """Redraw the sets of one piece."""
    cluster, table = clusters
    key_keep, key_split = jax.random.split(key)
    is_kept = jax.random.bernoulli(key_keep, kept, piece.shape[:1]) & (piece[:, 0] >= 0)
    name, room, width = cluster[piece], len(weights.size) - 1, len(piece)
    member, number = _sets(piece, name, table, room)
    owner = _owner(name, is_kept, len(cluster))
    fits = is_kept & (owner[name] == jnp.arange(width)[:, None]).all(axis=1)
    with_first: Any = jnp.zeros(width, jnp.int32)
    redrawn: Any = jnp.zeros(width, bool)
    least = 0
    for most, share in _rooms(room).items():
        fitting = fits & (number > least) & (number <= most)
        key_room = jax.random.fold_in(key_split, most)
        if share == 1:
            own = jnp.where(fitting, member[:most], -1)
            with_first, redrawn = _drawn_splits(key_room, own, weights, problem), fitting
        else:
            (chosen,) = jnp.nonzero(fitting, size=-(-width // share), fill_value=width)
            own = jnp.asarray(member)[:most].at[:, chosen].get(mode="fill", fill_value=-1)
            with_first = with_first.at[chosen].set(_drawn_splits(key_room, own, weights, problem), mode="drop")
            redrawn = redrawn.at[chosen].set(True, mode="drop")
        least = most
    return _with_splits(clusters, owner, jnp.where(redrawn, member, -1), with_first)


def _rooms(largest: int) -> dict[int, int]:
    """Return how many records sets may have, and which share of a piece has room for such sets."""
    rooms: dict[int, int] = {}
    for most, share in _ROOMS.items():
        rooms.setdefault(min(most, largest), share)
    return rooms


def _sets(piece: Array, name: Array, table: Array, room: int) -> tuple[Array, Array]:
    """Return the records of each set, the anchors first, ``(member, pair)``; and how many they are."""
    rows = table[name.T].transpose(0, 2, 1)
    other = jnp.stack([rows[0], jnp.where(name[:, 0] == name[:, 1], -1, rows[1])]).reshape(-1, len(piece))
    other = jnp.where((other == piece[:, 0]) | (other == piece[:, 1]), -1, other)
    every = jnp.concatenate([piece.T, other])
    return _packed(every, room), (every >= 0).sum(0)


def _packed(entry: Int[Array, "entry pair"], room: int) -> Array:
    """Move the entries that are not -1 to the front, ``(room, pair)``."""
    there = entry >= 0
    place = jnp.where(there, jnp.cumsum(there, axis=0) - 1, -1)
    hit = place[None] == jnp.arange(room)[:, None, None]
    return jnp.where(hit, entry + 1, 0).sum(1, dtype=entry.dtype) - 1


def _owner(name: Array, is_kept: Array, num_records: int) -> Array:
    """Return for each cluster, by its name, the only kept pair that touches it; some other number for the rest.

    One sum says how many pairs there are, in its higher bits, and which, in its lower ones.
    """
    touches = jnp.stack([is_kept, is_kept & (name[:, 0] != name[:, 1])], axis=1)
    mark = _ONE_PAIR + jnp.arange(len(name), dtype=jnp.int32)[:, None]
    total = jnp.zeros(num_records, jnp.int32).at[name].add(jnp.where(touches, mark, 0))
    return total - _ONE_PAIR


def _drawn_splits(
    key: Key, member: Int[Array, "member pair"], weights: _Weights, problem: LinkProblem
) -> Int[Array, " pair"]:
    """Draw how each set is split: bit k says whether its k-th record is with the first one."""
    score = _scores(member, weights, problem)
    choice = jnp.argmax(score + jax.random.gumbel(key, score.shape, score.dtype), axis=0)
    # The last state is that of all together.
    return jnp.where(choice == len(score) - 1, -1, 1 | choice << 2).astype(jnp.int32)


def _with_splits(
    clusters: tuple[Array, Array], owner: Array, member: Int[Array, "member pair"], with_first: Int[Array, " pair"]
) -> tuple[Array, Array]:
    """Return the partition with the splits of the sets. Every record looks its own up: many chains scatter slowly."""
    cluster, table = clusters
    num_records, width = len(cluster), len(with_first)
    in_first = (with_first >> jnp.arange(len(member))[:, None]) & 1 == 1
    parts = jnp.where(in_first, member, -1), jnp.where(in_first, -1, member)
    names = [jnp.where(part >= 0, part, num_records).min(axis=0) for part in parts]
    rows = [_packed(part, table.shape[1]).T for part in parts]
    record = jnp.arange(num_records, dtype=cluster.dtype)
    own = owner[cluster]
    own = jnp.where((own >= 0) & (own < width), own, width)
    for part, name, row in zip(parts, names, rows, strict=True):
        belongs = (part.T.at[own].get(mode="fill", fill_value=-1) == record[:, None]).any(axis=1)
        own_name = jnp.asarray(name).at[own].get(mode="fill", fill_value=num_records).astype(cluster.dtype)
        cluster = jnp.where(belongs, own_name, cluster)
        own_row = jnp.asarray(row).at[own].get(mode="fill", fill_value=-1)
        table = jnp.where((own_name == record)[:, None], own_row, table)
    return cluster, table


def _scores(
    member: Int[Array, "member pair"], weights: _Weights, problem: LinkProblem
) -> Float[Array, "state pair"]:
    """Return the log weight of every split of each set, and last of all together."""
    room = len(member)
    value = jnp.where((member >= 0)[..., None], problem.value[member], -1).transpose(0, 2, 1)
    first, second, whole = _log_marginals(value, weights)
    # Of every subset of the others: with it, the first record is in one part, and the second with the rest.
    subset = jnp.arange(2 ** (room - 2), dtype=jnp.int32)[:, None]
    present = jnp.sum((member >= 0) << jnp.arange(room)[:, None], axis=0, dtype=jnp.int32)
    parts = 1 | subset << 2, 2 | (subset[::-1] << 2 & present)
    own = [marginal + _log_prior(part, member, weights, problem) for marginal, part in
           zip((first, second[::-1]), parts, strict=True)]  # fmt: skip
    together = whole + _log_prior(present[None], member, weights, problem)[0]
    return jnp.concatenate([own[0] + own[1], together[None]])


def _log_marginals(value: Int[Array, "member field pair"], weights: _Weights) -> tuple[Array, Array, Array]:
    """Return the hit-miss likelihood of subsets with the first record, with the second one, and of all together.

    In logarithms: as products, the weights of eight records that agree would be more than single precision holds.
    """
    observed = value >= 0
    same = (value[:, None] == value[None]) & observed[:, None]
    # A value that several records have is a candidate for each of them, with its part of the weight.
    log_candidate = jnp.where(observed, weights.share[value] - jnp.log(jnp.maximum(same.sum(0), 1)), -math.inf)
    rest = 1 - jnp.exp(log_candidate).sum(0)
    log_rest = jnp.log(jnp.maximum(rest, jnp.finfo(rest.dtype).tiny))
    log_candidate = jnp.concatenate([log_candidate, log_rest[None]])
    copied = jnp.concatenate([same, jnp.zeros_like(same[:, :1])], axis=1)
    log_factor = jnp.where(copied, weights.match[value][:, None], weights.miss[:, None])
    log_factor = jnp.where(observed[:, None], log_factor, 0)
    others = len(value) - 2
    chosen = np.arange(2**others)[:, None] >> np.arange(others) & 1
    joint = log_candidate + jnp.einsum(
        "sm,mkfp->skfp", chosen.astype(log_factor.dtype), log_factor[2:], precision="highest"
    )
    first, second = (logsumexp(joint + own, axis=1).sum(axis=1) for own in log_factor[:2])
    return first, second, logsumexp(joint[-1] + log_factor[0] + log_factor[1], axis=0).sum(axis=0)


def _log_prior(part: Int[Array, "state pair"], member: Array, weights: _Weights, problem: LinkProblem) -> Array:
    """Return the prior weight of each part, a bit for each member; minus infinity where the graph or sources forbid it.

    A part is a cluster of a partition only if it is connected, which rules out bits of members that there are not.
    """
    room = len(member)
    part = jnp.broadcast_to(part, (len(part), member.shape[1]))
    one, other = np.triu_indices(room, 1)
    both = (member[one] >= 0) & (member[other] >= 0)
    neighbours = _masks(both & _adjacent(member[one], member[other], problem), room)
    enemies = _masks(both & (problem.source[member[one]] == problem.source[member[other]]), room)

    def touching(own: Array, masks: Array) -> Array:
        """Return the members that stand in a relation to one of a part, as bits."""
        return functools.reduce(
            jnp.bitwise_or, (jnp.where(own >> place & 1 == 1, masks[place], 0) for place in range(room))
        )

    reached = jax.lax.fori_loop(
        0, room - 1, lambda _, reached: reached | touching(reached, neighbours) & part, part & -part
    )
    allowed = (reached == part) & (touching(part, enemies) & part == 0)
    return jnp.where(allowed, weights.size[jax.lax.population_count(part)], -math.inf)


def _masks(of_pair: Bool[Array, "two pair"], room: int) -> Array:
    """Return the members to which each one stands in a relation, as bits, ``(member, pair)``."""
    one, other = np.triu_indices(room, 1)
    place = np.zeros((room, room), int)
    place[one, other] = place[other, one] = np.arange(len(one))
    both = of_pair[place] & ~np.eye(room, dtype=bool)[..., None]
    return jnp.sum(both << np.arange(room)[:, None], axis=1, dtype=jnp.int32)


def _adjacent(one: Array, other: Array, problem: LinkProblem) -> Array:
    """Return whether records are neighbours: binary search among those of the first."""
    low, end = problem.first_neighbour[one], problem.first_neighbour[one + 1]
    high = end
    for _ in range(problem.layout.num_probes):
        middle = (low + high) // 2
        below = (problem.neighbour[middle] < other) & (low < high)
        low, high = jnp.where(below, middle + 1, low), jnp.where(below, high, middle)
    return (low < end) & (problem.neighbour[low] == other)
