"""Simulated annotations: who annotates, and how often annotators are right."""

import jax
import numpy as np
import pytest

from consilience.errors import UnsupportedRequest
from consilience.models.dawid_skene import Diagonal, Priors, simulate


def test_annotators_of_an_item_differ_and_all_sets_are_as_likely():
    data, _ = simulate(jax.random.key(0), Priors(), num_items=6000, num_annotators=5, annotations_per_item=3)
    chosen = data.annotator.reshape(6000, 3)
    assert np.all(np.diff(chosen, axis=1) > 0)
    _, number = np.unique(chosen, axis=0, return_counts=True)
    assert len(number) == 10
    assert np.abs(number - 600).max() < 5 * np.sqrt(6000 * 0.1 * 0.9)


def test_labels_follow_the_confusion_matrices():
    data, values = simulate(jax.random.key(1), Priors(), num_items=20_000, num_annotators=3)
    true = values["label"][data.item]
    counts = np.zeros((3, 3, 3))
    np.add.at(counts, (data.annotator, true, data.label), 1)
    size = counts.sum(-1, keepdims=True)
    expected = values["confusion"]
    error = np.sqrt(expected * (1 - expected) / size) + 1e-9
    assert np.abs((counts / size - expected) / error).max() < 5
    share = np.bincount(values["label"]) / 20_000
    prevalence = values["prevalence"]
    assert np.abs((share - prevalence) / np.sqrt(prevalence * (1 - prevalence) / 20_000)).max() < 5


def test_given_values_are_kept_and_labels_drawn_anew():
    _, values = simulate(jax.random.key(2), Priors(), num_items=50, num_annotators=4)
    data, again = simulate(jax.random.key(3), Priors(), num_items=50, num_annotators=4, values=values)
    np.testing.assert_array_equal(again["confusion"], values["confusion"])
    np.testing.assert_array_equal(again["prevalence"], values["prevalence"])
    assert np.any(again["label"] != values["label"])
    assert data.gold is None


def test_priors_gold_and_too_many_annotations():
    data, values = simulate(
        jax.random.key(4), Priors(confusion=Diagonal(1e4)), num_items=300, num_annotators=2, gold="use"
    )
    assert np.mean(data.label == values["label"][data.item]) > 0.99
    np.testing.assert_array_equal(data.gold[1::2], values["label"][1::2])
    assert np.all(data.gold[::2] == -1)
    with pytest.raises(UnsupportedRequest, match="4 annotations"):
        simulate(jax.random.key(0), num_annotators=3, annotations_per_item=4)
