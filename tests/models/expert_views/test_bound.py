"""The bound of the evidence: the worked example, its identities, Monte Carlo, and what the pruned one leaves out."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from consilience.models.expert_views import MODEL, updates
from consilience.models.expert_views import problem as problem_module
from consilience.models.expert_views.bound import pruned_bound
from consilience.models.expert_views.priors import PAPER_PRIORS
from consilience.models.expert_views.problem import Q
from consilience.models.special import log_beta
from tests.models.expert_views.joint import log_joint
from tests.models.expert_views.whole_bound import bound
from tests.models.expert_views.worked import DATA, FEATURE, LOG_EVIDENCE, OPTIONS

pytestmark = pytest.mark.usefixtures("double_precision")


def worked_problem(data=DATA, views=2, concentration=1.0, **options):
    """Return the worked example, its items updated one after the other in the order of their numbers."""
    priors = dataclasses.replace(PAPER_PRIORS, concentration=concentration)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem_module, "coloured", lambda begin, neighbour: np.arange(4))
        problem = problem_module.prepare(MODEL.resolve(
            data, priors, {**OPTIONS, "restarts": 1, **options}
        ))  # fmt: skip
    return jax.device_put(problem._replace(settings=dataclasses.replace(problem.settings, views=views)))


def worked_q(problem):
    """Return the state of which the terms of the bound are known."""
    weight = np.zeros((1, 2, 3, 2))
    weight[0, 0, 0] = weight[0, 1, 1] = 1, -1
    eta = updates.softmax(updates.logits(weight, problem))
    q = Q(
        eta=updates.turned(eta), tilt=eta if problem.settings.tilted else jnp.zeros_like(eta), weight_mean=weight,
        weight_variance=np.full(weight.shape, 0.25), phi=np.array([[[0.8, 0.2], [0.3, 0.7]]]),
        accuracy=problem.prior[None, :, None], stick=np.ones((1, 1, 2)),
    )  # fmt: skip
    return jax.device_put(q)


def total(q, problem):
    return float(sum(bound(q, problem))[0])


def test_terms_of_the_worked_example():
    problem = worked_problem()
    q = worked_q(problem)
    terms = {name: float(value[0]) for name, value in bound(q, problem)._asdict().items()}
    expected = {
        "answers": -11.169046, "views": -2.0, "views_entropy": 1.111267, "sensitivity": 0.0, "specificity": 0.0,
        "sticks": 0.0, "clusters": -3.710782, "clusters_entropy": 2.922671, "weights": -5.817766,
    }  # fmt: skip
    assert terms == pytest.approx(expected, abs=1e-6)
    assert sum(terms.values()) == pytest.approx(-18.663656, abs=1e-6)
    found = updates.agreement(q.eta, problem)
    np.testing.assert_allclose(found[0, ..., 1], [[1.790013, 0.629962], [0.419974, 1.580026]], atol=1e-6)
    np.testing.assert_allclose(found[0, ..., 0], [[0.419974, 1.580026], [1.580026, 0.419974]], atol=1e-6)


def test_updates_of_the_worked_example_one_by_one():
    problem = worked_problem()
    q = worked_q(problem)
    mean = updates.turned(updates.logits(q.weight_mean, problem))
    q = q._replace(eta=updates.update_clusters(q.eta, mean, updates.couplings(q, problem), problem))
    expected = [[0.080846, 0.013884, 0.986116, 0.945483], [0.023577, 0.988168, 0.011832, 0.985556]]
    np.testing.assert_allclose(q.eta[:, 0, :, 0].T, expected, atol=1e-6)
    assert total(q, problem) == pytest.approx(-17.707371, abs=1e-6)

    found = updates.agreement(q.eta, problem)
    q = updates.update_sticks(updates.update_accuracies(q, found, problem), problem)
    np.testing.assert_allclose(q.accuracy[0, :, 0, 0], [[11.593366, 1.515341], [11.405262, 1.594738]], atol=1e-6)
    np.testing.assert_allclose(q.accuracy[0, :, 0, 1], [[11.484659, 2.406634], [11.405262, 1.594738]], atol=1e-6)
    np.testing.assert_allclose(q.stick[0], [[2.1, 1.9]], atol=1e-6)
    assert total(q, problem) == pytest.approx(-16.309954, abs=1e-6)

    q = updates.update_views(q, found, problem)
    np.testing.assert_allclose(q.phi[0], [[0.999491, 0.000509], [0.000354, 0.999646]], atol=1e-6)
    assert total(q, problem) == pytest.approx(-13.520662, abs=1e-6)
    q = updates.update_sticks(updates.update_accuracies(q, found, problem), problem)
    assert total(q, problem) == pytest.approx(-13.082054, abs=1e-6)


@pytest.mark.parametrize(("kind", "height"), [("tilted", -10.924776), ("jensen", -14.383678)])
def test_fixed_point_of_the_worked_example(kind, height):
    problem = worked_problem(bound=kind)
    q = jax.jit(
        lambda q, problem: jax.lax.fori_loop(0, 3000, lambda _, q: updates.sweep(q, problem)[0], q)
    )(worked_q(problem), problem)  # fmt: skip
    q = updates.update_accuracies(q, updates.agreement(q.eta, problem), problem)
    assert total(q, problem) == pytest.approx(height, abs=1e-6)
    np.testing.assert_allclose(q.weight_mean.sum(-1), 0, atol=1e-6)  # the softmax does not see what all have in common
    # Copies with clusters of a view exchanged hardly overlap, and may be added; of a bound, even so.
    assert total(q, problem) + np.log(8) <= LOG_EVIDENCE
    if kind == "tilted":
        np.testing.assert_allclose(q.accuracy[0, :, 0, 0], [[11.997826, 1.017065], [11.998659, 1.001341]], atol=1e-6)
        weight = [[0.980696, -0.980696], [-0.006803, 0.006803], [0, 0]]
        np.testing.assert_allclose(q.weight_mean[0, 0], weight, atol=1e-6)
        np.testing.assert_allclose(q.weight_variance[0, 0], 0.571808, atol=1e-6)
        np.testing.assert_allclose(q.eta[:, 0, 0, 0], [0.007502, 0.000998, 0.999002, 0.992498], atol=1e-6)


def test_sure_clusters_and_views_give_the_marginal_likelihood_of_the_experts():
    problem = worked_problem()
    labels = {
        (0, 0, 1, 1): (-2.929592, -8.379309),
        (0, 1, 0, 1): (-9.845647, -0.364643),
        (0, 0, 0, 0): (-4.916325, -4.693181),
    }
    views = {(0, 0): 1 / 3, (0, 1): 1 / 6, (1, 0): 1 / 6, (1, 1): 1 / 3}
    for label, expected in labels.items():
        for view, probability in views.items():
            eta = jnp.broadcast_to(jnp.eye(2)[np.array(label)][:, None, None], (4, 1, 2, 2))
            q = worked_q(problem)._replace(eta=eta, phi=jnp.eye(2)[None, np.array(view)])
            found = updates.agreement(q.eta, problem)
            q = updates.update_sticks(updates.update_accuracies(q, found, problem), problem)
            terms = bound(q, problem)
            answers = terms.answers + terms.sensitivity + terms.specificity
            assert float(answers[0]) == pytest.approx(sum(expected), abs=1e-6)
            assert float((terms.views + terms.sticks)[0]) == pytest.approx(np.log(probability), abs=1e-12)


@pytest.mark.parametrize("experts", ["two-coin", "per-view", "symmetric"])
def test_right_after_their_updates_terms_collapse_to_ratios_of_normalisers(experts):
    problem = worked_problem(experts=experts, concentration=1.7)
    q = worked_q(problem)
    found = updates.agreement(q.eta, problem)
    q = updates.update_sticks(updates.update_accuracies(q, found, problem), problem)
    terms = bound(q, problem)
    ratios = (log_beta(q.accuracy) - log_beta(problem.prior[0, 0])).sum()
    assert float((terms.answers + terms.sensitivity + terms.specificity)[0]) == pytest.approx(float(ratios), abs=1e-12)
    stick = log_beta(q.stick).sum() + np.log(1.7)
    assert float((terms.views + terms.sticks)[0]) == pytest.approx(float(stick), abs=1e-12)
    # With every item judged and every view used, nothing is left out.
    assert float(pruned_bound(q, found, problem)[0]) == pytest.approx(total(q, problem), abs=1e-11)


@pytest.mark.parametrize(
    "experts",
    ["two-coin", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("symmetric", "per-view"))],
)
def test_bound_is_what_draws_say_of_the_joint_density(experts):
    problem = worked_problem(experts=experts, concentration=1.7)
    # Nearly sure weights, for which the bound of the log-sum-exp is that itself.
    q = worked_q(problem)._replace(weight_variance=jnp.full((1, 2, 3, 2), 1e-10), stick=jnp.array([[[1.5, 2.5]]]))
    own = 2 if experts == "per-view" else 1
    parameters = jnp.array([[7.0, 2.0], [8.0, 3.0]])[: problem.prior.shape[1]]
    q = q._replace(accuracy=jnp.broadcast_to(parameters, (1, 2, own, *parameters.shape)))
    number, keys = 20_000, iter(jax.random.split(jax.random.key(0), 6))

    def beta(values):
        return jax.random.beta(next(keys), values[0, ..., 0], values[0, ..., 1], (number, *values.shape[1:-1]))

    accuracy, stick = beta(q.accuracy), beta(q.stick)
    log_q = sum(
        _log_beta_density(draws, values[0]).sum(tuple(range(1, draws.ndim)))
        for draws, values in ((accuracy, q.accuracy), (stick, q.stick))
    )
    view = jax.random.categorical(next(keys), jnp.log(q.phi[0]), shape=(number, 2))
    cluster = jax.random.categorical(next(keys), jnp.log(jnp.moveaxis(q.eta[:, 0], 0, 1)), shape=(number, 2, 4))
    log_q += jnp.log(q.phi[0])[np.arange(2), view].sum(-1)
    log_q += jnp.log(q.eta)[np.arange(4), 0, np.arange(2)[:, None], cluster].sum((1, 2))
    noise = jax.random.normal(next(keys), (number, 2, 3, 2))
    weight = q.weight_mean[0] + 1e-5 * noise
    log_q += (-(noise**2) / 2 - np.log(1e-5 * np.sqrt(2 * np.pi))).sum((1, 2, 3))
    sites = {"cluster": cluster, "view_of_expert": view, "stick": stick, "weight": weight}
    for site, draws in (("sensitivity", accuracy[..., 0]), ("specificity", accuracy[..., -1])):
        sites[site] = draws if experts == "per-view" else draws[..., 0]
    priors = dataclasses.replace(PAPER_PRIORS, concentration=1.7)
    resolved = MODEL.resolve(DATA, priors, {"clusters": 2, "views": 2, "experts": experts, "standardize": 0})
    joint = jax.jit(jax.vmap(lambda values: log_joint(values, resolved)))(sites)
    sample = np.asarray(joint - log_q)
    error = sample.std() / np.sqrt(number)
    assert total(q, problem) == pytest.approx(sample.mean(), abs=5 * error)
    assert error < 0.05


def _log_beta_density(draws, values):
    a, b = values[..., 0], values[..., 1]
    return (a - 1) * jnp.log(draws) + (b - 1) * jnp.log1p(-draws) - log_beta(values)


def test_silent_items_and_empty_views_cost_nothing():
    problem = worked_problem()
    q = worked_q(problem)
    found = updates.agreement(q.eta, problem)
    height = pruned_bound(q, found, problem)
    feature = np.concatenate([FEATURE, np.random.default_rng(0).normal(size=(100, 2))])
    silent = worked_problem(DATA.replace(feature=feature, num_items=104))
    jax.tree.map(np.testing.assert_array_equal, silent, problem)

    # A third view with idle parameters of whatever kind, and with an expert's rounding in it.
    random = np.random.default_rng(0)
    wider = worked_problem(views=3)
    tilt = np.concatenate([q.tilt, random.dirichlet(np.ones(2), (1, 1, 4)).transpose(3, 0, 1, 2)], axis=2)
    idle = q._replace(
        eta=jnp.concatenate([q.eta, random.dirichlet(np.ones(2), (4, 1, 1))], axis=2), tilt=tilt,
        weight_mean=jnp.concatenate([q.weight_mean, random.normal(0, 3, (1, 1, 3, 2))], axis=1),
        weight_variance=jnp.concatenate([q.weight_variance, random.uniform(1, 9, (1, 1, 3, 2))], axis=1),
        phi=jnp.concatenate([q.phi * (1 - 1e-6), jnp.full((1, 2, 1), 1e-6)], axis=2), stick=jnp.ones((1, 2, 2)),
    )  # fmt: skip
    pruned = pruned_bound(idle, updates.agreement(idle.eta, wider), wider)
    # Only the sticks know of it: the second has one more to share with, of two experts' 0.9 in the second view.
    share = [log_beta(jnp.array([1 + 0.9, 1.0])), log_beta(jnp.array([1.0 + 1.1, 1 + 0.9]))]
    assert float(pruned[0]) == pytest.approx(float(height[0] + share[0]), abs=1e-9)
    assert abs(total(idle, wider) - total(q, problem)) > 5


def test_numbers_of_clusters_have_no_meaning():
    problem = worked_problem()
    q = worked_q(problem)._replace(weight_mean=jnp.asarray(np.random.default_rng(0).normal(size=(1, 2, 3, 2))))
    turned = q._replace(
        eta=q.eta[..., ::-1], tilt=q.tilt[::-1], weight_mean=q.weight_mean[..., ::-1],
        weight_variance=q.weight_variance[..., ::-1],
    )  # fmt: skip
    assert total(turned, problem) == pytest.approx(total(q, problem), abs=1e-12)


def test_order_of_items_and_experts_has_no_meaning():
    data, item, expert = DATA, np.array([2, 0, 3, 1]), np.array([1, 0])  # the new number of each
    moved = data.replace(
        expert=expert[data.expert].astype(np.int32), item_a=item[data.item_a].astype(np.int32),
        item_b=item[data.item_b].astype(np.int32), feature=data.feature[np.argsort(item)],
    )  # fmt: skip
    problem, other = worked_problem(), worked_problem(moved)
    random = np.random.default_rng(0)
    q = worked_q(problem)._replace(
        eta=jnp.asarray(random.dirichlet([1, 1], (4, 1, 2))),
        accuracy=jnp.asarray(random.uniform(1, 9, (1, 2, 1, 2, 2))),
    )
    back_item, back_expert = np.argsort(item), np.argsort(expert)
    turned = q._replace(
        eta=q.eta[back_item], tilt=q.tilt[..., back_item], phi=q.phi[:, back_expert],
        accuracy=q.accuracy[:, back_expert],
    )  # fmt: skip
    assert total(turned, other) == pytest.approx(total(q, problem), abs=1e-12)
    heights = [pruned_bound(each, updates.agreement(each.eta, of), of) for each, of in ((q, problem), (turned, other))]
    assert float(heights[0][0]) == pytest.approx(float(heights[1][0]), abs=1e-12)
