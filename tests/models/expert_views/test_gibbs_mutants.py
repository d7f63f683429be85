"""The joint-distribution test passes the sampler of clusterings in views, and catches it with any one bug planted.

Every chain has a data set of its own, from parameters that the NumPyro model draws.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import handlers

from consilience.data.constraints import Constraints
from consilience.evaluation.calibration import (
    joint_distribution_test,
    rank_statistics,
    uniformity,
    with_second_moments,
)
from consilience.inference.generic import latent_values
from consilience.models.expert_views import MODEL, gibbs
from consilience.models.expert_views.likelihood import pairs_together, together_counts
from consilience.models.expert_views.model import density
from consilience.models.expert_views.priors import BetaPrior, Priors

NUM_CHAINS, SWEEPS, ROUNDS = 1000, 4, 6
# Priors that tell the sites apart, so that an exchange shows.
PRIORS = Priors(
    concentration=1.5, sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), knowledge=BetaPrior(2.0, 1.0),
    guess=BetaPrior(1.5, 2.5),
)  # fmt: skip
NUM_ITEMS, NUM_EXPERTS, NUM_PAIRS = 8, 4, 10


def layout():
    """Return who judges which pairs; the answers are drawn."""
    random = np.random.default_rng(0)
    first, second = np.triu_indices(NUM_ITEMS, 1)
    pair = np.concatenate([random.choice(len(first), NUM_PAIRS, replace=False) for _ in range(NUM_EXPERTS)])
    expert = np.repeat(np.arange(NUM_EXPERTS, dtype=np.int32), NUM_PAIRS)
    return Constraints(
        expert=expert, item_a=first[pair].astype(np.int32), item_b=second[pair].astype(np.int32),
        together=np.ones(len(pair), np.int32), feature=random.standard_normal((NUM_ITEMS, 2)),
        num_constraints=len(pair), num_experts=NUM_EXPERTS, num_items=NUM_ITEMS, num_features=2,
    )  # fmt: skip


DATA = layout()


def quantities(state, problem):
    """Return functions of the parameters and data of a chain, also such as depend on the names of views."""
    sites = gibbs.sites(state, problem)
    view, cluster = sites["view_of_expert"], sites["cluster"]
    weight = sites["weight"].reshape(problem.views, -1)
    share = jax.nn.softmax(gibbs._logits(state.position, problem)[:, 1])
    sensitivity, specificity = sites["sensitivity"], sites["specificity"]
    if sensitivity.ndim == 2:
        sensitivity, specificity = sensitivity[:, 0], specificity[:, 1]
    return {
        "stick": sites["stick"][0], "experts of the first view": (view == 0).sum(), "same view": view[0] == view[1],
        "sensitivity 0": sensitivity[0], "sensitivity 1": sensitivity[1], "specificity 0": specificity[0],
        "specificity 2": specificity[2], "together": cluster[0, 0] == cluster[0, 1],
        "first cluster": (cluster[1] == 0).sum(), "weight": weight[0, 0], "length of weights": (weight[1] ** 2).sum(),
        "clusters given weights": jnp.take_along_axis(share, cluster[1][:, None].astype(int), axis=1).sum(),
        "log likelihood": gibbs.GIBBS.log_likelihood(state, problem),
    }  # fmt: skip


def resolved_of(priors, experts):
    return MODEL.resolve(DATA, priors, {"clusters": 3, "views": 2, "experts": experts})


def start_at_the_prior(key, template, resolved):
    """Return state and problem of a chain: sites by the NumPyro model, answers by the sampler's redraw."""
    key_values, key_data = jax.random.split(key)
    values = latent_values(handlers.trace(handlers.seed(density, key_values)).get_trace(resolved))
    return gibbs.redraw(key_data, gibbs.at(values, resolved, template), template)


@functools.cache
def programs(experts, priors):
    """Return what no planted bug touches: the start, new data, and the functions."""
    resolved = resolved_of(priors, experts)
    template = gibbs.prepare(resolved)
    begin = jax.vmap(lambda key: start_at_the_prior(key, template, resolved))
    return jax.jit(begin), jax.jit(jax.vmap(gibbs.redraw)), jax.jit(jax.vmap(quantities))


