import argparse
import json

import numpy as np
import pytest

from benchmarks import mpa
from consilience.data import read_mentions
from consilience.data.conll import Chains
from consilience.models.mpa.scenarios import SCENARIOS, simulate_mentions

ROWS = [
    ("m1", "a", "DN", "DN"), ("m2", "a", "DO(m1)", "DO(m1)"), ("m3", "a", "DO(m1)", "DN"), ("m3", "b", "DO(m2)", "DN"),
    ("m4", "a", "DO(m1)", "DO(m3)"), ("m4", "b", "DN", "DO(m3)"), ("m4", "c", "DO(m3)", "DO(m3)"),
    ("m4", "d", "DO(m1)", "DO(m3)"),
]  # fmt: skip


def mentions_of(rows):
    names = ("mention_id", "annotator_id", "annotation", "gold")
    return read_mentions(dict(zip(names, zip(*rows, strict=True), strict=True)))


def test_labels_are_numbered_by_recency():
    annotations, antecedent = mpa.by_recency(mentions_of(ROWS))
    assert antecedent.tolist() == [[-1, -2, -2], [-2, 0, -2], [-2, 1, 0], [-1, 2, 0]]
    assert annotations.label.tolist() == [0, 1, 2, 1, 2, 0, 1, 2]
    assert annotations.gold.tolist() == [0, 1, -1, 1]
    assert (annotations.num_items, annotations.num_annotators, annotations.num_labels) == (4, 4, 3)


def test_chains_of_the_right_links_are_perfect():
    mentions = mentions_of(ROWS)
    scores = mpa.chain_scores(np.stack([mentions.gold_antecedent] * 2), mentions)
    assert set(scores.values()) == {100.0}
    # {m1, m2}, {m3, m4} of the key and {m1, m2, m4} of the response: m3 alone is left out.
    scores = mpa.chain_scores(np.array([[-1, 0, -1, 0]]), mentions)
    assert scores["MUC R"] == pytest.approx(50)
    assert scores["MUC P"] == pytest.approx(50)
    assert scores["B3 R"] == pytest.approx(100 * (2 + 1 / 2) / 4)
    assert scores["CEAFe P"] == pytest.approx(100 * 4 / 5)


@pytest.fixture(scope="module")
def mentions():
    entity = np.random.default_rng(0).integers(12, size=200)
    place = np.arange(200)
    key = Chains.from_spans(np.zeros(200, int), place, place, entity, documents=["one"])
    return simulate_mentions(key, seed=1)


def test_the_best_round_is_the_best(mentions):
    best, expected = mpa.majority_vote(mentions)
    right = (expected.antecedent == mentions.gold_antecedent).mean(axis=1)
    assert len(right) == 10
    assert best.accuracy == right.max() == (best.antecedent == mentions.gold_antecedent).mean()
    assert abs(right.mean() - expected.accuracy) < 5 * right.std(ddof=1) / np.sqrt(10)


@pytest.mark.parametrize("method", mpa.METHODS)
def test_every_method_chooses_a_label_that_the_mention_got(mentions, method):
    given = set(zip(mentions.mention.tolist(), mentions.antecedent.tolist(), strict=True))
    for found in method(mentions):
        for antecedent in found.antecedent:
            assert set(enumerate(antecedent.tolist())) <= given


def test_the_tables_of_mpa_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(mpa, "METHODS", (mpa.majority_vote,))
    (tmp_path / "key.conll").write_text(
        "#begin document one\n" + "".join(f"w ({place % 3})\n" for place in range(30)) + "\n#end document\n"
    )
    arguments = argparse.Namespace(
        table=None, key=str(tmp_path / "key.conll"), profiles=None, seeds=2, scenarios=SCENARIOS,
        output=tmp_path / "results", coverage=True, command="python -m benchmarks mpa",
    )  # fmt: skip
    mpa.run(arguments)
    tables = json.loads((tmp_path / "results" / "results.json").read_text())["tables"]
    assert [row["scenario"] for row in tables["table-2"]] == ["synthetic-uniform", "synthetic-sparse"]
    assert len(tables["table-5"]) == 2 * 2 * 2
    assert len(tables["sets"]) == 2 * 2 * 2
    assert "were left out" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    arguments.profiles, arguments.table, arguments.seeds = mpa.STAND_IN, 2, 1
    mpa.run(arguments)
    content = json.loads((tmp_path / "results" / "results.json").read_text())
    assert [row["scenario"] for row in content["tables"]["table-2"]] == list(SCENARIOS)
    assert "table-5" not in content["tables"]
    assert "They are made up" in (tmp_path / "results" / "results.md").read_text()


def test_the_stand_in_has_the_moments_that_it_claims():
    do, dn = np.loadtxt(mpa.STAND_IN, delimiter=",", skiprows=1).T
    assert len(do) == 89
    assert (round(do.mean(), 3), round(dn.mean(), 3), round(np.corrcoef(do, dn)[0, 1], 2)) == (0.508, 0.737, 0.03)
