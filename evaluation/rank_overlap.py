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

from consilience.arrays import Array, Float
from consilience.data.rankings import Rankings
from consilience.errors import UnsupportedRequest
from consilience.evaluation.rank_distances import BucketOrder
from consilience.evaluation.scores import Score

_PAIRS_PER_CHUNK = 8192


def average_overlap(a: BucketOrder, b: BucketOrder, num_classes: int | Array, at: int) -> Float[Array, ""]:
    """Return the average overlap of two rankings, not normalised.

    Parameters
    ----------
    a, b : the rankings, of any lengths.
    num_classes : all classes $K$, listed or not.
    at : the last position $L$ that counts, from 1 to $K$; a Python int.

    Returns
    -------
    float scalar in [0, 1].
    """
    depth = jnp.arange(1, at + 1)
    weight_a, rest_a = _cumulative_weights(a, num_classes, depth)
    weight_b, rest_b = _cumulative_weights(b, num_classes, depth)
    same = (a.classes[:, None] == b.classes[None, :]) & a.listed[:, None]
    only_a = a.listed & ~jnp.any(same, axis=1)
    only_b = b.listed & ~jnp.any(same, axis=0)
    in_neither = num_classes - jnp.sum(a.listed) - jnp.sum(only_b)
    listed_by_both = jnp.sum(jnp.where(same, weight_a[:, :, None] * weight_b[:, None, :], 0), axis=(1, 2))
    listed_by_a = rest_b * jnp.sum(jnp.where(only_a, weight_a, 0), axis=1)
    listed_by_b = rest_a * jnp.sum(jnp.where(only_b, weight_b, 0), axis=1)
    return jnp.mean((listed_by_both + listed_by_a + listed_by_b + rest_a * rest_b * in_neither) / depth)


def mean_average_overlap(a: BucketOrder, b: BucketOrder, num_classes: int | Array, at: int) -> Float[Array, ""]:
    """Return AO(a, b) / sqrt(AO(a, a) AO(b, b)), a float scalar in [0, 1] and 1 for equal rankings.

    The parameters are those of `average_overlap`. Two rankings that list nothing are equal.
    """
    overlap = average_overlap(a, b, num_classes, at)
    itself_a, itself_b = average_overlap(a, a, num_classes, at), average_overlap(b, b, num_classes, at)
    # At most 1 by Cauchy and Schwarz; rounding may exceed it in the last digit.
    return jnp.minimum(overlap / jnp.sqrt(itself_a * itself_b), 1)


def annotator_overlap(data: Rankings, at: int = 3) -> Score:
    """Measure the average overlap between the rankings of each pair of annotators (Stutz et al. 2023, Appendix B.5).

    Parameters
    ----------
    data : Rankings
        rankings.
    at : int, default 3
        How many places of the rankings are compared, from 1 to the number of classes.

    Returns
    -------
    Score
        of each item the mean over pairs of annotators, normalised to 1 for equal rankings; NaN for items with a single
        annotator.

    Raises
    ------
    UnsupportedRequest : there is no such place.

    Examples
    --------
    >>> import consilience as cs
    >>> rankings = cs.Rankings.from_nested([[[["flu"], ["cold"]], [["flu"], ["cold"]]], [[["cold"]], [["flu"]]]])
    >>> cs.annotator_overlap(rankings, at=1).items.tolist()  # the same first place in the first item alone
    [1.0, 0.0]
    """
    if not 1 <= at <= data.num_classes:
        raise UnsupportedRequest(
            f"average overlap at position {at}, but there are {data.num_classes} classes; "
            f"pass `at` from 1 to {data.num_classes}"
        )
    report_item = np.asarray(data.report_item)
    table = _Table(data)
    total, count = np.zeros(data.num_items), np.zeros(data.num_items)
    for earlier, later, used in _pair_chunks(report_item):
        with jax.enable_x64():
            overlaps = _mean_average_overlaps(table[earlier], table[later], data.num_classes, at)
        item = report_item[later[:used]]
        np.add.at(total, item, np.asarray(overlaps)[:used])
        np.add.at(count, item, 1)
    items = np.divide(total, count, out=np.full(data.num_items, np.nan), where=count > 0)
    title = f"average overlap@{at} between annotators"
    return Score(title=title, items=items, draws=np.empty(0), ids=data.items, label="agreement")


def _cumulative_weights(ranking: BucketOrder, num_classes: int | Array, depth: Array) -> tuple[Array, Array]:
    """Return the weights of the listed classes (depth, position), 0 behind the end, and of an unlisted one (depth,)."""
    before, tied = ranking.places()
    weight = jnp.clip((depth[:, None] - before) / jnp.maximum(tied, 1), 0, 1)
    num_listed = jnp.sum(ranking.listed)
    rest = jnp.clip((depth - num_listed) / jnp.maximum(num_classes - num_listed, 1), 0, 1)
    return jnp.where(ranking.listed, weight, 0), rest


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
def _mean_average_overlaps(a: BucketOrder, b: BucketOrder, num_classes: Array, at: int) -> Float[Array, " pair"]:
    """Return `mean_average_overlap` of every pair of rankings, ``(pair, position)``."""
    return jax.vmap(partial(mean_average_overlap, num_classes=num_classes, at=at))(a, b)


class _Table:
    """The classes and blocks of chosen reports, padded to the longest report of the data."""

    def __init__(self, rankings: Rankings) -> None:
        self._classes = np.asarray(rankings.entry_class)[np.asarray(rankings.entry)]
        self._blocks = np.asarray(rankings.block)
        self._ends = np.searchsorted(np.asarray(rankings.report), np.arange(rankings.num_reports), side="right")
        self._sizes = np.diff(self._ends, prepend=0)
        self._positions = np.arange(self._sizes.max(initial=0))

    def __getitem__(self, reports: np.ndarray) -> BucketOrder:
        listed = self._positions < self._sizes[reports][:, None]
        rows = np.where(listed, (self._ends - self._sizes)[reports][:, None] + self._positions, 0)
        return BucketOrder(np.where(listed, self._classes[rows], -1), np.where(listed, self._blocks[rows], 0))
