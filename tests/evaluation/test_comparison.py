"""Leaderboards: both sources of uncertainty against closed forms, and whether the interval covers."""

import numpy as np
import pytest

import consilience as cs
from consilience.data import Annotations, Predictions
from consilience.errors import InputError, UnsupportedRequest
from consilience.evaluation.readings import best_shares
from consilience.models.truth import Entries, LabelDraws, PointTruth
from consilience.models.truth import entries as truth_entries

CLASSES = list("012")


def predictions(top):
    """Make predictions whose first choice is given."""
    return Predictions.from_lists([[str(code)] for code in top], classes=CLASSES)


def simulated(seed=0, num_draws=4000, num_items=40):
    """Return draws of labels with item-wise probabilities, and three systems."""
    random = np.random.default_rng(seed)
    probability = random.dirichlet(np.full(3, 0.6), num_items)
    labels = (random.random((num_draws, num_items, 1)) > probability.cumsum(1)).sum(-1).clip(0, 2)
    systems = {"A": probability.argmax(1), "B": random.integers(0, 3, num_items), "C": random.integers(0, 3, num_items)}
    return labels, LabelDraws(labels, 3), {name: predictions(top) for name, top in systems.items()}, systems


@pytest.fixture(scope="module")
def board():
    labels, truth, systems, tops = simulated()
    return labels, tops, cs.compare(truth, systems, provenance="annotations"), truth, systems


def test_scores_of_classes_are_those_of_evaluate(board):
    labels, tops, comparison, truth, systems = board
    hits = np.stack([labels == top for top in tops.values()])
    np.testing.assert_allclose(comparison.values, hits.mean((1, 2)))
    np.testing.assert_allclose(comparison.truth_draws, hits.mean(2))
    for place, prediction in enumerate(systems.values()):
        np.testing.assert_allclose(cs.evaluate(truth, prediction).draws, comparison.truth_draws[place], atol=1e-6)
    table = comparison.table.set_index("system").loc[list(tops)]
    np.testing.assert_allclose(table["sd_truth"], hits.mean(2).std(1, ddof=1))
    assert comparison.table["system"][0] == "A"
    assert comparison.table["rank"].tolist() == [1, 2, 3]
    assert "point_estimate" not in comparison.table


def test_item_spread_is_the_bayesian_bootstraps(board):
    """With Dirichlet(1, …, 1) weights of n items and a pseudo-item whose score u has mean 1/2 and variance 1/8."""
    labels, tops, comparison, *_ = board
    share = np.stack([(labels == top).mean(0) for top in tops.values()])
    number = share.shape[1] + 1
    mean = (share.sum(1) + 0.5) / number
    squares = (share**2).sum(1) + 0.25 + 0.125 - number * (mean**2 + 0.125 / number**2)
    closed = np.sqrt(squares / (number * (number + 1)) + 0.125 / number**2)
    measured = comparison.item_draws.std(1, ddof=1)
    assert np.abs(measured / closed - 1).max() < 5 / np.sqrt(2 * 4000)  # the error of a standard deviation
    assert np.abs((comparison.item_draws.mean(1) - mean) / (closed / np.sqrt(4000))).max() < 5


def test_what_items_do_not_share_is_not_added(board):
    """Labels of items are independent here: the items' own doubt is in how their means differ."""
    _, _, comparison, *_ = board
    table = comparison.table
    assert np.all(table["sd_shared"] < 0.35 * table["sd_truth"])
    np.testing.assert_allclose(comparison.draws - comparison.item_draws, comparison.shared_draws, atol=1e-12)


def test_probabilities_of_winning(board):
    *_, comparison, _, _ = board
    beats = comparison.beats.to_numpy()
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose((beats + beats.T)[off], 1)
    assert np.isnan(np.diag(beats)).all()
    assert comparison.table["p_best"].sum() == pytest.approx(1)
    for _, pair in comparison.pairs.iterrows():
        assert pair["p_a_beats_b"] == pytest.approx(comparison.beats.loc[pair["a"], pair["b"]])
        assert pair["difference"] >= 0
        assert pair["lower"] <= pair["difference"] <= pair["upper"]
    assert len(comparison.pairs) == 3


