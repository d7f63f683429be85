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

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.dirichlet import Symmetric
from consilience.models.gold import GOLD
from consilience.models.interface import Model, Option
from consilience.models.mace.cavi import CAVI, Posterior
from consilience.models.mace.em import EM
from consilience.models.mace.gibbs import GIBBS
from consilience.models.mace.likelihood import label_log_likelihood, log_prior, require_annotators
from consilience.models.mace.priors import KnowsGuesses, Priors, skill_priors
from consilience.models.mace.simulation import simulate
from consilience.models.mace.skills import annotation_counts, average_confusion, crowd, over_draws, source
from consilience.models.mace.tables import annotators, guesses, labels, probabilities
from consilience.models.truth import Crowd, LabelDraws, LabelProbabilities, Truth, code_dtype

__all__ = ["MODEL", "KnowsGuesses", "Posterior", "Priors", "draw", "model", "simulate", "truth"]


def model(
    data: Annotations,
    priors: Priors | None = None,
    *,
    gold: str = "ignore",
    candidates: str = "closed",
    restarts: int = 0,
    smoothing: float = 0.0,
) -> None:
    """State the joint density of skills and annotations, labels summed out; restarts and smoothing have no part."""
    require_annotators(data)
    priors = priors or Priors()
    competence_prior, guess_prior = skill_priors(priors, data)
    with numpyro.plate("annotator", data.num_annotators):
        competence = numpyro.sample("competence", competence_prior)
        guess = numpyro.sample("guess", guess_prior)
    log_joint = log_prior(data, gold, candidates) + label_log_likelihood(
        {"competence": competence, "guess": guess}, data
    )
    with numpyro.plate("item", data.num_items):
        numpyro.factor("annotations", jax.nn.logsumexp(log_joint, axis=1))


def log_likelihood(
    sites: Mapping[str, Array], data: Annotations, *, gold: str = "ignore", candidates: str = "closed", **options: Any
) -> Float[Array, " item"]:
    """Return the log probability of each item's annotations given the skills."""
    return jax.nn.logsumexp(log_prior(data, gold, candidates) + label_log_likelihood(sites, data), axis=1)


def truth(
    posterior: Any, data: Annotations, *, key: Key, num_draws: int, gold: str, candidates: str, **options: Any
) -> Truth:
    """Return the labels: probabilities from CAVI and EM, draws from the samplers."""
    key_label, key_skills = jax.random.split(key)
    confusion = partial(average_confusion, posterior, data)
    if isinstance(posterior, Posterior):
        probability = np.asarray(posterior.probability, float)
    elif "label_probability" in posterior:
        probability = np.asarray(posterior["label_probability"][0], float)
    else:
        label = _draw_labels(key_label, dict(posterior), data, gold, candidates)
        return LabelDraws(label, data.num_labels, _crowd(posterior, data, key_skills, len(label)), confusion)
    return LabelProbabilities.dense(
        probability, key=key_label, num_draws=num_draws, crowd=_crowd(posterior, data, key_skills, num_draws),
        mean_confusion=confusion,
    )  # fmt: skip


def _crowd(posterior: Any, data: Annotations, key: Key, num_draws: int) -> Callable[[], Crowd] | None:
    """Return what makes the crowd at its first use; None where there are no two annotators who could agree."""
    several = np.count_nonzero(annotation_counts(data)) > 1
    return partial(crowd, source(posterior, key, num_draws), data, num_draws) if several else None


@partial(jax.jit, static_argnames=("gold", "candidates"))
def _draw_labels(
    key: Key, sites: Mapping[str, Array], data: Annotations, gold: str, candidates: str
) -> Int[Array, "draw item"]:
    """Draw the labels given the skills of each draw."""
    prior = log_prior(data, gold, candidates)

    def one(given: tuple[Key, Mapping[str, Array]]) -> Int[Array, " item"]:
        key, skills = given
        label = jax.random.categorical(key, prior + label_log_likelihood(skills, data))
        return label.astype(code_dtype(data.num_labels))

    return jax.lax.map(one, (jax.random.split(key, len(sites["competence"])), sites))


def draw(posterior: Posterior, data: Annotations, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return draws of ``competence`` ``(draw, annotator)`` and ``guess`` ``(draw, annotator, label)``."""
    return over_draws(lambda skills: skills, source(posterior, key, num_draws))._asdict()


def factors(posterior: Posterior) -> dict[str, dist.Distribution]:
    """Return q(θ) and q(ξ)."""
    return {"competence": dist.Beta(posterior.knows, posterior.guesses), "guess": dist.Dirichlet(posterior.guess)}


def _guess_count(count: float) -> dict[str, Symmetric]:
    return {"guess": Symmetric(count)}


MODEL = Model(
    name="mace",
    title="annotators who know the label or guess (MACE), by variational Bayes as published, Gibbs or EM",
    citation="""@inproceedings{hovy2013learning,
  title     = {Learning whom to trust with {MACE}},
  author    = {Hovy, Dirk and Berg-Kirkpatrick, Taylor and Vaswani, Ashish and Hovy, Eduard},
  booktitle = {Proceedings of the 2013 Conference of the North American Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  pages     = {1120--1130},
  year      = {2013}
}""",
    data=Annotations,
    methods=("cavi", "gibbs", "em", "nuts", "svi"),
    model=model,
    priors=Priors,
    prior_options={
        "guess_count": ("pseudo-count of each label among the guesses of an annotator: 10", _guess_count),
    },
    options=(
        GOLD,
        Option(
            name="candidates", kind=str, default="closed", choices=("closed", "observed"),
            help="which labels an item can have: all of them (closed), or those that somebody gave it (observed)",
        ),
        Option(
            name="restarts", kind=int, default=0, minimum=0.0,
            help="random starts of cavi and em beside the flat one; the one with the highest objective goes on",
        ),
        Option(
            name="smoothing", kind=float, default=0.01, minimum=0.0,
            help="of em: pseudo-count that the labels share, as in the published program; 0 for maximum likelihood",
        ),
    ),
    posterior=Posterior,
    cavi=CAVI,
    gibbs=GIBBS,
    em=EM,
    draw=draw,
    factors=factors,
    truth=truth,
    tables={"labels": labels, "probabilities": probabilities, "annotators": annotators, "guesses": guesses},
    dims={
        "competence": ("annotator",), "guess": ("annotator", "label"), "label_probability": ("item", "label"),
    },
    simulate=simulate,
    log_likelihood=log_likelihood,
)  # fmt: skip
