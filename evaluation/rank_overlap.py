r"""Average overlap between partial rankings with ties, as an inner product of soft permutations.

A ranking orders some of $K$ classes in blocks, best block first; the classes that it does not list form one last block.
Its *soft permutation* spreads each position evenly over the classes of the block that holds the position. After the
first $k$ positions, a class of a block of $n$ classes with $s$ classes before it has gathered the weight

.. math:: \mathrm{cum}_k = \min\{1, \max(0, (k - s) / n)\}, \qquad
          \mathrm{AO@}L(b, b') = \frac{1}{L} \sum_{k=1}^{L}
          \frac{1}{k} \langle \mathrm{cum}_k(b), \mathrm{cum}_k(b') \rangle ,

which is the usual average overlap when nothing is tied. With ties it is below 1 even for $b = b'$, so that
:math:`\mathrm{AO}(b, b') / \sqrt{\mathrm{AO}(b, b)\, \mathrm{AO}(b', b')}` is what two annotators are compared by.
Unlisted classes have equal weights and enter as one term each, so the cost does not depend on $K$. Where $L$ goes
beyond the listed classes, that term is not small: rankings without a class in common overlap by what neither of them
lists. Choose $L$ accordingly.

Rankings come as in `consilience.evaluation.rank_distances`: `classes`, best first and -1 after the end, and `blocks`,
non-decreasing.

References
----------
D. Stutz et al. Evaluating AI systems under uncertain ground truth: a case study in dermatology. arXiv:2307.02191
(2023), appendix B.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Float, Int
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest

_PAIRS_PER_CHUNK = 8192


def average_overlap(
    classes_a: Int[Array, " a"],
    blocks_a: Int[Array, " a"],
    classes_b: Int[Array, " b"],
    blocks_b: Int[Array, " b"],
    num_classes: int | Array,
    at: int,
) -> Float[Array, ""]:
    """Return the average overlap of two rankings, not normalised.

    Parameters
    ----------
    classes_a, classes_b : int32, shapes ``(position_a,)`` and ``(position_b,)``; best first, -1 after the end.
    blocks_a, blocks_b : int32, the same shapes; block of each class, non-decreasing.
    num_classes : all classes $K$, listed or not.
    at : the last position $L$ that counts, from 1 to $K$; a Python int.

    Returns
    -------
    float scalar in [0, 1].
    """
    depth = jnp.arange(1, at + 1)
    weight_a, rest_a = _cumulative_weights(classes_a, blocks_a, num_classes, depth)
    weight_b, rest_b = _cumulative_weights(classes_b, blocks_b, num_classes, depth)
    same = (classes_a[:, None] == classes_b[None, :]) & (classes_a[:, None] != -1)
    only_a = (classes_a != -1) & ~jnp.any(same, axis=1)
    only_b = (classes_b != -1) & ~jnp.any(same, axis=0)
    in_neither = num_classes - jnp.sum(classes_a != -1) - jnp.sum(only_b)
    listed_by_both = jnp.sum(jnp.where(same, weight_a[:, :, None] * weight_b[:, None, :], 0), axis=(1, 2))
    listed_by_a = rest_b * jnp.sum(jnp.where(only_a, weight_a, 0), axis=1)
    listed_by_b = rest_a * jnp.sum(jnp.where(only_b, weight_b, 0), axis=1)
    return jnp.mean((listed_by_both + listed_by_a + listed_by_b + rest_a * rest_b * in_neither) / depth)


def mean_average_overlap(
    classes_a: Int[Array, " a"],
    blocks_a: Int[Array, " a"],
    classes_b: Int[Array, " b"],
    blocks_b: Int[Array, " b"],
    num_classes: int | Array,
    at: int,
) -> Float[Array, ""]:
    """Return AO(a, b) / sqrt(AO(a, a) AO(b, b)), a float scalar in [0, 1] and 1 for equal rankings.

    The parameters are those of `average_overlap`. Two rankings that list nothing are equal.
    """
    a, b = (classes_a, blocks_a), (classes_b, blocks_b)
    overlap = average_overlap(*a, *b, num_classes, at)
    itself_a, itself_b = average_overlap(*a, *a, num_classes, at), average_overlap(*b, *b, num_classes, at)
    # At most 1 by Cauchy and Schwarz; rounding may exceed it in the last digit.
    return jnp.minimum(overlap / jnp.sqrt(itself_a * itself_b), 1)


def annotator_average_overlap(rankings: Rankings, at: int) -> Float[np.ndarray, " item"]:
    """Return how far the annotators of each item agree: `mean_average_overlap`, averaged over the pairs of its reports.

    Parameters
    ----------
    rankings : the reports of all items.
    at : the last position that counts, from 1 to the number of classes.

    Returns
    -------
    float64, shape ``(item,)``, in [0, 1]; NaN for items with fewer than two reports.

    Raises
    ------
    UnsupportedRequest : there is no such position.
    """
    if not 1 <= at <= rankings.num_classes:
        raise UnsupportedRequest(
            f"average overlap at position {at}, but there are {rankings.num_classes} classes; "
            f"pass `at` from 1 to {rankings.num_classes}"
        )
    report_item = np.asarray(rankings.report_item)
    table = _Table(rankings)
    total, count = np.zeros(rankings.num_items), np.zeros(rankings.num_items)
    for earlier, later, used in _pair_chunks(report_item):
        with jax.enable_x64():
            overlaps = _mean_average_overlaps(*table[earlier], *table[later], rankings.num_classes, at)
        item = report_item[later[:used]]
        np.add.at(total, item, np.asarray(overlaps)[:used])
        np.add.at(count, item, 1)
    return np.divide(total, count, out=np.full(rankings.num_items, np.nan), where=count > 0)


def _cumulative_weights(classes: Array, blocks: Array, num_classes: int | Array, depth: Array) -> tuple[Array, Array]:
    """Return the weights of the listed classes (depth, position), 0 behind the end, and of an unlisted one (depth,)."""
    listed = classes != -1
    before = jnp.sum((blocks[None, :] < blocks[:, None]) & listed[None, :], axis=1)
    tied = jnp.sum((blocks[None, :] == blocks[:, None]) & listed[None, :], axis=1)
    weight = jnp.clip((depth[:, None] - before) / jnp.maximum(tied, 1), 0, 1)
    num_listed = jnp.sum(listed)
    rest = jnp.clip((depth - num_listed) / jnp.maximum(num_classes - num_listed, 1), 0, 1)
    return jnp.where(listed, weight, 0), rest


def _pair_chunks(report_item: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Yield the earlier and later reports of all pairs within an item, in chunks of one size, and how many are real."""
    reports = np.arange(report_item.size)
    # Pairs are numbered by their later report; its partners are the earlier reports of the same item.
    partners = reports - np.searchsorted(report_item, report_item)
    ends = np.cumsum(partners)
    num_pairs = int(partners.sum())
    for start in range(0, num_pairs, _PAIRS_PER_CHUNK):
        # The last chunk repeats its last pair, so that every chunk has the shape that was compiled.
        pair = np.minimum(np.arange(start, start + _PAIRS_PER_CHUNK), num_pairs - 1)
        later = np.searchsorted(ends, pair, side="right")
        yield later - (ends[later] - pair), later, min(num_pairs - start, _PAIRS_PER_CHUNK)


