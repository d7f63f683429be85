"""Arrays of exact sizes and padded ones give the same answers, and data of like size share their programs."""

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.models.rows import padded_size, padding

pytestmark = [
    pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning"),
    pytest.mark.filterwarnings("ignore::consilience.errors.ConsilienceWarning"),
]

slow = pytest.mark.slow
ASCENTS = [
    pytest.param("dawid-skene", "cavi", {}, id="dawid-skene-cavi"),
    pytest.param("dawid-skene", "em", {"gold": "use"}, id="dawid-skene-em", marks=slow),
    pytest.param("mace", "cavi", {"gold": "use"}, id="mace-cavi", marks=slow),
    pytest.param("mace", "em", {}, id="mace-em"),
    pytest.param("one-coin", "cavi", {}, id="one-coin-cavi"),
    pytest.param("one-coin", "em", {"gold": "use"}, id="one-coin-em", marks=slow),
    pytest.param("glad", "cavi", {"accelerate": False, "tolerance": 1e-5}, id="glad-cavi", marks=slow),
    pytest.param("mpa", "cavi", {"gold": "use"}, id="mpa-cavi"),
    # Not as the fast set compiles: rounding then decides between steps of Newton's method that gain the same.
    pytest.param("mpa", "cavi", {"gold": "use", "hyperparameters": "learned"}, id="mpa-learned", marks=slow),
    pytest.param("mpa", "cavi", {"candidates": "closed", "author": 1}, id="mpa-author", marks=slow),
]
SAMPLERS = [pytest.param("dawid-skene", marks=slow), "one-coin", pytest.param("mpa", marks=slow)]
SHARED = [
    pytest.param("dawid-skene", {"method": "cavi"}, id="dawid-skene-cavi"),
    pytest.param(
        "one-coin", {"method": "gibbs", "draws": 30, "warmup": 10, "chains": 2}, id="one-coin-gibbs", marks=slow
    ),
    pytest.param("dawid-skene", {"method": "em"}, id="dawid-skene-em", marks=slow),
    pytest.param("mace", {"method": "cavi"}, id="mace-cavi", marks=slow),
    pytest.param("mace", {"method": "gibbs", "draws": 30, "warmup": 10, "chains": 2}, id="mace-gibbs", marks=slow),
    pytest.param("glad", {}, id="glad-cavi", marks=slow),
    pytest.param("mpa", {"method": "cavi", "candidates": "closed"}, id="mpa-cavi", marks=slow),
    pytest.param(
        "mpa", {"method": "gibbs", "candidates": "closed", "draws": 30, "warmup": 10, "chains": 2}, id="mpa-gibbs",
        marks=slow,
    ),
]  # fmt: skip


def crowd(seed, num_items=67, num_annotators=17, rows=331):
    """Return annotations of three labels; some items have none or gold, and one annotator has no annotations."""
    random = np.random.default_rng(seed)
    item, truth = np.sort(random.integers(0, num_items, rows)), random.integers(0, 3, num_items)
    annotator = random.integers(0, num_annotators - 1, rows)
    label = np.where(random.random(rows) < 0.7, truth[item], random.integers(0, 3, rows))
    return cs.Annotations.from_codes(
        item, annotator, label, num_items=num_items, num_annotators=num_annotators, num_labels=3,
        gold=np.where(random.random(num_items) < 0.3, truth, -1),
    )  # fmt: skip


def twice(name, data, **options):
    """Fit with arrays of exact sizes, and padded."""
    with padding(False):
        exact = cs.fit(name, data, progress=False, **options)
    return exact, cs.fit(name, data, progress=False, **options)


@pytest.mark.parametrize(("name", "method", "options"), ASCENTS)
def test_a_padded_ascent_is_the_exact_one(name, method, options):
    exact, padded = twice(name, crowd(1), method=method, dtype="float64", **options)
    np.testing.assert_allclose(exact.elbo, padded.elbo, rtol=1e-12)
    found = [dict(fit.posterior.hidden) for fit in (exact, padded)]
    for site in exact.posterior.sites:
        for own, fit in zip(found, (exact, padded), strict=True):
            own[site] = fit.posterior.summary(site).mean
    assert found[0].keys() == found[1].keys()
    for site, own in found[0].items():
        np.testing.assert_allclose(own, found[1][site], rtol=1e-12, atol=1e-12, err_msg=site)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_padded_sampler_draws_what_the_exact_one_does(name):
    with jax.enable_x64(True):
        exact, padded = twice(name, crowd(2), method="gibbs", draws=20, warmup=0, chains=2, seed=3)
    for site, own in exact.posterior.chains.items():
        np.testing.assert_allclose(own, padded.posterior.chains[site], rtol=1e-12, atol=1e-12, err_msg=site)
    np.testing.assert_array_equal(exact.truth.labels_of(np.arange(5)), padded.truth.labels_of(np.arange(5)))


@pytest.mark.parametrize(("name", "options"), SHARED)
def test_data_of_like_size_share_their_programs(name, options, compilations):
    sizes = [(197, 39, 927), (203, 40, 931), (199, 38, 925)]
    for seed, size in enumerate(sizes):
        if seed == 1:
            compilations.clear()
        fit = cs.fit(name, crowd(seed, *size), progress=False, **options)
        assert len(fit.labels()) == size[0]
        # Some members leave out the one without annotations.
        assert size[1] - fit.table("annotators")["annotator"].nunique() in (0, 1)
        cs.certainty(fit)
    assert not compilations


@pytest.mark.parametrize("options", [{}, {"start": "random", "agree": 2, "concentration": 0.4}])
def test_padded_entities_are_the_exact_ones(options):
    data = cs.simulate_records(97, num_values=(20, 15, 10, 5), missing=0.1, size_share=(0.6, 0.3, 0.1), seed=4)
    exact, padded = twice("dirichlet-entity", data, dtype="float64", **options)
    assert len(exact.elbo) > 2
    np.testing.assert_allclose(exact.elbo, padded.elbo, rtol=1e-12)
    own, other = dict(exact.posterior.hidden), dict(padded.posterior.hidden)
    assert own.keys() == other.keys()
    for name, values in own.items():
        np.testing.assert_allclose(values, other[name], rtol=1e-12, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(exact.truth.estimate(), padded.truth.estimate())


def test_sizes_of_padded_arrays():
    assert [padded_size(number, 16) for number in (3, 16, 17, 39, 40, 2003)] == [16, 16, 18, 40, 40, 2048]
    assert [padded_size(number, 1024, 1024) for number in (0, 1024, 1025, 20_000)] == [1024, 1024, 2048, 20_480]
    with padding(False):
        assert padded_size(3, 16) == 3
