"""The benchmark of crowds: scores by hand, simulated crowds, the choice of rho, and what an interruption leaves."""

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import crowd, crowd_public, crowd_simulated, crowd_speed
from benchmarks.recording import Kept
from consilience.data import Annotations
from consilience.models.crowd.gate import signal


def test_scores_by_hand():
    probability = np.array([[0.7, 0.3], [0.75, 0.25], [0.5, 0.5], [0.0, 1.0], [0.9, 0.1]])
    found = crowd_public.scores(probability, np.array([0, 1, 1, 0, -1]))
    assert found["items"] == 4
    assert found["right"] == pytest.approx((1 + 0 + 0.5 + 0) / 4)
    assert found["certainty"] == pytest.approx((0.7 + 0.75 + 0.5 + 1) / 4)
    # Bins: .5 (certainty .5, right .5), .7 (two items: 1.45 and 1), 1 (1 and 0).
    assert found["ECE"] == pytest.approx((0 + 0.45 + 1) / 4)
    assert found["NLL"] == pytest.approx(-np.log([0.7, 0.25, 0.5, 1e-6]).mean())
    assert found["Brier"] == pytest.approx((2 * 0.09 + 2 * 0.5625 + 2 * 0.25 + 2) / 4)
    filled = {place: one for place, one in enumerate(found["bins"]) if one[0]}
    assert filled == {5: [1, 0.5, 0.5], 7: [2, pytest.approx(1.45), 1], 9: [1, 1, 0]}


