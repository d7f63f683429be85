"""EM: recovery of what records were drawn with, laws of its passes, and RLdata500."""

import dataclasses
import importlib

import numpy as np
import numpyro.distributions as dist
import pytest

from consilience.data import read_records
from consilience.errors import NotConjugate, UnsupportedRequest
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.em import log_base
from consilience.models.block_linkage.enumeration import conflicts, set_partitions
from consilience.models.block_linkage.priors import Hyperprior, Priors
from consilience.models.block_linkage.starting import starting_parameters
from tests.models.records import german_names, pair_scores

em = importlib.import_module("consilience.models.block_linkage.em")  # the package has a function of this name
misfit = importlib.import_module("consilience.models.block_linkage.misfit")


def moments(posterior):
    """Return the most probable number of clusters, and the expected one."""
    mode = mean = int(posterior.num_records)
    for group in posterior.groups():
        size = group.members.shape[1]
        fewer = size - 1 - set_partitions(size).max(axis=1).astype(int)
        mode -= fewer[group.partition.argmax(axis=1)].sum()
        mean -= (group.partition @ fewer).sum(dtype=float)
    return mode, mean


@pytest.mark.parametrize("likelihood", ["hit-miss", "dirichlet-multinomial"])
def test_it_recovers_distortion_and_sizes(simulate, likelihood, fit_em):
    records = simulate(10_000)
    posterior = fit_em(records, likelihood=likelihood)
    number = np.bincount(records.entity)
    linked = number[number > 1] @ number[number > 1]
    # Distortions are counted in the records of entities with several, and shares of sizes among the entities.
    error = np.sqrt(0.05 * 0.95 / number[number > 1].sum())
    assert linked > 0
    assert np.abs(posterior.distortion - 0.05).max() < 5 * error
    expected = np.bincount(number, minlength=7)[1:] / len(number)
    np.testing.assert_allclose(posterior.size_share, expected, atol=5 * np.sqrt(0.25 / len(number)))
    assert posterior.completed
    assert posterior.disagreement < 0.05
    assert abs(posterior.intensity - len(number)) < 5 * np.sqrt(len(number) * 0.25)


def test_completion_is_what_brings_distortion_up(simulate, monkeypatch, fit_em):
    records = simulate(10_000, distortion=0.08)
    completed = fit_em(records)
    monkeypatch.setattr(misfit, "MOST_DISAGREEMENT", -1.0)
    restricted = fit_em(records)
    assert completed.completed
    assert not restricted.completed
    assert abs(completed.distortion.mean() - 0.08) < abs(restricted.distortion.mean() - 0.08)
    assert restricted.evidence[-2] > completed.evidence[-2]  # the bound that completion no longer maximises


@pytest.mark.parametrize("likelihood", ["hit-miss", "dirichlet-multinomial"])
@pytest.mark.parametrize("settings", [{}, {"distortion": 0.15}, {"missing": 0.1}, {"one_error": True}])
def test_the_first_phase_raises_the_evidence(simulate, likelihood, settings, fit_em):
    posterior = fit_em(simulate(3_000, **settings), likelihood=likelihood, num_sampled=10**9)
    rises = np.diff(posterior.evidence[: int(posterior.first_phase)])
    assert (rises >= 0).all()


def test_passes_gain_evidence(simulate, fit_em):
    posterior = fit_em(simulate(3_000))
    assert posterior.evidence[int(posterior.first_phase) - 1] - posterior.evidence[0] > 50


def test_one_error_in_every_duplicate_is_not_completed(simulate, fit_em):
    posterior = fit_em(simulate(5_000, size_share=(0.9, 0.1), one_error=True))
    assert not posterior.completed
    assert posterior.disagreement > 0.3


def test_the_sample_stands_for_all(simulate, fit_em):
    records = simulate(10_000)
    every, sampled = fit_em(records, num_sampled=10**9), fit_em(records, num_sampled=1_000)
    assert np.abs(every.distortion - sampled.distortion).max() < 5 * np.sqrt(0.05 * 0.95 / 1_000)
    assert np.abs(every.evidence[-1] / sampled.evidence[-1] - 1) < 1e-3
    assert fit_em(records, num_sampled=1_000).evidence.tolist() == sampled.evidence.tolist()


def test_much_distortion_repeats_the_join(simulate, monkeypatch, fit_em):
    calls = []
    join = em.join
    monkeypatch.setattr(em, "join", lambda *given, **more: calls.append(given) or join(*given, **more))
    fit_em(simulate(3_000))
    assert len(calls) == 1
    fit_em(simulate(3_000, distortion=0.15))
    assert len(calls) > 2


def test_nothing_to_link(make_records, fit_em):
    apart = make_records(np.tile(np.arange(30), (3, 1)))
    posterior = fit_em(apart)
    assert moments(posterior)[0] == 30
    assert np.isfinite(posterior.evidence).all()
    assert np.isfinite(posterior.distortion).all()
    assert not posterior.completed


def with_field(records, code, num_values):
    """Return records with one more field that is the same everywhere."""
    return dataclasses.replace(
        records,
        value=np.append(records.value, np.full((1, records.num_records), code, np.int32), axis=0),
        first_value=np.append(records.first_value, np.int32(records.num_values + num_values)),
        num_fields=records.num_fields + 1,
        num_values=records.num_values + num_values,
    )


