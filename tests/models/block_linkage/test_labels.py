"""Labels of pairs: factors of every partition, by brute force; what is refused; the loop of review and labels."""

import itertools

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import consilience as cs
from consilience.errors import InputError, UnsupportedRequest
from consilience.models.block_linkage.enumeration import (
    conflicts,
    enumerate_blocks,
    enumerate_blocks_jax,
    gather_values,
    set_partitions,
    size_terms,
    together,
)
from consilience.models.block_linkage.join import CandidatePairs
from consilience.models.block_linkage.labels import label_log_odds, pair_terms_of
from consilience.models.block_linkage.large_parts import LargeParts, Rows
from consilience.models.block_linkage.likelihoods import LIKELIHOODS
from consilience.models.block_linkage.linkage import Linkage
from consilience.models.block_linkage.parameters import Parameters
from consilience.models.block_linkage.parts import parts_of
from tests.models.records import records_of

pytestmark = pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
SHARE = np.array([0.6, 0.3, 0.1, 0.5, 0.5])


def enumerated(records, restriction="none", labelled=True, run=enumerate_blocks):
    """Enumerate all records as one component."""
    members = np.arange(records.num_records)[None]
    values = gather_values(records.value, records.first_value, members)
    terms = size_terms(3.0, np.full(records.num_records, 1 / records.num_records), records.num_records, np)
    pairs = pair_terms_of(records, members, restriction) if labelled else conflicts(
        records.source, members, restriction
    )  # fmt: skip
    more = {"dtype": np.float64} if run is enumerate_blocks else {}
    return run(
        values, SHARE, np.array([0.1, 0.2]), terms, LIKELIHOODS["hit-miss"], pairs, **more
    )  # fmt: skip


@st.composite
def labelled_records(draw):
    """Draw up to five records with labels of some pairs that a partition can have."""
    number = draw(st.integers(2, 5))
    value = np.array([draw(st.lists(st.integers(-1, most), min_size=number, max_size=number)) for most in (2, 1)])
    entity = draw(st.lists(st.integers(0, 2), min_size=number, max_size=number))
    source = draw(st.lists(st.integers(0, 1), min_size=number, max_size=number))
    pairs, log_odds = [], []
    for one, other in itertools.combinations(range(number), 2):
        kind = draw(st.sampled_from(("none", "sure", "same", "different")))
        sure = np.inf if entity[one] == entity[other] else -np.inf
        if kind != "none":
            pairs.append((one, other))
            log_odds.append({"sure": sure, "same": 1.5, "different": -1.5}[kind])
    records = records_of(value, (3, 2), source=source)
    if not pairs:
        return records, np.zeros((0, 2), int), np.zeros(0)
    pairs, log_odds = np.array(pairs, np.int32), np.array(log_odds)
    return records.replace(labelled=pairs, label_log_odds=log_odds), pairs, log_odds


@settings(max_examples=60)
@given(labelled_records(), st.sampled_from(("none", "across", "within")))
def test_labels_are_a_factor_of_every_partition(case, restriction):
    """The posterior with labels is that without times the factor, renormalised; and so is the evidence."""
    records, pairs, log_odds = case
    if restriction != "none" and np.isinf(log_odds).any():
        restriction = "none"  # they might contradict each other
    plain, found = enumerated(records, restriction, labelled=False), enumerated(records, restriction)
    labels = set_partitions(records.num_records)
    factor = np.ones(len(labels))
    for (one, other), own in zip(pairs, log_odds, strict=True):
        same = labels[:, one] == labels[:, other]
        odds = {np.inf: (1.0, 0.0), -np.inf: (0.0, 1.0)}.get(own, (np.exp(own), 1.0))
        factor *= np.where(same, *odds)
    wanted = plain.partition[:, 0] * factor
    np.testing.assert_allclose(found.partition[:, 0], wanted / wanted.sum(), atol=1e-12)
    assert found.log_evidence[0] - plain.log_evidence[0] == pytest.approx(np.log(wanted.sum()), abs=1e-9)
    of_pair = together(records.num_records) @ found.partition[:, 0]
    np.testing.assert_allclose(found.pair[:, 0], of_pair, atol=1e-6)


