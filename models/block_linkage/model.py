"""Block-linkage as a NumPyro model: the hyperparameters are sampled, the linkage is summed out.

All partitions of up to eight records are summed. Of more, those that join candidate pairs only, component by component:
a lower bound on the density, so that what the candidates leave out is left out of the posterior too. Candidates are
found once, with wide values of the hyperparameters: a graph that followed them would be no fixed target.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.special import gammaln

from consilience.arrays import Array, Float, Int
from consilience.data.contract import Contract, array, size
from consilience.data.records import Records
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.em import candidates
from consilience.models.block_linkage.enumeration import Enumerated, conflicts, enumerate_blocks_jax, size_terms
from consilience.models.block_linkage.error_classes import CLASS_PRIOR, ErrorClasses
from consilience.models.block_linkage.hidden_links import found_share
from consilience.models.block_linkage.join import join_rule, prior_log_odds
from consilience.models.block_linkage.labels import refuse_labels
from consilience.models.block_linkage.likelihood import Likelihood
from consilience.models.block_linkage.parameters import Parameters, value_codes
from consilience.models.block_linkage.parts import Cut, parts_of
from consilience.models.block_linkage.repeats import Alike, alike_apart
from consilience.models.block_linkage.similar import for_data
from consilience.models.block_linkage.starting import record_shares
from consilience.models.sites import Resolved, Site
from consilience.models.unbounded import LogGamma, LogitBeta

SITES = (
    Site("distortion", plates=("field",), family=dist.Beta, prior_plates=("field",)),
    Site("size_share", event=("size",), family=dist.Dirichlet, context=("largest",)),
    Site("size_log_odds", event=("smaller_size",)),
    Site("intensity", family=dist.Gamma),
    Site("value_share", event=("value",)),
    Site("value_log_weight", event=("value",)),
    Site("class_share", event=("error_class",)),
    Site("source_share", event=("source",)),
    Site("cluster", event=("record",)),
)
"""Of this member and of hit-miss; which of them there are depends on the settings."""

_ALL_PARTITIONS = 8
"""So many records have few enough partitions, 4,140, that all of them are summed."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Linkable(Contract):
    """Records with the components of their candidates; goes through JAX. Made by `linkable`.

    Parameters
    ----------
    value : int32, shape ``(field, record)``; codes into the values of all fields, -1 where missing.
    source : int32, shape ``(record,)``.
    member : int32; records of all components, ordered by the number of records.
    field : int32, shape ``(value,)``; the field of each value.
    number : int32, shape ``(value,)``; how often each occurs.
    share : float64, shape ``(value,)``; how often among the records that have the field.
    first_value : int32, shape ``(field + 1,)``; where the values of each field begin.
    near, distance : as in `Records`; empty where no field is compared by similarity.
    candidates : what the likelihood says beforehand of the components of 2, 3, … records.
    cut, alike : float64, shapes ``(5,)`` and ``(3,)``; what the components leave out, as in `Cut` and `Alike`.
    num_components : how many components have 2, 3, … records.
    num_records, num_fields, num_sources : sizes.
    restriction : which records may be together.
    similar : of each field, whether and how it is compared by similarity, as in `Records`.
    """

    value: Any = array()
    source: Any = array()
    member: Any = array()
    field: Any = array()
    number: Any = array()
    share: Any = array()
    first_value: Any = array()
    near: Any = array()
    distance: Any = array()
    candidates: Any = array()
    cut: Any = array()
    alike: Any = array()
    num_components: Any = size(derived=True)
    num_records: int = size()
    num_fields: int = size()
    num_sources: int = size()
    restriction: str = size(derived=True)
    similar: tuple[int, ...] = size(derived=True)

    @property
    def fields(self) -> None:
        """Names of fields are not kept."""


