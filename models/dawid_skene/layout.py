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

__all__ = [
    "Problem",
    "Rows",
    "class_by_class",
    "confusion_counts",
    "log_joint",
    "prepare",
    "require_annotators",
    "rows_of",
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
    gold : shape ``(item,)``; the true class of an item where it is known, else -1.
    """

    item: Int[Array, " annotation"]
    cell: Int[Array, " annotation"]
    weight: Float[Array, " annotation"]
    gold: Int[Array, " item"]


class Problem(NamedTuple):
    """What the hand-written methods read.

    Parameters
    ----------
    rows : sorted by item; none has weight zero.
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
    if gold == "use":
        if data.gold is None:
            raise UnsupportedRequest("gold='use' needs data with gold labels, and these have none; use gold='ignore'")
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
    return Problem(
        Rows(rows.item[order], rows.cell[order], rows.weight[order], rows.gold),
        prevalence.astype(dtype),
        np.broadcast_to(confusion.astype(dtype), (data.num_annotators, *confusion.shape)),
    )


def vote_shares(rows: Rows, num_labels: int) -> Float[Array, "item class"]:
    """Return the share of each label among an item's votes; those of all votes where it has none, gold where known."""
    num_items = len(rows.gold)
    votes = jnp.zeros((num_items, num_labels), rows.weight.dtype).at[rows.item, rows.cell % num_labels].add(rows.weight)
    pooled = votes.sum(axis=0)
    pooled = jnp.where(pooled.sum() > 0, pooled, 1.0)
    votes = jnp.where(votes.sum(axis=1, keepdims=True) > 0, votes, pooled)
    shares = votes / votes.sum(axis=1, keepdims=True)
    return jnp.where(rows.gold[:, None] < 0, shares, jax.nn.one_hot(rows.gold, num_labels, dtype=shares.dtype))


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
    of_rows = rows.weight[:, None] * table[rows.cell]
    joint = log_prevalence + jax.ops.segment_sum(of_rows, rows.item, len(rows.gold))
    gold = rows.gold[:, None]
    return jnp.where((gold < 0) | (gold == jnp.arange(num_labels)), joint, -jnp.inf)


def confusion_counts(
    responsibility: Float[Array, "item class"], rows: Rows, num_annotators: int
) -> Float[Array, "annotator class label"]:
    """Return how often each annotator gave each label to items of each class."""
    num_labels = responsibility.shape[1]
    of_rows = rows.weight[:, None] * responsibility[rows.item]
    counts = jax.ops.segment_sum(of_rows, rows.cell, num_annotators * num_labels)
    return jnp.swapaxes(counts.reshape(num_annotators, num_labels, num_labels), 1, 2)
