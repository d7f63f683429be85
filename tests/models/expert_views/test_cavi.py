"""Coordinate ascent: the recorded optima of three clusters in two views, its phases, and what can be left to it."""

import dataclasses
import functools
import json
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from benchmarks.views_experts import k_views, simulate_experts, three_clusters
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.inference.ascent import run_ascent
from consilience.inference.results import Result
from consilience.models.expert_views import MODEL
from consilience.models.expert_views import problem as problem_module
from consilience.models.expert_views.bound import pruned_bound
from consilience.models.expert_views.canonical import _relabelled
from consilience.models.expert_views.cavi import CAVI, Phase, merged, ordered, similarity
from consilience.models.expert_views.priors import PAPER_PRIORS, Priors
from consilience.models.expert_views.updates import agreement

# The best bounds that were found by other programs, with an empty view at least.
BEST = {"group": -3125.14, "all": -3179.85, "own": -3163.48}
OPTIONS = {"clusters": 3, "views": 5}

pytestmark = pytest.mark.usefixtures("double_precision")


def small_data(seed=0):
    """Return sixty items that six experts judged."""
    label, feature = three_clusters(60)
    return simulate_experts(
        label, feature, view_of_expert=[0, 0, 0, 1, 1, 1], sensitivity=0.9, num_together=40, num_apart=40,
        protocol="own", seed=seed,
    )[0]  # fmt: skip


# Five restarts are two tied and three paired, so that two devices do not share them evenly.
SMALL = {"clusters": 3, "views": 3, "restarts": 5}


def prepare(data, priors, **settings):
    return CAVI.prepare(MODEL.resolve(data, priors, settings))


def ascend(problem, seed=0):
    """Return what the ascent ended with, and the run."""
    run = run_ascent(CAVI, problem, key=jax.random.key(seed), progress=False)
    found = {site: np.asarray(value)[0, 0] for site, value in run.samples.items()}
    return SimpleNamespace(**_relabelled(found, float(problem.concentration))), run


def groups(posterior):
    """Return the experts of each view that has some."""
    view = posterior.view_probability.argmax(1)
    return {tuple(np.flatnonzero(view == one)) for one in view}


@pytest.fixture(scope="module")
def small():
    """Return the posterior of the small data, and the run."""
    with jax.enable_x64(True):
        return ascend(prepare(small_data(), PAPER_PRIORS, **SMALL))


FIVE_AND_FIVE = {(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)}


def test_best_optimum_of_three_clusters():
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature)
    posterior, run = ascend(prepare(data, PAPER_PRIORS, **OPTIONS, restarts=10))
    assert run.result is Result.converged
    assert posterior.restart_bound.max() == pytest.approx(BEST["group"], abs=0.01)
    assert groups(posterior) == FIVE_AND_FIVE
    paired = posterior.restart_bound[5:]
    assert (paired >= BEST["group"] - 1).sum() >= 4
    mean = posterior.sensitivity[:, 0] / posterior.sensitivity.sum(1)
    expected = [0.932, 0.859, 0.783, 0.790, 0.647, 0.725, 0.766, 0.839, 0.862, 0.887]
    np.testing.assert_allclose(mean, expected, atol=6e-4)
    np.testing.assert_allclose(posterior.weight_mean.sum(-1), 0, atol=2e-3)
    # Views by number of experts, clusters by size.
    assert (np.diff(posterior.view_probability.sum(0)) <= 1e-3).all()
    assert (np.diff(posterior.cluster_probability.sum(0)) <= 0.01).all()  # sizes that differ by less are equal
    assert run.elbo[-1] == pytest.approx(posterior.restart_bound.max(), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["own", "all"])
def test_best_optimum_where_experts_share_no_or_all_pairs(protocol):
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature, protocol=protocol)
    posterior, _ = ascend(prepare(data, PAPER_PRIORS, **OPTIONS, restarts=10))
    assert posterior.restart_bound.max() >= BEST[protocol] - 0.05
    assert groups(posterior) == FIVE_AND_FIVE


