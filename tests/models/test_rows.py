"""Rows that pad, and arrays that JAX takes as they are."""

import jax
import numpy as np
import pytest

from consilience.models.rows import aligned_zeros, is_sorted, padded_rows


@pytest.mark.parametrize("dtype", [np.uint8, bool, np.uint16, np.int32, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (3, 0), (7, 5)])
def test_zeros_begin_where_jax_need_not_copy_them(shape, dtype):
    found = aligned_zeros(shape, dtype)
    assert (found.shape, found.dtype) == (shape, np.dtype(dtype))
    assert not found.any()
    assert found.size == 0 or found.ctypes.data % 64 == 0


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="other devices have memory of their own")
def test_jax_takes_padded_rows_as_they_are():
    padded = padded_rows(np.arange(1000, dtype=np.int32), 1024, 7)
    assert jax.device_put(padded).unsafe_buffer_pointer() == padded.ctypes.data


@pytest.mark.parametrize("values", [np.arange(3.0), np.ones((3, 2), bool), np.arange(6, dtype=np.uint16).reshape(3, 2)])
def test_rows_are_padded_by_the_fill(values):
    padded = padded_rows(values, 5, 1)
    expected = np.concatenate([values, np.ones((2, *values.shape[1:]), values.dtype)])
    np.testing.assert_array_equal(padded, expected)
    assert padded.dtype == values.dtype


@pytest.mark.parametrize(("codes", "expected"), [([], True), ([3], True), ([0, 0, 2], True), ([0, 2, 1], False)])
def test_codes_are_sorted_where_none_is_less_than_the_one_before(codes, expected):
    for dtype in (np.int32, np.int8):
        assert is_sorted(np.array(codes, dtype)) is expected
