"""Clusterings in several views as a NumPyro model, with what becomes of the discrete sites: drawn, or summed out.

Clusters cannot be summed out in general, since judgements tie the items together. So there are three forms:

* ``exact`` has them as discrete sites, which NUTS alone cannot draw. The member's Gibbs sampler does; so does NumPyro's
  ``DiscreteHMCGibbs(NUTS(density), modified=True)``, run on ``arranged(resolved)``, also for accuracies with a
  hierarchical prior.
* ``enumerate`` is the same posterior with all clusters and views of all items and experts summed out: for a handful
  of items.
* ``pair`` is **another model**: every judgement draws the clusters of its two items anew. NUTS and SVI can take it, and
  its cost is that of the judgements; it is too unsure of the clusters of items that were judged often, and too sure of
  the weights.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from consilience.arrays import Array, Float, Int
from consilience.errors import TooLarge, UnsupportedRequest
from consilience.models.expert_views import likelihood
from consilience.models.expert_views.judgements import Judgements, judgements
from consilience.models.expert_views.likelihood import Answering
from consilience.models.expert_views.priors import Priors, check_logits, link_of, weight_prior
from consilience.models.expert_views.settings import check_clusters
from consilience.models.sites import Resolved
from consilience.notes import Remedy

_MOST_CONFIGURATIONS = 100_000


def check_gradients(resolved: Resolved) -> None:
    """Refuse a density with discrete sites for methods that follow gradients.

    Raises
    ------
    UnsupportedRequest : the clusters are to be drawn.
    """
    if resolved.settings.cluster == "exact":
        raise UnsupportedRequest(
            "nuts and svi cannot draw the clusters, which judgements tie together; take {method} for this model, "
            "with Beta priors of the experts, or {cluster} for another one, in which every judgement draws the "
            "clusters of its items anew ({cluster} sums over all clusters of a handful of items)",
            Remedy("method", "gibbs"), Remedy("cluster", "pair"), Remedy("cluster", "enumerate"),
        )  # fmt: skip


def arranged(resolved: Resolved) -> Resolved:
    """Return what the density reads inside of a compiled program, with `Judgements` in the place of the data.

    Raises
    ------
    UnsupportedRequest : there are more clusters than judged items, or the data are inside of a compiled program.
    """
    data, chosen = resolved.data, resolved.settings
    if isinstance(data, Judgements):
        return resolved
    if isinstance(data.expert, jax.core.Tracer):
        raise UnsupportedRequest(
            "judgements cannot be arranged in a compiled program; pass arranged(resolved) into it"
        )
    found = judgements(data, bool(chosen.standardize))[0]
    check_clusters(chosen.clusters, len(found.item))
    return resolved.replace(data=found)


def density(resolved: Resolved) -> None:
    """State the joint density of views, clusters, experts and answers.

    Sites are ``stick`` ``(view - 1,)``, where there are views to choose from; ``sensitivity`` and ``specificity``
    ``(expert,)``, by view ``(expert, view)``, and what else they follow from (`likelihood`); and ``weight``
    ``(view, …)``. With the discrete sites, ``view_of_expert`` ``(expert,)`` and ``cluster`` ``(view, judged)``, of the
    items that some expert judged; without, ``view_probability`` ``(expert, view)`` given all other sites.

    Raises
    ------
    TooLarge : too many configurations to enumerate.
    """
    resolved = arranged(resolved)
    judged, form, views = resolved.data, resolved.settings.cluster, resolved.size("view")
    log_weight = _sample_view_weight(resolved.given, views)
    answers = _sample_experts(resolved, views)
    of_view = weight_prior(resolved, judged.feature.shape[1])
    weight = numpyro.sample("weight", of_view.expand((views,)).to_event(1))
    logits = _logits(resolved.given, weight, judged)
    check_logits(logits.shape[1:], (len(judged.item), resolved.settings.clusters))
    if form == "exact":
        with numpyro.plate("expert", judged.num_experts):
            view_of_expert = numpyro.sample("view_of_expert", dist.Categorical(logits=log_weight))
        with numpyro.plate("view", views, dim=-2), numpyro.plate("item", len(judged.item), dim=-1):
            chosen = numpyro.sample("cluster", dist.Categorical(logits=logits))
        numpyro.factor("answer", _answer_density(chosen, view_of_expert, answers, judged))
        return
    summed = _log_enumerated if form == "enumerate" else _log_pairwise
    total, probability = summed(log_weight, answers, logits, judged)
    numpyro.factor("answer", total)
    numpyro.deterministic("view_probability", probability)


def _sample_view_weight(priors: Priors, views: int) -> Float[Array, " view"]:
    """Return the log prior probability of each view; of a single one there is nothing to sample."""
    if views == 1:
        return jnp.zeros(1)
    prior = dist.Beta(1.0, jnp.asarray(priors.concentration, jnp.result_type(float)))
    stick = numpyro.sample("stick", prior.expand((views - 1,)).to_event(1))
    return likelihood.log_view_weight(jnp.log(stick), jnp.log1p(-stick))


def _sample_experts(resolved: Resolved, views: int) -> Answering:
    sites, by_view, num_experts = {}, resolved.settings.experts == "per-view", resolved.data.num_experts
    for site in likelihood.answer_table(resolved).sites:
        prior = resolved.prior(site)
        if by_view and prior.batch_shape:
            prior = _for_each_view(prior)
        shape = (num_experts, views) if by_view else (num_experts,)
        sites[site] = numpyro.sample(site, prior.expand(shape).to_event(len(shape)))
    answers = likelihood.answering(sites, resolved)
    for site, value in likelihood.accuracies(answers, resolved.data.scale).items():
        if site not in sites:
            numpyro.deterministic(site, value if by_view else value[:, 0])
    return answers


def _for_each_view(prior: dist.Distribution) -> dist.Distribution:
    """Return a prior per expert with a new axis for the views, after that of the experts."""
    parameters = {name: jnp.asarray(getattr(prior, name))[:, None] for name in type(prior).arg_constraints}
    return type(prior)(**parameters)


def _logits(given: Priors | None, weight: Array, judged: Judgements) -> Float[Array, "view item cluster"]:
    link = link_of(given)
    feature = jnp.asarray(judged.feature, jnp.result_type(float))
    return jax.vmap(link, (0, None))(weight, feature)


def _answer_density(
    cluster: Int[Array, "view item"], view_of_expert: Int[Array, " expert"], answers: Answering, judged: Judgements
) -> Float[Array, ""]:
    """Return the log probability of the answers, answer by answer."""
    expert, pair = judged.answer_expert, judged.answer_pair
    view = view_of_expert[expert]
    same = cluster[view, judged.first[pair]] == cluster[view, judged.second[pair]]
    apart, together = (likelihood.own_view(part, view_of_expert)[expert] for part in answers)
    return (judged.said * jnp.where(same[:, None], together, apart)).sum()


def _log_pairwise(
    log_weight: Float[Array, " view"], answers: Answering, logits: Float[Array, "view item cluster"],
    judged: Judgements,
) -> tuple[Float[Array, ""], Float[Array, "expert view"]]:  # fmt: skip
    """Return the log density of the answers under the pair likelihood, and the probability of each view."""
    share = jax.nn.softmax(logits)
    same = jnp.einsum("vpk,vpk->pv", share[:, judged.first], share[:, judged.second])[judged.answer_pair]
    apart, together = (jnp.exp(part)[judged.answer_expert] for part in answers)  # (answer, view or 1, kind)
    probability = same[..., None] * together + (1 - same[..., None]) * apart
    # Rounding may leave nothing of a probability that is all but zero.
    of_answer = judged.said[:, None] * jnp.log(jnp.maximum(probability, jnp.finfo(same.dtype).tiny))
    of_answer = of_answer.sum(axis=-1)
    number = judged.num_experts
    score = log_weight + jax.ops.segment_sum(of_answer, judged.answer_expert, number, indices_are_sorted=True)
    return jax.nn.logsumexp(score, axis=1).sum(), jax.nn.softmax(score, axis=1)


def _log_enumerated(
    log_weight: Float[Array, " view"], answers: Answering, logits: Float[Array, "view item cluster"],
    judged: Judgements,
) -> tuple[Float[Array, ""], Float[Array, "expert view"]]:  # fmt: skip
    """Return the log density of the answers, clusters and views summed out, and the probability of each view.

    The clusters of a view are summed for every set of experts that may judge in it, and then the views of all experts.
    """
    (views, num_items, num_clusters), num_experts = logits.shape, judged.num_experts
    if max(num_clusters**num_items * 2**num_experts, views**num_experts) > _MOST_CONFIGURATIONS:
        raise TooLarge(
            f"{num_items} judged items in {num_clusters} clusters, and {num_experts} experts in {views} views, have "
            f"too many configurations to sum over; {{cluster}} takes {_MOST_CONFIGURATIONS:,}",
            Remedy("cluster", "enumerate"),
        )
    state, subset, choice = (
        np.array(list(itertools.product(range(number), repeat=length)))
        for number, length in ((num_clusters, num_items), (2, num_experts), (views, num_experts))
    )
    log_share = jax.nn.log_softmax(logits)
    prior = log_share[:, np.arange(num_items), state].sum(axis=-1)  # (view, state)
    of_state = jnp.asarray(state.T)  # each state as a view
    same = (of_state[judged.first] == of_state[judged.second])[judged.answer_pair]
    said = same[..., None] * jnp.asarray(judged.said, log_share.dtype)[:, None]
    counts = jax.ops.segment_sum(said, judged.answer_expert, num_experts, indices_are_sorted=True)

    def of_view(*own: Array) -> Float[Array, "expert state"]:
        return likelihood.log_likelihood(counts, Answering(*(part[:, None] for part in own)), judged.number)

    fit = jax.vmap(of_view, in_axes=1)(*answers)  # (view or 1, expert, state)
    evidence = jax.nn.logsumexp(prior[:, None] + jnp.einsum("se,vez->vsz", subset, fit), axis=-1)  # (view, subset)
    place = (choice[:, None] == np.arange(views)[:, None]) @ 2 ** np.arange(num_experts)[::-1]  # (choice, view)
    log_choice = log_weight[choice].sum(axis=1) + evidence[np.arange(views), place].sum(axis=1)
    own = choice[..., None] == np.arange(views)
    return jax.nn.logsumexp(log_choice), jnp.einsum("c,cev->ev", jax.nn.softmax(log_choice), own)
