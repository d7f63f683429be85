"""Draws of views, against the probabilities that they are drawn from, and against one another."""

import importlib
import itertools

import jax
import numpy as np
import pytest
from numpyro import handlers
from scipy import special

from consilience.data import Partition
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.evaluation.adjustment import evaluate
from consilience.evaluation.certainties import certainty
from consilience.evaluation.partition_scores import score_partition
from consilience.models.expert_views import MODEL
from consilience.models.expert_views.canonical import OWN_LINK
from consilience.models.expert_views.model import arranged, density
from consilience.models.expert_views.priors import Priors

module = importlib.import_module("consilience.models.expert_views.truth")
DRAWS = 4000
PAIRS = np.array(list(itertools.combinations(range(8), 2)))


@pytest.fixture(scope="module")
def made(fitted):
    """Return a function that makes the truth of a fit; one without priors was loaded, and does not know them."""
    return lambda found, data, num_draws=DRAWS, **more: fitted(
        found, data, num_draws=num_draws, known="priors" in more, **more
    ).truth


@pytest.fixture(scope="module")
def views(constraints, posterior, made):
    return made(posterior, constraints)


@pytest.fixture(scope="module")
def drawn(constraints, sites, made):
    return made(sites[0], constraints, num_draws=60)


def within_five_sigma(share, probability, number=DRAWS):
    error = np.sqrt(probability * (1 - probability) / number)
    return (np.abs(share - probability) <= 5 * error + 1e-9).all()


# ---- coordinate ascent ----