@pytest.mark.slow
def test_most_restarts_of_either_warm_up_find_the_optimum():
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature)
    posterior, _ = ascend(prepare(data, PAPER_PRIORS, **OPTIONS, restarts=40), seed=1)
    good = posterior.restart_bound >= BEST["group"] - 1
    assert good[20:].sum() >= 18
    assert good[:20].sum() >= 10


@pytest.mark.slow
def test_sixty_judgements_of_a_kind_are_enough_to_group_the_experts():
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature, protocol="own", num_together=60, num_apart=60)
    posterior, _ = ascend(prepare(data, PAPER_PRIORS, **OPTIONS))
    assert posterior.restart_bound.max() >= -777.4
    assert groups(posterior) == FIVE_AND_FIVE


@pytest.mark.slow
def test_a_weak_prior_does_not_spoil_the_warm_up():
    # Without experts who are taken to be good, 1 restart in 20 finds it.
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature, num_together=25, num_apart=25, protocol="own")
    posterior, _ = ascend(prepare(data, Priors(), **OPTIONS))
    assert (posterior.restart_bound > posterior.restart_bound.max() - 1).sum() >= 4


@pytest.mark.slow
def test_three_views_are_found_and_merge_moves_help():
    label, feature = k_views()
    data, _ = simulate_experts(label, feature)
    posterior, run = ascend(prepare(data, PAPER_PRIORS, clusters=4, views=7, restarts=10))
    assert groups(posterior) == {tuple(range(5 * view, 5 * view + 5)) for view in range(3)}
    assert (np.diff(run.elbo) >= 0).all()


@pytest.mark.slow
def test_without_warm_up_hardly_any_restart_finds_it():
    label, feature = three_clusters()
    data, _ = simulate_experts(label, feature)
    problem = jax.device_put(prepare(data, PAPER_PRIORS, **OPTIONS, restarts=10))
    state = jax.jit(CAVI.start)(jax.random.key(0), problem)
    state = state._replace(phase=jnp.asarray(Phase.SWEEP, jnp.int32))
    step = jax.jit(functools.partial(CAVI.step, part=1))
    while state.phase == Phase.SWEEP:
        state, _ = step(state, problem)
    assert (np.asarray(state.bound) >= BEST["group"] - 1).sum() <= 1
    assert np.median(state.bound) < BEST["group"] - 200


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"responsibilities": "tied"}, marks=pytest.mark.slow),
        pytest.param({"experts": "symmetric", "bound": "jensen"}, marks=pytest.mark.slow),
        pytest.param({"experts": "per-view"}, marks=pytest.mark.slow),
    ],
)
def test_variants_find_the_groups_and_never_fall(options):
    problem = prepare(small_data(), PAPER_PRIORS, **SMALL, **options)
    posterior, run = ascend(problem)
    assert run.result is Result.converged
    assert (np.diff(run.elbo) >= 0).all()
    assert groups(posterior) == {(0, 1, 2), (3, 4, 5)}
    assert posterior.sensitivity.shape == ((6, 3, 2) if options.get("experts") == "per-view" else (6, 2))
    if options.get("experts") == "symmetric":
        np.testing.assert_array_equal(posterior.sensitivity, posterior.specificity)
    feature = np.column_stack([small_data().feature, np.ones(60)])
    of_weights = jax.nn.softmax(np.einsum("nd,gdk->ngk", feature, posterior.weight_mean))
    gap = np.abs(of_weights - posterior.cluster_probability).max()
    assert gap < 1e-9 if options.get("responsibilities") == "tied" else gap > 0.1


@pytest.mark.slow
def test_one_view_and_no_features_are_legal():
    data = dataclasses.replace(small_data(), feature=np.empty((60, 0)), num_features=0)
    posterior, run = ascend(prepare(data, PAPER_PRIORS, clusters=3, views=1, restarts=2))
    assert run.result is Result.converged
    assert posterior.stick.shape == (0, 2)
    assert posterior.weight_mean.shape == (1, 1, 3)
    np.testing.assert_array_equal(posterior.view_probability, 1)


