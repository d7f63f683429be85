import numpy as np
import pandas
import pytest

from benchmarks import linkage_bars, linkage_bars_rows


def test_scores_of_pairs_by_hand():
    # Found ab|cd, true abc|d: one of three true pairs, one of two found.
    row = linkage_bars_rows._pairwise(np.array(list("xxyy")), np.array(list("pppq")))
    assert (row["P"], row["R"], row["F1"]) == (1 / 2, 1 / 3, 2 / 5)
    assert (row["clusters"], row["true"]) == (2, 2)


def test_records_are_matched_by_name():
    class Fit:
        def entities(self):
            return pandas.DataFrame({"record": ["3", "1", "2"], "entity": ["3", "1", "1"]})

    truth = pandas.Series(["a", "a", "b"], index=[1, 2, 3])
    assert linkage_bars_rows.scores(Fit(), truth)["F1"] == 1


@pytest.mark.parametrize(
    ("row", "met"),
    [
        ({"low": 8990.0, "high": 9010.0, "true": 9000, "said": "", "F1": 0.9}, True),
        ({"low": 8850.0, "high": 8900.0, "true": 9000, "said": "", "F1": 0.9}, False),
        ({"low": 8850.0, "high": 8900.0, "true": 9000, "said": "the model does not hold", "F1": 0.9}, True),
    ],
)
def test_an_interval_holds_or_warns(row, met):
    rows = dict.fromkeys(linkage_bars.PARTS, {}) | {"public": {("RLdata10000, five fields",): row}}
    assert [one.met for one in linkage_bars._bars(rows)] == [met]
