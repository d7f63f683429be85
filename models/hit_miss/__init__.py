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

| file | what it holds |
|---|---|
| `priors` | of parameters, and three priors of the partition |
| `model` | the NumPyro function with the linkage summed out |
| `gibbs` | the sampler |
| `blocks`, `links` | the partition drawn component by component, all partitions enumerated |
| `split_merge`, `marginal` | the partition moved by splits and mergers |
| `simulation` | records from the prior |
| `tables` | what diagnostics are about |

Candidates and components are those of block-linkage, found once; all is exact given these. The prior of the paper,
under which all labellings are as likely, expects N (1 - 1/e) entities of N records, whatever these show: it links too
much where most entities have one record. ``prior="entities"`` learns from the records how many they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from consilience.arrays import Key
from consilience.data.records import Records
from consilience.models.block_linkage import MODEL as BLOCK_LINKAGE
from consilience.models.block_linkage import linkage_notes, often_distorted
from consilience.models.block_linkage.enumeration import RESTRICTIONS
from consilience.models.block_linkage.gibbs.outside import outside_finding, outside_warning
from consilience.models.block_linkage.gibbs.predictive import predictive_finding, predictive_warning
from consilience.models.block_linkage.gibbs.truth import DrawnLinks
from consilience.models.block_linkage.model import found_by_wide, wide_parameters
from consilience.models.block_linkage.tables import hyperparameters
from consilience.models.block_linkage.truth import DrawnLinkage
from consilience.models.hit_miss.gibbs import GIBBS, MOVES
from consilience.models.hit_miss.model import drawn_clusters, model, prepared
from consilience.models.hit_miss.priors import PARTITION_PRIORS, Priors
from consilience.models.hit_miss.simulation import simulate
from consilience.models.hit_miss.tables import name_free
from consilience.models.interface import Model, Option

__all__ = ["MODEL", "Priors", "model", "simulate", "truth"]

_OTHER_MODEL = "try block-linkage with likelihood='error-classes', whose records have no error, one or many"
_REMEDY = "link by block-linkage with method='gibbs', which cuts no groups, or raise the option threshold"


def truth(
    posterior: Any, data: Records, *, key: Key, num_draws: int, prior: str, largest: int, threshold: float,
    **options: Any,
) -> DrawnLinks | DrawnLinkage:  # fmt: skip
    """Return the partitions drawn, of NUTS one for each draw of the parameters, with what the candidates leave out.

    Parameters
    ----------
    posterior : draws ``(draw, …)`` by site.
    data : what was fitted.
    key, num_draws : of the partitions, where none were drawn.
    prior, largest, threshold, options : as in the fit.
    """
    found = prepared(data, largest=largest, threshold=threshold, **options)
    if "cluster" in posterior:
        return DrawnLinks(posterior, data, threshold=threshold, components=found)
    cluster = drawn_clusters(found, posterior, key=key, prior=prior, largest=largest)
    share, distortion = hyperparameters(posterior, data)
    mean = wide_parameters(data)._replace(value_share=share, distortion=distortion)
    among = found_by_wide(data, mean, threshold=threshold)
    return DrawnLinkage(cluster, threshold=threshold, found_share=among, cut=found.cut, alike=found.alike)


def findings(posterior: Any, data: Records, *, truth: Callable[[], Any], prior: str, **options: Any) -> list[str]:
    """Say what the candidates leave out, what the interval rests on, and what the prior of the partition expects."""
    of_prior = _of_prior(data.num_records, prior)
    if not np.size(posterior["distortion"]):
        return of_prior  # the run ended before its first draw
    if "cluster" not in posterior:
        return [*linkage_notes(truth(), data), *of_prior]
    included = "" if prior == "entities" else ", its prior of the partition included"
    return [
        predictive_finding(truth().predictive, prior=included), outside_finding(truth().outside),
        *linkage_notes(truth().components, data), *of_prior,
    ]  # fmt: skip


def _of_prior(number: int, prior: str) -> list[str]:
    """Say what the prior expects, where it does not learn that from the records."""
    if prior == "entities":
        return []
    expects = "takes all partitions for as likely, most of which have large entities"
    if prior == "labels":
        expects = f"expects {number * (1 - (1 - 1 / number) ** number):,.0f} entities of {number:,} records"
    return [
        f"the prior of the partition {expects}, and draws the number of entities to that whatever the records are; "
        "prior='entities' learns from them how large entities are"
    ]


def warnings(posterior: Any, data: Records, *, truth: Callable[[], Any], **options: Any) -> list[str]:
    """Name the fields that linked records hardly ever agree in; of draws of links, say if the model does not hold."""
    draws = np.reshape(posterior["distortion"], (-1, data.num_fields))
    if not len(draws):
        return []  # the run ended before its first draw
    found = often_distorted(draws.mean(axis=0), data)
    if "cluster" not in posterior:
        return found
    found += predictive_warning(truth().predictive, remedy=_OTHER_MODEL)
    deviation = float(truth().num_clusters().std())
    return found + outside_warning(truth().outside, deviation, truth().threshold, remedy=_REMEDY)


MODEL = Model(
    name="hit-miss",
    title="records of the same entity, links and parameters by Gibbs sampling (SMERED)",
    citation=BLOCK_LINKAGE.citation,
    data=Records,
    methods=("gibbs", "nuts"),
    model=model,
    model_data=prepared,
    priors=Priors,
    options=(
        Option(
            name="prior", kind=str, default="labels", choices=PARTITION_PRIORS,
            help="of the partition: labels as likely (the paper's), partitions as likely, or sizes of entities learned",
        ),
        Option(
            name="moves", kind=str, default="blocks", choices=tuple(MOVES),
            help="of gibbs: all links of small groups drawn at once, or pairs split and merged",
        ),
        Option(
            name="restriction", kind=str, default="none", choices=tuple(RESTRICTIONS),
            help="across: no two records of a file in an entity; within: only records of one file",
        ),
        Option(
            name="threshold", kind=float, default=4.0,
            help="candidates are pairs of records with log odds above minus this",
        ),
        Option(
            name="largest", kind=int, default=6, minimum=2.0,
            help="most records of an entity; above 7 blocks take long, split-merge does not",
        ),
    ),
    gibbs=GIBBS,
    truth=truth,
    tables=BLOCK_LINKAGE.tables,
    measures=BLOCK_LINKAGE.measures,
    dims={**BLOCK_LINKAGE.dims, "together": ("pair",)},
    simulate=simulate,
    summarised=name_free,
    warnings=warnings,
    findings=findings,
)  # fmt: skip
