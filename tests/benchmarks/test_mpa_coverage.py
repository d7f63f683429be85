import numpy as np
import pytest

import consilience as cs
from benchmarks import mpa, mpa_coverage
from consilience.data.conll import Chains
from consilience.models.mpa.scenarios import simulate_mentions


@pytest.fixture(scope="module")
def fit():
    random = np.random.default_rng(0)
    document, place = np.repeat([0, 1], 100), np.tile(np.arange(100), 2)
    entity = random.integers(8, size=200) + 8 * document
    key = Chains.from_spans(document, place, place, entity, documents=["one", "two"])
    return cs.fit("mpa", simulate_mentions(key, seed=1), coreference="links", draws=50)


def test_a_systems_links_are_the_true_ones_but_for_some(fit):
    gold = np.asarray(fit.data.gold_antecedent)
    assert (mpa_coverage.system_links(fit.data, 0, moved=0) == gold).all()
    links = mpa_coverage.system_links(fit.data, 0, moved=1)
    assert (links < np.arange(200)).all()
    assert links.min() == -1
    assert links[100] == -1
    assert (links[101:][links[101:] >= 0] >= 100).all()
    assert (links != mpa_coverage.system_links(fit.data, 1, moved=1)).any()
    assert 0 < (mpa_coverage.system_links(fit.data, 0) != gold).mean() < 0.3


def test_rows_of_coverage_are_what_evaluate_says(fit):
    rows = mpa_coverage.coverage(fit, seed=3)
    assert [(row["response"], row["singletons"]) for row in rows] == [
        ("silver chains", False), ("system", False), ("silver chains", True), ("system", True),
    ]  # fmt: skip
    score = cs.evaluate(fit, cs.silver_chains(fit).to_chains(), metric="conll")
    row = rows[2]
    assert row["UA"] == pytest.approx(100 * score.value)
    ends = score.value + score.widening * (np.quantile(score.draws, [0.05, 0.95]) - score.value)
    assert [row["low"], row["high"]] == pytest.approx(100 * ends)
    for row in rows:
        assert row["covered"] == (row["low"] <= row["true"] <= row["high"])
        parts = row["documents covered"] + row["documents below"] + row["documents above"]
        assert (parts, row["documents"]) == (pytest.approx(100), 2)
    means = mpa_coverage.coverage_means([{"scenario": "s", "fit": mpa.MPA, **row} for row in rows + rows])
    assert len(means) == 4
    assert means[0]["sets covered"] in ("0 of 2", "2 of 2")
    assert means[0]["true"] == pytest.approx(rows[0]["true"])


def test_true_links_share_no_antecedent(fit):
    row = mpa_coverage.calibration(fit)
    assert row["shared, true"] == 0 < row["shared, draws"]
    entity = np.unique(mpa.follow_links(np.asarray(fit.data.gold_antecedent)[None])[0], return_counts=True)[1]
    assert row["squares, true"] == (entity**2).sum()
    assert 0 < row["mean probability"] <= 100
