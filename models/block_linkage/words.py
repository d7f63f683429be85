"""Made-up words, and typing errors in them."""

from __future__ import annotations

import numpy as np

from consilience.arrays import Int

_SYLLABLES = np.array([consonant + vowel for consonant in "bcdfghjklmnpqrstvwxyz" for vowel in "aeiou"])

# Neither has a factor in common with the number of syllables, so that both only mix the words.
_STEP, _START = 1_000_003, 54_321


def words(number: int) -> np.ndarray:
    """Return different words of one length, in which consonants and vowels alternate: text, shape ``(number,)``.

    Words have three syllables, and more where that many words need them. Neighbours have nothing in common.
    """
    base, length = len(_SYLLABLES), 3
    while base**length < number:
        length += 1
    mixed = (np.arange(number, dtype=np.int64) * _STEP + _START) % base**length
    digits = mixed[:, None] // base ** np.arange(length) % base
    return np.ascontiguousarray(_SYLLABLES[digits]).view(f"U{2 * length}").ravel()


def misspelt(generator: np.random.Generator, texts: np.ndarray) -> np.ndarray:
    """Return each text with one typing error: a letter is wrong, too many, missing, or changes places with the next.

    Parameters
    ----------
    generator : of random numbers.
    texts : shape ``(text,)``; `words`, of which no two neighbouring letters are equal, so that every error shows.
    """
    number, length = len(texts), texts.dtype.itemsize // 4
    kind, place = generator.integers(0, 4, (number, 1)), generator.integers(0, length, (number, 1))
    place = np.where(kind == 3, np.minimum(place, length - 2), place)
    # Two empty letters at the end: one to be pushed on by a letter too many, one to follow where a letter is missing.
    letters = np.zeros((number, length + 2), np.uint32)
    letters[:, :length] = np.ascontiguousarray(texts).view(np.uint32).reshape(number, length)
    column = np.arange(length + 1)
    changed = np.take_along_axis(letters, _sources(kind, place, column), axis=1)
    other = _other_letter(np.take_along_axis(letters, place, axis=1), generator.integers(0, 25, (number, 1)))
    changed = np.where((column == place) & (kind <= 1), other, changed).astype(np.uint32)
    return changed.view(f"U{length + 1}").ravel()


def _sources(
    kind: Int[np.ndarray, "text 1"], place: Int[np.ndarray, "text 1"], column: Int[np.ndarray, " letter"]
) -> Int[np.ndarray, "text letter"]:
    """Return where each letter of the misspelt texts comes from."""
    too_many, missing, swapped = kind == 1, kind == 2, kind == 3
    moved = -1 * (too_many & (column > place)) + (missing & (column >= place))
    return column + moved + (swapped & (column == place)) - 1 * (swapped & (column == place + 1))


def _other_letter(letter: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return ord("a") + (letter.astype(np.int64) - ord("a") + 1 + steps) % 26
