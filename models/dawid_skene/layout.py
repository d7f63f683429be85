r"""What the kernels of the Dawid-Skene model read, and the three sums over annotations that all of them share.

The labels that one annotator gives are numbered cells, ``annotator * num_labels + label``, so that an annotation finds
all that matters of the confusion matrices at one place of a table ``(cell, class)``: the probability of its label given
each true class. A weight w is w annotations: a power of the likelihood.

The first annotations of all items stand in slots ``(slot, item)``, and what is beyond them in a list. A slot adds to
all items at once, in their order, which takes a fifth of the time of adding one annotation after the other.

| sum | of | over |
|---|---|---|
| `vote_shares` | the votes of an item | its annotations |
| `log_joint` | :math:`\log p_t + \sum_n w_n \log \Theta_{j_n t l_n}` | the annotations of an item |
| `confusion_counts` | :math:`\sum_n w_n\, q_{i_n}(t)` | the annotations of a cell |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.models.gold import uses_gold
from consilience.models.interface import Shards, Total, unsharded
from consilience.models.rows import copies, divide_items, divide_rows, ranges, sorted_order, sum_rows
from consilience.models.sites import Resolved

# No more slots than this: few items with very many annotations each are better served by the list.
_MOST_SLOTS = 64

# Confusion matrices of more numbers than this are refused: 2^28 in float32 are one GiB.
_MOST_NUMBERS = 1 << 28


class Rows(NamedTuple):
    """The annotations.

    Parameters
    ----------
    cell, weight : shape ``(slot, item)``; which label by whom, of weight 0 where an item has no such annotation.
    other_item, other_cell, other_weight : shape ``(other,)``; annotations beyond the slots, sorted by item.
    gold : shape ``(item,)``; the true class of an item where it is known, else -1; -2 for what is no item but pads a
        shard.
    """

    cell: Int[Array, "slot item"]
    weight: Float[Array, "slot item"]
    other_item: Int[Array, " other"]
    other_cell: Int[Array, " other"]
    other_weight: Float[Array, " other"]
    gold: Int[Array, " item"]


class Problem(NamedTuple):
    """What the hand-written methods read.

    Parameters
    ----------
    rows : the annotations whose weight is not zero.
    prevalence : concentration of the prior of the class shares.
    confusion : concentration of the prior of the confusion matrices.
    """

    rows: Rows
    prevalence: Float[Array, " class"]
    confusion: Float[Array, "annotator class label"]


def require_annotators(data: Annotations) -> None:
    """Raise `UnsupportedRequest` unless every label has an annotator, and all confusion matrices fit into memory."""
    if data.num_annotators == 0:
        raise UnsupportedRequest(
            "'dawid-skene' learns how each annotator errs, and the data do not say who annotated; "
            "use 'dirichlet', which needs counts alone"
        )
    numbers = data.num_annotators * data.num_labels**2
    if numbers > _MOST_NUMBERS:
        raise TooLarge(
            f"the confusion matrices of {data.num_annotators:,} annotators and {data.num_labels:,} labels hold "
            f"{numbers:,} numbers, which is too many; merge labels, or use a model without confusion matrices"
        )


def rows_of(data: Annotations, gold: str) -> Rows:
    """Return the annotations as they are, without slots; ``gold`` is "use" or "ignore"."""
    known = jnp.full(data.num_items, -1)
    if uses_gold(data, gold):
        known = jnp.asarray(data.gold)
    cell = jnp.asarray(data.annotator) * data.num_labels + jnp.asarray(data.label)
    weight = jnp.asarray(data.weight, jnp.result_type(float))
    none = jnp.zeros((0, data.num_items), cell.dtype)
    return Rows(none, none.astype(weight.dtype), jnp.asarray(data.item), cell, weight, known)


def prepare(resolved: Resolved) -> Problem:
    """Collect what CAVI and the Gibbs sampler read, on the host.

    Raises
    ------
    NotConjugate : a prior is no Dirichlet distribution.
    UnsupportedRequest : for annotations by nobody knows whom, or confusion matrices that do not fit into memory.
    """
    data = resolved.data
    require_annotators(data)
    prevalence, confusion = resolved.concentration("prevalence"), resolved.concentration("confusion")
    dtype = jnp.result_type(float)
    return Problem(
        _in_slots(jax.tree.map(np.asarray, rows_of(data, resolved.settings.gold))),
        prevalence.astype(dtype),
        np.broadcast_to(confusion.astype(dtype), (data.num_annotators, *confusion.shape)),
    )


def _in_slots(rows: Rows) -> Rows:
    """Put annotations into slots: as many as at least half of the items fill."""
    counted = np.flatnonzero(rows.other_weight > 0)
    order = counted[sorted_order(rows.other_item[counted])]
    item, cell, weight = (column[order] for column in (rows.other_item, rows.other_cell, rows.other_weight))
    number = np.bincount(item, minlength=len(rows.gold))
    num_slots = min(int(np.median(number)), _MOST_SLOTS)
    slot = ranges(number)
    fits = slot < num_slots
    place = slot[fits], item[fits]
    cells = np.zeros((num_slots, len(rows.gold)), cell.dtype)
    weights = np.zeros(cells.shape, weight.dtype)
    cells[place], weights[place] = cell[fits], weight[fits]
    return Rows(cells, weights, item[~fits], cell[~fits], weight[~fits], rows.gold)


def shard(problem: Problem, number: int) -> Shards:
    """Divide the items, with their annotations, into equal numbers; on the host."""
    rows = jax.tree.map(np.asarray, problem.rows)
    first, size = divide_items(len(rows.gold), number)
    slots = divide_rows((rows.cell.T, rows.weight.T, rows.gold), first, (0, 0.0, -2), length=size)
    others = rows.other_item, rows.other_cell, rows.other_weight
    item, cell, weight = divide_rows(others, np.searchsorted(rows.other_item, first), (-1, 0, 0.0))
    parts = Rows(
        cell=slots[0].swapaxes(1, 2), weight=slots[1].swapaxes(1, 2), gold=slots[2],
        other_item=np.where(item < 0, size - 1, item - first[:-1, None]).astype(item.dtype),
        other_cell=cell, other_weight=weight,
    )  # fmt: skip
    prevalence, confusion = copies((problem.prevalence, problem.confusion), number)
    return Shards(Problem(parts, prevalence, confusion), {"responsibility": np.diff(first)})


def listed(rows: Rows) -> tuple[Int[Array, " row"], Int[Array, " row"], Float[Array, " row"]]:
    """Return item, cell and weight of all annotations in one list, slot by slot; some may have weight zero."""
    num_slots, num_items = rows.cell.shape
    item = jnp.concatenate([jnp.tile(jnp.arange(num_items), num_slots), rows.other_item])
    cell = jnp.concatenate([jnp.ravel(rows.cell), rows.other_cell])
    return item, cell, jnp.concatenate([jnp.ravel(rows.weight), rows.other_weight])


def with_cells(rows: Rows, cell: Int[Array, " row"]) -> Rows:
    """Return the same annotations with other labels, in the order of `listed`."""
    inside = rows.cell.size
    return rows._replace(cell=cell[:inside].reshape(rows.cell.shape), other_cell=cell[inside:])


def is_real(rows: Rows) -> Float[Array, "item 1"]:
    """Return 1 for items and 0 for what pads a shard, in the dtype of the weights."""
    return (rows.gold[:, None] > -2).astype(rows.weight.dtype)


def vote_shares(rows: Rows, num_labels: int, total: Total = unsharded) -> Float[Array, "item class"]:
    """Return the share of each label among an item's votes; those of all votes where it has none, gold where known."""

    def vote(table: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = table
        return item * num_labels + cell % num_labels, weight

    size, dtype = len(rows.gold) * num_labels, rows.weight.dtype
    votes = sum_rows(vote, listed(rows), (size,), dtype).reshape(-1, num_labels)
    pooled = total(votes.sum(axis=0))
    pooled = jnp.where(pooled.sum() > 0, pooled, 1.0)
    votes = jnp.where(votes.sum(axis=1, keepdims=True) > 0, votes, pooled)
    shares = votes / votes.sum(axis=1, keepdims=True)
    known = jnp.where(rows.gold[:, None] < 0, shares, jax.nn.one_hot(rows.gold, num_labels, dtype=dtype))
    return known * is_real(rows)


def num_votes(rows: Rows) -> Float[Array, " item"]:
    """Return the weight of the annotations of each item."""
    return jax.ops.segment_sum(rows.other_weight, rows.other_item, len(rows.gold)) + rows.weight.sum(axis=0)


def class_by_class(
    function: Callable[[Array, Array], tuple[Array, Array]],
    prevalence: Float[Array, " class"],
    confusion: Float[Array, "annotator class label"],
) -> tuple[Float[Array, " class"], Float[Array, "annotator class label"]]:
    """Apply ``function(prevalence of a class, its rows (annotator, label))`` to one class after the other.

    XLA would otherwise put logarithms and digammas where they are read, and compute them anew for every annotation:
    that makes a sweep of CAVI six times as slow. It does not do so across a loop; barriers it ignores on a CPU (jax
    0.10).
    """
    given = (prevalence, jnp.moveaxis(confusion, 1, 0))
    log_prevalence, log_confusion = jax.lax.map(lambda one: function(*one), given)
    return log_prevalence, jnp.moveaxis(log_confusion, 0, 1)


def log_joint(
    log_prevalence: Float[Array, " class"], log_confusion: Float[Array, "annotator class label"], rows: Rows
) -> Float[Array, "item class"]:
    """Return the log probability of each true class together with the annotations; -inf for all but the gold class.

    Under CAVI the two logarithms are expected ones; make them by `class_by_class`.
    """
    num_labels = len(log_prevalence)
    table = jnp.swapaxes(log_confusion, 1, 2).reshape(-1, num_labels)

    def weighted(cell: Array, weight: Array) -> Array:
        # What has no weight must not turn the logarithm of zero into a number that is none.
        return jnp.where(weight[:, None] > 0, weight[:, None] * table[cell], 0.0)

    def look_up(others: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = others
        return item, weighted(cell, weight)

    others = rows.other_item, rows.other_cell, rows.other_weight
    joint = log_prevalence + sum_rows(look_up, others, (len(rows.gold), num_labels), table.dtype)
    if len(rows.cell):
        slots = jnp.asarray(rows.cell), jnp.asarray(rows.weight)
        joint = jax.lax.fori_loop(
            0, len(rows.cell), lambda slot, joint: joint + weighted(*(column[slot] for column in slots)), joint
        )
    gold = rows.gold[:, None]
    return jnp.where((gold < 0) | (gold == jnp.arange(num_labels)), joint, -jnp.inf)


def confusion_counts(
    responsibility: Float[Array, "item class"], rows: Rows, num_annotators: int
) -> Float[Array, "annotator class label"]:
    """Return how often each annotator gave each label to items of each class."""
    num_labels = responsibility.shape[1]
    shape = num_annotators * num_labels, num_labels

    def count(table: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = table
        return cell, weight[:, None] * responsibility[item]

    counts = sum_rows(count, (rows.other_item, rows.other_cell, rows.other_weight), shape, responsibility.dtype)
    if len(rows.cell):
        item, cells, weights = jnp.arange(len(rows.gold)), jnp.asarray(rows.cell), jnp.asarray(rows.weight)
        counts = jax.lax.fori_loop(
            0, len(cells),
            lambda slot, counts: counts + sum_rows(
                count, (item, cells[slot], weights[slot]), shape, responsibility.dtype
            ),
            counts,
        )  # fmt: skip
    return jnp.swapaxes(counts.reshape(num_annotators, num_labels, num_labels), 1, 2)
