r"""Hit-miss (SMERED; Steorts, Hall and Fienberg 2014): linkage of records, by Gibbs sampling of links and parameters.

An entity has a true value in every field. A record of it copies that value, or with the probability b of the field
shows any value, as common ones more often; that may be the true one again.

.. math::

    \theta_f \sim \mathrm{Dirichlet}, \quad b_f \sim \mathrm{Beta}, \quad y_{kf} \sim \theta_f, \quad
    x_{if} = y_{z_i f} \text{ with probability } 1 - b_f, \text{ else } x_{if} \sim \theta_f .

| symbol | name | shape |
|---|---|---|
| θ | ``value_share``: how common each value is | (value,), fields end to end |
| b | ``distortion``: how probably a record's field is distorted | (field,) |
| Π | ``cluster``: the partition, each cluster named by its first record | (record,) |
| μ, m | ``size_share``, ``intensity``: under the prior "entities" alone, as in block-linkage | (size,), () |
| φ | ``source_share``: under that prior, where ``restriction`` is "across" | (source,) |

| file | what it holds |
|---|---|
| `priors` | of parameters, and three priors of the partition |
| `model` | the NumPyro function with the linkage summed out |
| `gibbs` | the sampler of block-linkage under these priors, and what diagnostics are about |
| `simulation` | records from the prior |

Candidates and components are those of block-linkage, found once; all is exact given these. The prior of the paper,
under which all labellings are as likely, expects N (1 - 1/e) entities of N records, whatever these show: it links too
much where most entities have one record. ``prior="entities"`` learns from the records how many they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import Key
from consilience.data.records import Records
from consilience.models import settings
from consilience.models.block_linkage import MODEL as BLOCK_LINKAGE
from consilience.models.block_linkage import SITES, holding, linkage_notes, not_holding, often_distorted
from consilience.models.block_linkage.enumeration import restriction_setting
from consilience.models.block_linkage.gibbs.outside import outside_finding, outside_warning
from consilience.models.block_linkage.gibbs.truth import DrawnLinks
from consilience.models.block_linkage.model import found_by_wide, wide_parameters
from consilience.models.block_linkage.overlap import overlap_notes
from consilience.models.block_linkage.starting import hyperparameters
from consilience.models.block_linkage.truth import DrawnLinkage
from consilience.models.hit_miss.gibbs import GIBBS, name_free
from consilience.models.hit_miss.model import density, drawn_clusters, prepared
from consilience.models.hit_miss.priors import PARTITION_PRIORS, Priors
from consilience.models.hit_miss.simulation import SIMULATION
from consilience.models.interface import Account, Generic, Model
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.notes import Level, Note, Remedy

__all__ = ["MODEL", "Priors", "Settings", "model", "simulate"]

_OTHER_MODEL = "try block-linkage with {likelihood}, whose records have no error, one or many"
_OTHER_SAMPLER = "link by block-linkage with {method}, which cuts no groups, or raise {threshold}"


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `hit-miss`; see the fields."""

    prior: str = setting(
        "labels", "of the partition: labels as likely (the paper's), partitions as likely, or sizes of entities "
        "learned", choices=PARTITION_PRIORS,
    )  # fmt: skip
    restriction: str = restriction_setting()
    threshold: float = setting(4.0, "candidates are pairs of records with log odds above minus this")
    largest: int = setting(6, "most records of an entity; above 7 nuts takes long, gibbs does not", at_least=2.0)

    def sizes(self, data: Any) -> dict[str, int]:
        """Return how many sizes entities may have."""
        return {"size": self.largest}


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> DrawnLinks | DrawnLinkage:
    """Return the partitions drawn, of NUTS one for each draw of the parameters, with what the candidates leave out.

    Parameters
    ----------
    posterior, resolved : of the fit.
    key, num_draws : of the partitions, where none were drawn.
    """
    data, own, draws = resolved.data, resolved.settings, posterior.draws()
    found = prepared(resolved).data
    if "cluster" in draws:
        return DrawnLinks(draws, data, threshold=own.threshold, components=found)
    cluster = drawn_clusters(found, draws, key=key, prior=own.prior, largest=own.largest)
    share, distortion = hyperparameters(posterior, data)
    mean = wide_parameters(data)._replace(value_share=share, distortion=distortion)
    among = found_by_wide(data, mean, threshold=own.threshold)
    return DrawnLinkage(cluster, threshold=own.threshold, found_share=among, cut=found.cut, alike=found.alike)


def says(account: Account) -> Iterator[Note]:
    """Say what is wrong with the outcome, what the interval rests on, and what candidates and priors leave out."""
    posterior, data, prior = account.posterior, account.resolved.data, account.resolved.settings.prior
    yield from overlap_notes(data)
    if np.size(posterior.distortion):  # the run did not end before its first draw
        drawn = "cluster" in posterior.sites
        yield from _wrong(account)
        if drawn:
            included = "" if prior == "entities" else ", its prior of the partition included"
            yield holding(account.truth.misfit, besides=included)
            yield outside_finding(account.truth.outside)
        yield from linkage_notes(account.truth.components if drawn else account.truth, data)
    yield from _of_prior(data.num_records, prior)


def _of_prior(number: int, prior: str) -> Iterator[Note]:
    """Say what the prior expects, where it does not learn that from the records."""
    if prior == "entities":
        return
    expects = "takes all partitions for as likely, most of which have large entities"
    if prior == "labels":
        expects = f"expects {number * (1 - (1 - 1 / number) ** number):,.0f} entities of {number:,} records"
    yield Note(
        Level.note,
        f"the prior of the partition {expects}, and draws the number of entities to that whatever the records are; "
        "{prior} learns from them how large entities are",
        (Remedy("prior", "entities"),),
    )


def _wrong(account: Account) -> Iterator[Note]:
    """Name the fields that linked records hardly ever agree in; of draws of links, say if the model does not hold."""
    posterior, data = account.posterior, account.resolved.data
    yield from often_distorted(hyperparameters(posterior, data)[1], data)
    if "cluster" in posterior.sites:
        truth = account.truth
        other = (Remedy("likelihood", "error-classes"),)
        yield from not_holding(truth.misfit, data, _OTHER_MODEL, other)
        deviation, sampler = float(truth.num_clusters().std()), (Remedy("method", "gibbs"), Remedy("threshold"))
        yield from outside_warning(
            truth.outside, deviation, truth.threshold, remedy=_OTHER_SAMPLER, remedies=sampler
        )


MODEL = Model(
    name="hit-miss",
    title="records of the same entity, links and parameters by Gibbs sampling (SMERED)",
    paper=BLOCK_LINKAGE.paper,
    takes=(Records,),
    settings=Settings,
    priors=Priors,
    sites=Sites(*SITES, Site("together", event=("pair",)), summarised=name_free),
    density=density,
    engines=(GIBBS, Generic(name="nuts", prepare=prepared)),
    truth=truth,
    tables=BLOCK_LINKAGE.tables,
    says=says,
    simulation=SIMULATION,
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
