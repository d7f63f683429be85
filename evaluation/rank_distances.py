r"""Kendall and footrule distances between rankings with ties, compared down to a position.

A ranking is a *bucket order*: blocks of tied classes, best block first. What stands behind its end is ignored. A class
that the data do not know, -2, equals no other class, not even another -2.

Both rankings are cut at position $L$: blocks are kept in order as long as they *start* at a position up to $L$, and a
block that straddles $L$ is kept whole, so $l_1, l_2$ classes remain ($L$ without ties). $U$ is the union of the kept
classes; in each ranking the members of $U$ that it did not keep form one last bucket. This gives every member of $U$ a
position in both: the mean of the positions that its bucket occupies, or $\max(l_1, l_2) + 1$ in the last bucket. Both
distances are functions of these positions alone.

References
----------
R. Fagin, R. Kumar, D. Sivakumar. Comparing top k lists. SIAM Journal on Discrete Mathematics 17 (2003): the measures
:math:`K^{(1/2)}` and :math:`F^{(\ell)}`.

R. Fagin, R. Kumar, M. Mahdian, D. Sivakumar, E. Vee. Comparing and aggregating rankings with ties. PODS (2004).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int


class BucketOrder(NamedTuple):
    """A ranking with ties, padded.

    Parameters
    ----------
    classes : int32, shape ``(position,)``; best first, -1 after the end, -2 for an unknown class.
    blocks : int32, shape ``(position,)``; the number of the block of each class, non-decreasing.
    """

    classes: Any
    blocks: Any

    @property
    def listed(self) -> Bool[Array, " position"]:
        """Which positions are not behind the end."""
        return self.classes != -1

    def places(self) -> tuple[Int[Array, " position"], Int[Array, " position"]]:
        """Return how many listed classes are in earlier blocks than each class, and how many in its own."""
        blocks, listed = self.blocks, self.listed[None, :]
        earlier = jnp.sum((blocks[None, :] < blocks[:, None]) & listed, axis=1)
        return earlier, jnp.sum((blocks[None, :] == blocks[:, None]) & listed, axis=1)


class _Comparison(NamedTuple):
    """Twice the positions (means can be halves) of the classes of the union, and how many each ranking keeps."""

    position_a: Array
    position_b: Array
    member: Array
    kept_a: Array
    kept_b: Array


def kendall_distance(a: BucketOrder, b: BucketOrder, at: int | Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Return Kendall's distance with penalty 1/2 and its maximum.

    Over the unordered pairs of $U$: 1 for two classes in different buckets in both rankings and in opposite order, 1/2
    for two that share a bucket in exactly one of the rankings, 0 otherwise. The maximum

    .. math:: l_1 l_2 + \tfrac{1}{2} \left\{\binom{l_1}{2} + \binom{l_2}{2}\right\}

    is that of disjoint lists, $L(3L-1)/2$ when both keep $L$ classes; with ties it is an upper bound.

    Parameters
    ----------
    a, b : the rankings, of any lengths.
    at : the position $L$ at which both are cut, 1 or more.

    Returns
    -------
    distance, maximum : float scalars, in pairs. Both are 0 where $U$ holds fewer than two classes.
    """
    pair = _compare(a, b, at)
    order_a, order_b = _order(pair.position_a), _order(pair.position_b)
    both = pair.member[:, None] & pair.member[None, :]
    # |difference of signs| is 2 for opposite order, 1 for one tie; the sum meets each pair twice.
    distance = jnp.sum(jnp.where(both, jnp.abs(order_a - order_b), 0)) / 4
    kept_a, kept_b = pair.kept_a, pair.kept_b
    maximum = (4 * kept_a * kept_b + kept_a * (kept_a - 1) + kept_b * (kept_b - 1)) / 4
    return distance, maximum


def footrule_distance(a: BucketOrder, b: BucketOrder, at: int | Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
    r"""Return Spearman's footrule with the location parameter :math:`\ell = \max(l_1, l_2) + 1`, and its maximum.

    The sum over $U$ of the differences between the two positions of a class. The maximum

    .. math:: \ell (l_1 + l_2) - \{l_1 (l_1 + 1) + l_2 (l_2 + 1)\} / 2

    is that of disjoint lists, $L(L+1)$ when both keep $L$ classes.

    Parameters
    ----------
    a, b : the rankings, of any lengths.
    at : the position $L$ at which both are cut, 1 or more.

    Returns
    -------
    distance, maximum : float scalars, in positions. Both are 0 where both rankings are empty.
    """
    pair = _compare(a, b, at)
    distance = jnp.sum(jnp.where(pair.member, jnp.abs(pair.position_a - pair.position_b), 0)) / 2
    kept_a, kept_b = pair.kept_a, pair.kept_b
    location = jnp.maximum(kept_a, kept_b) + 1
    maximum = (2 * location * (kept_a + kept_b) - kept_a * (kept_a + 1) - kept_b * (kept_b + 1)) / 2
    return distance, maximum


def kendall_score(a: BucketOrder, b: BucketOrder, at: int | Array) -> Float[Array, ""]:
    """Return 1 - distance / maximum of `kendall_distance`, a float scalar in [0, 1].

    An empty ranking orders no pair: it has distance 0, score 1, to another empty ranking and to a single block.
    """
    return _score(*kendall_distance(a, b, at))


def footrule_score(a: BucketOrder, b: BucketOrder, at: int | Array) -> Float[Array, ""]:
    """Return 1 - distance / maximum of `footrule_distance`, a float scalar in [0, 1]; 1 for two empty rankings."""
    return _score(*footrule_distance(a, b, at))


def _score(distance: Array, maximum: Array) -> Array:
    return 1 - distance / jnp.where(maximum > 0, maximum, 1)


def _compare(a: BucketOrder, b: BucketOrder, at: int | Array) -> _Comparison:
    """Place the union: first the classes that ranking a keeps, then those that only b keeps."""
    own_a, keeps_a = _positions(a, at)
    own_b, keeps_b = _positions(b, at)
    kept_a, kept_b = jnp.sum(keeps_a), jnp.sum(keeps_b)
    last = 2 * (jnp.maximum(kept_a, kept_b) + 1)
    known = (a.classes >= 0) & keeps_a
    same = (a.classes[:, None] == b.classes[None, :]) & known[:, None] & keeps_b[None, :]
    a_in_b = jnp.where(same.any(axis=1), jnp.sum(jnp.where(same, own_b[None, :], 0), axis=1), last)
    position_a = jnp.concatenate([own_a, jnp.broadcast_to(last, own_b.shape)])
    position_b = jnp.concatenate([a_in_b, own_b])
    member = jnp.concatenate([keeps_a, keeps_b & ~same.any(axis=0)])
    return _Comparison(position_a, position_b, member, kept_a, kept_b)


def _positions(ranking: BucketOrder, at: int | Array) -> tuple[Array, Array]:
    """Return twice the mean position of each class's block, and whether the cut keeps the class."""
    earlier, tied = ranking.places()
    return 2 * earlier + tied + 1, ranking.listed & (earlier < at)


def _order(position: Int[Array, " n"]) -> Int[Array, "n n"]:
    return jnp.sign(position[:, None] - position[None, :])
