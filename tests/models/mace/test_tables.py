"""Tables of MACE: a part of the guesses, and all label probabilities."""

import numpy as np
import pytest

import consilience as cs


@pytest.fixture(scope="module")
def fit():
    return cs.fit("mace", cs.load("dawid-skene-1979"), method="em")


def test_a_part_of_the_guesses_is_that_part_of_the_table(fit):
    whole, part = fit.guesses(), fit.table("guesses", annotators=np.array([3, 0]))
    assert part["annotator"].unique().tolist() == ["4", "1"]
    for name in ("4", "1"):
        rows = [frame[frame["annotator"] == name].reset_index(drop=True) for frame in (part, whole)]
        assert rows[0].equals(rows[1])


def test_probabilities_list_every_label(fit):
    table = fit.probabilities()
    assert len(table) == 45 * 4
    best = table.loc[table.groupby("item", sort=False)["probability"].idxmax()]
    assert best["label"].tolist() == fit.labels()["label"].tolist()
    np.testing.assert_allclose(best["probability"], fit.labels()["probability"])
