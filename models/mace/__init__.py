r"""MACE: annotators who know the label, or guess (Hovy et al. 2013).

.. math::

    T_i \sim \mathrm{Uniform}, \qquad S_n \sim \mathrm{Bernoulli}(1 - \theta_{j_n}), \qquad
    l_n = T_{i_n} \text{ if } S_n = 0, \qquad l_n \sim \mathrm{Categorical}(\xi_{j_n}) \text{ if } S_n = 1,

so that, with S summed out, annotator j gives an item of label t the label l with probability
:math:`\theta_j 1[l = t] + (1 - \theta_j) \xi_{jl}`. The weight of an annotation is the power of its likelihood: that
many annotations.

| symbol | name | shape |
|---|---|---|
| θ | ``competence``, the probability that the annotator knows | (annotator,) |
| ξ | ``guess``, what it says when it guesses | (annotator, label) |
| T | ``label``, the true one | (item,) |
| S | which annotations are guesses: summed out, or counted by the Gibbs sampler | (annotation,) |

| file | what it holds |
|---|---|
| `priors` | what is believed of annotators; the defaults are the published program's |
| `likelihood` | what annotations say of labels; labels that are known or ruled out |
| `cavi` | variational Bayes, the published program's own method, with its bound |
| `em`, `gibbs` | maximum likelihood with its smoothing; draws of the exact posterior |
| `restarts` | the flat start, and random ones |
| `skills` | draws of the annotators' skills, and how often annotators agree |
| `tables` | labels, annotators, guesses |
| `simulation` | annotations from the prior predictive |

Two traps of the published program. Its ``alpha`` is the pseudo-count of *guessing* and its ``beta`` that of *knowing*,
so that alpha > beta means distrust; here both have names (`KnowsGuesses`). And of several starts it keeps the one with
the largest :math:`\sum_i \log Z_i`, which under variational Bayes is not the bound; here starts are compared by the
bound. It makes 10 random starts of 50 iterations; here the flat start is the default, and a run goes on until it stands
still.

"Knows" is tied to the names of the labels, so that there are no mirror modes to map to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models import settings
from consilience.models.dirichlet import Symmetric
from consilience.models.gold import GOLD_MEASURES, gold_setting
from consilience.models.interface import Generic, Model, Simulation
from consilience.models.mace.cavi import CAVI
from consilience.models.mace.em import EM
from consilience.models.mace.gibbs import GIBBS
from consilience.models.mace.likelihood import label_log_likelihood, log_prior, require_annotators
from consilience.models.mace.priors import KnowsGuesses, Priors
from consilience.models.mace.simulation import draw_data
from consilience.models.mace.skills import crowd
from consilience.models.mace.tables import TABLES
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth import LabelDraws, LabelProbabilities, Truth
from consilience.models.truth.entries import code_dtype

__all__ = ["MODEL", "KnowsGuesses", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `mace`; see the fields."""

    gold: str = gold_setting()
    candidates: str = setting(
        "closed", "which labels an item can have: all of them (closed), or those that somebody gave it (observed)",
        choices=("closed", "observed"),
    )  # fmt: skip
    restarts: int = setting(
        0, "random starts of cavi and em beside the flat one; the one with the highest objective goes on", at_least=0.0
    )
    smoothing: float = setting(
        0.01,
        "of em: pseudo-count that the labels share, as in the published program; 0 for maximum likelihood",
        at_least=0.0,
    )
    guess_count: float | None = setting(
        None, "pseudo-count of each label among the guesses of an annotator: 10", above=0.0, sets=("guess", Symmetric)
    )


def density(resolved: Resolved) -> None:
    """State the joint density of skills and annotations, labels summed out."""
    data = resolved.data
    require_annotators(data)
    with numpyro.plate("annotator", data.num_annotators):
        competence = numpyro.sample("competence", resolved.prior("competence"))
        guess = numpyro.sample("guess", resolved.prior("guess"))
    with numpyro.plate("item", data.num_items):
        numpyro.factor("annotations", log_likelihood({"competence": competence, "guess": guess}, resolved))


def log_likelihood(sites: Mapping[str, Array], resolved: Resolved) -> Float[Array, " item"]:
    """Return the log probability of each item's annotations given the skills."""
    return jax.nn.logsumexp(log_prior(resolved) + label_log_likelihood(sites, resolved.data), axis=1)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> Truth:
    """Return the labels: probabilities from CAVI and EM, draws from the samplers."""
    key_label, key_skills = jax.random.split(key)
    data, probability = resolved.data, posterior.hidden.get("probability")
    if probability is None:
        label = _draw_labels(key_label, posterior.draws(), resolved)
        return LabelDraws(label, data.num_labels, crowd(posterior, data, key_skills, len(label)))
    crowd_of_fit = crowd(posterior, data, key_skills, num_draws)
    return LabelProbabilities.dense(
        np.asarray(probability, float), key=key_label, num_draws=num_draws, crowd=crowd_of_fit
    )


@jax.jit
def _draw_labels(key: Key, sites: Mapping[str, Array], resolved: Resolved) -> Int[Array, "draw item"]:
    """Draw the labels given the skills of each draw."""
    prior, data = log_prior(resolved), resolved.data

    def one(given: tuple[Key, Mapping[str, Array]]) -> Int[Array, " item"]:
        key, skills = given
        label = jax.random.categorical(key, prior + label_log_likelihood(skills, data))
        return label.astype(code_dtype(data.num_labels))

    return jax.lax.map(one, (jax.random.split(key, len(sites["competence"])), sites))


MODEL = Model(
    name="mace",
    title="annotators who know the label or guess (MACE), by variational Bayes as published, Gibbs or EM",
    paper="""@inproceedings{hovy2013learning,
  title     = {Learning whom to trust with {MACE}},
  author    = {Hovy, Dirk and Berg-Kirkpatrick, Taylor and Vaswani, Ashish and Hovy, Eduard},
  booktitle = {Proceedings of the 2013 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  pages     = {1120--1130},
  year      = {2013}
}""",
    takes=(Annotations,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("competence", plates=("annotator",), family=dist.Beta, prior_plates=("annotator",)),
        Site("guess", plates=("annotator",), event=("label",), family=dist.Dirichlet, prior_plates=("annotator",)),
        hidden={"probability": ("item", "label")},
    ),
    density=density,
    engines=(CAVI, GIBBS, EM, Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=(*TABLES, *GOLD_MEASURES),
    simulation=Simulation(
        draw=draw_data, empty=Annotations.empty, log_likelihood=log_likelihood,
        sizes={"num_items": 100, "num_annotators": 10, "num_labels": 3, "annotations_per_item": 5},
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
