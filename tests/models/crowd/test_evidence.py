"""Both forms of evidence in probability: the same crowd as a table and as a lift, and both by brute force."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.models import dawid_skene
from consilience.models.crowd.agreement import agreement_moments
from consilience.models.crowd.evidence import Dense, Lifted, draw_rows


@st.composite
def crowds(draw):
    """Return probabilities ``(annotator, class, label)`` and the evidence, which may avoid the truth, and shares.

    A lifted crowd says a label with ``wrong``, and its own class with more or less: rows need one total.
    """
    size, number = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = random.dirichlet(np.ones(size))
    with jax.enable_x64(True):
        if draw(st.booleans()):
            rows = random.dirichlet(np.ones(number), (size, number))
            return rows, Dense(jnp.log(rows)), share
        # Worse than chance too: θ may be less than what luck has.
        if draw(st.booleans()):  # mace
            knows = random.beta(1, 1, size)[:, None]
            wrong = (1 - knows) * random.dirichlet(np.ones(number), size)
            right = wrong + knows
        else:  # one coin
            right = np.repeat(random.beta(1, 1, size)[:, None], number, axis=1)
            wrong = (1 - right) / (number - 1)
        rows = np.where(np.eye(number, dtype=bool), right[:, None, :], wrong[:, None, :])
        return rows, Lifted(jnp.log(wrong), jnp.log(right) - jnp.log(wrong)), share


@settings(max_examples=25)
@given(crowds())
def test_what_is_asked_of_a_crowd_is_that_of_brute_force(crowd):
    rows, evidence, share = crowd
    size, number, _ = rows.shape
    together = np.zeros(number)
    for one, other in itertools.permutations(range(size), 2):
        together += share[one] * share[other] * (rows[one] * rows[other]).sum(-1)
    with jax.enable_x64(True):
        np.testing.assert_allclose(evidence.rows(), rows, rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(evidence.rows(np.array([size - 1, 0])), rows[[size - 1, 0]], rtol=1e-10, atol=1e-15)
        np.testing.assert_allclose(evidence.right(), np.einsum("jtt->jt", rows), rtol=1e-10)
        np.testing.assert_allclose(evidence.average(share), np.tensordot(share, rows, 1), rtol=1e-10)
        np.testing.assert_allclose(evidence.agreement(share), together / (1 - (share**2).sum()), rtol=1e-7)


@settings(max_examples=10)
@given(crowds(), st.integers(0, 2**32 - 1))
def test_annotations_follow_the_rows(crowd, seed):
    rows, evidence, _ = crowd
    (size, number, _), many = rows.shape, 4000
    annotator, truth = (np.repeat(codes.ravel(), many) for codes in np.indices((size, number)))
    label = evidence.annotate(np.random.default_rng(seed), annotator, truth)
    share = (label.reshape(size, number, many, 1) == np.arange(number)).mean(axis=2)
    assert np.abs(share - rows).max() < 6 * np.sqrt(0.25 / many)
    with jax.enable_x64(True):
        says = np.exp(evidence.said(annotator[::many], truth[::many])).reshape(rows.shape)
    np.testing.assert_allclose(says, rows, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("number", [3, 40])
def test_labels_of_no_probability_are_never_drawn(number):
    """Of few labels by counting, of many by search."""
    random, rows = np.random.default_rng(0), np.zeros((3, number))
    rows[0, [0, 2]], rows[1, 1], rows[2, :3] = (0.2, 0.8), 1.0, (0.5, 0.25, 0.25)
    drawn = draw_rows(random, rows, np.repeat([0, 1, 2], 20_000)).reshape(3, -1)
    share = np.stack([np.bincount(part, minlength=number) for part in drawn]) / 20_000
    np.testing.assert_array_equal(share == 0, rows == 0)
    assert np.abs(share - rows).max() < 5 * np.sqrt(0.25 / 20_000)
    always = Lifted(jnp.full((1, number), -80.0), jnp.full((1, number), 80.0))
    said = always.annotate(random, np.zeros(50, int), np.arange(50) % 2)
    np.testing.assert_array_equal(said, np.arange(50) % 2)


@pytest.mark.parametrize("number", [3, 7, 49])
def test_nobody_is_right_more_often_than_always(number):
    """A third in float32, three times, is more than one."""
    share = np.full(number, 1 / number, "float32")
    always = Dense(jnp.log(jnp.maximum(jnp.eye(number), 1e-38))[None]).right() @ share
    assert float(always[0]) <= 1 + 1e-6
    at_random = Dense(jnp.log(jnp.tile(share, (1, number, 1)))).right() @ share
    np.testing.assert_allclose(at_random, 1 / number, rtol=1e-5)


def test_moments_of_the_agreement_are_those_of_its_draws():
    random = np.random.default_rng(0)
    concentration, share = random.gamma(2, 1, (5, 3, 4)) + 0.3, random.dirichlet(np.ones(5))
    rows = random.standard_gamma(concentration, (20_000, *concentration.shape))
    rows /= rows.sum(axis=-1, keepdims=True)
    draws = np.asarray(jax.lax.map(lambda one: Dense(jnp.log(one)).agreement(share), rows))
    mean, variance = agreement_moments(concentration, share)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(draws))).all()
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.1)


# ---- of a fit


@pytest.fixture(scope="module")
def data():
    return dawid_skene.simulate(jax.random.key(2), num_items=12, num_annotators=4, annotations_per_item=3)[0]


@pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning")
@pytest.mark.parametrize(("name", "method"), [
    ("dawid-skene", "cavi"), ("dawid-skene", "gibbs"), ("dawid-skene", "em"), ("mace", "cavi"), ("one-coin", "cavi"),
])  # fmt: skip
def test_a_fitted_crowd_annotates_by_its_parameters(data, name, method):
    fit = cs.fit(name, data, method=method, draws=300, chains=1, warmup=100)
    crowd, label, many = fit.truth.crowd, np.arange(data.num_items) % 3, 3000
    random = np.random.default_rng(0)
    said = np.stack([crowd.annotate(random, draw % 300, label) for draw in range(many)])
    table = fit.confusion().sort_values(["annotator", "true_label", "label"])
    mean = table["probability"].to_numpy().reshape(4, 3, 3)[data.annotator, label[data.item]]
    shares = (said[:, :, None] == np.arange(3)).mean(0)
    # The draws of a closed form have an error of their own: 300 of them are used, many times each.
    spread = 0.3 if method == "cavi" else 0.0
    error = np.sqrt(mean * (1 - mean) / many + spread**2 / 300) + 1e-9
    assert np.abs((shares - mean) / error).max() < 5
    first, again = (crowd.annotate(np.random.default_rng(1), 3, label) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_annotators_of_the_model_agree_as_it_expects():
    data = dawid_skene.simulate(jax.random.key(5), num_items=100, num_annotators=6, annotations_per_item=4)[0]
    found = cs.agreement(cs.fit("dawid-skene", data, method="cavi", draws=400))
    assert found.two_sided_p > 0.01
    assert found.interval[0] < found.value < found.interval[1]
