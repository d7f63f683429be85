"""The joint-distribution test passes the sampler of clusterings in views, and finds any one bug planted."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.evaluation.calibration import rank_statistics, uniformity
from consilience.models.expert_views import MODEL, gibbs
from consilience.models.expert_views.likelihood import pairs_together, together_counts
from consilience.models.expert_views.priors import BetaPrior, Priors
from tests.models.mutants import PASSES, joint_tests, largest, replicated

# Priors that tell the sites apart, so that an exchange shows.
PRIORS = Priors(
    concentration=1.5, sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), knowledge=BetaPrior(2.0, 1.0),
    guess=BetaPrior(1.5, 2.5),
)  # fmt: skip
SIZES = {"num_experts": 4, "num_features": 2, "num_pairs": 10}


def own_link(weight, feature):
    """State a link that no matrix of weights is, with weights that are positive."""
    score = jnp.tanh(feature[:, :2] @ weight)
    return jnp.stack([score, -score, jnp.sin(feature[:, 1])], axis=-1)


OWN = Priors(
    sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), logits=own_link,
    weight=lambda data: dist.Gamma(jnp.array([2.0, 3.0]), 1.0).to_event(1),
)  # fmt: skip


@jax.jit
@jax.vmap
def more(state, problem):
    """Return what no product of two cells of the sites tells."""
    sites = gibbs.sites(state, problem)
    view, cluster = sites["view_of_expert"], sites["cluster"]
    share = jax.nn.softmax(gibbs._logits(state.position, problem)[:, 1])
    return {
        "same view": view[0] == view[1], "together": cluster[0, 0] == cluster[0, 1],
        "both accuracies": (sites["sensitivity"] * sites["specificity"]).sum(),
        "clusters given weights": jnp.take_along_axis(share, cluster[1][:, None].astype(int), axis=1).sum(),
    }


@functools.cache
def case_of(num_chains=4000, priors=PRIORS, experts="two-coin"):
    case = replicated(
        MODEL, priors, sizes=SIZES, num_chains=num_chains, sweeps=4, rounds=6, clusters=3, views=2, experts=experts
    )()
    return dataclasses.replace(case, quantities=lambda chains: {**case.quantities(chains), **more(*chains)})


def test_a_short_run_passes():
    assert largest(case_of(1000)) < PASSES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experts", "priors"),
    [("two-coin", PRIORS), ("symmetric", PRIORS), ("per-view", PRIORS), ("spammer", PRIORS), ("two-coin", OWN)],
    ids=["two-coin", "symmetric", "per-view", "spammer", "own link"],
)
def test_the_sampler_of_every_kind_passes(experts, priors):
    assert largest(case_of(10_000, priors, experts), seed=1) < PASSES


# ---- planted bugs ----


def wrong_sign_of_apart(right):
    """What an answer "apart" adds for a pair to be together."""

    def coupling(view_of_expert, answers, judged, views):
        return right(view_of_expert, answers._replace(miss=answers.rejection, rejection=answers.miss), judged, views)

    return coupling


def sites_exchanged(right):
    """Sensitivities for specificities."""

    def draw_betas(key, cells, stick_cells):
        experts, stick = right(key, cells, stick_cells)
        return experts[::-1], stick

    return draw_betas


def hits_for_misses(right):
    def conditional(counts, problem):
        prior = problem.prior[:, None]
        found = right(counts, problem) - prior
        return prior + found.at[:, :, 0].set(found[:, :, 0, ::-1])

    return conditional


def one_key(right):
    """Sensitivities and specificities are drawn with one key."""

    def draw_betas(key, cells, stick_cells):
        both, stick = right(key, cells, stick_cells)
        nothing = stick_cells[:0]
        return tuple(right(key, cells[:, [site]], nothing)[0][0] for site in range(len(both))), stick

    return draw_betas


def with_accuracies_of(choose):
    """Draw the accuracies once more, given the clusters that ``choose(key, view, state, problem)`` returns."""

    def wrong(right):
        def draw_experts(key, counts, state, problem):
            view, _, stick = right(key, counts, state, problem)
            chosen = choose(jax.random.fold_in(key, 1), view, state, problem)
            own = together_counts(pairs_together(chosen, problem.judged), problem.judged)
            cells = gibbs._own_cells(gibbs._conditional(own, problem), view, problem)
            experts, _ = gibbs._draw_betas(jax.random.fold_in(key, 2), cells, gibbs._stick_cells(view, problem))
            return view, experts, stick

        return draw_experts

    return gibbs, "_draw_experts", wrong


def drawn_anew(key, view, state, problem):
    """The clusters are drawn given the accuracies before, when accuracies were integrated out of the views."""
    logits = gibbs._logits(state.position, problem)
    pull = gibbs.coupling(view, gibbs._answering(state.experts, problem), problem.judged, problem.views)
    return gibbs.draw_clusters(jax.random.gumbel(key, logits.shape), state.cluster, logits, pull, problem.judged)


def all_items_at_once(right):
    """Neighbours are drawn together, each given the other as it was."""

    def draw_clusters(noise, cluster, logits, pull, judged):
        parts = [right(noise, cluster, logits, pull, judged._replace(colours=(one,))) for one in judged.colours]
        for colour, part in zip(judged.colours, parts, strict=True):
            cluster = cluster.at[colour.node].set(part[colour.node])
        return cluster

    return draw_clusters


def clusters_of_an_empty_view_kept(right):
    """The weights of a view without experts are drawn from the prior, but not its clusters with them."""

    def draw_views(key, noise, position, cluster, view, problem):
        return right(key, noise, position, cluster, view, problem)[0], cluster

    return draw_views


MUTANTS = {
    "wrong sign of apart": (gibbs, "coupling", wrong_sign_of_apart),
    "no one in the stick": (
        gibbs, "_stick_cells", lambda right: lambda view, problem: right(view, problem) - jnp.array([0.7, 0.0])
    ),
    "sites exchanged": (gibbs, "_draw_betas", sites_exchanged),
    "hits for misses": (gibbs, "_conditional", hits_for_misses),
    "one key": (gibbs, "_draw_betas", one_key),
    "clusters between view and accuracies": with_accuracies_of(drawn_anew),
    "clusters of the sweep before": with_accuracies_of(lambda key, view, state, problem: state.cluster),
    "no prior of weights": (gibbs.Link, "log_prior", lambda right: lambda link, position: 0.0 * position.sum()),
    "all items at once": (gibbs, "draw_clusters", all_items_at_once),
    "prior of views left out": (
        gibbs, "log_view_weight", lambda right: lambda stick, rest: 0 * right(stick, rest)
    ),
    "clusters of an empty view kept": (gibbs, "_draw_views", clusters_of_an_empty_view_kept),
}  # fmt: skip

test_the_sampler_passes, test_a_mutant_is_found = joint_tests(case_of, MUTANTS)


# ---- calibration ----


def label_free(state, problem):
    """Return what the mirror modes have in common."""
    sites = gibbs.sites(state, problem)
    view = sites["view_of_expert"]
    own = sites["cluster"][view]
    together = (own[:, :1] == own[:, 1:]).sum(axis=1)
    return jnp.concatenate([
        sites["sensitivity"], sites["specificity"], together, jnp.array([(view == view[0]).sum()]),
        gibbs.GIBBS.log_likelihood(state, problem)[None],
    ])  # fmt: skip


@pytest.mark.slow
def test_ranks_of_true_values_are_uniform():
    number, draws, thinning = 1000, 63, 12

    def posterior(key, problem):
        key_start, key_chain = jax.random.split(key)

        def next_draw(state, number):
            step = lambda index, state: gibbs.sweep(  # noqa: E731
                jax.random.fold_in(key_chain, number * thinning + index), state, problem
            )
            state = jax.lax.fori_loop(0, thinning, step, state)
            return state, label_free(state, problem)

        warm, _ = jax.lax.scan(next_draw, gibbs.start(key_start, problem), jnp.arange(1000, 1020))
        return jax.lax.scan(next_draw, warm, jnp.arange(draws))[1]

    state, problem = case_of(number).start(jax.random.key(3))
    true = jax.jit(jax.vmap(label_free))(state, problem)
    found = jax.jit(jax.vmap(posterior))(jax.random.split(jax.random.key(5), number), problem)
    ranks = rank_statistics(jax.random.key(4), np.asarray(true), np.asarray(found))
    assert uniformity(ranks, draws).smallest > 0.001