def test_of_repeated_rows_the_first_stays():
    data = Annotations.from_codes([0, 0, 1, 0, 1], [0, 1, 0, 0, 1], [1, 0, 1, 0, 0], gold=[1, -1])
    found = crowd_public.first_kept(data)
    assert np.stack([found.item, found.annotator, found.label]).tolist() == [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert (found.num_annotations, found.num_items, list(found.gold)) == (4, 2, [1, -1])


def _of_nll(*values):
    scores = {name: [0.5] * len(values) for name in ("right", "certainty", "ECE", "Brier")}
    return {"rho": [0.0, 0.2, 0.4], "NLL": list(values), **scores}


def test_rho_is_chosen_on_the_others():
    rows = {"a": _of_nll(3.0, 1.0, 2.0), "b": _of_nll(2.0, 1.5, 1.0), "c": _of_nll(5.0, 4.0, 3.9)}
    *found, mean = crowd_public.left_out(rows)
    # Others of a: b and c have sums 7, 5.5, 4.9; of b: 8, 5, 5.9; of c: 5, 2.5, 3.
    assert [row["chosen rho"] for row in found] == [0.4, 0.2, 0.2]
    assert [row["best rho"] for row in found] == [0.2, 0.4, 0.4]
    assert [row["NLL, chosen"] for row in found] == [2.0, 1.5, 4.0]
    assert mean["NLL, chosen"] == pytest.approx(2.5)
    assert crowd_public.left_out({"a": rows["a"]}) == []


@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_crowds_of_noise_are_as_right_as_they_should_be(delta):
    data, truth = crowd_simulated.noise(3, 5, 2000, delta)
    assert data.counts == {"annotations": 10_000, "items": 2000, "annotators": 5, "labels": 3}
    assert np.unique(np.bincount(data.item * 5 + data.annotator)).tolist() == [1]
    right = (data.label == truth[data.item]).mean()
    assert abs(right - (1 / 3 + delta)) < 5 * 0.5 / np.sqrt(10_000)
    assert signal(data).fires == (delta == 0)


@pytest.mark.parametrize("kind", crowd_simulated.CROWDS)
def test_crowds_of_intervals_have_the_accuracy_that_is_told(kind):
    excess, own, number = [], 0.0, 0
    annotators, items = (8, 500) if kind.startswith("eight") else (20, 200)
    for seed in range(40):
        data, truth, accuracy = crowd_simulated.crowd(kind, seed)
        assert np.unique(np.bincount(data.item * annotators + data.annotator))[-1] == 1
        labels = crowd_simulated.num_labels(kind)
        sizes = {"annotations": 3 * items, "items": items, "annotators": annotators, "labels": labels}
        assert data.counts == sizes
        rows = np.bincount(data.annotator, minlength=annotators)
        right = np.bincount(data.annotator, data.label == truth[data.item], annotators)
        excess.append(((right - rows * accuracy) / np.sqrt(rows * accuracy * (1 - accuracy))).mean())
        own, number = own + accuracy.sum(), number + annotators
    # The labels of annotators of the same items are independent given the truth, whose share varies around p.
    assert abs(np.mean(excess)) < 5 * np.std(excess) / np.sqrt(len(excess))
    expected = {"as modelled": 0.6, "a quarter hard": 0.75 * 0.6 + 0.25 / 3}.get(kind, 8 / 11)
    expected = 0.67125 if kind.startswith("eight") else expected
    assert abs(own / number - expected) < 5 * 0.25 / np.sqrt(number)


def test_rows_of_noise_are_told_by_member_and_delta():
    row = {"gate": True, "alert": True, "warned": True, "certainty": 0.6, "right": 0.5, "ECE": 0.1}
    rows = {
        ("mace", 0.0, 2, 3, 60): row, ("mace", 0.0, 2, 3, 200): row | {"alert": False, "certainty": 0.5},
        ("mace", 0.0, 2, 3, 1000): row | {"alert": False, "certainty": 0.7},
        ("dawid-skene", 0.15, 2, 3, 60): row,
    }  # fmt: skip
    first, second = crowd_simulated.noise_means(rows)
    assert (first["model"], second["model"], second["cells"], second["alerts"]) == ("dawid-skene", "mace", 3, 1)
    assert second["alert or certainty below .54"] == 2
    assert (second["certainty"], second["largest"]) == (pytest.approx(0.6), 0.7)


def test_annotators_of_the_races_label_no_item_twice():
    data = crowd_speed.simulated(10_000)
    assert data.counts == {"annotations": 10_000, "items": 2000, "annotators": 100, "labels": 4}
    assert np.bincount(data.item.astype(int) * 100 + data.annotator).max() == 1
    assert not signal(data).fires
    assert signal(crowd_speed.simulated(10_000, noise=True)).fires


def test_kept_rows_are_measured_once_and_again_when_asked(tmp_path):
    path, measured = tmp_path / "rows.jsonl", []

    def measure():
        measured.append(len(measured))
        return {"value": np.float64(measured[-1]), "undefined": np.nan, "list": np.array([1.0, np.inf])}

    kept = Kept(path)
    assert kept.row("a", ("x", 1), measure) == {"value": 0.0, "undefined": None, "list": [1.0, None]}
    kept.row("a", ("x", 1), measure)
    kept.row("b", ("x", 1), measure)
    assert Kept(path).row("a", ("x", 1), measure)["value"] == 0
    later = Kept(path, again=True)
    assert [later.row("a", ("x", 1), measure)["value"] for _ in range(2)] == [2, 2]
    assert {key: row["value"] for key, row in Kept(path).rows("a").items()} == {("x", 1): 2}
    assert sum(Kept(path).commits("a").values()) == 1
    assert [json.loads(line)["part"] for line in path.read_text().splitlines()] == ["a", "b", "a"]


def test_bars_are_met_only_by_what_was_measured(tmp_path):
    kept = Kept(tmp_path / "rows.jsonl")
    assert {one.met for one in crowd.bars(kept)} == {None}
    scores = {"right": 0.9, "certainty": 0.9, "ECE": 0.05, "NLL": 0.5, "Brier": 0.1, "rho": 0.3}
    for name in crowd_public.SETS[:-1]:
        kept.row("public", (name, "dawid-skene, rho 0.3"), lambda: scores)
    assert {one.met for one in crowd.bars(kept)} == {None}
    kept.row("public", (crowd_public.SETS[-1], "dawid-skene, rho 0.3"), lambda: scores)
    found = {one.name: one for one in crowd.bars(kept) if one.met is not None}
    assert [one.met for one in found.values()] == [True, False, True]
    assert found["dawid-skene, rho .3, nine sets: mean NLL"][1:] == ("≤ 0.4", "0.500", False)


@pytest.mark.slow
def test_a_part_goes_on_from_what_is_kept(tmp_path, capsys):
    words = ["crowd", "--only", "noise", "--cells", "1", "--members", "one-coin", "--output", str(tmp_path)]
    assert command.main(words) == 0
    first = capsys.readouterr().out
    assert first.count("noise: one-coin") == 4
    kept = (tmp_path / "rows.jsonl").read_text()
    assert command.main(words) == 0
    assert (tmp_path / "rows.jsonl").read_text() == kept
    assert "noise: one-coin" not in capsys.readouterr().out
    told = (tmp_path / "results.md").read_text()
    assert "| one-coin | 0.000 | 1 | 1 | 1 |" in told
    assert "## Nine public sets" not in told