def test_other_answers_and_priors_do_not_compile_again(small, compilations):
    problem = prepare(small_data(), PAPER_PRIORS, **SMALL)
    swapped = problem._replace(
        by_expert=problem.by_expert._replace(said=problem.by_expert.said[..., ::-1]),
        by_pair=problem.by_pair._replace(said=problem.by_pair.said[..., ::-1]),
        number=problem.number[:, ::-1], weight_scale=2 * problem.weight_scale,
    )  # fmt: skip
    compilations.clear()
    posterior, _ = ascend(swapped)
    assert not compilations
    assert posterior.restart_bound.max() != pytest.approx(small[0].restart_bound.max(), abs=1)


@pytest.mark.slow
def test_padding_changes_nothing(small, monkeypatch):
    monkeypatch.setattr(problem_module, "padded_size", lambda number: int(number) + 7)
    padded = prepare(small_data(), PAPER_PRIORS, **SMALL)
    assert len(padded.feature) == int(padded.num_judged) + 7
    for name, values in vars(ascend(padded)[0]).items():
        np.testing.assert_allclose(values, getattr(small[0], name), rtol=0, atol=1e-8, err_msg=name)


@pytest.mark.slow
def test_float32_agrees_with_float64(small):
    with jax.enable_x64(False):
        problem = prepare(small_data(), PAPER_PRIORS, **SMALL)
        assert problem.feature.dtype == np.float32
        single, run = ascend(problem)
    assert run.result is Result.converged
    assert single.restart_bound.dtype == np.float32
    double, _ = small
    assert groups(single) == groups(double) == {(0, 1, 2), (3, 4, 5)}
    assert single.restart_bound.max() == pytest.approx(double.restart_bound.max(), abs=0.05)


def test_priors_and_experts_for_which_there_are_no_updates_are_refused():
    data = small_data()
    with pytest.raises(NotConjugate, match=r"method='gibbs'"):
        prepare(data, Priors(logits=lambda weight, feature: feature @ weight), **SMALL)
    with pytest.raises(NotConjugate, match="weight"):
        prepare(data, Priors(weight=dist.Laplace(0.0, 1.0).expand((7, 3)).to_event(2)), **SMALL)
    with pytest.raises(NotConjugate, match="specificity"):
        prepare(data, Priors(specificity=dist.Uniform(0.5, 1.0)), **SMALL)
    prepare(data, Priors(specificity=dist.Uniform(0.5, 1.0)), **SMALL, experts="symmetric")
    with pytest.raises(NotConjugate, match="spammer"):
        prepare(data, Priors(), **SMALL, experts="spammer")
    with pytest.raises(UnsupportedRequest, match="two-coin"):
        prepare(data, Priors(), **SMALL, experts="liars")
    with pytest.raises(UnsupportedRequest, match="clusters is 128; a view may have 127 of them at most"):
        prepare(data, Priors(), **SMALL | {"clusters": 128})


@pytest.mark.slow
def test_merging_gives_the_experts_of_the_smaller_view_to_the_one_that_says_the_same():
    problem = jax.device_put(prepare(small_data(), PAPER_PRIORS, **SMALL))
    q = jax.jit(CAVI.start)(jax.random.key(0), problem).q
    random = np.random.default_rng(0)
    sure = np.eye(3)[random.integers(0, 3, (len(q.eta), 5, 3))]
    sure[:, :, 2] = np.roll(sure[:, :, 0], 1, axis=-1)  # the first and the last view are one, under other numbers
    phi = np.eye(3)[[0, 0, 0, 1, 1, 2]]
    q = q._replace(eta=jnp.asarray(sure), phi=jnp.broadcast_to(phi, (5, 6, 3)))
    near = similarity(q.eta, problem)
    np.testing.assert_allclose(near[:, [0, 1, 2, 0], [0, 1, 2, 2]], 1, atol=1e-9)
    assert (near[:, 0, 1] < 0.3).all()
    moved, possible = merged(q, jnp.zeros(5, int), problem)
    assert possible.all()
    np.testing.assert_array_equal(moved.phi[0], np.eye(3)[[0, 0, 0, 1, 1, 0]])
    second, _ = merged(q, jnp.ones(5, int), problem)  # the next best pair has view 1 in it
    assert (np.asarray(second.phi).sum(1) == 0).any()
    assert not (np.asarray(second.phi) == np.asarray(moved.phi)).all()
    _, possible = merged(q, jnp.full(5, 3), problem)
    assert not possible.any()

    turned = ordered(q._replace(phi=q.phi[:, :, jnp.array([2, 0, 1])]))
    np.testing.assert_array_equal(turned.phi[0].sum(0), [3, 2, 1])
    np.testing.assert_array_equal(turned.eta[:, :, 0], q.eta[:, :, 1])