def linkable(
    records: Records,
    *,
    likelihood: str | Likelihood = "hit-miss",
    threshold: float = 4.0,
    largest: int = 6,
    restriction: str = "none",
) -> Linkable:
    """Find the components of candidates; of up to eight records, all are one.

    Parameters
    ----------
    likelihood, threshold, largest, restriction : the settings of these names; candidates are found with a distortion of
        .05, and sizes 1, 2 and 3 in the shares .8, .15 and .05.

    Raises
    ------
    UnsupportedRequest : the records are inside of a compiled program, or have labels.
    """
    if isinstance(records.value, jax.core.Tracer):
        raise UnsupportedRequest("candidates cannot be found in a compiled program; pass linkable(records) into it")
    refuse_labels(records, "a model whose linkage is summed out")
    number = records.num_records
    share = record_shares(records)
    chosen = for_data(likelihood, records, share)
    cut, alike = Cut(0, 0, number, 0, 0.0), Alike(0, 0, 0.0)
    if number <= _ALL_PARTITIONS:
        members = [np.arange(number if own == number else 0).reshape(-1, own) for own in range(2, number + 1)]
    else:
        wide = chosen.started(wide_parameters(records))
        found = candidates(records, wide, chosen, threshold, restriction)
        parts = parts_of(found, number, largest=largest, size_limit=largest)
        members, cut = list(parts.members), parts.cut
        if records.candidate is None:
            alike = alike_apart(records, wide, chosen, prior_log_odds(wide), threshold, restriction)
    codes = value_codes(records.value, records.first_value)
    similar = np.zeros(records.num_fields, np.int8) if records.similar is None else records.similar
    return Linkable(
        value=codes.astype(np.int32),
        source=records.source,
        member=np.concatenate([np.zeros(0, np.int32), *(own.ravel() for own in members)]).astype(np.int32),
        field=np.repeat(np.arange(records.num_fields, dtype=np.int32), np.diff(records.first_value)),
        number=np.bincount(codes[codes >= 0], minlength=records.num_values).astype(np.int32),
        share=share,
        first_value=records.first_value,
        near=np.zeros((0, 2), np.int32) if records.near is None else records.near,
        distance=np.zeros(0) if records.distance is None else records.distance,
        candidates=tuple(chosen.candidates(codes[:, own.T].transpose(1, 0, 2)) for own in members if len(own)),
        cut=np.array(cut, float),
        alike=np.array(alike, float),
        num_components=tuple(len(own) for own in members),
        num_records=number,
        num_fields=records.num_fields,
        num_sources=records.num_sources,
        restriction=restriction,
        similar=tuple(similar.tolist()),
    )


def wide_parameters(records: Records) -> Parameters:
    """Return the hyperparameters that candidates are found with, before anything is known of the data."""
    sizes = np.array([0.8, 0.15, 0.05])
    return Parameters(record_shares(records), np.full(records.num_fields, 0.05), records.num_records / 1.3, sizes)


def found_by_wide(
    records: Records, parameters: Parameters, *, likelihood: str | Likelihood = "hit-miss", threshold: float = 4.0
) -> float:
    """Return the share of links that are expected among the candidates of `linkable`; nan where nobody knows.

    Parameters
    ----------
    parameters : what links look like.
    likelihood, threshold : as `linkable` takes them.
    """
    if records.num_records <= _ALL_PARTITIONS:
        return 1.0
    wide, chosen = wide_parameters(records), for_data(likelihood, records, parameters.value_share)
    if records.candidate is not None or not chosen.additive:
        return np.nan
    rule = join_rule(records, wide, chosen, threshold=threshold)
    return found_share(
        parameters, records.first_value, records.value, chosen, threshold, in_force=wide, rule=rule
    ).share


def prepared(resolved: Resolved) -> Resolved:
    """Return it with the components of candidates beside the records, which the density needs beforehand."""
    return with_components(resolved, resolved.settings.likelihood)


def with_components(resolved: Resolved, likelihood: str | Likelihood = "hit-miss") -> Resolved:
    """Return it with the components of candidates in the place of the records, unless they are there already."""
    data, own = resolved.data, resolved.settings
    if isinstance(data, Linkable):
        return resolved
    found = linkable(
        data, likelihood=likelihood, threshold=own.threshold, largest=own.largest, restriction=own.restriction
    )
    return resolved.replace(data=found)


def density(resolved: Resolved) -> None:
    """Sample the hyperparameters; the linkage is summed out.

    Sites are ``distortion`` (field,), ``size_share`` (size,) and ``intensity``, ``value_share`` (value,) where it has a
    prior, ``class_share`` (3,) of the likelihood of error classes, and ``source_share`` (source,) where records of one
    source are apart. Shares of sizes and of values with a Dirichlet
    prior are sampled by ``size_log_odds`` (size - 1,), of each size against all larger ones, and ``value_log_weight``
    (value,), logarithms of Gamma weights: shares of sizes that hardly any entity has underflow in single precision, and
    transitions that came there would diverge.

    Parameters
    ----------
    resolved : of `prepared` records.
    """
    data, likelihood, value_share = resolved.data, resolved.settings.likelihood, resolved.given.value_share
    chosen = for_data(likelihood, data, data.share)
    resolved = resolved.replace(given=chosen.priors(resolved.given))
    with numpyro.plate("field", data.num_fields):
        distortion = numpyro.sample("distortion", resolved.prior("distortion"))
    size_share = sample_size_share(resolved.prior("size_share"))
    intensity = numpyro.sample("intensity", resolved.prior("intensity"))
    class_share = None
    if isinstance(chosen, ErrorClasses):
        class_share = numpyro.sample("class_share", dist.Dirichlet(jnp.asarray(CLASS_PRIOR, jnp.result_type(float))))
    if value_share is None:
        value_share = jnp.asarray(data.share, jnp.result_type(float))
    else:
        value_share = sample_value_share(value_share, data)
    log_joint = log_density(
        data, value_share, distortion, size_share, intensity, class_share, sample_source_share(data),
        likelihood=likelihood,
    )  # fmt: skip
    numpyro.factor("records", log_joint)


