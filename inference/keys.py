"""Random keys of a run: one for each use of its seed, made without JAX having to compile anything.

A key by JAX itself takes two programs, whose compilation takes longer than many a fit.
"""

from __future__ import annotations

import jax
import numpy as np

from consilience.arrays import Key

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


def stream_key(seed: int, stream: int) -> Key:
    """Return ``jax.random.fold_in(jax.random.key(seed), stream)``.

    Parameters
    ----------
    seed : of the run.
    stream : number of what the key is for, from 0.
    """
    generator = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
    if generator != "threefry2x32" or not 0 <= seed <= _WORD:
        return jax.random.fold_in(jax.random.key(seed), stream)
    words = np.array(_threefry((0, int(seed)), (0, stream)), np.uint32)
    return jax.random.wrap_key_data(jax.device_put(words))


def _threefry(key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
    """Return a block of Threefry-2x32 with twenty rounds (Salmon et al. 2011)."""
    words = (*key, key[0] ^ key[1] ^ _PARITY)
    one, other = (counter[0] + words[0]) & _WORD, (counter[1] + words[1]) & _WORD
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            one = (one + other) & _WORD
            other = ((other << bits | other >> 32 - bits) & _WORD) ^ one
        one = (one + words[(group + 1) % 3]) & _WORD
        other = (other + words[(group + 2) % 3] + group + 1) & _WORD
    return one, other