def test_the_same_in_jax():
    records = records_of([[0, 0, 1, 2], [1, 1, 1, 0]], (3, 2))
    records = records.replace(
        labelled=np.array([[0, 2], [0, 3], [1, 3]], np.int32), label_log_odds=np.array([np.inf, -np.inf, 1.5])
    )
    one = enumerated(records)
    with jax.enable_x64(True):
        other = enumerated(records, run=enumerate_blocks_jax)
    np.testing.assert_allclose(one.partition, other.partition, atol=1e-12)
    single = enumerate_blocks_single(records)
    np.testing.assert_allclose(one.partition, single.partition, atol=1e-5)


def enumerate_blocks_single(records):
    """Enumerate in single precision."""
    return enumerated(records, run=lambda *given, **_: enumerate_blocks(*given))


@pytest.mark.parametrize("seed", range(3))
def test_labels_in_a_part_that_is_drawn(seed):
    """Frequencies of pairs are the probabilities of enumeration, with sure and unsure labels."""
    random = np.random.default_rng(seed)
    records = records_of(random.integers([[3], [2]], size=(2, 5)), (3, 2))
    records = records.replace(
        labelled=np.array([[0, 1], [0, 3], [1, 4], [2, 3]], np.int32),
        label_log_odds=np.array([np.inf, -np.inf, 2.0, -1.5]),
    )
    size_share = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    parameters = Parameters(SHARE, np.array([0.1, 0.2]), 3.0, size_share)
    first, second = np.triu_indices(5, 1)
    pairs = CandidatePairs(first.astype(np.int32), second.astype(np.int32), np.ones(len(first)))
    rows, parts = Rows(records, np.ones(5, int), np.arange(5)), parts_of(pairs, 5, largest=2, size_limit=5)
    large = LargeParts(rows, parts, pairs, LIKELIHOODS["hit-miss"], "none", 5)
    draws = large._draw(np.ones(5, bool), parameters, 20_000)[0][:, 1000:].reshape(-1, 5)
    found = (draws[:, first] == draws[:, second]).mean(axis=0)
    exact = enumerate_blocks(
        gather_values(records.value, records.first_value, np.arange(5)[None]), SHARE, parameters.distortion,
        size_terms(3.0, size_share, 5, np), LIKELIHOODS["hit-miss"],
        pair_terms_of(records, np.arange(5)[None], "none"), dtype=np.float64,
    )  # fmt: skip
    np.testing.assert_allclose(found, exact.pair[:, 0], atol=0.02)
    sure = {(0, 1): 1.0, (0, 3): 0.0}
    assert all(found[(first == one) & (second == other)] == worth for (one, other), worth in sure.items())


@pytest.fixture(scope="module")
def people():
    return cs.simulate_records(300, num_values=(60, 80, 40, 12), size_share=(0.75, 0.2, 0.05), seed=5)


@pytest.fixture(scope="module")
def plain(people):
    return cs.fit("block-linkage", people, draws=20)


def labels_of(records, pairs, answers, **more):
    first, second = records.records[pairs.T]
    return {"record_a": first, "record_b": second, "answer": answers, **more}


