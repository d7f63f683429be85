"""The number of entities after EM by a short Gibbs run: reproducible, refused where it does not hold, calibrated."""

import dataclasses
import importlib

import numpy as np
import pytest

import consilience as cs
from consilience.models.block_linkage import entity_interval
from consilience.models.block_linkage.entity_interval import _started_at
from consilience.models.block_linkage.gibbs.sampler import prepare
from consilience.models.block_linkage.linkage import Linkage

SIMULATED = {
    "num_values": (300, 800, 90, 12, 28, 100), "exponent": (1.0, 0.9, 0.1, 0.0, 0.0, 0.6),
    "size_share": (0.75, 0.19, 0.06), "distortion": 0.05,
}  # fmt: skip


def without_entities(records):
    return records.replace(entity=None, entities=None)


@pytest.fixture(scope="module")
def records():
    return cs.simulate_records(250, seed=5, **SIMULATED)


def fit(records, **options):
    return cs.fit("block-linkage", without_entities(records), **{"draws": 20} | options)


@pytest.fixture(scope="module")
def fitted(records):
    return fit(records, seed=3)


def test_the_number_is_sampled_and_entities_stay_those_of_em(fitted, records):
    count = fitted.num_entities()
    assert not count.links_alone
    assert len(count.draws) >= 500
    assert count.basis.startswith("independent errors; pairs with log odds above −10; Gibbs sampling of links and ")
    assert abs(count.value - len(np.unique(records.entity))) < 20
    assert count.point == len(np.unique(fitted.truth.estimate()))
    assert len(fitted.truth.num_clusters()) == 20
    assert count.expected.sum() == pytest.approx(count.value)


def test_equal_seeds_give_equal_numbers_and_the_run_is_made_once(fitted, records, monkeypatch):
    again = fit(records, seed=3)
    np.testing.assert_array_equal(again.num_entities().draws, fitted.num_entities().draws)
    assert not np.array_equal(fit(records, seed=4).num_entities().draws, fitted.num_entities().draws)
    module = importlib.import_module("consilience.models.block_linkage.truth")  # the package has a function of the name
    monkeypatch.setattr(module, "interval_of_entities", None)
    assert again.num_entities().value == fitted.num_entities().value


def test_nothing_is_compiled_by_xla(records, compilations):
    found = fit(records, seed=1)
    found.truth.estimate()
    compilations.clear()
    found.num_entities()
    assert not compilations


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_error_classes_are_sampled_as_such():
    records = cs.simulate_records(
        200, num_values=(600, 800, 400, 120), size_share=(0.75, 0.25), distortion=0.05, errors="one", seed=4
    )
    found = fit(records, likelihood="error-classes")
    assert found.num_entities().basis.startswith("error classes; pairs")


@pytest.mark.parametrize("case", ["likelihood", "records", "pairs", "large entities"])
def test_where_there_is_no_run_the_interval_is_that_of_em(case, records, monkeypatch):
    options = {}
    if case == "likelihood":
        options = {"likelihood": "dirichlet-multinomial"}
    elif case == "records":
        monkeypatch.setattr(entity_interval, "MOST_RECORDS", 200)
    elif case == "pairs":
        monkeypatch.setattr(entity_interval, "MOST_PAIRS", 50)
    else:
        monkeypatch.setattr(entity_interval, "_FEW_LARGE", -1.0)
    count = fit(records, **options).num_entities()
    assert "Gibbs" not in repr(count)
    assert "by the doubt about links alone, too narrow" in repr(count) or "Laplace's method" in repr(count)


@pytest.mark.parametrize("r_hats", [[1.0], [1.2, 1.0], [1.2, 1.2, 1.3]], ids=["once", "twice", "never"])
def test_chains_that_disagree_go_on(r_hats, fitted, records, monkeypatch):
    right, left = entity_interval.convergence, iter([*r_hats, 1.0])
    looked_at = []

    def disagreeing(number):
        looked_at.append(number.shape)
        return right(number)._replace(r_hat=np.array(next(left)))

    monkeypatch.setattr(entity_interval, "convergence", disagreeing)
    count = fit(records, seed=8).num_entities()
    assert looked_at[:-1] == [(2, 250), (2, 500), (2, 1000)][: len(r_hats)]
    assert len(count.draws) == 2 * looked_at[-1][1]
    assert ("the chains disagree, R-hat 1.30" in count.basis) == (len(r_hats) == 3)


def test_a_chain_starts_at_what_em_found(fitted):
    """With entities that the graph connects; of those too large every record is alone."""
    resolved = fitted.resolved
    settings = dataclasses.replace(resolved.settings, likelihood="hit-miss")
    problem = prepare(resolved.replace(settings=settings))
    found, estimate = Linkage.of(fitted.posterior), fitted.truth.estimate()
    state = _started_at(found, estimate, problem)
    assert len(np.unique(state.cluster)) >= len(np.unique(estimate))
    assert (estimate[state.cluster] == estimate).all()
    np.testing.assert_allclose(state.value_share, fitted.posterior.value_share, rtol=1e-6)
    one = _started_at(found, np.zeros_like(estimate), problem)
    np.testing.assert_array_equal(one.cluster, np.arange(len(estimate)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")  # parts of some sets are cut
def test_coverage_of_twenty_sets():
    """Acceptance 10: of 20 sets of 2,000 records at least 18 intervals cover, and the mean is within two entities."""
    covers, errors = 0, []
    for number in range(20):
        records = cs.simulate_records(2000, seed=900 + number, **SIMULATED)
        true = len(np.unique(records.entity))
        count = fit(records, seed=number).num_entities()
        covers += count.interval[0] <= true <= count.interval[1]
        errors.append(count.value - true)
    assert covers >= 18
    assert abs(np.mean(errors)) < 2