def test_differences_are_paired():
    """Two systems that differ on one item only: the spread of their difference is that of one item."""
    labels, truth, _, tops = simulated(1)
    changed = tops["B"].copy()
    changed[5] = (changed[5] + 1) % 3
    pair = cs.compare(truth, {"x": predictions(tops["B"]), "y": predictions(changed)}).pairs.iloc[0]
    difference = (labels[:, 5] == tops["B"][5]).astype(float) - (labels[:, 5] == changed[5])
    assert pair["sd_truth"] == pytest.approx(difference.std(ddof=1) / labels.shape[1], rel=1e-5)


def test_systems_with_the_same_predictions_are_even():
    """They tie on these items in every draw; of others nobody knows, and neither is said to be the better one."""
    _, truth, systems, _ = simulated(2, num_draws=2000)
    comparison = cs.compare(truth, {"x": systems["B"], "y": systems["B"], "z": systems["B"]}, provenance="annotations")
    pairs = comparison.pairs
    assert pairs["p_a_beats_b_truth"].tolist() == [0.5] * 3
    assert pairs["sd_truth"].tolist() == [0] * 3
    np.testing.assert_allclose(pairs["sd_shared"], 0, atol=1e-9)
    for column in ("p_a_beats_b", "p_a_beats_b_items"):
        assert pairs[column].to_numpy() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(2000))
    assert (pairs["lower"] < 0).all()
    assert (pairs["upper"] > 0).all()
    assert comparison.table["p_best"].to_numpy() == pytest.approx(1 / 3, abs=0.06)


def test_a_point_truth_has_uncertain_items_only():
    point = PointTruth(Entries.of(np.arange(30), np.arange(30) % 3, 30, 3), np.ones(30))
    comparison = cs.compare(point, {"x": predictions(np.zeros(30, int)), "y": predictions(np.arange(30) % 3)})
    table = comparison.table.set_index("system")
    assert table["sd_truth"].tolist() == [0, 0]
    assert table.loc["y", "value"] == 1
    assert table.loc["x", "sd"] == pytest.approx(np.sqrt(30 * (1 / 3) * (2 / 3) / (30 * 31)), rel=0.12)
    assert comparison.pairs.iloc[0]["p_a_beats_b"] == 1


def test_the_seed_is_that_of_the_weights_of_items(board):
    _, _, comparison, truth, systems = board
    again, other = cs.compare(truth, systems), cs.compare(truth, systems, seed=1)
    np.testing.assert_array_equal(again.draws, comparison.draws)
    np.testing.assert_array_equal(other.truth_draws, comparison.truth_draws)
    assert np.all(other.item_draws != comparison.item_draws)


def test_blocks_do_not_change_the_scores(board, monkeypatch):
    _, _, comparison, truth, systems = board
    monkeypatch.setattr(truth_entries, "block_numbers", lambda: 6 * 4000)
    split = cs.compare(truth, systems)
    np.testing.assert_allclose(split.truth_draws, comparison.truth_draws, atol=1e-6)
    for mine, theirs in ((split.draws, comparison.draws), (split.item_draws, comparison.item_draws)):
        ratio = mine.std(1, ddof=1) / theirs.std(1, ddof=1)
        assert np.abs(ratio - 1).max() < 5 / np.sqrt(4000)


