"""Codes that occur, found with and without sorting, and rows of them that occurred before."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consilience.data.codes import places, repeated


@given(st.lists(st.integers(0, 30), max_size=40), st.sampled_from([0, 1 << 23]))
def test_places_are_those_of_a_sort(codes, above):
    """Codes above a gap are too many for a table."""
    codes = np.array(codes, np.int64)
    codes[::3] += above
    used, place = places(codes)
    expected = np.unique(codes, return_inverse=True)
    np.testing.assert_array_equal(used, expected[0])
    np.testing.assert_array_equal(place, expected[1])


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(-1, 1)), max_size=30))
def test_repeated_rows_are_those_that_were_met_before(rows):
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    assert repeated(*columns).tolist() == [row in rows[:at] for at, row in enumerate(rows)]
