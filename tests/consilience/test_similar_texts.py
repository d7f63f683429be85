"""Texts that are nearly equal, beside a comparison of all pairs."""

import numpy as np
import pytest
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from consilience import similar_texts, similarity
from consilience.errors import UnsupportedRequest
from consilience.models.block_linkage.words import misspelt, words
from consilience.similar_texts import near_texts, num_near


def misspelt_often(number, repeats, seed):
    """Return words of three syllables, several of them together, with up to three typing errors each."""
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice(words(number), repeats)) for _ in range(number)]
    for place, text in enumerate(list(texts)):
        for _ in range(place % 4):
            # Errors next to each other and at the ends too.
            text = misspelt(generator, np.array([text])).item()
            texts.append(text)
    return [*texts, texts[0].upper(), "", "a", "ab", "ba"]


def all_near(texts, furthest):
    folded = [text.casefold() for text in texts]
    apart = cdist(folded, folded, scorer=OSA.distance)
    first, second = np.nonzero(np.triu(apart <= furthest, 1))
    return first, second, apart[first, second]


# Of one length, all lengths around the border between short and long texts, and long ones alone.
@pytest.mark.parametrize("repeats", [1, 2, 3, 5])
@pytest.mark.parametrize("furthest", [1, 2])
def test_all_near_texts_are_found(repeats, furthest):
    texts = [text[: max(len(text) - place % 5, 0)] for place, text in enumerate(misspelt_often(200, repeats, repeats))]
    expected = all_near(texts, furthest)
    assert len(expected[0]) > 50
    for found, one in zip(near_texts(texts, furthest), expected, strict=True):
        np.testing.assert_array_equal(found, one)


def test_memory_changes_nothing(monkeypatch):
    texts = misspelt_often(150, 1, 7) + misspelt_often(30, 4, 8)
    expected = near_texts(texts)
    monkeypatch.setattr(similar_texts, "_WORDS", 5000)
    monkeypatch.setattr(similar_texts, "_PAIRS", 100)
    for found, one in zip(near_texts(texts), expected, strict=True):
        np.testing.assert_array_equal(found, one)


def test_how_many_are_near_is_estimated(monkeypatch):
    texts = misspelt_often(2000, 1, 9)
    exact = len(near_texts(texts)[0])
    assert num_near(texts) == pytest.approx(exact, rel=0.3)
    monkeypatch.setattr(similar_texts, "_SAMPLE", len(texts))
    assert num_near(texts) == exact


@pytest.mark.parametrize("texts", [[], ["a"], ["abc", "xyz"]])
def test_few_texts(texts):
    assert [len(column) for column in near_texts(texts)] == [0, 0, 0]
    assert num_near(texts) == 0


def test_texts_that_are_all_alike_are_refused_or_need_fewer_errors(monkeypatch):
    texts = misspelt_often(300, 1, 10)
    monkeypatch.setattr(similarity, "_MOST_NEAR", 2 * num_near(texts, 1) / len(texts) + 0.1)
    with pytest.warns(UserWarning, match="only those one error away"):
        distance = similarity.SIMILAR_KINDS["string"](texts)[2]
    assert set(distance) <= {0, 1}
    monkeypatch.setattr(similarity, "_MOST_NEAR", 0.1)
    with pytest.raises(UnsupportedRequest, match="compare the field for equality"):
        similarity.SIMILAR_KINDS["string"](texts)