@pytest.mark.slow
def test_order_of_views_changes_nothing_but_the_sticks():
    problem = jax.device_put(prepare(small_data(), PAPER_PRIORS, **SMALL))
    q = jax.jit(CAVI.start)(jax.random.key(0), problem).q
    height = [pruned_bound(each, agreement(each.eta, problem), problem) for each in (q, ordered(q))]
    assert (np.asarray(height[1] - height[0]) >= -1e-9).all()
    assert np.abs(height[1] - height[0]).max() < 5


@pytest.mark.slow
def test_order_of_items_and_experts_changes_nothing_but_their_order():
    data, random = small_data(), np.random.default_rng(0)
    item, expert = random.permutation(60), random.permutation(6)  # the new number of each
    moved = data.replace(
        expert=expert[data.expert].astype(np.int32), item_a=item[data.item_a].astype(np.int32),
        item_b=item[data.item_b].astype(np.int32), feature=data.feature[np.argsort(item)],
    )  # fmt: skip
    # More restarts, since they begin elsewhere: which random numbers an expert gets depends on his number.
    one, other = (ascend(prepare(each, PAPER_PRIORS, **{**SMALL, "restarts": 12}))[0] for each in (data, moved))
    assert other.restart_bound.max() == pytest.approx(one.restart_bound.max(), abs=0.01)
    same = [posterior.view_probability @ posterior.view_probability.T for posterior in (one, other)]
    np.testing.assert_allclose(same[1][np.ix_(expert, expert)], same[0], atol=1e-3)
    np.testing.assert_allclose(other.sensitivity[expert], one.sensitivity, rtol=0.02)
    together = []  # of all pairs of items, in the view of the first expert
    for posterior, first, order in ((one, 0, np.arange(60)), (other, expert[0], item)):
        eta = posterior.cluster_probability[order, posterior.view_probability[first].argmax()]
        together.append(eta @ eta.T)
    np.testing.assert_allclose(together[1], together[0], atol=0.01)


_PROGRAM = """
import json, sys
import jax

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
import numpy as np
from consilience.inference.ascent import run_ascent
from consilience.models.expert_views import MODEL, PAPER_PRIORS
from consilience.models.expert_views.canonical import _relabelled
from consilience.models.expert_views.cavi import CAVI
from benchmarks.views_experts import simulate_experts, three_clusters

label, feature = three_clusters(60)
data, _ = simulate_experts(
    label, feature, view_of_expert=[0, 0, 0, 1, 1, 1], sensitivity=0.9, num_together=40, num_apart=40, protocol="own"
)
problem = CAVI.prepare(MODEL.resolve(data, PAPER_PRIORS, {"clusters": 3, "views": 3, "restarts": 5}))
run = run_ascent(CAVI, problem, key=jax.random.key(0), devices=2, progress=False)
sites = {site: np.asarray(value)[0, 0] for site, value in run.samples.items()}
sites = _relabelled(sites, float(problem.concentration))
print("FOUND", json.dumps({"elbo": run.elbo.tolist(), **{site: value.tolist() for site, value in sites.items()}}))
"""


@pytest.mark.slow
def test_restarts_on_two_devices_are_those_on_one(small):
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    two = json.loads(done.stdout.split("FOUND ")[1])
    one = {"elbo": small[1].elbo, **vars(small[0])}
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-8, err_msg=name)
