"""The joint-distribution test passes the sampler of clusterings in views, and finds any one bug planted.

Thousands of chains are rungs of one exponent, each with answers of its own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.evaluation.calibration import joint_distribution_test, with_second_moments
from consilience.models.expert_views import MODEL, gibbs, likelihood, links, loops
from consilience.models.expert_views.priors import BetaPrior, Priors
from tests.models.mutants import FOUND, PASSES, planted

# Priors that tell the sites apart, so that an exchange shows.
PRIORS = Priors(
    concentration=1.5, sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), knowledge=BetaPrior(2.0, 1.0),
    guess=BetaPrior(1.5, 2.5),
)  # fmt: skip
SIZES = {"num_items": 8, "num_experts": 4, "num_features": 2, "num_pairs": 10}


def own_link(weight, feature):
    """State a link that no matrix of weights is, with weights that are positive."""
    score = jnp.tanh(feature[:, :2] @ weight)
    return jnp.stack([score, -score, jnp.sin(feature[:, 1])], axis=-1)


OWN = Priors(
    sensitivity=BetaPrior(4.0, 1.0), specificity=BetaPrior(2.0, 1.5), logits=own_link,
    weight=lambda data: dist.Gamma(jnp.array([2.0, 3.0]), 1.0).to_event(1),
)  # fmt: skip


def quantities(state, problem):
    """Return scalars of each chain, and what no product of two of them tells."""
    answers, view, cluster = gibbs._answering(state.experts, problem), state.view_of_expert, state.cluster
    logits = problem.link.logits(state.weight)[:, 1]
    share = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    found = {
        "hit": np.exp(answers.together[:, 0, 0, 1]), "hit of another": np.exp(answers.together[:, 3, -1, 1]),
        "rejection": np.exp(answers.apart[:, 0, 0, 0]), "last answer": np.exp(answers.apart[:, 1, 0, -1]),
        "stick": np.exp(state.stick[:, 0, 0]),
        "view": view[:, 0] == 0, "another view": view[:, 2] == 0, "cluster": cluster[:, 0, 0] == 0,
        "another cluster": cluster[:, 1, 3] == 2, "log likelihood": state.log_likelihood,
        "weight": state.weight.reshape(len(view), -1)[:, 0], "last weight": state.weight.reshape(len(view), -1)[:, -1],
    }  # fmt: skip
    found = with_second_moments({name: np.asarray(values, float) for name, values in found.items()})
    return found | {
        "same view": 1.0 * (view[:, 0] == view[:, 1]), "together": 1.0 * (cluster[:, 0, 0] == cluster[:, 0, 1]),
        "both accuracies": np.exp(answers.together[..., 1] + answers.apart[..., 0]).sum(axis=(1, 2)),
        "clusters given weights": np.take_along_axis(share, cluster[:, 1, None].astype(int), axis=1).sum(axis=(1, 2)),
    }  # fmt: skip


def largest(num_chains, priors=PRIORS, experts="two-coin", *, seed=0, rounds=6, sweeps=4, mutant=None, **kind):
    """Return the largest |z|; a mutant is planted in sweeps alone."""
    data, _ = MODEL.simulate(jax.random.key(0), priors, **SIZES, **kind, clusters=3, views=2, experts=experts)
    template = gibbs.prepare(MODEL.resolve(data, priors, {"clusters": 3, "views": 2, "experts": experts}))
    assert len(template.judged.said[0]) == np.asarray(data.expert).size  # one answer a pair, as `redraw` draws them

    def random(key):
        return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())

    def start(key):
        numbers = random(key)
        return gibbs.redraw(numbers, gibbs.prior_state(numbers, template, np.ones(num_chains)), template)

    def sweep(key, state, problem):
        numbers = random(key)
        for _ in range(sweeps):
            if mutant is None:
                state = gibbs.moved(numbers, state, problem)
            else:
                with planted(*mutant):
                    state = gibbs.moved(numbers, state, problem)
        return state

    def redraw(key, state, problem):
        return gibbs.redraw(random(key), state, problem)

    return joint_distribution_test(jax.random.key(seed), start, sweep, redraw, quantities, rounds=rounds).largest


def test_a_short_run_passes():
    assert largest(4000) < PASSES


@pytest.mark.parametrize("kind", [
    {"num_grades": 4}, {"num_orders": 2}, {"num_blanks": 1, "experts": "symmetric", "num_orders": 2},
    {"num_grades": 3, "num_blanks": 1, "experts": "per-view"},
], ids=["grades", "orders", "don't know", "grades by view"])  # fmt: skip
def test_a_short_run_of_other_answers_passes(kind):
    assert largest(2500, rounds=4, **kind) < PASSES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experts", "priors", "kind"),
    [("two-coin", PRIORS, {}), ("symmetric", PRIORS, {}), ("per-view", PRIORS, {}), ("spammer", PRIORS, {}),
     ("two-coin", OWN, {}), ("two-coin", PRIORS, {"num_grades": 4}), ("two-coin", PRIORS, {"num_orders": 2}),
     ("two-coin", PRIORS, {"num_blanks": 1})],
    ids=["two-coin", "symmetric", "per-view", "spammer", "own link", "grades", "orders", "don't know"],
)  # fmt: skip
def test_the_sampler_of_every_kind_passes(experts, priors, kind):
    assert largest(20_000, priors, experts, seed=1, **kind) < PASSES


# ---- planted bugs ----


def wrong_sign_of_apart(right):
    """What an answer "apart" adds for a pair to be together."""

    def draw_clusters(uniform, cluster, logits, gain, *rest):
        return right(uniform, cluster, logits, gain * np.array([-1.0, 1.0]), *rest)

    return draw_clusters


def hits_for_misses(right):
    def conditional(counts, exponent, problem):
        found = right(counts, exponent, problem) - problem.prior[:, None]
        found[..., 0, :] = found[..., 0, ::-1]
        return found + problem.prior[:, None]

    return conditional


def sites_exchanged(right):
    """Sensitivities for specificities."""
    return lambda random, cells: right(random, cells)[..., ::-1, :] if cells.ndim == 5 else right(random, cells)


def weights_by_the_prior(right):
    """Weights do not know of the clusters."""
    return lambda link, random, weight, cluster, used: right(link, random, weight, cluster, used & False)


def drawn_anew(right):
    """The accuracies are drawn once more, from half of the answers."""

    def drawn_experts(random, state, log_weight, problem):
        view, experts = right(random, state, log_weight, problem)
        conditional = gibbs._conditional(state.counts, 0.5 * np.ones((len(view), 1, 1, 1)), problem)
        cells = np.take_along_axis(conditional, view[:, :, None, None, None], axis=2)
        return view, gibbs._log_shares(random, cells)

    return drawn_experts


MUTANTS = {
    "wrong sign of apart": (loops, "draw_clusters", wrong_sign_of_apart),
    "no one in the stick": (
        likelihood, "stick_parameters", lambda right: lambda size, prior: right(size, prior) - np.array([0.7, 0.0])
    ),
    "sites exchanged": (gibbs, "_log_shares", sites_exchanged),
    "hits for misses": (gibbs, "_conditional", hits_for_misses),
    "half of the answers": (gibbs, "_drawn_experts", drawn_anew),
    "prior of views left out": (likelihood, "log_view_weight", lambda right: lambda *stick: 0 * right(*stick)),
    "weights by the prior": (links.LinearLink, "moved", weights_by_the_prior),
    "views by the prior": (gibbs, "log_beta", lambda right: lambda cells: 0 * right(cells)),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name):
    assert largest(4000, rounds=5, mutant=MUTANTS[name]) > FOUND
