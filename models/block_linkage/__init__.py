r"""Linkage of records block by block: all partitions of every small component of candidates, exactly.

Records of tables are noisy copies of entities that nobody observed, and an entity has one record or a few. The prior of
partitions is a product over clusters C of records (Poisson-Kolchin: a Poisson number of entities whose sizes have the
shares μ, records labelled at random), so that groups of records that have no candidates in common are independent,

.. math::

    p(\Pi, N) = \frac{e^{-m}}{N!} \prod_{C} m\, |C|!\, \mu_{|C|} .

The likelihood of a cluster has its entity's parameters summed out: hit-miss (Steorts, Hall and Fienberg 2014) or the
Dirichlet-multinomial of Broderick and Steorts (2014). Missing fields drop out.

| symbol | name | shape |
|---|---|---|
| θ | ``value_share``: how common each value is; its share among the records | (value,), fields end to end |
| b | ``distortion``: how probably a record's field is distorted | (field,) |
| m | ``intensity``: expected number of entities | () |
| μ | ``size_share``: shares of entities with 1, 2, … records | (size,) |
| Π | the partition; its distribution in every component is kept | (partition,) |

| file | what it holds |
|---|---|
| `join`, `hash_ranges` | the candidates: exactly the pairs whose log odds exceed a threshold, and the search for them |
| `workers` | pieces of large data: in memory or files, in one process or several |
| `components` | what they connect, cut where it is too large |
| `likelihood`, `likelihoods` | what a likelihood is, and those that have a name |
| `error_classes`, `similar` | errors that come together; fields that are compared by similarity |
| `similar_pairs`, `similar_links` | of similar fields: the candidates; what the threshold hides |
| `enumeration` | of all subsets and all partitions of a component, in NumPy or JAX |
| `em`, `hidden_links` | hyperparameters; what the threshold hides |
| `repeats` | fields and records that repeat too little or too much to tell entities |
| `posterior`, `truth`, `tables`, `canonical` | what comes out: entities, pairs, review, canonical records |
| `priors`, `parameters`, `model` | the NumPyro function with the linkage summed out |
| `gibbs` | links and all hyperparameters drawn, on a wide graph |
| `simulation`, `words` | records with known entities |

By EM the hyperparameters are point estimates, so that the interval of the number of entities is too narrow: it is that
of the links alone. That of Gibbs sampling holds where the model does. Where errors are not independent between fields,
as in lists that were made by one error in every duplicate, small probabilities are too large, and neither holds; the
fit says when its data look like that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from consilience.arrays import Array, Key
from consilience.data.records import Records
from consilience.models.block_linkage.canonical import canonical
from consilience.models.block_linkage.em import fit_em
from consilience.models.block_linkage.enumeration import RESTRICTIONS
from consilience.models.block_linkage.gibbs.outside import outside_finding, outside_warning
from consilience.models.block_linkage.gibbs.predictive import predictive_finding, predictive_warning
from consilience.models.block_linkage.gibbs.sampler import FORMS, GIBBS, wide_threshold
from consilience.models.block_linkage.gibbs.truth import DrawnLinks, label_free
from consilience.models.block_linkage.join import join_rule
from consilience.models.block_linkage.likelihoods import LIKELIHOODS, Likelihood
from consilience.models.block_linkage.model import Linkable, found_by_wide, linkable, model
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.posterior import Posterior
from consilience.models.block_linkage.priors import Priors, RareDistortion
from consilience.models.block_linkage.similar import for_data, is_known
from consilience.models.block_linkage.simulation import simulate
from consilience.models.block_linkage.tables import entities, fields, hyperparameters, loss, pairs, patterns, review
from consilience.models.block_linkage.truth import BlockPartition, DrawnLinkage, drawn_partitions, expected_clusters
from consilience.models.interface import Model, Option
from consilience.models.partition_tables import clusters, matching_sets

__all__ = [
    "MODEL", "Posterior", "Priors", "RareDistortion", "linkage_notes", "model", "often_distorted", "simulate", "truth",
]  # fmt: skip

_MOST_DISAGREEMENT = 0.1
_LARGE_SHARE = 0.01
_OFTEN_MISSING = 0.2
_OFTEN_DISTORTED = 0.5
_OTHER_ERRORS = {
    False: "try likelihood='error-classes', for records that are copies with no error, one or many",
    True: "try likelihood='hit-miss', for fields that err independently",
}
"""What to try where the model does not hold, by whether its errors have classes."""


def estimate(
    data: Records, priors: Priors, *, likelihood: str | Likelihood, restriction: str, threshold: float, largest: int,
    mesh: Mesh | None = None, processes: int = 1, **options: Any,
) -> Posterior:  # fmt: skip
    """Link records with hyperparameters by EM; see `fit_em`. Candidates are those of the data, where it has some."""
    return fit_em(
        data, priors, likelihood=likelihood, restriction=restriction, threshold=threshold, largest=largest,
        pairs=data.candidate, mesh=mesh, processes=processes,
    )  # fmt: skip


def prepared(
    data: Records, *, likelihood: str | Likelihood, restriction: str, threshold: float, largest: int, **options: Any
) -> Linkable:
    """Return the records with the components of their candidates, which the NumPyro function needs beforehand."""
    return linkable(
        data, likelihood=likelihood, restriction=restriction, threshold=threshold, largest=largest,
        pairs=data.candidate,
    )  # fmt: skip


def truth(
    posterior: Any, data: Records, *, key: Key, num_draws: int, likelihood: str | Likelihood, **options: Any
) -> Any:
    """Return the partitions of all components with their probabilities; of draws, a partition for each.

    Of the Gibbs sampler it is the one that was drawn; of NUTS it is drawn now.

    Parameters
    ----------
    posterior, data : what was fitted.
    key, num_draws : of the draws.
    likelihood, options : as in the fit.
    """
    if _on_wide_graph(posterior, options):
        return DrawnLinks(posterior, data, threshold=wide_threshold(data, options["wide"]))
    if not isinstance(posterior, Posterior):
        found = prepared(data, likelihood=likelihood, **options)
        cluster = drawn_partitions(found, posterior, likelihood=likelihood, key=key)
        (share, distortion), sizes = hyperparameters(posterior, data), np.asarray(posterior["size_share"], float)
        mean = Parameters(share, distortion, float(np.mean(posterior["intensity"])), sizes.mean(axis=0))
        threshold = options["threshold"]
        among = found_by_wide(data, mean, likelihood=likelihood, threshold=threshold)
        return DrawnLinkage(cluster, threshold=threshold, found_share=among, cut=found.cut, alike=found.alike)
    return BlockPartition(posterior, key=key, num_draws=num_draws, records=data.records)


def draw(posterior: Posterior, data: Records, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return the hyperparameters, which are estimates, as often as asked for."""
    sites = {"distortion": posterior.distortion, "size_share": posterior.size_share, "intensity": posterior.intensity}
    if len(posterior.class_share):
        sites["class_share"] = posterior.class_share
    return {site: jnp.broadcast_to(jnp.asarray(value), (num_draws, *np.shape(value))) for site, value in sites.items()}


