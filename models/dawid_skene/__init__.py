r"""Dawid and Skene (1979): annotators with a confusion matrix each, and items with one true label.

.. math::

    p \sim \mathrm{Dir}(a), \qquad \Theta_{jt} \sim \mathrm{Dir}(A_t), \qquad
    T_i \sim \mathrm{Cat}(p), \qquad l_n \sim \mathrm{Cat}(\Theta_{j_n, T_{i_n}}).

Annotation n says that annotator :math:`j_n` gave item :math:`i_n` the label :math:`l_n`. An annotator who labels an
item several times has several rows, and a row of weight w counts w times.

| symbol | name | shape |
|---|---|---|
| p | ``prevalence`` | (class,) |
| Θ | ``confusion`` | (annotator, class, label): who, the true class, the label that is given; always in this order |
| T | ``label`` of a simulation; summed out elsewhere | (item,) |
| q(T) | ``responsibility``, of CAVI and EM | (item, class) |
| a, A | the concentrations of ``Priors``; all ones by default | (class,), (class, label) |

| file | what it holds |
|---|---|
| `priors` | what is believed of p and Θ |
| `layout` | the annotations as the kernels read them, and the sums over them |
| `cavi`, `gibbs`, `em` | the hand-written methods; EM is the estimate of 1979 |
| `labelling` | mirror modes: which class bears which name |
| `crowd` | how often such annotators agree |
| `tables` | who is reliable at what |
| `simulation` | annotations from the prior predictive |

CAVI treats labels and parameters as independent. Its label probabilities are close to those of the samplers, a little
too sure, and its intervals of the parameters a little too narrow.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models.dawid_skene import tables
from consilience.models.dawid_skene.cavi import CAVI, Concentrations
from consilience.models.dawid_skene.crowd import (
    average_confusion,
    crowd_of_draws,
    crowd_of_posterior,
    several_annotators,
)
from consilience.models.dawid_skene.em import EM
from consilience.models.dawid_skene.gibbs import GIBBS, State, draw_labels, draw_parameters
from consilience.models.dawid_skene.labelling import canonical
from consilience.models.dawid_skene.layout import Rows, log_joint, require_annotators, rows_of
from consilience.models.dawid_skene.priors import Diagonal, Priors, notes, site_priors
from consilience.models.dawid_skene.simulation import simulate
from consilience.models.gold import GOLD
from consilience.models.interface import Model
from consilience.models.truth import LabelDraws, LabelProbabilities, Truth, code_dtype

__all__ = ["MODEL", "Diagonal", "Posterior", "Priors", "canonical", "draw", "model", "simulate", "truth"]


def _diagonal(right: float) -> dict[str, Diagonal]:
    return {"confusion": Diagonal(right)}


def _testing_priors() -> Priors:
    return Priors(confusion=Diagonal(4.0))


def model(data: Annotations, priors: Priors | None = None, *, gold: str = "ignore") -> None:
    """State the joint density of prevalence, confusion and annotations as a NumPyro model, true labels summed out."""
    require_annotators(data)
    prevalence_prior, confusion_prior = site_priors(priors or Priors(), data)
    prevalence = numpyro.sample("prevalence", prevalence_prior)
    annotators = numpyro.plate("annotator", data.num_annotators, dim=-2)
    with annotators, numpyro.plate("class", data.num_labels, dim=-1):
        confusion = numpyro.sample("confusion", confusion_prior)
    sites = {"prevalence": prevalence, "confusion": confusion}
    with numpyro.plate("item", data.num_items):
        numpyro.factor("annotations", log_likelihood(sites, data, gold=gold))


def log_likelihood(sites: Mapping[str, Array], data: Annotations, *, gold: str = "ignore") -> Float[Array, " item"]:
    """Return the log probability of each item's annotations, and of its gold label where that is used."""
    prevalence, confusion = (_log(jnp.asarray(sites[name])) for name in ("prevalence", "confusion"))
    return jax.nn.logsumexp(log_joint(prevalence, confusion, rows_of(data, gold)), axis=-1)