def joint_test(seed, *, experts="two-coin", priors=PRIORS, num_chains=NUM_CHAINS):
    """Run the test on the sampler as it stands."""
    begin, redraw, look = programs(experts, priors)

    @jax.jit
    @jax.vmap
    def move(key, state, problem):
        step = lambda number, state: gibbs.sweep(jax.random.fold_in(key, number), state, problem)  # noqa: E731
        return jax.lax.fori_loop(0, SWEEPS, step, state)

    def functions(state, problem):
        return with_second_moments({name: np.asarray(v, float) for name, v in look(state, problem).items()})

    return joint_distribution_test(
        jax.random.key(seed),
        lambda key: begin(jax.random.split(key, num_chains)),
        lambda key, state, problem: move(jax.random.split(key, num_chains), state, problem),
        lambda key, state, problem: redraw(jax.random.split(key, num_chains), state, problem),
        functions, rounds=ROUNDS,
    )  # fmt: skip


def own_link(weight, feature):
    """State a link that no matrix of weights is, with weights that are positive."""
    score = jnp.tanh(feature[:, :2] @ weight)
    return jnp.stack([score, -score, jnp.sin(feature[:, 1])], axis=-1)


OWN = Priors(
    sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), logits=own_link,
    weight=lambda data: dist.Gamma(jnp.array([2.0, 3.0]), 1.0).to_event(1),
)  # fmt: skip


def test_the_sampler_passes():
    assert joint_test(0).largest < 4.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experts", "priors"),
    [("two-coin", PRIORS), ("symmetric", PRIORS), ("per-view", PRIORS), ("spammer", PRIORS), ("two-coin", OWN)],
    ids=["two-coin", "symmetric", "per-view", "spammer", "own link"],
)
def test_the_sampler_of_every_kind_passes(experts, priors):
    assert joint_test(1, experts=experts, priors=priors, num_chains=10_000).largest < 4.5


# ---- planted bugs ----


def wrong_sign_of_apart(patch):
    """What an answer "apart" adds for a pair to be together."""
    right = gibbs.coupling

    def wrong(view_of_expert, answers, judged, views):
        answers = answers._replace(miss=answers.rejection, rejection=answers.miss)
        return right(view_of_expert, answers, judged, views)

    patch.setattr(gibbs, "coupling", wrong)


def no_one_in_the_stick(patch):
    right = gibbs._stick_cells
    patch.setattr(gibbs, "_stick_cells", lambda view, problem: right(view, problem) - jnp.array([0.7, 0.0]))


def sites_exchanged(patch):
    """Sensitivities for specificities."""
    right = gibbs._draw_betas

    def wrong(key, cells, stick_cells):
        experts, stick = right(key, cells, stick_cells)
        return experts[::-1], stick

    patch.setattr(gibbs, "_draw_betas", wrong)


def hits_for_misses(patch):
    right = gibbs._conditional

    def wrong(counts, problem):
        prior = problem.prior[:, None]
        found = right(counts, problem) - prior
        return prior + found.at[:, :, 0].set(found[:, :, 0, ::-1])

    patch.setattr(gibbs, "_conditional", wrong)


def one_key(patch):
    """Sensitivities and specificities are drawn with one key."""
    right = gibbs._draw_betas

    def wrong(key, cells, stick_cells):
        both, stick = right(key, cells, stick_cells)
        nothing = stick_cells[:0]
        return tuple(right(key, cells[:, [site]], nothing)[0][0] for site in range(len(both))), stick

    patch.setattr(gibbs, "_draw_betas", wrong)


def clusters_between_view_and_accuracies(patch):
    """The clusters are drawn anew, given the accuracies before, when accuracies were integrated out of the views."""
    right = gibbs._draw_experts

    def wrong(key, counts, state, problem):
        view, _, stick = right(key, counts, state, problem)
        logits = gibbs._logits(state.position, problem)
        noise = jax.random.gumbel(jax.random.fold_in(key, 1), logits.shape)
        pull = gibbs.coupling(view, gibbs._answering(state.experts, problem), problem.judged, problem.views)
        cluster = gibbs.draw_clusters(noise, state.cluster, logits, pull, problem.judged)
        fresh = together_counts(pairs_together(cluster, problem.judged), problem.judged)
        cells = gibbs._own_cells(gibbs._conditional(fresh, problem), view, problem)
        experts, _ = gibbs._draw_betas(jax.random.fold_in(key, 2), cells, gibbs._stick_cells(view, problem))
        return view, experts, stick

    patch.setattr(gibbs, "_draw_experts", wrong)


