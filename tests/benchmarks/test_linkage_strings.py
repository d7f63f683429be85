"""The benchmark of misspelt names: what a process measures, and how systems are scored."""

import types

import numpy as np
import pytest

import consilience as cs
from benchmarks import linkage_strings
from benchmarks.recording import Recording


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("strings") / "simulated.csv"
    linkage_strings.write_simulated(path, 1500, linkage_strings.SIMULATED)
    return {mode: linkage_strings._measure(str(path), mode) for mode in ("typo", "equality")}


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_names_are_compared_by_similarity_or_not(rows):
    similar, equality = rows["typo"], rows["equality"]
    assert similar["near names"] > 0 == equality["near names"]
    assert similar["found"] > equality["found"]
    assert similar["R, own"] >= equality["R, own"]
    for row in rows.values():
        assert row["F1, best"] >= row["F1 at 0.5"]
        assert row["process, CPU s"] > row["CPU s"] > row["fit, CPU s"] > 0
        assert sum(line["pairs"] for line in row["calibration"]) == row["candidates"]


@pytest.mark.filterwarnings("ignore::consilience.errors.DiagnosticWarning")
def test_what_is_recorded(rows, tmp_path):
    record = Recording("linkage-strings", "Misspelt names", "python -m benchmarks linkage_strings", tmp_path)
    linkage_strings._write(record, [{"records": 1500, "system": mode, **row} for mode, row in rows.items()])
    text = (tmp_path / "results.md").read_text()
    assert "| 1,500 | typo |" in text
    assert "splink" not in text.split("Measured")[0]


def test_clusters_and_links_of_pairs():
    pairs = types.SimpleNamespace(
        first=np.array([0, 1, 3]), second=np.array([1, 2, 4]), probability=np.array([0.96, 0.6, 0.2])
    )
    entity = np.array([0, 0, 1, 2, 2, 2])
    clusters = linkage_strings._by_threshold(pairs, 6)
    assert [cs.score_partition(clusters[t], entity).predicted_entities for t in (0.1, 0.5, 0.95, 0.99)] == [3, 4, 5, 6]
    assert linkage_strings._share_found(pairs, entity) == 2 / 4
    best = linkage_strings._best(clusters, entity)
    assert (best["P, best"], best["R, best"]) == (0.5, 0.5)
    assert (best["best threshold"], best["F1 at 0.5"]) == (0.1, 2 / 7)