def test_sure_labels_hold_whatever_the_records_say(people, plain):
    """Pairs that were linked are told apart, and pairs that were no candidates together."""
    table = plain.pairs()
    code = {name: place for place, name in enumerate(people.records)}
    linked = table[table["probability"] > 0.9][["record_a", "record_b"]].map(code.get).to_numpy()[:3]
    candidate = set(map(tuple, table[["record_a", "record_b"]].map(code.get).to_numpy().tolist()))
    alone = plain.entities()["certainty"].to_numpy() > 0.9999
    far = np.array([
        pair for pair in itertools.combinations(np.flatnonzero(alone).tolist(), 2) if pair not in candidate
    ][:3])  # fmt: skip
    pairs = np.concatenate([linked, far])
    records = people.with_labels(labels_of(people, pairs, ["different"] * len(linked) + ["same"] * len(far)))
    fit = cs.fit("block-linkage", records, draws=20)
    found = fit.truth.pairs().of(*np.sort(pairs, axis=1).T)
    np.testing.assert_allclose(found, [0.0] * len(linked) + [1.0] * len(far))
    cluster = fit.truth.clusters()
    assert (cluster[:, linked[:, 0]] != cluster[:, linked[:, 1]]).all()
    assert (cluster[:, far[:, 0]] == cluster[:, far[:, 1]]).all()
    assert fit.explain(*people.records[far[0]])["probability"].iloc[-1] == 1


def test_unsure_labels_move_the_odds_by_what_they_are_worth(people, plain):
    """Of a pair in a component of its own, at the same hyperparameters."""
    sizes = np.diff(plain.posterior.first)
    start = plain.posterior.first[:-1][sizes == 2]
    pairs = plain.posterior.member[start[:, None] + np.arange(2)]
    records = people.with_labels(labels_of(people, pairs, ["same", "different"] * (len(pairs) // 2) + ["same"] * (
        len(pairs) % 2), error=[0.1] * len(pairs)))  # fmt: skip
    sign = np.where(np.arange(len(pairs)) % 2 == 0, 1, -1)
    np.testing.assert_allclose(label_log_odds(records, *np.sort(pairs, axis=1).T), sign * np.log(9))
    before = plain.truth.pairs().of(*pairs.T)
    odds = before / (1 - before) * 9.0**sign
    parameters = Linkage.of(plain.posterior).parameters()
    terms = size_terms(parameters.intensity, parameters.size_share, len(parameters.size_share), np)
    found = enumerate_blocks(
        gather_values(records.value, records.first_value, pairs), parameters.value_share, parameters.distortion, terms,
        LIKELIHOODS["hit-miss"], pair_terms_of(records, pairs, "none"), dtype=np.float64,
    )  # fmt: skip
    np.testing.assert_allclose(found.pair[0], odds / (1 + odds), rtol=1e-4)


def test_a_label_of_a_pair_that_is_no_candidate_can_make_it_one(people, plain):
    first, second, probability = plain.truth.pairs()
    place = int(np.argmin(np.abs(probability - 0.3)))
    pair = np.array([[first[place], second[place]]])
    given = people.with_candidates({"record_a": people.records[first], "record_b": people.records[second]})
    without = given.replace(candidate=np.delete(given.candidate, place, axis=0))
    sure = cs.fit("block-linkage", without.with_labels(labels_of(people, pair, ["1"])), draws=5)
    assert sure.truth.pairs().of(*pair.T) == pytest.approx(1)
    unsure = without.with_labels(labels_of(people, pair, ["1"], error=[0.3]))
    fit = cs.fit("block-linkage", unsure, draws=5)
    assert fit.truth.pairs().of(*pair.T)[0] > 0


def test_a_same_label_merges_before_stronger_pairs(people):
    """Seven copies of one record, six of which fit: the labelled pair is among them."""
    value = np.concatenate([people.value, np.repeat(people.value[:, :1], 7, axis=1)], axis=1)
    number = value.shape[1]
    names = np.array([f"x{place}" for place in range(number)], object)
    records = records_of(
        value, np.diff(people.first_value), records=names, fields=people.fields, sources=np.array(["a"], object)
    ).with_labels({"record_a": [names[5]], "record_b": [names[number - 1]], "answer": ["same"]})
    fit = cs.fit("block-linkage", records, draws=5)
    assert fit.truth.pairs().of(np.array([5]), np.array([number - 1])) == pytest.approx(1)


def test_repeated_unsure_answers_add_up(people):
    pair = np.array([[3, 8]] * 3)
    records = people.with_labels(labels_of(people, pair, ["same", "same", "apart"], error=[0.1, 0.2, 0.1]))
    assert records.labelled.tolist() == [[3, 8]]
    np.testing.assert_allclose(records.label_log_odds, np.log(4))