def test_a_field_of_one_value_says_nothing(simulate, fit_em):
    records = simulate(2_000)
    plain, added = fit_em(records), fit_em(with_field(records, 0, 1))
    assert moments(added)[0] == moments(plain)[0]
    np.testing.assert_allclose(added.distortion[:6], plain.distortion, atol=1e-3)
    assert np.isfinite(added.distortion).all()


def test_a_field_without_values_does_no_harm(simulate, fit_em):
    records = with_field(simulate(2_000), -1, 0)
    posterior = fit_em(records)
    assert min(pair_scores(posterior, records.entity)) > 0.95
    assert posterior.distortion[-1] == pytest.approx(0.1)  # as the prior expects


@pytest.mark.parametrize("restriction", ["across", "within"])
def test_restrictions_hold(simulate, restriction, fit_em):
    records = simulate(2_000)
    generator = np.random.default_rng(1)
    records = dataclasses.replace(
        records, source=generator.integers(2, size=records.num_records).astype(np.int32), num_sources=2
    )
    posterior = fit_em(records, restriction=restriction)
    together = 0
    for group in posterior.groups():
        labels = set_partitions(group.members.shape[1])
        wrong = conflicts(records.source, group.members, restriction).transpose(2, 0, 1)
        same = labels[:, :, None] == labels[:, None]
        forbidden = (same[None] & wrong[:, None]).any(axis=(2, 3))
        assert not group.partition[forbidden].any()
        together += (group.partition.argmax(axis=1) != len(labels) - 1).sum()
    assert together > 50


def test_an_informative_prior_holds_distortion(simulate, fit_em):
    posterior = fit_em(simulate(2_000), Priors(distortion=dist.Beta(1e6, 99e6)))
    np.testing.assert_allclose(posterior.distortion, 0.01, atol=1e-5)


@pytest.mark.parametrize("largest", [2, 4, 7])
def test_default_priors_have_the_numbers_of_their_distributions(simulate, largest):
    records, priors = simulate(50), Priors()
    through = Priors(
        distortion=lambda data: priors.distortion(data), intensity=lambda data: priors.intensity(data),
        size_share=lambda data, largest: priors.size_share(data, largest),
    )  # fmt: skip
    direct, distributions = (
        Hyperprior.of(MODEL.resolve(records, given, {"largest": largest})) for given in (priors, through)
    )
    for one, other in zip(direct, distributions, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_it_refuses(simulate, fit_em):
    records = simulate(100)
    with pytest.raises(NotConjugate, match="distortion"):
        fit_em(records, Priors(distortion=dist.Uniform(0.0, 1.0)))
    with pytest.raises(UnsupportedRequest, match="'hit-mis'; choose one of"):
        fit_em(records, likelihood="hit-mis")
    with pytest.raises(UnsupportedRequest, match="'inside'; choose one of"):
        fit_em(records, restriction="inside")


def test_the_evidence_of_records_apart(make_records):
    records = make_records([[0, 0, 1, -1], [2, 3, 4, 5]])
    parameters = starting_parameters(records, 3)
    mass = parameters.intensity * parameters.size_share[0]
    expected = 4 * np.log(mass) - parameters.intensity - np.log(24) + np.log([2 / 3, 2 / 3, 1 / 3]).sum()
    assert np.isclose(log_base(records, parameters), expected + 4 * np.log(1 / 4))


@pytest.mark.public_data
def test_german_names_by_em(data_folder, fit_em):
    records = german_names(data_folder)
    posterior = fit_em(records)
    precision, recall = pair_scores(posterior, records.entity)
    assert precision == pytest.approx(0.96, abs=1e-6)
    assert recall == pytest.approx(0.96, abs=1e-6)
    mode, mean = moments(posterior)
    assert mode == 450
    assert abs(mean - 448.05) < 0.1
    assert not posterior.completed


@pytest.mark.public_data
@pytest.mark.parametrize("likelihood", ["hit-miss", "dirichlet-multinomial"])
def test_german_names_with_little_distortion_expected(data_folder, likelihood, fit_em):
    records = german_names(data_folder)
    posterior = fit_em(records, Priors(distortion=dist.Beta(1.0, 99.0)), likelihood=likelihood)
    precision, recall = pair_scores(posterior, records.entity)
    assert 2 * precision * recall / (precision + recall) == pytest.approx(0.958, abs=5e-4)
    mode, mean = moments(posterior)
    assert mode == 454
    assert abs(mean - 451.4) < 0.1


def test_few_records_teach_something(fit_em):
    """Where a whole step lowers the evidence, sizes and intensity still learn: two tables of four people in common."""
    names = ["ada", "max", "eva", "ida"]
    columns = {
        "id": [f"{side}{place}" for side in "ab" for place in range(4)], "name": names * 2,
        "born": ["1951", "1960", "1947", "1972"] * 2, "city": ["bonn", "jena", "bonn", "kiel"] * 2,
    }  # fmt: skip
    posterior = fit_em(read_records(columns))
    assert posterior.size_share[1] > 0.3
    assert (np.diff(posterior.evidence[: posterior.first_phase]) >= -1e-9).all()
    assert posterior.intensity < 7
