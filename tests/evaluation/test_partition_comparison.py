"""Systems that link records, ranked: weights of groups by hand, both sources of uncertainty, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.data import Partition, Predictions
from consilience.errors import InputError, UnknownName, UnsupportedRequest
from consilience.evaluation.partitions import Sums, connected_groups, contingency, form_of, names, score
from consilience.models.truth import partitions as partition
from consilience.models.truth.partitions import DrawnPartitions

# Five groups of records, with what a system says of them and what is true; no cluster has records of two groups.
GROUP = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4])
PREDICTED = np.array([0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7])
TRUE = np.array([0, 0, 0, 1, 2, 3, 4, 4, 5, 5, 6])


def drawn(partitions, records=None):
    truth = DrawnPartitions(np.asarray(partitions))
    truth.ids = {} if records is None else {"record": records}
    return SimpleNamespace(truth=truth, method="gibbs")


def partitions(**systems):
    return {name: Partition.from_codes(np.asarray(codes)) for name, codes in systems.items()}


@settings(deadline=None, max_examples=25)
@given(copies=st.lists(st.integers(0, 3), min_size=5, max_size=5).filter(any))
def test_a_weight_is_a_number_of_copies(copies):
    """Groups of weight two count as two groups of the same kind, in every score."""
    rows = [np.flatnonzero(GROUP == group) for group, number in enumerate(copies) for _ in range(number)]
    shifts = 100 * np.repeat(np.arange(len(rows)), list(map(len, rows)))
    every = np.concatenate(rows)
    repeated = contingency((PREDICTED[every] + shifts)[None], (TRUE[every] + shifts)[None])
    found = contingency(PREDICTED[None], TRUE[None], GROUP, 5)
    for metric in names():
        form = form_of(metric)
        weighted = Sums(*np.stack(form.more["parts"](found)) @ np.array(copies, float)[:, None])
        with np.errstate(invalid="ignore", divide="ignore"):
            value = form.function(weighted)
        np.testing.assert_allclose(value, score(repeated, metric), rtol=1e-9, atol=1e-9)


def simulated(num_groups=60, num_draws=3_000, seed=0):
    """Return draws of pairs, each together with a probability of its own, and two systems."""
    random = np.random.default_rng(seed)
    together = random.random((num_draws, num_groups)) < random.random(num_groups)
    first = 2 * np.arange(num_groups)
    draws = np.stack([np.broadcast_to(first, together.shape), np.where(together, first, first + 1)], axis=2)
    linked = np.stack([first, np.where(together.mean(axis=0) > 0.5, first, first + 1)], axis=1).ravel()
    every = np.repeat(first, 2)
    return draws.reshape(num_draws, -1), together, partitions(half=linked, every=every)


def test_scores_of_partitions_are_those_of_evaluate():
    draws, _, systems = simulated(num_draws=200)
    comparison = cs.compare(drawn(draws), systems)
    assert comparison.title.startswith("pairwise-f1")
    for place, system in enumerate(systems.values()):
        score_ = cs.evaluate(drawn(draws), system)
        np.testing.assert_allclose(comparison.truth_draws[place], score_.draws)
        assert comparison.values[place] == pytest.approx(score_.value)
        assert comparison.points[place] == pytest.approx(score_.point)
    assert comparison.table["system"].tolist()[0] == "half"
    assert "60 connected groups" in repr(comparison)
    assert comparison.pairs["p_a_beats_b"][0] > 0.5


def test_the_spread_between_groups_is_the_bayesian_bootstraps():
    """A ratio of sums of one number for each group, and a pseudo-group of mean size; groups are independent here."""
    draws, together, systems = simulated()
    comparison = cs.compare(drawn(draws), systems, metric="pairwise-precision")
    place = list(systems).index("every")
    share, random = together.mean(axis=0), np.random.default_rng(0)
    size = (1 + share.mean()) / 2  # of the pseudo-group: the mean of the predicted and the true pairs of a group
    weight, score = random.dirichlet(np.ones(len(share) + 1), 100_000), random.beta(0.5, 0.5, 100_000)
    pairs = weight[:, :-1].sum(axis=1) + weight[:, -1] * size
    expected = (weight[:, :-1] @ share + weight[:, -1] * score * size) / pairs
    found = comparison.item_draws[place]
    assert abs(found.std(ddof=1) / expected.std() - 1) < 5 / np.sqrt(2 * len(found))
    assert abs(found.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(len(found))
    np.testing.assert_allclose(comparison.draws, comparison.item_draws + comparison.shared_draws, atol=1e-12)
    assert comparison.shared_draws[place].std() < 0.3 * comparison.truth_draws[place].std()


def test_the_same_groups_for_all_systems():
    draws, _, systems = simulated(num_draws=100)
    comparison = cs.compare(drawn(draws), {**systems, "again": systems["half"]})
    table = comparison.pairs.set_index(["a", "b"])
    assert table.loc[("half", "again"), "sd_truth"] == 0
    other = cs.compare(drawn(draws), systems, seed=1)
    assert (other.truth_draws == comparison.truth_draws[:2]).all()
    assert (other.draws != comparison.draws[:2]).any()


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_blocks_of_draws_do_not_change_a_leaderboard(rows, monkeypatch):
    draws, _, systems = simulated(num_groups=20, num_draws=50)
    expected = cs.compare(drawn(draws), systems)
    monkeypatch.setattr(partition, "_MOST_ROWS", rows * draws.shape[1])
    found = cs.compare(drawn(draws), systems)
    for name in ("draws", "truth_draws", "item_draws"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))


def test_one_draw_leaves_the_groups():
    comparison = cs.compare(drawn(TRUE[None]), partitions(a=PREDICTED, b=TRUE))
    assert comparison.values.tolist() == [score(contingency(PREDICTED[None], TRUE[None]), "pairwise-f1").item(), 1.0]
    assert comparison.draws.shape == (2, 1000)
    assert (comparison.draws == comparison.item_draws).all()
    assert np.all((comparison.draws[1] > 0) & (comparison.draws[1] <= 1))


def test_groups_are_what_neither_draws_nor_systems_link():
    truth = DrawnPartitions(np.array([[0, 0, 2, 3, 4, 5], [0, 1, 1, 3, 4, 5]]))
    group, number = connected_groups(truth, np.array([[0, 1, 2, 3, 3, 5], [0, 1, 2, 3, 4, 5]]))
    assert number == 3
    assert group.tolist() == [0, 0, 0, 1, 1, 2]
    group, number = connected_groups(truth, np.array([[0, 1, 2, 3, 3, -1], [0, 1, 2, 3, 4, -1]]))
    assert number == 2
    assert group[:5].tolist() == [0, 0, 0, 1, 1]


def test_records_that_a_system_lacks():
    truth = drawn(np.array([[0, 0, 2], [0, 1, 1]]), records=np.array(list("abc"), object))
    whole = Partition.from_codes([0, 0, 1], records=list("abc"))
    part = Partition.from_codes([0, 0], records=list("ab"))
    with pytest.raises(InputError, match="records of the data have no entity: 'c'"):
        cs.compare(truth, {"whole": whole, "part": part})
    comparison = cs.compare(truth, {"whole": whole, "part": part}, missing="drop")
    assert comparison.values.tolist() == [0.5, 0.5]


def test_draws_in_which_a_score_is_undefined_are_left_out_of_all():
    """There is no recall of pairs in a draw that has none."""
    truth = drawn(np.array([[0, 0, 2], [0, 1, 2], [0, 1, 1]]))
    comparison = cs.compare(truth, partitions(a=[0, 0, 1], b=[0, 1, 1]), metric="pairwise-recall")
    assert comparison.truth_draws.tolist() == [[1, 0], [0, 1]]
    assert comparison.draws.shape == (2, 3)


def test_what_cannot_be_ranked():
    truth, systems = drawn(np.array([[0, 0, 2]])), partitions(a=[0, 1, 2])
    with pytest.raises(UnsupportedRequest, match="merge-moves ranks no systems: of a distance less is better"):
        cs.compare(truth, systems, metric="merge-moves")
    with pytest.raises(UnknownName, match="no metric is called 'top-1' for records, but for items"):
        cs.compare(truth, systems, metric="top-1")
    with pytest.raises(UnsupportedRequest, match="undefined for one of the systems in every draw"):
        cs.compare(truth, systems, metric="pairwise-precision")
    classes = Predictions.from_lists([["x"]], classes=["x"])
    with pytest.raises(UnsupportedRequest, match="two kinds .*: a with entities of records and b with cl"):
        cs.compare(truth, {**systems, "b": classes})
