r"""Split and merge: one pair of records in every component at a time, true values and distortions summed out.

A step draws a pair (i, j) of records of each component. If they are in one cluster S, it is proposed to part them,
every other record of S going with either by the toss of a coin, which has probability :math:`2^{-(|S| - 2)}`; if they
are in clusters A and B, to merge these, which can be proposed in one way only. With

.. math::

    R = \frac{\pi(A)\, \pi(B)\, m(A)\, m(B)}{\pi(S)\, m(S)}

a split is accepted with probability :math:`\min(1, R\, 2^{|S| - 2})`, a merger with
:math:`\min(1, R^{-1}\, 2^{-(|S| - 2)})`. Under the paper's prior, 1 / d! in the number d of links, a split multiplies R
by d, the links that there are before it: since it says nothing of components, all of them propose at once, and are then
accepted or not one after another, with the number of links as it is by then.

The program that was published with SMERED (Steorts, Hall and Fienberg 2014) accepts with another ratio. It draws true
values and distortions for what it proposes, but leaves out the densities of both draws; it leaves out
:math:`2^{|S| - 2}`, the ways to split; and it has no factor for the number of labels. It is therefore no sampler of the
model that it states, and its numbers are no measure for those of this one.

Nothing is enumerated, so that components may have more records than `blocks` could take.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.models.block_linkage.enumeration import conflicts, size_terms
from consilience.models.block_linkage.gibbs.problem import State
from consilience.models.block_linkage.model import Linkable, members_by_size
from consilience.models.hit_miss.marginal import Shown, log_marginals, shown


class Layout(NamedTuple):
    """Components side by side.

    Parameters
    ----------
    member : codes of records, -1 where a component has fewer than the largest one.
    number : how many records each has.
    conflict : which records of a component may not be together.
    """

    member: Int[Array, "component member"]
    number: Int[Array, " component"]
    conflict: Bool[Array, "component member member"]


class Proposal(NamedTuple):
    """What is proposed to every component.

    Parameters
    ----------
    label : the cluster of each record, by the place of its first record.
    links : how many links it adds: 1 for a merger, -1 for a split.
    log_ratio : of its acceptance, without the factor of the number of links.
    """

    label: Int[Array, "component member"]
    links: Int[Array, " component"]
    log_ratio: Float[Array, " component"]


def sizes(data: Linkable) -> list[int]:
    """Return the numbers of records that components have."""
    return [size for size, number in enumerate(data.num_components, 2) if number]


def layout(data: Linkable) -> Layout:
    """Lay the components out side by side; there must be some."""
    most = max(sizes(data))
    several = [jnp.asarray(own) for own in members_by_size(data) if len(own)]
    member = jnp.concatenate([jnp.pad(own, ((0, 0), (0, most - own.shape[1])), constant_values=-1) for own in several])
    conflict = conflicts(jnp.asarray(data.source), member, data.restriction)
    conflict = jnp.zeros((len(member), most, most), bool) if conflict is None else conflict.transpose(2, 0, 1)
    return Layout(member, (member >= 0).sum(axis=1), conflict)


def draw_split_merge(key: Key, state: State, data: Linkable, *, prior: str) -> Int[Array, " record"]:
    """Move the partition given θ, b, μ and m: as many steps as the largest component has pairs.

    Parameters
    ----------
    prior : of the partition, a name in `PARTITION_PRIORS`.

    Returns
    -------
    int32: clusters, each named by its first record.
    """
    if not sizes(data):
        return state.cluster
    where = layout(data)
    most = where.member.shape[1]
    records = shown(jnp.asarray(data.value).T[where.member], state.value_share, state.distortion, data.field)
    records = records._replace(value=jnp.where(where.member[..., None] >= 0, records.value, -1))
    terms = size_terms(state.intensity, state.size_share, most, jnp)
    own = state.cluster[where.member]
    label = (own[:, :, None] == own[:, None]).argmax(axis=2)
    links = (state.cluster != jnp.arange(data.num_records)).sum()

    def step(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        label, links = carry
        key_propose, key_accept = jax.random.split(jax.random.fold_in(key, number))
        proposal = proposed(key_propose, label, where, records, terms)
        takes, links = accepted(key_accept, proposal, links, prior=prior)
        return jnp.where(takes[:, None], proposal.label, label), links

    label, _ = jax.lax.fori_loop(0, most * (most - 1) // 2, step, (label, links))
    first = jnp.take_along_axis(where.member, label, axis=1).astype(jnp.int32)
    place = jnp.where(where.member >= 0, where.member, data.num_records)
    return jnp.asarray(state.cluster).at[place].set(first, mode="drop")


def proposed(
    key: Key, label: Int[Array, "component member"], where: Layout, records: Shown, terms: Float[Array, " members"]
) -> Proposal:
    """Propose to every component that two of its records be parted, or that their clusters be merged.

    Parameters
    ----------
    label : the cluster of each record, by the place of its first record.
    records : of the components, shape ``(component, member, field)``.
    terms : of the prior for clusters of 0, 1, … records; see `size_terms`.
    """
    key_pair, key_coin = jax.random.split(key)
    dtype = terms.dtype
    place = jnp.arange(label.shape[1])
    uniform = jax.random.uniform(key_pair, (2, len(label)), dtype)
    one = jnp.minimum((uniform[0] * where.number).astype(int), where.number - 1)
    other = jnp.minimum((uniform[1] * (where.number - 1)).astype(int), where.number - 2)
    other = other + (other >= one)
    coin = jax.random.bernoulli(key_coin, shape=label.shape)

    def of_component(
        label: Array, one: Array, other: Array, coin: Array, own: Array, conflict: Array, value: Array,
        log_share: Array, log_ratio: Array,
    ) -> Proposal:  # fmt: skip
        joined = (label == label[one]) | (label == label[other])
        together = label[one] == label[other]
        with_one = jnp.where(together, jnp.where(place == other, False, (place == one) | coin), label == label[one])
        parts = jnp.stack([joined, joined & with_one, joined & ~with_one]) & own
        gain = log_ratio_of_split(parts, conflict, Shown(value, log_share, log_ratio, records.log_distortion), terms)
        first = jnp.where(parts[0], parts[0].argmax(), label)
        split = jnp.where(parts[1], parts[1].argmax(), jnp.where(parts[2], parts[2].argmax(), label))
        return Proposal(
            jnp.where(together, split, first), jnp.where(together, -1, 1), jnp.where(together, gain, -gain)
        )

    return jax.vmap(of_component)(
        label, one, other, coin, where.member >= 0, where.conflict, records.value, records.log_share, records.log_ratio
    )


def log_ratio_of_split(
    parts: Bool[Array, "3 member"], conflict: Bool[Array, "member member"], records: Shown,
    terms: Float[Array, " members"],
) -> Float[Array, ""]:  # fmt: skip
    """Return the log of R times the number of ways to split.

    Parameters
    ----------
    parts : of S, A and B, which records are in them.
    """
    size = parts.sum(axis=1)
    forbidden = (parts[:, :, None] & parts[:, None] & conflict).any(axis=(1, 2))
    whole, one, other = jnp.where(forbidden, -jnp.inf, log_marginals(parts, records) + terms[size])
    return one + other - whole + (size[0] - 2) * jnp.log(2.0).astype(terms.dtype)


def accepted(
    key: Key, proposal: Proposal, links: Int[Array, ""], *, prior: str
) -> tuple[Bool[Array, " component"], Int[Array, ""]]:
    """Return which proposals are accepted, and the links that there are then.

    Parameters
    ----------
    links : N - k, of all records.
    """
    log_uniform = -jax.random.exponential(key, proposal.log_ratio.shape, proposal.log_ratio.dtype)
    if prior != "labels":
        takes = log_uniform < proposal.log_ratio
        return takes, links + (takes * proposal.links).sum()

    def one(links: Any, given: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        added, log_ratio, log_uniform = given
        factor = -added * jnp.log((links + (added > 0)).astype(log_ratio.dtype))
        takes = log_uniform < log_ratio + factor
        return links + takes * added, takes

    links, takes = jax.lax.scan(one, links, (proposal.links, proposal.log_ratio, log_uniform))
    return takes, links
