"""Scores of partitions: by hand, against their definitions pair by pair, and what any pair of partitions obeys."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consilience.evaluation.partitions import contingency, names, record_f1, score

DISTANCES = {"merge-moves", "merge-pairs", "variation-of-information"}
# What becomes of each score when prediction and truth change places.
EXCHANGED = {name: name for name in names()} | {
    f"{kind}-{one}": f"{kind}-{other}"
    for kind in ("pairwise", "cluster", "b3")
    for one, other in (("precision", "recall"), ("recall", "precision"))
}


def one_score(predicted, truth, metric):
    return score(contingency(np.array([predicted]), np.array([truth])), metric).item()


def test_scores_of_partitions_by_hand():
    # Predicted {0, 1, 2}, {3}, {4, 5}; true {0, 1}, {2, 3}, {4, 5}.
    predicted, truth = [0, 0, 0, 3, 4, 4], [7, 7, 1, 1, 0, 0]
    found = contingency(np.array([predicted]), np.array([truth]))
    expected = {
        "pairwise-precision": 2 / 4, "pairwise-recall": 2 / 3, "pairwise-f1": 4 / 7,
        "cluster-precision": 1 / 3, "cluster-recall": 1 / 3, "cluster-f1": 1 / 3,
        "b3-precision": (2 / 3 + 2 / 3 + 1 / 3 + 1 + 1 + 1) / 6, "b3-recall": (1 + 1 + 1 / 2 + 1 / 2 + 1 + 1) / 6,
        # 15 pairs; chance expects 4 · 3 / 15 in both.
        "ari": (2 - 0.8) / (3.5 - 0.8),
        # Split 2 off {0, 1, 2}, then merge it with 3; two pairs parted, one joined.
        "merge-moves": 2, "merge-pairs": 3,
    }  # fmt: skip
    assert {metric: score(found, metric).item() for metric in expected} == pytest.approx(expected)
    entropy_predicted = -(3 / 6 * math.log(3 / 6) + 1 / 6 * math.log(1 / 6) + 2 / 6 * math.log(2 / 6))
    entropy_true, entropy_both = math.log(3), -(2 * 2 / 6 * math.log(2 / 6) + 2 * 1 / 6 * math.log(1 / 6))
    common = entropy_predicted + entropy_true - entropy_both
    assert score(found, "nmi").item() == pytest.approx(2 * common / (entropy_predicted + entropy_true))
    apart = entropy_predicted + entropy_true - 2 * common
    assert score(found, "variation-of-information").item() == pytest.approx(apart)
    assert record_f1(found)[0] == pytest.approx([4 / 5, 4 / 5, 2 / 5, 2 / 3, 1, 1])


def test_everyone_alone_has_good_clusters_and_no_pair():
    """450 entities of 500 records, 50 of them pairs, as in RLdata500."""
    truth = np.repeat(np.arange(450), np.repeat([2, 1], [50, 400]))
    alone = np.arange(500)
    assert one_score(alone, truth, "cluster-recall") == pytest.approx(400 / 450)
    assert one_score(alone, truth, "cluster-precision") == pytest.approx(400 / 500)
    assert one_score(alone, truth, "pairwise-f1") == 0
    assert math.isnan(one_score(alone, truth, "pairwise-precision"))
    assert one_score(alone, truth, "pairwise-recall") == 0
    assert math.isnan(one_score(truth, alone, "pairwise-recall"))


@pytest.mark.parametrize("partition", [[0], [0, 1], [0, 0], [0, 0, 0], [0, 1, 2, 3]])
def test_equal_partitions_without_information(partition):
    for metric in ("ari", "nmi", "b3-f1", "cluster-f1"):
        assert one_score(partition, partition, metric) == 1, metric
    for metric in DISTANCES:
        assert one_score(partition, partition, metric) == 0, metric


def test_records_of_unknown_entity_are_left_out():
    predicted, truth = [0, 0, 0, 3, 3, 5], [1, 1, -1, 2, -1, 2]
    found = contingency(np.array([predicted]), np.array([truth]))
    known = contingency(np.array([[0, 0, 3, 5]]), np.array([[1, 1, 2, 2]]))
    for metric in names():
        assert score(found, metric) == score(known, metric), metric
    assert found.num_common.tolist() == [4]
    assert np.isnan(record_f1(found)[0]).tolist() == [False, False, True, False, True, False]


def test_nothing_known():
    found = contingency(np.array([[0, 1]]), np.array([[-1, -1]]))
    for metric in set(names()) - {"pairwise-f1", "cluster-f1", "ari", "merge-moves", "merge-pairs"}:
        assert np.isnan(score(found, metric)).all(), metric


def test_large_labels():
    assert one_score([10**12, 10**12, 5], [3, 3, 0], "ari") == 1


def test_unequal_numbers_of_draws():
    with pytest.raises(ValueError, match="2 draws of the prediction and 3 of the truth"):
        contingency(np.zeros((2, 4), int), np.zeros((3, 4), int))


# Any partitions -------------------------------------------------------------------------------------------------------


@st.composite
def two_sides(draw):
    size, draws = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    rows = st.lists(st.integers(-1, 3), min_size=size, max_size=size)
    sides = [np.array(draw(st.lists(rows, min_size=number, max_size=number))) for number in (draws, draws)]
    single = draw(st.sampled_from([None, 0, 1]))
    return [side[:1] if place == single else side for place, side in enumerate(sides)]


def by_definition(predicted, truth):
    """Return all scores pair by pair and set by set."""
    kept = [record for record, sides in enumerate(zip(predicted, truth, strict=True)) if min(sides) >= 0]
    clusters = [
        {frozenset(other for other in kept if side[other] == side[record]) for record in kept}
        for side in (predicted, truth)
    ]
    pairs = [{pair for cluster in side for pair in itertools.combinations(sorted(cluster), 2)} for side in clusters]
    both, size = len(pairs[0] & pairs[1]), len(kept)
    own = {record: [next(c for c in side if record in c) for side in clusters] for record in kept}
    shares = [[len(one & other) / len(whole) for one, other in own.values() for whole in [(one, other)[place]]]
              for place in (0, 1)]  # fmt: skip
    precision, recall = (np.mean(share) for share in shares)
    exact = len(clusters[0] & clusters[1])
    cells = {one & other for one, other in own.values()}
    entropy = [-sum(len(c) / size * math.log(len(c) / size) for c in side) for side in (*clusters, cells)]
    return {
        "pairwise-precision": both / len(pairs[0]) if pairs[0] else math.nan,
        "pairwise-recall": both / len(pairs[1]) if pairs[1] else math.nan,
        "pairwise-f1": 2 * both / (len(pairs[0]) + len(pairs[1])) if pairs[0] and pairs[1] else 0,
        "cluster-precision": exact / len(clusters[0]),
        "cluster-recall": exact / len(clusters[1]),
        "cluster-f1": 2 * exact / (len(clusters[0]) + len(clusters[1])),
        "b3-precision": precision, "b3-recall": recall, "b3-f1": 2 * precision * recall / (precision + recall),
        "merge-pairs": len(pairs[0] ^ pairs[1]),
        "merge-moves": sum(len({one & other for other in clusters[1]} - {frozenset()}) - 1 for one in clusters[0])
        + sum(len({one & other for other in clusters[0]} - {frozenset()}) - 1 for one in clusters[1]),
        "variation-of-information": 2 * entropy[2] - entropy[0] - entropy[1],
        "nmi": 2 * (entropy[0] + entropy[1] - entropy[2]) / (entropy[0] + entropy[1])
        if entropy[0] + entropy[1] > 1e-9 else 1.0,
    }  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(two_sides())
def test_against_the_definitions(sides):
    predicted, truth = np.broadcast_arrays(*sides)
    found = contingency(*sides)
    for draw, (one, other) in enumerate(zip(predicted, truth, strict=True)):
        if not ((one >= 0) & (other >= 0)).any():
            continue
        for metric, expected in by_definition(one, other).items():
            value = score(found, metric)[draw]
            np.testing.assert_allclose(value, expected, atol=1e-12, err_msg=metric)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_ari_is_zero_on_average_over_all_permutations(truth, random):
    """The chance that ARI corrects for: the predicted cluster sizes, dealt out to the records in any order."""
    assume(1 < len(set(truth)) < len(truth))
    predicted = [random.randrange(3) for _ in truth]
    orders = np.array(list(itertools.permutations(predicted)))
    value = score(contingency(orders, np.array([truth])), "ari")
    assert abs(value.mean()) < 1e-9


@settings(max_examples=100, deadline=None)
@given(two_sides(), st.randoms(use_true_random=False))
def test_invariances(sides, random):
    predicted, truth = np.broadcast_arrays(*sides)
    order = random.sample(range(predicted.shape[1]), predicted.shape[1])
    labels = np.array([*random.sample(range(10), 4), -1])
    found = contingency(predicted, truth)
    again = contingency(labels[predicted][:, order], truth[:, order])
    exchanged = contingency(truth, predicted)
    for metric in names():
        value = score(found, metric)
        np.testing.assert_allclose(score(again, metric), value, atol=1e-12, err_msg=metric)
        np.testing.assert_allclose(score(exchanged, EXCHANGED[metric]), value, atol=1e-12, err_msg=metric)
        if metric not in DISTANCES:
            assert np.nanmax(value, initial=0) <= 1 + 1e-12
        else:
            assert np.nanmin(value, initial=0) >= 0
    np.testing.assert_allclose(record_f1(again), record_f1(found)[:, order])


@settings(max_examples=50, deadline=None)
@given(two_sides())
def test_a_perfect_prediction(sides):
    truth = sides[1][(sides[1] >= 0).any(axis=1)]
    found = contingency(truth, truth)
    for metric in names():
        value = score(found, metric)
        if metric.startswith("pairwise"):  # there may be no pair to find
            value = value[_num_pairs(truth) > 0]
        np.testing.assert_allclose(value, 0 if metric in DISTANCES else 1, atol=1e-12, err_msg=metric)


def _num_pairs(partitions):
    return np.array([sum(a == b >= 0 for a, b in itertools.combinations(row.tolist(), 2)) for row in partitions])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=3, max_size=3))
def test_distances_obey_the_triangle_inequality(three):
    """Moves do not: what takes one split after the other may be shorter by a detour over merged clusters."""
    first, second, third = three
    for metric in ("merge-pairs", "variation-of-information"):
        detour = one_score(first, second, metric) + one_score(second, third, metric)
        assert one_score(first, third, metric) <= detour + 1e-12


def neighbours(partition):
    """Return every partition one split or merge away."""
    blocks = list(partition)
    for one, other in itertools.combinations(blocks, 2):
        yield frozenset([*(b for b in blocks if b not in (one, other)), one | other])
    for block in blocks:
        rest = sorted(block)[1:]
        for number in range(1, len(rest) + 1):
            for part in itertools.combinations(rest, number):
                yield frozenset([*(b for b in blocks if b != block), frozenset(part), block - frozenset(part)])


def as_sets(partition):
    return frozenset(frozenset(r for r, own in enumerate(partition) if own == c) for c in set(partition))


@pytest.mark.parametrize("seed", range(6))
def test_moves_are_those_of_splits_then_merges(seed):
    """The fewest splits, then the fewest merges, found by searching both ways from the coarsest common refinement."""
    predicted, truth = np.random.default_rng(seed).integers(0, 3, (2, 6))
    start, end = as_sets(predicted.tolist()), as_sets(truth.tolist())

    def reached(partition):
        """Return how many splits away each refinement of a partition is."""
        steps, edge, distance = {partition: 0}, {partition}, 0
        while edge:
            distance += 1
            edge = {n for p in edge for n in neighbours(p) if len(n) > len(p)} - steps.keys()
            steps |= dict.fromkeys(edge, distance)
        return steps

    down, up = reached(start), reached(end)
    assert one_score(predicted, truth, "merge-moves") == min(down[p] + up[p] for p in down.keys() & up.keys())
