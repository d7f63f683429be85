"""Records as they are compared, and the ledger of what cleaning did to each column of each source."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.data.cleaning import (
    EXACT,
    Recipe,
    ambiguous_dates,
    forms,
    missing_texts,
    recipes,
    tokens_of,
)
from consilience.data.column_names import meant
from consilience.data.problems import first_of, shorten, warn_input
from consilience.data.records import Records
from consilience.errors import InputError, InputProblem, UnknownName
from consilience.notes import Remedy

LEDGER = ("column", "source", "type", "order", "values", "forms", "missing", "examples")
"""The columns of the ledger: a row for each column of each source."""

_EXAMPLES = 3
_NAMED_BESIDE = 20  # With more other texts than so many, a token of letters may be a name.
_MOST_CELLS = 1 << 24


class Cleaned(NamedTuple):
    """Records as they are compared.

    Parameters
    ----------
    records : with values whose forms are equal taken for one, and tokens of missing values missing. Of each value the
        text that was first is kept.
    types : of every field, one of `consilience.data.cleaning.FIELD_TYPES`.
    forms : of every field, the form of each value of its vocabulary.
    ledger : what was done, as columns `LEDGER`.
    unread : of the fields whose type was asked for, the share of their texts that could not be read as such.
    """

    records: Records
    types: dict[str, str]
    forms: dict[str, list[str]]
    ledger: dict[str, list[Any]]
    unread: dict[str, float]


class _Column(NamedTuple):
    """A column before and after: places are of its texts, the last one that of a missing value."""

    codes: np.ndarray
    texts: list[str]
    forms: list[str]
    type: str
    unread: float
    rows: list[dict[str, Any]]


def clean_records(
    records: Records, *, types: Mapping[str, str] | None = None,
    clean: Mapping[str, str | Callable[[str], str | None]] | None = None, missing_values: Any = None,
) -> Cleaned:  # fmt: skip
    """Take the values of every field for one whose forms are equal, and tokens of missing values for missing.

    Parameters
    ----------
    types : of the fields whose type is known; of the others it is told from their texts.
    clean : of some fields, "exact", or a function from a text to its form, None where it is missing.
    missing_values : the tokens, or "empty"; by default `consilience.data.cleaning.MISSING`.

    Warns
    -----
    InputWarning : of dates that may be others, and of names that were taken for missing.

    Raises
    ------
    InputError : a field is named that is none.
    UnknownName : something else than "exact" or a function.

    Examples
    --------
    >>> import consilience as cs
    >>> records = cs.read_records({"id": ["a", "b", "c"], "name": ["Łukasz", "LUKASZ ", "n/a"]})
    >>> clean_records(records).records.value.tolist()
    [[0, 0, -1]]
    """
    asked, own = dict(types or {}), dict(clean or {})
    fields = list(map(str, records.fields))
    _check(own, fields)
    tokens = tokens_of(missing_values)
    columns = [
        _cleaned(records, field, asked.get(field), own.get(field), tokens, said=missing_values is not None)
        for field in fields
    ]
    rows = [row for column in columns for row in column.rows]
    if any(column.codes is not old for column, old in zip(columns, records.value, strict=True)):
        records = records.with_values([column.codes for column in columns], [column.texts for column in columns])
    return Cleaned(
        records,
        {field: column.type for field, column in zip(fields, columns, strict=True)},
        {field: column.forms for field, column in zip(fields, columns, strict=True)},
        {name: [row[name] for row in rows] for name in LEDGER},
        {field: column.unread for field, column in zip(fields, columns, strict=True) if field in asked},
    )


def _check(own: Mapping[str, Any], fields: Sequence[str]) -> None:
    for field, how in own.items():
        if field not in fields:
            remedy = meant(field, fields) or f"name one of {', '.join(fields)}"
            raise InputError(InputProblem(f"{{clean}} names the column {field!r}", remedy, remedies=(Remedy("clean"),)))
        if how != EXACT and not callable(how):
            raise UnknownName(f"clean= of {field!r} is {how!r}; give 'exact', or a function from a text to its form")


def _cleaned(
    records: Records, field: str, asked: str | None, own: Any, tokens: Collection[str], *, said: bool
) -> _Column:
    place = records.fields.tolist().index(field)
    codes, texts = np.asarray(records.value[place]), records.vocabulary(field).tolist()
    counts = _counts(codes, np.asarray(records.source), records.num_sources, len(texts))
    lacks = missing_texts(texts, tokens)
    of_source = [[code for code in own_codes if not lacks[code]] for own_codes, _ in counts]
    type_, found = recipes([[texts[code] for code in one] for one in of_source], asked)
    if own is not None:
        found = [Recipe(own)] * len(found)
    tables: dict[Recipe, list[str | None]] = {}
    unread, read = 0, 0
    for recipe in dict.fromkeys(found):
        which = sorted({code for one, used in zip(of_source, found, strict=True) if used == recipe for code in one})
        of_texts, failed = forms([texts[code] for code in which], recipe)
        tables[recipe] = [None] * len(texts)
        for code, form in zip(which, of_texts, strict=True):
            tables[recipe][code] = form
        unread, read = unread + failed, read + len(which)
    rows = [
        _row(field, str(source), type_, recipe, texts, tables[recipe], one, used, lacks)
        for source, recipe, one, used in zip(records.sources, found, of_source, counts, strict=True)
    ]
    _warn_of_dates(field, list(map(str, records.sources)), texts, found, of_source)
    if not said:
        _warn_of_names(field, type_, texts, lacks, counts)
    rows = [row for row in rows if row["values"]] or rows[:1]
    merged, kept, lookup = _merged(texts, list(tables.values()))
    if len(lookup) < len(texts) or len(tables) > 1:
        of_recipe = np.array([list(tables).index(recipe) for recipe in found])
        codes = merged[of_recipe[np.asarray(records.source)] if len(tables) > 1 else 0, codes]
    return _Column(codes, kept, lookup, type_, unread / max(read, 1), rows)


def _counts(
    codes: np.ndarray, source: np.ndarray, num_sources: int, num_texts: int
) -> list[tuple[list[int], np.ndarray]]:
    """Return the codes that each source has, and how often; the last number is that of its missing values."""
    cell = source.astype(np.int64) * (num_texts + 1) + codes + 1
    if (size := num_sources * (num_texts + 1)) > _MOST_CELLS:  # few texts of many sources: not a table of all
        cells, number = np.unique(cell, return_counts=True)
    else:
        number = np.bincount(cell, minlength=size)
        cells = np.flatnonzero(number)
        number = number[cells]
    first = np.searchsorted(cells, np.arange(num_sources + 1) * (num_texts + 1))
    own_codes = cells % (num_texts + 1) - 1
    parts = [(own_codes[a:b], number[a:b]) for a, b in itertools.pairwise(first.tolist())]
    found = []
    for own, number in parts:
        has = own >= 0
        found.append((own[has].tolist(), np.append(number[has], number[~has].sum())))
    return found


def _merged(texts: list[str], tables: list[list[str | None]]) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the new code of each text by recipe, the text that stands for each form, and the forms."""
    merged = np.full((len(tables), len(texts) + 1), -1, np.int32)
    lookup: dict[str, int] = {}
    if len(tables) == 1:
        (own,) = tables
        merged[0, :-1] = [-1 if form is None else lookup.setdefault(form, len(lookup)) for form in own]
        new = merged[0, :-1]
        first = np.unique(new[new >= 0], return_index=True)[1]
        return merged, [texts[code] for code in np.flatnonzero(new >= 0)[first].tolist()], list(lookup)
    kept: dict[str, None] = {}
    for code, text in enumerate(texts):
        for row, own in enumerate(tables):
            if (form := own[code]) is not None:
                if form not in lookup:  # Two sources may mean two dates by one text: the second is written as its form.
                    kept[form if text in kept else text] = None
                merged[row, code] = lookup.setdefault(form, len(lookup))
    return merged, list(kept), list(lookup)


