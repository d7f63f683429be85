"""Ratings: numbers in, policies applied."""

import numpy as np
import pytest

from consilience.data import Ratings, read_ratings
from consilience.errors import InputError, InputWarning

COLUMNS = {"task": ["b", "a", "b"], "rater": [1, 1, 2], "score": [0.5, "-2", 1e3]}


def test_reading():
    ratings = read_ratings(COLUMNS)
    assert ratings.items.tolist() == ["b", "a"]
    assert ratings.annotators.tolist() == ["1", "2"]
    assert ratings.rating.tolist() == [0.5, -2, 1000]
    assert ratings.rating.dtype == np.float64
    same = Ratings.from_codes([0, 1, 0], [0, 0, 1], [0.5, -2, 1000], items=["b", "a"], annotators=["1", "2"])
    assert same.fingerprint() == ratings.fingerprint()


def test_policies():
    gap = COLUMNS | {"score": [0.5, "", 1e3]}
    with pytest.raises(InputError, match="row 1 .*the rating is empty"):
        read_ratings(gap)
    with pytest.warns(InputWarning, match="1 rows without a rating"):
        assert read_ratings(gap, missing="drop").items.tolist() == ["b"]
    again = COLUMNS | {"rater": [1, 1, 1]}
    with pytest.warns(InputWarning, match="all were counted"):
        assert read_ratings(again).num_ratings == 3
    with pytest.warns(InputWarning, match="first of each"):
        assert read_ratings(again, duplicates="first").rating.tolist() == [0.5, -2]
    with pytest.raises(InputError, match="same item and annotator"):
        read_ratings(again, duplicates="error")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([0], [0], [np.inf]), "position 0, column 'rating'"),
        (([0], [0], [0, 1]), "equal length"),
        (([], [], []), "no ratings"),
        (([-1], [0], [0]), "column 'item'"),
    ],
)
def test_from_codes_refuses(arguments, match):
    with pytest.raises(InputError, match=match):
        Ratings.from_codes(*arguments)
