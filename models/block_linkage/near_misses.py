"""Pairs that were not linked though values that differ are nearly alike: typing errors, counted as any other value.

Compared for equality, "Schmidt" and "Schimdt" differ as much as any two names. A pair that differs so in several fields
is no link, and recall by the model's own account does not know of it: to the model it is one more pair of strangers.
What strangers have in common by chance is seen where the values of one record are compared with those of another pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from consilience.arrays import Float, Int
from consilience.data.records import Records
from consilience.models.block_linkage.enumeration import pair_probabilities, pairs_within
from consilience.models.block_linkage.linkage import Linkage
from consilience.notes import Level, Note, Remedy

_NEAR = 0.8              # of letters in common: two errors in a name of ten letters
_MOST_COMPONENTS = 4000  # of a size, looked at
_MOST_COMPARED = 1000    # pairs of values of a field
_LEAST, _LEAST_SHARE = 10.0, 0.03  # near misses beyond chance, at least, and for each link
_SDS = 3.0               # of the number that chance makes


class NearMiss(NamedTuple):
    """A field in which pairs that were not linked are nearly alike.

    Parameters
    ----------
    field : its code.
    number : how many such pairs there are beyond those that chance makes.
    example : two values.
    """

    field: int
    number: float
    example: tuple[str, str]


def near_misses(posterior: Linkage, records: Records) -> list[NearMiss]:
    """Return the fields of letters, compared for equality, in which many pairs that were not linked are nearly alike.

    Parameters
    ----------
    posterior : of EM; of parts that are drawn nothing is looked at.
    records : that were linked.
    """
    if records.values is None:
        return []
    first, second, probability, weight = _some_pairs(posterior)
    links = float(weight @ probability)
    apart = probability < 0.5
    first, second, weight = first[apart], second[apart], weight[apart]
    similar = np.zeros(records.num_fields) if records.similar is None else np.asarray(records.similar)
    generator, found = np.random.default_rng(0), []
    for field in np.flatnonzero(similar == 0).tolist():
        begin, end = records.first_value[field : field + 2]
        texts = records.values[begin:end]
        if not _of_letters(texts):
            continue
        one, other = np.asarray(records.value)[field][np.stack([first, second])]
        differ = np.flatnonzero((one >= 0) & (other >= 0) & (one != other))
        if weight[differ].sum() < max(_LEAST, 1):
            continue
        some = generator.choice(differ, min(len(differ), _MOST_COMPARED), replace=False)
        scale = weight[differ].sum() / weight[some].sum()
        near = _nearly_alike(texts[one[some]], texts[other[some]])
        by_chance = _nearly_alike(texts[one[some]], texts[other[np.roll(some, 1)]]).mean()
        number = float(scale * weight[some] @ (near - by_chance))
        chance_sd = float(np.sqrt(scale * weight[differ].sum() * by_chance))
        if number >= max(_LEAST, _LEAST_SHARE * links, _SDS * chance_sd):
            place = some[near.argmax()]
            found.append(NearMiss(field, number, (str(texts[one[place]]), str(texts[other[place]]))))
    return found


def _some_pairs(
    posterior: Linkage,
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"], Float[np.ndarray, " pair"], Float[np.ndarray, " pair"]]:
    """Return pairs of records of some components, how probably they are links, and how many pairs each stands for."""
    generator = np.random.default_rng(0)
    ends, probabilities, weights = [np.zeros((2, 0), int)], [np.zeros(0)], [np.zeros(0)]
    for members, partition in posterior.groups():
        number, size = members.shape
        some = np.sort(generator.choice(number, min(number, _MOST_COMPONENTS), replace=False))
        ends.append(members[some][:, np.array(pairs_within(size))].transpose(1, 0, 2).reshape(2, -1))
        own = partition[some].astype(float)
        probabilities.append(pair_probabilities((own / own.sum(axis=1, keepdims=True)).T, size).T.ravel())
        weights.append(np.full(len(probabilities[-1]), number / len(some)))
    first, second = np.concatenate(ends, axis=1)
    return first, second, np.concatenate(probabilities), np.concatenate(weights)


def _of_letters(texts: np.ndarray) -> bool:
    """Return whether values are words, and not numbers, dates or codes."""
    some = [str(text) for text in texts[:: max(len(texts) // 200, 1)]]
    letters = [2 * sum(map(str.isalpha, text)) > max(len(text), 6) for text in some]
    return len(some) > 1 and float(np.mean(letters)) > 0.5


def _nearly_alike(one: np.ndarray, other: np.ndarray) -> Float[np.ndarray, " pair"]:
    """Return which texts have four letters of five in common, in the same order, without case."""
    pairs = ((str(a).casefold(), str(b).casefold()) for a, b in zip(one, other, strict=True))
    return np.array([a != b and SequenceMatcher(None, a, b, autojunk=False).ratio() >= _NEAR for a, b in pairs], float)


def near_miss_notes(found: Sequence[NearMiss], records: Records) -> Iterator[Note]:
    """Say that typing errors hide links, as `near_misses` found them, and how to compare fields by their letters."""
    if records.fields is not None and found:
        names = [str(records.fields[one.field]) for one in found]
        of_each = ", ".join(
            f"{one.number:,.0f} in {name} ({one.example[0]!r} and {one.example[1]!r})"
            for name, one in zip(names, found, strict=True)
        )
        yield Note(
            Level.warning,
            f"pairs that were not linked are nearly alike, beyond what chance makes: {of_each}. Values are compared "
            "for equality, so that some are links, and recall is less than the model says: {similar} compares them by "
            "their letters",
            (Remedy("similar", dict.fromkeys(names, "string")),),
        )
