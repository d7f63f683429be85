r"""The mention-pair model of annotation: which label of a mention is right, and how good each annotator is.

Paun et al. (2018). Annotators of coreference say of each mention whether it is new (DN), does not refer (NR), or which
earlier mention it goes back to, as in DO(ne12). The labels of a mention that some annotator gave are its *candidates*;
all antecedents share the class DO, and any other label is a class of its own. An annotation is a decision on every
candidate of its mention: yes to the one that it names, no to the others.

.. math::

    \pi_h \sim \mathrm{Beta}(a, b), \quad \alpha_{jh} \sim \mathrm{Beta}(d, e), \quad
    \beta_{jh} \sim \mathrm{Beta}(t, u), \quad c_{im} \sim \mathrm{Bern}(\pi_{z_{im}}),

.. math::

    y_{imn} \sim \mathrm{Bern}(\alpha_{j_n z_{im}}) \text{ if } c_{im} = 1, \qquad
    y_{imn} \sim \mathrm{Bern}(1 - \beta_{j_n z_{im}}) \text{ if } c_{im} = 0.

| symbol | name | shape |
|---|---|---|
| π | ``prevalence``: how often a candidate is true | (class,) |
| α | ``sensitivity``: how often an annotator chooses a candidate that is true | (annotator, class) |
| β | ``specificity``: how often an annotator does not choose one that is false | (annotator, class) |
| c | summed out; drawn in `gibbs` | (pair,) |
| φ | ``phi``: probability of c = 1 | (pair,) |

| file | what it holds |
|---|---|
| `candidates` | pairs and decisions as tables |
| `priors` | Beta distributions, uniform by default |
| `likelihood` | of the decisions on each item, c summed out |
| `updates`, `cavi`, `gibbs` | coordinate ascent as in the paper, and a Gibbs sampler |
| `mirror` | true and false of a class may exchange their names |
| `labels`, `joint`, `tables` | one label per item, also from choices among candidates, and what a user asks for |
| `simulation`, `scenarios` | annotations of a crowd; the four scenarios of the paper |

With ``hyperparameters="learned"`` coordinate ascent maximises its bound over d, e, t and u of each class too (empirical
Bayes); a sampler can go on from `learned_priors`. With ``gold="use"`` a gold label fixes c: the label is true, and no
other of the item is.

`Annotations` are taken too: each label is then a class of its own. With all labels as candidates of all items
(``candidates="closed"``) this is one binary Dawid-Skene model for each label.

How the author's program behaves, and what is done here: an annotator who labels a mention twice counts twice, as there.
A label that nobody gave is no candidate, as there, unless it is the gold label and that is used. The author's program
takes the last of equal candidates and stops at an absolute gain of 1e-6; here the run ends at a relative gain, and
``author=True`` does as the author. In print the factor for y = 0 in equations 8 and 9 stands outside of the product
over annotations, to the inside of which it belongs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float
from consilience.data.annotations import Annotations
from consilience.data.mentions import Mentions
from consilience.errors import UnsupportedRequest
from consilience.models import settings
from consilience.models.crowd.gate import signal, signal_notes, unanimous_notes
from consilience.models.gold import GOLD_MEASURES, gold_setting
from consilience.models.interface import Account, Generic, Model, Simulation
from consilience.models.majority_vote import MODEL as MAJORITY_VOTE
from consilience.models.majority_vote import as_annotations
from consilience.models.mpa.candidates import labelled
from consilience.models.mpa.cavi import CAVI
from consilience.models.mpa.gibbs import GIBBS
from consilience.models.mpa.labels import truth
from consilience.models.mpa.likelihood import log_likelihood
from consilience.models.mpa.mirror import canonical
from consilience.models.mpa.partition.tables import CHAINS_PRIOR, HIDDEN, links_note, partition_notes
from consilience.models.mpa.priors import BetaPrior, Priors, check_fixed, learned_priors
from consilience.models.mpa.simulation import draw_data
from consilience.models.mpa.tables import TABLES
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import Truth
from consilience.notes import Note, Remedy

__all__ = ["MODEL", "BetaPrior", "Priors", "Settings", "learned_priors", "model", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `mpa`; see the fields."""

    candidates: str = setting(
        "observed", "which labels may be true of an item: those that it got, or all of a closed list",
        choices=("observed", "closed"),
    )  # fmt: skip
    gold: str = gold_setting()
    hyperparameters: str = setting(
        "fixed",
        "of sensitivities and specificities: those of the priors, or learned by cavi for each class",
        choices=("fixed", "learned"),
    )
    decisions: str = setting(
        "separate",
        "of the candidates' probabilities: by the odds that each is true by itself, as published, or of an "
        "annotator's choice of one of them, which is as sure as it is right",
        choices=("separate", "joint"),
    )
    coreference: str = setting(
        "auto",
        "of mentions: a posterior of links, each mention by itself, or of the partition of a document into entities; "
        "auto: the partition, where settings, priors and method have one",
        choices=("auto", "links", "partition"), earlier="links",
    )  # fmt: skip
    antecedents: str = setting(
        "any",
        "of a partition: whether a right annotation may name any earlier mention of the entity, or only the nearest",
        choices=("any", "nearest"),
    )
    rungs: int = setting(0, "of a partition: rungs of the tempered chains; 0 takes 8, 1 tempers nothing", at_least=0.0)
    author: int = setting(
        0, "1 ends coordinate ascent and breaks ties as the author's program does; needs float64", choices=(0, 1)
    )

    def sizes(self, data: Any) -> dict[str, int]:
        """Return the number of classes: of mentions those of their antecedents, else the labels."""
        return {"class": len(labelled(data).classes)}


