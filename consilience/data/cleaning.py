"""The form in which the values of a column are compared: Unicode, punctuation, missing values, dates, phones, numbers.

Pure functions of the distinct texts of a column. They run once for each text and not for each row, and nothing of them
depends on an engine. In order: which texts are missing, of what type the column is, the form of each text. Tables keep
what was written.

| step | rule |
|---|---|
| Unicode | compatibility forms (NFKC), no case, no accents; letters that Unicode does not decompose by a table |
| punctuation | apostrophes go, other punctuation is a blank, runs of blanks are one |
| missing | the tokens of `MISSING`, in any case |
| date | the year first; with the year last, day or month first as the column of one source shows |
| phone | the last nine digits |
| number | its value; thousands separators only where the whole column has them |
"""

from __future__ import annotations

import datetime
import decimal
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from consilience.errors import UnsupportedRequest

FIELD_TYPES = ("string", "date", "number", "phone", "category")
"""What a field may be; a date may say how it is written, as in ``date:dmy`` and ``date:mdy``."""

DATE_ORDERS = ("dmy", "mdy")
"""How dates with the year last are written: the day first, or the month."""

MISSING = (
    "", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "unknown", "unk", "missing", "not available", "not known",
    "not given", "not provided", "-", "--", "---", "?", "??", ".", "..", "#n/a", "<na>", "(blank)", "(null)", "tba",
    "tbd",
)  # fmt: skip
"""Texts that stand for a missing value where nothing else is asked for, without case."""

EXACT = "exact"
"""Says that a column is compared as it is written."""

_FEW = 50             # A column of so many distinct texts or fewer is a category.
_LOOKED_AT = 10_000   # Distinct texts of a source that are looked at to tell the type.
_MOSTLY = 0.8         # Share of the texts that tell that a column is of dates, or of phone numbers.
_TWO_LETTERS = 0.9    # Share of two letters among the others that tells that NA is Namibia.
_PHONE_DIGITS = 9     # What is left of a number without country code and trunk prefix.


class Recipe(NamedTuple):
    """How the texts of one column of one source become forms.

    Parameters
    ----------
    read : "text", "date", "number", "phone" or "exact"; or a function of one's own, of a text.
    detail : of dates the order (see `date_order`), of numbers the mark of thousands; else empty.
    """

    read: str | Callable[[str], str | None] = "text"
    detail: str = ""


def recipes(sources: Sequence[Sequence[str]], asked: str | None = None) -> tuple[str, list[Recipe]]:
    """Tell of what type a column is, and how its texts are read in each source.

    Parameters
    ----------
    sources : the distinct texts that each source has of the column, without the missing ones.
    asked : the type, where it is known: one of `FIELD_TYPES`, or ``date:dmy``, ``date:mdy``.

    Examples
    --------
    >>> recipes([["1951-02-03"], ["03/02/1951", "25/12/1960"]])
    ('date', [Recipe(read='date', detail='ymd'), Recipe(read='date', detail='dmy')])
    """
    type_, _, order = (asked or type_of(sources)).partition(":")
    if type_ == "date":
        return type_, [Recipe("date", order or date_order(texts)) for texts in sources]
    if type_ == "phone":
        return type_, [Recipe("phone")] * len(sources)
    # Few numbers are a category, and still numbers: -1 is not 1.
    if type_ == "number" or (type_ == "category" and _are_numbers(sources)):
        return type_, [Recipe("number", thousands_mark(texts)) for texts in sources]
    return type_, [Recipe()] * len(sources)


