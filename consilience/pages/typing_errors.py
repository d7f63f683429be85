"""What a report says of pairs in doubt that are equal but for typing errors: to compare by similarity settles them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.pages.record_pairs import DOUBTFUL, SHOWN
from consilience.pages.run import kinds_of
from consilience.printing import counted

TEXTS = ("category", "string")  # types of fields of texts; these are compared for equality unless asked otherwise

_MOST_PAIRS = 2_000  # that are looked at, those in most doubt
_FEWEST_LETTERS = 3  # Of shorter texts one letter is most of the value.


class Typos(NamedTuple):
    """Pairs in doubt that are equal but for typing errors.

    Parameters
    ----------
    number : how many they are.
    of : how many pairs were looked at.
    fields : in which such errors are.
    example : two such values, of the pair in most doubt.
    """

    number: int
    of: int
    fields: tuple[str, ...]
    example: tuple[str, str] = ("", "")

    @property
    def words(self) -> str:
        """Say so, as the gain of comparing by similarity; empty of none."""
        if not self.number:
            return ""
        differ, errors = ("differs", "a typing error") if self.number == 1 else ("differ", "typing errors")
        one, other = self.example
        return (
            f"{self.number:,} of {counted(self.of, 'pairs')} in doubt {differ} only by {errors}, such as “{one}” and "
            f"“{other}”"
        )


def typing_errors(fit: Any) -> Typos:
    """Find the pairs in doubt whose values differ in texts alone, and there by one typing error each.

    Of fields that are compared for equality, where it is known which are texts.
    """
    kinds, data, pairs = kinds_of(fit.attributes.get("fields", "")), fit.data, fit.truth.pairs()
    if "similar" in fit.attributes or not set(TEXTS) & set(kinds.values()):
        return Typos(0, 0, ())
    doubt = np.flatnonzero((pairs.probability > SHOWN) & (pairs.probability < DOUBTFUL))
    doubt = doubt[np.argsort(np.abs(pairs.probability[doubt] - 0.5), kind="stable")][:_MOST_PAIRS]
    value, names = np.asarray(data.value), [str(name) for name in data.fields]
    text = np.array([kinds.get(name) in TEXTS for name in names])
    first, second = value[:, pairs.first[doubt]], value[:, pairs.second[doubt]]
    differ = (first != second) & (first >= 0) & (second >= 0)
    wrong: set[str] = set()
    examples: list[tuple[str, str]] = []
    for pair in np.flatnonzero(differ.any(axis=0) & ~differ[~text].any(axis=0)):
        places = np.flatnonzero(differ[:, pair])
        written = [
            tuple(str(data.values[data.first_value[place] + codes[place, pair]]) for codes in (first, second))
            for place in places
        ]
        if all(_one_error(*both) for both in written):
            wrong |= {names[place] for place in places}
            examples.append((written[0][0], written[0][1]))
    return Typos(len(examples), len(doubt), tuple(name for name in names if name in wrong), *examples[:1])


def _one_error(one: str, other: str) -> bool:
    """Return whether two texts are one typing error apart: a letter left out, put in, replaced, or two swapped."""
    from rapidfuzz.distance import OSA

    if min(len(one), len(other)) < _FEWEST_LETTERS:
        return False
    return OSA.distance(one.casefold(), other.casefold(), score_cutoff=1) <= 1
