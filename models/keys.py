"""Random keys that are made on the host: equal to those of `jax.random`, without JAX having to compile anything.

A key by JAX itself takes two programs, whose compilation takes longer than many a fit. None of these functions is for
keys that are tracers, of which JAX compiles nothing by itself.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from consilience.arrays import Key

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


def stream_key(seed: int | np.integer, stream: int) -> Key:
    """Return ``jax.random.fold_in(jax.random.key(seed), stream)``.

    Parameters
    ----------
    seed : of the run.
    stream : number of what the key is for, from 0.
    """
    generator = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
    if generator != "threefry2x32" or not 0 <= seed <= _WORD:
        return jax.random.fold_in(jax.random.key(seed), stream)
    return _wrapped(_hashed(np.array([0, seed], np.uint32), np.array([stream]))[0])


def any_key() -> Key:
    """Return ``jax.random.key(0)`` of Threefry, where a key is asked for and does not matter."""
    return _wrapped(np.zeros(2, np.uint32))


def folded_key(key: Key, number: int) -> Key:
    """Return ``jax.random.fold_in(key, number)``."""
    if not _is_threefry(key):
        return jax.random.fold_in(key, number)
    return _wrapped(_hashed(np.asarray(jax.random.key_data(key)), np.array([number]))[0])


def split_key(key: Key, number: int) -> Key:
    """Return ``jax.random.split(key, number)``, keys of shape ``(number,)``; the first is also `folded_key` with 0."""
    partitionable = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    if not _is_threefry(key) or not partitionable:
        return jax.random.split(key, number)
    return _wrapped(_hashed(np.asarray(jax.random.key_data(key)), np.arange(number)))


def key_pair(key: Key) -> tuple[Key, Key]:
    """Return both keys of ``jax.random.split(key)``."""
    words = np.asarray(jax.random.key_data(split_key(key, 2)))
    own: Any = jax.random.key_impl(key)
    return _wrapped(words[0], own), _wrapped(words[1], own)


def _is_threefry(key: Key) -> bool:
    return jax.random.key_impl(key) == "threefry2x32"


def _wrapped(words: np.ndarray, kind: Any = "threefry2x32") -> Key:
    return jax.random.wrap_key_data(jax.device_put(words), impl=kind)


def _hashed(key: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return Threefry-2x32 with twenty rounds of 0 and each number, ``(number, 2)`` (Salmon et al. 2011)."""
    words = key[:, None]
    words = np.concatenate([words, words[:1] ^ words[1:] ^ np.uint32(_PARITY)])
    one, other = words[0], numbers.astype(np.uint32) + words[1]
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            one = one + other
            other = (other << bits | other >> 32 - bits) ^ one
        one = one + words[(group + 1) % 3]
        other = other + words[(group + 2) % 3] + np.uint32(group + 1)
    return np.stack([one, other], axis=-1)
