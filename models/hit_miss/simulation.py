"""Records from the prior of hit-miss: partitions, true values, distortions, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy import special

from consilience.arrays import Array, Float, Int, Key
from consilience.data.codes import object_array
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.enumeration import conflicts, first_places, pairs_within, set_partitions, together
from consilience.models.block_linkage.model import Linkable, members_by_size
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.simulation import numbered
from consilience.models.hit_miss.priors import hyperpriors
from consilience.models.interface import Simulation
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import first_members

_LISTED = 8
"""So many records have few enough partitions to list them."""

_MOST_TRIES = 10_000
_MOST_DRAWN = 1_000_000  # sizes at a time


def draw_data(
    key: Key | int, resolved: Resolved, sizes: Mapping[str, Any], values: Mapping[str, Any] | None = None
) -> tuple[Records, dict[str, np.ndarray]]:
    """Draw hyperparameters, a partition and records from the prior; who is who is known.

    Parameters
    ----------
    sizes : ``num_records``; ``num_values``, how many values each field may have; ``missing``, the share of the values
        that are lost; ``num_sources``, how many files the records come in, at random. ``num_items``,
        ``num_annotators`` and ``num_labels`` are other names for records, fields and values of each field, by which
        `check` calls it.
    values : true values as this function returns them: keep them, and draw the records alone anew.

    Returns
    -------
    data : with known entities; values that no record shows are among the values all the same.
    values : ``distortion`` ``(field,)``, ``value_share`` ``(value,)``, ``cluster`` ``(record,)``, each named by its
        first record; under the prior "entities" also ``size_share`` and ``intensity``.

    Raises
    ------
    UnsupportedRequest : a restriction; and where hardly any partition has no entity of too many records.
    """
    settings, (number, num_values) = resolved.settings, _records_and_values(**sizes)
    if settings.restriction != "none":
        raise UnsupportedRequest(
            f"records with restriction={settings.restriction!r} cannot be drawn from the prior"
        )
    widths, field = np.asarray(num_values), np.repeat(np.arange(len(num_values)), num_values)
    key = jax.random.key(key) if isinstance(key, int) else key
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    if values is None:
        own, concentration = hyperpriors(resolved), resolved.given.value_share
        found = {
            "distortion": generator.beta(*own.distortion.T),
            "value_share": np.concatenate([generator.dirichlet(np.full(width, concentration)) for width in widths]),
        }
        if settings.prior == "entities":
            found |= _draw_entities(generator, number, own)
        else:
            found["cluster"] = _draw_partition(generator, number, settings.prior, settings.largest)
    else:
        found = {name: np.asarray(value) for name, value in values.items()}
    num_sources, shape = sizes["num_sources"], (len(widths), number)
    lost = generator.random(shape) < sizes["missing"]
    value = _drawn(
        key, found["cluster"], np.where(lost, -1, 0), found["value_share"], found["distortion"], field
    )
    first_value = np.concatenate([[0], np.cumsum(widths)]).astype(np.int32)
    code = np.where(lost, -1, np.asarray(value) - first_value[:-1, None])
    _, entity = np.unique(found["cluster"], return_inverse=True)
    records = Records(
        value=code.astype(np.int32), source=generator.integers(num_sources, size=number).astype(np.int32),
        first_value=first_value, entity=entity.astype(np.int32), num_records=number, num_fields=len(widths),
        num_sources=num_sources, num_values=int(widths.sum()),
        records=numbered("r", number), fields=numbered("field_", len(widths)), sources=numbered("file_", num_sources),
        values=object_array(f"v{place + 1}" for width in widths for place in range(width)),
        entities=numbered("e", int(entity.max()) + 1),
    )  # fmt: skip
    return records, found


@jax.jit
def _drawn(key: Key, *given: Array) -> Int[Array, "field record"]:
    """Draw the values of records in one program."""
    return draw_values(jax.random.fold_in(key, 1), *given)


def _records_and_values(
    *, num_records: int | None, num_values: Sequence[int], num_items: int | None, num_annotators: int | None,
    num_labels: int | None, **sizes: Any,
) -> tuple[int, Sequence[int]]:  # fmt: skip
    """Return how many records there are, and how many values each field may have."""
    return num_records or num_items or 200, (num_labels or 3,) * num_annotators if num_annotators else num_values


def _empty(**sizes: Any) -> Records:
    number, num_values = _records_and_values(**sizes)
    return Records.empty(num_records=number, num_fields=len(num_values))


def _draw_partition(
    generator: np.random.Generator, number: int, prior: str, largest: int
) -> Int[np.ndarray, " record"]:
    """Draw a partition from its prior, again and again until no cluster has too many records."""
    for _ in range(_MOST_TRIES):
        urns = number if prior == "labels" else _number_of_urns(generator, number)
        label = generator.integers(urns, size=number)
        if np.bincount(label).max() <= largest:
            return first_members(label)
    raise _hardly_any(number, prior, largest)


def _draw_entities(generator: np.random.Generator, number: int, own: Hyperprior) -> dict[str, np.ndarray]:
    """Draw μ, m and a partition under the prior "entities", given that there are so many records.

    Sizes are drawn from μ, one entity after another, until they make up exactly all records. With m summed out, which
    is Gamma(a, b), so many entities have a weight in proportion to Γ(a + k) / (k! (1 + b)^k); given k, m is
    Gamma(a + k, b + 1).
    """
    shape, rate = own.intensity
    entities = np.arange(number + 1)
    log_weight = special.gammaln(shape + entities) - special.gammaln(entities + 1) - entities * np.log1p(rate)
    log_weight -= log_weight[1:].max()
    together = int(np.clip(_MOST_DRAWN // number, 1, 100))
    for _ in range(-(-_MOST_TRIES // together)):
        size_share = generator.dirichlet(own.size_share, together)
        end = np.cumsum(size_share, axis=1)[:, None, :-1]
        size = 1 + (generator.random((together, number, 1)) > end).sum(axis=2)
        complete = np.cumsum(size, axis=1) == number
        num_entities = complete.argmax(axis=1) + 1
        accepted = complete.any(axis=1) & (np.log(generator.random(together)) < log_weight[num_entities])
        if accepted.any():
            one = int(accepted.argmax())
            label = np.repeat(np.arange(num_entities[one]), size[one, : num_entities[one]])
            intensity = generator.gamma(shape + num_entities[one]) / (rate + 1)
            cluster = first_members(generator.permutation(label))
            return {"size_share": size_share[one], "intensity": np.asarray(intensity), "cluster": cluster}
    raise _hardly_any(number, "entities", len(own.size_share))


def _hardly_any(number: int, prior: str, largest: int) -> UnsupportedRequest:
    return UnsupportedRequest(
        f"hardly any partition of {number:,} records has no entity of more than {largest} under the prior {prior!r}; "
        "give fewer records or a larger largest="
    )


def _number_of_urns(generator: np.random.Generator, number: int) -> int:
    """Draw how many urns to throw records into, so that all their partitions are as likely (Stam 1983)."""
    urns = np.arange(1, 4 * number + 40)
    log_weight = number * np.log(urns) - np.cumsum(np.log(urns))
    weight = np.exp(log_weight - log_weight.max())
    return int(generator.choice(urns, p=weight / weight.sum()))


SIMULATION = Simulation(
    draw=draw_data, empty=_empty,
    sizes={
        "num_records": None, "num_values": (150, 100, 90, 12, 31), "missing": 0.0, "num_sources": 1, "num_items": None,
        "num_annotators": None, "num_labels": None,
    },
)  # fmt: skip


# ---- in compiled programs ----


def draw_values(
    key: Key, cluster: Int[Array, " record"], value: Int[Array, "field record"], value_share: Float[Array, " value"],
    distortion: Float[Array, " field"], field: Int[Array, " value"],
) -> Int[Array, "field record"]:  # fmt: skip
    """Draw true values of clusters, and of each record copies of them or other values.

    Parameters
    ----------
    cluster : of each record, the code of its first one.
    value : -1 where one is missing, which stays so.
    value_share, distortion : θ and b.
    field : of each value.

    Returns
    -------
    codes into the values of all fields, -1 where missing.
    """
    key_true, key_other, key_distorted = jax.random.split(key, 3)
    of_field = field == jnp.arange(len(distortion))[:, None]
    log_share = jnp.where(of_field, jnp.log(value_share), -jnp.inf)[:, None]
    true, other = (
        jax.random.categorical(own, log_share, shape=value.shape, axis=-1) for own in (key_true, key_other)
    )
    distorted = jax.random.uniform(key_distorted, value.shape, distortion.dtype) < distortion[:, None]
    drawn = jnp.where(distorted, other, true[:, cluster])
    return jnp.where(value >= 0, drawn, -1).astype(jnp.int32)


def draw_prior_clusters(
    key: Key, data: Linkable, *, prior: str, size_share: Float[Array, " size"], intensity: Float[Array, ""]
) -> Int[Array, " record"]:
    """Draw a partition from its prior, among those that join records of a component only and that the data allow.

    All partitions are listed, and nothing of how they are sampled given records is used.

    Raises
    ------
    UnsupportedRequest : there are more than eight records.
    """
    number = data.num_records
    if number > _LISTED:
        raise UnsupportedRequest(f"partitions of {number} records cannot be listed; of up to {_LISTED} they can")
    labels = set_partitions(number).astype(int)
    size_of = (labels[:, :, None] == np.arange(number)).sum(axis=1)  # (partition, cluster)
    by_size = (size_of[:, :, None] == np.arange(1, number + 1)).sum(axis=1)
    links = number - (size_of > 0).sum(axis=1)
    if prior == "labels":
        log_weight = -gammaln(jnp.asarray(1.0 + links))
    elif prior == "partitions":
        log_weight = jnp.zeros(len(labels))
    else:
        known = jnp.pad(size_share, (0, max(number - len(size_share), 0)), constant_values=1)[:number]
        of_size = jnp.log(intensity) + gammaln(jnp.arange(2.0, number + 2)) + jnp.log(known)
        log_weight = by_size @ of_size
    too_large = jnp.asarray(by_size[:, len(size_share) :].any(axis=1))
    forbidden = _forbidden(data)[pairs_within(number)] @ together(number).astype(int) > 0
    drawn = jax.random.categorical(key, jnp.where(too_large | forbidden, -jnp.inf, log_weight))
    return jnp.asarray(first_places(number), jnp.int32)[drawn]


def _forbidden(data: Linkable) -> Int[Array, "record record"]:
    """Return 1 where two records may not be together."""
    number = data.num_records
    component = jnp.arange(number)
    for own in members_by_size(data):
        component = component.at[own].set(jnp.asarray(own)[:, :1])
    apart = component[:, None] != component
    conflict = conflicts(jnp.asarray(data.source), np.arange(number)[None], data.restriction)
    return (apart if conflict is None else apart | conflict[:, :, 0]).astype(int)
