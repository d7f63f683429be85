"""`link`: several tables in, who is the same person out; with sensible defaults, which it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from consilience.data.cleaned import LEDGER, Cleaned, clean_records
from consilience.data.cleaning import DATE_ORDERS, FIELD_TYPES
from consilience.data.column_names import known_as
from consilience.data.contract import file_of
from consilience.data.problems import warn_input
from consilience.data.records import Records, named_sources, records_and_ids
from consilience.errors import InputError, InputProblem, UnknownName, UnsupportedRequest
from consilience.inference.fitting import Fit, fit
from consilience.models.block_linkage import MODEL
from consilience.models.block_linkage.likelihoods import takes_texts
from consilience.models.block_linkage.overlap import overlaps
from consilience.models.block_linkage.repeats import repeats_by_chance
from consilience.notes import Remedy
from consilience.progress import showing
from consilience.similarity import check_kinds, with_similar

_ENTITY_NAMES = (
    "entity", "entity_id", "ent_id", "entid", "cluster", "cluster_id", "true_id", "true_entity", "true_cluster",
    "person_id", "truth", "gold", "ground_truth", "unique_entity",
)  # fmt: skip


_WORDS = 3           # of a text, at least
_MOST_TEXTS = 3_000  # that are compared with each other unasked: some seconds


class ChosenField(NamedTuple):
    """A column, and whether it is compared.

    Parameters
    ----------
    field : its name.
    type : one of `consilience.data.cleaning.FIELD_TYPES`, or as it was asked for.
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
    similar: Mapping[str, str] | None = None,
    entity: str | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    clean: Mapping[str, str | Callable[[str], str | None]] | None = None,
    missing_values: str | Sequence[str] | None = None,
    pairs: Any = None,
    labels: Any = None,
    priors: Any = None,
    method: str = "auto",
    draws: int = 1000,
    seed: int = 0,
    engine: Any = "auto",
    **settings: Any,
) -> Fit:
    """Find the records that describe the same entity, in one table or between several.

    Parameters
    ----------
    sources : path, data frame, dict, list of rows, or a list or dict of these
        A path, a data frame, a dict of columns or a list of rows; a list of such tables; or a dict ``{name: source}``.
        `Records` that were read are taken as they are.
    id : str, optional
        The column that names each record; by default ``id``, ``record_id`` or ``rec_id``. "row" numbers the rows of
        tables that have no such column.
    fields : sequence of str or dict of str to str, optional
        The columns to compare, or a dict of column to type: "string", "date" ("date:dmy", "date:mdy"), "number",
        "phone" or "category". By default all that can tell entities apart: left out is a column that is constant,
        always missing or different in every record, or nearly so, where records that share a value agree in nothing
        else; and of two columns that say the same, as a postal code and its town may, the one that says less, since
        both would count (name both to keep them). Fields are compared for equality of their cleaned forms: of numbers,
        of dates and phone numbers however they are written, and of texts without case, accents and punctuation; see
        `consilience.data.cleaning`.
    similar : dict of str to str, optional
        A dict of the columns in which two values may be nearly equal, and by what: "string" (typing errors), "typo"
        (and hardly any other errors), "number" or "date"; for example ``{"name": "string"}``. By "text" titles,
        addresses and the like are compared, which are hardly ever written twice in one way; where ``similar``
        is left out, all columns in which most values have three words or more.
    entity : str, optional
        A column with the known entity, for evaluation; it is not compared.
    columns : dict, optional
        Other names of columns, ``{source: {column: name}}``: ``{"right": {"surname": "last_name"}}`` takes the column
        surname of the source right for last_name. Names that differ in case, blanks, - and _ alone are one.
    clean : dict[str, str or callable, optional
        How a column is compared in another way: "exact", as it is written, or a function from a text to its form, None
        where it is missing; for example ``{"name": "exact"}``.
    missing_values : str or sequence of str, optional
        Texts that stand for a missing value, without case, in place of `consilience.data.cleaning.MISSING` ("NA",
        "unknown", "-" and others); "empty" for the empty cell alone.
    pairs : path, data frame or dict of columns, optional
        A table of the pairs of records that may be linked, with the columns ``record_a`` and ``record_b``, in the place
        of those that the model itself can care about; of splink's or any other blocking.
    labels : path, data frame or dict of columns, optional
        A table of answers to pairs of records, with the columns ``record_a``, ``record_b`` and ``answer`` (same,
        together or 1; different, apart or 0; empty for none), as ``fit.review()`` is where it is filled in. A column
        ``error`` says how probably an answer is wrong; without it all are sure, and no partition goes against them.
    priors : Priors, optional
        `consilience.models.block_linkage.Priors`, of the hyperparameters; for example, of fields that are more or less
        often distorted, ``Priors(distortion=RareDistortion(a=[1, 1, 5], b=[99, 9, 5]))``, one number for each field
        that is compared, in the order of ``fields``.
    method : str, default "auto"
        ``auto``, ``em``, ``nuts`` or ``gibbs``. The interval of the number of entities by EM is by Laplace's method, or
        where nobody knows what the candidates hide that of the links alone, too narrow; that of Gibbs sampling holds if
        the model does.
    draws, seed : int
        Of the partitions that are drawn.
    engine : str or engine, default "auto"
        What goes through the records by EM: "local", in memory; "duckdb", on one machine beyond memory; "spark", on a
        cluster; or an engine with settings of its own, ``cs.engines.duckdb(memory="8GB")`` or
        ``cs.engines.spark(session)``. "auto" is that of a source that is a table of DuckDB or a data frame of Spark,
        DuckDB where there are more than 2·10⁸ values and it is installed, and local else. The answer is the same.
    **settings : keyword arguments
        Of the model `block-linkage`: likelihood ("auto": hit-miss, or error-classes where EM finds them better),
        restriction, threshold, largest, size_limit, decision, at, weights, wide; and what bounds a run: ``devices``,
        ``chains``, ``warmup``, ``checkpoint``, ``resume`` and ``progress`` of `fit`.

    Returns
    -------
    Fit
        With the tables ``entities()``, ``pairs()``, ``review()``, ``canonical()``, ``patterns()`` and the number of
        entities, ``num_entities()``.

    Raises
    ------
    InputError : the tables cannot be read, or have nothing in common, or a column or source is named that none has;
        the message says where.
    UnknownName : a type of field, or a kind of similarity, that does not exist.
    UnsupportedRequest : no column can tell entities apart; or ``restriction="across"`` and a single table.
    InvalidPrior : a prior for another number of fields.

    Examples
    --------
    >>> import consilience as cs
    >>> people = {
    ...     "id": list("abcdefgh"),
    ...     "name": ["Ann", "Ann", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
    ...     "born": [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944],
    ...     "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn"],
    ... }
    >>> fit = cs.link(people)
    >>> fit.entities()["entity"].tolist()
    ['a', 'a', 'c', 'c', 'e', 'f', 'g', 'h']
    """
    if "processes" in settings:
        text = "processes= is gone; give {engine} to use all cores of one machine, or {engine}"
        raise UnsupportedRequest(text, Remedy("engine", "duckdb"), Remedy("engine", "spark"))
    _check_priors(priors)
    if engine == "auto":
        engine = _engine_of_sources(sources)
    with showing(settings.get("progress")):
        table = prepare(
            sources, id=id, fields=fields, similar=similar, entity=entity, columns=columns, clean=clean,
            missing_values=missing_values, restriction=str(settings.get("restriction", "none")),
            texts=similar is None and method in ("auto", "em") and takes_texts(settings.get("likelihood")),
        )  # fmt: skip
    records = table.records if pairs is None else table.records.with_candidates(pairs)
    if labels is not None:
        records = records.with_labels(labels)
    found = fit(MODEL, records, priors, method=method, draws=draws, seed=seed, engine=engine, **settings)
    found.attributes.update(table.described)
    if labels is not None:
        found.attributes["labels"] = 0 if records.labelled is None else len(records.labelled)
    if "left_out" in table.described:
        warn_input(f"columns that are not compared: {table.described['left_out']}")
    return found


