"""Codes that occur, found with and without sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from consilience.data.codes import places


@given(st.lists(st.integers(0, 30), max_size=40), st.sampled_from([0, 1 << 23]))
def test_places_are_those_of_a_sort(codes, above):
    """Codes above a gap are too many for a table."""
    codes = np.array(codes, np.int64)
    codes[::3] += above
    used, place = places(codes)
    expected = np.unique(codes, return_inverse=True)
    np.testing.assert_array_equal(used, expected[0])
    np.testing.assert_array_equal(place, expected[1])
