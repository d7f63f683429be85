"""How the values of a field are compared: as texts in any case, as numbers, or as dates, however they are written.

A value that is no number, or no date in a form that can be read in one way only, is compared as a text.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from consilience.data.records import Records

FIELD_TYPES = ("string", "date", "number", "category")
"""What a field may be."""

_FEW = 50            # A field of so many distinct values or fewer is a category.
_LOOKED_AT = 10_000  # Distinct values that are looked at to tell the type of a field.
_YEAR_FIRST = re.compile(r"(?P<y>\d{4})(?P<mark>[-/.]?)(?P<m>\d{1,2})(?P=mark)(?P<d>\d{1,2})([ T]00:00(:00(\.0+)?)?)?")
_YEAR_LAST = re.compile(r"(?P<d>\d{1,2})(?P<mark>[-/.])(?P<m>\d{1,2})(?P=mark)(?P<y>\d{4})")


class Compared(NamedTuple):
    """Records as they are compared.

    Parameters
    ----------
    records : with texts that are compared as equal taken for one.
    types : of every field, one of `FIELD_TYPES`.
    unread : of the fields whose type was asked for, the share of their distinct values that could not be read as such.
    """

    records: Records
    types: dict[str, str]
    unread: dict[str, float]


def as_compared(records: Records, asked: Mapping[str, str]) -> Compared:
    """Take the values of every field for one that its type does not tell apart.

    Parameters
    ----------
    asked : types of the fields whose type is known; of the others it is told from their texts.
    """
    types, unread = {}, {}
    for field in map(str, records.fields):
        texts = records.vocabulary(field).tolist()
        types[field] = asked.get(field) or type_of(texts)
        read = _READ.get(types[field])
        found = [None if read is None else read(text) for text in texts]
        if field in asked and read is not None and texts:
            unread[field] = sum(one is None for one in found) / len(texts)
        forms = [text.casefold() if one is None else one for text, one in zip(texts, found, strict=True)]
        records = records.with_equal(field, forms)
    return Compared(records, types, unread)


def type_of(texts: list[str]) -> str:
    """Return what the distinct texts of a field look like, one of `FIELD_TYPES`."""
    looked_at = texts[:_LOOKED_AT]
    if looked_at and all(map(_looks_like_date, looked_at)):
        return "date"
    if looked_at and all(number_of(text) is not None for text in looked_at):
        return "number" if len(texts) > _FEW else "category"
    return "category" if len(texts) <= _FEW else "string"


def number_of(text: str) -> decimal.Decimal | None:
    """Return the number that a text is, exactly; None where it is none: "5", "5.0" and "05" are equal."""
    if "_" in text:
        return None
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    # Python's own hash of a number with a huge exponent takes long.
    return number if number.is_finite() and abs(number.adjusted()) < 1000 else None


def date_of(text: str) -> datetime.date | None:
    """Return the date that a text is, None where it is none or may be another one.

    Read are 1951-02-03, 1951/02/03, 1951.02.03 and 19510203; with the day first 03.02.1951; and 25/12/1951, 12/25/1951
    and the same with dashes, whose one number can only be the day. 03/02/1951 is not read.
    """
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day = (int(found[part]) for part in "ymd")
        return _date(year, month, day) if found["mark"] or len(text) == 8 else None
    if not (found := _YEAR_LAST.fullmatch(text)):
        return None
    year, month, day = (int(found[part]) for part in "ymd")
    if found["mark"] == "." or month == day:
        return _date(year, month, day)
    candidates = {_date(year, month, day), _date(year, day, month)} - {None}
    return candidates.pop() if len(candidates) == 1 else None


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


_READ: dict[str, Callable[[str], Hashable | None]] = {"number": number_of, "date": date_of}


def _looks_like_date(text: str) -> bool:
    """Return whether a text of eight digits is a date of these centuries, in any order."""
    digits = re.sub("[-/.]", "", text)
    if len(digits) != 8 or not digits.isdigit():
        return False
    start, end = digits[:4], digits[4:]
    orders = ((start, end[:2], end[2:]), (end, start[2:], start[:2]), (end, start[:2], start[2:]))
    dates = (_date(*map(int, order)) for order in orders)
    return any(1800 <= date.year <= 2100 for date in dates if date)