def forms(texts: Sequence[str], recipe: Recipe) -> tuple[list[str | None], int]:
    """Return the form of each text, None where one's own function has none; and how many could not be read as asked.

    Raises
    ------
    UnsupportedRequest : one's own function returns what is no text.

    Examples
    --------
    >>> forms(["Łukasz", "O'Neil", "JEAN  LUC"], Recipe())[0]
    ['lukasz', 'oneil', 'jean luc']
    """
    if callable(recipe.read):
        return [_own_form(recipe.read, text) for text in texts], 0
    if recipe.read == EXACT:
        return list(texts), 0
    if recipe.read == "text":
        return list(text_forms(texts)), 0
    read = _READ[recipe.read]
    found = [read(text, recipe.detail) for text in texts]
    unread = [text for text, form in zip(texts, found, strict=True) if form is None]
    as_texts = iter(text_forms(unread))
    return [next(as_texts) if form is None else form for form in found], len(unread)


def _own_form(function: Callable[[str], str | None], text: str) -> str | None:
    form = function(text)
    if not (form is None or isinstance(form, str)):
        raise UnsupportedRequest(f"a function of clean= made {form!r} of {text!r}; return a text, or None for missing")
    return form or None


# ---- texts ----

_GONE = dict.fromkeys(map(ord, "'’‘‛′`´ʼʹ＇\u00ad\u200b\u200e\u200f\ufeff"))
_MARKS = re.compile("[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t", "ŋ": "n"}
)
_BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")


class _Punctuation(dict[int, int]):
    """Maps punctuation to a blank; asked once for each character."""

    def __missing__(self, code: int) -> int:
        self[code] = 32 if unicodedata.category(chr(code)).startswith("P") or code == ord("|") else code
        return self[code]


_PUNCTUATION = _Punctuation()


def text_forms(texts: Sequence[str]) -> list[str]:
    """Return texts without case, accents, apostrophes and punctuation; what is nothing else stays, without case.

    Accents are the combining marks of Latin, Greek and Cyrillic (U+0300 to U+036F): the voiced marks of Japanese and
    the vowel signs of other scripts are no ornaments, and stay.

    Examples
    --------
    >>> text_forms(["Weiß", "Ångström", "Jean-Luc", "ﬁn", "が", "?!"])
    ['weiss', 'angstrom', 'jean luc', 'fin', 'が', '?!']
    """
    # All at once, a line each: a call for each text takes ten times as long.
    joined = "\n".join(texts)
    if joined.count("\n") >= max(len(texts), 1):
        joined = "\n".join(text.replace("\n", " ") for text in texts)
    folded = _folded(joined.translate(_GONE))
    lines = _BLANKS.sub(" ", folded.translate(_PUNCTUATION)).split("\n") if texts else []
    stripped = map(str.strip, lines)
    return [form or " ".join(text.casefold().split()) for text, form in zip(texts, stripped, strict=True)]


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    if text.isascii():
        return text
    text = _MARKS.sub("", unicodedata.normalize("NFD", text)).translate(_LETTERS)
    return unicodedata.normalize("NFKC", text)


# ---- missing values ----


def tokens_of(missing_values: str | Iterable[str] | None) -> frozenset[str]:
    """Return the tokens of missing values: of None those of `MISSING`, of "empty" none but the empty text."""
    if isinstance(missing_values, str):
        missing_values = () if missing_values == "empty" else (missing_values,)
    given = MISSING if missing_values is None else missing_values
    return frozenset(token.strip().casefold() for token in (*given, ""))


def missing_texts(texts: Sequence[str], tokens: Collection[str]) -> list[bool]:
    """Tell which of the distinct texts of a column stand for a missing value.

    Two letters, NA, are Namibia and stay where more than nine in ten of the other texts are two letters as well.
    """
    found = [text.strip().casefold() in tokens for text in texts]
    if not any(found):
        return found
    others = [text.strip() for text, lacks in zip(texts, found, strict=True) if not lacks]
    codes = sum(len(text) == 2 and text.isalpha() for text in others)
    if codes > _TWO_LETTERS * len(others):
        return [lacks and text.strip() != "NA" for text, lacks in zip(texts, found, strict=True)]
    return found


# ---- types ----