def _on_wide_graph(posterior: Any, options: Mapping[str, Any]) -> bool:
    """Return whether these are draws of the Gibbs sampler of this member."""
    return "wide" in options and not isinstance(posterior, Posterior) and "cluster" in posterior


def summarised(samples: dict[str, np.ndarray], data: Records) -> dict[str, np.ndarray]:
    """Return what diagnostics are about: of the Gibbs sampler numbers of entities and pairs in the place of labels.

    The shares of values are left out as well: they are many, and each says next to nothing of the linkage.
    """
    if "cluster" not in samples:
        return samples
    return label_free({site: values for site, values in samples.items() if site != "value_share"})


def warnings(posterior: Any, data: Records, *, truth: Callable[[], Any], **options: Any) -> list[str]:
    """Say what only the outcome tells: errors that come together, entities that are too large, what was cut."""
    if _on_wide_graph(posterior, options):
        return _wrong_with_draws(truth(), data) if np.size(posterior["cluster"]) else []
    if not isinstance(posterior, Posterior):
        if "class_share" in posterior:
            return []
        return often_distorted(np.reshape(posterior["distortion"], (-1, data.num_fields)).mean(axis=0), data)
    if posterior.links_nothing():
        found = [
            "no two records were linked, so nothing was learned about errors: compare more fields, leave out those "
            "that differ in nearly every record, raise the option threshold, or check that the files write values alike"
        ]
        return found + _given_up(posterior)
    # In records with many errors they are often distorted by definition.
    found = [] if len(posterior.class_share) else often_distorted(posterior.distortion, data)
    if _disagrees(posterior, data):
        found.append(
            "fields do not seem to err independently (the numbers of fields in which linked records agree differ from "
            f"those expected by {float(posterior.disagreement):.2f}): do not trust small probabilities of pairs, nor "
            f"the mean number of entities; {_OTHER_ERRORS[bool(len(posterior.class_share))]}"
        )
    largest = len(posterior.size_share)
    if posterior.size_share[-1] > _LARGE_SHARE and _expected_of_size(posterior, largest) >= 1:
        found.append(f"many entities have {largest} records, the most that is looked at; raise the option largest")
    return found + _given_up(posterior)


