"""Annotation certainty, and expected risk."""

import tracemalloc

import jax
import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations, ClassMap, Predictions
from consilience.errors import UnsupportedRequest
from consilience.models.truth import DirichletTruth, Entries, LabelDraws, PlausibilityDraws, PointTruth, Ranked
from consilience.models.truth.truth import Mass

RISK = ClassMap.from_codes([0, 1, 2, 1], groups=["0", "1", "2"])


def random_truth(seed=0, num_draws=50, num_items=7, num_classes=4):
    draws = np.random.default_rng(seed).dirichlet(np.full(num_classes, 0.4), (num_draws, num_items))
    return PlausibilityDraws.dense(draws), draws


@pytest.mark.parametrize("top", [1, 2, 3, 4])
def test_share_of_the_most_frequent_set(top):
    truth, draws = random_truth()
    score = cs.certainty(truth, top=top)
    names = score.table["classes"]
    agreeing = np.zeros(50)
    for item in range(7):
        sets = [frozenset(np.argsort(-draws[d, item])[:top].tolist()) for d in range(50)]
        counts = {one: sets.count(one) for one in sets}
        assert score.items[item] == max(counts.values()) / 50
        chosen = frozenset(map(int, names[item].split(" | ")))
        assert counts[chosen] == max(counts.values())
        agreeing += [one == chosen for one in sets]
    np.testing.assert_allclose(score.draws, agreeing / 7)
    assert score.value == pytest.approx(score.draws.mean())


def test_several_sets_in_one_pass_are_those_of_single_passes():
    truth, _ = random_truth()
    passes = 0

    def counted(question, blocks=truth.blocks):
        nonlocal passes
        passes += 1
        return blocks(question)

    truth.blocks = counted
    together = cs.certainty(truth, top=(1, 3))
    assert passes == 1
    assert list(together) == [1, 3]
    for size, score in together.items():
        np.testing.assert_array_equal(score.items, cs.certainty(truth, top=size).items)
    with pytest.raises(UnsupportedRequest, match="top is 5"):
        cs.certainty(truth, top=(1, 5))


def test_point_masses_are_certain():
    point = PointTruth(Entries.of(np.array([0, 0, 2]), np.array([1, 2, 0]), 3, 4), np.array([1.0, 2.0, 1.0]))
    for top in (1, 2, 3, 4):
        assert cs.certainty(point, top=top).items.tolist() == [1, 1, 1]
    same = PlausibilityDraws.dense(np.broadcast_to([0.2, 0.5, 0.3], (9, 2, 3)))
    assert cs.certainty(same, top=2).value == 1


def test_sets_of_many_classes_do_not_overflow():
    """Nine classes out of 20,000 need more than 64 bits when written as one number."""
    rng = np.random.default_rng(0)
    entries = Entries.of(np.zeros(9, int), np.sort(rng.choice(20_000, 9, replace=False)), 1, 20_000)
    weights = rng.normal(size=(40, 9))
    weights[::2, 3] = -np.inf  # in half of the draws another class fills the set
    score = cs.certainty(PlausibilityDraws(entries, weights), top=9)
    assert score.items.tolist() == [0.5]


def test_risk_of_the_top_class_and_of_the_sum():
    truth, draws = random_truth(1)
    group = np.array([0, 1, 2, 1])
    classes, top = cs.certainty(truth), cs.certainty(truth, class_groups=RISK)
    summed = cs.certainty(truth, class_groups=RISK, group_rule="sum")
    assert np.all(top.items >= classes.items)
    leader = group[draws.argmax(-1)]
    mass = np.stack([draws[:, :, group == g].sum(-1) for g in range(3)], -1).argmax(-1)
    for score, codes in ((top, leader), (summed, mass)):
        shares = np.stack([(codes == g).mean(0) for g in range(3)])
        np.testing.assert_allclose(score.items, shares.max(0))
        assert [shares[int(name), i] for i, name in enumerate(score.table["classes"])] == pytest.approx(shares.max(0))


def test_exact_certainty_of_groups():
    data = Annotations.from_codes([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 1, 3, 2, 2], num_labels=4, num_items=3)
    fit = cs.fit("dirichlet", data, draws=20_000)
    exact, drawn = cs.certainty(fit, class_groups=RISK), cs.certainty(fit, class_groups=RISK, exact=False)
    error = np.sqrt(exact.items * (1 - exact.items) / 20_000)
    assert np.abs((exact.items - drawn.items) / error).max() < 5
    assert exact.items[2] == pytest.approx(0.5)  # two classes of four, nobody said anything
    assert np.all(exact.items >= cs.certainty(fit, exact=True).items)
    assert exact.sd == pytest.approx(drawn.sd, rel=0.05)
    assert exact.interval == drawn.interval  # of three items
    probability = fit.truth.exact(Ranked(1))
    named = np.bincount(probability.unit, probability.probability, 3)
    total = named + probability.unnamed * (4 - np.diff(fit.truth.entries.first))
    np.testing.assert_allclose(total, 1, atol=1e-12)