@partial(jax.jit, static_argnames="at")
def _mean_average_overlaps(
    classes_a: Int[Array, "pair a"],
    blocks_a: Int[Array, "pair a"],
    classes_b: Int[Array, "pair b"],
    blocks_b: Int[Array, "pair b"],
    num_classes: Array,
    at: int,
) -> Array:
    """Return `mean_average_overlap` of every pair: arguments (pair, position), result (pair,)."""
    of_one_pair = partial(mean_average_overlap, num_classes=num_classes, at=at)
    return jax.vmap(of_one_pair)(classes_a, blocks_a, classes_b, blocks_b)


class _Table:
    """The classes and blocks of chosen reports, padded to the longest report of the data."""

    def __init__(self, rankings: Rankings) -> None:
        self._classes = np.asarray(rankings.entry_class)[np.asarray(rankings.entry)]
        self._blocks = np.asarray(rankings.block)
        self._ends = np.searchsorted(np.asarray(rankings.report), np.arange(rankings.num_reports), side="right")
        self._sizes = np.diff(self._ends, prepend=0)
        self._positions = np.arange(self._sizes.max(initial=0))

    def __getitem__(self, reports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        listed = self._positions < self._sizes[reports][:, None]
        rows = np.where(listed, (self._ends - self._sizes)[reports][:, None] + self._positions, 0)
        return np.where(listed, self._classes[rows], -1), np.where(listed, self._blocks[rows], 0)
