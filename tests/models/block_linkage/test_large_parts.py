"""Large parts: collapsed records, chains that settle, sizes, closures, weights."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import consilience as cs
from consilience.errors import DiagnosticWarning, InputError, UnsupportedRequest
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.field_weights import dependence_weights
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.large_parts import LargeParts, Rows, collapsed
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.linking import fit_em
from consilience.models.block_linkage.parts import parts_of
from consilience.models.block_linkage.starting import size_shares, starting_parameters
from consilience.models.block_linkage.truth import BlockPartition
from tests.models.records import records_of

MISS = np.array([0.2, 0.3])


def log_marginal(values, shares, miss, strength):
    """Return the log probability of a cluster, summed over true values by the formula itself."""
    total = 0.0
    for field, share in enumerate(shares):
        shown = values[:, field][values[:, field] >= 0]
        number = np.bincount(shown, minlength=len(share))
        terms = []
        for true, own in enumerate(share):
            base = miss[field] * share + (1 - miss[field]) * (np.arange(len(share)) == true)
            if math.isinf(strength):
                log_one = number @ np.log(base)
            else:
                rise = gammaln(strength * base + number) - gammaln(strength * base)
                log_one = rise.sum() + math.lgamma(strength) - math.lgamma(strength + len(shown))
            terms.append(math.log(own) + log_one)
        total += np.logaddexp.reduce(terms)
    return total


@pytest.fixture
def copies():
    """Return a function that simulates 30 entities of 40 records."""

    def simulate(distortion, **rest):
        return cs.simulate_records(
            1200, seed=3, size_share=[0.0] * 39 + [1.0], num_values=(300, 800, 90, 12, 28),
            exponent=(1.0, 0.9, 0.1, 0.0, 0.0), distortion=distortion, **rest,
        )  # fmt: skip

    return simulate


def fitted(records, **options):
    options = {"likelihood": "hit-miss"} | options
    resolved = MODEL.resolve(records.replace(entity=None, entities=None), None, options)
    linkage = fit_em(resolved)
    return linkage, BlockPartition(linkage, key=jax.random.key(0), num_draws=50)


def pair_f1(found, true):
    def pairs(label):
        number = np.unique(label, return_counts=True)[1]
        return (number * (number - 1) // 2).sum()

    both = pairs(found.astype(np.int64) * len(true) + true)
    return 2 * both / (pairs(found) + pairs(true))


def test_forty_exact_copies_of_thirty_people_are_thirty_entities(copies):
    records = copies(0.0)
    linkage, truth = fitted(records)
    assert truth.num_clusters_moments() == (30.0, 0.0)
    assert pair_f1(truth.estimate(), np.asarray(records.entity)) == 1
    assert (truth.clusters_by_size()[:, 39] == 30).all()
    assert not int(linkage.unsettled)


def test_forty_copies_with_errors_are_found(copies):
    records = copies(0.05)
    _, truth = fitted(records)
    assert pair_f1(truth.estimate(), np.asarray(records.entity)) >= 0.98
    assert 28 <= truth.num_clusters_moments()[0] <= 36


def test_answers_about_large_parts_are_those_of_their_draws(copies):
    _, truth = fitted(copies(0.05))
    # As many draws as are kept, so that both say the same.
    truth.num_draws = truth.drawn.num_draws
    clusters = truth.clusters()
    assert len(truth.large) > 1000
    np.testing.assert_array_equal(truth.num_clusters(), [len(np.unique(draw)) for draw in clusters])
    mean, variance = truth.num_clusters_moments()
    assert mean == pytest.approx(truth.num_clusters().mean())
    assert variance == pytest.approx(truth.num_clusters().var())
    np.testing.assert_allclose(truth.size_counts(), truth.clusters_by_size().mean(axis=0)[: len(truth.size_counts())])
    pairs = truth.pairs()
    chosen = np.random.default_rng(0).integers(len(pairs.first), size=50)
    together = (clusters[:, pairs.first[chosen]] == clusters[:, pairs.second[chosen]]).mean(axis=0)
    np.testing.assert_allclose(pairs.probability[chosen], together)
    sets = truth.matching_sets()
    np.testing.assert_allclose(truth.set_probability(sets.first, sets.member), sets.probability)
    estimate = truth.estimate()
    assert ((truth.cluster_probability(estimate) >= 0) & (truth.cluster_probability(estimate) <= 1)).all()
    patterns, numbers = truth.clusters_by_source(np.zeros(1200, int))
    np.testing.assert_array_equal(patterns, [1])
    np.testing.assert_array_equal(numbers[:, 0], truth.num_clusters())


def test_common_names_are_no_single_row():
    generator = np.random.default_rng(0)
    value = generator.integers(3, size=(2, 300))
    records = records_of(list(value), [3, 3])
    parameters = starting_parameters(records, 1000)
    rows = collapsed(records, parameters, LIKELIHOODS["hit-miss"], least=6, restriction="none")
    assert (rows.weight == 1).all()
    # The same records among many that show other values are one row, but where they may not be together.
    rare = np.concatenate([np.zeros((4, 20), int), 1 + np.tile(np.arange(300), (4, 1))], axis=1)
    records = records_of(list(rare), [301] * 4)
    parameters = starting_parameters(records, 1000)
    rows = collapsed(records, parameters, LIKELIHOODS["hit-miss"], least=6, restriction="none")
    assert rows.weight.max() == 20
    assert len(rows.weight) == 301
    np.testing.assert_array_equal(np.asarray(rows.records.value)[:, rows.row], records.value)
    few = collapsed(records, parameters, LIKELIHOODS["hit-miss"], least=20, restriction="none")
    across = collapsed(records, parameters, LIKELIHOODS["hit-miss"], least=6, restriction="across")
    assert (few.weight == 1).all()
    assert (across.weight == 1).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 50), min_size=3, max_size=60), st.sampled_from([2, 4, 6]))
def test_shares_of_sizes_add_up_and_fall_beyond_four(counts, largest):
    prior = np.array([1.0, 0.5, 0.3, 0.2, 0.1, 0.1])[:largest]
    share = size_shares(np.array(counts), prior)
    assert share.sum() == pytest.approx(1)
    assert (share > 0).all()
    assert (np.diff(share[4:]) <= 0).all()


def test_the_exponent_of_sizes_is_recovered():
    size = np.arange(1, 1001)
    counts = np.where(size > 4, 2000 * size**-1.6, [400.0])
    share = size_shares(counts, np.ones(6))
    assert np.log(share[9] / share[19]) / np.log(2) == pytest.approx(1.6, abs=0.05)


def test_a_closure_joins_what_strong_pairs_connect(copies):
    records = copies(0.05)
    linkage, truth = fitted(records, decision="closure", at=6.0)
    assert float(linkage.closure) == 6
    assert truth.no_interval
    assert truth.num_clusters().std() == 0
    looser, _ = fitted(records, decision="closure", at=0.0)
    assert len(looser.large) >= len(linkage.large)
    with pytest.warns(DiagnosticWarning, match="above 4.5 connect|does not hold"):
        fit = cs.fit("block-linkage", records.replace(entity=None, entities=None), decision="closure")
    assert "without an interval, because a closure" in repr(fit.num_entities())


def test_fields_that_err_together_are_told_by_their_correlation():
    # Fields 0 and 1 always differ together, 2 differs by itself.
    differs = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 1]])
    value = np.append(np.zeros((3, 1), int), differs, axis=1)
    second = np.arange(1, 5, dtype=np.int32)
    pairs = CandidatePairs(np.zeros(4, np.int32), second, np.full(4, 50.0))
    np.testing.assert_allclose(dependence_weights(pairs, value), [0.5, 0.5, 1.0])


def test_weights_scale_the_log_likelihood_of_their_fields(make_records):
    generator = np.random.default_rng(0)
    records = make_records(generator.integers(5, size=(2, 60)))
    parameters = starting_parameters(records, 6)
    codes = np.array([[[0], [5]], [[1], [5]], [[0], [6]]])
    table = np.append(parameters.value_share, 1)
    for name in ("hit-miss", "copies"):
        plain = LIKELIHOODS[name]
        parts = [
            plain.weighted(np.eye(2)[field] + 1e-12).of_components(codes, table, parameters.distortion, None, np)
            for field in range(2)
        ]
        both = plain.weighted(np.array([0.5, 2.0])).of_components(codes, table, parameters.distortion, None, np)
        np.testing.assert_allclose(both, 0.5 * parts[0] + 2 * parts[1], atol=1e-9)
        agree, differ = plain.weighted(np.array([0.5, 2.0])).pair_terms(parameters, records.first_value)
        assert differ[0] == pytest.approx(0.5 * plain.pair_terms(parameters, records.first_value)[1][0])
        np.testing.assert_allclose(both[3, 0], differ[0] + agree[5])


def test_copies_enumerate_the_urn(make_records):
    records = make_records(np.array([[0, 0, 1, 2, 0, 1], [0, 1, 0, 0, 1, 1]]))
    parameters = starting_parameters(records, 6)._replace(distortion=MISS)
    share, first = parameters.value_share, records.first_value
    codes = np.array([[[0], [3]], [[0], [4]], [[1], [3]]])
    found = LIKELIHOODS["copies"].of_components(codes, np.append(share, 1), MISS, None, np)[:, 0]
    for subset in range(8):
        own = codes[[record for record in range(3) if subset >> record & 1], :, 0] - first[:-1]
        if len(own):
            expected = log_marginal(own, (share[:3], share[3:]), MISS, 1.0)
            expected -= sum(np.log(share[first[:-1] + row]).sum() for row in own)
            assert found[subset] == pytest.approx(expected)


def test_weights_that_cannot_be_are_refused(simulate):
    records = simulate(60)
    with pytest.raises(InputError, match="fields that are compared"):
        fitted(records, weights={"nowhere": 1.0})
    with pytest.raises(UnsupportedRequest, match="hit-miss"):
        fitted(records, weights="auto", likelihood="error-classes")
    linkage, truth = fitted(simulate(2_000), weights="auto")
    assert len(linkage.powers) == 6
    assert "not a posterior" in truth.doubt


def test_a_part_is_drawn_where_a_row_is_heavy():
    value = np.array([[0, 1, 2, 3], [0, 1, 2, 3]])
    records = records_of(list(value), [4, 4])
    pairs = CandidatePairs(np.array([0], np.int32), np.array([1], np.int32), np.array([1.0]))
    rows = Rows(records, np.array([1, 9, 1, 8]), np.repeat(np.arange(4), [1, 9, 1, 8]))
    large = LargeParts(rows, parts_of(pairs, 4, largest=6, size_limit=50), pairs, LIKELIHOODS["hit-miss"], "none", 50)
    assert [rows.tolist() for rows in large.parts] == [[0, 1]]
    assert large.alone.tolist() == [3]
    assert not sum(map(len, large.members))