def _wrong_with_draws(truth: DrawnLinks, data: Records) -> list[str]:
    """Say what is wrong with the outcome of the Gibbs sampler."""
    with_classes = "class_share" in truth.draws
    # In records with many errors they are often distorted by definition.
    found = [] if with_classes else often_distorted(truth.draws["distortion"].mean(axis=0), data)
    found += predictive_warning(truth.predictive, remedy=_OTHER_ERRORS[with_classes])
    found += outside_warning(truth.outside, float(truth.num_clusters().std()), truth.threshold)
    size_share, counts = truth.draws["size_share"], truth.size_counts()
    largest = size_share.shape[1]
    if size_share[:, -1].mean() > _LARGE_SHARE and len(counts) >= largest and counts[largest - 1] >= 1:
        found.append(f"many entities have {largest} records, the most that is looked at; raise the option largest")
    return found


def notes(data: Records, priors: Priors | None = None, **options: Any) -> list[str]:
    """Say what the candidates of the NumPyro function leave out."""
    return linkage_notes(prepared(data, **options), data)


def linkage_notes(found: Linkable | DrawnLinkage, data: Records) -> list[str]:
    """Say how candidates that never change were found, and which of them were given up."""
    by = "were found once, with a distortion of .05 in every field" if data.candidate is None else "were given"
    return [*_given_up(found), f"the candidates {by}; what they leave out is in the table loss"]


def _given_up(posterior: Posterior | Linkable | DrawnLinkage) -> list[str]:
    """Say which candidates were given up, and which records were never candidates because many are alike."""
    found = []
    components, records, most, pairs_lost, links_lost = posterior.cut.tolist()
    if components:
        groups = (
            f"1 component with {records:,.0f} records was too large to go through, and was cut at its weakest links"
            if components == 1
            else f"{components:,.0f} components with {records:,.0f} records were too large to go through, the largest "
            f"with {most:,.0f}, and were cut at their weakest links"
        )
        pairs_given_up = f"{pairs_lost:,.0f} pair{'' if pairs_lost == 1 else 's'}"
        found.append(f"{groups}, {pairs_given_up} worth {links_lost:,.1f} links; a lower threshold makes them smaller")
    alike, pairs_alike, links_alike = posterior.alike.tolist()
    if alike:
        found.append(
            f"{alike:,.0f} records are like others in all fields, but of values so common that their "
            f"{pairs_alike:,.0f} pairs, worth {links_alike:,.1f} links, were not looked at: do not trust that each is "
            "alone; compare more fields, or keep one of each"
        )
    return found


def often_distorted(distortion: np.ndarray, data: Records) -> list[str]:
    """Name the fields that linked records hardly ever agree in."""
    names = np.arange(data.num_fields) if data.fields is None else np.asarray(data.fields, object)
    often = [str(name) for name in names[distortion > _OFTEN_DISTORTED]]
    if not often:
        return []
    return [
        f"linked records almost never agree in {', '.join(often)}: is it written differently in the files? if it does "
        "not describe the entity, leave it out of the fields"
    ]


def _expected_of_size(posterior: Posterior, size: int) -> float:
    """Return how many entities of a size to expect: of few records the prior alone says that there is a share."""
    counts = BlockPartition(posterior, key=jax.random.key(0), num_draws=1).size_counts()
    return float(counts[size - 1]) if len(counts) >= size else 0.0


def findings(posterior: Any, data: Records, *, truth: Callable[[], Any], **options: Any) -> list[str]:
    """Say how many links the candidates leave out, and how many entities there are with them; or why nobody knows."""
    if _on_wide_graph(posterior, options):
        if not np.size(posterior["cluster"]):
            return []  # the run ended before its first draw
        return [predictive_finding(truth().predictive), outside_finding(truth().outside)]
    if not isinstance(posterior, Posterior):
        return [] if "cluster" in posterior else notes(data, **options)
    return _joined_by(posterior, data, options.get("likelihood", "hit-miss")) + _left_out(posterior, data)


def _joined_by(posterior: Posterior, data: Records, likelihood: Any) -> list[str]:
    """Name the fields by which candidates were found, where there are others."""
    if data.candidate is not None or data.fields is None or not is_known(likelihood):
        return []
    chosen = for_data(likelihood, data, posterior.value_share)
    rule = join_rule(data, posterior.parameters(), chosen, threshold=float(posterior.threshold))
    if len(rule.fields) >= np.sum(np.diff(data.first_value) > 1):
        return []
    names = ", ".join(map(str, np.asarray(data.fields, object)[np.sort(rule.fields)]))
    return [f"candidates were found by the fields that tell most, {names}; the others count once a pair is found"]