def _log(probability: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """Take logarithms that stay finite, and so do their gradients, where a probability underflows."""
    return jnp.log(jnp.maximum(probability, jnp.finfo(probability.dtype).tiny))


class Posterior(NamedTuple):
    """What CAVI ends with: independent distributions of class shares, confusion matrices and labels.

    Parameters
    ----------
    prevalence : shape ``(class,)``; Dirichlet concentration.
    confusion : shape ``(annotator, class, label)``; Dirichlet concentrations of the rows.
    responsibility : shape ``(item, class)``; probability of each true label.
    """

    prevalence: Float[np.ndarray, " class"]
    confusion: Float[np.ndarray, "annotator class label"]
    responsibility: Float[np.ndarray, "item class"]


def draw(posterior: Posterior, data: Annotations, *, key: Key, num_draws: int, gold: str) -> dict[str, Array]:
    """Return draws of ``prevalence`` ``(draw, class)`` and ``confusion`` ``(draw, annotator, class, label)``."""
    given = Concentrations(jnp.asarray(posterior.prevalence), jnp.asarray(posterior.confusion))
    states = _draws(jax.random.split(key, num_draws), given)
    return {"prevalence": jnp.exp(states.log_prevalence), "confusion": jnp.exp(states.log_confusion)}


@jax.jit
def _draws(keys: Key, given: Concentrations) -> State:
    return jax.lax.map(lambda key: draw_parameters(key, given), keys)


def factors(posterior: Posterior) -> dict[str, dist.Dirichlet]:
    """Return q(p) and q(Θ)."""
    return {"prevalence": dist.Dirichlet(posterior.prevalence), "confusion": dist.Dirichlet(posterior.confusion)}


def truth(posterior: Any, data: Annotations, *, key: Key, num_draws: int, gold: str = "ignore") -> Truth:
    """Return the labels: with their probabilities after CAVI and EM, else drawn once given each draw's parameters."""
    key_label, key_crowd = jax.random.split(key)
    several = several_annotators(data)
    if isinstance(posterior, dict) and "responsibility" not in posterior:
        prevalence, confusion = (jnp.asarray(posterior[site]) for site in ("prevalence", "confusion"))
        keys = jax.random.split(key_label, len(prevalence))
        label = np.asarray(_labels_of_draws(keys, prevalence, confusion, rows_of(data, gold)))
        crowd = functools.partial(crowd_of_draws, posterior["confusion"], data, len(prevalence))
        mean = functools.partial(average_confusion, posterior["confusion"], data)
        return LabelDraws(label, data.num_labels, crowd if several else None, mean)
    if isinstance(posterior, dict):
        responsibility = posterior["responsibility"][0]
        crowd = functools.partial(crowd_of_draws, posterior["confusion"], data, num_draws)
        mean = functools.partial(average_confusion, posterior["confusion"], data)
    else:
        responsibility = posterior.responsibility
        mean = functools.partial(average_confusion, np.asarray(posterior.confusion)[None], data)
        crowd = functools.partial(crowd_of_posterior, posterior.confusion, data, key_crowd, num_draws)
    return LabelProbabilities.dense(
        np.asarray(responsibility), key=key_label, num_draws=num_draws, crowd=crowd if several else None,
        mean_confusion=mean,
    )  # fmt: skip


@jax.jit
def _labels_of_draws(
    keys: Key,
    prevalence: Float[Array, "draw class"],
    confusion: Float[Array, "draw annotator class label"],
    rows: Rows,
) -> Int[Array, "draw item"]:
    def of_draw(one: tuple) -> Array:
        key, prevalence, confusion = one
        label = draw_labels(key, log_joint(_log(prevalence), _log(confusion), rows))
        return label.astype(code_dtype(len(prevalence)))

    return jax.lax.map(of_draw, (keys, prevalence, confusion))


MODEL = Model(
    name="dawid-skene",
    title="labels by annotators who each have a confusion matrix",
    citation="""@article{dawid1979maximum,
  title   = {Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm},
  author  = {Dawid, A. P. and Skene, A. M.},
  journal = {Journal of the Royal Statistical Society. Series C (Applied Statistics)},
  volume  = {28},
  number  = {1},
  pages   = {20--28},
  year    = {1979},
  doi     = {10.2307/2346806}
}""",
    data=Annotations,
    methods=("cavi", "gibbs", "em", "nuts", "svi"),
    model=model,
    priors=Priors,
    prior_options={
        "diagonal": ("concentration of the right label in a row of a confusion matrix; others have 1: 1", _diagonal),
    },
    options=(GOLD,),
    posterior=Posterior,
    cavi=CAVI,
    gibbs=GIBBS,
    em=EM,
    draw=draw,
    factors=factors,
    truth=truth,
    tables={
        "labels": tables.labels, "probabilities": tables.probabilities, "annotators": tables.annotators,
        "confusion": tables.confusion, "crowd": tables.crowd, "prevalence": tables.prevalence,
    },
    dims={
        "prevalence": ("class",), "confusion": ("annotator", "class", "label"), "responsibility": ("item", "class"),
    },
    simulate=simulate,
    testing_priors=_testing_priors,
    log_likelihood=log_likelihood,
    canonical=canonical,
    notes=notes,
)  # fmt: skip
