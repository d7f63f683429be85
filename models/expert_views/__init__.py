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
| `settings`, `priors` | kinds of experts; what a researcher swaps; the link |
| `judgements`, `likelihood` | answers as tables; their probability |
| `model` | the NumPyro function, and what becomes of its discrete sites |
| `gibbs`, `links`, `loops` | the tempered sampler, the default |
| `problem`, `updates`, `bound`, `warmup`, `cavi`, `posterior` | coordinate ascent with restarts |
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

from collections.abc import Iterator

import numpy as np
import numpyro.distributions as dist

from consilience.data.constraints import Constraints
from consilience.errors import NotConjugate
from consilience.models.expert_views.canonical import canonical, label_free
from consilience.models.expert_views.cavi import CAVI
from consilience.models.expert_views.evidence import GIBBS
from consilience.models.expert_views.judgements import judged_items
from consilience.models.expert_views.likelihood import SWAPPED, answer_table
from consilience.models.expert_views.model import arranged, check_gradients, density
from consilience.models.expert_views.priors import PAPER_PRIORS, BetaPrior, Priors
from consilience.models.expert_views.settings import Settings
from consilience.models.expert_views.simulation import draw_data
from consilience.models.expert_views.tables import TABLES, restarts
from consilience.models.expert_views.truth import truth
from consilience.models.interface import Account, Generic, Measure, Model, Simulation
from consilience.models.posterior import Posterior
from consilience.models.sites import Resolved, Site, Sites
from consilience.models.truth.views import ladders_apart
from consilience.notes import Level, Note, Remedy

__all__ = ["MODEL", "PAPER_PRIORS", "BetaPrior", "Priors", "Settings", "model", "simulate"]

_FEW_ANSWERS = 50
_FEW_TRIPS = 10
_AGREE = 0.15    # How far ladders that agree may differ.
_WITHIN = 1.0
_FEW_RESTARTS = 0.1
_SAMPLER = Remedy("method", "gibbs")
_TELLS_NOTHING = 1.05    # The mean of the largest probability of an item's clusters, times their number.
_CLOSE = 3.0    # Nats within which another grouping is worth a word: a twentieth of the best one's probability.


def says(account: Account) -> Iterator[Note]:
    """Say what is wrong with the outcome, what the data leave to the prior, and what was never judged."""
    if account.posterior.form == "closed":
        for text, *remedies in _wrong(account.posterior, account.resolved.data):
            yield Note(Level.error, text, tuple(remedies))
        text = (
            "the number of views, who shares one and the accuracies are of one optimum: how probable other groupings "
            "of the experts are, and how much wider intervals, {method} says"
        )
        yield Note(Level.note, text, (_SAMPLER,))
    trips = account.posterior.hidden.get("ladder_trips", ())
    if len(trips) and account.resolved.settings.rungs != 1 and sum(trips) < _FEW_TRIPS:
        # Of a grouping that is sure few ladders make round trips: that starts of their own agree says more.
        apart = ladders_apart(account.posterior.value("view_of_expert"), len(trips))
        if apart > _AGREE:
            known = f", and ladders differ by {apart:.2f} on who shares a view" if np.isfinite(apart) else ""
            text = (
                f"the tempered chains exchanged {int(sum(trips))} times between free and full answers{known}; "
                "groupings may be incomplete: give more sweeps by {draws}"
            )
            yield Note(Level.note, text, (Remedy("draws"),))
    for text in _left_to_priors(account):
        yield Note(Level.note, text)


def _left_to_priors(account: Account) -> Iterator[str]:
    data, experts = account.resolved.data, account.resolved.settings.experts
    silent = data.num_items - len(judged_items(data))
    if silent:
        yield f"{silent:,} of {data.num_items:,} items are in no pair; features alone tell their clusters"
    number = np.bincount(np.asarray(data.expert), minlength=data.num_experts)
    said = np.unique(np.stack([data.expert, data.together]), axis=1)[0]
    one_kind = int((np.bincount(said, minlength=data.num_experts) <= 1).sum())
    if one_kind and experts in ("two-coin", "per-view"):
        yield (
            f"{one_kind} of {data.num_experts} experts gave answers of one kind only, so that sensitivity or "
            "specificity is little more than the prior's"
        )
    few = int((number < _FEW_ANSWERS).sum())
    pull = _prior_in_words(answer_table(account.resolved).sites[0], account.resolved)
    if few and pull:
        yield (
            f"{few} of {data.num_experts} experts gave fewer than {_FEW_ANSWERS} answers, and the prior of "
            f"{'knowledge' if experts == 'spammer' else 'accuracies'} ({pull}) draws theirs to its mean"
        )
    constant = int((np.ptp(np.asarray(data.feature), axis=0) == 0).sum()) if data.num_features else 0
    if constant:
        yield f"{constant} of {data.num_features} features are constant and say nothing"


def _prior_in_words(site: str, resolved: Resolved) -> str:
    """Return mean and weight of the prior of a site; nothing where it is not known, or no Beta distribution."""
    if resolved.given is None:
        return ""
    try:
        weight = resolved.concentration(site).mean(axis=0)
    except NotConjugate:
        return ""
    mean = "" if site.startswith("answers") else f"mean {weight[0] / weight.sum():.2f}, "
    return f"{mean}the weight of {weight.sum():.3g} answers"


