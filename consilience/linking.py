"""`link`: several tables in, who is the same person out; with sensible defaults, which it names."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.data.records import Records, read_records
from consilience.data.tables import warn_input
from consilience.errors import InputError, InputProblem, UnknownName, UnsupportedRequest
from consilience.inference.fitting import Fit, fit

__all__ = ["FIELD_TYPES", "ChosenField", "chosen_fields", "link"]

FIELD_TYPES = ("string", "date", "number", "category")
"""What a field may be."""

_FEW = 50            # A field of so many distinct values or fewer is a category.
_MANY_ALIKE = 100    # So many records with equal values are nothing that linkage is for.
_LOOKED_AT = 10_000  # Distinct values that are looked at to tell the type of a field.


class ChosenField(NamedTuple):
    """A column, and whether it is compared.

    Parameters
    ----------
    field : its name.
    type : one of `FIELD_TYPES`.
    values, missing : how many distinct values it has, and in how many records it is missing.
    left_out : why it is not compared; empty where it is.
    """

    field: str
    type: str
    values: int
    missing: int
    left_out: str


def link(
    sources: Any,
    *,
    id: str | None = None,
    fields: Sequence[str] | Mapping[str, str] | None = None,
    entity: str | None = None,
    missing_values: Sequence[str] = (),
    pairs: Any = None,
    method: str = "auto",
    draws: int = 1000,
    seed: int = 0,
    **options: Any,
) -> Fit:
    """Find the records that describe the same entity, in one table or between several.

    Parameters
    ----------
    sources : a path, a data frame or a dict of columns; a list of these; or a dict ``{name: source}``.
    id : the column that names each record; by default ``id``, ``record_id`` or ``rec_id``.
    fields : the columns to compare, or a dict of column to type, one of `FIELD_TYPES`. By default all that can tell
        entities apart: a column that is constant, always missing or different in every record is left out. Whatever
        their type, fields are compared for equality.
    entity : a column with the known entity, for evaluation; it is not compared.
    missing_values : texts that stand for a missing value besides the empty cell, such as "NA".
    pairs : a table of the pairs of records that may be linked, with the columns ``record_a`` and ``record_b``, in the
        place of those that the model itself can care about; of splink's or any other blocking.
    method : ``auto``, ``em`` or ``nuts``.
    draws, seed : of the partitions that are drawn.
    options : of the model `block-linkage`: likelihood, restriction, threshold, largest; and ``devices`` of `fit`.

    Returns
    -------
    Fit : with the tables ``entities()``, ``pairs()``, ``review()``, ``canonical()``, ``patterns()`` and the number of
        entities, ``num_entities()``.

    Raises
    ------
    InputError : the tables cannot be read; the message says where.
    UnknownName : a type of field that does not exist.
    """
    types = dict(fields) if isinstance(fields, Mapping) else {}
    for name, type_ in types.items():
        if type_ not in FIELD_TYPES:
            raise UnknownName(f"the type of field {name!r} is {type_!r}; give one of {', '.join(FIELD_TYPES)}")
    names = None if fields is None else list(fields)
    records = read_records(sources, id=id, entity=entity, fields=names, missing_values=missing_values)
    if records.num_records == 1:
        problem = InputProblem("there is one record only, and none to link it with", "give at least two records")
        raise InputError(problem)
    chosen = chosen_fields(records, types)
    compared = [one.field for one in chosen if names is not None or not one.left_out]
    if not compared:
        raise UnsupportedRequest(
            "no column can tell entities apart: each is constant, always missing, or different in every record; "
            "name those to compare in fields="
        )
    records = records.of_fields(compared)
    _warn_of_copies(records)
    if pairs is not None:
        records = records.with_candidates(pairs)
    found = fit("block-linkage", records, method=method, draws=draws, seed=seed, **options)
    found.attributes["fields"] = ", ".join(f"{one.field} ({one.type})" for one in chosen if one.field in compared)
    left = [f"{one.field}: {one.left_out}" for one in chosen if one.field not in compared]
    if left:
        found.attributes["left_out"] = "; ".join(left)
        warn_input(f"columns that are not compared: {found.attributes['left_out']}")
    return found


def _warn_of_copies(records: Records) -> None:
    """Warn of many records that nothing tells apart: they are no entity, and hide one."""
    rows = np.ascontiguousarray(np.asarray(records.value).T)
    number = np.unique(rows.view(f"V{rows.itemsize * rows.shape[1]}"), return_counts=True)[1]
    if (most := int(number.max())) > _MANY_ALIKE:
        warn_input(
            f"{most:,} records have the same value in every field that is compared: they cannot be told apart, and are "
            "taken for different entities or cut into small ones. Keep one of each, or compare more fields"
        )


def chosen_fields(records: Records, types: Mapping[str, str]) -> list[ChosenField]:
    """Tell the type of each field, and which of them can tell entities apart.

    Parameters
    ----------
    types : of the fields whose type is known.
    """
    found = []
    for place, field in enumerate(records.fields):
        codes = np.asarray(records.value[place])
        missing, values = int(np.sum(codes < 0)), len(np.unique(codes[codes >= 0]))
        reason = ""
        if values == 0:
            reason = "always missing"
        elif values == 1:
            reason = "the same in every record"
        elif values == len(codes) > 2:
            reason = "different in every record"
        type_ = types.get(field) or _type_of(records.vocabulary(field), values)
        found.append(ChosenField(str(field), type_, values, missing, reason))
    return found


def _type_of(vocabulary: np.ndarray, values: int) -> str:
    """Return what the texts of a field look like."""
    texts = vocabulary[:_LOOKED_AT]
    if len(texts) and all(map(_is_date, texts)):
        return "date"
    if len(texts) and all(map(_is_number, texts)):
        return "number" if values > _FEW else "category"
    return "category" if values <= _FEW else "string"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    digits = text.replace("-", "").replace("/", "").replace(".", "")
    if len(digits) != 8 or not digits.isdigit():
        return False
    for form in ("%Y%m%d", "%d%m%Y", "%m%d%Y"):
        try:
            if 1800 <= datetime.datetime.strptime(digits, form).year <= 2100:  # noqa: DTZ007
                return True
        except ValueError:
            continue
    return False
