"""Ranking the classes of many items at once: the compiled part of `consilience.models.truth`.

A block is some items with their entries, the classes that somebody named, padded to fixed shapes so that every block of
a pass runs the same program. Values of entries are rows, ``(entry, draw)``: the leading class of every item and draw is
one sorted segment maximum over rows, which is as fast as reading the array.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.models.random import GammaQuantiles, log_gamma, log_gamma_maxima


class PaddedBlock(NamedTuple):
    """The entries of a block of items in fixed shapes.

    ``segment`` is the item within the block of each entry, and the number of padded items where an entry is padding.
    """

    segment: Int[Array, " entry"]
    class_: Int[Array, " entry"]
    position: Int[Array, " entry"]
    num_named: Int[Array, " item"]
    num_unnamed: Int[Array, " item"]


class LargestShares(NamedTuple):
    """Draws of the largest shares of a whole in its parts, for several numbers of parts.

    ``log_share`` holds them, best first, and ``size`` is the row of it that an item uses.
    """

    log_share: Float[Array, "size depth pool"]
    size: Int[Array, " item"]

    def take(self, key: Key, num_draws: int, depth: int) -> Float[Array, "depth item draw"]:
        """Return the shares of every item and draw: each item starts anywhere, and the first comes after the last."""
        num_pooled = self.log_share.shape[-1]
        start = jax.random.randint(key, (self.size.shape[0], 1), 0, num_pooled)
        draw = (start + jnp.arange(num_draws)) % num_pooled
        return jnp.stack([self.log_share[self.size[:, None], place, draw] for place in range(depth)])


@functools.partial(jax.jit, static_argnames=("num_draws", "depth"))
def rank_dirichlet(
    key: Key,
    concentration: Float[Array, " entry"],
    quantiles: GammaQuantiles | None,
    block: PaddedBlock,
    num_draws: int,
    depth: int,
) -> Int[Array, "item draw depth"]:
    """Draw Dirichlet plausibilities and return the leading classes of every draw."""
    key_named, key_unnamed, key_identity = jax.random.split(key, 3)
    shape = (concentration.shape[0], num_draws)
    log_weight = log_gamma(key_named, jnp.broadcast_to(concentration[:, None], shape))
    if quantiles is None:
        return _rank(log_weight, block, depth, None, _lowest_unnamed(block, depth))
    largest = log_gamma_maxima(key_unnamed, quantiles, block.num_unnamed, num_draws, depth)
    return _rank(log_weight, block, depth, largest, _random_unnamed(key_identity, block, num_draws, depth))


@functools.partial(jax.jit, static_argnames="depth")
def rank_weights(
    log_weight: Float[Array, "entry draw"], block: PaddedBlock, depth: int
) -> Int[Array, "item draw depth"]:
    """Return the leading classes of stored draws."""
    return _rank(log_weight, block, depth, None, _lowest_without_mass(log_weight, block, depth))


@functools.partial(jax.jit, static_argnames="depth")
def rank_weights_and_other(
    key: Key,
    log_weight: Float[Array, "entry draw"],
    log_other: Float[Array, "item draw"],
    largest: LargestShares,
    block: PaddedBlock,
    depth: int,
) -> Int[Array, "item draw depth"]:
    """Return the leading classes of stored draws, where unnamed classes have shares of the mass ``other``."""
    key_largest, key_identity = jax.random.split(key)
    num_draws = log_weight.shape[1]
    unnamed = log_other + largest.take(key_largest, num_draws, depth)
    # A named class without mass follows the unnamed ones, which have some, and still precedes nothing at all.
    other_exists = _to_entries((log_other > -jnp.inf).astype(jnp.int32), block) == 1
    without_mass = other_exists & (log_weight == -jnp.inf)
    log_weight = jnp.where(without_mass, jnp.finfo(log_weight.dtype).min, log_weight)
    unnamed_class = jnp.where(
        log_other > -jnp.inf,
        _random_unnamed(key_identity, block, num_draws, depth),
        _lowest_without_mass(log_weight, block, depth),
    )
    return _rank(log_weight, block, depth, unnamed, unnamed_class)


def _rank(
    log_weight: Float[Array, "entry draw"],
    block: PaddedBlock,
    depth: int,
    unnamed: Float[Array, "depth item draw"] | None,
    unnamed_class: Int[Array, "depth item _"],
) -> Int[Array, "item draw depth"]:
    """Pick the leading class again and again.

    ``log_weight`` is ``(entry, draw)``; ``unnamed`` the decreasing values of the best unnamed classes ``(depth,
    item, draw)``, None where they have no mass; ``unnamed_class`` the codes ``(depth, item, draw)`` of the classes
    that come into play when no named one leads.
    """
    num_items, num_draws = block.num_named.shape[0], log_weight.shape[1]
    segment_max = functools.partial(jax.ops.segment_max, num_segments=num_items + 1, indices_are_sorted=True)
    segment_min = functools.partial(jax.ops.segment_min, num_segments=num_items + 1, indices_are_sorted=True)
    taken = jnp.zeros((num_items, num_draws), jnp.int32)
    none = jnp.iinfo(jnp.int32).max
    ranking = []
    for _ in range(depth):
        best = segment_max(log_weight, block.segment)
        leads = (log_weight == best[block.segment]) & (log_weight > -jnp.inf)
        named_class = segment_min(jnp.where(leads, block.class_[:, None], none), block.segment)[:num_items]
        next_class = _take(unnamed_class, taken)
        if unnamed is None:
            use_named = named_class < none
        else:
            use_named = (named_class < none) & (best[:num_items] >= _take(unnamed, taken))
        chosen = jnp.where(use_named, named_class, next_class)
        ranking.append(chosen)
        taken = taken + ~use_named
        log_weight = jnp.where(block.class_[:, None] == _to_entries(chosen, block), -jnp.inf, log_weight)
    return jnp.stack(ranking, axis=-1)


def _take(values: Array, index: Int[Array, "item draw"]) -> Array:
    """Take ``values[index[i, d], i, d]``; values may have one draw for all."""
    values = jnp.broadcast_to(values, (values.shape[0], *index.shape))
    return jnp.take_along_axis(values, index[None], axis=0)[0]


def _unnamed_class(block: PaddedBlock, rank: Int[Array, "item draw"]) -> Int[Array, "item draw"]:
    """Return the code of the rank-th lowest class that an item does not name; -1 when there are fewer.

    The named classes c_0 < c_1 < … leave c_j - j unnamed ones below c_j, so rank r lies above as many named ones as
    have c_j - j <= r.
    """
    below = (block.class_ - block.position)[:, None] <= _to_entries(rank, block)
    return jnp.where(rank < block.num_unnamed[:, None], rank + _count(below, block), -1)


def _lowest_without_mass(
    log_weight: Float[Array, "entry draw"], block: PaddedBlock, depth: int
) -> Int[Array, "depth item draw"]:
    """Find the classes without mass, named or not, with the lowest codes, ``(depth, item, draw)``; -1 beyond the last.

    As in `_unnamed_class`, with the classes that have mass in a draw in the place of the named ones.
    """
    mass = log_weight > -jnp.inf
    before = jnp.cumsum(mass, axis=0) - mass
    start = jax.ops.segment_min(before, block.segment, block.num_named.shape[0] + 1, indices_are_sorted=True)
    gap = block.class_[:, None] - (before - start[block.segment])
    num_without = (block.num_named + block.num_unnamed)[:, None] - _count(mass, block)
    below = [_count(mass & (gap <= rank), block) for rank in range(depth)]
    return jnp.stack([jnp.where(rank < num_without, rank + number, -1) for rank, number in enumerate(below)])


def _to_entries(values: Int[Array, "item draw"], block: PaddedBlock) -> Int[Array, "entry draw"]:
    """Repeat values ``(item, draw)`` for the entries of each item; -1 at the padding."""
    return jnp.concatenate([values, jnp.full((1, values.shape[1]), -1, values.dtype)])[block.segment]


def _count(chosen: Bool[Array, "entry draw"], block: PaddedBlock) -> Int[Array, "item draw"]:
    """Count the chosen entries ``(entry, draw)`` of each item, ``(item, draw)``."""
    num_items = block.num_named.shape[0]
    counts = jax.ops.segment_sum(chosen.astype(jnp.int32), block.segment, num_items + 1, indices_are_sorted=True)
    return counts[:num_items]


def _lowest_unnamed(block: PaddedBlock, depth: int) -> Int[Array, "depth item 1"]:
    """Find the unnamed classes with the lowest codes, ``(depth, item, 1)``."""
    num_items = block.num_named.shape[0]
    return jnp.stack([_unnamed_class(block, jnp.full((num_items, 1), rank, jnp.int32)) for rank in range(depth)])


def _random_unnamed(key: Key, block: PaddedBlock, num_draws: int, depth: int) -> Int[Array, "depth item draw"]:
    """Draw which classes the largest unnamed values belong to, ``(depth, item, draw)``: any, without repetition."""
    ranks: list[Array] = []
    for place in range(depth):
        key_place = jax.random.fold_in(key, place)
        left = jnp.maximum(block.num_unnamed - place, 1)[:, None]
        rank = jnp.minimum(
            (jax.random.uniform(key_place, (left.shape[0], num_draws)) * left).astype(jnp.int32), left - 1
        )
        # The rank counts the classes not taken yet: step over the taken ones, lowest first.
        for earlier in jnp.sort(jnp.stack(ranks), axis=0) if ranks else ():
            rank = rank + (rank >= earlier)
        ranks.append(rank)
    return jnp.stack([_unnamed_class(block, rank) for rank in ranks])


@functools.partial(jax.jit, static_argnames="num_draws")
def draw_dirichlet(
    key: Key, concentration: Float[Array, "row class"], num_draws: int
) -> Float[Array, "row draw class"]:
    """Draw ``(row, draw, class)`` from Dirichlet rows, of which some concentrations may be zero."""
    shape = (concentration.shape[0], num_draws, concentration.shape[1])
    positive = jnp.broadcast_to(concentration[:, None, :], shape)
    log_weight = jnp.where(positive > 0, log_gamma(key, jnp.where(positive > 0, positive, 1.0)), -jnp.inf)
    return jax.nn.softmax(log_weight, axis=-1)


@functools.partial(jax.jit, static_argnames="num_groups")
def group_weights(
    log_weight: Float[Array, "entry draw"],
    log_other: Float[Array, "item draw"],
    split: Float[Array, "item _ group"],
    block: PaddedBlock,
    group: Int[Array, " class"],
    num_groups: int,
) -> Float[Array, "item draw group"]:
    """Return the share of each group of classes in stored draws; ``split`` divides the mass ``other`` among groups."""
    num_items = block.num_named.shape[0]
    sums = functools.partial(jax.ops.segment_sum, segment_ids=block.segment, num_segments=num_items + 1)
    highest = jax.ops.segment_max(log_weight, block.segment, num_items + 1)
    highest = highest.at[:num_items].max(log_other)
    highest = jnp.where(jnp.isfinite(highest), highest, 0.0)
    weight = jnp.exp(log_weight - highest[block.segment])
    member = group[block.class_][:, None]
    masses = [sums(jnp.where(member == number, weight, 0.0))[:num_items] for number in range(num_groups)]
    stacked = jnp.stack(masses, axis=-1) + jnp.exp(log_other - highest[:num_items])[:, :, None] * split
    total = stacked.sum(-1, keepdims=True)
    # Without any mass nothing is known of an item: all classes are alike.
    share = jnp.bincount(group, length=num_groups) / group.shape[0]
    return jnp.where(total > 0, stacked / jnp.where(total > 0, total, 1.0), share)


@functools.partial(jax.jit, static_argnames="num_draws")
def draw_log_weights(
    key: Key, concentration: Float[Array, " entry"], other_concentration: Float[Array, " item"], num_draws: int
) -> tuple[Float[Array, "entry draw"], Float[Array, "item draw"]]:
    """Draw the weights of Dirichlet variables, those of the unnamed classes in one; -inf where these have none."""
    # One call for all: what takes the time is to compile it.
    concentration = jnp.concatenate([concentration, other_concentration])
    shape = (concentration.shape[0], num_draws)
    exists = concentration > 0
    drawn = log_gamma(key, jnp.broadcast_to(jnp.where(exists, concentration, 1.0)[:, None], shape))
    log_weight = jnp.where(exists[:, None], drawn, -jnp.inf)
    num_items = other_concentration.shape[0]
    return log_weight[:-num_items], log_weight[-num_items:]


@jax.jit
def normalise_weights(
    log_weight: Float[Array, "entry draw"],
    log_other: Float[Array, "item draw"],
    concentration: Float[Array, ""],
    block: PaddedBlock,
) -> tuple[Float[Array, "entry draw"], Float[Array, "item draw"], Float[Array, "item draw"]]:
    """Return the plausibilities of named classes, of the unnamed ones together, and how often two of these agree.

    ``concentration`` is that of each unnamed class; `consilience.models.truth.Plausibilities` explains all three.
    """
    num_items = block.num_named.shape[0]
    segment_max = functools.partial(jax.ops.segment_max, num_segments=num_items + 1, indices_are_sorted=True)
    segment_sum = functools.partial(jax.ops.segment_sum, num_segments=num_items + 1, indices_are_sorted=True)
    highest = segment_max(log_weight, block.segment).at[:num_items].max(log_other)
    highest = jnp.where(jnp.isfinite(highest), highest, 0.0)
    weight, other = jnp.exp(log_weight - highest[block.segment]), jnp.exp(log_other - highest[:num_items])
    total = segment_sum(weight, block.segment).at[:num_items].add(other)
    # Without any mass nothing is known of an item: all classes are alike.
    known = total > 0
    unnamed = block.num_unnamed[:, None]
    alike = 1 / jnp.maximum(block.num_named[:, None] + unnamed, 1).astype(total.dtype)
    alike = jnp.concatenate([alike, jnp.ones((1, 1), alike.dtype)])
    scale = 1 / jnp.where(known, total, 1.0)
    named = jnp.where(known[block.segment], weight * scale[block.segment], alike[block.segment])
    other = jnp.where(known[:num_items], other * scale[:num_items], unnamed * alike[:num_items])
    number = jnp.maximum(unnamed, 1)
    divided = (concentration + 1) / (number * concentration + 1)
    return named, other, jnp.where(known[:num_items], divided, 1 / number)


@jax.jit
def agreement_probability(
    named: Float[Array, "entry draw"],
    other: Float[Array, "item draw"],
    other_agreement: Float[Array, "item draw"],
    segment: Int[Array, " entry"],
) -> Float[Array, "item draw"]:
    """Return the probability that two independent annotations of an item are of one class."""
    num_items = other.shape[0]
    squares = jax.ops.segment_sum(named**2, segment, num_items + 1, indices_are_sorted=True)
    return squares[:num_items] + other**2 * other_agreement


@functools.partial(jax.jit, static_argnames="num_draws")
def draw_labels(
    key: Key, lowest: Float[Array, " entry"], block: PaddedBlock, num_draws: int
) -> Int[Array, "item draw"]:
    """Draw one entry per item, and return its class; ``lowest`` is the probability of the entries before it."""
    num_items = block.num_named.shape[0]
    uniform = jax.random.uniform(key, (num_items + 1, num_draws), lowest.dtype)
    reached = (lowest[:, None] <= uniform[block.segment]).astype(jnp.int32)
    count = jax.ops.segment_sum(reached, block.segment, num_items + 1)[:num_items]
    first = jnp.cumsum(block.num_named) - block.num_named
    return block.class_[first[:, None] + jnp.maximum(count, 1) - 1]
