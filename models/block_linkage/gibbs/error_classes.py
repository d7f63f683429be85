r"""What the Gibbs sampler draws of error classes given who is together: heads, classes, errors.

In each cluster of several records the head is h in proportion to :math:`\prod_{i \neq h} R(i \mid h)`, and the class of
each other record s in proportion to :math:`\pi_s R_s(i \mid h)`. Then everything is counted:

- θ, one for each value of a head, of a record that is alone, of a record in a field that its head lacks, and of an
  error: where a record of one error differs from its head, and the distorted fields of a record with many. Where such
  a record agrees with its head, it is distorted all the same with probability :math:`b \theta / (b \theta + 1 - b)`;
- b, from the fields of records with many errors that both have;
- π, from the classes.

**One error** is drawn in the shares θ from the values that are not the head's y, so that its density has the factor
:math:`1 / (1 - \theta_y)`, which no Dirichlet distribution has. It is the sum over k = 0, 1, … of :math:`\theta_y^k`: k
is how often y itself came out before another value did. So k is drawn too, from the geometric distribution
:math:`(1 - \theta_y) \theta_y^k`, and counts k times for y. Given all k, θ is Dirichlet distributed, exactly.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Float, Int, Key
from consilience.models.block_linkage.error_classes import given_head, other_share
from consilience.models.block_linkage.gibbs.hyperparameters import (
    Counts,
    choose,
    draw_given_counts,
    members_of_several,
)
from consilience.models.block_linkage.gibbs.problem import LinkProblem, State


def draw_class_hyperparameters(
    key: Key, cluster: Int[Array, " record"], state: State, problem: LinkProblem
) -> State:
    """Draw θ, b, π, μ and m given who is together.

    Parameters
    ----------
    cluster : each named by its first record.
    state : has θ, b and π, under which heads, classes and errors are drawn.
    """
    key_counts, key_rest = jax.random.split(key)
    counts = draw_class_counts(
        key_counts, cluster, state.value_share, state.distortion, state.class_share, problem.value,
        largest=len(problem.size_share),
    )  # fmt: skip
    return draw_given_counts(key_rest, cluster, counts, problem)


def draw_class_counts(
    key: Key,
    cluster: Int[Array, " record"],
    value_share: Float[Array, " value"],
    distortion: Float[Array, " field"],
    class_share: Float[Array, " class"],
    value: Int[Array, "record field"],
    *,
    largest: int,
) -> Counts:
    """Draw heads, classes and errors, and count them.

    Parameters
    ----------
    cluster : each named by its first record.
    value_share, distortion, class_share : θ, b and π.
    value : codes into the values of all fields, -1 where missing.
    largest : most records of a cluster.
    """
    key_head, key_class, key_miss, key_again = jax.random.split(key, 4)
    members = members_of_several(cluster, largest)
    filled = members >= 0
    own = jnp.where(filled[..., None], value[members], -1)
    share = value_share[own]
    given = given_head(
        own[:, None], own[:, :, None], share[:, None], share[:, :, None], distortion, class_share, jnp
    )
    head = choose(key_head, _log_weights(given.whole, filled).T)
    of_classes = jnp.take_along_axis(given.classes, head[None, :, None, None], axis=2)[:, :, 0]
    own_class = choose(key_class, jnp.log(of_classes))

    is_head = jnp.arange(largest) == head[:, None]
    other = filled & ~is_head
    exact, one, many = (other & (own_class == kind) for kind in range(3))
    of_head = jnp.take_along_axis(own, head[:, None, None], axis=1)
    there, both = own >= 0, (own >= 0) & (of_head >= 0)
    differs = both & (own != of_head)

    chance = distortion * share
    by_chance = jax.random.uniform(key_miss, own.shape, share.dtype) * (chance + 1 - distortion) < chance
    distorted = both & many[..., None] & (differs | by_chance)
    replaced = differs & one[..., None]
    drawn = there & (is_head[..., None] | ~both) | replaced | distorted

    alone = jnp.ones(len(cluster), bool).at[jnp.where(filled, members, len(cluster))].set(False, mode="drop")
    again = _times_again(key_again, other_share(share, value_share[of_head], jnp))
    num_values, one_each = len(value_share), jnp.ones((), share.dtype)
    number = jnp.zeros(num_values, share.dtype)
    for shown, counted, times in (
        (value, alone[:, None] & (value >= 0), one_each),
        (own, drawn, one_each),
        (jnp.broadcast_to(of_head, own.shape), replaced, again),
    ):
        number = number.at[jnp.where(counted, shown, num_values)].add(times, mode="drop")
    missed, hit = distorted.sum(axis=(0, 1)), (both & many[..., None] & ~distorted).sum(axis=(0, 1))
    classes = jnp.stack([kind.sum() for kind in (exact, one, many)])
    return Counts(number, jnp.stack([missed, hit], axis=1).astype(share.dtype), classes.astype(share.dtype))


def _times_again(key: Key, other: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Draw how often a value comes out before another one does, where others have this share together."""
    uniform = jax.random.uniform(key, other.shape, other.dtype, minval=jnp.finfo(other.dtype).tiny)
    other = jnp.clip(other, jnp.finfo(other.dtype).tiny, 1 - jnp.finfo(other.dtype).epsneg)
    return jnp.floor(jnp.log(uniform) / jnp.log1p(-other))


def _log_weights(whole: Float[Array, "*axes head record"], filled: Array) -> Float[Array, "*axes head"]:
    """Return log w of each member as the head; a place without a record has none, and adds nothing to the others."""
    apart = ~jnp.eye(whole.shape[-1], dtype=bool)
    return jnp.where(filled, jnp.where(apart, whole, 0).sum(axis=-1), -jnp.inf)