def type_of(sources: Sequence[Sequence[str]]) -> str:
    """Return what the distinct texts of a column look like, one of `FIELD_TYPES`; of each source its own texts."""
    looked_at = [text for texts in sources for text in texts[:_LOOKED_AT]]
    number = len(looked_at)
    if number and sum(map(_looks_like_date, looked_at)) >= _MOSTLY * number:
        return "date"
    if number and sum(map(_looks_like_phone, looked_at)) >= _MOSTLY * number:
        led = sum(text.lstrip("( ").startswith(("+", "0")) for text in looked_at)
        if led >= 0.5 * number:
            return "phone"
    few = sum(map(len, sources)) <= _FEW or len({text for texts in sources for text in texts}) <= _FEW
    return "category" if few else "number" if _are_numbers(sources) else "string"


def _are_numbers(sources: Sequence[Sequence[str]]) -> bool:
    marks = map(thousands_mark, sources)
    return any(sources) and all(
        number_form(text, mark) is not None for texts, mark in zip(sources, marks, strict=True) for text in texts
    )


# ---- dates ----

_TIME = r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm])?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
_YEAR_FIRST = re.compile(
    rf"(?P<y>\d{{4}})(?:(?P<mark>[-/. ])(?P<m>\d{{1,2}})(?P=mark)(?P<d>\d{{1,2}})|(?P<m2>\d\d)(?P<d2>\d\d)){_TIME}"
)
_YEAR_LAST = re.compile(rf"(?P<a>\d{{1,2}})(?P<mark>[-/. ])(?P<b>\d{{1,2}})(?P=mark)(?P<y>\d{{4}}){_TIME}")


def date_of(text: str, order: str = "") -> datetime.date | None:
    """Return the date that a text is, None where it is none or may be another one; time of day and zone are cut.

    Parameters
    ----------
    text : 1951-02-03, 1951/2/3, 1951.02.03, 19510203; or with the year last, 03/02/1951.
    order : "dmy" or "mdy", of dates with the year last. By default, and of what cannot be read in the order, they are
        read where that is possible in one way only; with dots the day is first.

    Examples
    --------
    >>> date_of("25/12/1951"), date_of("03/02/1951"), date_of("03/02/1951", "dmy")
    (datetime.date(1951, 12, 25), None, datetime.date(1951, 2, 3))
    """
    if found := _YEAR_FIRST.fullmatch(text):
        return _date(found["y"], found["m"] or found["m2"], found["d"] or found["d2"])
    if not (found := _YEAR_LAST.fullmatch(text)):
        return None
    day_first, month_first = _both_ways(found)
    if order == "mdy":
        return month_first or day_first
    if order == "dmy" or found["mark"] == "." or month_first in (None, day_first):
        return day_first or month_first
    return None if day_first else month_first


def date_order(texts: Iterable[str]) -> str:
    """Return how a column writes dates: "ymd", "dmy" or "mdy"; "mixed" where both occur, "unclear" where nothing tells.

    The day is first if some first number can be a day only and no second one can, and the month in the mirror case.
    """
    matches = [found for text in texts if (found := _YEAR_LAST.fullmatch(text))]
    ways = [(found["mark"], *_both_ways(found)) for found in matches]
    day_first = any(one and not other for _, one, other in ways)
    month_first = any(other and not one for _, one, other in ways)
    if day_first and month_first:
        return "mixed"
    if day_first or month_first:
        return "dmy" if day_first else "mdy"
    if not any(one and one != other for mark, one, other in ways if mark != "."):
        return "dmy" if ways else "ymd"
    return "unclear"


def ambiguous_dates(texts: Iterable[str], order: str) -> list[str]:
    """Return the texts that are two dates, as the order of the column does not tell which."""
    found = []
    for text in texts:
        if date_of(text, order) is None and (match := _YEAR_LAST.fullmatch(text)) and all(_both_ways(match)):
            found.append(text)
    return found


