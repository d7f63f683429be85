"""Tests of samplers are tested on samplers that are right, and on the same samplers with one planted bug."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from consilience.errors import NonFinite
from consilience.evaluation.calibration import (
    JointDistributionTest,
    joint_distribution_test,
    pit_values,
    rank_statistics,
    uniformity,
    with_second_moments,
)
from consilience.models.random import log_gamma

# ---- the joint-distribution test, by hand ----


def test_the_difference_is_the_mean_along_a_chain_minus_its_start():
    steps = np.array([[1.0, 2.0, 6.0], [3.0, 2.0, 4.0]])  # what each sweep adds, (round, chain)
    calls = iter(steps)
    test = joint_distribution_test(
        jax.random.key(0),
        start=lambda key: (np.array([10.0, 20.0, 30.0]), None),
        sweep=lambda key, values, data: values + next(calls),
        resimulate=lambda key, values, data: (values, data),
        functions=lambda values, data: {"x": values, "constant": np.ones(3)},
        rounds=2,
    )
    moved = np.array([(1 + 4) / 2, (2 + 4) / 2, (6 + 10) / 2])
    assert test.functions == ("x", "constant")
    assert test.difference[0] == pytest.approx(moved.mean())
    assert test.standard_error[0] == pytest.approx(moved.std(ddof=1) / np.sqrt(3))
    assert test.z[1] == 0
    assert test.largest == pytest.approx(moved.mean() / test.standard_error[0])
    assert list(test.table.columns) == ["function", "difference", "standard_error", "z"]


@pytest.mark.parametrize(("difference", "error", "z"), [(0.0, 0.0, 0.0), (1.0, 0.0, np.inf), (np.nan, np.nan, np.inf)])
def test_functions_without_a_standard_error(difference, error, z):
    test = JointDistributionTest(
        functions=("x",), difference=np.array([difference]), standard_error=np.array([error]), num_chains=2
    )
    assert test.z[0] == z


def test_second_moments_of_quantities():
    a, b, c = np.array([2.0, 3.0]), np.array([5.0, 7.0]), np.array([1.0, -1.0])
    functions = with_second_moments({"a": a, "b": b, "c": c})
    assert list(functions) == ["a", "b", "c", "a^2", "b^2", "c^2", "a × b", "a × c", "b × c"]
    np.testing.assert_array_equal(functions["b^2"], [25, 49])
    np.testing.assert_array_equal(functions["b × c"], [5, -7])


# ---- the joint-distribution test on Dawid and Skene's model: 25 items, 4 annotators, 3 labels ----

ITEMS, ANNOTATORS, LABELS = 25, 4, 3
PREVALENCE_PRIOR = np.array([2.0, 1.5, 1.0])
CONFUSION_PRIOR = np.tile([[4.0, 1.0, 0.7], [0.7, 4.0, 1.0], [1.0, 0.7, 4.0]], (ANNOTATORS, 1, 1))
# 80 of the 100 possible reports are there; which ones is fixed.
REPORTED = np.random.default_rng(0).permutation(ITEMS * ANNOTATORS).reshape(ITEMS, ANNOTATORS) < 80

CORRECT = {
    "concentration": 1.0, "shift": 0.0, "use_prior": 1.0, "use_prevalence": 1.0, "transposed": False,
    "likelihood_weight": 1.0, "stale": False, "one_key": False,
}  # fmt: skip
MUTANTS = {
    "half the concentration": {"concentration": 0.5},
    "prior of confusion left out": {"use_prior": 0.0},
    "prevalence left out of the labels": {"use_prevalence": 0.0},
    "confusion transposed": {"transposed": True},
    "likelihood weighted 1.05": {"likelihood_weight": 1.05},
    "counts from stale labels": {"stale": True},
    "a key used twice": {"one_key": True},
    "concentration less 0.2": {"shift": 0.2},
}
# The two that move least; four times the chains show them at z of 12 and more.
WEAK = ("likelihood weighted 1.05", "a key used twice")
QUICK = ("half the concentration", "confusion transposed")


def dirichlet(key, concentration):
    return jax.nn.softmax(log_gamma(key, concentration), axis=-1)


def log_likelihoods(confusion, reports):
    """Return the log probability of each item's reports under each true label, ``(item, label)``."""
    by_report = jnp.log(confusion)[np.arange(ANNOTATORS), :, reports]
    return jnp.sum(jnp.where(REPORTED[:, :, None], by_report, 0.0), axis=1)


