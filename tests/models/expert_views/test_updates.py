"""Updates of coordinate ascent: the bound never falls, closed forms are stationary, sums are those of brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import digamma

from consilience.models.expert_views import MODEL, updates
from consilience.models.expert_views.judgements import judgements
from consilience.models.expert_views.priors import Priors
from consilience.models.expert_views.problem import Q, coloured, prepare
from consilience.models.expert_views.simulation import constraints_of
from tests.models.expert_views.whole_bound import bound

ITEMS, EXPERTS, VIEWS, RESTARTS, FEATURES = 14, 5, 3, 2, 2

pytestmark = pytest.mark.usefixtures("double_precision")


def random_problem(seed, clusters=3, **options):
    """Return judgements with repeats and several answers to a pair, and priors that differ by expert.

    The pairs depend on the number of clusters only, so that one compiled program does for all seeds.
    """
    random, graph = np.random.default_rng(seed), np.random.default_rng(clusters)
    number = 90
    a = graph.integers(0, ITEMS - 1, number)
    b = graph.integers(a + 1, ITEMS)
    expert, together = graph.integers(0, EXPERTS, number), random.integers(0, 2, number)
    data = constraints_of(expert, a, b, together, random.normal(size=(ITEMS, FEATURES)), EXPERTS)
    of_experts = (dist.Beta(*parameters) for parameters in random.uniform(0.5, 8, (2, EXPERTS, 2)).swapaxes(1, 2))
    priors = Priors(**dict(zip(("sensitivity", "specificity"), of_experts, strict=True)), concentration=1.7,
                    weight_scale=1.3)  # fmt: skip
    problem = prepare(MODEL.resolve(
        data, priors, {"clusters": clusters, "views": VIEWS, "restarts": RESTARTS, **options}
    ))  # fmt: skip
    return judgements(data)[0], jax.device_put(problem)


def random_q(seed, problem):
    """Return parameters that no update would have left."""
    random, settings = np.random.default_rng(seed), problem.settings
    weights = RESTARTS, VIEWS, problem.feature.shape[1], settings.clusters
    own = VIEWS if settings.per_view else 1
    accuracy = random.uniform(0.5, 9, (RESTARTS, EXPERTS, own, *problem.prior.shape[1:]))
    tilt = np.moveaxis(random.dirichlet(np.ones(settings.clusters), (RESTARTS, VIEWS, len(problem.feature))), -1, 0)
    return jax.device_put(Q(
        eta=random.dirichlet(np.ones(settings.clusters), (len(problem.feature), RESTARTS, VIEWS)),
        tilt=tilt if settings.tilted else np.zeros_like(tilt),
        weight_mean=random.normal(size=weights), weight_variance=random.uniform(0.1, 2, weights),
        phi=random.dirichlet(np.ones(VIEWS), (RESTARTS, EXPERTS)), accuracy=accuracy,
        stick=random.uniform(0.5, 9, (RESTARTS, VIEWS - 1, 2)),
    ))  # fmt: skip


def _clusters(q, problem):
    mean = updates.turned(updates.logits(q.weight_mean, problem))
    return q._replace(eta=updates.update_clusters(q.eta, mean, updates.couplings(q, problem), problem))


STEPS = {
    "clusters": _clusters,
    "accuracies": lambda q, problem: updates.update_accuracies(q, updates.agreement(q.eta, problem), problem),
    "sticks": updates.update_sticks,
    "views": lambda q, problem: updates.update_views(q, updates.agreement(q.eta, problem), problem),
    "tilt": updates.update_tilt,
    "weight mean": updates.update_weight_mean,
    "weight variance": updates.update_weight_variance,
}


@pytest.mark.parametrize(
    ("clusters", "options"),
    [
        pytest.param(2, {}, marks=pytest.mark.slow),
        pytest.param(3, {"experts": "symmetric", "bound": "jensen"}, marks=pytest.mark.slow),
        (4, {"experts": "per-view"}),
        pytest.param(5, {"bound": "tilted"}, marks=pytest.mark.slow),
    ],
)
def test_no_step_lowers_the_bound_of_any_restart(clusters, options):
    steps = [name for name in STEPS if (name, options.get("bound")) != ("tilt", "jensen")]

    @jax.jit
    def climb(q, problem):
        """Take every step; return where they lead, and the bound after each."""
        path = [q]
        for name in steps:
            path.append(STEPS[name](path[-1], problem))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *path)
        return path[-1], jax.lax.map(lambda q: sum(bound(q, problem)), stacked)

    gains = []
    for seed in range(6):
        _, problem = random_problem(seed, clusters, **options)
        q = random_q(seed, problem)
        # From a random state, and from where the steps before have led.
        for _ in range(3):
            q, heights = climb(q, problem)
            gains.append(np.diff(heights, axis=0))
            assert (gains[-1] >= -1e-8 * np.abs(heights[0])).all()
    assert (np.sum(gains, axis=(0, 2)) > 1e-3).all()


@pytest.mark.slow
def test_steps_of_tied_weights_never_lower_the_bound():
    total = jax.jit(lambda q, problem: sum(bound(q, problem)))
    step = jax.jit(lambda q, problem: updates.update_tied_weights(q, updates.couplings(q, problem), problem))
    for seed in range(4):
        _, problem = random_problem(seed, responsibilities="tied")
        q = random_q(seed, problem)
        q = q._replace(eta=updates.turned(updates.softmax(updates.logits(q.weight_mean, problem))))
        heights = [total(q, problem)]
        for _ in range(5):
            q = step(q, problem)
            np.testing.assert_allclose(
                q.eta, jax.nn.softmax(np.einsum("nd,rgdk->nrgk", problem.feature, q.weight_mean)), atol=1e-12
            )
            heights.append(total(q, problem))
        assert (np.diff(heights, axis=0) >= -1e-8 * np.abs(heights[0])).all()
        assert (np.ptp(heights, axis=0) > 0.1).all()


@pytest.mark.parametrize(
    "experts",
    ["two-coin", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("symmetric", "per-view"))],
)
def test_closed_forms_are_where_the_bound_has_no_slope(experts):
    _, problem = random_problem(1, experts=experts)
    q = random_q(1, problem)

    gradient = jax.jit(jax.grad(lambda q: sum(bound(q, problem)).sum()))
    q = STEPS["accuracies"](q, problem)
    np.testing.assert_allclose(gradient(q).accuracy, 0, atol=1e-9)
    q = STEPS["sticks"](q, problem)
    np.testing.assert_allclose(gradient(q).stick, 0, atol=1e-9)
    slope = gradient(STEPS["views"](q, problem)).phi  # the same for all views: probabilities sum to one
    np.testing.assert_allclose(slope - slope.mean(-1, keepdims=True), 0, atol=1e-8)


def test_items_of_one_colour_at_once_are_items_one_after_the_other():
    found, problem = random_problem(2)
    q = random_q(2, problem)
    coupling = updates.couplings(q, problem)
    mean = updates.turned(updates.logits(q.weight_mean, problem))
    eta = np.array(q.eta)
    for item in np.argsort(coloured(found.begin, found.neighbour), kind="stable"):
        field = np.array(mean[item])
        for pair, (a, b) in enumerate(zip(found.first, found.second, strict=True)):
            if item in (a, b):
                field += np.asarray(coupling)[pair][..., None] * eta[a + b - item]
        eta[item] = jax.nn.softmax(field, axis=-1)
    np.testing.assert_allclose(updates.update_clusters(q.eta, mean, coupling, problem), eta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1 << 17, 64])
def test_sums_are_those_of_brute_force(monkeypatch, block):
    monkeypatch.setattr(updates, "_NUMBERS", block)  # at 64, in several blocks of which the last overlaps
    found, problem = random_problem(3)
    q = random_q(3, problem)
    same = np.einsum("prgk,prgk->prg", *(np.asarray(q.eta)[ends] for ends in (found.first, found.second)))
    counts, coupling = np.zeros((RESTARTS, EXPERTS, VIEWS, 2)), np.zeros((len(found.first), RESTARTS, VIEWS))
    # Sensitivity and specificity: in each the logarithm of being right, then of being wrong.
    logs = digamma(q.accuracy) - digamma(q.accuracy.sum(axis=-1, keepdims=True))
    hit, miss, rejection, alarm = np.moveaxis(np.asarray(logs).reshape(RESTARTS, EXPERTS, 1, 4), -1, 0)
    yes, no = (np.asarray(q.phi * part) for part in (hit - alarm, miss - rejection))
    for expert, pair, (denied, said) in zip(found.answer_expert, found.answer_pair, found.said, strict=True):
        counts[:, expert] += same[pair][..., None] * [denied, said]
        coupling[pair] += said * yes[:, expert] + denied * no[:, expert]
    np.testing.assert_allclose(updates.agreement(q.eta, problem), counts, atol=1e-12)
    found_coupling = np.asarray(updates.couplings(q, problem))
    np.testing.assert_allclose(found_coupling[: len(coupling)], coupling, atol=1e-12)
    np.testing.assert_array_equal(found_coupling[len(coupling) :], 0)  # of pairs that pad
    field = np.zeros(q.eta.shape)
    for pair, (a, b) in enumerate(zip(found.first, found.second, strict=True)):
        field[a] += coupling[pair][..., None] * np.asarray(q.eta)[b]
        field[b] += coupling[pair][..., None] * np.asarray(q.eta)[a]
    np.testing.assert_allclose(
        updates.neighbours(q.eta, updates.couplings(q, problem), problem), field, atol=1e-12
    )


@pytest.mark.parametrize("most_dense", [150, 0])
def test_direction_is_newtons(monkeypatch, most_dense):
    monkeypatch.setattr(updates, "_MOST_DENSE", most_dense)  # at 0, conjugate gradients: exact after 9 steps
    monkeypatch.setattr(updates, "_BLOCK", 4)  # several blocks, of which the last overlaps
    _, problem = random_problem(4)
    q = random_q(4, problem)
    mean = updates.logits(q.weight_mean, problem)

    def negative(weight):
        fit = -jax.nn.logsumexp(problem.feature @ weight, axis=-1).sum()
        return -(fit - (weight**2).sum() / problem.weight_scale**2 / 2)

    gradient = np.random.default_rng(0).normal(size=q.weight_mean.shape)
    found = updates.newton_direction(gradient, updates.softmax(mean), problem)
    matrix = jax.jit(jax.vmap(jax.vmap(jax.hessian(negative))))(q.weight_mean).reshape(RESTARTS, VIEWS, 9, 9)
    expected = np.linalg.solve(matrix, gradient.reshape(RESTARTS, VIEWS, 9, 1)).reshape(gradient.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_bound_of_log_sum_exp_lies_above_it_and_the_tilt_lowers_it():
    _, problem = random_problem(5, clusters=4)
    q = random_q(5, problem)
    mean, variance = updates.logits(q.weight_mean, problem), updates.variances(q.weight_variance, problem)
    draws = np.random.default_rng(0).normal(size=(4000, *mean.shape)) * np.sqrt(variance) + mean
    sample = np.asarray(jax.nn.logsumexp(draws, axis=1))
    truth, error = sample.mean(0), sample.std(0) / np.sqrt(len(sample))
    jensen = updates.softmax_bound(mean, variance, jnp.zeros_like(mean))
    np.testing.assert_allclose(jensen, jax.nn.logsumexp(mean + variance / 2, axis=0))
    tilted = updates.softmax_bound(mean, variance, q.tilt)
    assert (tilted >= truth - 5 * error).all()
    q = q._replace(tilt=jnp.zeros_like(mean))
    q = jax.lax.fori_loop(0, 60, lambda _, q: updates.update_tilt(q, problem), q)
    lower = updates.softmax_bound(mean, variance, q.tilt)
    assert (lower >= truth - 5 * error).all()
    assert (lower <= jensen).all()
    # Also where variances are large, and plain steps would go too far.
    np.testing.assert_allclose(q.tilt, updates.softmax(mean + (0.5 - q.tilt) * variance), atol=0.01)
    assert variance.max() > 8
    assert (lower - truth).mean() < 0.5 * (jensen - truth).mean()


def test_sums_over_few_and_many_clusters_are_the_same():
    for number in (3, 40):
        values = np.random.default_rng(0).normal(0, 30, (number, 2, 3, 5))
        np.testing.assert_allclose(updates.log_sum_exp(values), jax.nn.logsumexp(values, axis=0), rtol=1e-12)
        np.testing.assert_allclose(updates.softmax(values), jax.nn.softmax(values, axis=0), rtol=1e-10)
        np.testing.assert_allclose(updates.over_items(values[0]), values[0].sum(-1), rtol=1e-12)


def test_a_search_takes_the_first_length_that_does_not_lower_the_value():
    best = jnp.array([[1.2, 0.3, -1.0]])  # from here values fall on both sides, from zero to the best they rise
    length = updates.first_rise(lambda length: -((length - best) ** 2), best)
    np.testing.assert_allclose(length, [[1.0, 0.5, 0.0]])
