r"""Several clusterings of the same items, from what experts say of pairs and from features.

Chang, Chen, Cho, Castaldi, Silverman and Dy (2017). Experts say of pairs of items whether they belong together. They
need not have the same clustering in mind: each has one *view* of the items, and experts of one view are found together
with it. Experts err, each in a way of his own; features tell where items belong that few or none have spoken about.

.. math::

    \nu_g \sim \mathrm{Beta}(1, \gamma), \quad \nu_G = 1, \quad
    c_m \sim \mathrm{Cat}(\pi), \quad \pi_g = \nu_g \prod_{l<g} (1 - \nu_l),

.. math::

    \alpha_m \sim \mathrm{Beta}(a_0, b_0), \quad \beta_m \sim \mathrm{Beta}(c_0, d_0), \quad
    W^g_{dk} \sim N(0, s^2), \quad Z^g_i \sim \mathrm{Cat}(\mathrm{softmax}(W^{g\,T} x_i)),

.. math::

    S^m_{ij} \sim \mathrm{Bern}(\alpha_m) \text{ if } Z^{c_m}_i = Z^{c_m}_j, \qquad
    S^m_{ij} \sim \mathrm{Bern}(1 - \beta_m) \text{ otherwise.}

The pairs and the features are given, not modelled.

| symbol | name | shape |
|---|---|---|
| x | ``feature``, standardised, with a last column of ones | (item, feature + 1) |
| W | ``weight``: the last row is the offset | (view, feature + 1, cluster) |
| Z | ``cluster`` of the items that occur in a pair | (view, judged) |
| c | ``view_of_expert`` | (expert,) |
| ν | ``stick`` | (view - 1,) |
| α | ``sensitivity``: says together of items that are | (expert,) |
| β | ``specificity``: says apart of items that are | (expert,) |
| S | ``together``, in the data | (constraint,) |
| φ | ``view_probability``: q(c) | (expert, view) |
| η | ``cluster_probability``: q(Z) | (judged, view, cluster) |

| file | what it holds |
|---|---|
| `priors` | what a researcher swaps; kinds of experts; the link |
| `judgements`, `colouring`, `likelihood` | answers as tables; items that can be updated at once; their probability |
| `model` | the NumPyro function, and what becomes of its discrete sites |
| `problem`, `updates`, `tied`, `bound`, `warmup`, `moves`, `cavi` | coordinate ascent with restarts |
| `gibbs` | the sampler |
| `canonical` | numbers of views and clusters |
| `truth`, `tables`, `prediction` | what comes out: views, what to ask next, clusters of new items |
| `simulation` | experts of known accuracy who judge items in known clusters |

How the paper and its authors' program differ from what is done here: the stick is broken at the last view, so that the
prior sums to one, where theirs loses what lies beyond. In the program the prior of the first view has nearly all
factors in the place of none, so that what it prints is no bound; it ties η to the mean weights
(``responsibilities="tied"``), which cannot react to what was said of a single item, and its bound of the expected
log-sum-exp is Jensen's (``bound="jensen"``), which is loose. Sums are over judged pairs, and no matrix of all items is
built. Most of its starts end early at a poor point; here every restart is warmed up. A bound that counts items and
views of which nobody spoke corrupts the choice among restarts: those are integrated out (`bound`). The number of
clusters is an upper limit; those that are used are reported.

In the authors' protocol all experts of a view judge the same pairs, and those of other views other pairs: which pairs
an expert judged then tells his view. Beta(10, 1), the paper's prior of both accuracies, weighs eleven answers and draws
experts of accuracy .7 to .9 upwards where there are few; the default is a weaker one, and `PAPER_PRIORS` the paper's.
The table of experts shows the mean of the prior beside the estimates.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from consilience.arrays import Array, Key
from consilience.data.constraints import Constraints
from consilience.errors import NotConjugate
from consilience.models.expert_views.canonical import canonical, label_free
from consilience.models.expert_views.cavi import CAVI, Posterior
from consilience.models.expert_views.gibbs import GIBBS
from consilience.models.expert_views.judgements import judged_items
from consilience.models.expert_views.model import FORMS, model, prepared
from consilience.models.expert_views.priors import (
    EXPERTS,
    PAPER_PRIORS,
    BetaPrior,
    Priors,
    expert_sites,
    site_parameters,
)
from consilience.models.expert_views.simulation import simulate
from consilience.models.expert_views.tables import (
    contradictions,
    directions,
    experts,
    questions,
    ranked_restarts,
    restarts,
    same_view,
    view_sizes,
    views,
)
from consilience.models.expert_views.truth import truth
from consilience.models.interface import REQUIRED, Model, Option
from consilience.models.random import log_gamma

__all__ = [
    "MODEL",
    "PAPER_PRIORS",
    "BetaPrior",
    "Posterior",
    "Priors",
    "canonical",
    "draw",
    "model",
    "simulate",
    "truth",
]

_FEW_ANSWERS = 50
_WITHIN = 1.0
_FEW_RESTARTS = 0.1
_TELLS_NOTHING = 1.05    # The mean of the largest probability of an item's clusters, times their number.
_CLOSE = 3.0    # Nats within which another grouping is worth a word: a twentieth of the best one's probability.


def draw(posterior: Posterior, data: Constraints, *, key: Key, num_draws: int, **options: Any) -> dict[str, Array]:
    """Return draws of all sites from the independent factors that coordinate ascent ended with."""
    values = Posterior(*(jnp.asarray(values, jnp.result_type(float)) for values in posterior))
    sites = _drawn(key, values, num_draws)
    if options.get("experts") == "symmetric":
        sites["specificity"] = sites["sensitivity"]  # one accuracy, of both kinds of pairs
    return sites


@functools.partial(jax.jit, static_argnums=2)
def _drawn(key: Key, posterior: Posterior, num_draws: int) -> dict[str, Array]:
    key_beta, key_weight, key_view, key_cluster = jax.random.split(key, 4)
    betas = (posterior.sensitivity, posterior.specificity, posterior.stick)
    flat = jnp.concatenate([part.reshape(-1, 2) for part in betas])
    # All in one call: gammas are slow to compile.
    log_gammas = log_gamma(key_beta, jnp.broadcast_to(flat, (num_draws, *flat.shape)))
    drawn = jax.nn.sigmoid(log_gammas[..., 0] - log_gammas[..., 1])
    parts = jnp.split(drawn, np.cumsum([part[..., 0].size for part in betas])[:-1], axis=1)
    sites = {
        site: part.reshape(num_draws, *parameters.shape[:-1])
        for site, part, parameters in zip(("sensitivity", "specificity", "stick"), parts, betas, strict=True)
    }
    if not len(posterior.stick):
        del sites["stick"]  # of a single view

    def classes(key: Key, probability: Array) -> Array:
        return jax.random.categorical(key, jnp.log(probability), shape=(num_draws, *probability.shape[:-1]))

    mean, scale = posterior.weight_mean, jnp.sqrt(posterior.weight_variance)
    return {
        **sites, "view_of_expert": classes(key_view, posterior.view_probability),
        "weight": mean + scale * jax.random.normal(key_weight, (num_draws, *mean.shape), mean.dtype),
        "cluster": jnp.swapaxes(classes(key_cluster, posterior.cluster_probability), 1, 2).astype(jnp.int8),
    }  # fmt: skip


def notes(data: Constraints, priors: Priors, *, experts: str = "two-coin", **options: Any) -> list[str]:
    """Say what the data leave to the prior, and what was never judged."""
    found = []
    silent = data.num_items - len(judged_items(data))
    if silent:
        found.append(f"{silent:,} of {data.num_items:,} items are in no pair; features alone tell their clusters")
    number = np.bincount(np.asarray(data.expert), minlength=data.num_experts)
    said = np.bincount(np.asarray(data.expert), np.asarray(data.together), data.num_experts)
    one_kind = int(((said == 0) | (said == number)).sum())
    if one_kind and experts in ("two-coin", "per-view"):
        found.append(
            f"{one_kind} of {data.num_experts} experts gave answers of one kind only, so that sensitivity or "
            "specificity is little more than the prior's"
        )
    few = int((number < _FEW_ANSWERS).sum())
    pull = _prior_in_words(expert_sites(experts)[0], data, priors)
    if few and pull:
        found.append(
            f"{few} of {data.num_experts} experts gave fewer than {_FEW_ANSWERS} answers, and the prior of "
            f"{'knowledge' if experts == 'spammer' else 'accuracies'} ({pull}) draws theirs to its mean"
        )
    constant = int((np.ptp(np.asarray(data.feature), axis=0) == 0).sum()) if data.num_features else 0
    if constant:
        found.append(f"{constant} of {data.num_features} features are constant and say nothing")
    return found


def _prior_in_words(site: str, data: Constraints, priors: Priors) -> str:
    """Return mean and weight of the prior of a site; nothing where it is no Beta distribution."""
    try:
        a, b = site_parameters(site, priors, data).mean(axis=0)
    except NotConjugate:
        return ""
    return f"mean {a / (a + b):.2f}, the weight of {a + b:.3g} answers"


def warnings(posterior: Any, data: Constraints, **options: Any) -> list[str]:
    """Say what only the outcome tells: restarts that do not agree, views that ran out, answers that told nothing."""
    if not isinstance(posterior, Posterior):
        return []
    found = []
    ranked = ranked_restarts(posterior)
    number, share = len(ranked["gap"]), float((ranked["gap"] < _WITHIN).mean())
    if number > 1 and share <= _FEW_RESTARTS:
        found.append(
            f"{round(share * number)} of {number} restarts came within {_WITHIN:.0f} nat of the best bound, so "
            "that a better one may exist: look at fit.restarts(), and give more restarts"
        )
    used = np.unique(np.asarray(posterior.view_probability).argmax(axis=1))
    most = np.shape(posterior.view_probability)[1]
    if len(used) == most and 1 < most < data.num_experts:
        found.append(f"all {most} views are used; there may be more of them: raise the option views")
    other = (ranked["gap"] < _CLOSE) & ~ranked["same_grouping"]
    if other.any():
        gap, views = ranked["gap"][other][0], np.unique(ranked["views"][other])
        others, come = ("1 restart", "comes") if other.sum() == 1 else (f"{other.sum()} restarts", "come")
        found.append(
            f"{others} with another grouping of the experts, in {' or '.join(map(str, views))} views, {come} as near "
            f"as {gap:.1f} nats to the best: which grouping is right is not as sure as the best restart alone says; "
            "look at fit.restarts(), and compare method='gibbs'"
        )
    probability = np.asarray(posterior.cluster_probability)[:, used]
    if probability.max(axis=-1).mean() < _TELLS_NOTHING / probability.shape[-1]:
        found.append(
            "the answers told nothing of the clusters: every item is as probably in each of them; give features that "
            "tell items apart, more answers, or method='gibbs'"
        )
        return found
    leading = probability.argmax(axis=-1)
    whole = used[(leading == leading[0]).all(axis=0)]
    if len(whole):
        where = f"view {whole[0]}" if len(whole) == 1 else f"views {', '.join(map(str, whole))}"
        found.append(
            f"in {where} every item is in one cluster, as experts who guess make it: coordinate ascent is then surer "
            "than it may be that items are together; compare method='gibbs'"
        )
    return found


MODEL = Model(
    name="expert-views",
    title="several clusterings of the same items, from experts who judge pairs, and from features",
    citation="""@inproceedings{chang2017multiple,
  title     = {Multiple Clustering Views from Multiple Uncertain Experts},
  author    = {Chang, Yale and Chen, Junxiang and Cho, Michael H. and Castaldi, Peter J. and Silverman, Edwin K. and
               Dy, Jennifer G.},
  booktitle = {Proceedings of the 34th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {70},
  pages     = {674--683},
  year      = {2017}
}""",
    data=Constraints,
    methods=("cavi", "gibbs", "nuts", "svi"),
    model=model,
    model_data=prepared,
    priors=Priors,
    prior_options={
        "concentration": ("of the sticks; the more, the more views (1)", lambda value: {"concentration": value}),
        "weight-scale": (
            "standard deviation of the weights, per standard deviation of a feature (1)",
            lambda value: {"weight_scale": value},
        ),
    },
    options=(
        Option(name="clusters", kind=int, default=REQUIRED, minimum=2.0, help="most clusters of a view"),
        Option(
            name="views", kind=int, default=0, minimum=0.0, help="most views; 0 stands for half as many as experts",
        ),
        Option(name="restarts", kind=int, default=20, minimum=1.0, help="of coordinate ascent; the best one is kept"),
        Option(
            name="responsibilities", kind=str, default="free", choices=("free", "tied"),
            help="probabilities of clusters in cavi: of each item by itself, or those of the mean weights, as in the "
            "authors' program",
        ),
        Option(
            name="bound", kind=str, default="tilted", choices=("tilted", "jensen"),
            help="of the expected log-sum-exp in cavi: a close one, or the paper's",
        ),
        Option(
            name="experts", kind=str, default="two-coin", choices=tuple(EXPERTS),
            help="how they err: in two ways, in one, in ways of each view, or by guessing what they do not know",
        ),
        Option(
            name="cluster", kind=str, default="exact", choices=FORMS,
            help="for nuts and svi, which cannot draw clusters: pair is another model, in which every answer draws the "
            "clusters of its items anew; enumerate sums over all clusters of a handful of items",
        ),
        Option(
            name="standardize", kind=int, default=1, choices=(0, 1),
            help="0 takes features as they stand, such as those with two values",
        ),
    ),
    posterior=Posterior,
    draw=draw,
    cavi=CAVI,
    gibbs=GIBBS,
    truth=truth,
    tables={
        "views": views, "experts": experts, "view_sizes": view_sizes, "same_view": same_view,
        "contradictions": contradictions, "questions": questions, "directions": directions, "restarts": restarts,
    },
    measures={
        "predict": "consilience.models.expert_views.prediction:predict",
        "together": "consilience.models.expert_views.truth:together",
        "partition": "consilience.models.expert_views.truth:partition",
        "partition_of_expert": "consilience.models.expert_views.truth:partition_of_expert",
        "num_views": "consilience.evaluation.views:num_views",
    },
    dims={
        "view_of_expert": ("expert",), "sensitivity": ("expert",), "specificity": ("expert",),
        "weight": ("view", "feature", "of_cluster"), "cluster": ("view", "judged_item"),
        "view_probability": ("expert", "view"),
    },
    simulate=simulate,
    canonical=canonical,
    summarised=label_free,
    notes=notes,
    warnings=warnings,
)  # fmt: skip