def test_comparing_missing_and_unknown_predictions():
    data = Annotations.from_codes([0, 1, 2], [0, 0, 0], [0, 1, 1], items=["a", "b", "c"], labels=["x", "y"])
    fit = cs.fit("dirichlet", data, draws=100)
    full = Predictions.from_lists([["x"], ["y"], ["x"]], items=["a", "b", "c"])
    part = Predictions.from_lists([["y"], ["x"]], items=["b", "a"])
    with pytest.raises(InputError, match="'c'"):
        cs.compare(fit, {"full": full, "part": part})
    comparison = cs.compare(fit, {"full": full, "part": part}, missing="drop")
    assert comparison.num_items == 2
    np.testing.assert_array_equal(comparison.truth_draws[0], comparison.truth_draws[1])
    only_c = Predictions.from_lists([["x"]], items=["c"])
    with pytest.raises(InputError, match="no item has predictions of all systems"):
        cs.compare(fit, {"part": part, "c": only_c}, missing="drop")
    odd = Predictions.from_lists([["nevus"], ["y"], ["x"]], items=["a", "b", "c"])
    with pytest.raises(InputError, match="'nevus'"):
        cs.compare(fit, {"full": full, "odd": odd})
    kept = cs.compare(fit, {"full": full, "odd": odd}, unknown="keep")
    assert kept.table["system"].tolist() == ["full", "odd"]
    assert kept.table["rank_by_point_estimate"].tolist() == [1, 2]
    with pytest.raises(UnsupportedRequest, match="no system"):
        cs.compare(fit, {})


def test_groups_of_classes_are_of_classes_of_items():
    verdicts = {"item": ["a"], "system": ["s"], "annotator": ["j"], "label": ["right"]}
    with pytest.raises(UnsupportedRequest, match="class_groups= groups the classes of items, and verdicts have none"):
        cs.compare(verdicts, class_groups={"class": ["right"], "group": ["good"]})


def test_p_best_shares_ties():
    draws = np.array([[1.0, 0, 1], [1, 1, 1e-10], [0, 1 - 1e-10, 0]])
    assert best_shares(draws).mean(axis=1).tolist() == pytest.approx([0.5, 1 / 3, 1 / 6])


@pytest.mark.slow
@pytest.mark.parametrize("certainty", [0.8, 0.98])
def test_intervals_cover_the_score_of_the_population(certainty):
    """Items are drawn anew 1000 times; how often the 95 % interval covers the system's score in their population.

    Draws of the truth are exact posteriors, right on average: the population score is the mean of P(hit). Measured
    (60 items, standard error 0.007), by both sources, truth alone and items alone:

    ========= ====== ====== ======
    certainty both   truth  items
    ========= ====== ====== ======
    0.80      0.958  0.978  0.957
    0.98      0.955  0.436  0.955
    ========= ====== ====== ======

    Items share nothing here. The truth alone is too wide where it is uncertain, and too narrow where it is not.
    """
    random, num_items, num_draws, replications = np.random.default_rng(0), 60, 400, 1000
    skill, rest = 0.7, (1 - certainty) / 2
    population = skill * certainty + (1 - skill) * rest
    covered = np.zeros(3)
    for seed in range(replications):
        mode = random.integers(0, 3, num_items)
        probability = np.full((num_items, 3), rest)
        probability[np.arange(num_items), mode] = certainty
        draws = (random.random((num_draws, num_items, 1)) > probability.cumsum(1)).sum(-1).clip(0, 2)
        top = np.where(random.random(num_items) < skill, mode, (mode + random.integers(1, 3, num_items)) % 3)
        comparison = cs.compare(LabelDraws(draws, 3), {"x": predictions(top)}, seed=seed, provenance="annotations")
        for place, values in enumerate((comparison.draws, comparison.truth_draws, comparison.item_draws)):
            low, high = np.quantile(values[0], [0.025, 0.975])
            covered[place] += low <= population <= high
    share = covered / replications
    print("covered by both, truth, items:", share)
    error = np.sqrt(0.95 * 0.05 / replications)
    assert abs(share[0] - 0.955) < 4 * error
    assert abs(share[2] - 0.955) < 4 * error
    assert abs(share[1] - 0.95) > 4 * error
