"""Which values of a field are nearly equal, and how far apart they are: texts, numbers and dates.

| kind | how far apart two values are |
|---|---|
| `string` | typing errors: letters left out, put in, replaced, or swapped with the next; in any case |
| `typo` | the same, less 4: hardly anything but typing errors distorts the values |
| `text` | 10 (1 - s), s the share of letters that stay, in this order of words or sorted; near below 4 |
| `number` | the difference |
| `date` | 1: a day, or one in the year, month or day, or day and month swapped; 2: another year, month or day |

All others count as 4 apart: values further apart than `FURTHEST`, and texts that are no number or date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from consilience.data.cleaning import date_of, number_of
from consilience.data.problems import warn_input
from consilience.data.records import Records
from consilience.errors import UnknownName, UnsupportedRequest
from consilience.models.block_linkage.similar import BEYOND, ONLY_NEAR, TEXT
from consilience.models.rows import equal_pairs
from consilience.similar_texts import near_texts, num_near

FURTHEST = 2
"""Values at most so far apart are near."""

_MOST_NEAR = 200  # others that are near a value, on the average
_MOST_PAIRS = 20_000_000  # of near texts, some 60 bytes each while records are linked

MOST_TEXTS = 30_000
"""Different values of a field of texts, at most."""

_TEXTS_AT_A_TIME = 500

_Near = tuple[np.ndarray, np.ndarray, np.ndarray]
"""First and second of near values, and how far apart they are."""


def with_similar(
    records: Records, kinds: Mapping[str, str], forms: Mapping[str, Sequence[str]] | None = None
) -> Records:
    """Return the records with the pairs of values that are near, of some fields.

    Parameters
    ----------
    kinds : of these fields: "string", "typo", "number" or "date".
    forms : of a field, what its values are compared by, in code order; by default the values themselves.

    Raises
    ------
    UnknownName : there is no such kind.
    InputError : there is no such field.
    UnsupportedRequest : where nearly all values are near each other.
    """
    check_kinds(kinds)
    similar = np.zeros(records.num_fields, np.int8)
    near, distance = [np.zeros((0, 2), np.int32)], [np.zeros(0)]
    for field, kind in kinds.items():
        texts = list((forms or {}).get(field, records.vocabulary(field)))
        place = records.fields.tolist().index(field)
        similar[place] = TEXT if kind == "text" else 1
        first, second, apart = _distinct(*SIMILAR_KINDS[kind](texts), len(texts))
        if kind != "text" and len(first) > _MOST_NEAR / 2 * max(len(texts), 1):
            raise UnsupportedRequest(
                f"in the field {field!r} more than {_MOST_NEAR} values are near each, by {kind}: compare it for "
                "equality, or give numbers in smaller units"
            )
        near.append(np.stack([first, second], axis=1) + records.first_value[place])
        distance.append(apart)
    every, apart = np.concatenate(near).astype(np.int32), np.concatenate(distance)
    order = np.lexsort(every.T[::-1])
    return records.replace(similar=similar, near=every[order], distance=apart[order])


def check_kinds(kinds: Mapping[str, str]) -> None:
    """Raise `UnknownName` for a kind of similarity that does not exist."""
    for field, kind in kinds.items():
        if kind not in SIMILAR_KINDS:
            raise UnknownName(f"field {field!r} is similar by {kind!r}; give one of {', '.join(SIMILAR_KINDS)}")


def _distinct(first: np.ndarray, second: np.ndarray, distance: np.ndarray, number: int) -> _Near:
    """Return each pair once, the lower code first, with its least distance."""
    key = np.minimum(first, second).astype(np.int64) * number + np.maximum(first, second)
    order = np.lexsort([distance, key])
    key, distance = key[order], distance[order]
    new = np.diff(key, prepend=-1) > 0
    return (*np.divmod(key[new], max(number, 1)), distance[new])


def _near_strings(texts: list[str]) -> _Near:
    """Compare texts; where most have very many others two errors away, those one error away alone are near."""
    few = min(_MOST_NEAR / 2 * len(texts), _MOST_PAIRS)
    for furthest in (FURTHEST, 1):
        if num_near(texts, furthest) <= few:
            break
    else:
        raise UnsupportedRequest(
            f"{len(texts):,} texts are too alike, most have more than {_MOST_NEAR} others one typing error away: "
            "compare the field for equality"
        )
    if furthest < FURTHEST:
        warn_input(
            f"{len(texts):,} texts are so alike that most have very many others two typing errors away: only those one "
            "error away are near"
        )
    return near_texts(texts, furthest)


def _near_typos(texts: list[str]) -> _Near:
    first, second, distance = _near_strings(texts)
    return first, second, distance - ONLY_NEAR


def _near_long_texts(texts: list[str]) -> _Near:
    """Compare long texts: 10 (1 - s), s the larger of the shares of letters that stay, as they are or words sorted."""
    if len(texts) > MOST_TEXTS:
        raise UnsupportedRequest(
            f"{len(texts):,} different texts are too many to compare each with each; at most {MOST_TEXTS:,} are: "
            "compare the field by string, or for equality"
        )
    from rapidfuzz import fuzz, process

    folded, found = [text.casefold() for text in texts], [(np.zeros(0, int), np.zeros(0, int), np.zeros(0))]
    least = 100 * (1 - BEYOND / 10)
    for begin in range(0, len(folded), _TEXTS_AT_A_TIME):
        own = folded[begin : begin + _TEXTS_AT_A_TIME]
        as_is = process.cdist(own, folded, scorer=fuzz.ratio, score_cutoff=least)
        share = np.maximum(as_is, process.cdist(own, folded, scorer=fuzz.token_sort_ratio, score_cutoff=least))
        one, other = np.nonzero(share > least)
        later = begin + one < other
        one, other = one[later], other[later]
        found.append((begin + one, other, 10 * (1 - share[one, other] / 100)))
    return _joined(found)


def _near_numbers(texts: list[str]) -> _Near:
    read = [number_of(text) for text in texts]
    known = np.array([place for place, number in enumerate(read) if number is not None], int)
    value = np.array([float(number) for number in read if number is not None])
    order = np.argsort(value, kind="stable")
    known, value = known[order], value[order]
    found = [(np.zeros(0, int), np.zeros(0, int), np.zeros(0))]
    for lag in range(1, min(len(value), _MOST_NEAR + 1)):
        one = np.flatnonzero(value[lag:] - value[:-lag] <= FURTHEST)
        found.append((known[one], known[one + lag], value[one + lag] - value[one]))
    return _joined(found)


def _near_dates(texts: list[str]) -> _Near:
    read = [date_of(text) for text in texts]
    known = np.array([place for place, date in enumerate(read) if date is not None], int)
    dates = [date for date in read if date is not None]
    part = np.array([(date.year, date.month, date.day) for date in dates], int).reshape(-1, 3)
    found = []
    for same in ((0, 1), (0, 2), (1, 2)):
        changed = part[:, 3 - sum(same)]
        for one, other in _equal(part[:, same[0]] * 100 + part[:, same[1]]):
            found.append((one, other, np.minimum(np.abs(changed[one] - changed[other]), 2.0)))
    ordinal = np.array([date.toordinal() for date in dates], int)
    forms = ordinal, part @ (10_000, 100, 1), ordinal + 1, part @ (10_000, 1, 100)
    for own, moved in ((forms[0], forms[2]), (forms[1], forms[3])):  # the next day; day and month swapped
        one, other = np.nonzero(np.isin(own, moved))[0], np.argsort(moved, kind="stable")
        at = other[np.minimum(np.searchsorted(moved[other], own[one]), len(other) - 1)]
        differ = one != at
        found.append((one[differ], at[differ], np.ones(int(differ.sum()))))
    first, second, distance = _joined(found)
    return known[first], known[second], distance


def _equal(key: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the places of equal keys in pairs."""
    order = np.argsort(key, kind="stable")
    for one, other in equal_pairs(key[order]):
        yield order[one], order[other]


def _joined(found: list[_Near]) -> _Near:
    first, second, distance = (np.concatenate(column) for column in zip(*found, strict=True))
    return first, second, distance


SIMILAR_KINDS = {
    "text": _near_long_texts, "string": _near_strings, "typo": _near_typos, "number": _near_numbers,
    "date": _near_dates,
}  # fmt: skip
"""How values may be similar, each with the function that finds those that are near."""