def draw_prior(key, num_chains):
    """Draw by NumPy, which the sampler does not share anything with."""
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    prevalence = generator.standard_gamma(PREVALENCE_PRIOR, (num_chains, LABELS))
    confusion = generator.standard_gamma(CONFUSION_PRIOR, (num_chains, *CONFUSION_PRIOR.shape))
    prevalence, confusion = (gamma / gamma.sum(axis=-1, keepdims=True) for gamma in (prevalence, confusion))
    below = prevalence.cumsum(axis=-1)[:, None, :-1] < generator.random((num_chains, ITEMS, 1))
    return jax.tree.map(jnp.asarray, {"prevalence": prevalence, "confusion": confusion, "label": below.sum(axis=-1)})


def draw_reports(key, values):
    """Draw a report of every annotator on every item, ``(item, annotator)``."""
    rows = jnp.swapaxes(values["confusion"][:, values["label"]], 0, 1)
    below = rows.cumsum(axis=-1)[:, :, :-1] < jax.random.uniform(key, (ITEMS, ANNOTATORS, 1))
    return below.sum(axis=-1)


def gibbs_sweep(key, values, reports, bugs):
    key_label, key_prevalence, key_confusion = jax.random.split(key, 3)
    confusion = jnp.where(bugs["transposed"], jnp.swapaxes(values["confusion"], -1, -2), values["confusion"])
    log_joint = bugs["use_prevalence"] * jnp.log(values["prevalence"])
    log_joint += bugs["likelihood_weight"] * log_likelihoods(confusion, reports)
    label = jax.random.categorical(key_label, log_joint)
    counted = jnp.where(bugs["stale"], values["label"], label)
    prior = bugs["concentration"] * PREVALENCE_PRIOR - bugs["shift"]
    prevalence = dirichlet(key_prevalence, prior + jnp.bincount(counted, length=LABELS))
    prior = bugs["use_prior"] * (bugs["concentration"] * CONFUSION_PRIOR - bugs["shift"])
    counts = jnp.zeros(prior.shape).at[np.arange(ANNOTATORS), counted[:, None], reports].add(REPORTED)
    key_confusion = jnp.where(bugs["one_key"], key_prevalence, key_confusion)
    confusion = dirichlet(key_confusion, jnp.maximum(prior + counts, 0.01))
    return {"prevalence": prevalence, "confusion": confusion, "label": label}


def quantities(values, reports):
    """Return what is tested of one chain."""
    prevalence, confusion, label = values["prevalence"], values["confusion"], values["label"]
    log_likelihood = log_likelihoods(confusion, reports)
    leading = jnp.argmax(log_likelihood + jnp.log(prevalence), axis=-1)
    return {
        "prevalence 0": prevalence[0], "confusion 0 0 0": confusion[0, 0, 0], "confusion 0 1 1": confusion[0, 1, 1],
        "confusion 1 0 1": confusion[1, 0, 1], "mean diagonal": jnp.einsum("att->", confusion) / 12,
        "log likelihood": log_likelihood[np.arange(ITEMS), label].sum(), "share of label 0": (label == 0).mean(),
        "share of leading labels": (label == leading).mean(),
    }  # fmt: skip


# Chains that run at once, and as many as show a bug that is not weak (z is 21 and more); rounds of sweep and reports.
NUM_CHAINS, ENOUGH, ROUNDS = 8000, 2000, 4


def of_all(function):
    """Turn a function of one chain, which takes a key first, into one of all chains."""

    def all_chains(key, *rest):
        return jax.vmap(function)(jax.random.split(key, len(jax.tree.leaves(rest)[0])), *rest)

    return jax.jit(all_chains)


sweep_all, draw_all_reports = of_all(gibbs_sweep), of_all(draw_reports)
quantities_of_all = jax.jit(jax.vmap(quantities))


def largest_z(seed, bugs, repeats, num_chains):
    """Return the largest |z| of several runs together, which have so many times as many chains."""
    bugs = {name: jnp.full(num_chains, value) for name, value in {**CORRECT, **bugs}.items()}

    def start_all(key):
        key_values, key_reports = jax.random.split(key)
        values = draw_prior(key_values, num_chains)
        return values, draw_all_reports(key_reports, values)

    tests = [
        joint_distribution_test(
            jax.random.key(repeats * seed + repeat),
            start_all,
            lambda key, values, reports: sweep_all(key, values, reports, bugs),
            lambda key, values, reports: (values, draw_all_reports(key, values)),
            lambda values, reports: with_second_moments(quantities_of_all(values, reports)),
            rounds=ROUNDS,
        )
        for repeat in range(repeats)
    ]
    return np.abs(sum(test.z for test in tests)).max() / np.sqrt(repeats)


