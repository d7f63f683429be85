"""Keys of a run are those of JAX."""

import jax
import numpy as np
import pytest

from consilience.models.keys import folded_key, key_pair, split_key, stream_key


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31, 2**32 - 1, 2**40, -1, np.int64(7)])
@pytest.mark.parametrize("precise", [False, True])
def test_keys_are_those_of_jax(seed, precise):
    with jax.enable_x64(precise):
        for stream in (0, 1, 4):
            expected = jax.random.fold_in(jax.random.key(seed), stream)
            found = stream_key(seed, stream)
            assert found.dtype == expected.dtype
            assert found.shape == ()
            np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


def test_keys_of_another_generator():
    with jax.default_prng_impl("rbg"):
        expected = jax.random.fold_in(jax.random.key(3), 1)
        np.testing.assert_array_equal(jax.random.key_data(stream_key(3, 1)), jax.random.key_data(expected))


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_keys_of_keys_are_those_of_jax(generator):
    with jax.default_prng_impl(generator):
        key = jax.random.fold_in(jax.random.key(3), 1)
        pairs = [(split_key(key, 5), jax.random.split(key, 5)), (folded_key(key, 7), jax.random.fold_in(key, 7))]
        pairs += zip(key_pair(key), jax.random.split(key), strict=True)
        for found, expected in pairs:
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))


def test_split_keys_of_the_earlier_kind():
    with jax.threefry_partitionable(False):
        key = jax.random.key(3)
        found, expected = (jax.random.key_data(split(key, 3)) for split in (split_key, jax.random.split))
        np.testing.assert_array_equal(found, expected)