def _wrong(posterior: Posterior, data: Constraints) -> Iterator[tuple[str, *tuple[Remedy, ...]]]:
    """Say what only the outcome tells: restarts that do not agree, views that ran out, answers that told nothing."""
    ranked = restarts(posterior)
    number, share = len(ranked["gap"]), float((ranked["gap"] < _WITHIN).mean())
    if number > 1 and share <= _FEW_RESTARTS:
        yield (
            f"{round(share * number)} of {number} restarts came within {_WITHIN:.0f} nat of the best bound, so "
            "that a better one may exist: look at fit.restarts(), and give more restarts",
        )
    used = np.unique(np.asarray(posterior.view_probability).argmax(axis=1))
    most = np.shape(posterior.view_probability)[1]
    if len(used) == most and 1 < most < data.num_experts:
        yield f"all {most} views are used; there may be more of them: raise {{views}}", Remedy("views")
    other = (ranked["gap"] < _CLOSE) & ~ranked["same_grouping"]
    if other.any():
        gap, views = ranked["gap"][other][0], np.unique(ranked["views"][other])
        others, come = ("1 restart", "comes") if other.sum() == 1 else (f"{other.sum()} restarts", "come")
        yield (
            f"{others} with another grouping of the experts, in {' or '.join(map(str, views))} views, {come} as near "
            f"as {gap:.1f} nats to the best: which grouping is right is not as sure as the best restart alone says; "
            "look at fit.restarts(), and compare {method}", _SAMPLER,
        )  # fmt: skip
    probability = np.asarray(posterior.cluster_probability)[:, used]
    if probability.max(axis=-1).mean() < _TELLS_NOTHING / probability.shape[-1]:
        yield (
            "the answers told nothing of the clusters: every item is as probably in each of them; give features that "
            "tell items apart, more answers, or {method}", _SAMPLER,
        )  # fmt: skip
        return
    leading = probability.argmax(axis=-1)
    whole = used[(leading == leading[0]).all(axis=0)]
    if len(whole):
        where = f"view {whole[0]}" if len(whole) == 1 else f"views {', '.join(map(str, whole))}"
        yield (
            f"in {where} every item is in one cluster, as experts who guess make it: coordinate ascent is then surer "
            "than it may be that items are together; compare {method}", _SAMPLER,
        )  # fmt: skip


def _used_sites(resolved: Resolved) -> list[Site]:
    """Return the sites with priors that experts of this kind, and their answers, have."""
    return [resolved.sites[name] for name in (*answer_table(resolved).sites, "weight")]


MODEL = Model(
    name="expert-views",
    title="several clusterings of the same items, from experts who judge pairs, and from features where given",
    paper="""@inproceedings{chang2017multiple,
  title     = {Multiple Clustering Views from Multiple Uncertain Experts},
  author    = {Chang, Yale and Chen, Junxiang and Cho, Michael H. and Castaldi, Peter J. and Silverman, Edwin K. and
               Dy, Jennifer G.},
  booktitle = {Proceedings of the 34th International Conference on Machine Learning},
  series    = {Proceedings of Machine Learning Research},
  volume    = {70},
  pages     = {674--683},
  year      = {2017}
}""",
    takes=(Constraints,),
    settings=Settings,
    priors=Priors,
    sites=Sites(
        *(
            Site(site + end, plates=("expert",), family=dist.Beta, prior_plates=("expert",), prior=site)
            for end, sites in (("", ("sensitivity", "specificity", "knowledge", "guess")),
                               (SWAPPED, ("sensitivity", "specificity"))) for site in sites
        ),
        *(
            Site(
                site + end, plates=("expert",), event=("answer",), family=dist.Dirichlet, prior_plates=("expert",),
                prior=site,
            )
            for site in ("answers_together", "answers_apart") for end in ("", SWAPPED)
        ),
        Site("weight", plates=("view",), event=("feature", "of_cluster"), family=dist.Normal),
        Site("view_of_expert", plates=("expert",)),
        Site("cluster", plates=("view", "judged_item")),
        Site("view_probability", plates=("expert", "view")),
        Site("log_likelihood"),
        canonical=canonical,
        summarised=label_free,
        used=_used_sites,
    ),
    density=density,
    engines=(GIBBS, CAVI, *(Generic(name=name, prepare=arranged, check=check_gradients) for name in ("nuts", "svi"))),
    truth=truth,
    tables=(
        *TABLES,
        Measure(
            name="predict", help="Predict the clusters of items that the fit has not seen.",
            place="consilience.models.expert_views.prediction:predict",
        ),
        Measure(
            name="together", help="How probably two items are together, in a view or in that of an expert.",
            place="consilience.models.expert_views.truth:together",
        ),
        Measure(
            name="partition", help="The partition of the items in one view.",
            place="consilience.models.expert_views.truth:partition",
        ),
        Measure(
            name="partition_of_expert", help="The partition of the items that an expert has in mind.",
            place="consilience.models.expert_views.truth:partition_of_expert",
        ),
        Measure(
            name="num_views", help="How many views have an expert, with an interval.",
            place="consilience.evaluation.views:num_views",
        ),
    ),
    says=says,
    simulation=Simulation(
        draw=draw_data, empty=Constraints.empty,
        sizes={"num_items": 100, "num_experts": 6, "num_features": 3, "num_pairs": 60, "num_grades": 2, "num_blanks": 0,
               "num_orders": 1},
    ),
)  # fmt: skip
model, simulate = MODEL.model, MODEL.simulate