@pytest.mark.parametrize("repeats", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_correct_sampler_passes(repeats):
    assert largest_z(0, {}, repeats, NUM_CHAINS if repeats > 1 else ENOUGH) < 4.5


@pytest.mark.parametrize("bug", [
    pytest.param(bug, marks=() if bug in QUICK else pytest.mark.slow) for bug in MUTANTS
])  # fmt: skip
def test_a_sampler_with_a_bug_fails(bug):
    assert largest_z(2, MUTANTS[bug], *(4, NUM_CHAINS) if bug in WEAK else (1, ENOUGH)) > 8


# ---- ranks ----


def test_ranks_by_hand():
    draws = np.array([[[0.1, 5.0], [0.2, 5.0], [0.3, 5.0]], [[1.0, 5.0], [2.0, 4.0], [3.0, 6.0]]])
    true = np.array([[0.25, 4.0], [0.5, 5.5]])
    np.testing.assert_array_equal(rank_statistics(jax.random.key(0), true, draws), [[2, 0], [0, 2]])
    np.testing.assert_allclose(pit_values(np.array([[0, 3]]), 3), [[0.125, 0.875]])


def test_ties_are_broken_at_random():
    true, draws = np.zeros((6000, 1)), np.tile([-1.0, 0.0, 0.0], (6000, 1))[:, :, None]
    ranks = rank_statistics(jax.random.key(0), true, draws)[:, 0]
    count = np.bincount(ranks, minlength=4)
    assert count[0] == 0
    # One draw is below and two are ties: ranks 1, 2 and 3, each with probability 1/3.
    assert np.all(np.abs(count[1:] - 2000) < 5 * np.sqrt(6000 * 2 / 9))


def test_ranks_need_finite_values():
    with pytest.raises(NonFinite, match="finite"):
        rank_statistics(jax.random.key(0), np.zeros((1, 1)), np.full((1, 3, 1), np.nan))


def test_uniformity_by_hand():
    # Forty replications, three draws, two bins: ranks 0 and 1 against 2 and 3.
    ranks = np.repeat([0, 1, 2, 3], [16, 12, 6, 6])[:, None]
    found = uniformity(ranks, 3)
    assert found.chi_square[0] == pytest.approx(stats.chi2.sf((28 - 20) ** 2 / 20 + (12 - 20) ** 2 / 20, 1))
    assert found.kolmogorov_smirnov[0] == pytest.approx(stats.kstwo.sf(28 / 40 - 0.5, 40))
    assert found.smallest == pytest.approx(2 * min(found.chi_square[0], found.kolmogorov_smirnov[0]))


def conjugate_ranks(key, spread=1.0, shift=0.0, num_replications=1000, num_draws=99):
    """Calibrate a normal mean, prior N(0, 1) and one observation of variance 1: the mean, and its sign."""
    key_true, key_data, key_draws, key_ties = jax.random.split(key, 4)
    true = jax.random.normal(key_true, (num_replications,))
    observed = true + jax.random.normal(key_data, (num_replications,))
    noise = jax.random.normal(key_draws, (num_replications, num_draws))
    draws = observed[:, None] / 2 + shift + spread * np.sqrt(0.5) * noise
    return rank_statistics(key_ties, np.stack([true, true > 0], axis=-1), np.stack([draws, draws > 0], axis=-1))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_correct_posterior_is_calibrated_also_in_what_has_ties(seed):
    assert uniformity(conjugate_ranks(jax.random.key(seed)), 99).smallest > 0.001


@pytest.mark.parametrize("wrong", [{"spread": 0.8}, {"spread": 1.25}, {"shift": 0.15}])
def test_a_wrong_posterior_is_not_calibrated(wrong):
    assert uniformity(conjugate_ranks(jax.random.key(0), **wrong), 99).smallest < 1e-6


def test_p_values_of_uniform_ranks_are_valid():
    ranks = np.random.default_rng(0).integers(0, 100, (500, 2000))
    found = uniformity(ranks, 99)
    for p_values in (found.chi_square, found.kolmogorov_smirnov):
        for level in (0.01, 0.1):
            share = np.mean(p_values < level)
            assert share < level + 5 * np.sqrt(level * (1 - level) / 2000)
    assert np.mean(found.chi_square < 0.1) > 0.1 - 5 * np.sqrt(0.09 / 2000)