# ---- what is said ----


def _row(
    field: str, source: str, type_: str, recipe: Recipe, texts: list[str], of_texts: list[str | None],
    known: list[int], used: tuple[list[int], np.ndarray], lacks: list[bool],
) -> dict[str, Any]:  # fmt: skip
    """Return the row of the ledger of one column of one source."""
    codes, counts = used
    number = dict(zip(codes, counts[:-1].tolist(), strict=True))
    tokens = [f"{texts[code]} → missing ({number[code]:,})" for code in codes if lacks[code]]
    changed = (f"{texts[code]} → {of_texts[code]}" for code in known if _shows(texts[code], of_texts[code]))
    examples = [*itertools.islice(changed, _EXAMPLES), *tokens]
    return {
        "column": field, "source": source, "type": type_, "order": recipe.detail if recipe.read == "date" else "",
        "values": len(known), "forms": len({of_texts[code] for code in known} - {None}),
        "missing": int(counts[-1]) + sum(number[code] for code in codes if lacks[code]),
        "examples": "; ".join(shorten(one) for one in examples[: 2 * _EXAMPLES]),
    }  # fmt: skip


def _shows(text: str, form: str | None) -> bool:
    """Return whether a form differs from its text by more than case."""
    return form is not None and form != text and form != text.casefold()


def _warn_of_dates(
    field: str, sources: Sequence[str], texts: list[str], found: list[Recipe], of_source: list[list[int]]
) -> None:
    for source, recipe, codes in zip(sources, found, of_source, strict=True):
        if recipe.detail in ("mixed", "unclear"):
            doubtful = ambiguous_dates([texts[code] for code in codes], recipe.detail)
            if doubtful:
                why = "both ways occur" if recipe.detail == "mixed" else "no value tells"
                warn_input(
                    f"dates of {field!r} in {source} may have the day or the month first, and {why}: "
                    f"{first_of(map(repr, doubtful), 2)} are compared as text; say which in {{fields}}, by the type "
                    f"date:dmy or date:mdy of {field!r}",
                    Remedy("fields"),
                )


def _warn_of_names(
    field: str, type_: str, texts: list[str], lacks: list[bool], counts: list[tuple[list[int], np.ndarray]]
) -> None:
    """Name the tokens that may be names: None and Null are surnames. What is more common than any name is none."""
    if type_ not in ("string", "category") or len(texts) - sum(lacks) <= _NAMED_BESIDE:
        return
    number = np.zeros(len(texts), np.int64)
    for codes, of_codes in counts:
        number[codes] += of_codes[:-1]
    most = number[~np.array(lacks)].max()
    doubtful = [
        f"{text!r} ({count:,})" for text, lacking, count in zip(texts, lacks, number.tolist(), strict=True)
        if lacking and text.isalpha() and count <= most
    ]  # fmt: skip
    if doubtful:
        warn_input(
            f"of {field!r} the values {first_of(doubtful)} are taken for missing; where they are names, give the texts "
            "that stand for a missing value, or 'empty', in {missing_values}",
            Remedy("missing_values"),
        )