def test_certainty_rises_with_reliability():
    data = Annotations.from_codes([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 0, 1, 2, 2, 2])
    values = [cs.certainty(cs.fit("dirichlet", data, reliability=g), exact=True).value for g in (0.1, 1, 5, 50, 5000)]
    assert np.all(np.diff(values) > 0)
    assert values[-1] == pytest.approx(1, abs=1e-9)


def test_certainty_of_given_sets():
    truth, draws = random_truth(2)
    sets = [[str(i % 4), str((i + 1) % 4)][: 1 + i % 2] for i in range(7)]
    score = cs.certainty(truth, of=Predictions.from_lists(sets, classes=list("0123")))
    for item, names in enumerate(sets):
        top = np.argsort(-draws[:, item], axis=-1)[:, : len(names)]
        hits = [set(map(int, names)) == set(row) for row in top]
        assert score.items[item] == pytest.approx(np.mean(hits))
    for options, words in (({"exact": True}, "set-2 has no closed form"), ({"class_groups": RISK}, "given labels")):
        with pytest.raises(UnsupportedRequest, match=words):
            cs.certainty(truth, of=Predictions.from_lists(sets, classes=list("0123")), **options)


def test_expected_risk():
    truth, draws = random_truth(3)
    score = cs.expected_risk(truth, RISK)
    risk = draws @ np.array([0.0, 1, 2, 1])
    np.testing.assert_allclose(score.items, risk.mean(0), atol=1e-6)
    np.testing.assert_allclose(score.draws, risk.mean(1), atol=1e-6)
    assert np.all((score.items >= 0) & (score.items <= 2))
    with pytest.raises(UnsupportedRequest, match="numbers as groups"):
        cs.expected_risk(truth, ClassMap.from_codes([0, 1, 1, 1], groups=["low", "high"]))


def test_expected_risk_of_a_dirichlet():
    data = Annotations.from_codes([0, 0, 1], [0, 1, 0], [1, 2, 0], num_labels=4, num_items=3)
    fit = cs.fit("dirichlet", data, alpha=0.1, draws=20_000)
    score = cs.expected_risk(fit, RISK)
    dense = np.full((3, 4), 0.1)
    np.add.at(dense, (data.item, data.label), 1)
    mean = dense / dense.sum(1, keepdims=True)
    risk = np.array([0.0, 1, 2, 1])
    variance = (mean @ risk**2 - (mean @ risk) ** 2) / (dense.sum(1) + 1)
    assert np.abs((score.items - mean @ risk) / np.sqrt(variance / 20_000)).max() < 5
    # The point estimate: 3/2 and 0 by their votes; of the third nothing is known, all classes alike.
    assert score.point == pytest.approx((1.5 + 0 + 1) / 3)


@pytest.mark.parametrize(
    "options",
    [{"top": 0}, {"top": 5}, {"group_rule": "mean"}, {"top": 2, "class_groups": RISK}, {"top": 2, "exact": True}],
)
def test_requests_without_an_answer(options):
    with pytest.raises(UnsupportedRequest):
        cs.certainty(random_truth()[0], **options)


def test_labels_have_a_certainty():
    score = cs.certainty(LabelDraws(np.array([[0, 1], [0, 2], [1, 2], [0, 2]]), 3))
    assert score.items.tolist() == [0.75, 0.75]


def test_a_million_classes_need_little_memory():
    """50 items x 200 draws x 10^6 classes would be 40 GB; blocks hold named classes alone."""
    entries = Entries.of(np.arange(50), np.arange(50) * 1000, 50, 10**6)
    truth = DirichletTruth(entries, np.full(50, 30.0), 1e-4, key=jax.random.key(0), num_draws=200)
    group = ClassMap.from_codes(np.arange(10**6) % 2, groups=["0", "1"])
    tracemalloc.start()
    top2 = cs.certainty(truth, top=2)
    top1 = cs.certainty(truth, exact=False)
    risk = next(truth.blocks(Mass(np.asarray(group.group), 2))).values
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8
    assert risk.shape[-1] == 2
    assert np.all(top2.items < 0.1)  # which of a million classes comes second is anybody's guess
    entry = truth.exact(Ranked(1)).probability
    error = np.sqrt(entry * (1 - entry) / 200)
    assert np.abs((top1.items - entry) / np.maximum(error, 1e-3)).max() < 5
