"""Data at the edge of sense: the documented answer, or a named error."""

import time

import numpy as np
import pandas as pd
import pytest

from consilience.data import Annotations, Rankings, read_annotations, read_predictions, read_rankings
from consilience.errors import InputWarning


def test_an_unseen_label_is_kept():
    assert read_annotations({"item": ["a"], "annotator": ["v"], "label": ["x"]}, labels=["x", "y"]).num_labels == 2


def test_weights_may_all_be_zero():
    annotations = read_annotations({"item": ["a"], "annotator": ["v"], "label": ["x"], "weight": [0]})
    assert annotations.weight.tolist() == [0]


def test_ids_of_many_kinds():
    items = [1, "1 ", "é", "e\u0301", "日本", "🙂", -0.5, 2.0, True, pd.Timestamp("2020-01-01")]
    with pytest.warns(InputWarning, match="1 rows have the same item and annotator"):
        annotations = read_annotations({"item": items, "annotator": ["w"] * 10, "label": ["x"] * 10})
    expected = ["1", "é", "e\u0301", "日本", "🙂", "-0.5", "2", "True", "2020-01-01"]
    assert annotations.items.tolist() == expected


def test_a_million_labels():
    size = 10**6
    annotations = read_annotations(
        pd.DataFrame({"item": np.arange(size), "annotator": np.zeros(size, int), "label": np.arange(size)[::-1]})
    )
    assert annotations.num_labels == size
    assert annotations.labels[annotations.label[0]] == str(size - 1)
    assert annotations.labels[10] == "10"


def test_all_tied_and_nothing_ranked():
    rankings = Rankings.from_nested([[[["a", "b", "c"]]], [[]]])
    assert rankings.block.tolist() == [0, 0, 0]
    assert rankings.block_size.tolist() == [3, 3, 3]
    assert rankings.num_items == rankings.num_reports == 2
    nothing = Rankings.from_nested([[[]]], classes=["a"])
    assert (nothing.num_rows, nothing.num_entries, nothing.num_reports, nothing.num_classes) == (0, 0, 1, 1)
    table = {"item": ["a"], "annotator": ["w"], "class": [""], "rank": [""]}
    assert read_rankings(table, classes=["x"]).num_reports == 1


def test_a_case_that_nobody_looked_at_is_an_item():
    rankings = Rankings.from_nested([[], [[["a"]]]])
    assert (rankings.num_items, rankings.num_reports) == (2, 1)


def test_equal_scores_everywhere():
    predictions = read_predictions({"item": ["x"] * 3, "class": ["c", "a", "b"], "score": [1, 1, 1]})
    assert predictions.classes[predictions.ranked[0]].tolist() == ["a", "b", "c"]


@pytest.mark.slow
def test_ten_million_rows():
    size, generator = 10**7, np.random.default_rng(0)
    item = np.sort(generator.integers(0, 10**6, size)).astype(np.int32)
    item[-1] = 10**6 - 1
    started = time.perf_counter()
    annotations = Annotations.from_codes(item, generator.integers(0, 1000, size), generator.integers(0, 5, size))
    assert annotations.num_annotations == size
    reports = np.arange(size // 5, dtype=np.int32)
    blocks, classes = np.tile([0, 1, 1, 2, 3], size // 5), np.tile(np.arange(5), size // 5)
    rankings = Rankings.from_codes(reports // 3, reports % 3, np.repeat(reports, 5), blocks, classes)
    assert rankings.num_rows == size
    assert rankings.block_size[:5].tolist() == [1, 2, 2, 1, 1]
    assert time.perf_counter() - started < 60
