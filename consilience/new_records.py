"""`link_new`: records that come after a fit, read and cleaned as the fit was, and what they are linked with."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience.data.cleaned import clean_records
from consilience.data.cleaning import EXACT, Recipe, forms, recipes
from consilience.data.codes import object_array
from consilience.data.column_names import known_as
from consilience.data.problems import Problems, first_of, warn_input
from consilience.data.records import Records, records_and_ids
from consilience.errors import InputWarning, UnsupportedRequest
from consilience.inference.fitting import Fit
from consilience.models.block_linkage.new_records import linked_beside
from consilience.notes import Remedy
from consilience.similarity import with_similar

if TYPE_CHECKING:
    import pandas

_MANY = 0.1  # New records, as a share of the fitted ones, beyond which what was learned may no longer hold.


def link_new(
    fit: Fit,
    records: Any,
    *,
    id: str | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    clean: Mapping[str, str | Callable[[str], str | None]] | None = None,
) -> pandas.DataFrame:
    """Link new records with those of a fit, what was learned of errors and entities fixed.

    Parts of the records that a new one may belong to are inferred again; all others are what they were. The fit stays
    as it is.

    Parameters
    ----------
    fit : by `link`.
    records : new tables, as `link` takes them; their columns are called as those of the fit. A source with the name of
        one of the fit is the same source, which matters to ``restriction``.
    id, columns : as in `link`.
    clean : of columns that the fit cleaned by functions of one's own, these functions; a fit does not keep them.

    Returns
    -------
    data frame : a row for each new ``record``; its ``entity`` in the most probable partition, named by its first
        record, fitted ones first; the ``probability`` that the entity is exactly these records; and ``merged``, the
        fitted entities, by name, that are one with it now: empty, one, or several, " + " between them.

    Raises
    ------
    InputError : the tables cannot be read, or name records that the fit has.
    UnsupportedRequest : the fit is none of linkage, took pairs that were given, or was cleaned by functions that are
        not given.

    Warns
    -----
    InputWarning : beyond one new record for ten of the fit: what was learned may no longer hold, so link all again.

    Examples
    --------
    >>> import consilience as cs
    >>> people = {
    ...     "id": list("abcdefghij"),
    ...     "name": ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"],
    ...     "born": [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944, 1950, 1980],
    ...     "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn", "Kiel", "Kiel"],
    ... }
    >>> fit = cs.link(people)
    >>> new = {"id": ["x"], "name": ["BOB"], "born": [1975], "town": ["Bonn"]}
    >>> fit.link_new(new)[["record", "entity", "merged"]].values.tolist()
    [['x', 'c', 'c']]
    """
    import pandas

    fitted: Any = fit.data
    new = _read(fit, records, id=id, columns=columns)
    every = _joined(fit, new, clean)
    if new.num_records > _MANY * fitted.num_records:
        warn_input(
            f"{new.num_records:,} new records beside {fitted.num_records:,}: what was learned of errors and entities "
            "may no longer hold; link all records again"
        )
    partition, touched = linked_beside(fit.posterior, fit.resolved, every)
    estimate = partition.estimate()
    before = np.append(fit.truth.estimate(), np.full(new.num_records, -1))[touched]
    names = np.asarray(every.records, object)
    of_entity: dict[int, list[int]] = {}
    for entity, old in dict.fromkeys(zip(estimate.tolist(), before.tolist(), strict=True)):
        if old >= 0:
            of_entity.setdefault(entity, []).append(old)
    is_new = np.flatnonzero(touched >= fitted.num_records)
    return pandas.DataFrame({
        "record": names[touched[is_new]], "entity": names[touched[estimate[is_new]]],
        "probability": partition.cluster_probability(estimate)[is_new],
        "merged": [" + ".join(names[of_entity.get(entity, [])]) for entity in estimate[is_new].tolist()],
    })  # fmt: skip


def _read(fit: Fit, sources: Any, *, id: str | None, columns: Any) -> Records:
    """Read new records with the fields of the fit, in its order; a field that they lack is missing."""
    fitted: Any = fit.data
    if fitted.records is None or fitted.fields is None:
        raise UnsupportedRequest("the records of this fit have no names; link records that were read")
    named = fit.attributes.get("id", "")
    if isinstance(sources, Records):
        read = sources
    else:
        with warnings.catch_warnings():  # One value in a few new records is nothing to warn of.
            warnings.filterwarnings("ignore", message=".*it carries nothing", category=InputWarning)
            known = id if id is not None or ", " in named or named in ("", "id") else named
            read, _ = records_and_ids(sources, id=known, columns=columns)
        # Sources without a name of their own are numbered, and none of the fit's.
        names = [f"new {name}" if str(name).isdigit() else name for name in read.sources]
        read = read.replace(sources=object_array(names))
    own = [known_as(str(field), list(map(str, read.fields))) for field in fitted.fields]
    shared = [field for field in own if field in read.fields.tolist()]
    if not shared:
        problem = f"the new records have none of the fields of the fit: {', '.join(map(str, fitted.fields))}"
        remedy = "rename their columns, or say in {columns} which is which"
        raise Problems(None).fail(problem, remedy, Remedy("columns"))
    lacking = np.full(read.num_records, -1, np.int32)
    values = [read.value[read.fields.tolist().index(field)] if field in shared else lacking for field in own]
    texts = [read.vocabulary(field).tolist() if field in shared else [] for field in own]
    return read.replace(
        num_fields=fitted.num_fields, fields=fitted.fields, records=_free_names(fitted, read)
    ).with_values(values, texts)  # fmt: skip


def _free_names(fitted: Records, new: Records) -> np.ndarray:
    """Return the ids of new records; those that the fit has are written ``source:id``."""
    known, problems = set(fitted.records), Problems("the new records")
    files = np.asarray(new.sources, object)[np.asarray(new.source)]
    own = [str(name) for name in new.records]
    found = [f"{file}:{name}" if name in known else name for name, file in zip(own, files, strict=True)]
    for name in found:
        if name in known or (name not in own and found.count(name) > 1):
            problems.add("the fit has a record of this name", "leave it out, or give it another id", value=name)
    problems.raise_any()
    return object_array(found)


def _joined(fit: Fit, new: Records, clean: Any) -> Records:
    """Return the fitted records and the new ones together, with the values that are compared as equal taken for one."""
    fitted: Any = fit.data
    ledger, given = fit.attributes.get("cleaning"), fit.attributes.get("clean", {})
    if lost := [field for field, how in given.items() if how != EXACT and field not in (clean or {})]:
        text = f"the fit cleaned {first_of(lost)} by functions of yours, which it does not keep; give them in {{clean}}"
        raise UnsupportedRequest(text, Remedy("clean"))
    how = {**given, **(clean or {})}
    new_forms = {str(field): new.vocabulary(field).tolist() for field in fitted.fields}
    if ledger is not None:
        types = {field: _type(ledger, field, new.sources) for field in new_forms}
        missing = fit.attributes.get("missing_values")
        with warnings.catch_warnings():  # Names taken for missing were named when the fit was made.
            warnings.filterwarnings("ignore", category=InputWarning)
            cleaned = clean_records(new, types=types, clean=how, missing_values=missing)
        new, new_forms = cleaned.records, cleaned.forms
    values, vocabularies, of_values = [], [], {}
    for place, field in enumerate(map(str, fitted.fields)):
        texts = fitted.vocabulary(field).tolist()
        known = [texts] if ledger is None else _forms(texts, ledger, field, how.get(field))
        lookup: dict[Any, int] = {}
        for variant in known:
            for code, form in enumerate(variant):
                lookup.setdefault(form, code)
        more: list[str] = []
        compared, codes = list(known[0]), []
        for text, form in zip(new.vocabulary(field).tolist(), new_forms[field], strict=True):
            if form not in lookup:
                lookup[form] = len(texts) + len(more)
                more.append(text)
                compared.append(form)
            codes.append(lookup[form])
        values.append(np.concatenate([fitted.value[place], np.append(codes, -1).astype(np.int32)[new.value[place]]]))
        vocabularies.append([*texts, *more])
        of_values[field] = compared
    sources = list(dict.fromkeys([*fitted.sources, *new.sources]))
    source = np.array([sources.index(name) for name in new.sources], np.int32)[np.asarray(new.source)]
    every = fitted.replace(
        source=np.concatenate([fitted.source, source]), entity=None, entities=None, near=None, distance=None,
        similar=None, num_records=fitted.num_records + new.num_records, num_sources=len(sources),
        sources=object_array(sources), records=object_array([*fitted.records, *new.records]),
    ).with_values(values, vocabularies)  # fmt: skip
    similar = dict(re.findall(r"(.+?) \((\w+)\)(?:, |$)", fit.attributes.get("similar", "")))
    return with_similar(every, similar, of_values) if similar else every


def _type(ledger: Mapping[str, Sequence[Any]], field: str, sources: Sequence[Any]) -> str:
    """Return of what type a column was, and of dates how the fit read them, where its sources agree or are these."""
    rows = [row for row in zip(*(ledger[name] for name in ("column", "source", "type", "order")), strict=True)
            if row[0] == field]  # fmt: skip
    type_ = str(rows[0][2]).partition(":")[0]
    same = [order for _, source, _, order in rows if source in [str(name) for name in sources]]
    orders = {order for order in (same or [order for *_, order in rows]) if order in ("dmy", "mdy")}
    return f"{type_}:{orders.pop()}" if type_ == "date" and len(orders) == 1 else type_


def _forms(texts: list[str], ledger: Mapping[str, Sequence[Any]], field: str, how: Any) -> list[list[str | None]]:
    """Return the forms of the fitted values: once for each way in which the fit read the column."""
    if how is not None:
        return [forms(texts, Recipe(how))[0]]
    rows = zip(*(ledger[name] for name in ("column", "type", "order")), strict=True)
    found: dict[Recipe, None] = {}
    for column, type_, order in rows:
        if column == field:
            asked = str(type_).partition(":")[0]
            own = recipes([texts], f"{asked}:{order}" if asked == "date" and order in ("dmy", "mdy") else asked)[1]
            found[own[0]] = None
    return [forms(texts, recipe)[0] for recipe in found]
