"""The samplers against the posterior by brute force: all labels of tiny data, parameters integrated out."""

import functools
import itertools

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import gammaln

import consilience as cs
from consilience.data import Annotations
from consilience.inference.posterior import summarise
from consilience.models.dawid_skene import MODEL, Priors, gibbs
from consilience.models.dawid_skene.layout import prepare
from consilience.models.truth import LabelDraws

# Priors that tell the classes apart: the posterior has no mirror modes, and every transposition shows.
PREVALENCE = np.array([1.5, 2.5])
CONFUSION = np.array([[3.0, 1.0], [0.8, 2.0]])
PRIORS = Priors(prevalence=dist.Dirichlet(PREVALENCE), confusion=dist.Dirichlet(CONFUSION))
DATA = Annotations.from_codes(
    [0, 0, 1, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 0, 1, 0, 1, 1],
    weight=[1, 1, 2, 1, 1, 1, 0.5, 1, 1], gold=[-1, -1, 0, -1, -1], num_items=5, num_annotators=2, num_labels=2,
)  # fmt: skip


def log_normaliser(concentration):
    return gammaln(concentration).sum(-1) - gammaln(concentration.sum(-1))


@functools.cache
def enumerated(gold):
    """Return the means of prevalence, confusion and labels: a sum over all labels of all items."""
    totals, weights = [], []
    for label in map(np.array, itertools.product(range(2), repeat=DATA.num_items)):
        if gold == "use" and np.any((DATA.gold >= 0) & (label != DATA.gold)):
            continue
        prevalence = PREVALENCE + np.bincount(label, minlength=2)
        confusion = np.broadcast_to(CONFUSION, (2, 2, 2)).copy()
        np.add.at(confusion, (DATA.annotator, label[DATA.item], DATA.label), DATA.weight)
        weights.append(log_normaliser(prevalence) + log_normaliser(confusion).sum())
        means = prevalence / prevalence.sum(), confusion / confusion.sum(-1, keepdims=True), label
        totals.append(np.concatenate([np.ravel(part) for part in means]))
    weight = np.exp(np.array(weights) - np.max(weights))
    return weight @ np.array(totals) / weight.sum()


@pytest.mark.parametrize(("method", "gold"), [("gibbs", "ignore"), ("gibbs", "use"), ("nuts", "use")])
def test_a_sampler_has_the_means_of_brute_force(method, gold):
    fit = cs.fit(MODEL, DATA, PRIORS, method, draws=2000, warmup=300, gold=gold, seed=1)
    assert isinstance(fit.truth, LabelDraws)
    labels = fit.truth.draws.reshape(4, 2000, DATA.num_items).astype(float)
    samples = fit.samples()
    table = summarise({**{site: samples[site] for site in ("prevalence", "confusion")}, "label": labels})
    difference = table["mean"].to_numpy() - enumerated(gold)
    still = table["sd"] == 0  # known labels
    assert np.all(difference[still] == 0)
    assert still.sum() == (gold == "use")
    assert np.abs(difference[~still] / table["mcse"][~still]).max() < 4.5


def test_chains_start_apart_and_near_the_votes():
    data = cs.load("dawid-skene-1979")
    problem = jax.tree.map(np.asarray, prepare(MODEL.resolve(data)))
    starts = jax.vmap(gibbs.start, (0, None))(jax.random.split(jax.random.key(0), 50), problem)
    right = np.exp(np.einsum("cjtt->cjt", starts.log_confusion)).mean((1, 2))
    assert right.min() > 0.4
    assert np.exp(starts.log_prevalence).std(0).min() > 0.02


def test_draws_of_labels_follow_their_weights():
    log_weight = np.log(np.array([[0.2, 0.5, 0.3], [1e-30, 1.0, 1e-30], [3.0, 0.0, 1.0]]) + 1e-38)
    many = 20_000
    drawn = np.asarray(jax.vmap(gibbs.draw_labels, (0, None))(jax.random.split(jax.random.key(0), many), log_weight))
    expected = np.exp(log_weight) / np.exp(log_weight).sum(1, keepdims=True)
    shares = np.stack([(drawn == k).mean(0) for k in range(3)], axis=1)
    assert np.abs((shares - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-9) / many)).max() < 5


def test_impossible_labels_are_never_drawn():
    log_weight = np.where(np.arange(4) == 2, 0.0, -np.inf)[None].repeat(100_000, 0).astype(np.float32)
    assert np.all(gibbs.draw_labels(jax.random.key(0), log_weight) == 2)


def test_gibbs_and_cavi_name_the_same_labels_on_the_1979_data():
    data = cs.load("dawid-skene-1979")
    sampled = cs.fit("dawid-skene", data, method="gibbs")
    assert sampled.summary()["r_hat"].max() < 1.02
    assert sampled.labels()["label"].equals(cs.fit("dawid-skene", data).labels()["label"])