def test_random_numbers_are_uniform_and_do_not_depend_on_one_another():
    noise = module._uniform(jax.random.key(0), 1, np.arange(500), 0, 200)
    other = module._uniform(jax.random.key(0), 1, np.arange(500), 1, 200)
    number = np.bincount((noise.ravel() * 100).astype(int), minlength=100)
    statistic = ((number - 1000) ** 2 / 1000).sum()
    assert abs(statistic - 99) < 5 * np.sqrt(2 * 99)  # a chi-square of 99 degrees of freedom
    for one, two in ((noise, other), (noise[1:], noise[:-1]), (noise[:, 1:], noise[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 5 / np.sqrt(one.size)
    assert not np.isin(noise, module._uniform(jax.random.key(1), 1, np.arange(500), 0, 200)).any()


def test_draws_are_as_frequent_as_they_are_probable(views, posterior):
    expert = views.views_of_experts()
    share = np.stack([(expert == view).mean(axis=0) for view in range(2)], axis=-1)
    assert within_five_sigma(share, posterior.view_probability)
    for view in range(2):
        cluster = views.clusters(view)
        share = np.stack([(cluster == number).mean(axis=0) for number in range(3)], axis=-1)
        assert within_five_sigma(share[:6], posterior.cluster_probability[:, view])
        # The mean over 128 points is itself within .002.
        assert np.abs(share[6:] - views.cluster_probability[6:, view]).max() < 5 * 0.5 / np.sqrt(DRAWS) + 0.005
    assert views.silent.tolist() == [6, 7]


def test_every_pass_sees_the_same_draws(views):
    whole = views.clusters(1)
    parts = [views.clusters(1, slice(start, start + 700)) for start in range(0, DRAWS, 700)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(views.views_of_experts(slice(5, 9)), views.views_of_experts()[5:9])
    own = views.views_of_experts()[:, 2]
    mixed = views.clusters(own)
    np.testing.assert_array_equal(mixed, np.where(own[:, None] == 0, views.clusters(0), whole))


def test_pairs_together(views):
    a, b = PAIRS.T
    for view in range(2):
        share = np.mean([views.clusters(view)[:, a] == views.clusters(view)[:, b]], axis=1)[0]
        found = views.together(a, b, view=view)
        assert np.abs(share - found).max() < 5 * np.sqrt(2) * 0.5 / np.sqrt(DRAWS) + 0.005
    eta = views.cluster_probability
    np.testing.assert_allclose(views.together(0, 1, view=0), eta[0, 0] @ eta[1, 0])
    np.testing.assert_allclose(views.together("a", ["c", "g"], view=1), [eta[0, 1] @ eta[2, 1], eta[0, 1] @ eta[6, 1]])
    assert views.together([0, 6], [0, 6], view=0).tolist() == [1.0, 1.0]
    phi = views.view_probability[2]
    expected = phi[0] * views.together(a, b, view=0) + phi[1] * views.together(a, b, view=1)
    np.testing.assert_allclose(views.together(a, b, expert="cat"), expected)


def test_two_silent_items_are_together_over_the_same_weights(views, posterior):
    weight = np.random.default_rng(0).normal(
        posterior.weight_mean, np.sqrt(posterior.weight_variance), (20_000, 2, 3, 3)
    )
    feature = views.standardised(views.data.feature[6:])
    share = special.softmax(np.einsum("nf,dvfk->dvnk", feature, weight), axis=-1)
    each = (share[:, :, 0] * share[:, :, 1]).sum(axis=-1)
    found = views.pair_probability(np.array([6]), np.array([7]))[0]
    error = each.std(axis=0) * np.sqrt(1 / len(each) + 1 / DRAWS)
    assert (np.abs(found - each.mean(axis=0)) < 5 * error).all()
    # The product of means, which forgets that the weights are common, is something else.
    apart = (share.mean(axis=0)[:, 0] * share.mean(axis=0)[:, 1]).sum(axis=-1)
    assert (np.abs(apart - each.mean(axis=0)) > 10 * error).any()


def test_how_probably_experts_share_a_view(views, posterior):
    phi = posterior.view_probability
    np.testing.assert_allclose(views.same_view("ann", "dan"), phi[0] @ phi[3])
    assert views.same_view([1, 1], [1, 2]).tolist() == [1.0, pytest.approx(phi[1] @ phi[2])]
    number = views.num_views()
    assert within_five_sigma((number == 1).mean(), phi.prod(axis=0).sum())
    np.testing.assert_allclose(views.used_probability, 1 - (1 - phi).prod(axis=0))
    assert views.used_views().tolist() == [0, 1]


# ---- partitions ----


def test_the_partition_of_a_view(views, posterior):
    partition = views.read_as("partition", view=1)
    assert (partition.num_units, partition.num_draws) == (8, DRAWS)
    cluster = partition.clusters(slice(0, 50))
    own = np.take_along_axis(cluster, cluster, axis=1)
    np.testing.assert_array_equal(own, cluster)  # named by a member
    assert (cluster <= np.arange(8)).all()  # the first one
    label = views.clusters(1, slice(0, 50))
    same = label[:, :, None] == label[:, None]
    np.testing.assert_array_equal(cluster[:, :, None] == cluster[:, None], same)
    consensus = posterior.cluster_probability[:, 1].argmax(axis=1)
    estimate = partition.estimate()[:6]
    np.testing.assert_array_equal(estimate[:, None] == estimate, consensus[:, None] == consensus)
    pairs = partition.pairs()
    np.testing.assert_array_equal(np.stack(pairs[:2], axis=1), PAIRS)
    np.testing.assert_allclose(pairs.probability, views.together(*PAIRS.T, view=1))


def test_the_partition_of_an_expert_is_over_all_views(views):
    partition = views.read_as("partition", expert="cat")
    np.testing.assert_allclose(partition.pairs().probability, views.together(*PAIRS.T, expert=2))
    a, b = PAIRS.T
    share = (partition.clusters()[:, a] == partition.clusters()[:, b]).mean(axis=0)
    assert np.abs(share - partition.pairs().probability).max() < 5 * np.sqrt(2) * 0.5 / np.sqrt(DRAWS) + 0.005


def test_partitions_are_evaluated_like_those_of_records(views):
    partition = views.read_as("partition", view=0)
    system = Partition.from_codes([0, 0, 1, 1, 2, 2, 0, 1], records=views.ids["item"])
    score = evaluate(partition, system, metric="ari")
    drawn = partition.clusters()
    codes = np.array([0, 0, 1, 1, 2, 2, 0, 1])
    expected = [score_partition(codes, cluster)["ari"] for cluster in drawn[:40]]
    np.testing.assert_allclose(score.draws[:40], expected)
    assert score_partition(system, partition.estimate())["ari"] == pytest.approx(score.point)


def test_what_cannot_be_asked(views, monkeypatch):
    with pytest.raises(UnsupportedRequest, match=r"several partitions.*fit\.partition\(view\)"):
        evaluate(views, Partition.from_codes(np.zeros(8, int), records=views.ids["item"]))
    with pytest.raises(UnsupportedRequest, match="several partitions"):
        certainty(views)
    with pytest.raises(UnsupportedRequest, match="several partitions"):
        evaluate(views, Partition.from_codes(np.zeros(8, int)))
    monkeypatch.setattr("consilience.models.truth.views._MOST_PAIRS", 27)
    with pytest.raises(UnsupportedRequest, match=r"8 items have 28 pairs; ask for those that you need, by together"):
        views.read_as("partition", view=0).pairs()
    with pytest.raises(UnsupportedRequest, match="2 items and 1 items are no pairs; give two lists of one length"):
        views.together(["a", "b"], ["c"], view=0)
    with pytest.raises(UnsupportedRequest, match="1 experts and 2 experts are no pairs"):
        views.same_view([0], [1, 2])
    for wrong in ({}, {"view": 0, "expert": "ann"}):
        with pytest.raises(UnsupportedRequest, match="give view= or expert="):
            views.together(0, 1, **wrong)
    with pytest.raises(UnknownName, match="there is no view 2; the views are 0 to 1"):
        views.read_as("partition", view=2)
    with pytest.raises(UnknownName, match="the data have no expert 'eve'"):
        views.read_as("partition", expert="eve")
    with pytest.raises(UnknownName, match="the data have no item 'z'"):
        views.together("a", "z", view=0)
    for wrong in (-1, 8):
        with pytest.raises(UnknownName, match="codes are 0 to 7"):
            views.together(0, wrong, view=0)
    with pytest.raises(UnknownName, match="codes are 0 to 3"):
        views.together(0, 1, expert=99)


def test_precision_of_the_posterior_does_not_matter(views, constraints, posterior, made):
    single = type(posterior)(*(np.asarray(values, np.float32) for values in posterior))
    found = made(single, constraints)
    np.testing.assert_allclose(found.cluster_probability, views.cluster_probability, atol=1e-5)
    assert (found.clusters(0) == views.clusters(0)).mean() > 0.999


# ---- draws ----


def test_stored_draws(drawn, sites):
    clean = sites[1]
    assert drawn.num_draws == 60
    same = clean["view_of_expert"][:, :, None] == clean["view_of_expert"][:, None]
    found = drawn.views_of_experts()
    np.testing.assert_array_equal(found[:, :, None] == found[:, None], same)
    share = clean["cluster"][:, :, PAIRS[:15, 0] % 6] == clean["cluster"][:, :, PAIRS[:15, 1] % 6]
    of_views = drawn.pair_probability(PAIRS[:15, 0] % 6, PAIRS[:15, 1] % 6)
    order = [0, 1] if np.allclose(of_views.T, share.mean(axis=0)) else [1, 0]
    np.testing.assert_allclose(of_views.T[order], share.mean(axis=0))
    np.testing.assert_allclose(drawn.same_view(0, 3), same[:, 0, 3].mean())
    assert (drawn.num_views() == [len(set(row)) for row in clean["view_of_expert"].tolist()]).all()


def test_pairs_of_an_expert_follow_his_view_draw_by_draw(drawn):
    # Which view an expert has depends on what the clusters are: a product of both probabilities would be wrong.
    a, b = PAIRS.T
    for expert in range(4):
        partition = drawn.read_as("partition", expert=expert)
        found = partition.pairs().probability
        clusters = partition.clusters()
        share = (clusters[:, a] == clusters[:, b]).mean(axis=0)
        judged = (a < 6) & (b < 6)
        np.testing.assert_allclose(found[judged], share[judged], atol=1e-12)
        assert np.abs(found - share).max() < 5 * 0.5 / np.sqrt(60)
        np.testing.assert_allclose(drawn.together(a, b, expert=expert), found)
        # Of silent items: over the draws, from the weights of the view that is his in each.
        view = drawn.views_of_experts()[:, expert]
        probability = drawn._shares(np.arange(60), view, drawn.standardised(drawn.data.feature[6:]))
        own = drawn.clusters(view).astype(int)
        np.testing.assert_allclose(
            drawn.together(0, 7, expert=expert), np.mean(probability[np.arange(60), 1, own[:, 0]])
        )
        np.testing.assert_allclose(
            drawn.together(6, 7, expert=expert), np.mean((probability[:, 0] * probability[:, 1]).sum(axis=1))
        )


@pytest.mark.parametrize("ids", [list(range(101, 109)), [str(number) for number in range(101, 109)]])
def test_whole_numbers_are_ids_where_ids_are_whole_numbers(posterior, constraints, views, ids, made):
    found = made(posterior, constraints.replace(items=ids))
    np.testing.assert_array_equal(found.together(102, [101, "104"], view=0), views.together(1, [0, 3], view=0))
    for wrong in (1, "1", -101):
        with pytest.raises(UnknownName, match="no item"):
            found.together(wrong, 102, view=0)


def test_draws_do_not_depend_on_how_they_were_numbered(drawn, constraints, sites, made):
    clean = made(sites[1], constraints, num_draws=60)
    np.testing.assert_allclose(drawn.view_probability, clean.view_probability)
    np.testing.assert_allclose(drawn.cluster_probability, clean.cluster_probability)
    np.testing.assert_array_equal(drawn.clusters(0)[:, :6], clean.clusters(0)[:, :6])
    np.testing.assert_allclose(drawn.pair_probability(*PAIRS.T), clean.pair_probability(*PAIRS.T))


def test_silent_items_given_draws_of_the_weights(drawn):
    a, b = np.array([0, 6]), np.array([6, 7])
    for view in range(2):
        cluster = drawn.clusters(view)
        share = (cluster[:, a] == cluster[:, b]).mean(axis=0)
        assert np.abs(share - drawn.pair_probability(a, b)[:, view]).max() < 5 * 0.5 / np.sqrt(60)
    np.testing.assert_array_equal(drawn.clusters(1, slice(10, 20)), drawn.clusters(1)[10:20])


def test_the_pair_likelihood_has_no_cluster_of_an_item(constraints, sites, made):
    clean = sites[1]
    summed = {name: values for name, values in clean.items() if name not in ("cluster", "view_of_expert")}
    summed["view_probability"] = np.tile([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]], (60, 1, 1))
    found = made(summed, constraints, num_draws=60, cluster="pair")
    assert found.silent.tolist() == list(range(8))
    feature = found.standardised(constraints.feature)
    share = special.softmax(np.einsum("nf,dvfk->dvnk", feature, clean["weight"]), axis=-1)
    # Some draws may have been matched the other way round: the sum over views does not change.
    of_views = found.pair_probability(np.array([0]), np.array([1]))[0]
    np.testing.assert_allclose(of_views.sum(), (share[:, :, 0] * share[:, :, 1]).sum(axis=(1, 2)).mean())
    assert found.views_of_experts().shape == (60, 4)


def test_what_was_enumerated_is_drawn_given_the_other_sites(constraints, sites):
    resolved = MODEL.resolve(constraints, None, {"clusters": 3, "views": 2, "cluster": "enumerate"})
    one = {name: sites[1][name][0] for name in ("sensitivity", "specificity", "stick", "weight")}

    @jax.jit
    def summed_out(values, given):
        with handlers.trace() as trace, handlers.substitute(data=values), handlers.seed(rng_seed=0):
            density(given)
        return trace["view_probability"]["value"]

    exact = np.asarray(summed_out(one, arranged(resolved)))
    many = {name: np.repeat(values[None], 3000, axis=0) for name, values in one.items()}
    many["view_probability"] = np.repeat(exact[None], 3000, axis=0)
    drawn = module._summed_out(many, resolved.replace(given=None), jax.random.key(0))
    share = np.stack([(drawn["view_of_expert"] == view).mean(axis=0) for view in range(2)], axis=-1)
    assert within_five_sigma(share, exact, 3000)


def test_a_link_of_ones_own_places_silent_items(constraints, sites, made):
    wide = {**sites[1], "weight": np.concatenate([sites[1]["weight"]] * 2, axis=2)}
    link = lambda weight, x: x @ weight[:3] + 0.0 * weight[3:].sum()  # noqa: E731
    found = made(wide, constraints, num_draws=60, priors=Priors(logits=link))
    expected = made(sites[1], constraints, num_draws=60)
    np.testing.assert_allclose(found.cluster_probability, expected.cluster_probability, atol=1e-5)


@pytest.mark.parametrize("shape", ["of the linear link", "another"])
def test_a_link_of_ones_own_that_was_not_saved(constraints, sites, drawn, shape, made):
    marked = {**sites[1], OWN_LINK: np.ones(60, bool)}
    if shape == "another":  # which tells by itself
        marked = {**sites[1], "weight": sites[1]["weight"][..., :1]}
    found = made(marked, constraints, num_draws=60)
    for ask in (
        lambda: found.memberships(np.ones((2, 3))), lambda: found.clusters(0), lambda: found.cluster_probability,
        lambda: found.together("a", "g", view=0), lambda: found.together("g", "h", view=0),
        lambda: made({**marked, "weight": marked["weight"]}, constraints, num_draws=60).consensus(0),
    ):  # fmt: skip
        with pytest.raises(UnsupportedRequest, match="predicted: this fit has a link of your own, which is not saved"):
            ask()
    # What was judged is known.
    np.testing.assert_allclose(found.together(0, [1, 2], view=1), drawn.together(0, [1, 2], view=1))
    summed = {name: values for name, values in marked.items() if name not in ("cluster", "view_of_expert")}
    summed["view_probability"] = np.full((60, 4, 2), 0.5)
    for form in ("pair", "enumerate"):
        with pytest.raises(UnsupportedRequest, match="not among the draws, and follow from the weights: this fit has"):
            made(summed, constraints, num_draws=60, cluster=form)
