"""Numbers of views and clusters: whatever they were, equal clusterings come out with equal ones."""

import numpy as np
import pytest

from consilience.models.expert_views import MODEL
from consilience.models.expert_views.canonical import (
    OWN_LINK,
    Labels,
    canonical,
    canonical_labels,
    label_free,
    match_draws,
    sticks,
    view_weights,
)
from consilience.models.expert_views.priors import Priors


def of_fit(data, priors=None):
    return MODEL.resolve(data, priors, {"clusters": 3, "views": 2})


def in_chains(sites):
    return {name: values.reshape(2, -1, *values.shape[1:]) for name, values in sites.items()}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_draws_that_were_shuffled_come_out_as_before(constraints, sites):
    shuffled, clean = (in_chains(one) for one in sites)
    assert any(not np.array_equal(shuffled[name], clean[name]) for name in shuffled)
    found = canonical(shuffled, of_fit(constraints))
    assert_equal(found, canonical(clean, of_fit(constraints)))
    # What is left of the draws' own labels is noise: views and clusters are matched to those that made them.
    of_clean = match_draws(sites[1], 3)
    assert (of_clean.view == of_clean.view[0]).mean() > 0.95
    assert (of_clean.cluster == of_clean.cluster[0]).mean() > 0.95


def test_canonical_draws_stay_as_they_are(constraints, sites):
    once = canonical(in_chains(sites[0]), of_fit(constraints))
    assert_equal(canonical(once, of_fit(constraints)), once)


def test_nothing_but_numbers_changes(constraints, sites):
    before, after = in_chains(sites[0]), canonical(in_chains(sites[0]), of_fit(constraints))
    for one in (before, after):
        one["together"] = one["cluster"][..., :, None] == one["cluster"][..., None, :]
        logits = np.einsum("cdgfk,nf->cdgnk", one["weight"], np.random.default_rng(0).normal(size=(5, 3)))
        share = np.exp(logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)))
        one["predicted"] = np.einsum("...nk,...mk->...nm", share, share)
        own = one["view_of_expert"][..., None, None]
        one["of_experts"] = np.take_along_axis(one["together"].reshape(2, 30, 2, 36), own[..., 0], axis=2)
        one["weight_of_own"] = np.take_along_axis(view_weights(one["stick"]), one["view_of_expert"], axis=2)
    for name in ("of_experts", "weight_of_own", "sensitivity"):
        np.testing.assert_allclose(before[name], after[name], rtol=1e-6)
    of_views = (np.sort(one["predicted"].sum(axis=(-1, -2))) for one in (before, after))
    np.testing.assert_allclose(*of_views)


def test_a_link_of_ones_own_keeps_the_numbers_of_clusters(constraints, sites):
    found = canonical(in_chains(sites[0]), of_fit(constraints, Priors(logits=lambda weight, x: x @ weight)))
    matching = match_draws(sites[0], 3)
    expected = np.take_along_axis(sites[0]["cluster"], matching.view[:, :, None], axis=1)
    np.testing.assert_array_equal(found["cluster"].reshape(expected.shape), expected)


def test_draws_of_a_link_of_ones_own_are_marked(constraints, sites):
    own = canonical(in_chains(sites[0]), of_fit(constraints, Priors(logits=lambda weight, x: x @ weight)))
    assert own[OWN_LINK].shape == (2, 30)
    assert OWN_LINK not in canonical(in_chains(sites[0]), of_fit(constraints))
    assert OWN_LINK not in label_free(own, of_fit(constraints))


def test_draws_without_clusters_are_matched_by_what_is_most_probable(constraints, sites, shuffle):
    clean = {**sites[1], "view_probability": np.eye(2)[sites[1]["view_of_expert"]]}
    moved = shuffle(clean, np.random.default_rng(5))
    moved["view_probability"] = np.eye(2)[moved["view_of_expert"]]
    both = []
    for one in (clean, moved):
        own = {name: values for name, values in in_chains(one).items() if name not in ("cluster", "view_of_expert")}
        both.append(canonical(own, of_fit(constraints)))
    assert_equal(*both)


def test_the_posterior_of_an_ascent(constraints, posterior):
    order = np.array([[2, 0, 1], [1, 2, 0]])
    moved = posterior._replace(
        view_probability=posterior.view_probability[:, ::-1], stick=posterior.stick * 0,
        weight_mean=np.take_along_axis(posterior.weight_mean[::-1], order[:, None], axis=2),
        weight_variance=np.take_along_axis(posterior.weight_variance[::-1], order[:, None], axis=2),
        cluster_probability=np.take_along_axis(posterior.cluster_probability[:, ::-1], order[None], axis=2),
    )  # fmt: skip
    fields = [{name: values[None, None] for name, values in one._asdict().items()} for one in (posterior, moved)]
    stood, found = (canonical(one, of_fit(constraints, Priors(concentration=2.0))) for one in fields)
    assert_equal(stood, fields[0])  # it was canonical already
    # Sticks follow from the experts: 1 + 2.35 in the first view, and 2 + 1.65 for what comes after it.
    np.testing.assert_allclose(found.pop("stick")[0, 0], [[3.35, 3.65]])
    stood.pop("stick")
    assert_equal(found, stood)


def test_experts_with_accuracies_per_view(constraints, posterior):
    wide = np.stack([posterior.sensitivity, posterior.sensitivity + 1], axis=1)
    fields = posterior._replace(
        sensitivity=wide, specificity=wide, view_probability=posterior.view_probability[:, ::-1]
    )._asdict()
    found = canonical({name: values[None, None] for name, values in fields.items()}, of_fit(constraints))
    np.testing.assert_array_equal(found["sensitivity"][0, 0], wide[:, ::-1])


def test_ties_go_to_the_first_member():
    of_expert = np.eye(3)[[2, 1, 1, 2]]  # two experts each, the first of them in view 2; nobody in view 0
    of_item = np.eye(2)[[[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 0]]].astype(float)
    view, cluster = canonical_labels(Labels(of_expert, of_item))
    assert view.tolist() == [2, 1, 0]
    assert cluster.tolist() == [[0, 1], [1, 0], [1, 0]]


def test_sticks_and_weights():
    stick = np.random.default_rng(0).beta(1, 1, (5, 3))
    weight = view_weights(stick)
    np.testing.assert_allclose(weight.sum(axis=1), 1)
    np.testing.assert_allclose(sticks(weight), stick)
    assert view_weights(np.zeros((2, 0))).tolist() == [[1.0], [1.0]]
    assert sticks(np.array([[1.0, 0.0, 0.0]])).tolist() == [[1.0, 0.5]]  # nothing is left to break


@pytest.mark.parametrize("summed_out", [False, True])
def test_what_does_not_depend_on_numbers(constraints, sites, summed_out):
    one, other = (label_free({**in_chains(draws)}, of_fit(constraints)) for draws in sites)
    if summed_out:
        both = [
            {"view_probability": np.eye(2)[draws["view_of_expert"]], "sensitivity": draws["sensitivity"]}
            for draws in map(in_chains, sites)
        ]
        one, other = (label_free(draws, of_fit(constraints)) for draws in both)
    assert_equal(one, other)
    assert one["same_view"].shape == (2, 30, 3)
    if not summed_out:
        assert one["together"].shape == (2, 30, 24)
        assert set(np.unique(one["num_views"])) <= {1.0, 2.0}