def _engine_of_sources(sources: Any) -> str:
    """Return the engine that a source is a table of; auto where none is."""
    listed = sources.values() if isinstance(sources, Mapping) else sources if isinstance(sources, list) else [sources]
    homes = {type(source).__module__.partition(".")[0].strip("_") for source in listed}
    return "spark" if "pyspark" in homes else "duckdb" if "duckdb" in homes else "auto"


def texts_of(
    records: Records, chosen: Sequence[ChosenField], forms: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Return the compared columns that hold texts, such as titles and addresses: most values have three words or more.

    Such values are hardly ever written twice in one way.
    """
    found = []
    for one in chosen:
        if one.type != "string" or one.field not in records.fields or not 1 < one.values <= _MOST_TEXTS:
            continue
        written = [str(value) for value in records.vocabulary(one.field)]
        values = (forms or {}).get(one.field, written)
        several = [str(value).count(" ") >= _WORDS - 1 for value in values]
        # Cleaning makes several words of an address of mail, which is one.
        if np.mean(several) > 0.5 and np.mean([" " in text for text in written]) > 0.5:
            found.append(one.field)
    return found


class Prepared(NamedTuple):
    """Tables that were read and cleaned.

    Parameters
    ----------
    records : with the fields that are compared.
    described : what a fit of them keeps in its attributes: which column names records, the fields with their types,
        those that are left out, what was given of the reading, and the ledger of cleaning.
    """

    records: Records
    described: dict[str, Any]


def prepare(
    sources: Any,
    *,
    id: str | None = None,
    fields: Sequence[str] | Mapping[str, str] | None = None,
    similar: Mapping[str, str] | None = None,
    entity: str | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    clean: Mapping[str, str | Callable[[str], str | None]] | None = None,
    missing_values: str | Sequence[str] | None = None,
    restriction: str = "none",
    texts: bool = False,
) -> Prepared:
    """Read tables, clean them and choose the fields, as `link` does before it links; for the parameters see there.

    Parameters
    ----------
    texts : whether columns of texts that are not named are compared by similarity.

    Raises
    ------
    InputError, UnknownName, UnsupportedRequest : as of `link`.
    """
    types = dict(fields) if isinstance(fields, Mapping) else {}
    _check_types(types)
    names = None if fields is None else list(fields)
    similar = dict(similar or {})
    check_kinds(similar)
    records, id_columns = _read(sources, id=id, entity=entity, fields=names, columns=columns)
    if records.num_records == 1:
        problem = InputProblem("there is one record only, and none to link it with", "give at least two records")
        raise InputError(problem)
    if restriction == "across" and records.num_sources == 1:
        text = "{restriction} links records of different files, and there is only one"
        raise UnsupportedRequest(text, Remedy("restriction", "across"))
    types, similar, clean = (_of_known(given, records) for given in (types, similar, clean))
    asked = {field: kind for field, kind in similar.items() if kind in ("number", "date")} | types
    cleaned = clean_records(records, types=asked, clean=clean, missing_values=missing_values)
    _warn_of_types(cleaned, types)
    chosen = chosen_fields(cleaned.records, cleaned.types | types)
    own_texts = texts_of(cleaned.records, chosen, cleaned.forms) if texts else []
    if names is None:
        chosen = _said_once(cleaned.records, chosen, {*own_texts, *similar})
    compared = [one.field for one in chosen if names is not None or not one.left_out]
    if not compared:
        raise UnsupportedRequest(
            "no column can tell entities apart: each is constant, always missing, or different in every record; "
            "name those to compare in {fields}", Remedy("fields"),
        )  # fmt: skip
    records = cleaned.records.of_fields(compared)
    similar |= {field: "text" for field in own_texts if field in compared and field not in similar}
    if similar:
        records = with_similar(records, _compared(similar, compared, chosen), cleaned.forms)
    if restriction != "within":
        _check_files(records)
    if names is None:
        _warn_of_entities(compared)
    described: dict[str, Any] = {"files": files} if (files := _files(sources)) else {}
    described |= {"id": ", ".join(dict.fromkeys(id_columns.values())) or "id"}
    described["fields"] = ", ".join(f"{one.field} ({one.type})" for one in chosen if one.field in compared)
    if similar:
        described["similar"] = ", ".join(f"{field} ({kind})" for field, kind in similar.items())
    if left := [f"{one.field}: {one.left_out}" for one in chosen if one.field not in compared]:
        described["left_out"] = "; ".join(left)
    if names is not None:
        described["fields_given"] = ",".join(f"{name}:{types[name]}" if name in types else name for name in names)
    described |= _given(columns, clean, missing_values)
    return Prepared(records, {**described, "cleaning": cleaned.ledger})


def cleaning(fit: Fit) -> Any:
    """Return what cleaning did to the columns of the tables that were linked: a row for each column of each source.

    Returns
    -------
    A data frame: ``column, source, type, order`` (of dates with the year last, "dmy" or "mdy"), ``values`` (different
    ones), ``forms`` (in which they are compared), ``missing`` (records), ``examples`` ("before → after").

    Raises
    ------
    UnsupportedRequest : the fit was not made by `link`, which alone cleans.

    Examples
    --------
    >>> import consilience as cs
    >>> people = {
    ...     "id": list("abcdefgh"),
    ...     "name": ["Zoë", "ZOE", "Bob", "Bob", "Cid", "Dan", "Eve", "Fay"],
    ...     "born": [1980, 1980, 1975, 1975, 1990, 1991, 1960, 1944],
    ...     "town": ["Ulm", "Ulm", "Bonn", "Bonn", "Ulm", "Bonn", "Ulm", "Bonn"],
    ... }
    >>> cs.link(people).cleaning()[["column", "values", "forms", "examples"]].values.tolist()
    [['name', 7, 6, 'Zoë → zoe'], ['born', 6, 6, ''], ['town', 2, 2, '']]
    """
    import pandas

    if "cleaning" not in fit.attributes:
        raise UnsupportedRequest("only `link` cleans tables, and this fit was made of records as they were")
    return pandas.DataFrame(fit.attributes["cleaning"], columns=list(LEDGER))


def ledger_lines(ledger: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the ledger of cleaning in words, a line for each column of each source."""
    lines = []
    for row in zip(*(ledger[name] for name in LEDGER), strict=True):
        column, source, type_, order, values, forms, missing, examples = row
        kind = f"{type_} {order}".strip()
        changed = f"; {examples}" if examples else ""
        lines.append(f"{column} of {source}: {kind}, {values:,} values, {forms:,} forms, {missing:,} missing{changed}")
    return lines


def _check_types(types: Mapping[str, str]) -> None:
    for name, type_ in types.items():
        base, _, order = type_.partition(":")
        if base not in FIELD_TYPES or (order and (base != "date" or order not in DATE_ORDERS)):
            listed = ", ".join((*FIELD_TYPES, *(f"date:{one}" for one in DATE_ORDERS)))
            raise UnknownName(f"the type of field {name!r} is {type_!r}; give one of {listed}")


def _of_known(given: Mapping[str, Any] | None, records: Records) -> dict[str, Any]:
    """Return what was given for columns by the names that the records have for them."""
    return {known_as(name, list(records.fields)): value for name, value in (given or {}).items()}


def _given(columns: Any, clean: Mapping[str, Any], missing_values: Any) -> dict[str, Any]:
    """Return what was said of the reading, as a file can keep it."""
    named = {field: how if isinstance(how, str) else getattr(how, "__name__", "…") for field, how in clean.items()}
    tokens = missing_values if missing_values is None or isinstance(missing_values, str) else list(missing_values)
    renamed = {str(source): dict(of_source) for source, of_source in (columns or {}).items()}
    return {name: value for name, value in (("columns", renamed), ("clean", named)) if value} | (
        {} if tokens is None else {"missing_values": tokens}
    )


def _files(sources: Any) -> list[str]:
    """Return the paths of the tables, for lines that link them again; none where one has no path."""
    if isinstance(sources, Records):
        return []
    files = [file_of(source) for source in named_sources(sources).values()]
    return files if all(files) else []


def _read(sources: Any, *, fields: Sequence[str] | None, **reading: Any) -> tuple[Records, dict[str, str]]:
    """Return records, and the column of each source that names them; those that were read have none."""
    if not isinstance(sources, Records):
        return records_and_ids(sources, fields=fields, **reading)
    if given := [name for name, value in reading.items() if value]:
        text = f"{', '.join(f'{{{name}}}' for name in given)} says how tables are read, and these records are read"
        raise UnsupportedRequest(text, *map(Remedy, given))
    return sources if fields is None else sources.of_fields(fields), {}


def _compared(
    similar: dict[str, str], compared: Sequence[str], chosen: Sequence[ChosenField]
) -> dict[str, str]:
    """Refuse what is similar, but not compared."""
    why = {one.field: f"it is {one.left_out}" for one in chosen if one.left_out}
    for field in similar:
        if field not in compared:
            reason = why.get(field, f"there are {', '.join(compared)}")
            problem = f"{{similar}} names {field!r}, which is not compared: {reason}"
            remedy = "correct the name, or name the column in {fields} too"
            raise InputError(InputProblem(problem, remedy, remedies=(Remedy("similar"), Remedy("fields"))))
    return similar


def _check_priors(priors: Any) -> None:
    from consilience.models.block_linkage import Priors

    if priors is not None and not isinstance(priors, Priors):
        raise UnsupportedRequest(
            f"priors= is a {type(priors).__name__}; give the priors of the model, such as "
            "Priors(distortion=RareDistortion(a=1, b=99)), both from consilience.models.block_linkage"
        )


def _warn_of_types(cleaned: Cleaned, asked: Mapping[str, str]) -> None:
    """Warn of fields that are mostly not of the type that was asked for."""
    for field, share in cleaned.unread.items():
        if share > 0.5 and field in asked:
            warn_input(
                f"of the values of {field!r}, {share:.0%} cannot be read as a {asked[field]} and are compared as text; "
                "dates are read as 1951-02-03, 19510203, 03.02.1951, or with date:dmy or date:mdy as 03/02/1951"
            )


def _warn_of_entities(compared: Sequence[str]) -> None:
    """Warn of columns that are called as the answer is."""
    for field in compared:
        if field.strip().casefold().replace(" ", "_") in _ENTITY_NAMES:
            warn_input(
                f"the column {field!r} is compared as a field, but called as known entities are: if it is the answer, "
                "give {entity}, else name the columns to compare in {fields}",
                Remedy("entity", field), Remedy("fields"),
            )  # fmt: skip


def _check_files(records: Records) -> None:
    """Refuse files that nothing connects, and warn of fields that one of several files has."""
    if records.num_sources == 1:
        return
    value, source = np.asarray(records.value), np.asarray(records.source)
    has = np.stack([np.bincount(source[row >= 0], minlength=records.num_sources) > 0 for row in value])
    shared = has.sum(axis=1) > 1
    fields = np.asarray(records.fields, object)
    for place in np.flatnonzero(~(has & shared[:, None]).any(axis=0)):
        own = "; ".join(
            f"{name} has {', '.join(fields[has[:, one]]) or 'none'}" for one, name in enumerate(records.sources)
        )
        problem = f"no field that is compared is in {records.sources[place]} and in another file: {own}"
        raise InputError(InputProblem(problem, "rename columns, so that the same one has the same name in all files"))
    single = [str(field) for field in fields[~shared]]
    if single:
        warn_input(
            f"only one file has {', '.join(single)}, which cannot link it with others; if others call it something "
            "else, rename it there"
        )


def _said_once(records: Records, chosen: Sequence[ChosenField], kept: AbstractSet[str]) -> list[ChosenField]:
    """Return the fields, of two that say the same the one that says less left out, unless it is one to keep."""
    judged = [one.field for one in chosen if not one.left_out and one.field not in kept]
    if not judged:
        return list(chosen)
    left: dict[str, str] = {}
    for one in overlaps(records.of_fields(judged)):
        told, by = judged[one.told], judged[one.by]
        if one.both_ways and by not in left:
            left.setdefault(told, f"says the same as {by}, and both would count; to keep it, name both in fields")
    return [one._replace(left_out=left.get(one.field, one.left_out)) for one in chosen]


def chosen_fields(records: Records, types: Mapping[str, str]) -> list[ChosenField]:
    """Tell which fields can tell entities apart.

    Parameters
    ----------
    types : of the fields.
    """
    found = []
    by_chance = repeats_by_chance(records)
    for place, field in enumerate(records.fields):
        codes = np.asarray(records.value[place])
        missing, values = int(np.sum(codes < 0)), len(np.unique(codes[codes >= 0]))
        reason = ""
        if values == 0:
            reason = "always missing"
        elif values == 1:
            reason = "the same in every record"
        elif values == len(codes) - missing > 2:
            reason = "different in every record"
        elif by_chance[place]:
            reason = "different in nearly every record, and the records that share a value agree in nothing else"
        found.append(ChosenField(str(field), types[str(field)], values, missing, reason))
    return found
