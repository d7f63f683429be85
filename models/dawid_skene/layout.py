r"""What the kernels of the Dawid-Skene model read, and the three sums over annotations that all of them share.

An annotation is a row. The labels that one annotator gives are numbered cells, ``annotator * num_labels + label``, so
that a row finds all that matters of the confusion matrices at one place of a table ``(cell, class)``: the probability
of its label given each true class. A weight w is w annotations: a power of the likelihood.

| sum | of | over |
|---|---|---|
| `vote_shares` | the votes of an item | its rows |
| `log_joint` | :math:`\log p_t + \sum_n w_n \log \Theta_{j_n t l_n}` | the rows of an item |
| `confusion_counts` | :math:`\sum_n w_n\, q_{i_n}(t)` | the rows of a cell |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.annotations import Annotations
from consilience.errors import UnsupportedRequest
from consilience.models.dawid_skene.priors import Priors, dirichlet_parameters
from consilience.models.gold import uses_gold
from consilience.models.interface import Shards, Total, alone
from consilience.models.rows import copies, divide_items, divide_rows, pad_rows, sum_rows

__all__ = [
    "Problem",
    "Rows",
    "class_by_class",
    "confusion_counts",
    "is_real",
    "log_joint",
    "prepare",
    "require_annotators",
    "rows_of",
    "shard",
    "vote_shares",
]

# Confusion matrices of more numbers than this are refused: 2^28 in float32 are one GiB.
_MOST_NUMBERS = 1 << 28


class Rows(NamedTuple):
    """The annotations.

    Parameters
    ----------
    item, cell : shape ``(annotation,)``; which item, and which label by whom.
    weight : shape ``(annotation,)``.
    gold : shape ``(item,)``; the true class of an item where it is known, else -1; -2 for what is no item but pads a
        shard.
    """

    item: Int[Array, " annotation"]
    cell: Int[Array, " annotation"]
    weight: Float[Array, " annotation"]
    gold: Int[Array, " item"]


class Problem(NamedTuple):
    """What the hand-written methods read.

    Parameters
    ----------
    rows : sorted by item; rows of weight zero only pad the last block.
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
        raise UnsupportedRequest(
            f"the confusion matrices of {data.num_annotators:,} annotators and {data.num_labels:,} labels hold "
            f"{numbers:,} numbers, which is too many; merge labels, or use a model without confusion matrices"
        )


def rows_of(data: Annotations, gold: str) -> Rows:
    """Return the annotations as they are; ``gold`` is "use" or "ignore"."""
    known = jnp.full(data.num_items, -1)
    if uses_gold(data, gold):
        known = jnp.asarray(data.gold)
    cell = jnp.asarray(data.annotator) * data.num_labels + jnp.asarray(data.label)
    return Rows(jnp.asarray(data.item), cell, jnp.asarray(data.weight, jnp.result_type(float)), known)


def prepare(data: Annotations, priors: Priors, *, gold: str) -> Problem:
    """Collect what CAVI and the Gibbs sampler read, on the host.

    Raises
    ------
    NotConjugate : a prior is no Dirichlet distribution.
    UnsupportedRequest : for annotations by nobody knows whom, or confusion matrices that do not fit into memory.
    """
    require_annotators(data)
    prevalence, confusion = dirichlet_parameters(priors, data)
    rows = jax.tree.map(np.asarray, rows_of(data, gold))
    counted = np.flatnonzero(rows.weight > 0)
    order = counted[np.argsort(rows.item[counted], kind="stable")]
    dtype = jnp.result_type(float)
    item, cell, weight = pad_rows((rows.item[order], rows.cell[order], rows.weight[order]), _no_row(data.num_items))
    return Problem(
        Rows(item, cell, weight, rows.gold),
        prevalence.astype(dtype),
        np.broadcast_to(confusion.astype(dtype), (data.num_annotators, *confusion.shape)),
    )


def _no_row(num_items: int) -> tuple[int, int, float]:
    """Return item, cell and weight of a row that says nothing."""
    return max(num_items - 1, 0), 0, 0.0


def shard(problem: Problem, number: int) -> Shards:
    """Divide the items, with their annotations, into equal numbers; on the host."""
    rows = jax.tree.map(np.asarray, problem.rows)
    first_item, size = divide_items(len(rows.gold), number)
    real = np.count_nonzero(rows.weight)  # what pads the last block stands at the end
    first_row = np.searchsorted(rows.item[:real], first_item)
    table = divide_rows((rows.item, rows.cell, rows.weight), first_row, (0, *_no_row(size)[1:]))
    item = np.where(table[2] > 0, table[0] - first_item[:-1, None].astype(np.int32), size - 1)
    gold = divide_rows(rows.gold, first_item, -2, length=size)
    prevalence, confusion = copies((problem.prevalence, problem.confusion), number)
    parts = Rows(item=item, cell=table[1], weight=table[2], gold=gold)
    return Shards(Problem(parts, prevalence, confusion), {"responsibility": np.diff(first_item)})


def is_real(rows: Rows) -> Float[Array, "item 1"]:
    """Return 1 for items and 0 for what pads a shard, in the dtype of the weights."""
    return (rows.gold[:, None] > -2).astype(rows.weight.dtype)


def vote_shares(rows: Rows, num_labels: int, total: Total = alone) -> Float[Array, "item class"]:
    """Return the share of each label among an item's votes; those of all votes where it has none, gold where known."""

    def vote(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = rows
        return item * num_labels + cell % num_labels, weight

    size, dtype = len(rows.gold) * num_labels, rows.weight.dtype
    votes = sum_rows(vote, rows[:3], (size,), dtype).reshape(-1, num_labels)
    pooled = total(votes.sum(axis=0))
    pooled = jnp.where(pooled.sum() > 0, pooled, 1.0)
    votes = jnp.where(votes.sum(axis=1, keepdims=True) > 0, votes, pooled)
    shares = votes / votes.sum(axis=1, keepdims=True)
    known = jnp.where(rows.gold[:, None] < 0, shares, jax.nn.one_hot(rows.gold, num_labels, dtype=dtype))
    return known * is_real(rows)


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

    def look_up(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = rows
        # A row that pads must not turn the logarithm of zero into a number that is none.
        return item, jnp.where(weight[:, None] > 0, weight[:, None] * table[cell], 0.0)

    joint = log_prevalence + sum_rows(look_up, rows[:3], (len(rows.gold), num_labels), table.dtype)
    gold = rows.gold[:, None]
    return jnp.where((gold < 0) | (gold == jnp.arange(num_labels)), joint, -jnp.inf)


def confusion_counts(
    responsibility: Float[Array, "item class"], rows: Rows, num_annotators: int
) -> Float[Array, "annotator class label"]:
    """Return how often each annotator gave each label to items of each class."""
    num_labels = responsibility.shape[1]

    def count(rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        item, cell, weight = rows
        return cell, weight[:, None] * responsibility[item]

    counts = sum_rows(count, rows[:3], (num_annotators * num_labels, num_labels), responsibility.dtype)
    return jnp.swapaxes(counts.reshape(num_annotators, num_labels, num_labels), 1, 2)
