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

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int, Key
from consilience.data.annotations import Annotations
from consilience.models import settings
from consilience.models.dawid_skene.cavi import CAVI
from consilience.models.dawid_skene.crowd import crowd_of_draws, crowd_of_posterior
from consilience.models.dawid_skene.em import EM
from consilience.models.dawid_skene.gibbs import GIBBS, draw_labels
from consilience.models.dawid_skene.labelling import canonical
from consilience.models.dawid_skene.layout import Rows, log_joint, require_annotators, rows_of
from consilience.models.dawid_skene.priors import Diagonal, Priors, says
from consilience.models.dawid_skene.simulation import draw_data
from consilience.models.dawid_skene.tables import TABLES
from consilience.models.gold import GOLD_MEASURES, gold_setting
from consilience.models.interface import Generic, Model, Simulation
from consilience.models.posterior import Posterior
from consilience.models.settings import setting
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.special import finite_log
from consilience.models.truth import LabelDraws, LabelProbabilities, Truth
from consilience.models.truth.entries import code_dtype

__all__ = ["MODEL", "Diagonal", "Priors", "Settings", "model", "simulate"]


@dataclass(frozen=True, kw_only=True)
class Settings(settings.Settings):
    """Settings of `dawid-skene`; see the fields."""

    gold: str = gold_setting()
    diagonal: float | None = setting(
        None, "concentration of the right label in a row of a confusion matrix; others have 1: 1", above=0.0,
        sets=("confusion", Diagonal),
    )  # fmt: skip


def density(resolved: Resolved) -> None:
    """State the joint density of prevalence, confusion and annotations, true labels summed out."""
    data = resolved.data
    require_annotators(data)
    prevalence = numpyro.sample("prevalence", resolved.prior("prevalence"))
    annotators = numpyro.plate("annotator", data.num_annotators, dim=-2)
    with annotators, numpyro.plate("class", data.num_labels, dim=-1):
        confusion = numpyro.sample("confusion", resolved.prior("confusion"))
    with numpyro.plate("item", data.num_items):
        sites = {"prevalence": prevalence, "confusion": confusion}
        numpyro.factor("annotations", log_likelihood(sites, resolved))


def log_likelihood(sites: Mapping[str, Array], resolved: Resolved) -> Float[Array, " item"]:
    """Return the log probability of each item's annotations, and of its gold label where that is used."""
    prevalence, confusion = (finite_log(jnp.asarray(sites[name])) for name in ("prevalence", "confusion"))
    rows = rows_of(resolved.data, resolved.settings.gold)
    return jax.nn.logsumexp(log_joint(prevalence, confusion, rows), axis=-1)


def truth(posterior: Posterior, resolved: Resolved, *, key: Key, num_draws: int) -> Truth:
    """Return the labels: with their probabilities after CAVI and EM, else drawn once given each draw's parameters."""
    key_label, key_crowd = jax.random.split(key)
    data, responsibility = resolved.data, posterior.hidden.get("responsibility")
    # Of a closed form the concentrations stand for the rows, whose shares are the mean.
    rows = posterior.confusion if posterior.form == "draws" else np.asarray(posterior.confusion)[None]
    number = len(rows) if responsibility is None else num_draws
    if posterior.form == "closed":
        crowd = crowd_of_posterior(rows[0], data, key_crowd, number)
    else:
        crowd = crowd_of_draws(rows, data, number)
    if responsibility is None:
        label = _labels_of_draws(
            jax.random.split(key_label, number), jnp.asarray(posterior.prevalence), jnp.asarray(rows),
            rows_of(data, resolved.settings.gold),
        )  # fmt: skip
        return LabelDraws(np.asarray(label), data.num_labels, crowd)
    return LabelProbabilities.dense(np.asarray(responsibility), key=key_label, num_draws=number, crowd=crowd)


@jax.jit
def _labels_of_draws(
    keys: Key,
    prevalence: Float[Array, "draw class"],
    confusion: Float[Array, "draw annotator class label"],
    rows: Rows,
) -> Int[Array, "draw item"]:
    def of_draw(one: tuple) -> Array:
        key, prevalence, confusion = one
        label = draw_labels(key, log_joint(finite_log(prevalence), finite_log(confusion), rows))
        return label.astype(code_dtype(len(prevalence)))

    return jax.lax.map(of_draw, (keys, prevalence, confusion))


def _testing_priors() -> Priors:
    return Priors(confusion=Diagonal(4.0))


MODEL = Model(
    name="dawid-skene",
    title="labels by annotators who each have a confusion matrix",
    paper="""@article{dawid1979maximum,
  title   = {Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm},
  author  = {Dawid, A. P. and Skene, A. M.},
  journal = {Journal of the Royal Statistical Society. Series C (Applied Statistics)},
  volume  = {28},
  number  = {1},
  pages   = {20--28},
  year    = {1979},
  doi     = {10.2307/2346806}
}""",
    takes=(Annotations,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        Site("prevalence", event=("class",), family=dist.Dirichlet),
        Site(
            "confusion", plates=("annotator", "class"), event=("label",), family=dist.Dirichlet,
            prior_plates=("class",),
        ),
        canonical=canonical,
        hidden={"responsibility": ("item", "class")},
    ),
    density=density,
    engines=(CAVI, GIBBS, EM, Generic(name="nuts"), Generic(name="svi")),
    truth=truth,
    tables=(*TABLES, *GOLD_MEASURES),
    says=says,
    simulation=Simulation(
        draw=draw_data, empty=Annotations.empty, priors=_testing_priors, log_likelihood=log_likelihood,
        sizes={"num_items": 100, "num_annotators": 10, "num_labels": 3, "annotations_per_item": None},
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
