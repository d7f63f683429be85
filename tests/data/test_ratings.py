"""Ratings: numbers in, policies applied."""

import numpy as np
import pytest

from consilience.data import Ratings, read_ratings
from consilience.errors import InputError

COLUMNS = {"task": ["b", "a", "b"], "rater": [1, 1, 2], "score": [0.5, "-2", 1e3]}


def test_ratings_are_numbers():
    ratings = read_ratings(COLUMNS)
    assert ratings.items.tolist() == ["b", "a"]
    assert ratings.annotators.tolist() == ["1", "2"]
    assert ratings.rating.tolist() == [0.5, -2, 1000]
    assert ratings.rating.dtype == np.float64
    same = Ratings.from_codes([0, 1, 0], [0, 0, 1], [0.5, -2, 1000], items=["b", "a"], annotators=["1", "2"])
    assert same.fingerprint() == ratings.fingerprint()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([0], [0], [np.inf]), "position 0, column 'rating'"),
        (([0], [0], [0, 1]), "equal length"),
        (([], [], []), "no ratings"),
        (([-1], [0], [0]), "column 'item'"),
    ],
)
def test_codes_that_are_no_ratings_are_refused(arguments, match):
    with pytest.raises(InputError, match=match):
        Ratings.from_codes(*arguments)
