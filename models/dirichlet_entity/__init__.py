r"""Entity resolution with Dirichlet entities (Broderick & Steorts 2014).

.. math::

    \beta_{kf} \sim \mathrm{Dirichlet}(A_f), \qquad z_i \sim \mathrm{Uniform}\{1, \ldots, K\}, \qquad
    x_{if} \mid z, \beta \sim \mathrm{Categorical}(\beta_{z_i f}).

Records are linked when they have the same entity; an entity has no true record, the mode of its β plays that part. The
labels k are exchangeable: only the partition of the records means anything. A value that is missing is masked: it
belongs to no likelihood. (As a value of its own it makes strangers alike: on RLdata500 with all seven fields, at A =
0.3, the pairwise F1 of the dense ascent falls from .958 to .797.)

| symbol | name | shape |
|---|---|---|
| β | ``value_share``, over the values of all fields end to end | (entity, value) |
| log of the Gamma variables of which β are shares | ``log_weight`` | (entity, value) |
| A | ``concentration`` | (value,), from a number by default |
| z | which entity a record belongs to: summed out, or q(z) of coordinate ascent | (record,) |

| file | what it holds |
|---|---|
| `priors` | A, as a number, by field, by value or from the data |
| `support` | the earlier records of whose entity a record may be |
| `problem`, `shards` | what the ascent reads, over all entities or an anchored support; divided among devices |
| `cavi` | the paper's coordinate ascent and its bound |
| `truth` | partitions under independent records, and how to tell that the method failed |
| `tables` | entities, pairs, records in doubt, numbers of clusters by size |

**When it fails.** The paper has no experiment. As written (``support="dense"``) the ascent cannot do its job:

* with a small A, as the paper advises, nothing ever moves. To leave the entity that it has for itself costs a record
  ψ(1 + A) - ψ(A) = 1/A nats for each field that differs, where the model itself asks for ln((1 + A₀)/A₀) only. A record
  with one differing field moves from an A of 0.25 to 0.3 on; the result says ``frozen`` when none has;
* with a large A every record belongs to all entities alike, from about F / ln N on; the result says ``diffuse``, and
  the estimate of the partition warns;
* shortly before that, most records crowd into a few entities. Nothing tells but their sizes (``fit.clusters()``);
* two records that no other one tells apart, such as exact duplicates, each end half in the entity of the one and half
  in that of the other; the result says ``tied``;
* an entity that has lost its records is never found again, and the bound does not choose among A, nor among K.

With ``support="anchored"``, the default, entity k is the one whose first record is k, and a record may be of its own
entity or of that of an earlier record with which it agrees in enough fields (``agree``). It is the same model and still
a bound, since q(z) is only restricted. A = 0.25 is the default because there, and hardly anywhere else, records with
one differing field move and others do not. On RLdata500, with five fields, the pairwise F1 is

| A | dense | agree=3 | agree=2 |
|---|---|---|---|
| 0.25 | 0 | .958 | .958 |
| 0.3 | .958, from the 60th sweep on | .958 | .958 |
| 0.5 | .707 | .939 | .876 |

and .958 is all that equality of fields can give. The window closes as the number of records grows (the diffuse end
falls with ln N), and q is far too sure of itself: the interval for the number of entities must not be believed.
`block-linkage` has neither fault.

Errata of the paper; its final updates are right. Equation 1 and the printed bound leave out the prior of z, -N ln K,
which matters when values of K are compared. Equation 1 writes β_{z l x} where l should be f. "-KL + p(x)" should be
ln p(x). In the derivative of the bound by λ the sign of the term [Σ(A_u - 1)] ψ₁(Σλ) must be minus, and that of the
line with Σ_{u≠v} (λ_u - 1) ψ₁ plus; the collected last line is right. In appendix A equation 4 conditions on z where
z-tilde is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro

from consilience.arrays import Array, Float, Int, Key
from consilience.data.records import Records
from consilience.models import settings
from consilience.models.block_linkage.model import log_shares as log_shares_of_fields
from consilience.models.block_linkage.review import REVIEW
from consilience.models.block_linkage.tables import MEASURES
from consilience.models.dirichlet_entity.cavi import CAVI
from consilience.models.dirichlet_entity.priors import Priors, concentrations, field_of_value, value_codes
from consilience.models.dirichlet_entity.problem import entities_of
from consilience.models.dirichlet_entity.support import least_agreement
from consilience.models.dirichlet_entity.tables import ENTITIES, PAIRS
from consilience.models.dirichlet_entity.truth import EntityPartition, failures
from consilience.models.interface import Account, Generic, Model
from consilience.models.partition_tables import CLUSTERS, MATCHING_SETS
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth.partitions import DrawnPartitions, PartitionTruth
from consilience.models.unbounded import LogGamma
from consilience.notes import Level, Note

__all__ = ["MODEL", "Priors", "Settings", "model"]


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `dirichlet-entity`; support, start and agree are of coordinate ascent, and no part of the model."""

    support: str = setting(
        "anchored", "of cavi: entities of candidates among earlier records (anchored), or all, as in the paper (dense)",
        choices=("anchored", "dense"),
    )  # fmt: skip
    num_entities: int = setting(0, "K, how many entities there may be; 0 for as many as records", at_least=0.0)
    start: str = setting(
        "records", "of cavi: every record in an entity of its own, or at random", choices=("records", "random")
    )
    agree: int = setting(
        0, "of cavi, anchored: in how many fields candidates agree; 0 for all but two of the common ones", at_least=0.0
    )
    concentration: float | None = setting(
        None, "of each value of an entity, A: 0.25; smaller ones freeze cavi", sets=("concentration", float)
    )


