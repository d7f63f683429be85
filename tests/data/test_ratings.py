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


def design(seed, connected):
    """Return some ratings with offsets, of two groups of annotators without common items unless they are connected."""
    random = np.random.default_rng(seed)
    item, who = np.nonzero(random.random((30, 5)) < 0.6)
    keep = connected | ((item < 15) == (who < 2))
    item, who = np.unique(item[keep], return_inverse=True)[1], who[keep]
    offset = np.array([-4.0, -1, 0, 2, 9])
    return Ratings.from_codes(item, who, 50 + item + offset[who] + random.normal(size=len(item)))


@pytest.mark.parametrize("seed", range(3))
def test_offsets_are_those_of_least_squares_and_add_up_to_nothing(seed):
    """However uneven it is who rates what."""
    data = design(seed, connected=True)
    columns = np.hstack([np.eye(data.num_items)[data.item], np.eye(5)[data.annotator]])
    known = np.linalg.lstsq(columns, data.rating, rcond=None)[0][-5:]
    left = data.without_offsets()
    np.testing.assert_allclose(left.offset, known - known.mean(), atol=1e-8)
    np.testing.assert_allclose(left.rating + left.offset[left.annotator], data.rating)
    assert abs(left.offset.sum()) < 1e-9
    again = left.without_offsets()
    np.testing.assert_allclose(again.offset, left.offset, atol=1e-8)  # all that was ever taken off


def test_offsets_of_a_long_chain_of_annotators_are_found():
    """Each rates an item with the next one alone, a step higher."""
    item, who = np.repeat(np.arange(99), 2), np.repeat(np.arange(100), 2)[1:-1]
    np.testing.assert_allclose(Ratings.from_codes(item, who, who).without_offsets().offset, np.arange(100) - 49.5)


def test_annotators_without_common_items_are_compared_with_their_own_group():
    data = design(0, connected=False)
    offset = data.without_offsets().offset
    np.testing.assert_allclose([offset[:2].sum(), offset[2:].sum()], 0, atol=1e-8)
    alone = Ratings.from_codes([0, 1, 2], [0, 0, 1], [1, 2, 50]).without_offsets()
    assert alone.offset.tolist() == [0, 0]


def test_ratings_without_offsets_are_other_data_and_know_their_file(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text("item,annotator,rating\na,x,1\na,y,3\n")
    data = read_ratings(file)
    left = data.without_offsets()
    assert (left.file, data.after_reading, left.after_reading) == ("ratings.csv", "", ".without_offsets()")
    assert (data.changed_in_words, left.changed_in_words) == ("", ", whose offsets were taken off")
    assert data.fingerprint() != left.fingerprint()
    read = read_ratings(file, without_offsets=True)
    assert (read.file, read.after_reading) == ("ratings.csv", ".without_offsets()")
    assert read.fingerprint() == left.fingerprint()
    assert (data.reading_flags, read.reading_flags) == ((), ("--without-offsets",))
    turned = left.renamed("annotator", [1, 0])
    assert turned.offset.tolist() == left.offset[::-1].tolist()