def _both_ways(found: re.Match[str]) -> tuple[datetime.date | None, datetime.date | None]:
    """Return a date with the day first, and with the month first."""
    return _date(found["y"], found["b"], found["a"]), _date(found["y"], found["a"], found["b"])


def _date(year: str, month: str, day: str) -> datetime.date | None:
    try:
        return datetime.date(int(year), int(month), int(day))
    except ValueError:
        return None


def _date_form(text: str, order: str) -> str | None:
    found = date_of(text, order)
    return None if found is None else found.isoformat()


def _looks_like_date(text: str) -> bool:
    """Return whether a text is a date of these centuries, whatever comes first."""
    found = date_of(text, "dmy")
    return found is not None and 1800 <= found.year <= 2100


# ---- phone numbers ----

_PHONE = re.compile(r"[0-9+()\-‐‑–./\s]+")


def _phone_form(text: str, _: str = "") -> str | None:
    text = unicodedata.normalize("NFKC", text)
    digits = "".join(filter(str.isdigit, text)) if _PHONE.fullmatch(text) else ""
    return digits[-_PHONE_DIGITS:] or None


def _looks_like_phone(text: str) -> bool:
    # A share such as 0.1234567 has digits enough, and is a number.
    return bool(_PHONE.fullmatch(text)) and 7 <= sum(map(str.isdigit, text)) <= 15 and not text.startswith("0.")


# ---- numbers ----

_PLAIN_BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "’": "'"})
_DIGITS_AND_MARKS = re.compile(r"[+-]?[\d.,'’\s]+")
_GROUPED = {
    mark: re.compile(rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})*(?:{point}\d+)?")
    for mark, point in ((",", r"\."), (".", ","), (" ", "[.,]"), ("'", "[.,]"))
}


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


def number_form(text: str, mark: str = "") -> str | None:
    """Return a number in one way of writing, None of what is none.

    Parameters
    ----------
    mark : what separates thousands; of any but the comma a comma stands before the decimals.

    Examples
    --------
    >>> number_form("05.0"), number_form("1,250", ","), number_form("1.250,5", "."), number_form("1,250")
    ('5', '1250', '1250.5', None)
    """
    whole, point, decimals = text.partition(".")
    if not mark and text.isascii() and whole.isdigit() and (decimals.isdigit() or not point):  # most, and quickly
        decimals = decimals.rstrip("0")
        return f"{whole.lstrip('0') or '0'}{'.' if decimals else ''}{decimals}"
    if mark:
        text = text.translate(_PLAIN_BLANKS).replace(mark, "")
        text = text if mark == "," else text.replace(",", ".")
    number = number_of(text)
    if number is None:
        return None
    written = format(number, "f")
    written = written.rstrip("0").rstrip(".") if "." in written else written
    return "0" if written == "-0" else written


def thousands_mark(texts: Sequence[str]) -> str:
    """Return what separates thousands in a whole column; empty where a text disagrees, or points may be decimal ones.

    Examples
    --------
    >>> thousands_mark(["1,250", "900"]), thousands_mark(["1,250", "1250"]), thousands_mark(["1.250"])
    (',', '', '')
    """
    if not texts or not _DIGITS_AND_MARKS.fullmatch(texts[0]):
        return ""
    joined = "".join(texts)
    if not any(mark in joined for mark in ",'’ \u00a0\u202f") and all(text.count(".") < 2 for text in texts):
        return ""
    plain = [text.translate(_PLAIN_BLANKS) for text in texts]
    for mark, grouped in _GROUPED.items():
        # 1.250 alone is more often a decimal; 1.250.000 is not.
        if any(mark in text for text in plain) and all(map(grouped.fullmatch, plain)):
            if mark != "." or any(text.count(".") > 1 or "," in text for text in plain):
                return mark
    return ""




_READ: dict[str, Callable[[str, str], str | None]] = {
    "date": _date_form, "number": number_form, "phone": _phone_form,
}  # fmt: skip