def density(resolved: Resolved) -> None:
    """State the joint density of the entities' values and the records, z summed out.

    A Dirichlet vector is a normalised vector of independent Gamma variables: one long vector of these serves fields of
    any number of values.
    """
    data, number, concentration = resolved.data, entities_of(resolved), concentrations(resolved)
    with numpyro.plate("entity", number, dim=-2), numpyro.plate("value", data.num_values, dim=-1):
        log_weight = numpyro.sample("log_weight", LogGamma(concentration))
    log_share = log_shares(log_weight, data)
    numpyro.deterministic("value_share", jnp.exp(log_share))
    with numpyro.plate("record", data.num_records):
        log_joint = log_likelihoods(log_share, data) - jnp.log(number)
        numpyro.factor("records", jax.nn.logsumexp(log_joint, axis=1))


def log_shares(log_weight: Float[Array, "entity value"], data: Records) -> Float[Array, "entity value"]:
    """Return ln β: the weights as shares of those of the same entity and field."""
    return log_shares_of_fields(log_weight.T, field_of_value(data), data.num_fields).T


def log_likelihoods(log_share: Float[Array, "entity value"], data: Records) -> Float[Array, "record entity"]:
    """Return the log probability of each record's values, those that are not missing, for each entity."""
    padded = jnp.concatenate([log_share.T, jnp.zeros((1, len(log_share)), log_share.dtype)])
    return padded[value_codes(data)].sum(axis=0)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> PartitionTruth:
    """Return the partition: independent entities of the records from CAVI, draws from the other methods."""
    if posterior.form == "closed":
        return EntityPartition(posterior, key=key, num_draws=num_draws)
    return DrawnPartitions(np.asarray(_draw_entities(key, jnp.asarray(posterior.log_weight), resolved.data)))


@jax.jit
def _draw_entities(key: Key, log_weight: Float[Array, "draw entity value"], data: Records) -> Int[Array, "draw record"]:
    """Draw z given β of each draw."""

    def one(given: tuple[Key, Array]) -> Array:
        key, log_weight = given
        return jax.random.categorical(key, log_likelihoods(log_shares(log_weight, data), data))

    return jax.lax.map(one, (jax.random.split(key, len(log_weight)), log_weight))


def canonical(samples: Mapping[str, np.ndarray], resolved: Resolved) -> dict[str, np.ndarray]:
    """Order the entities of each draw by the mean position of their records; CAVI's are left as they are."""
    if "log_weight" not in samples:
        return dict(samples)
    chains, draws, number, _ = samples["log_weight"].shape
    flat = samples["log_weight"].reshape(chains * draws, number, -1)
    order = np.asarray(_entity_order(jnp.asarray(flat), resolved.data)).reshape(chains, draws, number, 1)
    return {site: np.take_along_axis(np.asarray(values), order, axis=2) for site, values in samples.items()}


@jax.jit
def _entity_order(log_weight: Float[Array, "draw entity value"], data: Records) -> Int[Array, "draw entity"]:
    def order(log_weight: Array) -> Array:
        share = jax.nn.softmax(log_likelihoods(log_shares(log_weight, data), data), axis=1)
        size = share.sum(axis=0)
        return jnp.argsort(jnp.arange(data.num_records) @ share / jnp.maximum(size, jnp.finfo(size.dtype).tiny))

    return jax.lax.map(order, log_weight)


def says(account: Account) -> Iterator[Note]:
    """Say where coordinate ascent failed, which links are possible at all, and that the intervals are too narrow."""
    data, chosen = account.resolved.data, account.resolved.settings
    if account.posterior.form == "closed":
        yield from failures(account.posterior)
    if chosen.support == "anchored":
        fields = f"{least_agreement(chosen.agree, data)} of {data.num_fields} fields"
        text = f"cavi can link only records that agree in at least {fields}: others were no candidates"
        yield Note(Level.note, text)
    yield Note(
        Level.note,
        "under independent records the number of entities is far more certain than it should be: do not trust its "
        "interval",
    )


MODEL = Model(
    name="dirichlet-entity",
    title="entities with Dirichlet values behind records, by the published coordinate ascent; small data",
    paper="""@article{broderick2014variational,
  title   = {Variational {B}ayes for Merging Noisy Databases},
  author  = {Broderick, Tamara and Steorts, Rebecca C.},
  journal = {arXiv preprint arXiv:1410.4792},
  year    = {2014}
}""",
    takes=(Records,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("log_weight", plates=("entity", "value")), Site("value_share", plates=("entity", "value")),
        canonical=canonical,
        hidden={
            "first": ("record_plus_one",), "entity": ("edge",), "probability": ("edge",), "moved": ("record",),
        },
    ),
    density=density,
    engines=(CAVI, Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=(ENTITIES, PAIRS, REVIEW, MATCHING_SETS, CLUSTERS, *MEASURES),
    says=says,
)  # fmt: skip
model = MODEL.model
