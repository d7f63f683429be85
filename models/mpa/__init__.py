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
| `candidates` | pairs and decisions as tables; decisions on single pairs |
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

from typing import Any

import jax
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Key
from consilience.data.annotations import Annotations
from consilience.data.mentions import Mentions
from consilience.models.gold import GOLD
from consilience.models.interface import Model, Option
from consilience.models.mpa.candidates import num_classes
from consilience.models.mpa.cavi import CAVI, Posterior
from consilience.models.mpa.gibbs import GIBBS
from consilience.models.mpa.labels import truth
from consilience.models.mpa.likelihood import log_likelihood
from consilience.models.mpa.mirror import canonical
from consilience.models.mpa.priors import BetaPrior, Priors, check_fixed, learned_priors, site_prior
from consilience.models.mpa.simulation import simulate
from consilience.models.mpa.tables import ambiguous, annotators, candidates, hyperparameters, labels

__all__ = [
    "MODEL",
    "BetaPrior",
    "Posterior",
    "Priors",
    "canonical",
    "draw",
    "learned_priors",
    "log_likelihood",
    "model",
    "simulate",
    "truth",
]


def model(
    data: Any, priors: Priors | None = None, *, candidates: str = "observed", gold: str = "ignore",
    hyperparameters: str = "fixed", decisions: str = "separate", author: int = 0,
) -> None:  # fmt: skip
    """State the joint density of profiles and annotations as a NumPyro model.

    How one label of an item is taken (``decisions``), and ``author``, have no part in it.
    """
    check_fixed(hyperparameters)
    size = num_classes(data)
    prevalence_prior, sensitivity_prior, specificity_prior = (
        site_prior(site, priors or Priors(), data, size) for site in ("prevalence", "sensitivity", "specificity")
    )
    with numpyro.plate("class", size, dim=-1):
        prevalence = numpyro.sample("prevalence", prevalence_prior)
        with numpyro.plate("annotator", data.num_annotators, dim=-2):
            sensitivity = numpyro.sample("sensitivity", sensitivity_prior)
            specificity = numpyro.sample("specificity", specificity_prior)
    of_item = log_likelihood(data, prevalence, sensitivity, specificity, candidates, gold)
    with numpyro.plate("item", len(of_item)):
        numpyro.factor("annotations", of_item)


def log_likelihood_of_sites(
    sites: Any, data: Any, *, candidates: str = "observed", gold: str = "ignore", **options: Any
) -> Float[Array, " item"]:
    """Return the log probability of the decisions on each item's candidates, given one draw of the sites."""
    return log_likelihood(data, sites["prevalence"], sites["sensitivity"], sites["specificity"], candidates, gold)


def draw(posterior: Posterior, data: Any, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return draws of prevalence and profiles from what coordinate ascent ended with."""
    keys = jax.random.split(key, 3)
    return {
        site: jax.random.beta(one, parameters[..., 0], parameters[..., 1], (num_draws, *parameters.shape[:-1]))
        for one, site, parameters in zip(keys, Posterior._fields, posterior[:3], strict=False)
    }


def factors(posterior: Posterior) -> dict[str, dist.Beta]:
    """Return q(π), q(α) and q(β)."""
    named = zip(Posterior._fields, posterior[:3], strict=False)
    return {site: dist.Beta(parameters[..., 0], parameters[..., 1]) for site, parameters in named}


MODEL = Model(
    name="mpa",
    title="mention-pair annotations: labels from an open list, and each annotator's sensitivity and specificity",
    citation="""@inproceedings{paun2018probabilistic,
  title     = {A Probabilistic Annotation Model for Crowdsourcing Coreference},
  author    = {Paun, Silviu and Chamberlain, Jon and Kruschwitz, Udo and Yu, Juntao and Poesio, Massimo},
  booktitle = {Proceedings of the 2018 Conference on Empirical Methods in Natural Language Processing},
  pages     = {1926--1937},
  year      = {2018}
}""",
    data=Annotations,
    also=(Mentions,),
    methods=("cavi", "gibbs", "nuts", "svi"),
    model=model,
    priors=Priors,
    options=(
        Option(
            name="candidates", kind=str, default="observed", choices=("observed", "closed"),
            help="which labels may be true of an item: those that it got, or all of a closed list",
        ),
        GOLD,
        Option(
            name="hyperparameters", kind=str, default="fixed", choices=("fixed", "learned"),
            help="of sensitivities and specificities: those of the priors, or learned by cavi for each class",
        ),
        Option(
            name="decisions", kind=str, default="separate", choices=("separate", "joint"),
            help="of the candidates' probabilities: by the odds that each is true by itself, as published, or of an "
            "annotator's choice of one of them, which is as sure as it is right",
        ),
        Option(
            name="author", kind=int, default=0, choices=(0, 1),
            help="1 ends coordinate ascent and breaks ties as the author's program does; needs float64",
        ),
    ),
    posterior=Posterior,
    draw=draw,
    factors=factors,
    cavi=CAVI,
    gibbs=GIBBS,
    truth=truth,
    tables={
        "labels": labels, "candidates": candidates, "annotators": annotators, "ambiguous": ambiguous,
        "hyperparameters": hyperparameters,
    },
    dims={
        "prevalence": ("class",), "sensitivity": ("annotator", "class"), "specificity": ("annotator", "class"),
    },
    simulate=simulate,
    log_likelihood=log_likelihood_of_sites,
    canonical=canonical,
)  # fmt: skip