def density(resolved: Resolved) -> None:
    """State the joint density of profiles and annotations.

    How one label of an item is taken (``decisions``), and ``author``, have no part in it.
    """
    check_fixed(resolved.settings.hyperparameters)
    with numpyro.plate("class", resolved.size("class"), dim=-1):
        sites = {"prevalence": numpyro.sample("prevalence", resolved.prior("prevalence"))}
        with numpyro.plate("annotator", resolved.data.num_annotators, dim=-2):
            for site in ("sensitivity", "specificity"):
                sites[site] = numpyro.sample(site, resolved.prior(site))
    of_item = log_likelihood_of_sites(sites, resolved)
    with numpyro.plate("item", len(of_item)):
        numpyro.factor("annotations", of_item)


def log_likelihood_of_sites(sites: Mapping[str, Any], resolved: Resolved) -> Float[Array, " item"]:
    """Return the log probability of the decisions on each item's candidates, given one draw of the sites."""
    settings = resolved.settings
    return log_likelihood(
        resolved.data, sites["prevalence"], sites["sensitivity"], sites["specificity"], settings.candidates,
        settings.gold,
    )  # fmt: skip


_PROFILE = {"plates": ("annotator", "class"), "family": dist.Beta, "prior_plates": ("class",)}

def says(account: Account) -> Iterator[Note]:
    """Say so where the annotators agree no more than chance would have them."""
    data = account.resolved.data
    if "link" not in account.posterior.hidden:
        yield from links_note(account.resolved, account.method)
    else:
        yield from partition_notes(account.posterior.hidden, account.posterior.chains)
    labelled = as_annotations(data)
    if labelled.num_annotators:
        yield from signal_notes(signal(labelled), data.annotators)
        yield from unanimous_notes(labelled)


def _truth(posterior: Posterior, resolved: Resolved, **more: Any) -> Truth:
    """Return the draws of the labels, those of a partition where the posterior is of one."""
    if "link" not in posterior.hidden:
        return truth(posterior, resolved, **more)
    from consilience.models.mpa.partition.truth import PartitionLabels

    return PartitionLabels(posterior.hidden, resolved)


def _check_links(resolved: Resolved) -> None:
    if resolved.settings.coreference == "partition":
        text = "a partition is drawn by a sampler of its own; use {method}"
        raise UnsupportedRequest(text, Remedy("method", "gibbs"))


def _canonical(samples: Mapping[str, Any], resolved: Resolved) -> dict[str, Any]:
    """Return mirror modes mapped to one; a partition has none."""
    return canonical(samples, resolved) if "specificity" in samples else dict(samples)


def _summarised(samples: Mapping[str, Any], resolved: Resolved) -> dict[str, Any]:
    """Return the sites; of a partition, whose annotators are many and seen little, their mean sensitivities."""
    if "specificity" in samples:
        return dict(samples)
    others = {name: values for name, values in samples.items() if name != "sensitivity"}
    return {"mean_sensitivity": np.asarray(samples["sensitivity"]).mean(axis=2)[..., :2], **others}


MODEL = Model(
    name="mpa",
    title="mention-pair annotations: labels from an open list, and each annotator's sensitivity and specificity",
    paper=MAJORITY_VOTE.paper,
    takes=(Annotations, Mentions),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("prevalence", plates=("class",), family=dist.Beta, prior_plates=("class",)),
        Site("sensitivity", **_PROFILE),
        Site("specificity", **_PROFILE),
        Site("log_likelihood"),
        Site("num_entities"),
        Site("together", event=("doubtful_pair",)),
        canonical=_canonical,
        summarised=_summarised,
        hidden={
            "log_odds": ("pair",), "sensitivity_prior": ("class", "2"), "specificity_prior": ("class", "2"), **HIDDEN,
        },
    ),
    density=density,
    engines=(CAVI, GIBBS, *(Generic(name=name, check=_check_links) for name in ("nuts", "svi"))),
    truth=_truth,
    tables=(*TABLES, CHAINS_PRIOR, *GOLD_MEASURES),
    says=says,
    simulation=Simulation(
        draw=draw_data, empty=Annotations.empty, log_likelihood=log_likelihood_of_sites,
        sizes={"num_items": 100, "num_annotators": 10, "num_labels": 3, "annotations_per_item": None},
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