def stale_clusters(patch):
    """The accuracies are those of the clusters of the sweep before."""
    right = gibbs._draw_experts

    def wrong(key, counts, state, problem):
        before = together_counts(pairs_together(state.cluster, problem.judged), problem.judged)
        view, _, stick = right(key, counts, state, problem)
        cells = gibbs._own_cells(gibbs._conditional(before, problem), view, problem)
        experts, _ = gibbs._draw_betas(jax.random.fold_in(key, 2), cells, gibbs._stick_cells(view, problem))
        return view, experts, stick

    patch.setattr(gibbs, "_draw_experts", wrong)


def no_prior_of_weights(patch):
    patch.setattr(gibbs.Link, "log_prior", lambda link, position: 0.0 * position.sum())


def all_items_at_once(patch):
    """Neighbours are drawn together, each given the other as it was."""
    right = gibbs.draw_clusters

    def wrong(noise, cluster, logits, pull, judged):
        parts = [right(noise, cluster, logits, pull, judged._replace(colours=(one,))) for one in judged.colours]
        for colour, part in zip(judged.colours, parts, strict=True):
            cluster = cluster.at[colour.node].set(part[colour.node])
        return cluster

    patch.setattr(gibbs, "draw_clusters", wrong)


def prior_of_views_left_out(patch):
    right = gibbs.log_view_weight
    patch.setattr(gibbs, "log_view_weight", lambda stick, rest: 0 * right(stick, rest))


def clusters_of_an_empty_view_kept(patch):
    """The weights of a view without experts are drawn from the prior, but not its clusters with them."""
    right = gibbs._draw_views
    patch.setattr(
        gibbs, "_draw_views",
        lambda key, noise, position, cluster, view, problem: (
            right(key, noise, position, cluster, view, problem)[0], cluster
        ),
    )  # fmt: skip


BUGS = [
    wrong_sign_of_apart, no_one_in_the_stick, sites_exchanged, hits_for_misses, one_key,
    clusters_between_view_and_accuracies, stale_clusters, no_prior_of_weights, all_items_at_once,
    prior_of_views_left_out, clusters_of_an_empty_view_kept,
]  # fmt: skip


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS],
    ids=lambda bug: bug.__name__,
)  # fmt: skip
def test_a_bug_fails(bug, monkeypatch):
    bug(monkeypatch)
    # One bug is found with few chains, in the quick suite.
    assert joint_test(0, num_chains=NUM_CHAINS if bug is wrong_sign_of_apart else 4 * NUM_CHAINS).largest > 7


# ---- calibration ----


@pytest.mark.slow
def test_ranks_of_true_values_are_uniform():
    resolved, draws, thinning = resolved_of(PRIORS, "two-coin"), 63, 12
    template = gibbs.prepare(resolved)

    def one(key):
        key_true, key_start, key_chain = jax.random.split(key, 3)
        true, problem = start_at_the_prior(key_true, template, resolved)

        def next_draw(state, number):
            step = lambda index, state: gibbs.sweep(  # noqa: E731
                jax.random.fold_in(key_chain, number * thinning + index), state, problem
            )
            state = jax.lax.fori_loop(0, thinning, step, state)
            return state, free(state, problem)

        def free(state, problem):
            """Return what the mirror modes have in common."""
            sites = gibbs.sites(state, problem)
            view = sites["view_of_expert"]
            own = sites["cluster"][view]
            together = (own[:, :1] == own[:, 1:]).sum(axis=1)
            return jnp.concatenate([
                sites["sensitivity"], sites["specificity"], together, jnp.array([(view == view[0]).sum()]),
                gibbs.GIBBS.log_likelihood(state, problem)[None],
            ])  # fmt: skip

        begun = gibbs.start(key_start, problem)
        warm, _ = jax.lax.scan(next_draw, begun, jnp.arange(1000, 1020))
        return free(true, problem), jax.lax.scan(next_draw, warm, jnp.arange(draws))[1]

    true, found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), 1000))
    ranks = rank_statistics(jax.random.key(4), np.asarray(true), np.asarray(found))
    assert uniformity(ranks, draws).smallest > 0.001
