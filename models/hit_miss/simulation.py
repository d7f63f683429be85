"""Records from the prior of hit-miss: partitions, true values, distortions, values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from consilience.arrays import Float, Int, Key
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.priors import Hyperprior
from consilience.models.block_linkage.simulation import generators, numbered, with_names
from consilience.models.hit_miss.priors import hyperpriors
from consilience.models.interface import Simulation
from consilience.models.sites import Resolved
from consilience.models.truth.partitions import first_members

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
    (generator,) = generators(key, 1)
    found = {name: np.asarray(value) for name, value in (values or {}).items()}
    if values is None:
        own, concentration = hyperpriors(resolved), resolved.given.value_share
        shares = [generator.dirichlet(np.full(width, concentration)) for width in num_values]
        found = {"distortion": generator.beta(*own.distortion.T), "value_share": np.concatenate(shares)}
        if settings.prior == "entities":
            found |= _draw_entities(generator, number, own)
        else:
            found["cluster"] = _draw_partition(generator, number, settings.prior, settings.largest)
    first_value = np.cumsum([0, *num_values])
    lost = generator.random((len(num_values), number)) < sizes["missing"]
    value = draw_records(
        generator, found["cluster"], -lost.astype(np.int32), first_value, found["value_share"], found["distortion"]
    )
    code = np.where(lost, -1, value - first_value[:-1, None])
    _, entity = np.unique(found["cluster"], return_inverse=True)
    source = generator.integers(sizes["num_sources"], size=number)
    vocabulary = [numbered("v", width) for width in num_values]
    return with_names(code, source, entity, vocabulary, sizes["num_sources"]), found


def draw_records(
    generator: np.random.Generator, cluster: Int[np.ndarray, " record"], shown: Int[np.ndarray, "field record"],
    first_value: Int[np.ndarray, " fields_and_one"], share: Float[np.ndarray, " value"],
    distortion: Float[np.ndarray, " field"],
) -> Int[np.ndarray, "field record"]:  # fmt: skip
    """Draw the values of records, as codes into those of all fields, given who is together, θ and b.

    Parameters
    ----------
    cluster : equal where records are together.
    shown : negative where a value is missing, and missing it will be: -1.
    """
    value = np.full(shown.shape, -1, np.int32)
    _, entity = np.unique(cluster, return_inverse=True)
    for field, (begin, end) in enumerate(itertools.pairwise(first_value)):
        if end > begin:
            last = np.cumsum(share[begin:end])
            uniform = generator.random((2, len(cluster))) * last[-1]
            true, other = begin + np.minimum(np.searchsorted(last, uniform, side="right"), end - begin - 1)
            drawn = np.where(generator.random(len(cluster)) < distortion[field], other, true[entity])
            value[field] = np.where(shown[field] < 0, -1, drawn)
    return value


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
