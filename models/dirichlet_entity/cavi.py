r"""Coordinate ascent for `dirichlet-entity`: the paper's updates, with its bound.

The posterior is approximated by :math:`\prod_i q(z_i) \prod_{kf} q(\beta_{kf})`, categorical and Dirichlet. With
:math:`c_{kfv} = \sum_i \phi_{ik} 1[x_{if} = v]` one sweep is

.. math::

    \lambda_{kfv} = A_{fv} + c_{kfv}, \qquad
    \phi_{ik} \propto \exp \sum_f \left[\psi(\lambda_{k f x_{if}}) - \psi(\textstyle\sum_v \lambda_{kfv})\right],

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

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln, xlogy

from consilience.arrays import Array, Bool, Float, Int, Key
from consilience.data.records import Records
from consilience.errors import InvalidPrior, UnsupportedRequest
from consilience.models.dirichlet_entity.priors import Priors, concentrations, field_of_value, value_codes
from consilience.models.dirichlet_entity.support import Support, anchored, least_agreement
from consilience.models.interface import Ascent, Terms

__all__ = [
    "CAVI",
    "Anchored",
    "Dense",
    "Posterior",
    "State",
    "anchored_problem",
    "entities_of",
    "prepare",
    "sites",
    "start",
    "step",
]

# Responsibilities of one GiB in float32.
_MOST_CELLS = 1 << 28


class Dense(NamedTuple):
    """What the sweeps read where a record may belong to every entity.

    Parameters
    ----------
    code : shape ``(field, record)``; over the values of all fields, and the number of values where missing.
    concentration, field : shape ``(value,)``.
    total : shape ``(field,)``.
    entity : shape ``(entity,)``; 0, 1, …
    random : whether the start is random.
    """

    code: Int[Array, "field record"]
    concentration: Float[Array, " value"]
    field: Int[Array, " value"]
    total: Float[Array, " field"]
    entity: Int[Array, " entity"]
    random: Bool[Array, ""]


class Anchored(NamedTuple):
    """What the sweeps read where entity k is that of which record k is the first: an edge for each that is possible.

    Parameters
    ----------
    support : the edges.
    slot : shape ``(field, edge)``; which of the entity's values the record has, the number of slots where missing.
    concentration : shape ``(slot,)``.
    entity_field : shape ``(slot,)``; entity times the number of fields, plus the field.
    total : shape ``(field,)``.
    log_entities : ln K.
    random : whether the start is random.
    """

    support: Support
    slot: Int[Array, "field edge"]
    concentration: Float[Array, " slot"]
    entity_field: Int[Array, " slot"]
    total: Float[Array, " field"]
    log_entities: Float[Array, ""]
    random: Bool[Array, ""]


class State(NamedTuple):
    """Responsibilities, ``(record, entity)`` or ``(edge,)``, and the entity that led at the start, ``(record,)``."""

    responsibility: Array
    origin: Int[Array, " record"]


class Posterior(NamedTuple):
    """The approximate posterior of the entities; that of their values follows from it.

    Parameters
    ----------
    first : shape ``(record + 1,)``; the edges of record i are ``first[i]:first[i + 1]``.
    entity : shape ``(edge,)``; the entities to which the record may belong.
    probability : shape ``(edge,)``.
    moved : shape ``(record,)``; whether another entity leads than at the start.
    """

    first: Int[np.ndarray, " record_plus_one"]
    entity: Int[np.ndarray, " edge"]
    probability: Float[np.ndarray, " edge"]
    moved: Bool[np.ndarray, " record"]


def entities_of(data: Records, num_entities: int) -> int:
    """Return K: as many as there are records where none is given."""
    return num_entities or data.num_records


def prepare(
    data: Records, priors: Priors, *, support: str, num_entities: int, start: str, agree: int
) -> Dense | Anchored:
    """Collect what the sweeps read.

    Raises
    ------
    InvalidPrior : a concentration is not positive.
    UnsupportedRequest : there are too few entities for the start or the support, or too many numbers.
    """
    concentration = np.asarray(concentrations(priors, data))
    if not np.all((concentration > 0) & np.isfinite(concentration)):
        raise InvalidPrior("a concentration of site 'value_share' is not above 0; give positive numbers")
    number = entities_of(data, num_entities)
    if number < data.num_records and (support == "anchored" or start == "records"):
        raise UnsupportedRequest(
            f"there are {number} entities for {data.num_records} records; with support='anchored', and with "
            "start='records', every record can have one of its own: leave out num_entities="
        )
    if support == "anchored":
        edges = anchored(data, least_agreement(agree, data))
        return anchored_problem(data, concentration, edges, number, start)
    if number * data.num_records > _MOST_CELLS:
        raise UnsupportedRequest(
            f"a dense support of {data.num_records:,} records and {number:,} entities is too large; use "
            "support='anchored'"
        )
    return Dense(
        code=np.asarray(value_codes(data), np.int32),
        concentration=concentration,
        field=np.asarray(field_of_value(data), np.int32),
        total=_total(data, concentration),
        entity=np.arange(number, dtype=np.int32),
        random=np.asarray(start == "random"),
    )


def anchored_problem(
    data: Records, concentration: Float[np.ndarray, " value"], support: Support, num_entities: int, start: str
) -> Anchored:
    """Give each value that an entity may have a slot: each that some record on an edge to it has."""
    code = np.asarray(value_codes(data), np.int64)[:, support.record]
    observed = code < data.num_values
    cells = (support.entity.astype(np.int64) * max(data.num_values, 1) + code)[observed]
    slots, place = np.unique(cells, return_inverse=True)
    slot = np.full(code.shape, len(slots), np.int32)
    slot[observed] = place
    entity, value = np.divmod(slots, max(data.num_values, 1))
    return Anchored(
        support=support,
        slot=slot,
        concentration=concentration[value],
        entity_field=(entity * data.num_fields + np.asarray(field_of_value(data))[value]).astype(np.int32),
        total=_total(data, concentration),
        log_entities=np.asarray(np.log(num_entities), concentration.dtype),
        random=np.asarray(start == "random"),
    )


def _total(data: Records, concentration: Float[np.ndarray, " value"]) -> Float[np.ndarray, " field"]:
    """Return A₀; of a field without values it is 1, which no count ever meets."""
    total = np.bincount(np.asarray(field_of_value(data)), concentration, data.num_fields)
    return np.where(total > 0, total, 1.0).astype(concentration.dtype)


def start(key: Key, problem: Dense | Anchored) -> State:
    """Return one record for each entity, or responsibilities that are uniform over the simplex."""
    if isinstance(problem, Dense):
        shape = (problem.code.shape[1], len(problem.entity))
        alone = jnp.eye(*shape, dtype=problem.concentration.dtype)
    else:
        shape = problem.support.record.shape
        alone = (problem.support.record == problem.support.entity).astype(problem.total.dtype)
    weight = jax.random.exponential(key, shape, alone.dtype)
    responsibility = jnp.where(problem.random, weight / _of_records(weight, problem), alone)
    return State(responsibility, _leading(responsibility, problem))


def step(state: State, problem: Dense | Anchored) -> tuple[State, Terms]:
    """Return the state after one sweep, and the terms of the bound at the state that came in."""
    count, sizes = _counts(state.responsibility, problem)
    terms = jnp.concatenate([_evidence(count, sizes, problem), _entropy(state.responsibility, problem)])
    expected = _expected_logs(count, sizes, problem)
    if isinstance(problem, Dense):
        responsibility = jax.nn.softmax(expected[problem.code].sum(axis=0), axis=1)
    else:
        weight = expected[problem.slot].sum(axis=0)
        record, num_records = problem.support.record, len(problem.support.first) - 1
        highest = jax.ops.segment_max(weight, record, num_records, indices_are_sorted=True)
        weight = jnp.exp(weight - highest[record])
        responsibility = weight / _of_records(weight, problem)
    return state._replace(responsibility=responsibility), Terms(terms, jnp.zeros(0, terms.dtype))


def sites(state: State, problem: Dense | Anchored) -> dict[str, Array]:
    """Return the fields of the `Posterior`."""
    moved = _leading(state.responsibility, problem) != state.origin
    if isinstance(problem, Anchored):
        first, entity = jnp.asarray(problem.support.first), jnp.asarray(problem.support.entity)
    else:
        num_records, num_entities = state.responsibility.shape
        first = jnp.arange(num_records + 1, dtype=jnp.int32) * num_entities
        entity = jnp.tile(problem.entity, num_records)
    return {"first": first, "entity": entity, "probability": state.responsibility.ravel(), "moved": moved}


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
    """Return the entropy of each q(z), less ln K."""
    log_entities = jnp.log(len(problem.entity)) if isinstance(problem, Dense) else problem.log_entities
    summed = _of_records(xlogy(responsibility, responsibility), problem, spread=False)
    return -summed - log_entities


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


CAVI = Ascent(prepare=prepare, start=start, step=step, sites=sites)
"""The ascent, for the driver."""