def test_labels_move_with_their_records(people):
    pairs = np.array([[3, 8], [0, 5]])
    records = people.with_labels(labels_of(people, pairs, ["same", "different"]))
    order = np.random.default_rng(0).permutation(people.num_records)
    moved = records.renamed("record", order)
    for (one, other), log_odds in zip(moved.labelled, moved.label_log_odds, strict=True):
        known = {moved.records[one], moved.records[other]}
        assert log_odds == (np.inf if known == set(people.records[[3, 8]]) else -np.inf)
    assert (moved.labelled[:, 0] < moved.labelled[:, 1]).all()
    with pytest.raises(UnsupportedRequest, match="and labels, after repeating"):
        records.repeated(2)


def test_a_fit_with_labels_is_saved(people, tmp_path):
    records = people.with_labels(labels_of(people, np.array([[3, 8], [0, 5]]), ["same", "different"], error=[0.1, 0]))
    fit = cs.fit("block-linkage", records, draws=5)
    fit.save(tmp_path / "run")
    again = cs.load_fit(tmp_path / "run")
    np.testing.assert_array_equal(again.data.labelled, records.labelled)
    np.testing.assert_array_equal(again.data.label_log_odds, records.label_log_odds)


def test_what_labels_are_refused(people):
    two = people.replace(
        source=(np.arange(people.num_records) >= 20).astype(np.int32), num_sources=2,
        sources=np.array(["left", "right"], object),
    )  # fmt: skip
    same = two.with_labels(labels_of(two, np.array([[0, 30], [1, 30]]), ["same", "same"]))
    with pytest.raises(InputError, match=r"labels say that r1, r2, r31 are the same, but they are of one file"):
        cs.fit("block-linkage", same, restriction="across")
    with pytest.raises(InputError, match="are the same, but they are of several files"):
        cs.fit("block-linkage", same, restriction="within")
    chain = np.stack([np.arange(6), np.arange(1, 7)], axis=1)
    many = people.with_labels(labels_of(people, chain, ["same"] * 6))
    with pytest.raises(UnsupportedRequest, match=r"labels put 7 records into one entity \(r1, r2, .*raise it"):
        cs.fit("block-linkage", many, likelihood="error-classes")
    for largest in (6, 7):  # drawn, and enumerated
        fit = cs.fit("block-linkage", many, largest=largest, likelihood="hit-miss", draws=5)
        assert fit.truth.pairs().of(np.array([0]), np.array([6])) == pytest.approx(1)
    with pytest.raises(UnsupportedRequest, match="labels of pairs are not taken by decision='closure'"):
        cs.fit("block-linkage", same, decision="closure")
    for method in ("gibbs", "nuts"):
        with pytest.raises(UnsupportedRequest, match="labels of pairs are not taken by"):
            cs.fit("block-linkage", same, method=method)
    for member in ("hit-miss", "dirichlet-entity"):
        with pytest.raises(UnsupportedRequest, match="labels of pairs are not taken by"):
            cs.fit(member, same)


def test_labels_that_a_fit_used_do_not_calibrate_it(people, plain):
    asked = plain.review(number=20).assign(answer="same")
    records = people.with_labels(asked[:3])
    fit = cs.fit("block-linkage", records, draws=5)
    for use in (fit.calibration, fit.thresholds):
        with pytest.raises(UnsupportedRequest, match="the fit used 3 of these labels"):
            use(asked)
    again = fit.review(number=20)
    known = set(zip(asked["record_a"][:3], asked["record_b"][:3], strict=True))
    assert not known & set(zip(again["record_a"], again["record_b"], strict=True))


def test_without_answers_nothing_changes(people, plain):
    asked = plain.review()
    records = people.with_labels(asked)
    assert records.labelled is None
    assert records.fingerprint() == people.fingerprint()
