r"""Coordinate ascent for `dirichlet-entity`: the paper's updates, with its bound.

The posterior is approximated by :math:`\prod_i q(z_i) \prod_{kf} q(\beta_{kf})`, categorical and Dirichlet. With
:math:`c_{kfv} = \sum_i \phi_{ik} 1[x_{if} = v]` one sweep is

.. math::

    \lambda_{kfv} = A_{fv} + c_{kfv}, \qquad
    \phi_{ik} \propto \exp \sum_f \left[\psi(\lambda_{k f x_{if}}) - \psi(\sum_v \lambda_{kfv})\right],

over the entities k to which record i may belong; a field that is missing contributes nothing. At the λ of the current φ
all expectations of the bound cancel, and with :math:`n_{kf} = \sum_v c_{kfv}`, :math:`A_{0f} = \sum_v A_{fv}` it is

.. math::

    \sum_{kf} \left\{ \sum_v \left[\ln\Gamma(A_{fv} + c_{kfv}) - \ln\Gamma(A_{fv})\right]
    - \ln\Gamma(A_{0f} + n_{kf}) + \ln\Gamma(A_{0f}) \right\} - \sum_{ik} \phi_{ik} \ln \phi_{ik} - N \ln K.

Values that no record of an entity has contribute zero, so that sums over the entities' own values are enough.

| symbol | name | shape |
|---|---|---|
| φ | ``responsibility`` | (record, entity), or (edge,) of an anchored support |
| c | ``count`` | (value, entity), or (slot,): a value that somebody who may belong to the entity has |
| A, A₀ | ``concentration``, ``total`` | (value,) or (slot,), (field,) |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln, xlogy

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.models.dirichlet_entity.problem import Anchored, Dense, prepare
from consilience.models.dirichlet_entity.shards import shard
from consilience.models.interface import Ascent, Terms, Total, unsharded
from consilience.models.posterior import Closed
from consilience.models.sites import Resolved


class State(NamedTuple):
    """Responsibilities, ``(record, entity)`` or ``(edge,)``, and the entity that led at the start, ``(record,)``."""

    responsibility: Array
    origin: Int[Array, " record"]


def start(key: Key, problem: Dense | Anchored, total: Total = unsharded) -> State:
    """Return one record for each entity, or responsibilities that are uniform over the simplex."""
    if isinstance(problem, Dense):
        shape = (problem.code.shape[1], len(problem.entity))
        own = jnp.eye(*shape, dtype=problem.concentration.dtype)
        weight = jax.random.exponential(key, shape, own.dtype)
    else:
        own = (problem.support.record == problem.support.entity).astype(problem.total.dtype)
        # Each shard draws for all edges, so that the start does not depend on the number of shards.
        every = jax.random.exponential(key, problem.whole.entity.shape, own.dtype)
        weight = every.at[problem.whole.edge].get(mode="fill", fill_value=1)
    responsibility = jnp.where(problem.random, weight / _of_records(weight, problem), own)
    return State(responsibility, _leading(responsibility, problem))


def step(state: State, problem: Dense | Anchored, total: Total = unsharded) -> tuple[State, Terms]:
    """Return the state after one sweep, and the terms of the bound at the state that came in.

    Nothing else is summed over shards: each has all the records of its entities.
    """
    count, sizes = _counts(state.responsibility, problem)
    terms = jnp.concatenate([_evidence(count, sizes, problem), _entropy(state.responsibility, problem)])
    expected = _expected_logs(count, sizes, problem)
    if isinstance(problem, Dense):
        responsibility, number = jax.nn.softmax(expected[problem.code].sum(axis=0), axis=1), None
    else:
        weight = expected[problem.slot].sum(axis=0)
        record, num_records = problem.support.record, len(problem.support.first) - 1
        highest = jax.ops.segment_max(weight, record, num_records, indices_are_sorted=True)
        weight = jnp.exp(weight - highest[record])
        responsibility = weight / _of_records(weight, problem)
        number = 2 * total(_is_real(problem).sum())
    return state._replace(responsibility=responsibility), Terms(terms, jnp.zeros(0, terms.dtype), number)


def sites(state: State, problem: Dense | Anchored, total: Total = unsharded) -> dict[str, Array]:
    """Return what the ascent knows of the entities of all records, those of all shards.

    Returns
    -------
    first : shape ``(record + 1,)``; the edges of record i are ``first[i]:first[i + 1]``.
    entity : shape ``(edge,)``; the entities to which the record may belong.
    probability : shape ``(edge,)``.
    moved : bool, shape ``(record,)``; whether another entity leads than at the start.
    """
    moved = _leading(state.responsibility, problem) != state.origin
    if isinstance(problem, Dense):
        num_records, num_entities = state.responsibility.shape
        first = jnp.arange(num_records + 1, dtype=jnp.int32) * num_entities
        entity = jnp.tile(problem.entity, num_records)
        return {"first": first, "entity": entity, "probability": state.responsibility.ravel(), "moved": moved}
    whole = problem.whole
    # The records of a shard are scattered among all: each shard fills in its own, and the others add zero.
    probability = jnp.zeros(whole.entity.shape, state.responsibility.dtype)
    probability = total(probability.at[whole.edge].add(state.responsibility, mode="drop"))
    moves = total(jnp.zeros(len(whole.first) - 1, jnp.int32).at[whole.record].add(moved, mode="drop"))
    return {
        "first": jnp.asarray(whole.first), "entity": jnp.asarray(whole.entity), "probability": probability,
        "moved": moves > 0,
    }  # fmt: skip


def _counts(responsibility: Array, problem: Dense | Anchored) -> tuple[Array, Array]:
    """Return c, ``(value, entity)`` or ``(slot,)``, and n, ``(field, entity)`` or ``(entity * field,)``."""
    num_fields = len(problem.total)
    if isinstance(problem, Dense):
        count = jnp.zeros((len(problem.concentration) + 1, len(problem.entity)), responsibility.dtype)
        for code in problem.code:
            count = count.at[code].add(responsibility)
        return count[:-1], jax.ops.segment_sum(count[:-1], problem.field, num_fields)
    weight = jnp.broadcast_to(responsibility, problem.slot.shape)
    num_slots = len(problem.concentration)
    count = jax.ops.segment_sum(weight.ravel(), jnp.ravel(problem.slot), num_slots + 1)[:num_slots]
    cells = (len(problem.support.first) - 1) * num_fields
    return count, jax.ops.segment_sum(count, problem.entity_field, cells, indices_are_sorted=True)


def _evidence(count: Array, sizes: Array, problem: Dense | Anchored) -> Float[Array, " entity"]:
    """Return the terms of the bound that are of β, of each entity."""
    concentration, total = jnp.asarray(problem.concentration), jnp.asarray(problem.total)
    if isinstance(problem, Dense):
        values = gammaln(concentration[:, None] + count) - gammaln(concentration)[:, None]
        return values.sum(axis=0) - (gammaln(total[:, None] + sizes) - gammaln(total)[:, None]).sum(axis=0)
    num_records, num_fields = len(problem.support.first) - 1, len(total)
    values = gammaln(concentration + count) - gammaln(concentration)
    own = jax.ops.segment_sum(values, problem.entity_field, len(sizes), indices_are_sorted=True)
    own = own.reshape(num_records, num_fields) - gammaln(total + sizes.reshape(num_records, num_fields))
    return (own + gammaln(total)).sum(axis=1)


def _entropy(responsibility: Array, problem: Dense | Anchored) -> Float[Array, " record"]:
    """Return the entropy of each q(z), less ln K; zero of a record that pads."""
    summed = _of_records(xlogy(responsibility, responsibility), problem, spread=False)
    if isinstance(problem, Dense):
        return -summed - jnp.log(len(problem.entity))
    return jnp.where(_is_real(problem), -summed - problem.log_entities, 0)


def _is_real(problem: Anchored) -> Bool[Array, " record"]:
    """Return which records do not pad."""
    return jnp.asarray(problem.whole.record) < len(problem.whole.first) - 1


def _expected_logs(count: Array, sizes: Array, problem: Dense | Anchored) -> Array:
    """Return the expected logarithms of β by value or slot, and a last row of zeros, for what is missing."""
    concentration, total = jnp.asarray(problem.concentration), jnp.asarray(problem.total)
    if isinstance(problem, Dense):
        whole = digamma(total[:, None] + sizes)[problem.field]
        expected = digamma(concentration[:, None] + count) - whole
    else:
        whole = digamma(total + sizes.reshape(-1, len(total))).ravel()[problem.entity_field]
        expected = digamma(concentration + count) - whole
    return jnp.concatenate([expected, jnp.zeros((1, *expected.shape[1:]), expected.dtype)])


def _of_records(weight: Array, problem: Dense | Anchored, *, spread: bool = True) -> Array:
    """Sum over the entities of each record; `spread` back over them, in the shape that divides the weights."""
    if isinstance(problem, Dense):
        return weight.sum(axis=1, keepdims=spread)
    record, num_records = problem.support.record, len(problem.support.first) - 1
    total = jax.ops.segment_sum(weight, record, num_records, indices_are_sorted=True)
    return total[record] if spread else total


def _leading(responsibility: Array, problem: Dense | Anchored) -> Int[Array, " record"]:
    """Return the most probable entity of each record, the lowest of several."""
    if isinstance(problem, Dense):
        return responsibility.argmax(axis=1).astype(jnp.int32)
    record, num_records = problem.support.record, len(problem.support.first) - 1
    highest = jax.ops.segment_max(responsibility, record, num_records, indices_are_sorted=True)
    entity = jnp.where(responsibility == highest[record], problem.support.entity, num_records)
    return jax.ops.segment_min(entity, record, num_records, indices_are_sorted=True)


def finish(values: dict[str, Any], resolved: Resolved) -> Closed:
    """Return what the ascent ended with: the entities of the records, from which the factors of their values follow.

    What pads is cut off.
    """
    first = np.asarray(values["first"])[: resolved.data.num_records + 1]
    of_edges = {name: np.asarray(values[name])[: first[-1]] for name in ("entity", "probability")}
    return Closed({}, {"first": first, **of_edges, "moved": np.asarray(values["moved"])[: len(first) - 1]})


CAVI = Ascent(name="cavi", prepare=prepare, start=start, step=step, sites=sites, finish=finish, shard=shard)
"""The ascent, for the driver."""
