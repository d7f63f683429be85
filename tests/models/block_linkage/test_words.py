"""Made-up words are different, and each misspelt one is one letter off."""

import itertools

import numpy as np
import pytest

from consilience.models.block_linkage.words import misspelt, words


@pytest.mark.parametrize(("number", "length"), [(1, 6), (105**3, 6), (105**3 + 1, 8)])
def test_words_are_different(number, length):
    made = words(number)
    assert len(np.unique(made)) == number
    assert set(np.char.str_len(made[:1000])) == {length}
    assert not any(first == second for word in made[:1000].tolist() for first, second in itertools.pairwise(word))


def one_error(word, other):
    """Return the kind of the error that leads from one word to another, or None."""
    if len(word) == len(other):
        places = [p for p in range(len(word)) if word[p] != other[p]]
        if len(places) == 1:
            return "wrong"
        if len(places) == 2 and places[1] == places[0] + 1:
            first, second = places
            return "swapped" if word[first] == other[second] and word[second] == other[first] else None
    longer, shorter = sorted((word, other), key=len, reverse=True)
    found = len(longer) == len(shorter) + 1 and shorter in [longer[:p] + longer[p + 1 :] for p in range(len(longer))]
    return ("missing" if longer == word else "too many") if found else None


def test_misspelt_words_are_one_letter_off():
    made = words(4000)
    wrong = misspelt(np.random.default_rng(0), made)
    kinds = [one_error(word, other) for word, other in zip(made.tolist(), wrong.tolist(), strict=True)]
    number = {kind: kinds.count(kind) for kind in set(kinds)}
    assert set(number) == {"wrong", "swapped", "missing", "too many"}
    # Five standard deviations of a binomial share of a quarter.
    assert all(abs(count - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75) for count in number.values())
    assert all(other.isalpha() and other.islower() for other in wrong.tolist())


def test_every_letter_may_be_wrong():
    same = np.repeat(words(1), 2000)
    wrong = misspelt(np.random.default_rng(1), same)
    places = {
        next(p for p in range(6) if word[p : p + 1] != other[p : p + 1])
        for word, other in zip(same.tolist(), wrong.tolist(), strict=True)
    }
    assert places == set(range(6))


def test_no_words():
    assert misspelt(np.random.default_rng(0), words(3)[:0]).shape == (0,)