def sample_source_share(data: Linkable) -> Float[Array, " source"] | None:
    """Sample the shares of the sources, uniform on the simplex; nothing where records of one source may be together."""
    if data.restriction != "across":
        return None
    return numpyro.sample("source_share", dist.Dirichlet(jnp.ones(data.num_sources)))


def sample_value_share(concentration: float, data: Linkable) -> Float[Array, " value"]:
    """Sample how common values are, by their weights, under a symmetric Dirichlet prior in each field."""
    # Fields differ in their number of values, so that one vector of weights serves them all.
    each = jnp.full(data.field.shape, concentration, jnp.result_type(float))
    log_weight = numpyro.sample("value_log_weight", LogGamma(each).to_event(1))
    return numpyro.deterministic("value_share", jnp.exp(log_shares(log_weight, data.field, data.num_fields)))


def sample_size_share(prior: dist.Distribution) -> Float[Array, " size"]:
    """Sample the shares of sizes; where they are a Dirichlet vector, by the odds of each size against all larger."""
    if not isinstance(prior, dist.Dirichlet):
        return numpyro.sample("size_share", prior)
    larger = jnp.cumsum(prior.concentration[::-1])[::-1][1:]
    log_odds = numpyro.sample("size_log_odds", LogitBeta(prior.concentration[:-1], larger).to_event(1))
    zero = jnp.zeros(1, log_odds.dtype)
    log_rest = jnp.concatenate([zero, jnp.cumsum(jax.nn.log_sigmoid(-log_odds))])
    log_share = jnp.concatenate([jax.nn.log_sigmoid(log_odds), zero]) + log_rest
    return numpyro.deterministic("size_share", jnp.exp(log_share))


def log_shares(
    log_weight: Float[Array, " value *axes"], field: Int[Array, " value"], num_fields: int
) -> Float[Array, " value *axes"]:
    """Return the logarithms of the weights as shares of those of the same field."""
    highest = jax.ops.segment_max(log_weight, field, num_fields)[field]
    total = jax.ops.segment_sum(jnp.exp(log_weight - highest), field, num_fields)[field]
    return log_weight - highest - jnp.log(total)


def log_density(
    data: Linkable,
    value_share: Float[Array, " value"],
    distortion: Float[Array, " field"],
    size_share: Float[Array, " size"],
    intensity: Float[Array, ""],
    class_share: Float[Array, " class"] | None = None,
    source_share: Float[Array, " source"] | None = None,
    *,
    likelihood: str | Likelihood = "hit-miss",
) -> Float[Array, ""]:
    """Return the log probability of the records and their number, summed over partitions; differentiable."""
    number = data.num_records
    # Of the order of the logarithm of the number of records rather than of that number, for single precision.
    constant = number * np.log(number) - number - gammaln(number + 1)
    apart = number * jnp.log(intensity / number * size_share[0]) - (intensity - number) + constant
    if source_share is not None:
        apart += jnp.bincount(data.source, length=data.num_sources) @ jnp.log(source_share)
    chosen = for_data(likelihood, data, value_share, jnp)
    density = apart + jnp.sum(data.number * (jnp.log(value_share) + chosen.log_alone(distortion, jnp)))
    found = enumerate_linkable(
        data, value_share, distortion, size_share, intensity, likelihood, class_share, source_share
    )  # fmt: skip
    return density + sum(one.log_evidence.sum() for one in found)


def enumerate_linkable(
    data: Linkable, value_share: Array, distortion: Array, size_share: Array, intensity: Array,
    likelihood: str | Likelihood, class_share: Array | None = None, source_share: Array | None = None,
) -> list[Enumerated]:  # fmt: skip
    """Enumerate the components of each size, in JAX; nothing of sizes that none has."""
    sources = () if source_share is None else source_share
    terms = size_terms(intensity, size_share, len(data.num_components) + 1, jnp, sources)
    chosen = for_data(likelihood, data, value_share, jnp)
    if class_share is not None:
        chosen = ErrorClasses(class_share)
    found = []
    several = [members for members in members_by_size(data) if len(members)]
    for members, own_candidates in zip(several, data.candidates, strict=True):
        values = data.value[:, members.T].transpose(1, 0, 2)
        conflict = conflicts(data.source, members, data.restriction)
        own_terms = terms[: members.shape[1] + 1]
        found.append(
            enumerate_blocks_jax(values, value_share, distortion, own_terms, chosen, conflict, own_candidates)
        )
    return found


def members_by_size(data: Linkable) -> list[Int[Array, "component member"]]:
    """Return the records of the components of 2, 3, … records."""
    sizes = range(2, len(data.num_components) + 2)
    ends = np.cumsum([0, *(size * number for size, number in zip(sizes, data.num_components, strict=True))])
    return [
        data.member[start:stop].reshape(-1, size) for size, start, stop in zip(sizes, ends, ends[1:], strict=False)
    ]