def _left_out(posterior: Posterior, data: Records) -> list[str]:
    """Say how many links the candidates leave out."""
    if np.isnan(posterior.found_share) and data.candidate is None:
        return ["how many links are not among the candidates is not known with this likelihood"]
    if np.isnan(posterior.found_share):
        return ["the candidates were given: how many links are not among them is not known"]
    if posterior.links_nothing():
        return []  # the model learned nothing from which to expect links
    if data.similar is not None and np.any(data.similar):
        return [
            f"by how the linked records differ, {float(posterior.found_share):.1%} of all links are among the "
            "candidates: the number of entities is not corrected for the others"
        ]
    expected = f"the model expects {float(posterior.found_share):.1%} of all links among the candidates"
    if not posterior.completed:
        why = "too few linked pairs have all fields to tell whether it fits"
        if np.mean(np.asarray(data.value) < 0, axis=1).max() > _OFTEN_MISSING:
            why += " (leave out fields that are often missing)"
        why = "the linked pairs do not look as it expects" if _disagrees(posterior, data) else why
        return [f"{expected}, but {why}: the number of entities is not corrected for the others"]
    mean, corrected = expected_clusters(posterior)
    return [f"{expected}; with the others there would be {corrected:,.1f} entities on average, and not {mean:,.1f}"]


def _disagrees(posterior: Posterior, data: Records) -> bool:
    """Return whether linked pairs agree in other numbers of fields than expected, by more than chance would have it.

    Shares of n pairs in k + 1 classes are on average at most √(k / n) / 2 away from their probabilities.
    """
    if not posterior.disagreement > _MOST_DISAGREEMENT:
        return False
    first, second, probability = BlockPartition(posterior, key=jax.random.key(0), num_draws=1).pairs()
    whole = np.all(np.asarray(data.value) >= 0, axis=0)
    number = probability[whole[first] & whole[second]].sum()
    by_chance = np.sqrt(data.num_fields / number) / 2 if number > 0 else 1.0
    return bool(posterior.disagreement > _MOST_DISAGREEMENT + by_chance)


MODEL = Model(
    name="block-linkage",
    title="records of the same entity, their true values and errors summed out",
    citation="""@inproceedings{steorts2014smered,
  title     = {{SMERED}: A {B}ayesian Approach to Graphical Record Linkage and De-duplication},
  author    = {Steorts, Rebecca C. and Hall, Rob and Fienberg, Stephen E.},
  booktitle = {Proceedings of the Seventeenth International Conference on Artificial Intelligence and Statistics},
  pages     = {922--930},
  year      = {2014}
}""",
    data=Records,
    methods=("em", "nuts", "gibbs"),
    model=model,
    model_data=prepared,
    priors=Priors,
    options=(
        Option(
            name="likelihood", kind=str, default="hit-miss", choices=tuple(LIKELIHOODS),
            help="of an entity's records: copies with errors by field, or by record (error-classes), or values by the "
            "entity's own distribution", own=Likelihood,
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
            help="most records of an entity; above 7 it takes long",
        ),
        Option(
            name="wide", kind=float, default=0.0, minimum=0.0,
            help="the threshold of gibbs, whose candidates are many; 0 stands for 10, or 12 where values are missing",
        ),
        Option(
            name="links", kind=str, default="auto", choices=FORMS,
            help="how gibbs draws links: compiled for CPUs, pairs for accelerators, scan for up to some 3,000 records",
        ),
    ),
    posterior=Posterior,
    em=estimate,
    gibbs=GIBBS,
    draw=draw,
    truth=truth,
    tables={
        "entities": entities, "pairs": pairs, "review": review, "matching_sets": matching_sets,
        "canonical": canonical, "fields": fields, "patterns": patterns, "clusters": clusters,
        "loss": loss,
    },
    measures={
        "num_entities": "consilience.evaluation.partition_scores:num_entities",
        "expected_scores": "consilience.evaluation.partition_scores:expected_scores",
        "entity_probability": "consilience.evaluation.partition_scores:entity_probability",
    },
    dims={
        "distortion": ("field",), "size_share": ("size",), "size_log_odds": ("smaller_size",),
        "value_share": ("value",), "value_log_weight": ("value",), "class_share": ("error_class",),
        "cluster": ("record",),
    },
    simulate=simulate,
    summarised=summarised,
    warnings=warnings,
    findings=findings,
)  # fmt: skip
