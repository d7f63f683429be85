r"""The annotations as every crowd model reads them, and the only loop over them.

What one annotator says is a numbered cell, ``annotator * num_labels + label``, so that an annotation finds all that
matters of its annotator's errors at one place of a table. A weight w is w annotations: a power of the likelihood.

The first annotations of all items stand in slots ``(slot, item)``, and what is beyond them in a list. A slot adds to
all items at once, in their order, which takes a fifth of the time of adding one annotation after the other. Slots hold
the smallest integers that will do, since they are most of what a fit holds: whoever sums over them gets the usual ones.

Items, annotators, slots and the list are padded to a few sizes, so that data of like size share a compiled program.
What pads weighs nothing, and counts for nothing in any sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Bool, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.models.crowd.groups import counted_by_group
from consilience.models.gold import uses_gold
from consilience.models.rows import (
    aligned_zeros,
    copies,
    divide_items,
    divide_rows,
    numpy_of,
    padded_rows,
    padded_size,
    sorted_order,
    sum_rows,
)
from consilience.models.sites import Resolved
from consilience.notes import Remedy

# No more slots than this: few items with very many annotations each are better served by the list.
_MOST_SLOTS = 64

# The fewest items, annotators and annotations in the list, so that small data share programs too; not of more labels
# than that, of which every item more is a long row. Lists are of a multiple, as their length varies most.
_LEAST_ITEMS, _LEAST_ANNOTATORS, _LEAST_OTHERS = 64, 16, 1024
_FEW_LABELS = 128

# Tables of more numbers than this are refused: 2^28 in float32 are one GiB.
MOST_NUMBERS = 1 << 28


class Votes(NamedTuple):
    """The annotations.

    Parameters
    ----------
    cell, weight : shape ``(slot, item)``; who says what, of weight 0 where an item has no such annotation.
    other_item, other_cell, other_weight : shape ``(other,)``; annotations beyond the slots, sorted by item.
    log_prior : shape ``(item, class)``, or one row for all items; what is added to the log prevalence: -inf for what an
        item cannot be.
    real : bool, shape ``(item,)``; whether it is an item and does not pad.
    counts : shape ``(annotator, label)``; how often an annotator gave a label, weights summed.
    real_annotator : shape ``(annotator,)``; 1 for annotators and 0 for what pads.
    start : shape ``(item, class)``; probabilities at which an ascent starts, rows of zeros of items that start at their
        votes. Without rows it has a start of its own.
    """

    cell: Int[Array, "slot item"]
    weight: Float[Array, "slot item"] | Int[Array, "slot item"]
    other_item: Int[Array, " other"]
    other_cell: Int[Array, " other"]
    other_weight: Float[Array, " other"]
    log_prior: Float[Array, "row class"]
    real: Bool[Array, " item"]
    counts: Float[Array, "annotator label"]
    real_annotator: Float[Array, " annotator"]
    start: Float[Array, "item class"] = np.zeros((0, 0), np.float32)  # noqa: RUF012

    @property
    def others(self) -> tuple[Array, Array, Array]:
        """Item, cell and weight of the annotations in the list."""
        return self.other_item, self.other_cell, self.other_weight

    @property
    def dtype(self) -> Any:
        """Of what is computed from the annotations."""
        return self.counts.dtype

    @property
    def num_items(self) -> int:
        """How many items there are, with those that pad."""
        return len(self.real)

    @property
    def num_annotators(self) -> int:
        """How many annotators there are, with those that pad."""
        return len(self.real_annotator)

    @property
    def num_labels(self) -> int:
        """How many labels there are."""
        return self.log_prior.shape[1]


def require_annotators(data: Annotations, name: str, numbers: int = 0, instead: str = "", *remedies: Remedy) -> None:
    """Refuse counts of labels, of which nobody knows who gave them, and tables that do not fit into memory.

    Parameters
    ----------
    data : the annotations.
    name : of the model, for messages.
    numbers : how many numbers its largest table holds.
    instead, remedies : what needs no table of that size, in words that name the remedies.

    Raises
    ------
    UnsupportedRequest : the annotators are unknown.
    TooLarge : the table would not fit.
    """
    if data.num_annotators == 0:
        raise UnsupportedRequest(
            f"the data do not say who gave which label, and '{name}' is about annotators; give a column of annotators, "
            "or use a model of the items alone, such as 'dirichlet', which needs counts alone"
        )
    most = max(numbers, max(data.num_items, data.num_annotators) * data.num_labels)
    if most > MOST_NUMBERS:
        raise TooLarge(
            f"with {data.num_items:,} items, {data.num_annotators:,} annotators and {data.num_labels:,} labels a table "
            f"of '{name}' holds {most:,} numbers, which is too many; merge labels{instead}",
            *remedies,
        )


def padded_annotators(data: Annotations) -> int:
    """Return how many annotators there are with those that pad."""
    return padded_size(data.num_annotators, _LEAST_ANNOTATORS if data.num_labels <= _FEW_LABELS else 0)


def votes_of(resolved: Resolved) -> Votes:
    """Put the annotations into slots: as many as an item has on average; on the host.

    The average differs less than the median between data of like size. A slot costs a fifth of a list, so that it may
    well be empty for many items.
    """
    data = counted_by_group(resolved).data
    few = data.num_labels <= _FEW_LABELS
    dtype = np.dtype(jnp.result_type(float))
    item, cell, weight = _columns(data)
    num_annotators, least = padded_annotators(data), few * _LEAST_OTHERS
    counts = data.total(np.bincount(cell, weight, num_annotators * data.num_labels))
    counts = counts.reshape(num_annotators, data.num_labels).astype(dtype)
    order = sorted_order(item)
    order = order if (weight > 0).all() else order[weight[order] > 0]
    number = np.bincount(item[order], minlength=data.num_items)
    first, size = np.cumsum(number) - number, padded_size(data.num_items, few * _LEAST_ITEMS)
    num_slots = padded_size(min(round(len(order) / max(data.num_items, 1)), _MOST_SLOTS))
    cells = aligned_zeros((num_slots, size), np.uint16 if counts.size < 1 << 16 else np.int32)
    uncounted = (weight >= 1 << 8) | (weight != weight.round())
    # Processes that share the data must agree on the type.
    weights = aligned_zeros((num_slots, size), dtype if data.total(uncounted.sum()) else np.uint8)
    for slot in range(num_slots):
        items = np.flatnonzero(number > slot)
        rows = order[first[items] + slot]
        cells[slot, items], weights[slot, items] = cell[rows], weight[rows]
    beyond = order[np.arange(len(order)) - np.repeat(first, number) >= num_slots]
    length = padded_size(len(beyond), least, max(least, 1))
    # What pads the list is of the last item, and weighs nothing: the list stays sorted.
    other_item = padded_rows(item[beyond].astype(np.int32), length, size - 1)
    other_cell = padded_rows(cell[beyond].astype(np.int32), length)
    other_weight = padded_rows(weight[beyond].astype(dtype), length)
    prior = np.asarray(log_prior(resolved), dtype)
    prior = prior if len(prior) == 1 else padded_rows(prior, size)
    real = padded_rows(np.ones(data.num_items, bool), size)
    real_annotator = padded_rows(np.ones(data.num_annotators, dtype), num_annotators)
    return Votes(cells, weights, other_item, other_cell, other_weight, prior, real, counts, real_annotator)


def listed_votes(resolved: Resolved) -> Votes:
    """Return the annotations in one list; for compiled programs, in which data may be tracers.

    Where annotators share sources the data are those of `counted_by_group`, which needs the host.
    """
    data = resolved.data
    dtype = jnp.result_type(float)
    weight = jnp.asarray(data.weight, dtype)
    cell = jnp.asarray(data.annotator) * data.num_labels + jnp.asarray(data.label)
    counts = jnp.zeros(data.num_annotators * data.num_labels, dtype).at[cell].add(weight)
    return Votes(
        cell=jnp.zeros((0, data.num_items), cell.dtype), weight=jnp.zeros((0, data.num_items), dtype),
        other_item=jnp.asarray(data.item), other_cell=cell, other_weight=weight,
        log_prior=jnp.asarray(log_prior(resolved), dtype), real=jnp.ones(data.num_items, bool),
        counts=counts.reshape(data.num_annotators, data.num_labels),
        real_annotator=jnp.ones(data.num_annotators, dtype),
    )  # fmt: skip


def _columns(data: Annotations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    item, annotator, label = (np.asarray(column) for column in (data.item, data.annotator, data.label))
    return item, annotator * data.num_labels + label, np.asarray(data.weight, float)


def log_prior(resolved: Resolved) -> Float[Array, "row class"]:
    """Return what the log prior of an item's label adds to the log prevalence; one row where all items are alike.

    Where the prevalence is not learned all labels that an item can have are equally probable. The setting ``gold``
    "use" leaves an item whose gold label is known that label alone; ``candidates`` "observed" rules out labels that
    nobody gave the item, unless it has no annotations.
    """
    data, settings, xp = resolved.data, resolved.settings, numpy_of(resolved.data.label)
    use_gold, observed = uses_gold(data, settings.gold), settings.candidates == "observed"
    allowed = xp.ones((data.num_items if use_gold or observed else 1, data.num_labels), bool)
    if observed:
        given = xp.zeros_like(allowed)
        if xp is np:
            given[data.item[data.weight > 0], data.label[data.weight > 0]] = True
        else:
            given = given.at[data.item, data.label].max(jnp.asarray(data.weight) > 0)
        allowed = given | ~given.any(axis=1, keepdims=True)
    if use_gold:
        gold = xp.asarray(data.gold)[:, None]
        allowed = xp.where(gold >= 0, gold == xp.arange(data.num_labels), allowed)
    number = 1 if settings.learns_prevalence else allowed.sum(axis=1, keepdims=True)
    return xp.where(allowed, -xp.log(xp.asarray(number, jnp.result_type(float))), -xp.inf)


def shard_votes(votes: Votes, number: int, real_items: int) -> tuple[Votes, Int[np.ndarray, " shard"]]:
    """Divide the items, with their annotations, into equal numbers, stacked on a new first axis; on the host.

    Returns
    -------
    the votes, and how many items of each shard are real.
    """
    votes = jax.tree.map(np.asarray, votes)
    first, size = divide_items(real_items, number)
    slots = divide_rows((votes.cell.T, votes.weight.T, votes.real), first, (0, 0, False), length=size)
    kept = votes.other_weight > 0
    others = tuple(column[kept] for column in votes.others)
    item, cell, weight = divide_rows(others, np.searchsorted(others[0], first), (-1, 0, 0.0))
    item = np.where(item < 0, size - 1, item - first[:-1, None]).astype(item.dtype)
    prior = copies(votes.log_prior, number)
    if len(votes.log_prior) > 1:
        prior = divide_rows(votes.log_prior, first, 0.0, length=size)
    parts = Votes(
        cell=slots[0].swapaxes(1, 2), weight=slots[1].swapaxes(1, 2), other_item=item, other_cell=cell,
        other_weight=weight, log_prior=prior, real=slots[2], counts=copies(votes.counts, number),
        real_annotator=copies(votes.real_annotator, number),
        start=divide_rows(votes.start, first, 0.0, length=size) if len(votes.start) else copies(votes.start, number),
    )  # fmt: skip
    return parts, np.diff(first)


def sum_votes(
    term: Callable[[Array, Array, Array], tuple[Array, Array]], votes: Votes, shape: tuple[int, ...], dtype: Any
) -> Array:
    """Sum what annotations contribute, slot after slot and then the list.

    Parameters
    ----------
    term : ``term(item, cell, weight)``, each ``(row,)`` -> (the places to which the rows contribute ``(row,)``, what
        they contribute ``(row, …)``).
    votes : the annotations.
    shape, dtype : of the result ``(place, …)``.
    """
    total = sum_rows(lambda rows: term(*rows), votes.others, shape, dtype)
    if not len(votes.cell):
        return total
    item = jnp.arange(votes.num_items, dtype=votes.other_item.dtype)
    cells, weights = jnp.asarray(votes.cell), jnp.asarray(votes.weight)

    def of_slot(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        return term(rows[0], *_usual(votes, *rows[1:]))

    def add(slot: Any, total: Array) -> Array:
        return total + sum_rows(of_slot, (item, cells[slot], weights[slot]), shape, dtype)

    return jax.lax.fori_loop(0, len(cells), add, total)


def _usual(votes: Votes, cell: Array, weight: Array) -> tuple[Array, Array]:
    """Return cells and weights of slots as those of the list: products of small integers would overflow."""
    return cell.astype(votes.other_cell.dtype), weight.astype(votes.dtype)


def sum_by_item(
    value: Callable[[Array, Array], Array], votes: Votes, num_columns: int, dtype: Any
) -> Float[Array, "item column"]:
    """Sum ``value(cell, weight)`` ``(row, column)`` over the annotations of each item."""
    of_list = lambda rows: (rows[0], value(rows[1], rows[2]))  # noqa: E731
    total = sum_rows(of_list, votes.others, (votes.num_items, num_columns), dtype)
    if not len(votes.cell):
        return total
    cells, weights = jnp.asarray(votes.cell), jnp.asarray(votes.weight)

    def add(slot: Any, total: Array) -> Array:
        return total + value(*_usual(votes, cells[slot], weights[slot]))

    return jax.lax.fori_loop(0, len(cells), add, total)


def vote_shares(votes: Votes, total: Callable[[Any], Any]) -> Float[Array, "item class"]:
    """Return the share of each label among an item's votes, of those that it can have.

    Of an item without votes it has the shares of all votes, and of one whose votes are all ruled out equal shares.
    """
    num_labels, dtype = votes.num_labels, votes.dtype

    def vote(item: Array, cell: Array, weight: Array) -> tuple[Array, Array]:
        return item * num_labels + cell % num_labels, weight

    found = sum_votes(vote, votes, (votes.num_items * num_labels,), dtype).reshape(-1, num_labels)
    pooled = total((found * votes.real[:, None]).sum(axis=0))
    pooled = jnp.where(pooled.sum() > 0, pooled, 1.0)
    found = jnp.where(found.sum(axis=1, keepdims=True) > 0, found, pooled)
    can = jnp.isfinite(votes.log_prior)
    allowed = jnp.where(can, found, 0.0)
    allowed = jnp.where(allowed.sum(axis=1, keepdims=True) > 0, allowed, can.astype(dtype))
    return allowed / allowed.sum(axis=1, keepdims=True) * votes.real[:, None]


def starting_shares(votes: Votes, total: Callable[[Any], Any]) -> Float[Array, "item class"]:
    """Return the probabilities of the labels at which an ascent starts: those that it was given, else vote shares."""
    shares = vote_shares(votes, total)
    if not len(votes.start):
        return shares
    can = jnp.asarray(votes.start) * jnp.isfinite(votes.log_prior)
    sums = can.sum(axis=1, keepdims=True)
    return jnp.where(sums > 0, can / jnp.where(sums > 0, sums, 1.0), shares) * votes.real[:, None]


def with_start(votes: Votes, probability: Float[np.ndarray, "item class"]) -> Votes:
    """Return the same annotations for an ascent that starts at probabilities of the labels; on the host.

    Parameters
    ----------
    votes : as prepared.
    probability : NaN where nothing is known of an item, which then starts at its votes.
    """
    known = np.nan_to_num(np.asarray(probability, votes.dtype))
    return votes._replace(start=padded_rows(known, votes.num_items))


def votes_by_item(votes: Votes) -> Float[Array, " item"]:
    """Return the weight of the annotations of each item."""
    return sum_by_item(lambda cell, weight: weight[:, None], votes, 1, votes.dtype)[:, 0]


def listed(votes: Votes) -> tuple[Int[Array, " row"], Int[Array, " row"], Float[Array, " row"]]:
    """Return item, cell and weight of all annotations in one list, slot by slot; some may have weight zero."""
    num_slots, num_items = votes.cell.shape
    item = jnp.concatenate([jnp.tile(jnp.arange(num_items), num_slots), votes.other_item])
    cell, weight = _usual(votes, jnp.ravel(votes.cell), jnp.ravel(votes.weight))
    return item, jnp.concatenate([cell, votes.other_cell]), jnp.concatenate([weight, votes.other_weight])


def with_cells(votes: Votes, cell: Int[Array, " row"]) -> Votes:
    """Return the same annotations with other labels, in the order of `listed`."""
    inside, counts = votes.cell.size, jnp.zeros(votes.counts.size, votes.counts.dtype)
    weight = listed(votes)[2]
    return votes._replace(
        cell=cell[:inside].reshape(votes.cell.shape).astype(votes.cell.dtype), other_cell=cell[inside:],
        counts=counts.at[cell].add(weight).reshape(votes.counts.shape),
    )  # fmt: skip
